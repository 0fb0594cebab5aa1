/* What tasks ask of the chief: store, barriers, goodbyes; and messages that nobody should send. */
#include "three_protocols.h"

static void set(int task, uint32_t request, const char *key, const char *value)
{
  assert_int_equal(flow_protocol_set(all.task[task], all.now, request, key, (const uint8_t *)value, (uint32_t)strlen(value)), FLOW_OK);
  pump();
  assert_int_equal(result_of(task)->request, request);
  assert_int_equal(result_of(task)->status, FLOW_OK);
}

static void expect_stored(int task, uint32_t request, const char *value)
{
  assert_int_equal(result_of(task)->request, request);
  assert_int_equal(result_of(task)->status, FLOW_OK);
  assert_int_equal(result_of(task)->size, strlen(value));
  assert_memory_equal(result_of(task)->bytes, value, strlen(value));
}

static void test_newest_state(void **state)
{
  (void)state;
  for (int i = 0; i < TASKS; i++) assert_int_equal(all.told[i][FLOW_ACTION_STARTED].task, 2);      /* it joined with step 2 */
}

/* Before and after it is set, and set again. */
static void test_store(void **state)
{
  (void)state;
  assert_int_equal(flow_protocol_get(all.task[1], all.now, 7, "id", 5), FLOW_OK);
  assert_int_equal(flow_protocol_get(all.task[0], all.now, 8, "id", 5), FLOW_OK);
  pump();
  assert_int_equal(result_of(1)->count + result_of(0)->count, 0);
  set(2, 9, "id", "first");
  expect_stored(1, 7, "first");
  expect_stored(0, 8, "first");
  set(0, 10, "id", "");
  assert_int_equal(flow_protocol_get(all.task[1], all.now, 14, "id", 5), FLOW_OK);      /* nothing is not a value: it is waited for */
  pump();
  assert_int_equal(result_of(1)->request, 7);
  set(0, 11, "id", "second");
  expect_stored(1, 14, "second");
  assert_int_equal(flow_protocol_get(all.task[2], all.now, 12, "id", 0), FLOW_OK);
  pump();
  expect_stored(2, 12, "second");
  assert_int_equal(flow_protocol_get(all.task[1], all.now, 13, "other", 3), FLOW_OK);
  wait_until(all.now + 4);
  assert_int_equal(result_of(1)->status, FLOW_NOT_FOUND);
  expect_words(result_of(1)->text, "no task has set \"other\" within 3.0 s");
}

/* What is taken away makes room. */
static void test_store_is_emptied(void **state)
{
  (void)state;
  static uint8_t value[FLOW_MOST_VALUE];
  char name[32];
  for (uint32_t i = 1; i <= 3 * FLOW_MOST_STORE / FLOW_MOST_VALUE; i++) {
    snprintf(name, sizeof name, "%u", i);
    assert_int_equal(flow_protocol_set(all.task[1], all.now, 2 * i, name, value, FLOW_MOST_VALUE), FLOW_OK);
    pump();
    assert_int_equal(result_of(1)->status, FLOW_OK);
    set(1, 2 * i + 1, name, "");
  }
}

