/* movement.c: reductions, and ops that only move elements. The exporter keeps images channels first where ONNX' convolutions want them so,
 * and knows for each value in which layout it is (onnx.h). A rule asks for its inputs in a layout: an op that treats axes one by one keeps
 * the layout of its input and translates the axes' numbers; an op for which the order of elements matters, such as a reshape, asks for
 * channels last. Failures are kept in x->status: rules go on with what they have. */
#include "onnx/fields.h"
#include "onnx/onnx.h"
#include "ops/rules.h"

/* The dtype and shape of a node's first result, channels last; borrowed from the graph. */
static const flow_signature *result_signature(const flow_onnx *x, const flow_node *node)
{
  return &x->graph->values[node->outputs[0]].signature;
}

/* The reduced axes in a layout, and how many; *layout is channels first if what is left then has the order of channels last. */
static int reduced_axes(const flow_onnx *x, const flow_node *node, flow_onnx_layout *layout, int64_t axes[FLOW_MAX_RANK])
{
  int rank = flow_onnx_signature(x, node, 0)->rank, keepdims = node->attributes.reduce.keepdims, count = 0, last = -1;
  unsigned mask = flow_reduced_axes(&node->attributes, rank);
  *layout = flow_onnx_layout_of(x, node);
  for (int axis = 0; axis < rank && !keepdims; axis++) {
    if (mask >> axis & 1) continue;
    if (flow_onnx_axis(axis, *layout) < last) *layout = FLOW_CHANNELS_LAST;
    last = flow_onnx_axis(axis, *layout);
  }
  for (int axis = 0; axis < rank; axis++) {
    if (mask >> axis & 1) axes[count++] = flow_onnx_axis(axis, *layout);
  }
  return count;
}

/* A reduction that drops axes has no channels axis any more that could be elsewhere. */
static flow_onnx_layout layout_of_result(const flow_node *node, flow_onnx_layout layout)
{
  return node->attributes.reduce.keepdims ? layout : FLOW_CHANNELS_LAST;
}

/* Since version 18 the axes are an input. Without one, ONNX would reduce all axes: noop_with_empty_axes keeps a scalar unchanged. */
static void write_reduction(flow_onnx *x, const flow_node *node, const char *type, const char *input, const int64_t *axes, int count,
                            const char *result)
{
  const char *inputs[2] = { input, count > 0 ? flow_onnx_list(x, axes, count) : NULL };
  flow_onnx_begin(x, type, inputs, count > 0 ? 2 : 1, result);
  flow_onnx_integer(x, "keepdims", node->attributes.reduce.keepdims != 0);
  flow_onnx_integer(x, "noop_with_empty_axes", 1);
  flow_onnx_end(x);
}

/* The input is cast to the result's dtype first: ONNX' reductions give the dtype of their input. */
FLOW_ONNX_RULE(reduce)
{
  flow_onnx_layout layout;
  int64_t axes[FLOW_MAX_RANK];
  int count = reduced_axes(x, node, &layout, axes), dtype = result_signature(x, node)->dtype;
  const char *input = flow_onnx_input(x, node, 0, layout);
  if (dtype != flow_onnx_signature(x, node, 0)->dtype) input = flow_onnx_cast(x, input, dtype, NULL);
  write_reduction(x, node, type, input, axes, count, flow_onnx_result(x, node, 0, layout_of_result(node, layout)));
}

/* ONNX 18 has no reductions of bool: any and all are the largest and the smallest of 0 and 1. */
FLOW_ONNX_RULE(reduce_bool)
{
  flow_onnx_layout layout;
  int64_t axes[FLOW_MAX_RANK];
  int count = reduced_axes(x, node, &layout, axes);
  const char *input = flow_onnx_input(x, node, 0, layout);
  if (flow_onnx_signature(x, node, 0)->dtype != FLOW_BOOL) input = flow_onnx_cast(x, input, FLOW_BOOL, NULL);
  input = flow_onnx_cast(x, input, FLOW_INT32, NULL);
  const char *number = flow_onnx_result(x, node, 0, layout_of_result(node, layout));
  write_reduction(x, node, type, input, axes, count, number);
  flow_onnx_set(x, node, 0, layout_of_result(node, layout), flow_onnx_cast(x, number, FLOW_BOOL, NULL));
}

