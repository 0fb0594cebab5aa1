/* access.c: the C API's access to tensors: properties, elements, whole contents as doubles. The rest of the section
 * "dtypes and tensors" of flow.h is, with its checks, in core/tensor and core/io. */
#include "tensor/mirrors.h"

#include <math.h>
#include "base/float_state.h"
#include "base/need.h"
#include "tensor/caller_number.h"
#include "tensor/sequence.h"

/* ---- properties: harmless on NULL and closed tensors ----------------------------------------------------------------- */

/* The magic word is taken away when a tensor is released, so that a pointer to one that is gone is found in most cases. */
static int is_alive(const flow_tensor *tensor)
{
  return tensor && tensor->magic == FLOW_TENSOR_MAGIC;
}

/* A flow_dtype; -1: not a tensor. */
int flow_tensor_dtype(const flow_tensor *tensor)
{
  return is_alive(tensor) ? tensor->dtype : -1;
}

/* The number of the GPU; -1: the CPU, or not a tensor. */
int flow_tensor_device(const flow_tensor *tensor)
{
  return is_alive(tensor) ? flow_place_device(flow_tensor_place(tensor)) : -1;
}

int flow_tensor_rank(const flow_tensor *tensor)
{
  return is_alive(tensor) ? tensor->rank : -1;
}

/* Of axis `axis` from 0; negative in symbolic tensors where it follows from the rows. Doubles, since LuaJIT has no plain 64-bit integers.
 * */
double flow_tensor_dim(const flow_tensor *tensor, int axis)
{
  return is_alive(tensor) && axis >= 0 && axis < tensor->rank ? (double)tensor->shape[axis] : 0;
}

/* In elements, not bytes; 0 along axes that are repeated. */
double flow_tensor_stride(const flow_tensor *tensor, int axis)
{
  return is_alive(tensor) && axis >= 0 && axis < tensor->rank ? (double)tensor->strides[axis] : 0;
}

/* The number of elements. */
double flow_tensor_size(const flow_tensor *tensor)
{
  if (!is_alive(tensor)) return 0;
  return (double)flow_shape_size(tensor->rank, tensor->shape);
}

/* A tensor of a trace: it has a shape and no contents. */
int flow_tensor_is_symbolic(const flow_tensor *tensor)
{
  return is_alive(tensor) && !tensor->storage;
}

/* Axes of size 1 may have any stride; a tensor without elements is contiguous. */
int flow_tensor_is_contiguous(const flow_tensor *tensor)
{
  if (!is_alive(tensor) || !tensor->storage) return 0;
  int64_t expected = 1;
  for (int axis = tensor->rank - 1; axis >= 0; axis--) {
    if (tensor->shape[axis] == 0) return 1;
    if (tensor->shape[axis] > 1 && tensor->strides[axis] != expected) {
      return flow_shape_size(tensor->rank, tensor->shape) == 0;
    }
    expected *= tensor->shape[axis];
  }
  return 1;
}

/* The address of the first element; NULL for a tensor on a device, a closed or a symbolic one. For reading, and for writing before others
 * can see the tensor. */
void *flow_tensor_elements(const flow_tensor *tensor)
{
  return is_alive(tensor) && tensor->storage && !tensor->storage->place ? tensor->data : NULL;
}

/* The holder of the address may write at any time, so that nothing may be cached that follows from the contents: content
 * 0. The content stays 0 for the life of the storage, since the address may have been kept. NULL for a tensor on a
 * device, a closed or a symbolic one. */
void *flow_tensor_data(const flow_tensor *tensor)
{
  void *elements = flow_tensor_elements(tensor);
  if (elements) atomic_store_explicit(&tensor->storage->content, 0, memory_order_relaxed);
  return elements;
}

/* ---- making small ones -------------------------------------------------------------------------------------------------- */

/* *out: a new tensor of rank 0; the value is converted as a cast does. */
flow_status flow_tensor_scalar(int dtype, double value, flow_tensor **out)
{
  FLOW_NEED(out);
  FLOW_TRY(flow_tensor_new_uninitialized(dtype, 0, NULL, out));
  flow_convert_from_double(dtype, &value, (*out)->data, 1, 1);
  return FLOW_OK;
}

/* *out: a new tensor {count} of the sequence's elements. */
static flow_status write_sequence(const flow_sequence *sequence, int dtype, flow_tensor **out)
{
  FLOW_TRY(flow_tensor_new_uninitialized(dtype, 1, &sequence->count, out));
  flow_sequence_write(sequence, 0, sequence->count, dtype, (*out)->data);
  return FLOW_OK;
}

/* start + i step, each computed from i, so that errors do not add up. */
flow_status flow_tensor_arange(int dtype, double start, double step, double count, flow_tensor **out)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_NEED(out);
  *out = NULL;
  if (!(count >= 0) || count > 0x1p53 || count != floor(count)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "arange of %g elements: the count must be a whole number from 0", count);
  }
  flow_sequence sequence = flow_sequence_of_numbers(start, step, (int64_t)count);
  return write_sequence(&sequence, dtype, out);
}

/* In whole numbers, exact up to 64 bits; stop is not part of it, as in Python's range. */
flow_status flow_tensor_arange_integers(int dtype, int64_t start, int64_t stop, int64_t step, flow_tensor **out)
{
  FLOW_NEED(out);
  flow_sequence sequence;
  *out = NULL;
  if (step == 0) return flow_fail(FLOW_INVALID_ARGUMENT, "arange: the step is 0");
  FLOW_TRY(flow_sequence_of_integers(start, stop, step, &sequence));
  return write_sequence(&sequence, dtype, out);
}

