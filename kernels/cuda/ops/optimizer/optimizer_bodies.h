/* optimizer_bodies.h: bodies of optimizers.h, for one way of computing (numbers.h). */

#define NUMBER_OF(x) ((NUMBER)(x))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define FORMULA      BODY
#include "optimizer_formulas.inc"
#undef NUMBER_OF
#undef LARGER
#undef FORMULA

BODY NAME(update_numbers) NAME(read_numbers)(const optimizer_arguments *a)
{
  flow_update_scalars x;
  double rate = load_double(a->rate_dtype, a->rate, 0);
  x.rate = rate;
  if (a->corrected_moments > 0)
    x.rate = corrected_rate(a->corrected_moments, rate, a->beta_1, a->beta_2, load_double(a->iterations_dtype, a->iterations, 0) + 1);
  x.decay = a->weight_decay * rate;
  x.momentum = a->momentum;
  x.beta_1 = a->beta_1;
  x.beta_2 = a->beta_2;
  x.rho = a->rho;
  x.epsilon = a->epsilon;
  return NAME(numbers_of)(&x);
}

/* One element: its gradient, its parameter after decay, its slots; returns what the parameter becomes. */
BODY NUMBER NAME(update_one)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, NUMBER g, NUMBER w,
                             NUMBER s[FLOW_UPDATE_SLOTS])
{
#define CASE(E, name) if (rule == RULE_##name) return NAME(name)(&a->form, u, g, w, s);
  FLOW_UPDATES(CASE, )
#undef CASE
  return w;
}

/* The `valid` parameters from i on. */
BODY void NAME(update_four)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, int64_t i, int valid, int together,
                            const NUMBER g[4])
{
  NUMBER w[4], s[FLOW_UPDATE_SLOTS][4];
  LOAD_FOUR(a->w, a->w_dtype, i, valid, together, w);
  UNROLL for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) {
    s[k][0] = s[k][1] = s[k][2] = s[k][3] = 0;
    if (k < a->form.slots) LOAD_FOUR(a->slots[k], a->slot_dtypes[k], i, valid, together, s[k]);
  }
  UNROLL for (int j = 0; j < 4; j++) {
    NUMBER of[FLOW_UPDATE_SLOTS] = { s[0][j], s[1][j], s[2][j] };
    w[j] = NAME(update_one)(rule, a, u, g[j], w[j] - w[j] * u->decay, of);
    UNROLL for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) s[k][j] = of[k];
  }
  STORE_FOUR(a->w, a->w_dtype, i, valid, together, w);
  UNROLL for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) {
    if (k < a->form.slots) STORE_FOUR(a->slots[k], a->slot_dtypes[k], i, valid, together, s[k]);
  }
}

BODY void NAME(update_memory)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, const update_segment *s,
                              int64_t block, int thread)
{
  for (int j = 0; j < UPDATE_FOURS; j++) {
    int64_t at = 4 * ((block * UPDATE_FOURS + j) * BLOCK_THREADS + thread);
    if (at >= s->count) return;
    int valid = (int)smaller(4, s->count - at);
    NUMBER g[4];
    LOAD_FOUR(s->g, s->g_dtype, at, valid, s->g_together && valid == 4, g);
    NAME(update_four)(rule, a, u, s->first + at, valid, s->w_together && valid == 4, g);
  }
}

/* A thread takes a tile of four rows and four columns of x^T g. */
BODY void NAME(update_product)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, const update_segment *s,
                               int64_t tile)
{
  int64_t column_tile, row = 4 * split(tile, (s->n + 3) / 4, &column_tile), column = 4 * column_tile;
  if (row >= s->m) return;
  int rows = (int)smaller(4, s->m - row), columns = (int)smaller(4, s->n - column);
  NUMBER total[4][4], sum[4][4], x[4], g[4];
  UNROLL for (int r = 0; r < 4; r++) {
    UNROLL for (int c = 0; c < 4; c++) total[r][c] = 0;
  }
  for (int64_t k = 0; k < s->k;) {
    int64_t end = smaller(s->k, k + PRODUCT_RUN);
    UNROLL for (int r = 0; r < 4; r++) {
      UNROLL for (int c = 0; c < 4; c++) sum[r][c] = 0;
    }
    for (; k < end; k++) {
      LOAD_FOUR(s->x, s->x_dtype, k * s->m + row, rows, s->x_together, x);
      LOAD_FOUR(s->g, s->g_dtype, k * s->n + column, columns, s->g_together, g);
      UNROLL for (int r = 0; r < 4; r++) {
        UNROLL for (int c = 0; c < 4; c++) sum[r][c] += x[r] * g[c];
      }
    }
    UNROLL for (int r = 0; r < 4; r++) {
      UNROLL for (int c = 0; c < 4; c++) total[r][c] += sum[r][c];
    }
  }
  UNROLL for (int r = 0; r < 4; r++) {
    if (r < rows) NAME(update_four)(rule, a, u, s->first + (row + r) * s->n + column, columns, s->w_together, total[r]);
  }
}

BODY void NAME(update_block)(const int rule, int phase, int thread, int64_t block, void *shared, const optimizer_arguments *a)
{
  NAME(update_numbers) *u = (NAME(update_numbers) *)shared;
  if (!is_let_through(a)) return;
  if (phase == 0) {
    if (thread == 0) *u = NAME(read_numbers)(a);
    return;
  }
  int at = 0;
  while (at + 1 < a->segment_count && a->segments[at + 1].first_block <= block) at++;
  const update_segment *s = &a->segments[at];
  int64_t own = block - s->first_block;
  if (s->k < 0) NAME(update_memory)(rule, a, u, s, own, thread);
  else NAME(update_product)(rule, a, u, s, own * BLOCK_THREADS + thread);
}

#define UPDATE(E, name)                                                                                                 \
  BODY void NAME(name##_update)(int phase, int thread, int64_t block, void *shared, const optimizer_arguments *a)       \
  {                                                                                                                     \
    NAME(update_block)(RULE_##name, phase, thread, block, shared, a);                                                   \
  }
FLOW_UPDATES(UPDATE, )
#undef UPDATE
