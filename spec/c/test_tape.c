/* test_tape.c: eager tapes: what they remember, what later writes change (nothing), what happens when memory runs out; and the end of a
 * loop whose rounds do not fit. */
#include "graphs.h"
#include <math.h>
#include "autodiff/apply.h"

static flow_tape *begin(void)
{
  flow_tape *tape;
  OK(flow_tape_begin(context, &tape));
  return keep(tape, release_tape);
}

static flow_tensor *gradient_of(flow_tape *tape, flow_tensor *target, flow_tensor *tensor, flow_variable *variable)
{
  flow_tensor *out;
  OK(flow_tape_gradient(context, tape, target, &tensor, &variable, 1, &out));
  return out ? keep(out, release_tensor) : NULL;
}

/* The gradient of w x w is taken at the value that was read, whatever is written in between. */
static void test_writes_after_recording(void **state)
{
  (void)state;
  flow_variable *w = variable_of(VECTOR(1, 2), "w"), *scale = variable_of(VECTOR(5, 5), "scale");
  flow_variable_set_trainable(scale, 0);
  flow_optimizer *sgd = optimizer_of("SGD");
  flow_tape *tape = begin();
  flow_tensor *w1 = reading(w);
  const flow_attributes column = { .shape = { .rank = 2, .dims = { 2, 1 } } };
  flow_tensor *flat = op3(FLOW_OP_reshape, w1, NULL, NULL, &column);
  flow_tensor *target = sum_of(OP2(mul, OP2(mul, flat, flat), op3(FLOW_OP_reshape, reading(scale), NULL, NULL, &column)));
  OK(flow_tape_end(context, tape));
  OK(flow_variable_assign(context, w, VECTOR(100, 100)));
  OK(flow_variable_assign_add(context, scale, VECTOR(100, 100)));
  EXPECT(w1, 1, 2);
  EXPECT(gradient_of(tape, target, NULL, w), 10, 20);

  OK(flow_variable_assign(context, w, VECTOR(1, 2)));
  tape = begin();
  target = sum_of(OP2(mul, reading(w), reading(w)));
  OK(flow_tape_end(context, tape));
  flow_tensor *g = VECTOR(1, 1);
  OK(flow_optimizer_apply(context, sgd, &g, &w, 1));   /* moves w into an arena and updates it */
  OK(flow_trace_begin(context));
  OK(flow_variable_assign(context, w, VECTOR(7, 7)));
  run(instance_of(plan_of(NULL, 0), 1), NULL, 0, NULL);
  EXPECT(w->tensor, 7, 7);
  EXPECT(gradient_of(tape, target, NULL, w), 2, 4);
}

static void test_sources(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(3), "v"), *fixed = variable_of(VECTOR(2), "fixed"), *unused = variable_of(VECTOR(1), "unused");
  flow_variable_set_trainable(fixed, 0);
  flow_tensor *x = VECTOR(4), *stranger = VECTOR(5);
  flow_tape *tape = begin();
  OK(flow_tape_watch(tape, x));
  OK(flow_tape_watch(tape, x));
  flow_tensor *y = OP2(mul, OP2(mul, reading(v), x), reading(fixed));
  flow_tensor *stopped = OP1(stop_gradient, y), *z = OP2(add, OP2(mul, y, y), stopped);
  OK(flow_tape_end(context, tape));
  EXPECT(gradient_of(tape, z, NULL, v), 384);
  EXPECT(gradient_of(tape, z, x, NULL), 288);
  EXPECT(gradient_of(tape, z, y, NULL), 48);
  EXPECT(gradient_of(tape, z, stopped, NULL), 1);
  EXPECT(gradient_of(tape, z, z, NULL), 1);
  assert_null(gradient_of(tape, z, NULL, fixed));
  assert_null(gradient_of(tape, z, NULL, unused));
  assert_null(gradient_of(tape, z, stranger, NULL));
  assert_null(gradient_of(tape, stranger, x, NULL));
  flow_tensor *out, *whole = keep(zeros(FLOW_INT32, 1, SHAPE(1)), release_tensor);
  FAILS(flow_tape_gradient(context, tape, whole, &x, NULL, 1, &out), FLOW_INVALID_ARGUMENT, "the target is int32");
  FAILS(flow_tape_end(context, tape), FLOW_INVALID_STATE, "does not record");
}

