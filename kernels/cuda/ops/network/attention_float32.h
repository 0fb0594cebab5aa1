/* attention_float32.h: the kernels of attention.h for float32. */
#ifndef FLOW_CUDA_OPS_ATTENTION_FLOAT32_H
#define FLOW_CUDA_OPS_ATTENTION_FLOAT32_H

#include "cuda/ops/network/attention.h"

ATTENTION_ROWS(float32, FLOW_FLOAT32)
ATTENTION_BLOCKS(float32_64, FLOW_FLOAT32, 64)
ATTENTION_BLOCKS(float32_128, FLOW_FLOAT32, 128)
ATTENTION_BLOCKS(float32_256, FLOW_FLOAT32, 256)

#define ATTENTION_FLOAT32_KERNELS(ELEMENT, BLOCK) \
  BLOCK(attention_rows_float32, WHOLE)            \
  BLOCK(attention_float32_64, WHOLE)              \
  BLOCK(attention_float32_128, WHOLE)             \
  BLOCK(attention_float32_256, WHOLE)             \
  BLOCK(attention_gradient_float32_64, WHOLE) BLOCK(attention_gradient_float32_128, WHOLE) BLOCK(attention_gradient_float32_256, WHOLE)

#endif
