/* resize.c: resize (x -> y) and its gradient (g -> dx), for every interpolation: along each axis an output pixel is a
 * weighted sum of a run of input pixels. prepare() writes the runs and weights of both axes; the rest is the same for all.
 *
 * Formulas and their rounding are TensorFlow's (kernels/image: resize_bilinear_op.cc, resize_nearest_neighbor_op.cc,
 * resize_bicubic_op.cc, resize_area_op.cc, scale_and_translate_op.cc), with half_pixel_centers: coordinates are float32 there, so
 * sums and products of them are rounded to float one by one here, whatever the instruction set contracts. */
#include <math.h>
#include "cpu/vector.h"

/* The run of input pixels of each output pixel of an axis, in one block behind each other. */
typedef struct axis {
  int      in, out, taps;          /* taps: most pixels of a run */
  int32_t *first, *count;          /* [out] */
  double  *weights;                /* [out][taps] */
} axis;

static double product(double a, double b) { return (float)(a * b); }
static double sum(double a, double b) { return (float)(a + b); }

/* ---- weights ------------------------------------------------------------------------------------------------------------- */

static double radius_of(int interpolation)
{
  switch (interpolation) {
  case FLOW_BILINEAR: return 1;
  case FLOW_BICUBIC:  return 2;
  case FLOW_LANCZOS3: return 3;
  default:            return 5;
  }
}

/* R. Keys: Cubic Convolution Interpolation for Digital Image Processing, 1981, a = -1/2. */
static double keys_cubic(double x)
{
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : (1.5 * x - 2.5) * x * x + 1;
}

static double kernel(int interpolation, double x)
{
  const double pi = 3.14159265358979323846, radius = radius_of(interpolation);
  x = fabs(x);
  if (interpolation == FLOW_BILINEAR) return x < 1 ? 1 - x : 0;
  if (interpolation == FLOW_BICUBIC) return keys_cubic(x);
  if (x >= radius) return 0;
  return x <= 1e-3 ? 1 : radius * sin(pi * x) * sin(pi * x / radius) / (pi * pi * x * x);
}

/* Whether the kernel is stretched over the input pixels that an output pixel covers, and how far; Lanczos always goes by
 * this path, the others when they shrink without aliasing. */
static int by_kernel(const flow_attributes *a)
{
  int interpolation = a->resize.interpolation;
  if (interpolation == FLOW_LANCZOS3 || interpolation == FLOW_LANCZOS5) return 1;
  return a->resize.antialias && (interpolation == FLOW_BILINEAR || interpolation == FLOW_BICUBIC);
}

static double stretch_of(const flow_attributes *a, int in, int out)
{
  double shrink = product(1, 1 / product(1, (double)out / in));
  return a->resize.antialias && shrink > 1 ? shrink : 1;
}

static int taps_of(const flow_attributes *a, int in, int out)
{
  double taps;
  if (by_kernel(a)) taps = 2 * ceil(radius_of(a->resize.interpolation) * stretch_of(a, in, out)) + 1;
  else if (a->resize.interpolation == FLOW_AREA) taps = ceil((double)in / out) + 2;
  else taps = a->resize.interpolation == FLOW_BICUBIC ? 4 : a->resize.interpolation == FLOW_BILINEAR ? 2 : 1;
  return taps < in ? (int)taps : in;
}

static int clamp(double x, int in) { return x < 0 ? 0 : x > in - 1 ? in - 1 : (int)x; }

static void weigh_nearest(axis *s, int i)
{
  double scale = product(1, (double)s->in / s->out);
  s->first[i] = clamp(floor(product(i + 0.5, scale)), s->in);
  s->count[i] = 1;
  s->weights[i] = 1;
}

static void weigh_bilinear(axis *s, int i)
{
  double at = sum(product(i + 0.5, product(1, (double)s->in / s->out)), -0.5), below = floor(at);
  int low = clamp(below, s->in), high = clamp(ceil(at), s->in);
  double *w = s->weights + (int64_t)i * s->taps;
  s->first[i] = low;
  s->count[i] = high - low + 1;
  w[0] = 1;
  if (high == low) return;
  w[1] = sum(at, -below);
  w[0] = 1 - w[1];
}

