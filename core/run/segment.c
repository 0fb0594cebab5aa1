/* segment.c: see segment.h. Kernels that fail leave a verdict; then the remaining work is skipped, never the barriers.
 *
 * The parts of a segment are shared out: every member has a range of them, always the same share, and takes parts of others when its own
 * are gone, so that a fast member does more. So in most segments it reads what it wrote itself in the segment before: data that another
 * core wrote comes several times as slowly as data in its own cache. The parts of a replica that one member runs are drawn from a ticket,
 * by its own member and by early ones of other replicas. Which member does a part never changes a result: parts write separate memory, and
 * partial sums are added in the order of the slots.
 *
 * Three ways through a segment of rows:
 *
 *   slots     members draw slots and take each through all entries, chunk by chunk. The usual way.
 *   pieces    where there are fewer slots than members, as for a batch of one picture: members draw pieces of single calls, entry after
 *             entry. Nobody may begin an entry before all pieces of the one before are done.
 *   alone     a replica that one member runs does its slots itself, but leaves the segment open, so that members of other replicas who
 *             are early can take slots, too.
 *
 * A WHOLE segment is one entry, whose kernel says into how many parts each of its phases is cut. */
#include "run/segment.h"

#include "base/futex.h"
#include "run/binding.h"
#include "run/loop_run.h"
#include "run/replicas/replica_set.h"

void flow_segments_start(flow_instance *instance)
{
  atomic_store_explicit(&instance->part.open, -1, memory_order_relaxed);
  for (int m = 0; m < instance->member_count; m++) {
    instance->members[m].step = 0;
    atomic_store_explicit(&instance->members[m].claimed, 0, memory_order_relaxed);
  }
  for (int s = 0; s < instance->plan->segment_count; s++) {
    flow_progress *progress = &instance->part.progress[s];
    flow_ticket_reset(&progress->prepare_ticket);
    for (int p = 0; p < FLOW_MAX_PHASES; p++) {
      flow_ticket_reset(&progress->tickets[p]);
      atomic_store_explicit(&progress->done[p], 0, memory_order_relaxed);
    }
  }
}

/* ---- shares ------------------------------------------------------------------------------------------------------------------- */

/* The parts of one step of the way through a run, as a member takes them. All members walk the same steps and agree on `parts`. */
typedef struct share {
  flow_instance *instance;
  int member, members;
  int64_t step, parts;
  int turn; /* whose range it takes parts of: its own, then those of the members after it */
} share;

static share begin_share(flow_instance *instance, flow_member *own, int member, int members, int64_t parts)
{
  return (share){ .instance = instance, .member = member, .members = members, .step = ++own->step, .parts = parts };
}

/* Takes the next of the `count` parts that belong to member `of` in this step; -1: all are taken. */
static int64_t claim_part(flow_member *of, int64_t step, int64_t count)
{
  int64_t seen = atomic_load_explicit(&of->claimed, memory_order_relaxed);
  for (;;) {
    int64_t taken = seen >> 32 == step ? seen & INT32_MAX : 0;
    if (seen >> 32 > step || taken == count) return -1;
    if (atomic_compare_exchange_weak_explicit(&of->claimed, &seen, step << 32 | (taken + 1), memory_order_relaxed, memory_order_relaxed))
      return taken;
  }
}

/* The part that the member does next; -1: all are taken. */
static int64_t next_part(share *s)
{
  for (; s->turn < s->members; s->turn++) {
    int of = (s->member + s->turn) % s->members;
    int64_t begin = s->parts * of / s->members, count = s->parts * (of + 1) / s->members - begin;
    int64_t k = count ? claim_part(&s->instance->members[of], s->step, count) : -1;
    if (k >= 0) return begin + k;
  }
  return -1;
}

/* ---- slots of rows ---------------------------------------------------------------------------------------------------------- */

