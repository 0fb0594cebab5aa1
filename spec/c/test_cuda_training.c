/* test_cuda_training.c: schedules, assignments and replicas' ops on the device against the CPU's kernels. */
#include "cuda_layouts.h"

static void schedules_of_every_class(void **state)
{
  (void)state;
  static const struct { const char *class; int count; double parameters[8]; } cases[] = {
    { "ExponentialDecay", 4, { 0.1, 100, 0.9, 0 } }, { "ExponentialDecay", 4, { 0.1, 100, 0.9, 1 } },
    { "CosineDecay", 5, { 0.1, 1000, 0.05, NAN, 0 } }, { "CosineDecay", 5, { 0.01, 1000, 0, 0.1, 50 } },
    { "PiecewiseConstantDecay", 7, { 2, 10, 200, 3, 0.3, 0.2, 0.1 } },
    { "PolynomialDecay", 5, { 0.1, 300, 0.001, 0.5, 0 } }, { "PolynomialDecay", 5, { 0.1, 300, 0.001, 2, 1 } },
    { "InverseTimeDecay", 4, { 0.1, 10, 0.5, 0 } }, { "InverseTimeDecay", 4, { 0.1, 10, 0.5, 1 } },
    { "CosineDecayRestarts", 5, { 0.1, 100, 2, 0.9, 0.01 } }, { "CosineDecayRestarts", 5, { 0.1, 100, 1, 1, 0 } },
  };
  static const int steps[] = { 0, 1, 10, 11, 49, 50, 99, 100, 101, 350, 1000, 123456 };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
      flow_operand step = operand(FLOW_INT64, 0), parameters = operand(FLOW_FLOAT64, 1, cases[c].count), y = operand(FLOW_FLOAT32, 0);
      flow_attributes attributes = { .schedule = { flow_schedule_class_find(cases[c].class) } };
      assert_true(attributes.schedule.kind >= 0);
      set(&step, 0, steps[s]);
      for (int i = 0; i < cases[c].count; i++) set(&parameters, i, cases[c].parameters[i]);
      flow_call call = call_of(FLOW_OP_schedule, &attributes, (flow_operand[]){ step, parameters }, 2, &y, 1);
      cuda_matches_cpu(&call, 0, 6e-8);
      operand_free(&step), operand_free(&parameters), operand_free(&y);
    }
  }
}

static void check_assign(int op, flow_operand to, flow_operand from)
{
  flow_attributes attributes = { 0 };
  flow_call call = call_of(op, &attributes, (flow_operand[]){ to, from }, 2, NULL, 0);
  cuda_matches_cpu(&call, 1, 0);
}

static void assignments_of_every_dtype_to_every_other(void **state)
{
  (void)state;
  for (int op = FLOW_OP_assign; op <= FLOW_OP_assign_add; op++) {
    for (int t = 0; t < FLOW_DTYPE_COUNT; t++) {
      for (int f = 0; f < FLOW_DTYPE_COUNT; f++) {
        flow_operand to = operand(every_dtype[t], 3, 3, 10, 9), whole = operand(every_dtype[f], 3, 3, 10, 9);
        flow_operand row = operand(every_dtype[f], 1, 9), one = operand(every_dtype[f], 0), back = operand(every_dtype[f], 3, 9, 10, 3);
        fill_hard(&to), fill_hard(&whole), fill_hard(&row), fill_hard(&one), fill_hard(&back);
        check_assign(op, to, whole);
        check_assign(op, to, row);
        check_assign(op, to, one);
        check_assign(op, to, transposed_operand(&back, (int[]){ 2, 1, 0 }));
        operand_free(&to), operand_free(&whole), operand_free(&row), operand_free(&one), operand_free(&back);
      }
    }
  }
}

static void a_replica_that_is_alone(void **state)
{
  (void)state;
  static const flow_scalars scalars[] = { { .rows = 3, .global_rows = 7 }, { .rows = 0, .global_rows = 0 } };
  flow_operand x = operand(FLOW_FLOAT32, 2, 5, 3);
  fill(&x, 1);
  for (int i = 0; i < 2; i++) {
    const struct { int op; flow_operand y; int inputs; } cases[] = {
      { FLOW_OP_all_reduce, operand(FLOW_FLOAT32, 2, 5, 3), 1 }, { FLOW_OP_all_gather, operand(FLOW_FLOAT32, 2, 15, 3), 1 },
      { FLOW_OP_global_rows, operand(FLOW_FLOAT32, 0), 0 },      { FLOW_OP_row_share, operand(FLOW_FLOAT32, 0), 0 },
    };
    for (int c = 0; c < 4; c++) {
      flow_operand y = cases[c].y;
      flow_attributes attributes = { .axis = { 3 } };
      flow_call call = call_of(cases[c].op, &attributes, &x, cases[c].inputs, &y, 1);
      call.scalars = &scalars[i];
      cuda_matches_cpu(&call, 0, 0);
      operand_free(&y);
    }
  }
  operand_free(&x);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(schedules_of_every_class), cmocka_unit_test(assignments_of_every_dtype_to_every_other),
    cmocka_unit_test(a_replica_that_is_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
