/* shared.c: ranks that are processes of one machine add up through memory that they share.
 *
 * Every call is a row of steps. In a step each rank shows the others up to 64 KiB in one of its slots and then looks at theirs; it shows
 * two steps ahead of the one it looks at, so that no rank waits for each single step. No rank has to confirm that it has looked: a rank
 * shows step s when it has seen all others show s - 2, who have looked at s - 4 by then. What is shown is looked at for three more steps at
 * most, so that eight slots in turns are enough.
 *
 * Small sums are one step: show the elements, add up what all have shown. In larger ones each rank adds up its share of what was shown,
 * and the others fetch the result in a later step: then the bytes that a rank looks at do not grow with the ranks. The result is where
 * one of the elements lay, in the slot of the next rank: to get a line for reading and writing costs less than to get two. All sums are
 * added in the order of the ranks. */
#include "transport/shared.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/futex.h"
#include "base/memory.h"
#include "base/team.h"
#include "transport/group_sum.h"

enum {
  SPIN_NANOSECONDS = 50000, YIELD_NANOSECONDS = 5000, PAUSES_PER_LOOK = 16,
  NAP_NANOSECONDS = 20000000,            /* between looks for peers that have ended and failures whose wake went lost */
  DIRECT_BYTES = 8192,                   /* sums up to here are one step */
  BLOCK_BYTES = 8192,
};

typedef flow_shared_work work;


/* ---- failures ------------------------------------------------------------------------------------------------------------------ */

/* Only after is_broken() or flow_shared_break(), which have set our own copy. */
static flow_status fail_broken(const flow_shared *self, const work *of)
{
  return flow_fail(self->failure.status, "%s: %s", flow_group_operation_name(of->call.what), self->failure.message);
}

/* All slots of all ranks: a sleeper may wait at any of them, and which one is only known to itself. */
static void wake_all(flow_shared *self)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    for (unsigned slot = 0; slot < FLOW_SHARED_SLOTS; slot++) flow_shared_futex_wake(&flow_shared_slot_of(self, rank, slot)->sequence);
  }
}

/* Whether any rank has broken the communicator; if so, the reason is copied from the shared memory to our own failure. Nothing that is
 * read there is trusted: an unknown status becomes FLOW_IO_ERROR, and the text ends within its array. */
static int is_broken(flow_shared *self)
{
  if (flow_failure_is_set(&self->failure)) return 1;
  if (atomic_load_explicit(&self->group->broken, memory_order_acquire) != 2) return 0;
  char reason[FLOW_REASON_SIZE];
  memcpy(reason, self->group->reason, sizeof reason);
  reason[sizeof reason - 1] = 0;
  int status = atomic_load(&self->group->status);
  int known = status == FLOW_TIMED_OUT || status == FLOW_ABORTED || status == FLOW_INVALID_STATE;
  flow_failure_set(&self->failure, known ? (flow_status)status : FLOW_IO_ERROR, reason, NULL);
  return 1;
}

/* Any thread. The other ranks learn it, too, and those that wait wake up. The first reason in the group counts. */
void flow_shared_break(flow_shared *self, flow_status status, const char *reason)
{
  flow_shared_group *group = self->group;
  int nothing = 0;
  if (atomic_compare_exchange_strong(&group->broken, &nothing, 1)) {
    atomic_store(&group->status, (int)status);
    strncpy(group->reason, reason, sizeof group->reason - 1);
    atomic_store(&group->broken, 2);
  }
  if (!is_broken(self)) flow_failure_set(&self->failure, status, reason, NULL);     /* somebody is writing another, or died while he did */
  wake_all(self);
}

/* Step s is shown when the slot's number is s + 1: slots begin as 0, and the first step shows 1. Acquire: the data that were written before
 * the number are seen as well. */
static int has_shown(const flow_shared *self, int rank, unsigned step)
{
  return atomic_load_explicit(&flow_shared_slot_of(self, rank, step)->sequence, memory_order_acquire) == (int)(step + 1);
}