/* The gradient's own ops are recorded by a tape that still runs: second derivatives. */
static void test_nested_tapes(void **state)
{
  (void)state;
  flow_tensor *x = VECTOR(2, 3);
  flow_tape *outer = begin(), *inner = begin();
  OK(flow_tape_watch(outer, x));
  OK(flow_tape_watch(inner, x));
  flow_tensor *y = sum_of(OP2(mul, OP2(mul, x, x), x));
  OK(flow_tape_end(context, inner));
  flow_tensor *slope = sum_of(gradient_of(inner, y, x, NULL));
  OK(flow_tape_end(context, outer));
  EXPECT(gradient_of(outer, slope, x, NULL), 12, 18);
}

/* ---- running out of memory ------------------------------------------------------------------------------------------- */

static void test_out_of_memory(void **state)
{
  (void)state;
  flow_tensor *images = images_of(5, 9), *labels = labels_of(5);
  net n = make_net();
  flow_optimizer *adam = optimizer_of("Adam");
  OK(flow_optimizer_build(adam, n.variables, NET_VARIABLES));
  flow_tensor *before[NET_VARIABLES];
  for (int i = 0; i < NET_VARIABLES; i++) before[i] = value_of(n.variables[i]);
  double steps = 0;
  for (int allocation = 0;; allocation++) {
    attempt a = { .count = 0 };
    flow_fail_allocation(allocation);
    net_step(&a, &n, adam, images, labels);
    flow_fail_allocation(-1);
    end_attempt(&a);
    assert_int_equal(flow_tape_depth(context), 0);
    if (a.status == FLOW_OK) {
      assert_true(allocation > 100);
      steps++;
      break;
    }
    assert_int_equal(a.status, FLOW_OUT_OF_MEMORY);
    for (int i = 0; i < NET_VARIABLES; i++) expect_same_bits(n.variables[i]->tensor, before[i]);
  }
  assert_true(flow_variable_number(flow_optimizer_iterations(adam)) == steps);
  assert_memory_not_equal(n.variables[0]->tensor->data, before[0]->data, sizeof(float));
}

/* Each op of a handful alone: nothing stays behind after a failure. */
static void test_ops_out_of_memory(void **state)
{
  (void)state;
  flow_tensor *x = noise(2, SHAPE(40, 30), 1), *y = noise(2, SHAPE(30, 20), 2);
  flow_tensor *across = keep(view_of(x, 2, SHAPE(30, 40), SHAPE(1, 30), 0), release_tensor);
  const struct { int op; flow_tensor *a, *b; } calls[] = {
    { FLOW_OP_add, x, x }, { FLOW_OP_matmul, x, y }, { FLOW_OP_softmax, x, NULL }, { FLOW_OP_sum, x, NULL },
    { FLOW_OP_concat, x, x }, { FLOW_OP_softmax, across, NULL },
  };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    double live = flow_live_bytes();
    for (int allocation = 0;; allocation++) {
      flow_tensor *out = NULL;
      flow_tape *tape = NULL;
      flow_fail_allocation(allocation);
      flow_status status = flow_tape_begin(context, &tape);
      if (status == FLOW_OK) status = flow_tape_watch(tape, calls[i].a);
      if (status == FLOW_OK) status = flow_apply1(context, calls[i].op, calls[i].a, calls[i].b, NULL, NULL, &out);
      flow_fail_allocation(-1);
      if (tape) OK(flow_tape_end(context, tape));
      flow_tape_release(tape);
      if (status == FLOW_OK) flow_tensor_release(out);
      else assert_int_equal(status, FLOW_OUT_OF_MEMORY);
      assert_true(flow_live_bytes() == live);
      if (status == FLOW_OK) {
        assert_true(allocation > 5);
        break;
      }
    }
  }
}

/* ---- slices -------------------------------------------------------------------------------------------------------------------- */

/* The sum of the squares of a stretch of v, a variable of six numbers. */
static flow_tensor *squares(flow_tensor *v, int64_t begin, int64_t end, int64_t step)
{
  const flow_attributes part = { .slice = { .rank = 1, .begin = { begin }, .end = { end }, .step = { step } } };
  flow_tensor *x = op3(FLOW_OP_slice, v, NULL, NULL, &part);
  return sum_of(OP2(mul, x, x));
}

