/* optimizer_update.h: what an optimizer does to float32 elements whose gradient is known, for the kernels of the optimizer ops.
 * Weight decay, w -= w weight_decay learning_rate, comes first (Keras' base_optimizer.py: _apply_weight_decay); formulas:
 * optimizer_formulas.inc.
 *
 * An element's result depends on its own numbers only, so callers may cut ranges as they like. Which input is what:
 * ops/optimizer_layout.h. */
#ifndef FLOW_CPU_OPTIMIZER_OPTIMIZER_UPDATE_H
#define FLOW_CPU_OPTIMIZER_OPTIMIZER_UPDATE_H

#include "cpu/cost.h"
#include "cpu/math.h"
#include "optimizer_formulas.h"
#include "ops/optimizer_layout.h"
#include "tensor/tensor.h"

enum { OPTIMIZER_G, OPTIMIZER_W };     /* inputs of every optimizer op */

/* The one element of a scalar input. */
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

/* The numbers of an optimizer call. */
static inline flow_update_scalars scalars_of(const flow_call *call)
{
  const flow_attributes *a = call->attributes;
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(call->op);
  double rate = optimizer_scalar(&call->inputs[layout->rate]);
  flow_update_scalars u = { .rate = rate, .decay = a->optimizer.weight_decay * rate, .momentum = a->optimizer.momentum,
                            .beta_1 = a->optimizer.beta_1, .beta_2 = a->optimizer.beta_2, .rho = a->optimizer.rho,
                            .epsilon = a->optimizer.epsilon };
  if (layout->corrected_moments == 0) return u;
  u.rate = corrected_rate(layout->corrected_moments, rate, u.beta_1, u.beta_2, optimizer_scalar(&call->inputs[layout->iterations]) + 1);
  return u;
}

/* Which slots the attributes ask for. */
static inline flow_update_form form_of(const flow_call *call)
{
  const char *names[FLOW_MAX_SLOT_KINDS];
  const flow_attributes *a = call->attributes;
  return (flow_update_form){ .slots = flow_optimizer_layout_of(call->op)->names(a, names), .nesterov = a->optimizer.nesterov,
                             .centered = a->optimizer.centered };
}

/* A call as the float32 variants see it. */
typedef struct update {
  int                 op;
  flow_update_form    form;
  flow_update_scalars scalars;
  float *w, *slots[FLOW_MAX_SLOT_KINDS]; /* where the new ones go */
  ptrdiff_t before;                      /* floats from there to the old ones; 0: they are in the same place */
} update;

static inline update describe_update(const flow_call *call)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(call->op);
  update u = { .op = call->op, .form = form_of(call), .scalars = scalars_of(call), .w = call->inputs[OPTIMIZER_W].data };
  for (int s = 0; s < u.form.slots; s++) u.slots[s] = call->inputs[layout->slots[s]].data;
  if (!call->shard || !call->shard->moved) return u;
  u.before = -(ptrdiff_t)(call->shard->moved / (int64_t)sizeof(float));
  u.w -= u.before;
  for (int s = 0; s < u.form.slots; s++) u.slots[s] -= u.before;
  return u;
}

/* Updates elements [first, first + n), whose gradients are g[0] to g[n - 1]. */
#define update_range FLOW_ISA_NAME(optimizer_update_range)
void update_range(const update *u, int64_t first, int64_t n, const float *g);

/* ---- ranges between products --------------------------------------------------------------------------------------------- */

/* Elements of the weight, which all other ranges have, too. */
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

/* The elements before product i and after the one before it (i = products: those after the last) have gradients in
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
