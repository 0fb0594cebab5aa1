/* test_network_kernels.c: elementary functions, normalization, softmax and cross-entropy in every variant of every build, against formulas
 * in double. */
#include "expected_values.h"

static const int real_dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64 };

/* ---- elementary functions (kernels/cpu/math.h) through their ops ----------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Distance from the exact value in units in the last place of a float. */
static double units_off(float found, double exact)
{
  int exponent;
  if (isnan(exact) || isnan(found)) return isnan(exact) && isnan(found) ? 0 : INFINITY;
  if (isinf((float)exact) || isinf(found)) return (float)exact == found ? 0 : INFINITY;
  frexp(exact, &exponent);
  return fabs((double)found - exact) / fmax(ldexp(1, exponent - 24), 0x1p-149);
}

static void test_elementary_functions(void **state)
{
  (void)state;
  static const struct { int op; double (*exact)(double x), limit; } functions[] = {
    { FLOW_OP_exp, exp, 1.5 }, { FLOW_OP_log, log, 1.5 }, { FLOW_OP_tanh, tanh, 1.5 }, { FLOW_OP_sigmoid, sigmoid, 2.5 }
  };
  enum { N = 1 << 17 };
  flow_operand x = operand(FLOW_FLOAT32, 1, N), y = operand(FLOW_FLOAT32, 1, N);
  float *bits = x.data;
  for (uint32_t i = 0; i < N; i++) {              /* half: all exponents and signs, NaN and infinities; half: where exp is a float */
    uint32_t pattern = i * 65537u;
    if (i % 2) memcpy(&bits[i], &pattern, sizeof pattern);
    else bits[i] = (float)(next_number() * 105);
  }
  bits[0] = 0.0f; bits[2] = -0.0f; bits[4] = INFINITY; bits[6] = -INFINITY; bits[8] = NAN; bits[10] = 0x1p-149f; bits[12] = 88.7228394f;
  flow_attributes attributes = { .cast = { 0 } };
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
    flow_call call = call_of(functions[f].op, &attributes, &x, 1, &y, 1);
    for_each_kernel(kernel, call.op) {
      assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
      for (int i = 0; i < N; i++) {
        float found = ((float *)y.data)[i];
        double off = units_off(found, functions[f].exact((double)bits[i]));
        if (off > functions[f].limit)
          fail_msg("%s %s(%a) = %a: %.2f units off", kernel->variant, flow_op_name(call.op), (double)bits[i], (double)found, off);
      }
    }
  }
  operand_free(&x);
  operand_free(&y);
}

/* Powers of numbers of all sizes and signs, whole and other exponents, and those of which C's pow has a special result. */
static void test_powers(void **state)
{
  (void)state;
  static const float special[] = { 0.0f, -0.0f, 1, -1, 2, -2, 0.5f, 3, -3, INFINITY, -INFINITY, NAN, 0x1p-149f, 0x1p-126f, 0x1.fffffep127f,
                                   1e-30f };
  enum { SPECIAL = sizeof special / sizeof special[0], N = 1 << 17 };
  flow_operand inputs[2] = { operand(FLOW_FLOAT32, 1, N), operand(FLOW_FLOAT32, 1, N) }, y = operand(FLOW_FLOAT32, 1, N);
  float *base = inputs[0].data, *exponent = inputs[1].data;
  for (int i = 0; i < N; i++) {
    base[i] = (float)(i % 3 ? exp(next_number() * (i % 7 ? 3 : 85)) : next_number() * 50);
    exponent[i] = (float)(i % 2 ? next_number() * 20 : round(next_number() * 10));
    if (i < SPECIAL * SPECIAL) base[i] = special[i / SPECIAL], exponent[i] = special[i % SPECIAL];
    else if (i % 11 == 0) base[i] = (float)(1 + next_number() * 1e-6), exponent[i] = (float)(next_number() * 1e6);
  }
  flow_attributes attributes = { .cast = { 0 } };
  flow_call call = call_of(FLOW_OP_pow, &attributes, inputs, 2, &y, 1);
  for_each_kernel(kernel, call.op) {
    assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
    for (int i = 0; i < N; i++) {
      float found = ((float *)y.data)[i];
      double off = units_off(found, pow((double)base[i], (double)exponent[i]));
      if (off > 0.51 && !(off <= 1 && fabsf(found) < 0x1p-126f))
        fail_msg("%s %a^%a = %a: %.2f units off", kernel->variant, (double)base[i], (double)exponent[i], (double)found, off);
    }
  }
  operand_free(&inputs[0]), operand_free(&inputs[1]), operand_free(&y);
}

