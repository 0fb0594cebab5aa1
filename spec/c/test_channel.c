/* test_channel.c: messages of parameter servers: texts and bytes of any size arrive as they were sent, through a connection or memory that
 * both ends share; what is too long, says too much or breaks off is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "cluster/servers/channel.h"

enum { MOST_PIECES = 5, REGION = 100000, MOST = 8 << 20, HEAD = 9 };

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
  seed = seed * 1664525u + 1013904223u;
  return (uint32_t)(((uint64_t)seed * below) >> 32);
}

/* ends[0] was accepted, ends[1] has dialed; both are open. */
static void begin(flow_channel *ends[2])
{
  int descriptors[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, descriptors), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(flow_channel_new(descriptors[i], i, NULL, 1e9, &ends[i]), FLOW_OK);
    ends[i]->most = MOST;
  }
  while (!flow_channel_is_open(ends[0]) || !flow_channel_is_open(ends[1])) {
    for (int i = 0; i < 2; i++) assert_int_equal(flow_channel_advance(ends[i], NULL), FLOW_OK);
  }
}

static void end(flow_channel *ends[2])
{
  for (int i = 0; i < 2; i++) flow_channel_release(ends[i]);
}

static uint8_t *random_bytes(size_t count)
{
  uint8_t *bytes = malloc(count + 1);
  for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)draw(256);
  return bytes;
}

/* One message of these sizes from one end to the other. */
static void expect_message(flow_channel *from, flow_channel *to, size_t text_bytes, const int64_t *bytes, int count)
{
  uint8_t *text = random_bytes(text_bytes), *contents[MOST_PIECES];
  const void *at[MOST_PIECES];
  int64_t sum = 0;
  for (int i = 0; i < count; i++) {
    at[i] = contents[i] = random_bytes((size_t)bytes[i]);
    sum += bytes[i];
  }
  const flow_pieces pieces = { at, bytes, count };
  assert_int_equal(flow_channel_send(from, (const char *)text, text_bytes, &pieces), FLOW_OK);
  while (!to->complete) {
    assert_int_equal(flow_channel_advance(from, NULL), FLOW_OK);
    assert_int_equal(flow_channel_advance(to, NULL), FLOW_OK);
  }
  assert_true(flow_channel_is_sent(from));
  assert_int_equal(to->text_bytes, text_bytes);
  assert_memory_equal(to->text, text, text_bytes);
  assert_int_equal(to->text[text_bytes], 0);
  assert_true(to->bulk_bytes == sum);
  const char *bulk = to->bulk;
  for (int i = 0; i < count; i++) {
    assert_memory_equal(bulk, contents[i], (size_t)bytes[i]);
    bulk += bytes[i];
    free(contents[i]);
  }
  flow_channel_next(to);
  free(text);
}

static void exchange(flow_channel *ends[2], int cases)
{
  static const int64_t texts[] = { 0, 1, 255, FLOW_CHANNEL_TEXT - 1, FLOW_CHANNEL_TEXT };
  static const int64_t edges[] = { 0, 1, 63, 64, FLOW_CHANNEL_READ - 1, FLOW_CHANNEL_READ, FLOW_CHANNEL_READ + 1, REGION, (1 << 20) + 3 };
  for (int i = 0; i < cases; i++) {
    int64_t bytes[MOST_PIECES];
    int count = (int)draw(MOST_PIECES + 1), from = (int)draw(2);
    for (int k = 0; k < count; k++) bytes[k] = draw(2) ? edges[draw(9)] : draw(3000);
    expect_message(ends[from], ends[1 - from], (size_t)(draw(4) ? draw(200) : texts[draw(5)]), bytes, count);
  }
}

static void test_connection(void **state)
{
  (void)state;
  double before = flow_live_bytes();
  flow_channel *ends[2];
  begin(ends);
  exchange(ends, 60);
  end(ends);
  assert_true(flow_live_bytes() == before);
}

