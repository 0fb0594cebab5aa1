/* matrix_product.c: rules of products of matrices. */
#include "ops/expression.h"
#include "ops/matrix_product.h"
#include "ops/rules.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* What an operand is whose rows lie before its last leading axis in memory (flow_swapped), and the other way round. */
static flow_signature unswapped(flow_signature x, int swapped)
{
  if (!swapped) return x;
  int64_t rows = x.dims[x.rank - 3];
  x.dims[x.rank - 3] = x.dims[x.rank - 2];
  x.dims[x.rank - 2] = rows;
  return x;
}

/* NumPy's rules: the last two axes multiply, the ones before broadcast; a of rank 1 is a row, b of rank 1 a column, and
 * the axis that was added goes again. Transposing a rank 1 operand changes nothing. */
flow_status flow_shape_matmul(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)input_count;
  const int swapped = attributes->matmul.swapped, known = FLOW_SWAPPED_A | FLOW_SWAPPED_B | FLOW_SWAPPED_C;
  if (swapped && (inputs[0].rank < 4 || inputs[1].rank != inputs[0].rank || swapped & ~known))
    return flow_rule_fail(op, "swapped is %d with operands of %d and %d axes; it is a sum of 1, 2 and 4, for four axes or more", swapped,
                          inputs[0].rank, inputs[1].rank);
  const flow_signature first = unswapped(inputs[0], swapped & FLOW_SWAPPED_A), second = unswapped(inputs[1], swapped & FLOW_SWAPPED_B);
  const flow_signature *a = &first, *b = &second;
  FLOW_TRY(flow_rule_same_dtype(op, "b", a->dtype, b));
  if (a->rank == 0 || b->rank == 0) {
    return flow_rule_fail(op, "shapes %s and %s: scalars have no rows and columns; use mul", flow_shape_text(a->rank, a->dims),
                          flow_shape_text(b->rank, b->dims));
  }
  int transpose_a = attributes->matmul.transpose_a && a->rank > 1, transpose_b = attributes->matmul.transpose_b && b->rank > 1;
  int64_t inner_a = a->dims[a->rank - (transpose_a ? 2 : 1)];
  int64_t inner_b = b->rank == 1 ? b->dims[0] : b->dims[b->rank - (transpose_b ? 1 : 2)];
  if (inner_a != inner_b) {
    return flow_rule_fail(op, "a %s%s has %lld columns, b %s%s has %lld rows; these must be equal", flow_shape_text(a->rank, a->dims),
                          transpose_a ? " transposed" : "", (long long)inner_a, flow_shape_text(b->rank, b->dims),
                          transpose_b ? " transposed" : "", (long long)inner_b);
  }
  flow_signature leading_a = *a, leading_b = *b, out;
  leading_a.rank = a->rank > 2 ? a->rank - 2 : 0;
  leading_b.rank = b->rank > 2 ? b->rank - 2 : 0;
  FLOW_TRY(flow_rule_broadcast(op, &leading_a, &leading_b, &out));
  out.dtype = a->dtype;
  if (a->rank > 1) out.dims[out.rank++] = a->dims[a->rank - (transpose_a ? 1 : 2)];
  if (b->rank > 1) out.dims[out.rank++] = b->dims[b->rank - (transpose_b ? 2 : 1)];
  flow_extent extent;
  FLOW_TRY(flow_rule_extent(op, out.rank, out.dims, &extent));
  outputs[0] = unswapped(out, swapped & FLOW_SWAPPED_C);
  return FLOW_OK;
}

/* Whether q, k and v have the same axes before rows and columns. */
static int lead_alike(const flow_signature *a, const flow_signature *b)
{
  return a->rank == b->rank && a->rank >= 2 && flow_shape_equal(a->rank - 2, a->dims, b->rank - 2, b->dims);
}

