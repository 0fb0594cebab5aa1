/* device_run.c: see device_run.h. The parts of a run on a device, by each replica's own thread with its place locked: scalars of the
 * steps are uploaded, what early effects write is copied aside, then the sections are enqueued one after the other (recordings.c), with
 * sums through the host between them if there are any. With one replica and no such sums nothing waits: the run has returned long before
 * the device is done, and the next one can be enqueued. */
#include "run/device/device_run_state.h"

#include <string.h>
#include "graph/profile.h"
#include "graph/variable.h"
#include "run/binding.h"
#include "run/device/all_reduce_by_host.h"
#include "run/profile_run.h"
#include "run/replicas/replica_set.h"
#include "tensor/mirrors.h"

/* Bytes between two inputs: what kernels of libraries may assume of their operands (plan/memory_plan.h). */
enum { ALIGNMENT = 256 };

/* ---- making -------------------------------------------------------------------------------------------------------------- */

/* Queue and memory of the device. The inputs' two copies (see device_inputs.c) have the same layout. After a failure what was made is
 * left to flow_device_run_release. */
static flow_status make(flow_instance *instance, flow_device_run *a)
{
  const flow_graph *graph = instance->plan->graph;
  void *block;
  FLOW_TRY(flow_device_run_functions(a)->queue_new(flow_place_accelerator(a->place), &a->copies));
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
  FLOW_TRY(flow_device_run_functions(a)->allocate(a->copies, a->input_bytes + 1, &block));
  a->staged = block;
  for (int i = 0; i < graph->input_count; i++) instance->part.bases[graph->inputs[i]] = a->inputs + a->offsets[i];
  return FLOW_OK;
}

flow_status flow_device_run_new(flow_instance *instance)
{
  const flow_graph *graph = instance->plan->graph;
  void *block, *kept;
  size_t inputs = (size_t)graph->input_count + 1, most = (size_t)flow_most_sections(instance->plan);
  FLOW_TRY(flow_alloc_zero((FLOW_KEPT_RECORDINGS * sizeof(flow_recording *) + sizeof(flow_section)) * most, &kept));
  flow_status status = flow_alloc_zero(sizeof(flow_device_run) + inputs * (sizeof(size_t) + sizeof(flow_batch_table)), &block);
  if (status != FLOW_OK) {
    flow_free(kept);
    return status;
  }
  flow_device_run *a = instance->device = block;
  a->offsets = (size_t *)(a + 1);
  a->tables.input = (flow_batch_table *)(a->offsets + inputs);
  a->place = flow_place_retain(instance->place);
  for (size_t k = 0; k < FLOW_KEPT_RECORDINGS; k++) a->kept[k].sections = (flow_recording **)kept + k * most;
  a->sections = (flow_section *)((flow_recording **)kept + FLOW_KEPT_RECORDINGS * most);      /* pointers have the larger alignment */
  flow_device_run_cut(instance);
  return make(instance, a);
}

/* What was recorded is forgotten, as the cuts, or the sums inside, may be others. */
void flow_device_run_cut(flow_instance *instance)
{
  flow_device_run *a = instance->device;
  for (int k = 0; k < FLOW_KEPT_RECORDINGS; k++) flow_recorded_forget(a, &a->kept[k]);
  a->section_count = flow_cut_plan(instance, instance->sums != NULL, a->sections);
  a->member = 0;      /* one that is not in the set yet will be the next */
  while (a->member < instance->set->count && instance->set->replicas[a->member] != instance) a->member++;
}

void flow_device_run_release(flow_instance *instance)
{
  flow_device_run *a = instance->device;
  if (!a) return;
  flow_place_lock(a->place);
  for (int k = 0; k < FLOW_KEPT_RECORDINGS; k++) flow_recorded_forget(a, &a->kept[k]);
  if (a->copies) {
    flow_device_run_functions(a)->release(a->copies, a->staged);
    flow_device_run_functions(a)->queue_release(a->copies);
  }
  flow_place_unlock(a->place);
  flow_place_free(a->place, a->workspace, a->workspace_bytes);
  flow_place_free(a->place, a->inputs, a->input_bytes);
  flow_place_free(a->place, a->batches, sizeof(flow_batch_step) * FLOW_MOST_RECORDED_STEPS);
  flow_place_release(a->place);
  flow_device_sums_release(instance->sums);
  instance->sums = NULL;
  flow_free(a->kept[0].sections);          /* and the table after them */
  flow_free(a);
  instance->device = NULL;
}

struct flow_device_exchange *flow_device_run_exchange(const flow_instance *replica)
{
  const flow_device_group *group = replica->set->group;
  return group ? group->exchange : NULL;
}

/* ---- what a run brings ------------------------------------------------------------------------------------------------------ */

/* Recordings know where variables are, so a variable that has moved makes them useless. A replica that records, or runs what is not
 * recorded, does so with all others, as devices record sums together; so rerecord is announced to the other workers (divide.c). */
