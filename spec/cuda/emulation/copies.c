/* copies.c: pinned memory, and copies between the host and the devices. A copy reads pinned memory when it is carried out, pageable memory
 * when it is enqueued; one that comes to pageable memory is waited for. */
#define _GNU_SOURCE                        /* MAP_ANONYMOUS */
#include "cuda/emulation/emulation.h"

#include <string.h>
#include <sys/mman.h>
#include "base/memory.h"

typedef struct pinned { char *start; size_t bytes; struct pinned *next; } pinned;

static pinned *all_pinned;

static pinned *find_pinned(const void *address, size_t bytes)
{
  for (pinned *block = all_pinned; block; block = block->next) {
    const char *from = address;
    if (from >= block->start && from + bytes <= block->start + block->bytes) return block;
  }
  return NULL;
}

static int is_of_device(const void *address)
{
  int device;
  return emulated_memory_find(address, &device) != NULL;
}

/* ---- pinned memory ----------------------------------------------------------------------------------------------------------- */

static cudaError_t allocate(void **out, size_t bytes)
{
  void *made, *block;
  EMULATED_TRY(emulated_check_unsafe());
  if (bytes == 0) return cudaErrorInvalidValue;
  if (flow_alloc(sizeof(pinned), &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);      /* the core's accounts know nothing of it */
  if (block == MAP_FAILED) {
    flow_free(made);
    return cudaErrorMemoryAllocation;
  }
  *(pinned *)made = (pinned){ .start = block, .bytes = bytes, .next = all_pinned };
  all_pinned = made;
  *out = block;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
  if (flags != cudaHostAllocPortable) return cudaErrorNotSupported;
  EMULATED_BEGIN();
  return emulated_leave(allocate(out, bytes));
}

static int is_inside(const pinned *block, const void *address)
{
  return (const char *)address >= block->start && (const char *)address < block->start + block->bytes;
}

/* A lane with a copy from or to the block that is not done; -1: there is none. */
static int find_user(const pinned *block)
{
  for (int i = 0; i < EMULATED_LANES; i++) {
    const emulated_lane *lane = &emulated_lanes[i];
    for (int k = lane->next; k < lane->count; k++) {
      const emulated_work *work = &lane->work[k];
      if (work->kind == WORK_COPY && (is_inside(block, work->from) || is_inside(block, work->to))) return i;
    }
  }
  return -1;
}

static cudaError_t free_pinned(void *address)
{
  pinned **at = &all_pinned;
  if (!address) return cudaSuccess;
  EMULATED_TRY(emulated_check_unsafe());
  while (*at && (*at)->start != address) at = &(*at)->next;
  if (!*at) return cudaErrorInvalidValue;
  pinned *block = *at;
  int user = find_user(block);
  if (user >= 0) return emulated_refuse("hazard: pinned memory is freed that a copy on queue %d still uses", user);
  *at = block->next;
  munmap(block->start, block->bytes);
  flow_free(block);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void *address)
{
  EMULATED_BEGIN();
  return emulated_leave(free_pinned(address));
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------ */

int emulated_is_as_expected(const emulated_work *work) { return !work->expected || memcmp(work->from, work->expected, work->bytes) == 0; }

static cudaError_t keep(const void *bytes, size_t count, void **out)
{
  if (flow_alloc(count, out) != FLOW_OK) return cudaErrorMemoryAllocation;
  memcpy(*out, bytes, count);
  return cudaSuccess;
}

static cudaError_t refuse_direction(void) { return emulated_refuse("a copy whose direction is not that of its pointers"); }

static cudaError_t upload(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
  int is_pinned = find_pinned(from, bytes) != NULL;
  emulated_work work = { .kind = WORK_COPY, .to = to, .from = from, .bytes = bytes };
  if (is_of_device(from)) return refuse_direction();
  EMULATED_TRY(emulated_touch(stream, to, bytes, 1, EMULATED_UPLOAD));
  EMULATED_TRY(keep(from, bytes, is_pinned ? &work.expected : &work.payload));
  if (!is_pinned) work.from = work.payload;
  return emulated_enqueue(stream, &work);
}

static cudaError_t download(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
  if (is_of_device(to)) return refuse_direction();
  EMULATED_TRY(emulated_touch(stream, from, bytes, 0, EMULATED_DOWNLOAD));
  EMULATED_TRY(emulated_enqueue(stream, &(emulated_work){ .kind = WORK_COPY, .to = to, .from = from, .bytes = bytes }));
  if (!find_pinned(to, bytes)) emulated_finish(stream->lane, emulated_total(&emulated_lanes[stream->lane]));
  return cudaSuccess;
}

static cudaError_t copy_inside(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
  EMULATED_TRY(emulated_touch(stream, from, bytes, 0, EMULATED_COPY));
  EMULATED_TRY(emulated_touch(stream, to, bytes, 1, EMULATED_COPY));
  if (stream->capture) emulated_list_copy(bytes);
  return emulated_enqueue(stream, &(emulated_work){ .kind = WORK_COPY, .to = to, .from = from, .bytes = bytes });
}

/* Copies between the host and a device are not captured here: whose memory a graph would read, later, is not known. */
static cudaError_t copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  EMULATED_TRY(emulated_check_stream(stream));
  if (bytes == 0) return cudaSuccess;
  if ((const char *)to < (const char *)from + bytes && (const char *)from < (const char *)to + bytes)
    return emulated_refuse("a copy whose memory overlaps");
  if (kind == cudaMemcpyDefault || kind == cudaMemcpyDeviceToDevice) return copy_inside(to, from, bytes, stream);
  if (stream->capture) return emulated_invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
  if (kind == cudaMemcpyHostToDevice) return upload(to, from, bytes, stream);
  return kind == cudaMemcpyDeviceToHost ? download(to, from, bytes, stream) : cudaErrorInvalidValue;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(copy(to, from, bytes, kind, stream));
}

static cudaError_t set(void *to, int value, size_t bytes, cudaStream_t stream)
{
  EMULATED_TRY(emulated_check_current(stream));
  if (bytes == 0) return cudaSuccess;
  EMULATED_TRY(emulated_touch(stream, to, bytes, 1, EMULATED_CLEAR));
  return emulated_enqueue(stream, &(emulated_work){ .kind = WORK_SET, .to = to, .bytes = bytes, .byte = value });
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(set(to, value, bytes, stream));
}
