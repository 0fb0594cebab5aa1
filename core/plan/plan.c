/* plan.c: from a traced graph to a plan: the passes in their order, copies of what the commit tail must see as it was, then schedule.c
 * and lifetimes.c.
 *
 * The order of the passes is that of what they leave for each other. fold_affine comes first, as it looks for bare convolutions;
 * fuse_quantized before fuse, which would take the bias and the relu that it looks for; fold_casts before fuse_elementwise, so that
 * casts which a kernel does are not made steps of a chain; transpose_filters gathers what is left of transpositions; fuse_optimizers needs
 * the products that nothing else has taken; advance_updates gives updates other operands; join_casts last, since it adds to those.
 * Gradients were taken before, so that no rewritten op needs a rule for them. */
#include "plan/plan.h"
#include "graph/loop.h"
#include "plan/lifetimes.h"
#include "plan/passes/advance_updates.h"
#include "plan/schedule.h"
#include "base/float_state.h"
#include "graph/variable.h"
#include <string.h>

/* Whether some dimension, not only the first, goes with the rows of the batch. A dimension -k is k rows for each row of the batch. */
static int symbolic_dims(const flow_signature *signature)
{
  for (int i = 0; i < signature->rank; i++)
    if (signature->dims[i] < 0) return 1;
  return 0;
}

static const flow_signature *signature_of(const flow_graph *graph, int value) { return &graph->values[value].signature; }

static int leads_with_rows(const flow_signature *signature) { return signature->rank > 0 && signature->dims[0] < 0; }

/* The batch kind of a node: that of its op's record, or what the record's rule says for these operands. Rules look at the first two
 * inputs at most. */
static flow_batch_kind kind_of(const flow_graph *graph, const flow_node *node)
{
  flow_signature inputs[2];
  int count = node->input_count < 2 ? node->input_count : 2;
  for (int i = 0; i < count; i++) inputs[i] = *signature_of(graph, node->inputs[i]);
  return flow_op_batch_kind(node->op, &node->attributes, inputs, count);
}

/* A record says in a mask which inputs are cut with the rows (row_inputs), or that those are whose first dimension and rank are the
 * result's, as of elementwise ops that broadcast. */
int flow_node_row_input(const flow_graph *graph, const flow_node *node, int input)
{
  const flow_op_record *record = flow_op(node->op);
  const flow_signature *signature = signature_of(graph, node->inputs[input]);
  if (!leads_with_rows(signature)) return 0;
  if (record->row_inputs != FLOW_ROWS_BY_SHAPE) return input < 30 && (record->row_inputs >> input & 1);
  const flow_signature *out = signature_of(graph, node->outputs[0]);
  return signature->rank == out->rank && signature->dims[0] == out->dims[0];
}

int flow_node_row_output(const flow_graph *graph, const flow_node *node, int output)
{
  if (!leads_with_rows(signature_of(graph, node->outputs[output]))) return 0;
  return kind_of(graph, node) == FLOW_MAP || (flow_op(node->op)->row_outputs >> output & 1);
}

/* A node goes by rows if each operand either has its rows on the first axis, and there only, or has none at all. An op that makes rows
 * on another axis, or of something without rows, needs the whole batch. On a device no node does: kernels there see whole operands. */
int flow_node_by_rows(const flow_graph *graph, const flow_node *node)
{
  flow_batch_kind kind = kind_of(graph, node);
  int rows = 0;
  if (graph->place || kind == FLOW_WHOLE || (flow_op(node->op)->flags & FLOW_OP_EFFECT)) return 0;
  for (int i = 0; i < node->input_count; i++) {
    const flow_signature *signature = signature_of(graph, node->inputs[i]);
    if (flow_node_row_input(graph, node, i)) {
      rows++;
      for (int d = 1; d < signature->rank; d++)
        if (signature->dims[d] < 0) return 0;
    } else if (symbolic_dims(signature)) {
      return 0;   /* rows on another axis: needs the whole batch */
    }
  }
  if (!rows) return 0;
  for (int i = 0; i < node->output_count; i++) {
    const flow_signature *signature = signature_of(graph, node->outputs[i]);
    if (kind == FLOW_MAP && !leads_with_rows(signature) && flow_shape_size(signature->rank, signature->dims) != 0) return 0;
    for (int d = 1; d < signature->rank; d++)
      if (signature->dims[d] < 0) return 0;
  }
  return 1;
}

