/* transpose_filters.c: on a device whose convolutions read their kernels as {out, height, width, in} (flow_device.transposed_bytes), a step
 * transposes the kernels that are variables once, all by one node, and so the gradients that an optimizer's flat gradient is packed of:
 *
 *   convolution(x, v), convolution(y, half(w)), convolution_gradient(g, x, v) ...
 *     ->  v' = transpose_filters(v); w' = transpose_filters(w) as half;
 *         convolution(x, v'), convolution(y, w'), convolution_gradient(g, x, v') ...
 *   pack(dv, dw, ..) of dv and dw of convolution_gradient
 *     ->  dv, dw = transpose_filters(dv', dw', back); pack(dv, dw, ..)
 *
 * Otherwise each of those convolutions does it for itself, forward and backward. Variables stay unchanged; so do kernels that are
 * something else, or that the device wants as they are, and gradients that something else reads. Gradients are transposed by one node for
 * each pack, since replicas sum one pack while they make the next. Runs when a plan is made, before other casts of variables are joined. */
#include "graph/graph.h"

#include <string.h>
#include "tensor/place.h"

static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT16, FLOW_BFLOAT16 };
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

typedef struct turning {
  flow_graph     *graph;
  const char     *live;
  int             bytes;            /* flow_device.transposed_bytes */
  int            *readers;          /* [value]: operands of live nodes that are it; outputs of the plan count, too */
  int            *transposed;           /* [value]: the same kernel transposed; 0: none */
  int            *from, *to;        /* what one node is to turn: as it is, and what is made of it */
  flow_signature *signatures;
  int             count;
  int             front;            /* nodes that were put in front of all */
} turning;

static int is_live(const turning *t, int node) { return node >= t->front && t->live[node - t->front]; }

/* Which input of the node is a kernel; -1: none. */
static int kernel_input(const flow_node *node)
{
  if (node->op == FLOW_OP_convolution) return 1;
  return node->op == FLOW_OP_convolution_gradient || node->op == FLOW_OP_convolution_gradient_relu ? 2 : -1;
}

static int may_be_transposed(int dtype)
{
  for (int d = 0; d < DTYPES; d++)
    if (dtypes[d] == dtype) return 1;
  return 0;
}

/* Whether the device wants this kernel of the node transposed, or its gradient. */
static int is_wanted(const turning *t, const flow_node *node, const flow_signature *kernel)
{
  int64_t row = kernel->dims[2] * (int64_t)flow_dtype_size(kernel->dtype);
  return may_be_transposed(kernel->dtype) && (node->attributes.convolution.groups > 1 || row % t->bytes == 0);
}

/* {kh, kw, in, out} becomes {out, kh, kw, in}. */
static flow_signature transposed_signature(const flow_signature *kernel)
{
  flow_signature s = { .dtype = kernel->dtype, .rank = 4 };
  for (int axis = 0; axis < 4; axis++) s.dims[axis] = kernel->dims[(3 + axis) % 4];
  return s;
}

/* The variable that the value is, or is cast of, as it is when the run begins; -1: it is something else. */
static int variable_of(const flow_graph *graph, int value)
{
  const flow_value *v = &graph->values[value];
  if (v->kind == FLOW_VALUE_RESULT && graph->nodes[v->node].op == FLOW_OP_cast) {
    value = graph->nodes[v->node].inputs[0];
    v = &graph->values[value];
  }
  return v->kind == FLOW_VALUE_VARIABLE && !v->late && may_be_transposed(v->signature.dtype) ? value : -1;
}

