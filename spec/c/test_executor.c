/* test_executor.c: runs of plans: the verdict before effects, batches of any size, threads, interrupts, memory. */
#include "graphs.h"
#include "autodiff/apply.h"
#include "run/replicas/replica_set.h"

#include <math.h>
#include <pthread.h>

enum { ROWS = 400 };   /* enough that a team shares the work */

typedef struct trainer { net n; flow_optimizer *optimizer; flow_instance *instance; } trainer;

static trainer make_trainer(double capacity)
{
  trainer t = { .n = make_net(), .optimizer = optimizer_of("Adam") };
  flow_plan *plan;
  OK(trace_step(&t.n, t.optimizer, &plan));
  t.instance = instance_of(keep(plan, release_plan), capacity);
  return t;
}

/* Variables, slots, count and rate of a trainer, copied. */
enum { MOST_STATE = 3 * NET_VARIABLES + 2 };
typedef struct snapshot { flow_tensor *tensors[MOST_STATE]; int count; } snapshot;

static flow_variable *state_of(const trainer *t, int i)
{
  if (i < NET_VARIABLES) return t->n.variables[i];
  if (i < NET_VARIABLES + flow_optimizer_slot_count(t->optimizer)) return flow_optimizer_slot(t->optimizer, i - NET_VARIABLES);
  i -= NET_VARIABLES + flow_optimizer_slot_count(t->optimizer);
  return i == 0 ? flow_optimizer_iterations(t->optimizer) : i == 1 ? flow_optimizer_learning_rate(t->optimizer) : NULL;
}

static snapshot take_snapshot(const trainer *t)
{
  snapshot s = { .count = 0 };
  for (flow_variable *v; (v = state_of(t, s.count)) != NULL; s.count++) s.tensors[s.count] = value_of(v);
  assert_int_equal(s.count, MOST_STATE);
  return s;
}

static void expect_snapshot(const trainer *t, const snapshot *s)
{
  for (int i = 0; i < s->count; i++) expect_same_bits(state_of(t, i)->tensor, s->tensors[i]);
}

static void train(const trainer *t, int64_t rows, unsigned seed, flow_tensor **loss)
{
  run(t->instance, (flow_tensor *[]){ images_of(rows, seed), labels_of(rows) }, 2, loss);
}

/* ---- the verdict ------------------------------------------------------------------------------------------------- */

static void test_a_bad_label_changes_nothing(void **state)
{
  (void)state;
  trainer bad = make_trainer(ROWS), good = make_trainer(ROWS);
  flow_tensor *wrong = labels_of(ROWS), *loss, *expected;
  ((int32_t *)(void *)wrong->data)[ROWS - 3] = NET_CLASSES;
  for (int threads = 1; threads <= 3; threads++) {
    OK(flow_set_threads(threads));
    snapshot before = take_snapshot(&bad);
    flow_tensor *inputs[2] = { images_of(ROWS, 3), wrong };
    for (int i = 0; i < 4; i++) {
      FAILS(flow_instance_run(context, bad.instance, inputs, 2, &loss), FLOW_INVALID_ARGUMENT, "label 3");
      expect_snapshot(&bad, &before);
    }
    train(&bad, ROWS, 5, &loss);
    train(&good, ROWS, 5, &expected);
    expect_same_bits(loss, expected);
  }
  snapshot after = take_snapshot(&good);
  expect_snapshot(&bad, &after);
  OK(flow_set_threads(0));
}

