/* arguments.c: named values: setting them (the C API) and reading them back; and the parameters that records declare.
 *
 * A set is an array of values in the order in which they were set; it is searched from its beginning, since a layer has some twenty. The
 * API fills a set (flow_arguments_set_*), argument_checks.c makes a complete one of it, and from then on nothing changes but by a
 * record's check(). A value under a name that is there replaces the old one in its place. Sets have no locks: one thread at a time. */
#include "layers/argument_values.h"

#include <string.h>

#include "layers/constraints.h"
#include "layers/initializers.h"
#include "layers/regularizers.h"

enum { LIST_MOST = 65536 };      /* numbers in a list */

/* ---- setting -------------------------------------------------------------------------------------------------------- */

/* *out: an empty set, for flow_arguments_release. */
flow_status flow_arguments_new(flow_arguments **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_arguments_new: out is NULL");
  return flow_alloc_zero(sizeof **out, (void **)out);
}

/* text and numbers are const for readers; here they are the set's own. */
static void free_content(argument_value *value)
{
  flow_free((void *)value->text);
  flow_free((void *)value->numbers);
}

/* NULL is fine. */
void flow_arguments_release(flow_arguments *arguments)
{
  if (!arguments) return;
  for (int i = 0; i < arguments->count; i++) {
    flow_free(arguments->values[i].name);
    free_content(&arguments->values[i]);
  }
  flow_free(arguments->values);
  flow_free(arguments);
}

/* Borrowed until the set changes. */
argument_value *flow_arguments_value(const flow_arguments *arguments, const char *name)
{
  for (int i = 0; arguments && i < arguments->count; i++)
    if (strcmp(arguments->values[i].name, name) == 0) return &arguments->values[i];
  return NULL;
}

/* Copies the value with its text and numbers; an older one of that name is replaced in its place. Nothing changes on failure. */
flow_status flow_arguments_store(flow_arguments *arguments, const char *name, const argument_value *value)
{
  if (!arguments || !name) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_arguments: a set and a name are needed, found NULL");
  argument_value copy = *value;
  copy.name = NULL;
  copy.text = NULL;
  copy.numbers = NULL;
  flow_status status = FLOW_OUT_OF_MEMORY;
  if (value->kind == VALUE_TEXT && !(copy.text = flow_duplicate_text(value->text))) goto fail;
  if (value->kind == VALUE_NUMBERS) {
    double *numbers;
    FLOW_TRY_GOTO(flow_alloc(sizeof *numbers * (size_t)copy.count, (void **)&numbers), fail);
    for (int i = 0; i < copy.count; i++) numbers[i] = value->numbers[i];
    copy.numbers = numbers;
  }
  argument_value *old = flow_arguments_value(arguments, name);
  if (old) {
    copy.name = old->name;
    free_content(old);
    *old = copy;
    return FLOW_OK;
  }
  FLOW_TRY_GOTO(flow_grow(&arguments->values, sizeof *arguments->values, arguments->count + 1, &arguments->capacity), fail);
  if (!(copy.name = flow_duplicate_text(name))) {
    status = FLOW_OUT_OF_MEMORY;
    goto fail;
  }
  arguments->values[arguments->count++] = copy;
  return FLOW_OK;
fail:
  free_content(&copy);
  return status;
}

/* The C API's setters copy texts and lists. They fail with FLOW_INVALID_ARGUMENT for a NULL set, name or value, and with
 * FLOW_OUT_OF_MEMORY. */
flow_status flow_arguments_set_number(flow_arguments *arguments, const char *name, double value)
{
  return flow_arguments_store(arguments, name, &(argument_value){ .kind = VALUE_NUMBER, .number = value });
}

flow_status flow_arguments_set_boolean(flow_arguments *arguments, const char *name, int value)
{
  return flow_arguments_store(arguments, name, &(argument_value){ .kind = VALUE_BOOLEAN, .number = value != 0 });
}

flow_status flow_arguments_set_text(flow_arguments *arguments, const char *name, const char *value)
{
  if (!value) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_arguments_set_text: the value of \"%s\" is NULL", name ? name : "");
  return flow_arguments_store(arguments, name, &(argument_value){ .kind = VALUE_TEXT, .text = value });
}

/* dims: the lengths of the lists on each level, all lists of a level being as long; values: rank levels of them, row by row. NULL for
 * values where there are none. NaN in values stands for null, which only a FLOW_SIZES takes. */
