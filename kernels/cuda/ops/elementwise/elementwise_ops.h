/* elementwise_ops.h: what each elementwise op of ops.def computes, in the words that C and CUDA share: lists from which elementwise.h makes
 * a kernel for each op, and the switches over ops of the kernels that serve all: on a GPU a call through a pointer costs more. An op that
 * ops.def has and a list lacks does not compile. Semantics are the CPU's (kernels/cpu/elementwise/elementwise_blocks.inc). */
#ifndef FLOW_CUDA_OPS_ELEMENTWISE_OPS_H
#define FLOW_CUDA_OPS_ELEMENTWISE_OPS_H

#include "cuda/device/convert.h"
#include "cuda/device/trigonometry.h"

/* X(E, op, operands, expression of a and b) for one floating-point type; F(f): its function of math.h. E is handed on. */
/* clang-format off */
#define FLOATING_OPS(X, E, F)                                                                                 \
  X(E, neg, 1, -a)                            X(E, abs, 1, F(fabs)(a))                                        \
  X(E, sign, 1, a > 0 ? 1 : a < 0 ? -1 : a != a ? a : 0)                                                      \
  X(E, square, 1, a * a)                      X(E, relu, 1, a < 0 ? 0 : a)                                    \
  X(E, floor, 1, F(floor)(a))                 X(E, ceil, 1, F(ceil)(a))                                       \
  X(E, round, 1, F(rint)(a))                  X(E, exp, 1, F(exp)(a))                                         \
  X(E, expm1, 1, F(expm1)(a))                 X(E, log, 1, F(log)(a))                                         \
  X(E, log1p, 1, F(log1p)(a))                 X(E, sqrt, 1, F(sqrt)(a))                                       \
  X(E, rsqrt, 1, 1 / F(sqrt)(a))              X(E, reciprocal, 1, 1 / a)                                      \
  X(E, sin, 1, F(sine)(a))                    X(E, cos, 1, F(cosine)(a))                                      \
  X(E, tan, 1, F(sine)(a) / F(cosine)(a))     X(E, arctan, 1, F(atan)(a))                                     \
  X(E, tanh, 1, F(tanh)(a))                   X(E, sigmoid, 1, F(sigmoid)(a))                                 \
  X(E, erf, 1, F(erf)(a))                     X(E, erfc, 1, F(erfc)(a))                                       \
  X(E, softplus, 1, F(softplus)(a))           X(E, gelu, 1, F(gelu)(a))                                       \
  X(E, gelu_tanh, 1, F(gelu_tanh)(a))         X(E, silu, 1, F(silu)(a))                                       \
  X(E, softsign, 1, a / (1 + F(fabs)(a)))                                                                     \
  X(E, gelu_gradient, 2, F(gelu_gradient)(a, b))                                                              \
  X(E, gelu_tanh_gradient, 2, F(gelu_tanh_gradient)(a, b))                                                    \
  X(E, silu_gradient, 2, F(silu_gradient)(a, b))                                                              \
  X(E, add, 2, a + b)                         X(E, sub, 2, a - b)                                             \
  X(E, mul, 2, a * b)                         X(E, div, 2, a / b)                                             \
  X(E, divide_no_nan, 2, b == 0 ? 0 : a / b)  X(E, pow, 2, F(pow)(a, b))                                      \
  X(E, mod, 2, F(floored_remainder)(a, b))    X(E, maximum, 2, a > b || a != a ? a : b)                       \
  X(E, minimum, 2, a < b || a != a ? a : b)   X(E, relu_gradient, 2, b > 0 ? a : 0)                           \
  X(E, floor_divide, 2, F(floor)(a / b))
/* clang-format on */

