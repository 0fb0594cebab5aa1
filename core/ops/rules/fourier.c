/* fourier.c: rules of fourier, discrete Fourier transforms along the last axis: entry k is the sum over j of
 * x[j] e^(-2 pi i j k / n), with + where it is inverse, for the first `count` k, of a line whose elements beyond those given are zeros. So
 * the transform of the gradient, with the other sign and as many entries as x has elements, is what flows back. */
#include "ops/expression.h"
#include "ops/rules.h"

enum { LONGEST = 1 << 30 };

/* re, and im of its dtype and shape, {..., m}: both parts of the transform, {..., fourier.count}. */
flow_status flow_shape_fourier(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                               flow_signature *outputs)
{
  const flow_signature *x = &inputs[0];
  int64_t size = attributes->fourier.size, count = attributes->fourier.count;
  flow_extent extent;
  FLOW_TRY(flow_rule_float(op, "the real part", x));
  if (x->rank < 2)
    return flow_rule_fail(op, "the real part has the shape %s, expected {lines, elements} or more axes", flow_shape_text(x->rank, x->dims));
  FLOW_TRY(flow_rule_known(op, "the real part", x, x->rank - 1));
  if (input_count > 1) {
    FLOW_TRY(flow_rule_same_dtype(op, "the imaginary part", x->dtype, &inputs[1]));
    FLOW_TRY(flow_rule_dims(op, "the imaginary part", &inputs[1], x->rank, x->dims));
  }
  if (size < 1 || size > LONGEST)
    return flow_rule_fail(op, "fourier.size is %lld, expected 1 to %lld", (long long)size, (long long)LONGEST);
  if (x->dims[x->rank - 1] > size)
    return flow_rule_fail(op, "lines have %lld elements, expected at most fourier.size, which is %lld", (long long)x->dims[x->rank - 1],
                          (long long)size);
  if (count < 0 || count > size)
    return flow_rule_fail(op, "fourier.count is %lld, expected 0 to fourier.size, which is %lld", (long long)count, (long long)size);
  outputs[0] = *x;
  outputs[0].dims[x->rank - 1] = count;
  outputs[1] = outputs[0];
  /* Devices keep whole lines, twice and as complex numbers: their bytes have to be a number, too. */
  flow_signature whole = outputs[0];
  whole.dims[x->rank - 1] = 8 * size;
  FLOW_TRY(flow_rule_extent(op, whole.rank, whole.dims, &extent));
  return flow_rule_extent(op, outputs[0].rank, outputs[0].dims, &extent);
}

/* The transposed transform of g + i h is that of its sign turned round. Of h alone it is i times that of h as a real line. */
flow_status flow_gradient_fourier(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *h = step->output_gradients[1], *both[2];
  const flow_tensor *x = step->inputs[0];
  if (!g && !h) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_attributes back = *step->attributes;
  back.fourier.inverse = !back.fourier.inverse;
  back.fourier.count = x->shape[x->rank - 1];
  flow_tensor *parts[2] = { g ? g : h, g ? h : NULL };
  flow_express_all(&e, FLOW_OP_fourier, parts, g && h ? 2 : 1, &back, both);
  flow_tensor *results[2] = { g ? both[0] : NULL, g ? both[1] : both[0] };
  if (!g && step->needed[0]) results[0] = e_neg(&e, both[1]);
  for (int i = 0; i < step->input_count; i++)
    if (!step->needed[i]) results[i] = NULL;
  return flow_expression_give(&e, step, results);
}
