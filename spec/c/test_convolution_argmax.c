/* test_convolution_argmax.c: the variant "argmax" of convolution_gradient, of every instruction set that runs here, against
 * the plain variant in float64. Maxima are drawn at random: the gradient takes them as they come. */
#include "kernel_call.h"
#include <math.h>
#include <stdio.h>

typedef struct argmax_case { int n, h, w, ci, co, kh, kw, stride[2], padding[4], pool[2], pool_stride[2], dead; } argmax_case;

#define SAME3 { 1, 1, 1, 1 }
#define NO_PAD { 0, 0, 0, 0 }
static const argmax_case cases[] = {
  /* n   h   w  ci   co kh kw  stride    padding         pool      stride  dead % */
  { 3, 12, 14, 16,  32, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },
  { 3, 13, 11, 32,  64, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },   /* pooling drops a row and a column */
  { 3, 13, 11, 17,  33, 3, 3, { 1, 1 }, NO_PAD,         { 2, 2 }, { 2, 2 },   0 },
  { 3, 12, 13,  3,  16, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },
  { 3, 12, 13,  3,  15, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },   0 },
  { 3, 35, 40,  1,  17, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },
  { 3, 34, 37,  4,  64, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },
  { 3, 11, 12,  4,   1, 5, 5, { 1, 1 }, { 2, 2, 2, 2 }, { 2, 2 }, { 2, 2 },  35 },
  { 3, 11, 12, 15,  16, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 }, 100 },
  { 3, 14, 16, 16,  17, 3, 3, { 1, 1 }, SAME3,          { 3, 3 }, { 3, 3 },  35 },
  { 3, 14, 16, 33,  16, 3, 3, { 1, 1 }, NO_PAD,         { 2, 3 }, { 2, 3 },  35 },
  { 3, 15, 17,  3,  16, 3, 3, { 1, 1 }, NO_PAD,         { 3, 2 }, { 3, 2 },  35 },
  { 3, 15, 17, 16,  33, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 3, 3 },  35 },   /* gaps between the windows */
  { 3, 23, 26,  4,  16, 1, 1, { 1, 1 }, NO_PAD,         { 2, 2 }, { 5, 4 },  35 },   /* rows of x under no window */
  { 3, 12, 12, 64,  64, 1, 1, { 1, 1 }, NO_PAD,         { 2, 2 }, { 2, 2 },  35 },
  { 3, 12, 12, 17,  33, 1, 1, { 1, 1 }, NO_PAD,         { 3, 3 }, { 3, 3 },  35 },
  { 3, 14, 13, 16,  16, 5, 5, { 1, 1 }, { 2, 2, 2, 2 }, { 2, 2 }, { 2, 2 },  35 },
  { 3, 16, 17, 33,  15, 5, 5, { 1, 1 }, NO_PAD,         { 3, 3 }, { 3, 3 },  35 },
  { 3, 12, 13, 15,  17, 2, 4, { 1, 1 }, { 0, 1, 1, 2 }, { 2, 2 }, { 2, 2 },  35 },
  { 3, 17, 16, 64,   3, 7, 7, { 1, 1 }, { 3, 3, 3, 3 }, { 2, 2 }, { 2, 2 },  35 },
  { 3, 17, 16,  1,   3, 4, 7, { 1, 1 }, NO_PAD,         { 2, 2 }, { 2, 2 },  35 },
  { 3, 18, 19,  5,  16, 3, 3, { 2, 2 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },
  { 3, 18, 22, 16,  20, 3, 3, { 2, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },
  { 3, 18, 22,  3,  20, 3, 3, { 1, 3 }, { 0, 1, 0, 1 }, { 2, 2 }, { 2, 2 },  35 },
  { 3,  9, 10, 16, 130, 3, 3, { 1, 1 }, { 3, 0, 0, 4 }, { 2, 2 }, { 2, 2 },  35 },   /* padding beyond the kernel */
  { 3,  9, 10,150,  16, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },
  { 3, 20, 33, 16,  16, 3, 3, { 1, 1 }, SAME3,          { 1, 4 }, { 1, 4 },  35 },
  { 2, 16, 17,  2,  16, 3, 3, { 1, 1 }, SAME3,          {15,17 }, {15,17 },  35 },   /* the largest windows */
  { 2, 90, 90, 16,  16, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },   /* x rows move in scratch */
  { 2,  3,600, 16,   4, 3, 3, { 1, 1 }, SAME3,          { 2, 2 }, { 2, 2 },  35 },   /* rows wider than a group */
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0], INPUTS = 5, OUTPUTS = 3, NO_ARGMAX = 255 };

