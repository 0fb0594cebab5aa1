/* convert.c: one loading and one storing loop for each pair of dtype and kind. The loops are plain; the compiler
 * vectorises them for the instruction set of this build. */
#include "cpu/movement/convert.h"

#include "tensor/tensor.h"

#ifdef __F16C__
#include <immintrin.h>
ALWAYS_INLINE float    half_value(uint16_t half)  { return _cvtsh_ss(half); }
ALWAYS_INLINE uint16_t half_bits(float value)     { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT); }
#else
ALWAYS_INLINE float    half_value(uint16_t half)  { return flow_half_to_float(half); }
ALWAYS_INLINE uint16_t half_bits(float value)     { return flow_float_to_half(value); }
#endif

/* Memory type of each dtype and the number that an element means. */
typedef float    stored_float32;
typedef double   stored_float64;
typedef uint16_t stored_float16;
typedef uint16_t stored_bfloat16;
typedef int8_t   stored_int8;
typedef uint8_t  stored_uint8;
typedef int32_t  stored_int32;
typedef int64_t  stored_int64;
typedef uint8_t  stored_bool;

#define VALUE_float32(x)  (x)
#define VALUE_float64(x)  (x)
#define VALUE_float16(x)  half_value(x)
#define VALUE_bfloat16(x) flow_bfloat16_to_float(x)
#define VALUE_int8(x)     (x)
#define VALUE_uint8(x)    (x)
#define VALUE_int32(x)    (x)
#define VALUE_int64(x)    (x)
#define VALUE_bool(x)     ((uint8_t)((x) != 0))

/* Floats to integers: NaN to 0, what is outside to the nearest bound. The upper bound is compared as 2^bits, which
 * a float can hold. */
#define SATURATE(type, low, high, above) \
  ALWAYS_INLINE type saturate_##type(double x) { return x != x ? 0 : x <= (double)(low) ? (low) : x >= (above) ? (high) : (type)x; }
SATURATE(int8_t, INT8_MIN, INT8_MAX, 0x1p7)
SATURATE(uint8_t, 0, UINT8_MAX, 0x1p8)
SATURATE(int32_t, INT32_MIN, INT32_MAX, 0x1p31)
SATURATE(int64_t, INT64_MIN, INT64_MAX, 0x1p63)

/* Integers to narrower integers wrap, as in NumPy; floats are saturated, since C leaves their overflow undefined. */
#define TO_INTEGER(type, x) _Generic((x), float: saturate_##type((double)(x)), double: saturate_##type((double)(x)), default: (type)(x))

typedef float   kind_FLOAT;
typedef double  kind_DOUBLE;
typedef int64_t kind_INTEGER;
typedef int32_t kind_WORD;
typedef uint8_t kind_BOOL;

#define INTO_FLOAT(x)   ((float)(x))
#define INTO_DOUBLE(x)  ((double)(x))
#define INTO_INTEGER(x) TO_INTEGER(int64_t, x)
#define INTO_WORD(x)    TO_INTEGER(int32_t, x)
#define INTO_BOOL(x)    ((uint8_t)((x) != 0))

#define OUT_float32(x)  ((float)(x))
#define OUT_float64(x)  ((double)(x))
#define OUT_float16(x)  half_bits((float)(x))
#define OUT_bfloat16(x) flow_float_to_bfloat16((float)(x))
#define OUT_int8(x)     TO_INTEGER(int8_t, x)
#define OUT_uint8(x)    TO_INTEGER(uint8_t, x)
#define OUT_int32(x)    TO_INTEGER(int32_t, x)
#define OUT_int64(x)    TO_INTEGER(int64_t, x)
#define OUT_bool(x)     ((uint8_t)((x) != 0))

/* Three loops, so that packed elements are vectors, and one that repeats is converted once. step: of the input in elements; n of them
 * become a packed block of the kind. */
#define LOAD(dtype, kind)                                                                              \
  static void load_##dtype##_##kind(const void *from, int64_t step, void *to, int64_t n)               \
  {                                                                                                    \
    const stored_##dtype *in = from;                                                                   \
    kind_##kind *out = to;                                                                             \
    if (step == 1) {                                                                                   \
      FLOW_NO_OVERLAP                                                                                  \
      for (int64_t i = 0; i < n; i++) out[i] = INTO_##kind(VALUE_##dtype(in[i]));                      \
    } else if (step == 0) {                                                                            \
      kind_##kind value = INTO_##kind(VALUE_##dtype(in[0]));                                           \
      for (int64_t i = 0; i < n; i++) out[i] = value;                                                  \
    } else {                                                                                           \
      for (int64_t i = 0; i < n; i++) out[i] = INTO_##kind(VALUE_##dtype(in[i * step]));               \
    }                                                                                                  \
  }

/* The opposite: a packed block to elements that are `step` apart, converted as a cast does. */
#define STORE(dtype, kind)                                                                             \
  static void store_##kind##_##dtype(const void *from, void *to, int64_t step, int64_t n)              \
  {                                                                                                    \
    const kind_##kind *in = from;                                                                      \
    stored_##dtype *out = to;                                                                          \
    if (step == 1) {                                                                                   \
      FLOW_NO_OVERLAP                                                                                  \
      for (int64_t i = 0; i < n; i++) out[i] = OUT_##dtype(in[i]);                                     \
    } else {                                                                                           \
      for (int64_t i = 0; i < n; i++) out[i * step] = OUT_##dtype(in[i]);                              \
    }                                                                                                  \
  }

