/* for_float32.h: BODIES for float32 operands, computed in float. See numbers.h. */
#define NUMBER float
#define NUMBER_DTYPE FLOW_FLOAT32
#define IN_FLOAT 1
#define NAME(name) name##_float32
#define IS_NAN(x) isnan(x)
#define LOAD(p, dtype, i) ((void)(dtype), ((const float *)(p))[i])
#define STORE(p, dtype, i, value) ((void)(dtype), ((float *)(p))[i] = (value))
#define LOAD_FOUR(p, dtype, i, valid, together, v) ((void)(dtype), load_four_floats((const float *)(p), i, valid, together, v))
#define STORE_FOUR(p, dtype, i, valid, together, v) ((void)(dtype), store_four_floats((float *)(p), i, valid, together, v))
#define EXP(x) expf(x)
#define LOG(x) logf(x)
#define SQRT(x) sqrtf(x)
#define ABS(x) fabsf(x)
#define ADD_PRODUCT(s, a, b) ((s) + (a) * (b))
#include BODIES
#include "cuda/device/for_end.h"
