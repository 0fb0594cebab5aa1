/* formula.c: see formula.h. */
#include "layers/formula.h"

#include <string.h>

enum { MOST_OUTPUTS = 4 };

flow_formula flow_formula_begin(flow_context *context)
{
  return (flow_formula){ .context = context, .status = FLOW_OK };
}

flow_status flow_formula_end(flow_formula *f, flow_tensor *result, flow_tensor **out)
{
  if (f->status == FLOW_OK) *out = flow_tensor_retain(result);
  for (int i = 0; i < f->count; i++) flow_tensor_release(f->made[i]);
  f->count = 0;
  return f->status;
}

flow_tensor *flow_formula_take(flow_formula *f, flow_status status, flow_tensor *made)
{
  if (f->status != FLOW_OK) return NULL;
  if (status == FLOW_OK && f->count == FLOW_FORMULA_STEPS) {
    flow_tensor_release(made);
    status = flow_fail(FLOW_INTERNAL, "a formula of more than %d steps", FLOW_FORMULA_STEPS);
  }
  f->status = status;
  if (status != FLOW_OK) return NULL;
  return f->made[f->count++] = made;
}

void flow_formula_many(flow_formula *f, int op, flow_tensor *const *inputs, int input_count, const flow_attributes *attributes,
                       flow_tensor **outputs, int output_count)
{
  flow_tensor *results[MOST_OUTPUTS] = { NULL };
  for (int i = 0; i < output_count; i++) outputs[i] = NULL;
  if (f->status != FLOW_OK) return;
  flow_status status = flow_apply(f->context, op, inputs, input_count, attributes, results);
  for (int i = 0; i < (status == FLOW_OK ? flow_op_outputs(op) : 1); i++) {
    flow_tensor *result = flow_formula_take(f, status, results[i]);
    if (i < output_count) outputs[i] = result;
  }
}

flow_tensor *flow_formula_op(flow_formula *f, int op, flow_tensor *a, flow_tensor *b, const flow_attributes *attributes)
{
  flow_tensor *inputs[2] = { a, b }, *output;
  flow_formula_many(f, op, inputs, b ? 2 : 1, attributes, &output, 1);
  return output;
}

flow_tensor *flow_formula_constant(flow_formula *f, const flow_tensor *like, double number)
{
  flow_tensor *scalar = NULL;
  if (f->status != FLOW_OK) return NULL;
  int dtype = flow_tensor_dtype(like);
  flow_status status = flow_tensor_scalar(flow_dtype_is_float(dtype) ? dtype : FLOW_FLOAT32, number, &scalar);
  return flow_formula_take(f, status, scalar);
}

flow_tensor *flow_formula_number(flow_formula *f, int op, flow_tensor *a, double number)
{
  return flow_formula_op(f, op, a, flow_formula_constant(f, a, number), NULL);
}

flow_tensor *flow_formula_where(flow_formula *f, flow_tensor *condition, flow_tensor *a, flow_tensor *b)
{
  flow_tensor *inputs[3] = { condition, a, b }, *output;
  flow_formula_many(f, FLOW_OP_where, inputs, 3, NULL, &output, 1);
  return output;
}

flow_tensor *flow_formula_variable(flow_formula *f, flow_variable *variable)
{
  flow_tensor *value = NULL;
  if (f->status != FLOW_OK) return NULL;
  flow_status status = flow_variable_read(f->context, variable, &value);
  return flow_formula_take(f, status, value);
}

flow_tensor *flow_formula_activate(flow_formula *f, const char *activation, flow_tensor *x)
{
  flow_tensor *value = NULL;
  if (f->status != FLOW_OK || strcmp(activation, "linear") == 0) return x;
  flow_status status = flow_activate(f->context, activation, x, &value);
  return flow_formula_take(f, status, value);
}

flow_tensor *flow_formula_cast(flow_formula *f, flow_tensor *x, int dtype)
{
  if (f->status != FLOW_OK || flow_tensor_dtype(x) == dtype) return x;
  return flow_formula_op(f, FLOW_OP_cast, x, NULL, &(flow_attributes){ .cast = { dtype } });
}

static flow_attributes one_axis(const flow_tensor *x, int axis, int keepdims)
{
  return (flow_attributes){ .reduce = { .count = 1, .keepdims = keepdims, .axes = { axis < 0 ? flow_tensor_rank(x) + axis : axis } } };
}

flow_tensor *flow_formula_sum(flow_formula *f, flow_tensor *x, int axis, int keepdims)
{
  if (f->status != FLOW_OK) return NULL;
  flow_attributes attributes = one_axis(x, axis, keepdims);
  return flow_formula_op(f, FLOW_OP_sum, x, NULL, &attributes);
}

flow_tensor *flow_formula_mean(flow_formula *f, flow_tensor *x, int axis)
{
  flow_tensor *value = NULL;
  if (f->status != FLOW_OK) return NULL;
  flow_attributes attributes = one_axis(x, axis, 0);
  flow_status status = flow_mean(f->context, x, &attributes, &value);
  return flow_formula_take(f, status, value);
}

flow_tensor *flow_formula_reshape(flow_formula *f, flow_tensor *x, int rank, const int64_t *dims)
{
  flow_attributes attributes = { .shape = { .rank = rank } };
  for (int i = 0; i < rank; i++) attributes.shape.dims[i] = dims[i];
  return flow_formula_op(f, FLOW_OP_reshape, x, NULL, &attributes);
}

int flow_formula_same_shape(const flow_tensor *a, const flow_tensor *b)
{
  return flow_shape_equal(a->rank, a->shape, b->rank, b->shape);
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
