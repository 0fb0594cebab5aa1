/* config.c: Keras' config of a layer, made from its record. cJSON's own allocator is used and left alone: its hooks belong
 * to the host, which may use the same library. */
#include "layers/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/initializers.h"

cJSON *flow_config_object(const char *module, const char *class_name, cJSON *config)
{
  cJSON *object = cJSON_CreateObject();
  if (object && config && cJSON_AddStringToObject(object, "module", module) && cJSON_AddStringToObject(object, "class_name", class_name) &&
      cJSON_AddItemToObject(object, "config", config)) {
    cJSON_AddNullToObject(object, "registered_name");
    return object;
  }
  cJSON_Delete(config);
  cJSON_Delete(object);
  return NULL;
}

cJSON *flow_config_number(double value)
{
  if (isnan(value)) return cJSON_CreateRaw("NaN");
  if (isinf(value)) return cJSON_CreateRaw(value > 0 ? "Infinity" : "-Infinity");
  /* cJSON itself stops at 15 digits when the last bit differs. The host's locale may have a decimal comma. */
  char text[40];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text - 2, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  char *comma = strpbrk(text, ",");
  if (comma) *comma = '.';
  if (!strpbrk(text, ".e")) strcat(text, ".0");
  return cJSON_CreateRaw(text);
}

/* An initializer or regularizer. */
static cJSON *choice_json(const flow_argument *parameter, const flow_arguments *arguments)
{
  flow_argument_choice choice;
  flow_arguments *options;
  if (!flow_argument_choice_find(parameter->type, flow_argument_text(arguments, parameter->name), &choice)) return cJSON_CreateNull();
  if (flow_arguments_extract(arguments, parameter->name, &options) != FLOW_OK) return NULL;
  cJSON *config = cJSON_CreateObject();
  if (config) flow_config_add_arguments(config, choice.parameters, options);
  flow_arguments_release(options);
  return flow_config_object(choice.module, choice.class_name, config);
}

static cJSON *value_json(const flow_argument *parameter, const flow_arguments *arguments)
{
  const char *name = parameter->name;
  const double *numbers;
  if (flow_argument_is_null(arguments, name)) return cJSON_CreateNull();
  switch (parameter->type) {
    case FLOW_INTEGER: return cJSON_CreateNumber(flow_argument_number(arguments, name));
    case FLOW_NUMBER: return flow_config_number(flow_argument_number(arguments, name));
    case FLOW_BOOLEAN: return cJSON_CreateBool(flow_argument_boolean(arguments, name));
    case FLOW_TEXT: case FLOW_ACTIVATION: return cJSON_CreateString(flow_argument_text(arguments, name));
    case FLOW_INITIALIZER: case FLOW_REGULARIZER: return choice_json(parameter, arguments);
    case FLOW_PAIR: case FLOW_SHAPE: case FLOW_NUMBERS: {
      if (parameter->type == FLOW_NUMBERS && !flow_argument_is_list(arguments, name))
        return cJSON_CreateNumber(flow_argument_number(arguments, name));
      int count = flow_argument_list(arguments, name, &numbers);
      return cJSON_CreateDoubleArray(numbers, count);
    }
    case FLOW_ABSENT: break;
  }
  return cJSON_CreateNull();
}

void flow_config_add_arguments(cJSON *object, const flow_argument *parameters, const flow_arguments *arguments)
{
  for (; parameters->name; parameters++) {
    if (strcmp(parameters->name, "trainable") == 0 || strcmp(parameters->name, "dtype") == 0) continue;
    cJSON *value = value_json(parameters, arguments);
    if (value && !cJSON_AddItemToObject(object, parameters->name, value)) cJSON_Delete(value);
  }
}

/* {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null} */
cJSON *flow_config_policy(const flow_layer *layer)
{
  cJSON *config = cJSON_CreateObject();
  if (config) cJSON_AddStringToObject(config, "name", flow_argument_text(layer->arguments, "dtype"));
  return flow_config_object("keras", "DTypePolicy", config);
}

void flow_config_add_common(cJSON *config, const flow_layer *layer)
{
  cJSON *policy = flow_config_policy(layer);
  cJSON_AddStringToObject(config, "name", layer->name);
  cJSON_AddBoolToObject(config, "trainable", layer->trainable);
  if (policy && !cJSON_AddItemToObject(config, "dtype", policy)) cJSON_Delete(policy);
}

cJSON *flow_layer_config_json(const flow_layer *layer)
{
  cJSON *config = cJSON_CreateObject();
  if (!config) return NULL;
  if (layer->class->config) {
    layer->class->config(layer, config);
    return config;
  }
  flow_config_add_common(config, layer);
  flow_config_add_arguments(config, layer->class->parameters, layer->arguments);
  return config;
}

int flow_config_write(cJSON *object, char *text, int size)
{
  if (text && size > 0) text[0] = '\0';
  char *json = object ? cJSON_PrintUnformatted(object) : NULL;
  int length = json ? (int)strlen(json) : 0;
  if (json && text && size > 0) {
    flow_text into = flow_text_into(text, size);
    flow_text_add(&into, "%s", json);
  }
  cJSON_free(json);
  cJSON_Delete(object);
  return length;
}
