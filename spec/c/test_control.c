/* The control plane over real sockets of this machine: three of them in one process, each called from a thread of its own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/plugin.h"
#include "cluster/control/control_state.h"

enum { TASKS = 3 };

/* What one task is, does and has met. */
typedef struct member {
  pthread_t     thread;
  flow_cluster *cluster;
  flow_control *control;
  const char   *secret;
  int           number, crashes, culprit;
  double        start_within;                  /* 0: 20 s */
  char          descriptor[12];                /* FLOW_LISTEN_DESCRIPTOR */
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
  const member *self = state;
  if (strcmp(name, "FLOW_LISTEN_DESCRIPTOR") == 0) return self->descriptor;
  return strcmp(name, "FLOW_SECRET") == 0 ? self->secret : NULL;
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
  flow_protocol_options options = { .job = "j", .version = "1", .heartbeat = 0.2, .dead_after = 5, .rejoin_within = 20,
                                   .start_within = self->start_within > 0 ? self->start_within : 20 };
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

static void expect_text(const member *self, const char *words)
{
  if (!strstr(self->text, words)) fail_msg("task %d says: %s", self->number, self->text);
}

static int log_has(member *self, const char *part)
{
  pthread_mutex_lock(&self->lock);
  int found = strstr(self->log, part) != NULL;
  pthread_mutex_unlock(&self->lock);
  return found;
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

static int port_of(int task)
{
  return atoi(strrchr(flow_cluster_address(members[task].cluster, FLOW_JOB_WORKER, task), ':') + 1);
}

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

/* ---- floods -------------------------------------------------------------------------------------------------------------------------- */

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
    cmocka_unit_test(test_work), cmocka_unit_test(test_sealed_work), cmocka_unit_test(test_lost_task), cmocka_unit_test(test_other_secret),
    cmocka_unit_test(test_port_taken), cmocka_unit_test(test_every_task_listens), cmocka_unit_test(test_listening_descriptor),
    cmocka_unit_test(test_other_descriptor), cmocka_unit_test(test_interrupt), cmocka_unit_test(test_noise),
    cmocka_unit_test(test_flood), cmocka_unit_test(test_slow_drip), cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
