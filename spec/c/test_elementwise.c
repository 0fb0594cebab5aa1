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
  { FLOW_OP_expm1, 1, 0, expm1, NULL, NULL, NULL, -2, 2, 4 },
  { FLOW_OP_log, 1, 0, log, NULL, NULL, NULL, 0.01, 9, 2 },
  { FLOW_OP_log1p, 1, 0, log1p, NULL, NULL, NULL, -0.9, 9, 4 },
  { FLOW_OP_sqrt, 1, 0, sqrt, NULL, NULL, NULL, 0, 9, 0 },
  { FLOW_OP_rsqrt, 1, 0, ref_rsqrt, NULL, NULL, NULL, 0.01, 9, 1 },
  { FLOW_OP_reciprocal, 1, 0, ref_reciprocal, NULL, NULL, NULL, 0.01, 9, 0 },
  { FLOW_OP_sin, 1, 0, sin, NULL, NULL, NULL, -9, 9, 1 },
  { FLOW_OP_cos, 1, 0, cos, NULL, NULL, NULL, -9, 9, 1 },
  { FLOW_OP_tanh, 1, 0, tanh, NULL, NULL, NULL, -3, 3, 2 },
  { FLOW_OP_sigmoid, 1, 0, ref_sigmoid, NULL, NULL, NULL, -9, 9, 3 },
  { FLOW_OP_erf, 1, 0, erf, NULL, NULL, NULL, -5, 5, 6 },
  { FLOW_OP_softplus, 1, 0, ref_softplus, NULL, NULL, NULL, -9, 9, 4 },
  { FLOW_OP_logical_not, 1, 1, ref_not, NULL, int_not, NULL, -2, 2, 0 },
  { FLOW_OP_is_finite, 1, 1, ref_finite, NULL, int_one, NULL, -9, 9, 0 },
  { FLOW_OP_add, 2, 0, NULL, ref_add, NULL, int_add, -9, 9, 0 },
  { FLOW_OP_sub, 2, 0, NULL, ref_sub, NULL, int_sub, -9, 9, 0 },
  { FLOW_OP_mul, 2, 0, NULL, ref_mul, NULL, int_mul, -9, 9, 0 },
  { FLOW_OP_div, 2, 0, NULL, ref_div, NULL, NULL, -9, 9, 0 },
  { FLOW_OP_divide_no_nan, 2, 0, NULL, ref_div0, NULL, NULL, -9, 9, 0 },
  { FLOW_OP_pow, 2, 0, NULL, pow, NULL, int_pow, 0.1, 4, 1 },
  { FLOW_OP_mod, 2, 0, NULL, ref_mod, NULL, int_mod, -9, 9, 1 },
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
  for (int op = 0; op < FLOW_OP_COUNT; op++) assert_int_equal(known[op], flow_cpu_plain_block_record(op)->operands != 0);
}

/* ---- special values -------------------------------------------------------------------------------------------------- */

