/* replica_set.h: instances of one plan that divide a batch: those of this process, which are the set's, and, through an exchange, those
 * of the other workers, which have a set like this. They share the plan's variables; on devices each has copies of them.
 *
 * Replicas differ in what they compute until a sum over all of them; gradients, what metrics gain and the means that layers keep all
 * pass through one. So the commit tail is the same for all: on the CPU it is done once, by the lead with the lead's values.
 *
 * Life. The lead is made with a set of one, itself, and owns it; flow_instance_set_replicas gives it others and the exchange,
 * flow_instance_release_replicas takes them away. The exchange is borrowed and outlives the instance or its release.
 *
 * Which thread writes. Between runs the caller's thread. At the beginning of a run the caller's thread as well: flow_replica_set_divide
 * talks to the other workers and sets what all agree on. During the run all members read the set. Fields marked "a member's" are written
 * by one member at a time: by member 0, between two barriers, on the CPU; by the thread of replica 0 on devices. An instance that is
 * alone goes through none of this.
 *
 * Order. Workers have to call the exchange in the same order. Every call of it here is therefore made by one thread, at points that
 * follow from the plan, and is made or left out on grounds that all workers have in common: the announcements, or the exchange's own
 * failure, which reaches all of them. */
#ifndef FLOW_RUN_REPLICAS_REPLICA_SET_H
#define FLOW_RUN_REPLICAS_REPLICA_SET_H

#include "run/instance.h"
#include "tensor/place.h"
#include "transport/exchange.h"

enum { FLOW_MOST_REPLICAS = 256 };

/* What a worker tells the others when a run begins; divide.c compares them. */
typedef struct flow_run_announcement {
  int64_t  rows, step;                 /* that it has; where it is */
  uint64_t plan, division;             /* as in flow_replica_set */
  int32_t region, weights;             /* the numbers of its shared region, and of flow_announced_weights */
  uint64_t numbers;                    /* tells the values of set->numbers apart */
  uint64_t changes;                    /* of flow_find_changes */
  uint8_t shares_rows, stop_requested, rerecord;
} flow_run_announcement;

/* The sum of one COLLECTIVE segment over the workers. */
typedef struct flow_worker_sum {
  int64_t ticket;                      /* a member's: the exchange's for it, in the current run */
  int64_t staged;                      /* where it travels in set->staged, with other small ones; -1: alone */
  float   *rest;                       /* what rounding has left of the gradients so far; NULL: they travel as they are */
  uint16_t *rounded;                   /* as they travel, in the memory of `rest` */
} flow_worker_sum;

/* An update whose parameters and slots all workers have in common memory: shared_weights.c. */
typedef struct flow_shared_weights {
  int entry;      /* the update's; -1: none */
  int refused;    /* there was no memory in common */
  int times;      /* that the variables were put there, ... */
  int64_t runs;   /* ... in this many runs */
  int64_t agreed; /* in the current run: the memory that all are in, 0: they go to new one, -1: they do not share */
  int64_t moved;  /* bytes from there to where the current run's update writes; 0: they do not share */
} flow_shared_weights;

struct flow_replica_set {
  flow_instance  *lead;                /* the first local replica, which speaks for all of them */
  flow_instance **replicas;            /* [count]: the local ones, the lead first */
  int             count;
  flow_run_state  run;                  /* the current one */
  _Atomic int     arrivals;            /* members: that had no replica left to do, in the current run */
  flow_device_group *group;            /* the replicas' devices, a reference; NULL: on the CPU, or alone */
  flow_exchange  *exchange;            /* to the other workers; NULL: there are none */

  /* What workers agree on when a run begins: divide.c. Readable until the next run. */
  flow_run_announcement *announcements;    /* [worker] */
  int             workers;             /* for which there is room; 0: there is no exchange */
  uint64_t        plan_key;            /* tells plans of different operations apart */
  int            *numbers;             /* [number_count]: values of the plan, scalar variables that all workers have alike: plan_key.c */
  int             number_count;
  flow_variable **watched; /* [watched_count]: of the plan, borrowed, those that all workers have alike: changes.c */
  int watched_count;
  int             shares_rows;         /* all workers give the same rows and each computes its part; 0: each gives its own */
  int             stop_requested;      /* by this worker */
  int             stop_agreed;         /* a worker has requested it, so nothing runs */
  int announced;                       /* all have announced the run that is under way */
  uint64_t        division;            /* tells apart how the rows of runs were divided, the same number at all workers */
  int             rerecord;            /* recordings are of no use to the current run, at one of the workers at least */

