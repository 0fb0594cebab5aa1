/* derived.c: see derived.h. Whether a storage was written to since is seen from its content number (tensor/tensor.h), which changes with
 * each write and which no other storage has. 0 says that others than this library may write at any time, and is never equal. All
 * functions here are called between runs, by the thread that has the run; the members only read `current`. */
#include "run/instance.h"

#include "graph/variable.h"
#include "tensor/mirrors.h"

/* The storage of a variable or a constant, borrowed; NULL: the value has none of its own. */
static flow_storage *storage_of(const flow_value *value)
{
  if (value->kind == FLOW_VALUE_VARIABLE) return value->variable->tensor->storage;
  return value->kind == FLOW_VALUE_CONSTANT ? value->tensor->storage : NULL;
}

/* Variables that the plan assigns, and others with the same storage. */
static void leave_out_assigned(flow_instance *instance)
{
  const flow_graph *graph = instance->plan->graph;
  for (int k = 0; k < instance->plan->order_count; k++) {
    const flow_node *node = &graph->nodes[instance->plan->order[k]];
    if (node->op != FLOW_OP_assign) continue;
    const flow_storage *written = storage_of(&graph->values[instance->plan->roots[node->inputs[0]]]);
    for (int v = 0; v < graph->value_count; v++)
      if (written && storage_of(&graph->values[v]) == written) instance->derived.fixed[v] = 0;
  }
}

/* Whether a value has one entry or more for each row of the batch: it then differs from run to run. */
static int has_rows(const flow_signature *signature)
{
  for (int d = 0; d < signature->rank; d++)
    if (signature->dims[d] < 0) return 1;
  return 0;
}

/* Whether a node sees fixed values only. */
static int follows(const flow_instance *instance, const flow_node *node)
{
  const flow_graph *graph = instance->plan->graph;
  if (node->input_count == 0 || flow_op(node->op)->flags & (FLOW_OP_RANDOM | FLOW_OP_COLLECTIVE)) return 0;
  for (int i = 0; i < node->input_count; i++)
    if (!instance->derived.fixed[instance->plan->roots[node->inputs[i]]]) return 0;
  for (int i = 0; i < node->output_count; i++)
    if (has_rows(&graph->values[node->outputs[i]].signature)) return 0;
  return 1;
}

/* The inputs that the first phase of an op's kernels reads, where it does nothing but prepare; else 0. */
static unsigned first_phase_reads(int op)
{
  unsigned reads = 0;
  for (const flow_kernel *kernel = flow_cpu_device()->kernels[op]; kernel && kernel->run; kernel++) reads |= kernel->first_phase_reads;
  return reads;
}

/* Whether what prepares an entry sees fixed values only: its first phase, or prepare(), which sees inputs without rows. */
static int prepares_fixed(const flow_instance *instance, const flow_entry *entry)
{
  const unsigned reads = first_phase_reads(instance->plan->graph->nodes[entry->node].op);
  int seen = 0;
  for (int i = 0; i < entry->input_count && reads; i++)
    if (reads >> i & 1 && !instance->derived.fixed[entry->bindings[i].root]) return 0;
  if (reads) return 1;
  for (int i = 0; i < entry->input_count; i++) {
    const flow_binding *b = &entry->bindings[i];
    if (b->mode != FLOW_BIND_WHOLE) continue;
    if (!instance->derived.fixed[b->root]) return 0;
    seen++;
  }
  return seen > 0;
}

/* One block for both tables, which have a place for each value: 64-bit hashes of the contents first, for their alignment, then the
 * flags. */
static flow_status make_tables(flow_instance *instance)
{
  size_t values = (size_t)instance->plan->graph->value_count + 1;
  void *block;
  FLOW_TRY(flow_alloc_zero((sizeof(uint64_t) + 1) * values, &block));
  instance->derived.contents = block;
  instance->derived.fixed = (char *)((uint64_t *)block + values);
  return FLOW_OK;
}

/* On a device: what the plan says, segments of one entry each. */
static flow_status find_lasting(flow_instance *instance)
{
  const flow_plan *plan = instance->plan;
  for (int e = 0; e < plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    const flow_node *node = &plan->graph->nodes[entry->node];
    if (node->output_count == 0 || !plan->graph->values[node->outputs[0]].lasting) continue;
    if (!instance->derived.fixed) FLOW_TRY(make_tables(instance));
    instance->stages[entry->segment].fixed = 1;
    for (int i = 0; i < node->input_count; i++) instance->derived.fixed[node->inputs[i]] = 1;
    for (int i = 0; i < node->output_count; i++) instance->derived.fixed[node->outputs[i]] = 1;
  }
  return FLOW_OK;
}

