/* config.c: Keras' config of a layer, made from its record: what get_config gives and .keras files hold (keras/src/saving).
 *
 * A layer's config is an object with name, trainable and dtype first, then each argument under its name and in the form that Keras
 * writes: lists for shapes, an object {module, class_name, config, registered_name} for initializers, regularizers and constraints.
 * config_read.c is the way back. Trees are made without a check at each step: a tree whose memory ran out is marked, and flow_json_write
 * then gives NULL. */
#include "layers/config.h"

#include <stdio.h>
#include <string.h>

#include "layers/initializers.h"

/* Takes config over, NULL too: then memory was out, and the object lacks it. Callers look when they write it. */
flow_json *flow_config_object(const char *module, const char *class_name, flow_json *config)
{
  flow_json *object = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  flow_json_put_text(object, "module", module);
  flow_json_put_text(object, "class_name", class_name);
  flow_json_put(object, "config", config);
  flow_json_put_kind(object, "registered_name", FLOW_JSON_NULL);
  return object;
}

/* options: those of the choice itself, under the names of its parameters. */
flow_json *flow_config_choice(const flow_argument_choice *choice, const flow_arguments *options)
{
  flow_json *config = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  if (config) flow_config_add_arguments(config, choice->parameters, options);
  return flow_config_object(choice->module, choice->class_name, config);
}

/* An initializer, regularizer or constraint. */
static flow_json *choice_json(const flow_argument *parameter, const flow_arguments *arguments)
{
  flow_argument_choice choice;
  flow_arguments *options;
  if (!flow_argument_choice_find(parameter->type, flow_argument_text(arguments, parameter->name), &choice))
    return flow_json_make(FLOW_JSON_NULL, 0, NULL);
  if (flow_arguments_extract(arguments, parameter->name, &options) != FLOW_OK) return NULL;
  flow_json *object = flow_config_choice(&choice, options);
  flow_arguments_release(options);
  return object;
}

/* {"rmax": 3.0}: those numbers of a FLOW_NAMED that were given. */
static flow_json *named_json(const flow_argument *parameter, const flow_arguments *arguments)
{
  flow_json *object = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  char name[128], member[64];
  for (const char *p = parameter->choices; object && *p; p += strcspn(p, "|"), p += *p == '|') {
    snprintf(member, sizeof member, "%.*s", (int)strcspn(p, "|"), p);
    snprintf(name, sizeof name, "%s.%s", parameter->name, member);
    if (flow_argument_is_null(arguments, name)) continue;
    flow_json_put(object, member, flow_json_make(FLOW_JSON_REAL, flow_argument_number(arguments, name), NULL));
  }
  return object;
}

/* Takes the numbers of a nested list from *numbers, which it moves on. Rank 0: one number. Lists nest FLOW_MAX_RANK deep at most. */
static flow_json *list_json(flow_argument_type type, const double **numbers, int rank, const int64_t *dims)
{
  if (rank == 0) {
    double number = *(*numbers)++;
    if (type == FLOW_SIZES && number < 0) return flow_json_make(FLOW_JSON_NULL, 0, NULL);
    return flow_json_make(type == FLOW_NUMBERS ? FLOW_JSON_REAL : FLOW_JSON_NUMBER, number, NULL);
  }
  flow_json *list = flow_json_make(FLOW_JSON_LIST, 0, NULL);
  for (int64_t i = 0; list && i < dims[0]; i++) flow_json_put(list, NULL, list_json(type, numbers, rank - 1, dims + 1));
  return list;
}

/* As Keras writes the value of an argument of this type: whole numbers without a decimal point, numbers with one, absent ones as null.
 * NULL: no memory. */
