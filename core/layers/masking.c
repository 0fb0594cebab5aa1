/* masking.c: Masking: leaves out the steps whose features are all mask_value: they are zeros in the output, whose mask says which count.
 * {batch, steps, features}, or any rank from 1 on: the last axis is that of the features. A feature that is NaN differs from mask_value,
 * so that its step counts. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "mask_value", FLOW_NUMBER, "0", NULL },
  FLOW_LAYER_COMMON
};

/* {batch, steps, features}: which steps have a feature that is not mask_value, {batch, steps}, or with keepdims {batch, steps, 1}. */
static flow_tensor *counts(flow_expression *e, const flow_layer *layer, flow_tensor *x, int keepdims)
{
  flow_attributes last = { .reduce = { .count = 1, .keepdims = keepdims, .axes = { x->rank - 1 } } };
  flow_tensor *differs = e_ne(e, x, flow_express_number(e, x, flow_argument_number(layer->arguments, "mask_value")));
  return flow_express(e, FLOW_OP_any, differs, NULL, NULL, &last);
}

static flow_status check_rank(const flow_layer *layer, const flow_tensor *x)
{
  if (x->rank > 0) return FLOW_OK;
  return flow_layer_fail(layer, "input is a scalar, expected {batch, steps, features}");
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  FLOW_TRY(check_rank(layer, inputs[0]));
  flow_expression e = flow_expression_of(context);
  flow_tensor *kept = counts(&e, layer, inputs[0], 1);
  return flow_expression_take(&e, e_where(&e, kept, inputs[0], flow_express_number(&e, inputs[0], 0)), out);
}

/* The input's own mask does not take part, as in Keras. */
static flow_status compute_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out)
{
  (void)masks; (void)count;
  FLOW_TRY(check_rank(layer, inputs[0]));
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, counts(&e, layer, inputs[0], 0), out);
}

const flow_layer_class flow_layer_masking = {
  .name = "Masking",
  .positional = 1,
  .parameters = parameters,
  .call = call,
  .supports_masking = 1,
  .compute_mask = compute_mask,
  .doc = "Lets layers after it leave out the steps whose features are all mask_value."
};
