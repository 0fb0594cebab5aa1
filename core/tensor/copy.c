/* copy.c: writing whole tensors: copy with cast and broadcast, fill, contiguous, rows by an order, shuffle. A copy is one loop nest over
 * both operands, in which axes that both walk with one stride are joined; the innermost axis is one call of flow_convert. Overlapping
 * operands are copied by way of a third tensor. */
#include "base/float_state.h"
#include "base/need.h"
#include "base/team.h"
#include "tensor/convert.h"

#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "tensor/mirrors.h"

/* ---- copy ------------------------------------------------------------------------------------------------------------------ */

/* One loop nest over two operands of equal shape. */
typedef struct loop_nest {
  int     rank;
  int64_t shape[FLOW_MAX_RANK], to_strides[FLOW_MAX_RANK], from_strides[FLOW_MAX_RANK];   /* elements */
} loop_nest;

/* Adds an innermost axis; joins it with the axis before if both operands have one stride over the two. */
static void nest_add_axis(loop_nest *nest, int64_t size, int64_t to_stride, int64_t from_stride)
{
  if (size == 1) return;
  int last = nest->rank - 1;
  if (last >= 0 && nest->to_strides[last] == size * to_stride && nest->from_strides[last] == size * from_stride) {
    nest->shape[last] *= size;
    nest->to_strides[last] = to_stride;
    nest->from_strides[last] = from_stride;
    return;
  }
  nest->shape[nest->rank] = size;
  nest->to_strides[nest->rank] = to_stride;
  nest->from_strides[nest->rank] = from_stride;
  nest->rank++;
}

/* NumPy's rule: axes are matched from the last one; a size of 1 is repeated. */
static int is_broadcastable(const flow_tensor *from, const flow_tensor *to)
{
  if (from->rank > to->rank) return 0;
  for (int axis = 0; axis < from->rank; axis++) {
    int64_t size = from->shape[axis];
    if (size != 1 && size != to->shape[axis + to->rank - from->rank]) return 0;
  }
  return 1;
}

/* Axes of size 1 are left out; what is repeated has the stride 0. The result has at least one axis. Both tensors are
 * concrete and not empty, and `from` broadcasts to `to`. */
static loop_nest nest_of_copy(const flow_tensor *to, const flow_tensor *from)
{
  loop_nest nest = { 0 };
  int missing = to->rank - from->rank;
  for (int axis = 0; axis < to->rank; axis++) {
    int64_t from_stride = axis < missing || from->shape[axis - missing] == 1 ? 0 : from->strides[axis - missing];
    nest_add_axis(&nest, to->shape[axis], to->strides[axis], from_stride);
  }
  if (nest.rank == 0) {                      /* a single element is a loop of one */
    nest.shape[0] = 1;
    nest.to_strides[0] = nest.from_strides[0] = 1;
    nest.rank = 1;
  }
  return nest;
}

/* Copies the axes from `axis` on; to, from: their first elements. No size is 0. The depth is at most FLOW_MAX_RANK. */
static void run_nest(const loop_nest *nest, int axis, int to_dtype, char *to, int from_dtype, const char *from)
{
  int64_t to_stride = nest->to_strides[axis], from_stride = nest->from_strides[axis];
  if (axis == nest->rank - 1) {
    flow_convert(from_dtype, from, from_stride, to_dtype, to, to_stride, nest->shape[axis]);
    return;
  }
  to_stride *= flow_dtype_size(to_dtype);
  from_stride *= flow_dtype_size(from_dtype);
  for (int64_t i = 0; i < nest->shape[axis]; i++) {
    run_nest(nest, axis + 1, to_dtype, to + i * to_stride, from_dtype, from + i * from_stride);
  }
}

/* The bytes between the first and after the last element of a tensor that is not empty. Strides may be negative, so that
 * the first element in memory need not be that of position 0. */
