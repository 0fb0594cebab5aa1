/* schedule.c: see schedule.h. Time to schedule is quadratic in the number of segments at most, as every turn goes over all nodes; plans
 * of a few thousand nodes take milliseconds. */
#include "plan/schedule.h"

#include <string.h>
#include "plan/passes/advance_updates.h"

static const flow_signature *signature_of(const flow_graph *graph, int value) { return &graph->values[value].signature; }

/* ---- kinds of nodes ------------------------------------------------------------------------------------------------------- */

static int is_effect(const flow_graph *graph, int node) { return (flow_op(graph->nodes[node].op)->flags & FLOW_OP_EFFECT) != 0; }

/* Nodes come in the order of the trace, so that what makes an input was marked before. Updates of copies (passes/advance_updates.h)
 * belong to the body although they are effects. */
void flow_mark_tail(const flow_graph *graph, char *tail)
{
  for (int n = 0; n < graph->node_count; n++) {
    tail[n] = (char)(is_effect(graph, n) && !flow_is_advanced(graph, &graph->nodes[n]));
    for (int i = 0; i < graph->nodes[n].input_count; i++) {
      const flow_value *v = &graph->values[graph->nodes[n].inputs[i]];
      tail[n] |= (char)(v->kind == FLOW_VALUE_RESULT ? tail[v->node] : v->late);
    }
  }
}

/* Effects, and what reads storage after one, may not pass each other: which content a read finds is decided by where it stands. */
int flow_is_ordered(const flow_graph *graph, int node)
{
  int late = 0;
  for (int i = 0; i < graph->nodes[node].input_count; i++) late |= graph->values[graph->nodes[node].inputs[i]].late;
  return late || is_effect(graph, node);
}

/* From the last node to the first, so that the readers of a node's result are marked before it. */
void flow_mark_live(const flow_graph *graph, const int *outputs, int count, char *live)
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

/* ---- what can run --------------------------------------------------------------------------------------------------------- */

/* A schedule under construction. rows_here is all 0 between two segments. */
typedef struct schedule {
  flow_graph *graph;
  flow_plan  *plan;
  const char *live;                    /* [node] */
  char       *tail, *done;             /* [node] */
  int        *available;               /* [value]: segment that made it complete; -1 not yet */
  int        *round;                   /* [node]: how many sums over replicas it comes after */
  int         now;                     /* nodes of later rounds are not taken yet */
  char *rows_here;                     /* [value]: row output of the segment being built */
} schedule;

/* Whether every input of the node is there: made by an earlier segment, or, if the node is to join the segment of rows that is being
 * built (`as_rows`), as rows by this segment and read as rows by the node. An alias does nothing and may take either. */
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

/* The node is the next one of the plan. */
static void take(schedule *s, int node)
{
  s->plan->order[s->plan->order_count++] = node;
  s->done[node] = 1;
}

/* Whether node n of the body, or of the tail, may be taken as soon as its inputs are computed: it is live, not taken yet, of this round,
 * and not one whose order is that of the trace. */
static int waits(const schedule *s, int n, int tail)
{
  return s->live[n] && !s->done[n] && s->tail[n] == tail && s->round[n] <= s->now && !flow_is_ordered(s->graph, n);
}

/* round[node], zeros at first: how many sums over replicas a node comes after, one after the other. Nodes of a later round come after
 * all nodes of the ones before, so that replicas wait for each other once, at the end, and not for each sum of a metric. Updates of
 * copies keep the order of the trace among themselves, so that none has an earlier round than the one before. Returns the last round. */
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

/* On a device small nodes that are next to each other cost hardly more than one. Whether each operand of the node has at most FEW
 * elements, in a batch of USUAL_ROWS rows. Sums over replicas do not count as small: others wait for them; nor do products, which a
 * library makes by a separate launch. */
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

/* Bytes of what a node adds up over rows: its partial sums in one slot. */
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

/* Rows that workers gather by messages mostly travel together, in one message, when an update needs them, since each further message costs
 * the time of a way through the network. But the largest rows are often what a convolution has computed early in the step: if they are
 * large enough, sending them in their own message, while the rest of the step is computed, takes less time. Returns their gather, or -1. */
