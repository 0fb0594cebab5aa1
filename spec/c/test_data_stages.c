/* test_data_stages.c: the stages of the input pipeline that run where they are called: what they deliver, their cardinality,
 * their signature, and positions. */
#include "datasets.h"

#include "data/iterator.h"

static flow_dataset *slices_of(int count, flow_tensor *const *components)
{
  flow_dataset *dataset;
  OK(flow_dataset_from_slices(components, NULL, count, &dataset));
  for (int i = 0; i < count; i++) flow_tensor_release(components[i]);
  return dataset;
}

static void slices_are_rows(void **state)
{
  (void)state;
  flow_tensor *parts[2] = { counting(FLOW_FLOAT32, 2, SHAPE(3, 2)), counting(FLOW_INT32, 1, SHAPE(3)) };
  flow_dataset *dataset = slices_of(2, parts);
  assert_true(flow_dataset_cardinality(dataset) == 3);
  assert_int_equal(flow_dataset_component_count(dataset), 2);
  assert_int_equal(flow_dataset_component(dataset, 0)->rank, 1);
  assert_int_equal(flow_dataset_component(dataset, 0)->shape[0], 2);
  assert_int_equal(flow_dataset_component(dataset, 1)->rank, 0);
  assert_null(flow_dataset_component(dataset, 2));
  EXPECT_PASS(dataset, -1002, 0, 1, 0, -1002, 2, 3, 1, -1002, 4, 5, 2);
}

static void slices_are_texts(void **state)
{
  (void)state;
  flow_tensor *bytes = counting(FLOW_UINT8, 1, SHAPE(6)), *dataset_offsets[1];
  flow_dataset *dataset;
  dataset_offsets[0] = from_numbers(FLOW_INT64, 1, SHAPE(4), (double[]){ 0, 2, 2, 6 });
  OK(flow_dataset_from_slices(&bytes, dataset_offsets, 1, &dataset));
  assert_true(flow_dataset_component(dataset, 0)->text);
  assert_true(flow_dataset_component(dataset, 0)->shape[0] == -1);
  check_positions(flow_dataset_retain(dataset), 3, 1);
  EXPECT_PASS(flow_dataset_retain(dataset), -1002, 0, 1, -1000, -1004, 2, 3, 4, 5);
  EXPECT_PASS(batch(dataset, 2, 0), -1002, 0, 1, 0, 0, -1001, 2, 3, 4, 5);
  flow_tensor_release(dataset_offsets[0]);
  dataset_offsets[0] = from_numbers(FLOW_INT64, 1, SHAPE(3), (double[]){ 0, 7, 6 });
  FAILS(flow_dataset_from_slices(&bytes, dataset_offsets, 1, &dataset), FLOW_INVALID_ARGUMENT, "offset 7 of text 2 is outside of 0 to 6");
  flow_tensor_release(dataset_offsets[0]);
  flow_tensor_release(bytes);
}

/* Rows without elements are rows. */
static void rows_may_be_empty(void **state)
{
  (void)state;
  flow_tensor *parts[2] = { counting(FLOW_INT32, 1, SHAPE(3)), counting(FLOW_FLOAT32, 3, SHAPE(3, 2, 0)) };
  flow_dataset *dataset;
  OK(flow_dataset_from_slices(parts, NULL, 2, &dataset));
  EXPECT_PASS(flow_dataset_retain(dataset), 0, -1002, 1, -1002, 2, -1002);
  dataset = batch(dataset, 2, 0);
  flow_dataset *rows;
  OK(flow_dataset_unbatch(dataset, &rows));
  flow_dataset_release(dataset);
  EXPECT_PASS(rows, 0, -1002, 1, -1002, 2, -1002);
  for (int i = 0; i < 2; i++) flow_tensor_release(parts[i]);
}

/* A path, or an Example, is one text: of batches the bytes are those of all rows. */
static void batches_of_texts_are_no_paths(void **state)
{
  (void)state;
  flow_tensor *bytes = counting(FLOW_UINT8, 1, SHAPE(6)), *offsets[1] = { from_numbers(FLOW_INT64, 1, SHAPE(4), (double[]){ 0, 2, 2, 6 }) };
  flow_dataset *texts, *out;
  flow_function *functions[3];
  static const char *const parts[] = { "loading pictures needs elements that begin with a path, got texts {None, None}",
                                       "loading texts needs elements that begin with a path", "parse_example takes elements of one text" };
  OK(flow_dataset_from_slices(&bytes, offsets, 1, &texts));
  texts = batch(texts, 2, 0);
  OK(flow_function_load_image(2, 2, 3, "bilinear", 0, 0, 0, &functions[0]));
  OK(flow_function_load_text(-1, &functions[1]));
  OK(flow_function_parse_example(&functions[2]));
  for (int i = 0; i < 3; i++) {
    FAILS(flow_dataset_map(texts, functions[i], 1, 1, 0, &out), FLOW_INVALID_ARGUMENT, parts[i]);
    flow_function_release(functions[i]);
  }
  flow_dataset_release(texts);
  flow_tensor_release(offsets[0]);
  flow_tensor_release(bytes);
}