/* Without axes the position is that in the flattened tensor; `base` is added, 1 for callers that count from 1. */
FLOW_ONNX_RULE(argmax)
{
  const flow_signature *input = flow_onnx_signature(x, node, 0), *output = result_signature(x, node);
  const char *name = flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST);
  int64_t all = -1;
  int flattened = node->attributes.reduce.count == 0;
  if (flattened) name = flow_onnx_emit(x, "Reshape", NULL, name, flow_onnx_list(x, &all, 1), NULL);
  const char *position = flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST);
  int axis = node->attributes.reduce.axes[0];
  flow_onnx_begin(x, type, &name, 1, position);
  flow_onnx_integer(x, "axis", flattened ? 0 : axis < 0 ? axis + input->rank : axis);
  flow_onnx_integer(x, "keepdims", !flattened && node->attributes.reduce.keepdims);
  flow_onnx_end(x);
  if (flattened && output->rank > 0) position = flow_onnx_emit(x, "Reshape", NULL, position, flow_onnx_shape(x, output), NULL);
  if (node->attributes.reduce.base != 0) {
    position = flow_onnx_emit(x, "Add", NULL, position, flow_onnx_number(x, FLOW_INT64, node->attributes.reduce.base), NULL);
  }
  flow_onnx_set(x, node, 0, FLOW_CHANNELS_LAST, position);
}

/* How many elements the reduced axes have, as a float32 scalar: known sizes are multiplied now, those that depend on the rows when the
 * model runs. */
FLOW_ONNX_RULE(element_count)
{
  (void)type;
  const flow_signature *input = flow_onnx_signature(x, node, 0);
  unsigned mask = flow_reduced_axes(&node->attributes, input->rank);
  flow_signature symbolic = { .dtype = FLOW_INT64 };
  double count = 1;
  for (int axis = 0; axis < input->rank; axis++) {
    if (!(mask >> axis & 1)) continue;
    if (input->dims[axis] < 0) symbolic.dims[symbolic.rank++] = input->dims[axis];
    else count *= (double)input->dims[axis];
  }
  const char *known = flow_onnx_number(x, FLOW_FLOAT32, count);
  if (symbolic.rank > 0) {
    const char *rows = flow_onnx_cast(x, flow_onnx_shape(x, &symbolic), FLOW_FLOAT32, NULL);
    const char *product = flow_onnx_name(x, "ReduceProd");
    flow_onnx_begin(x, "ReduceProd", &rows, 1, product);
    flow_onnx_integer(x, "keepdims", 0);
    flow_onnx_end(x);
    flow_onnx_emit(x, "Mul", flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST), product, known, NULL);
    return;
  }
  flow_onnx_set(x, node, 0, FLOW_CHANNELS_LAST, known);
}

/* ---- movement ------------------------------------------------------------------------------------------------------------- */

/* One size that depends on the rows can be left to Reshape, -1, which keeps the graph short. Not if a size is 0: then -1 has no answer,
 * and 0 stands for "as in the input" unless allowzero is set. */
FLOW_ONNX_RULE(reshape)
{
  flow_signature to = *result_signature(x, node);
  int symbolic = 0, empty = 0;
  for (int i = 0; i < to.rank; i++) {
    symbolic += to.dims[i] < 0;
    empty |= to.dims[i] == 0;
  }
  const char *input = flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST), *shape;
  if (symbolic == 1 && !empty) {
    for (int i = 0; i < to.rank; i++) to.dims[i] = to.dims[i] < 0 ? -1 : to.dims[i];        /* -1: what is left */
    shape = flow_onnx_list(x, to.dims, to.rank);
  } else {
    shape = flow_onnx_shape(x, &to);
  }
  const char *inputs[2] = { input, shape }, *result = flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST);
  flow_onnx_begin(x, type, inputs, 2, result);
  if (empty) flow_onnx_integer(x, "allowzero", 1);
  flow_onnx_end(x);
}

