/* resize.c: every method is separable: taps for each axis, then per output row a weighted sum of input rows (long
 * vectors) and a weighted sum of neighbours in it. An output row is made as soon as its input rows are there.
 *
 * A resizer is one thread's. For each picture: flow_resize_begin, then lines from the top, by flow_resize_lines where
 * they are in memory already, or by flow_resize_room into its own window, and flow_resize_end. The bits of the result do
 * not depend on how lines come. */
#include "image/resize_parts.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include "base/float_state.h"
#include "base/memory.h"

enum {
  MORE_LINES = 8,        /* in the window beside those that one row needs: so seldom are lines moved */
  /* Lines of the window begin one byte after a multiple of this: libjpeg-turbo (jdcolext) writes lines at aligned addresses past the
   * caches (movntdq), from where they would be fetched back at once. */
  LINE_ALIGNMENT = 64,
};

void flow_resizer_free(flow_resizer *resizer)
{
  flow_resize_taps *taps[2] = { &resizer->vertical, &resizer->horizontal };
  for (int i = 0; i < 2; i++) {
    flow_free(taps[i]->first);
    flow_free(taps[i]->weights);
  }
  flow_free(resizer->shuffles.base);
  flow_free(resizer->shuffles.steps);
  flow_free(resizer->row);
  flow_free(resizer->bytes_row);
  flow_free(resizer->window);
  *resizer = (flow_resizer){ 0 };
}

/* ---- fitting ------------------------------------------------------------------------------------------------------------------------ */

/* Towards zero, but not to zero; a line of pixels that is to fill a high picture gives sizes that no int holds. */
static int at_least_one(float size)
{
  if (size >= 0x1p31f) return INT_MAX;
  return size < 1.0f ? 1 : (int)size;
}

/* Keras' smart_resize, in float32 as it does where sizes are not known beforehand. The part of the input in the middle
 * that has the output's ratio of sides, as far as whole pixels allow. */
static flow_fitting fit_by_cropping(flow_fitting f)
{
  int crop_height = at_least_one((float)((int64_t)f.width * f.to_height) / (float)f.to_width);
  int crop_width = at_least_one((float)((int64_t)f.height * f.to_width) / (float)f.to_height);
  if (crop_height > f.height) crop_height = f.height;
  if (crop_width > f.width) crop_width = f.width;
  f.top = (f.height - crop_height) / 2;
  f.left = (f.width - crop_width) / 2;
  f.height = crop_height;
  f.width = crop_width;
  return f;
}

/* tf.image.resize_with_pad. The whole input goes to a part of the output with its own ratio of sides, in the middle. */
static flow_fitting fit_by_padding(flow_fitting f)
{
  float ratio = fmaxf((float)f.width / (float)f.to_width, (float)f.height / (float)f.to_height);
  float height = (float)f.height / ratio, width = (float)f.width / ratio;
  float top = floorf(((float)f.to_height - height) / 2), left = floorf(((float)f.to_width - width) / 2);
  int inner_height = at_least_one(height), inner_width = at_least_one(width);
  if (inner_height > f.to_height) inner_height = f.to_height;
  if (inner_width > f.to_width) inner_width = f.to_width;
  f.to_top = top > 0 ? (int)top : 0;
  f.to_left = left > 0 ? (int)left : 0;
  if (f.to_top + inner_height > f.to_height) f.to_top = f.to_height - inner_height;
  if (f.to_left + inner_width > f.to_width) f.to_left = f.to_width - inner_width;
  f.to_height = inner_height;
  f.to_width = inner_width;
  return f;
}

/* ---- rows as their lines come ------------------------------------------------------------------------------------------------------- */

static size_t size_of(int dtype) { return dtype == FLOW_FLOAT32 ? sizeof(float) : 1; }

/* Taps and shuffles are kept from picture to picture of the same sizes, which is the usual case in a data set. Nothing
 * is allocated after this but the window. Zeros follow the row, which vectors may read (FLOW_ROW_PADDING). `to` is the
 * caller's until the picture is done. */
flow_status flow_resize_begin(flow_resizer *r, int dtype, int height, int width, int channels, int method, int fit, int to_height,
                              int to_width, int to_dtype, void *to)
{
  FLOW_DEFAULT_FLOATS;
  flow_fitting f = { 0, 0, height, width, 0, 0, to_height, to_width };
  int64_t to_stride = (int64_t)to_width * channels;
  if (fit == FLOW_CROP) f = fit_by_cropping(f);
  if (fit == FLOW_PAD) {
    f = fit_by_padding(f);
    memset(to, 0, (size_t)to_height * (size_t)to_stride * size_of(to_dtype));
  }
  int64_t n = (int64_t)f.width * channels;
  if (n + FLOW_ROW_PADDING > INT32_MAX) return flow_fail(FLOW_UNSUPPORTED, "a row of %d pixels is too long", width);
  FLOW_TRY(flow_taps_prepare(&r->vertical, method, f.height, f.to_height));
  FLOW_TRY(flow_taps_prepare(&r->horizontal, method, f.width, f.to_width));
  FLOW_TRY(flow_shuffles_prepare(&r->shuffles, &r->horizontal, channels));
  FLOW_TRY(flow_grow(&r->row, sizeof *r->row, (int)n + FLOW_ROW_PADDING, &r->row_capacity));
  if (to_dtype == FLOW_UINT8) FLOW_TRY(flow_grow(&r->bytes_row, sizeof *r->bytes_row, (int)to_stride, &r->bytes_row_capacity));
  for (int i = 0; i < FLOW_ROW_PADDING; i++) r->row[n + i] = 0;
  r->fitting = f;
  r->dtype = dtype;
  r->to_dtype = to_dtype;
  r->channels = channels;
  r->height = height;
  r->stride = (int64_t)width * channels;
  r->to = to;
  r->to_stride = to_stride;
  r->next = r->first = r->held = r->window_lines = 0;
  return FLOW_OK;
}

