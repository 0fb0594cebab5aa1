/* winograd_tiles.c: cutting and transforming tiles, the small products, and convolutions made of them. A convolution takes a chunk of
 * tiles: their inputs become V, once; then for each block of two vectors of output channels the products of all planes fill M, which the
 * output transform reads at once. So U is streamed once per chunk, and a plane of a block of U, read by all tiles of a chunk, stays in the
 * first-level cache, while the next plane is fetched. A tile of f x f results has side^2 planes, in each of which it
 * is a row of V, inputs of U and outputs of M: 36 products in place of 144 for F(4,3), or of 100 for F(2,5). The price is rounding: the
 * transforms add and subtract numbers that may be larger than the result. */
#include "cpu/convolution/winograd_tiles.h"

enum {
  V_BYTES = 768 * 1024,            /* of a chunk: with M inside a second-level cache */
  TILES = 48,                      /* of a chunk at most: more do not read U less often in any way that can be measured */
  ROWS_1 = 12, ROWS_2 = REGISTERS == 32 ? 12 : 6,   /* rows of a product that are summed in registers, of 1 and 2 vectors */
  SUMS = 2 * ROWS_2,
};

/* ---- small products ------------------------------------------------------------------------------------------------ */

/* m[i][channel] = sum over k of a(i, k) * b[k][channel]. a(i, k) is a[i * a_step + k], or a[i + k * a_step], if transposed. ahead: weights
 * to be fetched meanwhile, a line for each step of k. */
ALWAYS_INLINE void multiply_tile(const int vectors, const int rows, const int transposed, int64_t depth, const float *a, int64_t a_step,
                                 const float *b, int64_t b_step, float *m, int64_t m_step, flow_ahead *ahead)
{
  const float *fetched = flow_fetch_lines(ahead, depth);
  const int64_t fetch_step = fetched ? FLOW_LINE : 0;
  if (!fetched) fetched = b; /* a line that is there: cheaper than a branch */
  vf sums[SUMS];
  FLOW_UNROLL(24)
  for (int i = 0; i < rows * vectors; i++) sums[i] = (vf){ 0 };
  for (int64_t k = 0; k < depth; k++, b += b_step, a += transposed ? a_step : 1, fetched += fetch_step) {
    __builtin_prefetch(fetched, 0, 2);
    vf v[2];
    FLOW_UNROLL(2)
    for (int c = 0; c < vectors; c++) v[c] = vf_load(b + c * VL);
    FLOW_UNROLL(12)
    for (int i = 0; i < rows; i++) {
      vf factor = vf_set(transposed ? a[i] : a[i * a_step]);
      FLOW_UNROLL(2)
      for (int c = 0; c < vectors; c++) sums[i * vectors + c] += factor * v[c];
    }
  }
  FLOW_UNROLL(12)
  for (int i = 0; i < rows; i++) {
    FLOW_UNROLL(2)
    for (int c = 0; c < vectors; c++) vf_store(m + i * m_step + c * VL, sums[i * vectors + c]);
  }
}

/* The height of a product as a constant, so that each case has its sums in registers; the other sizes are constants of the function. */
#define ROWS(vectors, transposed, rows)                                                      \
  case rows:                                                                                 \
    multiply_tile(vectors, rows, transposed, depth, a, a_step, b, b_step, m, m_step, ahead); \
    break;
#define ROWS_TO_6(vectors, transposed)                                                                                        \
  ROWS(vectors, transposed, 1) ROWS(vectors, transposed, 2) ROWS(vectors, transposed, 3)                                      \
  ROWS(vectors, transposed, 4) ROWS(vectors, transposed, 5) ROWS(vectors, transposed, 6)
#define ROWS_TO_12(vectors, transposed)                                                                                       \
  ROWS_TO_6(vectors, transposed)                                                                                              \
  ROWS(vectors, transposed, 7) ROWS(vectors, transposed, 8) ROWS(vectors, transposed, 9)                                      \
  ROWS(vectors, transposed, 10) ROWS(vectors, transposed, 11) ROWS(vectors, transposed, 12)
#if defined(FLOW_ISA_AVX512)
#define ROWS_OF_2(transposed) ROWS_TO_12(2, transposed)
#else
#define ROWS_OF_2(transposed) ROWS_TO_6(2, transposed)
#endif

