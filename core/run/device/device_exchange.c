/* device_exchange.c: see run/device/device_exchange.h: a communicator of the transport "nccl" for each device of a group.
 *
 * Locks and threads. Each member's thread uses its own `member`; `lock` guards the communicators' pointers against
 * flow_device_exchange_abort, which any thread may call. `failure` keeps the first reason. Once it is set, the communicators are aborted
 * and no later call works, until flow_device_exchange_prepare opens new ones.
 *
 * Why aborted communicators are kept (`formers`). A recording holds the communicator that it was recorded with, which has to outlive it.
 * They are closed with the exchange, after the recordings.
 *
 * Votes. A device that refuses a batch (a label out of range) must keep the step from being made by all. So before the commit tail every
 * device adds its vote to a sum over all of them, and goes on only if all have approved. A sum that was ended by an abort approves
 * nothing. This costs one small sum a step and no wait by the host. */
#include "run/device/device_exchange.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/memory.h"
#include "base/failure.h"
#include "transport/transport.h"

static const double OPENING_WITHIN = 60, CALLS_WITHIN = 600;      /* seconds */

enum { MOST_STORED = 256 };           /* bytes of what rank 0 leaves */

typedef struct member {
  flow_queue        *queue;
  flow_communicator *communicator;
  double            *votes;                /* in the device's memory */
  int                pending;              /* sums were enqueued that the place's queue has not followed */
  int                step_by_step;         /* each is waited for */
  flow_place_watcher watcher;
} member;

/* Communicators that were aborted; recordings of somebody may hold them until the group goes. */
typedef struct former { struct former *next; flow_communicator *communicators[]; } former;

struct flow_device_exchange {
  flow_device_group *group;                /* which owns this */
  flow_device_ranks  ranks;
  char               name[64];
  int64_t            generation;
  pthread_mutex_t    lock;                 /* of the communicators' being there, for those who abort */
  flow_failure       failure;
  _Atomic int        under_way;            /* a run began that nobody has waited for: what is wrong may be its sums' */
  int                opening_ended;        /* one of the members cannot be opened, or somebody aborts */
  former            *formers;
  member             members[];
};

static const flow_accelerator_functions *functions_of(const flow_place *place) { return flow_place_accelerator(place)->functions; }

int flow_device_exchange_ranks(const flow_device_exchange *self) { return self->ranks.all; }
int64_t flow_device_exchange_generation(const flow_device_exchange *self) { return self->generation; }

/* ---- how the ranks find each other ------------------------------------------------------------------------------------------------ */

/* What rank 0 publishes (NCCL's id), for the members of this process: set by rank 0's own thread, or by member 0's, which reads it from
 * the store of all processes. The other threads need no store: they wait for `there`. */
typedef struct meeting {
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  int             there;                   /* 1: bytes are; -1: they will not come */
  char            bytes[MOST_STORED];
  size_t          count;
  const flow_device_ranks *ranks;
} meeting;

typedef struct asker { meeting *meeting; int member; } asker;

/* The first call counts: 1 with the bytes, or -1, after which no thread waits any longer. */
static void tell(meeting *m, int there, const void *bytes, size_t count)
{
  pthread_mutex_lock(&m->lock);
  if (!m->there) {
    m->there = there;
    m->count = count;
    if (count) memcpy(m->bytes, bytes, count);
  }
  pthread_cond_broadcast(&m->changed);
  pthread_mutex_unlock(&m->lock);
}

/* The store that members give to the transport: `set` and `get` have the contract of flow_store (transport/transport.h). */
static flow_status set(void *state, const char *key, const void *bytes, size_t count)
{
  const asker *by = state;
  const flow_store *outer = by->meeting->ranks->store;
  if (count > MOST_STORED) return flow_fail(FLOW_INVALID_ARGUMENT, "\"%s\" has %.0f bytes, too many", key, (double)count);
  if (outer) FLOW_TRY(outer->set(outer->state, key, bytes, count));
  tell(by->meeting, 1, bytes, count);
  return FLOW_OK;
}

/* Brings what rank 0 has left in the store of all processes to the members of this one; waits at most this many seconds. */
static flow_status ask_others(const asker *by, const char *key, double seconds)
{
  const flow_store *outer = by->meeting->ranks->store;
  void *bytes;
  size_t count;
  flow_status status = outer->get(outer->state, key, seconds, &bytes, &count);
  if (status != FLOW_OK) return status;
  if (count > MOST_STORED) status = flow_fail(FLOW_CORRUPT_DATA, "\"%s\" has %.0f bytes, too many", key, (double)count);
  else tell(by->meeting, 1, bytes, count);
  flow_free(bytes);
  return status;
}

