/* convolution.c: y, index = pool(activation(conv(x, w) + b)): the forward kernels.
 *
 * The direct variant walks an image in bands of rows. Padding is made by copying a band's input rows into scratch, with
 * zeros around them; without padding the input is read where it is. Per band each block of output channels is done
 * for all rows, so that its weights and the band's input stay in the inner caches. A fused max pool of 2 x 2 happens in
 * registers; for others the rows of a block go to a ring of as many rows as the window is high. Only maxima are written. */
#include "cpu/convolution/convolution.h"
#include "cpu/cost.h"
#include "cpu/variant.h"

FLOW_PIECES(convolution_winograd);
FLOW_VARIANT(convolution_doubles);

enum {
  BAND_BYTES = 96 * 1024, /* input of a band: with the weights of a block well inside a second-level cache */
  LEAST_DOT = 2 * VL      /* floats of a kernel's row from which on few channels are scalar products */
};

/* How the direct variant walks a call. Each function of the variant computes it again from the shapes: a kernel has no place of its own to
 * keep it (kernels.h), and next to the arithmetic that costs little. */
typedef struct layout {
  flow_geometry s;
  int     copied;                   /* input rows are copied, with zeros around them */
  int64_t pixel;                    /* floats of an input pixel as the kernel sees it */
  int64_t width;                    /* pixels of an input row as the kernel sees it */
  int64_t band;                     /* rows of y in a band */
  int64_t band_rows;                /* input rows that they need */
  int     by_two;                   /* pooled by windows of 2 x 2 side by side: in registers */
  int64_t ring_floats;              /* one row of conv outputs of one block, for pooling */
  int     one_run;                  /* a kernel row is one run of floats */
  int64_t taps;                     /* runs of the kernel */
  int dots;                         /* few channels: convolution_dots.c */
  size_t  packed;                   /* floats of packed weights */
  size_t  band_floats;              /* scratch: the band, then the ring */
  int passed_on;                    /* the call's: lines of y are fetched before they are written */
  const float *y, *added;           /* the call's results, and what is added to each; NULL: nothing */
} layout;

/* How this call is walked, from its shapes alone (passed_on changes no bit): pieces, chunks and threads see the same layout.
 * A band has as many rows of y as their input takes BAND_BYTES, at least one. */
static layout layout_of(const flow_call *call)
{
  layout l = { .s = flow_direct_geometry(flow_geometry_of(call, &call->inputs[0], &call->inputs[1])) };
  const flow_geometry *s = &l.s;
  l.passed_on = call->outputs[0].passed_on;
  l.y = call->outputs[0].data;
  l.added = flow_added(call);
  l.pixel = s->depthwise ? flow_padded_channels(s->channels_in) : s->channels_in;
  l.copied = s->before[0] || s->before[1] || s->after[0] || s->after[1] || l.pixel != s->channels_in || s->bytes;
  l.width = s->in[1] + s->before[1] + s->after[1];
  int64_t row_bytes = l.width * l.pixel * (int64_t)sizeof(float);
  int64_t rows_per_unit = s->pool_stride[0] * s->stride[0];
  l.band = row_bytes * rows_per_unit > 0 ? BAND_BYTES / (row_bytes * rows_per_unit) : 1;
  if (l.band > s->result[0]) l.band = s->result[0];
  if (l.band < 1) l.band = 1;
  l.band_rows = ((l.band - 1) * s->pool_stride[0] + s->pool[0] - 1) * s->stride[0] + flow_reach(s, 0) + 1;
  l.by_two = !s->depthwise && s->pool[0] == 2 && s->pool[1] == 2 && s->pool_stride[0] == 2 && s->pool_stride[1] == 2;
  l.ring_floats = s->pooled && !l.by_two ? s->out[1] * BLOCK : 0;
  l.one_run = s->dilation[1] == 1 && s->groups == 1 && !s->depthwise;
  l.taps = l.one_run ? s->kernel[0] : s->kernel[0] * s->kernel[1];
  l.dots = l.one_run && !s->pooled && call->op != FLOW_OP_convolution_add && s->channels_out <= FLOW_MOST_DOTS &&
           s->kernel[1] * s->group_in >= LEAST_DOT;
  l.packed = l.dots ? flow_dots_floats(s) : flow_packed_floats(s, 0);
  l.band_floats = l.copied ? (size_t)flow_padded_channels(l.band_rows * l.width * l.pixel) : 0;
  return l;
}

