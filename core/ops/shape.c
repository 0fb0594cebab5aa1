/* shape.c: what shape rules share: messages, element counts with a symbolic batch, axes, broadcasting. A dimension below 0 is a multiple of
 * the rows of a batch: -1 is their number, -2 twice that. Rules run both for eager calls, where all sizes are known, and while a trace is
 * made, where a rule must give one answer that holds for every number of rows. op is the number of the op, whose name begins each message;
 * `what` names the operand. */
#include <stdarg.h>

#include "ops/rules.h"
#include "tensor/axis.h"

/* FLOW_INVALID_ARGUMENT with the op's name in front. */
flow_status flow_rule_fail(int op, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  flow_status status = flow_fail_list(FLOW_INVALID_ARGUMENT, NULL, format, arguments);
  va_end(arguments);
  return flow_fail_prefix(status, "%s: ", flow_op(op)->name);
}

/* Checks the product of the sizes before it can overflow, also of a shape that has a 0 in it: the other sizes may be multiplied
 * elsewhere. The power says how often the rows are a factor. */
flow_status flow_rule_extent(int op, int rank, const int64_t *dims, flow_extent *out)
{
  /* The widest element has 8 bytes, and byte offsets are ptrdiff_t. */
  const int64_t most = INT64_MAX / 8;
  flow_extent extent = { 1, 0 };
  int empty = 0;
  for (int i = 0; i < rank; i++) {
    int64_t dim = dims[i];
    if (dim < 0) {
      if (dim < -most) return flow_rule_fail(op, "shape %s has more elements than can be addressed", flow_shape_text(rank, dims));
      extent.power++;
      dim = -dim;
    }
    if (dim == 0) {
      empty = 1;
    } else if (extent.count > most / dim) {
      return flow_rule_fail(op, "shape %s has more elements than can be addressed", flow_shape_text(rank, dims));
    } else {
      extent.count *= dim;
    }
  }
  if (empty) extent.count = 0;
  *out = extent;
  return FLOW_OK;
}

/* For ops whose attributes give the shape of the result. A dimension that is to be inferred has been worked out before, or the op cannot do
 * so. */
flow_status flow_rule_given_shape(int op, int dtype, int rank, const int64_t *dims, flow_signature *out)
{
  if (dtype < 0 || dtype >= FLOW_DTYPE_COUNT)
    return flow_rule_fail(op, "dtype number %d is unknown; the numbers are 0 to %d", dtype, FLOW_DTYPE_COUNT - 1);
  if (rank < 0 || rank > FLOW_MAX_RANK) {
    return flow_rule_fail(op, "the shape asked for has %d dimensions, 0 to %d are possible", rank, FLOW_MAX_RANK);
  }
  for (int i = 0; i < rank; i++) {
    if (dims[i] == FLOW_DIM_INFER) return flow_rule_fail(op, "dimension %d of the shape cannot be inferred here; give a number", i + 1);
  }
  flow_extent extent;
  FLOW_TRY(flow_rule_extent(op, rank, dims, &extent));
  out->dtype = dtype;
  out->rank = rank;
  for (int i = 0; i < rank; i++) out->dims[i] = dims[i];
  return FLOW_OK;
}

/* *out: from 0. Messages count axes from 1, as users of Lua do. */
flow_status flow_rule_axis(int op, int axis, const flow_signature *x, int *out)
{
  if (axis < -x->rank || axis >= x->rank) {
    return flow_rule_fail(op, "axis %d (counted from 1) does not exist in shape %s", flow_axis_number(axis),
                          flow_shape_text(x->rank, x->dims));
  }
  *out = axis < 0 ? axis + x->rank : axis;
  return FLOW_OK;
}

/* A dimension in rows meets the same dimension or 1. A fixed number other than 1 never fits: it might equal the rows of one run and not
 * those of the next. */
flow_status flow_rule_broadcast(int op, const flow_signature *a, const flow_signature *b, flow_signature *out)
{
  int rank = a->rank > b->rank ? a->rank : b->rank;
  int64_t dims[FLOW_MAX_RANK] = { 0 };
  for (int i = 0; i < rank; i++) {
    int ia = i - (rank - a->rank), ib = i - (rank - b->rank);
    int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
    if (da != db && da != 1 && db != 1) {
      return flow_rule_fail(op, "shapes %s and %s do not broadcast: their dimensions, last to first, must be equal or 1%s",
                            flow_shape_text(a->rank, a->dims), flow_shape_text(b->rank, b->dims),
                            da < 0 || db < 0 ? "; the number of rows is not known while tracing" : "");
    }
    dims[i] = da == 1 ? db : da;
  }
  flow_extent extent;
  FLOW_TRY(flow_rule_extent(op, rank, dims, &extent));
  out->rank = rank;
  for (int i = 0; i < rank; i++) out->dims[i] = dims[i];
  return FLOW_OK;
}

