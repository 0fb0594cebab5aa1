/* softmax.c: Softmax along an axis, or over several; what a mask leaves out counts as a very small number, and is 0 afterwards. The mask
 * broadcasts to the input; one of another dtype than bool counts where it is above 0.5. keras/src/layers/activations/softmax.py. */
#include "layers/express.h"
#include "layers/layer.h"
#include "tensor/axis.h"

static const flow_argument parameters[] = { { "axis", FLOW_AXES, "-1", NULL }, FLOW_LAYER_COMMON };

enum { INPUTS, MASK };
static const char *const input_names[] = { "inputs", "mask", NULL };
static const flow_argument no_options[] = { FLOW_ARGUMENTS_END };

/* Keras' check: the dimensions of the mask, last to first, are 1 or those of the input. */
static flow_status check_mask(const flow_layer *layer, const flow_tensor *x, const flow_tensor *mask)
{
  int fits = mask->rank <= x->rank;
  for (int i = 1; i <= mask->rank && fits; i++) {
    int64_t own = mask->shape[mask->rank - i], of_input = x->shape[x->rank - i];
    fits = own == 1 || own == of_input || (own < 0) != (of_input < 0);
  }
  if (fits) return FLOW_OK;
  return flow_layer_fail(layer, "mask %s does not broadcast to the input %s", flow_tensor_shape_text(mask), flow_tensor_shape_text(x));
}

/* The axes as attributes of a reduction that keeps them. */
static flow_status read_axes(const flow_layer *layer, const flow_tensor *x, flow_attributes *reduce)
{
  const double *axes;
  int count = flow_argument_list(layer->arguments, "axis", &axes);
  unsigned seen = 0;
  *reduce = (flow_attributes){ .reduce = { .count = count, .keepdims = 1 } };
  for (int i = 0; i < count; i++) {
    int axis = flow_axis_of(axes[i], x->rank), number = flow_axis_number(flow_axis_given(axes[i]));
    if (axis < 0 || axis >= x->rank)
      return flow_layer_fail(layer, "axis %d (counted from 1) is outside an input of %d dimension%s", number, x->rank,
                             x->rank == 1 ? "" : "s");
    if (seen >> axis & 1) return flow_layer_fail(layer, "axis %d (counted from 1) is named twice", number);
    seen |= 1u << axis;
    reduce->reduce.axes[i] = axis;
  }
  return FLOW_OK;
}

/* The op has one axis. */
static flow_tensor *softmax(flow_expression *e, flow_tensor *x, const flow_attributes *reduce)
{
  flow_attributes along = { .axis = { reduce->reduce.axes[0] } };
  if (reduce->reduce.count == 1) return flow_express(e, FLOW_OP_softmax, x, NULL, NULL, &along);
  flow_tensor *total = flow_express(e, FLOW_OP_logsumexp, x, NULL, NULL, reduce);
  return e_exp(e, e_sub(e, x, total));
}

/* The small number is far below what other scores are, and a number of float16, too; a row in which all is left out becomes zeros. */
static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  flow_attributes reduce;
  flow_tensor *x = call->inputs[INPUTS], *mask = call->inputs[MASK];
  FLOW_TRY(read_axes(layer, x, &reduce));
  if (mask) FLOW_TRY(check_mask(layer, x, mask));
  flow_expression e = flow_expression_of(context);
  if (mask && mask->dtype != FLOW_BOOL) mask = e_gt(&e, mask, flow_express_number(&e, mask, 0.5));
  if (mask) x = e_where(&e, mask, x, flow_express_number(&e, x, x->dtype == FLOW_FLOAT16 ? -3e4 : -1e9));
  flow_tensor *y = softmax(&e, x, &reduce);
  if (mask && y) y = e_where(&e, mask, y, flow_express_number(&e, y, 0));
  return flow_expression_take(&e, y, outputs);
}

const flow_layer_class flow_layer_softmax = {
  .name = "Softmax",
  .positional = 1,
  .parameters = parameters,
  .input_names = input_names,
  .options = no_options,
  .call_named = call,
  .supports_masking = 1,
  .doc = "e^x / sum of e^x along axis."
};
