/* test_optimizer.c: adoption into arenas, runs, several optimizers over the same variables, eager against traced. */
#include <stdio.h>

#include "graphs.h"

enum { STEPS = 4, ROWS = 10 };

static void set_rate(flow_optimizer *optimizer, double rate)
{
  OK(flow_variable_assign(context, flow_optimizer_learning_rate(optimizer), number(rate)));
}

static void expect_same_variables(const net *a, const net *b)
{
  for (int i = 0; i < NET_VARIABLES; i++) expect_close(a->variables[i]->tensor, b->variables[i]->tensor, 2e-6);
}

/* Eager steps and one plan give the same weights, slots and count, for each optimizer. */
static void eager_and_traced(const char *class)
{
  flow_tensor *inputs[2] = { images_of(ROWS, 9), labels_of(ROWS) };
  net eager = make_net(), traced = make_net();
  flow_optimizer *eager_optimizer = optimizer_of(class), *traced_optimizer = optimizer_of(class);
  flow_plan *plan;
  OK(trace_step(&traced, traced_optimizer, &plan));
  flow_instance *instance = instance_of(keep(plan, release_plan), ROWS);
  for (int step = 0; step < STEPS; step++) {
    attempt a = { .count = 0 };
    flow_tensor *loss = net_step(&a, &eager, eager_optimizer, inputs[0], inputs[1]), *traced_loss;
    OK(a.status);
    run(instance, inputs, 2, &traced_loss);
    expect_close(loss, traced_loss, 2e-6);
    end_attempt(&a);
  }
  expect_same_variables(&eager, &traced);
  int slots = flow_optimizer_slot_count(eager_optimizer);
  assert_int_equal(slots, flow_optimizer_slot_count(traced_optimizer));
  for (int i = 0; i < slots; i++)
    expect_close(flow_optimizer_slot(eager_optimizer, i)->tensor, flow_optimizer_slot(traced_optimizer, i)->tensor, 2e-6);
  assert_true(flow_variable_number(flow_optimizer_iterations(eager_optimizer)) == STEPS);
  assert_true(flow_variable_number(flow_optimizer_iterations(traced_optimizer)) == STEPS);
}

static void test_eager_and_traced_sgd(void **state)  { (void)state; eager_and_traced("SGD"); }
static void test_eager_and_traced_adam(void **state) { (void)state; eager_and_traced("Adam"); }

static void test_eager_and_traced_others(void **state)
{
  (void)state;
  static const char *const classes[] = { "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax" };
  for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) eager_and_traced(classes[i]);
}

/* ---- adoption ------------------------------------------------------------------------------------------------------- */

static void test_adoption(void **state)
{
  (void)state;
  flow_variable *a = variable_of(VECTOR(1, 2, 3), "a"), *b = variable_of(VECTOR(4, 5), "b"), *c = variable_of(VECTOR(6), "c");
  flow_tensor *before = reading(a);
  flow_optimizer *adam = optimizer_of("Adam");
  flow_variable *twice[3] = { a, b, a };
  OK(flow_optimizer_build(adam, twice, 3));
  assert_int_equal(flow_optimizer_slot_count(adam), 4);
  assert_ptr_equal(a->tensor->storage, b->tensor->storage);
  assert_ptr_equal(a->tensor->data + 3 * sizeof(float), b->tensor->data);
  EXPECT(a->tensor, 1, 2, 3);
  EXPECT(b->tensor, 4, 5);
  EXPECT(before, 1, 2, 3);
  OK(flow_optimizer_build(adam, (flow_variable *[]){ b, c }, 2));   /* only c is new */
  assert_int_equal(flow_optimizer_slot_count(adam), 6);
  assert_string_equal(flow_variable_name(flow_optimizer_slot(adam, 0)), "adam/a_momentum");
  assert_string_equal(flow_variable_name(flow_optimizer_slot(adam, 5)), "adam/c_velocity");
  const char *place = a->tensor->data;
  OK(flow_optimizer_build(optimizer_of("SGD"), twice, 3));          /* the first optimizer keeps them */
  assert_ptr_equal(a->tensor->data, place);

  flow_variable *d = variable_of(keep(zeros(FLOW_INT32, 1, SHAPE(2)), release_tensor), "d");
  FAILS(flow_optimizer_build(adam, &d, 1), FLOW_UNSUPPORTED, "float32");
  flow_tensor *gradients[2] = { VECTOR(1, 1, 1), VECTOR(1, 1, 1) };
  FAILS(flow_optimizer_apply(context, adam, gradients, (flow_variable *[]){ a, a }, 2), FLOW_INVALID_ARGUMENT, "stands twice");
  FAILS(flow_optimizer_apply(context, adam, gradients, (flow_variable *[]){ b, a }, 2), FLOW_INVALID_ARGUMENT, "expected float32 {2}");
  gradients[0] = gradients[1] = NULL;
  FAILS(flow_optimizer_apply(context, adam, gradients, (flow_variable *[]){ a, b }, 2), FLOW_INVALID_ARGUMENT, "no gradients");
  EXPECT(a->tensor, 1, 2, 3);
}

