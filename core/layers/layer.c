/* layer.c: what all layers share: a layer's life after it was made (layer_classes.c): build, call, destroy, and the checks that records
 * use. layer_variables.c makes the variables of a build.
 *
 * The order of a call, in flow_layer_run: the number of inputs is checked; a layer that is not built is built for them; masks that the
 * caller did not give are taken from the tensors; inputs are cast to the policy's dtype; the record's call runs its ops, which trace or
 * compute at once; outputs get their masks; what activity_regularizer makes of them is kept for the loss. A layer has no lock: the
 * caller's thread has it for itself during all of this. A failure anywhere leaves the outputs NULL; the layer may be built by then. */
#include "layers/layer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/float_state.h"
#include "base/philox.h"
#include "graph/context.h"
#include "graph/variable.h"
#include "layers/express.h"
#include "layers/masks.h"
#include "layers/policy.h"
#include "layers/quantization.h"
#include "layers/recurrent.h"
#include "layers/regularizers.h"
#include "tensor/axis.h"

/* ---- failing -------------------------------------------------------------------------------------------------------------- */

/* FLOW_INVALID_ARGUMENT with the layer's class and name in front. The layer is kept as the failure's owner, so that nobody names it twice.
 * */
flow_status flow_layer_fail(const flow_layer *layer, const char *format, ...)
{
  va_list arguments;
  flow_error_fields fields = FLOW_ERROR_UNKNOWN;
  fields.owner = layer;
  va_start(arguments, format);
  flow_status status = flow_fail_list(FLOW_INVALID_ARGUMENT, &fields, format, arguments);
  va_end(arguments);
  return flow_fail_prefix(status, "%s \"%s\": ", layer->class->name, layer->name);
}

