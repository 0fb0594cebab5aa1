/* config_read.c: Keras' config of a layer, optimizer or loss back into arguments. The config comes from a file and may be anything: depth
 * and lengths are bounded here, names and types are checked by flow_arguments_complete afterwards. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/config.h"
#include "layers/quantization.h"

/* A list on its way into arguments: the lengths that its first entries have on each level, which all others must have, too. */
typedef struct number_list { const char *name; double *numbers; int count, capacity, rank, dims[FLOW_MAX_RANK]; } number_list;

/* Nested lists as numbers one after the other. The first list on each level says how long all others there are; null is NaN. */
static flow_status add_entries(number_list *into, const flow_json *list, int depth)
{
  int length = flow_json_count(list);
  if (depth == FLOW_MAX_RANK)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the lists of \"%s\" are nested more than %d deep", into->name, FLOW_MAX_RANK);
  if (depth == into->rank) into->dims[into->rank++] = length;
  if (into->dims[depth] != length)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the lists inside \"%s\" have %d and %d entries, expected equal lengths", into->name,
                     into->dims[depth], length);
  for (const flow_json *entry = list->child; entry; entry = entry->next) {
    int inner = flow_json_is(entry, FLOW_JSON_LIST);
    if (!inner && !flow_json_is_number(entry) && !flow_json_is(entry, FLOW_JSON_NULL))
      return flow_fail(FLOW_INVALID_ARGUMENT, "the list \"%s\" holds something that is not a number, null or a list", into->name);
    if (inner ? into->count > 0 && into->rank == depth + 1 : into->rank > depth + 1)
      return flow_fail(FLOW_INVALID_ARGUMENT, "the list \"%s\" mixes numbers and lists", into->name);
    if (inner) {
      FLOW_TRY(add_entries(into, entry, depth + 1));
      continue;
    }
    FLOW_TRY(flow_grow(&into->numbers, sizeof(double), into->count + 1, &into->capacity));
    into->numbers[into->count++] = flow_json_is(entry, FLOW_JSON_NULL) ? NAN : entry->number;
  }
  return FLOW_OK;
}

/* The numbers are copied into the arguments, so that the list is freed in any case. */
static flow_status set_list(flow_arguments *arguments, const char *name, const flow_json *list)
{
  number_list found = { .name = name };
  flow_status status = add_entries(&found, list, 0);
  if (status == FLOW_OK) status = flow_arguments_set_nested(arguments, name, found.numbers, found.rank, found.dims);
  flow_free(found.numbers);
  return status;
}

/* Objects inside objects: an initializer's seed. */
enum { MOST_DEPTH = 8 };

static flow_status set_value(flow_arguments *arguments, const char *name, const flow_json *value, int depth);

/* Members as options "<name>.<key>". */
static flow_status set_members(flow_arguments *arguments, const char *name, const flow_json *object, int depth)
{
  char option[128];
  for (const flow_json *item = flow_json_is(object, FLOW_JSON_OBJECT) ? object->child : NULL; item; item = item->next) {
    snprintf(option, sizeof option, "%s.%s", name, item->key);
    FLOW_TRY(set_value(arguments, option, item, depth + 1));
  }
  return FLOW_OK;
}

/* A dtype policy or a function becomes its name, an array of NumPy or a tensor its values; any other object of a class, an initializer, its
 * class and options; an object without a class, numbers with names, an empty list and the numbers as options. */
static flow_status set_object(flow_arguments *arguments, const char *name, const flow_json *object, int depth)
{
  const flow_json *class = flow_json_member(object, "class_name"), *config = flow_json_member(object, "config");
  const flow_json *inner = flow_json_member(config, "name");
  if (depth == MOST_DEPTH) return flow_fail(FLOW_INVALID_ARGUMENT, "the objects of \"%s\" are nested more than %d deep", name, MOST_DEPTH);
  if (!class && !config) {
    FLOW_TRY(flow_arguments_set_numbers(arguments, name, NULL, 0));
    return set_members(arguments, name, object, depth);
  }
  if (!flow_json_is(class, FLOW_JSON_TEXT)) return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" is an object without a class_name", name);
  if (strcmp(class->text, "DTypePolicy") == 0 && flow_json_is(inner, FLOW_JSON_TEXT))
    return flow_arguments_set_text(arguments, name, inner->text);
  if (strcmp(class->text, "function") == 0 && flow_json_is(config, FLOW_JSON_TEXT))
    return flow_arguments_set_text(arguments, name, config->text);
  if (strcmp(class->text, "__numpy__") == 0 || strcmp(class->text, "__tensor__") == 0) {
    const flow_json *value = flow_json_member(config, "value");
    if (flow_json_is_number(value) || flow_json_is(value, FLOW_JSON_LIST)) return set_value(arguments, name, value, depth + 1);
    return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" is an array without a value", name);
  }
  FLOW_TRY(flow_arguments_set_text(arguments, name, class->text));
  return set_members(arguments, name, config, depth);
}

