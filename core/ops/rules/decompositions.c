/* decompositions.c: rules of ops that take matrices apart: those of the last two axes, as many as the axes before say. They stay within a
 * row of the batch unless there is one matrix alone (flow_kind_matrices). The formulas of gradients are those of M. Giles, "Collected
 * matrix derivative results for forward and reverse mode algorithmic differentiation", 2008, and where named of others. */
#include "ops/expression.h"
#include "ops/rules.h"
#include "tensor/tensor.h"

/* One matrix is whole: its rows are not those of a batch. */
flow_batch_kind flow_kind_matrices(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)attributes, (void)input_count;
  return inputs[0].rank <= 2 ? FLOW_WHOLE : FLOW_MAP;
}

/* Floats {..., m, n}, whose m and n are numbers. */
static flow_status check_matrices(int op, const char *what, const flow_signature *x)
{
  FLOW_TRY(flow_rule_float(op, what, x));
  if (x->rank < 2) return flow_rule_fail(op, "%s has the shape %s, expected a matrix or several", what, flow_shape_text(x->rank, x->dims));
  return flow_rule_known(op, what, x, x->rank - 2);
}

static flow_status check_squares(int op, const char *what, const flow_signature *x)
{
  FLOW_TRY(check_matrices(op, what, x));
  if (x->dims[x->rank - 2] == x->dims[x->rank - 1]) return FLOW_OK;
  return flow_rule_fail(op, "%s has the shape %s, expected square matrices", what, flow_shape_text(x->rank, x->dims));
}

/* Matrices {m, n}, or of rank 1 vectors {n}, in place of x's. */
static flow_signature in_place(const flow_signature *x, int rank, int64_t m, int64_t n)
{
  flow_signature y = *x;
  y.rank = x->rank - 2 + rank;
  y.dims[y.rank - 1] = n;
  if (rank > 1) y.dims[y.rank - 2] = m;
  return y;
}

static int64_t smaller(const flow_signature *x)
{
  int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1];
  return m < n ? m : n;
}

flow_status flow_shape_cholesky(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                flow_signature *outputs)
{
  (void)attributes, (void)input_count;
  FLOW_TRY(check_squares(op, "the input", &inputs[0]));
  outputs[0] = inputs[0];
  return FLOW_OK;
}

/* a {..., n, n}, b {..., n, k}: x {..., n, k}. */
flow_status flow_shape_solve(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  (void)attributes, (void)input_count;
  const flow_signature *a = &inputs[0], *b = &inputs[1];
  FLOW_TRY(check_squares(op, "a", a));
  FLOW_TRY(check_matrices(op, "b", b));
  FLOW_TRY(flow_rule_same_dtype(op, "b", a->dtype, b));
  flow_signature fitting = in_place(a, 2, a->dims[a->rank - 1], b->dims[b->rank - 1]);
  FLOW_TRY(flow_rule_dims(op, "b", b, fitting.rank, fitting.dims));
  outputs[0] = *b;
  return FLOW_OK;
}

/* x {..., n, n}: both triangles {..., n, n}, swaps and order {..., n}. */
flow_status flow_shape_lu(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count, flow_signature *outputs)
{
  (void)attributes, (void)input_count;
  FLOW_TRY(check_squares(op, "the input", &inputs[0]));
  outputs[0] = inputs[0];
  outputs[1] = in_place(&inputs[0], 1, 0, inputs[0].dims[inputs[0].rank - 1]);
  outputs[1].dtype = FLOW_INT32;
  outputs[2] = outputs[1];
  return FLOW_OK;
}

/* x {..., m, n}: Q {..., m, k} and R {..., k, n}, where k is the smaller size, or m of all of Q. */
flow_status flow_shape_qr(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count, flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *x = &inputs[0];
  flow_extent extent;
  FLOW_TRY(check_matrices(op, "the input", x));
  int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1], k = attributes->matrix.full ? m : smaller(x);
  outputs[0] = in_place(x, 2, m, k);
  outputs[1] = in_place(x, 2, k, n);
  return flow_rule_extent(op, outputs[0].rank, outputs[0].dims, &extent);
}

