/* batch_norm.c: batch_norm, batch_norm_relu and batch_norm_gradient over x {rows, c} (all leading axes are rows).
 *
 *   forward    xhat = (x - mean) / sqrt(variance + epsilon)      y = gamma xhat + beta
 *   gradient   dbeta = sum g     dgamma = sum g xhat     dx = gamma / sqrt(variance + epsilon) (g - dbeta / n - xhat dgamma / n)
 *
 * batch_norm_relu, which only plans on devices have, is y = max(gamma xhat + beta + addend, 0), plain.
 *
 * Variants: vector (float32), plain (every dtype, in double). The vector variant runs in three phases over parts of rows
 * whose size depends on c only: moments of each part, combination of the parts in order, result. A part is summed in runs
 * of at most RUN rows: differences from the run's own mean, and their squares, as floats, whose sums go into double. All that is
 * rounded to float is thus of the size of the variation within a run, and nothing cancels, wherever the run's rows
 * are and wherever others are. Parts are combined by Chan, Golub and LeVeque's rule ("Algorithms for computing the sample
 * variance", 1983). */
#include <math.h>
#include "cpu/math.h"
#include "tensor/tensor.h"

/* PART_FLOATS: 128 KB of x, which fit into a second-level cache. RUN: the rounding errors of 32 additions in float stay below the
 * input's own. TOGETHER: vectors of a line that are summed side by side, so that additions need not wait for each other. CHANNEL_BLOCK:
 * channels of a part of the second phase; its doubles are 1 KB on the stack. */
enum { PART_FLOATS = 32768, RUN = 32, TOGETHER = 4, CHANNEL_BLOCK = 64, PHASES = 3 };

/* How rows are walked. With fewer channels than lanes, VL rows are taken as one line of VL c floats, whose coefficients
 * repeat every c; otherwise a line is a row, and its last vector is moved back to end with it. */
typedef struct layout {
  int64_t rows, channels;       /* of x, all leading axes taken as rows */
  int64_t line, rows_per_line;  /* floats and rows of a line */
  int64_t rows_per_part, parts; /* whole lines, but for the last part */
} layout;

/* Parts depend on the shape only: the sums have the same bits on every number of threads. */
static layout layout_of(const flow_operand *x)
{
  layout l = { .rows = flow_shape_size(x->rank - 1, x->shape), .channels = x->shape[x->rank - 1] };
  l.rows_per_line = l.channels < VL ? VL : 1;
  l.line = l.channels * l.rows_per_line;
  int64_t lines = l.line > 0 ? PART_FLOATS / l.line : 0;
  l.rows_per_part = (lines > 0 ? lines : 1) * l.rows_per_line;
  l.parts = (l.rows + l.rows_per_part - 1) / l.rows_per_part;
  return l;
}

/* shared: two doubles per part and channel (sums, or mean and squares), then four floats per channel. Coefficient `which`: 0 the mean, 1
 * the scale, 2 the shift, 3 the slope, as in affine below. */
static double *part_sums(const flow_call *call, const layout *l, int64_t part)
{
  return (double *)call->shared + part * 2 * l->channels;
}
static float *coefficients(const flow_call *call, const layout *l, int which)
{
  return (float *)part_sums(call, l, l->parts) + which * l->channels;
}

/* x: the second input of the gradient. */
static const flow_operand *x_of(const flow_call *call) { return &call->inputs[call->op == FLOW_OP_batch_norm_gradient]; }

/* The sums of all parts live from phase 0 to phase 1, the coefficients from phase 1 to phase 2. */
static size_t shared_bytes(const flow_call *call)
{
  layout l = layout_of(x_of(call));
  return (size_t)l.channels * ((size_t)l.parts * 2 * sizeof(double) + 4 * sizeof(float));
}

/* scratch: sums of a line (2 doubles a float), then up to four lines of coefficients */
static size_t scratch_bytes(const flow_call *call)
{
  return (size_t)layout_of(x_of(call)).line * (2 * sizeof(double) + 4 * sizeof(float));
}

/* One value per channel, repeated over a line. */
static void spread(const layout *l, const float *per_channel, float *line)
{
  for (int64_t i = 0; i < l->line; i += l->channels) memcpy(line + i, per_channel, (size_t)l->channels * sizeof(float));
}

/* ---- moments -------------------------------------------------------------------------------------------------------- */

/* Sums over the lines of a part for each float of a line, `count` vectors at a time. All pointers are to the first of these floats. */
typedef struct column_sums { double *first, *second; } column_sums;

