/* measure.c: times of an instance's kernels one by one, every variant that supports the call, on their own operands: how costs are
 * checked against the clock (flowlua bench --ops). One thread, the whole batch at once. It touches neither the instance's memory nor its
 * variables, so that it may be called between runs, and never during one. */
#include "run/binding.h"
#include <math.h>
#include <string.h>
#include "base/need.h"
#include "convolution_geometry.h"
#include "ops/matrix_product.h"

/* A measurement repeats the call until at least `shortest` seconds have passed, which is far above the clock's resolution and what its
 * reading costs; the minimum of REPETITIONS such means counts, since other programs only ever make a run longer. Once `enough` seconds
 * have gone by the repetitions end, so that slow variants do not take minutes. */
static const double shortest = 2e-3, enough = 0.1;
enum { REPETITIONS = 7 };

/* Multiply-adds of a call by the textbook's formula, whatever the variant does: what the figures of GFLOP/s in the table are computed
 * from. 0 where arithmetic is not what the op is about. */
static double matrix_work(const flow_call *call)
{
  const flow_operand *a = &call->inputs[0], *y = &call->outputs[0];
  double depth = (double)a->shape[a->rank - 1];
  if (call->op == FLOW_OP_matmul && call->attributes->matmul.transpose_a && a->rank > 1)
    depth = (double)matrix_rows(a, call->attributes->matmul.swapped & FLOW_SWAPPED_A);
  return (double)flow_shape_size(y->rank, y->shape) * depth;
}

/* Every output of the convolution, before pooling, sees kernel height x width x inputs of its group. */
static double convolution_macs(const flow_call *call, const flow_operand *x, const flow_operand *w)
{
  flow_geometry s = flow_geometry_of(call, x, w);
  return (double)(s.images * s.out[0] * s.out[1]) * (double)flow_shape_size(4, w->shape);
}

static double convolution_work(const flow_call *call) { return convolution_macs(call, &call->inputs[0], &call->inputs[1]); }

/* The gradients by the input and by the kernels take as many multiply-adds as the convolution; what nothing reads is not computed. */
static double convolution_gradient_work(const flow_call *call)
{
  int passes = !call->outputs[0].unused + !call->outputs[1].unused;
  return passes * convolution_macs(call, &call->inputs[1], &call->inputs[2]);
}

static const struct { int op; double (*work)(const flow_call *call); } works[] = {
  { FLOW_OP_matmul, matrix_work }, { FLOW_OP_dense, matrix_work },
  { FLOW_OP_convolution, convolution_work }, { FLOW_OP_convolution_gradient, convolution_gradient_work },
  { FLOW_OP_convolution_gradient_relu, convolution_gradient_work },
};

/* Operations of a call, of ops for which a rate says something: products and convolutions. 0: not one of these. */
static double work_of(const flow_call *call)
{
  for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
    if (works[i].op == call->op) return works[i].work(call);
  return 0;
}

/* ---- operands of its own --------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const flow_operand *operand)
{
  return (size_t)flow_shape_size(operand->rank, operand->shape) * (size_t)flow_dtype_size(operand->dtype);
}

/* Numbers in (-1, 1) for floats, 0 .. 3 for bytes (pooling indices, of which a third says 255), zeros for others (labels). */
static void fill(const flow_operand *operand)
{
  uint64_t state = 88172645463325252u;
  int64_t size = flow_shape_size(operand->rank, operand->shape);
  for (int64_t i = 0; i < size; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    if (operand->dtype == FLOW_FLOAT32) ((float *)operand->data)[i] = (float)((double)(state >> 11) * 0x1p-52 - 1);
    else if (operand->dtype == FLOW_UINT8) ((uint8_t *)operand->data)[i] = (state >> 40) % 3 ? (uint8_t)(state >> 34 & 3) : 255;
  }
}

/* Memory for operands that a measurement needs, filled with harmless numbers. 64 bytes more than the operand has, since kernels may load
 * whole vectors at its end. The caller frees, also after a failure. */
static flow_status allocate(flow_operand *operands, int count)
{
  for (int i = 0; i < count; i++) {
    void *block;
    if (operands[i].unused) continue;
    FLOW_TRY(flow_alloc_zero(bytes_of(&operands[i]) + 64, &block));
    operands[i].data = block;
    fill(&operands[i]);
  }
  return FLOW_OK;
}

/* ---- measuring --------------------------------------------------------------------------------------------------------------- */

/* The call as the engine makes it, by one thread: prepare, then each phase with all of its parts. */
static flow_status run_once(const flow_kernel *kernel, const flow_call *call)
{
  if (kernel->prepare) FLOW_TRY(kernel->prepare(call));
  for (int phase = 0; phase < (kernel->phases ? kernel->phases : 1); phase++) {
    int64_t parts = kernel->parts ? kernel->parts(call, phase) : 1;
    if (parts > 0) FLOW_TRY(kernel->run(call, phase, 0, parts));
  }
  return FLOW_OK;
}

