/* convert.c: element conversion between dtypes. Rounding happens once, at the end: a double is rounded to odd on its way to 16 bits, so
 * that the second rounding gives what a single one would. What does not fit saturates from floats to integers, and wraps between
 * integers. The formulas of 16-bit floats are those of IEEE 754-2008 (binary16) and of bfloat16, the upper half of a float32. */
#include "tensor/convert.h"

#include <math.h>
#include <string.h>
#include "base/float_state.h"

/* ---- 16-bit floats ---------------------------------------------------------------------------------------------------- */

/* Exact: every half is a float. */
float flow_half_to_float(uint16_t half)
{
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu;
  union { uint32_t bits; float value; } number;
  if (exponent == 0) {                                             /* zero and subnormals: mantissa x 2^-24 */
    number.value = (float)mantissa * 0x1p-24f;
    number.bits |= sign;
  } else if (exponent == 31) {
    number.bits = sign | 0x7f800000u | mantissa << 13;
  } else {
    number.bits = sign | (exponent + 112) << 23 | mantissa << 13;  /* 112 = 127 - 15, the difference of the biases */
  }
  return number.value;
}

/* Rounds to the nearest, ties to even, as IEEE 754 has it. A subnormal result is rounded by adding 0.5, whose unit in the last place is
 * that of the smallest half. */
uint16_t flow_float_to_half(float value)
{
  union { float value; uint32_t bits; } number = { value };
  uint16_t sign = (uint16_t)(number.bits >> 16 & 0x8000u);
  uint32_t size = number.bits & 0x7fffffffu;
  if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);       /* NaN */
  if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);      /* from 65520 on: infinity */
  if (size < 0x38800000u) {                                        /* below 2^-14: the sum's unit in the last place is 2^-24 */
    union { float value; uint32_t bits; } sum = { .bits = size };
    sum.value += 0.5f;
    return (uint16_t)(sign | (sum.bits - 0x3f000000u));
  }
  /* A carry out of the mantissa goes into the exponent, which is what rounding up to the next power of two means. */
  size += 0xfffu + (size >> 13 & 1u);                              /* round half to even at bit 13 */
  return (uint16_t)(sign | ((size >> 13) - (112u << 10)));
}

/* double to float by rounding to odd: a later rounding to fewer bits then gives what one rounding would have given
 * (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
static float round_to_odd(double value)
{
  union { float value; uint32_t bits; } number = { (float)value };
  if (isnan(value) || (double)number.value == value) return number.value;
  if (fabs((double)number.value) > fabs(value)) number.bits -= 1;  /* toward zero: infinity becomes the largest float */
  number.bits |= 1u;
  return number.value;
}

/* An integer as a double that lies on the same side of every middle between two 16-bit floats: from 2^53 on those are multiples of 2^45, so
 * that of the bits below 2^11, which a double may not hold, only whether one is set counts. */
static double without_ties(int64_t x)
{
  if (x >= -(INT64_C(1) << 53) && x <= INT64_C(1) << 53) return (double)x;
  return (double)((x & ~INT64_C(0x7ff)) | (x & 0x7ff ? 0x400 : 0));
}

/* ---- lanes -------------------------------------------------------------------------------------------------------------- */

/* One loop for each dtype, so that compilers make vector code of it. */
#define EACH(type, expression)                                    \
  for (int64_t i = 0; i < n; i++) {                               \
    type x = ((const type *)from)[i * step];                      \
    to[i] = (expression);                                         \
  }                                                               \
  return;

void flow_convert_to_double(int dtype, const void *from, int64_t step, double *to, int64_t n)
{
  FLOW_DEFAULT_FLOATS;
  switch (dtype) {
    case FLOW_FLOAT32:  EACH(float, (double)x)
    case FLOW_FLOAT64:  EACH(double, x)
    case FLOW_FLOAT16:  EACH(uint16_t, (double)flow_half_to_float(x))
    case FLOW_BFLOAT16: EACH(uint16_t, (double)flow_bfloat16_to_float(x))
    case FLOW_INT8:     EACH(int8_t, (double)x)
    case FLOW_UINT8:    EACH(uint8_t, (double)x)
    case FLOW_INT32:    EACH(int32_t, (double)x)
    case FLOW_INT64:    EACH(int64_t, (double)x)
    case FLOW_BOOL:     EACH(uint8_t, x ? 1.0 : 0.0)
  }
}

void flow_convert_to_int64(int dtype, const void *from, int64_t step, int64_t *to, int64_t n)
{
  switch (dtype) {
    case FLOW_INT8:     EACH(int8_t, (int64_t)x)
    case FLOW_UINT8:    EACH(uint8_t, (int64_t)x)
    case FLOW_INT32:    EACH(int32_t, (int64_t)x)
    case FLOW_INT64:    EACH(int64_t, x)
    case FLOW_BOOL:     EACH(uint8_t, x ? 1 : 0)
  }
}
#undef EACH

