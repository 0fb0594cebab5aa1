/* core/run: runs plans. Three types hold its state:
 *
 *   flow_instance      instance.h               what is laid out once: kernels, memory, where operands are
 *   flow_run_state     run_state.h              what belongs to one run: rows, scalars, the verdict
 *   flow_replica_set   replicas/replica_set.h   what instances that divide a batch share: sums, workers, decisions
 *
 * Reading order: instance.h, instance.c, members.c, chunks.c and arena.c (what is laid out), choose.c (kernels for the rows of a run),
 * run.c (a run as its caller sees it), binding.c (where operands are in a run), segment.c (slots and chunks), loop_run.c (rounds of a
 * loop), executor.c (the walk over segments, the verdict, the commit tail). replicas/ divides a batch over several instances and puts their
 * results together; device/ runs a plan on a GPU. Uses base, tensor, ops, graph, plan, transport. Called by the C API, core/models,
 * core/data and core/cluster/worker.
 *
 * instance.h: a plan made runnable for batches of up to `capacity` rows: kernels chosen, memory laid out, operands bound. One instance
 * serves one run at a time; nothing is allocated by a run, except that the first run with more threads than before makes memory for
 * them.
 *
 * The bits of a run follow from its inputs, the weights, the seeds, the number of rows and the instruction set. So whatever decides them
 * (the variants of kernels, slots, and chunks where there are sums) is chosen for the rows of the run, by flow_instance_set_rows. The
 * capacity decides how much memory there is, and nothing else. */
#ifndef FLOW_RUN_INSTANCE_H
#define FLOW_RUN_INSTANCE_H

#include "ops/wide_sum.h"
#include "plan/memory_plan.h"
#include "plan/plan.h"
#include "run/derived.h"
#include "run/pace.h"
#include "run/run_state.h"

enum { FLOW_MAX_SLOTS = FLOW_SUM_SLOTS };

typedef struct flow_replica_set flow_replica_set;      /* replicas/replica_set.h */
typedef struct flow_device_run flow_device_run;        /* device/device_run.h */
typedef struct flow_device_sums flow_device_sums;      /* device/all_reduce_by_host.h */

typedef enum flow_binding_mode {
  FLOW_BIND_NONE,      /* nothing reads this output: data stays NULL */
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
  int passed_on;                      /* ROWS: other cores read it where it is; set by replicas/all_gather.c between runs */
} flow_binding;

/* One node of the plan, bound. Inputs first, then outputs. */
typedef struct flow_entry {
  int                node, segment, alias;      /* alias: nothing to run: no op, or not for this replica */
  const flow_kernel *kernel;
  flow_binding      *bindings;
  int                input_count, output_count;
  const flow_attributes *attributes;            /* the node's; of a random op of a loop's body, those of the round */
  size_t             shared_offset, shared_bytes, scratch_bytes;
  struct flow_loop_run *loop;                   /* loop_run.h; NULL: it is not a loop */
  struct flow_instance *body;                   /* of a loop */
  int                fixed;                     /* prepare() sees nothing but what derived.h calls fixed */
} flow_entry;

/* What an instance adds to a segment of its plan. */
typedef struct flow_stage {
  int     most_slots;                  /* of a segment of rows; where there are sums, a function of shapes only */
  int64_t most_chunk;                  /* rows that a cache holds, which where there are sums follow from the instruction set */
  int64_t rows_per_slot, chunk;        /* for set_rows rows */
  int     prepares, sums;              /* entries with prepare(); PARTIAL outputs */
  int     lasting;                     /* entries with prepare() of which derived.h keeps what that makes */
  int     fixed;                       /* all that the segment makes is kept: derived.h */
  size_t  local_bytes;
  int collective;                      /* a sum over replicas, or a gather of their rows */
  int     waits_for;                   /* the last COLLECTIVE segment before whose result it is the first to read, or -1 */
} flow_stage;

/* A member of the team as this instance sees it: its own calls, local values and scratch. Only that member writes it. */
typedef struct flow_member {
  _Alignas(64) _Atomic int64_t claimed; /* members: the step of the pieces (segment.c) that it was last in, times 2^32, plus the pieces
                                        * of its own that were taken there */
  _Alignas(64) int64_t step;            /* of pieces, counted through the run */
  flow_call    *calls;                 /* [entry] */
  flow_operand *operands;
  char         *local, *scratch;
  flow_watch   *watches;               /* [entry] of the current run, if it is profiled */
  int64_t       rows, gathered_rows;   /* of the run that the shapes were made for, -1: none */
} flow_member;

/* A variable that an effect writes before the run's data has been checked to its end: a copy of it is kept until then. */
typedef struct flow_undo_record { int value; size_t offset, bytes; } flow_undo_record;

/* Made by flow_instance_new, owned by its caller; those of further replicas belong to the set. The caller's thread lays it out and releases
 * it; during a run the members read it, and write `part` and `members` as run_state.h says. Laid out again only by flow_instance_resize. */
