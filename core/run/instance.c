/* instance.c: making an instance: which values are computed chunk by chunk, and where everything lies. See instance.h; what is chosen for
 * the rows of a run is in choose.c, running in executor.c. */
#include "run/device/device_run.h"
#include "base/float_state.h"
#include "run/input_rows.h"
#include "plan/memory_plan.h"
#include "graph/variable.h"
#include <string.h>
#include <unistd.h>

/* Partial sums of one segment may take this much; beyond, fewer slots are used. */
static const size_t max_partial_bytes = (size_t)64 << 20;

/* Share of the second-level cache that a chunk may fill: the rest holds weights and what the next op writes. Sums depend on how rows are
 * grouped into chunks, so where there are any the size is the instruction set's, not this machine's. */
static size_t chunk_budget(int sums)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
  long level2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  long level2 = 0;       /* musl does not say */
#endif
  size_t nominal = flow_cpu_device()->cache_bytes, bytes = sums || level2 <= 0 ? nominal : (size_t)level2;
  return bytes / 5 * 3;
}

static const flow_signature *signature_of(const flow_instance *instance, int value)
{
  return &instance->plan->graph->values[value].signature;
}

/* ---- bindings --------------------------------------------------------------------------------------------------------- */

static void bind(const flow_instance *instance, int value, int row_operand, flow_binding *binding)
{
  const flow_plan *plan = instance->plan;
  const flow_signature *signature = signature_of(instance, value);
  *binding = (flow_binding){ .mode = FLOW_BIND_WHOLE, .value = value, .root = plan->roots[value] };
  if (!row_operand) return;
  binding->mode = plan->lifetimes[binding->root].local ? FLOW_BIND_LOCAL : FLOW_BIND_ROWS;
  binding->row_factor = -signature->dims[0];
  binding->row_bytes = flow_value_bytes(signature, 1);
}

static size_t partial_sum_bytes(int op, const flow_signature *signature)
{
  if (!(flow_op(op)->flags & FLOW_OP_WIDE)) return flow_value_bytes(signature, 1);
  return flow_wide_bytes(flow_shape_size(signature->rank, signature->dims));
}

/* Binds every operand of every entry. read[value]: somebody reads it. */
static void bind_entries(flow_instance *instance, const char *read)
{
  const flow_plan *plan = instance->plan;
  flow_binding *next = instance->bindings;
  for (int s = 0; s < plan->segment_count; s++)
    for (int k = 0; k < plan->segments[s].count; k++) {
      flow_entry *entry = &instance->entries[plan->segments[s].first + k];
      const flow_node *node = &plan->graph->nodes[plan->order[plan->segments[s].first + k]];
      int by_rows = plan->segments[s].by_rows;
      entry->node = plan->order[plan->segments[s].first + k];
      entry->segment = s;
      entry->alias = (flow_op(node->op)->flags & FLOW_OP_ALIAS) != 0;
      entry->bindings = next;
      entry->input_count = node->input_count;
      entry->output_count = node->output_count;
      for (int i = 0; i < node->input_count; i++)
        bind(instance, node->inputs[i], by_rows && flow_node_row_input(plan->graph, node, i), next++);
      for (int i = 0; i < node->output_count; i++, next++) {
        bind(instance, node->outputs[i], by_rows && flow_node_row_output(plan->graph, node, i), next);
        if (!read[node->outputs[i]]) next->mode = FLOW_BIND_NONE;
        else if (by_rows && next->mode == FLOW_BIND_WHOLE) {
          next->mode = FLOW_BIND_PARTIAL;
          next->bytes = partial_sum_bytes(node->op, signature_of(instance, next->value));
        }
      }
    }
}

/* ---- slots and chunks ---------------------------------------------------------------------------------------------------- */

