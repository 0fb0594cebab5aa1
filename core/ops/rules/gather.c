/* gather.c: rules of ops that take rows of a table by their numbers. */
#include "ops/expression.h"
#include "ops/rules.h"

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

/* table {n, a, b} and integer indices {i, j}: {i, j, a, b}. */
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

/* Rows are numbered in 32 bits, and products of all of them have to fit into memory. */
flow_status flow_shape_gather_dense(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                    flow_signature *outputs)
{
  flow_signature taken[3] = { { .rank = 0 }, inputs[2], inputs[3] };
  flow_extent extent;
  if (inputs[0].dtype != FLOW_FLOAT32) return flow_rule_fail(op, "the table is %s, expected float32", flow_dtype_name(inputs[0].dtype));
  FLOW_TRY(flow_rule_rank(op, "the table", &inputs[0], 2, "{rows, width}"));
  FLOW_TRY(gathered(op, &inputs[0], &inputs[1], &taken[0]));
  FLOW_TRY(flow_shape_dense(op, attributes, taken, input_count - 1, outputs));
  if (inputs[0].dims[0] >= INT32_MAX)
    return flow_rule_fail(op, "the table has %lld rows, at most %d are possible", (long long)inputs[0].dims[0], INT32_MAX - 1);
  return flow_rule_extent(op, 2, (int64_t[]){ inputs[0].dims[0], inputs[2].dims[1] }, &extent);
}

/* g of the shape that gather gives, indices: the gradient of a table of shape.dims. */
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

/* Rows of g are added to the rows of the table that they came from; a row that was read twice gets both. */
flow_status flow_gradient_gather(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *table = step->inputs[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  flow_attributes attributes = { .shape = { .rank = table->rank } };
  for (int i = 0; i < table->rank; i++) attributes.shape.dims[i] = table->shape[i];
  return flow_gradient_by(step, 0, FLOW_OP_gather_gradient, g, step->inputs[1], NULL, &attributes);
}

/* It adds rows of g up, so what comes back is gathered again. */
flow_status flow_gradient_gather_gradient(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0];
  if (g == NULL || !step->needed[0]) return FLOW_OK;
  return flow_gradient_by(step, 0, FLOW_OP_gather, g, step->inputs[1], NULL, NULL);
}
