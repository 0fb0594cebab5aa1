/* fused.c: a chain of elementwise ops of float32, or of float64, in one pass over memory: the steps of the attributes become a block
 * program (elementwise.h), whose registers stay in the first-level cache; conditions are registers of bytes. Each step
 * runs the same block function as the op alone, so fused and unfused results are equal to the bit. */
#include "cpu/elementwise/elementwise.h"
#include "cpu/outer_pieces.h"

/* A register for each input and each step, which is the most that a chain needs: 12 + 32, FLOW_BLOCK_REGISTERS. */
static int registers_of(const flow_call *call) { return call->input_count + call->attributes->fused.count; }

static size_t fused_scratch(const flow_call *call) { return (size_t)registers_of(call) * FLOW_BLOCK_BYTES; }

/* Which register holds each step's result: one whose result no later step reads is taken again, so that few of them stay in the cache. The
 * last one is its own: it may be the output's memory, and that an input's. Returns how many registers there are, with those of inputs. */
static int allocate_registers(const flow_call *call, uint8_t *register_of)
{
  int inputs = call->input_count, steps = call->attributes->fused.count, count = inputs, free_count = 0;
  uint8_t last_reader[FLOW_BLOCK_STEPS] = { 0 }, free_registers[FLOW_BLOCK_STEPS];
  for (int s = 0; s < steps; s++) {
    const uint8_t *from = call->attributes->fused.steps[s].inputs;
    for (int i = 0; i < 3; i++)
      if (from[i] >= inputs) last_reader[from[i] - inputs] = (uint8_t)s;
  }
  for (int s = 0; s < steps; s++) {
    /* A step may write what it reads, but not where conditions are bytes of what numbers are. */
    const int op = call->attributes->fused.steps[s].op, shares = !flow_op_gives_condition(op) && op != FLOW_OP_where;
    const int before = free_count;
    for (int made = 0; made < s; made++)
      if (last_reader[made] == s) free_registers[free_count++] = register_of[made];
    if (s < steps - 1 && (shares ? free_count : before) > 0) {
      const int from = shares ? free_count - 1 : before - 1;
      register_of[s] = free_registers[from];
      free_registers[from] = free_registers[--free_count];
    } else {
      register_of[s] = (uint8_t)count++;
    }
  }
  return count;
}

/* All inputs are of one dtype, but for conditions. */
static flow_kind kind_of_numbers(const flow_call *call)
{
  int first = 0;
  while (call->inputs[first].dtype == FLOW_BOOL) first++;
  return flow_kind_of(call->inputs[first].dtype);
}

/* Steps are numbered after the inputs: value v of the attributes is input v, or the result of step v - input_count. The program is built
 * at every call, on the stack: the op may run on several threads at once, each with its chunk of rows. */
static flow_status run_fused(const flow_call *call, int phase, int64_t begin, int64_t end)
{
  (void)phase, (void)begin, (void)end;
  int steps = call->attributes->fused.count;
  uint8_t register_of[FLOW_BLOCK_STEPS];
  flow_block_program program = { .register_count = allocate_registers(call, register_of), .input_count = call->input_count,
                                 .output_count = 1, .step_count = steps };
  const flow_kind kind = kind_of_numbers(call);
  for (int r = 0; r < program.register_count; r++) program.kinds[r] = (uint8_t)kind;
  for (int i = 0; i < call->input_count; i++)
    if (call->inputs[i].dtype == FLOW_BOOL) program.kinds[i] = FLOW_KIND_BOOL;
  if (call->outputs[0].dtype == FLOW_BOOL) program.kinds[register_of[steps - 1]] = FLOW_KIND_BOOL;
  for (int s = 0; s < steps; s++) {
    const int op = call->attributes->fused.steps[s].op;
    const flow_block_record *record = FLOW_ISA_NAME(block_record)(op);
    program.steps[s].function = FLOW_ISA_NAME(block)(op, record->condition_operands == record->operands ? FLOW_KIND_BOOL : kind);
    program.steps[s].output = register_of[s];
    for (int i = 0; i < 3; i++) {
      int from = call->attributes->fused.steps[s].inputs[i];
      program.steps[s].inputs[i] = from < call->input_count ? (uint8_t)from : register_of[from - call->input_count];
    }
  }
  program.outputs[0] = register_of[steps - 1];
  FLOW_ISA_NAME(run_program)(&program, call->inputs, call->outputs, call->scratch);
  return FLOW_OK;
}

/* A piece has its own scratch block for its registers. */
static flow_status run_piece(const flow_call *call, int64_t piece)
{
  return flow_run_outer_piece(run_fused, call, piece);
}

const flow_kernel FLOW_KERNELS(fused)[] = {
  { .variant = "blocks", .scratch_bytes = fused_scratch, .run = run_fused, .pieces = flow_outer_pieces, .run_piece = run_piece },
  { 0 },
};
