/* resize.c: resize (x -> y) and its gradient (g -> dx), for every interpolation: along each axis an output pixel is a
 * weighted sum of a run of input pixels. prepare() writes the runs and weights of both axes (resize_weights.h); the rest is the
 * same for all. */
#include "cpu/operand.h"
#include "cpu/vector.h"
#include "resize_weights.h"

/* ---- the call ---------------------------------------------------------------------------------------------------------------- */

/* The sizes of a call, `in` those of x and `out` those of y also for the gradient, and where its weights are in `shared`. */
typedef struct resizing { int64_t images, channels; resize_axis rows, columns; } resizing;

/* With `shared` NULL the arrays of both axes are not there: for sizes alone. */
static resizing resizing_of(const flow_call *call)
{
  int gradient = call->op == FLOW_OP_resize_gradient;
  const flow_operand *x = gradient ? &call->outputs[0] : &call->inputs[0], *y = gradient ? &call->inputs[0] : &call->outputs[0];
  resizing s = { .images = x->shape[0], .channels = x->shape[3] };
  s.rows = (resize_axis){ .in = (int)x->shape[1], .out = (int)y->shape[1] };
  s.columns = (resize_axis){ .in = (int)x->shape[2], .out = (int)y->shape[2] };
  s.rows.taps = resize_taps(call->attributes, s.rows.in, s.rows.out);
  s.columns.taps = resize_taps(call->attributes, s.columns.in, s.columns.out);
  place_axis(&s.rows, call->shared);
  if (call->shared) place_axis(&s.columns, (char *)call->shared + resize_axis_bytes(&s.rows));
  return s;
}

/* The weights of rows, then those of columns. */
static size_t shared_bytes(const flow_call *call)
{
  flow_call bare = *call;
  bare.shared = NULL;
  resizing s = resizing_of(&bare);
  return resize_axis_bytes(&s.rows) + resize_axis_bytes(&s.columns);
}

