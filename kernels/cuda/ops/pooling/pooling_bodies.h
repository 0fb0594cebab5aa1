/* pooling_bodies.h: bodies of pooling.h, for one way of computing (numbers.h); with POOLING_FLOATS those that only floats have, too. */

/* A NaN wins, the first of equals wins, padding never wins; a window of padding only is the lowest number, index POOL_NO_ARGMAX. */
BODY void NAME(max_pool)(int64_t i, const pooling_arguments *a)
{
  pool_place p = pool_place_of(i, a->small, a->channels, a->fours);
  int64_t top, bottom, left, right;
  pool_window_of(a, 0, p.row, &top, &bottom);
  pool_window_of(a, 1, p.column, &left, &right);
  NUMBER best[4], value[4];
  int argmax[4], fresh = 1;
  UNROLL for (int k = 0; k < 4; k++) {
#ifdef POOLING_FLOATS
    best[k] = -(NUMBER)INFINITY;
#else
    best[k] = a->lowest;
#endif
    argmax[k] = POOL_NO_ARGMAX;
  }
  int64_t start_row = p.row * a->stride[0] - a->before[0], start_column = p.column * a->stride[1] - a->before[1];
  for (int64_t row = top; row < bottom; row++) {
    for (int64_t column = left; column < right; column++, fresh = 0) {
      int at = (int)((row - start_row) * a->size[1] + column - start_column);
      LOAD_FOUR(a->from, a->from_dtype, pool_element(&p, a->large, row, column, a->channels), p.valid, a->together, value);
      UNROLL for (int k = 0; k < 4; k++) {
        if (!fresh && (value[k] <= best[k] || IS_NAN(best[k]))) continue;
        best[k] = value[k];
        argmax[k] = at;
      }
    }
  }
  int64_t to = pool_element(&p, a->small, p.row, p.column, a->channels);
  if (a->to) STORE_FOUR(a->to, a->to_dtype, to, p.valid, a->together, best);
  if (a->index_out) store_four_bytes(a->index_out, to, p.valid, a->index_together, argmax);
}

#ifdef POOLING_FLOATS
BODY void NAME(max_pool_gradient)(int64_t i, const pooling_arguments *a)
{
  pool_place p = pool_place_of(i, a->large, a->channels, a->fours);
  int64_t top, bottom, left, right;
  pool_windows_over(a, 0, p.row, &top, &bottom);
  pool_windows_over(a, 1, p.column, &left, &right);
  NUMBER sum[4], g[4];
  int argmax[4];
  UNROLL for (int k = 0; k < 4; k++) sum[k] = 0;
  for (int64_t row = top; row < bottom; row++) {
    for (int64_t column = left; column < right; column++) {
      int64_t from = pool_element(&p, a->small, row, column, a->channels);
      int mine = (int)((p.row + a->before[0] - row * a->stride[0]) * a->size[1] + p.column + a->before[1] - column * a->stride[1]);
      load_four_bytes(a->index, from, p.valid, a->index_together, argmax);
      LOAD_FOUR(a->from, a->from_dtype, from, p.valid, a->together, g);
      UNROLL for (int k = 0; k < 4; k++) sum[k] += argmax[k] == mine ? g[k] : 0;
    }
  }
  STORE_FOUR(a->to, a->to_dtype, pool_element(&p, a->large, p.row, p.column, a->channels), p.valid, a->together, sum);
}

BODY void NAME(average_pool)(int64_t i, const pooling_arguments *a)
{
  pool_place p = pool_place_of(i, a->small, a->channels, a->fours);
  int64_t top, bottom, left, right;
  pool_window_of(a, 0, p.row, &top, &bottom);
  pool_window_of(a, 1, p.column, &left, &right);
  NUMBER sum[4], value[4], cells = (NUMBER)((bottom - top) * (right - left));
  UNROLL for (int k = 0; k < 4; k++) sum[k] = 0;
  for (int64_t row = top; row < bottom; row++) {
    for (int64_t column = left; column < right; column++) {
      LOAD_FOUR(a->from, a->from_dtype, pool_element(&p, a->large, row, column, a->channels), p.valid, a->together, value);
      UNROLL for (int k = 0; k < 4; k++) sum[k] += value[k];
    }
  }
  UNROLL for (int k = 0; k < 4; k++) sum[k] /= cells;
  STORE_FOUR(a->to, a->to_dtype, pool_element(&p, a->small, p.row, p.column, a->channels), p.valid, a->together, sum);
}

BODY void NAME(average_pool_gradient)(int64_t i, const pooling_arguments *a)
{
  pool_place p = pool_place_of(i, a->large, a->channels, a->fours);
  int64_t top, bottom, left, right, first[2], last[2];
  pool_windows_over(a, 0, p.row, &top, &bottom);
  pool_windows_over(a, 1, p.column, &left, &right);
  NUMBER sum[4], g[4];
  UNROLL for (int k = 0; k < 4; k++) sum[k] = 0;
  for (int64_t row = top; row < bottom; row++) {
    pool_window_of(a, 0, row, &first[0], &last[0]);
    for (int64_t column = left; column < right; column++) {
      pool_window_of(a, 1, column, &first[1], &last[1]);
      NUMBER cells = (NUMBER)((last[0] - first[0]) * (last[1] - first[1]));
      LOAD_FOUR(a->from, a->from_dtype, pool_element(&p, a->small, row, column, a->channels), p.valid, a->together, g);
      UNROLL for (int k = 0; k < 4; k++) sum[k] += g[k] / cells;
    }
  }
  STORE_FOUR(a->to, a->to_dtype, pool_element(&p, a->large, p.row, p.column, a->channels), p.valid, a->together, sum);
}
#endif
