/* batch_norm.c: the ops batch_norm, batch_norm_relu and batch_norm_gradient. */
#include "cuda/runtime/launch.h"
#include "base/status.h"
#include "ops/op.h"

enum { MOST_PARTS = 1024 };      /* blocks for some channels: what keeps all of a large GPU's processors busy */

/* The kernel of batch_norm_wide.h for the call's dtype; -1: there is none. */
static int wide_kernel(const batch_norm_arguments *a)
{
  if (a->gradient && a->g_dtype != a->x_dtype) return -1;
  if (a->gradient && a->mean_dtype == FLOW_FLOAT64) return -1;
  if (a->x_dtype == FLOW_FLOAT32) return a->channels % 4 == 0 ? CUDA_batch_norm_wide_float32 : -1;
  if (a->channels % MOST_WIDE != 0) return -1;
  return a->x_dtype == FLOW_FLOAT16 ? CUDA_batch_norm_wide_float16 : a->x_dtype == FLOW_BFLOAT16 ? CUDA_batch_norm_wide_bfloat16 : -1;
}

static int64_t width_of(const batch_norm_arguments *a) { return a->x_dtype == FLOW_FLOAT32 ? 4 : MOST_WIDE; }

static batch_norm_arguments describe(const flow_call *call)
{
  int gradient = call->op == FLOW_OP_batch_norm_gradient;
  const flow_operand *in = call->inputs, *out = call->outputs, *x = &in[gradient];
  batch_norm_arguments a = { .x = x->data, .x_dtype = x->dtype, .y = out[0].data, .y_dtype = out[0].dtype,
                             .channels = x->shape[x->rank - 1], .rows = flow_shape_size(x->rank - 1, x->shape),
                             .epsilon = call->attributes->normalization.epsilon,
                             .gamma = in[1 + gradient].data, .gamma_dtype = in[1 + gradient].dtype, .lanes = 1,
                             .gradient = gradient, .relu = call->op == FLOW_OP_batch_norm_relu };
  const flow_operand *beta = gradient ? &out[2] : &in[2], *mean = gradient ? &in[3] : &out[1], *variance = gradient ? &in[4] : &out[2];
  a.beta_dtype = beta->dtype;
  a.mean_dtype = mean->dtype;
  a.variance_dtype = variance->dtype;
  if (gradient) {
    a.g = in[0].data;
    a.g_dtype = in[0].dtype;
    a.given_mean = mean->data;
    a.given_variance = variance->data;
    a.dgamma = out[1].data;
    a.dgamma_dtype = out[1].dtype;
    a.dbeta = beta->data;
  } else {
    a.beta = beta->data;
    a.mean = mean->data;
    a.variance = variance->data;
  }
  if (a.relu && call->input_count > 3) {
    a.addend = in[3].data;
    a.addend_dtype = in[3].dtype;
  }
  int64_t side_by_side = wide_kernel(&a) < 0 ? a.channels : a.channels / width_of(&a);
  while (a.lanes < 32 && a.lanes < side_by_side) a.lanes *= 2;
  int64_t at_least = (int64_t)GRADIENT_RUN * (BLOCK_THREADS / a.lanes);
  a.rows_per_part = parts_of(a.rows, MOST_PARTS) > at_least ? parts_of(a.rows, MOST_PARTS) : at_least;
  a.parts = parts_of(a.rows, a.rows_per_part);
  a.channel_blocks = parts_of(a.channels, a.lanes);
  a.fours = parts_of(a.channels, 4);
  a.together = reads_in_fours(a.x, a.channels) && reads_in_fours(a.g, a.channels) && reads_in_fours(a.y, a.channels) &&
               reads_in_fours(a.addend, a.channels);
  return a;
}

static size_t shared_bytes(const flow_call *call)
{
  batch_norm_arguments a = describe(call);
  return (size_t)a.channels * ((size_t)a.parts * sizeof(channel_sum) + 4 * sizeof(double));
}

static const flow_cuda_kernel combine[] = FLOW_CUDA_EACH_WAY(batch_norm_combine),
                              apply[] = FLOW_CUDA_EACH_WAY(batch_norm_apply);

static flow_status launch_sums(const flow_call *call, flow_cuda_way way, const batch_norm_arguments *a)
{
  static const flow_cuda_kernel narrow[] = FLOW_CUDA_EACH_WAY(batch_norm_sums);
  int kernel = way == FLOW_CUDA_OTHER ? -1 : wide_kernel(a);
  if (kernel < 0) return flow_cuda_launch(call, narrow[way], a->parts * a->channel_blocks, a, sizeof *a);
  batch_norm_wide_arguments wide = { .g = a->g, .x = a->x, .given_mean = a->given_mean, .sums = a->sums, .rows = a->rows,
                                     .channels = a->channels, .parts = a->parts, .rows_per_part = a->rows_per_part,
                                     .bundles = a->channels / width_of(a), .gradient = a->gradient, .lanes = a->lanes,
                                     .mean_dtype = a->mean_dtype,
                                     .aligned = ((uintptr_t)a->x | (uintptr_t)a->g) % WIDE_BYTES == 0 };
  wide.bundle_blocks = parts_of(wide.bundles, wide.lanes);
  return flow_cuda_launch(call, (flow_cuda_kernel)kernel, wide.parts * wide.bundle_blocks, &wide, sizeof wide);
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const batch_norm_arguments all = describe(call);
  batch_norm_arguments first = all, second = all, last = all;
  flow_cuda_way way = flow_cuda_way_of(call);
  channel_sum *between = call->shared;
  first.sums = second.sums = between;
  second.coefficients = last.coefficients = between + all.channels * all.parts;
  first.y = first.mean = first.variance = first.dgamma = first.dbeta = NULL;
  first.addend = first.gamma = first.beta = first.given_variance = NULL;
  second.g = second.x = second.addend = second.y = NULL;
  last.mean = last.variance = last.dgamma = last.dbeta = NULL;
  last.gamma = last.beta = last.given_mean = last.given_variance = NULL;
  FLOW_TRY(launch_sums(call, way, &first));
  FLOW_TRY(flow_cuda_launch(call, combine[way], all.channels, &second, sizeof second));
  return flow_cuda_launch(call, apply[way], all.y ? all.rows * all.fours : 0, &last, sizeof last);
}

const flow_kernel flow_cuda_batch_norm_kernels[] = { { .variant = "parts", .shared_bytes = shared_bytes, .run = run }, { 0 } };
const flow_kernel flow_cuda_batch_norm_relu_kernels[] = { { .variant = "parts", .shared_bytes = shared_bytes, .run = run }, { 0 } };
const flow_kernel flow_cuda_batch_norm_gradient_kernels[] = { { .variant = "parts", .shared_bytes = shared_bytes, .run = run }, { 0 } };