/* shared: offsets of the taps, packed weights, biases filled up like the channels of the weights. */
typedef struct shared_view { int64_t *offsets; float *weights, *biases; } shared_view;

/* Bytes of the offsets, up to a cache line, and floats of the biases. */
static size_t offset_bytes(const layout *l) { return ((size_t)l->taps * sizeof(int64_t) + 63) / 64 * 64; }
static size_t packed_biases(const flow_geometry *s) { return (size_t)(s->groups * flow_padded_channels(s->group_out)); }

/* The parts of the block that prepare() fills and all members read. */
static shared_view shared_of(const flow_call *call, const layout *l)
{
  shared_view view = { .offsets = call->shared, .weights = (float *)((char *)call->shared + offset_bytes(l)) };
  view.biases = view.weights + l->packed;
  return view;
}

/* Offsets, weights and biases, one after the other: shared_of(). */
static size_t shared_bytes(const flow_call *call)
{
  layout l = layout_of(call);
  return offset_bytes(&l) + (l.packed + packed_biases(&l.s)) * sizeof(float);
}

/* The band of copied input rows, then the ring: for each row of a window one row of the convolution, one block wide. Either may be
 * empty. */
static size_t scratch_bytes(const flow_call *call)
{
  layout l = layout_of(call);
  return (l.band_floats + (size_t)(l.ring_floats * l.s.pool[0])) * sizeof(float);
}

/* Blocks of output channels of one group. */
static int64_t blocks_of_group(const flow_geometry *s) { return (s->group_out + BLOCK - 1) / BLOCK; }

/* Offsets of the taps, from the first tap of an output; the packed weights, already times the input's scale, so that no input is
 * multiplied; the biases. */
static flow_status prepare(const flow_call *call)
{
  layout l = layout_of(call);
  const flow_geometry *s = &l.s;
  shared_view shared = shared_of(call, &l);
  int64_t columns = l.one_run ? 1 : s->kernel[1];
  for (int64_t tap = 0; tap < l.taps; tap++)
    shared.offsets[tap] = (tap / columns * s->dilation[0] * l.width + tap % columns * s->dilation[1]) * l.pixel;
  const flow_tap_range all[2] = { { 0, 1, s->kernel[0] }, { 0, 1, s->kernel[1] } };
  if (l.dots) flow_pack_dots(s, call->inputs[1].data, shared.weights);
  else flow_pack_weights(s, call->inputs[1].data, 0, all, shared.weights);
  if (s->input_scale != 1)
    for (size_t i = 0; i < l.packed; i++) shared.weights[i] *= (float)s->input_scale;
  memset(shared.biases, 0, packed_biases(s) * sizeof(float));
  const float *b = s->has_bias ? call->inputs[2].data : NULL;
  for (int64_t group = 0; group < s->groups && b; group++)
    memcpy(shared.biases + group * flow_padded_channels(s->group_out), b + group * s->group_out, (size_t)s->group_out * sizeof(float));
  return FLOW_OK;
}

/* Input rows first .. first + rows - 1, counted from the top padding, into the band. Its left and right margins are
 * zero already and stay so. */
