/* arena.c: where the values of an instance are in memory: in one block, the arena, each for as long as it lives.
 *
 * Two things make the arena smaller than the sum of its values. Values whose lifetimes (in segments, plan/memory_plan.h) do not overlap
 * may have the same bytes; flow_pack_blocks decides which. And a value that some op would only copy is computed inside its destination:
 * the gradients that pack joins into the optimizer's flat arena, the operand of a sum over replicas, the first rows of what is gathered.
 * Then the op that would copy finds its operand in place and does nothing for it. An inner value has no block of its own; the block of
 * the outermost value lives as long as all that are inside.
 *
 * Three kinds of values keep their bytes for the whole run: what derived.h keeps from run to run, what all_gather makes (other replicas
 * may still read it), and small values on a device, see stands_alone. Besides values the arena has the memory that an entry's kernel
 * shares between members (`shared`) and the partial sums of the slots. */
#include <string.h>

#include "run/instance.h"
#include "plan/memory_plan.h"
#include "tensor/mirrors.h"

static const flow_signature *signature_of(const flow_instance *instance, int value)
{
  return &instance->plan->graph->values[value].signature;
}

/* What flow_make_arena knows while it works; released at its end. A block is a range of the arena with a lifetime; `targets` says where
 * the offset that the packing finds is written. */
typedef struct layout {
  flow_instance *instance;
  flow_block    *blocks;
  size_t       **targets;      /* [block]: where its offset goes */
  int            count;
  int           *inside;       /* [value]: the value that it is computed in, or -1 */
  size_t        *within;       /* [value]: its offset there */
  int           *readers;      /* [value]: of roots: operands that read them */
} layout;

/* The value needs `bytes` bytes during segments [begin, end], both included. */
static void add_block(layout *l, size_t bytes, int begin, int end, size_t *target)
{
  l->blocks[l->count] = (flow_block){ .bytes = bytes, .begin = begin, .end = end };
  l->targets[l->count++] = target;
}

/* Whether a value can be computed inside another one, which is made later and lives as long. What is updated in place shares no memory. */
static int may_lie_inside(const layout *l, int root, int outer)
{
  const flow_plan *plan = l->instance->plan;
  const flow_lifetime *life = &plan->lifetimes[root];
  return plan->graph->values[root].kind == FLOW_VALUE_RESULT && !plan->graph->values[root].late && l->inside[root] < 0 && !life->local &&
         life->defined < plan->lifetimes[outer].defined && plan->graph->nodes[plan->graph->values[root].node].op != FLOW_OP_pack;
}

/* The operands of pack, one after the other, are computed in its output. */
static void place_in_pack(layout *l, const flow_node *node)
{
  size_t offset = 0;
  for (int i = 0; i < node->input_count; i++) {
    int root = l->instance->plan->roots[node->inputs[i]];
    if (may_lie_inside(l, root, node->outputs[0])) {
      l->inside[root] = node->outputs[0];
      l->within[root] = offset;
    }
    offset += flow_value_bytes(signature_of(l->instance, root), 1);
  }
}

/* A sum over replicas is made where its input is, if nothing else reads that; rows that are put together, where the first ones are. */
static void place_in_sum(layout *l, const flow_node *node)
{
  const flow_plan *plan = l->instance->plan;
  int root = plan->roots[node->inputs[0]], sum = node->outputs[0];
  const flow_lifetime *life = &plan->lifetimes[root];
  if (plan->graph->values[root].kind != FLOW_VALUE_RESULT || life->local || l->inside[root] >= 0) return;
  for (int i = 0; i < plan->output_count; i++)
    if (plan->roots[plan->outputs[i]] == root) return;
  if (l->readers[root] != 1 && node->op != FLOW_OP_all_gather) return;
  l->inside[root] = sum;
  l->within[root] = 0;
}

