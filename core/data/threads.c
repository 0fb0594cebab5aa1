/* threads.c: see threads.h.
 *
 * Cancelling: flow_iterator_cancel sets a flag, then takes each gate's lock once and signals both of its conditions. A thread looks at
 * the flag with the gate's lock held before it waits, so that it either sees the flag or is waiting when the signal comes. Nobody is
 * woken by a signal handler: the caller's thread, and it alone, wakes up now and then to look at the interrupt flag of its context. */
#include "data/threads.h"

#include "base/condition.h"
#include "data/iterator.h"

enum { LOOK_NANOSECONDS = 50000000 };      /* how often the caller's thread looks for an interrupt while it waits */

/* ---- gates --------------------------------------------------------------------------------------------------------------- */

/* The list is changed under the iterator's lock, because flow_iterator_cancel walks it from another thread. */
void flow_gate_open(flow_gate *gate, flow_iterator *iterator)
{
  gate->iterator = iterator;
  pthread_mutex_init(&gate->lock, NULL);
  flow_condition_make(&gate->ready);
  flow_condition_make(&gate->room);
  pthread_mutex_lock(&iterator->lock);
  gate->previous = NULL;
  gate->next = iterator->gates;
  if (gate->next) gate->next->previous = gate;
  iterator->gates = gate;
  pthread_mutex_unlock(&iterator->lock);
}

/* Takes the gate out of the iterator's list, under the iterator's lock, since a cancel walks that list. A second call does nothing. */
void flow_gate_close(flow_gate *gate)
{
  flow_iterator *iterator = gate->iterator;
  if (!iterator) return;
  gate->iterator = NULL;
  pthread_mutex_lock(&iterator->lock);
  if (gate->previous) gate->previous->next = gate->next;
  else iterator->gates = gate->next;
  if (gate->next) gate->next->previous = gate->previous;
  pthread_mutex_unlock(&iterator->lock);
  pthread_cond_destroy(&gate->ready);
  pthread_cond_destroy(&gate->room);
  pthread_mutex_destroy(&gate->lock);
}

void flow_gate_lock(flow_gate *gate) { pthread_mutex_lock(&gate->lock); }
void flow_gate_unlock(flow_gate *gate) { pthread_mutex_unlock(&gate->lock); }

/* Sequentially consistent, like the store in flow_iterator_cancel: a thread that reads 0 here holds the gate's lock and waits
 * before cancel takes it. */
static flow_status cancelled(const flow_iterator *iterator)
{
  if (atomic_load(&iterator->cancelled)) return flow_fail(FLOW_INTERRUPTED, "the iterator was closed");
  return FLOW_OK;
}

/* The iterator whose next element this thread asked for. */
static _Thread_local const flow_iterator *served;

const flow_iterator *flow_iterator_served(const flow_iterator *iterator)
{
  const flow_iterator *before = served;
  served = iterator;
  return before;
}

/* Only the caller's own thread looks at the interrupt flag: a signal handler can set it, but not wake anybody. */
static int is_caller(const flow_iterator *iterator) { return iterator->context && served == iterator; }

/* The caller's thread wakes every LOOK_NANOSECONDS and looks for an interrupt (Ctrl-C); other threads sleep until they are signalled. */
flow_status flow_gate_wait(flow_gate *gate, pthread_cond_t *condition)
{
  flow_iterator *iterator = gate->iterator;
  FLOW_TRY(cancelled(iterator));
  if (!is_caller(iterator)) {
    pthread_cond_wait(condition, &gate->lock);
    return cancelled(iterator);
  }
  flow_condition_wait_for(condition, &gate->lock, LOOK_NANOSECONDS);
  if (flow_interrupted(iterator->context)) return flow_fail(FLOW_INTERRUPTED, "interrupted");
  return cancelled(iterator);
}

/* Lock order: the iterator's lock, then a gate's. No thread takes the iterator's lock while it holds a gate's. */
void flow_iterator_cancel(flow_iterator *iterator)
{
  atomic_store(&iterator->cancelled, 1);
  pthread_mutex_lock(&iterator->lock);
  for (flow_gate *gate = iterator->gates; gate; gate = gate->next) {
    pthread_mutex_lock(&gate->lock); /* a thread that looked at the flag before it was set is waiting by now */
    pthread_cond_broadcast(&gate->ready);
    pthread_cond_broadcast(&gate->room);
    pthread_mutex_unlock(&gate->lock);
  }
  pthread_mutex_unlock(&iterator->lock);
}

/* ---- threads --------------------------------------------------------------------------------------------------------------- */

/* The generation marks the pass as one that has threads (flow_iterator_forked). On failure nothing runs. */
flow_status flow_pass_thread_start(flow_iterator *iterator, flow_thread *thread, void *(*run)(void *), void *argument)
{
  if (flow_thread_start(thread, "flow-data", run, argument) != 0)
    return flow_fail(FLOW_OUT_OF_MEMORY, "a thread of the input pipeline could not be started: the system allows no more; ask for fewer "
                                         "(num_parallel_calls), or raise the limit of threads (ulimit -u) or of memory (ulimit -v)");
  atomic_store(&iterator->generation, thread->generation + 1);
  return FLOW_OK;
}
