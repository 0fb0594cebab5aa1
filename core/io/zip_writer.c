/* zip_writer.c: writing zip archives: stored members whose sizes are known before, whose checksums are put in
 * afterwards.
 *
 * For each member: flow_zip_start, then exactly the announced bytes into writer->sink, then flow_zip_finish; at the end
 * flow_zip_commit, which writes the directory. After any failure flow_zip_discard. The bytes of an archive depend on
 * names, contents and alignment alone: there are no times and no owners in it. */
#include "io/zip.h"

#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"

enum {
  LOCAL_BYTES = 30, CRC_PLACE = 14, MOST_HEADER = 46 + 32, MOST_PADDING = 4096 + 4,
  UTF8_NAME = 1 << 11, UNIX = 3 << 8, VERSION = 20, VERSION_ZIP64 = 45,
  DATE = 1 << 5 | 1,                   /* 1980-01-01 */
  PADDING_TAG = 0xd935,                /* an extra field that only fills, as Android's zipalign writes it */
};
static const uint32_t MODE = 0100644u << 16;    /* a regular file that its owner may write */

/* A header under construction: little-endian numbers one after the other. */
typedef struct header { unsigned char bytes[MOST_HEADER]; int count; } header;

/* Headers are at most MOST_HEADER bytes: the longest are the entry of the directory (46) and the zip64 end record with
 * its locator (76). */
static void put(header *to, uint64_t value, int bytes)
{
  flow_put_little_endian(to->bytes + to->count, value, bytes);
  to->count += bytes;
}

/* 2^32 - 1 itself is the mark of a number that is elsewhere, so it counts as too large, too. */
static int is_wide(uint64_t value) { return value >= UINT32_MAX; }
static uint64_t narrow(uint64_t value) { return is_wide(value) ? UINT32_MAX : value; }

/* What the local header and the directory say alike. */
static void put_facts(header *to, const flow_zip_record *record, int zip64, uint64_t name_bytes, uint64_t extra_bytes)
{
  unsigned flags = 0;
  for (const char *c = record->name; *c; c++) {
    if ((unsigned char)*c >= 0x80) flags = UTF8_NAME;
  }
  put(to, zip64 ? VERSION_ZIP64 : VERSION, 2);
  put(to, flags, 2);
  put(to, FLOW_ZIP_STORED, 2);
  put(to, 0, 2);
  put(to, DATE, 2);
  put(to, record->crc, 4);
  put(to, narrow(record->bytes), 4);
  put(to, narrow(record->bytes), 4);
  put(to, name_bytes, 2);
  put(to, extra_bytes, 2);
}

flow_status flow_zip_create(const char *path, flow_zip_writer *writer)
{
  *writer = (flow_zip_writer){ 0 };
  return flow_sink_open(path, &writer->sink);
}

/* Bytes of an extra field that moves `place` to a multiple of align: none, or at least the 4 of its own header. */
static unsigned padding_for(uint64_t place, unsigned align)
{
  unsigned over = align > 0 ? (unsigned)(place % align) : 0;
  if (over == 0) return 0;
  unsigned bytes = align - over;
  while (bytes < 4) bytes += align;
  return bytes;
}

/* The header before a member (APPNOTE 4.3.7), with sizes of 64 bits where they need it, and an extra field of zeros such that the
 * contents begin at a multiple of `align`: then they can be mapped. */
static flow_status write_local(flow_zip_writer *writer, const flow_zip_record *record, unsigned align)
{
  unsigned char padding[MOST_PADDING] = { 0 };
  header local = { .count = 0 };
  uint64_t name_bytes = strlen(record->name);
  int zip64 = is_wide(record->bytes);
  unsigned wide_bytes = zip64 ? 20 : 0, filled = padding_for(record->header + LOCAL_BYTES + name_bytes + wide_bytes, align);
  put(&local, 0x04034b50, 4);
  put_facts(&local, record, zip64, name_bytes, wide_bytes + filled);
  FLOW_TRY(flow_sink_write(&writer->sink, local.bytes, (uint64_t)local.count));
  FLOW_TRY(flow_sink_write(&writer->sink, record->name, name_bytes));
  if (zip64) {
    header wide = { .count = 0 };
    put(&wide, 1, 2);
    put(&wide, 16, 2);
    put(&wide, record->bytes, 8);
    put(&wide, record->bytes, 8);
    FLOW_TRY(flow_sink_write(&writer->sink, wide.bytes, (uint64_t)wide.count));
  }
  if (filled == 0) return FLOW_OK;
  flow_put_little_endian(flow_put_little_endian(padding, PADDING_TAG, 2), filled - 4, 2);
  return flow_sink_write(&writer->sink, padding, filled);
}

/* The local header is written with a checksum of 0, which flow_zip_finish puts in. FLOW_INVALID_ARGUMENT for a name that is there. */
flow_status flow_zip_start(flow_zip_writer *writer, const char *name, uint64_t bytes, unsigned align)
{
  FLOW_TRY(flow_zip_check_name(name));
  for (int i = 0; i < writer->count; i++) {
    if (strcmp(writer->records[i].name, name) == 0) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s has a member %s already", writer->sink.path, name);
    }
  }
  FLOW_TRY(flow_grow(&writer->records, sizeof *writer->records, writer->count + 1, &writer->capacity));
  flow_zip_record record = { .name = flow_duplicate_text(name), .bytes = bytes, .header = writer->sink.written };
  if (!record.name) return FLOW_OUT_OF_MEMORY;
  writer->records[writer->count++] = record;
  FLOW_TRY(write_local(writer, &record, align));
  writer->content = writer->sink.written;
  writer->sink.crc = 0;
  writer->sink.wants_crc = 1;
  return FLOW_OK;
}

