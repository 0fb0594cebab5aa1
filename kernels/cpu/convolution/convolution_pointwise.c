/* convolution_pointwise.c: 1 x 1 convolutions without padding, which are products of matrices: pixels x channels.
 *
 * x, g, y and dx are used where they are. Without a stride the pixels of all images of the chunk are one long row; with
 * one, a row is a row of the output and its pixels' inputs are apart. Every element of y and dx is one sum over channels
 * and every element of dw and db one sum over pixels in order, so that cutting into bands changes no rounding. */
#include "cpu/convolution/convolution.h"
#include "cpu/cost.h"

enum { BAND_BYTES = 32 * 1024,          /* x of a band of the forward pass: inside the first-level cache */
       LEAST_PIXELS = 48, GRADIENT_PIXELS = 192 };   /* of a band; weights or sums move once per band */

/* Rows of the output as they are walked; steps in floats. */
typedef struct walk {
  int64_t rows, columns;
  int64_t x_row_step, x_step, g_row_step;
} walk;

/* How the pixels of y, and of x under them, are walked. */
static walk walk_of(const flow_geometry *s)
{
  if (s->stride[0] == 1 && s->stride[1] == 1)
    return (walk){ .rows = 1, .columns = s->images * s->out[0] * s->out[1], .x_step = s->channels_in };
  return (walk){ .rows = s->out[0], .columns = s->out[1], .x_row_step = s->stride[0] * s->in[1] * s->channels_in,
                 .x_step = s->stride[1] * s->channels_in, .g_row_step = s->out[1] * s->channels_out };
}

/* What both the forward pass and the gradient need of a call. */
static int supports(const flow_call *call, const flow_geometry *s)
{
  return call->inputs[0].dtype == FLOW_FLOAT32 && !s->bytes && s->kernel[0] == 1 && s->kernel[1] == 1 && s->groups == 1 && !s->pooled
      && !s->before[0] && !s->before[1] && !s->after[0] && !s->after[1] && s->channels_in > 0 && s->channels_out > 0
      && s->out[0] > 0 && s->out[1] > 0;
}

/* Pixels of a band: those whose inputs take BAND_BYTES, but enough that the weights of a block are worth loading. */
/* Pixels of a band: bands differ by one at most, since a short one at the end would read all weights for a few pixels. */
static int64_t band_of(int64_t pixels, int64_t pixel_floats)
{
  int64_t wanted = BAND_BYTES / (pixel_floats * (int64_t)sizeof(float));
  if (wanted < LEAST_PIXELS) wanted = LEAST_PIXELS;
  int64_t bands = (pixels + wanted / 2) / wanted;
  return bands > 1 ? (pixels + bands - 1) / bands : pixels;
}

/* `pixels` results of the channels [begin, outputs) from `inputs` channels: from[pixel][inputs] weights -> to[pixel][channel]. begin: a
 * multiple of BLOCK. */
static void multiply(int64_t pixels, const float *from, int64_t from_step, int64_t inputs, const float *weights, const float *bias,
                     int64_t bias_step, float floor, int64_t begin, int64_t outputs, float *to, int64_t to_step)
{
  const int64_t offset = 0;
  flow_ahead ahead = { NULL, NULL };
  flow_taps taps = { .count = 1, .run = inputs, .offsets = &offset, .pixel_step = from_step, .ahead = &ahead };
  int64_t band = band_of(pixels, inputs);
  for (int64_t first = 0; first < pixels; first += band) {
    int64_t width = pixels - first < band ? pixels - first : band;
    for (int64_t block = begin; block < outputs; block += BLOCK) {
      ahead = flow_weights_ahead(weights, (block + BLOCK) * inputs, BLOCK * inputs, inputs * flow_padded_channels(outputs));
      flow_convolve_row(&taps, from + first * from_step, weights + block * inputs, bias + block * bias_step, floor,
                        outputs - block < BLOCK ? outputs - block : BLOCK, to + first * to_step + block, to_step, width);
    }
  }
}

