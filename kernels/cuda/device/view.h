/* view.h: an operand as it is seen from the positions of an output: element i of the output, in row-major order, goes with element
 * view_offset(view, i) of the operand. Axes are merged wherever memory allows, operand by operand: an operand laid out like the output is
 * one axis of stride 1, a scalar one of stride 0, and neither needs a division. Others need a division for each axis but the first, which
 * is a multiplication where the output has fewer than 2^31 elements. */
#ifndef FLOW_CUDA_DEVICE_VIEW_H
#define FLOW_CUDA_DEVICE_VIEW_H

#include "cuda/device/body.h"

/* Loops over axes have one turn or two: a copy of their body for each number of them would only be more code. */
#if defined(__CUDACC__)
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

/* x / size = (high half of x * multiplier + x) >> shift for x below 2^31: T. Granlund, P. Montgomery, "Division by invariant integers
 * using multiplication", 1994, figure 4.1. */
typedef struct view_divisor { uint32_t multiplier, shift; } view_divisor;

/* Positions cut into groups of `size`. */
typedef struct view_groups { int64_t size; view_divisor divisor; int32_t narrow, unused; } view_groups;

typedef struct view {
  void        *data;                      /* element 0 of the view, in the device's memory */
  int32_t      dtype, rank;               /* rank: of merged axes, at least 1 */
  int32_t      narrow;                    /* fewer than 2^31 positions */
  int32_t      unused;
  int64_t      size[FLOW_MAX_RANK], stride[FLOW_MAX_RANK];
  view_divisor divisor[FLOW_MAX_RANK];
} view;

BODY uint32_t divide_by(uint32_t x, view_divisor by)
{
  return ((uint32_t)((uint64_t)x * by.multiplier >> 32) + x) >> by.shift;
}

/* The group that position i is in. */
BODY int64_t group_of(const view_groups *g, int64_t i) { return g->narrow ? (int64_t)divide_by((uint32_t)i, g->divisor) : i / g->size; }

BODY int64_t view_offset(const view *v, int64_t i)
{
  int64_t offset = 0;
  if (v->rank == 1) return i * v->stride[0];
  if (v->narrow) {
    uint32_t left = (uint32_t)i;
    ROLLED for (int axis = v->rank - 1; axis > 0; axis--) {
      uint32_t above = divide_by(left, v->divisor[axis]);
      offset += (int64_t)(left - above * (uint32_t)v->size[axis]) * v->stride[axis];
      left = above;
    }
    return offset + (int64_t)left * v->stride[0];
  }
  ROLLED for (int axis = v->rank - 1; axis > 0; axis--) {
    int64_t above = i / v->size[axis];
    offset += (i - above * v->size[axis]) * v->stride[axis];
    i = above;
  }
  return offset + i * v->stride[0];
}

#endif
