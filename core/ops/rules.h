/* rules.h: the rules that ops.def names, and what rules share. Internal to core/ops.
 *
 * A shape rule turns input signatures into output signatures or explains why it cannot. It sees neither data nor rows:
 * a dimension -k means k x rows, where rows is the batch size of a run. A rule carries such dimensions along and never
 * guesses a number for them. Inputs come as flow_apply prepared them (counts within the record's arity, casts done);
 * rules check dtypes and shapes all the same, since a plan is only as sound as its signatures.
 *
 * A gradient rule writes one step of reverse differentiation as calls of ops (expression.h), so that it holds in eager
 * mode, in a trace, and can be differentiated again. */
#ifndef FLOW_OPS_RULES_H
#define FLOW_OPS_RULES_H

#include "ops/op.h"

/* reshape: this dimension follows from the others. slice: an end at or beyond FLOW_SLICE_ALL is the end of the axis. */
#define FLOW_DIM_INFER INT64_MIN
#define FLOW_SLICE_ALL (INT64_MAX / 2)

/* ---- shape rules: shape_elementwise.c, shape_reduce.c, shape_movement.c, shape_network.c --------------------------- */

typedef flow_status flow_shape_function(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                        flow_signature *outputs);

flow_shape_function flow_shape_same, flow_shape_predicate, flow_shape_cast, flow_shape_casts, flow_shape_turn_filters, flow_shape_broadcast, flow_shape_compare,
  flow_shape_fused, flow_shape_where, flow_shape_broadcast_to, flow_shape_fill, flow_shape_random, flow_shape_scalar,
  flow_shape_all_gather, flow_shape_assign;
flow_shape_function flow_shape_reduce, flow_shape_reduce_bool, flow_shape_argmax, flow_shape_element_count;
flow_shape_function flow_shape_reshape, flow_shape_transpose, flow_shape_concat, flow_shape_slice, flow_shape_slice_gradient,
  flow_shape_pack, flow_shape_gather, flow_shape_gather_gradient;
flow_shape_function flow_shape_matmul, flow_shape_dense, flow_shape_convolution, flow_shape_convolution_gradient,
  flow_shape_convolution_gradient_relu,
  flow_shape_max_pool, flow_shape_max_pool_gradient, flow_shape_average_pool, flow_shape_average_pool_gradient,
  flow_shape_batch_norm, flow_shape_batch_norm_gradient, flow_shape_softmax,
  flow_shape_sparse_cross_entropy, flow_shape_sparse_cross_entropy_gradient, flow_shape_optimizer, flow_shape_schedule;

/* shape_image.c */
flow_shape_function flow_shape_resize, flow_shape_resize_gradient, flow_shape_sample_image, flow_shape_sample_uniform;

/* ---- gradient rules: gradient_elementwise.c, gradient_reduce_movement.c, gradient_network.c ------------------------ */

typedef flow_status flow_gradient_function(flow_gradient_step *step);

flow_gradient_function flow_gradient_neg, flow_gradient_abs, flow_gradient_square, flow_gradient_relu, flow_gradient_exp,
  flow_gradient_expm1, flow_gradient_log, flow_gradient_log1p, flow_gradient_sqrt, flow_gradient_rsqrt, flow_gradient_reciprocal,
  flow_gradient_sin, flow_gradient_cos, flow_gradient_tanh, flow_gradient_sigmoid, flow_gradient_erf, flow_gradient_softplus,
  flow_gradient_cast, flow_gradient_copy, flow_gradient_all_reduce;
flow_gradient_function flow_gradient_add, flow_gradient_sub, flow_gradient_mul, flow_gradient_div, flow_gradient_divide_no_nan,
  flow_gradient_pow, flow_gradient_mod, flow_gradient_maximum, flow_gradient_minimum, flow_gradient_relu_gradient,
  flow_gradient_where, flow_gradient_dropout;
flow_gradient_function flow_gradient_broadcast_to, flow_gradient_sum, flow_gradient_prod, flow_gradient_max, flow_gradient_min,
  flow_gradient_reshape, flow_gradient_transpose, flow_gradient_concat, flow_gradient_slice, flow_gradient_slice_gradient,
  flow_gradient_pack, flow_gradient_gather, flow_gradient_gather_gradient;
flow_gradient_function flow_gradient_matmul, flow_gradient_dense, flow_gradient_convolution, flow_gradient_convolution_gradient,
  flow_gradient_max_pool, flow_gradient_average_pool, flow_gradient_average_pool_gradient, flow_gradient_batch_norm,
  flow_gradient_softmax, flow_gradient_softmax_gradient,
  flow_gradient_log_softmax, flow_gradient_sparse_cross_entropy, flow_gradient_sparse_cross_entropy_gradient,
  flow_gradient_unsupported;
flow_gradient_function flow_gradient_resize, flow_gradient_resize_gradient, flow_gradient_sample_image;     /* gradient_image.c */

/* ---- kind rules: kind.c --------------------------------------------------------------------------------------------- */

typedef flow_batch_kind flow_kind_function(const flow_attributes *attributes, const flow_signature *inputs, int input_count);

flow_kind_function flow_kind_reduce_sum, flow_kind_reduce, flow_kind_axis, flow_kind_reshape, flow_kind_transpose, flow_kind_slice;

/* ---- what shape rules share: shape.c --------------------------------------------------------------------------------- */

/* FLOW_INVALID_ARGUMENT with "<op>: <message>". */
flow_status flow_rule_fail(int op, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* count x rows^power elements; FLOW_INVALID_ARGUMENT when they could not be addressed. */
typedef struct flow_extent { int64_t count; int power; } flow_extent;
flow_status flow_rule_extent(int op, int rank, const int64_t *dims, flow_extent *out);

/* A rank and dims that a caller gave as attributes: rank 0..FLOW_MAX_RANK, dims not FLOW_DIM_INFER, size addressable. */
flow_status flow_rule_given_shape(int op, int dtype, int rank, const int64_t *dims, flow_signature *out);

/* -rank..rank-1 to 0..rank-1. */
flow_status flow_rule_axis(int op, int axis, const flow_signature *x, int *out);

/* Shapes broadcast as in NumPy; -k meets -k or 1 only. Sets rank and dims of *out, which may be a or b. */
flow_status flow_rule_broadcast(int op, const flow_signature *a, const flow_signature *b, flow_signature *out);

flow_status flow_rule_float(int op, const char *what, const flow_signature *x);
flow_status flow_rule_same_dtype(int op, const char *what, int dtype, const flow_signature *x);
flow_status flow_rule_rank(int op, const char *what, const flow_signature *x, int rank, const char *layout);
/* The dims of x are `dims`; message names both. */
flow_status flow_rule_dims(int op, const char *what, const flow_signature *x, int rank, const int64_t *dims);

/* Reduced axes as a bit mask; no axes means all of them. Duplicates and axes out of range fail. */
flow_status flow_rule_reduced(int op, const flow_attributes *attributes, const flow_signature *x, unsigned *mask);
/* The same for checked attributes: cannot fail. */
unsigned flow_reduced_axes(const flow_attributes *attributes, int rank);

/* Length of begin:end:step on an axis of `dim` elements (end clipped). */
int64_t flow_slice_length(int64_t dim, int64_t begin, int64_t end, int64_t step);

#endif
