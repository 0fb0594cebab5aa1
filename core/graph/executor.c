/* executor.c: one run of an instance. One parallel region per run: every member of the team walks the same segments with
 * a barrier behind each. Kernels that fail leave a verdict; then the remaining work is skipped (never the barriers) and
 * the commit tail writes nothing. */
#include "graph/profile.h"
#include "graph/variable.h"
#include <string.h>

/* ---- binding operands -------------------------------------------------------------------------------------------------- */

/* Sets shapes and addresses that hold for the whole run. */
static void bind_run(flow_instance *instance, flow_member *member)
{
  const flow_plan *plan = instance->plan;
  int reshape = member->rows != instance->rows;
  for (int e = 0; e < plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    flow_operand *operands = member->calls[e].inputs;
    if (entry->alias) continue;
    for (int i = 0; i < entry->input_count + entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[i];
      if (b->mode == FLOW_BIND_WHOLE) operands[i].data = instance->bases[b->root];
      if (!reshape) continue;
      flow_resolve_shape(&plan->graph->values[b->value].signature, instance->rows, operands[i].shape);
      flow_contiguous_strides(operands[i].rank, operands[i].shape, operands[i].strides);
    }
  }
  member->rows = instance->rows;
}

/* Points an entry's operands to rows [first, first + count) of slot `slot`. */
static void bind_chunk(flow_instance *instance, flow_member *member, int e, int64_t slot, int64_t first, int64_t count)
{
  const flow_entry *entry = &instance->entries[e];
  flow_operand *operands = member->calls[e].inputs;
  for (int i = 0; i < entry->input_count + entry->output_count; i++) {
    const flow_binding *b = &entry->bindings[i];
    switch (b->mode) {
    case FLOW_BIND_ROWS:
      operands[i].data = instance->bases[b->root] + (size_t)first * b->row_bytes;
      operands[i].shape[0] = b->row_factor * count;
      break;
    case FLOW_BIND_LOCAL:
      operands[i].data = member->local + b->offset;
      operands[i].shape[0] = b->row_factor * count;
      break;
    case FLOW_BIND_PARTIAL:
      operands[i].data = instance->arena + b->offset + (size_t)slot * b->bytes;
      break;
    case FLOW_BIND_NONE:       /* no memory, but kernels may count the rows of any operand */
      if (b->row_factor) operands[i].shape[0] = b->row_factor * count;
      break;
    case FLOW_BIND_WHOLE:
      break;
    }
  }
}

/* ---- profiling -------------------------------------------------------------------------------------------------------------- */

static double start_watch(const flow_instance *instance) { return instance->profiled ? flow_clock() : 0; }

static void stop_watch(const flow_instance *instance, flow_member *member, int e, double started)
{
  if (instance->profiled) flow_watch_add(&member->watches[e], started);
}

/* ---- segments ------------------------------------------------------------------------------------------------------------- */

static void prepare_kernels(flow_instance *instance, flow_member *member, int s)
{
  const flow_segment *segment = &instance->plan->segments[s];
  int64_t k;
  while ((k = flow_ticket_take(&instance->stages[s].prepare_ticket)) < segment->count) {
    int e = segment->first + (int)k;
    const flow_entry *entry = &instance->entries[e];
    if (entry->alias || !entry->kernel->prepare || flow_verdict_failed(&instance->verdict)) continue;
    bind_chunk(instance, member, e, 0, 0, 0);
    double started = start_watch(instance);
    flow_status status = entry->kernel->prepare(&member->calls[e]);
    if (status != FLOW_OK) flow_verdict_fail(&instance->verdict, status);
    stop_watch(instance, member, e, started);
  }
}

/* Not in the commit tail: it is done whole or not at all. */
static void look_for_interrupt(flow_instance *instance, const flow_segment *segment)
{
  if (!segment->tail && flow_interrupted(instance->context))
    flow_verdict_fail(&instance->verdict, flow_fail(FLOW_INTERRUPTED, "interrupted"));
}

static void run_slot(flow_instance *instance, flow_member *member, int s, int64_t slot)
{
  const flow_segment *segment = &instance->plan->segments[s];
  const flow_stage *stage = &instance->stages[s];
  int64_t begin = slot * stage->rows_per_slot, end = begin + stage->rows_per_slot;
  if (end > instance->rows) end = instance->rows;
  for (int64_t first = begin; first < end; first += stage->chunk) {
    int64_t count = end - first < stage->chunk ? end - first : stage->chunk;
    look_for_interrupt(instance, segment);
    for (int e = segment->first; e < segment->first + segment->count; e++) {
      const flow_entry *entry = &instance->entries[e];
      flow_call *call = &member->calls[e];
      if (entry->alias) continue;
      if (flow_verdict_failed(&instance->verdict)) return;
      bind_chunk(instance, member, e, slot, first, count);
      call->first_row = first;
      call->accumulate = first > begin;
      double started = start_watch(instance);
      flow_status status = entry->kernel->run(call, 0, 0, 1);
      if (status != FLOW_OK) flow_verdict_fail(&instance->verdict, status);
      stop_watch(instance, member, e, started);
    }
  }
}

