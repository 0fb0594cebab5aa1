/* zip.c: reading zip archives.
 *
 * flow_zip_open reads the end record (APPNOTE 4.3.16, for zip64 4.3.14 and 4.3.15), then the central directory (4.3.12),
 * then each local header (4.3.7), and compares them. Later only contents are read. Numbers in the file are little-endian
 * and are believed only within the file's size, which flow_source_range checks for every read. */
#include "io/zip.h"

#include <stdlib.h>
#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"

/* Fixed parts of the records. USUAL_EXTRA: what a first read of a local header takes besides its name. HEADER_MOST:
 * the longest one whose name is accepted, as an extra field has 16 bits for its length. */
enum {
  END_BYTES = 22, LOCATOR_BYTES = 20, END64_BYTES = 56, ENTRY_BYTES = 46, LOCAL_BYTES = 30,
  MOST_COMMENT = 65535, MOST_NAME = 4096, USUAL_EXTRA = 64, MOST_MEMBERS = 1 << 20, VERIFY_BLOCK = 1 << 18,
  HEADER_MOST = LOCAL_BYTES + MOST_NAME + 65535,
  ENCRYPTED = 1, SIZES_FOLLOW = 8,     /* flags of a member */
};

/* What the end records say of the central directory. */
typedef struct zip_directory { uint64_t offset, bytes, entries; } zip_directory;

static uint64_t number(const unsigned char *bytes, int count) { return flow_little_endian(bytes, count); }

static flow_status fail_zip(const flow_zip *zip, const char *reason)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s is not a sound zip archive: %s", zip->source.path, reason);
}

static flow_status read_at(flow_zip *zip, uint64_t offset, const char *what, void *to, uint64_t bytes)
{
  FLOW_TRY(flow_source_range(&zip->source, offset, bytes, FLOW_PLAIN));
  return flow_source_read(&zip->source, what, to, bytes);
}

/* ---- names ---------------------------------------------------------------------------------------------------------------------- */

/* Why a name may not be one, or NULL. Folders end with a slash. */
static const char *name_fault(const char *name)
{
  if (!*name) return "is empty";
  if (strlen(name) > MOST_NAME) return "is longer than 4,096 bytes";
  if (strchr(name, '\\')) return "has a backslash";
  if (*name == '/') return "is an absolute path";
  for (const char *part = name; *part;) {
    size_t length = strcspn(part, "/");
    if (length == 0) return "has an empty part";
    if ((length == 2 && memcmp(part, "..", 2) == 0) || (length == 1 && *part == '.')) return "has a part \".\" or \"..\"";
    part += length + (part[length] == '/');
  }
  return NULL;
}

flow_status flow_zip_check_name(const char *name)
{
  if (!name) return flow_fail(FLOW_INVALID_ARGUMENT, "the name of an archive's member is missing");
  const char *fault = name_fault(name);
  if (!fault) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "the name '%.200s' of an archive's member %s", name, fault);
}

/* ---- the central directory ---------------------------------------------------------------------------------------------------- */

/* Archives beyond 4 GB keep the real numbers in a second end record, which a locator in front of the first points to. No
 * locator in front: *directory and *end stay unchanged. Else *end becomes the place of the zip64 record, up to which
 * the directory must reach. */
static flow_status read_end64(flow_zip *zip, uint64_t *end, zip_directory *directory)
{
  unsigned char locator[LOCATOR_BYTES], record[END64_BYTES];
  if (*end < LOCATOR_BYTES) return FLOW_OK;
  uint64_t place = *end - LOCATOR_BYTES;
  FLOW_TRY(read_at(zip, place, "the zip64 locator", locator, sizeof locator));
  if (memcmp(locator, "PK\x06\x07", 4) != 0) return FLOW_OK;
  uint64_t offset = number(locator + 8, 8);
  FLOW_TRY(read_at(zip, offset, "the zip64 end record", record, sizeof record));
  uint64_t length = number(record + 4, 8);       /* of what follows these 12 bytes */
  if (memcmp(record, "PK\x06\x06", 4) != 0 || length < END64_BYTES - 12 || length > place || offset + 12 + length != place) {
    return fail_zip(zip, "its zip64 end record is damaged");
  }
  *directory = (zip_directory){ .entries = number(record + 32, 8), .bytes = number(record + 40, 8), .offset = number(record + 48, 8) };
  *end = offset;
  return FLOW_OK;
}

/* The end record is before a comment of unknown length: looked for from the end of the file. A comment may contain the
 * four bytes that begin an end record: only a record whose comment ends with the file counts, and the last one of those. */
