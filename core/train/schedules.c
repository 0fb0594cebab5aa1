/* schedules.c: the records of schedules and what they share. See schedules.h.
 *
 * A schedule does not change: its numbers are checked when it is made and laid out in one float64 tensor, which the op `schedule` and
 * flow_schedule_value read by the same formula (schedule_formulas.h). So the rate of a step is the same number on the host, in a plan
 * and on a device. References are counted without locks: schedules belong to one thread at a time, as optimizers do. */
#include "train/schedules.h"
#include "autodiff/apply.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/float_state.h"
#include "layers/config.h"
#include "ops/op.h"
#include "schedule_formulas.h"

/* ---- records -------------------------------------------------------------------------------------------------------------- */

/* The name, which is last in every record but CosineDecay's. The parameters of all records are in the order of Keras' constructors,
 * without a default where Keras has none. */
#define NAME(initial) { "name", FLOW_TEXT, initial, NULL }, FLOW_ARGUMENTS_END

static const flow_argument exponential_parameters[] = {
  { "initial_learning_rate", FLOW_NUMBER, NULL, NULL }, { "decay_steps", FLOW_NUMBER, NULL, NULL },
  { "decay_rate", FLOW_NUMBER, NULL, NULL }, { "staircase", FLOW_BOOLEAN, "false", NULL }, NAME("ExponentialDecay")
};
static const flow_argument inverse_time_parameters[] = {
  { "initial_learning_rate", FLOW_NUMBER, NULL, NULL }, { "decay_steps", FLOW_NUMBER, NULL, NULL },
  { "decay_rate", FLOW_NUMBER, NULL, NULL }, { "staircase", FLOW_BOOLEAN, "false", NULL }, NAME("InverseTimeDecay")
};
static const flow_argument piecewise_parameters[] = {
  { "boundaries", FLOW_NUMBERS, NULL, NULL }, { "values", FLOW_NUMBERS, NULL, NULL }, NAME("PiecewiseConstant")
};
static const flow_argument polynomial_parameters[] = {
  { "initial_learning_rate", FLOW_NUMBER, NULL, NULL }, { "decay_steps", FLOW_NUMBER, NULL, NULL },
  { "end_learning_rate", FLOW_NUMBER, "0.0001", NULL }, { "power", FLOW_NUMBER, "1", NULL }, { "cycle", FLOW_BOOLEAN, "false", NULL },
  NAME("PolynomialDecay")
};
static const flow_argument cosine_parameters[] = {
  { "initial_learning_rate", FLOW_NUMBER, NULL, NULL }, { "decay_steps", FLOW_NUMBER, NULL, NULL }, { "alpha", FLOW_NUMBER, "0", NULL },
  { "name", FLOW_TEXT, "CosineDecay", NULL }, { "warmup_target", FLOW_NUMBER, "null", NULL }, { "warmup_steps", FLOW_NUMBER, "0", NULL },
  FLOW_ARGUMENTS_END
};
static const flow_argument restarts_parameters[] = {
  { "initial_learning_rate", FLOW_NUMBER, NULL, NULL }, { "first_decay_steps", FLOW_NUMBER, NULL, NULL },
  { "t_mul", FLOW_NUMBER, "2", NULL }, { "m_mul", FLOW_NUMBER, "1", NULL }, { "alpha", FLOW_NUMBER, "0", NULL }, NAME("SGDRDecay")
};

/* As Keras checks it: one value before, between and after the boundaries, which ascend. */
static flow_status check_piecewise(const char *name, const flow_arguments *arguments)
{
  const double *boundaries, *values;
  int count = flow_argument_list(arguments, "boundaries", &boundaries), value_count = flow_argument_list(arguments, "values", &values);
  if (value_count != count + 1)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %d boundaries and %d values, expected one more value than boundaries", name, count,
                     value_count);
  for (int i = 1; i < count; i++)
    if (!(boundaries[i - 1] <= boundaries[i]))
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: boundary %d, %g, is less than the one before it, %g", name, i + 1, boundaries[i],
                       boundaries[i - 1]);
  return FLOW_OK;
}

/* Periods that become shorter would end: their sum is finite. */
static flow_status check_restarts(const char *name, const flow_arguments *arguments)
{
  double longer = flow_argument_number(arguments, "t_mul");
  if (longer >= 1) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: t_mul is %g, expected at least 1", name, longer);
}

/* A record's number is the kind that the op's attributes have. FLOW_SCHEDULES (schedule_formulas.h), by which kernels know it, has the
 * same order. */
static const flow_schedule_record classes[] = {
  { "ExponentialDecay", exponential_parameters, exponential_decay, NULL },
  { "CosineDecay", cosine_parameters, cosine_decay, NULL },
  { "PiecewiseConstantDecay", piecewise_parameters, piecewise_constant_decay, check_piecewise },
  { "PolynomialDecay", polynomial_parameters, polynomial_decay, NULL },
  { "InverseTimeDecay", inverse_time_parameters, inverse_time_decay, NULL },
  { "CosineDecayRestarts", restarts_parameters, cosine_decay_restarts, check_restarts },
};
enum { CLASS_COUNT = sizeof classes / sizeof classes[0] };

int flow_schedule_class_count(void) { return CLASS_COUNT; }

/* Keras has the names in one spelling; what is written in other cases is found, too. */
int flow_schedule_class_find(const char *name)
{
  for (int i = 0; name && i < CLASS_COUNT; i++)
    if (strcasecmp(classes[i].name, name) == 0) return i;
  return -1;
}

