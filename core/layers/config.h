/* config.h: a layer or its parts as the JSON that Keras writes into config.json. */
#ifndef FLOW_LAYERS_CONFIG_H
#define FLOW_LAYERS_CONFIG_H

#include <cjson/cJSON.h>

#include "layers/layer.h"

/* The layer's "config" object; NULL when memory is out. The caller deletes it. */
cJSON *flow_layer_config_json(const flow_layer *layer);

/* The members that every layer has: name, trainable, dtype. For a record's config(). */
void flow_config_add_common(cJSON *config, const flow_layer *layer);

/* One object of Keras' serialization: {"module", "class_name", "config", "registered_name": null}. Takes over `config`;
 * NULL when memory is out. */
cJSON *flow_config_object(const char *module, const char *class_name, cJSON *config);

/* The layer's dtype as Keras' DTypePolicy; NULL when memory is out. */
cJSON *flow_config_policy(const flow_layer *layer);

/* A number that Keras reads as a float: always with a decimal point or an exponent ("1.0"; Keras refuses a learning rate of 1),
 * as few digits as read back exactly. Infinities as Python writes them. NULL when memory is out. */
cJSON *flow_config_number(double value);

/* Completed arguments as members of `object`, by the types of their parameters; "trainable" and "dtype" are left out.
 * What memory was missing for is missing in the object. */
void flow_config_add_arguments(cJSON *object, const flow_argument *parameters, const flow_arguments *arguments);

/* The JSON as text: what fits of it into `text`; returns the whole length, 0 for NULL. Deletes the object. */
int flow_config_write(cJSON *object, char *text, int size);

#endif
