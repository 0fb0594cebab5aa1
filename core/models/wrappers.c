/* wrappers.c: see wrappers.h.
 *
 * A wrapper is checked once when the file is read (its record's check) and run for every trace. Its parts are read like
 * those of a model, and their variables are found by the walk of model_file.c. */
#include "models/wrappers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "autodiff/apply.h"
#include "flow_run.h"
#include "layers/express.h"
#include "layers/policy.h"
#include "layers/recurrent.h"
#include "tensor/tensor.h"

/* ---- what rules share -------------------------------------------------------------------------------------------------- */

/* FLOW_UNSUPPORTED, with the class and the name of the part in front. */
flow_status flow_wrapper_fail(const flow_model_part *part, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  flow_status status = flow_fail_list(FLOW_UNSUPPORTED, NULL, format, arguments);
  va_end(arguments);
  return flow_fail_prefix(status, "%s \"%s\": ", part->class_name, part->name);
}

/* NULL: null, or not there. */
static const flow_json *option(const flow_model_part *part, const char *name)
{
  const flow_json *value = flow_json_member(flow_json_member(part->entry, "config"), name);
  return flow_json_is(value, FLOW_JSON_NULL) ? NULL : value;
}

/* 0 for an option that is missing, null or not a boolean. */
int flow_wrapper_flag(const flow_model_part *part, const char *name)
{
  const flow_json *value = option(part, name);
  return flow_json_is(value, FLOW_JSON_BOOLEAN) && flow_json_is_true(value);
}

/* The dtype in which the wrapper computes: a policy is written as its name, or as an object with the name in its config. */
int flow_wrapper_dtype(const flow_model_part *part)
{
  const flow_json *policy = option(part, "dtype");
  if (flow_json_is(policy, FLOW_JSON_OBJECT)) policy = flow_json_member(flow_json_member(policy, "config"), "name");
  return flow_json_is(policy, FLOW_JSON_TEXT) ? flow_policy_named(policy->text) : FLOW_FLOAT32;
}

/* Names of the tensors that a call takes by keyword, ended by NULL; NULL: a part with a single, unnamed input. */
const char *const *flow_part_input_names(const flow_model_part *part)
{
  if (part->kind == FLOW_PART_WRAPPER) return part->wrapper->input_names;
  return part->kind == FLOW_PART_LAYER ? part->layer->class->input_names : NULL;
}

/* "initial_state[2]" is entry 2 of the argument initial_state; entry 0: the argument is a single tensor. Returns the position in names; -1:
 * there is no such input, as where names is NULL. */
int flow_find_input_name(const char *const *names, const char *name, int entry)
{
  char wanted[64];
  snprintf(wanted, sizeof wanted, entry ? "%s[%d]" : "%s", name, entry);
  for (int i = 0; names && names[i]; i++)
    if (strcmp(names[i], wanted) == 0) return i;
  return -1;
}

/* Neighbouring names with the same text before "[" are one argument of the call, a list. The name of argument `position`, from 0, of the
 * call, in `name`; NULL: the call has fewer arguments. */
const char *flow_input_name_at(const char *const *names, int position, char name[64])
{
  name[0] = '\0';
  for (int i = 0; names[i]; i++) {
    size_t length = strcspn(names[i], "[");
    if (strlen(name) == length && strncmp(name, names[i], length) == 0) continue;
    snprintf(name, 64, "%.*s", (int)length, names[i]);
    if (position-- == 0) return name;
  }
  return NULL;
}

/* A cell runs one step and has no mask; a recurrent layer has the same states and takes one. StackedRNNCells is the wrapper with a list
 * that cannot be run by itself. */
int flow_part_is_cell(const flow_model_part *part)
{
  if (part->kind == FLOW_PART_WRAPPER) return part->wrapper->list != NULL && part->wrapper->run == NULL;
  return part->kind == FLOW_PART_LAYER && part->layer->class->cell && flow_find_input_name(part->layer->class->input_names, "mask", 0) < 0;
}

/* Of a wrapper around cells: the states of all of them. How many tensors of state a recurrent part takes and gives: 2 for an LSTM, 1 for a
 * GRU; 0: it is not recurrent. */
int flow_part_states(const flow_model_part *part)
{
  int states = 0;
  if (part->kind == FLOW_PART_LAYER) return part->layer->class->cell ? part->layer->class->cell->states : 0;
  if (part->kind != FLOW_PART_WRAPPER || part->wrapper->input_names != flow_sequence_inputs) return 0;
  for (int i = 0; i < part->part_count; i++) states += flow_part_states(&part->parts[i]);
  return states;
}

