/* tensor_file.c: files of named tensors, whatever their format: the index while it is read, and the contents after it.
 *
 * flow_tensor_file_open finds the bytes (a file, or a stored member of a zip), asks the formats whose they are, and lets
 * one read the index: it calls flow_tensor_file_entry, _note and _group, which check and copy. Afterwards the index does
 * not change; contents are read one by one from the source, by one thread at a time, since the source has one position. */
#include "io/tensor_file.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "io/crc32c.h"
#include "io/zip.h"
#include "tensor/mirrors.h"

/* PIECE_BYTES: what is read at a time where only the checksum counts. */
enum { MOST_ENTRIES = 1000000, HEAD_BYTES = 16, PIECE_BYTES = 1 << 20 };

/* Told apart by their first bytes, in this order. HDF5 first: its signature is certain, while safetensors has none. */
static const flow_format *const formats[] = { &flow_format_hdf5, &flow_format_safetensors };
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

/* NULL: no format has this name. */
const flow_format *flow_format_find(const char *name)
{
  for (int i = 0; i < FORMAT_COUNT; i++) {
    if (strcmp(formats[i]->name, name) == 0) return formats[i];
  }
  return NULL;
}

/* ---- the index ---------------------------------------------------------------------------------------------------------------- */

/* Called for every entry of an index before anything is read. An entry of a trusted file has no place in the file: libhdf5 finds it. */
static flow_status check_entry(const flow_tensor_file *file, const char *name, const flow_tensor_entry *facts)
{
  if (file->entry_count == MOST_ENTRIES) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s has more than %d tensors", file->path, MOST_ENTRIES);
  }
  if (flow_check_shape(name, facts->dtype, facts->rank, facts->shape) != FLOW_OK) {
    return flow_fail_prefix(FLOW_CORRUPT_DATA, "%s is damaged: ", file->path);
  }
  uint64_t bytes = (uint64_t)flow_shape_size(facts->rank, facts->shape) * (uint64_t)flow_dtype_size(facts->dtype);
  if (bytes != facts->bytes) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: '%s' takes %.0f bytes, its shape %s of %s %.0f", file->path, name,
                     (double)facts->bytes, flow_shape_text(facts->rank, facts->shape), flow_dtype_name(facts->dtype), (double)bytes);
  }
  if (bytes == 0 || file->trusted) return FLOW_OK;
  if (facts->offset < file->offset || facts->offset - file->offset > file->bytes || bytes > file->bytes - (facts->offset - file->offset)) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is cut off or damaged: '%s' is said to take %.0f bytes from byte %.0f on, of %.0f", file->path,
                     name, (double)bytes, (double)facts->offset, (double)(file->offset + file->bytes));
  }
  return FLOW_OK;
}

/* Called by the formats while they read an index. The name is copied; *facts is checked against the size of the file first. */
flow_status flow_tensor_file_entry(flow_tensor_file *file, const char *name, const flow_tensor_entry *facts)
{
  FLOW_TRY(check_entry(file, name, facts));
  FLOW_TRY(flow_grow(&file->entries, sizeof *file->entries, file->entry_count + 1, &file->entry_capacity));
  char *copy = flow_duplicate_text(name);
  if (!copy) return FLOW_OUT_OF_MEMORY;
  flow_tensor_entry *entry = &file->entries[file->entry_count++];
  *entry = *facts;
  entry->name = copy;
  return FLOW_OK;
}

void flow_tensor_note_free(flow_tensor_note *note)
{
  flow_free(note->path);
  flow_free(note->key);
  flow_free(note->text);
}

/* Appends to a list of a reader or a writer, which owns the copies. After a failure the list is unchanged. */
flow_status flow_tensor_notes_add(flow_tensor_note **notes, int *count, int *capacity, const char *path, const char *key, const char *text)
{
  FLOW_TRY(flow_grow(notes, sizeof **notes, *count + 1, capacity));
  flow_tensor_note note = { flow_duplicate_text(path), flow_duplicate_text(key), flow_duplicate_text(text) };
  if (!note.path || !note.key || !note.text) {
    flow_tensor_note_free(&note);
    return FLOW_OUT_OF_MEMORY;
  }
  (*notes)[(*count)++] = note;
  return FLOW_OK;
}

