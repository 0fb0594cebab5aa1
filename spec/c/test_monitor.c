/* test_monitor.c: the pages of a monitor, and that whoever talks to it otherwise gets an answer or is dropped, and is in nobody's way. */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cmocka.h>

#include "cluster/monitor/http.h"
#include "cluster/monitor/http_host.h"
#include "cluster/monitor/monitor.h"
#include "flow.h"

static flow_monitor *monitor;

static int dial(void)
{
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)flow_monitor_port(monitor)) };
  struct timeval patience = { .tv_sec = 30 };
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(descriptor >= 0);
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  assert_int_equal(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
  return descriptor;
}

/* Until the server closes: what it said, to be freed. */
static char *hear(int descriptor)
{
  size_t size = 1 << 20, filled = 0;
  char *text = malloc(size);
  for (;;) {
    ssize_t count = recv(descriptor, text + filled, size - filled - 1, 0);
    if (count <= 0) break;
    filled += (size_t)count;
  }
  text[filled] = '\0';
  close(descriptor);
  return text;
}

static char *ask(const char *request, size_t bytes)
{
  int descriptor = dial();
  assert_int_equal(send(descriptor, request, bytes, MSG_NOSIGNAL), bytes);
  return hear(descriptor);
}

static void answers(const char *request, const char *first, const char *inside)
{
  char *text = ask(request, strlen(request));
  if (strncmp(text, first, strlen(first)) != 0 || !strstr(text, inside)) fail_msg("%.60s... is answered with %.600s", request, text);
  free(text);
}

static int set_up(void **state)
{
  (void)state;
  return flow_monitor_open("127.0.0.1:0", &monitor) == FLOW_OK ? 0 : -1;
}

static int tear_down(void **state)
{
  (void)state;
  flow_monitor_close(monitor);
  return 0;
}

static void shows_what_the_program_said(void **state)
{
  (void)state;
  answers("GET /status HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n", "\r\n\r\n{\"training\":{}}\n");
  assert_int_equal(flow_monitor_say(monitor, "{\"step\":7}", "flow_step 7\n"), FLOW_OK);
  answers("GET /status HTTP/1.1\r\nHost: localhost:1\r\n\r\n", "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n"
          "Content-Length: 24\r\n",
          "\r\n\r\n{\"training\":{\"step\":7}}\n");
  answers("GET /metrics?a=b HTTP/1.1\r\n\r\n", "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4", "\r\n\r\nflow_step 7\n");
  answers("GET / HTTP/1.1\r\n\r\n", "HTTP/1.0 200 OK\r\nContent-Type: text/html", "</html>");
  answers("GET /status HTTP/1.1\n\n", "HTTP/1.0 200 OK\r\n", "step");
}

static void refuses_everything_else(void **state)
{
  char *text = ask("HEAD /status HTTP/1.0\r\n\r\n", 25);
  (void)state;
  assert_non_null(strstr(text, "Content-Length: 16\r\n"));
  assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
  free(text);
  answers("GET /../etc/passwd HTTP/1.0\r\n\r\n", "HTTP/1.0 404 ", "");
  answers("GET /statuses HTTP/1.0\r\n\r\n", "HTTP/1.0 404 ", "");
  answers("POST /status HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.0 405 ", "");
  answers("GET /status\r\n\r\n", "HTTP/1.0 400 ", "");
  answers("\r\n\r\n", "HTTP/1.0 400 ", "");
  answers("GET /status SMTP/1.0\r\n\r\n", "HTTP/1.0 505 ", "");
  text = ask("GE\0T /status HTTP/1.0\r\n\r\n", 25);
  assert_int_equal(strncmp(text, "HTTP/1.0 400 ", 13), 0);
  free(text);
  char longest[FLOW_HTTP_MOST_REQUEST];
  memset(longest, 'a', sizeof longest);
  text = ask(longest, sizeof longest);
  assert_int_equal(strncmp(text, "HTTP/1.0 431 ", 13), 0);
  free(text);
}

