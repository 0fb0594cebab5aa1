/* loss_scale.c: see loss_scale.h. */
#include "train/loss_scale.h"
#include "base/need.h"
#include "autodiff/apply.h"

#include <math.h>
#include <string.h>

#include "layers/express.h"
#include "train/optimizer.h"

/* The four variables in the order in which Keras' LossScaleOptimizer has them in files. */
flow_status flow_loss_scale_new(const char *name, double initial_scale, double growth_steps, flow_loss_scale **out)
{
  static const struct { const char *name; int dtype; } kinds[FLOW_SCALE_VARIABLES] = {
    { "iteration", FLOW_INT64 }, { "learning_rate", FLOW_FLOAT32 }, { "step_counter", FLOW_INT64 }, { "dynamic_scale", FLOW_FLOAT32 },
  };
  void *block;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loss_scale_new: out is NULL");
  if (!(initial_scale > 0) || !isfinite((float)initial_scale))
    return flow_fail(FLOW_INVALID_ARGUMENT, "LossScaleOptimizer: initial_scale is %g, expected a float32 number above 0", initial_scale);
  if (!(growth_steps >= 1) || growth_steps != floor(growth_steps) || growth_steps > 9007199254740992.0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "LossScaleOptimizer: dynamic_growth_steps is %g, expected a whole number from 1", growth_steps);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_loss_scale), &block));
  flow_loss_scale *scale = block;
  scale->initial_scale = initial_scale;
  scale->growth_steps = growth_steps;
  scale->name = flow_duplicate_text(name ? name : "loss_scale_optimizer");
  flow_status status = scale->name ? FLOW_OK : FLOW_OUT_OF_MEMORY;
  for (int i = 0; i < FLOW_SCALE_VARIABLES && status == FLOW_OK; i++)
    status = flow_optimizer_scalar(kinds[i].dtype, i == FLOW_SCALE_DYNAMIC ? initial_scale : 0, scale->name, kinds[i].name,
                                   &scale->variables[i]);
  if (status != FLOW_OK) {
    flow_loss_scale_release(scale);
    return status;
  }
  *out = scale;
  return FLOW_OK;
}

/* Also of one that was made by half. NULL is fine. */
void flow_loss_scale_release(flow_loss_scale *scale)
{
  if (!scale) return;
  for (int i = 0; i < FLOW_SCALE_VARIABLES; i++) flow_variable_release(scale->variables[i]);
  flow_free(scale->name);
  flow_free(scale);
}

const char *flow_loss_scale_name(const flow_loss_scale *scale)
{
  return scale ? scale->name : NULL;
}

/* Borrowed; NULL past the last one, which ends a loop over all of them. */
flow_variable *flow_loss_scale_variable(const flow_loss_scale *scale, int index)
{
  if (!scale) return NULL;
  return index >= 0 && index < FLOW_SCALE_VARIABLES ? scale->variables[index] : NULL;
}

/* What was moved before a failure stays moved: the next call goes on from there. */
flow_status flow_loss_scale_move(const flow_loss_scale *scale, flow_place *place)
{
  for (int i = 0; i < FLOW_SCALE_VARIABLES; i++) FLOW_TRY(flow_variable_move_to(scale->variables[i], place));
  return FLOW_OK;
}

flow_status flow_loss_scale_to_device(flow_context *context, flow_loss_scale *scale, int device)
{
  FLOW_NEED(context, scale);
  flow_place *place;
  FLOW_TRY(flow_context_place_of(context, device, &place));
  return flow_loss_scale_move(scale, place);
}

/* Eagerly the variables follow the loss to its device. */
flow_status flow_loss_scale_loss(flow_context *context, flow_loss_scale *scale, flow_tensor *loss, flow_tensor **out)
{
  FLOW_NEED(context, scale, loss, out);
  FLOW_TRY(flow_check_tensor("flow_loss_scale_loss: loss", loss));
  if (!flow_tensor_is_symbolic(loss)) FLOW_TRY(flow_loss_scale_move(scale, flow_tensor_place(loss)));
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, e_mul(&e, loss, flow_express_variable(&e, scale->variables[FLOW_SCALE_DYNAMIC])), out);
}

/* ---- a step ------------------------------------------------------------------------------------------------------------------ */

/* A bool without axes, of the expression. */
static flow_tensor *is_all_finite(flow_expression *e, flow_tensor *x)
{
  flow_attributes everywhere;
  memset(&everywhere, 0, sizeof everywhere);
  return flow_express(e, FLOW_OP_all, flow_express(e, FLOW_OP_is_finite, x, NULL, NULL, NULL), NULL, NULL, &everywhere);
}

