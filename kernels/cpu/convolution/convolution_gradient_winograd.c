/* convolution_gradient_winograd.c: the variant "winograd" of convolution_gradient: kernels of 3 x 3 and 5 x 5 with
 * stride 1.
 *
 *   dx  is the convolution of the gradient with the weights, rotated by 180 degrees and transposed (winograd_tiles.c)
 *   dw += G^T [sum over tiles of (B^T x B) * (A dy A^T)] G
 *   db += the sum of the pixels
 * Where max pooling must be undone or relu applied, the gradient of the convolution's own output is rebuilt in a canvas in
 * scratch, for a group of small images or for a band of rows of tiles of a large one.
 * The sum over tiles, S, runs over chunks of tiles, which small images share: going from S to dw costs as much as many
 * tiles do. It is made for a few inputs and two vectors of outputs at a time, stays in cache and goes to dw at once. */
#include "cpu/convolution/convolution_winograd.h"
#include "cpu/variant.h"
#include "cpu/convolution/winograd.h"
#include "cpu/convolution/winograd_tiles.h"

FLOW_VARIANT(convolution_gradient_winograd);

enum {
  CANVAS_BYTES = 256 * 1024,
  TILE_BYTES = 768 * 1024, /* V and Z of a chunk */
  LEAST_TILES = 32,        /* of a chunk, if there are as many: with fewer, S goes to dw too often, which costs more than memory */
  MOST_BYTES = 8 << 20,    /* V and Z of so many, since each thread has them: with more channels a chunk has fewer tiles, */
  FEW_TILES = 8,           /* down to these */
  TILES = 96,              /* of a chunk at most */
  INPUTS = 64,             /* of S at a time */
};

/* How a call is walked, from its shapes alone. */
typedef struct layout {
  flow_geometry s;
  winograd_form form;
  int f, seam, masked; /* f: outputs of a tile; seam: rows that tiles of dx see beyond them */
  int64_t planes;
  int64_t image_tiles[2];            /* of dy and dx, whichever has more rows, and of dy */
  int64_t band;                      /* rows of tiles in a canvas */
  int64_t group;                     /* images in a canvas */
  int64_t canvas_rows;               /* of one image */
  int64_t chunk;                     /* tiles that dw takes together */
  int64_t v_plane, z_plane, s_plane;
  size_t  canvas_floats, dw_floats, dx_floats;      /* dw_floats: enough for fewer images, too, whose chunks may be larger */
} layout;

/* How many tiles a chunk has at least, where V and Z of one take `tile_bytes`. */
static int64_t least_tiles(int64_t tile_bytes)
{
  int64_t fitting = MOST_BYTES / tile_bytes;
  return fitting > LEAST_TILES ? LEAST_TILES : fitting < FEW_TILES ? FEW_TILES : fitting;
}

/* The layout of a call. A canvas holds a group of whole small images or a band of rows of one large image; tiles of a group are cut into
 * chunks of nearly equal size, whose planes V and Z fit TILE_BYTES. */
static layout layout_of(const flow_call *call)
{
  layout l = { .s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]) };
  const flow_geometry *s = &l.s;
  l.form = flow_winograd_form(call, s);
  l.f = winograd_outputs(l.form);
  l.seam = winograd_taps(l.form) - 1;
  l.masked = s->relu || s->pooled;
  l.planes = (int64_t)winograd_side(l.form) * winograd_side(l.form);
  l.image_tiles[0] = flow_tiles_along(s->out[0] > s->in[0] ? s->out[0] : s->in[0], l.form);
  l.image_tiles[1] = flow_tiles_along(s->out[1], l.form);
  int64_t row = s->out[1] * s->channels_out * (int64_t)sizeof(float), seam = s->before[0] > l.seam ? s->before[0] : l.seam;
  int64_t padded_in = flow_padded_channels(s->channels_in), padded_out = flow_padded_channels(s->channels_out);
  int64_t tile_bytes = l.planes * (padded_in + padded_out) * (int64_t)sizeof(float), least = least_tiles(tile_bytes);
  int64_t least_band = (least + l.image_tiles[1] - 1) / l.image_tiles[1];
  l.band = (CANVAS_BYTES / row - seam) / l.f;
  if (l.band < least_band) l.band = least_band;
  if (l.band > l.image_tiles[0]) l.band = l.image_tiles[0];
  int64_t tiles_of_image = l.image_tiles[0] * l.image_tiles[1], least_group = (least + tiles_of_image - 1) / tiles_of_image;
  l.group = l.band == l.image_tiles[0] ? CANVAS_BYTES / (row * s->out[0]) : 1;
  if (l.group < least_group) l.group = least_group;
  if (l.group > s->images) l.group = s->images;
  if (l.group < 1) l.group = 1;
  l.canvas_rows = l.band * l.f + seam < s->out[0] ? l.band * l.f + seam : s->out[0];
  l.canvas_floats = l.masked ? (size_t)flow_plane(l.group * l.canvas_rows * s->out[1] * s->channels_out + VL) : 0;

  int64_t tiles = l.group * l.band * l.image_tiles[1], most = TILE_BYTES / tile_bytes;
  if (most > TILES) most = TILES;
  if (most < least) most = least;
  int64_t chunks = (tiles + most - 1) / most;
  l.chunk = (tiles + chunks - 1) / chunks;
  l.v_plane = flow_plane(l.chunk * padded_in);
  l.z_plane = flow_plane(l.chunk * padded_out);
  l.s_plane = flow_plane(INPUTS * BLOCK);
  int64_t channels = s->channels_in > s->channels_out ? s->channels_in : s->channels_out;
  int64_t largest = tiles < most ? tiles : most;
  l.dw_floats = (size_t)(l.planes * (flow_plane(largest * padded_in) + flow_plane(largest * padded_out) + l.s_plane + channels) + VL);
  l.dx_floats = flow_winograd_scratch_floats(l.form, s->channels_out, l.group * l.band * flow_tiles_along(s->in[1], l.form));
  return l;
}

