/* failure.h: the first failure among threads that work together, with its message and its fields, until another thread wants it.
 *
 * flow_last_error() is of one thread, so what fails on a thread of a team, of a pipeline or of a communicator is kept here and raised on
 * the thread of the caller. Any thread may set it; the first that does wins, and everything is readable once flow_failure_is_set says so.
 * Zeroed memory is a failure that is not set. The inline part is what plugins, in C and in C++, use: they link nothing of the core. */
#ifndef FLOW_BASE_FAILURE_H
#define FLOW_BASE_FAILURE_H

#include <sched.h>
#include <string.h>
#include "base/status.h"

typedef struct flow_failure {
  int               state;       /* 0: nothing failed, 1: somebody writes the rest, 2: it does not change until it is cleared */
  flow_status       status;
  flow_error_fields fields;
  char              message[FLOW_MESSAGE_SIZE];
} flow_failure;

/* Whether a failure is there to be read: if so, its status, fields and message are complete. */
static inline int flow_failure_is_set(const flow_failure *failure)
{
  return __atomic_load_n(&failure->state, __ATOMIC_ACQUIRE) == 2;
}

/* No other thread may use it meanwhile. */
static inline void flow_failure_clear(flow_failure *failure)
{
  __atomic_store_n(&failure->state, 0, __ATOMIC_RELAXED);
}

/* Keeps the failure, unless there is one. When this returns, it is set, by this thread or another. fields: NULL if none are known. */
static inline void flow_failure_set(flow_failure *failure, flow_status status, const char *message, const flow_error_fields *fields)
{
  static const flow_error_fields unknown = FLOW_ERROR_UNKNOWN;
  int nothing = 0;
  if (!__atomic_compare_exchange_n(&failure->state, &nothing, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    while (!flow_failure_is_set(failure)) sched_yield();      /* the winner copies a text */
    return;
  }
  size_t length = strlen(message);
  if (length >= sizeof failure->message) length = sizeof failure->message - 1;
  failure->status = status;
  failure->fields = fields ? *fields : unknown;
  memcpy(failure->message, message, length);
  failure->message[length] = '\0';
  __atomic_store_n(&failure->state, 2, __ATOMIC_RELEASE);
}

/* The same with the message and the fields of this thread; FLOW_OK sets nothing. */
void        flow_failure_take(flow_failure *failure, flow_status status);
/* Makes it this thread's last error and returns its status; FLOW_OK if nothing failed. It stays set. */
flow_status flow_failure_raise(const flow_failure *failure);

#endif
