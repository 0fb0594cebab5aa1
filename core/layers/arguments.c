/* arguments.c: named values: setting them (the C API), checking them against a record's parameters, reading them back. */
#include "layers/arguments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "layers/initializers.h"
#include "layers/regularizers.h"
#include "layers/suggest.h"
#include "autodiff/composites.h"

typedef enum value_kind { VALUE_NULL, VALUE_NUMBER, VALUE_BOOLEAN, VALUE_TEXT, VALUE_NUMBERS } value_kind;

/* One named value. text and numbers are owned by the set that holds the value, or borrowed in values on the stack. */
typedef struct argument_value {
  char         *name;
  value_kind    kind;
  double        number;      /* number, boolean */
  const char   *text;
  const double *numbers;     /* of a nested list: those of the inner lists one after the other; NaN: null */
  int           count, rank;
  int           dims[FLOW_MAX_RANK];
} argument_value;

struct flow_arguments {
  argument_value *values;
  int             count, capacity;
};

/* "kernel_initializer.stddev" with both names from records; longer ones from a caller are simply unknown. */
enum { NAME_SIZE = 128, LIST_SIZE = 1024, LIST_MOST = 65536 };

/* ---- setting -------------------------------------------------------------------------------------------------------- */

flow_status flow_arguments_new(flow_arguments **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_arguments_new: out is NULL");
  return flow_alloc_zero(sizeof **out, (void **)out);
}

static void free_content(argument_value *value)
{
  flow_free((void *)value->text);
  flow_free((void *)value->numbers);
}

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

static argument_value *find(const flow_arguments *arguments, const char *name)
{
  for (int i = 0; arguments && i < arguments->count; i++)
    if (strcmp(arguments->values[i].name, name) == 0) return &arguments->values[i];
  return NULL;
}

/* Stores a copy of `value` under `name`, in place of an older one. Nothing changes when memory is out. */
static flow_status store(flow_arguments *arguments, const char *name, const argument_value *value)
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
  argument_value *old = find(arguments, name);
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

flow_status flow_arguments_set_number(flow_arguments *arguments, const char *name, double value)
{
  return store(arguments, name, &(argument_value){ .kind = VALUE_NUMBER, .number = value });
}

flow_status flow_arguments_set_boolean(flow_arguments *arguments, const char *name, int value)
{
  return store(arguments, name, &(argument_value){ .kind = VALUE_BOOLEAN, .number = value != 0 });
}

flow_status flow_arguments_set_text(flow_arguments *arguments, const char *name, const char *value)
{
  if (!value) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_arguments_set_text: the value of \"%s\" is NULL", name ? name : "");
  return store(arguments, name, &(argument_value){ .kind = VALUE_TEXT, .text = value });
}

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
  return store(arguments, name, &value);
}

flow_status flow_arguments_set_numbers(flow_arguments *arguments, const char *name, const double *values, int count)
{
  return flow_arguments_set_nested(arguments, name, values, 1, &count);
}

flow_status flow_arguments_set_null(flow_arguments *arguments, const char *name)
{
  return store(arguments, name, &(argument_value){ .kind = VALUE_NULL });
}

/* ---- describing ------------------------------------------------------------------------------------------------------- */

const char *flow_argument_type_name(flow_argument_type type)
{
  static const char *const names[] = {
    [FLOW_INTEGER] = "integer", [FLOW_NUMBER] = "number", [FLOW_BOOLEAN] = "boolean", [FLOW_TEXT] = "text", [FLOW_PAIR] = "pair",
    [FLOW_SHAPE] = "shape", [FLOW_SIZES] = "sizes", [FLOW_NUMBERS] = "numbers", [FLOW_SIDES] = "sides", [FLOW_ACTIVATION] = "activation",
    [FLOW_INITIALIZER] = "initializer", [FLOW_REGULARIZER] = "regularizer", [FLOW_ABSENT] = "null"
  };
  return names[type];
}

