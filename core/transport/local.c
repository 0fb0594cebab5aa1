/* local.c: replicas that are threads of one process add up through the memory they share.
 *
 * A call has two barriers. Before the first every rank writes where its data are; after it every rank does its share of the elements
 * for all: it adds them up in the order of the ranks, block by block, and writes the sum to everybody. The second keeps a rank from
 * going on before its data are complete. Which rank adds an element follows from the count alone, and does not change its sum.
 *
 * `phase` is what sleeping ranks watch: it grows by 2 with each barrier, and its lowest bit says that the group is broken. A rank
 * whose call fails may free its data at once, so it leaves only when no thread works on another's data any more (`working`). */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "base/futex.h"
#include "base/memory.h"
#include "base/failure.h"
#include "transport/group_call.h"
#include "transport/group_sum.h"
#include "transport/transport.h"

enum { SPIN_NANOSECONDS = 50000, PAUSES_PER_LOOK = 16, BLOCK_BYTES = 8192, LINE = 64 };

/* What a rank is about to do, for the others to see. */
typedef struct call {
  flow_group_call shown;
  void           *data;
  const void     *mine;           /* all_gather */
} call;

typedef struct member {
  call        calls[2];           /* the last two, in turns: after a barrier a rank is one call ahead of those who still look */
  _Atomic int barriers;           /* that this rank has come to; all ranks come to all of them */
  _Atomic int taken;              /* somebody opened this rank */
} __attribute__((aligned(LINE))) member;

struct flow_local_group {
  /* All ranks change these; `failure` is written by the rank or the thread that breaks the group first, before the phase says so. */
  _Atomic int   phase;
  /* At the barrier under way, 0 to size - 1: the last to come sets it back before it moves the phase on. */
  _Atomic int   arrived;
  /* Ranks that may sleep on the phase: the last to arrive saves a call of the system where there are none. */
  _Atomic int   sleepers;
  _Atomic int   working;          /* ranks between the barriers of a call, who use the data of others */
  _Atomic int   references;
  int           size;
  flow_failure  failure;
  member        members[];
};

typedef struct local_communicator {
  flow_communicator base;         /* first: it is what callers hold */
  flow_local_group *group;
  int               turn;         /* which of a member's calls is the present one */
  const void       *parts[];      /* [rank]: what is added up */
} local_communicator;

/* ---- groups ------------------------------------------------------------------------------------------------------------------ */

/* The caller gets one reference; each rank that is opened takes another, so that the group lives as long as any of them. */
flow_status flow_local_group_new(int size, flow_local_group **out)
{
  *out = NULL;
  if (size < 1 || size > FLOW_MOST_RANKS) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a group has 1 to %d ranks, got %d", FLOW_MOST_RANKS, size);
  }
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_local_group) + (size_t)size * sizeof(member), &block));
  flow_local_group *group = block;
  group->size = size;
  atomic_init(&group->references, 1);
  flow_failure_clear(&group->failure);
  *out = group;
  return FLOW_OK;
}

/* NULL is allowed. Acquire and release come with the sequentially consistent decrement: the last one sees all that the others wrote. */
void flow_local_group_release(flow_local_group *group)
{
  if (!group || atomic_fetch_sub(&group->references, 1) > 1) return;
  flow_free(group);
}

/* Waits until no rank works on another's data any more: the caller may free its own when this returns. */
static flow_status fail_broken(const flow_local_group *group, int what)
{
  while (atomic_load(&group->working) > 0) sched_yield();
  return flow_fail(group->failure.status, "%s: %s", flow_group_operation_name(what), group->failure.message);
}

/* The lowest bit of the phase wakes and stops all that wait, and those that come later. The reason comes first: a thread that sees the bit
 * finds it written. */
static void break_group(flow_local_group *group, flow_status status, const char *reason)
{
  flow_failure_set(&group->failure, status, reason, NULL);
  atomic_fetch_or(&group->phase, 1);
  flow_futex_wake(&group->phase);
}

/* ---- barriers ---------------------------------------------------------------------------------------------------------------- */

/* Writes the ranks that have not come to the barrier at which `self` waits; returns how many. */
static int list_missing(const local_communicator *self, flow_text *text)
{
  const flow_local_group *group = self->group;
  int here = atomic_load(&group->members[self->base.rank].barriers), missing = 0;
  for (int rank = 0; rank < group->size; rank++) {
    if ((int)((unsigned)atomic_load(&group->members[rank].barriers) - (unsigned)here) >= 0) continue;
    missing++;
    if (text->length < FLOW_REASON_SIZE / 2) flow_text_add(text, "%s%d", missing > 1 ? ", " : "", rank);
  }
  return missing;
}

