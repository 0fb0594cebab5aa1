/* write.c: HDF5 files as h5py writes them by default: superblock 0, groups of the old style, contiguous datasets, texts
 * of variable length in global heaps. First everything gets its address, then the index is made, then contents are
 * streamed.
 *
 * The plan (make_plan) and the bytes (put_*) must agree: a function that places something and the one that puts it have
 * the same sizes, and put() does not check, since the block has plan->index_bytes. The bytes of a file depend on names,
 * notes and contents alone. */
#include "io/hdf5/plan.h"

#include <string.h>
#include "base/bytes.h"
#include "base/memory.h"

/* LEAF_K, INTERNAL_K: half the number of links of a symbol node, and of children of a B-tree node, at most: libhdf5's
 * defaults, which the superblock states. */
enum {
  SUPERBLOCK_BYTES = 96, LEAF_K = 4, INTERNAL_K = 16, SYMBOLS = 2 * LEAF_K, CHILDREN = 2 * INTERNAL_K,
  SYMBOL_BYTES = 40, SYMBOL_NODE_BYTES = 8 + SYMBOLS * SYMBOL_BYTES, TREE_NODE_BYTES = 24 + CHILDREN * 16 + 8,
  HEAP_BYTES = 32, OBJECT_BYTES = 16, MESSAGE_BYTES = 8, TEXT_TYPE_BYTES = 24, SCALAR_SPACE_BYTES = 8, REFERENCE_BYTES = 16,
  GLOBAL_HEAP_LEAST = 4096, GLOBAL_HEAP_MOST = 60000, GLOBAL_HEAP_HEADER = 16,
  MOST_NOTES = 65000,                                 /* messages of a header are counted in 16 bits */
};
static const uint64_t no_free_block = 1;            /* the end of a local heap's list of free blocks */

/* `bytes` rounded up to a multiple of `to`. */
static uint64_t padded(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }
/* How many nodes of `of` places `count` entries take. */
static uint64_t parts(uint64_t count, uint64_t of) { return (count + of - 1) / of; }

/* ---- addresses ------------------------------------------------------------------------------------------------------------------ */

/* Of the message that put_attribute writes, without its prefix. */
static uint64_t attribute_bytes(const flow_hdf5_note *note)
{
  return 8 + padded(strlen(note->key) + 1, 8) + TEXT_TYPE_BYTES + SCALAR_SPACE_BYTES + REFERENCE_BYTES;
}

/* Bytes of an object header with its prefix; must be what put_object writes. */
static uint64_t header_bytes(const flow_hdf5_plan *plan, const flow_hdf5_node *node, const flow_tensor_writer *writer)
{
  unsigned char type[FLOW_HDF5_TYPE_BYTES];
  uint64_t bytes = OBJECT_BYTES;
  if (node->item < 0) {
    bytes += MESSAGE_BYTES + 16;
  } else {
    const flow_tensor *tensor = writer->items[node->item].tensor;
    bytes += 4 * MESSAGE_BYTES + 8 + 8 * (uint64_t)tensor->rank + (uint64_t)flow_hdf5_datatype(tensor->dtype, type) + 8 + 24;
  }
  for (int i = node->first_note; i >= 0; i = plan->notes[i].next) bytes += MESSAGE_BYTES + attribute_bytes(&plan->notes[i]);
  return bytes;
}

/* Gives a group its local heap, symbol nodes and B-tree from *at on. A level of the tree needs a node for each CHILDREN
 * nodes of the level below; a group without links has one empty node. */
static void place_group(const flow_hdf5_plan *plan, flow_hdf5_node *node, uint64_t *at)
{
  node->heap_bytes = 8;                              /* the empty name, which is the first key of the B-tree */
  const flow_hdf5_node *children = plan->nodes, *self = node;
  for (int i = (int)(self - children) + 1; i < self->end; i = children[i].end) {
    node->heap_bytes += padded((uint64_t)(children[i].length - children[i].name) + 1, 8);
  }
  node->heap = *at;
  node->symbols = node->heap + HEAP_BYTES + node->heap_bytes;
  uint64_t symbol_nodes = parts((uint64_t)node->children, SYMBOLS);
  node->tree = node->tree_root = node->symbols + symbol_nodes * SYMBOL_NODE_BYTES;
  uint64_t count = symbol_nodes > 0 ? parts(symbol_nodes, CHILDREN) : 1, end = node->tree + count * TREE_NODE_BYTES;
  while (count > 1) {
    count = parts(count, CHILDREN);
    node->tree_root = end;
    end += count * TREE_NODE_BYTES;
  }
  *at = end;
}

