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

enum { MOST_PIECES = 5, REGION = 100000, MOST = 8 << 20, HEAD = 9, STREAM = (1 << 20) + 5 };

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

/* Places for as many bytes as these, cut in other places; each is filled with 0. */
typedef struct cuts { char *at[MOST_PIECES]; int64_t bytes[MOST_PIECES]; } cuts;

static void cut(cuts *out, int64_t sum)
{
  for (int i = 0; i < MOST_PIECES; i++) {
    out->bytes[i] = i == MOST_PIECES - 1 ? sum : draw(3) ? draw((uint32_t)sum + 1) : 0;
    out->at[i] = calloc(1, (size_t)out->bytes[i] + 1);
    sum -= out->bytes[i];
  }
}

/* All of it came to the places, and nothing beyond them. */
static void expect_cuts(const cuts *got, const uint8_t *whole)
{
  for (int i = 0; i < MOST_PIECES; i++) {
    assert_memory_equal(got->at[i], whole, (size_t)got->bytes[i]);
    assert_int_equal(got->at[i][got->bytes[i]], 0);
    whole += got->bytes[i];
    free(got->at[i]);
  }
}

/* One message of these sizes from one end to the other, at times to places where it is expected, at times where another size is. */
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
  cuts places;
  uint8_t *whole = malloc((size_t)sum + 1);
  for (int64_t i = 0, done = 0; i < count; done += bytes[i++]) memcpy(whole + done, contents[i], (size_t)bytes[i]);
  const int expected = (int)draw(3), fits = expected == 1 && sum > 0; /* 2: one more byte than there are */
  cut(&places, sum + (expected == 2));
  if (expected) flow_channel_expect(to, &(flow_places){ places.at, places.bytes, MOST_PIECES });
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
  if (fits) assert_null(to->bulk);
  else if (sum > 0) assert_memory_equal(to->bulk, whole, (size_t)sum);
  uint8_t *zeros = calloc(1, (size_t)sum + 2);
  expect_cuts(&places, fits ? whole : zeros);
  for (int i = 0; i < count; i++) free(contents[i]);
  flow_channel_next(to);
  free(zeros);
  free(whole);
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

/* Opens memory of both for bytes that go from ends[0] to ends[1]. Returns 0 where processes share none. */
static int share(flow_channel *ends[2], int64_t bytes)
{
  char where[160];
  int descriptor;
  if (flow_channel_make_region(ends[1], bytes, where, sizeof where, &descriptor) != FLOW_OK) return 0;
  assert_int_equal(flow_channel_open_region(ends[0], bytes, where), FLOW_OK);
  close(descriptor);
  ends[0]->streams = 1;
  return 1;
}

static void test_streams(void **state)
{
  (void)state;
  double before = flow_live_bytes();
  flow_channel *ends[2];
  begin(ends);
  if (!share(ends, STREAM)) skip();
  const int64_t sizes[][3] = { { STREAM, 0, 0 }, { 1, STREAM - 2, 1 }, { 1 << 18, 1, 0 }, { 1 << 18, 1 << 18, 1 << 18 }, { 300000, 0, 9 } };
  for (int turn = 0; turn < 30; turn++) expect_message(ends[0], ends[1], draw(9), sizes[turn % 5], 3);
  assert_ptr_equal(ends[0]->sending, NULL);
  exchange(ends, 60);
  end(ends);
  assert_true(flow_live_bytes() == before);
}

/* A frame that announces a streamed message of STREAM bytes, and how far the other end says it is. */
static void announce(flow_channel *from)
{
  uint8_t contents[HEAD] = { 0 };
  flow_put_little_endian(contents, STREAM, 8);
  contents[8] = 2;
  assert_int_equal(flow_link_send(from->link, contents, HEAD), FLOW_OK);
}

static void say(flow_channel *from, int64_t there) { *(int64_t *)(void *)(from->region + (STREAM + 7) / 8 * 8) = there; }

static void test_a_stream_in_pieces(void **state)
{
  (void)state;
  flow_channel *ends[2];
  char *place = calloc(1, STREAM);
  const int64_t bytes[] = { STREAM };
  begin(ends);
  if (!share(ends, STREAM)) skip();
  memset(ends[0]->region, 7, STREAM);
  flow_channel_expect(ends[1], &(flow_places){ &place, bytes, 1 });
  say(ends[0], INT64_MIN);                              /* of no use */
  announce(ends[0]);
  const int64_t said[] = { INT64_MIN, 0, 3, 2, 4000, STREAM - 1, INT64_MAX }, there[] = { 0, 0, 3, 3, 4000, STREAM - 1, STREAM };
  for (int i = 0; i < 7; i++) {
    say(ends[0], said[i]);
    assert_int_equal(flow_channel_advance(ends[1], NULL), FLOW_OK);
    assert_true(ends[1]->received == there[i]);
    assert_int_equal(flow_channel_is_streaming(ends[1]), i < 6);
    assert_int_equal(ends[1]->complete, i == 6);
    if (there[i] > 0) assert_int_equal(place[there[i] - 1], 7);
    if (there[i] < STREAM) assert_int_equal(place[there[i]], 0);
  }
  free(place);
  end(ends);
}

/* whole: the other end had streamed all of it before it closed. */
static void expect_closed(int whole)
{
  flow_channel *ends[2];
  begin(ends);
  if (!share(ends, STREAM)) skip();
  say(ends[0], 1000);
  announce(ends[0]);
  assert_int_equal(flow_channel_advance(ends[1], NULL), FLOW_OK);
  assert_true(ends[1]->received == 1000 && !ends[1]->complete);
  if (whole) say(ends[0], STREAM);
  assert_int_equal(shutdown(ends[0]->link->descriptor, SHUT_WR), 0);
  assert_int_equal(flow_channel_advance(ends[1], NULL), whole ? FLOW_OK : FLOW_IO_ERROR);
  assert_int_equal(ends[1]->complete, whole);
  end(ends);
}

static void test_a_stream_that_is_interrupted(void **state)
{
  (void)state;
  flow_channel *ends[2];
  begin(ends);
  if (!share(ends, STREAM)) skip();
  say(ends[0], 1000);
  announce(ends[0]);
  announce(ends[0]);
  assert_int_equal(flow_channel_advance(ends[1], NULL), FLOW_CORRUPT_DATA);
  end(ends);
}

static void test_a_stream_that_ends(void **state)
{
  (void)state;
  expect_closed(1);
  expect_closed(0);
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
  expect_refusal(HEAD, 1, 2, "at most 0 are taken");
  expect_refusal(HEAD, 1, 3, "whose bytes are in the place 3");
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
    cmocka_unit_test(test_connection), cmocka_unit_test(test_shared_memory), cmocka_unit_test(test_streams),
    cmocka_unit_test(test_a_stream_in_pieces), cmocka_unit_test(test_a_stream_that_ends),
    cmocka_unit_test(test_a_stream_that_is_interrupted), cmocka_unit_test(test_what_is_not_sent),
    cmocka_unit_test(test_what_is_refused), cmocka_unit_test(test_what_breaks_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
