/* composites.c: functions made of ops, with Keras' semantics: mean and the named activations. Formulas are those of Keras 3
 * (keras.activations, keras.ops.nn). */
#include <string.h>

#include "autodiff/composites.h"
#include "base/need.h"
#include "autodiff/expression.h"
#include "ops/rules.h"

/* Elements that one output of the reduction sums; -1 when rows take part. Call after the reduction was checked. A double, since a
 * product of sizes may be larger than an int64_t. */
static double reduced_count(const flow_tensor *x, const flow_attributes *reduce)
{
  unsigned mask = flow_reduced_axes(reduce, x->rank);
  double count = 1;
  for (int i = 0; i < x->rank; i++) {
    if (!(mask & 1u << i)) continue;
    if (x->shape[i] < 0) return -1;
    count *= (double)x->shape[i];
  }
  return count;
}

/* Sums of 16-bit floats are kept in float32 until they are divided: 70,000 ones overflow a float16. The mean of nothing is NaN. */
flow_status flow_mean(flow_context *context, flow_tensor *x, const flow_attributes *reduce, flow_tensor **out)
{
  FLOW_NEED(out);
  static const flow_attributes all_axes;
  *out = NULL;
  FLOW_NEED(context, x);
  FLOW_TRY(flow_check_tensor("flow_mean: x", x));
  if (reduce == NULL) reduce = &all_axes;
  int dtype = flow_dtype_is_float(x->dtype) ? x->dtype : FLOW_FLOAT32;
  int wide = dtype == FLOW_FLOAT64 ? FLOW_FLOAT64 : FLOW_FLOAT32;
  flow_expression e = flow_expression_of(context);
  flow_tensor *sum = flow_express(&e, FLOW_OP_sum, flow_express_cast(&e, x, wide), NULL, NULL, reduce);
  double count = e.status == FLOW_OK ? reduced_count(x, reduce) : 0;
  flow_tensor *divisor = count >= 0 ? flow_express_number(&e, sum, count)
                                    : flow_express_cast(&e, flow_express(&e, FLOW_OP_element_count, x, NULL, NULL, reduce), wide);
  return flow_expression_take(&e, flow_express_cast(&e, e_div(&e, sum, divisor), dtype), out);
}

/* ---- activations ------------------------------------------------------------------------------------------------------------- */

#define NUMBER(value) flow_express_number(e, x, value)

static const flow_attributes last_axis = { .axis = { .axis = -1 } };

/* The tensor itself: the expression's end retains it. */
static flow_tensor *linear(flow_expression *e, flow_tensor *x) { (void)e; return x; }
static flow_tensor *softmax(flow_expression *e, flow_tensor *x) { return flow_express(e, FLOW_OP_softmax, x, NULL, NULL, &last_axis); }
static flow_tensor *log_softmax(flow_expression *e, flow_tensor *x)
{
  return flow_express(e, FLOW_OP_log_softmax, x, NULL, NULL, &last_axis);
}
/* Where two branches meet the gradient is Keras'. The first argument of maximum and minimum has it when they are equal, and relu's is 0 at
 * 0: so relu6 has none at 0 and at 6. */
static flow_tensor *relu6(flow_expression *e, flow_tensor *x)
{
  return e_minimum(e, NUMBER(6), e_relu(e, x));
}
/* Misra 2019: x tanh(softplus(x)), which is x n / (n + 2) with n = e^x (e^x + 2); beyond 20 it is x. */
static flow_tensor *mish(flow_expression *e, flow_tensor *x)
{
  flow_tensor *power = e_exp(e, e_minimum(e, x, NUMBER(20))), *n = e_mul(e, power, e_add(e, power, NUMBER(2)));
  return e_mul(e, x, e_div(e, n, e_add(e, n, NUMBER(2))));
}

static flow_tensor *leaky_relu(flow_expression *e, flow_tensor *x)
{
  return flow_express_leaky_relu(e, x, NUMBER(0.2), 0.2);
}

/* x > 0: x; else e^x - 1. The two parts are 0 where the other counts; at 0 the slope 1 comes from the second. */
static flow_tensor *elu(flow_expression *e, flow_tensor *x)
{
  return e_add(e, e_relu(e, x), e_expm1(e, e_minimum(e, x, NUMBER(0))));
}

/* Constants of Klambauer et al., "Self-normalizing neural networks" (2017): scale * elu with alpha; at 0 the slope is that of x. */
static flow_tensor *selu(flow_expression *e, flow_tensor *x)
{
  const double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  flow_tensor *negative = e_mul(e, NUMBER(alpha), e_expm1(e, e_minimum(e, NUMBER(0), x)));
  return e_mul(e, NUMBER(scale), e_add(e, e_maximum(e, x, NUMBER(0)), negative));
}

/* Keras 3: relu6(x + 3) / 6 (Keras 2 had clip(0.2 x + 0.5)). Divisions take ten times as long as products, by which 0, 0.5 and 1 are exact,
 * too. */
static flow_tensor *hard_sigmoid(flow_expression *e, flow_tensor *x)
{
  return e_mul(e, relu6(e, e_add(e, x, NUMBER(3))), NUMBER(1.0 / 6));
}

