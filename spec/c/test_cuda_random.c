/* test_cuda_random.c: the device draws the CPU's numbers. */
#include "cuda_layouts.h"

static const flow_scalars scalars = { .seed = 0x123456789abcdef0u, .step = 77, .first_sample = 1000, .rows = 6, .global_rows = 12 };

static void check(int op, const flow_attributes *attributes, flow_operand *inputs, int count, flow_operand y, double tolerance)
{
  flow_call call = call_of(op, attributes, inputs, count, &y, 1);
  call.scalars = &scalars;
  cuda_matches_cpu(&call, 0, tolerance);
  operand_free(&y);
}

static void uniform_numbers_are_the_cpus(void **state)
{
  (void)state;
  static const struct { double low, high; } ranges[] = { { 0, 1 }, { -0.05, 0.05 }, { 0.999999, 1 }, { -3, 5 }, { 2, 2 } };
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16 };
  for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
    for (int d = 0; d < 4; d++) {
      for (int keyed = 0; keyed < 3; keyed++) {
        flow_attributes attributes = {
          .random = { .rank = 1,
                      .dtype = dtypes[d],
                      .dims = { 1001 },
                      .low = ranges[r].low,
                      .high = ranges[r].high,
                      .seed = 5,
                      .stream = 9,
                      .keyed_by_step = keyed > 0,
                      .own_seed = keyed > 1 }
        };
        check(FLOW_OP_random_uniform, &attributes, NULL, 0, operand(dtypes[d], 1, 1001), 0);
      }
    }
  }
}

static void uniform_integers_are_the_cpus(void **state)
{
  (void)state;
  static const struct { double low, high; int dtype; } cases[] = {
    { 0, 10, FLOW_INT32 }, { -100, 100, FLOW_INT8 }, { 0, 2, FLOW_BOOL }, { -1e9, 1e9, FLOW_INT64 }, { -4e18, 4e18, FLOW_INT64 },
    { 3, 3, FLOW_UINT8 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_attributes attributes = { .random = { .rank = 1, .dtype = cases[i].dtype, .dims = { 999 }, .low = cases[i].low,
                                               .high = cases[i].high, .seed = 1, .stream = 2 } };
    check(FLOW_OP_random_uniform, &attributes, NULL, 0, operand(cases[i].dtype, 1, 999), 0);
  }
}

static void normal_numbers_are_the_cpus(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16 };
  for (int op = FLOW_OP_random_normal; op <= FLOW_OP_random_truncated_normal; op++) {
    for (int d = 0; d < 3; d++) {
      flow_attributes attributes = {
        .random = { .rank = 2, .dtype = dtypes[d], .dims = { 43, 31 }, .low = 1, .high = 0.5, .seed = 3, .stream = 4 },
      };
      double tolerance = dtypes[d] == FLOW_FLOAT64 ? 2e-15 : dtypes[d] == FLOW_FLOAT32 ? 1e-7 : 1e-3;
      check(op, &attributes, NULL, 0, operand(dtypes[d], 2, 43, 31), tolerance);
    }
  }
}

/* Samples whose elements are, and are not, whole groups of four; at an odd address; no rows. */
static void dropout_masks_are_the_cpus(void **state)
{
  (void)state;
  static const double rates[] = { 0, 0.3, 0.5, 1 };
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16 };
  for (int r = 0; r < 4; r++) {
    for (int d = 0; d < 4; d++) {
      for (int elements = 14; elements < 17; elements++) {
        flow_attributes attributes = { .dropout = { .rate = rates[r], .seed = 8, .stream = 3 } };
        flow_operand x = operand(dtypes[d], 3, 7, elements, 2), none = operand(dtypes[d], 2, 0, elements), line = operand(dtypes[d], 1, 9);
        double tolerance = dtypes[d] == FLOW_FLOAT32 ? 1.2e-7 : 0;      /* the plain kernel multiplies in double */
        fill(&x, 2);
        fill(&line, 2);
        check(FLOW_OP_dropout, &attributes, &x, 1, operand(dtypes[d], 3, 7, elements, 2), tolerance);
        check(FLOW_OP_dropout, &attributes, &none, 1, operand(dtypes[d], 2, 0, elements), 0);
        check(FLOW_OP_dropout, &attributes, &line, 1, operand(dtypes[d], 1, 9), tolerance);
        operand_free(&x), operand_free(&none), operand_free(&line);
      }
    }
  }
}

static void samples_are_the_cpus(void **state)
{
  (void)state;
  for (int count = 1; count < 10; count++) {
    flow_operand x = operand(FLOW_FLOAT32, 2, 6, 3);
    flow_attributes attributes = { .random = { .rank = 1, .dims = { count }, .low = -1, .high = 2, .seed = 6, .stream = 7 } };
    check(FLOW_OP_sample_uniform, &attributes, &x, 1, operand(FLOW_FLOAT32, 2, 6, count), 0);
    operand_free(&x);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(uniform_numbers_are_the_cpus), cmocka_unit_test(uniform_integers_are_the_cpus),
    cmocka_unit_test(normal_numbers_are_the_cpus), cmocka_unit_test(dropout_masks_are_the_cpus), cmocka_unit_test(samples_are_the_cpus),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
