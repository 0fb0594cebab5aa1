/* take.c: the first elements (take), or all but them (skip). take closes nothing early: its input stays open until the pass ends. A
 * count of -1 is all of them, as in tf.data. */
#include "data/dataset.h"
#include "base/need.h"

typedef struct limit { flow_dataset base; int64_t count; } limit;               /* count -1: all */
typedef struct limit_cursor { flow_cursor base; int64_t left; } limit_cursor;   /* take: still to come; skip: still to leave out */

/* left: what is still to be given (take) or left out (skip); -1 in either case: all. */
static flow_status open(flow_cursor *cursor)
{
  ((limit_cursor *)cursor)->left = ((limit *)cursor->dataset)->count;
  return flow_cursor_open_all(cursor);
}

/* ---- take -------------------------------------------------------------------------------------------------------------- */

/* An element that failed does not count as taken, as in tf.data. */
static flow_status take_next(flow_cursor *cursor, flow_element *out)
{
  limit_cursor *at = (limit_cursor *)cursor;
  if (at->left == 0) return FLOW_OK;
  FLOW_TRY(flow_cursor_pull(cursor->inputs[0], out));
  if (at->left > 0 && out->count > 0) at->left--;
  return FLOW_OK;
}

/* Never beyond the limit, so that the input stays where the last taken element was. */
static flow_status take_skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  limit_cursor *at = (limit_cursor *)cursor;
  if (at->left >= 0 && count > at->left) count = at->left;
  flow_status status = flow_cursor_skip(cursor->inputs[0], count, skipped);
  if (at->left >= 0) at->left -= *skipped;
  return status;
}

static const flow_dataset_class take = {
  .name = "take", .dataset_bytes = sizeof(limit), .cursor_bytes = sizeof(limit_cursor), .open = open, .next = take_next, .skip = take_skip,
  .passes_on = 1,
};

/* ---- skip -------------------------------------------------------------------------------------------------------------- */

/* Once, before the first element: left is 0 from then on, or stays above 0 where the data was shorter. An endless input of which all is
 * left out gives nothing, without being walked. */
static flow_status leave_out(limit_cursor *at)
{
  int64_t skipped;
  if (at->left == 0) return FLOW_OK;
  int64_t count = at->left < 0 ? INT64_MAX : at->left;
  if (at->left < 0 && at->base.dataset->inputs[0]->cardinality == FLOW_INFINITE) return FLOW_OK;
  flow_status status = flow_cursor_skip(at->base.inputs[0], count, &skipped);
  if (at->left > 0) at->left -= skipped < at->left ? skipped : at->left;
  return status;
}

/* The first call leaves out what is to be left out; a failure in the middle goes on at the next call. */
static flow_status skip_next(flow_cursor *cursor, flow_element *out)
{
  limit_cursor *at = (limit_cursor *)cursor;
  if (at->left < 0) return FLOW_OK;
  FLOW_TRY(leave_out(at));
  return at->left > 0 ? FLOW_OK : flow_cursor_pull(cursor->inputs[0], out);
}

/* As skip_next(), then the input's own skip. */
static flow_status skip_skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  limit_cursor *at = (limit_cursor *)cursor;
  if (at->left < 0) return FLOW_OK;
  FLOW_TRY(leave_out(at));
  return at->left > 0 ? FLOW_OK : flow_cursor_skip(cursor->inputs[0], count, skipped);
}

static const flow_dataset_class skip = {
  .name = "skip", .dataset_bytes = sizeof(limit), .cursor_bytes = sizeof(limit_cursor), .open = open, .next = skip_next, .skip = skip_skip,
  .passes_on = 1,
};

/* What both have in common; the callers set the cardinality. */
static flow_status make(const flow_dataset_class *class, flow_dataset *input, double count, flow_dataset **out)
{
  int64_t whole;
  *out = NULL;
  FLOW_TRY(flow_check_whole(class->name, "count", count, -1, &whole));
  FLOW_TRY(flow_dataset_new(class, &input, 1, out));
  ((limit *)*out)->count = whole;
  flow_dataset_identify(*out, (uint64_t)whole);
  return FLOW_OK;
}

/* -1 keeps the input's cardinality. */
flow_status flow_dataset_take(flow_dataset *input, double count, flow_dataset **out)
{
  FLOW_NEED(out);
  FLOW_TRY(make(&take, input, count, out));
  limit *self = (limit *)*out;
  int64_t *cardinality = &self->base.cardinality;
  if (self->count == 0) *cardinality = 0;
  else if (self->count > 0 && (*cardinality == FLOW_INFINITE || *cardinality > self->count)) *cardinality = self->count;
  return FLOW_OK;
}

/* -1 leaves out everything. */
flow_status flow_dataset_skip(flow_dataset *input, double count, flow_dataset **out)
{
  FLOW_NEED(out);
  FLOW_TRY(make(&skip, input, count, out));
  limit *self = (limit *)*out;
  int64_t *cardinality = &self->base.cardinality;
  if (self->count < 0) *cardinality = 0;
  else if (*cardinality >= 0) *cardinality = *cardinality > self->count ? *cardinality - self->count : 0;
  return FLOW_OK;
}
