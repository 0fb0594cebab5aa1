/* test_network_kernels.c: normalization, softmax, cross-entropy, dropout, random numbers, optimizers and assignment in
 * every variant of every build, against formulas in double. */
#include <math.h>
#include "base/philox.h"
#include "kernel_runner.h"

/* Expected values of outputs and written inputs, in that order; NULL: not compared. */
typedef struct expectation { const double *value[8]; int written; double tolerance; } expectation;

static void check_values(const flow_call *call, const char *variant, void *argument)
{
  const expectation *e = argument;
  int next = 0;
  for (int i = 0; i < call->output_count; i++, next++)
    for (int64_t j = 0; call->outputs[i].data && e->value[next] && j < operand_size(&call->outputs[i]); j++)
      assert_near(get(&call->outputs[i], j), e->value[next][j], e->tolerance * (1 + fabs(e->value[next][j])), variant, j);
  for (int i = 0; i < call->input_count; i++)
    if (e->written >> i & 1) {
      for (int64_t j = 0; e->value[next] && j < operand_size(&call->inputs[i]); j++)
        assert_near(get(&call->inputs[i], j), e->value[next][j], e->tolerance * (1 + fabs(e->value[next][j])), variant, j);
      next++;
    }
}

static double *doubles(int64_t n)
{
  double *block = calloc((size_t)n + 1, sizeof(double));
  assert_non_null(block);
  return block;
}

static double *doubles_of(const flow_operand *x)
{
  double *block = doubles(operand_size(x));
  for (int64_t i = 0; i < operand_size(x); i++) block[i] = get(x, i);
  return block;
}

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

/* ---- dropout ---------------------------------------------------------------------------------------------------------- */

static void test_dropout(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16 };
  enum { ROWS = 40, ELEMENTS = 103 };
  static unsigned char masks[3][ROWS * ELEMENTS];
  flow_scalars scalars = { .seed = 5, .step = 17, .first_sample = 128 };
  for (int d = 0; d < 3; d++) {
    flow_operand x = operand(dtypes[d], 2, ROWS, ELEMENTS), y = operand(dtypes[d], 2, ROWS, ELEMENTS);
    for (int64_t i = 0; i < operand_size(&x); i++) set(&x, i, 3);
    flow_attributes attributes = { .dropout = { .rate = 0.25, .seed = 9, .stream = 2 } };
    flow_call call = call_of(FLOW_OP_dropout, &attributes, &x, 1, &y, 1);
    call.scalars = &scalars;
    for_each_kernel(kernel, FLOW_OP_dropout) {
      if (kernel->supports && !kernel->supports(&call)) continue;
      int64_t kept = 0;
      assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
      for (int i = 0; i < ROWS * ELEMENTS; i++) {
        double value = get(&y, i);
        masks[d][i] = value != 0;
        kept += value != 0;
        assert_near(value, value != 0 ? 4 : 0, 1e-6, kernel->variant, i);
        assert_int_equal(masks[d][i], masks[0][i]);
      }
      assert_true(fabs((double)kept / (ROWS * ELEMENTS) - 0.75) < 0.03);     /* 4.4 standard deviations */
      /* chunks of rows, and another replica that starts later, give the same mask */
      flow_operand part_x = operand(dtypes[d], 2, 7, ELEMENTS), part_y = operand(dtypes[d], 2, 7, ELEMENTS);
      for (int64_t i = 0; i < operand_size(&part_x); i++) set(&part_x, i, 3);
      flow_scalars later = { .seed = 5, .step = 17, .first_sample = 128 + 4 };
      flow_call part = call;
      part.inputs = &part_x;
      part.outputs = &part_y;
      part.scalars = &later;
      part.first_row = 10;
      assert_int_equal(run_kernel(kernel, &part, ALL_AT_ONCE), FLOW_OK);
      for (int i = 0; i < 7 * ELEMENTS; i++) assert_int_equal(get(&part_y, i) != 0, masks[0][14 * ELEMENTS + i]);
      /* another step, seed or stream gives another mask */
      flow_attributes other = attributes;
      for (int change = 0; change < 4; change++) {
        later = scalars;
        other = attributes;
        if (change == 0) later.step++;
        if (change == 1) later.seed++;
        if (change == 2) other.dropout.stream++;
        if (change == 3) other.dropout.seed++;
        part = call;
        part.attributes = &other;
        part.scalars = &later;
        int64_t same = 0;
        assert_int_equal(run_kernel(kernel, &part, ALL_AT_ONCE), FLOW_OK);
        for (int i = 0; i < ROWS * ELEMENTS; i++) same += (get(&y, i) != 0) == masks[0][i];
        assert_true(same < ROWS * ELEMENTS * 0.7);                              /* 0.625 expected */
      }
      for (int all = 0; all < 2; all++) {
        other = attributes;
        other.dropout.rate = all;
        part = call;
        part.attributes = &other;
        assert_int_equal(run_kernel(kernel, &part, ALL_AT_ONCE), FLOW_OK);
        for (int i = 0; i < ROWS * ELEMENTS; i++) assert_near(get(&y, i), all ? 0 : 3, 0, kernel->variant, i);
      }
      operand_free(&part_x);
      operand_free(&part_y);
    }
    operand_free(&x);
    operand_free(&y);
  }
}

