/* pairwise_sum.h: sums over the ranks of any transport in one fixed order, that of the terms of tensor/pairwise.h: every rank fetches what
 * the others have and adds it up itself. It moves as many bytes more as there are ranks than the transport's own sum, whose order is the
 * transport's. */
#ifndef FLOW_TRANSPORT_PAIRWISE_SUM_H
#define FLOW_TRANSPORT_PAIRWISE_SUM_H

#include "transport/transport.h"

typedef struct flow_pairwise_sum flow_pairwise_sum;

/* For a group of `ranks`; one thread at a time uses it. */
flow_status flow_pairwise_sum_new(int ranks, flow_pairwise_sum **out);
void        flow_pairwise_sum_release(flow_pairwise_sum *self);
/* As flow_communicator_all_reduce; data of float32 or float64. */
flow_status flow_pairwise_sum_run(flow_pairwise_sum *self, flow_communicator *communicator, flow_dtype dtype, void *data, int64_t count);

#endif
