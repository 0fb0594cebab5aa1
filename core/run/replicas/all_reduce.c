/* all_reduce.c: what COLLECTIVE entries add up: over the replicas of this process by the members of the region, over the workers by the
 * exchange. Small sums travel together: each alone would wait for the network as long as a large one. Which ones do follows from the
 * plan, so that all workers do the same. */
#include <string.h>

#include "run/device/all_reduce_by_host.h"
#include "tensor/pairwise.h"

enum { SMALL = 1024 };       /* elements */

/* ---- replicas of this process -------------------------------------------------------------------------------------------------------- */

/* Where an operand of a sum lies: that of a device was copied to the host. */
static char *operand_of(const flow_instance *replica, int segment, int root)
{
  return replica->sums ? flow_device_sum(replica->sums, segment) : replica->bases[root];
}

void flow_add_replicas(flow_instance *lead, int segment, int member, int members)
{
  enum { GRAIN = 1024 };
  const flow_entry *e = &lead->entries[lead->plan->segments[segment].first];
  if (flow_is_gather(lead, segment)) {
    flow_gather_replicas(lead, segment, member, members);
    return;
  }
  int x = e->bindings[0].root, y = e->bindings[1].root;
  const flow_signature *s = &lead->plan->graph->values[e->bindings[1].value].signature;
  int64_t size = (int64_t)(flow_value_bytes(s, lead->rows) / (size_t)flow_dtype_size(s->dtype)), share = (size + members - 1) / members;
  share = (share + GRAIN - 1) / GRAIN * GRAIN;
  int64_t begin = share * member < size ? share * member : size, end = begin + share < size ? begin + share : size;
  const void *parts[FLOW_MOST_REPLICAS];
  for (int r = 0; r < lead->replica_count; r++) parts[r] = operand_of(lead->replicas[r], segment, x) + begin * flow_dtype_size(s->dtype);
  flow_add_pairwise(s->dtype, parts, lead->replica_count, operand_of(lead, segment, y) + begin * flow_dtype_size(s->dtype), end - begin);
}

/* ---- workers ------------------------------------------------------------------------------------------------------------------------- */

static const flow_binding *sum_of(const flow_instance *lead, int segment)
{
  return &lead->entries[lead->plan->segments[segment].first].bindings[1];
}

static char *data_of(const flow_instance *lead, int segment) { return operand_of(lead, segment, sum_of(lead, segment)->root); }

static int64_t count_of(const flow_instance *lead, int segment, int *dtype)
{
  const flow_signature *s = &lead->plan->graph->values[sum_of(lead, segment)->value].signature;
  *dtype = s->dtype;
  return (int64_t)(flow_value_bytes(s, 1) / (size_t)flow_dtype_size(s->dtype));
}

flow_status flow_stage_sums(flow_instance *lead)
{
  void *block;
  int64_t total = 0;
  for (int s = 0; s < lead->plan->segment_count; s++) {
    flow_stage *stage = &lead->stages[s];
    int dtype;
    stage->staged = -1;
    if (!stage->collective || flow_is_gather(lead, s)) continue;
    int64_t count = count_of(lead, s, &dtype);
    if (dtype != FLOW_FLOAT32 || count > SMALL) continue;
    stage->staged = total;
    total += count;
  }
  FLOW_TRY(flow_alloc(sizeof(float) * (size_t)(total + 1), &block));
  lead->staged = block;
  return FLOW_OK;
}

void flow_start_sums(flow_instance *lead)
{
  lead->newest_sum = -1;
  lead->staged_begin = lead->staged_end = 0;
  lead->gathers_taken = 0;
}

static void begin(flow_instance *lead, int dtype, void *data, int64_t count, int64_t *ticket)
{
  flow_status status = lead->exchange->begin(lead->exchange, dtype, data, count, ticket);
  if (status != FLOW_OK) flow_failure_take(&lead->verdict, status);
  else lead->newest_sum = *ticket;
}

void flow_send_sum(flow_instance *lead, int segment)
{
  flow_stage *stage = &lead->stages[segment];
  int dtype;
  int64_t count = count_of(lead, segment, &dtype);
  char *data = data_of(lead, segment);
  if (flow_failure_is_set(&lead->verdict)) return;
  if (flow_is_gather(lead, segment)) {      /* when it is needed: it would make workers wait for one another now */
    stage->ticket = lead->newest_sum;
    return;
  }
  if (stage->staged < 0) {
    begin(lead, dtype, data, count, &stage->ticket);
    return;
  }
  memcpy(lead->staged + stage->staged, data, sizeof(float) * (size_t)count);
  if (lead->staged_begin == lead->staged_end) lead->staged_begin = stage->staged;
  lead->staged_end = stage->staged + count;
}

static void take_staged(flow_instance *lead)
{
  int dtype;
  for (int s = 0; s < lead->plan->segment_count; s++) {
    const flow_stage *stage = &lead->stages[s];
    if (!stage->collective || stage->staged < lead->staged_begin || stage->staged >= lead->staged_end) continue;
    memcpy(data_of(lead, s), lead->staged + stage->staged, sizeof(float) * (size_t)count_of(lead, s, &dtype));
  }
  lead->staged_begin = lead->staged_end;
}

void flow_receive_sums(flow_instance *lead, int segment)
{
  int64_t ticket = lead->stages[segment].ticket;
  int flush = lead->staged_begin < lead->staged_end;
  if (flush && !flow_failure_is_set(&lead->verdict))
    begin(lead, FLOW_FLOAT32, lead->staged + lead->staged_begin, lead->staged_end - lead->staged_begin, &ticket);
  /* Of a failed run nothing may be under way. */
  if (lead->stages[segment].staged >= 0 || flush || flow_failure_is_set(&lead->verdict)) ticket = lead->newest_sum;
  if (lead->newest_sum >= 0) {
    flow_status status = lead->exchange->finish(lead->exchange, ticket);
    if (status != FLOW_OK) flow_failure_take(&lead->verdict, status);
    else if (flush) take_staged(lead);
  }
  if (segment < lead->gathers_taken) return;
  flow_gather_workers(lead, lead->gathers_taken, segment + 1);
  lead->gathers_taken = segment + 1;
}
