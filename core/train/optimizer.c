/* optimizer.c: what all optimizers share: arenas, slots, the update. See optimizer.h. */
#include "train/optimizer.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "base/float_state.h"
#include "tensor/place.h"
#include "train/loss_scale.h"

typedef flow_arena arena;
typedef flow_run run;

/* An update that only needs to be done. */
typedef struct update {
  int          run;
  flow_tensor *gradient;      /* flat; a reference */
} update;

/* ---- records ------------------------------------------------------------------------------------------------------------ */

int flow_optimizer_class_find(const char *name)
{
  for (int i = 0; name && flow_optimizer_classes[i].name; i++)
    if (!strcasecmp(flow_optimizer_classes[i].name, name)) return i;
  return -1;
}

static const flow_argument *parameter(int index, int argument) { return &flow_optimizer_classes[index].parameters[argument]; }

const char *flow_optimizer_class_name(int index)                        { return flow_optimizer_classes[index].name; }
const char *flow_optimizer_class_argument(int index, int argument)      { return parameter(index, argument)->name; }
const char *flow_optimizer_class_argument_default(int index, int argument) { return parameter(index, argument)->initial; }

int flow_optimizer_class_argument_count(int index)
{
  return flow_argument_count(flow_optimizer_classes[index].parameters);
}

const char *flow_optimizer_class_argument_type(int index, int argument)
{
  return flow_argument_type_name(parameter(index, argument)->type);
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

flow_status flow_optimizer_scalar(int dtype, double value, const char *optimizer, const char *suffix, flow_variable **out)
{
  char name[160];
  flow_tensor *tensor;
  snprintf(name, sizeof name, "%s/%s", optimizer, suffix);
  FLOW_TRY(flow_tensor_scalar(dtype, value, &tensor));
  flow_status status = flow_variable_new(tensor, name, 0, FLOW_MIRRORED, out);
  flow_tensor_release(tensor);
  return status;
}

static flow_status check_arguments(const flow_optimizer *optimizer)
{
  static const char *const unsupported[] = { "ema_overwrite_frequency", "gradient_accumulation_steps" };
  static const char *const clips[] = { "clipnorm", "clipvalue", "global_clipnorm" };
  static const char *const not_negative[] = { "learning_rate", "weight_decay", "clipnorm", "clipvalue", "global_clipnorm" };
  const char *class = optimizer->class->name, *clip = NULL;
  const flow_arguments *arguments = optimizer->arguments;
  for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++)
    if (!flow_argument_is_null(arguments, unsupported[i]))
      return flow_fail(FLOW_UNSUPPORTED, "%s: option \"%s\" is not supported yet; leave it out", class, unsupported[i]);
  if (flow_argument_boolean(arguments, "use_ema"))
    return flow_fail(FLOW_UNSUPPORTED, "%s: option \"use_ema\" is not supported yet; leave it out", class);
  for (size_t i = 0; i < sizeof not_negative / sizeof not_negative[0]; i++) {
    double number = flow_argument_number(arguments, not_negative[i]);
    if (!(number >= 0) || !isfinite(number))
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s is %g, expected a number of at least 0", class, not_negative[i], number);
  }
  double scale = flow_argument_number(arguments, "loss_scale_factor");
  if (!flow_argument_is_null(arguments, "loss_scale_factor") && !(scale > 0 && isfinite(scale)))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: loss_scale_factor is %g, expected a number above 0", class, scale);
  for (size_t i = 0; i < sizeof clips / sizeof clips[0]; i++) {
    if (flow_argument_is_null(arguments, clips[i])) continue;
    if (clip) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s and %s are given, expected one of them", class, clip, clips[i]);
    clip = clips[i];
  }
  return FLOW_OK;
}

/* The attributes of every op of this optimizer: options that a class does not have are 0. */
static flow_attributes attributes_of(const flow_arguments *arguments)
{
  flow_attributes a;
  memset(&a, 0, sizeof a);
  a.optimizer.momentum = flow_argument_number(arguments, "momentum");
  a.optimizer.nesterov = flow_argument_boolean(arguments, "nesterov");
  a.optimizer.beta_1 = flow_argument_number(arguments, "beta_1");
  a.optimizer.beta_2 = flow_argument_number(arguments, "beta_2");
  a.optimizer.rho = flow_argument_number(arguments, "rho");
  a.optimizer.epsilon = flow_argument_number(arguments, "epsilon");
  a.optimizer.amsgrad = flow_argument_boolean(arguments, "amsgrad");
  a.optimizer.centered = flow_argument_boolean(arguments, "centered");
  a.optimizer.weight_decay = flow_argument_number(arguments, "weight_decay");
  return a;
}