/* x {..., n, n}: eigenvalues {..., n} and eigenvectors {..., n, n}. */
flow_status flow_shape_eigh(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  (void)attributes, (void)input_count;
  FLOW_TRY(check_squares(op, "the input", &inputs[0]));
  outputs[0] = in_place(&inputs[0], 1, 0, inputs[0].dims[inputs[0].rank - 1]);
  outputs[1] = inputs[0];
  return FLOW_OK;
}

/* x {..., m, n}: U {..., m, k}, s {..., k} and V^T {..., k, n}, k the smaller size; of all of U and V {..., m, m} and {..., n, n}. */
flow_status flow_shape_svd(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                           flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *x = &inputs[0];
  flow_extent extent;
  FLOW_TRY(check_matrices(op, "the input", x));
  int64_t m = x->dims[x->rank - 2], n = x->dims[x->rank - 1], k = smaller(x);
  int full = attributes->matrix.full;
  outputs[0] = in_place(x, 2, m, full ? m : k);
  outputs[1] = in_place(x, 1, 0, k);
  outputs[2] = in_place(x, 2, full ? n : k, n);
  FLOW_TRY(flow_rule_extent(op, outputs[0].rank, outputs[0].dims, &extent));
  return flow_rule_extent(op, outputs[2].rank, outputs[2].dims, &extent);
}

/* ---- formulas ------------------------------------------------------------------------------------------------------------- */

static flow_tensor *product(flow_expression *e, flow_tensor *a, flow_tensor *b, int transpose_a, int transpose_b)
{
  flow_attributes attributes = { .matmul = { .transpose_a = transpose_a, .transpose_b = transpose_b } };
  return flow_express(e, FLOW_OP_matmul, a, b, NULL, &attributes);
}

static flow_tensor *transposed(flow_expression *e, flow_tensor *x)
{
  if (e->status != FLOW_OK) return NULL;
  flow_attributes attributes = { .transpose = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) attributes.transpose.axes[i] = i;
  attributes.transpose.axes[x->rank - 2] = x->rank - 1;
  attributes.transpose.axes[x->rank - 1] = x->rank - 2;
  return flow_express(e, FLOW_OP_transpose, x, NULL, NULL, &attributes);
}

/* a^-1 x, or a^-T x, of a triangle a. */
static flow_tensor *by_triangle(flow_expression *e, flow_tensor *a, flow_tensor *x, int lower, int is_transposed)
{
  flow_attributes attributes = { .matrix = { .lower = lower, .transposed = is_transposed } };
  return flow_express(e, FLOW_OP_solve_triangle, a, x, NULL, &attributes);
}

static flow_tensor *number(flow_expression *e, const flow_tensor *like, double value)
{
  return flow_express_number(e, like, value);
}

/* {n, n} in the dtype of `like`: `below` under the diagonal, `on` on it, `above` above it. */
static flow_tensor *triangles(flow_expression *e, const flow_tensor *like, int64_t n, double below, double on, double above)
{
  flow_tensor *mask = NULL;
  const int64_t dims[2] = { n, n };
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_new(FLOW_FLOAT64, 2, dims, &mask);
  if (!flow_express_keep(e, status, mask)) return NULL;
  double *to = (double *)(void *)mask->data;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) to[i * n + j] = j < i ? below : j == i ? on : above;
  return flow_express_cast(e, mask, like->dtype);
}

/* The elements of square matrices below, on and above the diagonal times these numbers. Of what is left out NaN and infinities go, too. */
static flow_tensor *masked(flow_expression *e, flow_tensor *x, double below, double on, double above)
{
  if (e->status != FLOW_OK) return NULL;
  flow_tensor *mask = triangles(e, x, x->shape[x->rank - 1], below, on, above);
  flow_tensor *kept = mask ? e_ne(e, mask, number(e, mask, 0)) : NULL;
  return kept ? e_where(e, kept, e_mul(e, x, mask), number(e, x, 0)) : NULL;
}

static flow_tensor *unit(flow_expression *e, const flow_tensor *like, int64_t n)
{
  return triangles(e, like, n, 0, 1, 0);
}

