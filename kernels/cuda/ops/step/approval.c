/* approval.c: how replicas on several devices make a step together or not at all, without waiting. Each counts the steps, and writes the
 * number of this one, or 0 where it has refused data; these votes are added up; and a worker that does not find what all together must give
 * refuses what follows, too. A sum that was ended before it was complete may hold what is left of earlier ones, which is less.
 *
 * No family that is bundled: a launch of it comes between those before and after it. */
#ifndef FLOW_CUDA_OPS_APPROVAL
#define FLOW_CUDA_OPS_APPROVAL

#include "cuda/runtime/fault.h"

/* votes[0]: to be added up; votes[1]: the number of steps so far. */
typedef struct approve_arguments {
  const flow_device_fault *fault;
  double *votes;
} approve_arguments;

BODY void approve(int64_t i, const approve_arguments *p)
{
  (void)i;
  p->votes[1] += 1;
  p->votes[0] = is_refused(p->fault) ? 0 : p->votes[1];
}

typedef struct require_approval_arguments {
  flow_device_fault *fault;
  const double *votes;
  double all;
} require_approval_arguments;

/* votes[0]: the sum of all replicas' votes. all: how many there are. */
BODY void require_approval(int64_t i, const require_approval_arguments *p)
{
  (void)i;
  if (!(p->votes[0] == p->all * p->votes[1])) raise_fault(p->fault, FAULT_ELSEWHERE, 0, 0, 0, 0, (const flow_scalars *)0);
}

#define APPROVAL_KERNELS(ELEMENT, BLOCK) ELEMENT(approve) ELEMENT(require_approval)

#endif

#if __INCLUDE_LEVEL__ == 0 /* the launches: families.h */
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

#endif
