/* nccl.c: NCCL as the emulated plugin finds it: communicators over devices of this process or of others on this machine. A rank's part of
 * an operation is work of its stream in two stages: its bytes go where all ranks see them; when those of all are there, the result is made.
 *   - The ranks find each other by an id, which names a file without a name that all map. A communicator is not ready before all came.
 *     Ranks on one device are refused then.
 *   - What a call enqueues may be enqueued only when its progress is asked for.
 *   - Who waits for a rank that does not come waits until his own communicator is aborted; what was ended has no result. Aborting waits
 *     until no graph holds operations of the communicator.
 *   - Ranks whose calls differ are told, where NCCL would hang or give nonsense.
 * Under the one lock, but for the counters, which other processes change. */
#define _GNU_SOURCE                        /* memfd_create */
#include "cuda/emulation/emulation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "base/memory.h"

enum { MOST_RANKS = 16 };
static const size_t MOST_BYTES = (size_t)1 << 28;      /* of one operation; memory that nobody writes costs nothing */

typedef enum call_kind { ALL_REDUCE, BROADCAST, ALL_GATHER } call_kind;

typedef struct signature { int64_t call, type, root, count; } signature;

/* What a rank shows the others: what it has sent last, and of how many operations it has sent its part and made the result. */
typedef struct shown { _Atomic int64_t sent, received; int64_t process; uint64_t bus; int device; signature last; } shown;

typedef struct meeting { _Atomic int joined; shown ranks[MOST_RANKS]; } meeting;      /* in front of the ranks' bytes */

typedef struct file_name { int64_t process, descriptor; } file_name;

struct ncclComm {
  int          rank, size, device, joined, aborted;
  int          references;                 /* of the handle, and of work */
  int          recorded;                   /* operations that graphs hold */
  ncclResult_t state;
  meeting     *shared;
  int          descriptor;                 /* of the file, at the rank that has it, until all have joined; -1 */
  int          holds;                      /* an operation that is not enqueued yet: */
  cudaStream_t stream;
  emulated_work held;
};

static char last_error[EMULATED_TEXT];

