/* update.c: one update of an optimizer: gradients are clipped and packed, then the optimizer's op, or its formula, runs over each
 * contiguous run of its variables. A formula is ordinary ops over flat tensors, in the commit tail of a plan: plans join them into a few
 * passes, on every device. Where the caller makes the update, flow_update_begin and flow_update_end are what comes before and after. */
#include "autodiff/expression.h"
#include "autodiff/apply.h"
#include "base/float_state.h"
#include "base/need.h"
#include "graph/context.h"
#include "tensor/place.h"
#include "train/loss_scale.h"
#include "train/optimizer.h"
#include "train/update.h"

typedef flow_arena arena;
typedef flow_run run;
typedef flow_run_update run_update;
typedef flow_update pending;

/* ---- updates --------------------------------------------------------------------------------------------------------------- */

/* The rate of the update that comes next: the caller's, the variable's, or the schedule's of the number of updates so far; a new
 * reference. */
static flow_status next_rate(flow_context *context, flow_optimizer *optimizer, flow_tensor *given, flow_tensor **out)
{
  if (given) {
    *out = flow_tensor_retain(given);
    return FLOW_OK;
  }
  if (optimizer->learning_rate) return flow_variable_handle(context, optimizer->learning_rate, out);
  if (!optimizer->schedule)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: its rates come from the caller, but this update has none", optimizer->class->name);
  flow_tensor *step;
  FLOW_TRY(flow_variable_read(context, optimizer->iterations, &step));
  flow_status status = flow_schedule_apply(context, optimizer->schedule, step, out);
  flow_tensor_release(step);
  return status;
}

/* Does an update by the optimizer's op. Eagerly this takes no memory, so it cannot fail. */
static flow_status run_op(const pending *all, const run_update *u)
{
  flow_context *context = all->context;
  flow_optimizer *optimizer = all->optimizer;
  const run *r = &optimizer->runs[u->run];
  const flow_optimizer_layout *layout = optimizer->layout;
  flow_tensor *inputs[FLOW_MAX_OPERANDS] = { NULL };
  flow_attributes attributes = optimizer->attributes;
  if (!r->home->decays[r->first]) attributes.optimizer.weight_decay = 0;
  int count = flow_optimizer_inputs(layout, &attributes);
  inputs[0] = flow_tensor_retain(u->gradient);
  inputs[layout->rate] = flow_tensor_retain(all->rate);
  if (all->guard) inputs[count++] = flow_tensor_retain(all->guard);
  flow_status status = flow_variable_handle(context, r->parameters, &inputs[1]);
  for (int s = 0; s < optimizer->own_kinds && status == FLOW_OK; s++)
    status = flow_variable_handle(context, r->slots[s], &inputs[layout->slots[s]]);
  if (layout->iterations >= 0 && status == FLOW_OK) {
    if (all->done) inputs[layout->iterations] = flow_tensor_retain(all->done);
    else status = flow_variable_handle(context, optimizer->iterations, &inputs[layout->iterations]);
  }
  if (status == FLOW_OK) status = flow_apply(context, layout->op, inputs, count, &attributes, NULL);
  for (int i = 0; i < FLOW_MAX_OPERANDS; i++) flow_tensor_release(inputs[i]);
  return status;
}

/* ---- formulas ------------------------------------------------------------------------------------------------------------- */

/* which: 0 the weights, 1 and up the slots, in the order of flow_run_update.state. */
static flow_variable *target_of(const run *r, int which) { return which == 0 ? r->parameters : r->slots[which - 1]; }

/* The variable as it is when the update runs: in a trace a value of the commit tail, after all that the step computes has read the old
 * one. */
flow_status flow_update_read_late(flow_context *context, flow_variable *variable, flow_tensor **out)
{
  flow_graph *graph = flow_context_trace(context);
  int value;
  if (!graph) {
    *out = flow_tensor_retain(variable->tensor);
    return FLOW_OK;
  }
  FLOW_TRY(flow_graph_variable(graph, variable, 1, &value));
  return flow_graph_tensor(graph, value, out);
}

