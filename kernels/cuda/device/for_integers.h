/* for_integers.h: BODIES for integers and bool, computed in int64. See numbers.h. */
#define NUMBER int64_t
#define NUMBER_DTYPE FLOW_INT64
#define IN_FLOAT 0
#define NAME(name) name##_integers
#define IS_NAN(x) 0
#define LOAD(p, dtype, i) load_integer(dtype, p, i)
#define STORE(p, dtype, i, value) store_integer(dtype, p, i, value)
#define LOAD_FOUR(p, dtype, i, valid, together, v) ((void)(together), load_four_integers(p, dtype, i, valid, v))
#define STORE_FOUR(p, dtype, i, valid, together, v) ((void)(together), store_four_integers(p, dtype, i, valid, v))
#define ADD_PRODUCT(s, a, b) ((int64_t)((uint64_t)(s) + (uint64_t)(a) * (uint64_t)(b)))
#include BODIES
#include "cuda/device/for_end.h"
