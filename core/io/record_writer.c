/* record_writer.c: the C API's writer of TFRecord files and its tf.train.Example under construction.
 *
 * An example is a list of features, each a list of values of one kind; it is encoded (example.c) when it is serialized
 * or written, and can be added to after that. A writer takes records or examples until it is closed; the first failed
 * write gives its file up. Objects belong to one thread at a time. */
#include "base/memory.h"
#include "io/example.h"
#include "io/record.h"

#include <string.h>

enum { WRITER_MAGIC = 0x464c5257, EXAMPLE_MAGIC = 0x464c4558, DEAD = 0x44454144 };

/* ---- tf.train.Example under construction --------------------------------------------------------------------------------------- */

/* `size` bytes an element in one growing block. */
typedef struct list { void *data; int count, capacity; } list;

/* One named list. Everything in it is the example's own copy. */
typedef struct feature {
  char             *name;
  flow_feature_kind kind;
  list              values;       /* float, int64_t, or for bytes: the size of each */
  list              bytes;        /* all bytes values, one after the other */
} feature;

struct flow_example { uint32_t magic; list features; };

/* Values at the end of a list of elements of `size` bytes. A count is a double as the C API has it: NaN and negative
 * ones fail the same test. On failure the list is unchanged. */
static flow_status append(list *to, const void *from, double count, size_t size)
{
  if (!(count >= 0 && count <= INT32_MAX - to->count)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a feature holds at most %d values or bytes", INT32_MAX);
  }
  if (count > 0 && !from) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%.0f values or bytes were announced, but their pointer is NULL", count);
  }
  FLOW_TRY(flow_grow(&to->data, size, to->count + (int)count, &to->capacity));
  if (count > 0) memcpy((char *)to->data + size * (size_t)to->count, from, size * (size_t)count);
  to->count += (int)count;
  return FLOW_OK;
}

/* Features keep the order in which they were added. */
flow_status flow_example_new(flow_example **out)
{
  void *block;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_example_new: out is NULL");
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_example), &block));
  *out = block;
  (*out)->magic = EXAMPLE_MAGIC;
  return FLOW_OK;
}

/* A released example is marked, so that a later use fails in most cases. */
void flow_example_release(flow_example *example)
{
  if (!example || example->magic != EXAMPLE_MAGIC) return;
  feature *features = example->features.data;
  for (int i = 0; i < example->features.count; i++) {
    flow_free(features[i].name);
    flow_free(features[i].values.data);
    flow_free(features[i].bytes.data);
  }
  flow_free(features);
  example->magic = DEAD;
  flow_free(example);
}

/* function: the caller, which begins the message. */
static flow_status check_example(const char *function, const flow_example *example)
{
  if (example && example->magic == EXAMPLE_MAGIC) return FLOW_OK;
  return flow_fail(example ? FLOW_INVALID_STATE : FLOW_INVALID_ARGUMENT, "%s: the example %s", function,
                   example ? "was released" : "is NULL");
}

/* The feature of that name, new or of that kind. Features are looked for one by one: an example has a few. *out is borrowed until the
 * next feature is added. */
static flow_status feature_of(const char *function, flow_example *example, const char *name, flow_feature_kind kind, feature **out)
{
  FLOW_TRY(check_example(function, example));
  if (!name) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: the name of a feature is NULL", function);
  list *all = &example->features;
  feature *features = all->data;
  for (int i = 0; i < all->count; i++) {
    if (strcmp(features[i].name, name) != 0) continue;
    if (features[i].kind != kind) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "feature '%s' holds %s, it cannot take %s too", name,
                       flow_feature_kind_name(features[i].kind), flow_feature_kind_name(kind));
    }
    *out = &features[i];
    return FLOW_OK;
  }
  feature fresh = { .name = flow_duplicate_text(name), .kind = kind };
  if (!fresh.name) return FLOW_OUT_OF_MEMORY;
  flow_status status = append(all, &fresh, 1, sizeof fresh);
  if (status != FLOW_OK) flow_free(fresh.name);
  else *out = (feature *)all->data + all->count - 1;
  return status;
}

