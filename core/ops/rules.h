/* rules.h: the rules that ops.def names, declared from there, and what rules share. Internal to core/ops.
 *
 * The rules are in ops/rules, a file for each family of ops: which shapes and dtypes go in and come out, which rows a row of the result
 * needs, and what flows back (gradients.h, expression.h). What they share is in shape.c and expression.c.
 *
 * A shape rule turns input signatures into output signatures or explains why it cannot. It sees neither data nor rows:
 * a dimension -k means k x rows, where rows is the batch size of a run. A rule carries such dimensions along and never
 * guesses a number for them. Inputs come as flow_apply prepared them (counts within the record's arity, casts done);
 * rules check dtypes and shapes all the same, since a plan is only as sound as its signatures. */
#ifndef FLOW_OPS_RULES_H
#define FLOW_OPS_RULES_H

#include "ops/op.h"

/* reshape: this dimension follows from the others. slice: an end at or beyond FLOW_SLICE_ALL is the end of the axis. */
#define FLOW_DIM_INFER INT64_MIN
#define FLOW_SLICE_ALL (INT64_MAX / 2)

/* ---- the rules: a file of ops/rules for each family ------------------------------------------------------------------ */

typedef flow_status flow_shape_function(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                        flow_signature *outputs);
typedef flow_batch_kind flow_kind_function(const flow_attributes *attributes, const flow_signature *inputs, int input_count);

#define FLOW_OP(name, inputs, outputs, kind, flags, shape, gradient, kind_rule, doc) \
  flow_shape_function flow_shape_##shape;                                                                                     \
  flow_kind_function flow_kind_##kind_rule;
#include "ops/ops.def"
#undef FLOW_OP

/* ---- what shape rules share: shape.c --------------------------------------------------------------------------------- */

/* Sets the thread's error to "<op>: <message>" and returns FLOW_INVALID_ARGUMENT. */
flow_status flow_rule_fail(int op, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* count x rows^power elements; FLOW_INVALID_ARGUMENT when they could not be addressed. */
typedef struct flow_extent { int64_t count; int power; } flow_extent;
flow_status flow_rule_extent(int op, int rank, const int64_t *dims, flow_extent *out);

/* A rank and dims that a caller gave as attributes: rank 0..FLOW_MAX_RANK, dims not FLOW_DIM_INFER, size addressable. */
flow_status flow_rule_given_shape(int op, int dtype, int rank, const int64_t *dims, flow_signature *out);

/* -rank..rank-1 to 0..rank-1; the message counts axes from 1. A scalar has no axis: it fails. */
flow_status flow_rule_axis(int op, int axis, const flow_signature *x, int *out);

/* Shapes broadcast as in NumPy; -k meets -k or 1 only. Sets rank and dims of *out, which may be a or b. */
flow_status flow_rule_broadcast(int op, const flow_signature *a, const flow_signature *b, flow_signature *out);

/* What an input has to be. what: names it in the message, as "the input" or "w"; layout: what its axes are, as "{inputs, units}". */
flow_status flow_rule_float(int op, const char *what, const flow_signature *x);
flow_status flow_rule_same_dtype(int op, const char *what, int dtype, const flow_signature *x);
flow_status flow_rule_rank(int op, const char *what, const flow_signature *x, int rank, const char *layout);
/* The dims of x are `dims`; message names both. */
flow_status flow_rule_dims(int op, const char *what, const flow_signature *x, int rank, const int64_t *dims);

/* The dims from axis `from` on are numbers, not multiples of rows. */
flow_status flow_rule_known(int op, const char *what, const flow_signature *x, int from);
/* An activation that kernels fuse. */
flow_status flow_rule_activation(int op, int activation);

/* Reduced axes as a bit mask, axis i is bit i; no axes means all of them. Duplicates and axes out of range fail. */
flow_status flow_rule_reduced(int op, const flow_attributes *attributes, const flow_signature *x, unsigned *mask);
/* The same for checked attributes: cannot fail. */
unsigned flow_reduced_axes(const flow_attributes *attributes, int rank);

/* Length of begin:end:step on an axis of `dim` elements (end clipped): begin and end from 0, step from 1. */
int64_t flow_slice_length(int64_t dim, int64_t begin, int64_t end, int64_t step);

#endif
