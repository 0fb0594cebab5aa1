/* convolution.c: rules of convolution, also of bytes. Images are NHWC {batch, height, width, channels}, kernels HWIO {height,
 * width, channels in / groups, channels out}. Only the batch may be symbolic where a rule computes with a dimension. Attributes come with
 * padding as numbers of cells {top, bottom, left, right}: layers have turned "same" and "valid" into them, which depends on the size of the
 * input. Sums of sizes are checked for overflow, since attributes of a raw op may hold any number. */
#include "ops/byte_range.h"
#include "ops/expression.h"
#include "ops/rules.h"
#include "ops/rules/pooling.h"

/* ---- shapes of convolutions -------------------------------------------------------------------------------------- */

/* What every convolution needs of its attributes, whatever its operands are. Zeros are refused here: only kernels read them as defaults. */
static flow_status check_convolution_attributes(int op, const flow_attributes *attributes)
{
  static const char *const axes[2] = { "height", "width" };
  for (int i = 0; i < 2; i++) {
    if (attributes->convolution.stride[i] < 1 || attributes->convolution.dilation[i] < 1) {
      return flow_rule_fail(op, "stride %d and dilation %d of the %s, expected 1 or more", attributes->convolution.stride[i],
                            attributes->convolution.dilation[i], axes[i]);
    }
  }
  for (int i = 0; i < 4; i++) {
    int padding = attributes->convolution.padding[i];
    if (padding < 0) return flow_rule_fail(op, "padding %d, expected 0 or more", padding);
  }
  if (attributes->convolution.groups < 1) return flow_rule_fail(op, "%d groups, expected 1 or more", attributes->convolution.groups);
  FLOW_TRY(flow_rule_activation(op, attributes->convolution.activation));
  double ceiling = attributes->convolution.ceiling;
  if (ceiling != 0 && !(ceiling > 0)) return flow_rule_fail(op, "a ceiling of %g, expected a number above 0, or 0 for none", ceiling);
  if (attributes->convolution.pool[0] == 0) return FLOW_OK;
  if (ceiling != 0) return flow_rule_fail(op, "a ceiling of %g and a pool, of which only one can be fused", ceiling);
  return flow_rule_maximum_window(op, attributes->convolution.pool, attributes->convolution.pool_stride);
}

/* Groups divide the channels of both sides evenly, and w {kh, kw, ci / groups, co} fits x {n, h, w, ci}. Both have rank 4. */
static flow_status check_channels(int op, int64_t groups, const flow_signature *x, const flow_signature *w)
{
  int64_t in = x->dims[3], out = w->dims[3];
  if (in % groups != 0 || out % groups != 0) {
    return flow_rule_fail(op, "the input has %lld channels and the kernel %lld filters, which %lld groups must both divide", (long long)in,
                          (long long)out, (long long)groups);
  }
  if (w->dims[2] == in / groups) return FLOW_OK;
  return flow_rule_fail(op, "the input %s has %lld channels in %lld group%s, the kernel %s expects %lld in each",
                        flow_shape_text(4, x->dims), (long long)in, (long long)groups, groups == 1 ? "" : "s", flow_shape_text(4, w->dims),
                        (long long)w->dims[2]);
}

/* *y, *index: what a convolution of x and w gives with the activation and the pool that are fused with it. A convolution reads images as
 * fuse.c leaves them: uint8, or float32 beside a kernel of 16 bits. All else has the dtype of the kernel. Output and index of a convolution
 * over x and w: floor((in + padding - d (k - 1) - 1) / s) + 1, then the pool's windows. op: convolution or one of its gradients, whose name
 * a message begins with. */