/* Calls prepare() of the segment's entries, each by the member that draws it; the caller's barrier ends it. prepare() sees inputs
 * without rows, so that it is bound to no rows at all. */
static void prepare_kernels(flow_instance *instance, flow_member *member, int s)
{
  const flow_segment *segment = &instance->plan->segments[s];
  int64_t k;
  while ((k = flow_ticket_take(&instance->part.progress[s].prepare_ticket)) < segment->count) {
    int e = segment->first + (int)k;
    const flow_entry *entry = &instance->entries[e];
    if (entry->alias || !entry->kernel->prepare || flow_failure_is_set(&instance->run->verdict)) continue;
    if (entry->fixed && instance->derived.current) continue;
    flow_bind_chunk(instance, member, member->local, e, 0, 0, 0);
    double started = flow_member_start_watch(instance->run);
    flow_status status = entry->kernel->prepare(&member->calls[e]);
    if (status != FLOW_OK) flow_failure_take(&instance->run->verdict, status);
    flow_member_stop_watch(instance->run, member, e, started);
  }
}

/* Slots that the rows of this run fill: fewer than the stage's most if there are few rows. */
static int64_t active_slots(const flow_instance *instance, int s)
{
  int64_t rows = instance->stages[s].rows_per_slot;
  return (instance->part.rows + rows - 1) / rows;
}

/* Makes an interrupt of the caller the verdict of the run; any member may find it. Not in the commit tail: it is done whole or not at
 * all. */
static void look_for_interrupt(flow_run_state *run, const flow_segment *segment)
{
  if (!segment->tail && run->interruptible && flow_interrupted(run->context))
    flow_failure_take(&run->verdict, flow_fail(FLOW_INTERRUPTED, "interrupted"));
}

/* One slot: its rows go chunk by chunk through all entries. The first chunk of a slot overwrites the partial sums, the others add to
 * them. */
static void run_slot(flow_instance *instance, flow_member *member, int s, int64_t slot)
{
  const flow_segment *segment = &instance->plan->segments[s];
  const flow_stage *stage = &instance->stages[s];
  int64_t begin = slot * stage->rows_per_slot, end = begin + stage->rows_per_slot;
  if (end > instance->part.rows) end = instance->part.rows;
  for (int64_t first = begin; first < end; first += stage->chunk) {
    int64_t count = end - first < stage->chunk ? end - first : stage->chunk;
    look_for_interrupt(instance->run, segment);
    for (int e = segment->first; e < segment->first + segment->count; e++) {
      const flow_entry *entry = &instance->entries[e];
      flow_call *call = &member->calls[e];
      if (entry->alias) continue;
      if (flow_failure_is_set(&instance->run->verdict)) return;
      flow_bind_chunk(instance, member, member->local, e, slot, first, count);
      call->first_row = first;
      call->accumulate = first > begin;
      double started = flow_member_start_watch(instance->run);
      flow_status status = entry->kernel->run(call, 0, 0, 1);
      if (status != FLOW_OK) flow_failure_take(&instance->run->verdict, status);
      flow_member_stop_watch(instance->run, member, e, started);
    }
  }
}

/* ---- pieces ------------------------------------------------------------------------------------------------------------------- */

/* One piece of entry e, whose call is bound. */
static void run_piece(flow_instance *instance, flow_member *member, int e, int64_t piece)
{
  if (flow_failure_is_set(&instance->run->verdict)) return;
  double started = flow_member_start_watch(instance->run);
  flow_status status = flow_run_piece(instance->entries[e].kernel, &member->calls[e], piece);
  if (status != FLOW_OK) flow_failure_take(&instance->run->verdict, status);
  flow_member_stop_watch(instance->run, member, e, started);
}

/* Where a member is on its way through the pieces of a segment. Every member walks the same steps: an entry that is cut is one step;
 * neighbouring entries that are not cut are together one step of a single piece (`whole`: such a step is being collected), so that one
 * member does them and finds what they hand on in its caches.
 *
 * `before` counts the pieces of the steps that the member has left, `done` those that were finished, by any member: a step may begin when
 * they are equal. */