flow_status flow_optimizer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_optimizer **out)
{
  int index = flow_optimizer_class_find(class_name);
  void *block;
  if (index < 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no optimizer \"%s\"; there are SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta "
                     "and Adamax", class_name ? class_name : "nil");
  FLOW_TRY(flow_alloc_zero(sizeof(flow_optimizer), &block));
  flow_optimizer *optimizer = block;
  flow_status status;
  optimizer->class = &flow_optimizer_classes[index];
  optimizer->name = flow_duplicate_text(name ? name : optimizer->class->default_name);
  status = optimizer->name ? FLOW_OK : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK)
    status = flow_arguments_complete(optimizer->class->name, optimizer->class->parameters, arguments, &optimizer->arguments);
  if (status == FLOW_OK) status = check_arguments(optimizer);
  if (status == FLOW_OK)
    status = flow_optimizer_scalar(FLOW_FLOAT32, flow_argument_number(optimizer->arguments, "learning_rate"), optimizer->name,
                                   "learning_rate", &optimizer->learning_rate);
  if (status == FLOW_OK) status = flow_optimizer_scalar(FLOW_INT64, 0, optimizer->name, "iteration", &optimizer->iterations);
  if (status != FLOW_OK) {
    flow_optimizer_release(optimizer);
    return status;
  }
  optimizer->layout = flow_optimizer_layout_of(optimizer->class->op);
  optimizer->attributes = attributes_of(optimizer->arguments);
  optimizer->slot_kinds = optimizer->layout->names(&optimizer->attributes, optimizer->slot_names);
  *out = optimizer;
  return FLOW_OK;
}

void flow_optimizer_release(flow_optimizer *optimizer)
{
  if (!optimizer) return;
  for (int i = 0; i < optimizer->run_count; i++) flow_run_release(&optimizer->runs[i]);
  for (int i = 0; i < optimizer->slot_count; i++) flow_variable_release(optimizer->slot_variables[i]);
  for (int i = 0; i < optimizer->arena_count; i++) flow_arena_release(optimizer->arenas[i]);
  for (int i = 0; i < optimizer->exclusion_count; i++) {
    flow_variable_release(optimizer->exclusions[i].variable);
    flow_free(optimizer->exclusions[i].name);
  }
  flow_schedule_release(optimizer->schedule);
  flow_variable_release(optimizer->learning_rate);
  flow_variable_release(optimizer->iterations);
  flow_arguments_release(optimizer->arguments);
  flow_free(optimizer->exclusions);
  flow_free(optimizer->slot_variables);
  flow_free(optimizer->arenas);
  flow_free(optimizer->runs);
  flow_free(optimizer->name);
  flow_free(optimizer);
}

const char    *flow_optimizer_name(const flow_optimizer *optimizer)              { return optimizer->name; }
int            flow_optimizer_class_index(const flow_optimizer *optimizer) { return (int)(optimizer->class - flow_optimizer_classes); }
flow_variable *flow_optimizer_learning_rate(flow_optimizer *optimizer)           { return optimizer->learning_rate; }
flow_variable *flow_optimizer_iterations(flow_optimizer *optimizer)              { return optimizer->iterations; }
int            flow_optimizer_slot_count(const flow_optimizer *optimizer)        { return optimizer->slot_count; }
flow_variable *flow_optimizer_slot(const flow_optimizer *optimizer, int index)
{
  return index >= 0 && index < optimizer->slot_count ? optimizer->slot_variables[index] : NULL;
}

/* ---- settings before the first update ------------------------------------------------------------------------------------------ */

static flow_status check_unused(const flow_optimizer *optimizer, const char *what)
{
  if (optimizer->arena_count == 0) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s comes after the optimizer's slots were made, expected before the first update",
                   optimizer->class->name, what);
}

flow_status flow_optimizer_set_schedule(flow_optimizer *optimizer, flow_schedule *schedule)
{
  FLOW_TRY(check_unused(optimizer, "a schedule"));
  flow_schedule_retain(schedule);
  flow_schedule_release(optimizer->schedule);
  flow_variable_release(optimizer->learning_rate);
  optimizer->learning_rate = NULL;
  optimizer->schedule = schedule;
  return FLOW_OK;
}

flow_schedule *flow_optimizer_schedule(const flow_optimizer *optimizer) { return optimizer->schedule; }

