/* constraints.c: MaxNorm, NonNeg, UnitNorm and MinMaxNorm (keras/src/constraints/constraints.py).
 *
 * A constraint is attached to a variable (by the layer that builds it, or by flow_variable_set_constraint) and applied after each update
 * of an optimizer (train/update_constraints.c): its formula of ops gives the weights that are written back. Axes are resolved against
 * the weights' rank when it is made, so that a formula cannot fail because of them. */
#include "layers/constraints.h"

#include <stdio.h>
#include <string.h>

#include "layers/config.h"
#include "tensor/axis.h"

static const double SMALL = 1e-7;      /* keras.config.epsilon() */

#define AXIS { "axis", FLOW_AXES, "0", NULL }
static const flow_argument max_norm_options[] = { { "max_value", FLOW_NUMBER, "2", NULL }, AXIS, FLOW_ARGUMENTS_END };
static const flow_argument non_neg_options[] = { FLOW_ARGUMENTS_END };
static const flow_argument unit_norm_options[] = { AXIS, FLOW_ARGUMENTS_END };
static const flow_argument min_max_norm_options[] = { { "min_value", FLOW_NUMBER, "0", NULL }, { "max_value", FLOW_NUMBER, "1", NULL },
                                                      { "rate", FLOW_NUMBER, "1", NULL }, AXIS, FLOW_ARGUMENTS_END };

/* ---- formulas --------------------------------------------------------------------------------------------------------------- */

/* sqrt(sum of w^2) over the constraint's axes, which stay as axes of size 1. */
static flow_tensor *norms_of(flow_expression *e, const flow_constraint *constraint, flow_tensor *weights)
{
  flow_attributes reduce = { .reduce = { .keepdims = 1, .count = constraint->axis_count } };
  for (int i = 0; i < constraint->axis_count; i++) reduce.reduce.axes[i] = constraint->axes[i];
  return e_sqrt(e, flow_express(e, FLOW_OP_sum, e_square(e, weights), NULL, NULL, &reduce));
}

/* epsilon + |w|: weights of zeros stay zeros. */
static flow_tensor *not_zero(flow_expression *e, flow_tensor *norms)
{
  return norms ? e_add(e, flow_express_number(e, norms, SMALL), norms) : NULL;
}

/* max(min(x, most), least): the least where most is below it, as tf.clip_by_value has it. */
static flow_tensor *between(flow_expression *e, flow_tensor *x, double least, double most)
{
  return x ? e_maximum(e, e_minimum(e, x, flow_express_number(e, x, most)), flow_express_number(e, x, least)) : NULL;
}

/* w min(|w|, max) / (epsilon + |w|), norms along the axes. */
static flow_tensor *max_norm(flow_expression *e, const flow_constraint *constraint, flow_tensor *weights)
{
  flow_tensor *norms = norms_of(e, constraint, weights);
  return e_mul(e, weights, e_div(e, between(e, norms, 0, constraint->max_value), not_zero(e, norms)));
}

/* max(w, 0) */
static flow_tensor *non_neg(flow_expression *e, const flow_constraint *constraint, flow_tensor *weights)
{
  (void)constraint;
  return e_maximum(e, weights, flow_express_number(e, weights, 0));
}

/* w / (epsilon + |w|) */
static flow_tensor *unit_norm(flow_expression *e, const flow_constraint *constraint, flow_tensor *weights)
{
  return e_div(e, weights, not_zero(e, norms_of(e, constraint, weights)));
}

/* w (rate clip(|w|, min, max) + (1 - rate) |w|) / (epsilon + |w|). */
static flow_tensor *min_max_norm(flow_expression *e, const flow_constraint *constraint, flow_tensor *weights)
{
  flow_tensor *norms = norms_of(e, constraint, weights), *near = between(e, norms, constraint->min_value, constraint->max_value);
  if (!near) return NULL;
  flow_tensor *desired = e_add(e, e_mul(e, near, flow_express_number(e, near, constraint->rate)),
                               e_mul(e, norms, flow_express_number(e, norms, 1 - constraint->rate)));
  return e_mul(e, weights, e_div(e, desired, not_zero(e, norms)));
}

static const flow_constraint_record records[] = {
  { "max_norm", "MaxNorm", max_norm_options, max_norm },
  { "min_max_norm", "MinMaxNorm", min_max_norm_options, min_max_norm },
  { "non_neg", "NonNeg", non_neg_options, non_neg },
  { "unit_norm", "UnitNorm", unit_norm_options, unit_norm },
};

int flow_constraint_count(void) { return (int)(sizeof records / sizeof *records); }

/* index: 0 to flow_constraint_count() - 1, not checked. */
const flow_constraint_record *flow_constraint_record_at(int index) { return &records[index]; }

flow_status flow_constraint_project(flow_context *context, const flow_constraint *constraint, flow_tensor *weights, flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, constraint->record->project(&e, constraint, weights), out);
}

/* ---- options ---------------------------------------------------------------------------------------------------------------- */

/* NULL: there is none of this name. */
static const flow_constraint_record *record_of(const char *name)
{
  for (int i = 0; name && i < flow_constraint_count(); i++)
    if (strcmp(name, records[i].name) == 0 || strcmp(name, records[i].class_name) == 0) return &records[i];
  return NULL;
}

