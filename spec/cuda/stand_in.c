/* stand_in.c: what a libcuda.so.1 says for which every module loads and every function exists, though there is no device: enough for cuDNN
 * to compile plans for a device that is described to it. make_stand_in adds all other functions of the driver, which do nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int cuInit(unsigned flags) { (void)flags; return 34; }      /* CUDA_ERROR_STUB_LIBRARY: the CUDA runtime inside cuDNN goes no further */
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuGetExportTable(const void **table) { *table = 0; return 500; }      /* CUDA_ERROR_NOT_FOUND; asked for where the version is too old */
int cuDeviceGetCount(int *count) { *count = 0; return 100; }
int cuLibraryLoadData(void **library) { *library = (void *)0x1000; return 0; }
int cuLibraryGetKernel(void **kernel) { *kernel = (void *)0x2000; return 0; }
int cuLibraryGetModule(void **module) { *module = (void *)0x3000; return 0; }
int cuKernelGetFunction(void **function) { *function = (void *)0x4000; return 0; }
int cuModuleLoadData(void **module) { *module = (void *)0x3000; return 0; }
int cuModuleLoadDataEx(void **module) { *module = (void *)0x3000; return 0; }
int cuModuleGetFunction(void **function) { *function = (void *)0x4000; return 0; }
int cuFuncGetAttribute(int *value, int attribute) { *value = attribute ? 0 : 1024; return 0; }      /* 0: threads of a block */
int cuKernelGetAttribute(int *value, int attribute) { *value = attribute ? 0 : 1024; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count) { *count = 1; return 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count) { *count = 1; return 0; }
int cuOccupancyMaxActiveClusters(int *count) { *count = 66; return 0; }
int cuGetErrorString(int error, const char **text) { (void)error; *text = "no device: a stand-in"; return 0; }
int cuGetErrorName(int error, const char **text) { (void)error; *text = "STAND_IN"; return 0; }

int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
  char versioned[256];
  (void)version, (void)flags;
  void *self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  snprintf(versioned, sizeof versioned, "%s_v2", name);
  *function = self ? dlsym(self, versioned) : NULL;
  if (!*function && self) *function = dlsym(self, name);
  return *function ? 0 : 500;      /* CUDA_ERROR_NOT_FOUND */
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status)
{
  int result = cuGetProcAddress(name, function, version, flags);
  if (status) *status = result ? 1 : 0;
  return result;
}
