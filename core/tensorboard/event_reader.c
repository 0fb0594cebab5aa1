/* event_reader.c: see event_reader.h. Messages are walked through field by field (io/protobuf.h) each time that something of them is
 * asked, so that nothing has to be kept: a flow_bytes is a pair of pointers into the record. Any bytes give an answer; no length is
 * believed before it was compared with what is there. */
#include "tensorboard/event_reader.h"

#include <limits.h>
#include <string.h>
#include "io/protobuf.h"

/* Field numbers and values of the messages. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_SUMMARY = 5, SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_NUMBER = 2, VALUE_IMAGE = 4, VALUE_HISTOGRAM = 5, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, IMAGE_ENCODED = 4 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_FLOATS = 5, TENSOR_DOUBLES = 6, TENSOR_INTEGERS = 7,
       TENSOR_STRINGS = 8, TENSOR_LONGS = 10, SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_INT32 = 3, DT_INT64 = 9 };
enum { HISTOGRAM_MIN = 1, HISTOGRAM_MAX = 2, HISTOGRAM_LIMITS = 6, HISTOGRAM_COUNTS = 7 };
enum { PICTURE_SIZES = 2 };      /* the texts before the files of pictures: width and height */

/* Bits of a field as the number that they are. */
static float float_of(uint64_t bits)
{
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}

