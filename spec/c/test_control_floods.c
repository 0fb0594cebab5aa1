/* test_control_floods.c: callers that never become tasks: hundreds that say nothing, one that says it slowly, no descriptors left, and who
 * has to make room (callers.h). */
#include "control_members.h"

#include <sys/resource.h>

enum { FLOOD = 300 };

static void call_chief(int descriptor)
{
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port_of(0)) };
  assert_int_equal(connect(descriptor, (struct sockaddr *)&to, sizeof to), 0);
}

/* How often the chief's thread wakes up in a second in which there is nothing to do but five heartbeats. */
static double wakeups_of_chief(void)
{
  flow_control *chief = members[0].control;
  uint64_t before, after;
  pthread_mutex_lock(&chief->lock);
  before = chief->wakeups;
  pthread_mutex_unlock(&chief->lock);
  usleep(1000000);
  pthread_mutex_lock(&chief->lock);
  after = chief->wakeups;
  pthread_mutex_unlock(&chief->lock);
  return (double)(after - before);
}

static int callers_of_chief(void)
{
  flow_control *chief = members[0].control;
  pthread_mutex_lock(&chief->lock);
  int count = chief->caller_count;
  pthread_mutex_unlock(&chief->lock);
  return count;
}

static int count_in_log(member *self, const char *part)
{
  int count = 0;
  pthread_mutex_lock(&self->lock);
  for (const char *at = self->log; (at = strstr(at, part)); at++) count++;
  pthread_mutex_unlock(&self->lock);
  return count;
}

/* What a caller that never becomes a task may say: nothing, a greeting and no more, half of one, something else. */
static const struct { const char *bytes; size_t count; } words[] = {
  { "", 0 },
  { "flowctl1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 40 },
  { "flow", 4 },
  { "flowctl1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0", 43 },
};

/* Calls, one after the other, which the chief takes in: many more than it has room for. */
static void flood(int descriptors[FLOOD], int how)
{
  for (int i = 0; i < FLOOD; i++) {
    descriptors[i] = socket(AF_INET, SOCK_STREAM, 0);
    call_chief(descriptors[i]);
    assert_true(send(descriptors[i], words[how].bytes, words[how].count, MSG_NOSIGNAL) >= 0);
  }
  for (int i = 0; i < 200 && !log_has(&members[0], "too many connections do not say who they are"); i++) usleep(20000);
}

/* A chief that is flooded sleeps, has bounded room for strangers, says so once, and lets the tasks of its cluster in. */
static void test_flood(void **state)
{
  (void)state;
  int descriptors[FLOOD];
  for (int how = 0; how < 4; how++) {
    begin(NULL);
    assert_int_equal(open_member(&members[0]), FLOW_OK);
    flood(descriptors, how);
    assert_true(wakeups_of_chief() < 60);
    assert_true(callers_of_chief() <= FLOW_CALLERS_LEAST + 4 * TASKS);
    run_all(work);
    for (int i = 0; i < TASKS; i++) {
      if (members[i].status != FLOW_OK) fail_msg("words %d, task %d: %s", how, i, members[i].text);
    }
    assert_int_equal(count_in_log(&members[0], "too many connections do not say who they are"), 1);
    assert_true(log_has(&members[0], "the last from 127.0.0.1)"));
    for (int i = 0; i < FLOOD; i++) close(descriptors[i]);
    end();
  }
}

/* Callers that say a byte now and then, and new ones that come all the time, while the cluster meets and works. */
static void *drip(void *stop)
{
  int descriptors[FLOOD];
  for (int i = 0; i < FLOOD; i++) {
    descriptors[i] = socket(AF_INET, SOCK_STREAM, 0);
    call_chief(descriptors[i]);
  }
  for (int i = 0; !__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE); i = (i + 1) % FLOOD) {
    if (send(descriptors[i], "f", 1, MSG_NOSIGNAL) < 0) {
      close(descriptors[i]);
      descriptors[i] = socket(AF_INET, SOCK_STREAM, 0);
      call_chief(descriptors[i]);
    }
    usleep(500);
  }
  for (int i = 0; i < FLOOD; i++) close(descriptors[i]);
  return NULL;
}

