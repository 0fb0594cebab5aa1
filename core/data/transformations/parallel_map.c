/* parallel_map.c: an element function on threads. A ring of slots is between them and the consumer: a thread takes the next
 * slot and, alone, the next input element, then computes beside the others; the consumer takes slots in order, or whichever is
 * ready if the order does not matter. The ring bounds what is ready. Threads are woken as seldom as may be: the consumer only when
 * it waits and can go on, those that found the ring full when half of it is free.
 *
 * Every WINDOW elements the consumer looks at the time it waited. The ring is twice as long as there are threads, and grows while the
 * consumer waits although the ring was full at other times: both sides then sleep and wake by turns, which takes longer than a quick
 * function. AUTOTUNE begins with one thread per core: if the consumer waited, one more thread is tried, and taken back if the throughput
 * did not grow by it; threads beyond the first ones help where functions wait for files. */
#include "data/transformations/map.h"

#include <string.h>
#include "base/team.h"
#include "data/iterator.h"

/* MOST_THREADS: what num_parallel_calls may ask for. MOST_TUNED_THREADS: how far AUTOTUNE goes. PATIENCE: windows without a try after
 * one that did not help. A ring may grow to MOST_OF_A_THREAD slots for each thread, or LEAST_MOST. */
enum { WINDOW = 32, MOST_THREADS = 256, MOST_TUNED_THREADS = 64, PATIENCE = 8, MOST_OF_A_THREAD = 8, LEAST_MOST = 64 };

typedef enum slot_state { FREE, BUSY, READY } slot_state;
/* FREE: unused; BUSY: a thread's; READY: the consumer's. The state changes under the gate's lock, the rest belongs to
 * whom the state says. */
typedef struct slot { slot_state state; flow_element element; flow_failure failure; } slot;

/* What AUTOTUNE knows of the window of elements under way, and of the last trial. Only the consumer touches it, except for was_full. */
typedef struct tuning {
  int    elements;               /* of the window */
  double began, waited;          /* of the window; seconds */
  int    was_full;               /* a thread found no room in the window */
  int tried, pause;              /* one more thread than `rate` was measured with; windows until the next try */
  double rate;
} tuning;

/* `gate` guards all fields from slots to wanted, but threads and arguments, which are the consumer's. `pulling`: a
 * thread is in the input, without the lock. head <= tail <= head + limit. */
typedef struct map_cursor {
  flow_cursor   base;
  const flow_function *function;
  flow_gate     gate;
  slot         *slots, **ring;         /* [most]; ring[i % limit] */
  int           most, limit;
  int64_t       head, tail;            /* next to deliver, next to compute */
  int           pulling, ended, stopped, in_order, consumer_waits, threads_wait;
  flow_element_key key;                /* of the next input element */
  flow_batch_slots *batch_slots;       /* NULL: none */
  flow_thread  *threads;
  struct map_thread *arguments;
  int           thread_count, most_threads, wanted;      /* threads numbered from `wanted` on rest */
  tuning        tuning;
} map_cursor;

typedef struct map_thread { map_cursor *at; int number; } map_thread;

/* ---- threads -------------------------------------------------------------------------------------------------------------- */

/* Takes the next slot and fills `in` with the next input element. 0: this thread is done. Called and left with the lock held. */
static int take_input(map_cursor *at, int number, slot **out, flow_element *in, flow_element_key *key, flow_element *place,
                      flow_status *status)
{
  for (;;) {
    if (at->stopped || at->ended) return 0;
    int full = at->tail - at->head >= at->limit;
    if (full) at->tuning.was_full = 1;
    if (!full && !at->pulling && number < at->wanted) break;
    at->threads_wait++;
    flow_status waited = flow_gate_wait(&at->gate, &at->gate.room);
    at->threads_wait--;
    if (waited != FLOW_OK) return 0;
  }
  at->pulling = 1;
  flow_gate_unlock(&at->gate);
  *status = flow_cursor_pull(at->base.inputs[0], in);
  int is_end = *status == FLOW_OK && in->count == 0;
  if (!is_end) flow_batch_slots_ask(at->batch_slots, place);
  flow_gate_lock(&at->gate);
  at->pulling = 0;
  if (at->threads_wait > 0) pthread_cond_broadcast(&at->gate.room);
  if (is_end) {
    at->ended = 1;
    pthread_cond_broadcast(&at->gate.ready);
    return 0;
  }
  *out = at->ring[at->tail++ % at->limit];
  (*out)->state = BUSY;
  *key = at->key;
  at->key.index++;
  return 1;
}

