/* The control plane's protocol: single faults with the sentence each of them gives, and random schedules of faults.
 *
 *   test_protocol                      the tests
 *   test_protocol --count 10000        this many schedules, from --seed S on (default 1)
 *   test_protocol --seed 17            one schedule, told event by event */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "simulated_cluster.h"

static simulation sim;

static void expect_promises(void)
{
  if (sim.broken[0]) fail_msg("at %.3f s: %s", sim.now, sim.broken);
}

static void expect_all_done(void)
{
  expect_promises();
  for (int i = 0; i < sim.nodes; i++) {
    if (!sim.node[i].finished) fail_msg("node %d is not done: %s", i, sim.node[i].failed ? sim.node[i].last_words : "it goes on");
  }
}

static void expect_words(const char *text, const char *part)
{
  if (!strstr(text, part)) fail_msg("\"%s\" lacks \"%s\"", text, part);
}

/* ---- without faults ------------------------------------------------------------------------------------------------------------------ */

static void test_all_sizes(void **state)
{
  (void)state;
  static const struct { int nodes, chief, ps; } shapes[] = { { 1, 0, 0 }, { 1, 1, 0 }, { 2, 0, 0 }, { 3, 1, 0 }, { 6, 1, 2 } };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    sim_begin(&sim, i, shapes[i].nodes, shapes[i].chief, shapes[i].ps);
    sim_boot_all(&sim);
    sim_run(&sim, 1e5);
    expect_all_done();
    for (int node = 0; node < sim.nodes; node++) assert_int_equal(sim.node[node].aborts, 0);
    sim_end(&sim);
    expect_promises();
  }
}

/* Whoever comes first waits; every 5 s a line names who is missing. */
static void test_start_orders(void **state)
{
  (void)state;
  for (int last = 0; last < 3; last++) {
    sim_begin(&sim, 3, 3, 1, 0);
    for (int i = 0; i < 3; i++) sim_plan(&sim, i == last ? 62 : i, SIM_BOOT, i, 0);
    sim_run(&sim, 61);
    assert_true(sim.notices >= 11);
    sim_run(&sim, 1e5);
    expect_all_done();
    sim_end(&sim);
  }
}

static void test_nobody_comes(void **state)
{
  (void)state;
  sim_begin(&sim, 4, 3, 0, 0);
  sim_plan(&sim, 0, SIM_BOOT, 0, 0);
  sim_plan(&sim, 0, SIM_BOOT, 1, 0);
  sim_run(&sim, 1e5);
  expect_promises();
  expect_words(sim.node[0].last_words, "gave up after 300 s, missing: worker:2 10.0.0.3:2222 (no connection)");
  assert_true(sim.node[0].failed && sim.node[1].failed);
  assert_true(sim.last_event < 303);
  sim_end(&sim);
  sim_begin(&sim, 5, 2, 0, 0);
  sim_plan(&sim, 0, SIM_BOOT, 1, 0);
  sim_run(&sim, 1e5);
  expect_promises();
  expect_words(sim.node[1].last_words, "worker:0 10.0.0.1:2222 was not reached within 300 s (is it running, and is that its address?); at "
               "last: connection refused");
  sim_end(&sim);
}

/* ---- one fault ----------------------------------------------------------------------------------------------------------------------- */

/* Three nodes in a generation, the fault at 10 s; what everybody says of it, and that all come to an end together. */
static void one_fault(int kind, int node, double seconds, int culprit, const char *words)
{
  sim_begin(&sim, 6, 3, 1, 0);
  sim_boot_all(&sim);
  sim_plan(&sim, 10, kind, node, seconds);
  sim_run(&sim, 35);
  for (int i = 0; i < 3; i++) {
    if (i == node && kind == SIM_CRASH) continue;
    if (!sim.node[i].aborts) fail_msg("node %d has noticed nothing", i);
    assert_int_equal(sim.node[i].culprit, culprit);
    expect_words(sim.node[i].verdict, words);
  }
  sim_run(&sim, 1e5);
  expect_all_done();
  sim_end(&sim);
  expect_promises();
}