static flow_status convolved(int op, const flow_attributes *attributes, const flow_signature *x, const flow_signature *w, flow_signature *y,
                             flow_signature *index)
{
  static const char *const axes[2] = { "height", "width" };
  int small = flow_dtype_is_float(w->dtype) && w->dtype != FLOW_FLOAT64;
  if (!small || (x->dtype != FLOW_UINT8 && x->dtype != FLOW_FLOAT32)) {
    FLOW_TRY(flow_rule_float(op, "the input", x));
    FLOW_TRY(flow_rule_same_dtype(op, "the kernel", x->dtype, w));
  }
  FLOW_TRY(flow_rule_rank(op, "the input", x, 4, "{batch, height, width, channels}"));
  FLOW_TRY(flow_rule_rank(op, "the kernel", w, 4, "{height, width, channels in / groups, channels out}"));
  FLOW_TRY(flow_rule_known(op, "the input", x, 1));
  FLOW_TRY(flow_rule_known(op, "the kernel", w, 0));
  FLOW_TRY(check_convolution_attributes(op, attributes));
  FLOW_TRY(check_channels(op, attributes->convolution.groups, x, w));
  int pooled = attributes->convolution.pool[0] > 0;
  flow_signature out = { .dtype = w->dtype, .rank = 4, .dims = { x->dims[0], 0, 0, w->dims[3] } };
  for (int i = 0; i < 2; i++) {
    int64_t kernel = w->dims[i], reach, before_pool = 0;
    if (kernel < 1) return flow_rule_fail(op, "the kernel %s has no %s", flow_shape_text(4, w->dims), axes[i]);
    if (__builtin_mul_overflow((int64_t)attributes->convolution.dilation[i], kernel - 1, &reach) || reach == INT64_MAX) {
      return flow_rule_fail(op, "the dilated kernel's %s overflows", axes[i]);
    }
    int64_t padding = (int64_t)attributes->convolution.padding[2 * i] + attributes->convolution.padding[2 * i + 1];
    FLOW_TRY(flow_rule_window_count(op, axes[i], x->dims[i + 1], padding, reach + 1, attributes->convolution.stride[i], &before_pool));
    out.dims[i + 1] = before_pool;
    if (pooled) {
      FLOW_TRY(flow_rule_window_count(op, axes[i], before_pool, 0, attributes->convolution.pool[i], attributes->convolution.pool_stride[i],
                                      &out.dims[i + 1]));
    }
  }
  flow_extent extent;
  FLOW_TRY(flow_rule_extent(op, 4, out.dims, &extent));
  *y = out;
  *index = pooled ? out : (flow_signature){ .rank = 1, .dims = { 0 } };
  index->dtype = FLOW_UINT8;
  return FLOW_OK;
}

/* x {n, h, w, ci}, w {kh, kw, ci / groups, co} and, with has_bias, b {co}: y, and the index of each window's maximum, which is {0} where no
 * pool is fused. y has the dtype of w. */
flow_status flow_shape_convolution(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                   flow_signature *outputs)
{
  FLOW_TRY(convolved(op, attributes, &inputs[0], &inputs[1], &outputs[0], &outputs[1]));
  if ((attributes->convolution.has_bias != 0) != (input_count == 3)) {
    return flow_rule_fail(op, "%d inputs with has_bias = %d; a bias is the third input", input_count, attributes->convolution.has_bias);
  }
  if (input_count < 3) return FLOW_OK;
  FLOW_TRY(flow_rule_same_dtype(op, "the bias", inputs[1].dtype, &inputs[2]));
  return flow_rule_dims(op, "the bias", &inputs[2], 1, &inputs[1].dims[3]);
}

/* x, w, b as of a convolution, and r {n, .., .., co}, of the same shape as y. The index is {0}, as there. */
flow_status flow_shape_convolution_add(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                       flow_signature *outputs)
{
  FLOW_TRY(flow_shape_convolution(op, attributes, inputs, input_count - 1, outputs));
  if (inputs[0].dtype != FLOW_FLOAT32 || inputs[1].dtype != FLOW_FLOAT32)
    return flow_rule_fail(op, "the input is %s and the kernel %s, expected float32", flow_dtype_name(inputs[0].dtype),
                          flow_dtype_name(inputs[1].dtype));
  if (attributes->convolution.pool[0]) return flow_rule_fail(op, "pools are not fused with it");
  FLOW_TRY(flow_rule_same_dtype(op, "the addend", FLOW_FLOAT32, &inputs[3]));
  return flow_rule_dims(op, "the addend", &inputs[3], 4, outputs[0].dims);
}

