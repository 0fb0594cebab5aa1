/* loss_scale_config.c: a loss scale and the optimizer inside it as Keras' LossScaleOptimizer, out and in. */
#include <string.h>

#include "layers/config.h"
#include "train/loss_scale.h"
#include "train/optimizer.h"

cJSON *flow_loss_scale_config_json(const flow_loss_scale *scale, const flow_optimizer *inner)
{
  cJSON *config = cJSON_CreateObject(), *wrapped = flow_optimizer_config_json(inner);
  if (!config || !wrapped) {
    cJSON_Delete(config);
    cJSON_Delete(wrapped);
    return NULL;
  }
  cJSON_AddStringToObject(config, "name", scale->name);
  if (!cJSON_AddItemToObject(config, "inner_optimizer", wrapped)) cJSON_Delete(wrapped);
  cJSON *initial = flow_config_number(scale->initial_scale);
  if (initial && !cJSON_AddItemToObject(config, "initial_scale", initial)) cJSON_Delete(initial);
  cJSON_AddNumberToObject(config, "dynamic_growth_steps", scale->growth_steps);
  return flow_config_object("keras.optimizers", "LossScaleOptimizer", config);
}

int flow_loss_scale_config(const flow_loss_scale *scale, const flow_optimizer *inner, char *text, int size)
{
  return flow_config_write(scale && inner ? flow_loss_scale_config_json(scale, inner) : NULL, text, size);
}

/* Options of all optimizers, which older versions of Keras wrote here, too, and which mean nothing unless they have these values. */
static int is_idle(const cJSON *item)
{
  static const char *const names[] = { "weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum",
                                       "ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps", "dynamic" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(item->string, names[i]) != 0) continue;
    if (strcmp(item->string, "dynamic") == 0) return cJSON_IsTrue(item);
    if (strcmp(item->string, "ema_momentum") == 0) return cJSON_IsNumber(item) && item->valuedouble == 0.99;
    return cJSON_IsNull(item) || cJSON_IsFalse(item);
  }
  return 0;
}

static flow_status read_numbers(const cJSON *config, double *initial_scale, double *growth_steps)
{
  for (const cJSON *item = config->child; item; item = item->next) {
    double *number = strcmp(item->string, "initial_scale") == 0 ? initial_scale :
                     strcmp(item->string, "dynamic_growth_steps") == 0 ? growth_steps : NULL;
    if (number && !cJSON_IsNumber(item))
      return flow_fail(FLOW_INVALID_ARGUMENT, "LossScaleOptimizer: its config's %s is not a number", item->string);
    if (number) *number = item->valuedouble;
    else if (strcmp(item->string, "name") != 0 && strcmp(item->string, "inner_optimizer") != 0 && !is_idle(item))
      return flow_fail(FLOW_UNSUPPORTED, "LossScaleOptimizer: its config has the option \"%s\", which belongs to the inner optimizer",
                       item->string);
  }
  return FLOW_OK;
}

flow_status flow_loss_scale_read(const cJSON *object, flow_loss_scale **scale, flow_optimizer **inner)
{
  const cJSON *config = cJSON_GetObjectItemCaseSensitive(object, "config");
  const cJSON *wrapped = cJSON_GetObjectItemCaseSensitive(config, "inner_optimizer");
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(config, "name");
  double initial_scale = FLOW_INITIAL_LOSS_SCALE, growth_steps = FLOW_LOSS_SCALE_GROWTH_STEPS;
  if (!cJSON_IsObject(config) || !cJSON_IsObject(wrapped))
    return flow_fail(FLOW_INVALID_ARGUMENT, "LossScaleOptimizer: expected {\"config\": {\"inner_optimizer\": {...}, ...}}");
  FLOW_TRY(read_numbers(config, &initial_scale, &growth_steps));
  FLOW_TRY(flow_optimizer_read(wrapped, inner));
  flow_status status = flow_loss_scale_new(cJSON_IsString(name) ? name->valuestring : NULL, initial_scale, growth_steps, scale);
  if (status == FLOW_OK) return FLOW_OK;
  flow_optimizer_release(*inner);
  *inner = NULL;
  return status;
}

flow_status flow_loss_scale_from_config(const char *text, flow_loss_scale **scale, flow_optimizer **inner)
{
  if (!text || !scale || !inner)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loss_scale_from_config: %s is NULL", text ? "an output" : "text");
  cJSON *object = cJSON_Parse(text);
  if (!object) return flow_fail(FLOW_INVALID_ARGUMENT, "an optimizer's config is JSON, found \"%.40s\"", text);
  flow_status status = flow_loss_scale_read(object, scale, inner);
  cJSON_Delete(object);
  return status;
}
