/* communication.h: the communication thread of a worker: it makes sums while the caller computes, in the order in which they were begun
 * (transport/exchange.h).
 *
 * One thread at a time uses a flow_communication and what belongs to it. After the first failure no sum is made any more: those that
 * were begun and not made, and all later ones, fail with its status and reason. */
#ifndef FLOW_TRANSPORT_COMMUNICATION_H
#define FLOW_TRANSPORT_COMMUNICATION_H

#include "transport/transport.h"

typedef struct flow_communication flow_communication;

/* Starts the thread. The communicator is the caller's; until stop has returned nobody else may use it, but anybody may abort it.
 * pairwise: sums are made in the order of pairwise_sum.h, not in that of the transport. */
flow_status flow_communication_start(flow_communicator *communicator, int pairwise, flow_communication **out);
/* Makes the sums that were begun, or waits until they have failed (flow_communicator_abort shortens that), and ends the thread. NULL is
 * fine. */
void        flow_communication_stop(flow_communication *self);

/* Lives as long as `self`. Its begin waits while more than 64 sums are under way, and takes no memory. */
flow_exchange *flow_communication_exchange(flow_communication *self);
/* As flow_communicator_*, after all sums that were begun before. On the caller's thread. */
flow_status flow_communication_broadcast(flow_communication *self, int from, void *data, int64_t bytes);
flow_status flow_communication_barrier(flow_communication *self);

#endif
