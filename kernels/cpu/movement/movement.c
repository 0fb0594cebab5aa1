/* movement.c: ops that move elements and never compute with them.
 *
 * Ops that run WHOLE split their output into parts of about PART_BYTES. Ops that are MAP for some attributes and WHOLE for
 * others, because they move the first axis, have a variant for each. */
#include "cpu/movement/movement.h"

#include "cpu/movement/convert.h"
#include "cpu/outer_pieces.h"
#include "tensor/tensor.h"

enum { PART_BYTES = 256 * 1024, MOST_PARTS = 256 };

/* Elements, and bytes of one. */
static int64_t operand_size(const flow_operand *operand) { return flow_shape_size(operand->rank, operand->shape); }
static size_t  element_size(const flow_operand *operand) { return (size_t)flow_dtype_size(operand->dtype); }

/* Parts for an output, at most `most`. */
static int64_t part_count(const flow_operand *output, int64_t most)
{
  int64_t parts = operand_size(output) * (int64_t)element_size(output) / PART_BYTES;
  if (parts > MOST_PARTS) parts = MOST_PARTS;
  if (parts > most) parts = most;
  return parts < 1 ? 1 : parts;
}

/* First of `total` items that belongs to a part; without total * part, which may overflow. */
static int64_t part_start(int64_t total, int64_t parts, int64_t part) { return total / parts * part + total % parts * part / parts; }

/* A scalar counts as one row. */
static int64_t row_count(const flow_operand *operand) { return operand->rank > 0 ? operand->shape[0] : 1; }

/* Parts that are ranges of rows of the output. */
static int64_t row_parts(const flow_call *call, int phase)
{
  (void)phase;
  return part_count(&call->outputs[0], row_count(&call->outputs[0]));
}

/* Copies rows [first, end) of the output; `from` is the element that belongs to the output's first one and
 * from_strides are its steps along the output's axes. */
static void copy_rows(const char *from, const int64_t *from_strides, const flow_operand *out, int64_t first, int64_t end)
{
  int64_t shape[FLOW_MAX_RANK];
  memcpy(shape, out->shape, sizeof shape);
  size_t size = element_size(out);
  char *to = out->data;
  if (out->rank > 0) {
    shape[0] = end - first;
    from += first * from_strides[0] * (int64_t)size;
    to += first * out->strides[0] * (int64_t)size;
  }
  FLOW_ISA_NAME(copy_strided)(size, out->rank, shape, from, from_strides, to, out->strides);
}

/* ---- copies --------------------------------------------------------------------------------------------------------- */

