/* margins.h: what ZeroPadding2D and Cropping2D share: an argument that gives rows above and below and columns left and right. */
#ifndef FLOW_LAYERS_MARGINS_H
#define FLOW_LAYERS_MARGINS_H

#include "layers/express.h"
#include "layers/layer.h"

/* Argument `name`, one number for all sides, {height, width} or {top, bottom, left, right}, as the last of these. Fails on negative
 * or broken numbers. */
flow_status flow_margins(const flow_layer *layer, const char *name, int64_t margins[4]);
/* Makes the argument the four numbers; for a layer's check(). */
flow_status flow_margins_check(flow_layer *layer, const char *name);
/* Keras' config: the common members, [[top, bottom], [left, right]] under `name`, and data_format. */
void flow_margins_config(const flow_layer *layer, const char *name, flow_json *config);

#endif
