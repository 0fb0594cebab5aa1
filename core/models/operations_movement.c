/* operations_movement.c: operations of keras.ops that move elements: they are put together of a few ops that move, so that bits stay. Axes
 * and positions count from 0 here, negative ones from the end. A dimension of the batch is negative in shapes: a multiple of its rows. */
#include "models/operations.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

#define E (&call->e)
#define X (call->operands[0])

/* Limits for numbers in files, far above any use: memory is taken in proportion. */
enum { COPIES_MOST = 1 << 16, CLASSES_MOST = 1 << 24 };

/* The value if it is a whole number from 0 to `most`, else -1. */
static int64_t whole(const flow_json *value, int64_t most)
{
  return flow_json_is_number(value) && value->number >= 0 && value->number <= (double)most ? (int64_t)value->number : -1;
}

/* ---- the few ops --------------------------------------------------------------------------------------------------------- */

/* x in the shape `dims`, one of which may be INT64_MIN: it follows from the others. Borrowed from the call's expression, as all results
 * here; NULL after a failure, which the expression keeps, so that calls can be nested without checks between them. */
static flow_tensor *reshaped(flow_operation_call *call, flow_tensor *x, int rank, const int64_t *dims)
{
  if (rank > FLOW_MAX_RANK)
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "a tensor has at most %d dimensions, got %d", FLOW_MAX_RANK, rank);
  flow_attributes attributes = { .shape = { .rank = rank } };
  for (int i = 0; i < rank; i++) attributes.shape.dims[i] = dims[i];
  return flow_express(E, FLOW_OP_reshape, x, NULL, NULL, &attributes);
}

/* A new axis of size 1 at `axis`, from 0 to the rank. */
static flow_tensor *with_axis(flow_operation_call *call, flow_tensor *x, int axis)
{
  int64_t dims[FLOW_MAX_RANK + 1];
  if (!x) return NULL;
  for (int i = 0; i <= x->rank; i++) dims[i] = i < axis ? x->shape[i] : i == axis ? 1 : x->shape[i - 1];
  return reshaped(call, x, x->rank + 1, dims);
}

/* All elements in one dimension, in row-major order. */
static flow_tensor *flat(flow_operation_call *call, flow_tensor *x) { return reshaped(call, x, 1, (int64_t[]){ INT64_MIN }); }

/* x with its axes in another order: axis i of the result is axis axes[i] of x. axes has x->rank entries, each axis once; the op checks
 * them. */
static flow_tensor *permuted(flow_operation_call *call, flow_tensor *x, const int *axes)
{
  if (!x) return NULL;
  flow_attributes attributes = { .transpose = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) attributes.transpose.axes[i] = axes[i];
  return flow_express(E, FLOW_OP_transpose, x, NULL, NULL, &attributes);
}

/* INT64_MAX / 2 as the end of the other axes: the slice op cuts it at the size, also one that is not known yet. Elements `first` to `end` -
 * 1 of one axis, all of the others. */
flow_tensor *flow_operation_part(flow_operation_call *call, flow_tensor *x, int axis, int64_t first, int64_t end)
{
  if (!x) return NULL;
  flow_attributes attributes = { .slice = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) {
    attributes.slice.begin[i] = i == axis ? first : 0;
    attributes.slice.end[i] = i == axis ? end : INT64_MAX / 2;
    attributes.slice.step[i] = 1;
  }
  return flow_express(E, FLOW_OP_slice, x, NULL, NULL, &attributes);
}

/* `count` tensors one after the other along an axis, from 0. NULL entries, of operands that failed, end in NULL. */
static flow_tensor *joined(flow_operation_call *call, flow_tensor *const *list, int count, int axis)
{
  flow_tensor *result = NULL;
  flow_attributes attributes = { .axis = { .axis = axis } };
  flow_express_all(E, FLOW_OP_concat, list, count, &attributes, &result);
  return call->e.status == FLOW_OK ? result : NULL;
}

/* `count` copies of x joined along an axis: one concat that reads x `count` times. count -1 fails: it is what whole() returns for an
 * invalid number. */
