/* runtime_cuda.c: NVIDIA's GPUs through the CUDA runtime: which there are, their queues, and how kernels get there. */
#include "cuda/runtime/runtime.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "cuda/runtime/libraries.h"
#include "cuda/library/library_formulas.h"

/* The oldest compute capability, ten times major plus minor: Ampere, for which kernels.cu is compiled (FLOW_CUDA_CODE in
 * CMakeLists.txt). */
enum { LEAST_ARCHITECTURE = 80 };

/* Guards opening: `devices` are written only under it. A device that is open never changes and is never closed, so that all else reads it
 * without the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static flow_cuda_device devices[FLOW_CUDA_DEVICES];

/* What "leaves the process in an inconsistent state", after which "any further CUDA work will return the same error" (cudaError_t of the
 * CUDA Runtime API). */
static int ends_process(cudaError_t error)
{
  switch (error) {
    case cudaErrorContained: case cudaErrorIllegalAddress: case cudaErrorLaunchTimeout: case cudaErrorAssert:
    case cudaErrorHardwareStackError: case cudaErrorIllegalInstruction: case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace: case cudaErrorInvalidPc: case cudaErrorLaunchFailure: case cudaErrorExternalDevice:
      return 1;
    default:
      return 0;
  }
}

flow_status flow_runtime_fail(const flow_cuda_device *device, const char *what, cudaError_t error)
{
  cudaGetLastError();
  const char *more = "; this process cannot use the GPU again: start a new one, which can go on from a checkpoint";
  return flow_fail(error == cudaErrorMemoryAllocation ? FLOW_OUT_OF_MEMORY : FLOW_INTERNAL, "gpu:%d: %s: %s (%d)%s", device->base.index,
                   what, cudaGetErrorString(error), (int)error, ends_process(error) ? more : "");
}

/* The runtime cannot tell whether a device has a context without making one; the driver can. Asked through the runtime, because the
 * build does not link libcuda.so. */
typedef int context_state_function(int device, unsigned *flags, int *active);      /* cuDevicePrimaryCtxGetState of cuda.h */
static context_state_function *context_state;

static void find_context_state(void)
{
  enum { SINCE = 7000 };
  void *found = NULL;
  enum cudaDriverEntryPointQueryResult result;
  cudaError_t error = cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, SINCE, cudaEnableDefault, &result);
  if (error == cudaSuccess && result == cudaDriverEntryPointSuccess) memcpy(&context_state, &found, sizeof found);
}

/* Whether somebody in this process has made the device's primary context. "No" where the driver cannot be asked. */
static int has_context(int device)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  unsigned flags;
  int active = 0;
  pthread_once(&once, find_context_state);
  return context_state && context_state(device, &flags, &active) == 0 && active;
}

/* The pair brackets every call of CUDA's that depends on the thread's device. A host program may use CUDA in the same thread:
 * his choice is unchanged afterwards. */
flow_status flow_runtime_enter(const flow_cuda_device *device, int *before)
{
  *before = device->base.index;
  cudaGetDevice(before);
  if (*before != device->base.index) FLOW_CUDA_TRY(device, "choosing the device", cudaSetDevice(device->base.index));
  return FLOW_OK;
}

/* What failed was told, or nobody asked. A thread that chose no device has the first one; to choose it would make its context, which
 * takes memory of a GPU that others may use: such a thread keeps this device. */
void flow_runtime_leave(const flow_cuda_device *device, int before)
{
  cudaGetLastError();
  if (before != device->base.index && has_context(before)) cudaSetDevice(before);
}

/* ---- launches ---------------------------------------------------------------------------------------------------------------- */

/* How many threads or blocks are started: enough to fill the device several times, the rest goes round. */
static unsigned grid_of(flow_cuda_kernel kernel, int64_t count, const flow_cuda_device *device)
{
  static const int threads[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = BLOCK_THREADS,
#define BLOCK(name, phases) [CUDA_##name] = 1,
    FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
  };
  enum { ROUNDS = 32 };
  int64_t blocks = (count - 1) / threads[kernel] + 1, most = (int64_t)device->multiprocessors * ROUNDS;
  if (threads[kernel] == 1) most = INT_MAX;
  return (unsigned)(blocks < most ? blocks : most);
}

/* How many bytes the arguments have, the kernel's own image knows: up to 32,764 on our targets, as ptxas says, and for drivers of CUDA 12.1
 * and newer; before that it was 4 KB. The runtime that is linked in refuses drivers older than itself (explain). */
