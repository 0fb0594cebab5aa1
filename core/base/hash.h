/* hash.h: FNV-1a, 64 bits (Fowler, Noll, Vo), for telling things apart; not cryptographic. A hash is continued by giving
 * the last one as `hash`; the first is FLOW_HASH_BEGIN. */
#ifndef FLOW_BASE_HASH_H
#define FLOW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FLOW_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* `hash` continued by these bytes. */
static inline uint64_t flow_hash(uint64_t hash, const void *bytes, size_t count)
{
  const unsigned char *at = (const unsigned char *)bytes;
  for (size_t i = 0; i < count; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static inline uint64_t flow_hash_text(uint64_t hash, const char *text) { return flow_hash(hash, text, strlen(text)); }

#endif
