/* merge.h: what the layers share that make one tensor out of several, element by element: Add, Multiply, Maximum and others. */
#ifndef FLOW_LAYERS_MERGE_H
#define FLOW_LAYERS_MERGE_H

#include "layers/express.h"
#include "layers/layer.h"

enum { FLOW_MERGE_MOST = 60 };      /* inputs: an expression has room for two tensors of each */

/* Joins the inputs with a binary op from the first to the last, broadcast per sample as in Keras. For a maximum or a minimum
 * the other input's value is in the place of what a mask leaves out. `verb` ends the message about
 * shapes that do not fit: "added". Result borrowed from the expression. */
flow_status flow_merge(const flow_layer *layer, flow_expression *e, flow_tensor *const *inputs, int count, int op, const char *verb,
                       flow_tensor **out);

/* The call of a layer that does only that. *out is a new reference. */
flow_status flow_merge_call(flow_context *context, const flow_layer *layer, flow_tensor *const *inputs, int count, int op, const char *verb,
                            flow_tensor **out);

/* A flow_layer_class's compute_mask: a step counts where it does in one of the inputs, if all have masks. */
flow_status flow_merge_masks(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                             flow_tensor **out);
/* The mask of x with an axis for the features, {batch, steps, 1}, or NULL; borrowed from the expression. */
flow_tensor *flow_merge_mask_of(flow_expression *e, const flow_tensor *x);

extern const flow_argument flow_merge_parameters[];

/* What the records of layers over a list of any length have in common. */
#define FLOW_MERGE_LAYER                                                                                                    \
  .positional = 0, .parameters = flow_merge_parameters, .max_inputs = FLOW_MERGE_MOST, .call = call, .supports_masking = 1, \
  .compute_mask = flow_merge_masks

#endif
