/* The control plane over real sockets of this machine: three of them in one process, each called from a thread of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/plugin.h"
#include "dist/control.h"

enum { TASKS = 3 };

/* What one task is, does and has met. */
typedef struct member {
  pthread_t     thread;
  flow_cluster *cluster;
  flow_control *control;
  const char   *secret;
  int           number, crashes, culprit;
  flow_status   status;
  flow_generation generation;
  char          text[1100], log[4096];
  pthread_mutex_t lock;
} member;

static member members[TASKS];

/* ---- a cluster on free ports --------------------------------------------------------------------------------------------------------- */

static int free_port(void)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  socklen_t size = sizeof address;
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(descriptor, (struct sockaddr *)&address, size), 0);
  assert_int_equal(getsockname(descriptor, (struct sockaddr *)&address, &size), 0);
  close(descriptor);
  return ntohs(address.sin_port);
}

static const char *get_secret(const void *state, const char *name)
{
  return strcmp(name, "FLOW_SECRET") == 0 ? ((const member *)state)->secret : NULL;
}

static void keep_log(void *state, const char *text)
{
  member *self = state;
  pthread_mutex_lock(&self->lock);
  size_t length = strlen(self->log);
  snprintf(self->log + length, sizeof self->log - length, "%s\n", text);
  pthread_mutex_unlock(&self->lock);
}

static flow_status open_member(member *self)
{
  flow_environment environment = { get_secret, self };
  flow_protocol_options options = { .job = "j", .version = "1", .heartbeat = 0.2, .dead_after = 5, .start_within = 20,
                                   .rejoin_within = 20 };
  return flow_control_open(self->cluster, &environment, &options, keep_log, self, &self->control);
}

static void begin(const char *secret)
{
  int ports[TASKS];
  memset(members, 0, sizeof members);
  for (int i = 0; i < TASKS; i++) ports[i] = free_port();
  for (int i = 0; i < TASKS; i++) {
    char text[300];
    snprintf(text, sizeof text, "{\"cluster\":{\"worker\":[\"127.0.0.1:%d\",\"127.0.0.1:%d\",\"127.0.0.1:%d\"]},"
             "\"task\":{\"type\":\"worker\",\"index\":%d}}", ports[0], ports[1], ports[2], i);
    assert_int_equal(flow_cluster_parse(text, (double)strlen(text), "test", NULL, -1, &members[i].cluster), FLOW_OK);
    members[i].number = i;
    members[i].secret = secret;
    members[i].culprit = -2;
    pthread_mutex_init(&members[i].lock, NULL);
  }
}

static void end(void)
{
  for (int i = 0; i < TASKS; i++) {
    flow_control_close(members[i].control);
    flow_cluster_release(members[i].cluster);
    pthread_mutex_destroy(&members[i].lock);
  }
}

static void run_all(void *(*program)(void *))
{
  for (int i = 0; i < TASKS; i++) assert_int_equal(pthread_create(&members[i].thread, NULL, program, &members[i]), 0);
  for (int i = 0; i < TASKS; i++) pthread_join(members[i].thread, NULL);
}

/* Ends a program with what went wrong. */
#define ASK(call)                                                         \
  do {                                                                    \
    self->status = (call);                                                \
    snprintf(self->text, sizeof self->text, "%s", flow_last_error());     \
    if (self->status != FLOW_OK) return NULL;                             \
  } while (0)

/* ---- work without faults ------------------------------------------------------------------------------------------------------------- */

static void *work(void *argument)
{
  member *self = argument;
  static uint8_t large[FLOW_MOST_VALUE];
  uint8_t small[8];
  uint32_t bytes;
  char key[32];
  if (!self->control) ASK(open_member(self));
  ASK(flow_control_join(self->control, self->number, "m", &self->generation));
  for (int step = 0; step < 20; step++) {
    snprintf(key, sizeof key, "%d", step);
    flow_control_progress(self->control, step, "");
    if (self->number == step % TASKS) ASK(flow_control_set(self->control, key, large, sizeof large));
    ASK(flow_control_get(self->control, key, 10, small, sizeof small, &bytes));
    if (bytes != sizeof large) self->status = FLOW_INTERNAL;
    ASK(flow_control_barrier(self->control, key, 10));
  }
  ASK(flow_control_goodbye(self->control, 0));
  return NULL;
}

static const flow_plugin *sealing(void)
{
  const flow_plugin *plugin;
  if (flow_plugin_open("control", &plugin) == FLOW_OK) return plugin;
  print_message("pending: %s\n", flow_last_error());
  return NULL;
}

