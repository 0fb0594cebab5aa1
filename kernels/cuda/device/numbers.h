/* numbers.h: elements of any dtype as numbers, four neighbouring ones at once, and positions in shapes; for the bodies of kernels.
 *
 * Bodies that serve several dtypes are written once, in FAMILY_bodies.h, and included once per way of computing by
 *   #define BODIES "cuda/ops/FOLDER/FAMILY_bodies.h"
 *   #include "cuda/device/for_float32.h"    NAME(x) is x_float32: float32 operands, computed in float
 *   #include "cuda/device/for_half_floats.h"   NAME(x) is x_half_floats: 16-bit floats, also beside float32, computed in float; not
 *                                              every family has them
 *   #include "cuda/device/for_other.h"      NAME(x) is x_other: floats of any size, mixed, computed in double
 *   #include "cuda/device/for_integers.h"   NAME(x) is x_integers: integers and bool, computed in int64
 *   #undef BODIES
 * Each defines NUMBER and its dtype NUMBER_DTYPE, IN_FLOAT (1: NUMBER is float, 2: and operands may have 16 bits), NAME, IS_NAN,
 * ADD_PRODUCT(s, a, b), s + a b, LOAD(p, dtype, i), STORE(p, dtype, i, value), and LOAD_FOUR and STORE_FOUR: the `valid` <= 4 numbers from
 * i on; `together` says that they are four and are at a multiple of 16 bytes. */
#ifndef FLOW_CUDA_DEVICE_NUMBERS_H
#define FLOW_CUDA_DEVICE_NUMBERS_H

#include "cuda/device/convert.h"

/* ---- four numbers at once --------------------------------------------------------------------------------------------------- */

/* Whether operands may be read in fours: `step` elements are between the beginnings of runs of fours. */
static inline int reads_in_fours(const void *p, int64_t step) { return (uintptr_t)p % sizeof(four_floats) == 0 && step % 4 == 0; }

/* load_four_X, store_four_X: the `valid` numbers from i on; others are 0, or not stored. together: all four, at a multiple of their
 * size. */
BODY void load_four_floats(const float *p, int64_t i, int valid, int together, float v[4])
{
  if (together) {
    four_floats four = *(const four_floats *)(p + i);
    UNROLL for (int k = 0; k < 4; k++) v[k] = four.v[k];
  } else {
    UNROLL for (int k = 0; k < 4; k++) v[k] = k < valid ? p[i + k] : 0;
  }
}

BODY void store_four_floats(float *p, int64_t i, int valid, int together, const float v[4])
{
  if (together) {
#if defined(__CUDACC__)
    /* An assignment of four floats becomes four stores where the compiler has more than a few of them in sight. */
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
                 :: "l"(__cvta_generic_to_global(p + i)), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
#else
    four_floats four;
    UNROLL for (int k = 0; k < 4; k++) four.v[k] = v[k];
    *(four_floats *)(p + i) = four;
#endif
  } else {
    UNROLL for (int k = 0; k < 4; k++)
      if (k < valid) p[i + k] = v[k];
  }
}

/* 16-bit floats and float32. Four of them are read at once where four floats would be. */
BODY float load_half(const void *p, int dtype, int64_t i)
{
  if (dtype == FLOW_FLOAT32) return ((const float *)p)[i];
  uint16_t bits = ((const uint16_t *)p)[i];
  return dtype == FLOW_FLOAT16 ? half_to_float(bits) : bfloat16_to_float(bits);
}

BODY void store_half(void *p, int dtype, int64_t i, float value)
{
  if (dtype == FLOW_FLOAT32) ((float *)p)[i] = value;
  else ((uint16_t *)p)[i] = dtype == FLOW_FLOAT16 ? float_to_half(value) : float_to_bfloat16(value);
}

