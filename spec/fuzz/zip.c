/* zip.c: zip archives: as .npz, whose arrays are asked for by name, and as archives whose members are read as texts.
 *
 * sources: core/io/archive.c
 */
#include "fuzz.h"

static void zip(const uint8_t *bytes, size_t count)
{
  char path[64];
  flow_tensor *tensor = NULL;
  flow_archive *archive = NULL;
  int descriptor = fuzz_file(bytes, count, path);
  flow_status status = flow_tensor_load_npz(path, "a", &tensor);
  if ((status == FLOW_OK) != (tensor != NULL)) abort();
  flow_tensor_release(tensor);
  if (flow_archive_open(path, &archive) == FLOW_OK) {
    for (int i = 0; i < flow_archive_count(archive); i++) {
      const char *text;
      double size;
      if (flow_archive_text(archive, flow_archive_name(archive, i), &text, &size) == FLOW_OK && text[(size_t)size] != 0) abort();
    }
  }
  flow_archive_release(archive);
  close(descriptor);
}

FUZZ_TARGET(zip)