/* A failure after an effect takes the effect back. */
static void test_a_failure_behind_an_update(void **state)
{
  (void)state;
  flow_variable *w = variable_of(noise(2, SHAPE(4, 3), 1), "w");
  flow_optimizer *adam = optimizer_of("Adam");
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 4)), *labels = input_of(FLOW_INT32, 1, SHAPE(-1));
  flow_tensor *gradient = noise(2, SHAPE(4, 3), 2);
  OK(flow_optimizer_apply(context, adam, &gradient, &w, 1));
  flow_tensor *loss = sum_of(op3(FLOW_OP_sparse_cross_entropy, OP2(matmul, x, reading(w)), labels, NULL, NULL));
  flow_instance *instance = instance_of(PLAN(loss), 2);
  flow_tensor *inputs[2] = { noise(2, SHAPE(2, 4), 3), labels_of(2) }, *out;
  flow_tensor *before = value_of(w), *slot = value_of(flow_optimizer_slot(adam, 0));
  ((int32_t *)(void *)inputs[1]->data)[1] = -1;
  FAILS(flow_instance_run(context, instance, inputs, 2, &out), FLOW_INVALID_ARGUMENT, "label -1");
  expect_same_bits(w->tensor, before);
  expect_same_bits(flow_optimizer_slot(adam, 0)->tensor, slot);
  assert_true(flow_variable_number(flow_optimizer_iterations(adam)) == 0);
  ((int32_t *)(void *)inputs[1]->data)[1] = 2;
  run(instance, inputs, 2, &out);
  assert_memory_not_equal(w->tensor->data, before->data, sizeof(float));
  assert_true(flow_variable_number(flow_optimizer_iterations(adam)) == 1);
}

static void test_not_a_number_is_harmless(void **state)
{
  (void)state;
  trainer t = make_trainer(ROWS);
  flow_tensor *images = images_of(ROWS, 3), *loss;
  ((float *)(void *)images->data)[17] = NAN;
  ((float *)(void *)images->data)[80] = INFINITY;
  run(t.instance, (flow_tensor *[]){ images, labels_of(ROWS) }, 2, &loss);
  for (int i = 0; i < NET_VARIABLES; i++) OK(flow_variable_assign(context, t.n.variables[i], number(0.5)));
  for (int i = 0; i < flow_optimizer_slot_count(t.optimizer); i++)
    OK(flow_variable_assign(context, flow_optimizer_slot(t.optimizer, i), number(0)));
  train(&t, ROWS, 4, &loss);   /* the memory of the run before leaves no trace */
  double value;
  OK(flow_tensor_item(loss, &value));
  assert_true(isfinite(value));
  for (int i = 0; i < NET_VARIABLES; i++)
    for (int64_t k = 0; k < flow_tensor_size(t.n.variables[i]->tensor); k++)
      assert_true(isfinite(((float *)(void *)t.n.variables[i]->tensor->data)[k]));
}

/* ---- batches -------------------------------------------------------------------------------------------------------- */

static void test_any_number_of_rows(void **state)
{
  (void)state;
  static const int64_t rows[] = { 400, 7, 1, 399, 16, 0, 400 };
  trainer t = make_trainer(ROWS);
  net eager = make_net();
  flow_optimizer *adam = optimizer_of("Adam");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    attempt a = { .count = 0 };
    flow_tensor *images = images_of(rows[i], (unsigned)i), *labels = labels_of(rows[i]), *loss, *expected;
    run(t.instance, (flow_tensor *[]){ images, labels }, 2, &loss);
    expected = net_step(&a, &eager, adam, images, labels);
    OK(a.status);
    if (rows[i] > 0) expect_close(loss, expected, 1e-5);
    end_attempt(&a);
    for (int k = 0; k < NET_VARIABLES; k++)
      for (int64_t e = 0; e < flow_tensor_size(t.n.variables[k]->tensor); e++)
        assert_true(isfinite(((float *)(void *)t.n.variables[k]->tensor->data)[e]));
    /* Adam's first steps have the size of the rate whatever the gradient: rounding may show. */
    for (int k = 0; k < NET_VARIABLES; k++) expect_close(t.n.variables[k]->tensor, eager.variables[k]->tensor, 2e-4);
  }
}