/* ---- batch normalization ------------------------------------------------------------------------------------------- */

static void try_batch_norm(int dtype, int rows, int channels, double offset)
{
  flow_operand inputs[3] = { operand(dtype, 3, rows, 1, channels), operand(dtype, 1, channels), operand(dtype, 1, channels) };
  flow_operand outputs[3] = { operand(dtype, 3, rows, 1, channels), operand(dtype, 1, channels), operand(dtype, 1, channels) };
  for (int i = 0; i < 3; i++) fill(&inputs[i], 1);
  for (int64_t i = 0; i < operand_size(&inputs[0]); i++) set(&inputs[0], i, get(&inputs[0], i) + offset * (double)(i % channels));
  double *x = doubles_of(&inputs[0]), *gamma = doubles_of(&inputs[1]), *beta = doubles_of(&inputs[2]);
  double *y = doubles(rows * channels), *mean = doubles(channels), *variance = doubles(channels), epsilon = 1e-3;
  for (int c = 0; c < channels; c++) {
    for (int r = 0; r < rows; r++) mean[c] += x[r * channels + c] / rows;
    for (int r = 0; r < rows; r++) variance[c] += pow(x[r * channels + c] - mean[c], 2) / rows;
    if (rows == 0) variance[c] = 1;
    for (int r = 0; r < rows; r++)
      y[r * channels + c] = (x[r * channels + c] - mean[c]) / sqrt(variance[c] + epsilon) * gamma[c] + beta[c];
  }
  flow_attributes attributes = { .normalization = { .epsilon = epsilon, .axis = -1 } };
  flow_call call = call_of(FLOW_OP_batch_norm, &attributes, inputs, 3, outputs, 3);
  double unit = dtype == FLOW_FLOAT32 ? 0x1p-23 : 0x1p-50;
  double tolerance = unit * (8 + 4 * fabs(offset) * channels);
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { y, mean, variance }, .tolerance = tolerance });
  void *kept = outputs[0].data;
  outputs[0].data = NULL;                               /* nobody reads y */
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { NULL, mean, variance }, .tolerance = tolerance });
  outputs[0].data = kept;
  for (int i = 0; i < 3; i++) {
    operand_free(&inputs[i]);
    operand_free(&outputs[i]);
  }
  free(x); free(gamma); free(beta); free(y); free(mean); free(variance);
}

