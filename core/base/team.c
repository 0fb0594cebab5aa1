/* team.c: the persistent thread team.
 *
 * The thread that swaps `busy` from 0 to 1 owns the team for one region: only the owner starts threads and writes the region. Each worker
 * has its own mailbox: the owner posts to those that take part, a worker takes its post, and the owner waits until all that were taken have
 * returned, so a worker reads the region only between taking and returning. Workers spin for some tens of microseconds after a region,
 * since regions come in series, then sleep.
 *
 * Waking a thread can take longer than a small region lasts. An owner that has done its own part therefore revokes the posts that no
 * worker has taken yet and does these members' parts itself. That cannot break a barrier: where there is one, the owner has passed it,
 * so every member has arrived there.
 *
 * Threads are detached and never stopped: the library stays mapped (-z nodelete), sleeping threads cost nothing, and the end of the
 * process takes them along. After fork only the calling thread exists in the child: the child's handler makes every mailbox again and
 * the next region starts fresh threads.
 *
 * Order of memory. What the owner writes before post() is read by a worker after take_post(): `posted` is exchanged with acquire order.
 * What a member writes before a barrier is read by all after it: `arrived` is counted with acquire and release, and `phase` is stored
 * after the last arrival. Sleeping is a race of two flags (a sleeper says that it sleeps and looks once more; the one that has changed the
 * number looks whether somebody sleeps), which is only right if these four accesses are sequentially consistent. */
#define _GNU_SOURCE            /* CPU_COUNT, sched_getaffinity */
#include "base/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/cgroup.h"
#include "base/float_state.h"
#include "base/futex.h"
#include "base/thread.h"

/* SPIN_NANOSECONDS is about what sleeping and being woken costs: a thread that waits for less has gained, one that waits longer has lost at
 * most twice. The clock is read every PAUSES_PER_LOOK pauses, since reading it costs more than looking at the number. */
enum { MOST_MEMBERS = 512, SPIN_NANOSECONDS = 50000, PAUSES_PER_LOOK = 16 };

struct flow_region {
  flow_region_function fn;
  void       *argument;
  int         members;
  _Atomic int arrived;         /* members at the barrier */
  _Atomic int phase;           /* barriers passed: what the waiting members watch */
  _Atomic int running;         /* members posted to whose part is not done */
  _Atomic int sleepers;        /* members asleep until phase or running changes */
};

typedef struct worker {
  _Atomic int      posted;     /* a post that was not taken yet: the worker does its part, or the owner revokes it */
  _Atomic int      asleep;
  int              member;
  pthread_mutex_t  lock;       /* only for sleeping and waking */
  pthread_cond_t   wake;
  flow_thread      thread;
} __attribute__((aligned(64))) worker;

static struct {
  _Atomic int busy;            /* 1 while a thread owns the team */
  _Atomic int size;            /* flow_team_set_size; 0 = as the environment and the cores have it */
  _Atomic int cores;           /* of the affinity mask, found when the team starts; 0 before */
  _Atomic int quota;           /* of the control group, in cores, read once; 0: not read yet */
  _Atomic int wished;          /* FLOW_THREADS, read once: -1: not set; 0: not read yet */
  _Atomic int may_start;       /* 0 after a thread could not be started, until the size is set again */
  int         started;         /* workers that exist: member numbers 1 .. started */
  flow_region region;
  worker      workers[MOST_MEMBERS];   /* [member]; 0 is unused */
} team = { .may_start = 1 };

static _Thread_local int inside_region;
static pthread_once_t    register_once = PTHREAD_ONCE_INIT;

/* Waits until *number of the region differs from `old`: by spinning, then asleep. A member that keeps spinning while others
 * have been preempted by another program would hold the core that they need. */
void flow_region_wait(flow_region *region, _Atomic int *number, int old)
{
  int64_t give_up = flow_now_nanoseconds() + SPIN_NANOSECONDS;
  do {
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
      if (atomic_load_explicit(number, memory_order_acquire) != old) return;
      flow_pause_briefly();
    }
  } while (flow_now_nanoseconds() < give_up);
  /* Sequentially consistent, as in flow_region_tell(): either the change is seen here or the sleeper is seen there. */
  atomic_fetch_add(&region->sleepers, 1);
  while (atomic_load(number) == old) flow_futex_sleep(number, old, -1);
  atomic_fetch_sub(&region->sleepers, 1);
}

/* After *number has changed (by a sequentially consistent write). */
void flow_region_tell(flow_region *region, _Atomic int *number)
{
  if (atomic_load(&region->sleepers) > 0) flow_futex_wake(number);
}

