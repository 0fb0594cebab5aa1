/* replica_set.c: making and releasing the replicas of a set, and joining it to the other workers. See replica_set.h. All by the caller's
 * thread, between runs. */
#include "run/replicas/replica_set.h"

#include <string.h>

#include "base/memory.h"
#include "base/philox.h"
#include "tensor/pairwise.h"
#include "run/device/all_reduce_by_host.h"
#include "run/device/device_exchange.h"
#include "run/device/device_run.h"
#include "run/input_rows.h"
#include "run/replicas/plan_key.h"

/* ---- life ------------------------------------------------------------------------------------------------------------------- */

flow_status flow_replica_set_new(flow_instance *lead, flow_replica_set **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_replica_set), &block));
  flow_replica_set *set = block;
  set->lead = lead;
  set->replicas = &set->lead;
  set->count = 1;
  set->weights.entry = -1;
  *out = set;
  return FLOW_OK;
}

/* All but the lead, which stays as a set of one. The order matters: replicas release what they have on their devices before the group of
 * devices may go. */
static void release_replicas(flow_replica_set *set)
{
  flow_instance *lead = set->lead;
  for (int r = 1; r < set->count; r++) flow_instance_release(set->replicas[r]);
  if (set->replicas != &set->lead) flow_free(set->replicas);
  set->replicas = &set->lead;
  set->count = 1;
  flow_device_sums_release(lead->sums);
  lead->sums = NULL;
  flow_free(set->announcements);
  set->announcements = NULL;
  flow_free(set->numbers);
  set->numbers = NULL;
  set->number_count = 0;
  flow_release_watched(set);
  flow_release_sums(set);
  flow_release_region(set);
  set->weights.entry = -1;
  set->weights.moved = 0;
  flow_free(set->unit_bounds);
  set->unit_bounds = NULL;
  set->gathers = 0;
  set->exchange = NULL;
  set->workers = 0;
  if (lead->device) flow_device_run_cut(lead);      /* recordings may hold the group's sums */
  flow_device_group_release(set->group);
  set->group = NULL;
}

void flow_instance_release_replicas(flow_instance *instance) { release_replicas(instance->set); }

void flow_replica_set_release(flow_replica_set *set)
{
  if (!set) return;
  release_replicas(set);
  flow_release_input_rows(&set->run, set->lead->plan->graph);
  flow_free(set);
}

/* ---- replicas of this process --------------------------------------------------------------------------------------------------- */

/* All replicas read a sum where the lead keeps it; it lives until the end of the run. */
static void share_sums(const flow_instance *lead, flow_instance *replica)
{
  for (int s = 0; s < lead->plan->segment_count; s++) {
    if (!lead->stages[s].collective) continue;
    int root = lead->entries[lead->plan->segments[s].first].bindings[1].root;
    replica->part.bases[root] = lead->part.bases[root];
  }
}

/* Marks, in a replica that is not the lead, the entries that it need not run, as aliases. The commit tail is run by the lead alone, so
 * the others stop at the sums and at the outputs; what only the tail reads is computed by the lead alone, too. Walks backwards from the
 * outputs and the sums. An effect runs if it updates in place a result that is wanted (`late`, plan/passes/advance_updates.h). */
static flow_status leave_out_tail(flow_instance *replica)
{
  const flow_plan *plan = replica->plan;
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)plan->graph->value_count + 1, &block));
  char *wanted = block;                   /* [value]: of roots: something here reads it */
  for (int i = 0; i < plan->output_count; i++) wanted[plan->roots[plan->outputs[i]]] = 1;
  for (int k = plan->order_count - 1; k >= 0; k--) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    int runs = (flow_op(node->op)->flags & FLOW_OP_COLLECTIVE) != 0, writes = flow_op(node->op)->flags & FLOW_OP_EFFECT;
    for (int i = 0; i < node->output_count; i++) runs |= wanted[plan->roots[node->outputs[i]]];
    for (int i = 0; i < node->input_count && writes; i++)
      runs |= plan->graph->values[node->inputs[i]].late && wanted[plan->roots[node->inputs[i]]];
    for (int i = 0; i < node->input_count && runs; i++) wanted[plan->roots[node->inputs[i]]] = 1;
    if (!runs) replica->entries[k].alias = 1;
  }
  flow_free(block);
  return FLOW_OK;
}

/* The next replica: an instance of the plan that shares its variables, or, on a device, has copies of them. */
static flow_status add_replica(flow_replica_set *set)
{
  flow_instance *lead = set->lead, *replica;
  flow_place *place = set->group ? set->group->places[set->count] : NULL;
  FLOW_TRY(flow_instance_new_at(lead->plan, (double)lead->capacity, place, set, &replica));
  flow_status status = flow_instance_set_members(replica, 1);
  if (status == FLOW_OK && !place) status = leave_out_tail(replica);
  if (status != FLOW_OK) {
    flow_instance_release(replica);
    return status;
  }
  set->replicas[set->count++] = replica;
  if (!place) share_sums(lead, replica);
  return FLOW_OK;
}

