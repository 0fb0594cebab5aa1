/* nodes.c: what rules build with: nodes, their attributes, constants and made-up names. See onnx.h. */
#include "onnx/onnx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "onnx/fields.h"

enum { SMALL = 1024 }; /* constants below this many bytes are copied into the message; of larger ones the tensor lends its memory */

/* TensorProto.DataType of onnx.proto3. */
int flow_onnx_dtype(int dtype)
{
  static const int dtypes[FLOW_DTYPE_COUNT] = { [FLOW_FLOAT32] = 1, [FLOW_FLOAT16] = 10, [FLOW_BFLOAT16] = 16, [FLOW_FLOAT64] = 11,
    [FLOW_INT8] = 3, [FLOW_UINT8] = 2, [FLOW_INT32] = 6, [FLOW_INT64] = 7, [FLOW_BOOL] = 9 };
  return dtypes[dtype];
}

/* The first failure counts: later ones follow from it. Returns NULL, the name of no value. */
const char *flow_onnx_fail(flow_onnx *x, flow_status status, const char *format, ...)
{
  va_list arguments;
  if (x->status != FLOW_OK) return NULL;
  va_start(arguments, format);
  x->status = flow_fail_list(status, NULL, format, arguments);
  va_end(arguments);
  return NULL;
}

/* ---- what the export keeps ---------------------------------------------------------------------------------------------- */

/* Room is made before the copy, so that a copy that exists is always kept. */
const char *flow_onnx_keep_text(flow_onnx *x, const char *text)
{
  if (x->status == FLOW_OK) x->status = flow_grow(&x->kept, sizeof *x->kept, x->kept_count + 1, &x->kept_capacity);
  if (x->status != FLOW_OK) return NULL;
  char *copy = flow_duplicate_text(text);
  if (copy) x->kept[x->kept_count++] = copy;
  else x->status = FLOW_OUT_OF_MEMORY;
  return copy;
}

/* Takes the reference, also after a failure: NULL then. */
flow_tensor *flow_onnx_keep(flow_onnx *x, flow_tensor *tensor)
{
  if (x->status == FLOW_OK) x->status = flow_grow(&x->tensors, sizeof *x->tensors, x->tensor_count + 1, &x->tensor_capacity);
  if (x->status == FLOW_OK) return x->tensors[x->tensor_count++] = tensor;
  flow_tensor_release(tensor);
  return NULL;
}

/* Whether the caller has given this name to an input or an output of the file. */
int flow_onnx_is_given(const flow_onnx *x, const char *name)
{
  for (int i = 0; i < x->input_count; i++)
    if (strcmp(x->input_names[i], name) == 0) return 1;
  for (int i = 0; i < x->output_count; i++)
    if (strcmp(x->output_names[i], name) == 0) return 1;
  return 0;
}