typedef struct piece_walk {
  flow_region *region;
  flow_instance *instance;
  int member, members;
  _Atomic int *done;
  int64_t before;
  int whole, drawn; /* such a step is being collected; and this member does it */
} piece_walk;

static void wait_for_steps_before(const piece_walk *walk)
{
  for (int seen; (seen = atomic_load(walk->done)) < walk->before;) flow_region_wait(walk->region, walk->done, seen);
}

/* Tells members that wait for pieces of this walk. Counted first: flow_region_tell wakes those that look at the number. */
static void finish_pieces(const piece_walk *walk, int count)
{
  if (!count) return;
  atomic_fetch_add(walk->done, count);
  flow_region_tell(walk->region, walk->done);
}

/* The open step of entries that are not cut ends here. The member that drew it has done its entries; the others only count it. */
static void close_whole(piece_walk *walk)
{
  if (!walk->whole) return;
  finish_pieces(walk, walk->drawn);
  walk->before++;
  walk->whole = 0;
}

/* An entry of one piece joins the open step; the wait before its first entry is enough for the rest, which the same member does one after
 * the other. */
static void walk_uncut(flow_member *own, int e, piece_walk *walk)
{
  if (!walk->whole) {
    walk->drawn = claim_part(&walk->instance->members[0], ++own->step, 1) == 0;
    if (walk->drawn) wait_for_steps_before(walk);
    walk->whole = 1;
  }
  if (walk->drawn) run_piece(walk->instance, own, e, 0);
}

/* Does a share of the pieces of one entry. */
static void walk_entry(flow_member *own, int e, piece_walk *walk)
{
  int64_t pieces = flow_count_pieces(walk->instance->entries[e].kernel, &own->calls[e]);
  if (pieces == 1) {
    walk_uncut(own, e, walk);
    return;
  }
  close_whole(walk);
  share own_share = begin_share(walk->instance, own, walk->member, walk->members, pieces);
  wait_for_steps_before(walk);
  int done = 0;
  for (int64_t k; (k = next_part(&own_share)) >= 0; done++) run_piece(walk->instance, own, e, k);
  finish_pieces(walk, done);
  walk->before += pieces;
}

/* A segment of fewer slots than members: they divide the entries among themselves, one entry after the other. What lives in the segment
 * is in the block of member 0, since several members read and write it. Chunks follow each other as in run_slot, with the same first row
 * and the same sums, so that the bits are the same. */
static void run_by_pieces(flow_instance *instance, flow_region *region, flow_member *own, int s, int member, int members)
{
  const flow_segment *segment = &instance->plan->segments[s];
  const flow_stage *stage = &instance->stages[s];
  piece_walk walk = {
    .region = region, .instance = instance, .member = member, .members = members, .done = &instance->part.progress[s].done[0]
  };
  int64_t rows = instance->part.rows;
  for (int64_t first = 0; first < rows;) {
    int64_t slot = first / stage->rows_per_slot, end = (slot + 1) * stage->rows_per_slot, count = end < rows ? end - first : rows - first;
    if (count > stage->chunk) count = stage->chunk;
    look_for_interrupt(instance->run, segment);
    for (int e = segment->first; e < segment->first + segment->count; e++) {
      if (instance->entries[e].alias) continue;
      flow_bind_chunk(instance, own, instance->members[0].local, e, slot, first, count);
      own->calls[e].first_row = first;
      own->calls[e].accumulate = first > slot * stage->rows_per_slot;
      walk_entry(own, e, &walk);
    }
    first += count;
  }
  close_whole(&walk);
}

/* ---- partial sums ------------------------------------------------------------------------------------------------------------- */

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

