/* all_reduce.c: what COLLECTIVE entries add up: over the replicas of this process by the members of the region, in the order of a
 * balanced tree (tensor/pairwise.h), then over the workers by the exchange. The order of additions follows from the numbers of replicas
 * and workers, never from which of them comes first.
 *
 * Small sums travel together: each alone would wait for the network as long as a large one. flow_send_sum copies them into `staged`, one
 * after the other; flow_receive_sums sends what has been staged since the last time as one sum (`flush`), or lets it go along with rows
 * that are gathered by message (`rides`). Which sums are small follows from the plan, and when they are received follows from the plan
 * as well, so that all workers do the same. */
#include <string.h>

#include "run/device/all_reduce_by_host.h"
#include "run/replicas/replica_set.h"
#include "tensor/pairwise.h"
#include "transport/group_sum.h"

/* Up to 8 KB: a message of that size takes about as long as an empty one, so that what counts is how many there are. */
enum { SMALL = 2048 };       /* elements */

/* ---- replicas of this process -------------------------------------------------------------------------------------------------------- */

static const flow_binding *bindings_of(const flow_instance *lead, int segment)
{
  return lead->entries[lead->plan->segments[segment].first].bindings;
}

/* Where an operand of a sum is: that of a device was copied to the host. */
static char *operand_of(const flow_instance *replica, int segment, int root)
{
  return replica->sums ? flow_device_sum(replica->sums, segment) : replica->part.bases[root];
}

/* Each member adds a range of elements, a multiple of GRAIN long, so that members write to separate cache lines and pages where the sum
 * is large. The order in which replicas are added does not depend on the ranges. */
void flow_add_replicas(const flow_replica_set *set, int segment, int member, int members)
{
  enum { GRAIN = 1024 };
  const flow_instance *lead = set->lead;
  if (flow_is_gather(lead, segment)) {
    flow_gather_replicas(set, segment, member, members);
    return;
  }
  int x = bindings_of(lead, segment)[0].root, y = bindings_of(lead, segment)[1].root;
  const flow_signature *s = &lead->plan->graph->values[bindings_of(lead, segment)[1].value].signature;
  int64_t size = (int64_t)(flow_value_bytes(s, lead->part.rows) / (size_t)flow_dtype_size(s->dtype));
  int64_t each = ((size + members - 1) / members + GRAIN - 1) / GRAIN * GRAIN;
  int64_t begin = each * member < size ? each * member : size, end = begin + each < size ? begin + each : size;
  const void *addends[FLOW_MOST_REPLICAS];
  for (int r = 0; r < set->count; r++) addends[r] = operand_of(set->replicas[r], segment, x) + begin * flow_dtype_size(s->dtype);
  flow_add_pairwise(s->dtype, addends, set->count, operand_of(lead, segment, y) + begin * flow_dtype_size(s->dtype), end - begin);
}

/* ---- workers ------------------------------------------------------------------------------------------------------------------------- */

/* Where the sum of a segment is: added up over the local replicas, then over the workers, in place. */
static char *data_of(const flow_instance *lead, int segment)
{
  return operand_of(lead, segment, bindings_of(lead, segment)[1].root);
}

/* Elements of the sum, and their dtype. Sums have no rows. */
static int64_t count_of(const flow_instance *lead, int segment, int *dtype)
{
  const flow_signature *s = &lead->plan->graph->values[bindings_of(lead, segment)[1].value].signature;
  *dtype = s->dtype;
  return (int64_t)(flow_value_bytes(s, 1) / (size_t)flow_dtype_size(s->dtype));
}

/* Which sums are staged, and where: at an offset in elements of set->staged, in the order of the segments. What is allocated before a
 * failure is freed by flow_release_sums. */
flow_status flow_stage_sums(flow_replica_set *set, const flow_exchange *exchange)
{
  const flow_instance *lead = set->lead;
  void *block;
  int64_t total = 0;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_worker_sum) * (size_t)(lead->plan->segment_count + 1), &block));
  set->sums = block;
  for (int s = 0; s < lead->plan->segment_count; s++) {
    int dtype;
    set->sums[s].staged = -1;
    if (!lead->stages[s].collective || flow_is_gather(lead, s)) continue;
    int64_t count = count_of(lead, s, &dtype);
    if (dtype == FLOW_FLOAT32 && count > SMALL) FLOW_TRY(flow_shorten_sum(set, exchange, s, count));
    set->sums_alone |= dtype != FLOW_FLOAT32 || count > SMALL;
    if (dtype != FLOW_FLOAT32 || count > SMALL) continue;
    set->sums[s].staged = total;
    total += count;
  }
  FLOW_TRY(flow_alloc(sizeof(float) * (size_t)(total + 1), &block));
  set->staged = block;
  if (lead->plan->graph->gathers != FLOW_GATHERS_MESSAGES) return FLOW_OK;
  FLOW_TRY(flow_alloc(sizeof(float) * (size_t)(total + 1) * (size_t)exchange->workers, &block));
  set->staged_parts = block;
  FLOW_TRY(flow_alloc(sizeof(flow_gathering) * (size_t)(lead->plan->segment_count + 1), &block));
  set->gatherings = block;
  return FLOW_OK;
}

void flow_release_sums(flow_replica_set *set)
{
  for (int s = 0; set->sums && s < set->lead->plan->segment_count; s++) flow_free(set->sums[s].rest);
  flow_free(set->sums);
  set->sums = NULL;
  flow_free(set->staged);
  set->staged = NULL;
  flow_free(set->staged_parts);
  set->staged_parts = NULL;
  flow_free(set->gatherings);
  set->gatherings = NULL;
}

