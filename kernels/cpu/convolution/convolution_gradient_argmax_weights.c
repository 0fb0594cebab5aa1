/* convolution_gradient_argmax_weights.c: dw and db from the maxima of max pooling.
 *
 * For a vector of output channels the gradients and the maxima's places in x are transposed, so that a channel's pixels
 * are neighbours, and the live ones are moved together: a list for every channel. Then for every channel tiles of its sums
 * are in registers, and for every entry of its list a kernel row of x, which is one run of floats, is multiplied with the
 * gradient. Sums run over the windows in order. */
#include "cpu/convolution/convolution_gradient_argmax.h"
#include "cpu/matrix_product/transpose.h"

/* Sums of a tile: `TILE_ROWS` kernel rows at most, as many vectors as leave registers for the gradient and one of x. */
enum { TILE_SUMS = REGISTERS == 32 ? 27 : 12, TILE_ROWS = 3, TILE_VECTORS = 9 };

/* The lists of channels `channel` .. + VL - 1: their gradients in gradients[lane], offsets of the maxima's first taps in
 * x in offsets[lane], both l->list apart. counts[lane] entries; up to VL more are written. Listed are indices below the number of cells of
 * a window: NO_ARGMAX is not, and neither is what a raw op may have been given, whose offset would be beyond x. */
static void make_lists(const flow_argmax_layout *l, const flow_argmax_rows *rows, int64_t channel, float *gradients,
                       int32_t *offsets, int64_t *counts, float *db)
{
  const flow_geometry *s = &l->s;
  const int32_t pixel = (int32_t)(s->stride[1] * s->channels_in), width = (int32_t)s->pool[1], cells = width * (int32_t)s->pool[0];
  const int32_t turn = (int32_t)(s->stride[0] * l->x_row) - width * pixel;  /* from a window row's end to the next's beginning */
  const int32_t reciprocal = (65536 + width - 1) / width;                   /* k * reciprocal >> 16 is k / width for bytes */
  int64_t lanes = s->channels_out - channel < VL ? s->channels_out - channel : VL;
  vi numbers;
  for (int i = 0; i < VL; i++) { numbers[i] = i; counts[i] = 0; }
  const vi between = numbers * (int32_t)(l->step[1] * s->channels_in);
  vf sum = { 0 };
  if (db) sum = vf_load_part(db + channel, (int)lanes);
  for (int64_t row = 0; row < rows->count; row++) {
    const float *g = rows->g + row * s->result[1] * l->channels + channel, *last = g + (s->result[1] - 1) * l->channels;
    const uint8_t *index = rows->index + row * l->index_pixels * l->index_channels + channel;
    int32_t place = (int32_t)(row * l->step[0] * l->x_row);
    for (int64_t p = 0; p < l->index_pixels; p += VL, place += (int32_t)(VL * l->step[1] * s->channels_in)) {
      vf gradient[VL], argmax[VL];
      FLOW_UNROLL(16)
      for (int i = 0; i < VL; i++, index += l->index_channels) {
        vi k = vi_load_bytes(index);
        gradient[i] = vf_load(g);
        argmax[i] = (vf)k;
        sum += (vf)((vi)gradient[i] & (k < cells));
        /* An index row is filled up to whole vectors of pixels, g is not: beyond its end the last gradient is read again, which NO_ARGMAX
         * discards. */
        g = g < last ? g + l->channels : last;
      }
      vf_transpose(gradient);
      vf_transpose(argmax);
      FLOW_UNROLL(16)
      for (int i = 0; i < VL; i++) {
        vi k = (vi)argmax[i], at = between + place + k * pixel + (k * reciprocal >> 16) * turn;
        uint32_t live = vi_below(k, cells);
        int64_t to = i * l->list + counts[i];
        vf_store(gradients + to, vf_compress(gradient[i], live));
        vf_store((float *)offsets + to, vf_compress((vf)at, live));
        counts[i] += __builtin_popcount(live);
      }
    }
  }
  if (db) vf_store_part(db + channel, sum, (int)lanes);
}

/* tile += one entry's gradient * x. */
ALWAYS_INLINE void add_product(const int rows, const int vectors, const float *from, int64_t x_row, float gradient, vf *tile)
{
  const vf g = vf_set(gradient);
  FLOW_UNROLL(3)
  for (int row = 0; row < rows; row++, from += x_row) {
    OWN_REGISTER(from);
    FLOW_UNROLL(9)
    for (int v = 0; v < vectors; v++) tile[row * vectors + v] += g * vf_load(from + v * VL);
  }
}

/* A tile of one channel's sums. rows and vectors are constants at every call, so that it stays in registers. A small tile
 * is summed in several copies in turn, so that an entry need not wait for the sums of the one before. */
