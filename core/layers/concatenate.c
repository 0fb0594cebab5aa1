/* concatenate.c: Concatenate: a list of inputs side by side along one axis; their other dimensions must be equal. */
#include <limits.h>

#include "layers/express.h"
#include "layers/layer.h"
#include "tensor/axis.h"

static const flow_argument parameters[] = {
  { "axis", FLOW_INTEGER, "-1", NULL },
  FLOW_LAYER_COMMON
};

/* Sizes that depend on the rows are not compared here: the op knows them. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)training;
  int rank = inputs[0]->rank, axis;
  FLOW_TRY(flow_layer_axis(layer, "axis", rank, &axis));
  for (int i = 1; i < count; i++) {
    int fits = inputs[i]->rank == rank;
    for (int j = 0; fits && j < rank; j++) {
      int64_t a = inputs[0]->shape[j], b = inputs[i]->shape[j];
      if (j != axis && a >= 0 && b >= 0 && a != b) fits = 0;
    }
    if (!fits)
      return flow_layer_fail(layer, "inputs 1 and %d have shapes %s and %s; they may differ along axis %d only", i + 1,
                             flow_tensor_shape_text(inputs[0]), flow_tensor_shape_text(inputs[i]), flow_axis_number(axis));
  }
  if (count == 1) {
    *out = flow_tensor_retain(inputs[0]);
    return FLOW_OK;
  }
  flow_attributes attributes = { .axis = { axis } };
  flow_tensor *output;
  flow_expression e = flow_expression_of(context);
  flow_express_all(&e, FLOW_OP_concat, inputs, count, &attributes, &output);
  return flow_expression_take(&e, output, out);
}

/* The mask of one input in its own shape, so that they can be joined; all count where it has none. */
static flow_tensor *whole_mask(flow_expression *e, flow_tensor *x, flow_tensor *mask)
{
  flow_tensor *all = NULL;
  if (mask && mask->rank >= x->rank) return mask;
  if (mask) {
    int64_t dims[FLOW_MAX_RANK] = { 0 };
    for (int i = 0; i < mask->rank; i++) dims[i] = mask->shape[i];
    dims[mask->rank] = 1;
    return flow_express_broadcast_like(e, flow_express_reshape(e, mask, mask->rank + 1, dims), x);
  }
  flow_status status = flow_tensor_scalar(FLOW_BOOL, 1, &all);
  return flow_express_broadcast_like(e, flow_express_keep(e, status, all), x);
}

/* A step counts where it does in one of the inputs, or, joined along the steps, as in its own. */
static flow_status compute_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out)
{
  int any = 0, axis;
  void *block;
  for (int i = 0; i < count; i++) any |= masks[i] != NULL;
  if (!any) return FLOW_OK;
  FLOW_TRY(flow_layer_axis(layer, "axis", inputs[0]->rank, &axis));
  FLOW_TRY(flow_alloc(sizeof(flow_tensor *) * (size_t)count, &block));
  flow_tensor **whole = block, *joined = NULL;
  flow_attributes attributes = { .axis = { axis } };
  flow_expression e = flow_expression_of(context);
  for (int i = 0; i < count; i++) whole[i] = whole_mask(&e, inputs[i], masks[i]);
  if (count == 1) joined = whole[0];
  else flow_express_all(&e, FLOW_OP_concat, whole, count, &attributes, &joined);
  flow_attributes last = { .reduce = { .count = 1, .axes = { joined ? joined->rank - 1 : 0 } } };
  flow_free(block);
  return flow_expression_take(&e, flow_express(&e, FLOW_OP_any, joined, NULL, NULL, &last), out);
}

const flow_layer_class flow_layer_concatenate = {
  .name = "Concatenate",
  .positional = 1,
  .parameters = parameters,
  .max_inputs = INT_MAX,
  .call = call,
  .supports_masking = 1,
  .compute_mask = compute_mask,
  .doc = "A list of inputs joined along axis."
};
