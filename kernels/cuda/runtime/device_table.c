/* device_table.c: which kernels the device has: the list flow_cuda_NAME_kernels of each op NAME. An op whose family does not define one
 * has the empty list made here, so that its call is refused by name. */
#include "cuda/runtime/device_table.h"

#include <stdio.h>
#include "ops/op.h"
#include "ops/optimizer_layout.h"
#include "ops/short_words.h"

#define FLOW_OP(name, ...) \
  extern const flow_kernel flow_cuda_##name##_kernels[]; \
  __attribute__((weak)) const flow_kernel flow_cuda_##name##_kernels[] = { { 0 } };
#include "ops/ops.def"
#undef FLOW_OP

const flow_kernel *const flow_cuda_kernels[FLOW_OP_COUNT] = {
#define FLOW_OP(name, ...) [FLOW_OP_##name] = flow_cuda_##name##_kernels,
#include "ops/ops.def"
#undef FLOW_OP
};

/* Only what is not slower than float32: libraries take operands of one dtype, though their results may be wider. */
const unsigned char flow_cuda_mixes_half_floats[FLOW_OP_COUNT] = {
  [FLOW_OP_sum] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN | FLOW_HALF_FLOATS_WIDENED,
  [FLOW_OP_matmul] = FLOW_HALF_FLOATS_WIDENED,
  [FLOW_OP_convolution_gradient] = FLOW_HALF_FLOATS_WIDENED << 1 | FLOW_HALF_FLOATS_WIDENED << 2, /* dw, db */
  [FLOW_OP_batch_norm] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
  [FLOW_OP_batch_norm_gradient] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
  [FLOW_OP_normalize] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
  [FLOW_OP_normalize_gradient] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
  [FLOW_OP_layer_norm] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
  [FLOW_OP_softmax] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
  [FLOW_OP_softmax_gradient] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
  [FLOW_OP_log_softmax] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
  [FLOW_OP_sparse_cross_entropy] = FLOW_HALF_FLOATS_READ,
  [FLOW_OP_sparse_cross_entropy_gradient] = FLOW_HALF_FLOATS_READ | FLOW_HALF_FLOATS_WRITTEN,
};

const char *flow_cuda_op_name(int op)
{
  static const char *const names[FLOW_OP_COUNT] = {
#define FLOW_OP(name, ...) [FLOW_OP_##name] = #name,
#include "ops/ops.def"
#undef FLOW_OP
  };
  return op >= 0 && op < FLOW_OP_COUNT ? names[op] : "?";
}

static int flags_of(int op)
{
  static const int flags_of_ops[FLOW_OP_COUNT] = {
#define FLOW_OP(name, inputs, outputs, kind, flags, ...) [FLOW_OP_##name] = flags,
#include "ops/ops.def"
#undef FLOW_OP
  };
  return flags_of_ops[op];
}

int flow_cuda_op_is_random(int op) { return (flags_of(op) & FLOW_OP_RANDOM) != 0; }
int flow_cuda_op_is_effect(int op) { return (flags_of(op) & FLOW_OP_EFFECT) != 0; }
int flow_cuda_op_checks(int op)    { return (flags_of(op) & FLOW_OP_CHECKS) != 0; }

int flow_cuda_writes_input(const flow_call *call, int i)
{
  return flow_cuda_op_is_effect(call->op) && flow_effect_writes(call->op, call->attributes, call->input_count, i);
}

flow_status flow_cuda_raise(const flow_device_fault *fault)
{
  if (fault->kind == FAULT_NONE) return FLOW_OK;
  if (fault->kind == FAULT_ELSEWHERE) {
    return flow_fail(FLOW_ABORTED, "another replica refused its data, or its sums were ended: no replica has made the step");
  }
  char when[64] = "";
  if (fault->step > 0) snprintf(when, sizeof when, ", step %lld", (long long)fault->step);
  flow_status status = flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s %lld in row %lld is outside 0..%lld%s%s", flow_cuda_op_name(fault->op),
                                 fault->kind == FAULT_LABEL ? "label" : "index", (long long)fault->value, (long long)fault->row + 1,
                                 (long long)fault->bound - 1, fault->kind == FAULT_LABEL ? "" : ", counted from 0", when);
  flow_fail_field(status, FLOW_ERROR_ROW, (double)fault->row);
  if (fault->kind == FAULT_LABEL) flow_fail_field(status, FLOW_ERROR_LABEL, (double)fault->value);
  if (fault->step > 0) flow_fail_field(status, FLOW_ERROR_STEP, (double)fault->step);
  return status;
}
