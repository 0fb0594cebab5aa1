/* argument_checks.c: named values from a caller held against the parameters that a record declares, which completes them.
 *
 * flow_arguments_complete is the one entrance: for layers, optimizers, losses, metrics, initializers, regularizers and constraints. It
 * goes through the record's parameters, takes the given value or parses the default, checks its type and stores it in the form that
 * readers expect (arguments.h). Given names that no parameter has are found first, since a misspelled option explains more than a
 * missing one. */
#include "layers/argument_values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/decimal.h"
#include "base/names.h"
#include "autodiff/composites.h"

/* "kernel_initializer.stddev" with both names from records; longer ones from a caller are simply unknown. */
enum { NAME_SIZE = 128, LIST_SIZE = 1024 };

/* ---- messages -------------------------------------------------------------------------------------------------------- */

/* How messages call the values of a type. */
static const char *expected_text(flow_argument_type type)
{
  static const char *const texts[] = {
    [FLOW_INTEGER] = "an integer",
    [FLOW_NUMBER] = "a number",
    [FLOW_BOOLEAN] = "true or false",
    [FLOW_TEXT] = "a text",
    [FLOW_PAIR] = "an integer or a list of two integers",
    [FLOW_TRIPLE] = "an integer or a list of three integers",
    [FLOW_VOLUME_SIDES] = "an integer, {depth, height, width} or {{before, after}, {top, bottom}, {left, right}}",
    [FLOW_SINGLE] = "an integer or a list of one",
    [FLOW_SHAPE] = "a list of integers",
    [FLOW_SIZES] = "a list of positive integers, -1 for the input's size",
    [FLOW_NUMBERS] = "a number or a list of numbers",
    [FLOW_SIDES] = "an integer, {height, width} or {{top, bottom}, {left, right}}",
    [FLOW_ACTIVATION] = "the name of an activation",
    [FLOW_INITIALIZER] = "the name of an initializer",
    [FLOW_REGULARIZER] = "the name of a regularizer",
    [FLOW_CONSTRAINT] = "the name of a constraint",
    [FLOW_AXES] = "an axis or a list of axes",
    [FLOW_NAMED] = "a table of numbers with names",
    [FLOW_ABSENT] = "null"
  };
  return texts[type];
}

/* {1, 2} or {{1, 2}, {null, 4}}: the list at depth `depth` whose numbers begin at `first`. Nine entries of each list at most: a message
 * shows what kind of list came, not all of it. */
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

/* The value as it is in a message: 3, true, "same", {1, 2}. What does not fit into the buffer is cut off. */
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

/* Names of all parameters: "filters, kernel_size, strides". A list that is too long for the buffer is cut. */
static const char *parameter_names(const flow_argument *parameters, char *buffer, int size)
{
  flow_text text = flow_text_into(buffer, size);
  flow_text_add(&text, "%s", "");
  for (int i = 0; parameters[i].name; i++) flow_text_add(&text, i ? ", %s" : "%s", parameters[i].name);
  return buffer;
}

/* The choices of a parameter: "rmin, rmax, dmax". */
static const char *choices_text(const flow_argument *parameter, char *buffer, int size)
{
  flow_text text = flow_text_into(buffer, size);
  for (const char *p = parameter->choices; *p; p += strcspn(p, "|"), p += *p == '|')
    flow_text_add(&text, p == parameter->choices ? "%.*s" : ", %.*s", (int)strcspn(p, "|"), p);
  return buffer;
}

/* ---- defaults ---------------------------------------------------------------------------------------------------------- */

/* The default of a parameter as a value; `numbers` has room for FLOW_MAX_RANK. Texts of defaults are the record's own and well formed, so
 * that nothing is checked but the kind: "3", "true", "same", "1,1" for a list. */