/* Sets an argument from the configuration by the kind of its JSON value; the argument's own record checks the value later. depth: of
 * objects within objects, which is limited. */
static flow_status set_value(flow_arguments *arguments, const char *name, const flow_json *value, int depth)
{
  if (flow_json_is_number(value)) return flow_arguments_set_number(arguments, name, value->number);
  if (flow_json_is(value, FLOW_JSON_BOOLEAN)) return flow_arguments_set_boolean(arguments, name, flow_json_is_true(value));
  if (flow_json_is(value, FLOW_JSON_TEXT)) return flow_arguments_set_text(arguments, name, value->text);
  if (flow_json_is(value, FLOW_JSON_LIST)) return set_list(arguments, name, value);
  if (flow_json_is(value, FLOW_JSON_OBJECT)) return set_object(arguments, name, value, depth);
  return FLOW_OK;                      /* null: what is left out */
}

/* Also for single values, such as an optimizer's learning rate. */
flow_status flow_config_set(flow_arguments *arguments, const char *name, const flow_json *value)
{
  return set_value(arguments, name, value, 0);
}

/* Options of some Keras versions that say nothing to a record that does not have them: where the value is the one given here (NULL:
 * whatever it is, since it does nothing unless another one is set, or, bounding_box_format, in calls on tensors). */
static const struct {
  const char *name, *text;
} without_effect[] = { { "data_format", "channels_last" }, { "bounding_box_format", NULL } };

/* parameters NULL: every member counts. */
static int has_effect(const flow_argument *parameters, const flow_json *item)
{
  if (!parameters || flow_argument_find(parameters, item->key) >= 0) return 1;
  for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++) {
    const char *text = without_effect[i].text;
    if (strcmp(without_effect[i].name, item->key) != 0) continue;
    if (!text || (flow_json_is(item, FLOW_JSON_TEXT) && strcmp(item->text, text) == 0)) return 0;
    return !(flow_json_is_false(item) && strcmp(text, "false") == 0);
  }
  return 1;
}

/* apart: members that the caller reads by itself. Types are not checked here: flow_arguments_complete does that against the record. */
flow_status flow_config_read(const flow_json *config, const flow_argument *parameters, const char *const *apart, flow_arguments **out)
{
  flow_arguments *arguments;
  if (!flow_json_is(config, FLOW_JSON_OBJECT)) return flow_fail(FLOW_INVALID_ARGUMENT, "its config is missing or no object");
  FLOW_TRY(flow_arguments_new(&arguments));
  for (const flow_json *item = config->child; item; item = item->next) {
    int skip = !has_effect(parameters, item);
    for (int i = 0; apart && apart[i] && !skip; i++) skip = strcmp(apart[i], item->key) == 0;
    flow_status status = skip ? FLOW_OK : flow_config_set(arguments, item->key, item);
    if (status == FLOW_OK) continue;
    flow_arguments_release(arguments);
    return status;
  }
  *out = arguments;
  return FLOW_OK;
}

/* The name becomes part of variables' names and of paths in files, hence no "/". */
flow_status flow_layer_read(const char *class_name, const flow_json *config, flow_layer **out)
{
  static const char *const apart[] = { "name", NULL };
  int index = flow_layer_class_lookup(class_name);
  const flow_json *name = flow_json_member(config, "name");
  flow_arguments *arguments;
  if (index < 0) return flow_fail(FLOW_UNSUPPORTED, "the layer class \"%s\" is not known", class_name);
  if (!flow_json_is(name, FLOW_JSON_TEXT) || !*name->text || strchr(name->text, '/'))
    return flow_fail(FLOW_INVALID_ARGUMENT, "a layer of class %s has no name", class_name);
  flow_status status = flow_config_read(config, flow_layer_class_record(index)->parameters, apart, &arguments);
  if (status != FLOW_OK) return flow_fail_prefix(status, "%s \"%s\": ", class_name, name->text);
  status = flow_layer_create(class_name, name->text, arguments, out);
  flow_arguments_release(arguments);
  return status;
}

/* Where the config is refused *out is not set; where the rest of the entry is, it is, and the caller releases the layer. */
flow_status flow_layer_read_entry(const char *class_name, const flow_json *entry, flow_layer **out)
{
  FLOW_TRY(flow_layer_read(class_name, flow_json_member(entry, "config"), out));
  return flow_quantization_read(*out, flow_json_member(entry, "quantization"));
}