static void fill_band(const layout *l, const void *x, int64_t first, int64_t rows, float *band)
{
  const flow_geometry *s = &l->s;
  int64_t pixels = l->pixel == s->channels_in ? 1 : s->in[1], floats = s->in[1] * s->channels_in / pixels;
  for (int64_t row = 0; row < rows; row++) {
    int64_t iy = first + row - s->before[0];
    float *to = band + (row * l->width + s->before[1]) * l->pixel;
    for (int64_t p = 0; p < pixels; p++, to += l->pixel) {
      if (iy >= 0 && iy < s->in[0]) flow_copy_input(s, to, flow_input_at(s, x, (iy * pixels + p) * floats), floats);
      else memset(to, 0, (size_t)floats * sizeof(float));
    }
  }
}

/* Max pooling of one row of windows over conv rows: rows[i] is the i-th row of the windows, one block wide. The first
 * of equals wins, a NaN wins over numbers. y or index may be NULL. height and width are constants where it pays. */
ALWAYS_INLINE void pool_windows(const int64_t height, const int64_t width, const flow_geometry *s, const float *const *rows, int64_t step,
                                int64_t channels, float *y, uint8_t *index)
{
  for (int64_t px = 0; px < s->result[1]; px++) {
    for (int64_t c = 0; c < channels; c += VL) {
      int64_t at = px * s->pool_stride[1] * step + c;
      vf best = vf_load(rows[0] + at);
      vi argmax = { 0 };
      for (int64_t ky = 0; ky < height; ky++) {
        for (int64_t kx = ky == 0; kx < width; kx++)
          flow_pool_take(&best, &argmax, vf_load(rows[ky] + at + kx * step), (int32_t)(ky * width + kx));
      }
      if (s->relu) flow_pool_relu(&best, &argmax);
      int64_t to = px * s->channels_out + c, lanes = channels - c;
      if (lanes >= VL) {
        if (y) vf_store(y + to, best);
        if (index) vi_store_bytes(index + to, argmax);
      } else {
        for (int64_t lane = 0; lane < lanes && y; lane++) y[to + lane] = best[lane];
        for (int64_t lane = 0; lane < lanes && index; lane++) index[to + lane] = (uint8_t)argmax[lane];
      }
    }
  }
}

/* The usual window as constants. */
static void pool_row(const flow_geometry *s, const float *const *rows, int64_t step, int64_t channels, float *y, uint8_t *index)
{
  if (s->pool[0] == 2 && s->pool[1] == 2) pool_windows(2, 2, s, rows, step, channels, y, index);
  else pool_windows(s->pool[0], s->pool[1], s, rows, step, channels, y, index);
}

/* Of results from `y` on. */
static flow_epilogue epilogue_for(const layout *l, const float *y)
{
  flow_epilogue epilogue = flow_epilogue_of(&l->s);
  if (l->added) epilogue.added = l->added + (y - l->y);
  return epilogue;
}

/* Row `row` of one block of output channels, without pooling: a kernel's rows that meet zeros above or below the image are left out. x: the
 * input row under the first row of the kernel; taps, weights: of the whole kernel. */
static void convolve_inside(const layout *l, const flow_taps *taps, int64_t row, const float *x, const float *weights, const float *bias,
                            int64_t channels, float *y)
{
  const flow_geometry *s = &l->s;
  flow_taps inside = *taps;
  int64_t first, per_row = l->taps / s->kernel[0];
  int64_t rows = flow_rows_inside(row * s->stride[0] - s->before[0], s->dilation[0], s->in[0], s->kernel[0], &first);
  inside.offsets += first * per_row;
  inside.count = rows * per_row;
  flow_convolve_row(&inside, x, weights + first * per_row * taps->run * flow_padded_channels(channels), bias, epilogue_for(l, y), channels,
                    y, s->channels_out, s->out[1]);
}

