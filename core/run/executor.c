/* executor.c: one run of the replicas of a set, which may be one. One parallel region per run: every member of the team walks the same
 * segments with a barrier after each. Kernels that fail leave a verdict; then the remaining work is skipped (never the barriers) and
 * the commit tail writes nothing. */
#include "run/executor.h"

#include <string.h>
#include "base/futex.h"
#include "graph/profile.h"
#include "run/binding.h"
#include "run/device/device_run.h"
#include "run/profile_run.h"
#include "run/segment.h"

/* ---- the body --------------------------------------------------------------------------------------------------------------- */

/* Segments [first, end) of the body: by all members on the one replica, or each on its own replicas. */
static void run_body(const flow_replica_set *set, flow_region *region, int first, int end, int member, int members)
{
  if (set->count == 1) {
    for (int s = first; s < end; s++) flow_segment_run(set->lead, region, &set->lead->members[member], s, member, members);
    return;
  }
  for (int r = member; r < set->count; r += members)
    for (int s = first; s < end; s++) flow_segment_run(set->replicas[r], region, &set->replicas[r]->members[member], s, 0, 1);
}

/* All replicas come here. Cores are not equally fast all the time: a member that comes early takes parts of the replicas that are late,
 * until all are here or nothing has been left to take for a while. */
static void meet_replicas(flow_replica_set *set, flow_region *region, int member, int members)
{
  enum { PATIENCE = 50000 };       /* nanoseconds */
  int before = atomic_fetch_add(&set->arrivals, 1), all = (before / members + 1) * members;
  int64_t give_up = flow_now_nanoseconds() + PATIENCE;
  while (atomic_load_explicit(&set->arrivals, memory_order_relaxed) < all && flow_now_nanoseconds() < give_up) {
    int helped = 0;
    for (int r = 0; r < set->count; r++) helped |= r % members != member && flow_segment_help(set->replicas[r], region, member);
    if (helped) give_up = flow_now_nanoseconds() + PATIENCE;
    else flow_pause_briefly();
  }
  flow_members_meet(region, members);
}

static void stop_watch(const flow_instance *lead, int member, int segment, double started)
{
  flow_member_stop_watch(lead->run, &lead->members[member], lead->plan->segments[segment].first, started);
}

/* A sum that all replicas here have come to. Over the workers it begins at once, and goes on while the body does; over replicas of this
 * process alone it is made when it is needed, with as few barriers as can be. */
static void begin_sum(flow_replica_set *set, flow_region *region, int s, int member, int members)
{
  double started = flow_member_start_watch(&set->run);
  if (set->count > 1) {
    if (!set->exchange) return;
    meet_replicas(set, region, member, members);
    if (!flow_failure_is_set(&set->run.verdict)) flow_add_replicas(set, s, member, members);
    flow_members_meet(region, members);
  } else if (member == 0) {
    flow_add_replicas(set, s, 0, 1);
  }
  if (set->exchange && member == 0) flow_send_sum(set, s);
  stop_watch(set->lead, member, s, started);
}

/* The sum of segment s is needed. Of the segments before `end`, which have run, all sums are made at one meeting. *pending: the first
 * segment whose sum may still have to be made. */
static void finish_sums(flow_replica_set *set, flow_region *region, int s, int end, int *pending, int member, int members)
{
  double started = flow_member_start_watch(&set->run);
  if (set->exchange) {
    if (member == 0) flow_receive_sums(set, s, end);
  } else if (set->count > 1) {
    meet_replicas(set, region, member, members);
    for (; *pending < end; ++*pending)
      if (set->lead->stages[*pending].collective && !flow_failure_is_set(&set->run.verdict))
        flow_add_replicas(set, *pending, member, members);
  }
  flow_members_meet(region, members);
  stop_watch(set->lead, member, s, started);
}

/* Whether segment s is the first to read a sum that may still be under way. */
static int waits(const flow_instance *lead, int s) { return lead->stages[s].waits_for >= 0; }

/* The body: stretches of segments between sums. Returns the first segment of the commit tail, or how many segments there are. Then all sums
 * have been waited for, and every member is past the last barrier of the body. */
