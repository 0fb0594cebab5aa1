/* normalize.c: normalize, normalize_gradient and layer_norm: x as lines of n elements, the normalized axes, each by itself.
 *
 *   forward    y = (x - mean) r [gamma [+ beta]]     r = 1 / sqrt(variance + epsilon)
 *   gradient   dx = r (g - mean(g) - y mean(g y))
 *
 * and without the means of x and g if normalization.uncentered. Variants: vector (float32), plain (every dtype, in double). Sums are
 * floats over RUN vectors, then double, so that a million terms cost no digits; the mean is rounded to float and then corrected by the
 * mean of what differs from it, so that a line far from 0 keeps the digits that x has. */
#include <math.h>
#include "cpu/math.h"
#include "cpu/outer_pieces.h"
#include "tensor/tensor.h"

/* Lines are taken TOGETHER, as far as they have that many FLOATS at most, which a first-level cache holds: the chain of operations from a
 * line's sum to its r is long, so that those of several lines overlap. */
enum { RUN = 8, TOGETHER = 8, FLOATS = 6144 };

/* y, which has x's shape. */
static const flow_operand *normalized_of(const flow_call *call)
{
  return &call->inputs[call->op == FLOW_OP_normalize_gradient];
}

/* The first normalized axis, counted from 0; all after it are normalized, too. */
static int first_axis(const flow_call *call)
{
  int axis = call->attributes->normalization.axis;
  return axis < 0 ? axis + normalized_of(call)->rank : axis;
}

/* Elements of a line; *count: how many lines. */
static int64_t line_of(const flow_call *call, int64_t *count)
{
  const flow_operand *x = normalized_of(call);
  int axis = first_axis(call);
  *count = flow_shape_size(axis, x->shape);
  return flow_shape_size(x->rank - axis, x->shape + axis);
}

/* ---- vector ---------------------------------------------------------------------------------------------------------- */

/* The vector variant reads float32 as it lies in memory. */
static int supports_float32(const flow_call *call)
{
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32) return 0;
  return 1;
}

typedef struct sums {
  double first, second;
} sums;

/* The sums of d = x - origin and of d y, or, if y is NULL, of d^2. */
ALWAYS_INLINE sums sum_line(const float *x, const float *y, int64_t n, vf origin)
{
  sums s = { 0, 0 };
  for (int64_t i = 0; i < n;) {
    vf first = { 0 }, second = { 0 };
    for (int64_t stop = i + RUN * VL < n ? i + RUN * VL : n; i < stop; i += VL) {
      vf d = vf_load_lanes(x + i, n - i, origin) - origin;
      first += d;
      second += d * (y ? vf_load_lanes(y + i, n - i, origin) : d);
    }
    s.first += (double)vf_sum(first);
    s.second += (double)vf_sum(second);
  }
  return s;
}

/* y = (x - origin) r + shift, times gamma, plus beta where they are. y may be x. */
ALWAYS_INLINE void write_line(const float *x, float *y, int64_t n, vf origin, vf r, vf shift, const float *gamma, const float *beta)
{
  const vf none = { 0 };
  for (int64_t i = 0; i < n; i += VL) {
    int64_t lanes = n - i;
    vf v = (vf_load_lanes(x + i, lanes, none) - origin) * r + shift;
    if (gamma) v *= vf_load_lanes(gamma + i, lanes, none);
    if (beta) v += vf_load_lanes(beta + i, lanes, none);
    vf_store_lanes(y + i, v, lanes);
  }
}

/* How many of the `left` lines of n elements are done at a time. */
static int64_t lines_together(int64_t n, int64_t left)
{
  int64_t most = n * TOGETHER <= FLOATS ? TOGETHER : n < FLOATS ? FLOATS / n : 1;
  return left < most ? left : most;
}

/* By what sums are multiplied to be means; those of no elements are 0. */
static double part_of(int64_t n)
{
  return n > 0 ? 1 / (double)n : 0;
}

/* What a line is multiplied by and moved by after `origin` was subtracted. */
typedef struct affine {
  float origin, r, shift;
} affine;

