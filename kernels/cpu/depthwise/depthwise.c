/* depthwise.c: the depthwise variants of convolution and convolution_gradient, where every channel has a kernel of its
 * own. Blocks of VL channels are done one after the other for a band of rows; x, g, y and dx are used where they are.
 *
 * The input gradient is a convolution of g with the transposed kernel. With a stride S the rows of dx fall into S phases: row
 * i gets the taps k for which i + padding - k * dilation is a multiple of S, so each phase is a convolution of stride 1
 * with a part of the kernel; columns likewise. */
#include "cpu/cost.h"
#include "cpu/depthwise/depthwise.h"
#include "cpu/variant.h"

enum { BAND_BYTES = 256 * 1024, BAND_ROWS = 4 };   /* source rows of a band; it has a multiple of BAND_ROWS */

/* Taps of the kernel that each channel has. */
static int64_t taps_of(const flow_geometry *s) { return s->kernel[0] * s->kernel[1]; }

/* What both ops need of a call. */
static int supports(const flow_call *call, const flow_geometry *s)
{
  return call->inputs[0].dtype == FLOW_FLOAT32 && !s->bytes && !s->pooled && s->groups > 1 && s->groups == s->channels_in
      && s->groups == s->channels_out && s->in[0] > 0 && s->in[1] > 0 && s->out[0] > 0 && s->out[1] > 0;
}

/* Rows of results in a band of `row_floats` floats each. */
static int64_t band_of(int64_t row_floats)
{
  int64_t rows = BAND_BYTES / (row_floats * (int64_t)sizeof(float)) / BAND_ROWS * BAND_ROWS;
  return rows > 0 ? rows : BAND_ROWS;
}

/* The convolution itself, for the block of channels from `channel` on. */
static flow_depthwise_plane forward_plane(const flow_geometry *s, int64_t channel, const float *zeros)
{
  int64_t c = s->channels_in, lanes = c - channel < VL ? c - channel : VL;
  flow_depthwise_plane p = { .source_step = { s->in[1] * c, c }, .result_step = { s->out[1] * c, c }, .lanes = (int)lanes, .zeros = zeros };
  for (int i = 0; i < 2; i++)
    p.axis[i] = (flow_depthwise_axis){ s->in[i], s->out[i], s->kernel[i], s->stride[i], -s->before[i], s->dilation[i] };
  return p;
}

/* ---- forward ------------------------------------------------------------------------------------------------------------ */

size_t flow_depthwise_floats(const flow_geometry *s)
{
  return (size_t)(flow_depthwise_blocks(s) * (taps_of(s) + 1) * VL + s->in[1] * s->channels_in);
}

/* Channels that there are not are 0. */
void flow_depthwise_pack(const flow_geometry *s, const float *w, const float *b, float *packed)
{
  float *biases = packed + flow_depthwise_blocks(s) * taps_of(s) * VL;
  memset(packed, 0, flow_depthwise_floats(s) * sizeof(float));
  for (int64_t c = 0; c < s->channels_in; c++) {
    float *to = packed + c / VL * taps_of(s) * VL + c % VL;
    for (int64_t tap = 0; tap < taps_of(s); tap++) to[tap * VL] = w[tap * s->channels_in + c] * (float)s->input_scale;
    if (b) biases[c] = b[c];
  }
}

/* The engine counts rows from the top of the result. */
void flow_depthwise_band(const flow_geometry *s, const float *packed, const float *x, int64_t first, int64_t last, int64_t begin,
                         int64_t end, float *y)
{
  const float *biases = packed + flow_depthwise_blocks(s) * taps_of(s) * VL, *zeros = biases + flow_depthwise_blocks(s) * VL;
  float *top = y - first * s->out[1] * s->channels_in;
  const flow_epilogue epilogue = flow_epilogue_of(s);
  for (int64_t block = begin; block < end; block++) {
    flow_depthwise_plane p = forward_plane(s, block * VL, zeros);
    flow_depthwise_convolve(&p, first, last, x + block * VL, packed + block * taps_of(s) * VL, biases + block * VL, epilogue,
                            top + block * VL);
  }
}

/* Any kernel, stride, dilation and padding. */
int FLOW_ISA_NAME(depthwise_supports)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return supports(call, &s);
}

size_t FLOW_ISA_NAME(depthwise_shared_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return flow_depthwise_floats(&s) * sizeof(float);
}

