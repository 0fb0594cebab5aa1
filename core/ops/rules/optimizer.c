/* optimizer.c: rules of effects, which have no outputs, and of schedules. Kernels of updates walk weights, slots and gradients as flat
 * ranges in step and check nothing: all that they rely on is checked here, once for a plan. */
#include "ops/optimizer_layout.h"
#include "ops/rules.h"
#include "schedule_formulas.h"

/* The value is cast and broadcast to the variable, which keeps its shape. */
flow_status flow_shape_assign(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)attributes;
  (void)input_count;
  (void)outputs;
  const flow_signature *variable = &inputs[0], *value = &inputs[1];
  flow_signature common;
  FLOW_TRY(flow_rule_broadcast(op, variable, value, &common));
  if (flow_shape_equal(common.rank, common.dims, variable->rank, variable->dims)) return FLOW_OK;
  return flow_rule_fail(op, "a value of shape %s does not fit a variable of shape %s", flow_shape_text(value->rank, value->dims),
                        flow_shape_text(variable->rank, variable->dims));
}

/* Scalars may come as {1} or {1, 1}, as variables of files do. */
static flow_status check_single(int op, const char *what, int dtype, const flow_signature *x)
{
  FLOW_TRY(flow_rule_same_dtype(op, what, dtype, x));
  for (int i = 0; i < x->rank; i++) {
    if (x->dims[i] != 1) return flow_rule_fail(op, "%s has shape %s, expected one element", what, flow_shape_text(x->rank, x->dims));
  }
  return FLOW_OK;
}

/* Pairs x {k, m}, g {k, n}: x^T g, as it would be in memory, is the gradient of m n of the `size` parameters, from optimizer.first[i] on.
 * The ranges of the products rise and do not overlap; *covered: their elements together, which input 0 lacks. */
static flow_status check_products(int op, const flow_attributes *attributes, const flow_signature *pairs, int64_t size, int64_t *covered)
{
  int64_t end = 0;
  *covered = 0;
  for (int i = 0; i < attributes->optimizer.products; i++, pairs += 2) {
    const flow_signature *x = &pairs[0], *g = &pairs[1];
    int64_t first = attributes->optimizer.first[i], count;
    FLOW_TRY(flow_rule_same_dtype(op, "a factor of a gradient", FLOW_FLOAT32, x));
    FLOW_TRY(flow_rule_same_dtype(op, "a factor of a gradient", FLOW_FLOAT32, g));
    if (x->rank != 2 || g->rank != 2 || x->dims[0] != g->dims[0] || x->dims[1] < 0 || g->dims[1] < 0 ||
        __builtin_mul_overflow(x->dims[1], g->dims[1], &count)) {
      return flow_rule_fail(op, "the factors of product %d have shapes %s and %s, expected {k, m} and {k, n}", i + 1,
                            flow_shape_text(x->rank, x->dims), flow_shape_text(g->rank, g->dims));
    }
    if (first < end || count > size - first) {
      return flow_rule_fail(op, "product %d would be the gradient of %lld elements from %lld on, expected a range of elements %lld to %lld",
                            i + 1, (long long)count, (long long)first, (long long)end, (long long)size);
    }
    end = first + count;
    *covered += count;
  }
  return FLOW_OK;
}

/* See optimizer_layout.h. All but the scalars are ranges of one dtype, float32 or float64, and of equally many elements: a kernel walks
 * them in step. g lacks what products are the gradient of. */