static void wrong_slices_are_named(void **state)
{
  (void)state;
  flow_dataset *dataset;
  flow_tensor *parts[2] = { counting(FLOW_FLOAT32, 2, SHAPE(3, 2)), counting(FLOW_INT32, 1, SHAPE(4)) };
  FAILS(flow_dataset_from_slices(parts, NULL, 2, &dataset), FLOW_INVALID_ARGUMENT, "component 2 has 4 rows, the ones before have 3");
  FAILS(flow_dataset_from_slices(parts, NULL, 0, &dataset), FLOW_INVALID_ARGUMENT, "1 to 64 components, got 0");
  for (int i = 0; i < 2; i++) flow_tensor_release(parts[i]);
  OK(flow_tensor_scalar(FLOW_FLOAT32, 1, &parts[0]));
  FAILS(flow_dataset_from_slices(parts, NULL, 1, &dataset), FLOW_INVALID_ARGUMENT, "component 1 is a single number");
  flow_tensor_release(parts[0]);
}

static void ranges_count(void **state)
{
  (void)state;
  flow_dataset *dataset;
  EXPECT_PASS(range(3), 0, 1, 2);
  OK(flow_dataset_range(5, 0, -2, FLOW_FLOAT32, &dataset));
  assert_true(flow_dataset_cardinality(dataset) == 3);
  EXPECT_PASS(dataset, 5, 3, 1);
  OK(flow_dataset_range(5, 0, 1, FLOW_INT64, &dataset));
  assert_true(flow_dataset_cardinality(dataset) == 0);
  flow_dataset_release(dataset);
  FAILS(flow_dataset_range(0, 1, 0, FLOW_INT64, &dataset), FLOW_INVALID_ARGUMENT, "a step other than 0");
  check_positions(range(4), 4, 1);
}

static void batches_stack_rows(void **state)
{
  (void)state;
  flow_dataset *dataset = batch(range(5), 2, 0);
  assert_true(flow_dataset_cardinality(dataset) == 3);
  assert_true(flow_dataset_component(dataset, 0)->shape[0] == -1);
  EXPECT_PASS(dataset, -1002, 0, 1, -1002, 2, 3, -1001, 4);
  dataset = batch(range(5), 2, 1);
  assert_true(flow_dataset_cardinality(dataset) == 2);
  assert_true(flow_dataset_component(dataset, 0)->shape[0] == 2);
  EXPECT_PASS(dataset, -1002, 0, 1, -1002, 2, 3);
  EXPECT_PASS(batch(batch(range(5), 2, 1), 2, 0), -1002, 0, 1, 2, 3);
  check_positions(batch(range(11), 3, 0), 4, 1);
  check_positions(batch(range(11), 3, 1), 4, 1);
  FAILS(flow_dataset_batch(NULL, 2, 0, &dataset), FLOW_INVALID_ARGUMENT, "batch: a dataset is needed");
  flow_dataset *ten = range(10);
  FAILS(flow_dataset_batch(ten, 0, 0, &dataset), FLOW_INVALID_ARGUMENT, "batch_size is a whole number from 1, got 0");
  flow_dataset_release(ten);
}

static void a_batch_may_be_larger_than_the_data(void **state)
{
  (void)state;
  flow_dataset *rows = range(9000), *dataset = batch(flow_dataset_retain(rows), 1000000000, 0);
  pass *found = pass_of(rows, 9000);
  pass *batched = pass_of(dataset, 2);
  assert_int_equal(batched->elements, 1);
  assert_int_equal(batched->count, 9001);
  assert_memory_equal(batched->numbers + 1, found->numbers, sizeof(double) * 9000);
  flow_dataset_release(dataset);
  flow_dataset_release(rows);
  free(found);
  free(batched);
}

static void strided_rows_are_copied(void **state)
{
  (void)state;
  flow_tensor *whole = counting(FLOW_FLOAT32, 2, SHAPE(3, 4)), *turned = view_of(whole, 2, SHAPE(4, 3), SHAPE(1, 4), 0);
  flow_tensor_release(whole);
  EXPECT_PASS(batch(slices_of(1, &turned), 2, 0), -1002, 0, 4, 8, 1, 5, 9, -1002, 2, 6, 10, 3, 7, 11);
}

