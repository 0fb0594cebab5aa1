/* test_cuda_batch_norm.c: batch_norm, with what may follow it, and its gradient on the device, against the CPU's plain kernels. */
#include "cuda_runner.h"

static const struct { int rows, inside, channels; } shapes[] = {
  { 7, 1, 3 }, { 64, 9, 16 }, { 300, 5, 64 }, { 3, 1, 130 }, { 1, 1, 1 }, { 5000, 1, 1 }, { 700, 3, 5 }, { 0, 4, 6 }, { 4, 2, 0 },
  { 3000, 1, 24 }, { 9000, 8, 4 }                                  /* more parts of rows than a group has */
};
enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };
static const struct { int dtype; double forward, gradient; } floats[] = {      /* tolerances */
  { FLOW_FLOAT32, 1e-5, 2e-5 }, { FLOW_FLOAT64, 1e-12, 1e-12 }, { FLOW_FLOAT16, 1e-3, 1e-3 }, { FLOW_BFLOAT16, 8e-3, 8e-3 } };
enum { FLOAT_COUNT = sizeof floats / sizeof floats[0] };

/* x, gamma, beta, or y, mean, variance */
static void make_three(flow_operand *x, int dtype, int rows, int inside, int channels)
{
  x[0] = operand(dtype, 3, rows, inside, channels);
  for (int k = 1; k < 3; k++) x[k] = operand(dtype, 1, channels);
  for (int k = 0; k < 3; k++) fill(&x[k], 1);
}

static void normalizes_over_all_rows(void **state)
{
  (void)state;
  flow_attributes attributes = { .normalization = { .epsilon = 1e-3, .axis = -1 } };
  for (size_t d = 0; d < FLOAT_COUNT; d++) {
    for (int i = 0; i < SHAPE_COUNT; i++) {
      int c = shapes[i].channels;
      flow_operand inputs[3], outputs[3];
      make_three(inputs, floats[d].dtype, shapes[i].rows, shapes[i].inside, c);
      make_three(outputs, floats[d].dtype, shapes[i].rows, shapes[i].inside, c);
      for (int64_t k = 0; k < operand_size(&inputs[0]); k++)
        set(&inputs[0], k, get(&inputs[0], k) * (1 + (double)(k % 3)) + (double)(k % c));
      flow_call call = call_of(FLOW_OP_batch_norm, &attributes, inputs, 3, outputs, 3);
      cuda_matches_cpu_in_float(&call, floats[d].forward);
      void *kept[2] = { outputs[0].data, outputs[2].data };
      outputs[0].data = outputs[2].data = NULL;
      cuda_matches_cpu_in_float(&call, floats[d].forward);
      outputs[0].data = kept[0], outputs[2].data = kept[1];
      for (int k = 0; k < 3; k++) operand_free(&inputs[k]), operand_free(&outputs[k]);
    }
  }
}

/* Operands that begin between multiples of 16 bytes are read in another way, and added in the same order. */
static void begins_anywhere(void **state)
{
  (void)state;
  flow_attributes attributes = { .normalization = { .epsilon = 1e-3, .axis = -1 } };
  for (size_t d = 0; d < FLOAT_COUNT; d++) {
    flow_operand inputs[5] = { operand(floats[d].dtype, 3, 3000, 5, 24) }, outputs[3];
    make_three(inputs + 1, floats[d].dtype, 3000, 5, 24);
    make_three(outputs, floats[d].dtype, 3000, 5, 24);
    inputs[4] = operand(floats[d].dtype, 1, 24);
    fill(&inputs[0], 1), fill(&inputs[4], 1);
    for (int k = 0; k < 24; k++) set(&inputs[4], k, 0.25 + fabs(get(&inputs[4], k)));
    for (int gradient = 0; gradient < 2; gradient++) {
      int op = gradient ? FLOW_OP_batch_norm_gradient : FLOW_OP_batch_norm;
      flow_call call = call_of(op, &attributes, inputs + !gradient, gradient ? 5 : 3, outputs, 3);
      cuda_ok(cuda_run(cuda_device()->device.kernels[op], &call, 0));
      cuda_bytes expected = cuda_save(&call, 0);
      cuda_shift = 8;
      cuda_ok(cuda_run(cuda_device()->device.kernels[op], &call, 0));
      cuda_shift = 0;
      cuda_bytes found = cuda_save(&call, 0);
      assert_memory_equal(found.data, expected.data, expected.count);
      free(found.data), free(expected.data);
    }
    for (int k = 0; k < 5; k++) operand_free(&inputs[k]);
    for (int k = 0; k < 3; k++) operand_free(&outputs[k]);
  }
}

