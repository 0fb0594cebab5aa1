/* gemm.c: see gemm.h. The design is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication"
 * (2008), with one block of A per part:
 *
 *   part      a block of C, at most BLOCK_ROWS x BLOCK_COLUMNS, over all of k or one range of it
 *   depth     k is walked in steps of at most DEPTH, so that a panel of B stays in the first-level cache
 *   panel     DEPTH x PANEL of B, copied (and transposed) so that the tile reads whole vectors one after the other
 *   tile      TILE_ROWS x PANEL of C in registers: per step of k two vectors of B and TILE_ROWS broadcasts of A
 *
 * A {m, k} is read where it is: a tile's rows are TILE_ROWS streams. A {k, m} is copied first: its columns would fall
 * into few sets of the cache. Products with one to three rows are bound by memory and take B where it is, too.
 *
 * Rounded products (gemm_bfloat16.h) are so whatever their size: a row has the same factors in a batch of any number of rows. */
#include "cpu/cost.h"
#include "cpu/matrix_product/gemm_bfloat16.h"
#include "cpu/matrix_product/gemm_transposed.h"

enum {
  BLOCK_ROWS = GEMM_BLOCK_ROWS,
  BLOCK_COLUMNS = 512,
  SMALL_ROWS = 96, /* blocks are halved down to this size ... */
  SMALL_COLUMNS = 128,
  SUM_ROWS = 4,        /* partial sums are added in parts of this many rows */
  WANTED_PARTS = 16,   /* ... until there are this many parts: enough for any team, each still worth its ticket */
  PART_WORK = 1 << 20, /* multiplications that a part should have at least */
  SPLIT_DEPTH = 512,   /* shortest range of k that is worth a partial sum */
  FEW_ROWS = BFLOAT16_FEW_ROWS,
  MOST_STRIP = REGISTERS / 2, /* vectors of few rows that are summed side by side */
  AHEAD = 4,                  /* rows of B that they ask for before they read them: prefetchers lose a strip at the end of a page */
  SLOW_ROWS = 16,             /* as which fewer rows count: they take as long, since B comes from outside of the first-level cache */
  EXACT_ROWS = 32,            /* as which m counts where an exact product is split */
  OWN_ROWS = 2 * TILE_ROWS,   /* a member's own rows, at least: fewer share a copy of B too seldom */
  OWN_FLOATS = 1 << 20        /* of B that several members read, at most: from their caches */
};

/* ---- plan ------------------------------------------------------------------------------------------------------- */

/* How a product is cut, from its sizes and flags alone: make_plan(). */
typedef struct plan {
  gemm    g;                               /* the product as it is computed */
  int64_t bias_step;                       /* 0: every column has bias[0] */
  int64_t rows, columns, depth;            /* of one part */
  int64_t row_blocks, column_blocks, splits;
  int     transposed;                          /* computed as C's transpose: gemm_transposed.h */
  int     rounded;                             /* A and B are rounded: gemm_bfloat16.c */
} plan;

/* Whether a row of C must have the bits that it has in a product of any other number of rows. */
static int rows_are_alike(const gemm *g)
{
  return g->exact || g->unsplit;
}

/* A matrix times one column is computed as one row times the transposed matrix: C is in memory the same. */
static plan transpose_column(const gemm *g)
{
  plan p = { .g = *g, .bias_step = 1, .rounded = g->bfloat16 && !g->exact && bfloat16_available() };
  if (p.rounded) return p;
  if (g->n == 1 && g->m > 1 && g->ldc == 1 && (g->transpose_b || g->ldb == 1) && !rows_are_alike(g)) {
    p.g.m = 1;
    p.g.n = g->m;
    p.g.a = g->b;
    p.g.b = g->a;
    p.g.transpose_a = 0;
    p.g.transpose_b = !g->transpose_a;
    p.g.lda = g->k;
    p.g.ldb = g->lda;
    p.g.ldc = g->m;
    p.bias_step = 0;
  } else if (g->m == 1 && g->transpose_a && g->lda == 1) {
    p.g.transpose_a = 0;
  }
  if (p.g.n == 1 && !p.g.transpose_b && p.g.ldb == 1 && !rows_are_alike(g)) { /* one column, which is one row */
    p.g.transpose_b = 1;
    p.g.ldb = g->k;
  }
  return p;
}