/* softmax(q k^T) v: the shapes of both products, of a mask that broadcasts to the scores, and of two numbers for each row. */
flow_status flow_shape_attention(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                 flow_signature *outputs)
{
  const int swapped = attributes->matmul.swapped, swapped_v = swapped & FLOW_ATTENTION_V, swapped_y = swapped & FLOW_ATTENTION_Y;
  const flow_signature q = unswapped(inputs[0], swapped & FLOW_ATTENTION_Q), k = unswapped(inputs[1], swapped & FLOW_ATTENTION_K);
  const flow_signature v = unswapped(inputs[2], swapped_v);
  const flow_attributes first = { .matmul = { .transpose_b = 1 } }, second = { .matmul = { 0 } };
  flow_signature scores, seen, y;
  if (q.dtype != FLOW_FLOAT32 && q.dtype != FLOW_FLOAT16 && q.dtype != FLOW_BFLOAT16)
    return flow_rule_fail(op, "q is %s, expected float32 or a float of 16 bits", flow_dtype_name(q.dtype));
  for (int i = 1; i < 3; i++)
    if (inputs[i].dtype != q.dtype)
      return flow_rule_fail(op, "%c is %s, expected %s, as q is", "qkv"[i], flow_dtype_name(inputs[i].dtype), flow_dtype_name(q.dtype));
  if (!lead_alike(&q, &k) || !lead_alike(&q, &v))
    return flow_rule_fail(op, "q %s, k %s and v %s are to have the same axes before the last two", flow_shape_text(q.rank, q.dims),
                          flow_shape_text(k.rank, k.dims), flow_shape_text(v.rank, v.dims));
  FLOW_TRY(flow_shape_matmul(op, &first, (flow_signature[]){ q, k }, 2, &scores));
  FLOW_TRY(flow_shape_matmul(op, &second, (flow_signature[]){ scores, v }, 2, &y));
  outputs[0] = unswapped(y, swapped_y);
  outputs[1] = scores;
  outputs[1].dtype = FLOW_FLOAT32;
  outputs[1].dims[scores.rank - 1] = 2;
  if (input_count == 3) return FLOW_OK;
  if (input_count == 4 || inputs[3].dtype != FLOW_BOOL || inputs[4].rank != 0 || inputs[4].dtype != FLOW_FLOAT32)
    return flow_rule_fail(op, "a mask of bool comes with a float32 scalar for the scores that it leaves out");
  FLOW_TRY(flow_rule_broadcast(op, &inputs[3], &scores, &seen));
  return flow_rule_dims(op, "what the mask and the scores give", &seen, scores.rank, scores.dims);
}

/* dv, dq and dk have the shapes of v, q and k, each as it is to lie in memory. */
flow_status flow_shape_attention_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                          flow_signature *outputs)
{
  static const struct { int input, of, to; } results[] = {
    { 3, FLOW_ATTENTION_V, FLOW_ATTENTION_DV }, { 1, FLOW_ATTENTION_Q, FLOW_ATTENTION_DQ }, { 2, FLOW_ATTENTION_K, FLOW_ATTENTION_DK },
  };
  const int swapped = attributes->matmul.swapped, kept = swapped & FLOW_ATTENTION_KEPT ? 2 : 0;
  flow_signature y[2];
  if (input_count < 4 + kept) return flow_rule_fail(op, "there are %d operands, expected %d or more", input_count, 4 + kept);
  FLOW_TRY(flow_shape_attention(op, attributes, inputs + 1, input_count - 1 - kept, y));
  FLOW_TRY(flow_rule_same_dtype(op, "g", y[0].dtype, &inputs[0]));
  FLOW_TRY(flow_rule_dims(op, "g", &inputs[0], y[0].rank, y[0].dims));
  y[0] = unswapped(unswapped(y[0], swapped & FLOW_ATTENTION_Y), swapped & FLOW_ATTENTION_KEPT_Y);
  for (int i = 0; i < kept; i++) {
    FLOW_TRY(flow_rule_same_dtype(op, "a result", y[i].dtype, &inputs[input_count - kept + i]));
    FLOW_TRY(flow_rule_dims(op, "a result", &inputs[input_count - kept + i], y[i].rank, y[i].dims));
  }
  for (int i = 0; i < 3; i++)
    outputs[i] = unswapped(unswapped(inputs[results[i].input], swapped & results[i].of), swapped & results[i].to);
  return FLOW_OK;
}

/* x {..., inputs}, w {inputs, units}, b {units} -> {..., units}: only the last axis of x is multiplied. */
flow_status flow_shape_dense(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *x = &inputs[0], *w = &inputs[1], *b = &inputs[2];
  FLOW_TRY(flow_rule_float(op, "x", x));
  FLOW_TRY(flow_rule_same_dtype(op, "w", x->dtype, w));
  FLOW_TRY(flow_rule_same_dtype(op, "b", x->dtype, b));
  FLOW_TRY(flow_rule_activation(op, attributes->matmul.activation));
  FLOW_TRY(flow_rule_rank(op, "w", w, 2, "{inputs, units}"));
  if (x->rank == 0) return flow_rule_fail(op, "x is a scalar, expected {..., %lld}", (long long)w->dims[0]);
  if (x->dims[x->rank - 1] != w->dims[0]) {
    return flow_rule_fail(op, "x %s has %lld values in its last axis, w %s expects %lld", flow_shape_text(x->rank, x->dims),
                          (long long)x->dims[x->rank - 1], flow_shape_text(2, w->dims), (long long)w->dims[0]);
  }
  FLOW_TRY(flow_rule_dims(op, "b", b, 1, &w->dims[1]));
  flow_signature out = *x;
  out.dims[out.rank - 1] = w->dims[1];
  flow_extent extent;
  FLOW_TRY(flow_rule_extent(op, out.rank, out.dims, &extent));
  outputs[0] = out;
  return FLOW_OK;
}

/* ---- batch kinds ------------------------------------------------------------------------------------------------- */

/* MAP where each row of the batch has its own matrices, which stay in a core's cache between the ops before and after. Larger matrices
 * are WHOLE, since they are cut themselves: few rows of long sequences need that. */
