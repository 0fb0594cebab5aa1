/* kernel_arrays.h: arrays for kernel tests: any dtype, any layout, guarded on both sides, read and written by position;
 * and a runner that calls every variant of an op on every build of the CPU kernels that this machine runs. */
#ifndef SPEC_KERNEL_ARRAYS_H
#define SPEC_KERNEL_ARRAYS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/memory.h"
#include "kernels.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* CONTIGUOUS; PERMUTED: the first axis is the packed one; SPACED: two elements apart; REVERSED: the last axis backwards. */
typedef enum layout_kind { CONTIGUOUS, PERMUTED, SPACED, REVERSED, LAYOUT_COUNT } layout_kind;

enum { GUARD = 64, GUARD_BYTE = 0xA5 };

typedef struct array {
  flow_operand operand;
  char        *block;
  size_t       bytes;      /* between the guards */
} array;

static inline int64_t size_of(int rank, const int64_t *shape)
{
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  return n;
}

/* Every byte starts as the guard byte, so that an element that nobody writes shows. */
static inline array array_new(int dtype, layout_kind kind, int rank, const int64_t *shape)
{
  array a = { .operand = { .dtype = dtype, .rank = rank } };
  int64_t spread = kind == SPACED ? 2 : 1, count = size_of(rank, shape), step = spread;
  for (int i = 0; i < rank; i++) {
    int axis = kind == PERMUTED ? i : rank - 1 - i;
    a.operand.shape[axis] = shape[axis];
    a.operand.strides[axis] = step;
    step *= shape[axis];
  }
  int size = flow_dtype_size(dtype);
  a.bytes = (size_t)(count * spread * size);
  a.block = aligned_alloc(64, (a.bytes + 2 * GUARD + 63) & ~(size_t)63);
  assert_non_null(a.block);
  memset(a.block, GUARD_BYTE, a.bytes + 2 * GUARD);
  char *data = a.block + GUARD;
  if (kind == REVERSED && rank > 0 && count > 0) {
    data += (shape[rank - 1] - 1) * size;
    a.operand.strides[rank - 1] = -1;
  }
  a.operand.data = data;
  return a;
}

static inline void array_free(array *a)
{
  free(a->block);
  a->block = NULL;
}

static inline void assert_guards(const array *a)
{
  for (size_t i = 0; i < GUARD; i++) {
    assert_int_equal((unsigned char)a->block[i], GUARD_BYTE);
    assert_int_equal((unsigned char)a->block[GUARD + a->bytes + i], GUARD_BYTE);
  }
}

/* Element i in row-major order. */
static inline void *element(const flow_operand *o, int64_t i)
{
  int64_t offset = 0;
  for (int axis = o->rank - 1; axis >= 0; axis--) {
    offset += i % o->shape[axis] * o->strides[axis];
    i /= o->shape[axis];
  }
  return (char *)o->data + offset * flow_dtype_size(o->dtype);
}

/* Element of `o` that is at row-major position i of a shape that o broadcasts to. */
static inline void *broadcast_element(const flow_operand *o, int rank, const int64_t *shape, int64_t i)
{
  int64_t offset = 0;
  for (int axis = rank - 1; axis >= 0; axis--) {
    int own = axis - (rank - o->rank);
    if (own >= 0 && o->shape[own] != 1) offset += i % shape[axis] * o->strides[own];
    i /= shape[axis];
  }
  return (char *)o->data + offset * flow_dtype_size(o->dtype);
}

/* One element of any dtype; p need not be declared with its type. */
typedef union number { float f; double d; uint16_t h; int8_t i8; uint8_t u8; int32_t i32; int64_t i64; } number;

static inline double read_double(int dtype, const void *p)
{
  number x = { .i64 = 0 };
  memcpy(&x, p, (size_t)flow_dtype_size(dtype));
  switch (dtype) {
    case FLOW_FLOAT32: return x.f;
    case FLOW_FLOAT16: return flow_half_to_float(x.h);
    case FLOW_BFLOAT16: return flow_bfloat16_to_float(x.h);
    case FLOW_FLOAT64: return x.d;
    case FLOW_INT8: return x.i8;
    case FLOW_INT32: return x.i32;
    case FLOW_INT64: return (double)x.i64;
    default: return x.u8;
  }
}

static inline int64_t read_int(int dtype, const void *p)
{
  int64_t x;
  if (dtype != FLOW_INT64) return (int64_t)read_double(dtype, p);
  memcpy(&x, p, sizeof x);
  return x;
}

/* Integers wrap. */
static inline void write_int(int dtype, void *p, int64_t value)
{
  number x = { .i64 = 0 };
  switch (dtype) {
    case FLOW_INT8: x.i8 = (int8_t)value; break;
    case FLOW_UINT8: x.u8 = (uint8_t)value; break;
    case FLOW_INT32: x.i32 = (int32_t)value; break;
    case FLOW_INT64: x.i64 = value; break;
    case FLOW_BOOL: x.u8 = value != 0; break;
    default: fail_msg("write_int: dtype %s", flow_dtype_name(dtype));
  }
  memcpy(p, &x, (size_t)flow_dtype_size(dtype));
}

