/* concatenate.c: Concatenate: a list of inputs side by side along one axis; their other dimensions must be equal. */
#include <limits.h>

#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "axis", FLOW_INTEGER, "-1", NULL },
  FLOW_LAYER_COMMON
};

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
                             flow_tensor_shape_text(inputs[0]), flow_tensor_shape_text(inputs[i]), axis - rank);
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

const flow_layer_class flow_layer_concatenate = {
  .name = "Concatenate", .positional = 1, .parameters = parameters, .min_inputs = 1, .max_inputs = INT_MAX, .call = call,
  .doc = "A list of inputs joined along axis."
};
