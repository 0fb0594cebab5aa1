/* convert.h: storage dtypes in and out of the types that kernels compute in.
 *
 * Kernels compute in five types only, the kinds; every dtype belongs to one of them, and integers of up to 32 bits to WORD, too. Loading
 * widens exactly (but for float64 into FLOAT and 64-bit integers into floats, which round). Storing rounds floats to nearest even,
 * saturates floats to integers (NaN becomes 0), wraps integers to narrower ones and writes bools as 0 or 1. A double becomes a float on its
 * way to 16 bits, so that it is rounded twice, as TensorFlow does it. */
#ifndef FLOW_CPU_MOVEMENT_CONVERT_H
#define FLOW_CPU_MOVEMENT_CONVERT_H

#include "cpu/vector.h"

typedef enum flow_kind {
  FLOW_KIND_FLOAT,      /* float:   float32, float16, bfloat16 */
  FLOW_KIND_DOUBLE,     /* double:  float64 */
  FLOW_KIND_INTEGER,    /* int64_t: int8, uint8, int32, int64, bool */
  FLOW_KIND_BOOL,       /* uint8_t, 0 or 1: conditions and the results of comparisons */
  FLOW_KIND_WORD,       /* int32_t: what elementwise ops compute with integers of up to 32 bits, to the same results as INTEGER */
  FLOW_KIND_COUNT
} flow_kind;

ALWAYS_INLINE flow_kind flow_kind_of(int dtype)
{
  if (dtype == FLOW_FLOAT64) return FLOW_KIND_DOUBLE;
  return dtype == FLOW_FLOAT32 || dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16 ? FLOW_KIND_FLOAT : FLOW_KIND_INTEGER;
}

/* The dtype whose elements are in memory as the kind computes with them: no conversion is needed. bool counts for BOOL. */
ALWAYS_INLINE int flow_kind_dtype(flow_kind kind)
{
  return kind == FLOW_KIND_FLOAT ? FLOW_FLOAT32 : kind == FLOW_KIND_DOUBLE ? FLOW_FLOAT64
       : kind == FLOW_KIND_INTEGER ? FLOW_INT64 : kind == FLOW_KIND_WORD ? FLOW_INT32 : FLOW_BOOL;
}

ALWAYS_INLINE size_t flow_kind_size(flow_kind kind)
{
  return kind == FLOW_KIND_FLOAT || kind == FLOW_KIND_WORD ? 4 : kind == FLOW_KIND_BOOL ? 1 : 8;
}

/* Reads n elements `step` elements apart (0 repeats the first) into a packed block of the kind. */
typedef void (*flow_load_function)(const void *from, int64_t step, void *to, int64_t n);
/* Writes a packed block of the kind to n elements `step` elements apart. */
typedef void (*flow_store_function)(const void *from, void *to, int64_t step, int64_t n);

extern const flow_load_function  FLOW_ISA_NAME(load)[FLOW_DTYPE_COUNT][FLOW_KIND_COUNT];
extern const flow_store_function FLOW_ISA_NAME(store)[FLOW_KIND_COUNT][FLOW_DTYPE_COUNT];

#endif
