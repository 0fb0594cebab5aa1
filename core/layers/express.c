/* express.c: see express.h. Every function does nothing after a failure and then gives NULL, so that a formula is written as one nested
 * expression and is checked once, at its end (ops/expression.h). */
#include "layers/express.h"

enum { MOST_OUTPUTS = 4 };

/* Within a policy of 16 bits the value is cast when it is read (flow_variable_read). */
flow_tensor *flow_express_variable(flow_expression *e, flow_variable *variable)
{
  flow_tensor *value = NULL;
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_variable_read(e->context, variable, &value);
  return flow_express_keep(e, status, value);
}

flow_tensor *flow_express_activation(flow_expression *e, const char *activation, flow_tensor *x)
{
  flow_tensor *value = NULL;
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_activate(e->context, activation, x, &value);
  return flow_express_keep(e, status, value);
}

static flow_attributes one_axis(const flow_tensor *x, int axis, int keepdims)
{
  return (flow_attributes){ .reduce = { .count = 1, .keepdims = keepdims, .axes = { axis < 0 ? x->rank + axis : axis } } };
}

flow_tensor *flow_express_sum(flow_expression *e, flow_tensor *x, int axis, int keepdims)
{
  if (e->status != FLOW_OK) return NULL;
  flow_attributes attributes = one_axis(x, axis, keepdims);
  return flow_express(e, FLOW_OP_sum, x, NULL, NULL, &attributes);
}

flow_tensor *flow_express_indices(flow_expression *e, flow_tensor *x)
{
  if (e->status != FLOW_OK || flow_dtype_is_integer(x->dtype)) return x;
  if (flow_dtype_is_float(x->dtype)) x = e_where(e, e_eq(e, x, x), x, flow_express_number(e, x, -__builtin_inf()));
  return flow_express_cast(e, x, FLOW_INT32);
}

/* reduce: the attributes of a reduction, with axes counted from 0. */
flow_tensor *flow_express_mean_over(flow_expression *e, flow_tensor *x, const flow_attributes *reduce)
{
  flow_tensor *mean = NULL;
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_mean(e->context, x, reduce, &mean);
  return flow_express_keep(e, status, mean);
}

/* axis: from 0, or -1 for the last one. The axis is removed. */
flow_tensor *flow_express_mean(flow_expression *e, flow_tensor *x, int axis)
{
  if (e->status != FLOW_OK) return NULL;
  flow_attributes attributes = one_axis(x, axis, 0);
  return flow_express_mean_over(e, x, &attributes);
}

/* rank: at most FLOW_MAX_RANK. dims: sizes, -k for k times the rows of a trace, INT64_MIN for one that the op works out. */
flow_tensor *flow_express_reshape(flow_expression *e, flow_tensor *x, int rank, const int64_t *dims)
{
  flow_attributes attributes = { .shape = { .rank = rank } };
  for (int i = 0; i < rank; i++) attributes.shape.dims[i] = dims[i];
  return flow_express(e, FLOW_OP_reshape, x, NULL, NULL, &attributes);
}

/* flow_tensor_write reads `count` numbers, which is the product of the dims: flow_arguments_set_nested has seen to that. */
flow_tensor *flow_express_numbers(flow_expression *e, const flow_arguments *arguments, const char *name, flow_tensor *like)
{
  const double *values;
  int64_t dims[FLOW_MAX_RANK];
  flow_tensor *tensor = NULL;
  int count = flow_argument_list(arguments, name, &values), rank = flow_argument_dims(arguments, name, dims);
  if (e->status != FLOW_OK) return NULL;
  if (rank == 0) return flow_express_number(e, like, flow_argument_number(arguments, name));
  flow_status status = flow_tensor_new(like->dtype, rank, dims, &tensor);
  if (status == FLOW_OK) status = flow_tensor_write(tensor, values, count);
  return flow_express_keep(e, status, tensor);
}

/* b NULL: the op has one input. */
flow_tensor *flow_express_first(flow_expression *e, int op, flow_tensor *a, flow_tensor *b, const flow_attributes *attributes)
{
  flow_tensor *inputs[2] = { a, b }, *outputs[MOST_OUTPUTS];
  flow_express_all(e, op, inputs, b ? 2 : 1, attributes, outputs);
  return outputs[0];
}

flow_signature flow_signature_of(const flow_tensor *tensor)
{
  flow_signature signature = { .dtype = tensor->dtype, .rank = tensor->rank };
  for (int i = 0; i < tensor->rank; i++) signature.dims[i] = tensor->shape[i];
  return signature;
}

const char *flow_tensor_shape_text(const flow_tensor *tensor)
{
  return flow_shape_text(tensor->rank, tensor->shape);
}
