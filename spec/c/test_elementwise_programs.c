/* Elementwise ops as programs: where, outputs in the memory of inputs, windows, several steps and outputs, what is skipped or refused. */
#include "kernel_arrays.h"
#include "cpu/elementwise/elementwise.h"

static void check_where(const flow_call *call, void *argument)
{
  array *arrays = argument;   /* condition, a, b, out */
  const flow_operand *out = &arrays[3].operand;
  for (int64_t i = 0; i < size_of(out->rank, out->shape); i++) {
    int chosen = read_double(arrays[0].operand.dtype, broadcast_element(&arrays[0].operand, out->rank, out->shape, i)) != 0 ? 1 : 2;
    const void *expected = broadcast_element(&arrays[chosen].operand, out->rank, out->shape, i);
    assert_true(read_double(out->dtype, element(out, i)) == read_double(out->dtype, expected));
  }
  assert_guards(&arrays[3]);
  memset(arrays[3].block + GUARD, GUARD_BYTE, arrays[3].bytes);
  (void)call;
}

static void where_takes_any_condition_and_broadcasts_all_three(void **state)
{
  (void)state;
  static const struct { int rank; int64_t shape[3]; } kinds[] = {
    { 3, { 6, 5, 300 } }, { 1, { 300 } }, { 0, { 0 } }, { 3, { 6, 1, 1 } }, { 2, { 5, 1 } },
  };
  int64_t shape[3] = { 6, 5, 300 };
  uint64_t seed = 7;
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++)
    for (int condition = 0; condition < FLOW_DTYPE_COUNT; condition++)
      for (int k = 0; k < 5; k++) {
        array arrays[4];
        arrays[0] = array_new(condition, (layout_kind)(k % LAYOUT_COUNT), kinds[k].rank, kinds[k].shape);
        arrays[1] = array_new(dtype, SPACED, kinds[(k + 1) % 5].rank, kinds[(k + 1) % 5].shape);
        arrays[2] = array_new(dtype, CONTIGUOUS, 3, shape);
        arrays[3] = array_new(dtype, CONTIGUOUS, 3, shape);
        double yes = flow_dtype_is_float(condition) ? 0.25 : 1;   /* a fraction is true as well */
        for (int64_t i = 0; i < size_of(kinds[k].rank, kinds[k].shape); i++)
          write_double(condition, element(&arrays[0].operand, i), pseudo_random(&seed, 0, 1) < 0.5 ? 0 : yes);
        array_fill_random(&arrays[1], 3, 0, 100);
        array_fill_random(&arrays[2], 4, 0, 100);
        flow_operand inputs[3] = { arrays[0].operand, arrays[1].operand, arrays[2].operand };
        flow_attributes attributes = { 0 };
        flow_call call = call_of(FLOW_OP_where, &attributes, inputs, 3, &arrays[3].operand);
        run_everywhere(&call, check_where, arrays);
        for (int i = 0; i < 4; i++) array_free(&arrays[i]);
      }
}

static void check_doubled(const flow_call *call, void *argument)
{
  (void)argument;
  float *x = call->outputs[0].data;
  for (int i = 0; i < 1500; i++) {
    assert_true(x[i] == (float)(2 * i));
    x[i] = (float)i;
  }
}

static void an_output_may_be_the_memory_of_an_input(void **state)
{
  (void)state;
  int64_t shape[1] = { 1500 };
  array x = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, shape);
  for (int i = 0; i < 1500; i++) ((float *)x.operand.data)[i] = (float)i;
  flow_operand inputs[2] = { x.operand, x.operand };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_add, &attributes, inputs, 2, &x.operand);
  run_everywhere(&call, check_doubled, NULL);
  array_free(&x);
}

static void check_windows(const flow_call *call, void *argument)
{
  float *y = call->outputs[0].data;
  (void)argument;
  for (int i = 0; i < 3 * 200 * 5; i++) {
    assert_true(y[i] == -(float)(i / 1000 * 102 + i / 5 % 200 + i % 5));
    y[i] = 0;
  }
}

/* A view whose rows overlap: different tiles begin at the same element and differ in length. */
static void sliding_windows_are_views_like_others(void **state)
{
  (void)state;
  int64_t memory[1] = { 408 }, shape[3] = { 3, 200, 5 };
  array x = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, memory), y = array_new(FLOW_FLOAT32, CONTIGUOUS, 3, shape);
  for (int i = 0; i < 408; i++) ((float *)x.operand.data)[i] = (float)i;
  flow_operand windows = { .data = x.operand.data, .dtype = FLOW_FLOAT32, .rank = 3, .shape = { 3, 200, 5 }, .strides = { 102, 1, 1 } };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_neg, &attributes, &windows, 1, &y.operand);
  run_everywhere(&call, check_windows, NULL);
  array_free(&x);
  array_free(&y);
}

static void an_output_that_nobody_reads_is_skipped(void **state)
{
  (void)state;
  float x = 1;
  flow_operand input = { .data = &x, .dtype = FLOW_FLOAT32 }, output = { .dtype = FLOW_FLOAT32 };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_neg, &attributes, &input, 1, &output);
  assert_int_equal(run_kernel(flow_cpu_device()->kernels[FLOW_OP_neg], &call), FLOW_OK);
}

