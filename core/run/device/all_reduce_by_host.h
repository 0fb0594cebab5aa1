/* all_reduce_by_host.h: sums over replicas on devices, by way of the host: what a COLLECTIVE entry has left in the device's memory is
 * copied to the host, added up there as that of replicas on the CPU (all_reduce.c), and copied back. What is computed meanwhile follows
 * from where the plan is cut (cuts.h). Every replica's own thread makes all these calls, whether the run has failed or not. */
#ifndef FLOW_RUN_DEVICE_ALL_REDUCE_BY_HOST_H
#define FLOW_RUN_DEVICE_ALL_REDUCE_BY_HOST_H

#include "run/instance.h"

/* Memory on the host for all sums of the plan, of one replica. */
flow_status flow_device_sums_new(const flow_instance *replica, flow_device_sums **out);
void        flow_device_sums_release(flow_device_sums *sums);      /* NULL is fine */
/* Where a sum is on the host. */
char       *flow_device_sum(const flow_device_sums *sums, int segment);

/* Before the first section of a run. */
void flow_device_sums_start(flow_device_sums *sums);
/* After a section that ends with a sum. copies: a queue whose copies do not wait for what is enqueued on `queue` later. */
void flow_device_sums_begin(flow_device_sums *sums, flow_instance *replica, int member, int segment, flow_queue *queue, flow_queue *copies);
/* Before a section that needs sums: enqueues the copies back to the device of all sums up to that of `segment`. */
void flow_device_sums_finish(flow_device_sums *sums, flow_instance *replica, int member, int segment, flow_queue *queue,
                             flow_queue *copies);

#endif
