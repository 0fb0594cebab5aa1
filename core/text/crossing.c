/* crossing.c: several features as one, by hashing: tf.sparse.cross_hashed (TensorFlow, core/kernels/sparse_cross_op.cc, HashCrosser) of
 * columns with one value in each row.
 *
 * The columns are opened once (strings.h), which also fetches them from a device; each row is then a number from its values alone, so
 * that equal rows give equal numbers in every process and on every machine. Called by the stage look_up of datasets and by the C API, on
 * the caller's thread. */
#include "text/fingerprint.h"
#include "base/need.h"
#include "text/lookup.h"

static const uint64_t first_key = UINT64_C(0xdecafcaffe);      /* python/ops/sparse_ops.py, _DEFAULT_HASH_KEY */

/* Of options, before there are strings: count is bounded by the arrays of those that call this. *whole: bins as a whole number. */
flow_status flow_crossing_check(int count, double bins, int64_t *whole)
{
  if (count < 2 || count > FLOW_MAX_COMPONENTS) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a crossing takes 2 to %d tensors, got %d", FLOW_MAX_COMPONENTS, count);
  }
  return flow_check_whole("a crossing", "num_bins", bins, 1, whole);
}

/* As HashCrosser does: a text's fingerprint, a number itself. `values` is int64 and contiguous, as flow_strings_open
 * leaves numbers. */
static uint64_t key_of(const flow_string_reader *column, int64_t row)
{
  char digits[FLOW_DIGITS];
  if (!column->is_text) return (uint64_t)((const int64_t *)column->values->data)[row];
  flow_token token = flow_strings_get(column, row, digits);
  return flow_fingerprint(token.bytes, (size_t)token.size);
}

/* Each row: the hash begins with TensorFlow's key and takes in one column after the other, so that their order counts.
 * The remainder is that of a number without sign, at least 0 and below bins. */
static flow_status cross(const flow_string_reader *columns, int count, int64_t bins, flow_tensor **out)
{
  const flow_string_reader *first = &columns[0];
  for (int i = 1; i < count; i++) {
    if (!flow_shape_equal(first->rank, first->shape, columns[i].rank, columns[i].shape)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "a crossing takes tensors of one shape: the first has %s, number %d has %s",
                       flow_shape_text(first->rank, first->shape), i + 1, flow_shape_text(columns[i].rank, columns[i].shape));
    }
  }
  if (first->rank > 2 || (first->rank == 2 && first->shape[1] != 1)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a crossing takes tensors of the shape {}, {batch} or {batch, 1}, found %s",
                     flow_shape_text(first->rank, first->shape));
  }
  FLOW_TRY(flow_tensor_new_uninitialized(FLOW_INT64, first->rank, first->shape, out));
  for (int64_t row = 0; row < first->count; row++) {
    uint64_t hash = first_key;
    for (int i = 0; i < count; i++) hash = flow_fingerprint_join(hash, key_of(&columns[i], row));
    ((int64_t *)(*out)->data)[row] = (int64_t)(hash % (uint64_t)bins);
  }
  return FLOW_OK;
}

/* *out: int64 in the shape of the columns; NULL after a failure. `open` counts the readers that have to be closed. */
flow_status flow_hash_crossing(const flow_strings *columns, int count, double bins, flow_tensor **out)
{
  FLOW_NEED(out);
  if (count > 0) FLOW_NEED(columns);
  flow_string_reader readers[FLOW_MAX_COMPONENTS];
  int64_t whole;
  int open = 0;
  *out = NULL;
  FLOW_TRY(flow_crossing_check(count, bins, &whole));
  flow_status status = FLOW_OK;
  for (; open < count && status == FLOW_OK; open += status == FLOW_OK)
    status = flow_strings_open("a crossing", &columns[open], &readers[open]);
  if (status == FLOW_OK) status = cross(readers, count, whole, out);
  for (int i = 0; i < open; i++) flow_strings_close(&readers[i]);
  return status;
}