_Static_assert(CUDART_VERSION >= 12010 && sizeof(bundle_arguments) + sizeof(int64_t) <= 32764, "a driver may take fewer arguments");
/* Starts a kernel on the queue's stream: `arguments` are read before it returns, so that the caller's copy may go. In a recording it
 * becomes a node of the graph, which may be started early where a kernel of ours comes directly before it: "programmatic dependent launch"
 * of the CUDA programming guide, whose terms kernels.cu keeps. Copies, libraries and other queues are waited for in the usual way. Errors
 * of kernels that ran earlier may show here, too: CUDA reports them at the next call. */
static flow_status enqueue(flow_queue *queue, int op, flow_cuda_kernel kernel, int64_t count, const void *arguments)
{
  const flow_cuda_device *device = queue->device;
  void *parameters[2] = { (void *)(uintptr_t)arguments, &count };
  int before;
  flow_cuda_function found;
  FLOW_TRY(flow_runtime_enter(device, &before));
  flow_status status = flow_runtime_kernel(device, kernel, &found);
  if (status != FLOW_OK) {
    flow_runtime_leave(device, before);
    return status;
  }
  cudaLaunchAttribute early = { .id = cudaLaunchAttributeProgrammaticStreamSerialization };
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how = { .gridDim = { grid_of(kernel, count, device), 1, 1 }, .blockDim = { BLOCK_THREADS, 1, 1 },
                             .stream = queue->stream, .attrs = &early, .numAttrs = queue->after_kernel && device->overlaps && found.early };
  cudaError_t error = cudaLaunchKernelExC(&how, found.function, parameters);
  queue->after_kernel = queue->capture != NULL;
  flow_runtime_leave(device, before);
  return error == cudaSuccess ? FLOW_OK : flow_runtime_fail(device, flow_cuda_op_name(op), error);
}

/* Enqueues the launches that wait to be bundled. */
static flow_status close_bundle(flow_queue *queue)
{
  flow_cuda_closed closed;
  if (!flow_cuda_bundle_close(queue->bundle, &closed)) return FLOW_OK;
  return enqueue(queue, closed.op, closed.kernel, closed.count, closed.arguments);
}

/* The launches that wait in the bundle are enqueued as one. Every function that puts something else than a kernel of ours on the stream or
 * orders the stream against another one calls this before, so that the stream's order is that of the calls. */
flow_status flow_runtime_flush(flow_queue *queue)
{
  flow_status status = close_bundle(queue);
  queue->after_kernel = 0;
  return status;
}

/* Outside a recording every launch goes to the stream at once: the host would gain nothing by holding it back. In a recording a small
 * one is offered to the bundle; if that is full, it is closed and the launch opens the next. One that is not small closes the bundle and
 * follows it. */
flow_status flow_cuda_launch(const flow_call *call, flow_cuda_kernel kernel, int64_t count, const void *arguments, size_t bytes)
{
  flow_queue *queue = call->queue;
  int small = queue->capture && flow_cuda_is_small(call, kernel, count), taken = 0;
  if (count <= 0) return FLOW_OK;
  if (small) FLOW_TRY(flow_cuda_bundle_add(&queue->bundle, call, kernel, count, arguments, bytes, &taken));
  if (taken) return FLOW_OK;
  FLOW_TRY(close_bundle(queue));
  if (small) FLOW_TRY(flow_cuda_bundle_add(&queue->bundle, call, kernel, count, arguments, bytes, &taken));
  return taken ? FLOW_OK : enqueue(queue, call->op, kernel, count, arguments);
}

/* A recording's faults are those of the queue on which it began. */
static flow_queue *judge_of(const flow_call *call)
{
  const flow_cuda_capture *capture = call->queue->capture;
  return capture ? capture->queues[0] : call->queue;
}

flow_device_fault *flow_cuda_fault(const flow_call *call)
{
  flow_queue *judge = judge_of(call);
  judge->may_fault = 1;
  return judge->fault;
}

/* What effects look at. Unlike flow_cuda_fault this does not make the host fetch the fault when it waits: looking leaves none. */
const flow_device_fault *flow_cuda_verdict(const flow_call *call) { return judge_of(call)->fault; }

uint32_t *flow_cuda_counters(const flow_call *call) { return call->queue->counters; }

