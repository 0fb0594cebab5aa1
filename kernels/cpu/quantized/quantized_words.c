/* quantized_words.c: quantized_tiles.inc by vpmaddwd, which adds two products of words to each int32: bytes are copied as words, since the
 * products of bytes that AVX2 has saturate. Without AVX2 the variant supports nothing. */
#include "cpu/quantized/quantized.h"
#include "cpu/cost.h"

#define VARIANT(name) FLOW_ISA_NAME(quantized_words_##name)
#define GROUP 2
#define MACS 2.0
typedef int16_t cell;

#if defined(FLOW_ISA_AVX512) && defined(__AVX512BW__)
#define AVAILABLE 1
enum { PIXELS = 12, VECTORS = 2 };
/* x has two words, the same in every lane; a lane of w has one output's two weights. Products are exact and their sum fits 32 bits. */
ALWAYS_INLINE vi dot(vi sums, int32_t x, vi w) { return sums + (vi)_mm512_madd_epi16(_mm512_set1_epi32(x), (__m512i)w); }
#elif defined(FLOW_ISA_AVX2)
#define AVAILABLE 1
enum { PIXELS = 5, VECTORS = 2 };
ALWAYS_INLINE vi dot(vi sums, int32_t x, vi w) { return sums + (vi)_mm256_madd_epi16(_mm256_set1_epi32(x), (__m256i)w); }
#else
#define AVAILABLE 0
enum { PIXELS = 1, VECTORS = 2 };
ALWAYS_INLINE vi dot(vi sums, int32_t x, vi w) { return (void)x, (void)w, sums; }
#endif

#include "cpu/quantized/quantized_tiles.inc"