/* One block of output channels for rows `first` .. `last` - 1 of y. x: the input row of the first conv row. */
static void convolve_block(const layout *l, const int64_t *offsets, const float *x, const float *weights, const float *bias,
                           flow_ahead *ahead, int64_t channels, int64_t first, int64_t last, float *y, uint8_t *index, float *ring)
{
  const flow_geometry *s = &l->s;
  flow_taps taps = {
    .count = l->taps,
    .run = l->one_run ? s->kernel[1] * s->group_in : s->group_in,
    .offsets = offsets,
    .pixel_step = s->stride[1] * l->pixel,
    .ahead = ahead,
    .passed_on = l->passed_on && !s->pooled,
  };
  flow_row_function *convolve_row = s->depthwise ? flow_depthwise_row : l->dots ? flow_dots_row : flow_convolve_row;
  int64_t row_step = s->stride[0] * l->width * l->pixel, y_row = s->result[1] * s->channels_out;
  if (!s->pooled) {
    const flow_epilogue epilogue = flow_epilogue_of(s);
    for (int64_t row = first; row < last; row++, x += row_step)
      if (!s->depthwise && !l->dots) convolve_inside(l, &taps, row, x, weights, bias, channels, y + row * y_row);
      else convolve_row(&taps, x, weights, bias, epilogue, channels, y + row * y_row, s->channels_out, s->out[1]);
    return;
  }
  /* Windows of 2 x 2 side by side: the four outputs of a window are in registers together, and the ring is not needed. */
  if (l->by_two) {
    for (int64_t row = first; row < last; row++, x += 2 * row_step)
      flow_convolve_pooled_row(&taps, x, row_step, weights, bias, s->relu, channels, y ? y + row * y_row : NULL,
                               index ? index + row * y_row : NULL, s->channels_out, s->result[1]);
    return;
  }
  /* Other windows. Row i of the convolution is in the ring at i % height. Rows that overlapping windows share are computed once, those
   * between windows not at all. Relu waits for the maximum, so that rows have no floor: pool_windows also marks the maxima that it
   * stops. */
  int64_t step = flow_padded_channels(channels), done = first * s->pool_stride[0];
  const float *rows[NO_ARGMAX];
  for (int64_t row = first; row < last; row++) {
    int64_t top = row * s->pool_stride[0];
    if (done < top) done = top;
    for (; done < top + s->pool[0]; done++)
      convolve_row(&taps, x + (done - first * s->pool_stride[0]) * row_step, weights, bias, flow_no_epilogue(), step,
                   ring + done % s->pool[0] * l->ring_floats, step, s->out[1]);
    for (int64_t ky = 0; ky < s->pool[0]; ky++) rows[ky] = ring + (top + ky) % s->pool[0] * l->ring_floats;
    pool_row(s, rows, step, channels, y ? y + row * y_row : NULL, index ? index + row * y_row : NULL);
  }
}

/* Blocks of channels [begin, end), counted over all groups of the convolution, for rows `first` .. `last` - 1 of one image of y. input:
 * what input_of() returned for these rows. */
static void convolve_blocks(const flow_call *call, const layout *l, int64_t image, int64_t first, int64_t last, int64_t begin, int64_t end,
                            const float *input)
{
  const flow_geometry *s = &l->s;
  shared_view shared = shared_of(call, l);
  float *y = call->outputs[0].data, *ring = (float *)call->scratch + l->band_floats;
  uint8_t *index = s->pooled ? call->outputs[1].data : NULL;
  int64_t group_padded = flow_padded_channels(s->group_out), taps = s->kernel[0] * s->kernel[1] * s->group_in;
  int64_t to = image * s->result[0] * s->result[1] * s->channels_out;
  for (int64_t b = begin; b < end; b++) {
    int64_t group = b / blocks_of_group(s), block = b % blocks_of_group(s) * BLOCK, channel = group * s->group_out + block;
    int64_t channels = s->group_out - block < BLOCK ? s->group_out - block : BLOCK;
    int64_t at = (group * group_padded + block) * taps, floats = taps * flow_padded_channels(channels);
    const float *weights = shared.weights + at, *biases = shared.biases + group * group_padded + block;
    flow_ahead ahead = flow_weights_ahead(shared.weights, at + floats, floats, (int64_t)l->packed);
    convolve_block(l, shared.offsets, input + (s->depthwise ? block : group * s->group_in), weights, biases, &ahead, channels, first, last,
                   y ? y + to + channel : NULL, index ? index + to + channel : NULL, ring);
  }
}