static void take_and_skip_cut(void **state)
{
  (void)state;
  EXPECT_PASS(take(range(5), 2), 0, 1);
  EXPECT_PASS(take(range(2), 5), 0, 1);
  EXPECT_PASS(take(range(2), -1), 0, 1);
  EXPECT_PASS(leave_out(range(5), 2), 2, 3, 4);
  EXPECT_PASS(take(leave_out(range(9), 2), 3), 2, 3, 4);
  flow_dataset *none = leave_out(range(5), -1);
  assert_true(flow_dataset_cardinality(none) == 0);
  pass *found = pass_of(none, 5);
  assert_int_equal(found->elements, 0);
  free(found);
  flow_dataset_release(none);
  flow_dataset *few = leave_out(range(5), 7);
  assert_true(flow_dataset_cardinality(few) == 0);
  flow_dataset_release(few);
  check_positions(take(range(7), 4), 5, 1);
  check_positions(leave_out(range(7), 3), 5, 1);
  check_positions(take(leave_out(range(9), 2), 5), 6, 1);
}

static void shuffle_is_a_permutation_that_depends_on_seed_and_pass(void **state)
{
  (void)state;
  flow_dataset *dataset = shuffle(range(50), 16, 3);
  pass *passes[3];
  for (int k = 0; k < 3; k++) {
    int seen[50] = { 0 };
    passes[k] = pass_of(dataset, 100);
    assert_int_equal(passes[k]->elements, 50);
    for (int i = 0; i < 50; i++) seen[(int)passes[k]->numbers[i]]++;
    for (int i = 0; i < 50; i++) assert_int_equal(seen[i], 1);
    for (int j = 0; j < k; j++) assert_memory_not_equal(passes[j]->numbers, passes[k]->numbers, sizeof(double) * 50);
  }
  flow_dataset_release(dataset);
  dataset = shuffle(range(50), 16, 3);
  pass *again = pass_of(dataset, 100);
  assert_memory_equal(again->numbers, passes[0]->numbers, sizeof(double) * 50);
  flow_dataset_release(dataset);
  for (int k = 0; k < 3; k++) free(passes[k]);
  free(again);
}

static void shuffle_positions(void **state)
{
  (void)state;
  check_positions(shuffle(range(23), 5, 1), 24, 1);
  check_positions(shuffle(range(23), 40, 1), 24, 1);
  check_positions(shuffle(range(23), 1, 1), 24, 1);
  check_positions(repeat(shuffle(range(7), 3, 1), -1), 30, 9);
  check_positions(batch(repeat(shuffle(range(7), 4, 2), 4), 3, 0), 10, 1);
  check_positions(shuffle(repeat(shuffle(range(7), 4, 2), -1), 10, 5), 30, 9);
  check_positions(zip(shuffle(range(9), 4, 2), shuffle(range(9), 9, 3)), 9, 1);
}

/* A dataset that occurs in the pipeline twice draws for both places in turn. */
static void one_shuffle_in_two_places(void **state)
{
  (void)state;
  flow_dataset *shuffled = shuffle(range(9), 9, 4), *both = repeat(zip(flow_dataset_retain(shuffled), shuffled), 2);
  pass *found = pass_of(both, 100);
  int equal = 0;
  for (int i = 0; i < 9; i++) equal += found->numbers[2 * i] == found->numbers[2 * i + 1];
  assert_true(equal < 9);
  free(found);
  check_positions(both, 19, 1);
}

static void repeat_begins_again(void **state)
{
  (void)state;
  flow_dataset *dataset = repeat(range(2), 3);
  assert_true(flow_dataset_cardinality(dataset) == 6);
  EXPECT_PASS(dataset, 0, 1, 0, 1, 0, 1);
  dataset = repeat(range(2), -1);
  assert_true(flow_dataset_cardinality(dataset) == -1);
  EXPECT_PASS(take(dataset, 5), 0, 1, 0, 1, 0);
  pass *found = pass_of(dataset = repeat(range(0), -1), 5);      /* ends instead of turning for ever */
  assert_int_equal(found->elements, 0);
  free(found);
  flow_dataset_release(dataset);
  found = pass_of(dataset = repeat(range(3), 0), 5);
  assert_int_equal(found->elements, 0);
  free(found);
  flow_dataset_release(dataset);
  check_positions(repeat(range(3), 3), 10, 1);
  check_positions(repeat(range(3), -1), 10, 5);
}