/* Lays out the chunk-sized values of a segment in the member's block, for chunks of this many rows. */
static flow_status place_locals(flow_instance *instance, int s, int64_t rows, flow_block *blocks, int *block_of)
{
  const flow_plan *plan = instance->plan;
  flow_stage *stage = &instance->stages[s];
  int count = 0;
  for (int k = 0; k < plan->segments[s].count; k++) {
    flow_entry *entry = &instance->entries[plan->segments[s].first + k];
    for (int i = entry->input_count + entry->output_count - 1; i >= 0; i--) {   /* outputs first: they define */
      flow_binding *b = &entry->bindings[i];
      if (b->mode != FLOW_BIND_LOCAL) continue;
      if (i >= entry->input_count && b->root == b->value) {
        block_of[b->root] = count;
        blocks[count++] = (flow_block){ .bytes = b->row_bytes * (size_t)rows, .begin = k, .end = k };
      } else {
        blocks[block_of[b->root]].end = k;
      }
    }
  }
  FLOW_TRY(flow_pack_blocks(blocks, count, FLOW_CPU_ALIGNMENT, &stage->local_bytes));
  for (int k = 0; k < plan->segments[s].count; k++) {
    flow_entry *entry = &instance->entries[plan->segments[s].first + k];
    for (int i = 0; i < entry->input_count + entry->output_count; i++)
      if (entry->bindings[i].mode == FLOW_BIND_LOCAL) entry->bindings[i].offset = blocks[block_of[entry->bindings[i].root]].offset;
  }
  return FLOW_OK;
}

/* What one entry of a segment reads and writes of a row in the arena and the inputs. */
static size_t outer_row_bytes(const flow_entry *entry)
{
  size_t bytes = 0;
  for (int i = 0; i < entry->input_count + entry->output_count; i++)
    if (entry->bindings[i].mode == FLOW_BIND_ROWS) bytes += entry->bindings[i].row_bytes;
  return bytes;
}

/* How many rows of a segment a cache holds: what lives inside it at one time (as place_locals laid one row out), and the most
 * that one entry touches outside. */
static int64_t rows_that_fit(const flow_instance *instance, int s, int sums)
{
  const flow_plan *plan = instance->plan;
  size_t outside = 0;
  for (int k = 0; k < plan->segments[s].count; k++) {
    size_t bytes = outer_row_bytes(&instance->entries[plan->segments[s].first + k]);
    if (bytes > outside) outside = bytes;
  }
  size_t row = instance->stages[s].local_bytes + outside, budget = chunk_budget(sums);
  return row < 1 ? (int64_t)budget : row < budget ? (int64_t)(budget / row) : 1;
}

/* Bytes of one slot's partial sums; 0: the segment has none. */
static size_t partial_bytes(const flow_instance *instance, int s)
{
  const flow_plan *plan = instance->plan;
  size_t bytes = 0;
  for (int k = 0; k < plan->segments[s].count; k++) {
    const flow_entry *entry = &instance->entries[plan->segments[s].first + k];
    for (int i = 0; i < entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[entry->input_count + i];
      if (b->mode == FLOW_BIND_PARTIAL) bytes += b->bytes;
    }
  }
  return bytes;
}

/* Limits of one ROWS segment, and the memory of its chunks. */
static flow_status size_stage(flow_instance *instance, int s, flow_block *blocks, int *block_of)
{
  enum { CHUNKS_PER_THREAD = 2 };
  flow_stage *stage = &instance->stages[s];
  size_t partial = partial_bytes(instance, s);
  FLOW_TRY(place_locals(instance, s, 1, blocks, block_of));
  stage->sums = partial > 0;
  stage->most_chunk = rows_that_fit(instance, s, stage->sums);
  stage->most_slots = stage->sums ? FLOW_MAX_SLOTS : CHUNKS_PER_THREAD * flow_team_size();
  while (stage->sums && stage->most_slots > 1 && partial * (size_t)stage->most_slots > max_partial_bytes) stage->most_slots /= 2;
  flow_divide_rows(stage, instance->capacity);
  FLOW_TRY(place_locals(instance, s, stage->chunk, blocks, block_of));
  if (stage->local_bytes > instance->local_bytes) instance->local_bytes = stage->local_bytes;
  return FLOW_OK;
}

