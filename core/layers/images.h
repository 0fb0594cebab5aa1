/* images.h: what the layers that prepare images share: batches out of single images, cropping, random numbers of a sample,
 * sampling under a transform. Tensors are borrowed from the expression, as everywhere in expression.h. */
#ifndef FLOW_LAYERS_IMAGES_H
#define FLOW_LAYERS_IMAGES_H

#include "layers/express.h"
#include "layers/layer.h"

#define FLOW_IMAGE_DATA_FORMAT { "data_format", FLOW_TEXT, "channels_last", "channels_last|!channels_first" }
#define FLOW_IMAGE_SAMPLING                                                                      \
  { "fill_mode", FLOW_TEXT, "reflect", "reflect|wrap|constant|nearest" },                        \
  { "interpolation", FLOW_TEXT, "bilinear", "nearest|bilinear" },                                \
  { "seed", FLOW_INTEGER, "null", NULL },                                                        \
  { "fill_value", FLOW_NUMBER, "0", NULL },                                                      \
  FLOW_IMAGE_DATA_FORMAT

/* FLOW_INVALID_ARGUMENT unless the input is {height, width, channels} or a batch of such with known sizes. */
flow_status  flow_images_check(const flow_layer *layer, const flow_tensor *input);
/* The input as a batch {n, height, width, channels} in its dtype, or in float32. */
flow_tensor *flow_images_batch(flow_expression *e, flow_tensor *input, int as_float);
/* The result for an input that was one image: without the batch again. */
flow_tensor *flow_images_like_input(flow_expression *e, flow_tensor *result, const flow_tensor *input);

/* Rows [top, top + height) and columns [left, left + width) of every image. */
flow_tensor *flow_images_crop(flow_expression *e, flow_tensor *x, int64_t top, int64_t left, int64_t height, int64_t width);
/* The largest part in the middle that has the aspect ratio height : width (Keras: smart_resize). */
flow_tensor *flow_images_crop_to_aspect(flow_expression *e, flow_tensor *x, int64_t height, int64_t width);
/* The flow_interpolation of one of Keras' names, which a record has checked. */
int          flow_images_interpolation(const char *name);
flow_tensor *flow_images_resize(flow_expression *e, flow_tensor *x, int64_t height, int64_t width, int interpolation, int antialias);
/* What ops made of images, floats, in the dtype that the images had. */
flow_tensor *flow_images_in_dtype(flow_expression *e, flow_tensor *x, int dtype);

/* A number for each image in [low, high), as {n, 1}: the layer's `index`-th one, keyed by its seed and name, the step and the
 * sample. */
flow_tensor *flow_images_uniform(flow_expression *e, flow_layer *layer, flow_tensor *x, double low, double high);
/* x under the transforms whose first six numbers are given: {n, 1} each, NULL for 0. */
flow_tensor *flow_images_sample(flow_expression *e, flow_tensor *x, flow_tensor *const transform[6], const flow_attributes *attributes);
/* fill_mode, interpolation and fill_value of the layer. */
flow_attributes flow_images_sampling(const flow_layer *layer);

/* What a layer does to images {n, height, width, channels} of float32 in training; borrowed from e, whose status says whether it failed. */
typedef flow_tensor *(*flow_images_change)(flow_expression *e, flow_layer *layer, flow_tensor *x);
/* The call of a layer that changes images in training and else gives them back, as float32. *out is a new reference. */
flow_status flow_images_change_in_training(flow_context *context, flow_layer *layer, flow_tensor *input, int training,
                                           flow_images_change change, flow_tensor **out);

/* A factor that is one number f or two, as {lower, upper}: f stands for {-f, f}, or {least, f} if -f is less than least. */
flow_status  flow_images_factor(const flow_layer *layer, const char *name, double least, double most, double range[2]);

#endif