/* ---- elements --------------------------------------------------------------------------------------------------------------- */

/* One element, wherever it is. */
static flow_status read_number(const flow_tensor *tensor, const char *element, double *out)
{
  uint64_t copy;
  if (tensor->storage->place) {
    FLOW_TRY(flow_place_download(tensor->storage->place, &copy, element, (size_t)flow_dtype_size(tensor->dtype)));
    element = (const char *)&copy;
  }
  flow_convert_to_double(tensor->dtype, element, 1, out, 1);
  *out = flow_caller_number(*out);
  return FLOW_OK;
}

/* *out is not changed by a failure. For a tensor on a device this waits for its work. */
flow_status flow_tensor_item(const flow_tensor *tensor, double *out)
{
  FLOW_TRY(flow_check_concrete("the tensor of item()", tensor));
  int64_t size = flow_shape_size(tensor->rank, tensor->shape);
  if (size != 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "item() needs exactly one element, this tensor has %lld (shape %s)", (long long)size,
                     flow_shape_text(tensor->rank, tensor->shape));
  }
  return read_number(tensor, tensor->data, out);
}

/* *element: where the element at this position is, on the host or on the tensor's device. what: names the caller's
 * argument. `position` has as many numbers as the tensor has axes; the caller of the C API answers for that. The offset
 * cannot overflow, since the element is inside the storage. */
static flow_status find_element(const char *what, const flow_tensor *tensor, const int64_t *position, char **element)
{
  FLOW_TRY(flow_check_concrete(what, tensor));
  int64_t offset = 0;
  for (int axis = 0; axis < tensor->rank; axis++) {
    if (position[axis] < 0 || position[axis] >= tensor->shape[axis]) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "position %lld of axis %d (both counted from 0) is outside of shape %s",
                       (long long)position[axis], axis, flow_shape_text(tensor->rank, tensor->shape));
    }
    offset += position[axis] * tensor->strides[axis];
  }
  *element = tensor->data + offset * flow_dtype_size(tensor->dtype);
  return FLOW_OK;
}

/* position: from 0, one number for each axis. */
flow_status flow_tensor_get(const flow_tensor *tensor, const int64_t *position, double *out)
{
  FLOW_NEED(tensor, out);
  if (flow_tensor_rank(tensor) > 0) FLOW_NEED(position);
  char *element;
  FLOW_TRY(find_element("flow_tensor_get: the tensor", tensor, position, &element));
  return read_number(tensor, element, out);
}

/* Writes to the storage, which every view of it sees. On a device it is an upload of one element. */
flow_status flow_tensor_set(flow_tensor *tensor, const int64_t *position, double value)
{
  FLOW_NEED(tensor);
  if (flow_tensor_rank(tensor) > 0) FLOW_NEED(position);
  char *element;
  FLOW_TRY(find_element("flow_tensor_set: the tensor", tensor, position, &element));
  uint64_t copy;
  flow_convert_from_double(tensor->dtype, &value, tensor->storage->place ? (void *)&copy : element, 1, 1);
  flow_storage_written(tensor->storage);
  if (!tensor->storage->place) return FLOW_OK;
  return flow_place_upload(tensor->storage->place, element, &copy, (size_t)flow_dtype_size(tensor->dtype));
}

/* ---- whole contents: the caller's doubles become a tensor, the copy does the rest ---------------------------------------------- */

/* *out: the caller's doubles as a borrowed tensor of the shape of `like`; NULL if it has no elements. The values are
 * written only if the caller copies to the tensor: hence the cast that takes const away for both directions. */
static flow_status wrap_doubles(const char *what, const flow_tensor *like, const double *values, double count, flow_tensor **out)
{
  *out = NULL;
  FLOW_TRY(flow_check_concrete(what, like));
  int64_t size = flow_shape_size(like->rank, like->shape);
  if (count != (double)size) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%.17g numbers for a tensor of %lld elements (shape %s)", count, (long long)size,
                     flow_shape_text(like->rank, like->shape));
  }
  if (size == 0) return FLOW_OK;
  return flow_tensor_borrow((void *)(uintptr_t)values, FLOW_FLOAT64, like->rank, like->shape, out);
}

/* NaNs become the one that callers know (caller_number.h). All elements in row-major order, converted; count has to be their number. */
flow_status flow_tensor_read(const flow_tensor *tensor, double *out, double count)
{
  flow_tensor *values;
  FLOW_TRY(wrap_doubles("the tensor to read", tensor, out, count, &values));
  flow_status status = values ? flow_tensor_copy(values, tensor) : FLOW_OK;
  flow_tensor_release(values);
  for (size_t i = 0; status == FLOW_OK && i < (size_t)count; i++) out[i] = flow_caller_number(out[i]);
  return status;
}

/* The opposite of flow_tensor_read; writes through a view to the elements that it shows. */
flow_status flow_tensor_write(flow_tensor *tensor, const double *values, double count)
{
  flow_tensor *source;
  FLOW_TRY(wrap_doubles("the tensor to write", tensor, values, count, &source));
  flow_status status = source ? flow_tensor_copy(tensor, source) : FLOW_OK;
  flow_tensor_release(source);
  return status;
}