static argument_value default_value(const flow_argument *parameter, double *numbers)
{
  const char *initial = parameter->initial;
  argument_value value = { .kind = VALUE_NULL };
  if (strcmp(initial, "null") == 0) return value;
  switch (parameter->type) {
    case FLOW_INTEGER: case FLOW_NUMBER:
      value.kind = VALUE_NUMBER;
      value.number = flow_decimal_read(initial, NULL, &initial);
      break;
    case FLOW_BOOLEAN:
      value.kind = VALUE_BOOLEAN;
      value.number = strcmp(initial, "true") == 0;
      break;
    case FLOW_PAIR: case FLOW_SINGLE: case FLOW_TRIPLE: case FLOW_SHAPE: case FLOW_SIZES: case FLOW_NUMBERS: case FLOW_SIDES:
    case FLOW_VOLUME_SIDES: case FLOW_AXES:
      value.kind = VALUE_NUMBERS;
      value.numbers = numbers;
      value.rank = 1;
      while (*initial && value.count < FLOW_MAX_RANK) {
        numbers[value.count++] = flow_decimal_read(initial, NULL, &initial);
        if (*initial) initial++;
      }
      value.dims[0] = value.count;
      if ((parameter->type == FLOW_NUMBERS || parameter->type == FLOW_AXES) && value.count == 1)
        value = (argument_value){ .kind = VALUE_NUMBER, .number = numbers[0] };
      break;
    case FLOW_TEXT:
    case FLOW_ACTIVATION:
    case FLOW_INITIALIZER:
    case FLOW_REGULARIZER:
    case FLOW_CONSTRAINT:
    case FLOW_NAMED:
    case FLOW_ABSENT:
      value.kind = VALUE_TEXT;
      value.text = initial;
      break;
  }
  return value;
}

/* ---- checking ---------------------------------------------------------------------------------------------------------- */

/* Whole, and of a size at which a double still tells neighbours apart: 2^53 may have been 2^53 + 1 in a file. */
static int is_integer(double number)
{
  return fabs(number) < 0x1p53 && floor(number) == number;
}

/* NaN, which stands for null, is not an integer. */
static int all_integers(const argument_value *value)
{
  for (int i = 0; i < value->count; i++)
    if (!is_integer(value->numbers[i])) return 0;
  return 1;
}

/* Infinite ones are numbers; NaN is what null became. */
static int all_numbers(const argument_value *value)
{
  if (value->kind == VALUE_NUMBER) return !isnan(value->number);
  if (value->kind != VALUE_NUMBERS) return 0;
  for (int i = 0; i < value->count; i++)
    if (isnan(value->numbers[i])) return 0;
  return 1;
}

/* "Dense: units must be an integer, found "three"". who: the class or function that was asked; name: the option, with the prefix of a
 * choice in front. */
static flow_status wrong_type(const char *who, const char *name, const flow_argument *parameter, const argument_value *value)
{
  char found[LIST_SIZE];
  int too_large = parameter->type == FLOW_INTEGER && value->kind == VALUE_NUMBER && fabs(value->number) >= 0x1p53;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s must be %s%s, found %s", who, name, expected_text(parameter->type),
                   too_large ? " of a magnitude below 2^53" : "", value_text(value, found, sizeof found));
}

/* Stores the choice that `value` names (case does not count, as in Keras), spelled as the record spells it. parameter->choices:
 * "valid|same|!full", of which those with "!" are known to Keras and not supported: they get another message than a misspelled one.
 * Suggestions are offered for misspelled ones. */
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
      if (!refused) return flow_arguments_store(result, name, &(argument_value){ .kind = VALUE_TEXT, .text = choice });
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

/* Name number i of the activations, initializers, regularizers or constraints; NULL beyond the last one. */
static const char *choice_name(flow_argument_type type, int i)
{
  flow_argument_choice choice;
  if (type == FLOW_ACTIVATION) return flow_activation_name(i);
  return flow_argument_choice_at(type, i, &choice) ? choice.name : NULL;
}

flow_status flow_argument_choice_unknown(const char *who, const char *name, flow_argument_type type, const char *asked)
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
                   flow_suggestion_text(&suggestion, hint), suggestion.best ? "" : ".", known);
}

/* An activation is stored as it was given, an initializer, a regularizer or a constraint under the snake-case name of its record. */
static flow_status store_text(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                              flow_arguments *result)
{
  if (parameter->type == FLOW_TEXT) {
    if (parameter->choices) return store_choice(who, name, parameter, value, result);
  } else if (parameter->type == FLOW_ACTIVATION) {
    if (!flow_activation_known(value->text)) return flow_argument_choice_unknown(who, name, parameter->type, value->text);
  } else {
    flow_argument_choice choice;
    if (!flow_argument_choice_find(parameter->type, value->text, &choice))
      return flow_argument_choice_unknown(who, name, parameter->type, value->text);
    return flow_arguments_store(result, name, &(argument_value){ .kind = VALUE_TEXT, .text = choice.name });
  }
  return flow_arguments_store(result, name, value);
}

