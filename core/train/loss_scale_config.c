/* loss_scale_config.c: a loss scale and the optimizer inside it as Keras' LossScaleOptimizer, out and in. */
#include <string.h>

#include "layers/config.h"
#include "train/loss_scale.h"
#include "train/optimizer.h"

/* Keras' serialization of the two together. The caller deletes the object; NULL when memory is out. */
static flow_json *config_json(const flow_loss_scale *scale, const flow_optimizer *inner)
{
  flow_json *config = flow_json_make(FLOW_JSON_OBJECT, 0, NULL), *wrapped = flow_optimizer_config_json(inner);
  if (!config || !wrapped) {
    flow_json_release(config);
    flow_json_release(wrapped);
    return NULL;
  }
  flow_json_put_text(config, "name", scale->name);
  flow_json_put(config, "inner_optimizer", wrapped);
  flow_json_put(config, "initial_scale", flow_json_make(FLOW_JSON_REAL, scale->initial_scale, NULL));
  flow_json_put_number(config, "dynamic_growth_steps", scale->growth_steps);
  return flow_config_object("keras.optimizers", "LossScaleOptimizer", config);
}

/* The length of the text, also if it did not fit, as all writers of configs say it, and -1 without memory; NULL of either makes none. */
int flow_loss_scale_config(const flow_loss_scale *scale, const flow_optimizer *inner, char *text, int size)
{
  return scale && inner ? flow_config_write(config_json(scale, inner), text, size) : flow_config_none(text, size);
}

/* Options of all optimizers, which older versions of Keras wrote here, too, and which mean nothing unless they have these values. */
static int is_idle(const flow_json *item)
{
  static const char *const names[] = { "weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum",
                                       "ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps", "dynamic" };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(item->key, names[i]) != 0) continue;
    if (strcmp(item->key, "dynamic") == 0) return flow_json_is_true(item);
    if (strcmp(item->key, "ema_momentum") == 0) return flow_json_is_number(item) && item->number == 0.99;
    return flow_json_is(item, FLOW_JSON_NULL) || flow_json_is_false(item);
  }
  return 0;
}

/* Options that belong to the optimizer inside must be null or false here: Keras writes them in both, and only the inner ones count. */
static flow_status read_numbers(const flow_json *config, double *initial_scale, double *growth_steps)
{
  for (const flow_json *item = config->child; item; item = item->next) {
    double *number = strcmp(item->key, "initial_scale") == 0 ? initial_scale :
                     strcmp(item->key, "dynamic_growth_steps") == 0 ? growth_steps : NULL;
    if (number && !flow_json_is_number(item))
      return flow_fail(FLOW_INVALID_ARGUMENT, "LossScaleOptimizer: its config's %s is not a number", item->key);
    if (number) *number = item->number;
    else if (strcmp(item->key, "name") != 0 && strcmp(item->key, "inner_optimizer") != 0 && !is_idle(item))
      return flow_fail(FLOW_UNSUPPORTED, "LossScaleOptimizer: its config has the option \"%s\", which belongs to the inner optimizer",
                       item->key);
  }
  return FLOW_OK;
}

/* Both are the caller's on success; on failure neither is made. */
flow_status flow_loss_scale_read(const flow_json *object, flow_loss_scale **scale, flow_optimizer **inner)
{
  const flow_json *config = flow_json_member(object, "config");
  const flow_json *wrapped = flow_json_member(config, "inner_optimizer");
  const flow_json *name = flow_json_member(config, "name");
  double initial_scale = FLOW_INITIAL_LOSS_SCALE, growth_steps = FLOW_LOSS_SCALE_GROWTH_STEPS;
  if (!flow_json_is(config, FLOW_JSON_OBJECT) || !flow_json_is(wrapped, FLOW_JSON_OBJECT))
    return flow_fail(FLOW_INVALID_ARGUMENT, "LossScaleOptimizer: expected {\"config\": {\"inner_optimizer\": {...}, ...}}");
  FLOW_TRY(read_numbers(config, &initial_scale, &growth_steps));
  FLOW_TRY(flow_optimizer_read(wrapped, inner));
  flow_status status = flow_loss_scale_new(flow_json_is(name, FLOW_JSON_TEXT) ? name->text : NULL, initial_scale, growth_steps, scale);
  if (status == FLOW_OK) return FLOW_OK;
  flow_optimizer_release(*inner);
  *inner = NULL;
  return status;
}

flow_status flow_loss_scale_from_config(const char *text, flow_loss_scale **scale, flow_optimizer **inner)
{
  if (!text || !scale || !inner)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loss_scale_from_config: %s is NULL", text ? "an output" : "text");
  flow_json *object;
  FLOW_TRY(flow_json_read_object("an optimizer's config, with its class_name,", text, &object));
  flow_status status = flow_loss_scale_read(object, scale, inner);
  flow_json_release(object);
  return status;
}
