/* convolution_gradient_argmax.c: the gradient of a convolution with fused max pooling, of the windows' maxima alone.
 *
 * An image is walked in groups of a few rows of windows. The index bytes of a group are copied, filled up to whole vectors
 * with NO_ARGMAX, and so is g if its channels are not whole vectors. For dw the x rows under the group are copied, with
 * zeros around them. dx grows on a canvas, a ring of as many rows as one row of windows reaches; a row that no further
 * window reaches is written out.
 *
 * dw in scratch is laid out as the sums are made, [output][kernel row][kernel column x input]: a call reads dw into that order,
 * adds image by image and writes it back, which continues the very sums of the call before: no bit depends on where the
 * rows are cut into chunks. */
#include "cpu/convolution/convolution_gradient_argmax.h"
#include "cpu/cost.h"
#include "cpu/variant.h"

enum { GROUP_BYTES = 24 * 1024,         /* x under a group of rows: with the lists and sums of a channel in a first-level cache */
       X_BYTES = 64 * 1024 };           /* x rows in scratch; those that the next group needs again move rarely */

FLOW_VARIANT(convolution_gradient_argmax);

static int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* The layout of a call, from its shapes alone. A group of rows of windows has as much x under it as GROUP_BYTES, so that the lists of a
 * channel find it in the first-level cache. */
static flow_argmax_layout layout_of(const flow_call *call)
{
  flow_argmax_layout l = { .s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]) };
  const flow_geometry *s = &l.s;
  int64_t width[2];
  for (int axis = 0; axis < 2; axis++) {
    l.step[axis] = s->pool_stride[axis] * s->stride[axis];
    l.reach[axis] = (s->pool[axis] - 1) * s->stride[axis] + s->kernel[axis];
    width[axis] = s->in[axis] + s->before[axis] + s->after[axis];
  }
  l.run = round_up(s->kernel[1] * s->channels_in, VL);
  l.x_row = round_up(width[1] * s->channels_in, VL) + VL;    /* the last run of a row may end after it */
  int64_t row_bytes = l.x_row * (int64_t)sizeof(float);
  l.group = (GROUP_BYTES / row_bytes - l.reach[0]) / l.step[0] + 1;
  if (l.group < 1) l.group = 1;
  if (l.group > s->result[0]) l.group = s->result[0];
  l.x_rows = (l.group - 1) * l.step[0] + l.reach[0];
  if (l.x_rows < X_BYTES / row_bytes) l.x_rows = X_BYTES / row_bytes;
  l.channels = round_up(s->channels_out, VL);
  l.index_pixels = round_up(s->result[1], VL);
  l.index_channels = round_up(s->channels_out, INDEX_BLOCK);
  l.list = round_up(l.group * s->result[1], VL) + VL;
  if (l.list / VL % 2 == 0) l.list += VL;                     /* lists of neighbouring channels in different sets of the cache */
  l.pixel = round_up(s->channels_in, VL);
  l.canvas_row = width[1] * l.pixel;
  l.g_floats = l.channels == s->channels_out ? 0 : (size_t)round_up(l.group * s->result[1] * l.channels, INDEX_BLOCK);
  l.index_bytes = (size_t)((l.group * l.index_pixels + 1) * l.index_channels);   /* flow_argmax_input looks one pixel ahead */
  l.x_floats = (size_t)round_up((l.x_rows) * l.x_row + VL, INDEX_BLOCK);
  l.few = flow_argmax_few_fit(s);
  l.sum_floats = (size_t)(s->kernel[0] * (l.few ? s->kernel[1] * s->channels_in * l.channels : s->channels_out * l.run));
  l.list_floats = (size_t)(2 * VL * l.list);
  l.canvas_floats = (size_t)(l.reach[0] * l.canvas_row);
  return l;
}

