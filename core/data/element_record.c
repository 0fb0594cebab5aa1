/* element_record.c: see element_record.h. Writing appends to a block in memory, one record at a time; reading takes what it needs from
 * the record's bytes through flow_bytes, which never goes past their end. Every number of a file is checked against the signature or
 * against what is left of the record before it is used as a size. */
#include "data/element_record.h"

#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers and values stand in files as they stand in memory");

/* MOST_DRAWS: more random stages than a pipeline has; a damaged number must not ask for memory. */
enum { START = 1, ELEMENT = 2, END = 3, MOST_DRAWS = 1 << 16 };

static const char title[] = "flow-elements-1";

void flow_element_start_free(flow_element_start *start)
{
  flow_free(start->draws);
  *start = (flow_element_start){ 0 };
}

/* ---- writing ------------------------------------------------------------------------------------------------------------ */

/* Room for `count` more bytes; what is there stays. On failure the block is unchanged. Half as much again each time, so
 * that a long record is not copied often. */
static flow_status reserve(flow_record_bytes *to, size_t count)
{
  size_t wanted;
  if (__builtin_add_overflow(to->count, count, &wanted)) return flow_fail(FLOW_OUT_OF_MEMORY, "a record of this size is not possible");
  if (wanted <= to->capacity) return FLOW_OK;
  size_t capacity = wanted > to->capacity + to->capacity / 2 ? wanted : to->capacity + to->capacity / 2;
  void *block;
  FLOW_TRY(flow_alloc(capacity, &block));
  if (to->count > 0) memcpy(block, to->bytes, to->count);
  flow_free(to->bytes);
  to->bytes = block;
  to->capacity = capacity;
  return FLOW_OK;
}

/* bytes may be NULL where count is 0. */
static flow_status put(flow_record_bytes *to, const void *bytes, size_t count)
{
  FLOW_TRY(reserve(to, count));
  if (count > 0) memcpy(to->bytes + to->count, bytes, count);
  to->count += count;
  return FLOW_OK;
}

/* A record begins with its kind; what the block held before is dropped, its memory stays. */
static flow_status begin(flow_record_bytes *to, unsigned char kind)
{
  to->count = 0;
  return put(to, &kind, 1);
}

/* The title, the pipeline's identity, the signature and what random stages drew: a reader compares them before it believes the elements. */
flow_status flow_element_start_write(const flow_element_start *start, flow_record_bytes *to)
{
  uint32_t components = (uint32_t)start->spec.count, draws = (uint32_t)start->draw_count;
  FLOW_TRY(begin(to, START));
  FLOW_TRY(put(to, title, sizeof title - 1));
  FLOW_TRY(put(to, &start->identity, 8));
  FLOW_TRY(put(to, &components, 4));
  for (int i = 0; i < start->spec.count; i++) {
    const flow_component *c = &start->spec.components[i];
    unsigned char facts[3] = { (unsigned char)c->dtype, (unsigned char)c->rank, (unsigned char)c->text };
    FLOW_TRY(put(to, facts, 3));
    FLOW_TRY(put(to, c->shape, 8 * (size_t)c->rank));
  }
  FLOW_TRY(put(to, &draws, 4));
  for (int i = 0; i < start->draw_count; i++) {
    FLOW_TRY(put(to, start->draws[i].seed, 16));
    FLOW_TRY(put(to, &start->draws[i].number, 8));
  }
  return FLOW_OK;
}

/* Elements in row-major order, also of a strided tensor. */
static flow_status put_values(flow_tensor *tensor, flow_record_bytes *to)
{
  flow_tensor *whole;
  FLOW_TRY(flow_tensor_contiguous(tensor, &whole));
  size_t bytes = (size_t)flow_shape_size(whole->rank, whole->shape) * (size_t)flow_dtype_size(whole->dtype);
  flow_status status = put(to, whole->data, bytes);
  flow_tensor_release(whole);
  return status;
}

