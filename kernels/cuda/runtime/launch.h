/* launch.h: what the C files of kernels/cuda call to enqueue something: runtime_cuda.c. */
#ifndef FLOW_CUDA_RUNTIME_LAUNCH_H
#define FLOW_CUDA_RUNTIME_LAUNCH_H

#include "accelerator.h"
#include "cuda/families.h"
#include "cuda/runtime/fault.h"

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
flow_device_fault *flow_cuda_fault(const flow_call *call);
const flow_device_fault *flow_cuda_verdict(const flow_call *call);
/* Counters of the call's queue for arrival.h, which its launches use one after the other. */
enum { FLOW_CUDA_COUNTERS = 4096 };
uint32_t *flow_cuda_counters(const flow_call *call);
/* Of the call's device. What is computed must not depend on it. */
int flow_cuda_multiprocessors(const flow_call *call);
/* Enqueues a copy inside the device. */
flow_status flow_cuda_copy(const flow_call *call, void *to, const void *from, size_t bytes);
/* Makes the device of the call's queue, or the first one where it has none, the thread's current one; `before`: what leave restores. */
flow_status flow_cuda_enter(const flow_call *call, int *before);
void        flow_cuda_leave(const flow_call *call, int before);

/* Which of the bodies of numbers.h serve a call, by its operands' floats: float32 alone, also 16 bits, others. */
typedef enum flow_cuda_way { FLOW_CUDA_FLOAT32, FLOW_CUDA_HALF_FLOATS, FLOW_CUDA_OTHER } flow_cuda_way;

/* The kernels of a name by their way. */
#define FLOW_CUDA_EACH_WAY(name) { CUDA_##name##_float32, CUDA_##name##_half_floats, CUDA_##name##_other }

static inline flow_cuda_way flow_cuda_way_of(const flow_call *call)
{
  flow_cuda_way way = FLOW_CUDA_FLOAT32;
  for (int i = 0; i < call->input_count + call->output_count; i++) {
    int dtype = (i < call->input_count ? &call->inputs[i] : &call->outputs[i - call->input_count])->dtype;
    if (dtype == FLOW_FLOAT64) return FLOW_CUDA_OTHER;
    if (dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16) way = FLOW_CUDA_HALF_FLOATS;
  }
  return way;
}

static inline int flow_cuda_is_float32(const flow_call *call) { return flow_cuda_way_of(call) == FLOW_CUDA_FLOAT32; }

#endif