/* ---- workers --------------------------------------------------------------------------------------------------- */

/* Takes a worker's post, by the worker or by the owner who revokes it: exactly one of them gets it. */
static int take_post(worker *of)
{
  int posted = 1;
  return atomic_load_explicit(&of->posted, memory_order_relaxed) &&
         atomic_compare_exchange_strong_explicit(&of->posted, &posted, 0, memory_order_acquire, memory_order_relaxed);
}

/* Returns when a post was taken. The wait on the condition is by the worker alone, so its lock is never contended for long. */
static void wait_for_post(worker *self)
{
  int64_t give_up = flow_now_nanoseconds() + SPIN_NANOSECONDS;
  do {
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
      if (take_post(self)) return;
      flow_pause_briefly();
    }
  } while (flow_now_nanoseconds() < give_up);
  pthread_mutex_lock(&self->lock);
  /* Sequentially consistent, as in post(): either the owner sees `asleep` or this thread sees the post. */
  atomic_store(&self->asleep, 1);
  while (!atomic_load(&self->posted) || !take_post(self)) pthread_cond_wait(&self->wake, &self->lock);
  atomic_store(&self->asleep, 0);
  pthread_mutex_unlock(&self->lock);
}

/* The part of a member, by its worker or by the owner, and the word that it is done. */
static void do_part(int member)
{
  team.region.fn(&team.region, member, team.region.members, team.region.argument);
  atomic_fetch_sub(&team.region.running, 1);
  flow_region_tell(&team.region, &team.region.running);
}

/* For ever: a worker ends with the process. */
static void *worker_main(void *argument)
{
  worker *self = argument;
  inside_region = 1;            /* whatever runs here runs inside a region */
  for (;;) {
    wait_for_post(self);
    do_part(self->member);
  }
  return NULL;
}

/* Gives a worker its post, and wakes it if it sleeps. The lock is taken so that the signal does not come between the worker's look at
 * `posted` and its wait. */
static void post(worker *to)
{
  atomic_store(&to->posted, 1);
  if (!atomic_load(&to->asleep)) return;
  pthread_mutex_lock(&to->lock);
  pthread_cond_signal(&to->wake);
  pthread_mutex_unlock(&to->lock);
}

/* ---- starting and forking ----------------------------------------------------------------------------------------- */

/* In a forked child, which has the calling thread only. Nothing here may lock or allocate. */
static void forget_threads_in_child(void)
{
  team.started = 0;
  atomic_store(&team.busy, 0); /* the owner of the team is a thread of the parent */
  atomic_store(&team.quota, 0);
  atomic_store(&team.cores, 0);         /* children are often pinned to their own cores */
  atomic_store(&team.may_start, 1);
  atomic_store(&team.region.sleepers, 0);
}

static void register_fork_handler(void)
{
  if (pthread_atfork(NULL, NULL, forget_threads_in_child) != 0) atomic_store(&team.may_start, 0);
}

/* Returns 0 if the thread could not be started. */
static int start_worker(int member)
{
  worker *fresh = &team.workers[member];
  fresh->member = member;
  fresh->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;   /* not init(): after fork the old contents mean nothing */
  fresh->wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  atomic_store(&fresh->posted, 0);
  atomic_store(&fresh->asleep, 0);
  return flow_thread_start_detached(&fresh->thread, "flow-team", worker_main, fresh) == 0;
}

/* Called by the owner of the team. If fewer threads start than were asked for, the region has fewer members, with the same result. */
static void start_workers(int members)
{
  pthread_once(&register_once, register_fork_handler);
  if (!atomic_load(&team.may_start)) return;
  while (team.started + 1 < members) {
    if (!start_worker(team.started + 1)) {
      atomic_store(&team.may_start, 0);     /* a limit of the host: do not ask again for every region */
      break;
    }
    team.started++;
  }
}

int flow_core_count(void)
{
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  long cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : sysconf(_SC_NPROCESSORS_ONLN);
  int quota = atomic_load_explicit(&team.quota, memory_order_relaxed);
  if (quota == 0) {
    quota = flow_cgroup_cores("/proc/self/cgroup", "/sys/fs/cgroup");
    atomic_store_explicit(&team.quota, quota, memory_order_relaxed);
  }
  if (quota < cores) cores = quota;
  return cores < 1 ? 1 : cores > MOST_MEMBERS ? MOST_MEMBERS : (int)cores;
}

