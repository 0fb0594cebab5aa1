/* instance.c: making, releasing and describing an instance. See instance.h; what is chosen for the rows of a run is in choose.c, running
 * in executor.c.
 *
 * The order of fill_instance matters: bindings say which operands go by rows; from them follow the sizes of slots and chunks; with these
 * each kernel can be asked how much memory its largest call takes; only then can the arena be laid out. Everything that a run needs is
 * made here, so that a run allocates nothing and cannot run out of memory half way. */
#include "base/float_state.h"
#include "plan/memory_plan.h"
#include "run/binding.h"
#include "run/device/device_run.h"
#include "run/loop_run.h"
#include "run/replicas/replica_set.h"

/* Dtype and shape of a value of the plan; the batch is negative in it. */
static const flow_signature *signature_of(const flow_instance *instance, int value)
{
  return &instance->plan->graph->values[value].signature;
}

/* ---- making ---------------------------------------------------------------------------------------------------------------------- */

/* The tables of an instance. Each has one more element than it needs, so that an empty plan asks for no block of 0 bytes. */
static flow_status allocate_tables(flow_instance *instance)
{
  const flow_plan *plan = instance->plan;
  void *block;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    instance->operand_count += (size_t)(node->input_count + node->output_count);
  }
  FLOW_TRY(flow_alloc_zero(sizeof(flow_entry) * (size_t)(plan->order_count + 1), &block));
  instance->entries = block;
  instance->class_count = flow_count_row_classes(instance);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_kernel *) * (size_t)instance->class_count * (size_t)(plan->order_count + 1), &block));
  instance->kernels = block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_binding) * (instance->operand_count + 1), &block));
  instance->bindings = block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_stage) * (size_t)(plan->segment_count + 1), &block));
  instance->stages = block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_progress) * (size_t)(plan->segment_count + 1), &block));
  instance->part.progress = block;
  size_t values = (size_t)plan->graph->value_count + 1;
  FLOW_TRY(flow_alloc_zero((sizeof(size_t) + sizeof(char *)) * values + (size_t)plan->output_count, &block));
  instance->offsets = block;
  instance->part.bases = (char **)(instance->offsets + values);
  instance->output_moves = (char *)(instance->part.bases + values);
  return FLOW_OK;
}

/* Room for the storage that early effects write: those that come before something that may still refuse data (plan->undo_end). One
 * record for each variable that such an effect has as an input, whether or not it writes it. */
static flow_status make_undo_log(flow_instance *instance)
{
  const flow_plan *plan = instance->plan;
  int most = 0, capacity = 0;
  size_t total = 0;
  void *block;
  for (int k = 0; k < plan->undo_end; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (flow_op(node->op)->flags & FLOW_OP_EFFECT) most += node->input_count;
  }
  FLOW_TRY(flow_grow(&instance->undo_log, sizeof(flow_undo_record), most, &capacity));
  for (int k = 0; k < plan->undo_end; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (!(flow_op(node->op)->flags & FLOW_OP_EFFECT)) continue;
    for (int i = 0; i < node->input_count; i++) {
      int root = plan->roots[node->inputs[i]];
      if (plan->graph->values[root].kind != FLOW_VALUE_VARIABLE) continue;
      flow_undo_record *s = &instance->undo_log[instance->undo_count++];
      *s = (flow_undo_record){ .value = root, .offset = total, .bytes = flow_value_bytes(signature_of(instance, root), 1) };
      total += (s->bytes + 63) & ~(size_t)63;
    }
  }
  FLOW_TRY(flow_instance_allocate(instance, total, &block));
  instance->undo_memory = block;
  instance->undo_bytes = total;
  return FLOW_OK;
}

