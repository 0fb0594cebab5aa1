/* optimizer_records.c: SGD and Adam. Formulas: Keras 3, restated at the kernels (kernels/cpu/optimizers.c). */
#include "train/optimizer.h"

/* Options that every Keras optimizer has; all but the defaults are refused by name in optimizer.c. */
#define COMMON_PARAMETERS                                        \
  { "weight_decay", FLOW_NUMBER, "null", NULL },                 \
  { "clipnorm", FLOW_NUMBER, "null", NULL },                     \
  { "clipvalue", FLOW_NUMBER, "null", NULL },                    \
  { "global_clipnorm", FLOW_NUMBER, "null", NULL },              \
  { "use_ema", FLOW_BOOLEAN, "false", NULL },                    \
  { "ema_momentum", FLOW_NUMBER, "0.99", NULL },                 \
  { "ema_overwrite_frequency", FLOW_INTEGER, "null", NULL },     \
  { "loss_scale_factor", FLOW_NUMBER, "null", NULL },            \
  { "gradient_accumulation_steps", FLOW_INTEGER, "null", NULL }, \
  { NULL, 0, NULL, NULL }

static const flow_argument sgd_parameters[] = {
  { "learning_rate", FLOW_NUMBER, "0.01", NULL },
  { "momentum", FLOW_NUMBER, "0", NULL },
  { "nesterov", FLOW_BOOLEAN, "false", NULL },
  COMMON_PARAMETERS
};

static int sgd_slots(const flow_arguments *arguments, const char *names[FLOW_MAX_SLOT_KINDS])
{
  names[0] = "momentum";
  return flow_argument_number(arguments, "momentum") != 0;
}

static int sgd_operands(const flow_arguments *arguments, flow_attributes *attributes, flow_tensor *gradient, flow_tensor *parameters,
                        flow_tensor *const *slots, flow_tensor *learning_rate, flow_tensor *iterations, flow_tensor **inputs)
{
  (void)iterations;
  attributes->optimizer.momentum = flow_argument_number(arguments, "momentum");
  attributes->optimizer.nesterov = flow_argument_boolean(arguments, "nesterov");
  inputs[0] = gradient;
  inputs[1] = parameters;
  inputs[2] = learning_rate;
  if (attributes->optimizer.momentum == 0) return 3;
  inputs[3] = slots[0];
  return 4;
}

static const flow_argument adam_parameters[] = {
  { "learning_rate", FLOW_NUMBER, "0.001", NULL },
  { "beta_1", FLOW_NUMBER, "0.9", NULL },
  { "beta_2", FLOW_NUMBER, "0.999", NULL },
  { "epsilon", FLOW_NUMBER, "1e-7", NULL },
  { "amsgrad", FLOW_BOOLEAN, "false", NULL },
  COMMON_PARAMETERS
};

static int adam_slots(const flow_arguments *arguments, const char *names[FLOW_MAX_SLOT_KINDS])
{
  names[0] = "momentum";
  names[1] = "velocity";
  names[2] = "velocity_hat";
  return flow_argument_boolean(arguments, "amsgrad") ? 3 : 2;
}

static int adam_operands(const flow_arguments *arguments, flow_attributes *attributes, flow_tensor *gradient, flow_tensor *parameters,
                         flow_tensor *const *slots, flow_tensor *learning_rate, flow_tensor *iterations, flow_tensor **inputs)
{
  attributes->optimizer.beta_1 = flow_argument_number(arguments, "beta_1");
  attributes->optimizer.beta_2 = flow_argument_number(arguments, "beta_2");
  attributes->optimizer.epsilon = flow_argument_number(arguments, "epsilon");
  attributes->optimizer.amsgrad = flow_argument_boolean(arguments, "amsgrad");
  inputs[0] = gradient;
  inputs[1] = parameters;
  inputs[2] = slots[0];
  inputs[3] = slots[1];
  inputs[4] = learning_rate;
  inputs[5] = iterations;
  if (!attributes->optimizer.amsgrad) return 6;
  inputs[6] = slots[2];
  return 7;
}

const flow_optimizer_class flow_optimizer_classes[] = {
  { "SGD", sgd_parameters, FLOW_OP_sgd, sgd_slots, sgd_operands },
  { "Adam", adam_parameters, FLOW_OP_adam, adam_slots, adam_operands },
  { NULL, NULL, 0, NULL, NULL }
};
