/* memory.c: the memory of the emulated devices: cudaMalloc, pools, and who used which bytes last. A block that was freed on a stream may be
 * used again by that stream at once, by others once the host has waited and the pool was trimmed, or nothing else is left. */
#define _GNU_SOURCE                        /* MAP_ANONYMOUS */
#include "cuda/emulation/emulation.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/memory.h"
#include "cuda/runtime/device_table.h"

enum { ALIGNMENT = 256, GAP = 256 };       /* between blocks, so that one that is overrun does not hit the next */
enum { PAGE = 1 << 21 };                   /* large ones, where there are: their protection changes twice for each wait */

typedef struct memory {
  char   *region;
  size_t  size, used;                      /* used: up to here there were blocks */
  emulated_block **blocks;                 /* in order of addresses */
  int     count, capacity;
} memory;

static memory memories[EMULATED_DEVICES];
static int is_protected;

/* ---- regions ----------------------------------------------------------------------------------------------------------------- */

cudaError_t emulated_memory_start(int device)
{
  memory *self = &memories[device];
  struct cudaDeviceProp properties;
  if (self->region) return cudaSuccess;
  emulated_unlock();
  cudaGetDeviceProperties(&properties, device);
  emulated_lock();
  const char *protect = getenv("FLOW_EMULATED_PROTECT");
  is_protected = !(protect && strcmp(protect, "0") == 0);
  size_t size = properties.totalGlobalMem;
  int protection = is_protected ? PROT_NONE : PROT_READ | PROT_WRITE;
  char *region = mmap(NULL, size + PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) return emulated_refuse("an emulated device of %.0f bytes does not fit: set FLOW_EMULATED_MEMORY", (double)size);
  region += PAGE - (uintptr_t)region % PAGE;
  madvise(region, size, MADV_HUGEPAGE);
  *self = (memory){ .region = region, .size = size };
  return cudaSuccess;
}

static void protect(int flags)
{
  for (int i = 0; i < EMULATED_DEVICES && is_protected; i++)
    if (memories[i].used > 0) mprotect(memories[i].region, memories[i].used, flags);
}

void emulated_memory_open(void) { protect(PROT_READ | PROT_WRITE); }
void emulated_memory_close(void) { protect(PROT_NONE); }

/* ---- blocks ------------------------------------------------------------------------------------------------------------------ */

static void remove_block(memory *self, int index)
{
  emulated_block *block = self->blocks[index];
  self->count--;
  memmove(&self->blocks[index], &self->blocks[index + 1], sizeof *self->blocks * (size_t)(self->count - index));
  flow_free(block->accesses.list);
  flow_free(block);
}

static emulated_block *reuse(memory *self, cudaMemPool_t pool, int lane, size_t bytes)
{
  for (int i = 0; i < self->count && pool; i++) {
    emulated_block *block = self->blocks[i];
    if (block->pool == pool && block->lane == lane && block->capacity >= bytes && block->capacity / 2 <= bytes) return block;
  }
  return NULL;
}

/* The first gap that is large enough: the index of the block after it; -1: there is none. */
static int find_gap(const memory *self, size_t bytes, char **start)
{
  *start = self->region;
  for (int i = 0; i < self->count; i++) {
    const emulated_block *block = self->blocks[i];
    if ((size_t)(block->start - *start) >= bytes) return i;
    *start = block->start + block->capacity + GAP;
  }
  size_t used = (size_t)(*start - self->region);
  return used <= self->size && self->size - used >= bytes ? self->count : -1;
}

