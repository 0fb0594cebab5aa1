/* executor.c: one run of the replicas of a set, which may be one. There is one parallel region per run: every member of the team walks
 * the same segments, with a barrier after each. Kernels that fail leave a verdict; then the remaining work is skipped (never the
 * barriers) and the commit tail writes nothing.
 *
 * Who does what. One replica: all members work on each segment together (segment.h). Several replicas: member m does replicas m, m +
 * members, ... alone, so that no member waits inside of the body; where all replicas have to meet, at a sum over them, members that are
 * early take parts of those that are late (meet_replicas). The commit tail is always run by all members on the lead.
 *
 * Order of collectives. Every worker begins and finishes the same sums in the same order, since the order follows from the plan and from
 * nothing that differs between workers, such as timing or the number of members. A worker that fails must not stop calling: that is why
 * failures become a verdict that is looked at where all members agree on it, right after a barrier.
 *
 * Undo. Effects that the plan has before its checks of data are done (plan->undo_end) are copied aside before the run, and copied back
 * if it fails. The effects after them need no copy: they run only when nothing can fail any more. */
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
 * until all are here or nothing has been left to take for a while.
 *
 * `arrivals` counts through the whole run, so that no member has to set it back: this meeting is complete at the next multiple of
 * `members`. Reading it gives no order of memory; the barrier at the end does. PATIENCE is of the order of what sleeping and waking up
 * cost, so that polling never takes much more than the sleep that it replaces. */
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

/* Time at a sum counts for the segment's entry, of the lead, whichever replica the member has. */
static void stop_watch(const flow_instance *lead, int member, int segment, double started)
{
  flow_member_stop_watch(lead->run, &lead->members[member], lead->plan->segments[segment].first, started);
}

/* A sum that all replicas here have come to, called by all members. Over the workers it begins at once, and goes on while the body does;
 * over replicas of this process alone it is made when it is needed (finish_sums), with as few barriers as can be.
 *
 * Between the two meetings each member adds a range of the elements over all replicas; the second one is needed since member 0 sends
 * what all have written. */
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

/* The sum of segment s is needed, called by all members. Of the segments before `end`, which have run, all sums are made at one meeting.
 * *pending: the first segment whose sum may still have to be made; every member has its own and keeps it alike. Returns after a barrier,
 * so that all see the sums, and the verdict if one failed. */
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

/* The body: stretches of segments between sums. Returns the first segment of the commit tail, or how many segments there are. Then all
 * sums have been waited for, and every member is past the last barrier of the body.
 *
 * A stretch ends before a segment that is a sum, or that is the first to read one. A segment may be both; then it is first waited for
 * and then begun, in two turns of the loop. The last line matters: a failure of a sum that nothing reads must be known before the commit
 * tail begins. */
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

/* Binds the operands of a member: of its own replicas, and of the lead, whose commit tail all members run. Each member does this for
 * itself, in parallel, and writes only what is its own. */
static void bind_member(flow_replica_set *set, int member, int members)
{
  flow_instance *lead = set->lead;
  flow_bind_run(lead, &lead->members[member]);
  for (int r = member; r < set->count; r += members)
    if (r > 0) flow_bind_run(set->replicas[r], &set->replicas[r]->members[member]);
  if (set->run.profiled) memset(lead->members[member].watches, 0, sizeof(flow_watch) * (size_t)lead->plan->order_count);
}

/* What each member of the team does in a run; `argument` is the set. */
static void run_member(flow_region *region, int member, int members, void *argument)
{
  flow_replica_set *set = argument;
  flow_instance *lead = set->lead;
  bind_member(set, member, members);
  if (set->run.profiled && member == 0) set->run.members = members;
  /* A failed run comes to all barriers of the tail, too: one member may already have failed there when another one begins it. */
  for (int s = walk_body(set, region, member, members); s < lead->plan->segment_count; s++)
    flow_segment_run(lead, region, &lead->members[member], s, member, members);
}

static double counted(int64_t rows)
{
  return rows > 0 ? (double)rows : 1;
}
static double rows_of(const flow_instance *lead)
{
  return counted(lead->part.rows);
}

/* How many members the next run takes: one, if that has been faster lately (pace.h), else all, but with several replicas not more than
 * one for each. */
static int choose_members(flow_instance *lead, double rows, int replicas)
{
  int members = flow_team_size();
  if (!flow_pace_choose(&lead->pace, rows)) return 1;
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

/* Makes room for as many members as the team has now. It never shrinks: members that are left over stay idle. */
static flow_status take_members(flow_replica_set *set, int members)
{
  for (int r = 0; r < set->count; r++)
    if (members > set->replicas[r]->member_count) FLOW_TRY(flow_instance_set_members(set->replicas[r], members));
  return FLOW_OK;
}

flow_status flow_execute_prepare(flow_replica_set *set, int64_t rows)
{
  return set->lead->device ? FLOW_OK : take_members(set, choose_members(set->lead, counted(rows), set->count));
}

/* A run on the CPU, by the caller's thread. Memory for more members is taken before anything is begun, if flow_execute_prepare has not;
 * the team is larger than at the run before only if FLOW_THREADS or its setter changed. With an exchange a run is not interruptible: a
 * worker that ended alone would leave the others in a collective, so that an interrupt is announced with the next run
 * (replicas/divide.c). What has failed late is returned after `committed` is set, and the run does not count for the pace if it
 * failed. */
static flow_status execute_on_cpu(flow_replica_set *set)
{
  flow_instance *lead = set->lead;
  flow_run_state *run = &set->run;
  flow_profile *profile = run->context->profile;
  int members = choose_members(lead, rows_of(lead), set->count);
  FLOW_TRY(take_members(set, members));
  for (int r = 0; r < set->count; r++) {
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
  flow_change_over_weights(set);
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