static void zip_ends_with_the_shortest(void **state)
{
  (void)state;
  flow_dataset *dataset = zip(range(3), leave_out(range(9), 5));
  assert_true(flow_dataset_cardinality(dataset) == 3);
  EXPECT_PASS(dataset, 0, 5, 1, 6, 2, 7);
  dataset = zip(repeat(range(2), -1), range(3));
  assert_true(flow_dataset_cardinality(dataset) == 3);
  check_positions(flow_dataset_retain(dataset), 4, 1);
  EXPECT_PASS(dataset, 0, 0, 1, 1, 0, 2);
}

static void concatenate_goes_on(void **state)
{
  (void)state;
  flow_dataset *dataset = concatenate(range(2), leave_out(range(5), 3)), *out;
  assert_true(flow_dataset_cardinality(dataset) == 4);
  check_positions(flow_dataset_retain(dataset), 5, 1);
  EXPECT_PASS(dataset, 0, 1, 3, 4);
  dataset = concatenate(batch(range(2), 2, 1), batch(range(3), 3, 1));
  assert_true(flow_dataset_component(dataset, 0)->shape[0] == -1);
  EXPECT_PASS(dataset, -1002, 0, 1, -1003, 0, 1, 2);
  flow_dataset *a = range(2), *b = batch(range(2), 2, 0);
  FAILS(flow_dataset_concatenate(a, b, &out), FLOW_INVALID_ARGUMENT, "component 1 is int64 {} in the first dataset and int64 {None}");
  flow_dataset_release(a);
  flow_dataset_release(b);
}

static void shards_divide(void **state)
{
  (void)state;
  flow_dataset *out, *ten = range(10);
  EXPECT_PASS(shard(range(10), 3, 0), 0, 3, 6, 9);
  EXPECT_PASS(shard(range(10), 3, 2), 2, 5, 8);
  EXPECT_PASS(shard(range(3), -1, 0), 0, 1, 2);
  for (int index = 0; index < 4; index++) check_positions(shard(range(11), 4, index), 5, 1);
  FAILS(flow_dataset_shard(ten, 3, 3, &out), FLOW_INVALID_ARGUMENT, "index 3 of 3 shards");
  OK(flow_dataset_shard(ten, 4, 1, &out));
  assert_true(flow_dataset_cardinality(out) == 3);
  flow_dataset_release(out);
  flow_dataset_release(ten);
}

static void options_pass_through(void **state)
{
  (void)state;
  flow_dataset *ten = range(10), *out;
  OK(flow_dataset_with_options(ten, FLOW_SHARD_DATA, 0, &out));
  out = batch(out, 2, 0);
  assert_int_equal(flow_dataset_auto_shard_policy(out), FLOW_SHARD_DATA);
  assert_int_equal(flow_dataset_deterministic(out), 0);
  assert_int_equal(flow_dataset_auto_shard_policy(ten), FLOW_SHARD_AUTO);
  assert_int_equal(flow_dataset_deterministic(ten), 1);
  check_positions(out, 4, 1);
  FAILS(flow_dataset_with_options(ten, 9, -1, &out), FLOW_INVALID_ARGUMENT, "no auto_shard_policy 9");
  flow_dataset_release(ten);
}

static void positions_belong_to_a_pipeline(void **state)
{
  (void)state;
  flow_dataset *two = batch(range(10), 2, 0), *three = batch(range(10), 3, 0);
  flow_iterator *a, *b;
  char position[512];
  OK(flow_iterator_new(NULL, two, &a));
  OK(flow_iterator_new(NULL, three, &b));
  flow_iterator_save(a, position, sizeof position);
  FAILS(flow_iterator_restore(b, position), FLOW_INVALID_ARGUMENT, "another pipeline");
  FAILS(flow_iterator_restore(b, "elsewhere"), FLOW_CORRUPT_DATA, "not a saved position");
  strcat(position, " 12");
  FAILS(flow_iterator_restore(a, position), FLOW_CORRUPT_DATA, "damaged");
  flow_iterator_close(a);
  flow_iterator_close(b);
  flow_dataset_release(two);
  flow_dataset_release(three);
}

