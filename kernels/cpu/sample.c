/* sample.c: sample_image (x, t -> y), its gradient (g, t -> dx), and sample_uniform, the random numbers behind t.
 *
 * Output pixel (column, row) reads the input at the place to which t takes it. Outside the image the fill mode says what stands
 * there (TensorFlow: kernels/image/image_ops.h, ImageProjectiveTransformV3, after SciPy's map_coordinates). Reading is a sum of at
 * most four pixels, and of the fill value with the weight of those that are outside.
 *
 * Number e of sample s comes from word e % 4 of Philox block (low = e / 4, high = s), as a number of 24 bits; samples count
 * through the global batch, as in dropout.c. */
#include <math.h>
#include "cpu/random.h"
#include "cpu/vector.h"

/* ---- coordinates ----------------------------------------------------------------------------------------------------------- */

static float clamp(float x, float last) { return !(x >= 0) ? 0 : x > last ? last : x; }

/* dcba|abcd|dcba: period 2 n, and -1 - x for x in front of the image. */
static float reflect(float x, float n)
{
  float period = 2 * n;
  if (x < 0) {
    x += period * truncf(-x / period);
    x = x < -n ? x + period : -x - 1;
  } else if (x > n - 1) {
    x -= period * truncf(x / period);
    if (x >= n) x = period - x - 1;
  }
  return clamp(x, n - 1);
}

/* abcd|abcd|abcd, where one pixel's distance lies between d and a, too. */
static float wrap(float x, float n)
{
  if (n <= 1) return 0;
  if (x < 0) x += n * (truncf(-x / (n - 1)) + 1);
  else if (x > n - 1) x -= n * truncf(x / (n - 1));
  return clamp(x, n - 1);
}

static float inside(int fill_mode, float x, int64_t size)
{
  float n = (float)size;
  switch (fill_mode) {
  case FLOW_FILL_REFLECT: return reflect(x, n);
  case FLOW_FILL_WRAP:    return wrap(x, n);
  case FLOW_FILL_NEAREST: return clamp(x, n - 1);
  default:                return x;
  }
}

/* The pixels that an output pixel is made of: at most two rows by two columns. */
typedef struct taps { int count; int64_t pixel[4]; float weight[4], outside; } taps;

static void add_tap(taps *t, int64_t row, int64_t column, float weight, int64_t height, int64_t width)
{
  if (row < 0 || row >= height || column < 0 || column >= width) {
    t->outside += weight;
    return;
  }
  t->pixel[t->count] = row * width + column;
  t->weight[t->count++] = weight;
}

static taps taps_at(const flow_attributes *a, const float *t, int64_t row, int64_t column, int64_t height, int64_t width)
{
  taps result = { 0 };
  double c = (double)column, r = (double)row, k = t[6] * c + t[7] * r + 1;       /* products are exact: contraction changes nothing */
  float x = inside(a->sampling.fill_mode, (float)((t[0] * c + t[1] * r + t[2]) / k), width);
  float y = inside(a->sampling.fill_mode, (float)((t[3] * c + t[4] * r + t[5]) / k), height);
  if (k == 0 || !(x > -2 && x < (float)width + 1 && y > -2 && y < (float)height + 1)) {      /* all of it, also of NaN */
    result.outside = 1;
    return result;
  }
  if (a->sampling.interpolation == FLOW_NEAREST) {
    add_tap(&result, (int64_t)roundf(y), (int64_t)roundf(x), 1, height, width);
    return result;
  }
  float left = floorf(x), top = floorf(y), right_weight = x - left, bottom_weight = y - top;
  float weights[4] = { (1 - bottom_weight) * (1 - right_weight), (1 - bottom_weight) * right_weight,
                       bottom_weight * (1 - right_weight), bottom_weight * right_weight };
  for (int i = 0; i < 4; i++) {
    if (weights[i] != 0) add_tap(&result, (int64_t)top + i / 2, (int64_t)left + i % 2, weights[i], height, width);
  }
  return result;
}

