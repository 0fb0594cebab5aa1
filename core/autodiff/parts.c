/* parts.c: see parts.h. */
#include "autodiff/parts.h"
#include "autodiff/apply.h"

#include <stdlib.h>
#include <string.h>

/* Takes the reference, also after a failure. Parts of one value are a list, the latest first. */
flow_status flow_parts_add(flow_parts *parts, int value, flow_tensor *gradient, const flow_attributes *attributes)
{
  flow_status status = flow_grow(&parts->list, sizeof *parts->list, parts->count + 1, &parts->capacity);
  if (status != FLOW_OK) {
    flow_tensor_release(gradient);
    return status;
  }
  parts->list[parts->count] = (flow_part){ .next = parts->first[value], .gradient = gradient, .attributes = *attributes };
  parts->first[value] = parts->count++;
  return FLOW_OK;
}

/* The table `first` is the caller's and stays. */
void flow_parts_clear(flow_parts *parts)
{
  for (int i = 0; i < parts->count; i++) flow_tensor_release(parts->list[i].gradient);
  flow_free(parts->list);
  parts->list = NULL;
  parts->count = parts->capacity = 0;
}

/* The one axis along which a slice takes a part, in steps of 1, of a known size; -1: there is none, or several. Batches, whose size is
 * not known, are never that axis, but may be taken whole. */
static int axis_of(const flow_attributes *attributes, const flow_tensor *whole)
{
  int axis = -1;
  for (int i = 0; i < whole->rank; i++) {
    int64_t size = whole->shape[i] < 0 ? INT64_MAX / 2 : whole->shape[i];
    if (attributes->slice.step[i] != 1) return -1;
    if (attributes->slice.begin[i] == 0 && attributes->slice.end[i] >= size) continue;
    if (axis >= 0 || whole->shape[i] < 0) return -1;
    axis = i;
  }
  return axis;
}

/* For qsort, of pointers to parts. Compares along the axis that arrange() has left in `next`, whose list is no longer needed then. */
static int by_begin(const void *a, const void *b)
{
  const flow_part *x = *(flow_part *const *)a, *y = *(flow_part *const *)b;
  int axis = x->next;                      /* of sorted parts: their axis */
  int64_t left = x->attributes.slice.begin[axis], right = y->attributes.slice.begin[axis];
  if (left == right) left = x->attributes.slice.end[axis], right = y->attributes.slice.end[axis];      /* what is empty comes first */
  return left < right ? -1 : left > right;
}

/* Sorts the parts along their common axis; -1: they have none, or overlap. What touches does not overlap. */
static int arrange(flow_part **sorted, int count, const flow_tensor *whole)
{
  int axis = axis_of(&sorted[0]->attributes, whole);
  for (int i = 1; i < count && axis >= 0; i++)
    if (axis_of(&sorted[i]->attributes, whole) != axis) return -1;
  if (axis < 0) return -1;
  for (int i = 0; i < count; i++) sorted[i]->next = axis;
  qsort(sorted, (size_t)count, sizeof *sorted, by_begin);
  for (int i = 1; i < count; i++)
    if (sorted[i]->attributes.slice.begin[axis] < sorted[i - 1]->attributes.slice.end[axis]) return -1;
  return axis;
}

/* Zeros of the shape of whole with `length` along `axis`. */
static flow_status zeros(flow_context *context, const flow_tensor *whole, int axis, int64_t length, flow_tensor **out)
{
  flow_attributes shape = { .shape = { .rank = whole->rank } };
  flow_tensor *zero;
  memcpy(shape.shape.dims, whole->shape, sizeof(int64_t) * (size_t)whole->rank);
  shape.shape.dims[axis] = length;
  FLOW_TRY(flow_tensor_scalar(whole->dtype, 0, &zero));
  flow_status status = flow_apply1(context, FLOW_OP_broadcast_to, zero, NULL, NULL, &shape, out);
  flow_tensor_release(zero);
  return status;
}

/* *out: one gradient of sorted parts, with zeros between them: a concatenation along the axis. `at` is the end of what is covered so
 * far. */
static flow_status join(flow_context *context, flow_part *const *sorted, int count, int axis, const flow_tensor *whole, flow_tensor **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (2 * (size_t)count + 1), &block));
  flow_tensor **pieces = block;
  flow_status status = FLOW_OK;
  int pieces_count = 0;
  int64_t at = 0;
  for (int i = 0; i <= count && status == FLOW_OK; i++) {
    const int64_t begin = i < count ? sorted[i]->attributes.slice.begin[axis] : whole->shape[axis];
    if (begin > at) status = zeros(context, whole, axis, begin - at, &pieces[pieces_count]);
    if (status != FLOW_OK) break;
    pieces_count += begin > at;
    if (i == count) break;
    pieces[pieces_count++] = flow_tensor_retain(sorted[i]->gradient);
    at = begin + sorted[i]->gradient->shape[axis];
  }
  const flow_attributes attributes = { .axis = { .axis = axis } };
  if (status == FLOW_OK) status = flow_apply(context, FLOW_OP_concat, pieces, pieces_count, &attributes, out);
  for (int i = 0; i < pieces_count; i++) flow_tensor_release(pieces[i]);
  flow_free(pieces);
  return status;
}

/* Parts come out of their list from the latest to the first, so that `ordered` is filled from its end: sums are made in the order in
 * which parts came, which makes them reproducible. add() may fail; the other parts are released then, too. */
flow_status flow_parts_take(flow_parts *parts, flow_context *context, int value, const flow_tensor *whole,
                            flow_status (*add)(void *state, int value, flow_tensor *gradient), void *state)
{
  int count = 0;
  for (int i = parts->first[value]; i >= 0; i = parts->list[i].next) count++;
  if (count == 0) return FLOW_OK;
  void *block;
  FLOW_TRY(flow_alloc(2 * sizeof(flow_part *) * (size_t)count, &block));
  flow_part **ordered = block, **sorted = ordered + count;
  for (int i = parts->first[value], k = count; i >= 0; i = parts->list[i].next) ordered[--k] = &parts->list[i];
  parts->first[value] = -1;
  memcpy(sorted, ordered, sizeof(flow_part *) * (size_t)count);
  flow_tensor *gradient;
  flow_status status = FLOW_OK;
  const int axis = count > 1 ? arrange(sorted, count, whole) : -1;
  if (axis >= 0) {
    status = join(context, sorted, count, axis, whole, &gradient);
    if (status == FLOW_OK) status = add(state, value, gradient);
  }
  for (int i = 0; i < count && axis < 0 && status == FLOW_OK; i++) {
    flow_attributes attributes = ordered[i]->attributes;
    memcpy(attributes.slice.dims, whole->shape, sizeof(int64_t) * (size_t)whole->rank);
    status = flow_apply1(context, FLOW_OP_slice_gradient, ordered[i]->gradient, NULL, NULL, &attributes, &gradient);
    if (status == FLOW_OK) status = add(state, value, gradient);
  }
  for (int i = 0; i < count; i++) {
    flow_tensor_release(ordered[i]->gradient);
    ordered[i]->gradient = NULL;
  }
  flow_free(block);
  return status;
}
