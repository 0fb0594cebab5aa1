/* shared_weights.c: what a divided update (sharded_update.c) trains, in memory that all workers see. Else each worker has a copy and
 * fetches the rows that the others have made, after every step. Here it makes its rows where the others read them, so that a step ends
 * with a meeting and nothing is copied.
 *
 * There are two of each array. A step reads one and writes the other, and a worker changes over when its step is done: so a worker that
 * fails before its update still has the step before, whole, whatever the others have written, and one that is lost in the middle of its
 * update leaves nothing torn: the others make its rows from the old ones. Nobody writes an array again before all have done with it, as
 * the next update begins after sums to which all have come.
 *
 * Only divided updates write there. Before anything else does, a process takes its variables out (flow_variable_own); the workers see
 * from what they announce that one of them has, and put them into common memory again. What of the arrays is outside of matrices that are
 * divided is written by each worker, in its own memory; only the pages that such parts have in common with a matrix are shared, and there
 * all workers write the same.
 *
 * A forked child sees what its parent goes on to train.
 *
 * Every worker decides by what all have announced (divide.c), so that all share or none does. */
#define _GNU_SOURCE /* mremap */
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "graph/variable_group.h"
#include "ops/optimizer_layout.h"
#include "run/replicas/replica_set.h"

/* ---- which update -------------------------------------------------------------------------------------------------------------- */

/* The arrays that an update writes: parameters, then slots. Returns how many; 0: they are not all variables. */
static int find_arrays(const flow_graph *graph, const flow_node *node, flow_variable **arrays)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(node->op);
  const char *names[FLOW_MAX_SLOT_KINDS];
  int slots = layout->names(&node->attributes, names);
  for (int k = 0; k <= slots; k++) {
    const flow_value *value = &graph->values[node->inputs[k == 0 ? 1 : layout->slots[k - 1]]];
    if (value->kind != FLOW_VALUE_VARIABLE) return 0;
    arrays[k] = value->variable;
  }
  return 1 + slots;
}

static int is_in(const flow_value *value, flow_variable *const *arrays, int count)
{
  for (int k = 0; k < count; k++)
    if (value->kind == FLOW_VALUE_VARIABLE && value->variable->tensor->storage == arrays[k]->tensor->storage) return 1;
  return 0;
}

/* Whether something besides the update writes the arrays, or reads them after it. */
static int is_used_otherwise(const flow_plan *plan, const flow_node *update, flow_variable *const *arrays, int count)
{
  const flow_graph *graph = plan->graph;
  for (int i = 0; i < plan->output_count; i++)
    if (is_in(&graph->values[plan->roots[plan->outputs[i]]], arrays, count)) return 1;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &graph->nodes[plan->order[k]];
    int writes = flow_op(node->op)->flags & FLOW_OP_EFFECT;
    for (int i = 0; i < node->input_count && node != update; i++) {
      const flow_value *value = &graph->values[plan->roots[node->inputs[i]]];
      int written = writes && flow_effect_writes(node->op, &node->attributes, node->input_count, i);
      if ((written || value->late) && is_in(value, arrays, count)) return 1;
    }
  }
  return 0;
}

/* Whether the update of entry e may write somewhere else than it reads. A guarded one may write nothing, which is known too late. */
static int can_move(const flow_replica_set *set, int e)
{
  const flow_instance *lead = set->lead;
  const flow_node *node = &lead->plan->graph->nodes[lead->entries[e].node];
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(node->op);
  flow_variable *arrays[1 + FLOW_MAX_SLOT_KINDS];
  int count = find_arrays(lead->plan->graph, node, arrays);
  if (count == 0 || lead->place || node->attributes.optimizer.copies > 0) return 0;
  if (flow_optimizer_guard(layout, &node->attributes, node->input_count) >= 0) return 0;
  for (int i = 0; i < lead->undo_count; i++)
    if (is_in(&lead->plan->graph->values[lead->undo_log[i].value], arrays, count)) return 0;
  return !is_used_otherwise(lead->plan, node, arrays, count);
}

/* What was agreed on stays: an instance that is laid out again for more rows goes on with it. */
void flow_find_shared_weights(flow_replica_set *set)
{
  int found = 0;
  set->weights.entry = -1;
  if (!set->exchange || !set->exchange->share_region || !set->exchange->collect) return;
  for (int e = 0; e < set->lead->plan->order_count; e++) {
    if (!flow_is_sharded(set, e)) continue;
    set->weights.entry = e;
    found++;
  }
  if (found != 1 || !can_move(set, set->weights.entry)) set->weights.entry = -1;
}