/* Whether the product is computed as C's transpose: A is small enough to be packed whole by every part, and B long enough for that not to
 * weigh. */
static int turns(const gemm *g)
{
  int64_t packed = gemm_blocks_of(g->m, PANEL) * PANEL * g->k;
  return g->transpose_b && !g->transpose_a && !g->bias && !g->relu && g->m > FEW_ROWS && g->k > 0 && g->n >= 8 * g->m &&
         packed <= (int64_t)BLOCK_ROWS * DEPTH && !rows_are_alike(g);
}

/* Parts that a product of m rows is worth. */
static int64_t parts_worth(const gemm *g, int64_t m)
{
  double work = (double)(m < SLOW_ROWS ? SLOW_ROWS : m) * (double)g->n * (double)g->k / PART_WORK;
  return work > WANTED_PARTS ? WANTED_PARTS : work < 1 ? 1 : (int64_t)work;
}

/* Ranges of k, when C has `blocks` blocks and `wanted` parts are wanted. */
static int64_t splits_for(const gemm *g, int64_t wanted, int64_t blocks)
{
  int64_t splits = gemm_min(gemm_blocks_of(wanted, blocks), g->k / SPLIT_DEPTH);
  return splits < 1 ? 1 : splits;
}

/* Cuts a C that is one block high between its rows, if members share the parts: successive parts then have the same rows, so that in a
 * chain of layers a member reads the rows that it wrote. What another core wrote comes several times as slowly as what is in the own cache.
 * Sums are added in the same order, wherever C is cut. */
static void give_own_rows(plan *p)
{
  const gemm *g = &p->g;
  int64_t blocks = gemm_min(g->members, g->m / OWN_ROWS);
  if (blocks < 2 || p->row_blocks > 1 || p->splits > 1 || p->transposed || g->n * g->k > OWN_FLOATS) return;
  p->rows = gemm_even_block(g->m, gemm_blocks_of(g->m, blocks), TILE_ROWS);
  p->row_blocks = gemm_blocks_of(g->m, p->rows);
}

/* The size of a part's block, and how often k is split. Blocks are halved, columns before rows while both are large, until there are as
 * many as the product is worth; if the smallest are still too few, k is split, and a second phase adds the partial sums. An exact
 * product takes its splits from n and k only, as if it had EXACT_ROWS rows: a row's sums are then added in the same order, whatever the
 * number of rows in the batch. Blocks and splits depend on sizes only, never on the size of the team, so that a result has the same bits
 * on every number of threads. */
static plan make_plan(const gemm *original)
{
  plan p = transpose_column(original);
  const gemm *g = &p.g;
  int64_t rows = BLOCK_ROWS, columns = BLOCK_COLUMNS, wanted = parts_worth(g, g->m);
  while (gemm_blocks_of(g->m, rows) * gemm_blocks_of(g->n, columns) < wanted) {
    if (columns > SMALL_COLUMNS && (g->n > SMALL_COLUMNS || rows <= SMALL_ROWS)) columns /= 2;
    else if (rows > SMALL_ROWS) rows /= 2;
    else break;
  }
  if (turns(g) && !p.rounded) {
    p.transposed = 1;
    rows = g->m;
    columns = gemm_even_block(g->n, gemm_blocks_of(g->n, wanted), TRANSPOSED_ROWS);
  }
  p.rows = gemm_even_block(g->m, rows, TILE_ROWS);
  p.columns = gemm_even_block(g->n, columns, p.transposed ? TRANSPOSED_ROWS : PANEL);
  p.row_blocks = gemm_blocks_of(g->m, p.rows);
  p.column_blocks = gemm_blocks_of(g->n, p.columns);
  p.splits = p.transposed || g->unsplit ? 1 : splits_for(g, wanted, p.row_blocks * p.column_blocks);
  if (g->exact && !g->unsplit) p.splits = splits_for(g, parts_worth(g, EXACT_ROWS), gemm_blocks_of(g->n, SMALL_COLUMNS));
  p.depth = gemm_blocks_of(g->k, p.splits);
  if (p.rounded) p.depth += p.depth % 2;       /* ranges of whole pairs */
  if (g->k > 0) p.splits = gemm_blocks_of(g->k, p.depth);
  give_own_rows(&p);
  return p;
}

