/* The control plane's protocol where a generation need not have all tasks: who takes part, who stands by, and what each is told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "simulated_cluster.h"

static simulation sim;

static void expect_promises(void)
{
  if (sim.broken[0]) fail_msg("at %.3f s: %s", sim.now, sim.broken);
}

static void expect_words(const char *text, const char *part)
{
  if (!strstr(text, part)) fail_msg("\"%s\" lacks \"%s\"", text, part);
}

/* Workers of which `least` have to be there, with 8 shards. */
static void begin(int nodes, int least)
{
  sim_begin(&sim, 21, nodes, 0, 0);
  sim.steps = 60;
  sim.min_workers = least;
  sim.shards = 8;
}

/* The members of the node's newest generation are these, such as "013". */
static void expect_members(int node, const char *numbers)
{
  const int *members;
  char text[SIM_MOST_NODES + 1] = "";
  expect_promises();
  assert_non_null(sim.node[node].protocol);
  assert_true(sim.node[node].running);
  int count = flow_protocol_members(sim.node[node].protocol, &members);
  for (int i = 0; i < count; i++) text[i] = (char)('0' + members[i]);
  assert_string_equal(text, numbers);
}

static void end(void)
{
  sim_run(&sim, 1e5);
  expect_promises();
  for (int i = 0; i < sim.nodes; i++) {
    if (sim.node[i].failed || (sim.node[i].protocol && !sim.node[i].finished)) fail_msg("node %d: %s", i, sim.node[i].last_words);
  }
  sim_end(&sim);
  expect_promises();
}

/* Who is lost is waited for, then not any more. */
static void test_shrinks(void **state)
{
  (void)state;
  begin(4, 1);
  sim_boot_all(&sim);
  sim_plan(&sim, 10, SIM_CRASH, 2, -1);
  sim_run(&sim, 9);
  expect_members(0, "0123");
  sim_run(&sim, 14);
  assert_false(sim.node[0].running);
  expect_words(sim.node[0].verdict, "worker:2 10.0.0.3:2222 lost its connection");
  sim_run(&sim, 18);
  expect_members(0, "013");
  assert_int_equal(sim.node[0].aborts, 1);
  sim_plan(&sim, 20, SIM_CRASH, 1, -1);
  sim_run(&sim, 23);
  assert_false(sim.node[0].running);
  sim_run(&sim, 28);
  expect_members(0, "03");
  end();
}

/* Who is more than there are shards stands by, and takes the place of one that is lost at once: with who may come back they would not be
 * more. */
static void test_more_than_shards(void **state)
{
  (void)state;
  begin(4, 1);
  sim.shards = 2;
  sim_boot_all(&sim);
  sim_plan(&sim, 20, SIM_CRASH, 1, -1);
  sim_run(&sim, 19);
  expect_members(0, "01");
  assert_true(sim.node[2].protocol && !sim.node[2].running);
  sim_run(&sim, 23);
  expect_members(0, "02");
  assert_false(sim.node[3].running);
  end();
}

static void test_comes_back_in_time(void **state)
{
  (void)state;
  begin(4, 1);
  sim_boot_all(&sim);
  sim_plan(&sim, 10, SIM_CRASH, 2, 3);
  sim_run(&sim, 18);
  expect_members(0, "0123");
  assert_int_equal(sim.node[0].aborts, 1);
  end();
}

/* Who comes later takes part after a pause, and has the others' state. */
static void test_grows(void **state)
{
  (void)state;
  begin(4, 2);
  sim_plan(&sim, 0, SIM_BOOT, 0, 0);
  sim_plan(&sim, 1, SIM_BOOT, 3, 0);
  sim_run(&sim, 4);
  assert_false(sim.node[0].running);
  sim_run(&sim, 8);
  expect_members(0, "03");
  sim_plan(&sim, 10, SIM_BOOT, 1, 0);
  sim_run(&sim, 14);
  expect_members(0, "013");
  assert_int_equal(sim.node[0].aborts, 1);
  assert_int_equal(sim.node[0].culprit, 1);
  sim_plan(&sim, 15, SIM_BOOT, 2, 0);
  sim_run(&sim, 20);
  expect_members(2, "0123");
  assert_int_equal(sim.node[0].aborts, 2);
  assert_int_equal(sim.node[0].culprit, 2);
  expect_words(sim.node[0].verdict, "worker:2 10.0.0.3:2222 has come");
  assert_true(sim.node[2].step >= 5);
  end();
}