/* shared: the zero bias of dx, then its weights. */
static float *weights_of(const flow_call *call, const flow_geometry *s)
{
  return (float *)call->shared + flow_plane(flow_padded_channels(s->channels_in));
}

/* dw and db need nothing of the weights: without dx there is nothing to prepare. */
size_t FLOW_ISA_NAME(convolution_gradient_winograd_shared_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  if (call->outputs[0].unused) return 0;
  size_t weights = flow_winograd_weights_floats(flow_winograd_form(call, &s), s.channels_out, s.channels_in);
  return ((size_t)flow_plane(flow_padded_channels(s.channels_in)) + weights) * sizeof(float);
}

/* The canvas, then what dw or dx need: they are made one after the other and use the same memory. */
size_t FLOW_ISA_NAME(convolution_gradient_winograd_scratch_bytes)(const flow_call *call)
{
  layout l = layout_of(call);
  return (l.canvas_floats + (l.dw_floats > l.dx_floats ? l.dw_floats : l.dx_floats)) * sizeof(float);
}

/* Once for each call, before its parts run: the weights of dx are transformed, and its bias, which no gradient has, is zero. */
flow_status FLOW_ISA_NAME(convolution_gradient_winograd_prepare)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  if (call->outputs[0].unused) return FLOW_OK;
  memset(call->shared, 0, (size_t)flow_padded_channels(s.channels_in) * sizeof(float));
  flow_winograd_weights(flow_winograd_form(call, &s), call->inputs[2].data, s.channels_in, s.channels_out, 1, 1.0f, weights_of(call, &s));
  return FLOW_OK;
}

/* dw += G^T S G for `inputs` inputs and `channels` outputs. dw: the first of them. sums: S of these inputs, [plane][input][BLOCK]. The taps
 * of one input and VL outputs at a time. */
ALWAYS_INLINE void add_products(const winograd_form form, const flow_geometry *s, const float *sums, int64_t plane, int64_t inputs,
                                int64_t channels, float *dw)
{
  const int taps = winograd_taps(form);
  int64_t tap_step = s->channels_in * s->channels_out;
  for (int64_t i = 0; i < inputs; i++, sums += BLOCK, dw += s->channels_out) {
    for (int64_t c = 0; c < channels; c += VL) {
      vf half[WINOGRAD_SIDE][WINOGRAD_SIDE];
      winograd_columns(WINOGRAD_WEIGHT_GRADIENT, form, sums + c, winograd_side(form) * plane, plane, half);
      FLOW_UNROLL(5)
      for (int ky = 0; ky < taps; ky++) {
        vf row[WINOGRAD_SIDE];
        winograd_line(WINOGRAD_WEIGHT_GRADIENT, form, half[ky], row);
        FLOW_UNROLL(5)
        for (int kx = 0; kx < taps; kx++) {
          float *to = dw + (ky * taps + kx) * tap_step + c;
          if (channels - c >= VL) vf_store(to, vf_load(to) + row[kx]);
          else for (int64_t lane = 0; lane < channels - c; lane++) to[lane] += row[kx][lane];
        }
      }
    }
  }
}

