/* for_half_floats.h: BODIES for floats of 16 bits, with float32 beside them, computed in float. See numbers.h. */
#define NUMBER float
#define NUMBER_DTYPE FLOW_FLOAT32
#define IN_FLOAT 2
#define NAME(name) name##_half_floats
#define IS_NAN(x) isnan(x)
#define LOAD(p, dtype, i) load_half(p, dtype, i)
#define STORE(p, dtype, i, value) store_half(p, dtype, i, value)
#define LOAD_FOUR(p, dtype, i, valid, together, v) load_four_half_floats(p, dtype, i, valid, together, v)
#define STORE_FOUR(p, dtype, i, valid, together, v) store_four_half_floats(p, dtype, i, valid, together, v)
#define EXP(x) expf(x)
#define LOG(x) logf(x)
#define SQRT(x) sqrtf(x)
#define ABS(x) fabsf(x)
#define ADD_PRODUCT(s, a, b) ((s) + (a) * (b))
#include BODIES
#include "cuda/device/for_end.h"