/* Lets values be computed where another op would copy them: gradients land in the optimizer's flat arena, by way of the sums over
 * replicas. From the last node to the first, so that what is in a value is found after where that one is. */
static void place_inside(layout *l)
{
  const flow_plan *plan = l->instance->plan;
  for (int v = 0; v < plan->graph->value_count; v++) l->inside[v] = -1;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    for (int i = 0; i < node->input_count; i++) l->readers[plan->roots[node->inputs[i]]]++;
  }
  for (int k = plan->order_count - 1; k >= 0; k--) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (node->op == FLOW_OP_pack) place_in_pack(l, node);
    if (flow_op(node->op)->flags & FLOW_OP_COLLECTIVE) place_in_sum(l, node);
  }
}

/* The value that v is in, in the end, and where. */
static int outermost(const layout *l, int v, size_t *offset)
{
  for (*offset = 0; l->inside[v] >= 0; v = l->inside[v]) *offset += l->within[v];
  return v;
}

/* Whether a value shares its memory with no other: a small one on a device, where small launches are side by side unless one of them
 * needs what another makes. */
static int stands_alone(const flow_instance *instance, size_t bytes)
{
  enum { SMALL = 2048 };
  return instance->place && bytes <= SMALL;
}

/* Adds a block for each value, each entry's shared memory and each partial sum that has to be somewhere. read: as in flow_make_arena; a
 * value that nothing reads gets no memory, kernels leave such an output out. Values that are local to a segment of rows are in the
 * members' own blocks (chunks.c). */
static void collect_blocks(layout *l, const char *read)
{
  flow_instance *instance = l->instance;
  const flow_plan *plan = instance->plan;
  for (int v = 0; v < plan->graph->value_count; v++) {
    const flow_lifetime *life = &plan->lifetimes[v];
    if (plan->graph->values[v].kind != FLOW_VALUE_RESULT || plan->roots[v] != v || life->defined < 0 || life->local || !read[v] ||
        l->inside[v] >= 0) continue;
    int begin = life->defined, end = life->last_use;
    if (plan->graph->nodes[plan->graph->values[v].node].op == FLOW_OP_all_gather) begin = 0;      /* other replicas may be ahead */
    size_t offset;
    for (int w = 0; w < plan->graph->value_count; w++)
      if (l->inside[w] >= 0 && outermost(l, w, &offset) == v) {
        if (plan->lifetimes[w].defined < begin) begin = plan->lifetimes[w].defined;
        if (plan->lifetimes[w].last_use > end) end = plan->lifetimes[w].last_use;
        if (flow_derived_is_fixed(instance, w)) begin = 0, end = plan->segment_count;
      }
    size_t bytes = flow_value_bytes(signature_of(instance, v), instance->capacity);
    if (flow_derived_is_fixed(instance, v) || stands_alone(instance, bytes)) begin = 0, end = plan->segment_count;
    add_block(l, bytes, begin, end, &instance->offsets[v]);
  }
  for (int s = 0; s < plan->segment_count; s++)
    for (int k = 0; k < plan->segments[s].count; k++) {
      flow_entry *entry = &instance->entries[plan->segments[s].first + k];
      int first = entry->fixed ? 0 : s, last = entry->fixed ? plan->segment_count : s;
      if (entry->shared_bytes) add_block(l, entry->shared_bytes, first, last, &entry->shared_offset);
      for (int i = 0; i < entry->output_count; i++) {
        flow_binding *b = &entry->bindings[entry->input_count + i];
        if (b->mode != FLOW_BIND_PARTIAL) continue;
        b->bytes = (b->bytes + 63) & ~(size_t)63;
        int64_t slots = instance->stages[s].most_slots < instance->capacity ? instance->stages[s].most_slots : instance->capacity;
        add_block(l, b->bytes * (size_t)slots, s, s, &b->offset);
      }
    }
}

