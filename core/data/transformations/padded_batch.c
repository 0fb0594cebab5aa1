/* padded_batch.c: elements of different sizes as rows of one: each dimension as long as the longest of the batch, or as asked. All
 * elements of a batch are held until the last one is there, since it may be the longest. A component's padding value is 0 unless one is
 * given. */
#include "data/stack.h"
#include "base/need.h"

/* The parameters; `rows` is the signature of a row after padding: -1 where the longest row of a batch decides. */
typedef struct padded {
  flow_dataset      base;
  int64_t           size;
  int               drop_remainder;
  double            values[FLOW_MAX_COMPONENTS];      /* that rows are padded with */
  flow_element_spec rows;
} padded;
/* interrupted: the rows so far belong to the next call */
typedef struct padded_cursor {
  flow_cursor base;
  flow_element *rows;
  int capacity, interrupted;
  int64_t count;
} padded_cursor;

/* The rows of the batch under way; the block stays for the next one. */
static void clear_rows(padded_cursor *at)
{
  for (int64_t row = 0; row < at->count; row++) flow_element_clear(&at->rows[row]);
  at->count = 0;
}

/* The shape of component i of the batch. */
static flow_status batch_shape(const padded_cursor *at, int i, int64_t *shape)
{
  const flow_component *c = &((const padded *)at->base.dataset)->rows.components[i];
  shape[0] = at->count;
  for (int axis = 0; axis < c->rank; axis++) {
    int64_t longest = 0;
    for (int64_t row = 0; row < at->count; row++) {
      int64_t size = at->rows[row].tensors[i]->shape[axis];
      if (size > longest) longest = size;
    }
    shape[axis + 1] = c->shape[axis] < 0 ? longest : c->shape[axis];
    if (longest > shape[axis + 1])
      return flow_fail(FLOW_INVALID_ARGUMENT, "padded_batch: component %d of an element has size %lld in dimension %d, it is padded to "
                       "%lld", i + 1, (long long)longest, axis + 1, (long long)shape[axis + 1]);
  }
  return FLOW_OK;
}

