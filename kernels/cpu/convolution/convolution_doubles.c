/* convolution_doubles.c: the variants "doubles" of convolution and convolution_gradient: float64, vectors along the channels of the result,
 * without pooling. Sums have the order of the plain variant: tap by tap, in each channel by channel.
 *
 * Weights are packed by prepare() so that each group's channels are whole vectors, those beyond its end zeros: for y and dw
 * {taps, channels in, groups x padded channels out}, for dx the other way round. A depthwise convolution (each channel has its own kernel)
 * goes along all channels at once and needs no packing. Gradients take a row of g at a time, with zeros where relu left nothing. */
#include "cpu/convolution/convolution.h"
#include "cpu/cost.h"
#include "cpu/variant.h"

enum { LANES = VL / 2, VECTORS = 4, PIXELS = 2 };

static int64_t padded(int64_t channels)
{
  return (channels + LANES - 1) / LANES * LANES;
}
static int64_t taps_of(const flow_geometry *s)
{
  return s->kernel[0] * s->kernel[1];
}
static int is_depthwise(const flow_geometry *s)
{
  return s->group_in == 1 && s->group_out == 1;
}

ALWAYS_INLINE vd set_lanes(double x)
{
  return x - (vd){ 0 };
}

/* The first n lanes, n < LANES. */
static vd load_part(const double *p, int64_t n)
{
  vd v = { 0 };
  memcpy(&v, p, (size_t)n * sizeof *p);
  return v;
}

/* Lanes that are left of `channels` from channel c on, at most LANES. */
static int64_t lanes_at(int64_t channels, int64_t c)
{
  return channels - c < LANES ? channels - c : LANES;
}

ALWAYS_INLINE vd load(const double *p, int64_t lanes)
{
  return lanes == LANES ? vd_load(p) : load_part(p, lanes);
}

ALWAYS_INLINE void store(double *p, vd v, int64_t lanes)
{
  if (lanes == LANES) vd_store(p, v);
  else memcpy(p, &v, (size_t)lanes * sizeof *p);
}

/* ---- packed weights ------------------------------------------------------------------------------------------------------------ */

/* Doubles of the weights {taps, inner, groups x padded(outer)}. */
static int64_t packed_size(const flow_geometry *s, int64_t inner, int64_t outer)
{
  return taps_of(s) * inner * s->groups * padded(outer);
}

/* transposed: for dx, whose channels are those of the input. */
static void pack(const flow_geometry *s, const double *w, int transposed, double *packed)
{
  const int64_t inner = transposed ? s->group_out : s->group_in, outer = transposed ? s->group_in : s->group_out, ld = padded(outer);
  memset(packed, 0, (size_t)packed_size(s, inner, outer) * sizeof *packed);
  for (int64_t tap = 0; tap < taps_of(s); tap++)
    for (int64_t in = 0; in < s->group_in; in++)
      for (int64_t out = 0; out < s->channels_out; out++) {
        const int64_t group = out / s->group_out, own = out % s->group_out;
        const int64_t row = tap * inner + (transposed ? own : in), lane = group * ld + (transposed ? in : own);
        packed[row * s->groups * ld + lane] = w[(tap * s->group_in + in) * s->channels_out + out];
      }
}

/* ---- forward ------------------------------------------------------------------------------------------------------------------- */

/* Columns of the result, and taps of each, that lie within the image: of tap kx those from *first to *last - 1. */
static void columns_of(const flow_geometry *s, int64_t kx, int64_t *first, int64_t *last)
{
  const int64_t shift = s->before[1] - kx * s->dilation[1], end = s->in[1] + shift; /* column * stride is in shift .. end - 1 */
  *first = shift > 0 ? (shift + s->stride[1] - 1) / s->stride[1] : 0;
  *last = end > 0 ? (end + s->stride[1] - 1) / s->stride[1] : 0;
  if (*last > s->out[1]) *last = s->out[1];
  if (*first > *last) *first = *last;
}

/* sums[pixel][vector] += the products of one tap: x of each pixel, x_step apart, and `channels` rows of weights, ld apart. */
ALWAYS_INLINE void add_tap(vd *sums, const double *x, int64_t x_step, int pixels, int vectors, const double *w, int64_t ld,
                           int64_t channels)
{
  for (int64_t c = 0; c < channels; c++, w += ld) FLOW_UNROLL(4)
  for (int v = 0; v < vectors; v++) {
    const vd weight = vd_load(w + v * LANES);
    FLOW_UNROLL(2)
    for (int p = 0; p < pixels; p++) sums[p * vectors + v] += set_lanes(x[p * x_step + c]) * weight;
  }
}