/* Broadcasting included: the source's strides say what is repeated. */
static flow_status run_copy(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  if (call->outputs[0].data) FLOW_ISA_NAME(copy_operand)(&call->inputs[0], &call->outputs[0]);
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(copy)[] = { { .variant = "copy", .run = run_copy }, { 0 } };
const flow_kernel FLOW_KERNELS(stop_gradient)[] = { { .variant = "copy", .run = run_copy }, { 0 } };
const flow_kernel FLOW_KERNELS(broadcast_to)[] = { { .variant = "copy", .run = run_copy }, { 0 } };

/* Where the output could not share the input's memory. Both are contiguous. */
static flow_status run_reshape(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  if (out->data && out->data != in->data) copy_bytes(out->data, in->data, (size_t)operand_size(out) * element_size(out));
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(reshape)[] = { { .variant = "copy", .run = run_reshape }, { 0 } };

/* ---- transpose -------------------------------------------------------------------------------------------------------- */

/* Whether the output's first axis is another one of the input: such a call is WHOLE and has parts. */
static int moves_rows(const flow_call *call) { return call->outputs[0].rank > 0 && call->attributes->transpose.axes[0] != 0; }

/* Rows [first, end) of the output: a copy with the input's strides in the order of the output's axes. */
static void transpose_rows(const flow_call *call, int64_t first, int64_t end)
{
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  int64_t strides[FLOW_MAX_RANK];
  for (int i = 0; i < out->rank; i++) strides[i] = in->strides[call->attributes->transpose.axes[i]];
  if (out->data) copy_rows(in->data, strides, out, first, end);
}

/* WHOLE: ranges of rows of the output, whose elements come from all rows of the input. */
static flow_status run_transpose_parts(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  int64_t parts = row_parts(call, phase), rows = call->outputs[0].shape[0];
  transpose_rows(call, part_start(rows, parts, begin), part_start(rows, parts, end));
  return FLOW_OK;
}

/* MAP: all rows of the chunk. */
static flow_status run_transpose(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  transpose_rows(call, 0, row_count(&call->outputs[0]));
  return FLOW_OK;
}

/* A range of the output's outer axis. */
static flow_status run_transpose_piece(const flow_call *call, int64_t piece)
{
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  int64_t pieces = flow_outer_pieces(call), strides[FLOW_MAX_RANK];
  int axis = flow_outer_axis(out);
  if (!out->data || pieces == 1) return run_transpose(call, 0, 0, 1);
  int64_t first = part_start(out->shape[axis], pieces, piece), end = part_start(out->shape[axis], pieces, piece + 1);
  flow_operand part = flow_outer_range(out, out->rank, axis, first, end);
  for (int i = 0; i < out->rank; i++) strides[i] = in->strides[call->attributes->transpose.axes[i]];
  const char *from = (const char *)in->data + first * strides[axis] * (int64_t)element_size(in);
  FLOW_ISA_NAME(copy_strided)(element_size(out), part.rank, part.shape, from, strides, part.data, part.strides);
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(transpose)[] = {
  { .variant = "blocked", .supports = moves_rows, .parts = row_parts, .run = run_transpose_parts },
  { .variant = "blocked", .run = run_transpose, .pieces = flow_outer_pieces, .run_piece = run_transpose_piece },
  { 0 },
};

/* ---- slices ----------------------------------------------------------------------------------------------------------- */

/* The first taken element's offset, and the steps of a slice, through an array with these strides. */
static int64_t slice_view(const flow_attributes *attributes, const flow_operand *array, int64_t *strides)
{
  int64_t offset = 0;
  for (int i = 0; i < array->rank; i++) {
    int named = i < attributes->slice.rank;
    offset += named ? attributes->slice.begin[i] * array->strides[i] : 0;
    strides[i] = array->strides[i] * (named ? attributes->slice.step[i] : 1);
  }
  return offset;
}

/* A slice that leaves out rows or turns their order is WHOLE (flow_kind_slice). */
static int moves_slice_rows(const flow_call *call)
{
  return call->outputs[0].rank > 0 && (call->inputs[0].shape[0] != call->outputs[0].shape[0] || call->attributes->slice.step[0] < 0);
}

/* Rows [first, end) of the output. */
static void slice_rows(const flow_call *call, int64_t first, int64_t end)
{
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  if (!out->data || operand_size(out) == 0) return;
  int64_t strides[FLOW_MAX_RANK], offset = slice_view(call->attributes, in, strides);
  copy_rows((const char *)in->data + offset * (int64_t)element_size(in), strides, out, first, end);
}

/* WHOLE: ranges of rows of the output. */
static flow_status run_slice_parts(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  int64_t parts = row_parts(call, phase), rows = call->outputs[0].shape[0];
  slice_rows(call, part_start(rows, parts, begin), part_start(rows, parts, end));
  return FLOW_OK;
}

/* MAP: all rows of the chunk. */
static flow_status run_slice(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  slice_rows(call, 0, row_count(&call->outputs[0]));
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(slice)[] = {
  { .variant = "copy", .supports = moves_slice_rows, .parts = row_parts, .run = run_slice_parts },
  { .variant = "copy", .run = run_slice },
  { 0 },
};

/* Zeros everywhere, then g into the view that slice took. A slice names each element once, so that nothing is added. */
static flow_status run_slice_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *g = &call->inputs[0], *out = &call->outputs[0];
  if (!out->data) return FLOW_OK;
  memset(out->data, 0, (size_t)operand_size(out) * element_size(out));
  if (operand_size(g) == 0) return FLOW_OK;
  int64_t strides[FLOW_MAX_RANK], offset = slice_view(call->attributes, out, strides);
  FLOW_ISA_NAME(copy_strided)(element_size(out), g->rank, g->shape, g->data, g->strides,
                              (char *)out->data + offset * (int64_t)element_size(out), strides);
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(slice_gradient)[] = { { .variant = "scatter", .run = run_slice_gradient }, { 0 } };

/* ---- joining ------------------------------------------------------------------------------------------------------------ */

/* pack: the output is one run of elements; a part copies what the inputs have in its range of it. */
static int64_t pack_parts(const flow_call *call, int phase)
{
  (void)phase;
  return part_count(&call->outputs[0], INT64_MAX);
}

/* The elements of the result are cut into equal parts, whatever inputs they come from; inputs that are in place already are not copied. */
static flow_status run_pack(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const flow_operand *out = &call->outputs[0];
  if (!out->data) return FLOW_OK;
  int64_t parts = pack_parts(call, phase), total = operand_size(out), size = (int64_t)element_size(out), position = 0;
  int64_t first = part_start(total, parts, begin), last = part_start(total, parts, end);
  for (int i = 0; i < call->input_count && position < last; i++) {
    const flow_operand *in = &call->inputs[i];
    int64_t count = operand_size(in);
    int64_t from = position < first ? first - position : 0, to = position + count > last ? last - position : count;
    char *place = (char *)out->data + (position + from) * size;
    const char *source = (const char *)in->data + from * size;
    if (from < to && place != source) copy_bytes(place, source, (size_t)((to - from) * size));
    position += count;
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(pack)[] = { { .variant = "copy", .parts = pack_parts, .run = run_pack }, { 0 } };

/* concat: along the first axis contiguous inputs are packed; along another one, each is copied into its columns. */
static int concat_axis(const flow_call *call)
{
  int axis = call->attributes->axis.axis;
  return axis < 0 ? axis + call->outputs[0].rank : axis;
}

/* Along the first axis concat is WHOLE, and contiguous inputs follow each other in the output. */
static int joins_rows(const flow_call *call) { return concat_axis(call) == 0; }

/* One input after the other; `to` moves along the axis by each one's size. */
static flow_status run_concat(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *out = &call->outputs[0];
  int axis = concat_axis(call);
  char *to = out->data;
  for (int i = 0; i < call->input_count && out->data; i++) {
    const flow_operand *in = &call->inputs[i];
    FLOW_ISA_NAME(copy_strided)(element_size(out), in->rank, in->shape, in->data, in->strides, to, out->strides);
    to += in->shape[axis] * out->strides[axis] * (int64_t)element_size(out);
  }
  return FLOW_OK;
}
/* An axis before the one that is joined: there all inputs are as long as the output. */
static int64_t concat_pieces(const flow_call *call)
{
  return flow_outer_axis(&call->outputs[0]) < concat_axis(call) ? flow_outer_pieces(call) : 1;
}

/* A range of an axis that all inputs have. */
static flow_status run_concat_piece(const flow_call *call, int64_t piece)
{
  return concat_pieces(call) > 1 ? flow_run_outer_piece(run_concat, call, piece) : run_concat(call, 0, 0, 1);
}

const flow_kernel FLOW_KERNELS(concat)[] = {
  { .variant = "copy", .supports = joins_rows, .parts = pack_parts, .run = run_pack },
  { .variant = "copy", .run = run_concat, .pieces = concat_pieces, .run_piece = run_concat_piece },
  { 0 },
};

/* ---- fill, element_count ------------------------------------------------------------------------------------------------ */

/* The value is converted once and repeated with a stride of 0. */
static flow_status run_fill(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const flow_operand *out = &call->outputs[0];
  if (!out->data) return FLOW_OK;
  int64_t parts = pack_parts(call, phase), total = operand_size(out), size = (int64_t)element_size(out);
  int64_t first = part_start(total, parts, begin), last = part_start(total, parts, end);
  char value[8];
  FLOW_ISA_NAME(store)[FLOW_KIND_DOUBLE][out->dtype](&call->attributes->fill.value, value, 1, 1);
  int64_t shape[1] = { last - first }, repeat[1] = { 0 }, packed[1] = { 1 };
  FLOW_ISA_NAME(copy_strided)((size_t)size, 1, shape, value, repeat, (char *)out->data + first * size, packed);
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(fill)[] = { { .variant = "fill", .parts = pack_parts, .run = run_fill }, { 0 } };

/* How many elements a reduction over these axes combines: known from shapes, an op so that a trace for any number of rows can have it. */
static flow_status run_element_count(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  const flow_attributes *attributes = call->attributes;
  if (!out->data) return FLOW_OK;
  double count = 1;
  for (int i = 0; i < (attributes->reduce.count ? attributes->reduce.count : in->rank); i++) {
    int axis = attributes->reduce.count ? attributes->reduce.axes[i] : i;
    count *= (double)in->shape[axis < 0 ? axis + in->rank : axis];
  }
  FLOW_ISA_NAME(store)[FLOW_KIND_DOUBLE][out->dtype](&count, out->data, 1, 1);
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(element_count)[] = { { .variant = "shapes", .run = run_element_count }, { 0 } };
