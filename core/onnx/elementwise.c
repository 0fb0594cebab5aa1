/* elementwise.c: ops that treat each element alone; they stay in the layout in which their inputs are. Where ONNX has no operator of the
 * same meaning a rule writes several nodes; where their result has fewer digits than the op, or differs at the edges of the range, the
 * rule's comment says so. x->status keeps the first failure: rules go on with what they have. */
#include "onnx/onnx.h"

#include <math.h>

/* An input in the layout in which the node's result will be. */
static const char *in(flow_onnx *x, const flow_node *node, int input)
{
  return flow_onnx_input(x, node, input, flow_onnx_layout_of(x, node));
}

/* Names of all inputs (up to 3, of the others NULL) in one layout, and the fresh name of the result in it; dtype: of input 0. */
typedef struct operands { const char *inputs[3], *result; int dtype; } operands;

/* Inputs that are in another layout are transposed here, once for each. */
static operands operands_of(flow_onnx *x, const flow_node *node)
{
  flow_onnx_layout layout = flow_onnx_layout_of(x, node);
  operands o = { .dtype = flow_onnx_signature(x, node, 0)->dtype };
  for (int i = 0; i < node->input_count && i < 3; i++) o.inputs[i] = flow_onnx_input(x, node, i, layout);
  o.result = flow_onnx_result(x, node, 0, layout);
  return o;
}

/* The op has a counterpart of the same meaning: `type`. */
FLOW_ONNX_RULE(plain)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, type, o.result, o.inputs[0], o.inputs[1], o.inputs[2]);
}

/* No node at all: the result is another name for the input (stop_gradient). */
FLOW_ONNX_RULE(alias)
{
  (void)type;
  flow_onnx_layout layout = flow_onnx_layout_of(x, node);
  flow_onnx_set(x, node, 0, layout, in(x, node, 0));
}

/* x x: one node with its operand twice. */
FLOW_ONNX_RULE(square)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, type, o.result, o.inputs[0], o.inputs[0], NULL);
}

/* e^x - 1: ONNX has no expm1; near 0 the difference has fewer digits than the op. */
FLOW_ONNX_RULE(shifted)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, "Sub", o.result, flow_onnx_emit(x, type, NULL, o.inputs[0], NULL, NULL), flow_onnx_number(x, o.dtype, 1), NULL);
}

/* ONNX has no erfc: beyond x = 3 the difference has fewer digits than the op. */
FLOW_ONNX_RULE(erfc)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, "Sub", o.result, flow_onnx_number(x, o.dtype, 1), flow_onnx_emit(x, type, NULL, o.inputs[0], NULL, NULL), NULL);
}

/* ONNX has no log1p: near 0 the sum rounds x to the digits of 1. */
FLOW_ONNX_RULE(log1p)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, type, o.result, flow_onnx_emit(x, "Add", NULL, o.inputs[0], flow_onnx_number(x, o.dtype, 1), NULL), NULL, NULL);
}

/* 1 / sqrt(x), rounded twice. */
FLOW_ONNX_RULE(rsqrt)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, "Reciprocal", o.result, flow_onnx_emit(x, type, NULL, o.inputs[0], NULL, NULL), NULL, NULL);
}

/* x ~= 0, as bool. */
static const char *truth(flow_onnx *x, const char *name, int dtype)
{
  return dtype == FLOW_BOOL ? name : flow_onnx_cast(x, name, FLOW_BOOL, NULL);
}

/* x / 2 (1 + erf(x / sqrt(2))); the op Gelu came with version 20 of ONNX. */
FLOW_ONNX_RULE(gelu)
{
  operands o = operands_of(x, node);
  const char *share = flow_onnx_emit(x, type, NULL,
                                     flow_onnx_emit(x, "Mul", NULL, o.inputs[0], flow_onnx_number(x, o.dtype, M_SQRT1_2), NULL), NULL,
                                     NULL);
  share = flow_onnx_emit(x, "Add", NULL, share, flow_onnx_number(x, o.dtype, 1), NULL);
  const char *half = flow_onnx_emit(x, "Mul", NULL, o.inputs[0], flow_onnx_number(x, o.dtype, 0.5), NULL);
  flow_onnx_emit(x, "Mul", o.result, half, share, NULL);
}