void flow_describe_operand(const flow_instance *instance, const flow_binding *binding, int64_t rows, flow_operand *operand)
{
  const flow_value *value = &instance->plan->graph->values[binding->value];
  const flow_signature *signature = &value->signature;
  memset(operand, 0, sizeof *operand);
  operand->unused = binding->mode == FLOW_BIND_NONE;
  operand->dtype = signature->dtype;
  operand->rank = signature->rank;
  flow_resolve_shape(signature, rows, operand->shape);
  if (binding->mode == FLOW_BIND_PARTIAL && (flow_op(instance->plan->graph->nodes[value->node].op)->flags & FLOW_OP_WIDE)) {
    operand->dtype = flow_dtype_is_float(signature->dtype) ? FLOW_FLOAT64 : FLOW_INT64;
    operand->rank = 1;
    operand->shape[0] = (int64_t)(binding->bytes / 8);
  }
  flow_contiguous_strides(operand->rank, operand->shape, operand->strides);
}

/* ---- members ------------------------------------------------------------------------------------------------------------------ */

static void release_members(flow_instance *instance)
{
  for (int m = 0; m < instance->member_count; m++) {
    flow_free(instance->members[m].calls);
    flow_free(instance->members[m].local);
    flow_free(instance->members[m].scratch);
  }
  flow_free(instance->members);
  instance->members = NULL;
  instance->member_count = 0;
}

static flow_status make_member(flow_instance *instance, flow_member *member)
{
  int entries = instance->plan->order_count;
  void *block;
  size_t calls = sizeof(flow_call) * (size_t)(entries + 1), operands_bytes = sizeof(flow_operand) * (instance->operand_count + 1);
  FLOW_TRY(flow_alloc_zero(calls + operands_bytes + sizeof(flow_watch) * (size_t)(entries + 1), &block));
  member->calls = block;
  member->operands = (flow_operand *)(member->calls + entries + 1);
  member->watches = (flow_watch *)(member->operands + instance->operand_count + 1);
  member->rows = -1;
  FLOW_TRY(flow_alloc(instance->local_bytes, &block));
  member->local = block;
  FLOW_TRY(flow_alloc(instance->scratch_bytes, &block));
  member->scratch = block;
  for (int e = 0; e < entries; e++) {
    const flow_entry *entry = &instance->entries[e];
    const flow_node *node = &instance->plan->graph->nodes[entry->node];
    flow_operand *operands = member->operands + (entry->bindings - instance->bindings);
    for (int i = 0; i < entry->input_count + entry->output_count; i++)
      flow_describe_operand(instance, &entry->bindings[i], instance->capacity, &operands[i]);
    member->calls[e] = (flow_call){
      .op = node->op, .attributes = &node->attributes, .input_count = entry->input_count, .output_count = entry->output_count,
      .inputs = operands, .outputs = operands + entry->input_count, .exact = instance->plan->graph->exact,
      .partial = instance->plan->segments[entry->segment].by_rows,
      .scratch = member->scratch, .scalars = &instance->scalars,
      .shared = entry->shared_bytes ? instance->arena + entry->shared_offset : NULL };
  }
  return FLOW_OK;
}

flow_status flow_instance_set_members(flow_instance *instance, int count)
{
  void *block;
  release_members(instance);
  FLOW_TRY(flow_alloc_zero(sizeof(flow_member) * (size_t)count, &block));
  instance->members = block;
  instance->member_count = count;
  for (int m = 0; m < count; m++) {
    flow_status status = make_member(instance, &instance->members[m]);
    if (status != FLOW_OK) {
      release_members(instance);
      return status;
    }
  }
  return FLOW_OK;
}