static void tensor_extent(const flow_tensor *tensor, uintptr_t *low, uintptr_t *high)
{
  int64_t first = 0, last = 0;
  for (int axis = 0; axis < tensor->rank; axis++) {
    int64_t reach = (tensor->shape[axis] - 1) * tensor->strides[axis];
    if (reach < 0) first += reach;
    else last += reach;
  }
  int64_t size = flow_dtype_size(tensor->dtype);
  *low = (uintptr_t)tensor->data + (uintptr_t)(first * size);
  *high = (uintptr_t)tensor->data + (uintptr_t)((last + 1) * size);
}

/* By extents: two tensors whose elements alternate in memory count as overlapping, too, which costs a copy but no
 * result. */
static int overlap(const flow_tensor *a, const flow_tensor *b)
{
  uintptr_t a_low, a_high, b_low, b_high;
  tensor_extent(a, &a_low, &a_high);
  tensor_extent(b, &b_low, &b_high);
  return a_low < b_high && b_low < a_high;
}

/* For operands that overlap: by way of a packed tensor of the source's dtype, which shares memory with neither, so that
 * the calls of flow_tensor_copy here do not come back to this function. The target is not changed if there is no memory
 * for it. */
static flow_status copy_apart(flow_tensor *to, const flow_tensor *from)
{
  flow_tensor *between;
  FLOW_TRY(flow_tensor_new_uninitialized(from->dtype, from->rank, from->shape, &between));
  flow_status status = flow_tensor_copy(between, from);
  if (status == FLOW_OK) status = flow_tensor_copy(to, between);
  flow_tensor_release(between);
  return status;
}

/* Casts and broadcasts. The target is written as a whole or, after a failed check, not at all. On the host only the
 * checks and the memory for operands that overlap can fail. If one of the two is on a device, a transfer can fail, too:
 * then the target's contents are undefined, and its storage counts as written. */
flow_status flow_tensor_copy(flow_tensor *to, const flow_tensor *from)
{
  FLOW_TRY(flow_check_concrete("the target of a copy", to));
  FLOW_TRY(flow_check_concrete("the source of a copy", from));
  if (!is_broadcastable(from, to)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "shape %s does not broadcast to shape %s", flow_shape_text(from->rank, from->shape),
                     flow_shape_text(to->rank, to->shape));
  }
  if (flow_shape_size(to->rank, to->shape) == 0) return FLOW_OK;
  if (flow_tensor_place(to) || flow_tensor_place(from)) return flow_tensor_copy_between(to, from);
  if (overlap(to, from)) return copy_apart(to, from);
  flow_storage_written(to->storage);
  loop_nest nest = nest_of_copy(to, from);
  run_nest(&nest, 0, to->dtype, to->data, from->dtype, from->data);
  return FLOW_OK;
}

/* `element`, of the tensor's dtype, in all of its places; there is one at least. A run of copies doubles until it is worth a call of memcpy
 * and still fits in the nearest cache. */
static void fill_packed(flow_tensor *tensor, const void *element)
{
  enum { RUN_BYTES = 4096 };
  size_t size = (size_t)flow_dtype_size(tensor->dtype), bytes = (size_t)flow_shape_size(tensor->rank, tensor->shape) * size, done = size;
  memcpy(tensor->data, element, size);
  for (size_t run; done < bytes; done += run) {
    run = done < RUN_BYTES ? done : RUN_BYTES;
    if (run > bytes - done) run = bytes - done;
    memcpy(tensor->data + done, tensor->data, run);
  }
}

/* Writes value, converted to the dtype as flow_convert_from_double does it, to each element; elements between those of a
 * view stay. The source is a tensor of rank 0 on the stack, which broadcasts to any shape. */