/* How many tensors a call of the part gives, its states included. */
int flow_wrapper_outputs(const flow_model_part *part)
{
  if (part->kind == FLOW_PART_LAYER) return flow_layer_outputs_of(part->layer);
  return part->wrapper->outputs ? part->wrapper->outputs(part) : 1;
}

/* x in another dtype, if it is of another one; a new reference. The caller's reference of x stays the caller's. */
static flow_status cast(flow_context *context, flow_tensor *x, int dtype, flow_tensor **out)
{
  flow_attributes attributes = { .cast = { .dtype = dtype } };
  if (x->dtype != dtype) return flow_apply1(context, FLOW_OP_cast, x, NULL, NULL, &attributes, out);
  *out = flow_tensor_retain(x);
  return FLOW_OK;
}

/* A gather with the positions n - 1 .. 0: a constant of the trace, not data of the step. x {n, ...} with its first axis, whose size must be
 * known, from the last entry to the first; borrowed from e. */
flow_tensor *flow_wrapper_reversed(flow_expression *e, flow_tensor *x)
{
  flow_tensor *positions = NULL;
  if (!x || e->status != FLOW_OK) return NULL;
  int64_t n = x->shape[0];
  flow_status status = flow_tensor_new(FLOW_INT32, 1, &n, &positions);
  for (int64_t i = 0; i < n && status == FLOW_OK; i++) ((int32_t *)flow_tensor_elements(positions))[i] = (int32_t)(n - 1 - i);
  return flow_express(e, FLOW_OP_gather, x, flow_express_keep(e, status, positions), NULL, NULL);
}

/* A reshape for each tensor and one concat. list holds one tensor at least, all of one shape. The result has a new axis of `count` entries
 * at `axis`; borrowed from e. The tensors of the list stay the caller's. */
flow_tensor *flow_wrapper_stacked(flow_expression *e, flow_tensor *const *list, int64_t count, int axis)
{
  int64_t dims[FLOW_MAX_RANK];
  flow_tensor *joined = NULL;
  void *block;
  if (e->status != FLOW_OK) return NULL;
  if (list[0]->rank == FLOW_MAX_RANK || count > INT32_MAX) {
    e->status = flow_fail(FLOW_UNSUPPORTED, "%lld steps of %d dimensions cannot be stacked", (long long)count, list[0]->rank);
    return NULL;
  }
  if ((e->status = flow_alloc_zero(sizeof *list * (size_t)count, &block)) != FLOW_OK) return NULL;
  flow_tensor **rows = block;
  flow_attributes shape = { .shape = { .rank = list[0]->rank + 1 } }, along = { .axis = { .axis = axis } };
  for (int64_t t = 0; t < count && e->status == FLOW_OK; t++) {
    for (int i = 0; i <= list[t]->rank; i++) dims[i] = i < axis ? list[t]->shape[i] : i == axis ? 1 : list[t]->shape[i - 1];
    memcpy(shape.shape.dims, dims, sizeof *dims * (size_t)(list[t]->rank + 1));
    e->status = flow_apply1(e->context, FLOW_OP_reshape, list[t], NULL, NULL, &shape, &rows[t]);
  }
  if (e->status == FLOW_OK) e->status = flow_apply(e->context, FLOW_OP_concat, rows, (int)count, &along, &joined);
  for (int64_t t = 0; t < count; t++) flow_tensor_release(rows[t]);
  flow_free(block);
  return flow_express_keep(e, e->status, joined);
}

/* ---- running a part -------------------------------------------------------------------------------------------------------- */

/* Outputs that the layer's record has and this layer does not give are released here. */
static flow_status run_layer(const flow_wrapper_call *call)
{
  flow_layer *layer = call->part->layer;
  flow_tensor *outputs[FLOW_LAYER_MOST_OUTPUTS] = { NULL };
  int names = flow_layer_named_inputs(layer->class), count = flow_layer_outputs_of(layer);
  flow_status status = flow_layer_run(call->context, layer, call->named, names ? names : 1, NULL, call->training, outputs);
  memcpy(call->outputs, outputs, sizeof *outputs * (size_t)count);
  flow_tensors_release(outputs + count, FLOW_LAYER_MOST_OUTPUTS - count);
  flow_tensor *added = flow_layer_take_activity(layer);
  if (status != FLOW_OK) flow_tensor_release(added);
  else if (call->activity) status = flow_model_add_to(call->context, call->activity, added);
  else flow_tensor_release(added);
  return status;
}

