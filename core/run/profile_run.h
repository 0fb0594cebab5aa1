/* profile_run.h: where the time of a run of an instance went (graph/profile.h). */
#ifndef FLOW_RUN_PROFILE_RUN_H
#define FLOW_RUN_PROFILE_RUN_H

#include "graph/profile.h"
#include "run/replicas/replica_set.h"

/* Adds the kernels of the run that has just ended and took `wall` seconds; of several replicas those of the lead. Only detail is lost when
 * memory is short. */
void flow_profile_add_run(flow_profile *profile, const flow_replica_set *set, double wall);

#endif
