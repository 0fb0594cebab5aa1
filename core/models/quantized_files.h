/* quantized_files.h: files of models that are quantized to int8 as by Keras: entries of layers with a QuantizedDTypePolicy, and groups that
 * have a kernel in bytes and its scales, where the layer's record says (core/layers/layer.h); lua/flow/saving/quantized_files.lua does the
 * same. Layers here keep floats, the ones that the bytes stand for, of which they make the same bytes (core/layers/quantization.h). */
#ifndef FLOW_MODELS_QUANTIZED_FILES_H
#define FLOW_MODELS_QUANTIZED_FILES_H

#include "io/tensor_file.h"
#include "layers/layer.h"

/* Makes each such entry of a description that of a layer in floats with a record of how it is quantized, as flowlua writes them.
 * FLOW_UNSUPPORTED: it is quantized in another way. */
flow_status flow_quantized_description(flow_json *description);
/* Whether the file's tensor `kernel` holds bytes. */
int flow_quantized_kernel(const flow_tensor_file *file, int kernel);
/* Where variable `index` of `count` is in such a group of a layer, and, where the number is at least 0, its scales. */
int flow_quantized_place(const flow_layer *layer, int count, int index, int *scale);
/* Writes the floats that tensor `kernel` with the scales of tensor `scale` stands for into the variable, and quantizes the layer; entry: of
 * the layer in the description, which says so from then on. */
flow_status flow_quantized_read(flow_tensor_file *file, int kernel, int scale, flow_layer *layer, flow_variable *variable,
                                flow_json *entry);

#endif