/* read[value] = 1 for each value that an op reads or the plan gives, and for the root whose memory it is in. */
static void mark_read(const flow_plan *plan, char *read)
{
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    for (int i = 0; i < node->input_count; i++) read[node->inputs[i]] = read[plan->roots[node->inputs[i]]] = 1;
  }
  for (int i = 0; i < plan->output_count; i++) read[plan->outputs[i]] = read[plan->roots[plan->outputs[i]]] = 1;
}

/* Which segments are sums over replicas, and which are the first to need one: a run waits there, and not earlier, so that sums over
 * workers travel while the body goes on. Waiting for a sum waits for all before it, so that a later reader of an earlier one does not
 * wait again. */
static void find_sums(flow_instance *instance)
{
  const flow_plan *plan = instance->plan;
  int known = -1;                        /* the last sum that somebody has waited for */
  instance->last_sum = -1;
  for (int s = 0; s < plan->segment_count; s++) {
    int needed = -1;
    for (int k = 0; k < plan->segments[s].count; k++) {
      const flow_node *node = &plan->graph->nodes[plan->order[plan->segments[s].first + k]];
      if (flow_op(node->op)->flags & FLOW_OP_COLLECTIVE) instance->stages[s].collective = 1;
      for (int i = 0; i < node->input_count; i++) {
        int root = plan->roots[node->inputs[i]], made = plan->lifetimes[root].defined;
        if (made >= 0 && made < s && instance->stages[made].collective && made > needed) needed = made;
      }
    }
    instance->stages[s].waits_for = needed > known ? needed : -1;
    if (needed > known) known = needed;
    if (instance->stages[s].collective) instance->last_sum = s;
  }
}

/* Releases all that fill_instance makes, or the part of it that was made before a failure, and sets it back, so that it can be filled
 * again. */
static void release_memory(flow_instance *instance)
{
  flow_instance_release_members(instance);
  flow_loop_runs_release(instance);
  flow_device_run_release(instance);
  flow_instance_free(instance, instance->undo_memory, instance->undo_bytes);
  flow_free(instance->undo_log);
  flow_derived_release(instance);
  flow_instance_free(instance, instance->arena, instance->arena_bytes);
  flow_free(instance->offsets);
  flow_free(instance->part.progress);
  flow_free(instance->stages);
  flow_free(instance->bindings);
  flow_free(instance->kernels);
  flow_free(instance->entries);
  instance->undo_memory = instance->arena = NULL;
  instance->undo_log = NULL;
  instance->undo_count = 0;
  instance->offsets = NULL;
  instance->part.bases = NULL;
  instance->part.progress = NULL;
  instance->stages = NULL;
  instance->bindings = NULL;
  instance->kernels = NULL;
  instance->entries = NULL;
  instance->arena_bytes = instance->local_bytes = instance->scratch_bytes = instance->operand_count = 0;
}

/* A loop's body is a separate instance inside of the entry that runs it. */
static flow_status make_loops(flow_instance *instance)
{
  for (int e = 0; e < instance->plan->order_count; e++)
    if (instance->plan->graph->nodes[instance->plan->order[e]].op == FLOW_OP_loop) FLOW_TRY(flow_loop_run_new(instance, e));
  return FLOW_OK;
}

/* All of an instance but its set and its place, from the plan and the capacity. work: tables for the time of the layout. On a device
 * kernels are chosen with its place locked, since a library may have to build plans. A failure leaves the rest to release_memory. */