/* Fractions are rounded to 1/1024; pixels outside the image count for nothing. */
static void weigh_bicubic(axis *s, int i)
{
  double at = sum(product(i + 0.5, product(1, (double)s->in / s->out)), -0.5), below = floor(at), total = 0;
  double fraction = rint(sum(at, -below) * 1024) / 1024;
  int low = clamp(below - 1, s->in), high = clamp(below + 2, s->in);
  double *w = s->weights + (int64_t)i * s->taps;
  s->first[i] = low;
  s->count[i] = high - low + 1;
  for (int k = low; k <= high; k++) total += w[k - low] = keys_cubic(fabs(k - below - fraction));
  for (int k = low; k <= high; k++) w[k - low] /= total;
}

/* The share of each input pixel that the output pixel covers. */
static void weigh_area(axis *s, int i)
{
  double scale = product(1, (double)s->in / s->out), from = product(i, scale), to = product(i + 1, scale);
  int low = clamp(floor(from), s->in), high = clamp(ceil(to) - 1, s->in);
  double *w = s->weights + (int64_t)i * s->taps;
  if (high - low >= s->taps) high = low + s->taps - 1;
  s->first[i] = low;
  s->count[i] = high - low + 1;
  for (int k = low; k <= high; k++) w[k - low] = (fmin(k + 1, to) - fmax(k, from)) / (to - from);
}

static void weigh_by_kernel(axis *s, int i, int interpolation, double stretch)
{
  double inverse = product(1, 1 / product(1, (double)s->out / s->in)), at = product(i + 0.5, inverse), total = 0;
  double reach = product(radius_of(interpolation), stretch);
  int low = clamp(ceil(sum(sum(at, -reach), -0.5)), s->in), high = clamp(floor(sum(sum(at, reach), -0.5)), s->in);
  double *w = s->weights + (int64_t)i * s->taps;
  if (high - low >= s->taps) high = low + s->taps - 1;
  s->first[i] = low;
  s->count[i] = high - low + 1;
  for (int k = low; k <= high; k++) total += w[k - low] = kernel(interpolation, (k + 0.5 - at) / stretch);
  for (int k = low; k <= high && fabs(total) >= 1e-35; k++) w[k - low] /= total;
}

static void weigh(axis *s, const flow_attributes *a)
{
  double stretch = stretch_of(a, s->in, s->out);
  for (int i = 0; i < s->out; i++) {
    if (by_kernel(a)) weigh_by_kernel(s, i, a->resize.interpolation, stretch);
    else if (a->resize.interpolation == FLOW_NEAREST) weigh_nearest(s, i);
    else if (a->resize.interpolation == FLOW_BILINEAR) weigh_bilinear(s, i);
    else if (a->resize.interpolation == FLOW_BICUBIC) weigh_bicubic(s, i);
    else weigh_area(s, i);
  }
}

/* ---- the call ---------------------------------------------------------------------------------------------------------------- */

typedef struct resizing { int64_t images, channels; axis rows, columns; } resizing;

static size_t axis_bytes(const axis *s) { return (size_t)s->out * (2 * sizeof(int32_t) + (size_t)s->taps * sizeof(double)); }

static void place(axis *s, void *block)
{
  s->weights = block;
  s->first = (int32_t *)(s->weights + (int64_t)s->out * s->taps);
  s->count = s->first + s->out;
}