/* Puts the layer in front of an op's message; flow_layer_fail has already done so for the layer's own. */
static flow_status name_failure(const flow_layer *layer, flow_status status)
{
  if (flow_error_fields_now().owner == layer) return status;
  return flow_fail_prefix(status, "%s \"%s\": ", layer->class->name, layer->name);
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

/* "layers" and "seeded": keep streams of layers apart from those that programs count from 0, and from those of layers with a seed. */
static const uint64_t drawn_by_layers = 0x6c6179657273, drawn_by_seeded = 0x736565646564;

/* Four cases. In a trace, without a seed: the number of the call among all that draw in the trace (a cell's: one number for all its
 * calls). In a trace, with a seed: the number of the call among this layer's own, so that two layers with one seed draw alike. Eagerly,
 * without a seed: a new seed of the context. Eagerly, with one: the first call draws with the seed itself, later ones with a mix of it
 * and their number. `own` is read for a missing seed, too, where it is 0: flow_argument_integer of null. */
flow_status flow_layer_draw(flow_context *context, flow_layer *layer, flow_layer_draws *draws)
{
  uint64_t own = (uint64_t)flow_argument_integer(layer->arguments, "seed");
  flow_graph *graph = flow_context_trace(context);
  int seeded = !flow_argument_is_null(layer->arguments, "seed"), cell = flow_recurrent_is_cell(layer), number = 0;
  if (graph && !seeded) FLOW_TRY(flow_graph_draw(graph, cell ? layer : NULL, &number));
  else if (graph && !cell) FLOW_TRY(flow_graph_draw_again(graph, layer, &number));
  else if (!graph && !seeded) own = (uint64_t)flow_context_next_seed(context);
  else if (!graph && layer->eager_draws++) own = flow_mix(own, layer->eager_draws);
  uint64_t stream = flow_mix(seeded ? drawn_by_seeded : drawn_by_layers, (uint64_t)number);
  *draws = (flow_layer_draws){ .seed = own, .stream = stream, .own_seed = seeded };
  return FLOW_OK;
}

/* As flow_layer_draw, for formulas: a failure is kept in e. */
flow_layer_draws flow_express_draw(flow_expression *e, flow_layer *layer)
{
  flow_layer_draws draws = { 0 };
  if (e->status == FLOW_OK) e->status = flow_layer_draw(e->context, layer, &draws);
  return draws;
}

/* The positions of the random numbers before a layer is built or called. A failure puts them back, so that a caller that repeats the call,
 * with more memory, gets the numbers that it would have got. Layers do not build or call each other. */
typedef struct draw_mark {
  uint64_t of_context, of_layer;
  int of_trace;
} draw_mark;

static draw_mark mark_draws(const flow_context *context, const flow_layer *layer)
{
  const flow_graph *graph = flow_context_trace(context);
  return (draw_mark){ context->draws, layer->eager_draws, graph ? flow_graph_drawn(graph) : 0 };
}

static void draw_back(flow_context *context, flow_layer *layer, draw_mark mark)
{
  flow_graph *graph = flow_context_trace(context);
  context->draws = mark.of_context;
  layer->eager_draws = mark.of_layer;
  if (graph) flow_graph_draw_back(graph, mark.of_trace);
}

/* Also after a build that failed halfway: NULL stands for what was not made. */
static void release_variables(flow_layer *layer)
{
  for (int i = 0; i < FLOW_LAYER_MAX_VARIABLES; i++) {
    flow_variable_release(layer->variables[i]);
    layer->variables[i] = NULL;
  }
  layer->variable_count = layer->trainable_count = 0;
}

/* NULL is not allowed. Variables, states and tensors that the caller holds references to live on. The magic number of the freed block
 * makes a later use fail where the memory has not been used again. */
void flow_layer_destroy(flow_layer *layer)
{
  release_variables(layer);
  for (int i = 0; i < FLOW_LAYER_MOST_OUTPUTS - 1; i++) flow_variable_release(layer->states[i]);
  flow_tensor_release(layer->activity);
  flow_arguments_release(layer->arguments);
  flow_free(layer->name);
  layer->magic = FLOW_LAYER_DEAD;
  flow_free(layer);
}

/* 0 for a record whose inputs have no names. */
int flow_layer_named_inputs(const flow_layer_class *class)
{
  int count = 0;
  while (class->input_names && class->input_names[count]) count++;
  return count;
}

/* A record that does not say so takes one input. */
static int least_inputs(const flow_layer_class *class)
{
  return class->min_inputs ? class->min_inputs : 1;
}

/* At most FLOW_LAYER_MOST_INPUTS where they have names: arrays of that size hold them, and a test counts them in every record. */
static int most_inputs(const flow_layer_class *class)
{
  if (class->input_names) return flow_layer_named_inputs(class);
  return class->max_inputs ? class->max_inputs : 1;
}

/* Counts of tensors, or of inputs with names up to the last one that is given. */
static flow_status check_input_count(const flow_layer *layer, int count)
{
  int least = least_inputs(layer->class), most = most_inputs(layer->class);
  if (count >= least && count <= most) return FLOW_OK;
  if (least == most) return flow_layer_fail(layer, "takes %d input%s, found %d", least, least == 1 ? "" : "s", count);
  if (count > most) return flow_layer_fail(layer, "takes a list of at most %d inputs, found %d", most, count);
  return flow_layer_fail(layer, "takes a list of at least %d input%s, found %d", least, least == 1 ? "" : "s", count);
}

/* The most outputs that layers of this class give. */
int flow_layer_outputs(const flow_layer_class *class) { return class->most_outputs ? class->most_outputs : 1; }

/* How many this layer gives, which its options may decide, such as return_state. */
int flow_layer_outputs_of(const flow_layer *layer)
{
  return layer->class->outputs ? layer->class->outputs(layer) : flow_layer_outputs(layer->class);
}

/* Names of records are short; a longer one of a caller is cut here, and then found nowhere. */
int flow_layer_find_input(const flow_layer_class *class, const char *name, int entry)
{
  char wanted[64];
  snprintf(wanted, sizeof wanted, entry ? "%s[%d]" : "%s", name, entry);
  for (int i = 0; i < flow_layer_named_inputs(class); i++)
    if (strcmp(class->input_names[i], wanted) == 0) return i;
  return -1;
}

/* Once in a layer's life, with the first inputs: later calls find it built. After a failure the layer is as before, without variables,
 * and may be built for other inputs. build_shape forgets the size of the batch. */
flow_status flow_layer_make(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  FLOW_DEFAULT_FLOATS;
  flow_signature named[FLOW_LAYER_MOST_INPUTS];
  if (layer->built) return FLOW_OK;
  FLOW_TRY(check_input_count(layer, count));
  if (layer->class->input_names) {
    for (int i = 0; i < most_inputs(layer->class); i++) named[i] = i < count ? inputs[i] : (flow_signature){ .rank = -1 };
    for (int i = 0; i < least_inputs(layer->class); i++)
      if (named[i].rank < 0) return flow_layer_fail(layer, "the input %s is missing", layer->class->input_names[i]);
    inputs = named;
  }
  if (layer->class->build) {
    draw_mark before = mark_draws(context, layer);
    flow_status status = layer->class->build(context, layer, count, inputs);
    if (status != FLOW_OK) {
      draw_back(context, layer, before);
      release_variables(layer);
      return name_failure(layer, status);
    }
  }
  layer->build_rank = inputs[0].rank;
  for (int i = 0; i < inputs[0].rank; i++) layer->build_shape[i] = i == 0 ? -1 : inputs[0].dims[i];
  layer->built = 1;
  flow_quantization_freeze(layer);
  return FLOW_OK;
}

/* call_named of the record with complete options: what the caller left out has the record's default. outputs: NULL before, as in
 * call_class. */
static flow_status call_named(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, const flow_arguments *given,
                              int training, flow_tensor **outputs)
{
  flow_arguments *options;
  for (int i = 0; i < least_inputs(layer->class); i++)
    if (!inputs[i]) return flow_layer_fail(layer, "the input %s is missing", layer->class->input_names[i]);
  FLOW_TRY(flow_arguments_complete(layer->class->name, layer->class->options, given, &options));
  flow_named_call call = { .inputs = inputs, .options = options, .training = training };
  flow_status status = layer->class->call_named(context, layer, &call, outputs);
  flow_arguments_release(options);
  return status;
}

/* The dtype of the policy is in force while the class runs: variables are read in it (autocast), inputs are cast, outputs are cast last.
 * What was in force before is put back whatever happens, since layers call layers. */
static flow_status call_class(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count,
                              const flow_arguments *options, int training, flow_tensor **outputs)
{
  const flow_layer_class *class = layer->class;
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_tensor *) * (size_t)count, &block));
  flow_tensor **cast = block;
  int before = flow_context_set_autocast(context, flow_policy_computes_in(layer));
  flow_status status = flow_policy_cast_inputs(context, layer, inputs, count, cast);
  for (int i = 0; i < count && status == FLOW_OK; i++)
    if (cast[i] && cast[i] != inputs[i]) status = flow_tensor_set_mask(cast[i], inputs[i]->mask);
  if (status == FLOW_OK)
    status = class->input_names ? call_named(context, layer, cast, options, training, outputs)
                                : class->call(context, layer, cast, count, training, outputs);
  flow_context_set_autocast(context, before);
  if (status == FLOW_OK) {
    for (int i = 0; i < flow_layer_outputs(class) && status == FLOW_OK; i++)
      if (outputs[i]) status = flow_policy_cast_output(context, layer, &outputs[i]);
    if (status != FLOW_OK) flow_tensors_release(outputs, flow_layer_outputs(class));
  }
  for (int i = 0; i < count; i++) {
    if (cast[i] && class->clears_masks) flow_tensor_set_mask(cast[i], NULL);
    flow_tensor_release(cast[i]);
  }
  flow_free(block);
  return status;
}

