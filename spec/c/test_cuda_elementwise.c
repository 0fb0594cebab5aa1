/* test_cuda_elementwise.c: elementwise ops, casts and chains on the device against the CPU's plain kernels. */
#include "cuda_layouts.h"

typedef struct op_range { int first, last; } op_range;
static const op_range unary[] = { { FLOW_OP_neg, FLOW_OP_is_finite } }, binary[] = { { FLOW_OP_add, FLOW_OP_relu_gradient } };

static double tolerance_of(int dtype)
{
  return dtype == FLOW_FLOAT32 ? 2e-6 : dtype == FLOW_FLOAT64 ? 1e-14 : dtype == FLOW_FLOAT16 ? 2e-3 : dtype == FLOW_BFLOAT16 ? 1e-2 : 0;
}

static int gives_condition(int op)
{
  return op == FLOW_OP_logical_not || op == FLOW_OP_is_finite || (op >= FLOW_OP_eq && op <= FLOW_OP_logical_or);
}

/* Whether the CPU computes the op in this dtype: integers are cast first where they have no sense of their own. */
static int computes(int op, int dtype)
{
  return flow_dtype_is_float(dtype) || !(flow_op(op)->flags & FLOW_OP_TO_FLOAT);
}

/* y's dtype and shape follow from the op and from the inputs' common shape. */
static void check(int op, flow_operand *inputs, int count, int rank, const int64_t *shape)
{
  flow_attributes attributes = { 0 };
  int dtype = inputs[count - 1].dtype;
  flow_operand y = { .dtype = gives_condition(op) ? FLOW_BOOL : dtype, .rank = rank };
  memcpy(y.shape, shape, sizeof y.shape);
  flow_contiguous_strides(rank, shape, y.strides);
  y.data = guarded_alloc(operand_bytes(&y));
  flow_call call = call_of(op, &attributes, inputs, count, &y, 1);
  cuda_matches_cpu(&call, 0, tolerance_of(dtype));
  operand_free(&y);
}

static void unary_ops_of_every_dtype_and_layout(void **state)
{
  (void)state;
  for (int op = unary->first; op <= unary->last; op++) {
    for (int d = 0; d < FLOW_DTYPE_COUNT; d++) {
      if (!computes(op, every_dtype[d])) continue;
      flow_operand x = operand(every_dtype[d], 3, 3, 5, 67);
      fill_hard(&x);
      flow_operand transposed = transposed_operand(&x, (int[]){ 2, 0, 1 }), reversed = reversed_operand(&x);
      check(op, &x, 1, 3, x.shape);
      check(op, &transposed, 1, 3, transposed.shape);
      check(op, &reversed, 1, 3, reversed.shape);
      operand_free(&x);
    }
  }
}

static void fill_easily(flow_operand *x)
{
  fill(x, 3);
}

static void binary_ops_of_every_dtype_broadcast(void **state)
{
  (void)state;
  for (int op = binary->first; op <= binary->last; op++) {
    for (int d = 0; d < FLOW_DTYPE_COUNT; d++) {
      int dtype = every_dtype[d];
      if (!computes(op, dtype)) continue;
      flow_operand a = operand(dtype, 3, 7, 6, 13), same = operand(dtype, 3, 7, 6, 13);
      flow_operand row = operand(dtype, 1, 13), one = operand(dtype, 0);
      flow_operand column = operand(dtype, 3, 7, 1, 1), from_transposed = operand(dtype, 3, 13, 7, 6);
      /* Large negative numbers leave of these slopes what rounding has left. */
      void (*fill_any)(flow_operand *) = op == FLOW_OP_gelu_gradient || op == FLOW_OP_gelu_tanh_gradient || op == FLOW_OP_silu_gradient
                                             ? fill_easily
                                             : fill_hard;
      fill_any(&a), fill_any(&same), fill_any(&row), fill_any(&column), fill_any(&from_transposed);
      set(&one, 0, 3);
      flow_operand transposed = transposed_operand(&from_transposed, (int[]){ 1, 2, 0 });
      const flow_operand others[] = { same, row, one, column, transposed };
      for (int k = 0; k < 5; k++) {
        check(op, (flow_operand[]){ a, others[k] }, 2, 3, a.shape);
        check(op, (flow_operand[]){ others[k], a }, 2, 3, a.shape);
      }
      operand_free(&a), operand_free(&same), operand_free(&row), operand_free(&one), operand_free(&column), operand_free(&from_transposed);
    }
  }
}

