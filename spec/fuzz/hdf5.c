/* hdf5.c: HDF5 files: the index, and whatever contents it promises.
 *
 * sources: core/io/tensor_file_access.c
 */
#include "fuzz.h"

static void hdf5(const uint8_t *bytes, size_t count)
{
  char path[64];
  flow_tensor_file *file = NULL;
  int descriptor = fuzz_file(bytes, count, path);
  if ((flow_tensor_file_open(path, NULL, &file) == FLOW_OK) != (file != NULL)) abort();
  for (int i = 0; i < flow_tensor_file_count(file); i++) {
    flow_tensor *tensor = NULL;
    if (!flow_tensor_file_name(file, i) || flow_tensor_file_find(file, flow_tensor_file_name(file, i)) != i) abort();
    if (i < 64 && flow_tensor_file_read(file, i, &tensor) != FLOW_OK && tensor) abort();
    flow_tensor_release(tensor);
  }
  flow_tensor_file_release(file);
  close(descriptor);
}

FUZZ_TARGET(hdf5)
