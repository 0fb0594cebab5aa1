/* random.c: the ops random_uniform, random_normal, random_truncated_normal, sample_uniform and dropout. */
#include "cuda/ops/random/random.h"

#include <math.h>
#include <stdlib.h>
#include "cuda/runtime/launch.h"
#include "cuda/device/view_make.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* Significant bits of a floating-point dtype, at most the 32 of a word. */
static int precision(int dtype)
{
  switch (dtype) {
    case FLOW_FLOAT16:  return 11;
    case FLOW_BFLOAT16: return 8;
    case FLOW_FLOAT32:  return 24;
    default:            return 32;
  }
}

/* A thread makes the four numbers of a Philox block. In a batch, numbers are counted from the run's first sample on, so that they do not
 * depend on how rows are cut. */
static flow_status run_random(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *y = &call->outputs[0];
  const flow_attributes *attributes = call->attributes;
  if (!y->data) return FLOW_OK;
  random_arguments a = {
    .key = { flow_mix(attributes->random.seed, attributes->random.stream), NULL, attributes->random.own_seed },
    .y = y->data,
    .count = flow_cuda_size(y),
    .low = attributes->random.low,
    .high = attributes->random.high,
    .dtype = y->dtype,
    .bits = precision(y->dtype),
    .truncated = call->op == FLOW_OP_random_truncated_normal
  };
  if (attributes->random.keyed_by_step) a.key.scalars = call->scalars;
  int64_t fours = (a.count + 3) / 4;
  if (attributes->random.rank > 0 && attributes->random.dims[0] < 0) {
    a.batch = call->scalars;
    for (int i = 0; i < y->rank; i++) a.elements = (i > 0 ? a.elements : 1) * llabs(attributes->random.dims[i]);
    fours++;      /* the first may belong to the sample before */
  }
  if (call->op != FLOW_OP_random_uniform) return flow_cuda_launch(call, CUDA_random_normals, a.count, &a, sizeof a);
  if (flow_dtype_is_float(y->dtype)) {
    int exponent;
    frexp(a.high, &exponent);
    a.unit = ldexp(1, -a.bits);
    a.limit = a.high != 0 ? a.high - ldexp(1, exponent - a.bits) : a.low * a.unit; /* as kernels/cpu/random/random.c */
    return flow_cuda_launch(call, CUDA_random_uniform_floats, fours, &a, sizeof a);
  }
  int64_t high = (int64_t)ceil(a.high);
  a.low_integer = (int64_t)ceil(a.low);
  a.range = high > a.low_integer ? (uint64_t)high - (uint64_t)a.low_integer : 0;
  return flow_cuda_launch(call, CUDA_random_uniform_integers, fours, &a, sizeof a);
}
const flow_kernel flow_cuda_random_uniform_kernels[] = { { .variant = "philox", .run = run_random }, { 0 } };
const flow_kernel flow_cuda_random_normal_kernels[] = { { .variant = "philox", .run = run_random }, { 0 } };
const flow_kernel flow_cuda_random_truncated_normal_kernels[] = { { .variant = "philox", .run = run_random }, { 0 } };

/* ---- by sample ----------------------------------------------------------------------------------------------------------------- */

/* y is {rows, ...}; *count: launches of four elements. */
static by_sample_arguments by_sample(const flow_call *call, uint64_t seed, uint64_t stream, int own_seed, int64_t *count)
{
  const flow_operand *y = &call->outputs[0];
  int64_t rows = y->rank > 0 ? y->shape[0] : 1, elements = y->rank > 1 ? flow_shape_size(y->rank - 1, y->shape + 1) : 1;
  int64_t fours = (elements + 3) / 4;
  *count = rows * fours;
  return (by_sample_arguments){ .key = { flow_mix(seed, stream), call->scalars, own_seed },
                                .y = y->data,
                                .elements = elements,
                                .dtype = y->dtype,
                                .fours = flow_cuda_groups(fours > 0 ? fours : 1, *count) };
}

static flow_status run_dropout(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_attributes *attributes = call->attributes;
  double rate = attributes->dropout.rate;
  int64_t count;
  if (!call->outputs[0].data) return FLOW_OK;
  by_sample_arguments a = by_sample(call, attributes->dropout.seed, attributes->dropout.stream, attributes->dropout.own_seed, &count);
  a.x = call->inputs[0].data;
  a.threshold = (uint32_t)ceil(rate * 0x1p24);
  a.scale = rate < 1 ? 1 / (1 - rate) : 0;
  a.vectors = a.elements % 4 == 0 && (uintptr_t)a.x % 16 == 0 && (uintptr_t)a.y % 16 == 0;
  return flow_cuda_launch(call, a.dtype == FLOW_FLOAT32 ? CUDA_dropout_float32 : CUDA_dropout_other, count, &a, sizeof a);
}
const flow_kernel flow_cuda_dropout_kernels[] = { { .variant = "philox", .run = run_dropout }, { 0 } };

static flow_status run_sample_uniform(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_attributes *attributes = call->attributes;
  int64_t count;
  if (!call->outputs[0].data) return FLOW_OK;
  by_sample_arguments a = by_sample(call, attributes->random.seed, attributes->random.stream, attributes->random.own_seed, &count);
  a.low = attributes->random.low;
  a.high = attributes->random.high;
  a.limit = nextafterf((float)a.high, (float)a.low);
  return flow_cuda_launch(call, CUDA_sample_uniform, count, &a, sizeof a);
}
const flow_kernel flow_cuda_sample_uniform_kernels[] = { { .variant = "philox", .run = run_sample_uniform }, { 0 } };
