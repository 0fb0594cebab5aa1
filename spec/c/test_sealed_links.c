/* test_sealed_links.c: connections that are sealed on their way: what one end writes the other reads, nothing of it is seen in between, and
 * whoever changes, repeats or leaves out a byte there ends the connection. Sealing is a toy here. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "flow.h"
#include "transport/sealed_links.h"

/* ---- a toy -------------------------------------------------------------------------------------------------------------------------- */

enum { OVERHEAD = 8 };

typedef struct toy { uint8_t key[FLOW_LINK_KEY]; int dialed; } toy;

static flow_status begin(const void *state, const uint8_t key[FLOW_LINK_KEY], int dialed, void **session)
{
  assert_string_equal(state, "toy");
  FLOW_TRY(flow_alloc_zero(sizeof(toy), session));
  memcpy(((toy *)*session)->key, key, FLOW_LINK_KEY);
  ((toy *)*session)->dialed = dialed;
  return FLOW_OK;
}

/* way: 1 of what the end that dialed sends. */
static uint8_t mask(const toy *of, uint64_t number, int way, size_t i)
{
  return (uint8_t)(of->key[i % FLOW_LINK_KEY] + 31 * number + 77 * (uint64_t)way + i * i);
}

static uint64_t check_sum(const toy *of, uint64_t number, int way, const uint8_t *contents, size_t count)
{
  uint64_t sum = of->key[0] + 1000 * number + (uint64_t)way;
  for (size_t i = 0; i < count; i++) sum = sum * 1099511628211u + contents[i];
  return sum;
}

static flow_status seal(void *session, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to)
{
  const toy *self = session;
  uint64_t sum = check_sum(self, number, self->dialed, contents, count);
  for (size_t i = 0; i < count; i++) to[i] = contents[i] ^ mask(self, number, self->dialed, i);
  memcpy(to + count, &sum, OVERHEAD);
  return FLOW_OK;
}

static flow_status open_sealed(void *session, uint64_t number, const uint8_t *sealed, size_t count, uint8_t *to)
{
  const toy *self = session;
  uint64_t sum;
  memcpy(&sum, sealed + count - OVERHEAD, OVERHEAD);
  for (size_t i = 0; i < count - OVERHEAD; i++) to[i] = sealed[i] ^ mask(self, number, !self->dialed, i);
  if (sum == check_sum(self, number, !self->dialed, to, count - OVERHEAD)) return FLOW_OK;
  return flow_fail(FLOW_CORRUPT_DATA, "not sealed by the other end");
}

static const flow_link_seal toy_seal = { OVERHEAD, "toy", begin, seal, open_sealed, flow_free };

/* ---- two ends and what is between them ---------------------------------------------------------------------------------------------- */

typedef struct wire { int ends[2], net[2]; flow_sealed_links *links[2]; } wire;

static void set_up(wire *self, int same_key)
{
  for (int side = 0; side < 2; side++) {
    int pair[2], dialed = side;
    uint8_t key[1][FLOW_LINK_KEY];
    for (int i = 0; i < FLOW_LINK_KEY; i++) key[0][i] = (uint8_t)(i * 7 + (same_key ? 0 : side));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    self->net[side] = pair[1];
    assert_int_equal(flow_sealed_links_start(1, pair, (const uint8_t (*)[FLOW_LINK_KEY])key, &dialed, &toy_seal, &self->links[side]),
                     FLOW_OK);
    self->ends[side] = pair[0];
  }
}

static void take_down(wire *self)
{
  for (int side = 0; side < 2; side++) {
    close(self->ends[side]);
    close(self->net[side]);
    flow_sealed_links_stop(self->links[side]);
  }
}

/* Waits for bytes; 0: the connection has ended. */
static size_t take(int socket, void *to, size_t most)
{
  struct pollfd wait = { .fd = socket, .events = POLLIN };
  assert_int_equal(poll(&wait, 1, 20000), 1);
  ssize_t count = recv(socket, to, most, 0);
  return count < 0 ? 0 : (size_t)count;
}

static void give(int socket, const void *bytes, size_t count)
{
  assert_int_equal(send(socket, bytes, count, MSG_NOSIGNAL), count);
}

static void nobody_reads_in_between(void **state)
{
  (void)state;
  static const char text[] = "gradients of the first layer";
  char seen[200], got[200];
  wire w;
  set_up(&w, 1);
  for (int round = 0; round < 3; round++)
    for (int side = 0; side < 2; side++) {
      give(w.ends[side], text, sizeof text);
      size_t count = take(w.net[side], seen, sizeof seen);
      assert_int_equal(count, 4 + sizeof text + OVERHEAD);
      assert_null(memmem(seen, count, text, 6));
      for (size_t i = 0; i < count; i++) give(w.net[1 - side], seen + i, 1);
      assert_int_equal(take(w.ends[1 - side], got, sizeof got), sizeof text);
      assert_string_equal(got, text);
    }
  take_down(&w);
}

