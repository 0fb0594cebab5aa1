/* test_cuda_runtime.c: the emulated CUDA runtime and NCCL (spec/cuda/emulation/emulation.h) refuse what NVIDIA's documentation refuses,
 * as far as the back end relies on it: so what passes on emulated devices keeps to the documentation there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include "cuda/ops/movement/constant.h"
#include "cuda/device/view_make.h"

enum { COUNT = 1000, BYTES = COUNT * 4 };

static cudaStream_t first, second, there;        /* there: on the second device */
static cudaEvent_t event, event_there;
static cudaMemPool_t pool;                       /* of the first */
static char *memory, *pinned;

#define is(expected, call) assert_int_equal(call, expected)
#define good(call) is(cudaSuccess, call)
#define says(part) if (!strstr(cudaGetErrorString(cudaErrorUnknown), part)) fail_msg("%s", cudaGetErrorString(cudaErrorUnknown))

static void choose(int device) { good(cudaSetDevice(device)); }

static int set_up(void **state)
{
  struct cudaMemPoolProps properties = { .allocType = cudaMemAllocationTypePinned, .location = { .type = cudaMemLocationTypeDevice } };
  (void)state;
  choose(1);
  good(cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking));
  good(cudaEventCreateWithFlags(&event_there, cudaEventDisableTiming));
  choose(0);
  good(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  good(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  good(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  if (!pool) good(cudaMemPoolCreate(&pool, &properties));
  good(cudaMallocFromPoolAsync((void **)&memory, BYTES, pool, first));
  good(cudaStreamSynchronize(first));
  good(cudaHostAlloc((void **)&pinned, BYTES, cudaHostAllocPortable));
  memset(pinned, 1, BYTES);
  cudaGetLastError();
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  choose(0);
  cudaStreamSynchronize(first);
  cudaStreamSynchronize(second);
  cudaStreamSynchronize(there);
  good(cudaFreeAsync(memory, first));
  good(cudaStreamSynchronize(first));
  good(cudaFreeHost(pinned));
  good(cudaEventDestroy(event));
  good(cudaEventDestroy(event_there));
  good(cudaStreamDestroy(first));
  good(cudaStreamDestroy(second));
  good(cudaStreamDestroy(there));
  return 0;
}

static void clear(cudaStream_t stream) { good(cudaMemsetAsync(memory, 0, BYTES, stream)); }

/* ---- devices and errors ---------------------------------------------------------------------------------------------------------- */

static void an_error_is_kept_until_it_is_taken(void **state)
{
  (void)state;
  is(cudaErrorInvalidDevice, cudaSetDevice(7));
  good(cudaStreamSynchronize(first));
  is(cudaErrorInvalidDevice, cudaGetLastError());
  is(cudaSuccess, cudaGetLastError());
}

static void what_is_enqueued_wants_its_device(void **state)
{
  (void)state;
  void *more;
  choose(1);
  is(cudaErrorInvalidResourceHandle, cudaMemsetAsync(memory, 0, BYTES, first));
  is(cudaErrorInvalidResourceHandle, cudaMallocFromPoolAsync(&more, BYTES, pool, first));
  is(cudaErrorInvalidResourceHandle, cudaFreeAsync(memory, first));
  is(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(first));      /* told who waits, too */
  good(cudaMemcpyAsync(memory, pinned, BYTES, cudaMemcpyHostToDevice, first));
  good(cudaStreamSynchronize(first));
  is(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(NULL));
}

static void events_are_recorded_on_their_device_and_waited_for_on_any(void **state)
{
  (void)state;
  is(cudaErrorInvalidResourceHandle, cudaEventRecord(event_there, first));
  good(cudaEventSynchronize(event));                 /* that was never recorded */
  clear(first);
  good(cudaEventRecord(event, first));
  good(cudaStreamWaitEvent(there, event, 0));
  good(cudaEventSynchronize(event));
}

static void streams_are_ready_some_time(void **state)
{
  (void)state;
  clear(first);
  cudaError_t found;
  while ((found = cudaStreamQuery(first)) == cudaErrorNotReady) is(cudaErrorNotReady, cudaGetLastError());      /* one like others */
  good(found);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------------- */

static void pinned_memory_is_read_when_the_copy_is_carried_out(void **state)
{
  (void)state;
  char values[BYTES] = { 7 };
  good(cudaMemcpyAsync(memory, values, BYTES, cudaMemcpyHostToDevice, first));
  values[0] = 8;                                     /* pageable memory is read at once */
  good(cudaMemcpyAsync(values, memory, BYTES, cudaMemcpyDeviceToHost, first));
  assert_int_equal(values[0], 7);                    /* and was waited for */
  good(cudaMemcpyAsync(memory, pinned, BYTES, cudaMemcpyHostToDevice, first));
  pinned[5] = 9;
  is(cudaErrorUnknown, cudaStreamSynchronize(first));
  says("the host writes to pinned memory that an upload still has to read");
  good(cudaStreamSynchronize(first));
}

static void memory_in_use_is_not_freed(void **state)
{
  (void)state;
  void *block, *host;
  good(cudaMalloc(&block, BYTES));
  good(cudaHostAlloc(&host, BYTES, cudaHostAllocPortable));
  good(cudaMemcpyAsync(block, host, BYTES, cudaMemcpyHostToDevice, first));
  is(cudaErrorUnknown, cudaFreeHost(host));
  says("pinned memory is freed that a copy on queue");
  is(cudaErrorUnknown, cudaFree(block));
  says("memory is freed that an upload on queue");
  good(cudaStreamSynchronize(first));
  good(cudaFreeHost(host));
  good(cudaFree(block));
  is(cudaErrorInvalidValue, cudaFree(block));
  is(cudaErrorInvalidValue, cudaFreeHost(host));
  is(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&block, 0, pool, first));
}

static void a_pool_is_its_devices_until_it_is_opened(void **state)
{
  (void)state;
  struct cudaMemAccessDesc peer = { .location = { .type = cudaMemLocationTypeDevice, .id = 1 }, .flags = cudaMemAccessFlagsProtReadWrite };
  int reaches;
  char *elsewhere;
  choose(1);
  good(cudaMalloc((void **)&elsewhere, BYTES));
  is(cudaErrorUnknown, cudaMemsetAsync(memory, 0, BYTES, there));
  says("a clear on gpu:1 writes memory of gpu:0, which is not open to it");
  good(cudaMemcpyAsync(elsewhere, memory, BYTES, cudaMemcpyDefault, there));      /* which goes through the host */
  good(cudaDeviceCanAccessPeer(&reaches, 1, 0));
  assert_true(reaches);
  good(cudaMemPoolSetAccess(pool, &peer, 1));
  good(cudaMemsetAsync(memory, 0, BYTES, there));
  good(cudaStreamSynchronize(there));
  good(cudaFree(elsewhere));
  peer.flags = cudaMemAccessFlagsProtNone;
  good(cudaMemPoolSetAccess(pool, &peer, 1));
}

static void a_pool_keeps_what_is_freed_until_it_is_trimmed(void **state)
{
  (void)state;
  void *block;
  uint64_t used, kept, after;
  good(cudaMallocFromPoolAsync(&block, 10 * BYTES, pool, first));
  good(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  good(cudaFreeAsync(block, first));
  good(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &after));
  good(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &kept));
  assert_true(after < used && kept >= used);
  good(cudaMemPoolTrimTo(pool, 0));
  good(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &after));
  assert_int_equal(after, kept);                     /* nobody has waited */
  good(cudaStreamSynchronize(first));
  good(cudaMemPoolTrimTo(pool, 0));
  good(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &after));
  assert_true(after < kept);
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------------------ */