/* The time is over: breaks the group, unless the last rank is just coming. */
static flow_status give_up(flow_shared *self, const work *of, unsigned step)
{
  char ranks[FLOW_REASON_SIZE], reason[FLOW_REASON_SIZE];
  flow_text list = flow_text_into(ranks, sizeof ranks), text = flow_text_into(reason, sizeof reason);
  int missing = 0;
  for (int rank = 0; rank < self->base.size; rank++) {
    if (rank == self->base.rank || has_shown(self, rank, step)) continue;
    missing++;
    if (list.length < FLOW_REASON_SIZE / 2) flow_text_add(&list, "%s%d", missing > 1 ? ", " : "", rank);
  }
  if (missing == 0) return FLOW_OK;
  flow_text_add(&text, "%s %s did not come within %g s (rank %d waited in %s)", missing > 1 ? "ranks" : "rank", ranks,
                self->base.timeout, self->base.rank, flow_group_operation_name(of->call.what));
  flow_shared_break(self, FLOW_TIMED_OUT, reason);
  return fail_broken(self, of);
}

/* A rank that has not shown the step: is there anybody who could? `left` is read before the step is looked at once more: a rank shows
 * its last step before it leaves. */
static flow_status check_alive(flow_shared *self, const work *of, int rank, unsigned step)
{
  struct pollfd end = { .fd = self->peers[rank].watch, .events = POLLIN };
  int left = atomic_load(&self->group->members[rank].left), ended = end.fd >= 0 && poll(&end, 1, 0) > 0 && end.revents & POLLIN;
  if ((!left && !ended) || has_shown(self, rank, step)) return FLOW_OK;       /* it may have shown the step and left since we looked */
  char reason[FLOW_REASON_SIZE];
  flow_text text = flow_text_into(reason, sizeof reason);
  flow_text_add(&text, "rank %d (process %lld) has %s", rank, (long long)self->peers[rank].process,
                left ? "closed its end of the group" : "ended");
  flow_shared_break(self, FLOW_IO_ERROR, reason);
  return fail_broken(self, of);
}

/* ---- waiting ------------------------------------------------------------------------------------------------------------------- */

enum { SPIN_ALONE_NANOSECONDS = 1000000 };

/* Longer where every thread of every rank has a core to itself: a core that has slept begins slowly, above all that of a virtual machine.
 * Two workers of one thread on two cores train 2 to 5 % faster than with short spins (scripts/bench --scaling --only RING). Where others
 * need the cores they come first: spin() yields. */
static int64_t spin_nanoseconds(const flow_shared *self)
{
  return flow_core_count() >= self->base.size * flow_team_size() ? SPIN_ALONE_NANOSECONDS : SPIN_NANOSECONDS;
}

/* Soon it lets others have the core in between: the rank that we wait for may need it. */
static int spin(flow_shared *self, int rank, unsigned step)
{
  const int64_t start = flow_now_nanoseconds(), end = start + spin_nanoseconds(self);
  int64_t now;
  do {
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
      if (has_shown(self, rank, step)) return 1;
      flow_pause_briefly();
    }
    now = flow_now_nanoseconds();
    if (now > start + YIELD_NANOSECONDS) sched_yield();
  } while (!is_broken(self) && now < end);
  return has_shown(self, rank, step);
}

/* Spins first, since most waits are short, then sleeps in short naps: a rank that has died wakes nobody. */
static flow_status wait_for_rank(flow_shared *self, const work *of, int rank, unsigned step)
{
  if (has_shown(self, rank, step) || spin(self, rank, step)) return FLOW_OK;
  flow_shared_slot *slot = flow_shared_slot_of(self, rank, step);
  for (;;) {
    if (is_broken(self)) return fail_broken(self, of);
    FLOW_TRY(check_alive(self, of, rank, step));
    int64_t left = of->end - flow_now_nanoseconds();
    if (left <= 0) FLOW_TRY(give_up(self, of, step));
    /* Sequentially consistent, as in publish(): either the step is seen here or the sleeper is seen there. */
    atomic_fetch_add(&slot->sleepers, 1);
    int seen = atomic_load(&slot->sequence);
    if (seen != (int)(step + 1)) flow_shared_futex_sleep(&slot->sequence, seen, left < NAP_NANOSECONDS ? left : NAP_NANOSECONDS);
    atomic_fetch_sub(&slot->sleepers, 1);
    if (has_shown(self, rank, step)) return FLOW_OK;
  }
}

