/* prefetch.c: a thread works ahead of the consumer, into a ring. AUTOTUNE begins with two elements and doubles when the consumer finds
 * the ring empty although it was full before: then elements come in bursts, and a longer ring evens them out
 * (tensorflow/core/kernels/data/prefetch_autotuner.h). Elements and failures come in the order in which the thread made them. */
#include "base/team.h"
#include "base/need.h"
#include "data/iterator.h"

enum { FIRST_LIMIT = 2, MOST_TUNED = 64 };

static const double most_tuned_bytes = 512e6;      /* limit of the ready elements, above which AUTOTUNE stops lengthening the queue */

typedef struct prefetch { flow_dataset base; int64_t size; } prefetch;      /* -1: AUTOTUNE */

typedef struct entry { flow_element element; flow_failure failure; } entry;

/* `gate` guards everything from most on. head <= tail <= head + limit; an entry from head on is the consumer's, all
 * others the thread's. */
typedef struct prefetch_cursor {
  flow_cursor base;
  flow_gate   gate;
  flow_thread thread;
  entry      *ring;                    /* [most] */
  int64_t     most, limit, head, tail;
  int         was_full, ended, stopped;
} prefetch_cursor;

/* Pulls without the lock. A failure takes a place in the ring like an element, so that it comes in order; the end takes
 * none. */
static void *thread_main(void *argument)
{
  prefetch_cursor *at = argument;
  flow_team_leave();
  flow_gate_lock(&at->gate);
  while (!at->stopped && !at->ended) {
    if (at->tail - at->head >= at->limit) {
      at->was_full = 1;
      if (flow_gate_wait(&at->gate, &at->gate.room) != FLOW_OK) break;
      continue;
    }
    flow_gate_unlock(&at->gate);
    flow_element element = { 0 };
    flow_status status = flow_cursor_pull(at->base.inputs[0], &element);
    flow_gate_lock(&at->gate);
    entry *into = &at->ring[at->tail % at->most];
    flow_element_move(&into->element, &element);
    flow_failure_clear(&into->failure);
    flow_failure_take(&into->failure, status);
    if (status == FLOW_OK && into->element.count == 0) at->ended = 1;
    else at->tail++;
    pthread_cond_signal(&at->gate.ready);
  }
  at->ended = 1;
  pthread_cond_broadcast(&at->gate.ready);
  flow_gate_unlock(&at->gate);
  return NULL;
}

/* Of the values; texts and numbers alike. */
static double element_bytes(const flow_element *element)
{
  double bytes = 0;
  for (int i = 0; i < element->count; i++)
    bytes += (double)flow_shape_size(element->tensors[i]->rank, element->tensors[i]->shape) * flow_dtype_size(element->tensors[i]->dtype);
  return bytes;
}

/* With the lock held, by the consumer. */
static void tune(prefetch_cursor *at, const flow_element *element)
{
  if (((prefetch *)at->base.dataset)->size >= 0 || !at->was_full || 2 * at->limit > at->most) return;
  if (element_bytes(element) * 2 * (double)at->limit > most_tuned_bytes) return;
  at->limit *= 2;
  at->was_full = 0;
}

/* The thread starts at the first element. Waits only while the ring is empty; an entry that the thread could not make is its failure,
 * which is raised here. Whether the ring was empty when this came tells `tune` how far ahead to work. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  prefetch_cursor *at = (prefetch_cursor *)cursor;
  flow_stage_counters *counters = cursor->counters;
  if (!at->thread.started) {
    FLOW_TRY(flow_pass_thread_start(cursor->iterator, &at->thread, thread_main, at));
    if (counters) atomic_store(&counters->threads, 1);
  }
  flow_status status = FLOW_OK;
  double began = 0;
  flow_gate_lock(&at->gate);
  int was_empty = at->head == at->tail && at->head > 0;
  if (at->head == at->tail && !at->ended) began = flow_clock();
  while (status == FLOW_OK && at->head == at->tail && !at->ended) status = flow_gate_wait(&at->gate, &at->gate.ready);
  if (status == FLOW_OK && at->head < at->tail) {
    entry *from = &at->ring[at->head++ % at->most];
    flow_element_move(out, &from->element);
    status = flow_failure_raise(&from->failure);
    if (was_empty) tune(at, out);
    pthread_cond_signal(&at->gate.room);
  }
  if (counters) {
    if (began > 0) flow_count(&counters->waited_nanoseconds, (int64_t)((flow_clock() - began) * 1e9));
    atomic_store_explicit(&counters->queued, at->tail - at->head, memory_order_relaxed);
    atomic_store_explicit(&counters->capacity, at->limit, memory_order_relaxed);
  }
  flow_gate_unlock(&at->gate);
  return status;
}

/* Before the thread runs the input skips by itself; later elements that are in the ring count, too. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  prefetch_cursor *at = (prefetch_cursor *)cursor;
  if (at->thread.started) return flow_cursor_skip_by_pulling(cursor, count, skipped);
  return flow_cursor_skip(cursor->inputs[0], count, skipped);
}

/* The ring has room for the most that it may grow to; its thread is started by the first `next`, so that a skip before it can pass over
 * elements that nobody makes. */
static flow_status open(flow_cursor *cursor)
{
  prefetch_cursor *at = (prefetch_cursor *)cursor;
  int64_t size = ((prefetch *)cursor->dataset)->size;
  void *block;
  FLOW_TRY(flow_cursor_open_all(cursor));
  at->most = size < 0 ? MOST_TUNED : size > 0 ? size : 1;
  at->limit = size < 0 ? FIRST_LIMIT : at->most;
  size_t bytes;
  FLOW_TRY(flow_multiply(sizeof(entry), (size_t)at->most, &bytes));
  FLOW_TRY(flow_alloc_zero(bytes, &block));
  at->ring = block;
  flow_gate_open(&at->gate, cursor->iterator);
  return FLOW_OK;
}

/* Wakes the thread where it waits for room, joins it, and releases what it made and was not taken. */
static void close(flow_cursor *cursor)
{
  prefetch_cursor *at = (prefetch_cursor *)cursor;
  if (at->gate.iterator) {
    flow_gate_lock(&at->gate);
    at->stopped = 1;
    pthread_cond_broadcast(&at->gate.room);
    flow_gate_unlock(&at->gate);
    flow_thread_join(&at->thread);
    flow_gate_close(&at->gate);
  }
  if (cursor->counters) atomic_store(&cursor->counters->threads, 0);
  for (; at->ring && at->head < at->tail; at->head++) flow_element_clear(&at->ring[at->head % at->most].element);
  flow_free(at->ring);
}

static const flow_dataset_class class = {
  .name = "prefetch", .dataset_bytes = sizeof(prefetch), .cursor_bytes = sizeof(prefetch_cursor), .open = open, .next = next, .skip = skip,
  .close = close, .ends_pipeline = 1,
  .passes_on = 1,
};

/* buffer_size: -1 is AUTOTUNE, 0 works as 1. It is not part of the identity, since elements do not depend on it. */
flow_status flow_dataset_prefetch(flow_dataset *input, double size, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t whole;
  *out = NULL;
  FLOW_TRY(flow_check_whole("prefetch", "buffer_size", size, -1, &whole));
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  ((prefetch *)*out)->size = whole > 1000000 ? 1000000 : whole;
  return FLOW_OK;
}
