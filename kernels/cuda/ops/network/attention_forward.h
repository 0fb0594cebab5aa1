/* attention_forward.h: bodies of attention.h: the result, and what gradients need of each row. */

/* What exponentials are taken relative to: of a row that has seen nothing but -infinity, not that. */
BODY float reference_of(float largest)
{
  return largest == -INFINITY ? 0 : largest;
}

/* A tile's scores of a thread become what the softmax is taken of: what is masked out, left_out; beyond the last key, -infinity. */
BODY void mask_scores(int dtype, int size, const attention_arguments *a, uint32_t seen, float left_out, int64_t tile, int lane,
                      float (*scores)[4])
{
  const int inside = inside_of(a, tile, lane);
  UNROLL for (int i = 0; i < rows_of_tile(dtype, size) / 2; i++)
  {
    float *score = &scores[i / 4][i % 4];
    if (!(seen >> i & 1)) *score = left_out;
    if (tile_row_of(0, i) >= inside) *score = -INFINITY;
  }
}

BODY void largest_scores(int dtype, int size, const float (*scores)[4], float largest[2])
{
  UNROLL for (int i = 0; i < rows_of_tile(dtype, size) / 2; i++)
      largest[i / 2 % 2] = of_two(ROW_LARGEST, largest[i / 2 % 2], scores[i / 4][i % 4]);
}

/* Scores become exponentials, relative to `next`, the largest so far; sums and results, until now relative to `largest`, too. */
BODY void exponentiate(int dtype, int size, float largest[2], const float next[2], float total[2], float (*scores)[4], float (*results)[4])
{
  float factor[2], reference[2];
  UNROLL for (int half = 0; half < 2; half++)
  {
    reference[half] = reference_of(next[half]);
    factor[half] = exp2f((largest[half] - reference[half]) * LOG2_E);
    total[half] *= factor[half];
    largest[half] = next[half];
  }
  UNROLL for (int n = 0; n < size / COLUMNS_OF_SUMS; n++)
  {
    UNROLL for (int i = 0; i < 4; i++) results[n][i] *= factor[i / 2];
  }
  UNROLL for (int i = 0; i < rows_of_tile(dtype, size) / 2; i++)
  {
    float *score = &scores[i / 4][i % 4];
    *score = exp2f((*score - reference[i / 2 % 2]) * LOG2_E);
    total[i / 2 % 2] += *score;
  }
}

/* What threads hold: words of own rows, scores that the mask lets through, sums; next: the largest scores with those of this tile. */
typedef struct attention_state {
  uint32_t own[HELD * OWN_STEPS][4], seen[HELD];
  float results[HELD * RESULT_COLUMNS][4], scores[HELD * SCORE_COLUMNS][4], largest[HELD][2], next[HELD][2], total[HELD][2];
} attention_state;

/* One tile: keys from `tile` on. */
BODY void attend_tile(int dtype, int size, int self, uint32_t *shared, const attention_arguments *a, const attention_place *p, int64_t tile,
                      attention_state *s)
{
  uint32_t *values = shared + rows_of_tile(dtype, size) * pitch_of(dtype, size);
  BLOCK_BARRIER();
  EACH_THREAD(thread, self)
  {
    load_tile(dtype, size, &a->tile[0], p->tile[0], tile, thread, shared);
    load_tile(dtype, size, &a->tile[1], p->tile[1], tile, thread, values);
  }
  BLOCK_BARRIER();
  multiply_own(dtype, size, a, &a->own[0], p->own[0], p->row, self, keeps_own(dtype, size), s->own, shared, s->scores);
  EACH_THREAD(thread, self)
  {
    float(*mine)[4] = s->scores + HERE(thread) * SCORE_COLUMNS;
    mask_scores(dtype, size, a, s->seen[HERE(thread)], p->left_out, tile, thread % WARP_THREADS, mine);
    UNROLL for (int half = 0; half < 2; half++) s->next[HERE(thread)][half] = s->largest[HERE(thread)][half];
    largest_scores(dtype, size, mine, s->next[HERE(thread)]);
  }
  combine_rows(ROW_LARGEST, s->next);
  EACH_THREAD(thread, self)
  {
    exponentiate(dtype, size, s->largest[HERE(thread)], s->next[HERE(thread)], s->total[HERE(thread)],
                 s->scores + HERE(thread) * SCORE_COLUMNS, s->results + HERE(thread) * RESULT_COLUMNS);
  }
  multiply_scores(dtype, size, a, a->tile[1].columns, self, s->scores, values, s->results);
}

