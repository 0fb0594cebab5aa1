/* crc32c.h: CRC-32C (Castagnoli), the checksum of TFRecord files. */
#ifndef FLOW_IO_CRC32C_H
#define FLOW_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of data that consists of a part whose checksum is `crc` (0: none) and these bytes after it. */
uint32_t flow_crc32c(uint32_t crc, const void *bytes, size_t count);
/* The same by tables, for machines without an instruction, and as the other's oracle. */
uint32_t flow_crc32c_by_table(uint32_t crc, const void *bytes, size_t count);

/* The checksum as TFRecord stores it: turned and shifted, so that data which holds checksums does not look like its own. */
static inline uint32_t flow_crc32c_masked(const void *bytes, size_t count)
{
  uint32_t crc = flow_crc32c(0, bytes, count);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
