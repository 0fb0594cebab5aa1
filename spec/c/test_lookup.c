/* test_lookup.c: options of lookups that only a caller of C can put together. */
#include <string.h>

#include "tensors.h"
#include "text/lookup.h"

/* uint8 {3, 5}, each string followed by zeros. */
static flow_tensor *three_strings(void)
{
  static const char bytes[3][5] = { "a b", "#", "-12" };
  flow_tensor *values = zeros(FLOW_UINT8, 2, SHAPE(3, 5));
  memcpy(values->data, bytes, sizeof bytes);
  return values;
}

/* One row for each string: strings that become several tokens would have no room in it. */
static void test_one_hot_takes_whole_strings(void **state)
{
  (void)state;
  flow_lookup_options options = { .encode = FLOW_ENCODE_ONE_HOT, .dtype = FLOW_FLOAT32, .length = -1, .buckets = 4, .depth = 4 };
  flow_lookup *lookup;
  options.split = FLOW_SPLIT_CHARACTER;
  assert_int_equal(flow_lookup_new(&options, NULL, NULL, NULL, &lookup), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "one_hot has a row for each string"));
  options.split = FLOW_SPLIT_NONE;
  options.ngram_count = 1;
  options.ngrams[0] = 2;
  assert_int_equal(flow_lookup_new(&options, NULL, NULL, NULL, &lookup), FLOW_INVALID_ARGUMENT);
  options.ngram_count = 0;
  assert_int_equal(flow_lookup_new(&options, NULL, NULL, NULL, &lookup), FLOW_OK);
  flow_lookup_release(lookup);
}

/* A program that sets has_mask and gives no token is told so. */
static void test_a_mask_needs_its_token(void **state)
{
  (void)state;
  flow_lookup_options options = { .encode = FLOW_ENCODE_INT, .dtype = FLOW_INT64, .length = -1, .buckets = 4, .has_mask = 1 };
  flow_lookup *lookup;
  assert_int_equal(flow_lookup_new(&options, NULL, NULL, NULL, &lookup), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "has_mask is set, and mask is NULL"));
  assert_null(lookup);
}

/* Texts that are not whole numbers have a bucket, too, within the range. */
static void test_remainders_of_any_text(void **state)
{
  (void)state;
  flow_lookup_options options = { .encode = FLOW_ENCODE_INT, .dtype = FLOW_INT64, .length = -1, .hash = FLOW_HASH_REMAINDER, .buckets = 5 };
  flow_tensor *values = three_strings(), *numbers;
  flow_lookup *lookup;
  assert_int_equal(flow_lookup_new(&options, NULL, NULL, NULL, &lookup), FLOW_OK);
  assert_int_equal(flow_lookup_apply(lookup, &(flow_strings){ .values = values, .is_text = 1 }, &numbers), FLOW_OK);
  const int64_t *found = (const int64_t *)numbers->data;
  for (int i = 0; i < 3; i++) assert_in_range(found[i], 0, 4);
  assert_int_equal(found[2], 3); /* -12 % 5, as Python counts */
  flow_tensor_release(numbers);
  flow_tensor_release(values);
  flow_lookup_release(lookup);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(test_one_hot_takes_whole_strings),
    TEST(test_a_mask_needs_its_token),
    TEST(test_remainders_of_any_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
