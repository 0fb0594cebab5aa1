/* permute.c: Permute: the axes of each sample in another order; dims counts them from 1, the batch stays first. dims { 2, 1 } makes
 * {batch, features, steps} of {batch, steps, features}. */
#include "layers/express.h"
#include "autodiff/apply.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "dims", FLOW_SHAPE, NULL, NULL },
  FLOW_LAYER_COMMON
};

/* Bit d of `seen` stands for axis d, from 1: all bits from 1 to count are set if each axis is named once. */
static flow_status check(flow_layer *layer)
{
  const double *dims;
  int count = flow_argument_list(layer->arguments, "dims", &dims);
  unsigned seen = 0;
  for (int i = 0; i < count; i++)
    if (dims[i] >= 1 && dims[i] <= count) seen |= 1u << (int)dims[i];
  if (count > 0 && count < FLOW_MAX_RANK && seen == (2u << count) - 2) return FLOW_OK;
  return flow_layer_fail(layer, "dims has %d entries, expected each axis from 1 to their number once", count);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const double *dims;
  flow_signature input = flow_signature_of(inputs[0]);
  int axes = flow_argument_list(layer->arguments, "dims", &dims);
  FLOW_TRY(flow_layer_check_rank(layer, &input, axes + 1, "the batch and an axis for each entry of dims", NULL));
  flow_attributes attributes = { .transpose = { .rank = axes + 1 } };
  for (int i = 0; i < axes; i++) attributes.transpose.axes[i + 1] = (int32_t)dims[i];
  return flow_apply1(context, FLOW_OP_transpose, inputs[0], NULL, NULL, &attributes, out);
}

const flow_layer_class flow_layer_permute = {
  .name = "Permute",
  .positional = 1,
  .parameters = parameters,
  .call = call,
  .check = check,
  .doc = "The axes of each sample in the order dims, which counts from 1."
};