/* name_1 and name_2: for one and two vectors of columns. */
#define MULTIPLY(name, transposed)                                                                                            \
  static void name##_1(int64_t rows, int64_t depth, const float *a, int64_t a_step, const float *b, int64_t b_step, float *m, \
                       int64_t m_step, flow_ahead *ahead)                                                                     \
  {                                                                                                                           \
    switch (rows) {                                                                                                           \
      ROWS_TO_12(1, transposed)                                                                                               \
    }                                                                                                                         \
  }                                                                                                                           \
  static void name##_2(int64_t rows, int64_t depth, const float *a, int64_t a_step, const float *b, int64_t b_step, float *m, \
                       int64_t m_step, flow_ahead *ahead)                                                                     \
  {                                                                                                                           \
    switch (rows) {                                                                                                           \
      ROWS_OF_2(transposed)                                                                                                   \
    }                                                                                                                         \
  }
MULTIPLY(multiply, 0)
MULTIPLY(multiply_transposed, 1)

typedef void multiply_function(int64_t rows, int64_t depth, const float *a, int64_t a_step, const float *b, int64_t b_step, float *m,
                               int64_t m_step, flow_ahead *ahead);

/* All rows of a product, in the fewest tiles, whose heights differ by one at most. a_next: floats from row to row of a. */
static void multiply_rows(multiply_function *multiply_some, int64_t most, int64_t rows, int64_t depth, const float *a, int64_t a_next,
                          int64_t a_step, const float *b, int64_t b_step, float *m, int64_t m_step, flow_ahead *ahead)
{
  for (int64_t parts = (rows + most - 1) / most; parts > 0; parts--) {
    int64_t now = (rows + parts - 1) / parts;
    multiply_some(now, depth, a, a_step, b, b_step, m, m_step, ahead);
    rows -= now;
    a += now * a_next;
    m += now * m_step;
  }
}

/* v^T z: the inputs of a tile are the rows of the product, and its depth is the number of tiles. Nothing is fetched ahead: v and z were
 * written a moment ago. */
void flow_winograd_tile_products(int vectors, int64_t inputs, int64_t tiles, const float *v, int64_t v_step, const float *z,
                                 int64_t z_step, float *s)
{
  if (vectors == 2) multiply_rows(multiply_transposed_2, ROWS_2, inputs, tiles, v, 1, v_step, z, z_step, s, BLOCK, NULL);
  else multiply_rows(multiply_transposed_1, ROWS_1, inputs, tiles, v, 1, v_step, z, z_step, s, BLOCK, NULL);
}

/* ---- weights ------------------------------------------------------------------------------------------------------- */

/* Channels of a block as U and M hold them: two vectors, or one if one is enough. */
static int64_t block_width(int64_t outputs, int64_t block) { return outputs - block > VL ? BLOCK : VL; }

static int64_t planes_of(winograd_form form)
{
  return (int64_t)winograd_side(form) * winograd_side(form);
}

/* Blocks one after the other, each plane padded to an odd number of cache lines. */
size_t flow_winograd_weights_floats(winograd_form form, int64_t inputs, int64_t outputs)
{
  int64_t floats = 0;
  for (int64_t block = 0; block < outputs; block += BLOCK) floats += planes_of(form) * flow_plane(inputs * block_width(outputs, block));
  return (size_t)floats;
}

enum { MOST_TAPS = 25 }; /* of a kernel, both axes */

/* taps[tap][VL inputs][VL outputs] of one vector of outputs; what w does not have is zero. input, output: the first of each. transposed:
 * those of the gradient, where outputs take the part of inputs and the taps come in the opposite order. */
static void gather_taps(int count, const float *w, int64_t channels_in, int64_t channels_out, int transposed, int64_t input, int64_t output,
                        float taps[MOST_TAPS][VL][VL])
{
  int64_t inputs = (transposed ? channels_out : channels_in) - input, outputs = (transposed ? channels_in : channels_out) - output;
  if (inputs < VL || outputs < VL) memset(taps, 0, (size_t)count * sizeof taps[0]);
  if (inputs > VL) inputs = VL;
  if (outputs > VL) outputs = VL;
  for (int tap = 0; tap < count; tap++) {
    const float *from = w + (transposed ? count - 1 - tap : tap) * channels_in * channels_out;
    if (!transposed) {
      from += input * channels_out + output;
      for (int64_t i = 0; i < inputs; i++) memcpy(taps[tap][i], from + i * channels_out, (size_t)outputs * sizeof(float));
    } else {
      from += output * channels_out + input;
      for (int64_t i = 0; i < inputs; i++)
        for (int64_t o = 0; o < outputs; o++) taps[tap][i][o] = from[o * channels_out + i];
    }
  }
}

/* u[block][plane][input][output of the block] = G w G^T (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2015) with
 * side^2 planes. transposed: for the input gradient, with inputs and outputs exchanged and the kernel rotated (gather_taps). scale: a
 * factor on all weights, which plans use for inputs that are bytes. */
