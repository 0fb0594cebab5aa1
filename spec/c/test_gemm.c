/* test_gemm.c: matmul and dense in every variant of every build, against loops in double. */
#include <math.h>
#include "kernel_runner.h"

/* Expected elements of C and, for the tolerance, the sums of absolute products. */
typedef struct expectation { const double *value, *size; int64_t k; } expectation;

static double unit_of(int dtype)
{
  switch (dtype) {
  case FLOW_FLOAT64:  return 0x1p-52;
  case FLOW_FLOAT32:  return 0x1p-23;
  case FLOW_FLOAT16:  return 0x1p-10;
  case FLOW_BFLOAT16: return 0x1p-7;
  default:            return 0;
  }
}

static void check_product(const flow_call *call, const char *variant, void *argument)
{
  const expectation *e = argument;
  const flow_operand *c = &call->outputs[0];
  double unit = unit_of(c->dtype);
  for (int64_t i = 0; i < operand_size(c); i++)
    assert_near(get(c, i), e->value[i], unit * e->size[i] * (2 + (double)e->k / 4), variant, i);
}

/* One case: shapes are lists ended by 0; rank 1 to 4. */
typedef struct product_case { int dtype, a[5], b[5], c[5], transpose_a, transpose_b; } product_case;

static flow_operand operand_of(int dtype, const int *dims)
{
  int rank = 0;
  while (dims[rank]) rank++;
  return operand(dtype, rank, dims[0], dims[1], dims[2], dims[3]);
}

/* Element `index` counted from the end of the shape of C's leading axes: the matrix of an operand that belongs to matrix
 * `matrix` of C. */
static int64_t matrix_of(const flow_operand *x, const flow_operand *c, int c_matrix_axes, int64_t matrix)
{
  int leading = x->rank > 2 ? x->rank - 2 : 0, c_leading = c->rank - c_matrix_axes;
  int64_t result = 0, step = 1;
  for (int axis = 1; axis <= leading; axis++) {
    int64_t size = x->shape[leading - axis], position = matrix % c->shape[c_leading - axis];
    matrix /= c->shape[c_leading - axis];
    if (size != 1) result += position * step;
    step *= size;
  }
  return result;
}

static void try_product(const product_case *t)
{
  flow_operand inputs[2] = { operand_of(t->dtype, t->a), operand_of(t->dtype, t->b) }, output = operand_of(t->dtype, t->c);
  flow_operand *a = &inputs[0], *b = &inputs[1];
  int integer = t->dtype != FLOW_FLOAT64 && unit_of(t->dtype) == 0;
  fill(a, integer ? 5 : 1);
  fill(b, integer ? 5 : 1);
  flow_attributes attributes = { .matmul = { .transpose_a = t->transpose_a, .transpose_b = t->transpose_b } };
  flow_call call = call_of(FLOW_OP_matmul, &attributes, inputs, 2, &output, 1);

  int ta = t->transpose_a && a->rank > 1, tb = t->transpose_b && b->rank > 1;
  int64_t a0 = a->rank > 1 ? a->shape[a->rank - 2] : 1, a1 = a->shape[a->rank - 1];
  int64_t b0 = b->rank > 1 ? b->shape[b->rank - 2] : b->shape[0], b1 = b->rank > 1 ? b->shape[b->rank - 1] : 1;
  int64_t m = ta ? a1 : a0, k = ta ? a0 : a1, n = tb ? b0 : b1, size = operand_size(&output);
  double *value = calloc((size_t)size + 1, sizeof(double)), *absolute = calloc((size_t)size + 1, sizeof(double));
  assert_true(value && absolute);
  int matrix_axes = (a->rank > 1) + (b->rank > 1);
  double *left = malloc((size_t)operand_size(a) * sizeof(double)), *right = malloc((size_t)operand_size(b) * sizeof(double));
  for (int64_t i = 0; i < operand_size(a); i++) left[i] = get(a, i);
  for (int64_t i = 0; i < operand_size(b); i++) right[i] = get(b, i);
  for (int64_t i = 0; i < size; i++) {
    int64_t matrix = i / (m * n), row = i / n % m, column = i % n;
    const double *x = left + matrix_of(a, &output, matrix_axes, matrix) * a0 * a1;
    const double *y = right + matrix_of(b, &output, matrix_axes, matrix) * b0 * b1;
    for (int64_t p = 0; p < k; p++) {
      double term = (ta ? x[p * a1 + row] : x[row * a1 + p]) * (tb ? y[column * b1 + p] : y[p * b1 + column]);
      value[i] += term;
      absolute[i] += term < 0 ? -term : term;
    }
    if (t->dtype == FLOW_BOOL) value[i] = value[i] != 0;
  }
  run_everywhere(&call, 0, check_product, &(expectation){ value, absolute, k });
  free(value);
  free(absolute);
  free(left);
  free(right);
  operand_free(a);
  operand_free(b);
  operand_free(&output);
}

