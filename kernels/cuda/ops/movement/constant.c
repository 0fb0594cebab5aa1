/* constant.c: the op fill, and the accelerator's function of the same name. */
#include "cuda/runtime/launch.h"
#include "cuda/runtime/device_table.h"
#include "cuda/device/move.h"
#include "tensor/tensor.h"

flow_status flow_cuda_fill(const flow_call *call, const flow_operand *y, double value)
{
  fill_arguments a = { .y = flow_cuda_view(y, y->rank, y->shape), .bytes = flow_dtype_size(y->dtype) };
  flow_convert_from_double(y->dtype, &value, &a.value, 1, 1);
  return flow_cuda_launch(call, CUDA_fill, flow_cuda_size(y), &a, sizeof a);
}

flow_status flow_cuda_fill_operand(flow_queue *queue, const flow_operand *to, double value)
{
  flow_operand y = *to;
  flow_call call = { .op = FLOW_OP_fill, .queue = queue, .outputs = &y, .output_count = 1 };
  return flow_cuda_fill(&call, &y, value);
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  return flow_cuda_fill(call, &call->outputs[0], call->attributes->fill.value);
}

const flow_kernel flow_cuda_fill_kernels[] = { { .variant = "constant", .run = run }, { 0 } };