/* scratch: index bytes, g, x rows, sums, lists, canvas, each at a multiple of a vector, and pointers to the canvas's rows. */
typedef struct scratch_view { uint8_t *index; float *g, *x, *sums, *lists, *canvas, **rows; } scratch_view;

/* The scratch's parts, one after the other, in an order in which each is aligned. */
static scratch_view scratch_of(const flow_call *call, const flow_argmax_layout *l)
{
  scratch_view view = { .index = call->scratch };
  view.g = (float *)(view.index + l->index_bytes);
  view.x = view.g + l->g_floats;
  view.sums = view.x + l->x_floats;
  view.lists = view.sums + l->sum_floats;
  view.canvas = view.lists + l->list_floats;
  view.rows = (float **)(view.canvas + l->canvas_floats);
  return view;
}

/* Pointers come last: their size is not a multiple of a vector. */
size_t FLOW_ISA_NAME(convolution_gradient_argmax_scratch_bytes)(const flow_call *call)
{
  flow_argmax_layout l = layout_of(call);
  return l.index_bytes + (l.g_floats + l.x_floats + l.sum_floats + l.list_floats + l.canvas_floats) * sizeof(float)
       + (size_t)l.reach[0] * sizeof(float *);
}

/* shared: the weights as flow_argmax_input reads them; nothing if nothing reads dx. */
size_t FLOW_ISA_NAME(convolution_gradient_argmax_shared_bytes)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  if (call->outputs[0].unused) return 0;
  return (size_t)(round_up(s.channels_in, VL) * s.channels_out * s.kernel[0] * s.kernel[1]) * sizeof(float);
}

/* w {kh, kw, in, out} as [block of VL inputs][output][position][VL], zeros where there is no input. */
flow_status FLOW_ISA_NAME(convolution_gradient_argmax_prepare)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  if (call->outputs[0].unused) return FLOW_OK;
  int64_t positions = s.kernel[0] * s.kernel[1];
  const float *w = call->inputs[2].data;
  float *to = call->shared;
  for (int64_t input = 0; input < s.channels_in; input += VL, to += s.channels_out * positions * VL) {
    int64_t lanes = s.channels_in - input < VL ? s.channels_in - input : VL;
    if (lanes < VL) memset(to, 0, (size_t)(s.channels_out * positions * VL) * sizeof(float));
    for (int64_t position = 0; position < positions; position++)
      flow_transpose(w + (position * s.channels_in + input) * s.channels_out, s.channels_out, lanes, s.channels_out,
                     to + position * VL, positions * VL);
  }
  return FLOW_OK;
}

/* A few bytes, for which a call would take longer. */
ALWAYS_INLINE void copy_bytes(const uint8_t *from, int64_t count, uint8_t *to)
{
  for (; count >= 16; count -= 16, from += 16, to += 16) memcpy(to, from, 16);
  for (; count > 0; count--) *to++ = *from++;
}

/* Rows of windows first .. last - 1; what a copy's padding holds stays. */
static flow_argmax_rows window_rows(const flow_argmax_layout *l, const float *g, const uint8_t *index, int64_t first, int64_t last,
                                     const scratch_view *scratch)
{
  const flow_geometry *s = &l->s;
  for (int64_t row = first; row < last; row++) {
    const uint8_t *from = index + row * s->result[1] * s->channels_out;
    uint8_t *to = scratch->index + (row - first) * l->index_pixels * l->index_channels;
    for (int64_t p = 0; p < s->result[1]; p++, from += s->channels_out, to += l->index_channels) copy_bytes(from, s->channels_out, to);
  }
  flow_argmax_rows rows = { g + first * s->result[1] * s->channels_out, scratch->index, last - first };
  if (l->g_floats == 0) return rows;
  for (int64_t p = 0; p < (last - first) * s->result[1]; p++)
    memcpy(scratch->g + p * l->channels, rows.g + p * s->channels_out, (size_t)s->channels_out * sizeof(float));
  rows.g = scratch->g;
  return rows;
}

