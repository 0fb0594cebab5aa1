/* test_cuda_reduce.c: reductions and argmax on the device against the CPU's plain kernels. */
#include "cuda_layouts.h"

/* Every set of axes of a rank-3 array, and none, which means all. */
static flow_attributes axes_of(unsigned mask, int keepdims)
{
  flow_attributes attributes = { .reduce = { .keepdims = keepdims, .base = 3 } };
  for (int i = 0; i < 3; i++)
    if (mask >> i & 1) attributes.reduce.axes[attributes.reduce.count++] = i;
  return attributes;
}

static flow_operand result_of(const flow_operand *x, unsigned mask, int keepdims, int dtype)
{
  flow_operand y = { .dtype = dtype };
  for (int i = 0; i < x->rank; i++) {
    int reduced = mask == 0 || (mask >> i & 1);
    if (!reduced) y.shape[y.rank++] = x->shape[i];
    else if (keepdims) y.shape[y.rank++] = 1;
  }
  flow_contiguous_strides(y.rank, y.shape, y.strides);
  y.data = guarded_alloc(operand_bytes(&y));
  return y;
}

static int result_dtype(int op, int dtype)
{
  if (op == FLOW_OP_any || op == FLOW_OP_all) return FLOW_BOOL;
  if (op == FLOW_OP_argmax || op == FLOW_OP_argmin) return FLOW_INT64;
  return (op == FLOW_OP_sum || op == FLOW_OP_prod) && !flow_dtype_is_float(dtype) ? FLOW_INT64 : dtype;
}

static void check(int op, flow_operand *x, unsigned mask, int keepdims, double tolerance)
{
  if ((op == FLOW_OP_argmax || op == FLOW_OP_argmin) && mask != 0 && (mask & (mask - 1)) != 0) return;      /* one axis or all */
  if (op == FLOW_OP_logsumexp && !flow_dtype_is_float(x->dtype)) return;      /* integers are cast before */
  flow_attributes attributes = axes_of(mask, keepdims);
  flow_operand y = result_of(x, mask, keepdims, result_dtype(op, x->dtype));
  flow_call call = call_of(op, &attributes, x, 1, &y, 1);
  cuda_matches_cpu(&call, 0, tolerance);
  operand_free(&y);
}

static double tolerance_of(int op, int dtype)
{
  if (op == FLOW_OP_logsumexp && dtype == FLOW_FLOAT32) return 1e-6;
  if (op != FLOW_OP_sum && op != FLOW_OP_prod && op != FLOW_OP_logsumexp) return 0;
  return dtype == FLOW_FLOAT32 ? 2e-6 : dtype == FLOW_FLOAT64 ? 1e-13 : dtype == FLOW_FLOAT16 ? 4e-3 : dtype == FLOW_BFLOAT16 ? 4e-2 : 0;
}

static void every_op_dtype_axes_and_layout(void **state)
{
  (void)state;
  for (int op = FLOW_OP_sum; op <= FLOW_OP_argmin; op++) {
    for (int d = 0; d < FLOW_DTYPE_COUNT; d++) {
      flow_operand x = operand(every_dtype[d], 3, 7, 5, 33);
      for (int64_t i = 0; i < operand_size(&x); i++)
        set(&x, i, flow_dtype_is_float(x.dtype) ? 1 + 0.1 * next_number() : floor(5 * next_number()));
      flow_operand transposed = transposed_operand(&x, (int[]){ 2, 0, 1 }), reversed = reversed_operand(&x);
      for (unsigned mask = 0; mask < 8; mask++) {
        check(op, &x, mask, 0, tolerance_of(op, x.dtype));
        check(op, &transposed, mask, 1, tolerance_of(op, x.dtype));
        check(op, &reversed, mask, 0, tolerance_of(op, x.dtype));
      }
      operand_free(&x);
    }
  }
}

