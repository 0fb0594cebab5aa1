/* events.c: summaries into event files. A record is written as TFRecord has it: 8 bytes of length and their checksum, the message and
 * its checksum, all little-endian (tensorflow/core/lib/io/record_writer.cc); the checksum is a masked CRC-32C. The message is an Event
 * of tensorflow/core/util/event.proto with one Summary value (core/framework/summary.proto).
 *
 * Records are collected in memory and written together: when there are FLOW_EVENTS_KEPT of them, when the oldest is FLOW_EVENTS_SECONDS
 * old and another one comes, and by flush and close. A writer is used by one thread at a time. */
#include "tensorboard/events.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/bytes.h"
#include "io/size_limit.h"
#include "base/float_state.h"
#include "base/memory.h"
#include "image/image.h"
#include "io/crc32c.h"
#include "io/protobuf.h"
#include "tensor/tensor.h"

enum { WRITER_MAGIC = 0x464c4556, DEAD = 0x44454144 };

/* Field numbers and values of the messages. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SOURCE = 10, SOURCE_WRITER = 1 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_STRING = 8, SHAPE_DIM = 2, DIM_SIZE = 1 };
enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_STRING = 7 };

/* One file, open until close; the struct lives until release, so that a closed writer can say that it is closed. */
struct flow_event_writer {
  uint32_t       magic;
  int            descriptor;       /* -1: closed */
  char          *path;
  unsigned char *pending;          /* records that are not written yet */
  int            pending_bytes, pending_capacity, pending_events;
  double         pending_since;
};

/* ---- files ------------------------------------------------------------------------------------------------------------------- */

/* Seconds since 1970, which TensorBoard shows; it may jump. Ages of events are taken from flow_clock. */
static double wall_time(void)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Right after the call of the system that failed: errno is read. */
static flow_status fail_write(const flow_event_writer *writer)
{
  return flow_fail(FLOW_IO_ERROR, "cannot write %s: %s", writer->path, strerror(errno));
}

/* For every function of flow.h: a writer that can take events. */
static flow_status check(const flow_event_writer *writer)
{
  if (!writer) return flow_fail(FLOW_INVALID_ARGUMENT, "the writer of events is NULL");
  if (writer->magic != WRITER_MAGIC) return flow_fail(FLOW_INVALID_STATE, "the writer of events was released");
  if (writer->descriptor < 0) return flow_fail(FLOW_INVALID_STATE, "%s is closed: it takes no more events", writer->path);
  return FLOW_OK;
}

/* All that is pending, or nothing of it: a part that was written is cut off again, so that a later flush can write it all. Not followed
 * by fsync: an event that is lost with the machine costs a point of a curve. */
