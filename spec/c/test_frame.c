/* Frames and messages: what is written is read, in pieces of any size; what was changed, repeated, left out or exchanged is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cluster/control/frame.h"

static uint32_t sum_of(uint64_t number, const uint8_t *bytes, size_t count)
{
  uint64_t sum = number * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < count; i++) sum = (sum ^ bytes[i]) * 0x100000001b3u;
  return (uint32_t)(sum >> 16);
}

static flow_status seal_bytes(void *state, uint64_t number, const uint8_t *contents, size_t count, uint8_t *to)
{
  uint32_t sum = sum_of(number, contents, count);
  (void)state;
  for (size_t i = 0; i < count; i++) to[i] = contents[i] ^ 0x5a;
  memcpy(to + count, &sum, 4);
  return FLOW_OK;
}

static flow_status open_bytes(void *state, uint64_t number, const uint8_t *sealed, size_t count, uint8_t *to)
{
  uint32_t sum;
  (void)state;
  memcpy(&sum, sealed + count - 4, 4);
  for (size_t i = 0; i < count - 4; i++) to[i] = sealed[i] ^ 0x5a;
  return sum == sum_of(number, to, count - 4) ? FLOW_OK : flow_fail(FLOW_CORRUPT_DATA, "the seal is broken");
}

static const flow_seal sealing = { 4, seal_bytes, open_bytes, NULL };

/* Feeds the bytes in pieces; returns how many frames came out before the status. */
static int feed(flow_frame_reader *reader, const uint8_t *bytes, size_t count, size_t piece, flow_status *status, uint8_t *last,
                size_t *size)
{
  int frames = 0;
  for (size_t at = 0; at < count;) {
    size_t used, left = count - at < piece ? count - at : piece;
    const uint8_t *contents;
    *status = flow_frame_reader_feed(reader, bytes + at, left, &used, &contents, size);
    if (*status != FLOW_OK) return frames;
    at += used;
    if (!contents) continue;
    frames++;
    memcpy(last, contents, *size);
  }
  return frames;
}

static void test_pieces(void **state)
{
  (void)state;
  static uint8_t bytes[8192], last[8192], contents[3000];
  const flow_seal *seals[] = { NULL, &sealing };
  for (size_t i = 0; i < sizeof contents; i++) contents[i] = (uint8_t)(i * 7);
  for (int sealed = 0; sealed < 2; sealed++) {
    size_t count = 0, size;
    static const size_t sizes[] = { 0, 1, 3000, 17 };
    for (int i = 0; i < 4; i++) {
      assert_int_equal(flow_frame_write(seals[sealed], (uint64_t)i, contents, sizes[i], bytes + count), FLOW_OK);
      count += flow_frame_size(seals[sealed], sizes[i]);
    }
    for (size_t piece = 1; piece < 5000; piece = piece * 3 + 1) {
      flow_frame_reader reader;
      flow_status status;
      flow_frame_reader_init(&reader, seals[sealed], FLOW_FRAME_MOST);
      assert_int_equal(feed(&reader, bytes, count, piece, &status, last, &size), 4);
      assert_int_equal(size, 17);
      assert_memory_equal(last, contents, 17);
      flow_frame_reader_clear(&reader);
    }
  }
}

/* Any one byte changed is noticed, at the latest by the seal. */
static void test_changes(void **state)
{
  (void)state;
  uint8_t bytes[256], last[256];
  size_t one = flow_frame_size(&sealing, 20), size;
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(flow_frame_write(&sealing, i, (const uint8_t *)"contents of a frame.", 20, bytes + i * one), FLOW_OK);
  }
  for (size_t at = 0; at < 2 * one; at++) {
    flow_frame_reader reader;
    flow_status status = FLOW_OK;
    flow_frame_reader_init(&reader, &sealing, FLOW_FRAME_MOST);
    bytes[at] ^= 0x10;
    int frames = feed(&reader, bytes, 2 * one, 1000, &status, last, &size);
    if (frames >= (at < one ? 1 : 2)) fail_msg("byte %d is not missed", (int)at);
    bytes[at] ^= 0x10;
    flow_frame_reader_clear(&reader);
  }
}

