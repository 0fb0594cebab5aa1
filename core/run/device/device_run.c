/* device_run.c: see device_run.h. */
#include "run/device/device_run_state.h"
#include "run/profile_run.h"

#include <stdio.h>
#include <string.h>
#include "run/device/all_reduce_by_host.h"
#include "graph/profile.h"
#include "graph/variable.h"
#include "tensor/mirrors.h"

enum { ALIGNMENT = 256 };

/* ---- making -------------------------------------------------------------------------------------------------------------- */

static flow_status make(flow_instance *instance, flow_accelerated *a)
{
  const flow_graph *graph = instance->plan->graph;
  void *block;
  FLOW_TRY(flow_accelerated_functions(a)->queue_new(flow_place_accelerator(a->place), &a->copies));
  for (int i = 0; i < graph->input_count; i++) {
    size_t bytes = flow_value_bytes(&graph->values[graph->inputs[i]].signature, instance->capacity);
    if (bytes == FLOW_NOT_PLACED) return flow_fail(FLOW_INVALID_ARGUMENT, "input %d of a plan has too many elements", i + 1);
    a->offsets[i] = a->input_bytes;
    a->input_bytes += (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  }
  FLOW_TRY(flow_place_allocate(a->place, a->input_bytes, &block));
  a->inputs = block;
  FLOW_TRY(flow_place_allocate(a->place, sizeof(flow_batch_step) * FLOW_MOST_RECORDED_STEPS, &block));
  a->batches = block;
  FLOW_TRY(flow_accelerated_functions(a)->allocate(a->copies, a->input_bytes + 1, &block));
  a->staged = block;
  for (int i = 0; i < graph->input_count; i++) instance->bases[graph->inputs[i]] = a->inputs + a->offsets[i];
  return FLOW_OK;
}

flow_status flow_accelerated_new(flow_instance *instance)
{
  const flow_graph *graph = instance->plan->graph;
  void *block;
  size_t values = (size_t)graph->value_count + 1, inputs = (size_t)graph->input_count + 1, most = (size_t)flow_most_parts(instance->plan);
  size_t bytes = sizeof(flow_accelerated) + values * sizeof(char *) + inputs * (sizeof(size_t) + sizeof(flow_batch_table));
  FLOW_TRY(flow_alloc_zero(bytes, &block));
  flow_accelerated *a = instance->accelerated = block;
  a->variables = (char **)(a + 1);
  a->offsets = (size_t *)(a->variables + values);
  a->tables.input = (flow_batch_table *)(a->offsets + inputs);
  a->place = flow_place_retain(instance->place);
  FLOW_TRY(flow_alloc_zero((FLOW_KEPT_RECORDINGS * sizeof(flow_recording *) + sizeof(flow_part)) * most, &block));
  for (size_t k = 0; k < FLOW_KEPT_RECORDINGS; k++) a->kept[k].parts = (flow_recording **)block + k * most;
  a->parts = (flow_part *)((flow_recording **)block + FLOW_KEPT_RECORDINGS * most);      /* after pointers, whose alignment is larger */
  flow_accelerated_cut(instance);
  return make(instance, a);
}

void flow_accelerated_cut(flow_instance *instance)
{
  flow_accelerated *a = instance->accelerated;
  for (int k = 0; k < FLOW_KEPT_RECORDINGS; k++) flow_recorded_forget(a, &a->kept[k]);
  a->part_count = flow_cut_plan(instance, instance->sums != NULL, a->parts);
  a->member = 0;
  while (instance->lead->replicas[a->member] != instance) a->member++;
}

void flow_accelerated_release(flow_instance *instance)
{
  flow_accelerated *a = instance->accelerated;
  if (!a) return;
  flow_place_lock(a->place);
  for (int k = 0; k < FLOW_KEPT_RECORDINGS && a->parts; k++) flow_recorded_forget(a, &a->kept[k]);
  if (a->copies) {
    flow_accelerated_functions(a)->release(a->copies, a->staged);
    flow_accelerated_functions(a)->queue_release(a->copies);
  }
  flow_place_unlock(a->place);
  flow_place_free(a->place, a->room, a->room_bytes);
  flow_place_free(a->place, a->inputs, a->input_bytes);
  flow_place_free(a->place, a->batches, sizeof(flow_batch_step) * FLOW_MOST_RECORDED_STEPS);
  flow_place_release(a->place);
  flow_device_sums_release(instance->sums);
  instance->sums = NULL;
  flow_free(a->kept[0].parts);          /* and the parts behind */
  flow_free(a);
  instance->accelerated = NULL;
}

struct flow_device_exchange *flow_accelerated_exchange(const flow_instance *replica)
{
  const flow_device_group *group = replica->lead->group;
  return group ? group->exchange : NULL;
}

/* ---- what a run brings ------------------------------------------------------------------------------------------------------ */

flow_status flow_instance_take_variables(flow_instance *instance)
{
  const flow_graph *graph = instance->plan->graph;
  for (int v = 0; v < graph->value_count; v++)
    if (graph->values[v].kind == FLOW_VALUE_VARIABLE) FLOW_TRY(flow_variable_move_to(graph->values[v].variable, graph->place));
  return FLOW_OK;
}

static flow_status bind_variables(flow_instance *replica)
{
  const flow_graph *graph = replica->plan->graph;
  flow_accelerated *a = replica->accelerated;
  for (int v = 0; v < graph->value_count; v++) {
    if (graph->values[v].kind != FLOW_VALUE_VARIABLE) continue;
    FLOW_TRY(flow_base_of(replica, graph->values[v].variable->tensor, &replica->bases[v]));
    replica->lead->rerecord |= a->variables[v] != replica->bases[v];
    a->variables[v] = replica->bases[v];
  }
  return FLOW_OK;
}

/* A replica that records, or runs what is not recorded, does so with all others: recording sums is something that devices do together. */
flow_status flow_accelerated_bind_variables(flow_instance *lead)
{
  const flow_profile *profile = lead->context->profile;
  if (!lead->accelerated) return FLOW_OK;
  const flow_device_exchange *exchange = flow_accelerated_exchange(lead);
  lead->rerecord = exchange && profile && profile->active;
  for (int r = 0; r < lead->replica_count; r++) FLOW_TRY(bind_variables(lead->replicas[r]));
  return FLOW_OK;
}

void flow_accelerated_give_up(const flow_instance *lead)
{
  flow_device_exchange *exchange = flow_accelerated_exchange(lead);
  flow_failure failure = { 0 };
  if (!exchange || !lead->exchange) return;
  flow_failure_take(&failure, FLOW_ABORTED);
  flow_device_exchange_fail(exchange, failure.message);
  flow_failure_raise(&failure);
}

/* Variables of other contexts: their work and this instance's wait for each other. */
static flow_status follow_variables(const flow_instance *instance, int back)
{
  const flow_graph *graph = instance->plan->graph;
  flow_place *own = instance->accelerated->place;
  for (int v = 0; v < graph->value_count; v++) {
    if (graph->values[v].kind != FLOW_VALUE_VARIABLE) continue;
    flow_place *other = flow_tensor_place(graph->values[v].variable->tensor);
    if (other != own) FLOW_TRY(back ? flow_place_follow(other, own) : flow_place_follow(own, other));
  }
  return FLOW_OK;
}

/* What the run writes it writes on all replicas: copies on their devices stay as new as they were. Not so where it failed: then what the
 * first one has counts (places NULL). */
static void note_writes(const flow_instance *lead, flow_place *const *places)
{
  const flow_plan *plan = lead->plan;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (!(flow_op(node->op)->flags & FLOW_OP_EFFECT)) continue;
    for (int i = 0; i < node->input_count; i++) {
      const flow_value *value = &plan->graph->values[plan->roots[node->inputs[i]]];
      if (value->kind == FLOW_VALUE_VARIABLE)
        flow_mirrors_were_written(value->variable->tensor->storage, places, places ? lead->replica_count : 0);
    }
  }
}