/* How what is on its way is changed: the frame, its length, and how often it is sent. */
static void changes_end_the_connection(void **state)
{
  (void)state;
  for (int how = 0; how < 5; how++) {
    char seen[200], got[200];
    wire w;
    set_up(&w, how != 4);
    give(w.ends[0], "some bytes", 10);
    size_t count = take(w.net[0], seen, sizeof seen);
    if (how == 0) seen[6] ^= 1;                     /* the contents */
    if (how == 1) seen[2] = 127;                    /* a length that nobody sends */
    if (how == 2) memset(seen, 0, 4);
    give(w.net[1], seen, count);
    if (how == 3) {                                 /* the same once more */
      assert_int_equal(take(w.ends[1], got, sizeof got), 10);
      give(w.net[1], seen, count);
    }
    assert_int_equal(take(w.ends[1], got, sizeof got), 0);
    take_down(&w);
  }
}

/* ---- many bytes, both ways ---------------------------------------------------------------------------------------------------------- */

enum { MANY = 5000003 };

typedef struct stream { int from, to; } stream;

static void *carry(void *argument)
{
  const stream *self = argument;
  char bytes[5000];
  for (ssize_t count; poll(&(struct pollfd){ .fd = self->from, .events = POLLIN }, 1, 20000) == 1
                      && (count = recv(self->from, bytes, sizeof bytes, 0)) > 0;)
    for (ssize_t at = 0; at < count;) {
      poll(&(struct pollfd){ .fd = self->to, .events = POLLOUT }, 1, 20000);
      ssize_t sent = send(self->to, bytes + at, (size_t)(count - at), MSG_NOSIGNAL);
      if (sent > 0) at += sent;
    }
  shutdown(self->to, SHUT_WR);
  return NULL;
}

static void *write_all(void *argument)
{
  int socket = *(int *)argument;
  uint8_t *bytes = malloc(MANY);
  for (int i = 0; i < MANY; i++) bytes[i] = (uint8_t)(i * 13 + i / 255);
  for (int at = 0; at < MANY;) {
    poll(&(struct pollfd){ .fd = socket, .events = POLLOUT }, 1, 20000);
    ssize_t sent = send(socket, bytes + at, (size_t)(MANY - at), MSG_NOSIGNAL);
    if (sent > 0) at += (int)sent;
  }
  free(bytes);
  shutdown(socket, SHUT_WR);
  return NULL;
}

static void *read_all(void *argument)
{
  int socket = *(int *)argument, at = 0;
  uint8_t bytes[9000];
  size_t count;
  while ((count = take(socket, bytes, sizeof bytes)) > 0)
    for (size_t i = 0; i < count; i++, at++) if (bytes[i] != (uint8_t)(at * 13 + at / 255)) return "wrong bytes";
  return at == MANY ? NULL : "too few bytes";
}

static void many_bytes_go_both_ways(void **state)
{
  (void)state;
  wire w;
  pthread_t threads[6];
  set_up(&w, 1);
  stream ways[2] = { { w.net[0], w.net[1] }, { w.net[1], w.net[0] } };
  for (int side = 0; side < 2; side++) {
    pthread_create(&threads[side], NULL, read_all, &w.ends[side]);
    pthread_create(&threads[2 + side], NULL, carry, &ways[side]);
    pthread_create(&threads[4 + side], NULL, write_all, &w.ends[side]);
  }
  for (int i = 0; i < 6; i++) {
    void *wrong;
    pthread_join(threads[i], &wrong);
    if (i < 2 && wrong) fail_msg("end %d: %s", i, (const char *)wrong);
  }
  take_down(&w);
}

/* What was written before the end arrives. */
static void last_words_arrive(void **state)
{
  (void)state;
  char seen[200];
  wire w;
  set_up(&w, 1);
  give(w.ends[0], "the last", 8);
  close(w.ends[0]);
  flow_sealed_links_stop(w.links[0]);
  size_t count = take(w.net[0], seen, sizeof seen);
  assert_int_equal(count, 4 + 8 + OVERHEAD);
  assert_int_equal(take(w.net[0], seen, sizeof seen), 0);
  close(w.net[0]);
  close(w.ends[1]);
  close(w.net[1]);
  flow_sealed_links_stop(w.links[1]);
}

/* Whatever allocation fails, the socket that was handed over is closed and its place says so. */
static void a_failed_start_closes_the_sockets(void **state)
{
  (void)state;
  static const uint8_t key[1][FLOW_LINK_KEY];
  int dialed = 0, pair[2];
  flow_status status = FLOW_OUT_OF_MEMORY;
  for (int after = 0; after < 10 && status == FLOW_OUT_OF_MEMORY; after++) {
    flow_sealed_links *links;
    char end;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    flow_fail_allocation(after);
    status = flow_sealed_links_start(1, pair, key, &dialed, &toy_seal, &links);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) {
      assert_true(after > 0);
      close(pair[0]);
      flow_sealed_links_stop(links);
    } else {
      assert_null(links);
      assert_int_equal(pair[0], -1);
      assert_int_equal(recv(pair[1], &end, 1, MSG_DONTWAIT), 0); /* the other end sees that it was closed */
    }
    close(pair[1]);
  }
  assert_int_equal(status, FLOW_OK);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nobody_reads_in_between),           cmocka_unit_test(changes_end_the_connection),
    cmocka_unit_test(many_bytes_go_both_ways),           cmocka_unit_test(last_words_arrive),
    cmocka_unit_test(a_failed_start_closes_the_sockets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
