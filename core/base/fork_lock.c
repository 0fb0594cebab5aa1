/* fork_lock.c: see fork_lock.h. */
#include "base/fork_lock.h"

#include <sched.h>

#include "base/thread.h"

void flow_fork_lock_make(flow_fork_lock *lock)
{
  lock->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  atomic_init(&lock->generation, flow_fork_generation());
}

/* Of several threads of the child that come at once, one makes the new mutex: the one that sets the generation to -1; the others wait
 * until it has locked it. */
int flow_fork_lock_take(flow_fork_lock *lock)
{
  int seen = atomic_load(&lock->generation), now = flow_fork_generation(), first = seen != now;
  if (first && !atomic_compare_exchange_strong(&lock->generation, &seen, -1)) {
    while (atomic_load(&lock->generation) != now) sched_yield();
    first = 0;
  }
  if (first) lock->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;      /* not init(): after fork the old contents mean nothing */
  pthread_mutex_lock(&lock->mutex);
  if (first) atomic_store(&lock->generation, now);
  return first;
}

void flow_fork_lock_give(flow_fork_lock *lock) { pthread_mutex_unlock(&lock->mutex); }
