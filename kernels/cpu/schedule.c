/* schedule.c: the op schedule: the learning rate for a count of updates, an int64, by the formula of its class (schedule_formulas.h), in
 * double and rounded once. One part: it is a single number. */
#include "cpu/vector.h"
#include "schedule_formulas.h"

static double (*const formulas[])(const double *parameters, int64_t count, double step) = {
#define FORMULA(class, formula, numbers) formula,
  FLOW_SCHEDULES(FORMULA)
#undef FORMULA
};

/* The rate of an update from the number of updates so far and the schedule's parameters, in double; kernels/schedule_formulas.h has the
 * formulas. */
static flow_status run(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  const flow_operand *parameters = &call->inputs[1];
  double step = (double)*(const int64_t *)call->inputs[0].data;
  double rate = formulas[call->attributes->schedule.kind](parameters->data, parameters->shape[0], step);
  if (call->outputs[0].data) *(float *)call->outputs[0].data = (float)rate;
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(schedule)[] = { { .variant = "plain", .run = run }, { 0 } };
