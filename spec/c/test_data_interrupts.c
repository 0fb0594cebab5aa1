/* test_data_interrupts.c: a pass that is interrupted while it waits gives, when it is asked again, the elements that it gives otherwise,
 * and its position counts those that were given. What elements that fail count for: take and shard. */
#include "datasets.h"

/* What a stage says instead of an element: FLOW_INTERRUPTED before each one, or a failure in place of element number `bad`. */
typedef struct stutter {
  flow_dataset base;
  int64_t bad;
} stutter;
typedef struct stutter_cursor {
  flow_cursor base;
  int64_t index;
  int told;
} stutter_cursor;

static flow_status stutter_next(flow_cursor *cursor, flow_element *out)
{
  stutter_cursor *at = (stutter_cursor *)cursor;
  int64_t bad = ((const stutter *)cursor->dataset)->bad;
  at->told = !at->told;
  if (bad < 0 && at->told) return flow_fail(FLOW_INTERRUPTED, "interrupted");
  FLOW_TRY(flow_cursor_pull(cursor->inputs[0], out));
  if (at->index++ != bad) return FLOW_OK;
  flow_element_clear(out);
  return flow_fail(FLOW_CORRUPT_DATA, "a bad element");
}

static const flow_dataset_class class = {
  .name = "stutter",
  .dataset_bytes = sizeof(stutter),
  .cursor_bytes = sizeof(stutter_cursor),
  .next = stutter_next,
};

/* bad -1: interrupts. */
static flow_dataset *stuttering(flow_dataset *input, int64_t bad)
{
  flow_dataset *out;
  flow_status status = flow_dataset_new(&class, &input, 1, &out);
  ((stutter *)out)->bad = bad;
  return made(status, input, out);
}

STAGE(pad(flow_dataset *input, int size), flow_dataset_padded_batch(input, size, NULL, NULL, 0, 0, &out))
STAGE(rebatch(flow_dataset *input), flow_dataset_rebatch(input, (double[]){ 2, 0, 3 }, 3, 0, &out))
STAGE(window(flow_dataset *input, int size, int shift), flow_dataset_window(input, size, shift, 1, 0, &out))
STAGE(cache(flow_dataset *input), flow_dataset_cache(input, &out))
STAGE(unbatch(flow_dataset *input), flow_dataset_unbatch(input, &out))

/* Element `delivered` of a saved position. */
static int delivered_of(const flow_iterator *iterator)
{
  char text[256], identity[32];
  int delivered = -1;
  flow_iterator_save(iterator, text, sizeof text);
  assert_int_equal(sscanf(text, "flow-position-1 %31s %d", identity, &delivered), 2);
  return delivered;
}

/* All elements of a dataset that may be interrupted. */
static int run(flow_dataset *dataset, pass *into)
{
  int interrupts = 0;
  flow_iterator *iterator;
  flow_element element = { 0 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  for (;;) {
    flow_status status = flow_iterator_next(iterator, &element);
    assert_int_equal(delivered_of(iterator), into->elements + (status == FLOW_OK && element.count > 0));
    if (status == FLOW_INTERRUPTED) {
      interrupts++;
      continue;
    }
    OK(status);
    if (element.count == 0) break;
    pass_add(into, &element);
  }
  flow_iterator_close(iterator);
  return interrupts;
}

enum {
  BATCH,
  DROPPING,
  PADDED,
  REBATCH,
  WINDOW,
  GAPS,
  SHUFFLE,
  CACHE,
  UNBATCH,
  SHARD,
  TAKE,
  LEAVE_OUT,
  REPEAT,
  ZIP,
  BATCH_OF_BATCHES,
  KINDS
};

static flow_dataset *pipeline(int kind, flow_dataset *input)
{
  switch (kind) {
  case BATCH: return batch(input, 3, 0);
  case DROPPING: return batch(input, 3, 1);
  case PADDED: return pad(input, 3);
  case REBATCH: return rebatch(batch(input, 4, 0));
  case WINDOW: return window(input, 3, 2);
  case GAPS: return window(input, 2, 4);
  case SHUFFLE: return shuffle(input, 4, 7);
  case CACHE: return repeat(cache(input), 2);
  case UNBATCH: return unbatch(batch(input, 3, 0));
  case SHARD: return shard(input, 3, 1);
  case TAKE: return take(input, 5);
  case LEAVE_OUT: return leave_out(input, 5);
  case REPEAT: return repeat(batch(input, 4, 0), 2);
  case ZIP: return zip(batch(input, 2, 0), batch(range(11), 2, 0));
  default: return batch(batch(input, 2, 1), 2, 0);
  }
}

static void interrupts_lose_nothing(void **state)
{
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    flow_dataset *plain = pipeline(kind, range(11)), *interrupted = pipeline(kind, stuttering(range(11), -1));
    pass *expected = pass_of(plain, 1000), *found = calloc(1, sizeof *found);
    assert_true(run(interrupted, found) > 0);
    if (found->count != expected->count || memcmp(found->numbers, expected->numbers, sizeof *found->numbers * (size_t)found->count) != 0)
      fail_msg("pipeline %d: %d numbers in %d elements, expected %d in %d", kind, found->count, found->elements, expected->count,
               expected->elements);
    free(expected);
    free(found);
    flow_dataset_release(plain);
    flow_dataset_release(interrupted);
  }
}

