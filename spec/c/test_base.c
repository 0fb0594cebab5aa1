/* test_base.c: status and messages, memory, log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/memory.h"

/* ---- status ------------------------------------------------------------------------------------------------------------------ */

static void messages_are_kept_and_prefixed(void **state)
{
  (void)state;
  assert_int_equal(flow_fail(FLOW_NOT_FOUND, "no %s in %d", "file", 7), FLOW_NOT_FOUND);
  assert_string_equal(flow_last_error(), "no file in 7");
  assert_int_equal(flow_fail_prefix(FLOW_NOT_FOUND, "layer %s: ", "dense"), FLOW_NOT_FOUND);
  assert_string_equal(flow_last_error(), "layer dense: no file in 7");
  flow_fail(FLOW_INTERNAL, "again: %s", flow_last_error());
  assert_string_equal(flow_last_error(), "again: layer dense: no file in 7");
}

static void long_and_hostile_messages_are_tamed(void **state)
{
  (void)state;
  char text[3000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  flow_fail(FLOW_INTERNAL, "%s", text);
  assert_int_equal(strlen(flow_last_error()), 1023);
  flow_fail_prefix(FLOW_INTERNAL, "front: ");
  assert_int_equal(strlen(flow_last_error()), 1023);
  assert_memory_equal(flow_last_error(), "front: xxx", 10);
  flow_fail(FLOW_CORRUPT_DATA, "\033[2J\nnext");
  assert_string_equal(flow_last_error(), "?[2J\nnext");
}

static void *fail_elsewhere(void *unused)
{
  flow_fail(FLOW_IO_ERROR, "elsewhere");
  return unused;
}

static void messages_belong_to_their_thread(void **state)
{
  (void)state;
  pthread_t thread;
  flow_fail(FLOW_INTERNAL, "here");
  assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
  pthread_join(thread, NULL);
  assert_string_equal(flow_last_error(), "here");
}

static void every_status_has_a_name(void **state)
{
  (void)state;
  for (int status = 0; status <= FLOW_INTERNAL; status++) assert_string_not_equal(flow_status_name(status), "unknown status");
  assert_string_equal(flow_status_name(FLOW_OUT_OF_MEMORY), "out of memory");
  assert_string_equal(flow_status_name(-1), "unknown status");
  assert_string_equal(flow_status_name(FLOW_INTERNAL + 1), "unknown status");
}

static void shapes_are_written_as_users_write_them(void **state)
{
  (void)state;
  int64_t shape[] = { -1, 28, -6 };
  assert_string_equal(flow_shape_text(0, shape), "{}");
  assert_string_equal(flow_shape_text(2, shape), "{None, 28}");
  assert_string_equal(flow_shape_text(3, shape), "{None, 28, 6*None}");
}

static void texts_count_beyond_their_buffer(void **state)
{
  (void)state;
  char buffer[8] = "zzzzzzz";
  flow_text text = flow_text_into(buffer, 6);
  flow_text_add(&text, "%s", "abcd");
  flow_text_add(&text, "%s", "efgh");
  assert_int_equal(text.length, 8);
  assert_string_equal(buffer, "abcde");
  assert_int_equal(buffer[6], 'z');
  text = flow_text_into(NULL, 0);
  flow_text_add(&text, "%d", 12345);
  assert_int_equal(text.length, 5);
}

/* ---- memory -------------------------------------------------------------------------------------------------------------------- */

static void blocks_are_aligned_and_counted(void **state)
{
  (void)state;
  static const size_t sizes[] = { 0, 1, 63, 64, 1000, 1 << 20, 5 << 20 };
  double before = flow_live_bytes(), count = flow_allocation_count();
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *block;
    assert_int_equal(flow_alloc(sizes[i], &block), FLOW_OK);
    assert_int_equal((uintptr_t)block % 64, 0);
    memset(block, 0xff, sizes[i]);
    assert_true(flow_live_bytes() == before + (double)sizes[i]);
    flow_free(block);
    assert_true(flow_live_bytes() == before);
  }
  assert_true(flow_allocation_count() == count + sizeof sizes / sizeof *sizes);
  flow_free(NULL);
}