static flow_status find_directory(flow_zip *zip, zip_directory *directory)
{
  uint64_t file_bytes = zip->source.file_bytes;
  uint64_t tail_bytes = file_bytes < END_BYTES + MOST_COMMENT ? file_bytes : END_BYTES + MOST_COMMENT;
  uint64_t tail_offset = file_bytes - tail_bytes, end_offset = 0;
  if (tail_bytes < END_BYTES) return fail_zip(zip, "it is too short");
  void *block;
  FLOW_TRY(flow_alloc(tail_bytes, &block));
  const unsigned char *tail = block, *end = NULL;
  flow_status status = read_at(zip, tail_offset, "the end of the archive", block, tail_bytes);
  for (uint64_t i = tail_bytes - END_BYTES + 1; status == FLOW_OK && !end && i-- > 0;) {
    if (memcmp(tail + i, "PK\x05\x06", 4) == 0 && i + END_BYTES + number(tail + i + 20, 2) == tail_bytes) end = tail + i;
  }
  if (status == FLOW_OK && !end) status = fail_zip(zip, "it has no directory at its end");
  if (status == FLOW_OK) {
    end_offset = tail_offset + (uint64_t)(end - tail);
    *directory = (zip_directory){ .entries = number(end + 10, 2), .bytes = number(end + 12, 4), .offset = number(end + 16, 4) };
    if (number(end + 4, 4) != 0) status = fail_zip(zip, "it is one of several parts");
  }
  flow_free(block);
  if (status == FLOW_OK) status = read_end64(zip, &end_offset, directory);
  if (status != FLOW_OK) return status;
  if (directory->bytes > end_offset || directory->offset != end_offset - directory->bytes) {
    return fail_zip(zip, "its directory is not where its end says");
  }
  if (directory->entries > directory->bytes / ENTRY_BYTES || directory->entries > MOST_MEMBERS) {
    return fail_zip(zip, "its directory has fewer entries than its end says");
  }
  return FLOW_OK;
}

/* Numbers of 2^32 - 1 stand for those of the extra field with tag 1: size, compressed size, offset, in this order. */
static flow_status apply_extra(const flow_zip *zip, const unsigned char *extra, uint64_t bytes, flow_zip_member *member)
{
  uint64_t *const wide[] = { &member->size, &member->compressed, &member->header };
  for (uint64_t i = 0; i + 4 <= bytes;) {
    uint64_t tag = number(extra + i, 2), length = number(extra + i + 2, 2), at = i + 4;
    if (length > bytes - at) return fail_zip(zip, "an extra field is damaged");
    i = at + length;
    for (int k = 0; tag == 1 && k < 3; k++) {
      if (*wide[k] != UINT32_MAX) continue;
      if (at + 8 > i) return fail_zip(zip, "a zip64 field is damaged");
      *wide[k] = number(extra + at, 8);
      at += 8;
    }
  }
  return FLOW_OK;
}

/* Takes the entry at *at out of the directory; its name goes to *names, which moves on. `names` has room: an entry takes
 * 46 bytes besides its name in the directory, whose size the block of names has. */
static flow_status parse_entry(flow_zip *zip, const unsigned char **at, const unsigned char *end, char **names)
{
  const unsigned char *record = *at;
  uint64_t left = (uint64_t)(end - record);
  if (left < ENTRY_BYTES || memcmp(record, "PK\x01\x02", 4) != 0) return fail_zip(zip, "its directory is damaged");
  uint64_t name_bytes = number(record + 28, 2), extra_bytes = number(record + 30, 2), comment_bytes = number(record + 32, 2);
  if (name_bytes + extra_bytes + comment_bytes > left - ENTRY_BYTES) return fail_zip(zip, "its directory is cut off");
  flow_zip_member member = {
    .name = *names, .flags = (unsigned)number(record + 8, 2), .method = (unsigned)number(record + 10, 2),
    .crc = (uint32_t)number(record + 16, 4), .compressed = number(record + 20, 4), .size = number(record + 24, 4),
    .header = number(record + 42, 4),
  };
  FLOW_TRY(apply_extra(zip, record + ENTRY_BYTES + name_bytes, extra_bytes, &member));
  memcpy(*names, record + ENTRY_BYTES, name_bytes);
  (*names)[name_bytes] = '\0';
  const char *fault = strlen(member.name) != name_bytes ? "has a zero byte" : name_fault(member.name);
  if (fault) return flow_fail(FLOW_CORRUPT_DATA, "%s: the name '%.200s' of a member %s", zip->source.path, member.name, fault);
  if (member.method == FLOW_ZIP_STORED && member.size != member.compressed && !(member.flags & ENCRYPTED)) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s: %s is stored, but has two sizes", zip->source.path, member.name);
  }
  *names += name_bytes + 1;
  *at += ENTRY_BYTES + name_bytes + extra_bytes + comment_bytes;
  zip->members[zip->count++] = member;
  return FLOW_OK;
}