flow_status flow_cuda_copy(const flow_call *call, void *to, const void *from, size_t bytes)
{
  return flow_runtime_copy_inside(call->queue, to, from, bytes);
}

/* A call without a queue is one of the planner's questions (how much shared memory, is there a plan): it is answered for the first
 * device. */
static const flow_cuda_device *device_of(const flow_call *call) { return call->queue ? call->queue->device : &devices[0]; }

int flow_cuda_device_index(const flow_call *call) { return device_of(call)->base.index; }

int flow_cuda_multiprocessors(const flow_call *call) { return device_of(call)->multiprocessors; }

flow_status flow_cuda_enter(const flow_call *call, int *before) { return flow_runtime_enter(device_of(call), before); }

void flow_cuda_leave(const flow_call *call, int before) { flow_runtime_leave(device_of(call), before); }

/* For libraries, which enqueue by themselves. It has no status to return: if the bundle cannot be enqueued, the recording is marked as
 * broken and its end fails. */
cudaStream_t flow_cuda_stream(const flow_call *call)
{
  if (!call->queue) return NULL;
  if (flow_runtime_flush(call->queue) != FLOW_OK && call->queue->capture) call->queue->capture->broken = 1;
  return call->queue->stream;
}

/* ---- queues ------------------------------------------------------------------------------------------------------------------ */

/* What makes the host wait, or needs the device's answer, cannot become part of a recording. The whole recording is broken by the
 * attempt: a caller who ignores the failure would replay a graph that lacks the step. */
flow_status flow_runtime_refuse_while_recorded(flow_queue *queue, const char *what)
{
  if (!queue->capture) return FLOW_OK;
  queue->capture->broken = 1;
  return flow_fail(FLOW_INVALID_STATE, "%s: not while the queue is recorded", what);
}

/* Waits until the queue's work is done. `found` is the fault that it left, if any; the queue forgets it, so that later work has its
 * effects again. The copy of the fault is enqueued before the wait: one trip for both. It is left out where no op could have found
 * something. A copy that fails leaves the fault for the next wait. */
static flow_status wait_for(flow_queue *queue, flow_device_fault *found)
{
  size_t size = sizeof *queue->fault;
  memset(found, 0, size);
  if (queue->may_fault)
    FLOW_CUDA_TRY(queue->device, "a copy", cudaMemcpyAsync(queue->seen, queue->fault, size, cudaMemcpyDeviceToHost, queue->stream));
  FLOW_CUDA_TRY(queue->device, "waiting for the device", cudaStreamSynchronize(queue->stream));
  if (queue->seen->kind == FAULT_NONE) return FLOW_OK;
  *found = *queue->seen;
  memset(queue->seen, 0, size);
  FLOW_CUDA_TRY(queue->device, "clearing", cudaMemsetAsync(queue->fault, 0, size, queue->stream));
  return FLOW_OK;
}

flow_status flow_runtime_wait(flow_queue *queue)
{
  int before;
  flow_device_fault found;
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  flow_status status = wait_for(queue, &found);
  flow_runtime_leave(queue->device, before);
  return status == FLOW_OK ? flow_cuda_raise(&found) : status;
}

flow_status flow_runtime_synchronize(flow_queue *queue)
{
  FLOW_TRY(flow_runtime_refuse_while_recorded(queue, "synchronize"));
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_WAITS, 1);
  return flow_runtime_wait(queue);
}

/* Waits for what the queue has still to do: its memory may be in use until then. Takes a queue that was made by half. */
static void queue_release(flow_queue *queue)
{
  if (!queue) return;
  int before;
  if (flow_runtime_enter(queue->device, &before) == FLOW_OK) {
    if (queue->stream) cudaStreamSynchronize(queue->stream);
    flow_runtime_release_deferred(queue);
    flow_runtime_staging_release(&queue->staging);
    if (queue->event) cudaEventDestroy(queue->event);
    if (queue->fault) cudaFree(queue->fault);
    if (queue->counters) cudaFree(queue->counters);
    if (queue->seen) cudaFreeHost(queue->seen);
    if (queue->stream) cudaStreamDestroy(queue->stream);
    flow_runtime_leave(queue->device, before);
  }
  flow_free(queue->released);
  flow_free(queue->bundle);
  flow_free(queue);
}

/* A non-blocking stream does not wait for the legacy default stream, which a host program may use for itself. Events carry no times:
 * they only order. `seen` is zeroed here, and wait_for keeps it so, because it decides whether there was a fault even where nothing was
 * copied. */
