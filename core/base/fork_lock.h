/* fork_lock.h: a mutex that tells a forked child whether a thread of the parent held it at the fork. That thread does not exist in the
 * child: the first thread there that takes the lock gets a new one, and repairs what it guards. */
#ifndef FLOW_BASE_FORK_LOCK_H
#define FLOW_BASE_FORK_LOCK_H

#include <pthread.h>
#include <stdatomic.h>

typedef struct flow_fork_lock {
  pthread_mutex_t mutex;
  _Atomic int     generation;          /* of forks, in which it was made; see flow_fork_generation() */
} flow_fork_lock;

#define FLOW_FORK_LOCK_NEW { .mutex = PTHREAD_MUTEX_INITIALIZER, .generation = 0 }

/* For a lock in memory that was allocated; static ones begin as FLOW_FORK_LOCK_NEW. */
void flow_fork_lock_make(flow_fork_lock *lock);
/* Returns 1 if this process was forked since the lock was last taken: its holder may be gone. */
int  flow_fork_lock_take(flow_fork_lock *lock);
void flow_fork_lock_give(flow_fork_lock *lock);

#endif
