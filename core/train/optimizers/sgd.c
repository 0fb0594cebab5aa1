/* sgd.c: Keras 3's SGD (keras/src/optimizers/sgd.py).
 * Its formula is in kernels/optimizer_formulas.inc. */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument sgd_parameters[] = {
  RATE("0.01"), { "momentum", FLOW_NUMBER, "0", NULL }, { "nesterov", FLOW_BOOLEAN, "false", NULL }, DECAY("null"), COMMON_PARAMETERS
};

/* Keras' RMSprop takes any momentum, its SGD does not. */
static flow_status check(const flow_arguments *arguments)
{
  double momentum = flow_argument_number(arguments, "momentum");
  if (momentum >= 0 && momentum <= 1) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "SGD: momentum is %g, expected a number from 0 to 1", momentum);
}

const flow_optimizer_class flow_optimizer_sgd = {
  .name = "SGD", .default_name = "sgd", .parameters = sgd_parameters, .op = FLOW_OP_sgd, .interleaved = 1, .check = check
};
