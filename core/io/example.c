/* example.c: tf.train.Example out of and into protobuf's wire format (protobuf: Encoding).
 *
 * Levels of the message: Example { features = 1 }, Features { map entries = 1 }, entry { name = 1, Feature = 2 },
 * Feature { one of BytesList = 1, FloatList = 2, Int64List = 3 }, list { value = 1 }. Readers walk over two levels at a
 * time with a flow_bytes for each, so that a field which is repeated is merged as protobuf demands, without a tree in
 * memory. All pointers go into the caller's bytes. */
#include "io/example.h"

#include <stdlib.h>
#include <string.h>
#include "base/float_state.h"

static flow_status fail_wire(void)
{
  return flow_fail(FLOW_CORRUPT_DATA, "the bytes are not a tf.train.Example: a field is cut off or malformed");
}

/* ---- entries --------------------------------------------------------------------------------------------------------------- */

flow_example_reader flow_example_reader_of(const void *bytes, uint64_t count)
{
  return (flow_example_reader){ .example = flow_bytes_of(bytes, count), .features = flow_bytes_of(bytes, 0) };
}

/* Which list the Feature message holds. The last one counts; those of its kind right before it belong to it. So the
 * numbers of flow_feature_kind are those of the fields in feature.proto. */
static flow_status classify(flow_bytes message, flow_feature *feature)
{
  feature->kind = FLOW_FEATURE_EMPTY;
  feature->content = message;
  while (flow_bytes_left(&message) > 0) {
    const unsigned char *start = message.next;
    flow_wire_field field;
    if (!flow_wire_next(&message, &field)) return fail_wire();
    if (field.type != FLOW_WIRE_DELIMITED || field.number > FLOW_FEATURE_INTEGERS) continue;
    if ((uint64_t)feature->kind != field.number) feature->content.next = start;
    feature->kind = (flow_feature_kind)field.number;
  }
  return FLOW_OK;
}

/* An entry of the map features: key (field 1) and value (field 2), in any order; the last of each counts, as protobuf says of fields that
 * are repeated by mistake. */
static flow_status read_entry(flow_bytes entry, flow_feature *feature)
{
  flow_bytes message = { entry.end, entry.end };
  feature->name = message;
  while (flow_bytes_left(&entry) > 0) {
    flow_wire_field field;
    if (!flow_wire_next(&entry, &field)) return fail_wire();
    if (field.type == FLOW_WIRE_DELIMITED && field.number == 1) feature->name = field.content;
    if (field.type == FLOW_WIRE_DELIMITED && field.number == 2) message = field.content;
  }
  return classify(message, feature);
}

/* Two levels: Example's field 1 is Features, whose field 1 are the entries. Unknown fields are passed over. Everything that is found points
 * into the caller's bytes. */
flow_status flow_example_next(flow_example_reader *reader, flow_feature *feature, int *found)
{
  flow_wire_field field;
  for (*found = 0; !*found;) {
    flow_bytes *level = flow_bytes_left(&reader->features) > 0 ? &reader->features : &reader->example;
    if (flow_bytes_left(level) == 0) return FLOW_OK;
    if (!flow_wire_next(level, &field)) return fail_wire();
    if (field.type != FLOW_WIRE_DELIMITED || field.number != 1) continue;
    if (level == &reader->example) {
      reader->features = field.content;
    } else {
      FLOW_TRY(read_entry(field.content, feature));
      *found = 1;
    }
  }
  return FLOW_OK;
}

/* The last feature of that name counts, so that all are looked at. */
flow_status flow_example_find(const void *bytes, uint64_t count, const char *name, flow_feature *feature, int *found)
{
  flow_example_reader reader = flow_example_reader_of(bytes, count);
  size_t length = strlen(name);
  *found = 0;
  for (int more = 1; more;) {
    flow_feature candidate;
    FLOW_TRY(flow_example_next(&reader, &candidate, &more));
    if (more && (size_t)(candidate.name.end - candidate.name.next) == length && memcmp(candidate.name.next, name, length) == 0) {
      *feature = candidate;
      *found = 1;
    }
  }
  return FLOW_OK;
}

/* ---- values ------------------------------------------------------------------------------------------------------------------ */

/* A walk over the values of a feature: `lists` is what is left of the Feature message, `values` what is left of the list
 * inside of which the walk is. kind: the field number of the lists that count. */
typedef struct value_reader { flow_bytes lists, values; uint64_t kind; } value_reader;

