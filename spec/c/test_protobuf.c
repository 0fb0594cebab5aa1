/* test_protobuf.c: protobuf messages as they are in the documentation of the wire format and in a TensorBoard event that
 * TensorFlow wrote, nested, with lent bytes, and with memory that fails at each allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/memory.h"
#include "io/protobuf.h"
#include "temporary.h"

static void expect_bytes(flow_message *message, const char *expected, size_t count)
{
  unsigned char found[1024];
  assert_int_equal(flow_message_size(message), count);
  assert_int_equal(flow_message_copy(message, found), FLOW_OK);
  assert_memory_equal(found, expected, count);
}

/* The examples of "Encoding" in protobuf's documentation. */
static void encodes_the_documented_examples(void **state)
{
  (void)state;
  flow_message message = { 0 };
  flow_message_integer(&message, 1, 150);
  flow_message_text(&message, 2, "testing");
  expect_bytes(&message, "\x08\x96\x01\x12\x07testing", 12);
  flow_message_release(&message);
  flow_message_open(&message, 3);
  flow_message_integer(&message, 1, 150);
  flow_message_close(&message);
  flow_message_integer(&message, 1, -2);
  expect_bytes(&message, "\x1a\x03\x08\x96\x01\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 16);
  flow_message_release(&message);
  expect_bytes(&message, "", 0);
}

/* Wall time 1.5, step 3, scalar epoch_loss 0.25, as TensorFlow writes it; the tensor's content is lent. */
static void write_event(flow_message *event, const float *value)
{
  flow_message_double(event, 1, 1.5);
  flow_message_integer(event, 2, 3);
  flow_message_open(event, 5);
  flow_message_open(event, 1);
  flow_message_text(event, 1, "epoch_loss");
  flow_message_open(event, 8);
  flow_message_integer(event, 1, 1);
  flow_message_bytes(event, 2, NULL, 0);
  flow_message_lend(event, 4, value, sizeof *value);
  flow_message_close(event);
  flow_message_open(event, 9);
  flow_message_open(event, 1);
  flow_message_text(event, 1, "scalars");
  flow_message_close(event);
  flow_message_integer(event, 4, 1);
  flow_message_close(event);
  flow_message_close(event);
  flow_message_close(event);
}

static const char event_bytes[] = "\x09\x00\x00\x00\x00\x00\x00\xf8\x3f\x10\x03\x2a\x29\x0a\x27\x0a\x0a" "epoch_loss"
  "\x42\x0a\x08\x01\x12\x00"
  "\x22\x04\x00\x00\x80\x3e\x4a\x0d\x0a\x09\x0a\x07scalars\x20\x01";

static void encodes_an_event_of_tensorflow(void **state)
{
  (void)state;
  float value = 0.25f;
  flow_message event = { 0 };
  write_event(&event, &value);
  expect_bytes(&event, event_bytes, sizeof event_bytes - 1);
  flow_message_release(&event);
}

/* A file gets the same bytes as a block; lent bytes of messages longer than 127 bytes keep their places. */
static void writes_lent_bytes_to_a_file(void **state)
{
  (void)state;
  char path[TEMPORARY_PATH];
  int descriptor = mkstemp(temporary(path, "protobuf_XXXXXX"));
  assert_true(descriptor >= 0);
  close(descriptor);
  unsigned char large[300], expected[1024], found[1024];
  for (int i = 0; i < 300; i++) large[i] = (unsigned char)i;
  flow_message message = { 0 };
  flow_message_open(&message, 7);
  flow_message_lend(&message, 1, large, 200);
  flow_message_open(&message, 5);
  flow_message_text(&message, 1, "name");
  flow_message_lend(&message, 9, large, 300);
  flow_message_float(&message, 2, 1.0f);
  flow_message_close(&message);
  flow_message_close(&message);
  flow_sink sink;
  assert_int_equal(flow_sink_open(path, &sink), FLOW_OK);
  assert_int_equal(flow_message_write(&message, &sink), FLOW_OK);
  assert_int_equal(flow_sink_commit(&sink), FLOW_OK);
  assert_int_equal(flow_message_copy(&message, expected), FLOW_OK);
  uint64_t size = flow_message_size(&message);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(found, 1, sizeof found, file), size);
  fclose(file);
  unlink(path);
  assert_memory_equal(found, expected, (size_t)size);

  flow_bytes wire = flow_bytes_of(found, size);
  flow_wire_field outer, field;
  assert_true(flow_wire_next(&wire, &outer));
  assert_int_equal(flow_bytes_left(&wire), 0);
  assert_int_equal(outer.number, 7);
  assert_true(flow_wire_next(&outer.content, &field));
  assert_int_equal(field.content.end - field.content.next, 200);
  assert_memory_equal(field.content.next, large, 200);
  assert_true(flow_wire_next(&outer.content, &field));
  assert_int_equal(flow_bytes_left(&outer.content), 0);
  wire = field.content;
  assert_true(flow_wire_next(&wire, &field));
  assert_memory_equal(field.content.next, "name", 4);
  assert_true(flow_wire_next(&wire, &field));
  assert_int_equal(field.number, 9);
  assert_memory_equal(field.content.next, large, 300);
  assert_true(flow_wire_next(&wire, &field));
  assert_int_equal(field.type, FLOW_WIRE_FIXED32);
  assert_int_equal(field.value, 0x3f800000);
  flow_message_release(&message);
}

