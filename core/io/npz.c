/* npz.c: one array out of NumPy's archive: a zip whose members are npy files, stored or deflated.
 *
 * A small and strict reader of zip (PKWARE's APPNOTE.TXT 6.3): one disk, no encryption, members "stored" or "deflated",
 * sizes beyond 4 GB (zip64). The central directory counts; the local header of the member must agree with it. */
#include "io/npy.h"

#include <string.h>
#include "base/memory.h"

enum {
  END_BYTES = 22, LOCATOR_BYTES = 20, END64_BYTES = 56, ENTRY_BYTES = 46, LOCAL_BYTES = 30,
  MOST_COMMENT = 65535, MOST_NAME = 4096,
};

typedef struct zip_directory { uint64_t offset, bytes, entries; } zip_directory;

typedef struct zip_entry {
  char     name[MOST_NAME + 1];
  uint64_t compressed, size, local;      /* bytes in the file; bytes inflated; offset of the local header */
  uint32_t crc;
  unsigned method, flags;
} zip_entry;

static uint64_t number(const unsigned char *bytes, int count)       /* little-endian */
{
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; i--) value = value << 8 | bytes[i];
  return value;
}

static flow_status fail_zip(const flow_source *source, const char *reason)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s is not an npz archive: %s", source->path, reason);
}

static flow_status read_at(flow_source *source, uint64_t offset, const char *what, void *to, uint64_t bytes)
{
  FLOW_TRY(flow_source_range(source, offset, bytes, FLOW_PLAIN));
  return flow_source_read(source, what, to, bytes);
}

/* ---- the central directory ---------------------------------------------------------------------------------------------------- */

/* Archives beyond 4 GB keep the real numbers in a second end record, which a locator in front of the first points to. */
static flow_status read_end64(flow_source *source, uint64_t end, zip_directory *directory)
{
  unsigned char locator[LOCATOR_BYTES], record[END64_BYTES];
  if (end < LOCATOR_BYTES) return FLOW_OK;
  FLOW_TRY(read_at(source, end - LOCATOR_BYTES, "the zip64 locator", locator, sizeof locator));
  if (memcmp(locator, "PK\x06\x07", 4) != 0) return FLOW_OK;
  FLOW_TRY(read_at(source, number(locator + 8, 8), "the zip64 end record", record, sizeof record));
  if (memcmp(record, "PK\x06\x06", 4) != 0) return fail_zip(source, "its zip64 end record is damaged");
  directory->entries = number(record + 32, 8);
  directory->bytes = number(record + 40, 8);
  directory->offset = number(record + 48, 8);
  return FLOW_OK;
}

/* The end record stands before a comment of unknown length: looked for from the end of the file. */
static flow_status find_directory(flow_source *source, zip_directory *directory)
{
  uint64_t tail_bytes = source->file_bytes < END_BYTES + MOST_COMMENT ? source->file_bytes : END_BYTES + MOST_COMMENT;
  uint64_t tail_offset = source->file_bytes - tail_bytes;
  if (tail_bytes < END_BYTES) return fail_zip(source, "it is too short");
  void *block;
  FLOW_TRY(flow_alloc(tail_bytes, &block));
  const unsigned char *tail = block, *end = NULL;
  flow_status status = read_at(source, tail_offset, "the end of the archive", block, tail_bytes);
  for (uint64_t i = tail_bytes - END_BYTES + 1; status == FLOW_OK && !end && i-- > 0;) {
    if (memcmp(tail + i, "PK\x05\x06", 4) == 0 && i + END_BYTES + number(tail + i + 20, 2) == tail_bytes) end = tail + i;
  }
  if (status == FLOW_OK && !end) status = fail_zip(source, "it has no directory at its end");
  if (status == FLOW_OK) {
    *directory = (zip_directory){ .entries = number(end + 10, 2), .bytes = number(end + 12, 4), .offset = number(end + 16, 4) };
    status = read_end64(source, tail_offset + (uint64_t)(end - tail), directory);
  }
  flow_free(block);
  return status;
}

/* Numbers of 2^32 - 1 stand for those of the extra field with tag 1: size, compressed size, offset, in this order. */
static flow_status apply_extra(const flow_source *source, const unsigned char *extra, uint64_t bytes, zip_entry *entry)
{
  uint64_t *const wide[] = { &entry->size, &entry->compressed, &entry->local };
  for (uint64_t i = 0; i + 4 <= bytes;) {
    uint64_t tag = number(extra + i, 2), length = number(extra + i + 2, 2), at = i + 4;
    if (length > bytes - at) return fail_zip(source, "an extra field is damaged");
    i = at + length;
    for (int k = 0; tag == 1 && k < 3; k++) {
      if (*wide[k] != UINT32_MAX) continue;
      if (at + 8 > i) return fail_zip(source, "a zip64 field is damaged");
      *wide[k] = number(extra + at, 8);
      at += 8;
    }
  }
  return FLOW_OK;
}