/* Ranks made different calls. The first rank that notices breaks the group with the reason, so that all ranks report the same sentence. */
static flow_status fail_disagreement(flow_shared *self, const work *of, int rank, const flow_group_call *first,
                                     const flow_group_call *other)
{
  char reason[FLOW_REASON_SIZE];
  flow_text text = flow_text_into(reason, sizeof reason);
  flow_group_calls_differ(&text, 0, first, rank, other);
  flow_shared_break(self, FLOW_INVALID_STATE, reason);
  return fail_broken(self, of);
}

/* All ranks have shown the step: do they call the same? Every rank finds the same answer. The calls are copied before they are compared,
 * since they are in memory that others write. */
static flow_status check_agreement(flow_shared *self, const work *of, unsigned step)
{
  flow_group_call first = flow_shared_slot_of(self, 0, step)->call;
  for (int rank = 1; rank < self->base.size; rank++) {
    flow_group_call other = flow_shared_slot_of(self, rank, step)->call;
    if (!flow_group_calls_agree(&first, &other)) return fail_disagreement(self, of, rank, &first, &other);
  }
  return FLOW_OK;
}

/* Rank after rank: the last to arrive decides the time anyway. */
static flow_status wait_for_all(flow_shared *self, const work *of, unsigned step)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    if (rank != self->base.rank) FLOW_TRY(wait_for_rank(self, of, rank, step));
  }
  return check_agreement(self, of, step);
}

/* What was shown becomes visible by the sequence number; threads that sleep on it are woken. The store releases the call and the data;
 * no rank looks at them before it has seen the number. */
static void publish(const flow_shared *self, const work *of, unsigned step)
{
  flow_shared_slot *slot = flow_shared_slot_of(self, self->base.rank, step);
  slot->call = of->call;
  atomic_store(&slot->sequence, (int)(step + 1));
  if (atomic_load(&slot->sleepers) != 0) flow_shared_futex_wake(&slot->sequence);
}

/* Runs one call: each of its steps is shown FLOW_SHARED_AHEAD steps before it is looked at. `self->step` counts the steps of all calls and
 * moves only when a call has succeeded; after a failure the group is broken for good, and of->looked says how many steps were looked at. */
flow_status flow_shared_run(flow_shared *self, work *of)
{
  unsigned first = self->step;
  if (is_broken(self)) return fail_broken(self, of);
  of->end = flow_now_nanoseconds() + (int64_t)(self->base.timeout * 1e9);
  for (int64_t step = 0; step < of->steps + FLOW_SHARED_AHEAD; step++) {
    if (step >= FLOW_SHARED_AHEAD) {
      FLOW_TRY(wait_for_all(self, of, first + (unsigned)(step - FLOW_SHARED_AHEAD)));
      of->look(self, of, step - FLOW_SHARED_AHEAD);
      of->looked++;
    }
    if (step < of->steps) {
      of->show(self, of, step);
      publish(self, of, first + (unsigned)step);
    }
  }
  self->step = first + (unsigned)of->steps;
  return FLOW_OK;
}

/* The table's functions have the base as their argument. */
static flow_status call(flow_communicator *self, work *of) { return flow_shared_run((flow_shared *)self, of); }

/* ---- sums ---------------------------------------------------------------------------------------------------------------------- */

/* Where the data of a call's step are that has `bytes` in all. */
static unsigned char *shown(const flow_shared *self, int rank, int64_t step, int64_t bytes)
{
  flow_shared_slot *slot = flow_shared_slot_of(self, rank, self->step + (unsigned)step);
  return bytes <= FLOW_SHARED_SMALL ? slot->small : slot->data;
}

/* The bytes of the part-th chunk; 0 after the last. */
static int64_t chunk_bytes(const work *of, int64_t part)
{
  int64_t left = of->bytes - part * FLOW_SHARED_BYTES;
  return left < 0 ? 0 : left < FLOW_SHARED_BYTES ? left : FLOW_SHARED_BYTES;
}

static void copy(void *to, const void *from, int64_t bytes)
{
  if (bytes > 0) memcpy(to, from, (size_t)bytes);
}

