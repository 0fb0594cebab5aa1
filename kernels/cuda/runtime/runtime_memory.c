/* runtime_memory.c: a queue's memory on the device, and copies there and back. What the host has is copied through pinned memory in
 * pieces, so that the host need not wait for the device and the device can fetch at full speed. */
#include "cuda/runtime/runtime.h"

#include <string.h>
#include "base/memory.h"
#include "cuda/runtime/host_copies.h"

/* Bytes of one stage: large enough for the full speed of the bus, and for several threads that fill it; 16 of them are the 32 MB of pinned
 * memory that a queue which moves data keeps. Queues that move only scalars keep 16 small ones, 64 KB in all. */
enum { STAGE_BYTES = 1 << 21, SMALL_BYTES = 4096 };

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */

/* Memory comes and goes in the stream's order: it may be used by whatever is enqueued on this stream later, and by other queues that
 * follow it. */
static cudaError_t take(const flow_queue *queue, size_t bytes, void **out)
{
  return cudaMallocFromPoolAsync(out, bytes, queue->device->pool, queue->stream);
}

static flow_status fail_full(const flow_cuda_device *device, size_t bytes)
{
  size_t left = 0, all = 0;
  cudaMemGetInfo(&left, &all);
  return flow_fail(FLOW_OUT_OF_MEMORY, "gpu:%d is out of memory: %.0f bytes asked for, %.0f of %.0f free; release tensors or use smaller "
                   "batches", device->base.index, (double)bytes, (double)left, (double)all);
}

/* What other queues have released, the pool waits for by itself where nothing else is left (cudaMemPoolReuseAllowInternalDependencies).
 * What is too small is in the way until it is given back, which is done for what this queue released. The device as a whole must not be
 * waited for: that would end what another thread records. */
static flow_status allocate(flow_queue *queue, size_t bytes, void **out)
{
  flow_cuda_device *device = queue->device;
  if ((double)bytes > device->base.memory_bytes) return fail_full(device, bytes);
  cudaError_t error = take(queue, bytes ? bytes : 1, out);
  if (error == cudaErrorMemoryAllocation) {
    FLOW_CUDA_TRY(device, "waiting for the device", cudaStreamSynchronize(queue->stream));
    FLOW_CUDA_TRY(device, "giving memory back", cudaMemPoolTrimTo(device->pool, 0));
    error = take(queue, bytes ? bytes : 1, out);
  }
  if (error == cudaSuccess) return FLOW_OK;
  *out = NULL;
  return error == cudaErrorMemoryAllocation ? fail_full(device, bytes) : flow_runtime_fail(device, "memory", error);
}

/* A pool belongs to its device; access by another one is granted pool by pool. Devices that cannot reach each other are left out: NCCL
 * then goes through the host. */
static flow_status open_to_peers(const flow_cuda_device *device)
{
  struct cudaMemAccessDesc peers[FLOW_CUDA_DEVICES];
  int count = 0, devices = 0, reaches = 0;
  FLOW_CUDA_TRY(device, "counting GPUs", cudaGetDeviceCount(&devices));
  for (int other = 0; other < devices && count < FLOW_CUDA_DEVICES; other++) {
    if (other == device->base.index) continue;
    FLOW_CUDA_TRY(device, "asking for peers", cudaDeviceCanAccessPeer(&reaches, other, device->base.index));
    if (!reaches) continue;
    peers[count++] = (struct cudaMemAccessDesc){ .location = { .type = cudaMemLocationTypeDevice, .id = other },
                                                .flags = cudaMemAccessFlagsProtReadWrite };
  }
  if (count > 0) FLOW_CUDA_TRY(device, "opening memory to other GPUs", cudaMemPoolSetAccess(device->pool, peers, (size_t)count));
  return FLOW_OK;
}

flow_status flow_runtime_open_to_peers(const flow_cuda_device *device)
{
  int before;
  FLOW_TRY(flow_runtime_enter(device, &before));
  flow_status status = open_to_peers(device);
  flow_runtime_leave(device, before);
  return status;
}

/* Never NULL on success, even for 0 bytes. The contents are what they are: nobody clears them. */
flow_status flow_runtime_allocate(flow_queue *queue, size_t bytes, void **out)
{
  int before;
  *out = NULL;
  FLOW_TRY(flow_runtime_refuse_while_recorded(queue, "allocate"));
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  flow_status status = allocate(queue, bytes, out);
  flow_runtime_leave(queue->device, before);
  return status;
}

