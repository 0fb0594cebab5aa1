/* quantization.c: see quantization.h.
 *
 * A layer is in one of the states FLOW_NOT_QUANTIZED, FLOW_CALIBRATING (computes in floats and widens low to high by each input),
 * FLOW_QUANTIZED and FLOW_QUANTIZED_BY_ROW. Only the last two compute in bytes, and only where flow_quantization_applies says so:
 * callers ask it for every call. */
#include "layers/quantization.h"

#include <math.h>
#include <string.h>

#include "autodiff/apply.h"
#include "graph/context.h"
#include "graph/variable.h"
#include "ops/byte_range.h"

int flow_quantization_freezes(const flow_layer *layer, const flow_variable *variable)
{
  if (layer->quantizing != FLOW_QUANTIZED_BY_ROW || !variable) return 0;
  const char *path = flow_variable_name(variable), *end = strrchr(path, '/'), *name = end ? end + 1 : path;
  return strcmp(name, "kernel") == 0 || strcmp(name, "embeddings") == 0 || strcmp(name, "reverse_embeddings") == 0;
}

void flow_quantization_freeze(const flow_layer *layer)
{
  for (int i = 0; i < layer->variable_count; i++)
    if (flow_quantization_freezes(layer, layer->variables[i])) flow_variable_set_trainable(layer->variables[i], 0);
}

/* On failure the layer is unchanged. Calibration begins with the range 0 to 0: the range that it finds always has 0 in it, which a byte
 * must be able to stand for, since padding adds zeros. */
flow_status flow_quantization_set(flow_layer *layer, int quantizing, double low, double high)
{
  unsigned can = layer->class->quantizes | 1u << FLOW_NOT_QUANTIZED;
  if (can & 1u << FLOW_QUANTIZED) can |= 1u << FLOW_CALIBRATING;
  if (quantizing < FLOW_NOT_QUANTIZED || quantizing > FLOW_CALIBRATING)
    return flow_layer_fail(layer, "there is no way number %d to quantize", quantizing);
  if (!(can >> quantizing & 1)) return flow_layer_fail(layer, "layers of class %s cannot be quantized in this way", layer->class->name);
  if (quantizing == FLOW_QUANTIZED && !flow_byte_range_fits(low, high))
    return flow_layer_fail(layer, "the range of its input is %.9g to %.9g, expected one around 0 that is 1e-30 to 1e30 wide", low, high);
  layer->quantizing = quantizing;
  flow_quantization_freeze(layer);
  layer->low = quantizing == FLOW_QUANTIZED ? low : 0;
  layer->high = quantizing == FLOW_QUANTIZED ? high : 0;
  return FLOW_OK;
}

flow_status flow_quantization_read(flow_layer *layer, const flow_json *quantization)
{
  const flow_json *mode = flow_json_member(quantization, "mode"), *range = flow_json_member(quantization, "input_range");
  const flow_json *low = flow_json_item(range, 0), *high = flow_json_item(range, 1);
  if (!quantization) return FLOW_OK;
  if (!flow_json_is(mode, FLOW_JSON_TEXT) || strcmp(mode->text, "int8") != 0 ||
      (range && !(flow_json_is_number(low) && flow_json_is_number(high))))
    return flow_fail(FLOW_CORRUPT_DATA, "the quantization of \"%s\" is not known", layer->name);
  if (!range) return flow_quantization_set(layer, FLOW_QUANTIZED_BY_ROW, 0, 0);
  return flow_quantization_set(layer, FLOW_QUANTIZED, low->number, high->number);
}

static int is_quantized(const flow_layer *layer)
{
  return layer->quantizing == FLOW_QUANTIZED || layer->quantizing == FLOW_QUANTIZED_BY_ROW;
}

