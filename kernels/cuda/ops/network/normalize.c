/* normalize.c: the ops normalize, layer_norm and normalize_gradient. */
#include "cuda/runtime/launch.h"
#include "ops/op.h"

enum { TEAM_ELEMENTS = 16 }; /* that a thread of a team has, about, while the team is not a whole block */

static const flow_cuda_kernel kernels[] = FLOW_CUDA_EACH_WAY(normalize_lines);

static flow_status run_normalize(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const int gradient = call->op == FLOW_OP_normalize_gradient, has_r = call->op == FLOW_OP_normalize;
  const flow_operand *x = &call->inputs[gradient], *y = &call->outputs[0], *r = gradient ? &call->inputs[2] : &call->outputs[1];
  const flow_operand *gamma = !gradient && call->input_count > 1 ? &call->inputs[1] : NULL;
  const flow_operand *beta = !gradient && call->input_count > 2 ? &call->inputs[2] : NULL;
  int axis = call->attributes->normalization.axis < 0 ? call->attributes->normalization.axis + x->rank
                                                      : call->attributes->normalization.axis;
  normalize_arguments a = {
    .x = x->data,
    .y = y->data,
    .epsilon = call->attributes->normalization.epsilon,
    .uncentered = call->attributes->normalization.uncentered,
    .lines = flow_shape_size(axis, x->shape),
    .n = flow_shape_size(x->rank - axis, x->shape + axis),
    .x_dtype = x->dtype,
    .y_dtype = y->dtype,
    .team = 1
  };
  if (gradient) a.g = call->inputs[0].data, a.g_dtype = call->inputs[0].dtype;
  if (gradient || has_r) a.r = r->data, a.r_dtype = r->dtype;
  if (gamma) a.gamma = gamma->data, a.gamma_dtype = gamma->dtype;
  if (beta) a.beta = beta->data, a.beta_dtype = beta->dtype;
  if ((!a.y && (gradient || !a.r)) || a.lines == 0) return FLOW_OK;
  a.together = reads_in_fours(a.x, a.n) && reads_in_fours(a.y, a.n) && reads_in_fours(a.g, a.n) && reads_in_fours(a.gamma, a.n) &&
               reads_in_fours(a.beta, a.n);
  while (a.team < BLOCK_THREADS && (int64_t)a.team * TEAM_ELEMENTS < a.n) a.team *= 2;
  return flow_cuda_launch(call, kernels[flow_cuda_way_of(call)], parts_of(a.lines, BLOCK_THREADS / a.team), &a, sizeof a);
}

const flow_kernel flow_cuda_normalize_kernels[] = { { .variant = "lines", .run = run_normalize }, { 0 } };
const flow_kernel flow_cuda_layer_norm_kernels[] = { { .variant = "lines", .run = run_normalize }, { 0 } };
const flow_kernel flow_cuda_normalize_gradient_kernels[] = { { .variant = "lines", .run = run_normalize }, { 0 } };