/* Phase 0 makes blocks of C, or of its partial sums; phase 1, where k is split, adds those. 0 parts: there is nothing to do. */
int64_t gemm_parts(const gemm *g, int phase)
{
  if (g->m == 0 || g->n == 0) return 0;
  plan p = make_plan(g);
  if (phase == 1) return p.splits > 1 ? gemm_blocks_of(g->m, SUM_ROWS) : 0;
  return p.row_blocks * p.column_blocks * p.splits;
}

/* Room for partial sums {splits, m, n}, for the product itself and for any with fewer rows: an instance takes its memory once, for its
 * capacity, and then runs batches of any size up to that. */
size_t gemm_shared_bytes(const gemm *g)
{
  if (g->m == 0 || g->n == 0 || g->unsplit) return 0;
  plan p = make_plan(g);
  if (g->exact) return p.splits > 1 ? (size_t)p.splits * (size_t)g->m * (size_t)g->n * sizeof(float) : 0;
  /* Fewer rows may be split more often. Only the smallest blocks are: m rows have at least m / most of them, in each of the blocks of
   * columns, so that splits <= WANTED_PARTS / (m / most * column blocks) + 1. */
  int64_t most = SMALL_ROWS + TILE_ROWS, m = gemm_min(g->m, most * WANTED_PARTS);
  if (p.g.m != g->m) m = g->m, most = g->m;            /* one row of g->m columns */
  int64_t floats = gemm_min(m * gemm_min(g->k / SPLIT_DEPTH, WANTED_PARTS), most * WANTED_PARTS / gemm_blocks_of(g->n, SMALL_COLUMNS) + m);
  return g->k >= 2 * SPLIT_DEPTH ? (size_t)floats * (size_t)g->n * sizeof(float) : 0;
}

/* Of one part: a packed panel of B, and a packed block of A where A is {k, m}. */
size_t gemm_scratch_bytes(void)
{
  return (size_t)(DEPTH * PANEL + (BLOCK_ROWS + TILE_ROWS) * DEPTH) * sizeof(float);
}

/* Tiles reach nine tenths of the peak, but compute whole panels; A, B and C go through the caches. With few rows the longest
 * operand is read once from memory and that is all there is to it. */
double gemm_cost(const gemm *g)
{
  if (g->m == 0 || g->n == 0) return 0;
  plan p = make_plan(g);
  double m = (double)p.g.m, n = (double)p.g.n, k = (double)p.g.k, bytes = (m * n + m * k + n * k) * (double)sizeof(float);
  if (p.g.m <= FEW_ROWS) return flow_cost_arithmetic(m * n * k, 0.9) + flow_cost_stream(bytes);
  double width = (double)(p.transposed ? p.g.n : gemm_blocks_of(p.g.n, PANEL) * PANEL);
  double share = p.rounded ? 1.5 : 0.9;      /* twice as many products an instruction */
  return flow_cost_arithmetic(m * width * k, share) + flow_cost_cached(bytes) + flow_cost_cached(p.splits > 1 ? m * n * p.splits * 8.0 : 0);
}

/* ---- a block of C --------------------------------------------------------------------------------------------------- */

