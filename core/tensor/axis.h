/* axis.h: axes as arguments give them and as messages name them. C counts axes from 0; users of Lua count from 1, and messages do as they
 * do. */
#ifndef FLOW_TENSOR_AXIS_H
#define FLOW_TENSOR_AXIS_H

#include <limits.h>

/* The number that a message names for an axis counted from 0: -1 stays the last one. */
static inline int flow_axis_number(int axis)
{
  return axis < 0 || axis == INT_MAX ? axis : axis + 1;
}

/* An argument, which is a whole number, as an int; beyond the ends of int it is one of them, since the conversion of such a number would
 * be undefined. No tensor has that axis, so checks refuse it. */
static inline int flow_axis_given(double number)
{
  return number <= INT_MIN ? INT_MIN : number >= INT_MAX ? INT_MAX : (int)number;
}

/* An argument as an axis from 0 of a shape of this rank: a negative one counts from the end. The caller checks that it is within it. */
static inline int flow_axis_of(double number, int rank)
{
  int axis = flow_axis_given(number);
  return axis < 0 ? axis + rank : axis;
}

#endif
