/* instance.h: a plan made runnable for batches of up to `capacity` rows: kernels chosen, memory laid out, operands bound.
 * One instance serves one run at a time; nothing is allocated by a run. */
#ifndef FLOW_GRAPH_INSTANCE_H
#define FLOW_GRAPH_INSTANCE_H

#include "graph/launch.h"
#include "graph/plan.h"

enum { FLOW_MAX_SLOTS = 16 };

typedef enum flow_binding_mode {
  FLOW_BIND_NONE,      /* nobody reads this output: data stays NULL */
  FLOW_BIND_WHOLE,     /* the whole value */
  FLOW_BIND_ROWS,      /* the current chunk of rows of a value in the arena (or an input) */
  FLOW_BIND_LOCAL,     /* the current chunk, in the member's own memory */
  FLOW_BIND_PARTIAL    /* the current slot's partial sum */
} flow_binding_mode;

typedef struct flow_binding {
  flow_binding_mode mode;
  int               value, root;      /* shape from value, memory from root */
  int64_t           row_factor;       /* rows of the operand per row of the batch: k of a dimension -k */
  size_t            row_bytes;        /* bytes per row of the batch */
  size_t            offset;           /* LOCAL: in the member's block; PARTIAL: of slot 0 in the arena */
  size_t            bytes;            /* PARTIAL: of one slot */
} flow_binding;

/* One node of the plan, bound. Inputs first, then outputs. */
typedef struct flow_entry {
  int                node, alias;      /* alias: nothing to run */
  const flow_kernel *kernel;
  flow_binding      *bindings;
  int                input_count, output_count;
  size_t             shared_offset, shared_bytes, scratch_bytes;
} flow_entry;

typedef struct flow_stage {            /* what an instance adds to a segment of its plan */
  int     slots;                       /* where there are sums, a function of shapes only: they do not depend on threads */
  int64_t rows_per_slot, chunk;
  int     prepares, sums;              /* entries with prepare(); PARTIAL outputs */
  size_t  local_bytes;
  flow_ticket slot_ticket, prepare_ticket, tickets[FLOW_MAX_PHASES];
} flow_stage;

/* A member of the team as this instance sees it: its own calls, local values and scratch. */
typedef struct flow_member {
  flow_call    *calls;                 /* [entry] */
  flow_operand *operands;
  char         *local, *scratch;
  flow_watch   *watches;               /* [entry] of the current run, if it is profiled */
  int64_t       rows;                  /* of the run that the shapes were made for, -1: none */
} flow_member;

typedef struct flow_saved { int value; size_t offset, bytes; } flow_saved;   /* a variable's storage in saved_bytes */

struct flow_instance {
  flow_plan    *plan;
  int64_t       capacity;
  flow_entry   *entries;               /* in the plan's order */
  flow_binding *bindings;
  flow_stage   *stages;                /* [segment] */
  char         *arena;
  size_t        arena_bytes, local_bytes, scratch_bytes, operand_count;
  size_t       *offsets;               /* [value]: of roots in the arena, or NOT_PLACED */
  char        **bases;                 /* [value]: memory of roots in the current run */
  flow_saved   *saved;                 /* what the plan's guarded effects write, for the case that it must be undone */
  int           saved_count;
  char         *saved_bytes;
  flow_member  *members;
  int           member_count;
  flow_scalars  scalars;
  flow_verdict  verdict;
  flow_context *context;               /* of the current run: its interrupt flag */
  int           profiled, members_ran; /* the current run is, with so many members */
  int64_t       rows;                  /* of the current run */
  int           runs_alone;            /* runs without the team so far, up to 2 ... */
  double        seconds_per_row;       /* ... and the shortest of them */
  _Atomic int   running;
};

#define FLOW_NOT_PLACED ((size_t)-1)

/* Bytes of a value with `rows` rows in the batch. */
size_t flow_value_bytes(const flow_signature *signature, int64_t rows);
/* A signature's shape for a batch of `rows`. */
void flow_resolve_shape(const flow_signature *signature, int64_t rows, int64_t *shape);

/* An operand's shape for `rows` rows of the batch, without data. */
void flow_describe_operand(const flow_instance *instance, const flow_binding *binding, int64_t rows, flow_operand *operand);

/* Gives the instance `count` members (memory for as many threads). instance.c */
flow_status flow_instance_set_members(flow_instance *instance, int count);
/* One run over instance->rows rows; bases of inputs are set. executor.c */
flow_status flow_execute(flow_instance *instance);

#endif
