/* optimizers.c: the optimizer ops. One launch updates all parameters of a call, after the products of many rows, which a library makes. */
#include <string.h>
#include "cuda/library/library.h"
#include "ops/optimizer_layout.h"

_Static_assert((int)UPDATE_COPIES >= (int)FLOW_MAX_COPIES, "an update may have more copies than a launch takes");

static const void *element_at(const flow_operand *x, int64_t i) { return (const char *)x->data + i * flow_dtype_size(x->dtype); }

/* Whether parameters and slots from `first` on can be read four at a time. */
static int slots_together(const optimizer_arguments *a, int64_t first)
{
  int together = reads_in_fours((const float *)a->w + first, 0);
  for (int k = 0; k < a->form.slots; k++) together &= reads_in_fours((const float *)a->slots[k] + first, 0);
  return together;
}

static int has_floats(const optimizer_arguments *a)
{
  int floats = a->w_dtype == FLOW_FLOAT32;
  for (int k = 0; k < a->form.slots; k++) floats &= a->slot_dtypes[k] == FLOW_FLOAT32;
  return floats;
}

/* Appends a segment whose blocks come after those of the ones before. Returns the number of blocks so far. */
static int64_t add_segment(optimizer_arguments *a, update_segment s, int64_t blocks)
{
  if (s.count == 0) return blocks;
  s.first_block = blocks;
  while (s.copies < a->copy_count && a->copy[s.copies].first + a->copy[s.copies].count <= s.first) s.copies++;
  s.copies_end = s.copies;
  while (s.copies_end < a->copy_count && a->copy[s.copies_end].first < s.first + s.count) s.copies_end++;
  s.w_floats = s.w_together && has_floats(a);
  a->segments[a->segment_count++] = s;
  if (s.k < 0) return blocks + parts_of(s.count, 4 * UPDATE_FOURS * BLOCK_THREADS);
  return blocks + parts_of(parts_of(s.m, 4) * parts_of(s.n, 4), BLOCK_THREADS);
}

/* Parameters [first, last), whose gradients are in the operand g. It leaves out the parameters that get theirs from products: `skipped`
 * of them come before. */
static update_segment segment_in_memory(const flow_call *call, const optimizer_arguments *a, int64_t first, int64_t last, int64_t skipped)
{
  const flow_operand *g = &call->inputs[0];
  update_segment s = { .first = first, .count = last - first, .k = -1, .g = element_at(g, first - skipped), .g_dtype = g->dtype };
  s.g_together = reads_in_fours(s.g, 0);
  s.w_together = slots_together(a, first);
  return s;
}

/* Parameters whose gradient is never in memory: w {m, n} gets x^T g of the factors x {k, m} and g {k, n}, tile by tile, by the threads
 * that update it. */
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

/* The copies, in the order of the parameters: each pair says by its variable's address which parameters these are. */
static void add_copies(const flow_call *call, optimizer_arguments *a)
{
  int first = flow_optimizer_first_copy(call->attributes, call->input_count);
  for (int i = 0; i < call->attributes->optimizer.copies; i++) {
    const flow_operand *variable = &call->inputs[first + 2 * i], *copy = variable + 1;
    update_copy made = { .first = ((const char *)variable->data - (const char *)a->w) / flow_dtype_size(a->w_dtype),
                         .count = flow_shape_size(copy->rank, copy->shape),
                         .to = copy->data };
    int at = a->copy_count;
    if (made.count == 0) continue;
    for (; at > 0 && a->copy[at - 1].first > made.first; at--) a->copy[at] = a->copy[at - 1];
    a->copy[at] = made;
    a->copy_count++;
    a->copy_dtype = copy->dtype;
  }
}

/* All but the segments. Which input is what is told by optimizer_layout.h, for all optimizers. */
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
                            .form = { .slots = layout->names(of, names), .nesterov = of->optimizer.nesterov,
                                      .centered = of->optimizer.centered },
                            .corrected_moments = layout->corrected_moments };
  if (layout->iterations >= 0) {
    a.iterations = call->inputs[layout->iterations].data;
    a.iterations_dtype = call->inputs[layout->iterations].dtype;
  }
  int guard = flow_optimizer_guard(layout, of, call->input_count);
  if (guard >= 0) {
    a.guard = call->inputs[guard].data;
    a.guard_dtype = call->inputs[guard].dtype;
  }
  for (int k = 0; k < a.form.slots; k++) {
    a.slots[k] = call->inputs[layout->slots[k]].data;
    a.slot_dtypes[k] = call->inputs[layout->slots[k]].dtype;
  }
  add_copies(call, &a);
  return a;
}

/* ---- products ----------------------------------------------------------------------------------------------------------------- */

/* With more rows the sums, without tensor cores, take longer than a gradient in memory to write and to read: 8 bytes an element, at some
 * 4 TB/s as long as some 60 multiply-adds at half of 60 TFLOP/s (NVIDIA's data sheet of the H200). */
enum { MOST_ROWS = 64, MEMORY_ALIGNMENT = 256 };

