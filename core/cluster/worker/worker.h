/* worker.h: a worker's parts put together: the control plane, which knows who is there (control.h), and a transport, which adds up
 * (transport.h). What users call is in flow_distribute.h.
 *
 * A transport notices that somebody is gone, but seldom who. The control plane knows it, a moment earlier or later. So whatever fails
 * here is reported to the chief, waits for its verdict, and fails with that; and the verdict aborts what still waits in the transport. */
#ifndef FLOW_CLUSTER_WORKER_WORKER_H
#define FLOW_CLUSTER_WORKER_WORKER_H

#include "transport/exchange.h"

/* How this worker's instances reach the others; lives as long as the worker. With a single worker it does nothing. */
flow_exchange *flow_worker_exchange(flow_worker *worker);

#endif