#define EACH(type, expression)                                    \
  for (int64_t i = 0; i < n; i++) {                               \
    lane x = from[i];                                             \
    ((type *)to)[i * step] = (expression);                        \
  }                                                               \
  return;

/* Truncates toward zero; NaN becomes 0; both bounds are powers of two (less one), exact as doubles or rounded up. The
 * comparisons come before the cast, which is undefined in C for what does not fit: (double)INT64_MAX is 2^63, so that >=
 * leaves numbers below 2^63 only. */
static int64_t saturate(double x, int64_t low, int64_t high)
{
  if (isnan(x)) return 0;
  if (x <= (double)low) return low;
  if (x >= (double)high) return high;
  return (int64_t)x;
}

void flow_convert_from_double(int dtype, const double *from, void *to, int64_t step, int64_t n)
{
  FLOW_DEFAULT_FLOATS;
  typedef double lane;
  switch (dtype) {
    case FLOW_FLOAT32:  EACH(float, (float)x)
    case FLOW_FLOAT64:  EACH(double, x)
    case FLOW_FLOAT16:  EACH(uint16_t, flow_float_to_half(round_to_odd(x)))
    case FLOW_BFLOAT16: EACH(uint16_t, flow_float_to_bfloat16(round_to_odd(x)))
    case FLOW_INT8:     EACH(int8_t, (int8_t)saturate(x, INT8_MIN, INT8_MAX))
    case FLOW_UINT8:    EACH(uint8_t, (uint8_t)saturate(x, 0, UINT8_MAX))
    case FLOW_INT32:    EACH(int32_t, (int32_t)saturate(x, INT32_MIN, INT32_MAX))
    case FLOW_INT64:    EACH(int64_t, saturate(x, INT64_MIN, INT64_MAX))
    case FLOW_BOOL:     EACH(uint8_t, x != 0)
  }
}

void flow_convert_from_int64(int dtype, const int64_t *from, void *to, int64_t step, int64_t n)
{
  FLOW_DEFAULT_FLOATS;
  typedef int64_t lane;
  switch (dtype) {
    case FLOW_FLOAT32:  EACH(float, (float)x)
    case FLOW_FLOAT64:  EACH(double, (double)x)
    case FLOW_FLOAT16:  EACH(uint16_t, flow_float_to_half((float)x))      /* exact in float wherever a half is finite */
    case FLOW_BFLOAT16: EACH(uint16_t, flow_float_to_bfloat16(round_to_odd(without_ties(x))))
    case FLOW_INT8:     EACH(int8_t, (int8_t)x)
    case FLOW_UINT8:    EACH(uint8_t, (uint8_t)x)
    case FLOW_INT32:    EACH(int32_t, (int32_t)x)
    case FLOW_INT64:    EACH(int64_t, x)
    case FLOW_BOOL:     EACH(uint8_t, x != 0)
  }
}
#undef EACH

/* ---- any to any ------------------------------------------------------------------------------------------------------------ */

#define MOVE(type)                                                                                          \
  for (int64_t i = 0; i < n; i++) ((type *)to)[i * to_step] = ((const type *)from)[i * from_step];          \
  return;

/* Of one dtype: only the size counts. As unsigned integers, so that the bits of NaNs stay unchanged. */
static void move_elements(int size, const void *from, int64_t from_step, void *to, int64_t to_step, int64_t n)
{
  if (from_step == 1 && to_step == 1) {
    memcpy(to, from, (size_t)n * (size_t)size);
    return;
  }
  switch (size) {
    case 1: MOVE(uint8_t)
    case 2: MOVE(uint16_t)
    case 4: MOVE(uint32_t)
    case 8: MOVE(uint64_t)
  }
}
#undef MOVE

/* Floats go through double, the rest through int64, so that each pair of dtypes needs two loops and not one of its own.
 * Every value passes unchanged or is rounded once: double holds all floats, int64 all integers. */
void flow_convert(int from_dtype, const void *from, int64_t from_step, int to_dtype, void *to, int64_t to_step, int64_t n)
{
  FLOW_DEFAULT_FLOATS;
  enum { CHUNK = 256 };                  /* lanes stay in the first-level cache */
  int from_size = flow_dtype_size(from_dtype), to_size = flow_dtype_size(to_dtype);
  if (from_dtype == to_dtype) {
    move_elements(from_size, from, from_step, to, to_step, n);
    return;
  }
  for (int64_t done = 0; done < n; done += CHUNK) {
    int64_t count = n - done < CHUNK ? n - done : CHUNK;
    const char *source = (const char *)from + done * from_step * from_size;
    char *target = (char *)to + done * to_step * to_size;
    if (flow_dtype_is_float(from_dtype)) {
      double lane[CHUNK];
      flow_convert_to_double(from_dtype, source, from_step, lane, count);
      flow_convert_from_double(to_dtype, lane, target, to_step, count);
    } else {
      int64_t lane[CHUNK];
      flow_convert_to_int64(from_dtype, source, from_step, lane, count);
      flow_convert_from_int64(to_dtype, lane, target, to_step, count);
    }
  }
}
