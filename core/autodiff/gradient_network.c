/* gradient_network.c: derivatives of linear algebra, convolution, pooling, normalization, softmax and losses. Most of
 * these ops have their own gradient op, whose kernel shares work with the forward one. */
#include "autodiff/expression.h"
#include "autodiff/gradients.h"
#include "autodiff/apply.h"
#include "ops/rules.h"

/* ---- linear algebra ------------------------------------------------------------------------------------------------------ */

/* matmul(a, b), each transposed if its flag says so. */
static flow_tensor *multiply(flow_expression *e, flow_tensor *a, flow_tensor *b, int transpose_a, int transpose_b)
{
  flow_attributes attributes = { .matmul = { .transpose_a = transpose_a, .transpose_b = transpose_b } };
  return flow_express(e, FLOW_OP_matmul, a, b, NULL, &attributes);
}

/* x with an axis of size 1 before axis `at`. */
static flow_tensor *insert_axis(flow_expression *e, flow_tensor *x, int at)
{
  if (e->status != FLOW_OK) return NULL;
  flow_attributes attributes = { .shape = { .rank = x->rank + 1 } };
  for (int i = 0; i <= x->rank; i++) attributes.shape.dims[i] = i < at ? x->shape[i] : i == at ? 1 : x->shape[i - 1];
  return flow_express(e, FLOW_OP_reshape, x, NULL, NULL, &attributes);
}

/* With A = a or its transpose, B likewise, and y = A B: dA = g B^T, dB = A^T g; of a transposed operand the transpose is
 * wanted. Operands of rank 1 become a row and a column first, as in the forward op. */
flow_status flow_gradient_matmul(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *a = step->inputs[0], *b = step->inputs[1];
  if (g == NULL) return FLOW_OK;
  int transpose_a = step->attributes->matmul.transpose_a && a->rank > 1;
  int transpose_b = step->attributes->matmul.transpose_b && b->rank > 1;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *results[2] = { NULL, NULL };
  if (b->rank == 1) g = insert_axis(&e, g, g->rank);
  if (a->rank == 1 && e.status == FLOW_OK) g = insert_axis(&e, g, g->rank - 1);
  if (a->rank == 1) a = insert_axis(&e, a, 0);
  if (b->rank == 1) b = insert_axis(&e, b, 1);
  if (e.status == FLOW_OK && step->needed[0]) {
    flow_tensor *da = transpose_a ? multiply(&e, b, g, transpose_b, 1) : multiply(&e, g, b, 0, !transpose_b);
    results[0] = flow_express_reshape_like(&e, flow_express_sum_to(&e, da, a), step->inputs[0]);
  }
  if (e.status == FLOW_OK && step->needed[1]) {
    if (b->rank == 2 && !transpose_a && flow_express_has_rows(a)) {   /* one long product instead of one a batch and a sum over them */
      a = flow_express_rows(&e, a);
      g = flow_express_rows(&e, g);
    }
    flow_tensor *db = transpose_b ? multiply(&e, g, a, 1, transpose_a) : multiply(&e, a, g, !transpose_a, 0);
    results[1] = flow_express_reshape_like(&e, flow_express_sum_to(&e, db, b), step->inputs[1]);
  }
  return flow_expression_give(&e, step, results);
}

/* y = activation(x w + b). */
flow_status flow_gradient_dense(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0], *w = step->inputs[1];
  if (g == NULL) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *results[3] = { NULL, NULL, NULL };
  if (step->attributes->matmul.activation == FLOW_RELU) g = e_relu_gradient(&e, g, step->outputs[0]);
  if (step->needed[0]) results[0] = multiply(&e, g, w, 0, 1);
  flow_tensor *rows = step->needed[1] || step->needed[2] ? flow_express_rows(&e, g) : NULL;
  if (step->needed[1]) results[1] = multiply(&e, flow_express_rows(&e, x), rows, 1, 0);
  if (step->needed[2]) {
    results[2] = flow_express(&e, FLOW_OP_sum, rows, NULL, NULL, &(flow_attributes){ .reduce = { .count = 1, .axes = { 0 } } });
  }
  return flow_expression_give(&e, step, results);
}

/* ---- convolution and pooling ------------------------------------------------------------------------------------------------ */