static int walk_body(flow_replica_set *set, flow_region *region, int member, int members)
{
  const flow_instance *lead = set->lead;
  const flow_plan *plan = lead->plan;
  int s = 0, pending = 0;
  while (s < plan->segment_count && !plan->segments[s].tail) {
    int end = s;
    if (waits(lead, s) && lead->stages[s].waits_for >= pending)
      finish_sums(set, region, lead->stages[s].waits_for, s, &pending, member, members);
    while (end < plan->segment_count && !plan->segments[end].tail && !lead->stages[end].collective && (end == s || !waits(lead, end)))
      end++;
    run_body(set, region, s, end, member, members);
    if (end < plan->segment_count && lead->stages[end].collective && (end == s || !waits(lead, end)))
      begin_sum(set, region, end++, member, members);
    s = end;
  }
  if (lead->last_sum >= pending) finish_sums(set, region, lead->last_sum, s, &pending, member, members);
  else if (set->count > 1) meet_replicas(set, region, member, members);
  return s;
}

/* ---- members ------------------------------------------------------------------------------------------------------------------ */

/* The binding of a member: of its own replicas, and of the lead, whose commit tail all members run. */
static void bind_member(flow_replica_set *set, int member, int members)
{
  flow_instance *lead = set->lead;
  flow_bind_run(lead, &lead->members[member]);
  for (int r = member; r < set->count; r += members)
    if (r > 0) flow_bind_run(set->replicas[r], &set->replicas[r]->members[member]);
  if (set->run.profiled) memset(lead->members[member].watches, 0, sizeof(flow_watch) * (size_t)lead->plan->order_count);
}

static void run_member(flow_region *region, int member, int members, void *argument)
{
  flow_replica_set *set = argument;
  flow_instance *lead = set->lead;
  bind_member(set, member, members);
  if (set->run.profiled && member == 0) set->run.members = members;
  /* All see the same verdict after the body, and leave together. */
  for (int s = walk_body(set, region, member, members); s < lead->plan->segment_count && !flow_failure_is_set(&set->run.verdict); s++)
    flow_segment_run(lead, region, &lead->members[member], s, member, members);
}

static double rows_of(const flow_instance *lead) { return lead->part.rows > 0 ? (double)lead->part.rows : 1; }

/* How many members the next run takes. */
static int choose_members(flow_instance *lead, int replicas)
{
  int members = flow_team_size();
  if (!flow_pace_choose(&lead->pace, rows_of(lead))) return 1;
  return replicas > 1 && members > replicas ? replicas : members;
}

/* ---- a run -------------------------------------------------------------------------------------------------------------------- */

/* Copies what early effects write aside, or back. */
static void copy_undo_log(const flow_instance *instance, int back)
{
  for (int i = 0; i < instance->undo_count; i++) {
    const flow_undo_record *record = &instance->undo_log[i];
    char *aside = instance->undo_memory + record->offset, *storage = instance->part.bases[record->value];
    if (record->bytes) memcpy(back ? storage : aside, back ? aside : storage, record->bytes);
  }
}

static flow_status execute_on_cpu(flow_replica_set *set)
{
  flow_instance *lead = set->lead;
  flow_run_state *run = &set->run;
  flow_profile *profile = run->context->profile;
  int members = choose_members(lead, set->count);
  for (int r = 0; r < set->count; r++) {
    if (members > set->replicas[r]->member_count) FLOW_TRY(flow_instance_set_members(set->replicas[r], members));
    flow_segments_start(set->replicas[r]);
    flow_derived_look(set->replicas[r]);
  }
  atomic_store_explicit(&set->arrivals, 0, memory_order_relaxed);
  flow_failure_clear(&run->verdict);
  flow_failure_clear(&run->late);
  flow_start_sums(set);
  copy_undo_log(lead, 0);
  run->interruptible = !set->exchange;
  run->profiled = profile && profile->active;
  double started = flow_clock();
  flow_team_run(members, run_member, set);
  if (run->profiled) flow_profile_add_run(profile, set, flow_clock() - started);
  for (int r = 0; r < set->count; r++) flow_derived_note_run(set->replicas[r], !flow_failure_is_set(&run->verdict));
  if (flow_failure_is_set(&run->verdict)) {
    copy_undo_log(lead, 1);
    return flow_failure_raise(&run->verdict);
  }
  run->committed = 1;
  flow_pace_note(&lead->pace, members > 1, rows_of(lead), flow_clock() - started);
  return flow_failure_raise(&run->late);
}

flow_status flow_execute(flow_replica_set *set)
{
  if (!set->lead->device) return execute_on_cpu(set);
  FLOW_TRY(flow_device_run_execute(set));
  set->run.committed = 1;
  return FLOW_OK;
}
