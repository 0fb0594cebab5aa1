/* map.c: an element function applied to every element, where it is called; parallel_map.c does it on threads. A function that drops
 * elements makes it a filter. The element's index, counted at the input, is the key of random numbers, so that the same element draws
 * the same numbers in both forms and after a restored position. */
#include "data/transformations/map.h"
#include "base/need.h"

/* key: of the next element of the input, counted from 0 in this pass. */
typedef struct map_cursor { flow_cursor base; void *worker; flow_element_key key; flow_element in; } map_cursor;

/* A worker is one thread's state of the function. On failure *out is NULL and nothing is left. */
flow_status flow_map_worker_open(const flow_function *function, void **out)
{
  FLOW_TRY(flow_alloc_zero(function->class->worker_bytes, out));
  flow_status status = function->class->open ? function->class->open(function, *out) : FLOW_OK;
  if (status != FLOW_OK) {
    flow_map_worker_close(function, *out);
    *out = NULL;
  }
  return status;
}

/* Of one thread. NULL is allowed: it was never opened. */
void flow_map_worker_close(const flow_function *function, void *worker)
{
  if (!worker) return;
  if (function->class->close) function->class->close(function, worker);
  flow_free(worker);
}

/* What random elements of this pass are drawn from, together with their index; 0 for a function that draws nothing. */
flow_status flow_map_pass_key(flow_cursor *cursor, flow_element_key *out)
{
  flow_draw draw;
  *out = (flow_element_key){ 0 };
  if (!cursor->dataset->random) return FLOW_OK;
  FLOW_TRY(flow_cursor_draw(cursor, &draw));
  out->pass = flow_mix(flow_mix(draw.seed[0], draw.seed[1]), (uint64_t)draw.number);
  out->number = (int64_t)draw.number;
  return FLOW_OK;
}

/* The key first: it is the pass's, whatever the inputs draw when they open. */
static flow_status open(flow_cursor *cursor)
{
  map_cursor *at = (map_cursor *)cursor;
  FLOW_TRY(flow_map_pass_key(cursor, &at->key));
  FLOW_TRY(flow_cursor_open_all(cursor));
  return flow_map_worker_open(((flow_map *)cursor->dataset)->function, &at->worker);
}

/* An element that the function leaves out (count 0) is followed by the next; its key counts on, so that random numbers do not depend on
 * what was left out before. Functions that write into batches ask for their place first, and give it back if they made nothing. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  map_cursor *at = (map_cursor *)cursor;
  const flow_function *function = ((flow_map *)cursor->dataset)->function;
  do {
    FLOW_TRY(flow_cursor_pull(cursor->inputs[0], &at->in));
    if (at->in.count == 0) return FLOW_OK;
    flow_element_key key = at->key;
    at->key.index++;
    flow_element place = { 0 };
    if (function->class->fills_slots) flow_batch_slots_ask(cursor->batch_slots, &place);
    flow_status status = function->class->apply(function, at->worker, &key, &place, &at->in, out);
    flow_element_clear(&place);
    if (function->class->fills_slots && out->count == 0) flow_batch_slots_lose(cursor->batch_slots, 1);
    FLOW_TRY(status);
  } while (out->count == 0);
  flow_element_clear(&at->in);
  return FLOW_OK;
}

/* A function that drops elements has to run: only then is it known how many there are. Others pass over inputs, and count them in the
 * key. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  map_cursor *at = (map_cursor *)cursor;
  const flow_function_class *function = ((flow_map *)cursor->dataset)->function->class;
  if (function->drops) {
    flow_status status = flow_cursor_skip_by_pulling(cursor, count, skipped);
    if (function->fills_slots) flow_batch_slots_lose(cursor->batch_slots, *skipped);
    return status;
  }
  FLOW_TRY(flow_cursor_skip(cursor->inputs[0], count, skipped));
  at->key.index += *skipped;
  return FLOW_OK;
}

/* Also after an open that failed: the worker is NULL then. */
static void close(flow_cursor *cursor)
{
  map_cursor *at = (map_cursor *)cursor;
  flow_map_worker_close(((flow_map *)cursor->dataset)->function, at->worker);
  flow_element_clear(&at->in);
}

static void release(flow_dataset *dataset) { flow_function_release(((flow_map *)dataset)->function); }

static const flow_dataset_class class = {
  .name = "map", .dataset_bytes = sizeof(flow_map), .cursor_bytes = sizeof(map_cursor), .open = open, .next = next, .skip = skip,
  .close = close, .release = release,
};

/* calls: threads; 0: none, -1: AUTOTUNE; more than 256 are taken as 256. deterministic: 0 or 1, -1: as the pipeline's options say. seed:
 * of the function's random numbers. Retains the function. */
flow_status flow_dataset_map(flow_dataset *input, flow_function *function, double calls, int deterministic, double seed, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t threads;
  *out = NULL;
  FLOW_NEED(function);
  if (!function) return flow_fail(FLOW_INVALID_ARGUMENT, "map: a function is needed");
  FLOW_TRY(flow_check_whole("map", "num_parallel_calls", calls, -1, &threads));
  FLOW_TRY(flow_check_dataset("map", input));
  FLOW_TRY(flow_dataset_new(threads == 0 ? &class : &flow_parallel_map_class, &input, 1, out));
  flow_map *self = (flow_map *)*out;
  self->function = flow_function_retain(function);
  self->calls = threads > 256 ? 256 : (int)threads;
  self->deterministic = deterministic;
  if (function->class->drops && self->base.cardinality > 0) self->base.cardinality = FLOW_UNKNOWN;
  if (function->random) flow_dataset_set_random(*out, seed, 1);
  flow_dataset_identify(*out, function->identity);
  self->base.spec = (flow_element_spec){ 0 };
  flow_status status = function->class->spec(function, &input->spec, &self->base.spec);
  if (status == FLOW_OK) return FLOW_OK;
  flow_dataset_release(*out);
  *out = NULL;
  return status;
}
