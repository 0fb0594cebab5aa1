/* autodiff.c: reverse differentiation. One pass for eager tapes and traces: it walks a tape's nodes backwards and calls the gradient
 * rule of each op's record, which itself just calls ops. In a trace these calls append nodes to the same graph, after those that are
 * walked; if another tape records, they are recorded, so that gradients can be differentiated again.
 *
 * The walk is Linnainmaa's: gradients[v] is complete when the node that makes v is reached, since every reader of v comes later in the
 * tape and was visited before. `wanted` limits it to what lies between a source and a target, so that a gradient for one layer does not
 * compute those of layers before it. */
#include "graph/tape.h"
#include "autodiff/gradients.h"
#include "autodiff/apply.h"
#include "autodiff/expression.h"
#include "autodiff/parts.h"
#include "base/float_state.h"
#include "base/need.h"
#include "graph/variable.h"
#include <string.h>

/* One walk back over a trace. Arrays are as long as the values that existed before it. */
typedef struct pass {
  flow_context *context;
  flow_graph   *graph;
  int           value_count;     /* values that existed before the pass; rules append more */
  char         *wanted;          /* [value]: some source reaches it */
  flow_tensor **gradients;       /* [value]: sum so far; references */
  flow_parts    parts;           /* of values that slices read, not yet added up */
} pass;

/* gradients[value] += gradient; takes over the reference. */
static flow_status accumulate(pass *p, int value, flow_tensor *gradient)
{
  flow_tensor *before = p->gradients[value], *sum;
  if (!before) {
    p->gradients[value] = gradient;
    return FLOW_OK;
  }
  flow_status status = flow_apply1(p->context, FLOW_OP_add, before, gradient, NULL, NULL, &sum);
  flow_tensor_release(gradient);
  if (status != FLOW_OK) return status;
  flow_tensor_release(before);
  p->gradients[value] = sum;
  return FLOW_OK;
}

static flow_status accumulate_taken(void *state, int value, flow_tensor *gradient) { return accumulate(state, value, gradient); }

/* gradients[value] is complete afterwards. Parts are added up here and not when they come, since only all of them together can be
 * joined. */
static flow_status settle(pass *p, int value)
{
  if (value >= p->value_count || p->parts.first[value] < 0) return FLOW_OK;
  flow_tensor *whole;
  FLOW_TRY(flow_graph_tensor(p->graph, value, &whole));
  flow_status status = flow_parts_take(&p->parts, p->context, value, whole, accumulate_taken, p);
  flow_tensor_release(whole);
  return status;
}

/* wanted[v] = 1 for the sources: all values that stand for a variable (each read of it is one), or the value of a tensor. What the tape
 * has not seen has no gradient. */
static void mark_sources(const pass *p, const flow_tape *tape, flow_tensor *const *tensors, flow_variable *const *variables, int count)
{
  for (int i = 0; i < count; i++) {
    if (variables && variables[i]) {
      for (int v = 0; v < p->value_count; v++)
        if (p->graph->values[v].variable == variables[i] && variables[i]->trainable) p->wanted[v] = 1;
    } else if (tensors && tensors[i]) {
      int v = flow_tape_find(tape, tensors[i]);
      if (v >= 0) p->wanted[v] = 1;
    }
  }
}

/* wanted[v] = 1 for what follows from a source through ops that have a rule. Integers carry no gradient. Nodes are in the order in
 * which they ran, so that one walk forward is enough. */
static void mark_reached(const pass *p, int begin, int end)
{
  for (int n = begin; n < end; n++) {
    const flow_node *node = &p->graph->nodes[n];
    int reached = 0;
    for (int i = 0; i < node->input_count; i++) reached |= p->wanted[node->inputs[i]];
    if (!reached || !flow_gradient_of(node->op)) continue;
    for (int i = 0; i < node->output_count; i++)
      if (flow_dtype_is_float(p->graph->values[node->outputs[i]].signature.dtype)) p->wanted[node->outputs[i]] = 1;
  }
}

/* Calls one node's rule with tensors for its values and adds what it gives to the gradients of its inputs. Gradients of values that the
 * pass itself appended are not kept: they have numbers from value_count on. `needed` tells the rule which gradients are wanted: it
 * may leave out the others, and those that it makes are dropped. */
