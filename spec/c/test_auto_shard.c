/* test_auto_shard.c: which elements each of several workers gets, by policy. */
#include "datasets.h"
#include "temporary.h"

#include <unistd.h>

static char folder[TEMPORARY_PATH], paths[3][TEMPORARY_PATH + 32];

/* Three files: records "a" to "d", "e", "f" and "g". */
static int make_files(void **state)
{
  static const char *const letters[] = { "abcd", "e", "fg" };
  remember_live_bytes(state);
  if (!mkdtemp(temporary(folder, "XXXXXX"))) return 1;
  for (int i = 0; i < 3; i++) {
    flow_record_writer *writer;
    snprintf(paths[i], sizeof paths[i], "%s/file%d", folder, i);
    OK(flow_record_writer_new(paths[i], "", &writer));
    for (const char *letter = letters[i]; *letter; letter++) OK(flow_record_writer_write(writer, letter, 1));
    OK(flow_record_writer_close(writer));
    flow_record_writer_release(writer);
  }
  return 0;
}

static int remove_files(void **state)
{
  for (int i = 0; i < 3; i++) unlink(paths[i]);
  return rmdir(folder) | expect_nothing_leaked(state);
}

static flow_dataset *records(void)
{
  const char *list[] = { paths[0], paths[1], paths[2] };
  flow_dataset *out;
  OK(flow_dataset_records(list, 3, "", 1, &out));
  return out;
}

STAGE(policy(flow_dataset *input, int number), flow_dataset_with_options(input, number, -1, &out))
STAGE(cached(flow_dataset *input), flow_dataset_cache(input, &out))
STAGE(cached_at(flow_dataset *input, const char *path), flow_dataset_cache_file(input, path, &out))
STAGE(worker(flow_dataset *input, int count, int index), flow_dataset_auto_shard(input, count, index, &out))
#define ROW(...) -1000 - (double)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), __VA_ARGS__

static void data_is_sharded_at_the_end(void **state)
{
  (void)state;
  for (int number = FLOW_SHARD_AUTO; number <= FLOW_SHARD_DATA; number += FLOW_SHARD_DATA) {
    EXPECT_PASS(worker(policy(batch(range(7), 2, 0), number), 2, 0), ROW(0, 1), ROW(4, 5));
    EXPECT_PASS(worker(policy(batch(range(7), 2, 0), number), 2, 1), ROW(2, 3), ROW(6));
  }
  flow_dataset *dataset = worker(policy(prefetch(range(7), 5), FLOW_SHARD_DATA), 2, 1);
  assert_string_equal(flow_dataset_auto_shard_policy(dataset) == FLOW_SHARD_DATA ? "DATA" : "", "DATA");
  flow_iterator *iterator;
  flow_stage_report stage;
  OK(flow_iterator_new(NULL, dataset, &iterator));
  static const char *const stages[] = { "with_options", "prefetch", "shard", "range" };
  for (int i = 0; i < 4; i++) {
    assert_true(flow_iterator_stage(iterator, i, &stage));
    assert_string_equal(stage.name, stages[i]);
  }
  flow_iterator_close(iterator);
  EXPECT_PASS(dataset, 1, 3, 5);
}

static void off_leaves_everything(void **state)
{
  (void)state;
  EXPECT_PASS(worker(policy(range(3), FLOW_SHARD_OFF), 2, 1), 0, 1, 2);
}

static void too_few_files_are_read_by_all(void **state)
{
  (void)state;
  EXPECT_PASS(worker(policy(take(records(), 7), FLOW_SHARD_AUTO), 4, 0), ROW('a'), ROW('e'));      /* every fourth element */
  EXPECT_PASS(worker(policy(take(records(), 7), FLOW_SHARD_AUTO), 4, 3), ROW('d'));
}