/* A shape with unknown sizes: null becomes -1. */
static flow_status store_sizes(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                               flow_arguments *result)
{
  double sizes[FLOW_MAX_RANK];
  argument_value normal = *value;
  if (value->kind == VALUE_NUMBER)      /* one size is a list of one */
    normal = (argument_value){ .kind = VALUE_NUMBERS, .numbers = &value->number, .rank = 1, .count = 1, .dims = { 1 } };
  value = &normal;
  if (value->kind != VALUE_NUMBERS || value->rank != 1) return wrong_type(who, name, parameter, value);
  if (value->count > FLOW_MAX_RANK)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s has %d dimensions, at most %d are possible", who, name, value->count, FLOW_MAX_RANK);
  for (int i = 0; i < value->count; i++) {
    sizes[i] = isnan(value->numbers[i]) ? -1 : value->numbers[i];
    if (!is_integer(sizes[i]) || (sizes[i] < 1 && sizes[i] != -1)) return wrong_type(who, name, parameter, value);
  }
  normal.numbers = sizes;
  return flow_arguments_store(result, name, &normal);
}

/* One number for all sides, one for each axis, or both of each axis: the normal form is the last one. So "1", "{1, 2}" and "{{1, 1}, {2,
 * 2}}" are stored alike, and readers take two numbers for each axis. */
static flow_status store_sides(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                               flow_arguments *result)
{
  double sides[6];
  const int axes = parameter->type == FLOW_SIDES ? 2 : 3;
  int count = value->kind == VALUE_NUMBER ? 1 : value->count;
  const double *given = value->kind == VALUE_NUMBER ? &value->number : value->numbers;
  if (value->kind != VALUE_NUMBER && value->kind != VALUE_NUMBERS) return wrong_type(who, name, parameter, value);
  int nested = value->kind == VALUE_NUMBERS && value->rank > 1;
  if (nested ? !(value->rank == 2 && value->dims[0] == axes && value->dims[1] == 2) : count != 1 && count != axes && count != 2 * axes) {
    char found[LIST_SIZE];
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s has %d numbers, %s, expected %s", who, name, count,
                     value_text(value, found, sizeof found), expected_text(parameter->type));
  }
  for (int i = 0; i < 2 * axes; i++) {
    sides[i] = given[count == 1 ? 0 : count == axes ? i / 2 : i];
    if (!(sides[i] >= 0 && sides[i] <= INT32_MAX) || floor(sides[i]) != sides[i])
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s holds %.15g, expected integers of at least 0", who, name, sides[i]);
  }
  argument_value list = { .kind = VALUE_NUMBERS, .numbers = sides, .count = 2 * axes, .rank = 2, .dims = { axes, 2 } };
  return flow_arguments_store(result, name, &list);
}

/* Checks one value that is not null against its parameter and stores it under `name` in its normal form: single numbers of PAIR, SINGLE,
 * TRIPLE and SHAPE become lists, sides two numbers for each axis, choices the record's spelling. All numbers that are stored as integers
 * are whole and within 2^53, so that readers may cast them. */
