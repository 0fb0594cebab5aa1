/* test_pieces.c: convolutions cut into pieces, as the engine cuts them where there are fewer images than threads. The pieces of a call,
 * in any order and each with a scratch block that holds anything, give the bits of the whole call. Shapes are drawn; FLOW_CASES is how
 * many. */
#include "kernel_call.h"
#include <stdio.h>

static int draw(uint32_t *state, int from, int to) { return from + (int)(next_random(state) >> 8) % (to - from + 1); }

typedef struct sample {
  flow_attributes attributes;
  test_tensor x, w, b;
  int64_t result[4];
  int exact;
} sample;

/* Returns 0 for sizes that do not go together. */
static int draw_sample(uint32_t *state, sample *s)
{
  memset(s, 0, sizeof *s);
  int kind = draw(state, 0, 3), kernel = kind == 0 ? 1 : draw(state, 0, 2) ? 3 : draw(state, 2, 5), wide = draw(state, 0, 3) == 0;
  int in = draw(state, 1, wide ? 200 : 70), groups = kind == 1 ? in : kind == 2 && in % 2 == 0 ? 2 : 1;
  int out = kind == 1 ? in : groups * draw(state, 1, wide ? 150 : 40), pooled = kind == 3 && draw(state, 0, 1);
  int64_t x[4] = { draw(state, 1, 2), draw(state, 1, 40), draw(state, 1, 40), in }, b[1] = { out };
  int64_t w[4] = { kernel, kernel, in / groups, out };
  __typeof__(s->attributes.convolution) *a = &s->attributes.convolution;
  s->result[0] = x[0];
  s->result[3] = out;
  for (int axis = 0; axis < 2; axis++) {
    a->stride[axis] = draw(state, 0, 2) ? 1 : 2;
    a->dilation[axis] = draw(state, 0, 4) ? 1 : 2;
    a->padding[2 * axis] = kind == 0 ? 0 : draw(state, 0, kernel - 1);
    a->padding[2 * axis + 1] = kind == 0 ? 0 : draw(state, 0, kernel - 1);
    int64_t room = x[1 + axis] + a->padding[2 * axis] + a->padding[2 * axis + 1] - (kernel - 1) * a->dilation[axis] - 1;
    if (room < 0) return 0;
    s->result[1 + axis] = room / a->stride[axis] + 1;
    a->pool[axis] = pooled ? draw(state, 2, 3) : 0;
    a->pool_stride[axis] = pooled ? 2 : 0;
    if (pooled) s->result[1 + axis] = s->result[1 + axis] < a->pool[axis] ? 0 : (s->result[1 + axis] - a->pool[axis]) / 2 + 1;
    if (s->result[1 + axis] == 0) return 0;
  }
  a->groups = groups;
  a->activation = draw(state, 0, 1) ? FLOW_RELU : FLOW_LINEAR;
  a->has_bias = 1;
  s->exact = draw(state, 0, 2) == 0;
  tensor_make(&s->x, draw(state, 0, 5) ? FLOW_FLOAT32 : FLOW_UINT8, 4, x);
  tensor_make(&s->w, FLOW_FLOAT32, 4, w);
  tensor_make(&s->b, FLOW_FLOAT32, 1, b);
  tensor_fill_rough(&s->x, state), tensor_fill_rough(&s->w, state), tensor_fill_rough(&s->b, state);
  return 1;
}

static flow_call call_on(sample *s, flow_operand *inputs, flow_operand *outputs, const test_tensor *y, const test_tensor *index)
{
  inputs[0] = s->x.operand, inputs[1] = s->w.operand, inputs[2] = s->b.operand;
  outputs[0] = y->operand, outputs[1] = index->operand;
  if (!s->attributes.convolution.pool[0]) outputs[1].data = NULL;
  return (flow_call){ .op = FLOW_OP_convolution, .attributes = &s->attributes, .input_count = 3, .output_count = 2, .inputs = inputs,
                      .outputs = outputs, .exact = s->exact };
}