flow_status flow_tensor_fill(flow_tensor *tensor, double value)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_TRY(flow_check_concrete("the tensor to fill", tensor));
  if (flow_shape_size(tensor->rank, tensor->shape) == 0) return FLOW_OK;
  if (flow_tensor_place(tensor)) return flow_tensor_fill_at_place(tensor, value);
  flow_storage_written(tensor->storage);
  uint64_t element;                      /* one element of any dtype */
  flow_convert_from_double(tensor->dtype, &value, &element, 1, 1);
  if (flow_tensor_is_contiguous(tensor)) {
    fill_packed(tensor, &element);
    return FLOW_OK;
  }
  flow_tensor one = { .dtype = tensor->dtype };
  loop_nest nest = nest_of_copy(tensor, &one);
  run_nest(&nest, 0, tensor->dtype, tensor->data, tensor->dtype, (const char *)&element);
  return FLOW_OK;
}

/* A new reference to the same tensor where it is contiguous already, else a packed copy in the same place. */
flow_status flow_tensor_contiguous(flow_tensor *tensor, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(tensor);
  FLOW_TRY(flow_check_concrete("the tensor of contiguous()", tensor));
  if (flow_tensor_is_contiguous(tensor)) {
    *out = flow_tensor_retain(tensor);
    return FLOW_OK;
  }
  flow_tensor *packed;
  FLOW_TRY(flow_tensor_new_at(flow_tensor_place(tensor), tensor->dtype, tensor->rank, tensor->shape, &packed));
  flow_status status = flow_tensor_copy(packed, tensor);
  if (status != FLOW_OK) {
    flow_tensor_release(packed);
    return status;
  }
  *out = packed;
  return FLOW_OK;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------- */

/* Both sides as rows of one kind, contiguous, so that a row is one copy of bytes. */
static flow_status check_rows(const flow_tensor *source, const flow_tensor *into, int64_t count)
{
  if (source->rank < 1 || into->rank < 1 || source->dtype != into->dtype ||
      !flow_shape_equal(source->rank - 1, source->shape + 1, into->rank - 1, into->shape + 1)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "rows of a %s tensor of shape %s do not fit into a %s tensor of shape %s",
                     flow_dtype_name(source->dtype), flow_shape_text(source->rank, source->shape),
                     flow_dtype_name(into->dtype), flow_shape_text(into->rank, into->shape));
  }
  if (!flow_tensor_is_contiguous(source) || !flow_tensor_is_contiguous(into)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "rows are gathered between contiguous tensors only; make a contiguous copy first");
  }
  if (count > into->shape[0]) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%lld rows do not fit into shape %s", (long long)count,
                     flow_shape_text(into->rank, into->shape));
  }
  return FLOW_OK;
}

/* Refuses an order of rows that is not on the host or not an int64 tensor of rank 1. Its elements are not looked at. */
static flow_status check_order(const flow_tensor *order)
{
  FLOW_TRY(flow_check_on_host("the order of rows", order));
  if (order->dtype != FLOW_INT64 || order->rank != 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the order of rows is a %s tensor of shape %s; an int64 tensor of rank 1 is needed",
                     flow_dtype_name(order->dtype), flow_shape_text(order->rank, order->shape));
  }
  return FLOW_OK;
}

/* A count that Lua passed as a double. The bound comes before the cast, which is undefined for numbers beyond int64_t; a
 * NaN fails the first comparison. */
static int is_count(double number)
{
  return number >= 0 && number <= 0x1p53 && number == (double)(int64_t)number;
}

/* Rows are gathered by the team, in shares of about this size. */
enum { GATHER_BYTES = 512 << 10 };

/* A gathering as all members of the team see it, on the stack of the caller. */
typedef struct gathering {
  char          *to;
  const char    *from;
  const int64_t *position;
  int64_t        stride, rows, share;     /* elements between positions; rows in all and in a share */
  size_t         row_bytes;
  flow_ticket    ticket;
} gathering;

/* The positions were checked by the caller. A share is taken with the ticket, so that a member that is late takes fewer
 * of them. */
static void gather_member(flow_region *region, int member, int members, void *argument)
{
  gathering *g = argument;
  (void)region, (void)member, (void)members;
  int64_t first;
  while ((first = flow_ticket_take(&g->ticket) * g->share) < g->rows) {
    int64_t last = first + g->share < g->rows ? first + g->share : g->rows;
    for (int64_t i = first; i < last; i++)
      memcpy(g->to + (size_t)i * g->row_bytes, g->from + (size_t)g->position[i * g->stride] * g->row_bytes, g->row_bytes);
  }
}