static const char *expected_text(flow_argument_type type)
{
  static const char *const texts[] = {
    [FLOW_INTEGER] = "an integer", [FLOW_NUMBER] = "a number", [FLOW_BOOLEAN] = "true or false", [FLOW_TEXT] = "a text",
    [FLOW_PAIR] = "an integer or a list of two integers", [FLOW_SHAPE] = "a list of integers",
    [FLOW_SIZES] = "a list of positive integers, -1 for the input's size", [FLOW_NUMBERS] = "a number or a list of numbers",
    [FLOW_SIDES] = "an integer, {height, width} or {{top, bottom}, {left, right}}",
    [FLOW_ACTIVATION] = "the name of an activation", [FLOW_INITIALIZER] = "the name of an initializer",
    [FLOW_REGULARIZER] = "the name of a regularizer", [FLOW_ABSENT] = "null"
  };
  return texts[type];
}

/* {1, 2} or {{1, 2}, {null, 4}}: the list at depth `depth` whose numbers begin at `first`. */
static void list_text(const argument_value *value, int depth, int first, flow_text *text)
{
  int length = value->dims[depth], stride = 1;
  for (int i = depth + 1; i < value->rank; i++) stride *= value->dims[i];
  flow_text_add(text, "{");
  for (int i = 0; i < length && i < 9; i++) {
    if (i > 0) flow_text_add(text, ", ");
    if (depth + 1 < value->rank) list_text(value, depth + 1, first + i * stride, text);
    else if (isnan(value->numbers[first + i])) flow_text_add(text, "null");
    else flow_text_add(text, "%.15g", value->numbers[first + i]);
  }
  flow_text_add(text, length > 9 ? ", ...}" : "}");
}

/* The value as it stands in a message: 3, true, "same", {1, 2}. */
static const char *value_text(const argument_value *value, char *buffer, int size)
{
  flow_text text = flow_text_into(buffer, size);
  switch (value->kind) {
    case VALUE_NULL: flow_text_add(&text, "null"); break;
    case VALUE_NUMBER: flow_text_add(&text, "%.15g", value->number); break;
    case VALUE_BOOLEAN: flow_text_add(&text, value->number != 0 ? "true" : "false"); break;
    case VALUE_TEXT: flow_text_add(&text, "\"%s\"", value->text); break;
    case VALUE_NUMBERS: list_text(value, 0, 0, &text); break;
  }
  return buffer;
}

/* Names of all parameters: "filters, kernel_size, strides". */
static const char *parameter_names(const flow_argument *parameters, char *buffer, int size)
{
  flow_text text = flow_text_into(buffer, size);
  flow_text_add(&text, "%s", "");
  for (int i = 0; parameters[i].name; i++) flow_text_add(&text, i ? ", %s" : "%s", parameters[i].name);
  return buffer;
}

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

/* ---- initializers and regularizers -------------------------------------------------------------------------------------- */

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
  return 0;
}

int flow_argument_choice_find(flow_argument_type type, const char *name, flow_argument_choice *choice)
{
  for (int i = 0; name && flow_argument_choice_at(type, i, choice); i++)
    if (strcmp(name, choice->name) == 0 || strcmp(name, choice->class_name) == 0) return 1;
  return 0;
}

/* ---- defaults ---------------------------------------------------------------------------------------------------------- */

/* Reads a decimal number of a record ("-0.001", "1e-7"). strtod would follow the host's locale. Exact, since records hold
 * less than 2^53 digits and powers of ten up to 10^22 are doubles: one correctly rounded multiplication or division. */
static double parse_number(const char **position)
{
  const char *p = *position;
  int negative = *p == '-', exponent = 0;
  double digits = 0, power = 1;
  if (*p == '-') p++;
  for (; *p >= '0' && *p <= '9'; p++) digits = digits * 10 + (*p - '0');
  if (*p == '.')
    for (p++; *p >= '0' && *p <= '9'; p++, exponent--) digits = digits * 10 + (*p - '0');
  if (*p == 'e') {
    int sign = p[1] == '-' ? -1 : 1, value = 0;
    for (p += p[1] == '-' ? 2 : 1; *p >= '0' && *p <= '9'; p++) value = value * 10 + (*p - '0');
    exponent += sign * value;
  }
  for (int i = exponent < 0 ? -exponent : exponent; i > 0; i--) power *= 10;
  *position = p;
  double value = exponent < 0 ? digits / power : digits * power;
  return negative ? -value : value;
}

