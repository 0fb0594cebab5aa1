/* optimizers.h: what the optimizers do to flat parameters, their slots and gradients. Formulas: optimizer_formulas.inc; weight decay,
 * w -= w weight_decay learning_rate, comes first.
 *
 * Gradients are in memory, or are products x^T g of a layer's input x {k, m} and what came back to it, g {k, n}, that are summed here, tile
 * by tile, and never written; with many rows k a library makes them, in memory. x and g may be of 16 bits. Either is a segment of the
 * parameters with blocks of threads of its own. The learning rate and the number of iterations are read on the device: a recorded step is
 * repeated with others.
 *
 * Parameters that a step reads as 16-bit floats have copies of that dtype, each at its own place, which are written with them. */
#ifndef FLOW_CUDA_OPS_OPTIMIZERS_H
#define FLOW_CUDA_OPS_OPTIMIZERS_H

#include "cuda/runtime/fault.h"
#include "cuda/device/numbers.h"
#include "cuda/device/view.h"
#include "optimizer_formulas.h"

#define RULE(E, name) RULE_##name,
typedef enum update_rule { FLOW_UPDATES(RULE, ) UPDATE_RULES } update_rule;
#undef RULE

enum {
  UPDATE_SEGMENTS = 9, /* four products and what is before, between and after them */
  UPDATE_COPIES = 256, /* of 16 bits, that an update writes, too */
  UPDATE_FOURS = 4,    /* that a thread of a segment in memory updates, one after the other */
  PRODUCT_RUN = 256,   /* products that are added up before their sum is added to others */
  PRODUCT_AHEAD = 4,   /* rows of both factors that a thread asks for before it uses the first */
  UPDATE_BLOCKS = 3    /* that fit on a multiprocessor together, by their registers */
};

/* What is written with the `count` parameters from `first` on: as many 16-bit floats. */
typedef struct update_copy {
  int64_t first, count;
  uint16_t *to;
} update_copy;

/* `count` parameters from `first` on, made by blocks first_block and up, of `blocks` in all. k < 0: gradients in memory from `g` on.
 * Else x^T g. */
typedef struct update_segment {
  int64_t     first_block, first, count, k, m, n;
  const void *x, *g;
  int         x_dtype, g_dtype, x_together, g_together, w_together;
  int         w_floats;              /* w_together, of float32, the slots, too */
  int copies, copies_end;            /* those of its parameters: copy[copies] and on */
} update_segment;

typedef struct optimizer_arguments {
  void          *w, *slots[FLOW_UPDATE_SLOTS];
  const void    *rate, *iterations;  /* scalars; iterations may be NULL */
  const void    *guard;              /* a scalar: 0 lets nothing be written; NULL: there is none */
  const flow_device_fault *fault;
  double         momentum, beta_1, beta_2, epsilon, rho, weight_decay;
  int            w_dtype, slot_dtypes[FLOW_UPDATE_SLOTS], rate_dtype, iterations_dtype, guard_dtype;
  flow_update_form form;
  int            corrected_moments, segment_count;
  int64_t        blocks, started;    /* a block that is started does every one of `started`, so that few compute the rate */
  update_segment segments[UPDATE_SEGMENTS];
  update_copy copy[UPDATE_COPIES]; /* in the order of the parameters */
  int copy_count, copy_dtype;
} optimizer_arguments;

#define UPDATE_ARGUMENTS(E, name) \
  typedef optimizer_arguments name##_update_float32_arguments, name##_update_half_floats_arguments, name##_update_other_arguments;
FLOW_UPDATES(UPDATE_ARGUMENTS, )
#undef UPDATE_ARGUMENTS

/* Whether the update writes: the step was not refused, and the guard lets it through. */
BODY int is_let_through(const optimizer_arguments *a)
{
  return !is_refused(a->fault) && (!a->guard || load_double(a->guard_dtype, a->guard, 0) != 0);
}

/* The last copy of a segment, of those that it has, that begins at parameter i or before; the first one if none does. */
BODY const update_copy *find_copy(const optimizer_arguments *a, const update_segment *s, int64_t i)
{
  int low = s->copies, high = s->copies_end;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (a->copy[middle].first <= i) low = middle;
    else high = middle;
  }
  return &a->copy[low];
}

/* Writes what the `valid` parameters from i on became to their copies, where they have any. */
BODY void copy_four(const optimizer_arguments *a, const update_segment *s, int64_t i, int valid, const float w[4])
{
  if (s->copies == s->copies_end) return;
  const update_copy *c = find_copy(a, s, i);
  uint16_t *to = c->to + (i - c->first);
  if (valid == 4 && i >= c->first && i + 4 <= c->first + c->count && (uintptr_t)to % sizeof(four_half_floats) == 0) {
    store_four_half_floats(to, a->copy_dtype, 0, 4, 1, w);
    return;
  }
  ROLLED for (int k = 0; k < valid; k++)
  {
    float value = k == 0 ? w[0] : k == 1 ? w[1] : k == 2 ? w[2] : w[3]; /* w[k] would be in memory, not in registers */
    c = find_copy(a, s, i + k);
    if (i + k >= c->first && i + k < c->first + c->count) store_half(c->to, a->copy_dtype, i + k - c->first, value);
  }
}

#define BODIES "cuda/ops/optimizer/optimizer_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_half_floats.h"
#include "cuda/device/for_other.h"
#undef BODIES

#define UPDATE_KERNELS(BLOCK, name) BLOCK(name##_update_float32, 2) BLOCK(name##_update_half_floats, 2) BLOCK(name##_update_other, 2)
#define OPTIMIZER_KERNELS(ELEMENT, BLOCK) FLOW_UPDATES(UPDATE_KERNELS, BLOCK)

#endif
