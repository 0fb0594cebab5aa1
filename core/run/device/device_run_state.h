/* device_run_state.h: what the files of device_run.h share: device_run.c (making, running), device_inputs.c (what a run brings and
 * gives), recordings.c (what is enqueued, recorded and repeated), workspace.c. */
#ifndef FLOW_RUN_DEVICE_DEVICE_RUN_STATE_H
#define FLOW_RUN_DEVICE_DEVICE_RUN_STATE_H

#include "run/device/device_run.h"
#include "run/device/device_exchange.h"
#include "run/device/cuts.h"

/* MOST_STEPS: that are recorded together; KEPT: for rows of some numbers, and steps of each power of two. */
enum { FLOW_KEPT_RECORDINGS = 8, FLOW_MOST_RECORDED_STEPS = 16 };

/* What was enqueued for this many rows, recorded. */
typedef struct flow_recorded {
  int64_t          rows, runs, used;    /* used: number of the run that repeated it last */
  uint64_t         division;            /* of the rows: replicas that add up among themselves record together, or none */
  int              steps;               /* that take their batches themselves; 0: one, whose inputs are brought */
  flow_recording **sections;            /* [section]; NULL: not recorded yet, or nothing to do */
} flow_recorded;

/* Where steps find their batches: rows of these, in this order. */
typedef struct flow_tables {
  flow_batch_table *input;              /* [input]; to: where runs read it */
  const int64_t    *order;              /* NULL: as they are */
  int64_t           order_count;
  int64_t           first;              /* the current run's, in the order */
  int               changed;            /* since something was recorded with them */
} flow_tables;

struct flow_device_run {
  flow_place    *place;
  flow_queue    *copies;                /* carries inputs of the next run up, while the place's queue computes */
  char          *inputs, *staged;       /* where runs read their inputs; where the next run's arrive */
  size_t         input_bytes, *offsets; /* [input] */
  char          *workspace;             /* see workspace.c */
  size_t         workspace_bytes;
  flow_batch_step *batches;             /* [FLOW_MOST_RECORDED_STEPS]: of the current run's steps, with their scalars */
  flow_section  *sections;              /* how the entries are cut */
  int            section_count, member;      /* member: the replica's number */
  int64_t        generation;            /* of the exchange that recordings hold */
  flow_recorded  kept[FLOW_KEPT_RECORDINGS];
  int64_t        runs;
  flow_tables    tables;
  int            steps;                 /* of the current run, as in flow_recorded */
  int            bound;                 /* operands are, for the current run */
  const flow_batch_step *batch;         /* of the step that is being enqueued */
};

/* The functions of the device that the run is on. */
static inline const flow_accelerator_functions *flow_device_run_functions(const flow_device_run *a)
{
  return flow_place_accelerator(a->place)->functions;
}

/* ---- recordings.c ---- */

void           flow_recorded_drop_sections(flow_device_run *a, flow_recorded *recorded);      /* that are recorded again, then */
void           flow_recorded_forget(flow_device_run *a, flow_recorded *recorded);
/* What is kept for the current run's rows and steps, in place of what was not used for longest. Variables that moved make all useless. */
flow_recorded *flow_recorded_find(flow_instance *instance);
/* What lasts from run to run, where it is not there or out of date; sections leave it out. */
flow_status flow_device_run_make_lasting(flow_instance *instance, flow_queue *queue);
/* Section `number` of the current run. */
flow_status    flow_device_run_section(flow_instance *instance, flow_queue *queue, flow_recorded *kept, int number);

/* ---- workspace.c ---- */

/* Separate memory for the ops of the current run, whose shapes are set. While nothing is recorded, except for rows that have run before. */
flow_status flow_device_run_make_workspace(flow_instance *instance, flow_queue *queue);

#endif
