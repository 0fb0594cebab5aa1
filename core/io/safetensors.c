/* safetensors.c: the format safetensors (https://github.com/huggingface/safetensors, "Format"): the length of the header in 8 bytes,
 * the header, a JSON object { name: { "dtype", "shape", "data_offsets": [begin, end] }, "__metadata__": { key: text } } that begins with
 * "{" and may end in blanks, and the contents: every byte of them belongs to exactly one tensor.
 *
 * A note of a path "p" is the metadata entry "p#key", one of the file itself "key". Checksums are notes of 8 hexadecimal digits: "crc32c"
 * of each tensor, and first of all entries "crc32c" of the file: of length and header, while those digits are 0. Other programs show them
 * as metadata and read on. */
#include "io/tensor_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "io/crc32c.h"

/* MOST_HEADER_BYTES is the format's own limit. MOST_VALUES: far above any model; see has_too_many_values. ALIGNMENT: the contents begin
 * on a multiple of 8, as the reference implementation writes them. */
enum { LENGTH_BYTES = 8, MOST_HEADER_BYTES = 100000000, MOST_VALUES = 4000000, ALIGNMENT = 8, DIGITS = 8 };

static const char *const dtype_names[FLOW_DTYPE_COUNT] = {
  [FLOW_FLOAT32] = "F32", [FLOW_FLOAT16] = "F16", [FLOW_BFLOAT16] = "BF16", [FLOW_FLOAT64] = "F64", [FLOW_INT8] = "I8",
  [FLOW_UINT8] = "U8", [FLOW_INT32] = "I32", [FLOW_INT64] = "I64", [FLOW_BOOL] = "BOOL",
};
/* Contents are in this order of dtypes, then of names, as the reference implementation writes them: each is aligned. */
static const int dtype_order[FLOW_DTYPE_COUNT] = {
  [FLOW_INT64] = 0, [FLOW_FLOAT64] = 1, [FLOW_FLOAT32] = 2, [FLOW_INT32] = 3, [FLOW_BFLOAT16] = 4, [FLOW_FLOAT16] = 5, [FLOW_INT8] = 6,
  [FLOW_UINT8] = 7, [FLOW_BOOL] = 8,
};

static const char metadata_name[] = "__metadata__", checksum_key[] = "crc32c";
static const char checksum_start[] = "{\"__metadata__\":{\"crc32c\":\"";       /* how a header with a checksum begins */

/* ---- reading --------------------------------------------------------------------------------------------------------------------- */

/* The format has no magic number: a plausible length and the brace that every header begins with must do. HDF5 is asked
 * before. */
static int recognizes(const unsigned char *head, uint64_t count)
{
  return count > LENGTH_BYTES && head[LENGTH_BYTES] == '{' && flow_little_endian(head, LENGTH_BYTES) <= MOST_HEADER_BYTES;
}

/* name: of the tensor or part that is wrong, cut where it is long, since the file may hold anything. */
static flow_status fail_header(const flow_tensor_file *file, const char *name, const char *reason)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s is not a complete safetensors file: '%.200s' %s", file->path, name, reason);
}

/* Whole numbers up to 2^53, which JSON's numbers are exact for. */
static int whole(const flow_json *value, uint64_t *out)
{
  if (!flow_json_is_number(value)) return 0;
  double number = value->number;
  if (!(number >= 0) || number > 0x1p53 || number != floor(number)) return 0;
  *out = (uint64_t)number;
  return 1;
}

/* Dtypes that the format has and the library lacks, such as F8_E4M3, are FLOW_UNSUPPORTED: the file is sound. */
static flow_status read_dtype(const flow_tensor_file *file, const flow_json *tensor, int *dtype)
{
  const char *name = flow_json_text(flow_json_member(tensor, "dtype"));
  if (!name) return fail_header(file, tensor->key, "has no dtype");
  for (*dtype = 0; *dtype < FLOW_DTYPE_COUNT; ++*dtype) {
    if (strcmp(dtype_names[*dtype], name) == 0) return FLOW_OK;
  }
  return flow_fail(FLOW_UNSUPPORTED, "%s: '%.200s' is of dtype %.20s; F16, BF16, F32, F64, I8, U8, I32, I64 and BOOL are known", file->path,
                   tensor->key, name);
}

