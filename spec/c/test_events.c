/* test_events.c: event files when the disk is full and when memory fails; histograms of odd values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/memory.h"
#include "tensorboard/events.h"
#include "io/record.h"
#include "temporary.h"

static char folder[TEMPORARY_PATH];

static int make_folder(void **state)
{
  (void)state;
  return mkdtemp(temporary(folder, "events_XXXXXX")) ? 0 : -1;
}

static int remove_folder(void **state)
{
  (void)state;
  return rmdir(folder);
}

/* Number of whole records; fails on a damaged one. */
static int count_records(const char *path)
{
  flow_record_reader reader;
  const unsigned char *bytes;
  uint64_t size;
  int count = 0;
  assert_int_equal(flow_record_open(path, FLOW_PLAIN, &reader), FLOW_OK);
  for (;; count++) {
    assert_int_equal(flow_record_next(&reader, &bytes, &size), FLOW_OK);
    if (!bytes) break;
  }
  flow_record_close(&reader);
  return count;
}

static void a_full_disk_leaves_whole_records(void **state)
{
  (void)state;
  flow_event_writer *writer;
  struct rlimit before, small;
  struct stat facts;
  assert_int_equal(flow_event_writer_new(folder, "", &writer), FLOW_OK);
  char *path = strdup(flow_event_writer_path(writer));
  for (int i = 0; i < 5; i++) assert_int_equal(flow_event_writer_scalar(writer, "loss", i, 0.5), FLOW_OK);
  assert_int_equal(flow_event_writer_flush(writer), FLOW_OK);
  assert_int_equal(count_records(path), 6);
  for (int i = 5; i < 10; i++) assert_int_equal(flow_event_writer_scalar(writer, "loss", i, 0.5), FLOW_OK);
  stat(path, &facts);
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = (rlim_t)facts.st_size + 30;      /* inside the next record */
  void (*handler)(int) = signal(SIGXFSZ, SIG_DFL);
  setrlimit(RLIMIT_FSIZE, &small);
  flow_status status = flow_event_writer_flush(writer);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  assert_int_equal(status, FLOW_IO_ERROR);
  assert_int_equal(count_records(path), 6);
  assert_int_equal(flow_event_writer_close(writer), FLOW_OK);      /* what could not be written is written now */
  assert_int_equal(count_records(path), 11);
  assert_int_equal(flow_event_writer_scalar(writer, "loss", 1, 0.5), FLOW_INVALID_STATE);
  flow_event_writer_release(writer);
  unlink(path);
  free(path);
}

static flow_status write_all(flow_tensor *values, flow_tensor *images)
{
  flow_event_writer *writer;
  FLOW_TRY(flow_event_writer_new(folder, "", &writer));
  char *path = strdup(flow_event_writer_path(writer));
  flow_status status;
  FLOW_TRY_GOTO(flow_event_writer_scalar(writer, "a", 0, 1), end);
  FLOW_TRY_GOTO(flow_event_writer_histogram(writer, "b", 0, values, 10), end);
  FLOW_TRY_GOTO(flow_event_writer_text(writer, "c", 0, "text", 4), end);
  FLOW_TRY_GOTO(flow_event_writer_images(writer, "d", 0, images, 3), end);
end:
  flow_event_writer_release(writer);
  flow_fail_allocation(-1);
  assert_true(count_records(path) == 5 || status != FLOW_OK);
  unlink(path);
  free(path);
  return status;
}

static void failing_allocations_are_survived(void **state)
{
  (void)state;
  int64_t shape[4] = { 2, 3, 4, 3 };
  flow_tensor *values, *images;
  int failures = 0;
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 1, shape, &values), FLOW_OK);
  assert_int_equal(flow_tensor_new(FLOW_UINT8, 4, shape, &images), FLOW_OK);
  for (int after = 0;; after++, failures++) {
    flow_fail_allocation(after);
    flow_status status = write_all(values, images);
    flow_fail_allocation(-1);
    if (status == FLOW_OK) break;
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
  }
  assert_true(failures > 8);
  flow_tensor_release(values);
  flow_tensor_release(images);
}

static void histograms_count_every_finite_value_once(void **state)
{
  (void)state;
  double rows[12], values[] = { NAN, 1, 2, INFINITY, 3, 4, 5, -INFINITY };
  flow_histogram(values, 8, 4, rows);
  const double expected[] = { 1, 2, 1, 2, 3, 1, 3, 4, 1, 4, 5, 2 };
  assert_memory_equal(rows, expected, sizeof rows);
  double near[] = { 1, nextafter(1, 2) };
  flow_histogram(near, 2, 4, rows);
  assert_true(rows[2] + rows[5] + rows[8] + rows[11] == 2);
  double far[] = { -1e308, 1e308 };      /* their distance is not a number */
  flow_histogram(far, 2, 4, rows);
  const double spread[] = { -1e308, -5e307, 1, -5e307, 0, 0, 0, 5e307, 0, 5e307, 1e308, 1 };
  for (int i = 0; i < 12; i++) assert_true(fabs(rows[i] - spread[i]) <= 1e293);
  flow_histogram(far, 2, 1, rows);
  assert_true(rows[0] == -1e308 && rows[1] == 1e308 && rows[2] == 2);
  flow_histogram(values, 1, 4, rows);
  assert_true(rows[0] == 0 && rows[2] == 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_full_disk_leaves_whole_records), cmocka_unit_test(failing_allocations_are_survived),
    cmocka_unit_test(histograms_count_every_finite_value_once),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