static void test_matmul_sizes(void **state)
{
  (void)state;
  static const int sizes[][3] = {   /* m, n, k: tiles, edges, few rows, few columns, split k */
    { 1, 1, 1 }, { 1, 7, 3 }, { 2, 33, 17 }, { 3, 130, 65 }, { 4, 16, 8 }, { 5, 15, 9 }, { 6, 16, 256 }, { 7, 31, 257 },
    { 8, 32, 64 }, { 13, 10, 128 }, { 64, 10, 5 }, { 100, 1, 37 }, { 1, 100, 300 }, { 97, 53, 301 }, { 200, 70, 12 },
    { 193, 129, 130 }, { 33, 128, 4100 }, { 2, 40, 30011 }, { 40, 1, 30011 }, { 1030, 60, 33 }, { 20, 1500, 19 },
    { 65, 140, 193 }, { 9, 64, 513 }, { 64, 700, 130 }, { 33, 300, 40 }, { 5, 41, 7 }, { 4, 1000, 600 }
  };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (int flags = 0; flags < 4; flags++) {
      int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2], ta = flags & 1, tb = flags >> 1;
      product_case t = { .dtype = FLOW_FLOAT32, .a = { ta ? k : m, ta ? m : k }, .b = { tb ? n : k, tb ? k : n }, .c = { m, n },
                         .transpose_a = ta, .transpose_b = tb };
      try_product(&t);
    }
}

static void test_matmul_axes(void **state)
{
  (void)state;
  static const product_case cases[] = {
    { .a = { 5 }, .b = { 5 }, .c = { 0 } },
    { .a = { 5 }, .b = { 5, 3 }, .c = { 3 } },
    { .a = { 4, 5 }, .b = { 5 }, .c = { 4 } },
    { .a = { 5 }, .b = { 3, 5 }, .c = { 3 }, .transpose_a = 1, .transpose_b = 1 },
    { .a = { 2, 3, 4 }, .b = { 4, 5 }, .c = { 2, 3, 5 } },
    { .a = { 2, 3, 4 }, .b = { 4 }, .c = { 2, 3 } },
    { .a = { 4 }, .b = { 2, 4, 3 }, .c = { 2, 3 } },
    { .a = { 3, 4 }, .b = { 2, 4, 5 }, .c = { 2, 3, 5 } },
    { .a = { 2, 1, 3, 4 }, .b = { 5, 4, 6 }, .c = { 2, 5, 3, 6 } },
    { .a = { 2, 1, 4, 3 }, .b = { 1, 3, 6, 4 }, .c = { 2, 3, 3, 6 }, .transpose_a = 1, .transpose_b = 1 },
    { .a = { 3, 1, 7, 9 }, .b = { 3, 2, 9, 8 }, .c = { 3, 2, 7, 8 } },
    { .a = { 2, 4, 3 }, .b = { 4, 5 }, .c = { 2, 3, 5 }, .transpose_a = 1 },
    { .a = { 1, 3, 4 }, .b = { 7, 4, 5 }, .c = { 7, 3, 5 } },
    { .a = { 2, 33, 40 }, .b = { 2, 40, 2000 }, .c = { 2, 33, 2000 } },
    { .a = { 2, 5, 9000 }, .b = { 2, 9000, 24 }, .c = { 2, 5, 24 } }
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    product_case t = cases[i];
    try_product(&t);
    t.dtype = FLOW_FLOAT64;
    try_product(&t);
  }
}

