/* batch.c: consecutive elements as rows of one; on a device, where the iterator keeps their rows there (row_store.h). The last batch may
 * be smaller, or is left out (drop_remainder). Rows must have one shape; texts are padded (stack.c). Where the stage below can write
 * into rows of batches to come, it is offered their memory (batch_slots.h). */
#include "data/iterator.h"
#include "base/need.h"
#include "data/row_store.h"
#include "data/stack.h"

typedef struct batch { flow_dataset base; int64_t size; int drop_remainder; } batch;
/* `row` is the element under way; `taken` counts rows that asked for a slot of this batch (batch_slots.h). */
typedef struct batch_cursor {
  flow_cursor     base;
  int             interrupted;                    /* the rows so far belong to the next call */
  flow_stack      stack;
  flow_element    row;
  int64_t         taken;
  flow_row_store *store;                          /* borrowed; NULL: batches are made on the host */
  flow_element   *collected;                      /* [room]: of the batch that is made of the store's rows, */
  int             room, count;                    /* this many */
} batch_cursor;

/* Either the rows stay on a device, or slots are offered to the input: never both. */
static flow_status open(flow_cursor *cursor)
{
  const flow_iterator *iterator = cursor->iterator;
  FLOW_TRY(flow_cursor_open_all(cursor));
  if (iterator->stored == cursor->dataset) {
    ((batch_cursor *)cursor)->store = iterator->store;
    return FLOW_OK;
  }
  return flow_stack_offer_slots(&((batch_cursor *)cursor)->stack, cursor->inputs[0], ((const batch *)cursor->dataset)->size);
}

/* What was taken for a batch that a failure ended is left out. */
static void start_batch(batch_cursor *at)
{
  flow_stack_clear(&at->stack);
  flow_batch_slots_lose(at->stack.slots, at->taken);
  at->taken = 0;
  while (at->count > 0) flow_element_clear(&at->collected[--at->count]);
}

/* ---- of rows that a device has ---------------------------------------------------------------------------------------------- */

/* Elements are moved, not copied: their rows go to the device, or into a batch, when all of them are there. On failure
 * those that were collected stay, for start_batch to release. */
static flow_status collect(batch_cursor *at, int64_t size)
{
  while (at->count < size) {
    FLOW_TRY(flow_cursor_pull(at->base.inputs[0], &at->row));
    if (at->row.count == 0) break;
    FLOW_TRY(flow_grow(&at->collected, sizeof *at->collected, at->count + 1, &at->room));
    at->collected[at->count].count = 0;
    flow_element_move(&at->collected[at->count++], &at->row);
  }
  return FLOW_OK;
}

/* Collects a batch's elements and has the store make it. If that cannot (`made` is 0: an unknown row, or no room) the elements are
 * stacked on the host like any others. */
static flow_status next_of_store(batch_cursor *at, flow_element *out)
{
  const batch *self = (const batch *)at->base.dataset;
  int made;
  FLOW_TRY(collect(at, self->size));
  if (at->count == 0 || (at->count < self->size && self->drop_remainder)) return FLOW_OK;
  flow_status status = flow_row_store_batch(at->store, at->collected, at->count, out, &made);
  for (int i = 0; i < at->count && status == FLOW_OK && !made; i++)
    status = flow_stack_add(&at->stack, &self->base.inputs[0]->spec, self->size, &at->collected[i]);
  if (status == FLOW_OK && !made) status = flow_stack_finish(&at->stack, out);
  start_batch(at);
  return status;
}

/* ---- on the host ------------------------------------------------------------------------------------------------------------ */

/* Rows are added until the batch is full or the input ends. An interrupted call leaves the rows so far in the stack, and the next one goes
 * on; after any other failure next() begins a new batch. */