/* Texts go to global heaps, as many as fit; a longer one has its own heap. An index is unique in its heap and fits 16
 * bits, since GLOBAL_HEAP_MOST bytes hold fewer than 4,000 objects. */
static flow_status place_texts(flow_hdf5_plan *plan, uint64_t *at)
{
  int next_index = 1;
  for (int i = 0; i < plan->node_count; i++) {
    for (int n = plan->nodes[i].first_note; n >= 0; n = plan->notes[n].next) {
      uint64_t bytes = OBJECT_BYTES + padded(strlen(plan->notes[n].text), 8);
      flow_hdf5_heap *heap = plan->heap_count > 0 ? &plan->heaps[plan->heap_count - 1] : NULL;
      if (!heap || heap->used + bytes > GLOBAL_HEAP_MOST) {
        if (heap) *at = heap->address + heap->bytes;
        FLOW_TRY(flow_grow(&plan->heaps, sizeof *plan->heaps, plan->heap_count + 1, &plan->heap_capacity));
        heap = &plan->heaps[plan->heap_count++];
        *heap = (flow_hdf5_heap){ .address = *at, .used = GLOBAL_HEAP_HEADER };
        next_index = 1;
      }
      plan->notes[n].heap = heap->address;
      plan->notes[n].place = heap->address + heap->used;
      plan->notes[n].index = next_index++;
      heap->used += bytes;
      heap->bytes = padded(heap->used, GLOBAL_HEAP_LEAST);
    }
  }
  if (plan->heap_count > 0) *at = plan->heaps[plan->heap_count - 1].address + plan->heaps[plan->heap_count - 1].bytes;
  return FLOW_OK;
}

/* Also of a plan that was made half-way. */
static void free_plan(flow_hdf5_plan *plan)
{
  flow_free(plan->nodes);
  flow_free(plan->notes);
  flow_free(plan->heaps);
}

/* Addresses in the order of the file: superblock; for each node its header and, for a group, heap, symbol nodes and
 * tree; global heaps; then contents on multiples of FLOW_HDF5_ALIGNMENT. On failure what the plan holds is still to be
 * freed (free_plan). */
static flow_status make_plan(const flow_tensor_writer *writer, flow_hdf5_plan *plan)
{
  uint64_t at = SUPERBLOCK_BYTES;
  *plan = (flow_hdf5_plan){ 0 };
  FLOW_TRY(flow_hdf5_make_tree(writer, plan));
  for (int i = 0; i < plan->node_count; i++) {
    flow_hdf5_node *node = &plan->nodes[i];
    if (node->note_count > MOST_NOTES) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "'%.*s' has more than %d notes", node->length, node->path, MOST_NOTES);
    }
    node->header = at;
    at += header_bytes(plan, node, writer);
    if (node->item < 0) place_group(plan, node, &at);
  }
  FLOW_TRY(place_texts(plan, &at));
  plan->index_bytes = at;
  for (int i = 0; i < plan->node_count; i++) {
    flow_hdf5_node *node = &plan->nodes[i];
    if (node->item < 0) continue;
    node->bytes = flow_tensor_content_bytes(writer->items[node->item].tensor);
    node->content = node->bytes > 0 ? padded(at, FLOW_HDF5_ALIGNMENT) : FLOW_HDF5_NOWHERE;
    if (node->bytes > INT64_MAX - at - FLOW_HDF5_ALIGNMENT) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "with '%.*s' the file is larger than a file can be", node->length, node->path);
    }
    if (node->bytes > 0) at = node->content + node->bytes;
  }
  plan->bytes = at;
  return FLOW_OK;
}

/* ---- the index --------------------------------------------------------------------------------------------------------------------- */

/* Where the next bytes of the index go; the block is zero before. */
typedef struct pen { unsigned char *block; uint64_t at; } pen;

