/* rebatch.c: batches of sizes that are taken in turn, over a dataset of single rows (unbatch): sizes {2, 3} give batches of 2, 3, 2, 3,
 * ... rows. A size of 0 gives a batch without rows, as a worker gets whose share of a global batch is empty. The last batch may be
 * smaller, unless drop_remainder leaves it out. */
#include "data/stack.h"
#include "base/need.h"

typedef struct rebatch { flow_dataset base; int64_t *sizes; int count, drop_remainder; } rebatch;
/* interrupted: the rows so far belong to the next call, which makes batch number `batch` */
typedef struct rebatch_cursor {
  flow_cursor base;
  flow_stack stack;
  flow_element row;
  int64_t batch;
  int ended, interrupted;
} rebatch_cursor;

/* Sizes that are not known are 0, as those of no rows are. */
static flow_status empty_batch(const flow_element_spec *spec, flow_element *out)
{
  for (int i = 0; i < spec->count; i++, out->count++) {
    int64_t shape[FLOW_MAX_RANK];
    const flow_component *c = &spec->components[i];
    for (int axis = 0; axis < c->rank; axis++) shape[axis] = axis == 0 || c->shape[axis] < 0 ? 0 : c->shape[axis];
    FLOW_TRY(flow_tensor_new(c->dtype, c->rank, shape, &out->tensors[i]));
  }
  return FLOW_OK;
}

/* Rows until this batch is full or the input ends. An interrupted call leaves them in the stack, and the next one goes on. */
static flow_status collect(rebatch_cursor *at, int64_t size)
{
  flow_cursor *input = at->base.inputs[0];
  while (at->stack.rows < size) {
    FLOW_TRY(flow_cursor_pull(input, &at->row));
    at->ended = at->row.count == 0;
    if (at->ended) break;
    FLOW_TRY(flow_stack_add(&at->stack, &input->dataset->spec, size, &at->row));
  }
  return FLOW_OK;
}

/* Rows of the input, one by one, stacked to the next size in turn; a size of 0 is a batch without rows. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  rebatch_cursor *at = (rebatch_cursor *)cursor;
  const rebatch *self = (const rebatch *)cursor->dataset;
  int64_t size = self->sizes[at->batch % self->count];
  if (at->ended) return FLOW_OK;
  if (!at->interrupted) flow_stack_clear(&at->stack);
  if (size == 0) {
    at->batch++;
    return empty_batch(&cursor->dataset->spec, out);
  }
  flow_status status = collect(at, size);
  at->interrupted = status == FLOW_INTERRUPTED;
  at->batch += !at->interrupted;
  FLOW_TRY(status);
  if (at->stack.rows == 0 || (at->stack.rows < size && self->drop_remainder)) return FLOW_OK;
  return flow_stack_finish(&at->stack, out);
}

/* Batches may have different sizes, so that each is skipped by itself; one of size 0 skips nothing below and counts. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  rebatch_cursor *at = (rebatch_cursor *)cursor;
  const rebatch *self = (const rebatch *)cursor->dataset;
  if (at->interrupted) return flow_cursor_skip_by_pulling(cursor, count, skipped);
  for (; *skipped < count && !at->ended; ++*skipped) {
    int64_t size = self->sizes[at->batch % self->count], here;
    FLOW_TRY(flow_cursor_skip(cursor->inputs[0], size, &here));
    at->batch++;
    at->ended = here < size;
    if (at->ended && (here == 0 || self->drop_remainder)) return FLOW_OK;
  }
  return FLOW_OK;
}

/* Also after a failed open. */
static void close(flow_cursor *cursor)
{
  rebatch_cursor *at = (rebatch_cursor *)cursor;
  flow_element_clear(&at->row);
  flow_stack_release(&at->stack);
}

static void release(flow_dataset *dataset) { flow_free(((rebatch *)dataset)->sizes); }

static const flow_dataset_class class = {
  .name = "rebatch", .dataset_bytes = sizeof(rebatch), .cursor_bytes = sizeof(rebatch_cursor), .next = next, .skip = skip, .close = close,
  .release = release,
};

/* Number of batches that `rows` rows give. Whole rounds of all sizes, then the batches that the rest fills. */
static int64_t count_batches(const rebatch *self, int64_t rows)
{
  int64_t total = 0, batches = 0;
  for (int i = 0; i < self->count; i++) total += self->sizes[i];
  batches = rows / total * self->count;
  rows %= total;
  for (int i = 0; rows > 0; i++) {
    if (rows < self->sizes[i] && self->drop_remainder) break;
    rows -= self->sizes[i];
    batches++;
  }
  return batches;
}

/* Copies and checks the sizes. The number of batches is known where that of rows is. */
static flow_status fill(rebatch *self, const double *sizes, int count)
{
  void *block;
  int64_t total = 0;
  FLOW_TRY(flow_alloc_zero(sizeof(int64_t) * (size_t)count, &block));
  self->sizes = block;
  self->count = count;
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_whole("rebatch", "a batch size", sizes[i], 0, &self->sizes[i]));
    if (__builtin_add_overflow(total, self->sizes[i], &total))
      return flow_fail(FLOW_INVALID_ARGUMENT, "rebatch: the sum of the batch sizes is too large");
    flow_dataset_identify(&self->base, (uint64_t)self->sizes[i]);
  }
  if (total == 0) return flow_fail(FLOW_INVALID_ARGUMENT, "rebatch: a size above 0 is needed");
  self->base.batch_rows = count == 1 ? self->sizes[0] : 0;
  int64_t *cardinality = &self->base.cardinality;
  if (*cardinality >= 0) *cardinality = count_batches(self, *cardinality);
  return flow_stack_spec("rebatch", &self->base.spec, count == 1 && self->drop_remainder ? self->sizes[0] : -1);
}

/* sizes: [count], of which one or more is above 0; copied. The input is unbatched first. */
flow_status flow_dataset_rebatch(flow_dataset *input, const double *sizes, int count, int drop_remainder, flow_dataset **out)
{
  FLOW_NEED(out);
  flow_dataset *rows;
  *out = NULL;
  if (count > 0) FLOW_NEED(sizes);
  if (count < 1) return flow_fail(FLOW_INVALID_ARGUMENT, "rebatch: a batch size is needed");
  FLOW_TRY(flow_dataset_unbatch(input, &rows));
  flow_status status = flow_dataset_new(&class, &rows, 1, out);
  flow_dataset_release(rows);
  FLOW_TRY(status);
  ((rebatch *)*out)->drop_remainder = drop_remainder != 0;
  flow_dataset_identify(*out, (uint64_t)((const rebatch *)*out)->drop_remainder);
  status = fill((rebatch *)*out, sizes, count);
  if (status == FLOW_OK) return FLOW_OK;
  flow_dataset_release(*out);
  *out = NULL;
  return status;
}