static void zeroed_blocks_are_zero(void **state)
{
  (void)state;
  for (int round = 0; round < 3; round++) {       /* later rounds get memory that was used */
    unsigned char *block;
    assert_int_equal(flow_alloc_zero(5000, (void **)&block), FLOW_OK);
    for (int i = 0; i < 5000; i++) assert_int_equal(block[i], 0);
    memset(block, 1, 5000);
    flow_free(block);
  }
}

static void allocation_fails_when_told_to(void **state)
{
  (void)state;
  void *first, *second;
  double before = flow_live_bytes();
  flow_fail_allocation(1);
  assert_int_equal(flow_alloc(10, &first), FLOW_OK);
  assert_int_equal(flow_alloc(10, &second), FLOW_OUT_OF_MEMORY);
  assert_null(second);
  assert_non_null(strstr(flow_last_error(), "10 bytes"));
  assert_int_equal(flow_alloc(10, &second), FLOW_OK);       /* once only */
  flow_free(first);
  flow_free(second);
  flow_fail_allocation(0);
  flow_fail_allocation(-1);
  assert_int_equal(flow_alloc(10, &first), FLOW_OK);
  flow_free(first);
  assert_true(flow_live_bytes() == before);
}

static void impossible_sizes_are_refused(void **state)
{
  (void)state;
  void *block;
  size_t product;
  assert_int_equal(flow_alloc(SIZE_MAX, &block), FLOW_OUT_OF_MEMORY);
  assert_int_equal(flow_alloc(SIZE_MAX - 64, &block), FLOW_OUT_OF_MEMORY);
  assert_int_equal(flow_multiply((size_t)1 << 40, (size_t)1 << 40, &product), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_multiply(1000, 1000, &product), FLOW_OK);
  assert_int_equal(product, 1000000);
}

static void arrays_grow_and_keep_their_contents(void **state)
{
  (void)state;
  int64_t *numbers = NULL;
  int capacity = 0;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(flow_grow(&numbers, sizeof *numbers, i + 1, &capacity), FLOW_OK);
    assert_true(capacity > i);
    numbers[i] = i;
  }
  for (int i = 0; i < 1000; i++) assert_int_equal(numbers[i], i);
  flow_fail_allocation(0);
  int before = capacity;
  assert_int_equal(flow_grow(&numbers, sizeof *numbers, capacity + 1, &capacity), FLOW_OUT_OF_MEMORY);
  assert_int_equal(capacity, before);
  assert_int_equal(numbers[999], 999);
  flow_free(numbers);
}

static void texts_are_duplicated(void **state)
{
  (void)state;
  char *copy = flow_duplicate_text("kernel");
  assert_string_equal(copy, "kernel");
  flow_free(copy);
  flow_fail_allocation(0);
  assert_null(flow_duplicate_text("kernel"));
}

/* ---- log ----------------------------------------------------------------------------------------------------------------------- */

static void messages_are_kept_while_nothing_is_written(void **state)
{
  (void)state;
  char text[32];
  int level = -1;
  assert_false(flow_log_stdio());
  assert_int_equal(flow_log_take(&level, text, sizeof text), -1);
  flow_log(FLOW_LOG_WARNING, "first");
  flow_log(FLOW_LOG_INFO, "second");
  assert_int_equal(flow_log_take(&level, text, 3), 5);
  assert_int_equal(level, FLOW_LOG_WARNING);
  assert_string_equal(text, "fi");
  assert_int_equal(flow_log_take(NULL, text, sizeof text), 6);
  assert_string_equal(text, "second");
  for (int i = 0; i < 100; i++) {
    char line[16];
    snprintf(line, sizeof line, "line %d", i);
    flow_log(FLOW_LOG_INFO, line);
  }
  flow_log_take(NULL, text, sizeof text);
  assert_string_equal(text, "line 36");                     /* of 100 the last 64 */
  int count = 1;
  while (flow_log_take(NULL, text, sizeof text) >= 0) count++;
  assert_int_equal(count, 64);
}