flow_status flow_quantization_check_training(const flow_layer *layer)
{
  int kernels = 0;
  for (int i = 0; i < layer->variable_count; i++)
    kernels |= layer->variables[i]->trainable && flow_quantization_freezes(layer, layer->variables[i]);
  if (!is_quantized(layer) || (layer->quantizing == FLOW_QUANTIZED_BY_ROW && !kernels)) return FLOW_OK;
  return flow_layer_fail(layer, "it is quantized to int8 and only predicts: train the float32 model, and quantize it then");
}

/* The smallest or largest value of x, which has some; in *number. */
static flow_status find_end(flow_context *context, int op, flow_tensor *x, double *number)
{
  flow_tensor *end;
  FLOW_TRY(flow_apply1(context, op, x, NULL, NULL, NULL, &end));
  flow_status status = flow_tensor_item(end, number);
  flow_tensor_release(end);
  return status;
}

flow_status flow_quantization_observe(flow_context *context, flow_layer *layer, flow_tensor *x)
{
  double low, high;
  if (layer->quantizing != FLOW_CALIBRATING || flow_shape_size(x->rank, x->shape) == 0) return FLOW_OK;
  FLOW_TRY(find_end(context, FLOW_OP_min, x, &low));
  FLOW_TRY(find_end(context, FLOW_OP_max, x, &high));
  if (!isfinite(low) || !isfinite(high)) return flow_layer_fail(layer, "its input is %g to %g while its range is looked for", low, high);
  if (low < layer->low) layer->low = low;
  if (high > layer->high) layer->high = high;
  return FLOW_OK;
}

/* Whether what is done with a tensor is done on a device. */
static int is_on_device(const flow_tensor *x) { return (x->graph ? x->graph->place : flow_tensor_place(x)) != NULL; }

/* A layer that is quantized computes in floats where the op is not: on devices, for images of unknown size, and where the sum of
 * products could leave int32 (FLOW_MOST_BYTE_PRODUCTS). Results differ by the rounding of bytes only. */
int flow_quantization_applies(const flow_layer *layer, const flow_tensor *x, const flow_tensor *kernel)
{
  if (!is_quantized(layer) || !x || !kernel || is_on_device(x) || is_on_device(kernel)) return 0;
  for (int axis = 1; axis < x->rank; axis++)
    if (x->shape[axis] < 0) return 0;
  int64_t outputs = kernel->shape[kernel->rank - 1];
  return outputs > 0 && flow_shape_size(kernel->rank, kernel->shape) / outputs <= FLOW_MOST_BYTE_PRODUCTS;
}

/* NULL, which a failed expression gives, stays NULL. */
static flow_tensor *in_dtype(flow_expression *e, flow_tensor *x, int dtype)
{
  return !x || x->dtype == dtype ? x : flow_express_cast(e, x, dtype);
}

/* x is float32, the range of its bytes that of the attributes. */
static flow_tensor *convolve(flow_expression *e, flow_tensor *x, flow_tensor *kernel, const flow_attributes *attributes)
{
  flow_attributes range = { .quantization = { .low = attributes->convolution.input_low, .high = attributes->convolution.input_high } };
  flow_tensor *bytes = flow_express(e, FLOW_OP_quantize, x, NULL, NULL, &range), *weights[2] = { NULL }, *y = NULL;
  kernel = in_dtype(e, kernel, FLOW_FLOAT32);
  flow_express_all(e, FLOW_OP_quantize_weights, &kernel, 1, NULL, weights);
  flow_tensor *operands[3] = { bytes, weights[0], weights[1] };
  flow_express_all(e, FLOW_OP_quantized_convolution, operands, 3, attributes, &y);
  return y;
}

flow_tensor *flow_quantization_convolve(flow_expression *e, const flow_layer *layer, flow_tensor *x, flow_tensor *kernel,
                                        const flow_attributes *attributes)
{
  flow_attributes with_range = *attributes;
  with_range.convolution.input_low = layer->low;
  with_range.convolution.input_high = layer->high;
  return in_dtype(e, convolve(e, in_dtype(e, x, FLOW_FLOAT32), kernel, &with_range), x->dtype);
}

