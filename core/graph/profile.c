/* profile.c: see profile.h. */
#include "graph/profile.h"
#include <string.h>

/* Shapes of the first two inputs: they tell layers of one kind apart. */
static void describe_shapes(const flow_operand *inputs, int count, char *text, int size)
{
  flow_text out = flow_text_into(text, size);
  text[0] = 0;
  for (int i = 0; i < count && i < 2; i++) {
    if (i) flow_text_add(&out, " ");
    flow_text_add_shape(&out, inputs[i].rank, inputs[i].shape);
  }
}

static void add(flow_profile *profile, const char *op, const char *variant, const flow_operand *inputs, int input_count, double seconds)
{
  flow_profile_entry entry = { .op = op, .variant = variant, .seconds = seconds, .calls = 1 };
  describe_shapes(inputs, input_count, entry.shape, sizeof entry.shape);
  for (int i = 0; i < profile->count; i++) {
    flow_profile_entry *known = &profile->entries[i];
    if (known->op != op || known->variant != variant || strcmp(known->shape, entry.shape) != 0) continue;
    known->seconds += seconds;
    known->calls += 1;
    return;
  }
  if (flow_grow(&profile->entries, sizeof entry, profile->count + 1, &profile->capacity) == FLOW_OK)
    profile->entries[profile->count++] = entry;
  else profile->waiting += seconds;
}

void flow_profile_add_run(flow_profile *profile, const flow_instance *instance, double wall)
{
  double inside = 0;
  int members = instance->members_ran;
  for (int e = 0; e < instance->plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    if (entry->alias) continue;
    double seconds = 0;
    for (int m = 0; m < members; m++) seconds += instance->members[m].seconds[e];
    flow_operand shapes[2];
    for (int i = 0; i < entry->input_count && i < 2; i++) {
      const flow_signature *signature = &instance->plan->graph->values[entry->bindings[i].value].signature;
      shapes[i].rank = signature->rank;
      flow_resolve_shape(signature, instance->rows, shapes[i].shape);
    }
    add(profile, flow_op(instance->plan->graph->nodes[entry->node].op)->name, entry->kernel->variant, shapes, entry->input_count,
        seconds / members);
    inside += seconds / members;
  }
  profile->waiting += wall - inside;
}

void flow_profile_add_call(flow_profile *profile, const flow_kernel *kernel, const flow_call *call, double seconds)
{
  add(profile, flow_op(call->op)->name, kernel->variant, call->inputs, call->input_count, seconds);
}

flow_status flow_profile_begin(flow_context *context)
{
  if (!context->profile) {
    void *block;
    FLOW_TRY(flow_alloc_zero(sizeof(flow_profile), &block));
    context->profile = block;
  }
  if (context->profile->active) return flow_fail(FLOW_INVALID_STATE, "flow.profile: this is being profiled already; profiles do not nest");
  context->profile->active = 1;
  context->profile->count = 0;
  context->profile->waiting = 0;
  return FLOW_OK;
}

void flow_profile_end(flow_context *context)
{
  if (context->profile) context->profile->active = 0;
}

int flow_profile_count(const flow_context *context) { return context->profile ? context->profile->count : 0; }

const flow_profile_entry *flow_profile_at(const flow_context *context, int index)
{
  return index >= 0 && index < flow_profile_count(context) ? &context->profile->entries[index] : NULL;
}

double flow_profile_waiting(const flow_context *context) { return context->profile ? context->profile->waiting : 0; }

void flow_profile_release(flow_profile *profile)
{
  if (!profile) return;
  flow_free(profile->entries);
  flow_free(profile);
}