extern const unsigned long long flow_cuda_families_fatbin[], flow_cuda_libraries_fatbin[];

static cudaError_t find(const void *image, const char *name, cudaKernel_t *kernel)
{
  cudaLibrary_t library;
  good(cudaLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
  return cudaLibraryGetKernel(kernel, library, name);
}

static cudaError_t launch(cudaKernel_t kernel, unsigned grid, unsigned block, void **parameters, cudaStream_t stream)
{
  const cudaLaunchConfig_t how = { .gridDim = { grid, 1, 1 }, .blockDim = { block, 1, 1 }, .stream = stream };
  return cudaLaunchKernelExC(&how, kernel, parameters);
}

static void kernels_have_names_and_run_as_they_are_launched(void **state)
{
  (void)state;
  cudaKernel_t kernel;
  cudaLibrary_t library;
  float found[COUNT];
  const int64_t shape[] = { COUNT }, strides[] = { 1 };
  const view y = flow_cuda_view_strided(memory, FLOW_FLOAT32, 1, shape, strides);
  const fill_arguments a = { .y = y, .bytes = 4, .value = 0x40400000 };      /* 3 */
  int64_t count = COUNT;
  void *parameters[2] = { (void *)(uintptr_t)&a, &count };
  is(cudaErrorInvalidKernelImage, cudaLibraryLoadData(&library, "what", NULL, NULL, 0, NULL, NULL, 0));
  is(cudaErrorSymbolNotFound, find(flow_cuda_families_fatbin, "fill", &kernel));
  is(cudaErrorSymbolNotFound, find(flow_cuda_libraries_fatbin, "fill_kernel", &kernel));
  good(find(flow_cuda_families_fatbin, "fill_kernel", &kernel));
  is(cudaErrorInvalidConfiguration, launch(kernel, 0, 256, parameters, first));
  is(cudaErrorInvalidConfiguration, launch(kernel, 1, 512, parameters, first));
  is(cudaErrorInvalidResourceHandle, launch(kernel, 1, 256, parameters, there));
  good(launch(kernel, 2, 256, parameters, first)); /* each block takes two turns */
  good(cudaMemcpyAsync(found, memory, BYTES, cudaMemcpyDeviceToHost, first));
  for (int i = 0; i < COUNT; i++) assert_float_equal(found[i], 3, 0);
  clear(first);
  good(launch(kernel, 4, 128, parameters, first)); /* half of the threads are missing */
  good(cudaMemcpyAsync(found, memory, BYTES, cudaMemcpyDeviceToHost, first));
  for (int i = 0; i < COUNT; i++) assert_float_equal(found[i], (i % 256 < 128 ? 3 : 0), 0);
}

/* ---- captures ----------------------------------------------------------------------------------------------------------------------- */

static void begin(void) { good(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal)); }

