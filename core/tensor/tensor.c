/* tensor.c: life of tensors: storage, new, borrow, view, retain and release, and the checks every entry makes. */
#include "tensor/tensor.h"

#include <string.h>
#include "base/memory.h"
#include "base/need.h"
#include "tensor/mirrors.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* Comes first in each check: shapes are read only up to a rank that was checked, and flow_dtype_size is 0 for an unknown
 * dtype. */
static flow_status check_dtype_and_rank(const char *what, int dtype, int rank)
{
  if (!flow_dtype_name(dtype))
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: dtype number %d is unknown; the numbers are 0 to %d, flow_dtype_find gives that of a name",
                     what, dtype, FLOW_DTYPE_COUNT - 1);
  if (rank < 0 || rank > FLOW_MAX_RANK) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: rank %d is outside 0 to %d", what, rank, FLOW_MAX_RANK);
  }
  return FLOW_OK;
}

/* dtype, rank, sizes from 0, and that the number of bytes fits int64. `what` begins the message. */
flow_status flow_check_shape(const char *what, int dtype, int rank, const int64_t *shape)
{
  FLOW_TRY(check_dtype_and_rank(what, dtype, rank));
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] < 0) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: shape %s has a negative dimension", what, flow_shape_text(rank, shape));
    }
  }
  int64_t size = flow_shape_size(rank, shape), bytes;
  if (size < 0 || __builtin_mul_overflow(size, (int64_t)flow_dtype_size(dtype), &bytes)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: shape %s has too many elements", what, flow_shape_text(rank, shape));
  }
  return FLOW_OK;
}

/* ---- storage --------------------------------------------------------------------------------------------------------- */

/* Numbers given to what storages hold. All threads draw from it, so that no two contents have one number; relaxed, since a number only has
 * to be new: a reader of the bytes has synchronized with their writer by other means. */
static _Atomic uint64_t contents;

static uint64_t next_content(void) { return atomic_fetch_add_explicit(&contents, 1, memory_order_relaxed) + 1; }

/* 0 stays 0: memory that was borrowed may change at any time, so nothing may be cached for it.
 *
 * Each write to a storage is reported, also one that may fail: what is computed again without need is not wrong.
 * `writes` is a plain number, since the writer has the storage for itself. `content` is read by threads that do not
 * write, for caches; between the load and the store flow_tensor_data may set it to 0 only if the caller breaks that
 * rule. */
void flow_storage_written(flow_storage *storage)
{
  storage->writes++;
  if (atomic_load_explicit(&storage->content, memory_order_relaxed))
    atomic_store_explicit(&storage->content, next_content(), memory_order_relaxed);
}

/* *out: a new storage with one reference, at the place, of which it takes a reference. data NULL: allocates `bytes`
 * there; they are undefined. Else data is the host's memory, borrowed, and place is NULL. On failure nothing is kept. */
static flow_status storage_new(size_t bytes, void *data, flow_place *place, flow_storage **out)
{
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_storage), &block));
  flow_storage *storage = block;
  atomic_init(&storage->references, 1);
  storage->bytes = bytes;
  storage->data = data;
  storage->borrowed = data != NULL;
  storage->owner = NULL;
  storage->place = flow_place_retain(place);
  storage->mirrors = NULL;
  storage->writes = 0;
  atomic_init(&storage->content, data ? 0 : next_content());
  if (!data) {
    flow_status status = place ? flow_place_allocate(place, bytes, &storage->data) : flow_alloc(bytes, &storage->data);
    if (status != FLOW_OK) {
      flow_place_release(place);
      flow_free(storage);
      return status;
    }
  }
  *out = storage;
  return FLOW_OK;
}

/* References, here and below: taking one needs no order of memory, since the taker has one already. Giving one back is acq_rel, so
 * that what every thread did with the memory comes before the last one frees it. */
static void storage_release(flow_storage *storage)
{
  if (atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) > 1) return;
  flow_mirrors_release(storage);
  if (storage->place) flow_place_free(storage->place, storage->data, storage->bytes);
  else if (!storage->borrowed) flow_free(storage->data);
  flow_counted_release(storage->owner);
  flow_place_release(storage->place);
  flow_free(storage);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------------- */

/* A tensor without storage and with strides 0, one reference: the caller adds storage or graph before anyone else sees
 * it. */
static flow_status tensor_struct_new(int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor), &block));
  flow_tensor *tensor = block;
  tensor->magic = FLOW_TENSOR_MAGIC;
  atomic_init(&tensor->references, 1);
  tensor->dtype = dtype;
  tensor->rank = rank;
  if (rank > 0) memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
  *out = tensor;
  return FLOW_OK;
}

/* The number is written before the memory is given back, so that a handle that is used once more is found by
 * flow_check_tensor, as long as the memory was not given to another object. */
static void tensor_struct_free(flow_tensor *tensor)
{
  tensor->magic = FLOW_TENSOR_DEAD;
  flow_free(tensor);
}

/* A contiguous tensor over memory that is given (data, the host's), or over new memory of the place. On failure *out is
 * NULL, and memory that was given stays the caller's. The product of sizes cannot overflow after flow_check_shape. */