static flow_status store_checked(const char *who, const char *name, const flow_argument *parameter, const argument_value *value,
                                 flow_arguments *result)
{
  double one[3] = { value->number, value->number, value->number };
  const int wanted = parameter->type == FLOW_TRIPLE ? 3 : parameter->type == FLOW_PAIR ? 2 : parameter->type == FLOW_SINGLE ? 1 : 0;
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
    case FLOW_PAIR: case FLOW_SINGLE: case FLOW_TRIPLE: case FLOW_SHAPE:
      if (parameter->type == FLOW_SHAPE && parameter->initial && value->kind == VALUE_BOOLEAN && value->number == 0) { /* None: no axes */
        argument_value none = { .kind = VALUE_NUMBERS, .numbers = one, .rank = 1 };
        return flow_arguments_store(result, name, &none);
      }
      if (value->kind == VALUE_NUMBER && is_integer(value->number)) {
        int count = wanted ? wanted : 1;
        argument_value list = { .kind = VALUE_NUMBERS, .numbers = one, .count = count, .rank = 1, .dims = { count } };
        return flow_arguments_store(result, name, &list);
      }
      if (value->kind != VALUE_NUMBERS || value->rank != 1 || !all_integers(value) ||
          (wanted && value->count != wanted))
        return wrong_type(who, name, parameter, value);
      if (value->count > FLOW_MAX_RANK)
        return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s has %d dimensions, at most %d are possible", who, name, value->count,
                         FLOW_MAX_RANK);
      break;
    case FLOW_SIZES: return store_sizes(who, name, parameter, value, result);
    case FLOW_SIDES: case FLOW_VOLUME_SIDES: return store_sides(who, name, parameter, value, result);
    case FLOW_AXES:
      if (value->kind == VALUE_NUMBER ? !is_integer(value->number)
                                      : value->kind != VALUE_NUMBERS || value->rank != 1 || value->count < 1 ||
                                          value->count > FLOW_MAX_RANK || !all_integers(value))
        return wrong_type(who, name, parameter, value);
      break;
    case FLOW_NUMBERS:
      if (!all_numbers(value)) return wrong_type(who, name, parameter, value);
      break;
    case FLOW_NAMED: /* without names: what is left of a table is an empty list */
      if (value->kind != VALUE_NUMBERS || value->count > 0) return wrong_type(who, name, parameter, value);
      break;
    case FLOW_TEXT: case FLOW_ACTIVATION: case FLOW_INITIALIZER: case FLOW_REGULARIZER: case FLOW_CONSTRAINT:
      if (value->kind != VALUE_TEXT) return wrong_type(who, name, parameter, value);
      return store_text(who, name, parameter, value, result);
    case FLOW_ABSENT:
      return flow_fail(FLOW_UNSUPPORTED, "%s: option \"%s\" is not supported; leave it out", who, name);
  }
  return flow_arguments_store(result, name, value);
}

/* Options of earlier versions of Keras. They are refused, with what they are called now: their meaning was sometimes another one. */
static const struct { const char *name, *now; } renamed[] = {
  { "lr", "learning_rate" }, { "decay", "weight_decay, or a schedule as the learning_rate" }, { "beta1", "beta_1" }, { "beta2", "beta_2" },
  { "nb_filter", "filters" }, { "border_mode", "padding" }, { "init", "kernel_initializer" },
  { "input_dim", "layers.Input { n } before this layer" },
};

/* "; use learning_rate.", or an empty text. */
static const char *renaming(const char *name, char *text, size_t size)
{
  *text = '\0';
  for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
    if (strcmp(renamed[i].name, name) == 0) snprintf(text, size, "; use %s.", renamed[i].now);
  return text;
}

/* Fails for a given name that is not a parameter and no option of an initializer. `result` holds the checked values. result NULL: what
 * they are is not known yet, so that options of a choice pass. */
static flow_status check_name(const char *who, const flow_argument *parameters, const char *name, const flow_arguments *result)
{
  char known[LIST_SIZE], hint[FLOW_SUGGESTION_SIZE], parameter[NAME_SIZE];
  if (flow_argument_find(parameters, name) >= 0) return FLOW_OK;
  const char *dot = strchr(name, '.');
  if (dot) {
    snprintf(parameter, sizeof parameter, "%.*s", (int)(dot - name), name);
    int index = flow_argument_find(parameters, parameter);
    int choice = index >= 0 && flow_argument_is_choice(parameters[index].type);
    if (index >= 0 && !choice && parameters[index].type != FLOW_NAMED)
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s must be %s, found a table with the name \"%s\"", who, parameter,
                       expected_text(parameters[index].type), dot + 1);
    if (index >= 0 && (!result || flow_arguments_value(result, name))) return FLOW_OK;
    if (choice) {
      const char *chosen = flow_argument_text(result, parameter);
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s \"%s\" takes no option \"%s\"", who, parameter, chosen ? chosen : "null", dot + 1);
    }
    if (index >= 0)
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s has no number \"%s\"; the names are %s", who, parameter, dot + 1,
                       choices_text(&parameters[index], known, sizeof known));
  }
  flow_suggestion suggestion = flow_suggestion_for(name);
  for (int i = 0; parameters[i].name; i++) flow_suggestion_offer(&suggestion, parameters[i].name);
  if (!parameters[0].name) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: unknown option \"%s\"; it takes none", who, name);
  const char *now = renaming(name, hint, sizeof hint);
  int told = *now || suggestion.best;
  if (!*now) now = flow_suggestion_text(&suggestion, hint);
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: unknown option \"%s\"%s%s %s: %s", who, name, now, told ? "" : ";",
                   told ? "It takes" : "it takes", parameter_names(parameters, known, sizeof known));
}