static void try_batch_norm_gradient(int dtype, int rows, int channels)
{
  flow_operand inputs[5] = { operand(dtype, 2, rows, channels), operand(dtype, 2, rows, channels), operand(dtype, 1, channels),
                             operand(dtype, 1, channels), operand(dtype, 1, channels) };
  flow_operand outputs[3] = { operand(dtype, 2, rows, channels), operand(dtype, 1, channels), operand(dtype, 1, channels) };
  for (int i = 0; i < 5; i++) fill(&inputs[i], 1);
  for (int c = 0; c < channels; c++) set(&inputs[4], c, 0.2 + fabs(get(&inputs[4], c)));
  double *g = doubles_of(&inputs[0]), *x = doubles_of(&inputs[1]), *gamma = doubles_of(&inputs[2]), *mean = doubles_of(&inputs[3]);
  double *variance = doubles_of(&inputs[4]), *dx = doubles(rows * channels), *dgamma = doubles(channels), *dbeta = doubles(channels);
  double epsilon = 1e-3;
  for (int c = 0; c < channels; c++) {
    double inverse = 1 / sqrt(variance[c] + epsilon);
    for (int r = 0; r < rows; r++) {
      dbeta[c] += g[r * channels + c];
      dgamma[c] += g[r * channels + c] * (x[r * channels + c] - mean[c]) * inverse;
    }
    for (int r = 0; r < rows; r++)
      dx[r * channels + c] = gamma[c] * inverse * (g[r * channels + c] - dbeta[c] / rows
                                                   - (x[r * channels + c] - mean[c]) * inverse * dgamma[c] / rows);
  }
  flow_attributes attributes = { .normalization = { .epsilon = epsilon, .axis = -1 } };
  flow_call call = call_of(FLOW_OP_batch_norm_gradient, &attributes, inputs, 5, outputs, 3);
  double tolerance = dtype == FLOW_FLOAT32 ? 2e-6 + 1e-8 * rows : 1e-13;
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { dx, dgamma, dbeta }, .tolerance = tolerance });
  for (int i = 0; i < 5; i++) operand_free(&inputs[i]);
  for (int i = 0; i < 3; i++) operand_free(&outputs[i]);
  free(g); free(x); free(gamma); free(mean); free(variance); free(dx); free(dgamma); free(dbeta);
}

static void test_batch_norm(void **state)
{
  (void)state;
  static const int sizes[][2] = {
    { 1, 1 }, { 0, 5 }, { 3, 2 }, { 50, 3 }, { 7, 8 }, { 33, 16 }, { 20, 19 }, { 12000, 5 }, { 700, 64 }, { 9, 300 }, { 2, 40001 }
  };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (int d = 0; d < 2; d++) {
      try_batch_norm(real_dtypes[d], sizes[i][0], sizes[i][1], 0);
      try_batch_norm_gradient(real_dtypes[d], sizes[i][0], sizes[i][1]);
    }
}

/* A mean a thousand times the deviation, and a first row that is far from the rest. */
static void test_batch_norm_large_mean(void **state)
{
  (void)state;
  try_batch_norm(FLOW_FLOAT32, 5000, 3, 1000);
  flow_operand inputs[3] = { operand(FLOW_FLOAT32, 2, 4096, 1), operand(FLOW_FLOAT32, 1, 1), operand(FLOW_FLOAT32, 1, 1) };
  flow_operand outputs[3] = { operand(FLOW_FLOAT32, 2, 4096, 1), operand(FLOW_FLOAT32, 1, 1), operand(FLOW_FLOAT32, 1, 1) };
  for (int i = 0; i < 4096; i++) set(&inputs[0], i, i == 0 ? 1e4 : i % 2);
  set(&inputs[1], 0, 1);
  set(&inputs[2], 0, 0);
  double *x = doubles_of(&inputs[0]), mean = 0, variance = 0;
  for (int i = 0; i < 4096; i++) mean += x[i] / 4096;
  for (int i = 0; i < 4096; i++) variance += (x[i] - mean) * (x[i] - mean) / 4096;
  flow_attributes attributes = { .normalization = { .epsilon = 0, .axis = -1 } };
  flow_call call = call_of(FLOW_OP_batch_norm, &attributes, inputs, 3, outputs, 3);
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { NULL, &mean, &variance }, .tolerance = 1e-6 });
  for (int i = 0; i < 3; i++) {
    operand_free(&inputs[i]);
    operand_free(&outputs[i]);
  }
  free(x);
}

/* ---- lines normalized by themselves ----------------------------------------------------------------------------------- */

