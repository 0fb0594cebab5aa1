/* dot.c: Dot: for each sample the products of two tensors, summed along one axis of each: {batch, a..., b...}, where a and b are what is
 * left of their shapes. */
#include "layers/config.h"
#include "layers/express.h"
#include "layers/layer.h"
#include "tensor/axis.h"

static const flow_argument parameters[] = {
  { "axes", FLOW_SHAPE, NULL, NULL },
  { "normalize", FLOW_BOOLEAN, "false", NULL },
  FLOW_LAYER_COMMON
};

/* How many axes are named; whether the inputs have them is known at the build. */
static flow_status check(flow_layer *layer)
{
  const double *axes;
  int count = flow_argument_list(layer->arguments, "axes", &axes);
  if (count == 1 || count == 2) return FLOW_OK;
  return flow_layer_fail(layer, "axes has %d entries, expected one axis or one for each of the two inputs", count);
}

/* The axes of both, counted from 0. */
static flow_status axes_of(const flow_layer *layer, const flow_signature *inputs, int axes[2])
{
  const double *given;
  int count = flow_argument_list(layer->arguments, "axes", &given);
  for (int i = 0; i < 2; i++) {
    double number = given[count == 1 ? 0 : i];
    int rank = inputs[i].rank;
    axes[i] = flow_axis_of(number, rank);
    if (axes[i] < 1 || axes[i] >= rank)
      return flow_layer_fail(layer, "axis %d (counted from 1) is not one of input %d, %s, after the batch",
                             flow_axis_number(flow_axis_given(number)), i + 1, flow_shape_text(rank, inputs[i].dims));
  }
  const int64_t size = inputs[0].dims[axes[0]], other = inputs[1].dims[axes[1]];
  /* One that is not known yet may turn out to be the same. */
  if (size != other && size >= 0 && other >= 0)
    return flow_layer_fail(layer, "axis %d of %s and axis %d of %s (counted from 1) differ in size", axes[0] + 1,
                           flow_shape_text(inputs[0].rank, inputs[0].dims), axes[1] + 1, flow_shape_text(inputs[1].rank, inputs[1].dims));
  if (inputs[0].rank + inputs[1].rank - 3 > FLOW_MAX_RANK)
    return flow_layer_fail(layer, "the result of %d and %d dimensions would have more than %d", inputs[0].rank, inputs[1].rank,
                           FLOW_MAX_RANK);
  return FLOW_OK;
}

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)context; (void)count;
  int axes[2];
  return axes_of(layer, inputs, axes);
}

/* x / |x| along an axis; Keras' ops.normalize takes 1e-12 at least for the sum of squares. */
static flow_tensor *normalize(flow_expression *e, flow_tensor *x, int axis)
{
  flow_tensor *squares = flow_express_sum(e, e_square(e, x), axis, 1);
  if (!squares) return NULL;
  squares = e_maximum(e, squares, flow_express_number(e, squares, 1e-12));
  return e_mul(e, x, flow_express(e, FLOW_OP_rsqrt, squares, NULL, NULL, NULL));
}

/* {batch, others, axis}: what is left of the shape, and the summed axis, at the end. With several other axes of which one is unknown
 * their product is unknown, too. */
static flow_tensor *as_rows(flow_expression *e, flow_tensor *x, int axis)
{
  flow_attributes order = { .transpose = { .rank = x->rank } };
  int64_t others = 1;
  for (int i = 0, next = 0; i < x->rank; i++) {
    if (i != axis) order.transpose.axes[next++] = i;
    if (i > 0 && i != axis) others = x->shape[i] < 0 ? x->shape[i] : others * x->shape[i];
  }
  order.transpose.axes[x->rank - 1] = axis;
  const int64_t dims[] = { x->shape[0], others, x->shape[axis] };
  if (axis != x->rank - 1) x = flow_express(e, FLOW_OP_transpose, x, NULL, NULL, &order);
  return flow_express_reshape(e, x, 3, dims);
}

/* Both inputs as rows of the axis that is added up, {batch, others, size}, and a product of matrices; then the other axes again. */
static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  const flow_signature signatures[] = { flow_signature_of(inputs[0]), flow_signature_of(inputs[1]) };
  int axes[2], rank = 1;
  FLOW_TRY(axes_of(layer, signatures, axes));
  int64_t dims[FLOW_MAX_RANK] = { inputs[0]->shape[0] };
  flow_tensor *rows[2];
  flow_expression e = flow_expression_of(context);
  for (int i = 0; i < 2; i++) {
    for (int axis = 1; axis < inputs[i]->rank; axis++)
      if (axis != axes[i]) dims[rank++] = inputs[i]->shape[axis];
    flow_tensor *x = flow_argument_boolean(layer->arguments, "normalize") ? normalize(&e, inputs[i], axes[i]) : inputs[i];
    rows[i] = x ? as_rows(&e, x, axes[i]) : NULL;
  }
  if (rank == 1) dims[rank++] = 1;
  flow_tensor *y = flow_express(&e, FLOW_OP_matmul, rows[0], rows[1], NULL, &(flow_attributes){ .matmul = { .transpose_b = 1 } });
  return flow_expression_take(&e, flow_express_reshape(&e, y, rank, dims), out);
}

/* The result has no steps of one input: it carries no mask, as in Keras, and without a warning. */
static flow_status compute_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out)
{
  (void)context; (void)layer; (void)inputs; (void)masks; (void)count; (void)out;
  return FLOW_OK;
}


/* Keras wants a number for one axis, and takes a list as two. */
static void config(const flow_layer *layer, flow_json *object)
{
  const double *axes;
  flow_config_add_common(object, layer);
  flow_config_add_arguments(object, layer->class->parameters, layer->arguments);
  if (flow_argument_list(layer->arguments, "axes", &axes) != 1) return;
  flow_json_remove(object, "axes");
  flow_json_put(object, "axes", flow_json_make(FLOW_JSON_NUMBER, axes[0], NULL));
}

const flow_layer_class flow_layer_dot = {
  .name = "Dot", .positional = 2, .parameters = parameters, .min_inputs = 2, .max_inputs = 2, .build = build, .call = call, .check = check,
  .supports_masking = 1, .compute_mask = compute_mask, .config = config,
  .doc = "Products of two tensors, summed along one axis of each, sample by sample."
};