/* a + b, of which either may be NULL. */
static flow_tensor *sum_of(flow_expression *e, flow_tensor *a, flow_tensor *b)
{
  return a && b ? e_add(e, a, b) : a ? a : b;
}

/* Vectors {..., n} as rows {..., 1, n}, which scale columns, or as columns {..., n, 1}. */
static flow_tensor *as_rows(flow_expression *e, flow_tensor *x)
{
  return x ? flow_express_insert_axis(e, x, x->rank - 1) : NULL;
}
static flow_tensor *as_columns(flow_expression *e, flow_tensor *x)
{
  return x ? flow_express_insert_axis(e, x, x->rank) : NULL;
}

/* 1 / (values[j] - values[i]) for rows i and columns j, 0 where they are equal. */
static flow_tensor *inverse_differences(flow_expression *e, flow_tensor *values)
{
  flow_tensor *differences = values ? e_sub(e, as_rows(e, values), as_columns(e, values)) : NULL;
  return differences ? e_divide_no_nan(e, number(e, differences, 1), differences) : NULL;
}

/* Columns `from` to `to` of matrices, or the first axes' whole ones. */
static flow_tensor *columns(flow_expression *e, flow_tensor *x, int64_t from, int64_t to)
{
  if (e->status != FLOW_OK || (from == 0 && to == x->shape[x->rank - 1])) return x;
  flow_attributes part = { .slice = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) {
    part.slice.end[i] = FLOW_SLICE_ALL;
    part.slice.step[i] = 1;
  }
  part.slice.begin[x->rank - 1] = from;
  part.slice.end[x->rank - 1] = to;
  return flow_express(e, FLOW_OP_slice, x, NULL, NULL, &part);
}

/* ---- gradients -------------------------------------------------------------------------------------------------------------- */