/* The x rows in scratch: first .. end - 1, counted from the top padding. */
typedef struct x_window { int64_t first, end; } x_window;

/* Pointer to the copy of row `first`, after which follow rows to `end`. The margins of a copied row are zero and stay so. */
static const float *input_rows(const flow_argmax_layout *l, const void *x, int64_t first, int64_t end, x_window *have, float *copy)
{
  const flow_geometry *s = &l->s;
  int64_t inner = s->in[1] * s->channels_in;
  if (first >= have->end) *have = (x_window){ first, first };
  if (end - have->first > l->x_rows) {
    memmove(copy, copy + (first - have->first) * l->x_row, (size_t)((have->end - first) * l->x_row) * sizeof(float));
    have->first = first;
  }
  for (; have->end < end; have->end++) {
    int64_t row = have->end - s->before[0];
    float *to = copy + (have->end - have->first) * l->x_row + s->before[1] * s->channels_in;
    if (row >= 0 && row < s->in[0]) flow_copy_input(s, to, flow_input_at(s, x, row * inner), inner);
    else memset(to, 0, (size_t)inner * sizeof(float));
  }
  return copy + (first - have->first) * l->x_row;
}

/* The canvas holds rows first .. end - 1 of dx and its padding, row i at i % reach. */
typedef struct canvas_rows { int64_t first, end; } canvas_rows;

/* Writes the rows before `limit` to dx: those that no window has reached are zero. */
static void write_rows(const flow_argmax_layout *l, const float *rows, canvas_rows *c, int64_t limit, float *dx)
{
  const flow_geometry *s = &l->s;
  int64_t inner = s->in[1] * s->channels_in;
  for (; c->first < limit; c->first++) {
    int64_t row = c->first - s->before[0];
    if (row < 0 || row >= s->in[0]) continue;
    float *to = dx + row * inner;
    const float *from = rows + c->first % l->reach[0] * l->canvas_row + s->before[1] * l->pixel;
    if (c->first >= c->end) memset(to, 0, (size_t)inner * sizeof(float));
    else if (l->pixel == s->channels_in) memcpy(to, from, (size_t)inner * sizeof(float));
    else
      for (int64_t p = 0; p < s->in[1]; p++)
        memcpy(to + p * s->channels_in, from + p * l->pixel, (size_t)s->channels_in * sizeof(float));
  }
}

/* Adds windows->count rows of windows, the first of which is row number `row`, to the canvas. The rows of dx above the top of a row of
 * windows are complete then, since further windows begin below it: they are written out before, and the rows that
 * are reached for the first time are cleared. */
static void input_gradient(const flow_argmax_layout *l, const flow_argmax_rows *windows, int64_t row, const float *weights,
                           const scratch_view *scratch, canvas_rows *c, float *dx)
{
  for (int64_t i = 0; i < windows->count; i++) {
    /* c->end < top: rows between windows, which no window reaches; write_rows has filled them with zeros. */
    int64_t top = (row + i) * l->step[0], end = top + l->reach[0];
    write_rows(l, scratch->canvas, c, top, dx);
    if (c->end < top) c->end = top;
    for (; c->end < end; c->end++)
      memset(scratch->canvas + c->end % l->reach[0] * l->canvas_row, 0, (size_t)l->canvas_row * sizeof(float));
    for (int64_t k = 0; k < l->reach[0]; k++) scratch->rows[k] = scratch->canvas + (top + k) % l->reach[0] * l->canvas_row;
    flow_argmax_rows one = {
      windows->g + i * l->s.result[1] * l->channels, windows->index + i * l->index_pixels * l->index_channels, 1,
    };
    flow_argmax_input(l, &one, weights, scratch->rows);
  }
}