/* ---- forward: shared is the packed weights, then the biases of whole vectors ------------------------------------------- */

int FLOW_ISA_NAME(pointwise_supports)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return supports(call, &s);
}

size_t FLOW_ISA_NAME(pointwise_shared_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return (flow_packed_floats(&s, 0) + (size_t)flow_padded_channels(s.channels_out)) * sizeof(float);
}

size_t FLOW_ISA_NAME(pointwise_scratch_bytes)(const flow_call *call) { return (void)call, 0; }

flow_status FLOW_ISA_NAME(pointwise_prepare)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  const flow_tap_range all[2] = { { 0, 1, 1 }, { 0, 1, 1 } };
  float *weights = call->shared, *biases = flow_pack_weights(&s, call->inputs[1].data, 0, all, weights);
  for (float *w = weights; w < biases && s.input_scale != 1; w++) *w *= (float)s.input_scale;
  memset(biases, 0, (size_t)flow_padded_channels(s.channels_out) * sizeof(float));
  if (s.has_bias) memcpy(biases, call->inputs[2].data, (size_t)s.channels_out * sizeof(float));
  return FLOW_OK;
}

/* Pixels [first, last) of row `row` of the walk, counted over all images, and channels [begin, end) of the output. */
static void convolve(const flow_call *call, const flow_geometry *s, const walk *l, int64_t row, int64_t first, int64_t last, int64_t begin,
                     int64_t end)
{
  const float *weights = call->shared, *biases = weights + flow_packed_floats(s, 0), *x = call->inputs[0].data;
  float *y = call->outputs[0].data;
  x += row / l->rows * s->in[0] * s->in[1] * s->channels_in + row % l->rows * l->x_row_step + first * l->x_step;
  y += row / l->rows * s->out[0] * s->out[1] * s->channels_out + row % l->rows * l->g_row_step + first * s->channels_out;
  float floor = s->relu ? 0.0f : -__builtin_inff();
  multiply(last - first, x, l->x_step, s->channels_in, weights, biases, 1, floor, begin, end, y, s->channels_out);
}

static int64_t walk_rows(const flow_geometry *s, const walk *l) { return l->x_row_step ? s->images * l->rows : 1; }

flow_status FLOW_ISA_NAME(pointwise_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  walk l = walk_of(&s);
  for (int64_t row = 0; row < walk_rows(&s, &l) && call->outputs[0].data; row++)
    convolve(call, &s, &l, row, 0, l.columns, 0, s.channels_out);
  return FLOW_OK;
}

/* With a stride bands are of rows of the walk, else of pixels. Few weights are read by all bands, many by one group. */
static flow_piece_grid pieces_of(const flow_geometry *s, const walk *l)
{
  enum { FEW_WEIGHTS = 256 << 10 };
  int64_t rows = l->x_row_step ? walk_rows(s, l) : l->columns;
  return flow_cut_pieces(flow_multiply_adds(s), rows, 1, (s->channels_out + BLOCK - 1) / BLOCK,
                         flow_packed_floats(s, 0) * sizeof(float) <= FEW_WEIGHTS);
}

int64_t FLOW_ISA_NAME(pointwise_pieces)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  walk l = walk_of(&s);
  flow_piece_grid pieces = pieces_of(&s, &l);
  return s.images > 0 ? pieces.bands * pieces.groups : 0;
}

flow_status FLOW_ISA_NAME(pointwise_run_piece)(const flow_call *call, int64_t piece)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  walk l = walk_of(&s);
  flow_piece_grid pieces = pieces_of(&s, &l);
  int64_t first = piece / pieces.groups * pieces.band, begin = piece % pieces.groups * pieces.group * BLOCK;
  int64_t rows = l.x_row_step ? walk_rows(&s, &l) : l.columns, last = first + pieces.band < rows ? first + pieces.band : rows;
  int64_t end = begin + pieces.group * BLOCK < s.channels_out ? begin + pieces.group * BLOCK : s.channels_out;
  if (!call->outputs[0].data) return FLOW_OK;
  if (!l.x_row_step) convolve(call, &s, &l, 0, first, last, begin, end);
  else for (int64_t row = first; row < last; row++) convolve(call, &s, &l, row, 0, l.columns, begin, end);
  return FLOW_OK;
}

