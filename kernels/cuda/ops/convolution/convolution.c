/* convolution.c: the ops convolution and convolution_gradient. */
#include "cuda/library/channel_sums.h"
#include "cuda/runtime/launch.h"
#include "cuda/library/library_kernels.h"
#include "cuda/device/transposing.h"
#include "base/status.h"
#include "convolution_geometry.h"
#include "tensor/tensor.h"

/* As many threads as keep a large GPU busy sum dw, but none of them few pixels, nor more partial sums than this many numbers. */
enum { WANTED_THREADS = 65536, FEWEST_PIXELS = 64, MOST_PARTIAL = 1 << 24 };

/* What forward and gradient have in common. */
static convolution_arguments describe(const flow_call *call, const flow_operand *x, const flow_operand *w)
{
  flow_geometry s = flow_geometry_of(call, x, w);
  convolution_arguments a = {
    .x = x->data, .w = w->data, .x_dtype = x->dtype, .w_dtype = w->dtype, .channels_in = s.channels_in, .channels_out = s.channels_out,
    .group_in = s.group_in, .group_out = s.group_out, .groups = s.groups, .in_fours = parts_of(s.group_in, 4),
    .group_fours = parts_of(s.group_out, 4), .all_fours = parts_of(s.channels_out, 4), .pixels = s.images * s.out[0] * s.out[1],
    .weights = s.kernel[0] * s.kernel[1] * s.group_in, .input_scale = s.input_scale, .pooled = s.pooled, .relu = s.relu,
    .w_together = reads_in_fours(w->data, s.group_out | s.channels_out)
  };
  for (int axis = 0; axis < 2; axis++) {
    a.in[axis] = s.in[axis];
    a.out[axis] = s.out[axis];
    a.result[axis] = s.result[axis];
    a.kernel[axis] = s.kernel[axis];
    a.stride[axis] = s.stride[axis];
    a.dilation[axis] = s.dilation[axis];
    a.before[axis] = s.before[axis];
    a.pool[axis] = s.pool[axis];
    a.pool_stride[axis] = s.pool_stride[axis];
  }
  return a;
}

/* These kernels read weights, and write their gradients, as users see them: what a plan transposed comes after the call's other memory. */
static int64_t transposed_bytes(const flow_call *call, const convolution_arguments *a, int transposed, int dtype)
{
  if (!(call->attributes->convolution.transposed & transposed)) return 0;
  return parts_of(a->weights * a->channels_out * flow_dtype_size(dtype), 256) * 256;
}

/* Weights {weights, channels out}; to: in the call's memory. */
static flow_status transpose_back(const flow_call *call, convolution_arguments *a, void *to)
{
  if (!(call->attributes->convolution.transposed & FLOW_TRANSPOSED_KERNEL)) return FLOW_OK;
  const void *from = a->w;
  a->w = to;
  a->w_together = reads_in_fours(to, a->group_out | a->channels_out);
  return flow_cuda_transpose(call, from, a->w_dtype, to, a->w_dtype, a->channels_out, a->weights);
}

static size_t forward_shared_bytes(const flow_call *call)
{
  convolution_arguments a = describe(call, &call->inputs[0], &call->inputs[1]);
  return (size_t)transposed_bytes(call, &a, FLOW_TRANSPOSED_KERNEL, a.w_dtype);
}

static int bytes_in_fours(const uint8_t *index, int64_t step) { return (uintptr_t)index % sizeof(four_bytes) == 0 && step % 4 == 0; }

/* A thread makes four channels of a pixel of the result, after pooling, where there is one. */
static flow_status run_forward(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *y = &call->outputs[0];
  convolution_arguments a = describe(call, &call->inputs[0], &call->inputs[1]);
  if (call->attributes->convolution.has_bias) {
    a.b = call->inputs[2].data;
    a.b_dtype = call->inputs[2].dtype;
  }
  a.to = y->data;
  a.to_dtype = y->dtype;
  a.to_together = reads_in_fours(a.to, a.group_out | a.channels_out);
  a.index_out = a.pooled ? call->outputs[1].data : NULL;
  a.index_together = bytes_in_fours(a.index_out, a.group_out | a.channels_out);
  FLOW_TRY(transpose_back(call, &a, call->shared));
  int64_t count = a.to || a.index_out ? call->inputs[0].shape[0] * a.result[0] * a.result[1] * a.groups * a.group_fours : 0;
  return flow_cuda_launch(call, flow_cuda_is_float32(call) ? CUDA_convolve_float32 : CUDA_convolve_other, count, &a, sizeof a);
}