/* out and partial are arrays of dtype; partial sums of other dtypes than these two are of WIDE ops only, see flow_wide_finish. */
static void add_slots(int dtype, char *out, const char *partial, size_t stride, int64_t slots, int64_t begin, int64_t end)
{
  if (dtype == FLOW_FLOAT32) ADD_SLOTS(float);
  else if (dtype == FLOW_FLOAT64) ADD_SLOTS(double);
}

/* Adds the partial sums of a segment's REDUCE outputs; each member those of some elements, in multiples of 16 so that two members do not
 * write to one cache line. A run without rows has no slots, and the sums are zeros. */
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
      int64_t size = flow_shape_size(signature->rank, signature->dims), each = (size + members - 1) / members;
      each = (each + 15) & ~(int64_t)15;
      int64_t begin = each * member, end = begin + each < size ? begin + each : size;
      double started = flow_member_start_watch(instance->run);
      char *out = instance->part.bases[b->root], *partial = instance->arena + b->offset;
      if (begin < end && wide) flow_wide_finish(partial, b->bytes, active, size, begin, end, signature->dtype, out);
      else if (begin < end) add_slots(signature->dtype, out, partial, b->bytes, active, begin, end);
      flow_member_stop_watch(instance->run, own, e, started);
    }
  }
}

/* ---- parts ------------------------------------------------------------------------------------------------------------------ */

/* One part of one phase of a segment: a slot of rows, or a part of its entry, cut as `cut` says; call: as in run_phases. */
static void run_part(flow_instance *instance, flow_member *own, int s, int phase, int64_t part, const flow_cut *cut, const flow_call *call)
{
  const flow_segment *segment = &instance->plan->segments[s];
  if (segment->by_rows) {
    run_slot(instance, own, s, part);
    return;
  }
  if (flow_failure_is_set(&instance->run->verdict)) return;
  flow_status status = flow_do_part(instance->entries[segment->first].kernel, call, cut, phase, part);
  if (status != FLOW_OK) flow_failure_take(&instance->run->verdict, status);
}

/* Takes parts of one phase of a segment until none is left and runs them; returns how many. own_share: as the members of one instance
 * share them; NULL: drawn from the ticket. */
static int take_parts(flow_instance *instance, flow_member *own, int s, int phase, const flow_cut *cut, const flow_call *call,
                      share *own_share)
{
  const flow_segment *segment = &instance->plan->segments[s];
  flow_ticket *ticket = &instance->part.progress[s].tickets[phase];
  int taken = 0, timed = !segment->by_rows;
  double started = timed ? flow_member_start_watch(instance->run) : 0;
  for (int64_t part;; taken++) {
    part = own_share ? next_part(own_share) : flow_ticket_take(ticket);
    if (part < 0 || part >= cut->parts[phase]) break;
    run_part(instance, own, s, phase, part, cut, call);
  }
  if (timed) flow_member_stop_watch(instance->run, own, segment->first, started);
  return taken;
}

/* The same from the ticket of a replica that one member runs. The last part wakes the owner. */
static void draw_parts(flow_instance *instance, flow_region *region, flow_member *own, int s, int phase, const flow_cut *cut,
                       const flow_call *call)
{
  _Atomic int *done = &instance->part.progress[s].done[phase];
  int drawn = take_parts(instance, own, s, phase, cut, call, NULL);
  if (drawn && atomic_fetch_add(done, drawn) + drawn == cut->parts[phase]) flow_region_tell(region, done);
}

/* Whether members divide the rounds of a segment's last phase instead of its parts: where some of them would have none. */
static int goes_by_rounds(const flow_kernel *kernel, const flow_call *call, const flow_cut *cut, int phase, int members)
{
  enum { MOST = 1 << 30 }; /* parts of all rounds: an int counts them */
  if (!kernel->rounds || phase + 1 < cut->phases || cut->parts[phase] >= members) return 0;
  int64_t rounds = kernel->rounds(call), parts = rounds > 0 ? kernel->round_parts(call) : 0;
  return parts > 1 && rounds < MOST / parts;
}

