/* margins.h: what ZeroPadding2D, Cropping2D and those over the steps of sequences share: an argument that gives rows above and below and
 * columns left and right, or steps before and after. */
#ifndef FLOW_LAYERS_MARGINS_H
#define FLOW_LAYERS_MARGINS_H

#include "layers/express.h"
#include "layers/layer.h"

/* The checks of an input x, images of known height and width, and argument `name` of type FLOW_SIDES: top, bottom, left, right. */
flow_status flow_margins(const flow_layer *layer, const flow_tensor *x, const char *name, int64_t margins[4]);
/* The same for sequences of a known number of steps and an argument of type FLOW_PAIR: steps before and after. */
flow_status flow_margins_of_steps(const flow_layer *layer, const flow_tensor *x, const char *name, int64_t margins[2]);

#endif
