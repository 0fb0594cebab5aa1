/* convolution_pointwise.c: 1 x 1 convolutions without padding, which are products of matrices: pixels x channels.
 *
 * The pixels of all images of the chunk are one long row. x, g, y and dx are used where they are; with a stride the pixels of x that some
 * output sees are first copied side by side, a band of them at a time, and those of dx back. Every element of y and dx is one sum over
 * channels and every element of dw and db one sum over pixels in order, so that cutting into bands changes no rounding. */
#include "cpu/convolution/convolution.h"
#include "cpu/cost.h"

enum {
  BAND_BYTES = 32 * 1024, /* x of a band of the forward pass: inside the first-level cache */
  LEAST_PIXELS = 48,      /* of such a band */
  GRADIENT_PIXELS = 192,  /* of a band of the gradient; weights or sums move once per band */
  GATHERED_PIXELS = 64    /* of a band that is copied: inside the second-level cache */
};

/* Output pixels of all images, and whether their inputs must be copied side by side. */
static int64_t pixels_of(const flow_geometry *s)
{
  return s->images * s->out[0] * s->out[1];
}
static int gathers(const flow_geometry *s)
{
  return s->stride[0] != 1 || s->stride[1] != 1;
}

/* Floats before the input of output pixel p, counted over all images. */
static int64_t input_of(const flow_geometry *s, int64_t p)
{
  int64_t row = p / s->out[1], y = row / s->out[0] * s->in[0] + row % s->out[0] * s->stride[0];
  return (y * s->in[1] + p % s->out[1] * s->stride[1]) * s->channels_in;
}

/* The inputs of `count` output pixels from `first` on, side by side; and the way back. */
static const float *gather(const flow_geometry *s, const float *x, int64_t first, int64_t count, float *to)
{
  for (int64_t i = 0; i < count; i++) memcpy(to + i * s->channels_in, x + input_of(s, first + i), (size_t)s->channels_in * sizeof(float));
  return to;
}

static void scatter(const flow_geometry *s, const float *from, int64_t first, int64_t count, float *dx)
{
  for (int64_t i = 0; i < count; i++)
    memcpy(dx + input_of(s, first + i), from + i * s->channels_in, (size_t)s->channels_in * sizeof(float));
}

/* What both the forward pass and the gradient need of a call. */
static int supports(const flow_call *call, const flow_geometry *s)
{
  return call->inputs[0].dtype == FLOW_FLOAT32 && !s->bytes && s->kernel[0] == 1 && s->kernel[1] == 1 && s->groups == 1 && !s->pooled
      && !s->before[0] && !s->before[1] && !s->after[0] && !s->after[1] && s->channels_in > 0 && s->channels_out > 0
      && s->out[0] > 0 && s->out[1] > 0;
}

/* Pixels of a band where about `wanted` are, at most half as many more. Bands are nearly equal, since a short one at the end would read all
 * weights for a few pixels. */
static int64_t even_band(int64_t pixels, int64_t wanted)
{
  int64_t bands = (pixels + wanted / 2) / wanted;
  return bands > 1 ? (pixels + bands - 1) / bands : pixels;
}

/* Pixels whose inputs take BAND_BYTES, but enough that the weights of a block are worth loading. */
static int64_t band_of(int64_t pixels, int64_t pixel_floats)
{
  int64_t wanted = BAND_BYTES / (pixel_floats * (int64_t)sizeof(float));
  return even_band(pixels, wanted < LEAST_PIXELS ? LEAST_PIXELS : wanted);
}

void flow_multiply_pixels(int64_t pixels, const float *from, int64_t from_step, int64_t inputs, const float *weights, const float *bias,
                          int64_t bias_step, flow_epilogue epilogue, int64_t begin, int64_t outputs, float *to, int64_t to_step)
{
  const int64_t offset = 0;
  flow_ahead ahead = { NULL, NULL };
  flow_taps taps = { .count = 1, .run = inputs, .offsets = &offset, .pixel_step = from_step, .ahead = &ahead };
  int64_t band = band_of(pixels, inputs);
  for (int64_t first = 0; first < pixels; first += band) {
    int64_t width = pixels - first < band ? pixels - first : band;
    for (int64_t block = begin; block < outputs; block += BLOCK) {
      /* The next block of weights is fetched while this one is read by all tiles of the band. */
      ahead = flow_weights_ahead(weights, (block + BLOCK) * inputs, BLOCK * inputs, inputs * flow_padded_channels(outputs));
      flow_convolve_row(&taps, from + first * from_step, weights + block * inputs, bias + block * bias_step,
                        flow_epilogue_at(epilogue, first * to_step + block), outputs - block < BLOCK ? outputs - block : BLOCK,
                        to + first * to_step + block, to_step, width);
    }
  }
}

