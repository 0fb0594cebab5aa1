/* hdf5*.c: the part of HDF5 (File Format Specification 3.0, The HDF Group) that Keras writes through h5py: a superblock, groups of the
 * old style (symbol tables: B-tree, local heap, symbol nodes), object headers of version 1, contiguous or compact little-endian
 * datasets, and text attributes. All numbers of a file are little-endian, all addresses count from its first byte.
 *
 * hdf5.h: what the parts share. The reader's limits: every structure is inside the file, groups are 64 deep at most, and the index
 * takes no more reading than a small multiple of the file's size, however its parts refer to each other. */
#ifndef FLOW_IO_HDF5_HDF5_H
#define FLOW_IO_HDF5_HDF5_H

#include "io/tensor_file.h"

#define FLOW_HDF5_SIGNATURE "\x89HDF\r\n\x1a\n"
#define FLOW_HDF5_NOWHERE UINT64_MAX        /* the address of what is not there */

enum {
  FLOW_HDF5_MOST_DEPTH = 64, FLOW_HDF5_MOST_PATH = 4096,
  FLOW_HDF5_TYPE_BYTES = 40,                /* room for any datatype that is written */
};

/* Messages of an object header. */
enum {
  FLOW_HDF5_NIL = 0x0, FLOW_HDF5_DATASPACE = 0x1, FLOW_HDF5_LINK_INFO = 0x2, FLOW_HDF5_DATATYPE = 0x3, FLOW_HDF5_FILL_VALUE = 0x5,
  FLOW_HDF5_LINK = 0x6, FLOW_HDF5_EXTERNAL = 0x7, FLOW_HDF5_LAYOUT = 0x8, FLOW_HDF5_FILTERS = 0xb, FLOW_HDF5_ATTRIBUTE = 0xc,
  FLOW_HDF5_CONTINUATION = 0x10, FLOW_HDF5_SYMBOL_TABLE = 0x11, FLOW_HDF5_ATTRIBUTE_INFO = 0x15,
};

/* ---- datatypes ------------------------------------------------------------------------------------------------------------------ */

/* Writes the datatype that h5py gives to arrays of this dtype; returns its bytes, a multiple of 8. bfloat16 is 2 opaque bytes: its
 * dataset has an attribute dtype = "bfloat16". */
int flow_hdf5_datatype(int dtype, unsigned char to[FLOW_HDF5_TYPE_BYTES]);
enum { FLOW_HDF5_OPAQUE16 = -1, FLOW_HDF5_OTHER = -2 };
/* The dtype of a datatype, or one of these: two opaque bytes; anything else. */
int flow_hdf5_dtype(const unsigned char *type, uint64_t bytes);
/* "big-endian float", "compound", ...: for messages; static. */
const char *flow_hdf5_type_name(const unsigned char *type, uint64_t bytes);

/* ---- reading -------------------------------------------------------------------------------------------------------------------- */

typedef struct flow_hdf5_reader {
  flow_tensor_file *file;
  uint64_t          budget;                 /* bytes that the index may still read, and keep as names */
  char              path[FLOW_HDF5_MOST_PATH + 1];      /* of the object that is being read; "" is the root */
  int               length, depth;
  uint64_t          heap_address;           /* of the global heap that was read last; FLOW_HDF5_NOWHERE: none */
  unsigned char    *heap;
  uint64_t          heap_bytes;
  uint64_t         *heap_objects;           /* where in the heap objects 0 to 65,535 begin; 0: there is none */
} flow_hdf5_reader;

/* What an object header says. */
typedef struct flow_hdf5_object {
  int      is_group, has_space, has_type, has_layout, is_bfloat16;
  uint64_t tree, heap;                      /* of a group */
  int      rank, dtype;
  int64_t  shape[FLOW_MAX_RANK];
  uint64_t address, bytes;                  /* of the content, from the format's first byte */
} flow_hdf5_object;

/* FLOW_CORRUPT_DATA with the file, the object that is being read and the reason. */
flow_status flow_hdf5_damaged(const flow_hdf5_reader *reader, const char *reason);
/* FLOW_UNSUPPORTED: "... has `found`, which Keras does not write; trusted = true reads it through libhdf5". */
flow_status flow_hdf5_beyond(const flow_hdf5_reader *reader, const char *found);
/* The same for an object that libhdf5 does not read as a tensor either. */
flow_status flow_hdf5_refused(const flow_hdf5_reader *reader, const char *found);
/* Reads the bytes at an address; take: into a new block. Both lower the budget. */
flow_status flow_hdf5_fetch(flow_hdf5_reader *reader, uint64_t address, uint64_t bytes, void *to);
flow_status flow_hdf5_take(flow_hdf5_reader *reader, uint64_t address, uint64_t bytes, unsigned char **out);
/* Reads an object header; its text attributes become notes of reader->path. */
flow_status flow_hdf5_read_object(flow_hdf5_reader *reader, uint64_t address, flow_hdf5_object *out);
void        flow_hdf5_forget_heap(flow_hdf5_reader *reader);

/* Of flow_format_hdf5. */
int         flow_hdf5_recognizes(const unsigned char *head, uint64_t count);
flow_status flow_hdf5_read_index(flow_tensor_file *file);

#endif
