/* test_data_threads.c: stages with their own threads: order, bounds, failures, closing early, forks, and questions to the caller. */
#define _GNU_SOURCE
#include "child.h"
#include "datasets.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include "data/function.h"

/* ---- a function: squares; on the way it may be slow, be held, fail or drop ------------------------------------------------- */

typedef struct trial { flow_function base; int fail_at, keep_even, microseconds; } trial;
static _Atomic int workers_open, applications, held;

static flow_status trial_spec(const flow_function *function, const flow_element_spec *in, flow_element_spec *out)
{
  (void)function;
  *out = *in;
  return FLOW_OK;
}

static flow_status trial_open(const flow_function *function, void *worker)
{
  (void)function, (void)worker;
  workers_open++;
  return FLOW_OK;
}

static flow_status trial_apply(const flow_function *function, void *worker, const flow_element_key *key, const flow_element *place,
                               flow_element *in, flow_element *out)
{
  (void)place;
  const trial *self = (const trial *)function;
  double value;
  (void)worker;
  applications++;
  while (held) usleep(1000);
  FLOW_TRY(flow_tensor_item(in->tensors[0], &value));
  if (self->microseconds) usleep((unsigned)(self->microseconds * (1 + key->index % 3)));
  if (key->index == self->fail_at) return flow_fail(FLOW_CORRUPT_DATA, "element %g is broken", value);
  if (self->keep_even && (int)value % 2) return FLOW_OK;
  FLOW_TRY(flow_tensor_scalar(FLOW_INT64, value * value, &out->tensors[0]));
  out->count = 1;
  return FLOW_OK;
}

static void trial_close(const flow_function *function, void *worker)
{
  (void)function, (void)worker;
  workers_open--;
}

static const flow_function_class plain = { .name = "trial", .function_bytes = sizeof(trial), .worker_bytes = 8, .spec = trial_spec,
                                           .open = trial_open, .apply = trial_apply, .close = trial_close };
static const flow_function_class dropping = { .name = "dropping", .function_bytes = sizeof(trial), .worker_bytes = 8, .drops = 1,
                                              .spec = trial_spec, .open = trial_open, .apply = trial_apply, .close = trial_close };

static flow_dataset *squares(flow_dataset *input, int calls, int deterministic, trial parameters)
{
  flow_function *function;
  flow_dataset *out;
  OK(flow_function_new(parameters.keep_even ? &dropping : &plain, &function));
  parameters.base = *function;
  *(trial *)function = parameters;
  flow_status status = flow_dataset_map(input, function, calls, deterministic, 0, &out);
  flow_function_release(function);
  return made(status, input, out);
}
#define PLAIN ((trial){ .fail_at = -1 })
#define SLOW  ((trial){ .fail_at = -1, .microseconds = 200 })

static void expect_squares(flow_dataset *dataset, int count)
{
  pass *found = pass_of(dataset, count + 1);
  assert_int_equal(found->elements, count);
  for (int i = 0; i < count; i++) assert_true(found->numbers[i] == (double)i * i);
  free(found);
  flow_dataset_release(dataset);
  assert_int_equal(workers_open, 0);
}

/* ---- map ------------------------------------------------------------------------------------------------------------------------ */

