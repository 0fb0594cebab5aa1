/* convolution_gradient.c: g, x, w, y, index -> dx, dw, db: the backward kernels.
 *
 * The direct variant rebuilds the gradient of the convolution's own output row by row (max pooling undone, relu
 * applied) into a canvas in scratch, and does everything that needs those rows while they are in the inner caches:
 *   db += the sum of the pixels                                             (flow_sum_row)
 *   dw += x under the kernel times the pixels                               (flow_outer_products)
 *   dx  = the canvas convolved with the weights, rotated by 180 degrees and transposed (flow_convolve_row)
 * With a stride S the rows of dx fall into S phases: row i gets the taps ky for which i + padding - ky * dilation is a
 * multiple of S, so each phase is an ordinary convolution with a part of the kernel; columns likewise.
 * For dx the canvas has a margin of zeros as wide as the kernel reaches. A canvas holds a band of rows; the rows that
 * the next band needs again are moved to its top. All sums run image by image, row by row, pixel by pixel, however the
 * rows are chunked. */
#include "cpu/convolution/convolution.h"
#include "cpu/cost.h"
#include "cpu/variant.h"

enum {
  CANVAS_BYTES = 128 * 1024, /* with the x rows under it inside half of a second-level cache */
  PASS_PIXELS = 128,         /* of one pass of outer products: x and g stay in the first-level cache, sums move rarely */
  GROUP_BYTES = 1024 * 1024
}; /* of canvases and x of small images that a pass takes together */

/* How a call is walked, from its shapes alone. */
typedef struct layout {
  flow_geometry s;
  int64_t pixel, x_pixel;           /* floats of a pixel of the canvas and of x as dw sees it */
  int     x_copied;                 /* x rows are copied, with zeros around them, for dw */
  int64_t x_width;                  /* pixels of an x row as dw sees it */
  int64_t margin[2];                /* canvas position of the first gradient */
  int64_t reach[2];                 /* canvas pixels after the first that one group of dx rows (columns) needs */
  int64_t groups[2];                /* rows (columns) of dx divided by the stride; without dx the gradients themselves */
  int64_t rows, width;              /* the canvas of a whole image */
  int64_t band;                     /* rows of it, without the reach, in scratch at a time */
  int64_t group;                    /* images that a pass of outer products takes together: those of few pixels */
  size_t canvas_floats, x_floats;   /* of one image */
} layout;

/* A pixel of a multiple of 256 bytes makes neighbouring pixels share few sets of the first-level cache: 16 floats more. */
static int64_t spread_pixel(int64_t floats) { return floats % 64 == 0 ? floats + 16 : floats; }

/* The layout of a call; without dx the canvas needs neither margins nor reach. */
static layout layout_of(const flow_call *call, int with_dx)
{
  layout l = { .s = flow_direct_geometry(flow_geometry_of(call, &call->inputs[1], &call->inputs[2])) };
  const flow_geometry *s = &l.s;
  l.x_pixel = spread_pixel(s->depthwise ? flow_padded_channels(s->channels_in) : s->channels_in);
  l.x_copied = s->before[0] || s->before[1] || s->after[0] || s->after[1] || l.x_pixel != s->channels_in || s->bytes;
  l.x_width = s->in[1] + s->before[1] + s->after[1];
  l.pixel = spread_pixel(s->channels_out - s->group_out + flow_padded_channels(s->group_out));   /* whole vectors for every group */
  int64_t size[2];
  for (int axis = 0; axis < 2; axis++) {
    int64_t stride = s->stride[axis];
    l.margin[axis] = with_dx ? (flow_reach(s, axis) - s->before[axis]) / stride : 0;
    l.reach[axis] = with_dx ? l.margin[axis] + (stride - 1 + s->before[axis]) / stride : 0;
    l.groups[axis] = with_dx ? (s->in[axis] + stride - 1) / stride : s->out[axis];
    size[axis] = l.groups[axis] + l.reach[axis];
  }
  l.rows = size[0];
  l.width = size[1];
  int64_t row_bytes = l.width * l.pixel * (int64_t)sizeof(float);
  l.band = CANVAS_BYTES / row_bytes - l.reach[0];
  if (l.band < 1 + l.reach[0]) l.band = 1 + l.reach[0];
  if (l.band > l.groups[0]) l.band = l.groups[0];
  int64_t x_rows = (l.band + l.reach[0] - 1) * s->stride[0] + flow_reach(s, 0) + 1;
  l.canvas_floats = (size_t)flow_padded_channels((l.band + l.reach[0]) * l.width * l.pixel);
  l.x_floats = l.x_copied ? (size_t)flow_padded_channels(x_rows * l.x_width * l.x_pixel) : 0;
  int64_t pixels = s->out[0] * s->out[1], most = GROUP_BYTES / (int64_t)((l.canvas_floats + l.x_floats) * sizeof(float));
  l.group = s->depthwise || l.band < l.groups[0] || pixels < 1 ? 1 : (PASS_PIXELS + pixels / 2) / pixels;
  if (l.group > most) l.group = most;
  if (l.group > s->images) l.group = s->images;
  if (l.group < 1) l.group = 1;
  return l;
}

