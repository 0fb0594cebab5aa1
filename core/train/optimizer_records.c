/* optimizer_records.c: the optimizers. Formulas: Keras 3, restated at the kernels (kernels/cpu/optimizer/optimizer_update.h). Arguments
 * stand in the order of Keras' constructors. */
#include "train/optimizer.h"

#define RATE(initial) { "learning_rate", FLOW_NUMBER, initial, NULL }
#define DECAY(initial) { "weight_decay", FLOW_NUMBER, initial, NULL }

/* Options that every Keras optimizer has; those that are not supported are refused by name in optimizer.c. */
#define COMMON_PARAMETERS                                        \
  { "clipnorm", FLOW_NUMBER, "null", NULL },                     \
  { "clipvalue", FLOW_NUMBER, "null", NULL },                    \
  { "global_clipnorm", FLOW_NUMBER, "null", NULL },              \
  { "use_ema", FLOW_BOOLEAN, "false", NULL },                    \
  { "ema_momentum", FLOW_NUMBER, "0.99", NULL },                 \
  { "ema_overwrite_frequency", FLOW_INTEGER, "null", NULL },     \
  { "loss_scale_factor", FLOW_NUMBER, "null", NULL },            \
  { "gradient_accumulation_steps", FLOW_INTEGER, "null", NULL }, \
  FLOW_ARGUMENTS_END

#define MOMENTS                              \
  { "beta_1", FLOW_NUMBER, "0.9", NULL },    \
  { "beta_2", FLOW_NUMBER, "0.999", NULL },  \
  { "epsilon", FLOW_NUMBER, "1e-7", NULL }

static const flow_argument sgd_parameters[] = {
  RATE("0.01"), { "momentum", FLOW_NUMBER, "0", NULL }, { "nesterov", FLOW_BOOLEAN, "false", NULL }, DECAY("null"), COMMON_PARAMETERS
};

static const flow_argument adam_parameters[] = {
  RATE("0.001"), MOMENTS, { "amsgrad", FLOW_BOOLEAN, "false", NULL }, DECAY("null"), COMMON_PARAMETERS
};

static const flow_argument adamw_parameters[] = {
  RATE("0.001"), DECAY("0.004"), MOMENTS, { "amsgrad", FLOW_BOOLEAN, "false", NULL }, COMMON_PARAMETERS
};

static const flow_argument rmsprop_parameters[] = {
  RATE("0.001"), { "rho", FLOW_NUMBER, "0.9", NULL }, { "momentum", FLOW_NUMBER, "0", NULL }, { "epsilon", FLOW_NUMBER, "1e-7", NULL },
  { "centered", FLOW_BOOLEAN, "false", NULL }, DECAY("null"), COMMON_PARAMETERS
};

static const flow_argument adagrad_parameters[] = {
  RATE("0.001"), { "initial_accumulator_value", FLOW_NUMBER, "0.1", NULL }, { "epsilon", FLOW_NUMBER, "1e-7", NULL }, DECAY("null"),
  COMMON_PARAMETERS
};

static const flow_argument adadelta_parameters[] = {
  RATE("0.001"), { "rho", FLOW_NUMBER, "0.95", NULL }, { "epsilon", FLOW_NUMBER, "1e-7", NULL }, DECAY("null"), COMMON_PARAMETERS
};

static const flow_argument adamax_parameters[] = { RATE("0.001"), MOMENTS, DECAY("null"), COMMON_PARAMETERS };

const flow_optimizer_class flow_optimizer_classes[] = {
  { "SGD", "SGD", sgd_parameters, FLOW_OP_sgd, 1, NULL },
  { "Adam", "adam", adam_parameters, FLOW_OP_adam, 2, NULL },
  { "AdamW", "adamw", adamw_parameters, FLOW_OP_adam, 2, NULL },
  { "RMSprop", "rmsprop", rmsprop_parameters, FLOW_OP_rmsprop, 1, NULL },
  { "Adagrad", "adagrad", adagrad_parameters, FLOW_OP_adagrad, 1, "initial_accumulator_value" },
  { "Adadelta", "adadelta", adadelta_parameters, FLOW_OP_adadelta, 2, NULL },
  { "Adamax", "adamax", adamax_parameters, FLOW_OP_adamax, 2, NULL },
  { NULL, NULL, NULL, 0, 0, NULL }
};
