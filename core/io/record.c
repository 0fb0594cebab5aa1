/* record.c: TFRecord files (TensorFlow: tsl/lib/io/record_writer.h): a checked reader over a sliding window, a writer.
 *
 * The window holds bytes that were read and not delivered. `fetch` makes it hold one whole record, flow_record_next
 * gives out a pointer into it and moves on. Only the next call may move the bytes, which is why a delivered record is
 * valid until then. All failures leave `begin` and `offset` where they were, so that the message names the damaged
 * record and a second call fails at the same place. */
#include "io/record.h"

#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"
#include "io/crc32c.h"

/* WINDOW_BYTES: what is read at a time; a longer record makes the window grow. */
enum { WINDOW_BYTES = 1 << 18, DEFLATE_BUFFER = 1 << 16, HEADER_BYTES = 12, FOOTER_BYTES = 4 };

/* The names of tf.data; NULL and "" mean no compression. */
flow_status flow_record_compression(const char *name, flow_coding *coding)
{
  *coding = FLOW_PLAIN;
  if (!name || !*name) return FLOW_OK;
  if (strcmp(name, "GZIP") == 0) *coding = FLOW_GZIP;
  else if (strcmp(name, "ZLIB") == 0) *coding = FLOW_ZLIB;
  else return flow_fail(FLOW_INVALID_ARGUMENT, "compression_type is \"\", \"GZIP\" or \"ZLIB\", found \"%.40s\"", name);
  return FLOW_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------ */

/* From byte `offset` of the file, or of what it inflates to, on. most: the longest record that is accepted. An offset
 * past the end leaves no bytes, which is a file without records. On failure the reader is closed. */
static flow_status open_range(const char *path, uint64_t offset, flow_coding coding, uint64_t most, flow_record_reader *reader)
{
  *reader = (flow_record_reader){ .offset = offset, .most = most };
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a TFRecord file is missing");
  reader->path = flow_duplicate_text(path);
  flow_status status = reader->path ? flow_source_open(reader->path, &reader->source) : FLOW_OUT_OF_MEMORY;
  uint64_t bytes = offset <= reader->source.file_bytes ? reader->source.file_bytes - offset : 0;
  if (status == FLOW_OK) status = flow_source_range(&reader->source, offset, bytes, coding);
  if (status != FLOW_OK) flow_record_close(reader);
  return status;
}

flow_status flow_record_open(const char *path, flow_coding coding, flow_record_reader *reader)
{
  return open_range(path, 0, coding, UINT64_MAX, reader);
}

flow_status flow_record_open_at(const char *path, uint64_t offset, uint64_t most, flow_record_reader *reader)
{
  return open_range(path, offset, FLOW_PLAIN, most, reader);
}

void flow_record_close(flow_record_reader *reader)
{
  flow_source_close(&reader->source);
  flow_free(reader->window);
  flow_free(reader->path);
  *reader = (flow_record_reader){ 0 };
}

static flow_status fail_record(const flow_record_reader *reader, const char *what)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s: the record at byte %.0f%s is damaged: %s", reader->path, (double)reader->offset,
                   reader->source.coding == FLOW_PLAIN ? "" : " of the inflated data", what);
}

/* Moves what the window holds to its start, in a block of `capacity` bytes. A window that is large enough keeps its
 * block. On failure it is unchanged. */
static flow_status resize_window(flow_record_reader *reader, size_t capacity)
{
  size_t held = reader->end - reader->begin;
  if (capacity > reader->capacity) {
    void *window;
    FLOW_TRY(flow_alloc(capacity, &window));
    if (held > 0) memcpy(window, reader->window + reader->begin, held);
    flow_free(reader->window);
    reader->window = window;
    reader->capacity = capacity;
  } else if (reader->begin > 0) {
    memmove(reader->window, reader->window + reader->begin, held);
  }
  reader->begin = 0;
  reader->end = held;
  return FLOW_OK;
}

/* Reads until the window holds `wanted` bytes, or the stream ends: *held says how many it holds. The block doubles at most
 * when it is full of bytes that have really been read. */
