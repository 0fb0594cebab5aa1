/* test_data_memory.c: stages of the input pipeline hold no element after a failure, and refuse sizes that numbers cannot hold. */
#include "datasets.h"

#include "data/iterator.h"

/* Six elements of two components: {2} floats and a number. */
static flow_dataset *rows_of_two(void)
{
  flow_tensor *parts[2] = { counting(FLOW_FLOAT32, 2, SHAPE(6, 2)), counting(FLOW_INT32, 1, SHAPE(6)) };
  flow_dataset *dataset;
  OK(flow_dataset_from_slices(parts, NULL, 2, &dataset));
  for (int i = 0; i < 2; i++) flow_tensor_release(parts[i]);
  return dataset;
}

/* The second component of an element finds no memory: the first one is not lost. */
static void elements_that_fail_while_they_are_skipped_leave_nothing(void **state)
{
  (void)state;
  flow_dataset *dataset = rows_of_two();
  flow_iterator *iterator;
  flow_element element = { 0 };
  int64_t skipped = 0;
  OK(flow_iterator_new(NULL, dataset, &iterator));
  OK(flow_iterator_next(iterator, &element));
  double before = flow_live_bytes();
  flow_fail_allocation(1);
  assert_int_equal(flow_cursor_skip_by_pulling(iterator->top, 1, &skipped), FLOW_OUT_OF_MEMORY);
  flow_fail_allocation(-1);
  assert_true(flow_live_bytes() == before);
  flow_element_clear(&element);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
}

/* Stages that collect elements in their own lists: whichever allocation fails, closing the pass gives all memory back. */
static void stages_that_collect_leave_nothing(void **state)
{
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    flow_dataset *rows = rows_of_two(), *collected;
    if (kind == 0) OK(flow_dataset_padded_batch(rows, 4, NULL, NULL, 0, 0, &collected));
    else OK(flow_dataset_window(rows, 4, 1, 1, 0, &collected));
    flow_dataset_release(rows);
    double before = flow_live_bytes();
    flow_status status = FLOW_OUT_OF_MEMORY;
    for (int after = 0; status != FLOW_OK; after++) {
      flow_iterator *iterator;
      flow_element element = { 0 };
      OK(flow_iterator_new(NULL, collected, &iterator));
      flow_fail_allocation(after);
      status = flow_iterator_next(iterator, &element);
      flow_fail_allocation(-1);
      assert_int_equal(element.count > 0, status == FLOW_OK);
      flow_element_clear(&element);
      flow_iterator_close(iterator);
      assert_true(flow_live_bytes() == before);
    }
    flow_dataset_release(collected);
  }
}

static void sizes_of_batches_have_a_sum(void **state)
{
  (void)state;
  static double sizes[2048];
  flow_dataset *rows, *batches, *out;
  for (int i = 0; i < 2048; i++) sizes[i] = 0x1p53;
  OK(flow_dataset_range(0, 4, 1, FLOW_INT32, &rows));
  batches = batch(rows, 2, 0);
  FAILS(flow_dataset_rebatch(batches, sizes, 2048, 0, &out), FLOW_INVALID_ARGUMENT, "rebatch: the sum of the batch sizes is too large");
  assert_null(out);
  flow_dataset_release(batches);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(elements_that_fail_while_they_are_skipped_leave_nothing),
    TEST(stages_that_collect_leave_nothing),
    TEST(sizes_of_batches_have_a_sum),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
