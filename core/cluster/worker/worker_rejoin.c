/* worker_rejoin.c: a worker in the generation after the one that ended. A worker that was left keeps what it has and waits until all
 * tasks, or as many as it takes, are there again. A worker that was started again has nothing yet: until it has caught up with the
 * others it works apart from them.
 *
 * What is compared at the beginning of a generation is the step of each task's state. The task with the highest one gives its state to
 * the others (flow_worker_newest says which it is); that is Lua's part (lua/flow/distribute). Ranks count only the tasks that take part,
 * in the order of the cluster; flow_worker_task translates. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cluster/worker/worker_state.h"
#include "tensor/pairwise.h"

enum { MOST_ATTEMPTS = 16 };      /* generations that end while their transport is being opened */

/* Counters of a generation begin again. `ended` is reset after the transport is closed, since an opening that still runs has to see it. */
static void forget_generation(flow_worker *worker)
{
  flow_worker_disconnect(worker);
  __atomic_store_n(&worker->ended, 0, __ATOMIC_RELEASE);
  atomic_store(&worker->hears, 0);
  atomic_store(&worker->failed, FLOW_FAILED_NOT);
  atomic_store(&worker->unheard_since, 0);
  atomic_store(&worker->begun, 0);
  atomic_store(&worker->waiting_since, 0);
  worker->calls = 0;
  worker->groups = 0;
  flow_worker_set_apart(worker, 0);
}

/* A generation may end again while its transport is being opened, for instance if a second task is lost; then the next one is joined,
 * MOST_ATTEMPTS times in all. */
flow_status flow_worker_rejoin(flow_worker *worker, double step)
{
  int culprit;
  if (!worker || !(step >= -1)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_rejoin: %s", worker ? "step is below -1" : "worker is NULL");
  }
  FLOW_TRY(flow_worker_check_own(worker));
  if (!worker->control || flow_control_check(worker->control, &culprit) == FLOW_OK) {
    return flow_fail(FLOW_INVALID_STATE, "the workers are connected: there is nothing to join again");
  }
  if (strcmp(worker->transport, "mpi") == 0) {
    return flow_fail(FLOW_UNSUPPORTED, "MPI ends all ranks with the first one: start the job again, it goes on from its backup "
                     "(callbacks.BackupAndRestore)");
  }
  for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    forget_generation(worker);
    flow_status status = flow_worker_connect(worker, step);
    int final = status == FLOW_OK || status == FLOW_INTERRUPTED || status == FLOW_NOT_FOUND;
    if (final || flow_control_check(worker->control, &culprit) == FLOW_OK) return status;
    if (flow_control_has_ended(worker->control)) return flow_fail_prefix(FLOW_ABORTED, "%s", "");
  }
  return flow_fail_prefix(FLOW_ABORTED, "%d generations ended before they began; the last one: ", MOST_ATTEMPTS);
}

/* Of a task among those that take part. */
static int rank_of(const flow_worker *worker, int task)
{
  int rank = 0;
  while (rank < worker->generation.count && worker->generation.members[rank] != task) rank++;
  return rank;
}

int flow_worker_newest(const flow_worker *worker, double *step)
{
  if (!step) return 0;
  *step = worker && worker->control ? worker->generation.step : -1;
  return *step >= 0 ? rank_of(worker, worker->generation.source) : 0;
}

/* Sets what the exchange says of the cluster: this worker alone, or those of the generation. */
void flow_worker_set_apart(flow_worker *worker, int apart)
{
  if (!worker || !worker->control) return;
  worker->apart = apart != 0;
  worker->exchange.workers = apart ? 1 : worker->generation.count;
  worker->exchange.worker = apart ? 0 : rank_of(worker, flow_cluster_id(worker->cluster));
  worker->exchange.grows = worker->elastic && !apart;
  worker->exchange.shards = apart ? 0 : worker->shards;
}

/* The number of this worker's shards; *first: of the first one. */
int flow_worker_shards(const flow_worker *worker, int *first)
{
  if (!first) return 0;
  *first = 0;
  if (!worker || worker->shards == 0) return 0;
  int workers = 1, rank = 0;
  if (worker->control) {
    workers = worker->generation.count;
    rank = rank_of(worker, flow_cluster_id(worker->cluster));
  }
  *first = flow_pairwise_begin(worker->shards, workers, rank);
  return flow_pairwise_begin(worker->shards, workers, rank + 1) - *first;
}

/* ---- workers that come later --------------------------------------------------------------------------------------------------------- */

int flow_worker_task(const flow_worker *worker, int rank)
{
  if (!worker || !worker->control) return rank;
  return rank >= 0 && rank < worker->generation.count ? worker->generation.members[rank] : -1;
}

int flow_worker_has_grown(flow_worker *worker)
{
  return worker && worker->control && !flow_worker_is_parents(worker) && flow_control_end(worker->control) == FLOW_END_GROWN;
}

void flow_worker_hold(flow_worker *worker, int holds)
{
  if (worker) worker->held += holds ? 1 : -1;
}

/* Called where a step begins, on every worker; only the chief knows of newcomers. A pause ends the generation for all, so that the call
 * of the step fails everywhere with FLOW_END_GROWN, and the program joins the next one. */
flow_status flow_worker_let_in(flow_worker *worker)
{
  if (!worker) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_let_in: worker is NULL");
  if (!worker->control || worker->held > 0 || worker->apart || !flow_control_has_newcomer(worker->control)) return FLOW_OK;
  FLOW_TRY(flow_worker_check_own(worker));
  FLOW_TRY(flow_control_pause(worker->control));
  return flow_worker_check(worker);
}
