/* merge.h: what the layers share that make one tensor out of several, element by element: Add, Multiply, Maximum and others. */
#ifndef FLOW_LAYERS_MERGE_H
#define FLOW_LAYERS_MERGE_H

#include "layers/express.h"
#include "layers/layer.h"

/* Joins the inputs with a binary op from the first to the last, broadcast per sample as in Keras. `verb` ends the message about
 * shapes that do not fit: "added". Result borrowed from the expression. */
flow_status flow_merge(const flow_layer *layer, flow_expression *e, flow_tensor *const *inputs, int count, int op, const char *verb,
                       flow_tensor **out);

extern const flow_argument flow_merge_parameters[];

#endif