/* Either the bytes and their size are added or neither. A feature of a new name stays in the example, empty, also when
 * its first values are refused; that holds for the two functions below, too. */
flow_status flow_example_add_bytes(flow_example *example, const char *name, const void *bytes, double count)
{
  feature *to;
  FLOW_TRY(feature_of("flow_example_add_bytes", example, name, FLOW_FEATURE_BYTES, &to));
  FLOW_TRY(append(&to->bytes, bytes, count, 1));
  int64_t size = (int64_t)count;
  flow_status status = append(&to->values, &size, 1, sizeof size);
  if (status != FLOW_OK) to->bytes.count -= (int)count;
  return status;
}

/* Adds to what the feature has: two calls make one list. */
flow_status flow_example_add_floats(flow_example *example, const char *name, const float *values, double count)
{
  feature *to;
  FLOW_TRY(feature_of("flow_example_add_floats", example, name, FLOW_FEATURE_FLOATS, &to));
  return append(&to->values, values, count, sizeof *values);
}

/* As flow_example_add_floats, for the kind int64_list. */
flow_status flow_example_add_integers(flow_example *example, const char *name, const int64_t *values, double count)
{
  feature *to;
  FLOW_TRY(feature_of("flow_example_add_integers", example, name, FLOW_FEATURE_INTEGERS, &to));
  return append(&to->values, values, count, sizeof *values);
}

/* All bytes values of the example as runs of bytes, in one block that the caller frees; NULL when there are none. */
static flow_status make_runs(const flow_example *example, flow_bytes **out)
{
  const feature *features = example->features.data;
  size_t count = 0;
  void *block;
  *out = NULL;
  for (int i = 0; i < example->features.count; i++) count += features[i].kind == FLOW_FEATURE_BYTES ? (size_t)features[i].values.count : 0;
  if (count == 0) return FLOW_OK;
  FLOW_TRY(flow_alloc(count * sizeof(flow_bytes), &block));
  flow_bytes *run = *out = block;
  for (int i = 0; i < example->features.count; i++) {
    const unsigned char *next = features[i].bytes.data;
    if (features[i].kind != FLOW_FEATURE_BYTES) continue;
    for (int j = 0; j < features[i].values.count; j++) {
      int64_t size = ((const int64_t *)features[i].values.data)[j];
      *run++ = (flow_bytes){ next, size > 0 ? next + size : next };
      if (size > 0) next += size;
    }
  }
  return FLOW_OK;
}

/* The message in a block that the caller frees. On failure *bytes is NULL and nothing is to be freed. */
static flow_status serialize(const flow_example *example, unsigned char **bytes, uint64_t *count)
{
  const feature *features = example->features.data;
  int total = example->features.count;
  flow_bytes *runs;
  void *block = NULL, *message = NULL;
  flow_status status;
  *bytes = NULL;
  FLOW_TRY(make_runs(example, &runs));
  FLOW_TRY_GOTO(flow_alloc((size_t)total * sizeof(flow_feature_values), &block), end);
  flow_feature_values *values = block;
  const flow_bytes *run = runs;
  for (int i = 0; i < total; i++) {
    int is_bytes = features[i].kind == FLOW_FEATURE_BYTES, n = features[i].values.count;
    values[i] = (flow_feature_values){ features[i].name, features[i].kind, (uint64_t)n, is_bytes ? run : features[i].values.data };
    if (is_bytes && n > 0) run += n;
  }
  *count = flow_example_bytes(values, total);
  FLOW_TRY_GOTO(flow_alloc((size_t)*count, &message), end);
  flow_example_encode(values, total, message);
  *bytes = message;
end:
  flow_free(block);
  flow_free(runs);
  return status;
}

