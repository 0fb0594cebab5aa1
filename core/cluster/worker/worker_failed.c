/* worker_failed.c: what all workers have announced to do together, a run, has failed on this one: a label is out of range in its rows, say,
 * or memory is out. Usually the program ends with that failure and tells the others (flow_worker_fail). One that catches it goes on, and
 * does something else, while the others still wait for the run's sums: they would take this worker's next call for the one that they wait
 * for, or wait as long as the program does other things.
 *
 * But a failure may also be the same everywhere, as of a check of a sum that all have; then all can go on. So at the next call that all
 * make a worker whose run has failed waits at a barrier for the others, whose run has failed, too, if they come. They do not come if they
 * have begun a call that this worker has not: then it reports its failure, which ends the generation with its reason. Counts of calls come
 * with heartbeats. While the program does not come to such a call the control plane's thread compares them. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/futex.h"
#include "cluster/worker/worker_state.h"

static const double LOOK_AFTER = 1; /* seconds at the barrier until the counts are compared, again and again */

/* Nothing is noted if the generation is over, or a call of this worker has failed with what led to that: the others know. */
void flow_worker_note_failure(flow_worker *worker)
{
  if (!worker->control || worker->apart || worker->exchange.workers == 1) return;
  if (atomic_load(&worker->hears) || __atomic_load_n(&worker->ended, __ATOMIC_ACQUIRE)) return;
  if (atomic_load(&worker->failed)) return;
  snprintf(worker->failure, sizeof worker->failure, "%s", flow_last_error());
  atomic_store(&worker->failed, FLOW_FAILED_ALONE);
}

/* Not while the program asks the others: when the barrier opens they go on before this worker's program does. */
const char *flow_worker_failed_alone(flow_worker *worker, int behind)
{
  return behind && atomic_load(&worker->failed) == FLOW_FAILED_ALONE ? worker->failure : NULL;
}

/* The program comes to a barrier only with the control plane's lock, under which that thread has looked at `failed` before or looks after.
 * The barrier's name has the number of calls, so that failures of different runs do not meet. */
flow_status flow_worker_settle_failure(flow_worker *worker)
{
  char name[40];
  int64_t since = flow_now_nanoseconds();
  if (atomic_load_explicit(&worker->failed, memory_order_relaxed) == FLOW_FAILED_NOT) return FLOW_OK;
  atomic_store(&worker->failed, FLOW_FAILED_ASKS);
  snprintf(name, sizeof name, "a run that failed/%u", (unsigned)atomic_load_explicit(&worker->begun, memory_order_relaxed));
  for (;;) {
    flow_status status = flow_control_barrier(worker->control, name, LOOK_AFTER);
    int over = status != FLOW_OK && (status != FLOW_INVALID_STATE || flow_control_await_end(worker->control, 0));
    if (status == FLOW_OK || over) atomic_store(&worker->failed, over ? FLOW_FAILED_ALONE : FLOW_FAILED_NOT);
    if (status == FLOW_OK || over) return flow_worker_explain(worker, status);
    if (flow_control_is_behind(worker->control)) break;
    if (1e-9 * (double)(flow_now_nanoseconds() - since) > worker->timeout) return flow_worker_explain(worker, FLOW_TIMED_OUT);
  }
  FLOW_TRY(flow_worker_fail(worker, worker->failure));
  FLOW_TRY(flow_worker_check(worker));
  return flow_fail(FLOW_ABORTED, "%s", worker->failure); /* the chief has not answered */
}