/* first += x - origin, second += (x - origin)^2, by runs that each take differences from their own mean. */
ALWAYS_INLINE void column_moments(const int count, const float *x, const float *origin, int64_t lines, int64_t line, column_sums to)
{
  for (int64_t begin = 0; begin < lines; begin += RUN) {
    int64_t end = lines - begin < RUN ? lines : begin + RUN;
    double rows = (double)(end - begin);
    vf mean[TOGETHER] = { { 0 } }, a[TOGETHER] = { { 0 } }, b[TOGETHER] = { { 0 } };
    for (int64_t i = begin; i < end; i++) {
      FLOW_UNROLL(4)
      for (int v = 0; v < count; v++) mean[v] += vf_load(x + i * line + v * VL);
    }
    for (int v = 0; v < count; v++) mean[v] *= vf_set(1 / (float)rows);
    for (int64_t i = begin; i < end; i++) {
      FLOW_UNROLL(4)
      for (int v = 0; v < count; v++) {
        vf d = vf_load(x + i * line + v * VL) - mean[v];
        a[v] += d;
        b[v] += d * d;
      }
    }
    for (int v = 0; v < count; v++) {
      FLOW_UNROLL(2)
      for (int half = 0; half < 2; half++) {
        int64_t at = v * VL + half * (VL / 2);
        /* From the run's mean to the origin, s = mean - origin: sum (d + s) = sum d + n s, and sum (d + s)^2 = sum d^2 + s (sum d + sum (d
         * + s)). Both steps are in double; the differences d were small when they were rounded. */
        vd shift = (half ? vd_high(mean[v]) : vd_low(mean[v])) - vd_widen(origin + at);
        vd sum = half ? vd_high(a[v]) : vd_low(a[v]), squares = half ? vd_high(b[v]) : vd_low(b[v]), moved = sum + shift * rows;
        vd_store(to.first + at, vd_load(to.first + at) + moved);
        vd_store(to.second + at, vd_load(to.second + at) + (squares + shift * (sum + moved)));
      }
    }
  }
}

/* first += g, second += g (x - mean), as floats over RUN rows, then in double. */
ALWAYS_INLINE void column_products(const int count, const float *g, const float *x, const float *mean, int64_t lines, int64_t line,
                                   column_sums to)
{
  vf middle[TOGETHER];
  for (int v = 0; v < count; v++) middle[v] = vf_load(mean + v * VL);
  for (int64_t begin = 0; begin < lines; begin += RUN) {
    int64_t end = lines - begin < RUN ? lines : begin + RUN;
    vf a[TOGETHER] = { { 0 } }, b[TOGETHER] = { { 0 } };
    for (int64_t i = begin; i < end; i++) {
      FLOW_UNROLL(4)
      for (int v = 0; v < count; v++) {
        vf w = vf_load(g + i * line + v * VL);
        a[v] += w;
        b[v] += w * (vf_load(x + i * line + v * VL) - middle[v]);
      }
    }
    for (int v = 0; v < count; v++) {
      FLOW_UNROLL(2)
      for (int half = 0; half < 2; half++) {
        int64_t at = v * VL + half * (VL / 2);
        vd_store(to.first + at, vd_load(to.first + at) + (half ? vd_high(a[v]) : vd_low(a[v])));
        vd_store(to.second + at, vd_load(to.second + at) + (half ? vd_high(b[v]) : vd_low(b[v])));
      }
    }
  }
}

/* What a part sums: moments of x, or with g products; `center`, a line, is the origin or the mean. */
typedef struct summed { const float *g, *x, *center; int64_t lines, line; } summed;

/* `count` vectors from float `at` of a line on. has_g: known when this is compiled. */
ALWAYS_INLINE void sum_columns(const int count, const int has_g, const summed *s, int64_t at, column_sums to)
{
  if (has_g) column_products(count, s->g + at, s->x + at, s->center + at, s->lines, s->line, to);
  else column_moments(count, s->x + at, s->center + at, s->lines, s->line, to);
}