/* *seconds: the best mean, INFINITY if the first, untimed call fails. That call fills caches and pages. */
static flow_status time_kernel(const flow_kernel *kernel, const flow_call *call, double *seconds)
{
  *seconds = INFINITY;
  double began = flow_clock();
  FLOW_TRY(run_once(kernel, call));
  for (int i = 0; i < REPETITIONS && (i == 0 || flow_clock() - began < enough); i++) {
    double started = flow_clock(), passed;
    int runs = 0;
    do {
      FLOW_TRY(run_once(kernel, call));
      runs++;
    } while ((passed = flow_clock() - started) < shortest);
    if (passed / runs < *seconds) *seconds = passed / runs;
  }
  return FLOW_OK;
}

/* Operands, shared and scratch memory are taken and given back here; out->bytes is what the call reads and writes once. */
static flow_status measure(const flow_kernel *kernel, flow_call *call, flow_measurement *out)
{
  int count = call->input_count + call->output_count;
  void *shared = NULL, *scratch = NULL;
  flow_status status = allocate(call->inputs, count);      /* the outputs come after the inputs */
  if (status == FLOW_OK) status = flow_alloc(kernel->shared_bytes ? kernel->shared_bytes(call) : 0, &shared);
  if (status == FLOW_OK) status = flow_alloc(kernel->scratch_bytes ? kernel->scratch_bytes(call) : 0, &scratch);
  call->shared = shared;
  call->scratch = scratch;
  if (status == FLOW_OK) status = time_kernel(kernel, call, &out->seconds);
  for (int i = 0; i < count; i++) {
    if (!call->inputs[i].unused) out->bytes += (double)bytes_of(&call->inputs[i]);
    flow_free(call->inputs[i].data);
  }
  flow_free(shared);
  flow_free(scratch);
  return status;
}

/* The shapes of the first three inputs, which is what tells calls of one op apart. */
static void describe_shapes(const flow_call *call, char *text, int size)
{
  flow_text out = flow_text_into(text, size);
  text[0] = 0;
  for (int i = 0; i < call->input_count && i < 3; i++) {
    if (i) flow_text_add(&out, " ");
    flow_text_add_shape(&out, call->inputs[i].rank, call->inputs[i].shape);
  }
}

int flow_instance_entry_count(const flow_instance *instance)
{
  return instance ? instance->plan->order_count : 0;
}

/* For a variant past the last one, and an entry that runs nothing, out->variant is NULL, which ends the caller's loop. Not a failure. */
flow_status flow_instance_measure(const flow_instance *instance, int index, int variant, flow_measurement *out)
{
  FLOW_NEED(instance, out);
  memset(out, 0, sizeof *out);
  if (index < 0 || index >= instance->plan->order_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_instance_measure: entry %d of %d", index, instance->plan->order_count);
  if (instance->device)
    return flow_fail(FLOW_UNSUPPORTED, "kernels of a GPU are not measured one by one: flow.profile tells their times in a run");
  FLOW_TRY(flow_check_laid_out(instance));
  const flow_entry *entry = &instance->entries[index];
  const flow_node *node = &instance->plan->graph->nodes[entry->node];
  out->op = flow_op(node->op)->name;
  if (entry->alias) return FLOW_OK;
  const flow_kernel *kernel = flow_cpu_device()->kernels[node->op];
  for (int i = 0; i < variant && kernel->run; i++) kernel++;
  if (variant < 0 || !kernel->run) return FLOW_OK;

  void *block;
  int count = entry->input_count + entry->output_count;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_operand) * (size_t)count, &block));
  flow_operand *operands = block;
  for (int i = 0; i < count; i++) flow_describe_operand(instance, &entry->bindings[i], instance->capacity, &operands[i]);
  flow_call call = { .op = node->op, .attributes = &node->attributes, .input_count = entry->input_count,
                     .output_count = entry->output_count, .inputs = operands, .outputs = operands + entry->input_count,
                     .exact = instance->plan->graph->exact, .bfloat16 = node->bfloat16,
                     .partial = instance->plan->segments[entry->segment].by_rows,
                     .scalars = &instance->part.scalars };
  flow_status status = FLOW_OK;
  describe_shapes(&call, out->shape, sizeof out->shape);
  out->variant = kernel->variant;
  out->chosen = kernel == entry->kernel;
  out->supported = !kernel->supports || kernel->supports(&call);
  if (out->supported) {
    out->multiply_adds = work_of(&call);
    out->cost = kernel->cost ? kernel->cost(&call) : 0;
    status = measure(kernel, &call, out);
  }
  flow_free(block);
  return status;
}

/* Multiply-adds per second of one thread, all operands in registers: the unit that costs are given in (kernels.h). */
double flow_peak(void)
{
  double best = 0;
  for (int i = 0; i < REPETITIONS; i++) {
    double started = flow_clock(), done = flow_cpu_device()->peak(1e9), rate = done / (flow_clock() - started);
    if (rate > best) best = rate;
  }
  return best;
}
