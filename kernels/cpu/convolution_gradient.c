/* convolution_gradient.c: g, x, w, y, index -> dx, dw, db: the backward kernels.
 *
 * The direct variant rebuilds the gradient of the convolution's own output row by row (max pooling undone, relu
 * applied) into a canvas in scratch, and does everything that needs those rows while they are in the inner caches:
 *   db += the sum of the pixels                                             (sum_row)
 *   dw += x under the kernel times the pixels                               (flow_outer_products)
 *   dx  = the canvas convolved with the turned and transposed weights       (flow_convolve_row)
 * For dx the canvas has a margin of the kernel's reach, and with strides zeros between the pixels: then dx is an
 * ordinary convolution of stride 1. A canvas holds a band of rows; the rows that the next band needs again are moved
 * to its top. All sums run image by image, row by row, pixel by pixel, however the rows are chunked. */
#include "cpu/convolution.h"

enum { CANVAS_BYTES = 128 * 1024,  /* with the x rows under it inside half of a second-level cache */
       PASS_PIXELS = 128 };        /* of one pass of outer products: x and g stay in the first-level cache, sums move rarely */

typedef struct layout {
  flow_geometry s;
  int     padded;                   /* x rows are copied, with zeros around them, for dw */
  int64_t x_width;                  /* pixels of an x row as dw sees it */
  int64_t pixel;                    /* floats of a canvas pixel: channels_out, so that every group can be read in whole vectors */
  int64_t spread[2];                /* canvas pixels between neighbouring gradients: the stride, or 1 without dx */
  int64_t margin[2];                /* canvas position of the first gradient */
  int64_t reach[2];                 /* canvas pixels that dx needs beyond its own position; 0 without dx */
  int64_t rows, width;              /* the canvas of a whole image */
  int64_t band;                     /* rows of it, without the reach, in scratch at a time */
  int64_t x_rows;                   /* x rows under the gradients of a band */
  size_t  canvas_floats, x_floats;
} layout;

static layout layout_of(const flow_call *call, int with_dx)
{
  layout l = { .s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]) };
  const flow_geometry *s = &l.s;
  l.padded = s->before[0] || s->before[1] || s->after[0] || s->after[1];
  l.x_width = s->in[1] + s->before[1] + s->after[1];
  l.pixel = s->channels_out - s->group_out + flow_padded_channels(s->group_out);
  int64_t size[2];
  for (int axis = 0; axis < 2; axis++) {
    l.reach[axis] = with_dx ? flow_reach(s, axis) : 0;
    l.spread[axis] = with_dx ? s->stride[axis] : 1;
    l.margin[axis] = with_dx ? l.reach[axis] - s->before[axis] : 0;
    size[axis] = with_dx ? s->in[axis] + l.reach[axis] : s->out[axis];
  }
  l.rows = size[0];
  l.width = size[1];
  int64_t row_bytes = l.width * l.pixel * (int64_t)sizeof(float);
  l.band = row_bytes > 0 ? CANVAS_BYTES / row_bytes - l.reach[0] : 1;
  if (l.band < 1 + l.reach[0]) l.band = 1 + l.reach[0];
  if (l.band > l.rows) l.band = l.rows;
  l.x_rows = (l.band + l.reach[0] - 1) / l.spread[0] * s->stride[0] + flow_reach(s, 0) + 1;
  l.canvas_floats = (size_t)flow_padded_channels((l.band + l.reach[0]) * l.width * l.pixel);
  l.x_floats = l.padded ? (size_t)flow_padded_channels(l.x_rows * l.x_width * s->channels_in) : 0;
  return l;
}

/* Positions of the kernel within one group, as flow_outer_products sums over them. */
static int64_t positions_of(const flow_geometry *s) { return s->kernel[0] * s->kernel[1] * s->group_in; }

static size_t align_floats(size_t floats) { return (floats + 15) / 16 * 16; }

/* shared: offsets of the positions in x, then a zero bias for one block, then the turned weights. */
typedef struct shared_view { int64_t *offsets; float *bias, *weights; } shared_view;

static shared_view shared_of(const flow_call *call, const flow_geometry *s)
{
  shared_view view = { .offsets = call->shared };
  view.bias = (float *)call->shared + align_floats((size_t)positions_of(s) * 2);
  view.weights = view.bias + BLOCK;
  return view;
}

static size_t shared_bytes(const flow_call *call)
{
  layout l = layout_of(call, 1);
  return (align_floats((size_t)positions_of(&l.s) * 2) + BLOCK + flow_packed_floats(&l.s, 1)) * sizeof(float);
}

