/* test_short_sums.c: gradients that travel with 16 bits: what is sent, and what is left for later steps. */
#include "graphs.h"
#include "run/replicas/replica_set.h"

#include <math.h>

/* What rounding takes away comes with later steps; a step that is infinite leaves nothing behind. */
static void rounding_loses_nothing(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_BFLOAT16, FLOW_FLOAT16 };
  for (int k = 0; k < 2; k++) {
    float gradient[3] = { 1.0001f, -3e-5f, 70000 }, back[3], rest[3] = { 0, 0, 0 };
    uint16_t rounded[3];
    double sums[3] = { 0, 0, 0 };
    const flow_worker_sum sum = { .rest = rest, .rounded = rounded };
    for (int step = 0; step < 1000; step++) {
      flow_round_sum(&sum, dtypes[k], gradient, k == 0 ? 3 : 2);
      flow_widen_sum(&sum, dtypes[k], back, k == 0 ? 3 : 2);
      for (int i = 0; i < (k == 0 ? 3 : 2); i++) sums[i] += (double)back[i];
    }
    for (int i = 0; i < (k == 0 ? 3 : 2); i++) assert_true(fabs(sums[i] / (1000 * (double)gradient[i]) - 1) < 1e-4);
    gradient[0] = INFINITY;
    flow_round_sum(&sum, dtypes[k], gradient, 1);
    flow_widen_sum(&sum, dtypes[k], back, 1);
    assert_true(isinf(back[0]) && rest[0] == 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(rounding_loses_nothing) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
