/* core/plugins/mpi: sums over processes that mpirun or srun started, by MPI; built into libflow_mpi.so.
 *
 * plugin.c: the transport's table (transport/transport.h). A communicator is a duplicate of MPI_COMM_WORLD, so that no message of a host's
 * own MPI calls is taken for one of ours. Every operation is a non-blocking one that the calling thread drives by MPI_Test: that is
 * how a timeout and an abort get through, and MPI makes no progress by itself anyway.
 *
 * A non-blocking collective cannot be cancelled. When one is given up, nothing here calls MPI again in this process: then MPI does not
 * touch the caller's memory any more. The job has to be started again, as MPI's launchers do it. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/futex.h"
#include "base/plugin.h"
#include "communicator.h"
#include "process.h"

enum {
  MOST_BYTES = 1 << 30,                 /* of one MPI call, whose counts are of type int */
  MOST_SMALL = 4096,                    /* elements that are one call of MPI's own */
  TESTS_PER_LOOK = 16,                  /* at the clock */
  SPIN_NANOSECONDS = 200000,            /* of calls that last longer, other threads may have the core in between, */
  YIELD_NANOSECONDS = 100000000,        /* and of those that wait for a late rank most of it */
  NAP_NANOSECONDS = 200000,
};

static const flow_transport transport;
static const flow_plugin_services *_Atomic core;

const flow_plugin_services *flow_mpi_services(void)
{
  return atomic_load_explicit(&core, memory_order_acquire);
}