/* The call, and the mask of its output. */
static flow_status call_with_masks(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count,
                                   const flow_arguments *options, int training, flow_tensor **outputs)
{
  void *block;
  int masked;
  FLOW_TRY(flow_alloc(sizeof(flow_tensor *) * (size_t)count, &block));
  flow_tensor **masks = block;
  flow_masks_of_inputs(layer, inputs, count, masks, &masked);
  for (int i = 0; i < masked; i++) flow_tensor_retain(masks[i]);      /* the call may take them off the inputs */
  flow_status status = call_class(context, layer, inputs, count, options, training, outputs);
  if (status == FLOW_OK) {
    status = flow_masks_pass(context, layer, inputs, masks, masked, outputs);
    if (status != FLOW_OK) flow_tensors_release(outputs, flow_layer_outputs(layer->class));
  }
  flow_tensors_release(masks, masked);
  flow_free(block);
  return status;
}

/* Builds the layer for the shapes of these inputs; NULL, an input that is not given, has rank -1. */
static flow_status make_for(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count)
{
  flow_signature *signatures;
  FLOW_TRY(flow_alloc(sizeof *signatures * (size_t)count, (void **)&signatures));
  for (int i = 0; i < count; i++) signatures[i] = inputs[i] ? flow_signature_of(inputs[i]) : (flow_signature){ .rank = -1 };
  flow_status status = flow_layer_make(context, layer, count, signatures);
  flow_free(signatures);
  return status;
}

