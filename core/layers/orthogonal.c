/* orthogonal.c: the initializer Orthogonal: see initializers.h. Gram and Schmidt's method in its modified order, in double: the other
 * factor's diagonal is made of lengths, so it is positive. */
#include "layers/initializers.h"

#include <math.h>

#include "base/memory.h"

/* The product of two vectors in eight sums. */
static double dot(const double *a, const double *b, int64_t n)
{
  double sum[8] = { 0 };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; k++) sum[k] += a[i + k] * b[i + k];
  for (; i < n; i++) sum[0] += a[i] * b[i];
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

/* vectors[i] is made orthogonal to those before it, and of length 1. */
static void orthonormalize(double *vectors, int64_t count, int64_t length)
{
  for (int64_t i = 0; i < count; i++) {
    double *v = vectors + i * length;
    for (int64_t j = 0; j < i; j++) {
      const double *q = vectors + j * length;
      double along = dot(q, v, length);
      for (int64_t k = 0; k < length; k++) v[k] -= along * q[k];
    }
    double size = sqrt(dot(v, v, length));
    for (int64_t k = 0; k < length; k++) v[k] = size > 0 ? v[k] / size : 0;
  }
}

/* In double, in one block for all elements: 8 bytes for each. Whichever of rows and columns are fewer become the vectors. Time grows
 * with the square of their number times their length. */
flow_status flow_initialize_orthogonal(double gain, uint64_t key, flow_tensor *into)
{
  int64_t size = flow_shape_size(into->rank, into->shape);
  if (into->rank < 2)
    return flow_fail(FLOW_INVALID_ARGUMENT, "Orthogonal: makes tensors of 2 or more dimensions, found %s",
                     flow_shape_text(into->rank, into->shape));
  if (size == 0) return FLOW_OK;
  int64_t columns = into->shape[into->rank - 1], rows = size / columns, tall = rows >= columns;
  int64_t count = tall ? columns : rows, length = tall ? rows : columns;
  size_t bytes, element = (size_t)flow_dtype_size(into->dtype);
  void *block;
  FLOW_TRY(flow_multiply((size_t)size + 4, sizeof(double), &bytes));
  FLOW_TRY(flow_alloc(bytes, &block));
  double *vectors = block;
  for (int64_t i = 0; i < size; i += 4) flow_initializer_normals(key, (uint64_t)(i / 4), vectors + i);
  orthonormalize(vectors, count, length);
  for (int64_t i = 0; i < size; i++) {
    int64_t row = i / columns, column = i % columns;
    double value = gain * (tall ? vectors[column * length + row] : vectors[i]);
    flow_convert_from_double(into->dtype, &value, into->data + (size_t)i * element, 1, 1);
  }
  flow_free(block);
  return FLOW_OK;
}
