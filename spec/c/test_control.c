/* test_control.c: the control plane over real sockets of this machine: work with and without faults, what does not fit, sockets of a
 * launcher, interrupts, noise. */
#include "control_members.h"

#include <fcntl.h>

#include "base/plugin.h"

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

/* ---- last words ---------------------------------------------------------------------------------------------------------------------- */

static void *join_and_wait(void *argument)
{
  member *self = argument;
  ASK(open_member(self));
  ASK(flow_control_join(self->control, 0, "m", &self->generation));
  ASK(flow_control_barrier(self->control, "ready", 10));
  return NULL;
}

/* 1: the words are among the bytes that wait in a socket, perhaps after an answer to a heartbeat. */
static int holds(int descriptor, const char *words)
{
  uint8_t bytes[4096];
  ssize_t count = recv(descriptor, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
  size_t length = strlen(words);
  for (size_t at = 0; count > 0 && at + length <= (size_t)count; at++) {
    if (memcmp(bytes + at, words, length) == 0) return 1;
  }
  return 0;
}

/* The chief's last words are in a member's socket when the member finds that it can send nothing more: they count, not the connection. */
static void test_last_words(void **state)
{
  (void)state;
  begin(NULL);
  run_all(join_and_wait);
  for (int i = 0; i < TASKS; i++) assert_int_equal(members[i].status, FLOW_OK);
  flow_control *control = members[1].control;
  pthread_mutex_lock(&control->lock);                /* its thread reads nothing from here on */
  flow_link *link = control->links[0];
  assert_int_equal(flow_control_report(members[0].control, "train.lua:3: no such file", FLOW_FAULT_OWN), FLOW_OK);
  for (int i = 0; i < 20000 && !holds(link->descriptor, "train.lua:3: no such file"); i++) usleep(1000);
  assert_int_equal(shutdown(link->descriptor, SHUT_WR), 0);
  assert_int_not_equal(flow_link_send(link, (const uint8_t *)"?", 1), FLOW_OK);
  link->phase = FLOW_LINK_BROKEN;
  pthread_mutex_unlock(&control->lock);
  flow_control_wake(control);
  assert_int_not_equal(flow_control_barrier(control, "never", 15), FLOW_OK);
  if (!strstr(flow_last_error(), "train.lua:3: no such file")) fail_msg("%s", flow_last_error());
  end();
}

/* ---- what does not fit --------------------------------------------------------------------------------------------------------------- */

static void expect_text(const member *self, const char *words)
{
  if (!strstr(self->text, words)) fail_msg("task %d says: %s", self->number, self->text);
}

static void *join_in_vain(void *argument)
{
  member *self = argument;
  ASK(open_member(self));
  ASK(flow_control_join(self->control, 0, "m", &self->generation));
  return NULL;
}

/* Who has another secret, or none, stays outside; both sides say so, at once and with their last words. */
static void test_other_secret(void **state)
{
  (void)state;
  if (!sealing()) skip();
  static const char *const others[] = { "another secret, as long", NULL };
  static const char *const chief_words[] = { "turned away: frame 0 is not sealed with this cluster's secret: is FLOW_SECRET the same in ",
                                             "turned away: it has no secret, this process has one: set the same FLOW_SECRET in all tasks" };
  static const char *const member_words[] = { "it closed the connection without a word: is FLOW_SECRET the same in all tasks?",
                                              "it has a secret, this process has none: set the same FLOW_SECRET in all tasks" };
  for (int i = 0; i < 2; i++) {
    begin("sixteen bytes or more");
    for (int task = 0; task < TASKS; task++) members[task].start_within = 1;
    members[1].secret = others[i];
    run_all(join_in_vain);
    assert_true(log_has(&members[0], "listening on 127.0.0.1:"));
    assert_true(log_has(&members[0], chief_words[i]));
    expect_text(&members[0], "missing: worker:1 127.0.0.1:");
    expect_text(&members[0], chief_words[i]);
    expect_text(&members[1], "worker:0 127.0.0.1:");
    expect_text(&members[1], member_words[i]);
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
  char words[64];
  snprintf(words, sizeof words, "another process has that port: process %d, ", (int)getpid());
  assert_non_null(strstr(flow_last_error(), words));
  assert_non_null(strstr(flow_last_error(), "test_control; end it"));
  assert_null(members[0].control);
  members[0].control = first;
  end();
}

/* Every task has its own port, not only the chief: nobody else is that task. */
static void test_every_task_listens(void **state)
{
  (void)state;
  begin(NULL);
  assert_int_equal(open_member(&members[2]), FLOW_OK);
  flow_control *first = members[2].control;
  assert_int_equal(open_member(&members[2]), FLOW_IO_ERROR);
  flow_control_close(first);
  assert_int_equal(open_member(&members[2]), FLOW_OK);
  end();
}

/* ---- a launcher's socket ------------------------------------------------------------------------------------------------------------- */

static int bind_socket(int port, int listens)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port) };
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(descriptor, (struct sockaddr *)&address, sizeof address), 0);
  if (listens) assert_int_equal(listen(descriptor, 8), 0);
  return descriptor;
}