static flow_tensor *copies(flow_operation_call *call, flow_tensor *x, int64_t count, int axis)
{
  void *block;
  if (!x) return NULL;
  if (count == 0) return flow_operation_part(call, x, axis, 0, 0);
  if (count < 0 || count > COPIES_MOST)
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "the number of repetitions must be from 0 to %d", COPIES_MOST);
  flow_status status = flow_alloc(sizeof x * (size_t)count, &block);
  if (status != FLOW_OK) return flow_express_keep(E, status, NULL);
  flow_tensor **list = block;
  for (int64_t i = 0; i < count; i++) list[i] = x;
  flow_tensor *result = joined(call, list, (int)count, axis);
  flow_free(block);
  return result;
}

/* A tensor of a value in `dtype` and shape `dims`, of x's rank. In a trace the scalar becomes a constant of the trace first. A size of the
 * batch stays symbolic: the scalar is broadcast when the plan runs. */
static flow_tensor *filled(flow_operation_call *call, const flow_tensor *x, const int64_t *dims, double value, int dtype)
{
  flow_tensor *scalar = NULL, *stand_in = NULL;
  flow_attributes attributes = { .shape = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) attributes.shape.dims[i] = dims[i];
  if (call->e.status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_new(dtype, 0, NULL, &scalar);
  if (status == FLOW_OK) status = flow_tensor_fill(scalar, value);
  scalar = flow_express_keep(E, status, scalar);
  if (scalar && flow_tensor_is_symbolic(x)) {
    status = flow_trace_constant(call->e.context, scalar, &stand_in);
    scalar = flow_express_keep(E, status, stand_in);
  }
  return flow_express(E, FLOW_OP_broadcast_to, scalar, NULL, NULL, &attributes);
}

/* The length of an axis, which must be known. */
static int64_t length(flow_operation_call *call, const flow_tensor *x, int axis)
{
  if (x->shape[axis] >= 0) return x->shape[axis];
  flow_operation_fail(call, FLOW_UNSUPPORTED, "axis %d is that of the batch, whose size is not known", axis);
  return 0;
}

/* The elements of an axis at `positions`, int32 numbers from 0. The op gather takes rows of the first axis, so that another axis is brought
 * to the front first; the axes of `positions` then go where that axis was, as numpy.take has them. */
static flow_tensor *taken(flow_operation_call *call, flow_tensor *x, int axis, flow_tensor *positions)
{
  int order[FLOW_MAX_RANK], back[FLOW_MAX_RANK], at = 0;
  if (!x || !positions) return NULL;
  if (positions->rank + x->rank - 1 > FLOW_MAX_RANK)
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "the result has more than %d dimensions", FLOW_MAX_RANK);
  order[0] = axis;
  for (int i = 0, k = 1; i < x->rank; i++)
    if (i != axis) order[k++] = i;
  flow_tensor *table = axis == 0 ? x : permuted(call, x, order);
  flow_tensor *result = flow_express(E, FLOW_OP_gather, table, positions, NULL, NULL);
  if (axis == 0) return result;
  for (int i = 0; i < axis; i++) back[at++] = positions->rank + i;
  for (int i = 0; i < positions->rank; i++) back[at++] = i;
  for (int i = axis; i < x->rank - 1; i++) back[at++] = positions->rank + i;
  return permuted(call, result, back);
}

/* `count` positions of an axis, first, first + step ..., those beyond the ends mirrored there: skip = 1, the end occurs
 * once; 0, twice. Each position is mirrored at most once at each end, which pad_axis makes sure of. */
