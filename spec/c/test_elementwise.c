/* Elementwise ops and casts against scalar references: every op, dtype, layout, broadcast and build of the kernels. */
#include "kernel_arrays.h"
#include "cpu/elementwise/elementwise.h"

/* ---- references --------------------------------------------------------------------------------------------------- */

static double ref_sign(double a)            { return a > 0 ? 1 : a < 0 ? -1 : a; }
static double ref_square(double a)          { return a * a; }
static double ref_neg(double a)             { return -a; }
static double ref_relu(double a)            { return a < 0 ? 0 : a; }
static double ref_rsqrt(double a)           { return 1 / sqrt(a); }
static double ref_reciprocal(double a)      { return 1 / a; }
static double ref_sigmoid(double a)         { return a < 0 ? exp(a) / (1 + exp(a)) : 1 / (1 + exp(-a)); }
static double ref_softsign(double a)
{
  return a / (1 + fabs(a));
}
static double ref_softplus(double a)        { return a > 0 ? a + log1p(exp(-a)) : log1p(exp(a)); }
static double ref_not(double a)             { return a == 0; }
static double ref_finite(double a)          { return isfinite(a); }
static double ref_add(double a, double b)   { return a + b; }
static double ref_sub(double a, double b)   { return a - b; }
static double ref_mul(double a, double b)   { return a * b; }
static double ref_div(double a, double b)   { return a / b; }
static double ref_div0(double a, double b)  { return b == 0 ? 0 : a / b; }
static double ref_max(double a, double b)   { return isnan(a) || isnan(b) ? NAN : a > b ? a : b; }
static double ref_min(double a, double b)   { return isnan(a) || isnan(b) ? NAN : a < b ? a : b; }
static double ref_mod(double a, double b)
{
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static double ref_eq(double a, double b)    { return a == b; }
static double ref_ne(double a, double b)    { return a != b; }
static double ref_lt(double a, double b)    { return a < b; }
static double ref_le(double a, double b)    { return a <= b; }
static double ref_gt(double a, double b)    { return a > b; }
static double ref_ge(double a, double b)    { return a >= b; }
static double ref_and(double a, double b)   { return a != 0 && b != 0; }
static double ref_or(double a, double b)    { return a != 0 || b != 0; }
static double ref_gelu(double x)
{
  return x * erfc(-x / sqrt(2)) / 2;
}
static double ref_gelu_gradient(double g, double x)
{
  return g * (erfc(-x / sqrt(2)) / 2 + x * exp(-x * x / 2) / sqrt(2 * M_PI));
}
static double ref_gelu_tanh(double x)
{
  return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
static double ref_gelu_tanh_gradient(double g, double x)
{
  double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), share = 1 / (1 + exp(-2 * u));
  return g * (share + x * 2 / (2 + exp(2 * u) + exp(-2 * u)) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x));
}
static double ref_silu(double x)
{
  return x / (1 + exp(-x));
}
static double ref_silu_gradient(double g, double x)
{
  return g * (1 / (1 + exp(-x)) + x / (2 + exp(x) + exp(-x)));
}
static double ref_relu_gradient(double g, double y) { return y > 0 ? g : 0; }

/* Integers of at most 8 bits and of 64 bits are references of themselves in 128-bit arithmetic, wrapped by the store. */
static int64_t wrap(__int128 x)                  { return (int64_t)(uint64_t)x; }
static int64_t int_neg(int64_t a)                { return wrap(-(__int128)a); }
static int64_t int_abs(int64_t a)                { return a < 0 ? wrap(-(__int128)a) : a; }
static int64_t int_sign(int64_t a)               { return (a > 0) - (a < 0); }
static int64_t int_square(int64_t a)             { return wrap((__int128)a * a); }
static int64_t int_same(int64_t a)               { return a; }
static int64_t int_relu(int64_t a)               { return a < 0 ? 0 : a; }
static int64_t int_not(int64_t a)                { return a == 0; }
static int64_t int_one(int64_t a)                { (void)a; return 1; }
static int64_t int_add(int64_t a, int64_t b)     { return wrap((__int128)a + b); }
static int64_t int_sub(int64_t a, int64_t b)     { return wrap((__int128)a - b); }
static int64_t int_mul(int64_t a, int64_t b)     { return wrap((__int128)a * b); }
static int64_t int_max(int64_t a, int64_t b)     { return a > b ? a : b; }
static int64_t int_min(int64_t a, int64_t b)     { return a < b ? a : b; }
static int64_t int_mod(int64_t a, int64_t b)
{
  __int128 r = b == 0 ? 0 : (__int128)a % b;
  return (int64_t)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}