static void test_matmul_dtypes(void **state)
{
  (void)state;
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++)
    for (int flags = 0; flags < 4; flags++) {
      int ta = flags & 1, tb = flags >> 1;
      product_case t = { .dtype = dtype, .a = { ta ? 4 : 9, ta ? 9 : 4 }, .b = { tb ? 11 : 4, tb ? 4 : 11 }, .c = { 9, 11 },
                         .transpose_a = ta, .transpose_b = tb };
      if (dtype == FLOW_UINT8) continue;    /* negative numbers: below */
      try_product(&t);
    }
}

static void check_value(const flow_call *call, const char *variant, void *argument)
{
  assert_near(get(&call->outputs[0], 0), *(double *)argument, 0, variant, 0);
}

static void test_matmul_integers_wrap(void **state)
{
  (void)state;
  static const struct { int dtype; double a, b, sum; } cases[] = {
    { FLOW_UINT8, 16, 16, 0 }, { FLOW_UINT8, 15, 17, 255 }, { FLOW_INT8, 16, 8, -128 }, { FLOW_INT32, 65536, 65536, 0 },
    { FLOW_BOOL, 1, 1, 1 }, { FLOW_BOOL, 1, 0, 0 }
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    flow_operand inputs[2] = { operand(cases[i].dtype, 1, 1), operand(cases[i].dtype, 1, 1) }, output = operand(cases[i].dtype, 0);
    set(&inputs[0], 0, cases[i].a);
    set(&inputs[1], 0, cases[i].b);
    flow_attributes attributes = { .cast = { 0 } };
    flow_call call = call_of(FLOW_OP_matmul, &attributes, inputs, 2, &output, 1);
    double expected = cases[i].sum;
    run_everywhere(&call, 0, check_value, &expected);
    operand_free(&inputs[0]);
    operand_free(&inputs[1]);
    operand_free(&output);
  }
}

/* k = 0 gives zeros (the bias for dense), other empty sizes give nothing. */
static void test_empty(void **state)
{
  (void)state;
  static const int sizes[][3] = { { 3, 4, 0 }, { 0, 4, 3 }, { 3, 0, 4 }, { 1, 4, 0 } };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
    flow_operand inputs[3] = { operand(FLOW_FLOAT32, 2, m, k), operand(FLOW_FLOAT32, 2, k, n), operand(FLOW_FLOAT32, 1, n) };
    flow_operand output = operand(FLOW_FLOAT32, 2, m, n);
    fill(&inputs[0], 1);
    fill(&inputs[1], 1);
    for (int j = 0; j < n; j++) set(&inputs[2], j, j - 1);
    flow_attributes attributes = { .matmul = { .activation = FLOW_RELU } };
    for (int dense = 0; dense < 2; dense++) {
      flow_call call = call_of(dense ? FLOW_OP_dense : FLOW_OP_matmul, &attributes, inputs, 2 + dense, &output, 1);
      for_each_kernel(kernel, call.op) {
        if (kernel->supports && !kernel->supports(&call)) continue;
        if (kernel->cost) assert_true(kernel->cost(&call) >= 0);
        assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
        for (int64_t e = 0; e < operand_size(&output); e++)
          assert_near(get(&output, e), dense && e % n > 1 ? (double)(e % n) - 1 : 0, 0, kernel->variant, e);
      }
    }
    for (int j = 0; j < 3; j++) operand_free(&inputs[j]);
    operand_free(&output);
  }
}

/* A batch of no matrices: sizes of leading axes are 0. */
static void test_no_matrices(void **state)
{
  (void)state;
  static const flow_attributes attributes;
  flow_operand inputs[2] = { operand(FLOW_FLOAT32, 3, 0, 5, 9), operand(FLOW_FLOAT32, 3, 0, 9, 6) };
  flow_operand output = operand(FLOW_FLOAT32, 3, 0, 5, 6);
  flow_call call = call_of(FLOW_OP_matmul, &attributes, inputs, 2, &output, 1);
  for_each_kernel(kernel, call.op) assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
  operand_free(&inputs[0]);
  operand_free(&inputs[1]);
  operand_free(&output);
}

