/* sequences.c: see sequences.h. A sequence {batch, steps, channels} and the image {batch, 1, steps, channels} have the same elements in
 * the same order, so that the way there and back are reshapes, which move nothing. */
#include "layers/sequences.h"

#include <string.h>

int flow_layer_is_over_steps(const flow_layer *layer, const char *name)
{
  const flow_argument *parameter = layer->class->parameters;
  while (parameter->name && strcmp(parameter->name, name) != 0) parameter++;
  return parameter->name && parameter->type == FLOW_SINGLE;
}

flow_status flow_sequences_check(const flow_layer *layer, const flow_signature *input, int steps)
{
  if (steps) return flow_layer_check_rank(layer, input, 3, "{batch, steps, features}", NULL);
  return flow_layer_check_rank(layer, input, 4, "{batch, height, width, channels}",
                               input->rank < 4 ? "did you mean to put it before Flatten?" : NULL);
}

flow_signature flow_sequences_signature(const flow_signature *input)
{
  flow_signature image = *input;
  if (input->rank != 3) return image;
  image.rank = 4;
  image.dims[1] = 1;
  image.dims[2] = input->dims[1];
  image.dims[3] = input->dims[2];
  return image;
}

flow_tensor *flow_sequences_to_images(flow_expression *e, flow_tensor *x)
{
  if (!x || x->rank != 3) return x;
  return flow_express_reshape(e, x, 4, (int64_t[]){ x->shape[0], 1, x->shape[1], x->shape[2] });
}

flow_tensor *flow_sequences_like_input(flow_expression *e, flow_tensor *y, const flow_tensor *like)
{
  if (!y || like->rank != 3) return y;
  return flow_express_reshape(e, y, 3, (int64_t[]){ y->shape[0], y->shape[2], y->shape[3] });
}