/* ---- gradient ------------------------------------------------------------------------------------------------------------ */

/* shared: the transposed weights, a block of zeros as bias, the positions 0, 1, ... of x's channels.
 * scratch: a band of g, where it must be changed before it is used. */
typedef struct shared_view { float *weights, *bias; int64_t *positions; } shared_view;

static shared_view shared_of(const flow_call *call, const flow_geometry *s)
{
  shared_view view = { .weights = call->shared };
  view.bias = view.weights + flow_packed_floats(s, 1);
  view.positions = (int64_t *)(view.bias + BLOCK);
  return view;
}

/* Whole vectors of g are read: its pixels are copied apart where the last block of channels is not whole. */
static int g_copied(const flow_geometry *s) { return s->relu || s->channels_out % VL != 0; }

int FLOW_ISA_NAME(pointwise_gradient_supports)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  return supports(call, &s);
}

size_t FLOW_ISA_NAME(pointwise_gradient_shared_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  return (flow_packed_floats(&s, 1) + BLOCK) * sizeof(float) + (size_t)s.channels_in * sizeof(int64_t);
}

size_t FLOW_ISA_NAME(pointwise_gradient_scratch_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  return g_copied(&s) ? (size_t)(GRADIENT_PIXELS * flow_padded_channels(s.channels_out)) * sizeof(float) : 0;
}

flow_status FLOW_ISA_NAME(pointwise_gradient_prepare)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  shared_view shared = shared_of(call, &s);
  const flow_tap_range all[2] = { { 0, 1, 1 }, { 0, 1, 1 } };
  flow_pack_weights(&s, call->inputs[2].data, 1, all, shared.weights);
  memset(shared.bias, 0, BLOCK * sizeof(float));
  for (int64_t i = 0; i < s.channels_in; i++) shared.positions[i] = i;
  return FLOW_OK;
}

/* g of `pixels` pixels, where the relu let y through, as rows of whole vectors. */
static const float *gradient_band(const flow_geometry *s, int64_t pixels, const float *g, const float *y, float *to)
{
  int64_t channels = s->channels_out, step = flow_padded_channels(channels);
  for (int64_t p = 0; p < pixels; p++, g += channels, y = y ? y + channels : NULL)
    for (int64_t c = 0; c < channels; c += VL) {
      int lanes = (int)(channels - c < VL ? channels - c : VL);
      vf v = vf_load_part(g + c, lanes);
      if (y) v = (vf)((vi)v & (vf_load_part(y + c, lanes) > (vf){ 0 }));
      vf_store(to + p * step + c, v);
    }
  return to;
}

/* db[channel] += pixels, one after the other; four vectors at a time, so that additions overlap. */
static void sum_pixels(int64_t pixels, const float *g, int64_t step, int64_t channels, float *db)
{
  for (int64_t c = 0; c < channels; c += 4 * VL) {
    vf sums[4] = { { 0 } };
    int lanes[4];
    for (int k = 0; k < 4; k++) {
      int64_t left = channels - c - k * VL;
      lanes[k] = (int)(left < 0 ? 0 : left < VL ? left : VL);
      if (lanes[k]) sums[k] = vf_load_part(db + c + k * VL, lanes[k]);
    }
    for (int64_t p = 0; p < pixels; p++)
      for (int k = 0; k < 4; k++)
        if (lanes[k]) sums[k] += vf_load(g + p * step + c + k * VL);
    for (int k = 0; k < 4; k++)
      if (lanes[k]) vf_store_part(db + c + k * VL, sums[k], lanes[k]);
  }
}

