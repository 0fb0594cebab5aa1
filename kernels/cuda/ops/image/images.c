/* images.c: the ops resize, sample_image and their gradients. */
#include "cuda/runtime/launch.h"
#include "base/status.h"
#include "ops/op.h"

static int is_gradient(const flow_call *call) { return call->op == FLOW_OP_resize_gradient || call->op == FLOW_OP_sample_image_gradient; }

/* In call->shared: runs and weights of rows and columns, then, for the gradient, the readers of both. */
static resize_arguments describe_resize(const flow_call *call)
{
  const flow_operand *from = &call->inputs[0], *to = &call->outputs[0];
  const flow_operand *x = is_gradient(call) ? to : from, *y = is_gradient(call) ? from : to;
  resize_arguments a = { .from = from->data, .to = to->data, .from_dtype = from->dtype, .to_dtype = to->dtype, .channels = x->shape[3],
                         .fours = parts_of(x->shape[3], 4), .attributes = *call->attributes };
  a.rows = (resize_axis){ .in = (int)x->shape[1], .out = (int)y->shape[1] };
  a.columns = (resize_axis){ .in = (int)x->shape[2], .out = (int)y->shape[2] };
  a.rows.taps = resize_taps(call->attributes, a.rows.in, a.rows.out);
  a.columns.taps = resize_taps(call->attributes, a.columns.in, a.columns.out);
  a.together = reads_in_fours(a.from, a.channels) && reads_in_fours(a.to, a.channels);
  return a;
}

static size_t resize_shared_bytes(const flow_call *call)
{
  resize_arguments a = describe_resize(call);
  size_t readers = is_gradient(call) ? 2 * (size_t)(a.rows.in + a.columns.in) * sizeof(int32_t) : 0;
  return resize_axis_bytes(&a.rows) + resize_axis_bytes(&a.columns) + readers;
}

/* Runs and weights of both axes first; for the gradient then who reads each input pixel; then the pixels. */
static flow_status run_resize(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  resize_arguments a = describe_resize(call);
  int64_t images = call->inputs[0].shape[0];
  int float32 = a.from_dtype == FLOW_FLOAT32 && a.to_dtype == FLOW_FLOAT32;
  if (!a.to) return FLOW_OK;
  place_axis(&a.rows, call->shared);
  place_axis(&a.columns, (char *)call->shared + resize_axis_bytes(&a.rows));
  a.row_readers = (int32_t *)((char *)call->shared + resize_axis_bytes(&a.rows) + resize_axis_bytes(&a.columns));
  a.column_readers = a.row_readers + 2 * a.rows.in;
  FLOW_TRY(flow_cuda_launch(call, CUDA_resize_weigh, a.rows.out + a.columns.out, &a, sizeof a));
  if (!is_gradient(call))
    return flow_cuda_launch(call, float32 ? CUDA_resize_image_float32 : CUDA_resize_image_other,
                            images * a.rows.out * a.columns.out * a.fours, &a, sizeof a);
  FLOW_TRY(flow_cuda_launch(call, CUDA_resize_readers, a.rows.in + a.columns.in, &a, sizeof a));
  return flow_cuda_launch(call, float32 ? CUDA_resize_image_gradient_float32 : CUDA_resize_image_gradient_other,
                          images * a.rows.in * a.columns.in * a.fours, &a, sizeof a);
}

/* The gradient has g in place of x, whose shape is the same. */
static flow_status run_sample(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0], *t = &call->inputs[1], *y = &call->outputs[0];
  sampling_arguments a = { .x = x->data, .t = t->data, .y = y->data, .height = x->shape[1], .width = x->shape[2], .channels = x->shape[3],
                           .fours = parts_of(x->shape[3], 4), .attributes = *call->attributes, .x_dtype = x->dtype, .t_dtype = t->dtype,
                           .y_dtype = y->dtype };
  int float32 = a.x_dtype == FLOW_FLOAT32 && a.t_dtype == FLOW_FLOAT32 && a.y_dtype == FLOW_FLOAT32;
  if (!a.y) return FLOW_OK;
  a.together = reads_in_fours(a.x, a.channels) && reads_in_fours(a.y, a.channels);
  if (is_gradient(call))
    return flow_cuda_launch(call, float32 ? CUDA_sample_pixels_gradient_float32 : CUDA_sample_pixels_gradient_other,
                            x->shape[0] * a.channels, &a, sizeof a);
  return flow_cuda_launch(call, float32 ? CUDA_sample_pixels_float32 : CUDA_sample_pixels_other,
                          x->shape[0] * a.height * a.width * a.fours, &a, sizeof a);
}

const flow_kernel flow_cuda_resize_kernels[] = { { .variant = "gather", .shared_bytes = resize_shared_bytes, .run = run_resize }, { 0 } };
const flow_kernel flow_cuda_resize_gradient_kernels[] = {
  { .variant = "gather", .shared_bytes = resize_shared_bytes, .run = run_resize }, { 0 }
};
const flow_kernel flow_cuda_sample_image_kernels[] = { { .variant = "gather", .run = run_sample }, { 0 } };
const flow_kernel flow_cuda_sample_image_gradient_kernels[] = { { .variant = "scatter", .run = run_sample }, { 0 } };
