/* unbatch.c: the rows of every element as elements: views, nothing is copied. All components of an element need the same number of rows.
 * An element without it makes the call fail, and the next call goes on with the next element. Texts lose the zeros that a batch padded them
 * with. */
#include "data/dataset.h"
#include "base/need.h"

#include <string.h>

/* batch: the element whose rows come now; rows are views of it, which keep its memory after the cursor has gone on. */
typedef struct unbatch_cursor { flow_cursor base; flow_element batch; int64_t row, rows; } unbatch_cursor;

/* Brings in the next batch that has rows; rows 0: there is none. */
static flow_status bring_in(unbatch_cursor *at)
{
  while (at->row == at->rows) {
    at->row = at->rows = 0;
    FLOW_TRY(flow_cursor_pull(at->base.inputs[0], &at->batch));
    if (at->batch.count == 0) return FLOW_OK;
    at->rows = at->batch.tensors[0]->shape[0];
    for (int i = 1; i < at->batch.count; i++) {
      int64_t found = at->batch.tensors[i]->shape[0], expected = at->rows;
      if (found == expected) continue;
      at->rows = 0;
      return flow_fail(FLOW_INVALID_ARGUMENT, "unbatch: component %d has %lld rows, component 1 has %lld", i + 1, (long long)found,
                       (long long)expected);
    }
  }
  return FLOW_OK;
}

/* Row of a component; a text ends before the zeros that batch padded it with. */
static flow_status view_row(flow_tensor *batch, int64_t row, int is_text, flow_tensor **out)
{
  int64_t shape[FLOW_MAX_RANK] = { 0 };
  memcpy(shape, batch->shape + 1, sizeof *shape * (size_t)(batch->rank - 1));
  if (is_text && batch->rank == 2) {
    const char *text = batch->data + row * batch->strides[0];
    while (shape[0] > 0 && text[(shape[0] - 1) * batch->strides[1]] == 0) shape[0]--;
  }
  return flow_tensor_view(batch, batch->rank - 1, shape, batch->strides + 1, row * batch->strides[0], out);
}

/* Views hold references to the batch's memory, so that the batch may go before its rows. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  unbatch_cursor *at = (unbatch_cursor *)cursor;
  FLOW_TRY(bring_in(at));
  if (at->rows == 0) return FLOW_OK;
  for (int i = 0; i < at->batch.count; i++, out->count++)
    FLOW_TRY(view_row(at->batch.tensors[i], at->row, cursor->dataset->spec.components[i].text, &out->tensors[i]));
  at->row++;
  return FLOW_OK;
}

/* Rows of the batch at hand, then whole batches unmade where their size is known, then rows of the next. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  unbatch_cursor *at = (unbatch_cursor *)cursor;
  int64_t size = cursor->dataset->inputs[0]->spec.components[0].shape[0], batches;
  while (*skipped < count) {
    int64_t here = at->rows - at->row < count - *skipped ? at->rows - at->row : count - *skipped;
    at->row += here;
    *skipped += here;
    if (size > 0 && count - *skipped >= size) {          /* whole batches, unseen */
      FLOW_TRY(flow_cursor_skip(cursor->inputs[0], (count - *skipped) / size, &batches));
      *skipped += batches * size;
      if (batches == 0) return FLOW_OK;
    } else if (*skipped < count) {
      FLOW_TRY(bring_in(at));
      if (at->rows == 0) return FLOW_OK;
    }
  }
  return FLOW_OK;
}

static void close(flow_cursor *cursor) { flow_element_clear(&((unbatch_cursor *)cursor)->batch); }

static const flow_dataset_class class = {
  .name = "unbatch", .dataset_bytes = sizeof(flow_dataset), .cursor_bytes = sizeof(unbatch_cursor), .next = next, .skip = skip,
  .close = close,
};

/* Refuses components without a first axis. A cardinality is known where all batches have the same known number of rows. */
flow_status flow_dataset_unbatch(flow_dataset *input, flow_dataset **out)
{
  FLOW_NEED(out);
  *out = NULL;
  FLOW_TRY(flow_check_dataset("unbatch", input));
  for (int i = 0; i < input->spec.count; i++) {
    const flow_component *c = &input->spec.components[i];
    if (c->rank == 0 || (c->text && c->rank == 1))
      return flow_fail(FLOW_INVALID_ARGUMENT, "unbatch: component %d is %s and has no rows", i + 1, flow_component_text(c));
  }
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  int64_t size = input->spec.components[0].shape[0], *cardinality = &(*out)->cardinality;
  if (size >= 0 && *cardinality >= 0 && __builtin_mul_overflow(*cardinality, size, cardinality)) *cardinality = FLOW_UNKNOWN;
  if (size < 0 && *cardinality > 0) *cardinality = FLOW_UNKNOWN;
  (*out)->batch_rows = 0;
  flow_element_spec *spec = &(*out)->spec;
  for (int i = 0; i < spec->count; i++) {
    flow_component *c = &spec->components[i];
    c->rank--;
    memmove(c->shape, c->shape + 1, sizeof *c->shape * (size_t)c->rank);
    if (c->text) c->shape[c->rank - 1] = -1;
  }
  return FLOW_OK;
}