/* Sums of `pixels` neighbouring results, column .. column + pixels - 1 of `row`, in `vectors` vectors of channels; x: the image, from the
 * group's first channel on; w: packed, from the vectors' first channel on. */
ALWAYS_INLINE void sum_pixels(const flow_geometry *s, const double *x, const double *w, int64_t row, int64_t column, int pixels,
                              int vectors, vd *sums)
{
  const int64_t ld = s->groups * padded(s->group_out), step = s->stride[1] * s->channels_in;
  for (int i = 0; i < pixels * vectors; i++) sums[i] = (vd){ 0 };
  for (int64_t ky = 0; ky < s->kernel[0]; ky++) {
    const int64_t iy = row * s->stride[0] + ky * s->dilation[0] - s->before[0];
    if (iy < 0 || iy >= s->in[0]) continue;
    for (int64_t kx = 0; kx < s->kernel[1]; kx++) {
      const int64_t ix = column * s->stride[1] + kx * s->dilation[1] - s->before[1];
      const double *weights = w + (ky * s->kernel[1] + kx) * s->group_in * ld, *from = x + (iy * s->in[1] + ix) * s->channels_in;
      if (ix >= 0 && ix + (pixels - 1) * s->stride[1] < s->in[1]) {
        add_tap(sums, from, step, pixels, vectors, weights, ld, s->group_in);
        continue;
      }
      for (int p = 0; p < pixels; p++)
        if (ix + p * s->stride[1] >= 0 && ix + p * s->stride[1] < s->in[1])
          add_tap(sums + p * vectors, from + p * step, 0, 1, vectors, weights, ld, s->group_in);
    }
  }
}

/* What comes after the sum, for lanes of one result at element `at`. */
ALWAYS_INLINE vd finish(const flow_geometry *s, vd sum, const double *bias, const double *added, int64_t lanes)
{
  sum = sum * set_lanes(s->input_scale);
  if (bias) sum += load(bias, lanes);
  if (added) sum += load(added, lanes);
  for (int i = 0; i < LANES; i++) {
    if (s->relu && sum[i] <= 0) sum[i] = 0;
    if (sum[i] > s->ceiling) sum[i] = s->ceiling;
  }
  return sum;
}

/* Where one image's operands are. */
typedef struct image {
  const double *x, *bias, *added;
  double *y;
} image;

ALWAYS_INLINE void make_pixels(const flow_geometry *s, const image *of, const double *w, int64_t row, int64_t column, int64_t group,
                               int64_t c, int pixels, int vectors)
{
  vd sums[PIXELS * VECTORS];
  sum_pixels(s, of->x + group * s->group_in, w + group * padded(s->group_out) + c, row, column, pixels, vectors, sums);
  for (int p = 0; p < pixels; p++)
    for (int v = 0; v < vectors; v++) {
      const int64_t channel = group * s->group_out + c + v * LANES, lanes = lanes_at(s->group_out, c + v * LANES);
      const int64_t at = (row * s->out[1] + column + p) * s->channels_out + channel;
      const double *bias = of->bias ? of->bias + channel : NULL, *added = of->added ? of->added + at : NULL;
      store(of->y + at, finish(s, sums[p * vectors + v], bias, added, lanes), lanes);
    }
}

static void make_row(const flow_geometry *s, const image *of, const double *w, int64_t row)
{
  for (int64_t group = 0; group < s->groups; group++) {
    int64_t c = 0;
    for (; c + VECTORS * LANES <= padded(s->group_out); c += VECTORS * LANES) {
      int64_t column = 0;
      for (; column + PIXELS <= s->out[1]; column += PIXELS) make_pixels(s, of, w, row, column, group, c, PIXELS, VECTORS);
      for (; column < s->out[1]; column++) make_pixels(s, of, w, row, column, group, c, 1, VECTORS);
    }
    for (; c < s->group_out; c += LANES) {
      int64_t column = 0;
      for (; column + PIXELS <= s->out[1]; column += PIXELS) make_pixels(s, of, w, row, column, group, c, PIXELS, 1);
      for (; column < s->out[1]; column++) make_pixels(s, of, w, row, column, group, c, 1, 1);
    }
  }
}

