/* nccl.c: sums over GPUs by NCCL: the transport "nccl" (transport/transport.h). Data are in the device's memory and calls are enqueued on
 * the queue of the options; barrier alone waits for it.
 *
 * The ranks find each other by an id that rank 0 leaves in the store. Communicators are NCCL's non-blocking ones: every call returns at
 * once and its progress is asked for, so that a timeout and an abort get through. An operation that was enqueued and whose peer is gone
 * would keep the device busy forever: abort ends it there. NCCL's abort first ends what is under way and then waits until the last graph
 * with the communicator's operations is gone: a separate thread waits for that, and close. */
#include "cuda/runtime/runtime.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/futex.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cuda/runtime/libraries.h"
#include "cuda/runtime/nccl_functions.h"
#include "base/failure.h"
#include "transport/transport.h"

/* One rank's end. Its calls come from one thread at a time; abort may come from any other thread, at any time. Whether something is
 * wrong is told by `failure`, which is set once and stays: every later call fails with its reason. */
typedef struct nccl_communicator {
  flow_communicator base;
  const flow_nccl  *nccl;
  flow_queue       *queue;
  pthread_mutex_t lock;                    /* held while NCCL is called with comm */
  ncclComm_t        comm;                  /* NULL: aborted, or not there yet */
  float            *scratch;               /* of barrier, on the device */
  flow_failure      failure;
  const int        *ended;                /* while it is opened: see the options; NULL: never */
  flow_thread       aborter;
  int               aborting;              /* the aborter was started */
} nccl_communicator;