/* ---- before a run ---------------------------------------------------------------------------------------------------------------- */

/* Whether the arrays are now as sharing needs them: each all that is in its storage, of one group, and alike on all workers. */
static int is_shareable(flow_variable *const *arrays, int count)
{
  const flow_variable_group *group = arrays[0]->group;
  for (int k = 0; k < count; k++) {
    const flow_tensor *t = arrays[k]->tensor;
    if (!group || arrays[k]->group != group || t->storage->place || t->dtype != FLOW_FLOAT32) return 0;
    if (atomic_load_explicit(&t->storage->content, memory_order_relaxed) == 0) return 0; /* others have its address */
    if (t->storage->bytes != (size_t)flow_shape_size(t->rank, t->shape) * sizeof(float)) return 0;
  }
  for (int i = 0; i < group->count; i++)
    if (group->variables[i]->own_checks != 0) return 0;
  return 1;
}

static int arrays_of(const flow_replica_set *set, flow_variable **arrays)
{
  const flow_instance *lead = set->lead;
  return find_arrays(lead->plan->graph, &lead->plan->graph->nodes[lead->entries[set->weights.entry].node], arrays);
}

/* Whether taking out and putting in goes on at almost every step, as where a callback writes variables. */
static int is_in_vain(const flow_shared_weights *weights)
{
  enum { FREE = 8, RUNS = 16 }; /* of how many what they gain is worth one time */
  return weights->times > FREE && weights->runs < (int64_t)weights->times * RUNS;
}

int32_t flow_announced_weights(const flow_replica_set *set)
{
  flow_variable *arrays[1 + FLOW_MAX_SLOT_KINDS];
  if (set->weights.entry < 0 || set->weights.refused || set->exchange->workers < 2 || is_in_vain(&set->weights)) return -1;
  int count = arrays_of(set, arrays);
  const flow_kernel *kernel = set->lead->entries[set->weights.entry].kernel;
  if (!kernel || !kernel->moves || !is_shareable(arrays, count)) return -1;
  const flow_variable_group *group = arrays[0]->group;
  return group->shared == count && group->holder == set->exchange ? (int32_t)group->number : 0;
}

/* The mapping of a region, which its tensors hold. */
typedef struct mapping {
  flow_counted counted;
  flow_shared_region region;
} mapping;

static void release_mapping(void *self)
{
  mapping *m = self;
  munmap(m->region.memory, (size_t)m->region.bytes);
  flow_free(m);
}

static int64_t round_up(int64_t bytes, int64_t page)
{
  return (bytes + page - 1) / page * page;
}

/* Pages of this process alone, with zeros in them, in the place of common ones. Where the system has none those stay. They are made
 * elsewhere and then moved, since a mapping that fails in its place may leave nothing there. */
