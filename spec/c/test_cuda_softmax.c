/* test_cuda_softmax.c: softmax, log_softmax, cross entropy and their gradients on the device, against the CPU's plain kernels. */
#include "cuda_runner.h"

static const int floats[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16 };
enum { FLOAT_COUNT = sizeof floats / sizeof floats[0] };

/* Of 16 bits: a result is rounded once. */
static double tolerance_of(int dtype)
{
  return dtype == FLOW_FLOAT32 ? 2e-6 : dtype == FLOW_FLOAT16 ? 1e-3 : dtype == FLOW_BFLOAT16 ? 8e-3 : 1e-14;
}
static const struct { int outer, n, inner; } shapes[] = {
  { 5, 10, 1 }, { 300, 1, 1 }, { 3, 1000, 1 }, { 2, 5001, 1 }, { 7, 33, 1 }, { 4, 7, 5 }, { 2, 100, 17 },
  { 0, 10, 1 }, { 3, 0, 1 }, { 3, 4, 0 }
};

static void softmax_along_any_axis(void **state)
{
  (void)state;
  for (size_t d = 0; d < FLOAT_COUNT; d++) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
      flow_operand inputs[2], out = operand(floats[d], 3, shapes[i].outer, shapes[i].n, shapes[i].inner);
      for (int k = 0; k < 2; k++) inputs[k] = operand(floats[d], 3, shapes[i].outer, shapes[i].n, shapes[i].inner);
      for (int k = 0; k < 2; k++) fill(&inputs[k], k == 0 ? 8 : 0.1);
      flow_attributes attributes = { .axis = { shapes[i].inner == 1 ? 1 : -2 } };
      if (shapes[i].n == 0) memset(out.data, 0, operand_bytes(&out));
      flow_call softmax = call_of(FLOW_OP_softmax, &attributes, inputs, 1, &out, 1);
      flow_call log_softmax = call_of(FLOW_OP_log_softmax, &attributes, inputs, 1, &out, 1);
      flow_call gradient = call_of(FLOW_OP_softmax_gradient, &attributes, inputs, 2, &out, 1);
      cuda_matches_cpu_in_float(&softmax, tolerance_of(floats[d]));
      cuda_matches_cpu_in_float(&log_softmax, tolerance_of(floats[d]));
      cuda_matches_cpu_in_float(&gradient, tolerance_of(floats[d]));
      operand_free(&inputs[0]), operand_free(&inputs[1]), operand_free(&out);
    }
  }
}

static void extremes_are_what_they_are_on_the_cpu(void **state)
{
  (void)state;
  enum { ROWS = 8, N = 40 };
  flow_attributes attributes = { .axis = { -1 } };
  flow_operand x = operand(FLOW_FLOAT32, 2, ROWS, N), y = operand(FLOW_FLOAT32, 2, ROWS, N);
  fill(&x, 1);
  for (int k = 0; k < N; k++) {
    set(&x, 0 * N + k, -INFINITY);                          /* nothing: NaN */
    set(&x, 1 * N + k, k == 7 ? 3 : -INFINITY);
    set(&x, 2 * N + k, 1e30 * next_number());
    if (k < 8) set(&x, 3 * N + k, -INFINITY);
  }
  set(&x, 4 * N + 11, NAN);
  set(&x, 5 * N + 39, INFINITY);
  for (int k = 0; k < N; k += 8) set(&x, 6 * N + k, NAN);   /* all that some threads of a team see */
  for (int op = FLOW_OP_softmax; op <= FLOW_OP_log_softmax; op += FLOW_OP_log_softmax - FLOW_OP_softmax) {
    flow_call call = call_of(op, &attributes, &x, 1, &y, 1);
    cuda_matches_cpu_in_float(&call, 2e-6);
  }
  operand_free(&x), operand_free(&y);
}

static void cross_entropy_of_labels(void **state)
{
  (void)state;
  static const struct { int rows, columns, classes, label; } cases[] = {
    { 33, 1, 10, FLOW_INT64 }, { 5, 3, 10, FLOW_INT32 }, { 4, 1, 1000, FLOW_UINT8 }, { 300, 1, 2, FLOW_FLOAT32 }, { 0, 1, 10, FLOW_INT64 },
    { 3, 1, 4097, FLOW_INT64 }, { 2, 2, 1, FLOW_INT8 }
  };
  for (size_t d = 0; d < FLOAT_COUNT; d++) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
      flow_attributes attributes = { .axis = { 0 } };
      flow_operand inputs[3] = { operand(floats[d], 2, cases[i].rows, cases[i].columns),
                                 operand(floats[d], 3, cases[i].rows, cases[i].columns, cases[i].classes),
                                 operand(cases[i].label, 2, cases[i].rows, cases[i].columns) };
      flow_operand loss = operand(floats[d], 2, cases[i].rows, cases[i].columns);
      flow_operand dz = operand(floats[d], 3, cases[i].rows, cases[i].columns, cases[i].classes);
      fill(&inputs[0], 1), fill(&inputs[1], 5);
      int64_t most = cases[i].classes < 100 ? cases[i].classes : 100;
      for (int64_t k = 0; k < operand_size(&inputs[2]); k++) set(&inputs[2], k, (double)(k * 7 % most));
      flow_call forward = call_of(FLOW_OP_sparse_cross_entropy, &attributes, inputs + 1, 2, &loss, 1);
      flow_call gradient = call_of(FLOW_OP_sparse_cross_entropy_gradient, &attributes, inputs, 3, &dz, 1);
      cuda_matches_cpu_in_float(&forward, tolerance_of(floats[d]));
      cuda_matches_cpu_in_float(&gradient, tolerance_of(floats[d]));
      for (int k = 0; k < 3; k++) operand_free(&inputs[k]);
      operand_free(&loss), operand_free(&dz);
    }
  }
}