/* The tasks work on the sockets that they were given, which children do not get and which outlive the control plane. */
static void test_listening_descriptor(void **state)
{
  (void)state;
  int descriptors[TASKS];
  begin(NULL);
  for (int i = 0; i < TASKS; i++) {
    descriptors[i] = bind_socket(port_of(i), 1);
    snprintf(members[i].descriptor, sizeof members[i].descriptor, "%d", descriptors[i]);
  }
  run_all(work);
  for (int i = 0; i < TASKS; i++) {
    if (members[i].status != FLOW_OK) fail_msg("task %d: %s", i, members[i].text);
    assert_true(fcntl(descriptors[i], F_GETFD) & FD_CLOEXEC);
  }
  end();
  for (int i = 0; i < TASKS; i++) assert_int_equal(close(descriptors[i]), 0);
}

/* The variable alone, as a child of a worker has it, does not make a socket. */
static void test_other_descriptor(void **state)
{
  (void)state;
  begin(NULL);
  int other = bind_socket(0, 1), deaf = bind_socket(0, 0);
  const int numbers[] = { other, deaf, 0, 1000 };
  for (int i = 0; i < 4; i++) {
    snprintf(members[0].descriptor, sizeof members[0].descriptor, "%d", numbers[i]);
    assert_int_equal(open_member(&members[0]), FLOW_OK);
    int again = socket(AF_INET, SOCK_STREAM, 0);                /* it has bound the port itself */
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)port_of(0)) };
    assert_int_equal(connect(again, (struct sockaddr *)&address, sizeof address), 0);
    close(again);
    flow_control_close(members[0].control);
    members[0].control = NULL;
  }
  snprintf(members[0].descriptor, sizeof members[0].descriptor, "3 or so");
  assert_int_equal(open_member(&members[0]), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "FLOW_LISTEN_DESCRIPTOR is \"3 or so\""));
  close(other);
  close(deaf);
  end();
}

/* ---- an interrupt -------------------------------------------------------------------------------------------------------------------- */

static void *interrupt_soon(void *context)
{
  usleep(100000);
  flow_interrupt(context, 1);
  return NULL;
}

/* Waiting for a task that does not come ends when the context is interrupted, as Ctrl-C does it. */
static void test_interrupt(void **state)
{
  (void)state;
  flow_context *context;
  pthread_t thread;
  assert_int_equal(flow_context_new(&context), FLOW_OK);
  begin(NULL);
  for (int i = 0; i < 2; i++) {
    flow_interrupt(context, 0);
    assert_int_equal(open_member(&members[i]), FLOW_OK);
    flow_control_watch(members[i].control, context, NULL, NULL, NULL);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, context), 0);
    assert_int_equal(flow_control_join(members[i].control, 0, "m", &members[i].generation), FLOW_INTERRUPTED);
    pthread_join(thread, NULL);
  }
  end();
  flow_context_release(context);
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
    cmocka_unit_test(test_work), cmocka_unit_test(test_sealed_work), cmocka_unit_test(test_lost_task), cmocka_unit_test(test_last_words),
    cmocka_unit_test(test_other_secret), cmocka_unit_test(test_port_taken), cmocka_unit_test(test_every_task_listens),
    cmocka_unit_test(test_listening_descriptor), cmocka_unit_test(test_other_descriptor), cmocka_unit_test(test_interrupt),
    cmocka_unit_test(test_noise),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