/* Gradients of parts that do not overlap are joined; of others each is as large as the whole. */
static void test_gradients_of_parts(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(1, 2, 3, 4, 5, 6), "v");
  static const int64_t parts[2][3][3] = { { { 4, 5, 1 }, { 0, 2, 1 }, { 2, 3, 1 } }, { { 1, 4, 1 }, { 0, 2, 1 }, { 1, 6, 2 } } };
  for (int kind = 0; kind < 2; kind++) {
    flow_tape *tape;
    flow_tensor *gradient, *out;
    OK(flow_trace_begin(context));
    OK(flow_tape_begin(context, &tape));
    keep(tape, release_tape);
    flow_tensor *read = reading(v), *target = squares(read, 0, 0, 1);
    for (int i = 0; i < 3; i++) target = OP2(add, target, squares(read, parts[kind][i][0], parts[kind][i][1], parts[kind][i][2]));
    OK(flow_tape_end(context, tape));
    OK(flow_tape_gradient(context, tape, target, NULL, &v, 1, &gradient));
    keep(gradient, release_tensor);
    flow_instance *instance = instance_of(PLAN(gradient), 1);
    assert_int_equal(count_op(instance->plan, FLOW_OP_concat), kind == 0);
    assert_int_equal(count_op(instance->plan, FLOW_OP_slice_gradient) > 0, kind == 1);
    run(instance, NULL, 0, &out);
    if (kind == 0) EXPECT(out, 2, 4, 6, 0, 10, 0);
    else EXPECT(out, 2, 12, 6, 16, 0, 12);
  }
}

/* More constants than the index of a graph begins with: each is one value, however often it is used, and what was put in its place when it
 * was freed is another. */
static void test_many_constants(void **state)
{
  (void)state;
  enum { COUNT = 300 };
  flow_tensor *constants[COUNT];
  flow_graph *graph;
  int values[COUNT], value;
  OK(flow_graph_new(&graph));
  for (int i = 0; i < COUNT; i++) {
    constants[i] = number(i);
    OK(flow_graph_constant(graph, constants[i], &values[i]));
    assert_int_equal(values[i], i);
  }
  for (int i = COUNT; i-- > 0;) {
    OK(flow_graph_constant(graph, constants[i], &value));
    assert_int_equal(value, i);
  }
  assert_int_equal(graph->value_count, COUNT);
  flow_tensor *other = number(-1);      /* as when a plan's constants are brought to a device */
  flow_tensor_release(graph->values[7].tensor);
  graph->values[7].tensor = flow_tensor_retain(other);
  OK(flow_graph_constant(graph, constants[7], &value));
  assert_int_equal(value, COUNT);
  OK(flow_graph_constant(graph, constants[7], &value));
  assert_int_equal(value, COUNT);
  flow_graph_release(graph);
}

/* A loop of more rounds than there are rows would read beyond them. Whatever is wrong, the trace of the round is gone. */
static void test_loops_that_do_not_end_well(void **state)
{
  (void)state;
  static const double wrong[] = { 3, 1, 0, 1e300, NAN };
  flow_tensor *rows = VECTOR(1, 2), *start = VECTOR(0), *given[2], *out[2];
  int written, depth = flow_trace_depth(context);
  for (int i = 0; i < 7; i++) {
    OK(flow_trace_begin(context));
    OK(flow_loop_begin(context, &start, 1, &rows, 1, 2, given));
    int count = i == 5 ? 0 : 1;
    flow_tensor *missing = NULL;
    assert_int_equal(flow_loop_end(context, i == 6 ? &missing : given, count, i < 5 ? wrong[i] : 2, 0, out, &written),
                     FLOW_INVALID_ARGUMENT);
    assert_int_equal(flow_trace_depth(context), depth + 1);
    for (int k = 0; k < 2; k++) flow_tensor_release(given[k]);
    flow_trace_abort(context);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    GRAPH_TEST(test_writes_after_recording), GRAPH_TEST(test_sources),
    GRAPH_TEST(test_nested_tapes),           GRAPH_TEST(test_out_of_memory),
    GRAPH_TEST(test_ops_out_of_memory),      GRAPH_TEST(test_gradients_of_parts),
    GRAPH_TEST(test_many_constants),         GRAPH_TEST(test_loops_that_do_not_end_well),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
