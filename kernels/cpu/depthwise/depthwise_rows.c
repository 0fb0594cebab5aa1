/* depthwise_rows.c: rows of a depthwise convolution, one block of channels.
 *
 * Any kernel: a tile of neighbouring results lives in registers while the taps run by, a load and a multiply-add each.
 * The results at the left and right edge, which do not see all taps, are tiles of one with fewer taps.
 *
 * 3 x 3 over neighbours: several rows of results together walk along the columns of the source. A column is loaded
 * once and added to the three results of each row that see it: the loads are a third and less of the multiply-adds.
 * Columns beside the image are zero vectors, rows beside it a row of zeros. */
#include "cpu/depthwise/depthwise.h"

enum { PIXELS = 12, ROWS = REGISTERS == 32 ? 4 : 2 };

/* ---- any kernel ------------------------------------------------------------------------------------------------------ */

/* Taps of a tile; steps in floats. */
typedef struct window {
  int64_t rows, columns;
  int64_t row_step, column_step, weight_row_step;
  int64_t pixel_step, result_step;      /* between the results of a tile */
  int     lanes;
} window;

/* pixels is a constant at every call, so that sums stays in registers. */
ALWAYS_INLINE void tile(const int pixels, const int part, const window *t, const float *x, const float *weights, vf bias, vf_limits within,
                        float *y)
{
  const int64_t step = t->pixel_step;
  vf sums[PIXELS];
  FLOW_UNROLL(12)
  for (int p = 0; p < pixels; p++) sums[p] = bias;
  for (int64_t ky = 0; ky < t->rows; ky++) {
    const float *at = x + ky * t->row_step, *w = weights + ky * t->weight_row_step;
    for (int64_t kx = 0; kx < t->columns; kx++, at += t->column_step, w += VL) {
      vf weight = vf_load(w);
      FLOW_UNROLL(12)
      for (int p = 0; p < pixels; p++) sums[p] += flow_depthwise_load(part, at + p * step, t->lanes) * weight;
    }
  }
  FLOW_UNROLL(12)
  for (int p = 0; p < pixels; p++) {
    if (part) vf_store_part(y + p * t->result_step, vf_within(sums[p], within), t->lanes);
    else vf_store(y + p * t->result_step, vf_within(sums[p], within));
  }
}

#define TILE(pixels) \
  case pixels: tile(pixels, part, t, x, weights, bias, within, y); break;

ALWAYS_INLINE void any_tile(int64_t pixels, const int part, const window *t, const float *x, const float *weights, vf bias,
                            vf_limits within, float *y)
{
  switch (pixels) {
    TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
  }
}

/* `count` results one after the other, in the fewest tiles. */
static void line_of_tiles(const window *t, int64_t count, const float *x, const float *weights, vf bias, vf_limits within, float *y)
{
  int64_t tiles = (count + PIXELS - 1) / PIXELS;
  for (int64_t i = 0; i < tiles; i++) {
    int64_t pixels = count / tiles + (i < count % tiles);
    if (t->lanes == VL) any_tile(pixels, 0, t, x, weights, bias, within, y);
    else any_tile(pixels, 1, t, x, weights, bias, within, y);
    x += pixels * t->pixel_step;
    y += pixels * t->result_step;
  }
}

/* `count` rows of results from `row` on, which all see the kernel rows first .. last - 1. x and y are the planes. Tiles of
 * the left and right edge run down the rows, where neighbours see the same taps. */
static void any_rows(const flow_depthwise_plane *p, int64_t row, int64_t count, int64_t first, int64_t last, const float *x,
                     const float *weights, vf bias, vf_limits within, float *y)
{
  const flow_depthwise_axis *rows = &p->axis[0], *columns = &p->axis[1];
  /* As in depthwise_products.c: the middle of a row sees all columns of the kernel, the edges some. */
  int64_t left, right, x_row = rows->stride * p->source_step[0];
  flow_depthwise_middle(columns, &left, &right);
  window across = {
    .rows = last - first, .columns = columns->taps, .row_step = rows->step * p->source_step[0], .lanes = p->lanes,
    .column_step = columns->step * p->source_step[1], .weight_row_step = columns->taps * VL,
    .pixel_step = columns->stride * p->source_step[1], .result_step = p->result_step[1],
  };
  if (first < last) x += (row * rows->stride + rows->origin + first * rows->step) * p->source_step[0];
  weights += first * across.weight_row_step;
  y += row * p->result_step[0];
  for (int64_t r = 0; r < count; r++)
    line_of_tiles(&across, right - left, x + r * x_row + (left * columns->stride + columns->origin) * p->source_step[1], weights, bias,
                  within, y + r * p->result_step[0] + left * p->result_step[1]);
  window down = across;
  down.pixel_step = x_row;
  down.result_step = p->result_step[0];
  for (int64_t column = left > 0 ? 0 : right; column < columns->result; column = column + 1 == left ? right : column + 1) {
    int64_t begin, end;
    flow_depthwise_taps(columns, column, &begin, &end);
    down.columns = end - begin;
    int64_t at = begin < end ? column * columns->stride + columns->origin + begin * columns->step : 0;
    line_of_tiles(&down, count, x + at * p->source_step[1], weights + begin * VL, bias, within, y + column * p->result_step[1]);
  }
}

/* ---- 3 x 3 ------------------------------------------------------------------------------------------------------------- */

/* One column of the source under `rows` rows of results: it is the last of `done`, the middle of `half`, the first of
 * `fresh`. rows is a constant at every call, so that the sums stay in registers. */
