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

/* ---- in ---- */

/* Sets argument `name` to a JSON value: objects as initializers, policies and functions are written; null sets nothing. */
flow_status flow_config_set(flow_arguments *arguments, const char *name, const cJSON *value);
/* The members of `config` but those named in `apart` (ended by NULL, may be NULL) as arguments. With parameters, options that the
 * record does not have and that change nothing are left out. New object in *out. */
flow_status flow_config_read(const cJSON *config, const flow_argument *parameters, const char *const *apart, flow_arguments **out);
/* A layer from its config. FLOW_UNSUPPORTED for a class that there is not. New layer in *out. */
flow_status flow_layer_read(const char *class_name, const cJSON *config, flow_layer **out);

#endif
