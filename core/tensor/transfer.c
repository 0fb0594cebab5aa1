/* transfer.c: copies elements between the memories of the host and of devices. If a device has no kernel for an operation, it is done on a
 * copy on the host, so that every tensor can be read, written and printed, wherever it is. */
#include "tensor/mirrors.h"

#include <string.h>
#include "base/memory.h"

/* The elements in memory, from the first to the last: *low is the first one's offset from tensor->data, 0 or negative,
 * and *count the number of elements of memory, those between them included. 0 and 0 for a tensor without elements. In
 * elements. */
static void extent_of(const flow_tensor *tensor, int64_t *low, int64_t *count)
{
  int64_t high = 0;
  *low = *count = 0;
  if (flow_shape_size(tensor->rank, tensor->shape) == 0) return;
  for (int axis = 0; axis < tensor->rank; axis++) {
    int64_t reach = (tensor->shape[axis] - 1) * tensor->strides[axis];
    if (reach < 0) *low += reach;
    else high += reach;
  }
  *count = high - *low + 1;
}

/* A tensor on the host with the strides of one that is not. filled: with its elements, else undefined. The elements
 * between those of the tensor are in the image, too: one transfer of one block, whatever the strides. A new reference;
 * the block lives as long as the view. */
static flow_status new_image(const flow_tensor *tensor, int filled, flow_tensor **out)
{
  int64_t low, count;
  flow_tensor *block;
  size_t size = (size_t)flow_dtype_size(tensor->dtype);
  extent_of(tensor, &low, &count);
  FLOW_TRY(flow_tensor_new_uninitialized(tensor->dtype, 1, &count, &block));
  flow_status status = FLOW_OK;
  const char *first = tensor->data + low * (int64_t)size;
  if (filled) status = flow_place_download(flow_tensor_place(tensor), block->data, first, (size_t)count * size);
  if (status == FLOW_OK) status = flow_tensor_view(block, tensor->rank, tensor->shape, tensor->strides, -low, out);
  flow_tensor_release(block);
  return status;
}

/* Copies an image, with the bytes between its elements, to the tensor that it was made for. Other threads must not write
 * meanwhile to elements between those of the tensor: they would get what they were when the image was made. */
static flow_status write_back(flow_tensor *tensor, const flow_tensor *image)
{
  int64_t low, count, size = flow_dtype_size(tensor->dtype);
  extent_of(tensor, &low, &count);
  return flow_place_upload(flow_tensor_place(tensor), tensor->data + low * size, image->data + low * size, (size_t)(count * size));
}

/* *out may be the tensor itself: a caller that writes to it writes to the tensor. On a device this waits for all work
 * that was enqueued there. */
flow_status flow_tensor_on_host(const flow_tensor *tensor, flow_tensor **out)
{
  *out = NULL;
  FLOW_TRY(flow_check_concrete("the tensor to move", tensor));
  if (flow_tensor_place(tensor)) return new_image(tensor, 1, out);
  *out = flow_tensor_retain((flow_tensor *)(uintptr_t)tensor);
  return FLOW_OK;
}

flow_status flow_tensor_on_host_contiguous(const flow_tensor *tensor, flow_tensor **out)
{
  return flow_tensor_at(tensor, NULL, out);
}

/* A new reference to the tensor itself where it is there and contiguous, else a contiguous copy. */
flow_status flow_tensor_at(const flow_tensor *tensor, flow_place *place, flow_tensor **out)
{
  *out = NULL;
  FLOW_TRY(flow_check_concrete("the tensor to move", tensor));
  if (flow_tensor_place(tensor) == place && flow_tensor_is_contiguous(tensor)) {
    *out = flow_tensor_retain((flow_tensor *)(uintptr_t)tensor);
    return FLOW_OK;
  }
  flow_tensor *copy;
  FLOW_TRY(flow_tensor_new_at(place, tensor->dtype, tensor->rank, tensor->shape, &copy));
  flow_status status = flow_tensor_copy(copy, tensor);
  if (status != FLOW_OK) flow_tensor_release(copy);
  else *out = copy;
  return status;
}

