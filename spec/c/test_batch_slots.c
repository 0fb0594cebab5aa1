/* test_batch_slots.c: functions that write into the memory of the batch: the values are those of copies, whatever fails, is dropped or is
 * left out on the way, and slots fit again afterwards. */
#include "datasets.h"

#include <stdatomic.h>
#include <unistd.h>
#include "data/function.h"

enum { WIDTH = 1100, ELEMENTS = 203 };

/* Rows of WIDTH numbers, all the element's own; `every`-th elements fail or are dropped in the first half. */
typedef struct rows { flow_function base; int fail_every, drop_every, ignores; } rows;
static const void *_Atomic written[ELEMENTS];      /* where the element's row went */
static _Atomic int offered;

static flow_status rows_spec(const flow_function *function, const flow_element_spec *in, flow_element_spec *out)
{
  (void)function;
  *out = *in;
  out->count = 2;
  out->components[0] = (flow_component){ .dtype = FLOW_FLOAT32, .rank = 1, .shape = { WIDTH } };
  out->components[1] = in->components[0];
  return FLOW_OK;
}

static flow_status rows_apply(const flow_function *function, void *worker, const flow_element_key *key, const flow_element *place,
                              flow_element *in, flow_element *out)
{
  const rows *self = (const rows *)function;
  double value;
  (void)worker;
  OK(flow_tensor_item(in->tensors[0], &value));
  flow_tensor *row = place->count > 0 && !self->ignores ? flow_tensor_retain(place->tensors[0]) : NULL;
  if (place->count > 0) {
    offered++;
    assert_int_equal(place->count, 2);
    assert_null(place->tensors[1]);      /* a number is copied sooner than a view is made */
  }
  if (!row) OK(flow_tensor_new_uninitialized(FLOW_FLOAT32, 1, (int64_t[]){ WIDTH }, &row));
  for (int i = 0; i < WIDTH; i++) ((float *)row->data)[i] = (float)value;
  if (key->index % 3 == 0) usleep(50);
  int first_half = key->index < ELEMENTS / 2;
  int fails = first_half && self->fail_every && key->index % self->fail_every == 2;
  int drops = first_half && self->drop_every && key->index % self->drop_every == 1;
  if (fails || drops) {
    for (int i = 0; i < WIDTH; i++) ((float *)row->data)[i] = -1;
    flow_tensor_release(row);
    return fails ? flow_fail(FLOW_CORRUPT_DATA, "element %g is broken", value) : FLOW_OK;
  }
  written[key->index] = row->data;
  out->tensors[0] = row;
  out->tensors[1] = flow_tensor_retain(in->tensors[0]);
  out->count = 2;
  return FLOW_OK;
}

static const flow_function_class keeping = { .name = "rows", .function_bytes = sizeof(rows), .worker_bytes = 8, .fills_slots = 1,
                                             .spec = rows_spec, .apply = rows_apply };
static const flow_function_class dropping = { .name = "dropping rows", .function_bytes = sizeof(rows), .worker_bytes = 8, .fills_slots = 1,
                                              .drops = 1, .spec = rows_spec, .apply = rows_apply };

static flow_dataset *rows_of(flow_dataset *input, int calls, int in_order, rows parameters)
{
  flow_function *function;
  flow_dataset *out;
  OK(flow_function_new(parameters.drop_every ? &dropping : &keeping, &function));
  parameters.base = *function;
  *(rows *)function = parameters;
  flow_status status = flow_dataset_map(input, function, calls, in_order, 0, &out);
  flow_function_release(function);
  return made(status, input, out);
}

typedef struct seen { int rows, in_place, last_in_place, failures; double last; } seen;

