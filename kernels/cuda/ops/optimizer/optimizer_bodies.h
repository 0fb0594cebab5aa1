/* optimizer_bodies.h: bodies of optimizers.h, for one way of computing (numbers.h). */

/* The scalars of a step. share: 1 - beta; rest: 1 - rho */
typedef struct NAME(update_numbers) { NUMBER rate, decay, momentum, rho, rest, epsilon, beta_2, share_1, share_2; } NAME(update_numbers);

BODY NAME(update_numbers) NAME(read_numbers)(int rule, const optimizer_arguments *a)
{
  double rate = load_double(a->rate_dtype, a->rate, 0);
  NAME(update_numbers) u;
  u.rate = (NUMBER)corrected_rate(rule, a, rate);
  u.decay = (NUMBER)(a->weight_decay * rate);
  u.momentum = (NUMBER)a->momentum;
  u.rho = (NUMBER)a->rho;
  u.rest = (NUMBER)(1 - a->rho);
  u.epsilon = (NUMBER)a->epsilon;
  u.beta_2 = (NUMBER)a->beta_2;
  u.share_1 = (NUMBER)(1 - a->beta_1);
  u.share_2 = (NUMBER)(1 - a->beta_2);
  return u;
}

/* One element: its gradient, its parameter after decay, its slots; returns what the parameter becomes. */
BODY NUMBER NAME(update_one)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, NUMBER g, NUMBER w,
                             NUMBER s[UPDATE_SLOTS])
{
  if (rule == RULE_SGD) {
    NUMBER step = u->rate * g;
    if (a->slot_count == 0) return w - step;
    s[0] = u->momentum * s[0] - step;
    return w + (a->nesterov ? u->momentum * s[0] - step : s[0]);
  }
  if (rule == RULE_ADAM) {
    s[0] += (g - s[0]) * u->share_1;
    s[1] += (g * g - s[1]) * u->share_2;
    if (a->slot_count == 2) return w - u->rate * s[0] / (SQRT(s[1]) + u->epsilon);
    s[2] = s[2] > s[1] ? s[2] : s[1];
    return w - u->rate * s[0] / (SQRT(s[2]) + u->epsilon);
  }
  if (rule == RULE_RMSPROP) {
    NUMBER denominator = s[0] = u->rho * s[0] + u->rest * (g * g);
    int moves = a->slot_count - a->centered == 2;
    if (a->centered) {
      NUMBER mean = u->rho * (moves ? s[2] : s[1]) + u->rest * g;
      if (moves) s[2] = mean;
      else s[1] = mean;
      denominator -= mean * mean;
    }
    NUMBER step = u->rate * g / SQRT(denominator + u->epsilon);
    return w - (moves ? (s[1] = u->momentum * s[1] + step) : step);
  }
  if (rule == RULE_ADAGRAD) {
    s[0] += g * g;
    return w - u->rate * g / SQRT(s[0] + u->epsilon);
  }
  if (rule == RULE_ADADELTA) {
    s[0] = u->rho * s[0] + u->rest * (g * g);
    NUMBER step = SQRT(s[1] + u->epsilon) * g / SQRT(s[0] + u->epsilon);
    s[1] = u->rho * s[1] + u->rest * (step * step);
    return w - u->rate * step;
  }
  NUMBER decayed = u->beta_2 * s[1], size = ABS(g);
  s[0] += (g - s[0]) * u->share_1;
  s[1] = decayed > size ? decayed : size;
  return w - u->rate * s[0] / (s[1] + u->epsilon);
}

/* The `valid` parameters from i on. */
BODY void NAME(update_four)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, int64_t i, int valid, int together,
                            const NUMBER g[4])
{
  NUMBER w[4], s[UPDATE_SLOTS][4];
  LOAD_FOUR(a->w, a->w_dtype, i, valid, together, w);
  UNROLL for (int k = 0; k < UPDATE_SLOTS; k++) {
    s[k][0] = s[k][1] = s[k][2] = s[k][3] = 0;
    if (k < a->slot_count) LOAD_FOUR(a->slots[k], a->slot_dtypes[k], i, valid, together, s[k]);
  }
  UNROLL for (int j = 0; j < 4; j++) {
    NUMBER of[UPDATE_SLOTS] = { s[0][j], s[1][j], s[2][j] };
    w[j] = NAME(update_one)(rule, a, u, g[j], w[j] - w[j] * u->decay, of);
    UNROLL for (int k = 0; k < UPDATE_SLOTS; k++) s[k][j] = of[k];
  }
  STORE_FOUR(a->w, a->w_dtype, i, valid, together, w);
  UNROLL for (int k = 0; k < UPDATE_SLOTS; k++) {
    if (k < a->slot_count) STORE_FOUR(a->slots[k], a->slot_dtypes[k], i, valid, together, s[k]);
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
    if (thread == 0) *u = NAME(read_numbers)(rule, a);
    return;
  }
  int at = 0;
  while (at + 1 < a->segment_count && a->segments[at + 1].first_block <= block) at++;
  const update_segment *s = &a->segments[at];
  int64_t own = block - s->first_block;
  if (s->k < 0) NAME(update_memory)(rule, a, u, s, own, thread);
  else NAME(update_product)(rule, a, u, s, own * BLOCK_THREADS + thread);
}

#define UPDATE(name, rule)                                                                                              \
  BODY void NAME(name##_update)(int phase, int thread, int64_t block, void *shared, const optimizer_arguments *a)       \
  {                                                                                                                     \
    NAME(update_block)(rule, phase, thread, block, shared, a);                                                          \
  }
UPDATE(sgd, RULE_SGD)
UPDATE(adam, RULE_ADAM)
UPDATE(rmsprop, RULE_RMSPROP)
UPDATE(adagrad, RULE_ADAGRAD)
UPDATE(adadelta, RULE_ADADELTA)
UPDATE(adamax, RULE_ADAMAX)
#undef UPDATE