/* float64 variables lie together, too; slots are in the order of the variables that came. */
static void test_two_dtypes(void **state)
{
  (void)state;
  flow_variable *v[4] = { variable_of(VECTOR(1, 2), "a"), variable_of(keep(zeros(FLOW_FLOAT64, 1, SHAPE(3)), release_tensor), "b"),
                          variable_of(VECTOR(3), "c"), variable_of(keep(zeros(FLOW_FLOAT64, 1, SHAPE(2)), release_tensor), "d") };
  flow_optimizer *adam = optimizer_of("Adam");
  OK(flow_optimizer_build(adam, v, 4));
  assert_ptr_equal(v[0]->tensor->data + 2 * sizeof(float), v[2]->tensor->data);
  assert_ptr_equal(v[1]->tensor->data + 3 * sizeof(double), v[3]->tensor->data);
  const char *names[] = { "a", "b", "c", "d" };
  for (int i = 0; i < 8; i++) {
    flow_variable *slot = flow_optimizer_slot(adam, i);
    char expected[32];
    snprintf(expected, sizeof expected, "adam/%s_%s", names[i / 2], i % 2 ? "velocity" : "momentum");
    assert_string_equal(flow_variable_name(slot), expected);
    assert_int_equal(slot->tensor->dtype, v[i / 2]->tensor->dtype);
  }
}

/* As when a device fails while variables move: the first one has moved then. */
static void test_adoption_that_fails(void **state)
{
  (void)state;
  flow_variable *v[3] = { variable_of(VECTOR(1, 2), "a"), variable_of(VECTOR(3), "b"), variable_of(VECTOR(4), "c") };
  flow_optimizer *adam = optimizer_of("Adam");
  OK(flow_optimizer_build(adam, &v[2], 1));
  flow_tensor *own = v[1]->tensor, unreadable = *own;
  unreadable.storage = NULL;
  v[1]->tensor = &unreadable;
  FAILS(flow_optimizer_build(adam, v, 3), FLOW_INVALID_STATE, "");
  v[1]->tensor = own;
  assert_int_equal(flow_optimizer_slot_count(adam), 2);
  EXPECT(v[0]->tensor, 1, 2);
  OK(flow_optimizer_build(adam, v, 3));
  assert_int_equal(flow_optimizer_slot_count(adam), 6);
  assert_ptr_equal(v[0]->tensor->storage, v[1]->tensor->storage);
  EXPECT(v[0]->tensor, 1, 2);
  EXPECT(v[1]->tensor, 3);
  assert_string_equal(flow_variable_name(flow_optimizer_slot(adam, 2)), "adam/a_momentum");
}

/* A second optimizer over the same variables still updates them in one run: they are side by side, whoever owns them. */
static void test_a_second_optimizer_has_one_run(void **state)
{
  (void)state;
  net n = make_net();
  flow_plan *plan;
  flow_optimizer *first;
  OK(flow_optimizer_new("SGD", NULL, NULL, &first));
  OK(flow_optimizer_build(first, n.variables, NET_VARIABLES));
  flow_optimizer_release(first);
  OK(trace_step(&n, optimizer_of("Adam"), &plan));
  keep(plan, release_plan);
  assert_int_equal(count_op(plan, FLOW_OP_adam), 1);
  assert_int_equal(count_op(plan, FLOW_OP_pack), 1);
}