/* All gradients of one image; dx, sums, db may be NULL. */
static void image_gradient(const flow_argmax_layout *l, const scratch_view *scratch, const float *weights, const float *g,
                           const uint8_t *index, const void *x, float *dx, float *sums, float *db)
{
  const flow_geometry *s = &l->s;
  x_window have = { 0, 0 };
  canvas_rows c = { 0, 0 };
  for (int64_t first = 0; first < s->result[0]; first += l->group) {
    int64_t last = first + l->group < s->result[0] ? first + l->group : s->result[0];
    flow_argmax_rows rows = window_rows(l, g, index, first, last, scratch);
    if (sums || db) {
      const float *under = NULL;
      if (sums) under = input_rows(l, x, first * l->step[0], (last - 1) * l->step[0] + l->reach[0], &have, scratch->x);
      if (l->few && sums) flow_argmax_few(l, &rows, under, sums, db);
      else flow_argmax_weights(l, &rows, under, sums, db, scratch->lists);
    }
    if (dx) input_gradient(l, &rows, first, weights, scratch, &c, dx);
  }
  if (dx) write_rows(l, scratch->canvas, &c, s->before[0] + s->in[0], dx);
}

/* Rows of floats from one place to another. */
static void copy_rows(const float *from, int64_t from_step, int64_t rows, int64_t floats, float *to, int64_t to_step)
{
  for (int64_t row = 0; row < rows; row++) memcpy(to + row * to_step, from + row * from_step, (size_t)floats * sizeof(float));
}

/* dw into the order of the sums, or back. */
static void read_sums(const flow_argmax_layout *l, const float *dw, float *sums)
{
  const flow_geometry *s = &l->s;
  int64_t row = s->kernel[1] * s->channels_in, outputs = s->channels_out;
  if (l->few) copy_rows(dw, outputs, s->kernel[0] * row, outputs, sums, l->channels);
  for (int64_t ky = 0; ky < s->kernel[0] && !l->few; ky++)
    flow_transpose(dw + ky * row * outputs, outputs, row, outputs, sums + ky * l->run, s->kernel[0] * l->run);
}

/* Writes the sums into dw {kernel height, kernel width, inputs, outputs}, out of the order in which they are added: see the top, and for
 * few input channels flow_argmax_few(). */
static void write_sums(const flow_argmax_layout *l, const float *sums, float *dw)
{
  const flow_geometry *s = &l->s;
  int64_t row = s->kernel[1] * s->channels_in, outputs = s->channels_out;
  if (l->few) copy_rows(sums, l->channels, s->kernel[0] * row, outputs, dw, outputs);
  for (int64_t ky = 0; ky < s->kernel[0] && !l->few; ky++)
    flow_transpose(sums + ky * l->run, s->kernel[0] * l->run, outputs, row, dw + ky * row * outputs, outputs);
}

/* Images one after the other; dw is read into the order of the sums and written back, so that a second chunk continues the sums. */
flow_status FLOW_ISA_NAME(convolution_gradient_argmax_run)(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  flow_argmax_layout l = layout_of(call);
  const flow_geometry *s = &l.s;
  scratch_view scratch = scratch_of(call, &l);
  float *dx = call->outputs[0].data, *dw = call->outputs[1].data, *db = call->outputs[2].data;
  const float *g = call->inputs[0].data;
  const void *x = call->inputs[1].data;
  const uint8_t *index = call->inputs[4].data;
  memset(scratch.index, NO_ARGMAX, l.index_bytes);
  memset(scratch.g, 0, (l.g_floats + l.x_floats) * sizeof(float));
  if (dw) {
    memset(scratch.sums, 0, l.sum_floats * sizeof(float));
    if (call->accumulate) read_sums(&l, dw, scratch.sums);
  }
  if (db && !call->accumulate) memset(db, 0, (size_t)s->channels_out * sizeof(float));
  int64_t result = s->result[0] * s->result[1] * s->channels_out, input = s->in[0] * s->in[1] * s->channels_in;
  for (int64_t image = 0; image < s->images; image++)
    image_gradient(&l, &scratch, call->shared, g + image * result, index + image * result, flow_input_at(s, x, image * input),
                   dx ? dx + image * input : NULL, dw ? scratch.sums : NULL, db);
  if (dw) write_sums(&l, scratch.sums, dw);
  return FLOW_OK;
}

