/* convolution.h: what Conv2D and DepthwiseConv2D share. Both have the arguments kernel_size, strides, padding, dilation_rate,
 * activation and use_bias. */
#ifndef FLOW_LAYERS_CONVOLUTION_H
#define FLOW_LAYERS_CONVOLUTION_H

#include "layers/express.h"
#include "layers/layer.h"

/* kernel_size, strides and dilation_rate are positive, and not both of the latter are greater than 1. */
flow_status flow_convolution_check(flow_layer *layer);
/* {batch, height, width, channels} with as many channels as the layer was built for. */
flow_status flow_convolution_check_input(const flow_layer *layer, const flow_signature *input);
/* The variables: a kernel of this shape, initialized by argument `initializer`, and a bias of `filters` values. */
flow_status flow_convolution_build(flow_context *context, flow_layer *layer, const char *initializer, const int64_t kernel[4],
                                   int64_t filters);
/* activation(convolution of x in `groups` + bias). The kernel variable is seen as {height, width, channels / groups, filters}. */
flow_status flow_convolution_call(flow_context *context, flow_layer *layer, flow_tensor *x, int64_t groups, flow_tensor **out);

#endif
