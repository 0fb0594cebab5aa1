/* lifetimes.h: from which segment to which the values of a plan are needed. */
#ifndef FLOW_PLAN_LIFETIMES_H
#define FLOW_PLAN_LIFETIMES_H

#include "plan/plan.h"

/* Fills plan->lifetimes and plan->roots, once segments and outputs are known. The plan's release frees them. */
flow_status flow_find_lifetimes(flow_plan *plan);

#endif
