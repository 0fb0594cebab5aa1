/* device_exchange.h: sums over replicas on devices that the devices make among themselves (NCCL): of one group, and, where there are other
 * processes, of all their groups. See device_exchange.c.
 *
 * Every device has a second queue that carries the sums, so that what does not need them goes on; the two follow each other inside of
 * one recording. All members enqueue the same sums in the same order, each by its own thread, and no thread waits for a sum. A device whose
 * peer does not come waits until its communicator is aborted. The sum is invalid then, and the votes of the step (accelerator.h) keep the
 * step from being committed. */
#ifndef FLOW_RUN_DEVICE_DEVICE_EXCHANGE_H
#define FLOW_RUN_DEVICE_DEVICE_EXCHANGE_H

#include "run/device/device_group.h"

typedef struct flow_device_exchange flow_device_exchange;
struct flow_store;

/* This group's place among those of all processes. */
typedef struct flow_device_ranks {
  int         first, all;             /* the rank of member 0; ranks of all processes */
  const char *name;                   /* of the group, new for each new one */
  /* by which processes find each other (transport/transport.h): rank 0's thread writes to it, member 0's thread reads; NULL: there are
   * no others */
  const struct flow_store *store;
  void      (*fail)(void *state, const char *reason);      /* (optional) tells the other processes that this one cannot go on */
  void      (*left)(void *state, flow_device_exchange *exchange);      /* (optional) it is about to be closed */
  void       *state;
} flow_device_ranks;

/* Opens the communicators, each by its member's thread, and waits until all ranks have. New; of the group from then on. */
flow_status flow_device_exchange_open(flow_device_group *group, const flow_device_ranks *ranks);
/* Recordings with its sums are released before. NULL is fine. */
void        flow_device_exchange_close(flow_device_exchange *self);
int         flow_device_exchange_ranks(const flow_device_exchange *self);

/* Before a run. What was aborted is opened again where this process is alone; else the run fails with the reason. */
flow_status flow_device_exchange_prepare(flow_device_exchange *self);
/* Changes with every opening. Recordings of an earlier generation cannot be used. */
int64_t     flow_device_exchange_generation(const flow_device_exchange *self);

/* By member's thread, before it enqueues a run. step_by_step: it waits for each sum before it enqueues more, as in the first run: CUDA
 * loads a kernel when it is first launched, may wait for the device meanwhile, and keeps other threads from loading theirs. */
void        flow_device_exchange_start(flow_device_exchange *self, int member, int step_by_step);
/* By member's thread, with its place locked; queue: the place's. data in place; float32 or float64. */
flow_status flow_device_exchange_sum(flow_device_exchange *self, int member, flow_queue *queue, int dtype, void *data, int64_t count);
/* What is enqueued on the queue from now on finds all sums made. */
flow_status flow_device_exchange_join(flow_device_exchange *self, int member, flow_queue *queue);
/* What is enqueued from now on is carried out by all members, or by none if one of them has refused its data. */
flow_status flow_device_exchange_vote(flow_device_exchange *self, int member, flow_queue *queue);

/* From any thread. No device of this process waits any longer; all later calls fail with the first reason. */
void        flow_device_exchange_abort(flow_device_exchange *self, const char *reason);
/* The same for a member that has failed: the other processes are told. */
void        flow_device_exchange_fail(flow_device_exchange *self, const char *reason);
/* From now on ranks->fail and ranks->left are not called. */
void        flow_device_exchange_detach(flow_device_exchange *self);
/* After a run that failed, or before the end: waits for all members, and forgets what they found wrong. */
void        flow_device_exchange_settle(flow_device_exchange *self);

#endif
