/* tensor_file.h: files of named tensors. What a model, an optimizer or a checkpoint keeps on disk is a list of tensors with names
 * and a few texts beside them; how that becomes bytes is a format: one record with a reader of the index and a writer.
 *
 *   hdf5          the subset of HDF5 that Keras writes (.weights.h5, and model.weights.h5 inside .keras); names are paths
 *                 "layers/dense/vars/0", a note is a text attribute of a group
 *   safetensors   (https://github.com/huggingface/safetensors); notes are its "__metadata__"; with a CRC-32C per tensor and one of
 *                 the index when the writer was asked for checksums (checkpoints)
 *
 * In each of them a tensor's content is one range of the file, little-endian and contiguous, so the format only fills the index;
 * reading is shared. The index is checked as a whole before anything is read: names once each, sizes that fit shape and dtype, ranges
 * inside the file, no more entries than bytes. What else a format forbids (overlaps, gaps) its reader checks. */
#ifndef FLOW_IO_TENSOR_FILE_H
#define FLOW_IO_TENSOR_FILE_H

#include "io/file.h"
#include "tensor/tensor.h"

enum { FLOW_TENSOR_FILE_MAGIC = 0x464c5446, FLOW_TENSOR_WRITER_MAGIC = 0x464c5457 };

typedef struct flow_format flow_format;

/* A tensor of a file. */
typedef struct flow_tensor_entry {
  char    *name;
  int      dtype, rank;
  int64_t  shape[FLOW_MAX_RANK];
  uint64_t offset, bytes;          /* of its content in the file, from the file's first byte */
  uint32_t crc;                    /* CRC-32C of the content, if has_crc */
  int      has_crc;
} flow_tensor_entry;

/* A text beside the tensors: key of the group `path` ("" for the file itself). All three are owned by the list that the
 * note is in, and end with NUL. */
typedef struct flow_tensor_note { char *path, *key, *text; } flow_tensor_note;

/* ---- reading: flow_tensor_file of flow.h ------------------------------------------------------------------------------------ */

/* A file that is open for reading. Owns all texts and lists in it; entries keep the file's order, and their numbers are
 * what callers use. */
struct flow_tensor_file {
  uint32_t           magic;
  char              *path;
  flow_source        source;
  uint64_t           offset, bytes;      /* the range that holds the format: the file, or a stored member of a zip */
  flow_tensor_entry *entries;
  int                entry_count, entry_capacity;
  int               *by_name;            /* entries in the order of their names' bytes; made when the index is complete */
  flow_tensor_note  *notes;
  int                note_count, note_capacity;
  char             **groups;             /* paths of groups, empty ones too (HDF5) */
  int                group_count, group_capacity;
  struct flow_trusted *trusted;          /* contents come through libhdf5, not from ranges of the file; else NULL */
};

/* trusted.c: files that the caller trusts, through the plugin "hdf5": fills the index; contents are read by name. */
flow_status flow_trusted_open(flow_tensor_file *file, const char *member);
flow_status flow_trusted_read(const flow_tensor_file *file, const flow_tensor_entry *entry, void *to);
void        flow_trusted_close(struct flow_trusted *trusted);      /* NULL is fine */

/* For readers of an index; texts are copied. facts->name does not count. FLOW_CORRUPT_DATA: a size that does not fit shape and dtype, a
 * range outside of file->offset and bytes, more than a million entries. */
flow_status flow_tensor_file_entry(flow_tensor_file *file, const char *name, const flow_tensor_entry *facts);
flow_status flow_tensor_file_note(flow_tensor_file *file, const char *path, const char *key, const char *text);
flow_status flow_tensor_file_group(flow_tensor_file *file, const char *path);
/* Makes by_name, for readers that look for names themselves; else it is made when read_index has returned. FLOW_CORRUPT_DATA when a name
 * comes twice. No entries may follow. */
flow_status flow_tensor_file_sort(flow_tensor_file *file);

/* ---- writing: flow_tensor_writer of flow.h ---------------------------------------------------------------------------------- */

typedef struct flow_writer_item { char *name; flow_tensor *tensor; } flow_writer_item;      /* a reference */

/* What is to be saved, until it is: tensors, notes and groups in the order in which they were added. `references` may be
 * changed by any thread; all else by the one thread that fills the writer, before a save begins. */
struct flow_tensor_writer {
  uint32_t          magic;
  _Atomic int       references;
  int               checksums;           /* of each tensor and of the index */
  flow_writer_item *items;               /* in the order in which they were added */
  int               item_count, item_capacity;
  flow_tensor_note *notes;
  int               note_count, note_capacity;
  char            **groups;              /* that are there even when they are empty; parents come by themselves */
  int               group_count, group_capacity;
};

/* Bytes of a tensor's content in a file. */
uint64_t    flow_tensor_content_bytes(const flow_tensor *tensor);
/* Writes the content: elements in row-major order, also of a tensor with other strides. */
flow_status flow_tensor_write_content(const flow_tensor *tensor, flow_sink *sink);
/* CRC-32C of the content. */
flow_status flow_tensor_content_crc(const flow_tensor *tensor, uint32_t *crc);
/* FLOW_INVALID_ARGUMENT unless each name is there once; formats need not look. */
flow_status flow_tensor_writer_check(const flow_tensor_writer *writer);

/* ---- formats ------------------------------------------------------------------------------------------------------------------- */

struct flow_format {
  const char *name;                      /* "hdf5", "safetensors" */
  /* Whether a file that begins with these bytes (at most 16) is of this format. */
  int        (*recognizes)(const unsigned char *head, uint64_t count);
  /* Fills entries, notes and groups from the range of the file. The file is hostile. */
  flow_status (*read_index)(flow_tensor_file *file);
  /* How many bytes the file takes. */
  flow_status (*size)(const flow_tensor_writer *writer, uint64_t *bytes);
  /* Writes exactly that many from the sink's position on. */
  flow_status (*write)(const flow_tensor_writer *writer, flow_sink *sink);
};

extern const flow_format flow_format_hdf5, flow_format_safetensors;
const flow_format *flow_format_find(const char *name);     /* NULL: none */

/* ---- what reader and writer share -------------------------------------------------------------------------------------------- */

void flow_tensor_note_free(flow_tensor_note *note); /* its texts, not the note itself */
/* Each appends to a list that grows, and copies the texts. FLOW_OUT_OF_MEMORY leaves the list unchanged. */
flow_status flow_tensor_notes_add(flow_tensor_note **notes, int *count, int *capacity, const char *path, const char *key, const char *text);
flow_status flow_tensor_groups_add(char ***groups, int *count, int *capacity, const char *path);
/* Sorts names, each with the place that it came from; returns one that comes twice, or NULL. */
typedef struct flow_named_place { const char *name; int place; } flow_named_place;
const char *flow_sort_names(flow_named_place *names, int count);

#endif
