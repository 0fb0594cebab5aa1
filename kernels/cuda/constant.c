/* constant.c: the op fill. */
#include "cuda/launch.h"
#include "tensor/tensor.h"

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *y = &call->outputs[0];
  fill_arguments a = { .to = y->data, .bytes = flow_dtype_size(y->dtype) };
  flow_convert_from_double(y->dtype, &call->attributes->fill.value, a.value, 1, 1);
  return flow_cuda_launch(call, CUDA_fill, flow_shape_size(y->rank, y->shape), &a, sizeof a);
}

const flow_kernel flow_cuda_fill_kernels[] = { { .variant = "constant", .run = run }, { 0 } };