static ncclResult_t fail(ncclResult_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
static ncclResult_t fail(ncclResult_t code, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  return code;
}

static ncclResult_t leave(ncclResult_t code)
{
  emulated_unlock();
  return code;
}

const char *ncclGetErrorString(ncclResult_t code)
{
  switch (code) {
    case ncclSuccess:            return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError:        return "unhandled system error";
    case ncclInternalError:      return "internal error";
    case ncclInvalidArgument:    return "invalid argument";
    case ncclInvalidUsage:       return "invalid usage";
    case ncclRemoteError:        return "remote process exited or there was a network error";
    case ncclInProgress:         return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
  (void)comm;
  static _Thread_local char text[EMULATED_TEXT];      /* NCCL's is one for the process, which another thread may be writing */
  emulated_lock();
  memcpy(text, last_error, sizeof text);
  emulated_unlock();
  return text;
}

ncclResult_t ncclGetVersion(int *version)
{
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

/* ---- operations --------------------------------------------------------------------------------------------------------------- */

static size_t bytes_for(int ranks) { return sizeof(meeting) + MOST_BYTES * (size_t)ranks; }

static char *bytes_of(const struct ncclComm *self, int rank) { return (char *)(self->shared + 1) + MOST_BYTES * (size_t)rank; }

static shown *mine(const struct ncclComm *self) { return &self->shared->ranks[self->rank]; }

/* First all must have made the result of the last operation; then all must have sent their part of this one. */
int emulated_collective_can(const emulated_work *work, int stage)
{
  const struct ncclComm *self = work->comm;
  if (self->aborted) return 1;
  for (int r = 0; r < self->size; r++) {
    shown *other = &self->shared->ranks[r];
    if (atomic_load(stage == 0 ? &other->received : &other->sent) < atomic_load(&mine(self)->sent)) return 0;
  }
  return 1;
}

static void send(struct ncclComm *self, const emulated_work *work)
{
  if (self->aborted) return;
  mine(self)->last = (signature){ work->call, work->type, work->root, work->count };
  if (work->call != BROADCAST || work->root == self->rank) memcpy(bytes_of(self, self->rank), work->from, work->bytes);
  atomic_fetch_add(&mine(self)->sent, 1);
}

/* Whether all do the same. */
static int check(struct ncclComm *self)
{
  const signature *own = &mine(self)->last;
  for (int r = 0; r < self->size && !self->aborted; r++) {
    const signature *other = &self->shared->ranks[r].last;
    if (memcmp(own, other, sizeof *own) == 0) continue;
    self->state = fail(ncclInvalidUsage, "rank %d calls operation %lld with %lld elements of type %lld, rank %d operation %lld with %lld "
                       "of type %lld", self->rank, (long long)own->call, (long long)own->count, (long long)own->type, r,
                       (long long)other->call, (long long)other->count, (long long)other->type);
    return 0;
  }
  return 1;
}

#define ADD_UP(number)                                                                                      \
  for (int64_t i = 0; i < work->count; i++) {                                                               \
    number sum = 0;                                                                                         \
    for (int r = 0; r < self->size; r++) sum += ((const number *)(const void *)bytes_of(self, r))[i];       \
    ((number *)work->to)[i] = sum;                                                                          \
  }

/* One that was ended makes it of what is there, of earlier ones. */
static void receive(struct ncclComm *self, const emulated_work *work)
{
  if (!check(self)) {
    memset(work->to, 0xff, work->bytes * (work->call == ALL_GATHER ? (size_t)self->size : 1));
  } else if (work->call == BROADCAST) {
    memcpy(work->to, bytes_of(self, work->root), work->bytes);
  } else if (work->call == ALL_GATHER) {
    for (int r = 0; r < self->size; r++) memcpy((char *)work->to + (size_t)r * work->bytes, bytes_of(self, r), work->bytes);
  } else if (work->type == ncclFloat32) {
    ADD_UP(float)
  } else {
    ADD_UP(double)
  }
  atomic_fetch_add(&mine(self)->received, 1);
}

int emulated_collective_step(const emulated_work *work, int stage)
{
  if (stage == 0) send(work->comm, work);
  else receive(work->comm, work);
  return stage > 0;
}

void emulated_comm_recorded(ncclComm_t self, int more) { self->recorded += more; }

void emulated_comm_retain(ncclComm_t self) { self->references++; }

void emulated_comm_release(ncclComm_t self)
{
  if (--self->references > 0) return;
  if (self->shared) munmap(self->shared, bytes_for(self->size));
  if (self->descriptor >= 0) close(self->descriptor);
  flow_free(self);
}

/* ---- calls -------------------------------------------------------------------------------------------------------------------- */

/* Each device of this process reads what the others have. */
static cudaError_t touch(const struct ncclComm *self, cudaStream_t stream, const void *data, size_t bytes, int write)
{
  for (int r = 0; r < self->size; r++) {
    const shown *other = &self->shared->ranks[r];
    if (other->process == getpid()) EMULATED_TRY(emulated_touch_from(stream, data, bytes, write, EMULATED_SUM, other->device));
  }
  return cudaSuccess;
}

/* Takes the held operation's reference over. */
static void enqueue_held(struct ncclComm *self)
{
  self->holds = 0;
  cudaError_t error = emulated_enqueue(self->stream, &self->held);
  self->state = error == cudaSuccess ? ncclSuccess : fail(ncclUnhandledCudaError, "Cuda failure '%s'", cudaGetErrorString(error));
}

static ncclResult_t check_call(const struct ncclComm *self, const emulated_work *work, cudaStream_t stream)
{
  if (!self || !work->from || !work->to) return fail(ncclInvalidArgument, "a pointer is NULL");
  if (self->aborted || self->state != ncclSuccess) return fail(ncclInvalidUsage, "the communicator is not ready for a call");
  if (emulated_check_current(stream) != cudaSuccess || stream->device != self->device)
    return fail(ncclInvalidUsage, "the stream, or the current device, is not of the communicator's device");
  if (emulated_last_error() != cudaSuccess)
    return fail(ncclUnhandledCudaError, "Cuda failure '%s': an error of an earlier call that nobody took",
                cudaGetErrorString(emulated_last_error()));
  return work->bytes <= MOST_BYTES ? ncclSuccess : fail(ncclInvalidArgument, "the emulation takes at most %.0f bytes", (double)MOST_BYTES);
}

static ncclResult_t call(ncclComm_t self, emulated_work work, cudaStream_t stream)
{
  ncclResult_t code = check_call(self, &work, stream);
  if (code != ncclSuccess || work.bytes == 0) return code;
  size_t written = work.bytes * (work.call == ALL_GATHER ? (size_t)self->size : 1);
  cudaError_t error = work.from == work.to ? cudaSuccess : touch(self, stream, work.from, work.bytes, 0);
  if (error == cudaSuccess) error = touch(self, stream, work.to, written, 1);
  if (error != cudaSuccess) return fail(ncclUnhandledCudaError, "Cuda failure '%s'", cudaGetErrorString(error));
  work.kind = WORK_COLLECTIVE;
  work.comm = self;
  emulated_comm_retain(self);
  self->held = work;
  self->stream = stream;
  self->holds = 1;
  self->state = ncclInProgress;
  if (emulated_random(4)) enqueue_held(self);
  return self->state;
}

static size_t size_of(ncclDataType_t type) { return type == ncclUint8 ? 1 : type == ncclFloat32 ? 4 : type == ncclFloat64 ? 8 : 0; }

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
  emulated_lock();
  if (op != ncclSum || size_of(type) < 4) return leave(fail(ncclInvalidArgument, "the emulation adds up float32 and float64"));
  return leave(call(comm, (emulated_work){ .call = ALL_REDUCE, .type = (int)type, .count = (int64_t)count, .from = from, .to = to,
                                           .bytes = count * size_of(type) }, stream));
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
  emulated_lock();
  if (size_of(type) == 0) return leave(fail(ncclInvalidArgument, "an unknown type"));
  if (root < 0 || (comm && root >= comm->size)) return leave(fail(ncclInvalidArgument, "a root outside of the group"));
  return leave(call(comm, (emulated_work){ .call = BROADCAST, .type = (int)type, .root = root, .count = (int64_t)count, .from = from,
                                           .to = to, .bytes = count * size_of(type) }, stream));
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
  emulated_lock();
  if (size_of(type) == 0) return leave(fail(ncclInvalidArgument, "an unknown type"));
  return leave(call(comm, (emulated_work){ .call = ALL_GATHER, .type = (int)type, .count = (int64_t)count, .from = from, .to = to,
                                           .bytes = count * size_of(type) }, stream));
}

/* ---- communicators ------------------------------------------------------------------------------------------------------------ */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
  int descriptor = memfd_create("flow_emulated_nccl", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes_for(MOST_RANKS)) != 0) return ncclSystemError;
  memset(id, 0, sizeof *id);
  file_name name = { getpid(), descriptor };
  memcpy(id->internal, &name, sizeof name);
  return ncclSuccess;
}

