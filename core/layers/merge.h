/* merge.h: what the layers share that make one tensor out of several, element by element: Add, Multiply, Maximum and others. */
#ifndef FLOW_LAYERS_MERGE_H
#define FLOW_LAYERS_MERGE_H

#include <limits.h>

#include "layers/express.h"
#include "layers/layer.h"

/* The call of a layer that joins its inputs with a binary op from the first to the last, broadcast per sample as in Keras: a sample of a
 * smaller rank gets axes of 1 after the batch. op: add, sub, mul, maximum or minimum. For a maximum or a minimum the other input's value
 * is in the place of what a mask leaves out; in a product it is 1, and 0 where all masks leave it out. `verb` ends the message about shapes
 * that do not fit: "added". *out is a new reference, and is not set after a failure. */
flow_status flow_merge_call(flow_context *context, const flow_layer *layer, flow_tensor *const *inputs, int count, int op, const char *verb,
                            flow_tensor **out);

/* A flow_layer_class's compute_mask: a step counts where it does in one of the inputs, if all have masks. */
flow_status flow_merge_masks(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                             flow_tensor **out);

extern const flow_argument flow_merge_parameters[];

/* What the records of layers over a list of any length have in common. */
#define FLOW_MERGE_LAYER                                                                                            \
  .positional = 0, .parameters = flow_merge_parameters, .max_inputs = INT_MAX, .call = call, .supports_masking = 1, \
  .compute_mask = flow_merge_masks

#endif
