/* softmax_bodies.h: bodies of softmax.h, for one way of computing (numbers.h). */

/* What a thread knows of its line: the largest element and the sum of e^(x - largest), or, of a gradient, the sum of g y. */
typedef struct NAME(line_sum) { NUMBER largest, sum; } NAME(line_sum);

/* -infinity adds nothing, even where nothing larger was seen; NaN and +infinity make the sum NaN. */
BODY NUMBER NAME(exponential)(NUMBER x, NUMBER largest) { return x == -(NUMBER)INFINITY ? 0 : EXP(x - largest); }

/* Both sums by the larger one of the two. An empty one is not scaled: -infinity from -infinity were NaN. */
BODY NAME(line_sum) NAME(combine_sums)(NAME(line_sum) a, NAME(line_sum) b)
{
  NAME(line_sum) both;
  both.largest = b.largest > a.largest ? b.largest : a.largest;
  both.sum = a.sum == 0 ? 0 : a.largest == both.largest ? a.sum : a.sum * EXP(a.largest - both.largest);
  both.sum += b.sum == 0 ? 0 : b.largest == both.largest ? b.sum : b.sum * EXP(b.largest - both.largest);
  return both;
}

/* Elements first to first + 7, of which the way of double has none together. */
BODY void NAME(load_group)(const void *x, int dtype, int64_t first, int together, NUMBER v[LINE_GROUP])
{
#if IN_FLOAT
  if (together) {
    load_eight(x, IN_FLOAT == 1 ? FLOW_FLOAT32 : dtype, 0, first, first + LINE_GROUP, 1, v);
    return;
  }
#endif
  (void)together;
  UNROLL for (int j = 0; j < LINE_GROUP; j++) v[j] = LOAD(x, dtype, first + j);
}

BODY void NAME(store_group)(void *y, int dtype, int64_t first, int together, const NUMBER v[LINE_GROUP])
{
#if IN_FLOAT
  if (together) {
    store_eight(y, IN_FLOAT == 1 ? FLOW_FLOAT32 : dtype, first, first + LINE_GROUP, 1, v);
    return;
  }
#endif
  (void)together;
  UNROLL for (int j = 0; j < LINE_GROUP; j++) STORE(y, dtype, first + j, v[j]);
}

/* Groups first, first + step ... of a line of n elements that begins at `at`. */
BODY NAME(line_sum) NAME(sum_groups)(const void *x, int dtype, int together, int64_t at, int64_t first, int64_t step, int64_t n)
{
  NAME(line_sum) s;
  NUMBER v[LINE_GROUP];
  double total = 0;
  s.largest = -(NUMBER)INFINITY;
  for (int64_t k = LINE_GROUP * first; k < n; k += LINE_GROUP * step) {
    NAME(load_group)(x, dtype, at + k, together, v);
    UNROLL for (int j = 0; j < LINE_GROUP; j++) s.largest = v[j] > s.largest ? v[j] : s.largest;
  }
  for (int64_t k = LINE_GROUP * first; k < n; k += LINE_GROUP * step) {
    NUMBER part = 0;
    NAME(load_group)(x, dtype, at + k, together, v);
    UNROLL for (int j = 0; j < LINE_GROUP; j++) part += NAME(exponential)(v[j], s.largest);
    total += (double)part;
  }
  s.sum = (NUMBER)total;
  return s;
}

/* Elements first, first + step ... below n of a line whose neighbours are `inner` apart and that begins at `at`. */
BODY NAME(line_sum) NAME(sum_line)(const void *x, int dtype, int64_t at, int64_t first, int64_t step, int64_t n, int64_t inner)
{
  NAME(line_sum) s;
  double total = 0;
  s.largest = -(NUMBER)INFINITY;
  for (int64_t k = first; k < n; k += step) {
    NUMBER value = LOAD(x, dtype, at + k * inner);
    s.largest = value > s.largest ? value : s.largest;
  }
  for (int64_t k = first; k < n;) {
    int64_t end = smaller(n, k + SUM_OF_NUMBERS * step);
    NUMBER part = 0;
    for (; k < end; k += step) part += NAME(exponential)(LOAD(x, dtype, at + k * inner), s.largest);
    total += (double)part;
  }
  s.sum = (NUMBER)total;
  return s;
}

/* The combining step of a team: `mine` is its first slot, `rank` the thread's place in it. */
BODY void NAME(gather_sums)(NAME(line_sum) *mine, int rank, int team)
{
  if (rank >= TEAM_FEW) return;
  for (int k = rank + TEAM_FEW; k < team; k += TEAM_FEW) mine[rank] = NAME(combine_sums)(mine[rank], mine[k]);
}