/* The number of bytes, -1 after a failure; they are written if `size` is enough, so that a first call may ask for the size. */
double flow_example_serialize(const flow_example *example, void *to, double size)
{
  unsigned char *bytes;
  uint64_t count;
  if (check_example("flow_example_serialize", example) != FLOW_OK || serialize(example, &bytes, &count) != FLOW_OK) return -1;
  if (to && size >= (double)count) memcpy(to, bytes, (size_t)count);
  flow_free(bytes);
  return (double)count;
}

/* ---- files ------------------------------------------------------------------------------------------------------------------------ */

/* open: records may be written; 0 after close, and after a failed write, when the sink is closed and its file removed. */
struct flow_record_writer {
  uint32_t         magic;
  int              open;
  char            *path;
  flow_record_sink sink;
};

/* The file has its name only after flow_record_writer_close; a writer that is released before leaves nothing. */
flow_status flow_record_writer_new(const char *path, const char *compression_type, flow_record_writer **out)
{
  void *block;
  flow_coding coding;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_record_writer_new: out is NULL");
  *out = NULL;
  FLOW_TRY(flow_record_compression(compression_type, &coding));
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a TFRecord file is missing");
  FLOW_TRY(flow_alloc_zero(sizeof(flow_record_writer), &block));
  flow_record_writer *writer = block;
  writer->path = flow_duplicate_text(path);
  flow_status status = writer->path ? flow_record_create(path, coding, &writer->sink) : FLOW_OUT_OF_MEMORY;
  if (status != FLOW_OK) {
    flow_free(writer->path);
    flow_free(writer);
    return status;
  }
  writer->magic = WRITER_MAGIC;
  writer->open = 1;
  *out = writer;
  return FLOW_OK;
}

/* For functions that write: the writer is there and still open. */
static flow_status check_writer(const flow_record_writer *writer)
{
  if (!writer) return flow_fail(FLOW_INVALID_ARGUMENT, "the writer of records is NULL");
  if (writer->magic != WRITER_MAGIC) return flow_fail(FLOW_INVALID_STATE, "the writer of records was released");
  if (!writer->open) return flow_fail(FLOW_INVALID_STATE, "%s is closed: it takes no more records", writer->path);
  return FLOW_OK;
}

/* After a failed write the file is given up: what stands on the disk could end inside a record. */
static flow_status give_up(flow_record_writer *writer, flow_status status)
{
  if (status == FLOW_OK) return FLOW_OK;
  flow_record_discard(&writer->sink);
  writer->open = 0;
  return status;
}

/* One record of any bytes, 0 included. */
flow_status flow_record_writer_write(flow_record_writer *writer, const void *bytes, double count)
{
  FLOW_TRY(check_writer(writer));
  if (!(count >= 0 && count <= 0x1p46) || (count > 0 && !bytes)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a record of %g bytes cannot be written", writer->path, count);
  }
  return give_up(writer, flow_record_append(&writer->sink, bytes, (uint64_t)count));
}

/* The example stays the caller's, and may be changed and written again. */
flow_status flow_record_writer_write_example(flow_record_writer *writer, const flow_example *example)
{
  unsigned char *bytes;
  uint64_t count;
  FLOW_TRY(check_writer(writer));
  FLOW_TRY(check_example("flow_record_writer_write_example", example));
  FLOW_TRY(serialize(example, &bytes, &count));
  flow_status status = give_up(writer, flow_record_append(&writer->sink, bytes, count));
  flow_free(bytes);
  return status;
}

/* The file gets its name. Whatever comes out, the writer is closed; it is still to be released. */
flow_status flow_record_writer_close(flow_record_writer *writer)
{
  FLOW_TRY(check_writer(writer));
  writer->open = 0;
  return flow_record_commit(&writer->sink);
}

/* NULL and a second release are harmless. A writer that was not closed gives its file up. */
void flow_record_writer_release(flow_record_writer *writer)
{
  if (!writer || writer->magic != WRITER_MAGIC) return;
  if (writer->open) flow_record_discard(&writer->sink);
  writer->magic = DEAD;
  flow_free(writer->path);
  flow_free(writer);
}