static void test_one_fault(void **state)
{
  (void)state;
  one_fault(SIM_CRASH, 1, 3, 1, "worker:0 10.0.0.2:2222 lost its connection (reset) at step ");
  one_fault(SIM_CRASH, 2, 30, 2, "worker:1 10.0.0.3:2222 lost its connection (reset) at step ");
  one_fault(SIM_CRASH, 0, 3, 0, "chief:0 10.0.0.1:2222 lost its connection (reset) at step ");
  one_fault(SIM_FREEZE, 1, 15, 1, "worker:0 10.0.0.2:2222 silent for 10.0 s at step ");
  one_fault(SIM_FREEZE, 0, 15, 0, "chief:0 10.0.0.1:2222 s");          /* silent for, or stood still for */
}

/* Less than dead_after is not a failure. */
static void test_short_freeze(void **state)
{
  (void)state;
  for (int node = 0; node < 3; node++) {
    sim_begin(&sim, 7, 3, 1, 0);
    sim_boot_all(&sim);
    sim_plan(&sim, 10, SIM_FREEZE, node, 8);
    sim_run(&sim, 1e5);
    expect_all_done();
    for (int i = 0; i < 3; i++) assert_int_equal(sim.node[i].aborts, 0);
    sim_end(&sim);
  }
}

/* Who slept does not count its own sleep as the silence of others. */
static void test_sleeper(void **state)
{
  (void)state;
  sim_begin(&sim, 11, 3, 1, 0);
  sim_boot_all(&sim);
  sim_plan(&sim, 9, SIM_FREEZE, 1, 60);
  sim_plan(&sim, 12, SIM_FREEZE, 0, 7.5);
  sim_run(&sim, 29);
  expect_promises();
  assert_int_equal(sim.node[0].aborts, 0);
  sim_run(&sim, 31);
  assert_int_equal(sim.node[0].aborts, 1);
  assert_int_equal(sim.node[0].culprit, 1);
  expect_words(sim.node[0].verdict, "worker:0 10.0.0.2:2222 silent for 10.0 s");
  sim_run(&sim, 1e5);
  expect_all_done();
  sim_end(&sim);
}

/* What does not belong together, in a sentence with both sides, on both sides. */
static void one_mismatch(int kind, const char *words)
{
  static const char other[] = "{\"cluster\":{\"chief\":[\"10.0.0.1:2222\"],\"worker\":[\"10.0.0.2:2222\",\"10.0.0.9:2222\"]},"
                              "\"task\":{\"type\":\"worker\",\"index\":1}}";
  sim_begin(&sim, 12, 3, 1, 0);
  if (kind == 0) sim.node[2].job = "another";
  if (kind == 1) sim.node[2].version = "2";
  if (kind == 2) sim.node[2].signature = "other model";
  if (kind == 3) {
    flow_cluster_release(sim.node[2].cluster);
    assert_int_equal(flow_cluster_parse(other, sizeof other - 1, "other", NULL, -1, &sim.node[2].cluster), FLOW_OK);
  }
  sim_boot_all(&sim);
  sim_run(&sim, 5);
  expect_promises();
  assert_true(sim.node[2].failed);
  expect_words(sim.node[2].last_words, words);
  int ends = kind == 1 || kind == 2;       /* a task of this cluster that would come again just so */
  if (ends) expect_words(sim.node[0].last_words, words);
  else assert_true(sim.notices > 0 && !sim.node[0].failed);        /* it may be somebody else's process: the chief goes on waiting */
  if (!ends) {
    sim_run(&sim, 400);
    expect_words(sim.node[0].last_words, "missing: worker:1 10.0.0.3:2222 (no connection); turned away: chief:0 ");
    expect_words(sim.node[0].last_words, words);
  }
  sim_end(&sim);
}

static void test_mismatches(void **state)
{
  (void)state;
  one_mismatch(0, "chief:0 10.0.0.1:2222 belongs to the job \"simulated\", worker:1 10.0.0.3:2222 to \"another\"");
  one_mismatch(1, "chief:0 10.0.0.1:2222 is flowlua 1, worker:1 10.0.0.3:2222 is 2");
  one_mismatch(2, "do not fit together: ");
  one_mismatch(3, "chief:0 10.0.0.1:2222 and worker:1 10.0.0.3:2222 know different clusters: the first has worker:1 10.0.0.3:2222, "
               "the second worker:1 10.0.0.9:2222; give all the same list of addresses in the same order");
}

