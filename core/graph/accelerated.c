/* accelerated.c: see accelerated.h. */
#include "graph/accelerated.h"

#include <stdio.h>
#include <string.h>
#include "graph/device_exchange.h"
#include "graph/device_sums.h"
#include "graph/gather.h"
#include "graph/parts.h"
#include "graph/profile.h"
#include "graph/variable.h"
#include "tensor/mirrors.h"

enum { KEPT = 4, ALIGNMENT = 256 };

/* What was enqueued for so many rows, recorded. */
typedef struct recorded {
  int64_t          rows, runs, used;    /* used: number of the run that repeated it last */
  uint64_t         division;            /* of the rows: replicas that add up among themselves record together, or none */
  flow_recording **parts;               /* [part]; NULL: not recorded yet, or nothing to do */
} recorded;

struct flow_accelerated {
  flow_place   *place;
  flow_queue   *copies;                 /* carries inputs of the next run up, while the place's queue computes */
  char         *inputs, *staged;        /* where runs read their inputs; where the next run's arrive */
  size_t        input_bytes, *offsets;  /* [input] */
  flow_scalars *scalars;
  char        **variables;              /* [value]: where the recordings know them */
  flow_part    *parts;                  /* how the entries are cut */
  int           part_count, member;     /* member: the replica's number */
  int64_t       generation;             /* of the exchange that recordings hold */
  recorded      kept[KEPT];
  int64_t       runs;
};

static const flow_accelerator_functions *functions_of(const flow_accelerated *a) { return flow_place_accelerator(a->place)->functions; }

flow_status flow_graph_place_constants(flow_graph *graph)
{
  for (int v = 0; v < graph->value_count; v++) {
    flow_tensor *there;
    if (graph->values[v].kind != FLOW_VALUE_CONSTANT) continue;
    FLOW_TRY(flow_tensor_at(graph->values[v].tensor, graph->place, &there));
    flow_tensor_release(graph->values[v].tensor);
    graph->values[v].tensor = there;
  }
  return FLOW_OK;
}

/* ---- making -------------------------------------------------------------------------------------------------------------- */

static flow_status make(flow_instance *instance, flow_accelerated *a)
{
  const flow_graph *graph = instance->plan->graph;
  void *block;
  FLOW_TRY(functions_of(a)->queue_new(flow_place_accelerator(a->place), &a->copies));
  for (int i = 0; i < graph->input_count; i++) {
    size_t bytes = flow_value_bytes(&graph->values[graph->inputs[i]].signature, instance->capacity);
    if (bytes == FLOW_NOT_PLACED) return flow_fail(FLOW_INVALID_ARGUMENT, "input %d of a plan has too many elements", i + 1);
    a->offsets[i] = a->input_bytes;
    a->input_bytes += (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  }
  FLOW_TRY(flow_place_allocate(a->place, a->input_bytes, &block));
  a->inputs = block;
  FLOW_TRY(flow_place_allocate(a->place, sizeof(flow_scalars), &block));
  a->scalars = block;
  FLOW_TRY(functions_of(a)->allocate(a->copies, a->input_bytes + 1, &block));
  a->staged = block;
  for (int i = 0; i < graph->input_count; i++) instance->bases[graph->inputs[i]] = a->inputs + a->offsets[i];
  return FLOW_OK;
}

flow_status flow_accelerated_new(flow_instance *instance)
{
  const flow_graph *graph = instance->plan->graph;
  void *block;
  size_t values = (size_t)graph->value_count + 1, inputs = (size_t)graph->input_count + 1, most = (size_t)flow_most_parts(instance->plan);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_accelerated) + values * sizeof(char *) + inputs * sizeof(size_t), &block));
  flow_accelerated *a = instance->accelerated = block;
  a->variables = (char **)(a + 1);
  a->offsets = (size_t *)(a->variables + values);
  a->place = flow_place_retain(instance->place);
  FLOW_TRY(flow_alloc_zero((KEPT * sizeof(flow_recording *) + sizeof(flow_part)) * most, &block));
  for (size_t k = 0; k < KEPT; k++) a->kept[k].parts = (flow_recording **)block + k * most;
  a->parts = (flow_part *)((flow_recording **)block + KEPT * most);      /* behind the pointers, whose alignment is larger */
  flow_accelerated_cut(instance);
  return make(instance, a);
}