static void test_dense(void **state)
{
  (void)state;
  static const int sizes[][3] = {
    { 1, 1, 4 }, { 1, 40, 70 }, { 2, 3, 5 }, { 7, 16, 300 }, { 64, 10, 128 }, { 32, 128, 5000 }, { 50, 1, 9 }, { 70, 150, 31 }
  };
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64 };
  for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++)
    for (int activation = FLOW_LINEAR; activation <= FLOW_RELU; activation++) {
      int m = sizes[i / 2][0], n = sizes[i / 2][1], k = sizes[i / 2][2], dtype = dtypes[i % 2];
      flow_operand inputs[3] = { operand(dtype, 3, m, 2, k), operand(dtype, 2, k, n), operand(dtype, 1, n) };
      flow_operand output = operand(dtype, 3, m, 2, n);
      for (int j = 0; j < 3; j++) fill(&inputs[j], 1);
      double *value = calloc((size_t)(2 * m * n), sizeof(double)), *absolute = calloc((size_t)(2 * m * n), sizeof(double));
      double *w = malloc((size_t)(k * n) * sizeof(double));
      assert_true(value && absolute && w);
      for (int p = 0; p < k * n; p++) w[p] = get(&inputs[1], p);
      for (int row = 0; row < 2 * m; row++)
        for (int p = 0; p < k; p++) {
          double x = get(&inputs[0], row * k + p);
          for (int column = 0; column < n; column++) {
            double term = x * w[p * n + column];
            value[row * n + column] += term;
            absolute[row * n + column] += term < 0 ? -term : term;
          }
        }
      for (int e = 0; e < 2 * m * n; e++) {
        double bias = get(&inputs[2], e % n);
        value[e] += bias;
        absolute[e] += bias < 0 ? -bias : bias;
        if (activation == FLOW_RELU && value[e] < 0) value[e] = 0;
      }
      flow_attributes attributes = { .matmul = { .activation = activation } };
      flow_call call = call_of(FLOW_OP_dense, &attributes, inputs, 3, &output, 1);
      run_everywhere(&call, 0, check_product, &(expectation){ value, absolute, k });
      free(value);
      free(absolute);
      free(w);
      for (int j = 0; j < 3; j++) operand_free(&inputs[j]);
      operand_free(&output);
    }
}

/* NaN and infinity reach the output, also through relu. */
static void test_not_finite(void **state)
{
  (void)state;
  flow_operand inputs[3] = { operand(FLOW_FLOAT32, 2, 8, 20), operand(FLOW_FLOAT32, 2, 20, 33), operand(FLOW_FLOAT32, 1, 33) };
  flow_operand output = operand(FLOW_FLOAT32, 2, 8, 33);
  for (int j = 0; j < 3; j++)
    for (int64_t e = 0; e < operand_size(&inputs[j]); e++) set(&inputs[j], e, 1);
  set(&inputs[0], 3 * 20 + 7, NAN);
  set(&inputs[0], 5 * 20 + 7, INFINITY);
  flow_attributes attributes = { .matmul = { .activation = FLOW_RELU } };
  flow_call call = call_of(FLOW_OP_dense, &attributes, inputs, 3, &output, 1);
  for_each_kernel(kernel, FLOW_OP_dense) {
    if (kernel->supports && !kernel->supports(&call)) continue;
    assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
    for (int row = 0; row < 8; row++)
      for (int column = 0; column < 33; column++)
        assert_near(get(&output, row * 33 + column), row == 3 ? NAN : row == 5 ? INFINITY : 21, 0, kernel->variant, row * 33 + column);
  }
  for (int j = 0; j < 3; j++) operand_free(&inputs[j]);
  operand_free(&output);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_matmul_sizes), cmocka_unit_test(test_matmul_axes), cmocka_unit_test(test_matmul_dtypes),
    cmocka_unit_test(test_matmul_integers_wrap), cmocka_unit_test(test_empty), cmocka_unit_test(test_no_matrices),
    cmocka_unit_test(test_dense),
    cmocka_unit_test(test_not_finite)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