/* Channels last: the permutation of the op is one of its own axes. */
FLOW_ONNX_RULE(permute)
{
  (void)type;
  int64_t axes[FLOW_MAX_RANK];
  int rank = node->attributes.transpose.rank;
  for (int i = 0; i < rank; i++) axes[i] = node->attributes.transpose.axes[i];
  const char *input = flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST);
  flow_onnx_transpose(x, input, axes, rank, flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST));
}

/* Operands in one layout, that of the node; the list of their names is the only memory that a rule here takes. */
FLOW_ONNX_RULE(concat)
{
  flow_onnx_layout layout = flow_onnx_layout_of(x, node);
  int axis = node->attributes.axis.axis, rank = result_signature(x, node)->rank;
  void *block;
  if (x->status == FLOW_OK) x->status = flow_alloc(sizeof(char *) * (size_t)node->input_count, &block);
  if (x->status != FLOW_OK) return;
  const char **inputs = block;
  for (int i = 0; i < node->input_count; i++) inputs[i] = flow_onnx_input(x, node, i, layout);
  const char *result = flow_onnx_result(x, node, 0, layout);
  flow_onnx_begin(x, type, inputs, node->input_count, result);
  flow_onnx_integer(x, "axis", flow_onnx_axis(axis < 0 ? axis + rank : axis, layout));
  flow_onnx_end(x);
  flow_free(block);
}

/* Axes that are taken as a whole are left out; of one that depends on the rows this is known where the end is beyond all sizes. A slice
 * that keeps everything is another name for its input. */
FLOW_ONNX_RULE(slice)
{
  flow_onnx_layout layout = flow_onnx_layout_of(x, node);
  int rank = node->attributes.slice.rank, count = 0;
  int64_t begin[FLOW_MAX_RANK], end[FLOW_MAX_RANK], step[FLOW_MAX_RANK], axes[FLOW_MAX_RANK];
  const flow_signature *from = flow_onnx_signature(x, node, 0);
  for (int axis = 0; axis < rank; axis++) {
    int64_t first = node->attributes.slice.begin[axis], last = node->attributes.slice.end[axis], by = node->attributes.slice.step[axis];
    if (first == 0 && by == 1 && (from->dims[axis] < 0 ? last > INT32_MAX : last >= from->dims[axis])) continue;      /* the whole axis */
    begin[count] = first;
    end[count] = by < 0 && last < 0 ? -from->dims[axis] - 1 : last; /* -1 would be the last element */
    step[count] = by;
    axes[count++] = flow_onnx_axis(axis, layout);
  }
  const char *input = flow_onnx_input(x, node, 0, layout);
  if (count == 0) {
    flow_onnx_set(x, node, 0, layout, input);
    return;
  }
  const char *inputs[5] = { input, flow_onnx_list(x, begin, count), flow_onnx_list(x, end, count), flow_onnx_list(x, axes, count),
                            flow_onnx_list(x, step, count) };
  const char *result = flow_onnx_result(x, node, 0, layout);
  flow_onnx_begin(x, type, inputs, 5, result);
  flow_onnx_end(x);
}

/* slice_gradient puts its input into zeros: padding, as long as it leaves no gaps. */
FLOW_ONNX_RULE(pad)
{
  flow_onnx_layout layout = flow_onnx_layout_of(x, node);
  const flow_signature *from = flow_onnx_signature(x, node, 0);
  int rank = node->attributes.slice.rank;
  int64_t pads[2 * FLOW_MAX_RANK];
  for (int axis = 0; axis < rank; axis++) {
    int at = flow_onnx_axis(axis, layout);
    int64_t begin = node->attributes.slice.begin[axis], to = node->attributes.slice.dims[axis], size = from->dims[axis];
    if (node->attributes.slice.step[axis] != 1 || ((to < 0 || size < 0) && to != size)) {
      flow_onnx_fail(x, FLOW_UNSUPPORTED, "the op slice_gradient has no ONNX form where it spreads its input");
      return;
    }
    pads[at] = begin;
    pads[at + rank] = to < 0 ? 0 : to - size - begin;
  }
  const char *input = flow_onnx_input(x, node, 0, layout), *list = flow_onnx_list(x, pads, 2 * rank);
  flow_onnx_emit(x, type, flow_onnx_result(x, node, 0, layout), input, list, NULL);
}

