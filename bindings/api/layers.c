/* layers.c: the layer functions of flow.h: handles and counts are checked here, the work is done in core/layers. */
#include <limits.h>
#include <string.h>

#include "layers/config.h"
#include "layers/masks.h"
#include "layers/quantization.h"
#include "layers/regularizers.h"

/* ---- records ----------------------------------------------------------------------------------------------------------- */

/* Numbers and handles come from callers of C and of Lua's FFI: each is checked before it is used. What only asks answers NULL, 0 or -1;
 * what can fail says which argument was wrong. */
static const flow_layer_class *class_at(int index)
{
  return index >= 0 && index < flow_layer_class_total() ? flow_layer_class_record(index) : NULL;
}

static const flow_argument *argument_at(int index, int argument)
{
  const flow_layer_class *class = class_at(index);
  return class && argument >= 0 && argument < flow_argument_count(class->parameters) ? &class->parameters[argument] : NULL;
}

int flow_layer_class_count(void) { return flow_layer_class_total(); }

const char *flow_layer_class_name(int index)
{
  const flow_layer_class *class = class_at(index);
  return class ? class->name : NULL;
}

int flow_layer_class_find(const char *name) { return name ? flow_layer_class_lookup(name) : -1; }

int flow_layer_class_positional(int index)
{
  const flow_layer_class *class = class_at(index);
  return class ? class->positional : 0;
}

int flow_layer_class_trains_alone(int index)
{
  const flow_layer_class *class = class_at(index);
  return class ? class->trains_alone : 0;
}

int flow_layer_class_argument_count(int index)
{
  const flow_layer_class *class = class_at(index);
  return class ? flow_argument_count(class->parameters) : 0;
}

const char *flow_layer_class_argument(int index, int argument)
{
  const flow_argument *parameter = argument_at(index, argument);
  return parameter ? parameter->name : NULL;
}

const char *flow_layer_class_argument_type(int index, int argument)
{
  const flow_argument *parameter = argument_at(index, argument);
  return parameter ? flow_argument_type_name(parameter->type) : NULL;
}

const char *flow_layer_class_argument_default(int index, int argument)
{
  const flow_argument *parameter = argument_at(index, argument);
  return parameter ? parameter->initial : NULL;
}

const char *flow_layer_class_doc(int index)
{
  const flow_layer_class *class = class_at(index);
  return class ? class->doc : NULL;
}

const char *flow_layer_class_input(int index, int input)
{
  const flow_layer_class *class = class_at(index);
  return class && input >= 0 && input < flow_layer_named_inputs(class) ? class->input_names[input] : NULL;
}

const char *flow_layer_class_option(int index, int option)
{
  const flow_layer_class *class = class_at(index);
  return class && class->options && option >= 0 && option < flow_argument_count(class->options) ? class->options[option].name : NULL;
}

int flow_layer_class_outputs(int index)
{
  const flow_layer_class *class = class_at(index);
  return class ? flow_layer_outputs(class) : 0;
}

/* The choices of one kind by number: initializers, regularizers, constraints. */
static int choice_at(int kind, int index, flow_argument_choice *choice)
{
  static const flow_argument_type types[] = { FLOW_INITIALIZER, FLOW_REGULARIZER, FLOW_CONSTRAINT };
  if (index < 0 || kind < 0 || kind >= (int)(sizeof types / sizeof *types)) return 0;
  return flow_argument_choice_at(types[kind], index, choice);
}

const char *flow_choice_name(int kind, int index)
{
  flow_argument_choice choice;
  return choice_at(kind, index, &choice) ? choice.class_name : NULL;
}

const char *flow_choice_parameter(int kind, int index, int parameter)
{
  flow_argument_choice choice;
  if (!choice_at(kind, index, &choice) || parameter < 0 || parameter >= flow_argument_count(choice.parameters)) return NULL;
  return choice.parameters[parameter].name;
}

int flow_choice_find(int kind, const char *name)
{
  flow_argument_choice choice;
  for (int i = 0; name && choice_at(kind, i, &choice); i++) {
    if (flow_argument_choice_is(&choice, name)) return i;
  }
  return -1;
}