void flow_start_sums(flow_replica_set *set)
{
  set->widened = 0;
  set->newest_sum = -1;
  set->staged_begin = set->staged_end = 0;
  set->gathers_made = 0;
}

/* Whether the sum travels rounded. A worker that is alone adds up nothing, and then rounding would only lose digits. */
static int is_rounded(const flow_replica_set *set, const flow_worker_sum *sum) { return sum->rest && set->exchange->workers > 1; }

/* Begins the sum of `count` elements at `data` over the workers. *ticket: what to wait for. Failures become the verdict. */
static void begin(flow_replica_set *set, int dtype, void *data, int64_t count, int64_t *ticket)
{
  flow_status status = set->exchange->begin(set->exchange, dtype, data, count, ticket);
  if (status != FLOW_OK) flow_failure_take(&set->run.verdict, status);
  else set->newest_sum = *ticket;
}

void flow_send_sum(flow_replica_set *set, int segment)
{
  flow_worker_sum *sum = &set->sums[segment];
  int dtype;
  int64_t count = count_of(set->lead, segment, &dtype);
  char *data = data_of(set->lead, segment);
  if (flow_failure_is_set(&set->run.verdict)) return;
  if (flow_is_gather(set->lead, segment)) {      /* when it is needed: it would make workers wait for one another now */
    flow_send_rows_early(set, segment);
    sum->ticket = set->newest_sum;
    return;
  }
  if (is_rounded(set, sum)) {
    flow_round_sum(sum, set->exchange->gradient_dtype, (const float *)data, count);
    begin(set, set->exchange->gradient_dtype, sum->rounded, count, &sum->ticket);
    return;
  }
  if (sum->staged < 0) {
    begin(set, dtype, data, count, &sum->ticket);
    return;
  }
  memcpy(set->staged + sum->staged, data, sizeof(float) * (size_t)count);
  if (set->staged_begin == set->staged_end) set->staged_begin = sum->staged;
  set->staged_end = sum->staged + count;
}

/* The staged sums that were about to travel have come back: copies each to where its segment has it. Then none is about to. */
static void take_staged(flow_replica_set *set)
{
  const flow_instance *lead = set->lead;
  int dtype;
  for (int s = 0; s < lead->plan->segment_count; s++) {
    int64_t staged = set->sums[s].staged;
    if (!lead->stages[s].collective || staged < set->staged_begin || staged >= set->staged_end) continue;
    memcpy(data_of(lead, s), set->staged + staged, sizeof(float) * (size_t)count_of(lead, s, &dtype));
  }
  set->staged_begin = set->staged_end;
}

flow_gathering flow_gather_staged(flow_replica_set *set)
{
  int64_t bytes = (set->staged_end - set->staged_begin) * (int64_t)sizeof(float);
  return (flow_gathering){ set->staged + set->staged_begin, set->staged_parts, bytes };
}

/* Adds the staged sums of all workers, which gather has brought side by side, in the order of the workers. */
void flow_add_staged(flow_replica_set *set)
{
  int64_t count = set->staged_end - set->staged_begin;
  float *sums = set->staged + set->staged_begin;
  memcpy(sums, set->staged_parts, sizeof(float) * (size_t)count);
  for (int w = 1; w < set->exchange->workers; w++)
    flow_sum_ranks(FLOW_FLOAT32, sums, (const void *[]){ sums, set->staged_parts + w * count }, 2, count * (int64_t)sizeof(float));
  take_staged(set);
}

/* Of all segments up to this one, whose sums have come back. */
static void widen_sums(flow_replica_set *set, int segment)
{
  int dtype;
  for (; set->widened <= segment; set->widened++) {
    const flow_worker_sum *sum = &set->sums[set->widened];
    if (!is_rounded(set, sum)) continue;
    int64_t count = count_of(set->lead, set->widened, &dtype);
    flow_widen_sum(sum, set->exchange->gradient_dtype, (float *)data_of(set->lead, set->widened), count);
  }
}

/* A sum that was staged has no ticket of its own yet: what is staged is sent now, and the newest ticket is waited for, which waits for
 * all before it. The same in a failed run: no memory of the run may be touched by the communication thread when it returns. Gathered
 * rows are put together last, since that may meet the workers; `flush` tells that a sum of this very call has met them already. */
void flow_receive_sums(flow_replica_set *set, int segment, int end)
{
  int64_t ticket = set->sums[segment].ticket;
  int staged = set->staged_begin < set->staged_end, rides = staged && flow_gathers_by_message(set, set->gathers_made, end);
  int flush = staged && !rides;
  if (flush && !flow_failure_is_set(&set->run.verdict))
    begin(set, FLOW_FLOAT32, set->staged + set->staged_begin, set->staged_end - set->staged_begin, &ticket);
  /* Of a failed run nothing may be under way. */
  if (set->sums[segment].staged >= 0 || flush || flow_failure_is_set(&set->run.verdict)) ticket = set->newest_sum;
  if (set->newest_sum >= 0) {
    flow_status status = set->exchange->finish(set->exchange, ticket);
    if (status != FLOW_OK) flow_failure_take(&set->run.verdict, status);
    else if (flush) take_staged(set);
    if (!flow_failure_is_set(&set->run.verdict)) widen_sums(set, segment);
  }
  if (end <= set->gathers_made) return;
  flow_gather_workers(set, set->gathers_made, end, rides, flush);
  set->gathers_made = end;
}

int flow_sum_is_made(const flow_replica_set *set, int segment)
{
  if (!set->lead->stages[segment].collective) return 0;
  return !set->exchange || set->sums[segment].staged < 0 || set->sums[segment].staged < set->staged_begin;
}
