/* movement.c: rules of ops that only move or repeat elements: broadcast_to, reshape, transpose, concat, slice, pack. Sizes are checked
 * before they are multiplied (flow_rule_extent), so that kernels may compute with them.
 *
 * A dimension -k of a trace is k times the rows of a run (ops/rules.h). Most rules here are about it: what may become of rows that are
 * not counted yet, and whether an op may run on a part of a batch (batch kinds). Gradients move g back to where elements came from, or
 * add up where one element went to several places. */
#include <string.h>

#include "ops/expression.h"
#include "ops/rules.h"
#include "tensor/axis.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* x repeated to shape.dims, which may have more axes in front; a dimension stays, or grows from 1. Rows stay rows: -k meets the same -k. */
flow_status flow_shape_broadcast_to(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                    flow_signature *outputs)
{
  (void)input_count;
  flow_signature target;
  FLOW_TRY(flow_rule_given_shape(op, inputs[0].dtype, attributes->shape.rank, attributes->shape.dims, &target));
  int missing = target.rank - inputs[0].rank;
  int fits = missing >= 0;
  for (int i = 0; fits && i < inputs[0].rank; i++) {
    int64_t dim = inputs[0].dims[i];
    fits = dim == 1 || dim == target.dims[missing + i];
  }
  if (!fits) {
    return flow_rule_fail(op, "shape %s cannot be repeated to %s: dimensions, last to first, must be equal or 1",
                          flow_shape_text(inputs[0].rank, inputs[0].dims), flow_shape_text(target.rank, target.dims));
  }
  outputs[0] = target;
  return FLOW_OK;
}

/* out->dims[at]: what the given ones leave of the input's count x rows^power. One more power of rows than the given ones have makes it a
 * multiple of the rows; a difference of two has no name. Nothing can be inferred beside a given 0. have: of the input; given: of the
 * dimensions that the caller named. */
static flow_status infer_dimension(int op, const flow_signature *x, flow_extent have, flow_extent given, int at, flow_signature *out)
{
  int power = have.power - given.power;
  if (power < 0 || power > 1 || given.count == 0 || have.count % given.count != 0) {
    out->dims[at] = -1; /* shown as None */
    return flow_rule_fail(op, "shape %s does not divide into %s", flow_shape_text(x->rank, x->dims), flow_shape_text(out->rank, out->dims));
  }
  out->dims[at] = power == 1 ? -(have.count / given.count) : have.count / given.count;
  return FLOW_OK;
}

/* {-1, 26, 26, 32} as {infer, 21632} is {-1, 21632}; {-1, 4, 8} as {infer, 8} is {-4, 8}. One dimension at most is FLOW_DIM_INFER; count
 * and power of the rows must be the same before and after. */
flow_status flow_shape_reshape(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                               flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *x = &inputs[0];
  flow_signature target = { .dtype = x->dtype, .rank = attributes->shape.rank };
  if (target.rank < 0 || target.rank > FLOW_MAX_RANK) {
    return flow_rule_fail(op, "the shape asked for has %d dimensions, 0 to %d are possible", target.rank, FLOW_MAX_RANK);
  }
  int at = -1, given_rank = 0;
  int64_t given_dims[FLOW_MAX_RANK];
  for (int i = 0; i < target.rank; i++) {
    target.dims[i] = attributes->shape.dims[i];
    if (target.dims[i] != FLOW_DIM_INFER) {
      given_dims[given_rank++] = target.dims[i];
    } else if (at < 0) {
      at = i;
    } else {
      return flow_rule_fail(op, "dimensions %d and %d are both to be inferred, at most one can", at + 1, i + 1);
    }
  }
  flow_extent have, given;
  FLOW_TRY(flow_rule_extent(op, x->rank, x->dims, &have));
  FLOW_TRY(flow_rule_extent(op, given_rank, given_dims, &given));
  if (at >= 0) {
    FLOW_TRY(infer_dimension(op, x, have, given, at, &target));
  } else if (have.count != given.count || (have.power != given.power && have.count != 0)) {
    const char *reason = have.power > given.power   ? "; the number of rows is not known while tracing; an Input with a batch_size knows it"
                         : have.power < given.power ? "; only a shape with rows can be given a dimension in rows"
                                                    : "";
    return flow_rule_fail(op, "shape %s does not have the elements of %s%s", flow_shape_text(x->rank, x->dims),
                          flow_shape_text(target.rank, target.dims), reason);
  }
  outputs[0] = target;
  return FLOW_OK;
}