static size_t scratch_bytes(const flow_call *call)
{
  layout with = layout_of(call, 1), without = layout_of(call, 0);   /* whether dx is wanted is not known yet */
  size_t a = with.canvas_floats + with.x_floats, b = without.canvas_floats + without.x_floats;
  return (a > b ? a : b) * sizeof(float);
}

static flow_status prepare(const flow_call *call)
{
  layout l = layout_of(call, 1);
  const flow_geometry *s = &l.s;
  shared_view shared = shared_of(call, s);
  int64_t *offset = shared.offsets;
  for (int64_t ky = 0; ky < s->kernel[0]; ky++)
    for (int64_t kx = 0; kx < s->kernel[1]; kx++)
      for (int64_t c = 0; c < s->group_in; c++)
        *offset++ = (ky * s->dilation[0] * l.x_width + kx * s->dilation[1]) * s->channels_in + c;
  memset(shared.bias, 0, BLOCK * sizeof(float));
  flow_pack_weights(s, call->inputs[2].data, 1, shared.weights);
  return FLOW_OK;
}

/* to[i] = (or +=, with add) g[i] where index[i] is k, else 0. */
static void take_winners(float *to, const float *g, const uint8_t *index, int32_t k, int64_t n, int add)
{
  int64_t i = 0;
  for (; i + VL <= n; i += VL) {
    vb bytes;
    memcpy(&bytes, index + i, sizeof bytes);
    vf won = (vf)((vi)vf_load(g + i) & (__builtin_convertvector(bytes, vi) == k));
    vf_store(to + i, add ? vf_load(to + i) + won : won);
  }
  for (; i < n; i++) {
    float won = index[i] == k ? g[i] : 0.0f;
    to[i] = add ? to[i] + won : won;
  }
}

/* Row `row` of the gradient of the conv output of one image into the canvas; g, y, index are the image's. */
static void gradient_row(const layout *l, int64_t row, const float *g, const float *y, const uint8_t *index, float *to)
{
  const flow_geometry *s = &l->s;
  int64_t channels = s->channels_out, step = l->spread[1] * l->pixel;
  if (!s->pooled) {
    int64_t at = row * s->out[1] * channels, pixels = s->out[1];
    int64_t floats = channels;
    if (step == channels) floats *= pixels, pixels = 1;
    for (int64_t p = 0; p < pixels; p++, at += floats, to += step) {
      if (!s->relu) memcpy(to, g + at, (size_t)floats * sizeof(float));
      else for (int64_t i = 0; i < floats; i++) to[i] = y[at + i] > 0.0f ? g[at + i] : 0.0f;
    }
    return;
  }
  int overlap = s->pool_stride[0] < s->pool[0] || s->pool_stride[1] < s->pool[1];
  int64_t covered = 0;              /* pixels written without overlap; the rest is zeroed */
  int64_t window = row / s->pool_stride[0];
  int64_t lowest = row < s->pool[0] ? 0 : (row - s->pool[0]) / s->pool_stride[0] + 1;
  if (window > s->result[0] - 1) window = s->result[0] - 1;
  if (!overlap && s->pool_stride[1] == s->pool[1] && window >= lowest) covered = s->result[1] * s->pool[1];
  for (int64_t p = covered; p < s->out[1]; p++) memset(to + p * step, 0, (size_t)channels * sizeof(float));
  for (; lowest <= window; lowest++) {
    int32_t first = (int32_t)((row - lowest * s->pool_stride[0]) * s->pool[1]);
    for (int64_t px = 0; px < s->result[1]; px++) {
      int64_t at = (lowest * s->result[1] + px) * channels;
      for (int64_t kx = 0; kx < s->pool[1]; kx++)
        take_winners(to + (px * s->pool_stride[1] + kx) * step, g + at, index + at, first + (int32_t)kx, channels, overlap);
    }
  }
}

/* db[channel] += the pixels of one row, in order. */
static void sum_row(float *db, const float *row, int64_t step, int64_t pixels, int64_t channels)
{
  int64_t c = 0;
  for (; c + 4 * VL <= channels; c += 4 * VL) {
    vf a = vf_load(db + c), b = vf_load(db + c + VL), d = vf_load(db + c + 2 * VL), e = vf_load(db + c + 3 * VL);
    for (int64_t p = 0; p < pixels; p++) {
      const float *from = row + p * step + c;
      a += vf_load(from), b += vf_load(from + VL), d += vf_load(from + 2 * VL), e += vf_load(from + 3 * VL);
    }
    vf_store(db + c, a), vf_store(db + c + VL, b), vf_store(db + c + 2 * VL, d), vf_store(db + c + 3 * VL, e);
  }
  for (; c + VL <= channels; c += VL) {
    vf a = vf_load(db + c);
    for (int64_t p = 0; p < pixels; p++) a += vf_load(row + p * step + c);
    vf_store(db + c, a);
  }
  for (; c < channels; c++)
    for (int64_t p = 0; p < pixels; p++) db[c] += row[p * step + c];
}