/* x {n, h, w, c}, w {kh, kw, 1, c}, p {1, 1, c, co}, then the biases that there are: b {c}, q {co}. Neither convolution fuses a pool. */
flow_status flow_shape_separable_convolution(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                             flow_signature *outputs)
{
  const flow_signature *x = &inputs[0], *w = &inputs[1], *p = &inputs[2];
  flow_signature between, index;
  FLOW_TRY(convolved(op, attributes, x, w, &between, &index));
  if (x->dtype != FLOW_FLOAT32 || w->dtype != FLOW_FLOAT32)
    return flow_rule_fail(op, "the input is %s and the kernel %s, expected float32", flow_dtype_name(x->dtype), flow_dtype_name(w->dtype));
  int64_t channels = x->dims[3], pointwise[4] = { 1, 1, channels, p->rank == 4 ? p->dims[3] : 0 };
  if (attributes->convolution.groups != channels || w->dims[3] != channels)
    return flow_rule_fail(op, "%d groups and %lld filters over %lld channels, expected as many of each", attributes->convolution.groups,
                          (long long)w->dims[3], (long long)channels);
  if (attributes->convolution.pool[0]) return flow_rule_fail(op, "pools are not fused with it");
  FLOW_TRY(flow_rule_activation(op, attributes->convolution.pointwise_activation));
  FLOW_TRY(flow_rule_same_dtype(op, "the second kernel", FLOW_FLOAT32, p));
  FLOW_TRY(flow_rule_rank(op, "the second kernel", p, 4, "{1, 1, channels in, channels out}"));
  FLOW_TRY(flow_rule_known(op, "the second kernel", p, 0));
  FLOW_TRY(flow_rule_dims(op, "the second kernel", p, 4, pointwise));
  int biases = (attributes->convolution.has_bias != 0) + (attributes->convolution.pointwise_has_bias != 0);
  if (input_count != 3 + biases)
    return flow_rule_fail(op, "%d inputs with has_bias = %d and pointwise_has_bias = %d; biases come after the kernels", input_count,
                          attributes->convolution.has_bias, attributes->convolution.pointwise_has_bias);
  for (int i = 3; i < input_count; i++) {
    const flow_signature *like = i == 3 && attributes->convolution.has_bias ? w : p;
    FLOW_TRY(flow_rule_same_dtype(op, "the bias", FLOW_FLOAT32, &inputs[i]));
    FLOW_TRY(flow_rule_dims(op, "the bias", &inputs[i], 1, &like->dims[3]));
  }
  outputs[0] = between;
  outputs[0].dims[3] = p->dims[3];
  flow_extent extent;
  return flow_rule_extent(op, 4, outputs[0].dims, &extent);
}

/* g, x, w, y, index -> dx, dw, db; db is what the gradient of a bias would be, if there is none. g and y have the shape of what convolved()
 * gives; input_size repeats the size of x for kernels that get no x, and is compared here. */
flow_status flow_shape_convolution_gradient(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                            flow_signature *outputs)
{
  (void)input_count;
  const flow_signature *x = &inputs[1], *w = &inputs[2];
  flow_signature y, index;
  FLOW_TRY(convolved(op, attributes, x, w, &y, &index));
  FLOW_TRY(flow_rule_same_dtype(op, "the gradient", w->dtype, &inputs[0]));
  FLOW_TRY(flow_rule_dims(op, "the gradient", &inputs[0], 4, y.dims));
  FLOW_TRY(flow_rule_same_dtype(op, "y", w->dtype, &inputs[3]));
  FLOW_TRY(flow_rule_dims(op, "y", &inputs[3], 4, y.dims));
  FLOW_TRY(flow_rule_same_dtype(op, "the index", FLOW_UINT8, &inputs[4]));
  FLOW_TRY(flow_rule_dims(op, "the index", &inputs[4], index.rank, index.dims));
  if (attributes->convolution.input_size[0] != x->dims[1] || attributes->convolution.input_size[1] != x->dims[2]) {
    return flow_rule_fail(op, "input_size is {%d, %d}, the input is %s", attributes->convolution.input_size[0],
                          attributes->convolution.input_size[1], flow_shape_text(4, x->dims));
  }
  outputs[0] = *x;
  outputs[0].dtype = w->dtype;
  outputs[1] = *w;
  outputs[2] = (flow_signature){ .dtype = w->dtype, .rank = 1, .dims = { w->dims[3] } };
  return FLOW_OK;
}

