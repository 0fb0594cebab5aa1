/* record.h: TFRecord files: a stream of records, as it is or compressed as a whole. A record is its length (8 bytes,
 * little-endian), the masked CRC-32C of the length, its bytes, the masked CRC-32C of the bytes. A file has no header and
 * no end mark; an empty file has no records.
 *
 * The reader keeps a window of the stream in memory, never the stream. It believes a length when the file is large enough
 * for it and then takes memory as bytes arrive, so that a file of a few bytes cannot claim gigabytes. */
#ifndef FLOW_IO_RECORD_H
#define FLOW_IO_RECORD_H

#include "io/file.h"

typedef struct flow_record_reader {
  flow_source    source;
  char          *path;             /* its own copy */
  unsigned char *window;           /* bytes [begin, end) are read and not delivered yet */
  size_t         capacity, begin, end;
  uint64_t       offset;           /* of window[begin] in the stream, after inflating */
  uint64_t       most;             /* bytes of a record; a longer one counts as damaged */
} flow_record_reader;

/* "", "GZIP" or "ZLIB" as TensorFlow spells them; NULL is "". */
flow_status flow_record_compression(const char *name, flow_coding *coding);

/* Opens a file, which is compressed as `coding` says, before its first record. Call flow_record_close also after a failure. */
flow_status flow_record_open(const char *path, flow_coding coding, flow_record_reader *reader);
/* A plain file from the byte `offset` on, where a record begins; no record has more than `most` bytes. */
flow_status flow_record_open_at(const char *path, uint64_t offset, uint64_t most, flow_record_reader *reader);
void        flow_record_close(flow_record_reader *reader);        /* also after a failed open; a second time does nothing */
/* The next record: *bytes is borrowed until the next call, NULL at the end of the file. FLOW_CORRUPT_DATA names file and
 * byte; the reader then stays where it is. */
flow_status flow_record_next(flow_record_reader *reader, const unsigned char **bytes, uint64_t *count);
/* Passes over one record without looking at its bytes; *skipped is 0 at the end of the file. */
flow_status flow_record_skip(flow_record_reader *reader, int *skipped);

/* Writes records beside the target; commit gives the file its name (file.h). */
typedef struct flow_record_sink {
  flow_sink      sink;
  flow_coding    coding;
  z_stream       deflater;
  unsigned char *buffer;           /* output of the deflater */
} flow_record_sink;

/* On failure nothing is open. append copies the bytes into a record; after its failure the sink is to be discarded. */
flow_status flow_record_create(const char *path, flow_coding coding, flow_record_sink *sink);
flow_status flow_record_append(flow_record_sink *sink, const void *bytes, uint64_t count);
flow_status flow_record_commit(flow_record_sink *sink);            /* whatever happens, the sink is closed */
void        flow_record_discard(flow_record_sink *sink);           /* after a failure; harmless after commit */

#endif
