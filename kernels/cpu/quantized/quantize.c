/* quantize.c: float32 to bytes: quantize (activations, by a given range) and quantize_weights (by the largest weight of each output). */
#include "cpu/outer_pieces.h"
#include "cpu/quantized/quantized.h"

#include <float.h>

/* The product of the first `axes` sizes. */
static int64_t rows_of(const flow_operand *operand, int axes)
{
  int64_t rows = 1;
  for (int axis = 0; axis < axes; axis++) rows *= operand->shape[axis];
  return rows;
}

/* round(x / scale) + zero, kept within 0 .. 255, a vector at a time. */
static flow_status run_quantize(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_attributes *a = call->attributes;
  flow_byte_steps steps = flow_byte_steps_of(flow_quantization_of(a->quantization.low, a->quantization.high));
  const float *x = call->inputs[0].data;
  uint8_t *y = call->outputs[0].data;
  int64_t size = rows_of(&call->inputs[0], call->inputs[0].rank), i = 0;
  if (!y) return FLOW_OK;
  for (; i + VL <= size; i += VL) flow_store_quantized(y + i, vf_load(x + i), &steps, VL);
  if (i < size) flow_store_quantized(y + i, vf_load_part(x + i, (int)(size - i)), &steps, (int)(size - i));
  return FLOW_OK;
}

/* Elements do not depend on each other: any range of them is a piece. */
static flow_status run_quantize_piece(const flow_call *call, int64_t piece)
{
  return flow_run_outer_piece(run_quantize, call, piece);
}

const flow_kernel FLOW_KERNELS(quantize)[] = {
  { .variant = "vectors", .run = run_quantize, .pieces = flow_outer_pieces, .run_piece = run_quantize_piece }, { 0 }
};

/* MOST: the largest magnitude of a weight; -128 is left out, so that the range is symmetric. */
enum { OUTPUTS = 64 /* of a part */, MOST = 127 };

/* Parts are ranges of outputs: a scale follows from a whole column. */
static int64_t parts(const flow_call *call, int phase)
{
  const flow_operand *w = &call->inputs[0];
  return (void)phase, (w->shape[w->rank - 1] + OUTPUTS - 1) / OUTPUTS;
}

/* The largest absolute value of a column, or NaN if there is one. */
static float largest_of(const float *w, int64_t rows, int64_t step)
{
  float largest = 0;
  for (int64_t row = 0; row < rows; row++) {
    float size = fabsf(w[row * step]);
    if (size > largest || size != size) largest = size;
  }
  return largest;
}

/* Symmetric, a scale for each output: the largest magnitude becomes 127. Scales below the least normal float count as 0. Where a weight
 * is NaN the scale is NaN and the bytes are 0, so that what is computed with them is NaN. */
static flow_status run_weights(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  const flow_operand *input = &call->inputs[0];
  int8_t *q = call->outputs[0].data;
  float *scales = call->outputs[1].data;
  int64_t outputs = input->shape[input->rank - 1], rows = rows_of(input, input->rank - 1);
  end = end * OUTPUTS < outputs ? end * OUTPUTS : outputs;
  for (int64_t c = begin * OUTPUTS; c < end; c++) {
    const float *w = (const float *)input->data + c;
    float scale = largest_of(w, rows, outputs) / MOST;
    if (scale < FLT_MIN) scale = 0;
    if (scales) scales[c] = scale;
    for (int64_t row = 0; row < rows && q; row++) {
      float value = scale > 0 ? rintf(w[row * outputs] / scale) : 0;
      q[row * outputs + c] = (int8_t)(value > -MOST ? value < MOST ? value : MOST : -MOST);
    }
  }
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(quantize_weights)[] = { { .variant = "plain", .parts = parts, .run = run_weights }, { 0 } };
