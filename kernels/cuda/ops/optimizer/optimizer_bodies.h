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

/* Copies of 16 bits. Where all is of float32 there are none. */
BODY void NAME(write_copies)(const optimizer_arguments *a, const update_segment *s, int64_t i, int valid, const NUMBER w[4])
{
#if IN_FLOAT != 1
  float rounded[4];
  UNROLL for (int k = 0; k < 4; k++) rounded[k] = (float)w[k];
  copy_four(a, s, i, valid, rounded);
#else
  (void)a, (void)s, (void)i, (void)valid, (void)w;
#endif
}

/* The `valid` parameters from i on. */
BODY void NAME(update_four)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, const update_segment *segment,
                            int64_t i, int valid, int together, const NUMBER g[4])
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
  NAME(write_copies)(a, segment, i, valid, w);
  UNROLL for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) {
    if (k < a->form.slots) STORE_FOUR(a->slots[k], a->slot_dtypes[k], i, valid, together, s[k]);
  }
}

#if IN_FLOAT
/* Slots that are read without a condition: those of all of a rule's forms but one. */
BODY int NAME(usual_slots)(const int rule) { return rule == RULE_adam || rule == RULE_adadelta || rule == RULE_adamax ? 2 : 1; }

/* The four parameters from i on and their slots, all asked for before any is used; w in place of a slot that is usual and not there. */
BODY void NAME(read_floats)(const int rule, const optimizer_arguments *a, int64_t i, float w[4], float s[FLOW_UPDATE_SLOTS][4])
{
  load_four_floats((const float *)a->w, i, 4, 1, w);
  UNROLL for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) {
    s[k][0] = s[k][1] = s[k][2] = s[k][3] = 0;
    if (k < NAME(usual_slots)(rule)) load_four_floats((const float *)(k < a->form.slots ? a->slots[k] : a->w), i, 4, 1, s[k]);
    else if (k < a->form.slots) load_four_floats((const float *)a->slots[k], i, 4, 1, s[k]);
  }
}

BODY void NAME(write_floats)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, const update_segment *segment,
                             int64_t i, const float g[4], float w[4], float s[FLOW_UPDATE_SLOTS][4])
{
  UNROLL for (int j = 0; j < 4; j++) {
    float of[FLOW_UPDATE_SLOTS] = { s[0][j], s[1][j], s[2][j] };
    w[j] = NAME(update_one)(rule, a, u, g[j], w[j] - w[j] * u->decay, of);
    UNROLL for (int k = 0; k < FLOW_UPDATE_SLOTS; k++) s[k][j] = of[k];
  }
  store_four_floats((float *)a->w, i, 4, 1, w);
  NAME(write_copies)(a, segment, i, 4, w);
  UNROLL for (int k = 0; k < FLOW_UPDATE_SLOTS; k++)
    if (k < a->form.slots) store_four_floats((float *)a->slots[k], i, 4, 1, s[k]);
}
#endif

BODY void NAME(update_memory)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, const update_segment *s,
                              int64_t block, int thread)
{
  for (int j = 0; j < UPDATE_FOURS; j++) {
    int64_t at = 4 * ((block * UPDATE_FOURS + j) * BLOCK_THREADS + thread);
    if (at >= s->count) return;
    int valid = (int)smaller(4, s->count - at);
    NUMBER g[4];
#if IN_FLOAT
    if (s->w_floats && s->g_together && valid == 4) {
      float w[4], slots[FLOW_UPDATE_SLOTS][4];
      NAME(read_floats)(rule, a, s->first + at, w, slots);
      LOAD_FOUR(s->g, s->g_dtype, at, 4, 1, g);
      NAME(write_floats)(rule, a, u, s, s->first + at, g, w, slots);
      continue;
    }
#endif
    LOAD_FOUR(s->g, s->g_dtype, at, valid, s->g_together && valid == 4, g);
    NAME(update_four)(rule, a, u, s, s->first + at, valid, s->w_together && valid == 4, g);
  }
}

#if IN_FLOAT
/* Four elements of a factor, as they are in memory: of float32, or of 16 bits in the first half. dtype is known when this is compiled. */
typedef struct NAME(factor_bits) { uint32_t at[4]; } NAME(factor_bits);

BODY NAME(factor_bits) NAME(ask_for)(const int dtype, const void *p)
{
  NAME(factor_bits) bits;
  if (dtype == FLOW_FLOAT32) {
    four_floats four = *(const four_floats *)p;
    UNROLL for (int k = 0; k < 4; k++) bits.at[k] = float_to_bits(four.v[k]);
  } else {
    two_words two = *(const two_words *)p;
    bits.at[0] = two.at[0];
    bits.at[1] = two.at[1];
    bits.at[2] = bits.at[3] = 0;
  }
  return bits;
}

BODY float NAME(factor_at)(const int dtype, const NAME(factor_bits) *bits, const int k)
{
  if (dtype == FLOW_FLOAT32) return bits_to_float(bits->at[k]);
  uint32_t pair = bits->at[k / 2];
  if (dtype == FLOW_BFLOAT16) return bits_to_float(k % 2 ? pair & 0xffff0000u : pair << 16);
  return half_to_float((uint16_t)(k % 2 ? pair >> 16 : pair));
}