static void test_what_a_run_refuses(void **state)
{
  (void)state;
  trainer t = make_trainer(8);
  flow_tensor *images = images_of(9, 1), *labels = labels_of(9), *out, *few = labels_of(3);
  FAILS(flow_instance_run(context, t.instance, (flow_tensor *[]){ images, labels }, 2, &out), FLOW_INVALID_ARGUMENT, "capacity of 8");
  FAILS(flow_instance_run(context, t.instance, (flow_tensor *[]){ images_of(8, 1), few }, 2, &out), FLOW_INVALID_ARGUMENT,
        "input 2 is int32 {3}");
  FAILS(flow_instance_run(context, t.instance, (flow_tensor *[]){ labels, images }, 2, &out), FLOW_INVALID_ARGUMENT, "input 1 is int32");
  FAILS(flow_instance_run(context, t.instance, &images, 1, &out), FLOW_INVALID_ARGUMENT, "takes 2 inputs, found 1");
  FAILS(flow_instance_run_rows(context, t.instance, (flow_tensor *[]){ images, labels }, 2, NULL, 0, 9),
        FLOW_INVALID_ARGUMENT, "capacity of 8");
  flow_tensor **both = (flow_tensor *[]){ images, labels };
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, NULL, 0, NAN), FLOW_INVALID_ARGUMENT, "number of rows");
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, NULL, 0, 1e300), FLOW_INVALID_ARGUMENT, "capacity of 8");
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, NULL, NAN, 4), FLOW_INVALID_ARGUMENT, "first row");
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, NULL, 1e6, 4), FLOW_INVALID_ARGUMENT, "plan was traced for");
  flow_tensor *gap = keep(view_of(images, 4, SHAPE(4, 6, 6, 1), SHAPE(72, 6, 1, 1), 0), release_tensor);
  FAILS(flow_instance_run_rows(context, t.instance, (flow_tensor *[]){ gap, labels }, 2, NULL, 0, 4),
        FLOW_INVALID_ARGUMENT, "not contiguous");
  flow_tensor *order;
  OK(flow_tensor_new(FLOW_INT64, 1, SHAPE(3), &order));
  keep(order, release_tensor);
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, few, 0, 3), FLOW_INVALID_ARGUMENT, "order of rows is a int32 tensor");
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, order, 1, 3), FLOW_INVALID_ARGUMENT, "rows 1 to 3 of an order");
  ((int64_t *)order->data)[2] = 9;
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, order, 0, 3), FLOW_INVALID_ARGUMENT, "names row 9 of a tensor of 9 rows");
  run(t.instance, (flow_tensor *[]){ gap, labels_of(4) }, 2, &out);   /* the other entry copies */
}

/* An instance for which there was no memory at a new size says so at every call, also without rows, until there is memory again. */
static void test_an_instance_without_memory_refuses_runs(void **state)
{
  (void)state;
  trainer t = make_trainer(8);
  flow_tensor *both[] = { images_of(8, 1), labels_of(8) }, *loss;
  flow_measurement measured;
  char text[4096];
  flow_fail_allocation(3);
  flow_status status = flow_instance_resize(t.instance, 16);
  flow_fail_allocation(-1);
  assert_int_equal(status, FLOW_OUT_OF_MEMORY);
  assert_true(flow_instance_capacity(t.instance) == 0);
  FAILS(flow_instance_run(context, t.instance, both, 2, &loss), FLOW_OUT_OF_MEMORY, "no memory to make this instance");
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, NULL, 0, 8), FLOW_OUT_OF_MEMORY, "no memory to make this instance");
  FAILS(flow_instance_run_rows(context, t.instance, both, 2, NULL, 0, 0), FLOW_OUT_OF_MEMORY, "no memory to make this instance");
  FAILS(flow_instance_set_replicas(t.instance, 2, NULL, NULL), FLOW_OUT_OF_MEMORY, "no memory to make this instance");
  FAILS(flow_instance_measure(t.instance, 0, 0, &measured), FLOW_OUT_OF_MEMORY, "no memory to make this instance");
  assert_true(flow_instance_describe(t.instance, text, sizeof text) > 0);
  OK(flow_instance_resize(t.instance, 16));
  train(&t, 8, 1, &loss);
}