/* dw += the tiles of one band of some images. x: the layer's images; dy: the gradient of the convolution's own output. scratch: V, Z, S,
 * then a patch (layout_of). */
static void weight_gradient(const layout *l, const flow_tile_source *x, const flow_tile_source *dy, const flow_tile_range *range,
                            float *dw, float *scratch)
{
  const flow_geometry *s = &l->s;
  int64_t v_step = flow_padded_channels(s->channels_in), z_step = flow_padded_channels(s->channels_out), tiles = flow_tile_count(range);
  float *v = scratch, *z = v + l->planes * l->v_plane, *sums = z + l->planes * l->z_plane, *patch = sums + l->planes * l->s_plane;
  for (int64_t first = 0; first < tiles; first += l->chunk) {
    int64_t count = tiles - first < l->chunk ? tiles - first : l->chunk;
    flow_winograd_cut(l->form, 0, x, range, first, count, v, l->v_plane, patch);
    flow_winograd_cut(l->form, 1, dy, range, first, count, z, l->z_plane, patch);
    for (int64_t input = 0; input < s->channels_in; input += INPUTS) {
      int64_t inputs = s->channels_in - input < INPUTS ? s->channels_in - input : INPUTS;
      for (int64_t block = 0; block < s->channels_out; block += BLOCK) {
        int64_t channels = s->channels_out - block < BLOCK ? s->channels_out - block : BLOCK;
        for (int64_t p = 0; p < l->planes; p++)
          flow_winograd_tile_products(channels > VL ? 2 : 1, inputs, count, v + p * l->v_plane + input, v_step, z + p * l->z_plane + block,
                                      z_step, sums + p * l->s_plane);
        float *to = dw + input * s->channels_out + block;
        WINOGRAD_WITH_FORM(l->form, add_products, s, sums, l->s_plane, inputs, channels, to);
      }
    }
  }
}

/* Where the gradient of the convolution's own output is for rows first .. last - 1 of tiles of some images; g, y and index
 * are those of the first of the images. */
static flow_tile_source gradient_source(const layout *l, int64_t images, int64_t first, int64_t last, const float *g, const float *y,
                                        const uint8_t *index, float *canvas)
{
  const flow_geometry *s = &l->s;
  int64_t row_floats = s->out[1] * s->channels_out, result = s->result[0] * s->result[1] * s->channels_out;
  flow_tile_source source = { .data = g, .end = g + images * result, .image_step = result, .size = { s->out[0], s->out[1] },
                              .channels = s->channels_out };
  if (!l->masked) return source;
  /* Tiles of dw see the rows first * f .. last * f - 1. Those of dx see l->seam more and begin at row before - l->seam: a full
   * convolution. */
  int64_t begin = first * l->f + (s->before[0] < l->seam ? s->before[0] - l->seam : 0), end = last * l->f + s->before[0];
  if (begin < 0) begin = 0;
  if (end > s->out[0]) end = s->out[0];
  if (end < begin) end = begin;
  source.data = canvas;
  source.first_row = begin;
  source.image_step = (end - begin) * row_floats;
  source.end = canvas + images * source.image_step;
  for (int64_t image = 0; image < images; image++)
    for (int64_t row = begin; row < end; row++, canvas += row_floats)
      flow_gradient_row(s, row, g + image * result, y + image * result, index ? index + image * result : NULL, canvas, s->channels_out);
  return source;
}

/* The same rows of a range of images, no more than these images have. */
static flow_tile_range cut_range(int64_t first, int64_t last, int64_t rows, int64_t columns, int64_t images)
{
  if (last > rows) last = rows;
  return (flow_tile_range){ .first_row = first, .rows = last > first ? last - first : 0, .columns = columns, .images = images };
}