/* The rank in the process that made the id keeps the file open until the others have it. */
static ncclResult_t map(struct ncclComm *self, const file_name *name)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)name->process, (long long)name->descriptor);
  int descriptor = open(path, O_RDWR | O_CLOEXEC);
  void *at = descriptor < 0 ? MAP_FAILED
           : mmap(NULL, bytes_for(self->size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  int failed = errno;
  if (descriptor >= 0) close(descriptor);
  if (at == MAP_FAILED) return fail(ncclSystemError, "memory for all ranks: %s", strerror(failed));
  self->shared = at;
  if (self->rank == 0 && name->process == getpid()) self->descriptor = (int)name->descriptor;
  return ncclSuccess;
}

static ncclResult_t start(ncclComm_t *out, int size, const ncclUniqueId *id, int rank)
{
  void *made;
  file_name name;
  if (size > MOST_RANKS || rank < 0 || rank >= size) return fail(ncclInvalidArgument, "rank %d of %d", rank, size);
  if (flow_alloc_zero(sizeof **out, &made) != FLOW_OK) return ncclSystemError;
  struct ncclComm *self = *out = made;
  *self = (struct ncclComm){ .rank = rank, .size = size, .device = emulated_device(), .references = 1, .descriptor = -1,
                             .state = ncclInProgress };
  memcpy(&name, id->internal, sizeof name);
  ncclResult_t code = map(self, &name);
  if (code != ncclSuccess) return self->state = code;
  mine(self)->process = getpid();
  mine(self)->bus = emulated_bus(self->device);
  mine(self)->device = self->device;
  atomic_fetch_add(&self->shared->joined, 1);
  return ncclInProgress;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
  *comm = NULL;
  emulated_lock();
  if (config->size != sizeof *config || config->magic != NCCL_EMULATED_MAGIC)
    return leave(fail(ncclInvalidArgument, "a config that was not initialized"));
  if (config->blocking != 0) return leave(fail(ncclInvalidArgument, "the emulation has no blocking communicators"));
  return leave(start(comm, size, &id, rank));
}

static ncclResult_t check_devices(const struct ncclComm *self)
{
  for (int a = 0; a < self->size; a++)
    for (int b = 0; b < a; b++)
      if (self->shared->ranks[a].bus == self->shared->ranks[b].bus)
        return fail(ncclInvalidUsage, "Duplicate GPU detected : rank %d and rank %d both on CUDA device %llx", b, a,
                    (unsigned long long)self->shared->ranks[a].bus);
  return ncclSuccess;
}

/* Something goes on only when it is asked for. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t self, ncclResult_t *state)
{
  emulated_lock();
  if (!self->joined && self->state == ncclInProgress && atomic_load(&self->shared->joined) == self->size) {
    self->joined = 1;
    if (self->descriptor >= 0) close(self->descriptor);
    self->descriptor = -1;
    self->state = check_devices(self);
  }
  if (self->holds) enqueue_held(self);
  *state = self->state;
  return leave(ncclSuccess);
}

ncclResult_t ncclCommAbort(ncclComm_t self)
{
  emulated_lock();
  self->aborted = 1;
  if (self->holds) emulated_drop_work(&self->held);
  self->holds = 0;
  for (emulated_carry_out(-1, 0); self->recorded > 0; emulated_carry_out(-1, 0)) {
    emulated_unlock();
    nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
    emulated_lock();
  }
  emulated_comm_release(self);
  return leave(ncclSuccess);
}
