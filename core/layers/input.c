/* input.c: Input: the shape and dtype of what a model is fed. Its call checks the shape and hands the tensor on. */
#include "base/json.h"
#include <string.h>

#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "shape", FLOW_SHAPE, "null", NULL },           /* without the batch; -1: unknown */
  { "batch_size", FLOW_INTEGER, "null", NULL },
  { "dtype", FLOW_TEXT, "float32", "float32|float16|bfloat16|float64|int8|uint8|int32|int64|bool" },
  { "batch_shape", FLOW_SHAPE, "null", NULL },     /* instead of shape and batch_size; -1: unknown */
  { "sparse", FLOW_BOOLEAN, "false", NULL },
  { "ragged", FLOW_BOOLEAN, "false", NULL },
  { "optional", FLOW_BOOLEAN, "false", NULL },
  { "trainable", FLOW_BOOLEAN, "true", NULL },
  FLOW_ARGUMENTS_END
};

/* Turns shape and batch_size into batch_shape, the form that Keras stores. */
static flow_status check(flow_layer *layer)
{
  const flow_arguments *arguments = layer->arguments;
  const double *shape;
  double batch_shape[FLOW_MAX_RANK];
  static const char *const absent[] = { "sparse", "ragged", "optional" };
  for (int i = 0; i < 3; i++)
    if (flow_argument_boolean(arguments, absent[i])) return flow_layer_fail(layer, "%s inputs are not supported", absent[i]);
  int rank, whole = !flow_argument_is_null(arguments, "batch_shape");
  if (whole == !flow_argument_is_null(arguments, "shape"))
    return flow_layer_fail(layer, "give either shape (without the batch) or batch_shape%s", whole ? ", not both" : "");
  if (whole && !flow_argument_is_null(arguments, "batch_size"))
    return flow_layer_fail(layer, "batch_shape holds the batch size already: leave batch_size out");
  rank = flow_argument_list(arguments, whole ? "batch_shape" : "shape", &shape);
  if (rank + !whole > FLOW_MAX_RANK)
    return flow_layer_fail(layer, "shape has %d dimensions, at most %d are possible", rank, FLOW_MAX_RANK - 1);
  if (whole && rank == 0) return flow_layer_fail(layer, "batch_shape is empty: its first dimension is the batch");
  for (int i = 0; i < rank; i++) {
    if (shape[i] < -1)
      return flow_layer_fail(layer, "dimension %d of the shape is %.15g, expected a size, or -1 for unknown", i + 1, shape[i]);
    batch_shape[i + !whole] = shape[i];
  }
  if (whole) return FLOW_OK;
  batch_shape[0] = flow_argument_is_null(arguments, "batch_size") ? -1 : flow_argument_number(arguments, "batch_size");
  return flow_arguments_set_numbers(layer->arguments, "batch_shape", batch_shape, rank + 1);
}

/* Gives the input back, if it has the shape that was promised; sizes that one side does not know fit. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)context; (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  const double *expected;
  int64_t shape[FLOW_MAX_RANK];
  int rank = flow_argument_list(layer->arguments, "batch_shape", &expected), fits = rank == input.rank;
  for (int i = 0; i < rank; i++) {
    shape[i] = (int64_t)expected[i];
    if (fits && i < input.rank && shape[i] >= 0 && input.dims[i] >= 0 && shape[i] != input.dims[i]) fits = 0;
  }
  if (!fits)
    return flow_layer_fail(layer, "input has shape %s, expected %s", flow_shape_text(input.rank, input.dims), flow_shape_text(rank, shape));
  *out = flow_tensor_retain(inputs[0]);
  return FLOW_OK;
}

/* The members in the order of Keras' files; sparse, ragged and optional are always false here. */
static void config(const flow_layer *layer, flow_json *object)
{
  const double *shape;
  int rank = flow_argument_list(layer->arguments, "batch_shape", &shape);
  flow_json *list = flow_json_put_kind(object, "batch_shape", FLOW_JSON_LIST);
  for (int i = 0; i < rank; i++)
    flow_json_put(list, NULL, flow_json_make(shape[i] < 0 ? FLOW_JSON_NULL : FLOW_JSON_NUMBER, shape[i], NULL));
  flow_json_put_text(object, "dtype", flow_argument_text(layer->arguments, "dtype"));
  flow_json_put_kind(object, "sparse", FLOW_JSON_BOOLEAN);
  flow_json_put_kind(object, "ragged", FLOW_JSON_BOOLEAN);
  flow_json_put_text(object, "name", layer->name);
  flow_json_put_kind(object, "optional", FLOW_JSON_BOOLEAN);
}

const flow_layer_class flow_layer_input = {
  .name = "InputLayer",
  .alias = "Input",
  .positional = 3,
  .parameters = parameters,
  .call = call,
  .check = check,
  .config = config,
  .doc = "Shape and dtype of a model's input; the batch is not counted in shape."
};