static void is_lost(void)
{
  cudaGraph_t graph;
  is(cudaErrorStreamCaptureInvalidated, cudaMemsetAsync(memory, 0, BYTES, first));
  is(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(first, &graph));
  assert_null(graph);
  clear(first);                                      /* the stream works on */
  good(cudaStreamSynchronize(first));
}

static void what_is_not_safe_ends_a_capture(void **state)
{
  (void)state;
  enum { KINDS = 10 };
  void *block;
  good(cudaEventRecord(event_there, there));
  for (int kind = 0; kind < KINDS; kind++) {
    begin();
    clear(first);
    switch (kind) {
      case 0:  is(cudaErrorStreamCaptureUnsupported, cudaMalloc(&block, 1)); break;
      case 1:  is(cudaErrorStreamCaptureUnsupported, cudaFree(memory)); break;
      case 2:  is(cudaErrorStreamCaptureUnsupported, cudaHostAlloc(&block, 1, cudaHostAllocPortable)); break;
      case 3:  is(cudaErrorStreamCaptureUnsupported, cudaFreeHost(pinned)); break;
      case 4:  is(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(first)); break;
      case 5:  is(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(first)); break;
      case 6:  is(cudaErrorStreamCaptureUnsupported, cudaEventSynchronize(event_there)); break;
      case 7:  is(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal)); break;
      case 8:  is(cudaErrorInvalidValue, cudaFreeAsync(memory, first)); break;       /* which the graph did not allocate */
      case 9:  is(cudaErrorStreamCaptureUnsupported, cudaMemcpyAsync(memory, pinned, 1, cudaMemcpyHostToDevice, first)); break;
    }
    if (kind == 8) {                                 /* told who waits, too */
      cudaGraph_t graph;
      is(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(first, &graph));
      is(cudaErrorInvalidValue, cudaStreamSynchronize(first));
      continue;
    }
    is_lost();
  }
}

/* fill_kernel, which may start before what is before it on the stream ends. */
static cudaError_t launch_early(cudaKernel_t kernel, cudaStream_t stream)
{
  static fill_arguments none;
  static int64_t count;
  void *parameters[2] = { &none, &count };
  cudaLaunchAttribute early = { .id = cudaLaunchAttributeProgrammaticStreamSerialization };
  early.val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t how = { .gridDim = { 1, 1, 1 }, .blockDim = { 256, 1, 1 }, .stream = stream, .attrs = &early, .numAttrs = 1 };
  return cudaLaunchKernelExC(&how, kernel, parameters);
}