/* Parameters lose weight_decay times the learning rate of themselves first (Keras' base_optimizer.py: _apply_weight_decay). */
static flow_status decay_weight(flow_context *context, const flow_optimizer *optimizer, flow_tensor *rate, run_update *u)
{
  const run *r = &optimizer->runs[u->run];
  double decay = flow_argument_number(optimizer->arguments, "weight_decay");
  if (decay == 0 || !r->home->decays[r->first]) return FLOW_OK;
  flow_tensor *decayed;
  flow_expression e = flow_expression_of(context);
  flow_tensor *lost = e_mul(&e, u->state[0], e_mul(&e, rate, flow_express_number(&e, rate, decay)));
  FLOW_TRY(flow_expression_take(&e, e_sub(&e, u->state[0], lost), &decayed));
  flow_tensor_release(u->state[0]);
  u->state[0] = decayed;
  return FLOW_OK;
}

/* Fills what a formula reads: the weights after decay, and the slots. */
static flow_status read_state(pending *all, run_update *u)
{
  flow_optimizer *optimizer = all->optimizer;
  const run *r = &optimizer->runs[u->run];
  for (int k = 0; k <= optimizer->own_kinds; k++) FLOW_TRY(flow_update_read_late(all->context, target_of(r, k), &u->state[k]));
  return decay_weight(all->context, optimizer, all->rate, u);
}

/* The number of this update, from 1, as float32. */
static flow_status read_step(pending *all)
{
  flow_tensor *done = flow_tensor_retain(all->done);
  if (!done) FLOW_TRY(flow_update_read_late(all->context, all->optimizer->iterations, &done));
  flow_expression e = flow_expression_of(all->context);
  flow_tensor *number = flow_express_cast(&e, done, FLOW_FLOAT32);
  flow_status status = flow_expression_take(&e, e_add(&e, number, flow_express_number(&e, number, 1)), &all->number);
  flow_tensor_release(done);
  return status;
}

/* What all formulas of an update have in common; gradient, weight and slots are the caller's to add. */
static flow_formula formula_of(const pending *all)
{
  flow_formula f = { .expression = flow_expression_of(all->context), .arguments = all->optimizer->arguments, .rate = all->rate,
                     .step = all->number };
  for (int i = 0; i < FLOW_MAX_SCALARS; i++) f.scalars[i] = all->scalars[i];
  return f;
}

/* The formula replaces weight and slots by new tensors; the old ones stay readable, and nothing is written before all formulas have run. */
static flow_status run_formula(pending *all, run_update *u)
{
  flow_optimizer *optimizer = all->optimizer;
  flow_formula f = formula_of(all);
  f.gradient = u->gradient;
  f.weight = u->state[0];
  for (int s = 0; s < optimizer->own_kinds; s++) f.slots[s] = u->state[1 + s];
  optimizer->class->formula(&f);
  for (int k = 0; k <= optimizer->own_kinds && f.expression.status == FLOW_OK; k++)
    u->made[k] = flow_tensor_retain(k == 0 ? f.weight : f.slots[k - 1]);
  return flow_expression_end(&f.expression);
}

/* Before the formulas, once for all runs of an update. */
static flow_status advance_scalars(pending *all)
{
  flow_optimizer *optimizer = all->optimizer;
  if (!optimizer->class->advance) return FLOW_OK;
  for (int i = 0; i < optimizer->scalar_count; i++) FLOW_TRY(flow_update_read_late(all->context, optimizer->scalars[i], &all->scalars[i]));
  flow_formula f = formula_of(all);
  optimizer->class->advance(&f);
  for (int i = 0; i < optimizer->scalar_count && f.expression.status == FLOW_OK; i++) {
    flow_tensor_release(all->scalars[i]);
    all->scalars[i] = flow_tensor_retain(f.scalars[i]);
  }
  return flow_expression_end(&f.expression);
}

/* In a trace an effect on the variable's storage; its version is renewed by the caller. */
flow_status flow_update_write(flow_context *context, flow_variable *variable, flow_tensor *made)
{
  flow_tensor *target;
  FLOW_TRY(flow_variable_handle(context, variable, &target));
  flow_status status = flow_apply(context, FLOW_OP_assign, (flow_tensor *[]){ target, made }, 2, NULL, NULL);
  flow_tensor_release(target);
  return status;
}

