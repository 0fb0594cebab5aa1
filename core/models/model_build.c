/* model_build.c: makes the variables of a model's layers before any data is there. Where a size of an input is not
 * known, each call is traced twice, with two sizes in its place: what comes out with another size for the second is not
 * known either, as in lua/flow/layers/symbolic.lua, which says more.
 *
 * Called once for a model, by the thread that opens it, with a context in which no trace is open for it. All traces are
 * thrown away: what stays are the variables in the layers, whose contents are then read from the file. */
#include <string.h>

#include "graph/context.h"
#include "models/model.h"

/* The second pair is for layers that divide a size by a number that does not divide the first ones. Files may make constants as large. */
static const int64_t STAND_INS[][2] = { { 1680, 3360 }, { 3603600, 7207200 } };

/* A size other than that of the batch (axis 0), which is never known. */
static int has_unknown(const flow_signature *signature)
{
  for (int axis = 1; axis < signature->rank; axis++)
    if (signature->dims[axis] < 0) return 1;
  return 0;
}

/* A call, on values of these signatures, with `stand_in` for the sizes that are not known, or, if `joins`, with the size that another of
 * its operands has there, and with fixed_size on fixed_axis (0: none). */
typedef struct attempt {
  const flow_model_call *call;
  const flow_signature  *signatures;     /* [value] */
  flow_tensor          **values;         /* [value]: all NULL, before and after */
  int64_t                stand_in;
  int joins, fixed_axis;
  int64_t fixed_size;
} attempt;

/* The size that an operand gets in a trace: its own, one that another operand has on that axis (elementwise layers want equal ones), or
 * the stand-in. */
static int64_t size_of(const attempt *a, const flow_signature *input, int axis)
{
  if (input->dims[axis] >= 0) return input->dims[axis];
  if (axis == a->fixed_axis) return a->fixed_size;
  for (int i = 0; i < a->call->operand_count && a->joins; i++) {
    const flow_signature *other = &a->signatures[a->call->operands[i]];
    if (axis < other->rank && other->dims[axis] > 1) return other->dims[axis];
  }
  return a->stand_in;
}

/* In an open trace. results: signatures of what the call gives; dtype -1: a part that the shape does not give. Values
 * that it makes are released by try_call, also after a failure. */
static flow_status trace_call(flow_context *context, const attempt *a, flow_signature *results)
{
  const flow_model_call *call = a->call;
  flow_tensor **values = a->values;
  for (int i = 0; i < call->operand_count; i++) {
    flow_signature input = a->signatures[call->operands[i]];
    if (values[call->operands[i]]) continue;
    if (input.dtype < 0) return flow_fail(FLOW_INVALID_ARGUMENT, "a part of a tensor that was taken apart is missing");
    for (int axis = 1; axis < input.rank; axis++) input.dims[axis] = size_of(a, &input, axis);
    FLOW_TRY(flow_trace_input(context, input.dtype, input.rank, input.dims, &values[call->operands[i]]));
  }
  FLOW_TRY(flow_model_call_one(context, call, values, 0, NULL));
  for (int i = 0; i < call->result_count; i++) {
    const flow_tensor *result = values[call->result + i];
    results[i] = result ? flow_signature_of(result) : (flow_signature){ .dtype = -1 };
  }
  return FLOW_OK;
}

/* The same in a separate trace, which is thrown away. The first results are as many as call->result_count; they are
 * undefined after a failure. */
static flow_status try_call(flow_context *context, const attempt *a, flow_signature *results)
{
  const flow_model_call *call = a->call;
  FLOW_TRY(flow_trace_begin(context));
  flow_status status = trace_call(context, a, results);
  flow_trace_abort(context);
  for (int i = 0; i < call->operand_count; i++) flow_tensors_release(&a->values[call->operands[i]], 1);
  flow_tensors_release(&a->values[call->result], call->result_count);
  return status;
}

/* Signatures of the results with -1 where the two attempts differ. FLOW_INVALID_ARGUMENT also where dtype or rank differ: no signature
 * can say that. */
