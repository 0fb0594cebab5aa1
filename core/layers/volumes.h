/* volumes.h: layers over volumes, {batch, depth, height, width, channels}, run on the ops over images. A convolution is the sum of those of
 * the window's planes, of which two have memory at a time. A pooling is one within the planes, and then one over the depth: the largest
 * of the largest, the mean of means of equally many cells. */
#ifndef FLOW_LAYERS_VOLUMES_H
#define FLOW_LAYERS_VOLUMES_H

#include "layers/express.h"
#include "layers/layer.h"

/* Parameters of a convolution. */
#define FLOW_VOLUMES_WINDOW                                                              \
  { "kernel_size", FLOW_TRIPLE, NULL, ">0" }, { "strides", FLOW_TRIPLE, "1,1,1", ">0" }, \
  {                                                                                      \
    "padding", FLOW_TEXT, "valid", "valid|same"                                          \
  }

/* The arguments of a convolution or pooling; padding: depth, height and width, before and after. */
typedef struct flow_volume_window {
  int32_t size[3], stride[3], dilation[3], padding[6];
  int64_t depth;                         /* of the output */
} flow_volume_window;

/* Fails if strides and dilation_rate are both greater than 1 somewhere. */
flow_status flow_volumes_check_strides(flow_layer *layer);
/* Fails unless x is a volume whose depth is known. */
flow_status flow_volumes_check(const flow_layer *layer, const flow_signature *input);
/* size: the name of the argument, "kernel_size" or "pool_size". */
flow_status flow_volumes_window(const flow_layer *layer, const flow_signature *input, const char *size, flow_volume_window *window);
/* What is added along the depth of x before and after: zeros. Borrowed from e, like all results here. */
flow_tensor *flow_volumes_pad(flow_expression *e, flow_tensor *x, int64_t before, int64_t after);
/* Images {batch * depth, ...} as volumes of that depth. */
flow_tensor *flow_volumes_of_images(flow_expression *e, flow_tensor *images, int64_t depth);

/* The convolution in `groups` of x, padded along its depth, by a kernel {depth, height, width, channels / groups, filters}, made of
 * convolutions over images. The result is images, too: a volume's planes one after the other. */
flow_tensor *flow_volumes_convolve(flow_expression *e, const flow_volume_window *window, flow_tensor *x, flow_tensor *kernel,
                                   int64_t groups);

/* The arguments of a pooling layer. */
extern const flow_argument flow_volumes_pooling_parameters[];
/* The pooling of x by `op`, of which padding neither wins nor counts. *out: a new reference. */
flow_status flow_volumes_pool(flow_context *context, flow_layer *layer, int op, flow_tensor *x, flow_tensor **out);

/* The margins of argument `name` of type FLOW_VOLUME_SIDES for a volume of known sizes. */
flow_status flow_volumes_margins(const flow_layer *layer, const flow_tensor *x, const char *name, int64_t margins[6]);

#endif
