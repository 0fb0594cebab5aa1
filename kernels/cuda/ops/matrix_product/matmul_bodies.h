/* matmul_bodies.h: bodies of matmul.h, for one way of computing (numbers.h). */

/* Four elements, `step` apart. */
BODY void NAME(load_across)(const void *p, int dtype, int64_t i, int64_t step, int valid, int together, NUMBER v[4])
{
  if (step == 1) {
    LOAD_FOUR(p, dtype, i, valid, together, v);
  } else {
    UNROLL for (int k = 0; k < 4; k++) v[k] = k < valid ? LOAD(p, dtype, i + k * step) : 0;
  }
}

/* c = act(sum + bias) for four columns of a row. */
BODY void NAME(finish_columns)(const matmul_arguments *a, int64_t at, int64_t column, int valid, int together, NUMBER sum[4])
{
  if (a->bias) {
    UNROLL for (int c = 0; c < 4; c++) sum[c] += c < valid ? LOAD(a->bias, a->bias_dtype, column + c) : 0;
  }
  if (a->relu) {
    UNROLL for (int c = 0; c < 4; c++) sum[c] = sum[c] < 0 ? 0 : sum[c];      /* NaN stays */
  }
  STORE_FOUR(a->c, a->c_dtype, at, valid, together, sum);
}

BODY void NAME(matmul_tiles)(int64_t i, const matmul_arguments *a)
{
  int64_t column_tile, row_tile, matrix, a_at = 0, b_at = 0, position;
  int64_t rest = split(i, a->column_tiles, &column_tile), row, column = 4 * column_tile;
  rest = split(rest, a->row_tiles, &row_tile);
  int64_t slice = split(rest, a->matrices, &matrix), left = matrix;
  row = 4 * row_tile;
  for (int axis = a->batch_rank - 1; axis >= 0; axis--) {
    left = split(left, a->batch[axis], &position);
    a_at += position * a->a_step[axis];
    b_at += position * a->b_step[axis];
  }
  a_at += row * a->a_row;
  b_at += column * a->b_column;
  int rows = (int)smaller(4, a->m - row), columns = (int)smaller(4, a->n - column);
  NUMBER total[4][4], sum[4][4], x[4], y[4];
  UNROLL for (int r = 0; r < 4; r++) {
    UNROLL for (int c = 0; c < 4; c++) total[r][c] = 0;
  }
  int64_t last = smaller(a->k, (slice + 1) * a->slice);
  for (int64_t k = slice * a->slice; k < last;) {
    int64_t end = smaller(last, k + MATMUL_BLOCK);
    UNROLL for (int r = 0; r < 4; r++) {
      UNROLL for (int c = 0; c < 4; c++) sum[r][c] = 0;
    }
    for (; k < end; k++) {
      NAME(load_across)(a->a, a->a_dtype, a_at + k * a->a_k, a->a_row, rows, a->a_together, x);
      NAME(load_across)(a->b, a->b_dtype, b_at + k * a->b_k, a->b_column, columns, a->b_together, y);
      UNROLL for (int r = 0; r < 4; r++) {
        UNROLL for (int c = 0; c < 4; c++) sum[r][c] = ADD_PRODUCT(sum[r][c], x[r], y[c]);
      }
    }
    UNROLL for (int r = 0; r < 4; r++) {
      UNROLL for (int c = 0; c < 4; c++) total[r][c] = ADD_PRODUCT(sum[r][c], total[r][c], 1);
    }
  }
  int64_t at = (matrix * a->m + row) * a->n + column;
  UNROLL for (int r = 0; r < 4; r++) {
    if (r >= rows) continue;
    if (!a->partial) {
      NAME(finish_columns)(a, at + r * a->n, column, columns, a->c_together, total[r]);
    } else {
      NUMBER *to = (NUMBER *)a->partial + slice * a->matrices * a->m * a->n + at + r * a->n;
      UNROLL for (int c = 0; c < 4; c++)
        if (c < columns) to[c] = total[r][c];
    }
  }
}

/* An element is one of c: the sum of its slices. */
BODY void NAME(matmul_slices)(int64_t i, const matmul_arguments *a)
{
  const NUMBER *from = (const NUMBER *)a->partial + i;
  int64_t column, size = a->matrices * a->m * a->n;
  NUMBER sum[4] = { 0, 0, 0, 0 };
  for (int64_t slice = 0; slice < a->slices; slice++) sum[0] = ADD_PRODUCT(sum[0], from[slice * size], 1);
  split(i, a->n, &column);
  NAME(finish_columns)(a, i, column, 1, 0, sum);
}