/* The lowest `bytes` bytes of the value, little-endian; the pen moves by as many, so that value 0 passes over bytes that are zero already.
 * */
static void put(pen *to, uint64_t value, int bytes)
{
  flow_put_little_endian(to->block + to->at, value, bytes);
  to->at += (uint64_t)bytes;
}

/* `count` bytes, after which the pen is `room` further: what is between stays zero. */
static void put_bytes(pen *to, const void *bytes, uint64_t count, uint64_t room)
{
  memcpy(to->block + to->at, bytes, count);
  to->at += room;
}

/* The prefix of a message of an object header: its type, the bytes of its body, and flags. */
static void put_message(pen *to, int type, uint64_t bytes, int flags)
{
  put(to, (uint64_t)type, 2);
  put(to, bytes, 2);
  put(to, (uint64_t)flags, 4);
}

/* The attribute at `to`, and its text in the global heap, whose place is known. */
static void put_attribute(pen *to, const flow_hdf5_note *note)
{
  /* A text of variable length in UTF-8, of characters, which are unsigned bytes. */
  static const unsigned char type[TEXT_TYPE_BYTES] = { 0x19, 1, 1, 0, 16, 0, 0, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8 };
  uint64_t key_bytes = strlen(note->key) + 1, text_bytes = strlen(note->text);
  put_message(to, FLOW_HDF5_ATTRIBUTE, attribute_bytes(note), 0);
  put(to, 1, 2);                                     /* version */
  put(to, key_bytes, 2);
  put(to, 20, 2);                                    /* bytes of the datatype and of the dataspace, not padded */
  put(to, SCALAR_SPACE_BYTES, 2);
  put_bytes(to, note->key, key_bytes, padded(key_bytes, 8));
  put_bytes(to, type, sizeof type, sizeof type);
  put(to, 1, 8);                                     /* a scalar dataspace */
  put(to, text_bytes, 4);
  put(to, note->heap, 8);
  put(to, (uint64_t)note->index, 4);
  pen object = { to->block, note->place };
  put(&object, (uint64_t)note->index, 8);
  put(&object, text_bytes, 8);
  put_bytes(&object, note->text, text_bytes, 0);
}

/* The messages of a dataset as h5py writes them: shape, type, fill value, place. */
static void put_dataset(pen *to, const flow_hdf5_node *node, const flow_tensor *tensor)
{
  unsigned char type[FLOW_HDF5_TYPE_BYTES];
  int type_bytes = flow_hdf5_datatype(tensor->dtype, type);
  put_message(to, FLOW_HDF5_DATASPACE, 8 + 8 * (uint64_t)tensor->rank, 0);
  put(to, 1, 1);
  put(to, (uint64_t)tensor->rank, 7);
  for (int axis = 0; axis < tensor->rank; axis++) put(to, (uint64_t)tensor->shape[axis], 8);
  put_message(to, FLOW_HDF5_DATATYPE, (uint64_t)type_bytes, 1);      /* 1: never changes */
  put_bytes(to, type, (uint64_t)type_bytes, (uint64_t)type_bytes);
  put_message(to, FLOW_HDF5_FILL_VALUE, 8, 1);
  put(to, 0x01020202, 8);                            /* version 2, space taken late, filled if set, defined: zero */
  put_message(to, FLOW_HDF5_LAYOUT, 24, 0);
  put(to, 0x0103, 2);                                /* version 3, contiguous */
  put(to, node->content, 8);
  put(to, node->bytes, 8);
  put(to, 0, 6);
}

/* What the key in front of symbol node number `node` is: the largest name before it, as a place in the heap. */
static uint64_t key_before(const uint64_t *places, uint64_t count, uint64_t node)
{
  uint64_t names = node * SYMBOLS < count ? node * SYMBOLS : count;
  return names > 0 ? places[names - 1] : 0;
}