static void stages_are_counted(void **state)
{
  (void)state;
  flow_dataset *dataset = take(batch(range(10), 2, 0), 3);
  flow_iterator *iterator;
  flow_stage_report report;
  pass found = { 0 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  pass_run(iterator, 100, &found);
  const char *const names[] = { "take", "batch", "range" };
  const double elements[] = { 3, 3, 6 };
  for (int i = 0; i < 3; i++) {
    assert_int_equal(flow_iterator_stage(iterator, i, &report), 1);
    assert_string_equal(report.name, names[i]);
    assert_int_equal(report.depth, i);
    assert_true(report.elements == elements[i]);
    assert_true(report.seconds >= 0);
  }
  assert_int_equal(flow_iterator_stage(iterator, 3, &report), 0);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
}

static void every_failed_allocation_is_survived(void **state)
{
  (void)state;
  int failures = 0;
  for (int after = 0; after < 60; after++) {
    flow_dataset *input = NULL, *dataset = NULL;
    flow_iterator *iterator = NULL;
    flow_element element = { 0 };
    flow_fail_allocation(after);
    flow_status status = flow_dataset_range(0, 5, 1, FLOW_INT32, &input);
    if (status == FLOW_OK) status = flow_dataset_batch(input, 3, 0, &dataset);
    if (status == FLOW_OK) status = flow_iterator_new(NULL, dataset, &iterator);
    for (int i = 0; i < 3 && status == FLOW_OK; i++) status = flow_iterator_next(iterator, &element);
    flow_fail_allocation(-1);
    failures += status == FLOW_OUT_OF_MEMORY;
    assert_true(status == FLOW_OK || status == FLOW_OUT_OF_MEMORY);
    flow_element_clear(&element);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
    flow_dataset_release(input);
  }
  assert_true(failures > 10 && failures < 60);
}

static flow_dataset *texts_of(const char *bytes, int64_t count, const double *offsets, int64_t texts)
{
  flow_tensor *all, *places[1] = { from_numbers(FLOW_INT64, 1, SHAPE(texts + 1), offsets) };
  flow_dataset *dataset;
  OK(flow_text_tensor(bytes, (size_t)count, &all));
  OK(flow_dataset_from_slices(&all, places, 1, &dataset));
  flow_tensor_release(all);
  flow_tensor_release(places[0]);
  return dataset;
}

static flow_dataset *without_errors(flow_dataset *input)
{
  flow_dataset *dataset;
  OK(flow_dataset_ignore_errors(input, 0, &dataset));
  flow_dataset_release(input);
  return dataset;
}

/* The first byte of LICENSE, of a file that is not there, and of LICENSE; beside each its number. */
static void zipped_inputs_stay_together_after_an_error(void **state)
{
  (void)state;
  for (int order = 0; order < 2; order++) {
    flow_dataset *paths = texts_of("LICENSEnothingLICENSE", 21, (double[]){ 0, 7, 14, 21 }, 3), *parts[2], *zipped;
    flow_function *load;
    OK(flow_function_load_text(1, &load));
    OK(flow_dataset_map(paths, load, 0, 1, 0, &parts[order]));
    OK(flow_dataset_range(0, 3, 1, FLOW_INT32, &parts[1 - order]));
    OK(flow_dataset_zip(parts, 2, &zipped));
    if (order == 0) EXPECT_PASS(without_errors(zipped), -1001, 'M', 0, -1001, 'M', 2);
    else EXPECT_PASS(without_errors(zipped), 0, -1001, 'M', 2, -1001, 'M');
    for (int i = 0; i < 2; i++) flow_dataset_release(parts[i]);
    flow_dataset_release(paths);
    flow_function_release(load);
  }
}

/* A window of one text; the second text ends with a zero byte, which cannot be in a batch. */
static void a_window_that_fails_is_left_behind(void **state)
{
  (void)state;
  flow_dataset *texts = texts_of("ab\0c", 4, (double[]){ 0, 1, 3, 4 }, 3), *windows;
  OK(flow_dataset_window(texts, 1, 1, 1, 0, &windows));
  EXPECT_PASS(without_errors(windows), -1001, 'a', -1001, 'c');
  flow_dataset_release(texts);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(slices_are_rows),
    TEST(slices_are_texts),
    TEST(batches_of_texts_are_no_paths),
    TEST(rows_may_be_empty),
    TEST(wrong_slices_are_named),
    TEST(ranges_count),
    TEST(batches_stack_rows),
    TEST(a_batch_may_be_larger_than_the_data),
    TEST(strided_rows_are_copied),
    TEST(take_and_skip_cut),
    TEST(shuffle_is_a_permutation_that_depends_on_seed_and_pass),
    TEST(shuffle_positions),
    TEST(one_shuffle_in_two_places),
    TEST(repeat_begins_again),
    TEST(zip_ends_with_the_shortest),
    TEST(concatenate_goes_on),
    TEST(shards_divide),
    TEST(options_pass_through),
    TEST(positions_belong_to_a_pipeline),
    TEST(stages_are_counted),
    TEST(every_failed_allocation_is_survived),
    TEST(zipped_inputs_stay_together_after_an_error),
    TEST(a_window_that_fails_is_left_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