/* The attributes name every axis once, from 0: callers have turned negative ones round. */
flow_status flow_shape_transpose(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                 flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *x = &inputs[0];
  if (attributes->transpose.rank != x->rank) {
    return flow_rule_fail(op, "%d axes given for shape %s, expected all %d", attributes->transpose.rank, flow_shape_text(x->rank, x->dims),
                          x->rank);
  }
  unsigned seen = 0;
  outputs[0] = *x;
  for (int i = 0; i < x->rank; i++) {
    int axis = attributes->transpose.axes[i];
    if (axis < 0 || axis >= x->rank || (seen & 1u << axis)) {
      return flow_rule_fail(op, "axis %d is out of range or given twice; expected a permutation of the %d axes, counted from 1",
                            flow_axis_number(axis), x->rank);
    }
    seen |= 1u << axis;
    outputs[0].dims[i] = x->dims[axis];
  }
  return FLOW_OK;
}

/* Along the batch axis only tensors with rows can be joined to tensors with rows: {-1, 3} and {-2, 3} give {-3, 3}. attributes->axis.axis
 * may count from the end. All other dimensions must be equal, symbolic ones included. */
flow_status flow_shape_concat(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  int axis;
  flow_signature joined = inputs[0];
  if (joined.rank == 0) return flow_rule_fail(op, "scalars cannot be joined; reshape them to {1} first");
  FLOW_TRY(flow_rule_axis(op, attributes->axis.axis, &joined, &axis));
  for (int i = 1; i < input_count; i++) {
    const flow_signature *x = &inputs[i];
    FLOW_TRY(flow_rule_same_dtype(op, "an input", joined.dtype, x));
    int fits = x->rank == joined.rank;
    for (int d = 0; fits && d < x->rank; d++) fits = d == axis || x->dims[d] == joined.dims[d];
    if (!fits) {
      return flow_rule_fail(op, "inputs 1 and %d have shapes %s and %s; they may differ along axis %d only", i + 1,
                            flow_shape_text(inputs[0].rank, inputs[0].dims), flow_shape_text(x->rank, x->dims), flow_axis_number(axis));
    }
    if ((x->dims[axis] < 0) != (joined.dims[axis] < 0)) {
      return flow_rule_fail(op, "shapes %s and %s cannot be joined along the batch: the number of rows is not known while tracing",
                            flow_shape_text(inputs[0].rank, inputs[0].dims), flow_shape_text(x->rank, x->dims));
    }
    if (__builtin_add_overflow(joined.dims[axis], x->dims[axis], &joined.dims[axis]) || joined.dims[axis] == FLOW_DIM_INFER) {
      return flow_rule_fail(op, "the result would have more elements than can be addressed");
    }
  }
  flow_extent extent;
  FLOW_TRY(flow_rule_extent(op, joined.rank, joined.dims, &extent));
  outputs[0] = joined;
  return FLOW_OK;
}

/* What slice takes out of shape `whole`; serves slice and, for the gradient it gets, slice_gradient. begin and end count from 0; an end
 * beyond the axis means its end. A step below 0 goes back from `begin`, which is on the axis, to the element after `end`, which is -1
 * where the first one is taken, too. Fills in the rank and the dimensions of *out, not its dtype. */
