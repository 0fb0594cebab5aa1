/* row_store.c: see row_store.h.
 *
 * For each component of the elements: a table on the device with room for all rows, references to the rows on the host, and a hash table
 * from a row's address to its number. A batch is made in three steps: all rows are numbered; those that are new are packed and sent to
 * the end of the table; the batch is the list of numbers, from which the step gathers (input_rows.h), or is gathered here. A failure in
 * between takes the new numbers back, so that the store never names a row that was not sent. */
#include "data/row_store.h"

#include <string.h>
#include "base/need.h"
#include "data/iterator.h"
#include "graph/context.h"
#include "run/input_rows.h"

/* Of one component: the rows in the order in which they came, and where each is found again: open addressing, 0 is empty. */
typedef struct kept_rows {
  flow_tensor  *table;           /* {capacity, ...} on the device */
  flow_tensor **rows;            /* [capacity]: on the host; references */
  int64_t       count, capacity;
  int64_t      *found;           /* [size]: number of a row + 1 */
  uint64_t      size;            /* a power of two */
  size_t        row_bytes;
} kept_rows;

/* Used by one thread at a time; references may be counted by any. components[0 .. count - 1] are in use once
 * flow_row_store_start has succeeded. Rows stay until the store goes: addresses of rows that it holds cannot be used
 * again by other tensors. */
struct flow_row_store {
  _Atomic int references;
  flow_place *place;
  double      most_bytes;
  int         count;
  kept_rows   components[FLOW_MAX_COMPONENTS];
};

/* ---- making ------------------------------------------------------------------------------------------------------------------ */

flow_status flow_row_store_new(flow_context *context, int device, double most_bytes, flow_row_store **out)
{
  FLOW_NEED(out);
  flow_place *place;
  void *block;
  *out = NULL;
  FLOW_NEED(context);
  FLOW_TRY(flow_context_place_of(context, device, &place));
  if (!place || !(most_bytes >= 0))
    return flow_fail(FLOW_INVALID_ARGUMENT, "a row store needs a GPU and a number of bytes, got device %d, %g bytes", device, most_bytes);
  FLOW_TRY(flow_alloc_zero(sizeof **out, &block));
  *out = block;
  atomic_init(&(*out)->references, 1);
  (*out)->place = flow_place_retain(place);
  (*out)->most_bytes = most_bytes;
  return FLOW_OK;
}

/* All rows and tables; the store is then as new. */
static void forget(flow_row_store *store)
{
  for (int i = 0; i < store->count; i++) {
    kept_rows *kept = &store->components[i];
    for (int64_t row = 0; row < kept->count; row++) flow_tensor_release(kept->rows[row]);
    flow_free(kept->rows);
    flow_free(kept->found);
    flow_tensor_release(kept->table);
    *kept = (kept_rows){ 0 };
  }
  store->count = 0;
}

/* store is not NULL. */
flow_row_store *flow_row_store_retain(flow_row_store *store)
{
  atomic_fetch_add_explicit(&store->references, 1, memory_order_relaxed);
  return store;
}

/* The last reference gives back the memory on the device. */
void flow_row_store_release(flow_row_store *store)
{
  if (!store || atomic_fetch_sub_explicit(&store->references, 1, memory_order_acq_rel) > 1) return;
  forget(store);
  flow_place_release(store->place);
  flow_free(store);
}

/* Stages that pass elements on, such as shuffle, are looked through; -1 for a dataset of unknown length, too. */
int64_t flow_rows_that_come_again(const flow_dataset *dataset)
{
  while (dataset->class->passes_on) dataset = dataset->inputs[0];
  return dataset->class->keeps_elements && dataset->cardinality > 0 ? dataset->cardinality : -1;
}

/* Room for `rows` rows on the device, and a table by which a row's address on the host is found: at least twice as many places as rows. */
static flow_status make_component(flow_row_store *store, kept_rows *kept, const flow_component *component, int64_t rows)
{
  int64_t shape[FLOW_MAX_RANK] = { rows };
  size_t pointers, places;
  void *block;
  memcpy(shape + 1, component->shape, sizeof *shape * (size_t)component->rank);
  for (kept->size = 16; kept->size < (uint64_t)rows * 2; kept->size *= 2) { }
  FLOW_TRY(flow_multiply((size_t)rows, sizeof *kept->rows, &pointers));
  FLOW_TRY(flow_multiply((size_t)kept->size, sizeof *kept->found, &places));
  FLOW_TRY(flow_alloc_zero(pointers, &block));
  kept->rows = block;
  FLOW_TRY(flow_alloc_zero(places, &block));
  kept->found = block;
  kept->capacity = rows;
  return flow_tensor_new_at(store->place, component->dtype, component->rank + 1, shape, &kept->table);
}

