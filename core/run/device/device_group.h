/* device_group.h: the devices of a strategy in this process: a place for each replica, and a thread for each but the first, the caller's
 * own.
 *
 * One thread per device: while one is waited for, the others are given what comes next. */
#ifndef FLOW_RUN_DEVICE_DEVICE_GROUP_H
#define FLOW_RUN_DEVICE_DEVICE_GROUP_H

#include "tensor/place.h"

typedef void flow_member_function(int member, void *argument);

struct flow_device_group {
  _Atomic int       references;
  int               count;           /* replicas */
  flow_place      **places;
  struct flow_crew *crew;            /* the threads; NULL: not started */
  /* how the devices add up among themselves (device_exchange.h); NULL: sums go through the host */
  struct flow_device_exchange *exchange;
};

flow_device_group *flow_device_group_retain(flow_device_group *group);      /* NULL is fine */
/* The threads are there from then on. */
flow_status flow_device_group_start(flow_device_group *group);
/* function(member, argument) for all members at once, 0 by the caller. Returns when all have. group NULL: member 0 alone. */
void        flow_device_group_run(flow_device_group *group, flow_member_function *function, void *argument);
/* Returns when all members have come. NULL: at once. */
void        flow_device_group_meet(flow_device_group *group);

#endif
