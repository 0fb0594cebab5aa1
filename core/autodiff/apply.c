/* apply.c: flow_apply, the single way to run an op: casts and checks its inputs, then runs it at once, or appends it to the trace that a
 * symbolic input belongs to, and tells the tapes that record.
 *
 * Sixteen bits. Most kernels of the CPU compute in float32. An op that is marked VIA_FLOAT therefore has its float16 and bfloat16 inputs
 * cast to float32 before it and its results cast back after it, unless the device's kernels take such floats themselves. A policy
 * (mixed_bfloat16) casts a lot, and most of what it casts is read by such ops again; so its casts are marked `loose` (graph.h), and
 * an op that needs float32 of a loose value reads what was cast instead (flow_graph_wide). Then a chain of layers has no pairs of casts
 * between them. Products of such nodes may round what they multiply where the processor gains by that: flow_node's bfloat16, which the
 * nodes of their gradients get, too. */
#include "graph/loop.h"
#include "autodiff/apply.h"
#include "autodiff/expression.h"
#include <string.h>

#include "base/float_state.h"
#include "base/need.h"
#include "autodiff/eager.h"
#include "tensor/place.h"

static const flow_attributes no_attributes;

/* Replaces *tensor, a reference, by a cast of it, or by the wide value of which it is a loose cast. *tensor stays valid after a failure. */
static flow_status cast_to(flow_context *context, flow_tensor **tensor, int dtype)
{
  flow_tensor *cast;
  if ((*tensor)->dtype == dtype) return FLOW_OK;
  int wide = dtype == FLOW_FLOAT32 ? flow_graph_wide(*tensor) : -1;
  if (wide >= 0) {
    FLOW_TRY(flow_graph_tensor((*tensor)->graph, wide, &cast));
    flow_tensor_release(*tensor);
    *tensor = cast;
    return FLOW_OK;
  }
  FLOW_TRY(flow_apply1(context, FLOW_OP_cast, *tensor, NULL, NULL, &(flow_attributes){ .cast = { dtype } }, &cast));
  flow_tensor_release(*tensor);
  *tensor = cast;
  return FLOW_OK;
}

static int is_half(int dtype) { return dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16; }

/* Whether the kernels of the device that the call is for take its 16-bit floats as they are: all of one dtype. graph: the trace that
 * the call belongs to, NULL: it runs at once. */
static int takes_half_floats(flow_context *context, int op, const flow_graph *graph, flow_tensor *const *inputs, int count)
{
  flow_place *place = graph ? graph->place : NULL;
  int dtype = -1;
  if (flow_op(op)->flags & FLOW_OP_COLLECTIVE) return 0;      /* sums over replicas are exchanged as float32 */
  if (!graph && flow_place_of_call(context, op, inputs, count, &place) != FLOW_OK) return 0;      /* the call itself will say why */
  if (!place || !flow_place_accelerator(place)->device.half_floats) return 0;
  for (int i = 0; i < count; i++) {
    if (!flow_dtype_is_float(inputs[i]->dtype)) continue;
    if (!is_half(inputs[i]->dtype) || (dtype >= 0 && inputs[i]->dtype != dtype)) return 0;
    dtype = inputs[i]->dtype;
  }
  return 1;
}

/* Whether an op that moves elements does so in float32: a policy asks for 16 bits, and ops that compute read them in float32. Then the
 * result is cast back and loose in its turn (apply_cast), and the cast of a whole chain is left to what ends it. */
static int moves_wide(int op, flow_tensor *const *inputs, int count)
{
  int loose = 0;
  if (flow_op(op)->flags & (FLOW_OP_VIA_FLOAT | FLOW_OP_EFFECT | FLOW_OP_RANDOM | FLOW_OP_COLLECTIVE)) return 0;
  for (int i = 0; i < count; i++) {
    if (!flow_dtype_is_float(inputs[i]->dtype)) continue;
    if (flow_graph_wide(inputs[i]) < 0) return 0;
    loose = 1;
  }
  return loose;
}

