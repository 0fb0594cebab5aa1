/* library.c: library.h, with the right device chosen: what NVIDIA's libraries make and enqueue is for the thread's current one, and handles
 * are good for the one alone that was current when they were made. The host's choice is restored. */
#include "cuda/library/library_plans.h"

const flow_library_plan *flow_library_plan_convolution(const flow_call *call, const flow_library_convolution *convolution)
{
  int before;
  if (flow_cuda_enter(call, &before) != FLOW_OK) return NULL;
  const flow_library_plan *plan = flow_convolution_plan(call, convolution);
  flow_cuda_leave(call, before);
  return plan;
}

const flow_library_plan *flow_library_plan_product(const flow_call *call, const flow_library_product *product)
{
  int before;
  if (flow_cuda_enter(call, &before) != FLOW_OK) return NULL;
  const flow_library_plan *plan = flow_product_plan(call, product);
  flow_cuda_leave(call, before);
  return plan;
}

flow_status flow_library_convolve(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands)
{
  int before;
  FLOW_TRY(flow_cuda_enter(call, &before));
  flow_status status = flow_convolution_run(call, plan, operands);
  flow_cuda_leave(call, before);
  return status;
}

flow_status flow_library_multiply(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias,
                                  void *c, void *workspace)
{
  int before;
  FLOW_TRY(flow_cuda_enter(call, &before));
  flow_status status = flow_product_run(call, plan, a, b, bias, c, workspace);
  flow_cuda_leave(call, before);
  return status;
}
