/* plan.c: from a traced graph to a plan: dead nodes out, commit tail last, segments, lifetimes. */
#include "plan/plan.h"
#include "graph/loop.h"
#include "plan/lifetimes.h"
#include "plan/passes/advance_updates.h"
#include "base/float_state.h"
#include "graph/variable.h"
#include <string.h>

static int symbolic_dims(const flow_signature *signature)
{
  for (int i = 0; i < signature->rank; i++)
    if (signature->dims[i] < 0) return 1;
  return 0;
}

static const flow_signature *signature_of(const flow_graph *graph, int value) { return &graph->values[value].signature; }

static int leads_with_rows(const flow_signature *signature) { return signature->rank > 0 && signature->dims[0] < 0; }

static flow_batch_kind kind_of(const flow_graph *graph, const flow_node *node)
{
  const flow_op_record *record = flow_op(node->op);
  flow_signature inputs[2];
  int count = node->input_count < 2 ? node->input_count : 2;
  if (!record->kind_rule || !count) return record->kind;
  for (int i = 0; i < count; i++) inputs[i] = *signature_of(graph, node->inputs[i]);
  return record->kind_rule(&node->attributes, inputs, count);
}

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

/* ---- scheduling ------------------------------------------------------------------------------------------------------ */

typedef struct schedule {
  flow_graph *graph;
  flow_plan  *plan;
  char       *live, *tail, *done;      /* [node] */
  int        *available;               /* [value]: segment that made it complete; -1 not yet */
  int        *round;                   /* [node]: how many sums over replicas it comes after */
  int         now;                     /* nodes of later rounds are not taken yet */
  char       *rows_here;               /* [value]: row output of the segment being built */
} schedule;

static int is_effect(const flow_graph *graph, int node) { return (flow_op(graph->nodes[node].op)->flags & FLOW_OP_EFFECT) != 0; }

/* The commit tail: effects on variables, and nodes that read a variable after one. */
static void mark_tail(const flow_graph *graph, char *tail)
{
  for (int n = 0; n < graph->node_count; n++) {
    tail[n] = (char)(is_effect(graph, n) && !flow_is_advanced(graph, &graph->nodes[n]));
    for (int i = 0; i < graph->nodes[n].input_count; i++) {
      const flow_value *v = &graph->values[graph->nodes[n].inputs[i]];
      tail[n] |= (char)(v->kind == FLOW_VALUE_RESULT ? tail[v->node] : v->late);
    }
  }
}

/* Nodes whose order matters: effects, and reads of storage after an effect. They keep the order of the trace. */
static int is_ordered(const flow_graph *graph, int node)
{
  int late = 0;
  for (int i = 0; i < graph->nodes[node].input_count; i++) late |= graph->values[graph->nodes[node].inputs[i]].late;
  return late || is_effect(graph, node);
}

