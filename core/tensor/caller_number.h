/* caller_number.h: elements as numbers for callers outside: there is one NaN, which C calls NAN. Languages that keep their objects in NaNs,
 * LuaJIT among them, would take others for objects at an address that the bits say; files, memory of others and GPUs, whose own NaN is
 * 0x7fffffff, bring such. */
#ifndef FLOW_TENSOR_CALLER_NUMBER_H
#define FLOW_TENSOR_CALLER_NUMBER_H

#include <math.h>

static inline double flow_caller_number(double x) { return x != x ? (double)NAN : x; }

#endif