/* The three gradients of a run of pixels; each of dx, dw, db may be NULL. dx has the steps of x. */
static void band_gradient(const flow_geometry *s, const shared_view *shared, int64_t pixels, const float *x, int64_t x_step, const float *g,
                          int64_t g_step, float *dx, float *dw, float *db)
{
  if (db) sum_pixels(pixels, g, g_step, s->channels_out, db);
  flow_pixels range = { .rows = 1, .columns = pixels, .x_step = x_step, .g_step = g_step };
  for (int64_t block = 0; block < s->channels_out && dw; block += BLOCK)
    flow_outer_products(&range, x, shared->positions, s->channels_in, g + block,
                        s->channels_out - block < BLOCK ? s->channels_out - block : BLOCK, dw + block, s->channels_out);
  if (dx)
    multiply(pixels, g, g_step, s->channels_out, shared->weights, shared->bias, 0, -__builtin_inff(), 0, s->channels_in, dx, x_step);
}

flow_status FLOW_ISA_NAME(pointwise_gradient_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  walk l = walk_of(&s);
  shared_view shared = shared_of(call, &s);
  const float *g = call->inputs[0].data, *x = call->inputs[1].data, *y = s.relu ? call->inputs[3].data : NULL;
  float *dx = call->outputs[0].data, *dw = call->outputs[1].data, *db = call->outputs[2].data, *scratch = call->scratch;
  int64_t images = l.x_row_step ? s.images : 1, input = s.in[0] * s.in[1] * s.channels_in, output = s.out[0] * s.out[1] * s.channels_out;
  int64_t g_step = g_copied(&s) ? flow_padded_channels(s.channels_out) : s.channels_out;
  if (dw && !call->accumulate) memset(dw, 0, (size_t)(s.channels_in * s.channels_out) * sizeof(float));
  if (db && !call->accumulate) memset(db, 0, (size_t)s.channels_out * sizeof(float));
  if (dx && l.x_row_step) memset(dx, 0, (size_t)(s.images * input) * sizeof(float));   /* inputs that no output saw */
  for (int64_t image = 0; image < images; image++)
    for (int64_t row = 0; row < l.rows; row++)
      for (int64_t first = 0; first < l.columns; first += GRADIENT_PIXELS) {
        int64_t pixels = l.columns - first < GRADIENT_PIXELS ? l.columns - first : GRADIENT_PIXELS;
        int64_t from = image * input + row * l.x_row_step + first * l.x_step;
        int64_t at = image * output + row * l.g_row_step + first * s.channels_out;
        const float *gradient = g_copied(&s) ? gradient_band(&s, pixels, g + at, y ? y + at : NULL, scratch) : g + at;
        band_gradient(&s, &shared, pixels, x + from, l.x_step, gradient, g_step, dx ? dx + from : NULL, dw, db);
      }
  return FLOW_OK;
}

/* ---- cost ------------------------------------------------------------------------------------------------------------------ */

/* Matrices that are wide in every direction reach 90 % of the peak; a tile's beginning and end weigh on few channels. */
static double product_cost(const flow_geometry *s, int64_t outputs, int64_t inputs)
{
  double pixels = (double)(s->images * s->out[0] * s->out[1]);
  return flow_cost_arithmetic(pixels * (double)(inputs + 3) * (double)flow_padded_channels(outputs), 0.92);
}

double FLOW_ISA_NAME(pointwise_cost)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  double packed = (double)flow_packed_floats(&s, 0) * sizeof(float) * (call->kept ? 1 : 2);
  return product_cost(&s, s.channels_out, s.channels_in) + flow_cost_cached(packed);
}

double FLOW_ISA_NAME(pointwise_gradient_cost)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  double pixels = (double)(s.images * s.out[0] * s.out[1]), cost = 0;
  if (!call->outputs[0].unused) cost += product_cost(&s, s.channels_in, s.channels_out);
  if (!call->outputs[1].unused)
    cost += flow_cost_arithmetic(pixels * (double)(s.channels_in * flow_padded_channels(s.channels_out)), 0.9);
  if (g_copied(&s)) cost += flow_cost_cached(2 * pixels * (double)s.channels_out * sizeof(float));
  return cost + flow_cost_cached(2.0 * (double)flow_packed_floats(&s, 1) * sizeof(float));
}
