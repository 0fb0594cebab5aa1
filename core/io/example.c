/* example.c: tf.train.Example out of and into protobuf's wire format (protobuf: Encoding). */
#include "io/example.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, DELIMITED = 2, GROUP = 3, GROUP_END = 4, FIXED32 = 5 };      /* wire types */
enum { MOST_NESTED_GROUPS = 32 };

/* ---- fields --------------------------------------------------------------------------------------------------------------- */

typedef struct wire_field {
  uint64_t  number;
  int       type;
  uint64_t  value;        /* VARINT, FIXED32, FIXED64 */
  flow_wire content;      /* DELIMITED */
} wire_field;

static int has_more(const flow_wire *wire)
{
  return wire->next < wire->end;
}

/* The readers return 0 when the bytes end too early or are no protobuf. */
static int read_varint(flow_wire *wire, uint64_t *value)
{
  *value = 0;
  for (int shift = 0; shift < 70 && has_more(wire); shift += 7) {
    unsigned char byte = *wire->next++;
    if (shift < 63 || byte < 2) *value |= (uint64_t)(byte & 127) << shift;
    else *value |= (uint64_t)(byte & 1) << 63;                 /* bits beyond 64 are dropped, as protobuf does */
    if (!(byte & 128)) return 1;
  }
  return 0;
}

static int read_fixed(flow_wire *wire, int bytes, uint64_t *value)
{
  if (wire->end - wire->next < bytes) return 0;
  *value = 0;
  for (int i = 0; i < bytes; i++) *value |= (uint64_t)wire->next[i] << 8 * i;
  wire->next += bytes;
  return 1;
}

static int read_delimited(flow_wire *wire, flow_wire *content)
{
  uint64_t length;
  if (!read_varint(wire, &length) || length > (uint64_t)(wire->end - wire->next)) return 0;
  *content = (flow_wire){ wire->next, wire->next + length };
  wire->next += length;
  return 1;
}

static int read_simple_field(flow_wire *wire, wire_field *field)
{
  uint64_t key;
  if (!read_varint(wire, &key)) return 0;
  *field = (wire_field){ .number = key >> 3, .type = (int)(key & 7) };
  if (field->number == 0) return 0;
  switch (field->type) {
    case VARINT: return read_varint(wire, &field->value);
    case FIXED64: return read_fixed(wire, 8, &field->value);
    case FIXED32: return read_fixed(wire, 4, &field->value);
    case DELIMITED: return read_delimited(wire, &field->content);
    default: return field->type == GROUP || field->type == GROUP_END;
  }
}

/* One field; a group, which no Example has, is passed over with all that is in it. */
static int read_field(flow_wire *wire, wire_field *field)
{
  if (!read_simple_field(wire, field) || field->type == GROUP_END) return 0;
  if (field->type != GROUP) return 1;
  uint64_t open[MOST_NESTED_GROUPS] = { field->number };
  int depth = 1;
  while (depth > 0) {
    wire_field inner;
    if (!read_simple_field(wire, &inner)) return 0;
    if (inner.type == GROUP) {
      if (depth == MOST_NESTED_GROUPS) return 0;
      open[depth++] = inner.number;
    } else if (inner.type == GROUP_END) {
      if (inner.number != open[--depth]) return 0;
    }
  }
  return 1;
}

static flow_status fail_wire(void)
{
  return flow_fail(FLOW_CORRUPT_DATA, "the bytes are not a tf.train.Example: a field is cut off or malformed");
}

/* ---- entries --------------------------------------------------------------------------------------------------------------- */

flow_example_reader flow_example_reader_of(const void *bytes, uint64_t count)
{
  const unsigned char *first = bytes;
  return (flow_example_reader){ .example = { first, first + count }, .features = { first, first } };
}

/* Which list the Feature message holds. The last one counts; those of its kind right before it belong to it. */
static flow_status classify(flow_wire message, flow_feature *feature)
{
  feature->kind = FLOW_FEATURE_EMPTY;
  feature->content = message;
  while (has_more(&message)) {
    const unsigned char *start = message.next;
    wire_field field;
    if (!read_field(&message, &field)) return fail_wire();
    if (field.type != DELIMITED || field.number > FLOW_FEATURE_INTEGERS) continue;
    if ((uint64_t)feature->kind != field.number) feature->content.next = start;
    feature->kind = (flow_feature_kind)field.number;
  }
  return FLOW_OK;
}

