/* cross_entropy.c: sparse_cross_entropy and its gradient over logits {..., classes} and one integer label a row.
 *
 *   loss = log(sum of e^z) - z[label]        gradient = g (softmax(z) - onehot(label))
 *
 * Variants: vector (float32 logits), plain (every dtype, in double). Labels have any dtype; one outside 0..classes-1 is
 * the caller's mistake and is named. */
#include <math.h>
#include "cpu/index.h"
#include "cpu/math.h"
#include "cpu/network/strips.h"
#include "tensor/tensor.h"

/* The label of line i of this chunk: a whole number below `classes`. The fields of a failure have the row and the label. */
static flow_status read_label(const flow_call *call, const flow_operand *labels, int64_t i, int64_t classes, int64_t *label)
{
  int64_t lines_a_row = 1;
  for (int axis = 1; axis < labels->rank; axis++) lines_a_row *= labels->shape[axis];
  flow_status status = read_index(call, "label", labels, i, lines_a_row, classes, label);
  return status == FLOW_OK ? FLOW_OK : flow_fail_field(status, FLOW_ERROR_LABEL, index_value(labels, i));
}

/* Labels come last and have any dtype. */
static int supports_float32(const flow_call *call)
{
  int last = call->input_count - 1;                    /* the labels */
  for (int i = 0; i < last; i++)
    if (call->inputs[i].dtype != FLOW_FLOAT32) return 0;
  return 1;
}

/* Softmax of n floats before the division: e[i] = e^(z[i] - largest), where e is not NULL; it may be z. Returns their sum, which is NaN
 * if a z is. The lanes that n does not fill are -infinity, whose exponential is 0. */
static float exponentials(const float *z, int64_t n, float *e, float *largest)
{
  *largest = row_max(z, n);
  double total = 0;
  /* The tail is read before anything is written: e may be z. */
  int64_t whole = n / VL * VL;
  int rest = (int)(n - whole);
  vf tail = vf_set(-INFINITY);
  memcpy(&tail, z + whole, (size_t)rest * sizeof(float));
  tail = vf_exp(tail - vf_set(*largest));
  if (e) vf_store_part(e + whole, tail, rest);
  for (int64_t i = 0; i < whole;) {
    int64_t end = i + RUN * VL < whole ? i + RUN * VL : whole;
    vf sum = { 0 };
    for (; i < end; i += VL) {
      vf y = vf_exp(vf_load(z + i) - vf_set(*largest));
      sum += y;
      if (e) vf_store(e + i, y);
    }
    /* The last run joins the tail, so that a line of few classes is summed across lanes once. */
    if (end == whole) tail += sum;
    else total += (double)vf_sum(sum);
  }
  return (float)(total + (double)vf_sum(tail));
}

/* The loss of `rows` <= VL rows of few classes, as loss_vector(). */
static void loss_of_few(const float *z, const int64_t *label, float *loss, int64_t classes, int64_t rows)
{
  float lanes[SHORT_ROW * VL];
  rows_to_strip(z, classes, lanes, classes, rows);
  vf largest = strip_max(lanes, classes, VL, rows), own = { 0 };
  for (int64_t r = 0; r < rows; r++) own[r] = z[r * classes + label[r]];
  STRIP_SUM(sum, classes, vf_exp(load_lanes(lanes + i * VL, rows) - largest));
  vf_store_lanes(loss, vf_log(sum) - (own - largest), rows);
}

/* Their gradient, as gradient_vector(). */
static void gradient_of_few(const float *g, const float *z, const int64_t *label, float *dz, int64_t classes, int64_t rows)
{
  float lanes[SHORT_ROW * VL];
  rows_to_strip(z, classes, lanes, classes, rows);
  vf largest = strip_max(lanes, classes, VL, rows);
  STRIP_SUM(sum, classes, kept(lanes + i * VL, vf_exp(load_lanes(lanes + i * VL, rows) - largest), rows));
  vf scale = load_lanes(g, rows) / sum;
  for (int64_t i = 0; i < classes; i++) vf_store_lanes(lanes + i * VL, load_lanes(lanes + i * VL, rows) * scale, rows);
  strip_to_rows(lanes, dz, classes, rows);
  for (int64_t r = 0; r < rows; r++) dz[r * classes + label[r]] -= g[r];
}

/* The labels of `rows` <= VL lines from line i on; the first that is out of range fails as read_label() says. */
static flow_status read_labels(const flow_call *call, const flow_operand *labels, int64_t i, int64_t rows, int64_t classes, int64_t *label)
{
  double values[VL];
  flow_convert_to_double(labels->dtype, (const char *)labels->data + i * flow_dtype_size(labels->dtype), 1, values, rows);
  for (int64_t r = 0; r < rows; r++) {
    if (!(values[r] >= 0 && values[r] < (double)classes)) return read_label(call, labels, i + r, classes, &label[r]);
    label[r] = (int64_t)values[r];
  }
  return FLOW_OK;
}