ALWAYS_INLINE void transform_weights(const winograd_form form, const float *w, int64_t channels_in, int64_t channels_out, int transposed,
                                     float scale, float *u)
{
  int64_t inputs = transposed ? channels_out : channels_in, outputs = transposed ? channels_in : channels_out;
  const int taps_along = winograd_taps(form), count = taps_along * taps_along;
  float taps[MOST_TAPS][VL][VL];
  for (int64_t block = 0; block < outputs; block += BLOCK) {
    int64_t width = block_width(outputs, block), plane = flow_plane(inputs * width);
    for (int64_t output = 0; output < width; output += VL) {
      for (int64_t input = 0; input < inputs; input += VL) {
        gather_taps(count, w, channels_in, channels_out, transposed, input, block + output, taps);
        for (int i = 0; i < count * VL && scale != 1; i++) {
          float *tap = taps[i / VL][i % VL];
          vf_store(tap, vf_load(tap) * scale);
        }
        for (int64_t i = 0; i < VL && input + i < inputs; i++)
          winograd_square(WINOGRAD_WEIGHTS, form, taps[0][i], taps_along * VL * VL, VL * VL, u + (input + i) * width + output, plane);
      }
    }
    u += planes_of(form) * plane;
  }
}

void flow_winograd_weights(winograd_form form, const float *w, int64_t channels_in, int64_t channels_out, int transposed, float scale,
                           float *u)
{
  WINOGRAD_WITH_FORM(form, transform_weights, w, channels_in, channels_out, transposed, scale, u);
}

/* ---- tiles of inputs ----------------------------------------------------------------------------------------------- */

/* size x size pixels from (top, left) on, with zeros where there is no image. image: row source->first_row. patch: [size][size][channels].
 * */
static void copy_patch(const flow_tile_source *source, const float *image, int64_t top, int64_t left, int64_t size, float *patch)
{
  int64_t channels = source->channels, begin = left < 0 ? -left : 0, end = source->size[1] - left < size ? source->size[1] - left : size;
  if (begin > size) begin = size;
  if (end < begin) end = begin;
  for (int64_t i = 0; i < size; i++, patch += size * channels) {
    int64_t row = top + i;
    if (row < 0 || row >= source->size[0] || begin == end) {
      memset(patch, 0, (size_t)(size * channels) * sizeof(float));
      continue;
    }
    memset(patch, 0, (size_t)(begin * channels) * sizeof(float));
    memcpy(patch + begin * channels, image + ((row - source->first_row) * source->size[1] + left + begin) * channels,
           (size_t)((end - begin) * channels) * sizeof(float));
    memset(patch + end * channels, 0, (size_t)((size - end) * channels) * sizeof(float));
  }
}

/* Tiles first .. first + count - 1, transformed, to[plane][tile][padded channels]. A tile inside of the image is read where it is, unless
 * its last vector would reach past the end of the memory; others are copied into `patch` with zeros around them. */
ALWAYS_INLINE void cut_tiles(const winograd_form form, const winograd_transform transform, const flow_tile_source *source,
                             const flow_tile_range *range, int64_t first, int64_t count, float *to, int64_t plane_step, float *patch)
{
  const int64_t size = winograd_reads(transform, form), f = winograd_outputs(form), channels = source->channels;
  const int64_t padded = flow_padded_channels(channels);
  for (int64_t t = 0; t < count; t++, to += padded) {
    flow_tile_place at = flow_tile_at(range, first + t);
    const float *image = source->data + at.image * source->image_step, *from = patch;
    int64_t top = at.row * f + source->origin[0], left = at.column * f + source->origin[1], row_step = size * channels;
    int inside = top >= 0 && left >= 0 && top + size <= source->size[0] && left + size <= source->size[1];
    if (inside) {
      const float *pixel = image + ((top - source->first_row) * source->size[1] + left) * channels;
      const float *last = pixel + ((size - 1) * source->size[1] + size - 1) * channels;
      if (source->end - last >= padded) from = pixel, row_step = source->size[1] * channels;
    }
    if (from == patch) copy_patch(source, image, top, left, size, patch);
    for (int64_t c = 0; c < channels; c += VL) winograd_square(transform, form, from + c, row_step, channels, to + c, plane_step);
  }
}

/* The transform as a constant, too, so that each case is compiled for itself. */
void flow_winograd_cut(winograd_form form, int gradients, const flow_tile_source *source, const flow_tile_range *range, int64_t first,
                       int64_t count, float *to, int64_t plane_step, float *patch)
{
  if (gradients) WINOGRAD_WITH_FORM(form, cut_tiles, WINOGRAD_GRADIENT, source, range, first, count, to, plane_step, patch);
  else WINOGRAD_WITH_FORM(form, cut_tiles, WINOGRAD_INPUT, source, range, first, count, to, plane_step, patch);
}

