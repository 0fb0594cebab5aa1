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

/* As a tensor's flow_tensor_fill asks for: a part of an array. */
static void fill_of_a_view_leaves_what_lies_between(void **state)
{
  (void)state;
  enum { ROWS = 6, COLUMNS = 9 };
  static const int dtypes[] = { FLOW_UINT8, FLOW_BFLOAT16, FLOW_FLOAT32, FLOW_INT64 };
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    flow_operand all = operand(dtypes[i], 2, ROWS, COLUMNS), part = all;
    for (int64_t k = 0; k < ROWS * COLUMNS; k++) set(&all, k, 7);
    part.shape[0] = ROWS / 2, part.shape[1] = COLUMNS / 3;      /* every second row, the last one first; every third column */
    part.strides[0] = -2 * COLUMNS, part.strides[1] = 3;
    part.data = (char *)all.data + (ROWS - 1) * COLUMNS * flow_dtype_size(dtypes[i]);
    flow_attributes attributes = { .fill = { .value = 3 } };
    flow_call call = call_of(FLOW_OP_fill, &attributes, NULL, 0, &part, 1);
    cuda_ok(cuda_run(cuda_device()->device.kernels[FLOW_OP_fill], &call, 0));
    for (int row = 0; row < ROWS; row++)
      for (int column = 0; column < COLUMNS; column++)
        assert_true(get(&all, row * COLUMNS + column) == (row % 2 == 1 && column % 3 == 0 ? 3 : 7));
    operand_free(&all);
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
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(fill_writes_every_element), cmocka_unit_test(fill_of_a_view_leaves_what_lies_between),
    cmocka_unit_test(fill_of_nothing_is_nothing)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
