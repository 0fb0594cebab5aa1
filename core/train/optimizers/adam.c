/* adam.c: Keras 3's Adam (keras/src/optimizers/adam.py).
 * Its formula is in kernels/optimizer_formulas.inc. */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument adam_parameters[] = {
  RATE("0.001"), MOMENTS, { "amsgrad", FLOW_BOOLEAN, "false", NULL }, DECAY("null"), COMMON_PARAMETERS
};

const flow_optimizer_class flow_optimizer_adam = {
  .name = "Adam", .default_name = "adam", .parameters = adam_parameters, .op = FLOW_OP_adam, .interleaved = 2
};