/* Rows of a table: ONNX takes indices of 32 and 64 bits. */
FLOW_ONNX_RULE(gather)
{
  int dtype = flow_onnx_signature(x, node, 1)->dtype;
  const char *table = flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST), *indices = flow_onnx_input(x, node, 1, FLOW_CHANNELS_LAST);
  if (dtype != FLOW_INT32 && dtype != FLOW_INT64) indices = flow_onnx_cast(x, indices, FLOW_INT64, NULL);
  flow_onnx_emit(x, type, flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST), table, indices, NULL);
}

/* along.axis from 0 of the first input. */
static int axis_along(const flow_onnx *x, const flow_node *node)
{
  int axis = node->attributes.along.axis;
  return axis < 0 ? axis + flow_onnx_signature(x, node, 0)->rank : axis;
}

/* ONNX' GatherElements counts positions from 0, too. */
FLOW_ONNX_RULE(take_along)
{
  const char *inputs[2] = { flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST), flow_onnx_input(x, node, 1, FLOW_CHANNELS_LAST) };
  int dtype = flow_onnx_signature(x, node, 1)->dtype;
  if (dtype != FLOW_INT32 && dtype != FLOW_INT64) inputs[1] = flow_onnx_cast(x, inputs[1], FLOW_INT64, NULL);
  flow_onnx_begin(x, type, inputs, 2, flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST));
  flow_onnx_integer(x, "axis", axis_along(x, node));
  flow_onnx_end(x);
}

/* The axis is an input of ONNX' CumSum, not an attribute. */
FLOW_ONNX_RULE(cumsum)
{
  const char *input = flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST);
  const char *inputs[2] = { input, flow_onnx_number(x, FLOW_INT64, axis_along(x, node)) };
  flow_onnx_begin(x, type, inputs, 2, flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST));
  flow_onnx_integer(x, "exclusive", node->attributes.along.exclusive);
  flow_onnx_integer(x, "reverse", node->attributes.along.reverse);
  flow_onnx_end(x);
}

/* All of an axis, or along.size of it, by TopK, whose second output are the positions; equal elements stay in their order. TopK needs the
 * number of elements when the model is written, so that the rows of a batch cannot be sorted. */
FLOW_ONNX_RULE(argsort)
{
  const flow_signature *input = flow_onnx_signature(x, node, 0);
  int axis = axis_along(x, node);
  if (input->dims[axis] < 0) {
    flow_onnx_fail(x, FLOW_UNSUPPORTED, "export: sorting the rows of a batch has no ONNX form");
    return;
  }
  const int64_t *size = node->attributes.along.size > 0 ? &node->attributes.along.size : &input->dims[axis];
  const char *inputs[2] = { flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST), flow_onnx_list(x, size, 1) };
  if (input->dtype == FLOW_BOOL) inputs[0] = flow_onnx_cast(x, inputs[0], FLOW_INT32, NULL);
  const char *position = flow_onnx_name(x, "positions");
  flow_onnx_begin(x, type, inputs, 2, flow_onnx_name(x, "sorted"));
  if (x->status == FLOW_OK) flow_message_text(&x->message, NODE_OUTPUT, position);
  flow_onnx_integer(x, "axis", axis);
  flow_onnx_integer(x, "largest", node->attributes.along.reverse);
  flow_onnx_end(x);
  if (node->attributes.along.base != 0)
    position = flow_onnx_emit(x, "Add", NULL, position, flow_onnx_number(x, FLOW_INT64, node->attributes.along.base), NULL);
  flow_onnx_set(x, node, 0, FLOW_CHANNELS_LAST, position);
}

