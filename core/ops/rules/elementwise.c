/* elementwise.c: rules of elementwise ops. In the gradients g is the gradient of the result y; a formula gives the gradient of one input.
 * Formulas use y where it saves work: y is remembered anyway. They are those of any calculus textbook; where a formula differs from it,
 * or where a derivative does not exist, the comment says what is done: as in TensorFlow unless it says more. */
#include <math.h>

#include "ops/expression.h"
#include "ops/rules.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* What the record's flags promise of an arithmetic op's inputs, once flow_apply has cast them. */
static flow_status check_arithmetic(int op, const flow_signature *inputs, int input_count)
{
  if (flow_op(op)->flags & (FLOW_OP_FLOAT_ONLY | FLOW_OP_TO_FLOAT)) FLOW_TRY(flow_rule_float(op, "the input", &inputs[0]));
  if ((flow_op(op)->flags & FLOW_OP_NO_BOOLS) && inputs[0].dtype == FLOW_BOOL) {
    return flow_rule_fail(op, "bools have no %s that is a bool; cast first, as with :to(\"int32\"), or use %s",
                          input_count == 1 ? "sign" : "difference", input_count == 1 ? "logical_not" : "logical_xor");
  }
  for (int i = 1; i < input_count; i++) FLOW_TRY(flow_rule_same_dtype(op, "an input", inputs[0].dtype, &inputs[i]));
  return FLOW_OK;
}

/* Every input has the output's shape and dtype: ops with one input, and those whose operands callers have brought together. A NaN as the
 * rate of dropout is refused, too. */
flow_status flow_shape_same(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  FLOW_TRY(check_arithmetic(op, inputs, input_count));
  for (int i = 1; i < input_count; i++) FLOW_TRY(flow_rule_dims(op, "an input", &inputs[i], inputs[0].rank, inputs[0].dims));
  if (op == FLOW_OP_dropout && !(attributes->dropout.rate >= 0 && attributes->dropout.rate <= 1)) {
    return flow_rule_fail(op, "the rate is %g, expected 0 to 1", attributes->dropout.rate);
  }
  outputs[0] = inputs[0];
  return FLOW_OK;
}

/* One bool for each element of the first input, whatever the others are. */
flow_status flow_shape_predicate(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                 flow_signature *outputs)
{
  (void)op;
  (void)attributes;
  (void)input_count;
  outputs[0] = inputs[0];
  outputs[0].dtype = FLOW_BOOL;
  return FLOW_OK;
}

/* x with cast.dtype, which may be any. */
flow_status flow_shape_cast(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  (void)input_count;
  int dtype = attributes->cast.dtype;
  if (dtype < 0 || dtype >= FLOW_DTYPE_COUNT)
    return flow_rule_fail(op, "dtype number %d is unknown; the numbers are 0 to %d", dtype, FLOW_DTYPE_COUNT - 1);
  outputs[0] = inputs[0];
  outputs[0].dtype = dtype;
  return FLOW_OK;
}

/* As many outputs as inputs. */
flow_status flow_shape_casts(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  if (attributes->cast.dtype != FLOW_FLOAT16 && attributes->cast.dtype != FLOW_BFLOAT16)
    return flow_rule_fail(op, "the dtype has number %d, expected float16 or bfloat16", attributes->cast.dtype);
  for (int i = 0; i < input_count; i++) {
    FLOW_TRY(flow_rule_same_dtype(op, "an input", FLOW_FLOAT32, &inputs[i]));
    FLOW_TRY(flow_shape_cast(op, attributes, &inputs[i], 1, &outputs[i]));
  }
  return FLOW_OK;
}

/* Two inputs of one dtype, whose shapes broadcast as in NumPy. */
flow_status flow_shape_broadcast(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                 flow_signature *outputs)
{
  (void)attributes;
  FLOW_TRY(check_arithmetic(op, inputs, input_count));
  outputs[0].dtype = inputs[0].dtype;
  return flow_rule_broadcast(op, &inputs[0], &inputs[1], &outputs[0]);
}

