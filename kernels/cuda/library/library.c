/* library.c: library.h, as NVIDIA's libraries need it. What they make and enqueue is for the thread's current device, and handles are good
 * for the one alone that was current when they were made: the call's is chosen. And they take memory, load kernels and wait when something
 * is made or run first, which CUDA refuses a thread that records, unless it says that it means nothing of what it records: the relaxed
 * mode. Both are the host's again afterwards. */
#include <cuda_runtime_api.h>
#include "cuda/library/library_plans.h"

typedef struct hosts_own {
  int device;
  enum cudaStreamCaptureMode mode;
} hosts_own;

static flow_status enter(const flow_call *call, hosts_own *before)
{
  FLOW_TRY(flow_cuda_enter(call, &before->device));
  before->mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&before->mode);
  return FLOW_OK;
}

static void leave(const flow_call *call, hosts_own *before)
{
  cudaThreadExchangeStreamCaptureMode(&before->mode);
  flow_cuda_leave(call, before->device);
}

const flow_library_plan *flow_library_plan_convolution(const flow_call *call, const flow_library_convolution *convolution)
{
  hosts_own before;
  if (enter(call, &before) != FLOW_OK) return NULL;
  const flow_library_plan *plan = flow_convolution_plan(call, convolution);
  leave(call, &before);
  return plan;
}

const flow_library_plan *flow_library_plan_product(const flow_call *call, const flow_library_product *product)
{
  hosts_own before;
  if (enter(call, &before) != FLOW_OK) return NULL;
  const flow_library_plan *plan = flow_product_plan(call, product);
  leave(call, &before);
  return plan;
}

flow_status flow_library_convolve(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands)
{
  hosts_own before;
  FLOW_TRY(enter(call, &before));
  flow_status status = flow_convolution_run(call, plan, operands);
  leave(call, &before);
  return status;
}

flow_status flow_library_multiply(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias,
                                  void *c, void *workspace)
{
  hosts_own before;
  FLOW_TRY(enter(call, &before));
  flow_status status = flow_product_run(call, plan, a, b, bias, c, workspace);
  leave(call, &before);
  return status;
}
