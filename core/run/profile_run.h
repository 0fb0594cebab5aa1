/* profile_run.h: where the time of a run of an instance went (graph/profile.h). */
#ifndef FLOW_RUN_PROFILE_RUN_H
#define FLOW_RUN_PROFILE_RUN_H

#include "graph/profile.h"
#include "run/instance.h"

/* Adds the kernels of the run that has just ended and took `wall` seconds. Only detail is lost when memory is short. */
void flow_profile_add_run(flow_profile *profile, const flow_instance *instance, double wall);

#endif