/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), Hendrycks and Gimpel 2016; the op Gelu, which can approximate, came with version 20,
 * too. */
FLOW_ONNX_RULE(gelu_tanh)
{
  const double root = M_2_SQRTPI * M_SQRT1_2; /* sqrt(2 / pi) */
  operands o = operands_of(x, node);
  const char *square = flow_onnx_emit(x, "Mul", NULL, o.inputs[0], o.inputs[0], NULL);
  square = flow_onnx_emit(x, "Mul", NULL, square, flow_onnx_number(x, o.dtype, root * 0.044715), NULL);
  square = flow_onnx_emit(x, "Add", NULL, square, flow_onnx_number(x, o.dtype, root), NULL);
  const char *share = flow_onnx_emit(x, type, NULL, flow_onnx_emit(x, "Mul", NULL, o.inputs[0], square, NULL), NULL, NULL);
  share = flow_onnx_emit(x, "Add", NULL, share, flow_onnx_number(x, o.dtype, 1), NULL);
  const char *half = flow_onnx_emit(x, "Mul", NULL, o.inputs[0], flow_onnx_number(x, o.dtype, 0.5), NULL);
  flow_onnx_emit(x, "Mul", o.result, half, share, NULL);
}

/* x sigmoid(x); ONNX' operator Swish is newer than the version that is written. */
FLOW_ONNX_RULE(silu)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, "Mul", o.result, o.inputs[0], flow_onnx_emit(x, type, NULL, o.inputs[0], NULL, NULL), NULL);
}

FLOW_ONNX_RULE(logical_not)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, type, o.result, truth(x, o.inputs[0], o.dtype), NULL, NULL);
}

/* ONNX' And, Or, Not and Where take bool alone; here any number is true unless it is 0. */
FLOW_ONNX_RULE(logical)
{
  operands o = operands_of(x, node);
  const char *a = truth(x, o.inputs[0], o.dtype), *b = truth(x, o.inputs[1], o.dtype);
  flow_onnx_emit(x, type, o.result, a, b, NULL);
}

/* The condition may be any number; the other two have one dtype. */
FLOW_ONNX_RULE(where)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, type, o.result, truth(x, o.inputs[0], o.dtype), o.inputs[1], o.inputs[2]);
}

/* ONNX has no NotEqual. A NaN is unequal to itself in both. */
FLOW_ONNX_RULE(ne)
{
  operands o = operands_of(x, node);
  flow_onnx_emit(x, "Not", o.result, flow_onnx_emit(x, type, NULL, o.inputs[0], o.inputs[1], NULL), NULL, NULL);
}

/* Neither NaN nor infinite; integers are asked as floats. */
FLOW_ONNX_RULE(is_finite)
{
  operands o = operands_of(x, node);
  const char *value = flow_dtype_is_float(o.dtype) ? o.inputs[0] : flow_onnx_cast(x, o.inputs[0], FLOW_FLOAT32, NULL);
  const char *nan = flow_onnx_emit(x, type, NULL, value, NULL, NULL), *infinite = flow_onnx_emit(x, "IsInf", NULL, value, NULL, NULL);
  flow_onnx_emit(x, "Not", o.result, flow_onnx_emit(x, "Or", NULL, nan, infinite, NULL), NULL, NULL);
}

/* ONNX leaves open what floats beyond an integer's range become: they are limited first, to what the op here gives. The highest limit has
 * to be a number of the float's dtype that is not rounded up beyond the range, so that float32 has its own limits for wide integers.
 * float16 and bfloat16 are limited as float32, which holds all of their values. What becomes of NaN (0 here) stays open. */
FLOW_ONNX_RULE(convert)
{
  (void)type;
  static const struct {
    double low, high, high_float32;
  } limits[FLOW_DTYPE_COUNT] = {
    [FLOW_UINT8] = { 0, 255, 255 },
    [FLOW_INT8] = { -128, 127, 127 },
    [FLOW_INT32] = { -0x1p31, 2147483647, 0x1.fffffep30 },
    [FLOW_INT64] = { -0x1p63, 0x1.fffffffffffffp62, 0x1.fffffep62 },
  };
  operands o = operands_of(x, node);
  int to = node->attributes.cast.dtype, from = o.dtype;
  const char *value = o.inputs[0];
  if (limits[to].high > 0 && flow_dtype_is_float(from)) {
    int is_half = from == FLOW_FLOAT16 || from == FLOW_BFLOAT16;
    if (is_half) value = flow_onnx_cast(x, value, from = FLOW_FLOAT32, NULL);
    const char *low = flow_onnx_number(x, from, limits[to].low);
    const char *high = flow_onnx_number(x, from, from == FLOW_FLOAT64 ? limits[to].high : limits[to].high_float32);
    value = flow_onnx_emit(x, "Clip", NULL, value, low, high);
  }
  flow_onnx_cast(x, value, to, o.result);
}