int flow_choice_config(int kind, const char *name, const flow_arguments *options, char *text, int size)
{
  flow_argument_choice choice;
  flow_arguments *complete;
  if (!choice_at(kind, flow_choice_find(kind, name), &choice)) {
    flow_fail(FLOW_INVALID_ARGUMENT, "flow_choice_config: \"%s\" is not known", name ? name : "NULL");
    return -1;
  }
  if (flow_arguments_complete(choice.class_name, choice.parameters, options, &complete) != FLOW_OK) return -1;
  int length = flow_config_write(flow_config_choice(&choice, complete), text, size);
  flow_arguments_release(complete);
  return length;
}

/* ---- layers ------------------------------------------------------------------------------------------------------------ */

/* A layer that was released keeps its memory's first bytes until the allocator gives it away: the mark that is gone catches most uses
 * after release, not all. */
static int alive(const flow_layer *layer) { return layer && layer->magic == FLOW_LAYER_MAGIC; }

static flow_status check_layer(const char *function, const flow_context *context, const flow_layer *layer)
{
  if (!context) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: context is NULL", function);
  if (!layer) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: layer is NULL", function);
  if (!alive(layer)) return flow_fail(FLOW_INVALID_STATE, "%s: the layer was released", function);
  return FLOW_OK;
}

/* Names are parts of paths in files of weights. */
static flow_status check_name(const char *class_name, const char *name)
{
  if (!name || !*name) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a layer needs a name", class_name);
  if (strchr(name, '/')) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the name \"%s\" contains a \"/\"", class_name, name);
  return FLOW_OK;
}

flow_status flow_layer_new(const char *class_name, const char *name, const flow_arguments *arguments, flow_layer **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_new: out is NULL");
  if (!class_name) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_new: class_name is NULL");
  FLOW_TRY(check_name(class_name, name));
  return flow_layer_create(class_name, name, arguments, out);
}

void flow_layer_release(flow_layer *layer)
{
  if (alive(layer)) flow_layer_destroy(layer);
}

const char *flow_layer_policy(const flow_layer *layer) { return alive(layer) ? flow_argument_text(layer->arguments, "dtype") : NULL; }

const char *flow_layer_name(const flow_layer *layer) { return alive(layer) ? layer->name : NULL; }

/* Shapes become signatures of float32, from which the class makes its variables; -1 as a rank stands for an input with a name that is
 * not given. */
flow_status flow_layer_build(flow_context *context, flow_layer *layer, int input_count, const int *ranks, const int64_t *const *shapes)
{
  FLOW_TRY(check_layer("flow_layer_build", context, layer));
  if (input_count < 1 || input_count > USHRT_MAX || !ranks || !shapes)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_build: %d input shapes, expected 1 to %d", input_count, USHRT_MAX);
  flow_signature *inputs;
  FLOW_TRY(flow_alloc_zero(sizeof *inputs * (size_t)input_count, (void **)&inputs));
  flow_status status = FLOW_OK;
  for (int i = 0; i < input_count && status == FLOW_OK; i++) {
    if (ranks[i] < (layer->class->input_names ? -1 : 0) || ranks[i] > FLOW_MAX_RANK || (ranks[i] > 0 && !shapes[i])) {
      status = flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_build: input %d has %d dimensions, expected 0 to %d", i + 1, ranks[i],
                         FLOW_MAX_RANK);
      break;
    }
    inputs[i].dtype = FLOW_FLOAT32;
    inputs[i].rank = ranks[i];
    for (int j = 0; j < ranks[i]; j++) inputs[i].dims[j] = shapes[i][j];
  }
  if (status == FLOW_OK) status = flow_layer_make(context, layer, input_count, inputs);
  flow_free(inputs);
  return status;
}

int flow_layer_built(const flow_layer *layer) { return alive(layer) && layer->built; }

flow_status flow_layer_call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training,
                            flow_tensor **out)
{
  flow_tensor *outputs[FLOW_LAYER_MOST_OUTPUTS];
  FLOW_TRY(check_layer("flow_layer_call", context, layer));
  if (!inputs || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_call: %s is NULL", inputs ? "out" : "inputs");
  for (int i = 0; i < count; i++) FLOW_TRY(flow_check_tensor("flow_layer_call: input", inputs[i]));
  FLOW_TRY(flow_layer_run(context, layer, inputs, count, NULL, training, outputs));
  *out = outputs[0];
  return FLOW_OK;
}

flow_status flow_layer_call_named(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count,
                                  const flow_arguments *options, int training, flow_tensor **outputs)
{
  FLOW_TRY(check_layer("flow_layer_call_named", context, layer));
  if (!inputs || !outputs) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_call_named: %s is NULL", inputs ? "outputs" : "inputs");
  if (!layer->class->input_names)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_call_named: the inputs of %s have no names: call flow_layer_call",
                     layer->class->name);
  for (int i = 0; i < count; i++)
    if (inputs[i]) FLOW_TRY(flow_check_tensor("flow_layer_call_named: input", inputs[i]));
  return flow_layer_run(context, layer, inputs, count, options, training, outputs);
}