/* Fails unless x is of a float dtype. */
flow_status flow_rule_float(int op, const char *what, const flow_signature *x)
{
  if (flow_dtype_is_float(x->dtype)) return FLOW_OK;
  return flow_rule_fail(op, "%s is %s, expected a float; cast it to float32 first", what, flow_dtype_name(x->dtype));
}

/* No operand is cast silently: layers and Lua do that before. */
flow_status flow_rule_same_dtype(int op, const char *what, int dtype, const flow_signature *x)
{
  if (x->dtype == dtype) return FLOW_OK;
  return flow_rule_fail(op, "%s is %s, expected %s; cast it first", what, flow_dtype_name(x->dtype), flow_dtype_name(dtype));
}

/* layout: the axes that are expected, such as "{batch, steps, features}", for the message. */
flow_status flow_rule_rank(int op, const char *what, const flow_signature *x, int rank, const char *layout)
{
  if (x->rank == rank) return FLOW_OK;
  return flow_rule_fail(op, "%s has %d dimension%s %s, expected %d %s", what, x->rank, x->rank == 1 ? "" : "s",
                        flow_shape_text(x->rank, x->dims), rank, layout);
}

/* Symbolic dimensions are compared as numbers: -1 is equal to -1 alone. */
flow_status flow_rule_dims(int op, const char *what, const flow_signature *x, int rank, const int64_t *dims)
{
  if (flow_shape_equal(x->rank, x->dims, rank, dims)) return FLOW_OK;
  return flow_rule_fail(op, "%s has shape %s, expected %s", what, flow_shape_text(x->rank, x->dims), flow_shape_text(rank, dims));
}

/* Fails if a size from axis `from` on depends on the rows. */
flow_status flow_rule_known(int op, const char *what, const flow_signature *x, int from)
{
  for (int i = from; i < x->rank; i++) {
    if (x->dims[i] < 0) {
      return flow_rule_fail(op, "%s %s depends on the number of rows beyond axis 1, expected fixed sizes there", what,
                            flow_shape_text(x->rank, x->dims));
    }
  }
  return FLOW_OK;
}

/* Of ops that have an activation in them. */
flow_status flow_rule_activation(int op, int activation)
{
  if (activation == FLOW_LINEAR || activation == FLOW_RELU) return FLOW_OK;
  return flow_rule_fail(op, "activation number %d cannot be fused, expected FLOW_LINEAR or FLOW_RELU", activation);
}

/* Axes may be counted from either end; a mask of bits makes duplicates visible. *mask: bit i for axis i. No axes given stands for all of
 * them. */
flow_status flow_rule_reduced(int op, const flow_attributes *attributes, const flow_signature *x, unsigned *mask)
{
  int count = attributes->reduce.count;
  if (count < 0 || count > FLOW_MAX_RANK) return flow_rule_fail(op, "%d axes given, at most %d are possible", count, FLOW_MAX_RANK);
  *mask = 0;
  for (int i = 0; i < count; i++) {
    int axis = 0;
    FLOW_TRY(flow_rule_axis(op, attributes->reduce.axes[i], x, &axis));
    if (*mask & 1u << axis) return flow_rule_fail(op, "axis %d (counted from 1) is given twice", flow_axis_number(axis));
    *mask |= 1u << axis;
  }
  if (count == 0) *mask = (1u << x->rank) - 1;
  return FLOW_OK;
}

/* The same for attributes that have passed the rule. */
unsigned flow_reduced_axes(const flow_attributes *attributes, int rank)
{
  if (attributes->reduce.count == 0) return (1u << rank) - 1;
  unsigned mask = 0;
  for (int i = 0; i < attributes->reduce.count; i++) {
    int axis = attributes->reduce.axes[i];
    mask |= 1u << (axis < 0 ? axis + rank : axis);
  }
  return mask;
}

/* How many elements begin, begin + step, ... there are below `end` and `dim`, or, of steps below 0, above `end`. step is not 0. */
int64_t flow_slice_length(int64_t dim, int64_t begin, int64_t end, int64_t step)
{
  if (step < 0) return begin > end ? (begin - end - 1) / -step + 1 : 0;
  if (end > dim) end = dim;
  return begin < end ? (end - begin - 1) / step + 1 : 0;
}
