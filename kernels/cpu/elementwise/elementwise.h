/* elementwise.h: block functions and the programs that are made of them.
 *
 * Every elementwise op is a block function: out[i] = op(a[i], b[i], c[i]) over n packed elements of one kind (convert.h).
 * A program is a list of block functions over registers, blocks of a few hundred elements that stay in the first-level
 * cache. flow_cpu_*_run_program walks the output in tiles: it loads the operands' tiles into registers (in place when
 * they are already packed in the register's kind), runs the steps and stores the results. One op is a program of one
 * step, a cast is a program without any; a fused chain of ops is a longer one. */
#ifndef FLOW_CPU_ELEMENTWISE_ELEMENTWISE_H
#define FLOW_CPU_ELEMENTWISE_ELEMENTWISE_H

#include "cpu/movement/convert.h"

/* Operands the op does not have are NULL. out may be a, b or c. */
typedef void (*flow_block_function)(const void *a, const void *b, const void *c, void *out, int64_t n);

typedef struct flow_block_record {
  int                 operands;                    /* 0: not an elementwise op */
  int                 condition_operands;          /* the first this many operands are of kind BOOL, whatever their dtype */
  int                 gives_condition;             /* the result is of kind BOOL */
  flow_block_function function[FLOW_KIND_COUNT];   /* by the kind computed in (BOOL: all operands are conditions); NULL: not there */
} flow_block_record;

/* The record of an op; its `operands` is 0 for ops that are not elementwise. */
const flow_block_record *FLOW_ISA_NAME(block_record)(int op);
/* The block function of an op for a kind, NULL if there is none. */
flow_block_function FLOW_ISA_NAME(block)(int op, int kind);

/* 512 elements take 2 to 4 KB: the registers of a usual chain fit into the first-level cache, and a call's overhead is spread over enough
 * elements. */
enum {
  FLOW_BLOCK_LENGTH = 512,                  /* elements of a register */
  FLOW_BLOCK_BYTES = FLOW_BLOCK_LENGTH * 8, /* bytes of a register of any kind */
  FLOW_BLOCK_REGISTERS = 44,
  FLOW_BLOCK_STEPS = 32
};

/* One function call of a program, over all elements of the registers. */
typedef struct flow_block_step {
  flow_block_function function;
  uint8_t             inputs[3], output;    /* registers; inputs that the function does not read are 0 */
} flow_block_step;

/* Register i < input_count holds input i and is not written by steps; register outputs[i] is stored as output i. An
 * input register that is an output too is a plain conversion: their dtypes differ. */
typedef struct flow_block_program {
  int             register_count, input_count, output_count, step_count;
  uint8_t         kinds[FLOW_BLOCK_REGISTERS];
  uint8_t         outputs[FLOW_MAX_OPERANDS];
  flow_block_step steps[FLOW_BLOCK_STEPS];
} flow_block_program;

/* The kind of a dtype, of which that of integers is the narrowest that holds them. */
static inline flow_kind flow_word_kind_of(int dtype)
{
  flow_kind kind = flow_kind_of(dtype);
  return kind == FLOW_KIND_INTEGER && dtype != FLOW_INT64 ? FLOW_KIND_WORD : kind;
}

/* Runs the program for all elements of the outputs, which have one shape; inputs broadcast to it as in NumPy. All
 * strides are allowed. buffers: register_count * FLOW_BLOCK_BYTES, 64-byte aligned. input_count + output_count is at
 * most FLOW_MAX_OPERANDS. An output may be the memory of an input if both have the same layout and dtype and no step
 * after the one that makes the output reads that input. */
void FLOW_ISA_NAME(run_program)(const flow_block_program *program, const flow_operand *inputs, const flow_operand *outputs, void *buffers);

#endif