/* Floats round to nearest even. */
static inline void write_double(int dtype, void *p, double value)
{
  number x = { .i64 = 0 };
  switch (dtype) {
    case FLOW_FLOAT32: x.f = (float)value; break;
    case FLOW_FLOAT16: x.h = flow_float_to_half((float)value); break;
    case FLOW_BFLOAT16: x.h = flow_float_to_bfloat16((float)value); break;
    case FLOW_FLOAT64: x.d = value; break;
    default: write_int(dtype, p, (int64_t)value); return;
  }
  memcpy(p, &x, (size_t)flow_dtype_size(dtype));
}

/* The value after a round trip through the dtype. */
static inline double rounded(int dtype, double value)
{
  number place = { .i64 = 0 };
  write_double(dtype, &place, value);
  return read_double(dtype, &place);
}

/* Distance of neighbouring numbers of the dtype near value. */
static inline double unit_in_last_place(int dtype, double value)
{
  int digits = dtype == FLOW_FLOAT64 ? 53 : dtype == FLOW_FLOAT32 ? 24 : dtype == FLOW_FLOAT16 ? 11 : 8;
  int lowest = dtype == FLOW_FLOAT64 ? -1074 : dtype == FLOW_FLOAT32 ? -149 : dtype == FLOW_FLOAT16 ? -24 : -133, exponent;
  if (value == 0 || !isfinite(value)) return ldexp(1, lowest);
  frexp(value, &exponent);
  return ldexp(1, exponent - digits < lowest ? lowest : exponent - digits);
}

static inline void assert_close(const char *what, int dtype, double found, double expected, double units)
{
  if (isnan(expected) && isnan(found)) return;
  if (found == expected) return;
  if (isfinite(found) && fabs(found - expected) <= units * unit_in_last_place(dtype, expected)) return;
  fail_msg("%s, %s: found %.17g, expected %.17g", what, flow_dtype_name(dtype), found, expected);
}

/* A reproducible number: uniform in [low, high). */
static inline double pseudo_random(uint64_t *state, double low, double high)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(*state >> 33) * 0x1p-31;
}

static inline void array_fill_random(array *a, uint64_t seed, double low, double high)
{
  int64_t n = size_of(a->operand.rank, a->operand.shape);
  for (int64_t i = 0; i < n; i++) {
    double value = pseudo_random(&seed, low, high);
    if (!flow_dtype_is_float(a->operand.dtype)) value = floor(value);
    if (a->operand.dtype == FLOW_UINT8 && value < 0) value = -value;
    write_double(a->operand.dtype, element(&a->operand, i), value);
  }
}

static const char *const isa_names[] = { "plain", "avx2", "avx512" };
enum { ISA_COUNT = 3 };

static inline flow_call call_of(int op, const flow_attributes *attributes, flow_operand *inputs, int input_count, flow_operand *output)
{
  return (flow_call){ .op = op, .attributes = attributes, .input_count = input_count, .output_count = 1,
                      .inputs = inputs, .outputs = output };
}

/* Runs one kernel: phase by phase, one part at a time. */
static inline flow_status run_kernel(const flow_kernel *kernel, flow_call *call)
{
  void *shared = NULL, *scratch = NULL;
  if (kernel->shared_bytes) assert_int_equal(flow_alloc(kernel->shared_bytes(call), &shared), FLOW_OK);
  if (kernel->scratch_bytes) assert_int_equal(flow_alloc(kernel->scratch_bytes(call), &scratch), FLOW_OK);
  call->shared = shared;
  call->scratch = scratch;
  flow_status status = kernel->prepare ? kernel->prepare(call) : FLOW_OK;
  for (int phase = 0; phase < (kernel->phases ? kernel->phases : 1) && status == FLOW_OK; phase++) {
    int64_t parts = kernel->parts ? kernel->parts(call, phase) : 1;
    for (int64_t part = 0; part < parts && status == FLOW_OK; part++) status = kernel->run(call, phase, part, part + 1);
  }
  flow_free(shared);
  flow_free(scratch);
  return status;
}

/* Calls `check` after the run of each variant that supports the call, on each build. Returns the number of runs. */
static inline int run_everywhere(flow_call *call, void (*check)(const flow_call *call, void *argument), void *argument)
{
  int runs = 0;
  for (int isa = 0; isa < ISA_COUNT; isa++) {
    const flow_device *device = flow_cpu_device_for(isa_names[isa]);
    if (!device) continue;
    for (const flow_kernel *kernel = device->kernels[call->op]; kernel->run; kernel++) {
      if (kernel->supports && !kernel->supports(call)) continue;
      assert_int_equal(run_kernel(kernel, call), FLOW_OK);
      check(call, argument);
      runs++;
    }
  }
  assert_true(runs > 0);
  return runs;
}

#endif