/* One pass in the plan's order is enough: a node comes after what it reads. In segments of rows only what prepare() makes is kept, since
 * their values are in memory that a member uses again for the next chunk. Without memory the status of flow_alloc_zero, and nothing is
 * kept. */
flow_status flow_derived_find(flow_instance *instance)
{
  const flow_plan *plan = instance->plan;
  instance->derived.writes = flow_graph_writes(plan->graph);
  if (instance->place) return find_lasting(instance);
  if (flow_graph_trains(plan->graph)) return FLOW_OK; /* nothing that it reads lasts until its next run */
  FLOW_TRY(make_tables(instance));
  for (int v = 0; v < plan->graph->value_count; v++) {
    const flow_storage *storage = storage_of(&plan->graph->values[v]);
    instance->derived.fixed[v] = storage && atomic_load_explicit(&storage->content, memory_order_relaxed) != 0;
  }
  leave_out_assigned(instance);
  for (int s = 0; s < plan->segment_count; s++)
    for (int e = plan->segments[s].first; e < plan->segments[s].first + plan->segments[s].count; e++) {
      flow_entry *entry = &instance->entries[e];
      const flow_node *node = &plan->graph->nodes[entry->node];
      int fixed = !plan->segments[s].by_rows && !entry->alias && follows(instance, node);
      for (int i = 0; i < node->output_count && fixed; i++) instance->derived.fixed[node->outputs[i]] = 1;
      if (!plan->segments[s].by_rows) instance->stages[s].fixed = fixed;
      entry->fixed = !fixed && !entry->alias && prepares_fixed(instance, entry);
    }
  return FLOW_OK;
}

void flow_derived_release(flow_instance *instance)
{
  flow_free(instance->derived.contents);
  instance->derived = (flow_derived){ 0 };
}

int flow_derived_is_fixed(const flow_instance *instance, int value) { return instance->derived.fixed && instance->derived.fixed[value]; }

void flow_derived_forget(flow_instance *instance) { instance->derived.made = 0; }

/* The content numbers are noted before the run and not after it: a write during the run is then seen by the next one. Sets `current`,
 * which the members of the run read to skip segments and prepare(). What is out of date counts as not made from here on: the run may end
 * before it makes anything, such as that of a loop's body with no round to do. */
void flow_derived_look(flow_instance *instance)
{
  const flow_graph *graph = instance->plan->graph;
  int same = instance->derived.made;
  for (int v = 0; v < graph->value_count && instance->derived.fixed; v++) {
    flow_storage *storage = instance->derived.fixed[v] ? storage_of(&graph->values[v]) : NULL;
    if (!storage) continue;
    uint64_t content = atomic_load_explicit(&storage->content, memory_order_relaxed);
    if (content == 0 || content != instance->derived.contents[v]) same = 0;
    instance->derived.contents[v] = content;
  }
  instance->derived.current = instance->derived.made = same;
}

/* On a device what the run writes it renews, too: content numbers are noted again when they are those of its own writes. */
void flow_derived_note_writes(flow_instance *instance)
{
  int current = instance->derived.current;
  flow_derived_look(instance);
  instance->derived.current = current;
}

void flow_derived_end_run(flow_instance *instance, int succeeded)
{
  instance->derived.made = succeeded && instance->derived.fixed;
}

/* Gives new content numbers to the variables that the plan writes, so that plans of other instances see that what they keep is out of date.
 * That happens after failed runs, too: an early effect may have been written and put back. */
void flow_derived_note_run(flow_instance *instance, int succeeded)
{
  const flow_plan *plan = instance->plan;
  flow_derived_end_run(instance, succeeded);
  for (int k = 0; k < plan->order_count && instance->derived.writes; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (!(flow_op(node->op)->flags & FLOW_OP_EFFECT)) continue;
    for (int i = 0; i < (node->op == FLOW_OP_assign ? 1 : node->input_count); i++) {
      flow_storage *storage = storage_of(&plan->graph->values[plan->roots[node->inputs[i]]]);
      if (storage) flow_storage_written(storage);
    }
  }
}
