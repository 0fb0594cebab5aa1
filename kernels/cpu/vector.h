/* kernels/cpu: the CPU's kernels. Every file but device.c is compiled once per instruction set (FLOW_ISA = avx512, avx2,
 * plain), so code here is written once over the vector length and names its tables with FLOW_KERNELS.
 *
 * vector.h: vectors of floats as GCC vector extensions, and the few things about them that C cannot say.
 *
 *   vf       a vector of VL floats (VL = 16, 8, 4)     vd     the same bytes as VL/2 doubles
 *   vi       VL int32, also the result of comparing two vf (all ones where true)
 *   vb       VL bytes
 *   REGISTERS  architectural vector registers: tiles are sized so that accumulators, weights and one broadcast fit */
#ifndef FLOW_CPU_VECTOR_H
#define FLOW_CPU_VECTOR_H

#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#include "kernels.h"
#include "base/loops.h"
#include "ops/op.h"

#if defined(FLOW_ISA_AVX512)
#define FLOW_ISA_NAME(name) flow_cpu_avx512_##name
enum { VL = 16, REGISTERS = 32 };
#elif defined(FLOW_ISA_AVX2)
#define FLOW_ISA_NAME(name) flow_cpu_avx2_##name
enum { VL = 8, REGISTERS = 16 };
#else
#define FLOW_ISA_NAME(name) flow_cpu_plain_##name
enum { VL = 4, REGISTERS = 16 };
#endif

/* const flow_kernel FLOW_KERNELS(add)[] = { { .variant = "...", .run = ... }, { 0 } }; */
#define FLOW_KERNELS(op) FLOW_ISA_NAME(op##_kernels)

#if defined(FLOW_ISA_AVX512)
/* Vectors as they are in registers, and, `_unaligned`, as they are in memory: at any multiple of an element, and allowed to alias whatever
 * else the memory is. */
typedef float   vf __attribute__((vector_size(64)));
typedef double  vd __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
typedef float   vf_unaligned __attribute__((vector_size(64), aligned(4), may_alias));
typedef double  vd_unaligned __attribute__((vector_size(64), aligned(8), may_alias));
#elif defined(FLOW_ISA_AVX2)
typedef float   vf __attribute__((vector_size(32)));
typedef double  vd __attribute__((vector_size(32)));
typedef int32_t vi __attribute__((vector_size(32)));
typedef float   vf_unaligned __attribute__((vector_size(32), aligned(4), may_alias));
typedef double  vd_unaligned __attribute__((vector_size(32), aligned(8), may_alias));
#else
typedef float   vf __attribute__((vector_size(16)));
typedef double  vd __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef float   vf_unaligned __attribute__((vector_size(16), aligned(4), may_alias));
typedef double  vd_unaligned __attribute__((vector_size(16), aligned(8), may_alias));
#endif

typedef uint8_t vb __attribute__((vector_size(VL)));   /* one byte per lane of a vf */

typedef uint32_t vu __attribute__((vector_size(sizeof(vi))));     /* for arithmetic on bits that may wrap */

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE vf   vf_load(const float *p)          { return *(const vf_unaligned *)p; }
ALWAYS_INLINE void vf_store(float *p, vf v)         { *(vf_unaligned *)p = v; }
ALWAYS_INLINE vf   vf_set(float x)                  { return x - (vf){ 0 }; }      /* x in every lane */

/* mask ? a : b, for what a comparison gave. */
ALWAYS_INLINE vf vf_select(vi mask, vf a, vf b)
{
#if defined(FLOW_ISA_AVX2)
  return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
  return (vf)(((vi)a & mask) | ((vi)b & ~mask));
#endif
}

/* a > b ? a : b. */
ALWAYS_INLINE vf vf_max(vf a, vf b)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);       /* the second operand if one is NaN */
#elif defined(FLOW_ISA_AVX2)
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return vf_select(a > b, a, b);
#endif
}

/* max(a, least) and min(a, most), where a NaN in a stays. */
ALWAYS_INLINE vf vf_at_least(vf a, vf least) { return vf_max(least, a); }

ALWAYS_INLINE vf vf_at_most(vf a, vf most)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  return (vf)_mm512_min_ps((__m512)most, (__m512)a);
#elif defined(FLOW_ISA_AVX2)
  return (vf)_mm256_min_ps((__m256)most, (__m256)a);
#else
  return vf_select(a > most, most, a);
#endif
}

ALWAYS_INLINE vf vf_relu(vf a) { return vf_at_least(a, vf_set(0.0f)); }