/* Runs a layer or a wrapper on call->named. outputs: new references; after a failure those that were made stay with the caller, who
 * releases them. */
flow_status flow_part_run(const flow_wrapper_call *call)
{
  return call->part->kind == FLOW_PART_LAYER ? run_layer(call) : flow_wrapper_run(call);
}

/* The mask that the input carries counts where the call gives none; where it gives initial states, only the mask that it gives does. */
flow_status flow_wrapper_run(const flow_wrapper_call *call)
{
  flow_tensor *named[FLOW_LAYER_MOST_INPUTS] = { NULL };
  const char *const *names = call->part->wrapper->input_names;
  flow_wrapper_call filled = *call;
  int mask = flow_find_input_name(names, "mask", 0), states = flow_find_input_name(names, "initial_state", 1);
  if (!call->part->wrapper->run) return flow_wrapper_fail(call->part, "it is called outside of RNN, which is not supported");
  for (int i = 0; names && names[i]; i++) named[i] = call->named[i];
  if (!names) named[0] = call->named[0];
  else if (mask >= 0 && !named[mask] && (states < 0 || !named[states])) named[mask] = named[0]->mask;
  filled.named = named;
  return call->part->wrapper->run(&filled);
}

/* ---- Bidirectional ----------------------------------------------------------------------------------------------------------- */

enum { CONCAT, SUM, MULTIPLY, AVERAGE, NO_MERGE };

/* Keras' merge_mode: null keeps both outputs apart (NO_MERGE); a config without it is an old one, whose default was "concat". -1: it is
 * not known. */
static int merge_mode(const flow_model_part *part)
{
  static const char *const names[] = { "concat", "sum", "mul", "ave" };
  const flow_json *mode = flow_json_member(flow_json_member(part->entry, "config"), "merge_mode");
  if (!mode) return CONCAT;
  if (flow_json_is(mode, FLOW_JSON_NULL)) return NO_MERGE;
  for (int i = 0; i < 4; i++)
    if (flow_json_is(mode, FLOW_JSON_TEXT) && strcmp(mode->text, names[i]) == 0) return i;
  return -1;
}

/* An option of a recurrent layer. */
static int recurrent_flag(const flow_model_part *part, const char *name)
{
  return part->kind == FLOW_PART_LAYER ? flow_argument_boolean(part->layer->arguments, name) : flow_wrapper_flag(part, name);
}

/* What Keras checks when a Bidirectional is made: both layers recurrent, in opposite directions, with the same kind of outputs. */
static flow_status bidirectional_check(const flow_model_part *part)
{
  static const char *const alike[] = { "return_sequences", "return_state" };
  const flow_model_part *forward = &part->parts[0], *backward = &part->parts[1];
  for (int i = 0; i < 2; i++)
    if (!flow_part_states(&part->parts[i]) || flow_part_is_cell(&part->parts[i]))
      return flow_wrapper_fail(part, "it holds a %s, which is not a recurrent layer", part->parts[i].class_name);
  if (merge_mode(part) < 0) return flow_wrapper_fail(part, "its merge_mode is not known");
  for (int i = 0; i < 2; i++)
    if (recurrent_flag(forward, alike[i]) != recurrent_flag(backward, alike[i]))
      return flow_wrapper_fail(part, "both layers need the same %s", alike[i]);
  if (recurrent_flag(forward, "go_backwards") == recurrent_flag(backward, "go_backwards"))
    return flow_wrapper_fail(part, "both layers go in the same direction");
  if (flow_part_states(forward) + flow_part_states(backward) > FLOW_LAYER_MOST_INPUTS - 2)
    return flow_wrapper_fail(part, "it has more than %d states", FLOW_LAYER_MOST_INPUTS - 2);
  return FLOW_OK;
}

/* Both sequences apart, or one that joins them; then the states of both layers. */
static int bidirectional_outputs(const flow_model_part *part)
{
  int states = flow_part_states(&part->parts[0]) + flow_part_states(&part->parts[1]);
  return (merge_mode(part) == NO_MERGE ? 2 : 1) + (recurrent_flag(&part->parts[0], "return_state") ? states : 0);
}

/* One direction, with the states from `first` on. outputs: new references, as many as the layer has, also those that
 * were made before a failure. */