static flow_status write_held(flow_event_writer *writer)
{
  off_t before = lseek(writer->descriptor, 0, SEEK_END);
  for (int done = 0; done < writer->pending_bytes;) {
    ssize_t written = write(writer->descriptor, writer->pending + done, (size_t)(writer->pending_bytes - done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      flow_status status = fail_write(writer);
      int cut = before >= 0 ? ftruncate(writer->descriptor, before) : -1;
      (void)cut;                       /* the first failure is the one to tell */
      return status;
    }
    done += (int)written;
  }
  writer->pending_bytes = writer->pending_events = 0;
  return FLOW_OK;
}

static flow_status write_pending(flow_event_writer *writer)
{
  flow_size_limit held;
  flow_size_limit_hold(&held);
  flow_status status = write_held(writer);
  flow_size_limit_release(&held, status != FLOW_OK);
  return status;
}

/* Adds the message as a record; nothing is added when memory is out. */
static flow_status keep(flow_event_writer *writer, const flow_message *event)
{
  FLOW_TRY(event->status);
  uint64_t size = flow_message_size(event), total = size + 16 + (uint64_t)writer->pending_bytes;
  if (total > INT_MAX) return flow_fail(FLOW_UNSUPPORTED, "%s: an event of %.0f bytes is too large", writer->path, (double)size);
  FLOW_TRY(flow_grow(&writer->pending, 1, (int)total, &writer->pending_capacity));
  unsigned char *record = writer->pending + writer->pending_bytes;
  FLOW_TRY(flow_message_copy(event, record + 12));
  flow_put_little_endian(record, size, 8);
  flow_put_little_endian(record + 8, flow_crc32c_masked(record, 8), 4);
  flow_put_little_endian(record + 12 + size, flow_crc32c_masked(record + 12, (size_t)size), 4);
  if (writer->pending_events++ == 0) writer->pending_since = flow_clock();
  writer->pending_bytes = (int)total;
  return FLOW_OK;
}

/* Takes the message over, whatever comes of it. A failure to write keeps the event: it is tried again with the next. Its status may be
 * that of events before it, which were kept for the same write. */
static flow_status add(flow_event_writer *writer, flow_message *event)
{
  flow_status status = keep(writer, event);
  flow_message_release(event);
  if (status != FLOW_OK) return status;
  if (writer->pending_events < FLOW_EVENTS_KEPT && flow_clock() - writer->pending_since < FLOW_EVENTS_SECONDS) return FLOW_OK;
  return write_pending(writer);
}

/* Makes the file, with a name that no other writer takes. The name has the second, the host, the process and a number, as TensorFlow's:
 * TensorBoard sorts a run's files by it, and two writers in one second differ. O_APPEND: each write goes to the end. */
static flow_status create(flow_event_writer *writer, const char *folder, const char *suffix)
{
  static _Atomic unsigned writers;
  char host[256] = "localhost";
  if (gethostname(host, sizeof host) != 0) strcpy(host, "localhost");
  host[sizeof host - 1] = 0;
  size_t size = strlen(folder) + strlen(host) + strlen(suffix) + 100;
  void *path;
  FLOW_TRY(flow_alloc(size, &path));
  writer->path = path;
  snprintf(path, size, "%s/events.out.tfevents.%010.0f.%s.%ld.%u%s", folder, floor(wall_time()), host, (long)getpid(),
           atomic_fetch_add(&writers, 1u), suffix);
  writer->descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  return writer->descriptor < 0 ? fail_write(writer) : FLOW_OK;
}

/* The first event of every file, by which readers know how the others are written. Written at once, so that a reader finds a file of
 * events as soon as there is one. */
static flow_status write_version(flow_event_writer *writer)
{
  flow_message event = { 0 };
  flow_message_double(&event, EVENT_WALL_TIME, wall_time());
  flow_message_text(&event, EVENT_FILE_VERSION, "brain.Event:2");
  flow_message_open(&event, EVENT_SOURCE);
  flow_message_text(&event, SOURCE_WRITER, "flowlua.core.io.events");
  flow_message_close(&event);
  FLOW_TRY(add(writer, &event));
  return write_pending(writer);
}

/* The folder has to be there. A file that could not get its first record is taken away again. */
flow_status flow_event_writer_new(const char *folder, const char *suffix, flow_event_writer **out)
{
  void *block;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_event_writer_new: out is NULL");
  *out = NULL;
  if (!folder || !*folder) return flow_fail(FLOW_INVALID_ARGUMENT, "the folder of an event file is missing");
  if (!suffix) suffix = "";
  if (strchr(suffix, '/')) return flow_fail(FLOW_INVALID_ARGUMENT, "the suffix of an event file is a part of its name, got '%s'", suffix);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_event_writer), &block));
  flow_event_writer *writer = block;
  writer->magic = WRITER_MAGIC;
  writer->descriptor = -1;
  flow_status status = create(writer, folder, suffix);
  if (status == FLOW_OK) status = write_version(writer);
  if (status != FLOW_OK) {
    if (writer->descriptor >= 0) unlink(writer->path);
    writer->pending_bytes = 0;
    flow_event_writer_release(writer);
    return status;
  }
  *out = writer;
  return FLOW_OK;
}