/* In float: log(sum) - (z[label] - largest) has the small difference first, so that a confident row's loss keeps its digits. Labels are
 * checked before anything is written for their line. */
static flow_status loss_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *logits = &call->inputs[0], *labels = &call->inputs[1];
  int64_t classes = logits->shape[logits->rank - 1], lines = flow_shape_size(labels->rank, labels->shape);
  const float *z = logits->data;
  float *loss = call->outputs[0].data;
  for (int64_t i = 0; classes <= SHORT_ROW && i < lines; i += VL) {
    int64_t label[VL], rows = lines - i < VL ? lines - i : VL;
    FLOW_TRY(read_labels(call, labels, i, rows, classes, label));
    if (loss) loss_of_few(z + i * classes, label, loss + i, classes, rows);
  }
  for (int64_t i = 0; classes > SHORT_ROW && i < lines; i++, z += classes) {
    int64_t label = 0;
    float largest;
    FLOW_TRY(read_label(call, labels, i, classes, &label));
    if (!loss) continue;
    float sum = exponentials(z, classes, NULL, &largest);
    loss[i] = logf(sum) - (z[label] - largest);
  }
  return FLOW_OK;
}

/* g (softmax(z) - onehot), with the exponentials made in place of the result. */
static flow_status gradient_vector(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  const flow_operand *logits = &call->inputs[1], *labels = &call->inputs[2];
  int64_t classes = logits->shape[logits->rank - 1], lines = flow_shape_size(labels->rank, labels->shape);
  const float *g = call->inputs[0].data, *z = logits->data;
  float *dz = call->outputs[0].data;
  if (!dz) return FLOW_OK;
  for (int64_t i = 0; classes <= SHORT_ROW && i < lines; i += VL) {
    int64_t label[VL], rows = lines - i < VL ? lines - i : VL;
    FLOW_TRY(read_labels(call, labels, i, rows, classes, label));
    gradient_of_few(g + i, z + i * classes, label, dz + i * classes, classes, rows);
  }
  for (int64_t i = 0; classes > SHORT_ROW && i < lines; i++, z += classes, dz += classes) {
    int64_t label = 0;
    float largest;
    FLOW_TRY(read_label(call, labels, i, classes, &label));
    float scale = g[i] / exponentials(z, classes, dz, &largest);
    for (int64_t j = 0; j < classes; j++) dz[j] *= scale;
    dz[label] -= g[i];
  }
  return FLOW_OK;
}

/* One line of doubles. */
static size_t plain_scratch(const flow_call *call)
{
  const flow_operand *logits = &call->inputs[call->input_count - 2];
  return (size_t)logits->shape[logits->rank - 1] * sizeof(double);
}

/* The oracle: loss = log(sum exp(z - max)) - (z[label] - max), and g (softmax(z) - onehot). A label out of range is an error of the
 * call. */
static flow_status plain_run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase; (void)begin; (void)end;
  int gradient = call->op == FLOW_OP_sparse_cross_entropy_gradient;
  const flow_operand *logits = &call->inputs[gradient], *labels = &call->inputs[gradient + 1], *out = &call->outputs[0];
  int64_t classes = logits->shape[logits->rank - 1], lines = flow_shape_size(labels->rank, labels->shape);
  double *z = call->scratch;
  for (int64_t i = 0; i < lines; i++) {
    int64_t label = 0;
    FLOW_TRY(read_label(call, labels, i, classes, &label));
    if (!out->data) continue;
    flow_convert_to_double(logits->dtype, (const char *)logits->data + i * classes * flow_dtype_size(logits->dtype), 1, z, classes);
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < classes; j++) largest = z[j] > largest ? z[j] : largest;
    for (int64_t j = 0; j < classes; j++) sum += exp(z[j] - largest);
    if (gradient) {
      const flow_operand *upstream = &call->inputs[0];
      double g;
      flow_convert_to_double(upstream->dtype, (const char *)upstream->data + i * flow_dtype_size(upstream->dtype), 1, &g, 1);
      for (int64_t j = 0; j < classes; j++) z[j] = g * (exp(z[j] - largest) / sum - (j == label));
      flow_convert_from_double(out->dtype, z, (char *)out->data + i * classes * flow_dtype_size(out->dtype), 1, classes);
    } else {
      double loss = log(sum) - (z[label] - largest);
      flow_convert_from_double(out->dtype, &loss, (char *)out->data + i * flow_dtype_size(out->dtype), 1, 1);
    }
  }
  return FLOW_OK;
}

#define VARIANTS(function)                                                    \
  {                                                                           \
    { .variant = "vector", .supports = supports_float32, .run = function },   \
    { .variant = "plain", .scratch_bytes = plain_scratch, .run = plain_run }, \
    { 0 }                                                                     \
  }
const flow_kernel FLOW_KERNELS(sparse_cross_entropy)[] = VARIANTS(loss_vector);
const flow_kernel FLOW_KERNELS(sparse_cross_entropy_gradient)[] = VARIANTS(gradient_vector);