static flow_status next_of_host(batch_cursor *at, flow_element *out)
{
  flow_cursor *input = at->base.inputs[0];
  const batch *self = (const batch *)at->base.dataset;
  const flow_element_spec *rows = &input->dataset->spec;
  while (at->stack.rows < self->size) {
    FLOW_TRY(flow_cursor_pull(input, &at->row));
    if (at->row.count == 0) break;
    at->taken++;
    FLOW_TRY(flow_stack_add(&at->stack, rows, self->size, &at->row));
  }
  if (at->stack.rows == 0 || (at->stack.rows < self->size && self->drop_remainder)) return FLOW_OK;
  at->taken = 0;
  flow_status status = flow_stack_finish(&at->stack, out);
  flow_batch_slots_next_batch(at->stack.slots);
  return status;
}

/* start_batch first: after a failure the rows that were taken are dropped, and their slots are reported lost. After an interrupt the next
 * call goes on with them. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  batch_cursor *at = (batch_cursor *)cursor;
  if (!at->interrupted) start_batch(at);
  flow_status status = at->store ? next_of_store(at, out) : next_of_host(at, out);
  at->interrupted = status == FLOW_INTERRUPTED;
  return status;
}

/* In rows of the input, so that stages below can pass over elements without making them. Not in the middle of a batch. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  if (((batch_cursor *)cursor)->interrupted) return flow_cursor_skip_by_pulling(cursor, count, skipped);
  const batch *self = (const batch *)cursor->dataset;
  int64_t rows, wanted;
  if (__builtin_mul_overflow(count, self->size, &wanted)) wanted = INT64_MAX;
  FLOW_TRY(flow_cursor_skip(cursor->inputs[0], wanted, &rows));
  *skipped = rows / self->size + (rows % self->size > 0 && !self->drop_remainder);
  return FLOW_OK;
}

/* Also after a failed open: what was never made is NULL or empty. */
static void close(flow_cursor *cursor)
{
  batch_cursor *at = (batch_cursor *)cursor;
  flow_cursor_close(cursor->inputs[0]);      /* whose threads may be writing into places */
  cursor->inputs[0] = NULL;
  flow_element_clear(&at->row);
  start_batch(at);
  flow_free(at->collected);
  flow_stack_release(&at->stack);
}

static const flow_dataset_class class = {
  .name = "batch", .dataset_bytes = sizeof(batch), .cursor_bytes = sizeof(batch_cursor), .open = open, .next = next, .skip = skip,
  .close = close,
};

/* Only where the pipeline ends in this batch (prefetch and options may follow) and nothing was asked for yet. */
int flow_iterator_keep_rows(flow_iterator *iterator, flow_row_store *store)
{
  if (!iterator) return 0;
  const flow_dataset *dataset = iterator->dataset;
  while (dataset->class->passes_on) dataset = dataset->inputs[0];
  if (dataset->class != &class || iterator->top) return 0;
  const flow_dataset *rows = dataset->inputs[0];
  if (!store || !flow_row_store_start(store, &rows->spec, flow_rows_that_come_again(rows))) return 0;
  flow_row_store_retain(store);
  flow_row_store_release(iterator->store);
  iterator->store = store;
  iterator->stored = dataset;
  return 1;
}

/* drop_remainder makes the number of rows part of the signature; without it the last batch may be smaller, and the size is -1. */
flow_status flow_dataset_batch(flow_dataset *input, double size, int drop_remainder, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t rows;
  *out = NULL;
  FLOW_TRY(flow_check_whole("batch", "batch_size", size, 1, &rows));
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  batch *self = (batch *)*out;
  self->size = rows;
  self->drop_remainder = drop_remainder != 0;
  flow_status status = flow_stack_spec("batch", &self->base.spec, drop_remainder ? rows : -1);
  if (status != FLOW_OK) {
    flow_dataset_release(*out);
    *out = NULL;
    return status;
  }
  int64_t *cardinality = &self->base.cardinality;
  if (*cardinality >= 0) *cardinality = *cardinality / rows + (!drop_remainder && *cardinality % rows > 0);
  self->base.batch_rows = rows;
  flow_dataset_identify(*out, (uint64_t)rows);
  flow_dataset_identify(*out, (uint64_t)self->drop_remainder);
  return FLOW_OK;
}
