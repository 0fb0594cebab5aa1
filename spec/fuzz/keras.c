/* keras.c: .keras files: the configuration and the weights after it. Checksums are put right first, or nothing after them would ever
 * be reached.
 *
 * sources: core/io/archive.c core/io/tensor_file_access.c
 */
#include "fuzz.h"
#include <string.h>
#include <zlib.h>

/* Writes each member's real CRC-32 into its header and the directory's entry, where the archive is sound but for that. */
static void mend(uint8_t *bytes, size_t count)
{
  for (size_t i = 0; i + 46 <= count; i++) {
    if (memcmp(bytes + i, "PK\1\2", 4) != 0) continue;
    uint32_t size, header, crc;
    memcpy(&size, bytes + i + 20, 4);
    memcpy(&header, bytes + i + 42, 4);
    if (header > count || count - header < 30) continue;
    size_t data = header + 30u + bytes[header + 26] + 256u * bytes[header + 27] + bytes[header + 28] + 256u * bytes[header + 29];
    if (data > count || size > count - data) continue;
    crc = (uint32_t)crc32(0, bytes + data, size);
    memcpy(bytes + i + 16, &crc, 4);
    memcpy(bytes + header + 14, &crc, 4);
  }
}

static void keras(const uint8_t *given, size_t count)
{
  char path[64];
  flow_archive *archive = NULL;
  flow_tensor_file *file = NULL;
  const char *text;
  double size;
  uint8_t *bytes = malloc(count + 1);
  memcpy(bytes, given, count);
  mend(bytes, count);
  int descriptor = fuzz_file(bytes, count, path);
  free(bytes);
  if (flow_archive_open(path, &archive) == FLOW_OK) flow_archive_text(archive, "config.json", &text, &size);
  flow_archive_release(archive);
  if (flow_tensor_file_open(path, "model.weights.h5", &file) == FLOW_OK) {
    for (int i = 0; i < flow_tensor_file_count(file) && i < 64; i++) {
      flow_tensor *tensor = NULL;
      if (flow_tensor_file_read(file, i, &tensor) != FLOW_OK) abort();
      flow_tensor_release(tensor);
    }
  }
  flow_tensor_file_release(file);
  close(descriptor);
}

FUZZ_TARGET(keras)