BODY void NAME(add_row)(const int dtype, const NAME(factor_bits) *x, const NAME(factor_bits) *g, float sum[4][4])
{
  UNROLL for (int r = 0; r < 4; r++) {
    UNROLL for (int c = 0; c < 4; c++) sum[r][c] += NAME(factor_at)(dtype, x, r) * NAME(factor_at)(dtype, g, c);
  }
}

/* The same sums as update_product's own, of up to PRODUCT_RUN rows of factors of this dtype that are read four elements at a time: what is
 * asked for is not looked at before PRODUCT_AHEAD rows are under way, and nothing is decided row by row. */
BODY void NAME(add_rows)(const int dtype, const update_segment *s, int64_t row, int64_t column, float sum[4][4])
{
  const int64_t size = dtype == FLOW_FLOAT32 ? 4 : 2, next_x = s->m * size, next_g = s->n * size;
  const char *x = (const char *)s->x + row * size, *g = (const char *)s->g + column * size;
  int left = (int)s->k;
  NAME(factor_bits) of_x[PRODUCT_AHEAD], of_g[PRODUCT_AHEAD];
  for (; left >= PRODUCT_AHEAD; left -= PRODUCT_AHEAD) {
    UNROLL for (int j = 0; j < PRODUCT_AHEAD; j++, x += next_x, g += next_g) {
      of_x[j] = NAME(ask_for)(dtype, x);
      of_g[j] = NAME(ask_for)(dtype, g);
    }
    UNROLL for (int j = 0; j < PRODUCT_AHEAD; j++) NAME(add_row)(dtype, &of_x[j], &of_g[j], sum);
  }
  for (; left > 0; left--, x += next_x, g += next_g) {
    of_x[0] = NAME(ask_for)(dtype, x);
    of_g[0] = NAME(ask_for)(dtype, g);
    NAME(add_row)(dtype, &of_x[0], &of_g[0], sum);
  }
}

/* Whether add_rows has made the tile. */
BODY int NAME(multiply_fast)(const update_segment *s, int64_t row, int64_t column, float total[4][4])
{
  if (!s->x_together || !s->g_together || s->x_dtype != s->g_dtype || s->k > PRODUCT_RUN) return 0;
  if (s->x_dtype == FLOW_FLOAT32) NAME(add_rows)(FLOW_FLOAT32, s, row, column, total);
  else if (IN_FLOAT == 2 && s->x_dtype == FLOW_BFLOAT16) NAME(add_rows)(FLOW_BFLOAT16, s, row, column, total);
  else if (IN_FLOAT == 2 && s->x_dtype == FLOW_FLOAT16) NAME(add_rows)(FLOW_FLOAT16, s, row, column, total);
  else return 0;
  return 1;
}
#endif

/* A thread takes a tile of four rows and four columns of x^T g. */
BODY void NAME(update_product)(const int rule, const optimizer_arguments *a, const NAME(update_numbers) *u, const update_segment *s,
                               int64_t tile)
{
  int64_t column_tile, row = 4 * split(tile, (s->n + 3) / 4, &column_tile), column = 4 * column_tile;
  if (row >= s->m) return;
  int rows = (int)smaller(4, s->m - row), columns = (int)smaller(4, s->n - column);
  NUMBER total[4][4], sum[4][4], x[4], g[4];
  int64_t k = 0;
  UNROLL for (int r = 0; r < 4; r++) {
    UNROLL for (int c = 0; c < 4; c++) total[r][c] = 0;
  }
#if IN_FLOAT
  if (NAME(multiply_fast)(s, row, column, total)) k = s->k;
#endif
  while (k < s->k) {
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
#if IN_FLOAT
  if (s->w_floats && rows == 4) {
    UNROLL for (int r = 0; r < 4; r++) {
      float w[4], slots[FLOW_UPDATE_SLOTS][4];
      NAME(read_floats)(rule, a, s->first + (row + r) * s->n + column, w, slots);
      NAME(write_floats)(rule, a, u, s, s->first + (row + r) * s->n + column, total[r], w, slots);
    }
    return;
  }
#endif
  UNROLL for (int r = 0; r < 4; r++) {
    if (r < rows) NAME(update_four)(rule, a, u, s, s->first + (row + r) * s->n + column, columns, s->w_together, total[r]);
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
  for (int at = 0; block < a->blocks; block += a->started) {
    while (at + 1 < a->segment_count && a->segments[at + 1].first_block <= block) at++;
    const update_segment *s = &a->segments[at];
    int64_t own = block - s->first_block;
    if (s->k < 0) NAME(update_memory)(rule, a, u, s, own, thread);
    else NAME(update_product)(rule, a, u, s, own * BLOCK_THREADS + thread);
  }
}

#define UPDATE(E, name)                                                                                                 \
  BODY void NAME(name##_update)(int phase, int thread, int64_t block, void *shared, const optimizer_arguments *a)       \
  {                                                                                                                     \
    NAME(update_block)(RULE_##name, phase, thread, block, shared, a);                                                   \
  }
FLOW_UPDATES(UPDATE, )
#undef UPDATE