typedef struct fixture {
  flow_attributes attributes;
  test_tensor inputs[INPUTS], exact_inputs[INPUTS], expected[OUTPUTS];
} fixture;

static const char *const names[OUTPUTS] = { "dx", "dw", "db" };

static flow_call call_of(const flow_attributes *attributes, flow_operand *inputs, flow_operand *outputs)
{
  return (flow_call){ .op = FLOW_OP_convolution_gradient, .attributes = attributes, .input_count = INPUTS, .output_count = OUTPUTS,
                      .inputs = inputs, .outputs = outputs };
}

static const flow_kernel *variant_of(const char *isa, const char *name)
{
  const flow_device *device = flow_cpu_device_for(isa);
  if (!device) return NULL;
  const flow_kernel *kernel = device->kernels[FLOW_OP_convolution_gradient];
  while (kernel->run && strcmp(kernel->variant, name) != 0) kernel++;
  assert_non_null(kernel->run);
  return kernel;
}

static test_tensor like(const test_tensor *t, int dtype)
{
  test_tensor copy;
  tensor_make(&copy, dtype, t->operand.rank, t->operand.shape);
  return copy;
}

/* Runs a variant in chunks; outputs that are NULL are not wanted. */
static void run(const flow_kernel *kernel, const fixture *f, const test_tensor *from, test_tensor *const outputs[OUTPUTS],
                const int *chunks)
{
  flow_operand inputs[INPUTS], results[OUTPUTS];
  for (int i = 0; i < INPUTS; i++) inputs[i] = from[i].operand;
  for (int i = 0; i < OUTPUTS; i++) {
    results[i] = f->expected[i].operand;
    results[i].dtype = from[0].operand.dtype;
    results[i].data = outputs[i] ? outputs[i]->operand.data : NULL;
    results[i].unused = !outputs[i];
  }
  flow_call call = call_of(&f->attributes, inputs, results);
  run_in_chunks(kernel, &call, 0x1b, 1, chunks);
}

static void fixture_make(const argmax_case *c, fixture *f)
{
  memset(f, 0, sizeof *f);
  int64_t result[2];
  for (int axis = 0; axis < 2; axis++) {
    f->attributes.convolution.stride[axis] = c->stride[axis];
    f->attributes.convolution.dilation[axis] = 1;
    f->attributes.convolution.pool[axis] = c->pool[axis];
    f->attributes.convolution.pool_stride[axis] = c->pool_stride[axis];
    f->attributes.convolution.input_size[axis] = axis ? c->w : c->h;
    int size = (axis ? c->w : c->h) + c->padding[2 * axis] + c->padding[2 * axis + 1], kernel = axis ? c->kw : c->kh;
    result[axis] = ((size - kernel) / c->stride[axis] + 1 - c->pool[axis]) / c->pool_stride[axis] + 1;
  }
  memcpy(f->attributes.convolution.padding, c->padding, sizeof c->padding);
  f->attributes.convolution.groups = 1;
  f->attributes.convolution.activation = FLOW_RELU;
  f->attributes.convolution.has_bias = 1;
  int64_t x[4] = { c->n, c->h, c->w, c->ci }, w[4] = { c->kh, c->kw, c->ci, c->co }, y[4] = { c->n, result[0], result[1], c->co };
  const int64_t *shapes[INPUTS] = { y, x, w, y, y };
  uint32_t state = 777u + (uint32_t)(c->ci * 31 + c->co);
  for (int i = 0; i < INPUTS; i++) {
    tensor_make(&f->inputs[i], i == 4 ? FLOW_UINT8 : FLOW_FLOAT32, 4, shapes[i]);
    tensor_make(&f->exact_inputs[i], i == 4 ? FLOW_UINT8 : FLOW_FLOAT64, 4, shapes[i]);
    tensor_fill_rough(&f->inputs[i], &state);
    for (int64_t k = 0; k < operand_size(&f->inputs[i].operand); k++) {
      if (i == 4) {
        int live = (int)(next_random(&state) >> 8) % 100 >= c->dead, place = (int)(next_random(&state) >> 8) % (c->pool[0] * c->pool[1]);
        tensor_set(&f->inputs[i], k, live ? place : NO_ARGMAX);
      }
      tensor_set(&f->exact_inputs[i], k, tensor_get(&f->inputs[i], k));
    }
  }
  tensor_make(&f->expected[0], FLOW_FLOAT64, 4, x);
  tensor_make(&f->expected[1], FLOW_FLOAT64, 4, w);
  tensor_make(&f->expected[2], FLOW_FLOAT64, 1, &w[3]);
  test_tensor *outputs[OUTPUTS] = { &f->expected[0], &f->expected[1], &f->expected[2] };
  run(variant_of("plain", "plain"), f, f->exact_inputs, outputs, (const int[]){ c->n, 0 });
}