/* Gives nodes of the tail that want a variable as it was when the run began a copy, made before any effect. Effects, and nodes that are
 * to read what effects have written (flow_is_ordered), see the variable itself. One copy serves all readers. */
static flow_status keep_old_versions(flow_graph *graph)
{
  static const flow_attributes none;
  int nodes = graph->node_count, values = graph->value_count;
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)(nodes + 1) + sizeof(int) * (size_t)(values + 1), &block));
  int *copies = block;                              /* [value]: its copy, 0: none yet */
  char *tail = (char *)(copies + values + 1);
  flow_status status = FLOW_OK;
  flow_mark_tail(graph, tail);
  for (int n = 0; n < nodes && status == FLOW_OK; n++) {
    if (!tail[n] || flow_is_ordered(graph, n)) continue;
    for (int i = 0; i < graph->nodes[n].input_count && status == FLOW_OK; i++) {
      int value = graph->nodes[n].inputs[i];
      if (graph->values[flow_graph_root(graph, value)].kind != FLOW_VALUE_VARIABLE) continue;
      flow_signature signature = graph->values[value].signature;
      if (!copies[value]) status = flow_graph_append(graph, FLOW_OP_copy, &value, 1, &none, &signature, &copies[value]);
      if (status == FLOW_OK) graph->nodes[n].inputs[i] = copies[value];
    }
  }
  flow_free(block);
  return status;
}

/* ---- effects ------------------------------------------------------------------------------------------------------------ */

int flow_graph_writes(const flow_graph *graph)
{
  for (int n = 0; n < graph->node_count; n++)
    if (flow_op(graph->nodes[n].op)->flags & FLOW_OP_EFFECT) return 1;
  return 0;
}

int flow_graph_trains(const flow_graph *graph)
{
  for (int n = 0; n < graph->node_count; n++)
    if (flow_op(graph->nodes[n].op)->flags & FLOW_OP_EFFECT && graph->nodes[n].op != FLOW_OP_assign) return 1;
  return 0;
}

/* ---- making ------------------------------------------------------------------------------------------------------------- */

/* The values to return. A variable's storage is copied first: the commit tail may overwrite it. */
static flow_status find_outputs(flow_plan *plan, flow_tensor *const *outputs, int count)
{
  flow_graph *graph = plan->graph;
  void *block;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(count + 1), &block));
  plan->outputs = block;
  plan->output_count = count;
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_tensor("result of the traced function", outputs[i]));
    FLOW_TRY(flow_graph_operand(graph, outputs[i], &plan->outputs[i]));
    if (graph->values[flow_graph_root(graph, plan->outputs[i])].kind != FLOW_VALUE_VARIABLE) continue;
    static const flow_attributes none;
    flow_signature signature = graph->values[plan->outputs[i]].signature;
    FLOW_TRY(flow_graph_append(graph, FLOW_OP_copy, &plan->outputs[i], 1, &none, &signature, &plan->outputs[i]));
  }
  return FLOW_OK;
}

/* A pass rewrites the graph in place. live[node]: reached from outputs or effects; dead nodes stay where they are and are not to be
 * counted as readers. outputs: the plan's, whose values must stay what they are. */
typedef flow_status (*pass)(flow_graph *graph, const char *live, const int *outputs, int output_count);

/* Liveness is found again for each pass, as the one before has left nodes that nothing reads any more. */
static flow_status run_pass(pass rewrite, flow_graph *graph, const int *outputs, int count)
{
  void *live;
  FLOW_TRY(flow_alloc((size_t)graph->node_count + 1, &live));
  flow_mark_live(graph, outputs, count, live);
  flow_status status = rewrite(graph, live, outputs, count);
  flow_free(live);
  return status;
}

static flow_status fuse_all(flow_graph *graph, const char *live, const int *outputs, int count)
{
  return flow_graph_fuse(graph, live, 0, outputs, count);
}