/* The default of a parameter as a value; `numbers` has room for FLOW_MAX_RANK. */
static argument_value default_value(const flow_argument *parameter, double *numbers)
{
  const char *initial = parameter->initial;
  argument_value value = { .kind = VALUE_NULL };
  if (strcmp(initial, "null") == 0) return value;
  switch (parameter->type) {
    case FLOW_INTEGER: case FLOW_NUMBER:
      value.kind = VALUE_NUMBER;
      value.number = parse_number(&initial);
      break;
    case FLOW_BOOLEAN:
      value.kind = VALUE_BOOLEAN;
      value.number = strcmp(initial, "true") == 0;
      break;
    case FLOW_PAIR: case FLOW_SHAPE: case FLOW_SIZES: case FLOW_NUMBERS: case FLOW_SIDES:
      value.kind = VALUE_NUMBERS;
      value.numbers = numbers;
      value.rank = 1;
      while (*initial && value.count < FLOW_MAX_RANK) {
        numbers[value.count++] = parse_number(&initial);
        if (*initial) initial++;
      }
      value.dims[0] = value.count;
      if (parameter->type == FLOW_NUMBERS && value.count == 1) value = (argument_value){ .kind = VALUE_NUMBER, .number = numbers[0] };
      break;
    case FLOW_TEXT: case FLOW_ACTIVATION: case FLOW_INITIALIZER: case FLOW_REGULARIZER: case FLOW_ABSENT:
      value.kind = VALUE_TEXT;
      value.text = initial;
      break;
  }
  return value;
}

/* ---- checking ---------------------------------------------------------------------------------------------------------- */

static int is_integer(double number)
{
  return number >= -0x1p53 && number <= 0x1p53 && floor(number) == number;
}

static int all_integers(const argument_value *value)
{
  for (int i = 0; i < value->count; i++)
    if (!is_integer(value->numbers[i])) return 0;
  return 1;
}

static int all_numbers(const argument_value *value)
{
  if (value->kind == VALUE_NUMBER) return !isnan(value->number);
  if (value->kind != VALUE_NUMBERS) return 0;
  for (int i = 0; i < value->count; i++)
    if (isnan(value->numbers[i])) return 0;
  return 1;
}

static flow_status wrong_type(const char *who, const char *name, const flow_argument *parameter, const argument_value *value)
{
  char found[LIST_SIZE];
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s must be %s, found %s", who, name, expected_text(parameter->type),
                   value_text(value, found, sizeof found));
}

/* Stores the choice that `value` names (case does not count, as in Keras), spelled as the record spells it. */
static flow_status store_choice(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                                flow_arguments *result)
{
  char choice[64], known[256], hint[FLOW_SUGGESTION_SIZE], suggested[64] = "";
  flow_text list = flow_text_into(known, sizeof known);
  flow_suggestion suggestion = flow_suggestion_for(value->text);
  for (const char *p = parameter->choices; *p;) {
    int refused = *p == '!';
    p += refused;
    int length = (int)strcspn(p, "|");
    snprintf(choice, sizeof choice, "%.*s", length, p);
    p += length + (p[length] == '|');
    if (!refused) flow_text_add(&list, list.length ? " or \"%s\"" : "\"%s\"", choice);
    if (strcasecmp(choice, value->text) == 0) {
      if (!refused) return store(result, name, &(argument_value){ .kind = VALUE_TEXT, .text = choice });
      for (const char *q = p; *q; q += strcspn(q, "|"), q += *q == '|')
        if (*q != '!') flow_text_add(&list, list.length ? " or \"%.*s\"" : "\"%.*s\"", (int)strcspn(q, "|"), q);
      return flow_fail(FLOW_UNSUPPORTED, "%s: %s \"%s\" is not supported; use %s", who, name, choice, known);
    }
    flow_suggestion_offer(&suggestion, choice);
    if (suggestion.best == choice) {     /* choice is overwritten by the next one */
      snprintf(suggested, sizeof suggested, "%s", choice);
      suggestion.best = suggested;
    }
  }
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s must be %s, found \"%s\"%s", who, name, known, value->text,
                   flow_suggestion_text(&suggestion, hint));
}

