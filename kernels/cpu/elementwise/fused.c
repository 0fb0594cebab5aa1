/* fused.c: a chain of float32 elementwise ops in one pass over memory: the steps of the attributes become a block program
 * (elementwise.h), whose registers stay in the first-level cache. Each step runs the same block function as the op alone,
 * so fused and unfused results are equal to the bit. */
#include "cpu/elementwise/elementwise.h"

static int registers_of(const flow_call *call) { return call->input_count + call->attributes->fused.count; }

static size_t fused_scratch(const flow_call *call) { return (size_t)registers_of(call) * FLOW_BLOCK_BYTES; }

static flow_status run_fused(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  int steps = call->attributes->fused.count;
  flow_block_program program = { .register_count = registers_of(call), .input_count = call->input_count, .output_count = 1,
                                 .step_count = steps };
  for (int r = 0; r < program.register_count; r++) program.kinds[r] = FLOW_KIND_FLOAT;
  for (int s = 0; s < steps; s++) {
    program.steps[s].function = FLOW_ISA_NAME(block)(call->attributes->fused.steps[s].op, FLOW_KIND_FLOAT);
    program.steps[s].output = (uint8_t)(call->input_count + s);
    memcpy(program.steps[s].inputs, call->attributes->fused.steps[s].inputs, sizeof program.steps[s].inputs);
  }
  program.outputs[0] = (uint8_t)(call->input_count + steps - 1);
  FLOW_ISA_NAME(run_program)(&program, call->inputs, call->outputs, call->scratch);
  return FLOW_OK;
}

const flow_kernel FLOW_KERNELS(fused)[] = { { .variant = "blocks", .scratch_bytes = fused_scratch, .run = run_fused }, { 0 } };