static size_t group_floats(const layout *l)
{
  return (size_t)l->group * (l->canvas_floats + l->x_floats);
}

/* One phase of the rows (axis 0) or columns (axis 1) of dx: which kernel positions they see, last one first, and where
 * on the canvas, counted from the group's own position, the first of them is and how far apart they are. */
typedef struct stride_phase { flow_tap_range taps; int64_t start, step; } stride_phase;

/* The taps of flow_stride_phase_of(), last one first. count 0: no output sees these inputs. */
static stride_phase phase_of(const layout *l, int axis, int64_t number)
{
  flow_stride_phase phase = flow_stride_phase_of(&l->s, axis, number);
  return (stride_phase){
    .taps = { .first = phase.last, .step = -phase.tap_step, .count = phase.taps },
    .step = phase.output_step,
    .start = l->margin[axis] + phase.output,
  };
}

/* Positions of the kernel within one group, as flow_outer_products sums over them. */
static int64_t positions_of(const flow_geometry *s) { return s->kernel[0] * s->kernel[1] * s->group_in; }

/* shared: offsets of the positions in x, offsets of the taps of all phases on the canvas, a zero bias for one block,
 * the transposed weights of all phases. */
typedef struct shared_view { int64_t *positions, *taps; float *bias, *weights; } shared_view;

/* Bytes of both lists of offsets, up to a cache line. */
static size_t offset_bytes(const flow_geometry *s)
{
  return ((size_t)(positions_of(s) + s->kernel[0] * s->kernel[1]) * sizeof(int64_t) + 63) / 64 * 64;
}

/* The parts of the block that prepare() fills and all members read. */
static shared_view shared_of(const flow_call *call, const flow_geometry *s)
{
  shared_view view = { .positions = call->shared, .bias = (float *)((char *)call->shared + offset_bytes(s)) };
  view.taps = view.positions + positions_of(s);
  view.weights = view.bias + BLOCK;
  return view;
}

/* Depthwise weights are packed as in the forward pass, since each channel meets only itself; others transposed, inputs as outputs. */
static size_t shared_bytes(const flow_call *call)
{
  flow_geometry s = flow_direct_geometry(flow_geometry_of(call, &call->inputs[1], &call->inputs[2]));
  return offset_bytes(&s) + (BLOCK + flow_packed_floats(&s, !s.depthwise)) * sizeof(float);
}

/* The canvas, then the copied rows of x. */
static size_t scratch_bytes(const flow_call *call)
{
  layout with = layout_of(call, 1), without = layout_of(call, 0);   /* whether dx is wanted is not known yet */
  size_t a = group_floats(&with), b = group_floats(&without);
  return (a > b ? a : b) * sizeof(float);
}

