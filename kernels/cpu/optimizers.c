/* optimizers.c: the ops sgd and adam. They write through their inputs and have no outputs: linear passes over flat ranges
 * in parts of PART elements; an element's result does not depend on its part.
 *
 * Formulas: Keras 3 (keras/src/optimizers/{sgd,adam}.py). Variants: vector (float32), plain (every dtype, in double). */
#include <math.h>
#include "cpu/math.h"
#include "tensor/tensor.h"

enum { PART = 16384, CHUNK = 256 };

static int64_t size_of(const flow_operand *x) { return flow_shape_size(x->rank, x->shape); }

static double scalar(const flow_operand *x)
{
  double value;
  flow_convert_to_double(x->dtype, x->data, 1, &value, 1);
  return value;
}

enum { SGD_G, SGD_W, SGD_RATE, SGD_VELOCITY };
enum { ADAM_G, ADAM_W, ADAM_M, ADAM_V, ADAM_RATE, ADAM_ITERATIONS, ADAM_MAXIMUM };

static int64_t optimizer_parts(const flow_call *call, int phase)
{
  (void)phase;
  return (size_of(&call->inputs[SGD_W]) + PART - 1) / PART;
}

/* The ranges of elements [*first, *last) of parts [begin, end). */
static void range_of(const flow_operand *w, int64_t begin, int64_t end, int64_t *first, int64_t *last)
{
  int64_t size = size_of(w);
  *first = begin * PART;
  *last = end * PART < size ? end * PART : size;
}

/* lr sqrt(1 - beta_2^t) / (1 - beta_1^t) with t = iterations + 1. Keras takes the powers of the betas rounded to float32, which
 * moves 1 - 0.999 by 1.3e-5 of its value; so does this, for a training run to be comparable with Keras' step by step. */
static double adam_rate(const flow_call *call)
{
  double t = scalar(&call->inputs[ADAM_ITERATIONS]) + 1;
  double beta_1 = (float)call->attributes->optimizer.beta_1, beta_2 = (float)call->attributes->optimizer.beta_2;
  return scalar(&call->inputs[ADAM_RATE]) * sqrt(1 - pow(beta_2, t)) / (1 - pow(beta_1, t));
}

static int all_float32(const flow_call *call)
{
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32 && !(call->op == FLOW_OP_adam && i == ADAM_ITERATIONS)) return 0;
  return 1;
}

/* Loops over [first, last) in vectors, the last one partial: LOAD(p) and STORE(p, v) at element i. */
#define EACH_VECTOR(first, last) for (int64_t i = (first), lanes; (lanes = (last) - i) > 0; i += VL)
#define LOAD(p)     (lanes >= VL ? vf_load((p) + i) : vf_load_part((p) + i, (int)lanes))
#define STORE(p, v) do { if (lanes >= VL) vf_store((p) + i, v); else vf_store_part((p) + i, v, (int)lanes); } while (0)

static flow_status sgd_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int64_t first, last;
  range_of(&call->inputs[SGD_W], begin, end, &first, &last);
  const float *g = call->inputs[SGD_G].data;
  float *w = call->inputs[SGD_W].data;
  vf rate = vf_set((float)scalar(&call->inputs[SGD_RATE])), momentum = vf_set((float)call->attributes->optimizer.momentum);
  if (call->attributes->optimizer.momentum == 0) {
    EACH_VECTOR(first, last) STORE(w, LOAD(w) - rate * LOAD(g));
    return FLOW_OK;
  }
  float *velocity = call->inputs[SGD_VELOCITY].data;
  int nesterov = call->attributes->optimizer.nesterov;
  EACH_VECTOR(first, last) {
    vf step = rate * LOAD(g), v = momentum * LOAD(velocity) - step;
    STORE(velocity, v);
    STORE(w, LOAD(w) + (nesterov ? momentum * v - step : v));
  }
  return FLOW_OK;
}

static flow_status adam_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int64_t first, last;
  range_of(&call->inputs[ADAM_W], begin, end, &first, &last);
  const flow_attributes *a = call->attributes;
  const float *g = call->inputs[ADAM_G].data;
  float *w = call->inputs[ADAM_W].data, *m = call->inputs[ADAM_M].data, *v = call->inputs[ADAM_V].data;
  float *maximum = a->optimizer.amsgrad ? call->inputs[ADAM_MAXIMUM].data : NULL;
  vf rate = vf_set((float)adam_rate(call)), epsilon = vf_set((float)a->optimizer.epsilon);
  vf share_1 = vf_set((float)(1 - a->optimizer.beta_1)), share_2 = vf_set((float)(1 - a->optimizer.beta_2));
  EACH_VECTOR(first, last) {
    vf gradient = LOAD(g), first_moment = LOAD(m), second_moment = LOAD(v);
    first_moment += (gradient - first_moment) * share_1;
    second_moment += (gradient * gradient - second_moment) * share_2;
    STORE(m, first_moment);
    STORE(v, second_moment);
    if (maximum) {
      second_moment = vf_max(LOAD(maximum), second_moment);
      STORE(maximum, second_moment);
    }
    STORE(w, LOAD(w) - rate * first_moment / (vf_sqrt(second_moment) + epsilon));
  }
  return FLOW_OK;
}

/* Elements [i, i + n) of an operand as doubles and back. */
static void read_range(const flow_operand *x, int64_t i, int64_t n, double *to)
{
  flow_convert_to_double(x->dtype, (const char *)x->data + i * flow_dtype_size(x->dtype), 1, to, n);
}
static void write_range(const flow_operand *x, int64_t i, int64_t n, const double *from)
{
  flow_convert_from_double(x->dtype, from, (char *)x->data + i * flow_dtype_size(x->dtype), 1, n);
}

static flow_status sgd_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int64_t first, last;
  range_of(&call->inputs[SGD_W], begin, end, &first, &last);
  double rate = scalar(&call->inputs[SGD_RATE]), momentum = call->attributes->optimizer.momentum;
  double g[CHUNK], w[CHUNK], v[CHUNK];
  for (int64_t i = first; i < last; i += CHUNK) {
    int64_t n = last - i < CHUNK ? last - i : CHUNK;
    read_range(&call->inputs[SGD_G], i, n, g);
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
  range_of(&call->inputs[ADAM_W], begin, end, &first, &last);
  const flow_attributes *a = call->attributes;
  double rate = adam_rate(call), g[CHUNK], w[CHUNK], m[CHUNK], v[CHUNK], maximum[CHUNK];
  for (int64_t i = first; i < last; i += CHUNK) {
    int64_t n = last - i < CHUNK ? last - i : CHUNK;
    read_range(&call->inputs[ADAM_G], i, n, g);
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

#define OPTIMIZER(name)                                                                                               \
  {                                                                                                                   \
    { .variant = "vector", .supports = all_float32, .parts = optimizer_parts, .run = name##_vector },                 \
    { .variant = "plain", .parts = optimizer_parts, .run = name##_plain },                                            \
    { 0 }                                                                                                             \
  }
const flow_kernel FLOW_KERNELS(sgd)[] = OPTIMIZER(sgd);
const flow_kernel FLOW_KERNELS(adam)[] = OPTIMIZER(adam);