/* As flow_tensor_notes_add, for paths of groups. */
flow_status flow_tensor_groups_add(char ***groups, int *count, int *capacity, const char *path)
{
  FLOW_TRY(flow_grow(groups, sizeof **groups, *count + 1, capacity));
  char *copy = flow_duplicate_text(path);
  if (!copy) return FLOW_OUT_OF_MEMORY;
  (*groups)[(*count)++] = copy;
  return FLOW_OK;
}

/* For formats that read an index: a text beside the tensors, at a path of the file, "" for its root. */
flow_status flow_tensor_file_note(flow_tensor_file *file, const char *path, const char *key, const char *text)
{
  return flow_tensor_notes_add(&file->notes, &file->note_count, &file->note_capacity, path, key, text);
}

/* For formats that have groups: a path that exists without being a tensor. */
flow_status flow_tensor_file_group(flow_tensor_file *file, const char *path)
{
  return flow_tensor_groups_add(&file->groups, &file->group_count, &file->group_capacity, path);
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(((const flow_named_place *)a)->name, ((const flow_named_place *)b)->name);
}

/* Sorts in place. Returns a name that occurs twice, NULL if there is none. */
const char *flow_sort_names(flow_named_place *names, int count)
{
  if (count > 0) qsort(names, (size_t)count, sizeof *names, compare_names);
  for (int i = 1; i < count; i++) {
    if (strcmp(names[i - 1].name, names[i].name) == 0) return names[i].name;
  }
  return NULL;
}

/* Makes the order by name that flow_tensor_file_find searches; entries keep their places. A second call does nothing: safetensors needs the
 * order while it reads its notes. FLOW_CORRUPT_DATA: two tensors have one name. */
flow_status flow_tensor_file_sort(flow_tensor_file *file)
{
  if (file->by_name) return FLOW_OK;
  void *block, *order;
  FLOW_TRY(flow_alloc(sizeof(flow_named_place) * (size_t)file->entry_count, &block));
  flow_named_place *names = block;
  flow_status status = flow_alloc(sizeof(int) * (size_t)file->entry_count, &order);
  if (status == FLOW_OK) {
    file->by_name = order;
    for (int i = 0; i < file->entry_count; i++) names[i] = (flow_named_place){ file->entries[i].name, i };
    const char *twice = flow_sort_names(names, file->entry_count);
    if (twice) status = flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: it has two tensors '%s'", file->path, twice);
    for (int i = 0; i < file->entry_count; i++) file->by_name[i] = names[i].place;
  }
  flow_free(block);
  return status;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------ */

/* The bytes that hold the format: the whole file, or a stored member of an archive, whose checksum is compared before
 * any of it is believed. The archive is closed again: reading goes on through file->source, which has the same file
 * open, from file->offset on. */
static flow_status locate(flow_tensor_file *file, const char *member)
{
  flow_zip zip;
  file->bytes = file->source.file_bytes;
  if (!member) return FLOW_OK;
  FLOW_TRY(flow_zip_open(file->path, &zip));
  const flow_zip_member *found = flow_zip_find(&zip, member);
  flow_status status = FLOW_OK;
  if (!found) status = flow_fail(FLOW_NOT_FOUND, "%s has no member '%s'", file->path, member);
  else if (found->method != FLOW_ZIP_STORED) {
    status = flow_fail(FLOW_UNSUPPORTED, "%s: %s is compressed, but is read in place: store it, as Keras does", file->path, member);
  }
  if (status == FLOW_OK) status = flow_zip_verify(&zip, found);
  if (status == FLOW_OK) {
    file->offset = found->data;
    file->bytes = found->size;
  }
  flow_zip_close(&zip);
  return status;
}

/* The formats are asked in their order whether the first HEAD_BYTES bytes are theirs; the first that says yes reads the index. */
static flow_status read_index(flow_tensor_file *file)
{
  unsigned char head[HEAD_BYTES];
  uint64_t count;
  FLOW_TRY(flow_source_range(&file->source, file->offset, file->bytes, FLOW_PLAIN));
  FLOW_TRY(flow_source_read_some(&file->source, head, sizeof head, &count));
  for (int i = 0; i < FORMAT_COUNT; i++) {
    if (!formats[i]->recognizes(head, count)) continue;
    FLOW_TRY(formats[i]->read_index(file));
    return flow_tensor_file_sort(file);
  }
  return flow_fail(FLOW_CORRUPT_DATA, "%s is not a file of tensors (HDF5 as Keras writes it, or safetensors)", file->path);
}

/* The file, or a member of an archive, with its index read and checked; contents are read later, from the same open
 * file. member NULL: the path is the file itself. On failure *out is NULL and nothing stays open. */
static flow_status open_file(const char *path, const char *member, int trusted, flow_tensor_file **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_tensor_file_open: out is NULL");
  *out = NULL;
  if (!path || !*path) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a file of tensors is missing");
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor_file), &block));
  flow_tensor_file *file = block;
  file->magic = FLOW_TENSOR_FILE_MAGIC;
  file->path = flow_duplicate_text(path);
  flow_status status = file->path ? flow_source_open(file->path, &file->source) : FLOW_OUT_OF_MEMORY;
  if (status == FLOW_OK && trusted) {
    status = flow_trusted_open(file, member);
    if (status == FLOW_OK) status = flow_tensor_file_sort(file);
  } else if (status == FLOW_OK) {
    status = locate(file, member);
    if (status == FLOW_OK) status = read_index(file);
  }
  if (status != FLOW_OK) {
    flow_tensor_file_release(file);
    return status;
  }
  *out = file;
  return FLOW_OK;
}