/* The time is over: breaks the group, unless the last rank is just coming. */
static flow_status give_up(const local_communicator *self, int what)
{
  char ranks[FLOW_REASON_SIZE], reason[FLOW_REASON_SIZE];
  flow_text list = flow_text_into(ranks, sizeof ranks), text = flow_text_into(reason, sizeof reason);
  int missing = list_missing(self, &list);
  if (missing == 0) return FLOW_OK;
  flow_text_add(&text, "%s %s did not come within %g s (rank %d waited in %s)", missing > 1 ? "ranks" : "rank", ranks,
                self->base.timeout, self->base.rank, flow_group_operation_name(what));
  break_group(self->group, FLOW_TIMED_OUT, reason);
  return fail_broken(self->group, what);
}

/* Waits until the phase is not `old`: by spinning, since most ranks come within microseconds, then asleep. 0 when the time is over. The
 * timeout is at most a million seconds (transport.c), so that nanoseconds fit. */
static int wait_for_phase(flow_local_group *group, int old, double timeout)
{
  int64_t start = flow_now_nanoseconds(), end = start + (int64_t)(timeout * 1e9), spin_end = start + SPIN_NANOSECONDS;
  do {
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
      if (atomic_load_explicit(&group->phase, memory_order_acquire) != old) return 1;
      flow_pause_briefly();
    }
  } while (flow_now_nanoseconds() < spin_end);
  /* Sequentially consistent, as in the barrier: either the change is seen here or the sleeper is seen there. */
  atomic_fetch_add(&group->sleepers, 1);
  int64_t left = 1;
  while (atomic_load(&group->phase) == old && (left = end - flow_now_nanoseconds()) > 0) flow_futex_sleep(&group->phase, old, left);
  atomic_fetch_sub(&group->sleepers, 1);
  return left > 0;
}

/* A barrier: the last to arrive moves the phase on. The counter is set back before, so that the next barrier begins at 0. A rank that
 * has counted itself does not leave without the others: it returns with the phase moved on, or with the group broken. */
