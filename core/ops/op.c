/* op.c: the table of op records, made from ops.def, and the questions about ops that the C API answers. */
#include "ops/op.h"

#include <string.h>

#include "ops/short_words.h"

static const flow_op_record records[FLOW_OP_COUNT] = {
#define FLOW_OP(name, inputs, outputs, kind, flags, shape, gradient, kind_rule, doc) \
  { #name, inputs, outputs, kind, flags, doc },
#include "ops/ops.def"
#undef FLOW_OP
};

const flow_op_record *flow_op(int op) { return &records[op]; }

static int op_exists(int op) { return op >= 0 && op < FLOW_OP_COUNT; }

int flow_op_count(void) { return FLOW_OP_COUNT; }

/* By comparing with each name: callers look numbers up once and keep them. The functions below answer for a number from outside;
 * flow_op, above, does not check. */
int flow_op_find(const char *name)
{
  if (name == NULL) return -1;
  for (int op = 0; op < FLOW_OP_COUNT; op++) {
    if (strcmp(records[op].name, name) == 0) return op;
  }
  return -1;
}

const char *flow_op_name(int op) { return op_exists(op) ? records[op].name : NULL; }

const char *flow_op_doc(int op) { return op_exists(op) ? records[op].doc : NULL; }

int flow_op_outputs(int op) { return op_exists(op) ? records[op].outputs : -1; }

/* Gradients and parts of activations are elementwise, too, but no ops that users call: the columns of ops.def for them are left out
 * here. */
int flow_op_elementwise(int op)
{
  static const unsigned char inputs_of[FLOW_OP_COUNT] = {
#define FLOW_NUMBERS(name, inputs, ...)   [FLOW_OP_##name] = inputs,
#define FLOW_FLOATS(name, inputs, ...)    [FLOW_OP_##name] = inputs,
#define FLOW_CONDITION(name, inputs, doc) [FLOW_OP_##name] = inputs,
#define FLOW_LOGICAL(name, inputs, doc)   [FLOW_OP_##name] = inputs,
#define FLOW_GRADIENT(...)
#define FLOW_FLOAT_PART(...)
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
  };
  return op_exists(op) ? inputs_of[op] : 0;
}

int flow_op_gives_condition(int op)
{
  static const unsigned char gives[FLOW_OP_COUNT] = {
#define FLOW_CONDITION(name, ...) [FLOW_OP_##name] = 1,
#define FLOW_LOGICAL(name, ...) [FLOW_OP_##name] = 2,
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
  };
  return op_exists(op) ? gives[op] : 0;
}

int flow_op_reduction(int op)
{
  static const unsigned char reductions[FLOW_OP_COUNT] = {
    [FLOW_OP_sum] = 1,
#define FLOW_REDUCTION(name, ...) [FLOW_OP_##name] = 1,
#define FLOW_OP(...)
#include "ops/ops.def"
#undef FLOW_OP
  };
  return op_exists(op) && reductions[op];
}
