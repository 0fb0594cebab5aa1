/* attention_bfloat16.h: the kernels of attention.h for bfloat16. */
#ifndef FLOW_CUDA_OPS_ATTENTION_BFLOAT16_H
#define FLOW_CUDA_OPS_ATTENTION_BFLOAT16_H

#include "cuda/ops/network/attention.h"

ATTENTION_ROWS(bfloat16, FLOW_BFLOAT16)
ATTENTION_BLOCKS(bfloat16_64, FLOW_BFLOAT16, 64)
ATTENTION_BLOCKS(bfloat16_128, FLOW_BFLOAT16, 128)
ATTENTION_BLOCKS(bfloat16_256, FLOW_BFLOAT16, 256)

#define ATTENTION_BFLOAT16_KERNELS(ELEMENT, BLOCK) \
  BLOCK(attention_rows_bfloat16, WHOLE)            \
  BLOCK(attention_bfloat16_64, WHOLE)              \
  BLOCK(attention_bfloat16_128, WHOLE)             \
  BLOCK(attention_bfloat16_256, WHOLE)             \
  BLOCK(attention_gradient_bfloat16_64, WHOLE) BLOCK(attention_gradient_bfloat16_128, WHOLE) BLOCK(attention_gradient_bfloat16_256, WHOLE)

#endif
