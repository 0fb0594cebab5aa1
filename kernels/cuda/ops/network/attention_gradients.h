/* attention_gradients.h: bodies of attention.h: a gradient of q, k or v. */

/* Weights of a thread's scores, or the gradients of these, in place of scores. products: g v^T. rows: of its own scores, or of the tile. */
BODY void weigh(int dtype, int size, const attention_arguments *a, uint32_t seen, float left_out, int64_t tile, int lane,
                const attention_row own[2], const attention_row *rows, const float (*products)[4], float (*scores)[4])
{
  const int inside = inside_of(a, tile, lane);
  UNROLL for (int i = 0; i < rows_of_tile(dtype, size) / 2; i++)
  {
    float *score = &scores[i / 4][i % 4];
    const int is_seen = seen >> i & 1;
    const attention_row of = a->by_key ? rows[tile_row_of(lane, i)] : own[i / 2 % 2];
    const float weight = exp2f(((is_seen ? *score : left_out) - of.largest) * LOG2_E) * of.scale;
    *score = tile_row_of(0, i) >= inside ? 0 : a->of_weights ? weight : is_seen ? weight * (products[i / 4][i % 4] - of.delta) : 0;
  }
}

/* Flags scores that the mask leaves out, but that weigh something: they count for the gradient of the values. */
BODY uint32_t weighing_scores(int dtype, int size, const attention_arguments *a, float left_out, const attention_row *rows, int64_t tile,
                              int lane)
{
  uint32_t weighing = 0;
  for (int i = 0; i < rows_of_tile(dtype, size) / 2; i++) {
    const int64_t t = tile + tile_row_of(lane, i);
    if (t < a->tile[0].rows && !(left_out - rows[t].largest < NO_WEIGHT)) weighing = 1;
  }
  return weighing;
}

/* What threads hold: words of both own matrices, and products of both with those of the tile. */
typedef struct gradient_state {
  uint32_t own[2][HELD * OWN_STEPS][4], seen[HELD], flags[HELD];
  float results[HELD * RESULT_COLUMNS][4], products[2][HELD * SCORE_COLUMNS][4];
  attention_row rows[HELD][2];
} gradient_state;

BODY void begin_gradient(int dtype, int size, int self, const attention_arguments *a, const attention_place *p, const attention_row *rows,
                         gradient_state *s)
{
  EACH_THREAD(thread, self)
  {
    const int64_t first = first_of_warp(p, thread);
    UNROLL for (int i = 0; i < 2; i++) if (i == 0 ? keeps_own(dtype, size) : keeps_both(dtype, size) && !a->of_weights)
        load_own(dtype, size, &a->own[i], p->own[i], first, thread % WARP_THREADS, s->own[i] + HERE(thread) * OWN_STEPS);
    UNROLL for (int half = 0; half < 2; half++)
    {
      const int64_t row = first + thread % WARP_THREADS / 4 + 8 * half;
      attention_row of;
      of.largest = of.scale = of.delta = 0;
      if (!a->by_key && row < a->own[0].rows) of = rows[row];
      s->rows[HERE(thread)][half] = of;
    }
    UNROLL for (int n = 0; n < size / COLUMNS_OF_SUMS; n++)
    {
      UNROLL for (int i = 0; i < 4; i++) s->results[HERE(thread) * RESULT_COLUMNS + n][i] = 0;
    }
    s->seen[HERE(thread)] = 0xffffffffu;
  }
}

/* rows: of the block's matrix. */
BODY void differentiate_tile(int dtype, int size, int self, uint32_t *shared, const attention_arguments *a, const attention_place *p,
                             const attention_row *rows, int64_t tile, gradient_state *s)
{
  const int count = rows_of_tile(dtype, size);
  uint32_t *other = shared + count * pitch_of(dtype, size);
  attention_row *in_tile = (attention_row *)(other + count * pitch_of(dtype, size));
  BLOCK_BARRIER();
  EACH_THREAD(thread, self)
  {
    load_tile(dtype, size, &a->tile[0], p->tile[0], tile, thread, shared);
    load_tile(dtype, size, &a->tile[1], p->tile[1], tile, thread, other);
    if (a->by_key && thread < count && tile + thread < a->tile[0].rows) in_tile[thread] = rows[tile + thread];
  }
  BLOCK_BARRIER();
  multiply_own(dtype, size, a, &a->own[0], p->own[0], p->row, self, keeps_own(dtype, size), s->own[0], shared, s->products[0]);
  if (!a->of_weights)
    multiply_own(dtype, size, a, &a->own[1], p->own[1], p->row, self, keeps_both(dtype, size), s->own[1], other, s->products[1]);
  EACH_THREAD(thread, self)
  {
    weigh(dtype, size, a, s->seen[HERE(thread)], p->left_out, tile, thread % WARP_THREADS, s->rows[HERE(thread)], in_tile,
          s->products[1] + HERE(thread) * SCORE_COLUMNS, s->products[0] + HERE(thread) * SCORE_COLUMNS);
  }
  multiply_scores(dtype, size, a, a->out.columns, self, s->products[0], a->of_weights ? other : shared, s->results);
}

