/* attention_float16.h: the kernels of attention.h for float16. */
#ifndef FLOW_CUDA_OPS_ATTENTION_FLOAT16_H
#define FLOW_CUDA_OPS_ATTENTION_FLOAT16_H

#include "cuda/ops/network/attention.h"

ATTENTION_ROWS(float16, FLOW_FLOAT16)
ATTENTION_BLOCKS(float16_64, FLOW_FLOAT16, 64)
ATTENTION_BLOCKS(float16_128, FLOW_FLOAT16, 128)
ATTENTION_BLOCKS(float16_256, FLOW_FLOAT16, 256)

#define ATTENTION_FLOAT16_KERNELS(ELEMENT, BLOCK) \
  BLOCK(attention_rows_float16, WHOLE)            \
  BLOCK(attention_float16_64, WHOLE)              \
  BLOCK(attention_float16_128, WHOLE)             \
  BLOCK(attention_float16_256, WHOLE)             \
  BLOCK(attention_gradient_float16_64, WHOLE) BLOCK(attention_gradient_float16_128, WHOLE) BLOCK(attention_gradient_float16_256, WHOLE)

#endif