static void test_order(void **state)
{
  (void)state;
  uint8_t frames[3][64], last[64];
  size_t one = flow_frame_size(NULL, 5), size;
  flow_status status;
  static const int orders[][2] = { { 0, 0 }, { 0, 2 }, { 1, 0 } };      /* repeated, lost, exchanged */
  for (int i = 0; i < 3; i++) assert_int_equal(flow_frame_write(NULL, (uint64_t)i, (const uint8_t *)"five.", 5, frames[i]), FLOW_OK);
  for (int i = 0; i < 3; i++) {
    flow_frame_reader reader;
    flow_frame_reader_init(&reader, NULL, FLOW_FRAME_MOST);
    feed(&reader, frames[orders[i][0]], one, one, &status, last, &size);
    if (status == FLOW_OK) feed(&reader, frames[orders[i][1]], one, one, &status, last, &size);
    assert_int_equal(status, FLOW_CORRUPT_DATA);
    assert_non_null(strstr(flow_last_error(), "is next: frames were lost or repeated"));
    flow_frame_reader_clear(&reader);
  }
}

/* A length takes no memory before its bytes are there; one beyond the limit takes none at all. */
static void test_lengths(void **state)
{
  (void)state;
  uint8_t header[FLOW_FRAME_HEADER] = { 0 };
  const uint8_t *contents;
  size_t used, size;
  flow_frame_reader reader;
  double before = flow_live_bytes();
  flow_frame_reader_init(&reader, NULL, FLOW_FRAME_MOST);
  header[2] = 1;                            /* 65,536 bytes */
  assert_int_equal(flow_frame_reader_feed(&reader, header, sizeof header, &used, &contents, &size), FLOW_OK);
  assert_true(flow_live_bytes() - before < 2000);
  flow_frame_reader_clear(&reader);
  static const uint8_t wrong[][4] = { { 0, 0, 0, 1 }, { 0xff, 0xff, 0xff, 0xff }, { 7, 0, 0, 0 }, { 'G', 'E', 'T', ' ' } };
  for (int i = 0; i < 4; i++) {
    memcpy(header, wrong[i], 4);
    assert_int_equal(flow_frame_reader_feed(&reader, header, sizeof header, &used, &contents, &size), FLOW_CORRUPT_DATA);
    assert_non_null(strstr(flow_last_error(), "the peer is not flowlua"));
    flow_frame_reader_clear(&reader);
  }
  assert_true(flow_live_bytes() == before);
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------------ */

static void test_messages(void **state)
{
  (void)state;
  static uint8_t bytes[FLOW_MOST_MESSAGE + 1], again[FLOW_MOST_MESSAGE];
  for (int kind = 1; kind < FLOW_MESSAGE_KINDS; kind++) {
    const flow_control_message message = {
      .kind = kind,
      .request = 4000000000u,
      .task = -5,
      .generation = 1ull << 53,
      .incarnation = 1ull << 63,
      .step = -1.5,
      .seconds = 1e300,
      .name = "name",
      .extra = "",
      .text = "text \xc3\xa4",
      .value = (const uint8_t *)"\0v\0",
      .bytes = 3,
    };
    flow_control_message read;
    size_t count = flow_control_write(&message, bytes);
    assert_int_equal(count, flow_control_size(&message));
    assert_int_equal(flow_control_read(bytes, count, &read), FLOW_OK);
    assert_int_equal(flow_control_write(&read, again), count);
    assert_memory_equal(bytes, again, count);
    for (size_t cut = 0; cut < count; cut++) assert_int_equal(flow_control_read(bytes, cut, &read), FLOW_CORRUPT_DATA);
    assert_int_equal(flow_control_read(bytes, count + 1, &read), FLOW_CORRUPT_DATA);
  }
}

/* Texts are cut where they are written, and refused where they are too long, unfinished or have a zero inside. */
static void test_texts(void **state)
{
  (void)state;
  static uint8_t bytes[FLOW_MOST_MESSAGE];
  static char text[FLOW_MOST_TEXT + 100];
  flow_control_message read;
  memset(text, 't', sizeof text - 1);
  size_t count = flow_control_write(&(flow_control_message){ .kind = FLOW_MESSAGE_RETRY, .text = text }, bytes);
  assert_int_equal(flow_control_read(bytes, count, &read), FLOW_OK);
  assert_int_equal(strlen(read.text), FLOW_MOST_TEXT);
  bytes[10] = 0;
  assert_int_equal(flow_control_read(bytes, count, &read), FLOW_CORRUPT_DATA);
  bytes[10] = 't';
  bytes[count - 1] = 't';
  assert_int_equal(flow_control_read(bytes, count, &read), FLOW_CORRUPT_DATA);
  bytes[1] = 0xff;
  assert_int_equal(flow_control_read(bytes, count, &read), FLOW_CORRUPT_DATA);
  assert_int_equal(flow_control_read((const uint8_t *)"", 1, &read), FLOW_CORRUPT_DATA);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_pieces), cmocka_unit_test(test_changes), cmocka_unit_test(test_order), cmocka_unit_test(test_lengths),
    cmocka_unit_test(test_messages), cmocka_unit_test(test_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