/* VL bytes as int32 lanes, and back (lanes must be in 0..255): GCC 12 makes scalar code of __builtin_convertvector. */
ALWAYS_INLINE vi vi_load_bytes(const uint8_t *p)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif defined(FLOW_ISA_AVX2)
  return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
  vb bytes;
  memcpy(&bytes, p, sizeof bytes);
  return __builtin_convertvector(bytes, vi);
#endif
}

ALWAYS_INLINE void vi_store_bytes(uint8_t *p, vi v)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)v));
#elif defined(FLOW_ISA_AVX2)
  __m256i words = _mm256_packus_epi32((__m256i)v, (__m256i)v), bytes = _mm256_packus_epi16(words, words);
  _mm_storel_epi64((__m128i *)p, _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)));
#else
  vb bytes = __builtin_convertvector(v, vb);
  memcpy(p, &bytes, sizeof bytes);
#endif
}

/* Floats as doubles: VL / 2 of them from memory, the lower and the upper half of a vector. */
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
ALWAYS_INLINE vd vd_widen(const float *p) { return (vd)_mm512_cvtps_pd(_mm256_loadu_ps(p)); }
ALWAYS_INLINE vd vd_low(vf v)             { return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v)); }
ALWAYS_INLINE vd vd_high(vf v)            { return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1)); }
#elif defined(FLOW_ISA_AVX2)
ALWAYS_INLINE vd vd_widen(const float *p) { return (vd)_mm256_cvtps_pd(_mm_loadu_ps(p)); }
ALWAYS_INLINE vd vd_low(vf v)             { return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v)); }
ALWAYS_INLINE vd vd_high(vf v)            { return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1)); }
#else
ALWAYS_INLINE vd vd_widen(const float *p) { return (vd){ (double)p[0], (double)p[1] }; }
ALWAYS_INLINE vd vd_low(vf v)             { return (vd){ (double)v[0], (double)v[1] }; }
ALWAYS_INLINE vd vd_high(vf v)            { return (vd){ (double)v[2], (double)v[3] }; }
#endif
/* vd_low and vd_high of a vector, rounded. */
ALWAYS_INLINE vf vf_narrow(vd low, vd high)
{
  vf v;
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  v = (vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low)), _mm512_cvtpd_ps((__m512d)high), 1);
#elif defined(FLOW_ISA_AVX2)
  v = (vf)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high), _mm256_cvtpd_ps((__m256d)low));
#else
  v = (vf){ (float)low[0], (float)low[1], (float)high[0], (float)high[1] };
#endif
  return v;
}
ALWAYS_INLINE vd   vd_load(const double *p)         { return *(const vd_unaligned *)p; }
ALWAYS_INLINE void vd_store(double *p, vd v)        { *(vd_unaligned *)p = v; }

/* Sum of the lanes in a fixed (pairwise) order. */
ALWAYS_INLINE double vd_sum(vd v)
{
  double lane[VL / 2];
  memcpy(lane, &v, sizeof v);
  for (int width = VL / 4; width > 0; width /= 2)
    for (int i = 0; i < width; i++) lane[i] += lane[i + width];
  return lane[0];
}

/* The first n <= VL lanes from or to memory; other lanes are zero or untouched, or, loaded over `rest`, those of it. */
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
ALWAYS_INLINE vf   vf_load_part(const float *p, int n)    { return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
ALWAYS_INLINE void vf_store_part(float *p, vf v, int n)   { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v); }
ALWAYS_INLINE vf vf_load_over(vf rest, const float *p, int n)
{
  return (vf)_mm512_mask_loadu_ps((__m512)rest, (__mmask16)((1u << n) - 1), p);
}
#elif defined(FLOW_ISA_AVX2)
ALWAYS_INLINE __m256i part_mask(int n) { return (__m256i)((vi){ 0, 1, 2, 3, 4, 5, 6, 7 } < n); }
ALWAYS_INLINE vf   vf_load_part(const float *p, int n)    { return (vf)_mm256_maskload_ps(p, part_mask(n)); }
ALWAYS_INLINE void vf_store_part(float *p, vf v, int n)   { _mm256_maskstore_ps(p, part_mask(n), (__m256)v); }
ALWAYS_INLINE vf vf_load_over(vf rest, const float *p, int n)
{
  return (vf)_mm256_blendv_ps((__m256)rest, (__m256)vf_load_part(p, n), (__m256)part_mask(n));
}
#else
ALWAYS_INLINE vf vf_load_part(const float *p, int n)
{
  vf v = { 0 };
  memcpy(&v, p, (size_t)n * sizeof(float));
  return v;
}
ALWAYS_INLINE void vf_store_part(float *p, vf v, int n) { memcpy(p, &v, (size_t)n * sizeof(float)); }
ALWAYS_INLINE vf vf_load_over(vf rest, const float *p, int n)
{
  memcpy(&rest, p, (size_t)n * sizeof(float));
  return rest;
}
#endif