/* Each channel of the result sees the same one of the input. w: as it is. */
static void make_depthwise_row(const flow_geometry *s, const image *of, const double *w, int64_t row)
{
  const int64_t channels = s->channels_out;
  for (int64_t column = 0; column < s->out[1]; column++)
    for (int64_t c = 0; c < channels; c += LANES) {
      const int64_t lanes = lanes_at(channels, c), at = (row * s->out[1] + column) * channels + c;
      vd sum = { 0 };
      for (int64_t ky = 0; ky < s->kernel[0]; ky++) {
        const int64_t iy = row * s->stride[0] + ky * s->dilation[0] - s->before[0];
        for (int64_t kx = 0; kx < s->kernel[1] && iy >= 0 && iy < s->in[0]; kx++) {
          const int64_t ix = column * s->stride[1] + kx * s->dilation[1] - s->before[1];
          if (ix < 0 || ix >= s->in[1]) continue;
          sum += load(of->x + (iy * s->in[1] + ix) * channels + c, lanes) * load(w + (ky * s->kernel[1] + kx) * channels + c, lanes);
        }
      }
      store(of->y + at, finish(s, sum, of->bias ? of->bias + c : NULL, of->added ? of->added + at : NULL, lanes), lanes);
    }
}

static flow_geometry geometry_of(const flow_call *call, int gradient)
{
  return flow_geometry_of(call, &call->inputs[gradient], &call->inputs[1 + gradient]);
}

int FLOW_ISA_NAME(convolution_doubles_supports)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 0);
  return call->inputs[1].dtype == FLOW_FLOAT64 && !s.pooled && !s.bytes;
}

/* Whole vectors at a third of the peak of float32, of which doubles have half. */
static double cost_of(const flow_geometry *s, int64_t inner, int64_t outer)
{
  const double lanes = is_depthwise(s) ? (double)s->channels_out : (double)(s->groups * inner * padded(outer));
  return flow_cost_arithmetic((double)(s->images * s->out[0] * s->out[1] * taps_of(s)) * lanes, 0.3);
}

double FLOW_ISA_NAME(convolution_doubles_cost)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 0);
  return cost_of(&s, s.group_in, s.group_out);
}

size_t FLOW_ISA_NAME(convolution_doubles_shared_bytes)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 0);
  return is_depthwise(&s) ? 0 : (size_t)packed_size(&s, s.group_in, s.group_out) * sizeof(double);
}

size_t FLOW_ISA_NAME(convolution_doubles_scratch_bytes)(const flow_call *call)
{
  return (void)call, 0;
}

flow_status FLOW_ISA_NAME(convolution_doubles_prepare)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 0);
  if (!is_depthwise(&s)) pack(&s, call->inputs[1].data, 0, call->shared);
  return FLOW_OK;
}

flow_status FLOW_ISA_NAME(convolution_doubles_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_geometry s = geometry_of(call, 0);
  const int64_t input = s.in[0] * s.in[1] * s.channels_in, output = s.out[0] * s.out[1] * s.channels_out;
  image of = { call->inputs[0].data, s.has_bias ? call->inputs[2].data : NULL, (const double *)(const void *)flow_added(call),
               call->outputs[0].data };
  for (int64_t i = 0; i < s.images && of.y; i++, of.x += input, of.y += output, of.added = of.added ? of.added + output : NULL)
    for (int64_t row = 0; row < s.out[0]; row++) {
      if (is_depthwise(&s)) make_depthwise_row(&s, &of, call->inputs[1].data, row);
      else make_row(&s, &of, call->shared, row);
    }
  return FLOW_OK;
}

/* ---- gradients ----------------------------------------------------------------------------------------------------------------- */

/* A row of g, {columns, groups x padded channels}, zeros where y shows that relu left nothing. A depthwise one has no padding between its
 * groups of one channel. */
static int64_t row_ld(const flow_geometry *s)
{
  return is_depthwise(s) ? padded(s->channels_out) : s->groups * padded(s->group_out);
}

static void take_row(const flow_geometry *s, const double *g, const double *y, double *row)
{
  const int64_t ld = row_ld(s), width = is_depthwise(s) ? s->channels_out : s->group_out, groups = s->channels_out / width;
  for (int64_t column = 0; column < s->out[1]; column++, row += ld, g += s->channels_out, y += s->channels_out)
    for (int64_t group = 0; group < groups; group++)
      for (int64_t c = 0; c < width; c++)
        row[group * padded(width) + c] = s->relu && !(y[group * width + c] > 0) ? 0 : g[group * width + c];
}

static void add_bias_gradient(const flow_geometry *s, const double *row, double *db)
{
  const int64_t ld = row_ld(s), width = is_depthwise(s) ? s->channels_out : s->group_out;
  for (int64_t column = 0; column < s->out[1]; column++, row += ld)
    for (int64_t c = 0; c < s->channels_out; c++) db[c] += row[c / width * padded(width) + c % width];
}