/* The last phase in rounds. As for pieces, members wait for parts that were taken, not for a member that does not come: others take its
 * parts. */
static void run_rounds(flow_instance *instance, flow_region *region, flow_member *own, int s, const flow_call *call, int member,
                       int members)
{
  const flow_kernel *kernel = instance->entries[instance->plan->segments[s].first].kernel;
  const int64_t rounds = kernel->rounds(call), parts = kernel->round_parts(call);
  piece_walk walk = {
    .region = region, .instance = instance, .member = member, .members = members, .done = &instance->part.progress[s].done[0]
  };
  double started = flow_member_start_watch(instance->run);
  for (int64_t round = 0; round < rounds; round++, walk.before += parts) {
    share own_share = begin_share(instance, own, member, members, parts);
    int done = 0;
    wait_for_steps_before(&walk);
    for (int64_t part; (part = next_part(&own_share)) >= 0; done++) {
      if (flow_failure_is_set(&instance->run->verdict)) continue;
      flow_status status = kernel->run_round(call, round, part);
      if (status != FLOW_OK) flow_failure_take(&instance->run->verdict, status);
    }
    finish_pieces(&walk, done);
  }
  flow_member_stop_watch(instance->run, own, instance->plan->segments[s].first, started);
}

/* All phases of a segment, by all members, each with its own `call` (NULL for slots, which bind their own); or of a replica that belongs
 * to this member (`members` is 1): then others may take parts, too, while it is open (flow_segment_help), and those have to be waited
 * for.
 *
 * The cut is written before `open` is stored with release order, and read after `open` was loaded with acquire order: a helper sees all
 * that the owner has bound. Not all helpers have left when `done` is complete, but what they still do is look at a ticket that has run
 * out. */
static void run_phases(flow_instance *instance, flow_region *region, flow_member *own, int s, const flow_cut *cut, const flow_call *call,
                       int member, int members)
{
  flow_progress *progress = &instance->part.progress[s];
  const flow_entry *entry = &instance->entries[instance->plan->segments[s].first];
  /* The same for all members, as nothing of it changes during a run. */
  const int is_kept = call && entry->kernel->first_phase_reads && entry->fixed && instance->derived.current;
  if (members == 1) progress->cut = *cut;
  for (int phase = is_kept; phase < cut->phases; phase++) {
    if (members > 1) {
      if (call && goes_by_rounds(entry->kernel, call, cut, phase, members)) {
        run_rounds(instance, region, own, s, call, member, members);
      } else {
        share own_share = begin_share(instance, own, member, members, cut->parts[phase]);
        take_parts(instance, own, s, phase, cut, call, &own_share);
      }
      flow_members_meet(region, members);
      continue;
    }
    atomic_store_explicit(&instance->part.open, s * FLOW_MAX_PHASES + phase, memory_order_release);
    draw_parts(instance, region, own, s, phase, cut, call);
    _Atomic int *done = &progress->done[phase];
    for (int seen; (seen = atomic_load(done)) < cut->parts[phase];) flow_region_wait(region, done, seen);
  }
}

/* The ticket is looked at before it is drawn: drawing from one that has run out is harmless, but binding the replica's operands for
 * nothing is not cheap. */
int flow_segment_help(flow_instance *replica, flow_region *region, int member)
{
  flow_member *own = &replica->members[member];
  int open = atomic_load_explicit(&replica->part.open, memory_order_acquire), s = open / FLOW_MAX_PHASES, phase = open % FLOW_MAX_PHASES;
  if (open < 0) return 0;
  flow_progress *progress = &replica->part.progress[s];
  if (atomic_load_explicit(&progress->tickets[phase].next, memory_order_relaxed) >= progress->cut.parts[phase]) return 0;
  flow_bind_run(replica, own);
  draw_parts(replica, region, own, s, phase, &progress->cut, &own->calls[replica->plan->segments[s].first]);
  return 1;
}