/* Nothing is copied, and sums are in registers. */
size_t FLOW_ISA_NAME(depthwise_scratch_bytes)(const flow_call *call) { return (void)call, 0; }

flow_status FLOW_ISA_NAME(depthwise_prepare)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_depthwise_pack(&s, call->inputs[1].data, s.has_bias ? call->inputs[2].data : NULL, call->shared);
  return FLOW_OK;
}

/* Rows first .. last - 1 of one image of y and the blocks [begin, end) of channels. */
static void convolve(const flow_call *call, const flow_geometry *s, int64_t image, int64_t first, int64_t last, int64_t begin, int64_t end)
{
  const float *x = (const float *)call->inputs[0].data + image * s->in[0] * s->in[1] * s->channels_in;
  float *y = (float *)call->outputs[0].data + (image * s->out[0] + first) * s->out[1] * s->channels_out;
  flow_depthwise_band(s, call->shared, x, first, last, begin, end, y);
}

/* All blocks of channels for a band of rows, then the next band: the band's lines are fetched for the first block and found by the
 * others. */
flow_status FLOW_ISA_NAME(depthwise_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  int64_t band = band_of(s.stride[0] * s.in[1] * s.channels_in);
  for (int64_t image = 0; image < s.images && call->outputs[0].data; image++)
    for (int64_t first = 0; first < s.out[0]; first += band)
      convolve(call, &s, image, first, first + band < s.out[0] ? first + band : s.out[0], 0, flow_depthwise_blocks(&s));
  return FLOW_OK;
}

/* A vector of multiply-adds takes about three times as long here as in products. */
static flow_piece_grid pieces_of(const flow_geometry *s)
{
  int64_t band = band_of(s->stride[0] * s->in[1] * s->channels_in), bands = (s->out[0] + band - 1) / band;
  double multiply_adds = flow_multiply_adds(s) / (double)(s->images ? s->images : 1);
  return flow_cut_pieces(3 * multiply_adds, s->out[0], bands, flow_depthwise_blocks(s), 1);
}

int64_t FLOW_ISA_NAME(depthwise_pieces)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_piece_grid pieces = pieces_of(&s);
  return s.images * pieces.bands * pieces.groups;
}

/* Rows of one image and blocks of channels: neither depends on others. */
flow_status FLOW_ISA_NAME(depthwise_run_piece)(const flow_call *call, int64_t piece)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  flow_piece_grid pieces = pieces_of(&s);
  flow_piece of = flow_piece_of(&pieces, piece, s.out[0], flow_depthwise_blocks(&s));
  if (call->outputs[0].data) convolve(call, &s, of.image, of.first, of.last, of.begin, of.end);
  return FLOW_OK;
}

/* ---- gradient ------------------------------------------------------------------------------------------------------------ */

/* One phase of the rows (axis 0) or columns (axis 1) of dx as an axis of a convolution of g; the kernel positions of its
 * taps: first, first - step, ... */
typedef struct stride_phase { flow_depthwise_axis axis; int64_t first, step; } stride_phase;

/* The taps of flow_stride_phase_of() as an axis of g. taps 0: no result saw these inputs, whose gradient is 0. */
static stride_phase phase_of(const flow_geometry *s, int axis, int64_t number)
{
  flow_stride_phase phase = flow_stride_phase_of(s, axis, number);
  return (stride_phase){
    .axis = { .source = s->out[axis],
              .result = (s->in[axis] - number + s->stride[axis] - 1) / s->stride[axis],
              .taps = phase.taps,
              .stride = 1,
              .origin = phase.output,
              .step = phase.output_step },
    .first = phase.last,
    .step = phase.tap_step,
  };
}

/* shared: a row of zeros as long as the longer of x and g, then per phase and block the transposed taps. */
static int64_t zeros_of(const flow_geometry *s)
{
  return flow_padded_channels((s->in[1] > s->out[1] ? s->in[1] : s->out[1]) * s->channels_in);
}

int FLOW_ISA_NAME(depthwise_gradient_supports)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  return supports(call, &s);
}

/* Each tap of the kernel belongs to one phase of the strides, so that all phases together have as many taps as the kernel. */
size_t FLOW_ISA_NAME(depthwise_gradient_shared_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  return (size_t)(zeros_of(&s) + flow_depthwise_blocks(&s) * taps_of(&s) * VL) * sizeof(float);
}

