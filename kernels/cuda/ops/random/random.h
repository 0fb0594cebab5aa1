/* random.h: kernels of random numbers: the same keys, counters and formulas as the CPU's (kernels/cpu/random/random.c, dropout.c,
 * sample.c), so that a model draws the same numbers wherever it runs: uniform numbers and masks to the bit, normal ones except for the last
 * digits of a double. Seed and step are read on the device: a recorded step can be repeated with others. */
#ifndef FLOW_CUDA_OPS_RANDOM_H
#define FLOW_CUDA_OPS_RANDOM_H

#include "cuda/device/convert.h"
#define FLOW_PHILOX_FUNCTION BODY
#include "base/philox.h"
#include "cuda/device/trigonometry.h"
#include "cuda/device/view.h"
#include "kernels.h"

/* key is that of seed and stream; of an op that is keyed by the step, scalars tell the rest, own_seed without the seed of the run. */
typedef struct random_key_parts {
  uint64_t key;
  const flow_scalars *scalars;
  int64_t own_seed;
} random_key_parts;

BODY uint64_t random_key_of(const random_key_parts *p)
{
  if (!p->scalars) return p->key;
  return flow_mix(p->own_seed ? p->key : flow_mix(p->key, p->scalars->seed), (uint64_t)p->scalars->step);
}

/* a + b * c in two roundings, as the CPU has it: no fused multiply-add. */
BODY double sum_with_product(double a, double b, double c)
{
#if defined(__CUDACC__)
  return __dadd_rn(a, __dmul_rn(b, c));
#else
  return a + b * c;
#endif
}

/* ---- numbers by position: four to a block of bits ------------------------------------------------------------------------------ */

/* uniform: low + (high - low) * word of the highest `bits` bits, at most `limit`; integers: low + floor(range * word). normal: low is the
 * mean, high the deviation. */
typedef struct random_arguments {
  random_key_parts    key;
  const flow_scalars *batch;                      /* of a tensor with rows for each sample of it; else NULL */
  int64_t             elements;                   /* of a sample, then */
  void            *y;
  int64_t          count, low_integer;
  uint64_t         range;
  double           low, high, limit, unit;        /* unit: 2^-bits */
  int32_t          dtype, bits, truncated, unused;
} random_arguments;
typedef random_arguments random_uniform_floats_arguments, random_uniform_integers_arguments, random_normals_arguments;

/* Number of the first element of y: elements count through the global batch. */
BODY int64_t random_start(const random_arguments *p) { return p->batch ? p->batch->first_sample * p->elements : 0; }

BODY void random_uniform_floats(int64_t i, const random_arguments *p)
{
  int64_t start = random_start(p), four = start / 4 + i;
  flow_philox_block block = flow_philox(random_key_of(&p->key), (uint64_t)four, 0);
  UNROLL for (int j = 0; j < 4; j++) {
    int64_t at = 4 * four + j - start;
    if (at < 0) continue;
    if (at >= p->count) return;
    double y = sum_with_product(p->low, p->high - p->low, (double)(block.word[j] >> (32 - p->bits)) * p->unit);
    if (y > p->limit) y = p->limit;
    store_rounded(p->dtype, p->y, at, y < p->low ? p->low : y);
  }
}

/* A range beyond 2^32 takes two words of a block for each number. */
BODY void random_uniform_integers(int64_t i, const random_arguments *p)
{
  uint64_t key = random_key_of(&p->key);
  int64_t start = random_start(p), four = start / 4 + i;
  flow_philox_block block = flow_philox(key, (uint64_t)four, 0);
  UNROLL for (int j = 0; j < 4; j++) {
    int64_t at = 4 * four + j - start;
    uint64_t offset = block.word[j] * p->range >> 32;
    if (at < 0) continue;
    if (at >= p->count) return;
    if (p->range > (uint64_t)1 << 32) {
      flow_philox_block wide = flow_philox(key, (uint64_t)(4 * four + j), 1);
      offset = (uint64_t)((unsigned __int128)((uint64_t)wide.word[1] << 32 | wide.word[0]) * p->range >> 64);
    }
    int64_t value = (int64_t)((uint64_t)p->low_integer + offset);
    if (p->dtype == FLOW_INT64) ((int64_t *)p->y)[at] = value;
    else store_double(p->dtype, p->y, at, (double)value);
  }
}