/* Checks that sums over replicas are of values that all replicas have. */
static flow_status check_sums(const flow_graph *graph, const char *live)
{
  for (int n = 0; n < graph->node_count && graph->replicas > 1; n++) {
    if (!live[n] || !(flow_op(graph->nodes[n].op)->flags & FLOW_OP_COLLECTIVE)) continue;
    const flow_signature *s = signature_of(graph, graph->nodes[n].inputs[0]);
    if (symbolic_dims(s) && graph->nodes[n].op == FLOW_OP_all_reduce)
      return flow_fail(FLOW_INVALID_ARGUMENT, "all_reduce of a tensor {rows, ...} of the batch: replicas have different rows; take its "
                       "sum or mean over the rows first, or gather it outside");
  }
  return FLOW_OK;
}

/* All that flow_plan_make does; what was made before a failure is freed with the plan. The graph is closed before it is scheduled:
 * nothing is appended to it from here on. */
static flow_status fill_plan(flow_plan *plan, flow_tensor *const *outputs, int count)
{
  flow_graph *graph = plan->graph;
  FLOW_TRY(find_outputs(plan, outputs, count));
  if (graph->place) FLOW_TRY(flow_graph_unroll(graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fold_affine, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_quantized, graph, plan->outputs, count));
  FLOW_TRY(run_pass(fuse_all, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fold_casts, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_images, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_ceilings, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_separable, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_sums, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_relu_gradients, graph, plan->outputs, count));
  if (!graph->place) FLOW_TRY(run_pass(flow_graph_fold_transposes, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_batch_norm, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_normalize, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_attention, graph, plan->outputs, count));
  if (graph->place) FLOW_TRY(run_pass(flow_graph_fold_transposes, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_keep_attention, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_elementwise, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_gathers, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_transpose_filters, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_optimizers, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_advance_updates, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_join_casts, graph, plan->outputs, count));
  FLOW_TRY(keep_old_versions(graph));
  FLOW_TRY(flow_graph_place_constants(graph));
  graph->closed = 1;

  void *live;
  FLOW_TRY(flow_alloc((size_t)graph->node_count + 1, &live));
  flow_mark_live(graph, plan->outputs, count, live);
  flow_status status = check_sums(graph, live);
  if (status == FLOW_OK) status = flow_plan_loops(graph, live);
  if (status == FLOW_OK) status = flow_plan_schedule(plan, live);
  flow_free(live);
  if (status != FLOW_OK) return status;
  return flow_find_lifetimes(plan);
}

flow_status flow_plan_make(flow_graph *graph, flow_tensor *const *outputs, int count, flow_plan **out)
{
  FLOW_DEFAULT_FLOATS;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_plan), &block));
  flow_plan *plan = block;
  atomic_init(&plan->references, 1);
  plan->graph = flow_graph_retain(graph);
  flow_status status = fill_plan(plan, outputs, count);
  if (status != FLOW_OK) {
    flow_plan_release(plan);
    return status;
  }
  *out = plan;
  return FLOW_OK;
}

flow_plan *flow_plan_retain(flow_plan *plan)
{
  atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
  return plan;
}

void flow_plan_release(flow_plan *plan)
{
  if (!plan || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1) return;
  flow_graph_release(plan->graph);
  flow_free(plan->order);
  flow_free(plan->segments);
  flow_free(plan->lifetimes);
  flow_free(plan->roots);
  flow_free(plan->outputs);
  flow_free(plan);
}

flow_variable *flow_plan_variable(flow_plan *plan, int index)
{
  return plan && index >= 0 && index < plan->graph->version_count ? plan->graph->versions[index].variable : NULL;
}

int flow_plan_describe(const flow_plan *plan, char *text, int size)
{
  flow_text out = flow_text_into(text, size);
  if (!plan) return 0;
  for (int s = 0; s < plan->segment_count; s++)
    for (int k = 0; k < plan->segments[s].count; k++) {
      const flow_node *node = &plan->graph->nodes[plan->order[plan->segments[s].first + k]];
      flow_text_add(&out, "%3d %-5s %-28s", s, plan->segments[s].tail ? "tail" : plan->segments[s].by_rows ? "rows" : "whole",
                    flow_op(node->op)->name);
      for (int i = 0; i < node->output_count; i++) {
        const flow_signature *signature = signature_of(plan->graph, node->outputs[i]);
        flow_text_add_shape(&out, signature->rank, signature->dims);
        flow_text_add(&out, " ");
      }
      flow_text_add(&out, "\n");
    }
  return out.length;
}