/* Variables after batches in one call are those after one call for each; a failure tells how many were whole. */
static void test_batches_are_runs_one_behind_the_other(void **state)
{
  (void)state;
  enum { ALL = 29, SIZE = 8 };
  trainer one = make_trainer(SIZE), many = make_trainer(SIZE);
  flow_tensor *inputs[2] = { images_of(ALL, 5), labels_of(ALL) }, *order;
  double done = -1;
  OK(flow_tensor_new(FLOW_INT64, 1, SHAPE(ALL), &order));
  keep(order, release_tensor);
  for (int i = 0; i < ALL; i++) ((int64_t *)order->data)[i] = i * 7 % ALL;
  for (int pass = 0; pass < 2; pass++) {
    const flow_tensor *by = pass ? order : NULL;
    for (int first = 3; first < ALL; first += SIZE) {
      flow_instance_scalars(one.instance, 9, (first - 3) / SIZE, first);
      OK(flow_instance_run_rows(context, one.instance, inputs, 2, by, first, first + SIZE < ALL ? SIZE : ALL - first));
    }
    flow_instance_scalars(many.instance, 9, 0, 3);
    OK(flow_instance_run_batches(context, many.instance, inputs, 2, by, 3, ALL - 3, SIZE, &done));
    assert_true(done == 4);
    for (int k = 0; k < NET_VARIABLES; k++) expect_close(many.n.variables[k]->tensor, one.n.variables[k]->tensor, 0);
  }
  OK(flow_instance_run_batches(context, many.instance, inputs, 2, NULL, 0, 0, SIZE, &done));
  assert_true(done == 0);
  ((int64_t *)order->data)[2 * SIZE + 1] = ALL;
  FAILS(flow_instance_run_batches(context, many.instance, inputs, 2, order, 0, ALL, SIZE, &done), FLOW_INVALID_ARGUMENT, "names row 29");
  assert_true(done == 2);
  FAILS(flow_instance_run_batches(context, many.instance, inputs, 2, NULL, 0, ALL, 0, &done), FLOW_INVALID_ARGUMENT, "in batches of 0");
  FAILS(flow_instance_run_batches(context, many.instance, inputs, 2, NULL, 0, NAN, SIZE, &done), FLOW_INVALID_ARGUMENT, "in batches of 8");
  FAILS(flow_instance_run_batches(context, many.instance, inputs, 2, NULL, 0, ALL + 1, SIZE, &done), FLOW_INVALID_ARGUMENT, "traced for");
}

static void test_steady_runs_allocate_nothing(void **state)
{
  (void)state;
  trainer t = make_trainer(ROWS);
  flow_tensor *inputs[2] = { images_of(ROWS, 1), labels_of(ROWS) };
  for (int i = 0; i < 4; i++) OK(flow_instance_run_rows(context, t.instance, inputs, 2, NULL, 0, ROWS));
  double before = flow_allocation_count();
  for (int i = 0; i < 20; i++) OK(flow_instance_run_rows(context, t.instance, inputs, 2, NULL, 0, i % 2 ? ROWS : 5));
  assert_true(flow_allocation_count() == before);
}

/* ---- threads ---------------------------------------------------------------------------------------------------------- */

static void test_threads_do_not_change_results(void **state)
{
  (void)state;
  static const int threads[] = { 1, 2, 5 };
  snapshot first = { .count = 0 };
  flow_tensor *loss, *first_loss = NULL;
  for (int i = 0; i < 3; i++) {
    trainer t = make_trainer(1000);
    OK(flow_set_threads(threads[i]));
    for (int step = 0; step < 6; step++) train(&t, step == 3 ? 333 : 1000, (unsigned)step, &loss);
    if (i == 0) {
      first = take_snapshot(&t);
      first_loss = loss;
    } else {
      expect_snapshot(&t, &first);
      expect_same_bits(loss, first_loss);
    }
  }
  OK(flow_set_threads(0));
}

typedef struct caller {
  flow_context  *context;
  flow_instance *instance;
  flow_tensor   *inputs[2], *expected;
  int            runs, refused, wrong;
} caller;

static void *call_often(void *argument)
{
  caller *c = argument;
  for (int i = 0; i < c->runs; i++) {
    flow_tensor *out;
    flow_status status = flow_instance_run(c->context, c->instance, c->inputs, 1, &out);
    if (status == FLOW_OK) {
      c->wrong += memcmp(out->data, c->expected->data, out->storage->bytes) != 0;
      flow_tensor_release(out);
    } else {
      c->refused++;
      c->wrong += status != FLOW_INVALID_STATE || !strstr(flow_last_error(), "one instance per concurrent caller");
    }
  }
  return NULL;
}

