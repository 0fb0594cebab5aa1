/* plan.h: an HDF5 file before it is written: the tree of its names, and where everything will be. The index comes first and is
 * made in memory; contents follow, aligned, in the order of their paths, straight from the tensors. */
#ifndef FLOW_IO_HDF5_PLAN_H
#define FLOW_IO_HDF5_PLAN_H

#include "io/hdf5/hdf5.h"

enum { FLOW_HDF5_ALIGNMENT = 64 };          /* of contents, from the format's first byte */

/* A text attribute; its text is object `index` of the global heap at `heap`, from byte `place` of the file on. next: the
 * node's next note, -1: none. key and text are borrowed from the writer. `place` is where the object's own 16 bytes
 * begin, which the text follows. */
typedef struct flow_hdf5_note { const char *key, *text; int next, index; uint64_t heap, place; } flow_hdf5_note;

/* A group or dataset; what is below it are the nodes after it, up to `end`. */
typedef struct flow_hdf5_node {
  const char *path;                         /* `length` bytes of it; the name begins at byte `name` */
  int         length, name, end, children;
  int         item, is_group;               /* of the writer's tensors; -1: none, so it is a group */
  int         first_note, note_count;
  uint64_t    header;                       /* addresses: of the object header; */
  uint64_t    heap, heap_bytes, symbols, tree;          /* of a group: local heap, symbol nodes, B-tree's leaves; */
  uint64_t    tree_root, content, bytes;                /* its root; of a dataset */
} flow_hdf5_node;

/* A global heap that will be written: where it is, its size (a multiple of 4,096), and how much of that is in use, its
 * header included. */
typedef struct flow_hdf5_heap { uint64_t address, bytes, used; } flow_hdf5_heap;

typedef struct flow_hdf5_plan {
  flow_hdf5_node *nodes;                    /* the root first */
  int             node_count;
  flow_hdf5_note *notes;
  int             note_count, note_capacity;
  flow_hdf5_heap *heaps;
  int             heap_count, heap_capacity;
  uint64_t        index_bytes, bytes;       /* of the index; of the file */
} flow_hdf5_plan;

/* Fills nodes and notes. FLOW_INVALID_ARGUMENT for paths that cannot be, or are two things at once. */
flow_status flow_hdf5_make_tree(const flow_tensor_writer *writer, flow_hdf5_plan *plan);

#endif