/* The whole batch is filled with the padding value first, then each row is copied into the corner of its part. */
static flow_status fill_component(const padded_cursor *at, int i, flow_tensor *batch)
{
  FLOW_TRY(flow_tensor_fill(batch, ((const padded *)at->base.dataset)->values[i]));
  for (int64_t row = 0; row < at->count; row++) {
    flow_tensor *from = at->rows[row].tensors[i], *into;
    FLOW_TRY(flow_tensor_view(batch, from->rank, from->shape, batch->strides + 1, row * batch->strides[0], &into));
    flow_status status = flow_tensor_copy(into, from);
    flow_tensor_release(into);
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* Rows until the batch is full or the input ends. An interrupted call leaves them in `rows`, and the next one goes on. */
static flow_status collect(padded_cursor *at, int64_t size)
{
  while (at->count < size) {
    FLOW_TRY(flow_grow(&at->rows, sizeof *at->rows, (int)at->count + 1, &at->capacity));
    at->rows[at->count] = (flow_element){ 0 };
    FLOW_TRY(flow_cursor_pull(at->base.inputs[0], &at->rows[at->count]));
    if (at->rows[at->count].count == 0) break;
    at->count++;
  }
  return FLOW_OK;
}

/* All rows of a batch are kept until the longest is known, then copied into a tensor that is filled with the padding. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  padded_cursor *at = (padded_cursor *)cursor;
  const padded *self = (const padded *)cursor->dataset;
  if (!at->interrupted) clear_rows(at);
  flow_status status = collect(at, self->size);
  at->interrupted = status == FLOW_INTERRUPTED;
  FLOW_TRY(status);
  if (at->count == 0 || (at->count < self->size && self->drop_remainder)) return FLOW_OK;
  for (int i = 0; i < self->rows.count; i++) {
    int64_t shape[FLOW_MAX_RANK];
    FLOW_TRY(batch_shape(at, i, shape));
    FLOW_TRY(flow_tensor_new_uninitialized(self->rows.components[i].dtype, self->rows.components[i].rank + 1, shape, &out->tensors[i]));
    out->count++;
    FLOW_TRY(fill_component(at, i, out->tensors[i]));
  }
  return FLOW_OK;
}

/* Batches are counted, rows are skipped below; the last batch may have fewer. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  const padded *self = (const padded *)cursor->dataset;
  int64_t rows, wanted;
  if (((padded_cursor *)cursor)->interrupted) return flow_cursor_skip_by_pulling(cursor, count, skipped);
  if (__builtin_mul_overflow(count, self->size, &wanted)) wanted = INT64_MAX;
  FLOW_TRY(flow_cursor_skip(cursor->inputs[0], wanted, &rows));
  *skipped = rows / self->size + (rows % self->size > 0 && !self->drop_remainder);
  return FLOW_OK;
}

/* The cursor itself is freed by the iterator. */
static void close(flow_cursor *cursor)
{
  clear_rows((padded_cursor *)cursor);
  flow_free(((padded_cursor *)cursor)->rows);
}

static const flow_dataset_class class = {
  .name = "padded_batch", .dataset_bytes = sizeof(padded), .cursor_bytes = sizeof(padded_cursor), .next = next, .skip = skip,
  .close = close,
};

/* What the padded rows look like: the input's components with the sizes that are asked for. */
static flow_status set_rows(padded *self, const flow_component *shapes, int count)
{
  self->rows = self->base.spec;
  if (!shapes) return FLOW_OK;
  if (count != self->rows.count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "padded_batch: %d shapes for %d components", count, self->rows.count);
  for (int i = 0; i < count; i++) {
    if (shapes[i].rank != self->rows.components[i].rank)
      return flow_fail(FLOW_INVALID_ARGUMENT, "padded_batch: component %d is %s, its padded shape has %d dimensions", i + 1,
                       flow_component_text(&self->rows.components[i]), shapes[i].rank);
    for (int axis = 0; axis < shapes[i].rank; axis++) self->rows.components[i].shape[axis] = shapes[i].shape[axis];
  }
  return FLOW_OK;
}

/* shapes: [count] of the components' ranks, -1 for the longest of a batch, or NULL: all dimensions are. values: [count], or NULL: zeros;
 * texts are padded with bytes. Both are copied. tf.data: padded_batch. */
flow_status flow_dataset_padded_batch(flow_dataset *input, double size, const flow_component *shapes, const double *values, int count,
                                      int drop_remainder, flow_dataset **out)
{
  FLOW_NEED(out);
  int64_t rows;
  *out = NULL;
  FLOW_TRY(flow_check_whole("padded_batch", "batch_size", size, 1, &rows));
  if (rows > INT32_MAX / 2) return flow_fail(FLOW_INVALID_ARGUMENT, "padded_batch: a batch_size of %.0f", size);
  FLOW_TRY(flow_dataset_new(&class, &input, 1, out));
  padded *self = (padded *)*out;
  self->size = rows;
  self->drop_remainder = drop_remainder != 0;
  for (int i = 0; values && i < count && i < FLOW_MAX_COMPONENTS; i++) self->values[i] = values[i];
  flow_status status = set_rows(self, shapes, count);
  if (status == FLOW_OK) {
    self->base.spec = self->rows;
    status = flow_stack_spec("padded_batch", &self->base.spec, drop_remainder ? rows : -1);
  }
  int64_t *cardinality = &self->base.cardinality;
  if (*cardinality >= 0) *cardinality = *cardinality / rows + (!drop_remainder && *cardinality % rows > 0);
  self->base.batch_rows = rows;
  flow_dataset_identify(*out, (uint64_t)rows);
  flow_dataset_identify(*out, (uint64_t)self->drop_remainder);
  for (int i = 0; i < self->rows.count; i++) {
    const flow_component *c = &self->rows.components[i];
    flow_dataset_identify(*out, flow_number_bits(self->values[i]));
    for (int axis = 0; axis < c->rank; axis++) flow_dataset_identify(*out, (uint64_t)c->shape[axis]);
  }
  if (status == FLOW_OK) return FLOW_OK;
  flow_dataset_release(*out);
  *out = NULL;
  return status;
}