/* Sums of a part per channel: first[c], second[c] as above. g is NULL in the forward pass. `sums` has room for a line twice. */
ALWAYS_INLINE void sum_part(const int has_g, const layout *l, const float *g, const float *x, int64_t rows, const float *center,
                            double *sums, double *first, double *second)
{
  const summed s = { .g = g, .x = x, .center = center, .lines = rows / l->rows_per_line, .line = l->line };
  column_sums all = { sums, sums + l->line };
  int64_t whole = l->line / VL * VL, at = 0;
  memset(sums, 0, (size_t)l->line * 2 * sizeof(double));
  for (; at + TOGETHER * VL <= whole; at += TOGETHER * VL)
    sum_columns(TOGETHER, has_g, &s, at, (column_sums){ all.first + at, all.second + at });
  for (; at < whole; at += VL) sum_columns(1, has_g, &s, at, (column_sums){ all.first + at, all.second + at });
  if (whole < l->line) {      /* a vector that ends with the line: the lanes that others have summed are left out */
    double last_first[VL] = { 0 }, last_second[VL] = { 0 };
    at = l->line - VL;
    sum_columns(1, has_g, &s, at, (column_sums){ last_first, last_second });
    for (int64_t i = whole; i < l->line; i++) all.first[i] = last_first[i - at], all.second[i] = last_second[i - at];
  }
  memset(first, 0, (size_t)l->channels * sizeof(double));
  memset(second, 0, (size_t)l->channels * sizeof(double));
  for (int64_t i = 0; i < l->line; i++) {
    first[i % l->channels] += all.first[i];
    second[i % l->channels] += all.second[i];
  }
  for (int64_t i = s.lines * l->line; i < rows * l->channels; i++) {        /* rows that fill no line */
    int64_t c = i % l->channels;
    double d = (double)x[i] - (double)center[c], w = has_g ? (double)g[i] : d;
    first[c] += w;
    second[c] += w * d;
  }
}

/* Mean and sum of squared differences from it, for one part. Sums in double are of differences from the part's first row, so that
 * what cancels of them is never more than a double has to spare. */
static void forward_part(const flow_call *call, const layout *l, int64_t part)
{
  const float *x = (const float *)call->inputs[0].data + part * l->rows_per_part * l->channels;
  int64_t rows = l->rows - part * l->rows_per_part;
  if (rows > l->rows_per_part) rows = l->rows_per_part;
  double *sums = call->scratch, *mean = part_sums(call, l, part), *squares = mean + l->channels;
  float *line = (float *)(sums + 2 * l->line);
  spread(l, x, line);
  sum_part(0, l, NULL, x, rows, line, sums, mean, squares);
  for (int64_t c = 0; c < l->channels; c++) {
    double shift = mean[c] / (double)rows;
    squares[c] -= mean[c] * shift;
    if (squares[c] < 0) squares[c] = 0;
    mean[c] = (double)x[c] + shift;
  }
}

/* Sums of g and of g (x - mean), for one part. */
static void gradient_part(const flow_call *call, const layout *l, int64_t part)
{
  int64_t at = part * l->rows_per_part * l->channels, rows = l->rows - part * l->rows_per_part;
  if (rows > l->rows_per_part) rows = l->rows_per_part;
  double *sums = call->scratch, *first = part_sums(call, l, part);
  float *line = (float *)(sums + 2 * l->line);
  spread(l, call->inputs[3].data, line);
  sum_part(1, l, (const float *)call->inputs[0].data + at, (const float *)call->inputs[1].data + at, rows, line, sums, first,
           first + l->channels);
}

/* ---- combination ------------------------------------------------------------------------------------------------------ */

/* Mean, variance and coefficients of channels first .. last - 1, at most CHANNEL_BLOCK, from the moments of all parts. Without rows the
 * mean is 0 and the variance 1. */
static void combine_channels(const flow_call *call, const layout *l, int64_t first, int64_t last)
{
  double count = 0, mean[CHANNEL_BLOCK] = { 0 }, squares[CHANNEL_BLOCK] = { 0 };
  int64_t n = last - first;
  for (int64_t part = 0; part < l->parts; part++) {
    const double *part_mean = part_sums(call, l, part) + first, *part_squares = part_mean + l->channels;
    double rows = (double)(part < l->parts - 1 ? l->rows_per_part : l->rows - part * l->rows_per_part);
    double total = count + rows, share = rows / total;
    for (int64_t i = 0; i < n; i++) {
      /* Chan, Golub and LeVeque's rule for the rows so far and those of one more part. */
      double delta = part_mean[i] - mean[i];
      mean[i] += delta * share;
      squares[i] += part_squares[i] + delta * delta * (count * share);
    }
    count = total;
  }
  const float *gamma = (const float *)call->inputs[1].data + first, *beta = (const float *)call->inputs[2].data + first;
  float *mean_out = call->outputs[1].data, *variance_out = call->outputs[2].data;
  for (int64_t i = 0; i < n; i++) {
    double variance = l->rows > 0 ? squares[i] / (double)l->rows : 1;
    if (mean_out) mean_out[first + i] = (float)mean[i];
    if (variance_out) variance_out[first + i] = (float)variance;
    coefficients(call, l, 0)[first + i] = (float)mean[i];
    coefficients(call, l, 1)[first + i] = (float)((double)gamma[i] / sqrt(variance + call->attributes->normalization.epsilon));
    coefficients(call, l, 2)[first + i] = beta[i];
  }
}