/* ---- segments --------------------------------------------------------------------------------------------------------------- */

/* Whether members divide the entries of a segment instead of its slots: where these are so few that most members would have none. */
static int goes_by_pieces(const flow_stage *stage, int64_t slots, int members)
{
  enum { IDLE_SHARE = 4 };
  return members > 1 && (slots == 1 || (!stage->sums && slots * IDLE_SHARE <= members));
}

/* A segment of rows, by all of its members: prepare, slots or pieces, then the partial sums, with a barrier after each. In
 * `stage->lasting` are the entries whose preparations are kept from earlier runs. */
static void run_rows_segment(flow_instance *instance, flow_region *region, flow_member *own, int s, int member, int members)
{
  flow_stage *stage = &instance->stages[s];
  flow_cut cut = { .phases = 1, .parts = { active_slots(instance, s) } };
  if (stage->prepares > (instance->derived.current ? stage->lasting : 0)) {
    prepare_kernels(instance, own, s);
    flow_members_meet(region, members);
  }
  if (goes_by_pieces(stage, cut.parts[0], members)) {
    run_by_pieces(instance, region, own, s, member, members);
    flow_members_meet(region, members);
  } else {
    run_phases(instance, region, own, s, &cut, NULL, member, members);
  }
  if (stage->sums) {
    add_partials(instance, own, s, member, members);
    flow_members_meet(region, members);
  }
}

/* A segment of one entry over all rows, by all of its members. What a worker does not have of a divided update it fetches at the end;
 * the call that it gives to flow_collect_shards must not have changed by then. A kernel that prepares does so by one member, and all
 * wait for that; the condition must be the same for all members, so it depends on nothing that changes during the run. */
static void run_whole_segment(flow_instance *instance, flow_region *region, flow_member *own, int s, int member, int members)
{
  int e = instance->plan->segments[s].first;
  const flow_entry *entry = &instance->entries[e];
  flow_call whole = own->calls[e], *call = &whole;
  flow_shard shard;
  flow_cut cut;
  /* Without a barrier, so no member may change the verdict here. */
  if (entry->alias || (instance->stages[s].fixed && instance->derived.current)) return;
  if (entry->loop) {
    flow_loop_run_all(instance, region, own, e, member, members);
    return;
  }
  if (flow_is_sharded(instance->set, e)) {
    shard = flow_shard_of(instance->set, e, instance->set->exchange->worker);
    call->shard = &shard;
  }
  if (member == 0) look_for_interrupt(instance->run, &instance->plan->segments[s]);
  call->members = members;
  flow_cut_call(flow_op(call->op), entry->kernel, call, &cut);
  if (entry->kernel->prepare && !(entry->fixed && instance->derived.current)) {   /* a MAP kernel over a batch of fixed size */
    if (flow_ticket_take(&instance->part.progress[s].prepare_ticket) == 0 && !flow_failure_is_set(&instance->run->verdict)) {
      double started = flow_member_start_watch(instance->run);
      flow_status status = entry->kernel->prepare(call);
      if (status != FLOW_OK) flow_failure_take(&instance->run->verdict, status);
      flow_member_stop_watch(instance->run, own, e, started);
    }
    flow_members_meet(region, members);
  }
  run_phases(instance, region, own, s, &cut, call, member, members);
  if (!call->shard) return;
  if (member == 0 && !flow_failure_is_set(&instance->run->verdict)) {
    double started = flow_member_start_watch(instance->run);
    flow_collect_shards(instance->set, e, call);
    flow_member_stop_watch(instance->run, own, e, started);
  }
  flow_members_meet(region, members);
}

void flow_segment_run(flow_instance *instance, flow_region *region, flow_member *own, int s, int member, int members)
{
  if (instance->plan->segments[s].by_rows) run_rows_segment(instance, region, own, s, member, members);
  else run_whole_segment(instance, region, own, s, member, members);
}
