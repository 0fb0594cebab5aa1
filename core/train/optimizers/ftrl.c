/* ftrl.c: Keras 3's Ftrl (keras/src/optimizers/ftrl.py; McMahan et al., "Ad click prediction: a view from the trenches", 2013). */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument ftrl_parameters[] = {
  RATE("0.001"), { "learning_rate_power", FLOW_NUMBER, "-0.5", NULL }, { "initial_accumulator_value", FLOW_NUMBER, "0.1", NULL },
  { "l1_regularization_strength", FLOW_NUMBER, "0", NULL }, { "l2_regularization_strength", FLOW_NUMBER, "0", NULL },
  { "l2_shrinkage_regularization_strength", FLOW_NUMBER, "0", NULL }, { "beta", FLOW_NUMBER, "0", NULL }, DECAY("null"), COMMON_PARAMETERS
};

static const char *const ftrl_slots[] = { "accumulator", "linear", NULL };

static flow_tensor *scaled(flow_expression *e, double factor, flow_tensor *x) { return e_mul(e, x, flow_express_number(e, x, factor)); }

/* x^exponent; for the usual exponent, 0.5, the root. */
static flow_tensor *power(flow_expression *e, flow_tensor *x, double exponent)
{
  return exponent == 0.5 ? e_sqrt(e, x) : e_pow(e, x, flow_express_number(e, x, exponent));
}

/* FTRL-proximal (McMahan et al. 2013, algorithm 1) with Keras' names: slots are the sum of squared gradients and the linear term;
 * weights whose linear term is within l1 become 0. */
static void update(flow_formula *f)
{
  flow_expression *e = &f->expression;
  double exponent = -flow_argument_number(f->arguments, "learning_rate_power");
  double l1 = flow_argument_number(f->arguments, "l1_regularization_strength");
  double l2 = flow_argument_number(f->arguments, "l2_regularization_strength"), beta = flow_argument_number(f->arguments, "beta");
  double shrinkage = flow_argument_number(f->arguments, "l2_shrinkage_regularization_strength");
  flow_tensor *gradient = shrinkage == 0 ? f->gradient : e_add(e, f->gradient, scaled(e, 2 * shrinkage, f->weight));
  flow_tensor *accumulator = e_add(e, f->slots[0], e_square(e, f->gradient));
  flow_tensor *root = power(e, accumulator, exponent);
  flow_tensor *growth = e_div(e, e_sub(e, root, power(e, f->slots[0], exponent)), f->rate);
  flow_tensor *linear = e_add(e, f->slots[1], e_sub(e, gradient, e_mul(e, growth, f->weight)));
  flow_tensor *limit = flow_express_number(e, linear, l1), *clipped = e_minimum(e, e_maximum(e, linear, e_neg(e, limit)), limit);
  flow_tensor *penalty = e_add(e, flow_express_number(e, f->rate, 2 * l2), e_div(e, flow_express_number(e, f->rate, beta), f->rate));
  f->weight = e_div(e, e_sub(e, clipped, linear), e_add(e, e_div(e, root, f->rate), penalty));
  f->slots[0] = accumulator;
  f->slots[1] = linear;
}

const flow_optimizer_class flow_optimizer_ftrl = {
  .name = "Ftrl", .default_name = "ftrl", .parameters = ftrl_parameters, .slots = ftrl_slots, .formula = update, .interleaved = 2,
  .initial_slot = "initial_accumulator_value"
};
