/* regularizers.h: what training adds to the loss so that weights stay small. One record a regularizer, as for initializers. */
#ifndef FLOW_LAYERS_REGULARIZERS_H
#define FLOW_LAYERS_REGULARIZERS_H

#include "layers/layer.h"

typedef struct flow_regularizer {
  const char          *name, *class_name;     /* "l2", "L2" */
  const flow_argument *parameters;
} flow_regularizer;

/* The table of records: index from 0 to count - 1. */
int                     flow_regularizer_count(void);
const flow_regularizer *flow_regularizer_record(int index);

/* What the argument "<variable>_regularizer" makes of variable `index`; a float32 scalar, or *out = NULL where it is not set, or the
 * variable not trained. */
flow_status flow_layer_regularize(flow_context *context, const flow_layer *layer, int index, flow_tensor **out);

/* What the argument activity_regularizer makes of an output of this call, divided by the batch's rows, is added to layer->activity, a
 * float32 scalar that the next call of the layer begins without. */
flow_status flow_layer_regularize_activity(flow_context *context, flow_layer *layer, flow_tensor *output);

#endif
