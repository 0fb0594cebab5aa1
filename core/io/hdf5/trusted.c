/* trusted.c: HDF5 files that the caller trusts, in layouts that Keras does not write, through the plugin "hdf5".
 *
 * The plugin tells what the file holds (flow_hdf5_visitor); here that becomes the index of a flow_tensor_file. Entries
 * have no place in the file, contents are read by name. A member of an archive is brought into memory whole, as libhdf5
 * takes files or memory. */
#include "io/tensor_file.h"
#include "io/zip.h"

#include <string.h>
#include "base/memory.h"
#include "base/plugin.h"
#include "io/hdf5/hdf5_plugin.h"

/* Belongs to the flow_tensor_file. `file` is the plugin's, NULL until it is open; `image` must outlive it. */
struct flow_trusted {
  const flow_hdf5_functions *functions;
  void                      *file;
  void                      *image;    /* the bytes of an archive's member */
};

static flow_status add_group(void *target, const char *path) { return flow_tensor_file_group(target, path); }

static flow_status add_note(void *target, const char *path, const char *key, const char *text)
{
  return flow_tensor_file_note(target, path, key, text);
}

/* A dataset of a file that this library wrote becomes an entry; shapes are checked like those of any file. */
static flow_status add_tensor(void *target, const char *path, int dtype, int rank, const int64_t *shape)
{
  flow_tensor_file *file = target;
  flow_tensor_entry entry = { .dtype = dtype, .rank = rank };
  FLOW_TRY(flow_check_shape(path, dtype, rank, shape));
  memcpy(entry.shape, shape, (size_t)rank * sizeof *shape);
  entry.bytes = (uint64_t)flow_shape_size(rank, shape) * (uint64_t)flow_dtype_size(dtype);
  return flow_tensor_file_entry(file, path, &entry);
}

/* The whole member, inflated if it is compressed. *image is the caller's to free, also after a failure. */
static flow_status load_member(const flow_tensor_file *file, const char *member, void **image, uint64_t *bytes)
{
  flow_zip zip;
  FLOW_TRY(flow_zip_open(file->path, &zip));
  const flow_zip_member *found = flow_zip_find(&zip, member);
  flow_status status = found ? flow_zip_begin(&zip, found) : flow_fail(FLOW_NOT_FOUND, "%s has no member '%s'", file->path, member);
  if (status == FLOW_OK && found->size > flow_source_most(&zip.source)) {
    status = flow_fail(FLOW_CORRUPT_DATA, "%s: %s cannot have as many bytes as its header says", file->path, member);
  }
  if (status == FLOW_OK) status = flow_alloc(found->size, image);
  if (status == FLOW_OK) status = flow_source_read(&zip.source, member, *image, found->size);
  if (status == FLOW_OK) status = flow_zip_end(&zip, found);
  if (status == FLOW_OK) *bytes = found->size;
  flow_zip_close(&zip);
  return status;
}

/* On failure file->trusted is what there is of it: flow_tensor_file_release closes it. */
flow_status flow_trusted_open(flow_tensor_file *file, const char *member)
{
  const flow_plugin *plugin;
  void *block;
  uint64_t bytes = 0;
  FLOW_TRY(flow_plugin_open("hdf5", &plugin));
  FLOW_TRY(flow_alloc_zero(sizeof(struct flow_trusted), &block));
  struct flow_trusted *trusted = file->trusted = block;      /* closed with the file */
  trusted->functions = plugin->functions;
  if (member) FLOW_TRY(load_member(file, member, &trusted->image, &bytes));
  FLOW_TRY(trusted->functions->open(file->path, trusted->image, bytes, &trusted->file));
  flow_hdf5_visitor visitor = { file, add_group, add_note, add_tensor };
  return trusted->functions->visit(trusted->file, &visitor);
}

flow_status flow_trusted_read(const flow_tensor_file *file, const flow_tensor_entry *entry, void *to)
{
  return file->trusted->functions->read(file->trusted->file, entry->name, entry->dtype, to, entry->bytes);
}

void flow_trusted_close(struct flow_trusted *trusted)
{
  if (!trusted) return;
  if (trusted->file) trusted->functions->close(trusted->file);
  flow_free(trusted->image);
  flow_free(trusted);
}
