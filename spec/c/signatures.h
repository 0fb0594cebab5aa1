/* signatures.h: signatures as tests write them: F(-1, 3) is a float32 {rows, 3}. */
#ifndef FLOW_SPEC_SIGNATURES_H
#define FLOW_SPEC_SIGNATURES_H

#include "ops/rules.h"

#define SHAPED(dtype, ...) { dtype, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), { __VA_ARGS__ } }
#define F(...)   SHAPED(FLOW_FLOAT32, __VA_ARGS__)
#define H(...)   SHAPED(FLOW_FLOAT16, __VA_ARGS__)
#define I32(...) SHAPED(FLOW_INT32, __VA_ARGS__)
#define I64(...) SHAPED(FLOW_INT64, __VA_ARGS__)
#define U8(...)  SHAPED(FLOW_UINT8, __VA_ARGS__)
#define B(...)   SHAPED(FLOW_BOOL, __VA_ARGS__)
#define SCALAR(dtype) { dtype, 0, { 0 } }
#define TO(...)  { .shape = { .rank = sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), .dims = { __VA_ARGS__ } } }
#define ANY FLOW_DIM_INFER
#define END INT64_MAX

#endif
