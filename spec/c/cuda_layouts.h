/* cuda_layouts.h: operands of every dtype and layout for the tests of an accelerator's kernels. */
#ifndef FLOW_SPEC_CUDA_LAYOUTS_H
#define FLOW_SPEC_CUDA_LAYOUTS_H

#include "cuda_runner.h"

static const int every_dtype[] = { FLOW_FLOAT32, FLOW_FLOAT16, FLOW_BFLOAT16, FLOW_FLOAT64, FLOW_INT8, FLOW_UINT8, FLOW_INT32, FLOW_INT64,
                                   FLOW_BOOL };

/* Numbers that kernels find hard, among ordinary ones. */
static inline double hard_number(int dtype, int64_t i)
{
  static const double floats[] = { 0, -0.0, NAN, INFINITY, -INFINITY, 1, -1, 0.5, 2.5, 3.5, 1e-3, 300, -300, 1e9, 3e19, -1e-30 };
  static const double integers[] = { 0, 1, -1, 2, 3, -128, 127, 5, -7, 64 };
  if (!flow_dtype_is_float(dtype)) return i % 3 == 0 ? integers[i / 3 % 10] : floor(100 * next_number());
  return i % 4 == 0 ? floats[i / 4 % 16] : 6 * next_number();
}

static inline void fill_hard(flow_operand *x)
{
  for (int64_t i = 0; i < operand_size(x); i++) set(x, i, hard_number(x->dtype, i));
}

/* The same memory seen with its axes in another order: axis i is axes[i] of x. */
static inline flow_operand transposed_operand(const flow_operand *x, const int *axes)
{
  flow_operand y = *x;
  for (int i = 0; i < x->rank; i++) {
    y.shape[i] = x->shape[axes[i]];
    y.strides[i] = x->strides[axes[i]];
  }
  return y;
}

/* The last axis backwards. */
static inline flow_operand reversed_operand(const flow_operand *x)
{
  flow_operand y = *x;
  int last = x->rank - 1;
  y.data = (char *)x->data + (x->shape[last] - 1) * x->strides[last] * flow_dtype_size(x->dtype);
  y.strides[last] = -x->strides[last];
  return y;
}

#endif