/* The nodes of all levels, leaves first. A node of level n has CHILDREN nodes of the level below, or symbol nodes. */
static void put_tree(pen *to, const flow_hdf5_node *group, const uint64_t *places)
{
  uint64_t count = (uint64_t)group->children, below = parts(count, SYMBOLS), unit = 1, first_below = group->symbols;
  uint64_t bytes_below = SYMBOL_NODE_BYTES;
  to->at = group->tree;
  for (int level = 0;; level++) {
    uint64_t nodes = below > 0 ? parts(below, CHILDREN) : 1, first = to->at;
    for (uint64_t n = 0; n < nodes; n++) {
      uint64_t used = below - n * CHILDREN < CHILDREN ? below - n * CHILDREN : CHILDREN, address = first + n * TREE_NODE_BYTES;
      to->at = address;
      put_bytes(to, "TREE", 4, 5);                   /* and type 0: of a group */
      put(to, (uint64_t)level, 1);
      put(to, used, 2);
      put(to, n > 0 ? address - TREE_NODE_BYTES : FLOW_HDF5_NOWHERE, 8);
      put(to, n + 1 < nodes ? address + TREE_NODE_BYTES : FLOW_HDF5_NOWHERE, 8);
      for (uint64_t i = n * CHILDREN; i < n * CHILDREN + used; i++) {
        put(to, key_before(places, count, i * unit), 8);
        put(to, first_below + i * bytes_below, 8);
      }
      put(to, key_before(places, count, (n * CHILDREN + used) * unit), 8);
    }
    to->at = first + nodes * TREE_NODE_BYTES;
    if (nodes == 1) return;
    below = nodes;
    unit *= CHILDREN;
    first_below = first;
    bytes_below = TREE_NODE_BYTES;
  }
}

/* Local heap, symbol nodes and B-tree. `places` takes as many numbers as the group has links. */
static void put_group(pen *to, const flow_hdf5_plan *plan, const flow_hdf5_node *group, uint64_t *places)
{
  uint64_t data = group->heap + HEAP_BYTES, count = 0;
  pen name = { to->block, data + 8 }, symbol = { to->block, group->symbols };
  to->at = group->heap;
  put_bytes(to, "HEAP", 4, 8);
  put(to, group->heap_bytes, 8);
  put(to, no_free_block, 8);
  put(to, data, 8);
  for (int i = (int)(group - plan->nodes) + 1; i < group->end; i = plan->nodes[i].end, count++) {
    const flow_hdf5_node *child = &plan->nodes[i];
    uint64_t left = (uint64_t)group->children - count, name_bytes = (uint64_t)(child->length - child->name);
    if (count % SYMBOLS == 0) {
      symbol.at = group->symbols + count / SYMBOLS * SYMBOL_NODE_BYTES;
      put_bytes(&symbol, "SNOD\1", 5, 6);
      put(&symbol, left < SYMBOLS ? left : SYMBOLS, 2);
    }
    places[count] = name.at - data;
    put_bytes(&name, child->path + child->name, name_bytes, padded(name_bytes + 1, 8));
    put(&symbol, places[count], 8);
    put(&symbol, child->header, 8);
    put(&symbol, child->item < 0, 8);                /* 1: the addresses of a group's parts follow */
    put(&symbol, child->item < 0 ? child->tree_root : 0, 8);
    put(&symbol, child->item < 0 ? child->heap : 0, 8);
  }
  put_tree(to, group, places);
}

/* An object's header of version 1: how many messages there are, their bytes, then the messages. */
static void put_object(pen *to, const flow_hdf5_plan *plan, const flow_hdf5_node *node, const flow_tensor_writer *writer)
{
  to->at = node->header;
  put(to, 1, 2);                                     /* version */
  put(to, (uint64_t)(node->item < 0 ? 1 : 4) + (uint64_t)node->note_count, 2);
  put(to, 1, 4);                                     /* links to it */
  put(to, header_bytes(plan, node, writer) - OBJECT_BYTES, 8);
  if (node->item < 0) {
    put_message(to, FLOW_HDF5_SYMBOL_TABLE, 16, 0);
    put(to, node->tree_root, 8);
    put(to, node->heap, 8);
  } else {
    put_dataset(to, node, writer->items[node->item].tensor);
  }
  for (int i = node->first_note; i >= 0; i = plan->notes[i].next) put_attribute(to, &plan->notes[i]);
}

