/* optimizer_config.c: an optimizer as Keras writes it into a model's compile_config, out and in. */
#include <string.h>

#include "layers/config.h"
#include "train/optimizer.h"

/* What every Keras optimizer has, in the order of keras/src/optimizers/base_optimizer.py: get_config. The options of its own
 * follow as its record lists them. */
static const char *const common[] = { "weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum",
                                      "ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps" };
enum { COMMON_COUNT = sizeof common / sizeof common[0] };

/* Whether an option belongs to all optimizers. */
static int is_common(const char *name)
{
  for (int i = 0; i < COMMON_COUNT; i++)
    if (strcmp(common[i], name) == 0) return 1;
  return 0;
}

/* A list of one, as flow_config_add_arguments takes lists. */
static void add_argument(flow_json *config, const flow_argument *parameter, const flow_arguments *arguments)
{
  flow_argument one[] = { *parameter, FLOW_ARGUMENTS_END };
  flow_config_add_arguments(config, one, arguments);
}

/* The rate as it is now, since callbacks change it; the schedule; null where the caller gives the rates. */
static flow_json *learning_rate_json(const flow_optimizer *optimizer)
{
  if (optimizer->learning_rate) return flow_json_make(FLOW_JSON_REAL, flow_variable_number(optimizer->learning_rate), NULL);
  return optimizer->schedule ? flow_schedule_config_json(optimizer->schedule) : flow_json_make(FLOW_JSON_NULL, 0, NULL);
}

/* What memory lacks marks the tree (json.h), so that no part goes missing unseen. */
flow_json *flow_optimizer_config_json(const flow_optimizer *optimizer)
{
  const flow_argument *parameters = optimizer->class->parameters;
  flow_json *config = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  if (!config) return NULL;
  flow_json_put_text(config, "name", optimizer->name);
  flow_json_put(config, "learning_rate", learning_rate_json(optimizer));
  for (int i = 0; i < COMMON_COUNT; i++) {
    int index = flow_argument_find(parameters, common[i]);
    if (index >= 0) add_argument(config, &parameters[index], optimizer->arguments);
  }
  for (; parameters->name; parameters++)
    if (!is_common(parameters->name) && strcmp(parameters->name, "learning_rate") != 0)
      add_argument(config, parameters, optimizer->arguments);
  return flow_config_object("keras.optimizers", optimizer->class->name, config);
}

/* ---- in ------------------------------------------------------------------------------------------------------------------- */

/* {"class_name": ..., "config": {...}}: the class and, as arguments, the config without the member `apart`, which comes back by
 * itself (NULL if it has none). */
static flow_status read_object(const flow_json *object, const char *apart, const char **class_name, flow_arguments **arguments,
                               const flow_json **separate)
{
  const flow_json *class = flow_json_member(object, "class_name"), *config = flow_json_member(object, "config");
  if (!flow_json_is(class, FLOW_JSON_TEXT) || !flow_json_is(config, FLOW_JSON_OBJECT))
    return flow_fail(FLOW_INVALID_ARGUMENT, "expected {\"class_name\": ..., \"config\": {...}}, as Keras serializes objects");
  FLOW_TRY(flow_arguments_new(arguments));
  *class_name = class->text;
  *separate = NULL;
  for (const flow_json *item = config->child; item; item = item->next) {
    flow_status status = FLOW_OK;
    if (apart && strcmp(item->key, apart) == 0) *separate = item;
    else status = flow_config_set(*arguments, item->key, item);
    if (status == FLOW_OK) continue;
    flow_arguments_release(*arguments);
    return status;
  }
  return FLOW_OK;
}

/* A schedule's name is one of its arguments, and not apart. */
static flow_status read_schedule(const flow_json *object, flow_schedule **out)
{
  const char *class_name;
  const flow_json *none;
  flow_arguments *arguments;
  FLOW_TRY(read_object(object, NULL, &class_name, &arguments, &none));
  flow_status status = flow_schedule_new(class_name, arguments, out);
  flow_arguments_release(arguments);
  return status;
}

/* A schedule is an object in the place of the learning rate: it is read by itself, and the rate is taken out of a copy of the object. */
flow_status flow_optimizer_read(const flow_json *object, flow_optimizer **out)
{
  const char *class_name;
  const flow_json *name, *rate = flow_json_member(flow_json_member(object, "config"), "learning_rate");
  flow_arguments *arguments;
  flow_schedule *schedule = NULL;
  if (flow_json_is(rate, FLOW_JSON_OBJECT)) FLOW_TRY(read_schedule(rate, &schedule));
  flow_json *copy = flow_json_copy(object);
  flow_status status = copy ? FLOW_OK : flow_fail(FLOW_OUT_OF_MEMORY, "no memory for an optimizer's config");
  if (schedule && copy) flow_json_remove(flow_json_member(copy, "config"), "learning_rate");
  if (status == FLOW_OK) status = read_object(copy, "name", &class_name, &arguments, &name);
  if (status == FLOW_OK) {
    status = flow_optimizer_new(class_name, flow_json_is(name, FLOW_JSON_TEXT) ? name->text : NULL, arguments, out);
    flow_arguments_release(arguments);
  }
  if (status == FLOW_OK && schedule) status = flow_optimizer_set_schedule(*out, schedule);
  flow_schedule_release(schedule);
  flow_json_release(copy);
  return status;
}

flow_status flow_optimizer_from_config(const char *text, flow_optimizer **out)
{
  if (!text || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_optimizer_from_config: %s is NULL", text ? "out" : "text");
  flow_json *object;
  FLOW_TRY(flow_json_read_object("an optimizer's config, with its class_name,", text, &object));
  flow_status status = flow_optimizer_read(object, out);
  flow_json_release(object);
  return status;
}