/* NaNs win and the first of equals is named; infinities and zeros of both signs. */
static void hard_numbers(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_INT8, FLOW_INT64 };
  for (int op = FLOW_OP_max; op <= FLOW_OP_argmin; op++) {
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
      flow_operand x = operand(dtypes[d], 3, 4, 300, 3);
      for (int64_t i = 0; i < operand_size(&x); i++) set(&x, i, i % 900 < 300 ? floor(2 * next_number()) : hard_number(x.dtype, i));
      for (unsigned mask = 0; mask < 8; mask++) check(op, &x, mask, 0, op == FLOW_OP_logsumexp ? tolerance_of(op, x.dtype) : 0);
      operand_free(&x);
    }
  }
}

/* Reductions long enough to be cut into slices: columns, few columns, one row, rows. */
static void long_reductions(void **state)
{
  (void)state;
  static const struct { int shape[3]; unsigned mask; } cases[] = {
    { { 70, 100, 16 }, 3 }, { { 5000, 1, 3 }, 1 }, { { 1, 1, 100000 }, 4 }, { { 3, 1, 40000 }, 4 }, { { 40, 50, 70 }, 0 },
    { { 2, 3000, 130 }, 2 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int op = FLOW_OP_sum; op <= FLOW_OP_argmin; op++) {
      flow_operand x = operand(FLOW_FLOAT32, 3, cases[i].shape[0], cases[i].shape[1], cases[i].shape[2]);
      for (int64_t k = 0; k < operand_size(&x); k++) set(&x, k, op == FLOW_OP_prod ? 1 + 1e-4 * next_number() : next_number());
      check(op, &x, cases[i].mask, 0, op == FLOW_OP_sum ? 1e-5 : op == FLOW_OP_prod ? 1e-4 : op == FLOW_OP_logsumexp ? 1e-6 : 0);
      operand_free(&x);
    }
    flow_operand x = operand(FLOW_INT32, 3, cases[i].shape[0], cases[i].shape[1], cases[i].shape[2]);
    fill_hard(&x);
    for (int op = FLOW_OP_sum; op <= FLOW_OP_all; op++) check(op, &x, cases[i].mask, 0, 0);
    operand_free(&x);
  }
}

/* Outputs, or elements of one, side by side in whole bundles of 16 bytes, and such as are not; in one slice and in several. The bits do
 * not depend on where the operand begins. */
static void sums_of_bundles(void **state)
{
  (void)state;
  static const struct { int shape[3]; unsigned mask; } cases[] = {
    { { 90, 49, 64 }, 2 }, { { 300, 100, 8 }, 3 }, { { 3, 2000, 24 }, 2 }, { { 7, 3000, 20 }, 2 }, { { 2, 1, 40000 }, 1 },
    { { 9, 7, 3000 }, 1 }, { { 40, 50, 64 }, 4 }, { { 9, 70, 120 }, 5 }, { { 1, 1, 262144 }, 4 }, { { 3, 1, 40000 }, 4 },
    { { 700, 1, 100 }, 4 }, { { 5, 16, 1000 }, 7 },
  };
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT16, FLOW_BFLOAT16 };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
      flow_operand x = operand(dtypes[d], 3, cases[i].shape[0], cases[i].shape[1], cases[i].shape[2]);
      for (int64_t k = 0; k < operand_size(&x); k++) set(&x, k, next_number());
      flow_attributes attributes = axes_of(cases[i].mask, 0);
      flow_operand y = result_of(&x, cases[i].mask, 0, dtypes[d]);
      flow_call call = call_of(FLOW_OP_sum, &attributes, &x, 1, &y, 1);
      cuda_matches_cpu_in_float(&call, tolerance_of(FLOW_OP_sum, dtypes[d]));
      cuda_bytes found[2];
      for (int shifted = 0; shifted < 2; shifted++) {
        cuda_shift = shifted ? (size_t)flow_dtype_size(dtypes[d]) : 0;
        cuda_ok(cuda_run(cuda_device()->device.kernels[FLOW_OP_sum], &call, 0));
        found[shifted] = cuda_save(&call, 0);
      }
      cuda_shift = 0;
      assert_memory_equal(found[0].data, found[1].data, found[0].count);
      free(found[0].data), free(found[1].data);
      operand_free(&x), operand_free(&y);
    }
  }
}

