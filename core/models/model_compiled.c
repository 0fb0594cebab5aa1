/* model_compiled.c: compile_config becomes a model's loss and optimizer. */
#include <string.h>

#include "layers/config.h"
#include "models/model.h"
#include "train/loss_scale.h"
#include "train/optimizer.h"

/* A text is a loss by its name with default options, an object a class with its config. A list or an object of losses is
 * not known here. On failure model->loss may be set; flow_model_read_compiled takes it back. */
static flow_status read_loss(flow_model *model, const flow_json *loss)
{
  static const char *const apart[] = { "name", "reduction", "dtype", "fn", NULL };
  const char *name = flow_json_is(loss, FLOW_JSON_TEXT) ? loss->text : flow_json_member_text(loss, "class_name");
  const flow_json *config = flow_json_member(loss, "config");
  const char *reduction = flow_json_is(flow_json_member(config, "reduction"), FLOW_JSON_NULL)
                              ? "none" /* Keras' None */
                              : flow_json_member_text(config, "reduction");
  int index = name ? flow_loss_lookup(name) : -1;
  if (index < 0) return flow_fail(FLOW_UNSUPPORTED, "its loss %s is not known", name ? name : "(several)");
  if (reduction && strcmp(reduction, "sum_over_batch_size") != 0 && strcmp(reduction, "mean") != 0)
    return flow_fail(FLOW_UNSUPPORTED, "its loss has the reduction \"%s\"; only sum_over_batch_size is supported", reduction);
  model->loss = flow_loss_record(index);
  if (!flow_json_is(config, FLOW_JSON_OBJECT)) return flow_arguments_new(&model->loss_options);
  return flow_config_read(config, NULL, apart, &model->loss_options);
}

/* Keras wraps the optimizer of a model with this policy when it compiles it, and writes the config of the one that it was given. */
static int scales_by_policy(const flow_model *model)
{
  const flow_json *policy = flow_json_member(flow_json_member(model->description, "config"), "dtype");
  const char *name = flow_json_text(policy);
  if (!name) name = flow_json_member_text(flow_json_member(policy, "config"), "name");
  return name && strcmp(name, "mixed_float16") == 0;
}

/* Nothing is read, and the model stays without optimizer, where it was not compiled with a known form, or has several outputs (each
 * would have a loss). */
static flow_status read_compiled(flow_model *model)
{
  const flow_json *compiled = flow_json_member(model->description, "compile_config"), *optimizer = flow_json_member(compiled, "optimizer");
  if (!flow_json_is(optimizer, FLOW_JSON_OBJECT) || !flow_json_member(compiled, "loss") || model->output_count != 1) return FLOW_OK;
  FLOW_TRY(read_loss(model, flow_json_member(compiled, "loss")));
  const char *class_name = flow_json_member_text(optimizer, "class_name");
  if (class_name && strcmp(class_name, "LossScaleOptimizer") == 0)
    return flow_loss_scale_read(optimizer, &model->loss_scale, &model->optimizer);
  FLOW_TRY(flow_optimizer_read(optimizer, &model->optimizer));
  if (!scales_by_policy(model)) return FLOW_OK;
  return flow_loss_scale_new(NULL, FLOW_INITIAL_LOSS_SCALE, FLOW_LOSS_SCALE_GROWTH_STEPS, &model->loss_scale);
}

/* What is not known keeps the model usable for predictions: the reason is kept as `not_compiled` and is told when somebody trains. Only
 * lack of memory fails. */
flow_status flow_model_read_compiled(flow_model *model)
{
  flow_status status = read_compiled(model);
  if (status == FLOW_OK || status == FLOW_OUT_OF_MEMORY) return status;
  flow_optimizer_release(model->optimizer);
  flow_loss_scale_release(model->loss_scale);
  flow_arguments_release(model->loss_options);
  model->optimizer = NULL;
  model->loss_scale = NULL;
  model->loss_options = NULL;
  model->loss = NULL;
  model->not_compiled = flow_duplicate_text(flow_last_error());
  return model->not_compiled ? FLOW_OK : FLOW_OUT_OF_MEMORY;
}
