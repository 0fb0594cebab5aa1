/* random.c: random_uniform, random_normal and random_truncated_normal.
 *
 * Element i is made from Philox block (low = i / 4, high = 0) alone, so its value depends on the key and on i only. Of a tensor with a row
 * for each sample of a batch, which a negative first dimension in the attributes says, elements count through the global batch, as in
 * dropout.c: replicas draw different rows, and one alone the same ones.
 *   uniform     word i % 4; integers over ranges beyond 2^32 take words 0 and 1 of block (low = i, high = 1)
 *   normal      Box and Muller (1958): words 0, 1 give elements 4b and 4b + 1, words 2, 3 the other two
 *   truncated   as normal; an element beyond two standard deviations is drawn again with high = 1, 2, ...
 * All is computed in double (integers exactly) and converted to the output's dtype. Of normal numbers that are not stored as float64 the
 * logarithms and angles are computed by vectors, to less than a unit of their last place. */
#include <math.h>
#include "cpu/random/random.h"
#include "cpu/vector.h"
#include "tensor/tensor.h"

/* Elements; multiples of 4. MOST: of a chunk that begins within a block, up to whole calls of philox_words. */
enum { PART = 16384, CHUNK = 256, MOST = CHUNK + PHILOX_WORDS };

/* Numbers of a training step change with it; those of initializers and of eager calls are keyed by seed and stream alone. */
static uint64_t key_of(const flow_call *call)
{
  const flow_attributes *a = call->attributes;
  if (a->random.keyed_by_step) return random_step_key(a->random.seed, a->random.stream, a->random.own_seed, call->scalars);
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

/* The words of the blocks that elements `first`, a multiple of 4, and the n - 1 after it are made from. */
static void words_of(uint64_t key, int64_t first, int64_t n, uint32_t *words)
{
  uint64_t block = (uint64_t)first / 4;
  for (int64_t i = 0; i < n;) {
    if (block % PHILOX_BLOCKS == 0 && n - i > PHILOX_WORDS - 4) {
      philox_words(key, block, 0, words + i);
      i += PHILOX_WORDS;
      block += PHILOX_BLOCKS;
    } else {
      flow_philox_block one = flow_philox(key, block++, 0);
      memcpy(words + i, one.word, sizeof one.word);
      i += 4;
    }
  }
}

/* low + (high - low) u for u of as many bits as the dtype's significand has, so that rounding to it cannot give `high`, but for the last
 * step, which is cut off at `limit`. */
static void uniform_floats(const flow_call *call, uint64_t key, int64_t first, int64_t n, double *x)
{
  double low = call->attributes->random.low, high = call->attributes->random.high;
  int bits = precision(call->outputs[0].dtype), exponent;
  uint32_t words[MOST];
  words_of(key, first, n, words);
  frexp(high, &exponent);
  double unit = ldexp(1, -bits), range = high - low;
  double limit = high != 0 ? high - ldexp(1, exponent - bits) /* what is larger might round to high, which is excluded; */
                           : low * unit;                      /* 0 has no exponent: the last step before it */
  if (bits < 32) {                                     /* as signed words, which vectors convert */
    for (int64_t i = 0; i < n; i++) x[i] = unit * (int32_t)(words[i] >> (32 - bits));
  } else {
    for (int64_t i = 0; i < n; i++) x[i] = unit * words[i];
  }
  for (int64_t i = 0; i < n; i++) {
    double y = low + range * x[i];
    y = y > limit ? limit : y;
    x[i] = y < low ? low : y;
  }
}

/* low .. high - 1 by multiplication instead of a remainder (Lemire, "Fast random integer generation in an interval", 2019, without the
 * rejection: the bias is at most range / 2^32). */
static void uniform_integers(const flow_call *call, uint64_t key, int64_t first, int64_t n, int64_t *x)
{
  int64_t low = (int64_t)ceil(call->attributes->random.low), high = (int64_t)ceil(call->attributes->random.high);
  uint64_t range = high > low ? (uint64_t)high - (uint64_t)low : 0;
  if (range <= UINT64_C(1) << 32) {
    uint32_t words[MOST];
    int64_t before = first % 4;
    words_of(key, first - before, n + before, words);
    for (int64_t i = 0; i < n; i++) x[i] = (int64_t)((uint64_t)low + (words[before + i] * range >> 32));
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    flow_philox_block block = flow_philox(key, (uint64_t)(first + i), 1);
    uint64_t word = (uint64_t)block.word[1] << 32 | block.word[0];
    x[i] = (int64_t)((uint64_t)low + (uint64_t)((unsigned __int128)word * range >> 64));
  }
}

/* ---- normal numbers by vectors --------------------------------------------------------------------------------------------------- */

typedef uint64_t vq __attribute__((vector_size(sizeof(vd))));      /* the bits of doubles, or counts in them */

ALWAYS_INLINE vd vd_set(double x) { return x - (vd){ 0 }; }

/* Numbers below 2^52 as doubles: the bits of 2^52 with a number in the lowest ones are its sum with 2^52. */
ALWAYS_INLINE vd vd_of_count(vq n) { return (vd)(n | (vq)vd_set(0x1p52)) - vd_set(0x1p52); }

/* ln x of numbers in (0, 1], which are not denormal: e ln 2 + ln m, m between sqrt(1/2) and sqrt(2), ln m in s = (m - 1) / (m + 1), by the
 * polynomial of fdlibm's e_log.c (Sun Microsystems, netlib.org/fdlibm). */
ALWAYS_INLINE vd vd_log(vd x)
{
  const uint64_t root = 0x3fe6a09e667f3bcd, one = (uint64_t)1023 << 52;      /* bits of sqrt(1/2) and of 1 */
  vq bits = (vq)x - root;
  vd e = vd_of_count((bits + one) >> 52) - vd_set(1023), f = (vd)((bits & 0xfffffffffffff) + root) - vd_set(1);
  vd s = f / (f + vd_set(2)), z = s * s, w = z * z, half = vd_set(0.5) * f * f;
  vd even = w * (vd_set(3.999999999940941908e-01) + w * (vd_set(2.222219843214978396e-01) + w * vd_set(1.531383769920937332e-01)));
  vd odd = z * (vd_set(6.666666666666735130e-01) + w * (vd_set(2.857142874366239149e-01) + w * (vd_set(1.818357216161805012e-01) +
           w * vd_set(1.479819860511658591e-01))));
  return e * vd_set(6.93147180369123816490e-01) - ((half - (s * (half + even + odd) + e * vd_set(1.90821492927058770002e-10))) - f);
}

/* Sine and cosine of an angle of -pi/4 .. pi/4, with the polynomials of fdlibm's k_sin.c and k_cos.c. */
ALWAYS_INLINE vd vd_sin(vd x)
{
  vd z = x * x;
  vd p = vd_set(-2.50507602534068634195e-08) + z * vd_set(1.58969099521155010221e-10);
  p = vd_set(-1.98412698298579493134e-04) + z * (vd_set(2.75573137070700676789e-06) + z * p);
  p = vd_set(-1.66666666666666324348e-01) + z * (vd_set(8.33333333332248946124e-03) + z * p);
  return x + x * z * p;
}
ALWAYS_INLINE vd vd_cos(vd x)
{
  vd z = x * x;
  vd p = vd_set(2.08757232129817482790e-09) + z * vd_set(-1.13596475577881948265e-11);
  p = vd_set(2.48015872894767294178e-05) + z * (vd_set(-2.75573143513906633035e-07) + z * p);
  p = vd_set(4.16666666666666019037e-02) + z * (vd_set(-1.38888888888741095749e-03) + z * p);
  return vd_set(1) - (vd_set(0.5) * z - z * z * p);
}

ALWAYS_INLINE vd vd_root(vd x)
{
  vd y;
  for (int i = 0; i < VL / 2; i++) y[i] = __builtin_sqrt(x[i]);
  return y;
}

/* n numbers out of words, both with room for whole vectors of pairs: what normal_block makes of them. */
static void normals_of_words(const uint32_t *words, int64_t n, double *z)
{
  const vq quarter = (vq){ 0 } + 30, sign = (vq){ 0 } + ((uint64_t)1 << 63);
  for (int64_t i = 0; i < n; i += VL) {
    vq first, second;
    for (int j = 0; j < VL / 2; j++) first[j] = words[i + 2 * j], second[j] = words[i + 2 * j + 1];
    vd radius = vd_root(vd_set(-2) * vd_log((vd_of_count(first) + vd_set(1)) * vd_set(0x1p-32)));
    vq turn = (second + (1u << 29)) >> quarter;                                   /* the nearest quarter of a turn, 0 .. 4 */
    vd rest = vd_of_count(second) - vd_of_count(turn << quarter);
    vd angle = rest * vd_set(2 * 3.14159265358979323846 * 0x1p-32), sine = vd_sin(angle), cosine = vd_cos(angle);
    vq odd = (vq)-(turn & 1);
    vq x = ((vq)sine & odd) | ((vq)cosine & ~odd), y = ((vq)cosine & odd) | ((vq)sine & ~odd);
    x ^= (vq)-((turn + 1) >> 1 & 1) & sign;                                       /* quarters 1 and 2: the cosine is negative */
    y ^= (vq)-(turn >> 1 & 1) & sign;                                             /* quarters 2 and 3: the sine is */
    vd a = radius * (vd)x, b = radius * (vd)y;
    for (int j = 0; j < VL / 2; j++) z[i + 2 * j] = a[j], z[i + 2 * j + 1] = b[j];
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

/* float64 by libm, others by vectors: results of float32 are within a unit of their last place either way, but need not be those of
 * libm. Elements beyond two deviations are drawn again one by one, from their own blocks, so that an element does not depend on its
 * neighbours. */
static void normals(const flow_call *call, uint64_t key, int64_t first, int64_t n, double *x)
{
  double mean = call->attributes->random.low, deviation = call->attributes->random.high;
  int truncated = call->op == FLOW_OP_random_truncated_normal, exact = call->outputs[0].dtype == FLOW_FLOAT64;
  double z[MOST + VL];
  if (exact) {
    for (int64_t i = 0; i < n; i += 4) normal_block(key, (uint64_t)(first + i) / 4, 0, z + i);
  } else {
    uint32_t words[MOST + VL] = { 0 };
    words_of(key, first, n, words);
    normals_of_words(words, n, z);
  }
  for (int64_t i = 0; i < n && truncated; i++) {
    for (uint64_t high = 1; fabs(z[i]) > 2; high++) {
      double again[4];
      normal_block(key, (uint64_t)(first + i) / 4, high, again);
      z[i] = again[i % 4];
    }
  }
  for (int64_t i = 0; i < n; i++) x[i] = mean + deviation * z[i];
}

/* Number of the output's first element. */
static int64_t start_of(const flow_call *call)
{
  const flow_operand *out = &call->outputs[0];
  int by_sample = call->attributes->random.rank > 0 && call->attributes->random.dims[0] < 0;
  if (!by_sample || call->scalars->rows < 1) return 0;
  return call->scalars->first_sample * (flow_shape_size(out->rank, out->shape) / call->scalars->rows);
}

/* By the output's size alone: an element does not depend on the part that it is in. */
static int64_t parts(const flow_call *call, int phase)
{
  (void)phase;
  const flow_operand *out = &call->outputs[0];
  return (flow_shape_size(out->rank, out->shape) + PART - 1) / PART;
}

/* Parts of PART elements, each in chunks. A sample's numbers are counted from its own beginning, so that the first block of a part may
 * belong in part to the sample before: `before` elements of it are made and left out. */
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
      if (out->dtype == FLOW_INT32) {
        for (int64_t j = 0; j < n; j++) {
          int64_t y = whole[j] < INT32_MAX ? whole[j] : INT32_MAX;
          ((int32_t *)(void *)to)[j] = (int32_t)(y > INT32_MIN ? y : INT32_MIN);
        }
        continue;
      }
      for (int64_t j = 0; j < n; j++) x[before + j] = (double)whole[j];
    } else if (uniform) {
      uniform_floats(call, key, first, before + n, x);
    } else {
      normals(call, key, first, before + n, x);
    }
    if (out->dtype == FLOW_FLOAT32) {
      for (int64_t j = 0; j < n; j++) ((float *)(void *)to)[j] = (float)x[before + j];
    } else {
      flow_convert_from_double(out->dtype, x + before, to, 1, n);
    }
  }
  return FLOW_OK;
}

#define VARIANTS { { .variant = "philox", .parts = parts, .run = run }, { 0 } }
const flow_kernel FLOW_KERNELS(random_uniform)[] = VARIANTS;
const flow_kernel FLOW_KERNELS(random_normal)[] = VARIANTS;
const flow_kernel FLOW_KERNELS(random_truncated_normal)[] = VARIANTS;