/* dgamma, dbeta and the coefficients of dx = a g + b (x - mean) + d, for one channel. */
static void gradient_channel(const flow_call *call, const layout *l, int64_t c)
{
  double sum_g = 0, sum_gd = 0, n = l->rows > 0 ? (double)l->rows : 1;
  for (int64_t part = 0; part < l->parts; part++) {
    sum_g += part_sums(call, l, part)[c];
    sum_gd += part_sums(call, l, part)[l->channels + c];
  }
  const float *gamma = call->inputs[2].data, *mean = call->inputs[3].data, *variance = call->inputs[4].data;
  double inverse = 1 / sqrt((double)variance[c] + call->attributes->normalization.epsilon), a = (double)gamma[c] * inverse;
  float *dgamma = call->outputs[1].data, *dbeta = call->outputs[2].data;
  if (dgamma) dgamma[c] = (float)(sum_gd * inverse);
  if (dbeta) dbeta[c] = (float)sum_g;
  /* dx = a (g - sum_g / n - d inverse^2 sum_gd / n), d = x - mean: xhat and dgamma have the factor `inverse` each. */
  coefficients(call, l, 0)[c] = mean[c];
  coefficients(call, l, 1)[c] = (float)a;
  coefficients(call, l, 2)[c] = (float)(-a * sum_g / n);
  coefficients(call, l, 3)[c] = (float)(-a * inverse * inverse * sum_gd / n);
}

/* ---- result -------------------------------------------------------------------------------------------------------------- */

/* Coefficients of a line: mean, scale, shift and, in the gradient, slope. */
typedef struct affine { const float *mean, *scale, *shift, *slope; } affine;

/* scale (x - mean) + shift, or scale g + slope (x - mean) + shift. */
ALWAYS_INLINE vf apply_vector(const int has_g, const affine *f, const float *g, const float *x, int64_t at)
{
  vf d = vf_load(x + at) - vf_load(f->mean + at), scale = vf_load(f->scale + at), shift = vf_load(f->shift + at);
  return has_g ? scale * vf_load(g + at) + (vf_load(f->slope + at) * d + shift) : scale * d + shift;
}

/* Phase 2 of both: y = scale (x - mean) + shift, or dx = scale g + slope (x - mean) + shift, with coefficients of each channel. Channels
 * that are not whole vectors would leave lanes empty, so that coefficients are repeated to a line of several rows, and lines are taken as
 * if they were flat. */
ALWAYS_INLINE void apply(const int has_g, const flow_call *call, const layout *l, int64_t part, const float *g, const float *x, float *y)
{
  const float *line[4];
  for (int i = 0; i < (has_g ? 4 : 3); i++) {
    line[i] = coefficients(call, l, i);
    if (l->rows_per_line == 1) continue;
    float *repeated = (float *)call->scratch + i * l->line;
    spread(l, line[i], repeated);
    line[i] = repeated;
  }
  affine f = { line[0], line[1], line[2], has_g ? line[3] : NULL };
  int64_t first = part * l->rows_per_part * l->channels, last = first + l->rows_per_part * l->channels;
  if (last > l->rows * l->channels) last = l->rows * l->channels;
  int64_t whole = l->line / VL * VL;
  for (; first + l->line <= last; first += l->line) {
    const float *gp = has_g ? g + first : NULL, *xp = x + first;
    float *yp = y + first;
    vf end = { 0 };
    if (whole < l->line) end = apply_vector(has_g, &f, gp, xp, l->line - VL);   /* read before y is written: y may be x or g */
    for (int64_t at = 0; at < whole; at += VL) vf_store(yp + at, apply_vector(has_g, &f, gp, xp, at));
    if (whole < l->line) vf_store(yp + l->line - VL, end);
  }
  for (int64_t i = first; i < last; i++) {                                      /* rows that fill no line */
    int64_t c = i % l->channels;
    float d = x[i] - f.mean[c];
    y[i] = has_g ? f.scale[c] * g[i] + (f.slope[c] * d + f.shift[c]) : f.scale[c] * d + f.shift[c];
  }
}