/* Gives nodes of the tail that want a variable as it was when the run began a copy, made before any effect. */
static flow_status keep_old_versions(flow_graph *graph)
{
  static const flow_attributes none;
  int nodes = graph->node_count, values = graph->value_count;
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)(nodes + 1) + sizeof(int) * (size_t)(values + 1), &block));
  int *copies = block;                              /* [value]: its copy, 0: none yet */
  char *tail = (char *)(copies + values + 1);
  flow_status status = FLOW_OK;
  mark_tail(graph, tail);
  for (int n = 0; n < nodes && status == FLOW_OK; n++) {
    if (!tail[n] || is_ordered(graph, n)) continue;
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

/* Effects and outputs are live, and all that they read. */
static void mark_live(const flow_graph *graph, const int *outputs, int count, char *live)
{
  memset(live, 0, (size_t)graph->node_count);
  for (int i = 0; i < count; i++)
    if (graph->values[outputs[i]].kind == FLOW_VALUE_RESULT) live[graph->values[outputs[i]].node] = 1;
  for (int n = graph->node_count - 1; n >= 0; n--) {
    live[n] |= (char)is_effect(graph, n);
    if (!live[n]) continue;
    for (int i = 0; i < graph->nodes[n].input_count; i++) {
      const flow_value *v = &graph->values[graph->nodes[n].inputs[i]];
      if (v->kind == FLOW_VALUE_RESULT) live[v->node] = 1;
    }
  }
}

/* Whether every input of the node is there: made by an earlier segment, or as rows by this one. */
static int ready(const schedule *s, const flow_node *node, int as_rows)
{
  for (int i = 0; i < node->input_count; i++) {
    int value = node->inputs[i];
    if (s->graph->values[value].kind != FLOW_VALUE_RESULT || s->available[value] >= 0) continue;
    if (!as_rows || !s->rows_here[value]) return 0;
    if (!(flow_op(node->op)->flags & FLOW_OP_ALIAS) && !flow_node_row_input(s->graph, node, i)) return 0;
  }
  return 1;
}

static void take(schedule *s, int node)
{
  s->plan->order[s->plan->order_count++] = node;
  s->done[node] = 1;
}

/* A node of the body, or of the tail, that may run as soon as its inputs are computed. */
static int waits(const schedule *s, int n, int tail)
{
  return s->live[n] && !s->done[n] && s->tail[n] == tail && s->round[n] <= s->now && !is_ordered(s->graph, n);
}

/* Nodes that read a sum over replicas come after all others, so that replicas wait for each other once, at the end, and not for each sum of
 * a metric. Returns the last round. */
static int find_rounds(const flow_graph *graph, int *round)
{
  int last = 0, advanced = 0;              /* of updates in the body, and of what reads them */
  for (int n = 0; n < graph->node_count; n++) {
    for (int i = 0; i < graph->nodes[n].input_count; i++) {
      const flow_value *v = &graph->values[graph->nodes[n].inputs[i]];
      if (v->kind != FLOW_VALUE_RESULT) continue;
      int after = round[v->node] + ((flow_op(graph->nodes[v->node].op)->flags & FLOW_OP_COLLECTIVE) != 0);
      if (after > round[n]) round[n] = after;
      if (after > last) last = after;
    }
    if (!flow_is_advanced(graph, &graph->nodes[n])) continue;
    if (advanced > round[n]) round[n] = advanced;
    advanced = round[n];
  }
  return last;
}

/* On a device, where small nodes that are next to each other cost hardly more than one: whether each operand has few elements, in a
 * batch of usual size. Sums over replicas are none of them: others wait; nor are products, which a library makes by a separate launch. */
static int is_small(const flow_graph *graph, const flow_node *node)
{
  enum { FEW = 8192, USUAL_ROWS = 64 };
  if (!graph->place || flow_op(node->op)->flags & FLOW_OP_COLLECTIVE || node->op == FLOW_OP_matmul || node->op == FLOW_OP_dense) return 0;
  for (int i = 0; i < node->input_count + node->output_count; i++) {
    const flow_signature *s = signature_of(graph, i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count]);
    double elements = 1;
    for (int d = 0; d < s->rank; d++) elements *= s->dims[d] < 0 ? (double)-s->dims[d] * USUAL_ROWS : (double)s->dims[d];
    if (elements > FEW) return 0;
  }
  return 1;
}

/* What a node adds up over rows. */
static size_t sum_bytes(const flow_graph *graph, const flow_node *node)
{
  size_t bytes = 0;
  for (int i = 0; i < node->output_count; i++) {
    const flow_signature *signature = signature_of(graph, node->outputs[i]);
    if (!flow_node_row_output(graph, node, i))
      bytes += (size_t)flow_shape_size(signature->rank, signature->dims) * (size_t)flow_dtype_size(signature->dtype);
  }
  return bytes;
}