/* Asks for a tile of C, to be written, while its products are computed: first stores to lines that are far away would wait. */
static void fetch_tile(const float *c, int64_t ldc, int rows)
{
  for (int i = 0; i < rows; i++, c += ldc) {
    __builtin_prefetch(c, 1);
    __builtin_prefetch(c + VL, 1);
  }
}

/* One block of C by tiles. For each step of k and each panel of B: the panel is packed (or, where few tiles would share the copy, the
 * first tile packs while it computes), then `count` tiles of nearly equal height use it from the first-level cache. While a tile
 * computes, the lines that are needed next are asked for: next_b is the next panel of B, next_a the rows of A for the next step; at_once
 * says how many of their rows each tile fetches, so that all have been asked for when the last tile is done. Bias and relu belong to the
 * last step of k only. */
static void block_tiled(const gemm *g, const gemm_block *w, float *scratch)
{
  float *panel = scratch, *packed = scratch + DEPTH * PANEL;
  int64_t step = gemm_even_block(w->depth, DEPTH, 1);
  int start[BLOCK_ROWS / TILE_ROWS + 1], count = (int)gemm_blocks_of(w->rows, TILE_ROWS);
  for (int t = 0; t <= count; t++) start[t] = (int)w->rows * t / count;   /* tiles of nearly equal rows: short ones are slow */
  for (int64_t k = 0; k < w->depth; k += step) {
    int64_t depth = gemm_min(step, w->depth - k);
    int last = k + depth == w->depth;
    region next_a = gemm_next_rows(g, w, k, depth);
    next_a.at_once = gemm_blocks_of(next_a.rows, count * gemm_blocks_of(w->columns, PANEL));
    if (g->transpose_a) pack_a(gemm_a_at(g, w->row, w->k + k), g->lda, depth, start, count, packed);
    for (int64_t j = 0; j < w->columns; j += PANEL) {
      int64_t columns = gemm_min(PANEL, w->columns - j);
      region next_b = gemm_next_panel(g, w, k, depth, j);
      next_b.at_once = gemm_blocks_of(next_b.rows, count);
      const float *b = gemm_b_at(g, w->k + k, w->column + j);
      /* Packing weighs where few tiles share it: there the first tile packs. Otherwise its misses would be in the way. */
      int64_t in_place = !g->transpose_b && columns == PANEL && w->rows <= SMALL_ROWS ? g->ldb : 0;
      if (!in_place) (g->transpose_b ? pack_columns : pack_rows)(b, g->ldb, depth, columns, panel);
      epilogue e = { .add = k > 0, .bias = last && w->bias ? w->bias + j : NULL, .relu = last && w->relu };
      for (int t = 0; t < count; t++) {
        int i = start[t], rows = start[t + 1] - i;
        const float *a = g->transpose_a ? packed + t * TILE_ROWS * depth : gemm_a_at(g, w->row + i, w->k + k);
        float *c = w->c + i * w->ldc + j;
        /* Lines of the next rows of B side by side, one after the other: all at once they would queue up. */
        enum { LINE = 64 / sizeof(float), LINES = PANEL / LINE };
        e.ahead = !g->transpose_b && count >= LINES && t < LINES && next_b.rows > 0 ? next_b.at + t * LINE : NULL;
        e.ahead_step = next_b.ld;
        if (g->transpose_b || count < LINES) fetch_some(&next_b);
        fetch_some(&next_a);
        if (k == 0) fetch_tile(c, w->ldc, rows);
        if (columns == PANEL) tiles[rows][g->transpose_a](depth, a, g->lda, b, t == 0 ? in_place : 0, panel, c, w->ldc, &e);
        else edge_tile(tiles[rows][g->transpose_a], depth, a, g->lda, panel, c, w->ldc, rows, columns, &e);
      }
    }
  }
}