static void test_limits(void **state)
{
  (void)state;
  static uint8_t value[FLOW_MOST_VALUE + 1];
  char key[300], name[16];
  memset(key, 'k', sizeof key);
  key[299] = '\0';
  assert_int_equal(flow_protocol_set(all.task[1], all.now, 1, "k", value, sizeof value), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_protocol_set(all.task[1], all.now, 1, key, value, 1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_protocol_get(all.task[1], all.now, 1, "", 1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_protocol_get(all.task[1], all.now, 1, "k", -1), FLOW_INVALID_ARGUMENT);
  for (uint32_t i = 0; i < FLOW_MOST_REQUESTS; i++) assert_int_equal(flow_protocol_get(all.task[1], all.now, i, "k", 50), FLOW_OK);
  assert_int_equal(flow_protocol_get(all.task[1], all.now, 99, "k", 50), FLOW_INVALID_STATE);
  pump();
  assert_int_equal(result_of(1)->count, 0);
  int kept = 0;
  double before = flow_live_bytes();
  for (uint32_t i = 0; i < 80; i++) {
    snprintf(name, sizeof name, "%u", i);
    assert_int_equal(flow_protocol_set(all.task[2], all.now, i, name, value, FLOW_MOST_VALUE), FLOW_OK);
    pump();
    kept += result_of(2)->status == FLOW_OK;
  }
  assert_int_equal(kept, FLOW_MOST_STORE / (FLOW_MOST_VALUE + 100));
  expect_words(result_of(2)->text, "the store of this generation is full");
  assert_true(flow_live_bytes() - before < FLOW_MOST_STORE + 100000);
}

static void test_barrier(void **state)
{
  (void)state;
  for (int i = 0; i < TASKS; i++) {
    assert_int_equal(flow_protocol_barrier(all.task[i], all.now, 5, "save", 20), FLOW_OK);
    pump();
    for (int other = 0; other < TASKS; other++) assert_int_equal(result_of(other)->count, i == TASKS - 1);
  }
  flow_protocol_progress(all.task[2], 812, "Conv2D");
  assert_int_equal(flow_protocol_barrier(all.task[0], all.now, 6, "save", 20), FLOW_OK);
  assert_int_equal(flow_protocol_barrier(all.task[1], all.now, 6, "save", 1), FLOW_OK);       /* the first one's patience counts */
  assert_int_equal(flow_protocol_barrier(all.task[1], all.now, 7, "save", 1), FLOW_OK);
  pump();
  assert_int_equal(result_of(1)->request, 7);
  expect_words(result_of(1)->text, "at that barrier already");
  wait_until(all.now + 12);
  expect_words(all.told[0][FLOW_ACTION_NOTICE].text, "barrier \"save\" waits ");
  expect_words(all.told[0][FLOW_ACTION_NOTICE].text, "for worker:1 c:1 (at step 812)");
  assert_int_equal(result_of(1)->request, 7);
  wait_until(all.now + 10);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(result_of(i)->request, 6);
    assert_int_equal(result_of(i)->status, FLOW_INVALID_STATE);
    expect_words(result_of(i)->text, "barrier \"save\": after 20.0 s these have not come: worker:1 c:1 (at step 812)");
  }
}

/* Those who still work hear who has finished, and do not wait at a barrier that it does not come to. */
static void test_finished_task(void **state)
{
  (void)state;
  assert_int_equal(flow_protocol_goodbye(all.task[1], all.now, 0), FLOW_OK);
  pump();
  assert_int_equal(all.told[1][FLOW_ACTION_FINISHED].count, 0);
  for (int i = 0; i < TASKS; i += 2) {
    assert_int_equal(all.told[i][FLOW_ACTION_FINISHED].task, 1);
    assert_string_equal(all.told[i][FLOW_ACTION_FINISHED].text, "worker:0 b:1");
    assert_int_equal(flow_protocol_barrier(all.task[i], all.now, 5, "late", 100), FLOW_OK);
  }
  pump();
  for (int i = 0; i < TASKS; i += 2) {
    assert_int_equal(result_of(i)->status, FLOW_INVALID_STATE);
    assert_string_equal(result_of(i)->text, "barrier \"late\": worker:0 b:1 has finished and does not come any more");
  }
}

/* Open requests fail with the sentence of the abort, and nothing of the generation is left to the next. */
static void test_abort_ends_requests(void **state)
{
  (void)state;
  set(0, 1, "old", "value");
  assert_int_equal(flow_protocol_barrier(all.task[1], all.now, 2, "b", 100), FLOW_OK);
  assert_int_equal(flow_protocol_report(all.task[2], all.now, "out of disk", 0), FLOW_OK);
  pump();
  wait_until(all.now + 1);
  assert_int_equal(result_of(1)->status, FLOW_INVALID_STATE);
  expect_words(result_of(1)->text, "worker:1 c:1 reports at step 2: out of disk");
  for (int i = 0; i < TASKS; i++) {
    assert_string_equal(all.told[i][FLOW_ACTION_ABORTED].text, result_of(1)->text);
    assert_int_equal(flow_protocol_set(all.task[i], all.now, 3, "k", NULL, 0), FLOW_INVALID_STATE);
    assert_int_equal(flow_protocol_join(all.task[i], all.now, 5, "m"), FLOW_OK);
  }
  pump();
  assert_int_equal(flow_protocol_get(all.task[1], all.now, 4, "old", 0.5), FLOW_OK);
  wait_until(all.now + 1);
  assert_int_equal(result_of(1)->status, FLOW_NOT_FOUND);
}

static void test_goodbyes(void **state)
{
  (void)state;
  for (int i = 0; i < TASKS; i++) {
    for (int other = 0; other < TASKS; other++) assert_int_equal(all.told[other][FLOW_ACTION_DONE].count, 0);
    assert_int_equal(flow_protocol_goodbye(all.task[i], all.now, 0), FLOW_OK);
    pump();
  }
  for (int i = 0; i < TASKS; i++) {
    assert_int_equal(all.told[i][FLOW_ACTION_DONE].count, 1);
    assert_int_equal(all.told[i][FLOW_ACTION_ABORTED].count, 0);
    assert_int_equal(flow_protocol_join(all.task[i], all.now, 0, ""), FLOW_INVALID_STATE);
  }
}

static void test_preempted(void **state)
{
  (void)state;
  flow_protocol_progress(all.task[1], 40, "");
  wait_until(all.now + 2);
  assert_int_equal(flow_protocol_goodbye(all.task[1], all.now, 1), FLOW_OK);
  pump();
  assert_int_equal(all.told[1][FLOW_ACTION_DONE].count, 1);
  for (int i = 0; i < TASKS; i += 2) {
    assert_int_equal(all.told[i][FLOW_ACTION_ABORTED].task, 1);
    assert_string_equal(all.told[i][FLOW_ACTION_ABORTED].text,
                        "worker:0 b:1 was preempted (its process was asked to end, as by SIGTERM) at step 40");
    assert_int_equal(all.told[i][FLOW_ACTION_ABORTED].request, 1);      /* preempted */
  }
}

static void test_preempted_chief(void **state)
{
  (void)state;
  assert_int_equal(flow_protocol_goodbye(all.task[0], all.now, 1), FLOW_OK);
  pump();
  assert_int_equal(all.told[0][FLOW_ACTION_DONE].count, 1);
  for (int i = 1; i < TASKS; i++) {
    expect_words(all.told[i][FLOW_ACTION_ABORTED].text, "chief:0 a:1 was preempted (its process was asked to end, as by SIGTERM) at step ");
    assert_int_equal(all.told[i][FLOW_ACTION_ABORTED].request, 1);      /* preempted */
  }
}

/* ---- messages out of place ----------------------------------------------------------------------------------------------------------- */

static void send_to(int task, int connection, const flow_control_message *message)
{
  static uint8_t bytes[FLOW_MOST_MESSAGE];
  size_t count = flow_control_write(message, bytes);
  assert_int_equal(flow_protocol_received(all.task[task], all.now, connection, bytes, count), FLOW_OK);
  pump();
}

/* Of another generation, or with no meaning where this task is: nothing happens. */
static void test_stale_messages(void **state)
{
  (void)state;
  send_to(1, 0, &(flow_control_message){ .kind = FLOW_MESSAGE_ABORT, .generation = 7, .task = 2, .text = "of another generation" });
  send_to(1, 0, &(flow_control_message){ .kind = FLOW_MESSAGE_RESULT, .generation = 1, .request = 5, .text = "never asked" });
  send_to(1, 0, &(flow_control_message){ .kind = FLOW_MESSAGE_FAREWELL });
  send_to(0, 1, &(flow_control_message){ .kind = FLOW_MESSAGE_REPORT, .generation = 7, .text = "of another generation" });
  send_to(0, 1, &(flow_control_message){ .kind = FLOW_MESSAGE_SET, .generation = 7, .name = "k", .value = NULL });
  wait_until(all.now + 3);
  for (int i = 0; i < TASKS; i++) {
    assert_int_equal(all.told[i][FLOW_ACTION_ABORTED].count, 0);
    assert_int_equal(result_of(i)->count, 0);
  }
}

/* Who sends what its part is not to send loses its connection. */
static void test_wrong_part(void **state)
{
  (void)state;
  send_to(0, 1, &(flow_control_message){ .kind = FLOW_MESSAGE_START, .generation = 9 });
  assert_int_equal(all.told[2][FLOW_ACTION_ABORTED].task, 1);
  expect_words(all.told[2][FLOW_ACTION_ABORTED].text, "worker:0 b:1 sent what only the chief sends");
}

static void test_garbage(void **state)
{
  (void)state;
  assert_int_equal(flow_protocol_received(all.task[0], all.now, 2, (const uint8_t *)"\xff", 1), FLOW_OK);
  pump();
  expect_words(all.told[1][FLOW_ACTION_ABORTED].text, "worker:1 c:1 lost its connection (a message of the unknown kind 255)");
  send_to(0, 1, &(flow_control_message){ .kind = FLOW_MESSAGE_PING, .generation = UINT64_MAX, .name = "" });      /* the next would be 0 */
  expect_words(all.told[0][FLOW_ACTION_NOTICE].text, "worker:0 b:1 lost its connection (a message PING of ");
}

/* A generation of this task alone, whose newest state another one is said to have. */
static void test_start_without_source(void **state)
{
  (void)state;
  static uint8_t bytes[FLOW_MOST_MESSAGE];
  const flow_control_message start = {
    .kind = FLOW_MESSAGE_START, .generation = 2, .task = 2, .value = (const uint8_t *)"\1\0\0", .bytes = 4
  };
  send_to(1, 0, &(flow_control_message){ .kind = FLOW_MESSAGE_ABORT, .generation = 1, .task = 2, .text = "lost" });
  assert_int_equal(flow_protocol_join(all.task[1], all.now, 3, "m"), FLOW_OK);
  assert_int_equal(flow_protocol_received(all.task[1], all.now, 0, bytes, flow_control_write(&start, bytes)), FLOW_OK);
  pump();
  assert_int_equal(all.told[1][FLOW_ACTION_STARTED].count, 1);
  assert_true(all.told[1][FLOW_ACTION_CLOSE].count > 0);
}

/* What the chief answers to a process that says that it is worker:0, too. */
static int answer_to_twin(int connection, uint64_t incarnation)
{
  char hash[32];
  static uint8_t bytes[FLOW_MOST_MESSAGE];
  flow_cluster_hash(all.cluster[0], hash, sizeof hash);
  const flow_control_message hello = { .kind = FLOW_MESSAGE_HELLO, .request = FLOW_PROTOCOL_VERSION, .task = 1, .incarnation = incarnation,
                                       .name = hash, .extra = "j", .text = "1" };
  flow_action action;
  flow_control_message answer;
  assert_int_equal(flow_protocol_connected(all.task[0], all.now, connection), FLOW_OK);
  assert_int_equal(flow_protocol_received(all.task[0], all.now, connection, bytes, flow_control_write(&hello, bytes)), FLOW_OK);
  assert_true(flow_protocol_next(all.task[0], &action));
  assert_int_equal(flow_control_read(action.bytes, action.count, &answer), FLOW_OK);
  expect_words(answer.text, "worker:0 b:1 is another process, which was heard 0.0 s ago: is it started twice?");
  assert_true(flow_protocol_next(all.task[0], &action));
  assert_int_equal(action.kind, FLOW_ACTION_CLOSE);
  assert_int_equal(action.connection, connection);
  pump();
  assert_int_equal(all.told[1][FLOW_ACTION_ABORTED].count, 0);
  return answer.kind;
}

/* A second process that says that it is a task which is alive has to wait; once the first one would have been given up, it is refused. */
static void test_twin(void **state)
{
  (void)state;
  double began = all.now;
  assert_int_equal(answer_to_twin(9, 77), FLOW_MESSAGE_RETRY);
  wait_until(began + 9);
  assert_int_equal(answer_to_twin(10, 77), FLOW_MESSAGE_RETRY);
  wait_until(began + 11);
  assert_int_equal(answer_to_twin(11, 78), FLOW_MESSAGE_RETRY);
  assert_int_equal(answer_to_twin(12, 78), FLOW_MESSAGE_RETRY);
  wait_until(began + 22);
  assert_int_equal(answer_to_twin(13, 78), FLOW_MESSAGE_REFUSE);
}

int main(void)
{
#define IN_GENERATION(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
    IN_GENERATION(test_newest_state),
    IN_GENERATION(test_store),
    IN_GENERATION(test_store_is_emptied),
    IN_GENERATION(test_limits),
    IN_GENERATION(test_barrier),
    IN_GENERATION(test_finished_task),
    IN_GENERATION(test_abort_ends_requests),
    IN_GENERATION(test_goodbyes),
    IN_GENERATION(test_preempted),
    IN_GENERATION(test_preempted_chief),
    IN_GENERATION(test_stale_messages),
    IN_GENERATION(test_wrong_part),
    IN_GENERATION(test_garbage),
    IN_GENERATION(test_start_without_source),
    IN_GENERATION(test_twin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
