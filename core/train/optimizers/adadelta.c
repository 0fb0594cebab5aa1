/* adadelta.c: Keras 3's Adadelta (keras/src/optimizers/adadelta.py).
 * Its formula is in kernels/optimizer_formulas.inc. */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument adadelta_parameters[] = {
  RATE("0.001"), { "rho", FLOW_NUMBER, "0.95", NULL }, { "epsilon", FLOW_NUMBER, "1e-7", NULL }, DECAY("null"), COMMON_PARAMETERS
};

const flow_optimizer_class flow_optimizer_adadelta = {
  .name = "Adadelta", .default_name = "adadelta", .parameters = adadelta_parameters, .op = FLOW_OP_adadelta, .interleaved = 2
};
