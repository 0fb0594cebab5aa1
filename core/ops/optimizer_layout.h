/* optimizer_layout.h: which input of an optimizer op is what. Inputs 0 and 1 are always the gradient and the parameters, both
 * flat; after the slots is the guard of an update that has one, a float32 scalar: where it is 0, nothing is written. Then come the copies
 * of parameters that the update writes, too (attributes.optimizer.copies): pairs of a variable in the parameters' memory and its 16-bit
 * copy. Fused products (attributes.optimizer.products) come after all others. Shared by the shape rule, the optimizers and the kernels. */
#ifndef FLOW_OPS_OPTIMIZER_LAYOUT_H
#define FLOW_OPS_OPTIMIZER_LAYOUT_H

#include "ops/op.h"

enum { FLOW_MAX_SLOT_KINDS = 3 };
/* Columns of a matrix of float32 parameters whose update workers may divide (core/run/replicas/sharded_update.c): they hand over one of its
 * rows, with the slots', at once. */
enum { FLOW_MOST_SHARDED_COLUMNS = 4096 };

/* Numbers of inputs count from 0. An op has only as many of `slots` as names() says; inputs beyond flow_optimizer_inputs are a guard,
 * copies and products. */
typedef struct flow_optimizer_layout {
  int op;
  int rate, iterations;           /* inputs, scalars: float32 and int64; iterations -1: the op has none */
  int slots[FLOW_MAX_SLOT_KINDS]; /* inputs that the op reads and writes, each as large as the parameters */
  /* Keras' names of the slots that an op with these attributes has, in the order of slots[]; returns how many. */
  int (*names)(const flow_attributes *attributes, const char *names[FLOW_MAX_SLOT_KINDS]);
  int corrected_moments;                       /* whose bias the rate corrects: 0, 1 or 2 */
} flow_optimizer_layout;

/* NULL: the op is not an optimizer. */
const flow_optimizer_layout *flow_optimizer_layout_of(int op);
/* Inputs before the guard, copies and products: with these attributes an op has at least as many. */
int flow_optimizer_inputs(const flow_optimizer_layout *layout, const flow_attributes *attributes);
/* Which of this many inputs is the guard; -1: there is none. */
int flow_optimizer_guard(const flow_optimizer_layout *layout, const flow_attributes *attributes, int input_count);
/* Which of this many inputs is the first variable with a copy, or where it would be. */
int flow_optimizer_first_copy(const flow_attributes *attributes, int input_count);
/* Whether input i of this many is a copy, which is written and not read. */
int flow_optimizer_is_copy(const flow_attributes *attributes, int input_count, int i);
/* Whether an effect, an optimizer or an assignment, that has this many inputs writes input i: parameters, slots and copies. */
int flow_effect_writes(int op, const flow_attributes *attributes, int input_count, int i);

#endif