/* ---- running ---------------------------------------------------------------------------------------------------------------- */

static flow_status copy_saved(const flow_instance *instance, flow_queue *queue, int back)
{
  for (int i = 0; i < instance->saved_count; i++) {
    const flow_saved *s = &instance->saved[i];
    char *aside = instance->saved_bytes + s->offset, *storage = instance->bases[s->value];
    char *to = back ? storage : aside, *from = back ? aside : storage;
    if (s->bytes) FLOW_TRY(flow_accelerated_functions(instance->accelerated)->copy(queue, to, from, s->bytes));
  }
  return FLOW_OK;
}

/* ---- replicas --------------------------------------------------------------------------------------------------------------- */

/* A failure of one replica is one of all: no part is enqueued any more, and no device waits for this one's. */
static void fail_if(flow_instance *replica, flow_status status)
{
  flow_device_exchange *exchange = flow_accelerated_exchange(replica);
  if (status == FLOW_OK) return;
  flow_failure_take(&replica->lead->verdict, status);
  if (exchange) flow_device_exchange_fail(exchange, replica->lead->verdict.message);
}

static int failed(const flow_instance *replica) { return flow_failure_is_set(&replica->lead->verdict); }

/* What comes before a part of replica `member`, the same steps on all: sums are fetched; all wait for each other's end of the body. */
static void prepare_part(flow_instance *replica, int member, flow_queue *queue, const flow_part *part)
{
  flow_accelerated *a = replica->accelerated;
  if (part->needs >= 0) flow_device_sums_finish(replica->sums, replica, member, part->needs, queue, a->copies);
  if (!part->waits) return;
  if (!failed(replica)) fail_if(replica, flow_accelerated_functions(a)->synchronize(queue));
  flow_device_group_meet(replica->lead->group);
}

