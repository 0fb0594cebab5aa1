/* convolution.h: what Conv2D, Conv2DTranspose, DepthwiseConv2D and SeparableConv2D share. All have the arguments kernel_size, strides,
 * padding, dilation_rate, activation and use_bias. */
#ifndef FLOW_LAYERS_CONVOLUTION_H
#define FLOW_LAYERS_CONVOLUTION_H

#include "layers/express.h"
#include "layers/layer.h"

#define FLOW_CONVOLUTION_WINDOW             \
  { "kernel_size", FLOW_PAIR, NULL, NULL }, \
  { "strides", FLOW_PAIR, "1,1", NULL },    \
  { "padding", FLOW_TEXT, "valid", "valid|same" }

/* kernel_size, strides and dilation_rate are positive, and not both of the latter are greater than 1. */
flow_status flow_convolution_check(flow_layer *layer);
/* The same for a convolution of each channel, which is called `kind` in messages, and strides are equal, which TensorFlow's
 * tf.nn.depthwise_conv2d wants: another model would not run there. */
flow_status flow_convolution_check_depthwise(flow_layer *layer, const char *kind);
/* {batch, height, width, channels} with as many channels as the layer was built for. */
flow_status flow_convolution_check_input(const flow_layer *layer, const flow_signature *input);
/* The variables: a kernel of this shape, initialized by argument `initializer`, and a bias of `filters` values. */
flow_status flow_convolution_build(flow_context *context, flow_layer *layer, const char *initializer, const int64_t kernel[4],
                                   int64_t filters);
/* The window that the arguments describe, in an input of this shape, and the attributes of a convolution in `groups` over it. */
flow_status flow_convolution_attributes(const flow_layer *layer, const flow_signature *input, int64_t groups, int32_t window[2],
                                        flow_attributes *attributes);
/* activation(convolution of x in `groups` + bias). The kernel variable is seen as {height, width, channels / groups, filters}. */
flow_status flow_convolution_call(flow_context *context, flow_layer *layer, flow_tensor *x, int64_t groups, flow_tensor **out);

#endif
