/* noise.h: the random numbers of layers that disturb their input in training. They are keyed by the layer's seed, the call's place among
 * those that draw, the step, the sample and the element, so that replicas and restarts see the same ones. */
#ifndef FLOW_LAYERS_NOISE_H
#define FLOW_LAYERS_NOISE_H

#include "layers/express.h"
#include "layers/layer.h"

/* A layer's check: its argument rate is from 0 to below 1, else fails. */
flow_status flow_layer_check_noise_rate(flow_layer *layer);

/* The same with 1 allowed, which drops all. */
flow_status flow_layer_check_dropout_rate(flow_layer *layer);

/* A mask that broadcasts to x, of its dtype: 0 with probability rate, else 1 / (1 - rate). Its shape is the layer's argument noise_shape:
 * {-1, 1, 1, 1} keeps or drops whole images; null: that of x. Borrowed from e. Fails if noise_shape does not fit x. */
flow_status flow_layer_dropout_mask(flow_expression *e, flow_layer *layer, flow_tensor *x, double rate, flow_tensor **mask);

/* The call of a layer that drops whole channels of {batch, ..., channels} with probability rate in training: one mask for all positions of
 * a sample. *out is a new reference. */
flow_status flow_layer_drop_channels(flow_context *context, flow_layer *layer, flow_tensor *x, int training, flow_tensor **out);
/* The config of such a layer: Keras' constructor takes no "trainable". */
void        flow_layer_config_untrained(const flow_layer *layer, flow_json *object);

/* x, as float32 where it has another dtype, and normal noise of mean 0 in its shape; both borrowed from e, NULL if that failed. Fails if
 * the sizes of a sample are not known. */
flow_status flow_layer_normal_noise(flow_expression *e, flow_layer *layer, double deviation, flow_tensor **x, flow_tensor **noise);

/* What the records of SpatialDropout1D, 2D and 3D have in common. */
#define FLOW_SPATIAL_DROPOUT                                                                                             \
  .parameters = parameters, .call = call, .check = flow_layer_check_dropout_rate, .config = flow_layer_config_untrained, \
  .supports_masking = 1, .doc = "In training, zeroes a share rate of the channels and scales the others by 1 / (1 - rate)."

#endif