/* Borrowed until the release; also of a writer that is closed. */
const char *flow_event_writer_path(const flow_event_writer *writer)
{
  return writer && writer->magic == WRITER_MAGIC ? writer->path : NULL;
}

/* After a failure everything is still pending, and a later flush may write it. */
flow_status flow_event_writer_flush(flow_event_writer *writer)
{
  FLOW_TRY(check(writer));
  return write_pending(writer);
}

/* Closes also where the last events could not be written, and says so: there is nothing more to try. */
flow_status flow_event_writer_close(flow_event_writer *writer)
{
  FLOW_TRY(check(writer));
  flow_status status = write_pending(writer);
  if (close(writer->descriptor) != 0 && status == FLOW_OK) status = fail_write(writer);
  writer->descriptor = -1;
  return status;
}

/* Writes and closes first, if that was not done; a failure of that is lost, since this function returns nothing. */
void flow_event_writer_release(flow_event_writer *writer)
{
  if (!writer || writer->magic != WRITER_MAGIC) return;
  if (writer->descriptor >= 0) flow_event_writer_close(writer);
  writer->magic = DEAD;
  flow_free(writer->pending);
  flow_free(writer->path);
  flow_free(writer);
}

/* ---- summaries ------------------------------------------------------------------------------------------------------------------ */

/* The plugin of TensorBoard that shows a value, and what it wants to know. */
typedef struct plugin { const char *name, *content; } plugin;

/* Begins an event with one summary value; its tensor's fields follow, then finish_value(). shape: of rank dimensions. */
static flow_status begin_value(flow_message *event, const flow_event_writer *writer, const char *tag, double step, int dtype, int rank,
                               const int64_t *shape)
{
  FLOW_TRY(check(writer));
  if (!tag || !*tag) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a summary needs a tag", writer->path);
  if (!(step >= -0x1p53 && step <= 0x1p53) || step != floor(step)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "summary '%s': a step is a whole number, got %g", tag, step);
  }
  flow_message_double(event, EVENT_WALL_TIME, wall_time());
  if (step != 0) flow_message_integer(event, EVENT_STEP, (int64_t)step);
  flow_message_open(event, EVENT_SUMMARY);
  flow_message_open(event, SUMMARY_VALUE);
  flow_message_text(event, VALUE_TAG, tag);
  flow_message_open(event, VALUE_TENSOR);
  flow_message_integer(event, TENSOR_DTYPE, dtype);
  flow_message_open(event, TENSOR_SHAPE);
  for (int i = 0; i < rank; i++) {
    flow_message_open(event, SHAPE_DIM);
    if (shape[i] != 0) flow_message_integer(event, DIM_SIZE, shape[i]);
    flow_message_close(event);
  }
  flow_message_close(event);
  return FLOW_OK;
}

/* Ends what begin_value opened, with the plugin that shows the value, and keeps the event. */
static flow_status finish_value(flow_event_writer *writer, flow_message *event, plugin of)
{
  flow_message_close(event);
  flow_message_open(event, VALUE_METADATA);
  flow_message_open(event, METADATA_PLUGIN);
  flow_message_text(event, PLUGIN_NAME, of.name);
  if (*of.content) flow_message_text(event, PLUGIN_CONTENT, of.content);
  flow_message_close(event);
  flow_message_close(event);
  flow_message_close(event);
  flow_message_close(event);
  return add(writer, event);
}

/* TensorFlow's scalars are float32, so that a value is rounded here. */
flow_status flow_event_writer_scalar(flow_event_writer *writer, const char *tag, double step, double value)
{
  FLOW_DEFAULT_FLOATS;
  flow_message event = { 0 };
  float narrow = (float)value;
  FLOW_TRY(begin_value(&event, writer, tag, step, DT_FLOAT, 0, NULL));
  flow_message_bytes(&event, TENSOR_CONTENT, &narrow, sizeof narrow);
  return finish_value(writer, &event, (plugin){ "scalars", "" });
}