/* A kernel row of a phase is one run of canvas floats. */
static int one_run(const layout *l, const stride_phase *columns)
{
  return columns->step == 1 && l->s.groups == 1 && !l->s.depthwise && l->pixel == l->s.channels_out;
}

/* Once for a call, before its parts: places of the weights' elements in an image, the weights packed for each phase of the strides (a
 * phase's pixels of dx meet the same taps), and where those taps are in g. */
static flow_status prepare(const flow_call *call)
{
  layout l = layout_of(call, 1);
  const flow_geometry *s = &l.s;
  shared_view shared = shared_of(call, s);
  int64_t *position = shared.positions, *tap = shared.taps;
  for (int64_t ky = 0; ky < s->kernel[0]; ky++)
    for (int64_t kx = 0; kx < s->kernel[1]; kx++)
      for (int64_t c = 0; c < s->group_in; c++)
        *position++ = (ky * s->dilation[0] * l.x_width + kx * s->dilation[1]) * l.x_pixel + c;
  memset(shared.bias, 0, BLOCK * sizeof(float));
  float *packed = shared.weights;
  for (int64_t i = 0; i < s->stride[0] * s->stride[1]; i++) {
    stride_phase rows = phase_of(&l, 0, i / s->stride[1]), columns = phase_of(&l, 1, i % s->stride[1]);
    const flow_tap_range ranges[2] = { rows.taps, columns.taps };
    packed = flow_pack_weights(s, call->inputs[2].data, !s->depthwise, ranges, packed);
    int64_t runs = one_run(&l, &columns) && columns.taps.count > 0 ? 1 : columns.taps.count;
    for (int64_t k = 0; k < rows.taps.count * runs; k++)
      *tap++ = ((rows.start + k / runs * rows.step) * l.width + columns.start + k % runs * columns.step) * l.pixel;
  }
  return FLOW_OK;
}

/* Canvas rows have .. last - 1; the canvas in scratch begins at row `first`. */
static void build_rows(const layout *l, int64_t first, int64_t have, int64_t last, const float *g, const float *y,
                       const uint8_t *index, float *canvas)
{
  int64_t row_floats = l->width * l->pixel;
  for (int64_t at = have; at < last; at++) {
    float *to = canvas + (at - first) * row_floats;
    int64_t row = at - l->margin[0];
    if (row >= 0 && row < l->s.out[0]) flow_gradient_row(&l->s, row, g, y, index, to + l->margin[1] * l->pixel, l->pixel);
    else memset(to, 0, (size_t)row_floats * sizeof(float));
  }
}

/* x rows from `first` (counted from the top padding) on; the copy's left and right margins are zero and stay so. */
static const float *input_rows(const layout *l, const void *x, int64_t first, int64_t rows, float *copy)
{
  const flow_geometry *s = &l->s;
  int64_t inner = s->in[1] * s->channels_in;
  if (!l->x_copied) return (const float *)x + first * inner;
  int64_t pixels = l->x_pixel == s->channels_in ? 1 : s->in[1], floats = inner / pixels;
  for (int64_t row = 0; row < rows; row++) {
    int64_t iy = first + row - s->before[0];
    float *to = copy + (row * l->x_width + s->before[1]) * l->x_pixel;
    for (int64_t p = 0; p < pixels; p++, to += l->x_pixel) {
      if (iy >= 0 && iy < s->in[0]) flow_copy_input(s, to, flow_input_at(s, x, iy * inner + p * floats), floats);
      else memset(to, 0, (size_t)floats * sizeof(float));
    }
  }
  return copy;
}

/* Adds to dw what gradient rows first .. last - 1 of `images` give; anew: dw has nothing yet. g: their first pixel in the canvas of the
 * first image; x: the input under it. */