/* Appends a node in front of node `index` that turns what was collected. Its outputs: graph->nodes[index].outputs. */
static flow_status insert(turning *t, int index, int dtype, int back)
{
  flow_attributes attributes;
  int first;
  memset(&attributes, 0, sizeof attributes);
  attributes.transpose_filters.dtype = dtype;
  attributes.transpose_filters.back = back;
  FLOW_TRY(flow_graph_insert(t->graph, index, FLOW_OP_transpose_filters, t->from, 1, &attributes, t->signatures, &first));
  return flow_graph_rewrite(t->graph, index, FLOW_OP_transpose_filters, t->from, t->count, &attributes, t->signatures, t->count);
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------------ */

/* Collects the kernels of this dtype that live convolutions read. */
static void collect_kernels(turning *t, int dtype)
{
  const flow_graph *graph = t->graph;
  t->count = 0;
  for (int n = 0; n < graph->node_count; n++) {
    int input = is_live(t, n) ? kernel_input(&graph->nodes[n]) : -1;
    if (input < 0) continue;
    int value = graph->nodes[n].inputs[input], variable = variable_of(graph, value);
    const flow_signature *s = &graph->values[value].signature;
    if (variable < 0 || s->dtype != dtype || t->transposed[value] || !is_wanted(t, &graph->nodes[n], s)) continue;
    t->transposed[value] = 1;
    t->from[t->count] = variable;
    t->to[t->count] = value;
    t->signatures[t->count++] = transposed_signature(s);
  }
}

/* Convolutions read transposed kernels from here on. Only values that were there before this pass, below `values`, are looked up. */
static void read_transposed(turning *t, int values)
{
  for (int n = 0; n < t->graph->node_count; n++) {
    flow_node *node = &t->graph->nodes[n];
    int input = kernel_input(node);
    if (input < 0 || node->inputs[input] >= values || !t->transposed[node->inputs[input]]) continue;
    node->inputs[input] = t->transposed[node->inputs[input]];
    node->attributes.convolution.transposed |= FLOW_TRANSPOSED_KERNEL;
  }
}

/* One node for each dtype at the front of the plan transposes all kernels of that dtype, so that each is transposed once a step. Values
 * that nodes of this pass made, from `values` on, are not rewritten. */
static flow_status transpose_kernels(turning *t)
{
  int values = t->graph->value_count;
  for (int d = 0; d < DTYPES; d++) {
    collect_kernels(t, dtypes[d]);
    if (t->count == 0) continue;
    FLOW_TRY(insert(t, 0, dtypes[d], 0));
    t->front++;
    for (int i = 0; i < t->count; i++) t->transposed[t->to[i]] = t->graph->nodes[0].outputs[i];
  }
  read_transposed(t, values);
  return FLOW_OK;
}

/* ---- gradients ---------------------------------------------------------------------------------------------------------------- */

/* Collects what live convolutions' gradients give this pack alone, and lets them give it transposed, in the dtype that they compute in. */
static void collect_gradients(turning *t, const flow_node *pack, int values)
{
  flow_graph *graph = t->graph;
  t->count = 0;
  for (int i = 0; i < pack->input_count; i++) {
    flow_value *v = &graph->values[pack->inputs[i]];
    if (pack->inputs[i] >= values || v->kind != FLOW_VALUE_RESULT || v->output != 1 || t->readers[pack->inputs[i]] != 1) continue;
    flow_node *maker = &graph->nodes[v->node];
    flow_signature transposed = v->signature;
    if (kernel_input(maker) != 2 || !may_be_transposed(transposed.dtype)) continue;
    transposed.dtype = graph->values[maker->inputs[2]].signature.dtype;
    if (!is_wanted(t, maker, &transposed)) continue;
    t->from[t->count] = pack->inputs[i];
    t->to[t->count] = i;
    t->signatures[t->count++] = v->signature;
    v->signature = transposed_signature(&transposed);
    maker->attributes.convolution.transposed |= FLOW_TRANSPOSED_GRADIENT;
  }
}

/* From the last node to the first: what is inserted moves only nodes that were looked at. All gradients in a pack have its dtype. */
static flow_status transpose_gradients(turning *t, int values)
{
  flow_graph *graph = t->graph;
  for (int n = graph->node_count - 1; n >= 0; n--) {
    if (!is_live(t, n) || graph->nodes[n].op != FLOW_OP_pack) continue;
    collect_gradients(t, &graph->nodes[n], values);
    if (t->count == 0) continue;
    FLOW_TRY(insert(t, n, t->signatures[0].dtype, 1));
    for (int i = 0; i < t->count; i++) graph->nodes[n + 1].inputs[t->to[i]] = graph->nodes[n].outputs[i];
  }
  return FLOW_OK;
}

flow_status flow_graph_transpose_filters(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  size_t values = (size_t)graph->value_count + 1;
  void *block;
  int bytes = graph->place ? flow_place_accelerator(graph->place)->device.transposed_bytes : 0;
  if (!bytes) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(values * (sizeof(flow_signature) + 4 * sizeof(int)), &block));
  turning t = { .graph = graph, .live = live, .bytes = bytes, .signatures = block };
  t.readers = (int *)(t.signatures + values);
  t.transposed = t.readers + values;
  t.from = t.transposed + values;
  t.to = t.from + values;
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; live[n] && i < graph->nodes[n].input_count; i++) t.readers[graph->nodes[n].inputs[i]]++;
  for (int i = 0; i < output_count; i++) t.readers[outputs[i]]++;
  flow_status status = transpose_kernels(&t);
  if (status == FLOW_OK) status = transpose_gradients(&t, (int)values - 1);
  flow_free(block);
  return status;
}
