/* test_recurrent.c: simple_rnn, lstm, gru and their gradients on the CPU: every variant of every build against the plain one, which
 * computes in double; sizes are drawn, zeros among them, masks, the direction, results that nobody reads, products rounded to bfloat16.
 * Guards tell what reads or writes beside an operand. FLOW_CASES is how many. */
#include <math.h>
#include "kernel_runner.h"
#include "recurrent_operands.h"

enum { MOST_INPUTS = 6, MOST_OUTPUTS = 3 };

static int draw(uint32_t *state, int from, int to)
{
  *state = *state * 1664525u + 1013904223u;
  return from + (int)(*state >> 8) % (to - from + 1);
}

/* What the plain kernel gives for the same numbers. number: of the case. */
typedef struct expected {
  const flow_operand *outputs;
  double tolerance;
  int number;
} expected;

static void is_near(const flow_call *call, const char *variant, void *argument)
{
  const expected *e = argument;
  char what[120];
  for (int o = 0; o < call->output_count; o++) {
    const flow_operand *found = &call->outputs[o];
    if (!found->data) continue;
    snprintf(what, sizeof what, "case %d, %s, %s, output %d", e->number, flow_op(call->op)->name, variant, o);
    for (int64_t i = 0; i < operand_size(found); i++) {
      double wanted = get(&e->outputs[o], i);
      assert_near(get(found, i), wanted, e->tolerance * fmax(1, fabs(wanted)), what, i);
    }
  }
}

static void plainly(const flow_call *call)
{
  const flow_kernel *kernel = flow_cpu_device_for("plain")->kernels[call->op];
  flow_call plain = *call;
  while (strcmp(kernel->variant, "plain") != 0) kernel++;
  assert_int_equal(run_kernel(kernel, &plain, ALL_AT_ONCE), FLOW_OK);
}

static setting draw_setting(uint32_t *state)
{
  int op = draw(state, 0, RECURRENT_OPS - 1);
  setting s = { .op = recurrent_ops[op].op, .gates = recurrent_ops[op].gates, .reset_after = recurrent_ops[op].reset_after };
  s.rows = draw(state, 0, 3) ? draw(state, 0, 12) : draw(state, 0, 70);
  s.steps = draw(state, 0, 5);
  s.units = draw(state, 0, 4) ? draw(state, 0, 40) : draw(state, 1, 12) * 16;
  s.masked = draw(state, 0, 1);
  s.dtype = draw(state, 0, 5) ? FLOW_FLOAT32 : FLOW_FLOAT64;
  s.unread = draw(state, 0, 2) ? 0 : draw(state, 1, 6);
  return s;
}

static void check(const setting *s, int number, uint32_t *state)
{
  flow_operand inputs[MOST_INPUTS], outputs[MOST_OUTPUTS], wanted[MOST_OUTPUTS];
  const char *in = inputs_of(s->op), *out = outputs_of(s);
  int input_count = (int)strlen(in), output_count = (int)strlen(out);
  for (int i = 0; i < input_count; i++) {
    inputs[i] = operand_for(s, in[i]);
    fill(&inputs[i], in[i] == 'w' ? 2.0 / (1 + s->units) : 0.9);
  }
  if (s->masked) {
    inputs[input_count] = operand(FLOW_BOOL, 2, s->rows, s->steps);
    for (int64_t k = 0; k < operand_size(&inputs[input_count]); k++) set(&inputs[input_count], k, draw(state, 0, 2) > 0);
    input_count++;
  }
  for (int i = 0; i < output_count; i++) {
    wanted[i] = operand_for(s, out[i]);
    outputs[i] = operand_for(s, out[i]);
    if (s->unread >> i & 1) operand_free(&outputs[i]), outputs[i].data = NULL;
  }
  flow_attributes attributes = { .recurrent = { .reverse = draw(state, 0, 1), .history = 1, .reset_after = s->reset_after } };
  flow_call call = call_of(s->op, &attributes, inputs, input_count, wanted, output_count);
  call.bfloat16 = s->dtype == FLOW_FLOAT32 && draw(state, 0, 3) == 0;
  plainly(&call);
  call.outputs = outputs;
  double tolerance = call.bfloat16 ? 3e-2 : s->dtype == FLOW_FLOAT32 ? 2e-5 : 1e-13;
  run_everywhere(&call, 0, is_near, &(expected){ wanted, tolerance, number });
  for (int i = 0; i < input_count; i++) operand_free(&inputs[i]);
  for (int i = 0; i < output_count; i++) {
    operand_free(&wanted[i]);
    if (outputs[i].data) operand_free(&outputs[i]);
  }
}

static void variants_agree_with_the_plain_one(void **state)
{
  (void)state;
  const char *text = getenv("FLOW_CASES");
  int count = text ? atoi(text) : 150;
  uint32_t random = 5;
  for (int number = 0; number < count; number++) {
    setting s = draw_setting(&random);
    check(&s, number, &random);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(variants_agree_with_the_plain_one) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
