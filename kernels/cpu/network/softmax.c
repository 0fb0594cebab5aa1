/* softmax.c: softmax, softmax_gradient and log_softmax along one axis of {outer, n, inner}.
 *
 * Stable: the largest element is subtracted first. Variants: vector (float32; vectors run along the axis when it is the
 * last one and not short, across lines otherwise), plain (every dtype, in double). Sums are floats over RUN vectors, then double, so that a
 * million terms cost no digits. */
#include <math.h>
#include "axis_lines.h"
#include "cpu/math.h"
#include "cpu/math_doubles.h"
#include "cpu/network/softmax_rows.h"
#include "cpu/outer_pieces.h"
#include "tensor/tensor.h"

/* Of the first input: all operands of these ops have one shape. */
static flow_axis_lines lines_of(const flow_call *call)
{
  return flow_lines_along(&call->inputs[0], call->attributes->axis.axis);
}

/* The vector variant reads float32 as it lies in memory. */
static int supports_float32(const flow_call *call)
{
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32) return 0;
  return 1;
}

/* ---- along the last axis ---------------------------------------------------------------------------------------- */

/* x - largest - log(sum of e^(x - largest)): no exponential is divided, so that small probabilities keep their digits. */
static void log_softmax_row(const float *x, float *y, int64_t n)
{
  vf largest = vf_set(row_max(x, n));
  vf log_sum = vf_set(logf((float)row_exponential_sum(x, n, largest)));
  for (int64_t i = 0; i < n; i += VL) vf_store_lanes(y + i, load_lanes(x + i, n - i) - largest - log_sum, n - i);
}

/* ---- across: `lanes` <= VL neighbouring lines, their elements `step` floats apart -------------------------------- */

/* The same across: each lane is its own line. */
static void softmax_strip(const float *x, float *y, int64_t n, int64_t step, int64_t lanes)
{
  vf largest = strip_max(x, n, step, lanes);
  STRIP_SUM(sum, n, kept(y + i * step, vf_exp(load_lanes(x + i * step, lanes) - largest), lanes));
  for (int64_t i = 0; i < n; i++) vf_store_lanes(y + i * step, load_lanes(y + i * step, lanes) / sum, lanes);
}

/* x is read twice instead of storing what is summed: y then is written once. */
static void log_softmax_strip(const float *x, float *y, int64_t n, int64_t step, int64_t lanes)
{
  vf largest = strip_max(x, n, step, lanes);
  STRIP_SUM(sum, n, vf_exp(load_lanes(x + i * step, lanes) - largest));
  vf log_sum = vf_log(sum);
  for (int64_t i = 0; i < n; i++) vf_store_lanes(y + i * step, load_lanes(x + i * step, lanes) - largest - log_sum, lanes);
}

/* Lanes that hold no line multiply infinities, which may be NaN: none of them is stored. */
static void softmax_gradient_strip(const float *g, const float *y, float *dx, int64_t n, int64_t step, int64_t lanes)
{
  STRIP_SUM(sum, n, load_lanes(g + i * step, lanes) * load_lanes(y + i * step, lanes));
  for (int64_t i = 0; i < n; i++) {
    vf d = (load_lanes(g + i * step, lanes) - sum) * load_lanes(y + i * step, lanes);
    vf_store_lanes(dx + i * step, d, lanes);
  }
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

typedef void (*row_function)(const float *x, float *y, int64_t n);
typedef void (*strip_function)(const float *x, float *y, int64_t n, int64_t step, int64_t lanes);

/* Rows of few elements, VL at a time as a strip. */
static void run_few(const float *x, float *y, int64_t rows, int64_t n, strip_function strip)
{
  float lanes[SHORT_ROW * VL];
  for (; rows > 0; rows -= VL, x += n * VL, y += n * VL) {
    int64_t count = rows < VL ? rows : VL;
    rows_to_strip(x, n, lanes, n, count);
    strip(lanes, lanes, n, VL, count);
    strip_to_rows(lanes, y, n, count);
  }
}

/* Along the last axis a line is a row; otherwise up to VL neighbouring lines are one strip, their elements side by side in memory. */
static void run_lines(const flow_call *call, row_function row, strip_function strip)
{
  flow_axis_lines l = lines_of(call);
  const float *x = call->inputs[0].data;
  float *y = call->outputs[0].data;
  if (!y || l.n == 0) return;
  if (l.inner == 1 && l.n <= SHORT_ROW) {
    run_few(x, y, l.outer, l.n, strip);
    return;
  }
  for (int64_t o = 0; o < l.outer; o++, x += l.n * l.inner, y += l.n * l.inner) {
    if (l.inner == 1) row(x, y, l.n);
    else for (int64_t i = 0; i < l.inner; i += VL) strip(x + i, y + i, l.n, l.inner, l.inner - i);
  }
}

/* A call has any number of lines; the engine cuts it along the outermost axis (pieces_of). */
static flow_status softmax_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  run_lines(call, softmax_row, softmax_strip);
  return FLOW_OK;
}

/* See softmax_vector. */
static flow_status log_softmax_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  run_lines(call, log_softmax_row, log_softmax_strip);
  return FLOW_OK;
}