/* a / b, 0 where b is 0: the quotient there is computed and not taken. */
FLOW_ONNX_RULE(divide_no_nan)
{
  operands o = operands_of(x, node);
  int dtype = x->graph->values[node->outputs[0]].signature.dtype;
  const char *zero = flow_onnx_number(x, dtype, 0), *by_zero = flow_onnx_emit(x, "Equal", NULL, o.inputs[1], zero, NULL);
  const char *quotient = flow_onnx_emit(x, type, NULL, o.inputs[0], o.inputs[1], NULL);
  flow_onnx_emit(x, "Where", o.result, by_zero, zero, quotient);
}

/* ONNX' Mod of floats has the sign of a and is exact, which a - floor(a / b) * b is not: the quotient and the product are rounded. What has
 * the other sign than b is moved by b. The product gives zeros b's sign, which ONNX Runtime's Where takes from them. */
static void emit_float_mod(flow_onnx *x, const operands *o)
{
  const char *b = o->inputs[1], *rest = flow_onnx_name(x, "Mod"), *zero = flow_onnx_number(x, o->dtype, 0);
  flow_onnx_begin(x, "Mod", o->inputs, 2, rest);
  flow_onnx_integer(x, "fmod", 1);
  flow_onnx_end(x);
  const char *sign = flow_onnx_emit(x, "Sign", NULL, rest, NULL, NULL), *b_sign = flow_onnx_emit(x, "Sign", NULL, b, NULL, NULL);
  const char *differ = flow_onnx_emit(x, "Less", NULL, flow_onnx_emit(x, "Mul", NULL, sign, b_sign, NULL), zero, NULL);
  const char *moved = flow_onnx_emit(x, "Where", NULL, differ, flow_onnx_emit(x, "Add", NULL, rest, b, NULL), rest);
  flow_onnx_emit(x, "Mul", o->result, b_sign, flow_onnx_emit(x, "Abs", NULL, moved, NULL, NULL), NULL);
}

/* With the sign of b; integers by 0 give 0, as modulo 1 does. */
FLOW_ONNX_RULE(mod)
{
  operands o = operands_of(x, node);
  const char *a = o.inputs[0], *b = o.inputs[1];
  if (flow_dtype_is_float(o.dtype)) {
    emit_float_mod(x, &o);
    return;
  }
  const char *by_zero = flow_onnx_emit(x, "Equal", NULL, b, flow_onnx_number(x, o.dtype, 0), NULL);
  flow_onnx_emit(x, type, o.result, a, flow_onnx_emit(x, "Where", NULL, by_zero, flow_onnx_number(x, o.dtype, 1), b), NULL);
}

/* Integers are divided as doubles, which hold their quotients up to 2^53: ONNX' Div of integers drops the fraction instead. */
FLOW_ONNX_RULE(floor_divide)
{
  operands o = operands_of(x, node);
  int floats = flow_dtype_is_float(o.dtype);
  const char *a = floats ? o.inputs[0] : flow_onnx_cast(x, o.inputs[0], FLOW_FLOAT64, NULL), *b = o.inputs[1];
  if (!floats) {
    const char *by_zero = flow_onnx_emit(x, "Equal", NULL, b, flow_onnx_number(x, o.dtype, 0), NULL);
    b = flow_onnx_cast(x, b, FLOW_FLOAT64, NULL);
    b = flow_onnx_emit(x, "Where", NULL, by_zero, flow_onnx_number(x, FLOW_FLOAT64, INFINITY), b);
  }
  const char *down = flow_onnx_emit(x, "Floor", floats ? o.result : NULL, flow_onnx_emit(x, type, NULL, a, b, NULL), NULL, NULL);
  if (!floats) flow_onnx_cast(x, down, o.dtype, o.result);
}