/* Names that are made begin with "/" and end with a number that is used once, so that two of them never agree. */
const char *flow_onnx_name(flow_onnx *x, const char *what)
{
  char text[160];
  do snprintf(text, sizeof text, "/%.100s_%d", what, ++x->made);
  while (flow_onnx_is_given(x, text));
  return flow_onnx_keep_text(x, text);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

/* Opens a NodeProto with its inputs, one output and its type; flow_onnx_end closes it. Further outputs are added as fields NODE_OUTPUT in
 * between. The node is called like its result, which no other node has. inputs[i] NULL: an optional input that is left out, which ONNX
 * writes as an empty name. */
void flow_onnx_begin(flow_onnx *x, const char *type, const char *const *inputs, int count, const char *result)
{
  if (x->status != FLOW_OK) return;
  flow_message_open(&x->message, GRAPH_NODE);
  for (int i = 0; i < count; i++) flow_message_text(&x->message, NODE_INPUT, inputs[i] ? inputs[i] : "");
  flow_message_text(&x->message, NODE_OUTPUT, result);
  flow_message_text(&x->message, NODE_NAME, result);
  flow_message_text(&x->message, NODE_TYPE, type);
}

/* Closes the node that flow_onnx_begin opened. */
void flow_onnx_end(flow_onnx *x)
{
  if (x->status == FLOW_OK) flow_message_close(&x->message);
}

/* Opens an AttributeProto; returns whether it did. Its caller writes the value and closes it. */
static int open_attribute(flow_onnx *x, const char *name, int type)
{
  if (x->status != FLOW_OK) return 0;
  flow_message_open(&x->message, NODE_ATTRIBUTE);
  flow_message_text(&x->message, ATTRIBUTE_NAME, name);
  flow_message_integer(&x->message, ATTRIBUTE_TYPE, type);
  return 1;
}

void flow_onnx_integer(flow_onnx *x, const char *name, int64_t value)
{
  if (!open_attribute(x, name, TYPE_INTEGER)) return;
  flow_message_integer(&x->message, ATTRIBUTE_INTEGER, value);
  flow_message_close(&x->message);
}

void flow_onnx_integers(flow_onnx *x, const char *name, const int64_t *values, int count)
{
  if (!open_attribute(x, name, TYPE_INTEGERS)) return;
  for (int i = 0; i < count; i++) flow_message_integer(&x->message, ATTRIBUTE_INTEGERS, values[i]);
  flow_message_close(&x->message);
}

void flow_onnx_text(flow_onnx *x, const char *name, const char *value)
{
  if (!open_attribute(x, name, TYPE_TEXT)) return;
  flow_message_text(&x->message, ATTRIBUTE_TEXT, value);
  flow_message_close(&x->message);
}

/* A node of one to three inputs without attributes. b and c NULL: not there; they are the last inputs only, so that none is left out in the
 * middle. */
const char *flow_onnx_emit(flow_onnx *x, const char *type, const char *result, const char *a, const char *b, const char *c)
{
  const char *inputs[3] = { a, b, c };
  if (!result) result = flow_onnx_name(x, type);
  flow_onnx_begin(x, type, inputs, c ? 3 : b ? 2 : 1, result);
  flow_onnx_end(x);
  return result;
}

const char *flow_onnx_transpose(flow_onnx *x, const char *name, const int64_t *axes, int count, const char *result)
{
  if (!result) result = flow_onnx_name(x, "Transpose");
  flow_onnx_begin(x, "Transpose", &name, 1, result);
  flow_onnx_integers(x, "perm", axes, count);
  flow_onnx_end(x);
  return result;
}

const char *flow_onnx_cast(flow_onnx *x, const char *name, int dtype, const char *result)
{
  if (!result) result = flow_onnx_name(x, "Cast");
  flow_onnx_begin(x, "Cast", &name, 1, result);
  flow_onnx_integer(x, "to", flow_onnx_dtype(dtype));
  flow_onnx_end(x);
  return result;
}

/* ---- constants ---------------------------------------------------------------------------------------------------------- */

/* A TensorProto in the graph's list of initializers; its bytes are little-endian, as those of all machines that this runs on. `bytes` must
 * live as long as the export where there are SMALL or more of them. */
static const char *write_tensor(flow_onnx *x, const char *name, int dtype, int rank, const int64_t *dims, const void *bytes, uint64_t count)
{
  if (x->status != FLOW_OK) return NULL;
  flow_message_open(&x->message, GRAPH_INITIALIZER);
  for (int i = 0; i < rank; i++) flow_message_integer(&x->message, TENSOR_DIMS, dims[i]);
  flow_message_integer(&x->message, TENSOR_DTYPE, flow_onnx_dtype(dtype));
  flow_message_text(&x->message, TENSOR_NAME, name);
  if (count < SMALL) flow_message_bytes(&x->message, TENSOR_RAW_DATA, bytes, count);
  else flow_message_lend(&x->message, TENSOR_RAW_DATA, bytes, count);
  flow_message_close(&x->message);
  return name;
}

static uint64_t bytes_of(const flow_tensor *tensor)
{
  return (uint64_t)flow_shape_size(tensor->rank, tensor->shape) * (uint64_t)flow_dtype_size(tensor->dtype);
}

const char *flow_onnx_tensor(flow_onnx *x, flow_tensor *tensor, const char *name)
{
  if (x->status != FLOW_OK) return NULL;
  if (!name) name = flow_onnx_name(x, "constant");
  return write_tensor(x, name, tensor->dtype, tensor->rank, tensor->shape, tensor->data, bytes_of(tensor));
}

/* The numbers are copied: lists have one number for each axis, at most two, which is below SMALL bytes. */
const char *flow_onnx_list(flow_onnx *x, const int64_t *values, int count)
{
  int64_t dims[1] = { count };
  return write_tensor(x, flow_onnx_name(x, "integers"), FLOW_INT64, 1, dims, values, (uint64_t)count * sizeof *values);
}

const char *flow_onnx_number(flow_onnx *x, int dtype, double value)
{
  flow_tensor *tensor = NULL;
  if (x->status == FLOW_OK) x->status = flow_tensor_scalar(dtype, value, &tensor);
  if (x->status != FLOW_OK || !flow_onnx_keep(x, tensor)) return NULL;
  return flow_onnx_tensor(x, tensor, flow_onnx_name(x, "number"));
}

/* The rows of the batch as an int64 tensor {1}, made once for the whole model: the first dimension of an input, over input_rows where that
 * input has several rows for each of the batch. */
static const char *rows_of_batch(flow_onnx *x)
{
  if (x->rows || x->status != FLOW_OK) return x->rows;
  if (!x->input) return flow_onnx_fail(x, FLOW_INTERNAL, "ONNX: a shape depends on the batch, but no input has rows");
  const char *result = flow_onnx_name(x, "rows");
  flow_onnx_begin(x, "Shape", &x->input, 1, result);
  flow_onnx_integer(x, "start", 0);
  flow_onnx_integer(x, "end", 1);
  flow_onnx_end(x);
  if (x->input_rows != 1) result = flow_onnx_emit(x, "Div", NULL, result, flow_onnx_list(x, &x->input_rows, 1), NULL);
  return x->rows = result;
}

/* A constant where all sizes are known; else one part for each dimension, joined when the model runs. A negative dimension -k stands for k
 * times the rows (flow.h). */
const char *flow_onnx_shape(flow_onnx *x, const flow_signature *signature)
{
  const char *parts[FLOW_MAX_RANK];
  int symbolic = 0;
  for (int i = 0; i < signature->rank; i++) symbolic |= signature->dims[i] < 0;
  if (!symbolic) return flow_onnx_list(x, signature->dims, signature->rank);
  for (int i = 0; i < signature->rank; i++) {
    int64_t size = signature->dims[i], times = -size;
    if (size >= 0) parts[i] = flow_onnx_list(x, &size, 1);
    else if (size == -1) parts[i] = rows_of_batch(x);
    else parts[i] = flow_onnx_emit(x, "Mul", NULL, rows_of_batch(x), flow_onnx_list(x, &times, 1), NULL);
  }
  const char *result = flow_onnx_name(x, "shape");
  flow_onnx_begin(x, "Concat", parts, signature->rank, result);
  flow_onnx_integer(x, "axis", 0);
  flow_onnx_end(x);
  return result;
}
