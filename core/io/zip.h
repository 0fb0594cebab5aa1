/* zip.h: zip archives (PKWARE's APPNOTE.TXT 6.3): .npz and .keras. One disk, no encryption, members stored or deflated, sizes beyond
 * 4 GB (zip64).
 *
 * Reading is strict: the directory fills the end of the file exactly, each local header agrees with it, members are one after the
 * other without overlap, names are relative paths, once each. So what one reader sees is what every other sees. */
#ifndef FLOW_IO_ZIP_H
#define FLOW_IO_ZIP_H

#include "io/file.h"

enum { FLOW_ZIP_STORED = 0, FLOW_ZIP_DEFLATED = 8 };

/* A member as the directory describes it. A folder is a member whose name ends with a slash. `name` is in
 * flow_zip.names. */
typedef struct flow_zip_member {
  const char *name;
  uint64_t    compressed, size;        /* bytes in the file; bytes inflated */
  uint64_t    header, data;            /* offsets in the file: of the local header, of the content */
  uint32_t    crc;                     /* CRC-32 of the inflated content */
  unsigned    method, flags;
} flow_zip_member;

/* `members`, `by_name` and `names` are the archive's; by_name has `count` indices into members. The source is shared by
 * all members: one of them is read at a time. */
typedef struct flow_zip {
  flow_source      source;
  flow_zip_member *members;            /* in the directory's order */
  int              count, capacity;
  int             *by_name;            /* members in the order of their names */
  char            *names;
} flow_zip;

/* Reads and checks the directory; path is borrowed. FLOW_CORRUPT_DATA says what is wrong. */
flow_status flow_zip_open(const char *path, flow_zip *zip);
void        flow_zip_close(flow_zip *zip);                                        /* also after a failed open */
const flow_zip_member *flow_zip_find(const flow_zip *zip, const char *name);      /* NULL: none */

/* From begin on zip->source delivers the member's content, inflated; FLOW_UNSUPPORTED for other methods and encryption. end checks
 * that all of it was read and its checksum. */
flow_status flow_zip_begin(flow_zip *zip, const flow_zip_member *member);
flow_status flow_zip_end(flow_zip *zip, const flow_zip_member *member);
/* Reads a stored or deflated member and compares the checksum, without keeping anything. */
flow_status flow_zip_verify(flow_zip *zip, const flow_zip_member *member);

/* What the directory will say of a member: name (owned), bytes of its content, where its local header is, the checksum,
 * which is 0 until flow_zip_finish. */
typedef struct flow_zip_record { char *name; uint64_t bytes, header; uint32_t crc; } flow_zip_record;
typedef struct flow_zip_writer {
  flow_sink        sink;
  flow_zip_record *records;
  int              count, capacity;
  uint64_t         content;            /* where the content of the member that is being written begins */
} flow_zip_writer;

/* Writing: members are stored, dated 1980-01-01 so that equal contents give equal files. Between start and finish exactly `bytes`
 * bytes are written to writer->sink. With align > 0 (a power of two up to 4,096) the content starts at a multiple of it. */
flow_status flow_zip_create(const char *path, flow_zip_writer *writer);
flow_status flow_zip_start(flow_zip_writer *writer, const char *name, uint64_t bytes, unsigned align);
flow_status flow_zip_finish(flow_zip_writer *writer);
flow_status flow_zip_commit(flow_zip_writer *writer);      /* closes it, whatever happens: the old file stays if it fails */
void        flow_zip_discard(flow_zip_writer *writer);     /* harmless after commit */

/* FLOW_INVALID_ARGUMENT unless name is a relative path without "..", backslashes or empty parts, of at most 4,096 bytes. */
flow_status flow_zip_check_name(const char *name);

#endif
