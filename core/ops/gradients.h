/* gradients.h: the gradient rules that ops.def names. They are in ops/rules, beside the shape rules; those of loops and the second ones of
 * recurrent cells, which trace, are in core/autodiff. A rule writes one step of reverse differentiation as calls of ops (expression.h), so
 * that it holds in eager mode and in a trace, and can be differentiated again. It does not know which of these it runs in. */
#ifndef FLOW_OPS_GRADIENTS_H
#define FLOW_OPS_GRADIENTS_H

#include "ops/rules.h"

/* One step of reverse differentiation: one call of an op, which a tape or a trace has recorded. All tensors are concrete (eager) or
 * symbolic (trace): rules just call ops. The caller owns all arrays, and the tensors in them; it sets input_gradients to NULL first.
 * After a failure it releases those that a rule has set. */
typedef struct flow_gradient_step {
  const struct flow_applier *applier; /* runs ops for the context: expression.h */
  flow_context *context;
  int op, input_count, output_count;
  const flow_attributes *attributes;    /* of the forward call */
  flow_tensor *const *inputs;           /* [input_count] as the op got them: casts are done */
  flow_tensor *const *outputs;          /* [output_count] what it returned */
  flow_tensor *const *output_gradients; /* NULL where nothing flows back */
  const int *needed;                    /* needed[i]: somebody wants the gradient of input i */
  flow_tensor **input_gradients;        /* the rule's results: new references, NULL = zero. Shape of input i */
  int is_part;                          /* a rule's result, too: the gradient of input 0 is zero except for the slice of the attributes,
                                              * where it is input_gradients[0] (parts.h) */
} flow_gradient_step;
typedef flow_status (*flow_gradient_rule)(flow_gradient_step *step);

typedef flow_status flow_gradient_function(flow_gradient_step *step);
#define FLOW_OP(name, inputs, outputs, kind, flags, shape, gradient, kind_rule, doc) flow_gradient_function flow_gradient_##gradient;
#include "ops/ops.def"
#undef FLOW_OP

/* The rules of lstm and gru where nothing comes back for their histories; core/autodiff/gradient_recurrent.c has the rest. */
flow_gradient_function flow_gradient_lstm_by_op, flow_gradient_gru_by_op;

#endif