/* The same of A and B rounded to bfloat16, both of which are packed, since that is where they are rounded. */
static void block_rounded(const gemm *g, const gemm_block *w, void *scratch)
{
  bfloat16_pair *panel = scratch, *packed = panel + DEPTH * PANEL;
  int64_t step = gemm_even_block(w->depth, 2 * DEPTH, 2);
  /* Tiles of nearly equal rows, as above. A step of k has 2 x DEPTH numbers, which as pairs take the bytes of DEPTH floats. */
  int start[BLOCK_ROWS / TILE_ROWS + 1], count = (int)gemm_blocks_of(w->rows, TILE_ROWS);
  for (int t = 0; t <= count; t++) start[t] = (int)w->rows * t / count;
  for (int64_t k = 0; k < w->depth; k += step) {
    int64_t depth = gemm_min(step, w->depth - k), pairs = bfloat16_pairs(depth);
    int64_t a_row = g->transpose_a ? 1 : bfloat16_stack_step(depth), a_step = g->transpose_a ? TILE_ROWS : 1;
    int last = k + depth == w->depth;
    region next_a = gemm_next_rows(g, w, k, depth);
    next_a.at_once = gemm_blocks_of(next_a.rows, count * gemm_blocks_of(w->columns, PANEL));
    const float *a = gemm_a_at(g, w->row, w->k + k);
    if (g->transpose_a) bfloat16_pack_stacks(a, g->lda, depth, start, count, packed);
    else bfloat16_pack_stack(a, g->lda, depth, w->rows, packed);
    for (int64_t j = 0; j < w->columns; j += PANEL) {
      int64_t columns = gemm_min(PANEL, w->columns - j);
      region next_b = gemm_next_panel(g, w, k, depth, j);
      next_b.at_once = gemm_blocks_of(next_b.rows, count);
      const float *b = gemm_b_at(g, w->k + k, w->column + j);
      (g->transpose_b ? bfloat16_pack_columns : bfloat16_pack_rows)(b, g->ldb, depth, columns, panel);
      epilogue e = { .add = k > 0, .bias = last && w->bias ? w->bias + j : NULL, .relu = last && w->relu };
      for (int t = 0; t < count; t++) {
        /* A {k, m} was packed tile by tile, A {m, k} row by row: any row of it can be the first of a tile. */
        const bfloat16_pair *stack = packed + (g->transpose_a ? t * pairs * TILE_ROWS : start[t] * a_row);
        fetch_some(&next_b);
        fetch_some(&next_a);
        bfloat16_tile(start[t + 1] - start[t], columns, pairs, stack, a_row, a_step, panel, w->c + start[t] * w->ldc + j, w->ldc, &e);
      }
    }
  }
}

/* `vectors` vectors of each of `rows` rows of C over all of k, of which the last has `last` lanes. `rows`, `vectors` and whether `last` is
 * less than VL are known to the compiler, so that all sums stay in registers. */
ALWAYS_INLINE void few_rows_strip(const int rows, const int vectors, const int last, const gemm *g, const gemm_block *w, int64_t j)
{
  const float *a = gemm_a_at(g, w->row, w->k), *b = gemm_b_at(g, w->k, w->column) + j;
  float *c = w->c + j;
  vf sum[FEW_ROWS * MOST_STRIP];
  FLOW_UNROLL(24)
  for (int i = 0; i < rows * vectors; i++) sum[i] = (vf){ 0 };
  for (int64_t k = 0; k < w->depth; k++) {
    FLOW_UNROLL(16)
    for (int v = 0; v < vectors; v++) {
      const float *at = b + k * g->ldb + v * VL;
      __builtin_prefetch(at + AHEAD * g->ldb);
      vf y = v == vectors - 1 && last < VL ? vf_load_part(at, last) : vf_load(at);
      FLOW_UNROLL(4)
      for (int i = 0; i < rows; i++) sum[i * vectors + v] += vf_set(a[i * g->lda + k]) * y;
    }
  }
  FLOW_UNROLL(24)
  for (int i = 0; i < rows * vectors; i++) {
    float *to = c + i / vectors * w->ldc + i % vectors * VL;
    if (i % vectors == vectors - 1 && last < VL) vf_store_part(to, sum[i], last);
    else vf_store(to, sum[i]);
  }
}

