/* window.c: batches that overlap or leave elements out: window i begins at element i * shift and takes every stride-th one from there, as
 * tf.data's window; at the end of the data there are smaller ones. */
#include "data/stack.h"
#include "base/need.h"

typedef struct window { flow_dataset base; int64_t size, shift, stride, span; int drop_remainder; } window;

/* `waiting` holds elements that overlapping windows share; the stack is the batch under way. */
typedef struct window_cursor {
  flow_cursor   base;
  flow_stack    stack;
  flow_element *waiting;                 /* those from the window's first one on */
  int           count, capacity;
  int           ended;
  int64_t gap; /* elements that are left out before the next one that waits */
} window_cursor;

/* The dataset, whose parameters all cursors share. */
static const window *parameters_of(const window_cursor *at) { return (const window *)at->base.dataset; }

/* Elements between windows are skipped by the input, which may do so without making them. */
static flow_status leave_gap(window_cursor *at)
{
  int64_t skipped = 0;
  if (at->ended || at->gap == 0) return FLOW_OK;
  flow_status status = flow_cursor_skip(at->base.inputs[0], at->gap, &skipped);
  at->ended = status == FLOW_OK && skipped < at->gap;
  at->gap -= skipped;
  return status;
}

/* As many elements as a window spans, or all that are left. */
static flow_status fill(window_cursor *at)
{
  FLOW_TRY(leave_gap(at));
  while (!at->ended && at->count < parameters_of(at)->span) {
    FLOW_TRY(flow_grow(&at->waiting, sizeof *at->waiting, at->count + 1, &at->capacity));
    at->waiting[at->count] = (flow_element){ 0 };
    FLOW_TRY(flow_cursor_pull(at->base.inputs[0], &at->waiting[at->count]));
    if (at->waiting[at->count].count > 0) at->count++;
    else at->ended = 1;
  }
  return FLOW_OK;
}

/* Goes on to where the next window begins. What lies between this one and that is left out when the next one is asked for. */
static void advance(window_cursor *at)
{
  int64_t shift = parameters_of(at)->shift;
  int gone = shift < at->count ? (int)shift : at->count;
  for (int i = 0; i < gone; i++) flow_element_clear(&at->waiting[i]);
  for (int i = gone; i < at->count; i++) flow_element_move(&at->waiting[i - gone], &at->waiting[i]);
  at->count -= gone;
  at->gap = shift - gone;
}

/* An element may belong to several windows, so rows are shared and stay in `waiting` until the window has gone past them. */
static flow_status make_window(window_cursor *at, flow_element *out)
{
  const window *self = parameters_of(at);
  for (int64_t i = 0; i < at->count; i += self->stride) {
    flow_element row;
    flow_element_share(&row, &at->waiting[i]);
    FLOW_TRY(flow_stack_add(&at->stack, &self->base.inputs[0]->spec, self->size, &row));
  }
  return flow_stack_finish(&at->stack, out);
}

/* A window that cannot be made is passed over, too: else each further call would fail at it again. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  window_cursor *at = (window_cursor *)cursor;
  const window *self = parameters_of(at);
  FLOW_TRY(fill(at));
  if (at->count == 0 || (self->drop_remainder && at->count < self->span)) return FLOW_OK;
  flow_status status = make_window(at, out);
  advance(at);
  return status;
}

/* Also after a failed open. */
static void close(flow_cursor *cursor)
{
  window_cursor *at = (window_cursor *)cursor;
  for (int i = 0; i < at->count; i++) flow_element_clear(&at->waiting[i]);
  flow_free(at->waiting);
  flow_stack_release(&at->stack);
}

static const flow_dataset_class class = {
  .name = "window", .dataset_bytes = sizeof(window), .cursor_bytes = sizeof(window_cursor), .next = next, .close = close,
};

/* size elements, `stride` apart, beginning `shift` after the last window; all whole numbers from 1. tf.data gives a window as a dataset,
 * here it is a batch. drop_remainder leaves out windows that the end of the data cuts off. */
flow_status flow_dataset_window(flow_dataset *input, double size, double shift, double stride, int drop_remainder, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t rows, step, apart;
  *out = NULL;
  FLOW_TRY(flow_check_dataset("window", input));
  FLOW_TRY(flow_check_whole("window", "size", size, 1, &rows));
  FLOW_TRY(flow_check_whole("window", "shift", shift, 1, &step));
  FLOW_TRY(flow_check_whole("window", "stride", stride, 1, &apart));
  if (rows > INT32_MAX / 2 || apart > INT32_MAX / 2 || (rows - 1) * apart > INT32_MAX / 2 || step > INT32_MAX / 2)
    return flow_fail(FLOW_INVALID_ARGUMENT, "window: %.0f elements, %.0f apart, do not fit", size, stride);
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  window *self = (window *)*out;
  self->size = rows;
  self->shift = step;
  self->stride = apart;
  self->span = (rows - 1) * apart + 1;
  self->drop_remainder = drop_remainder != 0;
  self->base.batch_rows = 0;
  int64_t count = input->cardinality;
  if (count >= 0 && self->drop_remainder) self->base.cardinality = count < self->span ? 0 : (count - self->span) / step + 1;
  else if (count >= 0) self->base.cardinality = count / step + (count % step > 0);
  const int64_t parameters[] = { rows, step, apart, self->drop_remainder };
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) flow_dataset_identify(*out, (uint64_t)parameters[i]);
  flow_status status = flow_stack_spec("window", &self->base.spec, drop_remainder ? rows : -1);
  if (status == FLOW_OK) return FLOW_OK;
  flow_dataset_release(*out);
  *out = NULL;
  return status;
}
