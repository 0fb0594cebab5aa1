/* for_other.h: BODIES for floats of any size, mixed, computed in double. See numbers.h. */
#define NUMBER double
#define NUMBER_DTYPE FLOW_FLOAT64
#define IN_FLOAT 0
#define NAME(name) name##_other
#define IS_NAN(x) isnan(x)
#define LOAD(p, dtype, i) load_double(dtype, p, i)
#define STORE(p, dtype, i, value) store_double(dtype, p, i, value)
#define LOAD_FOUR(p, dtype, i, valid, together, v) ((void)(together), load_four_reals(p, dtype, i, valid, v))
#define STORE_FOUR(p, dtype, i, valid, together, v) ((void)(together), store_four_reals(p, dtype, i, valid, v))
#define EXP(x) exp(x)
#define LOG(x) log(x)
#define SQRT(x) sqrt(x)
#define ABS(x) fabs(x)
#define ADD_PRODUCT(s, a, b) ((s) + (a) * (b))
#include BODIES
#include "cuda/device/for_end.h"