/* ---- gradient ------------------------------------------------------------------------------------------------------------- */

static int64_t number_bytes(const flow_call *call) { return flow_cuda_is_float32(call) ? sizeof(float) : sizeof(double); }

/* Whether the gradient of the convolution's own output is another one than g. */
static int is_spread(const convolution_arguments *a) { return a->pooled || a->relu; }

static int64_t spread_bytes(const flow_call *call, const convolution_arguments *a)
{
  return is_spread(a) ? parts_of(a->pixels * a->channels_out * number_bytes(call), 256) * 256 : 0;
}

/* The gradient of the weights is a sum over all pixels: where there are too few weights to fill the device, pixels are cut into slices,
 * whose partial sums a further launch adds in order. No slice is shorter than FEWEST_PIXELS, and partial sums take MOST_PARTIAL elements
 * at most. */
static convolution_arguments describe_gradient(const flow_call *call)
{
  const flow_operand *in = call->inputs, *out = call->outputs;
  convolution_arguments a = describe(call, &in[1], &in[2]);
  a.g = in[0].data;
  a.g_dtype = in[0].dtype;
  a.y = in[3].data;
  a.y_dtype = in[3].dtype;
  a.index = in[4].data;
  a.to = out[0].data;
  a.to_dtype = out[0].dtype;
  a.dw = out[1].data;
  a.dw_dtype = out[1].dtype;
  a.db = out[2].data;
  a.db_dtype = out[2].dtype;
  a.accumulate = call->accumulate;
  a.to_together = reads_in_fours(a.to, a.group_in | a.channels_in);
  a.g_together = reads_in_fours(a.g, a.channels_out);
  a.y_together = reads_in_fours(a.y, a.channels_out);
  a.index_together = bytes_in_fours(a.index, a.channels_out);
  a.first_position = a.dw ? 0 : a.weights;
  a.positions = (a.db ? a.weights + 1 : a.weights) - a.first_position;
  int64_t sums = (a.weights + 1) * a.channels_out, threads = parts_of(a.weights + 1, 4) * a.groups * a.group_fours;
  a.slices = threads > 0 ? parts_of(WANTED_THREADS, threads) : 1;
  if (a.slices > a.pixels / FEWEST_PIXELS) a.slices = a.pixels / FEWEST_PIXELS;
  if (sums > 0 && a.slices > MOST_PARTIAL / sums) a.slices = MOST_PARTIAL / sums;
  a.slices = a.slices > 0 ? a.slices : 1;
  a.slice = parts_of(a.pixels, a.slices);
  return a;
}

static int64_t partial_bytes(const flow_call *call, const convolution_arguments *a)
{
  return parts_of(a->slices * (a->weights + 1) * a->channels_out * number_bytes(call), 256) * 256;
}

static size_t gradient_shared_bytes(const flow_call *call)
{
  convolution_arguments a = describe_gradient(call);
  return (size_t)(spread_bytes(call, &a) + partial_bytes(call, &a) + transposed_bytes(call, &a, FLOW_TRANSPOSED_KERNEL, a.w_dtype) +
                  transposed_bytes(call, &a, FLOW_TRANSPOSED_GRADIENT, a.dw_dtype));
}

/* g is spread first where a pool or relu is between (unless it is g already); then dx, partial sums of dw and db, and their sums. What
 * the plan keeps transposed goes through memory of the call. */
