/* max_pooling3d.c: MaxPooling3D: the largest value of each window of a volume; padding never wins. */
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

/* x with its first plane repeated `before` times before it and its last one `after` times after it. */
static flow_tensor *with_edges(flow_expression *e, flow_tensor *x, int64_t before, int64_t after)
{
  const int64_t all = INT64_MAX / 2;
  const flow_attributes depth = { .axis = { 1 } };
  for (int64_t i = 0; i < before + after && e->status == FLOW_OK; i++) {
    int64_t plane = i < before ? 0 : x->shape[1] - 1;
    const flow_attributes slice = {
      .slice = { .rank = 5, .begin = { 0, plane }, .end = { all, plane + 1, all, all, all }, .step = { 1, 1, 1, 1, 1 } }
    };
    flow_tensor *edge = flow_express(e, FLOW_OP_slice, x, NULL, NULL, &slice);
    x = i < before ? flow_express(e, FLOW_OP_concat, edge, x, NULL, &depth) : flow_express(e, FLOW_OP_concat, x, edge, NULL, &depth);
  }
  return x;
}

/* A window that reaches beyond an end has the plane at that end inside, so repeating it changes no largest value, and the first of equal
 * ones still has the gradient: padding never wins, not even over -infinity. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_signature input = flow_signature_of(inputs[0]);
  flow_volume_window window;
  flow_tensor *largest = NULL;
  FLOW_TRY(flow_volumes_window(layer, &input, "pool_size", &window));
  flow_expression e = flow_expression_of(context);
  flow_tensor *x = with_edges(&e, inputs[0], window.padding[0], window.padding[1]);
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
