/* worker_exchange.c: the worker as what instances add up through (transport/exchange.h), and what a failure of its transport means. The
 * functions of the exchange pass each call on to the communication thread's exchange, count it, and explain its failure. `begun` counts
 * the calls that all workers make together: if somebody waits in vain, the chief compares these counts to find who is late. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/futex.h"

#include "cluster/worker/worker_state.h"
#include "run/replicas/replica_set.h"

enum { LOOKS = 5 };
static const int64_t NOTICE_EVERY = 30000000000, IN_VAIN_AFTER = 3000000000;         /* nanoseconds */
static const double VERDICT_WITHIN = 2.5;       /* seconds in which the chief decides: a report's 0.5, and the way */

void flow_worker_hear(flow_worker *worker)
{
  atomic_store(&worker->hears, 1);
  atomic_store(&worker->unheard_since, 0);
}

/* Waits for the verdict on what is said; fails with it, or, where none comes, as it was. On the program's thread, which waits
 * VERDICT_WITHIN seconds at most. */
static flow_status report(flow_worker *worker, flow_status status, const char *what, flow_fault fault)
{
  char text[FLOW_MOST_TEXT];
  int culprit;
  flow_worker_hear(worker);
  snprintf(text, sizeof text, "%s", what);                            /* it may be flow_last_error() */
  flow_control_report(worker->control, text, fault);                  /* refused where the verdict is there already */
  if (!flow_control_await_end(worker->control, VERDICT_WITHIN)) return flow_fail(status, "%s", text);
  flow_control_check(worker->control, &culprit);
  return flow_fail_prefix(FLOW_ABORTED, "%s", "");
}

/* Failures for which this process alone is the reason are passed on: bad arguments, memory, an interrupt. Anything else may be the
 * consequence of another task's end. */
flow_status flow_worker_explain(flow_worker *worker, flow_status status)
{
  int own = status == FLOW_OK || status == FLOW_INVALID_ARGUMENT || status == FLOW_OUT_OF_MEMORY || status == FLOW_INTERRUPTED;
  atomic_store_explicit(&worker->waiting_since, 0, memory_order_relaxed);
  if (own || !worker->control || flow_worker_is_parents(worker)) return status;
  return report(worker, status, flow_last_error(), status == FLOW_TIMED_OUT ? FLOW_FAULT_LATE : FLOW_FAULT_UNKNOWN);
}

flow_status flow_worker_fail(flow_worker *worker, const char *why)
{
  if (!worker || !why) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_fail: %s is NULL", worker ? "why" : "worker");
  if (worker->control && !flow_worker_is_parents(worker)) report(worker, FLOW_ABORTED, why, FLOW_FAULT_OWN);
  return FLOW_OK;
}

/* Relaxed: the control plane's thread only compares the moment with its clock. */
void flow_worker_note_waiting(flow_worker *worker)
{
  atomic_store_explicit(&worker->waiting_since, flow_now_nanoseconds(), memory_order_relaxed);
}

/* Who computes for long is alive, and is waited for; but not in silence. By the control plane's thread. finished: a task that has said
 * goodbye, or "". Bytes that it sent before may still be on their way, so a few looks and seconds pass before the wait is in vain. */
int flow_worker_waits_in_vain(flow_worker *worker, const char *finished)
{
  char text[100];
  int64_t since = atomic_load_explicit(&worker->waiting_since, memory_order_relaxed), now = flow_now_nanoseconds();
  if (since != worker->noticed) {
    worker->next_notice = since + NOTICE_EVERY;
    worker->looks = 0;
  }
  worker->noticed = since;
  if (since == 0) return 0;
  /* Looks, too: who was stopped for long has not waited. */
  if (finished[0] && ++worker->looks >= LOOKS && now - since > IN_VAIN_AFTER) return 1;
  if (now < worker->next_notice) return 0;
  worker->next_notice = now + NOTICE_EVERY;
  snprintf(text, sizeof text, "has waited %.0f s for workers that are alive, but still busy", 1e-9 * (double)(now - since));
  flow_worker_log(worker, FLOW_LOG_INFO, text);
  return 0;
}

/* What all workers do together begins. */
static flow_status begin_call(flow_worker *worker)
{
  FLOW_TRY(flow_worker_check_own(worker));
  FLOW_TRY(flow_worker_settle_failure(worker));
  atomic_fetch_add_explicit(&worker->begun, 1, memory_order_relaxed);
  flow_worker_note_waiting(worker);
  return FLOW_OK;
}

flow_status flow_worker_move_broadcast(flow_worker *worker, int from, void *data, int64_t bytes)
{
  if (!worker->communication || worker->apart) return FLOW_OK;
  FLOW_TRY(begin_call(worker));
  return flow_worker_explain(worker, flow_communication_broadcast(worker->communication, from, data, bytes));
}

/* NULL: this worker is alone, or apart from the others. */
static flow_exchange *thread_of(const flow_worker *worker)
{
  return worker->communication && !worker->apart ? flow_communication_exchange(worker->communication) : NULL;
}

