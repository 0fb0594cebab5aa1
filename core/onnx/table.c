/* table.c: which rule writes which op, under which name of ONNX. What is not here is in training steps only, or has no
 * counterpart: gradients, optimizers, random numbers, affine sampling, what fusion makes. */
#include "onnx/onnx.h"

#define RULE(op, rule_, type_) [FLOW_OP_##op] = { .rule = flow_onnx_##rule_, .type = type_ }

static const flow_onnx_record records[FLOW_OP_COUNT] = {
  RULE(neg, plain, "Neg"),                   RULE(abs, plain, "Abs"),                RULE(sign, plain, "Sign"),
  RULE(square, square, "Mul"),               RULE(relu, plain, "Relu"),              RULE(floor, plain, "Floor"),
  RULE(ceil, plain, "Ceil"),                 RULE(round, plain, "Round"),            RULE(exp, plain, "Exp"),
  RULE(expm1, shifted, "Exp"),               RULE(log, plain, "Log"),                RULE(log1p, log1p, "Log"),
  RULE(sqrt, plain, "Sqrt"),                 RULE(rsqrt, rsqrt, "Sqrt"),             RULE(reciprocal, plain, "Reciprocal"),
  RULE(sin, plain, "Sin"),                   RULE(cos, plain, "Cos"),                RULE(tanh, plain, "Tanh"),
  RULE(tan, plain, "Tan"),                   RULE(arctan, plain, "Atan"),
  RULE(sigmoid, plain, "Sigmoid"),           RULE(erf, plain, "Erf"),                RULE(softplus, plain, "Softplus"),
  RULE(logical_not, logical_not, "Not"),     RULE(is_finite, is_finite, "IsNaN"),    RULE(cast, convert, "Cast"),
  RULE(copy, alias, NULL),                   RULE(stop_gradient, alias, NULL),

  RULE(add, plain, "Add"),                   RULE(sub, plain, "Sub"),                RULE(mul, plain, "Mul"),
  RULE(div, plain, "Div"),                   RULE(divide_no_nan, divide_no_nan, "Div"), RULE(pow, plain, "Pow"),
  RULE(mod, mod, "Mod"),                     RULE(maximum, plain, "Max"),            RULE(minimum, plain, "Min"),
  RULE(eq, plain, "Equal"),                  RULE(ne, ne, "Equal"),                  RULE(lt, plain, "Less"),
  RULE(le, plain, "LessOrEqual"),            RULE(gt, plain, "Greater"),             RULE(ge, plain, "GreaterOrEqual"),
  RULE(logical_and, logical, "And"),         RULE(logical_or, logical, "Or"),        RULE(where, where, "Where"),
  RULE(broadcast_to, broadcast_to, "Expand"),

  RULE(sum, reduce, "ReduceSum"),            RULE(prod, reduce, "ReduceProd"),       RULE(max, reduce, "ReduceMax"),
  RULE(min, reduce, "ReduceMin"),            RULE(any, reduce_bool, "ReduceMax"),    RULE(all, reduce_bool, "ReduceMin"),
  RULE(logsumexp, reduce, "ReduceLogSumExp"),
  RULE(argmax, argmax, "ArgMax"),            RULE(argmin, argmax, "ArgMin"),         RULE(element_count, element_count, NULL),

  RULE(reshape, reshape, "Reshape"),         RULE(transpose, permute, "Transpose"),  RULE(concat, concat, "Concat"),
  RULE(slice, slice, "Slice"),               RULE(slice_gradient, pad, "Pad"),       RULE(fill, fill, "Expand"),

  RULE(matmul, matmul, "MatMul"),            RULE(convolution, convolution, "Conv"), RULE(max_pool, pool, "MaxPool"),
  RULE(average_pool, pool, "AveragePool"),   RULE(resize, resize, "Resize"),         RULE(softmax, softmax, "Softmax"),
  RULE(log_softmax, softmax, "LogSoftmax"),  RULE(gather, gather, "Gather"),         RULE(floor_divide, floor_divide, "Div"),
  RULE(argsort, argsort, "TopK"),            RULE(cumsum, cumsum, "CumSum"),         RULE(take_along, take_along, "GatherElements"),

  /* What Conv2DTranspose computes: of the gradients only that of the image, which reads the upstream gradient and the kernel. */
  [FLOW_OP_convolution_gradient] = { .rule = flow_onnx_convolution_transpose, .type = "ConvTranspose", .reads = 1u << 0 | 1u << 2 },
};

const flow_onnx_record *flow_onnx_of(int op) { return &records[op]; }

int flow_onnx_knows(int op) { return op >= 0 && op < FLOW_OP_COUNT && records[op].rule != NULL; }