static void test_silent_connection(void **state)
{
  (void)state;
  sim_begin(&sim, 8, 3, 1, 0);
  sim_boot_all(&sim);
  sim_plan(&sim, 10, SIM_MUTE, 2, 0);
  sim_run(&sim, 1e5);
  expect_all_done();
  for (int i = 0; i < 3; i++) assert_int_equal(sim.node[i].aborts, 1);
  expect_words(sim.node[0].verdict, "worker:1 10.0.0.3:2222 silent for 10.0 s");
  expect_words(sim.node[2].verdict, "chief:0 10.0.0.1:2222 silent for 10.0 s");      /* it cannot know better */
  sim_end(&sim);
}

static void test_report(void **state)
{
  (void)state;
  sim_begin(&sim, 9, 3, 1, 0);
  sim_boot_all(&sim);
  sim.node[2].reports = 1;
  sim_run(&sim, 1e5);
  expect_all_done();
  for (int i = 0; i < 3; i++) {
    assert_int_equal(sim.node[i].culprit, 2);
    expect_words(sim.node[i].verdict, "worker:1 10.0.0.3:2222 reports at step ");
    expect_words(sim.node[i].verdict, ": the loss is not a number");
  }
  sim_end(&sim);
}

/* Each allocation fails once: a process ends there and comes again, and all come through. */
static void test_no_memory(void **state)
{
  (void)state;
  int failed = 0;
  for (int allocation = 0; allocation < 400; allocation += allocation < 60 ? 1 : 7) {
    sim_begin(&sim, 10, 3, 1, 0);
    sim.steps = 6;
    sim.starves = 1;
    sim_boot_all(&sim);
    flow_fail_allocation(allocation);
    sim_run(&sim, 1e5);
    flow_fail_allocation(-1);
    expect_promises();
    int done = 0;
    for (int i = 0; i < 3; i++) {
      failed += sim.node[i].process > 1;
      done += sim.node[i].finished;
    }
    /* Who loses its memory when another one has finished cannot come again: nobody is left to begin a generation with. */
    if (done == 1 && strstr(sim.node[0].last_words, "worker:0 10.0.0.2:2222 has finished its work")) done++;
    if (done < 2) fail_msg("allocation %d: %d processes are done", allocation, done);
    sim_end(&sim);
    expect_promises();
  }
  assert_true(failed > 50);
}

/* ---- random schedules ---------------------------------------------------------------------------------------------------------------- */

/* Returns when the last of them is over; infinite if a process stays away for good. */
static double plan_faults(int most)
{
  double over = 0;
  int faults = (int)sim_random(&sim, (unsigned)most + 1);
  for (int i = 0; i < faults; i++) {
    static const int kinds[] = { SIM_CRASH, SIM_CRASH, SIM_FREEZE, SIM_FREEZE, SIM_CUT, SIM_MUTE };
    int kind = kinds[sim_random(&sim, 6)], node = (int)sim_random(&sim, (unsigned)sim.nodes);
    double at = sim_real(&sim, 0, 120);
    double seconds = kind == SIM_FREEZE ? sim_real(&sim, 0.5, 40) : sim_random(&sim, 8) == 0 ? -1 : sim_real(&sim, 0.05, 40);
    sim_plan(&sim, at, kind, node, seconds);
    over = fmax(over, seconds < 0 && kind == SIM_CRASH ? INFINITY : at + fmax(seconds, 0));
  }
  return over;
}

static int any_ended(void)
{
  for (int i = 0; i < sim.nodes; i++) {
    if (sim.node[i].finished || sim.node[i].failed) return 1;
  }
  return 0;
}

/* 0: all promises were kept. One more here: when the faults are over before the first process ends, all come through; *hopeful counts
 * the schedules of which that is so. */