static flow_status sliced_dims(int op, const flow_attributes *attributes, const flow_signature *whole, flow_signature *out)
{
  if (attributes->slice.rank != whole->rank) {
    return flow_rule_fail(op, "ranges for %d axes given for shape %s, expected all %d", attributes->slice.rank,
                          flow_shape_text(whole->rank, whole->dims), whole->rank);
  }
  out->rank = whole->rank;
  for (int i = 0; i < whole->rank; i++) {
    int64_t begin = attributes->slice.begin[i], end = attributes->slice.end[i], step = attributes->slice.step[i];
    if (begin < 0 || end < (step < 0 ? -1 : 0) || step == 0 || step < -INT32_MAX || step > INT32_MAX) {
      return flow_rule_fail(op,
                            "axis %d: begin %lld, end %lld, step %lld; expected begin and end from 0 (of steps below 0 an end from -1), "
                            "a step other than 0 of at most 2^31 - 1",
                            flow_axis_number(i), (long long)begin, (long long)end, (long long)step);
    }
    if (step < 0 && whole->dims[i] >= 0 && begin > end && begin >= whole->dims[i]) {
      return flow_rule_fail(op, "axis %d of %s has no element %lld, counted from 0, to go back from", flow_axis_number(i),
                            flow_shape_text(whole->rank, whole->dims), (long long)begin);
    }
    if (whole->dims[i] >= 0) {
      out->dims[i] = flow_slice_length(whole->dims[i], begin, end, step);
    } else if (begin == 0 && step == 1 && end >= FLOW_SLICE_ALL) {
      out->dims[i] = whole->dims[i];
    } else {
      return flow_rule_fail(op, "the batch axis of %s cannot be cut: the number of rows is not known while tracing",
                            flow_shape_text(whole->rank, whole->dims));
    }
  }
  return FLOW_OK;
}

/* x[begin:end:step] of every axis. Rows of a batch can be kept as they are only: their number is not known while tracing. */
flow_status flow_shape_slice(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  (void)input_count;
  outputs[0].dtype = inputs[0].dtype;
  return sliced_dims(op, attributes, &inputs[0], &outputs[0]);
}

/* g, which is what slice takes out of shape slice.dims: that shape. */
flow_status flow_shape_slice_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                      flow_signature *outputs)
{
  (void)input_count;
  flow_signature whole, taken;
  FLOW_TRY(flow_rule_given_shape(op, inputs[0].dtype, attributes->slice.rank, attributes->slice.dims, &whole));
  FLOW_TRY(sliced_dims(op, attributes, &whole, &taken));
  FLOW_TRY(flow_rule_dims(op, "the gradient", &inputs[0], taken.rank, taken.dims));
  outputs[0] = whole;
  return FLOW_OK;
}

/* All inputs flattened, one after the other, as one axis of a size that is known: the flat gradient of an optimizer's run. */
flow_status flow_shape_pack(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  (void)attributes;
  int64_t total = 0;
  for (int i = 0; i < input_count; i++) {
    flow_extent extent;
    FLOW_TRY(flow_rule_same_dtype(op, "an input", inputs[0].dtype, &inputs[i]));
    FLOW_TRY(flow_rule_extent(op, inputs[i].rank, inputs[i].dims, &extent));
    if (extent.power > 0) {
      return flow_rule_fail(op, "shape %s depends on the number of rows, expected fixed sizes",
                            flow_shape_text(inputs[i].rank, inputs[i].dims));
    }
    if (__builtin_add_overflow(total, extent.count, &total)) {
      return flow_rule_fail(op, "the result would have more elements than can be addressed");
    }
  }
  flow_extent sum;
  FLOW_TRY(flow_rule_extent(op, 1, &total, &sum));
  outputs[0] = (flow_signature){ .dtype = inputs[0].dtype, .rank = 1, .dims = { total } };
  return FLOW_OK;
}

/* ---- batch kinds ------------------------------------------------------------------------------------------------- */

/* Rows that lay along axis 0 stay there unless the new axis 0 is a plain number or another axis takes them. Batch kinds: FLOW_MAP: the op
 * may run on a part of a batch's rows by itself; FLOW_WHOLE: it needs all of them. */