/* Without those that are written by hand between FLOAT and them. */
#define DTYPES_BUT_TWO(X, kind) \
  X(float32, kind) X(bfloat16, kind) X(float64, kind) X(int8, kind) X(uint8, kind) X(int64, kind) X(bool, kind)

/* In the order of flow_dtype. */
#define DTYPES(X, kind) \
  X(float32, kind) X(float16, kind) X(bfloat16, kind) X(float64, kind) X(int8, kind) \
  X(uint8, kind) X(int32, kind) X(int64, kind) X(bool, kind)

DTYPES_BUT_TWO(LOAD, FLOAT) DTYPES(LOAD, DOUBLE) DTYPES(LOAD, INTEGER) DTYPES(LOAD, BOOL) DTYPES(LOAD, WORD)
DTYPES_BUT_TWO(STORE, FLOAT) DTYPES(STORE, DOUBLE) DTYPES(STORE, INTEGER) DTYPES(STORE, BOOL) DTYPES(STORE, WORD)

/* ---- by vectors, where the compiler does not see how ------------------------------------------------------------------------- */

/* How many elements of a packed block go by vectors; these do. Without F16C, and for the last few, the caller converts one by one, with
 * the same result: each half has its float. */
static int64_t load_halves(const uint16_t *in, float *out, int64_t n)
{
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + i))));
#else
  (void)in, (void)out, (void)n;
#endif
  return i;
}

/* Eight at a time where the build has F16C; returns how many were written, the caller converts the rest. Both round to the nearest, ties to
 * even. */
static int64_t store_halves(const float *in, uint16_t *out, int64_t n)
{
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#else
  (void)in, (void)out, (void)n;
#endif
  return i;
}

/* What is below the range becomes the lowest number, which is what the processor gives for all that it cannot convert. */
static int64_t store_words(const float *in, int32_t *out, int64_t n)
{
  int64_t i = 0;
#ifdef __AVX2__
  const vf above = vf_set(0x1p31f);
  for (; i + VL <= n; i += VL) {
    vf x = vf_load(in + i);
    vi big = x >= above, number = x == x, y = __builtin_convertvector(vf_select(number, x, vf_set(0.0f)), vi);
    y = (y & ~big) | (big & INT32_MAX);
    memcpy(out + i, &y, sizeof y);
  }
#else
  (void)in, (void)out, (void)n;
#endif
  return i;
}

/* By vectors where elements are packed, the rest one by one. */
static void load_float16_FLOAT(const void *from, int64_t step, void *to, int64_t n)
{
  const uint16_t *in = from;
  float *out = to;
  for (int64_t i = step == 1 ? load_halves(in, out, n) : 0; i < n; i++) out[i] = half_value(in[i * step]);
}

/* As LOAD would make it: DTYPES_BUT_TWO leaves int32 out for the sake of the store below. */
static void load_int32_FLOAT(const void *from, int64_t step, void *to, int64_t n)
{
  const int32_t *in = from;
  float *out = to;
  if (step == 1) {
    FLOW_NO_OVERLAP
    for (int64_t i = 0; i < n; i++) out[i] = (float)in[i];
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = (float)in[i * step];
  }
}

/* The same way back. */
static void store_FLOAT_float16(const void *from, void *to, int64_t step, int64_t n)
{
  const float *in = from;
  uint16_t *out = to;
  for (int64_t i = step == 1 ? store_halves(in, out, n) : 0; i < n; i++) out[i * step] = half_bits(in[i]);
}

/* Saturated: by vectors where elements are packed, the rest one by one. */
static void store_FLOAT_int32(const void *from, void *to, int64_t step, int64_t n)
{
  const float *in = from;
  int32_t *out = to;
  for (int64_t i = step == 1 ? store_words(in, out, n) : 0; i < n; i++) out[i * step] = OUT_int32(in[i]);
}

/* ---- tables ------------------------------------------------------------------------------------------------------------------- */

#define LOADS(dtype, unused) \
  { load_##dtype##_FLOAT, load_##dtype##_DOUBLE, load_##dtype##_INTEGER, load_##dtype##_BOOL, load_##dtype##_WORD },
#define STORE_ENTRY(dtype, kind) store_##kind##_##dtype,

const flow_load_function FLOW_ISA_NAME(load)[FLOW_DTYPE_COUNT][FLOW_KIND_COUNT] = { DTYPES(LOADS, unused) };
const flow_store_function FLOW_ISA_NAME(store)[FLOW_KIND_COUNT][FLOW_DTYPE_COUNT] = {
  { DTYPES(STORE_ENTRY, FLOAT) }, { DTYPES(STORE_ENTRY, DOUBLE) }, { DTYPES(STORE_ENTRY, INTEGER) }, { DTYPES(STORE_ENTRY, BOOL) },
  { DTYPES(STORE_ENTRY, WORD) },
};
