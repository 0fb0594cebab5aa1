/* file.c: checked reading, with or without inflating. Writing: sink.c. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/memory.h"

/* MOST_EXPANSION: see flow_source_most. */
enum { INFLATE_BUFFER = 65536, MOST_EXPANSION = 1032 };

/* What the process or the system has too little of, memory or descriptors, says nothing about the file. */
flow_status flow_fail_by_errno(const char *action, const char *path)
{
  int error = errno, is_full = error == ENOMEM || error == EMFILE || error == ENFILE;
  flow_status status = error == ENOENT ? FLOW_NOT_FOUND : is_full ? FLOW_OUT_OF_MEMORY : FLOW_IO_ERROR;
  return flow_fail(status, "cannot %s %s: %s", action, path, strerror(error));
}

/* ---- source ---------------------------------------------------------------------------------------------------------------- */

/* Regular files only: a pipe or a device has no size against which a header could be checked. `path` is borrowed for messages as long as
 * the source is open. On failure nothing is open, and flow_source_close is harmless. */
flow_status flow_source_open(const char *path, flow_source *source)
{
  *source = (flow_source){ .path = path };
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a file is missing");
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);    /* O_NONBLOCK: a pipe is refused below, not waited for */
  if (descriptor < 0) return flow_fail_by_errno("open", path);
  struct stat facts;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    close(descriptor);
    return flow_fail(FLOW_IO_ERROR, "%s is not a regular file", path);
  }
  source->file = fdopen(descriptor, "rb");
  if (!source->file) {
    flow_status status = flow_fail_by_errno("open", path);
    close(descriptor);
    return status;
  }
  source->file_bytes = source->left = (uint64_t)facts.st_size;
  return FLOW_OK;
}

/* Back to FLOW_PLAIN without a buffer, which is also the state of a source that was never opened. */
static void stop_inflating(flow_source *source)
{
  if (source->coding != FLOW_PLAIN) inflateEnd(&source->inflater);
  flow_free(source->buffer);
  source->buffer = NULL;
  source->coding = FLOW_PLAIN;
}

void flow_source_close(flow_source *source)
{
  stop_inflating(source);
  if (source->file) fclose(source->file);
  source->file = NULL;
}

/* zlib's memory, by flow_alloc_zero: tests can let it fail, and sizes that overflow are refused. */
static void *zlib_alloc(void *unused, unsigned count, unsigned size)
{
  (void)unused;
  size_t bytes;
  void *block;
  if (flow_multiply(count, size, &bytes) != FLOW_OK || flow_alloc_zero(bytes, &block) != FLOW_OK) return Z_NULL;
  return block;
}

static void zlib_free(void *unused, void *block)
{
  (void)unused;
  flow_free(block);
}

/* Cleared memory, since deflate looks at parts of its window that it has not written. */
z_stream flow_zlib_stream(void)
{
  return (z_stream){ .zalloc = zlib_alloc, .zfree = zlib_free };
}

int flow_coding_window(flow_coding coding)
{
  return coding == FLOW_GZIP ? 16 + MAX_WBITS : coding == FLOW_ZLIB ? MAX_WBITS : -MAX_WBITS;
}

/* Sets `coding` last: only then stop_inflating has something to end. */
static flow_status start_inflating(flow_source *source, flow_coding coding)
{
  void *buffer;
  FLOW_TRY(flow_alloc(INFLATE_BUFFER, &buffer));
  source->inflater = flow_zlib_stream();
  if (inflateInit2(&source->inflater, flow_coding_window(coding)) != Z_OK) {
    flow_free(buffer);
    return FLOW_OUT_OF_MEMORY; /* zlib_alloc has set the message */
  }
  source->buffer = buffer;
  source->coding = coding;
  return FLOW_OK;
}

/* Ends what was read before and begins with the bytes [offset, offset + bytes) of the file, in their own coding. A header's number
 * that leads out of the file fails here. */
flow_status flow_source_range(flow_source *source, uint64_t offset, uint64_t bytes, flow_coding coding)
{
  stop_inflating(source);
  if (offset > source->file_bytes || bytes > source->file_bytes - offset) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: it refers to %.0f bytes from byte %.0f on, but has only %.0f", source->path,
                     (double)bytes, (double)offset, (double)source->file_bytes);
  }
  if (fseeko(source->file, (off_t)offset, SEEK_SET) != 0) return flow_fail_by_errno("read", source->path);
  source->left = bytes;
  source->ended = source->wants_crc = 0;
  source->crc = 0;
  return coding == FLOW_PLAIN ? FLOW_OK : start_inflating(source, coding);
}