/* For files of any origin: nothing in them is trusted. FLOW_NOT_FOUND: no such file or member; FLOW_CORRUPT_DATA: the file is damaged or is
 * of no known format; FLOW_UNSUPPORTED: it is sound, but uses what this reader does not know. */
flow_status flow_tensor_file_open(const char *path, const char *member, flow_tensor_file **out)
{
  return open_file(path, member, 0, out);
}

/* The checked reader first; only what it does not know (FLOW_UNSUPPORTED) goes to libhdf5. A damaged file does not. */
flow_status flow_tensor_file_open_trusted(const char *path, const char *member, flow_tensor_file **out)
{
  flow_status status = open_file(path, member, 0, out);
  return status == FLOW_UNSUPPORTED ? open_file(path, member, 1, out) : status;
}

/* Also for a file that was opened half-way. Tensors that were read are the caller's and stay. */
void flow_tensor_file_release(flow_tensor_file *file)
{
  if (!file || file->magic != FLOW_TENSOR_FILE_MAGIC) return;
  file->magic = FLOW_TENSOR_DEAD;
  flow_source_close(&file->source);
  flow_trusted_close(file->trusted);
  for (int i = 0; i < file->entry_count; i++) flow_free(file->entries[i].name);
  for (int i = 0; i < file->note_count; i++) flow_tensor_note_free(&file->notes[i]);
  for (int i = 0; i < file->group_count; i++) flow_free(file->groups[i]);
  flow_free(file->entries);
  flow_free(file->by_name);
  flow_free(file->notes);
  flow_free(file->groups);
  flow_free(file->path);
  flow_free(file);
  flow_memory_trim();        /* a model that has been read is there to stay, not what was in its place while it was made */
}

/* The place of the entry in the order of the file, -1: there is none. Binary search: a model with ten thousand tensors asks for each. */
int flow_tensor_file_find(const flow_tensor_file *file, const char *name)
{
  if (!file || file->magic != FLOW_TENSOR_FILE_MAGIC || !name || !file->by_name) return -1;
  int low = 0, high = file->entry_count;
  while (low < high) {
    int middle = low + (high - low) / 2, place = file->by_name[middle];
    int order = strcmp(file->entries[place].name, name);
    if (order == 0) return place;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return -1;
}

/* ---- contents --------------------------------------------------------------------------------------------------------------------- */

/* Tensors of other programs have no checksum, and pass. */
static flow_status check_content(const flow_tensor_file *file, const flow_tensor_entry *entry, uint32_t crc)
{
  if (!entry->has_crc || crc == entry->crc) return FLOW_OK;
  return flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: the checksum of '%s' is wrong", file->path, entry->name);
}

/* A bool is stored as a byte; any but 0 is true. */
static void make_truths(unsigned char *bytes, uint64_t count)
{
  for (uint64_t i = 0; i < count; i++) bytes[i] = bytes[i] != 0;
}

/* Checksums are compared before a tensor is given away; flow_tensor_file_read_into may have changed its target by then.
 * entry->bytes are written at most, which check_entry has compared with the shape: the caller's memory has as many. */
static flow_status read_content(flow_tensor_file *file, const flow_tensor_entry *entry, void *to)
{
  if (entry->bytes == 0) return check_content(file, entry, 0);
  if (file->trusted) return flow_trusted_read(file, entry, to);
  FLOW_TRY(flow_source_range(&file->source, entry->offset, entry->bytes, FLOW_PLAIN));
  FLOW_TRY(flow_source_read(&file->source, entry->name, to, entry->bytes));
  FLOW_TRY(check_content(file, entry, entry->has_crc ? flow_crc32c(0, to, entry->bytes) : 0));
  if (entry->dtype == FLOW_BOOL) make_truths(to, entry->bytes);
  return FLOW_OK;
}

/* Borrowed from the file. */
static flow_status entry_at(const flow_tensor_file *file, int index, const flow_tensor_entry **entry)
{
  if (!file || file->magic != FLOW_TENSOR_FILE_MAGIC) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the file of tensors is NULL or was closed");
  }
  if (index < 0 || index >= file->entry_count) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s has %d tensors, number %d (from 0) was asked for", file->path, file->entry_count, index);
  }
  *entry = &file->entries[index];
  return FLOW_OK;
}

