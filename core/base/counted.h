/* counted.h: the first member of a structure with a count of references. Rooms below the structure's own can hold references to it: they
 * need to know neither its type nor how it is released. */
#ifndef FLOW_BASE_COUNTED_H
#define FLOW_BASE_COUNTED_H

#include <stdatomic.h>

typedef struct flow_counted {
  _Atomic int references;
  void (*release)(void *self);      /* frees the structure and what it holds, after the last reference */
} flow_counted;

/* The caller has the one reference that there is. */
static inline void flow_counted_init(flow_counted *self, void (*release)(void *))
{
  atomic_init(&self->references, 1);
  self->release = release;
}

/* Relaxed: who takes a reference has one already, so that the count cannot reach 0 meanwhile. The last release synchronizes with the
 * others. */
static inline void flow_counted_retain(flow_counted *self)
{
  atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
}

static inline void flow_counted_release(flow_counted *self)      /* NULL is fine */
{
  if (self && atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) == 1) self->release(self);
}

#endif