/* Casts that the record's flags ask for, in place in inputs[] (references). *half: the 16-bit dtype to cast results to, or -1. */
static flow_status cast_inputs(flow_context *context, int op, const flow_graph *graph, flow_tensor **inputs, int count, int *half)
{
  int flags = flow_op(op)->flags, dtype = flow_op_dtype(op, inputs, count);
  *half = -1;
  if (dtype >= 0)
    for (int i = flags & FLOW_OP_CONDITION ? 1 : 0; i < count; i++) FLOW_TRY(cast_to(context, &inputs[i], dtype));
  if (flags & FLOW_OP_FLOAT_ONLY)
    for (int i = 0; i < count; i++)
      if (!flow_dtype_is_float(inputs[i]->dtype) && (i == 0 || (inputs[i]->dtype != FLOW_UINT8 && inputs[i]->dtype != FLOW_BOOL)))
        /* uint8 may be a pooling index, bool a mask: shape rules know */
        return flow_fail(FLOW_INVALID_ARGUMENT, "%s takes floating-point numbers, found %s; cast first, as with :to(\"float32\")",
                         flow_op(op)->name, flow_dtype_name(inputs[i]->dtype));
  if (((flags & FLOW_OP_VIA_FLOAT) && !takes_half_floats(context, op, graph, inputs, count)) || moves_wide(op, inputs, count))
    for (int i = 0; i < count; i++)
      if (is_half(inputs[i]->dtype)) {
        *half = inputs[i]->dtype;
        FLOW_TRY(cast_to(context, &inputs[i], FLOW_FLOAT32));
      }
  return FLOW_OK;
}

/* The open trace that the call belongs to, NULL for an eager one. */
static flow_status find_trace(flow_context *context, int op, flow_tensor *const *inputs, int count, flow_graph **out)
{
  flow_graph *innermost = flow_context_trace(context);
  *out = NULL;
  for (int i = 0; i < count; i++) {
    if (!inputs[i]->graph) continue;
    if (inputs[i]->graph->closed)
      return flow_fail(FLOW_INVALID_STATE, "%s: a tensor is used after the trace that it belongs to; traced tensors have no value of "
                       "their own: return it from the traced function", flow_op(op)->name);
    if (inputs[i]->graph != innermost && !(innermost && flow_graph_encloses(inputs[i]->graph, innermost)))
      return flow_fail(FLOW_INVALID_STATE, "%s: a tensor of an outer trace is used inside an inner one; pass it as an argument",
                       flow_op(op)->name);
    *out = innermost;
  }
  /* Random ops draw new numbers in every run, so a trace takes them even without traced inputs. */
  if (innermost && (flow_op(op)->flags & FLOW_OP_RANDOM)) *out = innermost;
  return FLOW_OK;
}

/* Appends the call as a node. Concrete inputs become constants of the graph, variables' storages values of their kind; outputs: new
 * symbolic tensors, those that were made also after a failure. A node that was appended before a failure stays: nothing reads it, and
 * the plan drops it. */
static flow_status append_to(flow_graph *graph, int op, flow_tensor *const *inputs, int count, const flow_attributes *attributes,
                             const flow_signature *results, flow_tensor **outputs)
{
  void *block;
  int values[FLOW_MAX_OPERANDS], output_count = flow_op(op)->outputs;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(count + 1), &block));
  int *operands = block;
  flow_status status = FLOW_OK;
  for (int i = 0; i < count && status == FLOW_OK; i++) status = flow_graph_operand(graph, inputs[i], &operands[i]);
  if (status == FLOW_OK) status = flow_graph_append(graph, op, operands, count, attributes, results, values);
  for (int i = 0; i < output_count && status == FLOW_OK; i++) status = flow_graph_tensor(graph, values[i], &outputs[i]);
  flow_free(block);
  return status;
}

/* A result that counts rows, like a constant repeated over the batch, belongs to the trace even if no input is traced. */
static flow_status find_trace_of_rows(flow_context *context, int op, const flow_signature *results, flow_graph **graph)
{
  for (int i = 0; i < flow_op(op)->outputs; i++)
    for (int d = 0; d < results[i].rank; d++) {
      if (results[i].dims[d] >= 0) continue;
      *graph = flow_context_trace(context);
      if (*graph) return FLOW_OK;
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: shape %s has a negative dimension; only in a trace these stand for rows",
                       flow_op(op)->name, flow_shape_text(results[i].rank, results[i].dims));
    }
  return FLOW_OK;
}

/* flow_apply once its arguments are checked. inputs: references that the caller owns and releases, which casts replace in place.
 * outputs: NULL at first; new references, those that were made also after a failure. The order: which trace, casts, the shape rule,
 * then the node or the kernel, the tapes, and the cast back. Whether a value is loose is looked at before casts replace it. `results`
 * is zeroed, so that a shape rule sets only what it knows. */