static void reports_what_went_wrong_at_the_end(void **state)
{
  (void)state;
  unsigned char bytes[256];
  flow_message message = { 0 };
  flow_message_open(&message, 1);
  assert_int_equal(flow_message_copy(&message, bytes), FLOW_INTERNAL);      /* not closed */
  flow_message_close(&message);
  flow_message_close(&message);
  assert_int_equal(flow_message_copy(&message, bytes), FLOW_INTERNAL);
  flow_message_release(&message);
  for (int i = 0; i <= FLOW_MESSAGE_DEPTH; i++) flow_message_open(&message, 1);
  assert_int_equal(flow_message_copy(&message, bytes), FLOW_INTERNAL);
  flow_message_release(&message);
  float value = 0.25f;
  int failures = 0;
  for (int after = 0;; after++) {
    flow_fail_allocation(after);
    write_event(&message, &value);
    flow_status status = flow_message_copy(&message, bytes);
    flow_fail_allocation(-1);
    flow_message_release(&message);
    if (status == FLOW_OK) break;
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    failures++;
  }
  assert_true(failures >= 2);
}

static void refuses_what_is_cut_off(void **state)
{
  (void)state;
  flow_wire_field field;
  for (size_t count = 1; count < sizeof event_bytes - 1; count++) {
    flow_bytes wire = flow_bytes_of(event_bytes, count);
    int fields = 0;
    while (flow_bytes_left(&wire) > 0 && flow_wire_next(&wire, &field)) fields++;
    assert_true(fields < 3);
  }
  flow_bytes group = flow_bytes_of("\x0b\x10\x01\x0c\x10\x02", 6);      /* a group is passed over */
  assert_true(flow_wire_next(&group, &field));
  assert_true(flow_wire_next(&group, &field));
  assert_int_equal(field.value, 2);
  flow_bytes ends = flow_bytes_of("\x0c", 1);
  assert_false(flow_wire_next(&ends, &field));
  flow_bytes zero = flow_bytes_of("\x00\x01", 2);
  assert_false(flow_wire_next(&zero, &field));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(encodes_the_documented_examples), cmocka_unit_test(encodes_an_event_of_tensorflow),
    cmocka_unit_test(writes_lent_bytes_to_a_file), cmocka_unit_test(reports_what_went_wrong_at_the_end),
    cmocka_unit_test(refuses_what_is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