flow_batch_kind flow_kind_reshape(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  if (inputs[0].rank == 0 || inputs[0].dims[0] >= 0) return FLOW_MAP;
  if (attributes->shape.rank == 0 || attributes->shape.dims[0] >= 0) return FLOW_WHOLE;
  for (int i = 1; i < attributes->shape.rank; i++) {
    if (attributes->shape.dims[i] < 0 && attributes->shape.dims[i] != FLOW_DIM_INFER) return FLOW_WHOLE;
  }
  return FLOW_MAP;
}

/* Rows stay rows if axis 0 stays where it is. */
flow_batch_kind flow_kind_transpose(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  return inputs[0].rank > 0 && attributes->transpose.axes[0] != 0 ? FLOW_WHOLE : FLOW_MAP;
}

/* Serves slice (the sliced tensor is the input) and slice_gradient (it is the output, slice.dims): the longer is meant. Of slice,
 * slice.dims may be 0. The rows of a trace cannot be cut (sliced_dims), so that there only the answer MAP is possible. */
flow_batch_kind flow_kind_slice(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  if (inputs[0].rank == 0) return FLOW_MAP;
  int64_t length = inputs[0].dims[0], whole = attributes->slice.dims[0];
  if (whole > length) length = whole;
  int64_t end = attributes->slice.end[0];
  int to_end = length < 0 ? end >= FLOW_SLICE_ALL : end >= length;
  return attributes->slice.begin[0] == 0 && attributes->slice.step[0] == 1 && to_end ? FLOW_MAP : FLOW_WHOLE;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* What was repeated gets the sum over its copies. */
flow_status flow_gradient_broadcast_to(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *dx = flow_express_sum_to(&e, step->output_gradients[0], step->inputs[0]);
  return flow_expression_take(&e, dx, &step->input_gradients[0]);
}

/* The elements are the same, so g takes the shape of x. */
flow_status flow_gradient_reshape(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *dx = flow_express_reshape_like(&e, step->output_gradients[0], step->inputs[0]);
  return flow_expression_take(&e, dx, &step->input_gradients[0]);
}

/* g with the axes permuted the other way round. */
flow_status flow_gradient_transpose(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  int rank = step->attributes->transpose.rank;
  flow_attributes inverse = { .transpose = { .rank = rank } };
  for (int i = 0; i < rank; i++) inverse.transpose.axes[step->attributes->transpose.axes[i]] = i;
  return flow_gradient_by(step, 0, FLOW_OP_transpose, step->output_gradients[0], NULL, NULL, &inverse);
}

/* Inputs joined along the rows of a batch, each a multiple of them: g is {sum of the multiples, rows, elements of a row}, in which each
 * input has a place that does not depend on the number of rows. Fails where a size that is not the rows' is unknown, or where one input has
 * a fixed number of rows: its place in g then depends on a number that only a run knows. */
static flow_status gradient_of_joined_rows(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  flow_attributes units = { .shape = { .rank = 3, .dims = { 0, -1, 1 } } }, part = { .slice = { .rank = 3 } };
  for (int i = 1; i < g->rank; i++) {
    if (g->shape[i] < 0)
      return flow_fail(FLOW_UNSUPPORTED, "concat: the gradient of joining batches needs all sizes but the number of rows; found %s",
                       flow_shape_text(g->rank, g->shape));
    units.shape.dims[2] *= g->shape[i]; /* cannot overflow, since g exists */
  }
  for (int i = 0; i < step->input_count; i++) {
    if (step->inputs[i]->shape[0] >= 0)
      return flow_fail(FLOW_UNSUPPORTED,
                       "concat: the gradient of joining %lld rows and those of a batch needs their number, which is not "
                       "known while tracing; join along another axis, or run it eagerly",
                       (long long)step->inputs[i]->shape[0]);
    units.shape.dims[0] -= step->inputs[i]->shape[0];
  }
  for (int i = 0; i < 3; i++) {
    part.slice.end[i] = INT64_MAX;
    part.slice.step[i] = 1;
  }
  int64_t at = 0;
  for (int i = 0; i < step->input_count; i++) {
    part.slice.begin[0] = at;
    at -= step->inputs[i]->shape[0];
    part.slice.end[0] = at;
    if (!step->needed[i]) continue;
    flow_expression e = flow_gradient_expression(step);
    flow_tensor *all = flow_express(&e, FLOW_OP_reshape, g, NULL, NULL, &units);
    flow_tensor *own = all ? flow_express(&e, FLOW_OP_slice, all, NULL, NULL, &part) : NULL;
    FLOW_TRY(flow_expression_take(&e, own ? flow_express_reshape_like(&e, own, step->inputs[i]) : NULL, &step->input_gradients[i]));
  }
  return FLOW_OK;
}

/* Each input gets its range of g along the axis. INT64_MAX is an end that slice cuts off, for the axes that are not divided. An input of
 * unknown rows is alone along its axis here, and gets all of g. */
flow_status flow_gradient_concat(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL) return FLOW_OK;
  int rank = g->rank, axis = step->attributes->axis.axis;
  if (axis < 0) axis += rank;
  if (g->shape[axis] < 0 && step->input_count > 1) return gradient_of_joined_rows(step);
  flow_attributes part = { .slice = { .rank = rank } };
  for (int i = 0; i < rank; i++) {
    part.slice.end[i] = INT64_MAX;
    part.slice.step[i] = 1;
  }
  int64_t at = 0;
  for (int i = 0; i < step->input_count; i++) {
    int64_t length = step->inputs[i]->shape[axis];
    if (length >= 0) {
      part.slice.begin[axis] = at;
      part.slice.end[axis] = at + length;
      at += length;
    }
    if (!step->needed[i]) continue;
    FLOW_TRY(flow_gradient_by(step, i, FLOW_OP_slice, g, NULL, NULL, &part));
  }
  return FLOW_OK;
}