static int64_t int_pow(int64_t a, int64_t b)
{
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t y = 1;
  for (int64_t i = 0; i < b; i++) y *= (uint64_t)a;
  return (int64_t)y;
}
static int64_t int_eq(int64_t a, int64_t b)      { return a == b; }
static int64_t int_ne(int64_t a, int64_t b)      { return a != b; }
static int64_t int_lt(int64_t a, int64_t b)      { return a < b; }
static int64_t int_le(int64_t a, int64_t b)      { return a <= b; }
static int64_t int_gt(int64_t a, int64_t b)      { return a > b; }
static int64_t int_ge(int64_t a, int64_t b)      { return a >= b; }
static int64_t int_and(int64_t a, int64_t b)     { return a != 0 && b != 0; }
static int64_t int_or(int64_t a, int64_t b)      { return a != 0 || b != 0; }
static int64_t int_relu_gradient(int64_t g, int64_t y) { return y > 0 ? g : 0; }

static double  ref_floor_divide(double a, double b) { return floor(a / b); }
static int64_t int_floor_divide(int64_t a, int64_t b)
{
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

typedef struct op_case {
  int     op, arity, to_bool;
  double  (*one)(double);
  double  (*two)(double, double);
  int64_t (*int_one)(int64_t);              /* NULL with int_two NULL: floats only */
  int64_t (*int_two)(int64_t, int64_t);
  double  low, high;                        /* range of the float inputs */
  double  units;                            /* allowed error in units in the last place */
} op_case;

static const op_case cases[] = {
  { FLOW_OP_neg, 1, 0, ref_neg, NULL, int_neg, NULL, -9, 9, 0 },
  { FLOW_OP_abs, 1, 0, fabs, NULL, int_abs, NULL, -9, 9, 0 },
  { FLOW_OP_sign, 1, 0, ref_sign, NULL, int_sign, NULL, -9, 9, 0 },
  { FLOW_OP_square, 1, 0, ref_square, NULL, int_square, NULL, -9, 9, 0 },
  { FLOW_OP_relu, 1, 0, ref_relu, NULL, int_relu, NULL, -9, 9, 0 },
  { FLOW_OP_floor, 1, 0, floor, NULL, int_same, NULL, -9, 9, 0 },
  { FLOW_OP_ceil, 1, 0, ceil, NULL, int_same, NULL, -9, 9, 0 },
  { FLOW_OP_round, 1, 0, rint, NULL, int_same, NULL, -9, 9, 0 },
  { FLOW_OP_exp, 1, 0, exp, NULL, NULL, NULL, -9, 9, 2 },
  { FLOW_OP_expm1, 1, 0, expm1, NULL, NULL, NULL, -2, 2, 1 },
  { FLOW_OP_expm1, 1, 0, expm1, NULL, NULL, NULL, -90, 88, 1 },
  { FLOW_OP_log, 1, 0, log, NULL, NULL, NULL, 0.01, 9, 2 },
  { FLOW_OP_log1p, 1, 0, log1p, NULL, NULL, NULL, -0.9, 9, 4 },
  { FLOW_OP_sqrt, 1, 0, sqrt, NULL, NULL, NULL, 0, 9, 0 },
  { FLOW_OP_rsqrt, 1, 0, ref_rsqrt, NULL, NULL, NULL, 0.01, 9, 1 },
  { FLOW_OP_reciprocal, 1, 0, ref_reciprocal, NULL, NULL, NULL, 0.01, 9, 0 },
  { FLOW_OP_sin, 1, 0, sin, NULL, NULL, NULL, -9, 9, 1 },
  { FLOW_OP_cos, 1, 0, cos, NULL, NULL, NULL, -9, 9, 1 },
  { FLOW_OP_arctan, 1, 0, atan, NULL, NULL, NULL, -9, 9, 4 },
  { FLOW_OP_tan, 1, 0, tan, NULL, NULL, NULL, -9, 9, 2 },
  { FLOW_OP_tanh, 1, 0, tanh, NULL, NULL, NULL, -3, 3, 2 },
  { FLOW_OP_sigmoid, 1, 0, ref_sigmoid, NULL, NULL, NULL, -9, 9, 3 },
  { FLOW_OP_erf, 1, 0, erf, NULL, NULL, NULL, -5, 5, 6 },
  { FLOW_OP_erfc, 1, 0, erfc, NULL, NULL, NULL, -5, 9, 4 },
  { FLOW_OP_softplus, 1, 0, ref_softplus, NULL, NULL, NULL, -9, 9, 2 },
  { FLOW_OP_softplus, 1, 0, ref_softplus, NULL, NULL, NULL, -80, 88, 2 },
  { FLOW_OP_softsign, 1, 0, ref_softsign, NULL, NULL, NULL, -9, 9, 2 },
  { FLOW_OP_gelu, 1, 0, ref_gelu, NULL, NULL, NULL, -1, 9, 16 },
  { FLOW_OP_gelu_tanh, 1, 0, ref_gelu_tanh, NULL, NULL, NULL, -1, 9, 16 },
  { FLOW_OP_silu, 1, 0, ref_silu, NULL, NULL, NULL, -9, 9, 4 },
  { FLOW_OP_logical_not, 1, 1, ref_not, NULL, int_not, NULL, -2, 2, 0 },
  { FLOW_OP_is_finite, 1, 1, ref_finite, NULL, int_one, NULL, -9, 9, 0 },
  { FLOW_OP_add, 2, 0, NULL, ref_add, NULL, int_add, -9, 9, 0 },
  { FLOW_OP_sub, 2, 0, NULL, ref_sub, NULL, int_sub, -9, 9, 0 },
  { FLOW_OP_mul, 2, 0, NULL, ref_mul, NULL, int_mul, -9, 9, 0 },
  { FLOW_OP_div, 2, 0, NULL, ref_div, NULL, NULL, -9, 9, 0 },
  { FLOW_OP_divide_no_nan, 2, 0, NULL, ref_div0, NULL, NULL, -9, 9, 0 },
  { FLOW_OP_pow, 2, 0, NULL, pow, NULL, int_pow, 0.1, 4, 1 },
  { FLOW_OP_pow, 2, 0, NULL, pow, NULL, NULL, 0.5, 30, 1 },
  { FLOW_OP_mod, 2, 0, NULL, ref_mod, NULL, int_mod, -9, 9, 1 },
  { FLOW_OP_floor_divide, 2, 0, NULL, ref_floor_divide, NULL, int_floor_divide, -9, 9, 0 },
  { FLOW_OP_maximum, 2, 0, NULL, ref_max, NULL, int_max, -9, 9, 0 },
  { FLOW_OP_minimum, 2, 0, NULL, ref_min, NULL, int_min, -9, 9, 0 },
  { FLOW_OP_eq, 2, 1, NULL, ref_eq, NULL, int_eq, -2, 2, 0 },
  { FLOW_OP_ne, 2, 1, NULL, ref_ne, NULL, int_ne, -2, 2, 0 },
  { FLOW_OP_lt, 2, 1, NULL, ref_lt, NULL, int_lt, -2, 2, 0 },
  { FLOW_OP_le, 2, 1, NULL, ref_le, NULL, int_le, -2, 2, 0 },
  { FLOW_OP_gt, 2, 1, NULL, ref_gt, NULL, int_gt, -2, 2, 0 },
  { FLOW_OP_ge, 2, 1, NULL, ref_ge, NULL, int_ge, -2, 2, 0 },
  { FLOW_OP_logical_and, 2, 1, NULL, ref_and, NULL, int_and, -2, 2, 0 },
  { FLOW_OP_logical_or, 2, 1, NULL, ref_or, NULL, int_or, -2, 2, 0 },
  { FLOW_OP_gelu_gradient, 2, 0, NULL, ref_gelu_gradient, NULL, NULL, -0.3, 9, 16 },
  { FLOW_OP_gelu_tanh_gradient, 2, 0, NULL, ref_gelu_tanh_gradient, NULL, NULL, -0.3, 9, 32 },
  { FLOW_OP_silu_gradient, 2, 0, NULL, ref_silu_gradient, NULL, NULL, -1, 9, 16 },
  { FLOW_OP_relu_gradient, 2, 0, NULL, ref_relu_gradient, NULL, int_relu_gradient, -9, 9, 0 },
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0] };

