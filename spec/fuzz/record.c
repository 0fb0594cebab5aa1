/* record.c: TFRecord files; the first byte says how they are compressed. */
#include "fuzz.h"
#include "io/record.h"

static void record(const uint8_t *bytes, size_t count)
{
  static const flow_coding codings[] = { FLOW_PLAIN, FLOW_GZIP, FLOW_ZLIB };
  char path[64];
  flow_record_reader reader;
  const unsigned char *content = NULL;
  uint64_t size, sum = 0;
  if (count == 0) return;
  int descriptor = fuzz_file(bytes + 1, count - 1, path), records = 0;
  flow_status status = flow_record_open(path, codings[bytes[0] % 3], &reader);
  while (status == FLOW_OK && records++ < 1000) {
    status = flow_record_next(&reader, &content, &size);
    if (!content) break;
    for (uint64_t i = 0; i < size; i++) sum += content[i];
  }
  if (sum == UINT64_MAX) abort();               /* the bytes are read for the sanitizer */
  flow_record_close(&reader);
  close(descriptor);
}

FUZZ_TARGET(record)
