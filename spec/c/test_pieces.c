/* test_pieces.c: convolutions and poolings cut into pieces, as the engine cuts them where there are fewer images than threads. The pieces
 * of a call, in any order and each with a scratch block that holds anything, give the bits of the whole call. Shapes are drawn; FLOW_CASES
 * is how many. */
#include "kernel_call.h"
#include <stdio.h>

enum { MOST_INPUTS = 5, MOST_OUTPUTS = 2 };

typedef struct sample {
  int op, input_count, output_count, exact;
  flow_attributes attributes;
  test_tensor inputs[MOST_INPUTS];
  int64_t result[4];
  int dtypes[MOST_OUTPUTS], unread[MOST_OUTPUTS];
} sample;

static void add_input(sample *s, uint32_t *state, int dtype, int rank, const int64_t *shape)
{
  test_tensor *t = &s->inputs[s->input_count++];
  tensor_make(t, dtype, rank, shape);
  tensor_fill_rough(t, state);
}

/* What every op of windows has: 1 or 2 images of up to 40 x 40 pixels. Returns 0 for sizes that do not go together. */
static int draw_windows(uint32_t *state, int64_t x[4], int64_t result[4], int kernel, int padded, int32_t stride[2], int32_t dilation[2],
                        int32_t padding[4])
{
  x[0] = result[0] = draw(state, 1, 2);
  for (int axis = 0; axis < 2; axis++) {
    x[1 + axis] = draw(state, 1, 40);
    stride[axis] = draw(state, 0, 2) ? 1 : 2;
    dilation[axis] = dilation[axis] || draw(state, 0, 4) ? 1 : 2;
    padding[2 * axis] = padded ? draw(state, 0, kernel - 1) : 0;
    padding[2 * axis + 1] = padded ? draw(state, 0, kernel - 1) : 0;
    int64_t room = x[1 + axis] + padding[2 * axis] + padding[2 * axis + 1] - (kernel - 1) * dilation[axis] - 1;
    if (room < 0) return 0;
    result[1 + axis] = room / stride[axis] + 1;
  }
  return 1;
}

/* Of floats, or of bytes to bytes or floats. */
static int draw_convolution(uint32_t *state, sample *s, int quantized)
{
  int kind = draw(state, 0, 3), kernel = kind == 0 ? 1 : draw(state, 0, 2) ? 3 : draw(state, 2, 5), wide = draw(state, 0, 3) == 0;
  int in = draw(state, 1, wide ? 200 : 70), groups = kind == 1 ? in : kind == 2 && in % 2 == 0 ? 2 : 1;
  int out = kind == 1 ? in : groups * draw(state, 1, wide ? 150 : 40), pooled = !quantized && kind == 3 && draw(state, 0, 1);
  int64_t x[4] = { 0, 0, 0, in }, channels[1] = { out }, w[4] = { kernel, kernel, in / groups, out };
  __typeof__(s->attributes.convolution) *a = &s->attributes.convolution;
  s->result[3] = out;
  if (!draw_windows(state, x, s->result, kernel, kind != 0, a->stride, a->dilation, a->padding)) return 0;
  for (int axis = 0; axis < 2; axis++) {
    a->pool[axis] = pooled ? draw(state, 2, 3) : 0;
    a->pool_stride[axis] = pooled ? 2 : 0;
    if (pooled) s->result[1 + axis] = s->result[1 + axis] < a->pool[axis] ? 0 : (s->result[1 + axis] - a->pool[axis]) / 2 + 1;
    if (s->result[1 + axis] == 0) return 0;
  }
  a->groups = groups;
  a->activation = draw(state, 0, 1) ? FLOW_RELU : FLOW_LINEAR;
  a->has_bias = 1;
  a->ceiling = !quantized && !pooled && draw(state, 0, 2) == 0 ? 0.25 : 0;
  s->exact = draw(state, 0, 2) == 0;
  if (quantized) {
    s->op = FLOW_OP_quantized_convolution;
    a->input_low = draw(state, 0, 1) ? 0 : -1, a->input_high = 3;
    if (draw(state, 0, 1)) a->low = -2, a->high = 5;
    s->dtypes[0] = a->high > a->low ? FLOW_UINT8 : FLOW_FLOAT32;
    s->output_count = 1;
  } else {
    s->op = FLOW_OP_convolution;
    s->dtypes[0] = FLOW_FLOAT32, s->dtypes[1] = FLOW_UINT8;
    s->output_count = 2;
    s->unread[1] = !pooled;
  }
  add_input(s, state, quantized || draw(state, 0, 5) == 0 ? FLOW_UINT8 : FLOW_FLOAT32, 4, x);
  add_input(s, state, quantized ? FLOW_INT8 : FLOW_FLOAT32, 4, w);
  if (quantized) add_input(s, state, FLOW_FLOAT32, 1, channels);
  add_input(s, state, FLOW_FLOAT32, 1, channels);
  if (quantized && draw(state, 0, 3) == 0) add_input(s, state, FLOW_FLOAT32, 4, s->result);
  return 1;
}

