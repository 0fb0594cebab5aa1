/* margins.c: see margins.h. Sizes must be known, since the ops of cropping and padding are slices with an end. */
#include "layers/margins.h"
#include "layers/sequences.h"

flow_status flow_margins(const flow_layer *layer, const flow_tensor *x, const char *name, int64_t margins[4])
{
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(flow_layer_check_rank(layer, &input, 4, "{batch, height, width, channels}", NULL));
  if (input.dims[1] < 0 || input.dims[2] < 0)
    return flow_layer_fail(layer, "height and width of the input %s must be known", flow_tensor_shape_text(x));
  const double *sides;
  int count = flow_argument_list(layer->arguments, name, &sides);
  for (int i = 0; i < 4; i++) margins[i] = i < count ? (int64_t)sides[i] : 0;
  return FLOW_OK;
}

flow_status flow_margins_of_steps(const flow_layer *layer, const flow_tensor *x, const char *name, int64_t margins[2])
{
  flow_signature input = flow_signature_of(x);
  int32_t pair[2];
  FLOW_TRY(flow_sequences_check(layer, &input, 1));
  flow_argument_pair(layer->arguments, name, pair);
  if (input.dims[1] < 0) return flow_layer_fail(layer, "the number of steps of the input %s must be known", flow_tensor_shape_text(x));
  if (pair[0] < 0 || pair[1] < 0)
    return flow_layer_fail(layer, "%s {%d, %d} has to be of integers of at least 0", name, pair[0], pair[1]);
  margins[0] = pair[0];
  margins[1] = pair[1];
  return FLOW_OK;
}