/* Only after the failure was set. */
static flow_status fail_broken(const mpi_communicator *self, const char *operation)
{
  return flow_mpi_services()->fail(self->failure.status, "%s: %s", operation, self->failure.message);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------------------- */

/* An error of MPI breaks the communicator, as the contract of transports says. */
static flow_status fail_mpi(mpi_communicator *self, const char *operation, int code)
{
  char why[MPI_MAX_ERROR_STRING] = "";
  int length;
  MPI_Error_string(code, why, &length);
  flow_failure_set(&self->failure, FLOW_IO_ERROR, why, NULL);
  return fail_broken(self, operation);
}

/* Writes the ranks whose requests are not complete; returns how many. Two requests for each other rank, the next one first
 * (flow_mpi_complete). The text stops growing when less than a number fits. */
static int list_missing(const mpi_communicator *self, int count, MPI_Request *requests, char *text, size_t size)
{
  int missing = 0;
  size_t length = 0;
  for (int i = 0; i < count; i += 2) {
    int done = 0;
    if (MPI_Testall(2, &requests[i], &done, MPI_STATUSES_IGNORE) == MPI_SUCCESS && done) continue;
    missing++;
    int rank = (self->base.rank + 1 + i / 2) % self->base.size;
    if (length < size - 16) length += (size_t)snprintf(text + length, size - length, "%s%d", missing > 1 ? ", " : "", rank);
  }
  return missing;
}

/* The time is over. Names the ranks of which messages have not come, where there are messages. MPI is not used again, since what was
 * begun cannot be taken back. */
static flow_status give_up(mpi_communicator *self, const char *operation, int count, MPI_Request *requests)
{
  char ranks[FLOW_REASON_SIZE / 2] = "", reason[FLOW_REASON_SIZE];
  int missing = count == 1 ? 0 : list_missing(self, count, requests, ranks, sizeof ranks);
  if (count > 1 && missing == 0) return FLOW_OK;                      /* the last rank is just coming */
  if (missing > 0) {
    snprintf(reason, sizeof reason, "%s %s did not come within %g s (rank %d of %d waited in %s)", missing > 1 ? "ranks" : "rank", ranks,
             self->base.timeout, self->base.rank, self->base.size, operation);
  } else {
    snprintf(reason, sizeof reason, "not every rank came within %g s (rank %d of %d waited in %s)",
             self->base.timeout, self->base.rank, self->base.size, operation);
  }
  flow_failure_set(&self->failure, FLOW_TIMED_OUT, reason, NULL);
  flow_mpi_abandon();
  return fail_broken(self, operation);
}

/* Lets others have the core, the more the longer the operation lasts. */
static void rest(int64_t waited)
{
  if (waited < SPIN_NANOSECONDS) return;
  if (waited < YIELD_NANOSECONDS) sched_yield();
  else nanosleep(&(struct timespec){ .tv_nsec = NAP_NANOSECONDS }, NULL);
}

/* MPI moves data only while it is called: it is asked again and again, at first without a pause. An abort and the time limit are looked
 * at in between. `entered` is written before each row of tests: if MPI does not come back, its age tells another thread (inside). An
 * abort is seen after TESTS_PER_LOOK tests. */
static flow_status drive(mpi_communicator *self, const char *operation, int code, int count, MPI_Request *requests)
{
  int64_t start = flow_now_nanoseconds(), most = (int64_t)(self->base.timeout * 1e9), waited = 0;
  for (int done = 0; code == MPI_SUCCESS;) {
    atomic_store_explicit(&self->entered, start + waited, memory_order_relaxed);
    for (int i = 0; i < TESTS_PER_LOOK && code == MPI_SUCCESS; i++) {
      code = MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
      if (done) return code == MPI_SUCCESS ? FLOW_OK : fail_mpi(self, operation, code);
    }
    if (flow_failure_is_set(&self->failure)) {
      flow_mpi_abandon();
      return fail_broken(self, operation);
    }
    waited = flow_now_nanoseconds() - start;
    if (waited > most) return give_up(self, operation, count, requests);
    rest(waited);
  }
  flow_mpi_abandon();
  return fail_mpi(self, operation, code);
}

flow_status flow_mpi_complete(mpi_communicator *self, const char *operation, int code, int count, MPI_Request *requests)
{
  flow_status status = drive(self, operation, code, count, requests);
  atomic_store_explicit(&self->entered, 0, memory_order_relaxed);
  return status;
}

/* Any thread. */
static int64_t inside(const flow_communicator *communicator)
{
  return atomic_load_explicit(&((const mpi_communicator *)communicator)->entered, memory_order_relaxed);
}

static flow_status complete(mpi_communicator *self, const char *operation, int code, MPI_Request *request)
{
  return flow_mpi_complete(self, operation, code, 1, request);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

static flow_status check_whole(const mpi_communicator *self, const char *operation)
{
  return flow_failure_is_set(&self->failure) ? fail_broken(self, operation) : FLOW_OK;
}

/* Small sums are MPI's own, whose order of addition is the engine's; large ones are added in the order of the ranks (sum.c). The sum of one
 * rank is what it has. */
static flow_status all_reduce(flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count)
{
  mpi_communicator *self = (mpi_communicator *)communicator;
  FLOW_TRY(check_whole(self, "all_reduce"));
  if (self->base.size == 1) return FLOW_OK;
  if (count > MOST_SMALL) return flow_mpi_sum(self, dtype, data, count);
  MPI_Request request;
  int code = MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, dtype == FLOW_FLOAT32 ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM, self->comm, &request);
  return complete(self, "all_reduce", code, &request);
}

/* In pieces, since MPI counts bytes by an int. */
static flow_status broadcast(flow_communicator *communicator, int from, void *data, int64_t bytes)
{
  mpi_communicator *self = (mpi_communicator *)communicator;
  FLOW_TRY(check_whole(self, "broadcast"));
  for (int64_t at = 0; at < bytes; at += MOST_BYTES) {
    int part = (int)(bytes - at < MOST_BYTES ? bytes - at : MOST_BYTES);
    MPI_Request request;
    int code = MPI_Ibcast((char *)data + at, part, MPI_BYTE, from, self->comm, &request);
    FLOW_TRY(complete(self, "broadcast", code, &request));
  }
  return FLOW_OK;
}

/* MPI forbids a buffer that is both: a rank whose part is at its place already says so by MPI_IN_PLACE. */
static flow_status all_gather(flow_communicator *communicator, const void *mine, int64_t bytes, void *all)
{
  mpi_communicator *self = (mpi_communicator *)communicator;
  FLOW_TRY(check_whole(self, "all_gather"));
  if (bytes > INT_MAX) {
    return flow_mpi_services()->fail(FLOW_INVALID_ARGUMENT, "all_gather: %lld bytes a rank; MPI takes at most %d", (long long)bytes,
                                     INT_MAX);
  }
  if ((const char *)mine == (const char *)all + self->base.rank * bytes) mine = MPI_IN_PLACE;
  MPI_Request request;
  int code = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, self->comm, &request);
  return complete(self, "all_gather", code, &request);
}