/* Reads complete options, for weights with `rank` axes. what: of messages. */
static flow_status read_options(const char *what, const flow_constraint_record *record, const flow_arguments *options, int rank,
                                flow_constraint *into)
{
  const double *axes;
  *into = (flow_constraint){ .record = record, .min_value = flow_argument_number(options, "min_value"),
                             .max_value = flow_argument_number(options, "max_value"), .rate = flow_argument_number(options, "rate"),
                             .axes_are_list = flow_argument_is_list(options, "axis") };
  int count = flow_argument_list(options, "axis", &axes);
  for (int i = 0; i < count; i++) {
    int axis = flow_axis_of(axes[i], rank), twice = 0;
    for (int k = 0; k < i; k++) twice |= into->axes[k] == axis;
    if (axis < 0 || axis >= rank || twice)
      return flow_fail(FLOW_INVALID_ARGUMENT,
                       "%s: axis %d (counted from 1) of %s is not one of the %d axes of the weights, or stands "
                       "there twice",
                       what, flow_axis_number(flow_axis_given(axes[i])), record->class_name, rank);
    into->axes[into->axis_count++] = axis;
  }
  return FLOW_OK;
}

/* *out: a new constraint, which flow_free releases; only after FLOW_OK. */
static flow_status make(const char *what, const flow_constraint_record *record, const flow_arguments *options, int rank,
                        flow_constraint **out)
{
  flow_constraint made;
  void *block;
  FLOW_TRY(read_options(what, record, options, rank, &made));
  FLOW_TRY(flow_alloc(sizeof made, &block));
  *out = memcpy(block, &made, sizeof made);
  return FLOW_OK;
}

/* The variable owns its constraint; one that it had is freed. Traces that were made before keep the old one's formula. */
static void attach(flow_variable *variable, flow_constraint *constraint)
{
  flow_free(variable->constraint);
  variable->constraint = constraint;
}

/* arguments are a layer's, complete. Where the argument is null the variable keeps what it has. */
flow_status flow_constraint_attach(const flow_arguments *arguments, const char *name, flow_variable *variable)
{
  flow_constraint *made = NULL;
  flow_arguments *options;
  char what[320];
  if (flow_argument_is_null(arguments, name)) return FLOW_OK;
  FLOW_TRY(flow_arguments_extract(arguments, name, &options));
  snprintf(what, sizeof what, "%s: %s", variable->name, name);
  flow_status status = make(what, record_of(flow_argument_text(arguments, name)), options, variable->tensor->rank, &made);
  flow_arguments_release(options);
  if (status == FLOW_OK) attach(variable, made);
  return status;
}

/* The constraint of this name with options that may lack some. */
static flow_status make_named(const char *name, const flow_arguments *given, int rank, flow_constraint **out)
{
  const flow_constraint_record *record = record_of(name);
  flow_arguments *options;
  if (!record) return flow_argument_choice_unknown("a constraint", "name", FLOW_CONSTRAINT, name ? name : "");
  FLOW_TRY(flow_arguments_complete(record->class_name, record->parameters, given, &options));
  flow_status status = make(record->class_name, record, options, rank, out);
  flow_arguments_release(options);
  return status;
}

/* For scripts: weights of any shape, projected once. *out is a new reference, NULL after a failure. */
flow_status flow_constrain(flow_context *context, const char *constraint, const flow_arguments *options, flow_tensor *weights,
                           flow_tensor **out)
{
  flow_constraint *made;
  if (!context || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_constrain: %s is NULL", context ? "out" : "context");
  *out = NULL;
  FLOW_TRY(flow_check_tensor("flow_constrain: the weights", weights));
  FLOW_TRY(make_named(constraint, options, weights->rank, &made));
  flow_status status = flow_constraint_project(context, made, weights, out);
  flow_free(made);
  return status;
}

/* constraint NULL takes the variable's away. On failure the variable keeps what it had. */
flow_status flow_variable_set_constraint(flow_variable *variable, const char *constraint, const flow_arguments *options)
{
  flow_constraint *made = NULL;
  FLOW_TRY(flow_check_variable("flow_variable_set_constraint", variable));
  if (constraint) FLOW_TRY(make_named(constraint, options, variable->tensor->rank, &made));
  attach(variable, made);
  return FLOW_OK;
}

/* ---- configs ---------------------------------------------------------------------------------------------------------------- */

/* Axes as they were resolved, from 0, in the form in which they were given: a number or a list. */
static flow_json *axes_json(const flow_constraint *constraint)
{
  if (!constraint->axes_are_list) return flow_json_make(FLOW_JSON_NUMBER, constraint->axes[0], NULL);
  flow_json *list = flow_json_make(FLOW_JSON_LIST, 0, NULL);
  for (int i = 0; list && i < constraint->axis_count; i++)
    flow_json_put(list, NULL, flow_json_make(FLOW_JSON_NUMBER, constraint->axes[i], NULL));
  return list;
}

static double number_of(const flow_constraint *constraint, const char *option)
{
  if (strcmp(option, "rate") == 0) return constraint->rate;
  return strcmp(option, "min_value") == 0 ? constraint->min_value : constraint->max_value;
}

/* As snprintf: returns the length of the config's text, 0 where the variable has none, -1 for want of memory; text may be NULL. */
int flow_variable_constraint(const flow_variable *variable, char *text, int size)
{
  const flow_constraint *constraint = variable ? variable->constraint : NULL;
  if (!constraint) return flow_config_none(text, size);
  flow_json *config = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  for (const flow_argument *option = config ? constraint->record->parameters : NULL; option && option->name; option++) {
    int is_axis = option->type == FLOW_AXES;
    flow_json_put(config, option->name, is_axis ? axes_json(constraint)
                                                : flow_json_make(FLOW_JSON_REAL, number_of(constraint, option->name), NULL));
  }
  return flow_config_write(config ? flow_config_object("keras.constraints", constraint->record->class_name, config) : NULL, text, size);
}
