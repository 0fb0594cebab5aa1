/* plan_key.c: what tells workers that they run different things, before they add up numbers of different meaning: a key of the operations
 * of a plan, and one of the numbers that its updates read. What follows from a worker's own rows may differ. */
#include "run/replicas/plan_key.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/philox.h"
#include "graph/variable.h"
#include "tensor/tensor.h"

/* A value is known by when it is first met: the number of values that were met before it. */
static uint64_t mix_value(uint64_t key, int value, int *met, int *count)
{
  if (value < 0) return flow_mix(key, 0);
  if (met[value] == 0) met[value] = ++*count;
  return flow_mix(key, (uint64_t)met[value]);
}

/* All words of the attributes go into the key, whatever the op. */
static uint64_t mix_attributes(uint64_t key, const flow_attributes *attributes)
{
  uint64_t words[sizeof *attributes / sizeof(uint64_t)];
  memcpy(words, attributes, sizeof words);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) key = flow_mix(key, words[i]);
  return key;
}

/* The bits of a tensor; nothing of one that is on a device, where reading it would take a wait in each step. */
static uint64_t mix_bits(uint64_t key, const flow_tensor *tensor)
{
  if (!tensor || flow_tensor_place(tensor)) return key;
  size_t bytes = (size_t)flow_shape_size(tensor->rank, tensor->shape) * flow_dtype_size(tensor->dtype);
  return flow_hash(key, flow_tensor_elements(tensor), bytes);
}

/* A constant that stands in a formula, as a number or as the parameters of a schedule; a larger one may be a worker's own batch. */
static int is_parameter(const flow_node *node, const flow_value *v)
{
  return v->kind == FLOW_VALUE_CONSTANT && (v->signature.rank == 0 || node->op == FLOW_OP_schedule);
}

/* A float that all workers are to have alike. Counters are integers, and the key of a run has its step. */
static int is_shared_number(const flow_value *v)
{
  return v->kind == FLOW_VALUE_VARIABLE && v->signature.rank == 0 && v->variable->sync == FLOW_MIRRORED &&
         flow_dtype_is_float(v->signature.dtype);
}

/* own[v]: whether value v follows from what the worker was given, with no sum over the workers in between. */
static int mark(const flow_graph *graph, const flow_node *node, char *own)
{
  int follows = 0;
  for (int i = 0; i < node->input_count; i++) {
    int value = node->inputs[i];
    if (value < 0) continue;
    const flow_value *v = &graph->values[value];
    follows |= own[value] || v->kind == FLOW_VALUE_INPUT || (v->kind == FLOW_VALUE_CONSTANT && !is_parameter(node, v)) ||
               (v->kind == FLOW_VALUE_VARIABLE && v->variable->sync != FLOW_MIRRORED);
  }
  if (flow_op(node->op)->flags & (FLOW_OP_COLLECTIVE | FLOW_OP_RANDOM)) follows = !(flow_op(node->op)->flags & FLOW_OP_COLLECTIVE);
  for (int i = 0; i < node->output_count; i++) own[node->outputs[i]] = (char)follows;
  return follows;
}

/* Into the key go the ops, which values they take, the shapes of what is summed and the attributes of what is written; of what follows from
 * no worker's own rows, also constants, such as the norm that clips a summed gradient, and the attributes of ops that compute a number,
 * such as a schedule. The rest may differ: each worker has its own batch sizes. */
flow_status flow_plan_key(const flow_plan *plan, uint64_t *out, int **numbers, int *number_count)
{
  const flow_graph *graph = plan->graph;
  size_t values = (size_t)graph->value_count + 1;
  uint64_t key = 0;
  void *block, *list;
  int count = 0;
  FLOW_TRY(flow_alloc_zero((sizeof(int) + 2) * values, &block));
  flow_status status = flow_alloc_zero(sizeof(int) * values, &list);
  if (status != FLOW_OK) {
    flow_free(block);
    return status;
  }
  int *met = block, found = 0;
  char *own = (char *)(met + values), *listed = own + values;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &graph->nodes[plan->order[k]];
    const int flags = flow_op(node->op)->flags, follows = mark(graph, node, own);
    key = flow_mix(key, (uint64_t)node->op);
    int computes_number = !follows && node->input_count > 0 && node->output_count > 0 &&
                          graph->values[node->outputs[0]].signature.rank == 0;
    if ((flags & FLOW_OP_EFFECT) || computes_number) key = mix_attributes(key, &node->attributes);
    for (int i = 0; i < node->input_count; i++) {
      int value = node->inputs[i];
      key = mix_value(key, value, met, &count);
      if (follows || value < 0) continue;
      if (is_parameter(node, &graph->values[value])) key = mix_bits(key, graph->values[value].tensor);
      if (is_shared_number(&graph->values[value]) && !listed[value]) {
        listed[value] = 1;
        ((int *)list)[found++] = value;
      }
    }
    for (int i = 0; i < node->output_count; i++) {
      const flow_signature *s = &graph->values[node->outputs[i]].signature;
      key = mix_value(key, node->outputs[i], met, &count);
      for (int d = 0; d < s->rank && (flags & FLOW_OP_COLLECTIVE); d++) key = flow_mix(key, (uint64_t)s->dims[d]);
    }
  }
  flow_free(block);
  *out = key;
  *numbers = list;
  *number_count = found;
  return FLOW_OK;
}

/* In every run, so it reads scalars alone, as flow_plan_key has listed them. */
uint64_t flow_plan_numbers(const flow_plan *plan, const int *numbers, int count)
{
  uint64_t key = 0;
  for (int i = 0; i < count; i++) key = mix_bits(key, plan->graph->values[numbers[i]].variable->tensor);
  return key;
}