/* The weights of both axes, once for all images. */
static flow_status prepare(const flow_call *call)
{
  resizing s = resizing_of(call);
  for (int i = 0; i < s.rows.out; i++) weigh_output(&s.rows, call->attributes, i);
  for (int i = 0; i < s.columns.out; i++) weigh_output(&s.columns, call->attributes, i);
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

/* The first `lanes` floats; lanes beyond are 0 or stay unchanged. */
ALWAYS_INLINE vf load(const float *p, int lanes) { return lanes == VL ? vf_load(p) : vf_load_part(p, lanes); }

ALWAYS_INLINE void store(float *p, vf v, int lanes)
{
  if (lanes == VL) vf_store(p, v);
  else vf_store_part(p, v, lanes);
}

/* The weighted sum of `count` runs of lanes that are `step` floats apart. Two are blended by a formula that keeps the value of two equal
 * ones. */
ALWAYS_INLINE vf blend(const float *x, int64_t step, int count, const double *w, int lanes)
{
  vf first = load(x, lanes);
  if (count == 2) return first + (load(x + step, lanes) - first) * vf_set((float)w[1]);
  vf total = first * vf_set((float)w[0]);
  for (int k = 1; k < count; k++) total += load(x + k * step, lanes) * vf_set((float)w[k]);
  return total;
}

/* n floats, a vector at a time: channels of a pixel, or a whole row. */
static void blend_all(const float *x, int64_t step, int count, const double *w, float *y, int64_t n)
{
  int64_t i = 0;
  for (; i + VL <= n; i += VL) vf_store(y + i, blend(x + i, step, count, w, VL));
  if (i < n) store(y + i, blend(x + i, step, count, w, (int)(n - i)), (int)(n - i));
}

/* The same for a few channels, whose number the compiler knows. */
ALWAYS_INLINE void blend_few(const resize_axis *a, const float *from, float *y, int channels)
{
  for (int j = 0; j < a->out; j++, y += channels) {
    const float *x = from + (int64_t)a->first[j] * channels;
    const double *w = a->weights + (int64_t)j * a->taps;
    const int count = a->count[j];
    for (int c = 0; c < channels; c++) {
      if (count == 2) {
        y[c] = x[c] + (x[channels + c] - x[c]) * (float)w[1];
        continue;
      }
      float total = x[c] * (float)w[0];
      for (int k = 1; k < count; k++) total += x[k * channels + c] * (float)w[k];
      y[c] = total;
    }
  }
}

/* A row of the result from one that is as wide as x. */
static void blend_columns(const resizing *s, const float *from, float *y)
{
  const resize_axis *a = &s->columns;
  switch (s->channels) {
  case 1: blend_few(a, from, y, 1); return;
  case 2: blend_few(a, from, y, 2); return;
  case 3: blend_few(a, from, y, 3); return;
  case 4: blend_few(a, from, y, 4); return;
  default: break;
  }
  for (int j = 0; j < a->out; j++, y += s->channels)
    blend_all(from + a->first[j] * s->channels, s->channels, a->count[j], a->weights + (int64_t)j * a->taps, y, s->channels);
}

/* Whether output i of an axis is made as the one before it, as where pixels are repeated. */
static int repeats_last(const resize_axis *a, int i)
{
  const double *w = a->weights + (int64_t)i * a->taps;
  if (i == 0 || a->first[i] != a->first[i - 1] || a->count[i] != a->count[i - 1]) return 0;
  return memcmp(w, w - a->taps, (size_t)a->count[i] * sizeof *w) == 0;
}

/* Rows first: the rows of the image that a row of the result needs, blended into `row`, of which the columns are blended. A row that is
 * one of the image's is not copied, and one that is like the last one is. */
static void resize_image(const resizing *s, const float *x, float *y, float *row)
{
  const int64_t width = s->columns.in * s->channels, wide = s->columns.out * s->channels;
  for (int i = 0; i < s->rows.out; i++, y += wide) {
    const float *from = x + s->rows.first[i] * width;
    const double *w = s->rows.weights + (int64_t)i * s->rows.taps;
    if (repeats_last(&s->rows, i)) {
      memcpy(y, y - wide, (size_t)wide * sizeof *y);
      continue;
    }
    if (s->rows.count[i] > 1 || w[0] != 1) {
      blend_all(from, width, s->rows.count[i], w, row, width);
      from = row;
    }
    blend_columns(s, from, y);
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

/* The transpose of blend_few. */
ALWAYS_INLINE void spread_few(const resize_axis *a, const float *g, float *row, int channels)
{
  for (int j = 0; j < a->out; j++, g += channels) {
    float *to = row + (int64_t)a->first[j] * channels;
    const double *w = a->weights + (int64_t)j * a->taps;
    for (int k = 0; k < a->count[j]; k++)
      for (int c = 0; c < channels; c++) to[k * channels + c] += g[c] * (float)w[k];
  }
}

/* The transpose of blend_columns: adds to `row`. */
static void spread_columns(const resizing *s, const float *g, float *row)
{
  const resize_axis *a = &s->columns;
  switch (s->channels) {
  case 1: spread_few(a, g, row, 1); return;
  case 2: spread_few(a, g, row, 2); return;
  case 3: spread_few(a, g, row, 3); return;
  case 4: spread_few(a, g, row, 4); return;
  default: break;
  }
  for (int j = 0; j < a->out; j++, g += s->channels) {
    float *to = row + a->first[j] * s->channels;
    const double *w = a->weights + (int64_t)j * a->taps;
    for (int k = 0; k < a->count[j]; k++) add_all(g, (float)w[k], to + k * s->channels, s->channels);
  }
}

/* The transpose of resize_image: a row of g is spread over the columns first, then added to each of the rows that it was made of. */
static void spread_image(const resizing *s, const float *g, float *dx, float *row)
{
  const int64_t width = s->columns.in * s->channels, wide = s->columns.out * s->channels;
  memset(dx, 0, (size_t)(s->rows.in * width) * sizeof *dx);
  for (int i = 0; i < s->rows.out; i++, g += wide) {
    memset(row, 0, (size_t)width * sizeof *row);
    spread_columns(s, g, row);
    const double *w = s->rows.weights + (int64_t)i * s->rows.taps;
    for (int k = 0; k < s->rows.count[i]; k++) add_all(row, (float)w[k], dx + (s->rows.first[i] + k) * width, width);
  }
}

/* Image by image, forward or back. */
static flow_status run_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  resizing s = resizing_of(call);
  const float *from = call->inputs[0].data;
  float *to = call->outputs[0].data;
  /* Floats of an image on either side; the channels come first, so that all products have 64 bits. */
  int64_t small = s.channels * s.rows.in * s.columns.in, large = s.channels * s.rows.out * s.columns.out;
  for (int64_t image = 0; image < s.images && to; image++) {
    if (call->op == FLOW_OP_resize) resize_image(&s, from + image * small, to + image * large, call->scratch);
    else spread_image(&s, from + image * large, to + image * small, call->scratch);
  }
  return FLOW_OK;
}

/* ---- plain: float32 and float64 ------------------------------------------------------------------------------------------ */

/* Element e of the resized side is a sum over a rectangle of the other one; its weight at (ky, kx), and that element. */
static double weight_at(const resizing *s, int64_t e, int ky, int kx, int64_t *other)
{
  int64_t c = e % s->channels, pixel = e / s->channels, column = pixel % s->columns.out, row = pixel / s->columns.out % s->rows.out;
  int64_t image = pixel / s->columns.out / s->rows.out;
  *other = ((image * s->rows.in + s->rows.first[row] + ky) * s->columns.in + s->columns.first[column] + kx) * s->channels + c;
  return s->rows.weights[row * s->rows.taps + ky] * s->columns.weights[column * s->columns.taps + kx];
}

/* The rectangle's size. */
static void count_at(const resizing *s, int64_t e, int *rows, int *columns)
{
  int64_t pixel = e / s->channels;
  *rows = s->rows.count[pixel / s->columns.out % s->rows.out];
  *columns = s->columns.count[pixel % s->columns.out];
}

/* The oracle: element by element in double. The gradient adds each result's gradient to the pixels that made it. */
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
    double total = 0, g = gradient ? operand_get(&call->inputs[0], e) : 0;
    count_at(&s, e, &rows, &columns);
    for (int ky = 0; ky < rows; ky++) {
      for (int kx = 0; kx < columns; kx++) {
        double w = weight_at(&s, e, ky, kx, &other);
        if (gradient) operand_put(to, other, operand_get(to, other) + g * w);
        else total += w * operand_get(&call->inputs[0], other);
      }
    }
    if (!gradient) operand_put(to, e, total);
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
