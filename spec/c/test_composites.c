/* test_composites.c: mean and the named activations against their formulas, eager and traced. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/op.h"
#include "autodiff/apply.h"

#define OK(call) do { if ((call) != FLOW_OK) fail_msg("%s: %s", #call, flow_last_error()); } while (0)

/* ---- activations, elementwise: the formulas of Keras 3 in plain C ----------------------------------------------------- */

static double linear(double x) { return x; }
static double relu(double x) { return x > 0 ? x : 0; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return log1p(exp(x)); }
static double softsign(double x) { return x / (fabs(x) + 1); }
static double elu(double x) { return x > 0 ? x : exp(x) - 1; }
static double selu(double x) { return 1.05070098735548 * (x > 0 ? x : 1.67326324235438 * (exp(x) - 1)); }
static double gelu(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }
static double silu(double x) { return x / (1 + exp(-x)); }
static double relu6(double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
static double hard_sigmoid(double x) { return relu6(x + 3) / 6; }
static double hard_silu(double x) { return x * relu6(x + 3) / 6; }
static double leaky_relu(double x) { return x > 0 ? x : 0.2 * x; }
static double mish(double x) { return x * tanh(log1p(exp(x))); }

static const struct { const char *name; double (*formula)(double x); } elementwise[] = {
  { "linear", linear }, { "", linear }, { "relu", relu }, { "sigmoid", sigmoid }, { "softplus", softplus }, { "softsign", softsign },
  { "tanh", tanh }, { "selu", selu }, { "elu", elu }, { "exponential", exp }, { "gelu", gelu }, { "silu", silu }, { "swish", silu },
  { "hard_sigmoid", hard_sigmoid }, { "hard_silu", hard_silu }, { "hard_swish", hard_silu }, { "leaky_relu", leaky_relu },
  { "relu6", relu6 }, { "mish", mish },
};

static const double points[10] = { -7.5, -3.25, -2, -0.5, -1e-3, 0, 0.75, 2.5, 5, 8 };

static void elementwise_activations(void **state)
{
  flow_context *context = *state;
  for (size_t i = 0; i < sizeof elementwise / sizeof elementwise[0]; i++) {
    flow_tensor *x, *y;
    double values[10];
    OK(flow_tensor_new(FLOW_FLOAT64, 1, (int64_t[]){ 10 }, &x));
    OK(flow_tensor_write(x, points, 10));
    assert_true(flow_activation_known(elementwise[i].name));
    OK(flow_activate(context, elementwise[i].name, x, &y));
    assert_int_equal(flow_tensor_dtype(y), FLOW_FLOAT64);
    OK(flow_tensor_read(y, values, 10));
    for (int k = 0; k < 10; k++) {
      double want = elementwise[i].formula(points[k]);
      if (!(fabs(values[k] - want) <= 1e-12 * (1 + fabs(want)))) {
        fail_msg("%s of %g is %.15g, expected %.15g", elementwise[i].name, points[k], values[k], want);
      }
    }
    flow_tensor_release(x);
    flow_tensor_release(y);
  }
}

/* Along the last axis; rows of softmax sum to 1, log_softmax is its logarithm. */
static void softmax_activations(void **state)
{
  flow_context *context = *state;
  const double values[6] = { 1, 2, 3, -1, 100, 0 };
  flow_tensor *x, *y, *z;
  double p[6], l[6];
  OK(flow_tensor_new(FLOW_FLOAT64, 2, (int64_t[]){ 2, 3 }, &x));
  OK(flow_tensor_write(x, values, 6));
  OK(flow_activate(context, "softmax", x, &y));
  OK(flow_activate(context, "log_softmax", x, &z));
  OK(flow_tensor_read(y, p, 6));
  OK(flow_tensor_read(z, l, 6));
  for (int row = 0; row < 2; row++) {
    const double *v = values + 3 * row;
    double total = exp(v[0] - v[1]) + 1 + exp(v[2] - v[1]);
    for (int k = 0; k < 3; k++) {
      assert_true(fabs(p[3 * row + k] - exp(v[k] - v[1]) / total) < 1e-12);
      assert_true(fabs(l[3 * row + k] - (v[k] - v[1] - log(total))) < 1e-11);
    }
  }
  flow_tensor_release(x);
  flow_tensor_release(y);
  flow_tensor_release(z);
}

static void activations_take_integers(void **state)
{
  flow_context *context = *state;
  flow_tensor *x, *y;
  double value;
  OK(flow_tensor_scalar(FLOW_INT32, 2, &x));
  OK(flow_activate(context, "leaky_relu", x, &y));
  assert_int_equal(flow_tensor_dtype(y), FLOW_FLOAT32);
  flow_tensor_release(y);
  OK(flow_activate(context, "relu", x, &y));
  assert_int_equal(flow_tensor_dtype(y), FLOW_INT32);
  OK(flow_tensor_item(y, &value));
  assert_true(value == 2);
  flow_tensor_release(y);
  flow_tensor_release(x);
}

/* Slopes at the kinks, as Keras has them: a network whose units start at 0 depends on them. */
static void slopes_at_zero(void **state)
{
  flow_context *context = *state;
  static const struct { const char *name; double slope; } kinks[] = {
    { "relu", 0 }, { "relu6", 0 }, { "leaky_relu", 0.2 }, { "elu", 1 }, { "softsign", 1 }, { "gelu", 0.5 }, { "silu", 0.5 },
  };
  for (size_t i = 0; i < sizeof kinks / sizeof kinks[0]; i++) {
    flow_tensor *x, *y, *dx;
    flow_tape *tape;
    double slope;
    OK(flow_tensor_scalar(FLOW_FLOAT64, 0, &x));
    OK(flow_tape_begin(context, &tape));
    OK(flow_tape_watch(tape, x));
    OK(flow_activate(context, kinks[i].name, x, &y));
    OK(flow_tape_end(context, tape));
    OK(flow_tape_gradient(context, tape, y, &x, NULL, 1, &dx));
    OK(flow_tensor_item(dx, &slope));
    if (!(fabs(slope - kinks[i].slope) <= 1e-12)) fail_msg("%s has slope %g at 0, expected %g", kinks[i].name, slope, kinks[i].slope);
    flow_tensor_release(dx);
    flow_tensor_release(y);
    flow_tensor_release(x);
    flow_tape_release(tape);
  }
}

static void unknown_activation(void **state)
{
  flow_tensor *x, *y;
  OK(flow_tensor_scalar(FLOW_FLOAT32, 0, &x));
  assert_false(flow_activation_known("rel"));
  assert_int_equal(flow_activate(*state, "rel", x, &y), FLOW_INVALID_ARGUMENT);
  assert_null(y);
  assert_non_null(strstr(flow_last_error(), "there is no activation \"rel\"; known are linear, relu, sigmoid"));
  assert_non_null(strstr(flow_last_error(), "mish"));
  flow_tensor_release(x);
}

/* ---- mean --------------------------------------------------------------------------------------------------------------- */

static void check_mean(flow_context *context, flow_tensor *x, const flow_attributes *reduce, int dtype, int count, const double *want)
{
  flow_tensor *y;
  double got[4];
  OK(flow_mean(context, x, reduce, &y));
  assert_int_equal(flow_tensor_dtype(y), dtype);
  assert_true(flow_tensor_size(y) == count);
  OK(flow_tensor_read(y, got, count));
  for (int i = 0; i < count; i++) assert_true(fabs(got[i] - want[i]) <= 1e-6);
  flow_tensor_release(y);
  flow_tensor_release(x);
}

static flow_tensor *two_by_three(int dtype)
{
  flow_tensor *x;
  OK(flow_tensor_new(dtype, 2, (int64_t[]){ 2, 3 }, &x));
  OK(flow_tensor_write(x, (double[]){ 1, 2, 3, 5, 7, 9 }, 6));
  return x;
}

static void means(void **state)
{
  flow_context *context = *state;
  const flow_attributes rows = { .reduce = { .count = 1, .axes = { 0 } } }, columns = { .reduce = { .count = 1, .axes = { -1 } } };
  check_mean(context, two_by_three(FLOW_FLOAT32), NULL, FLOW_FLOAT32, 1, (double[]){ 4.5 });
  check_mean(context, two_by_three(FLOW_FLOAT64), &rows, FLOW_FLOAT64, 3, (double[]){ 3, 4.5, 6 });
  check_mean(context, two_by_three(FLOW_UINT8), &columns, FLOW_FLOAT32, 2, (double[]){ 2, 7 });

  flow_tensor *big, *bad, *y;   /* the sum of 80,000 ones does not fit a float16 */
  OK(flow_tensor_new(FLOW_FLOAT16, 1, (int64_t[]){ 80000 }, &big));
  OK(flow_tensor_fill(big, 1));
  check_mean(context, big, NULL, FLOW_FLOAT16, 1, (double[]){ 1 });

  bad = two_by_three(FLOW_FLOAT32);
  assert_int_equal(flow_mean(context, bad, &(flow_attributes){ .reduce = { .count = 1, .axes = { 2 } } }, &y), FLOW_INVALID_ARGUMENT);
  assert_null(y);
  flow_tensor_release(bad);
}

/* One plan, several batch sizes: the count is that of the rows that a run brings. */
static void mean_over_rows(void **state)
{
  flow_context *context = *state;
  flow_tensor *x, *y, *result;
  flow_plan *plan;
  flow_instance *instance;
  OK(flow_trace_begin(context));
  OK(flow_trace_input(context, FLOW_FLOAT32, 2, (int64_t[]){ -1, 2 }, &x));
  OK(flow_mean(context, x, NULL, &y));
  OK(flow_trace_end(context, &y, 1, &plan));
  flow_tensor_release(x);
  flow_tensor_release(y);
  OK(flow_instance_new(plan, 8, &instance));
  for (int64_t rows = 1; rows <= 8; rows += 7) {
    double mean;
    OK(flow_tensor_new(FLOW_FLOAT32, 2, (int64_t[]){ rows, 2 }, &x));
    for (int64_t i = 0; i < 2 * rows; i++) ((float *)flow_tensor_data(x))[i] = (float)i;
    OK(flow_instance_run(context, instance, &x, 1, &result));
    OK(flow_tensor_item(result, &mean));
    assert_true(fabs(mean - (double)(2 * rows - 1) / 2) < 1e-5);
    flow_tensor_release(x);
    flow_tensor_release(result);
  }
  flow_instance_release(instance);
  flow_plan_release(plan);
}

/* Whatever allocation fails, the call says so and nothing leaks (the sanitizers watch). */
static void memory_runs_out(void **state)
{
  flow_context *context = *state;
  flow_tensor *x = two_by_three(FLOW_FLOAT32), *y;
  int failures = 0;
  for (int after = 0; after < 200; after++) {
    flow_fail_allocation(after);
    flow_status status = flow_activate(context, "selu", x, &y);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) {
      flow_tensor_release(y);
      break;
    }
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_null(y);
    failures++;
  }
  assert_in_range(failures, 5, 199);
  flow_tensor_release(x);
}

