/* elements.c: the file of a cache or a saved data set: records whose checksums fit. Pieces of the input, two bytes of length and as many
 * more, are the records; the first one is the start.
 *
 * sources: core/data/element_record.c core/data/dataset.c core/data/sources/elements.c
 */
#include "fuzz.h"
#include <string.h>
#include "data/element_record.h"
#include "io/crc32c.h"

/* Writes the records; returns their bytes. `to` has room for 8 times what there is: the least piece has two bytes, its record 16. */
static size_t frame(const uint8_t *bytes, size_t count, uint8_t *to)
{
  size_t written = 0;
  for (size_t at = 0; count - at >= 2;) {
    uint64_t length = (uint64_t)bytes[at] | (uint64_t)bytes[at + 1] << 8;
    at += 2;
    if (length > count - at) length = count - at;
    memcpy(to + written, &length, 8);
    uint32_t sums[2] = { flow_crc32c_masked(&length, 8), flow_crc32c_masked(bytes + at, (size_t)length) };
    memcpy(to + written + 8, &sums[0], 4);
    memcpy(to + written + 12, bytes + at, (size_t)length);
    memcpy(to + written + 12 + length, &sums[1], 4);
    written += 16 + (size_t)length;
    at += (size_t)length;
  }
  return written;
}

static void elements(const uint8_t *bytes, size_t count)
{
  char path[64];
  uint8_t *records = malloc(8 * count + 1);
  if (!records) abort();
  int descriptor = fuzz_file(records, frame(bytes, count, records), path), ended = 0;
  flow_dataset *dataset;
  free(records);
  if (flow_dataset_load(path, &dataset) == FLOW_OK) {
    const unsigned char *start;
    uint64_t size;
    flow_record_reader reader;
    if (flow_record_open(path, FLOW_PLAIN, &reader) != FLOW_OK || flow_record_next(&reader, &start, &size) != FLOW_OK) abort();
    for (uint64_t read = 0; !ended && read < 100; read++) {
      flow_element element = { 0 };
      flow_status status = flow_element_read(&reader, &dataset->spec, read, read % 3 == 2 ? NULL : &element, &ended);
      if (status == FLOW_OK && element.count > 0 && flow_element_check("load", &dataset->spec, &element) != FLOW_OK) abort();
      flow_element_clear(&element);
      if (status != FLOW_OK) break;
    }
    flow_record_close(&reader);
    flow_dataset_release(dataset);
  }
  close(descriptor);
}

FUZZ_TARGET(elements)