/* ---- entries ---------------------------------------------------------------------------------------------------------------- */

/* The vector variant reads float32 as it lies in memory. */
static int supports_float32(const flow_call *call)
{
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32) return 0;
  return 1;
}

/* Phases 0 and 2 are cut by rows, phase 1 by channels. */
static int64_t vector_parts(const flow_call *call, int phase)
{
  layout l = layout_of(x_of(call));
  return phase == 1 ? (l.channels + CHANNEL_BLOCK - 1) / CHANNEL_BLOCK : l.parts;
}

/* Phase 0: sums of a part of the rows. 1: for a block of channels the parts' sums in order, then mean, variance and what follows from them.
 * 2: y. */
static flow_status forward_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  layout l = layout_of(&call->inputs[0]);
  for (int64_t part = begin; part < end; part++) {
    if (phase == 0) forward_part(call, &l, part);
    if (phase == 1) {
      int64_t first = part * CHANNEL_BLOCK, last = first + CHANNEL_BLOCK < l.channels ? first + CHANNEL_BLOCK : l.channels;
      combine_channels(call, &l, first, last);
    }
    if (phase == 2 && call->outputs[0].data) apply(0, call, &l, part, NULL, call->inputs[0].data, call->outputs[0].data);
  }
  return FLOW_OK;
}

/* The same three phases: sums of g and g xhat, coefficients, dx. */
static flow_status gradient_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  layout l = layout_of(&call->inputs[1]);
  for (int64_t part = begin; part < end; part++) {
    if (phase == 0) gradient_part(call, &l, part);
    if (phase == 1)
      for (int64_t c = part * CHANNEL_BLOCK; c < l.channels && c < (part + 1) * CHANNEL_BLOCK; c++) gradient_channel(call, &l, c);
    if (phase == 2 && call->outputs[0].data)
      apply(1, call, &l, part, call->inputs[0].data, call->inputs[1].data, call->outputs[0].data);
  }
  return FLOW_OK;
}

/* ---- plain: a part is PLAIN_CHANNELS channels over all rows ------------------------------------------------------------------- */

enum { PLAIN_CHANNELS = 16 };

/* Elements [at, at + n) of an operand as doubles, and back to one that may be unread. */
static void read_channels(const flow_operand *x, int64_t at, int64_t n, double *to)
{
  flow_convert_to_double(x->dtype, (const char *)x->data + at * flow_dtype_size(x->dtype), 1, to, n);
}
static void write_channels(const flow_operand *x, int64_t at, int64_t n, const double *from)
{
  if (x->data) flow_convert_from_double(x->dtype, from, (char *)x->data + at * flow_dtype_size(x->dtype), 1, n);
}

/* One phase, cut by channels: each part goes over all rows and needs nothing of the others. */
static int64_t plain_parts(const flow_call *call, int phase)
{
  (void)phase;
  const flow_operand *x = x_of(call);
  return (x->shape[x->rank - 1] + PLAIN_CHANNELS - 1) / PLAIN_CHANNELS;
}

/* What follows the normalization in batch_norm_relu. */
static void add_and_stop(const flow_call *call, int64_t at, int64_t n, double *y)
{
  double addend[PLAIN_CHANNELS] = { 0 };
  if (call->input_count > 3) read_channels(&call->inputs[3], at, n, addend);
  for (int64_t i = 0; i < n; i++) {
    y[i] += addend[i];
    if (y[i] < 0) y[i] = 0;
  }
}

