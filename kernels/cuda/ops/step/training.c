/* training.c: the ops schedule, assign, assign_add, and those of replicas as one that is alone does them: several are added up by the
 * engine. */
#include "cuda/ops/step/training.h"

#include "cuda/runtime/launch.h"
#include "cuda/device/move.h"
#include "ops/op.h"
#include "tensor/tensor.h"

/* One thread: a formula of the step. */
static flow_status run_schedule(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  schedule_rate_arguments a = { .step = call->inputs[0].data,
                                .parameters = call->inputs[1].data,
                                .y = call->outputs[0].data,
                                .kind = call->attributes->schedule.kind,
                                .count = (int32_t)call->inputs[1].shape[0] };
  return a.y ? flow_cuda_launch(call, CUDA_schedule_rate, 1, &a, sizeof a) : FLOW_OK;
}
const flow_kernel flow_cuda_schedule_kernels[] = { { .variant = "formula", .run = run_schedule }, { 0 } };

/* Where nothing is to be converted, bits are moved (size); otherwise a value passes through a number. */
static flow_status run_assign(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *to = &call->inputs[0], *from = &call->inputs[1];
  int add = call->op == FLOW_OP_assign_add;
  assign_strided_arguments a = { .to = flow_cuda_view(to, to->rank, to->shape), .from = flow_cuda_view(from, to->rank, to->shape),
                                 .fault = flow_cuda_verdict(call), .add = add,
                                 .size = !add && to->dtype == from->dtype ? flow_dtype_size(to->dtype) : 0 };
  return flow_cuda_launch(call, CUDA_assign_strided, flow_cuda_size(to), &a, sizeof a);
}

/* Bytes are copied as they are: the fastest way, where nothing is to be converted. */
static int supports_units(const flow_call *call)
{
  const flow_operand *to = &call->inputs[0], *from = &call->inputs[1];
  return to->dtype == from->dtype && flow_cuda_contiguous(to) && flow_cuda_contiguous(from) && flow_cuda_size(to) == flow_cuda_size(from);
}

static flow_status run_units(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *to = &call->inputs[0], *from = &call->inputs[1];
  int64_t bytes = flow_cuda_size(to) * (int64_t)flow_dtype_size(to->dtype);
  assign_units_arguments a = { .to = to->data, .from = from->data, .fault = flow_cuda_verdict(call),
                               .size = flow_cuda_unit_of(to->data, from->data, bytes) };
  return flow_cuda_launch(call, CUDA_assign_units, bytes / a.size, &a, sizeof a);
}

const flow_kernel flow_cuda_assign_kernels[] = { { .variant = "units", .supports = supports_units, .run = run_units },
  { .variant = "convert", .run = run_assign }, { 0 } };
const flow_kernel flow_cuda_assign_add_kernels[] = { { .variant = "convert", .run = run_assign }, { 0 } };

/* ---- replicas ----------------------------------------------------------------------------------------------------------------- */

/* x in the first rows of y, zeros in the others, of which all_reduce has none. */
static flow_status run_gather(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->outputs[0];
  size_t size = (size_t)flow_dtype_size(y->dtype), bytes = (size_t)flow_cuda_size(x) * size, all = (size_t)flow_cuda_size(y) * size;
  if (!y->data) return FLOW_OK;
  if (y->data != x->data && bytes > 0) FLOW_TRY(flow_cuda_copy(call, y->data, x->data, bytes));
  return all > bytes ? flow_cuda_clear(call, (char *)y->data + bytes, all - bytes) : FLOW_OK;
}
const flow_kernel flow_cuda_all_reduce_kernels[] = { { .variant = "alone", .run = run_gather }, { 0 } };
const flow_kernel flow_cuda_all_gather_kernels[] = { { .variant = "alone", .run = run_gather }, { 0 } };

static flow_status run_rows(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  count_rows_arguments a = { .scalars = call->scalars, .y = call->outputs[0].data, .share = call->op == FLOW_OP_row_share };
  return a.y ? flow_cuda_launch(call, CUDA_count_rows, 1, &a, sizeof a) : FLOW_OK;
}
const flow_kernel flow_cuda_global_rows_kernels[] = { { .variant = "scalar", .run = run_rows }, { 0 } };
const flow_kernel flow_cuda_row_share_kernels[] = { { .variant = "scalar", .run = run_rows }, { 0 } };
