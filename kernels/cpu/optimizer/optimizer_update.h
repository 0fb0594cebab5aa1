/* optimizer_update.h: what an optimizer does to float32 elements whose gradient is known, for the kernels of the optimizer ops.
 * Formulas: Keras 3 (keras/src/optimizers/{sgd,adam,rmsprop,adagrad,adadelta,adamax}.py). Weight decay, w -= w weight_decay
 * learning_rate, comes first (base_optimizer.py: _apply_weight_decay).
 *
 * An element's result depends on its own numbers only, so callers may cut ranges as they like. Which input is what:
 * ops/optimizer_layout.h. */
#ifndef FLOW_CPU_OPTIMIZER_OPTIMIZER_UPDATE_H
#define FLOW_CPU_OPTIMIZER_OPTIMIZER_UPDATE_H

#include <math.h>
#include "cpu/cost.h"
#include "cpu/math.h"
#include "ops/optimizer_layout.h"
#include "tensor/tensor.h"

enum { OPTIMIZER_G, OPTIMIZER_W };     /* inputs of every optimizer op */

static inline double optimizer_scalar(const flow_operand *x)
{
  double value;
  flow_convert_to_double(x->dtype, x->data, 1, &value, 1);
  return value;
}

/* Whether the call writes at all: its guard, if it has one, is not 0. */
static inline int is_let_through(const flow_call *call)
{
  int guard = flow_optimizer_guard(flow_optimizer_layout_of(call->op), call->attributes, call->input_count);
  return guard < 0 || optimizer_scalar(&call->inputs[guard]) != 0;
}

/* An optimizer call with its scalars worked out, in double. */
typedef struct update_numbers {
  double rate;                              /* includes what depends on the step: the bias corrections of Adam */
  double decay;                             /* weight_decay times the learning rate */
  double momentum, rho, epsilon, beta_2, share_1, share_2;   /* share: 1 - beta */
  int    slots, nesterov, centered;
} update_numbers;

/* Keras takes the powers of the betas rounded to float32, which moves 1 - 0.999 by 1.3e-5 of its value; so does this, for a
 * training run to be comparable with Keras' step by step. */
static inline double bias_correction(double beta, double t) { return 1 - pow((float)beta, t); }

static inline update_numbers numbers_of(const flow_call *call)
{
  const flow_attributes *a = call->attributes;
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(call->op);
  const char *names[FLOW_MAX_SLOT_KINDS];
  double rate = optimizer_scalar(&call->inputs[layout->rate]);
  update_numbers u = { .rate = rate, .decay = a->optimizer.weight_decay * rate, .momentum = a->optimizer.momentum,
                       .rho = a->optimizer.rho, .epsilon = a->optimizer.epsilon, .beta_2 = a->optimizer.beta_2,
                       .share_1 = 1 - a->optimizer.beta_1, .share_2 = 1 - a->optimizer.beta_2, .slots = layout->names(a, names),
                       .nesterov = a->optimizer.nesterov, .centered = a->optimizer.centered };
  if (call->op != FLOW_OP_adam && call->op != FLOW_OP_adamax) return u;
  double t = optimizer_scalar(&call->inputs[layout->iterations]) + 1;
  u.rate /= bias_correction(a->optimizer.beta_1, t);
  if (call->op == FLOW_OP_adam) u.rate *= sqrt(bias_correction(a->optimizer.beta_2, t));
  return u;
}

typedef struct update update;
/* Updates n elements of w and the slots s (NULL after the last) by their gradients g. */
typedef void update_rule(const update *u, float *w, float *const *s, const float *g, int64_t n);

struct update {
  update_rule *rule;
  float       *w, *slots[FLOW_MAX_SLOT_KINDS];
  int          nesterov, centered;
  float        rate, decay, momentum, rho, epsilon, beta_2, share_1, share_2;
};

/* Loops over n elements in vectors, the last one partial: LOAD(p) and STORE(p, v) at element i. */
#define EACH_VECTOR(n) for (int64_t i = 0, lanes; (lanes = (n) - i) > 0; i += VL)
#define LOAD(p)     (lanes >= VL ? vf_load((p) + i) : vf_load_part((p) + i, (int)lanes))
#define STORE(p, v) do { if (lanes >= VL) vf_store((p) + i, v); else vf_store_part((p) + i, v, (int)lanes); } while (0)

static inline void decay_weights(const update *u, float *w, int64_t n)
{
  vf decay = vf_set(u->decay);
  if (u->decay == 0) return;
  EACH_VECTOR(n) STORE(w, LOAD(w) - LOAD(w) * decay);
}

