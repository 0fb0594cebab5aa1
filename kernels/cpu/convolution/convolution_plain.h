/* convolution_plain.h: convolution and its gradient as the formulas say, for one element type: the oracle of the direct
 * variant and the fall-back for every call. Included with REAL (float or double) and PLAIN(name) defined.
 * Sums of the forward pass are kept in double precision. */

/* Element `at` of x, which may be uint8. */
static REAL PLAIN(input)(const flow_geometry *s, const void *x, int64_t at)
{
  return s->bytes ? (REAL)((const uint8_t *)x)[at] : ((const REAL *)x)[at];
}

/* conv + bias at output (row, column, channel) of the image that begins at element `first` of x. */
static REAL PLAIN(value_at)(const flow_geometry *s, const void *x, int64_t first, const REAL *w, const REAL *b, int64_t row, int64_t column,
                            int64_t channel)
{
  double sum = 0;
  int64_t group = channel / s->group_out;
  for (int64_t ky = 0; ky < s->kernel[0]; ky++) {
    int64_t iy = row * s->stride[0] + ky * s->dilation[0] - s->before[0];
    if (iy < 0 || iy >= s->in[0]) continue;
    for (int64_t kx = 0; kx < s->kernel[1]; kx++) {
      int64_t ix = column * s->stride[1] + kx * s->dilation[1] - s->before[1];
      if (ix < 0 || ix >= s->in[1]) continue;
      int64_t input = first + (iy * s->in[1] + ix) * s->channels_in + group * s->group_in;
      const REAL *weight = w + (ky * s->kernel[1] + kx) * s->group_in * s->channels_out + channel;
      for (int64_t c = 0; c < s->group_in; c++) sum += (double)PLAIN(input)(s, x, input + c) * (double)weight[c * s->channels_out];
    }
  }
  return (REAL)(sum * s->input_scale + (s->has_bias ? (double)b[channel] : 0.0));
}

/* y and, with pooling, the index of each window's maximum. A NaN wins; the first of equals wins. added: to each result; may be NULL. */
static void PLAIN(forward)(const flow_geometry *s, const void *x, int64_t first, const REAL *w, const REAL *b, const REAL *added, REAL *y,
                           uint8_t *index)
{
  for (int64_t row = 0; row < s->result[0]; row++) {
    for (int64_t column = 0; column < s->result[1]; column++) {
      for (int64_t channel = 0; channel < s->channels_out; channel++) {
        int64_t top = row * s->pool_stride[0], left = column * s->pool_stride[1], argmax = 0;
        REAL best = PLAIN(value_at)(s, x, first, w, b, top, left, channel);
        for (int64_t k = 1; k < s->pool[0] * s->pool[1] && best == best; k++) {
          REAL value = PLAIN(value_at)(s, x, first, w, b, top + k / s->pool[1], left + k % s->pool[1], channel);
          if (value > best || value != value) { best = value; argmax = k; }
        }
        if (added) best += added[(row * s->result[1] + column) * s->channels_out + channel];
        if (s->relu && best <= 0) { best = 0; argmax = NO_ARGMAX; }
        if (!s->pooled && best > (REAL)s->ceiling) best = (REAL)s->ceiling;
        int64_t at = (row * s->result[1] + column) * s->channels_out + channel;
        if (y) y[at] = best;
        if (s->pooled && index) index[at] = (uint8_t)argmax;
      }
    }
  }
}

/* The call: image after image. */
static void PLAIN(run)(const flow_call *call, const flow_geometry *s)
{
  const REAL *w = call->inputs[1].data, *b = s->has_bias ? call->inputs[2].data : NULL;
  REAL *y = call->outputs[0].data;
  const REAL *added = (const REAL *)(const void *)flow_added(call); /* of floats alone */
  uint8_t *index = call->outputs[1].data;
  int64_t input = s->in[0] * s->in[1] * s->channels_in, output = s->result[0] * s->result[1] * s->channels_out;
  for (int64_t image = 0; image < s->images; image++) PLAIN(forward)
  (s, call->inputs[0].data, image * input, w, b, added ? added + image * output : NULL, y ? y + image * output : NULL,
   s->pooled && index ? index + image * output : NULL);
}

/* Spreads the gradient g of conv output (row, column, channel) to dx, dw, db; each may be NULL. */
static void PLAIN(spread)(const flow_geometry *s, REAL g, int64_t row, int64_t column, int64_t channel, const void *x,
                          int64_t first, const REAL *w, REAL *dx, REAL *dw, REAL *db)
{
  int64_t group = channel / s->group_out;
  if (db) db[channel] += g;
  for (int64_t ky = 0; ky < s->kernel[0]; ky++) {
    int64_t iy = row * s->stride[0] + ky * s->dilation[0] - s->before[0];
    if (iy < 0 || iy >= s->in[0]) continue;
    for (int64_t kx = 0; kx < s->kernel[1]; kx++) {
      int64_t ix = column * s->stride[1] + kx * s->dilation[1] - s->before[1];
      if (ix < 0 || ix >= s->in[1]) continue;
      int64_t input = (iy * s->in[1] + ix) * s->channels_in + group * s->group_in;
      int64_t weight = (ky * s->kernel[1] + kx) * s->group_in * s->channels_out + channel;
      for (int64_t c = 0; c < s->group_in; c++, weight += s->channels_out) {
        if (dx) dx[input + c] += g * w[weight];
        if (dw) dw[weight] += g * PLAIN(input)(s, x, first + input + c);
      }
    }
  }
}

/* The gradients of x, w and b, as far as the call asks for them (data NULL: not asked for). Elements that pooling or relu discarded
 * contribute nothing, and neither do those whose index is not a cell of a window: NO_ARGMAX, or what a raw op was given. */
static void PLAIN(run_gradient)(const flow_call *call, const flow_geometry *s)
{
  const REAL *g = call->inputs[0].data, *w = call->inputs[2].data, *y = call->inputs[3].data;
  const uint8_t *index = call->inputs[4].data;
  REAL *dx = call->outputs[0].data, *dw = call->outputs[1].data, *db = call->outputs[2].data;
  int64_t input = s->in[0] * s->in[1] * s->channels_in, output = s->result[0] * s->result[1] * s->channels_out;
  if (dx) memset(dx, 0, (size_t)(s->images * input) * sizeof(REAL));
  if (dw && !call->accumulate) memset(dw, 0, (size_t)(s->kernel[0] * s->kernel[1] * s->group_in * s->channels_out) * sizeof(REAL));
  if (db && !call->accumulate) memset(db, 0, (size_t)s->channels_out * sizeof(REAL));
  for (int64_t image = 0; image < s->images; image++, dx = dx ? dx + input : NULL) {
    for (int64_t i = 0; i < output; i++) {
      int64_t at = image * output + i, channel = i % s->channels_out;
      int64_t column = i / s->channels_out % s->result[1], row = i / s->channels_out / s->result[1];
      if (s->pooled) {
        if (index[at] >= s->pool[0] * s->pool[1]) continue;
        row = row * s->pool_stride[0] + index[at] / s->pool[1];
        column = column * s->pool_stride[1] + index[at] % s->pool[1];
      } else if (s->relu && !(y[at] > 0)) {
        continue;
      }
      PLAIN(spread)(s, g[at], row, column, channel, call->inputs[1].data, image * input, w, dx, dw, db);
    }
  }
}
