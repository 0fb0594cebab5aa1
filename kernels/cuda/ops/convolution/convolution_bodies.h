/* convolution_bodies.h: bodies of convolution.h, for one way of computing (numbers.h). */

/* Element `at` of x, which may be uint8. */
BODY NUMBER NAME(load_input)(const convolution_arguments *a, int64_t at)
{
  return a->x_dtype == FLOW_UINT8 ? (NUMBER)((const uint8_t *)a->x)[at] : LOAD(a->x, a->x_dtype, at);
}

/* conv + bias at output (row, column), for the four channels of p. */
BODY void NAME(convolve_pixel)(const convolution_arguments *a, const convolution_place *p, int64_t row, int64_t column, NUMBER value[4])
{
  int64_t channel = p->group * a->group_out + p->channel;
  NUMBER tap[4], w[4];
  UNROLL for (int k = 0; k < 4; k++) value[k] = 0;
  for (int64_t ky = 0; ky < a->kernel[0]; ky++) {
    int64_t iy = row * a->stride[0] + ky * a->dilation[0] - a->before[0];
    if (iy < 0 || iy >= a->in[0]) continue;
    for (int64_t kx = 0; kx < a->kernel[1]; kx++) {
      int64_t ix = column * a->stride[1] + kx * a->dilation[1] - a->before[1];
      if (ix < 0 || ix >= a->in[1]) continue;
      int64_t input = ((p->image * a->in[0] + iy) * a->in[1] + ix) * a->channels_in + p->group * a->group_in;
      int64_t weight = (ky * a->kernel[1] + kx) * a->group_in * a->channels_out + channel;
      UNROLL for (int k = 0; k < 4; k++) tap[k] = 0;
      for (int64_t c = 0; c < a->group_in; c++) {
        NUMBER x = NAME(load_input)(a, input + c);
        LOAD_FOUR(a->w, a->w_dtype, weight + c * a->channels_out, p->valid, a->w_together, w);
        UNROLL for (int k = 0; k < 4; k++) tap[k] += x * w[k];
      }
      UNROLL for (int k = 0; k < 4; k++) value[k] += tap[k];
    }
  }
  UNROLL for (int k = 0; k < 4; k++)
    value[k] = value[k] * (NUMBER)a->input_scale + (a->b && k < p->valid ? LOAD(a->b, a->b_dtype, channel + k) : 0);
}

/* y = pool(act(conv + b)) and the index of each window's maximum: a NaN wins, the first of equals wins. */
BODY void NAME(convolve)(int64_t i, const convolution_arguments *a)
{
  convolution_place p = convolution_place_of(i, a->result, a->group_fours, a->groups, a->group_out);
  NUMBER best[4] = { 0, 0, 0, 0 }, value[4];
  int argmax[4] = { 0, 0, 0, 0 }, cells = (int)(a->pool[0] * a->pool[1]);
  for (int cell = 0; cell < cells; cell++) {
    int64_t row = p.row * a->pool_stride[0] + cell / (int)a->pool[1], column = p.column * a->pool_stride[1] + cell % (int)a->pool[1];
    NAME(convolve_pixel)(a, &p, row, column, value);
    UNROLL for (int k = 0; k < 4; k++) {
      if (cell > 0 && (value[k] <= best[k] || IS_NAN(best[k]))) continue;
      best[k] = value[k];
      argmax[k] = cell;
    }
  }
  UNROLL for (int k = 0; k < 4; k++) {
    if (!a->relu || !(best[k] <= 0)) continue;
    best[k] = 0;
    argmax[k] = CONVOLUTION_NO_ARGMAX;
  }
  int64_t at = ((p.image * a->result[0] + p.row) * a->result[1] + p.column) * a->channels_out + p.group * a->group_out + p.channel;
  if (a->to) STORE_FOUR(a->to, a->to_dtype, at, p.valid, a->to_together, best);
  if (a->index_out) store_four_bytes(a->index_out, at, p.valid, a->index_together, argmax);
}