flow_batch_kind flow_kind_matmul(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  enum { MOST_ELEMENTS = 1 << 16, MOST_WORK = 1 << 22 };
  if (input_count < 2) return FLOW_WHOLE;
  const int swapped = attributes->matmul.swapped;
  const flow_signature first = unswapped(inputs[0], swapped & FLOW_SWAPPED_A), second = unswapped(inputs[1], swapped & FLOW_SWAPPED_B);
  const flow_signature *a = &first, *b = &second;
  if (a->rank < 3 || a->rank != b->rank || a->dims[0] >= 0 || a->dims[0] != b->dims[0]) return FLOW_WHOLE;
  double of_a = 1, of_b = 1, columns = (double)b->dims[b->rank - (attributes->matmul.transpose_b ? 2 : 1)];
  for (int i = 1; i < a->rank; i++) {
    if (a->dims[i] < 0 || (i < a->rank - 2 && a->dims[i] != b->dims[i])) return FLOW_WHOLE;
    of_a *= (double)a->dims[i];
    of_b *= (double)b->dims[i];
  }
  return of_a <= MOST_ELEMENTS && of_b <= MOST_ELEMENTS && of_a * columns <= MOST_WORK ? FLOW_MAP : FLOW_WHOLE;
}

/* MAP where a row of the batch has enough rows of the matrix to share a copy of the weights, and neither is too large for a core's cache:
 * then ops before and after go on with what is there. */
flow_batch_kind flow_kind_dense(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  enum { FEWEST_ROWS = 48, MOST_WEIGHTS = 1 << 18, MOST_ELEMENTS = 1 << 17 };
  (void)attributes;
  if (input_count < 2 || inputs[0].rank < 3 || inputs[0].dims[0] >= 0) return FLOW_WHOLE;
  const flow_signature *x = &inputs[0], *w = &inputs[1];
  double rows = 1, inputs_of = (double)w->dims[0], units = (double)w->dims[1];
  for (int i = 1; i < x->rank - 1; i++) {
    if (x->dims[i] < 0) return FLOW_WHOLE;
    rows *= (double)x->dims[i];
  }
  return rows >= FEWEST_ROWS && inputs_of * units <= MOST_WEIGHTS && rows * (inputs_of > units ? inputs_of : units) <= MOST_ELEMENTS
             ? FLOW_MAP
             : FLOW_WHOLE;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* matmul(a, b), each transposed if its flag says so. */
static flow_tensor *multiply(flow_expression *e, flow_tensor *a, flow_tensor *b, int transpose_a, int transpose_b)
{
  flow_attributes attributes = { .matmul = { .transpose_a = transpose_a, .transpose_b = transpose_b } };
  return flow_express(e, FLOW_OP_matmul, a, b, NULL, &attributes);
}

/* With A = a or its transpose, B likewise, and y = A B: dA = g B^T, dB = A^T g; of a transposed operand the transpose is
 * wanted. Operands of rank 1 become a row and a column first, as in the forward op. */
flow_status flow_gradient_matmul(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *a = step->inputs[0], *b = step->inputs[1];
  if (g == NULL) return FLOW_OK;
  if (step->attributes->matmul.swapped)
    return flow_fail(FLOW_UNSUPPORTED, "matmul: a product of swapped axes, as plans make them, has no gradient; transpose its operands "
                     "instead");
  int transpose_a = step->attributes->matmul.transpose_a && a->rank > 1;
  int transpose_b = step->attributes->matmul.transpose_b && b->rank > 1;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *results[2] = { NULL, NULL };
  if (a->rank == 1 &&
      b->rank == 1) { /* of y, a number, each gradient is the other vector times g: a product of matrices would take longer */
    if (step->needed[0]) results[0] = e_mul(&e, g, b);
    if (step->needed[1]) results[1] = e_mul(&e, g, a);
    return flow_expression_give(&e, step, results);
  }
  if (b->rank == 1) g = flow_express_insert_axis(&e, g, g->rank);
  if (a->rank == 1 && e.status == FLOW_OK) g = flow_express_insert_axis(&e, g, g->rank - 1);
  if (a->rank == 1) a = flow_express_insert_axis(&e, a, 0);
  if (b->rank == 1) b = flow_express_insert_axis(&e, b, 1);
  if (e.status == FLOW_OK && step->needed[0]) {
    flow_tensor *da = transpose_a ? multiply(&e, b, g, transpose_b, 1) : multiply(&e, g, b, 0, !transpose_b);
    results[0] = flow_express_reshape_like(&e, flow_express_sum_to(&e, da, a), step->inputs[0]);
  }
  if (e.status == FLOW_OK && step->needed[1]) {
    if (b->rank == 2 && !transpose_a && flow_express_has_rows(a)) { /* one long product instead of one a batch and a sum over them */
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
  flow_expression e = flow_gradient_expression(step);
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
