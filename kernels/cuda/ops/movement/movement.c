/* movement.c: the ops that only move elements. */
#include "cuda/runtime/launch.h"
#include "cuda/device/move.h"
#include "cuda/ops/movement/movement.h"

#include "ops/op.h"
#include "tensor/tensor.h"

/* Below, tiles would stay empty for the most part. */
enum { TRANSPOSE_LEAST = 8, JOIN_LARGE = 256 * 1024 };

static view whole_view(const flow_operand *x) { return flow_cuda_view(x, x->rank, x->shape); }

static int64_t tiles(int64_t n) { return (n + TRANSPOSE_TILE - 1) / TRANSPOSE_TILE; }

/* A transposition: `to` packed, and in `from` the axis before the last is. */
static int transposed(const view *from, const view *to)
{
  int row = from->rank - 2;
  return flow_cuda_view_is(to, 1) && (from->rank == 2 || from->rank == 3) && from->stride[row] == 1 && from->size[row] >= TRANSPOSE_LEAST &&
         from->size[row + 1] >= TRANSPOSE_LEAST && from->stride[row + 1] != 0 && tiles(from->size[row]) < INT32_MAX &&
         tiles(from->size[row + 1]) < INT32_MAX;
}

/* A tile is read along the axis that is packed in `from`, and written along the one that is packed in `to`; both are then whole lines of
 * memory. */
static flow_status transpose_each(const flow_call *call, const view *from, const view *to, int size)
{
  int row = from->rank - 2;
  int64_t rows = from->size[row], columns = from->size[row + 1], outer = row > 0 ? from->size[0] : 1;
  transpose_tiles_arguments a = { .from = from->data, .to = to->data, .rows = rows, .columns = columns,
                                  .from_column = from->stride[row + 1], .to_row = columns,
                                  .from_outer = row > 0 ? from->stride[0] : 0, .to_outer = rows * columns, .size = size,
                                  .row_tiles = (int32_t)tiles(rows), .column_tiles = (int32_t)tiles(columns) };
  return flow_cuda_launch(call, CUDA_transpose_tiles, outer * a.row_tiles * a.column_tiles, &a, sizeof a);
}

/* The view in units of `width` neighbours, `size` bytes together, or 0 where it has none: on its last axis they are next to each other, and
 * each unit begins at a multiple of its size. */
static int in_units(const view *v, int width, int size, view *out)
{
  const int last = v->rank - 1;
  int64_t shape[FLOW_MAX_RANK], strides[FLOW_MAX_RANK];
  if (v->stride[last] != 1 || v->size[last] % width != 0 || (uintptr_t)v->data % (size_t)size != 0) return 0;
  for (int axis = 0; axis < v->rank; axis++) {
    if (axis < last && v->stride[axis] % width != 0) return 0;
    shape[axis] = axis < last ? v->size[axis] : v->size[axis] / width;
    strides[axis] = axis < last ? v->stride[axis] / width : 1;
  }
  *out = flow_cuda_view_strided(v->data, v->dtype, v->rank, shape, strides);
  return 1;
}

/* The widest units that both sides allow. Bytes of one. */
static int widen(view *from, view *to, int64_t *count, int size)
{
  for (int unit = 16; unit > size; unit /= 2) {
    view wide_from, wide_to;
    if (!in_units(from, unit / size, unit, &wide_from) || !in_units(to, unit / size, unit, &wide_to)) continue;
    *from = wide_from;
    *to = wide_to;
    *count /= unit / size;
    return unit;
  }
  return size;
}

/* Copies `count` elements of the same dtype from one view to another: the fastest of three ways, by the strides: a plain copy, tiles
 * through shared memory, unit by unit. Nothing if both are the same place. */
flow_status flow_cuda_move(const flow_call *call, view from, view to, int64_t count)
{
  int size = flow_dtype_size(to.dtype);
  if (count == 0 || from.data == to.data) return FLOW_OK;
  if (flow_cuda_view_is(&from, 1) && flow_cuda_view_is(&to, 1))
    return flow_cuda_copy(call, to.data, from.data, (size_t)count * (size_t)size);
  if (transposed(&from, &to)) return transpose_each(call, &from, &to, size);
  const int unit = widen(&from, &to, &count, size);
  move_strided_arguments a = { .from = from, .to = to, .size = unit };
  return flow_cuda_launch(call, CUDA_move_strided, count, &a, sizeof a);
}

