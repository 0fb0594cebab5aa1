/* winograd_tiles.h: two-dimensional Winograd convolutions F(f x f, r x r), the engine of the variants "winograd" of
 * convolution (convolution_winograd.c) and convolution_gradient (convolution_gradient_winograd.c).
 *
 * A tile is f x f outputs; it sees side x side inputs, side = f + r - 1 (winograd.h). The transforms turn tiles into `side * side`
 * planes, matrices {tile, channel}, which the small products multiply plane by plane:
 *   outputs           M[p] {tile, out} = V[p] {tile, in} U[p] {in, out}
 *   weight gradients  S[p] {in, out}   = V[p]^T Z[p] {tile, out}
 * Tiles are taken together over rows and images, as many as the scratch block holds. Each sum has a fixed order that does
 * not depend on which tiles are taken together. */
#ifndef FLOW_CPU_CONVOLUTION_WINOGRAD_TILES_H
#define FLOW_CPU_CONVOLUTION_WINOGRAD_TILES_H

#include "cpu/convolution/convolution.h"
#include "cpu/convolution/winograd.h"

/* Images that tiles are cut from; beyond them there are zeros. */
typedef struct flow_tile_source {
  const float *data;                    /* row first_row of the first image */
  const float *end;                     /* of what may be read */
  int64_t      image_step;              /* floats from image to image */
  int64_t      first_row;               /* rows before it are not read */
  int64_t      size[2], channels;       /* of a whole image */
  int64_t      origin[2];               /* where the first tile begins: -padding */
} flow_tile_source;

/* Tiles of neighbouring rows of tiles of neighbouring images, counted through. */
typedef struct flow_tile_range { int64_t first_row, rows, columns, images; } flow_tile_range;

typedef struct flow_tile_place { int64_t image, row, column; } flow_tile_place;

/* Where tile `number` is, 0 to flow_tile_count() - 1: columns are counted first, then rows, then images. */
static inline flow_tile_place flow_tile_at(const flow_tile_range *range, int64_t number)
{
  int64_t row = number / range->columns;
  return (flow_tile_place){ row / range->rows, range->first_row + row % range->rows, number % range->columns };
}

static inline int64_t flow_tile_count(const flow_tile_range *range) { return range->images * range->rows * range->columns; }

/* What becomes of the outputs: y = sums + bias and the epilogue, whose `added` begins where y does, or pool(relu(sums + bias)), the pool
 * 2 x 2. */
typedef struct flow_tile_result {
  float       *y;                       /* NULL: not wanted; image 0 */
  uint8_t     *index;                   /* of the maxima of the pool; NULL: not wanted */
  const float *bias;                    /* [padded channels] */
  int          pooled, relu;
  flow_epilogue epilogue;
  int64_t      size[2], channels;       /* of an image of y */
} flow_tile_result;

/* Floats from plane to plane: whole cache lines, an odd number, so that the planes of a tile fall into different sets. */
static inline int64_t flow_plane(int64_t floats)
{
  int64_t lines = (floats + 15) / 16;
  return (lines | 1) * 16;
}

/* Tiles that cover this many outputs of an axis; the last one may reach beyond them. */
static inline int64_t flow_tiles_along(int64_t outputs, winograd_form form)
{
  return (outputs + winograd_outputs(form) - 1) / winograd_outputs(form);
}

#define flow_winograd_weights        FLOW_ISA_NAME(winograd_weights)
#define flow_winograd_weights_floats FLOW_ISA_NAME(winograd_weights_floats)
#define flow_winograd_chunk          FLOW_ISA_NAME(winograd_chunk)
#define flow_winograd_scratch_floats FLOW_ISA_NAME(winograd_scratch_floats)
#define flow_winograd_convolve       FLOW_ISA_NAME(winograd_convolve)
#define flow_winograd_cut            FLOW_ISA_NAME(winograd_cut)
#define flow_winograd_tile_products  FLOW_ISA_NAME(winograd_tile_products)

/* U of a kernel scale * w {taps, taps, in, out}: per block of output channels [plane][in][channels of the block]. transposed: of the kernel
 * of the input gradient, which is rotated by 180 degrees and has inputs and outputs exchanged. */
void flow_winograd_weights(winograd_form form, const float *w, int64_t channels_in, int64_t channels_out, int transposed, float scale,
                           float *u);
size_t flow_winograd_weights_floats(winograd_form form, int64_t inputs, int64_t outputs);

/* Tiles taken together by a convolution of `tiles` tiles, and its scratch. */
int64_t flow_winograd_chunk(winograd_form form, int64_t inputs, int64_t tiles);
size_t flow_winograd_scratch_floats(winograd_form form, int64_t inputs, int64_t tiles);

/* The convolution for tiles [first, last) of a range and blocks [begin, end) of output channels. u: as flow_winograd_weights made it for
 * these inputs and outputs; scratch: for all tiles of the range. */
void flow_winograd_convolve(winograd_form form, const flow_tile_source *source, const flow_tile_range *range, int64_t first, int64_t last,
                            int64_t begin, int64_t end, const float *u, const flow_tile_result *result, float *scratch);

/* Tiles first .. first + count - 1, transformed: to[plane * plane_step + tile * padded channels + channel]; what is in the
 * filled up channels is undefined. gradients: those of outputs become Z, else inputs become V.
 * patch: [side * side * channels + VL]. */
void flow_winograd_cut(winograd_form form, int gradients, const flow_tile_source *source, const flow_tile_range *range, int64_t first,
                       int64_t count, float *to, int64_t plane_step, float *patch);

/* s[i * BLOCK + channel] = sum over tiles, in order, of v[tile * v_step + i] * z[tile * z_step + channel], for i < inputs
 * and one or two vectors of channels. */
void flow_winograd_tile_products(int vectors, int64_t inputs, int64_t tiles, const float *v, int64_t v_step, const float *z,
                                 int64_t z_step, float *s);

#endif
