/* replicas.c: one plan on several replicas, each with a part of the batch: those of this process, which are instances of the plan that
 * share its variables, and, through an exchange, those of other processes.
 *
 * Replicas differ in what they compute until a sum over all of them; gradients, what metrics gain and the means that layers keep all
 * pass through one. So the commit tail is the same for all: in this process it is done once, on the lead's values. */
#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "graph/context.h"
#include "run/device/device_run.h"
#include "run/device/device_exchange.h"
#include "run/device/all_reduce_by_host.h"

/* ---- instances ----------------------------------------------------------------------------------------------------------------------- */

/* A number that plans of different operations do not share: workers that run different things must not add them up. */
static uint64_t plan_key(const flow_plan *plan)
{
  uint64_t key = 0;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    key = flow_mix(key, (uint64_t)node->op);
    for (int i = 0; i < node->output_count; i++) {
      const flow_signature *s = &plan->graph->values[node->outputs[i]].signature;
      for (int d = 0; d < s->rank; d++) key = flow_mix(key, (uint64_t)s->dims[d]);
    }
  }
  return key;
}

void flow_instance_release_replicas(flow_instance *instance)
{
  for (int r = 1; r < instance->replica_count; r++) flow_instance_release(instance->replicas[r]);
  if (instance->replicas != &instance->lead) flow_free(instance->replicas);
  instance->replicas = &instance->lead;
  instance->replica_count = 1;
  flow_device_sums_release(instance->sums);
  instance->sums = NULL;
  flow_free(instance->said);
  flow_free(instance->staged);
  flow_release_common(instance);
  flow_free(instance->share_units);
  instance->share_units = NULL;
  instance->gathers = 0;
  instance->said = NULL;
  instance->staged = NULL;
  instance->exchange = NULL;
  if (instance->accelerated) flow_accelerated_cut(instance);      /* recordings may hold the group's sums */
  flow_device_group_release(instance->group);
  instance->group = NULL;
}

/* All replicas read a sum where the lead keeps it; it lives until the end of the run. */
static void share_sums(const flow_instance *lead, flow_instance *replica)
{
  for (int s = 0; s < lead->plan->segment_count; s++) {
    if (!lead->stages[s].collective) continue;
    int root = lead->entries[lead->plan->segments[s].first].bindings[1].root;
    replica->bases[root] = lead->bases[root];
  }
}

/* What only the commit tail reads is computed by the lead alone: the others stop at the sums and at the outputs. */
static flow_status leave_out_common(flow_instance *replica)
{
  const flow_plan *plan = replica->plan;
  void *block;
  FLOW_TRY(flow_alloc_zero((size_t)plan->graph->value_count + 1, &block));
  char *wanted = block;                   /* [value]: of roots: somebody here reads it */
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

/* The replicas but the first: instances of the plan that share its variables, or, on devices, have copies of them. */
static flow_status make_replica(flow_instance *lead, int number)
{
  flow_instance *replica;
  flow_place *place = lead->group ? lead->group->places[number] : NULL;
  FLOW_TRY(flow_instance_new_at(lead->plan, (double)lead->capacity, place, &lead->replicas[number]));
  replica = lead->replicas[number];
  flow_status status = flow_instance_set_members(replica, 1);
  if (status == FLOW_OK && !place) status = leave_out_common(replica);
  if (status != FLOW_OK) {
    flow_instance_release(replica);
    return status;
  }
  replica->lead = lead;
  lead->replica_count = number + 1;
  if (!place) share_sums(lead, replica);
  return FLOW_OK;
}

static flow_status make_replicas(flow_instance *lead, int local)
{
  void *block;
  if (local == 1) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_instance *) * (size_t)local, &block));
  lead->replicas = block;
  lead->replicas[0] = lead;
  for (int r = 1; r < local; r++) FLOW_TRY(make_replica(lead, r));
  return FLOW_OK;
}