/* Reads the entry that the source stands at. `block` takes the extra field: 65,535 bytes. */
static flow_status read_entry(flow_source *source, unsigned char *block, zip_entry *entry)
{
  unsigned char record[ENTRY_BYTES];
  FLOW_TRY(flow_source_read(source, "an entry of the directory", record, sizeof record));
  if (memcmp(record, "PK\x01\x02", 4) != 0) return fail_zip(source, "its directory is damaged");
  uint64_t name_bytes = number(record + 28, 2), extra_bytes = number(record + 30, 2), comment_bytes = number(record + 32, 2);
  if (name_bytes > MOST_NAME) return fail_zip(source, "a member's name is too long");
  entry->flags = (unsigned)number(record + 8, 2);
  entry->method = (unsigned)number(record + 10, 2);
  entry->crc = (uint32_t)number(record + 16, 4);
  entry->compressed = number(record + 20, 4);
  entry->size = number(record + 24, 4);
  entry->local = number(record + 42, 4);
  FLOW_TRY(flow_source_read(source, "a member's name", entry->name, name_bytes));
  entry->name[name_bytes] = '\0';
  FLOW_TRY(flow_source_read(source, "an extra field", block, extra_bytes));
  FLOW_TRY(apply_extra(source, block, extra_bytes, entry));
  return flow_source_read(source, "a comment", block, comment_bytes);
}

static int is_member(const char *name, const char *member)          /* "x.npy" is the member "x" */
{
  size_t length = strlen(member);
  return strncmp(name, member, length) == 0 && (strcmp(name + length, ".npy") == 0 || name[length] == '\0');
}

static flow_status find_entry(flow_source *source, const zip_directory *directory, const char *member, zip_entry *entry)
{
  char names[512];
  flow_text found = flow_text_into(names, sizeof names);
  void *block;
  FLOW_TRY(flow_alloc(MOST_COMMENT, &block));
  flow_status status = flow_source_range(source, directory->offset, directory->bytes, FLOW_PLAIN);
  for (uint64_t i = 0; status == FLOW_OK && i < directory->entries; i++) {
    status = read_entry(source, block, entry);
    if (status == FLOW_OK && is_member(entry->name, member)) {
      flow_free(block);
      return FLOW_OK;
    }
    char *ending = status == FLOW_OK ? strstr(entry->name, ".npy") : NULL;
    if (ending) *ending = '\0';
    if (status == FLOW_OK && found.length < (int)sizeof names) flow_text_add(&found, "%s%s", i > 0 ? ", " : "", entry->name);
  }
  flow_free(block);
  if (status != FLOW_OK) return status;
  return flow_fail(FLOW_NOT_FOUND, "%s has no array '%s'; it has: %s", source->path, member, names);
}

/* ---- the member ------------------------------------------------------------------------------------------------------------------ */

static flow_status open_member(flow_source *source, const zip_entry *entry)
{
  if (entry->flags & 1) return flow_fail(FLOW_UNSUPPORTED, "%s: %s is encrypted", source->path, entry->name);
  if (entry->method != 0 && entry->method != 8) {
    return flow_fail(FLOW_UNSUPPORTED, "%s: %s is compressed by method %u; stored and deflated members are known", source->path,
                     entry->name, entry->method);
  }
  unsigned char local[LOCAL_BYTES];
  char name[MOST_NAME];
  FLOW_TRY(read_at(source, entry->local, "a member's header", local, sizeof local));
  uint64_t name_bytes = number(local + 26, 2), extra_bytes = number(local + 28, 2);
  if (memcmp(local, "PK\x03\x04", 4) != 0 || number(local + 8, 2) != entry->method || name_bytes != strlen(entry->name)) {
    return fail_zip(source, "a member's header contradicts the directory");
  }
  FLOW_TRY(read_at(source, entry->local + LOCAL_BYTES, "a member's name", name, name_bytes));
  if (memcmp(name, entry->name, name_bytes) != 0) return fail_zip(source, "a member's header contradicts the directory");
  uint64_t data = entry->local + LOCAL_BYTES + name_bytes + extra_bytes;
  FLOW_TRY(flow_source_range(source, data, entry->compressed, entry->method == 8 ? FLOW_DEFLATE : FLOW_PLAIN));
  source->wants_crc = 1;
  return FLOW_OK;
}

static flow_status load_member(flow_source *source, const char *member, flow_tensor **out)
{
  zip_directory directory = { 0 };
  FLOW_TRY(find_directory(source, &directory));
  void *block;
  FLOW_TRY(flow_alloc(sizeof(zip_entry), &block));
  zip_entry *entry = block;
  flow_status status = find_entry(source, &directory, member, entry);
  if (status == FLOW_OK) status = open_member(source, entry);
  if (status == FLOW_OK) status = flow_npy_read(source, out);
  if (status == FLOW_OK) status = flow_source_expect_end(source);
  if (status == FLOW_OK && source->crc != entry->crc) {
    status = flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: the checksum of %s is wrong", source->path, entry->name);
  }
  if (status != FLOW_OK) {
    flow_tensor_release(*out);
    *out = NULL;
  }
  flow_free(block);
  return status;
}

flow_status flow_tensor_load_npz(const char *path, const char *member, flow_tensor **out)
{
  *out = NULL;
  if (!member) return flow_fail(FLOW_INVALID_ARGUMENT, "the name of the array in the archive is missing");
  flow_source source;
  flow_status status = flow_source_open(path, &source);
  if (status == FLOW_OK) status = load_member(&source, member, out);
  flow_source_close(&source);
  return status;
}
