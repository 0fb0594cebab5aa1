/* parameters.h: what records of optimizers share. Parameters are in the order of Keras' constructors. */
#ifndef FLOW_TRAIN_OPTIMIZERS_PARAMETERS_H
#define FLOW_TRAIN_OPTIMIZERS_PARAMETERS_H

/* Initial values are texts, as flow_argument has them; "null" is Keras' None. */
#define RATE(initial) { "learning_rate", FLOW_NUMBER, initial, NULL }
#define DECAY(initial) { "weight_decay", FLOW_NUMBER, initial, NULL }

/* Options that every Keras optimizer has; core/train/optimizer.c checks them. */
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

/* Of the Adam family: the shares that the moving averages of gradients and of their squares keep, and what is added to the root. */
#define MOMENTS                              \
  { "beta_1", FLOW_NUMBER, "0.9", NULL },    \
  { "beta_2", FLOW_NUMBER, "0.999", NULL },  \
  { "epsilon", FLOW_NUMBER, "1e-7", NULL }

#endif
