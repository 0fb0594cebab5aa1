/* kernel_call.h: runs one kernel variant as the engine does, in chunks of rows, with guarded buffers. For tests of
 * single kernels; the engine itself is not involved. */
#ifndef FLOW_SPEC_KERNEL_CALL_H
#define FLOW_SPEC_KERNEL_CALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "kernels.h"
#include "ops/op.h"

enum { GUARD = 64, GUARD_BYTE = 0xff };   /* as floats the guards are NaN: what leaks from them is seen in results */

typedef struct guarded { unsigned char *block; size_t bytes; } guarded;

/* `bytes` bytes between two guards. The end is exact; the data begin at a multiple of 64. */
static inline void *guarded_alloc(guarded *g, size_t bytes)
{
  g->bytes = bytes;
  g->block = aligned_alloc(64, (bytes + 2 * GUARD + 63) / 64 * 64);
  assert_non_null(g->block);
  memset(g->block, GUARD_BYTE, bytes + 2 * GUARD);
  return g->block + GUARD;
}

static inline void guarded_check_and_free(guarded *g)
{
  for (int i = 0; i < GUARD; i++) {
    assert_int_equal(g->block[i], GUARD_BYTE);
    assert_int_equal(g->block[GUARD + g->bytes + (size_t)i], GUARD_BYTE);
  }
  free(g->block);
}

/* An operand over guarded memory; shape of rank 1 or 4. */
typedef struct test_tensor { flow_operand operand; guarded memory; } test_tensor;

static inline int64_t operand_size(const flow_operand *operand)
{
  int64_t size = 1;
  for (int i = 0; i < operand->rank; i++) size *= operand->shape[i];
  return size;
}

static inline size_t dtype_bytes(int dtype)
{
  return dtype == FLOW_FLOAT64 || dtype == FLOW_INT64 ? 8 : dtype == FLOW_FLOAT32 || dtype == FLOW_INT32 ? 4 : 1;
}

static inline void tensor_make(test_tensor *t, int dtype, int rank, const int64_t *shape)
{
  memset(t, 0, sizeof *t);
  t->operand.dtype = dtype;
  t->operand.rank = rank;
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; i--) {
    t->operand.shape[i] = shape[i];
    t->operand.strides[i] = stride;
    stride *= shape[i];
  }
  t->operand.data = guarded_alloc(&t->memory, (size_t)operand_size(&t->operand) * dtype_bytes(dtype));
}

static inline void tensor_free(test_tensor *t) { guarded_check_and_free(&t->memory); }

static inline void tensor_set(test_tensor *t, int64_t i, double value)
{
  switch (t->operand.dtype) {
    case FLOW_FLOAT32: ((float *)t->operand.data)[i] = (float)value; break;
    case FLOW_FLOAT64: ((double *)t->operand.data)[i] = value; break;
    case FLOW_INT32:   ((int32_t *)t->operand.data)[i] = (int32_t)value; break;
    case FLOW_INT64:   ((int64_t *)t->operand.data)[i] = (int64_t)value; break;
    case FLOW_INT8:    ((int8_t *)t->operand.data)[i] = (int8_t)value; break;
    default:           ((uint8_t *)t->operand.data)[i] = (uint8_t)value; break;
  }
}

static inline double tensor_get(const test_tensor *t, int64_t i)
{
  switch (t->operand.dtype) {
    case FLOW_FLOAT32: return ((const float *)t->operand.data)[i];
    case FLOW_FLOAT64: return ((const double *)t->operand.data)[i];
    case FLOW_INT32:   return ((const int32_t *)t->operand.data)[i];
    case FLOW_INT64:   return (double)((const int64_t *)t->operand.data)[i];
    case FLOW_INT8:    return ((const int8_t *)t->operand.data)[i];
    default:           return ((const uint8_t *)t->operand.data)[i];
  }
}

/* Numbers that repeat from run to run. */
static inline uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

/* A whole number from `from` to `to`. */
static inline int draw(uint32_t *state, int from, int to)
{
  return from + (int)(next_random(state) >> 8) % (to - from + 1);
}