/* Zeros, eight bytes at a time where the address and the size allow it. */
flow_status flow_cuda_clear(const flow_call *call, void *to, size_t bytes)
{
  int wide = (uintptr_t)to % 8 == 0 && bytes % 8 == 0;
  flow_operand y = { .data = to, .dtype = wide ? FLOW_INT64 : FLOW_UINT8, .rank = 1, .shape = { (int64_t)(wide ? bytes / 8 : bytes) },
                     .strides = { 1 } };
  return flow_cuda_fill(call, &y, 0);
}

/* ---- copies, transpositions, slices ------------------------------------------------------------------------------------------ */

/* Axes that x does not have, or of which it has one element, are strides of 0 in its view. */
static flow_status run_copy(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  if (!y->data) return FLOW_OK;
  return flow_cuda_move(call, flow_cuda_view(x, y->rank, y->shape), whole_view(y), flow_cuda_size(y));
}
const flow_kernel flow_cuda_copy_kernels[] = { { .variant = "copy", .run = run_copy }, { 0 } };
const flow_kernel flow_cuda_stop_gradient_kernels[] = { { .variant = "copy", .run = run_copy }, { 0 } };
const flow_kernel flow_cuda_broadcast_to_kernels[] = { { .variant = "copy", .run = run_copy }, { 0 } };

/* Where the output could not share the input's memory. Both are contiguous. */
static flow_status run_reshape(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  size_t bytes = (size_t)flow_cuda_size(y) * (size_t)flow_dtype_size(y->dtype);
  return y->data && y->data != x->data && bytes > 0 ? flow_cuda_copy(call, y->data, x->data, bytes) : FLOW_OK;
}
const flow_kernel flow_cuda_reshape_kernels[] = { { .variant = "copy", .run = run_reshape }, { 0 } };

/* The input with its strides in another order, as a view. */
static flow_status run_transpose(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  int64_t strides[FLOW_MAX_RANK];
  if (!y->data) return FLOW_OK;
  for (int i = 0; i < y->rank; i++) strides[i] = x->strides[call->attributes->transpose.axes[i]];
  view from = flow_cuda_view_strided(x->data, x->dtype, y->rank, y->shape, strides);
  return flow_cuda_move(call, from, whole_view(y), flow_cuda_size(y));
}
const flow_kernel flow_cuda_transpose_kernels[] = { { .variant = "tiles", .run = run_transpose }, { 0 } };

/* The input from another address on, with steps as factors of its strides. Axes beyond those named are whole. */
static flow_status run_slice(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  int64_t strides[FLOW_MAX_RANK], offset = 0;
  if (!y->data || flow_cuda_size(y) == 0) return FLOW_OK;
  for (int i = 0; i < x->rank; i++) {
    int named = i < call->attributes->slice.rank;
    offset += named ? call->attributes->slice.begin[i] * x->strides[i] : 0;
    strides[i] = x->strides[i] * (named ? call->attributes->slice.step[i] : 1);
  }
  view from = flow_cuda_view_strided((char *)x->data + offset * flow_dtype_size(x->dtype), x->dtype, y->rank, y->shape, strides);
  return flow_cuda_move(call, from, whole_view(y), flow_cuda_size(y));
}
const flow_kernel flow_cuda_slice_kernels[] = { { .variant = "copy", .run = run_slice }, { 0 } };

