/* recordings.c: what a run on a device enqueues. The first run for a number of rows enqueues entry by entry, since kernels are loaded
 * and libraries make plans then, which must not happen while recording. The second run records each section, and from then on the
 * recording is replayed: one call instead of one for each kernel.
 *
 * A recording holds addresses (arena, inputs, variables, workspace, tables), shapes and the communicators of sums, and nothing else that
 * changes between runs; scalars are read from the device's memory. A change of any of these makes it useless: forget_useless,
 * flow_recorded_find and grow in workspace.c see to that. FLOW_KEPT_RECORDINGS are kept; a new one replaces the least recently used. */
#include "run/device/device_run_state.h"

#include "graph/profile.h"
#include "run/binding.h"
#include "run/replicas/replica_set.h"

/* ---- what is enqueued ------------------------------------------------------------------------------------------------------------ */

/* Addresses and shapes of all operands for the current run's rows, once they are needed. */
static flow_status bind(flow_instance *instance, flow_queue *queue)
{
  if (instance->device->bound) return FLOW_OK;
  instance->device->bound = 1;
  flow_bind_run(instance, &instance->members[0]);
  return flow_device_run_make_workspace(instance, queue);
}

/* The call gets the queue and the scalars of the step that it belongs to. */
static flow_status run_entry(flow_instance *instance, flow_queue *queue, int e)
{
  flow_call *call = &instance->members[0].calls[e];
  call->queue = queue;
  call->scalars = &instance->device->batch->scalars;
  return instance->entries[e].kernel->run(call, 0, 0, 1);
}

static int is_lasting(const flow_instance *instance, int e)
{
  return instance->stages[instance->entries[e].segment].fixed;
}

static flow_status enqueue_entry(flow_instance *instance, flow_queue *queue, int e)
{
  return instance->entries[e].alias || is_lasting(instance, e) ? FLOW_OK : run_entry(instance, queue, e);
}

static int is_in_tail(const flow_instance *instance, int e)
{
  return instance->plan->segments[instance->entries[e].segment].tail;
}

/* Enqueues an entry of a replica whose devices add up among themselves: sums go on beside what follows, until one is needed. After the
 * body they vote: the commit tail is for all or none, and what was made of sums that were ended is not to be taken for a result. A plan
 * without a commit tail votes after its last entry. */
static flow_status enqueue_shared(flow_instance *replica, flow_device_exchange *exchange, flow_queue *queue, int e)
{
  const flow_plan *plan = replica->plan;
  int s = replica->entries[e].segment, member = replica->device->member;
  const flow_binding *sum = &replica->entries[e].bindings[1];
  if (is_in_tail(replica, e) && (e == 0 || !is_in_tail(replica, e - 1))) FLOW_TRY(flow_device_exchange_vote(exchange, member, queue));
  if (replica->stages[s].waits_for >= 0) FLOW_TRY(flow_device_exchange_join(exchange, member, queue));
  FLOW_TRY(enqueue_entry(replica, queue, e));
  if (replica->stages[s].collective) {
    const flow_signature *signature = &plan->graph->values[sum->value].signature;
    int64_t count = (int64_t)(flow_value_bytes(signature, 1) / (size_t)flow_dtype_size(signature->dtype));
    FLOW_TRY(flow_device_exchange_sum(exchange, member, queue, signature->dtype, replica->part.bases[sum->root], count));
  }
  if (e + 1 < plan->order_count) return FLOW_OK;
  if (replica->last_sum >= 0 && !is_in_tail(replica, e)) return flow_device_exchange_vote(exchange, member, queue);
  return flow_device_exchange_join(exchange, member, queue);
}

/* Entries begin to end - 1 in order. Where the devices add up among themselves, their sums begin and are awaited between entries. */
static flow_status enqueue_entries(flow_instance *instance, flow_queue *queue, int begin, int end)
{
  flow_device_exchange *exchange = flow_device_run_exchange(instance);
  for (int e = begin; e < end; e++) {
    if (exchange) FLOW_TRY(enqueue_shared(instance, exchange, queue, e));
    else FLOW_TRY(enqueue_entry(instance, queue, e));
  }
  return FLOW_OK;
}

/* What steps that take their batches themselves do: each by its own scalars and place in the order. Their plan is one section. */
static flow_status enqueue_steps(flow_instance *instance, flow_queue *queue, const flow_section *section)
{
  flow_device_run *a = instance->device;
  const flow_tables *t = &a->tables;
  for (int s = 0; s < a->steps; s++) {
    a->batch = a->batches + s;
    FLOW_TRY(flow_device_run_functions(a)->take_batch(queue, t->input, instance->plan->graph->input_count, t->order, t->order_count,
                                                       instance->part.rows, a->batch));
    FLOW_TRY(enqueue_entries(instance, queue, section->begin, section->end));
  }
  return FLOW_OK;
}

/* All entries of a section, or all steps, which are one section. */
static flow_status enqueue(flow_instance *instance, flow_queue *queue, const flow_section *section)
{
  FLOW_TRY(bind(instance, queue));
  instance->device->batch = instance->device->batches;
  if (instance->device->steps) return enqueue_steps(instance, queue, section);
  return enqueue_entries(instance, queue, section->begin, section->end);
}

/* One entry after the other, each waited for: what a profile wants. */
static flow_status enqueue_watched(flow_instance *instance, flow_queue *queue, const flow_section *section)
{
  FLOW_TRY(bind(instance, queue));
  instance->device->batch = instance->device->batches;
  for (int e = section->begin; e < section->end; e++) {
    double started = flow_clock();
    FLOW_TRY(enqueue_entries(instance, queue, e, e + 1));
    FLOW_TRY(flow_device_run_functions(instance->device)->synchronize(queue));
    flow_watch_add(&instance->members[0].watches[e], started);
  }
  return FLOW_OK;
}

