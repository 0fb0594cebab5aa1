/* optimizers.h: what the optimizers do to flat parameters, their slots and gradients. Formulas: optimizer_formulas.inc; weight decay,
 * w -= w weight_decay learning_rate, comes first.
 *
 * Gradients are in memory, or are products x^T g of a layer's input x {k, m} and what came back to it, g {k, n}, that are summed here, tile
 * by tile, and never written; with many rows k a library makes them, in memory. x and g may be of 16 bits. Either is a segment of the
 * parameters with blocks of threads of its own. The learning rate and the number of iterations are read on the device: a recorded step is
 * repeated with others. */
#ifndef FLOW_CUDA_OPS_OPTIMIZERS_H
#define FLOW_CUDA_OPS_OPTIMIZERS_H

#include "cuda/runtime/fault.h"
#include "cuda/device/numbers.h"
#include "optimizer_formulas.h"

#define RULE(E, name) RULE_##name,
typedef enum update_rule { FLOW_UPDATES(RULE, ) UPDATE_RULES } update_rule;
#undef RULE

enum {
  UPDATE_SEGMENTS = 9,               /* four products and what is before, between and after them */
  UPDATE_FOURS    = 4,               /* that a thread of a segment in memory updates, one after the other */
  PRODUCT_RUN     = 256,             /* products that are added up before their sum is added to others */
  PRODUCT_AHEAD   = 4,               /* rows of both factors that a thread asks for before it uses the first */
  UPDATE_BLOCKS   = 3                /* that fit on a multiprocessor together, by their registers */
};

/* `count` parameters from `first` on, made by blocks first_block and up, of `blocks` in all. k < 0: gradients in memory from `g` on.
 * Else x^T g. */
typedef struct update_segment {
  int64_t     first_block, first, count, k, m, n;
  const void *x, *g;
  int         x_dtype, g_dtype, x_together, g_together, w_together;
  int         w_floats;              /* w_together, of float32, the slots, too */
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

#define BODIES "cuda/ops/optimizer/optimizer_bodies.h"
#include "cuda/device/for_float32.h"
#include "cuda/device/for_half_floats.h"
#include "cuda/device/for_other.h"
#undef BODIES

#define UPDATE_KERNELS(BLOCK, name) BLOCK(name##_update_float32, 2) BLOCK(name##_update_half_floats, 2) BLOCK(name##_update_other, 2)
#define OPTIMIZER_KERNELS(ELEMENT, BLOCK) FLOW_UPDATES(UPDATE_KERNELS, BLOCK)

#endif
