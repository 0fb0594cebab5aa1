/* view.c: views are made: axes merged, divisions prepared. */
#include "cuda/device/view_make.h"
#include "tensor/tensor.h"

static view_divisor divisor_of(int64_t size)
{
  uint32_t shift = 0;
  while ((INT64_C(1) << shift) < size) shift++;
  uint64_t multiplier = ((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - (uint64_t)size)) / (uint64_t)size + 1;
  return (view_divisor){ (uint32_t)multiplier, shift };
}

view_groups flow_cuda_groups(int64_t size, int64_t count)
{
  view_groups g = { .size = size, .narrow = count < INT64_C(1) << 31 && size < INT64_C(1) << 31 };
  if (g.narrow) g.divisor = divisor_of(size);
  return g;
}

view flow_cuda_view_strided(void *data, int dtype, int rank, const int64_t *shape, const int64_t *strides)
{
  view v = { .data = data, .dtype = dtype };
  int64_t count = 1;
  for (int axis = 0; axis < rank; axis++) {
    count *= shape[axis];
    if (shape[axis] == 1) continue;
    int last = v.rank - 1;
    if (last >= 0 && v.stride[last] == strides[axis] * shape[axis]) {
      v.size[last] *= shape[axis];
      v.stride[last] = strides[axis];
    } else {
      v.size[v.rank] = shape[axis];
      v.stride[v.rank++] = strides[axis];
    }
  }
  if (v.rank == 0) {
    v.rank = 1;
    v.size[0] = v.stride[0] = 1;
  }
  v.narrow = count < INT64_C(1) << 31;
  for (int axis = 1; axis < v.rank && v.narrow; axis++)
    if (count > 0) v.divisor[axis] = divisor_of(v.size[axis]);
  return v;
}

view flow_cuda_view(const flow_operand *x, int rank, const int64_t *shape)
{
  int64_t strides[FLOW_MAX_RANK];
  for (int axis = 0; axis < rank; axis++) {
    int own = axis - (rank - x->rank);   /* shapes are aligned at their last axes */
    strides[axis] = own < 0 || x->shape[own] == 1 ? 0 : x->strides[own];
  }
  return flow_cuda_view_strided(x->data, x->dtype, rank, shape, strides);
}

int     flow_cuda_view_is(const view *v, int64_t stride) { return v->rank == 1 && v->stride[0] == stride; }
int64_t flow_cuda_size(const flow_operand *x)            { return flow_shape_size(x->rank, x->shape); }

int flow_cuda_contiguous(const flow_operand *x)
{
  int64_t step = 1;
  for (int axis = x->rank - 1; axis >= 0; step *= x->shape[axis--])
    if (x->shape[axis] != 1 && x->strides[axis] != step) return 0;
  return 1;
}

const char *flow_cuda_span(const flow_operand *x, size_t *bytes)
{
  int64_t low = 0, high = 0, size = flow_dtype_size(x->dtype);
  *bytes = 0;
  if (!x->data || flow_cuda_size(x) == 0) return x->data;
  for (int i = 0; i < x->rank; i++) {
    int64_t reach = (x->shape[i] - 1) * x->strides[i];
    if (reach < 0) low += reach;
    else high += reach;
  }
  *bytes = (size_t)((high - low + 1) * size);
  return (const char *)x->data + low * size;
}

int32_t flow_cuda_unit_of(const void *a, const void *b, int64_t row_bytes)
{
  int32_t unit = 16;
  while (unit > 1 && ((uintptr_t)a % (uintptr_t)unit || (uintptr_t)b % (uintptr_t)unit || row_bytes % unit)) unit /= 2;
  return unit;
}