flow_status flow_device_run_make_lasting(flow_instance *instance, flow_queue *queue)
{
  if (!instance->derived.fixed || instance->derived.current) return FLOW_OK;
  FLOW_TRY(bind(instance, queue));
  instance->device->batch = instance->device->batches;
  for (int e = 0; e < instance->plan->order_count; e++)
    if (is_lasting(instance, e)) FLOW_TRY(run_entry(instance, queue, e));
  return FLOW_OK;
}

/* ---- what is recorded ------------------------------------------------------------------------------------------------------------ */

/* Records a section; *out: a new recording, NULL after a failure. A recording that has begun must be ended even if an entry failed; that
 * failure is the one that is raised. */
static flow_status record(flow_instance *instance, flow_queue *queue, const flow_section *section, flow_recording **out)
{
  const flow_accelerator_functions *f = flow_device_run_functions(instance->device);
  flow_failure failure = { 0 };
  FLOW_TRY(f->record_begin(queue));
  flow_status status = enqueue(instance, queue, section);
  if (status == FLOW_OK) return f->record_end(queue, out);
  flow_failure_take(&failure, status);
  f->record_end(queue, out);
  f->recording_release(*out);
  *out = NULL;
  return flow_failure_raise(&failure);
}

/* kept->runs counts this run, too. Several steps are recorded at their first run already: one step of the same rows has run before
 * (flow_device_run_steps), so that everything is loaded. */
flow_status flow_device_run_section(flow_instance *instance, flow_queue *queue, flow_recorded *kept, int number)
{
  const flow_accelerator_functions *f = flow_device_run_functions(instance->device);
  const flow_section *section = &instance->device->sections[number];
  if (section->begin == section->end) return FLOW_OK;
  if (instance->run->profiled) return enqueue_watched(instance, queue, section);
  if (kept->runs < 2 && kept->steps <= 1) return enqueue(instance, queue, section);
  if (!kept->sections[number]) FLOW_TRY(record(instance, queue, section, &kept->sections[number]));
  return f->replay(queue, kept->sections[number]);
}

int flow_device_run_nodes(const flow_instance *instance)
{
  const flow_device_run *a = instance->device;
  int most = 0;
  for (int k = 0; k < FLOW_KEPT_RECORDINGS; k++) {
    int nodes = 0, steps = a->kept[k].steps > 1 ? a->kept[k].steps : 1;
    for (int p = 0; p < a->section_count; p++)
      if (a->kept[k].sections[p]) nodes += flow_device_run_functions(a)->recording_nodes(a->kept[k].sections[p]);
    if (nodes / steps > most) most = nodes / steps;
  }
  return most;
}

/* ---- what is kept ---------------------------------------------------------------------------------------------------------------- */

void flow_recorded_drop_sections(flow_device_run *a, flow_recorded *recorded)
{
  for (int p = 0; p < a->section_count; p++) {
    flow_device_run_functions(a)->recording_release(recorded->sections[p]);
    recorded->sections[p] = NULL;
  }
}

/* The record is free then: no run has -1 rows. */
void flow_recorded_forget(flow_device_run *a, flow_recorded *recorded)
{
  flow_recorded_drop_sections(a, recorded);
  *recorded = (flow_recorded){ .rows = -1, .sections = recorded->sections };
}

/* Forgets recordings that the current run must not replay: all of them if variables moved or communicators are new, those that take
 * batches if tables or their order are elsewhere. */
static void forget_useless(flow_instance *instance)
{
  flow_device_run *a = instance->device;
  const flow_device_exchange *exchange = flow_device_run_exchange(instance);
  int64_t generation = exchange ? flow_device_exchange_generation(exchange) : 0;
  int rerecord = instance->set->rerecord || a->generation != generation;
  for (int k = 0; k < FLOW_KEPT_RECORDINGS; k++)
    if (rerecord || (a->tables.changed && a->kept[k].steps)) flow_recorded_forget(a, &a->kept[k]);
  a->generation = generation;
  a->tables.changed = 0;
}

flow_recorded *flow_recorded_find(flow_instance *instance)
{
  flow_device_run *a = instance->device;
  uint64_t division = flow_device_run_exchange(instance) ? instance->set->division : 0;
  flow_recorded *oldest = &a->kept[0];
  forget_useless(instance);
  for (int k = 0; k < FLOW_KEPT_RECORDINGS; k++) {
    flow_recorded *kept = &a->kept[k];
    if (kept->rows == instance->part.rows && kept->division == division && kept->steps == a->steps) return kept;
    if (kept->used < oldest->used) oldest = kept;
  }
  flow_recorded_forget(a, oldest);
  oldest->rows = instance->part.rows;
  oldest->division = division;
  oldest->steps = a->steps;
  return oldest;
}

/* A power of two, so that an epoch needs few different recordings; 1 until one step has run by itself. Few enough that a recording has
 * at most MOST_ENTRIES entries: in a larger one the time between two launches does not matter, and recording takes longer. */
int flow_device_run_steps(const flow_instance *lead, int64_t rows, int64_t most)
{
  enum { MOST_ENTRIES = 1024 };
  const flow_device_run *a = lead->device;
  int has_run = 0, steps = 1;
  for (int k = 0; k < FLOW_KEPT_RECORDINGS; k++) has_run |= a->kept[k].rows == rows && a->kept[k].steps == 1 && a->kept[k].runs > 0;
  if (lead->plan->order_count > 0 && most > MOST_ENTRIES / lead->plan->order_count) most = MOST_ENTRIES / lead->plan->order_count;
  while (has_run && steps * 2 <= most && steps < FLOW_MOST_RECORDED_STEPS) steps *= 2;
  return steps;
}
