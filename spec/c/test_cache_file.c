/* test_cache_file.c: the cache in a file: what it keeps, what it refuses, what it leaves behind; and the lock beside it. */
#include "datasets.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "data/element_record.h"
#include "io/file_lock.h"
#include "io/record.h"
#include "temporary.h"

static char folder[TEMPORARY_PATH], path[TEMPORARY_PATH + 32], lock_path[TEMPORARY_PATH + 64];

static int make_folder(void **state)
{
  remember_live_bytes(state);
  if (!mkdtemp(temporary(folder, "XXXXXX"))) return 1;
  snprintf(path, sizeof path, "%s/cache", folder);
  snprintf(lock_path, sizeof lock_path, "%s.lock", path);
  return 0;
}

/* Fails if anything but the cache and its lock was left behind. */
static int remove_folder(void **state)
{
  unlink(path);
  unlink(lock_path);
  return rmdir(folder) | expect_nothing_leaked(state);
}

static flow_dataset *cached(flow_dataset *input)
{
  flow_dataset *out = NULL;
  flow_status status = flow_dataset_cache_file(input, path, &out);
  return made(status, input, out);
}

static int exists(const char *name) { return access(name, F_OK) == 0; }

/* The status of the first failure of a pass, FLOW_OK if there is none. */
static flow_status run(flow_dataset *dataset)
{
  flow_iterator *iterator;
  flow_element element = { 0 };
  flow_status status = flow_iterator_new(NULL, dataset, &iterator);
  do {
    if (status == FLOW_OK) status = flow_iterator_next(iterator, &element);
  } while (status == FLOW_OK && element.count > 0);
  flow_element_clear(&element);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  return status;
}

