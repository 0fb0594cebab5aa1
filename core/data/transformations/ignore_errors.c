/* ignore_errors.c: leaves out the elements that could not be made: files that cannot be read, records that cannot be parsed. What is not
 * the element's fault, such as a lack of memory or a pass that was cancelled, still fails. How many elements there are is not known
 * then. */
#include "data/dataset.h"
#include "base/need.h"

typedef struct ignore_errors { flow_dataset base; int warns; } ignore_errors;

/* Whether another element may succeed. Lack of memory, cancelling and faults of the engine concern the whole pass. */
static int is_of_element(flow_status status)
{
  return status == FLOW_INVALID_ARGUMENT || status == FLOW_CORRUPT_DATA || status == FLOW_UNSUPPORTED || status == FLOW_IO_ERROR ||
         status == FLOW_NOT_FOUND;
}

/* It ends because every stage goes on after an element that failed, or ends (dataset.h). */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  for (;;) {
    flow_status status = flow_cursor_pull(cursor->inputs[0], out);
    if (!is_of_element(status)) return status;
    if (((ignore_errors *)cursor->dataset)->warns) {
      char text[1200];
      flow_text warning = flow_text_into(text, sizeof text);
      flow_text_add(&warning, "left out: %s", flow_last_error());
      flow_log(FLOW_LOG_WARNING, text);
    }
  }
}

static const flow_dataset_class class = {
  .name = "ignore_errors", .dataset_bytes = sizeof(ignore_errors), .cursor_bytes = sizeof(flow_cursor), .next = next,
};

/* Any number of elements may be left out: a known cardinality becomes unknown. */
flow_status flow_dataset_ignore_errors(flow_dataset *input, int log_warning, flow_dataset **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  ((ignore_errors *)*out)->warns = log_warning != 0;
  if ((*out)->cardinality >= 0) (*out)->cardinality = FLOW_UNKNOWN;
  return FLOW_OK;
}
