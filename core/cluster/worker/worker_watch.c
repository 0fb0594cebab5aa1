/* worker_watch.c: what a monitor may ask of a worker at any time. */
#include <stdatomic.h>

#include "base/futex.h"
#include "cluster/monitor/monitor.h"
#include "cluster/worker/worker_state.h"

/* Seconds for which this worker has been waiting in a call for others; 0: it does not. Read by the control plane's thread. */
static double waiting(void *state)
{
  const flow_worker *worker = state;
  int64_t since = atomic_load_explicit(&worker->waiting_since, memory_order_relaxed);
  return since > 0 ? 1e-9 * (double)(flow_now_nanoseconds() - since) : 0;
}

/* On the program's thread, as flow_worker_close: the worker forgets the monitor, which may be freed next. */
static void leave(void *state) { ((flow_worker *)state)->monitor = NULL; }

flow_status flow_monitor_watch(flow_monitor *monitor, flow_worker *worker)
{
  if (!monitor) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_monitor_watch: monitor is NULL");
  int shown = worker && worker->control;
  if (shown && worker->monitor && worker->monitor != monitor) flow_monitor_set_source(worker->monitor, NULL); /* one shows it */
  flow_monitor_set_source(monitor, shown ? &(flow_monitor_source){ worker->control, waiting, leave, worker } : NULL);
  if (shown) worker->monitor = monitor;
  return FLOW_OK;
}