static void test_slow_drip(void **state)
{
  (void)state;
  int stop = 0;
  pthread_t thread;
  begin(NULL);
  assert_int_equal(open_member(&members[0]), FLOW_OK);
  assert_int_equal(pthread_create(&thread, NULL, drip, &stop), 0);
  for (int i = 0; i < 200 && !log_has(&members[0], "too many connections"); i++) usleep(20000);
  run_all(work);
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  for (int i = 0; i < TASKS; i++) {
    if (members[i].status != FLOW_OK) fail_msg("task %d: %s", i, members[i].text);
  }
  end();
}

/* Without a descriptor for callers the thread sleeps, too, in the chief and in others; the cluster meets as soon as there are some. */
static void test_no_descriptors(void **state)
{
  (void)state;
  enum { CALLERS = 8 };
  struct rlimit before, none;
  int descriptors[CALLERS];
  begin(NULL);
  assert_int_equal(open_member(&members[0]), FLOW_OK);
  for (int i = 0; i < CALLERS; i++) descriptors[i] = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = before;
  none.rlim_cur = (rlim_t)descriptors[CALLERS - 1] + 1;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < CALLERS; i++) call_chief(descriptors[i]);
  double wakeups = wakeups_of_chief();
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_true(wakeups < 60);
  assert_true(log_has(&members[0], "this process has no file descriptor left (ulimit -n)"));
  run_all(work);
  for (int i = 0; i < TASKS; i++) {
    if (members[i].status != FLOW_OK) fail_msg("task %d: %s", i, members[i].text);
  }
  for (int i = 0; i < CALLERS; i++) close(descriptors[i]);
  end();
}

/* ---- who has to make room (callers.h) ------------------------------------------------------------------------------------------------ */

static flow_caller caller_from(const flow_callers *callers, uint8_t last, double since)
{
  flow_caller caller = { .host = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = last } }, .since = since };
  caller.known = flow_callers_know(callers, &caller.host);
  return caller;
}

static void test_room(void **state)
{
  (void)state;
  enum { MOST = 2 * (FLOW_CALLERS_LEAST + 12) + 1 };
  static const char text[] = "{\"cluster\":{\"worker\":[\"10.0.0.1:1\",\"10.0.0.2:1\",\"10.0.0.1:2\"]},"
                             "\"task\":{\"type\":\"worker\",\"index\":0}}";
  flow_cluster *cluster;
  flow_callers callers;
  flow_caller all[MOST];
  const flow_caller *list[MOST];
  char host[FLOW_HOST_TEXT];
  assert_int_equal(flow_cluster_parse(text, (double)strlen(text), "test", NULL, -1, &cluster), FLOW_OK);
  assert_int_equal(flow_callers_init(cluster, &callers), FLOW_OK);
  assert_int_equal(callers.host_count, 2);
  assert_int_equal(callers.room, FLOW_CALLERS_LEAST + 12);
  for (int i = 0; i < MOST; i++) list[i] = &all[i];

  /* One address: from half of the room on its own oldest one goes; others still have room. */
  int half = callers.room / 2;
  for (int i = 0; i < half; i++) all[i] = caller_from(&callers, 9, 100 - i);
  flow_caller same = caller_from(&callers, 9, 200), other = caller_from(&callers, 8, 200), known = caller_from(&callers, 2, 200);
  assert_string_equal(flow_host_text(&same.host, host), "10.0.0.9");
  assert_true(known.known && !other.known);
  assert_int_equal(flow_callers_choose(&callers, list, half - 1, &same), -1);
  assert_int_equal(flow_callers_choose(&callers, list, half, &same), half - 1);
  assert_int_equal(flow_callers_choose(&callers, list, half, &other), -1);

  /* Many addresses: the oldest of all goes, but the cluster's own still have room. */
  for (int i = 0; i < callers.room; i++) all[i] = caller_from(&callers, (uint8_t)(10 + i), i == 5 ? 1 : 50);
  assert_int_equal(flow_callers_choose(&callers, list, callers.room, &other), 5);
  assert_int_equal(flow_callers_choose(&callers, list, callers.room, &known), -1);
  flow_callers_learn(&callers, &other.host);
  assert_true(flow_callers_know(&callers, &other.host));
  other.known = 1;
  assert_int_equal(flow_callers_choose(&callers, list, callers.room, &other), -1);
  flow_callers_clear(&callers);
  flow_cluster_release(cluster);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_flood), cmocka_unit_test(test_slow_drip), cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
