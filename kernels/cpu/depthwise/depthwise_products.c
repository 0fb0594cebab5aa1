/* depthwise_products.c: the weight gradient of a depthwise convolution, one block of channels: for every tap the sum of
 * source * g over the results that see it.
 *
 * Any kernel: a tile of taps lives in registers while the results run by. The results at the left and right edge, which
 * do not see all taps, are added tap by tap.
 *
 * 3 x 3 over neighbours: nine sums; several rows of results together walk along the columns of the source, each loaded
 * once; of every row of g the last three vectors stay in registers. */
#include "cpu/depthwise/depthwise.h"

enum { TAPS = 12, ROWS = REGISTERS == 32 ? 4 : 2 };

/* ---- any kernel ------------------------------------------------------------------------------------------------------ */

/* A rectangle of results that all see the same taps; steps in floats. */
typedef struct rectangle {
  int64_t rows, columns;
  int64_t x_row_step, x_step, g_row_step, g_step;
  int     lanes;
} rectangle;

/* taps is a constant at every call, so that sums stays in registers. Tap i reads x at i * tap_step. */
ALWAYS_INLINE void tile(const int taps, const int part, const rectangle *r, const float *x, int64_t tap_step, const float *g, float *to)
{
  vf sums[TAPS];
  FLOW_UNROLL(12)
  for (int t = 0; t < taps; t++) sums[t] = vf_load(to + t * VL);
  for (int64_t row = 0; row < r->rows; row++) {
    const float *input = x + row * r->x_row_step, *gradient = g + row * r->g_row_step;
    for (int64_t column = 0; column < r->columns; column++, input += r->x_step, gradient += r->g_step) {
      vf v = flow_depthwise_load(part, gradient, r->lanes);
      FLOW_UNROLL(12)
      for (int t = 0; t < taps; t++) sums[t] += flow_depthwise_load(part, input + t * tap_step, r->lanes) * v;
    }
  }
  FLOW_UNROLL(12)
  for (int t = 0; t < taps; t++) vf_store(to + t * VL, sums[t]);
}

#define TILE(taps) case taps: tile(taps, part, r, x, tap_step, g, to); break;

ALWAYS_INLINE void any_tile(int64_t taps, const int part, const rectangle *r, const float *x, int64_t tap_step, const float *g, float *to)
{
  switch (taps) {
    TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
  }
}

/* Three kernel rows of three columns: the taps of a strided 3 x 3 kernel together. */
ALWAYS_INLINE void tile_of_nine(const int part, const rectangle *r, const float *x, int64_t row_step, int64_t tap_step, const float *g,
                                float *to)
{
  vf sums[9];
  FLOW_UNROLL(9)
  for (int t = 0; t < 9; t++) sums[t] = vf_load(to + t * VL);
  for (int64_t row = 0; row < r->rows; row++) {
    const float *input = x + row * r->x_row_step, *gradient = g + row * r->g_row_step;
    for (int64_t column = 0; column < r->columns; column++, input += r->x_step, gradient += r->g_step) {
      vf v = flow_depthwise_load(part, gradient, r->lanes);
      FLOW_UNROLL(9)
      for (int t = 0; t < 9; t++) sums[t] += flow_depthwise_load(part, input + t / 3 * row_step + t % 3 * tap_step, r->lanes) * v;
    }
  }
  FLOW_UNROLL(9)
  for (int t = 0; t < 9; t++) vf_store(to + t * VL, sums[t]);
}

/* The taps first .. last - 1 of `rows` kernel rows over a rectangle; sums are those of the first of these kernel rows. */
static void add_rectangle(const flow_depthwise_plane *p, const rectangle *r, int64_t rows, int64_t first, int64_t last, const float *x,
                          const float *g, float *sums)
{
  int64_t row_step = p->axis[0].step * p->source_step[0], tap_step = p->axis[1].step * p->source_step[1], taps = last - first;
  int whole = p->lanes == VL;
  if (rows == 3 && taps == 3 && p->axis[1].taps == 3) {
    if (whole) tile_of_nine(0, r, x, row_step, tap_step, g, sums);
    else tile_of_nine(1, r, x, row_step, tap_step, g, sums);
    return;
  }
  int64_t tiles = (taps + TAPS - 1) / TAPS;
  for (int64_t ky = 0; ky < rows; ky++) {
    const float *from = x + ky * row_step;
    float *to = sums + (ky * p->axis[1].taps + first) * VL;
    for (int64_t i = 0; i < tiles; i++) {
      int64_t count = taps / tiles + (i < taps % tiles);
      if (whole) any_tile(count, 0, r, from, tap_step, g, to);
      else any_tile(count, 1, r, from, tap_step, g, to);
      from += count * tap_step;
      to += count * VL;
    }
  }
}

/* `rows` rows of results from `row` on, which see the kernel rows first .. last - 1. */
static void any_rows(const flow_depthwise_plane *p, int64_t row, int64_t rows, int64_t first, int64_t last, const float *source,
                     const float *g, float *sums)
{
  const flow_depthwise_axis *down = &p->axis[0], *across = &p->axis[1];
  /* Results [left, right) of a row see all columns of the kernel and are one rectangle; the others are rectangles of one column. */
  int64_t left, right;
  flow_depthwise_middle(across, &left, &right);
  rectangle r = {
    .rows = rows, .x_row_step = down->stride * p->source_step[0], .x_step = across->stride * p->source_step[1],
    .g_row_step = p->result_step[0], .g_step = p->result_step[1], .lanes = p->lanes,
  };
  const float *x = source + (row * down->stride + down->origin + first * down->step) * p->source_step[0];
  g += row * p->result_step[0];
  sums += first * across->taps * VL;
  for (int64_t column = 0; column < across->result; column += r.columns) {
    int64_t begin, end;
    flow_depthwise_taps(across, column, &begin, &end);
    r.columns = column == left && left < right ? right - left : 1;
    if (begin == end) continue;
    int64_t at = column * across->stride + across->origin + begin * across->step;
    add_rectangle(p, &r, last - first, begin, end, x + at * p->source_step[1], g + column * p->result_step[1], sums);
  }
}

