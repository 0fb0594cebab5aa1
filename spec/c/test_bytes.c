/* test_bytes.c: numbers in bytes, and bytes that are read up to their end and no further. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/bytes.h"

static void numbers_stand_byte_by_byte(void **state)
{
  (void)state;
  const unsigned char bytes[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0xf8 };
  assert_int_equal(flow_little_endian(bytes, 2), 0x0201);
  assert_true(flow_little_endian(bytes, 8) == UINT64_C(0xf807060504030201));
  assert_int_equal(flow_big_endian(bytes, 4), 0x01020304);
  assert_true(flow_big_endian(bytes, 8) == UINT64_C(0x01020304050607f8));
  assert_int_equal(flow_little_endian(bytes, 0), 0);
  unsigned char made[9] = { [8] = 0xaa };
  assert_ptr_equal(flow_put_little_endian(made, UINT64_C(0xf807060504030201), 8), made + 8);
  assert_memory_equal(made, bytes, 8);
  assert_int_equal(made[8], 0xaa);
}

static void nothing_is_read_beyond_the_end(void **state)
{
  (void)state;
  const unsigned char content[] = { 1, 0, 2, 0, 0 };
  flow_bytes bytes = flow_bytes_of(content, sizeof content);
  uint64_t number = 7;
  assert_true(flow_bytes_number(&bytes, 2, &number));
  assert_int_equal(number, 1);
  assert_false(flow_bytes_number(&bytes, 4, &number));      /* three are left: nothing is passed over */
  assert_int_equal(number, 1);
  assert_int_equal(flow_bytes_left(&bytes), 3);
  assert_null(flow_bytes_take(&bytes, UINT64_MAX));
  assert_ptr_equal(flow_bytes_take(&bytes, 3), content + 2);
  assert_int_equal(flow_bytes_left(&bytes), 0);
  assert_non_null(flow_bytes_take(&bytes, 0));
  assert_null(flow_bytes_take(&bytes, 1));
  bytes = flow_bytes_of(NULL, 0);
  assert_int_equal(flow_bytes_left(&bytes), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_stand_byte_by_byte),
    cmocka_unit_test(nothing_is_read_beyond_the_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