static flow_status run_slice_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *g = &call->inputs[0], *y = &call->outputs[0];
  if (!y->data) return FLOW_OK;
  spread_slice_arguments a = { .g = g->data, .y = y->data, .rank = y->rank, .size = flow_dtype_size(y->dtype) };
  for (int i = 0; i < y->rank; i++) {
    int named = i < call->attributes->slice.rank;
    a.dims[i] = y->shape[i];
    a.begin[i] = named ? call->attributes->slice.begin[i] : 0;
    a.step[i] = named ? call->attributes->slice.step[i] : 1;
    a.taken[i] = g->shape[i];
  }
  return flow_cuda_launch(call, CUDA_spread_slice, flow_cuda_size(y), &a, sizeof a);
}
const flow_kernel flow_cuda_slice_gradient_kernels[] = { { .variant = "spread", .run = run_slice_gradient }, { 0 } };

/* ---- joining ------------------------------------------------------------------------------------------------------------------ */

/* Launches what was collected, and begins anew. */
static flow_status launch_join(const flow_call *call, join_arrays_arguments *a)
{
  int64_t count = a->first[a->parts];
  flow_status status = count > 0 ? flow_cuda_launch(call, CUDA_join_arrays, count, a, sizeof *a) : FLOW_OK;
  a->parts = 0;
  return status;
}

/* Large inputs are copied one by one, the small ones of many by one launch. */
static flow_status run_pack(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *y = &call->outputs[0];
  int size = flow_dtype_size(y->dtype);
  char *to = y->data;
  join_arrays_arguments a = { .size = size };
  if (!to) return FLOW_OK;
  for (int i = 0; i < call->input_count; i++) {
    const flow_operand *x = &call->inputs[i];
    int64_t count = flow_cuda_size(x), bytes = count * size;
    char *place = to;
    to += bytes;
    if (count == 0 || x->data == place) continue;
    if (bytes >= JOIN_LARGE) {
      FLOW_TRY(flow_cuda_copy(call, place, x->data, (size_t)bytes));
      continue;
    }
    a.from[a.parts] = x->data;
    a.to[a.parts] = place;
    a.first[a.parts + 1] = a.first[a.parts] + count;
    if (++a.parts == JOIN_PARTS) FLOW_TRY(launch_join(call, &a));
  }
  return a.parts > 0 ? launch_join(call, &a) : FLOW_OK;
}
const flow_kernel flow_cuda_pack_kernels[] = { { .variant = "join", .run = run_pack }, { 0 } };

static int concat_axis(const flow_call *call)
{
  int axis = call->attributes->axis.axis;
  return axis < 0 ? axis + call->outputs[0].rank : axis;
}

/* Along the first axis the inputs follow one another in memory, as in pack. */
static int joins_rows(const flow_call *call) { return concat_axis(call) == 0; }

/* Each input is moved to its columns of the output. */
static flow_status run_concat(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *y = &call->outputs[0];
  int axis = concat_axis(call);
  char *to = y->data;
  for (int i = 0; i < call->input_count && y->data; i++) {
    const flow_operand *x = &call->inputs[i];
    view target = flow_cuda_view_strided(to, y->dtype, x->rank, x->shape, y->strides);
    FLOW_TRY(flow_cuda_move(call, whole_view(x), target, flow_cuda_size(x)));
    to += x->shape[axis] * y->strides[axis] * flow_dtype_size(y->dtype);
  }
  return FLOW_OK;
}
const flow_kernel flow_cuda_concat_kernels[] = {
  { .variant = "join", .supports = joins_rows, .run = run_pack }, { .variant = "columns", .run = run_concat }, { 0 }
};

/* ---- element_count -------------------------------------------------------------------------------------------------------------- */

/* The number follows from shapes, and is a fill, which waits for nobody who makes the input. */
static flow_status run_element_count(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  const flow_attributes *attributes = call->attributes;
  double count = 1;
  if (!y->data) return FLOW_OK;
  for (int i = 0; i < (attributes->reduce.count ? attributes->reduce.count : x->rank); i++) {
    int axis = attributes->reduce.count ? attributes->reduce.axes[i] : i;
    count *= (double)x->shape[axis < 0 ? axis + x->rank : axis];
  }
  flow_call alone = *call;
  alone.input_count = 0;
  return flow_cuda_fill(&alone, y, count);
}
const flow_kernel flow_cuda_element_count_kernels[] = { { .variant = "shapes", .run = run_element_count }, { 0 } };
