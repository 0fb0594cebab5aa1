/* profile.c: see profile.h. Entries are found by pointers of names, which are static in the tables of ops and kernels, and by the text
 * of shapes. */
#include "graph/profile.h"
#include "base/need.h"
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

/* Returns the number of the entry, -1: there was no memory for a new one. Its time is then counted as waiting, so that the sum of all stays
 * right. bytes: of the call's outputs; an entry keeps the largest. */
int flow_profile_add(flow_profile *profile, const char *op, const char *variant, const flow_operand *inputs, int input_count,
                     double seconds, double bytes)
{
  flow_profile_entry entry = { .op = op, .variant = variant, .seconds = seconds, .calls = 1, .bytes = bytes };
  describe_shapes(inputs, input_count, entry.shape, sizeof entry.shape);
  for (int i = 0; i < profile->count; i++) {
    flow_profile_entry *known = &profile->entries[i];
    if (known->op != op || known->variant != variant || strcmp(known->shape, entry.shape) != 0) continue;
    known->seconds += seconds;
    known->calls += 1;
    if (bytes > known->bytes) known->bytes = bytes;
    return i;
  }
  if (flow_grow(&profile->entries, sizeof entry, profile->count + 1, &profile->capacity) == FLOW_OK) {
    profile->entries[profile->count] = entry;
    return profile->count++;
  }
  profile->waiting += seconds;
  return -1;
}

/* Events beyond the room that there is are dropped: entries still count all calls. thread: the number under which timelines show it; watch:
 * when the call began and ended, and how long it worked. */
void flow_profile_add_event(flow_profile *profile, int entry, int thread, const flow_watch *watch)
{
  if (entry < 0 || watch->begin == 0 || profile->event_count == profile->event_most) return;
  profile->events[profile->event_count++] =
    (flow_profile_event){ .entry = entry, .thread = thread, .begin = watch->begin, .end = watch->end, .busy = watch->seconds };
}

/* A call that has just ended, eagerly. */
void flow_profile_add_call(flow_profile *profile, const flow_kernel *kernel, const flow_call *call, double seconds)
{
  double bytes = 0, now = flow_clock();
  for (int i = 0; i < call->output_count; i++) {
    const flow_operand *output = &call->outputs[i];
    bytes += (double)flow_shape_size(output->rank, output->shape) * flow_dtype_size(output->dtype);
  }
  int number = flow_profile_add(profile, flow_op(call->op)->name, kernel->variant, call->inputs, call->input_count, seconds, bytes);
  flow_profile_add_event(profile, number, 0, &(flow_watch){ .seconds = seconds, .begin = now - seconds, .end = now });
}

/* What an earlier profile kept is forgotten; its memory stays. FLOW_INVALID_STATE while another one runs. */
flow_status flow_profile_begin(flow_context *context)
{
  FLOW_NEED(context);
  if (!context->profile) {
    void *block;
    FLOW_TRY(flow_alloc_zero(sizeof(flow_profile), &block));
    context->profile = block;
  }
  if (context->profile->active) return flow_fail(FLOW_INVALID_STATE, "flow.profile: this is being profiled already; profiles do not nest");
  context->profile->active = 1;
  context->profile->count = 0;
  context->profile->waiting = context->profile->arena = context->profile->memory = 0;
  context->profile->event_count = context->profile->event_most = 0;
  return FLOW_OK;
}

/* What was measured can be read until the next begin. */
void flow_profile_end(flow_context *context)
{
  if (!context) return;
  if (context->profile) context->profile->active = 0;
}

int flow_profile_count(const flow_context *context)
{
  return context && context->profile ? context->profile->count : 0;
}

/* Borrowed until the next call that adds to the profile; NULL beyond the last one. */
const flow_profile_entry *flow_profile_at(const flow_context *context, int index)
{
  if (!context) return NULL;
  return index >= 0 && index < flow_profile_count(context) ? &context->profile->entries[index] : NULL;
}

/* Seconds that belong to no entry. */
double flow_profile_waiting(const flow_context *context)
{
  return context && context->profile ? context->profile->waiting : 0;
}

/* Bytes, as the run that was measured told them. */
double flow_profile_arena(const flow_context *context)
{
  return context && context->profile ? context->profile->arena : 0;
}
double flow_profile_memory(const flow_context *context)
{
  return context && context->profile ? context->profile->memory : 0;
}

/* All memory for them is taken here: no kernel's time has an allocation in it. Events beyond `most` are left out. */
flow_status flow_profile_keep_events(flow_context *context, int most)
{
  FLOW_NEED(context);
  flow_profile *profile = context->profile;
  size_t bytes;
  void *block;
  if (!profile || !profile->active) return flow_fail(FLOW_INVALID_STATE, "flow_profile_keep_events: nothing is being profiled");
  if (most < 0) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_profile_keep_events: %d events", most);
  FLOW_TRY(flow_multiply((size_t)most, sizeof *profile->events, &bytes));
  FLOW_TRY(flow_alloc(bytes, &block));
  flow_free(profile->events);
  profile->events = block;
  profile->event_count = 0;
  profile->event_most = most;
  return FLOW_OK;
}

int flow_profile_event_count(const flow_context *context)
{
  return context && context->profile ? context->profile->event_count : 0;
}

/* Borrowed; in the order in which they were added. */
const flow_profile_event *flow_profile_event_at(const flow_context *context, int index)
{
  if (!context) return NULL;
  return index >= 0 && index < flow_profile_event_count(context) ? &context->profile->events[index] : NULL;
}

/* With its context; NULL is fine. */
void flow_profile_release(flow_profile *profile)
{
  if (!profile) return;
  flow_free(profile->events);
  flow_free(profile->entries);
  flow_free(profile);
}
