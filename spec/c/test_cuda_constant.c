/* test_cuda_constant.c: fill on the device, and that the runner notices what it is for. */
#include "cuda_runner.h"

static void fill_writes_every_element(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_INT64, FLOW_INT32, FLOW_BOOL };
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    flow_operand y = operand(dtypes[i], 3, 7, 1, 300);
    flow_attributes attributes = { .fill = { .value = 1.5, .rank = 3, .dtype = dtypes[i], .dims = { 7, 1, 300 } } };
    flow_call call = call_of(FLOW_OP_fill, &attributes, NULL, 0, &y, 1);
    cuda_matches_cpu(&call, 0, 0);
    operand_free(&y);
  }
}

static void fill_of_nothing_is_nothing(void **state)
{
  (void)state;
  flow_operand y = operand(FLOW_FLOAT32, 1, 0);
  flow_attributes attributes = { .fill = { .value = 1, .rank = 1 } };
  flow_call call = call_of(FLOW_OP_fill, &attributes, NULL, 0, &y, 1);
  cuda_matches_cpu(&call, 0, 0);
  operand_free(&y);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(fill_writes_every_element), cmocka_unit_test(fill_of_nothing_is_nothing) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