/* What the device has left, and what its pool keeps for later. */
double flow_runtime_free_memory(const flow_accelerator *self)
{
  const flow_cuda_device *device = (const flow_cuda_device *)self;
  size_t left = 0, all = 0;
  uint64_t kept = 0, used = 0;
  int before;
  if (flow_runtime_enter(device, &before) != FLOW_OK) return 0;
  cudaMemGetInfo(&left, &all);
  cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrReservedMemCurrent, &kept);
  cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrUsedMemCurrent, &used);
  flow_runtime_leave(device, before);
  return (double)left + (double)(kept - used);
}

/* Who waits for the queue is told of what is wrong: a release has no status of its own. */
static void give_back(flow_queue *queue, void *memory)
{
  int before;
  if (flow_runtime_enter(queue->device, &before) != FLOW_OK) return;
  cudaFreeAsync(memory, queue->stream);
  flow_runtime_leave(queue->device, before);
}

/* CUDA lets a recording release nothing but what it allocated itself. What there is no memory to remember is lost to the pool. */
void flow_runtime_release(flow_queue *queue, void *memory)
{
  if (!memory) return;
  if (!queue->capture) {
    give_back(queue, memory);
  } else if (flow_grow(&queue->released, sizeof *queue->released, queue->released_count + 1, &queue->released_capacity) == FLOW_OK) {
    queue->released[queue->released_count++] = memory;
  }
}

void flow_runtime_release_deferred(flow_queue *queue)
{
  for (int i = 0; i < queue->released_count; i++) give_back(queue, queue->released[i]);
  queue->released_count = 0;
}

/* ---- pinned memory ----------------------------------------------------------------------------------------------------------- */

void flow_runtime_staging_release(flow_cuda_staging *staging)
{
  for (int i = 0; i < FLOW_CUDA_STAGES; i++) {
    if (staging->over[i]) cudaEventDestroy(staging->over[i]);
  }
  if (staging->memory) cudaFreeHost(staging->memory);
  memset(staging, 0, sizeof *staging);
}

static flow_status make_events(flow_queue *queue)
{
  for (int i = 0; i < FLOW_CUDA_STAGES; i++) {
    cudaEvent_t *over = &queue->staging.over[i];
    if (!*over) FLOW_CUDA_TRY(queue->device, "a new event", cudaEventCreateWithFlags(over, cudaEventDisableTiming));
  }
  return FLOW_OK;
}

/* Makes sure that the stages hold pieces of `bytes`, up to STAGE_BYTES. Small ones are replaced by large ones when the first large copy
 * comes, after the copies through them are over; never the other way round. */
static flow_status prepare_stages(flow_queue *queue, size_t bytes)
{
  flow_cuda_staging *staging = &queue->staging;
  size_t wanted = bytes > SMALL_BYTES ? STAGE_BYTES : SMALL_BYTES;
  if (staging->stage_bytes >= wanted) return FLOW_OK;
  FLOW_TRY(make_events(queue));
  if (staging->memory) {
    FLOW_CUDA_TRY(queue->device, "waiting for the device", cudaStreamSynchronize(queue->stream));
    cudaFreeHost(staging->memory);
    staging->memory = NULL;
    staging->stage_bytes = 0;
  }
  FLOW_CUDA_TRY(queue->device, "pinned memory", cudaHostAlloc((void **)&staging->memory, wanted * FLOW_CUDA_STAGES, cudaHostAllocPortable));
  staging->stage_bytes = wanted;
  return FLOW_OK;
}

