/* test_team.c: the thread team: regions, barriers, sizes, nested and busy calls, fork, signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/team.h"
#include "child.h"

/* A child that computes after fork is a supported use; ThreadSanitizer gives up on it unless told not to. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
  return "die_after_fork=0";
}

enum { MOST = 64, ROUNDS = 50 };

typedef struct visit { _Atomic int seen[MOST]; _Atomic int members; _Atomic int outside; } visit;

static void note_visit(flow_region *region, int member, int members, void *argument)
{
  visit *self = argument;
  (void)region;
  if (member < 0 || member >= members || member >= MOST) atomic_fetch_add(&self->outside, 1);
  else atomic_fetch_add(&self->seen[member], 1);
  atomic_store(&self->members, members);
}

static void check_visit(int wanted, int expected)
{
  visit v = { 0 };
  flow_team_run(wanted, note_visit, &v);
  assert_int_equal(v.members, expected);
  assert_int_equal(v.outside, 0);
  for (int member = 0; member < MOST; member++) assert_int_equal(v.seen[member], member < expected);
}

static void every_member_runs_once(void **state)
{
  (void)state;
  assert_int_equal(flow_team_set_size(4), FLOW_OK);
  assert_int_equal(flow_team_size(), 4);
  for (int round = 0; round < ROUNDS; round++) {
    check_visit(0, 4);
    check_visit(1, 1);
    check_visit(3, 3);
    check_visit(9, 4);
  }
}

static void sizes_grow_shrink_and_are_checked(void **state)
{
  (void)state;
  static const int sizes[] = { 2, 40, 3, 1, 5 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(flow_team_set_size(sizes[i]), FLOW_OK);
    check_visit(0, sizes[i]);
  }
  assert_int_equal(flow_team_set_size(-1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_team_set_size(100000), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "100000"));
  assert_int_equal(flow_team_set_size(256), FLOW_OK);
  assert_int_equal(flow_team_set_size(0), FLOW_OK);
  assert_in_range(flow_team_size(), 1, 512);
}

/* Each phase every member adds what it read before the phase; a barrier that lets one through early breaks the sum. */
typedef struct ring { int64_t value[MOST]; int64_t next[MOST]; _Atomic int wrong; } ring;

static void pass_around(flow_region *region, int member, int members, void *argument)
{
  ring *self = argument;
  self->value[member] = member;
  flow_region_barrier(region);
  for (int round = 0; round < 200; round++) {
    self->next[member] = self->value[(member + 1) % members];
    flow_region_barrier(region);
    self->value[member] = self->next[member];
    flow_region_barrier(region);
    if (self->value[member] != (member + round + 1) % members) atomic_fetch_add(&self->wrong, 1);
  }
}

static void barriers_hold_everybody(void **state)
{
  (void)state;
  for (int size = 1; size <= 5; size += 2) {
    ring r = { 0 };
    flow_team_set_size(size);
    flow_team_run(0, pass_around, &r);
    assert_int_equal(r.wrong, 0);
    assert_int_equal(r.value[0], 200 % size);
  }
}

typedef struct work { flow_ticket ticket; _Atomic int64_t sum; } work;

static void draw_tickets(flow_region *region, int member, int members, void *argument)
{
  (void)region, (void)member, (void)members;
  work *self = argument;
  for (int64_t part; (part = flow_ticket_take(&self->ticket)) < 1000;) atomic_fetch_add(&self->sum, part);
}

static void tickets_hand_out_every_part_once(void **state)
{
  (void)state;
  flow_team_set_size(3);
  work w = { 0 };
  flow_team_run(0, draw_tickets, &w);
  assert_int_equal(w.sum, 499500);
}

static void run_inner(flow_region *region, int member, int members, void *argument)
{
  (void)region, (void)member;
  visit inner = { 0 };
  flow_team_run(0, note_visit, &inner);
  if (inner.members != 1 || inner.seen[0] != 1) atomic_fetch_add((_Atomic int *)argument, 100);
  atomic_fetch_add((_Atomic int *)argument, members > 1);
}

static void nested_regions_run_alone(void **state)
{
  (void)state;
  _Atomic int runs = 0;
  flow_team_set_size(3);
  flow_team_run(0, run_inner, &runs);
  assert_int_equal(runs, 3);
}

/* Several callers at once: whoever finds the team busy does all the work itself. */
static void *call_often(void *argument)
{
  for (int round = 0; round < ROUNDS; round++) {
    work w = { 0 };
    flow_team_run(0, draw_tickets, &w);
    if (w.sum != 499500) atomic_fetch_add((_Atomic int *)argument, 1);
  }
  return NULL;
}