/* All shapes before all values: so the sizes of the whole record can be checked before any tensor is made (take_shapes). */
flow_status flow_element_write(const flow_element *element, flow_record_bytes *to)
{
  FLOW_TRY(begin(to, ELEMENT));
  for (int i = 0; i < element->count; i++) {
    const flow_tensor *tensor = element->tensors[i];
    unsigned char rank = (unsigned char)tensor->rank;
    FLOW_TRY(put(to, &rank, 1));
    FLOW_TRY(put(to, tensor->shape, 8 * (size_t)rank));
  }
  for (int i = 0; i < element->count; i++) FLOW_TRY(put_values(element->tensors[i], to));
  return FLOW_OK;
}

/* The number of elements: a file without this record was cut off. */
flow_status flow_element_end_write(uint64_t elements, flow_record_bytes *to)
{
  FLOW_TRY(begin(to, END));
  return put(to, &elements, 8);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------ */

/* 0: the record does not have this many bytes any more. */
static int take(flow_bytes *from, void *to, uint64_t count)
{
  const unsigned char *taken = flow_bytes_take(from, count);
  if (taken && count > 0) memcpy(to, taken, (size_t)count);
  return taken != NULL;
}

/* `least`: -1 in a signature, where it stands for any size, else 0. */
static int take_shape(flow_bytes *from, int rank, int64_t *shape, int64_t least)
{
  if (rank < 0 || rank > FLOW_MAX_RANK || !take(from, shape, 8 * (uint64_t)rank)) return 0;
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] < least) return 0;
  }
  return 1;
}

/* A file's bytes are checked here, so that nothing after this meets a dtype, a rank or a size that cannot be. */
static int take_component(flow_bytes *from, flow_component *out)
{
  unsigned char facts[3];
  if (!take(from, facts, 3) || facts[2] > 1) return 0;
  *out = (flow_component){ .dtype = facts[0], .rank = facts[1], .text = facts[2] };
  return flow_component_is_valid(out) && take_shape(from, facts[1], out->shape, -1);
}

/* The sentence tells what to do, since the file is a cache that can be made again. */
static flow_status fail_foreign(const char *path)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s is not a file of cached elements, or is damaged: remove it, or name another one", path);
}

/* Memory for draws is asked for only after their number was found to be what is left of the record. */
flow_status flow_element_start_read(const char *path, const unsigned char *bytes, uint64_t count, flow_element_start *out)
{
  flow_bytes from = flow_bytes_of(bytes, count);
  unsigned char head[sizeof title];
  uint32_t components, draws;
  *out = (flow_element_start){ 0 };
  if (!take(&from, head, sizeof head) || head[0] != START || memcmp(head + 1, title, sizeof title - 1) != 0) return fail_foreign(path);
  if (!take(&from, &out->identity, 8) || !take(&from, &components, 4) || components > FLOW_MAX_COMPONENTS) return fail_foreign(path);
  out->spec.count = (int)components;
  for (uint32_t i = 0; i < components; i++) {
    if (!take_component(&from, &out->spec.components[i])) return fail_foreign(path);
  }
  if (!take(&from, &draws, 4) || draws > MOST_DRAWS || flow_bytes_left(&from) != 24 * (uint64_t)draws) return fail_foreign(path);
  FLOW_TRY(flow_grow(&out->draws, sizeof *out->draws, (int)draws, &out->draw_capacity));
  for (; out->draw_count < (int)draws; out->draw_count++) {
    take(&from, out->draws[out->draw_count].seed, 16);
    take(&from, &out->draws[out->draw_count].number, 8);
  }
  return FLOW_OK;
}

static flow_status fail_element(const flow_record_reader *reader, uint64_t number, const char *what)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s is damaged, remove it: element %.0f %s", reader->path, (double)number + 1, what);
}

/* The shapes of an element, as its signature allows them; sizes[i]: bytes of each component's values. 0: they do not
 * fit, or are not what is left of the record. */
