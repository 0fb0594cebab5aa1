/* convolution.h: what the convolution kernels share: the geometry of a call, and the inner engines of the direct variant
 * (convolution_direct.c: rows of outputs; convolution_outer.c: weight gradients; convolution_depthwise.c: both, for
 * depthwise convolutions).
 *
 * Activations are NHWC, weights HWIO: {kernel height, kernel width, channels in / groups, channels out}; the output
 * channels of a group are neighbours. In arrays of two, [0] is height and [1] is width. */
#ifndef FLOW_CPU_CONVOLUTION_CONVOLUTION_H
#define FLOW_CPU_CONVOLUTION_CONVOLUTION_H

#include "convolution_geometry.h"
#include "cpu/piece_grid.h"
#include "cpu/pooling/pool_window.h"
#include "cpu/variant.h"
#include "ops/op.h"

/* Element `at` of x. */
static inline const void *flow_input_at(const flow_geometry *geometry, const void *x, int64_t at)
{
  return (const char *)x + at * (geometry->bytes ? 1 : (int64_t)sizeof(float));
}

/* to[0 .. n - 1] = the elements of x from there on. */
static inline void flow_copy_input(const flow_geometry *geometry, float *to, const void *from, int64_t n)
{
  const uint8_t *bytes = from;
  int64_t i = 0;
  if (!geometry->bytes) {
    memcpy(to, from, (size_t)n * sizeof(float));
    return;
  }
  for (; i + VL <= n; i += VL) vf_store(to + i, __builtin_convertvector(vi_load_bytes(bytes + i), vf));
  for (; i < n; i++) to[i] = (float)bytes[i];
}

/* ---- the direct variant: channels in blocks of two vectors, the last block of a group of one or two ----------------- */
enum { BLOCK = 2 * VL };

/* The geometry as the direct variant walks it. A depthwise convolution (each channel has its own kernel) is one
 * group there, of one input and all outputs, whose channels in turn read the channels of the input. */
static inline flow_geometry flow_direct_geometry(flow_geometry s)
{
  if (s.groups > 1 && s.groups == s.channels_in && s.groups == s.channels_out) {
    s.depthwise = 1;
    s.groups = 1;
    s.group_out = s.channels_out;
  }
  return s;
}

/* Channels as the packed weights hold them: whole vectors, filled up with zeros. */
static inline int64_t flow_padded_channels(int64_t channels) { return (channels + VL - 1) / VL * VL; }

/* Weights that are read next. Kernels that go through a block of weights several times fetch these into the second-level cache
 * meanwhile, a line for each line or two that they read: else every block begins at the speed of the memory, which is less than that of
 * the multiply-adds where a net's weights outgrow the caches. */
typedef struct flow_ahead {
  const float *next, *end;
} flow_ahead;

enum { FLOW_LINE = 16 }; /* floats of a cache line */

/* `floats` from weights[at] on, as far as there are that many: there are `all`. */
static inline flow_ahead flow_weights_ahead(const float *weights, int64_t at, int64_t floats, int64_t all)
{
  int64_t end = at + floats < all ? at + floats : all;
  return at < end ? (flow_ahead){ weights + at, weights + end } : (flow_ahead){ NULL, NULL };
}

/* The first of `lines` lines that are still to be fetched, which are taken; NULL: none is left. The last ones may be beyond the end: to
 * fetch a line is not an access. */
static inline const float *flow_fetch_lines(flow_ahead *ahead, int64_t lines)
{
  if (!ahead || ahead->next >= ahead->end) return NULL;
  const float *from = ahead->next;
  ahead->next += lines * FLOW_LINE;
  return from;
}

/* Where the taps of one output are in the input: `count` runs of neighbouring floats. A kernel row over neighbouring
 * pixels with all their channels is one run; with groups or dilation every tap is one. */
typedef struct flow_taps {
  int64_t count, run;                   /* both at least 1 */
  const int64_t *offsets;               /* [count] of each run, in floats */
  int64_t pixel_step;                   /* floats between the first taps of neighbouring outputs */
  flow_ahead *ahead;                    /* NULL: nothing is fetched */
  int passed_on;                        /* the outputs' lines are fetched before they are written */
} flow_taps;

/* One phase of an axis of the input gradient: the inputs whose positions are `number` modulo the stride. An input i is seen by tap k of
 * output o if i + before = o stride + k dilation, so that a phase has the taps for which number + before - k dilation is a multiple of the
 * stride: every (stride / common)-th from the lowest on, common being the greatest common divisor of stride and dilation. They are walked
 * from the last one to the first, in which direction outputs ascend. */
typedef struct flow_stride_phase {
  int64_t taps, last, tap_step; /* how many, the last one, from one to the next; 0 taps: no output sees these inputs */
  /* The output that sees the phase's first input through the last tap, which may be negative, and outputs from tap to tap. */
  int64_t output, output_step;
} flow_stride_phase;