/* ---- random numbers --------------------------------------------------------------------------------------------------- */

static void moments_of(const flow_operand *x, double *mean, double *deviation, double *low, double *high)
{
  int64_t n = operand_size(x);
  *mean = *deviation = 0;
  *low = INFINITY;
  *high = -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    *mean += get(x, i) / (double)n;
    *low = fmin(*low, get(x, i));
    *high = fmax(*high, get(x, i));
  }
  for (int64_t i = 0; i < n; i++) *deviation += pow(get(x, i) - *mean, 2) / (double)n;
  *deviation = sqrt(*deviation);
}

static void test_random_distributions(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16 };
  enum { N = 50001 };
  for (int op = FLOW_OP_random_uniform; op <= FLOW_OP_random_truncated_normal; op++)
    for (int d = 0; d < 4; d++) {
      flow_operand x = operand(dtypes[d], 1, N);
      int uniform = op == FLOW_OP_random_uniform, truncated = op == FLOW_OP_random_truncated_normal;
      flow_attributes attributes = { .random = { .dtype = dtypes[d], .low = 1, .high = 2, .seed = 3, .stream = 4 } };
      flow_call call = call_of(op, &attributes, NULL, 0, &x, 1);
      call.scalars = &(flow_scalars){ .seed = 0 };
      for_each_kernel(kernel, op) {
        double mean, deviation, low, high, first, again[2];
        assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
        moments_of(&x, &mean, &deviation, &low, &high);
        if (uniform) {
          assert_true(low >= 1 && high < 2);
          assert_true(fabs(mean - 1.5) < 0.01 && fabs(deviation - sqrt(1.0 / 12)) < 0.005);
        } else if (truncated) {
          assert_true(low >= -3.02 && high <= 5.02);
          assert_true(fabs(mean - 1) < 0.04 && fabs(deviation - 2 * 0.87962566) < 0.03);
        } else {
          assert_true(low < -5 && high > 7);
          assert_true(fabs(mean - 1) < 0.05 && fabs(deviation - 2) < 0.04);
        }
        first = get(&x, N - 2);
        /* an element depends on the key and its place only */
        flow_operand shorter = operand(dtypes[d], 1, N - 1);
        flow_call less = call;
        less.outputs = &shorter;
        assert_int_equal(run_kernel(kernel, &less, BACKWARDS), FLOW_OK);
        assert_memory_equal(shorter.data, x.data, operand_bytes(&shorter));
        /* step and run seed count only where the record says so */
        flow_scalars scalars = { .seed = 1, .step = 1 };
        less.scalars = &scalars;
        assert_int_equal(run_kernel(kernel, &less, ALL_AT_ONCE), FLOW_OK);
        assert_true(get(&shorter, N - 2) == first);
        flow_attributes keyed = attributes;
        keyed.random.keyed_by_step = 1;
        less.attributes = &keyed;
        assert_int_equal(run_kernel(kernel, &less, ALL_AT_ONCE), FLOW_OK);
        assert_memory_not_equal(shorter.data, x.data, operand_bytes(&shorter));
        memcpy(again, shorter.data, 16);
        scalars.step = 2;
        assert_int_equal(run_kernel(kernel, &less, ALL_AT_ONCE), FLOW_OK);
        assert_memory_not_equal(shorter.data, again, 16);
        operand_free(&shorter);
      }
      operand_free(&x);
    }
}

