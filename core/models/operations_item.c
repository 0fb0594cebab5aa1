/* operations_item.c: the operation x[key], whose key is positions, slices and an ellipsis as Python has them: they count from 0, negative
 * ones from the end, and a slice leaves its end out. */
#include "models/operations.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

#define E (&call->e)
#define X (call->operands[0])

/* One end of a slice of n elements, n < 0: not known, that goes by `step`. 0 with the call failed where the value says nothing that can be
 * known. initial: what a missing end stands for. An end beyond the axis is cut at it, as Python does: of a slice that goes back at its last
 * element and before its first. */
static int64_t slice_end(flow_operation_call *call, const flow_json *value, int64_t n, int64_t step, int64_t initial)
{
  if (!value || flow_json_is(value, FLOW_JSON_NULL)) return initial;
  double at = flow_json_is_number(value) ? value->number : (double)NAN; /* a file may hold NaN itself */
  double least = step < 0 ? -1 : 0, most = n < 0 ? 0x1p62 : step < 0 ? (double)n - 1 : (double)n;
  if (at < 0 && n >= 0) at = at + (double)n < 0 ? least : at + (double)n;
  if (!(at >= least)) {
    flow_operation_fail(call, FLOW_UNSUPPORTED, "a slice counts from the end of the batch, or by something that is not a number");
    return 0;
  }
  return at > most ? (int64_t)most : (int64_t)at;
}

/* Where the ellipsis is among the entries of a list; `count` if there is none. */
static int ellipsis_in(const flow_json *list, int count)
{
  for (int i = 0; i < count; i++) {
    const char *class_name = flow_json_member_text(flow_json_item(list, i), "class_name");
    if (class_name && strcmp(class_name, "__ellipsis__") == 0) return i;
  }
  return count;
}

/* What the key says of an axis: its entry, or NULL of axes that an ellipsis stands for or that are not named. ellipsis: see
 * ellipsis_in. */
static const flow_json *entry_of_axis(const flow_json *key, int count, int ellipsis, int axis, int rank)
{
  if (!flow_json_is(key, FLOW_JSON_LIST)) return axis == 0 ? key : NULL;
  if (axis >= ellipsis) axis = axis - rank + count > ellipsis ? axis - rank + count : count;
  return axis < count ? flow_json_item(key, axis) : NULL;
}

/* The key as Keras writes it: a number drops its axis, a slice object keeps it. Axes that are not named stay whole. The axis of the
 * batch takes only slices that count from its start. */
flow_tensor *flow_operation_item(flow_operation_call *call)
{
  const flow_json *key = flow_json_item(call->args, 1);
  int list = flow_json_is(key, FLOW_JSON_LIST), count = list ? flow_json_count(key) : 1, rank = 0;
  int ellipsis = list ? ellipsis_in(key, count) : count;
  int64_t dims[FLOW_MAX_RANK];
  int dropped[FLOW_MAX_RANK] = { 0 };
  flow_attributes attributes = { .slice = { .rank = X->rank } };
  if (count - (ellipsis < count) > X->rank)
    return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "%d positions for a tensor of rank %d", count, X->rank);
  for (int i = 0; i < X->rank; i++) {
    const flow_json *entry = entry_of_axis(key, count, ellipsis, i, X->rank), *config = flow_json_member(entry, "config");
    int64_t n = X->shape[i], all = n < 0 ? INT64_MAX / 2 : n;
    if (flow_json_is_number(entry)) {
      double at = entry->number < 0 && n >= 0 ? entry->number + (double)n : entry->number;
      if (!(at >= 0 && at < (double)n))
        return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "position %.0f of axis %d is out of range, or in the batch", entry->number,
                                   i);
      attributes.slice.begin[i] = (int64_t)at;
      attributes.slice.end[i] = (int64_t)at + 1;
      attributes.slice.step[i] = 1;
      dropped[i] = 1;
      continue;
    }
    if (entry && !flow_json_is(config, FLOW_JSON_OBJECT))
      return flow_operation_fail(call, FLOW_UNSUPPORTED, "it takes a part of a tensor in a way that is not supported");
    const flow_json *step = flow_json_member(config, "step");
    double given = flow_json_is_number(step) ? step->number : 1;
    int64_t by = given >= -INT32_MAX && given <= INT32_MAX ? (int64_t)given : 0;
    if (by == 0 || (by < 0 && n < 0))
      return flow_operation_fail(call, FLOW_UNSUPPORTED, "the step of a slice is 0, or goes back along the batch");
    if (by < 0 && n == 0) by = 1; /* nothing to turn */
    attributes.slice.step[i] = by;
    attributes.slice.begin[i] = slice_end(call, flow_json_member(config, "start"), n, by, by < 0 ? n - 1 : 0);
    attributes.slice.end[i] = slice_end(call, flow_json_member(config, "stop"), n, by, by < 0 ? -1 : all);
    if (by < 0 && attributes.slice.begin[i] < 0) attributes.slice.begin[i] = 0, attributes.slice.end[i] = 0; /* before the first */
    if (by > 0 && attributes.slice.end[i] < attributes.slice.begin[i]) attributes.slice.end[i] = attributes.slice.begin[i];
  }
  flow_tensor *x = flow_express(E, FLOW_OP_slice, X, NULL, NULL, &attributes);
  if (!x) return NULL;
  for (int i = 0; i < x->rank; i++)
    if (!dropped[i]) dims[rank++] = x->shape[i];
  return rank == x->rank ? x : flow_express_reshape(E, x, rank, dims);
}
