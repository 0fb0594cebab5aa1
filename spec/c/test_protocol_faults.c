/* Whom the chief holds responsible for the end of a generation, and who is behind the others. */
#include "three_protocols.h"

/* Who is at fault by itself is believed at once, also over a report that waits for its verdict. */
static void test_own_fault(void **state)
{
  (void)state;
  static const char *const words[] = { "chief:0 a:1 reports at step ", "worker:0 b:1 reports at step ", "worker:1 c:1 reports at step " };
  for (int culprit = 0; culprit < TASKS; culprit++) {
    assert_int_equal(flow_protocol_report(all.task[(culprit + 1) % TASKS], all.now, "a peer is lost", 0), FLOW_OK);
    pump();
    assert_int_equal(flow_protocol_report(all.task[culprit], all.now, "no such file", 1), FLOW_OK);
    pump();
    for (int i = 0; i < TASKS; i++) {
      expect_words(all.told[i][FLOW_ACTION_ABORTED].text, words[culprit]);
      expect_words(all.told[i][FLOW_ACTION_ABORTED].text, ": no such file");
      assert_int_equal(flow_protocol_join(all.task[i], all.now, 5, "m"), FLOW_OK);
    }
    pump();
  }
}

/* Who waited in vain is not to blame, but who has begun fewer calls; of a report that somebody is late and one that somebody is lost the
 * former tells more. Where all have begun the same the one that reports is named. */
static void late_tasks(const uint32_t calls[TASKS], int reporter, flow_fault first, int culprit, const char *words)
{
  for (int i = 0; i < TASKS; i++) {
    flow_protocol_calls(all.task[i], calls[i]);
    flow_protocol_progress(all.task[i], 100 + i, i == 1 ? "strategy:run" : "");
  }
  wait_until(all.now + 2); /* heartbeats */
  assert_int_equal(flow_protocol_report(all.task[2], all.now, "the connection to rank 0 is lost", first), FLOW_OK);
  pump();
  assert_int_equal(flow_protocol_report(all.task[reporter], all.now, "a rank did not answer within 20 s", FLOW_FAULT_LATE), FLOW_OK);
  pump();
  wait_until(all.now + 2);
  for (int i = 0; i < TASKS; i++) {
    assert_int_equal(all.told[i][FLOW_ACTION_ABORTED].task, culprit);
    assert_string_equal(all.told[i][FLOW_ACTION_ABORTED].text, words);
    assert_int_equal(flow_protocol_join(all.task[i], all.now, 5, "m"), FLOW_OK);
  }
  pump();
}

static void test_late_task(void **state)
{
  (void)state;
  late_tasks((const uint32_t[]){ 7, 6, 7 }, 0, FLOW_FAULT_UNKNOWN, 1,
             "worker:0 b:1 did not come: chief:0 a:1 reports at step 100: a rank did not answer within 20 s");
  late_tasks((const uint32_t[]){ 7, 6, 5 }, 0, FLOW_FAULT_UNKNOWN, 1,
             "worker:0 b:1, worker:1 c:1 (process 3 on c) did not come: chief:0 a:1 reports at step 100: a rank did not answer "
             "within 20 s");
  late_tasks((const uint32_t[]){ UINT32_MAX, 0, 0 }, 1, FLOW_FAULT_UNKNOWN, 0, /* the counter has come around */
             "chief:0 a:1 did not come: worker:0 b:1 reports at step 101: a rank did not answer within 20 s");
  late_tasks((const uint32_t[]){ 8, 8, 8 }, 1, FLOW_FAULT_LATE, 2, "worker:1 c:1 reports at step 102: the connection to rank 0 is lost");
}

static void count_calls(uint32_t chief, uint32_t second, uint32_t third)
{
  const uint32_t calls[TASKS] = { chief, second, third };
  for (int i = 0; i < TASKS; i++) flow_protocol_calls(all.task[i], calls[i]);
  wait_until(all.now + 2); /* heartbeats */
}

static void expect_behind(int chief, int second, int third)
{
  const int expected[TASKS] = { chief, second, third };
  for (int i = 0; i < TASKS; i++) assert_int_equal(flow_protocol_is_behind(all.task[i]), expected[i]);
}

/* Who has begun fewer calls than the chief, or the chief itself, knows by heartbeats; counts begin again with a generation. */
static void test_behind(void **state)
{
  (void)state;
  expect_behind(0, 0, 0);
  count_calls(7, 7, 7);
  expect_behind(0, 0, 0);
  count_calls(7, 7, 8);
  expect_behind(1, 0, 0);
  count_calls(8, 7, 8);
  expect_behind(0, 1, 0);
  assert_int_equal(flow_protocol_report(all.task[2], all.now, "no such file", 1), FLOW_OK);
  pump();
  expect_behind(0, 0, 0);
  for (int i = 0; i < TASKS; i++) {
    flow_protocol_calls(all.task[i], 0);
    assert_int_equal(flow_protocol_join(all.task[i], all.now, 5, "m"), FLOW_OK);
  }
  pump();
  expect_behind(0, 0, 0);
  assert_int_equal(flow_protocol_goodbye(all.task[1], all.now, 0), FLOW_OK);
  pump();
  expect_behind(1, 0, 0);
}

/* A lost task is named with the newest step that anybody is known to be at, also before its first heartbeat, and with what it was. */
static void test_step_of_lost_task(void **state)
{
  (void)state;
  flow_protocol_progress(all.task[0], 192, "");
  assert_int_equal(flow_protocol_closed(all.task[0], all.now, 2, "reset"), FLOW_OK);
  pump();
  assert_string_equal(all.told[1][FLOW_ACTION_ABORTED].text, "worker:1 c:1 lost its connection (reset) at step 192; it was process 3 on c");
}

int main(void)
{
#define IN_GENERATION(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
    IN_GENERATION(test_own_fault),
    IN_GENERATION(test_late_task),
    IN_GENERATION(test_behind),
    IN_GENERATION(test_step_of_lost_task),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