static flow_status read_entry(flow_wire entry, flow_feature *feature)
{
  flow_wire message = { entry.end, entry.end };
  feature->name = message;
  while (has_more(&entry)) {
    wire_field field;
    if (!read_field(&entry, &field)) return fail_wire();
    if (field.type == DELIMITED && field.number == 1) feature->name = field.content;
    if (field.type == DELIMITED && field.number == 2) message = field.content;
  }
  return classify(message, feature);
}

flow_status flow_example_next(flow_example_reader *reader, flow_feature *feature, int *found)
{
  wire_field field;
  for (*found = 0; !*found;) {
    flow_wire *level = has_more(&reader->features) ? &reader->features : &reader->example;
    if (!has_more(level)) return FLOW_OK;
    if (!read_field(level, &field)) return fail_wire();
    if (field.type != DELIMITED || field.number != 1) continue;
    if (level == &reader->example) {
      reader->features = field.content;
    } else {
      FLOW_TRY(read_entry(field.content, feature));
      *found = 1;
    }
  }
  return FLOW_OK;
}

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

/* The next field 1 (value) of the lists of the feature's kind, or *found = 0. */
typedef struct value_reader { flow_wire lists, values; uint64_t kind; } value_reader;

static value_reader values_of(const flow_feature *feature)
{
  return (value_reader){ .lists = feature->content, .values = { feature->content.next, feature->content.next }, .kind = feature->kind };
}

static flow_status next_value(value_reader *reader, wire_field *field, int *found)
{
  for (*found = 0; !*found;) {
    int inside = has_more(&reader->values);
    flow_wire *level = inside ? &reader->values : &reader->lists;
    if (!has_more(level)) return FLOW_OK;
    if (!read_field(level, field)) return fail_wire();
    if (inside) *found = field->number == 1;
    else if (field->type == DELIMITED && field->number == reader->kind) reader->values = field->content;
  }
  return FLOW_OK;
}

static flow_status fail_list(void)
{
  return flow_fail(FLOW_CORRUPT_DATA, "the bytes are not a tf.train.Example: a list of numbers has a length that does not fit");
}

flow_status flow_feature_count(const flow_feature *feature, uint64_t *count)
{
  value_reader reader = values_of(feature);
  wire_field field;
  int found;
  *count = 0;
  for (;;) {
    FLOW_TRY(next_value(&reader, &field, &found));
    if (!found) return FLOW_OK;
    int unpacked = feature->kind == FLOW_FEATURE_FLOATS ? FIXED32 : feature->kind == FLOW_FEATURE_INTEGERS ? VARINT : DELIMITED;
    if (field.type == unpacked) {
      ++*count;
    } else if (field.type == DELIMITED && feature->kind == FLOW_FEATURE_FLOATS) {
      size_t bytes = (size_t)(field.content.end - field.content.next);
      if (bytes % 4 != 0) return fail_list();
      *count += bytes / 4;
    } else if (field.type == DELIMITED) {
      for (const unsigned char *byte = field.content.next; byte < field.content.end; byte++) *count += *byte < 128;
    }
  }
}

flow_status flow_feature_floats(const flow_feature *feature, float *to)
{
  value_reader reader = values_of(feature);
  wire_field field;
  int found;
  for (;;) {
    FLOW_TRY(next_value(&reader, &field, &found));
    if (!found) return FLOW_OK;
    if (field.type == FIXED32) {
      uint32_t bits = (uint32_t)field.value;
      memcpy(to++, &bits, sizeof bits);
    } else if (field.type == DELIMITED) {                      /* little-endian, as npy.c requires of the machine */
      size_t bytes = (size_t)(field.content.end - field.content.next);
      memcpy(to, field.content.next, bytes);
      to += bytes / 4;
    }
  }
}

