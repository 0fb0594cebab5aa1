/* read.c: the index of an HDF5 file: the superblock, and from its root group on all groups and datasets.
 *
 * The walk goes down from the root: read_at reads an object's header, read_group the group's names (a local heap) and
 * its B-tree, whose leaves are symbol nodes with the links, follow each link, which ends in read_at again. So the
 * recursion is as deep as groups are nested, times the levels of a B-tree; both are bounded. What is found goes to
 * flow_tensor_file_entry and its relatives, under reader->path. */
#include "io/hdf5/hdf5.h"

#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"

enum {
  SUPERBLOCK_BYTES = 96, NODE_BYTES = 24, HEAP_BYTES = 32, SYMBOLS_BYTES = 8, SYMBOL_BYTES = 40, SOFT_LINK = 2, MOST_LEVELS = 16,
  BUDGET_FACTOR = 16, LEAST_BUDGET = 1 << 16,
};

flow_status flow_hdf5_damaged(const flow_hdf5_reader *reader, const char *reason)
{
  return flow_fail(FLOW_CORRUPT_DATA, "%s is damaged: %s%s%s", reader->file->path, reader->length > 0 ? reader->path : "",
                   reader->length > 0 ? ": " : "", reason);
}

flow_status flow_hdf5_beyond(const flow_hdf5_reader *reader, const char *found)
{
  return flow_fail(FLOW_UNSUPPORTED, "%s: %s is or has %s, which Keras does not write; if you trust the file, trusted = true reads it "
                   "through libhdf5", reader->file->path, reader->length > 0 ? reader->path : "the root group", found);
}

flow_status flow_hdf5_refused(const flow_hdf5_reader *reader, const char *found)
{
  return flow_fail(FLOW_UNSUPPORTED, "%s: %s is or has %s, which Keras does not write and flowlua does not read", reader->file->path,
                   reader->length > 0 ? reader->path : "the root group", found);
}

/* ---- bytes of the index ---------------------------------------------------------------------------------------------------------- */

/* Why a budget: parts of a file refer to each other by address, so a file of a few bytes could describe an endless index. Everything
 * that is read or kept as a name is paid for, and BUDGET_FACTOR times the size of the file is more than any honest one needs. */
static flow_status spend(flow_hdf5_reader *reader, uint64_t bytes)
{
  if (bytes > reader->budget) return flow_hdf5_damaged(reader, "its parts refer to each other more often than a file of its size can");
  reader->budget -= bytes;
  return FLOW_OK;
}

/* Reads part of the index, whose address is relative to the beginning of the HDF5 part (file->offset, in an archive). */
flow_status flow_hdf5_fetch(flow_hdf5_reader *reader, uint64_t address, uint64_t bytes, void *to)
{
  flow_tensor_file *file = reader->file;
  if (address > file->bytes || bytes > file->bytes - address) {
    return flow_hdf5_damaged(reader, "a part of it would be after the end of the file");
  }
  FLOW_TRY(spend(reader, bytes));
  FLOW_TRY(flow_source_range(&file->source, file->offset + address, bytes, FLOW_PLAIN));
  return flow_source_read(&file->source, "the index", to, bytes);
}

/* Does the same into new memory, which the caller frees. No block is larger than the file. */
flow_status flow_hdf5_take(flow_hdf5_reader *reader, uint64_t address, uint64_t bytes, unsigned char **out)
{
  void *block;
  *out = NULL;
  if (bytes > reader->file->bytes) return flow_hdf5_damaged(reader, "a part of it would be larger than the file");
  FLOW_TRY(flow_alloc(bytes, &block));
  flow_status status = flow_hdf5_fetch(reader, address, bytes, block);
  if (status == FLOW_OK) *out = block;
  else flow_free(block);
  return status;
}

/* ---- groups ------------------------------------------------------------------------------------------------------------------------ */

static flow_status read_at(flow_hdf5_reader *reader, uint64_t address);

/* The names of a group's links. */
typedef struct names { unsigned char *bytes; uint64_t count; } names;

/* The group's local heap (section III.D of the specification): a header with the size and the address of the bytes, in which links give
 * places. */
static flow_status read_names(flow_hdf5_reader *reader, uint64_t address, names *out)
{
  unsigned char heap[HEAP_BYTES];
  FLOW_TRY(flow_hdf5_fetch(reader, address, sizeof heap, heap));
  if (memcmp(heap, "HEAP\0", 5) != 0) return flow_hdf5_damaged(reader, "its names are not in a local heap");
  out->count = flow_little_endian(heap + 8, 8);
  return flow_hdf5_take(reader, flow_little_endian(heap + 24, 8), out->count, &out->bytes);
}