/* Version 0, which every reader knows. */
static void put_superblock(pen *to, const flow_hdf5_plan *plan)
{
  const flow_hdf5_node *root = &plan->nodes[0];
  to->at = 0;
  put_bytes(to, FLOW_HDF5_SIGNATURE, 8, 8);
  put(to, 0, 5);                                     /* versions, all 0 */
  put(to, 0x0808, 3);                                /* bytes of addresses and of lengths */
  put(to, LEAF_K, 2);
  put(to, INTERNAL_K, 2);
  put(to, 0, 4);
  put(to, 0, 8);                                     /* base address */
  put(to, FLOW_HDF5_NOWHERE, 8);                     /* free space */
  put(to, plan->bytes, 8);
  put(to, FLOW_HDF5_NOWHERE, 8);                     /* driver */
  put(to, 0, 8);                                     /* the root's link: no name, ... */
  put(to, root->header, 8);
  put(to, 1, 8);
  put(to, root->tree_root, 8);
  put(to, root->heap, 8);
}

/* Everything but the contents, into one block: all places were fixed by the plan before. */
static void put_index(unsigned char *block, const flow_hdf5_plan *plan, const flow_tensor_writer *writer, uint64_t *places)
{
  pen to = { block, 0 };
  put_superblock(&to, plan);
  for (int i = 0; i < plan->node_count; i++) {
    put_object(&to, plan, &plan->nodes[i], writer);
    if (plan->nodes[i].item < 0) put_group(&to, plan, &plan->nodes[i], places);
  }
  for (int i = 0; i < plan->heap_count; i++) {
    const flow_hdf5_heap *heap = &plan->heaps[i];
    to.at = heap->address;
    put_bytes(&to, "GCOL\1", 5, 8);
    put(&to, heap->bytes, 8);
    to.at = heap->address + heap->used;
    if (heap->bytes - heap->used < OBJECT_BYTES) continue;
    put(&to, 0, 8);                                  /* object 0: what is free, this header included */
    put(&to, heap->bytes - heap->used, 8);
  }
}

/* ---- the file ---------------------------------------------------------------------------------------------------------------------- */

/* The index is in memory at once: it is small beside the contents, which are streamed. */
static flow_status write_index(const flow_hdf5_plan *plan, const flow_tensor_writer *writer, flow_sink *sink)
{
  void *block, *places;
  FLOW_TRY(flow_alloc_zero(plan->index_bytes, &block));
  flow_status status = flow_alloc((size_t)plan->node_count * sizeof(uint64_t), &places);
  if (status == FLOW_OK) {
    put_index(block, plan, writer, places);
    status = flow_sink_write(sink, block, plan->index_bytes);
    flow_free(places);
  }
  flow_free(block);
  return status;
}

/* Zeros fill the file up to where each content begins: fewer than FLOW_HDF5_ALIGNMENT bytes, as nodes are in the order
 * of their addresses. */
static flow_status write_contents(const flow_hdf5_plan *plan, const flow_tensor_writer *writer, flow_sink *sink)
{
  static const unsigned char zeros[FLOW_HDF5_ALIGNMENT];
  uint64_t at = plan->index_bytes;
  for (int i = 0; i < plan->node_count; i++) {
    const flow_hdf5_node *node = &plan->nodes[i];
    if (node->item < 0 || node->bytes == 0) continue;
    FLOW_TRY(flow_sink_write(sink, zeros, node->content - at));
    FLOW_TRY(flow_tensor_write_content(writer->items[node->item].tensor, sink));
    at = node->content + node->bytes;
  }
  return FLOW_OK;
}

/* *bytes: of the whole file, exactly, before anything is written. */
static flow_status measure(const flow_tensor_writer *writer, uint64_t *bytes)
{
  flow_hdf5_plan plan;
  flow_status status = make_plan(writer, &plan);
  *bytes = plan.bytes;
  free_plan(&plan);
  return status;
}

/* One pass from the first byte to the last: the sink need not seek. */
static flow_status write_file(const flow_tensor_writer *writer, flow_sink *sink)
{
  flow_hdf5_plan plan;
  flow_status status = make_plan(writer, &plan);
  if (status == FLOW_OK) status = write_index(&plan, writer, sink);
  if (status == FLOW_OK) status = write_contents(&plan, writer, sink);
  free_plan(&plan);
  return status;
}

const flow_format flow_format_hdf5 = {
  .name = "hdf5", .recognizes = flow_hdf5_recognizes, .read_index = flow_hdf5_read_index, .size = measure,
  .write = write_file,
};