/* The first member of a process that has not rank 0 asks the other processes; the rest wait for what it finds. */
static flow_status get(void *state, const char *key, double seconds, void **bytes, size_t *count)
{
  const asker *by = state;
  meeting *m = by->meeting;
  struct timespec end;
  int late = 0;
  if (m->ranks->first > 0 && by->member == 0) FLOW_TRY(ask_others(by, key, seconds));
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += (time_t)seconds + 1;
  pthread_mutex_lock(&m->lock);
  while (!m->there && !late) late = pthread_cond_timedwait(&m->changed, &m->lock, &end) != 0;
  int there = m->there;
  pthread_mutex_unlock(&m->lock);
  if (there <= 0) return flow_fail(FLOW_TIMED_OUT, "the first rank has left no \"%s\"", key);
  FLOW_TRY(flow_alloc(m->count, bytes));
  memcpy(*bytes, m->bytes, m->count);
  *count = m->count;
  return FLOW_OK;
}

/* ---- opening ---------------------------------------------------------------------------------------------------------------------- */

/* What the threads of one opening share. failure: the first of the members'. */
typedef struct opening {
  flow_device_exchange *self;
  meeting               meeting;
  flow_failure          failure;
  char                  group[96];
} opening;

/* Sets the member's queue and begins without votes, whatever the device still does with those of the run before. */
static flow_status make_member(flow_place *place, member *m)
{
  const flow_accelerator_functions *f = functions_of(place);
  void *memory;
  if (!m->queue) FLOW_TRY(f->queue_new(flow_place_accelerator(place), &m->queue));
  if (!m->votes) {
    FLOW_TRY(f->allocate(m->queue, 2 * sizeof *m->votes, &memory));
    m->votes = memory;
  }
  flow_queue *queue = flow_place_lock(place);
  flow_status status = f->follow(m->queue, queue);
  if (status == FLOW_OK) status = f->clear(m->queue, m->votes, 2 * sizeof *m->votes);
  if (status == FLOW_OK) status = f->follow(queue, m->queue);
  flow_place_unlock(place);
  m->pending = 0;
  return status;
}

/* One device's end, on its own thread, since NCCL waits for all ends. The first that fails ends the others' waiting. */
static void open_member(int number, void *argument)
{
  opening *o = argument;
  flow_device_exchange *self = o->self;
  member *m = &self->members[number];
  asker by = { &o->meeting, number };
  const flow_store store = { set, get, &by };
  flow_communicator *communicator = NULL;
  flow_status status = make_member(self->group->places[number], m);
  const flow_transport_options options = { .timeout = OPENING_WITHIN, .group = o->group, .store = &store, .queue = m->queue,
                                           .ended = &self->opening_ended };
  if (status == FLOW_OK) status = flow_communicator_open("nccl", self->ranks.first + number, self->ranks.all, &options, &communicator);
  if (status != FLOW_OK) {
    flow_failure_take(&o->failure, status);
    __atomic_store_n(&self->opening_ended, 1, __ATOMIC_RELEASE);
    tell(&o->meeting, -1, NULL, 0);      /* nobody waits for an id that does not come */
    return;
  }
  communicator->timeout = CALLS_WITHIN;
  pthread_mutex_lock(&self->lock);
  m->communicator = communicator;
  pthread_mutex_unlock(&self->lock);
}

/* All ends at once, each opening under its own name: a store may still have what an earlier opening has left. */
static flow_status open_all(flow_device_exchange *self)
{
  opening o = { .self = self, .meeting.ranks = &self->ranks };
  self->generation++;
  __atomic_store_n(&self->opening_ended, 0, __ATOMIC_RELEASE);
  snprintf(o.group, sizeof o.group, "%s.%.0f", self->name, (double)self->generation);
  pthread_mutex_init(&o.meeting.lock, NULL);
  pthread_cond_init(&o.meeting.changed, NULL);
  flow_device_group_run(self->group, open_member, &o);
  pthread_cond_destroy(&o.meeting.changed);
  pthread_mutex_destroy(&o.meeting.lock);
  return flow_failure_raise(&o.failure);
}