/* One op makes dx, dw and db, since they read the same g; those that nobody needs are left out by the kernel, as nothing reads them. */
flow_status flow_gradient_convolution(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0], *w = step->inputs[1];
  if (g == NULL) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  for (int i = 0; i < 2; i++) attributes.convolution.input_size[i] = (int32_t)x->shape[i + 1];
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *operands[5] = { g, x, w, step->outputs[0], step->outputs[1] }, *results[3];
  double scale = attributes.convolution.input_scale;
  attributes.convolution.input_scale = 0;
  flow_express_all(&e, FLOW_OP_convolution_gradient, operands, 5, &attributes, results);
  if (scale != 0) {      /* both dx and dw are those of scale * x */
    if (step->needed[0]) results[0] = e_mul(&e, results[0], flow_express_number(&e, results[0], scale));
    if (step->needed[1]) results[1] = e_mul(&e, results[1], flow_express_number(&e, results[1], scale));
  }
  for (int i = 0; i < step->input_count; i++) {
    if (!step->needed[i]) results[i] = NULL;
  }
  return flow_expression_give(&e, step, results);
}

/* The second derivative. With m the activation's mask, dx, dw, db are each linear in m g and in the other operand; their
 * incoming gradients are ux, uw, ub:
 *   for g: m (conv(ux, w) + conv(x, uw) + ub);  for x: what uw lets through, dx(m g, uw);  for w: dw(m g, ux). */
flow_status flow_gradient_convolution_gradient(flow_gradient_step *step)
{
  flow_tensor *g = step->inputs[0], *x = step->inputs[1], *w = step->inputs[2], *y = step->inputs[3], *index = step->inputs[4];
  flow_tensor *ux = step->output_gradients[0], *uw = step->output_gradients[1], *ub = step->output_gradients[2];
  if (step->attributes->convolution.pool[0] > 0) {
    return flow_fail(FLOW_UNSUPPORTED, "second derivatives of a convolution fused with pooling are not supported; run it eagerly");
  }
  int masked = step->attributes->convolution.activation == FLOW_RELU;
  flow_attributes linear = *step->attributes;
  linear.convolution.activation = FLOW_LINEAR;
  linear.convolution.has_bias = 0;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *results[5] = { NULL }, *outputs[3];
  if (step->needed[0]) {
    flow_tensor *sum = NULL, *terms[3] = { NULL, NULL, NULL };
    if (ux) {
      flow_express_all(&e, FLOW_OP_convolution, (flow_tensor *[]){ ux, w }, 2, &linear, outputs);
      terms[0] = outputs[0];
    }
    if (uw) {
      flow_express_all(&e, FLOW_OP_convolution, (flow_tensor *[]){ x, uw }, 2, &linear, outputs);
      terms[1] = outputs[0];
    }
    if (ub) terms[2] = flow_express_broadcast_like(&e, ub, g);
    for (int i = 0; i < 3; i++) {
      if (terms[i]) sum = sum ? e_add(&e, sum, terms[i]) : terms[i];
    }
    results[0] = sum && masked ? e_relu_gradient(&e, sum, y) : sum;
  }
  if (masked) g = e_relu_gradient(&e, g, y);
  if (step->needed[1] && uw) {
    flow_express_all(&e, FLOW_OP_convolution_gradient, (flow_tensor *[]){ g, x, uw, y, index }, 5, &linear, outputs);
    results[1] = outputs[0];
  }
  if (step->needed[2] && ux) {
    flow_express_all(&e, FLOW_OP_convolution_gradient, (flow_tensor *[]){ g, ux, w, y, index }, 5, &linear, outputs);
    results[2] = outputs[1];
  }
  return flow_expression_give(&e, step, results);
}

/* The op has kept which element of a window was its maximum; g goes there. */
flow_status flow_gradient_max_pool(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0] || !flow_dtype_is_float(x->dtype)) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  for (int i = 0; i < 2; i++) attributes.pool.input_size[i] = (int32_t)x->shape[i + 1];
  return flow_apply1(step->context, FLOW_OP_max_pool_gradient, g, step->outputs[1], NULL, &attributes, &step->input_gradients[0]);
}

flow_status flow_gradient_average_pool(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  for (int i = 0; i < 2; i++) attributes.pool.input_size[i] = (int32_t)x->shape[i + 1];
  return flow_apply1(step->context, FLOW_OP_average_pool_gradient, g, NULL, NULL, &attributes, &step->input_gradients[0]);
}

/* Averaging is linear, and this its transpose: the transpose of that is averaging again. */
flow_status flow_gradient_average_pool_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0];
  if (u == NULL || !step->needed[0]) return FLOW_OK;
  return flow_apply1(step->context, FLOW_OP_average_pool, u, NULL, NULL, step->attributes, &step->input_gradients[0]);
}