  /* Sums over workers: all_reduce.c. */
  flow_worker_sum *sums;               /* [segment] */
  int64_t         newest_sum;          /* a member's: ticket of the current run's last sum under way; -1: none */
  int sums_alone;                      /* some sums do not travel together with others */
  float          *staged;              /* a member's: small sums that travel together ... */
  int64_t         staged_begin, staged_end;      /* ... of which these are about to */
  float          *staged_parts;        /* a member's: theirs of all workers, where they travel with gathered rows */
  int             widened;             /* a member's: segments before this one whose rounded sums are floats again in the current run */

  /* Rows of all replicas put together: all_gather.c; then workers divide what is made of them: sharded_update.c. */
  int             gathers;             /* the plan does */
  /* a member's: segments before this one whose rows the workers have put together in the current run */
  int             gathers_made;
  flow_shared_region region;           /* where the workers do; number -1: they cannot share memory */
  int64_t         region_rows;         /* of each replica that it holds */
  int64_t         region_agreed;       /* its number, if all workers said the same when the current run began, else 0 */
  flow_shared_weights weights;
  int64_t        *unit_bounds, *received;      /* a member's: [worker + 1], of the collect under way */
  flow_gathering *gatherings;          /* a member's: [segment + 1], of the gather under way */
};

/* A set with `lead` alone; the lead is not retained. */
flow_status flow_replica_set_new(flow_instance *lead, flow_replica_set **out);
void        flow_replica_set_release(flow_replica_set *set);      /* NULL is fine */
/* `local` replicas in this process, of which `instance` becomes the first, and those of the other workers (exchange: borrowed; NULL: there
 * are none). group: their devices, of a plan that runs on one; NULL: it runs on the CPU, or there is one local replica whose sums go
 * through the host. */
flow_status flow_instance_set_replicas(flow_instance *instance, int local, flow_device_group *group, flow_exchange *exchange);
/* The instance is alone again. */
void        flow_instance_release_replicas(flow_instance *instance);

/* ---- divide.c, before a run ---- */

/* The most rows that one replica gets of `rows`. */
int64_t     flow_replica_set_part_rows(const flow_replica_set *set, int64_t rows);
/* How many of them the replicas of this process get together. */
int64_t flow_replica_set_local_rows(const flow_replica_set *set, int64_t rows);
/* The parts of a run over `rows` rows of this process from run->given.first_sample on, in the replicas' flow_run_part. Talks to the other
 * workers. */
flow_status flow_replica_set_divide(flow_replica_set *set, int64_t rows);
/* The same where replica r has rows[r]. */
flow_status flow_replica_set_divide_each(flow_replica_set *set, const int64_t *rows);
/* The run is over: with a failure, which is this thread's last error, that the other workers may wait for. */
void flow_replica_set_end_run(flow_replica_set *set, flow_status status);

/* ---- changes.c ---- */

/* Lists the variables that are to be equal on all workers. */
flow_status flow_watch_variables(flow_replica_set *set);
void flow_release_watched(flow_replica_set *set);
/* *out: a hash of what this process has written into them between runs since the workers agreed; 0: nothing. */
flow_status flow_find_changes(const flow_replica_set *set, uint64_t *out);
/* All workers have said what flow_find_changes gave. differ: not all the same; then they compare all numbers, and it fails with a sentence
 * if these differ, on all of them. */
flow_status flow_settle_changes(flow_replica_set *set, int differ);

/* ---- all_reduce.c ---- */

/* Which sums travel together, and the memory for them. */
flow_status flow_stage_sums(flow_replica_set *set, const flow_exchange *exchange);
void        flow_release_sums(flow_replica_set *set);
void        flow_start_sums(flow_replica_set *set);      /* before a run */
/* Between barriers of the executor: a member's share of what a COLLECTIVE segment adds up over the local replicas, into the lead's
 * memory. */
void        flow_add_replicas(const flow_replica_set *set, int segment, int member, int members);
/* By one member: begins the sum over the workers. */
void        flow_send_sum(flow_replica_set *set, int segment);
/* By one member: waits for it and those before, of a failed run for all that are under way. Segments before `end` have run: what they
 * gather and small sums of theirs come, too. */