/* -1 if the environment has no FLOW_THREADS of use. Threads that race here read the same. */
static int wished_size(void)
{
  int wished = atomic_load_explicit(&team.wished, memory_order_relaxed);
  if (wished != 0) return wished;
  const char *text = getenv("FLOW_THREADS");
  char *end = NULL;
  long count = text && *text ? strtol(text, &end, 10) : -1;
  int useful = end && *end == '\0' && count >= 1 && count <= MOST_MEMBERS;
  int expected = 0;
  wished = useful ? (int)count : -1;
  int first = atomic_compare_exchange_strong(&team.wished, &expected, wished);
  if (first && end && !useful) {
    char message[160];
    snprintf(message, sizeof message, "FLOW_THREADS=%.32s: a whole number from 1 to %d is expected; using one thread for each core", text,
             MOST_MEMBERS);
    flow_log(FLOW_LOG_WARNING, message);
  }
  return first ? wished : expected;
}

static _Thread_local int left_team;

void flow_team_leave(void)
{
  left_team = inside_region = 1;
}

int flow_team_size(void)
{
  if (left_team) return 1;
  int size = atomic_load_explicit(&team.size, memory_order_relaxed);
  if (size > 0) return size;
  int wished = wished_size();
  if (wished > 0) return wished;
  int cores = atomic_load_explicit(&team.cores, memory_order_relaxed);
  return cores > 0 ? cores : flow_core_count();
}

flow_status flow_team_set_size(int count)
{
  if (count < 0 || count > MOST_MEMBERS) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "the number of threads is %d; it must be 1 to %d, or 0 for one per core",
                     count, MOST_MEMBERS);
  }
  atomic_store(&team.size, count);
  atomic_store(&team.may_start, 1);
  return FLOW_OK;
}

/* ---- regions ------------------------------------------------------------------------------------------------------ */

/* A region of one member on the caller's stack: it needs no ownership of the team. */
static void run_alone(flow_region_function fn, void *argument)
{
  flow_region region = { .fn = fn, .argument = argument, .members = 1 };
  int before = inside_region;
  inside_region = 1;
  fn(&region, 0, 1, argument);
  inside_region = before;
}

/* The region of all members, once the team is the caller's and its threads are there. */
static void run_as_owner(int members, flow_region_function fn, void *argument)
{
  flow_region *region = &team.region;
  region->fn = fn;
  region->argument = argument;
  region->members = members;
  atomic_store_explicit(&region->arrived, 0, memory_order_relaxed);
  atomic_store_explicit(&region->running, members - 1, memory_order_relaxed);
  for (int member = 1; member < members; member++) post(&team.workers[member]);
  inside_region = 1;
  fn(region, 0, members, argument);
  for (int member = members - 1; member > 0; member--) {       /* the last posted are the least likely to be awake */
    if (take_post(&team.workers[member])) do_part(member);
  }
  inside_region = 0;
  for (int left; (left = atomic_load_explicit(&region->running, memory_order_acquire)) != 0;) {
    flow_region_wait(region, &region->running, left);
  }
}

/* Acquire and release on `busy` hand the region's fields from one owner to the next. */
void flow_team_run(int wanted, flow_region_function fn, void *argument)
{
  FLOW_DEFAULT_FLOATS;
  int free_team = 0;
  if (inside_region || wanted == 1 || flow_team_size() == 1 ||
      !atomic_compare_exchange_strong_explicit(&team.busy, &free_team, 1, memory_order_acquire, memory_order_relaxed)) {
    run_alone(fn, argument);
    return;
  }
  if (atomic_load_explicit(&team.cores, memory_order_relaxed) == 0) atomic_store(&team.cores, flow_core_count());
  int members = flow_team_size();
  if (wanted > 0 && wanted < members) members = wanted;
  if (team.started + 1 < members) start_workers(members);
  if (team.started + 1 < members) members = team.started + 1;
  if (members > 1) run_as_owner(members, fn, argument);
  else run_alone(fn, argument);
  atomic_store_explicit(&team.busy, 0, memory_order_release);
}

/* `arrived` is set back before the phase moves on: a member that goes on may come to the next barrier at once. */
void flow_region_barrier(flow_region *region)
{
  if (region->members == 1) return;
  int phase = atomic_load_explicit(&region->phase, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&region->arrived, 1, memory_order_acq_rel) + 1 < region->members) {
    flow_region_wait(region, &region->phase, phase);
    return;
  }
  atomic_store_explicit(&region->arrived, 0, memory_order_relaxed);
  atomic_store(&region->phase, (int)((unsigned)phase + 1u));
  flow_region_tell(region, &region->phase);
}