flow_status flow_optimizer_exclude_from_weight_decay(flow_optimizer *optimizer, flow_variable *variable, const char *name)
{
  flow_exclusion e = { .variable = NULL };
  FLOW_TRY(check_unused(optimizer, "exclude_from_weight_decay"));
  if (variable) FLOW_TRY(flow_check_variable(optimizer->class->name, variable));
  FLOW_TRY(flow_grow(&optimizer->exclusions, sizeof e, optimizer->exclusion_count + 1, &optimizer->exclusion_capacity));
  if (name && !(e.name = flow_duplicate_text(name))) return FLOW_OUT_OF_MEMORY;
  e.variable = variable ? flow_variable_retain(variable) : NULL;
  optimizer->exclusions[optimizer->exclusion_count++] = e;
  return FLOW_OK;
}

/* ---- updates --------------------------------------------------------------------------------------------------------------- */

/* The rate of the update that comes next: the caller's, the schedule's or the variable's; a new reference. */
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

/* Does an update: the optimizer's op, and new versions of what it writes. Eagerly this takes no memory, so it cannot fail. guard: where it
 * is 0 nothing is written; NULL: there is none. */
static flow_status do_update(flow_context *context, flow_optimizer *optimizer, flow_tensor *rate, flow_tensor *guard, const update *u)
{
  const run *r = &optimizer->runs[u->run];
  const flow_optimizer_layout *layout = optimizer->layout;
  flow_tensor *inputs[FLOW_MAX_OPERANDS] = { NULL };
  flow_attributes attributes = optimizer->attributes;
  if (!r->home->decays[r->first]) attributes.optimizer.weight_decay = 0;
  int count = flow_optimizer_inputs(layout, &attributes);
  inputs[0] = flow_tensor_retain(u->gradient);
  inputs[layout->rate] = flow_tensor_retain(rate);
  if (guard) inputs[count++] = flow_tensor_retain(guard);
  flow_status status = flow_variable_handle(context, r->parameters, &inputs[1]);
  for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++)
    status = flow_variable_handle(context, r->slots[s], &inputs[layout->slots[s]]);
  if (layout->iterations >= 0 && status == FLOW_OK)
    status = flow_variable_handle(context, optimizer->iterations, &inputs[layout->iterations]);
  if (status == FLOW_OK) status = flow_apply(context, layout->op, inputs, count, &attributes, NULL);
  for (int i = r->first; i < r->first + r->count && status == FLOW_OK; i++) {
    status = flow_variable_updated(context, r->home->variables[i]);
    for (int s = 0; s < optimizer->slot_kinds && status == FLOW_OK; s++)
      status = flow_variable_updated(context, optimizer->slot_variables[flow_optimizer_slot_index(optimizer, r->home, i, s)]);
  }
  for (int i = 0; i < FLOW_MAX_OPERANDS; i++) flow_tensor_release(inputs[i]);
  return status;
}

static flow_status check_gradient(const flow_optimizer *optimizer, const flow_tensor *gradient, const flow_variable *variable)
{
  FLOW_TRY(flow_check_tensor("a gradient of an optimizer", gradient));
  const flow_tensor *t = variable->tensor;
  if (!flow_shape_equal(gradient->rank, gradient->shape, t->rank, t->shape) || gradient->dtype != FLOW_FLOAT32)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the gradient for \"%s\" is %s %s, expected float32 %s", optimizer->class->name,
                     variable->name, flow_dtype_name(gradient->dtype), flow_shape_text(gradient->rank, gradient->shape),
                     flow_shape_text(t->rank, t->shape));
  return FLOW_OK;
}

/* Whether variable `next` of the arena lies right after `next - 1` in memory and is treated alike. */
static int follows(const arena *home, int next)
{
  const flow_tensor *before = home->variables[next - 1]->tensor, *after = home->variables[next]->tensor;
  size_t bytes = sizeof(float) * (size_t)(home->offsets[next] - home->offsets[next - 1]);
  return before->storage == after->storage && before->data + bytes == after->data && home->decays[next - 1] == home->decays[next];
}

/* Packs the gradients of every maximal run that has some. by_home[i]: the gradient for variable i of the arena, or NULL. */
static flow_status prepare_arena(flow_context *context, flow_optimizer *optimizer, const arena *home, flow_tensor *const *by_home,
                                 update *updates, int *count)
{
  for (int first = 0, end; first < home->count; first = end) {
    end = first + 1;
    if (!by_home[first]) continue;
    while (end < home->count && by_home[end] && follows(home, end)) end++;
    update *u = &updates[*count];
    FLOW_TRY(flow_optimizer_run(optimizer, home, first, end - first, &u->run));
    FLOW_TRY(flow_optimizer_pack(context, optimizer, by_home + first, end - first, &u->gradient));
    ++*count;
  }
  return FLOW_OK;
}

