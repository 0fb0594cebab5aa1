/* batch_norm.c: the ops batch_norm, batch_norm_relu and batch_norm_gradient. */
#include "cuda/runtime/launch.h"
#include "base/status.h"
#include "ops/op.h"

enum { MOST_BLOCKS = 1024 };     /* what keeps all of a large GPU's processors busy */

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

/* How the rows are cut: a block takes rows_per_part rows of `lanes` channels (or bundles of channels) and leaves their sums; the last
 * block to come of PARTS_TOGETHER parts adds up theirs, the last of the groups adds up all (arrival.h counts them). Enough parts to fill
 * the device, but no more than there are counters for. The order of the sums depends on the shapes alone. */
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
  int is_wide = flow_cuda_way_of(call) != FLOW_CUDA_OTHER && wide_kernel(&a) >= 0, most_lanes = is_wide ? 16 : 32;
  int64_t side_by_side = is_wide ? a.channels / width_of(&a) : a.channels;
  while (a.lanes < most_lanes && a.lanes < side_by_side) a.lanes *= 2;
  int64_t pieces = parts_of(side_by_side, a.lanes), at_least = (int64_t)GRADIENT_RUN * (BLOCK_THREADS / a.lanes);
  a.rows_per_part = larger(parts_of(a.rows * pieces, MOST_BLOCKS), at_least);
  for (;; a.rows_per_part *= 2) {
    a.parts = larger(parts_of(a.rows, a.rows_per_part), 1);
    a.groups = parts_of(a.parts, PARTS_TOGETHER);
    if (a.parts == 1 || pieces * (a.groups + 1) <= FLOW_CUDA_COUNTERS) break;
  }
  a.channel_blocks = parts_of(a.channels, a.lanes);
  a.fours = parts_of(a.channels, 4);
  a.together = reads_in_fours(a.x, a.channels) && reads_in_fours(a.g, a.channels) && reads_in_fours(a.y, a.channels) &&
               reads_in_fours(a.addend, a.channels);
  return a;
}

static size_t shared_bytes(const flow_call *call)
{
  batch_norm_arguments a = describe(call);
  return (size_t)a.channels * ((size_t)(a.parts + a.groups) * sizeof(channel_sum) + 4 * sizeof(double));
}

/* The first of two launches: sums over rows, and by its last blocks what each channel needs for the second, the coefficients. */
static flow_status launch_sums(const flow_call *call, flow_cuda_way way, const batch_norm_arguments *a)
{
  static const flow_cuda_kernel narrow[] = FLOW_CUDA_EACH_WAY(batch_norm_sums);
  int kernel = way == FLOW_CUDA_OTHER ? -1 : wide_kernel(a);
  if (kernel < 0) return flow_cuda_launch(call, narrow[way], a->parts * a->channel_blocks, a, sizeof *a);
  batch_norm_wide_arguments wide = { .g = a->g, .x = a->x, .given_mean = a->given_mean, .rows = a->rows,
                                     .rows_per_part = a->rows_per_part, .bundles = a->channels / width_of(a), .gradient = a->gradient,
                                     .lanes = a->lanes, .mean_dtype = a->mean_dtype, .finish = *a,
                                     .aligned = ((uintptr_t)a->x | (uintptr_t)a->g) % WIDE_BYTES == 0 };
  wide.finish.g = wide.finish.x = NULL;
  wide.bundle_blocks = parts_of(wide.bundles, wide.lanes);
  return flow_cuda_launch(call, (flow_cuda_kernel)kernel, a->parts * wide.bundle_blocks, &wide, sizeof wide);
}

/* Each launch gets the operands that it touches and no others: what bundling.c and a reader see is then what happens. The second one
 * makes y of x by the coefficients. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  static const flow_cuda_kernel apply[] = FLOW_CUDA_EACH_WAY(batch_norm_apply);
  const batch_norm_arguments all = describe(call);
  batch_norm_arguments sums = all, last = all;
  flow_cuda_way way = flow_cuda_way_of(call);
  sums.sums = call->shared;
  sums.group_sums = sums.sums + all.channels * all.parts;
  sums.coefficients = last.coefficients = sums.group_sums + all.channels * all.groups;
  sums.counters = flow_cuda_counters(call);
  sums.addend = sums.y = NULL;
  last.mean = last.variance = last.dgamma = last.dbeta = NULL;
  last.gamma = last.beta = last.given_mean = last.given_variance = NULL;
  FLOW_TRY(launch_sums(call, way, &sums));
  return flow_cuda_launch(call, apply[way], all.y ? all.rows * all.fours : 0, &last, sizeof last);
}

const flow_kernel flow_cuda_batch_norm_kernels[] = { { .variant = "parts", .shared_bytes = shared_bytes, .run = run }, { 0 } };
const flow_kernel flow_cuda_batch_norm_relu_kernels[] = { { .variant = "parts", .shared_bytes = shared_bytes, .run = run }, { 0 } };
const flow_kernel flow_cuda_batch_norm_gradient_kernels[] = { { .variant = "parts", .shared_bytes = shared_bytes, .run = run }, { 0 } };
