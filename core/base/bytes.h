/* bytes.h: whole numbers in files and frames, byte by byte, so that neither the order of the machine's bytes nor alignment counts; and
 * bytes that are read from front to back, each step checked against the end. */
#ifndef FLOW_BASE_BYTES_H
#define FLOW_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

/* The number in `count` bytes, at most 8, the least significant first. */
static inline uint64_t flow_little_endian(const void *bytes, int count)
{
  const unsigned char *from = (const unsigned char *)bytes;
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; i--) value = value << 8 | from[i];
  return value;
}

/* The most significant first. */
static inline uint64_t flow_big_endian(const void *bytes, int count)
{
  const unsigned char *from = (const unsigned char *)bytes;
  uint64_t value = 0;
  for (int i = 0; i < count; i++) value = value << 8 | from[i];
  return value;
}

/* Writes the lowest `count` bytes of the value, the least significant first. Returns where the next ones go. */
static inline unsigned char *flow_put_little_endian(void *to, uint64_t value, int count)
{
  unsigned char *at = (unsigned char *)to;
  for (int i = 0; i < count; i++) *at++ = (unsigned char)(value >> 8 * i);
  return at;
}

/* The bytes that are left to read, borrowed; next == end at the end. */
typedef struct flow_bytes { const unsigned char *next, *end; } flow_bytes;

/* `count` bytes to read from. NULL is allowed if count is 0. */
static inline flow_bytes flow_bytes_of(const void *bytes, uint64_t count)
{
  const unsigned char *first = (const unsigned char *)bytes;
  return (flow_bytes){ first, count > 0 ? first + count : first };
}

static inline uint64_t flow_bytes_left(const flow_bytes *from) { return (uint64_t)(from->end - from->next); }

/* Returns the next `count` bytes and moves past them. If fewer are left, returns NULL and does not move. */
static inline const unsigned char *flow_bytes_take(flow_bytes *from, uint64_t count)
{
  if (count > flow_bytes_left(from)) return NULL;
  const unsigned char *taken = from->next;
  if (count > 0) from->next += count;
  return taken;
}

/* The next `count` bytes as a little-endian number. 0: fewer are left, *value is unchanged. */
static inline int flow_bytes_number(flow_bytes *from, int count, uint64_t *value)
{
  const unsigned char *taken = flow_bytes_take(from, (uint64_t)count);
  if (taken) *value = flow_little_endian(taken, count);
  return taken != NULL;
}

#endif