/* One row of products for dw: `vectors` vectors of dw {channels out} += x of each column times its g. lanes: of the last vector. */
ALWAYS_INLINE void add_columns(double *dw, const double *x, int64_t x_step, const double *g, int64_t g_step, int64_t columns, int vectors,
                               int64_t lanes)
{
  vd sums[VECTORS];
  for (int v = 0; v < vectors; v++) sums[v] = load(dw + v * LANES, v + 1 < vectors ? LANES : lanes);
  for (int64_t column = 0; column < columns; column++, x += x_step, g += g_step) FLOW_UNROLL(4)
  for (int v = 0; v < vectors; v++) sums[v] += set_lanes(*x) * vd_load(g + v * LANES);
  for (int v = 0; v < vectors; v++) store(dw + v * LANES, sums[v], v + 1 < vectors ? LANES : lanes);
}

/* The tap's part of dw {channels in of a group, channels out}; x, g: of the first of `columns`, with all channels. */
static void add_weight_gradient(const flow_geometry *s, const double *x, const double *g, int64_t columns, double *dw)
{
  const int64_t x_step = s->stride[1] * s->channels_in, g_step = row_ld(s);
  for (int64_t group = 0; group < s->groups; group++)
    for (int64_t in = 0; in < s->group_in; in++) {
      const double *from = x + group * s->group_in + in, *row = g + group * padded(s->group_out);
      double *to = dw + in * s->channels_out + group * s->group_out;
      int64_t c = 0;
      for (; c + VECTORS * LANES <= s->group_out; c += VECTORS * LANES)
        add_columns(to + c, from, x_step, row + c, g_step, columns, VECTORS, LANES);
      for (; c < s->group_out; c += LANES) add_columns(to + c, from, x_step, row + c, g_step, columns, 1, lanes_at(s->group_out, c));
    }
}

/* dx of `pixels` pixels, dx_step apart, += their g, g_step apart, times the tap's weights, packed the other way round. */
ALWAYS_INLINE void spread_pixels(double *dx, int64_t dx_step, const double *g, int64_t g_step, const double *w, int64_t ld,
                                 int64_t channels, int pixels, int vectors, int64_t lanes)
{
  vd sums[PIXELS * VECTORS];
  for (int p = 0; p < pixels; p++)
    for (int v = 0; v < vectors; v++) sums[p * vectors + v] = load(dx + p * dx_step + v * LANES, v + 1 < vectors ? LANES : lanes);
  add_tap(sums, g, g_step, pixels, vectors, w, ld, channels);
  for (int p = 0; p < pixels; p++)
    for (int v = 0; v < vectors; v++) store(dx + p * dx_step + v * LANES, sums[p * vectors + v], v + 1 < vectors ? LANES : lanes);
}

static void add_input_gradient(const flow_geometry *s, const double *g, const double *w, int64_t columns, double *dx)
{
  const int64_t dx_step = s->stride[1] * s->channels_in, g_step = row_ld(s), ld = s->groups * padded(s->group_in);
  for (int64_t group = 0; group < s->groups; group++) {
    const double *row = g + group * padded(s->group_out), *weights = w + group * padded(s->group_in);
    double *to = dx + group * s->group_in;
    for (int64_t column = 0; column < columns; column += PIXELS) {
      const int pair = columns - column >= PIXELS;
      double *at = to + column * dx_step;
      const double *from = row + column * g_step;
      int64_t c = 0;
      for (; c + VECTORS * LANES <= s->group_in; c += VECTORS * LANES) {
        if (pair) spread_pixels(at + c, dx_step, from, g_step, weights + c, ld, s->group_out, PIXELS, VECTORS, LANES);
        else spread_pixels(at + c, dx_step, from, g_step, weights + c, ld, s->group_out, 1, VECTORS, LANES);
      }
      for (; c < s->group_in; c += LANES) {
        const int64_t lanes = lanes_at(s->group_in, c);
        if (pair) spread_pixels(at + c, dx_step, from, g_step, weights + c, ld, s->group_out, PIXELS, 1, lanes);
        else spread_pixels(at + c, dx_step, from, g_step, weights + c, ld, s->group_out, 1, 1, lanes);
      }
    }
  }
}