static flow_status fill_instance(flow_instance *instance)
{
  const flow_plan *plan = instance->plan;
  size_t values = (size_t)plan->graph->value_count + 1;
  void *work;
  FLOW_TRY(allocate_tables(instance));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_operand) * (instance->operand_count + 1) + sizeof(flow_block) * (instance->operand_count + 1) +
                           (sizeof(int) + 1) * values, &work));
  flow_operand *operands = work;
  flow_block *blocks = (flow_block *)(operands + instance->operand_count + 1);
  int *block_of = (int *)(blocks + instance->operand_count + 1);
  char *read = (char *)(block_of + values);
  flow_queue *queue = instance->place ? flow_place_lock(instance->place) : NULL;
  mark_read(plan, read);
  flow_bind_entries(instance, read);
  flow_status status = flow_derived_find(instance);
  if (queue && status == FLOW_OK) flow_choose_ahead(instance, instance->capacity, queue);
  for (int s = 0; s < plan->segment_count && status == FLOW_OK; s++) {
    if (plan->segments[s].by_rows) status = flow_size_stage(instance, s, blocks, block_of);
    for (int e = plan->segments[s].first; e < plan->segments[s].first + plan->segments[s].count; e++)
      for (int class = 0; class < instance->class_count && status == FLOW_OK && !instance->entries[e].alias; class++)
        status = flow_choose_kernel(instance, s, e, class, operands, queue);
  }
  if (status == FLOW_OK) flow_set_row_class(instance, instance->class_count - 1);
  if (queue) flow_place_unlock(instance->place);
  find_sums(instance);
  if (status == FLOW_OK) status = flow_make_arena(instance, read);
  if (status == FLOW_OK) status = make_loops(instance);
  if (status == FLOW_OK && plan->undo_end) status = make_undo_log(instance);
  if (status == FLOW_OK && instance->place) status = flow_device_run_new(instance);
  flow_free(work);
  return status;
}

/* As flow_instance_new, on a given place (NULL: the CPU) and as a member of a set of replicas; set NULL: the instance leads a set of one,
 * which it owns. The plan is shared by a reference: instances of it differ in capacity and place only. */
flow_status flow_instance_new_at(flow_plan *plan, double capacity, flow_place *place, flow_replica_set *set, flow_instance **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_instance), &block));
  flow_instance *instance = block;
  instance->plan = flow_plan_retain(plan);
  instance->place = flow_place_retain(place);
  instance->capacity = capacity < 1 ? 1 : (int64_t)capacity;
  instance->set = set;
  flow_status status = set ? FLOW_OK : flow_replica_set_new(instance, &instance->set);
  if (status == FLOW_OK) {
    instance->run = &instance->set->run;
    status = fill_instance(instance);
  }
  if (status != FLOW_OK) {
    flow_instance_release(instance);
    return status;
  }
  *out = instance;
  return FLOW_OK;
}

/* capacity: the most rows of a batch that a run may have. Memory is taken in proportion to it; values share it (memory_plan.h). */
flow_status flow_instance_new(flow_plan *plan, double capacity, flow_instance **out)
{
  FLOW_DEFAULT_FLOATS;
  if (!plan || !out || !(capacity >= 0 && capacity < 1e9))
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_instance_new: a plan and a capacity below 1e9 rows are needed, found %g rows", capacity);
  return flow_instance_new_at(plan, capacity, plan->graph->place, NULL, out);
}

/* A set goes with its lead, and the lead's members with the set; each instance gives back its own memory. */
void flow_instance_release(flow_instance *instance)
{
  if (!instance) return;
  if (instance->set && instance->set->lead == instance) flow_replica_set_release(instance->set);
  release_memory(instance);
  flow_place_release(instance->place);
  flow_plan_release(instance->plan);
  flow_free(instance);
}

/* Everything is laid out again for another capacity: sizes of chunks, and so all offsets, depend on it. After a failure the instance has
 * capacity 0, and runs fail with FLOW_OUT_OF_MEMORY (flow_check_laid_out) until it is resized again. */
flow_status flow_instance_resize(flow_instance *instance, int64_t capacity)
{
  FLOW_DEFAULT_FLOATS;
  release_memory(instance);
  instance->capacity = capacity;
  flow_status status = fill_instance(instance);
  if (status == FLOW_OK) return FLOW_OK;
  release_memory(instance);
  instance->capacity = 0;
  return status;
}

/* To be asked before a run. */
flow_status flow_check_laid_out(const flow_instance *instance)
{
  if (instance->capacity > 0) return FLOW_OK;
  return flow_fail(FLOW_OUT_OF_MEMORY, "there was no memory to make this instance larger");
}