static flow_plan *inference_plan(void)
{
  flow_variable *w = variable_of(noise(2, SHAPE(50, 40), 1), "w"), *b = variable_of(noise(1, SHAPE(40), 2), "b");
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 50));
  return PLAN(OP1(softmax, OP1(relu, OP2(add, OP2(matmul, x, reading(w)), reading(b)))));
}

static void run_two_callers(caller callers[2])
{
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, call_often, &callers[1]), 0);
  call_often(&callers[0]);
  pthread_join(thread, NULL);
  assert_int_equal(callers[0].wrong + callers[1].wrong, 0);
}

static void two_callers(flow_instance *first, flow_instance *second, caller callers[2])
{
  flow_context *other;
  OK(flow_context_new(&other));
  OK(flow_set_threads(2));
  for (int i = 0; i < 2; i++) {
    callers[i] = (caller){ .context = i ? other : context, .instance = i ? second : first, .runs = 200 };
    callers[i].inputs[0] = noise(2, SHAPE(64, 50), 3 + (unsigned)i);
    run(callers[i].instance, callers[i].inputs, 1, &callers[i].expected);
  }
  run_two_callers(callers);
  OK(flow_set_threads(0));
  flow_context_release(other);
}

static void test_two_instances_in_two_threads(void **state)
{
  (void)state;
  caller callers[2];
  flow_plan *plan = inference_plan();
  two_callers(instance_of(plan, 64), instance_of(plan, 64), callers);
  assert_int_equal(callers[0].refused + callers[1].refused, 0);
}

static void test_one_instance_in_two_threads(void **state)
{
  (void)state;
  caller callers[2];
  flow_instance *instance = instance_of(inference_plan(), 64);
  two_callers(instance, instance, callers);   /* each run is right or refused */
  flow_tensor *out;
  atomic_store(&instance->run->running, 1);
  FAILS(flow_instance_run(context, instance, callers[0].inputs, 1, &out), FLOW_INVALID_STATE, "one instance per concurrent caller");
  FAILS(flow_instance_run_rows(context, instance, callers[0].inputs, 1, NULL, 0, 64),
        FLOW_INVALID_STATE, "one instance per concurrent caller");
  atomic_store(&instance->run->running, 0);
  run(instance, callers[0].inputs, 1, &out);
  expect_same_bits(out, callers[0].expected);
}

/* ---- interrupts ---------------------------------------------------------------------------------------------------------- */

static void test_an_interrupt_stops_a_run(void **state)
{
  (void)state;
  trainer t = make_trainer(ROWS);
  flow_tensor *inputs[2] = { images_of(ROWS, 3), labels_of(ROWS) }, *out;
  snapshot before = take_snapshot(&t);
  for (int threads = 1; threads <= 2; threads++) {
    OK(flow_set_threads(threads));
    flow_interrupt(context, 1);
    assert_int_equal(flow_interrupted(context), 1);
    FAILS(flow_instance_run(context, t.instance, inputs, 2, &out), FLOW_INTERRUPTED, "interrupted");
    FAILS(flow_apply1(context, FLOW_OP_neg, inputs[0], NULL, NULL, NULL, &out), FLOW_INTERRUPTED, "interrupted");
    expect_snapshot(&t, &before);
    flow_interrupt(context, 0);
  }
  run(t.instance, inputs, 2, &out);
  assert_true(flow_variable_number(flow_optimizer_iterations(t.optimizer)) == 1);
  OK(flow_set_threads(0));
}

static _Atomic int stop_interrupting;
static void *interrupt_often(void *unused)
{
  for (unsigned i = 0; !atomic_load(&stop_interrupting); i++) flow_interrupt(context, i % 64 == 0);
  return unused;
}

