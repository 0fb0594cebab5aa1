/* devices.c: the emulated CUDA runtime: which devices there are, each thread's current one, and errors. */
#include "cuda/emulation/emulation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int current;
static _Thread_local cudaError_t last;
static _Thread_local char refusal[EMULATED_TEXT];

void emulated_lock(void) { pthread_mutex_lock(&lock); }
void emulated_unlock(void) { pthread_mutex_unlock(&lock); }
int emulated_device(void) { return current; }
const char *emulated_refusal(void) { return refusal; }
cudaError_t emulated_last_error(void) { return last; }

cudaError_t emulated_leave(cudaError_t error)
{
  pthread_mutex_unlock(&lock);
  if (error != cudaSuccess) last = error;
  return error;
}

cudaError_t emulated_refuse(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(refusal, sizeof refusal, format, arguments);
  va_end(arguments);
  return cudaErrorUnknown;
}

cudaError_t cudaGetLastError(void)
{
  cudaError_t error = last;
  last = error == cudaErrorIllegalAddress ? error : cudaSuccess;      /* one that ended a context stays */
  return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
  switch (error) {
    case cudaSuccess:                       return "no error";
    case cudaErrorInvalidValue:             return "invalid argument";
    case cudaErrorMemoryAllocation:         return "out of memory";
    case cudaErrorInvalidConfiguration:     return "invalid configuration argument";
    case cudaErrorNoDevice:                 return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:            return "invalid device ordinal";
    case cudaErrorInvalidKernelImage:       return "device kernel image is invalid";
    case cudaErrorInvalidResourceHandle:    return "invalid resource handle";
    case cudaErrorSymbolNotFound:           return "named symbol not found";
    case cudaErrorIllegalAddress:           return "an illegal memory access was encountered";
    case cudaErrorNotReady:                 return "device not ready";
    case cudaErrorNotSupported:             return "operation not supported";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureMerge:       return "operation would result in a merge of separate capture sequences";
    case cudaErrorStreamCaptureUnmatched:   return "capture was not ended in the same stream as it began";
    case cudaErrorStreamCaptureUnjoined:    return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:   return "dependency created on uncaptured work in another stream";
    case cudaErrorCapturedEvent:            return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorStreamCaptureWrongThread: return "attempt to terminate a thread-local capture sequence from another thread";
    case cudaErrorUnknown:                  return *refusal ? refusal : "unknown error";
    default:                                return "unrecognized error code";
  }
}

/* ---- devices ----------------------------------------------------------------------------------------------------------------- */

static double setting(const char *name, double otherwise, double most)
{
  const char *text = getenv(name);
  double value = text && *text ? strtod(text, NULL) : otherwise;
  return value >= 0 && value <= most ? value : otherwise;
}

static int count, is_shared, only;
static size_t bytes;

static void look(void)
{
  count = (int)setting("FLOW_EMULATED_GPUS", 2, EMULATED_DEVICES);
  bytes = (size_t)setting("FLOW_EMULATED_MEMORY", 0x1p30, 0x1p40) / 65536 * 65536;
  is_shared = getenv("FLOW_EMULATED_SHARED") != NULL;
  only = (int)setting("FLOW_EMULATED_ONLY", -1, EMULATED_DEVICES);
  emulated_seed((uint64_t)setting("FLOW_EMULATED_SEED", 1, 0x1p53));
}

int emulated_device_count(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look);
  return count;
}

uint64_t emulated_bus(int device) { return (is_shared ? 0 : (uint64_t)getpid() << 8) + (uint64_t)device; }

static cudaError_t check_device(int device)
{
  return device >= 0 && device < emulated_device_count() ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceCount(int *out)
{
  emulated_lock();
  *out = emulated_device_count();
  return emulated_leave(*out > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
  emulated_lock();
  *device = current;
  return emulated_leave(check_device(current));
}

static struct context { int made; cudaError_t ended; } contexts[EMULATED_DEVICES];

cudaError_t emulated_context(int device)
{
  EMULATED_TRY(check_device(device));
  if (only >= 0 && only != device) return emulated_refuse("a context is made on gpu:%d, though nobody uses it", device);
  EMULATED_TRY(emulated_memory_start(device));
  contexts[device].made = 1;
  return contexts[device].ended;
}

void emulated_end_context(int device, cudaError_t error) { contexts[device].ended = error; }

cudaError_t emulated_begin(void)
{
  emulated_lock();
  cudaError_t error = emulated_context(current);
  return error == cudaSuccess ? error : emulated_leave(error);
}

static int context_state(int device, unsigned *flags, int *active)
{
  emulated_lock();
  *flags = 0;
  *active = check_device(device) == cudaSuccess && contexts[device].made;
  emulated_unlock();
  return 0;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
  int found = strcmp(name, "cuDevicePrimaryCtxGetState") == 0 && version >= 7000 && flags == cudaEnableDefault;
  *function = NULL;
  if (found) *(int (**)(int, unsigned *, int *))function = context_state;
  *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

/* As with CUDA the device's context begins here. */
cudaError_t cudaSetDevice(int device)
{
  emulated_lock();
  cudaError_t error = emulated_context(device);
  if (error == cudaSuccess) current = device;
  return emulated_leave(error);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
  emulated_lock();
  cudaError_t error = check_device(device);
  if (error == cudaSuccess) {
    *properties = (struct cudaDeviceProp){ .totalGlobalMem = bytes, .major = 9, .minor = 0, .multiProcessorCount = 4 };
    snprintf(properties->name, sizeof properties->name, "a GPU that the CPU emulates, for tests");
  }
  return emulated_leave(error);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device)
{
  emulated_lock();
  cudaError_t error = check_device(device);
  unsigned long long domain = emulated_bus(device) >> 8;
  if (error == cudaSuccess) snprintf(text, (size_t)size, "%08llx:%02x:00.0", domain, (unsigned)device);
  return emulated_leave(error);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
  emulated_lock();
  cudaError_t error = check_device(device);
  if (error == cudaSuccess) error = check_device(peer);
  *can = error == cudaSuccess && device != peer;
  return emulated_leave(error);
}

cudaError_t cudaDriverGetVersion(int *version)
{
  *version = CUDART_VERSION;
  return cudaSuccess;
}
