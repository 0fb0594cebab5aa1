/* crc32c.c: CRC-32C, reflected polynomial 0x82F63B78: by the instruction of SSE 4.2 where there is one, else eight bytes a
 * step by tables (M. Kounavis, F. Berry: A Systematic Approach to Building High Performance, Software-based, CRC
 * Generators, 2005). */
#include "io/crc32c.h"

#include <pthread.h>
#include <string.h>

static uint32_t tables[8][256];       /* tables[k][b]: the checksum of byte b with k zero bytes after it */
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/* By the definition, bit by bit; tables[k] then follow from tables[k - 1], since a zero byte more is one step of table 0. */
static void make_tables(void)
{
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    tables[0][byte] = crc;
  }
  for (int k = 1; k < 8; k++) {
    for (int byte = 0; byte < 256; byte++) tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 255];
  }
}

/* Eight bytes a step ("slicing by eight"): the tables take over what eight steps by single bytes would do, without their chain of
 * dependencies. crc: of the bytes before, 0 at first. */
uint32_t flow_crc32c_by_table(uint32_t crc, const void *bytes, size_t count)
{
  const unsigned char *next = bytes;
  pthread_once(&tables_once, make_tables);
  crc = ~crc;
  for (; count >= 8; count -= 8, next += 8) {
    uint32_t low = crc ^ ((uint32_t)next[0] | (uint32_t)next[1] << 8 | (uint32_t)next[2] << 16 | (uint32_t)next[3] << 24);
    crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
          tables[3][next[4]] ^ tables[2][next[5]] ^ tables[1][next[6]] ^ tables[0][next[7]];
  }
  for (; count > 0; count--) crc = crc >> 8 ^ tables[0][(crc ^ *next++) & 255];
  return ~crc;
}

#if FLOW_HAVE_X86
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *next, size_t count)
{
  uint64_t wide = (uint32_t)~crc;
  for (; count >= 8; count -= 8, next += 8) {
    uint64_t eight;
    memcpy(&eight, next, sizeof eight);
    wide = __builtin_ia32_crc32di(wide, eight);
  }
  uint32_t narrow = (uint32_t)wide;
  for (; count > 0; count--) narrow = __builtin_ia32_crc32qi(narrow, *next++);
  return ~narrow;
}
#endif

/* Both ways give the same bits; spec/c compares them. */
uint32_t flow_crc32c(uint32_t crc, const void *bytes, size_t count)
{
#if FLOW_HAVE_X86
  if (__builtin_cpu_supports("sse4.2")) return by_instruction(crc, bytes, count);
#endif
  return flow_crc32c_by_table(crc, bytes, count);
}
