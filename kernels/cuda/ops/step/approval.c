/* approval.c: the accelerator's functions approve and require_approval. */
#include "cuda/ops/step/approval.h"

#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"
#include "ops/op.h"

/* Launches are those of an op's call: here that of the sum between the two. `operand` names the votes, so that the launch is ordered
 * against those that touch them. */
static flow_call call_with(flow_queue *queue, flow_operand *operand, double *votes)
{
  *operand = (flow_operand){ .data = votes, .dtype = FLOW_FLOAT64, .rank = 1, .shape = { 2 }, .strides = { 1 } };
  return (flow_call){ .op = FLOW_OP_all_reduce, .queue = queue };
}

flow_status flow_cuda_approve(flow_queue *queue, double *votes)
{
  flow_operand operand;
  flow_call call = call_with(queue, &operand, votes);
  call.outputs = &operand;
  call.output_count = 1;
  approve_arguments a = { .fault = flow_cuda_verdict(&call), .votes = votes };
  return flow_cuda_launch(&call, CUDA_approve, 1, &a, sizeof a);
}

flow_status flow_cuda_require_approval(flow_queue *queue, double *votes, int all)
{
  flow_operand operand;
  flow_call call = call_with(queue, &operand, votes);
  call.inputs = &operand;
  call.input_count = 1;
  require_approval_arguments a = { .fault = flow_cuda_fault(&call), .votes = votes, .all = all };
  return flow_cuda_launch(&call, CUDA_require_approval, 1, &a, sizeof a);
}