/* `data`, our own elements, become what all ranks have shown, added up in the order of the ranks; at most a block of it. `at` is where in
 * the step's data they are. Our own are not taken from our slot: its lines are in the caches of those who look at them. */
static void add_block(const flow_shared *self, const work *of, int64_t step, int64_t at, unsigned char *data, int64_t bytes)
{
  for (int rank = 0; rank < self->base.size; rank++)
    self->parts[rank] = rank == self->base.rank ? data : shown(self, rank, step, of->bytes) + at;
  flow_sum_ranks(of->call.detail, data, self->parts, self->base.size, bytes);
}

static void show_elements(flow_shared *self, const work *of, int64_t step)
{
  copy(shown(self, self->base.rank, step, of->bytes), of->data + step * FLOW_SHARED_BYTES, chunk_bytes(of, step));
}

/* The only step of a small sum. */
static void add_elements(flow_shared *self, const work *of, int64_t step)
{
  add_block(self, of, step, 0, of->data, of->bytes);
}

/* Large sums: steps 0, 1, 3, 5 ... show the elements of chunks 0, 1, 2, 3 ..., steps 2, 4, 6 ... say that the sums of chunks 0, 1, 2 ...
 * are there, in the slots of the elements. */
static int has_sums(int64_t step) { return step > 0 && step % 2 == 0; }
static int64_t part_of(int64_t step) { return has_sums(step) ? step / 2 - 1 : (step + 1) / 2; }
static int64_t step_of_elements(int64_t part) { return part == 0 ? 0 : 2 * part - 1; }

/* Where the sum of a rank's share is, in one chunk's slots. That is the next rank's slot: this rank alone has read the place there,
 * which is in its own share, and nobody needs it any more. */
static unsigned char *sum_of(const flow_shared *self, const work *of, int64_t part, int rank)
{
  return shown(self, (rank + 1) % self->base.size, step_of_elements(part), of->bytes);
}

/* All of the chunk but the own share, which this rank adds up itself from its own data. */
static void show_shares(flow_shared *self, const work *of, int64_t step)
{
  if (has_sums(step)) return;
  int64_t part = part_of(step), bytes = chunk_bytes(of, part), first, last;
  const unsigned char *chunk = of->data + part * FLOW_SHARED_BYTES;
  unsigned char *slot = shown(self, self->base.rank, step, of->bytes);
  flow_find_share(self->base.rank, self->base.size, bytes, &first, &last);
  copy(slot, chunk, first);
  copy(slot + last, chunk + last, bytes - last);
}

/* The sum of the own share: into the own data, and into a slot for the others. */
static void add_share(flow_shared *self, const work *of, int64_t part)
{
  unsigned char *chunk = of->data + part * FLOW_SHARED_BYTES, *sum = sum_of(self, of, part, self->base.rank);
  int64_t first, last;
  flow_find_share(self->base.rank, self->base.size, chunk_bytes(of, part), &first, &last);
  for (int64_t at = first; at < last; at += BLOCK_BYTES) {
    int64_t bytes = last - at < BLOCK_BYTES ? last - at : BLOCK_BYTES;
    add_block(self, of, step_of_elements(part), at, chunk + at, bytes);
    copy(sum + at, chunk + at, bytes);
  }
}

/* The sums of the others' shares. */
static void collect_sums(flow_shared *self, const work *of, int64_t part)
{
  unsigned char *chunk = of->data + part * FLOW_SHARED_BYTES;
  int64_t first, last;
  for (int rank = 0; rank < self->base.size; rank++) {
    flow_find_share(rank, self->base.size, chunk_bytes(of, part), &first, &last);
    if (rank != self->base.rank) copy(chunk + first, sum_of(self, of, part, rank) + first, last - first);
  }
}

static void add_or_collect(flow_shared *self, const work *of, int64_t step)
{
  if (has_sums(step)) collect_sums(self, of, part_of(step));
  else add_share(self, of, part_of(step));
}

/* At least one, so that ranks which do not agree find out. */
static int64_t count_chunks(int64_t bytes)
{
  return bytes <= FLOW_SHARED_BYTES ? 1 : (bytes - 1) / FLOW_SHARED_BYTES + 1;
}

