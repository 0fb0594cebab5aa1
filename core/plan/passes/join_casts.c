/* join_casts.c: on a device, the variables that a step reads as 16-bit floats are cast by one node, however many they are, and the op
 * that updates them writes the copies, too, while it has the numbers:
 *
 *   half(v), half(w), ...; adam(g, all, ...)  ->  v', w', ... = casts(v, w, ...); adam(g, all, ..., v, v', w, w')
 *
 * v and w are parts of `all`, the flat parameters of the update. On a device each node is a launch, whose price is that of casting a
 * hundred thousand numbers, and to cast again reads all parameters again. So copies last from run to run: the node stays in the plan, but
 * is only for a first run, and for one before which something else has written a variable (run/derived.h).
 *
 * A copy lasts if one optimizer of the plan writes the variable and nothing else does, or if nothing does; and if nothing in the commit
 * tail reads it, where the update replaces it. The other variables have their own node. Only what a plan reads at its start is joined:
 * so all of it is there. Runs when a plan is made, after the casts that kernels do on their own were left out (fold_casts.c), and after
 * updates were given other operands (fuse_optimizer.c, advance_updates.c). */
#include "graph/graph.h"

#include <string.h>
#include "graph/variable.h"
#include "ops/optimizer_layout.h"
#include "plan/schedule.h"

/* What one node will do: the casts to one dtype that last, or those that do not, in the order of the trace. */
typedef struct joint {
  int *inputs, *results;
  flow_signature *signatures;
  int count, first, lasting, dtype;
} joint;

typedef struct joining {
  flow_graph *graph;
  const char *live;       /* [node] */
  char *tail;             /* [node]: is in the commit tail */
  char *returned, *shown; /* [value]: is an output; is read by the commit tail, too */
  int *same;              /* [value]: what takes its place */
  int *writers, *added;   /* [cast of the joint]: the node that writes the variable; [node]: copies that it will have */
  joint j;
} joining;

/* Of a variable, in place of the node that writes it: nothing does, or not one optimizer alone. */
enum { NOBODY = -1, OTHERS = -2 };

/* Whether two variables have bytes in common; *covers: whether the first one has all of the second's. */
static int overlaps(const flow_value *a, const flow_value *b, int *covers)
{
  const flow_tensor *x = a->variable->tensor, *y = b->variable->tensor;
  const char *x_end = x->data + flow_shape_size(x->rank, x->shape) * flow_dtype_size(x->dtype);
  const char *y_end = y->data + flow_shape_size(y->rank, y->shape) * flow_dtype_size(y->dtype);
  *covers = x->data <= y->data && y_end <= x_end;
  return x->storage == y->storage && x->data < y_end && y->data < x_end;
}

/* Whether an optimizer can write one more copy of the dtype. */
static int takes_copy(const joining *all, int n, int dtype)
{
  const flow_node *node = &all->graph->nodes[n];
  int count = node->attributes.optimizer.copies, first = flow_optimizer_first_copy(&node->attributes, node->input_count);
  if (count > 0 && all->graph->values[node->inputs[first + 1]].signature.dtype != dtype) return 0;
  return count + all->added[n] < FLOW_MAX_COPIES;
}

/* The node that writes a variable and can write its copy, NOBODY or OTHERS. Operand 1 of an optimizer is its flat parameters; anything
 * else that writes bytes of the variable, a part of it or a second update makes the copy one that does not last. */
static int find_writer(const joining *all, int variable, int dtype)
{
  const flow_graph *graph = all->graph;
  int found = NOBODY, covers;
  for (int n = 0; n < graph->node_count; n++) {
    const flow_node *node = &graph->nodes[n];
    if (!all->live[n] || !(flow_op(node->op)->flags & FLOW_OP_EFFECT)) continue;
    for (int i = 0; i < node->input_count; i++) {
      const flow_value *x = &graph->values[flow_graph_root(graph, node->inputs[i])];
      if (x->kind != FLOW_VALUE_VARIABLE || !flow_effect_writes(node->op, &node->attributes, node->input_count, i)) continue;
      if (!overlaps(x, &graph->values[variable], &covers)) continue;
      if (found != NOBODY || i != 1 || !covers || !flow_optimizer_layout_of(node->op) || !takes_copy(all, n, dtype)) return OTHERS;
      found = n;
    }
  }
  return found;
}

/* Whether the node is a cast of the joint: of a float32 variable as it is at the start of the run, to the joint's dtype, that is not an
 * output of the plan and not part of an earlier joint. */
static int is_joined(const joining *all, const flow_node *node)
{
  int result = node->outputs[0], joined = node->op == FLOW_OP_cast && all->same[result] != result;
  if (node->op != FLOW_OP_cast || joined || node->attributes.cast.dtype != all->j.dtype || all->returned[result]) return 0;
  const flow_value *x = &all->graph->values[node->inputs[0]];
  return x->kind == FLOW_VALUE_VARIABLE && !x->late && x->signature.dtype == FLOW_FLOAT32;
}

