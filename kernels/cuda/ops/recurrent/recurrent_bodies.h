/* recurrent_bodies.h: bodies of recurrent.h, for one way of computing (numbers.h); dtype: of all operands but the mask. */

/* Rows of a block. Fewer blocks would read w more often, more of them would need more of the block's memory. */
enum { NAME(rows_of_block) = RECURRENT_SHARED / (BLOCK_THREADS * 4 * (int)sizeof(NUMBER)) };

BODY NUMBER NAME(sigmoid_of)(NUMBER x) { return 1 / (1 + EXP(-x)); }

/* ---- cells: unit j of a row, from what x and the products have added up to: p, a number for each gate ------------------------ */

BODY void NAME(keep)(int dtype, const recurrent_arguments *a, int64_t line, int parts, int part, int64_t j, NUMBER value)
{
  if (a->history) STORE(a->history, dtype, (line * parts + part) * a->units + j, value);
}

/* `part`: of the products of step s. Of gru with the reset after it p[2] is without x. */
BODY void NAME(cell)(int dtype, const recurrent_arguments *a, int64_t s, int part, int64_t row, int64_t j, const NUMBER p[4])
{
  const int64_t u = a->units, size = a->rows * u, i = row * u + j, line = row * a->steps + step_at(a, s);
  NUMBER *work = (NUMBER *)a->work + i, h = s == 0 ? LOAD(a->h, dtype, i) : work[(s & 1) * size], next;
  const int kept = a->mask && !a->mask[line];
  if (a->cell == CELL_SIMPLE) {
    next = NAME(tanh)(p[0]);
  } else if (a->cell == CELL_LSTM) {
    NUMBER before = s == 0 ? LOAD(a->c, dtype, i) : work[2 * size];
    NUMBER in = NAME(sigmoid_of)(p[0]), forget = NAME(sigmoid_of)(p[1]), candidate = NAME(tanh)(p[2]), out = NAME(sigmoid_of)(p[3]);
    NUMBER c = kept ? before : forget * before + in * candidate;
    next = out * NAME(tanh)(c);
    work[2 * size] = c;
    NAME(keep)(dtype, a, line, 5, 0, j, in);
    NAME(keep)(dtype, a, line, 5, 1, j, forget);
    NAME(keep)(dtype, a, line, 5, 2, j, candidate);
    NAME(keep)(dtype, a, line, 5, 3, j, out);
    NAME(keep)(dtype, a, line, 5, 4, j, c);
    if (a->last && s == a->steps - 1) STORE(a->last, dtype, i, c);
  } else if (a->cell == CELL_GRU_BEFORE && part == 0) {
    NUMBER z = NAME(sigmoid_of)(p[0]), r = NAME(sigmoid_of)(p[1]);
    work[2 * size] = z;
    work[3 * size] = r * h;
    NAME(keep)(dtype, a, line, 4, 0, j, z);
    NAME(keep)(dtype, a, line, 4, 1, j, r);
    NAME(keep)(dtype, a, line, 4, 3, j, r * h);
    return;
  } else {
    NUMBER z = work[2 * size], k;
    if (a->cell == CELL_GRU_AFTER) {
      NUMBER r = NAME(sigmoid_of)(p[1]);
      z = NAME(sigmoid_of)(p[0]);
      k = NAME(tanh)(LOAD(a->x, dtype, (line * 3 + 2) * u + j) + r * p[2]);
      NAME(keep)(dtype, a, line, 4, 0, j, z);
      NAME(keep)(dtype, a, line, 4, 1, j, r);
      NAME(keep)(dtype, a, line, 4, 3, j, p[2]);
    } else {
      k = NAME(tanh)(p[0]);
    }
    NAME(keep)(dtype, a, line, 4, 2, j, k);
    next = z * h + (1 - z) * k;
  }
  if (kept) next = h;
  work[((s + 1) & 1) * size] = next;
  if (a->narrow) STORE(a->narrow, dtype, i, next);
  if (a->sequence) STORE(a->sequence, dtype, line * u + j, next);
}

