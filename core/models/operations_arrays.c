/* operations_arrays.c: operations of keras.ops along axes that are made of several ops, as those of lua/flow/tensor/composed are: sums and
 * products of what stands before, sorting, triangles, norms. */
#include "models/operations.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

#define E (&call->e)
#define X (call->operands[0])

/* Integers and bools as float32. */
static flow_tensor *as_floats(flow_operation_call *call, flow_tensor *x)
{
  return flow_dtype_is_float(x->dtype) ? x : flow_express_cast(E, x, FLOW_FLOAT32);
}

/* The axis of the config, of x or, where there is none, of x as one line, which it then is. */
static int line_axis(flow_operation_call *call, flow_tensor **x)
{
  int64_t all = INT64_MIN;
  if (flow_operation_option(call, "axis")) return flow_operation_axis_option(call, (*x)->rank, 0);
  *x = flow_express_reshape(E, *x, 1, &all);
  return 0;
}

/* The size of an axis; 0 with the call failed where it is that of the batch, as the ops made here need a number. */
static int64_t known_length(flow_operation_call *call, const flow_tensor *x, int axis)
{
  if (x->shape[axis] >= 0) return x->shape[axis];
  flow_operation_fail(call, FLOW_UNSUPPORTED, "axis %d is that of the batch, whose size is not known", axis);
  return 0;
}

/* Bools as int32, as sums count them. */
static flow_tensor *as_numbers(flow_operation_call *call) { return X->dtype == FLOW_BOOL ? flow_express_cast(E, X, FLOW_INT32) : X; }

/* Of the whole tensor as one line without an axis, as numpy.cumsum. */
static flow_tensor *cumulated_sum(flow_operation_call *call)
{
  flow_tensor *x = as_numbers(call);
  if (!x) return NULL;
  flow_attributes attributes = { .along = { .axis = line_axis(call, &x) } };
  return flow_express(E, FLOW_OP_cumsum, x, NULL, NULL, &attributes);
}

/* By pairs that are 1, 2, 4, ... apart. Hillis and Steele's scan ("Data parallel algorithms", 1986): after the round with distance d
 * each element is the product of the 2 d elements up to it. log2(n) rounds of whole tensors instead of n steps. */
static flow_tensor *cumulated_product(flow_operation_call *call)
{
  flow_tensor *x = as_numbers(call);
  if (!x) return NULL;
  int axis = line_axis(call, &x);
  int64_t n = x ? known_length(call, x, axis) : 0;
  for (int64_t distance = 1; distance < n && x; distance *= 2) {
    flow_tensor *joined = NULL, *list[2] = { flow_operation_part(call, x, axis, 0, distance),
                                               flow_operation_part(call, x, axis, distance, n) };
    flow_attributes attributes = { .axis = { .axis = axis } };
    list[1] = list[1] ? e_mul(E, list[1], flow_operation_part(call, x, axis, 0, n - distance)) : NULL;
    if (call->e.status == FLOW_OK) flow_express_all(E, FLOW_OP_concat, list, 2, &attributes, &joined);
    x = call->e.status == FLOW_OK ? joined : NULL;
  }
  return x;
}

/* The elements in the order of argsort. */
static flow_tensor *sorted(flow_operation_call *call)
{
  flow_tensor *x = X;
  flow_attributes attributes = { .along = { .axis = flow_operation_axis_option(call, x->rank, -1) } };
  return flow_express(E, FLOW_OP_take_along, x, flow_express(E, FLOW_OP_argsort, x, NULL, NULL, &attributes), NULL, &attributes);
}

/* What stands at or below the k-th diagonal, or at and above it. A constant of columns minus rows is compared with k: kept where it is
 * <= k (Tril) or >= k (Triu). */
static flow_tensor *triangle(flow_operation_call *call)
{
  flow_tensor *x = X, *distances = NULL;
  if (x->rank < 2) return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "it takes matrices, got a tensor of rank %d", x->rank);
  int64_t rows = known_length(call, x, x->rank - 2), columns = known_length(call, x, x->rank - 1);
  if (call->e.status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_new(FLOW_INT32, 2, (const int64_t[]){ rows, columns }, &distances);
  for (int64_t i = 0; i < rows * columns && status == FLOW_OK; i++)
    ((int32_t *)flow_tensor_elements(distances))[i] = (int32_t)(i % columns - i / columns);
  distances = flow_express_keep(E, status, distances);
  if (!distances) return NULL;
  flow_tensor *k = flow_operation_scalar(call, distances, flow_operation_number(call, "k", 0));
  flow_tensor *kept = flow_express(E, call->operation->op, distances, k, NULL, NULL);
  return e_where(E, kept, x, flow_operation_scalar(call, x, 0));
}