static flow_json *value_json(const flow_argument *parameter, const flow_arguments *arguments)
{
  const char *name = parameter->name;
  const double *numbers;
  int64_t dims[FLOW_MAX_RANK];
  if (flow_argument_is_null(arguments, name)) return flow_json_make(FLOW_JSON_NULL, 0, NULL);
  switch (parameter->type) {
    case FLOW_INTEGER: return flow_json_make(FLOW_JSON_NUMBER, flow_argument_number(arguments, name), NULL);
    case FLOW_NUMBER: return flow_json_make(FLOW_JSON_REAL, flow_argument_number(arguments, name), NULL);
    case FLOW_BOOLEAN: return flow_json_make(FLOW_JSON_BOOLEAN, flow_argument_boolean(arguments, name), NULL);
    case FLOW_TEXT: case FLOW_ACTIVATION: return flow_json_make(FLOW_JSON_TEXT, 0, flow_argument_text(arguments, name));
    case FLOW_INITIALIZER: case FLOW_REGULARIZER: case FLOW_CONSTRAINT: return choice_json(parameter, arguments);
    case FLOW_PAIR: case FLOW_SINGLE: case FLOW_SHAPE: case FLOW_SIZES: case FLOW_SIDES: case FLOW_NUMBERS: case FLOW_AXES:
    case FLOW_TRIPLE: case FLOW_VOLUME_SIDES: {
      int rank = flow_argument_dims(arguments, name, dims);
      flow_argument_list(arguments, name, &numbers);
      return list_json(parameter->type, &numbers, rank, dims);
    }
    case FLOW_NAMED: return named_json(parameter, arguments);
    case FLOW_ABSENT: break;
  }
  return flow_json_make(FLOW_JSON_NULL, 0, NULL);
}

/* trainable and dtype are in the common part. Those of if_given are written only where they are given: activity_regularizer as Keras does,
 * the axes of initializers because earlier versions of Keras do not know them. */
void flow_config_add_arguments(flow_json *object, const flow_argument *parameters, const flow_arguments *arguments)
{
  static const char *const if_given[] = { "activity_regularizer", "input_axes", "output_axes" };
  for (; parameters->name; parameters++) {
    int left_out = strcmp(parameters->name, "trainable") == 0 || strcmp(parameters->name, "dtype") == 0;
    for (size_t i = 0; i < sizeof if_given / sizeof *if_given; i++)
      left_out |= strcmp(parameters->name, if_given[i]) == 0 && flow_argument_is_null(arguments, parameters->name);
    if (left_out) continue;
    flow_json_put(object, parameters->name, value_json(parameters, arguments));
  }
}

/* {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null} */
flow_json *flow_config_policy(const flow_layer *layer)
{
  flow_json *config = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  if (config) flow_json_put_text(config, "name", flow_argument_text(layer->arguments, "dtype"));
  return flow_config_object("keras", "DTypePolicy", config);
}

/* layer->trainable is what the user set last, which may differ from the argument. */
void flow_config_add_common(flow_json *config, const flow_layer *layer)
{
  flow_json_put_text(config, "name", layer->name);
  flow_json_put(config, "trainable", flow_json_make(FLOW_JSON_BOOLEAN, layer->trainable, NULL));
  flow_json_put(config, "dtype", flow_config_policy(layer));
}

/* A record with a config() writes all members itself. */
flow_json *flow_layer_config_json(const flow_layer *layer)
{
  flow_json *config = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  if (!config) return NULL;
  if (layer->class->config) {
    layer->class->config(layer, config);
    return config;
  }
  flow_config_add_common(config, layer);
  flow_config_add_arguments(config, layer->class->parameters, layer->arguments);
  return config;
}

int flow_config_none(char *text, int size)
{
  if (text && size > 0) text[0] = '\0';
  return 0;
}

/* As snprintf. Takes the object over. */
int flow_config_write(flow_json *object, char *text, int size)
{
  flow_config_none(text, size);
  char *json = object ? flow_json_write(object) : NULL;
  int length = json ? (int)strlen(json) : -1;
  if (json && text && size > 0) {
    flow_text into = flow_text_into(text, size);
    flow_text_add(&into, "%s", json);
  }
  flow_free(json);
  flow_json_release(object);
  return length;
}