/* Whether a value stands for the default: none, null, or false where nothing is the default, since a table of Lua cannot hold a nil. */
static int is_nothing(const flow_argument *parameter, const argument_value *value)
{
  if (!value || value->kind == VALUE_NULL) return 1;
  return value->kind == VALUE_BOOLEAN && value->number == 0 && parameter->type != FLOW_BOOLEAN && parameter->initial &&
         strcmp(parameter->initial, "null") == 0;
}

/* The numbers of a FLOW_NAMED `name`, each under "<name>.<its own>"; with one the parameter itself is no longer null. */
static flow_status store_named(const char *who, const char *name, const flow_argument *parameter, const flow_arguments *given,
                               flow_arguments *result)
{
  static const flow_argument number = { "", FLOW_NUMBER, NULL, NULL };
  const double none = 0;
  char inner[NAME_SIZE];
  for (const char *p = parameter->choices; *p; p += strcspn(p, "|"), p += *p == '|') {
    flow_text text = flow_text_into(inner, sizeof inner);
    flow_text_add(&text, "%s.%.*s", name, (int)strcspn(p, "|"), p);
    const argument_value *value = flow_arguments_value(given, inner);
    if (!value || value->kind == VALUE_NULL) continue;
    FLOW_TRY(flow_arguments_store(result, name, &(argument_value){ .kind = VALUE_NUMBERS, .numbers = &none, .rank = 1 }));
    FLOW_TRY(store_checked(who, inner, &number, value, result));
  }
  return FLOW_OK;
}

/* Puts every parameter into `result`, under "<prefix><name>". A choice with options (an initializer) is followed by its own parameters
 * under "<name>.": complete_into calls itself once for them. given: may be NULL. Parameters are stored in the order of the record, which is
 * Keras' order of positional arguments. */
static flow_status complete_into(const char *who, const char *prefix, const flow_argument *parameters, const flow_arguments *given,
                                 flow_arguments *result)
{
  for (const flow_argument *parameter = parameters; parameter->name; parameter++) {
    char name[NAME_SIZE], known[LIST_SIZE];
    double numbers[FLOW_MAX_RANK];
    snprintf(name, sizeof name, "%s%s", prefix, parameter->name);
    const argument_value *value = flow_arguments_value(given, name);
    argument_value initial;
    if (is_nothing(parameter, value)) {
      if (!parameter->initial)
        return flow_fail(FLOW_INVALID_ARGUMENT, "%s: option \"%s\" is missing; it takes: %s", who, name,
                         parameter_names(parameters, known, sizeof known));
      initial = default_value(parameter, numbers);
      value = &initial;
    }
    if (value->kind == VALUE_NULL) FLOW_TRY(flow_arguments_store(result, name, value));
    else FLOW_TRY(store_checked(who, name, parameter, value, result));
    if (parameter->type == FLOW_NAMED) FLOW_TRY(store_named(who, name, parameter, given, result));
    flow_argument_choice choice;
    if (value->kind != VALUE_NULL && flow_argument_choice_find(parameter->type, flow_argument_text(result, name), &choice)) {
      char inner[NAME_SIZE];
      snprintf(inner, sizeof inner, "%s.", parameter->name);
      FLOW_TRY(complete_into(who, inner, choice.parameters, given, result));
    }
  }
  return FLOW_OK;
}

/* The result has every parameter of the record, in its normal form: types and defaults are not checked again after this.
 * FLOW_INVALID_ARGUMENT says who was asked, what was found, and what is possible; a likely spelling is offered. *out: for
 * flow_arguments_release; not touched by a failure. given stays the caller's; NULL stands for no arguments. */
flow_status flow_arguments_complete(const char *who, const flow_argument *parameters, const flow_arguments *given, flow_arguments **out)
{
  flow_arguments *result;
  flow_status status;
  /* Names first: "unknown option filtres" explains more than "filters is missing". */
  for (int i = 0; given && i < given->count; i++) FLOW_TRY(check_name(who, parameters, given->values[i].name, NULL));
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
