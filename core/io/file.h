/* core/io: files and their formats: NumPy arrays (npy, npz), safetensors, HDF5, zip archives, TFRecord, CSV, WAVE; and
 * what every format needs: checked reading, atomic writing. Uses base and tensor.
 *
 * file.h: a source reads a file, or a range of it, as it is or inflated. It knows the real size of the file, so that a
 * format can refuse a size that its header claims before it takes memory. A sink writes beside the target and renames,
 * so that a reader sees the old file or the new one, never a part.
 *
 * A format's reader opens a source, sets a range for each piece that it wants (flow_source_range), reads it, and asks at
 * the end whether all was there (flow_source_expect_end). Sources and sinks belong to one thread at a time; different
 * ones are independent. */
#ifndef FLOW_IO_FILE_H
#define FLOW_IO_FILE_H

#include <stdio.h>
#include <zlib.h>
#include "base/status.h"

typedef enum flow_coding { FLOW_PLAIN, FLOW_DEFLATE, FLOW_GZIP, FLOW_ZLIB } flow_coding;   /* FLOW_DEFLATE: without any header */

/* A failure of a system call, by errno: "cannot open PATH: ...". FLOW_NOT_FOUND where the file is missing,
 * FLOW_OUT_OF_MEMORY where memory or descriptors are, else FLOW_IO_ERROR. */
flow_status flow_fail_by_errno(const char *action, const char *path);

/* For inflateInit2 and deflateInit2: zlib takes its memory by flow_alloc, which counts it and lets tests fail each piece of it. */
z_stream flow_zlib_stream(void);
/* zlib's way to say which header and checksum surround the compressed data. */
int flow_coding_window(flow_coding coding);

/* A file that is read. Only the fields that are marked so are the caller's to change. Between two calls these hold:
 * `file` stands where the next bytes of the range are, less what is in the inflater's buffer; coding is FLOW_PLAIN
 * exactly if there is neither an inflater nor a buffer. */
typedef struct flow_source {
  FILE          *file;
  const char    *path;         /* borrowed; for messages */
  uint64_t       file_bytes;   /* of the whole file */
  uint64_t       left;         /* bytes of the range that are not read yet, as they are in the file */
  flow_coding    coding;
  z_stream       inflater;
  unsigned char *buffer;       /* input of the inflater */
  int            ended;        /* the inflater has seen the end of its stream, and the checksum of gzip or zlib */
  int            wants_crc;    /* set after flow_source_range: ... */
  uint32_t       crc;          /* ... CRC-32 of all bytes delivered since */
} flow_source;

/* FLOW_NOT_FOUND, or FLOW_IO_ERROR if it is not a regular file that may be read. The range is the whole file, plain. */
flow_status flow_source_open(const char *path, flow_source *source);
void        flow_source_close(flow_source *source);     /* also after a failed open; a second time does nothing */

/* Reads from `offset` on, `bytes` as they are in the file, coded so. FLOW_CORRUPT_DATA if the file has no such range. */
flow_status flow_source_range(flow_source *source, uint64_t offset, uint64_t bytes, flow_coding coding);

/* Most bytes that the rest of the range can become: deflate makes at most 1,032 bytes of one (zlib's technical notes). */
uint64_t    flow_source_most(const flow_source *source);

/* Reads up to `bytes`; *got is less only at the end of the range, and is set on success only. After a failure the position is undefined: a
 * new range may be set, or the source closed. */
flow_status flow_source_read_some(flow_source *source, void *to, uint64_t bytes, uint64_t *got);
/* Reads exactly `bytes`; FLOW_CORRUPT_DATA with both numbers if there are fewer; `what` is what is being read. */
flow_status flow_source_read(flow_source *source, const char *what, void *to, uint64_t bytes);
/* FLOW_CORRUPT_DATA unless the range ends here, and a compressed stream with it; verifies gzip's checksum on the way. */
flow_status flow_source_expect_end(flow_source *source);

/* A file that is written. `path` is the file that will be replaced, after symbolic links were followed, so it may differ
 * from the path that was given; `temporary` is NULL once there is no file to be removed. Both belong to the sink. */
typedef struct flow_sink {
  FILE    *file;
  char    *path, *temporary;
  uint64_t written;            /* bytes so far: where the next ones go */
  int      wants_crc;          /* while it is set: crc becomes the CRC-32 of what is written */
  uint32_t crc;
  int      only_new;           /* set after flow_sink_open: commit fails if a file of this name has come meanwhile, which stays */
} flow_sink;

/* Makes the temporary file in the target's folder. On failure nothing is open, and flow_sink_discard is harmless. */
flow_status flow_sink_open(const char *path, flow_sink *sink);
/* After a failure the sink is to be discarded: how much was written is unknown. */
flow_status flow_sink_write(flow_sink *sink, const void *from, uint64_t bytes);
/* Writes over bytes that were written before. */
flow_status flow_sink_patch(flow_sink *sink, uint64_t offset, const void *from, uint64_t bytes);
/* Brings the file to the disk, to its name, and the name to the disk. Whatever happens, the sink is closed and no temporary file stays;
 * after a failure the old file is whole, but where only the folder could not be brought to the disk the new one is. */
flow_status flow_sink_commit(flow_sink *sink);
void        flow_sink_discard(flow_sink *sink);         /* after a failure; harmless after commit */

/* Renames if nothing has the name `to`: 0, or -1 with errno, EEXIST if something has it. What another process makes at the same moment is
 * not replaced, except on file systems and kernels that cannot look and rename at once. */
int         flow_rename_to_free(const char *from, const char *to);

#endif