static resizing resizing_of(const flow_call *call)
{
  int gradient = call->op == FLOW_OP_resize_gradient;
  const flow_operand *x = gradient ? &call->outputs[0] : &call->inputs[0], *y = gradient ? &call->inputs[0] : &call->outputs[0];
  resizing s = { .images = x->shape[0], .channels = x->shape[3] };
  s.rows = (axis){ .in = (int)x->shape[1], .out = (int)y->shape[1] };
  s.columns = (axis){ .in = (int)x->shape[2], .out = (int)y->shape[2] };
  s.rows.taps = taps_of(call->attributes, s.rows.in, s.rows.out);
  s.columns.taps = taps_of(call->attributes, s.columns.in, s.columns.out);
  place(&s.rows, call->shared);
  if (call->shared) place(&s.columns, (char *)call->shared + axis_bytes(&s.rows));
  return s;
}

static size_t shared_bytes(const flow_call *call)
{
  flow_call bare = *call;
  bare.shared = NULL;
  resizing s = resizing_of(&bare);
  return axis_bytes(&s.rows) + axis_bytes(&s.columns);
}

static flow_status prepare(const flow_call *call)
{
  resizing s = resizing_of(call);
  weigh(&s.rows, call->attributes);
  weigh(&s.columns, call->attributes);
  return FLOW_OK;
}

/* One input row of one image. */
static size_t scratch_bytes(const flow_call *call)
{
  flow_call bare = *call;
  bare.shared = NULL;
  resizing s = resizing_of(&bare);
  return (size_t)(s.columns.in * s.channels) * sizeof(float);
}

/* ---- float32: whole rows, then runs of pixels, vectorised over channels ---------------------------------------------------------- */

ALWAYS_INLINE vf load(const float *p, int lanes) { return lanes == VL ? vf_load(p) : vf_load_part(p, lanes); }

ALWAYS_INLINE void store(float *p, vf v, int lanes)
{
  if (lanes == VL) vf_store(p, v);
  else vf_store_part(p, v, lanes);
}

/* The weighted sum of `count` runs of lanes that lie `step` floats apart. Two are blended so that equal ones stay what they are. */
ALWAYS_INLINE vf blend(const float *x, int64_t step, int count, const double *w, int lanes)
{
  vf first = load(x, lanes);
  if (count == 2) return first + (load(x + step, lanes) - first) * vf_set((float)w[1]);
  vf total = first * vf_set((float)w[0]);
  for (int k = 1; k < count; k++) total += load(x + k * step, lanes) * vf_set((float)w[k]);
  return total;
}

static void blend_all(const float *x, int64_t step, int count, const double *w, float *y, int64_t n)
{
  int64_t i = 0;
  for (; i + VL <= n; i += VL) vf_store(y + i, blend(x + i, step, count, w, VL));
  if (i < n) store(y + i, blend(x + i, step, count, w, (int)(n - i)), (int)(n - i));
}

static void resize_image(const resizing *s, const float *x, float *y, float *row)
{
  int64_t width = s->columns.in * s->channels;
  for (int i = 0; i < s->rows.out; i++) {
    const float *from = x + s->rows.first[i] * width;
    const double *w = s->rows.weights + (int64_t)i * s->rows.taps;
    if (s->rows.count[i] > 1 || w[0] != 1) {
      blend_all(from, width, s->rows.count[i], w, row, width);
      from = row;
    }
    for (int j = 0; j < s->columns.out; j++, y += s->channels) {
      blend_all(from + s->columns.first[j] * s->channels, s->channels, s->columns.count[j],
                s->columns.weights + (int64_t)j * s->columns.taps, y, s->channels);
    }
  }
}

/* y += x * w */
static void add_all(const float *x, float w, float *y, int64_t n)
{
  int64_t i = 0;
  for (; i + VL <= n; i += VL) vf_store(y + i, vf_load(y + i) + vf_load(x + i) * vf_set(w));
  if (i == n) return;
  int lanes = (int)(n - i);
  vf_store_part(y + i, vf_load_part(y + i, lanes) + vf_load_part(x + i, lanes) * vf_set(w), lanes);
}

