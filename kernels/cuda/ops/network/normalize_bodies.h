/* normalize_bodies.h: bodies of normalize.h, for one way of computing (numbers.h). */

/* The elements of the thread number `rank` of its team, of a line that begins at `at`. */
BODY line_moments NAME(moments_of)(const normalize_arguments *a, int64_t at, int rank)
{
  line_moments m;
  double sum = 0, squares = 0;
  int64_t count = 0;
  NUMBER x[4], g[4];
  for (int64_t k = 4 * (int64_t)rank; k < a->n; k += 4 * (int64_t)a->team) {
    int valid = (int)smaller(4, a->n - k);
    NUMBER part = 0, product = 0;
    LOAD_FOUR(a->x, a->x_dtype, at + k, valid, a->together, x);
    if (a->g) LOAD_FOUR(a->g, a->g_dtype, at + k, valid, a->together, g);
    UNROLL for (int i = 0; i < 4; i++)
    {
      part += a->g ? g[i] : x[i];
      if (a->g) product = ADD_PRODUCT(product, g[i], x[i]);
    }
    sum += (double)part;
    squares += (double)product;
    count += valid;
  }
  m.count = (double)count;
  m.first = sum;
  m.second = squares;
  if (a->g) return m;
  NUMBER origin = a->uncentered || count == 0 ? 0 : (NUMBER)(sum / (double)count);
  double differences = 0;
  squares = 0;
  for (int64_t k = 4 * (int64_t)rank; k < a->n; k += 4 * (int64_t)a->team) {
    int valid = (int)smaller(4, a->n - k);
    NUMBER part = 0, square = 0;
    LOAD_FOUR(a->x, a->x_dtype, at + k, valid, a->together, x);
    UNROLL for (int i = 0; i < 4; i++)
    {
      NUMBER d = i < valid ? x[i] - origin : 0;
      part += d;
      square = ADD_PRODUCT(square, d, d);
    }
    differences += (double)part;
    squares += (double)square;
  }
  double shift = a->uncentered || count == 0 ? 0 : differences / (double)count;
  m.first = (double)origin + shift;
  m.second = squares - shift * differences;
  return m;
}

/* y = (x - mean) r [gamma [+ beta]] */
BODY void NAME(write_normalized)(const normalize_arguments *a, line_moments m, int64_t line, int rank)
{
  double variance = a->n > 0 ? m.second / (double)a->n : 0, exact = 1 / sqrt((variance < 0 ? 0 : variance) + a->epsilon);
  NUMBER mean = (NUMBER)m.first, rest = (NUMBER)((m.first - (double)mean) * exact), r = (NUMBER)exact, x[4], by[4], plus[4];
  for (int64_t k = 4 * (int64_t)rank; a->y && k < a->n; k += 4 * (int64_t)a->team) {
    int64_t at = line * a->n + k;
    int valid = (int)smaller(4, a->n - k);
    LOAD_FOUR(a->x, a->x_dtype, at, valid, a->together, x);
    if (a->gamma) LOAD_FOUR(a->gamma, a->gamma_dtype, k, valid, a->together, by);
    if (a->beta) LOAD_FOUR(a->beta, a->beta_dtype, k, valid, a->together, plus);
    UNROLL for (int i = 0; i < 4; i++)
    {
      x[i] = (x[i] - mean) * r - rest;
      if (a->gamma) x[i] *= by[i];
      if (a->beta) x[i] += plus[i];
    }
    STORE_FOUR(a->y, a->y_dtype, at, valid, a->together, x);
  }
  if (a->r && rank == 0) STORE(a->r, a->r_dtype, line, r);
}

/* dx = r (g - mean(g) - y mean(g y)), with y as x and dx as y. */
BODY void NAME(write_slope)(const normalize_arguments *a, line_moments m, int64_t line, int rank)
{
  NUMBER mean = a->uncentered ? 0 : (NUMBER)(m.first / (double)a->n), slope = (NUMBER)(m.second / (double)a->n), g[4], y[4];
  NUMBER r = LOAD(a->r, a->r_dtype, line);
  for (int64_t k = 4 * (int64_t)rank; k < a->n; k += 4 * (int64_t)a->team) {
    int64_t at = line * a->n + k;
    int valid = (int)smaller(4, a->n - k);
    LOAD_FOUR(a->g, a->g_dtype, at, valid, a->together, g);
    LOAD_FOUR(a->x, a->x_dtype, at, valid, a->together, y);
    UNROLL for (int i = 0; i < 4; i++) g[i] = r * (g[i] - mean - y[i] * slope);
    STORE_FOUR(a->y, a->y_dtype, at, valid, a->together, g);
  }
}

BODY void NAME(normalize_lines)(int phase, int thread, int64_t block, void *shared, const normalize_arguments *a)
{
  int rank = thread & (a->team - 1);
  int64_t line = block * (BLOCK_THREADS / a->team) + thread / a->team;
  line_moments *mine = (line_moments *)shared + (thread - rank);
  if (line >= a->lines) return;
  if (phase == 0) mine[rank] = NAME(moments_of)(a, line * a->n, rank);
  if (phase == 1 && rank < NORMALIZE_FEW)
    for (int k = rank + NORMALIZE_FEW; k < a->team; k += NORMALIZE_FEW) mine[rank] = combine_moments(mine[rank], mine[k], a->g != NULL);
  if (phase != 2) return;
  line_moments m = mine[0];
  for (int k = 1; k < a->team && k < NORMALIZE_FEW; k++) m = combine_moments(m, mine[k], a->g != NULL);
  if (a->g) NAME(write_slope)(a, m, line, rank);
  else NAME(write_normalized)(a, m, line, rank);
}
