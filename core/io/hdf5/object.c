/* object.c: object headers of version 1 and their messages: what a group or a dataset is, and its text attributes.
 *
 * A header (specification, IV.A.1.a) is a prefix and blocks of messages; the first block follows the prefix, further
 * ones are named by continuation messages. Each message is 8 bytes (type, size, flags) and contents. Nothing here is
 * trusted: each length is compared with what is left of the bytes around it, before it is used. */
#include "io/hdf5/hdf5.h"

#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"

enum {
  PREFIX_BYTES = 16, MESSAGE_BYTES = 8, MOST_CHUNKS = 1024, SHARED = 2, FAIL_IF_UNKNOWN = 0x80,
  FLOAT_CLASS = 1, STRING_CLASS = 3, VARIABLE_CLASS = 9,
  HEAP_HEADER_BYTES = 16, HEAP_OBJECTS = 65536, MOST_LIST = 1 << 20,
};

/* A message, or a part of it: `address` is where in the file bytes[0] is. */
typedef struct piece { const unsigned char *bytes; uint64_t count, address; } piece;

/* ---- the global heap: texts of variable length ------------------------------------------------------------------------------------ */

/* Goes over the objects of the heap in memory: sets where each begins (the first with an index counts), or takes that
 * back. reader->heap_objects has an entry for every 16-bit index, so that no index of the file leads out of it. Taking
 * back walks over the same objects as setting and stops where that did, also if it had failed. */
static flow_status index_heap(flow_hdf5_reader *reader, int set)
{
  const unsigned char *heap = reader->heap;
  for (uint64_t at = HEAP_HEADER_BYTES; at + 16 <= reader->heap_bytes;) {
    uint64_t index = flow_little_endian(heap + at, 2), bytes = flow_little_endian(heap + at + 8, 8);
    if (index == 0) break;                           /* the rest is free */
    if (bytes > reader->heap_bytes - at - 16) return flow_hdf5_damaged(reader, "an object of a global heap is larger than the heap");
    if (!set) reader->heap_objects[index] = 0;
    else if (reader->heap_objects[index] == 0) reader->heap_objects[index] = at;
    at += 16 + (bytes + 7) / 8 * 8;
  }
  return FLOW_OK;
}

static void drop_heap(flow_hdf5_reader *reader)
{
  if (reader->heap) index_heap(reader, 0);
  flow_free(reader->heap);
  reader->heap = NULL;
  reader->heap_address = FLOW_HDF5_NOWHERE;
}

void flow_hdf5_forget_heap(flow_hdf5_reader *reader)
{
  drop_heap(reader);
  flow_free(reader->heap_objects);
  reader->heap_objects = NULL;
}

/* One heap at a time is kept with an index of its objects: texts of a file are usually all in one, and a file that
 * alternates between two pays from its budget. On failure the heap counts as not loaded (heap_address), and the next
 * call or flow_hdf5_forget_heap drops what there is of it. */
static flow_status load_heap(flow_hdf5_reader *reader, uint64_t address)
{
  unsigned char header[HEAP_HEADER_BYTES];
  void *objects;
  if (address == FLOW_HDF5_NOWHERE) return flow_hdf5_damaged(reader, "a text is in no global heap");
  if (reader->heap_address == address) return FLOW_OK;
  drop_heap(reader);
  if (!reader->heap_objects) {
    FLOW_TRY(flow_alloc_zero(HEAP_OBJECTS * sizeof(uint64_t), &objects));
    reader->heap_objects = objects;
  }
  FLOW_TRY(flow_hdf5_fetch(reader, address, sizeof header, header));
  if (memcmp(header, "GCOL\1", 5) != 0) return flow_hdf5_damaged(reader, "a text is not in a global heap");
  reader->heap_bytes = flow_little_endian(header + 8, 8);
  if (reader->heap_bytes < HEAP_HEADER_BYTES) return flow_hdf5_damaged(reader, "a global heap is too short");
  FLOW_TRY(flow_hdf5_take(reader, address, reader->heap_bytes, &reader->heap));
  FLOW_TRY(index_heap(reader, 1));
  reader->heap_address = address;
  return FLOW_OK;
}

