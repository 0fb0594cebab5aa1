/* archive.c: the C API's zip archives: .keras files.
 *
 * A flow_archive reads: opened, asked for texts, and tensors by flow_tensor_file_open of its members, released. A
 * flow_archive_writer writes: members in the order in which they are added, then commit. Objects begin with a magic
 * number, by which a call on NULL or on a released object becomes an error instead of a crash, as far as the memory is
 * not in use again. One thread at a time for each. */
#include "io/npy.h"
#include "io/tensor_file.h"
#include "io/zip.h"

#include <string.h>
#include "base/memory.h"

/* MOST_TEXT: the configuration and metadata of a model are a few MB at most. ALIGNMENT: a cache line, since tensors in an archive are read
 * in place. */
enum { ARCHIVE_MAGIC = 0x464c4152, WRITER_MAGIC = 0x464c4157, DEAD = 0x44454144, MOST_TEXT = 64 << 20, ALIGNMENT = 64 };

/* texts has an entry for each member, NULL until it was asked for; path is the copy that zip.source borrows. */
struct flow_archive {
  uint32_t magic;
  char    *path;
  flow_zip zip;
  char   **texts;                      /* of the members that were asked for */
};

/* ---- reading ------------------------------------------------------------------------------------------------------------------------ */

/* Reads the directory of the archive and checks it (zip.c); members are read when they are asked for. The file stays open until the archive
 * is released. */
flow_status flow_archive_open(const char *path, flow_archive **out)
{
  void *block, *texts;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_archive_open: out is NULL");
  *out = NULL;
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of an archive is missing");
  FLOW_TRY(flow_alloc_zero(sizeof(flow_archive), &block));
  flow_archive *archive = block;
  archive->magic = ARCHIVE_MAGIC;
  archive->path = flow_duplicate_text(path);
  flow_status status = archive->path ? flow_zip_open(archive->path, &archive->zip) : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK) {
    status = flow_alloc_zero((size_t)archive->zip.count * sizeof(char *), &texts);
    if (status == FLOW_OK) archive->texts = texts;
  }
  if (status != FLOW_OK) {
    flow_archive_release(archive);
    return status;
  }
  *out = archive;
  return FLOW_OK;
}

/* Texts that flow_archive_text gave are gone with it. The magic is overwritten, so that a second release does nothing as long as the memory
 * is not in use again. */
void flow_archive_release(flow_archive *archive)
{
  if (!archive || archive->magic != ARCHIVE_MAGIC) return;
  archive->magic = DEAD;
  for (int i = 0; archive->texts && i < archive->zip.count; i++) flow_free(archive->texts[i]);
  flow_free(archive->texts);
  flow_zip_close(&archive->zip);
  flow_free(archive->path);
  flow_free(archive);
}

static int is_open(const flow_archive *archive) { return archive && archive->magic == ARCHIVE_MAGIC; }

int flow_archive_count(const flow_archive *archive) { return is_open(archive) ? archive->zip.count : 0; }

const char *flow_archive_name(const flow_archive *archive, int index)
{
  return is_open(archive) && index >= 0 && index < archive->zip.count ? archive->zip.members[index].name : NULL;
}

/* The size of the header is believed only up to what the compressed bytes can become. */
static flow_status load_text(flow_archive *archive, const flow_zip_member *member, char **out)
{
  void *block;
  if (member->size > MOST_TEXT) {
    return flow_fail(FLOW_UNSUPPORTED, "%s: %s has %.0f bytes, a text has at most %d", archive->path, member->name, (double)member->size,
                     MOST_TEXT);
  }
  FLOW_TRY(flow_zip_begin(&archive->zip, member));
  if (member->size > flow_source_most(&archive->zip.source)) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s: %s cannot have as many bytes as its header says", archive->path, member->name);
  }
  FLOW_TRY(flow_alloc(member->size + 1, &block));
  flow_status status = flow_source_read(&archive->zip.source, member->name, block, member->size);
  if (status == FLOW_OK) status = flow_zip_end(&archive->zip, member);
  if (status != FLOW_OK) {
    flow_free(block);
    return status;
  }
  ((char *)block)[member->size] = '\0';
  *out = block;
  return FLOW_OK;
}

/* *text is the archive's: it is kept until the archive is released, and a second call gives the same one. */
flow_status flow_archive_text(flow_archive *archive, const char *member, const char **text, double *bytes)
{
  if (!is_open(archive) || !member || !text || !bytes) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_archive_text takes an open archive, a member's name, and where the text goes");
  }
  *text = NULL;
  *bytes = 0;
  const flow_zip_member *found = flow_zip_find(&archive->zip, member);
  if (!found) return flow_fail(FLOW_NOT_FOUND, "%s has no member '%s'", archive->path, member);
  char **place = &archive->texts[found - archive->zip.members];
  if (!*place) FLOW_TRY(load_text(archive, found, place));
  *text = *place;
  *bytes = (double)found->size;
  return FLOW_OK;
}