/* A thread whose worker could not be opened still takes slots: each of its elements fails with that reason, so that the consumer sees it in
 * order. */
static void *thread_main(void *argument)
{
  map_thread *self = argument;
  map_cursor *at = self->at;
  flow_stage_counters *counters = at->base.counters;
  flow_element in = { 0 }, made = { 0 }, place = { 0 };
  flow_element_key key;
  void *worker = NULL;
  slot *into;
  flow_team_leave();
  flow_status status, opened = flow_map_worker_open(at->function, &worker);
  flow_failure no_worker = { 0 };
  flow_failure_take(&no_worker, opened);
  flow_gate_lock(&at->gate);
  while (take_input(at, self->number, &into, &in, &key, &place, &status)) {
    flow_gate_unlock(&at->gate);
    double began = flow_clock();
    if (status == FLOW_OK && !worker) status = flow_failure_raise(&no_worker);
    if (status == FLOW_OK) status = at->function->class->apply(at->function, worker, &key, &place, &in, &made);
    if (status != FLOW_OK) flow_element_clear(&made);
    flow_element_clear(&in);
    flow_element_clear(&place);
    if (counters) flow_count(&counters->nanoseconds, (int64_t)((flow_clock() - began) * 1e9));
    flow_gate_lock(&at->gate);
    flow_element_move(&into->element, &made);
    flow_failure_clear(&into->failure);
    flow_failure_take(&into->failure, status);
    into->state = READY;
    if (at->consumer_waits && (!at->in_order || into == at->ring[at->head % at->limit])) pthread_cond_signal(&at->gate.ready);
  }
  flow_gate_unlock(&at->gate);
  flow_map_worker_close(at->function, worker);
  flow_element_clear(&in);
  return NULL;
}

/* As many as can be had: fewer than wanted are not a failure, none is. */
static flow_status start_threads(map_cursor *at, int count)
{
  flow_status status = FLOW_OK;
  for (; at->thread_count < count && status == FLOW_OK; at->thread_count += status == FLOW_OK) {
    at->arguments[at->thread_count] = (map_thread){ at, at->thread_count };
    status = flow_pass_thread_start(at->base.iterator, &at->threads[at->thread_count], thread_main, &at->arguments[at->thread_count]);
  }
  if (at->base.counters) atomic_store(&at->base.counters->threads, at->thread_count);
  return at->thread_count > 0 ? FLOW_OK : status;        /* fewer threads than wanted do, too */
}

/* ---- tuning, by the consumer with the lock held ------------------------------------------------------------------------------ */

/* Brings the ring to `limit` slots: those that are in use move to their new places. */
static void set_limit(map_cursor *at, int limit)
{
  if (limit > at->most) limit = at->most;
  if (limit <= at->limit) return;
  void *block;
  if (flow_alloc(sizeof(slot *) * (size_t)limit, &block) != FLOW_OK) return;      /* it stays as short as it is */
  slot **used = block, **ring = at->ring;
  int count = (int)(at->tail - at->head), next_free = count;
  for (int i = 0; i < count; i++) used[i] = ring[(at->head + i) % at->limit];
  for (int i = 0; i < at->limit; i++) {
    slot *candidate = ring[i];
    int is_used = 0;
    for (int k = 0; k < count; k++) is_used |= used[k] == candidate;
    if (!is_used) used[next_free++] = candidate;
  }
  for (int i = at->limit; i < limit; i++) used[i] = ring[i];      /* after the limit are the spare ones */
  for (int i = 0; i < limit; i++) ring[(at->head + i) % limit] = used[i];
  at->limit = limit;
  flow_free(used);
  pthread_cond_broadcast(&at->gate.room);
}