/* A new tensor on the host, the caller's. The shape was checked when the index was read, so that the memory it takes is never more than the
 * file holds. */
flow_status flow_tensor_file_read(flow_tensor_file *file, int index, flow_tensor **out)
{
  const flow_tensor_entry *entry;
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_tensor_file_read: out is NULL");
  *out = NULL;
  FLOW_TRY(entry_at(file, index, &entry));
  flow_tensor *tensor;
  FLOW_TRY(flow_tensor_new_uninitialized(entry->dtype, entry->rank, entry->shape, &tensor));
  flow_status status = read_content(file, entry, tensor->data);
  if (status != FLOW_OK) {
    flow_tensor_release(tensor);
    return status;
  }
  *out = tensor;
  return FLOW_OK;
}

/* Straight into the tensor where it is on the host and contiguous; by way of a copy elsewhere. The tensor counts as
 * written also when reading fails: what it holds is then undefined. */
flow_status flow_tensor_file_read_into(flow_tensor_file *file, int index, flow_tensor *tensor)
{
  const flow_tensor_entry *entry;
  FLOW_TRY(entry_at(file, index, &entry));
  FLOW_TRY(flow_check_concrete(entry->name, tensor));
  if (tensor->dtype != entry->dtype || !flow_shape_equal(tensor->rank, tensor->shape, entry->rank, entry->shape)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "'%s' of %s is %s %s, but should go into %s %s", entry->name, file->path,
                     flow_dtype_name(entry->dtype), flow_shape_text(entry->rank, entry->shape), flow_dtype_name(tensor->dtype),
                     flow_shape_text(tensor->rank, tensor->shape));
  }
  flow_storage_written(tensor->storage);
  if (!flow_tensor_place(tensor) && flow_tensor_is_contiguous(tensor)) return read_content(file, entry, tensor->data);
  flow_tensor *packed;
  FLOW_TRY(flow_tensor_file_read(file, index, &packed));
  flow_status status = flow_tensor_copy(tensor, packed);
  flow_tensor_release(packed);
  return status;
}

/* `piece` has PIECE_BYTES bytes; nothing is kept of what is read. */
static flow_status verify_entry(flow_tensor_file *file, const flow_tensor_entry *entry, void *piece)
{
  uint32_t crc = 0;
  FLOW_TRY(flow_source_range(&file->source, entry->offset, entry->bytes, FLOW_PLAIN));
  for (uint64_t left = entry->bytes; left > 0;) {
    uint64_t bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
    FLOW_TRY(flow_source_read(&file->source, entry->name, piece, bytes));
    if (entry->has_crc) crc = flow_crc32c(crc, piece, bytes);
    left -= bytes;
  }
  return check_content(file, entry, crc);
}

/* Reads all contents once. A tensor without a checksum is only shown to be there in full. Files that go through libhdf5
 * are passed over: there is nothing to compare their contents with. */
flow_status flow_tensor_file_verify(flow_tensor_file *file)
{
  if (!file || file->magic != FLOW_TENSOR_FILE_MAGIC) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the file of tensors is NULL or was closed");
  }
  void *piece;
  FLOW_TRY(flow_alloc(PIECE_BYTES, &piece));
  flow_status status = FLOW_OK;
  for (int i = 0; i < file->entry_count && status == FLOW_OK; i++) {
    if (file->entries[i].bytes > 0 && !file->trusted) status = verify_entry(file, &file->entries[i], piece);
  }
  flow_free(piece);
  return status;
}