static void messages_go_to_standard_streams_when_enabled(void **state)
{
  (void)state;
  int channels[2];
  assert_int_equal(pipe(channels), 0);
  fflush(stderr);
  int saved = dup(STDERR_FILENO);
  dup2(channels[1], STDERR_FILENO);
  flow_log_to_stdio(1);
  int enabled = flow_log_stdio();
  flow_log(FLOW_LOG_WARNING, "careful");
  flow_log_to_stdio(0);
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(channels[1]);
  char text[32] = "";
  assert_int_equal(read(channels[0], text, sizeof text - 1), 8);
  close(channels[0]);
  assert_true(enabled);
  assert_string_equal(text, "careful\n");
  assert_int_equal(flow_log_take(NULL, text, sizeof text), -1);
}

/* ---- blocks kept for their size --------------------------------------------------------------------------------------------- */

static void large_blocks_are_used_again(void **state)
{
  (void)state;
  enum { SIZE = 1 << 20 };
  void *first, *other, *second;
  double before = flow_live_bytes();
  flow_memory_trim();
  assert_int_equal(flow_alloc(SIZE, &first), FLOW_OK);
  flow_free(first);
  assert_true(flow_live_bytes() == before);                  /* a kept block counts as free */
  assert_int_equal(flow_alloc(SIZE + 64, &other), FLOW_OK);  /* not for more than it has room for */
  assert_int_equal(flow_alloc(SIZE, &second), FLOW_OK);
  assert_ptr_not_equal(other, first);
#if !defined __SANITIZE_ADDRESS__
  assert_ptr_equal(second, first);
#endif
  flow_free(other);
  flow_free(second);
  for (int i = 0; i < 200; i++) {                            /* no more is kept than there is room for */
    assert_int_equal(flow_alloc((size_t)SIZE + 64 * (size_t)i, &first), FLOW_OK);
    memset(first, i, SIZE);
    flow_free(first);
  }
  flow_memory_trim();
  assert_true(flow_live_bytes() == before);
}

/* A block serves sizes that fill most of it, small ones and large ones. */
static void blocks_serve_sizes_near_their_own(void **state)
{
  (void)state;
#if defined __SANITIZE_ADDRESS__
  skip();
#endif
  const size_t sizes[][2] = { { 200, 250 }, { 2000, 1990 }, { 40000, 40900 }, { 400000, 393300 }, { 40 << 20, (40 << 20) - 4096 } };
  void *first, *second;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    double before = flow_live_bytes();
    flow_memory_trim();
    assert_int_equal(flow_alloc(sizes[i][0], &first), FLOW_OK);
    flow_free(first);
    assert_int_equal(flow_alloc(sizes[i][1], &second), FLOW_OK);
    assert_ptr_equal(second, first);
    assert_true(flow_live_bytes() == before + (double)sizes[i][1]);
    flow_free(second);
    assert_int_equal(flow_alloc(sizes[i][0] / 2, &second), FLOW_OK);
    assert_ptr_not_equal(second, first);
    flow_free(second);
    assert_true(flow_live_bytes() == before);
  }
  flow_memory_trim();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(messages_are_kept_and_prefixed),
    cmocka_unit_test(long_and_hostile_messages_are_tamed),
    cmocka_unit_test(messages_belong_to_their_thread),
    cmocka_unit_test(every_status_has_a_name),
    cmocka_unit_test(shapes_are_written_as_users_write_them),
    cmocka_unit_test(texts_count_beyond_their_buffer),
    cmocka_unit_test(blocks_are_aligned_and_counted),
    cmocka_unit_test(zeroed_blocks_are_zero),
    cmocka_unit_test(large_blocks_are_used_again),
    cmocka_unit_test(blocks_serve_sizes_near_their_own),
    cmocka_unit_test(allocation_fails_when_told_to),
    cmocka_unit_test(impossible_sizes_are_refused),
    cmocka_unit_test(arrays_grow_and_keep_their_contents),
    cmocka_unit_test(texts_are_duplicated),
    cmocka_unit_test(messages_are_kept_while_nothing_is_written),
    cmocka_unit_test(messages_go_to_standard_streams_when_enabled),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
