/* core/run: plans at work. Reading order: instance.h, instance.c and arena.c (what is laid out once), choose.c (kernels for the rows of a
 * run), run.c (a run as its caller sees it), executor.c (segments, slots, chunks, the verdict, the commit tail). replicas/ divides a batch
 * over several instances and puts their results together; device/ runs a plan on a GPU. Uses base, tensor, ops, graph, plan, transport.
 *
 * instance.h: a plan made runnable for batches of up to `capacity` rows: kernels chosen, memory laid out, operands bound.
 * One instance serves one run at a time; nothing is allocated by a run.
 *
 * The bits of a run follow from its inputs, the weights, the seeds, the number of rows and the instruction set. So whatever decides them
 * (the variants of kernels, slots, and chunks where there are sums) is chosen for the rows of the run, by flow_instance_set_rows. The
 * capacity decides how much memory there is, and nothing else. */
#ifndef FLOW_RUN_INSTANCE_H
#define FLOW_RUN_INSTANCE_H

#include "transport/exchange.h"
#include "ops/launch.h"
#include "plan/plan.h"
#include "ops/wide_sum.h"

enum { FLOW_MAX_SLOTS = FLOW_SUM_SLOTS, FLOW_MOST_REPLICAS = 256 };

/* What a worker tells the others when a run begins. */
typedef struct flow_said { int64_t rows, step, common; uint64_t plan, division; int32_t shares_rows, wishes_stop, rerecord; } flow_said;

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
  int                node, segment, alias;      /* alias: nothing to run: no op of its own, or not for this replica */
  const flow_kernel *kernel;
  flow_binding      *bindings;
  int                input_count, output_count;
  size_t             shared_offset, shared_bytes, scratch_bytes;
} flow_entry;

typedef struct flow_stage {            /* what an instance adds to a segment of its plan */
  int     most_slots;                  /* of a segment of rows; where there are sums, a function of shapes only */
  int64_t most_chunk;                  /* rows that a cache holds, which where there are sums follow from the instruction set */
  int64_t rows_per_slot, chunk;        /* of the current run */
  int     prepares, sums;              /* entries with prepare(); PARTIAL outputs */
  size_t  local_bytes;
  flow_ticket prepare_ticket, tickets[FLOW_MAX_PHASES];      /* a segment of rows has one phase, whose parts are its slots */
  _Atomic int done[FLOW_MAX_PHASES];   /* parts */
  flow_cut cut;                        /* of a replica that belongs to one member, for those who help it */
  int     collective, waits_for;       /* it is a sum over replicas; the last such segment before whose result it is the first to read, or -1 */
  int64_t ticket, staged;              /* of a COLLECTIVE one: the exchange's for its sum; where it travels in staged[], -1: alone */
} flow_stage;

/* A member of the team as this instance sees it: its own calls, local values and scratch. */
typedef struct flow_member {
  flow_call    *calls;                 /* [entry] */
  flow_operand *operands;
  char         *local, *scratch;
  flow_watch   *watches;               /* [entry] of the current run, if it is profiled */
  int64_t       rows, gathered_rows;   /* of the run that the shapes were made for, -1: none */
} flow_member;

typedef struct flow_saved { int value; size_t offset, bytes; } flow_saved;   /* a variable's storage in saved_bytes */

typedef struct flow_accelerated flow_accelerated;      /* device_run.h */
typedef struct flow_device_sums flow_device_sums;      /* all_reduce_by_host.h */