static void files_go_to_workers(void **state)
{
  (void)state;
  for (int number = FLOW_SHARD_AUTO; number <= FLOW_SHARD_FILE; number++) {
    EXPECT_PASS(worker(policy(take(records(), 3), number), 2, 0), ROW('a'), ROW('b'), ROW('c'));      /* of the worker's own files */
    EXPECT_PASS(worker(policy(take(records(), 3), number), 2, 1), ROW('e'));
    EXPECT_PASS(worker(policy(leave_out(prefetch(cached(records()), 2), 4), number), 2, 0), ROW('f'), ROW('g'));
  }
  flow_dataset *out, *dataset = policy(records(), FLOW_SHARD_FILE);
  FAILS(flow_dataset_auto_shard(dataset, 4, 0, &out), FLOW_NOT_FOUND,
        "FILE cannot be, use DATA or OFF: TFRecordDataset has 3 files, not enough for 4 workers");
  flow_dataset_release(dataset);
  dataset = policy(range(3), FLOW_SHARD_FILE);
  FAILS(flow_dataset_auto_shard(dataset, 2, 0, &out), FLOW_NOT_FOUND, "begins with range");
  flow_dataset_release(dataset);
  dataset = policy(cached_at(records(), "shared"), FLOW_SHARD_FILE);
  FAILS(flow_dataset_auto_shard(dataset, 2, 0, &out), FLOW_UNSUPPORTED, "a name for each worker");
  flow_dataset_release(dataset);
}

static void check_rows(flow_dataset *dataset, double rows)
{
  assert_true(flow_dataset_batch_rows(dataset) == rows);
  flow_dataset_release(dataset);
}

/* What a worker's part of a batch is worked out from. */
static void rows_of_batches_are_known(void **state)
{
  (void)state;
  check_rows(range(9), 0);
  check_rows(take(prefetch(batch(range(9), 4, 0), 1), 2), 4);
  check_rows(batch(batch(range(9), 4, 0), 2, 1), 2);
  check_rows(worker(policy(batch(records(), 3, 0), FLOW_SHARD_FILE), 2, 1), 3);
  flow_dataset *out, *four = batch(range(9), 4, 0);
  OK(flow_dataset_rebatch(four, (double[]){ 2, 3 }, 2, 0, &out));
  check_rows(out, 0);
  OK(flow_dataset_rebatch(four, (double[]){ 6 }, 1, 0, &out));
  check_rows(out, 6);
  OK(flow_dataset_unbatch(four, &out));
  check_rows(out, 0);
  flow_dataset_release(four);
}

static void hints_are_filled_in(void **state)
{
  (void)state;
  EXPECT_PASS(worker(policy(batch(shard(range(6), -1, 0), 2, 0), FLOW_SHARD_HINT), 2, 1), ROW(1, 3), ROW(5));
  EXPECT_PASS(worker(policy(range(3), FLOW_SHARD_HINT), 2, 1), 0, 1, 2);
}

/* Shuffles keep their seeds: workers cut one order into parts. Positions hold in what was rewritten. */
static void shuffles_and_positions_hold(void **state)
{
  (void)state;
  double seen[9] = { 0 };
  for (int i = 0; i < 3; i++) {
    flow_dataset *dataset = worker(policy(shuffle(range(9), 9, 1), FLOW_SHARD_DATA), 3, i);
    pass *found = pass_of(dataset, 100);
    for (int k = 0; k < found->count; k++) seen[(int)found->numbers[k]]++;
    free(found);
    flow_dataset_release(dataset);
  }
  for (int i = 0; i < 9; i++) assert_true(seen[i] == 1);
  check_positions(worker(policy(repeat(shuffle(records(), 3, 1), 3), FLOW_SHARD_FILE), 2, 0), 10, 8);
}

static void wrong_numbers_are_named(void **state)
{
  (void)state;
  flow_dataset *out, *dataset = range(3);
  FAILS(flow_dataset_auto_shard(dataset, 2, 2, &out), FLOW_INVALID_ARGUMENT, "worker 2 of 2");
  FAILS(flow_dataset_auto_shard(dataset, 0, 0, &out), FLOW_INVALID_ARGUMENT, "workers");
  flow_dataset_release(dataset);
}

#define WITH_FILES(f) cmocka_unit_test_setup_teardown(f, make_files, remove_files)

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(data_is_sharded_at_the_end), TEST(off_leaves_everything), WITH_FILES(files_go_to_workers),
    WITH_FILES(too_few_files_are_read_by_all), TEST(hints_are_filled_in), WITH_FILES(rows_of_batches_are_known),
    WITH_FILES(shuffles_and_positions_hold), TEST(wrong_numbers_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