/* Memory that kernels use: of the host or of the plan's device. */
flow_status flow_instance_allocate(const flow_instance *instance, size_t bytes, void **out)
{
  flow_place *place = instance->place;
  return place ? flow_place_allocate(place, bytes, out) : flow_alloc(bytes, out);
}

void flow_instance_free(const flow_instance *instance, void *memory, size_t bytes)
{
  if (instance->place) flow_place_free(instance->place, memory, bytes);
  else flow_free(memory);
}

flow_status flow_base_of(const flow_instance *instance, const flow_tensor *tensor, char **out)
{
  *out = (char *)tensor->storage->data;
  if (instance->place) FLOW_TRY(flow_mirror_at(tensor->storage, instance->place, out));
  *out += tensor->data - (char *)tensor->storage->data;
  return FLOW_OK;
}

/* Whether an output can be made anywhere: it is an op's result with a block that only it has. What replicas add up or gather is where all
 * of them expect it. */
static int can_move(const layout *l, int output)
{
  const flow_plan *plan = l->instance->plan;
  int root = plan->roots[plan->outputs[output]];
  const flow_value *value = &plan->graph->values[root];
  size_t within;
  if (value->kind != FLOW_VALUE_RESULT || l->instance->offsets[root] == FLOW_NOT_PLACED || flow_derived_is_fixed(l->instance, root))
    return 0;
  if (flow_op(plan->graph->nodes[value->node].op)->flags & FLOW_OP_COLLECTIVE || l->inside[root] >= 0) return 0;
  for (int v = 0; v < plan->graph->value_count; v++)
    if (l->inside[v] >= 0 && outermost(l, v, &within) == root) return 0;
  for (int i = 0; i < output; i++)
    if (plan->roots[plan->outputs[i]] == root) return 0;
  return 1;
}

flow_status flow_make_arena(flow_instance *instance, const char *read)
{
  const flow_plan *plan = instance->plan;
  size_t values = (size_t)plan->graph->value_count + 1, most = values + instance->operand_count + (size_t)plan->order_count;
  void *memory, *arena;
  FLOW_TRY(flow_alloc_zero(most * (sizeof(flow_block) + sizeof(size_t *)) + values * (sizeof(size_t) + 2 * sizeof(int)), &memory));
  layout l = { .instance = instance, .blocks = memory };
  l.targets = (size_t **)(l.blocks + most);
  l.within = (size_t *)(l.targets + most);
  l.inside = (int *)(l.within + values);
  l.readers = l.inside + values;
  for (size_t v = 0; v < values; v++) instance->offsets[v] = FLOW_NOT_PLACED;
  place_inside(&l);
  collect_blocks(&l, read);
  size_t alignment = instance->place ? FLOW_DEVICE_ALIGNMENT : FLOW_CPU_ALIGNMENT;
  flow_status status = flow_pack_blocks(l.blocks, l.count, alignment, &instance->arena_bytes);
  for (int i = 0; i < l.count; i++) *l.targets[i] = l.blocks[i].offset;
  for (int v = 0; v < plan->graph->value_count; v++)
    if (l.inside[v] >= 0) {
      size_t within;
      int outer = outermost(&l, v, &within);
      instance->offsets[v] = instance->offsets[outer] + within;
    }
  for (int i = 0; i < plan->output_count; i++) instance->output_moves[i] = (char)can_move(&l, i);
  flow_free(memory);
  if (status != FLOW_OK) return status;
  FLOW_TRY(flow_instance_allocate(instance, instance->arena_bytes, &arena));
  instance->arena = arena;
  for (int v = 0; v < plan->graph->value_count; v++) {
    const flow_value *value = &plan->graph->values[v];
    if (instance->offsets[v] != FLOW_NOT_PLACED) instance->part.bases[v] = instance->arena + instance->offsets[v];
    else if (value->kind == FLOW_VALUE_CONSTANT) FLOW_TRY(flow_base_of(instance, value->tensor, &instance->part.bases[v]));
  }
  return FLOW_OK;
}