flow_status flow_worker_move_all_gather(flow_worker *worker, const void *mine, int64_t bytes, void *all)
{
  flow_exchange *thread = thread_of(worker);
  if (!thread) return flow_fail(FLOW_INTERNAL, "a worker that has no transport gathers");
  FLOW_TRY(begin_call(worker));
  return flow_worker_explain(worker, thread->all_gather(thread, mine, bytes, all));
}

/* Starts a sum that its thread completes; *ticket 0 means that there is no such thread, and the caller sums itself. */
static flow_status begin(flow_exchange *self, int dtype, void *data, int64_t count, int64_t *ticket)
{
  flow_exchange *thread = thread_of((flow_worker *)self);
  *ticket = 0;
  if (!thread) return FLOW_OK;
  FLOW_TRY(begin_call((flow_worker *)self));
  return flow_worker_explain((flow_worker *)self, thread->begin(thread, dtype, data, count, ticket));
}

/* Waits for the sum that begin() has started. A worker without that thread has nothing to wait for. */
static flow_status finish(flow_exchange *self, int64_t ticket)
{
  flow_exchange *thread = thread_of((flow_worker *)self);
  if (!thread) return FLOW_OK;
  FLOW_TRY(begin_call((flow_worker *)self));
  return flow_worker_explain((flow_worker *)self, thread->finish(thread, ticket));
}

/* What a step announces is one gather, together with what makes sure that all begin one. */
_Static_assert(sizeof(flow_run_announcement) <= sizeof(((flow_announcement *)0)->inside), "a step announces more than rides along");

static flow_status all_gather(flow_exchange *self, const void *mine, int64_t bytes, void *all)
{
  FLOW_TRY(flow_worker_let_in((flow_worker *)self));
  return flow_worker_gather((flow_worker *)self, FLOW_CALL_STEP, "", mine, bytes, all);
}

static flow_status gather(flow_exchange *self, const flow_gathering *arrays, int count)
{
  flow_exchange *thread = thread_of((flow_worker *)self);
  if (!thread) return flow_fail(FLOW_INTERNAL, "a worker that is apart from the others gathers");
  FLOW_TRY(begin_call((flow_worker *)self));
  return flow_worker_explain((flow_worker *)self, thread->gather(thread, arrays, count));
}

/* The gather itself counts as the call. */
static flow_status start_gather(flow_exchange *self, const flow_gathering *first)
{
  flow_exchange *thread = thread_of((flow_worker *)self);
  if (!thread) return FLOW_OK;
  return flow_worker_explain((flow_worker *)self, thread->start_gather(thread, first));
}

/* Offered always, though only memory that is shared can do it: the program asks flow_worker_shares_memory() before it chooses it. */
static flow_status collect(flow_exchange *self, void *const *arrays, int count, int64_t unit, const int64_t *first, int64_t *received)
{
  flow_exchange *thread = thread_of((flow_worker *)self);
  for (int w = 0; w < self->workers; w++) received[w] = 0;
  if (!thread || !thread->collect) return flow_fail(FLOW_INTERNAL, "a worker that shares no memory with the others collects");
  FLOW_TRY(begin_call((flow_worker *)self));
  return flow_worker_explain((flow_worker *)self, thread->collect(thread, arrays, count, unit, first, received));
}

/* Regions are numbered from 1 in each generation; the generation's number above that makes numbers unique, which divide.c compares. */
static flow_status share_region(flow_exchange *self, int64_t bytes, flow_shared_region *out)
{
  flow_exchange *thread = thread_of((flow_worker *)self);
  *out = (flow_shared_region){ .number = 0 };
  if (!thread || !thread->share_region) return FLOW_OK;
  FLOW_TRY(begin_call((flow_worker *)self));
  FLOW_TRY(flow_worker_explain((flow_worker *)self, thread->share_region(thread, bytes, out)));
  /* Another than in an earlier generation. */
  if (out->number > 0) out->number += (int64_t)((flow_worker *)self)->generation.number << 32;
  return FLOW_OK;
}

/* An instance counts its own runs, unless fit counts for it: a program that has said which step this is knows better. */
static void progress(flow_exchange *self, int64_t step)
{
  flow_worker *worker = (flow_worker *)self;
  if (!worker->step_told) flow_worker_progress(worker, (double)step, "");
  worker->step_told = 0;
}

static void failed(flow_exchange *self)
{
  flow_worker_note_failure((flow_worker *)self);
}

static const char *name_of(const flow_exchange *self, int worker) { return flow_worker_name((const flow_worker *)self, worker); }

void flow_worker_set_exchange(flow_worker *worker)
{
  worker->exchange = (flow_exchange){
    .workers = flow_cluster_workers(worker->cluster),
    .worker = flow_cluster_id(worker->cluster),
    .begin = begin,
    .finish = finish,
    .all_gather = all_gather,
    .gather = gather,
    .start_gather = start_gather,
    .collect = collect,
    .share_region = share_region,
    .failed = failed,
    .progress = progress,
    .name = name_of
  };
}

int flow_worker_shares_memory(const flow_worker *worker)
{
  return worker && worker->communication && flow_communication_exchange(worker->communication)->collect;
}

flow_exchange *flow_worker_exchange(flow_worker *worker) { return &worker->exchange; }