/* FLOW_INTERNAL if more or fewer bytes were written than announced: the local header, which is in the file already,
 * would lie. */
flow_status flow_zip_finish(flow_zip_writer *writer)
{
  flow_zip_record *record = &writer->records[writer->count - 1];
  header crc = { .count = 0 };
  writer->sink.wants_crc = 0;
  if (writer->sink.written - writer->content != record->bytes) {
    return flow_fail(FLOW_INTERNAL, "%s: %.0f bytes were announced for %s, %.0f were written", writer->sink.path, (double)record->bytes,
                     record->name, (double)(writer->sink.written - writer->content));
  }
  record->crc = writer->sink.crc;
  put(&crc, record->crc, 4);
  return flow_sink_patch(&writer->sink, record->header + CRC_PLACE, crc.bytes, 4);
}

/* The member's entry in the directory at the end (APPNOTE 4.3.12); 64-bit values are in an extra field, in the order that 4.5.3 demands,
 * those alone that do not fit. */
static flow_status write_entry(flow_zip_writer *writer, const flow_zip_record *record)
{
  header entry = { .count = 0 }, wide = { .count = 0 };
  uint64_t name_bytes = strlen(record->name);
  if (is_wide(record->bytes) || is_wide(record->header)) {
    put(&wide, 1, 2);
    put(&wide, (is_wide(record->bytes) ? 16 : 0) + (is_wide(record->header) ? 8 : 0), 2);
    if (is_wide(record->bytes)) put(&wide, record->bytes, 8);
    if (is_wide(record->bytes)) put(&wide, record->bytes, 8);
    if (is_wide(record->header)) put(&wide, record->header, 8);
  }
  put(&entry, 0x02014b50, 4);
  put(&entry, UNIX | VERSION_ZIP64, 2);
  put_facts(&entry, record, wide.count > 0, name_bytes, (uint64_t)wide.count);
  put(&entry, 0, 2);                   /* comment */
  put(&entry, 0, 2);                   /* disk */
  put(&entry, 0, 2);                   /* internal attributes */
  put(&entry, MODE, 4);
  put(&entry, narrow(record->header), 4);
  FLOW_TRY(flow_sink_write(&writer->sink, entry.bytes, (uint64_t)entry.count));
  FLOW_TRY(flow_sink_write(&writer->sink, record->name, name_bytes));
  return flow_sink_write(&writer->sink, wide.bytes, (uint64_t)wide.count);
}

/* The end of the directory (APPNOTE 4.3.14 to 4.3.16); the records of ZIP64 are before it only where something does not fit into the old
 * one, since old programs know nothing of them. */
static flow_status write_end(flow_zip_writer *writer, uint64_t offset)
{
  header end = { .count = 0 };
  uint64_t place = writer->sink.written, bytes = place - offset, entries = (uint64_t)writer->count;
  if (is_wide(offset) || is_wide(bytes) || entries >= UINT16_MAX) {
    header wide = { .count = 0 };
    put(&wide, 0x06064b50, 4);
    put(&wide, 44, 8);                 /* bytes that follow in this record */
    put(&wide, UNIX | VERSION_ZIP64, 2);
    put(&wide, VERSION_ZIP64, 2);
    put(&wide, 0, 8);                  /* disks */
    put(&wide, entries, 8);
    put(&wide, entries, 8);
    put(&wide, bytes, 8);
    put(&wide, offset, 8);
    put(&wide, 0x07064b50, 4);         /* the locator */
    put(&wide, 0, 4);
    put(&wide, place, 8);
    put(&wide, 1, 4);
    FLOW_TRY(flow_sink_write(&writer->sink, wide.bytes, (uint64_t)wide.count));
  }
  put(&end, 0x06054b50, 4);
  put(&end, 0, 4);
  put(&end, entries < UINT16_MAX ? entries : UINT16_MAX, 2);
  put(&end, entries < UINT16_MAX ? entries : UINT16_MAX, 2);
  put(&end, narrow(bytes), 4);
  put(&end, narrow(offset), 4);
  put(&end, 0, 2);
  return flow_sink_write(&writer->sink, end.bytes, (uint64_t)end.count);
}

static void free_records(flow_zip_writer *writer)
{
  for (int i = 0; i < writer->count; i++) flow_free(writer->records[i].name);
  flow_free(writer->records);
  writer->records = NULL;
  writer->count = writer->capacity = 0;
}

/* Directory, end record, then the file's name (flow_sink_commit). The records are freed in any case. */
flow_status flow_zip_commit(flow_zip_writer *writer)
{
  uint64_t offset = writer->sink.written;
  flow_status status = FLOW_OK;
  for (int i = 0; status == FLOW_OK && i < writer->count; i++) status = write_entry(writer, &writer->records[i]);
  if (status == FLOW_OK) status = write_end(writer, offset);
  if (status == FLOW_OK) status = flow_sink_commit(&writer->sink);
  flow_zip_discard(writer);
  return status;
}

void flow_zip_discard(flow_zip_writer *writer)
{
  flow_sink_discard(&writer->sink);
  free_records(writer);
}