/* ---- one op, one combination ---------------------------------------------------------------------------------------- */

typedef struct shapes { int rank[3]; int64_t shape[3][FLOW_MAX_RANK]; } shapes;   /* a, b, out */

static const shapes same_shapes[] = {
  { { 0, 0, 0 }, { { 0 }, { 0 }, { 0 } } },
  { { 1, 1, 1 }, { { 7 }, { 7 }, { 7 } } },
  { { 1, 1, 1 }, { { 1300 }, { 1300 }, { 1300 } } },
  { { 1, 1, 1 }, { { 0 }, { 0 }, { 0 } } },
  { { 3, 3, 3 }, { { 3, 0, 2 }, { 3, 0, 2 }, { 3, 0, 2 } } },
  { { 2, 2, 2 }, { { 5, 130 }, { 5, 130 }, { 5, 130 } } },
  { { 3, 3, 3 }, { { 40, 5, 3 }, { 40, 5, 3 }, { 40, 5, 3 } } },
  { { 5, 5, 5 }, { { 2, 3, 2, 3, 5 }, { 2, 3, 2, 3, 5 }, { 2, 3, 2, 3, 5 } } },
};
static const shapes broadcast_shapes[] = {
  { { 2, 1, 2 }, { { 4, 5 }, { 5 }, { 4, 5 } } },
  { { 2, 2, 2 }, { { 4, 5 }, { 4, 1 }, { 4, 5 } } },
  { { 1, 2, 2 }, { { 3 }, { 400, 3 }, { 400, 3 } } },
  { { 3, 2, 3 }, { { 2, 1, 3 }, { 4, 1 }, { 2, 4, 3 } } },
  { { 2, 0, 2 }, { { 2, 700 }, { 0 }, { 2, 700 } } },
  { { 2, 2, 2 }, { { 3, 700 }, { 1, 700 }, { 3, 700 } } },
  { { 2, 2, 2 }, { { 3, 700 }, { 3, 1 }, { 3, 700 } } },
  { { 2, 2, 2 }, { { 1, 300 }, { 200, 1 }, { 200, 300 } } },
  { { 2, 1, 2 }, { { 0, 3 }, { 3 }, { 0, 3 } } },
  { { 5, 3, 5 }, { { 2, 1, 3, 1, 4 }, { 3, 5, 1 }, { 2, 1, 3, 5, 4 } } },
};