void        flow_receive_sums(flow_replica_set *set, int segment, int end);
/* The small sums that are about to travel, as an array to gather; then their sums, in the order of the workers. */
flow_gathering flow_gather_staged(flow_replica_set *set);
void        flow_add_staged(flow_replica_set *set);
/* Whether that sum has come back, with flow_receive_sums or before: of those that travel together some may not have been sent yet. */
int         flow_sum_is_made(const flow_replica_set *set, int segment);

/* ---- short_sums.c ---- */

/* Memory for the segment's sum, if it is one of gradients that travel as 16-bit floats. */
flow_status flow_shorten_sum(const flow_replica_set *set, const flow_exchange *exchange, int segment, int64_t count);
/* Rounds gradients with what is left of earlier ones, and keeps what is left of these. */
void        flow_round_sum(const flow_worker_sum *sum, int dtype, const float *gradients, int64_t count);
/* The sum that has come back. */
void        flow_widen_sum(const flow_worker_sum *sum, int dtype, float *gradients, int64_t count);

/* ---- all_gather.c ---- */

/* Whether a segment is a gathering of rows from all workers. */
int         flow_is_gather(const flow_instance *instance, int segment);
/* Before a run: finds the memory for what is gathered in it, if they can such that all workers see it, and lets the replicas compute their
 * rows right there. */
flow_status flow_place_gathered(flow_replica_set *set);
void        flow_release_region(flow_replica_set *set);
/* A member's share of putting the rows of the local replicas together, as many of each as of the largest, zeros where one has fewer. */
void        flow_gather_replicas(const flow_replica_set *set, int segment, int member, int members);
/* Whether segments [begin, end) gather rows that travel in messages: then staged sums go with them. */
int         flow_gathers_by_message(const flow_replica_set *set, int begin, int end);
/* By one member: the local replicas' rows of a gathering are complete. If they may travel before the rest of the message is made, some of
 * them do. */
void flow_send_rows_early(flow_replica_set *set, int segment);
/* By one member: puts the rows of all workers together that segments [begin, end) gather. staged: with the staged sums; met: all workers
 * have come here, as a sum of theirs shows. */
void        flow_gather_workers(flow_replica_set *set, int begin, int end, int staged, int met);

/* ---- shared_weights.c ---- */

/* Which update of the plan can have its parameters and slots in memory of all workers, when the set is made. */
void flow_find_shared_weights(flow_replica_set *set);
/* What this worker announces: the number of the memory they are in; 0: none yet; -1: it cannot. */
int32_t flow_announced_weights(const flow_replica_set *set);
/* Before a run: puts them there, if all can. */
flow_status flow_place_weights(flow_replica_set *set);
/* Before a run: what else it writes is taken out of such memory. */
flow_status flow_own_written(const flow_replica_set *set);
/* After a run that has written its variables. */
void flow_change_over_weights(flow_replica_set *set);
/* After one that has failed: they go to new memory, since the workers may be at different steps. */
void flow_doubt_weights(const flow_replica_set *set);
/* The run's update begins again, in memory of this process. */
void flow_leave_next_weights(flow_replica_set *set);

/* ---- sharded_update.c ---- */

/* What the kernels of this process round by, "avx2": workers make a gradient of gathered factors, each on its own, only if all have the
 * same. */
const char *flow_replica_arithmetic(void);
/* What is laid out from now on is computed by the kernels of this build, "avx2", if this machine can run it. */
void flow_replica_use_arithmetic(const char *isa);

/* Whether this worker does a part of entry e, an update with products, only; the part of a worker. */
int         flow_is_sharded(const flow_replica_set *set, int e);
/* Shape of the matrix that product i of such an entry updates. */
void flow_sharded_matrix(const flow_replica_set *set, int e, int i, int64_t *rows, int64_t *columns);
flow_shard  flow_shard_of(const flow_replica_set *set, int e, int worker);
/* By one member, after its worker's part: fetches the others' parts, or waits for them where they are in common memory. It cannot fail:
 * where they do not come they are made here, and the run fails at its end. */
void        flow_collect_shards(flow_replica_set *set, int e, const flow_call *call);

#endif
