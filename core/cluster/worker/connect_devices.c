/* connect_devices.c: lets the GPUs of a strategy add up among themselves where they can: those of one process, or of all workers. Where
 * they cannot, `why` says so, and sums go through the host; only failures that end the training are failures here. All workers decide
 * alike, since each tells the others what it found (compare): a worker that tried alone would wait for the others. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/worker/worker_state.h"
#include "run/device/device_exchange.h"

enum { REASON = 512 };

/* ---- one process ------------------------------------------------------------------------------------------------------------------ */

/* The devices of one process without others. `why` gets the reason where they cannot exchange directly, which is not a failure: sums then
 * go through the host. Only running out of memory is. */
static flow_status connect_alone(flow_device_group *group, char *why, int size)
{
  const flow_device_ranks ranks = { .all = group->count, .name = "process" };
  if (group->count == 1) return FLOW_OK;
  flow_status status = flow_device_exchange_open(group, &ranks);
  if (status == FLOW_OK || status == FLOW_OUT_OF_MEMORY) return status;
  snprintf(why, (size_t)size, "%s", flow_last_error());
  return FLOW_OK;
}

/* ---- what a worker has of its groups ------------------------------------------------------------------------------------------------ */

/* The exchange is aborted by verdicts from now on. The exchange stays the group's; it tells by `forget` when it is closed. */
static flow_status keep(flow_worker *worker, flow_device_exchange *exchange)
{
  pthread_mutex_lock(&worker->lock);
  flow_status status = flow_grow(&worker->devices, sizeof *worker->devices, worker->device_count + 1, &worker->device_capacity);
  if (status == FLOW_OK) worker->devices[worker->device_count++] = exchange;
  pthread_mutex_unlock(&worker->lock);
  return status == FLOW_OK ? flow_worker_check(worker) : status;      /* a verdict may have come before */
}

/* For flow_device_ranks: the exchange is about to be closed by its group. */
static void forget(void *state, flow_device_exchange *exchange)
{
  flow_worker *worker = state;
  pthread_mutex_lock(&worker->lock);
  for (int i = 0; i < worker->device_count; i++)
    if (worker->devices[i] == exchange) worker->devices[i--] = worker->devices[--worker->device_count];
  pthread_mutex_unlock(&worker->lock);
}

static void tell_others(void *state, const char *reason) { flow_worker_fail(state, reason); }

void flow_worker_finish_devices(flow_worker *worker)
{
  for (int i = 0; i < worker->device_count; i++) flow_device_exchange_settle(worker->devices[i]);
}

void flow_worker_leave_devices(flow_worker *worker)
{
  pthread_mutex_lock(&worker->lock);
  for (int i = 0; i < worker->device_count; i++) {
    flow_device_exchange_abort(worker->devices[i], "this worker was closed");
    flow_device_exchange_detach(worker->devices[i]);
  }
  worker->device_count = 0;
  pthread_mutex_unlock(&worker->lock);
}

/* ---- several workers ---------------------------------------------------------------------------------------------------------------- */

typedef struct identity { char text[FLOW_ACCELERATOR_TEXT]; } identity;

/* why: which two replicas are to be on one GPU, which NCCL refuses; as it is where there are none. */
static void find_shared(const flow_worker *worker, const identity *all, int local, char *why, int size)
{
  int count = worker->exchange.workers * local;
  for (int a = 0; a < count; a++)
    for (int b = 0; b < a; b++) {
      if (strcmp(all[a].text, all[b].text) != 0) continue;
      snprintf(why, (size_t)size, "replica %d of %s and replica %d of %s are on the same GPU, %s", b % local,
               flow_worker_name(worker, b / local), a % local, flow_worker_name(worker, a / local), all[a].text);
      return;
    }
}

/* All workers have as many devices, so that what each gathers has the same size. */
static flow_status look_for_shared(const flow_device_group *group, flow_worker *worker, char *why, int size)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(identity) * (size_t)group->count * (size_t)(worker->exchange.workers + 1), &block));
  identity *mine = block, *all = mine + group->count;
  for (int i = 0; i < group->count; i++)
    snprintf(mine[i].text, sizeof mine[i].text, "%s", flow_place_accelerator(group->places[i])->identity);
  flow_status status = flow_worker_all_gather(worker, mine, (double)(sizeof *mine * (size_t)group->count), all);
  if (status == FLOW_OK) find_shared(worker, all, group->count, why, size);
  flow_free(block);
  return status;
}

/* The first failure of any of them. why: the reason of the first worker that has one, with its name; left unchanged if none has. */
static flow_status compare(flow_worker *worker, const char *reason, char *why, int size)
{
  void *block;
  char mine[REASON] = "";
  FLOW_TRY(flow_alloc_zero((size_t)REASON * (size_t)worker->exchange.workers, &block));
  char *all = block;
  snprintf(mine, sizeof mine, "%s", reason);
  flow_status status = flow_worker_all_gather(worker, mine, REASON, all);
  for (int w = worker->exchange.workers - 1; w >= 0 && status == FLOW_OK; w--)
    if (all[w * REASON]) snprintf(why, (size_t)size, "%s: %.*s", flow_worker_name(worker, w), REASON - 1, all + w * REASON);
  flow_free(block);
  return status;
}

/* All workers come here with the same group. What speaks against NCCL on one of them is told to all (compare), so that either all have
 * the exchange or none has. A failure of the status is one of the cluster. */
static flow_status connect_workers(flow_device_group *group, flow_worker *worker, char *why, int size)
{
  char name[48], reason[REASON] = "";
  const flow_store store = flow_worker_transport_store(worker);
  if (worker->encrypts) {
    snprintf(why, (size_t)size, "FLOW_ENCRYPT=1, and NCCL does not encrypt what it sends");
    return FLOW_OK;
  }
  FLOW_TRY(look_for_shared(group, worker, why, size));
  if (why[0]) return FLOW_OK;
  snprintf(name, sizeof name, "g%.0f/devices%d", (double)worker->generation.number, ++worker->groups);
  const flow_device_ranks ranks = { .first = worker->exchange.worker * group->count, .all = worker->exchange.workers * group->count,
                                    .name = name, .store = &store, .fail = tell_others, .left = forget, .state = worker };
  if (flow_device_exchange_open(group, &ranks) != FLOW_OK) snprintf(reason, sizeof reason, "%s", flow_last_error());
  flow_status status = compare(worker, reason, why, size);
  if (status == FLOW_OK && !why[0]) status = keep(worker, group->exchange);
  if (status == FLOW_OK && !why[0]) return FLOW_OK;
  flow_device_exchange_close(group->exchange);
  group->exchange = NULL;
  return status;
}

/* why: "" if the devices add up among themselves from now on, else one sentence; a failure of the status is one that ends the training. */
flow_status flow_device_group_connect(flow_device_group *group, flow_worker *worker, char *why, int size)
{
  if (!group || !why || size < 1) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_device_group_connect: %s", !group ? "group is NULL" : "there is no room for a reason");
  }
  why[0] = '\0';
  if (group->exchange) return flow_fail(FLOW_INVALID_STATE, "flow_device_group_connect: these devices are connected already");
  return worker && worker->exchange.workers > 1 ? connect_workers(group, worker, why, size) : connect_alone(group, why, size);
}