/* Everything in the directory is inside one block, and names are copied into another of the same size, so a damaged number cannot ask
 * for more memory than the file is long. */
static flow_status read_directory(flow_zip *zip, const zip_directory *directory)
{
  void *block, *names;
  FLOW_TRY(flow_grow(&zip->members, sizeof *zip->members, (int)directory->entries, &zip->capacity));
  FLOW_TRY(flow_alloc(directory->bytes, &names));      /* an entry is longer than its name and a zero */
  zip->names = names;
  FLOW_TRY(flow_alloc(directory->bytes, &block));
  flow_status status = read_at(zip, directory->offset, "the directory", block, directory->bytes);
  const unsigned char *at = block, *end = at + directory->bytes;
  char *next_name = names;
  for (uint64_t i = 0; status == FLOW_OK && i < directory->entries; i++) status = parse_entry(zip, &at, end, &next_name);
  if (status == FLOW_OK && at != end) status = fail_zip(zip, "its directory has more entries than its end says");
  flow_free(block);
  return status;
}

/* ---- what the directory says against the rest of the file --------------------------------------------------------------------- */

/* A writer that did not know a number yet leaves 0 in the local header and says so by a flag; the number then follows the content. */
static int agrees(uint64_t local, uint64_t central, unsigned flags)
{
  return local == central || ((flags & SIZES_FOLLOW) && local == 0);
}

/* Compares the local header with the directory and finds the content. `block` takes HEADER_MOST bytes. One read gets all of a usual
 * header: archives of NumPy have thousands of members, and seeking takes its time. */
static flow_status check_local(flow_zip *zip, flow_zip_member *member, unsigned char *block)
{
  uint64_t length = strlen(member->name), left = zip->source.file_bytes - member->header, usual = LOCAL_BYTES + length + USUAL_EXTRA;
  if (member->header > zip->source.file_bytes || left < LOCAL_BYTES) left = LOCAL_BYTES;      /* that fails, and says so */
  uint64_t have = left < usual ? left : usual;
  FLOW_TRY(read_at(zip, member->header, "a member's header", block, have));
  uint64_t name_bytes = number(block + 26, 2), extra_bytes = number(block + 28, 2), extra = LOCAL_BYTES + name_bytes;
  flow_zip_member found = { .compressed = number(block + 18, 4), .size = number(block + 22, 4) };
  int same = memcmp(block, "PK\x03\x04", 4) == 0 && number(block + 8, 2) == member->method && name_bytes == length &&
             (number(block + 6, 2) & (ENCRYPTED | SIZES_FOLLOW)) == (member->flags & (ENCRYPTED | SIZES_FOLLOW));
  if (same) {
    if (extra + extra_bytes > have) FLOW_TRY(read_at(zip, member->header, "a member's header", block, extra + extra_bytes));
    same = memcmp(block + LOCAL_BYTES, member->name, name_bytes) == 0;
  }
  if (same) {
    FLOW_TRY(apply_extra(zip, block + extra, extra_bytes, &found));
    same = agrees(number(block + 14, 4), member->crc, member->flags) && agrees(found.compressed, member->compressed, member->flags) &&
           agrees(found.size, member->size, member->flags);
  }
  if (!same) return flow_fail(FLOW_CORRUPT_DATA, "%s: the header of %s contradicts the directory", zip->source.path, member->name);
  member->data = member->header + extra + extra_bytes;
  return FLOW_OK;
}

/* Order of places in the file. Two members at one place then overlap, which check_members refuses. */
static int compare_headers(const void *a, const void *b)
{
  const flow_zip_member *x = *(flow_zip_member *const *)a, *y = *(flow_zip_member *const *)b;
  return x->header < y->header ? -1 : x->header > y->header;
}

static int compare_names(const void *a, const void *b)
{
  return strcmp((*(flow_zip_member *const *)a)->name, (*(flow_zip_member *const *)b)->name);
}