/* Rows order[first] .. of the source, into the first `count` rows of `into`. All positions are checked before anything
 * is written, so that a wrong order leaves the target unchanged. Threads share the copying; each row is written by one
 * of them.
 *
 * order NULL: the rows follow each other, and source and target may overlap. With an order they must not: another member
 * may have written a row before it is read. first and count are doubles since Lua's numbers are; count may be less than
 * the rows of the target, of which the others stay unchanged. The order may have any stride. */
flow_status flow_tensor_gather_rows(const flow_tensor *source, const flow_tensor *order, double first, double count, flow_tensor *into)
{
  FLOW_TRY(flow_check_on_host("the source of rows", source));
  FLOW_TRY(flow_check_on_host("the target of rows", into));
  if (order) FLOW_TRY(check_order(order));
  if (!is_count(first) || !is_count(count)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "rows %g and following, %g of them: both must be whole numbers from 0", first, count);
  }
  int64_t from = (int64_t)first, rows = (int64_t)count;
  FLOW_TRY(check_rows(source, into, rows));
  int64_t present = order ? order->shape[0] : source->shape[0];
  if (from > present || rows > present - from) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "rows %lld to %lld are asked for, there are %lld", (long long)from,
                     (long long)(from + rows - 1), (long long)present);
  }
  size_t row_bytes = (size_t)flow_shape_size(source->rank - 1, source->shape + 1) * (size_t)flow_dtype_size(source->dtype);
  if (!order) {
    if (rows == 0) return FLOW_OK;
    flow_storage_written(into->storage);
    memmove(into->data, source->data + (size_t)from * row_bytes, (size_t)rows * row_bytes);
    return FLOW_OK;
  }
  if (overlap(source, into)) return flow_fail(FLOW_INVALID_ARGUMENT, "rows cannot be gathered into the tensor they come from");
  gathering g = { .to = into->data, .from = source->data, .position = (const int64_t *)order->data + from * order->strides[0],
                  .stride = order->strides[0], .rows = rows, .row_bytes = row_bytes,
                  .share = 1 + (int64_t)(GATHER_BYTES / (row_bytes + 1)) };
  for (int64_t i = 0; i < rows; i++) {
    int64_t position = g.position[i * g.stride];
    if (position < 0 || position >= source->shape[0]) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "the order names row %lld of a tensor of %lld rows (counted from 0)",
                       (long long)position, (long long)source->shape[0]);
    }
  }
  flow_storage_written(into->storage);
  flow_ticket_reset(&g.ticket);
  flow_team_run(rows > 2 * g.share ? 0 : 1, gather_member, &g);
  return FLOW_OK;
}

/* Fisher and Yates' shuffle, from the last element to the first, with the bits of Philox for element i: the same order
 * for the same seed and length on every machine. Works in place, on the calling thread. The contents of `order` are not
 * looked at: it may hold any numbers. */
flow_status flow_tensor_shuffle(flow_tensor *order, double seed)
{
  FLOW_TRY(check_order(order));
  uint64_t key;
  memcpy(&key, &seed, sizeof key);       /* every double is a separate key */
  key = flow_mix(key, 0);
  flow_storage_written(order->storage);
  int64_t *elements = (int64_t *)order->data, stride = order->strides[0];
  for (int64_t i = order->shape[0] - 1; i > 0; i--) {
    flow_philox_block block = flow_philox(key, (uint64_t)i, 0);
    uint64_t bits = (uint64_t)block.word[0] << 32 | block.word[1];
    int64_t j = (int64_t)((unsigned __int128)bits * (uint64_t)(i + 1) >> 64);    /* 0 .. i; bias below i / 2^64 */
    int64_t element = elements[i * stride];
    elements[i * stride] = elements[j * stride];
    elements[j * stride] = element;
  }
  return FLOW_OK;
}
