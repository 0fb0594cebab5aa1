/* core/cluster/worker: one process of a cluster as its program sees it. Reading order: worker.c (opening, connecting, closing),
 * worker_exchange.c (sums of a training), worker_failed.c (runs that fail here alone), worker_announce.c and worker_calls.c (calls outside
 * of steps), worker_rejoin.c (the generation after a loss), connect_devices.c (GPUs), worker_launched.c (clusters without addresses),
 * worker_encrypt.c, worker_store.c, worker_watch.c. Uses base, tensor, transport, run, cluster, control, monitor. Called by Lua through
 * flow_distribute.h.
 *
 * worker.h: a worker's parts put together: the control plane, which knows who is there (control.h), and a transport, which adds up
 * (transport.h). What users call is in flow_distribute.h.
 *
 * A transport notices that somebody is gone, but seldom who. The control plane knows it, a moment earlier or later. So whatever fails
 * here is reported to the chief, waits for its verdict, and fails with that; and the verdict aborts what still waits in the transport.
 *
 * Threads. A worker's calls are made by one thread at a time, the program's; the transport works on its own thread
 * (flow_communication), the control plane on another. What the latter changes is atomic or under the worker's lock. */
#ifndef FLOW_CLUSTER_WORKER_WORKER_H
#define FLOW_CLUSTER_WORKER_WORKER_H

#include "transport/exchange.h"

/* How this worker's instances reach the others; lives as long as the worker. With a single worker it does nothing. */
flow_exchange *flow_worker_exchange(flow_worker *worker);

#endif
