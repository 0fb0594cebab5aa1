/* test_pace.c: whether runs go by the team or by one thread, on machines made up of numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "run/pace.h"

enum { ROWS = 4 };

/* Seconds of a run by one thread and by the team; by the team every `late`-th run (0: none) takes `slice` longer, and the first one after a
 * run by one thread `cold` longer. Threads sleep after a run by one thread, and come only `waking` seconds later: until then runs by
 * the team take as long as alone. */
typedef struct machine {
  double alone, together, slice, cold, waking;
  int late, runs, warm;
  double asleep;
} machine;

typedef struct outcome { double seconds; int by_team; } outcome;

static outcome run(flow_pace *pace, machine *on, int runs)
{
  outcome result = { 0 };
  for (int i = 0; i < runs; i++) {
    int team = flow_pace_choose(pace, ROWS);
    double seconds = team ? on->together : on->alone;
    if (team && on->late && ++on->runs % on->late == 0) seconds += on->slice;
    if (team && !on->warm) seconds += on->cold;
    if (!team) on->asleep = on->waking;
    else if (on->asleep > 0) on->asleep -= seconds = on->alone;
    on->warm = team;
    flow_pace_note(pace, team, ROWS, seconds);
    result.seconds += seconds;
    result.by_team += team;
  }
  return result;
}

static void small_runs_never_wake_the_team(void **state)
{
  (void)state;
  flow_pace pace = { 0 };
  assert_int_equal(run(&pace, &(machine){ .alone = 4e-6, .together = 1e-6 }, 10000).by_team, 0);
}

static void runs_go_by_the_team_where_that_is_faster(void **state)
{
  (void)state;
  flow_pace pace = { 0 };
  outcome all = run(&pace, &(machine){ .alone = 2e-3, .together = 1e-3 }, 10000);
  assert_in_range(all.by_team, 9700, 9998);
}

/* Waking threads costs more than the team brings in one run, but not in a series of runs. */
static void short_runs_in_a_row_go_by_the_team(void **state)
{
  (void)state;
  flow_pace pace = { 0 };
  outcome all = run(&pace, &(machine){ .alone = 30e-6, .together = 20e-6, .cold = 60e-6 }, 100000);
  assert_in_range(all.by_team, 95000, 99998);
  assert_true(all.seconds < 1.1 * 100000 * 20e-6);
}

/* Threads that sleep miss the first runs of a trial; so do those that the scheduler wakes where their caller runs, until it moves them. */
static void threads_that_wake_slowly_are_waited_for(void **state)
{
  (void)state;
  for (double waking = 250e-6; waking < 3e-3; waking *= 1.5) {
    flow_pace pace = { 0 };
    machine computer = { .alone = 170e-6, .together = 113e-6, .waking = waking };
    assert_in_range(run(&pace, &computer, 20000).by_team, 19000, 19998);
  }
  for (double alone = 30e-6; alone < 5e-3; alone *= 1.3) {
    flow_pace pace = { 0 };
    machine computer = { .alone = alone, .together = 0.8 * alone, .waking = 250e-6 };
    outcome all = run(&pace, &computer, 20000);
    if (all.by_team < 19000) print_error("runs of %g s: %d by the team\n", alone, all.by_team);
    assert_in_range(all.by_team, 19000, 19998);
  }
}

/* The first batches may be long and later ones short, or the other way around. */
static void the_number_of_first_runs_stays(void **state)
{
  (void)state;
  for (int more = 1; more <= 4096; more *= 4) {
    flow_pace pace = { 0 };
    for (int i = 0; i < 5000; i++) {
      double rows = i < 8 || i % 3 ? ROWS : ROWS * more, each = flow_pace_choose(&pace, rows) ? 10e-6 : 15e-6;
      flow_pace_note(&pace, flow_pace_choose(&pace, rows), rows, each * rows);
    }
    assert_true(pace.started == pace.to_start && pace.team == 1);
  }
}