/* ONNX' DFT has the two parts of a complex number as its last axis, and divides by the length when it is inverse. */
FLOW_ONNX_RULE(fourier)
{
  const flow_signature *input = flow_onnx_signature(x, node, 0);
  int64_t last = -1, axis = input->rank - 1, first = 0, size = node->attributes.fourier.size, count = node->attributes.fourier.count;
  const char *parts[2] = { NULL, NULL }, *lines;
  for (int i = 0; i < node->input_count; i++)
    parts[i] = flow_onnx_emit(x, "Unsqueeze", NULL, flow_onnx_input(x, node, i, FLOW_CHANNELS_LAST), flow_onnx_list(x, &last, 1), NULL);
  lines = parts[0];
  if (parts[1]) {
    lines = flow_onnx_name(x, "complex");
    flow_onnx_begin(x, "Concat", parts, 2, lines);
    flow_onnx_integer(x, "axis", axis + 1);
    flow_onnx_end(x);
  }
  const char *inputs[2] = { lines, flow_onnx_number(x, FLOW_INT64, (double)size) }, *result = flow_onnx_name(x, "transform");
  flow_onnx_begin(x, type, inputs, 2, result);
  flow_onnx_integer(x, "axis", axis);
  flow_onnx_integer(x, "inverse", node->attributes.fourier.inverse);
  flow_onnx_end(x);
  if (count < size) {
    const char *range[4] = { result, flow_onnx_list(x, &first, 1), flow_onnx_list(x, &count, 1), flow_onnx_list(x, &axis, 1) };
    result = flow_onnx_name(x, "entries");
    flow_onnx_begin(x, "Slice", range, 4, result);
    flow_onnx_end(x);
  }
  if (node->attributes.fourier.inverse)
    result = flow_onnx_emit(x, "Mul", NULL, result, flow_onnx_number(x, input->dtype, (double)size), NULL);
  for (int i = 0; i < 2; i++) {
    const char *of_part[2] = { result, flow_onnx_number(x, FLOW_INT64, i) };
    flow_onnx_begin(x, "Gather", of_part, 2, flow_onnx_result(x, node, i, FLOW_CHANNELS_LAST));
    flow_onnx_integer(x, "axis", axis + 1);
    flow_onnx_end(x);
  }
}

/* A constant scalar, expanded to a shape that may depend on the rows. */
FLOW_ONNX_RULE(fill)
{
  const char *value = flow_onnx_number(x, node->attributes.fill.dtype, node->attributes.fill.value);
  const char *shape = flow_onnx_shape(x, result_signature(x, node));
  flow_onnx_emit(x, type, flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST), value, shape, NULL);
}

/* Channels last, since the new axes come in front. */
FLOW_ONNX_RULE(broadcast_to)
{
  const char *input = flow_onnx_input(x, node, 0, FLOW_CHANNELS_LAST), *shape = flow_onnx_shape(x, result_signature(x, node));
  flow_onnx_emit(x, type, flow_onnx_result(x, node, 0, FLOW_CHANNELS_LAST), input, shape, NULL);
}

/* The op of flowlua, the rule that writes it, and the operator of ONNX that the rule gets as `type`. */
const flow_onnx_record flow_onnx_movement[] = {
  FLOW_ONNX(broadcast_to, broadcast_to, "Expand"),
  FLOW_ONNX(sum, reduce, "ReduceSum"),
  FLOW_ONNX(prod, reduce, "ReduceProd"),
  FLOW_ONNX(max, reduce, "ReduceMax"),
  FLOW_ONNX(min, reduce, "ReduceMin"),
  FLOW_ONNX(any, reduce_bool, "ReduceMax"),
  FLOW_ONNX(all, reduce_bool, "ReduceMin"),
  FLOW_ONNX(logsumexp, reduce, "ReduceLogSumExp"),
  FLOW_ONNX(argmax, argmax, "ArgMax"),
  FLOW_ONNX(argmin, argmax, "ArgMin"),
  FLOW_ONNX(element_count, element_count, NULL),
  FLOW_ONNX(reshape, reshape, "Reshape"),
  FLOW_ONNX(transpose, permute, "Transpose"),
  FLOW_ONNX(concat, concat, "Concat"),
  FLOW_ONNX(slice, slice, "Slice"),
  FLOW_ONNX(slice_gradient, pad, "Pad"),
  FLOW_ONNX(fill, fill, "Expand"),
  FLOW_ONNX(fourier, fourier, "DFT"),
  FLOW_ONNX(gather, gather, "Gather"),
  FLOW_ONNX(argsort, argsort, "TopK"),
  FLOW_ONNX(cumsum, cumsum, "CumSum"),
  FLOW_ONNX(take_along, take_along, "GatherElements"),
  { .rule = NULL },
};
