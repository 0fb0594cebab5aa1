/* gradients.h: from ops to their gradient rules (ops/gradients.h). */
#ifndef FLOW_AUTODIFF_GRADIENTS_H
#define FLOW_AUTODIFF_GRADIENTS_H

#include "ops/gradients.h"

/* The gradient rule of an op; NULL: the op is not differentiable, and its inputs get no gradient. gradient_table.c */
flow_gradient_rule flow_gradient_of(int op);

#endif