static void test_random_integers(void **state)
{
  (void)state;
  static const struct { int dtype; double low, high; } cases[] = {
    { FLOW_INT32, -3, 4 }, { FLOW_UINT8, 0, 256 }, { FLOW_INT8, -128, 128 }, { FLOW_INT64, -0x1p60, 0x1p60 }, { FLOW_INT64, 5, 6 },
    { FLOW_BOOL, 0, 2 }, { FLOW_INT32, -0x1p31, 0x1p31 }, { FLOW_INT32, 2, 2 }
  };
  enum { N = 20000 };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    flow_operand x = operand(cases[i].dtype, 1, N);
    flow_attributes attributes = { .random = { .dtype = cases[i].dtype, .low = cases[i].low, .high = cases[i].high } };
    flow_call call = call_of(FLOW_OP_random_uniform, &attributes, NULL, 0, &x, 1);
    call.scalars = &(flow_scalars){ .seed = 0 };
    for_each_kernel(kernel, FLOW_OP_random_uniform) {
      double mean, deviation, low, high, range = cases[i].high - cases[i].low;
      assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
      moments_of(&x, &mean, &deviation, &low, &high);
      assert_true(low >= cases[i].low && (high < cases[i].high || range == 0));
      if (range > 0 && range <= 256) assert_true(low == cases[i].low && high == cases[i].high - 1);
      if (range > 1) assert_true(fabs(mean - (cases[i].low + cases[i].high - 1) / 2) < 0.015 * range);
    }
    operand_free(&x);
  }
}

/* ---- optimizers ------------------------------------------------------------------------------------------------------- */

static void try_sgd(int dtype, int n, double momentum, int nesterov)
{
  flow_operand inputs[4] = { operand(dtype, 1, n), operand(dtype, 1, n), operand(FLOW_FLOAT32, 0), operand(dtype, 1, n) };
  for (int i = 0; i < 4; i++) fill(&inputs[i], 1);
  set(&inputs[2], 0, 0.0625);
  double *g = doubles_of(&inputs[0]), *w = doubles_of(&inputs[1]), *v = doubles_of(&inputs[3]);
  for (int i = 0; i < n; i++) {
    v[i] = momentum * v[i] - 0.0625 * g[i];
    w[i] += nesterov ? momentum * v[i] - 0.0625 * g[i] : v[i];
  }
  flow_attributes attributes = { .optimizer = { .momentum = momentum, .nesterov = nesterov } };
  int with_velocity = momentum != 0;
  flow_call call = call_of(FLOW_OP_sgd, &attributes, inputs, 3 + with_velocity, NULL, 0);
  int written = with_velocity ? 2 | 8 : 2;
  double tolerance = dtype == FLOW_FLOAT32 ? 3e-7 : 1e-15;
  run_everywhere(&call, written, check_values, &(expectation){ .value = { w, v }, .written = written, .tolerance = tolerance });
  for (int i = 0; i < 4; i++) operand_free(&inputs[i]);
  free(g); free(w); free(v);
}

static void try_adam(int dtype, int n, int iterations, int amsgrad)
{
  flow_operand inputs[7] = { operand(dtype, 1, n), operand(dtype, 1, n), operand(dtype, 1, n), operand(dtype, 1, n),
                             operand(FLOW_FLOAT32, 0), operand(FLOW_INT64, 0), operand(dtype, 1, n) };
  for (int i = 0; i < 7; i++) fill(&inputs[i], 1);
  set(&inputs[4], 0, 0.0625);
  set(&inputs[5], 0, iterations);
  for (int i = 0; i < n; i++) {
    set(&inputs[3], i, fabs(get(&inputs[3], i)));
    set(&inputs[6], i, fabs(get(&inputs[6], i)));
  }
  double *g = doubles_of(&inputs[0]), *w = doubles_of(&inputs[1]), *m = doubles_of(&inputs[2]), *v = doubles_of(&inputs[3]);
  double *top = doubles_of(&inputs[6]);
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7, t = iterations + 1;
  double rate = 0.0625 * sqrt(1 - pow((float)beta_2, t)) / (1 - pow((float)beta_1, t));      /* powers of float32, as Keras */
  for (int i = 0; i < n; i++) {
    m[i] += (g[i] - m[i]) * (1 - beta_1);
    v[i] += (g[i] * g[i] - v[i]) * (1 - beta_2);
    if (amsgrad) top[i] = fmax(top[i], v[i]);
    w[i] -= rate * m[i] / (sqrt(amsgrad ? top[i] : v[i]) + epsilon);
  }
  flow_attributes attributes = { .optimizer = { .beta_1 = beta_1, .beta_2 = beta_2, .epsilon = epsilon, .amsgrad = amsgrad } };
  flow_call call = call_of(FLOW_OP_adam, &attributes, inputs, 6 + amsgrad, NULL, 0);
  int written = amsgrad ? 2 | 4 | 8 | 64 : 2 | 4 | 8;
  double tolerance = dtype == FLOW_FLOAT32 ? 1e-6 : 1e-14;
  run_everywhere(&call, written, check_values, &(expectation){ .value = { w, m, v, top }, .written = written, .tolerance = tolerance });
  for (int i = 0; i < 7; i++) operand_free(&inputs[i]);
  free(g); free(w); free(m); free(v); free(top);
}