/* Variables without a gradient are skipped: toggled trainable, and runs on both sides of the gap. */
static void test_gaps(void **state)
{
  (void)state;
  flow_variable *v[3] = { variable_of(VECTOR(1), "a"), variable_of(VECTOR(2), "b"), variable_of(VECTOR(3), "c") };
  flow_optimizer *sgd = optimizer_of("SGD");
  flow_tensor *g = VECTOR(1), *gradients[3] = { g, g, g };
  set_rate(sgd, 1);
  OK(flow_optimizer_apply(context, sgd, gradients, v, 3));
  gradients[1] = NULL;
  OK(flow_optimizer_apply(context, sgd, gradients, v, 3));
  gradients[0] = NULL, gradients[1] = g;
  OK(flow_optimizer_apply(context, sgd, gradients, v, 3));
  EXPECT(v[0]->tensor, -1);
  EXPECT(v[1]->tensor, 0);
  EXPECT(v[2]->tensor, 0);
  assert_true(flow_variable_number(flow_optimizer_iterations(sgd)) == 3);
}

static void test_trainable_off(void **state)
{
  (void)state;
  net n = make_net();
  flow_optimizer *sgd = optimizer_of("SGD");
  flow_plan *plan;
  flow_tensor *inputs[2] = { images_of(ROWS, 9), labels_of(ROWS) };
  flow_variable_set_trainable(n.variables[0], 0);
  flow_tensor *before[NET_VARIABLES];
  for (int i = 0; i < NET_VARIABLES; i++) before[i] = value_of(n.variables[i]);
  OK(trace_step(&n, sgd, &plan));
  keep(plan, release_plan);
  run(instance_of(plan, ROWS), inputs, 2, NULL);
  expect_same_bits(n.variables[0]->tensor, before[0]);
  for (int i = 1; i < NET_VARIABLES; i++)
    assert_memory_not_equal(n.variables[i]->tensor->data, before[i]->data, sizeof(float));
  attempt a = { .count = 0 };
  net_step(&a, &n, sgd, inputs[0], inputs[1]);
  OK(a.status);
  end_attempt(&a);
  expect_same_bits(n.variables[0]->tensor, before[0]);
  flow_variable_set_trainable(n.variables[0], 1);
  net_step(&a, &n, sgd, inputs[0], inputs[1]);
  OK(a.status);
  end_attempt(&a);
  assert_memory_not_equal(n.variables[0]->tensor->data, before[0]->data, sizeof(float));
}

/* ---- two optimizers in one step --------------------------------------------------------------------------------------- */

/* d is updated by one optimizer, then g by another with a loss that sees the new d; s is shared by both. */
static void adversarial_step(flow_variable *d, flow_variable *g, flow_variable *s, flow_optimizer *first,
                             flow_optimizer *second, flow_tensor *x)
{
  flow_tape *tape;
  flow_tensor *gradients[2];
  for (int half = 0; half < 2; half++) {
    flow_optimizer *optimizer = half ? second : first;
    flow_variable *variables[2] = { half ? g : d, s };
    OK(flow_tape_begin(context, &tape));
    flow_tensor *product = OP2(mul, OP2(mul, reading(d), reading(g)), OP2(add, reading(s), x));
    flow_tensor *loss = sum_of(half ? OP1(square, product) : product);
    OK(flow_tape_end(context, tape));
    OK(flow_tape_gradient(context, tape, loss, NULL, variables, 2, gradients));
    flow_tape_release(tape);
    OK(flow_optimizer_apply(context, optimizer, gradients, variables, 2));
    flow_tensor_release(gradients[0]);
    flow_tensor_release(gradients[1]);
  }
}

static void test_two_optimizers(void **state)
{
  (void)state;
  flow_variable *v[2][3];
  flow_optimizer *o[2][2];
  flow_tensor *x = VECTOR(0.5, -1, 2);
  for (int traced = 0; traced < 2; traced++) {
    v[traced][0] = variable_of(VECTOR(1, 2, 3), "d");
    v[traced][1] = variable_of(VECTOR(0.3, -0.2, 0.1), "g");
    v[traced][2] = variable_of(VECTOR(1, 1, -1), "s");
    o[traced][0] = optimizer_of("Adam");
    o[traced][1] = optimizer_of("SGD");
  }
  OK(flow_trace_begin(context));
  flow_tensor *in = input_of(FLOW_FLOAT32, 1, SHAPE(3));
  adversarial_step(v[1][0], v[1][1], v[1][2], o[1][0], o[1][1], in);
  flow_tensor *slot = reading(flow_optimizer_slot(o[1][0], 0)), *out;   /* after its update, as eagerly */
  flow_instance *instance = instance_of(PLAN(slot), 1);
  for (int step = 0; step < 3; step++) {
    adversarial_step(v[0][0], v[0][1], v[0][2], o[0][0], o[0][1], x);
    run(instance, &x, 1, &out);
    for (int i = 0; i < 3; i++) expect_close(v[0][i]->tensor, v[1][i]->tensor, 1e-6);
    expect_close(out, flow_optimizer_slot(o[0][0], 0)->tensor, 1e-6);
  }
}