/* As run_lines(), with two inputs. Lines of no elements have no loop to run. */
static flow_status softmax_gradient_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  flow_axis_lines l = lines_of(call);
  const float *g = call->inputs[0].data, *y = call->inputs[1].data;
  float *dx = call->outputs[0].data;
  if (!dx) return FLOW_OK;
  if (l.inner == 1 && l.n <= SHORT_ROW && l.n > 0) {
    float g_lanes[SHORT_ROW * VL], y_lanes[SHORT_ROW * VL];
    for (int64_t rows = l.outer; rows > 0; rows -= VL, g += l.n * VL, y += l.n * VL, dx += l.n * VL) {
      int64_t count = rows < VL ? rows : VL;
      rows_to_strip(g, l.n, g_lanes, l.n, count);
      rows_to_strip(y, l.n, y_lanes, l.n, count);
      softmax_gradient_strip(g_lanes, y_lanes, g_lanes, l.n, VL, count);
      strip_to_rows(g_lanes, dx, l.n, count);
    }
    return FLOW_OK;
  }
  for (int64_t o = 0; o < l.outer; o++, g += l.n * l.inner, y += l.n * l.inner, dx += l.n * l.inner) {
    if (l.inner == 1) softmax_gradient_row(g, y, dx, l.n);
    else for (int64_t i = 0; i < l.inner; i += VL) softmax_gradient_strip(g + i, y + i, dx + i, l.n, l.inner, l.inner - i);
  }
  return FLOW_OK;
}

/* y = e^(x - largest), and the sum of that in order; y may be x. */
static double double_exponentials(const double *x, double *y, int64_t n, double largest)
{
  int64_t k = 0;
  double sum = 0;
  for (; k + VL / 2 <= n; k += VL / 2) vd_store(y + k, vd_exp(vd_load(x + k) - vd_set(largest)));
  for (; k < n; k++) y[k] = vd_exp(vd_set(x[k] - largest))[0];
  for (k = 0; k < n; k++) sum += y[k];
  return sum;
}

/* Two lines of doubles. */
static size_t plain_scratch(const flow_call *call) { return 2 * (size_t)lines_of(call).n * sizeof(double); }

/* The oracle, line by line in double; the largest element is subtracted first, so that nothing overflows. The gradient is (g - sum(g y))
 * y. */
static flow_status plain_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  flow_axis_lines l = lines_of(call);
  const flow_operand *x = &call->inputs[0], *out = &call->outputs[0];
  if (!out->data || l.n == 0) return FLOW_OK;
  double *a = call->scratch, *b = a + l.n;
  for (int64_t o = 0; o < l.outer; o++)
    for (int64_t i = 0; i < l.inner; i++) {
      int64_t at = o * l.n * l.inner + i;
      flow_convert_to_double(x->dtype, (const char *)x->data + at * flow_dtype_size(x->dtype), l.inner, a, l.n);
      if (call->op == FLOW_OP_softmax_gradient) {
        const flow_operand *y = &call->inputs[1];
        flow_convert_to_double(y->dtype, (const char *)y->data + at * flow_dtype_size(y->dtype), l.inner, b, l.n);
        double sum = 0;
        for (int64_t k = 0; k < l.n; k++) sum += a[k] * b[k];
        for (int64_t k = 0; k < l.n; k++) a[k] = (a[k] - sum) * b[k];
      } else {
        int is_softmax = call->op == FLOW_OP_softmax;
        double largest = -INFINITY;
        for (int64_t k = 0; k < l.n; k++) largest = a[k] > largest ? a[k] : largest;
        double sum = double_exponentials(a, is_softmax ? a : b, l.n, largest), log_sum = log(sum);
        for (int64_t k = 0; k < l.n; k++) a[k] = is_softmax ? a[k] / sum : a[k] - largest - log_sum;
      }
      flow_convert_from_double(out->dtype, a, (char *)out->data + at * flow_dtype_size(out->dtype), l.inner, l.n);
    }
  return FLOW_OK;
}

/* Ranges of an axis before the one of the lines. */
static int64_t pieces_of(const flow_call *call)
{
  int axis = call->attributes->axis.axis;
  return flow_outer_axis(&call->outputs[0]) < (axis < 0 ? axis + call->outputs[0].rank : axis) ? flow_outer_pieces(call) : 1;
}

/* Pieces are whole lines: a call whose only long axis is that of the lines is one piece. */
#define SOFTMAX(name)                                                                                                            \
  static flow_status name##_piece(const flow_call *call, int64_t piece)                                                          \
  {                                                                                                                              \
    return pieces_of(call) > 1 ? flow_run_outer_piece(name##_vector, call, piece) : name##_vector(call, 0, 0, 1);                \
  }                                                                                                                              \
  const flow_kernel FLOW_KERNELS(name)[] = {                                                                                     \
    { .variant = "vector", .supports = supports_float32, .run = name##_vector, .pieces = pieces_of, .run_piece = name##_piece }, \
    { .variant = "plain", .scratch_bytes = plain_scratch, .run = plain_run },                                                    \
    { 0 }                                                                                                                        \
  };
SOFTMAX(softmax)
SOFTMAX(log_softmax)
SOFTMAX(softmax_gradient)