/* The first element after two that are skipped; interrupts: that many calls before. */
static pass *third_of(flow_dataset *dataset, int interrupts)
{
  pass *found = calloc(1, sizeof *found);
  flow_iterator *iterator;
  flow_element element = { 0 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  for (int i = 0; i < interrupts; i++) assert_int_equal(flow_iterator_next(iterator, &element), FLOW_INTERRUPTED);
  OK(flow_iterator_skip(iterator, 2));
  for (flow_status status = FLOW_INTERRUPTED; status == FLOW_INTERRUPTED;) status = flow_iterator_next(iterator, &element);
  pass_add(found, &element);
  flow_element_clear(&element);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  return found;
}

/* A skip that begins in the middle of a batch leaves out that batch, too. */
static void skips_begin_in_the_middle(void **state)
{
  (void)state;
  for (int kind = BATCH; kind <= REBATCH; kind++) {
    pass *expected = third_of(pipeline(kind, range(11)), 0), *found = third_of(pipeline(kind, stuttering(range(11), -1)), 2);
    expect_pass(found, expected->count, expected->numbers);
    free(expected);
    free(found);
  }
}

/* The numbers of a pass that goes on after failures. */
static void expect_after_failures(flow_dataset *dataset, int count, const double *numbers)
{
  flow_iterator *iterator;
  flow_element element = { 0 };
  pass *found = calloc(1, sizeof *found);
  OK(flow_iterator_new(NULL, dataset, &iterator));
  for (;;) {
    flow_status status = flow_iterator_next(iterator, &element);
    if (status == FLOW_CORRUPT_DATA) continue;
    OK(status);
    if (element.count == 0) break;
    pass_add(found, &element);
  }
  expect_pass(found, count, numbers);
  free(found);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
}

static void failed_elements_are_not_taken(void **state)
{
  (void)state;
  expect_after_failures(take(stuttering(range(9), 1), 3), 3, (double[]){ 0, 2, 3 });
  expect_after_failures(shard(stuttering(range(9), 4), 3, 1), 2, (double[]){ 1, 7 }); /* other workers have 5 and 6 */
}

static uint64_t identity_of(flow_dataset *dataset)
{
  uint64_t identity = dataset->identity;
  flow_dataset_release(dataset);
  return identity;
}

static flow_dataset *numbers(double start, double stop, double step, int dtype)
{
  flow_dataset *out;
  OK(flow_dataset_range(start, stop, step, dtype, &out));
  return out;
}

static flow_dataset *padded_with(double value, int size)
{
  flow_dataset *out = NULL, *rows = batch(range(8), 2, 0);
  flow_component shape = { .dtype = FLOW_INT64, .rank = 1, .shape = { size } };
  flow_status status = flow_dataset_padded_batch(rows, 2, &shape, &value, 1, 0, &out);
  return made(status, rows, out);
}

/* A position of one of them is not one of another. */
static void different_pipelines_have_different_identities(void **state)
{
  (void)state;
  flow_dataset *integers;
  OK(flow_dataset_range_integers(0, 20, 2, FLOW_INT64, &integers));
  const uint64_t identities[] = {
    identity_of(numbers(0, 10, 1, FLOW_INT64)),
    identity_of(numbers(0, 20, 2, FLOW_INT64)),
    identity_of(numbers(0, 10, 1, FLOW_INT32)),
    identity_of(numbers(0.5, 10, 1, FLOW_FLOAT32)),
    identity_of(numbers(0.25, 10, 1, FLOW_FLOAT32)),
    identity_of(integers),
    identity_of(padded_with(0, 4)),
    identity_of(padded_with(1, 4)),
    identity_of(padded_with(0, 5)),
  };
  enum { COUNT = sizeof identities / sizeof *identities };
  for (int i = 0; i < COUNT; i++)
    for (int k = 0; k < i; k++)
      if (identities[i] == identities[k]) fail_msg("pipelines %d and %d have one identity", k, i);
  assert_true(identity_of(numbers(0, 10, 1, FLOW_INT64)) == identities[0]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(interrupts_lose_nothing),
    TEST(skips_begin_in_the_middle),
    TEST(failed_elements_are_not_taken),
    TEST(different_pipelines_have_different_identities),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