/* Fills the joint with the casts to `dtype` that last, or with those that do not. Copies that an update is to write are counted as they
 * are found, so that none gets more than FLOW_MAX_COPIES; a cast beyond that does not last. */
static void collect(joining *all, int dtype, int lasting)
{
  const flow_graph *graph = all->graph;
  joint *j = &all->j;
  j->count = 0;
  j->dtype = dtype;
  j->lasting = lasting;
  memset(all->added, 0, sizeof(int) * (size_t)graph->node_count);
  for (int n = 0; n < graph->node_count; n++) {
    const flow_node *node = &graph->nodes[n];
    if (!all->live[n] || !is_joined(all, node)) continue;
    int writer = all->shown[node->outputs[0]] || all->tail[n] ? OTHERS : find_writer(all, node->inputs[0], dtype);
    if ((writer != OTHERS) != lasting) continue;
    if (writer >= 0) all->added[writer]++;
    if (j->count == 0) j->first = n;
    all->writers[j->count] = writer;
    j->inputs[j->count] = node->inputs[0];
    j->signatures[j->count] = graph->values[node->outputs[0]].signature;
    j->results[j->count++] = node->outputs[0];
  }
}

/* Gives an update a variable and its copy, before the factors of products. */
static flow_status add_copy(flow_graph *graph, int n, int variable, int copy)
{
  const flow_node *node = &graph->nodes[n];
  flow_attributes attributes = node->attributes;
  int count = node->input_count, at = count - 2 * attributes.optimizer.products;
  void *block;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(count + 2), &block));
  int *inputs = block;
  memcpy(inputs, node->inputs, sizeof(int) * (size_t)at);
  inputs[at] = variable;
  inputs[at + 1] = copy;
  memcpy(inputs + at + 2, node->inputs + at, sizeof(int) * (size_t)(count - at));
  attributes.optimizer.copies++;
  flow_status status = flow_graph_rewrite(graph, n, node->op, inputs, count + 2, &attributes, NULL, 0);
  flow_free(block);
  return status;
}

/* The first of the casts becomes all of them; readers of the others read its outputs. */
static flow_status join(joining *all)
{
  flow_graph *graph = all->graph;
  const joint *j = &all->j;
  flow_attributes attributes = graph->nodes[j->first].attributes;
  FLOW_TRY(flow_graph_rewrite(graph, j->first, FLOW_OP_casts, j->inputs, j->count, &attributes, j->signatures, j->count));
  for (int i = 0; i < j->count; i++) {
    int copy = graph->nodes[j->first].outputs[i];
    if (i > 0) all->same[j->results[i]] = copy;
    graph->values[copy].lasting = j->lasting;
    if (all->writers[i] >= 0) FLOW_TRY(add_copy(graph, all->writers[i], j->inputs[i], copy));
  }
  return FLOW_OK;
}

/* Marks what is returned, and what the tail reads, by way of aliases, too. */
static void mark_readers(const joining *all, const int *outputs, int output_count)
{
  const flow_graph *graph = all->graph;
  flow_mark_tail(graph, all->tail);
  for (int i = 0; i < output_count; i++) all->returned[outputs[i]] = all->shown[flow_graph_root(graph, outputs[i])] = 1;
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->nodes[n].input_count && all->live[n] && all->tail[n]; i++)
      all->shown[flow_graph_root(graph, graph->nodes[n].inputs[i])] = 1;
}

/* Casts that last are joined even if there is one only, for what they save is the next run's work; others if there are two. All tables
 * are in one block, in order of their alignment. */
flow_status flow_graph_join_casts(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  static const int half_floats[] = { FLOW_FLOAT16, FLOW_BFLOAT16 };
  int count = graph->value_count;
  size_t nodes = (size_t)graph->node_count + 1, values = (size_t)count + 1;
  void *block;
  if (!graph->place) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(nodes * (sizeof(flow_signature) + 4 * sizeof(int) + 1) + values * (sizeof(int) + 2), &block));
  joining all = { .graph = graph, .live = live, .j = { .signatures = block } };
  all.j.inputs = (int *)(all.j.signatures + nodes);
  all.j.results = all.j.inputs + nodes;
  all.writers = all.j.results + nodes;
  all.added = all.writers + nodes;
  all.same = all.added + nodes;
  all.tail = (char *)(all.same + values);
  all.returned = all.tail + nodes;
  all.shown = all.returned + values;
  flow_status status = FLOW_OK;
  for (int v = 0; v < count; v++) all.same[v] = v;
  mark_readers(&all, outputs, output_count);
  for (int h = 0; h < 2; h++)
    for (int lasting = 1; lasting >= 0 && status == FLOW_OK; lasting--) {
      collect(&all, half_floats[h], lasting);
      if (all.j.count > !lasting) status = join(&all);
    }
  flow_graph_redirect(graph, all.same, count);
  flow_free(block);
  return status;
}
