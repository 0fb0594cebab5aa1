/* sample.c: sample_image (x, t -> y) and its gradient (g, t -> dx). Output pixel (column, row) reads the input at the place to which t
 * takes it (image_sampling.h). */
#include "cpu/operand.h"
#include "cpu/vector.h"
#include "image_sampling.h"

/* ---- float32, vectorised over channels ---------------------------------------------------------------------------------------- */

/* `lanes` channels of one output pixel from channel c on: the weighted sum of its taps. scatter is its transpose: g times the weights is
 * added to the taps. */
ALWAYS_INLINE void gather(const sample_taps *t, const float *x, float fill, float *y, int64_t channels, int64_t c, int lanes)
{
  vf total = vf_set(shares_fill(t, (double)fill) ? t->outside * fill : 0);
  for (int i = 0; i < 4; i++) {
    if (t->pixel[i] < 0) continue;
    const float *from = x + t->pixel[i] * channels + c;
    total += (lanes == VL ? vf_load(from) : vf_load_part(from, lanes)) * vf_set(t->weight[i]);
  }
  if (lanes == VL) vf_store(y + c, total);
  else vf_store_part(y + c, total, lanes);
}

/* The transpose of gather. The fill value is a constant and has no gradient. */
ALWAYS_INLINE void scatter(const sample_taps *t, const float *g, float *dx, int64_t channels, int64_t c, int lanes)
{
  for (int i = 0; i < 4; i++) {
    if (t->pixel[i] < 0) continue;
    float *to = dx + t->pixel[i] * channels + c;
    if (lanes == VL) vf_store(to, vf_load(to) + vf_load(g + c) * vf_set(t->weight[i]));
    else vf_store_part(to, vf_load_part(to, lanes) + vf_load_part(g + c, lanes) * vf_set(t->weight[i]), lanes);
  }
}

/* float32, channels in vectors: all channels of a pixel have the same four neighbours and weights. The gradient writes to neighbours of
 * any pixel, so that an image is one thread's. */
static flow_status run_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const int64_t *shape = call->inputs[0].shape;
  int64_t height = shape[1], width = shape[2], channels = shape[3];
  int gradient = call->op == FLOW_OP_sample_image_gradient;
  float fill = (float)call->attributes->sampling.fill_value;
  const float *x = call->inputs[0].data, *t = call->inputs[1].data;
  float *y = call->outputs[0].data;
  for (int64_t image = 0; image < shape[0] && y; image++, t += 8, x += height * width * channels, y += height * width * channels) {
    if (gradient) memset(y, 0, (size_t)(height * width * channels) * sizeof *y);
    for (int64_t pixel = 0; pixel < height * width; pixel++) {
      sample_taps at = sample_taps_at(call->attributes, t, pixel / width, pixel % width, height, width);
      int64_t c = 0;
      for (; c + VL <= channels; c += VL) {
        if (gradient) scatter(&at, x + pixel * channels, y, channels, c, VL);
        else gather(&at, x, fill, y + pixel * channels, channels, c, VL);
      }
      if (c == channels) continue;
      if (gradient) scatter(&at, x + pixel * channels, y, channels, c, (int)(channels - c));
      else gather(&at, x, fill, y + pixel * channels, channels, c, (int)(channels - c));
    }
  }
  return FLOW_OK;
}

/* ---- plain: float32 and float64 ------------------------------------------------------------------------------------------ */

/* The oracle: element by element, any dtypes. */
static flow_status run_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0];
  flow_operand *y = &call->outputs[0];
  int64_t height = x->shape[1], width = x->shape[2], channels = x->shape[3], image_size = height * width * channels;
  int gradient = call->op == FLOW_OP_sample_image_gradient;
  for (int64_t i = 0; i < x->shape[0] * image_size && y->data && gradient; i++) operand_put(y, i, 0);
  for (int64_t i = 0; i < x->shape[0] * image_size && y->data; i++) {
    int64_t image = i / image_size, pixel = i % image_size / channels, c = i % channels;
    float t[8];
    for (int k = 0; k < 8; k++) t[k] = (float)operand_get(&call->inputs[1], image * 8 + k);
    sample_taps at = sample_taps_at(call->attributes, t, pixel / width, pixel % width, height, width);
    double fill = call->attributes->sampling.fill_value, total = shares_fill(&at, fill) ? at.outside * fill : 0;
    for (int k = 0; k < 4; k++) {
      if (at.pixel[k] < 0) continue;
      int64_t other = image * image_size + at.pixel[k] * channels + c;
      if (gradient) operand_put(y, other, operand_get(y, other) + operand_get(x, i) * at.weight[k]);
      else total += operand_get(x, other) * at.weight[k];
    }
    if (!gradient) operand_put(y, i, total);
  }
  return FLOW_OK;
}

static int supports_vector(const flow_call *call) { return call->inputs[0].dtype == FLOW_FLOAT32; }

const flow_kernel FLOW_KERNELS(sample_image)[] = {
  { .variant = "vector", .supports = supports_vector, .run = run_vector },
  { .variant = "plain", .run = run_plain },
  { 0 }
};

const flow_kernel FLOW_KERNELS(sample_image_gradient)[] = {
  { .variant = "vector", .supports = supports_vector, .run = run_vector }, { .variant = "plain", .run = run_plain }, { 0 }
};
