/* update.h: an update under way, for the files that make it: update.c and update_*.c. */
#ifndef FLOW_TRAIN_UPDATE_H
#define FLOW_TRAIN_UPDATE_H

#include "train/loss_scale.h"
#include "train/optimizer.h"

/* An update that only needs to be done. State: the weights, then the slots. */
typedef struct flow_run_update {
  int          run;
  flow_tensor *gradient;                              /* flat; a reference, as are the others */
  flow_tensor *state[1 + FLOW_MAX_SLOT_KINDS];        /* what a formula reads, and what it made */
  flow_tensor *made[1 + FLOW_MAX_SLOT_KINDS];
  flow_tensor *accumulated;                           /* what the accumulator becomes */
} flow_run_update;

/* All updates of a call; for a formula, the number of this one, from 1, and its new scalars. */
struct flow_update {
  flow_context    *context;
  flow_optimizer  *optimizer;
  flow_loss_scale *scale;
  flow_tensor     *one, *rate, *divisor, *number, *scalars[FLOW_MAX_SCALARS];
  flow_tensor     *done;                              /* the number of updates before, int64; NULL: the variable's */
  flow_tensor     *guard;                             /* where it is 0 weights and slots stay unchanged; NULL: they change */
  flow_scale_step  step;                              /* where its guard is 0 nothing changes but the scale */
  /* runs with gradients, runs without, variables of the call */
  int              count, idle_count, variable_count;
  flow_run_update *list;                              /* [count], then runs without gradients, whose accumulators are emptied */
  flow_tensor    **unscaled;                          /* [variable_count], as is the next; NULL: there is no gradient */
  flow_variable  **variables;                         /* references */
};

/* What is in the variable when the commit tail comes to this update, which may come after others of the same trace. New reference. */
flow_status flow_update_read_late(flow_context *context, flow_variable *variable, flow_tensor **out);
/* Writes what was made. Eagerly this takes no memory. */
flow_status flow_update_write(flow_context *context, flow_variable *variable, flow_tensor *made);
/* Where the guard is 0, *made becomes what the variable was; NULL: there is none. */
flow_status flow_update_keep_guarded(flow_context *context, flow_tensor *guard, flow_variable *variable, flow_tensor **made);
/* Writes what follows an update into a variable, unless the loss scale leaves everything unchanged. */
flow_status flow_update_write_kept(const flow_update *update, flow_variable *variable, flow_tensor *made);
/* update_runs.c: fills the list of runs, with their gradients packed and summed over replicas. Fails if a variable occurs twice. */
flow_status flow_update_find_runs(flow_update *update);
/* update_averages.c: with use_ema, the averages of the weights of one run, which is updated. */
flow_status flow_update_write_averages(const flow_update *update, const flow_run_update *of_run);
/* update_constraints.c: the weights of one run, which is updated, as their constraints let them be. */
int         flow_update_is_constrained(const flow_update *update, const flow_run_update *of_run);
flow_status flow_update_constrain(const flow_update *update, const flow_run_update *of_run);
/* update_accumulation.c: with gradient_accumulation_steps, the gradients of this update in place of those of the call, and the guard that
 * lets it happen; then what the call leaves. */
flow_status flow_update_accumulate(flow_update *update);
flow_status flow_update_write_accumulated(const flow_update *update);

#endif
