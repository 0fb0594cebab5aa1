/* values.c: the forms in which a value of the graph is in the file, one for each layout, made when a rule asks for it. See onnx.h. */
#include "onnx/onnx.h"

#include <string.h>
#include "graph/variable.h"

/* Permutations as ONNX' Transpose takes them: axis i of the result is axis [i] of the input. */
static const int64_t to_first[4] = { 0, 3, 1, 2 }, to_last[4] = { 0, 2, 3, 1 };

const flow_signature *flow_onnx_signature(const flow_onnx *x, const flow_node *node, int input)
{
  return &x->graph->values[node->inputs[input]].signature;
}

/* Channels first has {rows, channels, height, width}: 1 -> 2, 2 -> 3, 3 -> 1; the rows stay, as do axes of other ranks. */
int flow_onnx_axis(int axis, flow_onnx_layout layout)
{
  return layout == FLOW_CHANNELS_FIRST && axis > 0 && axis < 4 ? axis % 3 + 1 : axis;
}

/* What a variable, a constant or a known result holds, on the host and contiguous: itself, or a copy that the export keeps. NULL: the value
 * is of another kind, or a variable that the trace reads after it was changed, whose value the file cannot hold. */
static flow_tensor *held_tensor(flow_onnx *x, int value)
{
  const flow_value *v = &x->graph->values[value];
  flow_tensor *tensor = v->kind == FLOW_VALUE_CONSTANT ? v->tensor : x->known[value];
  if (v->kind == FLOW_VALUE_VARIABLE && !v->late) tensor = v->variable->tensor;
  if (!tensor || x->status != FLOW_OK || (!flow_tensor_place(tensor) && flow_tensor_is_contiguous(tensor))) return tensor;
  flow_tensor *copy = NULL;
  x->status = flow_tensor_on_host_contiguous(tensor, &copy);
  return x->status == FLOW_OK ? flow_onnx_keep(x, copy) : NULL;
}

/* The same for a value that is another shape of such a one: ops of the flag ALIAS have written nothing, so the view has the same elements
 * in the same order. */
flow_tensor *flow_onnx_static_value(flow_onnx *x, int value)
{
  int root = flow_graph_root(x->graph, value);
  flow_tensor *tensor = held_tensor(x, root), *view = NULL;
  if (!tensor || root == value) return tensor;
  const flow_signature *signature = &x->graph->values[value].signature;
  int64_t strides[FLOW_MAX_RANK];
  flow_contiguous_strides(signature->rank, signature->dims, strides);
  if (x->status == FLOW_OK) x->status = flow_tensor_view(tensor, signature->rank, signature->dims, strides, 0, &view);
  return x->status == FLOW_OK ? flow_onnx_keep(x, view) : NULL;
}

flow_tensor *flow_onnx_static(flow_onnx *x, const flow_node *node, int input) { return flow_onnx_static_value(x, node->inputs[input]); }

/* The name under which a variable or constant is in the file: the variable's own, if no other has it, no output to come either. Those that
 * begin with a slash are made-up ones. */
static const char *stored_name(flow_onnx *x, int value)
{
  const flow_variable *variable = x->graph->values[value].variable;
  const char *name = variable ? variable->name : NULL;
  if (!name || !*name || *name == '/') return flow_onnx_name(x, "constant");
  if (flow_onnx_is_given(x, name)) return flow_onnx_name(x, name);
  for (int other = 0; other < 2 * x->graph->value_count; other++) {        /* both layouts, which are one after the other */
    if (x->names[0][other] && strcmp(x->names[0][other], name) == 0) return flow_onnx_name(x, name);
  }
  return flow_onnx_keep_text(x, name);
}

/* The form as flowlua has it: from the other form by a transposition, or a tensor of the file. Inputs, and results that are channels last,
 * never come here: their form was set when they were written. */
static const char *channels_last(flow_onnx *x, int value)
{
  const flow_value *v = &x->graph->values[value];
  if (v->signature.rank == 4 && x->names[FLOW_CHANNELS_FIRST][value]) return flow_onnx_transpose(x, x->names[1][value], to_last, 4, NULL);
  if (v->kind == FLOW_VALUE_VARIABLE && v->late) {
    return flow_onnx_fail(x, FLOW_UNSUPPORTED, "ONNX: the model reads the variable \"%s\" after changing it; an exported model cannot "
                          "change variables", v->variable->name ? v->variable->name : "");
  }
  flow_tensor *tensor = held_tensor(x, value);
  if (!tensor) return flow_onnx_fail(x, FLOW_INTERNAL, "ONNX: a value was not exported");
  return flow_onnx_tensor(x, tensor, stored_name(x, value));
}