/* The gradient of a gate's number, and of what x added to it, where that is another one. */
BODY void NAME(give)(int dtype, const recurrent_arguments *a, int64_t round, int64_t row, int64_t line, int gate, int64_t j, NUMBER d,
                      NUMBER dx)
{
  const int64_t u = a->units, width = a->gates * u;
  NUMBER *gates = (NUMBER *)a->work + 2 * a->rows * u + (round & 1) * a->rows * width;
  if (a->narrow) STORE(a->narrow, dtype, row * width + gate * u + j, d);
  else gates[row * width + gate * u + j] = d;
  if (a->dx) STORE(a->dx, dtype, line * width + gate * u + j, dx);
  if (a->dp) STORE(a->dp, dtype, line * width + gate * u + j, d);
}

/* The state before this step: of a sequence {n, t, width}, at `offset`, or, before all, of {n, u}. */
BODY NUMBER NAME(before)(int dtype, const recurrent_arguments *a, const void *sequence, const void *initial, int64_t s, int64_t row,
                         int64_t j, int64_t width, int64_t offset)
{
  if (s == 0) return LOAD(initial, dtype, row * a->units + j);
  return LOAD(sequence, dtype, (row * a->steps + step_at(a, s - 1)) * width + offset + j);
}

/* sum: what of the gradient of h comes from the step after this one by the gates, and from g; of the second product of gru the gradient of
 * r h. */
BODY void NAME(cell_back)(int dtype, const recurrent_arguments *a, int64_t round, int part, int64_t row, int64_t j, NUMBER sum)
{
  const int64_t u = a->units, size = a->rows * u, i = row * u + j, s = a->steps - 1 - round;
  const int64_t line = row * a->steps + step_at(a, s > 0 ? s : 0);
  NUMBER *work = (NUMBER *)a->work + i, dh = round == 0 && part == 0 ? 0 : work[0], dc = 0, past;
  if (part == 0) dh += sum;
  if (a->cell == CELL_LSTM) dc = round == 0 ? LOAD(a->gc, dtype, i) : work[size];
  if (s < 0) {
    if (a->dh) STORE(a->dh, dtype, i, dh);
    if (a->dc) STORE(a->dc, dtype, i, dc);
    return;
  }
  const int kept = a->mask && !a->mask[line];
  const NUMBER open = kept ? 0 : 1;
  if (a->cell == CELL_SIMPLE) {
    NUMBER y = LOAD(a->sequence, dtype, line * u + j), d = open * dh * (1 - y * y);
    NAME(give)(dtype, a, round, row, line, 0, j, d, d);
    past = 0;
  } else if (a->cell == CELL_LSTM) {
    const int64_t at = line * 5 * u + j;
    NUMBER in = LOAD(a->history, dtype, at), forget = LOAD(a->history, dtype, at + u), candidate = LOAD(a->history, dtype, at + 2 * u);
    NUMBER out = LOAD(a->history, dtype, at + 3 * u), c = NAME(tanh)(LOAD(a->history, dtype, at + 4 * u));
    NUMBER c_before = NAME(before)(dtype, a, a->history, a->c, s, row, j, 5 * u, 4 * u), through = dc + dh * out * (1 - c * c), d[4];
    d[0] = open * through * candidate * in * (1 - in);
    d[1] = open * through * c_before * forget * (1 - forget);
    d[2] = open * through * in * (1 - candidate * candidate);
    d[3] = open * dh * c * out * (1 - out);
    UNROLL for (int gate = 0; gate < 4; gate++) NAME(give)(dtype, a, round, row, line, gate, j, d[gate], d[gate]);
    work[size] = kept ? dc : through * forget;
    past = 0;
  } else {
    const int64_t at = line * 4 * u + j;
    NUMBER z = LOAD(a->history, dtype, at), r = LOAD(a->history, dtype, at + u), k = LOAD(a->history, dtype, at + 2 * u);
    NUMBER h = NAME(before)(dtype, a, a->sequence, a->h, s, row, j, u, 0);
    past = dh * z;
    if (part == 0) {
      NUMBER dk = open * dh * (1 - z) * (1 - k * k), dz = open * dh * (h - k) * z * (1 - z);
      NAME(give)(dtype, a, round, row, line, 0, j, dz, dz);
      if (a->cell == CELL_GRU_AFTER) {
        NUMBER dr = dk * LOAD(a->history, dtype, at + 3 * u) * r * (1 - r);
        NAME(give)(dtype, a, round, row, line, 1, j, dr, dr);
        NAME(give)(dtype, a, round, row, line, 2, j, dk * r, dk);
      } else {
        NAME(give)(dtype, a, round, row, line, 2, j, dk, dk);
        work[0] = dh;
        return;
      }
    } else {
      NUMBER dr = open * sum * h * r * (1 - r);
      NAME(give)(dtype, a, round, row, line, 1, j, dr, dr);
      past += sum * r;
    }
  }
  work[0] = kept ? dh : past;
}