/* A few rows of C, B {k, n} where it is: strips of columns, each walked down all rows of B. In a part that is one strip wide the lines of
 * B are read in the order in which they lie in memory. */
ALWAYS_INLINE void few_rows_by_rows(const int rows, const gemm *g, const gemm_block *w)
{
  int64_t j = 0, n = w->columns;
#define STRIPS(vectors) \
  for (; j + (vectors)*VL <= n; j += (vectors)*VL) few_rows_strip(rows, vectors, VL, g, w, j)
  if (rows == 1) STRIPS(MOST_STRIP);
  STRIPS(MOST_STRIP / 2);
  STRIPS(MOST_STRIP / 4);
  STRIPS(2);
  STRIPS(1);
#undef STRIPS
  if (j < n) few_rows_strip(rows, 1, (int)(n - j), g, w, j);
}

/* A few rows of C, B {n, k} where it is: every element is a scalar product of two rows, four columns at a time. A lane adds up STRETCH
 * products before it adds them to what it has, so that millions of them cost few digits. */
ALWAYS_INLINE void few_rows_by_columns(const int rows, const gemm *g, const gemm_block *w)
{
  enum { STRETCH = 256 };
  const float *a = gemm_a_at(g, w->row, w->k), *b = gemm_b_at(g, w->k, w->column);
  float *c = w->c;
  int64_t whole = w->depth / VL * VL;
  for (int64_t j = 0; j < w->columns; j += 4) {
    int64_t together = gemm_min(4, w->columns - j);
    /* Fewer than four columns are left at the end: the last one is computed several times, and stored once. */
    const float *column[4];
    FLOW_UNROLL(4)
    for (int v = 0; v < 4; v++) column[v] = b + (j + gemm_min(v, together - 1)) * g->ldb;
    vf sum[FEW_ROWS][4], all[FEW_ROWS][4];
    FLOW_UNROLL(12)
    for (int i = 0; i < rows * 4; i++) all[i / 4][i % 4] = (vf){ 0 };
    for (int64_t begin = 0; begin < whole; begin += STRETCH * VL) {
      int64_t end = gemm_min(whole, begin + STRETCH * VL);
      FLOW_UNROLL(12)
      for (int i = 0; i < rows * 4; i++) sum[i / 4][i % 4] = (vf){ 0 };
      for (int64_t k = begin; k < end; k += VL) {
        FLOW_UNROLL(4)
        for (int v = 0; v < 4; v++) {
          vf y = vf_load(column[v] + k);
          FLOW_UNROLL(4)
          for (int i = 0; i < rows; i++) sum[i][v] += vf_load(a + i * g->lda + k) * y;
        }
      }
      FLOW_UNROLL(12)
      for (int i = 0; i < rows * 4; i++) all[i / 4][i % 4] += sum[i / 4][i % 4];
    }
    for (int i = 0; i < rows; i++)
      for (int64_t v = 0; v < together; v++) {
        float total = vf_sum(all[i][v]);
        for (int64_t k = whole; k < w->depth; k++) total += a[i * g->lda + k] * column[v][k];
        c[i * w->ldc + j + v] = total;
      }
  }
}

/* Rows and the layout of B as constants, so that the compiler unrolls each case. */
static void block_few_rows(const gemm *g, const gemm_block *w, int rounded, void *scratch)
{
  if (rounded) {
    bfloat16_few_rows((int)w->rows, w->depth, w->columns, gemm_a_at(g, w->row, w->k), g->lda, gemm_b_at(g, w->k, w->column), g->ldb,
                      g->transpose_b, w->c, w->ldc, scratch);
    return;
  }
  switch (w->rows * 2 + g->transpose_b) {
  case 2: few_rows_by_rows(1, g, w); break;
  case 3: few_rows_by_columns(1, g, w); break;
  case 4: few_rows_by_rows(2, g, w); break;
  case 5: few_rows_by_columns(2, g, w); break;
  case 6: few_rows_by_rows(3, g, w); break;
  case 7: few_rows_by_columns(3, g, w); break;
  }
}

