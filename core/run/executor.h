/* executor.h: a run, once its rows are divided and its inputs bound. */
#ifndef FLOW_RUN_EXECUTOR_H
#define FLOW_RUN_EXECUTOR_H

#include "run/replicas/replica_set.h"

/* One run of all local replicas over part.rows rows each. Fails with the run's verdict, and then has written no variable, or with what
 * failed late, in the commit tail: then all are written. */
flow_status flow_execute(flow_replica_set *set);

#endif