/* where(guard, made, before): on a device the decision is an op, so the host need not wait for it. */
flow_status flow_update_keep_guarded(flow_context *context, flow_tensor *guard, flow_variable *variable, flow_tensor **made)
{
  flow_tensor *before, *kept;
  if (!guard) return FLOW_OK;
  FLOW_TRY(flow_update_read_late(context, variable, &before));
  flow_status status = flow_apply1(context, FLOW_OP_where, guard, *made, before, NULL, &kept);
  flow_tensor_release(before);
  FLOW_TRY(status);
  flow_tensor_release(*made);
  *made = kept;
  return FLOW_OK;
}

/* Writes `made`, or, if the guard of the step is 0, what the variable holds already. */
flow_status flow_update_write_kept(const flow_update *all, flow_variable *variable, flow_tensor *made)
{
  flow_tensor *kept = flow_tensor_retain(made);
  flow_status status = flow_update_keep_guarded(all->context, all->step.guard, variable, &kept);
  if (status == FLOW_OK) status = flow_update_write(all->context, variable, kept);
  flow_tensor_release(kept);
  return status;
}

/* New versions of what an update wrote. */
static flow_status renew(flow_context *context, const flow_optimizer *optimizer, const run_update *u)
{
  const run *r = &optimizer->runs[u->run];
  flow_status status = FLOW_OK;
  for (int i = r->first; i < r->first + r->count && status == FLOW_OK; i++) {
    status = flow_variable_updated(context, r->home->variables[i]);
    for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++)
      status = flow_variable_updated(context, optimizer->slot_variables[flow_optimizer_slot_index(optimizer, r->home, i, s)]);
  }
  return status;
}

/* ---- gradients -------------------------------------------------------------------------------------------------------------- */

/* What comes after new weights, in Keras' order. */
static flow_status follow(const pending *all, const run_update *u)
{
  FLOW_TRY(flow_update_write_averages(all, u));
  FLOW_TRY(flow_update_constrain(all, u));
  return renew(all->context, all->optimizer, u);
}

/* A gradient has the variable's shape and dtype, and is alive. */
static flow_status check_gradient(const flow_optimizer *optimizer, const flow_tensor *gradient, const flow_variable *variable)
{
  FLOW_TRY(flow_check_tensor("a gradient of an optimizer", gradient));
  const flow_tensor *t = variable->tensor;
  if (!flow_shape_equal(gradient->rank, gradient->shape, t->rank, t->shape) || gradient->dtype != t->dtype)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the gradient for \"%s\" is %s %s, expected %s %s", optimizer->class->name, variable->name,
                     flow_dtype_name(gradient->dtype), flow_shape_text(gradient->rank, gradient->shape), flow_dtype_name(t->dtype),
                     flow_shape_text(t->rank, t->shape));
  return FLOW_OK;
}

/* What gradients are divided by first: the loss scale, else loss_scale_factor. New reference; NULL if there is neither. */
static flow_status loss_divisor(flow_context *context, const flow_optimizer *optimizer, flow_loss_scale *scale, flow_tensor **out)
{
  *out = NULL;
  if (scale) return flow_variable_read(context, scale->variables[FLOW_SCALE_DYNAMIC], out);
  if (flow_argument_is_null(optimizer->arguments, "loss_scale_factor")) return FLOW_OK;
  return flow_tensor_scalar(FLOW_FLOAT32, flow_argument_number(optimizer->arguments, "loss_scale_factor"), out);
}