/* ---- tiles of outputs ---------------------------------------------------------------------------------------------- */

/* One vector of channels of a tile: values[row][column], and maxima, if it is pooled. plane: floats from plane to plane of m. more: what is
 * added to each result, of what is not pooled, as are the limits; NULL: nothing. */
ALWAYS_INLINE void finish_tile(const winograd_form form, const int pooled, const float *m, int64_t plane, vf bias, vf_limits within,
                               const vf (*more)[4], int relu, vf values[4][4], vi argmax[4][4])
{
  vf half[WINOGRAD_SIDE][WINOGRAD_SIDE];
  const int f = winograd_outputs(form);
  winograd_columns(WINOGRAD_OUTPUT, form, m, winograd_side(form) * plane, plane, half);
  FLOW_UNROLL(4)
  for (int i = 0; i < f; i += 1 + pooled) {
    vf row[2][WINOGRAD_SIDE];
    winograd_line(WINOGRAD_OUTPUT, form, half[i], row[0]);
    if (pooled) winograd_line(WINOGRAD_OUTPUT, form, half[i + 1], row[1]);
    FLOW_UNROLL(4)
    for (int j = 0; j < f; j += 1 + pooled) {
      if (!pooled) {
        vf sum = row[0][j] + bias;
        if (more) sum += more[i][j];
        values[i][j] = vf_within(sum, within);
      } else {
        vf best = row[0][j] + bias;
        vi where = { 0 };
        flow_pool_take(&best, &where, row[0][j + 1] + bias, 1);
        flow_pool_take(&best, &where, row[1][j] + bias, 2);
        flow_pool_take(&best, &where, row[1][j + 1] + bias, 3);
        if (relu) flow_pool_relu(&best, &where);
        values[i / 2][j / 2] = best;
        argmax[i / 2][j / 2] = where;
      }
    }
  }
}

/* Writes `rows` x `columns` pixels of one tile from the planes in m, which are `width` channels wide. y, index: its first pixel and
 * channel. At the right and lower edge a tile has fewer pixels than f x f, and the last vector may have fewer channels: then elements are
 * copied one by one. */
ALWAYS_INLINE void write_tile(const winograd_form form, const int pooled, const flow_tile_result *result, const float *m, int64_t plane,
                              const float *bias, int64_t channels, int64_t rows, int64_t columns, float *y, uint8_t *index)
{
  const int side = winograd_outputs(form) / (pooled ? 2 : 1);
  const vf_limits within = vf_limits_of(result->epilogue);
  int64_t pixel_step = result->channels, row_step = result->size[1] * result->channels;
  const float *added = result->epilogue.added ? flow_epilogue_at(result->epilogue, y - result->y).added : NULL;
  for (int64_t c = 0; c < channels; c += VL) {
    vf values[4][4], more[4][4];
    vi argmax[4][4];
    for (int i = 0; i < side && added; i++)
      for (int j = 0; j < side; j++) {
        const float *from = added + i * row_step + j * pixel_step + c;
        more[i][j] = i >= rows || j >= columns ? (vf){ 0 } : channels - c >= VL ? vf_load(from) : vf_load_part(from, (int)(channels - c));
      }
    finish_tile(form, pooled, m + c, plane, vf_load(bias + c), within, added ? (const vf(*)[4])more : NULL, result->relu, values, argmax);
    int64_t lanes = channels - c;
    if (rows == side && columns == side && lanes >= VL) {
      FLOW_UNROLL(4)
      for (int i = 0; i < side; i++) {
        FLOW_UNROLL(4)
        for (int j = 0; j < side; j++) {
          int64_t to = i * row_step + j * pixel_step + c;
          if (!pooled || y) vf_store(y + to, values[i][j]);
          if (pooled && index) vi_store_bytes(index + to, argmax[i][j]);
        }
      }
      continue;
    }
    if (lanes > VL) lanes = VL;
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = 0; j < columns; j++) {
        int64_t to = i * row_step + j * pixel_step + c;
        if (y) memcpy(y + to, &values[i][j], (size_t)lanes * sizeof(float));
        for (int64_t lane = 0; lane < lanes && pooled && index; lane++) index[to + lane] = (uint8_t)argmax[i][j][lane];
      }
    }
  }
}