/* With S = L^-T half(L^T g) L^-1, where half keeps the lower triangle and halves the diagonal: (S + S^T) / 2. */
flow_status flow_gradient_cholesky(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *l = step->outputs[0];
  if (!g || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *half = masked(&e, product(&e, l, masked(&e, g, 1, 1, 0), 1, 0), 1, 0.5, 0);
  flow_tensor *s = by_triangle(&e, l, transposed(&e, by_triangle(&e, l, half, 1, 1)), 1, 1);
  flow_tensor *both = e.status == FLOW_OK ? e_add(&e, s, transposed(&e, s)) : NULL;
  return flow_expression_take(&e, both ? e_mul(&e, both, number(&e, both, 0.5)) : NULL, &step->input_gradients[0]);
}

/* x = a^-1 b: db = a^-T g, da = -db x^T; of the transpose of a its own transpose. */
static flow_status solution_gradient(flow_gradient_step *step, int triangle)
{
  flow_tensor *g = step->output_gradients[0], *a = step->inputs[0], *x = step->outputs[0], *results[2] = { NULL, NULL };
  if (!g) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_attributes back = *step->attributes;
  back.matrix.transposed = !back.matrix.transposed;
  results[1] = flow_express(&e, step->op, a, g, NULL, &back);
  if (step->needed[0] && e.status == FLOW_OK) {
    int turned = step->attributes->matrix.transposed, lower = step->attributes->matrix.lower;
    flow_tensor *da = e_neg(&e, turned ? product(&e, x, results[1], 0, 1) : product(&e, results[1], x, 0, 1));
    results[0] = triangle ? masked(&e, da, lower, 1, !lower) : da;
  }
  if (!step->needed[1]) results[1] = NULL;
  return flow_expression_give(&e, step, results);
}
flow_status flow_gradient_solve(flow_gradient_step *step)
{
  return solution_gradient(step, 0);
}
flow_status flow_gradient_solve_triangle(flow_gradient_step *step)
{
  return solution_gradient(step, 1);
}

/* The rows of da in the order of the triangles' are L^-T (gU + D U^-T) with D = L^T gL - gU U^T below the diagonal; gL and gU are the parts
 * of g. The last column of D is zero, so that the last pivot may be. */
flow_status flow_gradient_lu(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *y = step->outputs[0], *order = step->outputs[2];
  if (!g || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  int64_t n = y->shape[y->rank - 1];
  flow_tensor *l = e_add(&e, masked(&e, y, 1, 0, 0), unit(&e, y, n)), *u = masked(&e, y, 0, 1, 1), *gu = masked(&e, g, 0, 1, 1);
  flow_tensor *d = masked(&e, e_sub(&e, product(&e, l, masked(&e, g, 1, 0, 0), 1, 0), product(&e, gu, u, 0, 1)), 1, 0, 0);
  flow_tensor *last = n > 0 && e.status == FLOW_OK ? flow_express_cast(&e, e_eq(&e, u, number(&e, u, 0)), u->dtype) : NULL;
  if (last) last = masked(&e, last, 0, 1, 0); /* pivots of zero: only the last one can be divided by here */
  if (last) u = e_add(&e, u, last);
  flow_tensor *rest = transposed(&e, by_triangle(&e, u, transposed(&e, d), 0, 0));
  flow_tensor *rows = by_triangle(&e, l, e_add(&e, gu, rest), 1, 1);
  flow_attributes along = { .along = { .axis = -1 } };
  flow_tensor *places = flow_express(&e, FLOW_OP_argsort, order, NULL, NULL, &along);
  if (e.status == FLOW_OK) places = flow_express_broadcast_like(&e, as_columns(&e, places), rows);
  along.along.axis = -2;
  return flow_expression_take(&e, flow_express(&e, FLOW_OP_take_along, rows, places, NULL, &along), &step->input_gradients[0]);
}

/* Of matrices with no more columns than rows: (gQ + Q C) R^-T, where C is the symmetric matrix whose lower triangle is that of
 * R gR^T - gQ^T Q (H. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2018). */
static flow_tensor *tall_qr_gradient(flow_expression *e, flow_tensor *q, flow_tensor *r, flow_tensor *gq, flow_tensor *gr)
{
  flow_tensor *m = gr ? product(e, r, gr, 0, 1) : NULL, *less = gq ? e_neg(e, product(e, gq, q, 1, 0)) : NULL;
  m = sum_of(e, m, less);
  if (e->status != FLOW_OK) return NULL;
  flow_tensor *c = e_add(e, masked(e, m, 1, 1, 0), transposed(e, masked(e, m, 1, 0, 0)));
  flow_tensor *b = sum_of(e, gq, product(e, q, c, 0, 0));
  return transposed(e, by_triangle(e, r, transposed(e, b), 0, 0));
}

/* Of wide matrices [X Y] with R = [U V], Q U = X: dX is that of X with gQ + Y gV^T and gU, dY = Q gV (D. Roberts and L. Roberts, "QR and LQ
 * decomposition matrix backpropagation algorithms", 2020). */
flow_status flow_gradient_qr(flow_gradient_step *step)
{
  flow_tensor *gq = step->output_gradients[0], *gr = step->output_gradients[1], *x = step->inputs[0];
  flow_tensor *q = step->outputs[0], *r = step->outputs[1], *result;
  int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1];
  if ((!gq && !gr) || !step->needed[0]) return FLOW_OK;
  if (step->attributes->matrix.full && m > n)
    return flow_fail(FLOW_UNSUPPORTED,
                     "qr: all of Q has no derivative where there are more rows than columns, %lld by %lld; use mode = "
                     "\"reduced\"",
                     (long long)m, (long long)n);
  flow_expression e = flow_gradient_expression(step);
  if (m >= n) {
    result = tall_qr_gradient(&e, q, r, gq, gr ? masked(&e, gr, 0, 1, 1) : NULL);
  } else {
    flow_tensor *gu = gr ? masked(&e, columns(&e, gr, 0, m), 0, 1, 1) : NULL, *gv = gr ? columns(&e, gr, m, n) : NULL;
    flow_tensor *by_v = gv ? product(&e, columns(&e, x, m, n), gv, 0, 1) : NULL;
    flow_tensor *parts[2] = { tall_qr_gradient(&e, q, columns(&e, r, 0, m), sum_of(&e, gq, by_v), gu), NULL };
    parts[1] = gv ? product(&e, q, gv, 0, 0) : e_mul(&e, columns(&e, x, m, n), number(&e, x, 0));
    flow_express_all(&e, FLOW_OP_concat, parts, 2, &(flow_attributes){ .axis = { .axis = -1 } }, &result);
  }
  return flow_expression_take(&e, result, &step->input_gradients[0]);
}

/* With G = V (diag(gw) + F * V^T gV) V^T and F = 1 / (w[j] - w[i]): what is above the diagonal is that of below, which is read. */
flow_status flow_gradient_eigh(flow_gradient_step *step)
{
  flow_tensor *gw = step->output_gradients[0], *gv = step->output_gradients[1], *w = step->outputs[0], *v = step->outputs[1];
  if ((!gw && !gv) || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *by_w = gw ? e_mul(&e, unit(&e, w, w->shape[w->rank - 1]), as_rows(&e, gw)) : NULL;
  flow_tensor *by_v = gv ? e_mul(&e, inverse_differences(&e, w), product(&e, v, gv, 1, 0)) : NULL;
  flow_tensor *g = product(&e, product(&e, v, sum_of(&e, by_w, by_v), 0, 0), v, 0, 1);
  flow_tensor *both = e.status == FLOW_OK ? e_add(&e, g, transposed(&e, g)) : NULL;
  return flow_expression_take(&e, both ? masked(&e, both, 1, 0.5, 0) : NULL, &step->input_gradients[0]);
}

/* U (diag(gs) + (F * (U^T gU - gU^T U)) S + S (F * (V^T gV - gV^T V))) V^T, and what of gU and gV is beside the columns of U and V, with
 * F = 1 / (s[j]^2 - s[i]^2) (J. Townsend, "Differentiating the singular value decomposition", 2016). */
flow_status flow_gradient_svd(flow_gradient_step *step)
{
  flow_tensor *gu = step->output_gradients[0], *gs = step->output_gradients[1], *gvt = step->output_gradients[2];
  flow_tensor *x = step->inputs[0], *u = step->outputs[0], *s = step->outputs[1], *vt = step->outputs[2];
  int64_t m = x->shape[x->rank - 2], n = x->shape[x->rank - 1], k = m < n ? m : n;
  if ((!gu && !gs && !gvt) || !step->needed[0]) return FLOW_OK;
  if (step->attributes->matrix.full && m != n && (gu || gvt))
    return flow_fail(FLOW_UNSUPPORTED, "svd: derivatives of U and V are those of full_matrices = false, got %lld by %lld matrices",
                     (long long)m, (long long)n);
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *v = columns(&e, transposed(&e, vt), 0, k), *inner = NULL, *beside = NULL;
  u = columns(&e, u, 0, k);
  if (gs) inner = e_mul(&e, unit(&e, s, k), as_rows(&e, gs));
  flow_tensor *f = gu || gvt ? inverse_differences(&e, e_square(&e, s)) : NULL;
  flow_tensor *inverse = f ? e_divide_no_nan(&e, number(&e, s, 1), s) : NULL;
  for (int side = 0; side < 2 && e.status == FLOW_OK; side++) {
    flow_tensor *g = side == 0 ? gu : gvt ? transposed(&e, gvt) : NULL, *own = side == 0 ? u : v;
    if (!g) continue;
    flow_tensor *turn = product(&e, own, g, 1, 0);
    flow_tensor *odd = e_mul(&e, f, e_sub(&e, turn, transposed(&e, turn)));
    inner = sum_of(&e, inner, e_mul(&e, odd, side == 0 ? as_rows(&e, s) : as_columns(&e, s)));
    if (side == 0 ? m <= n : n <= m) continue; /* the columns of `own` leave no room beside them */
    flow_tensor *out = e_mul(&e, e_sub(&e, g, product(&e, own, turn, 0, 0)), as_rows(&e, inverse));
    beside = side == 0 ? product(&e, out, v, 0, 1) : product(&e, u, out, 0, 1);
  }
  flow_tensor *result = inner ? product(&e, product(&e, u, inner, 0, 0), v, 0, 1) : NULL;
  return flow_expression_take(&e, sum_of(&e, result, beside), &step->input_gradients[0]);
}
