/* test_cuda_contexts.c: the emulated CUDA runtime makes and loses contexts, and loads kernels, as NVIDIA's does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>
#include "compiled_families.h"
#include "cuda/emulation/emulation.h"
#include "cuda/ops/step/bundle.h"
#include "cuda/runtime/runtime.h"

#define X(image, list) extern const unsigned long long flow_cuda_##image##_fatbin[];
FLOW_CUDA_IMAGES(X)
#undef X

#define is(expected, call) assert_int_equal(call, expected)
#define good(call) is(cudaSuccess, call)

typedef int context_state_function(int device, unsigned *flags, int *active);

static int has_context(int device)
{
  context_state_function *state = NULL;
  enum cudaDriverEntryPointQueryResult result;
  unsigned flags;
  int active = -1;
  good(cudaGetDriverEntryPointByVersion("cuWhatever", (void **)(void *)&state, 13000, cudaEnableDefault, &result));
  is(cudaDriverEntryPointSymbolNotFound, result);
  good(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", (void **)(void *)&state, 13000, cudaEnableDefault, &result));
  is(cudaDriverEntryPointSuccess, result);
  assert_int_equal(state(device, &flags, &active), 0);
  return active;
}

/* On a thread that has chosen none, the first device is current, and nearly every call makes its context. */
static const char *make_contexts(void)
{
  int device = -1;
  cudaEvent_t event;
  if (has_context(0)) return "gpu:0 has one already";
  if (cudaGetDeviceCount(&device) != cudaSuccess || cudaGetDevice(&device) != cudaSuccess || device != 0) return "it is not current";
  if (has_context(0)) return "a question makes one";
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess || !has_context(0)) return "an event makes none";
  if (has_context(1)) return "gpu:1 has one";
  return cudaSetDevice(1) == cudaSuccess && has_context(1) ? NULL : "to choose a device makes none";
}

/* In a new process, which has none yet. */
static void in_a_child(const char *(*what)(void))
{
  int status;
  pid_t child = fork();
  if (child == 0) {
    const char *wrong = what();
    if (wrong) print_error("%s\n", wrong);
    _exit(wrong != NULL);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void contexts_are_made_by_use(void **state)
{
  (void)state;
  in_a_child(make_contexts);
}

static void a_kernel_is_not_loaded_while_its_thread_captures(void **state)
{
  (void)state;
  cudaStream_t stream;
  cudaLibrary_t library;
  cudaKernel_t kernel;
  struct cudaFuncAttributes attributes;
  bundle_arguments none = { 0 };
  int64_t count = 0;
  void *parameters[2] = { &none, &count };
  good(cudaSetDevice(0));
  good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const cudaLaunchConfig_t how = { .gridDim = { 1, 1, 1 }, .blockDim = { 256, 1, 1 }, .stream = stream };
  good(cudaLibraryLoadData(&library, flow_cuda_families_fatbin, NULL, NULL, 0, NULL, NULL, 0));
  good(cudaLibraryGetKernel(&kernel, library, "bundle_kernel"));
  good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  is(cudaErrorStreamCaptureUnsupported, cudaLaunchKernelExC(&how, kernel, parameters));
  cudaGraph_t graph;
  is(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  good(cudaThreadExchangeStreamCaptureMode(&mode));      /* a thread that knows what it does */
  assert_int_equal(mode, cudaStreamCaptureModeGlobal);
  good(cudaFuncGetAttributes(&attributes, kernel));
  assert_int_equal(attributes.maxThreadsPerBlock, BLOCK_THREADS);
  good(cudaThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, cudaStreamCaptureModeRelaxed);
  good(cudaStreamEndCapture(stream, &graph));
  good(cudaGraphDestroy(graph));
  good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  good(cudaLaunchKernelExC(&how, kernel, parameters));
  good(cudaStreamEndCapture(stream, &graph));
  good(cudaGraphDestroy(graph));
}

static const char *lose_a_device(void)
{
  cudaStream_t here, there;
  if (cudaSetDevice(1) != cudaSuccess || cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking) != cudaSuccess) return "gpu:1";
  if (cudaSetDevice(0) != cudaSuccess || cudaStreamCreateWithFlags(&here, cudaStreamNonBlocking) != cudaSuccess) return "gpu:0";
  emulated_end_context(1, cudaErrorIllegalAddress);
  if (cudaStreamSynchronize(here) != cudaSuccess || cudaGetLastError() != cudaSuccess) return "gpu:0 is lost, too";
  if (cudaSetDevice(1) != cudaErrorIllegalAddress) return "nobody is told";
  for (int i = 0; i < 2; i++)
    if (cudaGetLastError() != cudaErrorIllegalAddress) return "it is told once alone";
  return NULL;
}

static void what_ends_a_context_stays(void **state)
{
  (void)state;
  in_a_child(lose_a_device);
}

/* Who is told that a GPU is lost is told what to do; other failures go on. */
static const char *use_a_lost_device(void)
{
  const flow_accelerator *lost, *kept;
  flow_queue *queue, *other;
  void *memory;
  if (flow_cuda_table.open(1, &lost) != FLOW_OK || lost->functions->queue_new(lost, &queue) != FLOW_OK) return "gpu:1";
  if (flow_cuda_table.open(0, &kept) != FLOW_OK || kept->functions->queue_new(kept, &other) != FLOW_OK) return "gpu:0";
  emulated_end_context(1, cudaErrorIllegalAddress);
  for (int i = 0; i < 2; i++) {
    if (lost->functions->synchronize(queue) != FLOW_INTERNAL) return "nobody is told";
    if (!strstr(flow_last_error(), "an illegal memory access was encountered (700); this process cannot use the GPU again: start a new"))
      return "nobody is told what to do";
  }
  if (kept->functions->allocate(other, 100, &memory) != FLOW_OK || kept->functions->synchronize(other) != FLOW_OK)
    return "gpu:0 is lost, too";
  return NULL;
}

static void a_lost_device_is_told_with_what_to_do(void **state)
{
  (void)state;
  in_a_child(use_a_lost_device);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(contexts_are_made_by_use), cmocka_unit_test(what_ends_a_context_stays),
    cmocka_unit_test(a_lost_device_is_told_with_what_to_do),
    cmocka_unit_test(a_kernel_is_not_loaded_while_its_thread_captures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
