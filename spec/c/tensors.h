/* tensors.h: what the tests of tensors share: making them, comparing them, and a check after each test that nothing leaked. */
#ifndef FLOW_SPEC_TENSORS_H
#define FLOW_SPEC_TENSORS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/memory.h"
#include "tensor/tensor.h"

#define SHAPE(...) (const int64_t[]){ __VA_ARGS__ }

static inline flow_tensor *zeros(int dtype, int rank, const int64_t *shape)
{
  flow_tensor *tensor;
  assert_int_equal(flow_tensor_new(dtype, rank, shape, &tensor), FLOW_OK);
  return tensor;
}

/* 0, 1, 2, ... in this shape. */
static inline flow_tensor *counting(int dtype, int rank, const int64_t *shape)
{
  flow_tensor *tensor = zeros(dtype, rank, shape);
  for (int64_t i = 0; i < flow_shape_size(rank, shape); i++) {
    double value = (double)i;
    flow_convert_from_double(dtype, &value, tensor->data + i * flow_dtype_size(dtype), 1, 1);
  }
  return tensor;
}

static inline flow_tensor *from_numbers(int dtype, int rank, const int64_t *shape, const double *numbers)
{
  flow_tensor *tensor = zeros(dtype, rank, shape);
  assert_int_equal(flow_tensor_write(tensor, numbers, flow_tensor_size(tensor)), FLOW_OK);
  return tensor;
}

static inline flow_tensor *view_of(flow_tensor *source, int rank, const int64_t *shape, const int64_t *strides, int64_t offset)
{
  flow_tensor *view;
  assert_int_equal(flow_tensor_view(source, rank, shape, strides, offset, &view), FLOW_OK);
  return view;
}

static inline void expect_numbers(const flow_tensor *tensor, int count, const double *expected)
{
  double numbers[64];
  assert_true(count <= 64);
  assert_int_equal(flow_tensor_read(tensor, numbers, count), FLOW_OK);
  for (int i = 0; i < count; i++) assert_true(numbers[i] == expected[i]);
}
#define EXPECT(tensor, ...) \
  expect_numbers(tensor, (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), (double[]){ __VA_ARGS__ })

static double live_before;

static inline int remember_live_bytes(void **state)
{
  (void)state;
  live_before = flow_live_bytes();
  return 0;
}

static inline int expect_nothing_leaked(void **state)
{
  (void)state;
  double more = flow_live_bytes() - live_before;
  if (more != 0) print_error("after the test %.0f bytes more are in use than before it\n", more);
  return more != 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, remember_live_bytes, expect_nothing_leaked)

#endif
