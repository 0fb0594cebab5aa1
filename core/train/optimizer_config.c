/* optimizer_config.c: an optimizer as Keras writes it into a model's compile_config. */
#include <string.h>

#include "layers/config.h"
#include "train/optimizer.h"

/* What every Keras optimizer has, in the order of keras/src/optimizers/base_optimizer.py: get_config. The options of its own
 * follow as its record lists them. */
static const char *const common[] = { "weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum",
                                      "ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps" };
enum { COMMON_COUNT = sizeof common / sizeof common[0] };

static int is_common(const char *name)
{
  for (int i = 0; i < COMMON_COUNT; i++)
    if (strcmp(common[i], name) == 0) return 1;
  return 0;
}

static void add_argument(cJSON *config, const flow_argument *parameter, const flow_arguments *arguments)
{
  flow_argument one[] = { *parameter, FLOW_ARGUMENTS_END };
  flow_config_add_arguments(config, one, arguments);
}

/* The rate as it is now, since callbacks change it. */
static cJSON *learning_rate_json(const flow_optimizer *optimizer)
{
  return cJSON_CreateNumber(flow_variable_number(optimizer->learning_rate));
}

cJSON *flow_optimizer_config_json(const flow_optimizer *optimizer)
{
  const flow_argument *parameters = optimizer->class->parameters;
  cJSON *config = cJSON_CreateObject(), *rate = config ? learning_rate_json(optimizer) : NULL;
  if (!config) return NULL;
  cJSON_AddStringToObject(config, "name", optimizer->name);
  if (rate && !cJSON_AddItemToObject(config, "learning_rate", rate)) cJSON_Delete(rate);
  for (int i = 0; i < COMMON_COUNT; i++) {
    int index = flow_argument_find(parameters, common[i]);
    if (index >= 0) add_argument(config, &parameters[index], optimizer->arguments);
  }
  for (; parameters->name; parameters++)
    if (!is_common(parameters->name) && strcmp(parameters->name, "learning_rate") != 0)
      add_argument(config, parameters, optimizer->arguments);
  return flow_config_object("keras.optimizers", optimizer->class->name, config);
}