static void memory_runs_out_in_gradients(void **state)
{
  flow_context *context = *state;
  flow_tensor *x = two_by_three(FLOW_FLOAT64), *y, *z, *p, *dx;
  flow_tape *tape;
  int failures = 0;
  OK(flow_tape_begin(context, &tape));
  OK(flow_tape_watch(tape, x));
  OK(flow_apply1(context, FLOW_OP_matmul, x, x, NULL, &(flow_attributes){ .matmul = { .transpose_b = 1 } }, &y));
  OK(flow_activate(context, "selu", y, &z));
  OK(flow_apply1(context, FLOW_OP_prod, z, NULL, NULL, NULL, &p));
  OK(flow_tape_end(context, tape));
  for (int after = 0; after < 1000; after++) {
    flow_fail_allocation(after);
    flow_status status = flow_tape_gradient(context, tape, p, &x, NULL, 1, &dx);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) {
      assert_non_null(dx);
      flow_tensor_release(dx);
      break;
    }
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    failures++;
  }
  assert_in_range(failures, 20, 999);
  flow_tape_release(tape);
  flow_tensor_release(x);
  flow_tensor_release(y);
  flow_tensor_release(z);
  flow_tensor_release(p);
}

static int setup(void **state) { return flow_context_new((flow_context **)state) == FLOW_OK ? 0 : -1; }

static int teardown(void **state)
{
  flow_context_release(*state);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(elementwise_activations), cmocka_unit_test(softmax_activations), cmocka_unit_test(activations_take_integers),
    cmocka_unit_test(slopes_at_zero), cmocka_unit_test(unknown_activation), cmocka_unit_test(means), cmocka_unit_test(mean_over_rows),
    cmocka_unit_test(memory_runs_out), cmocka_unit_test(memory_runs_out_in_gradients),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
