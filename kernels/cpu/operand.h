/* operand.h: elements of operands of float32 or float64 as doubles, for plain variants, which serve both. i counts elements of a contiguous
 * operand; nothing is checked. */
#ifndef FLOW_CPU_OPERAND_H
#define FLOW_CPU_OPERAND_H

#include "kernels.h"

static inline double operand_get(const flow_operand *x, int64_t i)
{
  return x->dtype == FLOW_FLOAT64 ? ((const double *)x->data)[i] : (double)((const float *)x->data)[i];
}

static inline void operand_put(const flow_operand *x, int64_t i, double value)
{
  if (x->dtype == FLOW_FLOAT64) ((double *)x->data)[i] = value;
  else ((float *)x->data)[i] = (float)value;
}

#endif