/* A million numbers of one sign: a sum in float alone would be wrong in the fifth digit. */
static void a_long_sum_is_as_good_as_its_last_rounding(void **state)
{
  (void)state;
  enum { COUNT = 1000000 };
  flow_operand x = operand(FLOW_FLOAT32, 1, COUNT), y = operand(FLOW_FLOAT32, 0);
  double exact = 0;
  for (int i = 0; i < COUNT; i++) {
    ((float *)x.data)[i] = (float)(0.1 + 1e-3 * next_number());
    exact += ((float *)x.data)[i];
  }
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_sum, &attributes, &x, 1, &y, 1);
  for_each_cuda_kernel(kernel, FLOW_OP_sum) {
    cuda_ok(cuda_run(kernel, &call, 0));
    assert_near(get(&y, 0), exact, 3e-7 * exact, kernel->variant, 0);
  }
  operand_free(&x), operand_free(&y);
}

static void sums_of_nothing(void **state)
{
  (void)state;
  for (int op = FLOW_OP_sum; op <= FLOW_OP_all; op++) {
    flow_operand none = operand(FLOW_FLOAT32, 3, 0, 4, 5), inner = operand(FLOW_FLOAT32, 3, 6, 0, 5);
    if (op != FLOW_OP_max && op != FLOW_OP_min) {
      check(op, &none, 1, 0, 0);
      check(op, &inner, 2, 0, 0);
      check(op, &inner, 0, 0, 0);
    }
    check(op, &none, 4, 0, 0);          /* no outputs either */
    operand_free(&none), operand_free(&inner);
  }
}

/* Lines that are read in groups of eight, and the same from an address that does not allow it: ties and NaNs across groups. */
static void positions_in_whole_groups(void **state)
{
  (void)state;
  static const int lengths[] = { 24, 1000, 4104 }, floats[] = { FLOW_FLOAT32, FLOW_FLOAT16, FLOW_BFLOAT16 };
  for (cuda_shift = 0; cuda_shift <= 8; cuda_shift += 8) {
    for (int l = 0; l < 3; l++) {
      for (int d = 0; d < 3; d++) {
        flow_operand x = operand(floats[d], 3, 4, 5, lengths[l]);
        for (int64_t i = 0; i < operand_size(&x); i++) set(&x, i, floor(9 * next_number()));
        for (int row = 3; row < 6; row++) set(&x, row * lengths[l] + 11 + row, NAN);
        set(&x, 4 * lengths[l] + 3, NAN);
        for (int op = FLOW_OP_argmax; op <= FLOW_OP_argmin; op++) check(op, &x, 4, 0, 0);
        operand_free(&x);
      }
    }
  }
  cuda_shift = 0;
}

static void the_largest_of_nothing_is_refused(void **state)
{
  (void)state;
  static const int ops[] = { FLOW_OP_max, FLOW_OP_min, FLOW_OP_argmax, FLOW_OP_argmin };
  for (int i = 0; i < 4; i++) {
    flow_operand x = operand(FLOW_FLOAT32, 3, 0, 4, 5);
    flow_attributes attributes = axes_of(1, 0);
    flow_operand y = result_of(&x, 1, 0, result_dtype(ops[i], FLOW_FLOAT32));
    flow_call call = call_of(ops[i], &attributes, &x, 1, &y, 1);
    cuda_refuses(&call, "of an empty axis");
    operand_free(&x), operand_free(&y);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_op_dtype_axes_and_layout), cmocka_unit_test(hard_numbers), cmocka_unit_test(long_reductions),
    cmocka_unit_test(sums_of_bundles), cmocka_unit_test(positions_in_whole_groups),
    cmocka_unit_test(a_long_sum_is_as_good_as_its_last_rounding), cmocka_unit_test(sums_of_nothing),
    cmocka_unit_test(the_largest_of_nothing_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