/* What sums over the workers need. */
static flow_status join_exchange(flow_instance *lead, flow_exchange *exchange)
{
  void *block;
  if (!exchange || exchange->workers == 1) return FLOW_OK;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_said) * (size_t)exchange->workers, &block));
  lead->said = block;
  FLOW_TRY(flow_alloc_zero(2 * sizeof(int64_t) * (size_t)(exchange->workers + 1), &block));
  lead->share_units = block;
  lead->received = lead->share_units + exchange->workers + 1;
  FLOW_TRY(flow_stage_sums(lead));
  lead->exchange = exchange;
  lead->plan_key = plan_key(lead->plan);
  return FLOW_OK;
}

/* What sums over devices need. */
static flow_status join_devices(flow_instance *lead)
{
  if (!lead->accelerated) return FLOW_OK;
  FLOW_TRY(flow_device_group_start(lead->group));
  for (int r = 0; r < lead->replica_count; r++) {
    flow_instance *replica = lead->replicas[r];
    int sums = (lead->exchange || lead->replica_count > 1) && lead->last_sum >= 0;
    if (sums && !flow_accelerated_exchange(replica)) FLOW_TRY(flow_device_sums_new(replica, &replica->sums));
    flow_accelerated_cut(replica);
  }
  return FLOW_OK;
}

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

flow_status flow_instance_set_replicas(flow_instance *instance, int local, flow_device_group *group, flow_exchange *exchange)
{
  if (local < 1 || local > FLOW_MOST_REPLICAS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "a process has 1 to %d replicas, got %d", FLOW_MOST_REPLICAS, local);
  FLOW_TRY(check_group(instance, local, exchange ? exchange->workers : 1, group));
  flow_instance_release_replicas(instance);
  instance->group = flow_device_group_retain(group);
  for (int k = 0; k < instance->plan->order_count; k++)
    instance->gathers |= instance->plan->graph->nodes[instance->plan->order[k]].op == FLOW_OP_all_gather;
  flow_status status = join_exchange(instance, exchange);
  if (status == FLOW_OK) status = make_replicas(instance, local);
  if (status == FLOW_OK) status = join_devices(instance);
  if (status != FLOW_OK) flow_instance_release_replicas(instance);
  return status;
}

/* ---- who does which rows ------------------------------------------------------------------------------------------------------------- */

static flow_status fail_to_agree(const flow_instance *lead, int other, const char *what)
{
  const flow_exchange *exchange = lead->exchange;
  const flow_said *own = &lead->said[exchange->worker], *theirs = &lead->said[other];
  char number[24];
  snprintf(number, sizeof number, "worker %d", other);
  return flow_fail(FLOW_INVALID_STATE, "%s and this one, %s, do not do the same: %s (rows %lld and %lld, step %lld and %lld); all workers "
                   "run the same script with the same model and options", exchange->name ? exchange->name(exchange, other) : number,
                   exchange->name ? exchange->name(exchange, exchange->worker) : "another", what,
                   (long long)theirs->rows, (long long)own->rows, (long long)theirs->step, (long long)own->step);
}

/* Tells the other workers what this one has and wants; *before: rows of those in front of it. */
static flow_status agree(flow_instance *lead, int64_t rows, int64_t *before)
{
  flow_exchange *exchange = lead->exchange;
  flow_said own = { .rows = rows, .plan = lead->plan_key, .step = lead->base.step, .common = lead->common.number,
                    .shares_rows = lead->shares_rows, .wishes_stop = lead->wishes_stop || flow_interrupted(lead->context),
                    .division = lead->division, .rerecord = lead->rerecord };
  if (exchange->progress) exchange->progress(exchange, lead->base.step);
  FLOW_TRY(exchange->all_gather(exchange, &own, sizeof own, lead->said));
  int64_t total = 0;
  lead->stop_wished = 0;
  lead->division = 0;
  lead->common_said = own.common;
  *before = 0;
  for (int w = 0; w < exchange->workers; w++) {
    const flow_said *said = &lead->said[w];
    if (said->plan != own.plan) return fail_to_agree(lead, w, "they run different plans");
    if (said->step != own.step) return fail_to_agree(lead, w, "they are at different steps");
    if (said->shares_rows != own.shares_rows)
      return fail_to_agree(lead, w, "one shares its rows, the other has its own");
    if (own.shares_rows && said->rows != rows) return fail_to_agree(lead, w, "their batches have different sizes");
    if (said->rows < 0 || __builtin_add_overflow(total, said->rows, &total)) return fail_to_agree(lead, w, "rows cannot be counted");
    if (said->common != own.common) lead->common_said = 0;
    lead->rerecord |= said->rerecord;
    lead->division = flow_mix(lead->division, said->division);
    if (w < exchange->worker) *before += said->rows;
    lead->stop_wished |= said->wishes_stop != 0;
  }
  lead->global_rows = own.shares_rows ? rows : total;
  if (own.shares_rows) *before = 0;
  return FLOW_OK;
}