static void test_optimizers(void **state)
{
  (void)state;
  static const int sizes[] = { 1, 5, 64, 1003, 40000 };
  for (int i = 0; i < 5; i++)
    for (int d = 0; d < 2; d++) {
      try_sgd(real_dtypes[d], sizes[i], 0, 0);
      try_sgd(real_dtypes[d], sizes[i], 0.9, 0);
      try_sgd(real_dtypes[d], sizes[i], 0.9, 1);
      try_adam(real_dtypes[d], sizes[i], 0, 0);
      try_adam(real_dtypes[d], sizes[i], 100, 1);
    }
}

/* ---- assignment ------------------------------------------------------------------------------------------------------- */

static void try_assign(int to_dtype, int from_dtype, int rank, int a, int b, int c)
{
  flow_operand inputs[2] = { operand(to_dtype, 3, 3, 4, 129), rank == 0 ? operand(from_dtype, 0) : rank == 1 ? operand(from_dtype, 1, c)
                             : rank == 2 ? operand(from_dtype, 2, b, c) : operand(from_dtype, 3, a, b, c) };
  fill(&inputs[0], 50);
  fill(&inputs[1], 50);
  int64_t sizes[3] = { rank > 2 ? a : 1, rank > 1 ? b : 1, rank > 0 ? c : 1 };
  double *from = doubles_of(&inputs[1]), *before = doubles_of(&inputs[0]), *set_to = doubles(3 * 4 * 129), *added = doubles(3 * 4 * 129);
  flow_operand cast = operand(to_dtype, 0);
  for (int64_t i = 0; i < 3 * 4 * 129; i++) {
    int64_t x = i / (4 * 129) % sizes[0], y = i / 129 % 4 % sizes[1], z = i % 129 % sizes[2];
    double value = from[(x * sizes[1] + y) * sizes[2] + z];
    set(&cast, 0, value);
    set_to[i] = get(&cast, 0);
    set(&cast, 0, before[i] + value);
    added[i] = get(&cast, 0);
  }
  flow_attributes attributes = { .cast = { 0 } };
  flow_call call = call_of(FLOW_OP_assign, &attributes, inputs, 2, NULL, 0);
  run_everywhere(&call, 1, check_values, &(expectation){ .value = { set_to }, .written = 1 });
  call.op = FLOW_OP_assign_add;
  run_everywhere(&call, 1, check_values, &(expectation){ .value = { added }, .written = 1 });
  operand_free(&cast);
  operand_free(&inputs[0]);
  operand_free(&inputs[1]);
  free(from); free(before); free(set_to); free(added);
}

static void test_assign(void **state)
{
  (void)state;
  for (int to = 0; to < FLOW_DTYPE_COUNT; to++)
    for (int from = 0; from < FLOW_DTYPE_COUNT; from++) {
      try_assign(to, from, 3, 3, 4, 129);
      try_assign(to, from, 0, 1, 1, 1);
      try_assign(to, from, 1, 1, 1, 129);
      try_assign(to, from, 2, 1, 4, 1);
      try_assign(to, from, 3, 3, 1, 129);
    }
}

static void check_exact(const flow_call *call, const char *variant, void *argument)
{
  (void)variant;
  assert_true(*(int64_t *)call->inputs[0].data == *(int64_t *)argument);
}

/* Counters beyond 2^53 stay exact. */
static void test_assign_exact(void **state)
{
  (void)state;
  flow_operand inputs[2] = { operand(FLOW_INT64, 0), operand(FLOW_INT64, 0) };
  int64_t large = (INT64_C(1) << 60) + 1, sum = large + 2;
  *(int64_t *)inputs[0].data = 2;
  *(int64_t *)inputs[1].data = large;
  flow_attributes attributes = { .cast = { 0 } };
  flow_call call = call_of(FLOW_OP_assign, &attributes, inputs, 2, NULL, 0);
  run_everywhere(&call, 1, check_exact, &large);
  call.op = FLOW_OP_assign_add;
  run_everywhere(&call, 1, check_exact, &sum);
  operand_free(&inputs[0]);
  operand_free(&inputs[1]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_elementary_functions), cmocka_unit_test(test_batch_norm), cmocka_unit_test(test_batch_norm_large_mean),
    cmocka_unit_test(test_softmax),
    cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_bad_labels), cmocka_unit_test(test_dropout),
    cmocka_unit_test(test_random_distributions), cmocka_unit_test(test_random_integers), cmocka_unit_test(test_optimizers),
    cmocka_unit_test(test_assign), cmocka_unit_test(test_assign_exact)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
