/* optimizer.c: records of optimizers, and the life of one. See optimizer.h.
 *
 * An optimizer is made with its arguments, a variable for the rate and one that counts updates. Schedules and exclusions may be set
 * until variables are adopted (optimizer_arenas.c), which makes the slots; update.c then makes updates of them. One thread at a time
 * uses an optimizer; what it hands out, variables above all, may outlive it by references. */
#include "train/optimizer.h"
#include "base/need.h"
#include "train/optimizers/parameters.h"
#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- records ------------------------------------------------------------------------------------------------------------ */

#define FLOW_OPTIMIZER(name) extern const flow_optimizer_class flow_optimizer_##name;
#include "optimizers.def"
#undef FLOW_OPTIMIZER

/* Made by CMakeLists.txt from the files of core/train/optimizers. */
static const flow_optimizer_class *const classes[] = {
#define FLOW_OPTIMIZER(name) &flow_optimizer_##name,
#include "optimizers.def"
#undef FLOW_OPTIMIZER
};
enum { CLASS_COUNT = sizeof classes / sizeof classes[0], NO_OP = -1 };

/* Without regard to case, as Keras' optimizers.get. */
int flow_optimizer_class_find(const char *name)
{
  for (int i = 0; name && i < CLASS_COUNT; i++)
    if (!strcasecmp(classes[i]->name, name)) return i;
  return -1;
}

/* What every optimizer has, for those that a script writes: flow_optimizer_new_custom. */
static const flow_argument custom_parameters[] = { RATE("0.001"), DECAY("null"), COMMON_PARAMETERS };
static const flow_optimizer_class custom_class = { .name = "Optimizer", .default_name = "optimizer", .parameters = custom_parameters,
                                                   .op = NO_OP };

/* index -1: what every optimizer has; NULL beyond the classes. */
static const flow_argument *parameters_of(int index)
{
  return index < 0 ? custom_parameters : index < CLASS_COUNT ? classes[index]->parameters : NULL;
}

/* NULL beyond the last class: callers count so. */
const char *flow_optimizer_class_name(int index)
{
  return index >= 0 && index < CLASS_COUNT ? classes[index]->name : NULL;
}

/* index -1: of what all optimizers have. */
int flow_optimizer_class_argument_count(int index)
{
  const flow_argument *parameters = parameters_of(index);
  return parameters ? flow_argument_count(parameters) : 0;
}

/* NULL where the class or the argument is not there: both numbers may be a caller's. */
static const flow_argument *parameter(int index, int argument)
{
  return argument >= 0 && argument < flow_optimizer_class_argument_count(index) ? &parameters_of(index)[argument] : NULL;
}

const char *flow_optimizer_class_argument(int index, int argument)
{
  const flow_argument *found = parameter(index, argument);
  return found ? found->name : NULL;
}

/* As text, "null" for None; NULL: the argument must be given, or is not there. */
const char *flow_optimizer_class_argument_default(int index, int argument)
{
  const flow_argument *found = parameter(index, argument);
  return found ? found->initial : NULL;
}

/* The name of a flow_argument_type, by which bindings check what they are given. */
const char *flow_optimizer_class_argument_type(int index, int argument)
{
  const flow_argument *found = parameter(index, argument);
  return found ? flow_argument_type_name(found->type) : NULL;
}

/* A list that is too long is cut at its end. */
static flow_status fail_unknown(const char *name)
{
  char known[256];
  flow_text text = flow_text_into(known, sizeof known);
  for (int i = 0; i < CLASS_COUNT; i++) flow_text_add(&text, "%s%s", i ? ", " : "", classes[i]->name);
  return flow_fail(FLOW_INVALID_ARGUMENT, "there is no optimizer \"%s\"; there are %s", name ? name : "nil", known);
}

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

/* A variable that is not trained and is the same on all replicas. Named optimizer/suffix, as Keras names it in files. *out: a new
 * reference. */
flow_status flow_optimizer_scalar(int dtype, double value, const char *optimizer, const char *suffix, flow_variable **out)
{
  flow_tensor *tensor;
  FLOW_TRY(flow_tensor_scalar(dtype, value, &tensor));
  flow_status status = flow_variable_named(tensor, 0, FLOW_MIRRORED, out, "%s/%s", optimizer, suffix);
  flow_tensor_release(tensor);
  return status;
}

/* An option that a class does not have reads as 0 and passes. Messages name the class, the option and what is expected. Before any
 * variable is made. */
