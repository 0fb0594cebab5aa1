/* launches.c: what a launch touches. CUDA sees a kernel's arguments alone; which bytes they reach is told by the op's call that launches
 * it. So the linker leads every call of flow_cuda_launch through here first (--wrap): the files that ship know nothing of it. Calls of
 * libraries come along here, too: NVIDIA's use whichever device is current. */
#include "cuda/emulation/emulation.h"
#include "base/memory.h"
#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"
#include "cuda/library/library_plans.h"
#include "cuda/runtime/runtime.h"
#include "cuda/device/view_make.h"

flow_status __real_flow_cuda_launch(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes);
flow_status __wrap_flow_cuda_launch(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes);

static cudaError_t touch_operand(const flow_call *call, const flow_operand *x, int write)
{
  size_t bytes;
  const char *from = flow_cuda_span(x, &bytes);
  return emulated_touch(call->queue->stream, from, bytes, write, call->op);
}

static cudaError_t touch_call(const flow_call *call)
{
  cudaStream_t stream = call->queue->stream;
  EMULATED_TRY(emulated_check_stream(stream));
  for (int i = 0; i < call->input_count; i++) EMULATED_TRY(touch_operand(call, &call->inputs[i], flow_cuda_writes_input(call, i)));
  for (int i = 0; i < call->output_count; i++) EMULATED_TRY(touch_operand(call, &call->outputs[i], 1));
  if (call->shared) EMULATED_TRY(emulated_touch(stream, call->shared, 1, 1, call->op));
  if (flow_cuda_op_is_random(call->op) && call->scalars)
    EMULATED_TRY(emulated_touch(stream, call->scalars, sizeof *call->scalars, 0, call->op));
  return cudaSuccess;
}

/* A library asks for the stream and puts its own kernels there, which wait for what is before them in the usual way. */
static flow_status take_stream(const flow_call *call, flow_cuda_kernel kernel)
{
  static const char is_of_library[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = 1,
#define BLOCK(name, phases) [CUDA_##name] = 1,
    EMULATED_LIBRARY_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
  };
  return is_of_library[kernel] ? flow_runtime_flush(call->queue) : FLOW_OK;
}

flow_status __wrap_flow_cuda_launch(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes)
{
  const char *op = flow_cuda_op_name(call->op);
  if (kernel >= CUDA_KERNEL_COUNT || bytes != emulated_argument_bytes(kernel))
    return flow_fail(FLOW_INTERNAL, "%s: %.0f bytes of arguments are not those of kernel %d", op, (double)bytes, (int)kernel);
  if (count < 0 || count > (int64_t)1 << 46) return flow_fail(FLOW_INTERNAL, "%s: a launch of %lld", op, (long long)count);
  if (count == 0) return FLOW_OK;
  emulated_bounds *bounds = emulated_bounds_of(call);
  emulated_lock();
  cudaError_t error = touch_call(call);
  if (error == cudaSuccess) emulated_bounds_note(call, (int)kernel, arguments, bytes, bounds);
  else flow_free(bounds);
  emulated_unlock();
  if (error != cudaSuccess) return flow_runtime_fail(call->queue->device, op, error);
  if (call->queue->capture) emulated_list_launch(call, (int)kernel, count, flow_cuda_is_small(call, kernel, count), arguments, bytes);
  flow_status status = take_stream(call, kernel);
  if (status == FLOW_OK) status = __real_flow_cuda_launch(call, kernel, count, arguments, bytes);
  if (status == FLOW_OK) status = take_stream(call, kernel);
  if (status == FLOW_OK) return FLOW_OK;
  emulated_lock();
  emulated_bounds_forget(call->queue->stream);
  emulated_unlock();
  return status;
}

/* ---- libraries ----------------------------------------------------------------------------------------------------------------- */

flow_status __real_flow_convolution_run(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands);
flow_status __wrap_flow_convolution_run(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands);
flow_status __real_flow_product_run(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias,
                                    void *c, void *workspace);
flow_status __wrap_flow_product_run(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias,
                                    void *c, void *workspace);

/* A search asks the driver and takes memory: cuBLASLt 13.3 fails then ("Could not obtain green context information"). */
flow_status emulated_may_plan(void)
{
  emulated_lock();
  cudaError_t error = emulated_check_unsafe();
  emulated_unlock();
  return error == cudaSuccess ? FLOW_OK : flow_fail(FLOW_INTERNAL, "a library is asked for a new plan while the thread records");
}

/* A workspace's alignment is the one that cuBLAS documents (cublasSetWorkspace), and that of all memory that CUDA gives. */
static flow_status check_call(const flow_call *call, const void *workspace)
{
  enum { WORKSPACE_ALIGNMENT = 256 };
  int wanted = call->queue->device->base.index, found = emulated_device();
  if (wanted != found) return flow_fail(FLOW_INTERNAL, "a library is called for gpu:%d while gpu:%d is current", wanted, found);
  if ((uintptr_t)workspace % WORKSPACE_ALIGNMENT == 0) return FLOW_OK;
  return flow_fail(FLOW_INTERNAL, "a library's workspace begins at %p, a multiple of %d was expected", workspace, WORKSPACE_ALIGNMENT);
}

/* As the tensors of the graph are described (cudnn_graph.c). */
static flow_status check_operands(const flow_library_operands *o)
{
  uintptr_t places = (uintptr_t)o->first | (uintptr_t)o->second | (uintptr_t)o->result | (uintptr_t)o->bias | (uintptr_t)o->addend |
                     (uintptr_t)o->relu;
  if (places % FLOW_LIBRARY_ALIGNMENT == 0 && (uintptr_t)o->sums % sizeof *o->sums == 0) return FLOW_OK;
  return flow_fail(FLOW_INTERNAL, "an operand of a library's convolution begins at no multiple of %d bytes", FLOW_LIBRARY_ALIGNMENT);
}

flow_status __wrap_flow_convolution_run(const flow_call *call, const flow_library_plan *plan, const flow_library_operands *operands)
{
  FLOW_TRY(check_call(call, operands->workspace));
  FLOW_TRY(check_operands(operands));
  return __real_flow_convolution_run(call, plan, operands);
}

flow_status __wrap_flow_product_run(const flow_call *call, const flow_library_plan *plan, const void *a, const void *b, const void *bias,
                                    void *c, void *workspace)
{
  FLOW_TRY(check_call(call, workspace));
  return __real_flow_product_run(call, plan, a, b, bias, c, workspace);
}
