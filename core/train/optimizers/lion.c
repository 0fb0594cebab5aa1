/* lion.c: Keras 3's Lion (keras/src/optimizers/lion.py; Chen et al., "Symbolic discovery of optimization algorithms", 2023). */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument lion_parameters[] = {
  RATE("0.001"), { "beta_1", FLOW_NUMBER, "0.9", NULL }, { "beta_2", FLOW_NUMBER, "0.99", NULL }, DECAY("null"), COMMON_PARAMETERS
};

static const char *const lion_slots[] = { "momentum", NULL };

/* share x + (1 - share) y */
static flow_tensor *mix(flow_expression *e, double share, flow_tensor *x, flow_tensor *y)
{
  return e_add(e, e_mul(e, x, flow_express_number(e, x, share)), e_mul(e, y, flow_express_number(e, y, 1 - share)));
}

/* The step is the sign alone, of one average; what is kept for the next step is another average of the same two. */
static void update(flow_formula *f)
{
  flow_expression *e = &f->expression;
  double beta_1 = flow_argument_number(f->arguments, "beta_1"), beta_2 = flow_argument_number(f->arguments, "beta_2");
  flow_tensor *momentum = f->slots[0];
  f->weight = e_sub(e, f->weight, e_mul(e, f->rate, e_sign(e, mix(e, beta_1, momentum, f->gradient))));
  f->slots[0] = mix(e, beta_2, momentum, f->gradient);
}

/* Keras refuses other values as well. */
static flow_status check(const flow_arguments *arguments)
{
  double beta_1 = flow_argument_number(arguments, "beta_1");
  if (beta_1 > 0 && beta_1 <= 1) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "Lion: beta_1 is %g, expected a number above 0 and at most 1", beta_1);
}

const flow_optimizer_class flow_optimizer_lion = {
  .name = "Lion",
  .default_name = "lion",
  .parameters = lion_parameters,
  .slots = lion_slots,
  .formula = update,
  .interleaved = 1,
  .check = check
};
