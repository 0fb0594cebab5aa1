/* executor.h: a run, once its rows are divided and its inputs bound. */
#ifndef FLOW_RUN_EXECUTOR_H
#define FLOW_RUN_EXECUTOR_H

#include "run/replicas/replica_set.h"

/* One run of all local replicas over part.rows rows each. Fails with the run's verdict, and then has written no variable, or with what
 * failed late, in the commit tail: then all are written. */
flow_status flow_execute(flow_replica_set *set);
/* Takes the memory that the next flow_execute needs where the lead has this many rows. With it, no allocation of the executor is left that
 * could fail after the workers have heard of the run. */
flow_status flow_execute_prepare(flow_replica_set *set, int64_t rows);

#endif