static void run_parts(flow_instance *replica, int member, flow_queue *queue, flow_recorded *kept)
{
  flow_accelerated *a = replica->accelerated;
  if (replica->sums) flow_device_sums_start(replica->sums);
  for (int p = 0; p < a->part_count; p++) {
    const flow_part *part = &a->parts[p];
    prepare_part(replica, member, queue, part);
    if (!failed(replica)) fail_if(replica, flow_accelerated_run_part(replica, queue, kept, p));
    if (part->sum >= 0) flow_device_sums_begin(replica->sums, replica, member, part->sum, queue, a->copies);
  }
}

/* Of each of the run's steps, which are batches one after the other. */
static flow_status send_batches(const flow_instance *replica, flow_queue *queue)
{
  const flow_accelerated *a = replica->accelerated;
  flow_batch_step all[FLOW_MOST_RECORDED_STEPS];
  int steps = a->steps > 1 ? a->steps : 1;
  for (int s = 0; s < steps; s++) {
    all[s] = (flow_batch_step){ replica->scalars, a->tables.first + s * replica->rows };
    all[s].scalars.step += s;
    all[s].scalars.first_sample += s * replica->rows;
  }
  return flow_accelerated_functions(a)->upload(queue, a->batches, all, sizeof *all * (size_t)steps);
}

/* The whole of replica `member`'s run; where effects are guarded it is waited for, and undone on all replicas if it fails on one. */
static void run_replica(flow_instance *replica, int member, flow_queue *queue)
{
  flow_accelerated *a = replica->accelerated;
  flow_recorded *kept = flow_recorded_find(replica);
  kept->used = ++a->runs;
  kept->runs++;
  if (flow_accelerated_exchange(replica)) flow_device_exchange_start(flow_accelerated_exchange(replica), member, kept->runs == 1);
  a->bound = 0;
  fail_if(replica, send_batches(replica, queue));
  fail_if(replica, copy_saved(replica, queue, 0));
  run_parts(replica, member, queue, kept);
  if (!replica->saved_count) return;
  flow_status status = failed(replica) ? FLOW_OK : flow_accelerated_functions(a)->synchronize(queue);
  if (status != FLOW_OK && status != FLOW_ABORTED) flow_failure_take(&replica->lead->verdict, status);
  flow_device_group_meet(replica->lead->group);
  if (status == FLOW_ABORTED) flow_failure_take(&replica->lead->verdict, status);      /* behind the reason of who refused its data */
  flow_device_group_meet(replica->lead->group);
  if (failed(replica)) fail_if(replica, copy_saved(replica, queue, 1));
}

static void run_member(int member, void *argument)
{
  flow_instance *lead = argument, *replica = lead->replicas[member];
  flow_queue *queue = flow_place_lock(replica->accelerated->place);
  run_replica(replica, member, queue);
  flow_place_unlock(replica->accelerated->place);
}

/* Of several workers an interrupt is a wish to stop: replicas.c. */
static flow_status prepare_run(flow_instance *lead)
{
  flow_profile *profile = lead->context->profile;
  if (!lead->exchange && flow_interrupted(lead->context)) return flow_fail(FLOW_INTERRUPTED, "interrupted");
  for (int r = 0; r < lead->replica_count; r++) {
    flow_instance *replica = lead->replicas[r];
    if (!replica->member_count) FLOW_TRY(flow_instance_set_members(replica, 1));
    replica->profiled = profile && profile->active;
    replica->members_ran = 1;
    if (replica->profiled) memset(replica->members[0].watches, 0, sizeof(flow_watch) * (size_t)lead->plan->order_count);
  }
  flow_failure_clear(&lead->verdict);
  flow_start_sums(lead);
  if (flow_accelerated_exchange(lead)) FLOW_TRY(flow_device_exchange_prepare(flow_accelerated_exchange(lead)));
  return follow_variables(lead, 0);
}

flow_status flow_accelerated_execute(flow_instance *lead)
{
  FLOW_TRY(prepare_run(lead));
  double started = flow_clock();
  note_writes(lead, lead->group ? lead->group->places : NULL);
  flow_device_group_run(lead->group, run_member, lead);
  if (flow_failure_is_set(&lead->verdict)) {
    if (flow_accelerated_exchange(lead)) flow_device_exchange_settle(flow_accelerated_exchange(lead));
    note_writes(lead, NULL);
  }
  flow_status status = flow_failure_raise(&lead->verdict);
  if (status == FLOW_OK) status = follow_variables(lead, 1);
  if (status == FLOW_OK && lead->profiled) flow_profile_add_run(lead->context->profile, lead, flow_clock() - started);
  return status;
}