typedef struct special { int op, dtype; double a, b, expected; } special;
static const special specials[] = {
  { FLOW_OP_relu, FLOW_FLOAT32, NAN, 0, NAN },             { FLOW_OP_relu, FLOW_FLOAT32, -INFINITY, 0, 0 },
  { FLOW_OP_sign, FLOW_FLOAT32, NAN, 0, NAN },             { FLOW_OP_abs, FLOW_FLOAT32, -INFINITY, 0, INFINITY },
  { FLOW_OP_round, FLOW_FLOAT32, 0.5, 0, 0 },              { FLOW_OP_round, FLOW_FLOAT32, 1.5, 0, 2 },
  { FLOW_OP_round, FLOW_FLOAT32, 2.5, 0, 2 },              { FLOW_OP_round, FLOW_FLOAT32, -2.5, 0, -2 },
  { FLOW_OP_round, FLOW_FLOAT64, 4503599627370495.5, 0, 4503599627370496.0 },
  { FLOW_OP_maximum, FLOW_FLOAT32, NAN, 1, NAN },          { FLOW_OP_maximum, FLOW_FLOAT32, 1, NAN, NAN },
  { FLOW_OP_minimum, FLOW_FLOAT32, NAN, 1, NAN },          { FLOW_OP_minimum, FLOW_FLOAT64, 1, NAN, NAN },
  { FLOW_OP_exp, FLOW_FLOAT32, 1000, 0, INFINITY },        { FLOW_OP_exp, FLOW_FLOAT32, -1000, 0, 0 },
  { FLOW_OP_exp, FLOW_FLOAT32, NAN, 0, NAN },              { FLOW_OP_expm1, FLOW_FLOAT32, 1000, 0, INFINITY },
  { FLOW_OP_expm1, FLOW_FLOAT32, -1000, 0, -1 },           { FLOW_OP_expm1, FLOW_FLOAT32, 1e-10, 0, (float)1e-10 },
  { FLOW_OP_expm1, FLOW_FLOAT32, 0, 0, 0 },                { FLOW_OP_expm1, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_expm1, FLOW_FLOAT32, INFINITY, 0, INFINITY },  { FLOW_OP_expm1, FLOW_FLOAT32, -INFINITY, 0, -1 },
  { FLOW_OP_log, FLOW_FLOAT32, 0, 0, -INFINITY },          { FLOW_OP_log, FLOW_FLOAT32, -1, 0, NAN },
  { FLOW_OP_log, FLOW_FLOAT32, INFINITY, 0, INFINITY },    { FLOW_OP_log1p, FLOW_FLOAT32, -1, 0, -INFINITY },
  { FLOW_OP_log1p, FLOW_FLOAT32, -2, 0, NAN },             { FLOW_OP_log1p, FLOW_FLOAT32, INFINITY, 0, INFINITY },
  { FLOW_OP_log1p, FLOW_FLOAT32, 1e-10, 0, (float)1e-10 }, { FLOW_OP_log1p, FLOW_FLOAT32, NAN, 0, NAN },
  { FLOW_OP_softplus, FLOW_FLOAT32, 1000, 0, 1000 },       { FLOW_OP_softplus, FLOW_FLOAT32, -1000, 0, 0 },
  { FLOW_OP_softplus, FLOW_FLOAT32, NAN, 0, NAN },         { FLOW_OP_softplus, FLOW_FLOAT32, INFINITY, 0, INFINITY },
  { FLOW_OP_sigmoid, FLOW_FLOAT32, 1000, 0, 1 },           { FLOW_OP_sigmoid, FLOW_FLOAT32, -1000, 0, 0 },
  { FLOW_OP_sigmoid, FLOW_FLOAT64, -1000, 0, 0 },          { FLOW_OP_tanh, FLOW_FLOAT32, -100, 0, -1 },
  { FLOW_OP_erf, FLOW_FLOAT32, INFINITY, 0, 1 },           { FLOW_OP_erf, FLOW_FLOAT32, -1e30, 0, -1 },
  { FLOW_OP_erf, FLOW_FLOAT32, NAN, 0, NAN },              { FLOW_OP_erf, FLOW_FLOAT32, -0.0, 0, 0 },
  { FLOW_OP_sqrt, FLOW_FLOAT32, -1, 0, NAN },              { FLOW_OP_rsqrt, FLOW_FLOAT32, 0, 0, INFINITY },
  { FLOW_OP_is_finite, FLOW_FLOAT32, NAN, 0, 0 },          { FLOW_OP_is_finite, FLOW_FLOAT32, -INFINITY, 0, 0 },
  { FLOW_OP_is_finite, FLOW_FLOAT32, 3e38, 0, 1 },         { FLOW_OP_is_finite, FLOW_FLOAT16, INFINITY, 0, 0 },
  { FLOW_OP_logical_not, FLOW_FLOAT32, NAN, 0, 0 },        { FLOW_OP_logical_not, FLOW_FLOAT32, 0.25, 0, 0 },
  { FLOW_OP_eq, FLOW_FLOAT32, NAN, NAN, 0 },               { FLOW_OP_ne, FLOW_FLOAT32, NAN, NAN, 1 },
  { FLOW_OP_lt, FLOW_FLOAT32, NAN, 1, 0 },                 { FLOW_OP_ge, FLOW_FLOAT32, 1, NAN, 0 },
  { FLOW_OP_div, FLOW_FLOAT32, 1, 0, INFINITY },           { FLOW_OP_div, FLOW_FLOAT32, 0, 0, NAN },
  { FLOW_OP_divide_no_nan, FLOW_FLOAT32, 1, 0, 0 },        { FLOW_OP_divide_no_nan, FLOW_FLOAT32, NAN, 0, 0 },
  { FLOW_OP_relu_gradient, FLOW_FLOAT32, 5, 0, 0 },        { FLOW_OP_relu_gradient, FLOW_FLOAT32, 5, NAN, 0 },
  { FLOW_OP_relu_gradient, FLOW_FLOAT32, NAN, -1, 0 },     { FLOW_OP_mod, FLOW_FLOAT32, -5, 3, 1 },
  { FLOW_OP_mod, FLOW_FLOAT32, 5, -3, -1 },                { FLOW_OP_mod, FLOW_FLOAT32, -5, INFINITY, INFINITY },
  { FLOW_OP_mod, FLOW_FLOAT32, 5, 0, NAN },                { FLOW_OP_mod, FLOW_INT32, -5, 3, 1 },
  { FLOW_OP_mod, FLOW_INT32, 5, 0, 0 },                    { FLOW_OP_mod, FLOW_INT32, 5, -1, 0 },
  { FLOW_OP_pow, FLOW_FLOAT32, -2, 3, -8 },                { FLOW_OP_pow, FLOW_FLOAT32, 0, 0, 1 },
  { FLOW_OP_pow, FLOW_INT32, 2, -1, 0 },                   { FLOW_OP_pow, FLOW_INT32, -1, -3, -1 },
  { FLOW_OP_pow, FLOW_INT32, 0, 0, 1 },                    { FLOW_OP_pow, FLOW_INT32, 1, -7, 1 },
  { FLOW_OP_abs, FLOW_INT8, -128, 0, -128 },               { FLOW_OP_neg, FLOW_INT8, -128, 0, -128 },
  { FLOW_OP_add, FLOW_UINT8, 200, 100, 44 },               { FLOW_OP_sub, FLOW_UINT8, 1, 2, 255 },
  { FLOW_OP_add, FLOW_BOOL, 1, 1, 1 },                     { FLOW_OP_mul, FLOW_INT32, 65536, 65536, 0 },
  { FLOW_OP_exp, FLOW_FLOAT16, 20, 0, INFINITY },          { FLOW_OP_mul, FLOW_BFLOAT16, 3e38, 10, INFINITY },
};

