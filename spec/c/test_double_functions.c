/* test_double_functions.c: elementary functions of doubles (kernels/cpu/math_doubles.h) through their ops, in every variant of every build,
 * against libm's functions of long doubles. */
#include "expected_values.h"

static long double sigmoid(long double x)
{
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
static long double softplus(long double x)
{
  return (x < 0 ? 0 : x) + log1pl(expl(-fabsl(x)));
}
static long double silu(long double x)
{
  return x * sigmoid(x);
}

/* Distance from the exact value in units in the last place of a double. */
static double units_off(double found, long double exact)
{
  int exponent;
  if (isnan(exact) || isnan(found)) return isnan(exact) && isnan(found) ? 0 : INFINITY;
  if (isinf((double)exact) || isinf(found)) return (double)exact == found ? 0 : INFINITY;
  frexpl(exact, &exponent);
  return (double)(fabsl((long double)found - exact) / fmaxl(ldexpl(1, exponent - 53), 0x1p-1074L));
}

typedef struct function {
  int op;
  long double (*exact)(long double x);
  double limit; /* units */
  double most;  /* by size; larger arguments are left to libm, which is not tested here */
} function;
static const function functions[] = {
  { FLOW_OP_exp, expl, 1, INFINITY },
  { FLOW_OP_expm1, expm1l, 2, INFINITY },
  { FLOW_OP_log, logl, 1, INFINITY },
  { FLOW_OP_log1p, log1pl, 2, INFINITY },
  { FLOW_OP_tanh, tanhl, 2.5, INFINITY },
  { FLOW_OP_sigmoid, sigmoid, 2, INFINITY },
  { FLOW_OP_softplus, softplus, 2, INFINITY },
  { FLOW_OP_silu, silu, 3, 700 },
  { FLOW_OP_sin, sinl, 2, 1e6 },
  { FLOW_OP_cos, cosl, 2, 1e6 },
  { FLOW_OP_tan, tanl, 3, 1e6 },
  { FLOW_OP_arctan, atanl, 1, INFINITY },
};

/* All exponents and signs with NaN and infinities; numbers near 0; those where exp is a double; what is special to one function. */
static double argument(int64_t i)
{
  static const double special[] = {
    0.0,
    -0.0,
    INFINITY,
    -INFINITY,
    NAN,
    0x1p-1074,
    -0x1p-1074,
    0x1p-1022,
    709.782712893384,
    709.79,
    -708.4,
    -745.2,
    1,
    -1,
    20,
    -20,
    38,
    -38,
    0x1.921fb54442d18p1,
    0x1.921fb54442d18p0,
    1e6,
    -1e6,
    0x1.6a09e667f3bcdp-1,
    0x1.6a09e667f3bccp-1,
    0x1.fffffffffffffp1023
  };
  enum { SPECIAL = sizeof special / sizeof special[0] };
  uint64_t pattern = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
  double x;
  if (i < SPECIAL) return special[i];
  memcpy(&x, &pattern, sizeof x);
  if (i % 4 == 0) return x;
  if (i % 4 == 1) return next_number();
  return next_number() * (i % 4 == 2 ? 750 : 30);
}

static void test_units(void **state)
{
  (void)state;
  enum { N = (1 << 16) + 5 };
  flow_operand x = operand(FLOW_FLOAT64, 1, N), y = operand(FLOW_FLOAT64, 1, N);
  double *from = x.data, *to = y.data;
  for (int64_t i = 0; i < N; i++) from[i] = argument(i);
  flow_attributes attributes = { .cast = { 0 } };
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
    const function *of = &functions[f];
    flow_call call = call_of(of->op, &attributes, &x, 1, &y, 1);
    for_each_kernel(kernel, call.op)
    {
      assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
      for (int64_t i = 0; i < N; i++) {
        if (fabs(from[i]) > of->most) continue;
        double off = units_off(to[i], of->exact((long double)from[i]));
        if (off > of->limit) fail_msg("%s %s(%a) = %a: %.2f units off", kernel->variant, flow_op_name(call.op), from[i], to[i], off);
        if (from[i] == 0 && to[i] == 0) assert_int_equal(signbit(to[i]), signbit(from[i]));
      }
    }
  }
  operand_free(&x), operand_free(&y);
}

/* Lines of doubles of lengths around those of vectors, and infinities among them. */
static void test_softmax(void **state)
{
  (void)state;
  for (int n = 1; n < 40; n++) {
    flow_operand x = operand(FLOW_FLOAT64, 2, 3, n), y = operand(FLOW_FLOAT64, 2, 3, n);
    double *from = x.data, *to = y.data;
    for (int i = 0; i < 3 * n; i++) from[i] = next_number() * 20;
    if (n > 2) from[n] = -INFINITY;
    flow_attributes attributes = { .axis = { .axis = -1 } };
    for (int logarithms = 0; logarithms < 2; logarithms++) {
      flow_call call = call_of(logarithms ? FLOW_OP_log_softmax : FLOW_OP_softmax, &attributes, &x, 1, &y, 1);
      for_each_kernel(kernel, call.op)
      {
        if (kernel->supports && !kernel->supports(&call)) continue;
        assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
        for (int line = 0; line < 3; line++) {
          long double sum = 0;
          for (int k = 0; k < n; k++) sum += expl((long double)from[line * n + k]);
          for (int k = 0; k < n; k++) {
            long double exact = (long double)from[line * n + k] - logl(sum);
            double found = to[line * n + k], expected = (double)(logarithms ? exact : expl(exact));
            if (found != expected) assert_true(fabs(found - expected) <= 1e-14 * (logarithms ? 20 : expected));
          }
        }
      }
    }
    operand_free(&x), operand_free(&y);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_units), cmocka_unit_test(test_softmax) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
