/* binding.c: see binding.h. */
#include "run/binding.h"

#include <string.h>
#include "graph/variable.h"

static const flow_signature *signature_of(const flow_instance *instance, int value)
{
  return &instance->plan->graph->values[value].signature;
}

/* ---- once ------------------------------------------------------------------------------------------------------------------- */

/* How one operand of a node is found. row_operand: it is cut with the rows of the segment; then it is a part of a value in the arena,
 * or, if the value lives within the segment only, in the member's block. dims[0] of such a value is -k: k rows for each row of the
 * batch. */
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

/* Bytes of one slot's partial sum. WIDE reductions (ops/wide_sum.h) keep more than the result's own precision. */
static size_t partial_sum_bytes(int op, const flow_signature *signature)
{
  if (!(flow_op(op)->flags & FLOW_OP_WIDE)) return flow_value_bytes(signature, 1);
  return flow_wide_bytes(flow_shape_size(signature->rank, signature->dims));
}

/* Entry e of segment s; its bindings begin at `next`. Returns where those of the next entry do. */
static flow_binding *bind_entry(flow_instance *instance, int s, int e, const char *read, flow_binding *next)
{
  const flow_plan *plan = instance->plan;
  const flow_node *node = &plan->graph->nodes[plan->order[e]];
  flow_entry *entry = &instance->entries[e];
  int by_rows = plan->segments[s].by_rows;
  entry->node = plan->order[e];
  entry->attributes = &plan->graph->nodes[entry->node].attributes;
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
  return next;
}

void flow_bind_entries(flow_instance *instance, const char *read)
{
  const flow_plan *plan = instance->plan;
  flow_binding *next = instance->bindings;
  for (int s = 0; s < plan->segment_count; s++)
    for (int e = plan->segments[s].first; e < plan->segments[s].first + plan->segments[s].count; e++)
      next = bind_entry(instance, s, e, read, next);
}

/* A partial sum of a WIDE op is seen by its kernel as a flat array of 8-byte words, whatever the shape of the result is: only the op
 * itself and flow_wide_finish know what is in it. */
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

/* ---- for a run ------------------------------------------------------------------------------------------------------------------ */

/* Every run does this, as a variable may have moved: an optimizer puts it into its arena, or the host assigns it another tensor. */
flow_status flow_bind_variables(flow_instance *instance, int *moved)
{
  const flow_graph *graph = instance->plan->graph;
  for (int v = 0; v < graph->value_count; v++) {
    char *before = instance->part.bases[v];
    if (graph->values[v].kind != FLOW_VALUE_VARIABLE) continue;
    FLOW_TRY(flow_base_of(instance, graph->values[v].variable->tensor, &instance->part.bases[v]));
    if (moved && instance->part.bases[v] != before) *moved = 1;
  }
  return FLOW_OK;
}

/* Only inputs whose first dimension goes with the batch begin at a row; the others are the same for all replicas. */
size_t flow_input_extent(const flow_graph *graph, int index, int64_t first, int64_t rows, size_t *offset)
{
  const flow_signature *signature = &graph->values[graph->inputs[index]].signature;
  *offset = signature->rank > 0 && signature->dims[0] < 0 && first > 0 ? (size_t)first * flow_value_bytes(signature, 1) : 0;
  return flow_value_bytes(signature, rows);
}

void flow_bind_inputs(flow_instance *instance, flow_tensor *const *inputs, int64_t first)
{
  const flow_graph *graph = instance->plan->graph;
  size_t offset;
  for (int i = 0; i < graph->input_count; i++) {
    flow_input_extent(graph, i, first, instance->part.rows, &offset);
    instance->part.bases[graph->inputs[i]] = inputs[i]->data + offset;
  }
}

/* Rows of a replica's part of the batch, in a value that is bound as a whole. */
static int64_t rows_of(const flow_instance *instance, const flow_binding *b)
{
  const flow_value *value = &instance->plan->graph->values[b->value];
  int gathered = value->kind == FLOW_VALUE_RESULT && instance->plan->graph->nodes[value->node].op == FLOW_OP_all_gather;
  return gathered ? instance->part.gathered_rows : instance->part.rows;
}

/* Partial sums and chunks have their addresses from flow_bind_chunk. Shapes are written again only when the rows are others than at the
 * member's last run: most runs have the same. */
void flow_bind_run(const flow_instance *instance, flow_member *member)
{
  const flow_plan *plan = instance->plan;
  int reshape = member->rows != instance->part.rows || member->gathered_rows != instance->part.gathered_rows;
  for (int e = 0; e < plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    flow_operand *operands = member->calls[e].inputs;
    if (entry->alias) continue;
    for (int i = 0; i < entry->input_count + entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[i];
      if (b->mode == FLOW_BIND_WHOLE) operands[i].data = instance->part.bases[b->root];
      operands[i].passed_on = b->passed_on;
      if (!reshape || b->mode == FLOW_BIND_PARTIAL) continue;
      flow_resolve_shape(&plan->graph->values[b->value].signature, rows_of(instance, b), operands[i].shape);
      flow_contiguous_strides(operands[i].rank, operands[i].shape, operands[i].strides);
    }
  }
  member->rows = instance->part.rows;
  member->gathered_rows = instance->part.gathered_rows;
}

/* ---- for a chunk of rows -------------------------------------------------------------------------------------------------------- */

/* Strides stay unchanged: they follow from the dimensions after the first. */
void flow_bind_chunk(const flow_instance *instance, flow_member *member, char *local, int e, int64_t slot, int64_t first, int64_t count)
{
  const flow_entry *entry = &instance->entries[e];
  flow_operand *operands = member->calls[e].inputs;
  for (int i = 0; i < entry->input_count + entry->output_count; i++) {
    const flow_binding *b = &entry->bindings[i];
    switch (b->mode) {
    case FLOW_BIND_ROWS:
      operands[i].data = instance->part.bases[b->root] + (size_t)first * b->row_bytes;
      operands[i].shape[0] = b->row_factor * count;
      break;
    case FLOW_BIND_LOCAL:
      operands[i].data = local + b->offset;
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