static flow_status run_direction(const flow_wrapper_call *call, int direction, int first, flow_tensor **outputs)
{
  const flow_model_part *part = &call->part->parts[direction];
  const char *const *names = flow_part_input_names(part);
  flow_tensor *named[FLOW_LAYER_MOST_INPUTS] = { call->named[0] };
  for (int i = 0; i < flow_part_states(part); i++) named[1 + i] = call->named[1 + first + i];
  named[flow_find_input_name(names, "mask", 0)] = call->named[flow_find_input_name(flow_sequence_inputs, "mask", 0)];
  return flow_part_run(&(flow_wrapper_call){ .context = call->context, .part = part, .named = named, .training = call->training,
                                             .outputs = outputs, .activity = call->activity });
}

/* The four ways in which Bidirectional joins two outputs of one shape; the last axis is that of concat. */
static flow_tensor *merged(flow_expression *e, int mode, flow_tensor *a, flow_tensor *b)
{
  flow_tensor *joined = NULL;
  if (!a || !b) return NULL;
  flow_attributes attributes = { .axis = { .axis = a->rank - 1 } };
  if (mode == CONCAT) {
    flow_express_all(e, FLOW_OP_concat, (flow_tensor *[]){ a, b }, 2, &attributes, &joined);
    return e->status == FLOW_OK ? joined : NULL;
  }
  if (mode == MULTIPLY) return e_mul(e, a, b);
  flow_tensor *sum = e_add(e, a, b);
  return mode == SUM || !sum ? sum : e_div(e, sum, flow_express_number(e, sum, 2));
}

/* The backward layer gives its sequence from the last step to the first, so it is turned round before the two are merged. */
static flow_status merge(const flow_wrapper_call *call, flow_tensor *const *forward, flow_tensor *const *backward)
{
  const flow_model_part *part = call->part;
  int mode = merge_mode(part), dtype = flow_wrapper_dtype(part), sequences = recurrent_flag(&part->parts[0], "return_sequences");
  flow_expression e = flow_expression_of(call->context);
  flow_tensor *y = flow_express_cast(&e, forward[0], dtype), *z = flow_express_cast(&e, backward[0], dtype);
  if (sequences) z = flow_steps_swapped(&e, flow_wrapper_reversed(&e, flow_steps_swapped(&e, z)));
  flow_tensor *results[2] = { mode == NO_MERGE ? y : merged(&e, mode, y, z), z };
  for (int i = 0; i < (mode == NO_MERGE ? 2 : 1) && e.status == FLOW_OK; i++) call->outputs[i] = flow_tensor_retain(results[i]);
  FLOW_TRY(flow_expression_end(&e));
  return FLOW_OK;
}

/* Runs both layers, each with its half of the initial states, merges their sequences, and gives the states of both. Sequences carry the
 * mask on. */
static flow_status bidirectional_run(const flow_wrapper_call *call)
{
  const flow_model_part *part = call->part;
  flow_tensor *found[2][1 + FLOW_LAYER_MOST_INPUTS] = { { NULL } };
  int half = flow_part_states(&part->parts[0]), outputs = merge_mode(part) == NO_MERGE ? 2 : 1;
  flow_status status = run_direction(call, 0, 0, found[0]);
  if (status == FLOW_OK) status = run_direction(call, 1, half, found[1]);
  if (status == FLOW_OK) status = merge(call, found[0], found[1]);
  flow_tensor *mask = call->named[flow_find_input_name(flow_sequence_inputs, "mask", 0)];
  for (int i = 0; i < outputs && status == FLOW_OK && recurrent_flag(&part->parts[0], "return_sequences"); i++)
    status = flow_tensor_set_mask(call->outputs[i], mask ? mask : call->named[0]->mask);
  for (int d = 0, at = outputs; d < 2; d++)
    for (int i = 1; i < flow_wrapper_outputs(&part->parts[d]) && status == FLOW_OK; i++)
      call->outputs[at++] = flow_tensor_retain(found[d][i]);
  for (int d = 0; d < 2; d++) flow_tensors_release(found[d], 1 + FLOW_LAYER_MOST_INPUTS);
  return status;
}

/* ---- TimeDistributed ----------------------------------------------------------------------------------------------------------- */

static const char *const step_inputs[] = { "inputs", "mask", NULL };