/* int64_t; integers wrap, which unsigned ones may do. */
#define INTEGER_OPS(X, E)                                                                                     \
  X(E, neg, 1, 0 - (uint64_t)a)               X(E, abs, 1, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)             \
  X(E, sign, 1, (a > 0) - (a < 0))            X(E, square, 1, (uint64_t)a * (uint64_t)a)                      \
  X(E, relu, 1, a < 0 ? 0 : a)                X(E, floor, 1, a)                                               \
  X(E, ceil, 1, a)                            X(E, round, 1, a)                                               \
  X(E, add, 2, (uint64_t)a + (uint64_t)b)     X(E, sub, 2, (uint64_t)a - (uint64_t)b)                         \
  X(E, mul, 2, (uint64_t)a * (uint64_t)b)     X(E, pow, 2, integer_power(a, b))                               \
  X(E, mod, 2, integer_remainder(a, b))       X(E, maximum, 2, a > b ? a : b)                                 \
  X(E, minimum, 2, a < b ? a : b)             X(E, relu_gradient, 2, b > 0 ? a : 0)                           \
  X(E, floor_divide, 2, integer_quotient(a, b))

/* Results that are 0 or 1; of any type except for is_finite, which says so. */
#define CONDITION_OPS(X, E)                                                                                   \
  X(E, eq, 2, a == b)                         X(E, ne, 2, a != b)                                             \
  X(E, lt, 2, a < b)                          X(E, le, 2, a <= b)                                             \
  X(E, gt, 2, a > b)                          X(E, ge, 2, a >= b)                                             \
  X(E, is_finite, 1, a - a == 0)

#define OF_FLOAT(function)  function##f
#define OF_DOUBLE(function) function

/* Numbers and floats first, then conditions, then what is of bools. */
typedef enum elementwise_op {
#define FLOW_NUMBERS(name, ...) ELEMENTWISE_##name,
#define FLOW_FLOATS(name, ...)  ELEMENTWISE_##name,
#define FLOW_CONDITION(...)
#define FLOW_LOGICAL(...)
#define FLOW_OP(...)
#include "ops/ops.def"
#define FLOW_NUMBERS(...)
#define FLOW_FLOATS(...)
#define FLOW_CONDITION(name, ...) ELEMENTWISE_##name,
#define FLOW_LOGICAL(...)
#include "ops/ops.def"
#define FLOW_NUMBERS(...)
#define FLOW_FLOATS(...)
#define FLOW_CONDITION(...)
#define FLOW_LOGICAL(name, ...) ELEMENTWISE_##name,
#include "ops/ops.def"
#undef FLOW_OP
  ELEMENTWISE_where,
  ELEMENTWISE_COUNT
} elementwise_op;

/* floored_remainder: fmod is exact and truncates, so it is moved into the sign of b; zero has b's sign. softplus, sigmoid: only e^-|x| is
 * formed, which does not overflow. near_zero: x where it is not so large that slopes are 0 anyway; infinity times 0 were NaN.
 * normal_below, bent_tanh: the normal distribution function and what approximates it, (1 + tanh u) / 2. */