static flow_status check_arguments(const flow_optimizer *optimizer)
{
  static const char *const clips[] = { "clipnorm", "clipvalue", "global_clipnorm" };
  static const char *const not_negative[] = { "learning_rate", "weight_decay", "clipnorm", "clipvalue", "global_clipnorm",
    "initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength", "l2_shrinkage_regularization_strength" };
  const char *class = optimizer->class->name, *clip = NULL;
  const flow_arguments *arguments = optimizer->arguments;
  int64_t steps = flow_argument_integer(arguments, "gradient_accumulation_steps");
  if (!flow_argument_is_null(arguments, "gradient_accumulation_steps") && (steps < 0 || steps == 1))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: gradient_accumulation_steps is %lld, expected a whole number from 2", class,
                     (long long)steps);
  double share = flow_argument_number(arguments, "ema_momentum");
  if (!(share >= 0 && share <= 1))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: ema_momentum is %g, expected a number from 0 to 1", class, share);
  if (!flow_argument_is_null(arguments, "ema_overwrite_frequency") && flow_argument_integer(arguments, "ema_overwrite_frequency") < 1)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: ema_overwrite_frequency is %lld, expected a whole number from 1", class,
                     (long long)flow_argument_integer(arguments, "ema_overwrite_frequency"));
  for (size_t i = 0; i < sizeof not_negative / sizeof not_negative[0]; i++) {
    double number = flow_argument_number(arguments, not_negative[i]);
    if (!(number >= 0) || !isfinite(number))
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s is %g, expected a number of at least 0", class, not_negative[i], number);
  }
  double power = flow_argument_number(arguments, "learning_rate_power");
  if (!(power <= 0 && isfinite(power)))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: learning_rate_power is %g, expected a number of at most 0", class, power);
  double scale = flow_argument_number(arguments, "loss_scale_factor");
  if (!flow_argument_is_null(arguments, "loss_scale_factor") && !(scale > 0 && isfinite(scale)))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: loss_scale_factor is %g, expected a number above 0", class, scale);
  for (size_t i = 0; i < sizeof clips / sizeof clips[0]; i++) {
    if (flow_argument_is_null(arguments, clips[i])) continue;
    if (clip) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s and %s are given, expected one of them", class, clip, clips[i]);
    clip = clips[i];
  }
  return optimizer->class->check ? optimizer->class->check(arguments) : FLOW_OK;
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

/* Slots as the record, or the layout of the class' op, names them. */
static void name_own_slots(flow_optimizer *optimizer)
{
  const char *const *slots = optimizer->class->formula ? optimizer->class->slots : NULL;
  for (; slots && optimizer->own_kinds < FLOW_MAX_SLOT_KINDS && slots[optimizer->own_kinds]; optimizer->own_kinds++)
    optimizer->slot_names[optimizer->own_kinds] = slots[optimizer->own_kinds];
  if (slots || !(optimizer->layout = flow_optimizer_layout_of(optimizer->class->op))) return;
  optimizer->attributes = attributes_of(optimizer->arguments);
  optimizer->own_kinds = optimizer->layout->names(&optimizer->attributes, optimizer->slot_names);
}

/* Order of kinds: those of the class, then averages (use_ema), then accumulated gradients, as Keras orders its variables. */
static void name_slots(flow_optimizer *optimizer)
{
  name_own_slots(optimizer);
  optimizer->slot_kinds = optimizer->own_kinds;
  optimizer->average_kind = optimizer->accumulator_kind = -1;
  if (flow_argument_boolean(optimizer->arguments, "use_ema")) {
    optimizer->average_kind = optimizer->slot_kinds++;
    optimizer->slot_names[optimizer->average_kind] = "average";
  }
  if (optimizer->accumulation_steps) {
    optimizer->accumulator_kind = optimizer->slot_kinds++;
    optimizer->slot_names[optimizer->accumulator_kind] = "gradient_accumulator";
  }
}

/* A record has at most FLOW_MAX_SCALARS of them. */
static flow_status make_scalars(flow_optimizer *optimizer)
{
  for (const flow_scalar_state *s = optimizer->class->scalars; s && s->name; s++) {
    FLOW_TRY(flow_optimizer_scalar(FLOW_FLOAT32, s->initial, optimizer->name, s->name, &optimizer->scalars[optimizer->scalar_count]));
    optimizer->scalar_count++;
  }
  return FLOW_OK;
}

/* learning_rate is a variable even where it never changes, so that callbacks and files find it; flow_optimizer_set_schedule takes it
 * away. */