/* normalize, layer_norm and normalize_gradient of {outer, rows, n} over the last axis, around `offset`. */
static void try_normalize(int dtype, int outer, int rows, int n, double offset, int uncentered)
{
  int lines = outer * rows, size = lines * n;
  flow_operand x = operand(dtype, 3, outer, rows, n), g = operand(dtype, 3, outer, rows, n);
  flow_operand outputs[2] = { operand(dtype, 3, outer, rows, n), operand(dtype, 3, outer, rows, 1) };
  flow_operand gamma = operand(dtype, 1, n), beta = operand(dtype, 3, 1, 1, n);
  fill(&x, 1), fill(&g, 1), fill(&gamma, 1), fill(&beta, 1);
  for (int i = 0; i < size; i++) set(&x, i, get(&x, i) + offset);
  double *xs = doubles_of(&x), *gs = doubles_of(&g), *by = doubles_of(&gamma), *plus = doubles_of(&beta), epsilon = 1e-3;
  double *y = doubles(size), *r = doubles(lines), *scaled = doubles(size), *dx = doubles(size);
  for (int line = 0; line < lines; line++) {
    const double *xl = xs + line * n, *gl = gs + line * n;
    double *yl = y + line * n, mean = 0, variance = 0, of_g = 0, products = 0;
    for (int i = 0; i < n && !uncentered; i++) mean += xl[i] / n;
    for (int i = 0; i < n; i++) variance += (xl[i] - mean) * (xl[i] - mean) / n;
    r[line] = 1 / sqrt(variance + epsilon);
    for (int i = 0; i < n; i++) yl[i] = (xl[i] - mean) * r[line];
    for (int i = 0; i < n; i++) scaled[line * n + i] = yl[i] * by[i] + plus[i];
    for (int i = 0; i < n && !uncentered; i++) of_g += gl[i] / n;
    for (int i = 0; i < n; i++) products += gl[i] * yl[i] / n;
    for (int i = 0; i < n; i++) dx[line * n + i] = r[line] * (gl[i] - of_g - yl[i] * products);
  }
  flow_attributes attributes = { .normalization = { .epsilon = epsilon, .axis = -1, .uncentered = uncentered } };
  double unit = dtype == FLOW_FLOAT32 ? 0x1p-23 : 0x1p-48, tolerance = unit * (lines > 0 ? 16 + 16 * r[0] : 16);
  flow_call call = call_of(FLOW_OP_normalize, &attributes, &x, 1, outputs, 2);
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { y, r }, .tolerance = tolerance });
  void *kept = outputs[0].data;
  outputs[0].data = NULL; /* nobody reads y */
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { NULL, r }, .tolerance = tolerance });
  outputs[0].data = kept;
  flow_operand parameters[3] = { x, gamma, beta };
  call = call_of(FLOW_OP_layer_norm, &attributes, parameters, 3, outputs, 1);
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { scaled }, .tolerance = 2 * tolerance });
  flow_operand normalized = operand(dtype, 3, outer, rows, n), scale = operand(dtype, 3, outer, rows, 1);
  for (int i = 0; i < size; i++) set(&normalized, i, y[i]);
  for (int line = 0; line < lines; line++) set(&scale, line, r[line]);
  flow_operand slope[3] = { g, normalized, scale };
  call = call_of(FLOW_OP_normalize_gradient, &attributes, slope, 3, outputs, 1);
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { dx }, .tolerance = tolerance * 4 });
  flow_operand *all[] = { &x, &g, &outputs[0], &outputs[1], &gamma, &beta, &normalized, &scale };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) operand_free(all[i]);
  free(xs);
  free(gs);
  free(by);
  free(plus);
  free(y);
  free(r);
  free(scaled);
  free(dx);
}

/* Lines shorter and longer than a vector, a run of vectors and what is taken together; far from 0, where x has few digits after the point
 * and a mean that were rounded to float would show. */
static void test_normalize(void **state)
{
  (void)state;
  static const int sizes[][3] = { { 1, 1, 2 },    { 3, 5, 1 },    { 1, 9, 3 },     { 2, 4, 17 }, { 1, 3, 64 }, { 5, 8, 96 },
                                  { 1, 10, 129 }, { 2, 3, 1000 }, { 1, 2, 20011 }, { 0, 3, 5 },  { 2, 3, 0 },  { 2, 0, 5 } };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (int d = 0; d < 2; d++)
      for (int uncentered = 0; uncentered < 2; uncentered++) {
        try_normalize(real_dtypes[d], sizes[i][0], sizes[i][1], sizes[i][2], 0, uncentered);
        try_normalize(real_dtypes[d], sizes[i][0], sizes[i][1], sizes[i][2], 1000, uncentered);
      }
}