flow_status flow_arguments_set_nested(flow_arguments *arguments, const char *name, const double *values, int rank, const int *dims)
{
  argument_value value = { .kind = VALUE_NUMBERS, .numbers = values, .rank = rank, .count = 1 };
  if (rank < 1 || rank > FLOW_MAX_RANK || !dims)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_arguments: the list \"%s\" is nested %d deep, at most %d are possible",
                     name ? name : "", rank, FLOW_MAX_RANK);
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 0 || dims[i] > LIST_MOST || (int64_t)value.count * dims[i] > LIST_MOST)
      return flow_fail(FLOW_INVALID_ARGUMENT, "flow_arguments: the list \"%s\" has more than %d values or a negative length",
                       name ? name : "", LIST_MOST);
    value.count *= value.dims[i] = dims[i];
  }
  if (value.count > 0 && !values)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_arguments: the values of the list \"%s\" are NULL", name ? name : "");
  return flow_arguments_store(arguments, name, &value);
}

/* A flat list, which is copied; count 0 is a list without numbers, not null. */
flow_status flow_arguments_set_numbers(flow_arguments *arguments, const char *name, const double *values, int count)
{
  return flow_arguments_set_nested(arguments, name, values, 1, &count);
}

/* null is not the same as a name that is not set where a record has another default. */
flow_status flow_arguments_set_null(flow_arguments *arguments, const char *name)
{
  return flow_arguments_store(arguments, name, &(argument_value){ .kind = VALUE_NULL });
}

/* ---- reading ----------------------------------------------------------------------------------------------------------- */

/* A name that the set does not have counts as null; so do all names where the set is NULL. */
int flow_argument_is_null(const flow_arguments *arguments, const char *name)
{
  const argument_value *value = flow_arguments_value(arguments, name);
  return !value || value->kind == VALUE_NULL;
}

/* 0 where there is none. Of a boolean 0 or 1. */
double flow_argument_number(const flow_arguments *arguments, const char *name)
{
  const argument_value *value = flow_arguments_value(arguments, name);
  return value ? value->number : 0;
}

/* Exact: numbers of type FLOW_INTEGER were checked to be whole and within 2^53. */
int64_t flow_argument_integer(const flow_arguments *arguments, const char *name)
{
  return (int64_t)flow_argument_number(arguments, name);
}

/* Also of a number: 0 is false. */
int flow_argument_boolean(const flow_arguments *arguments, const char *name)
{
  return flow_argument_number(arguments, name) != 0;
}

/* Borrowed from the set; NULL: it is null, or no text. */
const char *flow_argument_text(const flow_arguments *arguments, const char *name)
{
  const argument_value *value = flow_arguments_value(arguments, name);
  return value ? value->text : NULL;
}

/* *values is borrowed from the set; it points into the value itself where that is a single number. Returns how many numbers there are: 1
 * for a single number, 0 for null. */
int flow_argument_list(const flow_arguments *arguments, const char *name, const double **values)
{
  const argument_value *value = flow_arguments_value(arguments, name);
  int single = value && value->kind == VALUE_NUMBER;
  *values = !value ? NULL : single ? &value->number : value->numbers;
  return !value ? 0 : single ? 1 : value->count;
}

/* Whether it was given as a list, be it of one number. */
int flow_argument_is_list(const flow_arguments *arguments, const char *name)
{
  const argument_value *value = flow_arguments_value(arguments, name);
  return value && value->kind == VALUE_NUMBERS;
}

/* At most FLOW_MAX_RANK levels, by flow_arguments_set_nested. Returns how deep the list is nested; dims: the length of each level. */
int flow_argument_dims(const flow_arguments *arguments, const char *name, int64_t dims[FLOW_MAX_RANK])
{
  const argument_value *value = flow_arguments_value(arguments, name);
  int rank = value && value->kind == VALUE_NUMBERS ? value->rank : 0;
  for (int i = 0; i < rank; i++) dims[i] = value->dims[i];
  return rank;
}

/* A list of one number is the size of a layer over steps, which are images of one row: {1, n} (sequences.h). */
void flow_argument_pair(const flow_arguments *arguments, const char *name, int32_t pair[2])
{
  const double *values;
  int count = flow_argument_list(arguments, name, &values);
  for (int i = 0; i < 2; i++) {
    double value = count == 2 ? values[i] : count == 1 ? (i == 0 ? 1 : values[0]) : 0;
    pair[i] = value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
  }
}

/* Numbers beyond int32 become its ends, which no check of sizes lets through. */
void flow_argument_triple(const flow_arguments *arguments, const char *name, int32_t triple[3])
{
  const double *numbers;
  int count = flow_argument_list(arguments, name, &numbers);
  for (int i = 0; i < 3; i++) {
    double number = count == 3 ? numbers[i] : 0;
    triple[i] = number > INT32_MAX ? INT32_MAX : number < INT32_MIN ? INT32_MIN : (int32_t)number;
  }
}

