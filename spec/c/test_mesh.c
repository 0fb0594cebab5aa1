/* test_mesh.c: a rank that waits for another one, without a descriptor for those that call, or calls one whose port somebody else has.
 * spec/dist/transport_spec.lua has the rest. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/mesh.h"

enum { STRANGERS = 4, CARD = 1024 };

/* The store of a group whose other rank never comes: its card is this rank's own. Reading it is the moment when the port is open. */
typedef struct lonely {
  unsigned char card[CARD];
  size_t        bytes;
  int           strangers[STRANGERS];
  struct rlimit before;
} lonely;

static flow_status set(void *state, const char *key, const void *bytes, size_t count)
{
  lonely *self = state;
  (void)key;
  assert_true(count <= CARD);
  memcpy(self->card, bytes, count);
  self->bytes = count;
  return FLOW_OK;
}

/* Strangers call, and take the last descriptors. */
static flow_status get(void *state, const char *key, double within, void **bytes, size_t *count)
{
  lonely *self = state;
  struct sockaddr_in address;
  (void)key;
  (void)within;
  memcpy(&address, self->card, sizeof address);
  for (int i = 0; i < STRANGERS; i++) {
    self->strangers[i] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(self->strangers[i], (struct sockaddr *)&address, sizeof address), 0);
  }
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &self->before), 0);
  struct rlimit none = self->before;
  none.rlim_cur = (rlim_t)self->strangers[STRANGERS - 1] + 1;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  FLOW_TRY(flow_alloc(self->bytes, bytes));
  memcpy(*bytes, self->card, self->bytes);
  *count = self->bytes;
  return FLOW_OK;
}

static double processor_seconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void waits_without_spinning(void **state)
{
  (void)state;
  lonely self = { .bytes = 0 };
  const flow_store store = { .state = &self, .set = set, .get = get };
  const flow_transport_options options = { .timeout = 1, .store = &store, .group = "g", .address = "127.0.0.1" };
  int sockets[2];
  double began = processor_seconds();
  flow_status status = flow_mesh_connect("tcp", 0, 2, &options, sockets, NULL);
  double spent = processor_seconds() - began;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &self.before), 0);
  for (int i = 0; i < STRANGERS; i++) close(self.strangers[i]);
  assert_int_equal(status, FLOW_TIMED_OUT);
  assert_non_null(strstr(flow_last_error(), "rank 1 of 2 did not connect"));
  if (spent > 0.2) fail_msg("the rank spun: %g s of a processor in a second", spent);
}

/* ---- a port that somebody else has --------------------------------------------------------------------------------------------------- */

/* Hangs up on whoever calls, until its listener is shut; its address is what the card of rank 0 says. */
typedef struct other {
  pthread_t thread;
  int listener, calls;
  struct sockaddr_in address;
  unsigned char card[CARD];
  size_t bytes;
} other;

static void *hang_up(void *argument)
{
  other *self = argument;
  for (int caller; (caller = accept(self->listener, NULL, NULL)) >= 0; self->calls++) close(caller);
  return NULL;
}

static flow_status set_card(void *state, const char *key, const void *bytes, size_t count)
{
  other *self = state;
  (void)key;
  assert_true(count <= CARD);
  memcpy(self->card, bytes, count);
  self->bytes = count;
  return FLOW_OK;
}

static flow_status get_card(void *state, const char *key, double within, void **bytes, size_t *count)
{
  other *self = state;
  (void)key;
  (void)within;
  FLOW_TRY(flow_alloc(self->bytes, bytes));
  memcpy(*bytes, self->card, self->bytes);
  memcpy(*bytes, &self->address, sizeof self->address);
  *count = self->bytes;
  return FLOW_OK;
}

static void calls_without_hurry(void **state)
{
  (void)state;
  other self = { .address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
  socklen_t size = sizeof self.address;
  self.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(self.listener, (struct sockaddr *)&self.address, size), 0);
  assert_int_equal(listen(self.listener, 16), 0);
  assert_int_equal(getsockname(self.listener, (struct sockaddr *)&self.address, &size), 0);
  assert_int_equal(pthread_create(&self.thread, NULL, hang_up, &self), 0);
  const flow_store store = { .state = &self, .set = set_card, .get = get_card };
  const flow_transport_options options = { .timeout = 1, .store = &store, .group = "g", .address = "127.0.0.1" };
  int sockets[2];
  assert_int_equal(flow_mesh_connect("tcp", 1, 2, &options, sockets, NULL), FLOW_TIMED_OUT);
  assert_non_null(strstr(flow_last_error(), "rank 0 of 2 was not reached"));
  shutdown(self.listener, SHUT_RDWR);
  pthread_join(self.thread, NULL);
  close(self.listener);
  if (self.calls < 1 || self.calls > 21) fail_msg("the rank called %d times in a second", self.calls);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(waits_without_spinning), cmocka_unit_test(calls_without_hurry) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