/* The band of the canvas that begins at canvas row `first`: rows from `have` on are built, the others are there. */
static void build_rows(const layout *l, int64_t first, int64_t have, int64_t last, const float *g, const float *y,
                       const uint8_t *index, float *canvas)
{
  int64_t row_floats = l->width * l->pixel;
  for (int64_t at = have; at < last; at++) {
    float *to = canvas + (at - first) * row_floats;
    int64_t row = at - l->margin[0];
    if (row >= 0 && row % l->spread[0] == 0 && row / l->spread[0] < l->s.out[0])
      gradient_row(l, row / l->spread[0], g, y, index, to + l->margin[1] * l->pixel);
    else
      memset(to, 0, (size_t)row_floats * sizeof(float));
  }
}

/* x rows from `first` (counted from the top padding) on; the copy's left and right margins are zero and stay so. */
static const float *input_rows(const layout *l, const float *x, int64_t first, int64_t rows, float *copy)
{
  const flow_geometry *s = &l->s;
  int64_t inner = s->in[1] * s->channels_in, row_floats = l->x_width * s->channels_in;
  if (!l->padded) return x + first * inner;
  for (int64_t row = 0; row < rows; row++) {
    int64_t iy = first + row - s->before[0];
    float *to = copy + row * row_floats + s->before[1] * s->channels_in;
    if (iy >= 0 && iy < s->in[0]) memcpy(to, x + iy * inner, (size_t)inner * sizeof(float));
    else memset(to, 0, (size_t)inner * sizeof(float));
  }
  return copy;
}

/* dw += for gradient rows first .. last - 1. g: their first pixel in the canvas; x: the input under the first. */
static void add_weight_gradient(const layout *l, const int64_t *offsets, int64_t first, int64_t last, const float *x, const float *g, float *dw)
{
  const flow_geometry *s = &l->s;
  flow_pixels pixels = {
    .columns = s->out[1],
    .x_row_step = s->stride[0] * l->x_width * s->channels_in, .x_step = s->stride[1] * s->channels_in,
    .g_row_step = l->spread[0] * l->width * l->pixel, .g_step = l->spread[1] * l->pixel,
  };
  int64_t pass = PASS_PIXELS / s->out[1] > 0 ? PASS_PIXELS / s->out[1] : 1;
  for (int64_t row = first; row < last; row += pass) {
    pixels.rows = last - row < pass ? last - row : pass;
    for (int64_t group = 0; group < s->groups; group++) {
      for (int64_t block = 0; block < s->group_out; block += BLOCK) {
        int64_t channels = s->group_out - block < BLOCK ? s->group_out - block : BLOCK, channel = group * s->group_out + block;
        flow_outer_products(&pixels, x + (row - first) * pixels.x_row_step + group * s->group_in, offsets, positions_of(s),
                            g + (row - first) * pixels.g_row_step + channel, channels, dw + channel, s->channels_out);
      }
    }
  }
}

/* dx rows first .. last - 1 from the canvas rows that begin at `first`. */
static void input_gradient(const layout *l, const shared_view *shared, int64_t first, int64_t last, const float *canvas, float *dx)
{
  const flow_geometry *s = &l->s;
  int one_run = s->dilation[1] == 1 && s->groups == 1 && l->pixel == s->channels_out;
  int64_t row_floats = l->width * l->pixel, padded = flow_padded_channels(s->group_in);
  int64_t taps_per_channel = s->kernel[0] * s->kernel[1] * s->group_out;
  flow_taps taps = {
    .rows = s->kernel[0], .columns = one_run ? 1 : s->kernel[1], .run = one_run ? s->kernel[1] * s->group_out : s->group_out,
    .row_step = s->dilation[0] * row_floats, .column_step = s->dilation[1] * l->pixel, .pixel_step = l->pixel,
  };
  for (int64_t group = 0; group < s->groups; group++) {
    for (int64_t block = 0; block < s->group_in; block += BLOCK) {
      int64_t channels = s->group_in - block < BLOCK ? s->group_in - block : BLOCK;
      const float *weights = shared->weights + (group * padded + block) * taps_per_channel;
      for (int64_t row = first; row < last; row++)
        flow_convolve_row(&taps, canvas + (row - first) * row_floats + group * s->group_out, weights, shared->bias, -__builtin_inff(),
                          channels, dx + row * s->in[1] * s->channels_in + group * s->group_in + block, s->channels_in, s->in[1]);
    }
  }
}