/* All sizes around whole groups of four, at an odd address, and none at all. */
static void packed_operands_of_any_size_and_alignment(void **state)
{
  (void)state;
  for (int size = 0; size < 11; size++) {
    for (int offset = 0; offset < 2; offset++) {
      flow_operand a = operand(FLOW_FLOAT32, 1, size + 1), b = operand(FLOW_FLOAT32, 1, size + 1);
      fill(&a, 3), fill(&b, 3);
      flow_operand inputs[2] = { a, b };
      inputs[0].data = (float *)a.data + offset;
      inputs[0].shape[0] = inputs[1].shape[0] = size;
      check(FLOW_OP_mul, inputs, 2, 1, inputs[0].shape);
      check(FLOW_OP_lt, inputs, 2, 1, inputs[0].shape);
      check(FLOW_OP_exp, inputs, 1, 1, inputs[0].shape);
      operand_free(&a), operand_free(&b);
    }
  }
}

static void where_of_every_dtype(void **state)
{
  (void)state;
  for (int d = 0; d < FLOW_DTYPE_COUNT; d++) {
    for (int c = 0; c < FLOW_DTYPE_COUNT; c++) {
      flow_operand condition = operand(every_dtype[c], 2, 9, 1), a = operand(every_dtype[d], 1, 35), b = operand(every_dtype[d], 2, 9, 35);
      fill_hard(&condition), fill_hard(&a), fill_hard(&b);
      check(FLOW_OP_where, (flow_operand[]){ condition, a, b }, 3, 2, b.shape);
      operand_free(&condition), operand_free(&a), operand_free(&b);
    }
  }
}

static void cast_from_every_dtype_to_every_other(void **state)
{
  (void)state;
  for (int from = 0; from < FLOW_DTYPE_COUNT; from++) {
    for (int to = 0; to < FLOW_DTYPE_COUNT; to++) {
      flow_operand x = operand(every_dtype[from], 2, 21, 17);
      flow_operand y = operand(every_dtype[to], 2, 21, 17), z = operand(every_dtype[to], 2, 17, 21);
      fill_hard(&x);
      flow_operand transposed = transposed_operand(&x, (int[]){ 1, 0 });
      flow_attributes attributes = { .cast = { every_dtype[to] } };
      flow_call call = call_of(FLOW_OP_cast, &attributes, &x, 1, &y, 1);
      cuda_matches_cpu(&call, 0, 0);
      call = call_of(FLOW_OP_cast, &attributes, &transposed, 1, &z, 1);
      cuda_matches_cpu(&call, 0, 0);
      operand_free(&x), operand_free(&y), operand_free(&z);
    }
  }
}

static double sine_in_long_double(double x) { return (double)sinl((long double)x); }
static double cosine_in_long_double(double x) { return (double)cosl((long double)x); }

/* Angles whose reduction takes many digits of pi. */
static void sine_and_cosine_of_large_angles(void **state)
{
  (void)state;
  flow_operand x = operand(FLOW_FLOAT64, 1, 800), y = operand(FLOW_FLOAT64, 1, 800);
  flow_attributes attributes = { 0 };
  for (int i = 0; i < 800; i++) set(&x, i, ldexp(next_number(), i + 10 < 1000 ? i + 10 : 1000));
  for (int op = FLOW_OP_sin; op <= FLOW_OP_cos; op++) {
    flow_call call = call_of(op, &attributes, &x, 1, &y, 1);
    cuda_matches_cpu(&call, 0, 1e-15);
    for (int i = 0; i < 800; i++) {
      double angle = get(&x, i), expected = op == FLOW_OP_sin ? sine_in_long_double(angle) : cosine_in_long_double(angle);
      assert_near(get(&y, i), expected, 4e-16 * fabs(expected) + 1e-300, "sine", i);
    }
  }
  operand_free(&x), operand_free(&y);
}

