/* fingerprint.c: see fingerprint.h. Numbers and steps of FarmHash are those of its source, farmhash.cc, namespace farmhashna; those of
 * SipHash-2-4 of Aumasson and Bernstein 2012. TensorFlow's string_to_hash_bucket_fast and _strong have the same bits, so that layers put
 * a token into the bucket that Keras puts it into. */
#include "text/fingerprint.h"

#include <string.h>

#define K0 UINT64_C(0xc3a5c85c97cb3127)
#define K1 UINT64_C(0xb492b66fbe98f273)
#define K2 UINT64_C(0x9ae16a3b2f90404f)

typedef struct pair { uint64_t first, second; } pair;

/* The bytes need not be aligned: hence the copy, which compilers make one load of. */
static uint64_t fetch64(const unsigned char *at)
{
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

/* 32 bits from any address. */
static uint64_t fetch32(const unsigned char *at)
{
  uint32_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static uint64_t rotate_right(uint64_t word, int bits) { return word >> bits | word << (64 - bits); }
static uint64_t mix(uint64_t word) { return word ^ word >> 47; }

/* HashLen16 of FarmHash, by which it ends and joins parts. */
static uint64_t join(uint64_t u, uint64_t v, uint64_t factor)
{
  uint64_t a = mix((u ^ v) * factor);
  return mix((v ^ a) * factor) * factor;
}

/* Strings of up to 16 bytes, of up to 32, of up to 64: each has its own formula. Words are read in this machine's order,
 * which has to be little-endian, as TensorFlow's. The words at the beginning and at the end may overlap, so that no byte
 * after the string is read. */
static uint64_t of_16(const unsigned char *s, size_t count)
{
  uint64_t factor = K2 + count * 2;
  if (count >= 8) {
    uint64_t a = fetch64(s) + K2, b = fetch64(s + count - 8);
    return join(rotate_right(b, 37) * factor + a, (rotate_right(a, 25) + b) * factor, factor);
  }
  if (count >= 4) return join(count + (fetch32(s) << 3), fetch32(s + count - 4), factor);
  if (count == 0) return K2;
  uint32_t y = s[0] + ((uint32_t)s[count >> 1] << 8), z = (uint32_t)count + ((uint32_t)s[count - 1] << 2);
  return mix(y * K2 ^ z * K0) * K2;
}

/* 17 to 32 bytes: HashLen17to32 of FarmHash. */
static uint64_t of_32(const unsigned char *s, size_t count)
{
  uint64_t factor = K2 + count * 2;
  uint64_t a = fetch64(s) * K1, b = fetch64(s + 8), c = fetch64(s + count - 8) * factor, d = fetch64(s + count - 16) * K2;
  return join(rotate_right(a + b, 43) + rotate_right(c, 30) + d, a + rotate_right(b + K2, 18) + c, factor);
}

/* 33 to 64 bytes: HashLen33to64 of FarmHash. */
static uint64_t of_64(const unsigned char *s, size_t count)
{
  uint64_t factor = K2 + count * 2;
  uint64_t a = fetch64(s) * K2, b = fetch64(s + 8), c = fetch64(s + count - 8) * factor, d = fetch64(s + count - 16) * K2;
  uint64_t y = rotate_right(a + b, 43) + rotate_right(c, 30) + d, z = join(y, a + rotate_right(b + K2, 18) + c, factor);
  uint64_t e = fetch64(s + 16) * factor, f = fetch64(s + 24);
  uint64_t g = (y + fetch64(s + count - 32)) * factor, h = (z + fetch64(s + count - 24)) * factor;
  return join(rotate_right(e + f, 43) + rotate_right(g, 30) + h, e + rotate_right(f + a, 18) + g, factor);
}

/* WeakHashLen32WithSeeds of FarmHash. */
static pair of_32_with_seeds(const unsigned char *s, uint64_t a, uint64_t b)
{
  uint64_t w = fetch64(s), x = fetch64(s + 8), y = fetch64(s + 16), z = fetch64(s + 24);
  a += w;
  b = rotate_right(b + a + z, 21);
  uint64_t c = a;
  a += x + y;
  b += rotate_right(a, 44);
  return (pair){ a + z, b + c };
}

static void swap(uint64_t *a, uint64_t *b)
{
  uint64_t kept = *a;
  *a = *b;
  *b = kept;
}

/* One step over 64 bytes of a long string. The last one of a string has another factor, and scale 9 in place of 1. */
static void step(const unsigned char *s, uint64_t *x, uint64_t *y, uint64_t *z, pair *v, pair *w, uint64_t factor, uint64_t scale)
{
  *x = rotate_right(*x + *y + v->first + fetch64(s + 8), 37) * factor;
  *y = rotate_right(*y + v->second + fetch64(s + 48), 42) * factor;
  *x ^= w->second * scale;
  *y += v->first * scale + fetch64(s + 40);
  *z = rotate_right(*z + w->first, 33) * factor;
  *v = of_32_with_seeds(s, v->second * factor, *x + w->first);
  *w = of_32_with_seeds(s + 32, *z + w->second, *y + fetch64(s + 16));
  swap(z, x);
}

/* The last block is read again from the string's end, so that it overlaps the one before it if the number of bytes is
 * not a multiple of 64. */
uint64_t flow_fingerprint(const void *bytes, size_t count)
{
  const unsigned char *s = bytes;
  if (count <= 16) return of_16(s, count);
  if (count <= 32) return of_32(s, count);
  if (count <= 64) return of_64(s, count);
  const uint64_t seed = 81;
  uint64_t x = seed * K2 + fetch64(s), y = seed * K1 + 113, z = mix(y * K2 + 113) * K2;
  pair v = { 0, 0 }, w = { 0, 0 };
  const unsigned char *end = s + (count - 1) / 64 * 64, *last = s + count - 64;
  for (; s < end; s += 64) step(s, &x, &y, &z, &v, &w, K1, 1);
  uint64_t factor = K1 + ((z & 0xff) << 1);
  w.first += (count - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  step(last, &x, &y, &z, &v, &w, factor, 9);
  return join(join(v.first, w.first, factor) + mix(y) * K0 + z, join(v.second, w.second, factor) + x, factor);
}

/* SipRound, figure 2.1 of the paper. */
static void sip_rounds(uint64_t v[4], int rounds)
{
  for (int i = 0; i < rounds; i++) {
    v[0] += v[1];
    v[1] = rotate_right(v[1], 64 - 13) ^ v[0];
    v[0] = rotate_right(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_right(v[3], 64 - 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_right(v[3], 64 - 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_right(v[1], 64 - 17) ^ v[2];
    v[2] = rotate_right(v[2], 32);
  }
}

/* Two rounds for each word of 8 bytes, the last of which holds the number of bytes in its highest byte; four rounds at the end. */
uint64_t flow_sip_hash(const uint64_t key[2], const void *bytes, size_t count)
{
  const unsigned char *s = bytes;
  uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                    key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573) };
  uint64_t word, last = (uint64_t)count << 56;
  size_t at = 0;
  for (; at + 8 <= count; at += 8) {
    word = fetch64(s + at);
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
  }
  for (size_t i = 0; at + i < count; i++) last |= (uint64_t)s[at + i] << 8 * i;
  v[3] ^= last;
  sip_rounds(v, 2);
  v[0] ^= last;
  v[2] ^= 0xff;
  sip_rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Multiplications wrap, as in its source. */
uint64_t flow_fingerprint_join(uint64_t first, uint64_t second)
{
  const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
  uint64_t result = first ^ factor;
  result = (result ^ mix(second * factor) * factor) * factor;
  return mix(mix(result) * factor);
}