/* The library's plan for x^T g of factors {x, g}, wherever they begin; NULL: the update makes it, tile by tile. */
static const flow_library_plan *plan_of(const flow_call *call, const flow_operand *factors)
{
  const flow_operand *x = &factors[0], *g = &factors[1];
  flow_library_product p;
  if (x->shape[0] <= MOST_ROWS || x->shape[1] < 1 || g->shape[1] < 1 || x->dtype != g->dtype || x->dtype == FLOW_FLOAT64) return NULL;
  memset(&p, 0, sizeof p);
  p.dtype = x->dtype;
  p.result_dtype = FLOW_FLOAT32;
  p.exact = call->exact != 0;
  p.transpose_a = 1;
  p.m = x->shape[1];
  p.n = g->shape[1];
  p.k = x->shape[0];
  p.batch = 1;
  p.alignment = FLOW_LIBRARY_ALIGNMENT;
  return flow_library_plan_product(call, &p);
}

/* The factors of product i. */
static const flow_operand *factors_of(const flow_call *call, int i)
{
  return call->inputs + call->input_count - 2 * (call->attributes->optimizer.products - i);
}

static size_t aligned(size_t bytes) { return (bytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT; }

static size_t product_bytes(const flow_operand *factors)
{
  return aligned((size_t)(factors[0].shape[1] * factors[1].shape[1]) * sizeof(float));
}

/* The products that a library makes, one after the other, then its workspace. */
static size_t shared_bytes(const flow_call *call)
{
  size_t bytes = 0, workspace = 0;
  for (int i = 0; i < call->attributes->optimizer.products; i++) {
    const flow_library_plan *plan = plan_of(call, factors_of(call, i));
    if (!plan) continue;
    bytes += product_bytes(factors_of(call, i));
    if (plan->workspace > workspace) workspace = plan->workspace;
  }
  return bytes + workspace;
}

/* The same for factors where they are. */
static const flow_library_plan *plan_here(const flow_call *call, const flow_operand *factors)
{
  uintptr_t places = (uintptr_t)factors[0].data | (uintptr_t)factors[1].data;
  return places % FLOW_LIBRARY_ALIGNMENT == 0 ? plan_of(call, factors) : NULL;
}

/* Parameters from `first` on, whose gradient is the product of the factors. *made: bytes of products in memory so far. */
static flow_status add_product(const flow_call *call, optimizer_arguments *a, int64_t first, const flow_operand *factors, size_t *made,
                               update_segment *out)
{
  const flow_library_plan *plan = plan_here(call, factors);
  size_t all = 0;
  *out = segment_of_product(a, first, factors);
  if (!plan) return FLOW_OK;
  char *product = (char *)call->shared + *made;
  *made += product_bytes(factors);
  for (int i = 0; i < call->attributes->optimizer.products; i++)
    if (plan_of(call, factors_of(call, i))) all += product_bytes(factors_of(call, i));
  out->k = -1;
  out->g = product;
  out->g_dtype = FLOW_FLOAT32;
  out->g_together = 1;
  out->w_together = slots_together(a, first);
  return flow_library_multiply(call, plan, factors[0].data, factors[1].data, NULL, product, (char *)call->shared + all);
}

/* Cuts the parameters into segments in their order: gradients in memory, a product, gradients in memory, and so on; each segment gets
 * blocks of one launch. Products that a library makes are enqueued before, and then count as gradients in memory. */
static flow_status update(const flow_call *call, const flow_cuda_kernel *kernels)
{
  optimizer_arguments a = describe(call);
  int64_t blocks = 0, end = 0, skipped = 0, size = flow_shape_size(call->inputs[1].rank, call->inputs[1].shape);
  size_t made = 0;
  for (int i = 0; i < call->attributes->optimizer.products; i++) {
    update_segment s;
    FLOW_TRY(add_product(call, &a, call->attributes->optimizer.first[i], factors_of(call, i), &made, &s));
    blocks = add_segment(&a, segment_in_memory(call, &a, end, s.first, skipped), blocks);
    blocks = add_segment(&a, s, blocks);
    end = s.first + s.count;
    skipped += s.count;
  }
  blocks = add_segment(&a, segment_in_memory(call, &a, end, size, skipped), blocks);
  a.blocks = blocks;
  a.started = smaller(blocks, (int64_t)UPDATE_BLOCKS * flow_cuda_multiprocessors(call));
  return flow_cuda_launch(call, kernels[flow_cuda_way_of(call)], a.started, &a, sizeof a);
}

#define OPTIMIZER(E, name)                                                                                 \
  static flow_status run_##name(const flow_call *call, int phase, int64_t begin, int64_t end)              \
  {                                                                                                        \
    static const flow_cuda_kernel kernels[] = FLOW_CUDA_EACH_WAY(name##_update);                           \
    (void)phase, (void)begin, (void)end;                                                                   \
    return update(call, kernels);                                                                          \
  }                                                                                                        \
  const flow_kernel flow_cuda_##name##_kernels[] = {                                                       \
    { .variant = "segments", .shared_bytes = shared_bytes, .run = run_##name }, { 0 } };
FLOW_UPDATES(OPTIMIZER, )