/* Whether a part computes each row by itself; see is_by_rows in lua/flow/layers/recurrent/time_distributed.lua. */
static int is_by_rows(const flow_model_part *part, int training)
{
  static const int arithmetic[] = { FLOW_OP_add, FLOW_OP_sub, FLOW_OP_mul, FLOW_OP_div, FLOW_OP_neg, FLOW_OP_pow };
  if (part->kind == FLOW_PART_INPUT) return 1;
  for (int i = 0; i < 6 && part->kind == FLOW_PART_OPERATION; i++)
    if (!part->operation->class_name && !part->operation->activation && part->operation->op == arithmetic[i]) return 1;
  if (part->kind == FLOW_PART_OPERATION) return 0;
  for (int i = 0; part->layer && training && part->layer->trainable && i < part->layer->variable_count; i++)
    if (!flow_variable_trainable(part->layer->variables[i])) return 0;      /* statistics of a batch */
  for (int i = 0; i < part->part_count; i++) {
    const flow_layer *inside = part->parts[i].layer;
    if ((inside && !flow_argument_is_null(inside->arguments, "activity_regularizer")) || !is_by_rows(&part->parts[i], training)) return 0;
  }
  return part->layer || part->part_count > 0;
}

static int distributed_outputs(const flow_model_part *part) { return part->output_count; }

/* One call of the layer or model, new references. As in Keras, activity_regularizer adds nothing for the layer itself, but for layers
 * in it. */
static flow_status run_once(const flow_wrapper_call *call, flow_tensor *x, flow_tensor **outputs)
{
  const flow_model_part *part = call->part;
  flow_tensor **activity = part->parts[0].kind == FLOW_PART_LAYER ? NULL : call->activity;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)part->program.value_count, &block));
  flow_tensor **values = block;
  flow_status status = FLOW_OK;
  values[0] = flow_tensor_retain(x);
  for (int i = 0; i < part->program.call_count && status == FLOW_OK; i++)
    status = flow_model_call_one(call->context, &part->program.calls[i], values, call->training, activity);
  for (int i = 0; i < part->output_count && status == FLOW_OK; i++) {
    if (values[part->outputs[i]]) outputs[i] = flow_tensor_retain(values[part->outputs[i]]);
    else status = flow_wrapper_fail(part, "output %d is a part that its tensor does not have", i + 1);
  }
  flow_tensors_release(values, part->program.value_count);
  flow_free(block);
  return status;
}

/* All steps as rows of one batch. {batch, steps, ...} as {batch * steps, ...}: one call instead of one for each step, where rows do not
 * depend on each other. */
static flow_status run_together(const flow_wrapper_call *call, flow_tensor *x)
{
  flow_expression e = flow_expression_of(call->context);
  flow_tensor *rows = NULL, *outputs[FLOW_MODEL_MOST_TENSORS] = { NULL };
  int64_t dims[FLOW_MAX_RANK + 1] = { x->shape[0] * x->shape[1] };
  for (int i = 2; i < x->rank; i++) dims[i - 1] = x->shape[i];
  FLOW_TRY(flow_expression_take(&e, flow_express_reshape(&e, x, x->rank - 1, dims), &rows));
  flow_status status = run_once(call, rows, outputs);
  flow_tensor_release(rows);
  dims[0] = x->shape[0];
  dims[1] = x->shape[1];
  for (int k = 0; k < call->part->output_count && status == FLOW_OK; k++) {
    flow_tensor *y = outputs[k];
    if (y->rank == FLOW_MAX_RANK) {
      status = flow_wrapper_fail(call->part, "output %d of a step has %d dimensions, at most %d are possible", k + 1, y->rank,
                                 FLOW_MAX_RANK - 1);
      continue;
    }
    for (int i = 1; i < y->rank; i++) dims[1 + i] = y->shape[i];
    flow_expression of_one = flow_expression_of(call->context);
    status = flow_expression_take(&of_one, flow_express_reshape(&of_one, y, y->rank + 1, dims), &call->outputs[k]);
  }
  flow_tensors_release(outputs, call->part->output_count);
  return status;
}

/* TimeDistributed, step by step: for parts that cannot take the steps as rows of a batch. Each output is the stack of
 * its steps. Outputs that were made before a failure stay with the caller. */
