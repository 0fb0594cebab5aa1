/* convolution.h: what Conv2D, Conv2DTranspose, DepthwiseConv2D and SeparableConv2D share, and their twins over the steps of sequences,
 * Conv1D and the others: the same functions, which read sequences as images of one row. All have the arguments kernel_size, strides,
 * padding, dilation_rate, activation and use_bias. */
#ifndef FLOW_LAYERS_CONVOLUTION_H
#define FLOW_LAYERS_CONVOLUTION_H

#include "layers/express.h"
#include "layers/layer.h"
#include "layers/sequences.h"

#define FLOW_CONVOLUTION_WINDOW                                                    \
  { "kernel_size", FLOW_PAIR, NULL, ">0" }, { "strides", FLOW_PAIR, "1,1", ">0" }, \
  {                                                                                \
    "padding", FLOW_TEXT, "valid", "valid|same"                                    \
  }
/* The same of a layer over steps; paddings: "valid|same|causal". */
#define FLOW_CONVOLUTION_STEPS(paddings)                                             \
  { "kernel_size", FLOW_SINGLE, NULL, ">0" }, { "strides", FLOW_SINGLE, "1", ">0" }, \
  {                                                                                  \
    "padding", FLOW_TEXT, "valid", paddings                                          \
  }

/* The parameters of a separable layer from "depth_multiplier" on. */
#define FLOW_CONVOLUTION_SEPARABLE                                                                                                    \
  { "depth_multiplier", FLOW_INTEGER, "1", ">0" }, { "activation", FLOW_ACTIVATION, "linear", NULL },                                 \
      { "use_bias", FLOW_BOOLEAN, "true", NULL }, { "depthwise_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL },              \
      { "pointwise_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL }, { "bias_initializer", FLOW_INITIALIZER, "zeros", NULL }, \
      { "depthwise_regularizer", FLOW_REGULARIZER, "null", NULL }, { "pointwise_regularizer", FLOW_REGULARIZER, "null", NULL },       \
      { "bias_regularizer", FLOW_REGULARIZER, "null", NULL }, { "activity_regularizer", FLOW_REGULARIZER, "null", NULL },             \
      { "depthwise_constraint", FLOW_CONSTRAINT, "null", NULL }, { "pointwise_constraint", FLOW_CONSTRAINT, "null", NULL },           \
      { "bias_constraint", FLOW_CONSTRAINT, "null", NULL }, FLOW_LAYER_REST

/* Not both of strides and dilation_rate are greater than 1. */
flow_status flow_convolution_check(flow_layer *layer);
/* The same for a convolution of each channel, which is called `kind` in messages, and strides are equal, which TensorFlow's
 * tf.nn.depthwise_conv2d wants: another model would not run there. */
flow_status flow_convolution_check_depthwise(flow_layer *layer, const char *kind);
/* Of layers with the argument groups, over images or volumes: filters can be divided into the groups; the channels of the input, too, and
 * *channels is how many a group has. */
flow_status flow_convolution_check_groups(const flow_layer *layer);
flow_status flow_convolution_group_channels(const flow_layer *layer, const flow_signature *input, int64_t *channels);
/* Sequences or images with as many channels as the layer was built for. */
flow_status flow_convolution_check_input(const flow_layer *layer, const flow_signature *input);
/* Variable `index`, the kernel that Keras calls by that name, of this shape; without its height in layers over steps. */
flow_status flow_convolution_add_kernel(flow_context *context, flow_layer *layer, int index, const char *name, const char *initializer,
                                        const int64_t kernel[4]);
/* That variable's value as {window[0], window[1], channels, filters}, filters being what is left. */
flow_tensor *flow_convolution_kernel(flow_expression *e, const flow_layer *layer, int index, const int32_t window[2], int64_t channels);
/* The window that the arguments describe, in images of this shape, and the attributes of a convolution in `groups` over it. */
flow_status flow_convolution_attributes(const flow_layer *layer, const flow_signature *image, int64_t groups, int32_t window[2],
                                        flow_attributes *attributes);
/* activation(convolution of x in `groups` + bias). The kernel variable, the first, is seen as {height, width, channels / groups, filters},
 * the bias is the second. */
flow_status flow_convolution_call(flow_context *context, flow_layer *layer, flow_tensor *x, int64_t groups, flow_tensor **out);

/* A transposed convolution leads from what a convolution gives to what it reads. The length of its output along an axis: length * stride
 * with "same" padding, else the least one that all kernels fit into; -1: too large. */
int64_t flow_convolution_transposed_length(const flow_layer *layer, int64_t length, int64_t kernel, int64_t stride, int64_t dilation);
/* x {n, h, w, channels} transposed by kernel {kh, kw, filters, channels}: {n, input_size[0], input_size[1], filters} by the attributes. */
flow_tensor *flow_convolution_transpose(flow_expression *e, flow_tensor *x, flow_tensor *kernel, const flow_attributes *attributes);

/* The parts of the records, for both dimensions; each is in the file of the layer over images. */
#define FLOW_CONVOLUTION_KIND(kind)                                                                                             \
  flow_status flow_##kind##_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs);           \
  flow_status flow_##kind##_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, \
                                 flow_tensor **out);
FLOW_CONVOLUTION_KIND(plain_convolution)
FLOW_CONVOLUTION_KIND(depthwise_convolution)
FLOW_CONVOLUTION_KIND(separable_convolution)
FLOW_CONVOLUTION_KIND(transposed_convolution)
/* The checks of arguments that `check` of the records runs: combinations that a single argument's record cannot refuse. */
flow_status flow_plain_convolution_check(flow_layer *layer);
flow_status flow_depthwise_convolution_check(flow_layer *layer);
flow_status flow_separable_convolution_check(flow_layer *layer);

#endif