/* Also releases an update whose construction failed: members that were not made are NULL. NULL is allowed. */
void flow_update_release(flow_update *all)
{
  if (!all) return;
  for (int i = 0; i < all->count + all->idle_count; i++) {
    flow_tensor_release(all->list[i].gradient);
    flow_tensor_release(all->list[i].accumulated);
    for (int k = 0; k <= FLOW_MAX_SLOT_KINDS; k++) {
      flow_tensor_release(all->list[i].state[k]);
      flow_tensor_release(all->list[i].made[k]);
    }
  }
  for (int i = 0; i < all->variable_count; i++) {
    flow_tensor_release(all->unscaled[i]);
    flow_variable_release(all->variables[i]);
  }
  for (int i = 0; i < FLOW_MAX_SCALARS; i++) flow_tensor_release(all->scalars[i]);
  flow_scale_step_release(&all->step);
  flow_tensor_release(all->number);
  flow_tensor_release(all->guard);
  flow_tensor_release(all->done);
  flow_tensor_release(all->divisor);
  flow_tensor_release(all->rate);
  flow_tensor_release(all->one);
  flow_free(all);
}

/* Everything that can fail comes first: an eager call updates all variables or none. */
static flow_status begin(pending *all, flow_tensor *given_rate, flow_tensor *const *gradients)
{
  flow_context *context = all->context;
  flow_optimizer *optimizer = all->optimizer;
  int count = all->variable_count;
  FLOW_TRY(flow_tensor_scalar(FLOW_INT64, 1, &all->one));
  FLOW_TRY(next_rate(context, optimizer, given_rate, &all->rate));
  FLOW_TRY(loss_divisor(context, optimizer, all->scale, &all->divisor));
  FLOW_TRY(flow_optimizer_unscale(context, all->divisor, gradients, count, all->unscaled));
  FLOW_TRY(flow_update_find_runs(all));
  if (all->scale) FLOW_TRY(flow_scale_step_make(context, all->scale, &all->list[0].gradient, all->count, sizeof(run_update), &all->step));
  all->guard = flow_tensor_retain(all->step.guard);
  FLOW_TRY(flow_update_accumulate(all));
  for (int i = 0; i < all->count; i++)
    FLOW_TRY(flow_optimizer_clip_each(context, optimizer, &optimizer->runs[all->list[i].run], &all->list[i].gradient));
  FLOW_TRY(flow_optimizer_clip_together(context, optimizer, &all->list[0].gradient, all->count, sizeof(run_update)));
  if (!optimizer->class->formula && optimizer->average_kind < 0) return FLOW_OK;
  FLOW_TRY(read_step(all));
  if (!optimizer->class->formula) return FLOW_OK;
  for (int i = 0; i < all->count; i++) FLOW_TRY(read_state(all, &all->list[i]));
  return FLOW_OK;
}

/* Everything that can fail eagerly comes before the first write. */
static flow_status guard_formulas(pending *all)
{
  const flow_optimizer *optimizer = all->optimizer;
  for (int i = 0; i < optimizer->scalar_count; i++)
    FLOW_TRY(flow_update_keep_guarded(all->context, all->guard, optimizer->scalars[i], &all->scalars[i]));
  for (int i = 0; i < all->count; i++)
    for (int k = 0; k <= optimizer->own_kinds; k++)
      FLOW_TRY(flow_update_keep_guarded(all->context, all->guard, target_of(&optimizer->runs[all->list[i].run], k),
                                        &all->list[i].made[k]));
  return FLOW_OK;
}

/* All formulas, and their guarded results, have been made before the first write: none of them reads a weight that was already updated. */
static flow_status write_formulas(pending *all)
{
  flow_optimizer *optimizer = all->optimizer;
  for (int i = 0; i < all->count; i++) {
    for (int k = 0; k <= optimizer->own_kinds; k++)
      FLOW_TRY(flow_update_write(all->context, target_of(&optimizer->runs[all->list[i].run], k), all->list[i].made[k]));
    FLOW_TRY(follow(all, &all->list[i]));
  }
  for (int i = 0; i < optimizer->scalar_count; i++) {
    FLOW_TRY(flow_update_write(all->context, optimizer->scalars[i], all->scalars[i]));
    FLOW_TRY(flow_variable_updated(all->context, optimizer->scalars[i]));
  }
  return FLOW_OK;
}

/* What every update ends with: the number of updates, and the loss scale. */
static flow_status finish(pending *all)
{
  FLOW_TRY(flow_update_write_accumulated(all));
  FLOW_TRY(flow_variable_assign_add(all->context, all->optimizer->iterations, all->scale ? all->step.advance : all->one));
  return all->scale ? flow_scale_step_finish(all->context, all->scale, &all->step) : FLOW_OK;
}

