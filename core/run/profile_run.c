/* profile_run.c: what a profile learns of a run of an instance. See profile_run.h. */
#include "run/profile_run.h"

/* Bytes that the entry writes for this replica's rows; an output that nothing reads has no memory. */
static double output_bytes(const flow_instance *instance, const flow_entry *entry)
{
  double bytes = 0;
  for (int i = 0; i < entry->output_count; i++) {
    const flow_binding *binding = &entry->bindings[entry->input_count + i];
    if (binding->mode == FLOW_BIND_NONE) continue;
    bytes += (double)flow_value_bytes(&instance->plan->graph->values[binding->value].signature, instance->part.rows);
  }
  return bytes;
}

/* What an instance holds: its arena, what it saves aside, and its members' own memory. */
static void note_memory(flow_profile *profile, const flow_instance *instance)
{
  double members = (double)instance->member_count * (double)(instance->local_bytes + instance->scratch_bytes);
  double memory = (double)instance->arena_bytes + members;
  for (int e = 0; e < instance->plan->order_count; e++) {
    const flow_instance *body = instance->entries[e].body;
    if (body) memory += (double)body->arena_bytes + (double)body->member_count * (double)(body->local_bytes + body->scratch_bytes);
  }
  for (int i = 0; i < instance->undo_count; i++) memory += (double)instance->undo_log[i].bytes;
  if ((double)instance->arena_bytes > profile->arena) profile->arena = (double)instance->arena_bytes;
  if (memory > profile->memory) profile->memory = memory;
}

/* The seconds of an entry are the mean over the members, so that the seconds of all entries and the waiting (at barriers, for sums, to
 * start) add up to the wall time. */
void flow_profile_add_run(flow_profile *profile, const flow_replica_set *set, double wall)
{
  const flow_instance *instance = set->lead;
  double inside = 0;
  int members = set->count > 1 ? 1 : set->run.members;      /* of several replicas what the first one's member did */
  for (int e = 0; e < instance->plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    if (entry->alias) continue;
    double seconds = 0;
    for (int m = 0; m < members; m++) seconds += instance->members[m].watches[e].seconds;
    flow_operand shapes[2];
    for (int i = 0; i < entry->input_count && i < 2; i++) {
      const flow_signature *signature = &instance->plan->graph->values[entry->bindings[i].value].signature;
      shapes[i].rank = signature->rank;
      flow_resolve_shape(signature, instance->part.rows, shapes[i].shape);
    }
    int number = flow_profile_add(profile, flow_op(instance->plan->graph->nodes[entry->node].op)->name, entry->kernel->variant, shapes,
                                  entry->input_count, seconds / members, output_bytes(instance, entry));
    for (int m = 0; m < members; m++) flow_profile_add_event(profile, number, m, &instance->members[m].watches[e]);
    inside += seconds / members;
  }
  profile->waiting += wall - inside;
  note_memory(profile, instance);
}