/* The first line that the next row of the output needs; after the last one when all are made. */
static int first_needed(const flow_resizer *r)
{
  return r->next < r->fitting.to_height ? r->fitting.top + r->vertical.first[r->next] : r->height;
}

/* The next row of the output out of the sums of lines. */
static void make_row(flow_resizer *r)
{
  const flow_fitting *f = &r->fitting;
  int64_t at = (f->to_top + r->next) * r->to_stride + (int64_t)f->to_left * r->channels, n = (int64_t)f->to_width * r->channels;
  float *row = r->to_dtype == FLOW_FLOAT32 ? (float *)r->to + at : r->bytes_row;
  flow_mix_neighbours(&r->horizontal, &r->shuffles, r->row, r->channels, row);
  if (r->to_dtype == FLOW_FLOAT32) return;
  for (int64_t i = 0; i < n; i++) ((unsigned char *)r->to)[at + i] = (unsigned char)row[i];
}

/* `lines` is the address of line number `first`, the others follow `stride` elements apart. Makes all rows of the output whose lines are
 * there, and stops at the first that needs more. */
static void make_rows(flow_resizer *r, const void *lines, int64_t stride, int first, int count)
{
  const flow_fitting *f = &r->fitting;
  const flow_resize_taps *vertical = &r->vertical;
  int64_t size = (int64_t)size_of(r->dtype), n = (int64_t)f->width * r->channels;
  for (; r->next < f->to_height && first_needed(r) + vertical->count <= first + count; r->next++) {
    const char *corner = (const char *)lines + ((first_needed(r) - first) * stride + (int64_t)f->left * r->channels) * size;
    flow_mix_lines(r->dtype, corner, stride, vertical->weights + (int64_t)r->next * vertical->count, vertical->count, n, r->row);
    make_row(r);
  }
}

/* Cannot fail: everything was allocated by flow_resize_begin. */
void flow_resize_lines(flow_resizer *r, const void *lines, int first, int count)
{
  make_rows(r, lines, r->stride, first, count);
}

/* The window holds lines r->first to r->first + r->held - 1, all complete. */
static void make_rows_of_window(flow_resizer *r)
{
  make_rows(r, r->window + 1, r->window_stride, r->first, r->held);
}

/* A ring would cut sums of lines in two; lines that are still needed are moved to the front instead, once in MORE_LINES lines. */
static flow_status open_window(flow_resizer *r)
{
  int lines = r->vertical.count < r->height - MORE_LINES ? r->vertical.count + MORE_LINES : r->height;
  int64_t stride = r->stride / LINE_ALIGNMENT * LINE_ALIGNMENT + LINE_ALIGNMENT, bytes = lines * stride + 1;
  if (r->dtype != FLOW_UINT8 || bytes > INT32_MAX) return flow_fail(FLOW_UNSUPPORTED, "%d rows of bytes are too many", lines);
  FLOW_TRY(flow_grow(&r->window, 1, (int)bytes, &r->window_capacity));
  r->window_lines = lines;
  r->window_stride = stride;
  return FLOW_OK;
}

/* The line before the one that is given is complete now, as are all before it. */
flow_status flow_resize_room(flow_resizer *r, unsigned char **line)
{
  if (r->window_lines == 0) FLOW_TRY(open_window(r));
  if (r->held == r->window_lines) {
    make_rows_of_window(r);
    int needed = first_needed(r) - r->first, left_out = needed < r->held ? needed : r->held;
    memmove(r->window + 1, r->window + 1 + left_out * r->window_stride, (size_t)((r->held - left_out) * r->window_stride));
    r->first += left_out;
    r->held -= left_out;
  }
  *line = r->window + 1 + r->held++ * r->window_stride;
  return FLOW_OK;
}

void flow_resize_end(flow_resizer *r)
{
  if (r->window_lines > 0) make_rows_of_window(r);
}

flow_status flow_resize(flow_resizer *resizer, const void *pixels, int dtype, int height, int width, int channels, int method,
                        int fit, int to_height, int to_width, float *to)
{
  FLOW_DEFAULT_FLOATS;
  FLOW_TRY(flow_resize_begin(resizer, dtype, height, width, channels, method, fit, to_height, to_width, FLOW_FLOAT32, to));
  flow_resize_lines(resizer, pixels, 0, height);
  return FLOW_OK;
}