/* A convolution with a bias, and what is added to its result. */
static int draw_sum(uint32_t *state, sample *s)
{
  if (!draw_convolution(state, s, 0)) return 0;
  if (s->attributes.convolution.pool[0] || s->inputs[0].operand.dtype != FLOW_FLOAT32) return 0;
  s->op = FLOW_OP_convolution_add;
  add_input(s, state, FLOW_FLOAT32, 4, s->result);
  return 1;
}

/* x, both kernels, then the biases that there are. */
static int draw_separable(uint32_t *state, sample *s)
{
  int kernel = draw(state, 1, 5), wide = draw(state, 0, 3) == 0, channels = draw(state, 2, wide ? 200 : 40), filters = draw(state, 1, 150);
  int64_t x[4] = { 0, 0, 0, channels }, w[4] = { kernel, kernel, 1, channels }, p[4] = { 1, 1, channels, filters };
  __typeof__(s->attributes.convolution) *a = &s->attributes.convolution;
  s->op = FLOW_OP_separable_convolution;
  s->result[3] = filters;
  if (!draw_windows(state, x, s->result, kernel, 1, a->stride, a->dilation, a->padding)) return 0;
  a->groups = channels;
  a->activation = draw(state, 0, 1) ? FLOW_RELU : FLOW_LINEAR;
  a->pointwise_activation = draw(state, 0, 1) ? FLOW_RELU : FLOW_LINEAR;
  a->has_bias = draw(state, 0, 1);
  a->pointwise_has_bias = draw(state, 0, 1);
  a->ceiling = draw(state, 0, 1);
  a->pointwise_ceiling = draw(state, 0, 1) * 0.5;
  s->dtypes[0] = FLOW_FLOAT32;
  s->output_count = 1;
  add_input(s, state, FLOW_FLOAT32, 4, x);
  add_input(s, state, FLOW_FLOAT32, 4, w);
  add_input(s, state, FLOW_FLOAT32, 4, p);
  if (a->has_bias) add_input(s, state, FLOW_FLOAT32, 1, &w[3]);
  if (a->pointwise_has_bias) add_input(s, state, FLOW_FLOAT32, 1, &p[3]);
  return 1;
}

static int draw_pooling(uint32_t *state, sample *s)
{
  int is_maximum = draw(state, 0, 2) > 0, bytes = is_maximum && draw(state, 0, 1), kernel = draw(state, 1, 4), none[2] = { 1, 1 };
  int64_t x[4] = { 0, 0, 0, draw(state, 1, draw(state, 0, 1) ? 150 : 20) };
  s->op = is_maximum ? FLOW_OP_max_pool : FLOW_OP_average_pool;
  if (!draw_windows(state, x, s->result, kernel, 1, s->attributes.pool.stride, none, s->attributes.pool.padding)) return 0;
  if (!is_maximum && (x[1] < kernel || x[2] < kernel)) return 0; /* else a window may have no cell inside the image */
  s->attributes.pool.size[0] = s->attributes.pool.size[1] = kernel;
  s->result[3] = x[3];
  s->dtypes[0] = bytes ? FLOW_UINT8 : FLOW_FLOAT32, s->dtypes[1] = FLOW_UINT8;
  s->output_count = is_maximum ? 2 : 1;
  s->unread[1] = bytes || draw(state, 0, 1);
  add_input(s, state, s->dtypes[0], 4, x);
  return 1;
}