/* Members one after the other, all before the directory; names once each. */
static flow_status check_members(flow_zip *zip, const zip_directory *directory)
{
  void *block;
  size_t count = (size_t)zip->count;
  FLOW_TRY(flow_alloc(count * sizeof(int), &block));
  zip->by_name = block;
  FLOW_TRY(flow_alloc(count * sizeof(flow_zip_member *) + HEADER_MOST, &block));
  flow_zip_member **sorted = block;
  unsigned char *scratch = (unsigned char *)block + count * sizeof *sorted;
  flow_status status = FLOW_OK;
  for (int i = 0; status == FLOW_OK && i < zip->count; i++) {
    sorted[i] = &zip->members[i];
    status = check_local(zip, sorted[i], scratch);
  }
  if (status != FLOW_OK) goto end;
  qsort(sorted, count, sizeof *sorted, compare_headers);
  for (int i = 0; i < zip->count; i++) {
    uint64_t next = i + 1 < zip->count ? sorted[i + 1]->header : directory->offset;
    if (sorted[i]->data > next || sorted[i]->compressed > next - sorted[i]->data) {
      status = flow_fail(FLOW_CORRUPT_DATA, "%s: %s overlaps what follows it", zip->source.path, sorted[i]->name);
      goto end;
    }
  }
  qsort(sorted, count, sizeof *sorted, compare_names);
  for (int i = 0; i < zip->count; i++) {
    zip->by_name[i] = (int)(sorted[i] - zip->members);
    if (i > 0 && strcmp(sorted[i]->name, sorted[i - 1]->name) == 0) {
      status = flow_fail(FLOW_CORRUPT_DATA, "%s has two members with the name %s", zip->source.path, sorted[i]->name);
      goto end;
    }
  }
end:
  flow_free(block);
  return status;
}

/* Everything that can be checked without reading contents is checked here: the end, the directory, each member's own header, names,
 * overlaps. On failure nothing stays open. */
flow_status flow_zip_open(const char *path, flow_zip *zip)
{
  zip_directory directory = { 0 };
  *zip = (flow_zip){ 0 };
  flow_status status = flow_source_open(path, &zip->source);
  if (status == FLOW_OK) status = find_directory(zip, &directory);
  if (status == FLOW_OK) status = read_directory(zip, &directory);
  if (status == FLOW_OK) status = check_members(zip, &directory);
  if (status != FLOW_OK) flow_zip_close(zip);
  return status;
}

/* Members that were found point into what is freed here. */
void flow_zip_close(flow_zip *zip)
{
  flow_source_close(&zip->source);
  flow_free(zip->members);
  flow_free(zip->by_name);
  flow_free(zip->names);
  zip->members = NULL;
  zip->by_name = NULL;
  zip->names = NULL;
  zip->count = zip->capacity = 0;
}

/* Borrowed from the archive; NULL: there is no such member. */
const flow_zip_member *flow_zip_find(const flow_zip *zip, const char *name)
{
  for (int low = 0, high = zip->count; low < high;) {
    int middle = low + (high - low) / 2, order = strcmp(name, zip->members[zip->by_name[middle]].name);
    if (order == 0) return &zip->members[zip->by_name[middle]];
    if (order < 0) high = middle;
    else low = middle + 1;
  }
  return NULL;
}

/* ---- a member -------------------------------------------------------------------------------------------------------------------- */

/* Sets the source to the member's content, inflated on the way, with its CRC-32 counted. One member at a time: the source has one
 * position. */
flow_status flow_zip_begin(flow_zip *zip, const flow_zip_member *member)
{
  const char *path = zip->source.path;
  if (member->flags & ENCRYPTED) return flow_fail(FLOW_UNSUPPORTED, "%s: %s is encrypted", path, member->name);
  if (member->method != FLOW_ZIP_STORED && member->method != FLOW_ZIP_DEFLATED) {
    return flow_fail(FLOW_UNSUPPORTED, "%s: %s is compressed by method %u; stored and deflated members are known", path, member->name,
                     member->method);
  }
  flow_coding coding = member->method == FLOW_ZIP_DEFLATED ? FLOW_DEFLATE : FLOW_PLAIN;
  FLOW_TRY(flow_source_range(&zip->source, member->data, member->compressed, coding));
  zip->source.wants_crc = 1;
  return FLOW_OK;
}

/* To be called when all of the member's bytes have been read: compares the length and the checksum. */
flow_status flow_zip_end(flow_zip *zip, const flow_zip_member *member)
{
  FLOW_TRY(flow_source_expect_end(&zip->source));
  if (zip->source.crc == member->crc) return FLOW_OK;
  return flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: the checksum of %s is wrong", zip->source.path, member->name);
}

/* Reads the whole member and throws it away. */
flow_status flow_zip_verify(flow_zip *zip, const flow_zip_member *member)
{
  void *block;
  FLOW_TRY(flow_alloc(VERIFY_BLOCK, &block));
  flow_status status = flow_zip_begin(zip, member);
  uint64_t left = member->size;
  while (status == FLOW_OK && left > 0) {
    uint64_t bytes = left < VERIFY_BLOCK ? left : VERIFY_BLOCK;
    status = flow_source_read(&zip->source, member->name, block, bytes);
    left -= bytes;
  }
  if (status == FLOW_OK) status = flow_zip_end(zip, member);
  flow_free(block);
  return status;
}