/* One entry of the header: dtype, shape and the place of its bytes, counted from the end of the header. That the bytes fit the shape is
 * checked by flow_tensor_file_entry, that no two places overlap by check_contiguous. */
static flow_status read_tensor(flow_tensor_file *file, const flow_json *tensor, uint64_t contents)
{
  flow_tensor_entry entry = { 0 };
  uint64_t begin, end, size;
  if (!flow_json_is(tensor, FLOW_JSON_OBJECT)) return fail_header(file, tensor->key, "is not described by an object");
  FLOW_TRY(read_dtype(file, tensor, &entry.dtype));
  const flow_json *shape = flow_json_member(tensor, "shape");
  const flow_json *offsets = flow_json_member(tensor, "data_offsets"), *dim;
  if (!flow_json_is(shape, FLOW_JSON_LIST)) return fail_header(file, tensor->key, "has no shape");
  FLOW_JSON_EACH(dim, shape) {
    if (entry.rank == FLOW_MAX_RANK) {
      return flow_fail(FLOW_UNSUPPORTED, "%s: '%.200s' has more than %d axes", file->path, tensor->key, FLOW_MAX_RANK);
    }
    if (!whole(dim, &size)) return fail_header(file, tensor->key, "has a size that is not a whole number");
    entry.shape[entry.rank++] = (int64_t)size;
  }
  if (!flow_json_is(offsets, FLOW_JSON_LIST) || flow_json_count(offsets) != 2 || !whole(offsets->child, &begin) ||
      !whole(offsets->child->next, &end) || begin > end) {
    return fail_header(file, tensor->key, "needs two data_offsets, the second not below the first");
  }
  entry.offset = contents + begin;
  entry.bytes = end - begin;
  return flow_tensor_file_entry(file, tensor->key, &entry);
}

/* "p#key" is a note of the path p; the last # counts, since names of tensors may hold one. */
static flow_status read_notes(flow_tensor_file *file, const flow_json *metadata)
{
  const flow_json *note;
  if (!flow_json_is(metadata, FLOW_JSON_OBJECT)) return fail_header(file, metadata_name, "is not an object");
  FLOW_JSON_EACH(note, metadata) {
    if (!flow_json_is(note, FLOW_JSON_TEXT)) return fail_header(file, metadata_name, "holds something that is not text");
    char *mark = strrchr(note->key, '#');
    if (mark) *mark = '\0';                       /* the document is ours and is not read again */
    FLOW_TRY(flow_tensor_file_note(file, mark ? note->key : "", mark ? mark + 1 : note->key, note->text));
  }
  return FLOW_OK;
}

/* contents: the byte of the file at which the tensors' bytes begin. */
static flow_status read_document(flow_tensor_file *file, const flow_json *document, uint64_t contents)
{
  const flow_json *item;
  if (!flow_json_is(document, FLOW_JSON_OBJECT)) return fail_header(file, "the header", "is not a JSON object");
  FLOW_JSON_EACH(item, document) {
    if (strcmp(item->key, metadata_name) == 0) FLOW_TRY(read_notes(file, item));
    else FLOW_TRY(read_tensor(file, item, contents));
  }
  return FLOW_OK;
}

/* For qsort: by place; of two at one place the empty one comes first, as check_contiguous needs it. */
static int compare_offsets(const void *a, const void *b)
{
  const flow_tensor_entry *const *left = a, *const *right = b;
  if ((*left)->offset != (*right)->offset) return (*left)->offset < (*right)->offset ? -1 : 1;
  return ((*left)->bytes > (*right)->bytes) - ((*left)->bytes < (*right)->bytes);
}