/* The same for comparisons and logic: bool. */
flow_status flow_shape_compare(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                               flow_signature *outputs)
{
  FLOW_TRY(flow_shape_broadcast(op, attributes, inputs, input_count, outputs));
  outputs[0].dtype = FLOW_BOOL;
  return FLOW_OK;
}

/* Three shapes broadcast together; the dtype is that of the two values, which are equal after promotion. */
flow_status flow_shape_where(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  (void)attributes;
  (void)input_count;
  FLOW_TRY(flow_rule_same_dtype(op, "the third input", inputs[1].dtype, &inputs[2]));
  outputs[0].dtype = inputs[1].dtype;
  FLOW_TRY(flow_rule_broadcast(op, &inputs[1], &inputs[2], &outputs[0]));
  return flow_rule_broadcast(op, &inputs[0], &outputs[0], &outputs[0]);
}

/* All inputs are float32, or float64, or conditions, and so is the result. Step s may read the inputs and the results of steps before it:
 * registers 0 to input_count + s - 1. Chains of float32 without conditions are all that devices take; the others are the CPU's
 * (fuse_elementwise.c, flow_apply_chain). */
flow_status flow_shape_fused(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  enum { MOST_STEPS = sizeof attributes->fused.steps / sizeof *attributes->fused.steps };
  const int count = attributes->fused.count;
  int dtype = FLOW_BOOL;
  if (count < 1 || count > MOST_STEPS) return flow_rule_fail(op, "a chain has 1 to %d steps, found %d", MOST_STEPS, count);
  outputs[0] = inputs[0];
  for (int i = 0; i < input_count; i++) {
    if (dtype == FLOW_BOOL) dtype = inputs[i].dtype;
    if (inputs[i].dtype != FLOW_BOOL && (inputs[i].dtype != dtype || (dtype != FLOW_FLOAT32 && dtype != FLOW_FLOAT64)))
      return flow_rule_fail(op, "input %d is %s, expected float32, or all float64", i + 1, flow_dtype_name(inputs[i].dtype));
    FLOW_TRY(flow_rule_broadcast(op, &inputs[i], &outputs[0], &outputs[0]));
  }
  if (dtype == FLOW_BOOL) return flow_rule_fail(op, "input 1 is bool, expected one that is float32 or float64");
  outputs[0].dtype = dtype;
  for (int s = 0; s < count; s++) {
    int known = attributes->fused.steps[s].op >= 0 && attributes->fused.steps[s].op < FLOW_OP_COUNT;
    for (int i = 0; i < 3; i++) known &= attributes->fused.steps[s].inputs[i] < input_count + s;
    if (!known) return flow_rule_fail(op, "step %d names an op or a register that does not exist", s + 1);
  }
  if (flow_op_gives_condition(attributes->fused.steps[count - 1].op)) outputs[0].dtype = FLOW_BOOL;
  return FLOW_OK;
}

/* ---- gradients of ops with one input ----------------------------------------------------------------------------- */

#define NUMBER(value) flow_express_number(e, g, value)