/* Box and Muller: words `pair` and pair + 1 of a block give elements of these numbers. */
BODY double normal_number(flow_philox_block block, int j)
{
  uint32_t first = j < 2 ? block.word[0] : block.word[2], second = j < 2 ? block.word[1] : block.word[3];
  double radius = sqrt(-2 * log(((double)first + 1.0) * 0x1p-32)), angle = 2 * 3.14159265358979323846 * ((double)second * 0x1p-32);
  return radius * sine_of(angle, j & 1 ? 0 : 1);
}

BODY void random_normals(int64_t i, const random_arguments *p)
{
  uint64_t key = random_key_of(&p->key), number = (uint64_t)(random_start(p) + i), low = number / 4;
  int word = (int)(number & 3);
  flow_philox_block block = flow_philox(key, low, 0);
  double y = normal_number(block, word);
  for (uint64_t high = 1; p->truncated && fabs(y) > 2; high++) y = normal_number(flow_philox(key, low, high), word);
  store_rounded(p->dtype, p->y, i, sum_with_product(p->low, p->high, y));
}

/* ---- numbers by sample and element of it: four elements to a block of bits ------------------------------------------------------- */

/* dropout: y = x * scale where a number of 24 bits is not below threshold, else 0. sample_uniform: low + (high - low) * that number. */
typedef struct by_sample_arguments {
  random_key_parts key;
  const void      *x;
  void            *y;
  view_groups      fours;                 /* of a sample */
  int64_t          elements;              /* of a sample */
  double           low, high, scale;
  float            limit;
  uint32_t         threshold;
  int32_t          dtype, vectors;        /* vectors: all fours are at multiples of 16 bytes */
} by_sample_arguments;
typedef by_sample_arguments dropout_float32_arguments, dropout_other_arguments, sample_uniform_arguments;

/* Where the four elements are, how many of them there are, and their bits. */
typedef struct random_four { flow_philox_block bits; int64_t at; int count; } random_four;

BODY random_four random_four_of(int64_t i, const by_sample_arguments *p)
{
  int64_t row = group_of(&p->fours, i), four = i - row * p->fours.size;
  random_four result;
  result.bits = flow_philox(random_key_of(&p->key), (uint64_t)four, (uint64_t)(p->key.scalars->first_sample + row));
  result.at = row * p->elements + 4 * four;
  result.count = p->elements - 4 * four < 4 ? (int)(p->elements - 4 * four) : 4;
  return result;
}

BODY void dropout_float32(int64_t i, const by_sample_arguments *p)
{
  random_four four = random_four_of(i, p);
  const float *x = (const float *)p->x + four.at;
  float *y = (float *)p->y + four.at, scale = (float)p->scale;
  if (p->vectors) {
    four_floats v = *(const four_floats *)x;
    UNROLL for (int j = 0; j < 4; j++) v.v[j] = four.bits.word[j] >> 8 >= p->threshold ? v.v[j] * scale : 0;
    *(four_floats *)y = v;
    return;
  }
  UNROLL for (int j = 0; j < 4; j++)
    if (j < four.count) y[j] = four.bits.word[j] >> 8 >= p->threshold ? x[j] * scale : 0;
}

BODY void dropout_other(int64_t i, const by_sample_arguments *p)
{
  random_four four = random_four_of(i, p);
  UNROLL for (int j = 0; j < 4; j++)
    if (j < four.count) {
      double x = load_double(p->dtype, p->x, four.at + j);
      store_rounded(p->dtype, p->y, four.at + j, four.bits.word[j] >> 8 >= p->threshold ? x * p->scale : 0);
    }
}

BODY void sample_uniform(int64_t i, const by_sample_arguments *p)
{
  random_four four = random_four_of(i, p);
  UNROLL for (int j = 0; j < 4; j++)
    if (j < four.count) {
      float y = (float)sum_with_product(p->low, p->high - p->low, (double)(four.bits.word[j] >> 8) * 0x1p-24);
      ((float *)p->y)[four.at + j] = y > p->limit ? p->limit : y;
    }
}

#define RANDOM_KERNELS(ELEMENT, BLOCK)                                                             \
  ELEMENT(random_uniform_floats) ELEMENT(random_uniform_integers) ELEMENT(random_normals)          \
  ELEMENT(dropout_float32) ELEMENT(dropout_other) ELEMENT(sample_uniform)

#endif
