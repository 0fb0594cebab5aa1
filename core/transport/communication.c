/* communication.c: a queue of sums that two threads work off: the communication thread, and a thread that waits for a sum.
 *
 * `posted` counts the sums in the queue, `claimed` those that a thread has taken up, `completed` those that are over; a sum may be
 * claimed only when all before it are completed, so that one thread at a time uses the communicator. A caller who waits takes part:
 * when it comes before the communication thread has woken up, no time is lost to handing over. For the same reason the thread is not
 * woken for a small sum while it sleeps: nearly always the caller waits for its result next; if not, the next sum wakes the thread.
 *
 * Where all cores are busy with computing, on a machine that the workers share, the thread is not called at all: it would take a core from
 * what it is to be overlapped with, of this worker or another.
 *
 * What is not a sum is done by the caller itself, when the queue is empty. */
#include "transport/communication.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/futex.h"
#include "base/memory.h"
#include "base/team.h"
#include "base/failure.h"
#include "base/thread.h"
#include "transport/pairwise_sum.h"
#include "transport/shared.h"

enum {
  QUEUE = 64,                            /* a power of two, so that the counters may wrap */
  SMALL_BYTES = 16384,                   /* a sum that takes about as long as waking a thread */
  SPIN_NANOSECONDS = 20000, PAUSES_PER_LOOK = 16,
};

typedef struct sum {
  flow_dtype dtype;
  void      *data;
  int64_t    count, ticket;
} sum;

struct flow_communication {
  flow_exchange      exchange;           /* first: callers get its address */
  flow_communicator *communicator;
  flow_pairwise_sum *pairwise;           /* NULL: the transport adds up */
  flow_thread        thread;
  int                neighbours;         /* workers that are known to compute on this machine, this one among them */
  int64_t            begun, known;       /* the caller's: the last ticket, and the last that it knows to be completed */
  /* Written by the caller before `posted` says so; read by the thread that claimed it. A place is used again when its sum is completed
   * (begin waits for that). */
  sum                queue[QUEUE];
  _Atomic unsigned   posted, claimed;    /* sums, modulo 2^32, as completed */
  _Atomic int        completed;          /* callers sleep on it */
  _Atomic int        waiting;            /* a caller does */
  _Atomic int        signal;             /* the thread sleeps on it: changes when it has something to do */
  _Atomic int        sleeping;           /* the thread does */
  _Atomic int        stop;
  _Atomic int64_t    failed_from;        /* sums from this ticket on have failed; 0: none. Set after the failure */
  flow_failure       failure;
};

/* ---- both threads -------------------------------------------------------------------------------------------------------------- */

/* The failure is written before `failed_from` says that there is one. */
static void keep_failure(flow_communication *self, flow_status status, int64_t from)
{
  flow_failure_take(&self->failure, status);
  atomic_store(&self->failed_from, from);
}

/* On the thread that claimed the sum. Breaks the communicator if it fails (transport.h). */
static flow_status add_up(flow_communication *self, const sum *todo)
{
  if (self->pairwise) return flow_pairwise_sum_run(self->pairwise, self->communicator, todo->dtype, todo->data, todo->count);
  return flow_communicator_all_reduce(self->communicator, todo->dtype, todo->data, todo->count);
}

/* Carries out the next sum; 0 if there is none or the other thread is at it. The order of the loads matters: `completed` first. If
 * another thread completes that sum in between, the exchange fails, since `claimed` has moved on with it; so a sum never runs twice,
 * and none runs before the one before it is over. After the first failure sums are completed without being made: their waiters have to
 * return. */
static int run_next(flow_communication *self)
{
  unsigned next = (unsigned)atomic_load(&self->completed);
  if (atomic_load(&self->posted) == next) return 0;
  if (!atomic_compare_exchange_strong(&self->claimed, &next, next + 1)) return 0;
  sum *todo = &self->queue[next % QUEUE];
  if (!atomic_load(&self->failed_from)) {
    flow_status status = add_up(self, todo);
    if (status != FLOW_OK) keep_failure(self, status, todo->ticket);
  }
  atomic_store(&self->completed, (int)(next + 1));
  if (atomic_load(&self->waiting)) flow_futex_wake(&self->completed);
  return 1;
}