/* A pass over batches: every row is whole and its own, in order. */
static seen run(flow_dataset *dataset, int in_order)
{
  seen found = { .last = -1 };
  flow_iterator *iterator;
  flow_element element = { 0 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  for (;;) {
    flow_status status = flow_iterator_next(iterator, &element);
    if (status != FLOW_OK) {
      assert_int_equal(status, FLOW_CORRUPT_DATA);
      found.failures++;
      continue;
    }
    if (element.count == 0) break;
    const flow_tensor *batch = element.tensors[0];
    for (int64_t row = 0; row < batch->shape[0]; row++) {
      double label = (double)((int64_t *)element.tensors[1]->data)[row];
      const float *numbers = (const float *)batch->data + row * WIDTH;
      for (int i = 0; i < WIDTH; i++) assert_true(numbers[i] == (float)label);
      if (in_order) assert_true(label > found.last);
      found.last = label;
      found.rows++;
      found.last_in_place = written[(int)label] == numbers;
      found.in_place += found.last_in_place;
    }
  }
  flow_element_clear(&element);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  return found;
}

static void rows_are_written_where_they_stay(void **state)
{
  (void)state;
  const int calls[] = { 0, 1, 3, -1 };
  for (int i = 0; i < 4; i++) {
    offered = 0;
    seen found = run(batch(rows_of(range(ELEMENTS), calls[i], 1, (rows){ 0 }), 8, 0), 1);
    assert_int_equal(found.rows, ELEMENTS);
    assert_int_equal(found.in_place, ELEMENTS);
    assert_int_equal(offered, ELEMENTS);
  }
}

static void slots_are_offers(void **state)
{
  (void)state;
  offered = 0;
  assert_int_equal(run(batch(rows_of(range(50), 3, 1, (rows){ .ignores = 1 }), 8, 0), 1).rows, 50);
  assert_int_equal(offered, 50);
  offered = 0;
  assert_int_equal(run(batch(rows_of(range(50), 3, 0, (rows){ 0 }), 8, 0), 0).rows, 50);      /* rows as they are ready have none */
  assert_int_equal(run(batch(shuffle(rows_of(range(50), 3, 1, (rows){ 0 }), 20, 1), 8, 0), 0).rows, 50);
  assert_int_equal(offered, 0);
}

static void dropped_rows_are_closed_up(void **state)
{
  (void)state;
  for (int calls = 0; calls < 4; calls += 3) {
    for (int every = 2; every < 20; every += 5) {
      seen found = run(batch(rows_of(range(ELEMENTS), calls, 1, (rows){ .drop_every = every }), 8, 0), 1);
      int dropped = 0;
      for (int i = 0; i < ELEMENTS / 2; i++) dropped += i % every == 1;
      assert_int_equal(found.rows, ELEMENTS - dropped);
      assert_true(found.last_in_place);
    }
  }
}

static void failures_lose_their_batch_only(void **state)
{
  (void)state;
  for (int calls = 0; calls < 4; calls += 3) {
    for (int every = 3; every < 30; every += 8) {
      seen found = run(batch(rows_of(range(ELEMENTS), calls, 1, (rows){ .fail_every = every }), 8, 0), 1);
      int failed = 0;
      for (int i = 0; i < ELEMENTS / 2; i++) failed += i % every == 2;
      assert_int_equal(found.failures, failed);
      assert_true(found.rows > ELEMENTS / 2 && found.rows <= ELEMENTS - failed);
      assert_true(found.last_in_place);
    }
  }
}

static void a_pass_may_end_anywhere(void **state)
{
  (void)state;
  for (int taken = 0; taken < 5; taken++) {
    flow_dataset *dataset = prefetch(batch(rows_of(repeat(range(ELEMENTS), -1), 3, 1, (rows){ 0 }), 8, 0), 2);
    flow_iterator *iterator;
    flow_element element = { 0 };
    OK(flow_iterator_new(NULL, dataset, &iterator));
    for (int i = 0; i < taken; i++) OK(flow_iterator_next(iterator, &element));
    flow_iterator_close(iterator);
    if (taken > 0) assert_true(((float *)element.tensors[0]->data)[7 * WIDTH] == (float)(8 * (taken - 1) + 7));
    flow_element_clear(&element);
    flow_dataset_release(dataset);
  }
}

/* Skipping through the batch in the middle of a pass leaves out what threads have written already. */
static void restored_positions_fit(void **state)
{
  (void)state;
  for (int calls = 0; calls < 4; calls += 3) {
    flow_dataset *dataset = batch(rows_of(range(60), calls, 1, (rows){ .drop_every = calls > 0 ? 5 : 0 }), 4, 0);
    flow_iterator *first, *second;
    flow_element a = { 0 }, b = { 0 };
    char position[512];
    OK(flow_iterator_new(NULL, dataset, &first));
    for (int i = 0; i < 5; i++) OK(flow_iterator_next(first, &a));
    assert_true(flow_iterator_save(first, position, sizeof position) < (int)sizeof position);
    OK(flow_iterator_new(NULL, dataset, &second));
    OK(flow_iterator_restore(second, position));
    do {
      OK(flow_iterator_next(first, &a));
      OK(flow_iterator_next(second, &b));
      assert_int_equal(a.count, b.count);
      if (a.count == 0) break;
      assert_int_equal(a.tensors[0]->shape[0], b.tensors[0]->shape[0]);
      assert_memory_equal(a.tensors[0]->data, b.tensors[0]->data, sizeof(float) * WIDTH * (size_t)a.tensors[0]->shape[0]);
    } while (a.count > 0);
    flow_iterator_close(first);
    flow_iterator_close(second);
    flow_dataset_release(dataset);
  }
}

/* Without memory for slots there are none: an error of the batch, or all rows. Nothing is lost. */
static void failing_allocations_leave_nothing(void **state)
{
  (void)state;
  for (int after = 0; after < 60; after++) {
    double before = flow_live_bytes();
    flow_dataset *dataset = batch(rows_of(range(9), 0, 1, (rows){ 0 }), 4, 0);
    flow_iterator *iterator;
    flow_element element = { 0 };
    OK(flow_iterator_new(NULL, dataset, &iterator));
    flow_fail_allocation(after);
    flow_status status = flow_iterator_next(iterator, &element);
    flow_fail_allocation(-1);
    assert_true(status == FLOW_OK || status == FLOW_OUT_OF_MEMORY);
    if (status == FLOW_OK) assert_true(((float *)element.tensors[0]->data)[3 * WIDTH] == 3);
    flow_element_clear(&element);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
    assert_true(flow_live_bytes() == before);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_are_written_where_they_stay), cmocka_unit_test(slots_are_offers), cmocka_unit_test(dropped_rows_are_closed_up),
    cmocka_unit_test(failures_lose_their_batch_only), cmocka_unit_test(a_pass_may_end_anywhere), cmocka_unit_test(restored_positions_fit),
    cmocka_unit_test(failing_allocations_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
