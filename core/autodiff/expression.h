/* expression.h: formulas (ops/expression.h) of rooms that have a context:
 *
 *   flow_expression e = flow_expression_of(context);
 *   flow_tensor *y = e_mul(&e, x, e_sigmoid(&e, x));
 *   return flow_expression_take(&e, y, out);                    releases the rest */
#ifndef FLOW_AUTODIFF_EXPRESSION_H
#define FLOW_AUTODIFF_EXPRESSION_H

#include "ops/expression.h"

extern const flow_applier flow_applying; /* by flow_apply: apply.c */

/* An expression whose ops run at once, or are recorded if the context traces. */
static inline flow_expression flow_expression_of(flow_context *context)
{
  return (flow_expression){ .applier = &flow_applying, .context = context };
}

#endif
