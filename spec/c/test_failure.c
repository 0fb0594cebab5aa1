/* test_failure.c: the first failure among threads: one wins, whole, with its fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/failure.h"

static void fields_are_of_the_last_failure(void **state)
{
  (void)state;
  flow_fail(FLOW_INVALID_ARGUMENT, "label 12 of row 3");
  assert_true(isnan(flow_last_error_field(FLOW_ERROR_ROW)));
  assert_int_equal(flow_fail_field(FLOW_INVALID_ARGUMENT, FLOW_ERROR_ROW, 3), FLOW_INVALID_ARGUMENT);
  assert_true(flow_last_error_field(FLOW_ERROR_ROW) == 3);
  assert_true(isnan(flow_last_error_field(FLOW_ERROR_LABEL)));
  flow_fail_prefix(FLOW_INVALID_ARGUMENT, "loss: ");
  assert_true(flow_last_error_field(FLOW_ERROR_ROW) == 3);
  flow_fail(FLOW_INTERNAL, "another");
  assert_true(isnan(flow_last_error_field(FLOW_ERROR_ROW)));
  assert_true(isnan(flow_last_error_field(-1)));
  assert_true(isnan(flow_last_error_field(FLOW_ERROR_FIELD_COUNT)));
}

static void nothing_is_raised_where_nothing_failed(void **state)
{
  (void)state;
  flow_failure failure = { 0 };
  flow_fail(FLOW_INTERNAL, "of before");
  flow_failure_take(&failure, FLOW_OK);
  assert_false(flow_failure_is_set(&failure));
  assert_int_equal(flow_failure_raise(&failure), FLOW_OK);
  assert_string_equal(flow_last_error(), "of before");
}

static void the_first_stays_until_it_is_cleared(void **state)
{
  (void)state;
  flow_failure failure = { 0 };
  flow_failure_take(&failure, flow_fail_field(flow_fail(FLOW_IO_ERROR, "first"), FLOW_ERROR_TASK, 2));
  flow_failure_set(&failure, FLOW_INTERNAL, "second", NULL);
  flow_fail(FLOW_INTERNAL, "meanwhile");
  for (int i = 0; i < 2; i++) {
    assert_int_equal(flow_failure_raise(&failure), FLOW_IO_ERROR);
    assert_string_equal(flow_last_error(), "first");
    assert_true(flow_last_error_field(FLOW_ERROR_TASK) == 2);
  }
  flow_failure_clear(&failure);
  flow_failure_set(&failure, FLOW_TIMED_OUT, "third", NULL);
  assert_int_equal(flow_failure_raise(&failure), FLOW_TIMED_OUT);
  assert_string_equal(flow_last_error(), "third");
  assert_true(isnan(flow_last_error_field(FLOW_ERROR_TASK)));
}

static void long_texts_are_cut(void **state)
{
  (void)state;
  char text[3000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  flow_failure failure = { 0 };
  flow_failure_set(&failure, FLOW_INTERNAL, text, NULL);
  flow_failure_raise(&failure);
  assert_int_equal(strlen(flow_last_error()), FLOW_MESSAGE_SIZE - 1);
}

enum { THREADS = 8, ROUNDS = 2000 };

typedef struct racer { flow_failure *failures; pthread_barrier_t *start; int number, mixed; } racer;

/* Whatever wins: the number in the text is the row, and it can be read as soon as any of the threads is done. */
static void *race(void *argument)
{
  racer *self = argument;
  for (int i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait(self->start);
    flow_fail(FLOW_ABORTED, "%d %0*d", self->number, 1 + self->number * 50, 0);
    flow_fail_field(FLOW_ABORTED, FLOW_ERROR_ROW, self->number);
    flow_failure_take(&self->failures[i], FLOW_ABORTED);
    int number = -1;
    if (!flow_failure_is_set(&self->failures[i]) || sscanf(self->failures[i].message, "%d", &number) != 1) self->mixed++;
    if (self->failures[i].fields.values[FLOW_ERROR_ROW] != number) self->mixed++;
    if (strlen(self->failures[i].message) != (size_t)(3 + number * 50)) self->mixed++;
  }
  return NULL;
}

static void threads_that_fail_together_leave_one_whole_failure(void **state)
{
  (void)state;
  static flow_failure failures[ROUNDS];
  pthread_barrier_t start;
  pthread_t threads[THREADS];
  racer racers[THREADS];
  pthread_barrier_init(&start, NULL, THREADS);
  for (int t = 0; t < THREADS; t++) {
    racers[t] = (racer){ failures, &start, t, 0 };
    assert_int_equal(pthread_create(&threads[t], NULL, race, &racers[t]), 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    assert_int_equal(racers[t].mixed, 0);
  }
  pthread_barrier_destroy(&start);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(fields_are_of_the_last_failure),
    cmocka_unit_test(nothing_is_raised_where_nothing_failed),
    cmocka_unit_test(the_first_stays_until_it_is_cleared),
    cmocka_unit_test(long_texts_are_cut),
    cmocka_unit_test(threads_that_fail_together_leave_one_whole_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
