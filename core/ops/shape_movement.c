/* shape_movement.c: shape rules of ops that only move elements. */
#include "ops/rules.h"
#include "tensor/axis.h"

/* The inferred dimension is what the given ones leave of the input's count x rows^power. */
static flow_status infer_dimension(int op, const flow_signature *x, flow_extent have, flow_extent given, int at, flow_signature *out)
{
  int power = have.power - given.power;
  if (power < 0 || power > 1 || given.count == 0 || have.count % given.count != 0) {
    out->dims[at] = -1;   /* shown as None */
    return flow_rule_fail(op, "shape %s does not divide into %s", flow_shape_text(x->rank, x->dims),
                          flow_shape_text(out->rank, out->dims));
  }
  out->dims[at] = power == 1 ? -(have.count / given.count) : have.count / given.count;
  return FLOW_OK;
}

/* {-1, 26, 26, 32} as {infer, 21632} is {-1, 21632}; {-1, 4, 8} as {infer, 8} is {-4, 8}. */
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
    const char *reason = have.power > given.power ? "; the number of rows is not known while tracing"
                       : have.power < given.power ? "; only a shape with rows can be given a dimension in rows" : "";
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
    return flow_rule_fail(op, "%d axes given for shape %s, expected all %d", attributes->transpose.rank,
                          flow_shape_text(x->rank, x->dims), x->rank);
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

/* Along the batch axis only tensors with rows can be joined to tensors with rows: {-1, 3} and {-2, 3} give {-3, 3}. */
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

/* What slice takes out of shape `whole`; serves slice and, for the gradient it gets, slice_gradient. */
static flow_status sliced_dims(int op, const flow_attributes *attributes, const flow_signature *whole, flow_signature *out)
{
  if (attributes->slice.rank != whole->rank) {
    return flow_rule_fail(op, "ranges for %d axes given for shape %s, expected all %d", attributes->slice.rank,
                          flow_shape_text(whole->rank, whole->dims), whole->rank);
  }
  out->rank = whole->rank;
  for (int i = 0; i < whole->rank; i++) {
    int64_t begin = attributes->slice.begin[i], end = attributes->slice.end[i], step = attributes->slice.step[i];
    if (begin < 0 || end < 0 || step < 1) {
      return flow_rule_fail(op, "axis %d: begin %lld, end %lld, step %lld; expected begin and end from 0, step from 1", flow_axis_number(i),
                            (long long)begin, (long long)end, (long long)step);
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

flow_status flow_shape_slice(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                             flow_signature *outputs)
{
  (void)input_count;
  outputs[0].dtype = inputs[0].dtype;
  return sliced_dims(op, attributes, &inputs[0], &outputs[0]);
}

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

/* All inputs flattened, one after the other, as one axis of a size that is known. */
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

/* table {n, a, b}, indices {i, j}: {i, j, a, b}. */
static flow_status gathered(int op, const flow_signature *table, const flow_signature *indices, flow_signature *out)
{
  if (!flow_dtype_is_integer(indices->dtype)) {
    return flow_rule_fail(op, "the indices are %s, expected integers", flow_dtype_name(indices->dtype));
  }
  if (table->rank < 1 || table->dims[0] < 0) {
    return flow_rule_fail(op, "the table has shape %s, expected a fixed number of rows", flow_shape_text(table->rank, table->dims));
  }
  if (indices->rank + table->rank - 1 > FLOW_MAX_RANK) {
    return flow_rule_fail(op, "the result would have %d dimensions, at most %d are possible", indices->rank + table->rank - 1,
                          FLOW_MAX_RANK);
  }
  flow_signature result = { .dtype = table->dtype, .rank = indices->rank + table->rank - 1 };
  for (int i = 0; i < indices->rank; i++) result.dims[i] = indices->dims[i];
  for (int i = 1; i < table->rank; i++) result.dims[indices->rank + i - 1] = table->dims[i];
  flow_extent extent;
  FLOW_TRY(flow_rule_extent(op, result.rank, result.dims, &extent));
  *out = result;
  return FLOW_OK;
}

flow_status flow_shape_gather(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)attributes;
  (void)input_count;
  return gathered(op, &inputs[0], &inputs[1], &outputs[0]);
}

/* As gather, with the last axis of the indices added up: the rows of a bag of tokens. float32 only. */
flow_status flow_shape_gather_sum(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  (void)attributes;
  (void)input_count;
  flow_signature rows, first = inputs[1];
  if (inputs[0].dtype != FLOW_FLOAT32) return flow_rule_fail(op, "the table is %s, expected float32", flow_dtype_name(inputs[0].dtype));
  if (first.rank == 0) return flow_rule_fail(op, "the indices are a single number, expected at least one axis");
  FLOW_TRY(gathered(op, &inputs[0], &inputs[1], &rows));
  first.rank--;
  return gathered(op, &inputs[0], &first, &outputs[0]);
}

flow_status flow_shape_gather_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                       flow_signature *outputs)
{
  (void)input_count;
  flow_signature table, taken;
  FLOW_TRY(flow_rule_float(op, "the gradient", &inputs[0]));
  FLOW_TRY(flow_rule_given_shape(op, inputs[0].dtype, attributes->shape.rank, attributes->shape.dims, &table));
  FLOW_TRY(gathered(op, &table, &inputs[1], &taken));
  FLOW_TRY(flow_rule_dims(op, "the gradient", &inputs[0], taken.rank, taken.dims));
  outputs[0] = table;
  return FLOW_OK;
}

/* ---- along one axis: argsort, cumsum, take_along ------------------------------------------------------------------------------ */

/* The dtype stays, also of small integers, whose sums wrap; NumPy widens them. */
flow_status flow_shape_cumsum(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)input_count;
  int axis;
  if (inputs[0].rank == 0) return flow_rule_fail(op, "a single number has no axis; reshape it to {1} first");
  if (inputs[0].dtype == FLOW_BOOL) return flow_rule_fail(op, "the input is bool, expected numbers; cast it first");
  FLOW_TRY(flow_rule_axis(op, attributes->along.axis, &inputs[0], &axis));
  outputs[0] = inputs[0];
  return FLOW_OK;
}