/* What gather_sums left: TEAM_FEW sums at most. */
BODY NAME(line_sum) NAME(last_sums)(const NAME(line_sum) *mine, int team)
{
  NAME(line_sum) s = mine[0];
  for (int k = 1; k < team && k < TEAM_FEW; k++) s = NAME(combine_sums)(s, mine[k]);
  return s;
}

/* Of g y; x is g. */
BODY NAME(line_sum) NAME(sum_products)(const softmax_arguments *a, int64_t at, int64_t first, int64_t step)
{
  NAME(line_sum) s;
  double total = 0;
  for (int64_t k = first; k < a->n;) {
    int64_t end = smaller(a->n, k + SUM_OF_NUMBERS * step);
    NUMBER part = 0;
    for (; k < end; k += step) part += LOAD(a->x, a->x_dtype, at + k * a->inner) * LOAD(a->y, a->y_dtype, at + k * a->inner);
    total += (double)part;
  }
  s.largest = 0;
  s.sum = (NUMBER)total;
  return s;
}

/* The same of groups. */
BODY NAME(line_sum) NAME(sum_group_products)(const softmax_arguments *a, int64_t at, int64_t first, int64_t step)
{
  NAME(line_sum) s;
  NUMBER x[LINE_GROUP], y[LINE_GROUP];
  double total = 0;
  for (int64_t k = LINE_GROUP * first; k < a->n; k += LINE_GROUP * step) {
    NUMBER part = 0;
    NAME(load_group)(a->x, a->x_dtype, at + k, a->together & X_TOGETHER, x);
    NAME(load_group)(a->y, a->y_dtype, at + k, a->together & Y_TOGETHER, y);
    UNROLL for (int j = 0; j < LINE_GROUP; j++) part += x[j] * y[j];
    total += (double)part;
  }
  s.largest = 0;
  s.sum = (NUMBER)total;
  return s;
}

/* An element of a line, from its sum. Of the gradient x is g, and scale the sum of g y. */
BODY NUMBER NAME(softmax_of)(int kind, NUMBER x, NUMBER y, NUMBER largest, NUMBER scale)
{
  return kind == SOFTMAX ? EXP(x - largest) * scale : kind == LOG_SOFTMAX ? x - largest - scale : (x - scale) * y;
}

BODY NUMBER NAME(scale_of)(int kind, NUMBER sum) { return kind == SOFTMAX ? 1 / sum : kind == LOG_SOFTMAX ? LOG(sum) : sum; }

/* A thread's elements of a line. */
BODY void NAME(write_line)(const softmax_arguments *a, NAME(line_sum) s, int64_t at, int64_t first, int64_t step)
{
  NUMBER scale = NAME(scale_of)(a->kind, s.sum);
  for (int64_t k = first; k < a->n; k += step) {
    int64_t i = at + k * a->inner;
    NUMBER x = LOAD(a->x, a->x_dtype, i), y = a->kind == SOFTMAX_GRADIENT ? LOAD(a->y, a->y_dtype, i) : 0;
    STORE(a->out, a->out_dtype, i, NAME(softmax_of)(a->kind, x, y, s.largest, scale));
  }
}

BODY void NAME(write_groups)(const softmax_arguments *a, NAME(line_sum) s, int64_t at, int64_t first, int64_t step)
{
  NUMBER scale = NAME(scale_of)(a->kind, s.sum), x[LINE_GROUP], y[LINE_GROUP] = { 0 };
  for (int64_t k = LINE_GROUP * first; k < a->n; k += LINE_GROUP * step) {
    NAME(load_group)(a->x, a->x_dtype, at + k, a->together & X_TOGETHER, x);
    if (a->kind == SOFTMAX_GRADIENT) NAME(load_group)(a->y, a->y_dtype, at + k, a->together & Y_TOGETHER, y);
    UNROLL for (int j = 0; j < LINE_GROUP; j++) x[j] = NAME(softmax_of)(a->kind, x[j], y[j], s.largest, scale);
    NAME(store_group)(a->out, a->out_dtype, at + k, a->together & OUT_TOGETHER, x);
  }
}

/* i: a line, by one thread. */
BODY void NAME(softmax_lines)(int64_t i, const softmax_arguments *a)
{
  int64_t inside, at = split(i, a->inner, &inside) * a->n * a->inner + inside;
  NAME(line_sum) s = a->kind == SOFTMAX_GRADIENT ? NAME(sum_products)(a, at, 0, 1)
                                                 : NAME(sum_line)(a->x, a->x_dtype, at, 0, 1, a->n, a->inner);
  NAME(write_line)(a, s, at, 0, 1);
}