static void spread_image(const resizing *s, const float *g, float *dx, float *row)
{
  int64_t width = s->columns.in * s->channels;
  memset(dx, 0, (size_t)(s->rows.in * width) * sizeof *dx);
  for (int i = 0; i < s->rows.out; i++) {
    memset(row, 0, (size_t)width * sizeof *row);
    for (int j = 0; j < s->columns.out; j++, g += s->channels) {
      float *to = row + s->columns.first[j] * s->channels;
      const double *w = s->columns.weights + (int64_t)j * s->columns.taps;
      for (int k = 0; k < s->columns.count[j]; k++) add_all(g, (float)w[k], to + k * s->channels, s->channels);
    }
    const double *w = s->rows.weights + (int64_t)i * s->rows.taps;
    for (int k = 0; k < s->rows.count[i]; k++) add_all(row, (float)w[k], dx + (s->rows.first[i] + k) * width, width);
  }
}

static flow_status run_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  resizing s = resizing_of(call);
  const float *from = call->inputs[0].data;
  float *to = call->outputs[0].data;
  int64_t small = s.rows.in * s.columns.in * s.channels, large = s.rows.out * s.columns.out * s.channels;
  for (int64_t image = 0; image < s.images && to; image++) {
    if (call->op == FLOW_OP_resize) resize_image(&s, from + image * small, to + image * large, call->scratch);
    else spread_image(&s, from + image * large, to + image * small, call->scratch);
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

/* Element e of the resized side is a sum over a rectangle of the other one; its weight at (ky, kx), and that element. */
static double weight_at(const resizing *s, int64_t e, int ky, int kx, int64_t *other)
{
  int64_t c = e % s->channels, pixel = e / s->channels, column = pixel % s->columns.out, row = pixel / s->columns.out % s->rows.out;
  int64_t image = pixel / s->columns.out / s->rows.out;
  *other = ((image * s->rows.in + s->rows.first[row] + ky) * s->columns.in + s->columns.first[column] + kx) * s->channels + c;
  return s->rows.weights[row * s->rows.taps + ky] * s->columns.weights[column * s->columns.taps + kx];
}

static void count_at(const resizing *s, int64_t e, int *rows, int *columns)
{
  int64_t pixel = e / s->channels;
  *rows = s->rows.count[pixel / s->columns.out % s->rows.out];
  *columns = s->columns.count[pixel % s->columns.out];
}

static flow_status run_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  resizing s = resizing_of(call);
  flow_operand *to = &call->outputs[0];
  int64_t elements = to->data ? s.images * s.rows.out * s.columns.out * s.channels : 0, other;
  int gradient = call->op == FLOW_OP_resize_gradient, rows, columns;
  if (gradient && to->data) {
    size_t bytes = to->dtype == FLOW_FLOAT64 ? sizeof(double) : sizeof(float);
    memset(to->data, 0, (size_t)(s.images * s.rows.in * s.columns.in * s.channels) * bytes);
  }
  for (int64_t e = 0; e < elements; e++) {
    double total = 0, g = gradient ? get(&call->inputs[0], e) : 0;
    count_at(&s, e, &rows, &columns);
    for (int ky = 0; ky < rows; ky++) {
      for (int kx = 0; kx < columns; kx++) {
        double w = weight_at(&s, e, ky, kx, &other);
        if (gradient) put(to, other, get(to, other) + g * w);
        else total += w * get(&call->inputs[0], other);
      }
    }
    if (!gradient) put(to, e, total);
  }
  return FLOW_OK;
}

static int supports_vector(const flow_call *call) { return call->inputs[0].dtype == FLOW_FLOAT32; }

#define VECTOR                                                                                                                       \
  { .variant = "vector", .supports = supports_vector, .shared_bytes = shared_bytes, .scratch_bytes = scratch_bytes, .prepare = prepare, \
    .run = run_vector }
#define PLAIN { .variant = "plain", .shared_bytes = shared_bytes, .prepare = prepare, .run = run_plain }

const flow_kernel FLOW_KERNELS(resize)[] = { VECTOR, PLAIN, { 0 } };
const flow_kernel FLOW_KERNELS(resize_gradient)[] = { VECTOR, PLAIN, { 0 } };