typedef struct expectation { const op_case *c; const array *inputs; array *out; } expectation;

static void check_op(const flow_call *call, void *argument)
{
  (void)call;
  expectation *e = argument;
  const flow_operand *a = &e->inputs[0].operand, *b = &e->inputs[1].operand, *out = &e->out->operand;
  const op_case *c = e->c;
  const char *name = flow_op(c->op)->name;
  int64_t n = size_of(out->rank, out->shape);
  for (int64_t i = 0; i < n; i++) {
    const void *pa = broadcast_element(a, out->rank, out->shape, i);
    const void *pb = c->arity > 1 ? broadcast_element(b, out->rank, out->shape, i) : NULL;
    const void *found = element(out, i);
    if (flow_dtype_is_float(a->dtype)) {
      double value = c->arity == 1 ? c->one(read_double(a->dtype, pa)) : c->two(read_double(a->dtype, pa), read_double(b->dtype, pb));
      assert_close(name, out->dtype == FLOW_BOOL ? FLOW_FLOAT32 : out->dtype, read_double(out->dtype, found),
                   out->dtype == FLOW_BOOL ? value : rounded(out->dtype, value), c->units);
    } else {
      int64_t value = c->arity == 1 ? c->int_one(read_int(a->dtype, pa)) : c->int_two(read_int(a->dtype, pa), read_int(b->dtype, pb));
      number expected;
      write_int(out->dtype, &expected, value);
      if (read_int(out->dtype, found) != read_int(out->dtype, &expected))
        fail_msg("%s, %s: found %lld, expected %lld", name, flow_dtype_name(a->dtype), (long long)read_int(out->dtype, found),
                 (long long)read_int(out->dtype, &expected));
    }
  }
  assert_guards(e->out);
  memset(e->out->block + GUARD, GUARD_BYTE, e->out->bytes);   /* nothing is left for the next run */
}