/* The oracle for channels [c, c + n): mean, variance of the differences from it, then the formula (Ioffe and Szegedy 2015), in double. */
static void forward_channels(const flow_call *call, const layout *l, int64_t c, int64_t n)
{
  double mean[PLAIN_CHANNELS] = { 0 }, variance[PLAIN_CHANNELS] = { 0 }, gamma[PLAIN_CHANNELS], beta[PLAIN_CHANNELS], x[PLAIN_CHANNELS];
  double epsilon = call->attributes->normalization.epsilon;
  for (int64_t row = 0; row < l->rows; row++) {
    read_channels(&call->inputs[0], row * l->channels + c, n, x);
    for (int64_t i = 0; i < n; i++) mean[i] += x[i] / (double)l->rows;
  }
  for (int64_t row = 0; row < l->rows; row++) {
    read_channels(&call->inputs[0], row * l->channels + c, n, x);
    for (int64_t i = 0; i < n; i++) variance[i] += (x[i] - mean[i]) * (x[i] - mean[i]) / (double)l->rows;
  }
  for (int64_t i = 0; i < n && l->rows == 0; i++) variance[i] = 1;
  write_channels(&call->outputs[1], c, n, mean);
  write_channels(&call->outputs[2], c, n, variance);
  read_channels(&call->inputs[1], c, n, gamma);
  read_channels(&call->inputs[2], c, n, beta);
  for (int64_t row = 0; row < l->rows; row++) {
    read_channels(&call->inputs[0], row * l->channels + c, n, x);
    for (int64_t i = 0; i < n; i++) x[i] = (x[i] - mean[i]) / sqrt(variance[i] + epsilon) * gamma[i] + beta[i];
    if (call->op == FLOW_OP_batch_norm_relu) add_and_stop(call, row * l->channels + c, n, x);
    write_channels(&call->outputs[0], row * l->channels + c, n, x);
  }
}

/* dx = gamma / s (g - (sum g + x' sum(g x')) / rows), x' = (x - mean) / s, s = sqrt(variance + epsilon): the derivative of the formula
 * with mean and variance as functions of x. */
static void gradient_channels(const flow_call *call, const layout *l, int64_t c, int64_t n)
{
  double dbeta[PLAIN_CHANNELS] = { 0 }, dgamma[PLAIN_CHANNELS] = { 0 }, gamma[PLAIN_CHANNELS], mean[PLAIN_CHANNELS];
  double inverse[PLAIN_CHANNELS], g[PLAIN_CHANNELS], x[PLAIN_CHANNELS];
  read_channels(&call->inputs[2], c, n, gamma);
  read_channels(&call->inputs[3], c, n, mean);
  read_channels(&call->inputs[4], c, n, inverse);
  for (int64_t i = 0; i < n; i++) inverse[i] = 1 / sqrt(inverse[i] + call->attributes->normalization.epsilon);
  for (int64_t row = 0; row < l->rows; row++) {
    read_channels(&call->inputs[0], row * l->channels + c, n, g);
    read_channels(&call->inputs[1], row * l->channels + c, n, x);
    for (int64_t i = 0; i < n; i++) {
      dbeta[i] += g[i];
      dgamma[i] += g[i] * (x[i] - mean[i]) * inverse[i];
    }
  }
  write_channels(&call->outputs[1], c, n, dgamma);
  write_channels(&call->outputs[2], c, n, dbeta);
  for (int64_t row = 0; row < l->rows; row++) {
    read_channels(&call->inputs[0], row * l->channels + c, n, g);
    read_channels(&call->inputs[1], row * l->channels + c, n, x);
    for (int64_t i = 0; i < n; i++)
      g[i] = gamma[i] * inverse[i] * (g[i] - (dbeta[i] + (x[i] - mean[i]) * inverse[i] * dgamma[i]) / (double)l->rows);
    write_channels(&call->outputs[0], row * l->channels + c, n, g);
  }
}

/* Blocks of channels, forward or back. */
static flow_status plain_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  layout l = layout_of(x_of(call));
  for (int64_t part = begin; part < end; part++) {
    int64_t c = part * PLAIN_CHANNELS, n = l.channels - c < PLAIN_CHANNELS ? l.channels - c : PLAIN_CHANNELS;
    if (call->op == FLOW_OP_batch_norm_gradient) gradient_channels(call, &l, c, n);
    else forward_channels(call, &l, c, n);
  }
  return FLOW_OK;
}

#define PLAIN { .variant = "plain", .parts = plain_parts, .run = plain_run }
#define VARIANTS(function)                                                                                              \
  {                                                                                                                     \
    { .variant = "vector", .supports = supports_float32, .shared_bytes = shared_bytes, .scratch_bytes = scratch_bytes,  \
      .phases = PHASES, .parts = vector_parts, .run = function },                                                       \
    PLAIN,                                                                                                              \
    { 0 }                                                                                                               \
  }
const flow_kernel FLOW_KERNELS(batch_norm)[] = VARIANTS(forward_vector);
const flow_kernel FLOW_KERNELS(batch_norm_relu)[] = { PLAIN, { 0 } };
const flow_kernel FLOW_KERNELS(batch_norm_gradient)[] = VARIANTS(gradient_vector);