/* Each op writes its own run alone, so that they need no order. */
static flow_status apply_ops(pending *all)
{
  for (int i = 0; i < all->count; i++) {
    FLOW_TRY(run_op(all, &all->list[i]));
    FLOW_TRY(follow(all, &all->list[i]));
  }
  return finish(all);
}

/* In this order: numbers that all runs share, all results, all results guarded, all writes. */
static flow_status apply_formulas(pending *all)
{
  FLOW_TRY(advance_scalars(all));
  for (int i = 0; i < all->count; i++) FLOW_TRY(run_formula(all, &all->list[i]));
  FLOW_TRY(guard_formulas(all));
  FLOW_TRY(write_formulas(all));
  return finish(all);
}

/* Only what is given is checked: a variable without a gradient is left unchanged, but one of them must have one. */
static flow_status check(flow_optimizer *optimizer, flow_tensor *rate, flow_tensor *const *gradients, flow_variable *const *variables,
                         int count)
{
  int present = 0;
  if (rate) FLOW_TRY(flow_check_tensor("the rate of an optimizer", rate));
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_variable(optimizer->class->name, variables[i]));
    if (!gradients[i]) continue;
    FLOW_TRY(check_gradient(optimizer, gradients[i], variables[i]));
    present++;
  }
  if (!present)
    return flow_fail(FLOW_INVALID_ARGUMENT,
                     "%s: no gradients for any of the %d variables; does the loss depend on them, and was it computed inside tape:record?",
                     optimizer->class->name, count);
  return flow_optimizer_build(optimizer, variables, count);
}

/* One block holds the list of runs, gradients and variables. The update holds the variables until flow_update_release; after a failure
 * nothing is left. */
flow_status flow_update_begin(flow_context *context, flow_optimizer *optimizer, flow_loss_scale *scale, flow_tensor *rate,
                              flow_tensor *const *gradients, flow_variable *const *variables, int count, flow_update **out)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context, optimizer, out);
  if (count > 0) FLOW_NEED(gradients, variables);
  void *block;
  FLOW_TRY(check(optimizer, rate, gradients, variables, count));
  if (scale) FLOW_TRY(flow_loss_scale_move(scale, flow_tensor_place(optimizer->iterations->tensor)));
  int most = flow_optimizer_variable_count(optimizer);      /* the most runs */
  FLOW_TRY(flow_alloc_zero(sizeof(pending) + sizeof(run_update) * (size_t)(most + 1) + 2 * sizeof(void *) * (size_t)(count + 1), &block));
  pending *all = block;
  *all = (pending){ .context = context, .optimizer = optimizer, .scale = scale, .variable_count = count };
  all->list = (run_update *)(all + 1);
  all->unscaled = (flow_tensor **)(all->list + most + 1);
  all->variables = (flow_variable **)(all->unscaled + count + 1);
  for (int i = 0; i < count; i++) all->variables[i] = flow_variable_retain(variables[i]);
  flow_status status = begin(all, rate, gradients);
  if (status == FLOW_OK) *out = all;
  else flow_update_release(all);
  return status;
}

/* ---- by the caller ---------------------------------------------------------------------------------------------------------- */

/* Borrowed until the update ends. */
flow_tensor *flow_update_rate(const flow_update *update)
{
  return update ? update->rate : NULL;
}
flow_tensor *flow_update_guard(const flow_update *update)
{
  return update ? update->guard : NULL;
}

/* 0 for a variable that is not there, or is left out of weight decay. */
double flow_update_decay(const flow_update *update, int index)
{
  if (!update) return 0;
  return index >= 0 && index < update->variable_count ? flow_optimizer_decay_of(update->optimizer, update->variables[index]) : 0;
}

