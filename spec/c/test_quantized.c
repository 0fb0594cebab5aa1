/* test_quantized.c: quantize, quantize_weights and quantized_convolution of every variant and instruction set against plain loops over
 * whole numbers: to the last bit, since sums of integers are exact and what follows is not contracted. */
#include <math.h>
#include "kernel_runner.h"

typedef struct expected { unsigned char *bytes; const char *name; } expected;

static void same_bits(const flow_call *call, const char *variant, void *argument)
{
  const expected *e = argument;
  size_t bytes = operand_bytes(&call->outputs[0]);
  const unsigned char *found = call->outputs[0].data;
  for (size_t i = 0; i < bytes; i++)
    if (found[i] != e->bytes[i]) fail_msg("%s: %s: byte %zu of %zu is %d, expected %d", e->name, variant, i, bytes, found[i], e->bytes[i]);
}

/* Byte of x in a range, as the doc line of quantize says. Each product is rounded to a float. */
static int byte_of(float x, double low, double high)
{
  double step = (high - low) / 255;
  volatile float scaled = x * (float)(1 / step);
  double zero = rint(-low / step), q = rint((double)scaled) + zero;
  return q > 0 ? q < 255 ? (int)q : 255 : 0;
}

static void floats_become_bytes(void **state)
{
  (void)state;
  static const double ranges[][2] = { { 0, 6 }, { -1, 1 }, { -128, 127 }, { -0.3, 0.001 }, { 0, 1e-20 } };
  for (int n = 0; n < 70; n += n < 40 ? 1 : 13)
    for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
      flow_operand x = operand(FLOW_FLOAT32, 2, 1, n), y = operand(FLOW_UINT8, 2, 1, n);
      flow_attributes attributes = { .quantization = { ranges[r][0], ranges[r][1] } };
      unsigned char bytes[70];
      for (int i = 0; i < n; i++) {
        double value = i == 3 ? INFINITY : i == 5 ? -INFINITY : i == 7 ? NAN : 1.3 * next_number() * (ranges[r][1] - ranges[r][0]);
        set(&x, i, value);
        bytes[i] = (unsigned char)byte_of((float)value, ranges[r][0], ranges[r][1]);
      }
      flow_call call = call_of(FLOW_OP_quantize, &attributes, &x, 1, &y, 1);
      run_everywhere(&call, 0, same_bits, &(expected){ bytes, "quantize" });
      operand_free(&x);
      operand_free(&y);
    }
}

static void check_weights(const flow_call *call, const char *variant, void *argument)
{
  (void)argument;
  const flow_operand *w = &call->inputs[0], *q = &call->outputs[0], *scales = &call->outputs[1];
  int64_t outputs = scales->shape[0];
  for (int64_t c = 0; c < outputs; c++) {
    double largest = 0;
    for (int64_t i = c; i < operand_size(w); i += outputs) largest = fmax(largest, fabs(get(w, i)));
    assert_near(get(scales, c), largest / 127, largest * 1e-7, variant, c);
    for (int64_t i = c; i < operand_size(w); i += outputs) {
      assert_near(get(q, i) * get(scales, c), get(w, i), get(scales, c) * 0.501, variant, i);
      assert_true(fabs(get(q, i)) <= 127);
    }
  }
}

static void weights_have_a_scale_for_each_output(void **state)
{
  (void)state;
  static const int sizes[] = { 1, 63, 64, 65, 130 };
  for (int i = 0; i < 5; i++) {
    flow_operand w = operand(FLOW_FLOAT32, 3, 2, 3, sizes[i]);
    flow_operand outputs[2] = { operand(FLOW_INT8, 3, 2, 3, sizes[i]), operand(FLOW_FLOAT32, 1, sizes[i]) };
    flow_attributes none = { 0 };
    fill(&w, 3);
    for (int k = 0; k < 6; k++) set(&w, k * sizes[i], 0);      /* an output without weights */
    flow_call call = call_of(FLOW_OP_quantize_weights, &none, &w, 1, outputs, 2);
    run_everywhere(&call, 0, check_weights, NULL);
    operand_free(&w);
    operand_free(&outputs[0]);
    operand_free(&outputs[1]);
  }
}

