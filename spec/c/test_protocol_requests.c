/* What tasks ask of the chief: store, barriers, goodbyes; and messages that nobody should send. Three protocols, whose messages arrive at
 * once and in order. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/control/protocol.h"

enum { TASKS = 3 };

/* What a task was told last, of each kind of action. */
typedef struct told { int count; uint32_t request; flow_status status; char text[1100]; uint8_t bytes[64]; size_t size; int task; } told;

static struct {
  flow_cluster  *cluster[TASKS];
  flow_protocol *task[TASKS];
  told           told[TASKS][FLOW_ACTION_FAILED + 1];
  double         now;
} all;

/* Connection i of the chief and connection 0 of member i are one. */
static void pass_on(int from, const flow_action *action)
{
  int to = from == 0 ? action->connection : 0, connection = from == 0 ? 0 : from;
  if (action->kind == FLOW_ACTION_SEND) flow_protocol_received(all.task[to], all.now, connection, action->bytes, action->count);
  if (action->kind == FLOW_ACTION_CLOSE) flow_protocol_closed(all.task[to], all.now, connection, "closed");
  if (action->kind == FLOW_ACTION_DIAL && !all.told[from][FLOW_ACTION_DIAL].count) {
    flow_protocol_connected(all.task[0], all.now, from);
    flow_protocol_connected(all.task[from], all.now, 0);
  }
}

static void pump(void)
{
  flow_action action;
  for (int moved = 1; moved;) {
    moved = 0;
    for (int i = 0; i < TASKS; i++) {
      while (all.task[i] && flow_protocol_next(all.task[i], &action)) {
        told *last = &all.told[i][action.kind];
        moved = 1;
        pass_on(i, &action);
        last->count++;
        last->request = action.request;
        last->status = action.status;
        last->task = action.task;
        last->size = action.count < sizeof last->bytes ? action.count : sizeof last->bytes;
        memcpy(last->bytes, action.bytes, last->size);
        snprintf(last->text, sizeof last->text, "%s", action.text);
      }
    }
  }
}

static void wait_until(double now)
{
  while (all.now < now) {
    all.now += 0.5;
    for (int i = 0; i < TASKS; i++) flow_protocol_timer(all.task[i], all.now);
    pump();
  }
}

static int begin(void **state)
{
  (void)state;
  memset(&all, 0, sizeof all);
  for (int i = 0; i < TASKS; i++) {
    char text[256];
    snprintf(text, sizeof text, "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"c:1\"]},\"task\":{\"type\":\"%s\",\"index\":%d}}",
             i == 0 ? "chief" : "worker", i == 2);
    if (flow_cluster_parse(text, (double)strlen(text), "test", NULL, -1, &all.cluster[i]) != FLOW_OK) return -1;
    const flow_protocol_options options = { .cluster = all.cluster[i], .job = "j", .version = "1", .incarnation = (uint64_t)i + 1,
                                            .place = i == 2 ? "process 3 on c" : NULL };
    if (flow_protocol_new(&options, 0, &all.task[i]) != FLOW_OK || flow_protocol_join(all.task[i], 0, i, "m") != FLOW_OK) return -1;
  }
  wait_until(1);
  for (int i = 0; i < TASKS; i++) {
    if (all.told[i][FLOW_ACTION_STARTED].count != 1) return -1;
  }
  return 0;
}

static int end(void **state)
{
  (void)state;
  for (int i = 0; i < TASKS; i++) {
    flow_protocol_release(all.task[i]);
    flow_cluster_release(all.cluster[i]);
  }
  return 0;
}

static const told *result_of(int task) { return &all.told[task][FLOW_ACTION_RESULT]; }

static void expect_words(const char *text, const char *part)
{
  if (!strstr(text, part)) fail_msg("\"%s\" lacks \"%s\"", text, part);
}

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
  wait_until(all.now + 2);                                        /* heartbeats */
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
  late_tasks((const uint32_t[]){ UINT32_MAX, 0, 0 }, 1, FLOW_FAULT_UNKNOWN, 0,          /* the counter has come around */
             "chief:0 a:1 did not come: worker:0 b:1 reports at step 101: a rank did not answer within 20 s");
  late_tasks((const uint32_t[]){ 8, 8, 8 }, 1, FLOW_FAULT_LATE, 2, "worker:1 c:1 reports at step 102: the connection to rank 0 is lost");
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
    IN_GENERATION(test_own_fault),
    IN_GENERATION(test_late_task),
    IN_GENERATION(test_step_of_lost_task),
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