/* ---- running out of memory ----------------------------------------------------------------------------------------------- */

static void test_build_out_of_memory(void **state)
{
  (void)state;
  for (int n = 0;; n++) {
    int before = kept_count;
    double live = flow_live_bytes();
    net model = make_net();
    flow_optimizer *adam = optimizer_of("Adam");
    flow_fail_allocation(n);
    flow_status status = flow_optimizer_build(adam, model.variables, NET_VARIABLES);
    flow_fail_allocation(-1);
    if (status != FLOW_OK) {
      assert_int_equal(status, FLOW_OUT_OF_MEMORY);
      assert_int_equal(flow_optimizer_slot_count(adam), 0);
      OK(flow_optimizer_build(adam, model.variables, NET_VARIABLES));
    }
    assert_int_equal(flow_optimizer_slot_count(adam), 2 * NET_VARIABLES);
    assert_ptr_equal(model.variables[0]->tensor->storage, model.variables[3]->tensor->storage);
    release_kept_down_to(before);
    assert_true(flow_live_bytes() == live);
    if (status == FLOW_OK) {
      assert_true(n > 10);
      break;
    }
  }
}

static flow_optimizer *optimizer_from(const char *config)
{
  flow_optimizer *optimizer;
  OK(flow_optimizer_from_config(config, &optimizer));
  return keep(optimizer, release_optimizer);
}

/* An eager update that runs out of memory has changed nothing, so that it can be tried again. config: SGD with a rate of 1 that
 * accumulates the gradients of `calls` others before. */
static void apply_out_of_memory(const char *config, int calls)
{
  for (int n = 0;; n++) {
    int before = kept_count;
    flow_variable *v[3] = { variable_of(VECTOR(1), "a"), variable_of(VECTOR(2), "b"), variable_of(VECTOR(3), "c") };
    flow_optimizer *sgd = optimizer_from(config);
    flow_tensor *g = VECTOR(1), *gradients[3] = { g, NULL, g };
    for (int i = 0; i < calls; i++) OK(flow_optimizer_apply(context, sgd, gradients, v, 3));
    flow_fail_allocation(n);
    flow_status status = flow_optimizer_apply(context, sgd, gradients, v, 3);
    flow_fail_allocation(-1);
    if (status != FLOW_OK) {
      assert_int_equal(status, FLOW_OUT_OF_MEMORY);
      EXPECT(v[0]->tensor, 1);
      EXPECT(v[2]->tensor, 3);
      assert_true(flow_variable_number(flow_optimizer_iterations(sgd)) == calls);
      OK(flow_optimizer_apply(context, sgd, gradients, v, 3));
    }
    EXPECT(v[0]->tensor, 0);
    EXPECT(v[1]->tensor, 2);
    EXPECT(v[2]->tensor, 2);
    assert_true(flow_variable_number(flow_optimizer_iterations(sgd)) == calls + 1);
    release_kept_down_to(before);
    if (status == FLOW_OK) {
      assert_true(n > 10);
      break;
    }
  }
}

#define SCHEDULED "{\"class_name\":\"SGD\",\"config\":{\"name\":\"s\",\"learning_rate\":{\"class_name\":\"PiecewiseConstantDecay\"," \
                  "\"config\":{\"boundaries\":[5],\"values\":[1,2],\"name\":null}}}}"

static void test_apply_out_of_memory(void **state)
{
  (void)state;
  apply_out_of_memory("{\"class_name\":\"SGD\",\"config\":{\"learning_rate\":1}}", 0);
  apply_out_of_memory("{\"class_name\":\"SGD\",\"config\":{\"learning_rate\":1,\"clipnorm\":9}}", 0);
  apply_out_of_memory("{\"class_name\":\"SGD\",\"config\":{\"learning_rate\":1,\"clipvalue\":9}}", 0);
  apply_out_of_memory("{\"class_name\":\"SGD\",\"config\":{\"learning_rate\":1,\"global_clipnorm\":9}}", 0);
  apply_out_of_memory(SCHEDULED, 0);
  apply_out_of_memory("{\"class_name\":\"SGD\",\"config\":{\"learning_rate\":1,\"gradient_accumulation_steps\":2}}", 1);
}

