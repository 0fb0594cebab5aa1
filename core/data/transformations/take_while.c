/* take_while.c: the elements before the first one that a function leaves out. The function runs where the stage is called, one element
 * at a time, since elements after the end must not be computed. */
#include "data/transformations/map.h"
#include "base/need.h"

typedef struct take_while { flow_dataset base; flow_function *function; } take_while;
typedef struct take_while_cursor { flow_cursor base; void *worker; flow_element_key key; flow_element in; int ended; } take_while_cursor;

/* One worker: the function runs on the thread that pulls. The key of random numbers first, as in map.c. */
static flow_status open(flow_cursor *cursor)
{
  take_while_cursor *at = (take_while_cursor *)cursor;
  FLOW_TRY(flow_map_pass_key(cursor, &at->key));
  FLOW_TRY(flow_cursor_open_all(cursor));
  return flow_map_worker_open(((take_while *)cursor->dataset)->function, &at->worker);
}

/* The element that the function leaves out is the end, then and in every later call. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  take_while_cursor *at = (take_while_cursor *)cursor;
  const flow_function *function = ((take_while *)cursor->dataset)->function;
  const flow_element place = { 0 };
  if (at->ended) return FLOW_OK;
  FLOW_TRY(flow_cursor_pull(cursor->inputs[0], &at->in));
  flow_element_key key = at->key;
  at->key.index++;
  if (at->in.count > 0) FLOW_TRY(function->class->apply(function, at->worker, &key, &place, &at->in, out));
  flow_element_clear(&at->in);
  at->ended = out->count == 0;
  return FLOW_OK;
}

/* The element that ended the pass is still here. */
static void close(flow_cursor *cursor)
{
  take_while_cursor *at = (take_while_cursor *)cursor;
  flow_map_worker_close(((take_while *)cursor->dataset)->function, at->worker);
  flow_element_clear(&at->in);
}

static void release(flow_dataset *dataset) { flow_function_release(((take_while *)dataset)->function); }

static const flow_dataset_class class = {
  .name = "take_while", .dataset_bytes = sizeof(take_while), .cursor_bytes = sizeof(take_while_cursor), .open = open, .next = next,
  .close = close, .release = release,
};

/* Keeps a reference to the function, which must be one that filters. How many elements come before the end is unknown. */
flow_status flow_dataset_take_while(flow_dataset *input, flow_function *function, flow_dataset **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_NEED(function);
  FLOW_TRY(flow_check_dataset("take_while", input));
  if (!function || !function->class->drops) return flow_fail(FLOW_INVALID_ARGUMENT, "take_while: a function that filters is needed");
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  ((take_while *)*out)->function = flow_function_retain(function);
  flow_status status = function->class->spec(function, &input->spec, &(*out)->spec);
  if (status != FLOW_OK) {
    flow_dataset_release(*out);
    *out = NULL;
    return status;
  }
  (*out)->cardinality = FLOW_UNKNOWN;
  if (function->random) flow_dataset_set_random(*out, (double)(function->identity >> 11), 1);
  flow_dataset_identify(*out, function->identity);
  return FLOW_OK;
}