static flow_status try_pair(flow_context *context, attempt a, const int64_t pair[2], flow_signature *results)
{
  void *block;
  a.stand_in = pair[0];
  FLOW_TRY(try_call(context, &a, results));
  a.stand_in = pair[1];
  FLOW_TRY(flow_alloc(sizeof(flow_signature) * (size_t)a.call->result_count, &block));
  flow_signature *others = block;
  flow_status status = try_call(context, &a, others);
  for (int i = 0; i < a.call->result_count && status == FLOW_OK; i++) {
    if (results[i].dtype != others[i].dtype || results[i].rank != others[i].rank)
      status = flow_fail(FLOW_INVALID_ARGUMENT, "what a call gives depends on a size that is not known");
    for (int axis = 0; axis < results[i].rank; axis++)
      if (results[i].dims[axis] != others[i].dims[axis]) results[i].dims[axis] = -1;
  }
  flow_free(others);
  return status;
}

/* The layer's variables follow from the signatures of its operands: -1 is a size that is not known, and a layer that needs it says so. */
static flow_status make_layer(flow_context *context, const flow_model_call *call, const flow_signature *signatures)
{
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_signature) * (size_t)call->operand_count, &block));
  flow_signature *operands = block;
  for (int i = 0; i < call->operand_count; i++) operands[i] = signatures[call->operands[i]];
  flow_status status = flow_model_make_layer(context, call, operands);
  flow_free(operands);
  return status;
}

/* The most sizes of operands that are tried. */
enum { MOST_SIZES = 32 };

/* Adds a size that is not among them yet. 1 is not tried, and sizes beyond MOST_SIZES are left out. */
static int add_size(int64_t *sizes, int count, int64_t size)
{
  for (int i = 0; i < count; i++)
    if (sizes[i] == size) return count;
  if (size > 1 && count < MOST_SIZES) sizes[count++] = size;
  return count;
}

/* Adds the lengths of lists in a description, among which are the sizes of tensors that an op keeps. Of lists in a list the first one has
 * the length of the others. Returns the new count. */
static int add_lengths(const flow_json *json, int64_t *sizes, int count)
{
  const flow_json *item;
  if (flow_json_is(json, FLOW_JSON_LIST)) {
    count = add_size(sizes, count, flow_json_count(json));
    if (flow_json_is(json->child, FLOW_JSON_LIST)) return add_lengths(json->child, sizes, count);
  }
  FLOW_JSON_EACH(item, json) count = add_lengths(item, sizes, count);
  return count;
}

/* Tries, on each axis that is not known, each size that the operands of an op have elsewhere, such as the rows of what {3, -1} is
 * multiplied by. */
static flow_status try_sizes(flow_context *context, attempt a, flow_signature *results)
{
  int64_t sizes[MOST_SIZES];
  int count = 0;
  for (int i = 0; i < a.call->operand_count; i++) {
    const flow_signature *operand = &a.signatures[a.call->operands[i]];
    for (int axis = 1; axis < operand->rank; axis++) count = add_size(sizes, count, operand->dims[axis]);
  }
  count = add_lengths(a.call->entry, sizes, count);
  for (int i = 0; i < a.call->operand_count; i++) {
    const flow_signature *operand = &a.signatures[a.call->operands[i]];
    for (a.fixed_axis = 1; a.fixed_axis < operand->rank; a.fixed_axis++)
      for (int k = 0; k < count && operand->dims[a.fixed_axis] < 0; k++) {
        a.fixed_size = sizes[k];
        if (try_pair(context, a, STAND_INS[0], results) == FLOW_OK) return FLOW_OK;
      }
  }
  return FLOW_INVALID_ARGUMENT;
}

/* Makes the layer of a call, and finds what it gives. The error is that of the first attempt. Attempts, in order: stand-ins alone; with
 * sizes of other operands there; with larger stand-ins; of an op, with sizes that operands have elsewhere. Only FLOW_INVALID_ARGUMENT,
 * which a size may have caused, is followed by another attempt, and the first one's message is the one that is kept, since it names the
 * sizes of the file. */