/* Of a convolution, what is [2] along the rows and the columns of a picture. */
typedef struct shape {
  int images, size[2], in, out, kernel[2], stride[2], dilation[2], before[2], after[2], groups;
} shape;
/* The same along both. */
typedef struct square {
  int images, height, width, in, out, kernel, stride, dilation, before, after, groups;
} square;

static shape shape_of(const square *s)
{
  return (shape){
    .images = s->images,
    .size = { s->height, s->width },
    .in = s->in,
    .out = s->out,
    .kernel = { s->kernel, s->kernel },
    .stride = { s->stride, s->stride },
    .dilation = { s->dilation, s->dilation },
    .before = { s->before, s->before },
    .after = { s->after, s->after },
    .groups = s->groups
  };
}

/* Of the result; less than 1: the kernel does not fit. */
static int size_of(const shape *s, int axis)
{
  int room = s->size[axis] + s->before[axis] + s->after[axis] - (s->kernel[axis] - 1) * s->dilation[axis] - 1;
  return room < 0 ? 0 : room / s->stride[axis] + 1;
}

/* The sum of one output over whole numbers. */
static int64_t sum_at(const shape *s, const flow_operand *x, const flow_operand *w, int zero, int image, int row, int column, int channel)
{
  int64_t sum = 0;
  int group_in = s->in / s->groups, group = channel / (s->out / s->groups);
  for (int ky = 0; ky < s->kernel[0]; ky++)
    for (int kx = 0; kx < s->kernel[1]; kx++) {
      int iy = row * s->stride[0] + ky * s->dilation[0] - s->before[0], ix = column * s->stride[1] + kx * s->dilation[1] - s->before[1];
      if (iy < 0 || iy >= s->size[0] || ix < 0 || ix >= s->size[1]) continue;
      for (int c = 0; c < group_in; c++) {
        int pixel = ((const uint8_t *)x->data)[((image * s->size[0] + iy) * s->size[1] + ix) * s->in + group * group_in + c];
        sum += (pixel - zero) * ((const int8_t *)w->data)[((ky * s->kernel[1] + kx) * group_in + c) * s->out + channel];
      }
    }
  return sum;
}

/* added: how many of bias and residual the call adds; relu, bytes: what else it does besides. */
static void check_convolution(const shape *s, int relu, int added, int bytes, double low, double high)
{
  int height = size_of(s, 0), width = size_of(s, 1);
  flow_operand inputs[5] = { operand(FLOW_UINT8, 4, s->images, s->size[0], s->size[1], s->in),
                             operand(FLOW_INT8, 4, s->kernel[0], s->kernel[1], s->in / s->groups, s->out), operand(FLOW_FLOAT32, 1, s->out),
                             operand(FLOW_FLOAT32, 1, s->out), operand(FLOW_FLOAT32, 4, s->images, height, width, s->out) };
  flow_operand y = operand(bytes ? FLOW_UINT8 : FLOW_FLOAT32, 4, s->images, height, width, s->out);
  flow_attributes attributes = {
    .convolution = { .stride = { s->stride[0], s->stride[1] },
                     .dilation = { s->dilation[0], s->dilation[1] },
                     .padding = { s->before[0], s->after[0], s->before[1], s->after[1] },
                     .groups = s->groups,
                     .activation = relu ? FLOW_RELU : FLOW_LINEAR,
                     .has_bias = added > 0,
                     .input_low = low,
                     .input_high = high,
                     .low = bytes ? -2 : 0,
                     .high = bytes ? 3 : 0 }
  };
  for (int64_t i = 0; i < operand_size(&inputs[0]); i++)
    ((uint8_t *)inputs[0].data)[i] = (uint8_t)(i % 11 == 0 ? 255 : 127 + 128 * next_number());
  for (int64_t i = 0; i < operand_size(&inputs[1]); i++) ((int8_t *)inputs[1].data)[i] = (int8_t)(i % 7 == 0 ? 127 : 127 * next_number());
  fill(&inputs[2], 0.01);
  fill(&inputs[3], 1);
  fill(&inputs[4], 1);
  expected e = { malloc(operand_bytes(&y) + 1), "quantized_convolution" };
  float scale_in = (float)((high - low) / 255);
  int zero = byte_of(0, low, high);
  for (int at = 0; at < s->images * height * width * s->out; at++) {
    int channel = at % s->out, column = at / s->out % width, row = at / s->out / width % height, image = at / s->out / width / height;
    volatile float scale = scale_in * ((const float *)inputs[2].data)[channel];
    volatile float product = (float)sum_at(s, &inputs[0], &inputs[1], zero, image, row, column, channel) * scale;
    volatile float value = product + (added > 0 ? ((const float *)inputs[3].data)[channel] : 0);
    if (added > 1) value = value + ((const float *)inputs[4].data)[at];
    if (relu && value < 0) value = 0;
    if (bytes) e.bytes[at] = (unsigned char)byte_of(value, -2, 3);
    else memcpy(e.bytes + 4 * at, (const void *)&value, 4);
  }
  flow_call call = call_of(FLOW_OP_quantized_convolution, &attributes, inputs, 3 + added, &y, 1);
  run_everywhere(&call, 0, same_bits, &e);
  free(e.bytes);
  for (int i = 0; i < 5; i++) operand_free(&inputs[i]);
  operand_free(&y);
}