/* ---- softmax -------------------------------------------------------------------------------------------------------- */

static void try_softmax(int dtype, int outer, int n, int inner, double scale)
{
  flow_operand inputs[2] = { operand(dtype, 3, outer, n, inner), operand(dtype, 3, outer, n, inner) };
  flow_operand output = operand(dtype, 3, outer, n, inner);
  int64_t size = operand_size(&output);
  fill(&inputs[0], scale);
  double *x = doubles_of(&inputs[0]), *soft = doubles(size), *log_soft = doubles(size);
  double *g = doubles(size), *y = doubles(size), *dx = doubles(size);
  double tolerance = dtype == FLOW_FLOAT32 ? 1e-6 : 1e-14;
  for (int o = 0; o < outer; o++)
    for (int i = 0; i < inner; i++) {
      double *line = x + o * n * inner + i, sum = 0, largest = -INFINITY;
      for (int k = 0; k < n; k++) largest = fmax(largest, line[k * inner]);
      for (int k = 0; k < n; k++) sum += exp(line[k * inner] - largest);
      for (int k = 0; k < n; k++) {
        soft[o * n * inner + k * inner + i] = exp(line[k * inner] - largest) / sum;
        log_soft[o * n * inner + k * inner + i] = line[k * inner] - largest - log(sum);
      }
    }
  flow_attributes attributes = { .axis = { .axis = -2 } };
  flow_call call = call_of(FLOW_OP_softmax, &attributes, inputs, 1, &output, 1);
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { soft }, .tolerance = tolerance });
  call.op = FLOW_OP_log_softmax;
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { log_soft }, .tolerance = tolerance });
  call.op = FLOW_OP_softmax_gradient;
  call.input_count = 2;
  fill(&inputs[0], 1);
  fill(&inputs[1], 1);
  for (int64_t i = 0; i < size; i++) {
    g[i] = get(&inputs[0], i);
    y[i] = get(&inputs[1], i);
  }
  for (int64_t i = 0; i < size; i++) {
    int64_t start = i / (n * inner) * n * inner + i % inner;
    double sum = 0;
    for (int k = 0; k < n; k++) sum += g[start + k * inner] * y[start + k * inner];
    dx[i] = (g[i] - sum) * y[i];
  }
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { dx }, .tolerance = tolerance * sqrt(n) });
  operand_free(&inputs[0]);
  operand_free(&inputs[1]);
  operand_free(&output);
  free(x); free(soft); free(log_soft); free(g); free(y); free(dx);
}

static void test_softmax(void **state)
{
  (void)state;
  static const int sizes[][3] = {
    { 1, 1, 1 }, { 5, 10, 1 }, { 3, 8, 1 }, { 2, 1001, 1 }, { 0, 4, 1 }, { 2, 5, 3 }, { 1, 7, 16 }, { 2, 33, 21 }, { 4, 17, 1 }
  };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (int d = 0; d < 2; d++) {
      try_softmax(real_dtypes[d], sizes[i][0], sizes[i][1], sizes[i][2], 3);
      try_softmax(real_dtypes[d], sizes[i][0], sizes[i][1], sizes[i][2], 200);    /* e^200 is not a float */
    }
}

/* ---- sparse cross-entropy --------------------------------------------------------------------------------------------- */

