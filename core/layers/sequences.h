/* sequences.h: layers over the steps of sequences, {batch, steps, channels}, compute as those over images do, on images of one row. */
#ifndef FLOW_LAYERS_SEQUENCES_H
#define FLOW_LAYERS_SEQUENCES_H

#include "layers/express.h"
#include "layers/layer.h"

/* Whether the layer's window, argument `name`, counts steps (FLOW_SINGLE) and not height and width. */
int          flow_layer_is_over_steps(const flow_layer *layer, const char *name);
/* Fails unless the input is {batch, steps, channels} or, where steps is 0, {batch, height, width, channels}. */
flow_status  flow_sequences_check(const flow_layer *layer, const flow_signature *input, int steps);
/* The signature of the image of one row: {batch, 1, steps, channels}; that of an image as it is. */
flow_signature flow_sequences_signature(const flow_signature *input);
/* x as images of one row, images as they are; and back where `like` was a sequence. Borrowed from e. */
flow_tensor *flow_sequences_to_images(flow_expression *e, flow_tensor *x);
flow_tensor *flow_sequences_like_input(flow_expression *e, flow_tensor *y, const flow_tensor *like);

#endif
