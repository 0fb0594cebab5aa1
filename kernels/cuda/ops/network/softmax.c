/* softmax.c: the ops softmax, log_softmax, softmax_gradient, sparse_cross_entropy and its gradient. */
#include "axis_lines.h"
#include "cuda/runtime/launch.h"
#include "ops/op.h"

enum { WIDE_ACCESS = 16 };
enum { TEAM_ELEMENTS = 16 };      /* that a thread of a team has, about, while the team is not a whole block */

/* Threads of a line of n elements, a power of two. */
static int team_of(int64_t n)
{
  int team = 1;
  while (team < BLOCK_THREADS && (int64_t)team * TEAM_ELEMENTS < n) team *= 2;
  return team;
}

static int group_at(const void *p, groups_together which) { return (uintptr_t)p % WIDE_ACCESS == 0 ? which : 0; }

static const flow_cuda_kernel of_lines[] = FLOW_CUDA_EACH_WAY(softmax_lines), of_rows[] = FLOW_CUDA_EACH_WAY(softmax_rows),
                              cross_entropy_kernels[] = FLOW_CUDA_EACH_WAY(cross_entropy);

/* Lines whose elements are apart in memory have a thread each, since neighbouring lines are neighbours then; others, a team. */
static flow_status run_softmax(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *y = &call->inputs[call->input_count - 1], *out = &call->outputs[0];
  flow_axis_lines l = flow_lines_along(x, call->attributes->axis.axis);
  softmax_arguments a = {
    .x = x->data,
    .y = y->data,
    .out = out->data,
    .n = l.n,
    .inner = l.inner,
    .lines = l.count,
    .kind = call->op == FLOW_OP_softmax       ? SOFTMAX
            : call->op == FLOW_OP_log_softmax ? LOG_SOFTMAX
                                              : SOFTMAX_GRADIENT,
    .x_dtype = x->dtype,
    .y_dtype = y->dtype,
    .out_dtype = out->dtype
  };
  if (!out->data || a.n == 0) return FLOW_OK;
  if (a.inner > 1) return flow_cuda_launch(call, of_lines[flow_cuda_way_of(call)], a.lines, &a, sizeof a);
  a.team = team_of(a.n);
  a.grouped = a.n % LINE_GROUP == 0;
  a.together = group_at(a.x, X_TOGETHER) | group_at(a.y, Y_TOGETHER) | group_at(a.out, OUT_TOGETHER);
  int64_t blocks = parts_of(a.lines, BLOCK_THREADS / a.team);
  return flow_cuda_launch(call, of_rows[flow_cuda_way_of(call)], blocks, &a, sizeof a);
}

/* Without an output labels are looked at all the same. */
static flow_status run_cross_entropy(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  int gradient = call->op == FLOW_OP_sparse_cross_entropy_gradient;
  const flow_operand *z = &call->inputs[gradient], *labels = &call->inputs[gradient + 1], *out = &call->outputs[0];
  cross_entropy_arguments a = {
    .z = z->data, .labels = labels->data, .g = gradient ? call->inputs[0].data : NULL, .out = out->data, .fault = flow_cuda_fault(call),
    .scalars = call->scalars, .row_lines = 1, .lines = flow_shape_size(labels->rank, labels->shape),
    .classes = z->shape[z->rank - 1], .team = 1, .op = call->op,
    .z_dtype = z->dtype, .label_dtype = labels->dtype, .g_dtype = call->inputs[0].dtype, .out_dtype = out->dtype
  };
  if (labels->rank > 0 && labels->shape[0] > 0) a.row_lines = a.lines / labels->shape[0];
  if (a.row_lines == 0) a.row_lines = 1;
  if (a.out) a.team = team_of(a.classes);
  a.grouped = a.classes % LINE_GROUP == 0;
  a.together = group_at(a.z, X_TOGETHER) | group_at(a.out, OUT_TOGETHER);
  int64_t blocks = parts_of(a.lines, BLOCK_THREADS / a.team);
  return flow_cuda_launch(call, cross_entropy_kernels[flow_cuda_way_of(call)], blocks, &a, sizeof a);
}

const flow_kernel flow_cuda_softmax_kernels[] = { { .variant = "rows", .run = run_softmax }, { 0 } };
const flow_kernel flow_cuda_log_softmax_kernels[] = { { .variant = "rows", .run = run_softmax }, { 0 } };
const flow_kernel flow_cuda_softmax_gradient_kernels[] = { { .variant = "rows", .run = run_softmax }, { 0 } };
const flow_kernel flow_cuda_sparse_cross_entropy_kernels[] = { { .variant = "rows", .run = run_cross_entropy }, { 0 } };
const flow_kernel flow_cuda_sparse_cross_entropy_gradient_kernels[] = { { .variant = "rows", .run = run_cross_entropy }, { 0 } };