/* Bytes of a row on the device; 0: rows of this component cannot be there. */
static size_t row_bytes_of(const flow_component *component)
{
  if (component->text || component->rank >= FLOW_MAX_RANK) return 0;
  for (int axis = 0; axis < component->rank; axis++) {
    if (component->shape[axis] < 0) return 0;
  }
  return (size_t)flow_shape_size(component->rank, component->shape) * (size_t)flow_dtype_size(component->dtype);
}

/* Whether that many rows may be kept, by the bytes that the caller allows for all components together. */
static int fits(const flow_row_store *store, const flow_element_spec *spec, int64_t rows)
{
  double bytes = 0;
  if (rows < 1 || rows >= INT64_C(1) << 40) return 0;
  for (int i = 0; i < spec->count; i++) {
    size_t row_bytes = row_bytes_of(&spec->components[i]);
    if (row_bytes == 0) return 0;
    bytes += (double)row_bytes * (double)rows;
  }
  return bytes <= store->most_bytes;
}

/* 0: these rows are not kept, since they do not fit, have no fixed size, or the device has no room; that is not a failure. */
int flow_row_store_start(flow_row_store *store, const flow_element_spec *spec, int64_t rows)
{
  if (store->count > 0) return store->count == spec->count;
  if (!fits(store, spec, rows)) return 0;
  store->count = spec->count;
  for (int i = 0; i < spec->count; i++) {
    store->components[i].row_bytes = row_bytes_of(&spec->components[i]);
    if (make_component(store, &store->components[i], &spec->components[i], rows) == FLOW_OK) continue;
    forget(store);
    return 0;
  }
  return 1;
}

/* ---- rows -------------------------------------------------------------------------------------------------------------------- */

/* The place of a row's address, or the empty one where it would go. The table is at most half full (make_component), so that a search
 * ends soon. */
static int64_t *place_of(const kept_rows *kept, const char *address)
{
  uint64_t i = flow_mix((uint64_t)(uintptr_t)address, 0) & (kept->size - 1);
  while (kept->found[i] && kept->rows[kept->found[i] - 1]->data != address) i = (i + 1) & (kept->size - 1);
  return &kept->found[i];
}

/* Whether a tensor is a row of this component, and can be copied as one run of bytes. */
static int suits(const kept_rows *kept, const flow_tensor *row)
{
  const flow_tensor *table = kept->table;
  return !flow_tensor_place(row) && row->dtype == table->dtype && flow_tensor_is_contiguous(row) &&
         flow_shape_equal(row->rank, row->shape, table->rank - 1, table->shape + 1);
}

/* Takes rows from first_new on back. */
static void drop_new(kept_rows *kept, int64_t first_new)
{
  while (kept->count > first_new) {
    flow_tensor *row = kept->rows[kept->count - 1];
    *place_of(kept, row->data) = 0;      /* leaves no gap: what was added after it is gone already */
    kept->count--;
    flow_tensor_release(row);
  }
}

/* Numbers of a component's rows; new ones are added, to be sent. 0: there is no room, or an element is not such a row. */
static int number_rows(kept_rows *kept, const flow_element *elements, int64_t rows, int component, int64_t *numbers)
{
  for (int64_t i = 0; i < rows; i++) {
    flow_tensor *row = elements[i].tensors[component];
    if (!suits(kept, row)) return 0;
    int64_t *place = place_of(kept, row->data);
    if (!*place) {
      if (kept->count == kept->capacity) return 0;
      kept->rows[kept->count++] = flow_tensor_retain(row);
      *place = kept->count;
    }
    numbers[i] = *place - 1;
  }
  return 1;
}

/* New rows are packed on the host and go to the end of the table in one copy. */
static flow_status send_rows(flow_row_store *store, kept_rows *kept, int64_t first_new)
{
  size_t bytes = (size_t)(kept->count - first_new) * kept->row_bytes;
  void *block;
  if (bytes == 0) return FLOW_OK;
  FLOW_TRY(flow_alloc(bytes, &block));
  for (int64_t row = first_new; row < kept->count; row++)
    memcpy((char *)block + (size_t)(row - first_new) * kept->row_bytes, kept->rows[row]->data, kept->row_bytes);
  flow_status status = flow_place_upload(store->place, kept->table->data + (size_t)first_new * kept->row_bytes, block, bytes);
  flow_free(block);
  return status;
}