static int run_schedule(unsigned long long seed, int verbose, int *hopeful)
{
  static const double delays[] = { 0.001, 0.02, 0.3, 2 };
  simulation *s = &sim;
  sim_begin(s, seed, 1, 0, 0);
  int nodes = 2 + (int)sim_random(s, 4), chief = (int)sim_random(s, 2), ps = nodes > 3 ? (int)sim_random(s, 2) : 0;
  sim_end(s);
  sim_begin(s, seed, nodes, chief, ps);
  s->verbose = verbose;
  s->slowest = delays[sim_random(s, 4)];
  double over = 60, spread = sim_random(s, 3) == 0 ? 40 : 0.5;
  if (sim_random(s, 2) == 0) {
    s->min_workers = 1 + (int)sim_random(s, (unsigned)nodes);
    s->shards = sim_random(s, 2) ? 8 : 0;
    s->shrink_after = sim_real(s, 0.01, 10);
  }
  for (int i = 0; i < nodes; i++) {
    int comes = sim_random(s, 40) != 0;
    if (comes) sim_plan(s, sim_real(s, 0, spread), SIM_BOOT, i, 0);
    else over = INFINITY;
    s->node[i].reports = sim_random(s, 6) == 0;
  }
  s->steps = sim_random(s, 2) ? 300 : 20;
  over = fmax(over, plan_faults(sim_random(s, 4) == 0 ? 12 : 4));
  if (isfinite(over)) sim_run(s, over + 20);       /* what was silent has been noticed by then */
  int all_go_on = isfinite(over) && !any_ended();
  sim_run(s, 1e6);
  *hopeful += all_go_on;
  for (int i = 0; i < nodes && all_go_on; i++) {
    if (!s->node[i].finished) SIM_BREAK(s, "node %d does not come through: %s", i, s->node[i].last_words);
  }
  if (s->events) SIM_BREAK(s, "it does not come to an end");
  for (int i = 0; i < nodes; i++) {
    if (s->node[i].protocol) SIM_BREAK(s, "node %d waits for ever", i);
  }
  if (s->last_event > 4000) SIM_BREAK(s, "the end comes after %.0f s", s->last_event);
  if (s->most_bytes > 256 * 1024) SIM_BREAK(s, "%.0f bytes of memory", s->most_bytes);
  sim_end(s);
  if (s->broken[0]) fprintf(stderr, "seed %llu, at %.3f s: %s\n", seed, s->now, s->broken);
  return s->broken[0] != '\0';
}

static int run_schedules(unsigned long long first, int count, int verbose)
{
  int failed = 0, generations = 0, done = 0, hopeful = 0;
  for (int i = 0; i < count; i++) {
    failed += run_schedule(first + (unsigned long long)i, verbose, &hopeful);
    for (int node = 0; node < sim.nodes; node++) {
      generations += sim.node[node].aborts;
      done += sim.node[node].finished;
    }
  }
  if (count > 1000 || verbose) {
    printf("%d schedules, %d failed; %d aborts seen, %d processes done, %d schedules that all had to come through\n", count, failed,
           generations,
           done, hopeful);
  }
  return failed;
}

static void test_schedules(void **state)
{
  (void)state;
  assert_int_equal(run_schedules(1, 300, 0), 0);
}

int main(int count, char **arguments)
{
  unsigned long long seed = 0;
  int schedules = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    if (strcmp(arguments[i], "--seed") == 0) seed = strtoull(arguments[i + 1], NULL, 10);
    if (strcmp(arguments[i], "--count") == 0) schedules = atoi(arguments[i + 1]);
  }
  if (schedules > 0) return run_schedules(seed ? seed : 1, schedules, 0) > 0;
  if (seed > 0) return run_schedules(seed, 1, 1) > 0;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_all_sizes), cmocka_unit_test(test_start_orders), cmocka_unit_test(test_nobody_comes),
    cmocka_unit_test(test_one_fault), cmocka_unit_test(test_short_freeze), cmocka_unit_test(test_sleeper),
    cmocka_unit_test(test_mismatches),
    cmocka_unit_test(test_silent_connection),
    cmocka_unit_test(test_report), cmocka_unit_test(test_no_memory), cmocka_unit_test(test_schedules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