int64_t flow_instance_part_rows(const flow_instance *lead, int64_t rows)
{
  int64_t parts = lead->replica_count * (lead->exchange && lead->shares_rows ? lead->exchange->workers : 1);
  return (rows + parts - 1) / parts;
}

/* The most rows that a replica of any worker has. All have said how many rows they have, or share those of `part`. */
static int64_t most_rows(const flow_instance *lead, int64_t part)
{
  for (int w = 0; lead->exchange && !lead->shares_rows && w < lead->exchange->workers; w++) {
    int64_t rows = (lead->said[w].rows + lead->replica_count - 1) / lead->replica_count;
    if (rows > part) part = rows;
  }
  return part;
}

/* Room for the rows of each replica that are put together, which another worker may have more of. */
static flow_status set_gathered_rows(flow_instance *lead, int64_t rows)
{
  flow_exchange *exchange = lead->exchange;
  int local = lead->replica_count;
  lead->gathered_rows = rows;
  if (!lead->gathers || rows <= lead->capacity) return FLOW_OK;
  flow_instance_release_replicas(lead);
  FLOW_TRY(flow_instance_resize(lead, rows));
  return flow_instance_set_replicas(lead, local, NULL, exchange);
}

static flow_status take_part(flow_instance *replica, int64_t first, int64_t rows, int64_t before)
{
  const flow_instance *lead = replica->lead;
  replica->rows = rows;
  replica->part_first = first;
  replica->scalars = lead->base;
  replica->scalars.first_sample += before + first;
  replica->scalars.rows = rows;
  replica->scalars.global_rows = lead->global_rows;
  return flow_instance_set_rows(replica, rows);
}

flow_status flow_instance_divide(flow_instance *lead, int64_t rows)
{
  int64_t part = flow_instance_part_rows(lead, rows), before = 0;
  int first = lead->exchange && lead->shares_rows ? lead->exchange->worker * lead->replica_count : 0;
  lead->global_rows = rows;
  lead->division = (uint64_t)rows;
  if (lead->exchange) FLOW_TRY(agree(lead, rows, &before));
  FLOW_TRY(set_gathered_rows(lead, most_rows(lead, part)));
  for (int r = 0; r < lead->replica_count; r++) {
    int64_t begin = (first + r) * part < rows ? (first + r) * part : rows;
    FLOW_TRY(take_part(lead->replicas[r], begin, rows - begin < part ? rows - begin : part, before));
  }
  return FLOW_OK;
}

flow_status flow_instance_divide_each(flow_instance *lead, const int64_t *rows)
{
  int64_t total = 0, before = 0;
  lead->division = 0;
  for (int r = 0; r < lead->replica_count; r++) {
    total += rows[r];
    lead->division = flow_mix(lead->division, (uint64_t)rows[r]);
  }
  lead->global_rows = total;
  if (lead->exchange) FLOW_TRY(agree(lead, total, &before));
  for (int r = 0; r < lead->replica_count; r++) {
    FLOW_TRY(take_part(lead->replicas[r], 0, rows[r], before));
    before += rows[r];
  }
  return FLOW_OK;
}

void flow_instance_share_rows(flow_instance *instance, int shared)       { instance->shares_rows = shared != 0; }
void flow_instance_wish_stop(flow_instance *instance, int stop)          { instance->wishes_stop = stop != 0; }
int  flow_instance_stop_wished(const flow_instance *instance)            { return instance->stop_wished; }
double flow_instance_global_rows(const flow_instance *instance)          { return (double)instance->global_rows; }
