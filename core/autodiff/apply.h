/* core/autodiff: running ops and differentiating them. flow_apply (flow.h) is the single way to run an op: at once on concrete tensors
 * (eager.c), or by appending a node to the open trace; tapes remember either. Uses base, tensor, ops, graph, plan/passes. Called by
 * every room that computes with tensors: layers, train, models, onnx, and Lua through the C API.
 *
 * Reading order: apply.c (one call), eager.c and eager_device.c (running it), expression.h (formulas), autodiff.c (the walk back over a
 * tape, by the rules of core/ops/rules), gradient_loop.c, parts.h, variable_ops.c.
 *
 * A caller runs these functions on its own thread with its own context; a context is for one thread at a time. Tensors that come
 * back are new references unless a comment says that they are borrowed. A function that fails leaves its outputs NULL or unchanged,
 * and has released what it made.
 *
 * apply.h: calls of ops for other rooms. expression.h makes formulas of several ops shorter. */
#ifndef FLOW_AUTODIFF_APPLY_H
#define FLOW_AUTODIFF_APPLY_H

#include "graph/context.h"

/* flow_apply for ops with one output. */
flow_status flow_apply1(flow_context *context, int op, flow_tensor *a, flow_tensor *b, flow_tensor *c,
                        const flow_attributes *attributes, flow_tensor **out);   /* b, c may be NULL */

/* Runs an op on concrete tensors at once; inputs are already cast and checked. eager.c */
flow_status flow_run_eager(flow_context *context, int op, flow_tensor *const *inputs, int input_count,
                           const flow_attributes *attributes, const flow_signature *signatures, flow_tensor **outputs);

/* replica_sums.c: x summed over the replicas of the open trace, or its mean weighted by their rows. New reference, to x itself where there
 * is one replica only, or no trace. */
flow_status flow_sum_over_replicas(flow_context *context, flow_tensor *x, flow_tensor **out);
flow_status flow_mean_over_replicas(flow_context *context, flow_tensor *x, flow_tensor **out);

#endif
