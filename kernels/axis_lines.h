/* axis_lines.h: an operand seen as lines along one axis, for ops such as softmax, cumsum and argsort on any device. */
#ifndef FLOW_AXIS_LINES_H
#define FLOW_AXIS_LINES_H

#include "kernels.h"

/* {outer, n, inner}: count = outer * inner lines of n elements each. The elements of a line are `inner` elements apart. */
typedef struct flow_axis_lines {
  int64_t outer, n, inner, count;
} flow_axis_lines;

/* The lines of x along an axis from -rank to rank - 1; below 0 it counts from the last one. */
static inline flow_axis_lines flow_lines_along(const flow_operand *x, int axis)
{
  if (axis < 0) axis += x->rank;
  flow_axis_lines l = { .outer = 1, .n = x->shape[axis], .inner = 1 };
  for (int i = 0; i < axis; i++) l.outer *= x->shape[i];
  for (int i = axis + 1; i < x->rank; i++) l.inner *= x->shape[i];
  l.count = l.outer * l.inner;
  return l;
}

#endif