/* Takes the nodes that can join a ROWS segment now. Aliases join, too: they do nothing. Each slot of rows has its own sums, so a
 * segment ends before they take so much that there could be few slots only (core/run/chunks.c): gradients of large layers get their own. */
static int take_rows(schedule *s, int segment, int tail)
{
  const size_t most = (size_t)8 << 20;
  flow_graph *graph = s->graph;
  int first = s->plan->order_count;
  size_t sums = 0;
  for (int n = 0; n < graph->node_count; n++) {
    const flow_node *node = &graph->nodes[n];
    if (!waits(s, n, tail) || !flow_node_by_rows(graph, node) || !ready(s, node, 1)) continue;
    size_t added = flow_op(node->op)->flags & FLOW_OP_ALIAS ? 0 : sum_bytes(graph, node);
    if (added > 0 && sums > 0 && sums + added > most) break;
    sums += added;
    take(s, n);
    for (int i = 0; i < node->output_count; i++) s->rows_here[node->outputs[i]] = (char)flow_node_row_output(graph, node, i);
  }
  for (int k = first; k < s->plan->order_count; k++) {
    const flow_node *node = &graph->nodes[s->plan->order[k]];
    for (int i = 0; i < node->output_count; i++) {
      s->available[node->outputs[i]] = segment;
      s->rows_here[node->outputs[i]] = 0;
    }
  }
  return s->plan->order_count - first;
}

static flow_status add_segment(flow_plan *plan, int *capacity, flow_segment segment)
{
  FLOW_TRY(flow_grow(&plan->segments, sizeof(flow_segment), plan->segment_count + 1, capacity));
  plan->segments[plan->segment_count++] = segment;
  return FLOW_OK;
}

static flow_status take_whole(schedule *s, int n, int *capacity)
{
  const flow_node *node = &s->graph->nodes[n];
  flow_plan *plan = s->plan;
  take(s, n);
  for (int i = 0; i < node->output_count; i++) s->available[node->outputs[i]] = plan->segment_count;
  return add_segment(plan, capacity, (flow_segment){ .tail = s->tail[n], .first = plan->order_count - 1, .count = 1 });
}

/* Takes every whole node that is ready: the small ones, or the others. How many: *taken. */
static flow_status take_all_whole(schedule *s, int tail, int small, int *capacity, int *taken)
{
  flow_graph *graph = s->graph;
  *taken = 0;
  for (int n = 0; n < graph->node_count; n++) {
    const flow_node *node = &graph->nodes[n];
    if (!waits(s, n, tail) || flow_node_by_rows(graph, node) || !ready(s, node, 0) || is_small(graph, node) != small) continue;
    FLOW_TRY(take_whole(s, n, capacity));
    ++*taken;
  }
  return FLOW_OK;
}

/* Everything that can run now. Alternates: as many rows nodes as fit, then every whole node that is ready; small ones when there is
 * nothing else, so that many of them come together. */
static flow_status take_ready(schedule *s, int tail, int *capacity)
{
  flow_plan *plan = s->plan;
  int progress = 1;
  while (progress) {
    int first = plan->order_count, taken;
    progress = take_rows(s, plan->segment_count, tail);
    if (progress) FLOW_TRY(add_segment(plan, capacity, (flow_segment){ .by_rows = 1, .tail = tail, .first = first, .count = progress }));
    FLOW_TRY(take_all_whole(s, tail, 0, capacity, &taken));
    progress += taken;
    if (!progress) FLOW_TRY(take_all_whole(s, tail, 1, capacity, &progress));
  }
  return FLOW_OK;
}

/* Takes updates of the body and what reads them, from node *next on and in the order of the trace, as far as they are ready. */
static flow_status take_advanced(schedule *s, int *next, int *capacity, int *taken)
{
  *taken = 0;
  for (; *next < s->graph->node_count; ++*next) {
    const flow_node *node = &s->graph->nodes[*next];
    if (!s->live[*next] || s->tail[*next] || !is_ordered(s->graph, *next)) continue;
    if (s->round[*next] > s->now || !ready(s, node, 0)) break;
    FLOW_TRY(take_whole(s, *next, capacity));
    ++*taken;
  }
  return FLOW_OK;
}

