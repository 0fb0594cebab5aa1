/* segment.h: one segment of an instance, run by one or several members. What a segment needs is the instance and its run; it knows of other
 * replicas only that members of theirs may help (`open` in run_state.h), and that workers may divide an update
 * (replicas/sharded_update.c). */
#ifndef FLOW_RUN_SEGMENT_H
#define FLOW_RUN_SEGMENT_H

#include "base/team.h"
#include "run/instance.h"

/* Before a run, by the caller's thread: nothing has been done of any segment. */
void        flow_segments_start(flow_instance *instance);
/* The whole of segment s, by member `member` of `members`, all of which call this; own: its operands, bound for the run. Where members is 1
 * the instance is one member's, and members of other replicas may help it meanwhile. Returns after a barrier of the region, if there are
 * several members. A failure is in the run's verdict. */
void        flow_segment_run(flow_instance *instance, flow_region *region, flow_member *own, int s, int member, int members);
/* Takes parts of the segment that the member of a replica is in, which is not this one's. Returns whether there were any. */
int         flow_segment_help(flow_instance *replica, flow_region *region, int member);

/* Where members wait for each other; a replica of one member does not wait. */
static inline void flow_members_meet(flow_region *region, int members)
{
  if (members > 1) flow_region_barrier(region);
}

/* What a profiled run wants to know of a member's time in entry e: the watch is told of what passes between the two calls. */
static inline double flow_member_start_watch(const flow_run_state *run) { return run->profiled ? flow_clock() : 0; }
static inline void flow_member_stop_watch(const flow_run_state *run, flow_member *member, int e, double started)
{
  if (run->profiled) flow_watch_add(&member->watches[e], started);
}

#endif
