/* concatenate.c: one dataset after another. One input is open at a time; the second one is opened, and draws its random numbers, when
 * the first has ended. */
#include "data/dataset.h"
#include "base/need.h"

/* at: the input that is read now; earlier inputs are closed, later ones not open yet. */
typedef struct chain_cursor { flow_cursor base; int at; } chain_cursor;

static flow_status open(flow_cursor *cursor) { (void)cursor; return FLOW_OK; }

/* Inputs are opened when their turn comes, so that random stages of the second one draw then. */
static flow_status begin(chain_cursor *at)
{
  return at->base.inputs[at->at] ? FLOW_OK : flow_cursor_open(&at->base, at->at);
}

/* An input that has ended is closed at once: its threads and files are not needed any more. */
static void end(chain_cursor *at)
{
  flow_cursor_close(at->base.inputs[at->at]);
  at->base.inputs[at->at++] = NULL;
}

/* From one input to the next until one of them gives something. An error leaves the input open, so that the next call goes on in it. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  chain_cursor *at = (chain_cursor *)cursor;
  while (at->at < cursor->dataset->input_count) {
    FLOW_TRY(begin(at));
    FLOW_TRY(flow_cursor_pull(cursor->inputs[at->at], out));
    if (out->count > 0) return FLOW_OK;
    end(at);
  }
  return FLOW_OK;
}

/* An input that skips fewer elements than asked has ended. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  chain_cursor *at = (chain_cursor *)cursor;
  while (*skipped < count && at->at < cursor->dataset->input_count) {
    int64_t here;
    FLOW_TRY(begin(at));
    FLOW_TRY(flow_cursor_skip(cursor->inputs[at->at], count - *skipped, &here));
    *skipped += here;
    if (*skipped < count) end(at);
  }
  return FLOW_OK;
}

static const flow_dataset_class class = {
  .name = "concatenate", .dataset_bytes = sizeof(flow_dataset), .cursor_bytes = sizeof(chain_cursor), .open = open, .next = next,
  .skip = skip,
};

/* Of two cardinalities: infinite wins over unknown. */
static int64_t sum(int64_t a, int64_t b)
{
  if (a == FLOW_INFINITE || b == FLOW_INFINITE) return FLOW_INFINITE;
  return a == FLOW_UNKNOWN || b == FLOW_UNKNOWN ? FLOW_UNKNOWN : a + b;
}

/* The signatures are joined: sizes that differ become -1; dtypes and ranks have to be equal. */
flow_status flow_dataset_concatenate(flow_dataset *first, flow_dataset *second, flow_dataset **out)
{
  FLOW_NEED(out);
  flow_dataset *inputs[2] = { first, second };
  *out = NULL;
  FLOW_TRY(flow_dataset_new(&class, inputs, 2, out));
  (*out)->cardinality = sum(first->cardinality, second->cardinality);
  if (flow_spec_join(&(*out)->spec, &second->spec)) return FLOW_OK;
  flow_dataset_release(*out);
  *out = NULL;
  if (first->spec.count != second->spec.count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "concatenate: elements of %d components cannot follow elements of %d", second->spec.count,
                     first->spec.count);
  for (int i = 0; i < first->spec.count; i++) {
    const flow_component *a = &first->spec.components[i], *b = &second->spec.components[i];
    if (a->dtype != b->dtype || a->text != b->text || a->rank != b->rank)
      return flow_fail(FLOW_INVALID_ARGUMENT, "concatenate: component %d is %s in the first dataset and %s in the second", i + 1,
                       flow_component_text(a), flow_component_text(b));
  }
  return flow_fail(FLOW_INTERNAL, "concatenate: signatures differ");
}
