/* schedule.c: the op schedule: one number from the count of updates, computed in double by the schedule's formula. */
#include "cpu/vector.h"
#include "schedule_formulas.h"

static double (*const formulas[])(const double *parameters, double step) = {
#define FORMULA(class, formula) formula,
  FLOW_SCHEDULES(FORMULA)
#undef FORMULA
};

static int64_t one_part(const flow_call *call, int phase)
{
  (void)call;
  (void)phase;
  return 1;
}

static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int64_t step = *(const int64_t *)call->inputs[0].data;
  double rate = formulas[call->attributes->schedule.kind](call->inputs[1].data, (double)step);
  if (begin < end) *(float *)call->outputs[0].data = (float)rate;
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(schedule)[] = { { .variant = "plain", .parts = one_part, .run = run }, { 0 } };