static void check_special(const flow_call *call, void *argument)
{
  const special *s = argument;
  for (int64_t i = 0; i < call->outputs[0].shape[0]; i++)   /* whole vectors and the rest take different ways */
    assert_close(flow_op(s->op)->name, s->dtype == FLOW_FLOAT16 || flow_dtype_is_float(s->dtype) ? s->dtype : FLOW_FLOAT32,
                 read_double(call->outputs[0].dtype, element(&call->outputs[0], i)), s->expected, 0);
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

/* ---- where, in place, programs ------------------------------------------------------------------------------------------ */

static void check_where(const flow_call *call, void *argument)
{
  array *arrays = argument;   /* condition, a, b, out */
  const flow_operand *out = &arrays[3].operand;
  for (int64_t i = 0; i < size_of(out->rank, out->shape); i++) {
    int chosen = read_double(arrays[0].operand.dtype, broadcast_element(&arrays[0].operand, out->rank, out->shape, i)) != 0 ? 1 : 2;
    const void *expected = broadcast_element(&arrays[chosen].operand, out->rank, out->shape, i);
    assert_true(read_double(out->dtype, element(out, i)) == read_double(out->dtype, expected));
  }
  assert_guards(&arrays[3]);
  memset(arrays[3].block + GUARD, GUARD_BYTE, arrays[3].bytes);
  (void)call;
}

static void where_takes_any_condition_and_broadcasts_all_three(void **state)
{
  (void)state;
  static const struct { int rank; int64_t shape[3]; } kinds[] = {
    { 3, { 6, 5, 300 } }, { 1, { 300 } }, { 0, { 0 } }, { 3, { 6, 1, 1 } }, { 2, { 5, 1 } },
  };
  int64_t shape[3] = { 6, 5, 300 };
  uint64_t seed = 7;
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++)
    for (int condition = 0; condition < FLOW_DTYPE_COUNT; condition++)
      for (int k = 0; k < 5; k++) {
        array arrays[4];
        arrays[0] = array_new(condition, (layout_kind)(k % LAYOUT_COUNT), kinds[k].rank, kinds[k].shape);
        arrays[1] = array_new(dtype, SPACED, kinds[(k + 1) % 5].rank, kinds[(k + 1) % 5].shape);
        arrays[2] = array_new(dtype, CONTIGUOUS, 3, shape);
        arrays[3] = array_new(dtype, CONTIGUOUS, 3, shape);
        double yes = flow_dtype_is_float(condition) ? 0.25 : 1;   /* a fraction is true as well */
        for (int64_t i = 0; i < size_of(kinds[k].rank, kinds[k].shape); i++)
          write_double(condition, element(&arrays[0].operand, i), pseudo_random(&seed, 0, 1) < 0.5 ? 0 : yes);
        array_fill_random(&arrays[1], 3, 0, 100);
        array_fill_random(&arrays[2], 4, 0, 100);
        flow_operand inputs[3] = { arrays[0].operand, arrays[1].operand, arrays[2].operand };
        flow_attributes attributes = { 0 };
        flow_call call = call_of(FLOW_OP_where, &attributes, inputs, 3, &arrays[3].operand);
        run_everywhere(&call, check_where, arrays);
        for (int i = 0; i < 4; i++) array_free(&arrays[i]);
      }
}

