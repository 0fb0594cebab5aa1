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
    sums[rank * stride] = combine_channel(sums[rank * stride], sums[k * stride], gradient);
}

BODY channel_sum NAME(last_channel)(const channel_sum *sums, int count, int stride, int gradient)
{
  channel_sum s = sums[0];
  for (int k = 1; k < count && k < SUM_FEW; k++) s = combine_channel(s, sums[k * stride], gradient);
  return s;
}

BODY void NAME(batch_norm_sums)(int phase, int thread, int64_t block, void *shared, const batch_norm_arguments *a)
{
  int lane = thread & (a->lanes - 1), rank = thread / a->lanes, ranks = BLOCK_THREADS / a->lanes;
  int64_t of_channels, part = split(block, a->channel_blocks, &of_channels), channel = of_channels * a->lanes + lane;
  channel_sum *mine = (channel_sum *)shared + lane;
  if (channel >= a->channels) return;
  int64_t first = part * a->rows_per_part, last = smaller(first + a->rows_per_part, a->rows);
  if (phase == 0) mine[rank * a->lanes] = NAME(sum_channel)(a, channel, first + rank, ranks, last);
  if (phase == 1) NAME(gather_channel)(mine, rank, ranks, a->lanes, a->gradient);
  if (phase == 2 && rank == 0) a->sums[channel * a->parts + part] = NAME(last_channel)(mine, ranks, a->lanes, a->gradient);
}

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

/* A block is a channel. */
BODY void NAME(batch_norm_combine)(int phase, int thread, int64_t block, void *shared, const batch_norm_arguments *a)
{
  channel_sum *mine = (channel_sum *)shared, s;
  if (phase == 0) {
    s.count = s.first = s.second = 0;
    for (int64_t part = thread; part < a->parts; part += BLOCK_THREADS) s = combine_channel(s, a->sums[block * a->parts + part], a->gradient);
    mine[thread] = s;
  }
  if (phase == 1) NAME(gather_channel)(mine, thread, BLOCK_THREADS, 1, a->gradient);
  if (phase != 2 || thread != 0) return;
  s = NAME(last_channel)(mine, BLOCK_THREADS, 1, a->gradient);
  if (a->gradient) NAME(finish_gradient)(a, block, s);
  else NAME(finish_forward)(a, block, s);
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