/* A vector of a line that has `lanes` more floats, be it a whole one or its last part: other lanes are those of `rest`, or untouched. */
ALWAYS_INLINE vf vf_load_lanes(const float *p, int64_t lanes, vf rest)
{
  return lanes >= VL ? vf_load(p) : vf_load_over(rest, p, (int)lanes);
}
ALWAYS_INLINE void vf_store_lanes(float *p, vf v, int64_t lanes)
{
  if (lanes >= VL) vf_store(p, v);
  else vf_store_part(p, v, (int)lanes);
}

/* One bit for every lane that is not `value`, lane 0 lowest. */
ALWAYS_INLINE uint32_t vi_differs(vi v, int32_t value)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  return _mm512_cmpneq_epi32_mask((__m512i)v, _mm512_set1_epi32(value));
#elif defined(FLOW_ISA_AVX2)
  return 0xffu & ~(uint32_t)_mm256_movemask_ps((__m256)(v == value));
#else
  uint32_t bits = 0;
  for (int i = 0; i < VL; i++) bits |= (uint32_t)(v[i] != value) << i;
  return bits;
#endif
}

/* One bit for every lane that is less than `value`, lane 0 lowest. */
ALWAYS_INLINE uint32_t vi_below(vi v, int32_t value)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  return _mm512_cmplt_epi32_mask((__m512i)v, _mm512_set1_epi32(value));
#elif defined(FLOW_ISA_AVX2)
  return (uint32_t)_mm256_movemask_ps((__m256)(v < value));
#else
  uint32_t bits = 0;
  for (int i = 0; i < VL; i++) bits |= (uint32_t)(v[i] < value) << i;
  return bits;
#endif
}

/* The lanes whose bits are set, in order, in front; what follows them is undefined. */
ALWAYS_INLINE vf vf_compress(vf v, uint32_t bits)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  return (vf)_mm512_maskz_compress_ps((__mmask16)bits, (__m512)v);
#elif defined(FLOW_ISA_AVX2)
  uint64_t bytes = _pdep_u64(bits, 0x0101010101010101u) * 255;         /* a byte of ones for every bit */
  uint64_t lanes = _pext_u64(0x0706050403020100u, bytes);
  return (vf)_mm256_permutevar8x32_ps((__m256)v, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)lanes)));
#else
  vf result = v;
  for (int i = 0, n = 0; i < VL; i++)
    if (bits >> i & 1) result[n++] = v[i];
  return result;
#endif
}

/* Sum of the lanes in a fixed (pairwise) order: those of the upper half are added to those of the lower one, and so on. */
ALWAYS_INLINE float vf_sum(vf v)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  __m256 half = _mm256_add_ps(_mm512_castps512_ps256((__m512)v), _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)v, 1)));
#elif defined(FLOW_ISA_AVX2)
  __m256 half = (__m256)v;
#endif
#if defined(FLOW_ISA_AVX2) || (defined(FLOW_ISA_AVX512) && defined(__AVX512F__))
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)), two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
  float lane[VL];
  memcpy(lane, &v, sizeof v);
  for (int width = VL / 2; width > 0; width /= 2)
    for (int i = 0; i < width; i++) lane[i] += lane[i + width];
  return lane[0];
#endif
}

/* The largest lane of a vector without a NaN. */
ALWAYS_INLINE float vf_largest(vf v)
{
#if defined(FLOW_ISA_AVX512) && defined(__AVX512F__)
  __m256 half = _mm256_max_ps(_mm512_castps512_ps256((__m512)v), _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)v, 1)));
#elif defined(FLOW_ISA_AVX2)
  __m256 half = (__m256)v;
#endif
#if defined(FLOW_ISA_AVX2) || (defined(FLOW_ISA_AVX512) && defined(__AVX512F__))
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)), two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
  float largest = v[0];
  for (int lane = 1; lane < VL; lane++) largest = v[lane] > largest ? v[lane] : largest;
  return largest;
#endif
}

#endif
