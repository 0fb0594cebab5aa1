/* npy.c: NumPy array files. */
#include "fuzz.h"

static void npy(const uint8_t *bytes, size_t count)
{
  char path[64];
  flow_tensor *tensor = NULL;
  int descriptor = fuzz_file(bytes, count, path);
  flow_status status = flow_tensor_load_npy(path, &tensor);
  if ((status == FLOW_OK) != (tensor != NULL)) abort();
  flow_tensor_release(tensor);
  close(descriptor);
}

FUZZ_TARGET(npy)
