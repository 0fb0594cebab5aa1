/* test_cuda_filters.c: many kernels of convolutions transposed by one launch, against the CPU and element by element; and convolutions
 * whose kernels, and their gradients, are transposed, in every variant, against the CPU's of kernels that are not. */
#include "convolution_cases.h"
#include "cuda_runner.h"

/* ---- the op ------------------------------------------------------------------------------------------------------------------- */

static int size_of(int kernel, int axis)
{
  static const int sizes[] = { 1, 3, 33, 8, 2, 64, 5, 31 };
  return axis < 2 ? 1 + (kernel + axis) % 3 : sizes[(kernel * (axis - 1)) % 8];
}

/* Kernels around whole tiles, one that is empty, one that nobody reads, and more than one launch takes; back: the other way round. */
static void check_transposes(int kernels, int from, int to, int back)
{
  flow_operand *x = calloc((size_t)kernels, sizeof *x), *y = calloc((size_t)kernels, sizeof *y);
  flow_attributes attributes = { .transpose_filters = { .dtype = to, .back = back } };
  assert_true(x && y);
  for (int i = 0; i < kernels; i++) {
    int h = size_of(i, 0), w = size_of(i, 1), in = i % 50 == 49 ? 0 : size_of(i, 2), out = size_of(i, 3);
    flow_operand ours = operand(back ? to : from, 4, h, w, in, out), transposed = operand(back ? from : to, 4, out, h, w, in);
    x[i] = back ? transposed : ours;
    y[i] = back ? ours : transposed;
    for (int64_t k = 0; k < operand_size(&x[i]); k++) set(&x[i], k, floor(128 * next_number()));
  }
  flow_operand unread = y[kernels / 2];
  if (kernels > 2) y[kernels / 2].data = NULL;
  flow_call call = call_of(FLOW_OP_transpose_filters, &attributes, x, kernels, y, kernels);
  cuda_matches_cpu(&call, 0, 0);
  for (int i = 0; i < kernels; i++) {
    const flow_operand *transposed = back ? &x[i] : &y[i], *ours = back ? &y[i] : &x[i];
    int64_t out = transposed->shape[0], rest = operand_size(transposed) / (out > 0 ? out : 1);
    for (int64_t k = 0; y[i].data && k < rest * out; k++) assert_true(get(transposed, k) == get(ours, k % rest * out + k / rest));
  }
  y[kernels / 2] = unread;
  for (int i = 0; i < kernels; i++) operand_free(&x[i]), operand_free(&y[i]);
  free(x);
  free(y);
}

static void kernels_are_transposed_and_back(void **state)
{
  (void)state;
  static const int counts[] = { 1, 2, 53, 256, 300 }, dtypes[] = { FLOW_FLOAT32, FLOW_BFLOAT16, FLOW_FLOAT16 };
  for (int i = 0; i < 2 * 5; i++) {
    int dtype = dtypes[i % 3];
    check_transposes(counts[i / 2], i % 2 ? dtype : FLOW_FLOAT32, i % 2 ? FLOW_FLOAT32 : dtype, i % 2);
  }
}

/* ---- convolutions ------------------------------------------------------------------------------------------------------------- */

static flow_operand transposed_like(const flow_operand *w, int dtype)
{
  return operand(dtype, 4, (int)w->shape[3], (int)w->shape[0], (int)w->shape[1], (int)w->shape[2]);
}

/* Element k of a kernel, in the transposed one. */
static int64_t place_of(const flow_operand *w, int64_t k)
{
  int64_t out = w->shape[3];
  return k % out * (operand_size(w) / out) + k / out;
}

static void transpose_into(const flow_operand *w, flow_operand *transposed)
{
  for (int64_t k = 0; k < operand_size(w); k++) set(transposed, place_of(w, k), get(w, k));
}

static void fill_quarters(flow_operand *x)
{
  for (int64_t i = 0; i < operand_size(x); i++) set(x, i, floor(8 * next_number()) / 4);
}

static void assert_same(const flow_operand *found, const flow_operand *expected, const char *variant)
{
  for (int64_t i = 0; i < operand_size(found); i++)
    assert_near(get(found, i), get(expected, i), 1e-6 * (1 + fabs(get(expected, i))), variant, i);
}