/* One bool for all runs: is_finite of each element, joined by `all` and logical_and. */
static flow_status all_finite(flow_context *context, flow_tensor *const *first, int count, size_t stride, flow_tensor **out)
{
  *out = NULL;
  for (int i = 0; i < count; i++) {
    flow_expression e = flow_expression_of(context);
    flow_tensor *one = is_all_finite(&e, *(flow_tensor *const *)(const void *)((const char *)first + (size_t)i * stride)), *both;
    flow_status status = flow_expression_take(&e, *out ? flow_express(&e, FLOW_OP_logical_and, *out, one, NULL, NULL) : one, &both);
    flow_tensor_release(*out);
    *out = both;
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* Updates in a row that were finite: 0 after one that was not, and when the scale grows. */
static flow_status next_counter(flow_context *context, flow_tensor *counter, flow_tensor *grows, flow_tensor *all, flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *next = e_add(&e, counter, flow_express_number(&e, counter, 1)), *none = flow_express_number(&e, counter, 0);
  return flow_expression_take(&e, e_where(&e, all, e_where(&e, grows, none, next), none), out);
}

/* It is not doubled beyond what float32 holds: from infinity it would not come back. */
static flow_status next_scale(flow_context *context, flow_tensor *scale, flow_tensor *grows, flow_tensor *all, flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *twice = flow_express_number(&e, scale, 2), *half = flow_express_number(&e, scale, 0.5);
  flow_tensor *factor = e_where(&e, all, e_where(&e, grows, twice, flow_express_number(&e, scale, 1)), half);
  flow_tensor *next = e_mul(&e, scale, factor);
  return flow_expression_take(&e, e_where(&e, flow_express(&e, FLOW_OP_is_finite, next, NULL, NULL, NULL), next, scale), out);
}

/* As a number of `dtype`: 1 for true. */
static flow_status cast(flow_context *context, flow_tensor *x, int dtype, flow_tensor **out)
{
  return flow_apply1(context, FLOW_OP_cast, x, NULL, NULL, &(flow_attributes){ .cast = { dtype } }, out);
}

/* References in *step, all or none. Nothing is written yet: flow_scale_step_finish does it after the update. */
flow_status flow_scale_step_make(flow_context *context, const flow_loss_scale *scale, flow_tensor *const *first, int count, size_t stride,
                                 flow_scale_step *step)
{
  flow_tensor *all = NULL, *counter = NULL, *now = NULL, *last = NULL, *grows = NULL;
  *step = (flow_scale_step){ .guard = NULL };
  flow_status status = all_finite(context, first, count, stride, &all);
  if (status == FLOW_OK) status = flow_variable_read(context, scale->variables[FLOW_SCALE_STEP_COUNTER], &counter);
  if (status == FLOW_OK) status = flow_variable_read(context, scale->variables[FLOW_SCALE_DYNAMIC], &now);
  if (status == FLOW_OK) status = flow_tensor_scalar(FLOW_INT64, scale->growth_steps - 1, &last);
  if (status == FLOW_OK) status = flow_apply1(context, FLOW_OP_eq, counter, last, NULL, NULL, &grows);
  if (status == FLOW_OK) status = cast(context, all, FLOW_FLOAT32, &step->guard);
  if (status == FLOW_OK) status = cast(context, all, FLOW_INT64, &step->advance);
  if (status == FLOW_OK) status = next_counter(context, counter, grows, all, &step->counter);
  if (status == FLOW_OK) status = next_scale(context, now, grows, all, &step->scale);
  flow_tensor_release(all);
  flow_tensor_release(counter);
  flow_tensor_release(now);
  flow_tensor_release(last);
  flow_tensor_release(grows);
  if (status != FLOW_OK) flow_scale_step_release(step);
  return status;
}

/* Two assignments, which in a trace are effects of the commit tail. */
flow_status flow_scale_step_finish(flow_context *context, const flow_loss_scale *scale, const flow_scale_step *step)
{
  FLOW_TRY(flow_variable_assign(context, scale->variables[FLOW_SCALE_STEP_COUNTER], step->counter));
  return flow_variable_assign(context, scale->variables[FLOW_SCALE_DYNAMIC], step->scale);
}

/* Also of a step that was made by half, and once more after that. */
void flow_scale_step_release(flow_scale_step *step)
{
  flow_tensor_release(step->guard);
  flow_tensor_release(step->advance);
  flow_tensor_release(step->counter);
  flow_tensor_release(step->scale);
  *step = (flow_scale_step){ .guard = NULL };
}
