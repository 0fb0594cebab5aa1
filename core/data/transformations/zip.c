/* zip.c: the components of several datasets side by side; the shortest ends it. Inputs stay in step also after an error of one of them. */
#include "base/failure.h"
#include "base/need.h"
#include "data/dataset.h"

/* made: the components of the inputs before number `input`, while an element is put together. */
typedef struct zip_cursor {
  flow_cursor base;
  flow_element part, made;
  int input, ended;
} zip_cursor;

/* Input number at->input has failed at its element: the inputs after it leave theirs out, so that all of them go on with the element after
 * that one, as tf.data's zip does. Raises the failure of the first input, whatever the others say. */
static flow_status leave_out(zip_cursor *at, flow_status status)
{
  flow_failure failure = { 0 };
  int64_t skipped;
  flow_failure_take(&failure, status);
  flow_element_clear(&at->made);
  for (int i = at->input + 1; i < at->base.dataset->input_count; i++) flow_cursor_skip(at->base.inputs[i], 1, &skipped);
  at->input = 0;
  return flow_failure_raise(&failure);
}

/* After an interrupt the next call goes on with the input that was interrupted: those before it have given their components already. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  zip_cursor *at = (zip_cursor *)cursor;
  for (; at->input < cursor->dataset->input_count && !at->ended; at->input++) {
    flow_status status = flow_cursor_pull(cursor->inputs[at->input], &at->part);
    if (status != FLOW_OK) return status == FLOW_INTERRUPTED ? status : leave_out(at, status);
    if (at->part.count == 0) at->ended = 1;
    for (int k = 0; k < at->part.count; k++) at->made.tensors[at->made.count++] = at->part.tensors[k];
    at->part.count = 0;
  }
  at->input = 0;
  if (at->ended) flow_element_clear(&at->made);
  else flow_element_move(out, &at->made);
  return FLOW_OK;
}

/* All inputs leave out as many, the shortest decides. Not in the middle of an element: that one is made first. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  zip_cursor *at = (zip_cursor *)cursor;
  int64_t here;
  if (at->input > 0) return flow_cursor_skip_by_pulling(cursor, count, skipped);
  *skipped = count;
  for (int i = 0; i < cursor->dataset->input_count; i++) {
    FLOW_TRY(flow_cursor_skip(cursor->inputs[i], count, &here));
    if (here < *skipped) *skipped = here;
  }
  if (*skipped < count) at->ended = 1;
  return FLOW_OK;
}

/* Also after a failed open: elements that were never made are empty. */
static void close(flow_cursor *cursor)
{
  flow_element_clear(&((zip_cursor *)cursor)->part);
  flow_element_clear(&((zip_cursor *)cursor)->made);
}

static const flow_dataset_class class = {
  .name = "zip", .dataset_bytes = sizeof(flow_dataset), .cursor_bytes = sizeof(zip_cursor), .next = next, .skip = skip, .close = close,
};

/* Infinite ones do not count; an unknown one may be the shortest. */
static int64_t shortest(int64_t a, int64_t b)
{
  if (a == FLOW_UNKNOWN || b == FLOW_UNKNOWN) return FLOW_UNKNOWN;
  if (a == FLOW_INFINITE) return b;
  return b == FLOW_INFINITE || a < b ? a : b;
}

/* The components of all inputs in order. The shortest input decides the cardinality. */
flow_status flow_dataset_zip(flow_dataset *const *inputs, int count, flow_dataset **out)
{
  FLOW_NEED(out);
  if (count > 0) FLOW_NEED(inputs);
  *out = NULL;
  int components = 0;
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_dataset("zip", inputs[i]));
    components += inputs[i]->spec.count;
  }
  if (count < 1 || components > FLOW_MAX_COMPONENTS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "zip: an element has 1 to %d components, %d datasets have %d", FLOW_MAX_COMPONENTS, count,
                     components);
  FLOW_TRY(flow_dataset_new(&class, inputs, count, out));
  flow_element_spec *spec = &(*out)->spec;
  for (int i = 1; i < count; i++) {
    for (int k = 0; k < inputs[i]->spec.count; k++) spec->components[spec->count++] = inputs[i]->spec.components[k];
    (*out)->cardinality = shortest((*out)->cardinality, inputs[i]->cardinality);
  }
  return FLOW_OK;
}