static flow_status fill(flow_record_reader *reader, uint64_t wanted, uint64_t *held)
{
  *held = reader->end - reader->begin;
  while (*held < wanted) {
    uint64_t most = flow_source_most(&reader->source), capacity = WINDOW_BYTES;
    if (most == 0) return FLOW_OK;
    if (most > UINT64_MAX - *held) most = UINT64_MAX - *held;
    while (capacity < wanted && capacity < 2 * *held) capacity *= 2;
    if (capacity > *held + most) capacity = *held + most;
    FLOW_TRY(resize_window(reader, (size_t)capacity));
    uint64_t got;
    FLOW_TRY(flow_source_read_some(&reader->source, reader->window + reader->end, reader->capacity - reader->end, &got));
    reader->end += (size_t)got;
    *held += got;
    if (got == 0) return FLOW_OK;
  }
  return FLOW_OK;
}

/* The length of the next record, whose length, bytes and checksums then are in the window; *ended: there is none. The
 * two sums cannot overflow: *length was compared with what the file can still give, which is less than 2^64 - 16. */
static flow_status fetch(flow_record_reader *reader, uint64_t *length, int *ended)
{
  uint64_t held;
  *length = 0;
  FLOW_TRY(fill(reader, HEADER_BYTES, &held));
  *ended = held == 0;
  if (*ended) return flow_source_expect_end(&reader->source);      /* a compressed stream must say itself that it ends */
  if (held < HEADER_BYTES) return fail_record(reader, "the file ends inside its length");
  const unsigned char *header = reader->window + reader->begin;
  if (flow_crc32c_masked(header, 8) != flow_little_endian(header + 8, 4)) {
    return fail_record(reader, reader->offset == 0 ? "its length has a wrong checksum; is this a TFRecord file of that compression_type?"
                                                   : "its length has a wrong checksum");
  }
  *length = flow_little_endian(header, 8);
  uint64_t most = flow_source_most(&reader->source), available = held > UINT64_MAX - most ? UINT64_MAX : held + most;
  if (available < HEADER_BYTES + FOOTER_BYTES || *length > available - HEADER_BYTES - FOOTER_BYTES) {
    return fail_record(reader, "its length is more than the file holds");
  }
  if (*length > reader->most) return fail_record(reader, "its length is more than such a record may have");
  FLOW_TRY(fill(reader, HEADER_BYTES + *length + FOOTER_BYTES, &held));
  if (held < HEADER_BYTES + *length + FOOTER_BYTES) return fail_record(reader, "the file ends inside its bytes");
  return FLOW_OK;
}

/* The record in front of the window was delivered or passed over. */
static void advance(flow_record_reader *reader, uint64_t length)
{
  reader->begin += HEADER_BYTES + (size_t)length + FOOTER_BYTES;
  reader->offset += HEADER_BYTES + length + FOOTER_BYTES;
}

/* *bytes points into the window and is valid until the next call; NULL with FLOW_OK is the end of the file. */
flow_status flow_record_next(flow_record_reader *reader, const unsigned char **bytes, uint64_t *count)
{
  int ended;
  *bytes = NULL;
  *count = 0;
  uint64_t length;
  FLOW_TRY(fetch(reader, &length, &ended));
  if (ended) return FLOW_OK;
  const unsigned char *content = reader->window + reader->begin + HEADER_BYTES;
  if (flow_crc32c_masked(content, (size_t)length) != flow_little_endian(content + length, 4)) {
    return fail_record(reader, "its bytes have a wrong checksum");
  }
  *bytes = content;
  *count = length;
  advance(reader, length);
  return FLOW_OK;
}

/* As flow_record_next, but the checksum of the record's bytes is not computed. */
flow_status flow_record_skip(flow_record_reader *reader, int *skipped)
{
  int ended = 1;
  uint64_t length;
  *skipped = 0;
  FLOW_TRY(fetch(reader, &length, &ended));
  if (!ended) advance(reader, length);
  *skipped = !ended;
  return FLOW_OK;
}