/* Spins, then sleeps, until the number is not `old`; `asleep` tells the thread that changes it that somebody sleeps. */
static void wait_for_change(_Atomic int *number, int old, _Atomic int *asleep)
{
  int64_t end = flow_now_nanoseconds() + SPIN_NANOSECONDS;
  do {
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
      if (atomic_load_explicit(number, memory_order_acquire) != old) return;
      flow_pause_briefly();
    }
  } while (flow_now_nanoseconds() < end);
  /* Sequentially consistent: either the change is seen here or the sleeper is seen there. */
  atomic_store(asleep, 1);
  while (atomic_load(number) == old) flow_futex_sleep(number, old, -1);
  atomic_store(asleep, 0);
}

/* ---- the communication thread -------------------------------------------------------------------------------------------------- */

/* The thread's loop. `signal` and `stop` are read before the queue is worked off: what is posted after that changes `signal`, so that the
 * wait returns at once and nothing is missed. With `stop` set the queue is worked off once more before the thread ends. */
static void *run_thread(void *argument)
{
  flow_communication *self = argument;
  for (;;) {
    int seen = atomic_load(&self->signal), stop = atomic_load(&self->stop);
    while (run_next(self));
    if (stop) return NULL;
    wait_for_change(&self->signal, seen, &self->sleeping);
  }
}

/* Sequentially consistent with wait_for_change: either the thread sees the new signal, or this sees that it sleeps. */
static void call_thread(flow_communication *self)
{
  atomic_fetch_add(&self->signal, 1);
  if (atomic_load(&self->sleeping)) flow_futex_wake(&self->signal);
}

/* ---- the caller ---------------------------------------------------------------------------------------------------------------- */

/* The failure that ended the queue, as the calling thread's error. Only after `failed_from` is set. */
static flow_status fail_again(const flow_communication *self)
{
  return flow_failure_raise(&self->failure);
}

/* Whether the thread may work beside the caller: over a network it mostly waits; among neighbours a core has to be free while all
 * compute. */
static int has_spare_core(const flow_communication *self)
{
  return self->neighbours == 1 || flow_core_count() > self->neighbours * flow_team_size();
}

/* Works off the queue together with the thread, until the sum is over. Tickets are compared with the low 32 bits of the counter: at
 * most QUEUE of them are under way, so that the difference has the right sign. */
static void wait_for_sum(flow_communication *self, int64_t ticket)
{
  if (ticket <= self->known) return;
  for (;;) {
    int completed = atomic_load(&self->completed);
    if ((int)((unsigned)completed - (unsigned)ticket) >= 0) break;
    if (!run_next(self)) wait_for_change(&self->completed, completed, &self->waiting);
  }
  self->known = ticket;
  /* What was begun later is the thread's, which may not have taken it up while this one had a sum in hand. */
  if (ticket < self->begun && has_spare_core(self)) call_thread(self);
}

/* Waits where QUEUE sums are not over yet. The caller's data stay untouched until finish(). The dtype and the size are checked when the
 * sum is made: what is wrong with them fails in finish(). */
static flow_status begin(flow_exchange *exchange, int dtype, void *data, int64_t count, int64_t *ticket)
{
  flow_communication *self = (flow_communication *)exchange;
  if (atomic_load(&self->failed_from)) return fail_again(self);
  wait_for_sum(self, self->begun + 1 - QUEUE);
  int idle = (unsigned)atomic_load(&self->completed) == (unsigned)self->begun;
  *ticket = ++self->begun;
  self->queue[(unsigned)(*ticket - 1) % QUEUE] = (sum){ (flow_dtype)dtype, data, count, *ticket };
  atomic_store(&self->posted, (unsigned)*ticket);
  /* The elements are counted as if they had 8 bytes, the largest dtype: 16 KiB of float64, 8 KiB of float32. */
  if ((!idle || count > SMALL_BYTES / 8) && has_spare_core(self)) call_thread(self);
  return FLOW_OK;
}

/* Waits for one sum. A failure of a later sum is not this one's: what was completed before it is valid. */
static flow_status finish(flow_exchange *exchange, int64_t ticket)
{
  flow_communication *self = (flow_communication *)exchange;
  if (ticket < 1 || ticket > self->begun) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "sum %lld cannot be finished: 1 to %lld were begun", (long long)ticket, (long long)self->begun);
  }
  wait_for_sum(self, ticket);
  int64_t failed_from = atomic_load(&self->failed_from);
  return failed_from && failed_from <= ticket ? fail_again(self) : FLOW_OK;
}

/* From here to the next begin the communicator is the caller's. */
static flow_status drain(flow_communication *self)
{
  wait_for_sum(self, self->begun);
  return atomic_load(&self->failed_from) ? fail_again(self) : FLOW_OK;
}

