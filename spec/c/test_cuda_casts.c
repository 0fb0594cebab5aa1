/* test_cuda_casts.c: many arrays cast by one launch, against the CPU's kernel. */
#include "cuda_layouts.h"

/* Sizes around whole pieces of eight, one that is empty, one that nobody reads, and more arrays than one launch takes. */
static void check(int dtype, int arrays)
{
  flow_operand *x = calloc((size_t)arrays, sizeof *x), *y = calloc((size_t)arrays, sizeof *y);
  flow_attributes attributes = { .cast = { dtype } };
  assert_true(x && y);
  for (int i = 0; i < arrays; i++) {
    x[i] = operand(FLOW_FLOAT32, 1, i % 27);
    y[i] = operand(dtype, 1, i % 27);
    fill_hard(&x[i]);
  }
  flow_operand unread = y[arrays / 2];
  y[arrays / 2].data = NULL;
  flow_call call = call_of(FLOW_OP_casts, &attributes, x, arrays, y, arrays);
  cuda_matches_cpu(&call, 0, 0);
  for (int i = 0; i < arrays; i++) {
    for (int64_t k = 0; y[i].data && k < operand_size(&x[i]); k++) {
      double number = get(&x[i], k), rounded = get(&y[i], k), half = dtype == FLOW_FLOAT16 ? 0x1p-11 : 0x1p-8;
      if (fabs(number) < 6e4 && fabs(number) > 1e-4) assert_true(fabs(rounded - number) <= half * fabs(number));
    }
  }
  operand_free(&unread);
  for (int i = 0; i < arrays; i++) {
    operand_free(&x[i]);
    if (y[i].data) operand_free(&y[i]);
  }
  free(x);
  free(y);
}

static void arrays_of_many_sizes(void **state)
{
  (void)state;
  static const int counts[] = { 1, 2, 28, 255, 256, 257, 600 };
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    check(FLOW_BFLOAT16, counts[i]);
    check(FLOW_FLOAT16, counts[i]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(arrays_of_many_sizes) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