/* Each piece sees scratch memory full of NaN, with guards around what the kernel asked for. */
static void run_pieces(const flow_kernel *kernel, flow_call *call, int64_t pieces, uint32_t *state)
{
  int64_t start = draw(state, 0, (int)pieces - 1), step = draw(state, 0, 1) ? 1 : pieces - 1;
  for (int64_t i = 0; i < pieces; i++) {
    guarded scratch;
    call->scratch = guarded_alloc(&scratch, kernel->scratch_bytes ? kernel->scratch_bytes(call) : 0);
    assert_int_equal(kernel->run_piece(call, (start + i * step) % pieces), FLOW_OK);
    guarded_check_and_free(&scratch);
  }
}

/* Returns how many pieces there were. */
static int64_t check_kernel(const flow_kernel *kernel, sample *s, const char *isa, int number, uint32_t *state)
{
  flow_operand inputs[3], outputs[2];
  test_tensor y[2], index[2];
  guarded shared, scratch;
  for (int i = 0; i < 2; i++) tensor_make(&y[i], FLOW_FLOAT32, 4, s->result), tensor_make(&index[i], FLOW_UINT8, 4, s->result);
  flow_call call = call_on(s, inputs, outputs, &y[0], &index[0]);
  call.shared = guarded_alloc(&shared, kernel->shared_bytes ? kernel->shared_bytes(&call) : 0);
  call.scratch = guarded_alloc(&scratch, kernel->scratch_bytes ? kernel->scratch_bytes(&call) : 0);
  if (kernel->prepare) assert_int_equal(kernel->prepare(&call), FLOW_OK);
  assert_int_equal(kernel->run(&call, 0, 0, 1), FLOW_OK);
  guarded_check_and_free(&scratch);
  void *kept = call.shared;
  call = call_on(s, inputs, outputs, &y[1], &index[1]);
  call.shared = kept;
  int64_t pieces = kernel->pieces(&call);
  assert_true(pieces > 0);
  run_pieces(kernel, &call, pieces, state);
  if (memcmp(y[0].operand.data, y[1].operand.data, y[0].memory.bytes) != 0)
    fail_msg("case %d, %s %s: y in %lld pieces differs from y", number, isa, kernel->variant, (long long)pieces);
  if (outputs[1].data && memcmp(index[0].operand.data, index[1].operand.data, index[0].memory.bytes) != 0)
    fail_msg("case %d, %s %s: the index in %lld pieces differs", number, isa, kernel->variant, (long long)pieces);
  guarded_check_and_free(&shared);
  for (int i = 0; i < 2; i++) tensor_free(&y[i]), tensor_free(&index[i]);
  return pieces;
}

static void pieces_do_not_change_a_bit(void **state)
{
  (void)state;
  const char *text = getenv("FLOW_CASES");
  int count = text ? atoi(text) : 300, cut = 0, runs = 0;
  uint32_t random = 7;
  for (int number = 0; number < count; number++) {
    sample s;
    if (!draw_sample(&random, &s)) continue;
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
      const flow_device *device = flow_cpu_device_for(test_isas[i]);
      flow_operand inputs[3], outputs[2];
      flow_call call = call_on(&s, inputs, outputs, &s.x, &s.x);
      for (const flow_kernel *kernel = device ? device->kernels[FLOW_OP_convolution] : NULL; kernel && kernel->run; kernel++)
        if (kernel->pieces && (!kernel->supports || kernel->supports(&call))) {
          runs++;
          cut += check_kernel(kernel, &s, test_isas[i], number, &random) > 1;
        }
    }
    tensor_free(&s.x), tensor_free(&s.w), tensor_free(&s.b);
  }
  assert_true(runs > count / 2);
  assert_true(cut > runs / 8);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(pieces_do_not_change_a_bit) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
