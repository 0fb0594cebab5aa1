/* test_cuda_plan_trial.c: kernels/cuda/library/plan_trial.h: which of several plans is taken, by times that this test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "cuda/library/plan_trial.h"

/* times: of each plan; negative: it cannot be run. runs: how often each was; slow: the first run of each takes this much longer. */
typedef struct said {
  float times[FLOW_PLAN_TRIALS];
  float slow;
  int fails_later, runs[FLOW_PLAN_TRIALS];
} said;

static flow_status tell(void *state, int plan, float *milliseconds)
{
  said *s = state;
  int run = s->runs[plan]++;
  if (s->times[plan] < 0 || (run > 1 && plan + 1 == s->fails_later)) return flow_fail(FLOW_UNSUPPORTED, "it cannot be run");
  *milliseconds = s->times[plan] + (run == 0 ? s->slow : 0) + (run == 2 ? 7 : 0); /* something disturbs the third run */
  return FLOW_OK;
}

static int fastest(int count, said s)
{
  return flow_plan_fastest(count, tell, &s);
}

static void the_fastest_is_taken(void **state)
{
  (void)state;
  assert_int_equal(fastest(3, (said){ .times = { 3, 1, 2 } }), 1);
  assert_int_equal(fastest(5, (said){ .times = { 5, 4, 3, 2, 1 } }), 4);
  assert_int_equal(fastest(2, (said){ .times = { 5, 4, 1, 1, 1 } }), 1);
  assert_int_equal(fastest(2, (said){ .times = { 0.5f, 0.4f }, .slow = 100 }), 1);
}

static void the_likely_best_is_taken_unless_another_is_clearly_faster(void **state)
{
  (void)state;
  assert_int_equal(fastest(3, (said){ .times = { 1.04f, 1, 1 } }), 0);
  assert_int_equal(fastest(3, (said){ .times = { 1.06f, 1.04f, 1 } }), 1);
  assert_int_equal(fastest(2, (said){ .times = { 0, 0 } }), 0);
}

static void plans_that_cannot_be_run_are_out(void **state)
{
  (void)state;
  assert_int_equal(fastest(3, (said){ .times = { -1, 2, 1 } }), 2);
  assert_int_equal(fastest(3, (said){ .times = { -1, 2, -1 } }), 1);
  assert_int_equal(fastest(3, (said){ .times = { 3, 2, 1 }, .fails_later = 3 }), 1);
  assert_int_equal(fastest(3, (said){ .times = { -1, -1, -1 } }), 0);
}

static void one_plan_is_not_run(void **state)
{
  (void)state;
  said s = { .times = { 1 } };
  assert_int_equal(flow_plan_fastest(1, tell, &s), 0);
  assert_int_equal(s.runs[0], 0);
}

static void several_are_tried_only_if_that_is_asked_for(void **state)
{
  (void)state;
  const char *values[] = { NULL, "", "0", "1", "2" };
  for (int i = 0; i < 5; i++) {
    if (values[i]) setenv("FLOW_CUDA_TUNE", values[i], 1);
    else unsetenv("FLOW_CUDA_TUNE");
    assert_int_equal(flow_plan_trials(0), i == 3 ? FLOW_PLAN_TRIALS : 1);
    assert_int_equal(flow_plan_trials(1), 1);
  }
  unsetenv("FLOW_CUDA_TUNE");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_fastest_is_taken),
    cmocka_unit_test(the_likely_best_is_taken_unless_another_is_clearly_faster),
    cmocka_unit_test(plans_that_cannot_be_run_are_out),
    cmocka_unit_test(one_plan_is_not_run),
    cmocka_unit_test(several_are_tried_only_if_that_is_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
