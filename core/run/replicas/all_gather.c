/* all_gather.c: rows of all replicas that are put together (FLOW_OP_all_gather): {rows, ...} of each replica becomes {replicas of all
 * workers x gathered rows, ...}. Each replica has as many rows in the result as the replica with most; what it does not have is zeros,
 * which add nothing to the products that are made of them.
 *
 * Every worker has memory for all rows. Where the workers can share memory it is the same (set->region): then each computes its rows
 * where all see them, and nothing is copied. Else they fetch each other's, or, as the plan says (flow_gathers), send each other theirs,
 * all in one message.
 *
 * In the shared region no worker writes rows of a run before all have announced it (divide.c), and a worker announces a run only
 * after it has done with the rows of the one before. */
#include <string.h>
#include <sys/mman.h>

#include "run/replicas/replica_set.h"

int flow_is_gather(const flow_instance *instance, int segment)
{
  return instance->stages[segment].collective
         && instance->plan->graph->nodes[instance->entries[instance->plan->segments[segment].first].node].op == FLOW_OP_all_gather;
}

static const flow_binding *bindings_of(const flow_instance *lead, int segment)
{
  return lead->entries[lead->plan->segments[segment].first].bindings;
}

/* Bytes of the part of a replica with this many rows. */
static size_t part_of(const flow_instance *lead, int segment, int64_t rows)
{
  return flow_value_bytes(&lead->plan->graph->values[bindings_of(lead, segment)[0].value].signature, rows);
}

/* Offset in the gathered value of the rows of replica r of this process, each replica with `part` bytes. */
static size_t place_of(const flow_replica_set *set, int r, size_t part)
{
  int before = set->exchange ? set->exchange->worker * set->count : 0;
  return (size_t)(before + r) * part;
}

/* ---- where the rows are -------------------------------------------------------------------------------------------------------- */

/* By the caller's thread between runs. Other workers keep their mapping of the same memory. */
void flow_release_region(flow_replica_set *set)
{
  if (set->region.number > 0) munmap(set->region.memory, (size_t)set->region.bytes);
  set->region = (flow_shared_region){ .number = 0 };
  set->region_rows = 0;
}

/* Bytes that the rows of a segment take in the region. */
static int64_t bytes_in_region(const flow_replica_set *set, int segment, int64_t rows)
{
  enum { LINE = 64 };
  int64_t replicas = (int64_t)set->count * set->exchange->workers;
  return (replicas * (int64_t)part_of(set->lead, segment, rows) + LINE - 1) / LINE * LINE;
}

/* Finds or makes the shared region for this run. Every worker decides by what all have announced, so that all of them call share_region
 * or none does: region_agreed is the number of a region that all have, 0 if they differ, and -1 if all know already that they cannot
 * share. gathered_rows is the same everywhere, too. */
static flow_status find_region(flow_replica_set *set)
{
  flow_exchange *exchange = set->exchange;
  const flow_instance *lead = set->lead;
  int64_t bytes = 0, rows = lead->part.gathered_rows;
  if (!exchange || !exchange->share_region || lead->plan->graph->gathers != FLOW_GATHERS_WORKERS) return FLOW_OK;
  if (set->region_agreed < 0 || rows == 0) return FLOW_OK;
  if (set->region_agreed > 0 && rows <= set->region_rows) return FLOW_OK;
  flow_release_region(set);
  for (int s = 0; s < lead->plan->segment_count; s++)
    if (flow_is_gather(lead, s)) bytes += bytes_in_region(set, s, rows);
  FLOW_TRY(exchange->share_region(exchange, bytes, &set->region));
  if (set->region.number == 0) set->region.number = -1;
  set->region_rows = rows;
  return FLOW_OK;
}

/* Lets the kernels that compute the rows at `root` know whether other cores read them there, so that they take the lines back in time. */
static void mark_rows(const flow_instance *replica, int root, int passed_on)
{
  for (int e = 0; e < replica->plan->order_count; e++) {
    const flow_entry *entry = &replica->entries[e];
    flow_binding *outputs = entry->bindings + entry->input_count;
    for (int i = 0; i < entry->output_count; i++)
      if (outputs[i].mode == FLOW_BIND_ROWS && outputs[i].root == root) outputs[i].passed_on = passed_on;
  }
}

/* Sets, before a run, where each replica computes its rows: inside of the gathered value if the arena was laid out so (place_in_sum in
 * arena.c), wherever that is in this run. */