static void convolutions_are_sums_of_whole_numbers(void **state)
{
  (void)state;
  static const square squares[] = {
    { 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1 },         { 2, 5, 7, 4, 16, 3, 1, 1, 1, 1, 1 },     { 1, 6, 13, 3, 33, 3, 2, 1, 0, 1, 1 },
    { 3, 1, 1, 37, 10, 1, 1, 1, 0, 0, 1 },       { 1, 9, 30, 16, 48, 1, 1, 1, 0, 0, 1 },   { 2, 9, 9, 8, 5, 1, 2, 1, 0, 0, 1 },
    { 1, 12, 12, 6, 20, 3, 1, 2, 2, 2, 1 },      { 1, 7, 7, 8, 12, 3, 1, 1, 1, 1, 4 },     { 2, 8, 9, 20, 20, 3, 1, 1, 1, 1, 20 },
    { 1, 11, 10, 67, 67, 3, 2, 1, 0, 1, 67 },    { 1, 9, 9, 5, 15, 3, 1, 1, 1, 1, 5 },     { 1, 6, 6, 32, 32, 5, 1, 1, 2, 2, 32 },
    { 1, 20, 40, 32, 64, 3, 1, 1, 1, 1, 1 },     { 1, 3, 50, 260, 70, 1, 1, 1, 0, 0, 1 },  { 0, 5, 5, 4, 4, 3, 1, 1, 1, 1, 1 },
    { 1, 30, 31, 128, 128, 3, 1, 1, 1, 1, 128 }, { 2, 6, 7, 3, 9, 3, 1, 1, 0, 0, 1 },      { 1, 7, 9, 1, 17, 5, 2, 1, 2, 1, 1 },
    { 3, 2, 5, 3, 6, 1, 1, 1, 0, 0, 1 },         { 1, 9, 8, 5, 40, 3, 1, 2, 0, 0, 1 },     { 2, 9, 13, 8, 8, 3, 1, 1, 1, 1, 8 },
    { 1, 14, 11, 16, 16, 3, 2, 1, 0, 1, 16 },    { 1, 9, 9, 96, 96, 3, 1, 2, 2, 2, 96 },   { 1, 13, 12, 6, 6, 5, 3, 1, 2, 1, 6 },
    { 2, 4, 5, 64, 64, 2, 1, 1, 0, 0, 64 },      { 1, 70, 60, 32, 32, 3, 2, 2, 1, 2, 32 }, { 3, 3, 3, 256, 256, 3, 1, 1, 1, 1, 256 },
  };
  for (size_t i = 0; i < sizeof squares / sizeof squares[0]; i++) {
    shape s = shape_of(&squares[i]);
    check_convolution(&s, 0, 0, 0, -1, 1);
    check_convolution(&s, 1, 1, 0, 0, 4);
    check_convolution(&s, 1, 1, 1, 0, 4);
    check_convolution(&s, 0, 1, 1, -3, 0);
    check_convolution(&s, 1, 2, 0, -1, 2);
    check_convolution(&s, 0, 2, 1, -1, 2);
  }
}

static int draw(uint32_t *state, int from, int to)
{
  *state = *state * 1664525u + 1013904223u;
  return from + (int)(*state >> 8) % (to - from + 1);
}

