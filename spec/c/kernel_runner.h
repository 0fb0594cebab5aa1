/* kernel_runner.h: runs single kernels for tests, without the engine: operands between canaries, every build that this
 * machine has, every variant, and several ways to group the parts, which must agree bit by bit. */
#ifndef FLOW_SPEC_KERNEL_RUNNER_H
#define FLOW_SPEC_KERNEL_RUNNER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "kernels.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* 0xff is NaN in every floating-point dtype: a kernel that reads beside an operand shows it. 8-byte, not vector aligned. */
enum { CANARY = 40, CANARY_BYTE = 0xff };

static inline void *guarded_alloc(size_t bytes)
{
  unsigned char *block = malloc(bytes + 2 * CANARY);
  assert_non_null(block);
  memset(block, CANARY_BYTE, bytes + 2 * CANARY);
  return block + CANARY;
}

static inline void guarded_free(void *data, size_t bytes)
{
  unsigned char *block = (unsigned char *)data - CANARY;
  for (size_t i = 0; i < CANARY; i++) {
    assert_int_equal(block[i], CANARY_BYTE);
    assert_int_equal(block[CANARY + bytes + i], CANARY_BYTE);
  }
  free(block);
}

static inline int64_t operand_size(const flow_operand *x) { return flow_shape_size(x->rank, x->shape); }
static inline size_t operand_bytes(const flow_operand *x) { return (size_t)operand_size(x) * (size_t)flow_dtype_size(x->dtype); }

/* operand(FLOW_FLOAT32, 2, 3, 4): a new operand of shape {3, 4}; sizes are ints. */
static inline flow_operand operand(int dtype, int rank, ...)
{
  flow_operand x = { .dtype = dtype, .rank = rank };
  va_list sizes;
  va_start(sizes, rank);
  for (int i = 0; i < rank; i++) x.shape[i] = va_arg(sizes, int);
  va_end(sizes);
  flow_contiguous_strides(rank, x.shape, x.strides);
  x.data = guarded_alloc(operand_bytes(&x));
  return x;
}

static inline void operand_free(flow_operand *x) { guarded_free(x->data, operand_bytes(x)); }

static inline double get(const flow_operand *x, int64_t i)
{
  double value;
  flow_convert_to_double(x->dtype, (const char *)x->data + i * flow_dtype_size(x->dtype), 1, &value, 1);
  return value;
}

static inline void set(flow_operand *x, int64_t i, double value)
{
  flow_convert_from_double(x->dtype, &value, (char *)x->data + i * flow_dtype_size(x->dtype), 1, 1);
}

/* Reproducible numbers in (-1, 1). */
static inline double next_number(void)
{
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) * 0x1p-52 - 1;
}

static inline void fill(flow_operand *x, double scale)
{
  for (int64_t i = 0; i < operand_size(x); i++) set(x, i, scale * next_number());
}

static inline flow_call call_of(int op, const flow_attributes *attributes, flow_operand *inputs, int input_count, flow_operand *outputs,
                                int output_count)
{
  return (flow_call){ .op = op, .attributes = attributes, .inputs = inputs, .input_count = input_count, .outputs = outputs,
                      .output_count = output_count };
}

/* How the parts of a phase are handed out. Each way names another number of members, which no result may depend on. */
typedef enum grouping { ALL_AT_ONCE, ONE_BY_ONE, BACKWARDS, GROUPINGS } grouping;

