/* test_shapes_training.c: the shape rules of optimizers and schedules give the right signature or the right sentence. */
#include "shape_cases.h"

static void optimizers(void **state)
{
  (void)state;
  /* clang-format off */
  static const shape_case cases[] = {
    { FLOW_OP_sgd, 3, { F(7), F(7), SCALAR(FLOW_FLOAT32) }, .error = NULL },
    { FLOW_OP_sgd, 4, { F(7), F(7), F(1), F(7) }, { .optimizer = { .momentum = 0.9 } }, .error = NULL },
    { FLOW_OP_sgd, 3, { F(7), F(7), F(1) }, { .optimizer = { .momentum = 0.9 } }, .error = "momentum is missing" },
    { FLOW_OP_sgd, 3, { F(6), F(7), F(1) }, .error = "the gradient has shape {6}, expected the elements of the weight {7}" },
    { FLOW_OP_sgd, 3, { F(7), F(7), F(7) }, .error = "the learning rate has shape {7}, expected one element" },
    { FLOW_OP_sgd, 3, { H(7), F(7), F(1) }, .error = "the gradient is float16, expected float32" },
    { FLOW_OP_sgd, 3, { F(-7), F(7), F(1) }, .error = "expected the elements of the weight" },
    { FLOW_OP_sgd, 5, { F(1), F(7), F(1), F(-2, 2), F(-2, 3) }, { .optimizer = { .products = 1, .first = { 1 } } }, .error = NULL },
    { FLOW_OP_sgd, 6, { F(0), F(6), F(1), F(6), F(4, 2), F(4, 3) }, { .optimizer = { .momentum = 0.9, .products = 1 } }, .error = NULL },
    { FLOW_OP_sgd, 5, { F(7), F(7), F(1), F(-2, 2), F(-2, 3) }, { .optimizer = { .products = 1 } }, .error = "the gradient has shape {7}" },
    { FLOW_OP_sgd, 5, { F(1), F(7), F(1), F(-2, 2), F(-1, 3) }, { .optimizer = { .products = 1 } }, .error = "the factors of product 1" },
    { FLOW_OP_sgd, 5, { F(1), F(7), F(1), F(5, 2), F(5, 3) }, { .optimizer = { .products = 1, .first = { 2 } } },
      .error = "product 1 would be the gradient of 6 elements from 2 on, expected a range of elements 0 to 7" },
    { FLOW_OP_sgd, 7, { F(0), F(7), F(1), F(5, 2), F(5, 3), F(5, 1), F(5, 1) }, { .optimizer = { .products = 2, .first = { 1, 6 } } },
      .error = "product 2" },
    { FLOW_OP_sgd, 5, { F(7), F(7), F(1), F(5, 2), F(5, 3) }, .error = "5 inputs beside products, expected 3" },
    { FLOW_OP_sgd, 4, { F(1), F(7), F(5, 2), F(5, 3) }, { .optimizer = { .products = 1 } }, .error = "is missing" },
    { FLOW_OP_sgd, 3, { F(7), F(7), F(1) }, { .optimizer = { .products = 5 } }, .error = "5 products, expected up to 4" },
    { FLOW_OP_adam, 6, { F(7), F(7), F(7), F(7), SCALAR(FLOW_FLOAT32), SCALAR(FLOW_INT64) }, .error = NULL },
    { FLOW_OP_adam, 7, { F(7), F(7), F(7), F(7), SCALAR(FLOW_FLOAT32), SCALAR(FLOW_INT64), F(7) }, { .optimizer = { .amsgrad = 1 } },
      .error = NULL },
    { FLOW_OP_adam, 6, { F(7), F(7), F(7), F(7), SCALAR(FLOW_FLOAT32), SCALAR(FLOW_INT64) }, { .optimizer = { .amsgrad = 1 } },
      .error = "velocity_hat is missing" },
    { FLOW_OP_adam, 6, { F(7), F(7), F(7), F(7), SCALAR(FLOW_FLOAT32), SCALAR(FLOW_INT32) },
      .error = "the iteration count is int32, expected int64" },
    { FLOW_OP_adam, 6, { F(7), F(7), F(7), F(8), SCALAR(FLOW_FLOAT32), SCALAR(FLOW_INT64) }, .error = "velocity has shape {8}" },
    { FLOW_OP_rmsprop, 5, { F(7), F(7), F(1), I64(1), F(7) }, .error = NULL },
    { FLOW_OP_rmsprop, 7, { F(7), F(7), F(1), I64(1), F(7), F(7), F(7) }, { .optimizer = { .momentum = 0.5, .centered = 1 } },
      .error = NULL },
    { FLOW_OP_rmsprop, 6, { F(7), F(7), F(1), I64(1), F(7), F(7) }, .error = "the guard has shape {7}, expected one element" },
    { FLOW_OP_rmsprop, 6, { F(7), F(7), F(1), I64(1), F(7), F(1) }, .error = NULL },
    { FLOW_OP_rmsprop, 6, { F(7), F(7), F(1), I64(1), F(7), I64(1) }, .error = "the guard" },
    { FLOW_OP_rmsprop, 7, { F(7), F(7), F(1), I64(1), F(7), F(1), F(7) },
      .error = "7 inputs beside products, expected 5, or one more: a guard" },
    { FLOW_OP_rmsprop, 5, { F(7), F(7), F(1), I64(1), F(7) }, { .optimizer = { .centered = 1 } }, .error = "average_gradient is missing" },
    { FLOW_OP_adamax, 6, { F(7), F(7), F(1), I64(1), F(7), F(6) }, .error = "norm has shape {6}" },
  };
  /* clang-format on */
  CHECK(cases);
}

static void schedules(void **state)
{
  (void)state;
  /* clang-format off */
  static const shape_case cases[] = {
    { FLOW_OP_schedule, 2, { SCALAR(FLOW_INT64), SHAPED(FLOW_FLOAT64, 4) }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_schedule, 2, { I64(1), SHAPED(FLOW_FLOAT64, 3) }, { .schedule = { 2 } }, .outputs = { SCALAR(FLOW_FLOAT32) } },
    { FLOW_OP_schedule, 2, { I64(1), SHAPED(FLOW_FLOAT64, 1) }, { .schedule = { 2 } }, .error = "shape {1}, expected {2 n + 3}" },
    { FLOW_OP_schedule, 2, { I64(1), SHAPED(FLOW_FLOAT64, 6) }, { .schedule = { 2 } }, .error = "shape {6}, expected {2 n + 3}" },
    { FLOW_OP_schedule, 2, { I64(1), SHAPED(FLOW_FLOAT64, 3) }, .error = "the parameters have shape {3}, expected {4}" },
    { FLOW_OP_schedule, 2, { I64(1), SHAPED(FLOW_FLOAT64, 4) }, { .schedule = { 6 } }, .error = "no class of schedules with number 6" },
    { FLOW_OP_schedule, 2, { I64(1), SHAPED(FLOW_FLOAT64, 4) }, { .schedule = { -1 } }, .error = "no class of schedules with number -1" },
    { FLOW_OP_schedule, 2, { I64(2), SHAPED(FLOW_FLOAT64, 3) }, .error = "the step has shape {2}, expected one element" },
    { FLOW_OP_schedule, 2, { I64(1), F(3) }, .error = "the list of parameters is float32, expected float64" },
  };
  /* clang-format on */
  CHECK(cases);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(optimizers), cmocka_unit_test(schedules) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