static inline void update_sgd(const update *u, float *w, float *const *s, const float *g, int64_t n)
{
  vf rate = vf_set(u->rate), momentum = vf_set(u->momentum);
  float *velocity = s[0];
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

static inline void update_adam(const update *u, float *w, float *const *s, const float *g, int64_t n)
{
  vf rate = vf_set(u->rate), epsilon = vf_set(u->epsilon), share_1 = vf_set(u->share_1), share_2 = vf_set(u->share_2);
  float *m = s[0], *v = s[1], *maximum = s[2];
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

/* Slots: velocity, then the momentum, then the mean of the gradients, where they are wanted. */
static inline void update_rmsprop(const update *u, float *w, float *const *s, const float *g, int64_t n)
{
  vf rate = vf_set(u->rate), epsilon = vf_set(u->epsilon), rho = vf_set(u->rho), rest = vf_set(1 - u->rho), momentum = vf_set(u->momentum);
  float *velocity = s[0], *moved = u->momentum != 0 ? s[1] : NULL, *mean = u->centered ? s[u->momentum != 0 ? 2 : 1] : NULL;
  EACH_VECTOR(n) {
    vf gradient = LOAD(g), v = rho * LOAD(velocity) + rest * (gradient * gradient), denominator = v + epsilon;
    STORE(velocity, v);
    if (mean) {
      vf average = rho * LOAD(mean) + rest * gradient;
      STORE(mean, average);
      denominator = v - average * average + epsilon;
    }
    vf step = rate * gradient / vf_sqrt(denominator);
    if (moved) {
      step = momentum * LOAD(moved) + step;
      STORE(moved, step);
    }
    STORE(w, LOAD(w) - step);
  }
}

static inline void update_adagrad(const update *u, float *w, float *const *s, const float *g, int64_t n)
{
  vf rate = vf_set(u->rate), epsilon = vf_set(u->epsilon);
  float *squares = s[0];
  EACH_VECTOR(n) {
    vf gradient = LOAD(g), sum = LOAD(squares) + gradient * gradient;
    STORE(squares, sum);
    STORE(w, LOAD(w) - rate * gradient / vf_sqrt(sum + epsilon));
  }
}

static inline void update_adadelta(const update *u, float *w, float *const *s, const float *g, int64_t n)
{
  vf rate = vf_set(u->rate), epsilon = vf_set(u->epsilon), rho = vf_set(u->rho), rest = vf_set(1 - u->rho);
  float *gradients = s[0], *steps = s[1];
  EACH_VECTOR(n) {
    vf gradient = LOAD(g), before = LOAD(steps), squares = rho * LOAD(gradients) + rest * (gradient * gradient);
    vf step = vf_sqrt(before + epsilon) * gradient / vf_sqrt(squares + epsilon);
    STORE(gradients, squares);
    STORE(steps, rho * before + rest * (step * step));
    STORE(w, LOAD(w) - rate * step);
  }
}

static inline void update_adamax(const update *u, float *w, float *const *s, const float *g, int64_t n)
{
  vf rate = vf_set(u->rate), epsilon = vf_set(u->epsilon), share = vf_set(u->share_1), beta_2 = vf_set(u->beta_2);
  float *m = s[0], *norm = s[1];
  EACH_VECTOR(n) {
    vf gradient = LOAD(g), moment = LOAD(m), largest = vf_max(beta_2 * LOAD(norm), vf_max(gradient, -gradient));
    moment += (gradient - moment) * share;
    STORE(m, moment);
    STORE(norm, largest);
    STORE(w, LOAD(w) - rate * moment / (largest + epsilon));
  }
}

#undef EACH_VECTOR
#undef LOAD
#undef STORE

static inline update_rule *update_rule_of(int op)
{
  static const struct { int op; update_rule *rule; } rules[] = {
    { FLOW_OP_sgd, update_sgd }, { FLOW_OP_adam, update_adam }, { FLOW_OP_rmsprop, update_rmsprop },
    { FLOW_OP_adagrad, update_adagrad }, { FLOW_OP_adadelta, update_adadelta }, { FLOW_OP_adamax, update_adamax },
  };
  int i = 0;
  while (rules[i].op != op) i++;
  return rules[i].rule;
}

static inline update describe_update(const flow_call *call)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(call->op);
  update_numbers n = numbers_of(call);
  update u = { .rule = update_rule_of(call->op), .w = call->inputs[OPTIMIZER_W].data, .nesterov = n.nesterov, .centered = n.centered,
               .rate = (float)n.rate, .decay = (float)n.decay, .momentum = (float)n.momentum, .rho = (float)n.rho,
               .epsilon = (float)n.epsilon, .beta_2 = (float)n.beta_2, .share_1 = (float)n.share_1, .share_2 = (float)n.share_2 };
  for (int s = 0; s < n.slots; s++) u.slots[s] = call->inputs[layout->slots[s]].data;
  return u;
}

/* Updates elements [first, first + n), whose gradients are g[0] to g[n - 1]. */
static inline void update_range(const update *u, int64_t first, int64_t n, const float *g)
{
  float *slots[FLOW_MAX_SLOT_KINDS];
  for (int s = 0; s < FLOW_MAX_SLOT_KINDS; s++) slots[s] = u->slots[s] ? u->slots[s] + first : NULL;
  decay_weights(u, u->w + first, n);
  u->rule(u, u->w + first, slots, g, n);
}

/* ---- ranges between products --------------------------------------------------------------------------------------------- */

static inline int64_t optimizer_elements(const flow_call *call)
{
  return flow_shape_size(call->inputs[OPTIMIZER_W].rank, call->inputs[OPTIMIZER_W].shape);
}

/* The two factors of product i. */
static inline const flow_operand *optimizer_factors(const flow_call *call, int i)
{
  return call->inputs + call->input_count - 2 * (call->attributes->optimizer.products - i);
}

/* Elements of product i, 0 after the last one. */
static inline int64_t product_elements(const flow_call *call, int i)
{
  if (i >= call->attributes->optimizer.products) return 0;
  const flow_operand *factors = optimizer_factors(call, i);
  return factors[0].shape[1] * factors[1].shape[1];
}

/* One pass over parameters and slots, and over the gradients that are in memory. */
static inline double update_cost(const flow_call *call)
{
  const flow_attributes *a = call->attributes;
  const char *names[FLOW_MAX_SLOT_KINDS];
  int slots = flow_optimizer_layout_of(call->op)->names(a, names);
  double size = (double)optimizer_elements(call), given = size;
  for (int i = 0; i < a->optimizer.products; i++) given -= (double)product_elements(call, i);
  return flow_cost_stream((2.0 * (1 + slots) * size + given) * (double)sizeof(float));
}

/* The elements before product i and behind the one before it (i = products: those after the last) have gradients in
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