/* The input of rows `first` .. `last` - 1 of y of one image: where it is, or a copy with zeros around it. */
static const float *input_of(const flow_call *call, const layout *l, int64_t image, int64_t first, int64_t last)
{
  const flow_geometry *s = &l->s;
  int64_t top = first * s->pool_stride[0] * s->stride[0];
  int64_t rows = ((last - first - 1) * s->pool_stride[0] + s->pool[0] - 1) * s->stride[0] + flow_reach(s, 0) + 1;
  const void *x = flow_input_at(s, call->inputs[0].data, image * s->in[0] * s->in[1] * s->channels_in);
  if (!l->copied) return (const float *)x + top * l->width * l->pixel;
  fill_band(l, x, top, rows, call->scratch);
  return call->scratch;
}

/* Whether nothing reads a result of this call: the kernel has nothing to do then. */
static int unread(const flow_call *call, const layout *l)
{
  return !call->outputs[0].data && (!l->s.pooled || !call->outputs[1].data);
}

/* Images of the chunk one after the other, band by band. The margins of the band are cleared once: fill_band does not touch them. */
static flow_status run_direct(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  layout l = layout_of(call);
  if (unread(call, &l)) return FLOW_OK;
  if (l.copied) memset(call->scratch, 0, l.band_floats * sizeof(float));
  for (int64_t image = 0; image < l.s.images; image++)
    for (int64_t first = 0; first < l.s.result[0]; first += l.band) {
      int64_t last = first + l.band < l.s.result[0] ? first + l.band : l.s.result[0];
      convolve_blocks(call, &l, image, first, last, 0, l.s.groups * blocks_of_group(&l.s), input_of(call, &l, image, first, last));
    }
  return FLOW_OK;
}

/* Into which pieces one image is cut; those of several images are numbered one image after the other. */
static flow_piece_grid pieces_of(const layout *l)
{
  const flow_geometry *s = &l->s;
  int64_t rows = s->result[0] > 0 ? s->result[0] : 1, blocks = s->groups * blocks_of_group(s);
  return flow_cut_pieces(flow_multiply_adds(s) / (double)(s->images ? s->images : 1), rows, (rows + l->band - 1) / l->band,
                         blocks > 0 ? blocks : 1, 0);
}

/* Bands are of rows, at least as many as the whole call goes by. */
static int64_t pieces_direct(const flow_call *call)
{
  layout l = layout_of(call);
  flow_piece_grid pieces = pieces_of(&l);
  return l.s.images * pieces.bands * pieces.groups;
}

/* Piece number (image, band of rows, group of blocks of output channels), the last counting fastest: neighbouring pieces read the same rows
 * of x. */
static flow_status run_direct_piece(const flow_call *call, int64_t piece)
{
  layout l = layout_of(call);
  flow_piece_grid pieces = pieces_of(&l);
  flow_piece of = flow_piece_of(&pieces, piece, l.s.result[0], l.s.groups * blocks_of_group(&l.s));
  if (unread(call, &l) || of.first >= of.last) return FLOW_OK;
  if (l.copied) memset(call->scratch, 0, l.band_floats * sizeof(float));
  convolve_blocks(call, &l, of.image, of.first, of.last, of.begin, of.end, input_of(call, &l, of.image, of.first, of.last));
  return FLOW_OK;
}

/* The plain variant takes the rest: float64, and windows whose cells a byte cannot number. */
static int supports_direct(const flow_call *call)
{
  const int32_t *pool = call->attributes->convolution.pool;
  int dtype = call->inputs[0].dtype;
  return call->inputs[1].dtype == FLOW_FLOAT32 && (dtype == FLOW_FLOAT32 || dtype == FLOW_UINT8)
      && pool[0] * (int64_t)pool[1] <= NO_ARGMAX && call->inputs[0].shape[3] > 0;
}

