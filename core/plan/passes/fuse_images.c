/* fuse_images.c: images whose channels do not fill what a device's convolutions load at once are copied for them, with more channels
 * (flow_device.transposed_bytes): that copy can round and scale, too, so that no separate pass over memory does. Such are the images that a
 * model begins with. With "half" for either 16-bit dtype, s a number:
 *
 *   convolution(half(x * s), w)  ->  convolution(x, w), input scale s;  and so convolution_gradient(g, half(x * s), w)
 *   convolution_gradient(g, x, w) -> dw;  dw * s                          ->  dw, input scale s; not in exact mode
 *
 * x is float32; the factor may be missing in the first one, and the images may get another shape before the convolution; what rounds x
 * before it is scaled is left out, unless in exact mode. No gradient of x may be wanted, and nothing else reads what is left out. Runs
 * when a plan for a device is made, after casts were folded (fold_casts.c). */
#include <math.h>

#include "plan/passes/fusion.h"
#include "tensor/place.h"

enum { IMAGE_RANK = 4, KERNEL_GRADIENT = 1 };

static const flow_signature *signature_of(const flow_fusion *f, int value) { return &f->graph->values[value].signature; }

static int is_half(int dtype) { return dtype == FLOW_FLOAT16 || dtype == FLOW_BFLOAT16; }

/* Whether the device's convolutions copy such images anyway, since their channels do not fill what it loads at once. */
static int is_copied(const flow_fusion *f, int images, int dtype)
{
  const flow_signature *s = signature_of(f, images);
  int bytes = flow_place_accelerator(f->graph->place)->device.transposed_bytes;
  return s->rank == IMAGE_RANK && bytes > 0 && s->dims[3] * (int64_t)flow_dtype_size(dtype) % bytes != 0;
}

/* The node that makes `value` by `op`; NULL: another one. */
static const flow_node *maker(const flow_fusion *f, int value, int op)
{
  const flow_value *v = &f->graph->values[value];
  return v->kind == FLOW_VALUE_RESULT && f->graph->nodes[v->node].op == op ? &f->graph->nodes[v->node] : NULL;
}

/* The operand that a product multiplies with a number, *scale; -1: it is not a product, or has no such number. */
static int factor_of(const flow_fusion *f, const flow_node *product, double *scale)
{
  for (int side = 0; product && side < 2; side++) {
    double number = flow_constant_number(f->graph, product->inputs[1 - side]);
    const flow_signature *x = signature_of(f, product->inputs[side]), *y = signature_of(f, product->outputs[0]);
    if (number == 0 || !isfinite(number) || !flow_shape_equal(x->rank, x->dims, y->rank, y->dims)) continue;
    *scale = number;
    return product->inputs[side];
  }
  return -1;
}

/* What a cast made, for this reader alone; `value` itself where none did. */
static int before_cast(const flow_fusion *f, int value)
{
  const flow_node *cast = f->readers[value] == 1 ? maker(f, value, FLOW_OP_cast) : NULL;
  return cast ? cast->inputs[0] : value;
}

/* The same images before a policy rounded them to 16 bits and a layer made floats of them, as Rescaling does. */
static int before_rounding(const flow_fusion *f, int images)
{
  int half = is_half(signature_of(f, images)->dtype) ? images : before_cast(f, images);
  if (f->graph->exact || !is_half(signature_of(f, half)->dtype)) return images;
  return before_cast(f, half);
}

/* The images of float32 of which `value` are the rounded ones, times *scale (0: as they are); -1: it is something else. */
static int images_of(const flow_fusion *f, int value, double *scale)
{
  const flow_node *cast = maker(f, value, FLOW_OP_cast);
  int images = cast ? cast->inputs[0] : factor_of(f, maker(f, value, FLOW_OP_mul), scale);
  if (cast && f->readers[images] == 1) {
    int factor = factor_of(f, maker(f, images, FLOW_OP_mul), scale);
    if (factor >= 0) images = factor;
  }
  if (images >= 0 && *scale != 0) images = before_rounding(f, images);
  return images >= 0 && signature_of(f, images)->dtype == FLOW_FLOAT32 ? images : -1;
}

/* Which input of the node are images that it can take as they are; -1: none. */
static int image_input(const flow_fusion *f, const flow_node *node)
{
  int gradient = node->op == FLOW_OP_convolution_gradient;
  if ((!gradient && node->op != FLOW_OP_convolution) || node->attributes.convolution.groups > 1) return -1;
  if (node->attributes.convolution.input_scale != 0 || (gradient && f->readers[node->outputs[0]] > 0)) return -1;
  return gradient;
}

