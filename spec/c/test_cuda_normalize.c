/* test_cuda_normalize.c: normalize, layer_norm and normalize_gradient on the device, against the CPU's plain kernels. */
#include "cuda_runner.h"

static const int floats[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16 };
enum { FLOAT_COUNT = sizeof floats / sizeof floats[0] };

/* Of 16 bits: a result is rounded once. */
static double tolerance_of(int dtype)
{
  return dtype == FLOW_FLOAT32 ? 4e-6 : dtype == FLOW_FLOAT16 ? 2e-3 : dtype == FLOW_BFLOAT16 ? 1.6e-2 : 1e-13;
}

/* {a, b, c} over the axes from `axis` on, around `offset`. */
static void try_all(int dtype, const int *shape, int axis, double offset, int uncentered)
{
  int last = axis == 1 ? shape[1] * shape[2] : shape[2];
  flow_operand x = operand(dtype, 3, shape[0], shape[1], shape[2]), g = operand(dtype, 3, shape[0], shape[1], shape[2]);
  flow_operand outputs[2] = { operand(dtype, 3, shape[0], shape[1], shape[2]), operand(dtype, 3, shape[0], axis == 1 ? 1 : shape[1], 1) };
  flow_operand gamma = axis == 1 ? operand(dtype, 2, shape[1], shape[2]) : operand(dtype, 1, last);
  flow_operand beta = operand(dtype, 3, 1, axis == 1 ? shape[1] : 1, shape[2]),
               r = operand(dtype, 3, shape[0], axis == 1 ? 1 : shape[1], 1);
  fill(&x, 1), fill(&g, 1), fill(&gamma, 1), fill(&beta, 1), fill(&r, 1);
  for (int64_t i = 0; i < operand_size(&x); i++) set(&x, i, get(&x, i) + offset);
  double tolerance = tolerance_of(dtype) * (dtype == FLOW_FLOAT64 ? 1 + offset : 1); /* the mean's own digits */
  flow_attributes attributes = { .normalization = { .epsilon = 1e-3, .axis = axis, .uncentered = uncentered } };
  flow_operand scaled[3] = { x, gamma, beta }, slope[3] = { g, x, r };
  flow_call normalize = call_of(FLOW_OP_normalize, &attributes, &x, 1, outputs, 2);
  flow_call scale = call_of(FLOW_OP_layer_norm, &attributes, scaled, 2, outputs, 1);
  flow_call shift = call_of(FLOW_OP_layer_norm, &attributes, scaled, 3, outputs, 1);
  cuda_matches_cpu_in_float(&normalize, tolerance);
  cuda_matches_cpu_in_float(&scale, tolerance);
  cuda_matches_cpu_in_float(&shift, tolerance);
  if (offset == 0) {
    flow_call gradient = call_of(FLOW_OP_normalize_gradient, &attributes, slope, 3, outputs, 1);
    cuda_matches_cpu_in_float(&gradient, tolerance);
  }
  flow_operand *all[] = { &x, &g, &outputs[0], &outputs[1], &gamma, &beta, &r };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) operand_free(all[i]);
}

static void lines_of_any_length(void **state)
{
  (void)state;
  static const int shapes[][3] = { { 5, 3, 10 }, { 300, 1, 1 },  { 3, 1, 1000 }, { 2, 1, 5001 }, { 7, 2, 33 },
                                   { 4, 6, 8 },  { 2, 3, 4096 }, { 0, 2, 10 },   { 2, 0, 10 } };
  for (size_t d = 0; d < FLOAT_COUNT; d++)
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
      for (int axis = 1; axis <= (shapes[i][1] > 0 ? 2 : 1); axis++)
        for (int uncentered = 0; uncentered < 2; uncentered++) {
          if (axis == 1 && shapes[i][1] == 0) continue; /* nothing to normalize */
          try_all(floats[d], shapes[i], axis, 0, uncentered);
        }
}

/* A mean a hundred times the deviation: what is left after it was subtracted has the digits that x has. */
static void lines_far_from_zero(void **state)
{
  (void)state;
  static const int shapes[][3] = { { 3, 4, 33 }, { 2, 1, 5001 } };
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
    for (int d = 0; d < 2; d++) try_all(floats[d], shapes[i], 2, 100, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(lines_of_any_length), cmocka_unit_test(lines_far_from_zero) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