/* The one way through which every layer runs, eagerly and in traces: counts, building, masks, dtype, the class, masks of the outputs,
 * activity_regularizer. On failure outputs are NULL and the message begins with the layer's class and name, once. */
flow_status flow_layer_run(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, const flow_arguments *options,
                           int training, flow_tensor **outputs)
{
  FLOW_DEFAULT_FLOATS;
  flow_tensor *named[FLOW_LAYER_MOST_INPUTS] = { NULL };
  unsigned filled = 0;
  for (int i = 0; i < flow_layer_outputs(layer->class); i++) outputs[i] = NULL;
  FLOW_TRY(check_input_count(layer, count));
  if (!layer->built) FLOW_TRY(make_for(context, layer, inputs, count));
  if (training) FLOW_TRY(flow_quantization_check_training(layer));
  if (layer->class->input_names) {
    memcpy(named, inputs, sizeof *named * (size_t)count);
    flow_masks_fill(layer, named, &filled);
    inputs = named;
    count = flow_layer_named_inputs(layer->class);
  }
  flow_tensor_release(layer->activity);
  layer->activity = NULL;
  draw_mark before = mark_draws(context, layer);
  int masked = layer->class->compute_mask != NULL;
  for (int i = 0; i < count && !masked; i++) masked = inputs[i] && inputs[i]->mask;
  masked |= filled != 0;
  flow_status status = (masked ? call_with_masks : call_class)(context, layer, inputs, count, options, training, outputs);
  flow_masks_release(named, filled);
  for (int i = 0; i < flow_layer_outputs(layer->class) && status == FLOW_OK && !layer->class->regularizes_parts; i++)
    if (outputs[i]) status = flow_layer_regularize_activity(context, layer, outputs[i]);
  if (status == FLOW_OK) return FLOW_OK;
  draw_back(context, layer, before);
  flow_tensors_release(outputs, flow_layer_outputs(layer->class));
  return name_failure(layer, status);
}

/* The caller's reference; the layer forgets it. NULL: the last call added nothing to the loss. */
flow_tensor *flow_layer_take_activity(flow_layer *layer)
{
  if (!layer || layer->magic != FLOW_LAYER_MAGIC) return NULL;
  flow_tensor *activity = layer->activity;
  layer->activity = NULL;
  return activity;
}

/* As many as the outputs after the first one: a recurrent layer gives its states there. */
int flow_layer_state_count(const flow_layer *layer)
{
  if (!layer || layer->magic != FLOW_LAYER_MAGIC || flow_argument_find(layer->class->parameters, "stateful") < 0) return 0;
  return flow_argument_boolean(layer->arguments, "stateful") ? layer->class->most_outputs - 1 : 0;
}

/* Borrowed; NULL: there is no such state, or the layer was not called yet. */
flow_variable *flow_layer_state(const flow_layer *layer, int index)
{
  return index >= 0 && index < flow_layer_state_count(layer) ? layer->states[index] : NULL;
}

/* variables[bias] is NULL where use_bias is false. */
flow_tensor *flow_layer_end(flow_expression *e, const flow_layer *layer, int bias, flow_tensor *y)
{
  if (layer->variables[bias]) y = e_add(e, y, flow_express_variable(e, layer->variables[bias]));
  return flow_express_activation(e, flow_argument_text(layer->arguments, "activation"), y);
}

/* As flow_layer_end, and ends the expression; *out: a new reference. */
flow_status flow_layer_take(flow_expression *e, const flow_layer *layer, int bias, flow_tensor *y, flow_tensor **out)
{
  return flow_expression_take(e, flow_layer_end(e, layer, bias, y), out);
}

/* ---- checks ------------------------------------------------------------------------------------------------------------------ */

/* The message counts the dimensions of the whole input, its batch included, as `expected` does. */
flow_status flow_layer_check_rank(const flow_layer *layer, const flow_signature *input, int rank, const char *expected, const char *hint)
{
  if (input->rank == rank) return FLOW_OK;
  return flow_layer_fail(layer, "input has %d dimension%s %s, expected %d %s%s%s", input->rank, input->rank == 1 ? "" : "s",
                         flow_shape_text(input->rank, input->dims), rank, expected, hint ? "; " : "", hint ? hint : "");
}

