/* floats.h: float32 tensors in tests: made of a list, compared with a list. */
#ifndef FLOW_SPEC_FLOATS_H
#define FLOW_SPEC_FLOATS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tensor/tensor.h"

#define LIST(...) (const double[]){ __VA_ARGS__ }
#define SHAPE(...) (int)(sizeof (int64_t[]){ __VA_ARGS__ } / sizeof(int64_t)), (const int64_t[]){ __VA_ARGS__ }

static inline flow_tensor *tensor_of(int dtype, const double *values, int rank, const int64_t *shape)
{
  flow_tensor *tensor;
  assert_int_equal(flow_tensor_new(dtype, rank, shape, &tensor), FLOW_OK);
  assert_int_equal(flow_tensor_write(tensor, values, (double)flow_shape_size(rank, shape)), FLOW_OK);
  return tensor;
}

/* Fails unless `tensor` has this shape and, to 1e-5 of the larger of 1 and the value, these elements; releases it. */
static inline void assert_values(flow_tensor *tensor, const double *expected, int rank, const int64_t *shape)
{
  double found[256];
  int64_t size = flow_shape_size(rank, shape);
  assert_true(size >= 0 && size <= 256);
  if (!flow_shape_equal(rank, shape, tensor->rank, tensor->shape))
    fail_msg("shape %s, expected %s", flow_shape_text(tensor->rank, tensor->shape), flow_shape_text(rank, shape));
  assert_int_equal(flow_tensor_read(tensor, found, (double)size), FLOW_OK);
  for (int64_t i = 0; i < size; i++)
    if (!(fabs(found[i] - expected[i]) <= 1e-5 * fmax(1, fabs(expected[i]))))
      fail_msg("element %d is %.9g, expected %.9g", (int)i, found[i], expected[i]);
  flow_tensor_release(tensor);
}

#endif