static void labels_out_of_range_are_named(void **state)
{
  (void)state;
  flow_attributes attributes = { .axis = { 0 } };
  flow_operand inputs[3] = { operand(FLOW_FLOAT32, 1, 6), operand(FLOW_FLOAT32, 2, 6, 10), operand(FLOW_INT64, 1, 6) };
  flow_operand loss = operand(FLOW_FLOAT32, 1, 6), dz = operand(FLOW_FLOAT32, 2, 6, 10);
  flow_operand unused = { .dtype = FLOW_FLOAT32, .rank = 1, .shape = { 6 } };
  fill(&inputs[0], 1), fill(&inputs[1], 1);
  for (int i = 0; i < 6; i++) set(&inputs[2], i, i == 4 ? 10 : i);
  flow_call forward = call_of(FLOW_OP_sparse_cross_entropy, &attributes, inputs + 1, 2, &loss, 1);
  flow_call checked = call_of(FLOW_OP_sparse_cross_entropy, &attributes, inputs + 1, 2, &unused, 1);
  flow_call gradient = call_of(FLOW_OP_sparse_cross_entropy_gradient, &attributes, inputs, 3, &dz, 1);
  cuda_refuses(&forward, "label 10 in row 5 is outside 0..9");
  cuda_refuses(&checked, "label 10 in row 5 is outside 0..9");
  cuda_refuses(&gradient, "label 10 in row 5 is outside 0..9");
  set(&inputs[2], 4, -1);
  cuda_refuses(&forward, "label -1 in row 5 is outside 0..9");
  set(&inputs[2], 4, 9);
  cuda_matches_cpu_in_float(&forward, 2e-6);
  for (int k = 0; k < 3; k++) operand_free(&inputs[k]);
  operand_free(&loss), operand_free(&dz);
}

/* The call's results on the device, where operands begin `shift` bytes after a multiple of 256. */
static cuda_bytes results_at(flow_call *call, size_t shift)
{
  cuda_shift = shift;
  cuda_ok(cuda_run(cuda_device()->device.kernels[call->op], call, 0));
  cuda_shift = 0;
  return cuda_save(call, 0);
}

static void begins_anywhere(flow_call *call)
{
  cuda_bytes expected = results_at(call, 0), found = results_at(call, 8);
  assert_memory_equal(expected.data, found.data, expected.count);
  free(expected.data), free(found.data);
}

static void whole_groups_have_the_same_bits_wherever_they_begin(void **state)
{
  (void)state;
  for (size_t d = 0; d < FLOAT_COUNT; d++) {
    flow_attributes attributes = { .axis = { -1 } };
    flow_operand inputs[3] = { operand(floats[d], 1, 6), operand(floats[d], 2, 6, 1000), operand(FLOW_INT64, 1, 6) };
    flow_operand loss = operand(floats[d], 1, 6), dz = operand(floats[d], 2, 6, 1000), g = operand(floats[d], 2, 6, 1000);
    flow_operand pair[2] = { g, inputs[1] };
    fill(&inputs[0], 1), fill(&inputs[1], 5), fill(&g, 1);
    for (int i = 0; i < 6; i++) set(&inputs[2], i, i * 199);
    flow_call softmax = call_of(FLOW_OP_softmax, &attributes, inputs + 1, 1, &dz, 1);
    flow_call gradient = call_of(FLOW_OP_softmax_gradient, &attributes, pair, 2, &dz, 1);
    flow_call forward = call_of(FLOW_OP_sparse_cross_entropy, &attributes, inputs + 1, 2, &loss, 1);
    flow_call backward = call_of(FLOW_OP_sparse_cross_entropy_gradient, &attributes, inputs, 3, &dz, 1);
    begins_anywhere(&softmax), begins_anywhere(&gradient), begins_anywhere(&forward), begins_anywhere(&backward);
    for (int k = 0; k < 3; k++) operand_free(&inputs[k]);
    operand_free(&loss), operand_free(&dz), operand_free(&g);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(softmax_along_any_axis), cmocka_unit_test(extremes_are_what_they_are_on_the_cpu),
    cmocka_unit_test(cross_entropy_of_labels), cmocka_unit_test(labels_out_of_range_are_named),
    cmocka_unit_test(whole_groups_have_the_same_bits_wherever_they_begin)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
