/* fold_casts.c: casts between float32 and 16 bits that need no separate pass over memory. Runs when a plan is made, after gradients
 * were taken. With "half" for either 16-bit dtype:
 *
 *   half(x) again                          -> the first one: weights are cast once a step, however often they are read
 *   half(float32(x)), x of that dtype      -> x
 * and where the device's kernels of `op` mix dtypes (flow_device.mixes_half_floats):
 *   op(float32(x)), x half                 -> op(x)
 *   half(op(x)), its only reader           -> op(x), written as half
 *   float32(op(x)), x half, its only reader -> op(x), written as float32
 *   half(broadcast_to(x)), its only reader  -> broadcast_to(half(x)), on any device
 *
 * Nothing is rounded that was not rounded before; the last one rounds once less. */
#include "graph/graph.h"
#include <string.h>
#include "tensor/place.h"

typedef struct folding {
  flow_graph          *graph;
  const unsigned char *mixes;          /* [op]; NULL: no kernel does */
  int                 *same;           /* [value]: what is read in its place */
  int                 *uses;           /* [value] */
  int                 *narrowed;       /* [value]: a cast of it to 16 bits; 0: none yet (no cast makes value 0) */
  char                *returned;       /* [value]: an output of the plan, which stays what it is */
} folding;

static int is_half(int dtype) { return dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16; }
static int dtype_of(const folding *f, int value) { return f->graph->values[value].signature.dtype; }
static int mixing(const folding *f, int op) { return f->mixes ? f->mixes[op] : 0; }

/* The node that makes `value` by `op`, else NULL. */
static const flow_node *maker(const folding *f, int value, int op)
{
  const flow_value *v = &f->graph->values[value];
  return v->kind == FLOW_VALUE_RESULT && f->graph->nodes[v->node].op == op ? &f->graph->nodes[v->node] : NULL;
}

/* The one 16-bit dtype among a node's operands; -1: there is none; -2: there are two. */
static int half_of(const folding *f, const flow_node *node)
{
  int found = -1;
  for (int i = 0; i < node->input_count + node->output_count; i++) {
    int dtype = dtype_of(f, node->inputs[i]);      /* outputs come after inputs */
    if (is_half(dtype)) found = found == -1 || found == dtype ? dtype : -2;
  }
  return found;
}

/* ---- what is read ---------------------------------------------------------------------------------------------------------------- */

/* A cast of float32 to 16 bits: of a value that was of these 16 bits before, or that was cast already. */
static void fold_cast(folding *f, const flow_node *node)
{
  int x = node->inputs[0], y = node->outputs[0], to = dtype_of(f, y);
  const flow_node *before = maker(f, x, FLOW_OP_cast);
  if (!is_half(to) || dtype_of(f, x) != FLOW_FLOAT32) return;
  if (before && dtype_of(f, before->inputs[0]) == to) {
    f->same[y] = before->inputs[0];
  } else if (f->narrowed[x] && dtype_of(f, f->narrowed[x]) == to) {
    f->same[y] = f->narrowed[x];
  } else {
    f->narrowed[x] = y;
  }
}

/* Lets a kernel that mixes dtypes read what was cast to float32, if all its operands of 16 bits are then of one dtype. */
static void fold_inputs(folding *f, flow_node *node)
{
  if (!(mixing(f, node->op) & FLOW_HALF_FLOATS_READ)) return;
  for (int i = 0; i < node->input_count; i++) {
    const flow_node *cast = maker(f, node->inputs[i], FLOW_OP_cast);
    if (!cast || dtype_of(f, node->inputs[i]) != FLOW_FLOAT32 || !is_half(dtype_of(f, cast->inputs[0]))) continue;
    int half = half_of(f, node);
    if (half == -1 || half == dtype_of(f, cast->inputs[0])) node->inputs[i] = cast->inputs[0];
  }
}

/* ---- what is written --------------------------------------------------------------------------------------------------------------- */

/* Whether the node may write this output in `dtype`. */
static int writes(const folding *f, const flow_node *node, int output, int dtype)
{
  int how = mixing(f, node->op), half = half_of(f, node);
  if (dtype == FLOW_FLOAT32) return half >= 0 && (how & (FLOW_HALF_FLOATS_WIDENED << output));
  return (how & FLOW_HALF_FLOATS_WRITTEN) && (half == -1 || half == dtype);
}

