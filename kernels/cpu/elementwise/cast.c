/* cast.c: casts, which are block programs without a step: what loads and stores elements converts them. */
#include "cpu/elementwise/elementwise.h"
#include "cpu/movement/movement.h"

/* A cast loads and stores, without a step between. It passes through the kind of its input, but for small integers on
 * their way to floats: float holds them exactly and converts faster. */
static void cast_operand(const flow_operand *in, const flow_operand *out)
{
  if (!out->data) return;
  if (in->dtype == out->dtype) {
    FLOW_ISA_NAME(copy_operand)(in, out);
    return;
  }
  flow_kind kind = flow_word_kind_of(in->dtype);
  if (kind == FLOW_KIND_WORD && (out->dtype == FLOW_INT64 || flow_dtype_size(in->dtype) == 1)) kind = flow_word_kind_of(out->dtype);
  if (out->dtype == FLOW_BOOL) kind = FLOW_KIND_BOOL;
  /* One register, which is input and output: run_program only converts. */
  flow_block_program program = { .register_count = 1, .input_count = 1, .output_count = 1, .kinds = { (uint8_t)kind } };
  _Alignas(64) char buffer[FLOW_BLOCK_BYTES];
  FLOW_ISA_NAME(run_program)(&program, in, out, buffer);
}

/* A part is an output. */
static int64_t cast_parts(const flow_call *call, int phase)
{
  (void)phase;
  return call->output_count;
}

/* Part i is operand i, as a whole: cast has one, casts as many as it has outputs. */
static flow_status run_casts(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  for (int64_t i = begin; i < end; i++) cast_operand(&call->inputs[i], &call->outputs[i]);
  return FLOW_OK;
}
/* cast is MAP, and the engine cuts it by rows; casts and transpose_filters are WHOLE and have a part for each output. */
const flow_kernel FLOW_KERNELS(cast)[] = { { .variant = "blocks", .run = run_casts }, { 0 } };

/* A transposed kernel is the same memory with its axes in another order. */
static flow_status run_transpose_filters(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase;
  int first = call->attributes->transpose_filters.back ? 1 : 3;
  for (int64_t i = begin; i < end; i++) {
    flow_operand transposed = call->inputs[i];
    for (int axis = 0; axis < 4; axis++) {
      transposed.shape[axis] = call->inputs[i].shape[(first + axis) % 4];
      transposed.strides[axis] = call->inputs[i].strides[(first + axis) % 4];
    }
    cast_operand(&transposed, &call->outputs[i]);
  }
  return FLOW_OK;
}
const flow_kernel FLOW_KERNELS(transpose_filters)[] = { { .variant = "blocks", .parts = cast_parts, .run = run_transpose_filters }, { 0 } };
const flow_kernel FLOW_KERNELS(casts)[] = { { .variant = "blocks", .parts = cast_parts, .run = run_casts }, { 0 } };