/* No hole and no overlap: each content begins where the one before ends, the last ends with the file. */
static flow_status check_contiguous(const flow_tensor_file *file, uint64_t contents)
{
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_tensor_entry *) * (size_t)file->entry_count, &block));
  const flow_tensor_entry **entries = block;
  for (int i = 0; i < file->entry_count; i++) entries[i] = &file->entries[i];
  if (file->entry_count > 0) qsort(entries, (size_t)file->entry_count, sizeof *entries, compare_offsets);
  flow_status status = FLOW_OK;
  uint64_t end = contents;
  for (int i = 0; i < file->entry_count && status == FLOW_OK; end += entries[i++]->bytes) {
    if (entries[i]->offset != end) status = fail_header(file, entries[i]->name, "does not begin where the tensor before it ends");
  }
  if (status == FLOW_OK && end != file->offset + file->bytes) {
    status = flow_fail(FLOW_CORRUPT_DATA, "%s is not a complete safetensors file: it has %.0f bytes, its header says %.0f", file->path,
                       (double)file->bytes, (double)(end - file->offset));
  }
  flow_free(block);
  return status;
}

/* Nothing but the 8 digits of a checksum. */
static int parse_checksum(const char *text, uint32_t *crc)
{
  if (strspn(text, "0123456789abcdef") != DIGITS || text[DIGITS] != '\0') return 0;
  *crc = (uint32_t)strtoul(text, NULL, 16);
  return 1;
}

/* A checksum whose name is not that of a tensor is another program's note and stays one. */
static flow_status take_checksums(flow_tensor_file *file)
{
  FLOW_TRY(flow_tensor_file_sort(file));
  for (int i = 0; i < file->note_count; i++) {
    const flow_tensor_note *note = &file->notes[i];
    int index = strcmp(note->key, checksum_key) == 0 ? flow_tensor_file_find(file, note->path) : -1;
    if (index < 0) continue;
    if (!parse_checksum(note->text, &file->entries[index].crc)) return fail_header(file, note->path, "has an invalid checksum");
    file->entries[index].has_crc = 1;
  }
  return FLOW_OK;
}

/* `block` is the length, the header, and a NUL. The checksum was made while its own digits were 0, so they are set to 0 for the comparison
 * and put back. A header of another program has none, and passes. */
static flow_status check_header_checksum(const flow_tensor_file *file, char *block, uint64_t bytes)
{
  enum { START = sizeof checksum_start - 1 };
  char *header = block + LENGTH_BYTES, found[DIGITS + 1] = "", made[DIGITS + 1];
  if (bytes < LENGTH_BYTES + START + DIGITS || memcmp(header, checksum_start, START) != 0) return FLOW_OK;
  memcpy(found, header + START, DIGITS);
  memset(header + START, '0', DIGITS);
  snprintf(made, sizeof made, "%08" PRIx32, flow_crc32c(0, block, bytes));
  memcpy(header + START, found, DIGITS);
  if (strcmp(found, made) != 0) return flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: the checksum of its header is wrong", file->path);
  return FLOW_OK;
}

/* A JSON value takes many times its text in memory once it is parsed; how many there will be shows in the text. */
static int has_too_many_values(const char *text)
{
  int values = 0, quoted = 0;
  for (; *text && values <= MOST_VALUES; text++) {
    if (*text == '\\' && text[1]) text++;
    else if (*text == '"') quoted = !quoted;
    else if (!quoted) values += *text == ',' || *text == '{' || *text == '[';
  }
  return values > MOST_VALUES;
}

