/* layer_classes.c: the table of the records of layers, made from layers.def, and a new layer of one of them. */
#include "layers/layer.h"

#include <string.h>

#include "base/hash.h"
#include "base/names.h"
#include "base/philox.h"

#define FLOW_LAYER(name) extern const flow_layer_class flow_layer_##name;
#include "layers/layers.def"
#undef FLOW_LAYER

static const flow_layer_class *const classes[] = {
#define FLOW_LAYER(name) &flow_layer_##name,
#include "layers/layers.def"
#undef FLOW_LAYER
};

int flow_layer_class_total(void) { return (int)(sizeof classes / sizeof *classes); }

const flow_layer_class *flow_layer_class_record(int index) { return classes[index]; }

int flow_layer_class_lookup(const char *name)
{
  for (int i = 0; i < flow_layer_class_total(); i++)
    if (strcmp(name, classes[i]->name) == 0 || (classes[i]->alias && strcmp(name, classes[i]->alias) == 0)) return i;
  return -1;
}

/* The same stream in every process and after loading a file. */
static uint64_t stream_of(const char *name) { return flow_mix(flow_hash_text(FLOW_HASH_BEGIN, name), 0); }

flow_status flow_layer_create(const char *class_name, const char *name, const flow_arguments *given, flow_layer **out)
{
  int index = flow_layer_class_lookup(class_name);
  if (index < 0) {
    char hint[FLOW_SUGGESTION_SIZE];
    flow_suggestion suggestion = flow_suggestion_for(class_name);
    for (int i = 0; i < flow_layer_class_total(); i++) flow_suggestion_offer(&suggestion, classes[i]->name);
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no layer class \"%s\"%s", class_name, flow_suggestion_text(&suggestion, hint));
  }
  const flow_layer_class *class = classes[index];
  flow_arguments *arguments;
  flow_layer *layer;
  flow_status status;
  FLOW_TRY(flow_arguments_complete(class->name, class->parameters, given, &arguments));
  status = flow_alloc_zero(sizeof *layer, (void **)&layer);
  if (status != FLOW_OK) {
    flow_arguments_release(arguments);
    return status;
  }
  layer->magic = FLOW_LAYER_MAGIC;
  layer->class = class;
  layer->arguments = arguments;
  layer->trainable = flow_argument_boolean(arguments, "trainable");
  layer->stream = stream_of(name);
  layer->name = flow_duplicate_text(name);
  status = layer->name ? FLOW_OK : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK && class->check) status = class->check(layer);
  if (status != FLOW_OK) {
    flow_layer_destroy(layer);
    return status;
  }
  *out = layer;
  return FLOW_OK;
}