static void test_shared_memory(void **state)
{
  (void)state;
  double before = flow_live_bytes();
  flow_channel *ends[2];
  char where[160];
  int descriptor;
  begin(ends);
  if (flow_channel_make_region(ends[1], REGION, where, sizeof where, &descriptor) != FLOW_OK) skip();
  assert_int_equal(flow_channel_make_region(ends[1], REGION, where + 80, 80, &descriptor), FLOW_UNSUPPORTED);
  assert_int_equal(flow_channel_open_region(ends[0], REGION, "no place"), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_channel_open_region(ends[0], REGION, where), FLOW_OK);
  close(descriptor);
  int64_t whole = REGION;
  expect_message(ends[0], ends[1], 3, &whole, 1);
  assert_ptr_equal(ends[0]->sending, NULL);                    /* none of it went through the connection */
  exchange(ends, 60);
  for (int i = 0; i < 2; i++) flow_channel_leave_region(ends[i]);
  exchange(ends, 10);
  end(ends);
  assert_true(flow_live_bytes() == before);
}

static void test_what_is_not_sent(void **state)
{
  (void)state;
  flow_channel *ends[2];
  static char text[FLOW_CHANNEL_TEXT + 1];
  const void *at[2] = { text, text };
  const int64_t negative[] = { 4, -1 }, huge[] = { INT64_MAX, 1 }, large[] = { MOST };
  const flow_pieces none = { NULL, NULL, 0 };
  begin(ends);
  assert_int_equal(flow_channel_send(ends[0], text, sizeof text, &none), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_channel_send(ends[0], text, 1, &(flow_pieces){ at, negative, 2 }), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_channel_send(ends[0], text, 1, &(flow_pieces){ at, huge, 2 }), FLOW_INVALID_ARGUMENT);
  void *block = calloc(1, MOST);
  at[0] = block;
  assert_int_equal(flow_channel_send(ends[0], text, 1, &(flow_pieces){ at, large, 1 }), FLOW_OK);
  assert_false(flow_channel_is_sent(ends[0]));                 /* more than a socket holds, and nobody reads */
  assert_int_equal(flow_channel_send(ends[0], text, 1, &none), FLOW_INVALID_STATE);
  free(block);
  end(ends);
}

/* Frames of the other end that say this, after which the channel is of no use. */
static void expect_refusal(size_t size, uint64_t bytes, int shared, const char *words)
{
  flow_channel *ends[2];
  uint8_t contents[HEAD + 4] = { 0 };
  begin(ends);
  flow_put_little_endian(contents, bytes, 8);
  contents[8] = (uint8_t)shared;
  assert_int_equal(flow_link_send(ends[1]->link, contents, size), FLOW_OK);
  assert_int_equal(flow_channel_advance(ends[0], NULL), FLOW_CORRUPT_DATA);
  assert_non_null(strstr(flow_last_error(), words));
  assert_null(ends[0]->room);                                  /* nothing was allocated for it */
  end(ends);
}

static void test_what_is_refused(void **state)
{
  (void)state;
  expect_refusal(HEAD - 1, 0, 0, "a message of 8 bytes");
  expect_refusal(HEAD, MOST + 1, 0, "at most 8388608 are taken");
  expect_refusal(HEAD + 4, UINT64_MAX, 0, "at most 8388608 are taken");
  expect_refusal(HEAD, 1, 1, "at most 0 are taken");           /* in memory that nobody shares */
}

static void test_what_breaks_off(void **state)
{
  (void)state;
  flow_channel *ends[2];
  static char bytes[200000];
  const void *at[] = { bytes };
  const int64_t count[] = { sizeof bytes };
  begin(ends);
  assert_int_equal(flow_channel_send(ends[1], "t", 1, &(flow_pieces){ at, count, 1 }), FLOW_OK);
  assert_int_equal(shutdown(ends[1]->link->descriptor, SHUT_WR), 0);
  flow_status status = FLOW_OK;
  if (flow_channel_is_sent(ends[1])) ends[0]->most = 0;        /* a socket that holds all of it: then the message is too long */
  for (int i = 0; i < 100 && status == FLOW_OK; i++) status = flow_channel_advance(ends[0], NULL);
  assert_int_equal(status, ends[0]->most ? FLOW_IO_ERROR : FLOW_CORRUPT_DATA);
  assert_false(ends[0]->complete);
  end(ends);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_connection), cmocka_unit_test(test_shared_memory), cmocka_unit_test(test_what_is_not_sent),
    cmocka_unit_test(test_what_is_refused), cmocka_unit_test(test_what_breaks_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