/* Runs a call through one kernel as the engine would; the scratch block starts with garbage. Returns its status. */
static inline flow_status run_kernel(const flow_kernel *kernel, flow_call *call, grouping how)
{
  static const int members[GROUPINGS] = { 1, 2, 5 };
  flow_status status = FLOW_OK;
  call->members = members[how];
  size_t shared_bytes = kernel->shared_bytes ? kernel->shared_bytes(call) : 0;
  size_t scratch_bytes = kernel->scratch_bytes ? kernel->scratch_bytes(call) : 0;
  void *shared = aligned_alloc(64, (shared_bytes + 127) / 64 * 64), *scratch = aligned_alloc(64, (scratch_bytes + 127) / 64 * 64);
  assert_true(shared && scratch);
  memset(shared, CANARY_BYTE, shared_bytes + 64);
  memset(scratch, CANARY_BYTE, scratch_bytes + 64);
  call->shared = shared;
  call->scratch = scratch;
  if (kernel->prepare) status = kernel->prepare(call);
  for (int phase = 0; phase < (kernel->phases ? kernel->phases : 1) && status == FLOW_OK; phase++) {
    int64_t parts = kernel->parts ? kernel->parts(call, phase) : 1;
    if (how == ALL_AT_ONCE && parts > 0) status = kernel->run(call, phase, 0, parts);
    for (int64_t i = 0; how != ALL_AT_ONCE && i < parts && status == FLOW_OK; i++) {
      int64_t part = how == ONE_BY_ONE ? i : parts - 1 - i;
      status = kernel->run(call, phase, part, part + 1);
    }
  }
  for (size_t i = 0; i < 64; i++) {
    assert_int_equal(((unsigned char *)shared)[shared_bytes + i], CANARY_BYTE);
    assert_int_equal(((unsigned char *)scratch)[scratch_bytes + i], CANARY_BYTE);
  }
  free(shared);
  free(scratch);
  return status;
}

static const char *const runner_isas[] = { "plain", "avx2", "avx512" };

/* for_each_kernel(kernel, op): every variant of every build that runs here. */
#define for_each_kernel(kernel, op)                                                                                  \
  for (int isa_ = 0; isa_ < 3; isa_++)                                                                               \
    for (const flow_kernel *kernel = flow_cpu_device_for(runner_isas[isa_])                                          \
                                       ? flow_cpu_device_for(runner_isas[isa_])->kernels[op] : NULL;                 \
         kernel && kernel->run; kernel++)

/* Runs the call through every variant of every build that supports it; outputs and written inputs (bit mask) start as they
 * are now each time. Groupings must agree bit by bit. `check` sees the result of each. */
typedef void (*check_function)(const flow_call *call, const char *variant, void *argument);
static inline void run_everywhere(flow_call *call, int written, check_function check, void *argument)
{
  int runs = 0;
  for_each_kernel(kernel, call->op) {
    if (kernel->supports && !kernel->supports(call)) continue;
    flow_operand changed[2 * FLOW_MAX_OPERANDS];
    void *before[2 * FLOW_MAX_OPERANDS], *first[2 * FLOW_MAX_OPERANDS];
    int count = 0;
    for (int i = 0; i < call->output_count; i++)
      if (call->outputs[i].data) changed[count++] = call->outputs[i];
    for (int i = 0; i < call->input_count; i++)
      if (written >> i & 1) changed[count++] = call->inputs[i];
    for (int i = 0; i < count; i++) {
      size_t bytes = operand_bytes(&changed[i]);
      before[i] = malloc(bytes + 1);
      first[i] = malloc(bytes + 1);
      assert_true(before[i] && first[i]);
      memcpy(before[i], changed[i].data, bytes);
    }
    for (grouping how = ALL_AT_ONCE; how < GROUPINGS; how++) {
      for (int i = 0; i < count; i++) memcpy(changed[i].data, before[i], operand_bytes(&changed[i]));
      assert_int_equal(run_kernel(kernel, call, how), FLOW_OK);
      for (int i = 0; i < count; i++) {
        if (how == ALL_AT_ONCE) memcpy(first[i], changed[i].data, operand_bytes(&changed[i]));
        else assert_memory_equal(first[i], changed[i].data, operand_bytes(&changed[i]));
      }
    }
    check(call, kernel->variant, argument);
    for (int i = 0; i < count; i++) {
      memcpy(changed[i].data, before[i], operand_bytes(&changed[i]));
      free(before[i]);
      free(first[i]);
    }
    runs++;
  }
  assert_true(runs > 0);
}

/* Fails with both numbers unless |found - expected| <= tolerance (NaN equals NaN). */
#define assert_near(found, expected, tolerance, variant, index)                                                          \
  do {                                                                                                                   \
    double found_ = (found), expected_ = (expected), tolerance_ = (tolerance);                                           \
    if (!(found_ - expected_ <= tolerance_ && expected_ - found_ <= tolerance_) && !(found_ != found_ && expected_ != expected_) \
        && found_ != expected_)                                                                                          \
      fail_msg("%s: element %lld is %.9g, expected %.9g (tolerance %.3g)", variant, (long long)(index), found_, expected_, tolerance_); \
  } while (0)

#endif
