/* quantization.h: layers that compute x . kernel in bytes: predictions of a model that was trained in float32. Products and sums are those
 * of integers (kernels/quantization.h), biases and activations stay float32. The kernel stays float32, too, and its bytes follow from it;
 * plans make them once and keep them until the kernel changes.
 *
 * FLOW_QUANTIZED:        the range of x is the layer's, which calibration has found.
 * FLOW_QUANTIZED_BY_ROW: each row {features} of x has the range of its largest |x|, as Keras' quantize("int8") does for Dense, EinsumDense
 *                        and the projections of attentions; rows of an Embedding are what bytes and the row's range can say.
 *                        Its kernels are not trained from then on; what is before the layer and beside the kernels can be.
 * On a device, which has no kernels for bytes, and where a sum of products would not fit into an int32, layers compute in float32. */
#ifndef FLOW_LAYERS_QUANTIZATION_H
#define FLOW_LAYERS_QUANTIZATION_H

#include "base/json.h"
#include "layers/layer.h"

/* What flow_layer_quantize does, after the check of its handle. */
flow_status  flow_quantization_set(flow_layer *layer, int quantizing, double low, double high);
/* The same by what a file says beside a layer's config (lua/flow/layers/quantization.lua); NULL: nothing. */
flow_status  flow_quantization_read(flow_layer *layer, const flow_json *quantization);
/* Whether the layer keeps a variable from being trained: a kernel of FLOW_QUANTIZED_BY_ROW. */
int flow_quantization_freezes(const flow_layer *layer, const flow_variable *variable);
/* Of a layer that has its variables: those are not trainable any more. */
void flow_quantization_freeze(const flow_layer *layer);
/* Fails where the layer cannot train: its range is that of a calibration, or a kernel in bytes would be trained. */
flow_status  flow_quantization_check_training(const flow_layer *layer);
/* While the layer calibrates: widens its range by the values of x, which must have values. */
flow_status  flow_quantization_observe(flow_context *context, flow_layer *layer, flow_tensor *x);
/* Whether a call on x, of any rank, with this kernel {..., outputs} is done in bytes. */
int          flow_quantization_applies(const flow_layer *layer, const flow_tensor *x, const flow_tensor *kernel);
/* The convolution of images with a kernel {height, width, channels / groups, filters}, in the dtype of the images; borrowed. */
flow_tensor *flow_quantization_convolve(flow_expression *e, const flow_layer *layer, flow_tensor *x, flow_tensor *kernel,
                                        const flow_attributes *attributes);
/* x {..., features} . kernel {features, units}, in the dtype of x; borrowed. training: in floats of the same values, with the gradient of
 * the product with the kernel, as if x were not rounded. */
flow_tensor *flow_quantization_multiply(flow_expression *e, const flow_layer *layer, flow_tensor *x, flow_tensor *kernel, int training);
/* The rows of x as bytes with a range for each row would give them, in the dtype of x; borrowed. What bytes gave stays unchanged. */
flow_tensor *flow_quantization_round_rows(flow_expression *e, flow_tensor *x);

#endif
