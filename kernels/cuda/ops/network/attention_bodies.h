/* attention_bodies.h: what attention_forward.h and attention_gradients.h have in common. dtype and size, columns of a tile, are constants
 * where a kernel is made of them. */

/* Of arrays: steps of own rows that stay in registers, columns of the result and of a tile's scores, eight each. */
enum { OWN_STEPS = 8, RESULT_COLUMNS = ATTENTION_MOST_COLUMNS / 8, SCORE_COLUMNS = 8, SCORES_OF_THREAD = 4 * SCORE_COLUMNS };

/* Scores further below the largest of their row than this weigh 0: e^-104 is less than half the smallest float. */
#define NO_WEIGHT (-104.0f)
#define LOG2_E 1.44269504f

/* Rows of a tile: two tiles fit into the block's memory. */
BODY int rows_of_tile(int dtype, int size)
{
  return dtype == FLOW_FLOAT32 ? 4096 / size : size > 128 ? 32 : 64;
}
/* Whether the words of own rows stay in registers; else each tile reads them again. */
BODY int keeps_own(int dtype, int size)
{
  return size <= (dtype == FLOW_FLOAT32 ? 64 : 128);
}
/* The same of the second matrix of them that gradients need. */
BODY int keeps_both(int dtype, int size)
{
  return dtype != FLOW_FLOAT32 && size <= 64;
}
/* Words from one row of a tile to the next: lanes that read neighbouring rows meet different banks. */
BODY int pitch_of(int dtype, int size)
{
  return (dtype == FLOW_FLOAT32 ? size : size / 2) + 4;
}

BODY int64_t attention_first(const attention_arguments *a, const attention_matrices *m, int64_t matrix)
{
  int64_t head, outer = split(matrix, a->heads, &head);
  return outer * m->outer_step + head * m->head_step;
}

/* ---- loads ------------------------------------------------------------------------------------------------------------------------ */

BODY uint32_t bits_at(int dtype, const void *data, int64_t i)
{
  return dtype == FLOW_FLOAT32 ? ((const uint32_t *)data)[i] : ((const uint16_t *)data)[i];
}

/* Where a thread's numbers of a row begin: two neighbouring columns of each eight. */
BODY char *place_in_row(int dtype, const attention_matrices *m, int64_t first, int64_t row, int lane)
{
  return (char *)m->data + (first + row * m->row_step + lane % 4 * 2) * (dtype == FLOW_FLOAT32 ? 4 : 2);
}

/* The words of one step of a warp's own rows, from `row` on, of the matrix that begins at element `first`. */
BODY void load_step(int dtype, const attention_matrices *m, int64_t first, int64_t row, int step, int lane, uint32_t a[4])
{
  const int columns = m->columns - lane % 4 * 2;
  UNROLL for (int half = 0; half < 2; half++)
  {
    const int64_t r = row + lane / 4 + 8 * half;
    const void *from = place_in_row(dtype, m, first, r, lane);
    UNROLL for (int w = half; w < 4; w += 2)
    {
      const int column = step * columns_of_step(dtype) + w / 2 * (dtype == FLOW_FLOAT32 ? 1 : 8);
      a[w] = 0;
      if (r >= m->rows || column >= columns) continue;
      if (dtype == FLOW_FLOAT32) a[w] = bits_at(dtype, from, column);
      else if (m->together) a[w] = ((const uint32_t *)from)[column / 2];
      else a[w] = bits_at(dtype, from, column) | (column + 1 < columns ? bits_at(dtype, from, column + 1) << 16 : 0);
    }
  }
}

/* 16 bytes of a row, one element after the other; those beyond the columns are 0. */
BODY wide_bits load_group(int dtype, const attention_matrices *m, int64_t at, int column)
{
  const int in_group = dtype == FLOW_FLOAT32 ? 4 : 8;
  wide_bits bits;
  UNROLL for (int k = 0; k < 4; k++) bits.at[k] = 0;
  UNROLL for (int k = 0; k < in_group; k++)
  {
    if (column + k >= m->columns) continue;
    if (dtype == FLOW_FLOAT32) bits.at[k % 4] = bits_at(dtype, m->data, at + k);
    else bits.at[k / 2] |= bits_at(dtype, m->data, at + k) << 16 * (k % 2);
  }
  return bits;
}

/* A thread's part of a tile, rows from `row` on, those beyond the matrix being 0: 16 bytes at a time, all asked for before the first is put
 * into the tile. */
