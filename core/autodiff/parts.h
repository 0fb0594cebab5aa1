/* parts.h: gradients of a value that is read in parts, by slices. The gradient of one slice is zero but in a part of the value; T of them,
 * added up, would cost T times the value. They are kept until the value's gradient is asked for: parts along one axis that do not overlap
 * are then joined into one, the others added up. */
#ifndef FLOW_AUTODIFF_PARTS_H
#define FLOW_AUTODIFF_PARTS_H

#include "graph/context.h"

/* The gradient of a slice, which is one part of its input's gradient. Parts are added up when all readers of the input have been seen. */
typedef struct flow_part {
  int             next;          /* part of the same value, -1: none */
  flow_tensor    *gradient;      /* a reference */
  flow_attributes attributes;    /* slice: where it is */
} flow_part;

/* The parts of the values of one pass. */
typedef struct flow_parts {
  flow_part *list;
  int        count, capacity;
  int       *first;              /* [value]: its latest part, -1: none; the caller's memory */
} flow_parts;

/* Keeps a part of `value`; takes over the reference. */
flow_status flow_parts_add(flow_parts *parts, int value, flow_tensor *gradient, const flow_attributes *attributes);
/* Hands the gradients of what was kept for `value` to add(state, value, gradient), which takes over the references: the joined one, or one
 * for each part, in the order in which they came. whole: a tensor of the value's shape. Nothing is kept for the value afterwards. */
flow_status flow_parts_take(flow_parts *parts, flow_context *context, int value, const flow_tensor *whole,
                            flow_status (*add)(void *state, int value, flow_tensor *gradient), void *state);
void        flow_parts_clear(flow_parts *parts);

#endif
