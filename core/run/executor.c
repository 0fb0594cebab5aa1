/* executor.c: one run of an instance. One parallel region per run: every member of the team walks the same segments with
 * a barrier after each. Kernels that fail leave a verdict; then the remaining work is skipped (never the barriers) and
 * the commit tail writes nothing. */
#include "base/futex.h"
#include "run/profile_run.h"
#include "run/device/device_run.h"
#include "graph/profile.h"
#include "graph/variable.h"
#include <string.h>

/* ---- binding operands -------------------------------------------------------------------------------------------------- */

/* Rows of a replica's part of the batch, in a value that is bound as a whole. */
static int64_t rows_of(const flow_instance *instance, const flow_binding *b)
{
  const flow_value *value = &instance->plan->graph->values[b->value];
  int gathered = value->kind == FLOW_VALUE_RESULT && instance->plan->graph->nodes[value->node].op == FLOW_OP_all_gather;
  return gathered ? instance->lead->gathered_rows : instance->rows;
}

void flow_bind_run(flow_instance *instance, flow_member *member)
{
  const flow_plan *plan = instance->plan;
  int reshape = member->rows != instance->rows || member->gathered_rows != instance->lead->gathered_rows;
  for (int e = 0; e < plan->order_count; e++) {
    const flow_entry *entry = &instance->entries[e];
    flow_operand *operands = member->calls[e].inputs;
    if (entry->alias) continue;
    for (int i = 0; i < entry->input_count + entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[i];
      if (b->mode == FLOW_BIND_WHOLE) operands[i].data = instance->bases[b->root];
      if (!reshape || b->mode == FLOW_BIND_PARTIAL) continue;
      flow_resolve_shape(&plan->graph->values[b->value].signature, rows_of(instance, b), operands[i].shape);
      flow_contiguous_strides(operands[i].rank, operands[i].shape, operands[i].strides);
    }
  }
  member->rows = instance->rows;
  member->gathered_rows = instance->lead->gathered_rows;
}