BODY void load_tile(int dtype, int size, const attention_matrices *m, int64_t first, int64_t row, int thread, uint32_t *tile)
{
  enum { MOST_GROUPS = 4 };
  const uint32_t in_group = dtype == FLOW_FLOAT32 ? 4 : 8, groups = (uint32_t)size / in_group, pitch = (uint32_t)pitch_of(dtype, size);
  const int turns = rows_of_tile(dtype, size) * (int)groups / BLOCK_THREADS;
  wide_bits bits[MOST_GROUPS];
  UNROLL for (int i = 0; i < turns; i++)
  {
    const uint32_t at = (uint32_t)(i * BLOCK_THREADS + thread), r = at / groups, column = at % groups * in_group;
    const int64_t from = first + (row + r) * m->row_step + column;
    UNROLL for (int k = 0; k < 4; k++) bits[i].at[k] = 0;
    if (m->together && row + r < m->rows && (int)column < m->columns)
      bits[i] = *(const wide_bits *)((const char *)m->data + from * (dtype == FLOW_FLOAT32 ? 4 : 2));
  }
  for (int i = 0; i < turns && !m->together; i++) {
    const uint32_t at = (uint32_t)(i * BLOCK_THREADS + thread), r = at / groups, column = at % groups * in_group;
    wide_bits one;
    UNROLL for (int k = 0; k < 4; k++) one.at[k] = 0;
    if (row + r < m->rows) one = load_group(dtype, m, first + (row + r) * m->row_step + column, (int)column);
    *(wide_bits *)(tile + r * pitch + at % groups * 4) = one;
  }
  UNROLL for (int i = 0; i < turns; i++)
  {
    const uint32_t at = (uint32_t)(i * BLOCK_THREADS + thread);
    if (m->together) *(wide_bits *)(tile + at / groups * pitch + at % groups * 4) = bits[i];
  }
}

/* ---- masks ------------------------------------------------------------------------------------------------------------------------ */

BODY int64_t mask_first(const attention_arguments *a, int64_t matrix)
{
  int64_t first = 0;
  for (int axis = a->mask_rank - 1; axis >= 0; axis--) {
    int64_t at;
    matrix = split(matrix, a->mask_shape[axis], &at);
    first += at * a->mask_step[axis];
  }
  return first;
}

/* Where a thread's score number i of a tile is: relative to the warp's own rows, and to the tile. */
BODY int own_of(int lane, int i)
{
  return lane / 4 + i / 2 % 2 * 8;
}
BODY int tile_row_of(int lane, int i)
{
  return i / 4 * COLUMNS_OF_SUMS + lane % 4 * 2 + i % 2;
}

/* How many rows of a tile there are, less that of the thread's first score. */
BODY int inside_of(const attention_arguments *a, int64_t tile, int lane)
{
  return (int)smaller(a->tile[0].rows - tile, 4 * SCORES_OF_THREAD) - lane % 4 * 2;
}

/* Bit i: the mask lets the thread's score number i through. mask: of the matrix. */
BODY uint32_t seen_scores(int dtype, int size, const attention_arguments *a, const uint8_t *mask, int64_t own, int64_t tile, int lane)
{
  const int64_t own_step = a->by_key ? a->mask_key : a->mask_row;
  int64_t tile_step = a->by_key ? a->mask_row : a->mask_key;
  const int inside = inside_of(a, tile, lane);
  uint32_t seen = 0;
  COMPUTE_AGAIN(tile_step);
  for (int half = 0; half < 2; half++) {
    const int64_t o = own + own_of(lane, 2 * half);
    const uint8_t *line = mask + o * own_step + (tile + lane % 4 * 2) * tile_step;
    if (o >= a->own[0].rows) continue;
    UNROLL_SOME for (int n = 0; n < rows_of_tile(dtype, size) / COLUMNS_OF_SUMS; n++)
    {
      UNROLL for (int j = 0; j < 2; j++) if (COLUMNS_OF_SUMS * n + j < inside && line[(COLUMNS_OF_SUMS * n + j) * tile_step])
          seen |= 1u << (4 * n + 2 * half + j);
    }
  }
  return seen;
}

/* ---- products --------------------------------------------------------------------------------------------------------------------- */

/* Words of own rows that stay: OWN_STEPS of each thread. */
BODY void load_own(int dtype, int size, const attention_matrices *m, int64_t first, int64_t row, int lane, uint32_t (*words)[4])
{
  UNROLL for (int step = 0; step < OWN_STEPS; step++) if (step < size / columns_of_step(dtype))
      load_step(dtype, m, first, row, step, lane, words[step]);
}

/* own tile^T of all threads: scores, or products of the gradient. */
BODY void multiply_own(int dtype, int size, const attention_arguments *a, const attention_matrices *m, int64_t first, int64_t row, int self,
                       int keeps, const uint32_t (*words)[4], const uint32_t *tile, float (*scores)[4])
{
  const int depth = columns_of_step(dtype), columns = rows_of_tile(dtype, size) / COLUMNS_OF_SUMS;
  EACH_THREAD(thread, self)
  {
    UNROLL for (int n = 0; n < columns; n++)
    {
      UNROLL for (int i = 0; i < 4; i++) scores[HERE(thread) * SCORE_COLUMNS + n][i] = 0;
    }
  }
  UNROLL for (int step = 0; step < size / depth; step++)
  {
    if (step * depth >= m->columns) continue;
    if (keeps) {
      multiply_tile(dtype, a->exact, ROWS_ARE_COLUMNS, step, columns, words + step, OWN_STEPS, tile, pitch_of(dtype, size), scores,
                    SCORE_COLUMNS);
    } else {
      uint32_t again[HELD][4];
      COMPUTE_AGAIN(first);
      EACH_THREAD(thread, self)
      {
        load_step(dtype, m, first, row + thread / WARP_THREADS * WARP_ROWS, step, thread % WARP_THREADS, again[HERE(thread)]);
      }
      multiply_tile(dtype, a->exact, ROWS_ARE_COLUMNS, step, columns, again, 1, tile, pitch_of(dtype, size), scores, SCORE_COLUMNS);
    }
  }
}