flow_status flow_device_run_bind_variables(flow_replica_set *set)
{
  const flow_profile *profile = set->run.context->profile;
  set->rerecord |= flow_device_run_exchange(set->lead) && profile && profile->active;
  for (int r = 0; r < set->count; r++) FLOW_TRY(flow_bind_variables(set->replicas[r], &set->rerecord));
  return FLOW_OK;
}

/* Keeps this thread's last error, which is the reason that the others get and the caller returns. */
void flow_device_run_give_up(const flow_replica_set *set)
{
  flow_device_exchange *exchange = flow_device_run_exchange(set->lead);
  flow_failure failure = { 0 };
  if (!exchange || !set->exchange) return;
  flow_failure_take(&failure, FLOW_ABORTED);
  flow_device_exchange_fail(exchange, failure.message);
  flow_failure_raise(&failure);
}

/* Variables of other contexts: their work and this instance's wait for each other. */
static flow_status follow_variables(const flow_instance *instance, int back)
{
  const flow_graph *graph = instance->plan->graph;
  flow_place *own = instance->device->place;
  for (int v = 0; v < graph->value_count; v++) {
    if (graph->values[v].kind != FLOW_VALUE_VARIABLE) continue;
    flow_place *other = flow_tensor_place(graph->values[v].variable->tensor);
    if (other != own) FLOW_TRY(back ? flow_place_follow(other, own) : flow_place_follow(own, other));
  }
  return FLOW_OK;
}

/* What the run writes it writes on all replicas: copies on their devices stay as new as they were. Not so where it failed: then what the
 * first one has counts (places NULL). */
static void note_writes(const flow_replica_set *set, flow_place *const *places)
{
  const flow_plan *plan = set->lead->plan;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (!(flow_op(node->op)->flags & FLOW_OP_EFFECT)) continue;
    for (int i = 0; i < node->input_count; i++) {
      const flow_value *value = &plan->graph->values[plan->roots[node->inputs[i]]];
      if (value->kind == FLOW_VALUE_VARIABLE)
        flow_mirrors_were_written(value->variable->tensor->storage, places, places ? set->count : 0);
    }
  }
}

/* ---- running ---------------------------------------------------------------------------------------------------------------- */

/* Enqueues the copies of what early effects write, aside or back. */
static flow_status copy_undo_log(const flow_instance *instance, flow_queue *queue, int back)
{
  for (int i = 0; i < instance->undo_count; i++) {
    const flow_undo_record *record = &instance->undo_log[i];
    char *aside = instance->undo_memory + record->offset, *storage = instance->part.bases[record->value];
    char *to = back ? storage : aside, *from = back ? aside : storage;
    if (record->bytes) FLOW_TRY(flow_device_run_functions(instance->device)->copy(queue, to, from, record->bytes));
  }
  return FLOW_OK;
}

/* ---- replicas --------------------------------------------------------------------------------------------------------------- */

/* A failure of one replica is one of all: no section is enqueued any more, and no device waits for this one's. */
static void fail_if(flow_instance *replica, flow_status status)
{
  flow_device_exchange *exchange = flow_device_run_exchange(replica);
  if (status == FLOW_OK) return;
  flow_failure_take(&replica->run->verdict, status);
  if (exchange) flow_device_exchange_fail(exchange, replica->run->verdict.message);
}

static int failed(const flow_instance *replica) { return flow_failure_is_set(&replica->run->verdict); }

/* What comes before a section of replica `member`, the same steps on all: sums are fetched; all wait for each other's end of the body. */
static void prepare_section(flow_instance *replica, int member, flow_queue *queue, const flow_section *section)
{
  flow_device_run *a = replica->device;
  if (section->needs >= 0) flow_device_sums_finish(replica->sums, replica, member, section->needs, queue, a->copies);
  if (!section->waits) return;
  if (!failed(replica)) fail_if(replica, flow_device_run_functions(a)->synchronize(queue));
  flow_device_group_meet(replica->set->group);
}

/* Sections in order. The sum over members that a section ends in begins as soon as its gradients are queued, so that it overlaps with
 * the next section. After a failure nothing more is queued, but sums are still begun: other members wait in them. */
static void run_sections(flow_instance *replica, int member, flow_queue *queue, flow_recorded *kept)
{
  flow_device_run *a = replica->device;
  if (replica->sums) flow_device_sums_start(replica->sums);
  for (int i = 0; i < a->section_count; i++) {
    const flow_section *section = &a->sections[i];
    prepare_section(replica, member, queue, section);
    if (!failed(replica)) fail_if(replica, flow_device_run_section(replica, queue, kept, i));
    if (section->sum >= 0) flow_device_sums_begin(replica->sums, replica, member, section->sum, queue, a->copies);
  }
}

/* Uploads the scalars of each of the run's steps, which are batches one after the other: the step counts on. A recording
 * reads them where they are now, so that it can be replayed with others. */
