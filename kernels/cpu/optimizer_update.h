/* optimizer_update.h: what an optimizer does to float32 elements whose gradient is known, for the kernels of the ops sgd
 * and adam. Formulas: Keras 3 (keras/src/optimizers/{sgd,adam}.py).
 *
 * An element's result depends on its own numbers only, so callers may cut ranges as they like. */
#ifndef FLOW_CPU_OPTIMIZER_UPDATE_H
#define FLOW_CPU_OPTIMIZER_UPDATE_H

#include <math.h>
#include "cpu/cost.h"
#include "cpu/math.h"
#include "tensor/tensor.h"

/* Inputs of the ops; products (attributes.optimizer) stand behind the last one that is there. */
enum { SGD_G, SGD_W, SGD_RATE, SGD_VELOCITY };
enum { ADAM_G, ADAM_W, ADAM_M, ADAM_V, ADAM_RATE, ADAM_ITERATIONS, ADAM_MAXIMUM };

static inline double optimizer_scalar(const flow_operand *x)
{
  double value;
  flow_convert_to_double(x->dtype, x->data, 1, &value, 1);
  return value;
}

/* lr sqrt(1 - beta_2^t) / (1 - beta_1^t) with t = iterations + 1. Keras takes the powers of the betas rounded to float32, which
 * moves 1 - 0.999 by 1.3e-5 of its value; so does this, for a training run to be comparable with Keras' step by step. */
static inline double adam_rate(const flow_call *call)
{
  double t = optimizer_scalar(&call->inputs[ADAM_ITERATIONS]) + 1;
  double beta_1 = (float)call->attributes->optimizer.beta_1, beta_2 = (float)call->attributes->optimizer.beta_2;
  return optimizer_scalar(&call->inputs[ADAM_RATE]) * sqrt(1 - pow(beta_2, t)) / (1 - pow(beta_1, t));
}

/* An optimizer call with its scalars worked out. */
typedef struct update {
  int    adam, nesterov;
  float *w, *slots[3];       /* sgd: velocity; adam: m, v, maximum of v. NULL where there is none */
  float  rate, momentum, epsilon, share_1, share_2;
} update;

static inline update describe_update(const flow_call *call)
{
  const flow_operand *in = call->inputs;
  const flow_attributes *a = call->attributes;
  if (call->op == FLOW_OP_sgd)
    return (update){ .w = in[SGD_W].data, .slots = { a->optimizer.momentum != 0 ? in[SGD_VELOCITY].data : NULL },
                     .rate = (float)optimizer_scalar(&in[SGD_RATE]), .momentum = (float)a->optimizer.momentum,
                     .nesterov = a->optimizer.nesterov };
  return (update){ .adam = 1, .w = in[ADAM_W].data,
                   .slots = { in[ADAM_M].data, in[ADAM_V].data, a->optimizer.amsgrad ? in[ADAM_MAXIMUM].data : NULL },
                   .rate = (float)adam_rate(call), .epsilon = (float)a->optimizer.epsilon,
                   .share_1 = (float)(1 - a->optimizer.beta_1), .share_2 = (float)(1 - a->optimizer.beta_2) };
}

/* Loops over n elements in vectors, the last one partial: LOAD(p) and STORE(p, v) at element i. */
#define EACH_VECTOR(n) for (int64_t i = 0, lanes; (lanes = (n) - i) > 0; i += VL)
#define LOAD(p)     (lanes >= VL ? vf_load((p) + i) : vf_load_part((p) + i, (int)lanes))
#define STORE(p, v) do { if (lanes >= VL) vf_store((p) + i, v); else vf_store_part((p) + i, v, (int)lanes); } while (0)

static inline void update_sgd(const update *u, float *w, float *velocity, const float *g, int64_t n)
{
  vf rate = vf_set(u->rate), momentum = vf_set(u->momentum);
  if (!velocity) {
    EACH_VECTOR(n) STORE(w, LOAD(w) - rate * LOAD(g));
    return;
  }
  EACH_VECTOR(n) {
    vf step = rate * LOAD(g), v = momentum * LOAD(velocity) - step;
    STORE(velocity, v);
    STORE(w, LOAD(w) + (u->nesterov ? momentum * v - step : v));
  }
}

static inline void update_adam(const update *u, float *w, float *m, float *v, float *maximum, const float *g, int64_t n)
{
  vf rate = vf_set(u->rate), epsilon = vf_set(u->epsilon), share_1 = vf_set(u->share_1), share_2 = vf_set(u->share_2);
  EACH_VECTOR(n) {
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
}

#undef EACH_VECTOR
#undef LOAD
#undef STORE

/* Updates elements [first, first + n), whose gradients are g[0] to g[n - 1]. */
static inline void update_range(const update *u, int64_t first, int64_t n, const float *g)
{
  float *const *s = u->slots;
  if (!u->adam) update_sgd(u, u->w + first, s[0] ? s[0] + first : NULL, g, n);
  else update_adam(u, u->w + first, s[0] + first, s[1] + first, s[2] ? s[2] + first : NULL, g, n);
}

/* ---- ranges between products --------------------------------------------------------------------------------------------- */

static inline int64_t optimizer_elements(const flow_call *call)
{
  return flow_shape_size(call->inputs[SGD_W].rank, call->inputs[SGD_W].shape);
}

/* The two factors of product i. */
static inline const flow_operand *optimizer_factors(const flow_call *call, int i)
{
  return call->inputs + call->input_count - 2 * (call->attributes->optimizer.products - i);
}

/* Elements of product i, 0 behind the last one. */
static inline int64_t product_elements(const flow_call *call, int i)
{
  if (i >= call->attributes->optimizer.products) return 0;
  const flow_operand *factors = optimizer_factors(call, i);
  return factors[0].shape[1] * factors[1].shape[1];
}

/* One pass over parameters and slots, and over the gradients that lie in memory. */
static inline double update_cost(const flow_call *call)
{
  const flow_attributes *a = call->attributes;
  int slots = call->op == FLOW_OP_sgd ? a->optimizer.momentum != 0 : 2 + (a->optimizer.amsgrad != 0);
  double size = (double)optimizer_elements(call), given = size;
  for (int i = 0; i < a->optimizer.products; i++) given -= (double)product_elements(call, i);
  return flow_cost_stream((2.0 * (1 + slots) * size + given) * (double)sizeof(float));
}

/* The elements before product i and behind the one before it (i = products: those behind the last) have gradients in
 * input 0, `*skipped` elements before their own place. */
static inline void range_before(const flow_call *call, int i, int64_t *first, int64_t *last, int64_t *skipped)
{
  const flow_attributes *a = call->attributes;
  *skipped = 0;
  for (int k = 0; k < i; k++) *skipped += product_elements(call, k);
  *first = i > 0 ? a->optimizer.first[i - 1] + product_elements(call, i - 1) : 0;
  *last = i < a->optimizer.products ? a->optimizer.first[i] : optimizer_elements(call);
}

#endif