struct flow_instance {
  flow_plan    *plan;
  /* where it runs: the plan's, or for replicas another device of the kind; a reference; NULL: the CPU */
  flow_place   *place;
  int64_t       capacity;
  flow_entry   *entries;               /* in the plan's order, with the kernels for set_rows rows */
  const flow_kernel **kernels;         /* [class of rows][entry]: of runs with up to 1 << class rows, of any if there is one class only */
  int           class_count, row_class;      /* row_class: the one that `entries` are set for */
  int64_t       set_rows;              /* rows that stages and entries are set for, -1: none */
  flow_binding *bindings;
  flow_stage   *stages;                /* [segment] */
  int           last_sum;              /* the last COLLECTIVE segment; -1: there is none */
  char         *arena;
  size_t        arena_bytes, local_bytes, scratch_bytes, operand_count;
  size_t       *offsets;               /* [value]: of roots in the arena, or NOT_PLACED */
  char *output_moves;                  /* [output]: a run may make it elsewhere, where part.bases says: nothing shares its memory */
  flow_derived  derived;               /* what follows from variables and constants alone */
  flow_undo_record *undo_log;          /* what the plan's early effects write: put back if the run fails after them */
  int           undo_count;
  char         *undo_memory;           /* of the place, undo_bytes long */
  size_t        undo_bytes;
  flow_member  *members;
  int           member_count;
  flow_pace     pace;                  /* whether runs go by the team */
  flow_device_run  *device;            /* the plan runs on a device, where arena and undo_memory are; NULL: on the CPU */
  flow_device_sums *sums;              /* of a replica on a device whose sums go through the host; else NULL */
  flow_run_part part;                  /* what it does of the current run */
  flow_run_state     *run;                   /* the set's */
  flow_replica_set *set;               /* never NULL: a single replica has a set of one */
};

/* flow_instance_new at `place`. set: the replicas that the instance joins as the next one; NULL: it is the only one of a new set. */
flow_status flow_instance_new_at(flow_plan *plan, double capacity, flow_place *place, flow_replica_set *set, flow_instance **out);
/* Lays the same instance out for another capacity, by the caller's thread between runs. After a failure its capacity is 0, nothing of
 * its memory is left, and every run fails with FLOW_OUT_OF_MEMORY. */
flow_status flow_instance_resize(flow_instance *instance, int64_t capacity);
/* FLOW_OUT_OF_MEMORY for an instance that a failed resize has left empty. What uses its tables between runs asks first. */
flow_status flow_check_laid_out(const flow_instance *instance);
/* members.c. Gives the instance and the bodies of its loops `count` members, in place of those that they had: memory for as many threads.
 * Between runs. After a failure the instance has none. */
flow_status flow_instance_set_members(flow_instance *instance, int count);
void        flow_instance_release_members(flow_instance *instance);

/* chunks.c. Limits of ROWS segment s, and where its chunk-sized values are in a member's block. blocks and block_of: room for all operands
 * of the segment, and for all values. */
flow_status flow_size_stage(flow_instance *instance, int s, flow_block *blocks, int *block_of);

/* arena.c: lays the values of a new instance out and takes the memory. read[value]: something reads it. */
flow_status flow_make_arena(flow_instance *instance, const char *read);
/* Memory of the place where the instance runs. */
flow_status flow_instance_allocate(const flow_instance *instance, size_t bytes, void **out);
void        flow_instance_free(const flow_instance *instance, void *memory, size_t bytes);
/* Where a tensor that outlives the run, a constant or a variable's, is for this instance: on a replica's device a copy of it. */
flow_status flow_base_of(const flow_instance *instance, const flow_tensor *tensor, char **out);

/* choose.c. Classes of rows that kernels are chosen for: batches of 1, 2, 3 to 4, ... rows up to the capacity, those of the most nominal
 * rows (launch.h) and above together; one, where the choice does not depend on rows: kernels of devices have no costs. */
int         flow_count_row_classes(const flow_instance *instance);
/* Chooses the kernel of entry e of segment s for a class and asks it for its memory, for the largest call that it will see. */
flow_status flow_choose_kernel(flow_instance *instance, int s, int e, int class, flow_operand *operands, flow_queue *queue);
void        flow_set_row_class(flow_instance *instance, int class);
/* Asks a device's library, by all threads at once, for the plans that the ops of a run of `rows` rows need: making one takes up to
 * seconds, and the library keeps it. A plan that cannot be made does not fail here; the op that needs it does. */
void        flow_choose_ahead(const flow_instance *instance, int64_t rows, flow_queue *queue);
/* How `rows` rows are grouped in a ROWS segment. Where there are sums, the slots are as many as there may be; elsewhere a slot is as many
 * rows as fit, and every thread gets some slots. */
void        flow_divide_rows(flow_stage *stage, int64_t rows);
/* Kernels, slots and chunks for a run of this many rows, at most the capacity; those of the bodies of loops, too. */
flow_status flow_instance_set_rows(flow_instance *instance, int64_t rows);

/* run.c. Makes a tensor for each of the plan's outputs, for `rows` rows, where the plan runs; outputs: [output_count] of NULL, as they are
 * again after a failure. The caller releases them. */
flow_status flow_instance_new_outputs(const flow_instance *instance, int64_t rows, flow_tensor **outputs);

#endif
