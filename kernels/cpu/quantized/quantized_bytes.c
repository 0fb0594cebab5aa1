/* quantized_bytes.c: quantized_tiles.inc by AVX-512 VNNI: vpdpbusd adds four products of a byte and a signed byte to each int32. Without it
 * the variant supports nothing. */
#include "cpu/quantized/quantized.h"
#include "cpu/cost.h"

#define VARIANT(name) FLOW_ISA_NAME(quantized_bytes_##name)
#define GROUP 4
#define MACS 4.0
typedef uint8_t cell;

#if defined(FLOW_ISA_AVX512)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx512vnni")
#endif
#define AVAILABLE __builtin_cpu_supports("avx512vnni")
enum { PIXELS = 12, VECTORS = 2 };
/* x has four bytes of a pixel, the same in every lane; a lane of w has the four weights that one output has for them. */
ALWAYS_INLINE vi dot(vi sums, int32_t x, vi w) { return (vi)_mm512_dpbusd_epi32((__m512i)sums, _mm512_set1_epi32(x), (__m512i)w); }
#else
#define AVAILABLE 0
enum { PIXELS = 1, VECTORS = 2 };
ALWAYS_INLINE vi dot(vi sums, int32_t x, vi w) { return (void)x, (void)w, sums; }
#endif

#include "cpu/quantized/quantized_tiles.inc"
#if defined(FLOW_ISA_AVX512) && defined(__clang__)
#pragma clang attribute pop
#endif
