/* profile.h: where the time of a context's plans and eager ops goes, kernel by kernel, while somebody asks
 * (flow_profile_begin in flow.h). Costs nothing otherwise. */
#ifndef FLOW_GRAPH_PROFILE_H
#define FLOW_GRAPH_PROFILE_H

#include "graph/context.h"
#include "run/instance.h"

struct flow_profile {
  int                 active;
  flow_profile_entry *entries;       /* in the order of their first run */
  int                 count, capacity;
  double              waiting;       /* seconds of plans outside kernels */
  double              arena, memory; /* of the plan that took most */
  flow_profile_event *events;
  int                 event_count, event_most;
};

/* Adds the kernels of the run that has just ended and took `wall` seconds. Only detail is lost when memory is short. */
void flow_profile_add_run(flow_profile *profile, const flow_instance *instance, double wall);
/* Adds one eager call. */
void flow_profile_add_call(flow_profile *profile, const flow_kernel *kernel, const flow_call *call, double seconds);

#endif
