/* image_bodies.h: bodies of images.h, for one way of loading and storing (numbers.h). Sums are double: equal pixels stay what they are. */

/* An element is four channels of an output pixel: the sum of rows.count by columns.count pixels, each by the product of its weights. */
BODY void NAME(resize_image)(int64_t i, const resize_arguments *a)
{
  int64_t four, column, row, pixel = split(i, a->fours, &four), image = split(split(pixel, a->columns.out, &column), a->rows.out, &row);
  int valid = (int)smaller(4, a->channels - 4 * four);
  NUMBER x[4], y[4];
  double sum[4] = { 0, 0, 0, 0 };
  for (int ky = 0; ky < a->rows.count[row]; ky++) {
    double row_weight = a->rows.weights[row * a->rows.taps + ky];
    int64_t line = (image * a->rows.in + a->rows.first[row] + ky) * a->columns.in + a->columns.first[column];
    for (int kx = 0; kx < a->columns.count[column]; kx++) {
      double weight = row_weight * a->columns.weights[column * a->columns.taps + kx];
      LOAD_FOUR(a->from, a->from_dtype, (line + kx) * a->channels + 4 * four, valid, a->together, x);
      UNROLL for (int k = 0; k < 4; k++) sum[k] += weight * (double)x[k];
    }
  }
  UNROLL for (int k = 0; k < 4; k++) y[k] = (NUMBER)sum[k];
  STORE_FOUR(a->to, a->to_dtype, pixel * a->channels + 4 * four, valid, a->together, y);
}

/* An element is four channels of an input pixel. Its readers are all outputs whose run holds it, so that at - first is a tap of each. */
BODY void NAME(resize_image_gradient)(int64_t i, const resize_arguments *a)
{
  int64_t four, at_column, at_row, pixel = split(i, a->fours, &four);
  int64_t image = split(split(pixel, a->columns.in, &at_column), a->rows.in, &at_row);
  int valid = (int)smaller(4, a->channels - 4 * four);
  NUMBER g[4], dx[4];
  double sum[4] = { 0, 0, 0, 0 };
  for (int64_t row = a->row_readers[at_row]; row < a->row_readers[a->rows.in + at_row]; row++) {
    double row_weight = a->rows.weights[row * a->rows.taps + at_row - a->rows.first[row]];
    for (int64_t column = a->column_readers[at_column]; column < a->column_readers[a->columns.in + at_column]; column++) {
      double weight = row_weight * a->columns.weights[column * a->columns.taps + at_column - a->columns.first[column]];
      int64_t from = ((image * a->rows.out + row) * a->columns.out + column) * a->channels + 4 * four;
      LOAD_FOUR(a->from, a->from_dtype, from, valid, a->together, g);
      UNROLL for (int k = 0; k < 4; k++) sum[k] += weight * (double)g[k];
    }
  }
  UNROLL for (int k = 0; k < 4; k++) dx[k] = (NUMBER)sum[k];
  STORE_FOUR(a->to, a->to_dtype, pixel * a->channels + 4 * four, valid, a->together, dx);
}

/* The eight numbers of an image are read again for each of its pixels: neighbours find them in the cache. */
BODY sample_taps NAME(taps_of_pixel)(const sampling_arguments *a, int64_t image, int64_t row, int64_t column)
{
  float t[8];
  UNROLL for (int k = 0; k < 8; k++) t[k] = (float)LOAD(a->t, a->t_dtype, image * 8 + k);
  return sample_taps_at(&a->attributes, t, row, column, a->height, a->width);
}

/* An element is four channels of an output pixel. Images have the same size before and after. */
BODY void NAME(sample_pixels)(int64_t i, const sampling_arguments *a)
{
  int64_t four, column, row, pixel = split(i, a->fours, &four), image = split(split(pixel, a->width, &column), a->height, &row);
  int valid = (int)smaller(4, a->channels - 4 * four);
  sample_taps taps = NAME(taps_of_pixel)(a, image, row, column);
  NUMBER x[4], sum[4], fill = (NUMBER)a->attributes.sampling.fill_value;
  UNROLL for (int k = 0; k < 4; k++) sum[k] = shares_fill(&taps, (double)fill) ? (NUMBER)taps.outside * fill : 0;
  UNROLL for (int tap = 0; tap < 4; tap++) {
    if (taps.pixel[tap] < 0) continue;
    LOAD_FOUR(a->x, a->x_dtype, (image * a->height * a->width + taps.pixel[tap]) * a->channels + 4 * four, valid, a->together, x);
    UNROLL for (int k = 0; k < 4; k++) sum[k] += x[k] * (NUMBER)taps.weight[tap];
  }
  STORE_FOUR(a->y, a->y_dtype, pixel * a->channels + 4 * four, valid, a->together, sum);
}

/* An element is a channel of an image. */
BODY void NAME(sample_pixels_gradient)(int64_t i, const sampling_arguments *a)
{
  int64_t channel, column, image = split(i, a->channels, &channel), pixels = a->height * a->width, base = image * pixels;
  for (int64_t pixel = 0; pixel < pixels; pixel++) STORE(a->y, a->y_dtype, (base + pixel) * a->channels + channel, 0);
  for (int64_t pixel = 0; pixel < pixels; pixel++) {
    int64_t row = split(pixel, a->width, &column);
    sample_taps taps = NAME(taps_of_pixel)(a, image, row, column);
    NUMBER g = LOAD(a->x, a->x_dtype, (base + pixel) * a->channels + channel);
    UNROLL for (int tap = 0; tap < 4; tap++) {
      int64_t to = (base + taps.pixel[tap]) * a->channels + channel;
      if (taps.pixel[tap] >= 0) STORE(a->y, a->y_dtype, to, LOAD(a->y, a->y_dtype, to) + g * (NUMBER)taps.weight[tap]);
    }
  }
}
