/* condition.h: condition variables whose waits are measured by the monotonic clock: a change of the system's time neither ends nor
 * lengthens one. Needs libc alone. */
#ifndef FLOW_BASE_CONDITION_H
#define FLOW_BASE_CONDITION_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* pthread_cond_destroy ends it. */
static inline void flow_condition_make(pthread_cond_t *condition)
{
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

/* Waits, with the lock held, until somebody signals or the time is over; it may also return for no reason, as pthread_cond_wait. */
static inline void flow_condition_wait_for(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t nanoseconds)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  int64_t end = until.tv_nsec + nanoseconds;
  until.tv_sec += (time_t)(end / 1000000000);
  until.tv_nsec = (long)(end % 1000000000);
  pthread_cond_timedwait(condition, lock, &until);
}

#endif