/* ---- by products ------------------------------------------------------------------------------------------------------------------- */

BODY void NAME(recurrent_cell_of_products)(int dtype, int64_t i, const recurrent_arguments *a)
{
  const int64_t u = a->units, width = a->gates * u;
  int64_t j, row = split(i, u, &j), s = a->steps - 1 - a->step, line = row * a->steps;
  NUMBER p[4] = { 0, 0, 0, 0 };
  if (a->back) {
    if (a->sums) p[0] = (NUMBER)a->sums[i];
    if (s >= 0) p[0] += LOAD(a->x, dtype, (line + step_at(a, s)) * u + j);
    NAME(cell_back)(dtype, a, a->step, 0, row, j, p[0]);
    return;
  }
  line += step_at(a, a->step);
  UNROLL for (int gate = 0; gate < 4; gate++) {
    if (gate >= a->gates) continue;
    p[gate] = (NUMBER)a->sums[row * width + gate * u + j];
    if (a->cell == CELL_GRU_AFTER) p[gate] += LOAD(a->b, dtype, gate * u + j);
    if (a->cell != CELL_GRU_AFTER || gate < 2) p[gate] += LOAD(a->x, dtype, line * width + gate * u + j);
  }
  NAME(cell)(dtype, a, a->step, 0, row, j, p);
}

/* ---- by blocks --------------------------------------------------------------------------------------------------------------------- */

typedef struct __attribute__((aligned(16))) NAME(four_numbers) { NUMBER v[4]; } NAME(four_numbers);

/* What x, b or g add to four columns of a gate: once, by the first lane. */
BODY void NAME(begin_sums)(int dtype, const recurrent_arguments *a, const recurrent_product *p, int64_t s, int64_t row, int gate,
                           int64_t unit, int valid, int together, NUMBER sum[4])
{
  const int64_t u = a->units, step = a->back ? a->steps - 1 - s : s, line = row * a->steps + step_at(a, step);
  const int64_t column = p->first + gate * u + unit;
  NUMBER more[4];
  UNROLL for (int v = 0; v < 4; v++) sum[v] = 0;
  if (a->back && (p->above > 0 || step < 0)) return;
  if (a->back) LOAD_FOUR(a->x, dtype, line * u + unit, valid, together, sum);
  else if (a->cell != CELL_GRU_AFTER || gate < 2) LOAD_FOUR(a->x, dtype, line * a->gates * u + column, valid, together, sum);
  if (a->back || a->cell != CELL_GRU_AFTER) return;
  LOAD_FOUR(a->b, dtype, column, valid, together, more);
  UNROLL for (int v = 0; v < 4; v++) sum[v] += more[v];
}

/* sum[r] += the products of row r over the lane's part of k, in order: runs of four. */
BODY void NAME(add_products)(int dtype, const recurrent_arguments *a, const recurrent_product *p, const int64_t *from, int64_t column,
                             int lane, int lanes, int valid, int together, NUMBER (*sum)[4])
{
  for (int64_t k = 4 * lane; k < p->depth; k += 4 * lanes) {
    const int deep = (int)smaller(4, p->depth - k);
    NUMBER w[4][4], h[NAME(rows_of_block)][4];
    UNROLL for (int i = 0; i < 4; i++) {
      UNROLL for (int v = 0; v < 4; v++) w[i][v] = 0;
      if (together || i < deep) LOAD_FOUR(a->w, dtype, (p->above + k + i) * p->columns + column, valid, together, w[i]);
    }
    UNROLL for (int r = 0; r < NAME(rows_of_block); r++) LOAD_FOUR(a->work, NUMBER_DTYPE, from[r] + k, deep, together, h[r]);
    UNROLL for (int r = 0; r < NAME(rows_of_block); r++) {
      UNROLL for (int i = 0; i < 4; i++) {
        UNROLL for (int v = 0; v < 4; v++) sum[r][v] = ADD_PRODUCT(sum[r][v], h[r][i], w[i][v]);
      }
    }
  }
}

/* Threads stand by lanes, and in a lane by gates and fours of the tile's units. */
typedef struct NAME(team) { int fours, vectors, lanes; } NAME(team);

