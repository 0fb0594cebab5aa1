/* runtime_kernels.c: how kernels get to the devices: images of machine code, which the plugin carries as data, or files in their place.
 *
 * Each is loaded when it is first launched: a step takes a few dozen of several hundred, and the images have more than 30 MB. */
#include "cuda/runtime/runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/memory.h"
#include "compiled_families.h"

/* kernels.cu, compiled for each family. */
#define X(family, list) extern const unsigned long long flow_cuda_##family##_fatbin[];
FLOW_CUDA_IMAGES(X)
#undef X
/* The kernels of each image. */
#define ELEMENT(name) CUDA_##name,
#define BLOCK(name, phases) CUDA_##name,
#define X(family, list) static const short kernels_of_##family[] = { list(ELEMENT, BLOCK) };
FLOW_CUDA_IMAGES(X)
#undef X
#undef ELEMENT
#undef BLOCK
static const struct image { const char *name; const unsigned long long *code; const short *kernels; int count; } images[] = {
#define X(family, list) \
  { #family, flow_cuda_##family##_fatbin, kernels_of_##family, (int)(sizeof kernels_of_##family / sizeof *kernels_of_##family) },
  FLOW_CUDA_IMAGES(X)
#undef X
};
enum { IMAGES = sizeof images / sizeof *images };

/* What a device has of a kernel. MAY_START_EARLY: it is loaded, and waits for the kernel before it by itself (kernels.cu). */
typedef enum presence { ABSENT, LOADED, MAY_START_EARLY } presence;

/* Of all devices; written under the lock before the kernel is said to be present on one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cudaLibrary_t libraries[IMAGES];
static cudaKernel_t kernels[CUDA_KERNEL_COUNT];
static atomic_uchar present[FLOW_CUDA_DEVICES][CUDA_KERNEL_COUNT];

/* The machine code of a family; DIR/FAMILY.fatbin, if it is there, where FLOW_CUDA_KERNELS is DIR: kernels are tried without linking
 * anew. It stays. */
static flow_status load_image(const flow_cuda_device *device, const struct image *image, cudaLibrary_t *out)
{
  const char *folder = getenv("FLOW_CUDA_KERNELS");
  char what[256] = "loading the kernels", path[4096] = "";
  const void *code = image->code;
  void *block = NULL;
  if (folder && *folder) snprintf(path, sizeof path, "%s/%s.fatbin", folder, image->name);
  FILE *file = *path ? fopen(path, "rbe") : NULL;
  if (file) {
    long bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    rewind(file);
    flow_status status = flow_alloc_zero((size_t)(bytes > 0 ? bytes : 0) + 1, &block);
    int whole = status == FLOW_OK && bytes > 0 && fread(block, 1, (size_t)bytes, file) == (size_t)bytes;
    fclose(file);
    FLOW_TRY(status);
    snprintf(what, sizeof what, "loading the kernels of %.200s", path);
    if (!whole) flow_free(block);
    if (!whole) return flow_fail(FLOW_INVALID_ARGUMENT, "gpu:%d: %s, which cannot be read", device->base.index, what);
    code = block;
  }
  cudaError_t error = cudaLibraryLoadData(out, code, NULL, NULL, 0, NULL, NULL, 0);
  if (error != cudaSuccess) flow_free(block);
  return error == cudaSuccess ? FLOW_OK : flow_runtime_fail(device, what, error);
}

static int image_of(flow_cuda_kernel kernel)
{
  for (int i = 0; i < IMAGES; i++)
    for (int k = 0; k < images[i].count; k++)
      if (images[i].kernels[k] == (short)kernel) return i;
  return 0;
}

/* The handle of a kernel, which all devices share. */
static flow_status find_kernel(const flow_cuda_device *device, flow_cuda_kernel kernel)
{
  static const char *const names[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = #name "_kernel",
#define BLOCK(name, phases) [CUDA_##name] = #name "_kernel",
    FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
  };
  const int image = image_of(kernel);
  if (kernels[kernel]) return FLOW_OK;
  if (!libraries[image]) FLOW_TRY(load_image(device, &images[image], &libraries[image]));
  FLOW_CUDA_TRY(device, names[kernel], cudaLibraryGetKernel(&kernels[kernel], libraries[image], names[kernel]));
  return FLOW_OK;
}

/* Kernels may start early if they were compiled to wait for the one before them, as those are not that the driver makes of the oldest
 * code. */
static flow_status load(const flow_cuda_device *device, flow_cuda_kernel kernel, presence *out)
{
  enum { WAITS_SINCE = 90 };            /* see kernels.cu */
  struct cudaFuncAttributes found;
  FLOW_TRY(find_kernel(device, kernel));
  FLOW_CUDA_TRY(device, "loading a kernel", cudaFuncGetAttributes(&found, (const void *)kernels[kernel]));
  *out = found.ptxVersion >= WAITS_SINCE && found.binaryVersion >= WAITS_SINCE ? MAY_START_EARLY : LOADED;
  return FLOW_OK;
}

/* A thread that records must not load kernels, unless it says that it knows what it does: the relaxed mode, as of plan_stage.c. A kernel
 * that could not be loaded is tried again at its next launch. */
flow_status flow_runtime_kernel(const flow_cuda_device *device, flow_cuda_kernel kernel, flow_cuda_function *out)
{
  atomic_uchar *here = &present[device->base.index][kernel];
  int found = atomic_load_explicit(here, memory_order_acquire);
  if (found == ABSENT) {
    presence made = ABSENT;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    pthread_mutex_lock(&lock);
    cudaThreadExchangeStreamCaptureMode(&mode);
    flow_status status = load(device, kernel, &made);
    cudaThreadExchangeStreamCaptureMode(&mode);
    atomic_store_explicit(here, (unsigned char)made, memory_order_release);
    pthread_mutex_unlock(&lock);
    FLOW_TRY(status);
    found = made;
  }
  *out = (flow_cuda_function){ .function = (const void *)kernels[kernel], .early = found == MAY_START_EARLY };
  return FLOW_OK;
}