/* Whether anything but the image inputs of convolutions reads a value. f->readers counts all reads, those of returned values included. */
static int has_other_readers(const flow_fusion *f, int value)
{
  int count = 0;
  for (int n = 0; n < f->graph->node_count; n++) {
    const flow_node *node = &f->graph->nodes[n];
    for (int i = 0; f->live[n] && i < node->input_count; i++) count += node->inputs[i] == value && i == image_input(f, node);
  }
  return count != f->readers[value];
}

/* The node that only gives its input the shape of `value`; NULL: another one makes that. */
static flow_node *reshape_of(const flow_fusion *f, int value)
{
  const flow_value *v = &f->graph->values[value];
  flow_node *node = v->kind == FLOW_VALUE_RESULT ? &f->graph->nodes[v->node] : NULL;
  return node && (flow_op(node->op)->flags & FLOW_OP_ALIAS) ? node : NULL;
}

/* What `value` was before it got its shape, as far as nothing else reads what is between. */
static int before_shapes(const flow_fusion *f, int value)
{
  for (const flow_node *node = reshape_of(f, value); node && f->readers[node->inputs[0]] == 1; node = reshape_of(f, value))
    value = node->inputs[0];
  return value;
}

/* Lets shapes that led from `first` to `last` lead from `images`, which may have another dtype, to the value that this returns. */
static int shape_instead(flow_fusion *f, int first, int last, int images)
{
  if (first == last) return images;
  for (int value = last; value != first;) {
    flow_node *node = reshape_of(f, value);
    f->graph->values[value].signature.dtype = signature_of(f, images)->dtype;
    value = node->inputs[0];
    if (value == first) node->inputs[0] = images;
  }
  return last;
}

/* The conversion of pictures at `index` is left out if convolutions are all that read its result: they then read the pictures before it,
 * and multiply by the scale while they load. */
static flow_status read_images(flow_fusion *f, int index)
{
  int value = f->graph->nodes[index].inputs[0], first = before_shapes(f, value);
  double scale = 0;
  if (!is_half(signature_of(f, value)->dtype) || !is_copied(f, value, signature_of(f, value)->dtype)) return FLOW_OK;
  int images = images_of(f, first, &scale);
  if (images < 0 || has_other_readers(f, value)) return FLOW_OK;
  images = shape_instead(f, first, value, images);
  for (int n = 0; n < f->graph->node_count; n++) {
    flow_node *node = &f->graph->nodes[n];
    int input = f->live[n] ? image_input(f, node) : -1;
    if (input < 0 || node->inputs[input] != value) continue;
    node->inputs[input] = images;
    node->attributes.convolution.input_scale = scale;
  }
  return FLOW_OK;
}

/* The other direction: a gradient of the kernel that is multiplied by the same scale afterwards takes the product over. Not under
 * set_precision("exact"), since it rounds otherwise; not if anyone else reads the gradient. */
static flow_status scale_images(flow_fusion *f, int index)
{
  double scale;
  const flow_node *product = &f->graph->nodes[index];
  int dw = factor_of(f, product, &scale), result = product->outputs[0];
  if (dw < 0 || f->graph->exact || f->readers[dw] != 1 || f->returned[result]) return FLOW_OK;
  const flow_value *v = &f->graph->values[dw];
  if (v->kind != FLOW_VALUE_RESULT || v->output != KERNEL_GRADIENT) return FLOW_OK;
  flow_node *gradient = &f->graph->nodes[v->node];
  if (gradient->op != FLOW_OP_convolution_gradient || image_input(f, gradient) < 0) return FLOW_OK;
  int from = signature_of(f, dw)->dtype, to = signature_of(f, result)->dtype;
  if (!is_copied(f, gradient->inputs[1], from) || (from != to && !(is_half(from) && to == FLOW_FLOAT32))) return FLOW_OK;
  gradient->attributes.convolution.input_scale = scale;
  f->graph->values[dw].signature.dtype = to;
  f->same[result] = dw;
  return FLOW_OK;
}

flow_status flow_graph_fuse_images(flow_graph *graph, const char *live, const int *outputs, int output_count)
{
  FLOW_TRY(flow_fusion_run(graph, live, outputs, output_count, FLOW_OP_mul, scale_images));
  return flow_fusion_run(graph, live, outputs, output_count, FLOW_OP_convolution, read_images);
}