static void run_case(const op_case *c, const shapes *s, int dtype, layout_kind layout_a, layout_kind layout_b)
{
  array inputs[2], out = array_new(c->to_bool ? FLOW_BOOL : dtype, CONTIGUOUS, s->rank[2], s->shape[2]);
  inputs[0] = array_new(dtype, layout_a, s->rank[0], s->shape[0]);
  inputs[1] = array_new(dtype, layout_b, s->rank[1], s->shape[1]);
  int is_float = flow_dtype_is_float(dtype);
  array_fill_random(&inputs[0], 1, is_float ? c->low : -9, is_float ? c->high : 10);
  array_fill_random(&inputs[1], 2, is_float ? c->low : -3, is_float ? c->high : 6);
  flow_operand operands[2] = { inputs[0].operand, inputs[1].operand };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(c->op, &attributes, operands, c->arity, &out.operand);
  run_everywhere(&call, check_op, &(expectation){ c, inputs, &out });
  for (int i = 0; i < 2; i++) {
    assert_guards(&inputs[i]);
    array_free(&inputs[i]);
  }
  array_free(&out);
}

static int allows(const op_case *c, int dtype) { return flow_dtype_is_float(dtype) || c->int_one || c->int_two; }

static void every_op_matches_its_reference_for_every_dtype_and_layout(void **state)
{
  (void)state;
  for (int i = 0; i < CASE_COUNT; i++)
    for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++) {
      if (!allows(&cases[i], dtype)) continue;
      for (size_t s = 0; s < sizeof same_shapes / sizeof same_shapes[0]; s++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
          run_case(&cases[i], &same_shapes[s], dtype, (layout_kind)layout, s % 2 ? CONTIGUOUS : (layout_kind)(LAYOUT_COUNT - 1 - layout));
    }
}

static void shapes_broadcast_as_in_numpy(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT16, FLOW_FLOAT64, FLOW_INT32, FLOW_INT64 };
  for (int i = 0; i < CASE_COUNT; i++) {
    if (cases[i].arity != 2) continue;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
      if (!allows(&cases[i], dtypes[d])) continue;
      for (size_t s = 0; s < sizeof broadcast_shapes / sizeof broadcast_shapes[0]; s++)
        for (int layout = 0; layout < LAYOUT_COUNT; layout++)
          run_case(&cases[i], &broadcast_shapes[s], dtypes[d], (layout_kind)layout, (layout_kind)((layout + (int)s) % LAYOUT_COUNT));
    }
  }
}

static void every_elementwise_op_is_in_the_table(void **state)
{
  (void)state;
  int known[FLOW_OP_COUNT] = { 0 };
  for (int i = 0; i < CASE_COUNT; i++) known[cases[i].op] = 1;
  known[FLOW_OP_where] = 1;
  int wrong = 0;
  for (int op = 0; op < FLOW_OP_COUNT; op++) {
    int is_elementwise = flow_cpu_plain_block_record(op)->operands != 0;
    if (known[op] == is_elementwise) continue;
    print_error(is_elementwise ? "%s has no line in `cases`\n" : "%s is in `cases` and not elementwise\n", flow_op(op)->name);
    wrong++;
  }
  assert_int_equal(wrong, 0);
}

/* ---- special values -------------------------------------------------------------------------------------------------- */