/* Name number i of the activations, initializers or regularizers; NULL past the last one. */
static const char *choice_name(flow_argument_type type, int i)
{
  flow_argument_choice choice;
  if (type == FLOW_ACTIVATION) return flow_activation_name(i);
  return flow_argument_choice_at(type, i, &choice) ? choice.name : NULL;
}

static flow_status unknown_choice(const char *who, const char *name, flow_argument_type type, const char *asked)
{
  char known[640], hint[FLOW_SUGGESTION_SIZE];
  flow_text list = flow_text_into(known, sizeof known);
  flow_suggestion suggestion = flow_suggestion_for(asked);
  const char *each;
  for (int i = 0; (each = choice_name(type, i)) != NULL; i++) {
    flow_suggestion_offer(&suggestion, each);
    flow_text_add(&list, "%s%s", i ? ", " : "", each);
  }
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s \"%s\" is not known%s%s There are %s", who, name, asked,
                   flow_suggestion_text(&suggestion, hint), hint[0] ? "" : ".", known);
}

static flow_status store_text(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                              flow_arguments *result)
{
  if (parameter->type == FLOW_TEXT) {
    if (parameter->choices) return store_choice(who, name, parameter, value, result);
  } else if (parameter->type == FLOW_ACTIVATION) {
    if (!flow_activation_known(value->text)) return unknown_choice(who, name, parameter->type, value->text);
  } else {
    flow_argument_choice choice;
    if (!flow_argument_choice_find(parameter->type, value->text, &choice))
      return unknown_choice(who, name, parameter->type, value->text);
    return store(result, name, &(argument_value){ .kind = VALUE_TEXT, .text = choice.name });
  }
  return store(result, name, value);
}

static flow_status store_sizes(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                               flow_arguments *result)
{
  double sizes[FLOW_MAX_RANK];
  argument_value normal = *value;
  if (value->kind != VALUE_NUMBERS || value->rank != 1) return wrong_type(who, name, parameter, value);
  if (value->count > FLOW_MAX_RANK)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s has %d dimensions, at most %d are possible", who, name, value->count, FLOW_MAX_RANK);
  for (int i = 0; i < value->count; i++) {
    sizes[i] = isnan(value->numbers[i]) ? -1 : value->numbers[i];
    if (!is_integer(sizes[i]) || (sizes[i] < 1 && sizes[i] != -1)) return wrong_type(who, name, parameter, value);
  }
  normal.numbers = sizes;
  return store(result, name, &normal);
}

static flow_status store_sides(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                               flow_arguments *result)
{
  double sides[4];
  int count = value->kind == VALUE_NUMBER ? 1 : value->count;
  const double *given = value->kind == VALUE_NUMBER ? &value->number : value->numbers;
  if (value->kind != VALUE_NUMBER && value->kind != VALUE_NUMBERS) return wrong_type(who, name, parameter, value);
  int nested = value->kind == VALUE_NUMBERS && value->rank > 1;
  if (nested ? !(value->rank == 2 && value->dims[0] == 2 && value->dims[1] == 2) : count != 1 && count != 2 && count != 4) {
    char found[LIST_SIZE];
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s has %d numbers, %s, expected %s", who, name, count,
                     value_text(value, found, sizeof found), expected_text(parameter->type));
  }
  for (int i = 0; i < 4; i++) {
    sides[i] = given[count == 1 ? 0 : count == 2 ? i / 2 : i];
    if (!(sides[i] >= 0 && sides[i] <= INT32_MAX) || floor(sides[i]) != sides[i])
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s holds %.15g, expected integers of at least 0", who, name, sides[i]);
  }
  return store(result, name, &(argument_value){ .kind = VALUE_NUMBERS, .numbers = sides, .count = 4, .rank = 2, .dims = { 2, 2 } });
}

