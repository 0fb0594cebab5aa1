/* average_pooling.c: average_pool (x -> y) and its gradient (g -> dx). The mean of a window is taken over its cells inside
 * the image: padding neither adds nor counts (TensorFlow's tf.nn.avg_pool). */
#include "cpu/operand.h"
#include "cpu/pooling/pooling.h"

/* ---- float32, vectorised over channels ---------------------------------------------------------------------------------- */

/* The cells of a window that are added up as floats; of larger windows groups of TOGETHER are, and these as doubles. */
enum { SMALL_WINDOW = 64, TOGETHER = 16 };

/* The mean of `lanes` channels of one window; x: its first inside pixel. The order of the sum follows from the window's size alone. */
ALWAYS_INLINE vf window_mean(const float *x, int lanes, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step)
{
  vf sum = { 0 };
  vd low = { 0 }, high = { 0 };
  int64_t cells = 0, most = rows * columns <= SMALL_WINDOW ? SMALL_WINDOW : TOGETHER;
  for (int64_t ky = 0; ky < rows; ky++) {
    for (int64_t kx = 0; kx < columns; kx++) {
      const float *from = x + ky * row_step + kx * column_step;
      if (cells == most) {
        low += vd_low(sum);
        high += vd_high(sum);
        sum = (vf){ 0 };
        cells = 0;
      }
      sum += lanes == VL ? vf_load(from) : vf_load_part(from, lanes);
      cells++;
    }
  }
  if (rows * columns <= SMALL_WINDOW) return sum / vf_set((float)(rows * columns));
  double all = (double)(rows * columns);
  return vf_narrow((low + vd_low(sum)) / all, (high + vd_high(sum)) / all);
}

/* g / cells for `lanes` channels of every cell of one window; dx: its first inside pixel. adds: other windows may have sent something
 * there. */
ALWAYS_INLINE void spread_mean(float *dx, vf g, int lanes, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step, int adds)
{
  vf share = g / vf_set((float)(rows * columns));
  for (int64_t ky = 0; ky < rows; ky++) {
    for (int64_t kx = 0; kx < columns; kx++) {
      float *to = dx + ky * row_step + kx * column_step;
      if (lanes == VL) vf_store(to, adds ? vf_load(to) + share : share);
      else vf_store_part(to, adds ? vf_load_part(to, lanes) + share : share, lanes);
    }
  }
}

/* The cells of window (row, column) inside the image: how many, and the offset of the first one's first channel. */
typedef struct window { int64_t rows, columns, offset; } window;

/* Padding neither adds nor counts, so that windows at the edges are smaller. */
ALWAYS_INLINE window window_at(const flow_pooling *s, int64_t row, int64_t column)
{
  int64_t top, bottom, left, right;
  pooling_clip(s, 0, row, &top, &bottom);
  pooling_clip(s, 1, column, &left, &right);
  int64_t pixel = (row * s->stride[0] - s->before[0] + top) * s->in[1] + column * s->stride[1] - s->before[1] + left;
  return (window){ bottom - top, right - left, pixel * s->channels };
}

/* Rows [first_row, last_row) of y {out, out, c} of one image x {in, in, c}, vectors along the channels; y: the first of them. A window has
 * at least one cell inside the image (the shape rule). */
static void pool_image(const flow_pooling *s, const float *x, float *y, int64_t first_row, int64_t last_row)
{
  int64_t row_step = s->in[1] * s->channels;
  for (int64_t row = first_row; row < last_row; row++) {
    for (int64_t column = 0; column < s->out[1]; column++, y += s->channels) {
      window at = window_at(s, row, column);
      const float *first = x + at.offset;
      int64_t c = 0;
      for (; c + VL <= s->channels; c += VL) vf_store(y + c, window_mean(first + c, VL, at.rows, at.columns, row_step, s->channels));
      if (c == s->channels) continue;
      int lanes = (int)(s->channels - c);
      vf_store_part(y + c, window_mean(first + c, lanes, at.rows, at.columns, row_step, s->channels), lanes);
    }
  }
}

/* Each window's share of g, added to dx where windows overlap; so one image belongs to one thread. */
ALWAYS_INLINE void spread_image(const flow_pooling *s, const float *g, float *dx, int adds)
{
  int64_t row_step = s->in[1] * s->channels;
  for (int64_t row = 0; row < s->out[0]; row++) {
    for (int64_t column = 0; column < s->out[1]; column++, g += s->channels) {
      window at = window_at(s, row, column);
      float *first = dx + at.offset;
      int64_t c = 0;
      for (; c + VL <= s->channels; c += VL) spread_mean(first + c, vf_load(g + c), VL, at.rows, at.columns, row_step, s->channels, adds);
      if (c == s->channels) continue;
      int lanes = (int)(s->channels - c);
      spread_mean(first + c, vf_load_part(g + c, lanes), lanes, at.rows, at.columns, row_step, s->channels, adds);
    }
  }
}

