/* test_update_kernels.c: what changes variables: SGD, Adam and assignment in every variant of every build, against formulas in double. */
#include "expected_values.h"

static const int real_dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64 };

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
  operand_free(&inputs[1]);
  for (int from = FLOW_INT8; from <= FLOW_BOOL; from++) {
    inputs[1] = operand(from, 0);
    set(&inputs[1], 0, 1);
    *(int64_t *)inputs[0].data = large;
    int64_t more = large + 1;
    run_everywhere(&call, 1, check_exact, &more);
    operand_free(&inputs[1]);
  }
  operand_free(&inputs[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_optimizers), cmocka_unit_test(test_assign), cmocka_unit_test(test_assign_exact),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