/* Between contiguous tensors of one dtype and shape, not both on the host. Two places that are equal take the same way;
 * to follow itself does nothing. */
static flow_status copy_bytes(flow_tensor *to, const flow_tensor *from, size_t bytes)
{
  flow_place *target = flow_tensor_place(to), *source = flow_tensor_place(from);
  if (!source) return flow_place_upload(target, to->data, from->data, bytes);
  if (!target) return flow_place_download(source, to->data, from->data, bytes);
  FLOW_TRY(flow_place_follow(target, source));
  FLOW_TRY(flow_place_copy(target, to->data, from->data, bytes));
  return flow_place_follow(source, target);      /* it may release or write its elements only then */
}

/* Whether the bytes of two contiguous tensors do not overlap. Tensors of two storages never share bytes. */
static int apart(const flow_tensor *a, const flow_tensor *b, size_t bytes)
{
  return a->storage != b->storage || a->data + bytes <= b->data || b->data + bytes <= a->data;
}

/* Whether elements can be copied from one to the other without conversion. */
static int same_form(const flow_tensor *to, const flow_tensor *from, size_t bytes)
{
  const flow_place *target = flow_tensor_place(to), *source = flow_tensor_place(from);
  int reachable = !target || !source || flow_place_device(target) == flow_place_device(source);
  return reachable && to->dtype == from->dtype && flow_shape_equal(to->rank, to->shape, from->rank, from->shape) &&
         flow_tensor_is_contiguous(to) && flow_tensor_is_contiguous(from) && apart(to, from, bytes);
}

/* Bytes go directly if nothing has to be converted; else both are brought to the host, copied there, and the result is sent back. A
 * target with gaps is fetched first: the bytes between its elements must not change. */
flow_status flow_tensor_copy_between(flow_tensor *to, const flow_tensor *from)
{
  size_t bytes = (size_t)flow_shape_size(to->rank, to->shape) * (size_t)flow_dtype_size(to->dtype);
  flow_storage_written(to->storage);
  if (same_form(to, from, bytes)) return copy_bytes(to, from, bytes);
  /* Both are on the host from here on, so that flow_tensor_copy does not come back to this function. A target on the
   * host is its own image. */
  flow_tensor *source, *image = NULL;
  FLOW_TRY(flow_tensor_on_host(from, &source));
  flow_status status = FLOW_OK;
  if (flow_tensor_place(to)) status = new_image(to, !flow_tensor_is_contiguous(to), &image);
  else image = flow_tensor_retain(to);
  if (status == FLOW_OK) status = flow_tensor_copy(image, source);
  if (status == FLOW_OK && flow_tensor_place(to)) status = write_back(to, image);
  flow_tensor_release(image);
  flow_tensor_release(source);
  return status;
}

/* +0 in a contiguous tensor is a clearing of memory, which needs no kernel; -0 has a sign bit. */
flow_status flow_tensor_fill_at_place(flow_tensor *tensor, double value)
{
  flow_place *place = flow_tensor_place(tensor);
  flow_operand y = { .dtype = tensor->dtype, .rank = tensor->rank, .data = tensor->data };
  size_t bytes = (size_t)flow_shape_size(tensor->rank, tensor->shape) * (size_t)flow_dtype_size(tensor->dtype);
  flow_storage_written(tensor->storage);
  if (value == 0 && !__builtin_signbit(value) && flow_tensor_is_contiguous(tensor))
    return flow_place_clear(place, tensor->data, bytes);
  /* The kernel takes strides. The place is locked for the launch only, which does not wait for the device. */
  memcpy(y.shape, tensor->shape, sizeof(int64_t) * (size_t)tensor->rank);
  memcpy(y.strides, tensor->strides, sizeof(int64_t) * (size_t)tensor->rank);
  flow_status status = flow_place_accelerator(place)->functions->fill(flow_place_lock(place), &y, value);
  flow_place_unlock(place);
  return status;
}