/* All tiles, or those of which the mask lets something through: whether some were left out. */
BODY int attend_tiles(int dtype, int size, int self, uint32_t *shared, const attention_arguments *a, const attention_place *p, int all,
                      attention_state *s)
{
  int left = 0;
  EACH_THREAD(thread, self)
  {
    UNROLL for (int half = 0; half < 2; half++)
    {
      s->largest[HERE(thread)][half] = -INFINITY;
      s->total[HERE(thread)][half] = 0;
    }
    UNROLL for (int n = 0; n < size / COLUMNS_OF_SUMS; n++)
    {
      UNROLL for (int i = 0; i < 4; i++) s->results[HERE(thread) * RESULT_COLUMNS + n][i] = 0;
    }
    s->seen[HERE(thread)] = 0xffffffffu;
  }
  for (int64_t tile = 0; tile < a->tile[0].rows; tile += rows_of_tile(dtype, size)) {
    EACH_THREAD(thread, self)
    {
      if (p->mask) s->seen[HERE(thread)] = seen_scores(dtype, size, a, p->mask, first_of_warp(p, thread), tile, thread % WARP_THREADS);
    }
    if (!all && !any_thread(s->seen)) left = 1;
    else attend_tile(dtype, size, self, shared, a, p, tile, s);
  }
  return left;
}

/* Whether tiles that were left out weigh something for a row. */
BODY int weighs(int self, const attention_arguments *a, const attention_place *p, attention_state *s)
{
  EACH_THREAD(thread, self)
  {
    s->seen[HERE(thread)] = 0;
    UNROLL for (int half = 0; half < 2; half++)
    {
      const int64_t row = first_of_warp(p, thread) + thread % WARP_THREADS / 4 + 8 * half;
      if (row < a->own[0].rows && !(p->left_out - s->largest[HERE(thread)][half] < NO_WEIGHT)) s->seen[HERE(thread)] = 1;
    }
  }
  return any_thread(s->seen);
}

/* What gradients need of the rows: of each the first of the four threads that have it writes it. */
BODY void store_rows(int dtype, int size, int self, const attention_arguments *a, const attention_place *p, attention_state *s)
{
  EACH_THREAD(thread, self)
  {
    sum_products(dtype, size, &a->own[1], attention_first(a, &a->own[1], p->matrix), first_of_warp(p, thread), thread % WARP_THREADS,
                 s->results + HERE(thread) * RESULT_COLUMNS, s->next[HERE(thread)]);
  }
  combine_rows(ROW_SUM, s->next);
  EACH_THREAD(thread, self)
  {
    UNROLL for (int half = 0; half < 2; half++)
    {
      const int64_t row = first_of_warp(p, thread) + thread % WARP_THREADS / 4 + 8 * half;
      attention_row of;
      if (thread % 4 != 0 || row >= a->own[0].rows) continue;
      of.largest = reference_of(s->largest[HERE(thread)][half]);
      of.scale = 1 / s->total[HERE(thread)][half];
      of.delta = s->next[HERE(thread)][half] * of.scale;
      a->rows[p->matrix * a->own[0].rows + row] = of;
    }
  }
}

/* What gradients will need of the rows, beside the result. */
BODY void keep_rows(int self, const attention_arguments *a, const attention_place *p, attention_state *s)
{
  EACH_THREAD(thread, self)
  {
    UNROLL for (int half = 0; half < 2; half++)
    {
      const int64_t row = first_of_warp(p, thread) + thread % WARP_THREADS / 4 + 8 * half;
      if (thread % 4 != 0 || row >= a->own[0].rows) continue;
      float *kept = a->kept + 2 * (p->matrix * a->own[0].rows + row);
      kept[0] = reference_of(s->largest[HERE(thread)][half]);
      kept[1] = 1 / s->total[HERE(thread)][half];
    }
  }
}

COMPILED_ONCE void attend(int dtype, int size, int self, int64_t block, uint32_t *shared, const attention_arguments *a)
{
  const attention_place p = place_of(a, block, 0);
  attention_state s;
  EACH_THREAD(thread, self)
  {
    if (keeps_own(dtype, size))
      load_own(dtype, size, &a->own[0], p.own[0], first_of_warp(&p, thread), thread % WARP_THREADS, s.own + HERE(thread) * OWN_STEPS);
  }
  int all = !p.mask;
  while (attend_tiles(dtype, size, self, shared, a, &p, all, &s) && weighs(self, a, &p, &s)) all = 1;
  combine_rows(ROW_SUM, s.total);
  if (a->rows) {
    store_rows(dtype, size, self, a, &p, &s);
    return;
  }
  if (a->kept) keep_rows(self, a, &p, &s);
  if (!a->out.data) return;
  EACH_THREAD(thread, self)
  {
    store_results(dtype, size, &a->out, attention_first(a, &a->out, p.matrix), first_of_warp(&p, thread), thread % WARP_THREADS,
                  s.results + HERE(thread) * RESULT_COLUMNS, 1 / s.total[HERE(thread)][0], 1 / s.total[HERE(thread)][1]);
  }
}
