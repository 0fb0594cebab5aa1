/* convolution_outer.c: the weight gradient as a sum of outer products, one per pixel: (inputs under the kernel) x
 * (gradients of the output channels).
 *
 * A tile of P positions of the kernel times V vectors of output channels lives in registers while the pixels run by:
 * the same balance of loads and multiply-adds as in convolution_direct.c. */
#include "cpu/convolution/convolution.h"

enum { POSITIONS_1 = 12, POSITIONS_2 = REGISTERS == 32 ? 12 : 6, SUMS = 2 * POSITIONS_2 };

/* vectors, positions and run are constants at every call, so that sums stays in registers. run: the positions are one
 * after the other, which needs one address instead of one for each. */
ALWAYS_INLINE void outer_tile(const int vectors, const int positions, const int run, const flow_pixels *pixels, const float *x,
                              const int64_t *offsets, const float *g, int64_t channels, float *dw, int64_t dw_step)
{
  const int lanes = (int)(channels - (vectors - 1) * VL);
  vf sums[SUMS];
  FLOW_UNROLL(24)
  for (int i = 0; i < positions * vectors; i++) {
    const float *from = dw + i / vectors * dw_step + i % vectors * VL;
    if (pixels->anew) sums[i] = (vf){ 0 };
    else if (i % vectors < vectors - 1 || lanes == VL) sums[i] = vf_load(from);
    else {
      vf part = { 0 };   /* indexing sums itself by a variable would put all of it into memory */
      for (int lane = 0; lane < lanes; lane++) part[lane] = from[lane];
      sums[i] = part;
    }
  }
  /* The sums of the next tile lie far apart, where no prefetcher looks for them. */
  FLOW_UNROLL(24)
  for (int i = 0; i < positions * vectors; i++) __builtin_prefetch(dw + (positions + i / vectors) * dw_step + i % vectors * VL, 1);
  for (int64_t row = 0, image = 0; image < pixels->images; ++row == pixels->rows ? row = 0, image++ : 0) {
    const float *inputs[12];
    FLOW_UNROLL(12)
    for (int p = 0; p < positions; p++) inputs[p] = x + image * pixels->x_image_step + row * pixels->x_row_step + offsets[p];
    const float *gradient = g + image * pixels->g_image_step + row * pixels->g_row_step;
    int64_t at = 0;
    for (int64_t column = 0; column < pixels->columns; column++, at += pixels->x_step, gradient += pixels->g_step) {
      vf v[2];
      FLOW_UNROLL(2)
      for (int b = 0; b < vectors; b++) v[b] = vf_load(gradient + b * VL);
      FLOW_UNROLL(12)
      for (int p = 0; p < positions; p++) {
        vf input = vf_set(run ? inputs[0][at + p] : inputs[p][at]);
        FLOW_UNROLL(2)
        for (int b = 0; b < vectors; b++) sums[p * vectors + b] += input * v[b];
      }
    }
  }
  FLOW_UNROLL(24)
  for (int i = 0; i < positions * vectors; i++) {
    float *to = dw + i / vectors * dw_step + i % vectors * VL;
    const vf sum = sums[i];
    if (i % vectors < vectors - 1 || lanes == VL) vf_store(to, sum);
    else for (int lane = 0; lane < lanes; lane++) to[lane] = sum[lane];
  }
}

/* The sizes of a tile as constants, for which compilers keep all sums in registers. */
#define TILE(vectors, positions) \
  case positions:                                                                                   \
    if (run) outer_tile(vectors, positions, 1, pixels, x, offsets, g, channels, dw, dw_step);       \
    else outer_tile(vectors, positions, 0, pixels, x, offsets, g, channels, dw, dw_step);           \
    break;

/* The number of positions as a constant: tiles of one vector of channels, and of two. */
static void outer_tile_1(int64_t positions, int run, const flow_pixels *pixels, const float *x, const int64_t *offsets, const float *g,
                         int64_t channels, float *dw, int64_t dw_step)
{
  switch (positions) {
    TILE(1, 1) TILE(1, 2) TILE(1, 3) TILE(1, 4) TILE(1, 5) TILE(1, 6)
    TILE(1, 7) TILE(1, 8) TILE(1, 9) TILE(1, 10) TILE(1, 11) TILE(1, 12)
  }
}

/* The number of positions as a constant, so that the tile's sums are in registers. */
static void outer_tile_2(int64_t positions, int run, const flow_pixels *pixels, const float *x, const int64_t *offsets, const float *g,
                         int64_t channels, float *dw, int64_t dw_step)
{
  switch (positions) {
    TILE(2, 1) TILE(2, 2) TILE(2, 3) TILE(2, 4) TILE(2, 5) TILE(2, 6)
#if defined(FLOW_ISA_AVX512)
    TILE(2, 7) TILE(2, 8) TILE(2, 9) TILE(2, 10) TILE(2, 11) TILE(2, 12)
#endif
  }
}

/* Whether the positions are one after the other. */
static int one_run(const int64_t *offsets, int64_t positions)
{
  for (int64_t p = 1; p < positions; p++)
    if (offsets[p] != offsets[0] + p) return 0;
  return 1;
}

/* The positions are cut into the fewest tiles, whose sizes differ by one at most. */
void flow_outer_products(const flow_pixels *pixels, const float *x, const int64_t *offsets, int64_t positions, const float *g,
                         int64_t channels, float *dw, int64_t dw_step)
{
  /* x is read as one run where the positions of a tile allow it, even if those of the whole kernel are not one. */
  int two = channels > VL;
  int64_t most = two ? POSITIONS_2 : POSITIONS_1, tiles = (positions + most - 1) / most;
  for (int64_t tile = 0, done = 0; tile < tiles; tile++) {
    int64_t size = positions / tiles + (tile < positions % tiles);
    (two ? outer_tile_2 : outer_tile_1)(size, one_run(offsets + done, size), pixels, x, offsets + done, g, channels, dw + done * dw_step,
                                        dw_step);
    done += size;
  }
}
