/* members.c: what each member of the team has of an instance: calls, local values and scratch. See instance.h. */
#include "run/binding.h"

void flow_instance_release_members(flow_instance *instance)
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

/* One block has a member's calls, operands and watches; `local` holds the chunk-sized values of the segment that it is in, `scratch`
 * what its current kernel asked for. Shapes are those of the capacity until the first run. After a failure what was made is left to
 * flow_instance_release_members. */
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
      .op = node->op, .attributes = entry->attributes, .input_count = entry->input_count, .output_count = entry->output_count,
      .inputs = operands, .outputs = operands + entry->input_count, .exact = instance->plan->graph->exact, .bfloat16 = node->bfloat16,
      .partial = instance->plan->segments[entry->segment].by_rows,
      .scratch = member->scratch, .scalars = &instance->part.scalars,
      .shared = entry->shared_bytes ? instance->arena + entry->shared_offset : NULL };
  }
  return FLOW_OK;
}

/* Replaces all members, between runs. After a failure the instance has none, and the next run, which finds too few, tries again. */
flow_status flow_instance_set_members(flow_instance *instance, int count)
{
  void *block;
  flow_instance_release_members(instance);
  for (int e = 0; e < instance->plan->order_count; e++)
    if (instance->entries[e].body) FLOW_TRY(flow_instance_set_members(instance->entries[e].body, count));
  FLOW_TRY(flow_alloc_zero(sizeof(flow_member) * (size_t)count, &block));
  instance->members = block;
  instance->member_count = count;
  for (int m = 0; m < count; m++) {
    flow_status status = make_member(instance, &instance->members[m]);
    if (status != FLOW_OK) {
      flow_instance_release_members(instance);
      return status;
    }
  }
  return FLOW_OK;
}