/* Some rows of one image (pooling_rows). Results that nobody reads have no memory. */
static void pool_vectors(const flow_call *call, const flow_pooling *s, flow_piece of)
{
  const float *x = (const float *)call->inputs[0].data + of.image * s->in[0] * s->in[1] * s->channels;
  float *y = call->outputs[0].data;
  if (y) pool_image(s, x, y + (of.image * s->out[0] + of.first) * s->out[1] * s->channels, of.first, of.last);
}

/* All rows of all images, and the rows of one piece. */
static flow_status run_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  return pooling_run(call, pool_vectors);
}

static flow_status run_vector_piece(const flow_call *call, int64_t piece)
{
  return pooling_run_piece(call, pool_vectors, piece);
}

/* Windows may overlap, so that a call is not cut into pieces: two of them would add to the same cells. */
static flow_status run_vector_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_pooling s = pooling_of(call, &call->outputs[0], &call->inputs[0]);
  const float *g = call->inputs[0].data;
  float *dx = call->outputs[0].data;
  if (!dx) return FLOW_OK;
  int64_t input = s.in[0] * s.in[1] * s.channels, output = s.out[0] * s.out[1] * s.channels;
  for (int64_t image = 0; image < s.images; image++) {
    float *to = dx + image * input;
    if (!pooling_covers(&s)) memset(to, 0, (size_t)input * sizeof *dx); /* image by image: it is in the cache when it is added to */
    if (pooling_overlaps(&s)) spread_image(&s, g + image * output, to, 1);
    else spread_image(&s, g + image * output, to, 0);
  }
  return FLOW_OK;
}

/* ---- plain: float32 and float64 ------------------------------------------------------------------------------------------ */

/* One channel of one window, as offsets of elements. */
typedef struct cells { int64_t rows, columns, first; } cells;

/* The window that makes element i of the small side. */
static cells cells_of(const flow_pooling *s, int64_t i)
{
  int64_t c = i % s->channels, pixel = i / s->channels, column = pixel % s->out[1], row = pixel / s->out[1] % s->out[0];
  int64_t image = pixel / s->out[1] / s->out[0];
  window at = window_at(s, row, column);
  return (cells){ at.rows, at.columns, image * s->in[0] * s->in[1] * s->channels + at.offset + c };
}

/* Where cell k of the window is, in elements of the large side. */
static int64_t cell_at(const flow_pooling *s, const cells *at, int64_t k)
{
  return at->first + (k / at->columns * s->in[1] + k % at->columns) * s->channels;
}

/* The oracle: any layout, float32 and float64, summed in double, cell by cell. Any strides by way of operand_get. */
static flow_status run_plain(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_pooling s = pooling_of(call, &call->inputs[0], &call->outputs[0]);
  int64_t size = call->outputs[0].data ? s.images * s.out[0] * s.out[1] * s.channels : 0;
  for (int64_t i = 0; i < size; i++) {
    cells at = cells_of(&s, i);
    double sum = 0;
    for (int64_t k = 0; k < at.rows * at.columns; k++) sum += operand_get(&call->inputs[0], cell_at(&s, &at, k));
    operand_put(&call->outputs[0], i, sum / (double)(at.rows * at.columns));
  }
  return FLOW_OK;
}

/* Windows may share cells, so that shares are added to what is there. */
static flow_status run_plain_gradient(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_pooling s = pooling_of(call, &call->outputs[0], &call->inputs[0]);
  flow_operand *dx = &call->outputs[0];
  if (!dx->data) return FLOW_OK;
  size_t bytes = dx->dtype == FLOW_FLOAT64 ? sizeof(double) : sizeof(float);
  memset(dx->data, 0, (size_t)(s.images * s.in[0] * s.in[1] * s.channels) * bytes);
  for (int64_t i = 0; i < s.images * s.out[0] * s.out[1] * s.channels; i++) {
    cells at = cells_of(&s, i);
    double share = operand_get(&call->inputs[0], i) / (double)(at.rows * at.columns);
    for (int64_t k = 0; k < at.rows * at.columns; k++) operand_put(dx, cell_at(&s, &at, k), operand_get(dx, cell_at(&s, &at, k)) + share);
  }
  return FLOW_OK;
}

static int supports_vector(const flow_call *call) { return call->inputs[0].dtype == FLOW_FLOAT32; }

const flow_kernel FLOW_KERNELS(average_pool)[] = {
  { .variant = "vector", .supports = supports_vector, .run = run_vector, .pieces = pooling_count_pieces, .run_piece = run_vector_piece },
  { .variant = "plain", .run = run_plain },
  { 0 }
};

const flow_kernel FLOW_KERNELS(average_pool_gradient)[] = {
  { .variant = "vector", .supports = supports_vector, .run = run_vector_gradient },
  { .variant = "plain", .run = run_plain_gradient },
  { 0 }
};