/* Returns 0 for sizes that do not go together; what was made is to be freed in any case. */
static int draw_sample(uint32_t *state, sample *s)
{
  memset(s, 0, sizeof *s);
  int kind = draw(state, 0, 7);
  if (kind == 7) return draw_sum(state, s);
  if (kind == 6) return draw_separable(state, s);
  return kind < 3 ? draw_convolution(state, s, 0) : kind < 5 ? draw_convolution(state, s, 1) : draw_pooling(state, s);
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
    tensor_make(&r->tensors[i], s->dtypes[i], 4, s->result);
    r->outputs[i] = r->tensors[i].operand;
    r->outputs[i].unused = s->unread[i];
    if (s->unread[i]) r->outputs[i].data = NULL;
  }
  r->call = (flow_call){
    .op = s->op,
    .attributes = &s->attributes,
    .input_count = s->input_count,
    .output_count = s->output_count,
    .inputs = r->inputs,
    .outputs = r->outputs,
    .exact = s->exact
  };
}

static void free_results(const sample *s, results *r)
{
  for (int i = 0; i < s->output_count; i++) tensor_free(&r->tensors[i]);
}

/* Each piece sees scratch memory full of NaN, with guards around what the kernel asked for. */
static void run_pieces(const flow_kernel *kernel, flow_call *call, int64_t pieces, uint32_t *state)
{
  part_order order = draw_order(state, pieces);
  for (int64_t i = 0; i < pieces; i++) {
    guarded scratch;
    call->scratch = guarded_alloc(&scratch, kernel->scratch_bytes ? kernel->scratch_bytes(call) : 0);
    assert_int_equal(kernel->run_piece(call, (order.start + i * order.step) % pieces), FLOW_OK);
    guarded_check_and_free(&scratch);
  }
}

/* Returns how many pieces there were. */
static int64_t check_kernel(const flow_kernel *kernel, const sample *s, const char *isa, int number, uint32_t *state)
{
  results whole, cut;
  guarded shared, scratch;
  make_results(s, &whole);
  make_results(s, &cut);
  whole.call.shared = cut.call.shared = guarded_alloc(&shared, kernel->shared_bytes ? kernel->shared_bytes(&whole.call) : 0);
  whole.call.scratch = guarded_alloc(&scratch, kernel->scratch_bytes ? kernel->scratch_bytes(&whole.call) : 0);
  if (kernel->prepare) assert_int_equal(kernel->prepare(&whole.call), FLOW_OK);
  assert_int_equal(kernel->run(&whole.call, 0, 0, 1), FLOW_OK);
  guarded_check_and_free(&scratch);
  int64_t pieces = kernel->pieces(&cut.call);
  assert_true(pieces > 0);
  run_pieces(kernel, &cut.call, pieces, state);
  for (int i = 0; i < s->output_count; i++)
    if (memcmp(whole.tensors[i].operand.data, cut.tensors[i].operand.data, whole.tensors[i].memory.bytes) != 0)
      fail_msg("case %d, %s %s of %s: output %d in %lld pieces differs", number, isa, kernel->variant, flow_op(s->op)->name, i,
               (long long)pieces);
  guarded_check_and_free(&shared);
  free_results(s, &whole);
  free_results(s, &cut);
  return pieces;
}

static void pieces_do_not_change_a_bit(void **state)
{
  (void)state;
  int count = case_count(500), cut = 0, runs = 0;
  uint32_t random = 7;
  for (int number = 0; number < count; number++) {
    sample s;
    int drawn = draw_sample(&random, &s);
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0] && drawn; i++) {
      const flow_device *device = flow_cpu_device_for(test_isas[i]);
      results r;
      make_results(&s, &r);
      for (const flow_kernel *kernel = device ? device->kernels[s.op] : NULL; kernel && kernel->run; kernel++)
        if (kernel->pieces && (!kernel->supports || kernel->supports(&r.call))) {
          runs++;
          cut += check_kernel(kernel, &s, test_isas[i], number, &random) > 1;
        }
      free_results(&s, &r);
    }
    for (int i = 0; i < s.input_count; i++) tensor_free(&s.inputs[i]);
  }
  assert_true(runs > count / 2);
  assert_true(cut > runs / 8);
}

