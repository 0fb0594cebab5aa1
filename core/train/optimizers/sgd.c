/* sgd.c: Keras 3's SGD (keras/src/optimizers/sgd.py).
 * Its formula is in kernels/optimizer_formulas.inc. */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument sgd_parameters[] = {
  RATE("0.01"), { "momentum", FLOW_NUMBER, "0", NULL }, { "nesterov", FLOW_BOOLEAN, "false", NULL }, DECAY("null"), COMMON_PARAMETERS
};

const flow_optimizer_class flow_optimizer_sgd = {
  .name = "SGD", .default_name = "sgd", .parameters = sgd_parameters, .op = FLOW_OP_sgd, .interleaved = 1
};