static void try_cross_entropy(int dtype, int label_dtype, int rows, int classes)
{
  flow_operand inputs[3] = { operand(dtype, 1, rows), operand(dtype, 2, rows, classes), operand(label_dtype, 1, rows) };
  flow_operand loss = operand(dtype, 1, rows), gradient = operand(dtype, 2, rows, classes);
  fill(&inputs[0], 1);
  fill(&inputs[1], 20);
  double *g = doubles_of(&inputs[0]), *z = doubles_of(&inputs[1]), *expected = doubles(rows), *dz = doubles(rows * classes);
  for (int r = 0; r < rows; r++) {
    int label = (r * 7) % classes;
    double largest = -INFINITY, sum = 0;
    set(&inputs[2], r, label);
    for (int c = 0; c < classes; c++) largest = fmax(largest, z[r * classes + c]);
    for (int c = 0; c < classes; c++) sum += exp(z[r * classes + c] - largest);
    expected[r] = log(sum) + largest - z[r * classes + label];
    for (int c = 0; c < classes; c++) dz[r * classes + c] = g[r] * (exp(z[r * classes + c] - largest) / sum - (c == label));
  }
  flow_attributes attributes = { .axis = { 0 } };
  double tolerance = dtype == FLOW_FLOAT32 ? 1e-6 : 1e-14;
  flow_call call = call_of(FLOW_OP_sparse_cross_entropy, &attributes, inputs + 1, 2, &loss, 1);
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { expected }, .tolerance = tolerance });
  call = call_of(FLOW_OP_sparse_cross_entropy_gradient, &attributes, inputs, 3, &gradient, 1);
  run_everywhere(&call, 0, check_values, &(expectation){ .value = { dz }, .tolerance = tolerance });
  for (int i = 0; i < 3; i++) operand_free(&inputs[i]);
  operand_free(&loss);
  operand_free(&gradient);
  free(g); free(z); free(expected); free(dz);
}

static void test_cross_entropy(void **state)
{
  (void)state;
  static const int label_dtypes[] = { FLOW_INT8, FLOW_UINT8, FLOW_INT32, FLOW_INT64 };
  for (int d = 0; d < 2; d++)
    for (int l = 0; l < 4; l++) {
      try_cross_entropy(real_dtypes[d], label_dtypes[l], 5, 10);
      try_cross_entropy(real_dtypes[d], label_dtypes[l], 3, 1);
      try_cross_entropy(real_dtypes[d], label_dtypes[l], 2, 100);
      try_cross_entropy(real_dtypes[d], label_dtypes[l], 0, 10);
    }
}

static void test_bad_labels(void **state)
{
  (void)state;
  static const double bad[] = { 10, -1, 300 };
  for (int d = 0; d < 2; d++)
    for (int b = 0; b < 3; b++) {
      flow_operand inputs[3] = { operand(real_dtypes[d], 2, 2, 2), operand(real_dtypes[d], 3, 2, 2, 10), operand(FLOW_INT32, 2, 2, 2) };
      flow_operand loss = operand(real_dtypes[d], 2, 2, 2), gradient = operand(real_dtypes[d], 3, 2, 2, 10);
      fill(&inputs[0], 1);
      fill(&inputs[1], 1);
      for (int i = 0; i < 4; i++) set(&inputs[2], i, i == 3 ? bad[b] : 9);
      flow_attributes attributes = { .axis = { 0 } };
      flow_call calls[2] = {
        call_of(FLOW_OP_sparse_cross_entropy, &attributes, inputs + 1, 2, &loss, 1),
        call_of(FLOW_OP_sparse_cross_entropy_gradient, &attributes, inputs, 3, &gradient, 1)
      };
      for (int c = 0; c < 2; c++) {
        calls[c].first_row = 40;
        for_each_kernel(kernel, calls[c].op) {
          if (kernel->supports && !kernel->supports(&calls[c])) continue;
          char expected[80];
          snprintf(expected, sizeof expected, "label %d of row 42 is outside 0..9", (int)bad[b]);
          assert_int_equal(run_kernel(kernel, &calls[c], ALL_AT_ONCE), FLOW_INVALID_ARGUMENT);
          assert_non_null(strstr(flow_last_error(), expected));
        }
      }
      for (int i = 0; i < 3; i++) operand_free(&inputs[i]);
      operand_free(&loss);
      operand_free(&gradient);
    }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_elementary_functions),  cmocka_unit_test(test_powers),     cmocka_unit_test(test_batch_norm),
    cmocka_unit_test(test_batch_norm_large_mean), cmocka_unit_test(test_normalize),  cmocka_unit_test(test_softmax),
    cmocka_unit_test(test_cross_entropy),         cmocka_unit_test(test_bad_labels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