static void add_weight_gradient(const layout *l, const int64_t *positions, int64_t images, int64_t first, int64_t last, const float *x,
                                const float *g, float *dw, int anew)
{
  const flow_geometry *s = &l->s;
  flow_pixels pixels = {
    .images = images,
    .columns = s->out[1],
    .x_image_step = l->x_copied ? (int64_t)l->x_floats : s->in[0] * s->in[1] * s->channels_in,
    .g_image_step = (int64_t)l->canvas_floats,
    .x_row_step = s->stride[0] * l->x_width * l->x_pixel,
    .x_step = s->stride[1] * l->x_pixel,
    .g_row_step = l->width * l->pixel,
    .g_step = l->pixel,
  };
  /* Whole rows of gradients, as many as PASS_PIXELS, at least one; of several images, whose pixels are few, all. Each block of channels
   * goes over a pass before the next begins. */
  int64_t pass = images > 1 ? last - first : PASS_PIXELS / s->out[1] > 0 ? PASS_PIXELS / s->out[1] : 1;
  for (int64_t row = first; row < last; row += pass) {
    pixels.rows = last - row < pass ? last - row : pass;
    pixels.anew = anew && row == first;
    for (int64_t group = 0; group < s->groups; group++) {
      for (int64_t block = 0; block < s->group_out; block += BLOCK) {
        int64_t channels = s->group_out - block < BLOCK ? s->group_out - block : BLOCK, channel = group * s->group_out + block;
        const float *from = x + (row - first) * pixels.x_row_step + (s->depthwise ? channel : group * s->group_in);
        (s->depthwise ? flow_depthwise_products : flow_outer_products)(&pixels, from, positions, positions_of(s),
                                                                       g + (row - first) * pixels.g_row_step + channel, channels,
                                                                       dw + channel, s->channels_out);
      }
    }
  }
}

/* The rows of one phase of dx in the groups first .. last - 1; canvas begins at row `first`. dx: first pixel of phase
 * and image. Returns the weights of the next phase. */
static const float *phase_gradient(const layout *l, const stride_phase *rows, const stride_phase *columns, int64_t height, int64_t width,
                                   const int64_t *offsets, const float *weights, const float *bias, int64_t first, int64_t last,
                                   const float *canvas, float *dx)
{
  const flow_geometry *s = &l->s;
  int run = one_run(l, columns);
  int64_t row_step = s->stride[0] * s->in[1] * s->channels_in, pixel_step = s->stride[1] * s->channels_in;
  flow_taps taps = {
    .count = rows->taps.count * (run ? 1 : columns->taps.count), .run = (run ? columns->taps.count : 1) * s->group_out,
    .offsets = offsets, .pixel_step = l->pixel,
  };
  if (last > height) last = height;
  if (rows->taps.count == 0 || columns->taps.count == 0) {   /* no output saw these inputs */
    for (int64_t row = first; row < last; row++)
      for (int64_t p = 0; p < width; p++) memset(dx + row * row_step + p * pixel_step, 0, (size_t)s->channels_in * sizeof(float));
    return weights;
  }
  int64_t outputs = s->depthwise ? s->channels_in : s->group_in, inputs = s->depthwise ? 1 : s->group_out;
  for (int64_t group = 0; group < s->groups; group++) {
    for (int64_t block = 0; block < outputs; block += BLOCK) {
      int64_t channels = outputs - block < BLOCK ? outputs - block : BLOCK;
      const float *from = canvas + (s->depthwise ? block : group * s->group_out);
      float *to = dx + group * s->group_in + block;
      for (int64_t row = first; row < last; row++, from += l->width * l->pixel) {
        /* Rows of the kernel that meet zeros above or below the gradient are left out. */
        int64_t top, per_row = run ? 1 : columns->taps.count, of_row = per_row * taps.run * flow_padded_channels(channels);
        int64_t inside = flow_rows_inside(row + rows->start - l->margin[0], rows->step, s->out[0], rows->taps.count, &top);
        flow_taps own = taps;
        own.offsets += top * per_row;
        own.count = inside * per_row;
        if (s->depthwise)
          flow_depthwise_row(&taps, from, weights, bias, flow_no_epilogue(), channels, to + row * row_step, pixel_step, width);
        else
          flow_convolve_row(&own, from, weights + top * of_row, bias, flow_no_epilogue(), channels, to + row * row_step, pixel_step, width);
      }
      weights += rows->taps.count * columns->taps.count * inputs * flow_padded_channels(channels);
    }
  }
  return weights;
}