ALWAYS_INLINE void add_products(const int rows, const int vectors, const float *x, int64_t x_row, const float *gradients,
                                const int32_t *offsets, int64_t count, float *sums, int64_t run)
{
  const int size = rows * vectors, copies = size >= 7 ? 1 : size >= 4 ? 2 : 4;
  vf tile[TILE_SUMS];
  FLOW_UNROLL(27)
  for (int i = 0; i < size * copies; i++) tile[i] = i < size ? vf_load(sums + i / vectors * run + i % vectors * VL) : (vf){ 0 };
  int64_t q = 0;
  for (; q + copies <= count; q += copies) {
    FLOW_UNROLL(4)
    for (int copy = 0; copy < copies; copy++)
      add_product(rows, vectors, x + offsets[q + copy], x_row, gradients[q + copy], tile + copy * size);
  }
  for (; q < count; q++) add_product(rows, vectors, x + offsets[q], x_row, gradients[q], tile);
  FLOW_UNROLL(27)
  for (int i = size; i < size * copies; i++) tile[i % size] += tile[i];
  FLOW_UNROLL(27)
  for (int i = 0; i < size; i++) vf_store(sums + i / vectors * run + i % vectors * VL, tile[i]);
}

#define TILE(rows, vectors) \
  case (rows) * 16 + (vectors): add_products(rows, vectors, x, x_row, gradients, offsets, count, sums, run); break;

/* The tile's size as constants; sizes that the compiler could not keep in registers are not there, and the caller does not ask for them. */
static void add_tile(int64_t rows, int64_t vectors, const float *x, int64_t x_row, const float *gradients, const int32_t *offsets,
                     int64_t count, float *sums, int64_t run)
{
  switch (rows * 16 + vectors) {
    TILE(1, 1) TILE(1, 2) TILE(1, 3) TILE(1, 4) TILE(1, 5) TILE(1, 6) TILE(1, 7) TILE(1, 8) TILE(1, 9)
    TILE(2, 1) TILE(2, 2) TILE(2, 3) TILE(2, 4) TILE(2, 5) TILE(2, 6)
    TILE(3, 1) TILE(3, 2) TILE(3, 3) TILE(3, 4)
#if defined(FLOW_ISA_AVX512)
    TILE(2, 7) TILE(2, 8) TILE(2, 9)
    TILE(3, 5) TILE(3, 6) TILE(3, 7) TILE(3, 8) TILE(3, 9)
#endif
  }
}

/* All sums of one channel; wide[rows]: vectors of a tile of this many rows. */
static void add_channel(const flow_argmax_layout *l, const int64_t *wide, const float *x, const float *gradients,
                        const int32_t *offsets, int64_t count, float *sums)
{
  int64_t vectors = l->run / VL;
  for (int64_t ky = 0; ky < l->s.kernel[0]; ky += TILE_ROWS) {
    int64_t rows = l->s.kernel[0] - ky < TILE_ROWS ? l->s.kernel[0] - ky : TILE_ROWS;
    for (int64_t v = 0; v < vectors; v += wide[rows])
      add_tile(rows, vectors - v < wide[rows] ? vectors - v : wide[rows], x + ky * l->x_row + v * VL, l->x_row, gradients, offsets,
               count, sums + ky * l->run + v * VL, l->run);
  }
}

/* The lists of VL channels are made together, since the transposition works on whole vectors, then used one after the other. */
void flow_argmax_weights(const flow_argmax_layout *l, const flow_argmax_rows *rows, const float *x, float *sums, float *db,
                          float *lists)
{
  int32_t *offsets = (int32_t *)(lists + VL * l->list);
  int64_t counts[VL], channel_sums = l->s.kernel[0] * l->run, wide[TILE_ROWS + 1];
  for (int64_t height = 1; height <= TILE_ROWS; height++) {   /* the fewest tiles, of nearly equal width */
    int64_t most = TILE_SUMS / height < TILE_VECTORS ? TILE_SUMS / height : TILE_VECTORS, vectors = l->run / VL;
    int64_t tiles = (vectors + most - 1) / most;
    wide[height] = (vectors + tiles - 1) / tiles;
  }
  for (int64_t channel = 0; channel < l->s.channels_out; channel += VL) {
    make_lists(l, rows, channel, lists, offsets, counts, db);
    for (int64_t lane = 0; lane < VL && channel + lane < l->s.channels_out && sums; lane++)
      if (counts[lane] > 0)
        add_channel(l, wide, x, lists + lane * l->list, offsets + lane * l->list, counts[lane], sums + (channel + lane) * channel_sums);
  }
}

/* Whole tiles of VL x VL in registers, what is left element by element. */
void flow_transpose(const float *from, int64_t from_step, int64_t rows, int64_t columns, float *to, int64_t to_step)
{
  for (int64_t r = 0; r < rows; r += VL) {
    for (int64_t c = 0; c < columns; c += VL) {
      if (rows - r >= VL && columns - c >= VL) {
        vf tile[VL];
        FLOW_UNROLL(16)
        for (int i = 0; i < VL; i++) tile[i] = vf_load(from + (r + i) * from_step + c);
        vf_transpose(tile);
        FLOW_UNROLL(16)
        for (int i = 0; i < VL; i++) vf_store(to + (c + i) * to_step + r, tile[i]);
        continue;
      }
      for (int64_t i = r; i < rows && i < r + VL; i++)
        for (int64_t k = c; k < columns && k < c + VL; k++) to[k * to_step + i] = from[i * from_step + k];
    }
  }
}