/* The batch of the rows with these numbers. *out is the caller's also after a failure, where it may be NULL. */
static flow_status take_rows(flow_row_store *store, kept_rows *kept, const int64_t *numbers, int64_t rows, flow_tensor **out)
{
  int64_t shape[FLOW_MAX_RANK];
  flow_tensor *order;
  memcpy(shape, kept->table->shape, sizeof shape);
  shape[0] = rows;
  FLOW_TRY(flow_tensor_new_at(store->place, FLOW_INT64, 1, &rows, &order));
  flow_status status = flow_place_upload(store->place, order->data, numbers, sizeof *numbers * (size_t)rows);
  if (status == FLOW_OK) status = flow_tensor_new_at(store->place, kept->table->dtype, kept->table->rank, shape, out);
  if (status == FLOW_OK) status = flow_place_gather(store->place, kept->table, (const int64_t *)order->data, rows, (*out)->data);
  flow_tensor_release(order);
  return status;
}

/* Borrowed, as long as the store; NULL: there is no such component. */
flow_tensor *flow_row_store_table(const flow_row_store *store, int i)
{
  if (!store) return NULL;
  return i >= 0 && i < store->count ? store->components[i].table : NULL;
}

/* The numbers themselves, [rows], which are those of all components. */
static flow_status name_rows(const int64_t *numbers, int64_t rows, flow_element *out)
{
  FLOW_TRY(flow_tensor_new_uninitialized(FLOW_INT64, 1, &rows, &out->tensors[0]));
  memcpy(out->tensors[0]->data, numbers, sizeof *numbers * (size_t)rows);
  out->count = 1;
  out->numbers = 1;
  return FLOW_OK;
}

/* numbers: [components][rows]. */
static int are_equal(const int64_t *numbers, int64_t rows, int components)
{
  for (int i = 1; i < components; i++)
    if (memcmp(numbers, numbers + i * rows, sizeof *numbers * (size_t)rows) != 0) return 0;
  return 1;
}

/* Rows of all components are numbered first; only if each has its place something is sent. If that fails, the new rows are taken back,
 * so that the store is unchanged. Components with equal numbers (features and labels of the same rows) give one list of numbers, from
 * which the step gathers by itself; others are gathered here. */
static flow_status make_batch(flow_row_store *store, const flow_element *elements, int64_t rows, int64_t *numbers, flow_element *out,
                              int *made)
{
  int64_t before[FLOW_MAX_COMPONENTS];
  int known = 1;
  flow_status status = FLOW_OK;
  for (int i = 0; i < store->count; i++) before[i] = store->components[i].count;
  for (int i = 0; i < store->count && known; i++) known = number_rows(&store->components[i], elements, rows, i, numbers + i * rows);
  for (int i = 0; i < store->count && known && status == FLOW_OK; i++) status = send_rows(store, &store->components[i], before[i]);
  if (!known || status != FLOW_OK) {
    for (int i = 0; i < store->count; i++) drop_new(&store->components[i], before[i]);
    return status;
  }
  int named = are_equal(numbers, rows, store->count);
  if (named) status = name_rows(numbers, rows, out);
  for (; !named && out->count < store->count && status == FLOW_OK; out->count += status == FLOW_OK)
    status = take_rows(store, &store->components[out->count], numbers + out->count * rows, rows, &out->tensors[out->count]);
  if (status != FLOW_OK) flow_element_clear(out);
  *made = status == FLOW_OK;
  return status;
}

/* *made 0 with FLOW_OK: the store has no room for a new row, so the caller makes the batch from the elements. */
flow_status flow_row_store_batch(flow_row_store *store, const flow_element *elements, int64_t rows, flow_element *out, int *made)
{
  size_t count, bytes;
  void *numbers;
  *made = 0;
  FLOW_TRY(flow_multiply((size_t)rows, (size_t)store->count, &count));
  FLOW_TRY(flow_multiply(count, sizeof(int64_t), &bytes));
  FLOW_TRY(flow_alloc(bytes, &numbers));
  flow_status status = make_batch(store, elements, rows, numbers, out, made);
  flow_free(numbers);
  return status;
}