/* dx of the row groups first .. last - 1. */
static void input_gradient(const layout *l, const shared_view *shared, int64_t first, int64_t last, const float *canvas, float *dx)
{
  const flow_geometry *s = &l->s;
  const float *weights = shared->weights;
  const int64_t *offsets = shared->taps;
  for (int64_t py = 0; py < s->stride[0]; py++) {
    for (int64_t px = 0; px < s->stride[1]; px++) {
      stride_phase rows = phase_of(l, 0, py), columns = phase_of(l, 1, px);
      int64_t height = (s->in[0] - py + s->stride[0] - 1) / s->stride[0], width = (s->in[1] - px + s->stride[1] - 1) / s->stride[1];
      weights = phase_gradient(l, &rows, &columns, height, width, offsets, weights, shared->bias, first, last, canvas,
                               dx + (py * s->in[1] + px) * s->channels_in);
      offsets += rows.taps.count * (one_run(l, &columns) && columns.taps.count > 0 ? 1 : columns.taps.count);
    }
  }
}

/* What a call reads and writes, from the first of some images on. */
typedef struct images_view {
  const float *g, *y;
  const uint8_t *index;
  const void *x;
  float *dx;
} images_view;

static images_view images_from(const flow_call *call, const flow_geometry *s, int64_t image)
{
  int64_t result = image * s->result[0] * s->result[1] * s->channels_out, input = image * s->in[0] * s->in[1] * s->channels_in;
  float *dx = call->outputs[0].data;
  return (images_view){
    .g = (const float *)call->inputs[0].data + result,
    .y = (const float *)call->inputs[3].data + result,
    .index = s->pooled ? (const uint8_t *)call->inputs[4].data + result : NULL,
    .x = flow_input_at(s, call->inputs[1].data, input),
    .dx = dx ? dx + input : NULL,
  };
}

/* All three gradients of `images` that have a canvas each, one unless they are small. *anew: dw begins with them, and no longer does so
 * when some of it has been added. */
static void images_gradient(const flow_call *call, const layout *l, const shared_view *shared, int64_t image, int64_t images, float *canvas,
                            int *anew)
{
  const flow_geometry *s = &l->s;
  float *dw = call->outputs[1].data, *db = call->outputs[2].data, *x_copies = canvas + (size_t)l->group * l->canvas_floats;
  int64_t row_floats = l->width * l->pixel, end = l->groups[0], have = 0;
  for (int64_t first = 0; first < end; first += l->band) {
    int64_t last = first + l->band < end ? first + l->band : end;
    /* The gradients that this band adds to dw and db: those in its own rows, in the last band also those in the reach. */
    int64_t row = first - l->margin[0] > 0 ? first - l->margin[0] : 0, stop = (last == end ? l->rows : last) - l->margin[0];
    if (stop > s->out[0]) stop = s->out[0];
    int64_t at = (row + l->margin[0] - first) * row_floats + l->margin[1] * l->pixel;
    const float *x = NULL;
    for (int64_t i = 0; i < images; i++) {
      images_view view = images_from(call, s, image + i);
      float *own = canvas + (size_t)i * l->canvas_floats;
      build_rows(l, first, have, last + l->reach[0], view.g, view.y, view.index, own);
      for (int64_t r = row; db && r < stop; r++) flow_sum_row(db, own + at + (r - row) * row_floats, l->pixel, s->out[1], s->channels_out);
      if (!dw || row >= stop) continue;
      const float *rows = input_rows(l, view.x, row * s->stride[0], (stop - row - 1) * s->stride[0] + flow_reach(s, 0) + 1,
                                     x_copies + (size_t)i * l->x_floats);
      if (i == 0) x = rows;
    }
    have = last + l->reach[0];
    if (x) {
      add_weight_gradient(l, shared->positions, images, row, stop, x, canvas + at, dw, *anew);
      *anew = 0;
    }
    for (int64_t i = 0; i < images && call->outputs[0].data; i++)
      input_gradient(l, shared, first, last, canvas + (size_t)i * l->canvas_floats, images_from(call, s, image + i).dx);
    /* The rows in the reach of this band are the first ones of the next band: they are moved, not built again. Small images have one. */
    if (l->reach[0] && last < end)
      memmove(canvas, canvas + (last - first) * row_floats, (size_t)(l->reach[0] * row_floats) * sizeof(float));
  }
}