static cudaError_t make_block(memory *self, size_t capacity, emulated_block **out)
{
  char *start;
  void *made;
  int index = find_gap(self, capacity + GAP, &start);
  if (index < 0) return cudaErrorMemoryAllocation;
  if (flow_grow(&self->blocks, sizeof *self->blocks, self->count + 1, &self->capacity) != FLOW_OK) return cudaErrorMemoryAllocation;
  if (flow_alloc_zero(sizeof **out, &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  *out = made;
  **out = (emulated_block){ .start = start, .capacity = capacity };
  memmove(&self->blocks[index + 1], &self->blocks[index], sizeof *self->blocks * (size_t)(self->count - index));
  self->blocks[index] = *out;
  self->count++;
  size_t end = ((size_t)(start - self->region) + capacity + GAP + PAGE - 1) / PAGE * PAGE;
  if (end > self->size) end = self->size;
  if (end > self->used) self->used = end;
  return cudaSuccess;
}

static cudaError_t take(memory *self, cudaMemPool_t pool, int lane, size_t bytes, emulated_block **out)
{
  if (bytes == 0) return cudaErrorInvalidValue;
  if (bytes > self->size) return cudaErrorMemoryAllocation;
  size_t capacity = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  *out = reuse(self, pool, lane, capacity);
  if (!*out) EMULATED_TRY(make_block(self, capacity, out));
  (*out)->lane = -1;
  (*out)->pool = pool;
  (*out)->bytes = bytes;
  return cudaSuccess;
}

static emulated_block *find_in(const memory *self, const void *address)
{
  const char *wanted = address;
  int low = 0, high = self->count;         /* the last block that starts at or before it */
  while (low < high) {
    int middle = (low + high) / 2;
    if (self->blocks[middle]->start <= wanted) low = middle + 1;
    else high = middle;
  }
  if (low == 0) return NULL;
  emulated_block *block = self->blocks[low - 1];
  return wanted < block->start + block->capacity ? block : NULL;
}

int emulated_memory_is(const void *address)
{
  const char *wanted = address;
  for (int i = 0; i < EMULATED_DEVICES; i++)
    if (memories[i].region && wanted >= memories[i].region && wanted < memories[i].region + memories[i].size) return 1;
  return 0;
}

void emulated_memory_reach(const char **from, const char **to)
{
  *from = *to = NULL;
  for (int i = 0; i < EMULATED_DEVICES; i++) {
    const memory *self = &memories[i];
    if (!self->region) continue;
    if (!*from || self->region < *from) *from = self->region;
    if (self->region + self->size > *to) *to = self->region + self->size;
  }
}

emulated_block *emulated_memory_find(const void *address, int *device)
{
  for (int i = 0; i < EMULATED_DEVICES; i++) {
    emulated_block *block = find_in(&memories[i], address);
    if (!block) continue;
    *device = i;
    return block;
  }
  return NULL;
}

/* Bytes of blocks in use, or that are kept by pools. */
static size_t held(const memory *self, int by_pools_alone, int free_ones)
{
  size_t bytes = 0;
  for (int i = 0; i < self->count; i++) {
    const emulated_block *block = self->blocks[i];
    if ((block->pool || !by_pools_alone) && (block->lane < 0 || free_ones)) bytes += block->capacity + GAP;
  }
  return bytes;
}

/* ---- accesses ---------------------------------------------------------------------------------------------------------------- */

static const char *access_name(int op)
{
  static const char *const names[] = { "", "an upload", "a download", "a copy", "a clear", "a release", "a sum" };
  return op >= 0 ? flow_cuda_op_name(op) : names[-op];
}

static cudaError_t refuse_hazard(const emulated_access *now, const emulated_access *before)
{
  return emulated_refuse("hazard: %s on queue %d %s bytes that %s on queue %d %s, and nothing orders the two: one queue has to follow the "
                         "other in between", access_name(now->op), now->lane, now->write ? "writes" : "reads", access_name(before->op),
                         before->lane, before->write ? "writes" : "reads");
}

/* What is ordered before the new access and within it is of no further interest: who conflicts with it conflicts with the new one. */
cudaError_t emulated_access_add(emulated_accesses *accesses, const int64_t *clock, const emulated_access *access)
{
  int kept = 0;
  cudaError_t error = cudaSuccess;
  for (int i = 0; i < accesses->count; i++) {
    const emulated_access *old = &accesses->list[i];
    int ordered = old->lane == access->lane || clock[old->lane] > old->position;
    int overlap = old->from < access->to && access->from < old->to;
    if (!ordered && overlap && (old->write || access->write) && error == cudaSuccess) error = refuse_hazard(access, old);
    int replaced = ordered && access->from <= old->from && old->to <= access->to && (access->write || !old->write);
    if (!replaced) accesses->list[kept++] = *old;
  }
  accesses->count = kept;
  EMULATED_TRY(error);
  if (flow_grow(&accesses->list, sizeof *accesses->list, accesses->count + 1, &accesses->capacity) != FLOW_OK)
    return cudaErrorMemoryAllocation;
  accesses->list[accesses->count++] = *access;
  return cudaSuccess;
}

static emulated_access access_of(cudaStream_t stream, const void *from, size_t bytes, int write, int op)
{
  emulated_capture *capture = stream->capture;
  return (emulated_access){
    .from = from, .to = (const char *)from + bytes, .write = write, .op = op, .lane = capture ? stream->branch : stream->lane,
    .position = capture ? capture->totals[stream->branch] : emulated_total(&emulated_lanes[stream->lane]),
  };
}

/* Copies go through the host where devices do not reach each other. */
static int is_reached(const emulated_block *block, int owner, int device, int op)
{
  if (owner == device || op == EMULATED_COPY || op == EMULATED_UPLOAD || op == EMULATED_DOWNLOAD || op == EMULATED_RELEASE) return 1;
  return block->pool ? block->pool->reached[device] : op == EMULATED_SUM;      /* NCCL opens what is of cudaMalloc for itself */
}

/* The block, in use, that holds the bytes. */
static cudaError_t find_used(const emulated_access *access, emulated_block **block, int *device)
{
  const char *name = access_name(access->op);
  *block = emulated_memory_find(access->from, device);
  if (!*block || access->to > (*block)->start + (*block)->bytes)
    return emulated_refuse("%s %s %.0f bytes at %p, which are not in the memory of a device", name, access->write ? "writes" : "reads",
                           (double)(access->to - access->from), (const void *)access->from);
  if ((*block)->lane >= 0) return emulated_refuse("%s uses memory at %p, which was released", name, (const void *)access->from);
  return cudaSuccess;
}

cudaError_t emulated_touch_from(cudaStream_t stream, const void *from, size_t bytes, int write, int op, int device)
{
  int owner;
  emulated_block *block;
  if (bytes == 0) return cudaSuccess;
  emulated_access access = access_of(stream, from, bytes, write, op);
  EMULATED_TRY(find_used(&access, &block, &owner));
  if (!is_reached(block, owner, device, op))
    return emulated_refuse("%s on gpu:%d %s memory of gpu:%d, which is not open to it", access_name(op), device,
                           write ? "writes" : "reads", owner);
  return emulated_access_add(stream->capture ? &stream->capture->nodes->accesses : &block->accesses, emulated_clock(stream), &access);
}

cudaError_t emulated_touch_again(cudaStream_t stream, const emulated_access *access)
{
  int owner;
  emulated_block *block;
  emulated_access again = access_of(stream, access->from, (size_t)(access->to - access->from), access->write, access->op);
  EMULATED_TRY(find_used(&again, &block, &owner));
  return emulated_access_add(&block->accesses, emulated_clock(stream), &again);
}

cudaError_t emulated_touch(cudaStream_t stream, const void *from, size_t bytes, int write, int op)
{
  return emulated_touch_from(stream, from, bytes, write, op, stream->device);
}

/* ---- cudaMalloc -------------------------------------------------------------------------------------------------------------- */

static cudaError_t allocate(void **out, size_t bytes)
{
  emulated_block *block;
  EMULATED_TRY(emulated_check_unsafe());
  EMULATED_TRY(take(&memories[emulated_device()], NULL, -1, bytes, &block));
  emulated_memory_open();
  if (!emulated_is_idle()) memset(block->start, 0xff, bytes);
  emulated_memory_close();
  *out = block->start;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
  EMULATED_BEGIN();
  return emulated_leave(allocate(out, bytes));
}

/* Where all is ordered before by what the host has waited for. */
static cudaError_t free_block(void *address)
{
  int device;
  if (!address) return cudaSuccess;
  EMULATED_TRY(emulated_check_unsafe());
  emulated_block *block = emulated_memory_find(address, &device);
  if (!block || block->start != address || block->lane >= 0) return cudaErrorInvalidValue;
  for (int i = 0; i < block->accesses.count; i++) {
    const emulated_access *access = &block->accesses.list[i];
    if (emulated_host_clock[access->lane] <= access->position)
      return emulated_refuse("hazard: memory is freed that %s on queue %d still uses", access_name(access->op), access->lane);
  }
  memory *self = &memories[device];
  for (int i = 0; i < self->count; i++) {
    if (self->blocks[i] != block) continue;
    remove_block(self, i);
    break;
  }
  return cudaSuccess;
}

cudaError_t cudaFree(void *address)
{
  EMULATED_BEGIN();
  return emulated_leave(free_block(address));
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total)
{
  EMULATED_BEGIN();
  const memory *self = &memories[emulated_device()];
  *total = self->size;
  *left = self->size - held(self, 0, 1);
  return emulated_leave(cudaSuccess);
}

/* ---- pools ------------------------------------------------------------------------------------------------------------------- */

static cudaError_t make_pool(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
  void *made;
  int device = properties->location.id;
  if (properties->allocType != cudaMemAllocationTypePinned) return cudaErrorInvalidValue;
  if (properties->location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
  if (device < 0 || device >= emulated_device_count()) return cudaErrorInvalidDevice;
  EMULATED_TRY(emulated_memory_start(device));
  if (flow_alloc_zero(sizeof **pool, &made) != FLOW_OK) return cudaErrorMemoryAllocation;
  *pool = made;
  (*pool)->device = device;
  (*pool)->reached[device] = 1;
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
  EMULATED_BEGIN();
  return emulated_leave(make_pool(pool, properties));
}

/* Pools keep all they have here. */
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
  EMULATED_BEGIN();
  return emulated_leave(pool && value && attribute == cudaMemPoolAttrReleaseThreshold ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
  if (attribute != cudaMemPoolAttrReservedMemCurrent && attribute != cudaMemPoolAttrUsedMemCurrent) return cudaErrorInvalidValue;
  EMULATED_BEGIN();
  *(uint64_t *)value = held(&memories[pool->device], 1, attribute == cudaMemPoolAttrReservedMemCurrent);
  return emulated_leave(cudaSuccess);
}

static cudaError_t set_access(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    int device = list[i].location.id;
    if (list[i].location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
    if (device < 0 || device >= emulated_device_count()) return cudaErrorInvalidDevice;
    if (device == pool->device && list[i].flags != cudaMemAccessFlagsProtReadWrite) return cudaErrorInvalidValue;
    pool->reached[device] = list[i].flags == cudaMemAccessFlagsProtReadWrite;
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count)
{
  EMULATED_BEGIN();
  return emulated_leave(set_access(pool, list, count));
}

/* What was freed and the host has waited for. */
static cudaError_t trim(cudaMemPool_t pool, size_t bytes)
{
  memory *self = &memories[pool->device];
  EMULATED_TRY(emulated_check_unsafe());
  for (int i = self->count - 1; i >= 0 && held(self, 1, 1) > bytes; i--) {
    const emulated_block *block = self->blocks[i];
    int over = block->pool == pool && block->lane >= 0;
    for (int k = 0; k < block->accesses.count; k++)
      if (emulated_host_clock[block->accesses.list[k].lane] <= block->accesses.list[k].position) over = 0;
    if (over) remove_block(self, i);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
  EMULATED_BEGIN();
  return emulated_leave(trim(pool, bytes));
}

/* As cudaMemPoolReuseAllowInternalDependencies, which is a pool's default: what other streams released is this one's, which waits for
 * them. */
static void take_over_released(cudaMemPool_t pool, cudaStream_t stream)
{
  memory *self = &memories[pool->device];
  int64_t *clock = emulated_clock(stream);
  for (int i = self->count - 1; i >= 0; i--) {
    const emulated_block *block = self->blocks[i];
    if (block->pool != pool || block->lane < 0) continue;
    for (int k = 0; k < block->accesses.count; k++) {
      const emulated_access *access = &block->accesses.list[k];
      emulated_finish(access->lane, access->position + 1);
      if (clock[access->lane] <= access->position) clock[access->lane] = access->position + 1;
    }
    remove_block(self, i);
  }
}

static cudaError_t allocate_from(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
  emulated_block *block;
  EMULATED_TRY(emulated_check_current(stream));
  if (stream->capture) return emulated_invalidate(stream->capture, cudaErrorNotSupported);
  cudaError_t error = take(&memories[pool->device], pool, stream->lane, bytes, &block);
  if (error == cudaErrorMemoryAllocation) {
    take_over_released(pool, stream);
    error = take(&memories[pool->device], pool, stream->lane, bytes, &block);
  }
  EMULATED_TRY(error);
  EMULATED_TRY(emulated_touch(stream, block->start, bytes, 1, EMULATED_CLEAR));
  *out = block->start;
  if (emulated_is_idle()) return cudaSuccess;
  return emulated_enqueue(stream, &(emulated_work){ .kind = WORK_SET, .to = block->start, .bytes = bytes, .byte = 0xff });
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
  EMULATED_BEGIN();
  return emulated_leave(allocate_from(out, bytes, pool, stream));
}

/* Everything that other streams still do with the memory must come before. */
static cudaError_t release(void *address, cudaStream_t stream)
{
  int device;
  EMULATED_TRY(emulated_check_current(stream));
  if (stream->capture) return emulated_invalidate(stream->capture, cudaErrorInvalidValue);      /* it is not an allocation of the graph's */
  emulated_block *block = emulated_memory_find(address, &device);
  if (!block || block->start != address || block->lane >= 0 || !block->pool)
    return emulated_refuse("%p is released, which is not memory in use of a device", address);
  emulated_access access = access_of(stream, block->start, block->bytes, 1, EMULATED_RELEASE);
  access.position--;                       /* it is over when the work before it is */
  cudaError_t error = emulated_access_add(&block->accesses, emulated_clock(stream), &access);
  block->lane = stream->lane;
  return error;
}

/* What is wrong is told who waits for the stream, too: hosts that clean up look at no results. */
cudaError_t cudaFreeAsync(void *address, cudaStream_t stream)
{
  EMULATED_BEGIN();
  cudaError_t error = release(address, stream);
  if (error != cudaSuccess && emulated_check_stream(stream) == cudaSuccess) emulated_fail_lane(&emulated_lanes[stream->lane], error);
  return emulated_leave(error);
}
