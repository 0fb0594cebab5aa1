/* test_cuda_convolution.c: convolution and its gradient on the device, in every variant that it has, against the CPU's plain kernels.
 * Values are such that all sums are exact, so that maxima of pooling are the same ones whatever the order of the sums. */
#include "convolution_cases.h"
#include "cuda_runner.h"

/* Operands of a forward and a backward call. */
typedef struct fixture {
  flow_attributes attributes;
  flow_operand    x, w, b, y, index, g, dx, dw, db;
} fixture;

/* Multiples of 1/4 between -2 and 2; bytes between 0 and 15. */
static void fill_exact(flow_operand *x)
{
  for (int64_t i = 0; i < operand_size(x); i++) {
    double step = floor(8 * next_number());
    set(x, i, x->dtype == FLOW_UINT8 ? step + 8 : step / 4);
  }
}

/* n: images, instead of the case's. */
static void fixture_make(fixture *f, const convolution_case *c, int n, int dtype, int x_dtype)
{
  int out[2], result[2], in[2] = { c->h, c->w }, kernel[2] = { c->kh, c->kw };
  memset(f, 0, sizeof *f);
  f->attributes.convolution.groups = c->groups;
  f->attributes.convolution.activation = c->relu ? FLOW_RELU : 0;
  f->attributes.convolution.has_bias = c->bias;
  for (int i = 0; i < 4; i++) f->attributes.convolution.padding[i] = c->padding[i];
  for (int i = 0; i < 2; i++) {
    f->attributes.convolution.stride[i] = c->stride[i];
    f->attributes.convolution.dilation[i] = c->dilation;
    f->attributes.convolution.pool[i] = c->pool[i];
    f->attributes.convolution.pool_stride[i] = c->pool_stride[i];
    f->attributes.convolution.input_size[i] = in[i];
    out[i] = (in[i] + c->padding[2 * i] + c->padding[2 * i + 1] - c->dilation * (kernel[i] - 1) - 1) / c->stride[i] + 1;
    result[i] = c->pool[i] ? (out[i] - c->pool[i]) / c->pool_stride[i] + 1 : out[i];
  }
  f->x = operand(x_dtype, 4, n, c->h, c->w, c->ci);
  f->dx = operand(dtype, 4, n, c->h, c->w, c->ci);
  f->w = operand(dtype, 4, c->kh, c->kw, c->ci / c->groups, c->co);
  f->dw = operand(dtype, 4, c->kh, c->kw, c->ci / c->groups, c->co);
  f->b = operand(dtype, 1, c->co);
  f->db = operand(dtype, 1, c->co);
  f->y = operand(dtype, 4, n, result[0], result[1], c->co);
  f->g = operand(dtype, 4, n, result[0], result[1], c->co);
  f->index = c->pool[0] ? operand(FLOW_UINT8, 4, n, result[0], result[1], c->co) : operand(FLOW_UINT8, 1, 0);
  fill_exact(&f->x), fill_exact(&f->w), fill_exact(&f->b), fill_exact(&f->g);
}

static void fixture_free(fixture *f)
{
  flow_operand *all[] = { &f->x, &f->w, &f->b, &f->y, &f->index, &f->g, &f->dx, &f->dw, &f->db };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) operand_free(all[i]);
}

static double tolerance_of(int dtype) { return dtype == FLOW_FLOAT32 ? 1e-6 : 1e-14; }

static void forward(fixture *f, int without_y, int without_index, double tolerance)
{
  flow_operand inputs[3] = { f->x, f->w, f->b }, outputs[2] = { f->y, f->index };
  if (without_y) outputs[0].data = NULL;
  if (without_index) outputs[1].data = NULL;
  flow_call call = call_of(FLOW_OP_convolution, &f->attributes, inputs, f->attributes.convolution.has_bias ? 3 : 2, outputs, 2);
  cuda_matches_cpu(&call, 0, tolerance);
}

/* The CPU's gradient knows no scale of the input (fuse_images.c). */
static flow_status gradient_of_scaled(flow_call *call)
{
  flow_attributes plain = *call->attributes;
  flow_call there = *call;
  flow_operand *dw = &call->outputs[1];
  double scale = plain.convolution.input_scale;
  plain.convolution.input_scale = 0;
  there.attributes = &plain;
  flow_status status = cuda_run_on_cpu(&there);
  for (int64_t i = 0; scale != 0 && dw->data && i < operand_size(dw); i++) set(dw, i, scale * get(dw, i));
  return status;
}