/* A page of a stranger, whose name leads here when it is asked for the second time, reads nothing. */
static void refuses_names_that_others_made_up(void **state)
{
  (void)state;
  answers("GET /status HTTP/1.1\r\nAccept: */*\r\nHost: evil.example\r\n\r\n", "HTTP/1.0 403 ", "by one of them");
  answers("GET /status HTTP/1.1\r\nhost:127.0.0.1:80\r\n\r\n", "HTTP/1.0 200 OK\r\n", "training");
  char machine[256], request[400];
  assert_int_equal(gethostname(machine, sizeof machine), 0);
  struct { const char *host, *address; int is_own; } cases[] = {
    { "localhost", "127.0.0.1:1", 1 }, { "LOCALHOST.:8080", "127.0.0.1:1", 1 }, { "board.localhost:80", "127.0.0.1:1", 1 },
    { "127.0.0.1", "127.0.0.1:1", 1 }, { "[::1]:8080", "127.0.0.1:1", 1 }, { "10.1.2.3:80", "127.0.0.1:1", 1 },
    { "localhost.evil.example", "127.0.0.1:1", 0 }, { "127.0.0.1.evil.example", "127.0.0.1:1", 0 }, { "notlocalhost", "127.0.0.1:1", 0 },
    { "[::1", "127.0.0.1:1", 0 }, { "", "127.0.0.1:1", 0 }, { ":80", "127.0.0.1:1", 0 }, { "[]:80", "127.0.0.1:1", 0 },
    { "gpu.lab", "gpu.lab:6006", 1 }, { "GPU.lab:6006", "gpu.lab:6006", 1 }, { "gpu.lab.evil.example", "gpu.lab:6006", 0 },
    { machine, "127.0.0.1:1", strcmp(machine, "localhost") == 0 }, { machine, "0.0.0.0:1", 1 }, { machine, "[::]:1", 1 },
    { "evil.example", "0.0.0.0:1", 0 }, { "localhost\r\nHost: evil.example", "0.0.0.0:1", 0 },
    { "evil.example\r\nHost: localhost", "0.0.0.0:1", 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", cases[i].host);
    if (flow_http_is_own_host(request, cases[i].address) != cases[i].is_own) fail_msg("Host: %s at %s", cases[i].host, cases[i].address);
  }
  assert_int_equal(flow_http_is_own_host("GET / HTTP/1.0\r\n\r\n", "127.0.0.1:1"), 1);
}

static void drops_those_who_are_silent(void **state)
{
  enum { SILENT = 3 * FLOW_HTTP_MOST_CONNECTIONS };
  int silent[SILENT];
  (void)state;
  for (int i = 0; i < SILENT; i++) silent[i] = dial();
  assert_int_equal(send(silent[SILENT - 1], "GET /status HT", 14, MSG_NOSIGNAL), 14);
  answers("GET /status HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n", "training");
  for (int i = 0; i < SILENT; i++) free(hear(silent[i]));      /* each ends: the oldest at once, the last when its time is over */
}

/* Some hang up before they get their answer, or between the two halves of what they ask. */
static void survives_a_flood(void **state)
{
  struct linger at_once = { .l_onoff = 1 };
  (void)state;
  for (int i = 0; i < 300; i++) {
    char noise[64];
    int descriptor = dial();
    for (int k = 0; k < 64; k++) noise[k] = (char)(i * 37 + k * 101);
    if (i % 3 == 0) send(descriptor, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
    if (i % 3 == 1) send(descriptor, noise, sizeof noise, MSG_NOSIGNAL);
    if (i % 2 == 0) setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(descriptor);
  }
  answers("GET /status HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n", "training");
}

static void says_where_it_cannot_listen(void **state)
{
  flow_monitor *second;
  char address[64];
  (void)state;
  snprintf(address, sizeof address, "127.0.0.1:%d", flow_monitor_port(monitor));
  assert_int_equal(flow_monitor_open(address, &second), FLOW_IO_ERROR);
  assert_non_null(strstr(flow_last_error(), "another process has that port"));
  assert_int_equal(flow_monitor_open("8080", &second), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_monitor_open(NULL, &second), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_monitor_say(monitor, NULL, ""), FLOW_INVALID_ARGUMENT);
}

static void be_left(void *state)
{
  ++*(int *)state;
}
static double wait_for_nobody(void *state)
{
  return *(int *)state;
}

/* A worker that is no longer shown must learn it: otherwise it would tell a monitor that is closed already that it ends. */
static void a_source_is_left_once_when_it_is_replaced(void **state)
{
  (void)state;
  char control[2];
  int left[2] = { 0, 0 };
  flow_monitor_source sources[2];
  for (int i = 0; i < 2; i++) sources[i] = (flow_monitor_source){ (flow_control *)(void *)&control[i], wait_for_nobody, be_left, &left[i] };
  flow_monitor_set_source(monitor, &sources[0]);
  flow_monitor_set_source(monitor, &sources[0]);
  assert_int_equal(left[0], 0); /* the same again */
  flow_monitor_set_source(monitor, &sources[1]);
  assert_int_equal(left[0], 1);
  flow_monitor_set_source(monitor, NULL);
  assert_int_equal(left[1], 1);
  flow_monitor_set_source(monitor, NULL);
  assert_int_equal(left[0] + left[1], 2);
}

static void every_failed_allocation_is_an_error(void **state)
{
  flow_monitor *second;
  (void)state;
  for (int after = 0; after < 20; after++) {
    flow_fail_allocation(after);
    flow_status status = flow_monitor_open("127.0.0.1:0", &second);
    if (status == FLOW_OK) status = flow_monitor_say(second, "{}", "");
    flow_fail_allocation(-1);
    flow_monitor_close(second);
    if (status == FLOW_OK) return;
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
  }
  fail_msg("twenty allocations");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(shows_what_the_program_said, set_up, tear_down),
    cmocka_unit_test_setup_teardown(refuses_everything_else, set_up, tear_down),
    cmocka_unit_test_setup_teardown(refuses_names_that_others_made_up, set_up, tear_down),
    cmocka_unit_test_setup_teardown(drops_those_who_are_silent, set_up, tear_down),
    cmocka_unit_test_setup_teardown(survives_a_flood, set_up, tear_down),
    cmocka_unit_test_setup_teardown(says_where_it_cannot_listen, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_source_is_left_once_when_it_is_replaced, set_up, tear_down),
    cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