/* A failed call breaks the communicator: later sums fail, too, from the next ticket on. */
static flow_status keep(flow_communication *self, flow_status status)
{
  if (status != FLOW_OK) keep_failure(self, status, self->begun + 1);
  return status;
}

/* This call and those below use the communicator on the caller's thread: after drain() the queue is empty, and the communication thread
 * touches the communicator only for sums in it. Their failures end the queue, too, since the other ranks no longer know which call comes
 * next. */
static flow_status all_gather(flow_exchange *exchange, const void *mine, int64_t bytes, void *all)
{
  flow_communication *self = (flow_communication *)exchange;
  FLOW_TRY(drain(self));
  return keep(self, flow_communicator_all_gather(self->communicator, mine, bytes, all));
}

static flow_status gather(flow_exchange *exchange, const flow_gathering *arrays, int count)
{
  flow_communication *self = (flow_communication *)exchange;
  FLOW_TRY(drain(self));
  return keep(self, flow_communicator_gather(self->communicator, arrays, count));
}

/* With sums under way the communicator is the thread's: then it does nothing. */
static flow_status start_gather(flow_exchange *exchange, const flow_gathering *first)
{
  flow_communication *self = (flow_communication *)exchange;
  if ((unsigned)atomic_load(&self->completed) != (unsigned)self->begun || atomic_load(&self->failed_from)) return FLOW_OK;
  return keep(self, flow_communicator_start_gather(self->communicator, first));
}

static flow_status collect(flow_exchange *exchange, void *const *arrays, int count, int64_t unit, const int64_t *first,
                           int64_t *received)
{
  flow_communication *self = (flow_communication *)exchange;
  for (int w = 0; w < exchange->workers; w++) received[w] = 0;
  FLOW_TRY(drain(self));
  return keep(self, flow_communicator_collect(self->communicator, arrays, count, unit, first, received));
}

static flow_status share_region(flow_exchange *exchange, int64_t bytes, flow_shared_region *out)
{
  flow_communication *self = (flow_communication *)exchange;
  *out = (flow_shared_region){ .number = 0 };
  FLOW_TRY(drain(self));
  return keep(self, flow_communicator_share_region(self->communicator, bytes, out));
}

flow_status flow_communication_broadcast(flow_communication *self, int from, void *data, int64_t bytes)
{
  FLOW_TRY(drain(self));
  return keep(self, flow_communicator_broadcast(self->communicator, from, data, bytes));
}

flow_status flow_communication_barrier(flow_communication *self)
{
  FLOW_TRY(drain(self));
  return keep(self, flow_communicator_barrier(self->communicator));
}

flow_exchange *flow_communication_exchange(flow_communication *self)
{
  return &self->exchange;
}

/* ---- starting and stopping ----------------------------------------------------------------------------------------------------- */

static void release(flow_communication *self)
{
  flow_pairwise_sum_release(self->pairwise);
  flow_free(self);
}

/* Takes no ownership of the communicator. pairwise: sums are made from gathered elements in the fixed order of tensor/pairwise.h, which
 * costs more bytes (pairwise_sum.h). On failure nothing is left, and *out is NULL. */
flow_status flow_communication_start(flow_communicator *communicator, int pairwise, flow_communication **out)
{
  *out = NULL;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_communication), &block));
  flow_communication *self = block;
  flow_status status = pairwise ? flow_pairwise_sum_new(communicator->size, &self->pairwise) : FLOW_OK;
  if (status != FLOW_OK) {
    release(self);
    return status;
  }
  self->exchange = (flow_exchange){
    .workers = communicator->size,
    .worker = communicator->rank,
    .begin = begin,
    .finish = finish,
    .all_gather = all_gather,
    .gather = gather,
    .start_gather = start_gather
  };
  /* The two that only memory can do: callers see by NULL that they have to do without. */
  if (flow_communicator_is_shared(communicator)) self->exchange.collect = collect, self->exchange.share_region = share_region;
  self->communicator = communicator;
  self->neighbours = flow_communicator_neighbours(communicator);

  int error = flow_thread_start(&self->thread, "flow-sums", run_thread, self);
  if (error) {
    release(self);
    return flow_fail(FLOW_IO_ERROR, "the communication thread cannot start: %s", strerror(error));
  }
  *out = self;
  return FLOW_OK;
}

/* The thread works off what was begun, then ends. The communicator stays the caller's. */
void flow_communication_stop(flow_communication *self)
{
  if (!self) return;
  atomic_store(&self->stop, 1);
  call_thread(self);
  flow_thread_join(&self->thread);
  release(self);
}