/* Runs a kernel over the whole call; the results are the caller's to free. */
static void run_whole(const flow_kernel *kernel, const sample *s, results *r)
{
  guarded shared, scratch;
  make_results(s, r);
  r->call.shared = guarded_alloc(&shared, kernel->shared_bytes ? kernel->shared_bytes(&r->call) : 0);
  r->call.scratch = guarded_alloc(&scratch, kernel->scratch_bytes ? kernel->scratch_bytes(&r->call) : 0);
  if (kernel->prepare) assert_int_equal(kernel->prepare(&r->call), FLOW_OK);
  assert_int_equal(kernel->run(&r->call, 0, 0, 1), FLOW_OK);
  guarded_check_and_free(&scratch);
  guarded_check_and_free(&shared);
}

/* Numbers of few bits, whose sums are exact in any order. */
static void variants_agree(int draw_one(uint32_t *state, sample *s))
{
  int count = case_count(100), runs = 0;
  uint32_t random = 11;
  for (int number = 0; number < count; number++) {
    sample s;
    memset(&s, 0, sizeof s);
    int drawn = draw_one(&random, &s);
    for (int i = 0; i < s.input_count; i++) tensor_fill_exact(&s.inputs[i], &random);
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0] && drawn; i++) {
      const flow_device *device = flow_cpu_device_for(test_isas[i]);
      const flow_kernel *kernel = device ? device->kernels[s.op] : NULL, *plain = kernel;
      results expected, found;
      if (!kernel) continue;
      while (strcmp(plain->variant, "plain") != 0) plain++;
      run_whole(plain, &s, &expected);
      for (; kernel != plain; kernel++) {
        if (strcmp(kernel->variant, "winograd") == 0 || (kernel->supports && !kernel->supports(&expected.call))) continue;
        run_whole(kernel, &s, &found);
        if (memcmp(found.tensors[0].operand.data, expected.tensors[0].operand.data, expected.tensors[0].memory.bytes) != 0)
          fail_msg("case %d: %s and plain of %s differ", number, kernel->variant, test_isas[i]);
        runs++;
        free_results(&s, &found);
      }
      free_results(&s, &expected);
    }
    for (int i = 0; i < s.input_count; i++) tensor_free(&s.inputs[i]);
  }
  assert_true(runs > count / 2);
}

static void separable_variants_agree(void **state)
{
  (void)state;
  variants_agree(draw_separable);
}

static void sum_variants_agree(void **state)
{
  (void)state;
  variants_agree(draw_sum);
}

/* How many pieces a call without images has may be asked, too: none divides by their number. */
static void calls_without_images(void **state)
{
  (void)state;
  for (int kernel_size = 1; kernel_size <= 3; kernel_size += 2) {
    sample s = { .op = FLOW_OP_convolution, .output_count = 2, .result = { 0, 9 - kernel_size, 9 - kernel_size, 16 } };
    uint32_t random = 7;
    s.dtypes[0] = FLOW_FLOAT32, s.dtypes[1] = FLOW_UINT8, s.unread[1] = 1;
    s.attributes.convolution.stride[0] = s.attributes.convolution.stride[1] = 1;
    s.attributes.convolution.dilation[0] = s.attributes.convolution.dilation[1] = 1;
    add_input(&s, &random, FLOW_FLOAT32, 4, (int64_t[]){ 0, 8, 8, 16 });
    add_input(&s, &random, FLOW_FLOAT32, 4, (int64_t[]){ kernel_size, kernel_size, 16, 16 });
    for (size_t i = 0; i < sizeof test_isas / sizeof test_isas[0]; i++) {
      const flow_device *device = flow_cpu_device_for(test_isas[i]);
      results r;
      make_results(&s, &r);
      for (const flow_kernel *kernel = device ? device->kernels[s.op] : NULL; kernel && kernel->run; kernel++)
        if (kernel->pieces && (!kernel->supports || kernel->supports(&r.call))) assert_true(kernel->pieces(&r.call) >= 0);
      free_results(&s, &r);
    }
    for (int i = 0; i < s.input_count; i++) tensor_free(&s.inputs[i]);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(pieces_do_not_change_a_bit), cmocka_unit_test(separable_variants_agree),
                                      cmocka_unit_test(sum_variants_agree), cmocka_unit_test(calls_without_images) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