double flow_instance_capacity(const flow_instance *instance)
{
  return instance ? (double)instance->capacity : 0;
}

/* The keys of random ops in the next runs: the seed, the number of the step, the number of the first sample, which a replica's part of a
 * batch begins with. All are whole numbers below 2^53. */
void flow_instance_scalars(flow_instance *instance, double seed, double step, double first_sample)
{
  if (!instance) return;
  instance->run->given = (flow_scalars){ .seed = (uint64_t)(int64_t)seed, .step = (int64_t)step, .first_sample = (int64_t)first_sample };
}

/* ---- describing ------------------------------------------------------------------------------------------------------------------ */

/* Appends the shapes of an entry's operands to the text; of more than MOST inputs or outputs, the FIRST ones and the last. */
static void describe_operands(const flow_instance *instance, const flow_entry *entry, flow_text *out)
{
  enum { MOST = 8, FIRST = 3 };
  for (int i = 0; i < entry->input_count + entry->output_count; i++) {
    const flow_signature *signature = signature_of(instance, entry->bindings[i].value);
    int outputs = i >= entry->input_count, count = outputs ? entry->output_count : entry->input_count;
    int at = outputs ? i - entry->input_count : i;
    if (count > MOST && at == FIRST) flow_text_add(out, " (%d more)", count - FIRST - 1);
    if (count > MOST && at >= FIRST && at < count - 1) continue;
    flow_text_add(out, i == entry->input_count ? " -> " : " ");
    if (signature->dtype != FLOW_FLOAT32) flow_text_add(out, "%s", flow_dtype_name(signature->dtype));
    flow_text_add_shape(out, signature->rank, signature->dims);
  }
}

static void describe_segments(const flow_instance *instance, flow_text *out);

/* One line for each entry: segment, kind, op, variant of the kernel, shapes. scripts/bench and specs read the text. */
static void describe_segment(const flow_instance *instance, int s, flow_text *out)
{
  const flow_segment *segment = &instance->plan->segments[s];
  const flow_stage *stage = &instance->stages[s];
  const char *kind = segment->tail ? "tail" : segment->by_rows ? "rows" : "whole";
  if (segment->by_rows) flow_text_add(out, "%3d rows: %d slots, chunks of %lld\n", s, stage->most_slots, (long long)stage->chunk);
  for (int e = segment->first; e < segment->first + segment->count; e++) {
    const flow_entry *entry = &instance->entries[e];
    flow_text_add(out, "%3d %-5s %-26s %-10s", s, kind, flow_op(instance->plan->graph->nodes[entry->node].op)->name,
                  entry->alias ? "alias" : entry->kernel->variant);
    describe_operands(instance, entry, out);
    flow_text_add(out, "\n");
    if (!entry->loop) continue;
    flow_text_add(out, "%3d each round of the loop:\n", s);
    describe_segments(entry->body, out);
    flow_text_add(out, "%3d the end of the loop\n", s);
  }
}

static void describe_segments(const flow_instance *instance, flow_text *out)
{
  for (int s = 0; s < instance->plan->segment_count; s++) describe_segment(instance, s, out);
}

/* Returns the length of the whole text, as snprintf does; what does not fit is cut. The first lines have the memory; then each segment. */
int flow_instance_describe(const flow_instance *instance, char *text, int size)
{
  flow_text out = flow_text_into(text, size);
  if (!instance) return 0;
  flow_text_add(&out, "arena %zu bytes, local %zu, scratch %zu per thread\n", instance->arena_bytes, instance->local_bytes,
                instance->scratch_bytes);
  if (instance->device) flow_text_add(&out, "recorded: %d launches and copies\n", flow_device_run_nodes(instance));
  if (instance->entries) describe_segments(instance, &out);
  return out.length;
}
