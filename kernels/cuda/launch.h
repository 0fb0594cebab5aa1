/* launch.h: what the C files of kernels/cuda call. Two implementations: runtime_cuda.c (the CUDA runtime) and emulated.c (the CPU). */
#ifndef FLOW_CUDA_LAUNCH_H
#define FLOW_CUDA_LAUNCH_H

#include "accelerator.h"
#include "cuda/families.h"
#include "cuda/fault.h"

typedef enum flow_cuda_kernel {
#define ELEMENT(name) CUDA_##name,
#define BLOCK(name, phases) CUDA_##name,
  FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
  CUDA_KERNEL_COUNT
} flow_cuda_kernel;

/* Enqueues a kernel for an op's call: `count` elements or blocks; 0 is nothing. The arguments are copied. */
flow_status flow_cuda_launch(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes);
/* Where the call's kernels put what they find wrong; and where effects look whether they may write. */
flow_fault *flow_cuda_fault(const flow_call *call);
const flow_fault *flow_cuda_verdict(const flow_call *call);
/* Enqueues a copy inside the device. */
flow_status flow_cuda_copy(const flow_call *call, void *to, const void *from, size_t bytes);

/* Whether the bodies for float32 serve the call: none of its operands is a float of another size. */
static inline int flow_cuda_is_float32(const flow_call *call)
{
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32 && call->inputs[i].dtype < FLOW_INT8) return 0;
  for (int i = 0; i < call->output_count; i++)
    if (call->outputs[i].dtype != FLOW_FLOAT32 && call->outputs[i].dtype < FLOW_INT8) return 0;
  return 1;
}

#endif
