/* all_gather.c: rows of all replicas that are put together (FLOW_OP_all_gather). Every worker has a place for all of them. Where the
 * workers can share memory it is the same: then each computes its rows where all see them, and nothing is copied. Else they fetch each
 * other's.
 *
 * In common memory nobody writes rows of a run before all workers have said that it begins, and by then nobody reads those of the run
 * before. */
#include <string.h>
#include <sys/mman.h>

#include "run/instance.h"

int flow_is_gather(const flow_instance *lead, int segment)
{
  return lead->stages[segment].collective
         && lead->plan->graph->nodes[lead->entries[lead->plan->segments[segment].first].node].op == FLOW_OP_all_gather;
}

static const flow_binding *bindings_of(const flow_instance *lead, int segment)
{
  return lead->entries[lead->plan->segments[segment].first].bindings;
}

/* Bytes of a replica's part. */
static size_t part_of(const flow_instance *lead, int segment, int64_t rows)
{
  return flow_value_bytes(&lead->plan->graph->values[bindings_of(lead, segment)[0].value].signature, rows);
}

/* Where the rows of replica r of this process begin, each with `part` bytes. */
static size_t place_of(const flow_instance *lead, int r, size_t part)
{
  int before = lead->exchange ? lead->exchange->worker * lead->replica_count : 0;
  return (size_t)(before + r) * part;
}

/* ---- where the rows lie -------------------------------------------------------------------------------------------------------- */

void flow_release_common(flow_instance *lead)
{
  if (lead->common.number > 0) munmap(lead->common.memory, (size_t)lead->common.bytes);
  lead->common = (flow_common){ .number = 0 };
  lead->common_rows = 0;
}

/* Bytes that the rows of a segment take in common memory. */
static int64_t common_bytes(const flow_instance *lead, int segment, int64_t rows)
{
  enum { LINE = 64 };
  int64_t replicas = (int64_t)lead->replica_count * lead->exchange->workers;
  return (replicas * (int64_t)part_of(lead, segment, rows) + LINE - 1) / LINE * LINE;
}

/* All workers decide by what all have said. */
static flow_status find_common(flow_instance *lead)
{
  flow_exchange *exchange = lead->exchange;
  int64_t bytes = 0;
  if (!exchange || !exchange->share || lead->common_said < 0 || lead->gathered_rows == 0) return FLOW_OK;
  if (lead->common_said > 0 && lead->gathered_rows <= lead->common_rows) return FLOW_OK;
  flow_release_common(lead);
  for (int s = 0; s < lead->plan->segment_count; s++)
    if (flow_is_gather(lead, s)) bytes += common_bytes(lead, s, lead->gathered_rows);
  FLOW_TRY(exchange->share(exchange, bytes, &lead->common));
  if (lead->common.number == 0) lead->common.number = -1;
  lead->common_rows = lead->gathered_rows;
  return FLOW_OK;
}

flow_status flow_place_gathered(flow_instance *lead)
{
  char *next;
  if (!lead->gathers) return FLOW_OK;
  FLOW_TRY(find_common(lead));
  next = lead->common.memory;
  for (int s = 0; s < lead->plan->segment_count; s++) {
    if (!flow_is_gather(lead, s)) continue;
    int x = bindings_of(lead, s)[0].root, y = bindings_of(lead, s)[1].root;
    char *rows = next ? next : lead->arena + lead->offsets[y];
    size_t part = part_of(lead, s, lead->gathered_rows);
    int inside = lead->offsets[x] != FLOW_NOT_PLACED && lead->offsets[x] == lead->offsets[y];
    for (int r = 0; r < lead->replica_count; r++) {
      lead->replicas[r]->bases[y] = rows;
      if (inside) lead->replicas[r]->bases[x] = rows + place_of(lead, r, part);
    }
    if (next) next += common_bytes(lead, s, lead->common_rows);
  }
  return FLOW_OK;
}

/* ---- putting them together ----------------------------------------------------------------------------------------------------- */

void flow_gather_replicas(const flow_instance *lead, int segment, int member, int members)
{
  int x = bindings_of(lead, segment)[0].root, y = bindings_of(lead, segment)[1].root;
  size_t part = part_of(lead, segment, lead->gathered_rows);
  for (int r = member; r < lead->replica_count; r += members) {
    size_t bytes = part_of(lead, segment, lead->replicas[r]->rows);
    char *to = lead->bases[y] + place_of(lead, r, part);
    const char *from = lead->replicas[r]->bases[x];
    if (bytes && to != from) memcpy(to, from, bytes);
    if (bytes < part) memset(to + bytes, 0, part - bytes);
  }
}

static void collect(flow_instance *lead, void *rows, size_t part)
{
  flow_exchange *exchange = lead->exchange;
  for (int w = 0; w <= exchange->workers; w++) lead->share_units[w] = (int64_t)(part / sizeof(float)) * w * lead->replica_count;
  flow_status status = exchange->collect(exchange, &rows, 1, (int64_t)sizeof(float), lead->share_units, lead->received);
  if (status != FLOW_OK) flow_failure_take(&lead->verdict, status);
}

void flow_gather_workers(flow_instance *lead, int begin, int end)
{
  int met = 0;
  for (int s = begin; s < end && !flow_failure_is_set(&lead->verdict); s++) {
    if (!flow_is_gather(lead, s) || met) continue;
    int common = lead->common.number > 0;
    collect(lead, lead->bases[bindings_of(lead, s)[1].root], common ? 0 : part_of(lead, s, lead->gathered_rows));
    met = common;
  }
}
