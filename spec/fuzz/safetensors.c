/* safetensors.c: files of named tensors in safetensors: the header, notes as checkpoints have them, checksums, contents.
 * sources: core/io/tensor_file_access.c
 */
#include "fuzz.h"
#include "io/tensor_file.h"

static void check_entry(flow_tensor_file *file, int index)
{
  flow_tensor *tensor = NULL;
  const char *name = flow_tensor_file_name(file, index);
  if (!name || flow_tensor_file_find(file, name) != index) abort();
  flow_status status = flow_tensor_file_read(file, index, &tensor);
  if ((status == FLOW_OK) != (tensor != NULL)) abort();
  if (tensor && tensor->dtype != flow_tensor_file_dtype(file, index)) abort();
  if (tensor && tensor->rank != flow_tensor_file_rank(file, index)) abort();
  flow_tensor_release(tensor);
}

/* What was read can be written: the header is made, which is where names and texts go. */
static void write_again(flow_tensor_file *file)
{
  flow_tensor_writer *writer;
  uint64_t bytes;
  if (flow_tensor_writer_new(&writer) != FLOW_OK) abort();
  for (int i = 0; i < flow_tensor_file_count(file); i++) {
    flow_tensor *tensor;
    if (flow_tensor_file_read(file, i, &tensor) != FLOW_OK) continue;
    flow_tensor_writer_add(writer, flow_tensor_file_name(file, i), tensor);
    flow_tensor_release(tensor);
  }
  for (int i = 0; i < flow_tensor_file_note_count(file); i++) {
    const char *note_path = flow_tensor_file_note_path(file, i), *key = flow_tensor_file_note_key(file, i);
    flow_tensor_writer_note(writer, note_path, key, flow_tensor_file_note_text(file, note_path, key));
  }
  if (flow_format_safetensors.size(writer, &bytes) == FLOW_OK && bytes < 10) abort();
  flow_tensor_writer_release(writer);
}

static void safetensors(const uint8_t *bytes, size_t count)
{
  char path[64];
  flow_tensor_file *file = NULL;
  int descriptor = fuzz_file(bytes, count, path);
  flow_status status = flow_tensor_file_open(path, NULL, &file);
  if ((status == FLOW_OK) != (file != NULL)) abort();
  if (file) {
    flow_tensor_file_verify(file);
    for (int i = 0; i < flow_tensor_file_count(file); i++) check_entry(file, i);
    for (int i = 0; i < flow_tensor_file_note_count(file); i++) {
      if (!flow_tensor_file_note_text(file, flow_tensor_file_note_path(file, i), flow_tensor_file_note_key(file, i))) abort();
    }
    write_again(file);
    flow_tensor_file_release(file);
  }
  close(descriptor);
}

FUZZ_TARGET(safetensors)
