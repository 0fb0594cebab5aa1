/* pooling.h: what MaxPooling2D, AveragePooling2D and those over the steps of sequences share, and the global ones: all but the op. */
#ifndef FLOW_LAYERS_POOLING_H
#define FLOW_LAYERS_POOLING_H

#include "layers/express.h"
#include "layers/layer.h"
#include "layers/sequences.h"

/* The arguments of a pooling layer over windows: pool_size, strides, padding, data_format. */
extern const flow_argument flow_pooling_parameters[];
extern const flow_argument flow_pooling_steps_parameters[];      /* of windows of steps */
flow_status flow_pooling_check(flow_layer *layer);
/* x {images, height, width, channels} pooled by `op` as `window` says, by windows of any size. Borrowed from e. */
flow_tensor *flow_pooling_express(flow_expression *e, int op, flow_tensor *x, const flow_attributes *window);
/* The first output of `op`, which reads `pool` of its attributes. */
flow_status flow_pooling_call(flow_context *context, const flow_layer *layer, int op, flow_tensor *x, flow_tensor **out);

/* The arguments of a global one, data_format and keepdims, and the reduction that they ask for: over height and width of images, over the
 * steps of sequences. */
extern const flow_argument flow_pooling_global_parameters[];
flow_status flow_pooling_global(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce);
flow_status flow_pooling_global_volume(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce);      /* and depth */
flow_status flow_pooling_global_steps(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce);

#endif