/* With a relu after it, and with a sum before that. */
static void stops_at_a_relu(void **state)
{
  (void)state;
  flow_attributes attributes = { .normalization = { .epsilon = 1e-3, .axis = -1 } };
  for (size_t k = 0; k < 2 * FLOAT_COUNT * SHAPE_COUNT; k++) {
    size_t d = k / 2 % FLOAT_COUNT, i = k / 2 / FLOAT_COUNT;
    flow_operand inputs[4], outputs[3];
    make_three(inputs, floats[d].dtype, shapes[i].rows, shapes[i].inside, shapes[i].channels);
    make_three(outputs, floats[d].dtype, shapes[i].rows, shapes[i].inside, shapes[i].channels);
    inputs[3] = operand(floats[d].dtype, 3, shapes[i].rows, shapes[i].inside, shapes[i].channels);
    fill(&inputs[3], 1);
    flow_call call = call_of(FLOW_OP_batch_norm_relu, &attributes, inputs, 3 + (int)(k % 2), outputs, 3);
    cuda_matches_cpu_in_float(&call, 2 * floats[d].forward);
    for (int64_t n = 0; n < operand_size(&outputs[0]); n++) assert_true(get(&outputs[0], n) >= 0);
    for (int n = 0; n < 4; n++) operand_free(&inputs[n]);
    for (int n = 0; n < 3; n++) operand_free(&outputs[n]);
  }
}

/* Where the mean is a thousand standard deviations, squares of float32 would cancel to nothing. */
static void a_large_mean_does_not_cancel(void **state)
{
  (void)state;
  enum { ROWS = 4000, CHANNELS = 8 };
  flow_attributes attributes = { .normalization = { .epsilon = 0, .axis = -1 } };
  flow_operand inputs[3], outputs[3];
  make_three(inputs, FLOW_FLOAT32, ROWS, 1, CHANNELS);
  make_three(outputs, FLOW_FLOAT32, ROWS, 1, CHANNELS);
  for (int64_t k = 0; k < operand_size(&inputs[0]); k++) set(&inputs[0], k, 1024 + get(&inputs[0], k));
  flow_call call = call_of(FLOW_OP_batch_norm, &attributes, inputs, 3, outputs, 3);
  void *y = outputs[0].data;
  outputs[0].data = NULL;                          /* the mean itself has only 24 bits */
  cuda_matches_cpu_in_float(&call, 1e-6);
  outputs[0].data = y;
  for (int k = 0; k < 3; k++) operand_free(&inputs[k]), operand_free(&outputs[k]);
}

/* Blocks that read 16 bytes a thread, more of them than one group has. */
static void wide_parts_of_several_groups(void **state)
{
  (void)state;
  enum { ROWS = 17000, CHANNELS = 64 };
  flow_attributes attributes = { .normalization = { .epsilon = 1e-3, .axis = -1 } };
  flow_operand inputs[5] = { operand(FLOW_FLOAT32, 3, ROWS, 1, CHANNELS) }, outputs[3];
  make_three(inputs + 1, FLOW_FLOAT32, ROWS, 1, CHANNELS);
  make_three(outputs, FLOW_FLOAT32, ROWS, 1, CHANNELS);
  inputs[4] = operand(FLOW_FLOAT32, 1, CHANNELS);
  fill(&inputs[0], 1), fill(&inputs[4], 1);
  for (int k = 0; k < CHANNELS; k++) set(&inputs[4], k, 0.25 + fabs(get(&inputs[4], k)));
  flow_call forward = call_of(FLOW_OP_batch_norm, &attributes, inputs + 1, 3, outputs, 3);
  flow_call gradient = call_of(FLOW_OP_batch_norm_gradient, &attributes, inputs, 5, outputs, 3);
  cuda_matches_cpu_in_float(&forward, 1e-5);
  cuda_matches_cpu_in_float(&gradient, 2e-5);
  for (int k = 0; k < 5; k++) operand_free(&inputs[k]);
  for (int k = 0; k < 3; k++) operand_free(&outputs[k]);
}

static void gradients_of_all_three(void **state)
{
  (void)state;
  flow_attributes attributes = { .normalization = { .epsilon = 1e-3, .axis = -1 } };
  for (size_t d = 0; d < FLOAT_COUNT; d++) {
    for (int i = 0; i < SHAPE_COUNT; i++) {
      int c = shapes[i].channels, dtype = floats[d].dtype;
      flow_operand inputs[5] = { operand(dtype, 3, shapes[i].rows, shapes[i].inside, c) }, outputs[3];
      make_three(inputs + 1, dtype, shapes[i].rows, shapes[i].inside, c);
      make_three(outputs, dtype, shapes[i].rows, shapes[i].inside, c);
      inputs[4] = operand(dtype, 1, c);
      fill(&inputs[0], 1), fill(&inputs[4], 1);
      for (int k = 0; k < c; k++) set(&inputs[4], k, 0.25 + fabs(get(&inputs[4], k)));
      flow_call call = call_of(FLOW_OP_batch_norm_gradient, &attributes, inputs, 5, outputs, 3);
      cuda_matches_cpu_in_float(&call, floats[d].gradient);
      void *kept[2] = { outputs[0].data, outputs[1].data };
      outputs[0].data = outputs[1].data = NULL;
      cuda_matches_cpu_in_float(&call, floats[d].gradient);
      outputs[0].data = kept[0], outputs[1].data = kept[1];
      for (int k = 0; k < 5; k++) operand_free(&inputs[k]);
      for (int k = 0; k < 3; k++) operand_free(&outputs[k]);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(normalizes_over_all_rows), cmocka_unit_test(begins_anywhere), cmocka_unit_test(stops_at_a_relu),
    cmocka_unit_test(a_large_mean_does_not_cancel), cmocka_unit_test(wide_parts_of_several_groups),
    cmocka_unit_test(gradients_of_all_three)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
