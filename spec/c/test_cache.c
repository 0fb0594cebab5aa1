/* test_cache.c: the cache in memory: what a pass that fails in between leaves to later ones. */
#include "datasets.h"

enum { ELEMENTS = 10 };

/* Goes on after every failure until the data end. Returns how many elements came. */
static int run_on(flow_iterator *iterator)
{
  flow_element element = { 0 };
  int count = 0;
  for (int tries = 0; tries < 3 * ELEMENTS; tries++) {
    if (flow_iterator_next(iterator, &element) != FLOW_OK) continue;
    if (element.count == 0) break;
    count++;
  }
  flow_element_clear(&element);
  return count;
}

/* Wherever memory is out once, a later pass has all elements: what a pass could not keep whole is not kept. */
static void a_pass_that_fails_keeps_nothing(void **state)
{
  (void)state;
  for (int after = 0; after < 4 * ELEMENTS; after++) {
    flow_dataset *numbers, *cached;
    flow_iterator *iterator;
    OK(flow_dataset_range_integers(0, ELEMENTS, 1, FLOW_INT64, &numbers));
    OK(flow_dataset_cache(numbers, &cached));
    flow_dataset_release(numbers);
    OK(flow_iterator_new(NULL, cached, &iterator));
    flow_fail_allocation(after);
    run_on(iterator);
    flow_fail_allocation(-1);
    flow_iterator_close(iterator);
    EXPECT_PASS(cached, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { TEST(a_pass_that_fails_keeps_nothing) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
