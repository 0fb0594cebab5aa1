/* tensor_file_access.c: what an open file of named tensors holds, by index; part of the C API.
 *
 * Indices count from 0. A file that is NULL or released, and an index beyond the end, give 0, -1 or NULL and set no
 * error: callers ask in loops up to the count. Texts are borrowed from the file. */
#include "io/tensor_file.h"

#include <string.h>

static int is_open(const flow_tensor_file *file)
{
  return file && file->magic == FLOW_TENSOR_FILE_MAGIC;
}

static const flow_tensor_entry *entry_at(const flow_tensor_file *file, int index)
{
  return is_open(file) && index >= 0 && index < file->entry_count ? &file->entries[index] : NULL;
}

static const flow_tensor_note *note_at(const flow_tensor_file *file, int index)
{
  return is_open(file) && index >= 0 && index < file->note_count ? &file->notes[index] : NULL;
}

int flow_tensor_file_count(const flow_tensor_file *file) { return is_open(file) ? file->entry_count : 0; }

const char *flow_tensor_file_name(const flow_tensor_file *file, int index)
{
  const flow_tensor_entry *entry = entry_at(file, index);
  return entry ? entry->name : NULL;
}

int flow_tensor_file_dtype(const flow_tensor_file *file, int index)
{
  const flow_tensor_entry *entry = entry_at(file, index);
  return entry ? entry->dtype : -1;
}

int flow_tensor_file_rank(const flow_tensor_file *file, int index)
{
  const flow_tensor_entry *entry = entry_at(file, index);
  return entry ? entry->rank : -1;
}

double flow_tensor_file_dim(const flow_tensor_file *file, int index, int axis)
{
  const flow_tensor_entry *entry = entry_at(file, index);
  return entry && axis >= 0 && axis < entry->rank ? (double)entry->shape[axis] : 0;
}

int flow_tensor_file_has_checksum(const flow_tensor_file *file, int index)
{
  const flow_tensor_entry *entry = entry_at(file, index);
  return entry ? entry->has_crc : 0;
}

const char *flow_tensor_file_note_text(const flow_tensor_file *file, const char *path, const char *key)
{
  if (!is_open(file) || !path || !key) return NULL;
  for (int i = 0; i < file->note_count; i++) {
    const flow_tensor_note *note = &file->notes[i];
    if (strcmp(note->key, key) == 0 && strcmp(note->path, path) == 0) return note->text;
  }
  return NULL;
}

int flow_tensor_file_note_count(const flow_tensor_file *file) { return is_open(file) ? file->note_count : 0; }

const char *flow_tensor_file_note_path(const flow_tensor_file *file, int index)
{
  const flow_tensor_note *note = note_at(file, index);
  return note ? note->path : NULL;
}

const char *flow_tensor_file_note_key(const flow_tensor_file *file, int index)
{
  const flow_tensor_note *note = note_at(file, index);
  return note ? note->key : NULL;
}

int flow_tensor_file_group_count(const flow_tensor_file *file) { return is_open(file) ? file->group_count : 0; }

const char *flow_tensor_file_group_name(const flow_tensor_file *file, int index)
{
  return is_open(file) && index >= 0 && index < file->group_count ? file->groups[index] : NULL;
}