static flow_status queue_start(flow_queue *queue)
{
  const flow_cuda_device *device = queue->device;
  FLOW_CUDA_TRY(device, "a new stream", cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking));
  FLOW_CUDA_TRY(device, "a new event", cudaEventCreateWithFlags(&queue->event, cudaEventDisableTiming));
  size_t size = sizeof *queue->fault;
  FLOW_CUDA_TRY(device, "memory", cudaMalloc((void **)&queue->fault, size));
  FLOW_CUDA_TRY(device, "clearing", cudaMemsetAsync(queue->fault, 0, size, queue->stream));
  size_t counters = FLOW_CUDA_COUNTERS * sizeof *queue->counters;
  FLOW_CUDA_TRY(device, "memory", cudaMalloc((void **)&queue->counters, counters));
  FLOW_CUDA_TRY(device, "clearing", cudaMemsetAsync(queue->counters, 0, counters, queue->stream));
  FLOW_CUDA_TRY(device, "pinned memory", cudaHostAlloc((void **)&queue->seen, size, cudaHostAllocPortable));
  memset(queue->seen, 0, size);
  return FLOW_OK;
}

static flow_status queue_new(const flow_accelerator *self, flow_queue **out)
{
  *out = NULL;
  void *made;
  int before;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_queue), &made));
  flow_queue *queue = made;
  queue->device = &devices[self->index];
  flow_status status = flow_runtime_enter(queue->device, &before);
  if (status == FLOW_OK) {
    status = queue_start(queue);
    flow_runtime_leave(queue->device, before);
  }
  if (status == FLOW_OK) *out = queue;
  else queue_release(queue);
  return status;
}

static const flow_accelerator_functions functions = {
  .queue_new = queue_new, .queue_release = queue_release, .follow = flow_runtime_follow, .synchronize = flow_runtime_synchronize,
  .allocate = flow_runtime_allocate, .release = flow_runtime_release, .upload = flow_runtime_upload, .download = flow_runtime_download,
  .copy = flow_runtime_copy_inside, .clear = flow_runtime_clear, .fill = flow_cuda_fill_operand,
  .free_memory = flow_runtime_free_memory, .approve = flow_cuda_approve, .require_approval = flow_cuda_require_approval,
  .take_batch = flow_cuda_take_batch,
  .record_begin = flow_runtime_record_begin,
  .record_end = flow_runtime_record_end, .replay = flow_runtime_replay, .recording_nodes = flow_runtime_recording_nodes,
  .recording_release = flow_runtime_recording_release,
};

/* ---- devices ----------------------------------------------------------------------------------------------------------------- */

/* Why CUDA gives no device, and what helps. */
static void explain(cudaError_t error, char *why, size_t size)
{
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (error == cudaErrorInsufficientDriver && driver == 0) {
    snprintf(why, size, "no NVIDIA driver (libcuda.so.1 is not there)");
  } else if (error == cudaErrorInsufficientDriver) {
    snprintf(why, size, "the NVIDIA driver serves CUDA %d.%d, this build needs %d.%d: install a newer driver", driver / 1000,
             driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  } else if (error == cudaErrorNoDevice) {
    snprintf(why, size, "no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it");
  } else {
    snprintf(why, size, "%s (CUDA error %d)", cudaGetErrorString(error), (int)error);
  }
}

static int count_devices(char *why, size_t size)
{
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error == cudaSuccess) return count < FLOW_CUDA_DEVICES ? count : FLOW_CUDA_DEVICES;
  explain(error, why, size);
  return 0;
}

/* The device's pool keeps what is released (a threshold of all bits): memory that went back to the driver would have to be mapped again
 * for the next step. The pool is the device's own, so that a host program's pool keeps its settings. */
static flow_status make_pool(flow_cuda_device *device)
{
  struct cudaMemPoolProps properties = { .allocType = cudaMemAllocationTypePinned,
                                         .location = { .type = cudaMemLocationTypeDevice, .id = device->base.index } };
  uint64_t all = UINT64_MAX;
  FLOW_CUDA_TRY(device, "a pool of memory", cudaMemPoolCreate(&device->pool, &properties));
  FLOW_CUDA_TRY(device, "a pool of memory", cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold, &all));
  return FLOW_OK;
}