static flow_tensor *positions_of(flow_operation_call *call, int64_t count, int64_t first, int step, int64_t n, int skip)
{
  flow_tensor *positions = NULL;
  if (call->e.status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_new(FLOW_INT32, 1, &count, &positions);
  for (int64_t i = 0; i < count && status == FLOW_OK; i++) {
    int64_t position = first + i * step;
    if (position < 0) position = -position - 1 + skip;
    if (position >= n) position = 2 * n - 1 - skip - position;
    ((int32_t *)flow_tensor_elements(positions))[i] = (int32_t)position;
  }
  return flow_express_keep(E, status, positions);
}

/* ---- rules ------------------------------------------------------------------------------------------------------------------ */

/* Rules: each reads its options from the call's config under Keras' names, and gives a tensor that the expression owns. NULL: the call has
 * failed, with the operation's name and what is not possible; a rule with several results puts them into call->outputs instead. */
flow_tensor *flow_operation_concatenate(flow_operation_call *call)
{
  return joined(call, call->operands, call->count, flow_operation_axis_option(call, X->rank, -1));
}

/* The operands are replaced by themselves with one more axis; the call is not used again. */
flow_tensor *flow_operation_stack(flow_operation_call *call)
{
  int axis = flow_operation_axis_option(call, X->rank + 1, 0);
  for (int i = 0; i < call->count; i++) call->operands[i] = with_axis(call, call->operands[i], axis);
  return joined(call, call->operands, call->count, axis);
}

/* A negative size, or null, is the one that follows from the others (INT64_MIN for the op). */
flow_tensor *flow_operation_reshape(flow_operation_call *call)
{
  const flow_json *shape = flow_operation_option(call, "newshape"), *entry;
  int64_t dims[FLOW_MAX_RANK];
  int rank = 0;
  if (!flow_json_is(shape, FLOW_JSON_LIST) || flow_json_count(shape) > FLOW_MAX_RANK)
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "newshape is not a list of at most %d numbers", FLOW_MAX_RANK);
  FLOW_JSON_EACH(entry, shape) {
    if (!flow_json_is_number(entry) && !flow_json_is(entry, FLOW_JSON_NULL))
      return flow_operation_fail(call, FLOW_UNSUPPORTED, "newshape holds something that is not a number");
    dims[rank++] = flow_json_is_number(entry) && entry->number >= 0 && entry->number < 0x1p53 ? (int64_t)entry->number : INT64_MIN;
  }
  return reshaped(call, X, rank, dims);
}

flow_tensor *flow_operation_ravel(flow_operation_call *call) { return flat(call, X); }

/* axes: a list of all axes; without it they are reversed, as in numpy. */
flow_tensor *flow_operation_transpose(flow_operation_call *call)
{
  const flow_json *list = flow_operation_option(call, "axes");
  int axes[FLOW_MAX_RANK];
  if (list && flow_json_count(list) != X->rank)
    return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "%d axes are named for a tensor of rank %d", flow_json_count(list), X->rank);
  for (int i = 0; i < X->rank; i++) axes[i] = list ? flow_operation_axis(call, flow_json_item(list, i), X->rank) : X->rank - 1 - i;
  return permuted(call, X, axes);
}

/* A transposition that leaves all axes but two where they are. */
flow_tensor *flow_operation_swapaxes(flow_operation_call *call)
{
  int axes[FLOW_MAX_RANK];
  int a = flow_operation_axis(call, flow_operation_option(call, "axis1"), X->rank);
  int b = flow_operation_axis(call, flow_operation_option(call, "axis2"), X->rank);
  for (int i = 0; i < X->rank; i++) axes[i] = i == a ? b : i == b ? a : i;
  return permuted(call, X, axes);
}

/* axis: where the new one is in the result, so that the rank itself is allowed; or a list of them. */
flow_tensor *flow_operation_expand_dims(flow_operation_call *call)
{
  const flow_json *axis = flow_operation_option(call, "axis"), *entry;
  if (!flow_json_is(axis, FLOW_JSON_LIST)) return with_axis(call, X, flow_operation_axis(call, axis, X->rank + 1));
  int rank = X->rank, made[FLOW_MAX_RANK] = { 0 };
  int64_t dims[FLOW_MAX_RANK];
  FLOW_JSON_EACH(entry, axis) rank++;
  if (rank > FLOW_MAX_RANK)
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "the result has %d axes, at most %d are possible", rank, FLOW_MAX_RANK);
  FLOW_JSON_EACH(entry, axis) made[flow_operation_axis(call, entry, rank)] = 1;
  for (int i = 0, old = 0; i < rank; i++) {
    if (!made[i] && old == X->rank) return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "an axis is named twice");
    dims[i] = made[i] ? 1 : X->shape[old++];
  }
  return reshaped(call, X, rank, dims);
}