static void one_thread_works_alone_beside_a_busy_neighbour(void **state)
{
  (void)state;
  for (int late = 1; late <= 16; late *= 2) {
    flow_pace pace = { 0 };
    outcome all = run(&pace, &(machine){ .alone = 200e-6, .together = 190e-6, .slice = 5e-3, .late = late }, 20000);
    assert_true(all.seconds < 1.15 * 20000 * 200e-6);
  }
}

static void the_team_comes_back_when_the_neighbour_has_gone(void **state)
{
  (void)state;
  flow_pace pace = { 0 };
  machine computer = { .alone = 1e-3, .together = 0.5e-3, .slice = 5e-3, .late = 2 };
  assert_in_range(run(&pace, &computer, 5000).by_team, 2, 500);
  computer.late = 0;
  assert_in_range(run(&pace, &computer, 5000).by_team, 4000, 5000);
}

/* The first run of a trial may take far longer than those after it: what it reads is in the caches of another core. */
static void a_cold_first_run_does_not_end_a_trial(void **state)
{
  (void)state;
  for (double alone = 450e-6; alone < 1e-3; alone *= 1.1) {
    flow_pace pace = { 0 };
    machine computer = { .alone = alone, .together = 0.65 * alone, .slice = 5e-3, .late = 1, .cold = 300e-6 + 0.7 * alone };
    run(&pace, &computer, 200);
    computer.late = 0;
    assert_in_range(run(&pace, &computer, 5000).by_team, 4000, 5000);
  }
}

/* One run that took 10 ms says nothing of the next ones: the team is tried again after the usual time, not after many times that. */
static void a_long_accident_is_soon_forgotten(void **state)
{
  (void)state;
  flow_pace pace = { 0 };
  machine computer = { .alone = 170e-6, .together = 113e-6 };
  assert_in_range(run(&pace, &computer, 5000).by_team, 4900, 4998);
  computer.slice = 10e-3, computer.late = 1;
  run(&pace, &computer, 1);
  computer.late = 0;
  assert_in_range(run(&pace, &computer, 5000).by_team, 4000, 5000);
}

static void an_accident_changes_nothing(void **state)
{
  (void)state;
  flow_pace pace = { 0 };
  outcome all = run(&pace, &(machine){ .alone = 2e-3, .together = 1e-3, .slice = 5e-3, .late = 500 }, 10000);
  assert_in_range(all.by_team, 9500, 9998);
}

/* Slices that other programs take now and then cost less than going by one thread for long does. */
static void accidents_change_nothing_where_the_team_is_a_little_faster(void **state)
{
  (void)state;
  for (double alone = 40e-6; alone < 10e-3; alone *= 1.5) {
    flow_pace pace = { 0 };
    int late = (int)(60e-3 / alone) + 2;
    machine computer = { .alone = alone, .together = 0.8 * alone, .slice = 1e-3, .late = late, .waking = 100e-6 };
    outcome all = run(&pace, &computer, 50 * late);
    if (all.by_team < 45 * late) print_error("runs of %g s: %d of %d by the team\n", alone, all.by_team, 50 * late);
    assert_in_range(all.by_team, 45 * late, 50 * late);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(small_runs_never_wake_the_team),
    cmocka_unit_test(runs_go_by_the_team_where_that_is_faster),
    cmocka_unit_test(short_runs_in_a_row_go_by_the_team),
    cmocka_unit_test(threads_that_wake_slowly_are_waited_for),
    cmocka_unit_test(the_number_of_first_runs_stays),
    cmocka_unit_test(one_thread_works_alone_beside_a_busy_neighbour),
    cmocka_unit_test(the_team_comes_back_when_the_neighbour_has_gone),
    cmocka_unit_test(a_cold_first_run_does_not_end_a_trial),
    cmocka_unit_test(a_long_accident_is_soon_forgotten),
    cmocka_unit_test(an_accident_changes_nothing),
    cmocka_unit_test(accidents_change_nothing_where_the_team_is_a_little_faster),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