static void check_doubled(const flow_call *call, void *argument)
{
  (void)argument;
  float *x = call->outputs[0].data;
  for (int i = 0; i < 1500; i++) {
    assert_true(x[i] == (float)(2 * i));
    x[i] = (float)i;
  }
}

static void an_output_may_be_the_memory_of_an_input(void **state)
{
  (void)state;
  int64_t shape[1] = { 1500 };
  array x = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, shape);
  for (int i = 0; i < 1500; i++) ((float *)x.operand.data)[i] = (float)i;
  flow_operand inputs[2] = { x.operand, x.operand };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_add, &attributes, inputs, 2, &x.operand);
  run_everywhere(&call, check_doubled, NULL);
  array_free(&x);
}

static void check_windows(const flow_call *call, void *argument)
{
  float *y = call->outputs[0].data;
  (void)argument;
  for (int i = 0; i < 3 * 200 * 5; i++) {
    assert_true(y[i] == -(float)(i / 1000 * 102 + i / 5 % 200 + i % 5));
    y[i] = 0;
  }
}

/* A view whose rows overlap: different tiles begin at the same element and differ in length. */
static void sliding_windows_are_views_like_others(void **state)
{
  (void)state;
  int64_t memory[1] = { 408 }, shape[3] = { 3, 200, 5 };
  array x = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, memory), y = array_new(FLOW_FLOAT32, CONTIGUOUS, 3, shape);
  for (int i = 0; i < 408; i++) ((float *)x.operand.data)[i] = (float)i;
  flow_operand windows = { .data = x.operand.data, .dtype = FLOW_FLOAT32, .rank = 3, .shape = { 3, 200, 5 }, .strides = { 102, 1, 1 } };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_neg, &attributes, &windows, 1, &y.operand);
  run_everywhere(&call, check_windows, NULL);
  array_free(&x);
  array_free(&y);
}

static void an_output_that_nobody_reads_is_skipped(void **state)
{
  (void)state;
  float x = 1;
  flow_operand input = { .data = &x, .dtype = FLOW_FLOAT32 }, output = { .dtype = FLOW_FLOAT32 };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_neg, &attributes, &input, 1, &output);
  assert_int_equal(run_kernel(flow_cpu_device()->kernels[FLOW_OP_neg], &call), FLOW_OK);
}

static void an_integer_without_a_kernel_is_an_error_that_names_the_op(void **state)
{
  (void)state;
  int32_t x = 1, y = 0;
  flow_operand input = { .data = &x, .dtype = FLOW_INT32 }, output = { .data = &y, .dtype = FLOW_INT32 };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_exp, &attributes, &input, 1, &output);
  assert_int_equal(run_kernel(flow_cpu_device()->kernels[FLOW_OP_exp], &call), FLOW_INTERNAL);
  assert_non_null(strstr(flow_last_error(), "exp"));
  assert_non_null(strstr(flow_last_error(), "int32"));
}