/* Without axes all of size 1 go. A size that is not known is not 1. */
flow_tensor *flow_operation_squeeze(flow_operation_call *call)
{
  const flow_json *axis = flow_operation_option(call, "axis"), *entry;
  int drop[FLOW_MAX_RANK] = { 0 }, rank = 0;
  int64_t dims[FLOW_MAX_RANK];
  if (flow_json_is(axis, FLOW_JSON_LIST)) {
    FLOW_JSON_EACH(entry, axis) drop[flow_operation_axis(call, entry, X->rank)] = 1;
  } else if (axis) {
    drop[flow_operation_axis(call, axis, X->rank)] = 1;
  }
  for (int i = 0; i < X->rank; i++) {
    if (drop[i] && X->shape[i] != 1) return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "axis %d is not of size 1", i);
    if (axis ? !drop[i] : X->shape[i] != 1) dims[rank++] = X->shape[i];
  }
  return reshaped(call, X, rank, dims);
}

flow_tensor *flow_operation_turned(flow_operation_call *call, flow_tensor *x, unsigned turned)
{
  flow_attributes attributes = { .slice = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) {
    int64_t n = turned >> i & 1 ? length(call, x, i) : 0;
    attributes.slice.begin[i] = n > 1 ? n - 1 : 0;
    attributes.slice.end[i] = n > 1 ? -1 : INT64_MAX / 2;
    attributes.slice.step[i] = n > 1 ? -1 : 1;
  }
  return flow_express(E, FLOW_OP_slice, x, NULL, NULL, &attributes);
}

/* Without the option all axes turn. */
flow_tensor *flow_operation_flip(flow_operation_call *call)
{
  const flow_json *axis = flow_operation_option(call, "axis"), *entry;
  unsigned turned = axis ? 0 : (1u << X->rank) - 1;
  if (flow_json_is(axis, FLOW_JSON_LIST)) {
    FLOW_JSON_EACH(entry, axis) turned |= 1u << flow_operation_axis(call, entry, X->rank);
  } else if (axis) {
    turned |= 1u << flow_operation_axis(call, axis, X->rank);
  }
  return flow_operation_turned(call, X, turned);
}

/* Cuts must rise, each from 0 to n. Results go to call->outputs; NULL is returned. A number is that of equal parts; a list has the
 * positions of the cuts, one fewer than parts. */
flow_tensor *flow_operation_split(flow_operation_call *call)
{
  const flow_json *parts = flow_operation_option(call, "indices_or_sections");
  int axis = flow_operation_axis_option(call, X->rank, 0), count = flow_operation_outputs(call->operation, call->config);
  int64_t n = length(call, X, axis), before = 0;
  if (count > FLOW_OPERATION_MOST)
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "it splits in more than %d parts, or in an unknown number", FLOW_OPERATION_MOST);
  int equal = !flow_json_is(parts, FLOW_JSON_LIST);
  if (equal && n % count != 0)
    return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "%.0f elements cannot be split in %d equal parts", (double)n, count);
  for (int i = 0; i < count; i++) {
    const flow_json *cut = flow_json_item(parts, i);
    int64_t end = i == count - 1 ? n : equal ? before + n / count : whole(cut, n);
    if (end < before || end > n) return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "cut %d is out of order or beyond the end", i);
    call->outputs[call->output_count++] = flow_operation_part(call, X, axis, before, end);
    before = end;
  }
  return NULL;
}

/* As many results as the axis has elements, of the FLOW_OPERATION_MOST that the program has values for; the others stay
 * NULL. */