/* results += scores tile; columns: of the tile that are not all 0. */
BODY void multiply_scores(int dtype, int size, const attention_arguments *a, int columns, int self, const float (*scores)[4],
                          const uint32_t *tile, float (*results)[4])
{
  enum { PART = 4 };
  const int depth = columns_of_step(dtype), n = rows_of_tile(dtype, size) / COLUMNS_OF_SUMS;
  uint32_t words[HELD * SCORE_COLUMNS][4];
  EACH_THREAD(thread, self)
  {
    fragments_of_sums(dtype, scores + HERE(thread) * SCORE_COLUMNS, n, words + HERE(thread) * SCORE_COLUMNS);
  }
  UNROLL for (int part = 0; part < size / COLUMNS_OF_SUMS; part += PART)
  {
    if (part * COLUMNS_OF_SUMS >= columns) continue;
    UNROLL for (int step = 0; step < n * COLUMNS_OF_SUMS / depth; step++)
        multiply_tile(dtype, a->exact, ROWS_ARE_ROWS, step, PART, words + step, SCORE_COLUMNS,
                      tile + part * COLUMNS_OF_SUMS / (dtype == FLOW_FLOAT32 ? 1 : 2), pitch_of(dtype, size), results + part,
                      RESULT_COLUMNS);
  }
}

/* ---- results ---------------------------------------------------------------------------------------------------------------------- */

/* Two neighbouring numbers, or the first of them alone. */
BODY void store_two(int dtype, char *to, int column, int together, int both, float low, float high)
{
  if (dtype == FLOW_FLOAT32 && together) {
    two_words words;
    words.at[0] = float_to_bits(low);
    words.at[1] = float_to_bits(high);
    *(two_words *)((float *)to + column) = words;
  } else if (together) {
    *(uint32_t *)((uint16_t *)to + column) = pack_two(dtype, low, high);
  } else {
    store_float(dtype, to, column, low);
    if (both) store_float(dtype, to, column + 1, high);
  }
}

/* What a thread has of the result's rows, from the warp's first on, times what these are scaled with. */
BODY void store_results(int dtype, int size, const attention_matrices *m, int64_t first, int64_t row, int lane, const float (*results)[4],
                        float low_scale, float high_scale)
{
  const int columns = m->columns - lane % 4 * 2;
  UNROLL for (int half = 0; half < 2; half++)
  {
    const int64_t r = row + lane / 4 + 8 * half;
    const float scale = half ? high_scale : low_scale;
    char *to = place_in_row(dtype, m, first, r, lane);
    if (r >= m->rows) continue;
    UNROLL for (int n = 0; n < size / COLUMNS_OF_SUMS; n++)
    {
      const int column = n * COLUMNS_OF_SUMS;
      if (column < columns)
        store_two(dtype, to, column, m->together, column + 1 < columns, results[n][2 * half] * scale, results[n][2 * half + 1] * scale);
    }
  }
}

/* Sums of g y of a thread's two rows, which are the warp's rows from `row` on. */
BODY void sum_products(int dtype, int size, const attention_matrices *g, int64_t first, int64_t row, int lane, const float (*results)[4],
                       float sums[2])
{
  const int columns = g->columns - lane % 4 * 2;
  UNROLL for (int half = 0; half < 2; half++)
  {
    const int64_t r = row + lane / 4 + 8 * half;
    const char *from = place_in_row(dtype, g, first, r, lane);
    sums[half] = 0;
    if (r >= g->rows) continue;
    UNROLL for (int i = 0; i < size / 4; i++)
    {
      const int column = tile_row_of(0, i / 2 * 4 + i % 2);
      if (column < columns) sums[half] += load_float(dtype, from, column) * results[i / 2][2 * half + i % 2];
    }
  }
}

/* ---- blocks ----------------------------------------------------------------------------------------------------------------------- */

/* Where a block works: the first of its own rows, and where its matrix begins in each operand. */
typedef struct attention_place {
  int64_t matrix, row, own[2], tile[2];
  const uint8_t *mask;
  float left_out;
} attention_place;

BODY attention_place place_of(const attention_arguments *a, int64_t block, int has_second)
{
  attention_place p;
  p.matrix = split(block, a->row_blocks, &p.row);
  p.row *= BLOCK_ROWS;
  UNROLL for (int i = 0; i < 2; i++)
  {
    p.own[i] = i == 0 || has_second ? attention_first(a, &a->own[i], p.matrix) : 0;
    p.tile[i] = attention_first(a, &a->tile[i], p.matrix);
  }
  p.mask = a->mask ? a->mask + mask_first(a, p.matrix) : NULL;
  p.left_out = a->mask ? *a->left_out : 0;
  return p;
}

BODY int64_t first_of_warp(const attention_place *p, int thread)
{
  return p->row + thread / WARP_THREADS * WARP_ROWS;
}
