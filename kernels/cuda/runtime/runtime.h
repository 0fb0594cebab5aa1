/* runtime.h: what the files of the CUDA runtime share: runtime_cuda.c (devices, queues, launches),
 * runtime_kernels.c (images), runtime_memory.c (memory and copies), runtime_recording.c (CUDA graphs).
 *
 * A queue is a stream with memory from a pool of the device's own, so that allocation and release are events on the stream like any
 * other. What kernels find wrong goes to a block of the device's memory, where effects look at it, and which is copied to the host
 * before it waits, once there were ops that may find something. */
#ifndef FLOW_CUDA_RUNTIME_RUNTIME_H
#define FLOW_CUDA_RUNTIME_RUNTIME_H

#include <cuda_runtime_api.h>
#include "cuda/runtime/bundling.h"
#include "cuda/runtime/device_table.h"
#include "cuda/runtime/launch.h"

enum { FLOW_CUDA_DEVICES = 64, FLOW_CUDA_STAGES = 16, FLOW_CUDA_RECORDED_QUEUES = 64 };

typedef struct flow_cuda_device {
  flow_accelerator base;
  flow_traffic     traffic;
  int              opened, multiprocessors;
  int              overlaps;               /* kernels may be started early: FLOW_CUDA_OVERLAP=0 forbids it */
  cudaMemPool_t    pool;
} flow_cuda_device;

/* Pinned memory of the host, used round and round; each stage is free again when its copy is over. */
typedef struct flow_cuda_staging {
  char       *memory;
  size_t      stage_bytes;
  cudaEvent_t over[FLOW_CUDA_STAGES];
  int         next;
} flow_cuda_staging;

typedef struct flow_cuda_capture {
  flow_queue *queues[FLOW_CUDA_RECORDED_QUEUES];    /* the first began it */
  int         count, broken;
} flow_cuda_capture;

struct flow_queue {
  flow_cuda_device  *device;
  cudaStream_t       stream;
  cudaEvent_t        event;                          /* for those who follow */
  flow_device_fault        *fault, *seen;                   /* the device's; its pinned copy */
  int                may_fault;
  uint32_t          *counters;                       /* the device's: arrival.h */
  flow_cuda_staging  staging;
  flow_cuda_capture *capture;                        /* while it is recorded */
  int                after_kernel;                   /* meanwhile: what was enqueued last is a kernel of ours */
  flow_cuda_bundle  *bundle;                         /* small launches, meanwhile, that go together */
  void             **released;                       /* meanwhile: freed afterwards */
  int                released_count, released_capacity;
};

/* "gpu:0: what: CUDA's reason (700)". The error is taken off the thread. */
flow_status flow_runtime_fail(const flow_cuda_device *device, const char *what, cudaError_t error);
#define FLOW_CUDA_TRY(device, what, call)                                                  \
  do {                                                                                     \
    cudaError_t flow_cuda_error_ = (call);                                                 \
    if (flow_cuda_error_ != cudaSuccess) return flow_runtime_fail(device, what, flow_cuda_error_); \
  } while (0)

/* Makes the device the thread's current one; `before` is what flow_runtime_leave restores, for a host that uses CUDA itself, unless nobody
 * has made a context there. No error is left for the thread's next look. */
flow_status flow_runtime_enter(const flow_cuda_device *device, int *before);
void        flow_runtime_leave(const flow_cuda_device *device, int before);

/* FLOW_INVALID_STATE while the queue is recorded. */
flow_status flow_runtime_refuse_while_recorded(flow_queue *queue, const char *what);
flow_status flow_runtime_synchronize(flow_queue *queue);
/* The same of a queue that is not recorded, as part of something that is counted as another thing. */
flow_status flow_runtime_wait(flow_queue *queue);
/* Enqueues the launches that wait to be bundled: before anything else gets to the stream. */
flow_status flow_runtime_flush(flow_queue *queue);

/* runtime_kernels.c: what cudaLaunchKernelExC takes for a kernel on the device, which is the current one: it is loaded there now, unless it
 * was before. early: it may be started while the kernel before it still runs. */
typedef struct flow_cuda_function { const void *function; int early; } flow_cuda_function;
flow_status flow_runtime_kernel(const flow_cuda_device *device, flow_cuda_kernel kernel, flow_cuda_function *out);

/* runtime_memory.c */
flow_status flow_runtime_allocate(flow_queue *queue, size_t bytes, void **out);
void        flow_runtime_release(flow_queue *queue, void *memory);
void        flow_runtime_release_deferred(flow_queue *queue);
flow_status flow_runtime_upload(flow_queue *queue, void *to, const void *host, size_t bytes);
flow_status flow_runtime_download(flow_queue *queue, void *host, const void *from, size_t bytes);
flow_status flow_runtime_copy_inside(flow_queue *queue, void *to, const void *from, size_t bytes);
double      flow_runtime_free_memory(const flow_accelerator *self);
flow_status flow_runtime_clear(flow_queue *queue, void *to, size_t bytes);
/* Lets the other devices of this process, where they can, use all memory of this one: a pool is its own device's else. */
flow_status flow_runtime_open_to_peers(const flow_cuda_device *device);
void        flow_runtime_staging_release(flow_cuda_staging *staging);

/* nccl.c */
extern const struct flow_transport flow_cuda_nccl_transport;

/* runtime_recording.c */
flow_status flow_runtime_follow(flow_queue *queue, flow_queue *other);
flow_status flow_runtime_record_begin(flow_queue *queue);
flow_status flow_runtime_record_end(flow_queue *queue, flow_recording **out);
flow_status flow_runtime_replay(flow_queue *queue, const flow_recording *recording);
int         flow_runtime_recording_nodes(const flow_recording *recording);
void        flow_runtime_recording_release(flow_recording *recording);

#endif
