/* table.c: the rules of ops, made from rules.def. */
#include "onnx/onnx.h"

static const flow_onnx_record records[FLOW_OP_COUNT] = {
#define FLOW_ONNX(op, rule_, type_) [FLOW_OP_##op] = { .rule = flow_onnx_##rule_, .type = type_ },
#define FLOW_ONNX_READS(op, rule_, type_, reads_) [FLOW_OP_##op] = { .rule = flow_onnx_##rule_, .type = type_, .reads = reads_ },
#include "onnx/rules.def"
};

const flow_onnx_record *flow_onnx_of(int op) { return &records[op]; }

int flow_onnx_knows(int op) { return op >= 0 && op < FLOW_OP_COUNT && records[op].rule != NULL; }