/* Returns whether there is cuDNN. */
static int describe(flow_cuda_device *device, const struct cudaDeviceProp *properties, char *isa, size_t isa_size)
{
  char cudnn[256];
  int driver = 0;
  cudaDriverGetVersion(&driver);
  int found = flow_cuda_library_text(FLOW_CUDA_CUDNN, cudnn, sizeof cudnn);
  snprintf(isa, isa_size, "sm_%d%d", properties->major, properties->minor);
  snprintf(device->base.description, sizeof device->base.description, "%.48s, %s, driver %d.%d, %.64s", properties->name, isa,
           driver / 1000, driver % 1000 / 10, cudnn);
  return found;
}

/* As NCCL tells them apart: by machine and place on the bus, so that the parts of a divided GPU are one. */
static void identify(flow_cuda_device *device)
{
  char bus[32] = "", machine[64] = "";
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file && !fgets(machine, sizeof machine, file)) machine[0] = 0;
  if (file) fclose(file);
  machine[strcspn(machine, "\n")] = 0;
  cudaDeviceGetPCIBusId(bus, sizeof bus, device->base.index);
  snprintf(device->base.identity, sizeof device->base.identity, "%s of machine %s", bus, machine);
}

static flow_status start_device(flow_cuda_device *device, const struct cudaDeviceProp *properties)
{
  static char isas[FLOW_CUDA_DEVICES][16];
  int index = device->base.index;
  const char *overlap = getenv("FLOW_CUDA_OVERLAP");
  flow_cuda_function smallest;
  FLOW_TRY(flow_runtime_kernel(device, CUDA_fill, &smallest)); /* fails where the plugin has no machine code for this GPU */
  FLOW_TRY(make_pool(device));
  device->overlaps = !overlap || strcmp(overlap, "0") != 0;
  device->multiprocessors = properties->multiProcessorCount;
  int found_cudnn = describe(device, properties, isas[index], sizeof isas[index]);
  identify(device);
  device->base.device = (flow_device){ .name = "gpu", .isa = isas[index], .kernels = flow_cuda_kernels, .half_floats = 1,
                                         .transposed_bytes = found_cudnn ? FLOW_LIBRARY_ALIGNMENT : 0,
                                         .mixes_half_floats = flow_cuda_mixes_half_floats };
  device->base.functions = &functions;
  device->base.memory_bytes = (double)properties->totalGlobalMem;
  device->base.traffic = &device->traffic;
  device->opened = 1;
  return FLOW_OK;
}

/* Checks what the device can do before anything is made on it. Loading kernels makes a context on whichever device is current, hence the
 * bracket. */
static flow_status enter_and_start(flow_cuda_device *device, int index)
{
  int before;
  struct cudaDeviceProp properties;
  device->base.index = index;
  FLOW_CUDA_TRY(device, "asking what it is", cudaGetDeviceProperties(&properties, index));
  if (properties.major * 10 + properties.minor < LEAST_ARCHITECTURE) {
    return flow_fail(FLOW_UNSUPPORTED, "gpu:%d is an %s of compute capability %d.%d; flowlua needs %d.%d or newer", index, properties.name,
                     properties.major, properties.minor, LEAST_ARCHITECTURE / 10, LEAST_ARCHITECTURE % 10);
  }
  FLOW_TRY(flow_runtime_enter(device, &before));
  flow_status status = start_device(device, &properties);
  flow_runtime_leave(device, before);
  return status;
}

/* The device with this number, counted from 0 as CUDA numbers what CUDA_VISIBLE_DEVICES leaves. Opened by the first who asks, for all;
 * never closed: *out is valid until the process ends. Any thread may call. A failure leaves it closed, and the next call tries again. */
static flow_status open_device(int index, const flow_accelerator **out)
{
  char why[FLOW_ACCELERATOR_TEXT] = "";
  *out = NULL;
  int count = count_devices(why, sizeof why);
  if (index < 0 || index >= count) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no gpu:%d: this process sees %d%s%s", index, count, *why ? ": " : "", why);
  }
  pthread_mutex_lock(&lock);
  flow_cuda_device *device = &devices[index];
  flow_status status = device->opened ? FLOW_OK : enter_and_start(device, index);
  if (status == FLOW_OK) *out = &device->base;
  pthread_mutex_unlock(&lock);
  return status;
}

const flow_accelerator_table flow_cuda_table = { .count = count_devices, .open = open_device, .transport = &flow_cuda_nccl_transport };