/* All three gradients of one image. */
static void image_gradient(const layout *l, const shared_view *shared, const float *g, const float *y, const uint8_t *index,
                           const float *x, float *dx, float *dw, float *db, float *canvas, float *x_copy)
{
  const flow_geometry *s = &l->s;
  int64_t row_floats = l->width * l->pixel, end = l->rows - l->reach[0], have = 0;
  for (int64_t first = 0; first < end; first += l->band) {
    int64_t last = first + l->band < end ? first + l->band : end;
    build_rows(l, first, have, last + l->reach[0], g, y, index, canvas);
    have = last + l->reach[0];
    /* The gradients that this band adds to dw and db: those in its own rows, in the last band also those in the reach. */
    int64_t from = first - l->margin[0], to = (last == end ? l->rows : last) - l->margin[0];
    int64_t row = from <= 0 ? 0 : (from + l->spread[0] - 1) / l->spread[0];
    int64_t stop = to <= 0 ? 0 : (to + l->spread[0] - 1) / l->spread[0];
    if (stop > s->out[0]) stop = s->out[0];
    if (row < stop && s->out[1] > 0) {
      const float *gradient = canvas + (row * l->spread[0] + l->margin[0] - first) * row_floats + l->margin[1] * l->pixel;
      if (db)
        for (int64_t i = row; i < stop; i++)
          sum_row(db, gradient + (i - row) * l->spread[0] * row_floats, l->spread[1] * l->pixel, s->out[1], s->channels_out);
      if (dw) {
        const float *rows = input_rows(l, x, row * s->stride[0], (stop - row - 1) * s->stride[0] + flow_reach(s, 0) + 1, x_copy);
        add_weight_gradient(l, shared->offsets, row, stop, rows, gradient, dw);
      }
    }
    if (dx) input_gradient(l, shared, first, last, canvas, dx);
    if (l->reach[0] && last < end)
      memmove(canvas, canvas + (last - first) * row_floats, (size_t)(l->reach[0] * row_floats) * sizeof(float));
  }
}

static flow_status run_direct(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  float *dx = call->outputs[0].data, *dw = call->outputs[1].data;
  layout l = layout_of(call, dx != NULL);
  const flow_geometry *s = &l.s;
  shared_view shared = shared_of(call, s);
  float *db = s->has_bias ? call->outputs[2].data : NULL, *canvas = call->scratch, *x_copy = canvas + l.canvas_floats;
  const float *g = call->inputs[0].data, *x = call->inputs[1].data, *y = call->inputs[3].data;
  const uint8_t *index = call->inputs[4].data;
  if (dw && !call->accumulate) memset(dw, 0, (size_t)(positions_of(s) * s->channels_out) * sizeof(float));
  if (db && !call->accumulate) memset(db, 0, (size_t)s->channels_out * sizeof(float));
  memset(canvas, 0, (l.canvas_floats + l.x_floats) * sizeof(float));
  int64_t result = s->result[0] * s->result[1] * s->channels_out, input = s->in[0] * s->in[1] * s->channels_in;
  for (int64_t image = 0; image < s->images; image++)
    image_gradient(&l, &shared, g + image * result, y + image * result, s->pooled ? index + image * result : NULL,
                   x + image * input, dx ? dx + image * input : NULL, dw, db, canvas, x_copy);
  return FLOW_OK;
}

/* Padding beyond the kernel's reach (nobody's layer) would need gradients that no canvas position has. */
static int supports_direct(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  for (int axis = 0; axis < 2; axis++)
    if (s.before[axis] > flow_reach(&s, axis) || s.after[axis] > flow_reach(&s, axis) || s.out[axis] < 1) return 0;
  return call->inputs[0].dtype == FLOW_FLOAT32 && s.pool[0] * s.pool[1] <= NO_WINNER;
}

const flow_kernel FLOW_KERNELS(convolution_gradient)[] = {
  { .variant = "direct", .supports = supports_direct, .shared_bytes = shared_bytes, .scratch_bytes = scratch_bytes,
    .prepare = prepare, .run = run_direct },
  { .variant = "plain", .run = flow_convolution_gradient_plain },
  { 0 }
};