/* out[i] = sum over slots of partial[slot][i], in the order of the slots, for i in [begin, end). */
#define ADD_SLOTS(type)                                                                   \
  do {                                                                                    \
    type *sum = (type *)(void *)out;                                                      \
    for (int64_t i = begin; i < end; i++) sum[i] = slots ? ((const type *)(const void *)partial)[i] : 0; \
    for (int64_t slot = 1; slot < slots; slot++) {                                        \
      const type *part = (const type *)(const void *)(partial + (size_t)slot * stride);   \
      for (int64_t i = begin; i < end; i++) sum[i] += part[i];                            \
    }                                                                                     \
  } while (0)

static void add_slots(int dtype, char *out, const char *partial, size_t stride, int64_t slots, int64_t begin, int64_t end)
{
  if (dtype == FLOW_FLOAT32) ADD_SLOTS(float);
  else if (dtype == FLOW_FLOAT64) ADD_SLOTS(double);
  else if (dtype == FLOW_INT64) ADD_SLOTS(int64_t);
}

/* Adds the partial sums of a segment's REDUCE outputs; each member does its share of the elements. */
static void add_partials(flow_instance *instance, int s, int member, int members)
{
  const flow_segment *segment = &instance->plan->segments[s];
  const flow_stage *stage = &instance->stages[s];
  int64_t active = (instance->rows + stage->rows_per_slot - 1) / stage->rows_per_slot;
  for (int e = segment->first; e < segment->first + segment->count; e++) {
    const flow_entry *entry = &instance->entries[e];
    for (int i = 0; i < entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[entry->input_count + i];
      if (b->mode != FLOW_BIND_PARTIAL) continue;
      const flow_signature *signature = &instance->plan->graph->values[b->value].signature;
      int64_t size = flow_shape_size(signature->rank, signature->dims), share = (size + members - 1) / members;
      share = (share + 15) & ~(int64_t)15;
      int64_t begin = share * member, end = begin + share < size ? begin + share : size;
      double started = start_watch(instance);
      if (begin < end) add_slots(signature->dtype, instance->bases[b->root], instance->arena + b->offset, b->bytes, active, begin, end);
      stop_watch(instance, &instance->members[member], e, started);
    }
  }
}

static void run_rows_segment(flow_instance *instance, flow_region *region, int s, int member, int members)
{
  flow_stage *stage = &instance->stages[s];
  flow_member *own = &instance->members[member];
  int64_t slot, active = (instance->rows + stage->rows_per_slot - 1) / stage->rows_per_slot;
  if (stage->prepares) {
    prepare_kernels(instance, own, s);
    flow_region_barrier(region);
  }
  while ((slot = flow_ticket_take(&stage->slot_ticket)) < active) run_slot(instance, own, s, slot);
  flow_region_barrier(region);
  if (stage->sums) {
    add_partials(instance, s, member, members);
    flow_region_barrier(region);
  }
}

static void run_whole_segment(flow_instance *instance, flow_region *region, int s, int member, int members)
{
  int e = instance->plan->segments[s].first;
  const flow_entry *entry = &instance->entries[e];
  const flow_call *call = &instance->members[member].calls[e];
  flow_cut cut;
  if (entry->alias) return;   /* without a barrier, so nobody may change the verdict here */
  if (member == 0) look_for_interrupt(instance, &instance->plan->segments[s]);
  flow_cut_call(flow_op(call->op), entry->kernel, call, &cut);
  if (entry->kernel->prepare) {   /* a MAP kernel over a batch of fixed size */
    if (flow_ticket_take(&instance->stages[s].prepare_ticket) == 0 && !flow_verdict_failed(&instance->verdict)) {
      double started = start_watch(instance);
      flow_status status = entry->kernel->prepare(call);
      if (status != FLOW_OK) flow_verdict_fail(&instance->verdict, status);
      stop_watch(instance, &instance->members[member], e, started);
    }
    flow_region_barrier(region);
  }
  flow_run_parts(region, members, entry->kernel, call, &cut, instance->stages[s].tickets, &instance->verdict,
                 instance->profiled ? &instance->members[member].watches[e] : NULL);
}

