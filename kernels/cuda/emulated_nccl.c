/* emulated_nccl.c: the transport "nccl" of the emulated device: sums between devices, of this process or of others on this machine.
 * A rank's part of a sum is work of its queue in two pieces: its elements go where all ranks see them; when those of all are there, they
 * are added up. As with NCCL, who waits for a rank that does not come waits until his own end is aborted, and the sum is none then; a
 * device has one rank; and the ranks find each other by an id that rank 0 leaves in the store: here where a file without a name is.
 *
 * Under the lock of emulated.c, but for the counters, which other processes change. */
#define _GNU_SOURCE                        /* memfd_create */
#include "cuda/emulated.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "base/futex.h"
#include "base/memory.h"
#include "dist/breakage.h"
#include "dist/transport.h"

enum { MOST_RANKS = 16 };
static const size_t MOST_BYTES = (size_t)1 << 28;      /* of one sum; memory that nobody writes costs nothing */

typedef struct rank_counters { _Atomic int64_t sent, received; char identity[FLOW_ACCELERATOR_TEXT]; } rank_counters;

typedef struct sums { _Atomic int joined; rank_counters ranks[MOST_RANKS]; } sums;      /* in front of the ranks' elements */

struct emulated_rank {
  flow_communicator base;
  flow_queue   *queue;
  flow_breakage breakage;
  _Atomic int   aborted;
  int           references;                /* of the communicator, and of work */
  int           recorded;                  /* sums that recordings hold */
  sums         *shared;
};

static size_t bytes_for(int ranks) { return sizeof(sums) + MOST_BYTES * (size_t)ranks; }

static char *elements_of(const emulated_rank *self, int rank) { return (char *)(self->shared + 1) + MOST_BYTES * (size_t)rank; }

/* ---- work -------------------------------------------------------------------------------------------------------------------- */

int emulated_may_send(const emulated_rank *self)
{
  const sums *s = self->shared;
  if (atomic_load(&self->aborted)) return 1;
  for (int r = 0; r < self->base.size; r++)
    if (atomic_load(&s->ranks[r].received) < atomic_load(&s->ranks[self->base.rank].sent)) return 0;      /* it needs the last ones still */
  return 1;
}

void emulated_send(emulated_rank *self, const void *data, size_t bytes)
{
  if (atomic_load(&self->aborted)) return;
  memcpy(elements_of(self, self->base.rank), data, bytes);
  atomic_fetch_add(&self->shared->ranks[self->base.rank].sent, 1);
}

int emulated_may_receive(const emulated_rank *self)
{
  const sums *s = self->shared;
  if (atomic_load(&self->aborted)) return 1;
  for (int r = 0; r < self->base.size; r++)
    if (atomic_load(&s->ranks[r].sent) < atomic_load(&s->ranks[self->base.rank].sent)) return 0;
  return 1;
}

#define ADD_UP(type)                                                                                            \
  for (int64_t i = 0; i < count; i++) {                                                                         \
    type sum = 0;                                                                                               \
    for (int r = 0; r < self->base.size; r++) sum += ((const type *)(const void *)elements_of(self, r))[i];     \
    ((type *)data)[i] = sum;                                                                                    \
  }

/* A sum that was ended is made of what is there, of earlier ones. */
void emulated_receive(emulated_rank *self, int dtype, void *data, int64_t count)
{
  if (dtype == FLOW_FLOAT32) ADD_UP(float)
  else ADD_UP(double)
  atomic_fetch_add(&self->shared->ranks[self->base.rank].received, 1);
}

void emulated_rank_recorded(emulated_rank *self, int more) { self->recorded += more; }

void emulated_rank_retain(emulated_rank *self) { self->references++; }

void emulated_rank_release(emulated_rank *self)
{
  if (--self->references > 0) return;
  if (self->shared) munmap(self->shared, bytes_for(self->base.size));
  flow_breakage_end(&self->breakage);
  flow_free(self);
}

/* ---- the transport ----------------------------------------------------------------------------------------------------------- */

static flow_status all_reduce(flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count)
{
  emulated_rank *self = (emulated_rank *)communicator;
  size_t bytes = (size_t)count * (size_t)(dtype == FLOW_FLOAT32 ? 4 : 8);
  if (flow_is_broken(&self->breakage)) return flow_fail(self->breakage.status, "all_reduce: %s", self->breakage.reason);
  if (bytes > MOST_BYTES) return flow_fail(FLOW_UNSUPPORTED, "the emulated device adds up at most %.0f bytes at once", (double)MOST_BYTES);
  return emulated_enqueue_sum(self->queue, self, (int)dtype, data, count, bytes);
}

static flow_status refuse_broadcast(flow_communicator *self, int from, void *data, int64_t bytes)
{
  (void)self, (void)from, (void)data, (void)bytes;
  return flow_fail(FLOW_UNSUPPORTED, "the emulated device has sums alone, no broadcast");
}

static flow_status refuse_all_gather(flow_communicator *self, const void *mine, int64_t bytes, void *all)
{
  (void)self, (void)mine, (void)bytes, (void)all;
  return flow_fail(FLOW_UNSUPPORTED, "the emulated device has sums alone, no all_gather");
}

static flow_status refuse_barrier(flow_communicator *self)
{
  (void)self;
  return flow_fail(FLOW_UNSUPPORTED, "the emulated device has sums alone, no barrier");
}