typedef struct special { int op, dtype; double a, b, expected; } special;
static const special specials[] = {
  { FLOW_OP_relu, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_relu, FLOW_FLOAT32, -INFINITY, 0, 0 },
  { FLOW_OP_sign, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_abs, FLOW_FLOAT32, -INFINITY, 0, INFINITY },
  { FLOW_OP_round, FLOW_FLOAT32, 0.5, 0, 0 },
  { FLOW_OP_round, FLOW_FLOAT32, 1.5, 0, 2 },
  { FLOW_OP_round, FLOW_FLOAT32, 2.5, 0, 2 },
  { FLOW_OP_round, FLOW_FLOAT32, -2.5, 0, -2 },
  { FLOW_OP_round, FLOW_FLOAT64, 4503599627370495.5, 0, 4503599627370496.0 },
  { FLOW_OP_maximum, FLOW_FLOAT32, NAN, 1, NAN },
  { FLOW_OP_maximum, FLOW_FLOAT32, 1, NAN, NAN },
  { FLOW_OP_minimum, FLOW_FLOAT32, NAN, 1, NAN },
  { FLOW_OP_minimum, FLOW_FLOAT64, 1, NAN, NAN },
  { FLOW_OP_exp, FLOW_FLOAT32, 1000, 0, INFINITY },
  { FLOW_OP_exp, FLOW_FLOAT32, -1000, 0, 0 },
  { FLOW_OP_exp, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_expm1, FLOW_FLOAT32, 1000, 0, INFINITY },
  { FLOW_OP_expm1, FLOW_FLOAT32, -1000, 0, -1 },
  { FLOW_OP_expm1, FLOW_FLOAT32, 1e-10, 0, (float)1e-10 },
  { FLOW_OP_expm1, FLOW_FLOAT32, 0, 0, 0 },
  { FLOW_OP_expm1, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_expm1, FLOW_FLOAT32, INFINITY, 0, INFINITY },
  { FLOW_OP_expm1, FLOW_FLOAT32, -INFINITY, 0, -1 },
  { FLOW_OP_log, FLOW_FLOAT32, 0, 0, -INFINITY },
  { FLOW_OP_log, FLOW_FLOAT32, -1, 0, NAN },
  { FLOW_OP_log, FLOW_FLOAT32, INFINITY, 0, INFINITY },
  { FLOW_OP_log1p, FLOW_FLOAT32, -1, 0, -INFINITY },
  { FLOW_OP_log1p, FLOW_FLOAT32, -2, 0, NAN },
  { FLOW_OP_log1p, FLOW_FLOAT32, INFINITY, 0, INFINITY },
  { FLOW_OP_log1p, FLOW_FLOAT32, 1e-10, 0, (float)1e-10 },
  { FLOW_OP_log1p, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_softplus, FLOW_FLOAT32, 1000, 0, 1000 },
  { FLOW_OP_softplus, FLOW_FLOAT32, -1000, 0, 0 },
  { FLOW_OP_softsign, FLOW_FLOAT32, 1e38f, 0, 1 },
  { FLOW_OP_softsign, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_softplus, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_softplus, FLOW_FLOAT32, INFINITY, 0, INFINITY },
  { FLOW_OP_sigmoid, FLOW_FLOAT32, 1000, 0, 1 },
  { FLOW_OP_sigmoid, FLOW_FLOAT32, -1000, 0, 0 },
  { FLOW_OP_sigmoid, FLOW_FLOAT64, -1000, 0, 0 },
  { FLOW_OP_tanh, FLOW_FLOAT32, -100, 0, -1 },
  { FLOW_OP_erf, FLOW_FLOAT32, INFINITY, 0, 1 },
  { FLOW_OP_erf, FLOW_FLOAT32, -1e30, 0, -1 },
  { FLOW_OP_erf, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_erf, FLOW_FLOAT32, -0.0, 0, -0.0 },
  { FLOW_OP_sqrt, FLOW_FLOAT32, -1, 0, NAN },
  { FLOW_OP_rsqrt, FLOW_FLOAT32, 0, 0, INFINITY },
  { FLOW_OP_is_finite, FLOW_FLOAT32, NAN, 0, 0 },
  { FLOW_OP_is_finite, FLOW_FLOAT32, -INFINITY, 0, 0 },
  { FLOW_OP_is_finite, FLOW_FLOAT32, 3e38, 0, 1 },
  { FLOW_OP_is_finite, FLOW_FLOAT16, INFINITY, 0, 0 },
  { FLOW_OP_logical_not, FLOW_FLOAT32, NAN, 0, 0 },
  { FLOW_OP_logical_not, FLOW_FLOAT32, 0.25, 0, 0 },
  { FLOW_OP_eq, FLOW_FLOAT32, NAN, NAN, 0 },
  { FLOW_OP_ne, FLOW_FLOAT32, NAN, NAN, 1 },
  { FLOW_OP_lt, FLOW_FLOAT32, NAN, 1, 0 },
  { FLOW_OP_ge, FLOW_FLOAT32, 1, NAN, 0 },
  { FLOW_OP_div, FLOW_FLOAT32, 1, 0, INFINITY },
  { FLOW_OP_div, FLOW_FLOAT32, 0, 0, NAN },
  { FLOW_OP_divide_no_nan, FLOW_FLOAT32, 1, 0, 0 },
  { FLOW_OP_divide_no_nan, FLOW_FLOAT32, NAN, 0, 0 },
  { FLOW_OP_relu_gradient, FLOW_FLOAT32, 5, 0, 0 },
  { FLOW_OP_relu_gradient, FLOW_FLOAT32, 5, NAN, 0 },
  { FLOW_OP_relu_gradient, FLOW_FLOAT32, NAN, -1, 0 },
  { FLOW_OP_sin, FLOW_FLOAT32, -0.0, 0, -0.0 },
  { FLOW_OP_sin, FLOW_FLOAT64, -0.0, 0, -0.0 },
  { FLOW_OP_tan, FLOW_FLOAT32, -0.0, 0, -0.0 },
  { FLOW_OP_cos, FLOW_FLOAT32, -0.0, 0, 1 },
  { FLOW_OP_mod, FLOW_FLOAT32, -5, 3, 1 },
  { FLOW_OP_mod, FLOW_FLOAT32, 5, -3, -1 },
  { FLOW_OP_mod, FLOW_FLOAT32, -5, INFINITY, INFINITY },
  { FLOW_OP_mod, FLOW_FLOAT32, 5, 0, NAN },
  { FLOW_OP_mod, FLOW_INT32, -5, 3, 1 },
  { FLOW_OP_mod, FLOW_INT32, 5, 0, 0 },
  { FLOW_OP_mod, FLOW_INT32, 5, -1, 0 },
  { FLOW_OP_pow, FLOW_FLOAT32, -2, 3, -8 },
  { FLOW_OP_pow, FLOW_FLOAT32, 0, 0, 1 },
  { FLOW_OP_pow, FLOW_FLOAT32, -3, 2, 9 },
  { FLOW_OP_pow, FLOW_FLOAT64, -3, 2, 9 },
  { FLOW_OP_pow, FLOW_FLOAT32, 1e30, 2, INFINITY },
  { FLOW_OP_pow, FLOW_FLOAT32, NAN, 2, NAN },
  { FLOW_OP_pow, FLOW_FLOAT32, -INFINITY, 3, -INFINITY },
  { FLOW_OP_pow, FLOW_FLOAT32, -0.5, 1, -0.5 },
  { FLOW_OP_pow, FLOW_FLOAT32, 0, -1, INFINITY },
  { FLOW_OP_pow, FLOW_FLOAT64, -4, -1, -0.25 },
  { FLOW_OP_pow, FLOW_FLOAT32, -INFINITY, 0.5, INFINITY },
  { FLOW_OP_pow, FLOW_FLOAT64, -INFINITY, 0.5, INFINITY },
  { FLOW_OP_pow, FLOW_FLOAT32, -1, 0.5, NAN },
  { FLOW_OP_pow, FLOW_FLOAT32, 1, NAN, 1 },
  { FLOW_OP_pow, FLOW_INT32, 2, -1, 0 },
  { FLOW_OP_pow, FLOW_INT32, -1, -3, -1 },
  { FLOW_OP_pow, FLOW_INT32, 0, 0, 1 },
  { FLOW_OP_pow, FLOW_INT32, 1, -7, 1 },
  { FLOW_OP_abs, FLOW_INT8, -128, 0, -128 },
  { FLOW_OP_neg, FLOW_INT8, -128, 0, -128 },
  { FLOW_OP_add, FLOW_UINT8, 200, 100, 44 },
  { FLOW_OP_sub, FLOW_UINT8, 1, 2, 255 },
  { FLOW_OP_add, FLOW_BOOL, 1, 1, 1 },
  { FLOW_OP_mul, FLOW_INT32, 65536, 65536, 0 },
  { FLOW_OP_exp, FLOW_FLOAT16, 20, 0, INFINITY },
  { FLOW_OP_mul, FLOW_BFLOAT16, 3e38, 10, INFINITY },
};