/* Replicas up to `local` of them. The array replaces the set's own pointer to the lead. */
static flow_status add_replicas(flow_replica_set *set, int local)
{
  void *block;
  if (local == 1) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_instance *) * (size_t)local, &block));
  set->replicas = block;
  set->replicas[0] = set->lead;
  while (set->count < local) FLOW_TRY(add_replica(set));
  return FLOW_OK;
}

/* What sums over devices need: the group's threads, memory on the host for sums that go through it, and new cuts in the plan of each
 * replica (device/cuts.h). */
static flow_status join_devices(flow_replica_set *set)
{
  if (!set->lead->device) return FLOW_OK;
  FLOW_TRY(flow_device_group_start(set->group));
  for (int r = 0; r < set->count; r++) {
    flow_instance *replica = set->replicas[r];
    int sums = (set->exchange || set->count > 1) && replica->last_sum >= 0;
    if (sums && !flow_device_run_exchange(replica)) FLOW_TRY(flow_device_sums_new(replica, &replica->sums));
    flow_device_run_cut(replica);
  }
  return FLOW_OK;
}

/* ---- those of other workers ------------------------------------------------------------------------------------------------------- */

/* What sums over the workers need: memory for their announcements and the staged sums. A worker that is alone and stays so has none, and
 * no exchange. */
static flow_status join_exchange(flow_replica_set *set, flow_exchange *exchange)
{
  void *block;
  if (!exchange || (exchange->workers == 1 && !exchange->grows)) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_run_announcement) * (size_t)exchange->workers, &block));
  set->announcements = block;
  FLOW_TRY(flow_alloc_zero(2 * sizeof(int64_t) * (size_t)(exchange->workers + 1), &block));
  set->unit_bounds = block;
  set->received = set->unit_bounds + exchange->workers + 1;
  FLOW_TRY(flow_plan_key(set->lead->plan, &set->plan_key, &set->numbers, &set->number_count));
  FLOW_TRY(flow_watch_variables(set));
  FLOW_TRY(flow_stage_sums(set, exchange));
  set->exchange = exchange;
  set->workers = exchange->workers;
  return FLOW_OK;
}

/* ---- the whole set ----------------------------------------------------------------------------------------------------------------- */

/* The devices of a group must fit the plan: as many as replicas, the plan's own as the first. */
static flow_status check_group(const flow_instance *instance, int local, int workers, const flow_device_group *group)
{
  const flow_place *place = instance->place;
  if (!group && (!place || local == 1)) return FLOW_OK;
  if (group && place && group->exchange && flow_device_exchange_ranks(group->exchange) != local * workers)
    return flow_fail(FLOW_INVALID_STATE, "the devices of %d replicas add up among themselves, the plan has %d in each of %d processes",
                     flow_device_exchange_ranks(group->exchange), local, workers);
  if (group && place && group->count == local && flow_place_device(group->places[0]) == flow_place_device(place)) return FLOW_OK;
  return flow_fail(FLOW_INVALID_STATE, "a plan on %s cannot have its %d replicas on %s: make the model in the strategy's scope",
                   flow_place_name(place), local, group ? flow_place_name(group->places[0]) : "the host");
}

/* Shards, replicas of which workers may have different numbers, are spread in one way only, since the tree of sums follows from it. */
static flow_status check_shards(int local, const flow_exchange *exchange)
{
  if (!exchange || exchange->shards == 0) return FLOW_OK;
  int own = flow_pairwise_begin(exchange->shards, exchange->workers, exchange->worker + 1)
            - flow_pairwise_begin(exchange->shards, exchange->workers, exchange->worker);
  if (local == own) return FLOW_OK;
  return flow_fail(FLOW_INVALID_ARGUMENT, "worker %d of %d has %d of %d shards, not %d: flow_worker_shards tells how many",
                   exchange->worker, exchange->workers, own, exchange->shards, local);
}

/* On failure the instance is alone, as after flow_instance_release_replicas. */
flow_status flow_instance_set_replicas(flow_instance *instance, int local, flow_device_group *group, flow_exchange *exchange)
{
  flow_replica_set *set = instance->set;
  if (local < 1 || local > FLOW_MOST_REPLICAS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "a process has 1 to %d replicas, got %d", FLOW_MOST_REPLICAS, local);
  FLOW_TRY(flow_check_laid_out(instance));
  FLOW_TRY(check_shards(local, exchange));
  FLOW_TRY(check_group(instance, local, exchange ? exchange->workers : 1, group));
  release_replicas(set);
  set->group = flow_device_group_retain(group);
  for (int k = 0; k < instance->plan->order_count; k++)
    set->gathers |= instance->plan->graph->nodes[instance->plan->order[k]].op == FLOW_OP_all_gather;
  flow_status status = join_exchange(set, exchange);
  if (status == FLOW_OK) status = add_replicas(set, local);
  if (status == FLOW_OK) status = join_devices(set);
  if (status == FLOW_OK) flow_find_shared_weights(set);
  if (status != FLOW_OK) release_replicas(set);
  return status;
}