/* Where the parts of a call are done in another order: part (start + i * step) % parts as the i-th one, forwards or backwards. */
typedef struct part_order {
  int64_t start, step;
} part_order;
static inline part_order draw_order(uint32_t *state, int64_t parts)
{
  int64_t start = draw(state, 0, (int)parts - 1);
  return (part_order){ start, draw(state, 0, 1) ? 1 : parts - 1 };
}

/* How many cases a test draws: FLOW_CASES, or `usual`. */
static inline int case_count(int usual)
{
  const char *text = getenv("FLOW_CASES");
  return text ? atoi(text) : usual;
}

/* Multiples of 1/4 between -2 and 2: products and sums of thousands of them are exact in float32, so kernels must
 * agree to the last bit whatever their order of summation, and equal maxima are frequent. */
static inline void tensor_fill_exact(test_tensor *t, uint32_t *state)
{
  int64_t size = operand_size(&t->operand);
  for (int64_t i = 0; i < size; i++) tensor_set(t, i, ((double)(next_random(state) >> 16 & 15) - 8) / 4);
}

/* Arbitrary floats: sums depend on their order. */
static inline void tensor_fill_rough(test_tensor *t, uint32_t *state)
{
  int64_t size = operand_size(&t->operand);
  for (int64_t i = 0; i < size; i++) tensor_set(t, i, (double)(next_random(state) >> 8) / (1 << 23) - 1);
}

/* Moves an operand that carries rows to the chunk of `rows` rows from `first` on. */
static inline flow_operand operand_chunk(flow_operand operand, int64_t first, int64_t rows)
{
  if (operand.data) operand.data = (char *)operand.data + (size_t)(first * operand.strides[0]) * dtype_bytes(operand.dtype);
  operand.shape[0] = rows;
  return operand;
}

/* Runs a MAP or REDUCE kernel over its rows in the given chunks (ended by 0, or a single 0 for no rows). The masks say
 * which operands carry rows. The first chunk overwrites sums, the others add. */
static inline void run_in_chunks(const flow_kernel *kernel, const flow_call *whole, int row_inputs, int row_outputs, const int *chunks)
{
  flow_operand inputs[FLOW_MAX_OPERANDS], outputs[FLOW_MAX_OPERANDS];
  flow_call call = *whole;
  call.inputs = inputs;
  call.outputs = outputs;
  int largest = 0;
  for (int i = 0; chunks[i]; i++) largest = chunks[i] > largest ? chunks[i] : largest;
  guarded shared, scratch;
  for (int64_t first = 0, i = -1; i < 0 || chunks[i]; i++) {
    int64_t rows = i < 0 ? largest : chunks[i];
    for (int k = 0; k < call.input_count; k++)
      inputs[k] = row_inputs >> k & 1 ? operand_chunk(whole->inputs[k], first, rows) : whole->inputs[k];
    for (int k = 0; k < call.output_count; k++)
      outputs[k] = row_outputs >> k & 1 ? operand_chunk(whole->outputs[k], first, rows) : whole->outputs[k];
    if (i < 0) {   /* sizes are asked with the largest chunk; prepare sees the whole operands */
      call.shared = guarded_alloc(&shared, kernel->shared_bytes ? kernel->shared_bytes(&call) : 0);
      call.scratch = guarded_alloc(&scratch, kernel->scratch_bytes ? kernel->scratch_bytes(&call) : 0);
      if (kernel->prepare) assert_int_equal(kernel->prepare(&call), FLOW_OK);
      if (largest > 0) continue;
    }
    call.first_row = first;
    call.accumulate = first > 0;
    assert_int_equal(kernel->run(&call, 0, 0, 1), FLOW_OK);
    first += rows;
    if (largest == 0) break;
  }
  guarded_check_and_free(&shared);
  guarded_check_and_free(&scratch);
}

static const char *const test_isas[] = { "plain", "avx2", "avx512" };

#endif