/* ---- forward: shared is the packed weights, then the biases of whole vectors ------------------------------------------- */

/* Any stride; a fused relu, but no fused pool. */
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

/* A band of copied pixels, where a stride makes copies necessary. */
size_t FLOW_ISA_NAME(pointwise_scratch_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return gathers(&s) ? (size_t)(GATHERED_PIXELS * s.channels_in) * sizeof(float) : 0;
}

/* The input's scale goes into the weights, so that pixels are read as they are. */
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

/* Pixels [first, last) and channels [begin, end) of the output. */
static void convolve(const flow_call *call, const flow_geometry *s, int64_t first, int64_t last, int64_t begin, int64_t end)
{
  const float *weights = call->shared, *biases = weights + flow_packed_floats(s, 0), *x = call->inputs[0].data;
  float *y = call->outputs[0].data;
  flow_epilogue epilogue = flow_epilogue_of(s);
  epilogue.added = flow_added(call);
  int64_t band = gathers(s) ? GATHERED_PIXELS : last - first;
  for (; first < last && y; first += band) {
    int64_t pixels = last - first < band ? last - first : band;
    const float *from = gathers(s) ? gather(s, x, first, pixels, call->scratch) : x + first * s->channels_in;
    flow_multiply_pixels(pixels, from, s->channels_in, s->channels_in, weights, biases, 1,
                         flow_epilogue_at(epilogue, first * s->channels_out), begin, end, y + first * s->channels_out, s->channels_out);
  }
}

/* All pixels of the chunk as one row: a kernel of one tap does not see where rows and images end. */
flow_status FLOW_ISA_NAME(pointwise_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  convolve(call, &s, 0, pixels_of(&s), 0, s.channels_out);
  return FLOW_OK;
}

static int64_t blocks_of(const flow_geometry *s)
{
  return (s->channels_out + BLOCK - 1) / BLOCK;
}

/* Few weights are read by all bands, many by one group. */
static flow_piece_grid pieces_of(const flow_geometry *s)
{
  enum { FEW_WEIGHTS = 256 << 10 };
  return flow_cut_pieces(flow_multiply_adds(s), pixels_of(s) > 0 ? pixels_of(s) : 1, 1, blocks_of(s),
                         flow_packed_floats(s, 0) * sizeof(float) <= FEW_WEIGHTS);
}

int64_t FLOW_ISA_NAME(pointwise_pieces)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_piece_grid pieces = pieces_of(&s);
  return s.images > 0 ? pieces.bands * pieces.groups : 0;
}

/* Pixels and blocks of channels: every result is one sum over channels, whichever piece makes it. */
flow_status FLOW_ISA_NAME(pointwise_run_piece)(const flow_call *call, int64_t piece)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_piece_grid pieces = pieces_of(&s);
  flow_piece of = flow_piece_of(&pieces, piece, pixels_of(&s), blocks_of(&s));
  convolve(call, &s, of.first, of.last, of.begin * BLOCK, of.end * BLOCK < s.channels_out ? of.end * BLOCK : s.channels_out);
  return FLOW_OK;
}

/* ---- gradient ------------------------------------------------------------------------------------------------------------ */

/* shared: the transposed weights, a block of zeros as bias, the positions 0, 1, ... of x's channels.
 * scratch: a band of g, where it must be changed before it is used, and bands of x and dx, where they are copied. */
typedef struct shared_view { float *weights, *bias; int64_t *positions; } shared_view;

/* The parts of the block that prepare() fills and all members read. */
static shared_view shared_of(const flow_call *call, const flow_geometry *s)
{
  shared_view view = { .weights = call->shared };
  view.bias = view.weights + flow_packed_floats(s, 1);
  view.positions = (int64_t *)(view.bias + BLOCK);
  return view;
}

/* Whole vectors of g are read: its pixels are copied apart where the last block of channels is not whole. */
static int g_copied(const flow_geometry *s) { return s->relu || s->channels_out % VL != 0; }

