/* counted.h: the beginning of a structure that is kept as long as somebody refers to it, for those who hold references to structures of
 * rooms above them: they need to know neither its type nor how it is released. */
#ifndef FLOW_BASE_COUNTED_H
#define FLOW_BASE_COUNTED_H

#include <stdatomic.h>

typedef struct flow_counted {
  _Atomic int references;
  void (*release)(void *self);      /* gives back what it holds, and itself; after the last reference */
} flow_counted;

static inline void flow_counted_init(flow_counted *self, void (*release)(void *))
{
  atomic_init(&self->references, 1);
  self->release = release;
}

static inline void flow_counted_retain(flow_counted *self)
{
  atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
}

static inline void flow_counted_release(flow_counted *self)      /* NULL is fine */
{
  if (self && atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) == 1) self->release(self);
}

#endif
