/* accelerated.c: see accelerated.h. */
#include "graph/accelerated.h"

#include <string.h>
#include "graph/gather.h"
#include "graph/profile.h"
#include "graph/variable.h"

enum { KEPT = 4, ALIGNMENT = 256 };

/* What was enqueued for so many rows, recorded. */
typedef struct recorded {
  int64_t         rows, runs, used;     /* used: number of the run that repeated it last */
  flow_recording *whole;                /* NULL: not recorded yet */
} recorded;

struct flow_accelerated {
  flow_place   *place;
  flow_queue   *copies;                 /* carries inputs of the next run up, while the place's queue computes */
  char         *inputs, *staged;        /* where runs read their inputs; where the next run's arrive */
  size_t        input_bytes, *offsets;  /* [input] */
  flow_scalars *scalars;
  char        **variables;              /* [value]: where the recordings know them */
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
  size_t values = (size_t)graph->value_count + 1, inputs = (size_t)graph->input_count + 1;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_accelerated) + values * sizeof(char *) + inputs * sizeof(size_t), &block));
  flow_accelerated *a = instance->accelerated = block;
  a->variables = (char **)(a + 1);
  a->offsets = (size_t *)(a->variables + values);
  a->place = flow_place_retain(graph->place);
  for (int k = 0; k < KEPT; k++) a->kept[k].rows = -1;
  return make(instance, a);
}

static void forget(flow_accelerated *a, recorded *r)
{
  functions_of(a)->recording_release(r->whole);
  *r = (recorded){ .rows = -1 };
}

void flow_accelerated_release(flow_instance *instance)
{
  flow_accelerated *a = instance->accelerated;
  if (!a) return;
  flow_place_lock(a->place);
  for (int k = 0; k < KEPT; k++) forget(a, &a->kept[k]);
  if (a->copies) {
    functions_of(a)->release(a->copies, a->staged);
    functions_of(a)->queue_release(a->copies);
  }
  flow_place_unlock(a->place);
  flow_place_free(a->place, a->inputs, a->input_bytes);
  flow_place_free(a->place, a->scalars, sizeof(flow_scalars));
  flow_place_release(a->place);
  flow_free(a);
  instance->accelerated = NULL;
}

/* ---- what a run brings ------------------------------------------------------------------------------------------------------ */

flow_status flow_instance_take_variables(flow_instance *instance)
{
  const flow_graph *graph = instance->plan->graph;
  for (int v = 0; v < graph->value_count; v++)
    if (graph->values[v].kind == FLOW_VALUE_VARIABLE) FLOW_TRY(flow_variable_move_to(graph->values[v].variable, graph->place));
  return FLOW_OK;
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

flow_status flow_accelerated_output(const flow_instance *instance, int value, size_t bytes, flow_tensor *output, size_t offset)
{
  return flow_place_copy(instance->accelerated->place, output->data + offset, instance->bases[instance->plan->roots[value]], bytes);
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

static flow_status enqueue(flow_instance *instance, flow_queue *queue, int begin, int end)
{
  for (int e = begin; e < end; e++) {
    flow_call *call = &instance->members[0].calls[e];
    if (instance->entries[e].alias) continue;
    call->queue = queue;
    FLOW_TRY(instance->entries[e].kernel->run(call, 0, 0, 1));
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
    int nodes = a->kept[k].whole ? functions_of(a)->recording_nodes(a->kept[k].whole) : 0;
    if (nodes > most) most = nodes;
  }
  return most;
}

/* All entries: as they are at the first run, since kernels prepare what cannot be recorded then; recorded at the second one, and repeated
 * from then on. */
static flow_status run_entries(flow_instance *instance, flow_queue *queue, recorded *kept)
{
  const flow_accelerator_functions *f = functions_of(instance->accelerated);
  int all = instance->plan->order_count;
  if (all == 0) return FLOW_OK;
  if (instance->profiled) return enqueue_watched(instance, queue, 0, all);
  if (kept->runs < 2) return enqueue(instance, queue, 0, all);
  if (!kept->whole) FLOW_TRY(record(instance, queue, 0, all, &kept->whole));
  return f->replay(queue, kept->whole);
}

/* What is kept for this number of rows, in place of what was not used for longest. Variables that moved make all of it useless. */
static recorded *find_kept(flow_instance *instance)
{
  flow_accelerated *a = instance->accelerated;
  const flow_graph *graph = instance->plan->graph;
  int moved = 0;
  for (int v = 0; v < graph->value_count; v++) {
    if (graph->values[v].kind != FLOW_VALUE_VARIABLE) continue;
    moved |= a->variables[v] != instance->bases[v];
    a->variables[v] = instance->bases[v];
  }
  recorded *oldest = &a->kept[0];
  for (int k = 0; k < KEPT; k++) {
    if (moved) forget(a, &a->kept[k]);
    if (a->kept[k].rows == instance->rows) return &a->kept[k];
    if (a->kept[k].used < oldest->used) oldest = &a->kept[k];
  }
  forget(a, oldest);
  oldest->rows = instance->rows;
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

static flow_status run(flow_instance *instance, flow_queue *queue)
{
  flow_accelerated *a = instance->accelerated;
  const flow_accelerator_functions *f = functions_of(a);
  recorded *kept = find_kept(instance);
  kept->used = ++a->runs;
  kept->runs++;
  bind(instance);
  FLOW_TRY(f->upload(queue, a->scalars, &instance->scalars, sizeof instance->scalars));
  if (!instance->saved_count) return run_entries(instance, queue, kept);
  FLOW_TRY(copy_saved(instance, queue, 0));
  flow_status status = run_entries(instance, queue, kept);
  if (status == FLOW_OK) status = f->synchronize(queue);
  if (status != FLOW_OK && copy_saved(instance, queue, 1) != FLOW_OK) return status;
  return status;
}

flow_status flow_accelerated_execute(flow_instance *instance)
{
  flow_profile *profile = instance->context->profile;
  if (flow_interrupted(instance->context)) return flow_fail(FLOW_INTERRUPTED, "interrupted");
  if (!instance->member_count) FLOW_TRY(flow_instance_set_members(instance, 1));
  instance->profiled = profile && profile->active;
  instance->members_ran = 1;
  if (instance->profiled) memset(instance->members[0].watches, 0, sizeof(flow_watch) * (size_t)instance->plan->order_count);
  double started = flow_clock();
  FLOW_TRY(follow_variables(instance, 0));
  flow_status status = run(instance, flow_place_lock(instance->accelerated->place));
  flow_place_unlock(instance->accelerated->place);
  if (status == FLOW_OK) status = follow_variables(instance, 1);
  if (status == FLOW_OK && instance->profiled) flow_profile_add_run(profile, instance, flow_clock() - started);
  return status;
}