/* The outputs of tiles first .. first + count - 1 for one block of channels. */
ALWAYS_INLINE void write_tiles(const winograd_form form, const int pooled, const flow_tile_result *result, const flow_tile_range *range,
                               int64_t first, int64_t count, int64_t block, const float *m, int64_t width, int64_t plane)
{
  const int64_t side = winograd_outputs(form) / (pooled ? 2 : 1);
  int64_t channels = result->channels - block < width ? result->channels - block : width;
  for (int64_t t = 0; t < count; t++, m += width) {
    flow_tile_place at = flow_tile_at(range, first + t);
    int64_t row = at.row * side, column = at.column * side;
    int64_t rows = result->size[0] - row < side ? result->size[0] - row : side;
    int64_t columns = result->size[1] - column < side ? result->size[1] - column : side;
    int64_t to = ((at.image * result->size[0] + row) * result->size[1] + column) * result->channels + block;
    write_tile(form, pooled, result, m, plane, result->bias + block, channels, rows, columns, result->y ? result->y + to : NULL,
               result->index ? result->index + to : NULL);
  }
}

/* ---- a convolution ------------------------------------------------------------------------------------------------- */

/* As many tiles as have V_BYTES of transformed inputs, but at least as many as a product sums in registers. Results do not depend on it: a
 * tile's sums are the same in any chunk. */
int64_t flow_winograd_chunk(winograd_form form, int64_t inputs, int64_t tiles)
{
  int64_t bytes = planes_of(form) * flow_padded_channels(inputs) * (int64_t)sizeof(float), count = V_BYTES / bytes;
  if (count > TILES) count = TILES;
  if (count < ROWS_1) count = ROWS_1;
  return tiles < count ? tiles : count;
}

/* V, M, and a patch of side^2 pixels that is read in whole vectors. */
size_t flow_winograd_scratch_floats(winograd_form form, int64_t inputs, int64_t tiles)
{
  int64_t count = flow_winograd_chunk(form, inputs, tiles), planes = planes_of(form);
  return (size_t)(planes * (flow_plane(count * flow_padded_channels(inputs)) + flow_plane(count * BLOCK) + inputs) + 2 * VL);
}

/* flow_winograd_convolve for a form that is known when this is compiled. `scratch`: V, M, then a patch. tile, last: the range of tiles;
 * begin, end: of blocks of output channels, so that a call can be cut both ways. */
ALWAYS_INLINE void convolve(const winograd_form form, const flow_tile_source *source, const flow_tile_range *range, int64_t tile,
                            int64_t last, int64_t begin, int64_t end, const float *u, const flow_tile_result *result, float *scratch)
{
  const int64_t planes = planes_of(form), inputs = source->channels, padded = flow_padded_channels(inputs);
  const int64_t chunk = flow_winograd_chunk(form, inputs, flow_tile_count(range));
  const int64_t v_plane = flow_plane(chunk * padded), m_plane = flow_plane(chunk * BLOCK);
  const int64_t all = (int64_t)flow_winograd_weights_floats(form, inputs, result->channels);
  float *v = scratch, *m = v + planes * v_plane, *patch = m + planes * m_plane;
  for (; tile < last; tile += chunk) {
    int64_t count = last - tile < chunk ? last - tile : chunk;
    flow_winograd_cut(form, 0, source, range, tile, count, v, v_plane, patch);
    /* A block's planes of M are written and transformed back before the next block: M has one block, however many channels there are. */
    const float *weights = u + begin * planes * flow_plane(inputs * BLOCK);       /* all blocks but the last are whole */
    for (int64_t block = begin * BLOCK; block < end * BLOCK; block += BLOCK) {
      int64_t width = block_width(result->channels, block), plane = flow_plane(inputs * width);
      for (int64_t p = 0; p < planes; p++, weights += plane) {
        flow_ahead ahead = flow_weights_ahead(u, weights + plane - u, plane, all);
        if (width == BLOCK)
          multiply_rows(multiply_2, ROWS_2, count, inputs, v + p * v_plane, padded, padded, weights, width, m + p * m_plane, width, &ahead);
        else
          multiply_rows(multiply_1, ROWS_1, count, inputs, v + p * v_plane, padded, padded, weights, width, m + p * m_plane, width, &ahead);
      }
      if (result->pooled) write_tiles(form, 1, result, range, tile, count, block, m, width, m_plane);
      else write_tiles(form, 0, result, range, tile, count, block, m, width, m_plane);
    }
  }
}

void flow_winograd_convolve(winograd_form form, const flow_tile_source *source, const flow_tile_range *range, int64_t first, int64_t last,
                            int64_t begin, int64_t end, const float *u, const flow_tile_result *result, float *scratch)
{
  WINOGRAD_WITH_FORM(form, convolve, source, range, first, last, begin, end, u, result, scratch);
}