static void forget(flow_accelerated *a, recorded *r)
{
  for (int p = 0; p < a->part_count; p++) {
    functions_of(a)->recording_release(r->parts[p]);
    r->parts[p] = NULL;
  }
  *r = (recorded){ .rows = -1, .parts = r->parts };
}

void flow_accelerated_cut(flow_instance *instance)
{
  flow_accelerated *a = instance->accelerated;
  for (int k = 0; k < KEPT; k++) forget(a, &a->kept[k]);
  a->part_count = flow_cut_plan(instance, instance->sums != NULL, a->parts);
  a->member = 0;
  while (instance->lead->replicas[a->member] != instance) a->member++;
}

void flow_accelerated_release(flow_instance *instance)
{
  flow_accelerated *a = instance->accelerated;
  if (!a) return;
  flow_place_lock(a->place);
  for (int k = 0; k < KEPT && a->parts; k++) forget(a, &a->kept[k]);
  if (a->copies) {
    functions_of(a)->release(a->copies, a->staged);
    functions_of(a)->queue_release(a->copies);
  }
  flow_place_unlock(a->place);
  flow_place_free(a->place, a->inputs, a->input_bytes);
  flow_place_free(a->place, a->scalars, sizeof(flow_scalars));
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
    replica->lead->anew |= a->variables[v] != replica->bases[v];
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
  lead->anew = exchange && profile && profile->active;
  for (int r = 0; r < lead->replica_count; r++) FLOW_TRY(bind_variables(lead->replicas[r]));
  return FLOW_OK;
}