/* Schedules the body, then the effects in the order of the trace, each after the nodes of the tail that it needs, then the rest of the
 * tail. */
static flow_status make_segments(schedule *s)
{
  int capacity = 0, last = find_rounds(s->graph, s->round), next = 0, taken;
  for (s->now = 0; s->now <= last; s->now++)
    do {
      FLOW_TRY(take_ready(s, 0, &capacity));
      FLOW_TRY(take_advanced(s, &next, &capacity, &taken));
    } while (taken);
  for (int n = 0; n < s->graph->node_count; n++) {
    if (!s->live[n] || !s->tail[n] || !is_ordered(s->graph, n)) continue;
    if (!ready(s, &s->graph->nodes[n], 0)) FLOW_TRY(take_ready(s, 1, &capacity));
    FLOW_TRY(take_whole(s, n, &capacity));
  }
  return take_ready(s, 1, &capacity);
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

typedef flow_status (*pass)(flow_graph *graph, const char *live, const int *outputs, int output_count);

static flow_status run_pass(pass rewrite, flow_graph *graph, const int *outputs, int count)
{
  void *live;
  FLOW_TRY(flow_alloc((size_t)graph->node_count + 1, &live));
  mark_live(graph, outputs, count, live);
  flow_status status = rewrite(graph, live, outputs, count);
  flow_free(live);
  return status;
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

static flow_status fill_plan(flow_plan *plan, flow_tensor *const *outputs, int count)
{
  flow_graph *graph = plan->graph;
  FLOW_TRY(find_outputs(plan, outputs, count));
  if (graph->place) FLOW_TRY(flow_graph_unroll(graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fold_affine, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_quantized, graph, plan->outputs, count));
  FLOW_TRY(flow_graph_fuse(graph, 0, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fold_casts, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_relu_gradients, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_batch_norm, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_elementwise, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_gathers, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_transpose_filters, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_join_casts, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_fuse_optimizers, graph, plan->outputs, count));
  FLOW_TRY(run_pass(flow_graph_advance_updates, graph, plan->outputs, count));
  FLOW_TRY(keep_old_versions(graph));
  FLOW_TRY(flow_graph_place_constants(graph));
  graph->closed = 1;

  void *block;
  size_t nodes = (size_t)graph->node_count + 1, values = (size_t)graph->value_count + 1;
  FLOW_TRY(flow_alloc(sizeof(int) * nodes, &block));
  plan->order = block;
  FLOW_TRY(flow_alloc_zero(3 * nodes + values + sizeof(int) * (nodes + values), &block));
  schedule s = { .graph = graph, .plan = plan, .available = block };
  s.round = s.available + values;
  s.live = (char *)(s.round + nodes);
  s.tail = s.live + nodes;
  s.done = s.tail + nodes;
  s.rows_here = s.done + nodes;
  for (size_t v = 0; v < values; v++) s.available[v] = -1;
  mark_live(graph, plan->outputs, count, s.live);
  mark_tail(graph, s.tail);
  flow_status status = check_sums(graph, s.live);
  if (status == FLOW_OK) status = flow_plan_loops(graph, s.live);
  if (status == FLOW_OK) status = make_segments(&s);
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++)
    if (s.live[n] && !s.done[n])
      status = flow_fail(FLOW_INTERNAL, "plan: op %s (node %d) could not be scheduled", flow_op(graph->nodes[n].op)->name, n);
  for (int k = plan->order_count; k > 0 && s.tail[plan->order[k - 1]]; k--)
    if (flow_op(graph->nodes[plan->order[k - 1]].op)->flags & FLOW_OP_CHECKS && plan->undo_end < k) plan->undo_end = k;
  flow_free(block);
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