/* A text of any bytes as a tensor of one string. */
static flow_status write_text(flow_event_writer *writer, const char *tag, double step, const void *text, double count, plugin of)
{
  flow_message event = { 0 };
  if (!(count >= 0 && count < INT_MAX) || (count > 0 && !text)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "summary '%s': a text of %g bytes cannot be written", tag ? tag : "", count);
  }
  FLOW_TRY(begin_value(&event, writer, tag, step, DT_STRING, 0, NULL));
  flow_message_bytes(&event, TENSOR_STRING, text, (uint64_t)count);
  return finish_value(writer, &event, of);
}

flow_status flow_event_writer_text(flow_event_writer *writer, const char *tag, double step, const char *text, double count)
{
  return write_text(writer, tag, step, text, count, (plugin){ "text", "" });
}

/* The plugin's content "1" is its version, which TensorBoard reads. */
flow_status flow_event_writer_keras_model(flow_event_writer *writer, const char *tag, double step, const char *json, double count)
{
  return write_text(writer, tag, step, json, count, (plugin){ "graph_keras_model", "1" });
}

/* ---- histograms ----------------------------------------------------------------------------------------------------------------- */

/* Two passes: the range, then the counts. The last edge is `most` itself, not a sum that was rounded. */
void flow_histogram(const double *values, int64_t count, int buckets, double *rows)
{
  double least = INFINITY, most = -INFINITY;
  int64_t finite = 0;
  for (int64_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    finite++;
    if (values[i] < least) least = values[i];
    if (values[i] > most) most = values[i];
  }
  memset(rows, 0, (size_t)buckets * 3 * sizeof *rows);
  if (finite == 0) return;
  /* A quarter of all numbers where their distance itself would not be a number; scaling by a power of two rounds no number of that size. */
  const double scale = isfinite(most - least) ? 1 : 0.25, low = least * scale, width = (most * scale - low) / buckets;
  for (int i = 0; i < buckets; i++) {
    rows[3 * i] = (low + width * i) / scale;
    rows[3 * i + 1] = i + 1 == buckets ? most : (low + width * (i + 1)) / scale;
  }
  if (!(width > 0)) {                  /* one value, or values so near that a bucket has no width */
    rows[3 * buckets - 1] = (double)finite;
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    if (!isfinite(values[i])) continue;
    double bucket = floor((values[i] * scale - low) / width);
    rows[3 * (int)(bucket < buckets - 1 ? bucket : buckets - 1) + 2] += 1;
  }
}

/* Of any dtype, layout and device: the elements are copied as float64 first. */
static flow_status histogram_rows(flow_tensor *tensor, int buckets, double *rows)
{
  flow_tensor *wide;
  int64_t shape[FLOW_MAX_RANK];
  int rank = flow_tensor_rank(tensor);
  for (int i = 0; i < rank; i++) shape[i] = (int64_t)flow_tensor_dim(tensor, i);
  FLOW_TRY(flow_tensor_new(FLOW_FLOAT64, rank, shape, &wide));
  flow_status status = flow_tensor_copy(wide, tensor);
  if (status == FLOW_OK) flow_histogram(flow_tensor_elements(wide), (int64_t)flow_tensor_size(wide), buckets, rows);
  flow_tensor_release(wide);
  return status;
}

/* rows: {least, most, count} of each bucket, which TensorBoard's plugin reads as {buckets, 3}. */
flow_status flow_event_writer_histogram(flow_event_writer *writer, const char *tag, double step, flow_tensor *tensor, int buckets)
{
  FLOW_DEFAULT_FLOATS;
  void *rows;
  flow_message event = { 0 };
  FLOW_TRY(check(writer));
  if (!tensor || flow_tensor_is_symbolic(tensor)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "summary '%s': a histogram needs a tensor with values", tag ? tag : "");
  }
  if (buckets < 1 || buckets > 1 << 20) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "summary '%s': a histogram has 1 to %d buckets, got %d", tag ? tag : "", 1 << 20, buckets);
  }
  FLOW_TRY(flow_alloc((size_t)buckets * 3 * sizeof(double), &rows));
  int64_t shape[2] = { buckets, 3 };
  flow_status status = histogram_rows(tensor, buckets, rows);
  if (status == FLOW_OK) status = begin_value(&event, writer, tag, step, DT_DOUBLE, 2, shape);
  if (status == FLOW_OK) {
    flow_message_bytes(&event, TENSOR_CONTENT, rows, (uint64_t)buckets * 3 * sizeof(double));
    status = finish_value(writer, &event, (plugin){ "histograms", "" });
  }
  flow_free(rows);
  return status;
}