/* The gradient of four channels of a pixel of the convolution's own output. */
BODY void NAME(convolution_spread)(int64_t i, const convolution_arguments *a)
{
  convolution_place p = convolution_place_of(i, a->out, a->all_fours, 1, a->channels_out);
  NUMBER sum[4] = { 0, 0, 0, 0 }, g[4], y[4];
  int argmax[4];
  int64_t at = ((p.image * a->out[0] + p.row) * a->out[1] + p.column) * a->channels_out + p.channel, rest;
  if (!a->pooled) {
    LOAD_FOUR(a->g, a->g_dtype, at, p.valid, a->g_together, g);
    LOAD_FOUR(a->y, a->y_dtype, at, p.valid, a->y_together, y);
    UNROLL for (int k = 0; k < 4; k++) sum[k] = y[k] > 0 ? g[k] : 0;
  } else {
    int64_t top = p.row < a->pool[0] ? 0 : split(p.row - a->pool[0], a->pool_stride[0], &rest) + 1;
    int64_t left = p.column < a->pool[1] ? 0 : split(p.column - a->pool[1], a->pool_stride[1], &rest) + 1;
    int64_t bottom = smaller(split(p.row, a->pool_stride[0], &rest) + 1, a->result[0]);
    int64_t right = smaller(split(p.column, a->pool_stride[1], &rest) + 1, a->result[1]);
    for (int64_t row = top; row < bottom; row++) {
      for (int64_t column = left; column < right; column++) {
        int64_t from = ((p.image * a->result[0] + row) * a->result[1] + column) * a->channels_out + p.channel;
        int mine = (int)((p.row - row * a->pool_stride[0]) * a->pool[1] + p.column - column * a->pool_stride[1]);
        load_four_bytes(a->index, from, p.valid, a->index_together, argmax);
        LOAD_FOUR(a->g, a->g_dtype, from, p.valid, a->g_together, g);
        UNROLL for (int k = 0; k < 4; k++) sum[k] += argmax[k] == mine ? g[k] : 0;
      }
    }
  }
  STORE_FOUR(a->spread, a->spread_dtype, at, p.valid, a->spread_together, sum);
}

/* Four channels of a pixel of dx. */
BODY void NAME(convolution_input)(int64_t i, const convolution_arguments *a)
{
  convolution_place p = convolution_place_of(i, a->in, a->in_fours, a->groups, a->group_in);
  NUMBER sum[4] = { 0, 0, 0, 0 }, tap[4], z[4], w[4];
  for (int64_t ky = 0; ky < a->kernel[0]; ky++) {
    int64_t row = convolution_reader(a, 0, p.row, ky);
    if (row < 0) continue;
    for (int64_t kx = 0; kx < a->kernel[1]; kx++) {
      int64_t column = convolution_reader(a, 1, p.column, kx);
      if (column < 0) continue;
      int64_t from = ((p.image * a->out[0] + row) * a->out[1] + column) * a->channels_out + p.group * a->group_out;
      int64_t weight = ((ky * a->kernel[1] + kx) * a->group_in + p.channel) * a->channels_out + p.group * a->group_out;
      UNROLL for (int k = 0; k < 4; k++) tap[k] = 0;
      for (int64_t c = 0; c < a->group_out; c += 4) {
        int valid = (int)smaller(4, a->group_out - c);
        LOAD_FOUR(a->spread, a->spread_dtype, from + c, valid, a->spread_together, z);
        UNROLL for (int k = 0; k < 4; k++) {
          if (k >= p.valid) continue;
          LOAD_FOUR(a->w, a->w_dtype, weight + k * a->channels_out + c, valid, a->w_together, w);
          UNROLL for (int j = 0; j < 4; j++) tap[k] += z[j] * w[j];
        }
      }
      UNROLL for (int k = 0; k < 4; k++) sum[k] += tap[k];
    }
  }
  int64_t at = ((p.image * a->in[0] + p.row) * a->in[1] + p.column) * a->channels_in + p.group * a->group_in + p.channel;
  STORE_FOUR(a->to, a->to_dtype, at, p.valid, a->to_together, sum);
}

/* Where the input of a weight is, seen from the first tap of an output: position weights is the input that is always 1. */
typedef struct NAME(weight_place) { int64_t offset; int row, column, is_one, known; } NAME(weight_place);

