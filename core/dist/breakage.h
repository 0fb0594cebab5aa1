/* breakage.h: why a communicator cannot be used any more. The first reason stays; it can come from any thread. Shared by the core and
 * the plugins, in C and in C++. */
#ifndef FLOW_DIST_BREAKAGE_H
#define FLOW_DIST_BREAKAGE_H

#include <pthread.h>
#include <stdio.h>
#include "base/status.h"

enum { FLOW_REASON_SIZE = 512 };

typedef struct flow_breakage {
  pthread_mutex_t lock;                       /* of those who write */
  int             broken;                     /* written last, with release; the rest does not change afterwards */
  flow_status     status;
  char            reason[FLOW_REASON_SIZE];   /* "all_reduce: rank 2 did not come within 3 s" */
} flow_breakage;

static inline void flow_breakage_start(flow_breakage *self)
{
  pthread_mutex_init(&self->lock, NULL);
  self->broken = 0;
}

static inline void flow_breakage_end(flow_breakage *self)
{
  pthread_mutex_destroy(&self->lock);
}

static inline int flow_is_broken(const flow_breakage *self)
{
  return __atomic_load_n(&self->broken, __ATOMIC_ACQUIRE);
}

static inline void flow_break(flow_breakage *self, flow_status status, const char *reason)
{
  pthread_mutex_lock(&self->lock);
  if (!self->broken) {
    self->status = status;
    snprintf(self->reason, sizeof self->reason, "%s", reason);
    __atomic_store_n(&self->broken, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&self->lock);
}

#endif