struct flow_instance {
  flow_plan    *plan;
  flow_place   *place;                 /* where it runs: the plan's, or for replicas another device of the kind; a reference; NULL: the CPU */
  flow_accelerated *accelerated;       /* the plan runs on a device, where arena and saved_bytes lie; NULL: on the CPU */
  int64_t       capacity;
  flow_entry   *entries;               /* in the plan's order, with the kernels of the current run */
  const flow_kernel **kernels;         /* [class of rows][entry]: of runs with up to 1 << class rows, of any if there is one class only */
  int           class_count, row_class;      /* row_class: the one that `entries` are set for */
  int64_t       set_rows;              /* rows that stages and entries are set for, -1: none */
  flow_binding *bindings;
  flow_stage   *stages;                /* [segment] */
  char         *arena;
  size_t        arena_bytes, local_bytes, scratch_bytes, operand_count;
  size_t       *offsets;               /* [value]: of roots in the arena, or NOT_PLACED */
  char        **bases;                 /* [value]: memory of roots in the current run */
  flow_saved   *saved;                 /* what the plan's guarded effects write, for the case that it must be undone */
  int           saved_count;
  char         *saved_bytes;
  size_t        saved_total;           /* bytes there */
  flow_member  *members;
  int           member_count;
  flow_scalars  scalars;
  flow_failure  verdict;
  flow_context *context;               /* of the current run: its interrupt flag */
  int           profiled, members_ran; /* the current run is, with this many members */
  flow_instance  *lead;                /* the first of the local replicas (itself, where it is alone), which speaks for all of them: */
  flow_instance **replicas;            /* all local ones, itself first */
  int             replica_count;
  _Atomic int     open;                /* segment * MAX_PHASES + phase of which every member may take parts; -1: none yet */
  _Atomic int     arrivals;            /* members that had no replica left to do, in the current run */
  flow_exchange  *exchange;            /* to the other workers; NULL: there are none */
  flow_device_group *group;            /* the replicas' devices, a reference of the lead's; NULL: on the CPU, or alone */
  flow_device_sums *sums;              /* of a replica on a device whose sums go through the host; else NULL */
  flow_said      *said;                /* [worker] */
  uint64_t        plan_key;            /* tells plans of different operations apart */
  flow_tensor   **gathered;            /* gather.c: inputs of a run that brings an order of rows; NULL: none did */
  flow_scalars    base;                /* what the caller gave for the whole batch */
  int             shares_rows, wishes_stop, stop_wished;
  uint64_t        division;            /* tells apart how the rows of runs were divided, the same number at all workers */
  int             rerecord;                /* recordings are of no use to the current run, at one of the workers at least */
  int64_t         global_rows;         /* of the last run */
  int             gathers;             /* the plan puts rows of all replicas together; then workers divide what is made of them: sharded_update.c */
  int64_t         gathered_rows;       /* ... with this many rows of each replica in the current run */
  flow_common     common;              /* where the workers put rows together; number -1: they cannot share memory */
  int64_t         common_rows;         /* ... for this many of each replica */
  int64_t         common_said;         /* its number, if all workers said the same when the current run began, else 0 */
  int64_t        *share_units, *received;  /* [worker + 1]: sharded_update.c's, of the collect under way */
  flow_failure    late;                /* what failed in the commit tail, when there was no way back: raised when it is done */
  int64_t         newest_sum;          /* ticket of the current run's last sum under way; -1: none */
  float          *staged;              /* small sums that travel together: [staged_begin, staged_end) are about to */
  int64_t         staged_begin, staged_end;
  int             last_sum;            /* the last COLLECTIVE segment; -1: there is none */
  int             gathers_taken;       /* segments before this one whose rows were gathered from the workers in the current run */
  int64_t       rows, part_first;      /* of the current run; and where they begin among those that its process was given */
  int           runs_alone;            /* runs without the team so far, up to 2 ... */
  double        seconds_per_row;       /* ... and the shortest of them */
  _Atomic int   running;
};

/* An operand's shape for `rows` rows of the batch, without data. */
void flow_describe_operand(const flow_instance *instance, const flow_binding *binding, int64_t rows, flow_operand *operand);

/* arena.c: lays the values of a new instance out and takes the memory. read[value]: somebody reads it. */
flow_status flow_make_arena(flow_instance *instance, const char *read);
/* Memory of the place where the instance runs. */
flow_status flow_instance_allocate(const flow_instance *instance, size_t bytes, void **out);
void        flow_instance_free(const flow_instance *instance, void *memory, size_t bytes);
/* Where a tensor that outlives the run, a constant or a variable's, lies for this instance: on a replica's device a copy of it. */
flow_status flow_base_of(const flow_instance *instance, const flow_tensor *tensor, char **out);

/* choose.c. Classes of rows that kernels are chosen for: batches of 1, 2, 3 to 4, ... rows up to the capacity, those of the most nominal
 * rows (launch.h) and above together; one, where the choice does not depend on rows: kernels of devices have no costs. */