/* NULL for a number that no record has, which ends a caller's loop over all of them. */
static const flow_schedule_record *class_at(int index) { return index >= 0 && index < CLASS_COUNT ? &classes[index] : NULL; }

const char *flow_schedule_class_name(int index) { return class_at(index) ? classes[index].name : NULL; }
/* 0 for a number that no record has. */
int flow_schedule_class_argument_count(int index) { return class_at(index) ? flow_argument_count(classes[index].parameters) : 0; }

const char *flow_schedule_class_argument(int index, int argument)
{
  return argument >= 0 && argument < flow_schedule_class_argument_count(index) ? classes[index].parameters[argument].name : NULL;
}

/* ---- life ----------------------------------------------------------------------------------------------------------------- */

/* The arguments as a formula reads them, written to `numbers` unless it is NULL; returns how many. The form that schedule_formulas.h
 * reads, on every device. */
static int list_numbers(const flow_schedule *schedule, double *numbers)
{
  const flow_arguments *arguments = schedule->arguments;
  int count = 0;
  for (const flow_argument *p = schedule->class->parameters; p->name; p++) {
    if (strcmp(p->name, "name") == 0) continue;
    const double *list;
    int length = p->type == FLOW_NUMBERS ? flow_argument_list(arguments, p->name, &list) : -1;
    if (numbers)
      numbers[count] = length >= 0 ? length : flow_argument_is_null(arguments, p->name) ? NAN : flow_argument_number(arguments, p->name);
    count++;
    for (int i = 0; i < length; i++, count++)
      if (numbers) numbers[count] = list[i];
  }
  return count;
}

/* What every schedule needs; its own check comes after. */
static flow_status check_numbers(const flow_schedule *schedule)
{
  const char *class = schedule->class->name;
  for (const flow_argument *p = schedule->class->parameters; p->name; p++) {
    double number = p->type == FLOW_NUMBER ? flow_argument_number(schedule->arguments, p->name) : 0;
    if (!isfinite(number)) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s is %g, expected a finite number", class, p->name, number);
    if (strstr(p->name, "decay_steps") && !(number > 0))
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s is %g, expected a number above 0", class, p->name, number);
  }
  return schedule->class->check ? schedule->class->check(class, schedule->arguments) : FLOW_OK;
}

/* The parameters become one float64 tensor, which the op of the schedule takes: a plan then serves any values of them. */
flow_status flow_schedule_new(const char *class_name, const flow_arguments *arguments, flow_schedule **out)
{
  int index = flow_schedule_class_find(class_name);
  void *block;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_schedule_new: out is NULL");
  if (index < 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no schedule \"%s\"; there are ExponentialDecay, CosineDecay, PiecewiseConstantDecay, "
                     "PolynomialDecay, InverseTimeDecay and CosineDecayRestarts", class_name ? class_name : "nil");
  FLOW_TRY(flow_alloc_zero(sizeof(flow_schedule), &block));
  flow_schedule *schedule = block;
  schedule->references = 1;
  schedule->class = &classes[index];
  flow_status status = flow_arguments_complete(schedule->class->name, schedule->class->parameters, arguments, &schedule->arguments);
  if (status == FLOW_OK) status = check_numbers(schedule);
  if (status == FLOW_OK) {
    int64_t count = list_numbers(schedule, NULL);
    status = flow_tensor_new(FLOW_FLOAT64, 1, &count, &schedule->parameters);
  }
  if (status != FLOW_OK) {
    flow_schedule_release(schedule);
    return status;
  }
  list_numbers(schedule, (double *)(void *)schedule->parameters->data);
  *out = schedule;
  return FLOW_OK;
}

/* NULL is fine, as for release. */
flow_schedule *flow_schedule_retain(flow_schedule *schedule)
{
  if (schedule) schedule->references++;
  return schedule;
}

/* NULL is allowed. Optimizers share a schedule, each by a reference. */
void flow_schedule_release(flow_schedule *schedule)
{
  if (!schedule || --schedule->references > 0) return;
  flow_tensor_release(schedule->parameters);
  flow_arguments_release(schedule->arguments);
  flow_free(schedule);
}

const char *flow_schedule_class(const flow_schedule *schedule) { return schedule ? schedule->class->name : NULL; }

/* volatile: the rate is rounded to float32, as the op does it, whatever the compiler keeps in wider registers. */
double flow_schedule_value(const flow_schedule *schedule, double step)
{
  FLOW_DEFAULT_FLOATS;
  if (!schedule) return 0;
  const flow_tensor *parameters = schedule->parameters;
  volatile float rate = (float)schedule->class->formula((const double *)(const void *)parameters->data, parameters->shape[0], step);
  return rate;
}

/* The kind is the record's number in `classes`, by which kernels choose the formula. */
flow_status flow_schedule_apply(flow_context *context, const flow_schedule *schedule, flow_tensor *step, flow_tensor **out)
{
  flow_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.schedule.kind = (int32_t)(schedule->class - classes);
  return flow_apply1(context, FLOW_OP_schedule, step, schedule->parameters, NULL, &attributes, out);
}

/* All arguments, also those that have their defaults, as Keras writes them. */
flow_json *flow_schedule_config_json(const flow_schedule *schedule)
{
  flow_json *config = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  if (config) flow_config_add_arguments(config, schedule->class->parameters, schedule->arguments);
  return flow_config_object("keras.optimizers.schedules", schedule->class->name, config);
}

int flow_schedule_config(const flow_schedule *schedule, char *text, int size)
{
  return schedule ? flow_config_write(flow_schedule_config_json(schedule), text, size) : flow_config_none(text, size);
}