/* ---- making ---------------------------------------------------------------------------------------------------------------------- */

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
  FLOW_TRY(flow_alloc_zero((sizeof(size_t) + sizeof(char *)) * (size_t)(plan->graph->value_count + 1), &block));
  instance->offsets = block;
  instance->bases = (char **)(instance->offsets + plan->graph->value_count + 1);
  return FLOW_OK;
}

/* Room for the storage that guarded effects write. */
static flow_status make_saved(flow_instance *instance)
{
  const flow_plan *plan = instance->plan;
  int most = 0, capacity = 0;
  size_t total = 0;
  void *block;
  for (int k = 0; k < plan->guarded; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (flow_op(node->op)->flags & FLOW_OP_EFFECT) most += node->input_count;
  }
  FLOW_TRY(flow_grow(&instance->saved, sizeof(flow_saved), most, &capacity));
  for (int k = 0; k < plan->guarded; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (!(flow_op(node->op)->flags & FLOW_OP_EFFECT)) continue;
    for (int i = 0; i < node->input_count; i++) {
      int root = plan->roots[node->inputs[i]];
      if (plan->graph->values[root].kind != FLOW_VALUE_VARIABLE) continue;
      flow_saved *s = &instance->saved[instance->saved_count++];
      *s = (flow_saved){ .value = root, .offset = total, .bytes = flow_value_bytes(signature_of(instance, root), 1) };
      total += (s->bytes + 63) & ~(size_t)63;
    }
  }
  FLOW_TRY(flow_instance_allocate(instance, total, &block));
  instance->saved_bytes = block;
  instance->saved_total = total;
  return FLOW_OK;
}

static void mark_read(const flow_plan *plan, char *read)
{
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    for (int i = 0; i < node->input_count; i++) read[node->inputs[i]] = read[plan->roots[node->inputs[i]]] = 1;
  }
  for (int i = 0; i < plan->output_count; i++) read[plan->outputs[i]] = read[plan->roots[plan->outputs[i]]] = 1;
}

/* Which segments are sums over replicas, and which are the first to need one. */
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

/* All that fill_instance makes. */
static void release_memory(flow_instance *instance)
{
  release_members(instance);
  flow_accelerated_release(instance);
  flow_release_gathered(instance);
  flow_instance_free(instance, instance->saved_bytes, instance->saved_total);
  flow_free(instance->saved);
  flow_instance_free(instance, instance->arena, instance->arena_bytes);
  flow_free(instance->offsets);
  flow_free(instance->stages);
  flow_free(instance->bindings);
  flow_free(instance->kernels);
  flow_free(instance->entries);
  instance->saved_bytes = instance->arena = NULL;
  instance->saved = NULL;
  instance->saved_count = 0;
  instance->offsets = NULL;
  instance->bases = NULL;
  instance->stages = NULL;
  instance->bindings = NULL;
  instance->kernels = NULL;
  instance->entries = NULL;
  instance->arena_bytes = instance->local_bytes = instance->scratch_bytes = instance->operand_count = 0;
}

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
  flow_status status = FLOW_OK;
  flow_queue *queue = instance->place ? flow_place_lock(instance->place) : NULL;
  mark_read(plan, read);
  bind_entries(instance, read);
  for (int s = 0; s < plan->segment_count && status == FLOW_OK; s++) {
    if (plan->segments[s].by_rows) status = size_stage(instance, s, blocks, block_of);
    for (int e = plan->segments[s].first; e < plan->segments[s].first + plan->segments[s].count; e++)
      for (int class = 0; class < instance->class_count && status == FLOW_OK && !instance->entries[e].alias; class++)
        status = flow_choose_kernel(instance, s, e, class, operands, queue);
  }
  if (status == FLOW_OK) flow_set_row_class(instance, instance->class_count - 1);
  if (queue) flow_place_unlock(instance->place);
  find_sums(instance);
  if (status == FLOW_OK) status = flow_make_arena(instance, read);
  if (status == FLOW_OK && plan->guarded) status = make_saved(instance);
  if (status == FLOW_OK && instance->place) status = flow_accelerated_new(instance);
  flow_free(work);
  return status;
}