static void an_integer_without_a_kernel_is_an_error_that_names_the_op(void **state)
{
  (void)state;
  int32_t x = 1, y = 0;
  flow_operand input = { .data = &x, .dtype = FLOW_INT32 }, output = { .data = &y, .dtype = FLOW_INT32 };
  flow_attributes attributes = { 0 };
  flow_call call = call_of(FLOW_OP_exp, &attributes, &input, 1, &output);
  assert_int_equal(run_kernel(flow_cpu_device()->kernels[FLOW_OP_exp], &call), FLOW_INTERNAL);
  assert_non_null(strstr(flow_last_error(), "exp"));
  assert_non_null(strstr(flow_last_error(), "int32"));
}

/* relu(a * b + c) with b a bias row and c of another dtype; the sum is a second output. */
static void a_program_runs_several_steps_and_outputs(void **state)
{
  (void)state;
  int64_t shape[2] = { 300, 5 }, row[1] = { 5 };
  array a = array_new(FLOW_FLOAT32, PERMUTED, 2, shape), b = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, row);
  array c = array_new(FLOW_BFLOAT16, SPACED, 2, shape);
  array sum = array_new(FLOW_FLOAT32, SPACED, 2, shape), relu = array_new(FLOW_FLOAT16, CONTIGUOUS, 2, shape);
  array_fill_random(&a, 1, -3, 3);
  array_fill_random(&b, 2, -3, 3);
  array_fill_random(&c, 3, -3, 3);
  flow_operand inputs[3] = { a.operand, b.operand, c.operand }, outputs[2] = { sum.operand, relu.operand };
  flow_block_program program = {
    .register_count = 6, .input_count = 3, .output_count = 2, .step_count = 3,   /* all kinds FLOAT = 0 */
    .outputs = { 4, 5 },
    .steps = { { flow_cpu_plain_block(FLOW_OP_mul, FLOW_KIND_FLOAT), { 0, 1 }, 3 },
               { flow_cpu_plain_block(FLOW_OP_add, FLOW_KIND_FLOAT), { 3, 2 }, 4 },
               { flow_cpu_plain_block(FLOW_OP_relu, FLOW_KIND_FLOAT), { 4 }, 5 } },
  };
  _Alignas(64) char buffers[6 * FLOW_BLOCK_BYTES];
  flow_cpu_plain_run_program(&program, inputs, outputs, buffers);
  for (int64_t i = 0; i < 1500; i++) {
    float product = (float)read_double(FLOW_FLOAT32, element(&a.operand, i)) * (float)read_double(FLOW_FLOAT32, element(&b.operand, i % 5));
    float expected = product + (float)read_double(FLOW_BFLOAT16, element(&c.operand, i));
    assert_close("sum", FLOW_FLOAT32, read_double(FLOW_FLOAT32, element(&sum.operand, i)), expected, 0);
    double positive = rounded(FLOW_FLOAT16, expected < 0 ? 0 : expected);
    assert_close("relu", FLOW_FLOAT16, read_double(FLOW_FLOAT16, element(&relu.operand, i)), positive, 0);
  }
  assert_guards(&sum);
  assert_guards(&relu);
  array_free(&a); array_free(&b); array_free(&c); array_free(&sum); array_free(&relu);
}

/* Contiguous operands of one long run need no buffers themselves; what is between two steps does, one block at a time. */
static void a_long_run_of_several_steps_keeps_to_its_buffers(void **state)
{
  (void)state;
  enum { LENGTH = 10 * FLOW_BLOCK_LENGTH + 3, BUFFERS = 4 * FLOW_BLOCK_BYTES };
  int64_t shape[1] = { LENGTH };
  array a = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, shape), b = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, shape);
  array out = array_new(FLOW_FLOAT32, CONTIGUOUS, 1, shape);
  array_fill_random(&a, 1, -3, 3);
  array_fill_random(&b, 2, -3, 3);
  flow_operand inputs[2] = { a.operand, b.operand };
  flow_block_program program = {
    .register_count = 4, .input_count = 2, .output_count = 1, .step_count = 2, .outputs = { 3 },
    .steps = { { flow_cpu_plain_block(FLOW_OP_mul, FLOW_KIND_FLOAT), { 0, 1 }, 2 },
               { flow_cpu_plain_block(FLOW_OP_sub, FLOW_KIND_FLOAT), { 2, 0 }, 3 } },
  };
  _Alignas(64) unsigned char buffers[BUFFERS + LENGTH * sizeof(float)];
  memset(buffers, 0xa5, sizeof buffers);
  flow_cpu_plain_run_program(&program, inputs, &out.operand, buffers);
  for (int64_t i = 0; i < LENGTH; i++) {
    float x = (float)read_double(FLOW_FLOAT32, element(&a.operand, i));
    float product = x * (float)read_double(FLOW_FLOAT32, element(&b.operand, i));
    assert_close("difference", FLOW_FLOAT32, read_double(FLOW_FLOAT32, element(&out.operand, i)), product - x, 0);
  }
  for (size_t i = BUFFERS; i < sizeof buffers; i++) assert_int_equal(buffers[i], 0xa5);
  assert_guards(&out);
  array_free(&a); array_free(&b); array_free(&out);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(where_takes_any_condition_and_broadcasts_all_three),
    cmocka_unit_test(an_output_may_be_the_memory_of_an_input),
    cmocka_unit_test(sliding_windows_are_views_like_others),
    cmocka_unit_test(an_output_that_nobody_reads_is_skipped),
    cmocka_unit_test(an_integer_without_a_kernel_is_an_error_that_names_the_op),
    cmocka_unit_test(a_program_runs_several_steps_and_outputs),
    cmocka_unit_test(a_long_run_of_several_steps_keeps_to_its_buffers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