COMPILED_ONCE void differentiate(int dtype, int size, int self, int64_t block, uint32_t *shared, const attention_arguments *a)
{
  const attention_place p = place_of(a, block, !a->of_weights);
  const attention_row *rows = a->rows + p.matrix * (a->by_key ? a->tile[0].rows : a->own[0].rows);
  gradient_state s;
  begin_gradient(dtype, size, self, a, &p, rows, &s);
  for (int64_t tile = 0; tile < a->tile[0].rows; tile += rows_of_tile(dtype, size)) {
    EACH_THREAD(thread, self)
    {
      if (p.mask) s.seen[HERE(thread)] = seen_scores(dtype, size, a, p.mask, first_of_warp(&p, thread), tile, thread % WARP_THREADS);
      s.flags[HERE(thread)] = s.seen[HERE(thread)];
      if (p.mask && a->of_weights) s.flags[HERE(thread)] |= weighing_scores(dtype, size, a, p.left_out, rows, tile, thread % WARP_THREADS);
    }
    if (!p.mask || any_thread(s.flags)) differentiate_tile(dtype, size, self, shared, a, &p, rows, tile, &s);
  }
  EACH_THREAD(thread, self)
  {
    store_results(dtype, size, &a->out, attention_first(a, &a->out, p.matrix), first_of_warp(&p, thread), thread % WARP_THREADS,
                  s.results + HERE(thread) * RESULT_COLUMNS, 1, 1);
  }
}

/* Rows for the gradients, of what the forward kernel has kept: BLOCK_ROWS of them. */
COMPILED_ONCE void rows_from_kept(int dtype, int self, int64_t block, const attention_arguments *a)
{
  const attention_matrices *g = &a->own[1], *y = &a->out;
  int64_t row_block;
  const int64_t matrix = split(block, a->row_blocks, &row_block), of_g = attention_first(a, g, matrix),
                of_y = attention_first(a, y, matrix);
  float sums[HELD][2];
  EACH_THREAD(thread, self)
  {
    const int lane = thread % WARP_THREADS, all = y->columns - lane % 4 * 2;
    UNROLL for (int half = 0; half < 2; half++)
    {
      const int64_t row = row_block * BLOCK_ROWS + thread / WARP_THREADS * WARP_ROWS + lane / 4 + 8 * half;
      const char *from_g = place_in_row(dtype, g, of_g, row, lane), *from_y = place_in_row(dtype, y, of_y, row, lane);
      const int columns = row < y->rows ? all : 0;
      float sum = 0;
      UNROLL_SOME for (int column = 0; column < columns; column += 8)
      {
        sum += load_float(dtype, from_g, column) * load_float(dtype, from_y, column);
        if (column + 1 < columns) sum += load_float(dtype, from_g, column + 1) * load_float(dtype, from_y, column + 1);
      }
      sums[HERE(thread)][half] = sum;
    }
  }
  combine_rows(ROW_SUM, sums);
  EACH_THREAD(thread, self)
  {
    UNROLL for (int half = 0; half < 2; half++)
    {
      const int64_t row = row_block * BLOCK_ROWS + thread / WARP_THREADS * WARP_ROWS + thread % WARP_THREADS / 4 + 8 * half;
      if (thread % 4 != 0 || row >= y->rows) continue;
      const float *kept = a->kept + 2 * (matrix * y->rows + row);
      attention_row of;
      of.largest = kept[0];
      of.scale = kept[1];
      of.delta = sums[HERE(thread)][half];
      a->rows[matrix * y->rows + row] = of;
    }
  }
}