/* ---- waiting ---------------------------------------------------------------------------------------------------------------------- */

/* Waits for all that was enqueued on a device. */
static flow_status wait_for(flow_place *place)
{
  flow_status status = functions_of(place)->synchronize(flow_place_lock(place));
  flow_place_unlock(place);
  return status;
}

/* What one device finds wrong is found by all. A thread that has waited for one of them has waited for all, so that all are ready for the
 * next step, and is told by the one that refused its data, or why this exchange's sums were ended; not so by one that ended before, and is
 * there still. */
static flow_status settle(void *state, flow_place *waited_for, flow_status status)
{
  flow_device_exchange *self = state;
  flow_failure refused = { 0 };
  int own = atomic_exchange(&self->under_way, 0);
  flow_failure_take(&refused, status);
  for (int i = 0; i < self->group->count; i++) {
    flow_place *place = self->group->places[i];
    flow_status found = place == waited_for ? FLOW_OK : wait_for(place);
    if (refused.status != FLOW_ABORTED || found == FLOW_OK || found == FLOW_ABORTED) continue;
    flow_failure_clear(&refused);
    flow_failure_take(&refused, found);
  }
  int ended = own && refused.status == FLOW_ABORTED && flow_failure_is_set(&self->failure);
  return flow_failure_raise(ended ? &self->failure : &refused);
}

/* For callers that want to have waited for all devices, whatever came of their work. */
void flow_device_exchange_settle(flow_device_exchange *self)
{
  for (int i = 0; i < self->group->count; i++) wait_for(self->group->places[i]);
  self->under_way = 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------------- */

/* After a failure nothing is left of it; the group has no exchange then. */
flow_status flow_device_exchange_open(flow_device_group *group, const flow_device_ranks *ranks)
{
  void *block;
  FLOW_TRY(flow_device_group_start(group));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_device_exchange) + sizeof(member) * (size_t)group->count, &block));
  flow_device_exchange *self = block;
  self->group = group;
  self->ranks = *ranks;
  snprintf(self->name, sizeof self->name, "%s", ranks->name);
  self->ranks.name = self->name;
  pthread_mutex_init(&self->lock, NULL);
  flow_failure_clear(&self->failure);
  for (int i = 0; i < group->count; i++) {
    self->members[i].watcher = (flow_place_watcher){ .settle = settle, .state = self };
    flow_place_watch(group->places[i], &self->members[i].watcher);
  }
  flow_status status = open_all(self);
  self->ranks.store = NULL;
  if (status == FLOW_OK) group->exchange = self;
  else flow_device_exchange_close(self);
  return status;
}

/* Communicators first, those of earlier openings too: they may use the queue. The votes are released on the member's queue, after the
 * device's own has come past them. */
static void close_members(flow_device_exchange *self)
{
  for (int i = 0; i < self->group->count; i++) {
    member *m = &self->members[i];
    flow_place *place = self->group->places[i];
    flow_place_unwatch(place, &m->watcher);
    flow_communicator_close(m->communicator);
    for (former *f = self->formers; f; f = f->next) flow_communicator_close(f->communicators[i]);
    if (!m->queue) continue;
    flow_queue *queue = flow_place_lock(place);
    if (m->votes) functions_of(place)->follow(m->queue, queue);      /* which may still be at its votes */
    flow_place_unlock(place);
    functions_of(place)->release(m->queue, m->votes);
    functions_of(place)->queue_release(m->queue);
  }
}

/* After an abort there is nothing to wait for: the communicators have ended. */
void flow_device_exchange_close(flow_device_exchange *self)
{
  if (!self) return;
  if (!flow_failure_is_set(&self->failure)) flow_device_exchange_settle(self);      /* what is recorded may be under way still */
  if (self->ranks.left) self->ranks.left(self->ranks.state, self);
  close_members(self);
  while (self->formers) {
    former *next = self->formers->next;
    flow_free(self->formers);
    self->formers = next;
  }
  pthread_mutex_destroy(&self->lock);
  flow_free(self);
}

/* Takes the communicators away. Without memory for the list nothing changes. */
static flow_status retire(flow_device_exchange *self)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(former) + sizeof(flow_communicator *) * (size_t)self->group->count, &block));
  former *f = block;
  pthread_mutex_lock(&self->lock);
  for (int i = 0; i < self->group->count; i++) {
    f->communicators[i] = self->members[i].communicator;
    self->members[i].communicator = NULL;
  }
  pthread_mutex_unlock(&self->lock);
  f->next = self->formers;
  self->formers = f;
  return FLOW_OK;
}

