/* shape.c: what follows from a shape alone. Needs no memory: a plugin for an accelerator is compiled with it, too. */
#include "tensor/tensor.h"

/* A zero among the dimensions does not excuse an overflow of the others: strides are products of them too. */
int64_t flow_shape_size(int rank, const int64_t *shape)
{
  int64_t size = 1;
  int empty = 0;
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] < 0) return -1;
    if (shape[axis] == 0) empty = 1;
    else if (__builtin_mul_overflow(size, shape[axis], &size)) return -1;
  }
  return empty ? 0 : size;
}

void flow_contiguous_strides(int rank, const int64_t *shape, int64_t *strides)
{
  int64_t stride = 1;
  for (int axis = rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    if (shape[axis] > 0) stride *= shape[axis];
  }
}

int flow_shape_equal(int rank_a, const int64_t *a, int rank_b, const int64_t *b)
{
  if (rank_a != rank_b) return 0;
  for (int axis = 0; axis < rank_a; axis++) {
    if (a[axis] != b[axis]) return 0;
  }
  return 1;
}