/* ---- pictures ------------------------------------------------------------------------------------------------------------------- */

/* A PNG as it is written; the caller frees `bytes`. */
typedef struct growing { unsigned char *bytes; int count, capacity; } growing;

/* A flow_png_encode's receiver: a growing copy. */
static flow_status append(void *target, const void *bytes, size_t count)
{
  growing *to = target;
  if (count > (size_t)(INT_MAX - to->count)) return flow_fail(FLOW_UNSUPPORTED, "a picture of 2 GB cannot be written");
  FLOW_TRY(flow_grow(&to->bytes, 1, to->count + (int)count, &to->capacity));
  memcpy(to->bytes + to->count, bytes, count);
  to->count += (int)count;
  return FLOW_OK;
}

/* Adds the pictures' PNGs to the tensor's texts. One PNG is in memory at a time, besides the message. */
static flow_status add_pictures(flow_message *event, const flow_tensor *images, int count)
{
  int height = (int)flow_tensor_dim(images, 1), width = (int)flow_tensor_dim(images, 2), channels = (int)flow_tensor_dim(images, 3);
  unsigned char *pixels = flow_tensor_elements(images);
  for (int i = 0; i < count; i++) {
    growing png = { 0 };
    flow_picture picture = { .height = height, .width = width, .channels = channels };
    picture.pixels = pixels + (size_t)i * (size_t)height * (size_t)width * (size_t)channels;
    flow_status status = flow_png_encode(&picture, append, &png);
    if (status == FLOW_OK) flow_message_bytes(event, TENSOR_STRING, png.bytes, (uint64_t)png.count);
    flow_free(png.bytes);
    if (status != FLOW_OK) return status;
  }
  return FLOW_OK;
}

/* The tensor's texts are width, height, then the pictures, as TensorBoard's image plugin reads them. */
flow_status flow_event_writer_images(flow_event_writer *writer, const char *tag, double step, flow_tensor *images, int most)
{
  FLOW_DEFAULT_FLOATS;
  flow_message event = { 0 };
  char text[24];
  FLOW_TRY(check(writer));
  int fits = images && flow_tensor_dtype(images) == FLOW_UINT8 && flow_tensor_rank(images) == 4 && flow_tensor_is_contiguous(images) &&
             flow_tensor_elements(images) != NULL;
  double pixels = fits ? flow_tensor_dim(images, 1) * flow_tensor_dim(images, 2) : 0;
  double channels = fits ? flow_tensor_dim(images, 3) : 0;
  if (pixels < 1 || pixels > (double)FLOW_MOST_PIXELS || (channels != 1 && channels != 3 && channels != 4)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "summary '%s': pictures are a contiguous uint8 tensor {count, height, width, 1, 3 or 4} on "
                     "the host", tag ? tag : "");
  }
  int count = flow_tensor_dim(images, 0) < most ? (int)flow_tensor_dim(images, 0) : most;
  if (count < 0) count = 0;
  int64_t shape[1] = { count + 2 };
  FLOW_TRY(begin_value(&event, writer, tag, step, DT_STRING, 1, shape));
  for (int axis = 2; axis >= 1; axis--) {      /* width, height */
    snprintf(text, sizeof text, "%.0f", flow_tensor_dim(images, axis));
    flow_message_text(&event, TENSOR_STRING, text);
  }
  flow_status status = add_pictures(&event, images, count);
  if (status == FLOW_OK) return finish_value(writer, &event, (plugin){ "images", "" });
  flow_message_release(&event);
  return status;
}
