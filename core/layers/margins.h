/* margins.h: what ZeroPadding2D and Cropping2D share: an argument that gives rows above and below and columns left and right. */
#ifndef FLOW_LAYERS_MARGINS_H
#define FLOW_LAYERS_MARGINS_H

#include "layers/express.h"
#include "layers/layer.h"

/* The checks of an input x, images of known height and width, and argument `name` of type FLOW_SIDES: top, bottom, left, right. */
flow_status flow_margins(const flow_layer *layer, const flow_tensor *x, const char *name, int64_t margins[4]);

#endif