/* input has an axis at least: callers have checked its rank. Before the build a size of -1, which is not known, or 0 is refused; after
 * it the size has to be that of the build, since the kernel has it. */
flow_status flow_layer_check_channels(const flow_layer *layer, const flow_signature *input, const char *what)
{
  int64_t size = input->dims[input->rank - 1];
  if (size <= 0)
    return flow_layer_fail(layer, "the last dimension of the input %s must be a known number of %s",
                           flow_shape_text(input->rank, input->dims), what);
  if (layer->built && size != layer->build_shape[layer->build_rank - 1])
    return flow_layer_fail(layer, "input %s has %lld %s, but the layer was built for %lld", flow_shape_text(input->rank, input->dims),
                           (long long)size, what, (long long)layer->build_shape[layer->build_rank - 1]);
  return FLOW_OK;
}

/* For calls with a shape that the layer was not built for. */
flow_status flow_layer_fail_built(const flow_layer *layer, const flow_signature *input)
{
  return flow_layer_fail(layer, "input %s does not fit the shape %s that the layer was built for",
                         flow_shape_text(input->rank, input->dims), flow_shape_text(layer->build_rank, layer->build_shape));
}

/* By insertion: there are FLOW_MAX_RANK axes at most. Nothing is done for a single axis, which may be kept as a number. */
flow_status flow_layer_sort_axes(flow_layer *layer)
{
  const double *axes;
  double sorted[FLOW_MAX_RANK];
  int count = flow_argument_list(layer->arguments, "axis", &axes);
  if (count < 2 || count > FLOW_MAX_RANK) return FLOW_OK;
  for (int i = 0; i < count; i++) {
    int at = i;
    for (; at > 0 && sorted[at - 1] > axes[i]; at--) sorted[at] = sorted[at - 1];
    sorted[at] = axes[i];
  }
  return flow_arguments_set_numbers(layer->arguments, "axis", sorted, count);
}

/* Whether an input has the size along `axis`, and the rank, that the build had; passes before the build. */
flow_status flow_layer_check_built(const flow_layer *layer, const flow_signature *input, int axis)
{
  int fits = !layer->built || (input->rank == layer->build_rank && input->dims[axis] == layer->build_shape[axis]);
  return fits ? FLOW_OK : flow_layer_fail_built(layer, input);
}

/* *axis is set also on failure, to what is outside. */
flow_status flow_layer_axis(const flow_layer *layer, const char *name, int rank, int *axis)
{
  double given = flow_argument_number(layer->arguments, name);
  *axis = flow_axis_of(given, rank);
  if (*axis >= 0 && *axis < rank) return FLOW_OK;
  return flow_layer_fail(layer, "%s %d (counted from 1) is outside an input of %d dimension%s", name,
                         flow_axis_number(flow_axis_given(given)), rank, rank == 1 ? "" : "s");
}

/* Output size ceil(in / stride); total = what the windows of that many outputs need beyond `in`. padding: cells before and after, of height
 * and width. With "same" the odd cell comes after, as in TensorFlow. */
flow_status flow_layer_padding(const flow_layer *layer, const flow_signature *input, const int32_t window[2], const int32_t stride[2],
                               const int32_t dilation[2], int32_t padding[4])
{
  memset(padding, 0, 4 * sizeof *padding);
  const char *kind = flow_argument_text(layer->arguments, "padding");
  if (strcmp(kind, "valid") == 0) return FLOW_OK;
  const int causal = strcmp(kind, "causal") == 0;      /* a step sees itself and what is before it */
  for (int i = 0; i < 2; i++) {
    int64_t in = input->dims[1 + i], reach = (int64_t)dilation[i] * (window[i] - 1) + 1;
    if (in < 0)
      return flow_layer_fail(layer, "padding \"%s\" needs a known height and width, found %s", kind,
                             flow_shape_text(input->rank, input->dims));
    if (in == 0) continue;
    int64_t total = causal ? reach - 1 : ((in - 1) / stride[i]) * stride[i] + reach - in;
    if (total < 0) total = 0;
    if (total > INT32_MAX) return flow_layer_fail(layer, "a window that reaches %lld cells is too large", (long long)reach);
    padding[2 * i] = (int32_t)(causal ? total : total / 2);
    padding[2 * i + 1] = (int32_t)total - padding[2 * i];
  }
  return FLOW_OK;
}