/* scratch: the sums of all blocks, then with relu the gradient of one image before it. */
size_t FLOW_ISA_NAME(depthwise_gradient_scratch_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  int64_t floats = flow_depthwise_blocks(&s) * taps_of(&s) * VL + (s.relu ? s.out[0] * s.out[1] * s.channels_out : 0);
  return (size_t)floats * sizeof(float);
}

/* For each phase and block the taps in the order in which outputs ascend: from the last to the first. */
flow_status FLOW_ISA_NAME(depthwise_gradient_prepare)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  const float *w = call->inputs[2].data;
  float *to = (float *)call->shared + zeros_of(&s);
  memset(call->shared, 0, FLOW_ISA_NAME(depthwise_gradient_shared_bytes)(call));
  for (int64_t number = 0; number < s.stride[0] * s.stride[1]; number++) {
    stride_phase rows = phase_of(&s, 0, number / s.stride[1]), columns = phase_of(&s, 1, number % s.stride[1]);
    for (int64_t block = 0; block < flow_depthwise_blocks(&s); block++) {
      int64_t lanes = s.channels_in - block * VL < VL ? s.channels_in - block * VL : VL;
      for (int64_t tap = 0; tap < rows.axis.taps * columns.axis.taps; tap++, to += VL) {
        int64_t ky = rows.first - tap / columns.axis.taps * rows.step, kx = columns.first - tap % columns.axis.taps * columns.step;
        memcpy(to, w + (ky * s.kernel[1] + kx) * s.channels_in + block * VL, (size_t)lanes * sizeof(float));
      }
    }
  }
  return FLOW_OK;
}

/* Row groups first .. last - 1 of dx: every phase of these rows, every block. */
static void input_gradient(const flow_geometry *s, const float *shared, int64_t first, int64_t last, const float *g, float *dx)
{
  const float *weights = shared + zeros_of(s);
  int64_t c = s->channels_in;
  for (int64_t number = 0; number < s->stride[0] * s->stride[1]; number++) {
    int64_t py = number / s->stride[1], px = number % s->stride[1];
    flow_depthwise_plane p = { .axis = { phase_of(s, 0, py).axis, phase_of(s, 1, px).axis }, .zeros = shared };
    p.source_step[0] = s->out[1] * c, p.source_step[1] = c;
    p.result_step[0] = s->stride[0] * s->in[1] * c, p.result_step[1] = s->stride[1] * c;
    float *to = dx + (py * s->in[1] + px) * c;
    for (int64_t channel = 0; channel < c; channel += VL, weights += p.axis[0].taps * p.axis[1].taps * VL) {
      p.lanes = (int)(c - channel < VL ? c - channel : VL);
      flow_depthwise_convolve(&p, first, last < p.axis[0].result ? last : p.axis[0].result, g + channel, weights, shared,
                              flow_no_epilogue(), to + channel);
    }
  }
}

/* db[channel] += the sum of the image's g: eight sums of every eighth pixel, then these, so that additions overlap. */
static void add_bias_gradient(const flow_geometry *s, const float *g, float *db)
{
  int64_t c = s->channels_in, pixels = s->out[0] * s->out[1];
  for (int64_t channel = 0; channel < c; channel += VL) {
    int lanes = (int)(c - channel < VL ? c - channel : VL);
    const float *from = g + channel;
    vf sums[8] = { { 0 } };
    int64_t p = 0;
    for (; p + 8 <= pixels; p += 8, from += 8 * c) {
      FLOW_UNROLL(8)
      for (int k = 0; k < 8; k++) sums[k] += lanes == VL ? vf_load(from + k * c) : vf_load_part(from + k * c, lanes);
    }
    for (; p < pixels; p++, from += c) sums[0] += vf_load_part(from, lanes);
    vf sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    vf_store_part(db + channel, vf_load_part(db + channel, lanes) + sum, lanes);
  }
}

/* to[i] = g[i] where the relu let y[i] through, else 0. */
static const float *undo_relu(const float *g, const float *y, int64_t n, float *to)
{
  int64_t i = 0;
  for (; i + VL <= n; i += VL) vf_store(to + i, (vf)((vi)vf_load(g + i) & (vf_load(y + i) > (vf){ 0 })));
  for (; i < n; i++) to[i] = y[i] > 0.0f ? g[i] : 0.0f;
  return to;
}