/* ---- 3 x 3 ------------------------------------------------------------------------------------------------------------- */

/* One column of the source under `rows` rows of g: kernel column 0 meets g0, 1 meets g1, 2 meets g2. */
ALWAYS_INLINE void add_column(const int rows, const int part, const float *const *x, int64_t at, int lanes, const vf *g0, const vf *g1,
                              const vf *g2, vf *sums)
{
  FLOW_UNROLL(6)
  for (int i = 0; i < rows + 2; i++) {
    vf v = flow_depthwise_load(part, x[i] + at, lanes);
    FLOW_UNROLL(3)
    for (int ky = 0; ky < 3; ky++) {
      const int r = i - ky;
      if (r < 0 || r >= rows) continue;
      sums[ky * 3] += v * g0[r];
      sums[ky * 3 + 1] += v * g1[r];
      sums[ky * 3 + 2] += v * g2[r];
    }
  }
}

/* rows is a constant at every call, so that sums and g stay in registers. g: the first of `rows` rows. */
ALWAYS_INLINE void walk(const int rows, const int part, const flow_depthwise_plane *p, const float *const *x, const float *g, float *to)
{
  const flow_depthwise_axis *a = &p->axis[1];
  const int64_t step = p->source_step[1], row_step = p->result_step[0], g_step = p->result_step[1];
  const int lanes = p->lanes;
  vf sums[9], v[3][ROWS];
  FLOW_UNROLL(9)
  for (int i = 0; i < 9; i++) sums[i] = vf_load(to + i * VL);
  FLOW_UNROLL(12)
  for (int i = 0; i < 3 * rows; i++) v[i / rows][i % rows] = (vf){ 0 };
#define NEXT_G(which, column)                                                                                                         \
  FLOW_UNROLL(4)                                                                                                                      \
  for (int r = 0; r < rows; r++) v[which][r] = flow_depthwise_load(part, g + r * row_step + (column) * g_step, lanes);
  /* Columns are counted from the first one that result 0 sees, which may be beside the image: column c meets the
   * results c, c - 1 and c - 2. v[1] and v[0] are the results before the coming column. */
  int64_t column = 0, first = -a->origin, end = first + a->source, at = -first * step;
  for (; column < first && column < a->result; column++) {
    NEXT_G(2, column)
    FLOW_UNROLL(4)
    for (int r = 0; r < rows; r++) v[0][r] = v[1][r], v[1][r] = v[2][r];
  }
  for (; column + 3 <= end && column + 3 <= a->result; column += 3) {
    NEXT_G(2, column)
    add_column(rows, part, x, at + column * step, lanes, v[2], v[1], v[0], sums);
    NEXT_G(0, column + 1)
    add_column(rows, part, x, at + (column + 1) * step, lanes, v[0], v[2], v[1], sums);
    NEXT_G(1, column + 2)
    add_column(rows, part, x, at + (column + 2) * step, lanes, v[1], v[0], v[2], sums);
  }
  for (; column < end && column < a->result + 2; column++) {                   /* the last columns, some without a result */
    FLOW_UNROLL(4)
    for (int r = 0; r < rows; r++) v[2][r] = (vf){ 0 };
    if (column < a->result) { NEXT_G(2, column) }
    if (column >= first) add_column(rows, part, x, at + column * step, lanes, v[2], v[1], v[0], sums);
    FLOW_UNROLL(4)
    for (int r = 0; r < rows; r++) v[0][r] = v[1][r], v[1][r] = v[2][r];
  }
#undef NEXT_G
  FLOW_UNROLL(9)
  for (int i = 0; i < 9; i++) vf_store(to + i * VL, sums[i]);
}

#define WALK(rows) case rows: walk(rows, part, p, x, g, sums); break;

ALWAYS_INLINE void any_walk(int64_t rows, const int part, const flow_depthwise_plane *p, const float *const *x, const float *g, float *sums)
{
  switch (rows) {
    WALK(1) WALK(2)
#if defined(FLOW_ISA_AVX512)
    WALK(3) WALK(4)
#endif
  }
}

/* Results of rows first .. last - 1 are added to sums[tap][VL]. 3 x 3 over neighbours takes up to ROWS rows at once; other kernels as many
 * rows as see the same taps. */
void flow_depthwise_gradient(const flow_depthwise_plane *p, int64_t first, int64_t last, const float *source, const float *g, float *sums)
{
  int three = flow_depthwise_three(p);
  for (int64_t row = first, rows; row < last; row += rows) {
    if (three) {
      const float *x[ROWS + 2];
      rows = last - row < ROWS ? last - row : ROWS;
      for (int64_t i = 0; i < rows + 2; i++) x[i] = flow_depthwise_source_row(p, source, row + p->axis[0].origin + i);
      if (p->lanes == VL) any_walk(rows, 0, p, x, g + row * p->result_step[0], sums);
      else any_walk(rows, 1, p, x, g + row * p->result_step[0], sums);
      continue;
    }
    int64_t begin, end;
    rows = flow_depthwise_equal_rows(p, row, last, &begin, &end);
    if (begin < end) any_rows(p, row, rows, begin, end, source, g, sums);
  }
}