/* Images one after the other, or some at a time; dw and db are added up over all images of the call, in their order. canvas: g as the
 * phases read it, with a border of zeros. */
static flow_status run_direct(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  float *dw = call->outputs[1].data, *db = call->outputs[2].data, *canvas = call->scratch;
  layout l = layout_of(call, call->outputs[0].data != NULL);
  const flow_geometry *s = &l.s;
  shared_view shared = shared_of(call, s);
  int anew = !call->accumulate;
  if (db && anew) memset(db, 0, (size_t)s->channels_out * sizeof(float));
  memset(canvas, 0, group_floats(&l) * sizeof(float));
  for (int64_t image = 0; image < s->images; image += l.group)
    images_gradient(call, &l, &shared, image, s->images - image < l.group ? s->images - image : l.group, canvas, &anew);
  if (dw && anew) memset(dw, 0, (size_t)(positions_of(s) * s->channels_out) * sizeof(float)); /* no pixels */
  return FLOW_OK;
}

/* Pieces of a call that wants dx alone, as the forward pass of a transposed convolution does: bands of rows of dx, those of several images
 * one image after the other. Sums over all rows stay in one piece. */
static int64_t rows_of_piece(const flow_call *call, const layout *l)
{
  const flow_geometry *s = &l->s;
  if (!call->outputs[1].unused || !call->outputs[2].unused || l->groups[0] < 1) return l->groups[0];
  int64_t bands = flow_cut_pieces(flow_multiply_adds(s) / (double)(s->images ? s->images : 1), l->groups[0], 1, 1, 1).bands;
  return (l->groups[0] + bands - 1) / bands;
}

/* One piece if dw or db is wanted: their sums run over all rows. */
static int64_t pieces_direct(const flow_call *call)
{
  layout l = layout_of(call, 1);
  int64_t rows = rows_of_piece(call, &l);
  return rows < l.groups[0] ? l.s.images * ((l.groups[0] + rows - 1) / rows) : 1;
}

/* A band of dx rows of one image; the rows of the gradient's canvas that several bands reach are built for each of them. dw and db are not
 * made in pieces: their sums would depend on the cut. */
static flow_status run_direct_piece(const flow_call *call, int64_t piece)
{
  layout l = layout_of(call, 1);
  const flow_geometry *s = &l.s;
  int64_t rows = rows_of_piece(call, &l);
  if (rows >= l.groups[0]) return run_direct(call, 0, 0, 1);
  int64_t bands = (l.groups[0] + rows - 1) / rows, image = piece / bands, end = (piece % bands + 1) * rows;
  int64_t result = image * s->result[0] * s->result[1] * s->channels_out;
  float *dx = call->outputs[0].data, *canvas = call->scratch;
  if (!dx) return FLOW_OK;
  shared_view shared = shared_of(call, s);
  memset(canvas, 0, l.canvas_floats * sizeof(float));
  if (end > l.groups[0]) end = l.groups[0];
  for (int64_t first = piece % bands * rows; first < end; first += l.band) {
    int64_t last = first + l.band < end ? first + l.band : end;
    build_rows(&l, first, first, last + l.reach[0], (const float *)call->inputs[0].data + result,
               (const float *)call->inputs[3].data + result, s->pooled ? (const uint8_t *)call->inputs[4].data + result : NULL, canvas);
    input_gradient(&l, &shared, first, last, canvas, dx + image * s->in[0] * s->in[1] * s->channels_in);
  }
  return FLOW_OK;
}