static flow_status apply_cast(flow_context *context, int op, flow_tensor **inputs, int count, const flow_attributes *attributes,
                              flow_tensor **outputs)
{
  const flow_op_record *record = flow_op(op);
  flow_signature results[FLOW_MAX_OPERANDS];
  flow_graph *graph;
  int half, loose = 0;
  memset(results, 0, sizeof results);
  FLOW_TRY(find_trace(context, op, inputs, count, &graph));
  if (op == FLOW_OP_cast && attributes->cast.dtype == FLOW_FLOAT32 && flow_graph_wide(inputs[0]) >= 0) {
    FLOW_TRY(cast_to(context, &inputs[0], FLOW_FLOAT32));
    outputs[0] = flow_tensor_retain(inputs[0]);
    return FLOW_OK;
  }
  for (int i = 0; i < count; i++) loose |= flow_graph_wide(inputs[i]) >= 0;
  FLOW_TRY(cast_inputs(context, op, graph, inputs, count, &half));
  void *block = NULL;
  flow_signature few[FLOW_MAX_OPERANDS], *signatures = few;
  if (count > FLOW_MAX_OPERANDS) {
    FLOW_TRY(flow_alloc(sizeof(flow_signature) * (size_t)count, &block));
    signatures = block;
  }
  for (int i = 0; i < count; i++) signatures[i] = flow_tensor_signature(inputs[i]);
  flow_status status = flow_op_infer(op, attributes, signatures, count, results);
  flow_free(block);
  if (status == FLOW_OK && !graph) status = find_trace_of_rows(context, op, results, &graph);
  if (status != FLOW_OK) return status;

  if (graph) {
    status = append_to(graph, op, inputs, count, attributes, results, outputs);
    if (status == FLOW_OK && half == FLOW_BFLOAT16 && !graph->exact) graph->nodes[graph->node_count - 1].bfloat16 = 1;
  } else {
    status = flow_run_eager(context, op, inputs, count, attributes, results, outputs);
    if (status == FLOW_OK && context->scopes->tape_count)
      status = flow_tapes_record(context, op, inputs, count, attributes, outputs, record->outputs);
  }
  if (half >= 0)
    for (int i = 0; i < record->outputs && status == FLOW_OK; i++)
      if (outputs[i]->dtype == FLOW_FLOAT32) {
        status = cast_to(context, &outputs[i], half);
        if (status == FLOW_OK && loose) flow_graph_loosen(outputs[i]);
      }
  return status;
}

/* The checks that need no op's rule; outputs[] are set only if all went well. inputs are borrowed: the references that apply_cast
 * replaces by casts are counted here. attributes NULL: all zero. Ops with more inputs than FLOW_MAX_OPERANDS, such as concatenations,
 * have their lists on the heap; others need no memory here. */
flow_status flow_apply(flow_context *context, int op, flow_tensor *const *inputs, int input_count,
                       const flow_attributes *attributes, flow_tensor **outputs)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context);
  if (op < 0 || op >= FLOW_OP_COUNT)
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no op number %d; the numbers are 0 to %d, flow_op_find gives that of a name", op,
                     FLOW_OP_COUNT - 1);
  const flow_op_record *record = flow_op(op);
  if (input_count < record->min_inputs || input_count > record->max_inputs) {
    if (record->min_inputs == record->max_inputs)
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s takes %d input%s, found %d", record->name, record->min_inputs,
                       record->min_inputs == 1 ? "" : "s", input_count);
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s takes %d to %d inputs, found %d", record->name, record->min_inputs,
                     record->max_inputs, input_count);
  }
  if (record->outputs > 0) FLOW_NEED(outputs);
  for (int i = 0; i < input_count; i++) {
    if (!inputs || !inputs[i]) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: input %d is NULL, expected a tensor", record->name, i + 1);
    FLOW_TRY(flow_check_tensor(record->name, inputs[i]));
  }

  flow_tensor *few[FLOW_MAX_OPERANDS], **owned = few, *made[FLOW_MAX_OPERANDS] = { NULL };
  void *block = NULL;
  if (input_count > FLOW_MAX_OPERANDS) {
    FLOW_TRY(flow_alloc(sizeof(flow_tensor *) * (size_t)input_count, &block));
    owned = block;
  }
  for (int i = 0; i < input_count; i++) owned[i] = flow_tensor_retain(inputs[i]);
  flow_status status = apply_cast(context, op, owned, input_count, attributes ? attributes : &no_attributes, made);
  flow_tensors_release(owned, input_count);
  flow_free(block);
  if (status != FLOW_OK) {
    flow_tensors_release(made, record->outputs);
    return status;
  }
  for (int i = 0; i < record->outputs; i++) outputs[i] = made[i];
  return FLOW_OK;
}

/* Further outputs of the op, such as the index of a pooling, are released. The first NULL ends the inputs. */
flow_status flow_apply1(flow_context *context, int op, flow_tensor *a, flow_tensor *b, flow_tensor *c,
                        const flow_attributes *attributes, flow_tensor **out)
{
  flow_tensor *inputs[3] = { a, b, c }, *outputs[FLOW_MAX_OPERANDS];
  int count = a ? b ? c ? 3 : 2 : 1 : 0;
  FLOW_TRY(flow_apply(context, op, inputs, count, attributes, outputs));
  *out = outputs[0];
  for (int i = 1; i < flow_op(op)->outputs; i++) flow_tensor_release(outputs[i]);
  return FLOW_OK;
}

