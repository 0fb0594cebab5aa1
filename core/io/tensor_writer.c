/* tensor_writer.c: what is to become a file of named tensors: references to tensors, notes and groups, until a format
 * writes them.
 *
 * Filled by one thread: flow_tensor_writer_add, _note, _group, _checksums in any order. Then it is saved, any number of
 * times, here, into an archive (archive.c) or by a background save, which holds a reference. Saving changes nothing in
 * the writer. */
#include "io/tensor_file.h"

#include <string.h>
#include "base/memory.h"
#include "io/crc32c.h"

/* Cannot overflow: the tensor exists, so its bytes were counted when its memory was taken. */
uint64_t flow_tensor_content_bytes(const flow_tensor *tensor)
{
  return (uint64_t)flow_shape_size(tensor->rank, tensor->shape) * (uint64_t)flow_dtype_size(tensor->dtype);
}

flow_status flow_tensor_write_content(const flow_tensor *tensor, flow_sink *sink)
{
  flow_tensor *packed;
  FLOW_TRY(flow_tensor_on_host_contiguous(tensor, &packed));
  flow_status status = flow_sink_write(sink, packed->data, flow_tensor_content_bytes(packed));
  flow_tensor_release(packed);
  return status;
}

flow_status flow_tensor_content_crc(const flow_tensor *tensor, uint32_t *crc)
{
  flow_tensor *packed;
  FLOW_TRY(flow_tensor_on_host_contiguous(tensor, &packed));
  *crc = flow_crc32c(0, packed->data, flow_tensor_content_bytes(packed));
  flow_tensor_release(packed);
  return FLOW_OK;
}

/* Names are compared before anything is written: a file with one name twice cannot be read back. */
flow_status flow_tensor_writer_check(const flow_tensor_writer *writer)
{
  void *block;
  FLOW_TRY(flow_alloc(sizeof(flow_named_place) * (size_t)writer->item_count, &block));
  flow_named_place *names = block;
  for (int i = 0; i < writer->item_count; i++) names[i] = (flow_named_place){ writer->items[i].name, i };
  const char *twice = flow_sort_names(names, writer->item_count);
  flow_status status = FLOW_OK;
  if (twice) status = flow_fail(FLOW_INVALID_ARGUMENT, "two tensors to save have the name '%s'; give each its own", twice);
  flow_free(block);
  return status;
}

/* One reference, the caller's; a running save (background_save.c) holds another. */
flow_status flow_tensor_writer_new(flow_tensor_writer **out)
{
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_tensor_writer_new: out is NULL");
  void *block;
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor_writer), &block));
  *out = block;
  (*out)->magic = FLOW_TENSOR_WRITER_MAGIC;
  atomic_init(&(*out)->references, 1);
  return FLOW_OK;
}

/* The last reference releases tensors and texts. Any thread may be the last. */
void flow_tensor_writer_release(flow_tensor_writer *writer)
{
  if (!writer || writer->magic != FLOW_TENSOR_WRITER_MAGIC || atomic_fetch_sub(&writer->references, 1) > 1) return;
  writer->magic = FLOW_TENSOR_DEAD;
  for (int i = 0; i < writer->item_count; i++) {
    flow_free(writer->items[i].name);
    flow_tensor_release(writer->items[i].tensor);
  }
  for (int i = 0; i < writer->note_count; i++) flow_tensor_note_free(&writer->notes[i]);
  for (int i = 0; i < writer->group_count; i++) flow_free(writer->groups[i]);
  flow_free(writer->items);
  flow_free(writer->notes);
  flow_free(writer->groups);
  flow_free(writer);
}

static flow_status check_writer(const flow_tensor_writer *writer)
{
  if (!writer || writer->magic != FLOW_TENSOR_WRITER_MAGIC) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the writer of tensors is NULL or was released");
  }
  return FLOW_OK;
}

flow_status flow_tensor_writer_checksums(flow_tensor_writer *writer, int on)
{
  FLOW_TRY(check_writer(writer));
  writer->checksums = on != 0;
  return FLOW_OK;
}

/* A path may be named more than once; formats without groups (safetensors) leave them out. */
flow_status flow_tensor_writer_group(flow_tensor_writer *writer, const char *path)
{
  FLOW_TRY(check_writer(writer));
  if (!path) return flow_fail(FLOW_INVALID_ARGUMENT, "the path of a group is missing");
  return flow_tensor_groups_add(&writer->groups, &writer->group_count, &writer->group_capacity, path);
}

/* Path "" is the file itself. Texts are copied. */
flow_status flow_tensor_writer_note(flow_tensor_writer *writer, const char *path, const char *key, const char *text)
{
  FLOW_TRY(check_writer(writer));
  if (!path || !key || !*key || !text) return flow_fail(FLOW_INVALID_ARGUMENT, "a note takes a path, a key that is not empty, and a text");
  return flow_tensor_notes_add(&writer->notes, &writer->note_count, &writer->note_capacity, path, key, text);
}

/* Takes a reference, not a copy: what the tensor holds when the file is written counts. The name is copied. */
flow_status flow_tensor_writer_add(flow_tensor_writer *writer, const char *name, flow_tensor *tensor)
{
  FLOW_TRY(check_writer(writer));
  if (!name || !*name) return flow_fail(FLOW_INVALID_ARGUMENT, "the name of a tensor to save is missing");
  FLOW_TRY(flow_check_concrete(name, tensor));
  FLOW_TRY(flow_grow(&writer->items, sizeof *writer->items, writer->item_count + 1, &writer->item_capacity));
  char *copy = flow_duplicate_text(name);
  if (!copy) return FLOW_OUT_OF_MEMORY;
  writer->items[writer->item_count++] = (flow_writer_item){ copy, flow_tensor_retain(tensor) };
  return FLOW_OK;
}

/* *out is NULL after a failure. */
static flow_status copy_of(const flow_tensor *tensor, flow_tensor **out)
{
  FLOW_TRY(flow_tensor_new_uninitialized(tensor->dtype, tensor->rank, tensor->shape, out));
  flow_status status = flow_tensor_copy(*out, tensor);
  if (status == FLOW_OK) return FLOW_OK;
  flow_tensor_release(*out);
  *out = NULL;
  return status;
}

/* Afterwards the writer's tensors are its own, and others may change theirs. After a failure some are copies and some are not: the
 * writer is to be released. */
flow_status flow_tensor_writer_snapshot(flow_tensor_writer *writer)
{
  FLOW_TRY(check_writer(writer));
  for (int i = 0; i < writer->item_count; i++) {
    flow_tensor *copy;
    FLOW_TRY(copy_of(writer->items[i].tensor, &copy));
    flow_tensor_release(writer->items[i].tensor);
    writer->items[i].tensor = copy;
  }
  return FLOW_OK;
}

/* The file appears whole or not at all (flow_sink_commit). */
flow_status flow_tensor_writer_save(const flow_tensor_writer *writer, const char *path, const char *format)
{
  FLOW_TRY(check_writer(writer));
  const flow_format *record = format ? flow_format_find(format) : NULL;
  if (!record)
    return flow_fail(FLOW_INVALID_ARGUMENT, "there is no format '%s' of files of tensors; there are hdf5 and safetensors",
                     format ? format : "");
  FLOW_TRY(flow_tensor_writer_check(writer));
  flow_sink sink;
  FLOW_TRY(flow_sink_open(path, &sink));
  flow_status status = record->write(writer, &sink);
  if (status == FLOW_OK) status = flow_sink_commit(&sink);
  flow_sink_discard(&sink);
  return status;
}