/* Checks one value that is not null against its parameter and stores it under `name` in its normal form. */
static flow_status store_checked(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                                 flow_arguments *result)
{
  double one[2] = { value->number, value->number };
  switch (parameter->type) {
    case FLOW_INTEGER:
      if (value->kind != VALUE_NUMBER || !is_integer(value->number)) return wrong_type(who, name, parameter, value);
      break;
    case FLOW_NUMBER:
      if (value->kind != VALUE_NUMBER || isnan(value->number)) return wrong_type(who, name, parameter, value);
      break;
    case FLOW_BOOLEAN:
      if (value->kind != VALUE_BOOLEAN) return wrong_type(who, name, parameter, value);
      break;
    case FLOW_PAIR: case FLOW_SHAPE:
      if (value->kind == VALUE_NUMBER && is_integer(value->number)) {
        int count = parameter->type == FLOW_PAIR ? 2 : 1;
        argument_value list = { .kind = VALUE_NUMBERS, .numbers = one, .count = count, .rank = 1, .dims = { count } };
        return store(result, name, &list);
      }
      if (value->kind != VALUE_NUMBERS || value->rank != 1 || !all_integers(value) || (parameter->type == FLOW_PAIR && value->count != 2))
        return wrong_type(who, name, parameter, value);
      if (value->count > FLOW_MAX_RANK)
        return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s has %d dimensions, at most %d are possible", who, name, value->count,
                         FLOW_MAX_RANK);
      break;
    case FLOW_SIZES: return store_sizes(who, name, parameter, value, result);
    case FLOW_SIDES: return store_sides(who, name, parameter, value, result);
    case FLOW_NUMBERS:
      if (!all_numbers(value)) return wrong_type(who, name, parameter, value);
      break;
    case FLOW_TEXT: case FLOW_ACTIVATION: case FLOW_INITIALIZER: case FLOW_REGULARIZER:
      if (value->kind != VALUE_TEXT) return wrong_type(who, name, parameter, value);
      return store_text(who, name, parameter, value, result);
    case FLOW_ABSENT:
      return flow_fail(FLOW_UNSUPPORTED, "%s: option \"%s\" is not supported; leave it out", who, name);
  }
  return store(result, name, value);
}

/* Fails for a given name that is not a parameter and no option of an initializer. `result` holds the checked values. */
static flow_status check_name(const char *who, const flow_argument *parameters, const char *name, const flow_arguments *result)
{
  char known[LIST_SIZE], hint[FLOW_SUGGESTION_SIZE], parameter[NAME_SIZE];
  if (flow_argument_find(parameters, name) >= 0) return FLOW_OK;
  const char *dot = strchr(name, '.');
  if (dot) {
    snprintf(parameter, sizeof parameter, "%.*s", (int)(dot - name), name);
    int index = flow_argument_find(parameters, parameter);
    if (index >= 0 && (parameters[index].type == FLOW_INITIALIZER || parameters[index].type == FLOW_REGULARIZER)) {
      const char *chosen = flow_argument_text(result, parameter);
      if (find(result, name)) return FLOW_OK;
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s \"%s\" takes no option \"%s\"", who, parameter, chosen ? chosen : "null", dot + 1);
    }
  }
  flow_suggestion suggestion = flow_suggestion_for(name);
  for (int i = 0; parameters[i].name; i++) flow_suggestion_offer(&suggestion, parameters[i].name);
  if (!parameters[0].name) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: unknown option \"%s\"; it takes none", who, name);
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: unknown option \"%s\"%s%s %s: %s", who, name, flow_suggestion_text(&suggestion, hint),
                   suggestion.best ? "" : ";", suggestion.best ? "It takes" : "it takes", parameter_names(parameters, known, sizeof known));
}

/* Puts every parameter into `result`, under "<prefix><name>". */
static flow_status complete_into(const char *who, const char *prefix, const flow_argument *parameters, const flow_arguments *given,
                                 flow_arguments *result)
{
  for (const flow_argument *parameter = parameters; parameter->name; parameter++) {
    char name[NAME_SIZE], known[LIST_SIZE];
    double numbers[FLOW_MAX_RANK];
    snprintf(name, sizeof name, "%s%s", prefix, parameter->name);
    const argument_value *value = find(given, name);
    argument_value initial;
    if (!value || value->kind == VALUE_NULL) {
      if (!parameter->initial)
        return flow_fail(FLOW_INVALID_ARGUMENT, "%s: option \"%s\" is missing; it takes: %s", who, name,
                         parameter_names(parameters, known, sizeof known));
      initial = default_value(parameter, numbers);
      value = &initial;
    }
    if (value->kind == VALUE_NULL) FLOW_TRY(store(result, name, value));
    else FLOW_TRY(store_checked(who, name, parameter, value, result));
    flow_argument_choice choice;
    if (value->kind != VALUE_NULL && flow_argument_choice_find(parameter->type, flow_argument_text(result, name), &choice)) {
      char inner[NAME_SIZE];
      snprintf(inner, sizeof inner, "%s.", parameter->name);
      FLOW_TRY(complete_into(who, inner, choice.parameters, given, result));
    }
  }
  return FLOW_OK;
}

