/* plan_key.h: whether workers run the same thing. */
#ifndef FLOW_RUN_REPLICAS_PLAN_KEY_H
#define FLOW_RUN_REPLICAS_PLAN_KEY_H

#include "plan/plan.h"

/* *out: a number that plans of different operations do not share (except by chance, of 64 bits), nor those in which ops take each other's
 * values, nor those that update by other rules: workers that run different things must not add them up. *numbers: which values of the
 * graph are scalar variables, such as learning rates, that are read where nothing of a worker's own is; a block of the caller's. */
flow_status flow_plan_key(const flow_plan *plan, uint64_t *out, int **numbers, int *number_count);

/* A number that tells their current values apart, of those in the host's memory. */
uint64_t flow_plan_numbers(const flow_plan *plan, const int *numbers, int count);

#endif