/* A row's largest |x| becomes 127; *size: that largest one and epsilon. */
static flow_tensor *scale_rows(flow_expression *e, flow_tensor *x, double epsilon, flow_tensor **size)
{
  const double most = 127;
  flow_attributes last = { .reduce = { .count = 1, .keepdims = 1, .axes = { x->rank - 1 } } };
  flow_tensor *largest = flow_express(e, FLOW_OP_max, e_abs(e, x), NULL, NULL, &last);
  if (!largest) return NULL;
  *size = e_add(e, largest, flow_express_number(e, x, epsilon));
  return e_mul(e, x, e_div(e, flow_express_number(e, x, most), *size));
}

static flow_tensor *round_rows(flow_expression *e, flow_tensor *x, double epsilon)
{
  flow_tensor *size = NULL, *floats = in_dtype(e, x, FLOW_FLOAT32);
  flow_tensor *bytes = floats ? e_round(e, scale_rows(e, floats, epsilon, &size)) : NULL;
  if (!bytes) return NULL;
  return in_dtype(e, e_div(e, bytes, e_div(e, flow_express_number(e, size, 127), size)), x->dtype);
}

/* Keras keeps the table itself in bytes; here they are made of the rows that are asked for, which were rounded with Keras' epsilon when
 * the layer was quantized (lua/flow/layers/kernels/byte_kernels.lua). */
flow_tensor *flow_quantization_round_rows(flow_expression *e, flow_tensor *x)
{
  return round_rows(e, x, 1e-30);
}

/* What Keras adds to a row's range (keras.src.quantizers.quantizers.abs_max_quantize). */
static const double EPSILON = 1e-7;

/* x rounded, which passes a gradient on as if it were not. */
static flow_tensor *multiply_rounded(flow_expression *e, flow_tensor *x, flow_tensor *kernel)
{
  flow_tensor *rounded = flow_express(e, FLOW_OP_stop_gradient, round_rows(e, x, EPSILON), NULL, NULL, NULL);
  flow_tensor *zero = e_sub(e, x, flow_express(e, FLOW_OP_stop_gradient, x, NULL, NULL, NULL));
  return flow_express(e, FLOW_OP_matmul, e_add(e, rounded, zero), kernel, NULL, NULL);
}

/* A product as a convolution of 1 x 1 over {n, 1, steps, features}: one op serves both. */
flow_tensor *flow_quantization_multiply(flow_expression *e, const flow_layer *layer, flow_tensor *x, flow_tensor *kernel, int training)
{
  if (training && layer->quantizing == FLOW_QUANTIZED_BY_ROW) return multiply_rounded(e, x, kernel);
  flow_attributes attributes = { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 } };
  flow_tensor *floats = in_dtype(e, x, FLOW_FLOAT32), *size = NULL;
  int64_t features = kernel->shape[0], units = kernel->shape[1], result[FLOW_MAX_RANK], steps = 1;
  for (int axis = 1; axis < x->rank - 1; axis++) steps *= x->shape[axis];
  for (int axis = 0; axis < x->rank; axis++) result[axis] = x->shape[axis];
  result[x->rank - 1] = units;
  attributes.convolution.input_low = layer->low;
  attributes.convolution.input_high = layer->high;
  if (layer->quantizing == FLOW_QUANTIZED_BY_ROW) {
    attributes.convolution.input_low = -128;
    attributes.convolution.input_high = 127;
    if (floats) floats = scale_rows(e, floats, EPSILON, &size);
  }
  flow_tensor *images = flow_express_reshape(e, floats, 4, (int64_t[]){ x->shape[0], 1, steps, features });
  kernel = flow_express_reshape(e, kernel, 4, (int64_t[]){ 1, 1, features, units });
  flow_tensor *y = flow_express_reshape(e, convolve(e, images, kernel, &attributes), x->rank, result);
  if (size) y = e_mul(e, y, e_div(e, size, flow_express_number(e, size, 127)));
  return in_dtype(e, y, x->dtype);
}