static flow_status step_back(pass *p, int index)
{
  /* A copy: rules append nodes to the same graph in a trace, which may move the array. */
  flow_node node = p->graph->nodes[index];
  int flows = 0, n = node.input_count, m = node.output_count;
  for (int i = 0; i < m; i++) {
    FLOW_TRY(settle(p, node.outputs[i]));
    flows |= node.outputs[i] < p->value_count && p->gradients[node.outputs[i]] != NULL;
  }
  if (!flows || !flow_gradient_of(node.op)) return FLOW_OK;   /* no rule: a source may still be here */

  void *block;
  FLOW_TRY(flow_alloc_zero((sizeof(flow_tensor *) * 2 + sizeof(int)) * (size_t)(n + m), &block));
  flow_tensor **inputs = block, **outputs = inputs + n, **input_gradients = outputs + m, **output_gradients = input_gradients + n;
  int *needed = (int *)(output_gradients + m), any = 0;
  flow_status status = FLOW_OK;
  for (int i = 0; i < n; i++) any |= needed[i] = node.inputs[i] < p->value_count && p->wanted[node.inputs[i]];
  if (any) {
    for (int i = 0; i < n && status == FLOW_OK; i++) status = flow_graph_tensor(p->graph, node.inputs[i], &inputs[i]);
    for (int i = 0; i < m && status == FLOW_OK; i++) {
      status = flow_graph_tensor(p->graph, node.outputs[i], &outputs[i]);
      output_gradients[i] = node.outputs[i] < p->value_count ? p->gradients[node.outputs[i]] : NULL;
    }
    flow_gradient_step step = {
      .applier = &flow_applying,
      .context = p->context,
      .op = node.op,
      .input_count = n,
      .output_count = m,
      .attributes = &node.attributes,
      .inputs = inputs,
      .outputs = outputs,
      .output_gradients = output_gradients,
      .needed = needed,
      .input_gradients = input_gradients
    };
    int first = p->graph->node_count;
    if (status == FLOW_OK) status = flow_gradient_of(node.op)(&step);
    for (int i = first; i < p->graph->node_count; i++) p->graph->nodes[i].bfloat16 |= node.bfloat16;
    for (int i = 0; i < n; i++) {
      if (status != FLOW_OK || !input_gradients[i] || !needed[i]) flow_tensor_release(input_gradients[i]);
      else if (step.is_part) status = flow_parts_add(&p->parts, node.inputs[i], input_gradients[i], &node.attributes);
      else status = accumulate(p, node.inputs[i], input_gradients[i]);
    }
    for (int i = 0; i < n + m; i++) flow_tensor_release(inputs[i]);   /* inputs and outputs are side by side */
  }
  flow_free(block);
  return status;
}

/* d target / d target: what its caller gives, or ones of its shape. */
static flow_status seed(pass *p, flow_tensor *target, flow_tensor *given, int value)
{
  if (given) return accumulate(p, value, flow_tensor_retain(given));
  flow_tensor *one, *ones;
  flow_attributes shape = { .shape = { .rank = target->rank } };
  FLOW_TRY(flow_tensor_scalar(target->dtype, 1.0, &one));
  memcpy(shape.shape.dims, target->shape, sizeof(int64_t) * (size_t)target->rank);
  flow_status status = FLOW_OK;
  if (target->rank) status = flow_apply1(p->context, FLOW_OP_broadcast_to, one, NULL, NULL, &shape, &ones);
  else ones = flow_tensor_retain(one);
  flow_tensor_release(one);
  return status == FLOW_OK ? accumulate(p, value, ones) : status;
}

/* *out: the sum of what arrived at a source, a new reference, or NULL: nothing did. A variable that was read several times has a
 * gradient for each read. */
static flow_status collect(pass *p, const flow_tape *tape, flow_tensor *tensor, const flow_variable *variable, flow_tensor **out)
{
  *out = NULL;
  if (!variable) {
    int v = tensor ? flow_tape_find(tape, tensor) : -1;
    if (v >= 0) FLOW_TRY(settle(p, v));
    if (v >= 0 && v < p->value_count && p->gradients[v]) *out = flow_tensor_retain(p->gradients[v]);
    return FLOW_OK;
  }
  for (int v = 0; v < p->value_count; v++) {
    if (p->graph->values[v].variable != variable || !p->wanted[v]) continue;
    FLOW_TRY(settle(p, v));
    if (!p->gradients[v]) continue;
    if (!*out) {
      *out = flow_tensor_retain(p->gradients[v]);
      continue;
    }
    flow_tensor *sum;
    FLOW_TRY(flow_apply1(p->context, FLOW_OP_add, *out, p->gradients[v], NULL, NULL, &sum));
    flow_tensor_release(*out);
    *out = sum;
  }
  return FLOW_OK;
}

/* Before a traced tape is walked: fusion, which leaves the targets and the sources alone. A source that an earlier call let a fused op
 * swallow is lost. Fused ops have their own gradients, which read less; that is why fusion comes before the walk and not only with
 * the plan. */