/* 5 % of the window's time counts as waiting; a further thread must bring 3 %, which is above the noise of a window. */
static void tune(map_cursor *at, double now)
{
  tuning *t = &at->tuning;
  double seconds = now - t->began, rate = t->elements / (seconds > 0 ? seconds : 1e-9);
  int starved = t->waited > 0.05 * seconds;
  if (t->tried && rate < 1.03 * t->rate) {
    at->wanted--;
    t->pause = PATIENCE;
  }
  int was_tried = t->tried;
  t->tried = 0;
  if (starved && t->was_full) set_limit(at, 2 * at->limit);
  else if (starved && t->pause == 0 && at->wanted < at->most_threads) { /* where the threads are counted, there are all of them */
    t->rate = rate;
    t->tried = 1;
    at->wanted++;
  } else if (!was_tried && t->pause > 0) {
    t->pause--;
  }
  t->elements = 0;
  t->began = now;
  t->waited = 0;
  t->was_full = 0;
}

/* After every WINDOW elements the consumer decides the length of the ring and, with AUTOTUNE, the number of threads again, and starts those
 * that are missing. */
static void count_element(map_cursor *at, double waited)
{
  tuning *t = &at->tuning;
  flow_stage_counters *counters = at->base.counters;
  if (counters) {
    flow_count(&counters->waited_nanoseconds, (int64_t)(waited * 1e9));
    atomic_store_explicit(&counters->queued, at->tail - at->head, memory_order_relaxed);
    atomic_store_explicit(&counters->capacity, at->limit, memory_order_relaxed);
  }
  t->waited += waited;
  if (++t->elements < WINDOW) return;
  tune(at, flow_clock());
  if (at->wanted > at->thread_count && start_threads(at, at->wanted) == FLOW_OK) pthread_cond_broadcast(&at->gate.room);
}

/* ---- the consumer ------------------------------------------------------------------------------------------------------------- */

/* The slot to deliver next, at the head of the ring; NULL: none is ready yet. With the gate's lock held. A slot that is ready before
 * those in front of it, where the order does not matter, changes places with the one at the head: the ring holds pointers, so that the
 * thread that works on the other slot does not notice. */
static slot *ready_slot(map_cursor *at)
{
  for (int64_t i = at->head; i < at->tail; i++) {
    slot **found = &at->ring[i % at->limit], **head = &at->ring[at->head % at->limit];
    if ((*found)->state == READY) {
      slot *ready = *found;
      *found = *head;
      *head = ready;
      return ready;
    }
    if (at->in_order) return NULL;
  }
  return NULL;
}

/* Threads start with the first element, not at open: a pass that is only restored or skipped needs none. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  map_cursor *at = (map_cursor *)cursor;
  if (at->thread_count == 0) {
    at->tuning.began = flow_clock();
    if (at->in_order && at->function->class->fills_slots) at->batch_slots = cursor->batch_slots;
    FLOW_TRY(start_threads(at, at->wanted));
  }
  flow_status status = FLOW_OK;
  double waited = 0;
  flow_gate_lock(&at->gate);
  while (status == FLOW_OK && out->count == 0) {
    slot *ready = ready_slot(at);
    if (ready) {
      flow_element_move(out, &ready->element);
      if (out->count == 0) flow_batch_slots_lose(at->batch_slots, 1);
      status = flow_failure_raise(&ready->failure);
      ready->state = FREE;
      at->head++;
      if (at->threads_wait > 0 && at->tail - at->head <= at->limit / 2) pthread_cond_broadcast(&at->gate.room);
      count_element(at, waited);
      waited = 0;
    } else if (at->ended && at->head == at->tail) {
      break;
    } else {
      double began = flow_clock();
      at->consumer_waits = 1;
      status = flow_gate_wait(&at->gate, &at->gate.ready);
      at->consumer_waits = 0;
      waited += flow_clock() - began;
    }
  }
  flow_gate_unlock(&at->gate);
  return status;
}

/* Threads that run already pull from the input themselves, so that elements then have to come through the ring. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  map_cursor *at = (map_cursor *)cursor;
  if (at->function->class->drops || at->thread_count > 0) {
    flow_status status = flow_cursor_skip_by_pulling(cursor, count, skipped);
    flow_batch_slots_lose(at->batch_slots, *skipped);
    return status;
  }
  FLOW_TRY(flow_cursor_skip(cursor->inputs[0], count, skipped));      /* before threads pull from it */
  at->key.index += *skipped;
  return FLOW_OK;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------------ */

