/* adagrad.c: Keras 3's Adagrad (keras/src/optimizers/adagrad.py).
 * Its formula is in kernels/optimizer_formulas.inc. */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument adagrad_parameters[] = {
  RATE("0.001"), { "initial_accumulator_value", FLOW_NUMBER, "0.1", NULL }, { "epsilon", FLOW_NUMBER, "1e-7", NULL }, DECAY("null"),
  COMMON_PARAMETERS
};

const flow_optimizer_class flow_optimizer_adagrad = {
  .name = "Adagrad", .default_name = "adagrad", .parameters = adagrad_parameters, .op = FLOW_OP_adagrad, .interleaved = 1,
  .initial_slot = "initial_accumulator_value"
};