/* ---- float32, vectorised over channels ---------------------------------------------------------------------------------------- */

ALWAYS_INLINE void gather(const taps *t, const float *x, float fill, float *y, int64_t channels, int64_t c, int lanes)
{
  vf total = vf_set(t->outside * fill);
  for (int i = 0; i < t->count; i++) {
    const float *from = x + t->pixel[i] * channels + c;
    total += (lanes == VL ? vf_load(from) : vf_load_part(from, lanes)) * vf_set(t->weight[i]);
  }
  if (lanes == VL) vf_store(y + c, total);
  else vf_store_part(y + c, total, lanes);
}

ALWAYS_INLINE void scatter(const taps *t, const float *g, float *dx, int64_t channels, int64_t c, int lanes)
{
  for (int i = 0; i < t->count; i++) {
    float *to = dx + t->pixel[i] * channels + c;
    if (lanes == VL) vf_store(to, vf_load(to) + vf_load(g + c) * vf_set(t->weight[i]));
    else vf_store_part(to, vf_load_part(to, lanes) + vf_load_part(g + c, lanes) * vf_set(t->weight[i]), lanes);
  }
}

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
      taps at = taps_at(call->attributes, t, pixel / width, pixel % width, height, width);
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

static double get(const flow_operand *x, int64_t i)
{
  return x->dtype == FLOW_FLOAT64 ? ((const double *)x->data)[i] : ((const float *)x->data)[i];
}

static void put(flow_operand *x, int64_t i, double value)
{
  if (x->dtype == FLOW_FLOAT64) ((double *)x->data)[i] = value;
  else ((float *)x->data)[i] = (float)value;
}

static flow_status run_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *x = &call->inputs[0];
  flow_operand *y = &call->outputs[0];
  int64_t height = x->shape[1], width = x->shape[2], channels = x->shape[3], image_size = height * width * channels;
  int gradient = call->op == FLOW_OP_sample_image_gradient;
  for (int64_t i = 0; i < x->shape[0] * image_size && y->data && gradient; i++) put(y, i, 0);
  for (int64_t i = 0; i < x->shape[0] * image_size && y->data; i++) {
    int64_t image = i / image_size, pixel = i % image_size / channels, c = i % channels;
    float t[8];
    for (int k = 0; k < 8; k++) t[k] = (float)get(&call->inputs[1], image * 8 + k);
    taps at = taps_at(call->attributes, t, pixel / width, pixel % width, height, width);
    double total = at.outside * call->attributes->sampling.fill_value;
    for (int k = 0; k < at.count; k++) {
      int64_t other = image * image_size + at.pixel[k] * channels + c;
      if (gradient) put(y, other, get(y, other) + get(x, i) * at.weight[k]);
      else total += get(x, other) * at.weight[k];
    }
    if (!gradient) put(y, i, total);
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
  { .variant = "vector", .supports = supports_vector, .run = run_vector },
  { .variant = "plain", .run = run_plain },
  { 0 }
};

/* ---- random numbers ------------------------------------------------------------------------------------------------------------ */

static flow_status run_uniform(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  double low = call->attributes->random.low, high = call->attributes->random.high;
  uint64_t key = random_step_key(call->attributes->random.seed, call->attributes->random.stream, call->scalars);
  int64_t rows = call->outputs[0].shape[0], count = call->outputs[0].shape[1];
  float *y = call->outputs[0].data, limit = nextafterf((float)high, (float)low);
  for (int64_t row = 0; row < rows && y; row++) {
    uint64_t sample = (uint64_t)(call->scalars->first_sample + call->first_row + row);
    for (int64_t e = 0; e < count; e++, y++) {
      uint32_t word = flow_philox(key, (uint64_t)e / 4, sample).word[e % 4];
      *y = (float)(low + (high - low) * ((double)(word >> 8) * 0x1p-24));
      if (*y > limit) *y = limit;                          /* rounded up to high, which is excluded */
    }
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(sample_uniform)[] = { { .variant = "philox", .run = run_uniform }, { 0 } };
