/* max_pooling3d.c: MaxPooling3D: the largest value of each window of a volume; padding never wins. */
#include <float.h>

#include "layers/pooling.h"
#include "layers/volumes.h"
#include "tensor/tensor.h"

/* A step of flow_volumes_each_plane. */
static flow_tensor *larger(flow_expression *e, flow_layer *layer, const flow_volume_window *window, int plane, flow_tensor *so_far,
                           flow_tensor *images)
{
  (void)layer; (void)plane;
  flow_attributes attributes = flow_volumes_pool(window);
  flow_tensor *y = flow_express_first(e, FLOW_OP_max_pool, images, NULL, &attributes);
  return so_far ? e_maximum(e, so_far, y) : y;      /* of equal values the first */
}

/* The least number in the planes of padding, 0 in the others. */
static flow_tensor *walls(flow_expression *e, const flow_volume_window *window, const flow_tensor *x)
{
  flow_tensor *made = NULL;
  int64_t depth = x->shape[1] + window->padding[0] + window->padding[1];
  flow_status status = flow_tensor_new(FLOW_FLOAT32, 5, (const int64_t[]){ 1, depth, 1, 1, 1 }, &made);
  float *values = status == FLOW_OK ? flow_tensor_elements(made) : NULL;
  for (int64_t i = 0; values && i < depth; i++)
    if (i < window->padding[0] || i >= window->padding[0] + x->shape[1]) values[i] = x->dtype == FLOW_FLOAT16 ? -65504 : -FLT_MAX;
  made = flow_express_keep(e, status, made);
  return made ? flow_express_cast(e, made, x->dtype) : NULL;
}

/* Padding of the depth is zeros, which could win: the walls lower them to the least number, as TensorFlow pads. So a window of -infinity
 * that meets padding gives the least number. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_volume_window window;
  flow_tensor *x = inputs[0], *largest = NULL;
  FLOW_TRY(flow_volumes_window(layer, &input, "pool_size", &window));
  flow_expression e = flow_expression_of(context);
  if (window.padding[0] || window.padding[1])
    x = e_add(&e, flow_volumes_pad(&e, x, window.padding[0], window.padding[1]), walls(&e, &window, inputs[0]));
  flow_status status = x ? flow_volumes_each_plane(context, layer, &window, x, larger, &largest) : e.status;
  largest = flow_express_keep(&e, status, largest);
  return flow_expression_take(&e, flow_volumes_of_images(&e, largest, window.depth), out);
}

const flow_layer_class flow_layer_max_pooling3d = {
  .name = "MaxPooling3D",
  .alias = "MaxPool3D",
  .positional = 4,
  .parameters = flow_volumes_pooling_parameters,
  .call = call,
  .check = flow_pooling_check,
  .doc = "The largest value of each window of depth, height and width."
};