/* order[place] is the axis that goes there; axes that are not named fill the other places in their order. */
static flow_tensor *move_axes(flow_operation_call *call)
{
  const flow_json *from = flow_operation_option(call, "source"), *to = flow_operation_option(call, "destination");
  int lists = flow_json_is(from, FLOW_JSON_LIST), count = lists ? flow_json_count(from) : 1, rest = 0;
  int order[FLOW_MAX_RANK], moved[FLOW_MAX_RANK] = { 0 };
  flow_attributes attributes = { .transpose = { .rank = X->rank } };
  for (int i = 0; i < FLOW_MAX_RANK; i++) order[i] = -1;
  if (count != (flow_json_is(to, FLOW_JSON_LIST) ? flow_json_count(to) : 1) || lists != flow_json_is(to, FLOW_JSON_LIST))
    return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "source and destination name different numbers of axes");
  for (int i = 0; i < count; i++) {
    int axis = flow_operation_axis(call, lists ? flow_json_item(from, i) : from, X->rank);
    int place = flow_operation_axis(call, lists ? flow_json_item(to, i) : to, X->rank);
    if (call->e.status != FLOW_OK) return NULL;
    if (moved[axis] || order[place] >= 0) return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "an axis is named twice");
    order[place] = axis;
    moved[axis] = 1;
  }
  for (int i = 0; i < X->rank; i++) {
    while (order[i] < 0 && moved[rest]) rest++;
    attributes.transpose.axes[i] = order[i] >= 0 ? order[i] : rest++;
  }
  return flow_express(E, FLOW_OP_transpose, X, NULL, NULL, &attributes);
}

/* a sigmoid(b) for the halves a and b of an axis (Dauphin et al., arXiv:1612.08083). */
static flow_tensor *glu(flow_operation_call *call)
{
  flow_tensor *x = as_floats(call, X);
  if (!x) return NULL;
  int axis = flow_operation_axis_option(call, x->rank, -1);
  int64_t n = known_length(call, x, axis);
  if (n % 2) return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "%.0f elements have no halves", (double)n);
  flow_tensor *gate = flow_operation_part(call, x, axis, n / 2, n);
  return gate ? e_mul(E, flow_operation_part(call, x, axis, 0, n / 2), e_sigmoid(E, gate)) : NULL;
}

/* The axes of the config, one or a list; none: all. */
static flow_attributes reduced_axes(flow_operation_call *call, int rank, int initial, int keepdims)
{
  const flow_json *axis = flow_operation_option(call, "axis"), *entry;
  flow_attributes attributes = { .reduce = { .keepdims = keepdims } };
  if (flow_json_is(axis, FLOW_JSON_LIST) && flow_json_count(axis) <= rank) {
    FLOW_JSON_EACH(entry, axis) attributes.reduce.axes[attributes.reduce.count++] = flow_operation_axis(call, entry, rank);
  } else if (axis || initial < 0) {
    attributes.reduce.count = 1;
    attributes.reduce.axes[0] = flow_operation_axis_option(call, rank, initial);
  }
  return attributes;
}

/* x over its norm along an axis, which counts as epsilon at least. */
static flow_tensor *normalize(flow_operation_call *call)
{
  flow_tensor *x = as_floats(call, X);
  if (!x) return NULL;
  if (flow_operation_number(call, "order", 2) != 2) return flow_operation_fail(call, FLOW_UNSUPPORTED, "only order 2 is supported");
  flow_attributes attributes = reduced_axes(call, x->rank, -1, 1);
  flow_tensor *sum = flow_express(E, FLOW_OP_sum, e_square(E, x), NULL, NULL, &attributes);
  if (!sum) return NULL;
  double least = flow_operation_number(call, "epsilon", 1e-7);
  return e_mul(E, x, e_minimum(E, e_rsqrt(E, sum), flow_operation_scalar(call, x, 1 / least)));
}

/* The root of the sum of squares. */
static flow_tensor *norm(flow_operation_call *call)
{
  const flow_json *order = flow_operation_option(call, "ord");
  if (order && !(flow_json_is_number(order) && order->number == 2 && flow_json_is_number(flow_operation_option(call, "axis"))))
    return flow_operation_fail(call, FLOW_UNSUPPORTED, "only ord 2 of vectors along one axis is supported");
  flow_tensor *x = as_floats(call, X);
  if (!x) return NULL;
  flow_attributes attributes = reduced_axes(call, x->rank, 0, flow_operation_boolean(call, "keepdims", 0));
  flow_tensor *sum = flow_express(E, FLOW_OP_sum, e_square(E, x), NULL, NULL, &attributes);
  return sum ? e_sqrt(E, sum) : NULL;
}

static flow_tensor *flipped(flow_operation_call *call)
{
  int axis = call->operation->op;
  if (axis >= X->rank) return flow_operation_fail(call, FLOW_INVALID_ARGUMENT, "it takes tensors of rank %d or more", axis + 1);
  return flow_operation_turned(call, X, 1u << axis);
}

#define RULE(class, rule, known)             { .class_name = #class, .operands = 1, .run = rule, .options = known }
#define WITH_OP(class, rule, number, known)  { .class_name = #class, .operands = 1, .run = rule, .op = number, .options = known }

static const flow_operation records[] = {
  RULE(Cumsum, cumulated_sum, "axis"), RULE(Cumprod, cumulated_product, "axis"), RULE(Sort, sorted, "axis"),
  WITH_OP(Tril, triangle, FLOW_OP_le, "k"), WITH_OP(Triu, triangle, FLOW_OP_ge, "k"), RULE(Moveaxis, move_axes, "source|destination"),
  RULE(Glu, glu, "axis"), RULE(Normalize, normalize, "axis|order|epsilon"), RULE(Norm, norm, "ord|axis|keepdims"),
  WITH_OP(Flipud, flipped, 0, ""), WITH_OP(Fliplr, flipped, 1, ""),
};

const flow_operation *flow_operation_find_array(const char *class_name)
{
  for (size_t i = 0; i < sizeof records / sizeof *records; i++)
    if (strcmp(records[i].class_name, class_name) == 0) return &records[i];
  return NULL;
}