/* relu(a * b + c) with b a bias row and c of another dtype; the sum is a second output. */
static void a_program_runs_several_steps_and_outputs(void **state)
{
  (void)state;
  int64_t shape[2] = { 300, 5 }, row[1] = { 5 };
  array a = array_new(FLOW_FLOAT32, PERMUTED, 2, shape), b = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, row);
  array c = array_new(FLOW_BFLOAT16, SPACED, 2, shape);
  array sum = array_new(FLOW_FLOAT32, SPACED, 2, shape), relu = array_new(FLOW_FLOAT16, CONTIGUOUS, 2, shape);
  array_fill_random(&a, 1, -3, 3);
  array_fill_random(&b, 2, -3, 3);
  array_fill_random(&c, 3, -3, 3);
  flow_operand inputs[3] = { a.operand, b.operand, c.operand }, outputs[2] = { sum.operand, relu.operand };
  flow_block_program program = {
    .register_count = 6, .input_count = 3, .output_count = 2, .step_count = 3,   /* all kinds FLOAT = 0 */
    .outputs = { 4, 5 },
    .steps = { { flow_cpu_plain_block(FLOW_OP_mul, FLOW_KIND_FLOAT), { 0, 1 }, 3 },
               { flow_cpu_plain_block(FLOW_OP_add, FLOW_KIND_FLOAT), { 3, 2 }, 4 },
               { flow_cpu_plain_block(FLOW_OP_relu, FLOW_KIND_FLOAT), { 4 }, 5 } },
  };
  _Alignas(64) char buffers[6 * FLOW_BLOCK_BYTES];
  flow_cpu_plain_run_program(&program, inputs, outputs, buffers);
  for (int64_t i = 0; i < 1500; i++) {
    float product = (float)read_double(FLOW_FLOAT32, element(&a.operand, i)) * (float)read_double(FLOW_FLOAT32, element(&b.operand, i % 5));
    float expected = product + (float)read_double(FLOW_BFLOAT16, element(&c.operand, i));
    assert_close("sum", FLOW_FLOAT32, read_double(FLOW_FLOAT32, element(&sum.operand, i)), expected, 0);
    double positive = rounded(FLOW_FLOAT16, expected < 0 ? 0 : expected);
    assert_close("relu", FLOW_FLOAT16, read_double(FLOW_FLOAT16, element(&relu.operand, i)), positive, 0);
  }
  assert_guards(&sum);
  assert_guards(&relu);
  array_free(&a); array_free(&b); array_free(&c); array_free(&sum); array_free(&relu);
}

/* Contiguous operands of one long run need no buffers themselves; what is between two steps does, one block at a time. */
static void a_long_run_of_several_steps_keeps_to_its_buffers(void **state)
{
  (void)state;
  enum { LENGTH = 10 * FLOW_BLOCK_LENGTH + 3, BUFFERS = 4 * FLOW_BLOCK_BYTES };
  int64_t shape[1] = { LENGTH };
  array a = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, shape), b = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, shape);
  array out = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, shape);
  array_fill_random(&a, 1, -3, 3);
  array_fill_random(&b, 2, -3, 3);
  flow_operand inputs[2] = { a.operand, b.operand };
  flow_block_program program = {
    .register_count = 4, .input_count = 2, .output_count = 1, .step_count = 2, .outputs = { 3 },
    .steps = { { flow_cpu_plain_block(FLOW_OP_mul, FLOW_KIND_FLOAT), { 0, 1 }, 2 },
               { flow_cpu_plain_block(FLOW_OP_sub, FLOW_KIND_FLOAT), { 2, 0 }, 3 } },
  };
  _Alignas(64) unsigned char buffers[BUFFERS + LENGTH * sizeof(float)];
  memset(buffers, 0xa5, sizeof buffers);
  flow_cpu_plain_run_program(&program, inputs, &out.operand, buffers);
  for (int64_t i = 0; i < LENGTH; i++) {
    float x = (float)read_double(FLOW_FLOAT32, element(&a.operand, i));
    float product = x * (float)read_double(FLOW_FLOAT32, element(&b.operand, i));
    assert_close("difference", FLOW_FLOAT32, read_double(FLOW_FLOAT32, element(&out.operand, i)), product - x, 0);
  }
  for (size_t i = BUFFERS; i < sizeof buffers; i++) assert_int_equal(buffers[i], 0xa5);
  assert_guards(&out);
  array_free(&a); array_free(&b); array_free(&out);
}

/* ---- casts ------------------------------------------------------------------------------------------------------------- */