static void check_special(const flow_call *call, void *argument)
{
  const special *s = argument;
  for (int64_t i = 0; i < call->outputs[0].shape[0]; i++) { /* whole vectors and the rest take different ways */
    double found = read_double(call->outputs[0].dtype, element(&call->outputs[0], i));
    assert_close(flow_op(s->op)->name, s->dtype == FLOW_FLOAT16 || flow_dtype_is_float(s->dtype) ? s->dtype : FLOW_FLOAT32, found,
                 s->expected, 0);
    if (found == 0 && signbit(found) != signbit(s->expected)) fail_msg("%s gives a zero of the other sign", flow_op(s->op)->name);
  }
}

static void nan_infinity_ties_and_overflow_follow_the_docs(void **state)
{
  (void)state;
  int64_t shape[1] = { 19 };
  for (size_t k = 0; k < sizeof specials / sizeof specials[0]; k++) {
    const special *s = &specials[k];
    const flow_block_record *record = flow_cpu_plain_block_record(s->op);
    array a = array_new(s->dtype, CONTIGUOUS, 1, shape), b = array_new(s->dtype, CONTIGUOUS, 1, shape);
    array out = array_new(record->gives_condition ? FLOW_BOOL : s->dtype, CONTIGUOUS, 1, shape);
    for (int64_t i = 0; i < shape[0]; i++) {
      write_double(s->dtype, element(&a.operand, i), s->a);
      write_double(s->dtype, element(&b.operand, i), s->b);
    }
    flow_operand inputs[2] = { a.operand, b.operand };
    flow_attributes attributes = { 0 };
    flow_call call = call_of(s->op, &attributes, inputs, record->operands, &out.operand);
    run_everywhere(&call, check_special, (void *)s);
    array_free(&a);
    array_free(&b);
    array_free(&out);
  }
}