flow_tensor *flow_operation_unstack(flow_operation_call *call)
{
  int axis = flow_operation_axis_option(call, X->rank, 0), rank = 0;
  int64_t n = length(call, X, axis), dims[FLOW_MAX_RANK];
  if (n > FLOW_OPERATION_MOST)
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "it gives %.0f tensors, at most %d are possible", (double)n, FLOW_OPERATION_MOST);
  for (int i = 0; i < X->rank; i++)
    if (i != axis) dims[rank++] = X->shape[i];
  for (int i = 0; i < n; i++)
    call->outputs[call->output_count++] = reshaped(call, flow_operation_part(call, X, axis, i, i + 1), rank, dims);
  return NULL;
}

/* Repeats belong to the last axes; a longer list gives the tensor new axes in front, as numpy.tile. One concat for each axis that is
 * repeated more or less than once. */
flow_tensor *flow_operation_tile(flow_operation_call *call)
{
  const flow_json *repeats = flow_operation_option(call, "repeats");
  int list = flow_json_is(repeats, FLOW_JSON_LIST), count = list ? flow_json_count(repeats) : 1;
  flow_tensor *x = X;
  while (x && x->rank < count) x = with_axis(call, x, 0);
  for (int i = 0; x && i < count; i++) {
    const flow_json *entry = list ? flow_json_item(repeats, i) : repeats;
    if (whole(entry, COPIES_MOST) != 1) x = copies(call, x, whole(entry, COPIES_MOST), x->rank - count + i);
  }
  return x;
}

/* Each element `count` times: copies along a new axis after it, which is then merged with it. Without an axis the elements of the flattened
 * tensor. A size that overflows is refused like a count below 0. */
flow_tensor *flow_operation_repeat(flow_operation_call *call)
{
  const flow_json *axis_given = flow_operation_option(call, "axis"), *repeats = flow_operation_option(call, "repeats");
  int64_t dims[FLOW_MAX_RANK];
  int64_t count = whole(repeats, COPIES_MOST);
  flow_tensor *x = axis_given ? X : flat(call, X);
  int axis = axis_given ? flow_operation_axis(call, axis_given, X->rank) : 0;
  x = count < 0 ? copies(call, x, count, axis) : x;
  if (!x) return NULL;
  memcpy(dims, x->shape, sizeof *dims * (size_t)x->rank);
  if (__builtin_mul_overflow(dims[axis], count, &dims[axis])) return copies(call, x, -1, axis);
  return reshaped(call, copies(call, with_axis(call, x, axis + 1), count, axis + 1), x->rank, dims);
}

/* "reflect" and "symmetric" gather mirrored positions, at most once over (n - 1 or n elements on each side); "constant" joins filled
 * tensors. */
static flow_tensor *pad_axis(flow_operation_call *call, flow_tensor *x, int axis, int64_t before, int64_t after, const char *mode)
{
  int64_t n = length(call, x, axis), dims[FLOW_MAX_RANK];
  if (strcmp(mode, "constant") != 0) {
    int skip = strcmp(mode, "reflect") == 0;
    if ((!skip && strcmp(mode, "symmetric") != 0) || (before > after ? before : after) > n - skip)
      return flow_operation_fail(call, FLOW_UNSUPPORTED, "%.0f elements cannot be padded in mode \"%s\"", (double)n, mode);
    return taken(call, x, axis, positions_of(call, before + n + after, -before, 1, n, skip));
  }
  const flow_json *value = flow_json_member(call->kwargs, "constant_values");
  flow_tensor *list[3];
  int count = 0;
  memcpy(dims, x->shape, sizeof *dims * (size_t)x->rank);
  for (int i = 0; i < 3; i++) {
    dims[axis] = i == 0 ? before : after;
    if (i == 1) list[count++] = x;
    else if (dims[axis] > 0) list[count++] = filled(call, x, dims, flow_json_is_number(value) ? value->number : 0, x->dtype);
  }
  return joined(call, list, count, axis);
}

/* pad_width: { before, after } for each axis, or one pair or number for all. Axes are padded one after the other, so that corners are
 * filled as numpy fills them. */