/* The next stage, once its last copy is over. An event that was never recorded counts as over. */
static flow_status take_stage(flow_queue *queue, int *index, char **memory)
{
  flow_cuda_staging *staging = &queue->staging;
  *index = staging->next;
  staging->next = (staging->next + 1) % FLOW_CUDA_STAGES;
  *memory = staging->memory + (size_t)*index * staging->stage_bytes;
  FLOW_CUDA_TRY(queue->device, "waiting for a copy", cudaEventSynchronize(staging->over[*index]));
  return FLOW_OK;
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------ */

static size_t piece_at(const flow_queue *queue, size_t bytes, size_t at)
{
  size_t piece = queue->staging.stage_bytes;
  return bytes - at < piece ? bytes - at : piece;
}

/* Copies `bytes` into stages, piece by piece, and enqueues each. On return the host's bytes are free for other use, although the device
 * may not have them yet. The host waits only where all stages are on their way, that is, after 32 MB. */
static flow_status upload(flow_queue *queue, char *to, const char *host, size_t bytes)
{
  FLOW_TRY(prepare_stages(queue, bytes));
  for (size_t at = 0; at < bytes; at += queue->staging.stage_bytes) {
    size_t piece = piece_at(queue, bytes, at);
    int stage;
    char *memory;
    FLOW_TRY(take_stage(queue, &stage, &memory));
    flow_cuda_copy_host(memory, host + at, piece);
    FLOW_CUDA_TRY(queue->device, "an upload", cudaMemcpyAsync(to + at, memory, piece, cudaMemcpyHostToDevice, queue->stream));
    FLOW_CUDA_TRY(queue->device, "an upload", cudaEventRecord(queue->staging.over[stage], queue->stream));
  }
  return FLOW_OK;
}

flow_status flow_runtime_upload(flow_queue *queue, void *to, const void *host, size_t bytes)
{
  int before;
  FLOW_TRY(flow_runtime_refuse_while_recorded(queue, "upload"));
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_UPLOADS, 1);
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_UPLOADED_BYTES, (int64_t)bytes);
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  flow_status status = upload(queue, to, host, bytes);
  flow_runtime_leave(queue->device, before);
  return status;
}

/* Enqueues the copy of a piece; returns the stage that it comes to. */
static flow_status fetch(flow_queue *queue, const char *from, size_t bytes, int *stage)
{
  char *memory;
  FLOW_TRY(take_stage(queue, stage, &memory));
  FLOW_CUDA_TRY(queue->device, "a download", cudaMemcpyAsync(memory, from, bytes, cudaMemcpyDeviceToHost, queue->stream));
  FLOW_CUDA_TRY(queue->device, "a download", cudaEventRecord(queue->staging.over[*stage], queue->stream));
  return FLOW_OK;
}

/* Waits for all that was enqueued on the queue before. While a piece is copied on the host the device sends the next one. The last one
 * is waited for together with the fault: if there is one, the status tells it, and `host` has some of the bytes only. */
static flow_status download(flow_queue *queue, char *host, const char *from, size_t bytes)
{
  if (bytes == 0) return flow_runtime_wait(queue);
  FLOW_TRY(prepare_stages(queue, bytes));
  size_t step = queue->staging.stage_bytes, at = 0;
  int stage, next;
  FLOW_TRY(fetch(queue, from, piece_at(queue, bytes, 0), &stage));
  for (; bytes - at > step; at += step) {
    FLOW_TRY(fetch(queue, from + at + step, piece_at(queue, bytes, at + step), &next));
    FLOW_CUDA_TRY(queue->device, "a download", cudaEventSynchronize(queue->staging.over[stage]));
    flow_cuda_copy_host(host + at, queue->staging.memory + (size_t)stage * step, step);
    stage = next;
  }
  FLOW_TRY(flow_runtime_wait(queue));
  flow_cuda_copy_host(host + at, queue->staging.memory + (size_t)stage * step, bytes - at);
  return FLOW_OK;
}

flow_status flow_runtime_download(flow_queue *queue, void *host, const void *from, size_t bytes)
{
  int before;
  FLOW_TRY(flow_runtime_refuse_while_recorded(queue, "download"));
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_DOWNLOADS, 1);
  flow_traffic_count(&queue->device->traffic, FLOW_TRAFFIC_DOWNLOADED_BYTES, (int64_t)bytes);
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  flow_status status = download(queue, host, from, bytes);
  flow_runtime_leave(queue->device, before);
  return status;
}

/* Between devices, too: where memory is, the runtime sees by its address. */
flow_status flow_runtime_copy_inside(flow_queue *queue, void *to, const void *from, size_t bytes)
{
  int before;
  if (bytes == 0) return FLOW_OK;
  FLOW_TRY(flow_runtime_flush(queue));
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue->stream);
  flow_runtime_leave(queue->device, before);
  return error == cudaSuccess ? FLOW_OK : flow_runtime_fail(queue->device, "a copy", error);
}

/* All bytes 0, enqueued: part of a recording, if there is one. */
flow_status flow_runtime_clear(flow_queue *queue, void *to, size_t bytes)
{
  int before;
  if (bytes == 0) return FLOW_OK;
  FLOW_TRY(flow_runtime_flush(queue));
  FLOW_TRY(flow_runtime_enter(queue->device, &before));
  cudaError_t error = cudaMemsetAsync(to, 0, bytes, queue->stream);
  flow_runtime_leave(queue->device, before);
  return error == cudaSuccess ? FLOW_OK : flow_runtime_fail(queue->device, "a clear", error);
}