/* Phase `number`, 0 to stride - 1, of an axis (0: rows, 1: columns). */
static inline flow_stride_phase flow_stride_phase_of(const flow_geometry *geometry, int axis, int64_t number)
{
  int64_t stride = geometry->stride[axis], dilation = geometry->dilation[axis], kernel = geometry->kernel[axis];
  int64_t from = number + geometry->before[axis], common = stride, lowest = 0;
  while (dilation % common || stride % common) common--;
  flow_stride_phase phase = { .tap_step = stride / common, .output_step = dilation / common };
  while (lowest < phase.tap_step && lowest < kernel && (from - lowest * dilation) % stride != 0) lowest++;
  if (lowest == phase.tap_step || lowest >= kernel) return phase;
  phase.taps = (kernel - lowest + phase.tap_step - 1) / phase.tap_step;
  phase.last = lowest + (phase.taps - 1) * phase.tap_step;
  phase.output = (from - phase.last * dilation) / stride;
  return phase;
}

/* Of `count` rows of a kernel, of which the first meets row `at` of an image and the others every `step`-th, those that meet one of the
 * image's `size` rows, not the zeros around them: from *first on, as many as this returns. All, if none does: a sum has a term. */
static inline int64_t flow_rows_inside(int64_t at, int64_t step, int64_t size, int64_t count, int64_t *first)
{
  int64_t lowest = at < 0 ? (step - 1 - at) / step : 0, highest = at < size ? (size - 1 - at) / step : -1;
  if (highest > count - 1) highest = count - 1;
  *first = lowest > highest ? 0 : lowest;
  return lowest > highest ? count : highest - lowest + 1;
}

/* How many pairs of a row of outputs and a row of the kernel there are whose input is a row of the image. */
static inline int64_t flow_row_pairs(const flow_geometry *s)
{
  int64_t pairs = 0, first;
  for (int64_t row = 0; row < s->out[0]; row++)
    pairs += flow_rows_inside(row * s->stride[0] - s->before[0], s->dilation[0], s->in[0], s->kernel[0], &first);
  return pairs;
}

/* Kernel positions along one axis: first, first + step, ... Negative steps turn the kernel around. */
typedef struct flow_tap_range { int64_t first, step, count; } flow_tap_range;

/* The sum of a weight gradient runs over these pixels, image by image; steps in floats. anew: it begins with them, and the previous
 * content of dw is not read. */
typedef struct flow_pixels {
  int64_t images, rows, columns;
  int64_t x_image_step, x_row_step, x_step, g_image_step, g_row_step, g_step;
  int anew;
} flow_pixels;

#define flow_convolve_row       FLOW_ISA_NAME(convolve_row)
#define flow_convolve_pooled_row FLOW_ISA_NAME(convolve_pooled_row)
#define flow_outer_products     FLOW_ISA_NAME(outer_products)
#define flow_depthwise_row      FLOW_ISA_NAME(depthwise_row)
#define flow_depthwise_products FLOW_ISA_NAME(depthwise_products)
#define flow_dots_row FLOW_ISA_NAME(dots_row)
#define flow_pack_dots FLOW_ISA_NAME(pack_dots)
#define flow_packed_floats      FLOW_ISA_NAME(packed_floats)
#define flow_pack_weights       FLOW_ISA_NAME(pack_weights)

/* What is done with sums: `added`, where there is any, is added to them, then they are held within limits: at least, then at most; a NaN
 * stays. added has y's layout, from the element on that goes where y points to. */
typedef struct flow_epilogue {
  float least, most;
  const float *added;
} flow_epilogue;
typedef struct vf_limits {
  vf least, most;
} vf_limits;

static inline flow_epilogue flow_epilogue_of(const flow_geometry *s)
{
  return (flow_epilogue){ .least = s->relu ? 0.0f : -__builtin_inff(), .most = (float)s->ceiling };
}
static inline flow_epilogue flow_no_epilogue(void)
{
  return (flow_epilogue){ .least = -__builtin_inff(), .most = __builtin_inff() };
}
/* The same for results that begin `floats` later. */
static inline flow_epilogue flow_epilogue_at(flow_epilogue epilogue, int64_t floats)
{
  if (epilogue.added) epilogue.added += floats;
  return epilogue;
}

ALWAYS_INLINE vf_limits vf_limits_of(flow_epilogue epilogue)
{
  return (vf_limits){ vf_set(epilogue.least), vf_set(epilogue.most) };
}
ALWAYS_INLINE vf vf_within(vf a, vf_limits limits)
{
  return vf_at_most(vf_at_least(a, limits.least), limits.most);
}

/* What convolution_add adds to the results of this call; NULL for convolution. */
static inline const float *flow_added(const flow_call *call)
{
  return call->op == FLOW_OP_convolution_add ? call->inputs[3].data : NULL;
}

/* y[pixel][channel] = bias[channel] + sum over taps of x * weights, and the epilogue, for `width` pixels that are y_step floats
 * apart, and one block's `channels` <= BLOCK. weights: [tap][padded channels], bias: [padded channels]. */
