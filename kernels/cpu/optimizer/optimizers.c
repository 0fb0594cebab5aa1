/* optimizers.c: the optimizer ops. They write through their inputs and have no outputs: linear passes over flat ranges
 * in parts of PART elements; an element's result does not depend on its part.
 *
 * Variants: products (float32, gradients as products of two matrices: optimizer_products.c), vector (float32), plain (every
 * dtype, in double). */
#include "cpu/optimizer/optimizer_products.h"

/* PART: elements of a part, 64 KB of each of the parameters, the gradient and the slots. CHUNK: elements that are converted to doubles
 * at a time, 2 KB for each array on the stack. */
enum { PART = 16384, CHUNK = 256 };

/* Parts of a flat range, whatever variables they belong to. */
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

/* Whether all inputs but the count of steps, an integer, are float32. */
static int all_float32(const flow_call *call)
{
  int iterations = flow_optimizer_layout_of(call->op)->iterations;
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32 && i != iterations) return 0;
  return 1;
}

/* The vector variant reads all gradients from memory; of a call with products some are still to be computed. */
static int supports_vector(const flow_call *call) { return all_float32(call) && call->attributes->optimizer.products == 0; }
static int supports_products(const flow_call *call) { return all_float32(call) && call->attributes->optimizer.products > 0; }

/* A guard of 0 leaves parameters and slots unchanged. */
static flow_status run_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int64_t first, last;
  if (!is_let_through(call)) return FLOW_OK;
  range_of(call, begin, end, &first, &last);
  update u = describe_update(call);
  update_range(&u, first, last - first, (const float *)call->inputs[OPTIMIZER_G].data + first);
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
    if (begin < end) read_range(&call->inputs[OPTIMIZER_G], begin - skipped, end - begin, to + (begin - i));
    for (int64_t k = last > i ? last : i; k < i + n && k < last + product_elements(call, p); k++)
      to[k - i] = product_element(optimizer_factors(call, p), k - last);
  }
}

/* Whether the element is updated here, see flow_shard. */
static int is_done_here(const flow_call *call, int64_t at)
{
  if (!call->shard) return 1;
  for (int i = 0; i < call->attributes->optimizer.products; i++) {
    int64_t inside = at - call->attributes->optimizer.first[i];
    if (inside < 0 || inside >= product_elements(call, i)) continue;
    int64_t row = inside / optimizer_factors(call, i)[1].shape[1];
    return row >= call->shard->rows[i][0] && row < call->shard->rows[i][1];
  }
  return call->shard->rest;
}

#define NUMBER       double
#define NUMBER_OF(x) (x)
#define NAME(name)   name##_double
#define FORMULA      static inline
#define SQRT(x)      sqrt(x)
#define ABS(x)       fabs(x)
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#include "optimizer_formulas.inc"

typedef double formula(const flow_update_form *form, const update_numbers_double *u, double g, double w, double *s);

/* Every dtype by way of doubles, element by element. Elements of other shards are read and written back as they were. */
static void run_plain(const flow_call *call, int64_t begin, int64_t end, formula *rule)
{
  int64_t first, last;
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(call->op);
  const flow_update_form form = form_of(call);
  const flow_update_scalars scalars = scalars_of(call);
  const update_numbers_double u = numbers_of_double(&scalars);
  double g[CHUNK], w[CHUNK], values[FLOW_MAX_SLOT_KINDS][CHUNK];
  if (!is_let_through(call)) return;
  range_of(call, begin, end, &first, &last);
  for (int64_t i = first; i < last; i += CHUNK) {
    int64_t n = last - i < CHUNK ? last - i : CHUNK;
    read_gradient(call, i, n, g);
    read_range(&call->inputs[OPTIMIZER_W], i, n, w);
    for (int s = 0; s < form.slots; s++) read_range(&call->inputs[layout->slots[s]], i, n, values[s]);
    for (int64_t j = 0; j < n; j++) {
      if (!is_done_here(call, i + j)) continue;
      double slots[FLOW_UPDATE_SLOTS] = { 0 };
      for (int s = 0; s < form.slots; s++) slots[s] = values[s][j];
      w[j] = rule(&form, &u, g[j], w[j] - w[j] * u.decay, slots);
      for (int s = 0; s < form.slots; s++) values[s][j] = slots[s];
    }
    write_range(&call->inputs[OPTIMIZER_W], i, n, w);
    for (int s = 0; s < form.slots; s++) write_range(&call->inputs[layout->slots[s]], i, n, values[s]);
  }
}

#define OPTIMIZER(E, name)                                                                                                  \
  static flow_status name##_run(const flow_call *call, int phase, int64_t begin, int64_t end)                               \
  {                                                                                                                         \
    (void)phase;                                                                                                            \
    run_plain(call, begin, end, name##_double);                                                                             \
    return FLOW_OK;                                                                                                         \
  }                                                                                                                         \
  const flow_kernel FLOW_KERNELS(name)[] = {                                                                                \
    { .variant = "products",                                                                                                \
      .supports = supports_products,                                                                                        \
      .cost = products_cost,                                                                                                \
      .phases = 2,                                                                                                          \
      .parts = products_parts,                                                                                              \
      .shared_bytes = products_shared_bytes,                                                                                \
      .scratch_bytes = products_scratch_bytes,                                                                              \
      .run = products_run,                                                                                                  \
      .moves = 1 },                                                                                                         \
    { .variant = "vector", .supports = supports_vector, .cost = update_cost, .parts = optimizer_parts, .run = run_vector }, \
    { .variant = "plain", .parts = optimizer_parts, .run = name##_run },                                                    \
    { 0 }                                                                                                                   \
  };
FLOW_UPDATES(OPTIMIZER, )
