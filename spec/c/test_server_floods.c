/* test_server_floods.c: a parameter server among callers that never say a message: hundreds of them, and more than there are
 * descriptors. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "cluster/control/callers.h"

enum { FLOOD = 300, TASKS = 2, ROUNDS = 3 };

typedef struct cluster_of_two {
  flow_context *context;
  flow_cluster *server_side, *worker_side;
  flow_server  *server;
  int           port;
} cluster_of_two;

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

static flow_cluster *parse(int port, const char *task)
{
  char text[200];
  flow_cluster *cluster;
  snprintf(text, sizeof text, "{\"cluster\":{\"worker\":[\"127.0.0.1:1\"],\"ps\":[\"127.0.0.1:%d\"]},"
           "\"task\":{\"type\":\"%s\",\"index\":0}}", port, task);
  assert_int_equal(flow_cluster_parse(text, (double)strlen(text), "test", NULL, -1, &cluster), FLOW_OK);
  return cluster;
}

static void begin(cluster_of_two *self)
{
  self->port = free_port();
  self->server_side = parse(self->port, "ps");
  self->worker_side = parse(self->port, "worker");
  assert_int_equal(flow_context_new(&self->context), FLOW_OK);
  if (flow_server_open(self->context, self->server_side, &self->server) != FLOW_OK) fail_msg("%s", flow_last_error());
}

static void end(cluster_of_two *self)
{
  flow_server_close(self->server);
  flow_cluster_release(self->server_side);
  flow_cluster_release(self->worker_side);
  flow_context_release(self->context);
}

static int call_server(const cluster_of_two *self)
{
  struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)self->port) };
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(descriptor >= 0);
  assert_int_equal(connect(descriptor, (struct sockaddr *)&to, sizeof to), 0);
  return descriptor;
}

/* Nobody has said a message that would come out of it. */
static void let_server_look(const cluster_of_two *self, double seconds)
{
  flow_server_event event;
  assert_int_equal(flow_server_next(self->server, seconds, &event), FLOW_TIMED_OUT);
}

static int is_open(int descriptor)
{
  char bytes[256];
  ssize_t count;
  while ((count = recv(descriptor, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {}
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* A worker that asks, and gets what it asked. */
static void *ask(void *argument)
{
  const cluster_of_two *self = argument;
  flow_context *context;
  flow_server_link *link = NULL;
  char *bytes, *why = NULL;
  double count;
  flow_status status = flow_context_new(&context);
  if (status == FLOW_OK) status = flow_server_link_open(context, self->worker_side, 0, &link);
  if (status == FLOW_OK) status = flow_server_link_reach(link, 20);
  for (int i = 0; i < ROUNDS && status == FLOW_OK; i++) {
    status = flow_server_link_send(link, "question", 8, NULL, NULL, 0);
    if (status == FLOW_OK) status = flow_server_links_await(&link, 1, 20);
    if (status == FLOW_OK && strcmp(flow_server_link_answer(link, &bytes, &count), "answer") != 0) why = strdup("another answer");
  }
  if (status != FLOW_OK) why = strdup(flow_last_error());
  flow_server_link_close(link);
  flow_context_release(context);
  return why;
}

static void expect_answers(cluster_of_two *self)
{
  pthread_t thread;
  flow_server_event event = { .left = 0 };
  void *why;
  int questions = 0;
  assert_int_equal(pthread_create(&thread, NULL, ask, self), 0);
  while (!event.left) {
    if (flow_server_next(self->server, 30, &event) != FLOW_OK) fail_msg("%s", flow_last_error());
    if (event.left) continue;
    assert_string_equal(event.text, "question");
    assert_int_equal(flow_server_reply(self->server, event.peer, "answer", 6, NULL, NULL, 0), FLOW_OK);
    questions++;
  }
  pthread_join(thread, &why);
  if (why) fail_msg("%s", (const char *)why);
  assert_int_equal(questions, ROUNDS);
}

/* What a caller that is not a worker may say: nothing, a greeting and no more, half of one, the beginning of a frame after it. */
static const struct { const char *bytes; size_t count; } words[] = {
  { "", 0 },
  { "flowctl1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 40 },
  { "flow", 4 },
  { "flowctl1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0", 43 },
};

/* A server has bounded room for strangers, whatever they say, and answers workers beside them. */
static void test_flood(void **state)
{
  (void)state;
  for (int how = 0; how < 4; how++) {
    cluster_of_two self;
    int descriptors[FLOOD], open = 0;
    begin(&self);
    for (int i = 0; i < FLOOD; i++) {
      descriptors[i] = call_server(&self);
      assert_true(send(descriptors[i], words[how].bytes, words[how].count, MSG_NOSIGNAL) >= 0);
      if (i % 10 == 9) let_server_look(&self, 0.01);           /* it hears what they say before the next ones come */
    }
    for (int i = 0; i < FLOOD; i++) open += is_open(descriptors[i]);
    if (open == 0 || open > FLOW_CALLERS_LEAST + 4 * TASKS) fail_msg("words %d: %d connections are open", how, open);
    expect_answers(&self);
    for (int i = 0; i < FLOOD; i++) close(descriptors[i]);
    end(&self);
  }
}

static double processor_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Without a descriptor for callers the server sleeps, says why, and goes on when there are some. */
static void test_no_descriptors(void **state)
{
  (void)state;
  enum { CALLERS = 8 };
  cluster_of_two self;
  struct rlimit before, none;
  int descriptors[CALLERS];
  begin(&self);
  for (int i = 0; i < CALLERS; i++) descriptors[i] = call_server(&self);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = before;
  none.rlim_cur = (rlim_t)descriptors[CALLERS - 1] + 1;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  double began = processor_seconds();
  let_server_look(&self, 1);
  double spent = processor_seconds() - began;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  if (spent > 0.2) fail_msg("the server spun: %g s of a processor in a second", spent);
  expect_answers(&self);
  for (int i = 0; i < CALLERS; i++) close(descriptors[i]);
  end(&self);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_flood), cmocka_unit_test(test_no_descriptors) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
