/* profile.h: where the time of a context's plans and eager ops goes, kernel by kernel, while it is asked for
 * (flow_profile_begin in flow.h). Costs nothing otherwise. */
#ifndef FLOW_GRAPH_PROFILE_H
#define FLOW_GRAPH_PROFILE_H

#include "graph/context.h"
#include "ops/launch.h"

struct flow_profile {
  int                 active;
  flow_profile_entry *entries;       /* in the order of their first run */
  int                 count, capacity;
  double              waiting;       /* seconds of plans outside kernels */
  double              arena, memory; /* of the plan that took most */
  flow_profile_event *events;
  int                 event_count, event_most;
};

/* Adds time spent in a variant of an op on inputs of these shapes, and the bytes of its outputs. Returns the number of the entry, -1:
 * memory is short, the time counts as waiting. op and variant are
 * compared as pointers and kept: static texts. */
int  flow_profile_add(flow_profile *profile, const char *op, const char *variant, const flow_operand *inputs, int input_count,
                      double seconds, double bytes);
/* Keeps when a thread was in the kernel of an entry, if events are kept. */
void flow_profile_add_event(flow_profile *profile, int entry, int thread, const flow_watch *watch);
/* Adds one eager call. */
void flow_profile_add_call(flow_profile *profile, const flow_kernel *kernel, const flow_call *call, double seconds);

#endif