flow_status flow_archive_npy(flow_archive *archive, int index, flow_tensor **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_archive_npy: out is NULL");
  *out = NULL;
  if (!is_open(archive) || index < 0 || index >= archive->zip.count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_archive_npy takes an open archive and the number of a member, got %d", index);
  return flow_npz_read(&archive->zip, &archive->zip.members[index], out);
}

/* ---- writing ------------------------------------------------------------------------------------------------------------------------ */

/* open: members may be added. 0 after commit, or after a member that could not be written; `zip` is then closed. */
struct flow_archive_writer {
  uint32_t        magic;
  int             open;
  flow_zip_writer zip;
};

/* Writes beside `path`: the archive has its name only after flow_archive_writer_commit. */
flow_status flow_archive_writer_new(const char *path, flow_archive_writer **out)
{
  void *block;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_archive_writer_new: out is NULL");
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_archive_writer), &block));
  flow_archive_writer *writer = block;
  flow_status status = flow_zip_create(path, &writer->zip);
  if (status != FLOW_OK) {
    flow_free(writer);
    return status;
  }
  writer->magic = WRITER_MAGIC;
  writer->open = 1;
  *out = writer;
  return FLOW_OK;
}

/* Every call of a writer, so that one that has failed or is finished says so. */
static flow_status check_writer(const flow_archive_writer *writer)
{
  if (!writer || writer->magic != WRITER_MAGIC) return flow_fail(FLOW_INVALID_ARGUMENT, "the writer of an archive is NULL or was released");
  if (!writer->open) return flow_fail(FLOW_INVALID_STATE, "the archive is finished, or a member could not be written: make a new writer");
  return FLOW_OK;
}

/* After a failed write the file is given up: a member in it is a part. */
static flow_status give_up(flow_archive_writer *writer, flow_status status)
{
  if (status == FLOW_OK) return FLOW_OK;
  flow_zip_discard(&writer->zip);
  writer->open = 0;
  return status;
}

/* The size is known before the first byte, so the member's header is written once and needs no record after the data. */
flow_status flow_archive_writer_add_text(flow_archive_writer *writer, const char *name, const char *text, double bytes)
{
  FLOW_TRY(check_writer(writer));
  if (!(bytes >= 0 && bytes <= MOST_TEXT) || (!text && bytes > 0)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "a text of an archive has at most %d bytes, got %g", MOST_TEXT, bytes);
  }
  flow_status status = flow_zip_start(&writer->zip, name, (uint64_t)bytes, 0);
  if (status == FLOW_OK) status = flow_sink_write(&writer->zip.sink, text, (uint64_t)bytes);
  if (status == FLOW_OK) status = flow_zip_finish(&writer->zip);
  return give_up(writer, status);
}

/* Stored, not compressed, and aligned, so that flow_tensor_file_open can read the tensors in place. `size` of a format is exact, since the
 * header of the member says it first. Arguments that are wrong leave the writer open. */
flow_status flow_archive_writer_add_tensors(flow_archive_writer *writer, const char *name, const flow_tensor_writer *tensors,
                                            const char *format)
{
  uint64_t bytes;
  FLOW_TRY(check_writer(writer));
  if (!tensors || tensors->magic != FLOW_TENSOR_WRITER_MAGIC) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the writer of tensors is NULL or was released");
  }
  const flow_format *record = format ? flow_format_find(format) : NULL;
  if (!record)
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no format '%s' of files of tensors; there are hdf5 and safetensors",
                     format ? format : "");
  FLOW_TRY(flow_tensor_writer_check(tensors));
  FLOW_TRY(record->size(tensors, &bytes));
  flow_status status = flow_zip_start(&writer->zip, name, bytes, ALIGNMENT);
  if (status == FLOW_OK) status = record->write(tensors, &writer->zip.sink);
  if (status == FLOW_OK) status = flow_zip_finish(&writer->zip);
  return give_up(writer, status);
}

/* A tensor that NumPy has no dtype for is refused before anything is written. */
flow_status flow_archive_writer_add_npy(flow_archive_writer *writer, const char *name, const flow_tensor *tensor)
{
  flow_npy npy;
  FLOW_TRY(check_writer(writer));
  flow_status status = flow_npy_open(tensor, name, &npy);
  if (status == FLOW_OK) {
    status = flow_zip_start(&writer->zip, name, npy.bytes, ALIGNMENT);
    if (status == FLOW_OK) status = flow_npy_write(&npy, &writer->zip.sink);
    if (status == FLOW_OK) status = flow_zip_finish(&writer->zip);
    status = give_up(writer, status);
  }
  flow_npy_close(&npy);
  return status;
}

flow_status flow_archive_writer_commit(flow_archive_writer *writer)
{
  FLOW_TRY(check_writer(writer));
  writer->open = 0;
  return flow_zip_commit(&writer->zip);
}

void flow_archive_writer_release(flow_archive_writer *writer)
{
  if (!writer || writer->magic != WRITER_MAGIC) return;
  if (writer->open) flow_zip_discard(&writer->zip);
  writer->magic = DEAD;
  flow_free(writer);
}