static void check_wrapped(const flow_call *call, void *argument)
{
  assert_true(*(int64_t *)call->outputs[0].data == *(int64_t *)argument);
}

static void int64_is_exact_and_wraps(void **state)
{
  (void)state;
  static const struct { int op; int64_t a, b, expected; } wraps[] = {
    { FLOW_OP_add, INT64_MAX, 1, INT64_MIN },    { FLOW_OP_sub, INT64_MIN, 1, INT64_MAX },
    { FLOW_OP_mul, INT64_MAX, 2, -2 },           { FLOW_OP_neg, INT64_MIN, 0, INT64_MIN },
    { FLOW_OP_abs, INT64_MIN, 0, INT64_MIN },    { FLOW_OP_square, (int64_t)1 << 32, 0, 0 },
    { FLOW_OP_mod, INT64_MIN, -1, 0 },           { FLOW_OP_pow, 3, 41, INT64_C(-420491770248316829) },
    { FLOW_OP_add, (INT64_C(1) << 53) + 1, 2, (INT64_C(1) << 53) + 3 },
    { FLOW_OP_maximum, (INT64_C(1) << 53) + 1, INT64_C(1) << 53, (INT64_C(1) << 53) + 1 },
  };
  for (size_t k = 0; k < sizeof wraps / sizeof wraps[0]; k++) {
    int64_t a = wraps[k].a, b = wraps[k].b, out = 0, expected = wraps[k].expected;
    flow_operand inputs[2] = { { .data = &a, .dtype = FLOW_INT64 }, { .data = &b, .dtype = FLOW_INT64 } };
    flow_operand output = { .data = &out, .dtype = FLOW_INT64 };
    flow_attributes attributes = { 0 };
    flow_call call = call_of(wraps[k].op, &attributes, inputs, flow_cpu_plain_block_record(wraps[k].op)->operands, &output);
    run_everywhere(&call, check_wrapped, &expected);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_elementwise_op_is_in_the_table),
    cmocka_unit_test(every_op_matches_its_reference_for_every_dtype_and_layout),
    cmocka_unit_test(shapes_broadcast_as_in_numpy),
    cmocka_unit_test(nan_infinity_ties_and_overflow_follow_the_docs),
    cmocka_unit_test(int64_is_exact_and_wraps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
