/* test_cuda_failures.c: whichever call of CUDA's fails, once or from then on, the back end says so, leaves nothing behind and works on once
 * CUDA does. The linker leads the back end's calls through here first (--wrap), on the emulated CUDA runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "cuda/runtime/runtime.h"
#include "ops/op.h"

enum { COUNT = 2000, BYTES = COUNT * 4, QUEUES = 60, MOST_CALLS = 2000 };

/* ---- failures ----------------------------------------------------------------------------------------------------------------------- */

static _Atomic int calls;
static int fails_at = -1, goes_on, failed;        /* fails_at: which call; -1: none */
static const char *which = "";

static int fails(const char *name)
{
  int now = fails_at >= 0 && (calls == fails_at || (goes_on && calls > fails_at));
  calls++;
  if (!now) return 0;
  if (!failed) which = name;
  return ++failed;
}

static _Thread_local cudaError_t pending;        /* what a call that failed here leaves for cudaGetLastError */
static cudaError_t an_error(void)
{
  pending = goes_on ? cudaErrorUnknown : cudaErrorMemoryAllocation;
  return pending;
}

/* Calls that make something fail before they do; those that end something do it all the same. */
#define MAKES(name, parameters, arguments)                            \
  cudaError_t __real_##name parameters;                               \
  cudaError_t __wrap_##name parameters;                               \
  cudaError_t __wrap_##name parameters { return fails(#name) ? an_error() : __real_##name arguments; }
#define ENDS(name, parameters, arguments)                             \
  cudaError_t __real_##name parameters;                               \
  cudaError_t __wrap_##name parameters;                               \
  cudaError_t __wrap_##name parameters                                \
  {                                                                   \
    cudaError_t error = __real_##name arguments;                      \
    return fails(#name) ? an_error() : error;                             \
  }

MAKES(cudaStreamCreateWithFlags, (cudaStream_t *stream, unsigned flags), (stream, flags))
MAKES(cudaEventCreateWithFlags, (cudaEvent_t *event, unsigned flags), (event, flags))
MAKES(cudaMalloc, (void **memory, size_t bytes), (memory, bytes))
MAKES(cudaHostAlloc, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))
MAKES(cudaMallocFromPoolAsync, (void **memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream), (memory, bytes, pool, stream))
MAKES(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
      (to, from, bytes, kind, stream))
MAKES(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream), (to, value, bytes, stream))
MAKES(cudaLaunchKernelExC, (const cudaLaunchConfig_t *how, const void *kernel, void **parameters), (how, kernel, parameters))
MAKES(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
MAKES(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags))
MAKES(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode))
MAKES(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count), (graph, nodes, count))
MAKES(cudaGraphInstantiate, (cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags), (exec, graph, flags))
MAKES(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
MAKES(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
ENDS(cudaEventSynchronize, (cudaEvent_t event), (event))
ENDS(cudaStreamSynchronize, (cudaStream_t stream), (stream))
ENDS(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes), (pool, bytes))
ENDS(cudaFreeAsync, (void *memory, cudaStream_t stream), (memory, stream))
ENDS(cudaFree, (void *memory), (memory))
ENDS(cudaFreeHost, (void *memory), (memory))
ENDS(cudaEventDestroy, (cudaEvent_t event), (event))
ENDS(cudaStreamDestroy, (cudaStream_t stream), (stream))
ENDS(cudaGraphDestroy, (cudaGraph_t graph), (graph))
ENDS(cudaGraphExecDestroy, (cudaGraphExec_t exec), (exec))

/* The capture is over, whatever comes of it. */
cudaError_t __real_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t __wrap_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
  cudaError_t error = __real_cudaStreamEndCapture(stream, graph);
  if (!fails("cudaStreamEndCapture")) return error;
  if (*graph) __real_cudaGraphDestroy(*graph);
  *graph = NULL;
  return an_error();
}

cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void)
{
  cudaError_t error = pending, own = __real_cudaGetLastError();
  pending = cudaSuccess;
  return error != cudaSuccess ? error : own;
}

/* ---- what is done ------------------------------------------------------------------------------------------------------------------- */

static const flow_accelerator *device;             /* the second: the host's is the first */
static const flow_accelerator_functions *gpu;

typedef struct things { flow_queue *queue, *other; char *memory, *more; flow_recording *recording; int recorded; } things;

/* Every call leaves the host's device and no error behind. */
static flow_status as_before(flow_status status, const char *call)
{
  int current;
  cudaGetDevice(&current);
  cudaError_t error = __wrap_cudaGetLastError();
  if (current != 0 || error != cudaSuccess)
    fail_msg("where %s fails, %s leaves gpu:%d current, and %s", which, call, current, cudaGetErrorString(error));
  return status;
}

#define do_(call) FLOW_TRY(as_before(call, #call))

