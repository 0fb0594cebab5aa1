/* threads.h: the threads of a pass, and how its parts wait for each other. Stages that work ahead (map, prefetch, generators) have
 * threads of their own, not the compute team's: they wait for files and for room, and run plans alone.
 *
 * Rules of hosts, as in base/team.h: threads start at the first element, block signals, and are joined when their stage closes.
 * In a forked child they do not exist: a pass that has threads then fails with a message. Closing it there leaves its cursors unchanged,
 * with their memory: a thread of the parent may have held their locks, or changed them, at that moment. So gates need not know of forks. */
#ifndef FLOW_DATA_THREADS_H
#define FLOW_DATA_THREADS_H

#include "base/failure.h"
#include "base/thread.h"
#include "data/dataset.h"

/* A lock with two conditions, in the list of its pass, so that cancelling the pass wakes the threads that wait here. What it guards
 * is the stage's. Several threads may wait at each condition, so those that change what others wait for signal all of
 * them where more than one may go on. */
typedef struct flow_gate {
  flow_iterator    *iterator;          /* NULL: not in use */
  pthread_mutex_t   lock;
  pthread_cond_t    ready, room;       /* for the consumer, for the producer */
  struct flow_gate *previous, *next;
} flow_gate;

void        flow_gate_open(flow_gate *gate, flow_iterator *iterator);
void        flow_gate_close(flow_gate *gate);        /* after its threads were joined; does nothing on a gate not in use */
void        flow_gate_lock(flow_gate *gate);
void        flow_gate_unlock(flow_gate *gate);
/* This thread now waits for an element of `iterator` (NULL: of none); gives the one that it waited for before. */
const flow_iterator *flow_iterator_served(const flow_iterator *iterator);
/* Waits, with the lock held, for a signal (there may be none: look again). FLOW_INTERRUPTED when the pass is cancelled, or
 * when the caller's context was interrupted while it waits. */
flow_status flow_gate_wait(flow_gate *gate, pthread_cond_t *condition);

/* Starts a thread of a pass, to be joined by flow_thread_join. `run` calls flow_team_leave() first: it computes alone (base/team.h). */
flow_status flow_pass_thread_start(flow_iterator *iterator, flow_thread *thread, void *(*run)(void *), void *argument);
/* Wakes all threads that wait in this pass; all waiting fails from now on. */
void        flow_iterator_cancel(flow_iterator *iterator);

#endif