/* ---- parts ---------------------------------------------------------------------------------------------------------- */

/* c = act(c + bias) for one row of n. */
static void finish_row(float *c, int64_t n, const float *bias, int64_t bias_step, int relu)
{
  if (bias)
    for (int64_t j = 0; j < n; j++) c[j] += bias[j * bias_step];
  if (relu)
    for (int64_t j = 0; j < n; j++) c[j] = c[j] < 0 ? 0 : c[j];
}

/* Block number `part`: splits of k are neighbours, so that the threads that take successive parts read the same rows of A and columns of
 * B. Products with few rows have bias and relu added afterwards; where k is split, run_sum does it. */
static void run_block(const plan *p, int64_t part, float *partial, float *scratch)
{
  const gemm *g = &p->g;
  if (p->transposed) {
    block_transposed(g, part * p->columns, gemm_min(p->columns, g->n - part * p->columns), scratch);
    return;
  }
  /* Splits count fastest, then blocks of columns, then blocks of rows. */
  int64_t split = part % p->splits, column_block = part / p->splits % p->column_blocks;
  int64_t row_block = part / p->splits / p->column_blocks;
  gemm_block w = { .row = row_block * p->rows, .column = column_block * p->columns, .k = split * p->depth };
  w.rows = gemm_min(p->rows, g->m - w.row);
  w.columns = gemm_min(p->columns, g->n - w.column);
  w.depth = gemm_min(p->depth, g->k - w.k);
  w.ldc = p->splits > 1 ? g->n : g->ldc;
  w.c = (p->splits > 1 ? partial + split * g->m * g->n : g->c) + w.row * w.ldc + w.column;
  const float *bias = p->splits == 1 && g->bias ? g->bias + w.column * p->bias_step : NULL;
  int relu = p->splits == 1 && g->relu;
  /* Few rows alone, not as the rest of a longer C: then rows of one batch would be summed by two algorithms. */
  if (w.depth > 0 && (w.rows > FEW_ROWS || g->transpose_a || p->row_blocks > 1 || rows_are_alike(g))) {
    w.bias = bias;
    w.relu = relu;
    if (p->rounded) block_rounded(g, &w, scratch);
    else block_tiled(g, &w, scratch);
    return;
  }
  if (w.depth > 0) block_few_rows(g, &w, p->rounded, scratch);
  for (int64_t i = 0; i < w.rows; i++) {
    float *c = w.c + i * w.ldc;
    if (w.depth == 0) memset(c, 0, (size_t)w.columns * sizeof(float));
    finish_row(c, w.columns, bias, p->bias_step, relu);
  }
}

/* Adds the partial sums of SUM_ROWS rows in order. */
static void run_sum(const plan *p, int64_t part, const float *partial)
{
  const gemm *g = &p->g;
  int64_t last = gemm_min((part + 1) * SUM_ROWS, g->m);
  for (int64_t i = part * SUM_ROWS; i < last; i++) {
    float *c = g->c + i * g->ldc;
    memcpy(c, partial + i * g->n, (size_t)g->n * sizeof(float));
    for (int64_t split = 1; split < p->splits; split++) {
      const float *more = partial + (split * g->m + i) * g->n;
      for (int64_t j = 0; j < g->n; j++) c[j] += more[j];
    }
    finish_row(c, g->n, g->bias, p->bias_step, g->relu);
  }
}

/* The plan is made again for each part: it takes a few dozen instructions, and nothing has to be kept between calls. */
void gemm_run(const gemm *g, int phase, int64_t part, void *shared, void *scratch)
{
  plan p = make_plan(g);
  if (phase == 0) run_block(&p, part, shared, scratch);
  else run_sum(&p, part, shared);
}
