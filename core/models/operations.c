/* operations.c: arithmetic on symbolic tensors, x * 2 + 1, as Keras writes it: an operation of keras.ops in the list of layers.
 * lua/flow/saving/operations.lua reads and writes the same ones. */
#include <math.h>
#include <string.h>

#include "layers/express.h"
#include "models/model.h"

static const struct { const char *class_name; int op, count; } operations[] = {
  { "Add", FLOW_OP_add, 2 }, { "Subtract", FLOW_OP_sub, 2 }, { "Multiply", FLOW_OP_mul, 2 }, { "TrueDivide", FLOW_OP_div, 2 },
  { "Divide", FLOW_OP_div, 2 }, { "Power", FLOW_OP_pow, 2 }, { "Maximum", FLOW_OP_maximum, 2 }, { "Minimum", FLOW_OP_minimum, 2 },
  { "Matmul", FLOW_OP_matmul, 2 }, { "Negative", FLOW_OP_neg, 1 }, { "Absolute", FLOW_OP_abs, 1 }, { "Exp", FLOW_OP_exp, 1 },
  { "Log", FLOW_OP_log, 1 }, { "Sqrt", FLOW_OP_sqrt, 1 }, { "Square", FLOW_OP_square, 1 }, { "Sin", FLOW_OP_sin, 1 },
  { "Cos", FLOW_OP_cos, 1 }, { "Tanh", FLOW_OP_tanh, 1 }, { "Relu", FLOW_OP_relu, 1 }, { "Sigmoid", FLOW_OP_sigmoid, 1 },
};

int flow_operation_is(const char *module)
{
  static const char ops[] = "keras.src.ops.";
  return module && strncmp(module, ops, sizeof ops - 1) == 0;
}

int flow_operation_find(const char *class_name, int *count)
{
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    if (strcmp(operations[i].class_name, class_name) != 0) continue;
    *count = operations[i].count;
    return operations[i].op;
  }
  return -1;
}

/* A number is weakly typed: it takes the dtype of the tensor that it meets if that can hold it. */
static flow_tensor *number(flow_expression *e, const flow_tensor *like, double value)
{
  flow_tensor *scalar = NULL;
  if (flow_dtype_is_float(like->dtype)) return flow_express_number(e, like, value);
  if (e->status != FLOW_OK) return NULL;
  int dtype = floor(value) != value ? FLOW_FLOAT32 : fabs(value) < 0x1p31 ? FLOW_INT32 : FLOW_INT64;
  flow_status status = flow_tensor_new(dtype, 0, NULL, &scalar);
  if (status == FLOW_OK) status = flow_tensor_fill(scalar, value);
  return flow_express_keep(e, status, scalar);
}

flow_status flow_operation_run(flow_context *context, int op, flow_tensor *const *operands, const double *numbers, int count,
                               flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *inputs[2] = { operands[0], count > 1 ? operands[1] : NULL };
  for (int i = 0; i < count; i++)
    if (!inputs[i]) inputs[i] = number(&e, operands[1 - i], numbers[i]);
  if (e.status != FLOW_OK) return flow_expression_take(&e, NULL, out);
  return flow_expression_take(&e, flow_express(&e, op, inputs[0], inputs[1], NULL, NULL), out);
}