flow_tensor *flow_operation_pad(flow_operation_call *call)
{
  const flow_json *widths = flow_operation_option(call, "pad_width"), *mode = flow_operation_option(call, "mode");
  flow_tensor *x = X;
  for (int i = 0; x && i < X->rank; i++) {
    const flow_json *pair = flow_json_is(flow_json_item(widths, 0), FLOW_JSON_LIST) ? flow_json_item(widths, i) : widths;
    const flow_json *before = flow_json_is_number(pair) ? pair : flow_json_item(pair, 0);
    const flow_json *after = flow_json_is_number(pair) ? pair : flow_json_item(pair, 1);
    if (!flow_json_is_number(before) || !flow_json_is_number(after) || !(before->number >= 0 && before->number < 0x1p31) ||
        !(after->number >= 0 && after->number < 0x1p31))
      return flow_operation_fail(call, FLOW_UNSUPPORTED, "pad_width is not a list of two numbers from 0 for each axis");
    if (before->number + after->number > 0)
      x = pad_axis(call, x, i, (int64_t)before->number, (int64_t)after->number,
                   flow_json_is(mode, FLOW_JSON_TEXT) ? mode->text : "constant");
  }
  return x;
}

/* The dtype that the config names; an object there is a policy and does not count. */
static int dtype_option(flow_operation_call *call, int initial)
{
  const flow_json *name = flow_operation_option(call, "dtype");
  if (!name || flow_json_is(name, FLOW_JSON_OBJECT)) return initial;
  int dtype = flow_json_is(name, FLOW_JSON_TEXT) ? flow_dtype_find(name->text) : -1;
  if (dtype < 0) flow_operation_fail(call, FLOW_UNSUPPORTED, "its dtype is not known");
  return dtype;
}

/* An index outside of the classes gives a row of zeros. The number of classes is limited, since each trace makes a constant of all classes,
 * with which the indices are compared. Only the last axis is supported, which is Keras' default. */
flow_tensor *flow_operation_one_hot(flow_operation_call *call)
{
  double count = flow_operation_number(call, "num_classes", 0);
  int dtype = dtype_option(call, FLOW_FLOAT32);
  if (flow_operation_axis_option(call, X->rank + 1, -1) != X->rank || !(count >= 1 && count <= CLASSES_MOST))
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "the axis is not the last one, or there are none or too many classes");
  flow_tensor *classes = positions_of(call, (int64_t)count, 0, 1, (int64_t)count, 0);
  flow_tensor *labels = flow_dtype_is_integer(X->dtype) || X->dtype == FLOW_BOOL ? X : flow_express_cast(E, X, FLOW_INT32);
  if (!labels) return NULL;
  flow_tensor *hits = flow_express(E, FLOW_OP_eq, with_axis(call, labels, X->rank), classes, NULL, NULL);
  return hits ? flow_express_cast(E, hits, dtype) : NULL;
}

flow_tensor *flow_operation_zeros_like(flow_operation_call *call) { return filled(call, X, X->shape, 0, dtype_option(call, X->dtype)); }
flow_tensor *flow_operation_ones_like(flow_operation_call *call) { return filled(call, X, X->shape, 1, dtype_option(call, X->dtype)); }

/* The positions are in the file; negative ones count from the end and are refused in the axis of the batch. All are checked here, where the
 * axis has a known size. */
flow_tensor *flow_operation_take(flow_operation_call *call)
{
  const flow_json *axis_given = flow_operation_option(call, "axis");
  flow_tensor *x = axis_given ? X : flat(call, X), *positions = flow_operation_constant(call, flow_json_item(call->args, 1), FLOW_INT32);
  int axis = axis_given ? flow_operation_axis(call, axis_given, X->rank) : 0;
  int64_t count = 1;
  if (!x || !positions || call->e.status != FLOW_OK) return NULL;
  for (int i = 0; i < positions->rank; i++) count *= positions->shape[i];
  int32_t *values = flow_tensor_elements(positions);
  for (int64_t i = 0; i < count; i++) {
    int64_t n = x->shape[axis];
    if (values[i] < 0 && n >= 0) values[i] += (int32_t)n;
    if (values[i] < 0 || (n >= 0 && values[i] >= n))
      return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "a position is out of range: the axis has %.0f elements", (double)n);
  }
  return taken(call, x, axis, positions);
}
