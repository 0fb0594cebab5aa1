/* unit_normalization.c: UnitNormalization: x / |x| for the L2 norm of each sample over the axes `axis`; where that is 0 the result is 0
 * (keras.ops.normalize: 1 / |x| is at most 1e12). */
#include "layers/express.h"
#include "layers/layer.h"
#include "tensor/axis.h"

static const flow_argument parameters[] = {
  { "axis", FLOW_SHAPE, "-1", NULL },
  FLOW_LAYER_COMMON
};

/* The axes of the norm, as those of a reduction that keeps them. */
static flow_status norm_axes(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  const double *axes;
  int count = flow_argument_list(layer->arguments, "axis", &axes);
  unsigned seen = 1;                     /* the batch's: its samples have nothing to do with each other */
  *reduce = (flow_attributes){ .reduce = { .keepdims = 1 } };
  for (int i = 0; i < count; i++) {
    int axis = (int)axes[i] < 0 ? (int)axes[i] + x->rank : (int)axes[i];
    if (axis < 0 || axis >= x->rank || (seen >> axis & 1))
      return flow_layer_fail(layer, "axis %d (counted from 1) of the input %s cannot be normalized: expected each axis once, and not "
                             "the batch", flow_axis_number((int)axes[i]), flow_tensor_shape_text(x));
    seen |= 1u << axis;
    reduce->reduce.axes[reduce->reduce.count++] = axis;
  }
  return count > 0 ? FLOW_OK : flow_layer_fail(layer, "axis is empty, expected one axis or more");
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_attributes reduce;
  FLOW_TRY(norm_axes(layer, inputs[0], &reduce));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_dtype_is_float(inputs[0]->dtype) ? inputs[0] : flow_express_cast(&e, inputs[0], FLOW_FLOAT32);
  flow_tensor *squares = flow_express(&e, FLOW_OP_sum, e_square(&e, x), NULL, NULL, &reduce);
  flow_tensor *inverse = e_rsqrt(&e, squares);
  if (inverse) inverse = e_minimum(&e, inverse, flow_express_number(&e, inverse, 1e12));
  return flow_expression_take(&e, e_mul(&e, x, inverse), out);
}

const flow_layer_class flow_layer_unit_normalization = {
  .name = "UnitNormalization", .positional = 1, .parameters = parameters, .min_inputs = 1, .max_inputs = 1, .call = call,
  .supports_masking = 1,
  .doc = "Each sample divided by its L2 norm along axis."
};