static flow_status fuse(flow_tape *tape, flow_tensor *const *targets, int target_count, flow_tensor *const *tensors,
                        flow_variable *const *variables, int count)
{
  void *block;
  FLOW_TRY(flow_alloc(sizeof(int) * ((size_t)count + (size_t)target_count), &block));
  int *kept = block, kept_count = 0, value;
  flow_status status = FLOW_OK;
  for (int i = 0; i < target_count; i++)
    if ((value = flow_tape_find(tape, targets[i])) >= 0) kept[kept_count++] = value;
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    if ((variables && variables[i]) || !tensors || !tensors[i] || (value = flow_tape_find(tape, tensors[i])) < 0) continue;
    kept[kept_count++] = value;
    if (tape->graph->values[value].swallowed)
      status = flow_fail(FLOW_INVALID_STATE, "gradient: source %d was fused into another op when gradients were taken before; ask for all "
                         "gradients of intermediate results in the first call", i + 1);
  }
  if (status == FLOW_OK) status = flow_graph_fuse(tape->graph, NULL, tape->begin, kept, kept_count);
  flow_free(block);
  return status;
}

/* given: the gradient that arrives at the target, or NULL. */
static flow_status check_target(const flow_tensor *target, const flow_tensor *given)
{
  FLOW_TRY(flow_check_tensor("flow_tape_gradient: target", target));
  if (!flow_dtype_is_float(target->dtype))
    return flow_fail(FLOW_INVALID_ARGUMENT, "gradient: the target is %s; only floating-point results have gradients",
                     flow_dtype_name(target->dtype));
  if (!given) return FLOW_OK;
  if (given->dtype != target->dtype)
    return flow_fail(FLOW_INVALID_ARGUMENT, "gradient: the target is %s, its output gradient %s", flow_dtype_name(target->dtype),
                     flow_dtype_name(given->dtype));
  if (given->rank != target->rank || memcmp(given->shape, target->shape, sizeof(int64_t) * (size_t)target->rank) != 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "gradient: the output gradient has the shape %s, its target %s",
                     flow_shape_text(given->rank, given->shape), flow_shape_text(target->rank, target->shape));
  return FLOW_OK;
}

/* The order: fusion, sources, what they reach, the seeds, the walk, the results. All memory of the pass is one block of tables by
 * value. out[i]: new references; NULL: source i does not influence the targets. The tape may be used again. */
flow_status flow_tape_gradients(flow_context *context, flow_tape *tape, flow_tensor *const *targets, flow_tensor *const *output_gradients,
                                int target_count, flow_tensor *const *tensors, flow_variable *const *variables, int count,
                                flow_tensor **out)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(context, tape);
  if (target_count > 0) FLOW_NEED(targets);
  if (count > 0) FLOW_NEED(out);
  for (int i = 0; i < target_count; i++) FLOW_TRY(check_target(targets[i], output_gradients ? output_gradients[i] : NULL));
  if (tape->traced && flow_context_trace(context) != tape->graph)
    return flow_fail(FLOW_INVALID_STATE, "gradient: the trace that this tape recorded has ended; take gradients inside the traced "
                     "function");
  for (int i = 0; i < count; i++) out[i] = NULL;
  if (tape->traced) FLOW_TRY(fuse(tape, targets, target_count, tensors, variables, count));

  pass p = { .context = context, .graph = tape->graph, .value_count = tape->graph->value_count };
  int end = tape->end >= 0 ? tape->end : tape->graph->node_count;
  void *block;
  FLOW_TRY(flow_alloc_zero((sizeof(flow_tensor *) + sizeof(int) + 1) * (size_t)(p.value_count + 1), &block));
  p.gradients = block;
  p.parts.first = (int *)(p.gradients + p.value_count + 1);
  p.wanted = (char *)(p.parts.first + p.value_count + 1);
  for (int v = 0; v < p.value_count; v++) p.parts.first[v] = -1;
  mark_sources(&p, tape, tensors, variables, count);
  mark_reached(&p, tape->begin, end);
  flow_status status = FLOW_OK;
  for (int i = 0; i < target_count && status == FLOW_OK; i++) {
    int value = flow_tape_find(tape, targets[i]);      /* < 0: it does not depend on anything watched */
    if (value >= 0) status = seed(&p, targets[i], output_gradients ? output_gradients[i] : NULL, value);
  }
  for (int n = end - 1; n >= tape->begin && status == FLOW_OK; n--) status = step_back(&p, n);
  for (int i = 0; i < count && status == FLOW_OK; i++)
    status = collect(&p, tape, tensors ? tensors[i] : NULL, variables ? variables[i] : NULL, &out[i]);
  for (int v = 0; v < p.value_count; v++) flow_tensor_release(p.gradients[v]);
  flow_parts_clear(&p.parts);
  flow_free(block);
  if (status != FLOW_OK)
    for (int i = 0; i < count; i++) {
      flow_tensor_release(out[i]);
      out[i] = NULL;
    }
  return status;
}

flow_status flow_tape_gradient(flow_context *context, flow_tape *tape, flow_tensor *target, flow_tensor *const *tensors,
                               flow_variable *const *variables, int count, flow_tensor **out)
{
  FLOW_NEED(context, tape, target);
  if (count > 0) FLOW_NEED(out);
  return flow_tape_gradients(context, tape, &target, NULL, 1, tensors, variables, count, out);
}
