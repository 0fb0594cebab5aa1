/* move.h: what the C files enqueue to move elements (movement.c) and to set them (constant.c). */
#ifndef FLOW_CUDA_DEVICE_MOVE_H
#define FLOW_CUDA_DEVICE_MOVE_H

#include "cuda/device/view_make.h"

/* `count` elements from one view to another of the same element size, which do not overlap unless they are the same: a copy inside the
 * device, a transposition by tiles, or element by element. */
flow_status flow_cuda_move(const flow_call *call, view from, view to, int64_t count);
/* Every element of an operand of any strides. */
flow_status flow_cuda_fill(const flow_call *call, const flow_operand *y, double value);
/* `bytes` zeros. */
flow_status flow_cuda_clear(const flow_call *call, void *to, size_t bytes);

#endif
