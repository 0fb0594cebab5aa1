/* plan_key.h: whether workers run the same thing. */
#ifndef FLOW_RUN_REPLICAS_PLAN_KEY_H
#define FLOW_RUN_REPLICAS_PLAN_KEY_H

#include "plan/plan.h"

/* *out: a hash of 64 bits of the plan's operations, of which values they take from each other, and of its update rules: workers whose
 * plans differ must not add up. *numbers: the values of the graph that are scalar variables, such as learning rates, and are read where
 * nothing depends on a worker's own data; a block that the caller frees. */
flow_status flow_plan_key(const flow_plan *plan, uint64_t *out, int **numbers, int *number_count);

/* A hash of their current values, of those that are in the host's memory. */
uint64_t flow_plan_numbers(const flow_plan *plan, const int *numbers, int count);

#endif