/* Everything is refused that the format refuses: data after the object, holes, overlaps, bytes that belong to no tensor. */
static flow_status parse_header(flow_tensor_file *file, const char *text, uint64_t bytes)
{
  if (has_too_many_values(text)) return fail_header(file, "the header", "holds more values than any model has");
  size_t end;
  flow_json *document;
  flow_status status = flow_json_read(text, bytes, &end, &document);
  if (status == FLOW_CORRUPT_DATA)
    return flow_fail(status, "%s is not a complete safetensors file: its header is not JSON from byte %.0f on", file->path,
                     (double)(LENGTH_BYTES + end));
  if (status != FLOW_OK) return flow_fail_prefix(status, "%s: the header: ", file->path);
  uint64_t contents = file->offset + LENGTH_BYTES + bytes;
  if (strspn(text + end, " ") != bytes - end) status = fail_header(file, "the header", "continues after its end");
  if (status == FLOW_OK) status = read_document(file, document, contents);
  flow_json_release(document);
  if (status == FLOW_OK) status = check_contiguous(file, contents);
  if (status == FLOW_OK) status = take_checksums(file);
  return status;
}

/* Eight bytes with the length of the header, and the header, an object of JSON. Its length is compared with the file's before memory is
 * taken for it. */
static flow_status read_index(flow_tensor_file *file)
{
  unsigned char length[LENGTH_BYTES];
  FLOW_TRY(flow_source_range(&file->source, file->offset, file->bytes, FLOW_PLAIN));
  FLOW_TRY(flow_source_read(&file->source, "the length of the header", length, sizeof length));
  uint64_t bytes = flow_little_endian(length, LENGTH_BYTES);
  if (bytes > MOST_HEADER_BYTES || bytes > file->bytes - LENGTH_BYTES) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is not a complete safetensors file: a header of %.0f bytes is in a file of %.0f", file->path,
                     (double)bytes, (double)file->bytes);
  }
  void *block;
  FLOW_TRY(flow_alloc(LENGTH_BYTES + bytes + 1, &block));
  char *header = (char *)block + LENGTH_BYTES;
  memcpy(block, length, LENGTH_BYTES);
  header[bytes] = '\0';
  flow_status status = flow_source_read(&file->source, "the header", header, bytes);
  if (status == FLOW_OK) status = check_header_checksum(file, block, LENGTH_BYTES + bytes);
  if (status == FLOW_OK) status = parse_header(file, header, bytes);
  flow_free(block);
  return status;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------------- */

/* Names are different (flow_tensor_writer_check), so that the order does not depend on qsort. */
static int compare_items(const void *a, const void *b)
{
  const flow_writer_item *const *left = a, *const *right = b;
  int order = dtype_order[(*left)->tensor->dtype] - dtype_order[(*right)->tensor->dtype];
  return order ? order : strcmp((*left)->name, (*right)->name);
}

/* The writer's items in the order of the file; flow_free releases the list. */
static flow_status order_items(const flow_tensor_writer *writer, const flow_writer_item ***out)
{
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_writer_item *) * (size_t)writer->item_count, &block));
  *out = block;
  for (int i = 0; i < writer->item_count; i++) (*out)[i] = &writer->items[i];
  if (writer->item_count > 0) qsort(*out, (size_t)writer->item_count, sizeof **out, compare_items);
  return FLOW_OK;
}

/* Whether a text is UTF-8 (RFC 3629), as JSON must be: other readers refuse the whole file else. */
static int is_utf8(const char *text)
{
  for (const unsigned char *at = (const unsigned char *)text; *at;) {
    int more = *at < 0x80 ? 0 : *at >= 0xc2 && *at < 0xe0 ? 1 : (*at & 0xf0) == 0xe0 ? 2 : *at >= 0xf0 && *at < 0xf5 ? 3 : -1;
    if (more < 0 || (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
        (*at == 0xf4 && at[1] > 0x8f)) return 0;
    for (at++; more > 0; more--, at++) {
      if ((*at & 0xc0) != 0x80) return 0;
    }
  }
  return 1;
}

/* What the format cannot hold is refused before anything is written. */
static flow_status check_names(const flow_tensor_writer *writer)
{
  for (int i = 0; i < writer->item_count; i++) {
    if (!is_utf8(writer->items[i].name)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "names in a safetensors file are UTF-8; '%s' is not", writer->items[i].name);
    }
    if (strcmp(writer->items[i].name, metadata_name) == 0) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "a tensor in a safetensors file cannot have the name '%s'", metadata_name);
    }
  }
  for (int i = 0; i < writer->note_count; i++) {
    const flow_tensor_note *note = &writer->notes[i];
    if (!is_utf8(note->path) || !is_utf8(note->key) || !is_utf8(note->text)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "notes in a safetensors file are UTF-8; '%s' of '%s' is not", note->key, note->path);
    }
    if (strchr(note->key, '#')) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "a note in a safetensors file cannot have the key '%s': '#' stands before keys of a path",
                       note->key);
    }
  }
  return FLOW_OK;
}