static void run_member(flow_region *region, int member, int members, void *argument)
{
  flow_instance *instance = argument;
  const flow_plan *plan = instance->plan;
  bind_run(instance, &instance->members[member]);
  if (instance->profiled) {
    memset(instance->members[member].watches, 0, sizeof(flow_watch) * (size_t)plan->order_count);
    if (member == 0) instance->members_ran = members;
  }
  for (int s = 0; s < plan->segment_count; s++) {
    /* Every member is past the last barrier of the body here, so all see the same verdict and leave together. */
    if (plan->segments[s].tail && flow_verdict_failed(&instance->verdict)) return;
    if (plan->segments[s].by_rows) run_rows_segment(instance, region, s, member, members);
    else run_whole_segment(instance, region, s, member, members);
  }
}

/* Runs shorter than this gain less from other threads than waking them costs. */
static const double worth_a_team = 60e-6;

/* How many members the next run takes. The first runs go alone and are timed (the second finds caches and pages warm), so
 * that a small plan never wakes the team. Results do not depend on it. */
static int choose_members(const flow_instance *instance)
{
  double rows = instance->rows > 0 ? (double)instance->rows : 1;
  if (instance->runs_alone < 2 || instance->seconds_per_row * rows < worth_a_team) return 1;
  return flow_team_size();
}

/* Copies what guarded effects write aside, or back. */
static void copy_saved(const flow_instance *instance, int back)
{
  for (int i = 0; i < instance->saved_count; i++) {
    const flow_saved *s = &instance->saved[i];
    char *aside = instance->saved_bytes + s->offset, *storage = instance->bases[s->value];
    if (s->bytes) memcpy(back ? storage : aside, back ? aside : storage, s->bytes);
  }
}

flow_status flow_execute(flow_instance *instance)
{
  int members = choose_members(instance);
  if (members > instance->member_count) FLOW_TRY(flow_instance_set_members(instance, members));
  for (int s = 0; s < instance->plan->segment_count; s++) {
    flow_stage *stage = &instance->stages[s];
    flow_ticket_reset(&stage->slot_ticket);
    flow_ticket_reset(&stage->prepare_ticket);
    for (int p = 0; p < FLOW_MAX_PHASES; p++) flow_ticket_reset(&stage->tickets[p]);
  }
  flow_verdict_reset(&instance->verdict);
  copy_saved(instance, 0);
  flow_profile *profile = instance->context->profile;
  instance->profiled = profile && profile->active;
  double started = flow_clock();
  flow_team_run(members, run_member, instance);
  if (instance->profiled) flow_profile_add_run(profile, instance, flow_clock() - started);
  if (flow_verdict_failed(&instance->verdict)) {
    copy_saved(instance, 1);
    return flow_verdict_raise(&instance->verdict);
  }
  if (members == 1) {
    double seconds = (flow_clock() - started) / (double)(instance->rows > 0 ? instance->rows : 1);
    if (instance->runs_alone == 0 || seconds < instance->seconds_per_row) instance->seconds_per_row = seconds;
    if (instance->runs_alone < 2) instance->runs_alone++;
  }
  return FLOW_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */

/* Checks one input against the signature and finds the rows that it brings; rows < 0: not known yet. first >= 0: the run
 * takes *rows rows from there on, more are fine; first < 0: all of them. */
static flow_status check_input(const flow_instance *instance, int index, const flow_tensor *tensor, int64_t first, int64_t *rows)
{
  const flow_signature *s = &instance->plan->graph->values[instance->plan->graph->inputs[index]].signature;
  FLOW_TRY(flow_check_concrete("input of a plan", tensor));
  int fits = tensor->dtype == s->dtype && tensor->rank == s->rank;
  for (int d = 0; d < s->rank && fits; d++) {
    if (s->dims[d] >= 0) {
      fits = tensor->shape[d] == s->dims[d];
      continue;
    }
    int64_t found = tensor->shape[d] / -s->dims[d];
    if (*rows < 0) *rows = found;
    fits = first >= 0 ? found >= *rows && found - *rows >= first : tensor->shape[d] == -s->dims[d] * *rows;
  }
  if (!fits)
    return flow_fail(FLOW_INVALID_ARGUMENT, "input %d is %s %s, the plan was traced for %s %s", index + 1, flow_dtype_name(tensor->dtype),
                     flow_shape_text(tensor->rank, tensor->shape), flow_dtype_name(s->dtype), flow_shape_text(s->rank, s->dims));
  return FLOW_OK;
}

/* Checks the inputs, finds the rows of the run and takes the instance: on success the caller sets running to 0 again. */
static flow_status begin_run(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, int64_t first,
                             int64_t rows)
{
  const flow_graph *graph = instance->plan->graph;
  if (count != graph->input_count)
    return flow_fail(FLOW_INVALID_ARGUMENT, "the plan takes %d inputs, found %d", graph->input_count, count);
  for (int i = 0; i < count; i++) FLOW_TRY(check_input(instance, i, inputs[i], first, &rows));
  if (rows > instance->capacity)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%lld rows are more than the instance's capacity of %lld", (long long)rows,
                     (long long)instance->capacity);
  int idle = 0;
  if (!atomic_compare_exchange_strong(&instance->running, &idle, 1))
    return flow_fail(FLOW_INVALID_STATE, "this instance runs in another thread; make one instance per concurrent caller");
  for (int i = 0; i < count; i++) {
    const flow_signature *signature = &graph->values[graph->inputs[i]].signature;
    int by_rows = signature->rank > 0 && signature->dims[0] < 0 && first > 0;
    instance->bases[graph->inputs[i]] = inputs[i]->data + (by_rows ? (size_t)first * flow_value_bytes(signature, 1) : 0);
  }
  for (int v = 0; v < graph->value_count; v++)
    if (graph->values[v].kind == FLOW_VALUE_VARIABLE) instance->bases[v] = graph->values[v].variable->tensor->data;
  instance->rows = rows < 0 ? 1 : rows;
  instance->context = context;
  return FLOW_OK;
}