static flow_status tensor_over(void *data, flow_place *place, int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  *out = NULL;
  FLOW_TRY(flow_check_shape("a new tensor", dtype, rank, shape));
  flow_tensor *tensor;
  FLOW_TRY(tensor_struct_new(dtype, rank, shape, &tensor));
  size_t bytes = (size_t)flow_shape_size(rank, shape) * (size_t)flow_dtype_size(dtype);
  flow_status status = storage_new(bytes, data, place, &tensor->storage);
  if (status != FLOW_OK) {
    tensor_struct_free(tensor);
    return status;
  }
  flow_contiguous_strides(rank, tensor->shape, tensor->strides);
  tensor->data = tensor->storage->data;
  *out = tensor;
  return FLOW_OK;
}

flow_status flow_tensor_new_uninitialized(int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  return tensor_over(NULL, NULL, dtype, rank, shape, out);
}

flow_status flow_tensor_new_at(flow_place *place, int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  return tensor_over(NULL, place, dtype, rank, shape, out);
}

/* All bits 0 are the number 0, or false, in each dtype. */
flow_status flow_tensor_new(int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  FLOW_NEED(out);
  if (rank > 0) FLOW_NEED(shape);
  FLOW_TRY(tensor_over(NULL, NULL, dtype, rank, shape, out));
  memset((*out)->data, 0, (*out)->storage->bytes);
  return FLOW_OK;
}

/* The memory stays the caller's and must live as long as the tensor and all its views. Its content number is 0, so
 * that nothing is cached that was computed from it. Kernels load whole elements: hence the alignment to one. */
flow_status flow_tensor_borrow(void *data, int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  FLOW_NEED(out);
  if (rank > 0) FLOW_NEED(shape);
  *out = NULL;
  if (!data) return flow_fail(FLOW_INVALID_ARGUMENT, "a borrowed tensor needs memory, not NULL");
  if (flow_dtype_name(dtype) && (uintptr_t)data % (uintptr_t)flow_dtype_size(dtype) != 0) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "borrowed memory for %s must begin at a multiple of %d bytes", flow_dtype_name(dtype),
                     flow_dtype_size(dtype));
  }
  return tensor_over(data, NULL, dtype, rank, shape, out);
}

/* Unlike memory that is borrowed it changes by what this library does alone: its content has a number. */
flow_status flow_tensor_new_shared(flow_counted *owner, void *data, int dtype, int64_t size, flow_tensor **out)
{
  FLOW_TRY(tensor_over(data, NULL, dtype, 1, &size, out));
  flow_counted_retain(owner);
  (*out)->storage->owner = owner;
  atomic_store_explicit(&(*out)->storage->content, next_content(), memory_order_relaxed);
  return FLOW_OK;
}

/* Holds a reference to the graph, whose value number `value` it stands for. -1 in the shape: a size that is not known while tracing. */
flow_status flow_tensor_new_symbolic(struct flow_graph *graph, int value, int dtype, int rank, const int64_t *shape, flow_tensor **out)
{
  *out = NULL;
  FLOW_TRY(check_dtype_and_rank("a symbolic tensor", dtype, rank));
  FLOW_TRY(tensor_struct_new(dtype, rank, shape, out));
  flow_counted_retain((flow_counted *)graph);
  (*out)->graph = graph;
  (*out)->value = value;
  return FLOW_OK;
}

/* The elements of a view reach from *low to *high (both inclusive, relative to its first element): the sums of (dimension - 1) * stride
 * over the axes with negative and with positive strides. 0 on overflow. No dimension is 0. */
static int view_extent(int rank, const int64_t *shape, const int64_t *strides, int64_t *low, int64_t *high)
{
  *low = *high = 0;
  for (int axis = 0; axis < rank; axis++) {
    int64_t reach, *end;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach)) return 0;
    end = reach < 0 ? low : high;
    if (__builtin_add_overflow(*end, reach, end)) return 0;
  }
  return 1;
}

/* A tensor at `data`, inside of the source's memory. */
static flow_status view_new(const flow_tensor *source, int rank, const int64_t *shape, const int64_t *strides, char *data,
                            flow_tensor **out)
{
  flow_tensor *view;
  FLOW_TRY(tensor_struct_new(source->dtype, rank, shape, &view));
  if (rank > 0) memcpy(view->strides, strides, (size_t)rank * sizeof *strides);
  view->storage = source->storage;
  atomic_fetch_add_explicit(&view->storage->references, 1, memory_order_relaxed);
  view->data = data;
  *out = view;
  return FLOW_OK;
}

/* What counts is the whole storage, not only the elements that `source` shows: a view of a slice may reach beyond the
 * slice, as windows do that overlap. The view has the storage alone, so that `source` may be released before it.
 *
 * strides and offset are in elements; the offset counts from the first element of `source`, and may be negative. Strides
 * may be 0 or negative. A view of a tensor on a device is there, too. FLOW_INVALID_ARGUMENT if an element would be
 * outside of the storage; the sums are checked for overflow, since strides come from callers. */