BODY void load_four_half_floats(const void *p, int dtype, int64_t i, int valid, int together, float v[4])
{
  if (dtype == FLOW_FLOAT32) {
    load_four_floats((const float *)p, i, valid, together, v);
  } else if (together) {
    four_half_floats four = *(const four_half_floats *)((const uint16_t *)p + i);
    UNROLL for (int k = 0; k < 4; k++) v[k] = dtype == FLOW_FLOAT16 ? half_to_float(four.v[k]) : bfloat16_to_float(four.v[k]);
  } else {
    UNROLL for (int k = 0; k < 4; k++) v[k] = k < valid ? load_half(p, dtype, i + k) : 0;
  }
}

BODY void store_four_half_floats(void *p, int dtype, int64_t i, int valid, int together, const float v[4])
{
  if (dtype == FLOW_FLOAT32) {
    store_four_floats((float *)p, i, valid, together, v);
  } else if (together) {
    four_half_floats four;
    UNROLL for (int k = 0; k < 4; k++) four.v[k] = dtype == FLOW_FLOAT16 ? float_to_half(v[k]) : float_to_bfloat16(v[k]);
    *(four_half_floats *)((uint16_t *)p + i) = four;
  } else {
    UNROLL for (int k = 0; k < 4; k++)
      if (k < valid) store_half(p, dtype, i + k, v[k]);
  }
}

/* Doubles of any float dtype, and below int64 of any integer dtype: one by one. */
BODY void load_four_reals(const void *p, int dtype, int64_t i, int valid, double v[4])
{
  UNROLL for (int k = 0; k < 4; k++) v[k] = k < valid ? load_double(dtype, p, i + k) : 0;
}

BODY void store_four_reals(void *p, int dtype, int64_t i, int valid, const double v[4])
{
  UNROLL for (int k = 0; k < 4; k++)
    if (k < valid) store_double(dtype, p, i + k, v[k]);
}

BODY void load_four_integers(const void *p, int dtype, int64_t i, int valid, int64_t v[4])
{
  UNROLL for (int k = 0; k < 4; k++) v[k] = k < valid ? load_integer(dtype, p, i + k) : 0;
}

BODY void store_four_integers(void *p, int dtype, int64_t i, int valid, const int64_t v[4])
{
  UNROLL for (int k = 0; k < 4; k++)
    if (k < valid) store_integer(dtype, p, i + k, v[k]);
}

BODY void load_four_bytes(const uint8_t *p, int64_t i, int valid, int together, int v[4])
{
  if (together) {
    four_bytes four = *(const four_bytes *)(p + i);
    UNROLL for (int k = 0; k < 4; k++) v[k] = four.v[k];
  } else {
    UNROLL for (int k = 0; k < 4; k++) v[k] = k < valid ? p[i + k] : 0;
  }
}

BODY void store_four_bytes(uint8_t *p, int64_t i, int valid, int together, const int v[4])
{
  if (together) {
    four_bytes four;
    UNROLL for (int k = 0; k < 4; k++) four.v[k] = (uint8_t)v[k];
    *(four_bytes *)(p + i) = four;
  } else {
    UNROLL for (int k = 0; k < 4; k++)
      if (k < valid) p[i + k] = (uint8_t)v[k];
  }
}

/* ---- positions ------------------------------------------------------------------------------------------------------------ */

/* i / n, and *rest = i mod n, both not negative. A GPU has no divider of 64 bits, and sizes rarely need one. */
BODY int64_t split(int64_t i, int64_t n, int64_t *rest)
{
  if (((uint64_t)i | (uint64_t)n) >> 32 == 0) {
    uint32_t quotient = (uint32_t)i / (uint32_t)n;
    *rest = (uint32_t)i - quotient * (uint32_t)n;
    return quotient;
  }
  int64_t quotient = i / n;
  *rest = i - quotient * n;
  return quotient;
}

BODY int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
BODY int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
/* How many parts of `size` it takes for n, which is not negative. */
static inline int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

#endif