/* Runs the call, all of it in float32, in each variant, with these operands transposed; results must stay what they are. */
static void check_transposed(flow_call *call, flow_operand *w, flow_operand *dw, int transposed, const char *name)
{
  flow_attributes attributes = *call->attributes;
  flow_operand expected[3], other_w = transposed_like(w, w->dtype), other_dw = transposed_like(w, FLOW_FLOAT32), own_w = *w;
  cuda_ok(cuda_run_on_cpu(call));
  for (int i = 0; i < call->output_count; i++) {
    expected[i] = call->outputs[i];
    call->outputs[i].data = guarded_alloc(operand_bytes(&expected[i]));
  }
  transpose_into(w, &other_w);
  attributes.convolution.transposed = transposed;
  flow_call there = *call;
  there.attributes = &attributes;
  if (transposed & FLOW_TRANSPOSED_KERNEL) *w = other_w;
  flow_operand own_dw = dw ? *dw : (flow_operand){ 0 };
  if (transposed & FLOW_TRANSPOSED_GRADIENT) *dw = other_dw;
  int variants = 0;
  for_each_cuda_kernel(kernel, call->op) {
    if (kernel->supports && !kernel->supports(&there)) continue;
    variants++;
    cuda_ok(cuda_run(kernel, &there, 0));
    for (int i = 0; i < call->output_count; i++) {
      if (&call->outputs[i] != dw || !(transposed & FLOW_TRANSPOSED_GRADIENT)) assert_same(&call->outputs[i], &expected[i], name);
    }
    for (int64_t k = 0; transposed & FLOW_TRANSPOSED_GRADIENT && k < operand_size(&own_dw); k++)
      assert_near(get(dw, place_of(&own_dw, k)), get(&expected[1], k), 1e-6 * (1 + fabs(get(&expected[1], k))), name, k);
  }
  assert_true(variants == 2);
  *w = own_w;
  if (dw) *dw = own_dw;
  for (int i = 0; i < call->output_count; i++) {
    operand_free(&call->outputs[i]);
    call->outputs[i] = expected[i];
  }
  operand_free(&other_w), operand_free(&other_dw);
}

static int result_size(const convolution_case *c, int axis, int pooled)
{
  int in = axis ? c->w : c->h, kernel = axis ? c->kw : c->kh;
  int out = (in + c->padding[2 * axis] + c->padding[2 * axis + 1] - c->dilation * (kernel - 1) - 1) / c->stride[axis] + 1;
  return pooled ? (out - c->pool[axis]) / c->pool_stride[axis] + 1 : out;
}

static void check_case(const convolution_case *c)
{
  flow_attributes attributes = { .convolution = { .groups = c->groups, .activation = c->relu ? FLOW_RELU : FLOW_LINEAR, .has_bias = c->bias,
                                                  .input_size = { c->h, c->w } } };
  for (int i = 0; i < 4; i++) attributes.convolution.padding[i] = c->padding[i];
  for (int i = 0; i < 2; i++) {
    attributes.convolution.stride[i] = c->stride[i];
    attributes.convolution.dilation[i] = c->dilation;
    attributes.convolution.pool[i] = c->pool[i];
    attributes.convolution.pool_stride[i] = c->pool_stride[i];
  }
  int pooled = c->pool[0] > 0, h = result_size(c, 0, pooled), w = result_size(c, 1, pooled);
  flow_operand inputs[5], outputs[3];
  inputs[0] = operand(FLOW_FLOAT32, 4, c->n, c->h, c->w, c->ci);
  inputs[1] = operand(FLOW_FLOAT32, 4, c->kh, c->kw, c->ci / c->groups, c->co);
  inputs[2] = operand(FLOW_FLOAT32, 1, c->co);
  outputs[0] = operand(FLOW_FLOAT32, 4, c->n, h, w, c->co);
  outputs[1] = pooled ? operand(FLOW_UINT8, 4, c->n, h, w, c->co) : operand(FLOW_UINT8, 1, 0);
  for (int i = 0; i < 3; i++) fill_quarters(&inputs[i]);
  flow_call call = call_of(FLOW_OP_convolution, &attributes, inputs, c->bias ? 3 : 2, outputs, 2);
  check_transposed(&call, &inputs[1], NULL, FLOW_TRANSPOSED_KERNEL, "forward");
  flow_operand x = inputs[0], kernel = inputs[1], bias = inputs[2], y = outputs[0], index = outputs[1];
  inputs[0] = operand(FLOW_FLOAT32, 4, c->n, h, w, c->co);
  inputs[1] = x, inputs[2] = kernel, inputs[3] = y, inputs[4] = index;
  outputs[0] = operand(FLOW_FLOAT32, 4, c->n, c->h, c->w, c->ci);
  outputs[1] = operand(FLOW_FLOAT32, 4, c->kh, c->kw, c->ci / c->groups, c->co);
  outputs[2] = operand(FLOW_FLOAT32, 1, c->co);
  fill_quarters(&inputs[0]);
  call = call_of(FLOW_OP_convolution_gradient, &attributes, inputs, 5, outputs, 3);
  for (int transposed = 1; transposed <= 3; transposed++) check_transposed(&call, &inputs[2], &outputs[1], transposed, "gradient");
  for (int i = 0; i < 5; i++) operand_free(&inputs[i]);
  for (int i = 0; i < 3; i++) operand_free(&outputs[i]);
  operand_free(&bias);
}

static void convolutions_read_and_write_transposed_kernels(void **state)
{
  (void)state;
  for (int i = 0; i < CASE_COUNT; i++) check_case(&cases[i]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernels_are_transposed_and_back), cmocka_unit_test(convolutions_read_and_write_transposed_kernels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