/* Points an entry's operands to rows [first, first + count) of slot `slot`. */
static void bind_chunk(flow_instance *instance, flow_member *member, int e, int64_t slot, int64_t first, int64_t count)
{
  const flow_entry *entry = &instance->entries[e];
  flow_operand *operands = member->calls[e].inputs;
  for (int i = 0; i < entry->input_count + entry->output_count; i++) {
    const flow_binding *b = &entry->bindings[i];
    switch (b->mode) {
    case FLOW_BIND_ROWS:
      operands[i].data = instance->bases[b->root] + (size_t)first * b->row_bytes;
      operands[i].shape[0] = b->row_factor * count;
      break;
    case FLOW_BIND_LOCAL:
      operands[i].data = member->local + b->offset;
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

/* ---- profiling -------------------------------------------------------------------------------------------------------------- */

static double start_watch(const flow_instance *instance) { return instance->profiled ? flow_clock() : 0; }

static void stop_watch(const flow_instance *instance, flow_member *member, int e, double started)
{
  if (instance->profiled) flow_watch_add(&member->watches[e], started);
}

/* Where members wait for each other; a replica that belongs to one member has nobody to wait for. */
static void meet(flow_region *region, int members)
{
  if (members > 1) flow_region_barrier(region);
}

/* ---- segments ------------------------------------------------------------------------------------------------------------- */

static void prepare_kernels(flow_instance *instance, flow_member *member, int s)
{
  const flow_segment *segment = &instance->plan->segments[s];
  int64_t k;
  while ((k = flow_ticket_take(&instance->stages[s].prepare_ticket)) < segment->count) {
    int e = segment->first + (int)k;
    const flow_entry *entry = &instance->entries[e];
    if (entry->alias || !entry->kernel->prepare || flow_failure_is_set(&instance->lead->verdict)) continue;
    bind_chunk(instance, member, e, 0, 0, 0);
    double started = start_watch(instance);
    flow_status status = entry->kernel->prepare(&member->calls[e]);
    if (status != FLOW_OK) flow_failure_take(&instance->lead->verdict, status);
    stop_watch(instance, member, e, started);
  }
}

static int64_t active_slots(const flow_instance *instance, int s)
{
  int64_t rows = instance->stages[s].rows_per_slot;
  return (instance->rows + rows - 1) / rows;
}

/* Not in the commit tail: it is done whole or not at all. Nor with other workers, who would wait: to them it is a wish to stop, see
 * replicas.c. */
static void look_for_interrupt(flow_instance *instance, const flow_segment *segment)
{
  if (!segment->tail && !instance->lead->exchange && flow_interrupted(instance->lead->context))
    flow_failure_take(&instance->lead->verdict, flow_fail(FLOW_INTERRUPTED, "interrupted"));
}

static void run_slot(flow_instance *instance, flow_member *member, int s, int64_t slot)
{
  const flow_segment *segment = &instance->plan->segments[s];
  const flow_stage *stage = &instance->stages[s];
  int64_t begin = slot * stage->rows_per_slot, end = begin + stage->rows_per_slot;
  if (end > instance->rows) end = instance->rows;
  for (int64_t first = begin; first < end; first += stage->chunk) {
    int64_t count = end - first < stage->chunk ? end - first : stage->chunk;
    look_for_interrupt(instance, segment);
    for (int e = segment->first; e < segment->first + segment->count; e++) {
      const flow_entry *entry = &instance->entries[e];
      flow_call *call = &member->calls[e];
      if (entry->alias) continue;
      if (flow_failure_is_set(&instance->lead->verdict)) return;
      bind_chunk(instance, member, e, slot, first, count);
      call->first_row = first;
      call->accumulate = first > begin;
      double started = start_watch(instance);
      flow_status status = entry->kernel->run(call, 0, 0, 1);
      if (status != FLOW_OK) flow_failure_take(&instance->lead->verdict, status);
      stop_watch(instance, member, e, started);
    }
  }
}

/* out[i] = sum over slots of partial[slot][i], in the order of the slots, for i in [begin, end). */
#define ADD_SLOTS(type)                                                                   \
  do {                                                                                    \
    type *sum = (type *)(void *)out;                                                      \
    for (int64_t i = begin; i < end; i++) sum[i] = slots ? ((const type *)(const void *)partial)[i] : 0; \
    for (int64_t slot = 1; slot < slots; slot++) {                                        \
      const type *part = (const type *)(const void *)(partial + (size_t)slot * stride);   \
      for (int64_t i = begin; i < end; i++) sum[i] += part[i];                            \
    }                                                                                     \
  } while (0)

static void add_slots(int dtype, char *out, const char *partial, size_t stride, int64_t slots, int64_t begin, int64_t end)
{
  if (dtype == FLOW_FLOAT32) ADD_SLOTS(float);
  else if (dtype == FLOW_FLOAT64) ADD_SLOTS(double);
}

/* Adds the partial sums of a segment's REDUCE outputs; each member does its share of the elements. */
static void add_partials(flow_instance *instance, flow_member *own, int s, int member, int members)
{
  const flow_segment *segment = &instance->plan->segments[s];
  int64_t active = active_slots(instance, s);
  for (int e = segment->first; e < segment->first + segment->count; e++) {
    const flow_entry *entry = &instance->entries[e];
    int wide = (flow_op(instance->plan->graph->nodes[entry->node].op)->flags & FLOW_OP_WIDE) != 0;
    for (int i = 0; i < entry->output_count; i++) {
      const flow_binding *b = &entry->bindings[entry->input_count + i];
      if (b->mode != FLOW_BIND_PARTIAL) continue;
      const flow_signature *signature = &instance->plan->graph->values[b->value].signature;
      int64_t size = flow_shape_size(signature->rank, signature->dims), share = (size + members - 1) / members;
      share = (share + 15) & ~(int64_t)15;
      int64_t begin = share * member, end = begin + share < size ? begin + share : size;
      double started = start_watch(instance);
      char *out = instance->bases[b->root], *partial = instance->arena + b->offset;
      if (begin < end && wide) flow_wide_finish(partial, b->bytes, active, size, begin, end, signature->dtype, out);
      else if (begin < end) add_slots(signature->dtype, out, partial, b->bytes, active, begin, end);
      stop_watch(instance, own, e, started);
    }
  }
}

/* Draws parts of one phase of a segment until none is left and runs them. The parts of a segment of rows are its slots. */
static void take_parts(flow_instance *instance, flow_region *region, flow_member *own, int s, int phase, const flow_cut *cut,
                       const flow_call *call)
{
  const flow_segment *segment = &instance->plan->segments[s];
  flow_stage *stage = &instance->stages[s];
  int taken = 0;
  if (segment->by_rows) {
    for (int64_t slot; (slot = flow_ticket_take(&stage->tickets[phase])) < cut->parts[phase]; taken++) run_slot(instance, own, s, slot);
  } else {
    taken = flow_take_parts(instance->entries[segment->first].kernel, call, cut, phase, &stage->tickets[phase], &instance->lead->verdict,
                            instance->profiled ? &own->watches[segment->first] : NULL);
  }
  if (taken && atomic_fetch_add(&stage->done[phase], taken) + taken == cut->parts[phase]) flow_region_tell(region, &stage->done[phase]);
}

/* All phases of a segment, by all members, each with its own `call`; or of a replica that belongs to this member (`members` is 1): then
 * others may take parts, too, while it is open (see help()), and those have to be waited for. */
static void run_phases(flow_instance *instance, flow_region *region, flow_member *own, int s, const flow_cut *cut, const flow_call *call,
                       int members)
{
  flow_stage *stage = &instance->stages[s];
  if (members == 1) stage->cut = *cut;
  for (int phase = 0; phase < cut->phases; phase++) {
    if (members == 1) atomic_store_explicit(&instance->open, s * FLOW_MAX_PHASES + phase, memory_order_release);
    take_parts(instance, region, own, s, phase, cut, call);
    meet(region, members);
    if (members > 1) continue;
    for (int done; (done = atomic_load(&stage->done[phase])) < cut->parts[phase];) flow_region_wait(region, &stage->done[phase], done);
  }
}

static void run_rows_segment(flow_instance *instance, flow_region *region, flow_member *own, int s, int member, int members)
{
  flow_stage *stage = &instance->stages[s];
  flow_cut cut = { .phases = 1, .parts = { active_slots(instance, s) } };
  if (stage->prepares) {
    prepare_kernels(instance, own, s);
    meet(region, members);
  }
  run_phases(instance, region, own, s, &cut, NULL, members);
  if (stage->sums) {
    add_partials(instance, own, s, member, members);
    meet(region, members);
  }
}

static void run_whole_segment(flow_instance *instance, flow_region *region, flow_member *own, int s, int member, int members)
{
  int e = instance->plan->segments[s].first;
  const flow_entry *entry = &instance->entries[e];
  flow_call whole = own->calls[e], *call = &whole;
  flow_share share;
  flow_cut cut;
  if (entry->alias) return;   /* without a barrier, so nobody may change the verdict here */
  if (flow_is_shared(instance, e)) {
    share = flow_share_of(instance, e, instance->exchange->worker);
    call->share = &share;
  }
  if (member == 0) look_for_interrupt(instance, &instance->plan->segments[s]);
  flow_cut_call(flow_op(call->op), entry->kernel, call, &cut);
  if (entry->kernel->prepare) {   /* a MAP kernel over a batch of fixed size */
    if (flow_ticket_take(&instance->stages[s].prepare_ticket) == 0 && !flow_failure_is_set(&instance->lead->verdict)) {
      double started = start_watch(instance);
      flow_status status = entry->kernel->prepare(call);
      if (status != FLOW_OK) flow_failure_take(&instance->lead->verdict, status);
      stop_watch(instance, own, e, started);
    }
    meet(region, members);
  }
  run_phases(instance, region, own, s, &cut, call, members);
  if (!call->share) return;
  if (member == 0) {
    double started = start_watch(instance);
    flow_collect_shares(instance, e, call);
    stop_watch(instance, own, e, started);
  }
  meet(region, members);
}

static void run_segment(flow_instance *instance, flow_region *region, flow_member *own, int s, int member, int members)
{
  if (instance->plan->segments[s].by_rows) run_rows_segment(instance, region, own, s, member, members);
  else run_whole_segment(instance, region, own, s, member, members);
}

/* ---- replicas -------------------------------------------------------------------------------------------------------------- */

/* Segments [first, end) of the body: by all members on the one replica, or each on replicas of its own. */
static void run_body(flow_instance *lead, flow_region *region, int first, int end, int member, int members)
{
  if (lead->replica_count == 1) {
    for (int s = first; s < end; s++) run_segment(lead, region, &lead->members[member], s, member, members);
    return;
  }
  for (int r = member; r < lead->replica_count; r += members)
    for (int s = first; s < end; s++) run_segment(lead->replicas[r], region, &lead->replicas[r]->members[member], s, 0, 1);
}

/* Takes parts of the segment that a replica of another member is in. Returns whether there were any. */
static int help(flow_instance *replica, flow_region *region, int member)
{
  flow_member *own = &replica->members[member];
  int open = atomic_load_explicit(&replica->open, memory_order_acquire), s = open / FLOW_MAX_PHASES, phase = open % FLOW_MAX_PHASES;
  if (open < 0) return 0;
  flow_stage *stage = &replica->stages[s];
  if (atomic_load_explicit(&stage->tickets[phase].next, memory_order_relaxed) >= stage->cut.parts[phase]) return 0;
  flow_bind_run(replica, own);
  take_parts(replica, region, own, s, phase, &stage->cut, &own->calls[replica->plan->segments[s].first]);
  return 1;
}

/* All replicas come here. Cores are not equally fast all the time: a member that comes early takes parts of the replicas that are late,
 * until all are here or nothing has been left to take for a while. */
static void meet_replicas(flow_instance *lead, flow_region *region, int member, int members)
{
  enum { PATIENCE = 50000 };       /* nanoseconds */
  int before = atomic_fetch_add(&lead->arrivals, 1), all = (before / members + 1) * members;
  int64_t give_up = flow_now_nanoseconds() + PATIENCE;
  while (atomic_load_explicit(&lead->arrivals, memory_order_relaxed) < all && flow_now_nanoseconds() < give_up) {
    int helped = 0;
    for (int r = 0; r < lead->replica_count; r++) helped |= r % members != member && help(lead->replicas[r], region, member);
    if (helped) give_up = flow_now_nanoseconds() + PATIENCE;
    else flow_pause_briefly();
  }
  meet(region, members);
}

/* A sum that all replicas here have come to. Over the workers it begins at once, and goes on while the body does; over replicas of this
 * process alone it is made when somebody needs it, with as few barriers as can be. */
static void begin_sum(flow_instance *lead, flow_region *region, int s, int member, int members)
{
  double started = start_watch(lead);
  if (lead->replica_count > 1) {
    if (!lead->exchange) return;
    meet_replicas(lead, region, member, members);
    if (!flow_failure_is_set(&lead->verdict)) flow_add_replicas(lead, s, member, members);
    meet(region, members);
  } else if (member == 0) {
    flow_add_replicas(lead, s, 0, 1);
  }
  if (lead->exchange && member == 0) flow_send_sum(lead, s);
  stop_watch(lead, &lead->members[member], lead->plan->segments[s].first, started);
}

/* The sum of segment s is needed. Of the segments before `end`, which have run, all sums are made at one meeting. *pending: the first
 * segment whose sum may still have to be made. */
static void finish_sums(flow_instance *lead, flow_region *region, int s, int end, int *pending, int member, int members)
{
  double started = start_watch(lead);
  if (lead->exchange) {
    if (member == 0) flow_receive_sums(lead, s);
  } else if (lead->replica_count > 1) {
    meet_replicas(lead, region, member, members);
    for (; *pending < end; ++*pending)
      if (lead->stages[*pending].collective && !flow_failure_is_set(&lead->verdict)) flow_add_replicas(lead, *pending, member, members);
  }
  meet(region, members);
  stop_watch(lead, &lead->members[member], lead->plan->segments[s].first, started);
}

/* The binding of a member: of its own replicas, and of the lead, whose commit tail all members run. */
static void bind_member(flow_instance *lead, int member, int members)
{
  flow_bind_run(lead, &lead->members[member]);
  for (int r = member; r < lead->replica_count; r += members)
    if (r > 0) flow_bind_run(lead->replicas[r], &lead->replicas[r]->members[member]);
  if (!lead->profiled) return;
  memset(lead->members[member].watches, 0, sizeof(flow_watch) * (size_t)lead->plan->order_count);
  if (member == 0) lead->members_ran = members;
}

/* Whether segment s is the first to read a sum that may still be under way. */
static int waits(const flow_instance *lead, int s) { return lead->stages[s].waits_for >= 0; }

static void run_member(flow_region *region, int member, int members, void *argument)
{
  flow_instance *lead = argument;
  const flow_plan *plan = lead->plan;
  int s = 0, pending = 0;
  bind_member(lead, member, members);
  while (s < plan->segment_count && !plan->segments[s].tail) {
    int end = s;
    if (waits(lead, s) && lead->stages[s].waits_for >= pending)
      finish_sums(lead, region, lead->stages[s].waits_for, s, &pending, member, members);
    while (end < plan->segment_count && !plan->segments[end].tail && !lead->stages[end].collective && (end == s || !waits(lead, end)))
      end++;
    run_body(lead, region, s, end, member, members);
    if (end < plan->segment_count && lead->stages[end].collective && (end == s || !waits(lead, end)))
      begin_sum(lead, region, end++, member, members);
    s = end;
  }
  if (lead->last_sum >= pending) finish_sums(lead, region, lead->last_sum, s, &pending, member, members);
  else if (lead->replica_count > 1) meet_replicas(lead, region, member, members);
  /* Every member is past the last barrier of the body here, so all see the same verdict and leave together. */
  for (; s < plan->segment_count && !flow_failure_is_set(&lead->verdict); s++)
    run_segment(lead, region, &lead->members[member], s, member, members);
}

/* Runs shorter than this gain less from other threads than waking them costs. */
static const double worth_a_team = 60e-6;

/* How many members the next run takes. The first runs go alone and are timed (the second finds caches and pages warm), so
 * that a small plan never wakes the team. Results do not depend on it. */
static int choose_members(const flow_instance *lead)
{
  double rows = lead->rows > 0 ? (double)lead->rows : 1;
  int members = flow_team_size();
  if (lead->runs_alone < 2 || lead->seconds_per_row * rows < worth_a_team) return 1;
  return lead->replica_count > 1 && members > lead->replica_count ? lead->replica_count : members;
}

/* Copies what guarded effects write aside, or back. */
static void copy_saved(const flow_instance *instance, int back)
{
  for (int i = 0; i < instance->saved_count; i++) {
    const flow_saved *s = &instance->saved[i];
    char *aside = instance->saved_bytes + s->offset, *storage = instance->bases[s->value];
    if (s->bytes) memcpy(back ? storage : aside, back ? aside : storage, s->bytes);
  }
}

static void reset_tickets(flow_instance *instance)
{
  atomic_store_explicit(&instance->open, -1, memory_order_relaxed);
  for (int s = 0; s < instance->plan->segment_count; s++) {
    flow_stage *stage = &instance->stages[s];
    flow_ticket_reset(&stage->prepare_ticket);
    for (int p = 0; p < FLOW_MAX_PHASES; p++) {
      flow_ticket_reset(&stage->tickets[p]);
      atomic_store_explicit(&stage->done[p], 0, memory_order_relaxed);
    }
  }
}

flow_status flow_execute(flow_instance *lead)
{
  if (lead->accelerated) return flow_accelerated_execute(lead);
  int members = choose_members(lead);
  for (int r = 0; r < lead->replica_count; r++) {
    if (members > lead->replicas[r]->member_count) FLOW_TRY(flow_instance_set_members(lead->replicas[r], members));
    reset_tickets(lead->replicas[r]);
  }
  atomic_store_explicit(&lead->arrivals, 0, memory_order_relaxed);
  flow_failure_clear(&lead->verdict);
  flow_failure_clear(&lead->late);
  flow_start_sums(lead);
  copy_saved(lead, 0);
  flow_profile *profile = lead->context->profile;
  lead->profiled = profile && profile->active;
  double started = flow_clock();
  flow_team_run(members, run_member, lead);
  if (lead->profiled) flow_profile_add_run(profile, lead, flow_clock() - started);
  if (flow_failure_is_set(&lead->verdict)) {
    copy_saved(lead, 1);
    return flow_failure_raise(&lead->verdict);
  }
  if (members == 1) {
    double seconds = (flow_clock() - started) / (double)(lead->rows > 0 ? lead->rows : 1);
    if (lead->runs_alone == 0 || seconds < lead->seconds_per_row) lead->seconds_per_row = seconds;
    if (lead->runs_alone < 2) lead->runs_alone++;
  }
  return flow_failure_raise(&lead->late);
}
