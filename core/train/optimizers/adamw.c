/* adamw.c: Keras 3's AdamW (keras/src/optimizers/adamw.py).
 * Its formula is in kernels/optimizer_formulas.inc. */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument adamw_parameters[] = {
  RATE("0.001"), DECAY("0.004"), MOMENTS, { "amsgrad", FLOW_BOOLEAN, "false", NULL }, COMMON_PARAMETERS
};

const flow_optimizer_class flow_optimizer_adamw = {
  .name = "AdamW", .default_name = "adam_w", .parameters = adamw_parameters, .op = FLOW_OP_adam, .interleaved = 2
};