static void kernels_start_early_after_kernels_that_are_captured_and_nothing_else(void **state)
{
  (void)state;
  cudaGraph_t graph;
  cudaKernel_t kernel;
  fill_arguments none = { .bytes = 4 };
  int64_t count = 0;
  void *parameters[2] = { &none, &count };
  good(find(flow_cuda_families_fatbin, "fill_kernel", &kernel));
  good(launch(kernel, 1, 256, parameters, first));
  is(cudaErrorUnknown, launch_early(kernel, first)); /* not captured */
  begin();
  is(cudaErrorUnknown, launch_early(kernel, first)); /* nothing is before it */
  clear(first);
  is(cudaErrorUnknown, launch_early(kernel, first));
  good(launch(kernel, 1, 256, parameters, first));
  good(launch_early(kernel, first));
  good(launch_early(kernel, first));
  good(cudaEventRecord(event, first));
  good(cudaStreamWaitEvent(second, event, 0));
  good(launch(kernel, 1, 256, parameters, second));
  good(launch(kernel, 1, 256, parameters, first));
  good(cudaEventRecord(event, second));
  good(cudaStreamWaitEvent(first, event, 0));
  is(cudaErrorUnknown, launch_early(kernel, first)); /* after two */
  good(cudaStreamEndCapture(first, &graph));
  good(cudaGraphDestroy(graph));
}

static void *allocate_beside(void *argument)
{
  cudaGraph_t graph;
  void *block;
  *(cudaError_t *)argument = cudaMalloc(&block, 1) == cudaSuccess ? cudaStreamEndCapture(first, &graph) : cudaErrorUnknown;
  return NULL;
}

static void other_threads_are_not_minded_but_cannot_end_it(void **state)
{
  (void)state;
  pthread_t thread;
  cudaError_t found = cudaErrorUnknown;
  begin();
  assert_int_equal(pthread_create(&thread, NULL, allocate_beside, &found), 0);
  pthread_join(thread, NULL);
  is(cudaErrorStreamCaptureWrongThread, found);
  is_lost();
}

static void events_do_not_lead_out_of_a_capture_or_into_it(void **state)
{
  (void)state;
  cudaGraph_t graph;
  begin();
  good(cudaEventRecord(event, first));
  is(cudaErrorCapturedEvent, cudaEventSynchronize(event));
  is_lost();
  begin();
  good(cudaEventRecord(event_there, there));
  is(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(first, event_there, 0));
  is_lost();
  begin();
  good(cudaEventRecord(event, first));
  good(cudaStreamEndCapture(first, &graph));
  good(cudaGraphDestroy(graph));
  is(cudaErrorCapturedEvent, cudaStreamWaitEvent(second, event, 0));
  begin();
  good(cudaStreamBeginCapture(second, cudaStreamCaptureModeThreadLocal));
  good(cudaEventRecord(event, first));
  is(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(second, event, 0));
  is(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(second, &graph));
  is_lost();
}

static void forks_are_joined(void **state)
{
  (void)state;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  size_t nodes;
  begin();
  clear(first);
  good(cudaEventRecord(event, first));
  good(cudaStreamWaitEvent(second, event, 0));
  clear(second);
  is(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(second, &graph));
  is(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(first, &graph));
  begin();
  good(cudaEventRecord(event, first));
  good(cudaStreamWaitEvent(second, event, 0));
  clear(second);
  is(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(first, &graph));
  assert_null(graph);
  is(cudaErrorInvalidValue, cudaStreamEndCapture(second, &graph));
  begin();
  good(cudaEventRecord(event, first));
  good(cudaStreamWaitEvent(second, event, 0));
  clear(second);
  good(cudaEventRecord(event, second));
  good(cudaStreamWaitEvent(first, event, 0));
  clear(first);
  good(cudaStreamEndCapture(first, &graph));
  good(cudaGraphGetNodes(graph, NULL, &nodes));
  assert_int_equal(nodes, 2);
  good(cudaGraphInstantiate(&exec, graph, 0));
  good(cudaGraphDestroy(graph));
  choose(1);
  is(cudaErrorInvalidResourceHandle, cudaGraphLaunch(exec, first));
  choose(0);
  good(cudaGraphLaunch(exec, first));
  good(cudaGraphLaunch(exec, second));               /* each comes after the one before */
  is(cudaErrorUnknown, cudaMemsetAsync(memory, 0, BYTES, first));
  says("hazard: a clear");
  good(cudaGraphExecDestroy(exec));                  /* what was launched is carried out */
}