/* Of one line, from its sums around the origin. */
static affine affine_of(const flow_attributes *attributes, const float *x, int64_t n, float origin)
{
  /* origin is the mean rounded to float, or 0 if uncentered: what is left of the mean is `shift`, so small that the subtraction of its
   * square from the mean of squares cancels nothing that matters. */
  sums s = sum_line(x, NULL, n, vf_set(origin));
  double part = part_of(n), shift = attributes->normalization.uncentered ? 0 : s.first * part, variance = s.second * part - shift * shift;
  double r = 1 / sqrt((variance < 0 ? 0 : variance) + attributes->normalization.epsilon); /* a NaN stays */
  return (affine){ origin, (float)r, (float)(-shift * r) };
}

/* Neighbouring lines. r_out is written last: it may be x, whose lines then are of one element. */
static void normalize_lines(const flow_call *call, const float *x, float *y, float *r_out, int64_t n, int64_t lines)
{
  const float *gamma = call->input_count > 1 ? call->inputs[1].data : NULL, *beta = call->input_count > 2 ? call->inputs[2].data : NULL;
  affine a[TOGETHER] = { { 0 } };
  for (int64_t k = 0; k < lines && !call->attributes->normalization.uncentered; k++)
    a[k].origin = (float)(sum_line(x + k * n, NULL, n, vf_set(0)).first * part_of(n));
  for (int64_t k = 0; k < lines; k++) a[k] = affine_of(call->attributes, x + k * n, n, a[k].origin);
  for (int64_t k = 0; k < lines && y; k++) {
    vf origin = vf_set(a[k].origin), r = vf_set(a[k].r), shift = vf_set(a[k].shift);
    if (beta) write_line(x + k * n, y + k * n, n, origin, r, shift, gamma, beta);
    else if (gamma) write_line(x + k * n, y + k * n, n, origin, r, shift, gamma, NULL);
    else write_line(x + k * n, y + k * n, n, origin, r, shift, NULL, NULL);
  }
  for (int64_t k = 0; k < lines && r_out; k++) r_out[k] = a[k].r;
}

/* All lines, as many together as lines_together() says. y or r may be unread. */
static flow_status forward_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  (void)begin;
  (void)end;
  int64_t count, n = line_of(call, &count), lines;
  const float *x = call->inputs[0].data;
  float *y = call->outputs[0].data, *r = call->output_count > 1 ? call->outputs[1].data : NULL;
  for (int64_t line = 0; line < count; line += lines) {
    lines = lines_together(n, count - line);
    normalize_lines(call, x + line * n, y ? y + line * n : NULL, r ? r + line : NULL, n, lines);
  }
  return FLOW_OK;
}

/* Neighbouring lines; dx may be g or y. */
static void gradient_lines(const flow_call *call, const float *g, const float *y, const float *r, float *dx, int64_t n, int64_t lines)
{
  const vf none = { 0 };
  const double part = part_of(n);
  float mean[TOGETHER], slope[TOGETHER];
  for (int64_t k = 0; k < lines; k++) {
    sums s = sum_line(g + k * n, y + k * n, n, none);
    mean[k] = call->attributes->normalization.uncentered ? 0 : (float)(s.first * part);
    slope[k] = (float)(s.second * part);
  }
  for (int64_t k = 0; k < lines; k++) {
    vf m = vf_set(mean[k]), b = vf_set(slope[k]), scale = vf_set(r[k]);
    for (int64_t i = k * n; i < (k + 1) * n; i += VL) {
      int64_t lanes = (k + 1) * n - i;
      vf d = vf_load_lanes(g + i, lanes, none) - m - vf_load_lanes(y + i, lanes, none) * b;
      vf_store_lanes(dx + i, d * scale, lanes);
    }
  }
}

/* dx = r (g - mean(g) - y mean(g y)), y and r being outputs of the forward op: x is not needed. */
static flow_status gradient_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  (void)begin;
  (void)end;
  int64_t count, n = line_of(call, &count), lines;
  const float *g = call->inputs[0].data, *y = call->inputs[1].data, *r = call->inputs[2].data;
  float *dx = call->outputs[0].data;
  for (int64_t line = 0; line < count && dx; line += lines) {
    lines = lines_together(n, count - line);
    gradient_lines(call, g + line * n, y + line * n, r + line, dx + line * n, n, lines);
  }
  return FLOW_OK;
}

/* ---- plain ------------------------------------------------------------------------------------------------------------- */

