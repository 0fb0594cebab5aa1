/* test_rounds.c: recurrent cells in rounds, as the engine runs them where threads divide the units of a step. The rounds of a call, the
 * parts of each in any order and with a scratch block that holds anything, give the bits of the phases. Shapes are drawn; FLOW_CASES is
 * how many. */
#include "kernel_call.h"
#include <stdio.h>

enum { MOST_INPUTS = 5, MOST_OUTPUTS = 3 };

typedef struct sample {
  int op, input_count, output_count;
  flow_attributes attributes;
  test_tensor inputs[MOST_INPUTS];
  int64_t results[MOST_OUTPUTS][3];
  int unread; /* an output that nothing reads; -1: all are read */
} sample;

static void add_input(sample *s, uint32_t *state, int rank, int64_t a, int64_t b, int64_t c)
{
  test_tensor *t = &s->inputs[s->input_count++];
  tensor_make(t, FLOW_FLOAT32, rank, (int64_t[]){ a, b, c });
  tensor_fill_rough(t, state);
}

static void draw_sample(uint32_t *state, sample *s)
{
  static const int ops[] = { FLOW_OP_simple_rnn, FLOW_OP_lstm, FLOW_OP_gru };
  memset(s, 0, sizeof *s);
  s->op = ops[draw(state, 0, 2)];
  int64_t rows = draw(state, 0, 3) ? draw(state, 1, 3) : draw(state, 1, 10), steps = draw(state, 0, 7), units = 16 * draw(state, 1, 18);
  if (draw(state, 0, 9) == 0) units -= draw(state, 1, 15);
  int64_t gates = s->op == FLOW_OP_lstm ? 4 : s->op == FLOW_OP_gru ? 3 : 1, kept = s->op == FLOW_OP_lstm ? 5 : 4;
  s->attributes.recurrent.reverse = draw(state, 0, 2) == 0;
  s->attributes.recurrent.history = s->op != FLOW_OP_simple_rnn && draw(state, 0, 1);
  s->attributes.recurrent.reset_after = draw(state, 0, 4) > 0;
  add_input(s, state, 3, rows, steps, gates * units);
  add_input(s, state, 2, units, gates * units, 0);
  add_input(s, state, 2, rows, units, 0);
  if (s->op == FLOW_OP_lstm) add_input(s, state, 2, rows, units, 0);
  if (s->op == FLOW_OP_gru) add_input(s, state, 1, 3 * units, 0, 0);
  if (draw(state, 0, 1)) {
    test_tensor *mask = &s->inputs[s->input_count++];
    tensor_make(mask, FLOW_BOOL, 2, (int64_t[]){ rows, steps });
    for (int64_t i = 0; i < rows * steps; i++) tensor_set(mask, i, draw(state, 0, 2) > 0);
  }
  memcpy(s->results[s->output_count++], (int64_t[]){ rows, steps, units }, sizeof s->results[0]);
  if (s->op == FLOW_OP_lstm) memcpy(s->results[s->output_count++], (int64_t[]){ rows, 1, units }, sizeof s->results[0]);
  if (s->attributes.recurrent.history)
    memcpy(s->results[s->output_count++], (int64_t[]){ rows, steps, kept * units }, sizeof s->results[0]);
  s->unread = draw(state, 0, 3) ? -1 : draw(state, 0, s->output_count - 1);
}

typedef struct results {
  flow_call call;
  flow_operand inputs[MOST_INPUTS], outputs[MOST_OUTPUTS];
  test_tensor tensors[MOST_OUTPUTS];
} results;

static void make_results(const sample *s, results *r)
{
  memset(r, 0, sizeof *r);
  for (int i = 0; i < s->input_count; i++) r->inputs[i] = s->inputs[i].operand;
  for (int i = 0; i < s->output_count; i++) {
    tensor_make(&r->tensors[i], FLOW_FLOAT32, 3, s->results[i]);
    r->outputs[i] = r->tensors[i].operand;
    if (i == s->unread) r->outputs[i].data = NULL;
  }
  r->call = (flow_call){ .op = s->op,
                         .attributes = &s->attributes,
                         .input_count = s->input_count,
                         .output_count = s->output_count,
                         .inputs = r->inputs,
                         .outputs = r->outputs };
}

static void run_phase(const flow_kernel *kernel, flow_call *call, int phase)
{
  guarded scratch;
  call->scratch = guarded_alloc(&scratch, kernel->scratch_bytes(call));
  assert_int_equal(kernel->run(call, phase, 0, kernel->parts(call, phase)), FLOW_OK);
  guarded_check_and_free(&scratch);
}

static void run_rounds(const flow_kernel *kernel, flow_call *call, uint32_t *state)
{
  int64_t rounds = kernel->rounds(call), parts = kernel->round_parts(call);
  for (int64_t round = 0; round < rounds; round++) {
    part_order order = draw_order(state, parts);
    for (int64_t i = 0; i < parts; i++) {
      guarded scratch;
      call->scratch = guarded_alloc(&scratch, kernel->scratch_bytes(call));
      assert_int_equal(kernel->run_round(call, round, (order.start + i * order.step) % parts), FLOW_OK);
      guarded_check_and_free(&scratch);
    }
  }
}

/* Returns whether the kernel has rounds for this call. */
static int check_kernel(const flow_kernel *kernel, const sample *s, const char *isa, int number, uint32_t *state)
{
  results at_once, in_rounds;
  guarded shared;
  make_results(s, &at_once);
  make_results(s, &in_rounds);
  int has_rounds = kernel->rounds(&at_once.call) > 0;
  at_once.call.shared = in_rounds.call.shared = guarded_alloc(&shared, kernel->shared_bytes(&at_once.call));
  run_phase(kernel, &at_once.call, 0);
  run_phase(kernel, &at_once.call, 1);
  if (has_rounds) run_rounds(kernel, &in_rounds.call, state);
  for (int i = 0; i < s->output_count; i++) {
    if (has_rounds && memcmp(at_once.tensors[i].operand.data, in_rounds.tensors[i].operand.data, at_once.tensors[i].memory.bytes) != 0)
      fail_msg("case %d, %s %s: output %d in rounds differs", number, isa, kernel->variant, i);
    tensor_free(&at_once.tensors[i]), tensor_free(&in_rounds.tensors[i]);
  }
  guarded_check_and_free(&shared);
  return has_rounds;
}

static void rounds_do_not_change_a_bit(void **state)
{
  (void)state;
  int count = case_count(200), runs = 0, cut = 0;
  uint32_t random = 11;
  for (int number = 0; number < count; number++) {
    sample s;
    draw_sample(&random, &s);
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
      const flow_device *device = flow_cpu_device_for(test_isas[i]);
      results r;
      make_results(&s, &r);
      for (const flow_kernel *kernel = device ? device->kernels[s.op] : NULL; kernel && kernel->run; kernel++)
        if (kernel->rounds && kernel->supports(&r.call)) {
          runs++;
          cut += check_kernel(kernel, &s, test_isas[i], number, &random);
        }
      for (int k = 0; k < s.output_count; k++) tensor_free(&r.tensors[k]);
    }
    for (int i = 0; i < s.input_count; i++) tensor_free(&s.inputs[i]);
  }
  assert_true(runs >= count);
  assert_true(cut > runs / 8);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(rounds_do_not_change_a_bit) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