/* Outputs whose bit is not in `wanted` are read by nobody. */
static void backward(fixture *f, int wanted, double tolerance)
{
  flow_operand inputs[5] = { f->g, f->x, f->w, f->y, f->index }, outputs[3] = { f->dx, f->dw, f->db };
  for (int i = 0; i < 3; i++) {
    if (wanted >> i & 1) continue;
    outputs[i].data = NULL;
    outputs[i].unused = 1;
  }
  flow_call call = call_of(FLOW_OP_convolution_gradient, &f->attributes, inputs, 5, outputs, 3);
  cuda_matches(&call, 0, tolerance, gradient_of_scaled);
}

static void forward_and_backward(void **state)
{
  (void)state;
  for (int i = 0; i < CASE_COUNT; i++) {
    fixture f;
    fixture_make(&f, &cases[i], cases[i].n < 3 ? 1 : 2, FLOW_FLOAT32, FLOW_FLOAT32);
    forward(&f, 0, 0, tolerance_of(FLOW_FLOAT32));
    backward(&f, 7, tolerance_of(FLOW_FLOAT32));
    backward(&f, 1 << i % 3 | 1 << i / 3 % 3, tolerance_of(FLOW_FLOAT32));
    fixture_free(&f);
  }
}

static void in_double(void **state)
{
  (void)state;
  for (int i = 0; i < CASE_COUNT; i += 3) {
    fixture f;
    fixture_make(&f, &cases[i], 1, FLOW_FLOAT64, FLOW_FLOAT64);
    forward(&f, 0, 0, tolerance_of(FLOW_FLOAT64));
    backward(&f, 7, tolerance_of(FLOW_FLOAT64));
    fixture_free(&f);
  }
}

static void bytes_with_a_scale(void **state)
{
  (void)state;
  for (int i = 0; i < 6; i++) {
    fixture f;
    fixture_make(&f, &cases[i], 2, FLOW_FLOAT32, FLOW_UINT8);
    f.attributes.convolution.input_scale = 1.0 / 16;
    forward(&f, 0, 0, tolerance_of(FLOW_FLOAT32));
    backward(&f, 6, tolerance_of(FLOW_FLOAT32));
    fixture_free(&f);
  }
}

static void outputs_that_nobody_reads_and_no_images(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++) {
    fixture f;
    fixture_make(&f, &cases[i], 2, FLOW_FLOAT32, FLOW_FLOAT32);
    forward(&f, 0, 1, tolerance_of(FLOW_FLOAT32));
    if (cases[i].pool[0]) forward(&f, 1, 0, tolerance_of(FLOW_FLOAT32));
    fixture_free(&f);
    fixture_make(&f, &cases[i], 0, FLOW_FLOAT32, FLOW_FLOAT32);
    forward(&f, 0, 0, 0);
    backward(&f, 7, 0);
    fixture_free(&f);
  }
}

/* The first largest wins, a NaN wins over numbers, relu leaves nothing of what is not positive. */
static void argmax_of_pooling(void **state)
{
  (void)state;
  static const convolution_case c = { 1, 4, 8, 1, 3, 1, 1, { 1, 1 }, 1, 1, NO_PAD, 1, 1, { 2, 2 }, { 2, 2 } };
  fixture f;
  fixture_make(&f, &c, 1, FLOW_FLOAT32, FLOW_FLOAT32);
  for (int64_t i = 0; i < operand_size(&f.x); i++) set(&f.x, i, i % 8 < 2 ? 1 : i % 8 < 4 ? -1 : i == 13 || i == 4 ? NAN : 2);
  for (int k = 0; k < 3; k++) set(&f.w, k, k + 1), set(&f.b, k, 0);
  forward(&f, 0, 0, 0);
  assert_int_equal(get(&f.index, 0), 0);
  assert_int_equal(get(&f.index, 3), 255);
  assert_int_equal(get(&f.index, 6), 0);
  backward(&f, 6, 0);
  fixture_free(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(forward_and_backward), cmocka_unit_test(in_double), cmocka_unit_test(bytes_with_a_scale),
    cmocka_unit_test(outputs_that_nobody_reads_and_no_images), cmocka_unit_test(argmax_of_pooling)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