/* The caller frees *out. A zero byte inside would cut the text off for every reader of C strings. */
static flow_status copy_text(const flow_hdf5_reader *reader, const unsigned char *bytes, uint64_t count, char **out)
{
  void *block;
  if (memchr(bytes, 0, count)) return flow_hdf5_damaged(reader, "a text has a zero byte");
  FLOW_TRY(flow_alloc(count + 1, &block));
  memcpy(block, bytes, count);
  ((char *)block)[count] = '\0';
  *out = block;
  return FLOW_OK;
}

/* The text at `reference` (length, address of a global heap, index: 16 bytes) as a new, terminated text. */
static flow_status heap_text(flow_hdf5_reader *reader, const unsigned char *reference, char **out)
{
  uint64_t length = flow_little_endian(reference, 4), address = flow_little_endian(reference + 4, 8);
  uint64_t index = flow_little_endian(reference + 12, 4);
  if (length == 0) return copy_text(reader, reference, 0, out);
  FLOW_TRY(load_heap(reader, address));
  uint64_t at = index > 0 && index < HEAP_OBJECTS ? reader->heap_objects[index] : 0;
  if (at == 0) return flow_hdf5_damaged(reader, "a text is not in the global heap that it names");
  if (length > flow_little_endian(reader->heap + at + 8, 8)) return flow_hdf5_damaged(reader, "a text is longer than its place in a heap");
  const unsigned char *text = reader->heap + at + 16;
  if (text[length - 1] == 0) length--;               /* some writers count the end */
  return copy_text(reader, text, length, out);
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------------ */

/* Dimensions of a dataspace; *rank -1: it holds nothing at all (null). */
static flow_status read_dataspace(flow_hdf5_reader *reader, piece message, int *rank, int64_t *shape)
{
  const unsigned char *bytes = message.bytes;
  if (message.count < 4) return flow_hdf5_damaged(reader, "a dataspace is too short");
  int version = bytes[0], header = version == 1 ? 8 : 4;
  if (version != 1 && version != 2) return flow_hdf5_beyond(reader, "a dataspace of another version");
  if (bytes[1] > FLOW_MAX_RANK) return flow_fail(FLOW_UNSUPPORTED, "%s: %s has %d axes, at most %d are supported", reader->file->path,
                                                 reader->path, bytes[1], FLOW_MAX_RANK);
  *rank = version == 2 && bytes[3] == 2 ? -1 : bytes[1];
  if (message.count < (uint64_t)header + 8u * bytes[1]) return flow_hdf5_damaged(reader, "a dataspace is too short");
  for (int axis = 0; axis < *rank; axis++) {
    uint64_t size = flow_little_endian(bytes + header + 8 * axis, 8);
    if (size > INT64_MAX) return flow_hdf5_damaged(reader, "a dimension is beyond all bounds");
    shape[axis] = (int64_t)size;
  }
  return FLOW_OK;
}

/* Where a dataset's bytes are (HDF5 file format, IV.A.2.i): compact, in the message itself, or contiguous, somewhere in
 * the file. That the bytes are inside of the file is checked when the entry is made (tensor_file.c). The sizes of
 * versions 3 and 4 are the same for these two classes. */
static flow_status read_layout(flow_hdf5_reader *reader, piece message, flow_hdf5_object *object)
{
  const unsigned char *bytes = message.bytes;
  if (message.count < 4) return flow_hdf5_damaged(reader, "a layout is too short");
  if (bytes[0] != 3 && bytes[0] != 4) return flow_hdf5_beyond(reader, "a layout of another version");
  if (bytes[1] == 2) return flow_hdf5_beyond(reader, "a chunked dataset");
  if (bytes[1] > 2) return flow_hdf5_beyond(reader, "a virtual dataset");
  if (bytes[1] == 0) {                               /* compact: in the message itself */
    object->bytes = flow_little_endian(bytes + 2, 2);
    object->address = message.address + 4;
    if (object->bytes > message.count - 4) return flow_hdf5_damaged(reader, "a compact dataset is larger than its place");
  } else {
    if (message.count < 18) return flow_hdf5_damaged(reader, "a layout is too short");
    object->address = flow_little_endian(bytes + 2, 8);
    object->bytes = flow_little_endian(bytes + 10, 8);
  }
  object->has_layout = 1;
  return FLOW_OK;
}

/* Cuts `bytes` from the front of the message. padded: the part is followed by zeros up to a multiple of 8, as in
 * attributes of version 1. *out is valid on success only. */
static flow_status cut(const flow_hdf5_reader *reader, piece *message, uint64_t bytes, int padded, piece *out)
{
  *out = (piece){ message->bytes, bytes, message->address };
  if (padded) bytes = (bytes + 7) / 8 * 8;
  if (bytes > message->count) return flow_hdf5_damaged(reader, "an attribute is cut off");
  *message = (piece){ message->bytes + bytes, message->count - bytes, message->address + bytes };
  return FLOW_OK;
}

/* How many bytes each element of a text attribute takes; 0: it holds something else. */
static uint64_t text_bytes(piece type)
{
  int class = type.count >= 8 ? type.bytes[0] & 15 : -1;
  if (class == VARIABLE_CLASS && (type.bytes[1] & 15) == 1) return 16;
  return class == STRING_CLASS ? flow_little_endian(type.bytes + 4, 4) : 0;
}

/* A text out of an attribute's data; *out stays NULL if it holds something else. */
static flow_status read_text(flow_hdf5_reader *reader, piece type, piece data, char **out)
{
  uint64_t bytes = text_bytes(type), length = 0;
  if (bytes == 0) return FLOW_OK;
  if (bytes > data.count) return flow_hdf5_damaged(reader, "an attribute is cut off");
  if ((type.bytes[0] & 15) == VARIABLE_CLASS) return heap_text(reader, data.bytes, out);
  while (length < bytes && data.bytes[length]) length++;
  return copy_text(reader, data.bytes, length, out);
}

/* A list of texts as one text, each on a line; *out stays NULL if it holds something else. */
static flow_status read_texts(flow_hdf5_reader *reader, piece type, piece data, int64_t count, char **out)
{
  const uint64_t bytes = text_bytes(type);
  int length = 0, capacity = 0;
  char *lines = NULL;
  flow_status status = FLOW_OK;
  if (bytes == 0 || count == 0) return FLOW_OK;
  if ((uint64_t)count > data.count / bytes) return flow_hdf5_damaged(reader, "an attribute is cut off");
  for (int64_t i = 0; i < count && status == FLOW_OK; i++) {
    char *text = NULL;
    status = read_text(reader, type, (piece){ data.bytes + i * (int64_t)bytes, bytes, data.address }, &text);
    size_t more = text ? strlen(text) : 0;
    if (status == FLOW_OK && more > MOST_LIST - (size_t)length) status = flow_hdf5_damaged(reader, "a list of texts is too long");
    if (status == FLOW_OK) status = flow_grow(&lines, 1, length + (int)more + 1, &capacity);
    if (status == FLOW_OK && more > 0) memcpy(lines + length, text, more);
    if (status == FLOW_OK) length += (int)more + 1;
    if (status == FLOW_OK) lines[length - 1] = i + 1 < count ? '\n' : '\0';
    flow_free(text);
  }
  if (status == FLOW_OK) *out = lines;
  else flow_free(lines);
  return status;
}

/* Texts become notes, lists of texts too, in lines; numbers as attributes mean nothing here. Sizes of name, datatype and
 * dataspace come first (IV.A.2.m), then the three, then the data, which reaches to the end of the message. */
static flow_status read_attribute(flow_hdf5_reader *reader, piece message, flow_hdf5_object *object)
{
  const unsigned char *bytes = message.bytes;
  piece header, name, type, space, data;
  int rank;
  int64_t shape[FLOW_MAX_RANK];
  char *text = NULL;
  if (message.count < 8) return flow_hdf5_damaged(reader, "an attribute is cut off");
  int version = bytes[0], padded = version == 1;
  if (version < 1 || version > 3) return flow_hdf5_beyond(reader, "an attribute of another version");
  if (version > 1 && (bytes[1] & 3)) return flow_hdf5_beyond(reader, "an attribute with a shared datatype");
  FLOW_TRY(cut(reader, &message, version == 3 ? 9 : 8, 0, &header));
  FLOW_TRY(cut(reader, &message, flow_little_endian(bytes + 2, 2), padded, &name));
  FLOW_TRY(cut(reader, &message, flow_little_endian(bytes + 4, 2), padded, &type));
  FLOW_TRY(cut(reader, &message, flow_little_endian(bytes + 6, 2), padded, &space));
  data = message;
  if (name.count < 2 || name.bytes[name.count - 1] != 0 || memchr(name.bytes, 0, name.count - 1)) {
    return flow_hdf5_damaged(reader, "an attribute has no proper name");
  }
  FLOW_TRY(read_dataspace(reader, space, &rank, shape));
  if (rank == 0) FLOW_TRY(read_text(reader, type, data, &text));
  if (rank == 1) FLOW_TRY(read_texts(reader, type, data, shape[0], &text));
  if (!text) return FLOW_OK;
  const char *key = (const char *)name.bytes;
  if (strcmp(key, "dtype") == 0 && strcmp(text, "bfloat16") == 0) object->is_bfloat16 = 1;
  flow_status status = flow_tensor_file_note(reader->file, reader->path, key, text);
  flow_free(text);
  return status;
}

/* Message 0x0003 (HDF5 file format, IV.A.2.d). Another number type is a limit of this reader, another class is refused: the two errors
 * differ. */
static flow_status read_datatype(flow_hdf5_reader *reader, piece message, flow_hdf5_object *object)
{
  char found[96];
  object->dtype = flow_hdf5_dtype(message.bytes, message.count);
  object->has_type = 1;
  if (object->dtype != FLOW_HDF5_OTHER) return FLOW_OK;
  flow_text text = flow_text_into(found, sizeof found);
  flow_text_add(&text, "a dataset of %s", flow_hdf5_type_name(message.bytes, message.count));
  int is_number = message.count >= 8 && (message.bytes[0] & 15) <= FLOAT_CLASS;
  return is_number ? flow_hdf5_beyond(reader, found) : flow_hdf5_refused(reader, found);
}

/* One message of an object's header (HDF5 file format, IV.A.2). What Keras never writes is told as "beyond", with its name, so that a
 * user knows what to ask the plugin for; unknown messages are passed over unless they forbid it. */
static flow_status read_message(flow_hdf5_reader *reader, int type, int flags, piece message, flow_hdf5_object *object)
{
  int known = type == FLOW_HDF5_DATASPACE || type == FLOW_HDF5_DATATYPE || type == FLOW_HDF5_LAYOUT || type == FLOW_HDF5_ATTRIBUTE ||
              type == FLOW_HDF5_SYMBOL_TABLE;
  if (known && (flags & SHARED)) return flow_hdf5_beyond(reader, "a message that is shared between objects");
  switch (type) {
  case FLOW_HDF5_DATASPACE:
    object->has_space = 1;
    FLOW_TRY(read_dataspace(reader, message, &object->rank, object->shape));
    return object->rank < 0 ? flow_hdf5_refused(reader, "a dataset without a shape") : FLOW_OK;
  case FLOW_HDF5_DATATYPE: return read_datatype(reader, message, object);
  case FLOW_HDF5_LAYOUT: return read_layout(reader, message, object);
  case FLOW_HDF5_ATTRIBUTE: return read_attribute(reader, message, object);
  case FLOW_HDF5_SYMBOL_TABLE:
    if (message.count < 16) return flow_hdf5_damaged(reader, "a group is cut off");
    object->is_group = 1;
    object->tree = flow_little_endian(message.bytes, 8);
    object->heap = flow_little_endian(message.bytes + 8, 8);
    return FLOW_OK;
  case FLOW_HDF5_LINK_INFO:
  case FLOW_HDF5_LINK: return flow_hdf5_beyond(reader, "a group of the new style");
  case FLOW_HDF5_EXTERNAL: return flow_hdf5_beyond(reader, "a dataset whose content is in other files");
  case FLOW_HDF5_FILTERS: return flow_hdf5_beyond(reader, "a compressed dataset");
  case FLOW_HDF5_ATTRIBUTE_INFO: return flow_hdf5_beyond(reader, "attributes of the new style");
  default: return flags & FAIL_IF_UNKNOWN ? flow_hdf5_beyond(reader, "a message of an unknown kind") : FLOW_OK;
  }
}

typedef struct chunk { uint64_t address, bytes; } chunk;

/* Reads the messages of one part of a header; parts that it continues in are added to the list. Messages of one block. The list of
 * blocks grows by continuation messages; it is bounded (MOST_CHUNKS), and each block is paid from the budget, so that blocks which refer
 * to each other end. */
static flow_status read_chunk(flow_hdf5_reader *reader, chunk where, chunk *chunks, int *chunk_count, flow_hdf5_object *object)
{
  unsigned char *block;
  FLOW_TRY(flow_hdf5_take(reader, where.address, where.bytes, &block));
  flow_status status = FLOW_OK;
  for (uint64_t at = 0; status == FLOW_OK && at < where.bytes;) {
    const unsigned char *header = block + at;
    uint64_t bytes = where.bytes - at >= MESSAGE_BYTES ? flow_little_endian(header + 2, 2) : UINT64_MAX;
    if (where.bytes - at < MESSAGE_BYTES || bytes > where.bytes - at - MESSAGE_BYTES) {
      status = flow_hdf5_damaged(reader, "its header is cut off");
      break;
    }
    piece message = { header + MESSAGE_BYTES, bytes, where.address + at + MESSAGE_BYTES };
    int type = (int)flow_little_endian(header, 2);
    if (type != FLOW_HDF5_CONTINUATION) {
      status = read_message(reader, type, header[4], message, object);
    } else if (bytes < 16 || *chunk_count == MOST_CHUNKS) {
      status = flow_hdf5_damaged(reader, "its header continues in too many places");
    } else {
      chunks[(*chunk_count)++] = (chunk){ flow_little_endian(message.bytes, 8), flow_little_endian(message.bytes + 8, 8) };
    }
    at += MESSAGE_BYTES + bytes;
  }
  flow_free(block);
  return status;
}

/* *out is what the messages said together. Which of them a group or a dataset must have is for the caller to check
 * (read_at). */
flow_status flow_hdf5_read_object(flow_hdf5_reader *reader, uint64_t address, flow_hdf5_object *out)
{
  unsigned char prefix[PREFIX_BYTES];
  void *block;
  *out = (flow_hdf5_object){ 0 };
  FLOW_TRY(flow_hdf5_fetch(reader, address, sizeof prefix, prefix));
  if (memcmp(prefix, "OHDR", 4) == 0) return flow_hdf5_beyond(reader, "an object header of the new style");
  if (prefix[0] != 1 || prefix[1] != 0) return flow_hdf5_damaged(reader, "there is no object header where its link points to");
  FLOW_TRY(flow_alloc(MOST_CHUNKS * sizeof(chunk), &block));
  chunk *chunks = block;
  int count = 1;
  chunks[0] = (chunk){ address + PREFIX_BYTES, flow_little_endian(prefix + 8, 4) };
  flow_status status = FLOW_OK;
  for (int i = 0; status == FLOW_OK && i < count; i++) status = read_chunk(reader, chunks[i], chunks, &count, out);
  flow_free(block);
  return status;
}