static void callers_at_once_all_get_their_result(void **state)
{
  (void)state;
  pthread_t callers[4];
  _Atomic int wrong = 0;
  flow_team_set_size(3);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&callers[i], NULL, call_often, &wrong), 0);
  for (int i = 0; i < 4; i++) pthread_join(callers[i], NULL);
  assert_int_equal(wrong, 0);
}

typedef struct meeting { _Atomic int inside, leave; int inner_members; } meeting;

static void stay_until_told(flow_region *region, int member, int members, void *argument)
{
  (void)region, (void)member, (void)members;
  meeting *self = argument;
  atomic_fetch_add(&self->inside, 1);
  while (!atomic_load(&self->leave)) usleep(100);
}

static void *own_the_team(void *argument)
{
  flow_team_run(0, stay_until_told, argument);
  return NULL;
}

/* The caller may do the part of a thread that sleeps: parts by member number are done once all the same. */
static void sleeping_threads_lose_no_part(void **state)
{
  (void)state;
  flow_team_set_size(4);
  for (int round = 0; round < 20; round++) {
    usleep(500);                        /* longer than workers spin */
    check_visit(0, 4);
  }
}

static void a_busy_team_leaves_the_caller_alone(void **state)
{
  (void)state;
  meeting m = { 0 };
  pthread_t owner;
  flow_team_set_size(2);
  assert_int_equal(pthread_create(&owner, NULL, own_the_team, &m), 0);
  while (atomic_load(&m.inside) < 2) usleep(100);
  check_visit(0, 1);
  atomic_store(&m.leave, 1);
  pthread_join(owner, NULL);
  check_visit(0, 2);
}

static int child_computes(void)
{
  work w = { 0 };
  visit v = { 0 };
  flow_team_run(0, draw_tickets, &w);
  flow_team_run(0, note_visit, &v);
  flow_log(FLOW_LOG_INFO, "child");
  return w.sum == 499500 && v.members == 3 && v.seen[2] == 1 && v.outside == 0;
}

static void wait_for_child(pid_t child)
{
  int status = 0;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_forked_child_computes_with_threads_of_its_own(void **state)
{
  (void)state;
  flow_team_set_size(3);
  check_visit(0, 3);
  for (int round = 0; round < 3; round++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(CHILD_SECONDS);
      _exit(child_computes() ? 0 : 1);
    }
    wait_for_child(child);
    check_visit(0, 3);
  }
}

static void a_child_forked_while_the_team_is_busy_computes(void **state)
{
  (void)state;
  meeting m = { 0 };
  pthread_t owner;
  flow_team_set_size(3);
  assert_int_equal(pthread_create(&owner, NULL, own_the_team, &m), 0);
  while (atomic_load(&m.inside) < 3) usleep(100);
  pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    _exit(child_computes() ? 0 : 1);
  }
  atomic_store(&m.leave, 1);
  pthread_join(owner, NULL);
  wait_for_child(child);
}

static void read_mask(flow_region *region, int member, int members, void *argument)
{
  (void)members;
  sigset_t blocked;
  flow_region_barrier(region);          /* each member on its own thread */
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  ((int *)argument)[member] = sigismember(&blocked, SIGINT) + 2 * sigismember(&blocked, SIGTERM) + 4 * sigismember(&blocked, SIGSEGV);
}

static void workers_block_the_hosts_signals(void **state)
{
  (void)state;
  int masks[3] = { -1, -1, -1 };
  flow_team_set_size(3);
  flow_team_run(0, read_mask, masks);
  assert_int_equal(masks[0], 0);
  assert_int_equal(masks[1], 3);
  assert_int_equal(masks[2], 3);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_member_runs_once),
    cmocka_unit_test(sizes_grow_shrink_and_are_checked),
    cmocka_unit_test(barriers_hold_everybody),
    cmocka_unit_test(tickets_hand_out_every_part_once),
    cmocka_unit_test(nested_regions_run_alone),
    cmocka_unit_test(callers_at_once_all_get_their_result),
    cmocka_unit_test(sleeping_threads_lose_no_part),
    cmocka_unit_test(a_busy_team_leaves_the_caller_alone),
    cmocka_unit_test(a_forked_child_computes_with_threads_of_its_own),
    cmocka_unit_test(a_child_forked_while_the_team_is_busy_computes),
    cmocka_unit_test(workers_block_the_hosts_signals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
