/* worker_store.c: short texts under names that one worker leaves and others find, at the chief, as long as the generation lives. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/worker/worker_state.h"

/* The control plane's status: a verdict where the generation is over, else what it was. */
static flow_status verdict_or(flow_worker *worker, flow_status status)
{
  int over = status != FLOW_OK && status != FLOW_INTERRUPTED && flow_control_await_end(worker->control, 0);
  return over ? flow_worker_explain(worker, status) : status;
}

/* The transport's keys are others. So a program's key never meets one of them. */
static flow_status name_of(const char *function, const flow_worker *worker, const char *key, const char *text,
                           char name[FLOW_MOST_NAME + 1])
{
  if (!worker || !key || !text) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s is NULL", function, !worker ? "worker" : !key ? "key" : "text");
  }
  if (snprintf(name, FLOW_MOST_NAME + 1, "program/%s", key) <= FLOW_MOST_NAME) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the key \"%.40s...\" is longer than %d bytes", function, key, FLOW_MOST_NAME - 8);
}

double flow_worker_calls(const flow_worker *worker) { return worker ? (double)worker->calls : 0; }

int flow_worker_chief_is_ahead(flow_worker *worker)
{
  return worker && worker->control && !flow_worker_is_parents(worker) && !flow_cluster_is_chief(worker->cluster) &&
         flow_control_is_behind(worker->control);
}

flow_status flow_worker_publish(flow_worker *worker, const char *key, const char *text)
{
  char name[FLOW_MOST_NAME + 1];
  FLOW_TRY(name_of("flow_worker_publish", worker, key, text, name));
  size_t bytes = strlen(text);
  if (bytes > FLOW_MOST_VALUE) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the text for \"%s\" has %.0f bytes, at most %d can be published", key, (double)bytes,
                     FLOW_MOST_VALUE);
  }
  if (!worker->control) return FLOW_OK;
  FLOW_TRY(flow_worker_check_own(worker));
  return verdict_or(worker, flow_control_set(worker->control, name, (const uint8_t *)text, (uint32_t)bytes));
}

/* text gets at most size - 1 bytes and a zero. The wait is noted, so that the log tells of a long one. */
flow_status flow_worker_lookup(flow_worker *worker, const char *key, double within, char *text, int size)
{
  char name[FLOW_MOST_NAME + 1];
  uint32_t bytes = 0;
  FLOW_TRY(name_of("flow_worker_lookup", worker, key, text, name));
  if (size < 1) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_worker_lookup: there is room for %d bytes", size);
  text[0] = '\0';
  if (!worker->control) return flow_fail(FLOW_NOT_FOUND, "\"%s\": a single worker has no other worker to publish it", key);
  FLOW_TRY(flow_worker_check_own(worker));
  if (within > 0) flow_worker_note_waiting(worker);
  flow_status status = flow_control_get(worker->control, name, within, (uint8_t *)text, (uint32_t)size - 1, &bytes);
  atomic_store_explicit(&worker->waiting_since, 0, memory_order_relaxed);
  if (status == FLOW_OK) text[bytes < (uint32_t)size ? bytes : (uint32_t)size - 1] = '\0';
  return verdict_or(worker, status);
}
