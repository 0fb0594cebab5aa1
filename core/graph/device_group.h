/* device_group.h: the devices of a strategy in this process: a place for each replica, a thread for each but the first, the caller's own,
 * and, where it was connected (dist/device_group.c), sums that the devices make among themselves.
 *
 * One thread per device: calls of CUDA and NCCL for one device may wait for those of another. */
#ifndef FLOW_GRAPH_DEVICE_GROUP_H
#define FLOW_GRAPH_DEVICE_GROUP_H

#include "tensor/place.h"

typedef struct flow_device_link flow_device_link;      /* implemented by core/dist, as flow_exchange is */
struct flow_device_link {
  int ranks;                         /* replicas of all workers */
  /* Enqueues the sum of data[0 .. count) over all ranks, in place (float32, float64), on a queue of its own: that of queue_of. By the
   * replica's thread. */
  flow_status (*add_up)(flow_device_link *self, int replica, int dtype, void *data, int64_t count);
  flow_queue *(*queue_of)(flow_device_link *self, int replica);
  /* FLOW_OK, or why there are no more sums; waits for nothing. Any thread. */
  flow_status (*check)(flow_device_link *self);
  /* Lets go what waits for sums here. Any thread. */
  void        (*abort)(flow_device_link *self, const char *reason);
  void        (*close)(flow_device_link *self);
};

typedef void flow_member_function(int member, void *argument);

struct flow_device_group {
  _Atomic int       references;
  int               count;           /* replicas */
  flow_place      **places;
  flow_device_link *link;            /* the group's; NULL: sums go through the host */
  struct flow_crew *crew;            /* the threads; NULL: not started */
};

flow_device_group *flow_device_group_retain(flow_device_group *group);      /* NULL is fine */
/* The threads are there from then on. */
flow_status flow_device_group_start(flow_device_group *group);
/* function(member, argument) for all members at once, 0 by the caller. Returns when all have. group NULL: member 0 alone. */
void        flow_device_group_run(flow_device_group *group, flow_member_function *function, void *argument);
/* Returns when all members have come. NULL: at once. */
void        flow_device_group_meet(flow_device_group *group);

#endif
