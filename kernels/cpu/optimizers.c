/* optimizers.c: the ops sgd and adam. They write through their inputs and have no outputs: linear passes over flat ranges
 * in parts of PART elements; an element's result does not depend on its part.
 *
 * Variants: products (float32, gradients as products of two matrices: optimizer_products.c), vector (float32), plain (every
 * dtype, in double). */
#include "cpu/optimizer_products.h"

enum { PART = 16384, CHUNK = 256 };

static int64_t optimizer_parts(const flow_call *call, int phase)
{
  (void)phase;
  return (optimizer_elements(call) + PART - 1) / PART;
}

/* The ranges of elements [*first, *last) of parts [begin, end). */
static void range_of(const flow_call *call, int64_t begin, int64_t end, int64_t *first, int64_t *last)
{
  int64_t size = optimizer_elements(call);
  *first = begin * PART;
  *last = end * PART < size ? end * PART : size;
}

static int all_float32(const flow_call *call)
{
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32 && !(call->op == FLOW_OP_adam && i == ADAM_ITERATIONS)) return 0;
  return 1;
}

static int supports_vector(const flow_call *call) { return all_float32(call) && call->attributes->optimizer.products == 0; }
static int supports_products(const flow_call *call) { return all_float32(call) && call->attributes->optimizer.products > 0; }

static flow_status run_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int64_t first, last;
  range_of(call, begin, end, &first, &last);
  update u = describe_update(call);
  update_range(&u, first, last - first, (const float *)call->inputs[SGD_G].data + first);
  return FLOW_OK;
}

/* ---- plain -------------------------------------------------------------------------------------------------------------- */

/* Elements [i, i + n) of an operand as doubles and back. */
static void read_range(const flow_operand *x, int64_t i, int64_t n, double *to)
{
  flow_convert_to_double(x->dtype, (const char *)x->data + i * flow_dtype_size(x->dtype), 1, to, n);
}
static void write_range(const flow_operand *x, int64_t i, int64_t n, const double *from)
{
  flow_convert_from_double(x->dtype, from, (char *)x->data + i * flow_dtype_size(x->dtype), 1, n);
}

/* Element `at` of the product x^T g. */
static double product_element(const flow_operand *factors, int64_t at)
{
  const flow_operand *x = &factors[0], *g = &factors[1];
  int64_t row = at / g->shape[1], column = at % g->shape[1];
  double sum = 0, a, b;
  for (int64_t k = 0; k < x->shape[0]; k++) {
    read_range(x, k * x->shape[1] + row, 1, &a);
    read_range(g, k * g->shape[1] + column, 1, &b);
    sum += a * b;
  }
  return sum;
}

/* The gradients of elements [i, i + n), n <= CHUNK. */
static void read_gradient(const flow_call *call, int64_t i, int64_t n, double *to)
{
  int64_t first, last, skipped;
  for (int p = 0; p <= call->attributes->optimizer.products; p++) {
    range_before(call, p, &first, &last, &skipped);
    int64_t begin = i > first ? i : first, end = i + n < last ? i + n : last;
    if (begin < end) read_range(&call->inputs[SGD_G], begin - skipped, end - begin, to + (begin - i));
    for (int64_t k = last > i ? last : i; k < i + n && k < last + product_elements(call, p); k++)
      to[k - i] = product_element(optimizer_factors(call, p), k - last);
  }
}

static flow_status sgd_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int64_t first, last;
  range_of(call, begin, end, &first, &last);
  double rate = optimizer_scalar(&call->inputs[SGD_RATE]), momentum = call->attributes->optimizer.momentum;
  double g[CHUNK], w[CHUNK], v[CHUNK];
  for (int64_t i = first; i < last; i += CHUNK) {
    int64_t n = last - i < CHUNK ? last - i : CHUNK;
    read_gradient(call, i, n, g);
    read_range(&call->inputs[SGD_W], i, n, w);
    if (momentum != 0) read_range(&call->inputs[SGD_VELOCITY], i, n, v);
    for (int64_t j = 0; j < n; j++) {
      double step = rate * g[j];
      if (momentum == 0) {
        w[j] -= step;
      } else {
        v[j] = momentum * v[j] - step;
        w[j] += call->attributes->optimizer.nesterov ? momentum * v[j] - step : v[j];
      }
    }
    write_range(&call->inputs[SGD_W], i, n, w);
    if (momentum != 0) write_range(&call->inputs[SGD_VELOCITY], i, n, v);
  }
  return FLOW_OK;
}

static flow_status adam_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int64_t first, last;
  range_of(call, begin, end, &first, &last);
  const flow_attributes *a = call->attributes;
  double rate = adam_rate(call), g[CHUNK], w[CHUNK], m[CHUNK], v[CHUNK], maximum[CHUNK];
  for (int64_t i = first; i < last; i += CHUNK) {
    int64_t n = last - i < CHUNK ? last - i : CHUNK;
    read_gradient(call, i, n, g);
    read_range(&call->inputs[ADAM_W], i, n, w);
    read_range(&call->inputs[ADAM_M], i, n, m);
    read_range(&call->inputs[ADAM_V], i, n, v);
    if (a->optimizer.amsgrad) read_range(&call->inputs[ADAM_MAXIMUM], i, n, maximum);
    for (int64_t j = 0; j < n; j++) {
      m[j] += (g[j] - m[j]) * (1 - a->optimizer.beta_1);
      v[j] += (g[j] * g[j] - v[j]) * (1 - a->optimizer.beta_2);
      double second_moment = v[j];
      if (a->optimizer.amsgrad) second_moment = maximum[j] = maximum[j] > v[j] ? maximum[j] : v[j];
      w[j] -= rate * m[j] / (sqrt(second_moment) + a->optimizer.epsilon);
    }
    write_range(&call->inputs[ADAM_W], i, n, w);
    write_range(&call->inputs[ADAM_M], i, n, m);
    write_range(&call->inputs[ADAM_V], i, n, v);
    if (a->optimizer.amsgrad) write_range(&call->inputs[ADAM_MAXIMUM], i, n, maximum);
  }
  return FLOW_OK;
}

#define OPTIMIZER(name)                                                                                                    \
  {                                                                                                                        \
    { .variant = "products", .supports = supports_products, .cost = products_cost, .phases = 2, .parts = products_parts,   \
      .shared_bytes = products_shared_bytes, .scratch_bytes = products_scratch_bytes, .run = products_run },               \
    { .variant = "vector", .supports = supports_vector, .cost = update_cost, .parts = optimizer_parts, .run = run_vector },\
    { .variant = "plain", .parts = optimizer_parts, .run = name##_plain },                                                 \
    { 0 }                                                                                                                  \
  }
const flow_kernel FLOW_KERNELS(sgd)[] = OPTIMIZER(sgd);
const flow_kernel FLOW_KERNELS(adam)[] = OPTIMIZER(adam);
