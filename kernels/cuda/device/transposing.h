/* transposing.h: one matrix as the columns of another, for kernels that need an operand in the other layout. */
#ifndef FLOW_CUDA_DEVICE_TRANSPOSING_H
#define FLOW_CUDA_DEVICE_TRANSPOSING_H

#include "cuda/runtime/launch.h"

/* Enqueues to = from, {rows, columns}, transposed; of float32 or 16-bit floats, each with its own dtype. */
flow_status flow_cuda_transpose(const flow_call *call, const void *from, int from_dtype, void *to, int to_dtype, int64_t rows,
                                int64_t columns);

#endif
