/* place.c: see place.h. Each function holds the lock for one call of the accelerator, since a queue is for one thread at a time.
 * Failures of downloads and waits go through the watchers, which may know the reason better: a device that waited in a sum for another
 * one. */
#include "tensor/place.h"

#include <pthread.h>
#include <stdio.h>
#include "base/memory.h"

/* lock: of queue, and of what was allocated on it. watchers: changed only while no thread waits. */
struct flow_place {
  _Atomic int             references;
  int                     device;
  char                    name[16];
  const flow_accelerator *accelerator;
  flow_queue             *queue;
  void                   *scalars;
  pthread_mutex_t         lock;
  flow_place_watcher     *watchers;
};

static const flow_accelerator_functions *functions_of(const flow_place *place) { return place->accelerator->functions; }

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

/* Memory of the device for what random ops of a run read: seed, step, first sample. */
static flow_status make_scalars(flow_place *place)
{
  FLOW_TRY(functions_of(place)->allocate(place->queue, sizeof(flow_scalars), &place->scalars));
  return functions_of(place)->clear(place->queue, place->scalars, sizeof(flow_scalars));
}

/* A place is a queue of a device, with its lock. New reference. */
flow_status flow_place_new(int device, flow_place **out)
{
  const flow_accelerator *accelerator;
  void *block;
  *out = NULL;
  FLOW_TRY(flow_accelerator_open(device, &accelerator));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_place), &block));
  flow_place *place = block;
  atomic_init(&place->references, 1);
  place->device = device;
  place->accelerator = accelerator;
  snprintf(place->name, sizeof place->name, "gpu:%d", device);
  pthread_mutex_init(&place->lock, NULL);
  flow_status status = accelerator->functions->queue_new(accelerator, &place->queue);
  if (status == FLOW_OK) status = make_scalars(place);
  if (status != FLOW_OK) flow_place_release(place);
  else *out = place;
  return status;
}

/* NULL, which stands for the CPU, has no count: all functions of life and names take it. */
flow_place *flow_place_retain(flow_place *place)
{
  if (place) atomic_fetch_add_explicit(&place->references, 1, memory_order_relaxed);
  return place;
}

/* The last reference ends the queue. */
void flow_place_release(flow_place *place)
{
  if (!place || atomic_fetch_sub_explicit(&place->references, 1, memory_order_acq_rel) > 1) return;
  if (place->queue) {
    functions_of(place)->release(place->queue, place->scalars);
    functions_of(place)->queue_release(place->queue);
  }
  pthread_mutex_destroy(&place->lock);
  flow_free(place);
}

int                     flow_place_device(const flow_place *place)      { return place ? place->device : -1; }
const char             *flow_place_name(const flow_place *place)        { return place ? place->name : "cpu"; }
const flow_accelerator *flow_place_accelerator(const flow_place *place) { return place->accelerator; }
const flow_scalars     *flow_place_scalars(const flow_place *place)     { return place->scalars; }

/* The queue may be used until flow_place_unlock, by the thread that has the lock. */
flow_queue *flow_place_lock(flow_place *place)
{
  pthread_mutex_lock(&place->lock);
  return place->queue;
}

void flow_place_unlock(flow_place *place) { pthread_mutex_unlock(&place->lock); }

/* ---- waiting --------------------------------------------------------------------------------------------------------------- */

/* A watcher is asked, innermost first, when a wait has failed. It stays the caller's memory until flow_place_unwatch. */
void flow_place_watch(flow_place *place, flow_place_watcher *watcher)
{
  watcher->next = place->watchers;
  place->watchers = watcher;
}

void flow_place_unwatch(flow_place *place, flow_place_watcher *watcher)
{
  flow_place_watcher **at = &place->watchers;
  while (*at && *at != watcher) at = &(*at)->next;
  if (*at) *at = watcher->next;
}

/* What a wait failed with, as the watchers explain it. */
static flow_status settle(flow_place *place, flow_status status)
{
  for (flow_place_watcher *w = place->watchers; w && status != FLOW_OK; w = w->next) status = w->settle(w->state, place, status);
  return status;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

/* FLOW_OUT_OF_MEMORY as flow_alloc; the bytes are counted as memory in use (flow_memory_count). */
flow_status flow_place_allocate(flow_place *place, size_t bytes, void **out)
{
  flow_queue *queue = flow_place_lock(place);
  flow_status status = functions_of(place)->allocate(queue, bytes ? bytes : 1, out);      /* a distinct address, as flow_alloc */
  flow_place_unlock(place);
  if (status == FLOW_OK) flow_memory_count((double)bytes);
  else *out = NULL;
  return status;
}

/* The device may still use the memory: the accelerator's release is ordered after the work of the queue. */
void flow_place_free(flow_place *place, void *memory, size_t bytes)
{
  if (!memory) return;
  flow_queue *queue = flow_place_lock(place);
  functions_of(place)->release(queue, memory);
  flow_place_unlock(place);
  flow_memory_count(-(double)bytes);
}

/* ---- transfers ------------------------------------------------------------------------------------------------------------- */

/* Returns when `host` may be changed again; the device may not have the bytes yet, but work that is enqueued later sees them. */
flow_status flow_place_upload(flow_place *place, void *to, const void *host, size_t bytes)
{
  if (bytes == 0) return FLOW_OK;
  flow_status status = functions_of(place)->upload(flow_place_lock(place), to, host, bytes);
  flow_place_unlock(place);
  return status;
}

/* Waits for all work before it: `host` has the bytes when this returns. */
flow_status flow_place_download(flow_place *place, void *host, const void *from, size_t bytes)
{
  if (bytes == 0) return FLOW_OK;
  flow_status status = functions_of(place)->download(flow_place_lock(place), host, from, bytes);
  flow_place_unlock(place);
  return settle(place, status);
}

/* Within the device; only enqueued. */
flow_status flow_place_copy(flow_place *place, void *to, const void *from, size_t bytes)
{
  if (bytes == 0 || to == from) return FLOW_OK;
  flow_status status = functions_of(place)->copy(flow_place_lock(place), to, from, bytes);
  flow_place_unlock(place);
  return status;
}

/* Zero bytes; only enqueued. */
flow_status flow_place_clear(flow_place *place, void *to, size_t bytes)
{
  if (bytes == 0) return FLOW_OK;
  flow_status status = functions_of(place)->clear(flow_place_lock(place), to, bytes);
  flow_place_unlock(place);
  return status;
}

/* Waits until all that was enqueued is done; failures of it show here. */
flow_status flow_place_synchronize(flow_place *place)
{
  flow_status status = functions_of(place)->synchronize(flow_place_lock(place));
  flow_place_unlock(place);
  return settle(place, status);
}

/* Both locks are taken in one order, so that two threads that follow each other do not wait forever. What is enqueued on `place` from now
 * on runs after what `other` has now. */
flow_status flow_place_follow(flow_place *place, flow_place *other)
{
  if (place == other) return FLOW_OK;
  flow_place *first = (uintptr_t)place < (uintptr_t)other ? place : other, *second = first == place ? other : place;
  flow_place_lock(first);
  flow_place_lock(second);
  flow_status status = functions_of(place)->follow(place->queue, other->queue);
  flow_place_unlock(second);
  flow_place_unlock(first);
  return status;
}