/* Howard et al. 2019 (MobileNetV3): x times the hard sigmoid. */
static flow_tensor *hard_silu(flow_expression *e, flow_tensor *x) { return e_mul(e, x, hard_sigmoid(e, x)); }
/* -softplus(-x), which is exact also where the sigmoid itself would be 0. */
static flow_tensor *log_sigmoid(flow_expression *e, flow_tensor *x) { return e_neg(e, e_softplus(e, e_neg(e, x))); }
static flow_tensor *tanh_shrink(flow_expression *e, flow_tensor *x) { return e_sub(e, x, e_tanh(e, x)); }

/* x between -1 and 1; both ends have the slope 1. */
static flow_tensor *hard_tanh(flow_expression *e, flow_tensor *x) { return e_minimum(e, e_maximum(e, x, NUMBER(-1)), NUMBER(1)); }

/* (x + 1) / 2 between 0 and 1. */
static flow_tensor *sparse_sigmoid(flow_expression *e, flow_tensor *x)
{
  return e_minimum(e, NUMBER(1), e_relu(e, e_add(e, e_mul(e, x, NUMBER(0.5)), NUMBER(0.5))));
}

/* 0 below -1, x above 1, (x + 1)^2 / 4 between: the square of what is between, and what is above. */
static flow_tensor *sparse_plus(flow_expression *e, flow_tensor *x)
{
  flow_tensor *between = e_minimum(e, e_relu(e, e_add(e, x, NUMBER(1))), NUMBER(2));
  return e_add(e, e_mul(e, e_square(e, between), NUMBER(0.25)), e_relu(e, e_sub(e, x, NUMBER(1))));
}

/* The activations with a number have Keras' default here. */
static flow_tensor *celu(flow_expression *e, flow_tensor *x)
{
  return e_add(e, e_maximum(e, x, NUMBER(0)), e_expm1(e, e_minimum(e, x, NUMBER(0))));      /* at 0 both have a slope */
}
static flow_tensor *hard_shrink(flow_expression *e, flow_tensor *x) { return e_where(e, e_gt(e, e_abs(e, x), NUMBER(0.5)), x, NUMBER(0)); }
/* x moved towards 0 by 1/2, and 0 between -1/2 and 1/2, and of NaN. */
static flow_tensor *soft_shrink(flow_expression *e, flow_tensor *x)
{
  flow_tensor *others = e_where(e, e_lt(e, x, NUMBER(-0.5)), e_add(e, x, NUMBER(0.5)), NUMBER(0));
  return e_where(e, e_gt(e, x, NUMBER(0.5)), e_sub(e, x, NUMBER(0.5)), others);
}
/* (x + sqrt(x^2 + 4)) / 2. */
static flow_tensor *squareplus(flow_expression *e, flow_tensor *x)
{
  return e_mul(e, e_add(e, x, e_sqrt(e, e_add(e, e_square(e, x), NUMBER(4)))), NUMBER(0.5));
}

typedef struct activation {
  const char *name;
  int         takes_integers;     /* others see integers as float32 */
  flow_tensor *(*formula)(flow_expression *e, flow_tensor *x);
} activation;

/* Under all names that Keras has for them. A formula that is one op is that op's function. */
static const activation activations[] = {
  { "linear", 1, linear },
  { "relu", 1, e_relu },
  { "sigmoid", 0, e_sigmoid },
  { "softmax", 0, softmax },
  { "softplus", 0, e_softplus },
  { "softsign", 0, e_softsign },
  { "tanh", 0, e_tanh },
  { "selu", 0, selu },
  { "elu", 0, elu },
  { "exponential", 0, e_exp },
  { "gelu", 0, e_gelu },
  { "silu", 0, e_silu },
  { "swish", 0, e_silu },
  { "hard_sigmoid", 0, hard_sigmoid },
  { "hard_silu", 0, hard_silu },
  { "hard_swish", 0, hard_silu },
  { "leaky_relu", 0, leaky_relu },
  { "relu6", 1, relu6 },
  { "log_softmax", 0, log_softmax },
  { "mish", 0, mish },
  { "log_sigmoid", 0, log_sigmoid },
  { "tanh_shrink", 0, tanh_shrink },
  { "hard_tanh", 0, hard_tanh },
  { "celu", 0, celu },
  { "sparse_sigmoid", 0, sparse_sigmoid },
  { "sparse_plus", 0, sparse_plus },
  { "hard_shrink", 0, hard_shrink },
  { "soft_shrink", 0, soft_shrink },
  { "squareplus", 0, squareplus },
};
enum { ACTIVATION_COUNT = sizeof activations / sizeof activations[0] };

/* ---- formulas in one pass ------------------------------------------------------------------------------------------------------ */

/* What a formula of elementwise ops says about a tensor: a chain, in which the tensor is value 0, numbers come next, and then the steps,
 * counted from STEPS on until it is known how many numbers there are. fails: it has something else, or too much. */
