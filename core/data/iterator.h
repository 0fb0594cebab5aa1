/* iterator.h: one pass over a dataset, as the parts of core/data see it.
 *
 * One thread at a time calls the iterator: it takes elements, saves the position and closes. Threads of the pass (map, prefetch,
 * interleave) work meanwhile: they write only counters, which are atomic, and what `lock` guards. To stop the pass, call
 * flow_iterator_cancel: a thread that waits at a gate then returns FLOW_INTERRUPTED. Threads do not survive a fork: in the child
 * flow_iterator_next refuses the pass (flow_iterator_forked). */
#ifndef FLOW_DATA_ITERATOR_H
#define FLOW_DATA_ITERATOR_H

#include <pthread.h>
#include <stdatomic.h>
#include "data/threads.h"

/* What a stage of the pass did so far, over all epochs. Written by the thread that runs the stage, read by anybody. */
typedef struct flow_stage_counters {
  const char     *name;
  int             depth;
  _Atomic int64_t elements, nanoseconds, waited_nanoseconds, queued, capacity, threads;
} flow_stage_counters;

/* Relaxed: counters are for reports, and order nothing. */
static inline void flow_count(_Atomic int64_t *counter, int64_t by)
{
  atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* Draws of one dataset of the pass: numbers first, first + 1, ... in the order in which its cursors open. What is below a cache
 * always draws its first number: the cache holds the elements of one pass. */
typedef struct flow_draw_record {
  flow_dataset *dataset;
  uint64_t      seed[2];
  int64_t       first, used;
  int           frozen;
} flow_draw_record;

/* Elements first .. first + count - 1 of the pass failed. */
typedef struct flow_failed_elements {
  int64_t first, count;
} flow_failed_elements;

/* A pass. `cancelled` and `generation` are atomic, the counters in `stages` as well; `draws` and `gates` are guarded by
 * `lock`. Where a pump runs the pass (generator.c), its thread changes `top`, delivered and to_skip, and the caller
 * waits at the pump's gate meanwhile; all else belongs to the one thread that calls the iterator. */
struct flow_iterator {
  flow_context        *context;
  flow_dataset        *dataset;
  flow_cursor         *top;              /* NULL before the first element */
  int64_t              delivered, to_skip;      /* elements after the position; of these, this many are still to be left out */
  flow_failed_elements *failed;                 /* among those that were delivered, in order */
  int failed_count, failed_capacity;
  pthread_mutex_t      lock;             /* of draws and gates, which worker threads may need */
  flow_draw_record    *draws;            /* of the random datasets that the pass consists of, each once */
  int                  draw_count, draw_capacity;
  flow_stage_counters *stages;           /* [stage_count] */
  int                  stage_count;
  int                  peeks;            /* leaves no trace in the random state of datasets */
  flow_gate           *gates;            /* list of all places where threads of the pass wait */
  _Atomic int          cancelled;
  _Atomic int          generation;       /* 1 + fork generation of its threads; 0: it has none */
  flow_row_store      *store;            /* a reference; NULL: none */
  const flow_dataset  *stored;           /* whose batches are made of its rows */
  struct flow_pump    *pump;             /* generator.c; NULL: nothing calls back */
};

/* Whether this process was forked after the pass started threads, which it therefore lacks. */
static inline int flow_iterator_forked(const flow_iterator *iterator)
{
  int generation = atomic_load_explicit(&((flow_iterator *)(uintptr_t)iterator)->generation, memory_order_relaxed);
  return generation > 0 && generation != flow_fork_generation() + 1;
}

#endif
