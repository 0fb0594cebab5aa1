/* repeat.c: the input over and over; each epoch opens it afresh, so that epochs never mix, and random stages below draw again. A
 * repetition without end ends after an epoch that gave nothing, or it would never return. */
#include "data/dataset.h"
#include "base/need.h"

typedef struct repeat { flow_dataset base; int64_t count; } repeat;      /* -1: for ever */
typedef struct repeat_cursor { flow_cursor base; int64_t epoch, delivered; } repeat_cursor;      /* delivered: in this epoch */

static flow_status open(flow_cursor *cursor) { (void)cursor; return FLOW_OK; }

/* Opens the epoch if it is not; *open 0: all are over. An endless repetition of nothing ends, too. */
static flow_status begin(repeat_cursor *at, int *is_open)
{
  int64_t count = ((repeat *)at->base.dataset)->count;
  *is_open = 0;
  if (count >= 0 && at->epoch >= count) return FLOW_OK;
  if (!at->base.inputs[0]) FLOW_TRY(flow_cursor_open(&at->base, 0));
  *is_open = 1;
  return FLOW_OK;
}

/* INT64_MAX says that the pass is over: an endless repetition of an input that gave nothing. */
static void end_epoch(repeat_cursor *at)
{
  int64_t count = ((repeat *)at->base.dataset)->count;
  flow_cursor_close(at->base.inputs[0]);
  at->base.inputs[0] = NULL;
  at->epoch = at->delivered > 0 || count >= 0 ? at->epoch + 1 : INT64_MAX;
  at->delivered = 0;
}

/* Whether end_epoch() found the repetition to be without elements. */
static int is_over(const repeat_cursor *at)
{
  return at->epoch == INT64_MAX;
}

/* Pass after pass, each with a new cursor; a repetition without end ends with a pass that gives nothing. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  repeat_cursor *at = (repeat_cursor *)cursor;
  for (;;) {
    int is_open;
    if (is_over(at)) return FLOW_OK;
    FLOW_TRY(begin(at, &is_open));
    if (!is_open) return FLOW_OK;
    FLOW_TRY(flow_cursor_pull(cursor->inputs[0], out));
    if (out->count > 0) {
      at->delivered++;
      return FLOW_OK;
    }
    end_epoch(at);
  }
}

/* Skips within passes as the input can, and counts as `next` does. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  repeat_cursor *at = (repeat_cursor *)cursor;
  while (*skipped < count) {
    int is_open;
    int64_t here;
    if (is_over(at)) return FLOW_OK;
    FLOW_TRY(begin(at, &is_open));
    if (!is_open) return FLOW_OK;
    FLOW_TRY(flow_cursor_skip(cursor->inputs[0], count - *skipped, &here));
    *skipped += here;
    at->delivered += here;
    if (*skipped < count) end_epoch(at);
  }
  return FLOW_OK;
}

static const flow_dataset_class class = {
  .name = "repeat", .dataset_bytes = sizeof(repeat), .cursor_bytes = sizeof(repeat_cursor), .open = open, .next = next, .skip = skip,
  .passes_on = 1,
};

/* count: -1 repeats without end. A cardinality that does not fit into 64 bits becomes unknown. */
flow_status flow_dataset_repeat(flow_dataset *input, double count, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t whole;
  *out = NULL;
  FLOW_TRY(flow_check_whole("repeat_", "count", count, -1, &whole));
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  ((repeat *)*out)->count = whole;
  int64_t *cardinality = &(*out)->cardinality;
  if (whole == 0) *cardinality = 0;
  else if (whole < 0) *cardinality = *cardinality == 0 ? 0 : FLOW_INFINITE;
  else if (*cardinality > 0 && __builtin_mul_overflow(*cardinality, whole, cardinality)) *cardinality = FLOW_UNKNOWN;
  flow_dataset_identify(*out, (uint64_t)whole);
  return FLOW_OK;
}