/* A block has BLOCK_THREADS / team lines. */
BODY void NAME(softmax_rows)(int phase, int thread, int64_t block, void *shared, const softmax_arguments *a)
{
  int rank = thread & (a->team - 1);
  int64_t line = block * (BLOCK_THREADS / a->team) + thread / a->team, at = line * a->n;
  NAME(line_sum) *mine = (NAME(line_sum) *)shared + (thread - rank);
  if (line >= a->lines) return;
  if (phase == 0) {
    if (a->kind == SOFTMAX_GRADIENT)
      mine[rank] = a->grouped ? NAME(sum_group_products)(a, at, rank, a->team) : NAME(sum_products)(a, at, rank, a->team);
    else
      mine[rank] = a->grouped ? NAME(sum_groups)(a->x, a->x_dtype, a->together & X_TOGETHER, at, rank, a->team, a->n)
                              : NAME(sum_line)(a->x, a->x_dtype, at, rank, a->team, a->n, 1);
  }
  if (phase == 1) NAME(gather_sums)(mine, rank, a->team);
  if (phase == 2 && a->grouped) NAME(write_groups)(a, NAME(last_sums)(mine, a->team), at, rank, a->team);
  else if (phase == 2) NAME(write_line)(a, NAME(last_sums)(mine, a->team), at, rank, a->team);
}

/* A team's part of a gradient: g (softmax(z) - onehot(label)). */
BODY void NAME(write_cross_entropy)(const cross_entropy_arguments *a, NAME(line_sum) s, NUMBER g, int64_t at, int64_t label, int rank)
{
  NUMBER scale = g / s.sum, z[LINE_GROUP];
  for (int64_t k = LINE_GROUP * rank; a->grouped && k < a->classes; k += LINE_GROUP * a->team) {
    NAME(load_group)(a->z, a->z_dtype, at + k, a->together & X_TOGETHER, z);
    UNROLL for (int j = 0; j < LINE_GROUP; j++) {
      NUMBER value = NAME(exponential)(z[j], s.largest) * scale;
      z[j] = k + j == label ? value - g : value;
    }
    NAME(store_group)(a->out, a->out_dtype, at + k, a->together & OUT_TOGETHER, z);
  }
  for (int64_t k = rank; !a->grouped && k < a->classes; k += a->team) {
    NUMBER value = NAME(exponential)(LOAD(a->z, a->z_dtype, at + k), s.largest) * scale;
    STORE(a->out, a->out_dtype, at + k, k == label ? value - g : value);
  }
}

/* loss = log(sum of e^z) - z[label]; gradient = g (softmax(z) - onehot(label)). NaN where the label is not a class. */
BODY void NAME(cross_entropy)(int phase, int thread, int64_t block, void *shared, const cross_entropy_arguments *a)
{
  int rank = thread & (a->team - 1);
  int64_t line = block * (BLOCK_THREADS / a->team) + thread / a->team, at = line * a->classes;
  NAME(line_sum) *mine = (NAME(line_sum) *)shared + (thread - rank);
  if (line >= a->lines) return;
  if (phase == 0 && a->out && a->grouped)
    mine[rank] = NAME(sum_groups)(a->z, a->z_dtype, a->together & X_TOGETHER, at, rank, a->team, a->classes);
  else if (phase == 0 && a->out)
    mine[rank] = NAME(sum_line)(a->z, a->z_dtype, at, rank, a->team, a->classes, 1);
  if (phase == 1 && a->out) NAME(gather_sums)(mine, rank, a->team);
  if (phase != 2) return;
  double named = load_double(a->label_dtype, a->labels, line);
  int known = named >= 0 && named < (double)a->classes;
  int64_t label = known ? (int64_t)named : 0;
  if (!known && rank == 0)
    raise_fault(a->fault, FAULT_LABEL, a->op, fabs(named) < 9e18 ? (int64_t)named : -1, a->classes, line / a->row_lines, a->scalars);
  if (!a->out || a->classes == 0) return;
  NAME(line_sum) s = NAME(last_sums)(mine, a->team);
  if (!known) s.sum = (NUMBER)NAN;
  if (a->g) {
    NAME(write_cross_entropy)(a, s, LOAD(a->g, a->g_dtype, line), at, label, rank);
  } else if (rank == 0) {
    STORE(a->out, a->out_dtype, line, LOG(s.sum) - (LOAD(a->z, a->z_dtype, at + label) - s.largest));
  }
}