/* slice.dims may be unset for slice; its gradient needs them. */
static flow_attributes slice_of(const flow_attributes *attributes, const flow_tensor *whole)
{
  flow_attributes result = *attributes;
  memcpy(result.slice.dims, whole->shape, sizeof(int64_t) * (size_t)whole->rank);
  return result;
}

/* Nothing is computed yet: see parts.h. The gradient is zero outside of what was taken: writing those zeros for each of many slices of one
 * tensor would cost the size of the whole each time, so parts are collected and added at once. */
flow_status flow_gradient_slice(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  step->input_gradients[0] = flow_tensor_retain(step->output_gradients[0]);
  step->is_part = 1;
  return FLOW_OK;
}

/* slice_gradient puts g into zeros, so what comes back is the same slice. */
flow_status flow_gradient_slice_gradient(flow_gradient_step *step)
{
  if (step->output_gradients[0] == NULL || !step->needed[0]) return FLOW_OK;
  flow_attributes attributes = slice_of(step->attributes, step->outputs[0]);
  return flow_gradient_by(step, 0, FLOW_OP_slice, step->output_gradients[0], NULL, NULL, &attributes);
}

/* Inputs are one after the other in g: sizes are known, since the rule of pack refuses rows. */
flow_status flow_gradient_pack(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL) return FLOW_OK;
  int64_t at = 0;
  for (int i = 0; i < step->input_count; i++) {
    flow_tensor *x = step->inputs[i];
    flow_attributes part = { .slice = { .rank = 1, .begin = { at }, .step = { 1 } } };
    at += flow_shape_size(x->rank, x->shape);
    part.slice.end[0] = at;
    if (!step->needed[i]) continue;
    flow_expression e = flow_gradient_expression(step);
    flow_tensor *dx = flow_express_reshape_like(&e, flow_express(&e, FLOW_OP_slice, g, NULL, NULL, &part), x);
    FLOW_TRY(flow_expression_take(&e, dx, &step->input_gradients[i]));
  }
  return FLOW_OK;
}