static int find_early_gather(const flow_graph *graph, const char *live)
{
  const double least = 64 << 10; /* bytes: of fewer the network takes about as long as for an empty message */
  const flow_network *network = &graph->network;
  int early = -1;
  double largest = least;
  if (graph->gathers != FLOW_GATHERS_MESSAGES || network->workers < 2) return -1;
  for (int n = 0; n < graph->node_count; n++) {
    const flow_node *node = &graph->nodes[n];
    if (!live[n] || node->op != FLOW_OP_all_gather) continue;
    const flow_signature *s = signature_of(graph, node->inputs[0]);
    double bytes = network->rows * graph->replicas / network->workers * flow_dtype_size(s->dtype);
    for (int d = 1; d < s->rank; d++) bytes *= (double)s->dims[d];
    if (bytes <= largest) continue;
    early = n;
    largest = bytes;
  }
  return early;
}

/* Whether the node makes the rows of the early gather: the segment ends with it, since rows are complete at the end of their segment. */
static int makes_early_rows(const flow_plan *plan, const flow_node *node)
{
  if (plan->early_gather < 0) return 0;
  const int rows = plan->graph->nodes[plan->early_gather].inputs[0];
  for (int i = 0; i < node->output_count; i++)
    if (node->outputs[i] == rows) return 1;
  return 0;
}

/* Takes the nodes that can join a ROWS segment now; returns how many. Aliases join, too: they do nothing. Each slot of rows has its own
 * sums, so a segment ends before they take so much (`most`) that there could be few slots only (core/run/chunks.c): gradients of large
 * layers get their own. */
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
    if (makes_early_rows(s->plan, node)) break;
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

/* Takes node n as a WHOLE segment of its own. */
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
    if (!s->live[*next] || s->tail[*next] || !flow_is_ordered(s->graph, *next)) continue;
    if (s->round[*next] > s->now || !ready(s, node, 0)) break;
    FLOW_TRY(take_whole(s, *next, capacity));
    ++*taken;
  }
  return FLOW_OK;
}

/* Schedules the body, round after round, then the effects in the order of the trace, each after the nodes of the tail that it needs,
 * then the rest of the tail. An effect that is not ready waits for nodes of the tail only; all of the body is done. */
static flow_status make_segments(schedule *s)
{
  int capacity = 0, last = find_rounds(s->graph, s->round), next = 0, taken, early = s->plan->early_gather;
  if (early >= 0 && ready(s, &s->graph->nodes[early], 0)) FLOW_TRY(take_whole(s, early, &capacity)); /* rows of an input */
  for (s->now = 0; s->now <= last; s->now++)
    do {
      FLOW_TRY(take_ready(s, 0, &capacity));
      FLOW_TRY(take_advanced(s, &next, &capacity, &taken));
    } while (taken);
  for (int n = 0; n < s->graph->node_count; n++) {
    if (!s->live[n] || !s->tail[n] || !flow_is_ordered(s->graph, n)) continue;
    if (!ready(s, &s->graph->nodes[n], 0)) FLOW_TRY(take_ready(s, 1, &capacity));
    FLOW_TRY(take_whole(s, n, &capacity));
  }
  return take_ready(s, 1, &capacity);
}

/* Effects in the tail that are followed by something that can still refuse data are undone if it does: the end of the order up to which
 * that is so. */
static void find_undo_end(const schedule *s)
{
  flow_plan *plan = s->plan;
  for (int k = plan->order_count; k > 0 && s->tail[plan->order[k - 1]]; k--)
    if (flow_op(s->graph->nodes[plan->order[k - 1]].op)->flags & FLOW_OP_CHECKS && plan->undo_end < k) plan->undo_end = k;
}

flow_status flow_plan_schedule(flow_plan *plan, const char *live)
{
  flow_graph *graph = plan->graph;
  void *block;
  size_t nodes = (size_t)graph->node_count + 1, values = (size_t)graph->value_count + 1;
  FLOW_TRY(flow_alloc(sizeof(int) * nodes, &block));
  plan->order = block;
  FLOW_TRY(flow_alloc_zero(2 * nodes + values + sizeof(int) * (nodes + values), &block));
  plan->early_gather = find_early_gather(graph, live);
  schedule s = { .graph = graph, .plan = plan, .live = live, .available = block };
  s.round = s.available + values;
  s.tail = (char *)(s.round + nodes);
  s.done = s.tail + nodes;
  s.rows_here = s.done + nodes;
  for (size_t v = 0; v < values; v++) s.available[v] = -1;
  flow_mark_tail(graph, s.tail);
  flow_status status = make_segments(&s);
  for (int n = 0; n < graph->node_count && status == FLOW_OK; n++)
    if (live[n] && !s.done[n])
      status = flow_fail(FLOW_INTERNAL, "plan: op %s (node %d) could not be scheduled", flow_op(graph->nodes[n].op)->name, n);
  find_undo_end(&s);
  flow_free(block);
  return status;
}