/* Wide rows of many channels reach 90 % of the peak; a kernel of few taps pays for its tile's beginning and end. */
static double cost_direct(const flow_call *call)
{
  layout l = layout_of(call);
  const flow_geometry *s = &l.s;
  double taps = (double)(s->kernel[0] * s->kernel[1] * s->group_in), pixels = (double)(s->images * s->out[0] * s->out[1]);
  /* Half vectors, where flow_convolve_row takes them; rows for a ring are whole vectors in any case. */
  int64_t lanes = VL == 16 && s->group_out <= VL / 2 && !s->pooled ? VL / 2 : flow_padded_channels(s->group_out);
  double padded = (double)(s->groups * (s->depthwise ? flow_padded_channels(s->group_out) : lanes));
  if (s->depthwise) return flow_cost_arithmetic(pixels * taps * padded, 0.3);
  if (l.dots) padded = (double)s->channels_out;
  double copied = l.copied ? (double)(s->images * s->in[0] * s->in[1] * l.pixel) * 2 * sizeof(float) : 0;
  double packed = (double)l.packed * sizeof(float) * (call->kept ? 1 : 2);
  if (!l.dots && !s->pooled && s->out[0] > 0) taps *= (double)flow_row_pairs(s) / (double)(s->out[0] * s->kernel[0]);
  return flow_cost_arithmetic(pixels * (taps + (l.dots ? 4 * VL : 4)) * padded, l.dots ? 0.8 : 0.9) + flow_cost_cached(copied + packed);
}

/* The order decides nothing but ties: of the variants that support a call the cheapest runs it. */
const flow_kernel FLOW_KERNELS(convolution)[] = {
  { .variant = "direct",
    .supports = supports_direct,
    .cost = cost_direct,
    .shared_bytes = shared_bytes,
    .scratch_bytes = scratch_bytes,
    .prepare = prepare,
    .run = run_direct,
    .pieces = pieces_direct,
    .run_piece = run_direct_piece },
  FLOW_PIECES_ENTRY(pointwise, "pointwise"),
  { .variant = "product",
    .supports = FLOW_ISA_NAME(convolution_product_supports),
    .cost = FLOW_ISA_NAME(convolution_product_cost),
    .scratch_bytes = FLOW_ISA_NAME(convolution_product_scratch_bytes),
    .run = FLOW_ISA_NAME(convolution_product_run),
    .pieces = FLOW_ISA_NAME(convolution_product_pieces),
    .run_piece = FLOW_ISA_NAME(convolution_product_run_piece) },
  FLOW_PIECES_ENTRY(depthwise, "depthwise"),
  FLOW_PIECES_ENTRY(convolution_winograd, "winograd"),
  FLOW_VARIANT_ENTRY(convolution_doubles, "doubles"),
  { .variant = "plain", .run = flow_convolution_plain },
  { 0 }
};

/* Not of a depthwise convolution, whose rows have an engine of their own. */
static int supports_direct_add(const flow_call *call)
{
  return supports_direct(call) && !layout_of(call).s.depthwise;
}

/* Of the same variants those that can add. */
const flow_kernel FLOW_KERNELS(convolution_add)[] = {
  { .variant = "direct",
    .supports = supports_direct_add,
    .cost = cost_direct,
    .shared_bytes = shared_bytes,
    .scratch_bytes = scratch_bytes,
    .prepare = prepare,
    .run = run_direct,
    .pieces = pieces_direct,
    .run_piece = run_direct_piece },
  FLOW_PIECES_ENTRY(pointwise, "pointwise"),
  FLOW_PIECES_ENTRY(convolution_winograd, "winograd"),
  { .variant = "plain", .run = flow_convolution_plain },
  { 0 }
};