static flow_status complete(flow_optimizer *optimizer, const char *name, const flow_arguments *arguments)
{
  const flow_optimizer_class *class = optimizer->class;
  if (!(optimizer->name = flow_duplicate_text(name ? name : class->default_name))) return FLOW_OUT_OF_MEMORY;
  FLOW_TRY(flow_arguments_complete(class->name, class->parameters, arguments, &optimizer->arguments));
  FLOW_TRY(check_arguments(optimizer));
  if (!flow_argument_is_null(optimizer->arguments, "gradient_accumulation_steps"))
    optimizer->accumulation_steps = flow_argument_integer(optimizer->arguments, "gradient_accumulation_steps");
  FLOW_TRY(flow_optimizer_scalar(FLOW_FLOAT32, flow_argument_number(optimizer->arguments, "learning_rate"), optimizer->name,
                                 "learning_rate", &optimizer->learning_rate));
  FLOW_TRY(flow_optimizer_scalar(FLOW_INT64, 0, optimizer->name, "iteration", &optimizer->iterations));
  name_slots(optimizer);
  return make_scalars(optimizer);
}

/* custom_name: of a class without a record, or NULL. A custom class is a copy with its own name, in the optimizer. */
static flow_status make(const flow_optimizer_class *class, const char *custom_name, const char *name, const flow_arguments *arguments,
                        flow_optimizer **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_optimizer), &block));
  flow_optimizer *optimizer = block;
  optimizer->class = class;
  flow_status status = FLOW_OK;
  if (custom_name) {
    optimizer->custom = *class;
    optimizer->class = &optimizer->custom;
    optimizer->custom.name = flow_duplicate_text(custom_name);
    if (!optimizer->custom.name) status = FLOW_OUT_OF_MEMORY;
  }
  if (status == FLOW_OK) status = complete(optimizer, name, arguments);
  if (status == FLOW_OK) *out = optimizer;
  else flow_optimizer_release(optimizer);
  return status;
}

/* Copies name and arguments; name NULL: the class's default. Class names are found in any case of letters. */
flow_status flow_optimizer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_optimizer **out)
{
  int index = flow_optimizer_class_find(class_name);
  return index < 0 ? fail_unknown(class_name) : make(classes[index], NULL, name, arguments, out);
}

/* For optimizers whose update its caller writes: they have what all have in common, their own class name and no slots. */
flow_status flow_optimizer_new_custom(const char *class_name, const char *name, const flow_arguments *arguments, flow_optimizer **out)
{
  FLOW_NEED(class_name, out);
  if (!class_name) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_optimizer_new_custom: class_name is NULL");
  return make(&custom_class, class_name, name, arguments, out);
}

/* Variables whose values are in its arenas hold that memory by their own references. */
void flow_optimizer_release(flow_optimizer *optimizer)
{
  if (!optimizer) return;
  for (int i = 0; i < optimizer->arena_count; i++) flow_arena_release(optimizer->arenas[i]); /* first: their groups know the rest */
  for (int i = 0; i < optimizer->run_count; i++) flow_run_release(&optimizer->runs[i]);
  for (int i = 0; i < optimizer->slot_count; i++) flow_variable_release(optimizer->slot_variables[i]);
  for (int i = 0; i < optimizer->exclusion_count; i++) {
    flow_variable_release(optimizer->exclusions[i].variable);
    flow_free(optimizer->exclusions[i].name);
  }
  for (int i = 0; i < optimizer->scalar_count; i++) flow_variable_release(optimizer->scalars[i]);
  flow_schedule_release(optimizer->schedule);
  flow_variable_release(optimizer->learning_rate);
  flow_variable_release(optimizer->iterations);
  flow_free((char *)(uintptr_t)optimizer->custom.name);
  flow_arguments_release(optimizer->arguments);
  flow_free(optimizer->exclusions);
  flow_free(optimizer->slot_variables);
  flow_free(optimizer->arenas);
  flow_free(optimizer->runs);
  flow_free(optimizer->name);
  flow_free(optimizer);
}

const char *flow_optimizer_name(const flow_optimizer *optimizer)
{
  return optimizer ? optimizer->name : NULL;
}
/* -1 for one without a record. */
int flow_optimizer_class_index(const flow_optimizer *optimizer)
{
  return optimizer ? flow_optimizer_class_find(optimizer->class->name) : -1;
}
/* Borrowed; NULL where a schedule gives the rate. */
flow_variable *flow_optimizer_learning_rate(flow_optimizer *optimizer)
{
  return optimizer ? optimizer->learning_rate : NULL;
}
/* Borrowed: an int64 scalar, which update.c advances with each update. */
flow_variable *flow_optimizer_iterations(flow_optimizer *optimizer)
{
  return optimizer ? optimizer->iterations : NULL;
}

/* 1: every call updates. */
double flow_optimizer_accumulation_steps(const flow_optimizer *optimizer)
{
  if (!optimizer) return 0;
  return optimizer->accumulation_steps ? (double)optimizer->accumulation_steps : 1;
}

