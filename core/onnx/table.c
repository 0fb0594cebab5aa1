/* table.c: finds the rule of an op in the tables of elementwise.c, movement.c, network.c and recurrent.c. */
#include "onnx/onnx.h"

/* A search through all records, about a hundred: an export makes two for each node. */
const flow_onnx_record *flow_onnx_of(int op)
{
  const flow_onnx_record *const tables[] = { flow_onnx_elementwise, flow_onnx_movement, flow_onnx_network, flow_onnx_recurrent };
  for (int i = 0; i < 4; i++) {
    for (const flow_onnx_record *record = tables[i]; record->rule; record++) {
      if (record->op == op) return record;
    }
  }
  return NULL;
}

int flow_onnx_knows(int op)
{
  return flow_onnx_of(op) != NULL;
}