/* Rows and columns have different kernels, strides, dilations and paddings. FLOW_CASES is how many. */
static void convolutions_of_any_sizes(void **state)
{
  (void)state;
  const char *text = getenv("FLOW_CASES");
  int count = text ? atoi(text) : 60, made = 0;
  for (uint32_t random = 3; made < count;) {
    int kind = draw(&random, 0, 3), in = draw(&random, 1, kind ? 40 : 130);
    shape s = { .images = draw(&random, 0, 9) ? draw(&random, 1, 2) : 0, .in = in, .groups = kind == 1 ? in : 1 };
    if (kind == 2 && in % 3 == 0) s.groups = 3;
    s.out = kind == 1 ? in * (draw(&random, 0, 4) ? 1 : 2) : s.groups * draw(&random, 1, 70 / s.groups);
    for (int axis = 0; axis < 2; axis++) {
      s.size[axis] = draw(&random, 1, 20);
      s.kernel[axis] = draw(&random, 1, 5);
      s.stride[axis] = draw(&random, 1, 3);
      s.dilation[axis] = draw(&random, 0, 2) ? 1 : draw(&random, 2, 3);
      s.before[axis] = draw(&random, 0, 1) * draw(&random, 0, 4);
      s.after[axis] = draw(&random, 0, 1) * draw(&random, 0, 4);
    }
    if (size_of(&s, 0) < 1 || size_of(&s, 1) < 1) continue;
    made++;
    double low = draw(&random, 0, 1) ? -1.5 : 0, high = low < 0 ? draw(&random, 0, 2) : 4;
    check_convolution(&s, draw(&random, 0, 1), draw(&random, 0, 2), draw(&random, 0, 1), low, high);
  }
}

static flow_status status_of(int dtype, double low, double high, int kernel)
{
  flow_signature x = { FLOW_UINT8, 4, { 1, 300, 300, 4 } }, w = { dtype, 4, { kernel, kernel, 4, 2 } }, y;
  flow_signature inputs[3] = { x, w, { FLOW_FLOAT32, 1, { 2 } } };
  flow_attributes attributes = { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1 } };
  attributes.convolution.input_low = low;
  attributes.convolution.input_high = high;
  return flow_op_infer(FLOW_OP_quantized_convolution, &attributes, inputs, 3, &y);
}

static void what_could_overflow_is_refused(void **state)
{
  (void)state;
  assert_int_equal(status_of(FLOW_INT8, 0, 1, 127), FLOW_OK);
  assert_int_equal(status_of(FLOW_INT8, 0, 1, 128), FLOW_INVALID_ARGUMENT);      /* 65536 products of up to 255 * 127 */
  assert_int_equal(status_of(FLOW_FLOAT32, 0, 1, 3), FLOW_INVALID_ARGUMENT);
  assert_int_equal(status_of(FLOW_INT8, 0.5, 1, 3), FLOW_INVALID_ARGUMENT);      /* 0 is not in it */
  assert_int_equal(status_of(FLOW_INT8, 0, 0, 3), FLOW_INVALID_ARGUMENT);
  assert_int_equal(status_of(FLOW_INT8, 0, NAN, 3), FLOW_INVALID_ARGUMENT);
}

static void a_residual_has_the_shape_of_the_result(void **state)
{
  (void)state;
  flow_signature inputs[5] = { { FLOW_UINT8, 4, { 1, 5, 5, 4 } }, { FLOW_INT8, 4, { 3, 3, 4, 2 } }, { FLOW_FLOAT32, 1, { 2 } },
                               { FLOW_FLOAT32, 1, { 2 } }, { FLOW_FLOAT32, 4, { 1, 3, 3, 2 } } }, y;
  flow_attributes attributes = { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .groups = 1, .input_high = 1 } };
  assert_int_equal(flow_op_infer(FLOW_OP_quantized_convolution, &attributes, inputs, 5, &y), FLOW_OK);
  inputs[4].dims[1] = 1;
  assert_int_equal(flow_op_infer(FLOW_OP_quantized_convolution, &attributes, inputs, 5, &y), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "the residual has shape {1, 1, 3, 2}, expected {1, 3, 3, 2}"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(floats_become_bytes),
    cmocka_unit_test(weights_have_a_scale_for_each_output),
    cmocka_unit_test(convolutions_are_sums_of_whole_numbers),
    cmocka_unit_test(convolutions_of_any_sizes),
    cmocka_unit_test(what_could_overflow_is_refused),
    cmocka_unit_test(a_residual_has_the_shape_of_the_result),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
