/* loop_run.h: a loop of a plan on the host: an instance of the plan of its body, which the members of the team run once for each round, as
 * if its segments stood in the plan that holds the loop. What a round makes is made where it belongs: a state where the next round reads
 * it, a result in its row of the stack. Replicas have their own instances.
 *
 * Made, resized and released with the instance that has the entry; a run allocates nothing. */
#ifndef FLOW_RUN_LOOP_RUN_H
#define FLOW_RUN_LOOP_RUN_H

#include "base/team.h"
#include "run/instance.h"

/* For entry e, whose operands are bound. Later calls with an instance concern all of its loops. */
flow_status flow_loop_run_new(flow_instance *instance, int e);
void        flow_loop_runs_release(flow_instance *instance);
/* All rounds of entry e, by all members as in flow_segment_run, of which this is a part. */
void        flow_loop_run_all(flow_instance *instance, flow_region *region, flow_member *own, int e, int member, int members);

#endif
