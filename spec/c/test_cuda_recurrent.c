/* test_cuda_recurrent.c: simple_rnn, lstm, gru and their gradients on the device, against the CPU's plain kernels: both variants, all
 * dtypes, sizes that fill tiles and such that do not, masks, either direction, results that nobody reads. */
#include "cuda_runner.h"
#include "recurrent_operands.h"

enum { MOST = 6 };

/* Of 16 bits: each result is rounded once; by products the state is, too, at each step. */
static double tolerance_of(int dtype)
{
  return dtype == FLOW_FLOAT32 ? 2e-5 : dtype == FLOW_FLOAT16 ? 3e-3 : dtype == FLOW_BFLOAT16 ? 3e-2 : 1e-13;
}

static void check(const setting *s)
{
  flow_operand inputs[MOST], outputs[3];
  const char *in = inputs_of(s->op), *out = outputs_of(s);
  int input_count = (int)strlen(in), output_count = (int)strlen(out);
  for (int i = 0; i < input_count; i++) {
    inputs[i] = operand_for(s, in[i]);
    fill(&inputs[i], in[i] == 'w' ? 1.0 / (1 + s->units) : 0.9);
  }
  if (s->masked) {
    inputs[input_count] = operand(FLOW_BOOL, 2, s->rows, s->steps);
    for (int64_t k = 0; k < operand_size(&inputs[input_count]); k++) set(&inputs[input_count], k, (double)(k * 7 % 3 > 0));
    input_count++;
  }
  for (int i = 0; i < output_count; i++) {
    outputs[i] = operand_for(s, out[i]);
    if (s->unread >> i & 1) operand_free(&outputs[i]), outputs[i].data = NULL;
  }
  flow_attributes attributes = { .recurrent = { .reverse = s->masked, .history = 1, .reset_after = s->reset_after } };
  flow_call call = call_of(s->op, &attributes, inputs, input_count, outputs, output_count);
  cuda_matches_cpu_in_float(&call, tolerance_of(s->dtype));
  for (int i = 0; i < input_count; i++) operand_free(&inputs[i]);
  for (int i = 0; i < output_count; i++)
    if (outputs[i].data) operand_free(&outputs[i]);
}

static void check_ops(setting s)
{
  for (int i = 0; i < RECURRENT_OPS; i++) {
    s.op = recurrent_ops[i].op;
    s.gates = recurrent_ops[i].gates;
    s.reset_after = recurrent_ops[i].reset_after;
    check(&s);
  }
}

static void cells_of_all_dtypes(void **state)
{
  (void)state;
  static const int floats[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16 };
  for (size_t d = 0; d < sizeof floats / sizeof floats[0]; d++) {
    check_ops((setting){ .rows = 5, .steps = 4, .units = 8, .dtype = floats[d], .masked = 1 });
    check_ops((setting){ .rows = 9, .steps = 3, .units = 7, .dtype = floats[d] });
  }
}

static void operands_may_begin_anywhere(void **state)
{
  (void)state;
  cuda_shift = 4;
  check_ops((setting){ .rows = 3, .steps = 3, .units = 8, .dtype = FLOW_FLOAT32 });
  cuda_shift = 2;
  check_ops((setting){ .rows = 3, .steps = 3, .units = 12, .dtype = FLOW_BFLOAT16, .masked = 1 });
  cuda_shift = 0;
}

static void sizes_at_the_edges(void **state)
{
  (void)state;
  static const struct { int rows, steps, units; } sizes[] = { { 0, 3, 4 }, { 3, 0, 4 }, { 3, 2, 0 }, { 1, 1, 1 }, { 1, 6, 33 } };
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    check_ops((setting){ .rows = sizes[i].rows, .steps = sizes[i].steps, .units = sizes[i].units, .dtype = FLOW_FLOAT32, .masked = 1 });
}

/* More units than a block does at a time, and w too large for blocks where there are libraries. */
static void many_units(void **state)
{
  (void)state;
  check_ops((setting){ .rows = 5, .steps = 3, .units = 420, .dtype = FLOW_FLOAT32, .masked = 1 });
  check_ops((setting){ .rows = 3, .steps = 3, .units = 420, .dtype = FLOW_BFLOAT16 });
  cuda_shift = 4;
  check_ops((setting){ .rows = 3, .steps = 2, .units = 421, .dtype = FLOW_FLOAT32 });
  cuda_shift = 0;
  check(&(setting){ .op = FLOW_OP_simple_rnn, .gates = 1, .rows = 2, .steps = 2, .units = 1030, .dtype = FLOW_FLOAT32 });
  check(&(setting){ .op = FLOW_OP_simple_rnn_gradient, .gates = 1, .rows = 2, .steps = 2, .units = 1030, .dtype = FLOW_FLOAT32 });
}

static void results_that_nobody_reads(void **state)
{
  (void)state;
  for (int units = 8; units <= 420; units += 412) {
    for (int unread = 1; unread < 7; unread++) {
      check(&(setting){ .op = FLOW_OP_lstm, .gates = 4, .rows = 3, .steps = 3, .units = units, .dtype = FLOW_FLOAT32, .unread = unread });
      check(&(setting){ .op = FLOW_OP_lstm_gradient, .gates = 4, .rows = 3, .steps = 2, .units = units, .dtype = FLOW_FLOAT32,
                        .unread = unread });
      check(&(setting){ .op = FLOW_OP_gru_gradient, .gates = 3, .rows = 3, .steps = 2, .units = units, .dtype = FLOW_FLOAT32,
                        .reset_after = 1, .unread = unread });
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(cells_of_all_dtypes), cmocka_unit_test(operands_may_begin_anywhere), cmocka_unit_test(sizes_at_the_edges),
    cmocka_unit_test(many_units), cmocka_unit_test(results_that_nobody_reads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