/* Images are transposed; what is to broadcast against images gets four axes first. A vector belongs to the channels. */
static const char *channels_first(flow_onnx *x, int value, const char *last)
{
  const flow_signature *signature = &x->graph->values[value].signature;
  int rank = signature->rank;
  int64_t dims[4] = { 1, 1, 1, 1 };
  if (rank == 4) return flow_onnx_transpose(x, last, to_first, 4, NULL);
  if (rank == 0 || rank > 4) return last;
  for (int i = 0; i < rank; i++) dims[4 - rank + i] = signature->dims[i];
  if (rank == 1) {
    int64_t first[4] = { 1, dims[3], 1, 1 };
    return flow_onnx_emit(x, "Reshape", NULL, last, flow_onnx_list(x, first, 4), NULL);
  }
  flow_signature full = { .dtype = signature->dtype, .rank = 4, .dims = { dims[0], dims[1], dims[2], dims[3] } };
  return flow_onnx_transpose(x, flow_onnx_emit(x, "Reshape", NULL, last, flow_onnx_shape(x, &full), NULL), to_first, 4, NULL);
}

/* A vector that the file holds anyway is held in the shape that is asked for. */
static const char *static_vector(flow_onnx *x, int value)
{
  const flow_signature *signature = &x->graph->values[value].signature;
  flow_tensor *tensor = NULL, *view = NULL;
  if (signature->rank == 1 && !x->names[FLOW_CHANNELS_LAST][value]) tensor = flow_onnx_static_value(x, value);
  if (!tensor || x->status != FLOW_OK) return NULL;
  int64_t dims[4] = { 1, tensor->shape[0], 1, 1 }, strides[4];
  flow_contiguous_strides(4, dims, strides);
  x->status = flow_tensor_view(tensor, 4, dims, strides, 0, &view);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, view)) return NULL;
  return flow_onnx_tensor(x, view, stored_name(x, value));
}

/* Made once and kept: a value that several rules read is transposed once. After a failure NULL may be kept, which is harmless: nothing is
 * written any more. */
const char *flow_onnx_form(flow_onnx *x, int value, flow_onnx_layout layout)
{
  if (x->status != FLOW_OK) return NULL;
  const char **at = &x->names[layout][value];
  if (*at) return *at;
  if (layout == FLOW_CHANNELS_LAST) return *at = channels_last(x, value);
  const char *vector = static_vector(x, value);
  return *at = vector ? vector : channels_first(x, value, flow_onnx_form(x, value, FLOW_CHANNELS_LAST));
}

const char *flow_onnx_input(flow_onnx *x, const flow_node *node, int input, flow_onnx_layout layout)
{
  return flow_onnx_form(x, node->inputs[input], layout);
}

/* Values of rank 5 and more have no form in channels first, which is for images. An image that exists in both forms does not decide, so
 * that a result moves to channels first only where it saves a transposition. */
flow_onnx_layout flow_onnx_layout_of(const flow_onnx *x, const flow_node *node)
{
  int first = 0;
  for (int i = 0; i < node->input_count; i++) {
    const flow_signature *signature = flow_onnx_signature(x, node, i);
    if (signature->rank > 4) return FLOW_CHANNELS_LAST;
    first |= signature->rank == 4 && x->names[FLOW_CHANNELS_FIRST][node->inputs[i]] && !x->names[FLOW_CHANNELS_LAST][node->inputs[i]];
  }
  return first ? FLOW_CHANNELS_FIRST : FLOW_CHANNELS_LAST;
}

/* A new name for an output of a node, in the layout in which the rule writes it. */
const char *flow_onnx_result(flow_onnx *x, const flow_node *node, int output, flow_onnx_layout layout)
{
  const char *name = flow_onnx_name(x, flow_op(node->op)->name);
  flow_onnx_set(x, node, output, layout, name);
  return name;
}

/* A value may have a name in each layout; readers take the one that they need. */
void flow_onnx_set(flow_onnx *x, const flow_node *node, int output, flow_onnx_layout layout, const char *name)
{
  x->names[layout][node->outputs[output]] = name;
}
