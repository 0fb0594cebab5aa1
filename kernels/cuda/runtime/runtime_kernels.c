/* runtime_kernels.c: how kernels get to the devices: images of machine code, which the plugin carries as data, or files in their place. */
#include "cuda/runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "compiled_families.h"

/* kernels.cu, compiled for each family. */
#define X(family) extern const unsigned long long flow_cuda_##family##_fatbin[];
FLOW_CUDA_IMAGES(X)
#undef X
static const struct image { const char *name; const unsigned long long *code; } images[] = {
#define X(family) { #family, flow_cuda_##family##_fatbin },
  FLOW_CUDA_IMAGES(X)
#undef X
};
enum { IMAGES = sizeof images / sizeof *images };

static cudaKernel_t kernels[CUDA_KERNEL_COUNT];         /* of all devices; written before the first is opened */
static int kernels_loaded;

const void *flow_runtime_kernel(flow_cuda_kernel kernel) { return (const void *)kernels[kernel]; }

/* Each image holds the kernels of one family: the one that knows the name has it. */
static cudaError_t find_kernel(const cudaLibrary_t *libraries, const char *name, cudaKernel_t *out)
{
  cudaError_t error = cudaErrorSymbolNotFound;
  for (int i = 0; i < IMAGES && error == cudaErrorSymbolNotFound; i++) error = cudaLibraryGetKernel(out, libraries[i], name);
  cudaGetLastError();
  return error;
}

/* CUDA loads a kernel when it is first used in a context, by default, and none while a stream is captured. Kernels may overlap if all were
 * compiled to wait for the one before them, as those are not that the driver makes of the oldest code; FLOW_CUDA_OVERLAP=0 forbids it. */
static flow_status touch_kernels(flow_cuda_device *device)
{
  enum { WAITS_SINCE = 90 };            /* see kernels.cu */
  const char *wanted = getenv("FLOW_CUDA_OVERLAP");
  struct cudaFuncAttributes found;
  device->overlaps = !wanted || strcmp(wanted, "0") != 0;
  for (int i = 0; i < CUDA_KERNEL_COUNT; i++) {
    FLOW_CUDA_TRY(device, "loading a kernel", cudaFuncGetAttributes(&found, (const void *)kernels[i]));
    device->overlaps &= found.ptxVersion >= WAITS_SINCE && found.binaryVersion >= WAITS_SINCE;
  }
  return FLOW_OK;
}

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

/* The images are loaded once for all devices, each device then loads the kernels themselves. A part that fails is tried again when the
 * next device is opened; nothing of it is used before. */
flow_status flow_runtime_load_kernels(flow_cuda_device *device)
{
  static const char *const names[CUDA_KERNEL_COUNT] = {
#define ELEMENT(name) [CUDA_##name] = #name "_kernel",
#define BLOCK(name, phases) [CUDA_##name] = #name "_kernel",
    FLOW_CUDA_KERNELS(ELEMENT, BLOCK)
#undef ELEMENT
#undef BLOCK
  };
  if (kernels_loaded) return touch_kernels(device);
  cudaLibrary_t libraries[IMAGES];
  for (int i = 0; i < IMAGES; i++) FLOW_TRY(load_image(device, &images[i], &libraries[i]));
  for (int i = 0; i < CUDA_KERNEL_COUNT; i++) FLOW_CUDA_TRY(device, names[i], find_kernel(libraries, names[i], &kernels[i]));
  kernels_loaded = 1;
  return touch_kernels(device);
}