flow_status flow_instance_new_at(flow_plan *plan, double capacity, flow_place *place, flow_instance **out)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_instance), &block));
  flow_instance *instance = block;
  instance->plan = flow_plan_retain(plan);
  instance->place = flow_place_retain(place);
  instance->capacity = capacity < 1 ? 1 : (int64_t)capacity;
  instance->lead = instance;
  instance->replicas = &instance->lead;
  instance->replica_count = 1;
  flow_status status = fill_instance(instance);
  if (status != FLOW_OK) {
    flow_instance_release(instance);
    return status;
  }
  *out = instance;
  return FLOW_OK;
}

flow_status flow_instance_new(flow_plan *plan, double capacity, flow_instance **out)
{
  FLOW_DEFAULT_FLOATS;
  if (!plan || !out || !(capacity >= 0 && capacity < 1e9))
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_instance_new: a plan and a capacity below 1e9 rows are needed, found %g rows", capacity);
  return flow_instance_new_at(plan, capacity, plan->graph->place, out);
}

void flow_instance_release(flow_instance *instance)
{
  if (!instance) return;
  if (instance->lead == instance) flow_instance_release_replicas(instance);
  release_memory(instance);
  flow_place_release(instance->place);
  flow_plan_release(instance->plan);
  flow_free(instance);
}

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

double flow_instance_capacity(const flow_instance *instance) { return (double)instance->capacity; }

void flow_instance_scalars(flow_instance *instance, double seed, double step, double first_sample)
{
  instance->base = (flow_scalars){ .seed = (uint64_t)(int64_t)seed, .step = (int64_t)step, .first_sample = (int64_t)first_sample };
}

int flow_instance_describe(const flow_instance *instance, char *text, int size)
{
  const flow_plan *plan = instance->plan;
  flow_text out = flow_text_into(text, size);
  flow_text_add(&out, "arena %zu bytes, local %zu, scratch %zu per thread\n", instance->arena_bytes, instance->local_bytes,
                instance->scratch_bytes);
  if (instance->accelerated) flow_text_add(&out, "recorded: %d launches and copies\n", flow_accelerated_nodes(instance));
  for (int s = 0; s < plan->segment_count; s++) {
    const flow_segment *segment = &plan->segments[s];
    const flow_stage *stage = &instance->stages[s];
    if (segment->by_rows)
      flow_text_add(&out, "%3d rows: %d slots, chunks of %lld\n", s, stage->most_slots, (long long)stage->chunk);
    for (int k = 0; k < segment->count; k++) {
      const flow_entry *entry = &instance->entries[segment->first + k];
      const flow_node *node = &plan->graph->nodes[entry->node];
      flow_text_add(&out, "%3d %-5s %-26s %-10s", s, segment->tail ? "tail" : segment->by_rows ? "rows" : "whole",
                    flow_op(node->op)->name, entry->alias ? "alias" : entry->kernel->variant);
      for (int i = 0; i < entry->input_count + entry->output_count; i++) {
        const flow_signature *signature = signature_of(instance, entry->bindings[i].value);
        int outputs = i >= entry->input_count, count = outputs ? entry->output_count : entry->input_count;
        int at = outputs ? i - entry->input_count : i;
        if (count > 8 && at == 3) flow_text_add(&out, " (%d more)", count - 4);
        if (count > 8 && at > 2 && at < count - 1) continue;
        flow_text_add(&out, i == entry->input_count ? " -> " : " ");
        if (signature->dtype != FLOW_FLOAT32) flow_text_add(&out, "%s", flow_dtype_name(signature->dtype));
        flow_text_add_shape(&out, signature->rank, signature->dims);
      }
      flow_text_add(&out, "\n");
    }
  }
  return out.length;
}