enum { MOST_NUMBERS = 8, STEPS = 128 };
typedef struct recorded {
  flow_tensor *inputs[1 + MOST_NUMBERS], *steps[32]; /* x and numbers; what stands for the results of steps; all borrowed */
  int input_count, fails;
  flow_attributes chain;
} recorded;

/* The number of the value that a tensor stands for: the result of a step, else an input, which is noted when it first comes. */
static uint8_t recorded_value(recorded *r, flow_tensor *t)
{
  for (int s = 0; s < r->chain.fused.count; s++)
    if (r->steps[s] == t) return (uint8_t)(STEPS + s);
  for (int i = 0; i < r->input_count; i++)
    if (r->inputs[i] == t) return (uint8_t)i;
  if (r->input_count == 1 + MOST_NUMBERS) return (uint8_t)(r->fails = 1);
  r->inputs[r->input_count] = t;
  return (uint8_t)r->input_count++;
}

/* An applier of expressions: notes the op, and gives a tensor that stands for its result. `recorder` is a `recorded`. */
static flow_status record_op(flow_context *recorder, int op, flow_tensor *const *inputs, int input_count, const flow_attributes *attributes,
                             flow_tensor **outputs)
{
  recorded *r = (recorded *)(void *)recorder;
  const int s = r->chain.fused.count;
  FLOW_TRY(flow_tensor_scalar(r->inputs[0]->dtype, 0, outputs)); /* numbers beside it are of this dtype */
  if (attributes || s == (int)(sizeof r->steps / sizeof *r->steps) || (op != FLOW_OP_where && flow_op_elementwise(op) == 0)) r->fails = 1;
  if (r->fails) return FLOW_OK;
  r->chain.fused.steps[s].op = (int16_t)op;
  for (int i = 0; i < input_count; i++) r->chain.fused.steps[s].inputs[i] = recorded_value(r, inputs[i]);
  r->steps[s] = outputs[0];
  r->chain.fused.count++;
  return FLOW_OK;
}
static void record_cast(flow_context *recorder, flow_tensor *cast)
{
  (void)cast;
  ((recorded *)(void *)recorder)->fails = 1;
}
static const flow_applier recording = { .apply = record_op, .after_cast = record_cast };

/* The formula of x in one pass over memory, *out NULL where it has to be its ops one after the other. */
static flow_status apply_recorded(flow_context *context, const activation *of, flow_tensor *x, flow_tensor **out)
{
  recorded r = { .inputs = { x }, .input_count = 1 };
  flow_expression e = { .applier = &recording, .context = (flow_context *)(void *)&r };
  flow_tensor *y = of->formula(&e, x);
  flow_attributes *chain = &r.chain;
  if (e.status == FLOW_OK && !r.fails && chain->fused.count > 1 && y == r.steps[chain->fused.count - 1]) {
    for (int s = 0; s < chain->fused.count; s++)
      for (int i = 0; i < 3; i++)
        if (chain->fused.steps[s].inputs[i] >= STEPS) chain->fused.steps[s].inputs[i] += (uint8_t)(r.input_count - STEPS);
    e.status = flow_apply_chain(context, r.inputs, r.input_count, chain, out);
  }
  return flow_expression_end(&e);
}

/* NULL or "" is linear, as in Keras; NULL: the name is not known. */
static const activation *find_activation(const char *name)
{
  if (name == NULL || name[0] == '\0') return &activations[0];
  for (int i = 0; i < ACTIVATION_COUNT; i++) {
    if (strcmp(activations[i].name, name) == 0) return &activations[i];
  }
  return NULL;
}

/* For messages and for tests that go through all of them. */
const char *flow_activation_name(int index) { return index >= 0 && index < ACTIVATION_COUNT ? activations[index].name : NULL; }

int flow_activation_known(const char *name) { return find_activation(name) != NULL; }

/* In a trace as eagerly: the formula is ops. The sentence about an unknown name lists all that there are. */
flow_status flow_activate(flow_context *context, const char *name, flow_tensor *x, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(context, name, x);
  const activation *found = find_activation(name);
  if (found == NULL) {
    char known[1024];
    flow_text text = flow_text_into(known, sizeof known);
    for (int i = 0; i < ACTIVATION_COUNT; i++) flow_text_add(&text, "%s%s", i ? ", " : "", activations[i].name);
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no activation \"%s\"; known are %s", name, known);
  }
  FLOW_TRY(flow_check_tensor("flow_activate: x", x));
  /* Traces are fused by passes of their plan, and tapes need the gradient of each op. */
  if (!x->graph && flow_tape_depth(context) == 0 && (x->dtype == FLOW_FLOAT32 || x->dtype == FLOW_FLOAT64)) {
    FLOW_TRY(apply_recorded(context, found, x, out));
    if (*out) return FLOW_OK;
  }
  flow_expression e = flow_expression_of(context);
  if (!found->takes_integers && !flow_dtype_is_float(x->dtype)) x = flow_express_cast(&e, x, FLOW_FLOAT32);
  flow_tensor *y = e.status == FLOW_OK ? found->formula(&e, x) : NULL;
  return flow_expression_take(&e, y, out);
}
