/* expected_values.h: what a kernel writes, compared with values in double. */
#ifndef FLOW_SPEC_EXPECTED_VALUES_H
#define FLOW_SPEC_EXPECTED_VALUES_H

#include <math.h>
#include "kernel_runner.h"

/* Expected values of outputs and written inputs, in that order; NULL: not compared. */
typedef struct expectation { const double *value[8]; int written; double tolerance; } expectation;

static inline void check_values(const flow_call *call, const char *variant, void *argument)
{
  const expectation *e = argument;
  int next = 0;
  for (int i = 0; i < call->output_count; i++, next++)
    for (int64_t j = 0; call->outputs[i].data && e->value[next] && j < operand_size(&call->outputs[i]); j++)
      assert_near(get(&call->outputs[i], j), e->value[next][j], e->tolerance * (1 + fabs(e->value[next][j])), variant, j);
  for (int i = 0; i < call->input_count; i++)
    if (e->written >> i & 1) {
      for (int64_t j = 0; e->value[next] && j < operand_size(&call->inputs[i]); j++)
        assert_near(get(&call->inputs[i], j), e->value[next][j], e->tolerance * (1 + fabs(e->value[next][j])), variant, j);
      next++;
    }
}

static inline double *doubles(int64_t n)
{
  double *block = calloc((size_t)n + 1, sizeof(double));
  assert_non_null(block);
  return block;
}

static inline double *doubles_of(const flow_operand *x)
{
  double *block = doubles(operand_size(x));
  for (int64_t i = 0; i < operand_size(x); i++) block[i] = get(x, i);
  return block;
}

#endif
