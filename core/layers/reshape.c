/* reshape.c: Reshape: each sample under another shape; the batch stays. Elements keep their row-major order. A size of -1 is worked out:
 * here if the sample's sizes are known, else by the op when it runs. */
#include "layers/express.h"
#include "layers/layer.h"

static const flow_argument parameters[] = {
  { "target_shape", FLOW_SHAPE, NULL, NULL },      /* without the batch; one dimension may be -1: inferred */
  FLOW_LAYER_COMMON
};

/* A size of 0 is allowed: samples may have no elements. */
static flow_status check(flow_layer *layer)
{
  const double *target;
  int rank = flow_argument_list(layer->arguments, "target_shape", &target), unknown = 0;
  if (rank + 1 > FLOW_MAX_RANK)
    return flow_layer_fail(layer, "target_shape has %d dimensions, at most %d are possible", rank, FLOW_MAX_RANK - 1);
  for (int i = 0; i < rank; i++) {
    if (target[i] < -1) return flow_layer_fail(layer, "target_shape holds %.15g, expected sizes, and -1 for one to infer", target[i]);
    unknown += target[i] < 0;
  }
  if (unknown > 1) return flow_layer_fail(layer, "target_shape holds -1 %d times: only one dimension can be inferred", unknown);
  return FLOW_OK;
}

/* target_shape is that of a sample. Where all sizes are known the element counts are compared here, for a message in the layer's terms. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  if (input.rank == 0) return flow_layer_fail(layer, "input is a scalar, expected at least 1 dimension {batch, ...}");
  const double *target;
  int rank = flow_argument_list(layer->arguments, "target_shape", &target), inferred = -1;
  int64_t dims[FLOW_MAX_RANK], size = flow_shape_size(input.rank - 1, input.dims + 1), rest = 1;   /* size -1: unknown */
  dims[0] = input.dims[0];
  for (int i = 0; i < rank; i++) {
    dims[i + 1] = (int64_t)target[i];
    if (dims[i + 1] < 0) inferred = i + 1;
    else if (__builtin_mul_overflow(rest, dims[i + 1], &rest)) return flow_layer_fail(layer, "target_shape is too large");
  }
  if (inferred >= 0) dims[inferred] = size < 0 ? INT64_MIN : rest > 0 && size % rest == 0 ? size / rest : -1;
  if (size >= 0 && (inferred < 0 ? rest != size : dims[inferred] < 0)) {
    char text[128];
    flow_text shown = flow_text_into(text, sizeof text);
    for (int i = 0; i < rank; i++) flow_text_add(&shown, i ? ", %lld" : "%lld", (long long)target[i]);
    return flow_layer_fail(layer, "a sample %s has %lld elements, which do not fit target_shape {%s}",
                           flow_shape_text(input.rank - 1, input.dims + 1), (long long)size, rank ? text : "");
  }
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, flow_express_reshape(&e, inputs[0], rank + 1, dims), out);
}

const flow_layer_class flow_layer_reshape = {
  .name = "Reshape",
  .positional = 1,
  .parameters = parameters,
  .call = call,
  .check = check,
  .doc = "Each sample under target_shape; one dimension may be -1: inferred."
};
