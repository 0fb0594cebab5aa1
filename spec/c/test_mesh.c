/* test_mesh.c: a rank that waits for another one, without a descriptor for those that call. spec/dist/transport_spec.lua has the rest. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <netinet/in.h>
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

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(waits_without_spinning) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
