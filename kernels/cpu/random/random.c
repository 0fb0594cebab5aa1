/* random.c: random_uniform, random_normal and random_truncated_normal.
 *
 * Element i is made from Philox block (low = i / 4, high = 0) alone, so its value depends on the key and on i only. Of a tensor with a row
 * for each sample of a batch, which a negative first dimension in the attributes says, elements count through the global batch, as in
 * dropout.c: replicas draw different rows, and one alone the same ones.
 *   uniform     word i % 4; integers over ranges beyond 2^32 take words 0 and 1 of block (low = i, high = 1)
 *   normal      Box and Muller (1958): words 0, 1 give elements 4b and 4b + 1, words 2, 3 the other two
 *   truncated   as normal; an element beyond two standard deviations is drawn again with high = 1, 2, ...
 * All is computed in double (integers exactly) and converted to the output's dtype. */
#include <math.h>
#include "cpu/random/random.h"
#include "cpu/vector.h"
#include "tensor/tensor.h"

enum { PART = 16384, CHUNK = 64, MOST = CHUNK + 4 };      /* elements; multiples of 4 */

static uint64_t key_of(const flow_call *call)
{
  const flow_attributes *a = call->attributes;
  if (a->random.keyed_by_step) return random_step_key(a->random.seed, a->random.stream, call->scalars);
  return random_key(a->random.seed, a->random.stream);
}

/* Significant bits of a floating-point dtype, at most the 32 of a word. */
static int precision(int dtype)
{
  switch (dtype) {
  case FLOW_FLOAT16:  return 11;
  case FLOW_BFLOAT16: return 8;
  case FLOW_FLOAT32:  return 24;
  default:            return 32;
  }
}

static void uniform_floats(const flow_call *call, uint64_t key, int64_t first, int64_t n, double *x)
{
  double low = call->attributes->random.low, high = call->attributes->random.high;
  int bits = precision(call->outputs[0].dtype), exponent;
  frexp(high, &exponent);
  double limit = high - ldexp(1, exponent - bits);     /* what is larger might round to high, which is excluded */
  double unit = ldexp(1, -bits);
  for (int64_t i = 0; i < n; i += 4) {
    flow_philox_block block = flow_philox(key, (uint64_t)(first + i) / 4, 0);
    for (int64_t j = 0; j < 4 && i + j < n; j++) {
      double y = low + (high - low) * (unit * (block.word[j] >> (32 - bits)));
      if (y > limit) y = limit;
      x[i + j] = y < low ? low : y;
    }
  }
}

static void uniform_integers(const flow_call *call, uint64_t key, int64_t first, int64_t n, int64_t *x)
{
  int64_t low = (int64_t)ceil(call->attributes->random.low), high = (int64_t)ceil(call->attributes->random.high);
  uint64_t range = high > low ? (uint64_t)high - (uint64_t)low : 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t offset;
    if (range <= UINT64_C(1) << 32) {
      offset = flow_philox(key, (uint64_t)(first + i) / 4, 0).word[(first + i) % 4] * range >> 32;
    } else {
      flow_philox_block block = flow_philox(key, (uint64_t)(first + i), 1);
      uint64_t word = (uint64_t)block.word[1] << 32 | block.word[0];
      offset = (uint64_t)((unsigned __int128)word * range >> 64);
    }
    x[i] = (int64_t)((uint64_t)low + offset);
  }
}

/* Four independent normal numbers out of one block. */
static void normal_block(uint64_t key, uint64_t low, uint64_t high, double z[4])
{
  flow_philox_block block = flow_philox(key, low, high);
  for (int pair = 0; pair < 4; pair += 2) {
    double radius = sqrt(-2 * log((block.word[pair] + 1.0) * 0x1p-32));
    double angle = 2 * 3.14159265358979323846 * (block.word[pair + 1] * 0x1p-32);
    z[pair] = radius * cos(angle);
    z[pair + 1] = radius * sin(angle);
  }
}

static void normals(const flow_call *call, uint64_t key, int64_t first, int64_t n, double *x)
{
  double mean = call->attributes->random.low, deviation = call->attributes->random.high;
  int truncated = call->op == FLOW_OP_random_truncated_normal;
  for (int64_t i = 0; i < n; i += 4) {
    uint64_t low = (uint64_t)(first + i) / 4;
    double z[4];
    normal_block(key, low, 0, z);
    for (int64_t j = 0; j < 4 && i + j < n; j++) {
      double y = z[j];
      for (uint64_t high = 1; truncated && fabs(y) > 2; high++) {
        double again[4];
        normal_block(key, low, high, again);
        y = again[j];
      }
      x[i + j] = mean + deviation * y;
    }
  }
}

/* Number of the output's first element. */
static int64_t start_of(const flow_call *call)
{
  const flow_operand *out = &call->outputs[0];
  int by_sample = call->attributes->random.rank > 0 && call->attributes->random.dims[0] < 0;
  if (!by_sample || call->scalars->rows < 1) return 0;
  return call->scalars->first_sample * (flow_shape_size(out->rank, out->shape) / call->scalars->rows);
}

static int64_t parts(const flow_call *call, int phase)
{
  (void)phase;
  const flow_operand *out = &call->outputs[0];
  return (flow_shape_size(out->rank, out->shape) + PART - 1) / PART;
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  const flow_operand *out = &call->outputs[0];
  if (!out->data) return FLOW_OK;
  uint64_t key = key_of(call);
  int64_t size = flow_shape_size(out->rank, out->shape), last = end * PART < size ? end * PART : size;
  int uniform = call->op == FLOW_OP_random_uniform;
  int64_t start = start_of(call), before = start % 4;      /* elements of the first block that other samples have */
  for (int64_t i = begin * PART; i < last; i += CHUNK) {
    int64_t n = last - i < CHUNK ? last - i : CHUNK, first = start + i - before;
    char *to = (char *)out->data + i * flow_dtype_size(out->dtype);
    double x[MOST];
    if (uniform && !flow_dtype_is_float(out->dtype)) {
      int64_t whole[CHUNK];
      uniform_integers(call, key, start + i, n, whole);
      if (out->dtype == FLOW_INT64) {
        memcpy(to, whole, (size_t)n * sizeof(int64_t));
        continue;
      }
      for (int64_t j = 0; j < n; j++) x[before + j] = (double)whole[j];
    } else if (uniform) {
      uniform_floats(call, key, first, before + n, x);
    } else {
      normals(call, key, first, before + n, x);
    }
    flow_convert_from_double(out->dtype, x + before, to, 1, n);
  }
  return FLOW_OK;
}

#define VARIANTS { { .variant = "philox", .parts = parts, .run = run }, { 0 } }
const flow_kernel FLOW_KERNELS(random_uniform)[] = VARIANTS;
const flow_kernel FLOW_KERNELS(random_normal)[] = VARIANTS;
const flow_kernel FLOW_KERNELS(random_truncated_normal)[] = VARIANTS;
