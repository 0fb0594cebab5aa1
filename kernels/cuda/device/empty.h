/* empty.h: calls of a replica that has no rows of a batch: what is linear in an input without elements is zero, and no library is asked for
 * it. */
#ifndef FLOW_CUDA_DEVICE_EMPTY_H
#define FLOW_CUDA_DEVICE_EMPTY_H

#include "cuda/runtime/launch.h"
#include "cuda/device/move.h"
#include "tensor/tensor.h"

/* Of the first two: what is optional may have no elements, too. */
static inline int flow_cuda_has_empty_input(const flow_call *call)
{
  const flow_operand *x = call->inputs;
  return flow_shape_size(x[0].rank, x[0].shape) == 0 || flow_shape_size(x[1].rank, x[1].shape) == 0;
}

static inline flow_status flow_cuda_clear_outputs(const flow_call *call)
{
  for (int i = 0; i < call->output_count; i++) {
    const flow_operand *y = &call->outputs[i];
    if (y->data) FLOW_TRY(flow_cuda_fill(call, y, 0));
  }
  return FLOW_OK;
}

#endif