static flow_status barrier(flow_communicator *communicator)
{
  mpi_communicator *self = (mpi_communicator *)communicator;
  FLOW_TRY(check_whole(self, "barrier"));
  MPI_Request request;
  int code = MPI_Ibarrier(self->comm, &request);
  return complete(self, "barrier", code, &request);
}

/* Any thread. The thread that drives MPI finds the failure at its next look. */
static void abort_calls(flow_communicator *communicator, const char *reason)
{
  flow_failure_set(&((mpi_communicator *)communicator)->failure, FLOW_ABORTED, reason, NULL);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------------------- */

/* After a failure nothing of MPI is called any more, not even to free the communicator. */
static void close_rank(flow_communicator *communicator)
{
  mpi_communicator *self = (mpi_communicator *)communicator;
  if (self->comm != MPI_COMM_NULL && !flow_failure_is_set(&self->failure) && flow_mpi_usable()) MPI_Comm_free(&self->comm);
  flow_mpi_leave(!flow_failure_is_set(&self->failure));
  if (!flow_failure_is_set(&self->failure)) flow_mpi_services()->free(self->requests);     /* else MPI still knows the messages' memory */
  flow_mpi_services()->free(self);
}

/* Our own communicator, whose errors come back to us. */
static flow_status duplicate_world(mpi_communicator *self)
{
  MPI_Request request;
  int code = MPI_Comm_idup(MPI_COMM_WORLD, &self->comm, &request);
  FLOW_TRY(complete(self, "opening the transport mpi", code, &request));
  code = MPI_Comm_set_errhandler(self->comm, MPI_ERRORS_RETURN);
  return code == MPI_SUCCESS ? FLOW_OK : fail_mpi(self, "opening the transport mpi", code);
}

/* Rank and size are the launcher's; what the caller says must agree. The communicator is a duplicate of the world, so that its messages
 * meet nobody else's. */
static flow_status open_rank(int rank, int size, const flow_transport_options *options, flow_communicator **out)
{
  const flow_plugin_services *services = flow_mpi_services();
  void *block;
  FLOW_TRY(services->alloc(sizeof(mpi_communicator), &block));
  mpi_communicator *self = block;
  flow_status status = flow_mpi_enter();
  if (status != FLOW_OK) {
    services->free(self);
    return status;
  }
  self->base = (flow_communicator){ &transport, 0, 0, options->timeout };
  self->comm = MPI_COMM_NULL;
  self->requests = NULL;
  atomic_init(&self->entered, 0);
  flow_failure_clear(&self->failure);
  MPI_Comm_rank(MPI_COMM_WORLD, &self->base.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &self->base.size);
  if (rank != -1 && (rank != self->base.rank || size != self->base.size)) {
    status = services->fail(FLOW_INVALID_ARGUMENT, "this process is to be rank %d of %d, but the launcher made it rank %d of %d", rank,
                            size, self->base.rank, self->base.size);
  } else {
    status = duplicate_world(self);
  }
  if (status == FLOW_OK) *out = &self->base;
  else close_rank(&self->base);
  return status;
}

static const flow_transport transport = {
  .name = "mpi", .open = open_rank, .all_reduce = all_reduce, .broadcast = broadcast, .all_gather = all_gather, .barrier = barrier,
  .abort = abort_calls, .close = close_rank, .inside = inside,
};

static void start(const flow_plugin_services *services)
{
  atomic_store_explicit(&core, services, memory_order_release);
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

__attribute__((visibility("default"))) extern const flow_plugin flow_plugin_table;
const flow_plugin flow_plugin_table = {
  .abi = FLOW_PLUGIN_ABI,
  .name = "mpi",
#if defined(OPEN_MPI)
  .libraries = "Open MPI " TEXT(OMPI_MAJOR_VERSION) "." TEXT(OMPI_MINOR_VERSION) "." TEXT(OMPI_RELEASE_VERSION),
#else
  .libraries = "MPI " TEXT(MPI_VERSION) "." TEXT(MPI_SUBVERSION),
#endif
  .start = start,
  .functions = &transport,
};