static flow_status wait_for_all(const local_communicator *self, int what)
{
  flow_local_group *group = self->group;
  int old = atomic_load(&group->phase);
  if (old & 1) return fail_broken(group, what);
  atomic_fetch_add(&group->members[self->base.rank].barriers, 1);
  if (atomic_fetch_add(&group->arrived, 1) + 1 == group->size) {
    atomic_store_explicit(&group->arrived, 0, memory_order_relaxed);
    atomic_fetch_add(&group->phase, 2);
    if (atomic_load(&group->sleepers) > 0) flow_futex_wake(&group->phase);
  } else {
    while (!wait_for_phase(group, old, self->base.timeout)) FLOW_TRY(give_up(self, what));
  }
  return atomic_load(&group->phase) & 1 ? fail_broken(group, what) : FLOW_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

static const call *call_of(const local_communicator *self, int rank)
{
  return &self->group->members[rank].calls[self->turn];
}

/* Every rank finds the same. The calls were written before the barrier and are not written again before the next one but one, so that
 * they are read without a lock. */
static flow_status check_agreement(const local_communicator *self, int what)
{
  const call *first = call_of(self, 0);
  for (int rank = 1; rank < self->base.size; rank++) {
    const call *other = call_of(self, rank);
    if (flow_group_calls_agree(&first->shown, &other->shown)) continue;
    char reason[FLOW_REASON_SIZE];
    flow_text text = flow_text_into(reason, sizeof reason);
    flow_group_calls_differ(&text, 0, &first->shown, rank, &other->shown);
    break_group(self->group, FLOW_INVALID_STATE, reason);
    return fail_broken(self->group, what);
  }
  return FLOW_OK;
}

/* Shows the others the call and waits until all have shown theirs. */
static flow_status meet(local_communicator *self, call mine)
{
  self->turn ^= 1;
  self->group->members[self->base.rank].calls[self->turn] = mine;
  FLOW_TRY(wait_for_all(self, mine.shown.what));
  return check_agreement(self, mine.shown.what);
}

/* From here to finish() the data of all ranks stay where they are. Sequentially consistent, as in break_group() and fail_broken():
 * either the broken phase is seen here, or the rank that leaves sees this one work. */
static flow_status start(local_communicator *self, call mine)
{
  FLOW_TRY(meet(self, mine));
  atomic_fetch_add(&self->group->working, 1);
  if (!(atomic_load(&self->group->phase) & 1)) return FLOW_OK;
  atomic_fetch_sub(&self->group->working, 1);
  return fail_broken(self->group, mine.shown.what);
}

/* No more of the others' data is used after this rank has left `working`; the barrier then waits until nobody uses this rank's. */
static flow_status finish(local_communicator *self, int what)
{
  atomic_fetch_sub(&self->group->working, 1);
  return wait_for_all(self, what);
}

/* Adds up bytes [first, last) of every rank into a block that stays in the cache, and writes it to every rank. */
static void sum_share(local_communicator *self, flow_dtype dtype, int64_t first, int64_t last)
{
  char block[BLOCK_BYTES] __attribute__((aligned(LINE)));
  for (int64_t at = first; at < last; at += BLOCK_BYTES) {
    int64_t bytes = last - at < BLOCK_BYTES ? last - at : BLOCK_BYTES;
    for (int rank = 0; rank < self->base.size; rank++) self->parts[rank] = (const char *)call_of(self, rank)->data + at;
    flow_sum_ranks((int)dtype, block, self->parts, self->base.size, bytes);
    for (int rank = 0; rank < self->base.size; rank++) memcpy((char *)call_of(self, rank)->data + at, block, (size_t)bytes);
  }
}

/* Each rank writes its own share of every rank's data: no element is written by two. */
static flow_status all_reduce(flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count)
{
  local_communicator *self = (local_communicator *)communicator;
  FLOW_TRY(start(self, (call){ .shown = { FLOW_GROUP_ALL_REDUCE, (int32_t)dtype, count }, .data = data }));
  int64_t first, last;
  flow_find_share(self->base.rank, self->base.size, count * flow_dtype_size(dtype), &first, &last);
  sum_share(self, dtype, first, last);
  return finish(self, FLOW_GROUP_ALL_REDUCE);
}

/* All ranks copy at once, each for itself. */
static flow_status broadcast(flow_communicator *communicator, int from, void *data, int64_t bytes)
{
  local_communicator *self = (local_communicator *)communicator;
  FLOW_TRY(start(self, (call){ .shown = { FLOW_GROUP_BROADCAST, from, bytes }, .data = data }));
  if (bytes > 0 && self->base.rank != from) memcpy(data, call_of(self, from)->data, (size_t)bytes);
  return finish(self, FLOW_GROUP_BROADCAST);
}

/* `all` may hold `mine` at its place already; then nothing is copied onto itself. */
static flow_status all_gather(flow_communicator *communicator, const void *mine, int64_t bytes, void *all)
{
  local_communicator *self = (local_communicator *)communicator;
  FLOW_TRY(start(self, (call){ .shown = { FLOW_GROUP_ALL_GATHER, 0, bytes }, .mine = mine }));
  for (int rank = 0; bytes > 0 && rank < self->base.size; rank++) {
    char *to = (char *)all + rank * bytes;
    if (to != call_of(self, rank)->mine) memcpy(to, call_of(self, rank)->mine, (size_t)bytes);
  }
  return finish(self, FLOW_GROUP_ALL_GATHER);
}

/* One of the two barriers of a call is enough: no rank looks at another's data. `working` is not counted for the same reason. */
static flow_status barrier(flow_communicator *communicator)
{
  return meet((local_communicator *)communicator, (call){ .shown = { .what = FLOW_GROUP_BARRIER } });
}

/* Any thread may call this; ranks that wait, and calls that come later, fail with FLOW_ABORTED. */
static void abort_group(flow_communicator *communicator, const char *reason)
{
  break_group(((local_communicator *)communicator)->group, FLOW_ABORTED, reason);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------------------- */

/* Does not wait for the other threads: the first call does. Each rank can be taken once. */
static flow_status open_rank(int rank, int size, const flow_transport_options *options, flow_communicator **out)
{
  flow_local_group *group = options->local;
  if (!group) return flow_fail(FLOW_INVALID_ARGUMENT, "the transport local needs a group of threads: flow_local_group_new makes one");
  if (size != group->size) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "rank %d of %d joins a group that was made for %d", rank, size, group->size);
  }
  void *block;
  FLOW_TRY(flow_alloc(sizeof(local_communicator) + (size_t)size * sizeof(void *), &block));
  if (atomic_exchange(&group->members[rank].taken, 1)) {
    flow_free(block);
    return flow_fail(FLOW_INVALID_STATE, "rank %d has joined the group before; a group is used once", rank);
  }
  atomic_fetch_add(&group->references, 1);
  local_communicator *self = block;
  self->base = (flow_communicator){ &flow_transport_local, rank, size, options->timeout };
  self->group = group;
  self->turn = 0;
  *out = &self->base;
  return FLOW_OK;
}

/* A rank that closes stays "taken": a group is used once, and a closed rank cannot be opened again. */
static void close_rank(flow_communicator *communicator)
{
  local_communicator *self = (local_communicator *)communicator;
  flow_local_group_release(self->group);
  flow_free(self);
}

const flow_transport flow_transport_local = {
  .name = "local", .open = open_rank, .all_reduce = all_reduce, .broadcast = broadcast, .all_gather = all_gather, .barrier = barrier,
  .abort = abort_group, .close = close_rank,
};