flow_status flow_shape_argsort(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                               flow_signature *outputs)
{
  (void)input_count;
  int axis;
  if (inputs[0].rank == 0) return flow_rule_fail(op, "a single number has no axis; reshape it to {1} first");
  FLOW_TRY(flow_rule_axis(op, attributes->along.axis, &inputs[0], &axis));
  outputs[0] = inputs[0];
  outputs[0].dtype = FLOW_INT64;
  int64_t size = attributes->along.size, n = inputs[0].dims[axis];
  if (size == 0) return FLOW_OK;
  if (size < 0 || size > n)
    return flow_rule_fail(op, "along.size is %lld, expected 0 or at most the elements of axis %d of shape %s", (long long)size, axis + 1,
                          flow_shape_text(inputs[0].rank, inputs[0].dims));
  outputs[0].dims[axis] = size;
  return FLOW_OK;
}

/* x and integer indices have one shape, but along the axis, whose number goes to *axis. */
static flow_status check_indices(int op, const flow_attributes *attributes, const flow_signature *x, const flow_signature *indices,
                                 int *axis)
{
  if (!flow_dtype_is_integer(indices->dtype))
    return flow_rule_fail(op, "the indices are %s, expected integers", flow_dtype_name(indices->dtype));
  if (x->rank == 0) return flow_rule_fail(op, "a single number has no axis; reshape it to {1} first");
  FLOW_TRY(flow_rule_axis(op, attributes->along.axis, x, axis));
  int fits = x->rank == indices->rank;
  for (int i = 0; fits && i < x->rank; i++) fits = i == *axis || x->dims[i] == indices->dims[i];
  if (fits) return FLOW_OK;
  return flow_rule_fail(op, "the indices have shape %s, expected that of the elements, %s, but along axis %d",
                        flow_shape_text(indices->rank, indices->dims), flow_shape_text(x->rank, x->dims), *axis + 1);
}

flow_status flow_shape_take_along(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                  flow_signature *outputs)
{
  (void)input_count;
  int axis;
  FLOW_TRY(check_indices(op, attributes, &inputs[0], &inputs[1], &axis));
  if (inputs[0].dims[axis] < 0 && inputs[0].dims[axis] != inputs[1].dims[axis])
    return flow_rule_fail(op, "the number of rows is not known while tracing, so that rows cannot be taken from %s",
                          flow_shape_text(inputs[0].rank, inputs[0].dims));
  outputs[0] = inputs[1];
  outputs[0].dtype = inputs[0].dtype;
  return FLOW_OK;
}

flow_status flow_shape_take_along_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                           flow_signature *outputs)
{
  (void)input_count;
  int axis;
  flow_extent extent;
  FLOW_TRY(flow_rule_float(op, "the gradient", &inputs[0]));
  FLOW_TRY(check_indices(op, attributes, &inputs[0], &inputs[1], &axis));
  FLOW_TRY(flow_rule_dims(op, "the gradient", &inputs[0], inputs[1].rank, inputs[1].dims));
  outputs[0] = inputs[0];
  outputs[0].dims[axis] = attributes->along.size;
  return flow_rule_extent(op, outputs[0].rank, outputs[0].dims, &extent);
}