BODY NAME(weight_place) NAME(weight_place_of)(const convolution_arguments *a, int64_t group, int64_t position)
{
  NAME(weight_place) p;
  int64_t c, kx, ky = split(split(position, a->group_in, &c), a->kernel[1], &kx);
  p.known = position < a->first_position + a->positions;
  p.is_one = position >= a->weights;
  p.row = (int)(ky * a->dilation[0] - a->before[0]);
  p.column = (int)(kx * a->dilation[1] - a->before[1]);
  p.offset = (p.row * a->in[1] + p.column) * a->channels_in + group * a->group_in + c;
  return p;
}

/* Sums over one slice of the pixels, for four positions and four channels of a group. */
BODY void NAME(convolution_weights)(int64_t i, const convolution_arguments *a)
{
  int64_t four, group, position, ox, oy, tiles = (a->positions + 3) / 4;
  i = split(i, a->group_fours, &four);
  i = split(i, a->groups, &group);
  int64_t slice = split(i, tiles, &position), channel = group * a->group_out + 4 * four;
  int valid = (int)smaller(4, a->group_out - 4 * four);
  position = a->first_position + 4 * position;
  NAME(weight_place) places[4];
  UNROLL for (int r = 0; r < 4; r++) places[r] = NAME(weight_place_of)(a, group, position + r);
  NUMBER total[4][4], sum[4][4], z[4];
  UNROLL for (int r = 0; r < 4; r++) {
    UNROLL for (int c = 0; c < 4; c++) total[r][c] = 0;
  }
  int64_t pixel = slice * a->slice, last = smaller(a->pixels, pixel + a->slice);
  int64_t image = split(split(pixel, a->out[1], &ox), a->out[0], &oy);
  while (pixel < last) {
    int64_t end = smaller(last, pixel + PIXEL_RUN);
    UNROLL for (int r = 0; r < 4; r++) {
      UNROLL for (int c = 0; c < 4; c++) sum[r][c] = 0;
    }
    for (; pixel < end; pixel++) {
      int64_t row = oy * a->stride[0], column = ox * a->stride[1];
      int64_t base = ((image * a->in[0] + row) * a->in[1] + column) * a->channels_in;
      LOAD_FOUR(a->spread, a->spread_dtype, pixel * a->channels_out + channel, valid, a->spread_together, z);
      UNROLL for (int r = 0; r < 4; r++) {
        int64_t iy = row + places[r].row, ix = column + places[r].column;
        if (!places[r].known || (!places[r].is_one && (iy < 0 || iy >= a->in[0] || ix < 0 || ix >= a->in[1]))) continue;
        NUMBER x = places[r].is_one ? 1 : NAME(load_input)(a, base + places[r].offset);
        UNROLL for (int c = 0; c < 4; c++) sum[r][c] += x * z[c];
      }
      if (++ox < a->out[1]) continue;
      ox = 0;
      if (++oy < a->out[0]) continue;
      oy = 0;
      image++;
    }
    UNROLL for (int r = 0; r < 4; r++) {
      UNROLL for (int c = 0; c < 4; c++) total[r][c] += sum[r][c];
    }
  }
  UNROLL for (int r = 0; r < 4; r++) {
    NUMBER *to = (NUMBER *)a->partial + (slice * a->positions + position + r - a->first_position) * a->channels_out + channel;
    if (!places[r].known) continue;
    UNROLL for (int c = 0; c < 4; c++)
      if (c < valid) to[c] = total[r][c];
  }
}

/* An element of dw or db: the sum of its slices. */
BODY void NAME(convolution_slices)(int64_t i, const convolution_arguments *a)
{
  const NUMBER *from = (const NUMBER *)a->partial + i;
  int64_t channel, position = a->first_position + split(i, a->channels_out, &channel), size = a->positions * a->channels_out;
  NUMBER sum = 0;
  for (int64_t slice = 0; slice < a->slices; slice++) sum += from[slice * size];
  if (position < a->weights) {
    int64_t at = position * a->channels_out + channel;
    sum *= (NUMBER)a->input_scale;
    STORE(a->dw, a->dw_dtype, at, a->accumulate ? LOAD(a->dw, a->dw_dtype, at) + sum : sum);
  } else {
    STORE(a->db, a->db_dtype, channel, a->accumulate ? LOAD(a->db, a->db_dtype, channel) + sum : sum);
  }
}
