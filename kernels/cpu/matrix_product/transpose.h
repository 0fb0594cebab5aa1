/* transpose.h: VL x VL floats transposed in registers.
 *
 * log2(VL) rounds; round s swaps blocks of s x s: with rows a = r[i] and b = r[i + s], the first new row takes the even
 * blocks of a and b, the second the odd ones. The index lists say which lanes (VL and up: lanes of b). */
#ifndef FLOW_CPU_MATRIX_PRODUCT_TRANSPOSE_H
#define FLOW_CPU_MATRIX_PRODUCT_TRANSPOSE_H

#include "cpu/vector.h"

#if defined(__clang__) || __GNUC__ >= 12
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (vi){ __VA_ARGS__ })      /* gcc 11 has this form alone, clang the other */
#endif
#define SWAP_BLOCKS(s, EVEN, ODD)                                   \
  FLOW_UNROLL(16)                                                   \
  for (int i = 0; i < VL; i++)                                      \
    if (!(i & (s))) {                                               \
      vf a = r[i], b = r[i + (s)];                                  \
      r[i] = PICK(a, b, EVEN);                                      \
      r[i + (s)] = PICK(a, b, ODD);                                 \
    }
#define LANES(...) __VA_ARGS__

/* r[i][j] and r[j][i] change places. The loops are unrolled, so that all of r stays in registers. */
ALWAYS_INLINE void vf_transpose(vf r[VL])
{
#if defined(FLOW_ISA_AVX512)
  SWAP_BLOCKS(8, LANES(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
                 LANES(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
  SWAP_BLOCKS(4, LANES(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
                 LANES(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
  SWAP_BLOCKS(2, LANES(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
                 LANES(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
  SWAP_BLOCKS(1, LANES(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
                 LANES(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#elif defined(FLOW_ISA_AVX2)
  SWAP_BLOCKS(4, LANES(0, 1, 2, 3, 8, 9, 10, 11), LANES(4, 5, 6, 7, 12, 13, 14, 15))
  SWAP_BLOCKS(2, LANES(0, 1, 8, 9, 4, 5, 12, 13), LANES(2, 3, 10, 11, 6, 7, 14, 15))
  SWAP_BLOCKS(1, LANES(0, 8, 2, 10, 4, 12, 6, 14), LANES(1, 9, 3, 11, 5, 13, 7, 15))
#else
  SWAP_BLOCKS(2, LANES(0, 1, 4, 5), LANES(2, 3, 6, 7))
  SWAP_BLOCKS(1, LANES(0, 4, 2, 6), LANES(1, 5, 3, 7))
#endif
}

#undef SWAP_BLOCKS
#undef PICK
#undef LANES

#endif
