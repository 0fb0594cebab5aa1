/* optimizers.c: the optimizer ops. One launch updates all parameters of a call. */
#include "cuda/launch.h"
#include "ops/optimizer_layout.h"

static const void *element_at(const flow_operand *x, int64_t i) { return (const char *)x->data + i * flow_dtype_size(x->dtype); }

static int slots_together(const optimizer_arguments *a, int64_t first)
{
  int together = reads_in_fours((const float *)a->w + first, 0);
  for (int k = 0; k < a->slot_count; k++) together &= reads_in_fours((const float *)a->slots[k] + first, 0);
  return together;
}

/* Appends a segment whose blocks come behind those of the ones before. Returns the number of blocks so far. */
static int64_t add_segment(optimizer_arguments *a, update_segment s, int64_t blocks)
{
  if (s.count == 0) return blocks;
  s.first_block = blocks;
  a->segments[a->segment_count++] = s;
  if (s.k < 0) return blocks + parts_of(s.count, 4 * UPDATE_FOURS * BLOCK_THREADS);
  return blocks + parts_of(parts_of(s.m, 4) * parts_of(s.n, 4), BLOCK_THREADS);
}

static update_segment segment_in_memory(const flow_call *call, const optimizer_arguments *a, int64_t first, int64_t last, int64_t skipped)
{
  const flow_operand *g = &call->inputs[0];
  update_segment s = { .first = first, .count = last - first, .k = -1, .g = element_at(g, first - skipped), .g_dtype = g->dtype };
  s.g_together = reads_in_fours(s.g, 0);
  s.w_together = slots_together(a, first);
  return s;
}

static update_segment segment_of_product(const optimizer_arguments *a, int64_t first, const flow_operand *factors)
{
  const flow_operand *x = &factors[0], *g = &factors[1];
  update_segment s = { .first = first, .count = x->shape[1] * g->shape[1], .k = x->shape[0], .m = x->shape[1], .n = g->shape[1],
                       .x = x->data, .g = g->data, .x_dtype = x->dtype, .g_dtype = g->dtype };
  s.x_together = reads_in_fours(s.x, s.m);
  s.g_together = reads_in_fours(s.g, s.n);
  s.w_together = s.n % 4 == 0 && slots_together(a, first);
  return s;
}

static optimizer_arguments describe(const flow_call *call)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(call->op);
  const flow_attributes *of = call->attributes;
  const flow_operand *w = &call->inputs[1], *rate = &call->inputs[layout->rate];
  const char *names[FLOW_MAX_SLOT_KINDS];
  optimizer_arguments a = { .w = w->data, .w_dtype = w->dtype, .fault = flow_cuda_verdict(call),
                            .rate = rate->data, .rate_dtype = rate->dtype,
                            .momentum = of->optimizer.momentum, .beta_1 = of->optimizer.beta_1, .beta_2 = of->optimizer.beta_2,
                            .epsilon = of->optimizer.epsilon, .rho = of->optimizer.rho, .weight_decay = of->optimizer.weight_decay,
                            .slot_count = layout->names(of, names), .nesterov = of->optimizer.nesterov,
                            .centered = of->optimizer.centered };
  if (layout->iterations >= 0) {
    a.iterations = call->inputs[layout->iterations].data;
    a.iterations_dtype = call->inputs[layout->iterations].dtype;
  }
  int guard = flow_optimizer_guard(layout, of, call->input_count);
  if (guard >= 0) {
    a.guard = call->inputs[guard].data;
    a.guard_dtype = call->inputs[guard].dtype;
  }
  for (int k = 0; k < a.slot_count; k++) {
    a.slots[k] = call->inputs[layout->slots[k]].data;
    a.slot_dtypes[k] = call->inputs[layout->slots[k]].dtype;
  }
  return a;
}

static int all_float32(const flow_call *call)
{
  int iterations = flow_optimizer_layout_of(call->op)->iterations;
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32 && i != iterations) return 0;
  return 1;
}

static flow_status update(const flow_call *call, flow_cuda_kernel float32, flow_cuda_kernel other)
{
  optimizer_arguments a = describe(call);
  int64_t blocks = 0, end = 0, skipped = 0, size = flow_shape_size(call->inputs[1].rank, call->inputs[1].shape);
  int products = call->attributes->optimizer.products;
  for (int i = 0; i < products; i++) {
    update_segment s = segment_of_product(&a, call->attributes->optimizer.first[i], call->inputs + call->input_count - 2 * (products - i));
    blocks = add_segment(&a, segment_in_memory(call, &a, end, s.first, skipped), blocks);
    blocks = add_segment(&a, s, blocks);
    end = s.first + s.count;
    skipped += s.count;
  }
  blocks = add_segment(&a, segment_in_memory(call, &a, end, size, skipped), blocks);
  return flow_cuda_launch(call, all_float32(call) ? float32 : other, blocks, &a, sizeof a);
}

#define OPTIMIZER(name)                                                                                    \
  static flow_status run_##name(const flow_call *call, int phase, int64_t begin, int64_t end)              \
  {                                                                                                        \
    (void)phase, (void)begin, (void)end;                                                                   \
    return update(call, CUDA_##name##_update_float32, CUDA_##name##_update_other);                         \
  }                                                                                                        \
  const flow_kernel flow_cuda_##name##_kernels[] = { { .variant = "segments", .run = run_##name }, { 0 } };
OPTIMIZER(sgd)
OPTIMIZER(adam)
OPTIMIZER(rmsprop)
OPTIMIZER(adagrad)
OPTIMIZER(adadelta)
OPTIMIZER(adamax)