/* The place of a variable's gradient among the flat ones: which, and the element where it begins there. */
static const run_update *find_flat(const flow_update *all, int index, int64_t *offset)
{
  int place, home = flow_optimizer_home(all->optimizer, all->variables[index], &place);
  for (int i = 0; i < all->count && home >= 0; i++) {
    const run *r = &all->optimizer->runs[all->list[i].run];
    if (r->home != all->optimizer->arenas[home] || place < r->first || place >= r->first + r->count) continue;
    *offset = r->home->offsets[place] - r->home->offsets[r->first];
    return &all->list[i];
  }
  return NULL;
}

/* The part of a run's flat gradient that belongs to variable `index`, in its shape; *out NULL with FLOW_OK: it has none. As the formula
 * takes it: unscaled, accumulated and clipped. */
flow_status flow_update_gradient(const flow_update *update, int index, flow_tensor **out)
{
  FLOW_NEED(out);
  int64_t offset;
  *out = NULL;
  FLOW_NEED(update);
  if (index < 0 || index >= update->variable_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_update_gradient: there is no variable %d of %d", index, update->variable_count);
  if (!update->unscaled[index]) return FLOW_OK;
  const run_update *u = find_flat(update, index, &offset);
  if (!u) return flow_fail(FLOW_INVALID_STATE, "flow_update_gradient: variable %d was moved meanwhile", index);
  const flow_tensor *variable = update->variables[index]->tensor;
  flow_attributes part = { .slice = { .rank = 1, .step = { 1 } } };
  part.slice.begin[0] = offset;
  part.slice.end[0] = offset + flow_shape_size(variable->rank, variable->shape);
  flow_expression e = flow_expression_of(update->context);
  flow_tensor *flat = flow_express(&e, FLOW_OP_slice, u->gradient, NULL, NULL, &part);
  return flow_expression_take(&e, flow_express_reshape_like(&e, flat, variable), out);
}

/* Takes the update over, also when it fails. elsewhere: the caller sees to averages and constraints. */
static flow_status end(flow_update *update, int elsewhere)
{
  FLOW_DEFAULT_FLOATS;
  flow_status status = FLOW_OK;
  for (int i = 0; i < update->count && !elsewhere && status == FLOW_OK; i++)
    if (update->optimizer->average_kind >= 0 || flow_update_is_constrained(update, &update->list[i]))
      status = follow(update, &update->list[i]);
  if (status == FLOW_OK) status = finish(update);
  flow_update_release(update);
  return status;
}

/* An update that the caller has made: it wrote weights and slots. Both take the update over. elsewhere: averages and constraints are
 * left to the caller, too. */
flow_status flow_update_end(flow_update *update)
{
  FLOW_NEED(update);
  return end(update, 0);
}

flow_status flow_update_end_elsewhere(flow_update *update)
{
  FLOW_NEED(update);
  return end(update, 1);
}

/* ---- all at once ------------------------------------------------------------------------------------------------------------ */

/* variables[i] gets gradients[i]; a NULL among the gradients leaves its variable unchanged. Both are borrowed. */
flow_status flow_optimizer_apply(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
                                 flow_variable *const *variables, int count)
{
  return flow_optimizer_apply_at(context, optimizer, NULL, gradients, variables, count);
}

flow_status flow_optimizer_apply_at(flow_context *context, flow_optimizer *optimizer, flow_tensor *rate, flow_tensor *const *gradients,
                                    flow_variable *const *variables, int count)
{
  return flow_optimizer_apply_scaled(context, optimizer, NULL, rate, gradients, variables, count);
}

/* Either the optimizer's one op, or its formula. In a trace these are effects of the commit tail; eagerly they happen at once. */
flow_status flow_optimizer_apply_scaled(flow_context *context, flow_optimizer *optimizer, flow_loss_scale *scale, flow_tensor *rate,
                                        flow_tensor *const *gradients, flow_variable *const *variables, int count)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context, optimizer);
  if (count > 0) FLOW_NEED(gradients, variables);
  pending *all;
  if (!optimizer->layout && !optimizer->class->formula)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: its updates are made by the program that defines it (flow_update_begin)",
                     optimizer->class->name);
  FLOW_TRY(flow_update_begin(context, optimizer, scale, rate, gradients, variables, count, &all));
  flow_status status = optimizer->layout ? apply_ops(all) : apply_formulas(all);
  flow_update_release(all);
  return status;
}