flow_status flow_place_gathered(flow_replica_set *set)
{
  const flow_instance *lead = set->lead;
  char *next;
  if (!set->gathers) return FLOW_OK;
  FLOW_TRY(find_region(set));
  next = set->region.memory;
  for (int s = 0; s < lead->plan->segment_count; s++) {
    if (!flow_is_gather(lead, s)) continue;
    int x = bindings_of(lead, s)[0].root, y = bindings_of(lead, s)[1].root;
    char *rows = next ? next : lead->arena + lead->offsets[y];
    size_t part = part_of(lead, s, lead->part.gathered_rows);
    int inside = lead->offsets[x] != FLOW_NOT_PLACED && lead->offsets[x] == lead->offsets[y];
    for (int r = 0; r < set->count; r++) {
      mark_rows(set->replicas[r], x, inside && (set->count > 1 || set->region.number > 0));
      set->replicas[r]->part.bases[y] = rows;
      if (inside) set->replicas[r]->part.bases[x] = rows + place_of(set, r, part);
    }
    if (next) next += bytes_in_region(set, s, set->region_rows);
  }
  return FLOW_OK;
}

/* ---- putting them together ----------------------------------------------------------------------------------------------------- */

/* Rows that were computed in place are not copied; what a replica lacks is cleared in any case. */
void flow_gather_replicas(const flow_replica_set *set, int segment, int member, int members)
{
  const flow_instance *lead = set->lead;
  int x = bindings_of(lead, segment)[0].root, y = bindings_of(lead, segment)[1].root;
  size_t part = part_of(lead, segment, lead->part.gathered_rows);
  for (int r = member; r < set->count; r += members) {
    size_t bytes = part_of(lead, segment, set->replicas[r]->part.rows);
    char *to = lead->part.bases[y] + place_of(set, r, part);
    const char *from = set->replicas[r]->part.bases[x];
    if (bytes && to != from) memcpy(to, from, bytes);
    if (bytes < part) memset(to + bytes, 0, part - bytes);
  }
}

/* Fetches the rows of all workers into `rows`: parts of equal size, in the order of workers. A failure becomes that of the run. */
static void collect(flow_replica_set *set, void *rows, size_t part)
{
  flow_exchange *exchange = set->exchange;
  for (int w = 0; w <= exchange->workers; w++) set->unit_bounds[w] = (int64_t)(part / sizeof(float)) * w * set->count;
  flow_status status = exchange->collect(exchange, &rows, 1, (int64_t)sizeof(float), set->unit_bounds, set->received);
  if (status != FLOW_OK) flow_failure_take(&set->run.verdict, status);
}

int flow_gathers_by_message(const flow_replica_set *set, int begin, int end)
{
  if (set->lead->plan->graph->gathers != FLOW_GATHERS_MESSAGES) return 0;
  for (int s = begin; s < end; s++)
    if (flow_is_gather(set->lead, s)) return 1;
  return 0;
}

/* The rows of a segment: every worker has its own part at [worker * bytes] of the buffer already. */
static flow_gathering gathering_of(const flow_replica_set *set, int segment)
{
  const flow_instance *lead = set->lead;
  int64_t bytes = (int64_t)part_of(lead, segment, lead->part.gathered_rows) * set->count;
  char *all = lead->part.bases[bindings_of(lead, segment)[1].root];
  return (flow_gathering){ all + set->exchange->worker * bytes, all, bytes };
}

static int is_early(const flow_replica_set *set, int segment)
{
  const flow_plan *plan = set->lead->plan;
  return plan->order[plan->segments[segment].first] == plan->early_gather;
}

/* A sum that goes alone would be the next call. */
void flow_send_rows_early(flow_replica_set *set, int segment)
{
  if (!is_early(set, segment) || set->sums_alone) return;
  flow_gathering rows = gathering_of(set, segment);
  flow_status status = set->exchange->start_gather(set->exchange, &rows);
  if (status != FLOW_OK) flow_failure_take(&set->run.verdict, status);
}

/* Gathers segments begin to end - 1, those that are gatherings, in one exchange, first those that may have been started. staged: the staged
 * sum joins the same exchange. A failure becomes that of the run. */
static void send_rows(flow_replica_set *set, int begin, int end, int staged)
{
  int count = 0;
  for (int early = 1; early >= 0; early--)
    for (int s = begin; s < end; s++)
      if (flow_is_gather(set->lead, s) && is_early(set, s) == early) set->gatherings[count++] = gathering_of(set, s);
  if (staged) set->gatherings[count++] = flow_gather_staged(set);
  flow_status status = set->exchange->gather(set->exchange, set->gatherings, count);
  if (status != FLOW_OK) flow_failure_take(&set->run.verdict, status);
  else if (staged) flow_add_staged(set);
}

void flow_gather_workers(flow_replica_set *set, int begin, int end, int staged, int met)
{
  const flow_instance *lead = set->lead;
  if (flow_gathers_by_message(set, begin, end)) {
    if (!flow_failure_is_set(&set->run.verdict)) send_rows(set, begin, end, staged);
    return;
  }
  for (int s = begin; s < end && !flow_failure_is_set(&set->run.verdict); s++) {
    int shared = set->region.number > 0;
    if (!flow_is_gather(lead, s) || (shared && met)) continue;
    collect(set, lead->part.bases[bindings_of(lead, s)[1].root], shared ? 0 : part_of(lead, s, lead->part.gathered_rows));
    met = shared;
  }
}