/* ---- writing ------------------------------------------------------------------------------------------------------------------- */

/* Sets `coding` last: only then stop_deflating has something to end. 9 is the memory level, deflate's highest;
 * TensorFlow's writer has the same. */
static flow_status start_deflating(flow_record_sink *sink, flow_coding coding)
{
  void *buffer;
  FLOW_TRY(flow_alloc(DEFLATE_BUFFER, &buffer));
  sink->deflater = flow_zlib_stream();
  if (deflateInit2(&sink->deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED, flow_coding_window(coding), 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    flow_free(buffer);
    return FLOW_OUT_OF_MEMORY; /* flow_alloc has set the message */
  }
  sink->buffer = buffer;
  sink->coding = coding;
  return FLOW_OK;
}

static void stop_deflating(flow_record_sink *sink)
{
  if (sink->coding != FLOW_PLAIN) deflateEnd(&sink->deflater);
  flow_free(sink->buffer);
  sink->buffer = NULL;
  sink->coding = FLOW_PLAIN;
}

/* Brings `count` bytes into the file, through the deflater if there is one; flush: Z_NO_FLUSH, or Z_FINISH at the end. zlib takes at
 * most 32 bits of input at a time, hence the pieces of 1 GB. */
static flow_status put(flow_record_sink *sink, const void *bytes, uint64_t count, int flush)
{
  if (sink->coding == FLOW_PLAIN) return flow_sink_write(&sink->sink, bytes, count);
  z_stream *deflater = &sink->deflater;
  const unsigned char *next = bytes;
  do {
    uint64_t piece = count < (1u << 30) ? count : 1u << 30;
    deflater->next_in = (Bytef *)(uintptr_t)next;
    deflater->avail_in = (uInt)piece;
    next += piece;
    count -= piece;
    do {
      deflater->next_out = sink->buffer;
      deflater->avail_out = DEFLATE_BUFFER;
      deflate(deflater, count == 0 ? flush : Z_NO_FLUSH);              /* cannot fail: the stream is sound and has room */
      FLOW_TRY(flow_sink_write(&sink->sink, sink->buffer, DEFLATE_BUFFER - deflater->avail_out));
    } while (deflater->avail_out == 0);
  } while (count > 0);
  return FLOW_OK;
}

/* On failure nothing is open. */
flow_status flow_record_create(const char *path, flow_coding coding, flow_record_sink *sink)
{
  *sink = (flow_record_sink){ .coding = FLOW_PLAIN };
  flow_status status = flow_sink_open(path, &sink->sink);
  if (status == FLOW_OK && coding != FLOW_PLAIN) status = start_deflating(sink, coding);
  if (status != FLOW_OK) flow_record_discard(sink);
  return status;
}

/* TFRecord's frame: length (8 bytes), masked CRC-32C of the length, the bytes, masked CRC-32C of the bytes. */
flow_status flow_record_append(flow_record_sink *sink, const void *bytes, uint64_t count)
{
  unsigned char header[HEADER_BYTES], footer[FOOTER_BYTES];
  flow_put_little_endian(header, count, 8);
  flow_put_little_endian(header + 8, flow_crc32c_masked(header, 8), 4);
  flow_put_little_endian(footer, flow_crc32c_masked(bytes, (size_t)count), 4);
  FLOW_TRY(put(sink, header, sizeof header, Z_NO_FLUSH));
  if (count > 0) FLOW_TRY(put(sink, bytes, count, Z_NO_FLUSH));
  return put(sink, footer, sizeof footer, Z_NO_FLUSH);
}

/* A compressed file gets the end of its stream first: without it readers take it for cut off. */
flow_status flow_record_commit(flow_record_sink *sink)
{
  flow_status status = put(sink, NULL, 0, Z_FINISH);
  if (status == FLOW_OK) status = flow_sink_commit(&sink->sink);
  flow_record_discard(sink);
  return status;
}

void flow_record_discard(flow_record_sink *sink)
{
  stop_deflating(sink);
  flow_sink_discard(&sink->sink);
}