static void check_cast(const flow_call *call, void *argument)
{
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  static const double lowest[] = { [FLOW_INT8] = -128, [FLOW_UINT8] = 0, [FLOW_INT32] = -2147483648.0, [FLOW_INT64] = -0x1p63 };
  static const double highest[] = { [FLOW_INT8] = 127, [FLOW_UINT8] = 255, [FLOW_INT32] = 2147483647.0, [FLOW_INT64] = 0x1p63 };
  for (int64_t i = 0; i < size_of(out->rank, out->shape); i++) {
    const void *from = element(in, i), *found = element(out, i);
    if (flow_dtype_is_float(out->dtype)) {
      int once = in->dtype == FLOW_INT64 && out->dtype == FLOW_FLOAT32;   /* not by way of a double */
      double value = once ? (double)(float)read_int(FLOW_INT64, from) : read_double(in->dtype, from);
      assert_close("cast", out->dtype, read_double(out->dtype, found), rounded(out->dtype, value), 0);
      continue;
    }
    int64_t expected;
    if (flow_dtype_is_float(in->dtype) && out->dtype != FLOW_BOOL) {
      double value = read_double(in->dtype, from);
      if (value != value) expected = 0;
      else if (value <= lowest[out->dtype]) expected = out->dtype == FLOW_INT64 ? INT64_MIN : (int64_t)lowest[out->dtype];
      else if (value >= highest[out->dtype]) expected = out->dtype == FLOW_INT64 ? INT64_MAX : (int64_t)highest[out->dtype];
      else expected = (int64_t)value;
    } else if (flow_dtype_is_float(in->dtype)) {
      expected = read_double(in->dtype, from) != 0;
    } else {
      number wrapped;
      write_int(out->dtype, &wrapped, read_int(in->dtype, from));
      expected = read_int(out->dtype, &wrapped);
    }
    if (read_int(out->dtype, found) != expected)
      fail_msg("cast of %.17g, %s to %s: found %lld, expected %lld", read_double(in->dtype, from), flow_dtype_name(in->dtype),
               flow_dtype_name(out->dtype), (long long)read_int(out->dtype, found), (long long)expected);
  }
  assert_guards(argument);
  memset(((array *)argument)->block + GUARD, GUARD_BYTE, ((array *)argument)->bytes);
}

static void casts_round_saturate_and_wrap_between_all_dtypes(void **state)
{
  (void)state;
  static const double floats[] = {
    0, -0.0, 0.4, -0.6, 1.5, 127.5, 128, -129, 255.9, 300, -1e10, 1e10, 65519, 65520, 2147483647, 2147483648.0, -2147483649.0,
    9.3e18, -9.3e18, 1e30, INFINITY, -INFINITY, NAN, 1e-7, 3.0000001, 16777217,
  };
  const int64_t float_count = sizeof floats / sizeof floats[0];
  static const int64_t integers[] = {
    0, 1, -1, 127, 128, -128, -129, 255, 256, 65535, -70000, INT32_MAX, INT32_MIN, INT64_C(1) << 31, INT64_MAX, INT64_MIN,
    (INT64_C(1) << 53) + 1, 16777217,
  };
  const int64_t integer_count = sizeof integers / sizeof integers[0];
  int64_t shape[2] = { 9, 70 };
  for (int from = 0; from < FLOW_DTYPE_COUNT; from++)
    for (int to = 0; to < FLOW_DTYPE_COUNT; to++)
      for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        array in = array_new(from, (layout_kind)layout, 2, shape), out = array_new(to, CONTIGUOUS, 2, shape);
        for (int64_t i = 0; i < 630; i++) {
          if (flow_dtype_is_float(from)) write_double(from, element(&in.operand, i), floats[i % float_count]);
          else write_int(from, element(&in.operand, i), integers[i % integer_count]);
        }
        flow_attributes attributes = { .cast = { to } };
        flow_call call = call_of(FLOW_OP_cast, &attributes, &in.operand, 1, &out.operand);
        run_everywhere(&call, check_cast, &out);
        array_free(&in);
        array_free(&out);
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
    cmocka_unit_test(where_takes_any_condition_and_broadcasts_all_three),
    cmocka_unit_test(an_output_may_be_the_memory_of_an_input),
    cmocka_unit_test(sliding_windows_are_views_like_others),
    cmocka_unit_test(an_output_that_nobody_reads_is_skipped),
    cmocka_unit_test(an_integer_without_a_kernel_is_an_error_that_names_the_op),
    cmocka_unit_test(a_program_runs_several_steps_and_outputs),
    cmocka_unit_test(a_long_run_of_several_steps_keeps_to_its_buffers),
    cmocka_unit_test(casts_round_saturate_and_wrap_between_all_dtypes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