/* Padding beyond the kernel's reach, which no layer has, would need gradients that no canvas position has. */
static int supports_direct(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  for (int axis = 0; axis < 2; axis++)
    if (s.before[axis] > flow_reach(&s, axis) || s.after[axis] > flow_reach(&s, axis) || s.out[axis] < 1 || s.in[axis] < 1) return 0;
  if (s.channels_in < 1 || s.channels_out < 1) return 0;
  if (s.bytes && !call->outputs[0].unused) return 0;
  return call->inputs[0].dtype == FLOW_FLOAT32 && s.pool[0] * s.pool[1] <= NO_ARGMAX;
}

/* Each of the two products counts if something reads it; canvas and copied x are written and read once. */
static double cost_direct(const flow_call *call)
{
  layout l = layout_of(call, 1);
  const flow_geometry *s = &l.s;
  double pixels = (double)(s->images * s->out[0] * s->out[1]), taps = (double)(s->kernel[0] * s->kernel[1]);
  double outputs = (double)(s->groups * flow_padded_channels(s->group_out));
  double inputs = (double)(s->groups * flow_padded_channels(s->group_in));
  double share = s->depthwise ? 0.3 : 0.8, cost = 0;
  double inside = s->depthwise ? 1 : (double)flow_row_pairs(s) / (double)(s->out[0] * s->kernel[0]);
  if (!call->outputs[1].unused) {
    double pass = (double)(l.group > 1 ? l.group * s->out[0] * s->out[1] : PASS_PIXELS),
           sums = taps * (double)(s->group_in * s->channels_out);
    cost += flow_cost_arithmetic(pixels * taps * (double)s->group_in * outputs, share);
    if (sums * sizeof(float) > CANVAS_BYTES) cost += flow_cost_stream(2 * sums * sizeof(float) * pixels / pass);
  }
  if (!call->outputs[0].unused)
    cost += flow_cost_arithmetic(pixels * taps * (double)s->group_out * (s->depthwise ? 1 : inputs) * inside, share);
  double canvas = (double)s->images * (double)(l.rows * l.width * l.pixel);
  double copied = l.x_copied ? (double)(s->images * s->in[0] * s->in[1] * l.x_pixel) : 0;
  return cost + flow_cost_cached((2 * canvas + 2 * copied) * sizeof(float));
}

FLOW_VARIANT(convolution_gradient_argmax);
FLOW_VARIANT(convolution_gradient_winograd);
FLOW_VARIANT(gradient_doubles);

/* The cheapest that supports a call runs it: "argmax" supports pooling, "pointwise", "depthwise" and "winograd" kernels of their kinds,
 * "direct" nearly all, "plain" all. */
const flow_kernel FLOW_KERNELS(convolution_gradient)[] = {
  FLOW_VARIANT_ENTRY(convolution_gradient_argmax, "argmax"),
  { .variant = "direct",
    .supports = supports_direct,
    .cost = cost_direct,
    .shared_bytes = shared_bytes,
    .scratch_bytes = scratch_bytes,
    .prepare = prepare,
    .run = run_direct,
    .pieces = pieces_direct,
    .run_piece = run_direct_piece },
  FLOW_VARIANT_ENTRY(pointwise_gradient, "pointwise"),
  FLOW_VARIANT_ENTRY(depthwise_gradient, "depthwise"),
  FLOW_VARIANT_ENTRY(convolution_gradient_winograd, "winograd"),
  FLOW_VARIANT_ENTRY(gradient_doubles, "doubles"),
  { .variant = "plain", .run = flow_convolution_gradient_plain },
  { 0 }
};