static flow_status build_call(flow_context *context, const flow_model_call *call, flow_signature *signatures, flow_tensor **values)
{
  flow_signature *results = &signatures[call->result];
  attempt a = { .call = call, .signatures = signatures, .values = values }, joined = a;
  int unknown = 0;
  for (int i = 0; i < call->operand_count; i++) unknown |= has_unknown(&signatures[call->operands[i]]);
  if (call->layer) FLOW_TRY(make_layer(context, call, signatures));
  if (!unknown) return try_call(context, &a, results);
  joined.joins = 1;
  flow_status status = try_pair(context, a, STAND_INS[0], results);
  if (status != FLOW_INVALID_ARGUMENT) return status;
  if (try_pair(context, joined, STAND_INS[0], results) == FLOW_OK || try_pair(context, a, STAND_INS[1], results) == FLOW_OK) return FLOW_OK;
  if (call->operation && try_sizes(context, a, results) == FLOW_OK) return FLOW_OK;
  return try_pair(context, a, STAND_INS[0], results);
}

/* signatures and values: one for each value of the model. */
static flow_status build_calls(flow_context *context, flow_model *model, flow_signature *signatures, flow_tensor **values)
{
  for (int i = 0; i < model->input_count; i++) {
    signatures[i] = (flow_signature){ .dtype = model->inputs[i].dtype, .rank = model->inputs[i].rank };
    memcpy(signatures[i].dims, model->inputs[i].shape, sizeof model->inputs[i].shape);
  }
  for (int i = 0; i < model->program.call_count; i++) FLOW_TRY(build_call(context, &model->program.calls[i], signatures, values));
  return FLOW_OK;
}

/* Call by call, each in its own trace, since a size may become unknown at any of them. values: NULL outside of a trace. */
static flow_status build_by_call(flow_context *context, flow_model *model)
{
  void *block;
  FLOW_TRY(flow_alloc_zero((sizeof(flow_signature) + sizeof(flow_tensor *)) * (size_t)model->program.value_count, &block));
  flow_signature *signatures = block;
  flow_status status = build_calls(context, model, signatures, (flow_tensor **)(signatures + model->program.value_count));
  flow_free(block);
  return status;
}

/* All sizes are known: one trace of all calls. The outputs are not looked at: layers made their variables on the way, and that is all
 * that is wanted. */
static flow_status build_at_once(flow_context *context, flow_model *model)
{
  flow_tensor *inputs[FLOW_MODEL_MOST_TENSORS] = { NULL }, *outputs[FLOW_MODEL_MOST_TENSORS] = { NULL };
  FLOW_TRY(flow_trace_begin(context));
  flow_status status = FLOW_OK;
  for (int i = 0; i < model->input_count && status == FLOW_OK; i++) {
    const flow_model_input *input = &model->inputs[i];
    status = flow_trace_input(context, input->dtype, input->rank, input->shape, &inputs[i]);
  }
  if (status == FLOW_OK) status = flow_model_call_all(context, model, inputs, 0, outputs, NULL);
  flow_tensors_release(inputs, model->input_count);
  flow_tensors_release(outputs, model->output_count);
  flow_trace_abort(context);
  return status;
}

/* context->blank: initializers draw nothing, so that opening a file neither takes time for random numbers nor moves the context's random
 * state. */
flow_status flow_model_build(flow_context *context, flow_model *model)
{
  int blank = context->blank, unknown = 0;
  for (int i = 0; i < model->input_count; i++)
    for (int axis = 1; axis < model->inputs[i].rank; axis++) unknown |= model->inputs[i].shape[axis] < 0;
  context->blank = 1;                  /* the variables are read from a file next */
  flow_status status = unknown ? build_by_call(context, model) : build_at_once(context, model);
  context->blank = blank;
  return status;
}