static flow_status send_batches(const flow_instance *replica, flow_queue *queue)
{
  const flow_device_run *a = replica->device;
  flow_batch_step all[FLOW_MOST_RECORDED_STEPS];
  int steps = a->steps > 1 ? a->steps : 1;
  for (int s = 0; s < steps; s++) {
    all[s] = (flow_batch_step){ replica->part.scalars, a->tables.first + s * replica->part.rows };
    all[s].scalars.step += s;
  }
  return flow_device_run_functions(a)->upload(queue, a->batches, all, sizeof *all * (size_t)steps);
}

/* The whole of replica `member`'s run. Where there are early effects it is waited for, and undone on all replicas if it fails on one.
 * The two meetings make all replicas see the same verdict before they look at it; a replica that was only kept from going on by another
 * one (FLOW_ABORTED) gives its reason after that one. */
static void run_replica(flow_instance *replica, int member, flow_queue *queue)
{
  flow_device_run *a = replica->device;
  flow_recorded *kept = flow_recorded_find(replica);
  kept->used = ++a->runs;
  kept->runs++;
  if (flow_device_run_exchange(replica)) flow_device_exchange_start(flow_device_run_exchange(replica), member, kept->runs == 1);
  a->bound = 0;
  fail_if(replica, send_batches(replica, queue));
  fail_if(replica, copy_undo_log(replica, queue, 0));
  if (!failed(replica)) fail_if(replica, flow_device_run_make_lasting(replica, queue));
  run_sections(replica, member, queue, kept);
  if (!replica->undo_count) return;
  flow_status status = failed(replica) ? FLOW_OK : flow_device_run_functions(a)->synchronize(queue);
  if (status != FLOW_OK && status != FLOW_ABORTED) flow_failure_take(&replica->run->verdict, status);
  flow_device_group_meet(replica->set->group);
  if (status == FLOW_ABORTED) flow_failure_take(&replica->run->verdict, status);      /* after that of the replica that refused its data */
  flow_device_group_meet(replica->set->group);
  if (failed(replica)) fail_if(replica, copy_undo_log(replica, queue, 1));
}

/* One replica's step on the thread of its device. The place is locked for the whole step, so that no other run's work comes between its
 * launches. */
static void run_member(int member, void *argument)
{
  const flow_replica_set *set = argument;
  flow_instance *replica = set->replicas[member];
  flow_queue *queue = flow_place_lock(replica->device->place);
  run_replica(replica, member, queue);
  flow_place_unlock(replica->device->place);
}

/* Before the threads begin: members, verdict, sums, the communicators, and the order between this run and other contexts' work with its
 * variables. Of several workers an interrupt is a request to stop: replicas/divide.c. */
static flow_status prepare_run(flow_replica_set *set)
{
  flow_run_state *run = &set->run;
  const flow_profile *profile = run->context->profile;
  if (!set->exchange && flow_interrupted(run->context)) return flow_fail(FLOW_INTERRUPTED, "interrupted");
  run->profiled = profile && profile->active;
  run->members = 1;
  for (int r = 0; r < set->count; r++) {
    flow_instance *replica = set->replicas[r];
    if (!replica->member_count) FLOW_TRY(flow_instance_set_members(replica, 1));
    if (run->profiled) memset(replica->members[0].watches, 0, sizeof(flow_watch) * (size_t)replica->plan->order_count);
  }
  flow_failure_clear(&run->verdict);
  flow_start_sums(set);
  if (flow_device_run_exchange(set->lead)) FLOW_TRY(flow_device_exchange_prepare(flow_device_run_exchange(set->lead)));
  return follow_variables(set->lead, 0);
}

/* note_writes comes first: the device will write, whatever is found out later, and copies of the variables elsewhere are out of date
 * from now on. */
flow_status flow_device_run_execute(flow_replica_set *set)
{
  flow_run_state *run = &set->run;
  FLOW_TRY(prepare_run(set));
  double started = flow_clock();
  for (int r = 0; r < set->count; r++) flow_derived_look(set->replicas[r]);
  note_writes(set, set->group ? set->group->places : NULL);
  for (int r = 0; r < set->count; r++) flow_derived_note_writes(set->replicas[r]);
  flow_device_group_run(set->group, run_member, set);
  set->rerecord = 0;
  for (int r = 0; r < set->count; r++) flow_derived_end_run(set->replicas[r], !flow_failure_is_set(&run->verdict));
  if (flow_failure_is_set(&run->verdict)) {
    if (flow_device_run_exchange(set->lead)) flow_device_exchange_settle(flow_device_run_exchange(set->lead));
    note_writes(set, NULL);
  }
  flow_status status = flow_failure_raise(&run->verdict);
  if (status == FLOW_OK) status = follow_variables(set->lead, 1);
  if (status == FLOW_OK && run->profiled) flow_profile_add_run(run->context->profile, set, flow_clock() - started);
  return status;
}
