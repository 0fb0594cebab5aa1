/* file_tensors.h: how config.json names tensors: one alone, as {name, call, output} or as an object of a call's arguments, a list of them,
 * or an object that has them by names, which come in the order of the names, as in Keras. Uses base alone. */
#ifndef FLOW_MODELS_FILE_TENSORS_H
#define FLOW_MODELS_FILE_TENSORS_H

#include "base/json.h"

/* The number of tensors, and one of them from 0; NULL beyond the end. `alone`: whether `tensors` is one itself. */
int              flow_file_tensor_count(const flow_json *tensors, int alone);
const flow_json *flow_file_tensor_at(const flow_json *tensors, int alone, int index);

/* The same of `input_layers` and `output_layers`, which name each as {name, call, output}. A model that was made of lists of lists names
 * its outputs in the same lists: they count in their order. */
int              flow_file_end_count(const flow_json *ends);
const flow_json *flow_file_end_at(const flow_json *ends, int index);

#endif