static flow_status prepare(flow_context *context, flow_optimizer *optimizer, flow_tensor *const *gradients,
                           flow_variable *const *variables, int count, update *updates, int *update_count)
{
  for (int a = 0; a < optimizer->arena_count; a++) {
    const arena *home = optimizer->arenas[a];
    void *block;
    int any = 0, index = 0;
    FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)(home->count + 1), &block));
    flow_tensor **by_home = block;
    flow_status status = FLOW_OK;
    for (int i = 0; i < count && status == FLOW_OK; i++)
      if (gradients[i] && flow_optimizer_home(optimizer, variables[i], &index) == a) {
        if (by_home[index])
          status = flow_fail(FLOW_INVALID_ARGUMENT, "%s: variable \"%s\" stands twice in the list", optimizer->class->name,
                             variables[i]->name);
        by_home[index] = gradients[i];
        any = 1;
      }
    if (any && status == FLOW_OK) status = prepare_arena(context, optimizer, home, by_home, updates, update_count);
    flow_free(block);
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* What gradients are divided by first: the loss scale, or else loss_scale_factor; NULL: neither. New reference. */
static flow_status loss_divisor(flow_context *context, const flow_optimizer *optimizer, flow_loss_scale *scale, flow_tensor **out)
{
  *out = NULL;
  if (scale) return flow_variable_read(context, scale->variables[FLOW_SCALE_DYNAMIC], out);
  if (flow_argument_is_null(optimizer->arguments, "loss_scale_factor")) return FLOW_OK;
  return flow_tensor_scalar(FLOW_FLOAT32, flow_argument_number(optimizer->arguments, "loss_scale_factor"), out);
}

/* Everything that can fail comes first: an eager call updates all variables or none. */
static flow_status apply(flow_context *context, flow_optimizer *optimizer, flow_loss_scale *scale, flow_tensor *given_rate,
                         flow_tensor *const *gradients, flow_variable *const *variables, int count)
{
  flow_tensor *one = NULL, *rate = NULL, *divisor = NULL;
  flow_scale_step step = { .guard = NULL };
  void *block;
  int update_count = 0;
  FLOW_TRY(flow_alloc_zero((sizeof(update) + sizeof(flow_tensor *)) * (size_t)(count + 1), &block));
  update *updates = block;
  flow_tensor **clipped = (flow_tensor **)(updates + count + 1);
  flow_status status = flow_tensor_scalar(FLOW_INT64, 1, &one);
  if (status == FLOW_OK) status = next_rate(context, optimizer, given_rate, &rate);
  if (status == FLOW_OK) status = loss_divisor(context, optimizer, scale, &divisor);
  if (status == FLOW_OK) status = flow_optimizer_clip_each(context, optimizer, divisor, gradients, count, clipped);
  if (status == FLOW_OK) status = prepare(context, optimizer, clipped, variables, count, updates, &update_count);
  if (status == FLOW_OK && scale)
    status = flow_scale_step_make(context, scale, &updates[0].gradient, update_count, sizeof(update), &step);
  if (status == FLOW_OK) status = flow_optimizer_clip_together(context, optimizer, &updates[0].gradient, update_count, sizeof(update));
  for (int i = 0; i < update_count && status == FLOW_OK; i++) status = do_update(context, optimizer, rate, step.guard, &updates[i]);
  if (status == FLOW_OK) status = flow_variable_assign_add(context, optimizer->iterations, scale ? step.advance : one);
  if (status == FLOW_OK && scale) status = flow_scale_step_finish(context, scale, &step);
  for (int i = 0; i < update_count; i++) flow_tensor_release(updates[i].gradient);
  for (int i = 0; i < count; i++) flow_tensor_release(clipped[i]);
  flow_scale_step_release(&step);
  flow_tensor_release(divisor);
  flow_tensor_release(rate);
  flow_tensor_release(one);
  flow_free(block);
  return status;
}

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

flow_status flow_optimizer_apply_scaled(flow_context *context, flow_optimizer *optimizer, flow_loss_scale *scale, flow_tensor *rate,
                                        flow_tensor *const *gradients, flow_variable *const *variables, int count)
{
  FLOW_DEFAULT_FLOATS;
  int present = 0;
  if (rate) FLOW_TRY(flow_check_tensor("the rate of an optimizer", rate));
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_variable(optimizer->class->name, variables[i]));
    if (!gradients[i]) continue;
    FLOW_TRY(check_gradient(optimizer, gradients[i], variables[i]));
    present++;
  }
  if (!present)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: no gradients for any of the %d variables; was the loss computed inside tape:record?",
                     optimizer->class->name, count);
  FLOW_TRY(flow_optimizer_build(optimizer, variables, count));
  if (scale) FLOW_TRY(flow_loss_scale_move(scale, flow_tensor_place(optimizer->iterations->tensor)));
  return apply(context, optimizer, scale, rate, gradients, variables, count);
}
