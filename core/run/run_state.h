/* run_state.h: what belongs to one run. flow_run_state is the run as its caller sees it, of all local replicas together: their
 * flow_replica_set (replicas/replica_set.h) owns it. flow_run_part is what one instance does of it. Both live as long as their owners
 * and are used again by the next run, so that a run allocates nothing.
 *
 * Which thread writes. The caller's thread takes the run (`running`) and fills both in before the other members start; it reads them
 * after all members have returned. In between every member reads them, and writes only the fields marked "members" below, each of which
 * is atomic or has its own lock.
 *
 * The verdict. A member whose work fails sets `verdict`, goes on to every barrier and does no more work, so that all members leave the
 * body together. A member may act on the verdict without a barrier only where that does not change which barriers it comes to.
 *
 * The commit tail begins after the last barrier of the body. It is done whole or not at all: after a failure of the body nothing of it is
 * done, and what refuses data in it, which sets the verdict, comes before plan->undo_end, so that the effects before are put back and
 * those after it are not begun. One thing can fail there all the same, a transfer between workers (replicas/sharded_update.c). Then this
 * worker computes what did not come, and the failure is kept in `late`, which the caller gets after the variables are written. The tail
 * needs the lead's `bases`, `scalars` and kernels, and nothing of other replicas. */
#ifndef FLOW_RUN_RUN_STATE_H
#define FLOW_RUN_RUN_STATE_H

#include "graph/context.h"
#include "ops/launch.h"

typedef struct flow_run_state {
  _Atomic int    running;              /* 1 while a caller has the instance and its replicas */
  flow_context  *context;              /* the caller's: its interrupt flag and profile. Borrowed for the run */
  flow_scalars   given;                /* what the caller wants for the whole batch (flow_instance_scalars); kept from run to run */
  int64_t        global_rows;          /* of the batch, over all workers; readable until the next run */
  int            committed;            /* it has written its variables; readable until the next run */
  int            interruptible;        /* an interrupt ends it; 0: it requests a stop of all workers, see replicas/divide.c */
  int            profiled;             /* kernels are timed */
  int            members;              /* that take part in a profiled run */
  flow_failure   verdict;              /* members: what failed first */
  flow_failure   late;                 /* one member at a time: what failed in the commit tail */
  flow_tensor  **input_rows;           /* input_rows.c: inputs of runs that name their rows by an order; NULL: there was none */
} flow_run_state;

/* How far the members are with a segment. */
typedef struct flow_progress {
  flow_ticket prepare_ticket;                 /* members */
  flow_ticket tickets[FLOW_MAX_PHASES];       /* members: the next part; a segment of rows has one phase, whose parts are its slots */
  _Atomic int done[FLOW_MAX_PHASES];          /* members: parts that were run */
  flow_cut    cut;                            /* of a replica that one member runs: written by that member before it opens the segment */
} flow_progress;

typedef struct flow_run_part {
  int64_t        rows;                 /* of the batch that this instance computes */
  int64_t        first;                /* where they begin among the rows that the process was given */
  int64_t        gathered_rows;        /* of each replica where the rows of all are put together: at least `rows` */
  flow_scalars   scalars;              /* run->given for these rows */
  char         **bases;                /* [value]: where roots are. Those in the arena are set when the instance is laid out, and moved by
                                        * replicas/all_gather.c; inputs and variables are bound by each run (binding.h) */
  flow_progress *progress;             /* [segment] */
  _Atomic int    open;                 /* segment * FLOW_MAX_PHASES + phase of which every member may take parts; -1: none. Written by the
                                        * replica's own member */
} flow_run_part;

#endif
