/* average_pooling3d.c: AveragePooling3D: the mean of each window of a volume; padding does not count. The mean of a window is that of the
 * means of its planes. */
#include "layers/pooling.h"
#include "layers/volumes.h"
#include "tensor/tensor.h"

/* A step of flow_volumes_each_plane: the means of the planes are added up. Zero padding of the depth adds nothing. */
static flow_tensor *add_plane(flow_expression *e, flow_layer *layer, const flow_volume_window *window, int plane, flow_tensor *so_far,
                              flow_tensor *images)
{
  (void)layer; (void)plane;
  flow_attributes attributes = flow_volumes_pool(window);
  flow_tensor *y = flow_express_first(e, FLOW_OP_average_pool, images, NULL, &attributes);
  return so_far ? e_add(e, so_far, y) : y;
}

/* How many planes of each window are not padding, {1, depth, 1, 1, 1}. */
static flow_tensor *planes_of(flow_expression *e, const flow_volume_window *window, int64_t depth, int dtype)
{
  flow_tensor *made = NULL;
  flow_status status = flow_tensor_new(FLOW_FLOAT32, 5, (const int64_t[]){ 1, window->depth, 1, 1, 1 }, &made);
  float *counts = status == FLOW_OK ? flow_tensor_elements(made) : NULL;
  for (int64_t i = 0; counts && i < window->depth; i++)
    for (int plane = 0; plane < window->size[0]; plane++) {
      int64_t from = i * window->stride[0] + plane - window->padding[0];
      counts[i] += from >= 0 && from < depth;
    }
  made = flow_express_keep(e, status, made);
  return made ? flow_express_cast(e, made, dtype) : NULL;
}

/* The sum over the planes divided by how many of them are not padding: a plane of padding has the mean 0. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_volume_window window;
  flow_tensor *sum = NULL;
  FLOW_TRY(flow_volumes_window(layer, &input, "pool_size", &window));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = flow_volumes_pad(&e, inputs[0], window.padding[0], window.padding[1]);
  flow_status status = x ? flow_volumes_each_plane(context, layer, &window, x, add_plane, &sum) : e.status;
  sum = flow_express_keep(&e, status, sum);
  flow_tensor *y = flow_volumes_of_images(&e, sum, window.depth);
  return flow_expression_take(&e, y ? e_div(&e, y, planes_of(&e, &window, input.dims[1], y->dtype)) : NULL, out);
}

const flow_layer_class flow_layer_average_pooling3d = {
  .name = "AveragePooling3D",
  .alias = "AvgPool3D",
  .positional = 4,
  .parameters = flow_volumes_pooling_parameters,
  .call = call,
  .check = flow_pooling_check,
  .doc = "The mean of each window of depth, height and width; padding does not count."
};