static value_reader values_of(const flow_feature *feature)
{
  return (value_reader){ .lists = feature->content, .values = { feature->content.next, feature->content.next }, .kind = feature->kind };
}

/* A value is a packed run of numbers, a single number that is not packed, or bytes; the wire type tells which. */
static flow_status next_value(value_reader *reader, flow_wire_field *field, int *found)
{
  for (*found = 0; !*found;) {
    int inside = flow_bytes_left(&reader->values) > 0;
    flow_bytes *level = inside ? &reader->values : &reader->lists;
    if (flow_bytes_left(level) == 0) return FLOW_OK;
    if (!flow_wire_next(level, field)) return fail_wire();
    if (inside) *found = field->number == 1;
    else if (field->type == FLOW_WIRE_DELIMITED && field->number == reader->kind) reader->values = field->content;
  }
  return FLOW_OK;
}

static flow_status fail_list(void)
{
  return flow_fail(FLOW_CORRUPT_DATA, "the bytes are not a tf.train.Example: a list of numbers has a length that does not fit");
}

/* The wire type of a single value of that kind. Floats and integers may also come packed, as one run of bytes
 * (DELIMITED). */
static int unpacked_type(flow_feature_kind kind)
{
  return kind == FLOW_FEATURE_FLOATS ? FLOW_WIRE_FIXED32 : kind == FLOW_FEATURE_INTEGERS ? FLOW_WIRE_VARINT : FLOW_WIRE_DELIMITED;
}

/* How many numbers or texts all the feature's lists hold. Of varints each has one byte below 128, its last, so that counting those counts
 * the numbers. */
flow_status flow_feature_count(const flow_feature *feature, uint64_t *count)
{
  value_reader reader = values_of(feature);
  flow_wire_field field;
  int found;
  *count = 0;
  for (;;) {
    FLOW_TRY(next_value(&reader, &field, &found));
    if (!found) return FLOW_OK;
    if (field.type == unpacked_type(feature->kind)) {
      ++*count;
    } else if (field.type == FLOW_WIRE_DELIMITED && feature->kind == FLOW_FEATURE_FLOATS) {
      size_t bytes = (size_t)(field.content.end - field.content.next);
      if (bytes % 4 != 0) return fail_list();
      *count += bytes / 4;
    } else if (field.type == FLOW_WIRE_DELIMITED) {
      for (const unsigned char *byte = field.content.next; byte < field.content.end; byte++) *count += *byte < 128;
    }
  }
}

/* `to` has room for flow_feature_count numbers, which has shown that the lengths are right. */
flow_status flow_feature_floats(const flow_feature *feature, float *to)
{
  FLOW_DEFAULT_FLOATS;
  value_reader reader = values_of(feature);
  flow_wire_field field;
  int found;
  for (;;) {
    FLOW_TRY(next_value(&reader, &field, &found));
    if (!found) return FLOW_OK;
    if (field.type == FLOW_WIRE_FIXED32) {
      uint32_t bits = (uint32_t)field.value;
      memcpy(to++, &bits, sizeof bits);
    } else if (field.type == FLOW_WIRE_DELIMITED) {                      /* little-endian, as npy.c requires of the machine */
      size_t bytes = (size_t)(field.content.end - field.content.next);
      memcpy(to, field.content.next, bytes);
      to += bytes / 4;
    }
  }
}

/* `to` has room for flow_feature_count numbers. A varint that does not end, or is longer than 10 bytes, fails here: the
 * count knows nothing of it, and is never less than what is written. */
flow_status flow_feature_integers(const flow_feature *feature, int64_t *to)
{
  value_reader reader = values_of(feature);
  flow_wire_field field;
  int found;
  uint64_t value;
  for (;;) {
    FLOW_TRY(next_value(&reader, &field, &found));
    if (!found) return FLOW_OK;
    if (field.type == FLOW_WIRE_VARINT) *to++ = (int64_t)field.value;
    if (field.type != FLOW_WIRE_DELIMITED) continue;
    while (flow_bytes_left(&field.content) > 0) {
      if (!flow_wire_varint(&field.content, &value)) return fail_list();
      *to++ = (int64_t)value;
    }
  }
}

/* The first text of the feature. */
flow_status flow_feature_bytes(const flow_feature *feature, flow_bytes *value)
{
  value_reader reader = values_of(feature);
  flow_wire_field field;
  int found;
  do {
    FLOW_TRY(next_value(&reader, &field, &found));
    if (!found) return fail_list();
  } while (field.type != FLOW_WIRE_DELIMITED);
  *value = field.content;
  return FLOW_OK;
}