/* Below the least number they wait, and at last say for whom. */
static void test_too_few(void **state)
{
  (void)state;
  begin(3, 2);
  sim_plan(&sim, 0, SIM_BOOT, 0, 0);
  sim_run(&sim, 1e5);
  expect_promises();
  assert_true(sim.node[0].failed);
  expect_words(sim.node[0].last_words, "gave up after 300 s, missing: worker:1 10.0.0.2:2222 (no connection), worker:2 10.0.0.3:2222 (no "
               "connection); at least 2 tasks have to be there");
  sim_end(&sim);
}

/* Who stands by waits as long as the chief is there, for longer than for a generation without one; and if the chief is lost, for that. */
static void test_stands_by(void **state)
{
  (void)state;
  begin(3, 1);
  sim.shards = 2;
  sim.steps = 1000;
  sim_boot_all(&sim);
  sim_plan(&sim, 700, SIM_CRASH, 0, 2);
  sim_run(&sim, 690);
  expect_members(0, "01");
  assert_true(sim.node[2].protocol && !sim.node[2].running);
  sim_run(&sim, 720);
  expect_members(0, "01");
  assert_true(sim.node[0].step > 600);
  end();
}

/* The chief alone cannot be done without; who has waited for it long enough says so. */
static void test_chief_is_lost(void **state)
{
  (void)state;
  begin(3, 1);
  sim_boot_all(&sim);
  sim_plan(&sim, 10, SIM_CRASH, 0, -1);
  sim_run(&sim, 1e5);
  expect_promises();
  for (int i = 1; i < 3; i++) {
    assert_true(sim.node[i].failed);
    expect_words(sim.node[i].last_words, "worker:0 10.0.0.1:2222 was not reached within 600 s (nobody goes on without it: start it again "
                 "at that address, or the job, from its backup); at last: ");
  }
  sim_end(&sim);
}

/* Who stood still while the others went on, and finished, does not wait for them as for a chief that comes back. */
static void test_oversleeps(void **state)
{
  (void)state;
  begin(3, 1);
  sim_boot_all(&sim);
  sim_plan(&sim, 10, SIM_FREEZE, 1, 400);
  sim_run(&sim, 380);
  expect_promises();
  assert_true(sim.node[0].finished && sim.node[2].finished);
  sim_run(&sim, 450);
  expect_promises();
  assert_true(sim.node[1].failed);
  expect_words(sim.node[1].last_words, "worker:0 10.0.0.1:2222 was not reached within 20 s (this process stood still for 401 s: the others "
               "have gone on without it, and may have finished); at last: ");
  sim_end(&sim);
}

/* Who does not fit is turned away, and the others do not notice. */
static void test_misfit(void **state)
{
  (void)state;
  begin(2, 1);
  sim.node[1].signature = "other model";
  sim_plan(&sim, 0, SIM_BOOT, 0, 0);
  sim_plan(&sim, 10, SIM_BOOT, 1, 0);
  sim_run(&sim, 20);
  expect_members(0, "0");
  assert_int_equal(sim.node[0].aborts, 0);
  assert_true(sim.node[1].failed);
  expect_words(sim.node[1].last_words, "worker:0 10.0.0.1:2222 and worker:1 10.0.0.2:2222 do not fit together: model and other model");
  sim_run(&sim, 1e5);
  expect_promises();
  assert_true(sim.node[0].finished);
  sim_end(&sim);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_shrinks), cmocka_unit_test(test_comes_back_in_time), cmocka_unit_test(test_grows), cmocka_unit_test(test_too_few),
    cmocka_unit_test(test_stands_by), cmocka_unit_test(test_more_than_shards), cmocka_unit_test(test_misfit),
    cmocka_unit_test(test_chief_is_lost), cmocka_unit_test(test_oversleeps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