static void parallel_map_keeps_the_order(void **state)
{
  (void)state;
  const int calls[] = { 0, 1, 2, 7, -1 };
  for (int i = 0; i < 5; i++) {
    expect_squares(squares(range(200), calls[i], 1, PLAIN), 200);
    expect_squares(squares(range(60), calls[i], 1, SLOW), 60);
    expect_squares(squares(range(0), calls[i], 1, SLOW), 0);
    check_positions(squares(range(9), calls[i], 1, PLAIN), 10, 1);
    check_positions(repeat(squares(shuffle(range(5), 3, 1), calls[i], 1, PLAIN), -1), 12, 5);
  }
  expect_squares(squares(range(900), -1, 1, (trial){ .fail_at = -1, .microseconds = 20 }), 900);      /* long enough to be tuned */
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void without_order_nothing_is_lost(void **state)
{
  (void)state;
  flow_dataset *dataset = squares(range(100), 4, 0, SLOW);
  pass *found = pass_of(dataset, 101);
  assert_int_equal(found->elements, 100);
  qsort(found->numbers, 100, sizeof(double), compare);
  for (int i = 0; i < 100; i++) assert_true(found->numbers[i] == (double)i * i);
  free(found);
  flow_dataset_release(dataset);
}

static void dropped_elements_leave_no_gap(void **state)
{
  (void)state;
  for (int calls = 0; calls < 4; calls += 3) {
    flow_dataset *dataset = squares(range(7), calls, 1, (trial){ .fail_at = -1, .keep_even = 1 });
    assert_true(flow_dataset_cardinality(dataset) == -2);
    check_positions(flow_dataset_retain(dataset), 4, 1);
    EXPECT_PASS(dataset, 0, 4, 16, 36);
  }
}

/* A failure comes at its element's place, with its message; after it the data goes on. */
static void failures_reach_the_consumer(void **state)
{
  (void)state;
  for (int kind = 0; kind < 4; kind++) {
    flow_dataset *dataset = squares(range(8), kind == 0 ? 0 : 3, 1, (trial){ .fail_at = 5 });
    if (kind == 2) dataset = prefetch(dataset, 2);
    if (kind == 3) dataset = squares(dataset, 2, 1, PLAIN);
    flow_iterator *iterator;
    flow_element element = { 0 };
    OK(flow_iterator_new(NULL, dataset, &iterator));
    for (int i = 0; i < 8; i++) {
      if (i == 5) {
        flow_fail(FLOW_OK, "nothing");
        FAILS(flow_iterator_next(iterator, &element), FLOW_CORRUPT_DATA, "element 5 is broken");
        assert_int_equal(element.count, 0);
      } else {
        OK(flow_iterator_next(iterator, &element));
        assert_int_equal(element.count, 1);
      }
    }
    OK(flow_iterator_next(iterator, &element));
    assert_int_equal(element.count, 0);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
  }
}

static void the_ring_bounds_what_is_computed_ahead(void **state)
{
  (void)state;
  flow_dataset *dataset = squares(range(1000), 2, 1, PLAIN);
  flow_iterator *iterator;
  flow_element element = { 0 };
  applications = 0;
  OK(flow_iterator_new(NULL, dataset, &iterator));
  usleep(2000);
  assert_int_equal(applications, 0);                  /* opened at the first element */
  OK(flow_iterator_next(iterator, &element));
  while (applications < 2) usleep(1000);
  usleep(20000);                                      /* time for more than there may be */
  assert_true(applications <= 1 + 4);
  flow_stage_report report;
  assert_int_equal(flow_iterator_stage(iterator, 0, &report), 1);
  assert_int_equal(report.threads, 2);
  assert_true(report.capacity == 4);
  flow_element_clear(&element);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  assert_int_equal(workers_open, 0);
}

static void closing_early_joins_all_threads(void **state)
{
  (void)state;
  for (int taken = 0; taken < 6; taken++) {
    flow_dataset *dataset = prefetch(batch(prefetch(squares(repeat(range(10), -1), 3, 1, SLOW), 4), 2, 0), 3);
    flow_iterator *iterator;
    pass found = { 0 };
    OK(flow_iterator_new(NULL, dataset, &iterator));
    pass_run(iterator, taken, &found);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
    assert_int_equal(workers_open, 0);
  }
}

static void two_passes_at_once(void **state)
{
  (void)state;
  flow_dataset *dataset = prefetch(squares(range(50), 2, 1, SLOW), -1);
  flow_iterator *a, *b;
  pass of_a = { 0 }, of_b = { 0 };
  OK(flow_iterator_new(NULL, dataset, &a));
  OK(flow_iterator_new(NULL, dataset, &b));
  for (int i = 0; i < 51; i++) {
    pass_run(a, 1, &of_a);
    pass_run(b, 1, &of_b);
  }
  assert_int_equal(of_a.elements, 50);
  assert_memory_equal(of_a.numbers, of_b.numbers, sizeof(double) * 50);
  flow_iterator_close(a);
  flow_iterator_close(b);
  flow_dataset_release(dataset);
}

static void prefetch_changes_nothing(void **state)
{
  (void)state;
  EXPECT_PASS(prefetch(range(4), 2), 0, 1, 2, 3);
  EXPECT_PASS(prefetch(prefetch(range(4), 1), -1), 0, 1, 2, 3);
  check_positions(prefetch(repeat(shuffle(range(6), 4, 1), -1), 3), 12, 6);
  check_positions(prefetch(range(6), -1), 7, 1);
}

/* ---- forks -------------------------------------------------------------------------------------------------------------------- */

static int child_runs(flow_dataset *dataset, flow_iterator *old)
{
  flow_element element = { 0 };
  if (flow_iterator_next(old, &element) != FLOW_INVALID_STATE || !strstr(flow_last_error(), "before the process forked")) return 1;
  flow_iterator_close(old);
  flow_iterator *fresh;
  if (flow_iterator_new(NULL, dataset, &fresh) != FLOW_OK) return 2;
  int count = 0;
  while (flow_iterator_next(fresh, &element) == FLOW_OK && element.count > 0) count++;
  flow_iterator_close(fresh);
  return count == 40 ? 0 : 3;
}

static void a_forked_child_opens_passes_of_its_own(void **state)
{
  (void)state;
#if defined(__SANITIZE_THREAD__)
  print_message("ThreadSanitizer counts the parent's threads in a forked child and ends it when it starts its own\n");
  skip();
#endif
  flow_dataset *dataset = prefetch(squares(range(40), 3, 1, SLOW), 2);
  flow_iterator *iterator;
  pass found = { 0 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  pass_run(iterator, 5, &found);
  pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    _exit(child_runs(dataset, iterator));
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  pass_run(iterator, 50, &found);
  assert_int_equal(found.elements, 40);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
}

/* Whatever the parent's threads hold when it forks: the child closes the pass, or goes on from a saved position with its own threads. */
static int child_goes_on(flow_dataset *dataset, flow_iterator *iterator, const char *position)
{
  flow_element element = { 0 };
  int count = 0;
  if (flow_iterator_restore(iterator, position) != FLOW_OK) return 1;
  while (flow_iterator_next(iterator, &element) == FLOW_OK && element.count > 0) count++;
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  return count == 40 - 5 ? 0 : 2;
}

static void a_child_forked_at_any_moment_waits_for_nobody(void **state)
{
  (void)state;
#if defined(__SANITIZE_THREAD__)
  print_message("ThreadSanitizer counts the parent's threads in a forked child and ends it when it starts its own\n");
  skip();
#elif defined(__SANITIZE_ADDRESS__)
  print_message("AddressSanitizer's allocator has locks that a thread of the parent may hold: malloc, then, waits for ever in the child\n");
  skip();
#endif
  for (int i = 0; i < 200; i++) {
    flow_dataset *dataset = prefetch(batch(squares(range(1000), 3, 1, PLAIN), 25, 0), 2);
    flow_iterator *iterator;
    pass found = { 0 };
    char position[200];
    OK(flow_iterator_new(NULL, dataset, &iterator));
    pass_run(iterator, 5, &found);
    assert_true(flow_iterator_save(iterator, position, sizeof position) < (int)sizeof position);
    pid_t child = fork();
    if (child == 0) {
      alarm(CHILD_SECONDS);
      if (i % 8 == 0) _exit(child_goes_on(dataset, iterator, position));
      flow_iterator_close(iterator);
      _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
  }
}

/* ---- questions ------------------------------------------------------------------------------------------------------------------ */

static flow_dataset *generator(void)
{
  flow_component component = { .dtype = FLOW_FLOAT64 };
  flow_dataset *out;
  OK(flow_dataset_from_generator(7, &component, 1, &out));
  return out;
}

/* Runs a pass, playing the part of Lua: pass p of the generator gives p * 100, p * 100 + 1, ... , `length` of them. */
static int run_generator(flow_iterator *iterator, int most, int length, pass *into)
{
  int next[16] = { 0 }, asked = 0;
  flow_element element = { 0 };
  for (int got = 0; got < most;) {
    OK(flow_iterator_next(iterator, &element));
    if (element.count == 0) break;
    if (element.count > 0) {
      pass_add(into, &element);
      got++;
      continue;
    }
    assert_int_equal(element.callback, 7);
    flow_element answer = { 0 };
    asked++;
    int number = (int)element.pass;
    if (next[number] < length) {
      OK(flow_tensor_scalar(FLOW_FLOAT64, number * 100 + next[number]++, &answer.tensors[0]));
      answer.count = 1;
    }
    OK(flow_iterator_answer(iterator, &answer, NULL, NULL));
    flow_element_clear(&answer);
  }
  flow_element_clear(&element);
  return asked;
}

static void generators_are_pumped_below_every_stage(void **state)
{
  (void)state;
  for (int kind = 0; kind < 5; kind++) {
    flow_dataset *dataset = generator();
    if (kind == 1) dataset = prefetch(dataset, 2);
    if (kind == 2) dataset = prefetch(batch(dataset, 1, 0), 3);
    if (kind == 3) dataset = shuffle(prefetch(dataset, 1), 2, 1);
    if (kind == 4) dataset = prefetch(zip(prefetch(generator(), 2), dataset), 1);
    flow_iterator *iterator;
    pass found = { 0 };
    OK(flow_iterator_new(NULL, dataset, &iterator));
    run_generator(iterator, 100, 6, &found);
    assert_int_equal(found.elements, 6);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
  }
}

static void generators_are_asked_only_for_what_is_wanted(void **state)
{
  (void)state;
  flow_dataset *dataset = take(generator(), 3);
  flow_iterator *iterator;
  pass found = { 0 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  assert_int_equal(run_generator(iterator, 100, 6, &found), 3);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  dataset = repeat(generator(), 2);
  memset(&found, 0, sizeof found);
  OK(flow_iterator_new(NULL, dataset, &iterator));
  OK(flow_iterator_skip(iterator, 3));
  run_generator(iterator, 100, 2, &found);
  expect_pass(&found, 1, (double[]){ 101 });
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
}

static void wrong_answers_are_named(void **state)
{
  (void)state;
  flow_dataset *dataset = generator();
  flow_iterator *iterator;
  flow_element element = { 0 }, answer = { .count = 1 };
  OK(flow_iterator_new(NULL, dataset, &iterator));
  FAILS(flow_iterator_answer(iterator, NULL, NULL, NULL), FLOW_INVALID_STATE, "nothing was asked");
  OK(flow_iterator_next(iterator, &element));
  assert_int_equal(element.count, -1);
  FAILS(flow_iterator_answer(iterator, &element, NULL, NULL), FLOW_INVALID_ARGUMENT, "element has -1 components"); /* a question */
  FAILS(flow_iterator_next(iterator, &element), FLOW_INVALID_STATE, "waits for an answer");
  OK(flow_tensor_scalar(FLOW_INT32, 1, &answer.tensors[0]));
  OK(flow_iterator_answer(iterator, &answer, NULL, NULL));
  flow_element_clear(&answer);
  FAILS(flow_iterator_next(iterator, &element), FLOW_INVALID_ARGUMENT, "component 1 of an element is int32 {}, expected float64 {}");
  OK(flow_iterator_next(iterator, &element));
  OK(flow_iterator_answer(iterator, NULL, NULL, "line 3: it broke"));
  FAILS(flow_iterator_next(iterator, &element), FLOW_INVALID_ARGUMENT, "line 3: it broke");
  OK(flow_iterator_next(iterator, &element));
  assert_int_equal(element.count, -1);
  flow_iterator_close(iterator);                  /* with a question open */
  flow_dataset_release(dataset);
}

static void *interrupt_soon(void *context)
{
  usleep(30000);
  flow_interrupt(context, 1);
  return NULL;
}

static void an_interrupt_ends_waiting(void **state)
{
  (void)state;
  flow_context *context;
  flow_iterator *iterator;
  flow_element element = { 0 };
  pthread_t thread;
  OK(flow_context_new(&context));
  held = 1;
  flow_dataset *dataset = prefetch(squares(range(3), 1, 1, PLAIN), 1);
  OK(flow_iterator_new(context, dataset, &iterator));
  pthread_create(&thread, NULL, interrupt_soon, context);
  assert_int_equal(flow_iterator_next(iterator, &element), FLOW_INTERRUPTED);
  pthread_join(thread, NULL);
  held = 0;
  flow_interrupt(context, 0);
  OK(flow_iterator_next(iterator, &element));
  assert_int_equal(element.count, 1);
  flow_element_clear(&element);
  flow_iterator_close(iterator);
  flow_dataset_release(dataset);
  flow_context_release(context);
}

static void every_failed_allocation_is_survived(void **state)
{
  (void)state;
  int failures = 0;
  for (int after = 0; after < 150; after++) {
    flow_dataset *dataset = prefetch(batch(squares(range(20), 2, 1, PLAIN), 3, 0), 2);
    flow_iterator *iterator = NULL;
    flow_element element = { 0 };
    flow_fail_allocation(after);
    flow_status status = flow_iterator_new(NULL, dataset, &iterator);
    for (int i = 0; i < 8 && status == FLOW_OK; i++) status = flow_iterator_next(iterator, &element);
    flow_fail_allocation(-1);
    failures += status == FLOW_OUT_OF_MEMORY;
    assert_true(status == FLOW_OK || status == FLOW_OUT_OF_MEMORY);
    flow_element_clear(&element);
    flow_iterator_close(iterator);
    flow_dataset_release(dataset);
  }
  assert_true(failures > 20);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(parallel_map_keeps_the_order),
    TEST(without_order_nothing_is_lost),
    TEST(dropped_elements_leave_no_gap),
    TEST(failures_reach_the_consumer),
    TEST(the_ring_bounds_what_is_computed_ahead),
    TEST(closing_early_joins_all_threads),
    TEST(two_passes_at_once),
    TEST(prefetch_changes_nothing),
    TEST(a_forked_child_opens_passes_of_its_own),
    TEST(a_child_forked_at_any_moment_waits_for_nobody),
    TEST(generators_are_pumped_below_every_stage),
    TEST(generators_are_asked_only_for_what_is_wanted),
    TEST(wrong_answers_are_named),
    TEST(an_interrupt_ends_waiting),
    TEST(every_failed_allocation_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