/* All three gradients of one image. sums is zero. */
static void image_gradient(const flow_geometry *s, const float *shared, const float *g, const float *x, float *dx, float *dw, float *db,
                           float *sums)
{
  int64_t c = s->channels_in, band = band_of(s->out[1] * c), groups = (s->in[0] + s->stride[0] - 1) / s->stride[0];
  for (int64_t first = 0; first < s->out[0] || first < groups; first += band) {
    int64_t last = first + band < s->out[0] ? first + band : s->out[0];
    for (int64_t channel = 0; channel < c && dw && first < last; channel += VL) {
      flow_depthwise_plane p = forward_plane(s, channel, shared);
      flow_depthwise_gradient(&p, first, last, x + channel, g + channel, sums + channel * taps_of(s));
    }
    if (dx) input_gradient(s, shared, first, first + band, g, dx);
  }
  if (db) add_bias_gradient(s, g, db);
  for (int64_t channel = 0; channel < c && dw; channel += VL) {
    int lanes = (int)(c - channel < VL ? c - channel : VL);
    for (int64_t tap = 0; tap < taps_of(s); tap++) {
      float *to = dw + tap * c + channel;
      vf_store_part(to, vf_load_part(to, lanes) + vf_load(sums + (channel * taps_of(s) + tap * VL)), lanes);
    }
  }
}

/* Image by image: sums over pixels run in the same order however the rows of the batch are cut into chunks. y is not read without relu. */
flow_status FLOW_ISA_NAME(depthwise_gradient_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  const float *g = call->inputs[0].data, *x = call->inputs[1].data, *y = call->inputs[3].data;
  float *dx = call->outputs[0].data, *dw = call->outputs[1].data, *db = call->outputs[2].data, *sums = call->scratch;
  int64_t input = s.in[0] * s.in[1] * s.channels_in, output = s.out[0] * s.out[1] * s.channels_out;
  int64_t sum_floats = flow_depthwise_blocks(&s) * taps_of(&s) * VL;
  if (dw && !call->accumulate) memset(dw, 0, (size_t)(taps_of(&s) * s.channels_in) * sizeof(float));
  if (db && !call->accumulate) memset(db, 0, (size_t)s.channels_out * sizeof(float));
  for (int64_t image = 0; image < s.images; image++, g += output, x += input, y = s.relu ? y + output : NULL) {
    const float *gradient = s.relu ? undo_relu(g, y, output, sums + sum_floats) : g;
    memset(sums, 0, (size_t)sum_floats * sizeof(float));
    image_gradient(&s, call->shared, gradient, x, dx ? dx + image * input : NULL, dw, db, sums);
  }
  return FLOW_OK;
}

/* ---- cost ------------------------------------------------------------------------------------------------------------------ */

/* A few multiply-adds for what is read and written: the caches count as much as the arithmetic. Where a vector is half a
 * cache line and pixels are in few sets of the first-level cache, lines are fetched again for their other half. `passes`
 * is how often x and y go through the caches. */
static double cost_of_pass(const flow_geometry *s, double passes)
{
  double multiply_adds = (double)(s->images * s->out[0] * s->out[1] * taps_of(s)) * (double)(flow_depthwise_blocks(s) * VL);
  double moved = (double)(s->images * (s->in[0] * s->in[1] + s->out[0] * s->out[1]) * s->channels_in) * sizeof(float);
  if (VL * sizeof(float) < 64 && s->channels_in % 64 == 0) passes *= 3;
  return flow_cost_arithmetic(multiply_adds, 0.8) + flow_cost_cached(passes * moved);
}

/* One pass over x and y. */
double FLOW_ISA_NAME(depthwise_cost)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[0], &call->inputs[1]);
  return cost_of_pass(&s, 1);
}

/* One pass for dx, one for dw, which read g each. */
double FLOW_ISA_NAME(depthwise_gradient_cost)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  double cost = 0, strided = s.stride[0] > 1 || s.stride[1] > 1 ? 2.5 : 1;   /* every phase of dx reads g again */
  if (!call->outputs[0].unused) cost += cost_of_pass(&s, strided);
  if (!call->outputs[1].unused) cost += cost_of_pass(&s, 1);
  return cost;
}