/* Lets what makes the cast's input write the cast's result, through other shapes of it that nothing else reads. */
static void fold_output(folding *f, const flow_node *cast)
{
  int to = dtype_of(f, cast->outputs[0]), value = cast->inputs[0], from = dtype_of(f, value);
  if (f->returned[cast->outputs[0]] || !((is_half(to) && from == FLOW_FLOAT32) || (to == FLOW_FLOAT32 && is_half(from)))) return;
  const flow_value *v = &f->graph->values[value];
  while (v->kind == FLOW_VALUE_RESULT && f->uses[value] == 1 && !f->returned[value] &&
         (flow_op(f->graph->nodes[v->node].op)->flags & FLOW_OP_ALIAS)) {
    value = f->graph->nodes[v->node].inputs[0];
    v = &f->graph->values[value];
  }
  if (v->kind != FLOW_VALUE_RESULT || f->uses[value] != 1 || f->returned[value]) return;
  if (!writes(f, &f->graph->nodes[v->node], v->output, to)) return;
  for (int at = cast->inputs[0]; at != value; at = f->graph->nodes[f->graph->values[at].node].inputs[0])
    f->graph->values[at].signature.dtype = to;
  f->graph->values[value].signature.dtype = to;
  f->same[cast->outputs[0]] = cast->inputs[0];
}

/* Fewer elements are cast before they are repeated than after that. */
static void cast_first(folding *f, flow_node *cast)
{
  int repeated = cast->inputs[0], result = cast->outputs[0];
  flow_graph *graph = f->graph;
  if (!maker(f, repeated, FLOW_OP_broadcast_to) || f->uses[repeated] != 1 || f->returned[repeated] || !is_half(dtype_of(f, result))) return;
  flow_node *repeat = &graph->nodes[graph->values[repeated].node];
  flow_attributes shape = repeat->attributes;
  repeat->op = FLOW_OP_cast;
  repeat->attributes = cast->attributes;
  graph->values[repeated].signature = graph->values[repeat->inputs[0]].signature;
  graph->values[repeated].signature.dtype = dtype_of(f, result);
  cast->op = FLOW_OP_broadcast_to;
  cast->attributes = shape;
}

/* ---- the pass ------------------------------------------------------------------------------------------------------------------------ */

static void read_instead(folding *f, flow_node *node)
{
  for (int i = 0; i < node->input_count; i++) node->inputs[i] = f->same[node->inputs[i]];
}

/* Three walks: casts of operands, from the first node on; then a count of the readers that each value still has; then casts of results,
 * which are folded only where a value has one reader. */
static void fold(folding *f, const char *live, const int *outputs, int output_count)
{
  flow_graph *graph = f->graph;
  for (int v = 0; v < graph->value_count; v++) f->same[v] = v;
  for (int i = 0; i < output_count; i++) f->returned[outputs[i]] = 1;
  for (int n = 0; n < graph->node_count; n++) {
    if (!live[n]) continue;
    read_instead(f, &graph->nodes[n]);
    if (graph->nodes[n].op == FLOW_OP_cast) fold_cast(f, &graph->nodes[n]);
    else fold_inputs(f, &graph->nodes[n]);
  }
  /* Of nodes that are still wanted: a cast whose readers were served otherwise reads nothing. From the end, so that is known. */
  for (int n = graph->node_count - 1; n >= 0; n--) {
    const flow_node *node = &graph->nodes[n];
    if (!live[n]) continue;
    if (node->op == FLOW_OP_cast && !f->uses[node->outputs[0]] && !f->returned[node->outputs[0]]) continue;
    for (int i = 0; i < node->input_count; i++) f->uses[node->inputs[i]]++;
  }
  for (int n = 0; n < graph->node_count; n++) {
    if (!live[n]) continue;
    read_instead(f, &graph->nodes[n]);
    if (graph->nodes[n].op != FLOW_OP_cast) continue;
    fold_output(f, &graph->nodes[n]);
    cast_first(f, &graph->nodes[n]);
  }
}

flow_status flow_graph_fold_casts(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  size_t values = (size_t)graph->value_count + 1;
  void *block;
  FLOW_TRY(flow_alloc_zero(values * (3 * sizeof(int) + 1), &block));
  folding f = { .graph = graph, .same = block };
  if (graph->place) f.mixes = flow_place_accelerator(graph->place)->device.mixes_half_floats;
  f.uses = f.same + values;
  f.narrowed = f.uses + values;
  f.returned = (char *)(f.narrowed + values);
  fold(&f, live, outputs, output_count);
  flow_free(block);
  return FLOW_OK;
}
