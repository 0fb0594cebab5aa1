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

static int is_table(const flow_layer *layer)
{
  return strcmp(layer->class->name, "Embedding") == 0;
}
static int has_tables(const flow_layer *layer)
{
  return strcmp(layer->class->name, "ReversibleEmbedding") == 0;
}

/* In a file each table stands before its scales. In other groups the kernel is first and its scales are last. */
int flow_quantized_place(const flow_layer *layer, int count, int index, int *scale)
{
  if (has_tables(layer)) {
    *scale = 2 * index + 1;
    return 2 * index;
  }
  *scale = index == 0 ? count : -1;
  return index;
}

/* steps[axis]: how far apart the scales of neighbours along an axis of the kernel are; 0: they have one. Returns the number of scales. */
static int64_t steps_of(const flow_layer *layer, int by_rows, const flow_tensor *kernel, int64_t count, int64_t *steps)
{
  int64_t next = 1, left = count;
  memset(steps, 0, sizeof *steps * FLOW_MAX_RANK);
  if (by_rows) {
    steps[0] = 1;
    return kernel->shape[0];
  }
  if (strcmp(layer->class->name, "EinsumDense") == 0) { /* the output's axes that the kernel has, in the output's order */
    const char *text = flow_argument_text(layer->arguments, "equation"), *arrow = strstr(text, "->"), *letter = arrow + strlen(arrow);
    while (letter-- > arrow + 2) {
      int axis = 0;
      const char *at = strchr(text, ',') + 1;
      for (; at < arrow && *at != *letter; at++) axis += *at != ' ';
      if (at == arrow || *letter == ' ' || axis >= kernel->rank) continue;
      steps[axis] = next;
      next *= kernel->shape[axis];
    }
    return next;
  }
  for (int axis = kernel->rank - 1; axis >= 0 && left > 1 && kernel->shape[axis] > 0; axis--) { /* the last axes */
    steps[axis] = next;
    next *= kernel->shape[axis];
    left /= kernel->shape[axis];
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
  /* A table has a scale for each row, and the second one of ReversibleEmbedding one for each column. */
  int by_rows = is_table(layer) || (has_tables(layer) && variable == layer->variables[0]);
  FLOW_TRY(flow_variable_tensor(variable, &storage));
  flow_status status = flow_tensor_file_read(file, kernel, &bytes);
  if (status == FLOW_OK) status = flow_tensor_file_read(file, scale, &scales);
  int64_t count = status == FLOW_OK ? flow_shape_size(scales->rank, scales->shape) : 0;
  if (status == FLOW_OK && (scales->dtype != FLOW_FLOAT32 || steps_of(layer, by_rows, bytes, count, steps) != count))
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
