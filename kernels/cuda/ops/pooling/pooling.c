/* pooling.c: the ops max_pool, average_pool and their gradients. */
#include "cuda/runtime/launch.h"
#include "ops/op.h"

static int64_t lowest_of(int dtype)
{
  return dtype == FLOW_INT8 ? INT8_MIN : dtype == FLOW_INT32 ? INT32_MIN : dtype == FLOW_INT64 ? INT64_MIN : 0;
}

static int places_together(const uint8_t *index, int64_t channels)
{
  uintptr_t places = (uintptr_t)index | (uintptr_t)channels;
  return places % POOL_CHANNELS == 0 ? POOL_CHANNELS : places % 4 == 0 ? 4 : 0;
}

static pooling_arguments describe(const flow_call *call, const flow_operand *large, const flow_operand *small)
{
  const flow_operand *from = &call->inputs[0], *to = &call->outputs[0];
  pooling_arguments a = { .from = from->data, .to = to->data, .from_dtype = from->dtype, .to_dtype = to->dtype,
                          .channels = small->shape[3], .eights = parts_of(small->shape[3], POOL_CHANNELS),
                          .lowest = lowest_of(from->dtype) };
  for (int axis = 0; axis < 2; axis++) {
    a.large[axis] = large->shape[1 + axis];
    a.small[axis] = small->shape[1 + axis];
    a.size[axis] = call->attributes->pool.size[axis];
    a.stride[axis] = call->attributes->pool.stride[axis] > 0 ? call->attributes->pool.stride[axis] : a.size[axis];
    a.before[axis] = call->attributes->pool.padding[2 * axis];
  }
  if (reads_in_fours(a.from, a.channels) && reads_in_fours(a.to, a.channels))
    a.together = a.channels % POOL_CHANNELS == 0 ? POOL_CHANNELS : 4;
  return a;
}

/* `made` is the operand whose pixels the threads make. */
static flow_status launch(const flow_call *call, flow_cuda_kernel kernel, pooling_arguments *a, const flow_operand *made)
{
  int64_t pixels = made->shape[0] * made->shape[1] * made->shape[2];
  return flow_cuda_launch(call, kernel, a->to || a->index_out ? pixels * a->eights : 0, a, sizeof *a);
}

static const flow_cuda_kernel max_pool[] = FLOW_CUDA_EACH_WAY(max_pool), max_pool_gradient[] = FLOW_CUDA_EACH_WAY(max_pool_gradient),
                              average_pool[] = FLOW_CUDA_EACH_WAY(average_pool),
                              average_pool_gradient[] = FLOW_CUDA_EACH_WAY(average_pool_gradient);

static flow_status run_max(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  pooling_arguments a = describe(call, &call->inputs[0], &call->outputs[0]);
  a.index_out = call->outputs[1].data;
  a.index_together = places_together(a.index_out, a.channels);
  int integers = a.from_dtype >= FLOW_INT8;
  return launch(call, integers ? CUDA_max_pool_integers : max_pool[flow_cuda_way_of(call)], &a, &call->outputs[0]);
}

static flow_status run_max_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  pooling_arguments a = describe(call, &call->outputs[0], &call->inputs[0]);
  a.index = call->inputs[1].data;
  a.index_together = places_together(a.index, a.channels);
  return launch(call, max_pool_gradient[flow_cuda_way_of(call)], &a, &call->outputs[0]);
}

static flow_status run_average(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  pooling_arguments a = describe(call, &call->inputs[0], &call->outputs[0]);
  return launch(call, average_pool[flow_cuda_way_of(call)], &a, &call->outputs[0]);
}

static flow_status run_average_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  pooling_arguments a = describe(call, &call->outputs[0], &call->inputs[0]);
  return launch(call, average_pool_gradient[flow_cuda_way_of(call)], &a, &call->outputs[0]);
}

const flow_kernel flow_cuda_max_pool_kernels[] = { { .variant = "gather", .run = run_max }, { 0 } };
const flow_kernel flow_cuda_max_pool_gradient_kernels[] = { { .variant = "gather", .run = run_max_gradient }, { 0 } };
const flow_kernel flow_cuda_average_pool_kernels[] = { { .variant = "gather", .run = run_average }, { 0 } };
const flow_kernel flow_cuda_average_pool_gradient_kernels[] = { { .variant = "gather", .run = run_average_gradient }, { 0 } };