/* Values "<prefix>.<option>" under the names of their options: what an initializer is given. */
flow_status flow_arguments_extract(const flow_arguments *arguments, const char *prefix, flow_arguments **out)
{
  flow_arguments *result;
  size_t length = strlen(prefix);
  FLOW_TRY(flow_arguments_new(&result));
  for (int i = 0; i < arguments->count; i++) {
    const argument_value *value = &arguments->values[i];
    if (strncmp(value->name, prefix, length) != 0 || value->name[length] != '.') continue;
    flow_status status = flow_arguments_store(result, value->name + length + 1, value);
    if (status != FLOW_OK) {
      flow_arguments_release(result);
      return status;
    }
  }
  *out = result;
  return FLOW_OK;
}

/* ---- parameters ------------------------------------------------------------------------------------------------------ */

/* For the C API, from which Lua's help and annotations take it. */
const char *flow_argument_type_name(flow_argument_type type)
{
  static const char *const names[] = {
    [FLOW_INTEGER] = "integer",
    [FLOW_NUMBER] = "number",
    [FLOW_BOOLEAN] = "boolean",
    [FLOW_TEXT] = "text",
    [FLOW_PAIR] = "pair",
    [FLOW_SINGLE] = "single",
    [FLOW_TRIPLE] = "triple",
    [FLOW_VOLUME_SIDES] = "volume sides",
    [FLOW_SHAPE] = "shape",
    [FLOW_AXES] = "axes",
    [FLOW_SIZES] = "sizes",
    [FLOW_NUMBERS] = "numbers",
    [FLOW_SIDES] = "sides",
    [FLOW_NAMED] = "named numbers",
    [FLOW_ACTIVATION] = "activation",
    [FLOW_INITIALIZER] = "initializer",
    [FLOW_REGULARIZER] = "regularizer",
    [FLOW_CONSTRAINT] = "constraint",
    [FLOW_ABSENT] = "null"
  };
  return names[type];
}

/* A record has some twenty parameters at most; name is not NULL. Returns the position in the record, -1: it has no such parameter. */
int flow_argument_find(const flow_argument *parameters, const char *name)
{
  for (int i = 0; parameters[i].name; i++)
    if (strcmp(parameters[i].name, name) == 0) return i;
  return -1;
}

int flow_argument_count(const flow_argument *parameters)
{
  int count = 0;
  while (parameters[count].name) count++;
  return count;
}

/* Types whose value is the name of a record with its own options. */
int flow_argument_is_choice(flow_argument_type type)
{
  return type == FLOW_INITIALIZER || type == FLOW_REGULARIZER || type == FLOW_CONSTRAINT;
}

/* index: from 0, not negative. The record's texts and parameters are constants. Fills in *choice and returns 1; 0: the type has no record
 * of this number, or no records. */
int flow_argument_choice_at(flow_argument_type type, int index, flow_argument_choice *choice)
{
  if (type == FLOW_INITIALIZER && index < flow_initializer_count()) {
    const flow_initializer *record = flow_initializer_record(index);
    *choice = (flow_argument_choice){ record->name, record->class_name, "keras.initializers", record->parameters };
    return 1;
  }
  if (type == FLOW_REGULARIZER && index < flow_regularizer_count()) {
    const flow_regularizer *record = flow_regularizer_record(index);
    *choice = (flow_argument_choice){ record->name, record->class_name, "keras.regularizers", record->parameters };
    return 1;
  }
  if (type == FLOW_CONSTRAINT && index < flow_constraint_count()) {
    const flow_constraint_record *record = flow_constraint_record_at(index);
    *choice = (flow_argument_choice){ record->name, record->class_name, "keras.constraints", record->parameters };
    return 1;
  }
  return 0;
}

/* Whether a name is one of the record's: its own, its class', or one of Keras' shorter ones. Case counts. */
int flow_argument_choice_is(const flow_argument_choice *choice, const char *name)
{
  /* ALL_OBJECTS_DICT of keras/src/initializers and keras/src/regularizers */
  static const char *const others[][2] = {
    { "RandomNormal", "normal" }, { "RandomUniform", "uniform" },        { "Ones", "one" },
    { "Zeros", "zero" },          { "Identity", "IdentityInitializer" }, { "Orthogonal", "OrthogonalInitializer" },
    { "L1L2", "l1l2" },
  };
  if (strcmp(name, choice->name) == 0 || strcmp(name, choice->class_name) == 0) return 1;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(choice->class_name, others[i][0]) == 0) return strcmp(name, others[i][1]) == 0;
  return 0;
}

/* Returns 1 with *choice filled in; 0: no record has this name. */
int flow_argument_choice_find(flow_argument_type type, const char *name, flow_argument_choice *choice)
{
  for (int i = 0; name && flow_argument_choice_at(type, i, choice); i++)
    if (flow_argument_choice_is(choice, name)) return 1;
  return 0;
}