typedef void flow_row_function(const flow_taps *taps, const float *x, const float *weights, const float *bias, flow_epilogue epilogue,
                               int64_t channels, float *y, int64_t y_step, int64_t width);
flow_row_function flow_convolve_row;

/* One row of `width` windows of 2 x 2 max pooling over the convolution, whose rows are row_step floats apart in x: the largest
 * of each window (of zero, too, with relu) and its index, either of which may be NULL, y_step elements apart. */
void flow_convolve_pooled_row(const flow_taps *taps, const float *x, int64_t row_step, const float *weights, const float *bias,
                              int relu, int64_t channels, float *y, uint8_t *index, int64_t y_step, int64_t width);

/* The same for a depthwise convolution, where nothing is added: each channel reads the input channel at its own place, as whole vectors
 * (the input is padded), and every run is one tap. */
flow_row_function flow_depthwise_row;

/* The same for a few channels, at most FLOW_MOST_DOTS, where nothing is added, whose pixels are neighbours (y_step is `channels`); every
 * run is a row of the kernel. weights: as flow_pack_dots() has them, {channels, kernel rows, floats of a run filled up with zeros to whole
 * vectors}. */
enum { FLOW_MOST_DOTS = 4 };
flow_row_function flow_dots_row;
void flow_pack_dots(const flow_geometry *geometry, const float *w, float *packed);
static inline size_t flow_dots_floats(const flow_geometry *geometry)
{
  return (size_t)(geometry->channels_out * geometry->kernel[0] * flow_padded_channels(geometry->kernel[1] * geometry->group_in));
}

/* Weights as the first two read them: [group][block][kernel row][kernel column][input][channels of the block], for
 * the kernel positions in `ranges`. transposed: outputs become inputs, for the input gradient. Returns the end of packed. */
float *flow_pack_weights(const flow_geometry *geometry, const float *w, int transposed, const flow_tap_range ranges[2], float *packed);
/* Floats of all positions together. */
size_t flow_packed_floats(const flow_geometry *geometry, int transposed);

/* dw[position][channel] += sum over pixels, in order, of x[offsets[position] + pixel] * g[pixel][channel], for one
 * block's `channels`. Whole vectors of g are read: it is padded. dw_step: floats between positions. */
typedef void flow_products_function(const flow_pixels *pixels, const float *x, const int64_t *offsets, int64_t positions,
                                    const float *g, int64_t channels, float *dw, int64_t dw_step);
flow_products_function flow_outer_products;

/* The same for a depthwise convolution: channel by channel, x too in whole vectors. */
flow_products_function flow_depthwise_products;

#define flow_multiply_pixels FLOW_ISA_NAME(multiply_pixels)

/* `pixels` results of the channels [begin, outputs) from `inputs` channels: bias + from[pixel][inputs] weights, and the epilogue ->
 * to[pixel][channel]. begin: a multiple of BLOCK. weights: as flow_pack_weights() has those of a kernel of one tap; bias_step: 1, or 0
 * where the first BLOCK numbers of bias are those of all blocks. from_step, to_step: floats from pixel to pixel. */
void flow_multiply_pixels(int64_t pixels, const float *from, int64_t from_step, int64_t inputs, const float *weights, const float *bias,
                          int64_t bias_step, flow_epilogue epilogue, int64_t begin, int64_t outputs, float *to, int64_t to_step);

/* The pointwise variants (convolution_pointwise.c). */
FLOW_PIECES(pointwise);
FLOW_VARIANT(pointwise_gradient);

/* The variant "product" (convolution_product.c), which prepares nothing and shares nothing. */
FLOW_PIECES(convolution_product);

/* The depthwise variants (depthwise.c). */
FLOW_PIECES(depthwise);
FLOW_VARIANT(depthwise_gradient);

#define flow_gradient_row FLOW_ISA_NAME(gradient_row)
#define flow_sum_row      FLOW_ISA_NAME(sum_row)

/* Row `row` of the gradient of the conv output of one image, max pooling undone and relu applied: pixels `step` floats
 * apart. g, y, index are the image's. */
void flow_gradient_row(const flow_geometry *geometry, int64_t row, const float *g, const float *y, const uint8_t *index, float *to,
                       int64_t step);
/* db[channel] += the pixels of one such row, in an order that depends on their number only. */
void flow_sum_row(float *db, const float *row, int64_t step, int64_t pixels, int64_t channels);

/* The plain variants (convolution_plain.c): any float32 or float64 call. */
#define flow_convolution_plain          FLOW_ISA_NAME(convolution_plain)
#define flow_convolution_gradient_plain FLOW_ISA_NAME(convolution_gradient_plain)
flow_status flow_convolution_plain(const flow_call *call, int phase, int64_t begin, int64_t end);
flow_status flow_convolution_gradient_plain(const flow_call *call, int phase, int64_t begin, int64_t end);

#endif