/* A note in the metadata, "path#key" or "key". A failure is that of memory, as are all of the functions below that build the document. */
static flow_status add_text(flow_json *object, const char *path, const char *key, const char *text)
{
  void *block;
  size_t size = strlen(path) + strlen(key) + 2;
  FLOW_TRY(flow_alloc(size, &block));
  snprintf(block, size, "%s%s%s", path, *path ? "#" : "", key);
  flow_json *added = flow_json_put_text(object, block, text);
  flow_free(block);
  return added ? FLOW_OK : FLOW_OUT_OF_MEMORY;
}

/* with_contents 0: 0 as checksum of each tensor, for the size. Else each tensor's bytes are brought to the host, which may fail, too. */
static flow_status add_checksums(flow_json *metadata, const flow_writer_item *const *items, int count, int with_contents)
{
  char digits[DIGITS + 1];
  for (int i = 0; i < count; i++) {
    uint32_t crc = 0;
    if (with_contents) FLOW_TRY(flow_tensor_content_crc(items[i]->tensor, &crc));
    snprintf(digits, sizeof digits, "%08" PRIx32, crc);
    FLOW_TRY(add_text(metadata, items[i]->name, checksum_key, digits));
  }
  return FLOW_OK;
}

/* The entry of one tensor, whose bytes begin at *offset, which moves to their end. A member that finds no memory marks the document
 * (flow_json_put), which flow_json_write then refuses. */
static flow_status add_tensor(flow_json *document, const flow_writer_item *item, uint64_t *offset)
{
  const flow_tensor *tensor = item->tensor;
  flow_json *object = flow_json_put_kind(document, item->name, FLOW_JSON_OBJECT);
  if (!object) return FLOW_OUT_OF_MEMORY;
  double shape[FLOW_MAX_RANK], offsets[2] = { (double)*offset };
  for (int axis = 0; axis < tensor->rank; axis++) shape[axis] = (double)tensor->shape[axis];
  *offset += flow_tensor_content_bytes(tensor);
  offsets[1] = (double)*offset;
  flow_json_put_text(object, "dtype", dtype_names[tensor->dtype]);
  flow_json_put(object, "shape", flow_json_make_numbers(shape, tensor->rank));
  return flow_json_put(object, "data_offsets", flow_json_make_numbers(offsets, 2)) ? FLOW_OK : FLOW_OUT_OF_MEMORY;
}

/* The header as JSON: metadata first, then tensors with the places of their bytes, without gaps. with_contents: checksums are computed now,
 * else their places are kept. */
static flow_status fill_document(flow_json *document, const flow_tensor_writer *writer, const flow_writer_item *const *items,
                                 int with_contents)
{
  if (writer->checksums || writer->note_count > 0) {
    flow_json *metadata = flow_json_put_kind(document, metadata_name, FLOW_JSON_OBJECT);
    if (!metadata) return FLOW_OUT_OF_MEMORY;
    if (writer->checksums) FLOW_TRY(add_text(metadata, "", checksum_key, "00000000"));
    for (int i = 0; i < writer->note_count; i++) {
      FLOW_TRY(add_text(metadata, writer->notes[i].path, writer->notes[i].key, writer->notes[i].text));
    }
    if (writer->checksums) FLOW_TRY(add_checksums(metadata, items, writer->item_count, with_contents));
  }
  uint64_t offset = 0;
  for (int i = 0; i < writer->item_count; i++) FLOW_TRY(add_tensor(document, items[i], &offset));
  return FLOW_OK;
}