/* Reads the object of one link: the path grows by its name while that lasts. */
static flow_status follow(flow_hdf5_reader *reader, const names *heap, const unsigned char *symbol)
{
  uint64_t place = flow_little_endian(symbol, 8);
  const unsigned char *end = place < heap->count ? memchr(heap->bytes + place, 0, heap->count - place) : NULL;
  if (!end) return flow_hdf5_damaged(reader, "a name is not in its heap");
  const char *name = (const char *)heap->bytes + place;
  int length = reader->length;
  size_t bytes = (size_t)(end - heap->bytes) - place;
  if (bytes == 0 || memchr(name, '/', bytes) || strcmp(name, ".") == 0) return flow_hdf5_damaged(reader, "a link has an invalid name");
  if (bytes + 1 > (size_t)(FLOW_HDF5_MOST_PATH - length)) return flow_hdf5_damaged(reader, "a path is longer than 4,096 bytes");
  FLOW_TRY(spend(reader, bytes + (size_t)length));
  if (length > 0) reader->path[reader->length++] = '/';
  memcpy(reader->path + reader->length, name, bytes + 1);
  reader->length += (int)bytes;
  flow_status status = flow_little_endian(symbol + 16, 4) == SOFT_LINK ? flow_hdf5_refused(reader, "a soft link")
                                                                     : read_at(reader, flow_little_endian(symbol + 8, 8));
  reader->length = length;
  reader->path[length] = '\0';
  return status;
}

/* A symbol table node (section III.C): links one after the other, in the order of their names. */
static flow_status read_symbols(flow_hdf5_reader *reader, uint64_t address, const names *heap)
{
  unsigned char header[SYMBOLS_BYTES], *symbols;
  FLOW_TRY(flow_hdf5_fetch(reader, address, sizeof header, header));
  if (memcmp(header, "SNOD\1", 5) != 0) return flow_hdf5_damaged(reader, "a symbol node is invalid");
  uint64_t count = flow_little_endian(header + 6, 2);
  FLOW_TRY(flow_hdf5_take(reader, address + SYMBOLS_BYTES, count * SYMBOL_BYTES, &symbols));
  flow_status status = FLOW_OK;
  for (uint64_t i = 0; status == FLOW_OK && i < count; i++) status = follow(reader, heap, symbols + i * SYMBOL_BYTES);
  flow_free(symbols);
  return status;
}

/* A node of a group's B-tree, which must be at this level above the symbol nodes; -1: the root, at any. Levels fall by
 * one with each call, so at most MOST_LEVELS calls are nested, whatever addresses the file gives. A node that is visited
 * again and again pays for it from the budget. */
static flow_status read_tree(flow_hdf5_reader *reader, uint64_t address, int level, const names *heap)
{
  unsigned char node[NODE_BYTES], *children;
  FLOW_TRY(flow_hdf5_fetch(reader, address, sizeof node, node));
  if (memcmp(node, "TREE\0", 5) != 0) return flow_hdf5_damaged(reader, "a node of its B-tree is invalid");
  if (level >= 0 ? node[5] != level : node[5] > MOST_LEVELS) return flow_hdf5_damaged(reader, "its B-tree is invalid");
  uint64_t count = flow_little_endian(node + 6, 2);
  FLOW_TRY(flow_hdf5_take(reader, address + NODE_BYTES, count * 16 + 8, &children));      /* key, child, key, child, ... key */
  flow_status status = FLOW_OK;
  for (uint64_t i = 0; status == FLOW_OK && i < count; i++) {
    uint64_t child = flow_little_endian(children + i * 16 + 8, 8);
    status = node[5] > 0 ? read_tree(reader, child, node[5] - 1, heap) : read_symbols(reader, child, heap);
  }
  flow_free(children);
  return status;
}

/* The names are read once and stay while all below the group is read. depth bounds the recursion, which a group that contains itself would
 * make endless. */
static flow_status read_group(flow_hdf5_reader *reader, const flow_hdf5_object *object)
{
  names heap = { 0 };
  if (reader->depth == FLOW_HDF5_MOST_DEPTH) return flow_hdf5_damaged(reader, "groups are nested more than 64 deep");
  if (reader->length > 0) FLOW_TRY(flow_tensor_file_group(reader->file, reader->path));
  reader->depth++;
  flow_status status = read_names(reader, object->heap, &heap);
  if (status == FLOW_OK) status = read_tree(reader, object->tree, -1, &heap);
  reader->depth--;
  flow_free(heap.bytes);
  return status;
}

/* ---- datasets ---------------------------------------------------------------------------------------------------------------------- */