static void abort_calls(flow_communicator *communicator, const char *reason)
{
  emulated_rank *self = (emulated_rank *)communicator;
  flow_break(&self->breakage, FLOW_ABORTED, reason);
  atomic_store(&self->aborted, 1);
}

/* As NCCL waits until the last graph with its operations is gone. */
static void close_rank(flow_communicator *communicator)
{
  emulated_rank *self = (emulated_rank *)communicator;
  abort_calls(communicator, "it was closed");
  emulated_lock();
  for (emulated_work_off(); self->recorded > 0; emulated_work_off()) {
    emulated_unlock();
    nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
    emulated_lock();
  }
  emulated_rank_release(self);
  emulated_unlock();
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------ */

typedef struct file_name { int64_t process, descriptor; } file_name;

static flow_status map(emulated_rank *self, int descriptor)
{
  void *at = descriptor < 0 ? MAP_FAILED
           : mmap(NULL, bytes_for(self->base.size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (at == MAP_FAILED) return flow_fail(FLOW_IO_ERROR, "opening the emulated transport nccl: memory for all: %s", strerror(errno));
  self->shared = at;
  return FLOW_OK;
}

static flow_status find(emulated_rank *self, const flow_transport_options *options, int *descriptor)
{
  char key[512], path[64];
  file_name name;
  void *bytes;
  size_t count;
  snprintf(key, sizeof key, "nccl/%.400s", options->group);
  if (self->base.rank == 0) {
    *descriptor = memfd_create("flow_emulated_nccl", MFD_CLOEXEC);
    if (*descriptor >= 0 && ftruncate(*descriptor, (off_t)bytes_for(self->base.size)) != 0)
      return flow_fail(FLOW_IO_ERROR, "opening the emulated transport nccl: %s", strerror(errno));
    name = (file_name){ getpid(), *descriptor };
    FLOW_TRY(map(self, *descriptor));
    return options->store->set(options->store->state, key, &name, sizeof name);
  }
  FLOW_TRY(options->store->get(options->store->state, key, options->timeout, &bytes, &count));
  if (count == sizeof name) memcpy(&name, bytes, sizeof name);
  flow_free(bytes);
  if (count != sizeof name) return flow_fail(FLOW_CORRUPT_DATA, "opening the emulated transport nccl: rank 0 left no id");
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)name.process, (long long)name.descriptor);
  *descriptor = open(path, O_RDWR | O_CLOEXEC);
  return map(self, *descriptor);
}

/* Waits until all ranks are there; NCCL does so, too, and has one rank on a device. */
static flow_status join(emulated_rank *self, const int *ended)
{
  sums *s = self->shared;
  int64_t start = flow_now_nanoseconds();
  snprintf(s->ranks[self->base.rank].identity, FLOW_ACCELERATOR_TEXT, "%s", emulated_identity(self->queue));
  atomic_fetch_add(&s->joined, 1);
  while (atomic_load(&s->joined) < self->base.size) {
    if (ended && __atomic_load_n(ended, __ATOMIC_ACQUIRE))
      return flow_fail(FLOW_ABORTED, "opening the emulated transport nccl: another rank cannot be opened");
    if ((double)(flow_now_nanoseconds() - start) > self->base.timeout * 1e9)
      return flow_fail(FLOW_TIMED_OUT, "opening the emulated transport nccl: not every rank came within %g s", self->base.timeout);
    nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
  }
  for (int a = 0; a < self->base.size; a++)
    for (int b = 0; b < a; b++)
      if (strcmp(s->ranks[a].identity, s->ranks[b].identity) == 0)
        return flow_fail(FLOW_IO_ERROR, "opening the emulated transport nccl: ranks %d and %d have the same device", b, a);
  return FLOW_OK;
}

static flow_status open_rank(int rank, int size, const flow_transport_options *options, flow_communicator **out)
{
  void *made;
  int descriptor = -1;
  if (rank < 0 || !options->queue || !options->store)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the emulated transport nccl needs a rank, a device's queue and a store");
  const char *there = getenv("FLOW_EMULATED_NCCL");
  if (there && strcmp(there, "0") == 0) return flow_fail(FLOW_NOT_FOUND, "no NCCL (FLOW_EMULATED_NCCL is 0)");
  if (size > MOST_RANKS) return flow_fail(FLOW_UNSUPPORTED, "the emulated transport nccl has at most %d ranks", MOST_RANKS);
  FLOW_TRY(flow_alloc_zero(sizeof(emulated_rank), &made));
  emulated_rank *self = made;
  self->base = (flow_communicator){ &emulated_nccl_transport, rank, size, options->timeout };
  self->queue = options->queue;
  self->references = 1;
  flow_breakage_start(&self->breakage);
  flow_status status = find(self, options, &descriptor);
  if (status == FLOW_OK) status = join(self, options->ended);
  if (descriptor >= 0) close(descriptor);
  if (status == FLOW_OK) *out = &self->base;
  else close_rank(&self->base);
  return status;
}

const flow_transport emulated_nccl_transport = {
  .name = "nccl", .open = open_rank, .all_reduce = all_reduce, .broadcast = refuse_broadcast, .all_gather = refuse_all_gather,
  .barrier = refuse_barrier, .abort = abort_calls, .close = close_rank,
};