/* The most bytes that may still come. Deflate cannot expand more than 1032 to 1 (a match of 258 bytes takes two bits at least), which
 * bounds what a few damaged bytes can make a reader allocate. */
uint64_t flow_source_most(const flow_source *source)
{
  if (source->coding == FLOW_PLAIN) return source->left;
  uint64_t most;
  return __builtin_mul_overflow(source->left + source->inflater.avail_in + 1, (uint64_t)MOST_EXPANSION, &most) ? UINT64_MAX : most;
}

/* Bytes as they are in the file; fewer only at the end of the range, or of a file that shrinks while it is read. In the
 * second case nothing is left, so that the next call does not wait for bytes that will never come. */
static flow_status read_plain(flow_source *source, void *to, uint64_t bytes, uint64_t *got)
{
  if (bytes > source->left) bytes = source->left;
  *got = fread(to, 1, bytes, source->file);
  if (*got < bytes && ferror(source->file)) return flow_fail_by_errno("read", source->path);
  source->left = *got < bytes ? 0 : source->left - bytes;
  return FLOW_OK;
}

/* The caller counts: *got less than `bytes` is the end of the stream or of the file, and flow_source_expect_end tells which. zlib takes
 * at most 32 bits of room at a time, hence the pieces of 1 GB. */
static flow_status read_inflated(flow_source *source, void *to, uint64_t bytes, uint64_t *got)
{
  z_stream *inflater = &source->inflater;
  for (*got = 0; *got < bytes;) {
    if (inflater->avail_in == 0 && source->left > 0) {
      uint64_t filled;
      FLOW_TRY(read_plain(source, source->buffer, INFLATE_BUFFER, &filled));
      inflater->next_in = source->buffer;
      inflater->avail_in = (uInt)filled;
    }
    uint64_t room = bytes - *got < (1u << 30) ? bytes - *got : 1u << 30;
    inflater->next_out = (Bytef *)to + *got;
    inflater->avail_out = (uInt)room;
    int result = inflate(inflater, Z_NO_FLUSH);
    *got += room - inflater->avail_out;
    if (result == Z_MEM_ERROR) return FLOW_OUT_OF_MEMORY; /* zlib_alloc has set the message */
    source->ended = result == Z_STREAM_END;
    if (source->ended) {
      if (source->coding != FLOW_GZIP || (inflater->avail_in == 0 && source->left == 0)) return FLOW_OK;
      inflateReset(inflater);                                          /* gzip files may be several, one after another */
    } else if (result == Z_BUF_ERROR && inflater->avail_in == 0 && source->left == 0) {
      return FLOW_OK;                                                  /* cut off: the caller counts the bytes */
    } else if (result != Z_OK) {
      return flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: %s", source->path, inflater->msg ? inflater->msg : "its compression is broken");
    }
  }
  return FLOW_OK;
}

/* The checksum covers what is delivered, after inflating: what a zip member's CRC-32 is of. */
flow_status flow_source_read_some(flow_source *source, void *to, uint64_t bytes, uint64_t *got)
{
  if (source->coding == FLOW_PLAIN) FLOW_TRY(read_plain(source, to, bytes, got));
  else FLOW_TRY(read_inflated(source, to, bytes, got));
  if (source->wants_crc) source->crc = (uint32_t)crc32_z(source->crc, to, *got);
  return FLOW_OK;
}

/* All of `bytes`, or FLOW_CORRUPT_DATA; `what` names them in the message. */
flow_status flow_source_read(flow_source *source, const char *what, void *to, uint64_t bytes)
{
  uint64_t got;
  FLOW_TRY(flow_source_read_some(source, to, bytes, &got));
  if (got < bytes) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is cut off: %s takes %.0f bytes, %.0f were found", source->path, what, (double)bytes,
                     (double)got);
  }
  return FLOW_OK;
}

/* After the last byte that a header announced: nothing more may follow, and a compressed stream must have reached its own end, where zlib
 * has compared its checksum. Bytes after that end are refused as well: other readers of the format may see contents in them. */
flow_status flow_source_expect_end(flow_source *source)
{
  unsigned char more;
  uint64_t got;
  FLOW_TRY(flow_source_read_some(source, &more, 1, &got));
  if (got > 0) return flow_fail(FLOW_CORRUPT_DATA, "%s has more bytes than its header says", source->path);
  if (source->coding != FLOW_PLAIN && !source->ended) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is cut off: the end of its compressed data is missing", source->path);
  }
  uint64_t after = source->left + (source->coding != FLOW_PLAIN ? source->inflater.avail_in : 0);
  if (after > 0) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s has %.0f bytes after the end of its compressed data", source->path, (double)after);
  }
  return FLOW_OK;
}