/* Whether each step gets what it computes with: conditions where its op takes these, else numbers of the chain's dtype. */
static int has_own_kinds(int count, const flow_attributes *chain)
{
  uint8_t is_condition[256] = { 0 }; /* of values, which steps number by a byte */
  for (int s = 0; s < chain->fused.count; s++) {
    const int op = chain->fused.steps[s].op, gives = flow_op_gives_condition(op);
    for (int i = 0; i < flow_op(op)->min_inputs; i++) {
      int wanted = gives == 2 || (op == FLOW_OP_where && i == 0);
      if (is_condition[chain->fused.steps[s].inputs[i]] != wanted) return 0;
    }
    is_condition[count + s] = gives != 0;
  }
  return 1;
}

/* Whether a chain may run as the op `fused`, whose numbers are those of the ops one after the other: no input is traced, since traces are
 * fused by passes of the plan, and no tape records, since `fused` has no gradient. Devices take what plans make. */
static int runs_fused(const flow_context *context, flow_tensor *const *inputs, int count, const flow_attributes *chain)
{
  enum { STEPS_OF_PLANS = 12 };
  const int dtype = inputs[0]->dtype;
  if (context->scopes->tape_count > 0 || (dtype != FLOW_FLOAT32 && dtype != FLOW_FLOAT64)) return 0;
  int usual = dtype == FLOW_FLOAT32 && chain->fused.count <= STEPS_OF_PLANS, on_host = 1;
  for (int s = 0; s < chain->fused.count; s++) usual &= (flow_op(chain->fused.steps[s].op)->flags & FLOW_OP_CHAINS) != 0;
  for (int i = 0; i < count; i++) {
    if (inputs[i]->graph || inputs[i]->dtype != dtype) return 0;
    on_host &= flow_tensor_place(inputs[i]) == NULL;
  }
  return usual || (on_host && has_own_kinds(count, chain));
}

/* made[s]: what step s gave; each step's inputs are numbered as those of `fused` are, first the inputs, then the steps. */
static flow_status apply_steps(flow_context *context, flow_tensor *const *inputs, int count, const flow_attributes *chain,
                               flow_tensor **made)
{
  for (int s = 0; s < chain->fused.count; s++) {
    int op = chain->fused.steps[s].op;
    flow_tensor *operands[3] = { NULL };
    for (int i = 0; i < flow_op(op)->min_inputs; i++) {
      int from = chain->fused.steps[s].inputs[i];
      operands[i] = from < count ? inputs[from] : made[from - count];
    }
    FLOW_TRY(flow_apply1(context, op, operands[0], operands[1], operands[2], NULL, &made[s]));
  }
  return FLOW_OK;
}

/* As one op where nothing else may see the steps, else step by step: the numbers are the same. */
flow_status flow_apply_chain(flow_context *context, flow_tensor *const *inputs, int input_count, const flow_attributes *chain,
                             flow_tensor **out)
{
  enum { MOST_STEPS = sizeof chain->fused.steps / sizeof *chain->fused.steps };
  FLOW_NEED(inputs, chain, out);
  if (input_count < 1 || chain->fused.count < 1 || chain->fused.count > MOST_STEPS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_apply_chain takes one input or more and 1 to %d steps, found %d inputs and %d steps",
                     MOST_STEPS, input_count, chain->fused.count);
  for (int i = 0; i < input_count; i++) {
    if (!inputs[i]) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_apply_chain: input %d is NULL, expected a tensor", i + 1);
    FLOW_TRY(flow_check_tensor("flow_apply_chain", inputs[i]));
  }
  for (int s = 0; s < chain->fused.count; s++) {
    const int op = chain->fused.steps[s].op;
    int inputs_of = op == FLOW_OP_where ? 3 : flow_op_elementwise(op), known = inputs_of > 0;
    for (int i = 0; i < inputs_of; i++) known &= chain->fused.steps[s].inputs[i] < input_count + s;
    if (!known)
      return flow_fail(FLOW_INVALID_ARGUMENT, "flow_apply_chain: step %d is not an elementwise op of what is there before it", s + 1);
  }
  if (runs_fused(context, inputs, input_count, chain)) return flow_apply(context, FLOW_OP_fused, inputs, input_count, chain, out);
  flow_tensor *made[MOST_STEPS] = { NULL };
  flow_status status = apply_steps(context, inputs, input_count, chain, made);
  if (status == FLOW_OK) *out = flow_tensor_retain(made[chain->fused.count - 1]);
  flow_tensors_release(made, chain->fused.count);
  return status;
}

/* What a policy's formulas cast is loose: see above. */
static void after_cast(flow_context *context, flow_tensor *cast)
{
  if (context->scopes->autocast == cast->dtype) flow_graph_loosen(cast);
}

const flow_applier flow_applying = { .apply = flow_apply, .after_cast = after_cast };