flow_status flow_feature_integers(const flow_feature *feature, int64_t *to)
{
  value_reader reader = values_of(feature);
  wire_field field;
  int found;
  uint64_t value;
  for (;;) {
    FLOW_TRY(next_value(&reader, &field, &found));
    if (!found) return FLOW_OK;
    if (field.type == VARINT) *to++ = (int64_t)field.value;
    if (field.type != DELIMITED) continue;
    while (has_more(&field.content)) {
      if (!read_varint(&field.content, &value)) return fail_list();
      *to++ = (int64_t)value;
    }
  }
}

flow_status flow_feature_bytes(const flow_feature *feature, flow_wire *value)
{
  value_reader reader = values_of(feature);
  wire_field field;
  int found;
  do {
    FLOW_TRY(next_value(&reader, &field, &found));
    if (!found) return fail_list();
  } while (field.type != DELIMITED);
  *value = field.content;
  return FLOW_OK;
}

const char *flow_feature_kind_name(flow_feature_kind kind)
{
  static const char *const names[] = { "nothing", "bytes", "float32", "int64" };
  return names[kind];
}

/* ---- writing ----------------------------------------------------------------------------------------------------------------- */

static uint64_t varint_bytes(uint64_t value)
{
  uint64_t bytes = 1;
  for (; value >= 128; value >>= 7) bytes++;
  return bytes;
}

/* A field with a one-byte key and `content` bytes behind its length. */
static uint64_t delimited_bytes(uint64_t content)
{
  return 1 + varint_bytes(content) + content;
}

static unsigned char *write_varint(unsigned char *to, uint64_t value)
{
  for (; value >= 128; value >>= 7) *to++ = (unsigned char)(value | 128);
  *to++ = (unsigned char)value;
  return to;
}

static unsigned char *write_delimited(unsigned char *to, int number, uint64_t content)
{
  *to++ = (unsigned char)(number << 3 | DELIMITED);
  return write_varint(to, content);
}

/* Bytes of the packed numbers, or of all value fields of a bytes list. */
static uint64_t values_bytes(const flow_feature_values *feature)
{
  uint64_t bytes = 0;
  if (feature->kind == FLOW_FEATURE_FLOATS) return 4 * feature->count;
  for (uint64_t i = 0; i < feature->count; i++) {
    if (feature->kind == FLOW_FEATURE_INTEGERS) {
      bytes += varint_bytes((uint64_t)((const int64_t *)feature->values)[i]);
    } else {
      const flow_wire *value = (const flow_wire *)feature->values + i;
      bytes += delimited_bytes((uint64_t)(value->end - value->next));
    }
  }
  return bytes;
}

/* Bytes of the BytesList, FloatList or Int64List; of the Feature; of the map's entry. */
typedef struct sizes { uint64_t values, list, feature, entry; } sizes;

static sizes measure(const flow_feature_values *feature)
{
  sizes s = { .values = values_bytes(feature) };
  s.list = feature->kind == FLOW_FEATURE_BYTES || feature->count == 0 ? s.values : delimited_bytes(s.values);
  s.feature = delimited_bytes(s.list);
  s.entry = delimited_bytes(strlen(feature->name)) + delimited_bytes(s.feature);
  return s;
}

static unsigned char *write_values(unsigned char *to, const flow_feature_values *feature)
{
  if (feature->kind == FLOW_FEATURE_FLOATS && feature->count > 0) memcpy(to, feature->values, 4 * feature->count);
  if (feature->kind == FLOW_FEATURE_FLOATS) return to + 4 * feature->count;
  for (uint64_t i = 0; i < feature->count; i++) {
    if (feature->kind == FLOW_FEATURE_INTEGERS) {
      to = write_varint(to, (uint64_t)((const int64_t *)feature->values)[i]);
    } else {
      const flow_wire *value = (const flow_wire *)feature->values + i;
      size_t bytes = (size_t)(value->end - value->next);
      to = write_delimited(to, 1, bytes);
      if (bytes > 0) memcpy(to, value->next, bytes);
      to += bytes;
    }
  }
  return to;
}

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