/* About how many pixels dx, dw and db take together, and at most. */
static int64_t wanted_pixels(const flow_geometry *s)
{
  return gathers(s) ? GATHERED_PIXELS : GRADIENT_PIXELS;
}
static int64_t most_pixels(const flow_geometry *s)
{
  return wanted_pixels(s) * 3 / 2;
}

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
  int64_t floats = g_copied(&s) ? most_pixels(&s) * flow_padded_channels(s.channels_out) : 0;
  if (gathers(&s)) floats += 2 * most_pixels(&s) * s.channels_in;
  return (size_t)floats * sizeof(float);
}

/* The positions are those of one pixel's channels: flow_outer_products sums over a kernel of one tap. */
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

/* The three gradients of a run of pixels; each of dx, dw, db may be NULL. anew: dw begins with it. */
static void band_gradient(const flow_geometry *s, const shared_view *shared, int64_t pixels, const float *x, const float *g, int64_t g_step,
                          float *dx, float *dw, float *db, int anew)
{
  if (db) sum_pixels(pixels, g, g_step, s->channels_out, db);
  flow_pixels range = { .images = 1, .rows = 1, .columns = pixels, .x_step = s->channels_in, .g_step = g_step, .anew = anew };
  for (int64_t block = 0; block < s->channels_out && dw; block += BLOCK)
    flow_outer_products(&range, x, shared->positions, s->channels_in, g + block,
                        s->channels_out - block < BLOCK ? s->channels_out - block : BLOCK, dw + block, s->channels_out);
  if (dx)
    flow_multiply_pixels(pixels, g, g_step, s->channels_out, shared->weights, shared->bias, 0, flow_no_epilogue(), 0, s->channels_in, dx,
                         s->channels_in);
}

/* Band by band. With a stride dx is cleared first, and what a band makes of it is copied to its pixels. */
flow_status FLOW_ISA_NAME(pointwise_gradient_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  shared_view shared = shared_of(call, &s);
  const float *g = call->inputs[0].data, *x = call->inputs[1].data, *y = s.relu ? call->inputs[3].data : NULL;
  float *dx = call->outputs[0].data, *dw = call->outputs[1].data, *db = call->outputs[2].data;
  int64_t g_step = g_copied(&s) ? flow_padded_channels(s.channels_out) : s.channels_out;
  int64_t band = even_band(pixels_of(&s), wanted_pixels(&s));
  float *x_band = call->scratch, *dx_band = x_band + (gathers(&s) ? band * s.channels_in : 0);
  float *g_band = dx_band + (gathers(&s) ? band * s.channels_in : 0);
  const int begins = !call->accumulate;
  if (dw && begins && !pixels_of(&s)) memset(dw, 0, (size_t)(s.channels_in * s.channels_out) * sizeof(float));
  if (db && begins) memset(db, 0, (size_t)s.channels_out * sizeof(float));
  if (dx && gathers(&s)) memset(dx, 0, (size_t)(s.images * s.in[0] * s.in[1] * s.channels_in) * sizeof(float)); /* what no output saw */
  for (int64_t first = 0; first < pixels_of(&s); first += band) {
    int64_t pixels = pixels_of(&s) - first < band ? pixels_of(&s) - first : band, at = first * s.channels_out;
    const float *gradient = g_copied(&s) ? gradient_band(&s, pixels, g + at, y ? y + at : NULL, g_band) : g + at;
    if (gathers(&s)) {
      band_gradient(&s, &shared, pixels, dw ? gather(&s, x, first, pixels, x_band) : NULL, gradient, g_step, dx ? dx_band : NULL, dw, db,
                    begins && first == 0);
      if (dx) scatter(&s, dx_band, first, pixels, dx);
    } else {
      band_gradient(&s, &shared, pixels, x + first * s.channels_in, gradient, g_step, dx ? dx + first * s.channels_in : NULL, dw, db,
                    begins && first == 0);
    }
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

/* Packing reads and writes the weights; if they are kept from run to run, they are only read. */
double FLOW_ISA_NAME(pointwise_cost)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  double packed = (double)flow_packed_floats(&s, 0) * sizeof(float) * (call->kept ? 1 : 2);
  return product_cost(&s, s.channels_out, s.channels_in) + flow_cost_cached(packed);
}

/* Each product counts if something reads its result, and so do copies of g and the packing of the transposed weights. */
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