/* After a failure close() frees what is there. */
static flow_status allocate(map_cursor *at)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(slot) * (size_t)at->most, &block));
  at->slots = block;
  FLOW_TRY(flow_alloc_zero(sizeof(slot *) * (size_t)at->most, &block));
  at->ring = block;
  for (int i = 0; i < at->most; i++) at->ring[i] = &at->slots[i];
  FLOW_TRY(flow_alloc_zero(sizeof(flow_thread) * (size_t)at->most_threads, &block));
  at->threads = block;
  FLOW_TRY(flow_alloc_zero(sizeof(map_thread) * (size_t)at->most_threads, &block));
  at->arguments = block;
  return FLOW_OK;
}

/* Threads start later, as elements are asked for. The ring is sized for the most that tuning may reach; AUTOTUNE makes as many calls as
 * there are cores at first, twice as many at most. */
static flow_status open(flow_cursor *cursor)
{
  map_cursor *at = (map_cursor *)cursor;
  const flow_map *self = (const flow_map *)cursor->dataset;
  at->function = self->function;
  at->in_order = self->deterministic < 0 ? cursor->iterator->dataset->options.deterministic : self->deterministic;
  FLOW_TRY(flow_map_pass_key(cursor, &at->key));
  FLOW_TRY(flow_cursor_open_all(cursor));
  int cores = flow_core_count() < MOST_TUNED_THREADS / 2 ? flow_core_count() : MOST_TUNED_THREADS / 2;
  at->wanted = self->calls > 0 ? self->calls : cores;
  at->most_threads = self->calls > 0 ? self->calls : 2 * cores + 2;
  at->limit = 2 * at->wanted;
  at->most = MOST_OF_A_THREAD * at->most_threads > LEAST_MOST ? MOST_OF_A_THREAD * at->most_threads : LEAST_MOST;
  FLOW_TRY(allocate(at));
  flow_gate_open(&at->gate, cursor->iterator);
  return FLOW_OK;
}

/* Wakes threads that wait for room and joins them; a call of the function that runs is waited for. Also after an open that failed. */
static void close(flow_cursor *cursor)
{
  map_cursor *at = (map_cursor *)cursor;
  if (at->gate.iterator) {
    flow_gate_lock(&at->gate);
    at->stopped = 1;
    pthread_cond_broadcast(&at->gate.room);
    flow_gate_unlock(&at->gate);
    for (int i = 0; i < at->thread_count; i++) flow_thread_join(&at->threads[i]);
    flow_gate_close(&at->gate);
  }
  if (at->base.counters) atomic_store(&at->base.counters->threads, 0);
  for (int i = 0; at->slots && i < at->most; i++) flow_element_clear(&at->slots[i].element);
  flow_free(at->arguments);
  flow_free(at->threads);
  flow_free(at->ring);
  flow_free(at->slots);
}

static void release(flow_dataset *dataset) { flow_function_release(((flow_map *)dataset)->function); }

const flow_dataset_class flow_parallel_map_class = {
  .name = "parallel_map", .dataset_bytes = sizeof(flow_map), .cursor_bytes = sizeof(map_cursor), .open = open, .next = next, .skip = skip,
  .close = close, .release = release,
};