/* After an abort, if all ranks are in this process. Otherwise the other processes would have to open theirs at the same time, so the
 * reason is raised again at each run. */
flow_status flow_device_exchange_prepare(flow_device_exchange *self)
{
  if (!flow_failure_is_set(&self->failure)) return FLOW_OK;
  if (self->ranks.all > self->group->count) return flow_failure_raise(&self->failure);
  FLOW_TRY(retire(self));
  flow_failure_clear(&self->failure);
  flow_status status = open_all(self);
  flow_failure_take(&self->failure, status);
  return status;
}

/* The reason is set before the communicators end, so that whoever is woken by their end finds it. */
static void abort_all(flow_device_exchange *self, flow_status status, const char *reason)
{
  flow_failure_set(&self->failure, status, reason, NULL);
  __atomic_store_n(&self->opening_ended, 1, __ATOMIC_RELEASE);
  pthread_mutex_lock(&self->lock);
  for (int i = 0; i < self->group->count; i++)
    if (self->members[i].communicator) flow_communicator_abort(self->members[i].communicator, reason);
  pthread_mutex_unlock(&self->lock);
}

void flow_device_exchange_abort(flow_device_exchange *self, const char *reason) { abort_all(self, FLOW_ABORTED, reason); }

/* As flow_device_exchange_abort, and the other processes learn the reason, too. */
void flow_device_exchange_fail(flow_device_exchange *self, const char *reason)
{
  char kept[FLOW_REASON_SIZE];      /* it may be flow_last_error() */
  snprintf(kept, sizeof kept, "%s", reason);
  abort_all(self, FLOW_ABORTED, kept);
  if (self->ranks.fail) self->ranks.fail(self->ranks.state, kept);
}

/* Who heard of failures and of the end is going away, and is not called again. */
void flow_device_exchange_detach(flow_device_exchange *self)
{
  self->under_way = 0;
  self->ranks.fail = NULL;
  self->ranks.left = NULL;
}

/* ---- sums ------------------------------------------------------------------------------------------------------------------------- */

/* Of member `number`, before the sums of a run are enqueued. */
void flow_device_exchange_start(flow_device_exchange *self, int number, int step_by_step)
{
  self->members[number].step_by_step = step_by_step;
  self->under_way = 1;
}

/* Enqueues a sum over all ranks on the member's own queue, after what `queue` has now: work that is enqueued on `queue` next goes on beside
 * it. step_by_step: waits for it, so that a failure shows at its sum. */
flow_status flow_device_exchange_sum(flow_device_exchange *self, int number, flow_queue *queue, int dtype, void *data, int64_t count)
{
  member *m = &self->members[number];
  const flow_accelerator_functions *f = functions_of(self->group->places[number]);
  FLOW_TRY(f->follow(m->queue, queue));
  m->pending = 1;
  FLOW_TRY(flow_communicator_all_reduce(m->communicator, (flow_dtype)dtype, data, count));
  if (!m->step_by_step) return FLOW_OK;
  FLOW_TRY(f->synchronize(m->queue));
  return flow_failure_raise(&self->failure);
}

/* Work that is enqueued on `queue` from now on finds the sums done. */
flow_status flow_device_exchange_join(flow_device_exchange *self, int number, flow_queue *queue)
{
  member *m = &self->members[number];
  if (!m->pending) return FLOW_OK;
  m->pending = 0;
  return functions_of(self->group->places[number])->follow(queue, m->queue);
}

/* To be enqueued before the commit tail: `queue` has a fault, which keeps the tail from changing anything, unless all ranks have approved.
 * */
flow_status flow_device_exchange_vote(flow_device_exchange *self, int number, flow_queue *queue)
{
  const flow_accelerator_functions *f = functions_of(self->group->places[number]);
  double *votes = self->members[number].votes;
  FLOW_TRY(f->approve(queue, votes));
  FLOW_TRY(flow_device_exchange_sum(self, number, queue, FLOW_FLOAT64, votes, 1));
  FLOW_TRY(flow_device_exchange_join(self, number, queue));
  return f->require_approval(queue, votes, self->ranks.all);
}