int         flow_count_row_classes(const flow_instance *instance);
/* Chooses the kernel of entry e of segment s for a class and asks it for its memory, for the largest call that it will see. */
flow_status flow_choose_kernel(flow_instance *instance, int s, int e, int class, flow_operand *operands, flow_queue *queue);
void        flow_set_row_class(flow_instance *instance, int class);
/* How `rows` rows are grouped in a ROWS segment. Where there are sums, the slots are as many as there may be; elsewhere a slot is as many
 * rows as fit, and every thread gets some slots. */
void        flow_divide_rows(flow_stage *stage, int64_t rows);
/* Kernels, slots and chunks for a run of this many rows, at most the capacity. */
flow_status flow_instance_set_rows(flow_instance *instance, int64_t rows);
/* flow_instance_new at a place of its own: a replica's. instance.c */
flow_status flow_instance_new_at(flow_plan *plan, double capacity, flow_place *place, flow_instance **out);
/* The same instance for more rows than its capacity, of which nothing is left if memory fails: then every run fails. instance.c */
flow_status flow_instance_resize(flow_instance *instance, int64_t capacity);

/* replicas.c: `local` replicas in this process, of which `instance` becomes the first, and those behind the exchange (borrowed). group: their
 * devices, of a plan that runs on one; NULL: it runs on the CPU, or there is one local replica whose sums go through the host. */
flow_status flow_instance_set_replicas(flow_instance *instance, int local, flow_device_group *group, flow_exchange *exchange);
/* The most rows that one replica gets of `rows`. */
int64_t     flow_instance_part_rows(const flow_instance *lead, int64_t rows);
/* replicas.c: the parts of a run, in fields of the replicas: rows, scalars.first_sample and part_first. `rows` and `first_sample`: of what
 * this process was given. Talks to the other workers. */
flow_status flow_instance_divide(flow_instance *lead, int64_t rows);
/* The same where replica r has rows[r]. */
flow_status flow_instance_divide_each(flow_instance *lead, const int64_t *rows);
void        flow_instance_release_replicas(flow_instance *instance);
/* all_reduce.c. Between barriers of the executor: a member's share of what a COLLECTIVE segment adds up over the local replicas, into the lead's
 * memory. By one member: begins the sum over the workers; waits for it and those before, of a failed run for all that are under way. */
void        flow_add_replicas(flow_instance *lead, int segment, int member, int members);
void        flow_start_sums(flow_instance *lead);      /* before a run */
void        flow_send_sum(flow_instance *lead, int segment);
void        flow_receive_sums(flow_instance *lead, int segment);
/* sharded_update.c. Whether this worker does a part of entry e, an update with products, only; the part of a worker. */
int         flow_is_shared(const flow_instance *lead, int e);
flow_share  flow_share_of(const flow_instance *lead, int e, int worker);
/* By one member, after its worker's part: fetches the others' parts. It cannot fail: where they do not come they are made here, and the
 * run fails at its end. */
void        flow_collect_shares(flow_instance *lead, int e, const flow_call *call);
/* all_gather.c. Before a run: finds the memory for what is gathered in it, if they can such that all workers see it, and lets the replicas
 * compute their rows right there. */
flow_status flow_place_gathered(flow_instance *lead);
void        flow_release_common(flow_instance *lead);
/* A member's share of putting the rows of the local replicas together, as many of each as of the largest, zeros where one has fewer. */
void        flow_gather_replicas(const flow_instance *lead, int segment, int member, int members);
/* By one member: puts the rows of all workers together that segments [begin, end) gather. */
void        flow_gather_workers(flow_instance *lead, int begin, int end);
int         flow_is_gather(const flow_instance *lead, int segment);
/* Which sums travel together, and the memory for them. */
flow_status flow_stage_sums(flow_instance *lead);

/* Gives the instance `count` members (memory for as many threads). instance.c */
flow_status flow_instance_set_members(flow_instance *instance, int count);
/* Gives a member's operands the shapes and addresses that hold for the whole of a run over instance->rows rows. executor.c */
void        flow_bind_run(flow_instance *instance, flow_member *member);
/* One run over instance->rows rows; bases of inputs are set. executor.c */
flow_status flow_execute(flow_instance *instance);

#endif