/* The rule of an op with one input, from its formula in e, g, x and y. */
#define GRADIENT_OF_1(name, formula)                                                               \
  static flow_tensor *name##_x(flow_expression *e, flow_tensor *g, flow_tensor *x, flow_tensor *y) \
  {                                                                                                \
    (void)e;                                                                                       \
    (void)x;                                                                                       \
    (void)y;                                                                                       \
    return formula;                                                                                \
  }                                                                                                \
  flow_status flow_gradient_##name(flow_gradient_step *step)                                       \
  {                                                                                                \
    return apply_1(step, name##_x);                                                                \
  }

typedef flow_tensor *formula_1(flow_expression *e, flow_tensor *g, flow_tensor *x, flow_tensor *y);

/* Runs the formula of an op with one input where g and the input's gradient are there. */
static flow_status apply_1(flow_gradient_step *step, formula_1 *dx)
{
  if (!step->needed[0] || step->output_gradients[0] == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *result = dx(&e, step->output_gradients[0], step->inputs[0], step->outputs[0]);
  return flow_expression_take(&e, result, &step->input_gradients[0]);
}

GRADIENT_OF_1(neg, e_neg(e, g))
GRADIENT_OF_1(abs, e_mul(e, g, e_sign(e, x)))
GRADIENT_OF_1(square, e_mul(e, g, e_mul(e, NUMBER(2), x)))
GRADIENT_OF_1(relu, e_relu_gradient(e, g, y))
GRADIENT_OF_1(exp, e_mul(e, g, y))
GRADIENT_OF_1(expm1, e_mul(e, g, e_exp(e, x))) /* y + 1 would be 0 from x = -17 on */
GRADIENT_OF_1(log, e_div(e, g, x))
GRADIENT_OF_1(log1p, e_div(e, g, e_add(e, x, NUMBER(1))))
GRADIENT_OF_1(sqrt, e_div(e, g, e_mul(e, NUMBER(2), y)))
GRADIENT_OF_1(rsqrt, e_mul(e, g, e_mul(e, NUMBER(-0.5), e_mul(e, y, e_square(e, y)))))
GRADIENT_OF_1(reciprocal, e_mul(e, g, e_neg(e, e_square(e, y))))
GRADIENT_OF_1(sin, e_mul(e, g, e_cos(e, x)))
GRADIENT_OF_1(cos, e_neg(e, e_mul(e, g, e_sin(e, x))))
GRADIENT_OF_1(tan, e_mul(e, g, e_add(e, NUMBER(1), e_square(e, y))))
GRADIENT_OF_1(arctan, e_div(e, g, e_add(e, NUMBER(1), e_square(e, x))))
GRADIENT_OF_1(tanh, e_mul(e, g, e_sub(e, NUMBER(1), e_square(e, y))))
GRADIENT_OF_1(sigmoid, e_mul(e, g, e_mul(e, y, e_sub(e, NUMBER(1), y))))
GRADIENT_OF_1(erf, e_mul(e, g, e_mul(e, NUMBER(M_2_SQRTPI), e_exp(e, e_neg(e, e_square(e, x))))))
GRADIENT_OF_1(erfc, e_mul(e, g, e_mul(e, NUMBER(-M_2_SQRTPI), e_exp(e, e_neg(e, e_square(e, x))))))
GRADIENT_OF_1(softplus, e_mul(e, g, e_sigmoid(e, x)))
GRADIENT_OF_1(softsign, e_div(e, g, e_square(e, e_add(e, NUMBER(1), e_abs(e, x)))))
GRADIENT_OF_1(gelu, e_gelu_gradient(e, g, x))
GRADIENT_OF_1(gelu_tanh, e_gelu_tanh_gradient(e, g, x))
GRADIENT_OF_1(silu, e_silu_gradient(e, g, x))
GRADIENT_OF_1(copy, g)

/* Integers and booleans do not vary: nothing flows through them. */
static flow_tensor *cast_x(flow_expression *e, flow_tensor *g, flow_tensor *x, flow_tensor *y)
{
  (void)y;
  return flow_express_cast(e, g, x->dtype);
}

/* Nothing flows through a cast from or to integers. */
flow_status flow_gradient_cast(flow_gradient_step *step)
{
  int floats = flow_dtype_is_float(step->inputs[0]->dtype) && flow_dtype_is_float(step->outputs[0]->dtype);
  return floats ? apply_1(step, cast_x) : FLOW_OK;
}

/* ---- two inputs that broadcast -------------------------------------------------------------------------------------------- */

typedef flow_tensor *formula_2(flow_expression *e, flow_tensor *g, flow_tensor *a, flow_tensor *b, flow_tensor *y);

/* The rule of an op with two inputs, from the formulas of both gradients in the broadcast shape; apply_2 sums them to the inputs'
 * shapes. */
#define GRADIENT_OF_2(name, formula_a, formula_b)                                                                  \
  static flow_tensor *name##_a(flow_expression *e, flow_tensor *g, flow_tensor *a, flow_tensor *b, flow_tensor *y) \
  {                                                                                                                \
    (void)e;                                                                                                       \
    (void)a;                                                                                                       \
    (void)b;                                                                                                       \
    (void)y;                                                                                                       \
    return formula_a;                                                                                              \
  }                                                                                                                \
  static flow_tensor *name##_b(flow_expression *e, flow_tensor *g, flow_tensor *a, flow_tensor *b, flow_tensor *y) \
  {                                                                                                                \
    (void)e;                                                                                                       \
    (void)a;                                                                                                       \
    (void)b;                                                                                                       \
    (void)y;                                                                                                       \
    return formula_b;                                                                                              \
  }                                                                                                                \
  flow_status flow_gradient_##name(flow_gradient_step *step)                                                       \
  {                                                                                                                \
    return apply_2(step, name##_a, name##_b);                                                                      \
  }

/* The same for two inputs. Formulas are in the shape of y; each result is summed to the shape of its input. */
static flow_status apply_2(flow_gradient_step *step, formula_2 *da, formula_2 *db)
{
  flow_tensor *g = step->output_gradients[0], *a = step->inputs[0], *b = step->inputs[1], *y = step->outputs[0];
  if (g == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *results[2] = { NULL, NULL };
  if (step->needed[0]) results[0] = flow_express_sum_to(&e, da(&e, g, a, b, y), a);
  if (step->needed[1]) results[1] = flow_express_sum_to(&e, db(&e, g, a, b, y), b);
  return flow_expression_give(&e, step, results);
}

/* b a^(b-1), which is 0 for b = 0 even where a = 0 makes a^(b-1) infinite. */
static flow_tensor *power_slope(flow_expression *e, flow_tensor *a, flow_tensor *b)
{
  flow_tensor *zero = flow_express_number(e, b, 0), *one = flow_express_number(e, b, 1);
  flow_tensor *exponent = e_where(e, e_eq(e, b, zero), zero, e_sub(e, b, one));
  return e_mul(e, b, e_pow(e, a, exponent));
}

/* log a where a > 0, else 0: there a^b has no derivative by b, or the limit is 0. */
static flow_tensor *power_log(flow_expression *e, flow_tensor *a)
{
  flow_tensor *zero = flow_express_number(e, a, 0), *one = flow_express_number(e, a, 1);
  return e_log(e, e_where(e, e_gt(e, a, zero), a, one));
}

/* The second derivative of gelu: (2 - x^2) p(x), p the normal density. */
static flow_tensor *bend_of_gelu(flow_expression *e, flow_tensor *x)
{
  flow_tensor *square = e_square(e, x);
  flow_tensor *density = e_exp(e, e_mul(e, square, flow_express_number(e, x, -0.5)));
  flow_tensor *scale = e_sub(e, flow_express_number(e, x, 2), square);
  return e_mul(e, density, e_mul(e, scale, flow_express_number(e, x, M_2_SQRTPI * M_SQRT1_2 / 2)));
}

/* The second derivative of gelu_tanh: s u' + x s (u'' - 2 t u'^2) / 2 with t = tanh u, s = 1 - t^2. */
static flow_tensor *bend_of_gelu_tanh(flow_expression *e, flow_tensor *x)
{
  const double root = M_2_SQRTPI * M_SQRT1_2; /* sqrt(2 / pi) */
  flow_tensor *square = e_square(e, x), *one = flow_express_number(e, x, 1);
  flow_tensor *cubic = flow_express_number(e, x, root * 0.044715), *linear = flow_express_number(e, x, root);
  flow_tensor *t = e_tanh(e, e_mul(e, x, e_add(e, e_mul(e, square, cubic), linear))), *s = e_sub(e, one, e_square(e, t));
  flow_tensor *slope = e_add(e, e_mul(e, square, flow_express_number(e, x, 3 * root * 0.044715)), linear);
  flow_tensor *bend = e_sub(e, e_mul(e, x, flow_express_number(e, x, 3 * root * 0.044715)), e_mul(e, t, e_square(e, slope)));
  return e_mul(e, s, e_add(e, slope, e_mul(e, x, bend)));
}

/* The second derivative of silu: s' (2 + x (1 - 2 s)) with s = sigmoid(x), s' = s (1 - s). */
static flow_tensor *bend_of_silu(flow_expression *e, flow_tensor *x)
{
  flow_tensor *s = e_sigmoid(e, x), *one = flow_express_number(e, x, 1), *two = flow_express_number(e, x, 2);
  flow_tensor *slope = e_mul(e, s, e_sub(e, one, s));
  return e_mul(e, slope, e_add(e, two, e_mul(e, x, e_sub(e, one, e_mul(e, two, s)))));
}

GRADIENT_OF_2(add, g, g)
GRADIENT_OF_2(sub, g, e_neg(e, g))
GRADIENT_OF_2(mul, e_mul(e, g, b), e_mul(e, g, a))
GRADIENT_OF_2(div, e_div(e, g, b), e_neg(e, e_div(e, e_mul(e, g, y), b)))
GRADIENT_OF_2(divide_no_nan, e_divide_no_nan(e, g, b), e_neg(e, e_divide_no_nan(e, e_mul(e, g, y), b)))
GRADIENT_OF_2(pow, e_mul(e, g, power_slope(e, a, b)), e_mul(e, g, e_mul(e, y, power_log(e, a))))
GRADIENT_OF_2(mod, g, e_neg(e, e_mul(e, g, e_floor(e, e_div(e, a, b)))))
GRADIENT_OF_2(gelu_gradient, e_gelu_gradient(e, g, b), e_mul(e, e_mul(e, g, a), bend_of_gelu(e, b)))
GRADIENT_OF_2(gelu_tanh_gradient, e_gelu_tanh_gradient(e, g, b), e_mul(e, e_mul(e, g, a), bend_of_gelu_tanh(e, b)))
GRADIENT_OF_2(silu_gradient, e_silu_gradient(e, g, b), e_mul(e, e_mul(e, g, a), bend_of_silu(e, b)))
GRADIENT_OF_2(maximum, e_where(e, e_ge(e, a, b), g, NUMBER(0)), e_where(e, e_ge(e, a, b), NUMBER(0), g))
GRADIENT_OF_2(minimum, e_where(e, e_le(e, a, b), g, NUMBER(0)), e_where(e, e_le(e, a, b), NUMBER(0), g))

/* g where y > 0: linear in g, flat in y. */
flow_status flow_gradient_relu_gradient(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *result = flow_express_sum_to(&e, e_relu_gradient(&e, g, step->inputs[1]), step->inputs[0]);
  return flow_expression_take(&e, result, &step->input_gradients[0]);
}

/* Each value gets g where it was taken and 0 elsewhere; the condition has no gradient. */
flow_status flow_gradient_where(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *condition = step->inputs[0];
  if (g == NULL) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *results[3] = { NULL, NULL, NULL };
  flow_tensor *zero = flow_express_number(&e, g, 0);
  if (step->needed[1]) results[1] = flow_express_sum_to(&e, e_where(&e, condition, g, zero), step->inputs[1]);
  if (step->needed[2]) results[2] = flow_express_sum_to(&e, e_where(&e, condition, zero, g), step->inputs[2]);
  return flow_expression_give(&e, step, results);
}
