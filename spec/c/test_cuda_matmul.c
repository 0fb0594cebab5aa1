/* test_cuda_matmul.c: matmul and dense on the device, against the CPU's plain kernels. */
#include "cuda_runner.h"

/* exact: no tensor cores, whose factors of float32, below 1 here, have 10 bits. */
static double tolerance_of(int dtype, int exact, int64_t k)
{
  switch (dtype) {
  case FLOW_FLOAT32:  return exact ? 1e-5 : 1e-3 * (1 + sqrt((double)k));
  case FLOW_FLOAT16:  return 2e-3;       /* a unit in the last place */
  case FLOW_BFLOAT16: return 1e-2;
  case FLOW_FLOAT64:  return 1e-13;
  default:            return 0;
  }
}

static const int dtypes[] = {
  FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16, FLOW_INT8, FLOW_UINT8, FLOW_INT32, FLOW_INT64, FLOW_BOOL
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static void fill_any(flow_operand *x)
{
  fill(x, x->dtype == FLOW_BOOL ? 0.6 : x->dtype >= FLOW_INT8 ? 100 : 1);
  for (int64_t i = 0; i < operand_size(x) && x->dtype == FLOW_BOOL; i++) set(x, i, next_number() > 0.5);
}

static void try_product(int dtype, flow_operand a, flow_operand b, flow_operand c, int transpose_a, int transpose_b)
{
  flow_attributes attributes = { .matmul = { .transpose_a = transpose_a, .transpose_b = transpose_b } };
  flow_operand inputs[2] = { a, b };
  fill_any(&inputs[0]), fill_any(&inputs[1]);
  flow_call call = call_of(FLOW_OP_matmul, &attributes, inputs, 2, &c, 1);
  int64_t k = a.shape[transpose_a && a.rank > 1 ? a.rank - 2 : a.rank - 1];
  for (call.exact = 0; call.exact < 2; call.exact++) cuda_matches_cpu(&call, 0, tolerance_of(dtype, call.exact, k));
  operand_free(&a), operand_free(&b), operand_free(&c);
}

static void matrices_either_way_round(void **state)
{
  (void)state;
  static const int sizes[][3] = { { 5, 7, 9 }, { 16, 12, 8 }, { 1, 1, 1 }, { 4, 130, 33 }, { 3, 4, 0 }, { 0, 4, 3 }, { 4, 0, 3 } };
  for (int d = 0; d < DTYPES; d++)
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      for (int way = 0; way < 4; way++) {
        int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2], dtype = dtypes[d];
        flow_operand a = way & 1 ? operand(dtype, 2, k, m) : operand(dtype, 2, m, k), c = operand(dtype, 2, m, n);
        flow_operand b = way & 2 ? operand(dtype, 2, n, k) : operand(dtype, 2, k, n);
        try_product(dtype, a, b, c, way & 1, way >> 1);
      }
}

/* Few elements with long sums: k is cut. */
static void long_sums_are_cut_into_slices(void **state)
{
  (void)state;
  const flow_kernel *kernel = cuda_device()->device.kernels[FLOW_OP_matmul];
  while (kernel->run && strcmp(kernel->variant, "tiles") != 0) kernel++;
  assert_non_null(kernel->run);
  flow_attributes none = { .matmul = { 0 } };
  flow_operand inputs[2] = { { .dtype = FLOW_FLOAT32, .rank = 2, .shape = { 6, 5001 } },
                             { .dtype = FLOW_FLOAT32, .rank = 2, .shape = { 5001, 10 } } };
  flow_operand c = { .dtype = FLOW_FLOAT32, .rank = 2, .shape = { 6, 10 } };
  flow_call call = call_of(FLOW_OP_matmul, &none, inputs, 2, &c, 1);
  assert_int_equal(kernel->shared_bytes(&call), 9 * 6 * 10 * sizeof(float));
  for (int d = 0; d < DTYPES; d++)
    try_product(dtypes[d], operand(dtypes[d], 2, 6, 5001), operand(dtypes[d], 2, 5001, 10), operand(dtypes[d], 2, 6, 10), 0, 0);
}

static void leading_axes_broadcast(void **state)
{
  (void)state;
  int f = FLOW_FLOAT32;
  try_product(f, operand(f, 3, 5, 6, 7), operand(f, 3, 5, 7, 8), operand(f, 3, 5, 6, 8), 0, 0);
  try_product(f, operand(f, 4, 3, 1, 6, 7), operand(f, 3, 2, 8, 7), operand(f, 4, 3, 2, 6, 8), 0, 1);
  try_product(f, operand(f, 3, 5, 6, 7), operand(f, 2, 7, 8), operand(f, 3, 5, 6, 8), 0, 0);       /* one tall matrix */
  try_product(f, operand(f, 2, 6, 7), operand(f, 3, 4, 7, 4), operand(f, 3, 4, 6, 4), 0, 0);
  try_product(f, operand(f, 1, 7), operand(f, 2, 7, 8), operand(f, 1, 8), 0, 0);
  try_product(f, operand(f, 2, 6, 7), operand(f, 1, 7), operand(f, 1, 6), 0, 0);
  try_product(f, operand(f, 1, 7), operand(f, 1, 7), operand(f, 0), 0, 0);
  try_product(f, operand(f, 3, 0, 6, 7), operand(f, 3, 1, 7, 8), operand(f, 3, 0, 6, 8), 0, 0);
}

static void dense_adds_the_bias_and_activates(void **state)
{
  (void)state;
  static const int sizes[][3] = { { 5, 10, 7 }, { 32, 128, 64 }, { 33, 12, 2050 }, { 3, 8, 0 }, { 0, 8, 5 }, { 1, 1, 1 } };
  static const int floats[] = { FLOW_FLOAT32, FLOW_FLOAT64 };
  for (int d = 0; d < 2; d++)
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
      for (int relu = 0; relu < 2; relu++) {
        int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2], dtype = floats[d];
        flow_attributes attributes = { .matmul = { .activation = relu ? FLOW_RELU : 0 } };
        flow_operand inputs[3] = { operand(dtype, 3, m, 1, k), operand(dtype, 2, k, n), operand(dtype, 1, n) };
        flow_operand y = operand(dtype, 3, m, 1, n);
        for (int x = 0; x < 3; x++) fill(&inputs[x], 1);
        if (m > 1 && k > 1) set(&inputs[0], k + 1, NAN);
        flow_call call = call_of(FLOW_OP_dense, &attributes, inputs, 3, &y, 1);
        for (call.exact = 0; call.exact < 2; call.exact++) cuda_matches_cpu(&call, 0, tolerance_of(dtype, call.exact, k));
        for (int x = 0; x < 3; x++) operand_free(&inputs[x]);
        operand_free(&y);
      }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(matrices_either_way_round), cmocka_unit_test(long_sums_are_cut_into_slices), cmocka_unit_test(leading_axes_broadcast),
    cmocka_unit_test(dense_adds_the_bias_and_activates)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
