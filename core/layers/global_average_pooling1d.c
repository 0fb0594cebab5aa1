/* global_average_pooling1d.c: GlobalAveragePooling1D: the mean over the steps of a sequence, {batch, steps, features}; with a mask {batch,
 * steps}, over those that count. */
#include "layers/masks.h"
#include "layers/pooling.h"

enum { INPUTS, MASK };
static const char *const input_names[] = { "inputs", "mask", NULL };
static const flow_argument no_options[] = { FLOW_ARGUMENTS_END };

/* As in Keras a sequence of which no step counts gives NaN. */
static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  flow_attributes attributes;
  flow_tensor *x = call->inputs[INPUTS], *mask = call->inputs[MASK];
  FLOW_TRY(flow_pooling_global_steps(layer, x, &attributes));
  if (!mask) return flow_mean(context, x, &attributes, outputs);
  if (mask->rank != 2) return flow_layer_fail(layer, "mask has shape %s, expected {batch, steps}", flow_tensor_shape_text(mask));
  flow_expression e = flow_expression_of(context);
  const int64_t shape[] = { mask->shape[0], mask->shape[1], 1 };
  flow_tensor *kept = flow_express_reshape(&e, flow_express_cast(&e, mask, FLOW_BOOL), 3, shape);
  flow_tensor *sum = flow_express(&e, FLOW_OP_sum, e_where(&e, kept, x, flow_express_number(&e, x, 0)), NULL, NULL, &attributes);
  flow_tensor *count = flow_express(&e, FLOW_OP_sum, flow_express_cast(&e, kept, x->dtype), NULL, NULL, &attributes);
  return flow_expression_take(&e, e_div(&e, sum, count), outputs);
}

/* An output without steps carries no mask; *out stays NULL. */
static flow_status compute_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out)
{
  (void)context; (void)layer; (void)inputs; (void)masks; (void)count; (void)out;
  return FLOW_OK;      /* there are no steps any more */
}

const flow_layer_class flow_layer_global_average_pooling1d = {
  .name = "GlobalAveragePooling1D",
  .alias = "GlobalAvgPool1D",
  .positional = 2,
  .parameters = flow_pooling_global_parameters,
  .input_names = input_names,
  .options = no_options,
  .call_named = call,
  .supports_masking = 1,
  .compute_mask = compute_mask,
  .doc = "The mean of each feature over the steps."
};
