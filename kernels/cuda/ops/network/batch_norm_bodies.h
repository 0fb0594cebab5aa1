/* batch_norm_bodies.h: bodies of batch_norm.h, for one way of computing (numbers.h). */

/* Rows first, first + step ... below last of a channel, SUM_RUN at a time. Forward: differences from the mean of such a run and their
 * squares, then in double from the thread's first row. A run is held in registers, so that memory is read once. */
BODY channel_sum NAME(sum_of_channel)(const batch_norm_arguments *a, int64_t channel, int64_t first, int64_t step, int64_t last)
{
  channel_sum s;
  double total = 0, total_second = 0, origin = (double)LOAD(a->x, a->x_dtype, first * a->channels + channel);
  int64_t rows = 0;
  for (int64_t row = first; row < last; row += SUM_RUN * step) {
    NUMBER x[SUM_RUN], mean = 0, sum = 0, second = 0;
    int64_t left = (last - row + step - 1) / step;
    int count = (int)smaller(left, SUM_RUN);
    UNROLL for (int k = 0; k < SUM_RUN; k++) {
      x[k] = k < count ? LOAD(a->x, a->x_dtype, (row + k * step) * a->channels + channel) : 0;
      mean += x[k];
    }
    mean /= (NUMBER)count;
    UNROLL for (int k = 0; k < SUM_RUN; k++) {
      NUMBER d = k < count ? x[k] - mean : 0;
      sum += d;
      second += d * d;
    }
    double shift = (double)mean - origin, moved = (double)sum + shift * count;
    total += moved;
    total_second += (double)second + shift * ((double)sum + moved);
    rows += count;
  }
  s.count = (double)rows;
  s.first = origin + total / s.count;
  s.second = total_second - total * (total / s.count);
  if (s.second < 0) s.second = 0;
  return s;
}

/* The gradient's sums of g and of g (x - mean). */
BODY channel_sum NAME(sum_of_products)(const batch_norm_arguments *a, int64_t channel, int64_t first, int64_t step, int64_t last)
{
  channel_sum s;
  NUMBER mean = LOAD(a->given_mean, a->mean_dtype, channel);
  int64_t rows = 0;
  s.first = s.second = 0;
  for (int64_t row = first; row < last;) {
    int64_t end = smaller(last, row + GRADIENT_RUN * step);
    NUMBER sum = 0, second = 0;
    for (; row < end; row += step, rows++) {
      NUMBER w = LOAD(a->g, a->g_dtype, row * a->channels + channel);
      sum += w;
      second += w * (LOAD(a->x, a->x_dtype, row * a->channels + channel) - mean);
    }
    s.first += (double)sum;
    s.second += (double)second;
  }
  s.count = (double)rows;
  return s;
}

/* What a thread without rows gives is the sum of nothing, which combine_moments leaves out. */
BODY channel_sum NAME(sum_channel)(const batch_norm_arguments *a, int64_t channel, int64_t first, int64_t step, int64_t last)
{
  channel_sum none;
  none.count = none.first = none.second = 0;
  if (first >= last) return none;
  return a->gradient ? NAME(sum_of_products)(a, channel, first, step, last) : NAME(sum_of_channel)(a, channel, first, step, last);
}

/* A block's sums are combined in two steps: SUM_FEW threads of each channel take every SUM_FEW-th, one takes those few. `sums` has
 * `count` of them, `stride` apart. */
BODY void NAME(gather_channel)(channel_sum *sums, int rank, int count, int stride, int gradient)
{
  if (rank >= SUM_FEW) return;
  for (int k = rank + SUM_FEW; k < count; k += SUM_FEW)
    sums[rank * stride] = combine_moments(sums[rank * stride], sums[k * stride], gradient);
}

BODY channel_sum NAME(last_channel)(const channel_sum *sums, int count, int stride, int gradient)
{
  channel_sum s = sums[0];
  for (int k = 1; k < count && k < SUM_FEW; k++) s = combine_moments(s, sums[k * stride], gradient);
  return s;
}

/* y = scale (x - mean) + shift. The variance of no rows is 1. */
BODY void NAME(finish_forward)(const batch_norm_arguments *a, int64_t c, channel_sum s)
{
  NUMBER *coefficients = (NUMBER *)a->coefficients;
  double variance = a->rows > 0 ? s.second / (double)a->rows : 1;
  if (a->mean) STORE(a->mean, a->mean_dtype, c, (NUMBER)s.first);
  if (a->variance) STORE(a->variance, a->variance_dtype, c, (NUMBER)variance);
  coefficients[c] = (NUMBER)s.first;
  coefficients[a->channels + c] = (NUMBER)((double)LOAD(a->gamma, a->gamma_dtype, c) / sqrt(variance + a->epsilon));
  coefficients[2 * a->channels + c] = LOAD(a->beta, a->beta_dtype, c);
}

/* dx = scale g + slope (x - mean) + shift. */
BODY void NAME(finish_gradient)(const batch_norm_arguments *a, int64_t c, channel_sum s)
{
  NUMBER *coefficients = (NUMBER *)a->coefficients;
  double inverse = 1 / sqrt((double)LOAD(a->given_variance, a->variance_dtype, c) + a->epsilon);
  double scale = (double)LOAD(a->gamma, a->gamma_dtype, c) * inverse, n = a->rows > 0 ? (double)a->rows : 1;
  if (a->dgamma) STORE(a->dgamma, a->dgamma_dtype, c, (NUMBER)(s.second * inverse));
  if (a->dbeta) STORE(a->dbeta, a->beta_dtype, c, (NUMBER)s.first);
  coefficients[c] = LOAD(a->given_mean, a->mean_dtype, c);
  coefficients[a->channels + c] = (NUMBER)scale;
  coefficients[2 * a->channels + c] = (NUMBER)(-scale * s.first / n);
  coefficients[3 * a->channels + c] = (NUMBER)(-scale * inverse * inverse * s.second / n);
}