/* The header as text, which flow_free releases. MOST_HEADER_BYTES holds for the padded header, so the last blanks are
 * taken off. A failure other than memory's is that of a tensor's bytes and keeps its message. */
static flow_status make_header(const flow_tensor_writer *writer, const flow_writer_item *const *items, int with_contents, char **out)
{
  flow_json *document = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  flow_status status = document ? fill_document(document, writer, items, with_contents) : FLOW_OUT_OF_MEMORY;
  *out = status == FLOW_OK ? flow_json_write(document) : NULL;
  flow_json_release(document);
  if (status != FLOW_OK && status != FLOW_OUT_OF_MEMORY) return status;
  if (!*out) return flow_fail(FLOW_OUT_OF_MEMORY, "out of memory for the header of %d tensors", writer->item_count);
  if (strlen(*out) <= MOST_HEADER_BYTES - ALIGNMENT) return FLOW_OK;
  flow_free(*out);
  *out = NULL;
  return flow_fail(FLOW_INVALID_ARGUMENT, "names and notes of %d tensors are too long for a safetensors file", writer->item_count);
}

/* The next multiple of the alignment: contents begin there, so that a reader may map the file and use them where they are. */
static uint64_t padded(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Length, header and blanks, with its checksum if there is to be one. */
static flow_status write_header(const flow_tensor_writer *writer, const char *header, flow_sink *sink)
{
  void *allocated;
  uint64_t text_bytes = strlen(header), bytes = padded(text_bytes);
  FLOW_TRY(flow_alloc(LENGTH_BYTES + bytes, &allocated));
  char *block = allocated;
  flow_put_little_endian(block, bytes, LENGTH_BYTES);
  memcpy(block + LENGTH_BYTES, header, text_bytes);
  memset(block + LENGTH_BYTES + text_bytes, ' ', bytes - text_bytes);
  if (writer->checksums) {
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%08" PRIx32, flow_crc32c(0, block, LENGTH_BYTES + bytes));
    memcpy(block + LENGTH_BYTES + sizeof checksum_start - 1, digits, DIGITS);
  }
  flow_status status = flow_sink_write(sink, block, LENGTH_BYTES + bytes);
  flow_free(block);
  return status;
}

/* The bytes of the whole file, exactly: the header with checksums of 0 has the length of the one with the right ones. */
static flow_status size_of(const flow_tensor_writer *writer, uint64_t *bytes)
{
  const flow_writer_item **items;
  char *header = NULL;
  FLOW_TRY(check_names(writer));
  FLOW_TRY(order_items(writer, &items));
  flow_status status = make_header(writer, items, 0, &header);
  if (status == FLOW_OK) *bytes = LENGTH_BYTES + padded(strlen(header));
  for (int i = 0; i < writer->item_count && status == FLOW_OK; i++) *bytes += flow_tensor_content_bytes(items[i]->tensor);
  flow_free(header);
  flow_free(items);
  return status;
}

/* Header first, so that a reader knows all places before it reads contents. The checksums take a first pass over all tensors. */
static flow_status write_all(const flow_tensor_writer *writer, flow_sink *sink)
{
  const flow_writer_item **items;
  char *header = NULL;
  FLOW_TRY(check_names(writer));
  FLOW_TRY(order_items(writer, &items));
  flow_status status = make_header(writer, items, 1, &header);
  if (status == FLOW_OK) status = write_header(writer, header, sink);
  for (int i = 0; i < writer->item_count && status == FLOW_OK; i++) status = flow_tensor_write_content(items[i]->tensor, sink);
  flow_free(header);
  flow_free(items);
  return status;
}

/* The record by which tensor_file.c finds this format. */
const flow_format flow_format_safetensors = { "safetensors", recognizes, read_index, size_of, write_all };