static flow_status run_one_by_one(const flow_wrapper_call *call, flow_tensor *x)
{
  flow_tensor *outputs[FLOW_MODEL_MOST_TENSORS];
  int64_t steps = x->shape[1];
  int count = call->part->output_count;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)steps * (size_t)count, &block));
  flow_tensor **results = block;      /* [output][step] */
  flow_status status = FLOW_OK;
  for (int64_t t = 0; t < steps && status == FLOW_OK; t++) {
    flow_expression step = flow_expression_of(call->context);
    flow_tensor *row = NULL;
    memset(outputs, 0, sizeof *outputs * (size_t)count);
    status = flow_expression_take(&step, flow_steps_at(&step, x, 1, t), &row);
    if (status == FLOW_OK) status = run_once(call, row, outputs);
    for (int k = 0; k < count; k++) results[k * steps + t] = outputs[k];
    flow_tensor_release(row);
  }
  for (int k = 0; k < count && status == FLOW_OK; k++) {
    flow_expression e = flow_expression_of(call->context);
    flow_tensor *y = flow_wrapper_stacked(&e, results + k * steps, steps, 1);
    status = flow_expression_take(&e, y, &call->outputs[k]);
  }
  for (int64_t i = 0; i < count * steps; i++) flow_tensor_release(results[i]);
  flow_free(block);
  return status;
}

/* The mask of the steps goes to the first output, as in Keras. */
static flow_status distributed_run(const flow_wrapper_call *call)
{
  flow_tensor *x = call->named[0], *mask = call->named[1];
  if (x->rank < 3 || x->shape[1] < 1)
    return flow_wrapper_fail(call->part, "input has shape %s, expected {batch, steps, ...} with a step or more", flow_tensor_shape_text(x));
  if (mask && mask->rank > 2) return flow_wrapper_fail(call->part, "a mask of %d dimensions is not supported", mask->rank);
  FLOW_TRY((is_by_rows(&call->part->parts[0], call->training) ? run_together : run_one_by_one)(call, x));
  return flow_tensor_set_mask(call->outputs[0], mask);
}

/* ---- layers that act in training only ---------------------------------------------------------------------------------------------- */

/* In a prediction these layers change nothing but the dtype. */
static flow_status image_run(const flow_wrapper_call *call)
{
  if (call->training)
    return flow_wrapper_fail(call->part, "it changes pictures at random in training, which only Lua can: train there, or leave it out");
  return cast(call->context, call->named[0], flow_wrapper_dtype(call->part), call->outputs);
}

/* ---- records ------------------------------------------------------------------------------------------------------------------------ */

#define IN_TRAINING(name) { .class_name = #name, .run = image_run }

static const flow_wrapper records[] = {
  { .class_name = "Bidirectional", .input_names = flow_sequence_inputs,
    .fields = { "layer=forward_layer", "backward_layer=backward_layer" }, .check = bidirectional_check,
    .outputs = bidirectional_outputs, .run = bidirectional_run },
  { .class_name = "TimeDistributed", .input_names = step_inputs, .fields = { "layer=layer" }, .runs_program = 1,
    .outputs = distributed_outputs, .run = distributed_run },
  { .class_name = "RNN", .input_names = flow_sequence_inputs, .fields = { "cell=cell" }, .check = flow_rnn_check,
    .outputs = flow_rnn_outputs, .run = flow_rnn_run },
  { .class_name = "StackedRNNCells", .input_names = flow_sequence_inputs, .list = "cells", .check = flow_stacked_cells_check },
  IN_TRAINING(RandomBrightness), IN_TRAINING(RandomColorDegeneration), IN_TRAINING(RandomColorJitter), IN_TRAINING(RandomGaussianBlur),
  IN_TRAINING(RandomGrayscale), IN_TRAINING(RandomHue), IN_TRAINING(RandomInvert), IN_TRAINING(RandomPosterization),
  IN_TRAINING(RandomSaturation), IN_TRAINING(RandomSharpness), IN_TRAINING(RandomTranslation), IN_TRAINING(RandomShear),
  IN_TRAINING(RandomPerspective), IN_TRAINING(RandomElasticTransform), IN_TRAINING(RandomErasing), IN_TRAINING(Solarization),
  IN_TRAINING(RandomCrop), IN_TRAINING(Equalization), IN_TRAINING(MixUp), IN_TRAINING(CutMix), IN_TRAINING(RandAugment),
  IN_TRAINING(AugMix),
};

/* By Keras' class name; NULL: the class is not a wrapper. */
const flow_wrapper *flow_wrapper_find(const char *class_name)
{
  for (size_t i = 0; i < sizeof records / sizeof *records; i++)
    if (strcmp(records[i].class_name, class_name) == 0) return &records[i];
  return NULL;
}