/* Two lines of doubles. */
static size_t plain_scratch(const flow_call *call)
{
  int64_t count;
  return 2 * (size_t)line_of(call, &count) * sizeof(double);
}

/* Elements [at, at + n) of an operand as doubles, and back to one that may be unread. */
static void read_line(const flow_operand *x, int64_t at, int64_t n, double *to)
{
  flow_convert_to_double(x->dtype, (const char *)x->data + at * flow_dtype_size(x->dtype), 1, to, n);
}
static void write_doubles(const flow_operand *x, int64_t at, int64_t n, const double *from)
{
  if (x->data) flow_convert_from_double(x->dtype, from, (char *)x->data + at * flow_dtype_size(x->dtype), 1, n);
}

/* Terms are divided before they are added: a sum of doubles could be infinite where its mean is not. */
static double mean_of(const double *a, const double *b, int64_t n)
{
  double mean = 0;
  for (int64_t i = 0; i < n; i++) mean += a[i] / (double)n * (b ? b[i] : 1);
  return mean;
}

/* One line by the definition; x and other: two lines of doubles in scratch. */
static void forward_line(const flow_call *call, int64_t line, int64_t n, double *x, double *other)
{
  read_line(&call->inputs[0], line * n, n, x);
  double mean = call->attributes->normalization.uncentered ? 0 : mean_of(x, NULL, n);
  for (int64_t i = 0; i < n; i++) x[i] -= mean;
  double r = 1 / sqrt(mean_of(x, x, n) + call->attributes->normalization.epsilon);
  for (int64_t i = 0; i < n; i++) x[i] *= r;
  for (int k = 1; k < call->input_count; k++) {
    read_line(&call->inputs[k], 0, n, other);
    for (int64_t i = 0; i < n; i++) x[i] = k == 1 ? x[i] * other[i] : x[i] + other[i];
  }
  write_doubles(&call->outputs[0], line * n, n, x);
  if (call->output_count > 1) write_doubles(&call->outputs[1], line, 1, &r);
}

/* One line by the definition; g and y: two lines of doubles in scratch. */
static void gradient_line(const flow_call *call, int64_t line, int64_t n, double *g, double *y)
{
  double r;
  read_line(&call->inputs[0], line * n, n, g);
  read_line(&call->inputs[1], line * n, n, y);
  read_line(&call->inputs[2], line, 1, &r);
  double mean = call->attributes->normalization.uncentered ? 0 : mean_of(g, NULL, n), slope = mean_of(g, y, n);
  for (int64_t i = 0; i < n; i++) g[i] = r * (g[i] - mean - y[i] * slope);
  write_doubles(&call->outputs[0], line * n, n, g);
}

/* The oracle, line by line by the formulas, in double. */
static flow_status plain_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  (void)begin;
  (void)end;
  int64_t count, n = line_of(call, &count);
  double *a = call->scratch, *b = a + n;
  for (int64_t line = 0; line < count; line++) {
    if (call->op == FLOW_OP_normalize_gradient) gradient_line(call, line, n, a, b);
    else forward_line(call, line, n, a, b);
  }
  return FLOW_OK;
}

/* ---- entries ------------------------------------------------------------------------------------------------------------- */

/* Ranges of an axis before the normalized ones. */
static int64_t pieces_of(const flow_call *call)
{
  return flow_outer_axis(&call->outputs[0]) < first_axis(call) ? flow_outer_pieces(call) : 1;
}

#define NORMALIZE(name, function)                                                                                                         \
  static flow_status name##_piece(const flow_call *call, int64_t piece)                                                                   \
  {                                                                                                                                       \
    return pieces_of(call) > 1 ? flow_run_outer_piece(function, call, piece) : function(call, 0, 0, 1);                                   \
  }                                                                                                                                       \
  const flow_kernel FLOW_KERNELS(                                                                                                         \
      name)[] = { { .variant = "vector", .supports = supports_float32, .run = function, .pieces = pieces_of, .run_piece = name##_piece }, \
                  { .variant = "plain", .scratch_bytes = plain_scratch, .run = plain_run },                                               \
                  { 0 } };
NORMALIZE(normalize, forward_vector)
NORMALIZE(layer_norm, forward_vector)
NORMALIZE(normalize_gradient, gradient_vector)
