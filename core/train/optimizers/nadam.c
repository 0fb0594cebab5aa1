/* nadam.c: Keras 3's Nadam (keras/src/optimizers/nadam.py; Dozat, "Incorporating Nesterov momentum into Adam", 2016). beta_1 grows with
 * the step t: u(t) = beta_1 (1 - 0.96^t / 2); u_product is the product of u(1) to u(t). */
#include <math.h>

#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument nadam_parameters[] = { RATE("0.001"), MOMENTS, DECAY("null"), COMMON_PARAMETERS };

static const char *const nadam_slots[] = { "momentum", "velocity", NULL };
static const flow_scalar_state nadam_scalars[] = { { "u_product", 1 }, { NULL, 0 } };

static flow_tensor *scaled(flow_expression *e, double factor, flow_tensor *x) { return e_mul(e, x, flow_express_number(e, x, factor)); }

/* number - x */
static flow_tensor *from(flow_expression *e, double number, flow_tensor *x) { return e_sub(e, flow_express_number(e, x, number), x); }

/* u(step), see above. */
static flow_tensor *u(flow_expression *e, double beta_1, flow_tensor *step)
{
  return scaled(e, beta_1, from(e, 1, scaled(e, 0.5, e_pow(e, flow_express_number(e, step, 0.96), step))));
}

/* 1 - beta^step, without what the difference of two near numbers would lose. */
static flow_tensor *correction(flow_expression *e, double beta, flow_tensor *step)
{
  return e_neg(e, e_expm1(e, scaled(e, log(beta), step)));
}

/* Once a step, before any weight: u_product of all steps up to this one. */
static void advance(flow_formula *f)
{
  flow_expression *e = &f->expression;
  f->scalars[0] = e_mul(e, f->scalars[0], u(e, flow_argument_number(f->arguments, "beta_1"), f->step));
}

/* state + (x - state) (1 - beta) */
static flow_tensor *average(flow_expression *e, double beta, flow_tensor *state, flow_tensor *x)
{
  return e_add(e, state, scaled(e, 1 - beta, e_sub(e, x, state)));
}

/* For one run of weights. Of Adam's first moment, this looks one step ahead: the average is weighted by u(t + 1), the gradient by 1 -
 * u(t), each with the bias correction of its own product. */
static void update(flow_formula *f)
{
  flow_expression *e = &f->expression;
  double beta_1 = flow_argument_number(f->arguments, "beta_1"), beta_2 = flow_argument_number(f->arguments, "beta_2");
  flow_tensor *now = u(e, beta_1, f->step), *next = u(e, beta_1, e_add(e, f->step, flow_express_number(e, f->step, 1)));
  flow_tensor *product = f->scalars[0];
  flow_tensor *of_momentum = e_div(e, e_mul(e, f->rate, next), from(e, 1, e_mul(e, product, next)));
  flow_tensor *of_gradient = e_div(e, e_mul(e, f->rate, from(e, 1, now)), from(e, 1, product));
  f->slots[0] = average(e, beta_1, f->slots[0], f->gradient);
  f->slots[1] = average(e, beta_2, f->slots[1], e_square(e, f->gradient));
  flow_tensor *step = e_add(e, e_mul(e, of_momentum, f->slots[0]), e_mul(e, of_gradient, f->gradient));
  flow_tensor *root = e_sqrt(e, e_div(e, f->slots[1], correction(e, beta_2, f->step)));
  flow_tensor *epsilon = flow_express_number(e, root, flow_argument_number(f->arguments, "epsilon"));
  f->weight = e_sub(e, f->weight, e_div(e, step, e_add(e, root, epsilon)));
}

const flow_optimizer_class flow_optimizer_nadam = {
  .name = "Nadam", .default_name = "nadam", .parameters = nadam_parameters, .slots = nadam_slots, .formula = update, .interleaved = 2,
  .scalars = nadam_scalars, .advance = advance
};