static void test_config_out_of_memory(void **state)
{
  (void)state;
  for (int n = 0;; n++) {
    flow_optimizer *optimizer = NULL;
    flow_fail_allocation(n);
    flow_status status = flow_optimizer_from_config(SCHEDULED, &optimizer);
    flow_fail_allocation(-1);
    flow_optimizer_release(optimizer);
    if (status == FLOW_OK) {
      assert_true(n > 20);
      break;
    }
    assert_int_equal(status, FLOW_OUT_OF_MEMORY);
    assert_null(optimizer);
  }
}

/* ---- config ------------------------------------------------------------------------------------------------------------ */

/* The text is what Keras 3.13 wrote into a model trained with these options, in its order. */
static void test_config(void **state)
{
  (void)state;
  static const char expected[] =
    "{\"module\":\"keras.optimizers\",\"class_name\":\"Adam\",\"config\":{\"name\":\"mine\",\"learning_rate\":0.0010000000474974513,"
    "\"weight_decay\":null,\"clipnorm\":null,\"global_clipnorm\":null,\"clipvalue\":null,\"use_ema\":false,\"ema_momentum\":0.99,"
    "\"ema_overwrite_frequency\":null,\"loss_scale_factor\":null,\"gradient_accumulation_steps\":null,\"beta_1\":0.8,\"beta_2\":0.999,"
    "\"epsilon\":1e-07,\"amsgrad\":true},\"registered_name\":null}";
  flow_arguments *arguments;
  flow_optimizer *adam;
  char text[2048];
  OK(flow_arguments_new(&arguments));
  OK(flow_arguments_set_number(arguments, "beta_1", 0.8));
  OK(flow_arguments_set_boolean(arguments, "amsgrad", 1));
  OK(flow_optimizer_new("Adam", "mine", arguments, &adam));
  flow_arguments_release(arguments);
  assert_int_equal(flow_optimizer_config(adam, text, sizeof text), strlen(expected));
  assert_string_equal(text, expected);
  assert_int_equal(flow_optimizer_config(adam, text, 10), strlen(expected));
  assert_string_equal(text, "{\"module\"");
  set_rate(adam, 0.5);
  flow_optimizer_config(adam, text, sizeof text);
  assert_non_null(strstr(text, "\"learning_rate\":0.5,"));
  assert_int_equal(flow_optimizer_config(NULL, text, sizeof text), 0);
  assert_string_equal(text, "");
  flow_optimizer_release(adam);
}

/* Classes and arguments can be asked for by number; beyond the last there is nothing. */
static void test_records(void **state)
{
  (void)state;
  int adam = flow_optimizer_class_find("adam"), count = flow_optimizer_class_argument_count(adam), last = 0;
  while (flow_optimizer_class_name(last)) last++;
  assert_string_equal(flow_optimizer_class_argument(adam, 0), "learning_rate");
  for (int i = 0; i < count; i++) assert_non_null(flow_optimizer_class_argument_type(adam, i));
  for (int i = 0; i < 2; i++) {
    int index = i ? last : adam, argument = i ? 0 : count;
    assert_null(flow_optimizer_class_argument(index, argument));
    assert_null(flow_optimizer_class_argument_type(index, argument));
    assert_null(flow_optimizer_class_argument_default(index, argument));
  }
  assert_null(flow_optimizer_class_argument(adam, -1));
  assert_int_equal(flow_optimizer_class_argument_count(last), 0);
  assert_true(flow_optimizer_class_argument_count(-1) > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    GRAPH_TEST(test_eager_and_traced_sgd),
    GRAPH_TEST(test_eager_and_traced_adam),
    GRAPH_TEST(test_eager_and_traced_others),
    GRAPH_TEST(test_adoption),
    GRAPH_TEST(test_two_dtypes),
    GRAPH_TEST(test_adoption_that_fails),
    GRAPH_TEST(test_config_out_of_memory),
    GRAPH_TEST(test_a_second_optimizer_has_one_run),
    GRAPH_TEST(test_gaps),
    GRAPH_TEST(test_trainable_off),
    GRAPH_TEST(test_two_optimizers),
    GRAPH_TEST(test_build_out_of_memory),
    GRAPH_TEST(test_apply_out_of_memory),
    GRAPH_TEST(test_config),
    GRAPH_TEST(test_records),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