static const flow_signature *output_signature(const flow_instance *instance, int index)
{
  return &instance->plan->graph->values[instance->plan->outputs[index]].signature;
}

/* Runs and gives the outputs. Their memory is taken before, so that nothing can fail once the effects are done. */
static flow_status run_with_outputs(flow_instance *instance, flow_tensor **outputs)
{
  const flow_plan *plan = instance->plan;
  int made = 0;
  flow_status status = FLOW_OK;
  for (; made < plan->output_count; made++) {
    const flow_signature *signature = output_signature(instance, made);
    int64_t shape[FLOW_MAX_RANK];
    flow_resolve_shape(signature, instance->rows, shape);
    FLOW_TRY_GOTO(flow_tensor_new_uninitialized(signature->dtype, signature->rank, shape, &outputs[made]), failed);
  }
  FLOW_TRY_GOTO(flow_execute(instance), failed);
  for (int i = 0; i < plan->output_count; i++) {
    size_t bytes = flow_value_bytes(output_signature(instance, i), instance->rows);
    if (bytes) memcpy(outputs[i]->data, instance->bases[plan->roots[plan->outputs[i]]], bytes);
  }
  return FLOW_OK;
failed:
  for (int i = 0; i < made; i++) flow_tensor_release(outputs[i]);
  return status;
}

flow_status flow_instance_run(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, flow_tensor **outputs)
{
  flow_tensor *contiguous[FLOW_MAX_OPERANDS] = { NULL };
  flow_status status = FLOW_OK;
  if (count > FLOW_MAX_OPERANDS) return flow_fail(FLOW_UNSUPPORTED, "a plan takes at most %d inputs, found %d", FLOW_MAX_OPERANDS, count);
  for (int i = 0; i < count && status == FLOW_OK; i++) {
    status = flow_check_concrete("input of a plan", inputs[i]);
    if (status == FLOW_OK) status = flow_tensor_contiguous(inputs[i], &contiguous[i]);
  }
  if (status == FLOW_OK) status = begin_run(context, instance, contiguous, count, -1, -1);
  if (status == FLOW_OK) {
    status = outputs ? run_with_outputs(instance, outputs) : flow_execute(instance);
    atomic_store(&instance->running, 0);
  }
  for (int i = 0; i < count; i++) flow_tensor_release(contiguous[i]);
  return status;
}

flow_status flow_instance_run_rows(flow_context *context, flow_instance *instance, flow_tensor *const *inputs, int count, double first,
                                   double rows)
{
  for (int i = 0; i < count; i++) {
    FLOW_TRY(flow_check_concrete("input of a plan", inputs[i]));
    if (!flow_tensor_is_contiguous(inputs[i])) return flow_fail(FLOW_INVALID_ARGUMENT, "input %d is not contiguous", i + 1);
  }
  if (!(rows >= 0)) return flow_fail(FLOW_INVALID_ARGUMENT, "the number of rows is %g", rows);
  if (!(first >= 0 && first < 0x1p53)) return flow_fail(FLOW_INVALID_ARGUMENT, "the first row is %g", first);
  if (rows > (double)instance->capacity)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%.0f rows are more than the instance's capacity of %lld", rows, (long long)instance->capacity);
  FLOW_TRY(begin_run(context, instance, inputs, count, (int64_t)first, (int64_t)rows));
  flow_status status = flow_execute(instance);
  atomic_store(&instance->running, 0);
  return status;
}