/* A random chain: every step reads inputs and results before it, the last of which may be read more than once. */
static void random_chain(flow_attributes *attributes, int inputs, int steps)
{
  static const int ops[] = { FLOW_OP_add, FLOW_OP_sub, FLOW_OP_mul, FLOW_OP_maximum, FLOW_OP_neg, FLOW_OP_relu, FLOW_OP_sigmoid,
                             FLOW_OP_tanh, FLOW_OP_square, FLOW_OP_abs };
  memset(attributes, 0, sizeof *attributes);
  attributes->fused.count = steps;
  for (int s = 0; s < steps; s++) {
    attributes->fused.steps[s].op = (int16_t)ops[(int)((next_number() + 1) * 5) % 10];
    for (int k = 0; k < 2; k++) {
      int among = inputs + s, at = (int)((next_number() + 1) / 2 * among) % among;
      if (k == 0 && s > 0) at = among - 1 - (int)((next_number() + 1) * 1.5);     /* mostly the latest */
      attributes->fused.steps[s].inputs[k] = (uint8_t)(at < 0 ? 0 : at);
    }
  }
}

static void chains_broadcast_and_keep_results(void **state)
{
  (void)state;
  for (int round = 0; round < 60; round++) {
    flow_operand whole = operand(FLOW_FLOAT32, 3, 5, 11, 29), row = operand(FLOW_FLOAT32, 1, 29);
    flow_operand column = operand(FLOW_FLOAT32, 3, 5, 1, 1);
    flow_operand y = operand(FLOW_FLOAT32, 3, 5, 11, 29);
    fill(&whole, 1), fill(&row, 1), fill(&column, 1);
    flow_operand inputs[] = { whole, row, column, whole };
    flow_attributes attributes;
    random_chain(&attributes, 4, 1 + round % 12);
    flow_call call = call_of(FLOW_OP_fused, &attributes, inputs, 4, &y, 1);
    cuda_matches_cpu(&call, 0, 1e-4);
    operand_free(&whole), operand_free(&row), operand_free(&column), operand_free(&y);
  }
}

/* The most results that can wait for a reader: six are made, then brought together from the first to the last. */
static void a_chain_of_many_waiting_results(void **state)
{
  (void)state;
  flow_operand inputs[12], y = operand(FLOW_FLOAT32, 1, 1025);
  flow_attributes attributes = { .fused = { .count = 11 } };
  for (int i = 0; i < 12; i++) {
    inputs[i] = operand(FLOW_FLOAT32, 1, 1025);
    fill(&inputs[i], 1);
  }
  for (int s = 0; s < 6; s++) {
    attributes.fused.steps[s].op = FLOW_OP_mul;
    attributes.fused.steps[s].inputs[0] = (uint8_t)(2 * s);
    attributes.fused.steps[s].inputs[1] = (uint8_t)(2 * s + 1);
  }
  for (int s = 6; s < 11; s++) {
    attributes.fused.steps[s].op = FLOW_OP_sub;
    attributes.fused.steps[s].inputs[0] = (uint8_t)(s == 6 ? 12 : 12 + s - 1);
    attributes.fused.steps[s].inputs[1] = (uint8_t)(12 + s - 5);
  }
  flow_call call = call_of(FLOW_OP_fused, &attributes, inputs, 12, &y, 1);
  cuda_matches_cpu(&call, 0, 1e-6);
  for (int i = 0; i < 12; i++) operand_free(&inputs[i]);
  operand_free(&y);
}

static void empty_operands_are_nothing(void **state)
{
  (void)state;
  flow_operand a = operand(FLOW_FLOAT32, 2, 0, 5), b = operand(FLOW_FLOAT32, 1, 5);
  check(FLOW_OP_add, (flow_operand[]){ a, b }, 2, 2, a.shape);
  check(FLOW_OP_exp, &a, 1, 2, a.shape);
  operand_free(&a), operand_free(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(unary_ops_of_every_dtype_and_layout), cmocka_unit_test(binary_ops_of_every_dtype_broadcast),
    cmocka_unit_test(packed_operands_of_any_size_and_alignment), cmocka_unit_test(where_of_every_dtype),
    cmocka_unit_test(cast_from_every_dtype_to_every_other), cmocka_unit_test(sine_and_cosine_of_large_angles),
    cmocka_unit_test(chains_broadcast_and_keep_results), cmocka_unit_test(a_chain_of_many_waiting_results),
    cmocka_unit_test(empty_operands_are_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