static void fixture_free(fixture *f)
{
  for (int i = 0; i < INPUTS; i++) tensor_free(&f->inputs[i]), tensor_free(&f->exact_inputs[i]);
  for (int i = 0; i < OUTPUTS; i++) tensor_free(&f->expected[i]);
}

/* To 1e-5 of the largest value. */
static void expect_near(const test_tensor *expected, const test_tensor *found, const char *what, const char *isa, int number)
{
  double largest = 0;
  int64_t size = operand_size(&expected->operand);
  for (int64_t i = 0; i < size; i++) largest = fmax(largest, fabs(tensor_get(expected, i)));
  for (int64_t i = 0; i < size; i++)
    if (!(fabs(tensor_get(found, i) - tensor_get(expected, i)) <= 1e-5 * largest))
      fail_msg("case %d, %s: %s[%lld] is %.9g, should be %.9g", number, isa, what, (long long)i, tensor_get(found, i),
               tensor_get(expected, i));
}

static void expect_same(const test_tensor *expected, const test_tensor *found, const char *what, const char *how, const char *isa,
                        int number)
{
  if (memcmp(expected->operand.data, found->operand.data, expected->memory.bytes) != 0)
    fail_msg("case %d, %s: %s %s differs", number, isa, what, how);
}

static void check_case(const flow_kernel *kernel, const argmax_case *c, const fixture *f, const char *isa, int number)
{
  const int whole[] = { c->n, 0 }, split[] = { 1, c->n - 1, 0 };
  test_tensor first[OUTPUTS], second[OUTPUTS];
  test_tensor *all[OUTPUTS] = { &first[0], &first[1], &first[2] };
  for (int i = 0; i < OUTPUTS; i++) first[i] = like(&f->expected[i], FLOW_FLOAT32), second[i] = like(&f->expected[i], FLOW_FLOAT32);
  run(kernel, f, f->inputs, all, whole);
  for (int i = 0; i < OUTPUTS; i++) expect_near(&f->expected[i], &first[i], names[i], isa, number);
  run(kernel, f, f->inputs, (test_tensor *[]){ &second[0], &second[1], &second[2] }, split);
  for (int i = 0; i < OUTPUTS; i++) expect_same(&first[i], &second[i], names[i], "in chunks", isa, number);
  for (int i = 0; i < OUTPUTS; i++) {   /* each output alone, and the two others without it */
    test_tensor *alone[OUTPUTS] = { NULL }, *others[OUTPUTS] = { &second[0], &second[1], &second[2] };
    alone[i] = &second[i];
    others[i] = NULL;
    memset(second[i].operand.data, GUARD_BYTE, second[i].memory.bytes);
    run(kernel, f, f->inputs, alone, whole);
    expect_same(&first[i], &second[i], names[i], "alone", isa, number);
    for (int k = 0; k < OUTPUTS; k++) memset(second[k].operand.data, GUARD_BYTE, second[k].memory.bytes);
    run(kernel, f, f->inputs, others, split);
    for (int k = 0; k < OUTPUTS; k++)
      if (k != i) expect_same(&first[k], &second[k], names[k], "without another", isa, number);
  }
  for (int i = 0; i < OUTPUTS; i++) tensor_free(&first[i]), tensor_free(&second[i]);
}

static flow_call call_for(fixture *f, flow_operand inputs[INPUTS], flow_operand outputs[OUTPUTS])
{
  for (int i = 0; i < INPUTS; i++) inputs[i] = f->inputs[i].operand;
  for (int i = 0; i < OUTPUTS; i++) { outputs[i] = f->expected[i].operand; outputs[i].dtype = FLOW_FLOAT32; }
  return call_of(&f->attributes, inputs, outputs);
}

static void gradients_equal_plain(void **state)
{
  (void)state;
  for (int number = 0; number < CASE_COUNT; number++) {
    fixture f;
    fixture_make(&cases[number], &f);
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
      const flow_kernel *kernel = variant_of(test_isas[i], "argmax");
      if (!kernel) continue;
      flow_operand inputs[INPUTS], outputs[OUTPUTS];
      flow_call call = call_for(&f, inputs, outputs);
      assert_true(kernel->supports(&call));
      check_case(kernel, &cases[number], &f, test_isas[i], number);
    }
    fixture_free(&f);
  }
}