/* ---- NCCL --------------------------------------------------------------------------------------------------------------------------- */

static ncclComm_t comms[2];

static ncclResult_t state_of(ncclComm_t comm)
{
  ncclResult_t state;
  is(ncclSuccess, ncclCommGetAsyncError(comm, &state));
  return state;
}

static void open_comms(void)
{
  ncclUniqueId id;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  is(ncclSuccess, ncclGetUniqueId(&id));
  is(ncclInProgress, ncclCommInitRankConfig(&comms[0], 2, id, 0, &config));
  is(ncclInProgress, state_of(comms[0]));            /* the other one is not there */
  choose(1);
  is(ncclInProgress, ncclCommInitRankConfig(&comms[1], 2, id, 1, &config));
  choose(0);
  for (int r = 0; r < 2; r++) is(ncclSuccess, state_of(comms[r]));
}

static ncclResult_t sum(int rank, void *data, size_t count, cudaStream_t stream)
{
  choose(rank);
  ncclResult_t code = ncclAllReduce(data, data, count, ncclFloat32, ncclSum, comms[rank], stream);
  choose(0);
  if (code == ncclInProgress) code = state_of(comms[rank]);
  return code;
}

static void calls_of_nccl_are_checked(void **state)
{
  (void)state;
  ncclUniqueId id;
  ncclConfig_t config = { 0 };
  char *elsewhere;
  is(ncclSuccess, ncclGetUniqueId(&id));
  is(ncclInvalidArgument, ncclCommInitRankConfig(&comms[0], 2, id, 0, &config));
  open_comms();
  choose(1);
  good(cudaMalloc((void **)&elsewhere, BYTES));
  choose(0);
  is(ncclInvalidUsage, sum(0, memory, COUNT, there));            /* a stream of the other device */
  is(ncclInvalidUsage, sum(1, elsewhere, COUNT, first));
  is(ncclUnhandledCudaError, sum(0, memory, COUNT, first));      /* the other rank does not reach the pool */
  if (!strstr(ncclGetLastError(NULL), "which is not open to it")) fail_msg("%s", ncclGetLastError(NULL));
  struct cudaMemAccessDesc peer = { .location = { .type = cudaMemLocationTypeDevice, .id = 1 }, .flags = cudaMemAccessFlagsProtReadWrite };
  good(cudaMemPoolSetAccess(pool, &peer, 1));
  is(cudaErrorInvalidDevice, cudaSetDevice(9));
  is(ncclUnhandledCudaError, sum(0, memory, COUNT, first));      /* an error that nobody took */
  cudaGetLastError();
  is(ncclSuccess, sum(0, memory, COUNT, first));
  is(ncclSuccess, sum(1, elsewhere, COUNT - 1, there));          /* not what the other one calls */
  good(cudaStreamSynchronize(first));
  good(cudaStreamSynchronize(there));
  is(ncclInvalidUsage, state_of(comms[0]));
  is(ncclInvalidUsage, sum(1, elsewhere, COUNT, there));
  for (int r = 0; r < 2; r++) is(ncclSuccess, ncclCommAbort(comms[r]));
  peer.flags = cudaMemAccessFlagsProtNone;
  good(cudaMemPoolSetAccess(pool, &peer, 1));
  good(cudaFree(elsewhere));
}

#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
  const struct CMUnitTest tests[] = {
    test(an_error_is_kept_until_it_is_taken),
    test(what_is_enqueued_wants_its_device),
    test(events_are_recorded_on_their_device_and_waited_for_on_any),
    test(streams_are_ready_some_time),
    test(pinned_memory_is_read_when_the_copy_is_carried_out),
    test(memory_in_use_is_not_freed),
    test(a_pool_is_its_devices_until_it_is_opened),
    test(a_pool_keeps_what_is_freed_until_it_is_trimmed),
    test(kernels_have_names_and_run_as_they_are_launched),
    test(what_is_not_safe_ends_a_capture),
    test(kernels_start_early_after_kernels_that_are_captured_and_nothing_else),
    test(other_threads_are_not_minded_but_cannot_end_it),
    test(events_do_not_lead_out_of_a_capture_or_into_it),
    test(forks_are_joined),
    test(calls_of_nccl_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