/* For gradient ops: silence would be a wrong second derivative. */
flow_status flow_gradient_unsupported(flow_gradient_step *step)
{
  return flow_fail(FLOW_UNSUPPORTED, "%s: second derivatives through this op are not supported", flow_op(step->op)->name);
}

/* Bytes have no gradient: silence would train the layers before them for nothing. */
flow_status flow_gradient_quantized(flow_gradient_step *step)
{
  return flow_fail(FLOW_UNSUPPORTED, "%s: a quantized layer only predicts: train the float32 model, and quantize it then",
                   flow_op(step->op)->name);
}

/* ---- normalization, softmax, losses ------------------------------------------------------------------------------------------- */

/* Mean and variance as results feed moving averages only: nothing flows back from them. */
flow_status flow_gradient_batch_norm(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *operands[5] = { g, step->inputs[0], step->inputs[1], step->outputs[1], step->outputs[2] }, *results[3];
  flow_express_all(&e, FLOW_OP_batch_norm_gradient, operands, 5, step->attributes, results);
  for (int i = 0; i < 3; i++) {
    if (!step->needed[i]) results[i] = NULL;
  }
  return flow_expression_give(&e, step, results);
}

static flow_tensor *sum_along(flow_expression *e, flow_tensor *x, int axis, int keepdims)
{
  flow_attributes attributes = { .reduce = { .count = 1, .keepdims = keepdims, .axes = { axis } } };
  return flow_express(e, FLOW_OP_sum, x, NULL, NULL, &attributes);
}

flow_status flow_gradient_softmax(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  return flow_apply1(step->context, FLOW_OP_softmax_gradient, g, step->outputs[0], NULL, step->attributes, &step->input_gradients[0]);
}

/* z = (g - sum(g y)) y; u arrives. For g the same again, the matrix is symmetric; for y: u (g - sum(g y)) - g sum(u y). */
flow_status flow_gradient_softmax_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0], *g = step->inputs[0], *y = step->inputs[1];
  int axis = step->attributes->axis.axis;
  if (u == NULL) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *results[2] = { NULL, NULL };
  if (step->needed[0]) results[0] = flow_express(&e, FLOW_OP_softmax_gradient, u, y, NULL, step->attributes);
  if (step->needed[1]) {
    flow_tensor *centred = e_sub(&e, g, sum_along(&e, e_mul(&e, g, y), axis, 1));
    results[1] = e_sub(&e, e_mul(&e, u, centred), e_mul(&e, g, sum_along(&e, e_mul(&e, u, y), axis, 1)));
  }
  return flow_expression_give(&e, step, results);
}

/* y = x - log(sum of e^x): dx = g - softmax(x) * sum of g. */
flow_status flow_gradient_log_softmax(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *total = sum_along(&e, g, step->attributes->axis.axis, 1);
  flow_tensor *dx = e_sub(&e, g, e_mul(&e, e_exp(&e, step->outputs[0]), total));
  return flow_expression_take(&e, dx, &step->input_gradients[0]);
}

flow_status flow_gradient_sparse_cross_entropy(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  return flow_apply1(step->context, FLOW_OP_sparse_cross_entropy_gradient, g, step->inputs[0], step->inputs[1], NULL,
                     &step->input_gradients[0]);
}

/* r = g (softmax(z) - onehot); u arrives. For g: sum over classes of u (softmax(z) - onehot); for z: softmax' of u g. */
flow_status flow_gradient_sparse_cross_entropy_gradient(flow_gradient_step *step)
{
  flow_tensor *u = step->output_gradients[0], *g = step->inputs[0], *z = step->inputs[1], *labels = step->inputs[2];
  const flow_attributes last = { .axis = { .axis = -1 } };
  if (u == NULL) return FLOW_OK;
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *results[3] = { NULL, NULL, NULL };
  if (step->needed[0]) {
    flow_tensor *ones = flow_express_broadcast_like(&e, flow_express_number(&e, g, 1), g);
    flow_tensor *slope = flow_express(&e, FLOW_OP_sparse_cross_entropy_gradient, ones, z, labels, NULL);
    results[0] = sum_along(&e, e_mul(&e, u, slope), -1, 0);
  }
  if (step->needed[1]) {
    flow_tensor *y = flow_express(&e, FLOW_OP_softmax, z, NULL, NULL, &last);
    results[1] = flow_express(&e, FLOW_OP_softmax_gradient, e_mul(&e, u, insert_axis(&e, g, g->rank)), y, NULL, &last);
  }
  return flow_expression_give(&e, step, results);
}