flow_status flow_layer_compute_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks,
                                    int count, flow_tensor **out)
{
  FLOW_TRY(check_layer("flow_layer_compute_mask", context, layer));
  if (!inputs || !masks || !out || count < 1)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_compute_mask: inputs, masks or out is NULL, or there are no inputs");
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_tensor("flow_layer_compute_mask: input", inputs[i]));
    if (masks[i]) FLOW_TRY(flow_check_tensor("flow_layer_compute_mask: mask", masks[i]));
  }
  return flow_masks_compute(context, layer, inputs, masks, count, out);
}

int flow_layer_class_masks(int index)
{
  const flow_layer_class *class = class_at(index);
  return class ? class->supports_masking : 0;
}


int flow_layer_variable_count(const flow_layer *layer) { return alive(layer) ? layer->variable_count : 0; }

flow_variable *flow_layer_variable(const flow_layer *layer, int index)
{
  return alive(layer) && index >= 0 && index < layer->variable_count ? layer->variables[index] : NULL;
}

int flow_layer_trainable(const flow_layer *layer) { return alive(layer) && layer->trainable; }

void flow_layer_set_trainable(flow_layer *layer, int trainable)
{
  if (!alive(layer)) return;
  layer->trainable = trainable != 0;
  for (int i = 0; i < layer->trainable_count; i++)
    flow_variable_set_trainable(layer->variables[i], layer->trainable && !flow_quantization_freezes(layer, layer->variables[i]));
}

flow_status flow_layer_set_arguments(flow_layer *layer, const flow_arguments *arguments)
{
  if (!alive(layer)) return flow_fail(FLOW_INVALID_STATE, "flow_layer_set_arguments: the layer is NULL or was released");
  if (!arguments) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_set_arguments: arguments is NULL");
  return flow_layer_change(layer, arguments);
}

flow_status flow_layer_set_name(flow_layer *layer, const char *name)
{
  if (!alive(layer)) return flow_fail(FLOW_INVALID_STATE, "flow_layer_set_name: the layer is NULL or was released");
  FLOW_TRY(check_name(layer->class->name, name));
  return flow_layer_rename(layer, name);
}

flow_status flow_layer_penalty(flow_context *context, const flow_layer *layer, int index, flow_tensor **out)
{
  FLOW_TRY(check_layer("flow_layer_penalty", context, layer));
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_penalty: out is NULL");
  if (index < 0 || index >= layer->variable_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_penalty: \"%s\" has %d variables, asked for variable %d", layer->name,
                     layer->variable_count, index);
  return flow_layer_regularize(context, layer, index, out);
}

int flow_layer_regularizes_activity(const flow_layer *layer)
{
  return alive(layer) && !flow_argument_is_null(layer->arguments, "activity_regularizer");
}

int flow_layer_class_quantizes(int index)
{
  const flow_layer_class *class = class_at(index);
  return class && class->quantizes;
}

flow_status flow_layer_quantize(flow_layer *layer, int quantizing, double low, double high)
{
  if (!alive(layer)) return flow_fail(FLOW_INVALID_STATE, "flow_layer_quantize: the layer is NULL or was released");
  return flow_quantization_set(layer, quantizing, low, high);
}

int flow_layer_quantization(const flow_layer *layer, double *range)
{
  if (!alive(layer)) return FLOW_NOT_QUANTIZED;
  if (range) range[0] = layer->low, range[1] = layer->high;
  return layer->quantizing;
}

flow_status flow_layer_from_config(const char *class_name, const char *config, flow_layer **out)
{
  if (!class_name || !config || !out)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_layer_from_config: %s is NULL", !class_name ? "class_name" : config ? "out" : "config");
  flow_json *object;
  FLOW_TRY(flow_json_read_object("a layer's config", config, &object));
  flow_status status = flow_layer_read(class_name, object, out);
  flow_json_release(object);
  return status;
}

int flow_layer_config(const flow_layer *layer, char *text, int size)
{
  return alive(layer) ? flow_config_write(flow_layer_config_json(layer), text, size) : flow_config_none(text, size);
}
