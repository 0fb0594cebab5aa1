/* volumes.h: layers over volumes, {batch, depth, height, width, channels}. A window over a volume is one over images for each of its
 * planes: a convolution is the sum of those of the planes, a maximum the largest of theirs. So they run on the ops over images, plane by
 * plane of the window, and take memory for the results of two planes. */
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

/* One plane more: the result so far (NULL for the first plane) and the images that the plane sees. */
typedef flow_tensor *(*flow_volume_step)(flow_expression *e, flow_layer *layer, const flow_volume_window *window, int plane,
                                         flow_tensor *so_far, flow_tensor *images);
/* All planes of the window, one after the other; *out: a new reference to the last result, images {batch * depth, ...}. */
flow_status flow_volumes_each_plane(flow_context *context, flow_layer *layer, const flow_volume_window *window, flow_tensor *x,
                                    flow_volume_step step, flow_tensor **out);

/* The convolution in `groups` of x, padded along its depth, by a kernel {depth, height, width, channels / groups, filters}: the sum of
 * those of the kernel's planes. */
flow_tensor *flow_volumes_convolve(flow_expression *e, const flow_volume_window *window, flow_tensor *x, flow_tensor *kernel,
                                   int64_t groups);

/* The arguments of a pooling layer, and the attributes of the pooling of a plane. */
extern const flow_argument flow_volumes_pooling_parameters[];
flow_attributes flow_volumes_pool(const flow_volume_window *window);

/* The margins of argument `name` of type FLOW_VOLUME_SIDES for a volume of known sizes. */
flow_status flow_volumes_margins(const flow_layer *layer, const flow_tensor *x, const char *name, int64_t margins[6]);

#endif
