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

/* Plans that train write what they read, so that nothing lasts until their next run. */
static int writes_variables(const flow_plan *plan)
{
  for (int k = 0; k < plan->order_count; k++)
    if (flow_op(plan->graph->nodes[plan->order[k]].op)->flags & FLOW_OP_EFFECT) return 1;
  return 0;
}

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

/* Whether prepare() of an entry, which sees inputs without rows, sees fixed ones only. */
static int prepares_fixed(const flow_instance *instance, const flow_entry *entry)
{
  int seen = 0;
  for (int i = 0; i < entry->input_count; i++) {
    const flow_binding *b = &entry->bindings[i];
    if (b->mode != FLOW_BIND_WHOLE) continue;
    if (!instance->derived.fixed[b->root]) return 0;
    seen++;
  }
  return seen > 0;
}

static flow_status make_tables(flow_instance *instance)
{
  size_t values = (size_t)instance->plan->graph->value_count + 1;
  void *block;
  FLOW_TRY(flow_alloc_zero((sizeof(uint64_t) + 1) * values, &block));
  instance->derived = (flow_derived){ .contents = block, .fixed = (char *)((uint64_t *)block + values) };
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
  if (instance->place) return find_lasting(instance);
  if (writes_variables(plan)) return FLOW_OK;
  FLOW_TRY(make_tables(instance));
  for (int v = 0; v < plan->graph->value_count; v++) instance->derived.fixed[v] = storage_of(&plan->graph->values[v]) != NULL;
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
 * which the members of the run read to skip segments and prepare(). */
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
  instance->derived.current = same;
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

/* The loop is for plans that keep nothing, which are those with effects: it gives new content numbers to the variables they wrote, so
 * that plans of other instances see that what they keep is out of date. That happens after failed runs, too: an early effect may have
 * been written and put back. */
void flow_derived_note_run(flow_instance *instance, int succeeded)
{
  const flow_plan *plan = instance->plan;
  flow_derived_end_run(instance, succeeded);
  for (int k = 0; k < plan->order_count && !instance->derived.fixed; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (!(flow_op(node->op)->flags & FLOW_OP_EFFECT)) continue;
    for (int i = 0; i < node->input_count; i++) {
      flow_storage *storage = storage_of(&plan->graph->values[plan->roots[node->inputs[i]]]);
      if (storage) flow_storage_written(storage);
    }
  }
}