/* The wire format has the bits of an IEEE double. */
static double double_of(uint64_t bits)
{
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* ---- events ------------------------------------------------------------------------------------------------------------------------- */

/* Fields that are not known are passed over, as protobuf demands; of fields that come twice the last one counts. `bytes` are borrowed
 * as long as the event and its summaries are used. */
int flow_event_read(const void *bytes, uint64_t count, flow_event *event)
{
  flow_bytes wire = flow_bytes_of(bytes, count);
  flow_wire_field field;
  *event = (flow_event){ .summary = flow_bytes_of(bytes, 0) };
  while (flow_bytes_left(&wire) > 0) {
    if (!flow_wire_next(&wire, &field)) return 0;
    if (field.number == EVENT_WALL_TIME && field.type == FLOW_WIRE_FIXED64) event->wall = double_of(field.value);
    if (field.number == EVENT_STEP && field.type == FLOW_WIRE_VARINT) event->step = (int64_t)field.value;
    if (field.number == EVENT_SUMMARY && field.type == FLOW_WIRE_DELIMITED) event->summary = field.content;
  }
  return 1;
}

/* The last field of that number in a message, which is the one that counts. 0: there is none, or the message is malformed. */
static int find_field(flow_bytes message, uint64_t number, int type, flow_wire_field *found)
{
  flow_wire_field field;
  int there = 0;
  while (flow_bytes_left(&message) > 0) {
    if (!flow_wire_next(&message, &field)) return 0;
    if (field.number != number || field.type != type) continue;
    *found = field;
    there = 1;
  }
  return there;
}

/* The name of the plugin that shows a summary says what it is. Writers may leave it out after the first record of a tag. names: in the
 * order of flow_summary_kind. */
static int kind_of_plugin(flow_bytes metadata)
{
  static const char *const names[] = { "", "scalars", "histograms", "images", "text", "graph_keras_model" };
  flow_wire_field plugin, name;
  if (!find_field(metadata, METADATA_PLUGIN, FLOW_WIRE_DELIMITED, &plugin)) return FLOW_SUMMARY_UNKNOWN;
  if (!find_field(plugin.content, PLUGIN_NAME, FLOW_WIRE_DELIMITED, &name)) return FLOW_SUMMARY_UNKNOWN;
  uint64_t length = flow_bytes_left(&name.content);
  for (int kind = FLOW_SUMMARY_SCALARS; kind <= FLOW_SUMMARY_GRAPHS; kind++) {
    if (length == strlen(names[kind]) && memcmp(name.content.next, names[kind], length) == 0) return kind;
  }
  return FLOW_SUMMARY_UNKNOWN;
}

/* kind UNKNOWN leaves what metadata have said before. */
static void set_content(flow_summary *summary, int form, int kind, flow_bytes content)
{
  summary->form = form;
  summary->content = content;
  if (kind != FLOW_SUMMARY_UNKNOWN) summary->kind = kind;
}

/* A value has one content, in whichever of the forms that TensorFlow ever wrote. 0: malformed. */
static int read_value(flow_bytes value, flow_summary *summary)
{
  flow_wire_field field;
  *summary = (flow_summary){ .tag = flow_bytes_of(value.next, 0), .content = flow_bytes_of(value.next, 0) };
  while (flow_bytes_left(&value) > 0) {
    if (!flow_wire_next(&value, &field)) return 0;
    int is_message = field.type == FLOW_WIRE_DELIMITED;
    if (field.number == VALUE_NUMBER && field.type == FLOW_WIRE_FIXED32) {
      set_content(summary, FLOW_FORM_NUMBER, FLOW_SUMMARY_SCALARS, summary->content);
      summary->number = float_of(field.value);
    }
    if (field.number == VALUE_TAG && is_message) summary->tag = field.content;
    if (field.number == VALUE_IMAGE && is_message) set_content(summary, FLOW_FORM_IMAGE, FLOW_SUMMARY_PICTURES, field.content);
    if (field.number == VALUE_HISTOGRAM && is_message) set_content(summary, FLOW_FORM_HISTOGRAM, FLOW_SUMMARY_HISTOGRAMS, field.content);
    if (field.number == VALUE_TENSOR && is_message) set_content(summary, FLOW_FORM_TENSOR, FLOW_SUMMARY_UNKNOWN, field.content);
    int says_kind = field.number == VALUE_METADATA && is_message && summary->kind == FLOW_SUMMARY_UNKNOWN;
    if (says_kind) summary->kind = kind_of_plugin(field.content);
  }
  return 1;
}

/* Values without a tag or without a content are passed over. After the end it stays at the end. */
int flow_event_next(flow_event *event, flow_summary *summary)
{
  flow_wire_field field;
  while (flow_bytes_left(&event->summary) > 0) {
    if (!flow_wire_next(&event->summary, &field)) break;
    if (field.number != SUMMARY_VALUE || field.type != FLOW_WIRE_DELIMITED) continue;
    if (!read_value(field.content, summary)) break;
    if (flow_bytes_left(&summary->tag) > 0 && summary->form != FLOW_FORM_NONE) return 1;
  }
  event->summary.next = event->summary.end;
  return 0;
}

/* ---- numbers of tensors ------------------------------------------------------------------------------------------------------------- */

/* What is read into `to`: at most `most`, while count goes on. */
typedef struct numbers { double *to; int most, count; } numbers;

/* Counts on beyond the room, so that the caller sees that there were too many. */
static void add_number(numbers *into, int dtype, uint64_t bits)
{
  double value = dtype == DT_FLOAT ? float_of(bits) : dtype == DT_DOUBLE ? double_of(bits)
               : dtype == DT_INT32 ? (int32_t)(uint32_t)bits : (double)(int64_t)bits;
  if (into->count < into->most) into->to[into->count] = value;
  if (into->count < INT_MAX) into->count++;
}

/* Bytes at the end that are too few for a number are ignored. */
static void add_fixed(numbers *into, int dtype, int width, flow_bytes bytes)
{
  uint64_t bits;
  while (flow_bytes_number(&bytes, width, &bits)) add_number(into, dtype, bits);
}

/* Numbers come one by one, each with its tag, or packed as one field of bytes; old writers do the former. */
static void add_field(numbers *into, int dtype, const flow_wire_field *field)
{
  int is_real = dtype == DT_FLOAT || dtype == DT_DOUBLE;
  flow_bytes packed = field->content;
  uint64_t bits;
  if (field->type == FLOW_WIRE_VARINT || field->type == FLOW_WIRE_FIXED32 || field->type == FLOW_WIRE_FIXED64) {
    add_number(into, dtype, field->value);
  } else if (field->type == FLOW_WIRE_DELIMITED && is_real) {
    add_fixed(into, dtype, dtype == DT_FLOAT ? 4 : 8, packed);
  } else if (field->type == FLOW_WIRE_DELIMITED) {
    while (flow_bytes_left(&packed) > 0 && flow_wire_varint(&packed, &bits)) add_number(into, dtype, bits);
  }
}

/* Elements of a shape, and its first and last dimension; -1: more than INT_MAX, or malformed. */
static int read_shape(flow_bytes shape, int64_t *first, int64_t *last, int *rank)
{
  flow_wire_field dim, size;
  int64_t elements = 1;
  *rank = 0;
  while (flow_bytes_left(&shape) > 0) {
    if (!flow_wire_next(&shape, &dim)) return -1;
    if (dim.number != SHAPE_DIM || dim.type != FLOW_WIRE_DELIMITED) continue;
    *last = find_field(dim.content, DIM_SIZE, FLOW_WIRE_VARINT, &size) ? (int64_t)size.value : 0;
    if ((*rank)++ == 0) *first = *last;
    if (*last < 0 || *last > INT_MAX || *rank > 16) return -1;
    elements *= *last;
    if (elements > INT_MAX) return -1;
  }
  return (int)elements;
}

/* The numbers of a tensor: how many its shape says, -1 if they are not numbers or more than most. Where the message has fewer, the last
 * one stands for the rest (tensorflow/core/framework/tensor.proto). *first and *last are set where the rank is not 0. More numbers than
 * the shape says are read over. */
static int read_numbers(flow_bytes tensor, double *to, int most, int64_t *first, int64_t *last, int *rank)
{
  flow_wire_field field, shape;
  numbers found = { to, most, 0 };
  int dtype = find_field(tensor, TENSOR_DTYPE, FLOW_WIRE_VARINT, &field) ? (int)(field.value & 0xff) : 0;
  int wanted = dtype == DT_FLOAT ? TENSOR_FLOATS : dtype == DT_DOUBLE ? TENSOR_DOUBLES : dtype == DT_INT32 ? TENSOR_INTEGERS
             : dtype == DT_INT64 ? TENSOR_LONGS : -1;
  int elements = 1;
  *rank = 0;
  if (wanted < 0) return -1;
  if (find_field(tensor, TENSOR_SHAPE, FLOW_WIRE_DELIMITED, &shape)) elements = read_shape(shape.content, first, last, rank);
  if (elements < 0 || elements > most) return -1;
  while (flow_bytes_left(&tensor) > 0) {
    if (!flow_wire_next(&tensor, &field)) return -1;
    if (field.number == TENSOR_CONTENT && field.type == FLOW_WIRE_DELIMITED) {
      add_fixed(&found, dtype, dtype == DT_FLOAT || dtype == DT_INT32 ? 4 : 8, field.content);
    } else if (field.number == (uint64_t)wanted) {
      add_field(&found, dtype, &field);
    }
  }
  for (int i = found.count; i < elements; i++) to[i] = i > 0 ? to[i - 1] : 0;
  return elements;
}

/* A tensor of one element counts, whatever its rank is. */
int flow_summary_number(const flow_summary *summary, double *number)
{
  int64_t first, last;
  int rank;
  if (summary->form == FLOW_FORM_NUMBER) *number = summary->number;
  if (summary->form == FLOW_FORM_NUMBER) return 1;
  return summary->form == FLOW_FORM_TENSOR && read_numbers(summary->content, number, 1, &first, &last, &rank) == 1;
}

/* ---- histograms --------------------------------------------------------------------------------------------------------------------- */

/* TensorFlow 1 gives upper limits and counts; the outermost limits are the largest numbers there are, so min and max take their place.
 * rows: room for FLOW_SUMMARY_ROOM numbers, of which the last two fifths hold limits and counts meanwhile. Buckets without a count are
 * left out. */
static int read_old_histogram(flow_bytes histogram, double *rows)
{
  double *limits = rows + 3 * FLOW_SUMMARY_BUCKETS, *counts = limits + FLOW_SUMMARY_BUCKETS, low = 0, high = 0;
  numbers upper = { limits, FLOW_SUMMARY_BUCKETS, 0 }, inside = { counts, FLOW_SUMMARY_BUCKETS, 0 };
  flow_wire_field field;
  while (flow_bytes_left(&histogram) > 0) {
    if (!flow_wire_next(&histogram, &field)) return -1;
    if (field.number == HISTOGRAM_MIN && field.type == FLOW_WIRE_FIXED64) low = double_of(field.value);
    if (field.number == HISTOGRAM_MAX && field.type == FLOW_WIRE_FIXED64) high = double_of(field.value);
    if (field.number == HISTOGRAM_LIMITS) add_field(&upper, DT_DOUBLE, &field);
    if (field.number == HISTOGRAM_COUNTS) add_field(&inside, DT_DOUBLE, &field);
  }
  if (upper.count != inside.count || upper.count > FLOW_SUMMARY_BUCKETS) return -1;
  int count = 0;
  for (int i = 0; i < upper.count; i++) {
    if (!(counts[i] > 0)) continue;
    double left = i > 0 && limits[i - 1] > low ? limits[i - 1] : low, right = limits[i] < high ? limits[i] : high;
    rows[3 * count] = left;
    rows[3 * count + 1] = right;
    rows[3 * count++ + 2] = counts[i];
  }
  return count;
}

/* TensorFlow 2 writes a tensor {buckets, 3}. */
int flow_summary_histogram(const flow_summary *summary, double *rows)
{
  int64_t first = 0, last = 0;
  int rank;
  if (summary->form == FLOW_FORM_HISTOGRAM) return read_old_histogram(summary->content, rows);
  if (summary->form != FLOW_FORM_TENSOR) return -1;
  int count = read_numbers(summary->content, rows, 3 * FLOW_SUMMARY_BUCKETS, &first, &last, &rank);
  return count >= 0 && rank == 2 && last == 3 ? (int)first : -1;
}

/* ---- pictures and texts ------------------------------------------------------------------------------------------------------------- */

/* The text at a place from 0 of a tensor's texts; *count, unless NULL: how many there are. */
static flow_bytes find_text(flow_bytes tensor, int index, int *count)
{
  flow_wire_field field;
  flow_bytes found = flow_bytes_of(tensor.next, 0);
  int at = 0;
  while (flow_bytes_left(&tensor) > 0 && flow_wire_next(&tensor, &field)) {
    if (field.number != TENSOR_STRINGS || field.type != FLOW_WIRE_DELIMITED) continue;
    if (at == index) found = field.content;
    if (at < INT_MAX) at++;
  }
  if (count) *count = at;
  return found;
}

/* The first two texts of a tensor are the sizes. */
int flow_summary_pictures(const flow_summary *summary)
{
  int count = 0;
  if (summary->form == FLOW_FORM_IMAGE) return 1;
  if (summary->form == FLOW_FORM_TENSOR) find_text(summary->content, 0, &count);
  return count > PICTURE_SIZES ? count - PICTURE_SIZES : 0;
}

flow_bytes flow_summary_picture(const flow_summary *summary, int index)
{
  flow_wire_field field;
  if (summary->form == FLOW_FORM_TENSOR && index >= 0) return find_text(summary->content, PICTURE_SIZES + index, NULL);
  if (summary->form == FLOW_FORM_IMAGE && index == 0 && find_field(summary->content, IMAGE_ENCODED, FLOW_WIRE_DELIMITED, &field)) {
    return field.content;
  }
  return flow_bytes_of(summary->content.next, 0);
}

/* The first text of the tensor; empty if there is none. */
flow_bytes flow_summary_text(const flow_summary *summary)
{
  return summary->form == FLOW_FORM_TENSOR ? find_text(summary->content, 0, NULL) : flow_bytes_of(summary->content.next, 0);
}