/* All three gradients of `images` images, for rows first .. last - 1 of tiles. image: the first of them. */
static void band_gradient(const flow_call *call, const layout *l, int64_t image, int64_t images, int64_t first, int64_t last)
{
  const flow_geometry *s = &l->s;
  int64_t result = s->result[0] * s->result[1] * s->channels_out, input = s->in[0] * s->in[1] * s->channels_in;
  const float *g = call->inputs[0].data, *x = call->inputs[1].data, *y = call->inputs[3].data;
  const uint8_t *index = s->pooled ? call->inputs[4].data : NULL;
  float *dx = call->outputs[0].data, *dw = call->outputs[1].data, *db = call->outputs[2].data;
  float *canvas = call->scratch, *scratch = canvas + l->canvas_floats;
  flow_tile_source dy = gradient_source(l, images, first, last, g + image * result, y + image * result,
                                        index ? index + image * result : NULL, canvas);
  int64_t stop = last * l->f < s->out[0] ? last * l->f : s->out[0];
  for (int64_t i = 0; i < images && db; i++)
    for (int64_t row = first * l->f; row < stop; row++)
      flow_sum_row(db, dy.data + i * dy.image_step + (row - dy.first_row) * s->out[1] * s->channels_out, s->channels_out, s->out[1],
                   s->channels_out);
  flow_tile_range of_dy = cut_range(first, last, flow_tiles_along(s->out[0], l->form), l->image_tiles[1], images);
  if (dw && of_dy.rows) {
    flow_tile_source from = { .data = x + image * input, .end = x + s->images * input, .image_step = input, .size = { s->in[0], s->in[1] },
                              .channels = s->channels_in, .origin = { -s->before[0], -s->before[1] } };
    weight_gradient(l, &from, &dy, &of_dy, dw, scratch);
  }
  flow_tile_range all = cut_range(first, last, flow_tiles_along(s->in[0], l->form), flow_tiles_along(s->in[1], l->form), images);
  if (!dx || !all.rows) return;
  /* dx is the convolution of the gradient, padded by l->seam - before, with the rotated kernel. */
  for (int axis = 0; axis < 2; axis++) dy.origin[axis] = s->before[axis] - l->seam;
  flow_tile_result to = { .y = dx + image * input,
                          .bias = call->shared,
                          .epilogue = flow_no_epilogue(),
                          .size = { s->in[0], s->in[1] },
                          .channels = s->channels_in };
  int64_t blocks = (to.channels + BLOCK - 1) / BLOCK;
  flow_winograd_convolve(l->form, &dy, &all, 0, flow_tile_count(&all), 0, blocks, weights_of(call, s), &to, scratch);
}

/* Groups of images, or bands of one image; dw and db are added up over all of them, in this order. */
flow_status FLOW_ISA_NAME(convolution_gradient_winograd_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  layout l = layout_of(call);
  const flow_geometry *s = &l.s;
  float *dw = call->outputs[1].data, *db = call->outputs[2].data;
  if (dw && !call->accumulate) memset(dw, 0, (size_t)(s->kernel[0] * s->kernel[1] * s->channels_in * s->channels_out) * sizeof(float));
  if (db && !call->accumulate) memset(db, 0, (size_t)s->channels_out * sizeof(float));
  for (int64_t image = 0; image < s->images; image += l.group) {
    int64_t images = s->images - image < l.group ? s->images - image : l.group;
    for (int64_t first = 0; first < l.image_tiles[0]; first += l.band)
      band_gradient(call, &l, image, images, first, first + l.band < l.image_tiles[0] ? first + l.band : l.image_tiles[0]);
  }
  return FLOW_OK;
}

/* Any pool: the gradient is rebuilt before pooling, so that windows need not fall into whole tiles as in the forward pass. */
int FLOW_ISA_NAME(convolution_gradient_winograd_supports)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  return call->inputs[0].dtype == FLOW_FLOAT32 && s.pool[0] * s.pool[1] <= NO_ARGMAX && flow_winograd_geometry(call, &s);
}

/* The canvas is written once and read by dw and dx; S goes to dw once for each chunk of tiles. */
double FLOW_ISA_NAME(convolution_gradient_winograd_cost)(const flow_call *call)
{
  layout l = layout_of(call);
  const flow_geometry *s = &l.s;
  double cost = 0, canvas = (double)(s->images * s->out[0] * s->out[1] * s->channels_out) * sizeof(float);
  if (l.masked) cost += flow_cost_cached(3 * canvas);
  if (!call->outputs[0].unused)
    cost += flow_winograd_cost(l.form, s->images * flow_tiles_along(s->in[0], l.form) * flow_tiles_along(s->in[1], l.form), s->channels_out,
                               s->channels_in, call->kept);
  if (!call->outputs[1].unused) {
    double tiles = (double)(s->images * flow_tiles_along(s->out[0], l.form) * l.image_tiles[1]), chunks = tiles / (double)l.chunk;
    double in = (double)s->channels_in, padded = (double)flow_padded_channels(s->channels_out);
    cost += flow_cost_arithmetic(tiles * (double)l.planes * in * padded, 0.85) +
            flow_winograd_transform_cost(l.form, tiles * ((double)flow_padded_channels(s->channels_in) + padded) / VL) +
            flow_winograd_transform_cost(l.form, chunks * in * padded / VL) +
            flow_winograd_traffic_cost((double)(s->kernel[0] * s->kernel[1]) * in * padded * sizeof(float), 2 * chunks);
  }
  return cost;
}
