/* convert.h: elements of any dtype in and out of the types that kernels compute in, as on the CPU (kernels/cpu/movement/convert.h):
 * widening is exact except for float64 into float and 64-bit integers into floats; storing rounds floats to nearest even, saturates floats
 * to integers (NaN becomes 0), wraps integers to narrower ones and writes bools as 0 or 1. */
#ifndef FLOW_CUDA_DEVICE_CONVERT_H
#define FLOW_CUDA_DEVICE_CONVERT_H

#include <string.h>
#include "cuda/device/body.h"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#define UNROLL _Pragma("unroll")
#define UNROLL_SOME _Pragma("unroll 2") /* where all rounds at once would take too many registers */
#else
#include "base/loops.h"
#include "tensor/tensor.h"
#define UNROLL FLOW_UNROLL(8)
#define UNROLL_SOME FLOW_UNROLL(2)
#endif

/* What an op computes in: float for floats up to 32 bits, double, int64_t for integers, conditions (0 or 1). */
typedef enum number_kind { KIND_FLOAT, KIND_DOUBLE, KIND_INTEGER, KIND_CONDITION } number_kind;

BODY float bits_to_float(uint32_t bits)
{
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

BODY uint32_t float_to_bits(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

BODY float half_to_float(uint16_t half)
{
#if defined(__CUDACC__)
  return __half2float(__ushort_as_half(half));
#else
  return flow_half_to_float(half);
#endif
}

BODY uint16_t float_to_half(float value)
{
#if defined(__CUDACC__)
  return __half_as_ushort(__float2half_rn(value));
#else
  return flow_float_to_half(value);
#endif
}

BODY float bfloat16_to_float(uint16_t b) { return bits_to_float((uint32_t)b << 16); }

BODY uint16_t float_to_bfloat16(float value)
{
  uint32_t bits = float_to_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);   /* NaN stays a NaN */
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* The upper bound is compared as a power of two, which a double holds. */
#define SATURATE(name, type, low, high, above)                                                  \
  BODY type name(double x) { return x != x ? 0 : x <= (double)(low) ? (low) : x >= (above) ? (high) : (type)x; }
SATURATE(saturate_int8, int8_t, INT8_MIN, INT8_MAX, 128.0)
SATURATE(saturate_uint8, uint8_t, 0, UINT8_MAX, 256.0)
SATURATE(saturate_int32, int32_t, INT32_MIN, INT32_MAX, 2147483648.0)
SATURATE(saturate_int64, int64_t, INT64_MIN, INT64_MAX, 9223372036854775808.0)
#undef SATURATE

/* load_KIND(dtype, from, i): element i. */
#define LOAD(name, T, OF_FLOAT)                                                                 \
  BODY T name(int dtype, const void *from, int64_t i)                                           \
  {                                                                                             \
    switch (dtype) {                                                                            \
      case FLOW_FLOAT32:  return OF_FLOAT(((const float *)from)[i]);                            \
      case FLOW_FLOAT16:  return OF_FLOAT(half_to_float(((const uint16_t *)from)[i]));          \
      case FLOW_BFLOAT16: return OF_FLOAT(bfloat16_to_float(((const uint16_t *)from)[i]));      \
      case FLOW_FLOAT64:  return OF_FLOAT(((const double *)from)[i]);                           \
      case FLOW_INT8:     return (T)((const int8_t *)from)[i];                                  \
      case FLOW_UINT8:    return (T)((const uint8_t *)from)[i];                                 \
      case FLOW_INT32:    return (T)((const int32_t *)from)[i];                                 \
      case FLOW_INT64:    return (T)((const int64_t *)from)[i];                                 \
      default:            return (T)(((const uint8_t *)from)[i] != 0);                          \
    }                                                                                           \
  }
LOAD(load_float, float, (float))
LOAD(load_double, double, (double))
LOAD(load_integer, int64_t, saturate_int64)
#undef LOAD

/* Whether element i is not zero; a NaN is not. */
BODY int load_condition(int dtype, const void *from, int64_t i)
{
  switch (dtype) {
    case FLOW_FLOAT32: case FLOW_FLOAT16: case FLOW_BFLOAT16: return load_float(dtype, from, i) != 0;
    case FLOW_FLOAT64: return ((const double *)from)[i] != 0;
    case FLOW_INT32:   return ((const int32_t *)from)[i] != 0;
    case FLOW_INT64:   return ((const int64_t *)from)[i] != 0;
    default:           return ((const uint8_t *)from)[i] != 0;
  }
}

/* store_KIND(dtype, to, i, value) */
#define STORE(name, T, TO_INTEGER)                                                              \
  BODY void name(int dtype, void *to, int64_t i, T value)                                       \
  {                                                                                             \
    switch (dtype) {                                                                            \
      case FLOW_FLOAT32:  ((float *)to)[i] = (float)value; return;                              \
      case FLOW_FLOAT16:  ((uint16_t *)to)[i] = float_to_half((float)value); return;            \
      case FLOW_BFLOAT16: ((uint16_t *)to)[i] = float_to_bfloat16((float)value); return;        \
      case FLOW_FLOAT64:  ((double *)to)[i] = (double)value; return;                            \
      case FLOW_INT8:     ((int8_t *)to)[i] = TO_INTEGER(int8, int8_t, value); return;          \
      case FLOW_UINT8:    ((uint8_t *)to)[i] = TO_INTEGER(uint8, uint8_t, value); return;       \
      case FLOW_INT32:    ((int32_t *)to)[i] = TO_INTEGER(int32, int32_t, value); return;       \
      case FLOW_INT64:    ((int64_t *)to)[i] = TO_INTEGER(int64, int64_t, value); return;       \
      default:            ((uint8_t *)to)[i] = (uint8_t)(value != 0); return;                   \
    }                                                                                           \
  }
#define SATURATED(name, type, value) saturate_##name((double)(value))
#define WRAPPED(name, type, value)   (type)(value)
STORE(store_float, float, SATURATED)
STORE(store_double, double, SATURATED)
STORE(store_integer, int64_t, WRAPPED)
STORE(store_condition, int, WRAPPED)
#undef STORE
#undef SATURATED
#undef WRAPPED

/* double to float by rounding to odd: a later rounding to fewer bits then gives what one rounding would have given (S. Boldo,
 * G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
BODY float round_to_odd(double value)
{
  float near = (float)value;
  if (value != value || (double)near == value) return near;
  uint32_t bits = float_to_bits(near);
  if (fabs((double)near) > fabs(value)) bits -= 1;      /* toward zero: infinity becomes the largest float */
  return bits_to_float(bits | 1u);
}

/* store_double that rounds once, as core/tensor/convert.c does. */
BODY void store_rounded(int dtype, void *to, int64_t i, double value)
{
  if (dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16) store_float(dtype, to, i, round_to_odd(value));
  else store_double(dtype, to, i, value);
}

/* Four elements in one access: `from` and `to` at a multiple of four elements of their own alignment. */
typedef struct __attribute__((aligned(16))) four_floats { float v[4]; } four_floats;
typedef struct __attribute__((aligned(8))) four_half_floats { uint16_t v[4]; } four_half_floats;
typedef struct __attribute__((aligned(8))) two_words { uint32_t at[2]; } two_words;
typedef struct __attribute__((aligned(4))) four_bytes { uint8_t v[4]; } four_bytes;

#endif
