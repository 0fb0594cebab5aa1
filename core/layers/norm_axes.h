/* norm_axes.h: argument "axis" of layers that normalize each sample over axes of their input. */
#ifndef FLOW_LAYERS_NORM_AXES_H
#define FLOW_LAYERS_NORM_AXES_H

#include "layers/express.h"
#include "layers/layer.h"

/* The axes as attributes of a reduction that keeps them. Fails unless there is one or more, each once, and none is the batch. */
flow_status flow_norm_axes(const flow_layer *layer, const flow_signature *input, flow_attributes *reduce);
/* For layers with a variable for each position of the axes: `dims` is the input's shape with 1 for the other axes. Fails unless the axes
 * have the sizes that the layer was built for or, before that, known ones. */
flow_status flow_norm_shape(const flow_layer *layer, const flow_signature *input, flow_attributes *reduce, int64_t dims[FLOW_MAX_RANK]);

/* x, floats, normalized over these axes, which are in order: (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean of x^2 + epsilon) if
 * uncentered. Borrowed from the expression. */
flow_tensor *flow_norm_express(flow_expression *e, const flow_layer *layer, flow_tensor *x, const flow_attributes *reduce, int uncentered);

/* A `check` of layers with the parameter epsilon, which is 0 or greater. */
flow_status flow_layer_check_epsilon(flow_layer *layer);

#endif