BODY NAME(team) NAME(team_of)(const recurrent_arguments *a, int gates)
{
  NAME(team) team;
  team.fours = a->tile / 4;
  team.vectors = team.fours * gates;
  team.lanes = BLOCK_THREADS / team.vectors;
  return team;
}

BODY void NAME(multiply)(int dtype, const recurrent_arguments *a, const recurrent_product *p, int64_t s, int tile, int thread,
                         int64_t first, NAME(four_numbers) *sums)
{
  const NAME(team) team = NAME(team_of)(a, p->gates);
  const int lane = thread / team.vectors, vector = thread - lane * team.vectors, gate = vector / team.fours;
  const int64_t unit = (int64_t)tile * a->tile + 4 * (vector - gate * team.fours), column = p->first + gate * a->units + unit;
  const int valid = (int)smaller(4, a->units - unit);
  NUMBER sum[NAME(rows_of_block)][4];
  int64_t from[NAME(rows_of_block)];
  if (lane >= team.lanes || valid <= 0) return;
  UNROLL for (int r = 0; r < NAME(rows_of_block); r++) {
    const int64_t row = smaller(first + r, a->rows - 1);
    from[r] = p->from + row * p->from_line;
    UNROLL for (int v = 0; v < 4; v++) sum[r][v] = 0;
    if (lane > 0) continue;
    if (a->together) NAME(begin_sums)(dtype, a, p, s, row, gate, unit, 4, 1, sum[r]);
    else NAME(begin_sums)(dtype, a, p, s, row, gate, unit, valid, 0, sum[r]);
  }
  if (a->together) NAME(add_products)(dtype, a, p, from, column, lane, team.lanes, 4, 1, sum);
  else NAME(add_products)(dtype, a, p, from, column, lane, team.lanes, valid, 0, sum);
  UNROLL for (int r = 0; r < NAME(rows_of_block); r++) {
    NAME(four_numbers) four;
    UNROLL for (int v = 0; v < 4; v++) four.v[v] = sum[r][v];
    sums[(lane * NAME(rows_of_block) + r) * team.vectors + vector] = four;
  }
}

BODY void NAME(apply)(int dtype, const recurrent_arguments *a, const recurrent_product *product, int64_t s, int part, int tile, int thread,
                      int64_t first, const NUMBER *sums)
{
  const NAME(team) team = NAME(team_of)(a, product->gates);
  for (int i = thread; i < NAME(rows_of_block) * a->tile; i += BLOCK_THREADS) {
    const int r = i / a->tile, inside = i - r * a->tile;
    const int64_t row = first + r, j = (int64_t)tile * a->tile + inside;
    NUMBER p[4] = { 0, 0, 0, 0 };
    if (row >= a->rows || j >= a->units) continue;
    UNROLL for (int gate = 0; gate < 4; gate++) {
      if (gate >= product->gates) continue;
      for (int lane = 0; lane < team.lanes; lane++)
        p[gate] += sums[((lane * NAME(rows_of_block) + r) * product->gates + gate) * a->tile + inside];
    }
    if (a->back) NAME(cell_back)(dtype, a, s, part, row, j, p[0]);
    else NAME(cell)(dtype, a, s, part, row, j, p);
  }
}

/* Phase 0: the first state, of which the first product is made; c of no steps. Then two phases for each tile of each product. */
BODY void NAME(recurrent_turn)(int dtype, int phase, int thread, int64_t block, void *shared, const recurrent_arguments *a)
{
  const int64_t first = block * NAME(rows_of_block), u = a->units, end = smaller(first + NAME(rows_of_block), a->rows) * u;
  if (phase == 0) {
    for (int64_t i = first * u + thread; i < end && !a->back; i += BLOCK_THREADS) {
      ((NUMBER *)a->work)[i] = LOAD(a->h, dtype, i);
      if (a->last && a->steps == 0) STORE(a->last, dtype, i, LOAD(a->c, dtype, i));
    }
    return;
  }
  int turn = (phase - 1) / 2, left = turn / a->tiles, tile = turn - left * a->tiles;
  int parts = products_of_step(a), s = left / parts, part = left - s * parts;
  recurrent_product p = product_of(a, s, part);
  if (phase % 2 == 1) NAME(multiply)(dtype, a, &p, s, tile, thread, first, (NAME(four_numbers) *)shared);
  else NAME(apply)(dtype, a, &p, s, part, tile, thread, first, (const NUMBER *)shared);
}
