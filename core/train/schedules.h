/* schedules.h: learning rates as functions of the number of updates done so far. A schedule is one record: its arguments and
 * its formula, Keras' (keras/src/optimizers/schedules/learning_rate_schedule.py), computed in double and rounded to float32 once.
 *
 * In a training step it is the op `schedule` on the optimizer's count: it costs one scalar, keeps no state, and gives
 * the same bits eagerly, traced, and after a checkpoint.
 *
 * To add a schedule: a record in schedules.c. */
#ifndef FLOW_TRAIN_SCHEDULES_H
#define FLOW_TRAIN_SCHEDULES_H

#include "layers/arguments.h"

struct flow_tensor;

/* A class of schedules: a pure function of the step, so that workers and resumed runs have the same rates without exchanging them. */
typedef struct flow_schedule_record {
  const char          *name;
  const flow_argument *parameters;       /* in Keras' order; the last is "name" */
  /* Numbers are handed over in the order of `parameters` without the name: booleans as 0 or 1, null as NaN, lists of n as
   * n and its elements. */
  double (*formula)(const double *parameters, int64_t count, double step);
  /* (optional, default: nothing) Checks the arguments against each other. */
  flow_status        (*check)(const char *name, const flow_arguments *arguments);
} flow_schedule_record;

/* A schedule with its arguments. It does not change once it was made. */
struct flow_schedule {
  _Atomic int                references;
  const flow_schedule_record *class;
  /* complete: with the defaults */
  flow_arguments            *arguments;
  flow_tensor               *parameters;       /* float64 {n} */
};

/* The rate as a tensor: one op on `step`, an int64 scalar. */
flow_status flow_schedule_apply(flow_context *context, const flow_schedule *schedule, flow_tensor *step, flow_tensor **out);
/* {"module": "keras.optimizers.schedules", "class_name", "config", "registered_name"}; the caller deletes it. NULL: no memory. */
flow_json *flow_schedule_config_json(const flow_schedule *schedule);

#endif