/* As many outputs as inputs. Kernels between HWIO and OHWI, the order that a device's convolutions read; back: the other way. Their dtype
 * may change on the way. */
flow_status flow_shape_transpose_filters(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                         flow_signature *outputs)
{
  const char *layout = attributes->transpose_filters.back ? "{channels out, height, width, channels in / groups}"
                                                          : "{height, width, channels in / groups, channels out}";
  int dtype = attributes->transpose_filters.dtype, first = attributes->transpose_filters.back ? 1 : 3;
  if (dtype < 0 || dtype >= FLOW_DTYPE_COUNT || !flow_dtype_is_float(dtype))
    return flow_rule_fail(op, "the dtype has number %d, expected that of a float", dtype);
  for (int i = 0; i < input_count; i++) {
    FLOW_TRY(flow_rule_rank(op, "a kernel", &inputs[i], 4, layout));
    outputs[i] = (flow_signature){ .dtype = dtype, .rank = 4 };
    for (int axis = 0; axis < 4; axis++) outputs[i].dims[axis] = inputs[i].dims[(first + axis) % 4];
  }
  return FLOW_OK;
}

/* As convolution_gradient, with what is added to dx, if given, and the sums of dx over pixels {ci}. 32 bits at most: plans make it for
 * layers that train in float32 or 16 bits. */
flow_status flow_shape_convolution_gradient_relu(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                                 flow_signature *outputs)
{
  const flow_signature *x = &inputs[1], *w = &inputs[2];
  FLOW_TRY(flow_shape_convolution_gradient(op, attributes, inputs, input_count, outputs));
  FLOW_TRY(flow_rule_same_dtype(op, "x", w->dtype, x));
  if (w->dtype == FLOW_FLOAT64) return flow_rule_fail(op, "operands are float64, expected floats of at most 32 bits");
  if (input_count > 5) {
    FLOW_TRY(flow_rule_same_dtype(op, "what is added to dx", x->dtype, &inputs[5]));
    FLOW_TRY(flow_rule_dims(op, "what is added to dx", &inputs[5], 4, x->dims));
  }
  outputs[3] = (flow_signature){ .dtype = w->dtype, .rank = 1, .dims = { x->dims[3] } };
  return FLOW_OK;
}

/* ---- shapes of bytes that stand for numbers ---------------------------------------------------------------------- */

/* what: names the array that the bytes stand for. Byte b stands for low + b (high - low) / 255; a range must hold 0, which padding writes.
 * */
static flow_status check_range(int op, const char *what, double low, double high)
{
  if (flow_byte_range_fits(low, high)) return FLOW_OK;
  return flow_rule_fail(op, "the range of %s is %.9g to %.9g, expected one around 0 that is 1e-30 to 1e30 wide", what, low, high);
}

/* float32 x: uint8 of the same shape. Byte 0 is quantization.low, byte 255 quantization.high. */
flow_status flow_shape_quantize(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                flow_signature *outputs)
{
  (void)input_count;
  FLOW_TRY(flow_rule_same_dtype(op, "x", FLOW_FLOAT32, &inputs[0]));
  FLOW_TRY(check_range(op, "x", attributes->quantization.low, attributes->quantization.high));
  outputs[0] = inputs[0];
  outputs[0].dtype = FLOW_UINT8;
  return FLOW_OK;
}

/* float32 w {..., c}: int8 of the same shape, and a float32 scale for each of the c. */
flow_status flow_shape_quantize_weights(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                        flow_signature *outputs)
{
  (void)attributes;
  (void)input_count;
  const flow_signature *w = &inputs[0];
  FLOW_TRY(flow_rule_same_dtype(op, "w", FLOW_FLOAT32, w));
  if (w->rank < 1) return flow_rule_fail(op, "w is a scalar, expected {..., outputs}");
  FLOW_TRY(flow_rule_known(op, "w", w, 0));
  outputs[0] = *w;
  outputs[0].dtype = FLOW_INT8;
  outputs[1] = (flow_signature){ .dtype = FLOW_FLOAT32, .rank = 1, .dims = { w->dims[w->rank - 1] } };
  return FLOW_OK;
}