/* A dataset becomes an entry of the index. One without contents was never written, which an empty shape may be. */
static flow_status read_dataset(flow_hdf5_reader *reader, const flow_hdf5_object *object)
{
  flow_tensor_file *file = reader->file;
  flow_tensor_entry entry = { .dtype = object->dtype, .rank = object->rank, .bytes = object->bytes };
  memcpy(entry.shape, object->shape, sizeof entry.shape);
  if (entry.dtype == FLOW_HDF5_OPAQUE16) {
    if (!object->is_bfloat16) return flow_hdf5_refused(reader, "a dataset of opaque values");
    entry.dtype = FLOW_BFLOAT16;
  }
  if (object->address == FLOW_HDF5_NOWHERE) {
    if (flow_shape_size(entry.rank, entry.shape) != 0) return flow_hdf5_beyond(reader, "a dataset that was never written");
    entry.offset = file->offset;
    entry.bytes = 0;
  } else if (object->address > file->bytes) {
    return flow_hdf5_damaged(reader, "its content would be after the end of the file");
  } else {
    entry.offset = file->offset + object->address;
  }
  return flow_tensor_file_entry(file, reader->path, &entry);
}

/* The object at an address, which is a group or a dataset, with all below it; reader->path is its name. */
static flow_status read_at(flow_hdf5_reader *reader, uint64_t address)
{
  flow_hdf5_object object;
  FLOW_TRY(flow_hdf5_read_object(reader, address, &object));
  if (object.is_group && !object.has_space && !object.has_layout) return read_group(reader, &object);
  if (reader->length == 0) return flow_hdf5_damaged(reader, "its root is not a group");
  if (!object.is_group && object.has_space && object.has_type && object.has_layout) return read_dataset(reader, &object);
  return flow_hdf5_beyond(reader, "an object that is neither a group nor a dataset");
}

/* ---- the file ------------------------------------------------------------------------------------------------------------------------ */

/* Finds the root group's object header. Versions 0 and 1 end with a link to it; 2 and 3 are shorter. Checksums of
 * versions 2 and 3 are not compared: at a wrong address there is no valid object header. */
static flow_status read_superblock(flow_hdf5_reader *reader, uint64_t *root)
{
  unsigned char block[SUPERBLOCK_BYTES + 4] = { 0 };
  uint64_t bytes = reader->file->bytes < sizeof block ? reader->file->bytes : sizeof block;
  if (bytes < 48) return flow_hdf5_damaged(reader, "it is too short");
  FLOW_TRY(flow_hdf5_fetch(reader, 0, bytes, block));
  int version = block[8], old = version <= 1;
  if (version > 3) return flow_hdf5_beyond(reader, "a superblock of a later version");
  const unsigned char *sizes = old ? block + 13 : block + 9, *addresses = version == 0 ? block + 24 : old ? block + 28 : block + 12;
  if (old && bytes < (version ? 100 : SUPERBLOCK_BYTES)) return flow_hdf5_damaged(reader, "it is too short");
  if (sizes[0] != 8 || sizes[1] != 8) return flow_hdf5_beyond(reader, "addresses of other than 8 bytes");
  if (flow_little_endian(addresses, 8) != 0) return flow_hdf5_beyond(reader, "a base address");
  uint64_t end = flow_little_endian(addresses + 16, 8);
  if (end > reader->file->bytes) {
    return flow_fail(FLOW_CORRUPT_DATA, "%s is cut off: its HDF5 part takes %.0f bytes, %.0f were found", reader->file->path, (double)end,
                     (double)reader->file->bytes);
  }
  *root = flow_little_endian(addresses + (old ? 40 : 24), 8);
  return FLOW_OK;
}

/* The reader holds the path and a heap's cache, which are too large for the stack. */
flow_status flow_hdf5_read_index(flow_tensor_file *file)
{
  uint64_t root = 0;
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_hdf5_reader), &block));
  flow_hdf5_reader *reader = block;
  *reader = (flow_hdf5_reader){ .file = file, .heap_address = FLOW_HDF5_NOWHERE };
  if (__builtin_mul_overflow(file->bytes, (uint64_t)BUDGET_FACTOR, &reader->budget)) reader->budget = UINT64_MAX;
  if (reader->budget < LEAST_BUDGET) reader->budget = LEAST_BUDGET;
  flow_status status = read_superblock(reader, &root);
  if (status == FLOW_OK) status = read_at(reader, root);
  flow_hdf5_forget_heap(reader);
  flow_free(reader);
  return status;
}

int flow_hdf5_recognizes(const unsigned char *head, uint64_t count)
{
  return count >= 8 && memcmp(head, FLOW_HDF5_SIGNATURE, 8) == 0;
}