/* Float32, one group, no dilation, windows that do not overlap and whose cells a byte can number. Bytes have no gradient. Offsets in lists
 * are int32, which limits the x rows in scratch. */
int FLOW_ISA_NAME(convolution_gradient_argmax_supports)(const flow_call *call)
{
  flow_geometry s = flow_geometry_of(call, &call->inputs[1], &call->inputs[2]);
  if (s.bytes && !call->outputs[0].unused) return 0;
  if (call->inputs[0].dtype != FLOW_FLOAT32 || !s.pooled || s.groups != 1 || s.pool[0] * s.pool[1] > NO_ARGMAX) return 0;
  for (int axis = 0; axis < 2; axis++)
    if (s.dilation[axis] != 1 || s.pool_stride[axis] < s.pool[axis] || s.result[axis] < 1) return 0;
  if (s.channels_in < 1 || s.channels_out < 1) return 0;
  flow_argmax_layout l = layout_of(call);
  return l.x_floats < INT32_MAX;
}

/* The part of the windows that relu leaves alive, for want of knowledge. */
static const double LIVE = 0.65;

/* The arithmetic waits for its loads: one for each product, and some for each entry of a list. */
static double cost_of_weights(const flow_argmax_layout *l)
{
  const flow_geometry *s = &l->s;
  double windows = (double)(s->images * s->result[0] * s->result[1]), sums = (double)(s->kernel[0] * l->run);
  double lists = (double)(s->images * ((s->result[0] + l->group - 1) / l->group) * s->channels_out);
  double copied = (double)(s->images * s->in[0] * l->x_row), taps = (double)(s->kernel[0] * s->kernel[1] * s->channels_in);
  if (l->few)   /* cycles for a vector of channels of a window */
    return windows * (double)(l->channels / VL) * (1.3 * taps + 10) * PEAK + flow_cost_cached(2 * copied * sizeof(float));
  return flow_cost_arithmetic(windows * (double)s->channels_out * LIVE * (sums + 3 * VL), 0.75)
       + flow_cost_cached((lists * sums + 2 * copied) * sizeof(float)) + windows * (double)l->channels * (VL == 16 ? 40 : 24);
}

/* The processor guesses wrong where the live channels of a place in a window end, which costs some 16 cycles. */
static double cost_of_input(const flow_argmax_layout *l)
{
  const flow_geometry *s = &l->s;
  int sliding = s->stride[1] == 1 && s->pool_stride[1] == s->pool[1] && s->kernel[1] <= 5;
  double windows = (double)(s->images * s->result[0] * s->result[1]), products = (double)(s->kernel[0] * s->kernel[1] * VL);
  double blocks = (double)(l->pixel / VL), passes = (double)((s->kernel[0] + 2) / 3) * (double)(l->index_channels / INDEX_BLOCK);
  double live = windows * (double)s->channels_out * LIVE * (products + VL * passes);
  double canvas = (double)(s->images * s->in[0] * l->canvas_row);
  return blocks * (flow_cost_arithmetic(live, sliding ? 0.8 : 0.2) + windows * passes * (double)(s->pool[0] * s->pool[1]) * 16 * PEAK)
       + flow_cost_cached(3 * canvas * sizeof(float));
}

/* dw and dx have nothing in common but the copied indices; db is counted with dw. */
double FLOW_ISA_NAME(convolution_gradient_argmax_cost)(const flow_call *call)
{
  flow_argmax_layout l = layout_of(call);
  return (call->outputs[1].unused ? 0 : cost_of_weights(&l)) + (call->outputs[0].unused ? 0 : cost_of_input(&l));
}