/* uint8 x and int8 w, then float32 scales {co}, bias {co} and a residual of y's shape. The number of products a sum has is limited, so
 * that sums of bytes fit into int32. */
flow_status flow_shape_quantized_convolution(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                                             flow_signature *outputs)
{
  const flow_signature *x = &inputs[0];
  flow_signature w = inputs[1], index;
  if (x->dtype != FLOW_UINT8 || w.dtype != FLOW_INT8)
    return flow_rule_fail(op, "x is %s and w %s, expected uint8 and int8", flow_dtype_name(x->dtype), flow_dtype_name(w.dtype));
  w.dtype = FLOW_FLOAT32;
  FLOW_TRY(convolved(op, attributes, x, &w, &outputs[0], &index));
  if (attributes->convolution.pool[0]) return flow_rule_fail(op, "pools are not fused with it");
  if (flow_shape_size(3, w.dims) > FLOW_MOST_BYTE_PRODUCTS)
    return flow_rule_fail(op, "the kernel %s adds up more than %d products", flow_shape_text(4, w.dims), FLOW_MOST_BYTE_PRODUCTS);
  FLOW_TRY(check_range(op, "x", attributes->convolution.input_low, attributes->convolution.input_high));
  for (int i = 2; i < input_count; i++) {
    const char *what = i == 2 ? "the scale" : i == 3 ? "the bias" : "the residual";
    FLOW_TRY(flow_rule_same_dtype(op, what, FLOW_FLOAT32, &inputs[i]));
    FLOW_TRY(i < 4 ? flow_rule_dims(op, what, &inputs[i], 1, &w.dims[3]) : flow_rule_dims(op, what, &inputs[i], 4, outputs[0].dims));
  }
  if (attributes->convolution.low == 0 && attributes->convolution.high == 0) return FLOW_OK;
  outputs[0].dtype = FLOW_UINT8;
  return check_range(op, "y", attributes->convolution.low, attributes->convolution.high);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* One op makes dx, dw and db, since they read the same g; the kernel leaves out those that nothing reads. input_scale, by which a plan lets
 * a convolution read bytes, is taken out of the op and put on its results, so that the gradient op knows one kind of input. */
flow_status flow_gradient_convolution(flow_gradient_step *step)
{
  flow_tensor *g = step->output_gradients[0], *x = step->inputs[0], *w = step->inputs[1];
  if (g == NULL) return FLOW_OK;
  flow_attributes attributes = *step->attributes;
  for (int i = 0; i < 2; i++) attributes.convolution.input_size[i] = (int32_t)x->shape[i + 1];
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *operands[5] = { g, x, w, step->outputs[0], step->outputs[1] }, *results[3];
  double scale = attributes.convolution.input_scale;
  attributes.convolution.input_scale = 0;
  flow_express_all(&e, FLOW_OP_convolution_gradient, operands, 5, &attributes, results);
  if (scale != 0) { /* both dx and dw are those of scale * x */
    if (step->needed[0]) results[0] = e_mul(&e, results[0], flow_express_number(&e, results[0], scale));
    if (step->needed[1]) results[1] = e_mul(&e, results[1], flow_express_number(&e, results[1], scale));
  }
  for (int i = 0; i < step->input_count; i++) {
    if (!step->needed[i]) results[i] = NULL;
  }
  return flow_expression_give(&e, step, results);
}

/* Takes the pool out of a convolution's attributes; *pool: those of its max_pool_gradient. */
static flow_status take_pool(int op, flow_attributes *attributes, const flow_tensor *x, const flow_tensor *w, flow_attributes *pool)
{
  flow_signature images = { .dtype = x->dtype, .rank = 4 }, kernel = { .dtype = w->dtype, .rank = 4 }, whole, index;
  for (int i = 0; i < 4; i++) {
    images.dims[i] = x->shape[i];
    kernel.dims[i] = w->shape[i];
  }
  for (int i = 0; i < 2; i++) {
    pool->pool.size[i] = attributes->convolution.pool[i];
    pool->pool.stride[i] = attributes->convolution.pool_stride[i];
    attributes->convolution.pool[i] = attributes->convolution.pool_stride[i] = 0;
  }
  FLOW_TRY(convolved(op, attributes, &images, &kernel, &whole, &index));
  for (int i = 0; i < 2; i++) pool->pool.input_size[i] = (int32_t)whole.dims[i + 1];
  return FLOW_OK;
}

/* The second derivative. With m the activation's mask, dx, dw, db are each linear in m g and in the other operand; their
 * incoming gradients are ux, uw, ub:
 *   for g: m (conv(ux, w) + conv(x, uw) + ub);  for x: what uw lets through, dx(m g, uw);  for w: dw(m g, ux).
 * With a pool, whose maxima m belongs to, m g is spread over the windows, and of the convolutions counts what is at the maxima. */
flow_status flow_gradient_convolution_gradient(flow_gradient_step *step)
{
  flow_tensor *g = step->inputs[0], *x = step->inputs[1], *w = step->inputs[2], *y = step->inputs[3], *index = step->inputs[4];
  flow_tensor *ux = step->output_gradients[0], *uw = step->output_gradients[1], *ub = step->output_gradients[2];
  int masked = step->attributes->convolution.activation == FLOW_RELU;
  flow_attributes linear = *step->attributes;
  linear.convolution.activation = FLOW_LINEAR;
  linear.convolution.has_bias = 0;
  flow_attributes pool = { .pool = { .size = { 0 } } };
  int is_pooled = linear.convolution.pool[0] > 0;
  if (is_pooled) FLOW_TRY(take_pool(step->op, &linear, x, w, &pool));
  flow_expression e = flow_gradient_expression(step);
  flow_tensor *results[5] = { NULL }, *outputs[3];
  if (step->needed[0]) {
    flow_tensor *sum = NULL, *terms[3] = { NULL, NULL, NULL };
    if (ux) {
      flow_express_all(&e, FLOW_OP_convolution, (flow_tensor *[]){ ux, w }, 2, &linear, outputs);
      terms[0] = is_pooled ? flow_express_at_maxima(&e, outputs[0], index, &pool) : outputs[0];
    }
    if (uw) {
      flow_express_all(&e, FLOW_OP_convolution, (flow_tensor *[]){ x, uw }, 2, &linear, outputs);
      terms[1] = is_pooled ? flow_express_at_maxima(&e, outputs[0], index, &pool) : outputs[0];
    }
    if (ub) terms[2] = flow_express_broadcast_like(&e, ub, g);
    for (int i = 0; i < 3; i++) {
      if (terms[i]) sum = sum ? e_add(&e, sum, terms[i]) : terms[i];
    }
    results[0] = sum && masked ? e_relu_gradient(&e, sum, y) : sum;
  }
  if (masked) g = e_relu_gradient(&e, g, y);
  if (is_pooled) { /* from here on as of a convolution that nothing pools; of y only the shape counts */
    flow_tensor *none = NULL;
    y = g = flow_express(&e, FLOW_OP_max_pool_gradient, g, index, NULL, &pool);
    flow_status status = flow_tensor_new(FLOW_UINT8, 1, &(int64_t){ 0 }, &none);
    index = flow_express_keep(&e, status, none);
  }
  if (step->needed[1] && uw) {
    flow_express_all(&e, FLOW_OP_convolution_gradient, (flow_tensor *[]){ g, x, uw, y, index }, 5, &linear, outputs);
    results[1] = outputs[0];
  }
  if (step->needed[2] && ux) {
    flow_express_all(&e, FLOW_OP_convolution_gradient, (flow_tensor *[]){ g, ux, w, y, index }, 5, &linear, outputs);
    results[2] = outputs[1];
  }
  return flow_expression_give(&e, step, results);
}

/* Bytes have no gradient: silence would train the layers before them for nothing. */
flow_status flow_gradient_quantized(flow_gradient_step *step)
{
  return flow_fail(FLOW_UNSUPPORTED, "%s: a quantized layer only predicts: train the float32 model, and quantize it then",
                   flow_op(step->op)->name);
}