/* Both gradients of one tap of a depthwise convolution; w, dw: of the tap. */
static void add_depthwise(const flow_geometry *s, const double *x, const double *g, int64_t columns, const double *w, double *dx,
                          double *dw)
{
  const int64_t channels = s->channels_out, step = s->stride[1] * channels;
  for (int64_t column = 0; column < columns; column++, x += step, g += padded(channels), dx = dx ? dx + step : NULL)
    for (int64_t c = 0; c < channels; c += LANES) {
      const int64_t lanes = lanes_at(channels, c);
      const vd own = vd_load(g + c);
      if (dx) store(dx + c, load(dx + c, lanes) + own * load(w + c, lanes), lanes);
      if (dw) store(dw + c, load(dw + c, lanes) + own * load(x + c, lanes), lanes);
    }
}

/* Row `row` of g, which is taken: what it adds to the gradients of one image. */
static void add_row(const flow_geometry *s, int64_t row, const double *x, const double *g, const double *w, double *dx, double *dw)
{
  for (int64_t ky = 0; ky < s->kernel[0]; ky++) {
    const int64_t iy = row * s->stride[0] + ky * s->dilation[0] - s->before[0];
    for (int64_t kx = 0; kx < s->kernel[1] && iy >= 0 && iy < s->in[0]; kx++) {
      const int64_t tap = ky * s->kernel[1] + kx, size = s->group_in * s->channels_out;
      int64_t first, last;
      columns_of(s, kx, &first, &last);
      if (first == last) continue;
      const int64_t at = (iy * s->in[1] + first * s->stride[1] + kx * s->dilation[1] - s->before[1]) * s->channels_in;
      const double *own = g + first * row_ld(s);
      if (is_depthwise(s)) {
        add_depthwise(s, x + at, own, last - first, w + tap * size, dx ? dx + at : NULL, dw ? dw + tap * size : NULL);
        continue;
      }
      if (dw) add_weight_gradient(s, x + at, own, last - first, dw + tap * size);
      if (dx) add_input_gradient(s, own, w + tap * s->group_out * s->groups * padded(s->group_in), last - first, dx + at);
    }
  }
}

int FLOW_ISA_NAME(gradient_doubles_supports)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 1);
  return call->inputs[0].dtype == FLOW_FLOAT64 && !s.pooled && !s.bytes;
}

double FLOW_ISA_NAME(gradient_doubles_cost)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 1);
  double cost = 0;
  if (!call->outputs[0].unused) cost += cost_of(&s, s.group_out, s.group_in);
  if (!call->outputs[1].unused) cost += cost_of(&s, s.group_in, s.group_out);
  return cost;
}

size_t FLOW_ISA_NAME(gradient_doubles_shared_bytes)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 1);
  return is_depthwise(&s) ? 0 : (size_t)packed_size(&s, s.group_out, s.group_in) * sizeof(double);
}

size_t FLOW_ISA_NAME(gradient_doubles_scratch_bytes)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 1);
  return (size_t)(s.out[1] * row_ld(&s)) * sizeof(double);
}

flow_status FLOW_ISA_NAME(gradient_doubles_prepare)(const flow_call *call)
{
  const flow_geometry s = geometry_of(call, 1);
  if (!is_depthwise(&s)) pack(&s, call->inputs[2].data, 1, call->shared);
  return FLOW_OK;
}

flow_status FLOW_ISA_NAME(gradient_doubles_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_geometry s = geometry_of(call, 1);
  const int64_t input = s.in[0] * s.in[1] * s.channels_in, wide = s.out[1] * s.channels_out;
  const double *g = call->inputs[0].data, *x = call->inputs[1].data, *y = call->inputs[3].data;
  const double *w = is_depthwise(&s) ? call->inputs[2].data : call->shared;
  double *dx = call->outputs[0].data, *dw = call->outputs[1].data, *db = call->outputs[2].data, *taken = call->scratch;
  if (dx) memset(dx, 0, (size_t)(s.images * input) * sizeof *dx);
  if (dw && !call->accumulate) memset(dw, 0, (size_t)(taps_of(&s) * s.group_in * s.channels_out) * sizeof *dw);
  if (db && !call->accumulate) memset(db, 0, (size_t)s.channels_out * sizeof *db);
  memset(taken, 0, (size_t)(s.out[1] * row_ld(&s)) * sizeof *taken);
  for (int64_t i = 0; i < s.images; i++, x += input, dx = dx ? dx + input : NULL)
    for (int64_t row = 0; row < s.out[0]; row++, g += wide, y += wide) {
      take_row(&s, g, y, taken);
      if (db) add_bias_gradient(&s, taken, db);
      if (dx || dw) add_row(&s, row, x, taken, w, dx, dw);
    }
  return FLOW_OK;
}