static int take_shapes(flow_bytes *from, const flow_element_spec *spec, int64_t shapes[][FLOW_MAX_RANK], uint64_t *sizes)
{
  uint64_t total = 0;
  for (int i = 0; i < spec->count; i++) {
    const flow_component *c = &spec->components[i];
    unsigned char rank;
    if (!take(from, &rank, 1) || rank != c->rank || !take_shape(from, rank, shapes[i], 0)) return 0;
    sizes[i] = (uint64_t)flow_dtype_size(c->dtype);
    for (int axis = 0; axis < rank; axis++) {
      if (c->shape[axis] >= 0 && c->shape[axis] != shapes[i][axis]) return 0;
      if (__builtin_mul_overflow(sizes[i], (uint64_t)shapes[i][axis], &sizes[i])) return 0;
    }
    if (__builtin_add_overflow(total, sizes[i], &total)) return 0;
  }
  return total == flow_bytes_left(from);
}

/* Sizes are checked against the record before a tensor is made: a damaged shape cannot ask for more memory than the file is long. */
static flow_status take_element(flow_record_reader *reader, flow_bytes *from, const flow_element_spec *spec, uint64_t number,
                                flow_element *out)
{
  int64_t shapes[FLOW_MAX_COMPONENTS][FLOW_MAX_RANK];
  uint64_t sizes[FLOW_MAX_COMPONENTS];
  if (!take_shapes(from, spec, shapes, sizes)) return fail_element(reader, number, "does not match the signature in the file");
  for (int i = 0; i < spec->count; i++) {
    const flow_component *c = &spec->components[i];
    flow_status status = flow_tensor_new_uninitialized(c->dtype, c->rank, shapes[i], &out->tensors[i]);
    if (status != FLOW_OK) {
      flow_element_clear(out);
      return status;
    }
    out->count = i + 1;
    take(from, out->tensors[i]->data, sizes[i]);
  }
  return FLOW_OK;
}

/* out NULL: the element is passed over. read: how many came before, which the last record must confirm, so that a file that was cut off
 * between two records is found. */
flow_status flow_element_read(flow_record_reader *reader, const flow_element_spec *spec, uint64_t read, flow_element *out, int *ended)
{
  const unsigned char *bytes;
  uint64_t count, expected;
  unsigned char kind = 0;
  *ended = 0;
  FLOW_TRY(flow_record_next(reader, &bytes, &count));
  if (!bytes) return fail_element(reader, read, "is missing: the file was cut off");
  flow_bytes from = flow_bytes_of(bytes, count);
  take(&from, &kind, 1);
  if (kind == ELEMENT) return out ? take_element(reader, &from, spec, read, out) : FLOW_OK;
  if (kind != END || !take(&from, &expected, 8) || flow_bytes_left(&from) > 0) return fail_element(reader, read, "is of an unknown kind");
  if (expected != read) return fail_element(reader, read, "is missing: the file says that it holds more or fewer");
  *ended = 1;
  return FLOW_OK;
}

/* The end is a record of its kind and a number, and has three more: its length and two checksums (io/record.h). */
int64_t flow_element_count(const char *path, uint64_t file_bytes)
{
  enum { END_BYTES = 1 + 8, RECORD_BYTES = 8 + 4 + END_BYTES + 4 };
  flow_record_reader reader = { 0 };
  const unsigned char *bytes = NULL;
  uint64_t count = 0, elements = 0;
  unsigned char kind = 0;
  if (file_bytes < RECORD_BYTES) return FLOW_UNKNOWN;
  flow_status status = flow_record_open_at(path, file_bytes - RECORD_BYTES, END_BYTES, &reader);
  if (status == FLOW_OK) status = flow_record_next(&reader, &bytes, &count);
  if (status == FLOW_OK && bytes && count == END_BYTES) {
    flow_bytes from = flow_bytes_of(bytes, count);
    take(&from, &kind, 1);
    take(&from, &elements, 8);
  }
  flow_record_close(&reader);
  return kind == END && elements < (uint64_t)1 << 53 ? (int64_t)elements : FLOW_UNKNOWN;
}
