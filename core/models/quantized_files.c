/* quantized_files.c: see quantized_files.h. */
#include "models/quantized_files.h"

#include <string.h>

#include "graph/variable.h"
#include "layers/quantization.h"
#include "tensor/tensor.h"

/* ---- descriptions ------------------------------------------------------------------------------------------------------------- */

static int put_mode(flow_json *entry)
{
  flow_json *record = flow_json_make(FLOW_JSON_OBJECT, 0, NULL);
  return flow_json_put_text(record, "mode", "int8") && flow_json_put(entry, "quantization", record);
}

static int is_text(const flow_json *value, const char *text)
{
  return flow_json_is(value, FLOW_JSON_TEXT) && strcmp(value->text, text) == 0;
}

/* For one entry. Its policy's mode says what it is quantized to; source_name is the policy in floats. */
static flow_status plain_entry(flow_json *entry, flow_json *config)
{
  const flow_json *policy = flow_json_member(config, "dtype"), *given = flow_json_member(policy, "config");
  const flow_json *class = flow_json_member(policy, "class_name"), *mode = flow_json_member(given, "mode");
  const flow_json *source = flow_json_member(given, "source_name"), *layer = flow_json_member(entry, "class_name");
  if (!flow_json_is(class, FLOW_JSON_TEXT) || strncmp(class->text, "Quantized", 9) != 0) return FLOW_OK;
  if (!is_text(class, "QuantizedDTypePolicy") || !is_text(mode, "int8") || !flow_json_is(source, FLOW_JSON_TEXT))
    return flow_fail(FLOW_UNSUPPORTED, "%s is quantized to %s in this file; of what Keras quantizes flowlua reads int8",
                     flow_json_is(layer, FLOW_JSON_TEXT) ? layer->text : "a layer",
                     flow_json_is(mode, FLOW_JSON_TEXT) ? mode->text : class->text);
  flow_json *plain = flow_json_make(FLOW_JSON_TEXT, 0, source->text);
  flow_json_remove(config, "dtype");
  flow_json_remove(config, "quantization_config");
  return flow_json_put(config, "dtype", plain) && put_mode(entry) ? FLOW_OK : flow_fail(FLOW_OUT_OF_MEMORY, "no memory for config.json");
}

/* Recursion is bounded: the reader of JSON limits nesting. */
flow_status flow_quantized_description(flow_json *description)
{
  flow_json *config = flow_json_member(description, "config");
  if (flow_json_is(description, FLOW_JSON_OBJECT) && flow_json_is(config, FLOW_JSON_OBJECT)) FLOW_TRY(plain_entry(description, config));
  for (flow_json *item = description->child; item; item = item->next)
    if (item->child) FLOW_TRY(flow_quantized_description(item));
  return FLOW_OK;
}

/* ---- weights ------------------------------------------------------------------------------------------------------------------ */

int flow_quantized_kernel(const flow_tensor_file *file, int kernel)
{
  return flow_tensor_file_dtype(file, kernel) == FLOW_INT8;
}

int flow_quantized_place(const flow_layer *layer, int count, int index, int *scale)
{
  if (layer->class->scales_follow) {
    *scale = 2 * index + 1;
    return 2 * index;
  }
  *scale = index == 0 ? count : -1;
  return index;
}

/* The last axes of a kernel, as many as have `count` places. */
static int last_axes(const flow_tensor *kernel, int64_t count, int *axes)
{
  int first = kernel->rank;
  while (first > 0 && count > 1 && kernel->shape[first - 1] > 0) count /= kernel->shape[--first];
  for (int axis = first; axis < kernel->rank; axis++) axes[axis - first] = axis;
  return kernel->rank - first;
}

/* steps[axis]: how far apart the scales of neighbours along an axis of the kernel are; 0: they have one. count: of scales in the file.
 * Returns the number of scales that the kernel needs. */
static int64_t steps_of(const flow_layer *layer, const flow_variable *variable, const flow_tensor *kernel, int64_t count, int64_t *steps)
{
  int axes[FLOW_MAX_RANK];
  int64_t next = 1;
  int most = layer->class->scale_axes ? layer->class->scale_axes(layer, variable, axes) : last_axes(kernel, count, axes);
  memset(steps, 0, sizeof *steps * FLOW_MAX_RANK);
  for (int i = most - 1; i >= 0; i--) {
    steps[axes[i]] = next;
    next *= kernel->shape[axes[i]];
  }
  return next;
}

/* Divides each value by its scale. */
static void scale_values(flow_tensor *values, const float *scales, const int64_t *steps)
{
  float *x = flow_tensor_elements(values);
  int64_t place[FLOW_MAX_RANK] = { 0 }, at = 0, count = flow_shape_size(values->rank, values->shape);
  for (int64_t i = 0; i < count; i++) {
    x[i] /= scales[at];
    for (int axis = values->rank - 1; axis >= 0; axis--) {
      at += steps[axis];
      if (++place[axis] < values->shape[axis]) break;
      at -= steps[axis] * values->shape[axis];
      place[axis] = 0;
    }
  }
}

flow_status flow_quantized_read(flow_tensor_file *file, int kernel, int scale, flow_layer *layer, flow_variable *variable, flow_json *entry)
{
  flow_tensor *storage, *bytes = NULL, *scales = NULL, *values = NULL;
  int64_t steps[FLOW_MAX_RANK];
  FLOW_TRY(flow_variable_tensor(variable, &storage));
  flow_status status = flow_tensor_file_read(file, kernel, &bytes);
  if (status == FLOW_OK) status = flow_tensor_file_read(file, scale, &scales);
  int64_t count = status == FLOW_OK ? flow_shape_size(scales->rank, scales->shape) : 0;
  if (status == FLOW_OK && (scales->dtype != FLOW_FLOAT32 || steps_of(layer, variable, bytes, count, steps) != count))
    status = flow_fail(FLOW_CORRUPT_DATA, "%s: the scales of \"%s\" do not fit its bytes", file->path, flow_variable_name(variable));
  if (status == FLOW_OK) status = flow_tensor_new(FLOW_FLOAT32, bytes->rank, bytes->shape, &values);
  if (status == FLOW_OK) status = flow_tensor_copy(values, bytes);
  if (status == FLOW_OK) {
    scale_values(values, flow_tensor_elements(scales), steps);
    status = flow_tensor_copy(storage, values);
  }
  if (status == FLOW_OK) status = flow_quantization_set(layer, FLOW_QUANTIZED_BY_ROW, 0, 0);
  if (status == FLOW_OK && entry && !flow_json_member(entry, "quantization") && !put_mode(entry))
    status = flow_fail(FLOW_OUT_OF_MEMORY, "no memory for config.json");
  flow_tensor_release(values);
  flow_tensor_release(scales);
  flow_tensor_release(bytes);
  flow_tensor_release(storage);
  return status;
}