static void take_out_pages(char *at, int64_t bytes)
{
  void *fresh = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return;
  if (mremap(fresh, (size_t)bytes, (size_t)bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) munmap(fresh, (size_t)bytes);
}

/* Memory of this process alone for the pages of an array at `at` that have nothing of a matrix which is divided. Where the system has none
 * they stay common, which is slower and not wrong. */
static void take_out_rest(const flow_replica_set *set, char *at, int64_t bytes, int64_t page)
{
  const flow_instance *lead = set->lead;
  const flow_node *node = &lead->plan->graph->nodes[lead->entries[set->weights.entry].node];
  int products = node->attributes.optimizer.products;
  int64_t begin = 0;
  for (int i = 0; i <= products; i++) {
    int64_t rows = 0, columns = 0, first = bytes, end;
    if (i < products) {
      flow_sharded_matrix(set, set->weights.entry, i, &rows, &columns);
      first = node->attributes.optimizer.first[i] * (int64_t)sizeof(float);
    }
    end = i < products ? first / page * page : round_up(bytes, page);
    if (end > begin) take_out_pages(at + begin, end - begin);
    begin = round_up(first + rows * columns * (int64_t)sizeof(float), page);
  }
}

/* Tensors over a region: array k of the first half, then of the second. */
static flow_status lay_out(const flow_replica_set *set, mapping *m, flow_variable *const *arrays, int count, int64_t each,
                           flow_tensor **flats)
{
  int64_t page = sysconf(_SC_PAGESIZE), size = flow_shape_size(arrays[0]->tensor->rank, arrays[0]->tensor->shape);
  for (int k = 0; k < 2 * count; k++) {
    char *at = m->region.memory + k * each;
    take_out_rest(set, at, size * (int64_t)sizeof(float), page);
    FLOW_TRY(flow_tensor_new_shared(&m->counted, at, FLOW_FLOAT32, size, &flats[k]));
  }
  return FLOW_OK;
}

static flow_status share(flow_replica_set *set, flow_variable *const *arrays, int count, const flow_shared_region *region, int64_t each)
{
  flow_tensor *flats[2 * (1 + FLOW_MAX_SLOT_KINDS)] = { NULL };
  flow_variable_group *group = arrays[0]->group;
  void *block;
  flow_status status = flow_alloc(sizeof(mapping), &block);
  if (status != FLOW_OK) {
    munmap(region->memory, (size_t)region->bytes);
    return status;
  }
  mapping *m = block;
  flow_counted_init(&m->counted, release_mapping);
  m->region = *region;
  status = lay_out(set, m, arrays, count, each, flats);
  if (status == FLOW_OK) status = flow_variable_group_share(group, arrays, flats, flats + count, count);
  if (status == FLOW_OK) {
    group->holder = set->exchange;
    group->number = region->number;
  }
  flow_tensors_release(flats, 2 * count);
  flow_counted_release(&m->counted);
  return status;
}

flow_status flow_place_weights(flow_replica_set *set)
{
  flow_shared_weights *weights = &set->weights;
  flow_variable *arrays[1 + FLOW_MAX_SLOT_KINDS];
  flow_shared_region region;
  weights->moved = 0;
  if (!set->exchange || weights->agreed < 0) return FLOW_OK;
  int count = arrays_of(set, arrays);
  weights->runs++;
  if (weights->agreed == 0) {
    int64_t each = round_up((int64_t)arrays[0]->tensor->storage->bytes, sysconf(_SC_PAGESIZE));
    FLOW_TRY(set->exchange->share_region(set->exchange, 2 * count * each, &region));
    weights->refused = region.number == 0;
    weights->times++;
    if (weights->refused) return FLOW_OK;
    FLOW_TRY(share(set, arrays, count, &region, each));
  }
  const flow_variable_group *group = arrays[0]->group;
  weights->moved = group->next[0]->data - group->now[0]->data;
  return FLOW_OK;
}

/* If there is no memory for that, they stay common: the others write the same there, unless one of them was stopped in the middle of its
 * update and goes on later. */
void flow_leave_next_weights(flow_replica_set *set)
{
  flow_variable *arrays[1 + FLOW_MAX_SLOT_KINDS];
  arrays_of(set, arrays);
  const flow_variable_group *group = arrays[0]->group;
  for (int k = 0; k < group->shared; k++)
    take_out_pages(group->next[k]->data, round_up((int64_t)group->next[k]->storage->bytes, sysconf(_SC_PAGESIZE)));
}

void flow_doubt_weights(const flow_replica_set *set)
{
  flow_variable *arrays[1 + FLOW_MAX_SLOT_KINDS];
  if (!set->exchange || set->weights.entry < 0) return;
  arrays_of(set, arrays);
  if (arrays[0]->group) arrays[0]->group->holder = NULL;
}

/* ---- binding and after a run ------------------------------------------------------------------------------------------------------ */

flow_status flow_own_written(const flow_replica_set *set)
{
  const flow_instance *instance = set->lead;
  const flow_graph *graph = instance->plan->graph;
  flow_variable *arrays[1 + FLOW_MAX_SLOT_KINDS];
  int count = set->weights.moved ? arrays_of(set, arrays) : 0;
  if (!instance->derived.writes) return FLOW_OK;
  for (int k = 0; k < instance->plan->order_count; k++) {
    const flow_node *node = &graph->nodes[instance->plan->order[k]];
    if (!(flow_op(node->op)->flags & FLOW_OP_EFFECT)) continue;
    for (int i = 0; i < node->input_count; i++) {
      const flow_value *value = &graph->values[instance->plan->roots[node->inputs[i]]];
      int written = flow_effect_writes(node->op, &node->attributes, node->input_count, i);
      if (written && value->kind == FLOW_VALUE_VARIABLE && !is_in(value, arrays, count)) FLOW_TRY(flow_variable_own(value->variable));
    }
  }
  return FLOW_OK;
}

void flow_change_over_weights(flow_replica_set *set)
{
  flow_variable *arrays[1 + FLOW_MAX_SLOT_KINDS];
  if (!set->weights.moved) return;
  arrays_of(set, arrays);
  flow_variable_group_change_over(arrays[0]->group);
  set->weights.moved = 0;
}