/* Sums first, first + step ... below last of a channel, as one. */
BODY channel_sum NAME(combine_some)(const channel_sum *sums, const batch_norm_arguments *a, int64_t channel, int64_t first, int64_t step,
                                    int64_t last)
{
  channel_sum s;
  s.count = s.first = s.second = 0;
  for (int64_t k = first; k < last; k += step) s = combine_moments(s, sums[k * a->channels + channel], a->gradient);
  return s;
}

/* What a block does after it has published its sums of a part and of `channels` channels, from `first` on, which are a piece: FINISH_PHASES
 * phases, of which the first three are the group's, the others all groups'. */
BODY void NAME(finish_block)(int phase, int thread, void *shared, const batch_norm_arguments *a, int64_t piece, int64_t part, int64_t first,
                             int channels)
{
  int *is_last = (int *)shared, teams = BLOCK_THREADS / channels, place = thread % channels, team = thread / channels;
  channel_sum *of_teams = (channel_sum *)((char *)shared + 64), s;
  uint32_t *counters = a->counters + piece * (a->groups + 1);
  int64_t channel = first + place, group = part / PARTS_TOGETHER, begin = group * PARTS_TOGETHER;
  int64_t end = smaller(begin + PARTS_TOGETHER, a->parts);
  if (phase == 0 && thread == 0) is_last[0] = a->parts == 1 || arrive(&counters[group], end - begin);
  if (phase == 3 && thread == 0) is_last[1] = is_last[0] && a->groups > 1 && arrive(&counters[a->groups], a->groups);
  if (phase % 3 == 0 || !is_last[phase / 3] || team >= teams || channel >= a->channels) return;
  if (phase == 1 || phase == 4) {
    observe();
    of_teams[team * channels + place] = phase == 1 ? NAME(combine_some)(a->sums, a, channel, begin + team, teams, end)
                                                   : NAME(combine_some)(a->group_sums, a, channel, team, teams, a->groups);
    return;
  }
  if (team > 0) return;
  s = of_teams[place];
  for (int k = 1; k < teams; k++) s = combine_moments(s, of_teams[k * channels + place], a->gradient);
  if (phase == 2 && a->groups > 1) {
    a->group_sums[group * a->channels + channel] = s;
    publish();
  } else if (a->gradient) {
    NAME(finish_gradient)(a, channel, s);
  } else {
    NAME(finish_forward)(a, channel, s);
  }
}

/* A block has `lanes` channels of a part of the rows; BLOCK_THREADS / lanes threads of each channel take the rows in turn. */
BODY void NAME(batch_norm_sums)(int phase, int thread, int64_t block, void *shared, const batch_norm_arguments *a)
{
  int lane = thread & (a->lanes - 1), rank = thread / a->lanes, ranks = BLOCK_THREADS / a->lanes;
  int64_t of_channels, part = split(block, a->channel_blocks, &of_channels), channel = of_channels * a->lanes + lane;
  channel_sum *mine = (channel_sum *)shared + lane;
  if (phase >= 3) NAME(finish_block)(phase - 3, thread, shared, a, of_channels, part, of_channels * a->lanes, a->lanes);
  if (phase >= 3 || channel >= a->channels) return;
  int64_t first = part * a->rows_per_part, last = smaller(first + a->rows_per_part, a->rows);
  if (phase == 0) mine[rank * a->lanes] = NAME(sum_channel)(a, channel, first + rank, ranks, last);
  if (phase == 1) NAME(gather_channel)(mine, rank, ranks, a->lanes, a->gradient);
  if (phase != 2 || rank != 0) return;
  a->sums[part * a->channels + channel] = NAME(last_channel)(mine, ranks, a->lanes, a->gradient);
  publish();
}

/* An element is four channels of a row. */
BODY void NAME(batch_norm_apply)(int64_t i, const batch_norm_arguments *a)
{
  int64_t four, row = split(i, a->fours, &four), channel = 4 * four, at = row * a->channels + channel;
  int valid = (int)smaller(4, a->channels - channel);
  NUMBER x[4], g[4], mean[4], scale[4], shift[4], slope[4], y[4];
  LOAD_FOUR(a->x, a->x_dtype, at, valid, a->together, x);
  LOAD_FOUR(a->coefficients, NUMBER_DTYPE, channel, valid, a->together, mean);
  LOAD_FOUR(a->coefficients, NUMBER_DTYPE, a->channels + channel, valid, a->together, scale);
  LOAD_FOUR(a->coefficients, NUMBER_DTYPE, 2 * a->channels + channel, valid, a->together, shift);
  if (a->gradient) {
    LOAD_FOUR(a->g, a->g_dtype, at, valid, a->together, g);
    LOAD_FOUR(a->coefficients, NUMBER_DTYPE, 3 * a->channels + channel, valid, a->together, slope);
    UNROLL for (int k = 0; k < 4; k++) y[k] = scale[k] * g[k] + (slope[k] * (x[k] - mean[k]) + shift[k]);
  } else {
    UNROLL for (int k = 0; k < 4; k++) y[k] = scale[k] * (x[k] - mean[k]) + shift[k];
  }
  if (a->addend) {
    LOAD_FOUR(a->addend, a->addend_dtype, at, valid, a->together, x);
    UNROLL for (int k = 0; k < 4; k++) y[k] += x[k];
  }
  if (a->relu) {
    UNROLL for (int k = 0; k < 4; k++) y[k] = y[k] < 0 ? 0 : y[k];      /* NaN stays */
  }
  STORE_FOUR(a->y, a->y_dtype, at, valid, a->together, y);
}