static void appears_when_complete(void **state)
{
  (void)state;
  flow_iterator *iterator;
  flow_dataset *dataset = cached(range(4));
  pass found = { 0 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  pass_run(iterator, 3, &found);
  assert_false(exists(path));
  assert_true(exists(lock_path));
  flow_iterator_close(iterator);
  assert_false(exists(lock_path));
  assert_false(exists(path));
  EXPECT_PASS(dataset, 0, 1, 2, 3);
  assert_true(exists(path));
  assert_false(exists(lock_path));
  EXPECT_PASS(cached(leave_out(range(9), 5)), 0, 1, 2, 3);      /* whatever pipeline wrote it */
}

static void keeps_shapes_and_types(void **state)
{
  (void)state;
  flow_dataset *dataset = cached(batch(zip(range(5), batch(range(10), 2, 0)), 2, 0));
  pass *first = pass_of(dataset, 100), *second = pass_of(dataset, 100);
  assert_true(first->count > 0);
  expect_pass(second, first->count, first->numbers);
  flow_dataset_release(dataset);
  free(first);
  free(second);
}

static void can_be_empty(void **state)
{
  (void)state;
  OK(run(cached(range(0))));
  assert_true(exists(path));
  OK(run(cached(range(3))));
}

static void positions_are_exact(void **state)
{
  (void)state;
  check_positions(repeat(shuffle(cached(shuffle(range(6), 6, 1)), 3, 2), 3), 12, 6);
  unlink(path);
  check_positions(leave_out(cached(range(7)), 2), 5, 1);
}

/* What random stages drew is in the file: another process sees the same order in position and elements. */
static void order_survives(void **state)
{
  (void)state;
  flow_dataset *dataset = cached(shuffle(range(20), 20, 1));
  pass *first = pass_of(dataset, 100);
  flow_dataset_release(dataset);
  flow_iterator *iterator;
  char position[256], expected[256];
  dataset = cached(shuffle(range(20), 20, 7));
  OK(flow_iterator_new(NULL, dataset, &iterator));
  flow_iterator_save(iterator, position, sizeof position);
  flow_iterator_close(iterator);
  pass *second = pass_of(dataset, 100);
  expect_pass(second, first->count, first->numbers);
  flow_dataset_release(dataset);
  dataset = shuffle(range(20), 20, 1);
  OK(flow_iterator_new(NULL, dataset, &iterator));
  flow_iterator_save(iterator, expected, sizeof expected);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  assert_string_equal(strrchr(position, ' '), strrchr(expected, ' '));
  free(first);
  free(second);
}

static void refuses_other_signatures(void **state)
{
  (void)state;
  OK(run(cached(range(4))));
  FAILS(run(cached(batch(range(4), 2, 0))), FLOW_INVALID_ARGUMENT, "component 1 is int64 {}, here it is int64 {None}");
  FAILS(run(cached(zip(range(4), range(4)))), FLOW_INVALID_ARGUMENT, "have 1 components, here they have 2");
}

/* ---- damage --------------------------------------------------------------------------------------------------------------- */

static long file_size(void)
{
  struct stat facts;
  assert_int_equal(stat(path, &facts), 0);
  return (long)facts.st_size;
}

static void names_damaged_files(void **state)
{
  (void)state;
  FILE *file = fopen(path, "wb");
  fputs("not a cache at all", file);
  fclose(file);
  FAILS(run(cached(range(4))), FLOW_CORRUPT_DATA, path);
  flow_record_sink sink;
  OK(flow_record_create(path, FLOW_PLAIN, &sink));
  OK(flow_record_append(&sink, "text", 4));
  OK(flow_record_commit(&sink));
  FAILS(run(cached(range(4))), FLOW_CORRUPT_DATA, "is not a file of cached elements");
  unlink(path);
  OK(run(cached(range(4))));
  long size = file_size();
  assert_int_equal(truncate(path, size - (1 + 8 + 16)), 0);             /* without its end record */
  FAILS(run(cached(range(4))), FLOW_CORRUPT_DATA, "element 5 is missing: the file was cut off");
  unlink(path);
  OK(run(cached(range(4))));
  file = fopen(path, "r+b");
  fseek(file, size - 60, SEEK_SET);
  fputc('x', file);
  fclose(file);
  FAILS(run(cached(range(4))), FLOW_CORRUPT_DATA, path);
}

/* Stages take for granted that a text is bytes along its last axis. */
static void texts_are_bytes(void **state)
{
  (void)state;
  static const flow_component wrong[] = {
    { .dtype = FLOW_FLOAT32, .rank = 1, .shape = { -1 }, .text = 1 }, { .dtype = FLOW_UINT8, .rank = 0, .text = 1 },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    flow_record_sink sink;
    flow_record_bytes record = { 0 };
    flow_element_start start = { .spec = { .count = 1, .components = { wrong[i] } } };
    flow_dataset *dataset;
    flow_element_spec spec;
    OK(flow_element_start_write(&start, &record));
    OK(flow_record_create(path, FLOW_PLAIN, &sink));
    OK(flow_record_append(&sink, record.bytes, record.count));
    OK(flow_record_commit(&sink));
    flow_free(record.bytes);
    FAILS(flow_dataset_load(path, &dataset), FLOW_CORRUPT_DATA, "is not a file of cached elements");
    FAILS(flow_spec_of("generator", &wrong[i], 1, &spec), FLOW_INVALID_ARGUMENT, "generator: component 1 is a text of dtype");
  }
}

/* Every byte of every record changed, with checksums that fit: an error or an element, never more. */
static void survives_hostile_records(void **state)
{
  (void)state;
  enum { MOST = 512 };
  OK(run(cached(zip(range(2), batch(range(4), 2, 0)))));
  unsigned char records[16][MOST];
  uint64_t sizes[16];
  int count = 0, failures = 0;
  const unsigned char *bytes;
  flow_record_reader reader;
  OK(flow_record_open(path, FLOW_PLAIN, &reader));
  for (;;) {
    OK(flow_record_next(&reader, &bytes, &sizes[count]));
    if (!bytes) break;
    assert_true(sizes[count] <= MOST && count < 15);
    memcpy(records[count], bytes, sizes[count]);
    count++;
  }
  flow_record_close(&reader);
  assert_int_equal(count, 4);
  for (int at = 0; at < count; at++) {
    for (uint64_t i = 0; i < sizes[at]; i++) {
      flow_record_sink sink;
      OK(flow_record_create(path, FLOW_PLAIN, &sink));
      records[at][i] ^= 0x9f;
      for (int k = 0; k < count; k++) OK(flow_record_append(&sink, records[k], sizes[k]));
      records[at][i] ^= 0x9f;
      OK(flow_record_commit(&sink));
      failures += run(cached(zip(range(2), batch(range(4), 2, 0)))) != FLOW_OK;
    }
  }
  assert_true(failures > 60);
}

static void disk_full_leaves_nothing(void **state)
{
  (void)state;
  struct rlimit before, small = { 0 };
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = (struct rlimit){ 20000, before.rlim_max };
  signal(SIGXFSZ, SIG_DFL);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  flow_status status = run(cached(batch(range(100000), 1000, 0)));
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(status, FLOW_IO_ERROR);
  assert_non_null(strstr(flow_last_error(), path));
  assert_false(exists(path));
  assert_false(exists(lock_path));
}

/* A line that a full disk takes a part of: the lock is not taken, and the message has the reason. */
static void disk_full_in_the_lock(void **state)
{
  (void)state;
  struct rlimit before;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = { 10, before.rlim_max };
  signal(SIGXFSZ, SIG_DFL);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  errno = ENOENT;
  flow_status status = run(cached(range(10)));
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(status, FLOW_IO_ERROR);
  assert_non_null(strstr(flow_last_error(), strerror(EFBIG)));
  assert_false(exists(lock_path));
}

static void survives_allocation_failures(void **state)
{
  (void)state;
  for (int fill = 1; fill >= 0; fill--) {
    int failures = 0;
    for (int at = 0;; at++) {
      if (fill) unlink(path);
      flow_dataset *dataset = cached(batch(range(6), 2, 0));
      flow_fail_allocation(at);
      flow_status status = run(dataset);
      flow_fail_allocation(-1);
      if (status == FLOW_OK) break;
      assert_int_equal(status, FLOW_OUT_OF_MEMORY);
      assert_false(exists(lock_path));
      if (fill) assert_false(exists(path));
      failures++;
    }
    assert_true(failures > 5);
    assert_true(exists(path));
  }
}

/* ---- the lock --------------------------------------------------------------------------------------------------------------- */

static void second_pass_keeps_nothing(void **state)
{
  (void)state;
  flow_iterator *first;
  flow_dataset *dataset = cached(range(4));
  pass found = { 0 };
  OK(flow_iterator_new(NULL, dataset, &first));
  pass_run(first, 2, &found);
  char log[1024];
  int level;
  while (flow_log_take(&level, log, sizeof log) >= 0) { }
  flow_dataset_retain(dataset);
  EXPECT_PASS(dataset, 0, 1, 2, 3);
  assert_false(exists(path));
  assert_true(flow_log_take(&level, log, sizeof log) > 0);
  char words[64];
  snprintf(words, sizeof words, "is being filled by process %ld on ", (long)getpid());
  assert_non_null(strstr(log, words));
  pass_run(first, 2, &found);
  assert_true(exists(path));                        /* it has had all there are: nobody has to ask for the end */
  assert_int_equal(pass_run(first, 1, &found), 1);
  flow_iterator_close(first);
  EXPECT_PASS(dataset, 0, 1, 2, 3);
}

/* A process that was killed while it filled: its lock and its temporary file do not stop the next one. */
static void dead_process_is_followed(void **state)
{
  (void)state;
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    flow_file_lock lock;
    char holder[64];
    int taken;
    if (flow_file_lock_take(lock_path, &lock, &taken, holder, sizeof holder) == FLOW_OK && taken && write(ready[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char byte;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  OK(run(cached(range(3))));
  assert_false(exists(path));                       /* it is alive and holds the lock */
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  assert_true(exists(lock_path));
  OK(run(cached(range(3))));
  assert_true(exists(path));
  assert_false(exists(lock_path));
  close(ready[0]);
  close(ready[1]);
}

/* A child that was forked while its parent fills takes nothing away from it. */
static void child_leaves_the_parents_file(void **state)
{
  (void)state;
  flow_iterator *iterator;
  flow_dataset *dataset = cached(range(4));
  pass found = { 0 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  pass_run(iterator, 2, &found);
  pid_t child = fork();
  if (child == 0) {
    flow_iterator_close(iterator);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  assert_true(exists(lock_path));
  pass_run(iterator, 10, &found);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  EXPECT_PASS(cached(range(9)), 0, 1, 2, 3);
}

static void folder_must_be_writable(void **state)
{
  (void)state;
  flow_dataset *out = NULL, *input = range(3);
  OK(flow_dataset_cache_file(input, "/proc/nowhere/cache", &out));
  flow_dataset_release(input);
  FAILS(run(out), FLOW_IO_ERROR, "/proc/nowhere/cache.lock");
}

/* The reader cannot go on after a record that is damaged: a stage that leaves out errors must not wait for it to end. */
static void damage_ends_a_pass_without_errors(void **state)
{
  (void)state;
  enum { END_RECORD = 12 + 9 + 4, FOOTER = 4 };
  EXPECT_PASS(cached(range(3)), 0, 1, 2);
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, -END_RECORD - FOOTER - 1, SEEK_END), 0);
  assert_int_equal(fputc(99, file), 99);
  fclose(file);
  for (int kind = 0; kind < 2; kind++) {
    flow_dataset *damaged, *rest;
    if (kind == 0) OK(flow_dataset_load(path, &damaged));
    else damaged = cached(range(3));
    OK(flow_dataset_ignore_errors(damaged, 0, &rest));
    flow_dataset_release(damaged);
    EXPECT_PASS(rest, 0, 1);
  }
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
  const struct CMUnitTest tests[] = {
    IN_FOLDER(appears_when_complete),
    IN_FOLDER(keeps_shapes_and_types),
    IN_FOLDER(can_be_empty),
    IN_FOLDER(positions_are_exact),
    IN_FOLDER(order_survives),
    IN_FOLDER(refuses_other_signatures),
    IN_FOLDER(names_damaged_files),
    IN_FOLDER(texts_are_bytes),
    IN_FOLDER(survives_hostile_records),
    IN_FOLDER(disk_full_leaves_nothing),
    IN_FOLDER(disk_full_in_the_lock),
    IN_FOLDER(survives_allocation_failures),
    IN_FOLDER(second_pass_keeps_nothing),
    IN_FOLDER(dead_process_is_followed),
    IN_FOLDER(child_leaves_the_parents_file),
    IN_FOLDER(folder_must_be_writable),
    IN_FOLDER(damage_ends_a_pass_without_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
