/* pooling_bodies.h: bodies of pooling.h, for one way of computing (numbers.h); with POOLING_FLOATS those that only floats have, too. */

/* The `valid` of eight numbers from i on; others are 0, or not stored. */
BODY void NAME(load_channels)(const pooling_arguments *a, int64_t i, int valid, NUMBER v[POOL_CHANNELS])
{
#if IN_FLOAT
  if (a->together == POOL_CHANNELS) {
    load_eight(a->from, IN_FLOAT == 1 ? FLOW_FLOAT32 : a->from_dtype, 0, i, i + POOL_CHANNELS, 1, v);
    return;
  }
#endif
  UNROLL for (int k = 0; k < POOL_CHANNELS; k += 4)
    LOAD_FOUR(a->from, a->from_dtype, i + k, valid - k, a->together && k < valid, v + k);
}

BODY void NAME(store_channels)(const pooling_arguments *a, int64_t i, int valid, const NUMBER v[POOL_CHANNELS])
{
#if IN_FLOAT == 2
  if (a->together == POOL_CHANNELS && a->to_dtype != FLOW_FLOAT32) {
    store_eight(a->to, a->to_dtype, i, i + POOL_CHANNELS, 1, v);
    return;
  }
#endif
  UNROLL for (int k = 0; k < POOL_CHANNELS; k += 4)
    STORE_FOUR(a->to, a->to_dtype, i + k, valid - k, a->together && k < valid, v + k);
}

/* A NaN wins, the first of equals wins, padding never wins; a window of padding only is the lowest number, index POOL_NO_ARGMAX. */
BODY void NAME(max_pool)(int64_t i, const pooling_arguments *a)
{
  pool_place p = pool_place_of(i, a->small, a->channels, a->eights);
  int64_t top, bottom, left, right;
  pool_window_of(a, 0, p.row, &top, &bottom);
  pool_window_of(a, 1, p.column, &left, &right);
  NUMBER best[POOL_CHANNELS], value[POOL_CHANNELS];
  int argmax[POOL_CHANNELS], fresh = 1;
  UNROLL for (int k = 0; k < POOL_CHANNELS; k++) {
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
      NAME(load_channels)(a, pool_element(&p, a->large, row, column, a->channels), p.valid, value);
      UNROLL for (int k = 0; k < POOL_CHANNELS; k++) {
        if (!fresh && (value[k] <= best[k] || IS_NAN(best[k]))) continue;
        best[k] = value[k];
        argmax[k] = at;
      }
    }
  }
  int64_t to = pool_element(&p, a->small, p.row, p.column, a->channels);
  if (a->to) NAME(store_channels)(a, to, p.valid, best);
  if (a->index_out) store_places(a->index_out, to, p.valid, a->index_together, argmax);
}

#ifdef POOLING_FLOATS
BODY void NAME(max_pool_gradient)(int64_t i, const pooling_arguments *a)
{
  pool_place p = pool_place_of(i, a->large, a->channels, a->eights);
  int64_t top, bottom, left, right;
  pool_windows_over(a, 0, p.row, &top, &bottom);
  pool_windows_over(a, 1, p.column, &left, &right);
  NUMBER sum[POOL_CHANNELS], g[POOL_CHANNELS];
  int argmax[POOL_CHANNELS];
  UNROLL for (int k = 0; k < POOL_CHANNELS; k++) sum[k] = 0;
  for (int64_t row = top; row < bottom; row++) {
    for (int64_t column = left; column < right; column++) {
      int64_t from = pool_element(&p, a->small, row, column, a->channels);
      int mine = (int)((p.row + a->before[0] - row * a->stride[0]) * a->size[1] + p.column + a->before[1] - column * a->stride[1]);
      load_places(a->index, from, p.valid, a->index_together, argmax);
      NAME(load_channels)(a, from, p.valid, g);
      UNROLL for (int k = 0; k < POOL_CHANNELS; k++) sum[k] += argmax[k] == mine ? g[k] : 0;
    }
  }
  NAME(store_channels)(a, pool_element(&p, a->large, p.row, p.column, a->channels), p.valid, sum);
}

BODY void NAME(average_pool)(int64_t i, const pooling_arguments *a)
{
  pool_place p = pool_place_of(i, a->small, a->channels, a->eights);
  int64_t top, bottom, left, right;
  pool_window_of(a, 0, p.row, &top, &bottom);
  pool_window_of(a, 1, p.column, &left, &right);
  NUMBER sum[POOL_CHANNELS], value[POOL_CHANNELS], cells = (NUMBER)((bottom - top) * (right - left));
  UNROLL for (int k = 0; k < POOL_CHANNELS; k++) sum[k] = 0;
  for (int64_t row = top; row < bottom; row++) {
    for (int64_t column = left; column < right; column++) {
      NAME(load_channels)(a, pool_element(&p, a->large, row, column, a->channels), p.valid, value);
      UNROLL for (int k = 0; k < POOL_CHANNELS; k++) sum[k] += value[k];
    }
  }
  UNROLL for (int k = 0; k < POOL_CHANNELS; k++) sum[k] /= cells;
  NAME(store_channels)(a, pool_element(&p, a->small, p.row, p.column, a->channels), p.valid, sum);
}

BODY void NAME(average_pool_gradient)(int64_t i, const pooling_arguments *a)
{
  pool_place p = pool_place_of(i, a->large, a->channels, a->eights);
  int64_t top, bottom, left, right, first[2], last[2];
  pool_windows_over(a, 0, p.row, &top, &bottom);
  pool_windows_over(a, 1, p.column, &left, &right);
  NUMBER sum[POOL_CHANNELS], g[POOL_CHANNELS];
  UNROLL for (int k = 0; k < POOL_CHANNELS; k++) sum[k] = 0;
  for (int64_t row = top; row < bottom; row++) {
    pool_window_of(a, 0, row, &first[0], &last[0]);
    for (int64_t column = left; column < right; column++) {
      pool_window_of(a, 1, column, &first[1], &last[1]);
      NUMBER cells = (NUMBER)((last[0] - first[0]) * (last[1] - first[1]));
      NAME(load_channels)(a, pool_element(&p, a->small, row, column, a->channels), p.valid, g);
      UNROLL for (int k = 0; k < POOL_CHANNELS; k++) sum[k] += g[k] / cells;
    }
  }
  NAME(store_channels)(a, pool_element(&p, a->large, p.row, p.column, a->channels), p.valid, sum);
}
#endif