/* What is not x under a live maximum does not matter: a NaN beside it reaches nothing. */
static void dead_windows_read_nothing(void **state)
{
  (void)state;
  const argmax_case c = { 2, 8, 8, 3, 17, 3, 3, { 1, 1 }, SAME3, { 2, 2 }, { 2, 2 }, 100 };
  fixture f;
  fixture_make(&c, &f);
  for (int64_t i = 0; i < operand_size(&f.inputs[0].operand); i++) tensor_set(&f.inputs[0], i, NAN);
  for (int64_t i = 0; i < operand_size(&f.inputs[1].operand); i++) tensor_set(&f.inputs[1], i, INFINITY);
  for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
    const flow_kernel *kernel = variant_of(test_isas[i], "argmax");
    if (kernel) check_case(kernel, &c, &f, test_isas[i], -1);
  }
  fixture_free(&f);
}

/* An index is data that nobody has checked: one that is not a cell of its window reads no x and sends no gradient anywhere. */
static void indices_of_no_cell_get_no_gradient(void **state)
{
  (void)state;
  static const argmax_case each[] = {
    { 2, 8, 8, 3, 17, 3, 3, { 1, 1 }, SAME3, { 2, 2 }, { 2, 2 }, 0 },
    { 2, 8, 8, 16, 17, 3, 3, { 1, 1 }, SAME3, { 2, 2 }, { 2, 2 }, 0 },
  };
  for (size_t k = 0; k < sizeof each / sizeof each[0]; k++) {
    fixture f;
    fixture_make(&each[k], &f);
    memset(f.inputs[4].operand.data, 254, f.inputs[4].memory.bytes);
    for (int i = 0; i < OUTPUTS; i++) memset(f.expected[i].operand.data, 0, f.expected[i].memory.bytes);
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
      const flow_kernel *kernel = variant_of(test_isas[i], "argmax");
      if (kernel) check_case(kernel, &each[k], &f, test_isas[i], (int)k);
    }
    fixture_free(&f);
  }
}

static void other_convolutions_are_refused(void **state)
{
  (void)state;
  fixture f;
  fixture_make(&cases[0], &f);
  for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
    const flow_kernel *kernel = variant_of(test_isas[i], "argmax");
    if (!kernel) continue;
    flow_operand inputs[INPUTS], outputs[OUTPUTS];
    flow_call call = call_for(&f, inputs, outputs);
    flow_attributes attributes = f.attributes;
    call.attributes = &attributes;
    assert_true(kernel->supports(&call));
    attributes.convolution.pool_stride[1] = 1;
    assert_false(kernel->supports(&call));           /* windows overlap */
    attributes.convolution.pool_stride[1] = 2;
    attributes.convolution.dilation[0] = 2;
    assert_false(kernel->supports(&call));
    attributes.convolution.dilation[0] = 1;
    attributes.convolution.pool[0] = attributes.convolution.pool[1] = 0;
    assert_false(kernel->supports(&call));
    attributes.convolution.pool[0] = attributes.convolution.pool[1] = 2;
    inputs[0].dtype = FLOW_FLOAT64;
    assert_false(kernel->supports(&call));
  }
  fixture_free(&f);
}

/* A 3x3 kernel of many channels before a 2x2 pool is this variant's case, whichever gradient is wanted. */
static void costs_less_than_direct(void **state)
{
  (void)state;
  fixture f;
  fixture_make(&cases[1], &f);
  for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
    const flow_kernel *kernel = variant_of(test_isas[i], "argmax");
    if (!kernel) continue;
    for (int wanted = 1; wanted < 4; wanted++) {
      flow_operand inputs[INPUTS], outputs[OUTPUTS];
      flow_call call = call_for(&f, inputs, outputs);
      outputs[0].unused = !(wanted & 1);
      outputs[1].unused = outputs[2].unused = !(wanted & 2);
      assert_true(kernel->cost(&call) < variant_of(test_isas[i], "direct")->cost(&call));
    }
  }
  fixture_free(&f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(gradients_equal_plain),
    cmocka_unit_test(dead_windows_read_nothing),
    cmocka_unit_test(indices_of_no_cell_get_no_gradient),
    cmocka_unit_test(other_convolutions_are_refused),
    cmocka_unit_test(costs_less_than_direct),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
