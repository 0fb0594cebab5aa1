/* adamax.c: Keras 3's Adamax (keras/src/optimizers/adamax.py).
 * Its formula is in kernels/optimizer_formulas.inc. */
#include "train/optimizer.h"
#include "train/optimizers/parameters.h"

static const flow_argument adamax_parameters[] = { RATE("0.001"), MOMENTS, DECAY("null"), COMMON_PARAMETERS };

const flow_optimizer_class flow_optimizer_adamax = {
  .name = "Adamax", .default_name = "adamax", .parameters = adamax_parameters, .op = FLOW_OP_adamax, .interleaved = 2
};