void flow_accelerated_give_up(const flow_instance *lead)
{
  flow_device_exchange *exchange = flow_accelerated_exchange(lead);
  char reason[512];
  if (!exchange || !lead->exchange) return;
  snprintf(reason, sizeof reason, "%s", flow_last_error());
  flow_device_exchange_fail(exchange, reason);
  flow_fail(FLOW_ABORTED, "%s", reason);
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

/* From the host: up on the queue of copies, which may be at it while the last run still computes, and from there to where runs read. */
static flow_status bring_from_host(flow_accelerated *a, int input, const char *host, size_t bytes)
{
  const flow_accelerator_functions *f = functions_of(a);
  size_t at = a->offsets[input];
  flow_queue *queue = flow_place_lock(a->place);
  flow_status status = f->upload(a->copies, a->staged + at, host, bytes);
  if (status == FLOW_OK) status = f->follow(queue, a->copies);
  if (status == FLOW_OK) status = f->copy(queue, a->inputs + at, a->staged + at, bytes);
  if (status == FLOW_OK) status = f->follow(a->copies, queue);
  flow_place_unlock(a->place);
  return status;
}

static flow_status bring_from_device(flow_accelerated *a, int input, flow_place *home, const char *data, size_t bytes)
{
  FLOW_TRY(flow_place_follow(a->place, home));
  FLOW_TRY(flow_place_copy(a->place, a->inputs + a->offsets[input], data, bytes));
  return flow_place_follow(home, a->place);
}

static flow_status bring_gathered(flow_accelerated *a, int input, const flow_tensor *table, const flow_tensor *order, int64_t first,
                                  int64_t rows)
{
  flow_place *home = flow_tensor_place(table), *named = flow_tensor_place(order);
  if (!home || flow_place_device(home) != flow_place_device(a->place) || flow_place_device(named) != flow_place_device(a->place))
    return flow_fail(FLOW_INVALID_ARGUMENT, "input %d is on %s, its order of rows on %s: both must be on %s, where the plan runs",
                     input + 1, flow_place_name(home), flow_place_name(named), flow_place_name(a->place));
  FLOW_TRY(flow_place_follow(a->place, home));
  FLOW_TRY(flow_place_follow(a->place, named));
  FLOW_TRY(flow_place_gather(a->place, table, (const int64_t *)order->data + first, rows, a->inputs + a->offsets[input]));
  FLOW_TRY(flow_place_follow(home, a->place));
  return flow_place_follow(named, a->place);
}

flow_status flow_accelerated_bring(flow_instance *instance, flow_tensor *const *inputs, const flow_tensor *order, int64_t first)
{
  flow_accelerated *a = instance->accelerated;
  const flow_graph *graph = instance->plan->graph;
  for (int i = 0; i < graph->input_count; i++) {
    const flow_signature *signature = &graph->values[graph->inputs[i]].signature;
    size_t bytes = flow_value_bytes(signature, instance->rows), offset = 0;
    int by_rows = signature->rank > 0 && signature->dims[0] < 0;
    if (by_rows && !order) offset = (size_t)first * flow_value_bytes(signature, 1);
    if (bytes == 0) continue;
    if (by_rows && order) {
      FLOW_TRY(bring_gathered(a, i, inputs[i], order, first, instance->rows));
      continue;
    }
    flow_tensor *near = flow_tensor_retain(inputs[i]);
    flow_place *home = flow_tensor_place(near);
    flow_status status = FLOW_OK;
    if (home && flow_place_device(home) != flow_place_device(a->place)) {
      flow_tensor_release(near);
      FLOW_TRY(flow_tensor_at(inputs[i], a->place, &near));
      home = a->place;
    }
    if (home) status = bring_from_device(a, i, home, near->data + offset, bytes);
    else status = bring_from_host(a, i, near->data + offset, bytes);
    flow_tensor_release(near);
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* From one device to another by way of the host. */
static flow_status copy_across(flow_place *from, const char *data, flow_tensor *to, size_t offset, size_t bytes)
{
  void *between;
  FLOW_TRY(flow_alloc(bytes, &between));
  flow_status status = flow_place_download(from, between, data, bytes);
  if (status == FLOW_OK) status = flow_place_upload(flow_tensor_place(to), to->data + offset, between, bytes);
  flow_free(between);
  return status;
}

flow_status flow_accelerated_output(const flow_instance *instance, int value, size_t bytes, flow_tensor *output, size_t offset)
{
  flow_place *place = instance->accelerated->place;
  const char *data = instance->bases[instance->plan->roots[value]];
  if (flow_tensor_place(output) != place) return copy_across(place, data, output, offset, bytes);
  return flow_place_copy(place, output->data + offset, data, bytes);
}

/* ---- running ---------------------------------------------------------------------------------------------------------------- */

/* Addresses and shapes of all operands for this run's rows. */
static void bind(flow_instance *instance)
{
  const flow_plan *plan = instance->plan;
  flow_member *member = &instance->members[0];
  for (int e = 0; e < plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    flow_operand *operands = member->calls[e].inputs;
    if (entry->alias) continue;
    member->calls[e].scalars = instance->accelerated->scalars;
    for (int i = 0; i < entry->input_count + entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[i];
      if (b->mode == FLOW_BIND_WHOLE) operands[i].data = instance->bases[b->root];
      flow_resolve_shape(&plan->graph->values[b->value].signature, instance->rows, operands[i].shape);
      flow_contiguous_strides(operands[i].rank, operands[i].shape, operands[i].strides);
    }
  }
}

static flow_status enqueue_entry(flow_instance *instance, flow_queue *queue, int e)
{
  flow_call *call = &instance->members[0].calls[e];
  if (instance->entries[e].alias) return FLOW_OK;
  call->queue = queue;
  return instance->entries[e].kernel->run(call, 0, 0, 1);
}

static int is_in_tail(const flow_instance *instance, int e)
{
  return instance->plan->segments[instance->entries[e].segment].tail;
}

/* The entry of one of the replicas that add up among themselves: sums go on beside what follows, until somebody needs one. Behind the body
 * they vote: the commit tail is for all or none, and what was made of sums that were ended is not to be taken for a result. */
static flow_status enqueue_shared(flow_instance *replica, flow_device_exchange *exchange, flow_queue *queue, int e)
{
  const flow_plan *plan = replica->plan;
  int s = replica->entries[e].segment, member = replica->accelerated->member;
  const flow_binding *sum = &replica->entries[e].bindings[1];
  if (is_in_tail(replica, e) && (e == 0 || !is_in_tail(replica, e - 1))) FLOW_TRY(flow_device_exchange_vote(exchange, member, queue));
  if (replica->stages[s].waits_for >= 0) FLOW_TRY(flow_device_exchange_join(exchange, member, queue));
  FLOW_TRY(enqueue_entry(replica, queue, e));
  if (replica->stages[s].collective) {
    const flow_signature *signature = &plan->graph->values[sum->value].signature;
    int64_t count = (int64_t)(flow_value_bytes(signature, 1) / (size_t)flow_dtype_size(signature->dtype));
    FLOW_TRY(flow_device_exchange_sum(exchange, member, queue, signature->dtype, replica->bases[sum->root], count));
  }
  if (e + 1 < plan->order_count) return FLOW_OK;
  if (replica->last_sum >= 0 && !is_in_tail(replica, e)) return flow_device_exchange_vote(exchange, member, queue);
  return flow_device_exchange_join(exchange, member, queue);
}

static flow_status enqueue(flow_instance *instance, flow_queue *queue, int begin, int end)
{
  flow_device_exchange *exchange = flow_accelerated_exchange(instance);
  for (int e = begin; e < end; e++) {
    if (exchange) FLOW_TRY(enqueue_shared(instance, exchange, queue, e));
    else FLOW_TRY(enqueue_entry(instance, queue, e));
  }
  return FLOW_OK;
}

/* One after the other, each waited for: what a profile wants. */
static flow_status enqueue_watched(flow_instance *instance, flow_queue *queue, int begin, int end)
{
  for (int e = begin; e < end; e++) {
    double started = flow_clock();
    FLOW_TRY(enqueue(instance, queue, e, e + 1));
    FLOW_TRY(functions_of(instance->accelerated)->synchronize(queue));
    flow_watch_add(&instance->members[0].watches[e], started);
  }
  return FLOW_OK;
}

static flow_status record(flow_instance *instance, flow_queue *queue, int begin, int end, flow_recording **out)
{
  const flow_accelerator_functions *f = functions_of(instance->accelerated);
  FLOW_TRY(f->record_begin(queue));
  flow_status status = enqueue(instance, queue, begin, end), ended = f->record_end(queue, out);
  if (status == FLOW_OK) return ended;
  f->recording_release(*out);
  *out = NULL;
  return status;
}

int flow_accelerated_nodes(const flow_instance *instance)
{
  const flow_accelerated *a = instance->accelerated;
  int most = 0;
  for (int k = 0; k < KEPT; k++) {
    int nodes = 0;
    for (int p = 0; p < a->part_count; p++)
      if (a->kept[k].parts[p]) nodes += functions_of(a)->recording_nodes(a->kept[k].parts[p]);
    if (nodes > most) most = nodes;
  }
  return most;
}

/* The entries [begin, end), as part `part` of what is kept for this number of rows: as they are at the first run, since kernels prepare
 * what cannot be recorded then; recorded at the second one, and repeated from then on. */
static flow_status run_part(flow_instance *instance, flow_queue *queue, recorded *kept, int part, int begin, int end)
{
  const flow_accelerator_functions *f = functions_of(instance->accelerated);
  if (begin == end) return FLOW_OK;
  if (instance->profiled) return enqueue_watched(instance, queue, begin, end);
  if (kept->runs < 2) return enqueue(instance, queue, begin, end);
  if (!kept->parts[part]) FLOW_TRY(record(instance, queue, begin, end, &kept->parts[part]));
  return f->replay(queue, kept->parts[part]);
}

/* What is kept for this number of rows, in place of what was not used for longest. Variables that moved make all of it useless. */
static recorded *find_kept(flow_instance *instance)
{
  flow_accelerated *a = instance->accelerated;
  const flow_device_exchange *exchange = flow_accelerated_exchange(instance);
  uint64_t division = exchange ? instance->lead->division : 0;
  int64_t generation = exchange ? flow_device_exchange_generation(exchange) : 0;
  int anew = instance->lead->anew || a->generation != generation;
  a->generation = generation;
  recorded *oldest = &a->kept[0];
  for (int k = 0; k < KEPT; k++) {
    if (anew) forget(a, &a->kept[k]);
    if (a->kept[k].rows == instance->rows && a->kept[k].division == division) return &a->kept[k];
    if (a->kept[k].used < oldest->used) oldest = &a->kept[k];
  }
  forget(a, oldest);
  oldest->rows = instance->rows;
  oldest->division = division;
  return oldest;
}

static flow_status copy_saved(const flow_instance *instance, flow_queue *queue, int back)
{
  for (int i = 0; i < instance->saved_count; i++) {
    const flow_saved *s = &instance->saved[i];
    char *aside = instance->saved_bytes + s->offset, *storage = instance->bases[s->value];
    if (s->bytes) FLOW_TRY(functions_of(instance->accelerated)->copy(queue, back ? storage : aside, back ? aside : storage, s->bytes));
  }
  return FLOW_OK;
}

/* ---- replicas --------------------------------------------------------------------------------------------------------------- */

/* A failure of one replica is one of all: no part is enqueued any more, and no device waits for this one's. */
static void fail_if(flow_instance *replica, flow_status status)
{
  flow_device_exchange *exchange = flow_accelerated_exchange(replica);
  if (status == FLOW_OK) return;
  flow_verdict_fail(&replica->lead->verdict, status);
  if (exchange) flow_device_exchange_fail(exchange, replica->lead->verdict.message);
}

static int failed(const flow_instance *replica) { return flow_verdict_failed(&replica->lead->verdict); }

/* What comes before a part of replica `member`, the same steps on all: sums are fetched; all wait for each other's end of the body. */
static void prepare_part(flow_instance *replica, int member, flow_queue *queue, const flow_part *part)
{
  flow_accelerated *a = replica->accelerated;
  if (part->needs >= 0) flow_device_sums_finish(replica->sums, replica, member, part->needs, queue, a->copies);
  if (!part->waits) return;
  if (!failed(replica)) fail_if(replica, functions_of(a)->synchronize(queue));
  flow_device_group_meet(replica->lead->group);
}

static void run_parts(flow_instance *replica, int member, flow_queue *queue, recorded *kept)
{
  flow_accelerated *a = replica->accelerated;
  if (replica->sums) flow_device_sums_start(replica->sums);
  for (int p = 0; p < a->part_count; p++) {
    const flow_part *part = &a->parts[p];
    prepare_part(replica, member, queue, part);
    if (!failed(replica)) fail_if(replica, run_part(replica, queue, kept, p, part->begin, part->end));
    if (part->sum >= 0) flow_device_sums_begin(replica->sums, replica, member, part->sum, queue, a->copies);
  }
}

/* The whole of replica `member`'s run; where effects are guarded it is waited for, and undone on all replicas if it fails on one. */
static void run_replica(flow_instance *replica, int member, flow_queue *queue)
{
  flow_accelerated *a = replica->accelerated;
  recorded *kept = find_kept(replica);
  kept->used = ++a->runs;
  kept->runs++;
  if (flow_accelerated_exchange(replica)) flow_device_exchange_start(flow_accelerated_exchange(replica), member, kept->runs == 1);
  bind(replica);
  fail_if(replica, functions_of(a)->upload(queue, a->scalars, &replica->scalars, sizeof replica->scalars));
  fail_if(replica, copy_saved(replica, queue, 0));
  run_parts(replica, member, queue, kept);
  if (!replica->saved_count) return;
  flow_status status = failed(replica) ? FLOW_OK : functions_of(a)->synchronize(queue);
  if (status != FLOW_OK && status != FLOW_ABORTED) flow_verdict_fail(&replica->lead->verdict, status);
  flow_device_group_meet(replica->lead->group);
  if (status == FLOW_ABORTED) flow_verdict_fail(&replica->lead->verdict, status);      /* behind the reason of who refused its data */
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
  flow_verdict_reset(&lead->verdict);
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
  if (flow_verdict_failed(&lead->verdict)) {
    if (flow_accelerated_exchange(lead)) flow_device_exchange_settle(flow_accelerated_exchange(lead));
    note_writes(lead, NULL);
  }
  flow_status status = flow_verdict_raise(&lead->verdict);
  if (status == FLOW_OK) status = follow_variables(lead, 1);
  if (status == FLOW_OK && lead->profiled) flow_profile_add_run(lead->context->profile, lead, flow_clock() - started);
  return status;
}
