/* rmsprop.c: Keras 3's RMSprop (keras/src/optimizers/rmsprop.py).
 * Its formula is in kernels/optimizer_formulas.inc. */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument rmsprop_parameters[] = {
  RATE("0.001"), { "rho", FLOW_NUMBER, "0.9", NULL }, { "momentum", FLOW_NUMBER, "0", NULL }, { "epsilon", FLOW_NUMBER, "1e-7", NULL },
  { "centered", FLOW_BOOLEAN, "false", NULL }, DECAY("null"), COMMON_PARAMETERS
};

const flow_optimizer_class flow_optimizer_rmsprop = {
  .name = "RMSprop", .default_name = "rm_sprop", .parameters = rmsprop_parameters, .op = FLOW_OP_rmsprop, .interleaved = 1
};