flow_status flow_arguments_complete(const char *who, const flow_argument *parameters, const flow_arguments *given, flow_arguments **out)
{
  flow_arguments *result;
  flow_status status;
  /* Names first: "unknown option filtres" explains more than "filters is missing". */
  for (int i = 0; given && i < given->count; i++)
    if (!strchr(given->values[i].name, '.')) FLOW_TRY(check_name(who, parameters, given->values[i].name, NULL));
  FLOW_TRY(flow_arguments_new(&result));
  FLOW_TRY_GOTO(complete_into(who, "", parameters, given, result), fail);
  for (int i = 0; given && i < given->count; i++)
    if (strchr(given->values[i].name, '.')) FLOW_TRY_GOTO(check_name(who, parameters, given->values[i].name, result), fail);
  *out = result;
  return FLOW_OK;
fail:
  flow_arguments_release(result);
  return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------------- */

int flow_argument_is_null(const flow_arguments *arguments, const char *name)
{
  const argument_value *value = find(arguments, name);
  return !value || value->kind == VALUE_NULL;
}

double flow_argument_number(const flow_arguments *arguments, const char *name)
{
  const argument_value *value = find(arguments, name);
  return value ? value->number : 0;
}

int64_t flow_argument_integer(const flow_arguments *arguments, const char *name)
{
  return (int64_t)flow_argument_number(arguments, name);
}

int flow_argument_boolean(const flow_arguments *arguments, const char *name)
{
  return flow_argument_number(arguments, name) != 0;
}

const char *flow_argument_text(const flow_arguments *arguments, const char *name)
{
  const argument_value *value = find(arguments, name);
  return value ? value->text : NULL;
}

int flow_argument_list(const flow_arguments *arguments, const char *name, const double **values)
{
  const argument_value *value = find(arguments, name);
  int single = value && value->kind == VALUE_NUMBER;
  *values = !value ? NULL : single ? &value->number : value->numbers;
  return !value ? 0 : single ? 1 : value->count;
}

int flow_argument_is_list(const flow_arguments *arguments, const char *name)
{
  const argument_value *value = find(arguments, name);
  return value && value->kind == VALUE_NUMBERS;
}

int flow_argument_dims(const flow_arguments *arguments, const char *name, int64_t dims[FLOW_MAX_RANK])
{
  const argument_value *value = find(arguments, name);
  int rank = value && value->kind == VALUE_NUMBERS ? value->rank : 0;
  for (int i = 0; i < rank; i++) dims[i] = value->dims[i];
  return rank;
}

void flow_argument_pair(const flow_arguments *arguments, const char *name, int32_t pair[2])
{
  const double *values;
  int count = flow_argument_list(arguments, name, &values);
  for (int i = 0; i < 2; i++) {
    double value = count == 2 ? values[i] : 0;
    pair[i] = value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
  }
}

flow_status flow_arguments_extract(const flow_arguments *arguments, const char *prefix, flow_arguments **out)
{
  flow_arguments *result;
  size_t length = strlen(prefix);
  FLOW_TRY(flow_arguments_new(&result));
  for (int i = 0; i < arguments->count; i++) {
    const argument_value *value = &arguments->values[i];
    if (strncmp(value->name, prefix, length) != 0 || value->name[length] != '.') continue;
    flow_status status = store(result, value->name + length + 1, value);
    if (status != FLOW_OK) {
      flow_arguments_release(result);
      return status;
    }
  }
  *out = result;
  return FLOW_OK;
}