flow_status flow_shape_optimizer(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                 flow_signature *outputs)
{
  (void)outputs;
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(op);
  const char *names[FLOW_MAX_OPERANDS] = { "the gradient", "the weight" }, *slots[FLOW_MAX_SLOT_KINDS];
  int slot_count = layout->names(attributes, slots), products = attributes->optimizer.products;
  int required = flow_optimizer_inputs(layout, attributes);
  for (int i = 0; i < slot_count; i++) names[layout->slots[i]] = slots[i];
  if (attributes->optimizer.copies != 0) {
    return flow_rule_fail(op, "%d copies, expected 0: plans of devices alone add them", attributes->optimizer.copies);
  }
  if (products < 0 || products > FLOW_MAX_PRODUCTS) {
    return flow_rule_fail(op, "%d products, expected up to %d", products, FLOW_MAX_PRODUCTS);
  }
  input_count -= 2 * products;
  if (input_count < required) {
    const char *missing = input_count < 0 || !names[input_count] ? "the learning rate" : names[input_count];
    return flow_rule_fail(op, "%d inputs, expected %d: %s is missing", input_count, required, missing);
  }
  if (input_count > required + 1) {
    return flow_rule_fail(op, "%d inputs beside products, expected %d, or one more: a guard", input_count, required);
  }
  if (input_count > required) FLOW_TRY(check_single(op, "the guard", FLOW_FLOAT32, &inputs[required]));
  FLOW_TRY(check_single(op, "the learning rate", FLOW_FLOAT32, &inputs[layout->rate]));
  if (layout->iterations >= 0) FLOW_TRY(check_single(op, "the iteration count", FLOW_INT64, &inputs[layout->iterations]));
  int dtype = inputs[1].dtype == FLOW_FLOAT64 ? FLOW_FLOAT64 : FLOW_FLOAT32; /* that of the weight is that of all */
  flow_extent expected;
  FLOW_TRY(flow_rule_extent(op, inputs[1].rank, inputs[1].dims, &expected));
  int64_t covered;
  FLOW_TRY(check_products(op, attributes, inputs + input_count, expected.count, &covered));
  for (int i = 0; i < input_count; i++) {
    if (names[i] == NULL) continue;
    flow_extent extent;
    FLOW_TRY(flow_rule_same_dtype(op, names[i], dtype, &inputs[i]));
    FLOW_TRY(flow_rule_extent(op, inputs[i].rank, inputs[i].dims, &extent));
    if (extent.power != 0 || extent.count + (i == 0 ? covered : 0) != expected.count) {
      return flow_rule_fail(op, "%s has shape %s, expected the elements of the weight %s", names[i],
                            flow_shape_text(inputs[i].rank, inputs[i].dims), flow_shape_text(inputs[1].rank, inputs[1].dims));
    }
  }
  return FLOW_OK;
}

/* step (one integer), parameters {n} (float64): the rate, a float32 scalar. Kernels index formulas by the class and parameters without
 * looking at how many there are. */
flow_status flow_shape_schedule(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                flow_signature *outputs)
{
#define NUMBERS(class, formula, numbers) numbers,
  static const int numbers[] = { FLOW_SCHEDULES(NUMBERS) };
#undef NUMBERS
  int kind = attributes->schedule.kind, classes = sizeof numbers / sizeof numbers[0];
  (void)input_count;
  FLOW_TRY(check_single(op, "the step", FLOW_INT64, &inputs[0]));
  FLOW_TRY(flow_rule_same_dtype(op, "the list of parameters", FLOW_FLOAT64, &inputs[1]));
  if (inputs[1].rank != 1 || inputs[1].dims[0] < 0)
    return flow_rule_fail(op, "the parameters have shape %s, expected one dimension", flow_shape_text(inputs[1].rank, inputs[1].dims));
  if (kind < 0 || kind >= classes) return flow_rule_fail(op, "there is no class of schedules with number %d", kind);
  int64_t count = inputs[1].dims[0];
  if (numbers[kind] == FLOW_SCHEDULE_LISTS && (count < 3 || count % 2 == 0))
    return flow_rule_fail(op, "the parameters have shape {%lld}, expected {2 n + 3} for n boundaries and n + 1 values", (long long)count);
  if (numbers[kind] != FLOW_SCHEDULE_LISTS && count != numbers[kind])
    return flow_rule_fail(op, "the parameters have shape {%lld}, expected {%d}", (long long)count, numbers[kind]);
  outputs[0] = (flow_signature){ .dtype = FLOW_FLOAT32, .rank = 0 };
  return FLOW_OK;
}