flow_status flow_tensor_view(flow_tensor *source, int rank, const int64_t *shape, const int64_t *strides, int64_t offset, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(source);
  if (rank > 0) FLOW_NEED(shape, strides);
  FLOW_TRY(flow_check_concrete("the source of a view", source));
  FLOW_TRY(flow_check_shape("a view", source->dtype, rank, shape));
  int64_t element = flow_dtype_size(source->dtype);
  int64_t elements = (int64_t)(source->storage->bytes / (size_t)element);
  int64_t first = (source->data - (char *)source->storage->data) / element;
  int64_t low = 0, high = -1;
  int is_empty = flow_shape_size(rank, shape) == 0;      /* it has no elements: its offset does not matter, and it begins with its source */
  int fits = is_empty || !__builtin_add_overflow(first, offset, &first);
  if (!is_empty) fits = fits && view_extent(rank, shape, strides, &low, &high);
  fits = fits && !__builtin_add_overflow(first, low, &low) && !__builtin_add_overflow(first, high, &high);
  if (!fits || low < 0 || high >= elements) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a view of shape %s at offset %lld reaches outside of its source of shape %s",
                     flow_shape_text(rank, shape), (long long)offset, flow_shape_text(source->rank, source->shape));
  }
  return view_new(source, rank, shape, strides, (char *)source->storage->data + first * element, out);
}

/* Within what the source sees, so that no bound is to be checked but that of the axis. */
flow_status flow_tensor_view_at(flow_tensor *source, int64_t position, flow_tensor **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(source);
  FLOW_TRY(flow_check_concrete("the source of a view", source));
  if (source->rank == 0 || position < 0 || position >= source->shape[0])
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no position %lld, from 0, on the first axis of a tensor of shape %s",
                     (long long)position, flow_shape_text(source->rank, source->shape));
  char *data = source->data + position * source->strides[0] * flow_dtype_size(source->dtype);
  return view_new(source, source->rank - 1, source->shape + 1, source->strides + 1, data, out);
}

/* Returns its argument. NULL is allowed. */
flow_tensor *flow_tensor_retain(flow_tensor *tensor)
{
  if (tensor) atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
  return tensor;
}

/* A tensor that was freed has another magic number until its memory is used again: by that most second releases are
 * found, and do nothing. The chain of masks that is released has an end: see flow_tensor_set_mask. */
void flow_tensor_release(flow_tensor *tensor)
{
  if (!tensor || tensor->magic != FLOW_TENSOR_MAGIC) return;
  if (atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) > 1) return;
  if (tensor->storage) storage_release(tensor->storage);
  flow_counted_release((flow_counted *)tensor->graph);
  flow_tensor_release(tensor->mask);
  tensor_struct_free(tensor);
}

flow_tensor *flow_tensor_mask(const flow_tensor *tensor) { return tensor && tensor->magic == FLOW_TENSOR_MAGIC ? tensor->mask : NULL; }

/* Takes a reference; NULL takes the mask away. Neither tensor may be used by another thread meanwhile.
 * No ring of references can arise: its last link would be a mask that has one. */
flow_status flow_tensor_set_mask(flow_tensor *tensor, flow_tensor *mask)
{
  FLOW_TRY(flow_check_tensor("flow_tensor_set_mask: tensor", tensor));
  if (mask) FLOW_TRY(flow_check_tensor("flow_tensor_set_mask: mask", mask));
  if (mask && (mask == tensor || mask->mask))
    return flow_fail(FLOW_INVALID_ARGUMENT, "a mask is a separate tensor, which has no mask itself");
  flow_tensor *before = tensor->mask;      /* released last: it may be the same one */
  tensor->mask = flow_tensor_retain(mask);
  flow_tensor_release(before);
  return FLOW_OK;
}

void flow_tensors_release(flow_tensor **tensors, int count)
{
  for (int i = 0; i < count; i++) {
    flow_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

/* ---- checks -------------------------------------------------------------------------------------------------------------- */

flow_status flow_check_tensor(const char *what, const flow_tensor *tensor)
{
  if (!tensor) return flow_fail(FLOW_INVALID_ARGUMENT, "%s is NULL: a tensor is needed", what);
  if (tensor->magic != FLOW_TENSOR_MAGIC) return flow_fail(FLOW_INVALID_ARGUMENT, "%s is a closed tensor", what);
  return FLOW_OK;
}

flow_status flow_check_concrete(const char *what, const flow_tensor *tensor)
{
  FLOW_TRY(flow_check_tensor(what, tensor));
  if (!tensor->storage) {
    return flow_fail(FLOW_INVALID_STATE, "%s (shape %s) has no value while the function is traced: use flow.where for choices "
                     "by value, or run the function eagerly", what, flow_shape_text(tensor->rank, tensor->shape));
  }
  return FLOW_OK;
}

flow_status flow_check_on_host(const char *what, const flow_tensor *tensor)
{
  FLOW_TRY(flow_check_concrete(what, tensor));
  if (!tensor->storage->place) return FLOW_OK;
  return flow_fail(FLOW_INVALID_STATE, "%s (shape %s) has its data on %s: take :to(\"cpu\") first", what,
                   flow_shape_text(tensor->rank, tensor->shape), flow_place_name(tensor->storage->place));
}
