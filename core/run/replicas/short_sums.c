/* short_sums.c: gradients that travel to the other workers as 16-bit floats (exchange.h: gradient_dtype). What the rounding takes away from
 * a gradient is added to that of the next step, so that in the long run nothing is lost: Karimireddy et al., "Error feedback fixes SignSGD
 * and other gradient compression schemes", ICML 2019, algorithm 1. All workers have the sum as it came back, with the same bits. */
#include <math.h>

#include "run/replicas/replica_set.h"
#include "transport/group_sum.h"

/* Gradients are packed into buckets (core/train/gradient_buckets.c), and nothing else is that is summed. */
static int is_bucket(const flow_instance *lead, int segment)
{
  const flow_graph *graph = lead->plan->graph;
  const flow_node *sum = &graph->nodes[lead->entries[lead->plan->segments[segment].first].node];
  const flow_value *operand = &graph->values[sum->inputs[0]];
  return sum->op == FLOW_OP_all_reduce && operand->kind == FLOW_VALUE_RESULT && graph->nodes[operand->node].op == FLOW_OP_pack;
}

/* `rest` and `rounded` are one block, freed by flow_release_sums. count: elements. */
flow_status flow_shorten_sum(const flow_replica_set *set, const flow_exchange *exchange, int segment, int64_t count)
{
  flow_worker_sum *sum = &set->sums[segment];
  void *block;
  if (exchange->gradient_dtype == FLOW_FLOAT32 || !is_bucket(set->lead, segment)) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(((size_t)count + 1) * (sizeof(float) + sizeof(uint16_t)), &block));
  sum->rest = block;
  sum->rounded = (uint16_t *)(sum->rest + count);
  return FLOW_OK;
}

/* rounded = short(gradient + rest), rest = (gradient + rest) - rounded: what the rounding took away goes into the next step. */
void flow_round_sum(const flow_worker_sum *sum, int dtype, const float *gradients, int64_t count)
{
  for (int64_t i = 0; i < count; i++) {
    float value = gradients[i] + sum->rest[i];
    sum->rounded[i] = flow_float_to_short(dtype, value);
    float rest = value - flow_short_to_float(dtype, sum->rounded[i]);
    sum->rest[i] = isfinite(rest) ? rest : 0;      /* a step that overflows is not to spoil the next */
  }
}

void flow_widen_sum(const flow_worker_sum *sum, int dtype, float *gradients, int64_t count)
{
  for (int64_t i = 0; i < count; i++) gradients[i] = flow_short_to_float(dtype, sum->rounded[i]);
}
