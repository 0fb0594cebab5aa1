/* test_variable_group.c: variables that share memory with other processes: they are in one copy of it or the other, get memory of their own
 * before one process alone writes to them, and are where they were when memory is out. */
#include "graphs.h"
#include "graph/variable_group.h"

enum { SIZE = 12, ARRAYS = 2 };

typedef struct memory {
  flow_counted counted;
  float floats[2 * ARRAYS * SIZE];
  int released;
} memory;

static void note_release(void *self)
{
  ((memory *)self)->released = 1;
}

/* Two arrays, each with a variable of all of it and one of its last four numbers. */
typedef struct shelf {
  flow_variable *all[ARRAYS], *last[ARRAYS];
  flow_variable_group *group;
} shelf;

static shelf make_shelf(void)
{
  shelf s;
  OK(flow_variable_group_new(&s.group));
  for (int k = 0; k < ARRAYS; k++) {
    flow_tensor *flat = noise(1, SHAPE(SIZE), 1 + (unsigned)k), *part;
    OK(flow_variable_over(flat, "all", 1, FLOW_MIRRORED, &s.all[k]));
    OK(flow_tensor_view(flat, 2, SHAPE(2, 2), SHAPE(2, 1), SIZE - 4, &part));
    OK(flow_variable_over(keep(part, release_tensor), "last", 1, FLOW_MIRRORED, &s.last[k]));
    keep(s.all[k], release_variable);
    keep(s.last[k], release_variable);
  }
  OK(flow_variable_group_add(s.group, s.all, ARRAYS));
  OK(flow_variable_group_add(s.group, s.last, ARRAYS));
  return s;
}

static flow_status share(shelf *s, memory *m)
{
  flow_tensor *flats[2 * ARRAYS] = { NULL };
  flow_status status = FLOW_OK;
  for (int k = 0; k < 2 * ARRAYS && status == FLOW_OK; k++)
    status = flow_tensor_new_shared(&m->counted, m->floats + k * SIZE, FLOW_FLOAT32, SIZE, &flats[k]);
  if (status == FLOW_OK) status = flow_variable_group_share(s->group, s->all, flats, flats + ARRAYS, ARRAYS);
  flow_tensors_release(flats, 2 * ARRAYS);
  return status;
}

static float *at(const flow_variable *v)
{
  return flow_tensor_elements(v->tensor);
}

static void expect_places(const shelf *s, const float *first)
{
  for (int k = 0; k < ARRAYS; k++) {
    assert_ptr_equal(at(s->all[k]), first + k * SIZE);
    assert_ptr_equal(at(s->last[k]), first + k * SIZE + SIZE - 4);
  }
}

static void they_change_over_and_part(void **state)
{
  (void)state;
  memory m = { .released = 0 };
  shelf s = make_shelf();
  float before[ARRAYS];
  for (int k = 0; k < ARRAYS; k++) before[k] = at(s.last[k])[3];
  flow_counted_init(&m.counted, note_release);
  OK(share(&s, &m));
  expect_places(&s, m.floats);
  for (int k = 0; k < ARRAYS; k++) assert_true(at(s.last[k])[3] == before[k]);
  uint64_t content = s.all[0]->tensor->storage->content;
  for (int i = 0; i < ARRAYS * SIZE; i++) m.floats[ARRAYS * SIZE + i] = (float)i;
  flow_variable_group_change_over(s.group);
  expect_places(&s, m.floats + ARRAYS * SIZE);
  assert_true(s.all[0]->tensor->storage->content != content);
  flow_variable *late; /* one that joins is carried along */
  OK(flow_variable_over(s.all[1]->tensor, "late", 1, FLOW_MIRRORED, &late));
  keep(late, release_variable);
  OK(flow_variable_group_add(s.group, &late, 1));
  flow_variable_group_change_over(s.group);
  assert_ptr_equal(at(late), m.floats + SIZE);
  flow_variable_group_change_over(s.group);
  flow_tensor *there; /* reading leaves it, writing takes it out */
  OK(flow_variable_peek(s.all[0], &there));
  assert_ptr_equal(flow_tensor_elements(there), m.floats + ARRAYS * SIZE);
  flow_tensor_release(there);
  OK(flow_variable_assign(context, s.last[0], keep(zeros(FLOW_FLOAT32, 2, SHAPE(2, 2)), release_tensor)));
  for (int k = 0; k < ARRAYS; k++) {
    assert_true(at(s.all[k]) < m.floats || at(s.all[k]) >= m.floats + 2 * ARRAYS * SIZE);
    assert_true(at(s.all[k])[3] == (float)(k * SIZE + 3));
    assert_ptr_equal(at(s.all[k]) + SIZE - 4, at(s.last[k]));
  }
  assert_true(at(s.all[0])[SIZE - 1] == 0 && m.floats[ARRAYS * SIZE + SIZE - 1] == (float)(SIZE - 1));
  flow_counted_release(&m.counted);
  assert_int_equal(m.released, 1);
  flow_variable_group_release(s.group);
  assert_null(s.all[0]->group);
}

/* Each allocation fails once: the variables are where they were, and the next attempt succeeds. */
static void without_memory_they_stay(void **state)
{
  (void)state;
  int failures = 0;
  memory m = { .released = 0 };
  shelf s = make_shelf();
  flow_counted_init(&m.counted, note_release);
  for (int failed = 1; failed; failures++) {
    const float *before = at(s.all[0]);
    flow_fail_allocation(failures);
    failed = share(&s, &m) != FLOW_OK;
    flow_fail_allocation(-1);
    if (failed) assert_ptr_equal(at(s.all[0]), before);
  }
  expect_places(&s, m.floats);
  for (int failed = 1, allocation = 0; failed; allocation++, failures++) {
    flow_fail_allocation(allocation);
    failed = flow_variable_own(s.last[1]) != FLOW_OK;
    flow_fail_allocation(-1);
    if (failed) expect_places(&s, m.floats);
  }
  assert_true(failures > 6);
  OK(share(&s, &m));
  flow_fail_allocation(0); /* a group that goes meanwhile: nobody may write there any more */
  flow_variable_group_release(s.group);
  flow_fail_allocation(-1);
  expect_places(&s, m.floats);
  FAILS(flow_variable_assign(context, s.last[0], keep(zeros(FLOW_FLOAT32, 2, SHAPE(2, 2)), release_tensor)), FLOW_OUT_OF_MEMORY, "last");
  flow_counted_release(&m.counted);
  release_kept_down_to(0);
  assert_int_equal(m.released, 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = { GRAPH_TEST(they_change_over_and_part), GRAPH_TEST(without_memory_they_stay) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
