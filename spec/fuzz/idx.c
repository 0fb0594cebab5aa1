/* idx.c: IDX files, as they are or gzipped. */
#include "fuzz.h"

static void idx(const uint8_t *bytes, size_t count)
{
  char path[64];
  flow_tensor *tensor = NULL;
  int descriptor = fuzz_file(bytes, count, path);
  flow_status status = flow_tensor_load_idx(path, &tensor);
  if ((status == FLOW_OK) != (tensor != NULL)) abort();
  flow_tensor_release(tensor);
  close(descriptor);
}

FUZZ_TARGET(idx)
