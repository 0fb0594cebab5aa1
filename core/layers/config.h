/* config.h: a layer or its parts as the JSON that Keras writes into config.json. */
#ifndef FLOW_LAYERS_CONFIG_H
#define FLOW_LAYERS_CONFIG_H

#include "base/json.h"
#include "layers/layer.h"

/* The layer's "config" object; NULL when memory is out. The caller deletes it. */
flow_json *flow_layer_config_json(const flow_layer *layer);

/* The members that every layer has: name, trainable, dtype. For a record's config(). */
void flow_config_add_common(flow_json *config, const flow_layer *layer);

/* One object of Keras' serialization: {"module", "class_name", "config", "registered_name": null}. Takes over `config`;
 * NULL when memory is out. */
flow_json *flow_config_object(const char *module, const char *class_name, flow_json *config);

/* The layer's dtype as Keras' DTypePolicy; NULL when memory is out. */
flow_json *flow_config_policy(const flow_layer *layer);

/* An initializer, regularizer or constraint with completed options; NULL: out of memory. */
flow_json *flow_config_choice(const flow_argument_choice *choice, const flow_arguments *options);

/* Completed arguments as members of `object`, by the types of their parameters; "trainable" and "dtype" are left out, as is an
 * activity_regularizer that is null, which not every layer of Keras takes.
 * Numbers that Keras reads as floats are FLOW_JSON_REAL: it refuses a learning rate of 1. Where memory is out the tree is marked. */
void flow_config_add_arguments(flow_json *object, const flow_argument *parameters, const flow_arguments *arguments);

/* The JSON as text: what fits of it into `text`; returns the whole length; -1 if there was no memory, as for an object that is NULL, since
 * it could not be made. Releases the object. */
int flow_config_write(flow_json *object, char *text, int size);
/* Of what has no config: an empty text, and 0. */
int flow_config_none(char *text, int size);

/* ---- in ---- */

/* Sets argument `name` to a JSON value: objects as initializers, policies and functions are written; null sets nothing. */
flow_status flow_config_set(flow_arguments *arguments, const char *name, const flow_json *value);
/* The members of `config` but those named in `apart` (ended by NULL, may be NULL) as arguments. With parameters, options that the
 * record does not have and that change nothing are left out. New object in *out. */
flow_status flow_config_read(const flow_json *config, const flow_argument *parameters, const char *const *apart, flow_arguments **out);
/* A layer from its config. FLOW_UNSUPPORTED for a class that there is not. New layer in *out. */
flow_status flow_layer_read(const char *class_name, const flow_json *config, flow_layer **out);
/* The same of an entry of a file: its config, and what else it says of the layer, which *out is also where that is refused. */
flow_status flow_layer_read_entry(const char *class_name, const flow_json *entry, flow_layer **out);

#endif