ALWAYS_INLINE void add_column(const int rows, const int part, const float *const *x, int64_t at, int lanes, const vf *w, vf *done, vf *half,
                              vf *fresh)
{
  FLOW_UNROLL(6)
  for (int i = 0; i < rows + 2; i++) {
    vf v = flow_depthwise_load(part, x[i] + at, lanes);
    FLOW_UNROLL(3)
    for (int ky = 0; ky < 3; ky++) {
      const int r = i - ky;
      if (r < 0 || r >= rows) continue;
      done[r] += v * w[ky * 3 + 2];
      half[r] += v * w[ky * 3 + 1];
      fresh[r] += v * w[ky * 3];
    }
  }
}

/* Stores finished sums and makes them fresh ones. */
ALWAYS_INLINE void finish_column(const int rows, const int part, vf *done, vf bias, vf_limits within, int lanes, float *y, int64_t row_step)
{
  FLOW_UNROLL(4)
  for (int r = 0; r < rows; r++) {
    if (part) vf_store_part(y + r * row_step, vf_within(done[r], within), lanes);
    else vf_store(y + r * row_step, vf_within(done[r], within));
    done[r] = bias;
  }
}

/* x: rows + 2 rows of the source. y: the first of `rows` rows of results. */
ALWAYS_INLINE void walk(const int rows, const int part, const flow_depthwise_plane *p, const float *const *x, const float *weights, vf bias,
                        vf_limits within, float *y)
{
  const flow_depthwise_axis *a = &p->axis[1];
  const int64_t step = p->source_step[1], row_step = p->result_step[0], result_step = p->result_step[1];
  const int lanes = p->lanes;
  vf w[9], sums[3][ROWS];
  FLOW_UNROLL(9)
  for (int i = 0; i < 9; i++) w[i] = vf_load(weights + i * VL);
  FLOW_UNROLL(12)
  for (int i = 0; i < 3 * rows; i++) sums[i / rows][i % rows] = bias;
  /* Columns are counted from the first one that result 0 sees, which may be beside the image. Result c - 2 is finished
   * after column c. sums[0] is what the coming column finishes. */
  int64_t at = 0, column = -a->origin, end = -a->origin + a->source;
  if (end > a->result + 2) end = a->result + 2;
  /* Without enough padding the first columns finish no result; a narrow image may end among them. */
  for (; column < 2; column++, at += step) {
    if (column < end) add_column(rows, part, x, at, lanes, w, sums[0], sums[1], sums[2]);
    FLOW_UNROLL(4)
    for (int r = 0; r < rows; r++) sums[0][r] = sums[1][r], sums[1][r] = sums[2][r], sums[2][r] = bias;
  }
  for (; column + 3 <= end; column += 3, at += 3 * step, y += 3 * result_step) {
    add_column(rows, part, x, at, lanes, w, sums[0], sums[1], sums[2]);
    finish_column(rows, part, sums[0], bias, within, lanes, y, row_step);
    add_column(rows, part, x, at + step, lanes, w, sums[1], sums[2], sums[0]);
    finish_column(rows, part, sums[1], bias, within, lanes, y + result_step, row_step);
    add_column(rows, part, x, at + 2 * step, lanes, w, sums[2], sums[0], sums[1]);
    finish_column(rows, part, sums[2], bias, within, lanes, y + 2 * result_step, row_step);
  }
  for (; column < a->result + 2; column++, at += step, y += result_step) {   /* the last columns, some beside the image */
    if (column < end) add_column(rows, part, x, at, lanes, w, sums[0], sums[1], sums[2]);
    finish_column(rows, part, sums[0], bias, within, lanes, y, row_step);
    FLOW_UNROLL(4)
    for (int r = 0; r < rows; r++) sums[0][r] = sums[1][r], sums[1][r] = sums[2][r], sums[2][r] = bias;
  }
}

#define WALK(rows) \
  case rows: walk(rows, part, p, x, weights, bias, within, y); break;

ALWAYS_INLINE void any_walk(int64_t rows, const int part, const flow_depthwise_plane *p, const float *const *x, const float *weights,
                            vf bias, vf_limits within, float *y)
{
  switch (rows) {
    WALK(1) WALK(2)
#if defined(FLOW_ISA_AVX512)
    WALK(3) WALK(4)
#endif
  }
}

/* `rows` <= ROWS rows of results from `row` on, 3 x 3 over neighbours. */
static void three_rows(const flow_depthwise_plane *p, int64_t row, int64_t rows, const float *source, const float *weights, vf bias,
                       vf_limits within, float *y)
{
  const float *x[ROWS + 2];
  for (int64_t i = 0; i < rows + 2; i++) x[i] = flow_depthwise_source_row(p, source, row + p->axis[0].origin + i);
  if (p->lanes == VL) any_walk(rows, 0, p, x, weights, bias, within, y + row * p->result_step[0]);
  else any_walk(rows, 1, p, x, weights, bias, within, y + row * p->result_step[0]);
}

/* Rows first .. last - 1 of one block of channels */
void flow_depthwise_convolve(const flow_depthwise_plane *p, int64_t first, int64_t last, const float *source, const float *weights,
                             const float *bias, flow_epilogue epilogue, float *result)
{
  vf start = vf_load(bias);
  const vf_limits within = vf_limits_of(epilogue);
  if (!flow_depthwise_three(p)) {
    for (int64_t row = first, rows; row < last; row += rows) {
      int64_t begin, end;
      rows = flow_depthwise_equal_rows(p, row, last, &begin, &end);
      any_rows(p, row, rows, begin, end, source, weights, start, within, result);
    }
    return;
  }
  for (int64_t row = first, rows; row < last; row += rows) {
    rows = last - row < ROWS ? last - row : ROWS;
    three_rows(p, row, rows, source, weights, start, within, result);
  }
}
