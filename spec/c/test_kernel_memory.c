/* test_kernel_memory.c: a kernel that was given memory for a number of rows may run on any smaller one, since the last chunk of a slot and
 * the last batch of an epoch are smaller: the memory that it asks for never shrinks with more rows. */
#include "kernel_runner.h"

enum { CASES = 300, MOST_ROWS = 70 };

static uint32_t next_bits(uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static int draw(uint32_t *state, int low, int high) { return low + (int)(next_bits(state) % (uint32_t)(high - low + 1)); }

static flow_operand described(int dtype, int rank, const int64_t *shape)
{
  flow_operand x = { .dtype = dtype, .rank = rank };
  memcpy(x.shape, shape, sizeof(int64_t) * (size_t)rank);
  flow_contiguous_strides(rank, x.shape, x.strides);
  return x;
}

/* Asks all kernels that support the call for 1 to MOST_ROWS rows. rows: what inputs and outputs (after them) carry rows, as a mask. */
static void check_growth(flow_call *call, unsigned rows)
{
  for_each_kernel(kernel, call->op) {
    size_t shared = 0, scratch = 0;
    for (int64_t n = 1; n <= MOST_ROWS; n++) {
      for (int i = 0; i < call->input_count; i++)
        if (rows >> i & 1) call->inputs[i].shape[0] = n;
      for (int i = 0; i < call->output_count; i++)
        if (rows >> (call->input_count + i) & 1) call->outputs[i].shape[0] = n;
      if (kernel->supports && !kernel->supports(call)) break;
      size_t now_shared = kernel->shared_bytes ? kernel->shared_bytes(call) : 0;
      size_t now_scratch = kernel->scratch_bytes ? kernel->scratch_bytes(call) : 0;
      if (now_shared < shared || now_scratch < scratch)
        fail_msg("%s %s: %lld rows take %zu and %zu bytes, one fewer %zu and %zu", flow_op(call->op)->name, kernel->variant, (long long)n,
                 now_shared, now_scratch, shared, scratch);
      shared = now_shared;
      scratch = now_scratch;
    }
  }
}

static void convolutions_take_no_more_for_fewer_rows(void **state)
{
  (void)state;
  uint32_t bits = 20261u;
  for (int number = 0; number < CASES; number++) {
    flow_attributes attributes = { 0 };
    int side = number % 4 == 0 ? 1 : draw(&bits, 1, 5), stride = number % 3 == 0 ? draw(&bits, 1, 2) : 1, padding = side / 2;
    int64_t in = draw(&bits, 1, 48), out = draw(&bits, 1, 48), height = draw(&bits, side, 40), width = draw(&bits, side, 40);
    int pooled = number % 2, depthwise = number % 5 == 0;
    if (depthwise) out = in;
    int64_t size[2] = { height, width }, result[2];
    for (int axis = 0; axis < 2; axis++) {
      attributes.convolution.stride[axis] = stride;
      attributes.convolution.dilation[axis] = 1;
      attributes.convolution.padding[2 * axis] = attributes.convolution.padding[2 * axis + 1] = padding;
      attributes.convolution.input_size[axis] = (int32_t)size[axis];
      result[axis] = (size[axis] + 2 * padding - side) / stride + 1;
      if (result[axis] < 2) pooled = 0;
    }
    for (int axis = 0; axis < 2 && pooled; axis++) {
      attributes.convolution.pool[axis] = attributes.convolution.pool_stride[axis] = 2;
      result[axis] /= 2;
    }
    attributes.convolution.groups = depthwise ? (int32_t)in : 1;
    attributes.convolution.activation = draw(&bits, 0, 1) ? FLOW_RELU : FLOW_LINEAR;
    attributes.convolution.has_bias = 1;
    const int64_t x[4] = { 1, height, width, in }, w[4] = { side, side, depthwise ? 1 : in, out }, none[1] = { 0 };
    const int64_t y[4] = { 1, result[0], result[1], out };
    flow_operand forward[3] = { described(FLOW_FLOAT32, 4, x), described(FLOW_FLOAT32, 4, w), described(FLOW_FLOAT32, 1, &out) };
    flow_operand index = pooled ? described(FLOW_UINT8, 4, y) : described(FLOW_UINT8, 1, none);
    flow_operand outputs[2] = { described(FLOW_FLOAT32, 4, y), index }, gradients[3] = { forward[0], forward[1], forward[2] };
    flow_operand backward[5] = { outputs[0], forward[0], forward[1], outputs[0], index };
    for (int exact = 0; exact < 2; exact++) {
      flow_call call = call_of(FLOW_OP_convolution, &attributes, forward, 3, outputs, 2);
      call.exact = exact;
      check_growth(&call, pooled ? 0x19u : 0x9u);
      call = call_of(FLOW_OP_convolution_gradient, &attributes, backward, 5, gradients, 3);
      call.exact = exact;
      check_growth(&call, pooled ? 0x3bu : 0x2bu);
    }
  }
}

static void products_take_no_more_for_fewer_rows(void **state)
{
  (void)state;
  uint32_t bits = 99u;
  for (int number = 0; number < CASES; number++) {
    const int64_t k = draw(&bits, 1, 20000), n = draw(&bits, 1, 700);
    const int64_t a[2] = { 1, k }, turned[2] = { n, k }, b[2] = { k, n }, c[2] = { 1, n };
    for (int transposed = 0; transposed < 2; transposed++) {
      flow_attributes attributes = { .matmul = { .transpose_b = transposed } };
      flow_operand inputs[2] = { described(FLOW_FLOAT32, 2, a), described(FLOW_FLOAT32, 2, transposed ? turned : b) };
      flow_operand output = described(FLOW_FLOAT32, 2, c);
      for (int exact = 0; exact < 2; exact++) {
        flow_call call = call_of(FLOW_OP_matmul, &attributes, inputs, 2, &output, 1);
        call.exact = exact;
        check_growth(&call, 0x5u);
      }
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(convolutions_take_no_more_for_fewer_rows),
    cmocka_unit_test(products_take_no_more_for_fewer_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