/* In the order of adoption; borrowed. */
flow_variable *flow_optimizer_variable(const flow_optimizer *optimizer, int index)
{
  if (!optimizer) return NULL;
  for (int i = 0; i < optimizer->arena_count && index >= 0; index -= optimizer->arenas[i++]->count) {
    if (index < optimizer->arenas[i]->count) return optimizer->arenas[i]->variables[index];
  }
  return NULL;
}

/* How many values are kept for each trained variable; scalars are not among them. */
int flow_optimizer_slot_kinds(const flow_optimizer *optimizer)
{
  return optimizer ? optimizer->slot_kinds : 0;
}

/* Borrowed; NULL: this optimizer does not train the variable, or has no such kind of slot. */
flow_variable *flow_optimizer_slot_of(const flow_optimizer *optimizer, const flow_variable *variable, int kind)
{
  if (!optimizer || !variable) return NULL;
  int index, home = flow_optimizer_home(optimizer, variable, &index);
  if (home < 0 || kind < 0 || kind >= optimizer->slot_kinds) return NULL;
  return optimizer->slot_variables[flow_optimizer_slot_index(optimizer, optimizer->arenas[home], index, kind)];
}

/* The moving average of a variable's values; NULL without use_ema. */
flow_variable *flow_optimizer_average(const flow_optimizer *optimizer, const flow_variable *variable)
{
  if (!optimizer || !variable) return NULL;
  return flow_optimizer_slot_of(optimizer, variable, optimizer->average_kind);
}

/* 0 also for a variable that this optimizer does not train. */
double flow_optimizer_decay_of(const flow_optimizer *optimizer, const flow_variable *variable)
{
  if (!optimizer || !variable) return 0;
  int index, home = flow_optimizer_home(optimizer, variable, &index);
  return home >= 0 && optimizer->arenas[home]->decays[index] ? flow_argument_number(optimizer->arguments, "weight_decay") : 0;
}

/* Scalars count once variables were adopted, as Keras makes them then. */
int flow_optimizer_slot_count(const flow_optimizer *optimizer)
{
  if (!optimizer) return 0;
  return optimizer->slot_count + (optimizer->arena_count > 0 ? optimizer->scalar_count : 0);
}

/* Borrowed: slots in the order of files, variable by variable, then scalars. */
flow_variable *flow_optimizer_slot(const flow_optimizer *optimizer, int index)
{
  if (!optimizer) return NULL;
  if (index < 0 || index >= flow_optimizer_slot_count(optimizer)) return NULL;
  return index < optimizer->slot_count ? optimizer->slot_variables[index] : optimizer->scalars[index - optimizer->slot_count];
}

/* ---- settings before the first update ------------------------------------------------------------------------------------------ */

/* Schedules and exclusions are part of what an arena was made with. */
static flow_status check_unused(const flow_optimizer *optimizer, const char *what)
{
  if (optimizer->arena_count == 0) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s comes after the optimizer's slots were made, expected before the first update",
                   optimizer->class->name, what);
}

/* Takes a reference. The rate then follows from the iterations, and there is no variable of it any more. */
flow_status flow_optimizer_set_schedule(flow_optimizer *optimizer, flow_schedule *schedule)
{
  FLOW_NEED(optimizer);
  FLOW_TRY(check_unused(optimizer, "a schedule"));
  flow_schedule_retain(schedule);
  flow_schedule_release(optimizer->schedule);
  flow_variable_release(optimizer->learning_rate);
  optimizer->learning_rate = NULL;
  optimizer->schedule = schedule;
  return FLOW_OK;
}

/* Borrowed; NULL: a variable holds the rate. */
flow_schedule *flow_optimizer_schedule(const flow_optimizer *optimizer)
{
  return optimizer ? optimizer->schedule : NULL;
}

/* variable or name: one of them, the other is NULL. A name excludes all variables whose names contain it. Both are kept: the variable by
 * a reference, the name as a copy. */
flow_status flow_optimizer_exclude_from_weight_decay(flow_optimizer *optimizer, flow_variable *variable, const char *name)
{
  FLOW_NEED(optimizer);
  flow_exclusion e = { .variable = NULL };
  FLOW_TRY(check_unused(optimizer, "exclude_from_weight_decay"));
  if (variable) FLOW_TRY(flow_check_variable(optimizer->class->name, variable));
  FLOW_TRY(flow_grow(&optimizer->exclusions, sizeof e, optimizer->exclusion_count + 1, &optimizer->exclusion_capacity));
  if (name && !(e.name = flow_duplicate_text(name))) return FLOW_OUT_OF_MEMORY;
  e.variable = variable ? flow_variable_retain(variable) : NULL;
  optimizer->exclusions[optimizer->exclusion_count++] = e;
  return FLOW_OK;
}