static flow_status enqueue_fill(flow_queue *queue, void *to)
{
  flow_attributes attributes = { .fill = { .value = 3, .rank = 1, .dims = { COUNT } } };
  flow_operand y = { .data = to, .dtype = FLOW_FLOAT32, .rank = 1, .shape = { COUNT }, .strides = { 1 } };
  flow_call call = { .op = FLOW_OP_fill, .attributes = &attributes, .outputs = &y, .output_count = 1, .queue = queue };
  return device->device.kernels[FLOW_OP_fill]->run(&call, 0, 0, 1);
}

static flow_status use(things *t, float *values)
{
  do_(gpu->queue_new(device, &t->queue));
  do_(gpu->queue_new(device, &t->other));
  do_(gpu->allocate(t->queue, BYTES, (void **)&t->memory));
  do_(gpu->allocate(t->other, BYTES, (void **)&t->more));
  do_(gpu->upload(t->queue, t->memory, values, 100));
  do_(gpu->upload(t->queue, t->memory, values, BYTES));        /* larger pieces */
  do_(enqueue_fill(t->queue, t->memory));
  do_(gpu->follow(t->other, t->queue));
  do_(gpu->copy(t->other, t->more, t->memory, BYTES));
  do_(gpu->synchronize(t->other));
  t->recorded = 1;
  do_(gpu->record_begin(t->queue));
  do_(gpu->follow(t->other, t->queue));
  do_(gpu->clear(t->other, t->more, BYTES));
  do_(enqueue_fill(t->queue, t->memory));
  do_(gpu->follow(t->queue, t->other));
  do_(gpu->copy(t->queue, t->more, t->memory, BYTES / 2));
  t->recorded = 0;
  do_(gpu->record_end(t->queue, &t->recording));
  do_(gpu->replay(t->queue, t->recording));
  do_(gpu->download(t->queue, values, t->more, BYTES));
  return FLOW_OK;
}

static void clean_up(things *t)
{
  flow_recording *begun = NULL;
  if (t->recorded) gpu->record_end(t->queue, &begun);      /* without a beginning it is refused */
  as_before(FLOW_OK, "record_end");
  gpu->recording_release(begun);
  gpu->recording_release(t->recording);
  as_before(FLOW_OK, "recording_release");
  if (t->queue) gpu->release(t->queue, t->memory);
  if (t->other) gpu->release(t->other, t->more);
  as_before(FLOW_OK, "release");
  gpu->queue_release(t->other);
  gpu->queue_release(t->queue);
  as_before(FLOW_OK, "queue_release");
}

/* Where memory is out it is tried once more; what cannot be freed is lost. */
static int is_overcome(void)
{
  return strcmp(which, "cudaMallocFromPoolAsync") == 0 || strcmp(which, "cudaFreeHost") == 0 || strcmp(which, "cudaGraphDestroy") == 0;
}

/* Returns whether the call that was to fail came. */
static int use_with(int at, int on)
{
  float values[COUNT] = { 0 };
  things t = { 0 };
  calls = failed = 0;
  fails_at = at;
  goes_on = on;
  flow_status status = use(&t, values);
  int told = failed == 0 || status != FLOW_OK;
  if (!told && !is_overcome()) fail_msg("nobody is told that %s fails", which);
  clean_up(&t);
  fails_at = -1;
  for (int i = 0; i < COUNT && status == FLOW_OK; i++) assert_float_equal(values[i], (i < COUNT / 2 ? 3 : 0), 0);
  return failed > 0;
}

/* None is left of what was made before. */
static void all_queues_are_there(void)
{
  flow_queue *queues[QUEUES];
  for (int i = 0; i < QUEUES; i++)
    if (gpu->queue_new(device, &queues[i]) != FLOW_OK) fail_msg("%d queues: %s", i, flow_last_error());
  for (int i = 0; i < QUEUES; i++) gpu->queue_release(queues[i]);
}

static void fail_each(int on)
{
  double before = 0;
  int at;
  for (at = 0; use_with(at, on); at++) {
    assert_true(at < MOST_CALLS);
    assert_false(use_with(-1, 0));                 /* all is well again */
    double now = gpu->free_memory(device);
    if (at > 0 && now != before) fail_msg("where %s fails, %.0f bytes are lost", which, before - now);
    before = now;
  }
  assert_true(at > 80);
  all_queues_are_there();
}

static void a_call_that_fails_is_told(void **state)
{
  (void)state;
  fail_each(0);
}

static void a_device_that_fails_for_good_is_told(void **state)
{
  (void)state;
  fail_each(1);
}

static int set_up(void **state)
{
  (void)state;
  assert_int_equal(cudaSetDevice(0), cudaSuccess);      /* as a host does that uses CUDA itself */
  assert_int_equal(flow_cuda_table.open(1, &device), FLOW_OK);
  gpu = device->functions;
  return 0;
}

int main(void)
{
  setenv("FLOW_EMULATED_MEMORY", "8388608", 1);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_call_that_fails_is_told, set_up), cmocka_unit_test_setup(a_device_that_fails_for_good_is_told, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
