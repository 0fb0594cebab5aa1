/* pooling_plain.h: max pooling as the definition says, for one element type; included with TYPE, PLAIN(name) and LOWEST
 * defined. A NaN wins, the first of equals wins, padding never wins; a window of padding only is LOWEST, index NO_ARGMAX. */

/* The oracle: the first of equal maxima wins, a NaN wins over numbers; index is its place in the window, row by row. */
static void PLAIN(forward)(const flow_pooling *s, const TYPE *x, TYPE *y, uint8_t *index)
{
  for (int64_t row = 0; row < s->out[0]; row++) {
    for (int64_t column = 0; column < s->out[1]; column++) {
      for (int64_t c = 0; c < s->channels; c++) {
        TYPE best = LOWEST;
        int argmax = NO_ARGMAX;
        for (int64_t k = 0; k < s->size[0] * s->size[1]; k++) {
          int64_t iy = row * s->stride[0] - s->before[0] + k / s->size[1], ix = column * s->stride[1] - s->before[1] + k % s->size[1];
          if (iy < 0 || iy >= s->in[0] || ix < 0 || ix >= s->in[1]) continue;
          TYPE value = x[(iy * s->in[1] + ix) * s->channels + c];
          if (argmax == NO_ARGMAX || !(value <= best || isnan((double)best))) { best = value; argmax = (int)k; }
        }
        int64_t at = (row * s->out[1] + column) * s->channels + c;
        if (y) y[at] = best;
        if (index) index[at] = (uint8_t)argmax;
      }
    }
  }
}

/* All images. y or index may be NULL. */
static void PLAIN(pool_images)(const flow_pooling *s, const void *x, void *y, uint8_t *index)
{
  int64_t input = s->in[0] * s->in[1] * s->channels, output = s->out[0] * s->out[1] * s->channels;
  for (int64_t image = 0; image < s->images; image++)
    PLAIN(forward)(s, (const TYPE *)x + image * input, y ? (TYPE *)y + image * output : NULL, index ? index + image * output : NULL);
}