/* Softmax and LogSoftmax over one axis, which has another number in channels first. */
FLOW_ONNX_RULE(softmax)
{
  flow_onnx_layout layout = flow_onnx_layout_of(x, node);
  int rank = flow_onnx_signature(x, node, 0)->rank, axis = node->attributes.axis.axis;
  const char *input = in(x, node, 0), *result = flow_onnx_result(x, node, 0, layout);
  flow_onnx_begin(x, type, &input, 1, result);
  flow_onnx_integer(x, "axis", flow_onnx_axis(axis < 0 ? axis + rank : axis, layout));
  flow_onnx_end(x);
}

/* One line an op: its rule above and the node that the rule makes first. */
const flow_onnx_record flow_onnx_elementwise[] = {
  FLOW_ONNX(neg, plain, "Neg"),
  FLOW_ONNX(abs, plain, "Abs"),
  FLOW_ONNX(sign, plain, "Sign"),
  FLOW_ONNX(square, square, "Mul"),
  FLOW_ONNX(relu, plain, "Relu"),
  FLOW_ONNX(floor, plain, "Floor"),
  FLOW_ONNX(ceil, plain, "Ceil"),
  FLOW_ONNX(round, plain, "Round"),
  FLOW_ONNX(exp, plain, "Exp"),
  FLOW_ONNX(expm1, shifted, "Exp"),
  FLOW_ONNX(log, plain, "Log"),
  FLOW_ONNX(log1p, log1p, "Log"),
  FLOW_ONNX(sqrt, plain, "Sqrt"),
  FLOW_ONNX(rsqrt, rsqrt, "Sqrt"),
  FLOW_ONNX(reciprocal, plain, "Reciprocal"),
  FLOW_ONNX(sin, plain, "Sin"),
  FLOW_ONNX(cos, plain, "Cos"),
  FLOW_ONNX(tanh, plain, "Tanh"),
  FLOW_ONNX(tan, plain, "Tan"),
  FLOW_ONNX(arctan, plain, "Atan"),
  FLOW_ONNX(sigmoid, plain, "Sigmoid"),
  FLOW_ONNX(erf, plain, "Erf"),
  FLOW_ONNX(erfc, erfc, "Erf"),
  FLOW_ONNX(softplus, plain, "Softplus"),
  FLOW_ONNX(softsign, plain, "Softsign"),
  FLOW_ONNX(gelu, gelu, "Erf"),
  FLOW_ONNX(gelu_tanh, gelu_tanh, "Tanh"),
  FLOW_ONNX(silu, silu, "Sigmoid"),
  FLOW_ONNX(logical_not, logical_not, "Not"),
  FLOW_ONNX(is_finite, is_finite, "IsNaN"),
  FLOW_ONNX(cast, convert, "Cast"),
  FLOW_ONNX(copy, alias, NULL),
  FLOW_ONNX(stop_gradient, alias, NULL),
  FLOW_ONNX(add, plain, "Add"),
  FLOW_ONNX(sub, plain, "Sub"),
  FLOW_ONNX(mul, plain, "Mul"),
  FLOW_ONNX(div, plain, "Div"),
  FLOW_ONNX(divide_no_nan, divide_no_nan, "Div"),
  FLOW_ONNX(pow, plain, "Pow"),
  FLOW_ONNX(mod, mod, "Mod"),
  FLOW_ONNX(maximum, plain, "Max"),
  FLOW_ONNX(minimum, plain, "Min"),
  FLOW_ONNX(eq, plain, "Equal"),
  FLOW_ONNX(ne, ne, "Equal"),
  FLOW_ONNX(lt, plain, "Less"),
  FLOW_ONNX(le, plain, "LessOrEqual"),
  FLOW_ONNX(gt, plain, "Greater"),
  FLOW_ONNX(ge, plain, "GreaterOrEqual"),
  FLOW_ONNX(logical_and, logical, "And"),
  FLOW_ONNX(logical_or, logical, "Or"),
  FLOW_ONNX(where, where, "Where"),
  FLOW_ONNX(softmax, softmax, "Softmax"),
  FLOW_ONNX(log_softmax, softmax, "LogSoftmax"),
  FLOW_ONNX(floor_divide, floor_divide, "Div"),
  { .rule = NULL },
};