/* Whenever the interrupt comes: a run is done whole or not at all, and no member of the team is left waiting. */
static void test_interrupts_at_any_time(void **state)
{
  (void)state;
  trainer t = make_trainer(ROWS);
  flow_tensor *inputs[2] = { images_of(ROWS, 3), labels_of(ROWS) };
  pthread_t thread;
  int done = 0, stopped = 0;
  OK(flow_set_threads(2));
  atomic_store(&stop_interrupting, 0);
  assert_int_equal(pthread_create(&thread, NULL, interrupt_often, NULL), 0);
  for (int i = 0; i < 300; i++) {
    int before = kept_count;
    snapshot s = take_snapshot(&t);
    flow_status status = flow_instance_run_rows(context, t.instance, inputs, 2, NULL, 0, ROWS);
    if (status == FLOW_OK) {
      done++;
    } else {
      assert_int_equal(status, FLOW_INTERRUPTED);
      expect_snapshot(&t, &s);
      stopped++;
    }
    release_kept_down_to(before);
  }
  atomic_store(&stop_interrupting, 1);
  pthread_join(thread, NULL);
  flow_interrupt(context, 0);
  assert_true(flow_variable_number(flow_optimizer_iterations(t.optimizer)) == done);
  assert_true(done + stopped == 300);
  OK(flow_set_threads(0));
}

/* ---- memory ----------------------------------------------------------------------------------------------------------------- */

/* Everything from the trace to the first run; *n and *optimizer exist. */
static flow_status train_once(const net *n, flow_optimizer *optimizer, flow_tensor **inputs, flow_tensor **loss)
{
  flow_plan *plan;
  flow_instance *instance;
  flow_status status = trace_step(n, optimizer, &plan);
  if (status != FLOW_OK) return status;
  status = flow_instance_new(plan, 9, &instance);
  flow_plan_release(plan);
  if (status != FLOW_OK) return status;
  status = flow_instance_run(context, instance, inputs, 2, loss);
  flow_instance_release(instance);
  return status;
}

static void test_out_of_memory_anywhere(void **state)
{
  (void)state;
  flow_tensor *inputs[2] = { images_of(9, 1), labels_of(9) };
  net reference = make_net();
  flow_tensor *expected, *loss;
  flow_optimizer *reference_optimizer = optimizer_of("Adam");
  OK(train_once(&reference, reference_optimizer, inputs, &expected));
  keep(expected, release_tensor);
  for (int allocation = 0, failed = 1; failed; allocation++) {
    int before = kept_count;
    double live = flow_live_bytes();
    net n = make_net();
    flow_optimizer *adam = optimizer_of("Adam");
    flow_tensor *start = value_of(n.variables[0]);
    flow_fail_allocation(allocation);
    flow_status status = train_once(&n, adam, inputs, &loss);
    flow_fail_allocation(-1);
    failed = status != FLOW_OK;
    if (failed) {
      assert_int_equal(status, FLOW_OUT_OF_MEMORY);
      assert_non_null(strstr(flow_last_error(), "out of memory"));
      expect_same_bits(n.variables[0]->tensor, start);
      assert_int_equal(flow_trace_depth(context), 0);
      OK(train_once(&n, adam, inputs, &loss));
    }
    expect_same_bits(loss, expected);
    flow_tensor_release(loss);
    for (int i = 0; i < NET_VARIABLES; i++) expect_same_bits(n.variables[i]->tensor, reference.variables[i]->tensor);
    release_kept_down_to(before);
    assert_true(flow_live_bytes() == live);
    assert_true(failed || allocation > 200);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    GRAPH_TEST(test_a_bad_label_changes_nothing),
    GRAPH_TEST(test_a_failure_behind_an_update),
    GRAPH_TEST(test_not_a_number_is_harmless),
    GRAPH_TEST(test_any_number_of_rows),
    GRAPH_TEST(test_what_a_run_refuses),
    GRAPH_TEST(test_an_instance_without_memory_refuses_runs),
    GRAPH_TEST(test_batches_are_runs_one_behind_the_other),
    GRAPH_TEST(test_steady_runs_allocate_nothing),
    GRAPH_TEST(test_threads_do_not_change_results),
    GRAPH_TEST(test_two_instances_in_two_threads),
    GRAPH_TEST(test_one_instance_in_two_threads),
    GRAPH_TEST(test_an_interrupt_stops_a_run),
    GRAPH_TEST(test_interrupts_at_any_time),
    GRAPH_TEST(test_out_of_memory_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