static void expect_work(const char *secret)
{
  double before = flow_live_bytes();
  begin(secret);
  run_all(work);
  for (int i = 0; i < TASKS; i++) {
    if (members[i].status != FLOW_OK) fail_msg("task %d: %s", i, members[i].text);
    assert_int_equal(members[i].generation.number, 1);
    assert_int_equal(members[i].generation.source, 2);
  }
  end();
  assert_true(flow_live_bytes() == before);
}

static void test_work(void **state)
{
  (void)state;
  expect_work(NULL);
}

static void test_sealed_work(void **state)
{
  (void)state;
  if (!sealing()) skip();
  expect_work("sixteen bytes or more");
}

/* ---- one is lost and comes again ----------------------------------------------------------------------------------------------------- */

static void *lose_one(void *argument)
{
  member *self = argument;
  ASK(open_member(self));
  ASK(flow_control_join(self->control, 0, "m", &self->generation));
  ASK(flow_control_barrier(self->control, "ready", 10));
  if (self->number == members[0].crashes) {                 /* which one it is */
    flow_control_close(self->control);                      /* no goodbye */
    self->control = NULL;
    ASK(open_member(self));
  } else {
    self->status = flow_control_barrier(self->control, "never", 15);
    snprintf(self->text, sizeof self->text, "%s", flow_last_error());
    flow_control_check(self->control, &self->culprit);
  }
  ASK(flow_control_join(self->control, 5, "m", &self->generation));
  ASK(flow_control_barrier(self->control, "again", 10));
  ASK(flow_control_goodbye(self->control, 0));
  return NULL;
}

static void test_lost_task(void **state)
{
  (void)state;
  for (int lost = 0; lost < TASKS; lost += 2) {
    begin(NULL);
    members[0].crashes = lost;
    run_all(lose_one);
    for (int i = 0; i < TASKS; i++) {
      if (members[i].status != FLOW_OK) fail_msg("task %d: %s", i, members[i].text);
      assert_int_equal(members[i].generation.number, 2);
      if (i != lost) assert_int_equal(members[i].culprit, lost);
    }
    end();
  }
}

/* ---- what does not fit --------------------------------------------------------------------------------------------------------------- */

static int log_has(member *self, const char *part)
{
  pthread_mutex_lock(&self->lock);
  int found = strstr(self->log, part) != NULL;
  pthread_mutex_unlock(&self->lock);
  return found;
}

/* Who has another secret, or none, stays outside; the chief says so. */
static void test_other_secret(void **state)
{
  (void)state;
  if (!sealing()) skip();
  static const char *const others[] = { "another secret, as long", NULL };
  static const char *const words[] = { "is FLOW_SECRET the same in all tasks?", "it has no secret, this process has one" };
  for (int i = 0; i < 2; i++) {
    begin("sixteen bytes or more");
    members[1].secret = others[i];
    assert_int_equal(open_member(&members[0]), FLOW_OK);
    assert_true(log_has(&members[0], "listening on 127.0.0.1:"));
    assert_int_equal(open_member(&members[1]), FLOW_OK);
    for (int wait = 0; wait < 1000 && !log_has(&members[0], words[i]); wait++) usleep(10000);
    assert_true(log_has(&members[0], words[i]));
    end();
  }
}

static void test_port_taken(void **state)
{
  (void)state;
  begin(NULL);
  assert_int_equal(open_member(&members[0]), FLOW_OK);
  flow_control *first = members[0].control;
  assert_int_equal(open_member(&members[0]), FLOW_IO_ERROR);
  assert_non_null(strstr(flow_last_error(), "another process has that port"));
  assert_null(members[0].control);
  members[0].control = first;
  end();
}

/* Bytes of somebody else's do no harm: the chief goes on. */
static void test_noise(void **state)
{
  (void)state;
  begin(NULL);
  assert_int_equal(open_member(&members[0]), FLOW_OK);
  const char *address = flow_cluster_address(members[0].cluster, FLOW_JOB_WORKER, 0);
  for (int i = 0; i < 20; i++) {
    static const char *const noise[] = { "GET / HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n      ", "flowctl1", "",
                                         "flowctl1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff" };
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1)) };
    assert_int_equal(connect(descriptor, (struct sockaddr *)&to, sizeof to), 0);
    assert_true(send(descriptor, noise[i % 4], i % 4 == 3 ? 44 : strlen(noise[i % 4]), MSG_NOSIGNAL) >= 0);
    close(descriptor);
  }
  run_all(work);
  for (int i = 0; i < TASKS; i++) assert_int_equal(members[i].status, FLOW_OK);
  end();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_work), cmocka_unit_test(test_sealed_work), cmocka_unit_test(test_lost_task), cmocka_unit_test(test_other_secret),
    cmocka_unit_test(test_port_taken),
    cmocka_unit_test(test_noise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