/* float32 and float64 alone (transport.c has checked). */
static flow_status all_reduce(flow_communicator *self, flow_dtype dtype, void *data, int64_t count)
{
  int size = dtype == FLOW_FLOAT32 ? 4 : 8;
  work todo = { .call = { FLOW_GROUP_ALL_REDUCE, (int32_t)dtype, count }, .bytes = count * size, .data = data };
  int small = todo.bytes <= DIRECT_BYTES;
  todo.steps = small ? 1 : 2 * count_chunks(todo.bytes) + 1;
  todo.show = small ? show_elements : show_shares;
  todo.look = small ? add_elements : add_or_collect;
  return call(self, &todo);
}

/* ---- other calls --------------------------------------------------------------------------------------------------------------- */

static void show_from_root(flow_shared *self, const work *of, int64_t step)
{
  if (of->call.detail == self->base.rank) show_elements(self, of, step);
}

static void take_from_root(flow_shared *self, const work *of, int64_t step)
{
  int root = of->call.detail;
  if (root != self->base.rank) copy(of->data + step * FLOW_SHARED_BYTES, shown(self, root, step, of->bytes), chunk_bytes(of, step));
}

static flow_status broadcast(flow_communicator *self, int from, void *data, int64_t bytes)
{
  return call(self, &(work){ .call = { FLOW_GROUP_BROADCAST, from, bytes }, .bytes = bytes, .steps = count_chunks(bytes),
                                           .data = data, .show = show_from_root, .look = take_from_root });
}

/* A gather: every rank shows its part, 64 KiB in a step, and copies those of all ranks, its own too. */
static void show_mine(flow_shared *self, const work *of, int64_t step)
{
  const unsigned char *mine = of->mine;
  copy(shown(self, self->base.rank, step, of->bytes), mine + step * FLOW_SHARED_BYTES, chunk_bytes(of, step));
}

static void take_all(flow_shared *self, const work *of, int64_t step)
{
  for (int rank = 0; rank < self->base.size; rank++) {
    copy(of->data + rank * of->bytes + step * FLOW_SHARED_BYTES, shown(self, rank, step, of->bytes), chunk_bytes(of, step));
  }
}

static flow_status all_gather(flow_communicator *self, const void *mine, int64_t bytes, void *all)
{
  return call(self, &(work){ .call = { FLOW_GROUP_ALL_GATHER, 0, bytes }, .bytes = bytes, .steps = count_chunks(bytes),
                                           .data = all, .mine = mine, .show = show_mine, .look = take_all });
}

static void do_nothing(flow_shared *self, const work *of, int64_t step)
{
  (void)self, (void)of, (void)step;
}

static flow_status barrier(flow_communicator *self)
{
  return call(self, &(work){ .call = { FLOW_GROUP_BARRIER, 0, 0 }, .steps = 1, .show = do_nothing, .look = do_nothing });
}

/* Any thread. The inner communicator, too: its end must not wait for ranks that are lost (close_rank). */
static void abort_group(flow_communicator *communicator, const char *reason)
{
  flow_shared *self = (flow_shared *)communicator;
  flow_shared_break(self, FLOW_ABORTED, reason);
  flow_communicator_abort(self->inner, reason);
}

/* An engine whose other ranks are lost must not wait for them when it ends. */
static void close_rank(flow_communicator *communicator)
{
  flow_shared *self = (flow_shared *)communicator;
  if (is_broken(self)) flow_communicator_abort(self->inner, self->failure.message);
  atomic_store(&self->group->members[self->base.rank].left, 1);
  wake_all(self);
  munmap(self->group, self->bytes);
  for (int rank = 0; rank < self->base.size; rank++) {
    if (self->peers[rank].watch >= 0) close(self->peers[rank].watch);
  }
  flow_communicator_close(self->inner);
  flow_free(self);
}

const flow_transport flow_transport_shared = {
  .name = "shared", .all_reduce = all_reduce, .broadcast = broadcast, .all_gather = all_gather, .barrier = barrier,
  .collect = flow_shared_collect, .share_region = flow_shared_share_region, .abort = abort_group,
  .close = close_rank,
};