static flow_status run_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  convolution_arguments a = describe_gradient(call);
  int32_t float32 = flow_cuda_is_float32(call);
  a.spread = is_spread(&a) ? call->shared : (void *)(uintptr_t)a.g;
  a.spread_dtype = !is_spread(&a) ? a.g_dtype : float32 ? FLOW_FLOAT32 : FLOW_FLOAT64;
  a.spread_together = reads_in_fours(a.spread, a.group_out | a.channels_out);
  a.partial = (char *)call->shared + spread_bytes(call, &a);
  char *w = (char *)a.partial + partial_bytes(call, &a), *transposed_dw = a.dw;
  if (a.to) FLOW_TRY(transpose_back(call, &a, w));
  int transposes_dw = a.dw && (call->attributes->convolution.transposed & FLOW_TRANSPOSED_GRADIENT);
  if (transposes_dw) a.dw = w + transposed_bytes(call, &a, FLOW_TRANSPOSED_KERNEL, a.w_dtype);
  if (is_spread(&a) && (a.to || a.positions > 0))
    FLOW_TRY(flow_cuda_launch(call, float32 ? CUDA_convolution_spread_float32 : CUDA_convolution_spread_other, a.pixels * a.all_fours, &a,
                              sizeof a));
  if (a.to)
    FLOW_TRY(flow_cuda_launch(call, float32 ? CUDA_convolution_input_float32 : CUDA_convolution_input_other,
                              call->inputs[1].shape[0] * a.in[0] * a.in[1] * a.groups * a.in_fours, &a, sizeof a));
  FLOW_TRY(flow_cuda_launch(call, float32 ? CUDA_convolution_weights_float32 : CUDA_convolution_weights_other,
                            a.slices * parts_of(a.positions, 4) * a.groups * a.group_fours, &a, sizeof a));
  FLOW_TRY(flow_cuda_launch(call, float32 ? CUDA_convolution_slices_float32 : CUDA_convolution_slices_other,
                            a.positions * a.channels_out, &a, sizeof a));
  return transposes_dw ? flow_cuda_transpose(call, a.dw, a.dw_dtype, transposed_dw, a.dw_dtype, a.weights, a.channels_out) : FLOW_OK;
}

/* ---- gradient, stopped by the relu before -------------------------------------------------------------------------------------- */

/* What is added to dx before; NULL: nothing. */
static const void *addend_of(const flow_call *call) { return call->input_count > 5 ? call->inputs[5].data : NULL; }

static flow_channel_sums sums_of(const flow_call *call)
{
  const int64_t *shape = call->inputs[1].shape;
  return flow_cuda_channel_sums(shape[0] * shape[1] * shape[2], shape[3]);
}

static size_t stopped_shared_bytes(const flow_call *call)
{
  flow_channel_sums sums = sums_of(call);
  size_t bytes = flow_cuda_channel_sums_bytes(&sums), gradient = gradient_shared_bytes(call);
  return bytes > gradient ? bytes : gradient;
}

static flow_status run_stopped(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  const flow_operand *x = &call->inputs[1], *dx = &call->outputs[0];
  flow_channel_sums sums = sums_of(call);
  FLOW_TRY(run_gradient(call, phase, begin, end));
  if (!dx->data) return FLOW_OK;
  FLOW_TRY(flow_cuda_stop_gradient(call, dx->dtype, sums.pixels, sums.channels, dx->data, addend_of(call), x->data,
                                   dx->data));
  if (!call->outputs[3].data) return FLOW_OK;
  return flow_cuda_sum_channels(call, &sums, dx->dtype, dx->data, NULL, NULL, NULL, call->shared, &call->outputs[3]);
}

const flow_kernel flow_cuda_convolution_kernels[] = {
  FLOW_LIBRARY_CONVOLUTION, { .variant = "gather", .shared_bytes = forward_shared_bytes, .run = run_forward }, { 0 }
};
const flow_kernel flow_cuda_convolution_gradient_kernels[] = {
  FLOW_LIBRARY_CONVOLUTION_GRADIENT, { .variant = "gather", .shared_bytes = gradient_shared_bytes, .run = run_gradient }, { 0 }
};
const flow_kernel flow_cuda_convolution_gradient_relu_kernels[] = {
  FLOW_LIBRARY_CONVOLUTION_GRADIENT, { .variant = "gather", .shared_bytes = stopped_shared_bytes, .run = run_stopped }, { 0 }
};