static flow_status fail_broken(const nccl_communicator *self, const char *operation)
{
  return flow_fail(self->failure.status, "%s: %s", operation, self->failure.message);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------------------- */

/* NCCL chooses the communicator's device and then again the thread's, which makes a context there. synchronize: the stream to wait for
 * before, or NULL. */
static void end_communicator(const flow_nccl *nccl, ncclComm_t comm, const flow_cuda_device *device, cudaStream_t synchronize)
{
  int before, entered = flow_runtime_enter(device, &before) == FLOW_OK;
  if (synchronize) cudaStreamSynchronize(synchronize);
  nccl->ncclCommAbort(comm);
  if (entered) flow_runtime_leave(device, before);
}

typedef struct abortion { const flow_nccl *nccl; ncclComm_t comm; const flow_cuda_device *device; } abortion;

static void *end_operations(void *argument)
{
  abortion *what = argument;
  end_communicator(what->nccl, what->comm, what->device, NULL);
  flow_free(what);
  return NULL;
}

/* Without memory or a thread for it this one waits. */
static void start_abort(nccl_communicator *self)
{
  void *block;
  flow_status status = flow_alloc(sizeof(abortion), &block);
  if (status == FLOW_OK) {
    *(abortion *)block = (abortion){ self->nccl, self->comm, self->queue->device };
    self->aborting = flow_thread_start(&self->aborter, "flow-nccl", end_operations, block) == 0;
    if (!self->aborting) flow_free(block);
  }
  if (!self->aborting) end_communicator(self->nccl, self->comm, self->queue->device, NULL);
}

/* Ends what the device still does, too. */
static void give_up(nccl_communicator *self, flow_status status, const char *reason)
{
  flow_failure_set(&self->failure, status, reason, NULL);
  pthread_mutex_lock(&self->lock);
  if (self->comm) start_abort(self);
  self->comm = NULL;
  pthread_mutex_unlock(&self->lock);
}

/* A failure of NCCL's leaves the communicator unusable: it is given up with NCCL's reason. */
static flow_status fail_nccl(nccl_communicator *self, const char *operation, ncclResult_t code)
{
  char reason[FLOW_REASON_SIZE];
  const char *more = self->nccl->ncclGetLastError(NULL);
  snprintf(reason, sizeof reason, "NCCL: %s%s%.300s", self->nccl->ncclGetErrorString(code), more && *more ? ": " : "", more ? more : "");
  give_up(self, FLOW_IO_ERROR, reason);
  return fail_broken(self, operation);
}

/* What the communicator is at: ncclInProgress, ncclSuccess or a failure; ncclInvalidUsage where it was aborted. */
static ncclResult_t progress(nccl_communicator *self)
{
  ncclResult_t state = ncclInvalidUsage;
  pthread_mutex_lock(&self->lock);
  ncclResult_t code = self->comm ? self->nccl->ncclCommGetAsyncError(self->comm, &state) : ncclInvalidUsage;
  pthread_mutex_unlock(&self->lock);
  return code == ncclSuccess ? state : code;
}

/* Waits until `is_over` says so, an operation fails, the time is up or somebody aborts. */
static flow_status wait_until(nccl_communicator *self, const char *operation, int (*is_over)(nccl_communicator *self, ncclResult_t state))
{
  int64_t start = flow_now_nanoseconds(), most = (int64_t)(self->base.timeout * 1e9);
  for (;;) {
    if (flow_failure_is_set(&self->failure)) return fail_broken(self, operation);
    ncclResult_t state = progress(self);
    if (is_over(self, state)) return FLOW_OK;
    if (flow_failure_is_set(&self->failure)) return fail_broken(self, operation);
    if (state != ncclSuccess && state != ncclInProgress) return fail_nccl(self, operation, state);
    if (self->ended && __atomic_load_n(self->ended, __ATOMIC_ACQUIRE)) {
      give_up(self, FLOW_ABORTED, "another rank cannot be opened");
      return fail_broken(self, operation);
    }
    if (flow_now_nanoseconds() - start > most) {
      char reason[FLOW_REASON_SIZE];
      snprintf(reason, sizeof reason, "not every rank came within %g s (rank %d of %d waited in %s; NCCL does not tell for whom)",
               self->base.timeout, self->base.rank, self->base.size, operation);
      give_up(self, FLOW_TIMED_OUT, reason);
      return fail_broken(self, operation);
    }
    nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
  }
}

/* For data operations: NCCL has put everything on the stream. The sums themselves may come later, in the stream's order. */
static int is_enqueued(nccl_communicator *self, ncclResult_t state)
{
  (void)self;
  return state == ncclSuccess;
}

/* For the barrier: the stream has nothing left to do. A failed kernel counts as done; flow_runtime_synchronize then tells it. */
static int is_carried_out(nccl_communicator *self, ncclResult_t state)
{
  int before;
  if (flow_runtime_enter(self->queue->device, &before) != FLOW_OK) return 0;
  cudaError_t error = cudaStreamQuery(self->queue->stream);
  flow_runtime_leave(self->queue->device, before);
  return state == ncclSuccess && error != cudaErrorNotReady;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

/* A call of NCCL's that enqueues something, with the device chosen and the communicator held. */
typedef struct operation {
  const char *name;
  enum { ALL_REDUCE, BROADCAST, ALL_GATHER } kind;
  const void *from;
  void       *to;
  size_t      count;
  ncclDataType_t type;
  int         root;
} operation;

static ncclResult_t enqueue(const nccl_communicator *self, const operation *o)
{
  const flow_nccl *nccl = self->nccl;
  cudaStream_t stream = self->queue->stream;
  switch (o->kind) {
    case ALL_REDUCE: return nccl->ncclAllReduce(o->from, o->to, o->count, o->type, ncclSum, self->comm, stream);
    case BROADCAST:  return nccl->ncclBroadcast(o->from, o->to, o->count, o->type, o->root, self->comm, stream);
    default:         return nccl->ncclAllGather(o->from, o->to, o->count, o->type, self->comm, stream);
  }
}

/* The lock is held for the call only, not for the waiting, so that abort gets in between. Looks at the failure twice: an abort may come
 * while this waits for the lock, and then `comm` is NULL. */
static flow_status call(nccl_communicator *self, const operation *o)
{
  int before;
  if (flow_failure_is_set(&self->failure)) return fail_broken(self, o->name);
  FLOW_TRY(flow_runtime_flush(self->queue));
  FLOW_TRY(flow_runtime_enter(self->queue->device, &before));
  pthread_mutex_lock(&self->lock);
  ncclResult_t code = self->comm ? enqueue(self, o) : ncclInvalidUsage;
  pthread_mutex_unlock(&self->lock);
  flow_runtime_leave(self->queue->device, before);
  if (flow_failure_is_set(&self->failure)) return fail_broken(self, o->name);
  if (code != ncclSuccess && code != ncclInProgress) return fail_nccl(self, o->name, code);
  return wait_until(self, o->name, is_enqueued);
}

static flow_status all_reduce(flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count)
{
  operation o = { .name = "all_reduce", .kind = ALL_REDUCE, .from = data, .to = data, .count = (size_t)count,
                  .type = dtype == FLOW_FLOAT32 ? ncclFloat32 : ncclFloat64 };
  return call((nccl_communicator *)communicator, &o);
}

static flow_status broadcast(flow_communicator *communicator, int from, void *data, int64_t bytes)
{
  operation o = { .name = "broadcast", .kind = BROADCAST, .from = data, .to = data, .count = (size_t)bytes, .type = ncclUint8,
                  .root = from };
  return call((nccl_communicator *)communicator, &o);
}

static flow_status all_gather(flow_communicator *communicator, const void *mine, int64_t bytes, void *all)
{
  operation o = { .name = "all_gather", .kind = ALL_GATHER, .from = mine, .to = all, .count = (size_t)bytes, .type = ncclUint8 };
  return call((nccl_communicator *)communicator, &o);
}

static flow_status make_scratch(nccl_communicator *self)
{
  void *scratch;
  FLOW_TRY(flow_runtime_allocate(self->queue, sizeof *self->scratch, &scratch));
  self->scratch = scratch;
  return flow_runtime_clear(self->queue, scratch, sizeof *self->scratch);
}

/* A sum over one number, which cannot be complete before every rank has come. The number is the communicator's, made at the first
 * barrier and never looked at. */
static flow_status barrier(flow_communicator *communicator)
{
  nccl_communicator *self = (nccl_communicator *)communicator;
  if (!self->scratch) FLOW_TRY(make_scratch(self));
  operation o = { .name = "barrier", .kind = ALL_REDUCE, .from = self->scratch, .to = self->scratch, .count = 1, .type = ncclFloat32 };
  FLOW_TRY(call(self, &o));
  FLOW_TRY(wait_until(self, "barrier", is_carried_out));
  return flow_runtime_synchronize(self->queue);
}

static void abort_calls(flow_communicator *communicator, const char *reason)
{
  give_up((nccl_communicator *)communicator, FLOW_ABORTED, reason);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------------------- */

/* Aborts also where all is well: NCCL's other ways to close wait for the other ranks. Recordings with its operations are gone. */
static void close_rank(flow_communicator *communicator)
{
  nccl_communicator *self = (nccl_communicator *)communicator;
  cudaStream_t stream = flow_failure_is_set(&self->failure) ? NULL : self->queue->stream;
  if (self->comm) end_communicator(self->nccl, self->comm, self->queue->device, stream);
  if (self->aborting) flow_thread_join(&self->aborter);
  flow_runtime_release(self->queue, self->scratch);
  pthread_mutex_destroy(&self->lock);
  flow_free(self);
}

/* Rank 0 leaves the group's id for the others. */
static flow_status agree_on_id(nccl_communicator *self, const flow_transport_options *options, ncclUniqueId *id)
{
  char key[512];
  snprintf(key, sizeof key, "nccl/%.400s", options->group);
  if (self->base.rank == 0) {
    ncclResult_t code = self->nccl->ncclGetUniqueId(id);
    if (code != ncclSuccess) return fail_nccl(self, "opening the transport nccl", code);
    return options->store->set(options->store->state, key, id, sizeof *id);
  }
  void *bytes;
  size_t count;
  FLOW_TRY(options->store->get(options->store->state, key, options->timeout, &bytes, &count));
  flow_status status = FLOW_OK;
  if (count == sizeof *id) memcpy(id, bytes, sizeof *id);
  else status = flow_fail(FLOW_CORRUPT_DATA, "opening the transport nccl: rank 0 left an id of %.0f bytes, not %.0f", (double)count,
                          (double)sizeof *id);
  flow_free(bytes);
  return status;
}

/* Every rank calls this; NCCL connects them in its own threads while this one waits. If it fails the communicator may be half open:
 * close_rank aborts it. */
static flow_status join(nccl_communicator *self, const ncclUniqueId *id)
{
  int before;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  FLOW_TRY(flow_runtime_enter(self->queue->device, &before));
  pthread_mutex_lock(&self->lock);
  ncclResult_t code = self->nccl->ncclCommInitRankConfig(&self->comm, self->base.size, *id, self->base.rank, &config);
  pthread_mutex_unlock(&self->lock);
  flow_runtime_leave(self->queue->device, before);
  if (code != ncclSuccess && code != ncclInProgress) return fail_nccl(self, "opening the transport nccl", code);
  return wait_until(self, "opening the transport nccl", is_enqueued);
}

/* NCCL lets ranks of one process write to each other's data, unless NCCL_P2P_DIRECT_DISABLE is set: so these have to be within reach. */
static flow_status meet(nccl_communicator *self, const flow_transport_options *options)
{
  ncclUniqueId id;
  FLOW_TRY(flow_runtime_open_to_peers(self->queue->device));
  FLOW_TRY(agree_on_id(self, options, &id));
  return join(self, &id);
}

static flow_status check_options(int rank, const flow_transport_options *options, char *why, size_t size)
{
  if (!flow_cuda_library_text(FLOW_CUDA_NCCL, why, size)) return flow_fail(FLOW_NOT_FOUND, "the transport nccl: %s", why);
  if (rank < 0) return flow_fail(FLOW_INVALID_ARGUMENT, "the transport nccl has no launcher: it needs rank and size");
  if (!options->queue || !options->store) return flow_fail(FLOW_INVALID_ARGUMENT, "the transport nccl needs a device's queue and a store");
  return FLOW_OK;
}

static flow_status open_rank(int rank, int size, const flow_transport_options *options, flow_communicator **out)
{
  char why[512];
  void *made;
  FLOW_TRY(check_options(rank, options, why, sizeof why));
  FLOW_TRY(flow_alloc_zero(sizeof(nccl_communicator), &made));
  nccl_communicator *self = made;
  self->base = (flow_communicator){ &flow_cuda_nccl_transport, rank, size, options->timeout };
  self->nccl = flow_cuda_nccl();
  self->queue = options->queue;
  pthread_mutex_init(&self->lock, NULL);
  flow_failure_clear(&self->failure);
  self->ended = options->ended;
  flow_status status = meet(self, options);
  self->ended = NULL;
  if (status == FLOW_OK) *out = &self->base;
  else close_rank(&self->base);
  return status;
}

const flow_transport flow_cuda_nccl_transport = {
  .name = "nccl", .open = open_rank, .all_reduce = all_reduce, .broadcast = broadcast, .all_gather = all_gather, .barrier = barrier,
  .abort = abort_calls, .close = close_rank,
};