#define COMPOSED(T, F)                                                                                  \
  BODY T F(floored_remainder)(T a, T b)                                                                 \
  {                                                                                                     \
    T r = F(fmod)(a, b);                                                                                \
    if (r == 0) return F(copysign)((T)0, b);                                                            \
    return (r < 0) != (b < 0) ? r + b : r;                                                              \
  }                                                                                                     \
  BODY T F(sigmoid)(T x)                                                                                \
  {                                                                                                     \
    T e = F(exp)(-F(fabs)(x));                                                                          \
    return (x < 0 ? e : 1) / (1 + e);                                                                   \
  }                                                                                                     \
  BODY T F(softplus)(T x)                                                                               \
  {                                                                                                     \
    return (x < 0 ? 0 : x) + F(log1p)(F(exp)(-F(fabs)(x)));                                             \
  }                                                                                                     \
  BODY T F(near_zero)(T x)                                                                              \
  {                                                                                                     \
    return F(fabs)(x) > 1000 ? F(copysign)((T)1000, x) : x;                                             \
  }                                                                                                     \
  BODY T F(normal_below)(T x)                                                                           \
  {                                                                                                     \
    return (1 + F(erf)(x * (T)0.70710678118654752440)) * (T)0.5;                                        \
  }                                                                                                     \
  BODY T F(gelu)(T x)                                                                                   \
  {                                                                                                     \
    return x * F(normal_below)(x);                                                                      \
  }                                                                                                     \
  BODY T F(gelu_gradient)(T g, T x)                                                                     \
  {                                                                                                     \
    T near = F(near_zero)(x);                                                                           \
    return g * (F(normal_below)(x) + near * F(exp)(near * near * (T)-0.5) * (T)0.39894228040143267794); \
  }                                                                                                     \
  BODY T F(bent_tanh)(T x)                                                                              \
  {                                                                                                     \
    return F(tanh)(x * (x * x * (T)0.035677408136300125 + (T)0.79788456080286535588));                  \
  }                                                                                                     \
  BODY T F(gelu_tanh)(T x)                                                                              \
  {                                                                                                     \
    return x * (T)0.5 * (1 + F(bent_tanh)(x));                                                          \
  }                                                                                                     \
  BODY T F(gelu_tanh_gradient)(T g, T x)                                                                \
  {                                                                                                     \
    T near = F(near_zero)(x), t = F(bent_tanh)(x);                                                      \
    T slope = near * near * (T)0.10703222440890038 + (T)0.79788456080286535588;                         \
    return g * (T)0.5 * (1 + t + near * (1 - t * t) * slope);                                           \
  }                                                                                                     \
  BODY T F(silu)(T x)                                                                                   \
  {                                                                                                     \
    return x * F(sigmoid)(x);                                                                           \
  }                                                                                                     \
  BODY T F(silu_gradient)(T g, T x)                                                                     \
  {                                                                                                     \
    T s = F(sigmoid)(x);                                                                                \
    return g * (s * (1 + F(near_zero)(x) * (1 - s)));                                                   \
  }
COMPOSED(float, OF_FLOAT)
COMPOSED(double, OF_DOUBLE)
#undef COMPOSED

/* A negative exponent leaves the integers except for 1 and -1: 0. */
BODY int64_t integer_power(int64_t base, int64_t exponent)
{
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)base;
  for (uint64_t e = (uint64_t)exponent; e; e >>= 1, square *= square)
    if (e & 1) result *= square;
  return (int64_t)result;
}

BODY int64_t integer_remainder(int64_t a, int64_t b)
{
  if (b == 0 || b == -1) return 0;   /* INT64_MIN % -1 overflows */
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

BODY int64_t integer_quotient(int64_t a, int64_t b)
{
  if (b == 0) return 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);   /* INT64_MIN / -1 overflows */
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* compute_TYPE(op, a, b), fulfils_TYPE(op, a, b): any op of the lists. */
#define CASE(T, op, operands, expression) case ELEMENTWISE_##op: return (T)(expression);
BODY float compute_float(int op, float a, float b)
{
  switch (op) {
    FLOATING_OPS(CASE, float, OF_FLOAT)
    default: return 0;
  }
}

BODY double compute_double(int op, double a, double b)
{
  switch (op) {
    FLOATING_OPS(CASE, double, OF_DOUBLE)
    default: return 0;
  }
}

BODY int64_t compute_integer(int op, int64_t a, int64_t b)
{
  switch (op) {
    INTEGER_OPS(CASE, int64_t)
    default: return 0;
  }
}

#define FULFILS(T)                                 \
  BODY int fulfils_##T(int op, T a, T b)           \
  {                                                \
    switch (op) {                                  \
      CONDITION_OPS(CASE, int)                     \
      default: return 0;                           \
    }                                              \
  }
FULFILS(float)
FULFILS(double)
FULFILS(int64_t)
#undef FULFILS
#undef CASE

#endif
