/* test_logs.c: what the board keeps of event files is all given back, whichever allocation fails while a folder is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/memory.h"
#include "board/logs.h"
#include "tensorboard/events.h"
#include "temporary.h"

static char folder[TEMPORARY_PATH];

static int make_folder(void **state)
{
  (void)state;
  return mkdtemp(temporary(folder, "logs_XXXXXX")) ? 0 : -1;
}

static int remove_folder(void **state)
{
  (void)state;
  return rmdir(folder);
}

/* A file of two curves with three points each; the caller unlinks and frees its path. */
static char *make_file(void)
{
  flow_event_writer *writer;
  assert_int_equal(flow_event_writer_new(folder, "", &writer), FLOW_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(flow_event_writer_scalar(writer, "loss", i, 0.5), FLOW_OK);
    assert_int_equal(flow_event_writer_scalar(writer, "accuracy", i, 0.25), FLOW_OK);
  }
  char *path = strdup(flow_event_writer_path(writer));
  assert_int_equal(flow_event_writer_close(writer), FLOW_OK);
  flow_event_writer_release(writer);
  return path;
}

static void a_folder_is_given_back(void **state)
{
  (void)state;
  char *path = make_file();
  flow_logs logs;
  double before = flow_live_bytes();
  flow_status status = FLOW_OUT_OF_MEMORY;
  for (int after = 0; status != FLOW_OK; after++) {
    int more = 1;
    flow_fail_allocation(after);
    status = flow_logs_open(folder, &logs);
    if (status == FLOW_OK) status = flow_logs_read(&logs, 10, &more);
    flow_fail_allocation(-1);
    assert_true(status == FLOW_OK || status == FLOW_OUT_OF_MEMORY);
    if (status == FLOW_OK) {
      assert_int_equal(more, 0);
      assert_int_equal(logs.tag_count, 2);
      assert_int_equal(logs.series_count, 2);
      assert_int_equal(logs.series[0].count, 3);
    }
    flow_logs_close(&logs);
    assert_true(flow_live_bytes() == before);
  }
  unlink(path);
  free(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(a_folder_is_given_back) };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