const char *flow_feature_kind_name(flow_feature_kind kind)
{
  static const char *const names[] = { "nothing", "bytes", "float32", "int64" };
  return names[kind];
}

/* ---- writing ----------------------------------------------------------------------------------------------------------------- */

/* A field with a one-byte key and `content` bytes after its length. */
static uint64_t delimited_bytes(uint64_t content)
{
  return 1 + flow_varint_size(content) + content;
}

static unsigned char *write_delimited(unsigned char *to, int number, uint64_t content)
{
  *to++ = (unsigned char)(number << 3 | FLOW_WIRE_DELIMITED);
  return flow_varint_write(to, content);
}

/* Bytes of the packed numbers, or of all value fields of a bytes list. */
static uint64_t values_bytes(const flow_feature_values *feature)
{
  uint64_t bytes = 0;
  if (feature->kind == FLOW_FEATURE_FLOATS) return 4 * feature->count;
  for (uint64_t i = 0; i < feature->count; i++) {
    if (feature->kind == FLOW_FEATURE_INTEGERS) {
      bytes += flow_varint_size((uint64_t)((const int64_t *)feature->values)[i]);
    } else {
      const flow_bytes *value = (const flow_bytes *)feature->values + i;
      bytes += delimited_bytes((uint64_t)(value->end - value->next));
    }
  }
  return bytes;
}

/* Bytes of the BytesList, FloatList or Int64List; of the Feature; of the map's entry. */
typedef struct sizes { uint64_t values, list, feature, entry; } sizes;

/* Lengths come before contents, so each level is measured before it is written. */
static sizes measure(const flow_feature_values *feature)
{
  sizes s = { .values = values_bytes(feature) };
  s.list = feature->kind == FLOW_FEATURE_BYTES || feature->count == 0 ? s.values : delimited_bytes(s.values);
  s.feature = delimited_bytes(s.list);
  s.entry = delimited_bytes(strlen(feature->name)) + delimited_bytes(s.feature);
  return s;
}

/* Packed floats as they are, integers as varints, texts one by one with their lengths. There is room: the bytes were counted before. */
static unsigned char *write_values(unsigned char *to, const flow_feature_values *feature)
{
  if (feature->kind == FLOW_FEATURE_FLOATS && feature->count > 0) memcpy(to, feature->values, 4 * feature->count);
  if (feature->kind == FLOW_FEATURE_FLOATS) return to + 4 * feature->count;
  for (uint64_t i = 0; i < feature->count; i++) {
    if (feature->kind == FLOW_FEATURE_INTEGERS) {
      to = flow_varint_write(to, (uint64_t)((const int64_t *)feature->values)[i]);
    } else {
      const flow_bytes *value = (const flow_bytes *)feature->values + i;
      size_t bytes = (size_t)(value->end - value->next);
      to = write_delimited(to, 1, bytes);
      if (bytes > 0) memcpy(to, value->next, bytes);
      to += bytes;
    }
  }
  return to;
}

/* The levels from the outside in, each with the length that measure() has computed. A list without values is empty; its
 * one-byte length is then all there is of it. */
static unsigned char *write_entry(unsigned char *to, const flow_feature_values *feature)
{
  sizes s = measure(feature);
  size_t name = strlen(feature->name);
  to = write_delimited(to, 1, s.entry);
  to = write_delimited(to, 1, name);
  memcpy(to, feature->name, name);
  to = write_delimited(to + name, 2, s.feature);
  to = write_delimited(to, (int)feature->kind, s.list);
  if (s.list > s.values) to = write_delimited(to, 1, s.values);
  return write_values(to, feature);
}

static uint64_t features_bytes(const flow_feature_values *features, int count)
{
  uint64_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += delimited_bytes(measure(&features[i]).entry);
  return bytes;
}

uint64_t flow_example_bytes(const flow_feature_values *features, int count)
{
  return delimited_bytes(features_bytes(features, count));
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(((const flow_feature_values *)a)->name, ((const flow_feature_values *)b)->name);
}

void flow_example_encode(flow_feature_values *features, int count, unsigned char *to)
{
  qsort(features, (size_t)count, sizeof *features, compare_names);
  to = write_delimited(to, 1, features_bytes(features, count));
  for (int i = 0; i < count; i++) to = write_entry(to, &features[i]);
}
