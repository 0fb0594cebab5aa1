/* test_fuse_optimizer.c: gradients of large matrices that reach their optimizer as two factors: the kernels against
 * loops in double, and plans against the same plans whose gradients are also results, which keeps them whole. */
#include <math.h>
#include "graphs.h"
#include "kernel_runner.h"

/* ---- kernels ---------------------------------------------------------------------------------------------------------- */

typedef struct layer { int k, m, n, before; } layer;   /* before: parameters that are in front of the matrix */

typedef struct expectation { double *w, *slots[3]; int first_slot, adam; double tolerance; } expectation;

static void check_update(const flow_call *call, const char *variant, void *argument)
{
  const expectation *e = argument;
  for (int64_t i = 0; i < operand_size(&call->inputs[1]); i++) {
    assert_near(get(&call->inputs[1], i), e->w[i], e->tolerance, variant, i);
    for (int s = 0; s < 3; s++) {
      const flow_operand *slot = &call->inputs[e->adam && s == 2 ? 6 : e->first_slot + s];
      if (e->slots[s]) assert_near(get(slot, i), e->slots[s][i], e->tolerance, variant, i);
    }
  }
}

static double *doubles_of(const flow_operand *x)
{
  double *values = malloc((size_t)(operand_size(x) + 1) * sizeof(double));
  assert_non_null(values);
  for (int64_t i = 0; i < operand_size(x); i++) values[i] = get(x, i);
  return values;
}

static void put_product(const flow_operand *x, const flow_operand *g, double *to)
{
  for (int64_t i = 0; i < x->shape[1]; i++)
    for (int64_t j = 0; j < g->shape[1]; j++, to++) {
      *to = 0;
      for (int64_t k = 0; k < x->shape[0]; k++) *to += get(x, k * x->shape[1] + i) * get(g, k * g->shape[1] + j);
    }
}

/* One call: `count` products and some parameters beside them. kind: 0 sgd, 1 momentum, 2 nesterov, 3 adam, 4 amsgrad. */
static void try_update(int kind, const layer *layers, int count, int behind)
{
  int adam = kind >= 3, inputs_before = kind == 0 ? 3 : kind < 3 ? 4 : kind == 3 ? 6 : 7, size = behind, rest = behind, longest = 1;
  flow_attributes attributes;
  memset(&attributes, 0, sizeof attributes);
  if (adam) attributes.optimizer.beta_1 = 0.9, attributes.optimizer.beta_2 = 0.999, attributes.optimizer.epsilon = 1e-7;
  else attributes.optimizer.momentum = kind ? 0.9 : 0;
  attributes.optimizer.nesterov = kind == 2;
  attributes.optimizer.amsgrad = kind == 4;
  attributes.optimizer.products = count;
  flow_operand inputs[FLOW_MAX_OPERANDS];
  for (int i = 0, at = 0; i < count; i++) {
    const layer *l = &layers[i];
    attributes.optimizer.first[i] = at += l->before;
    at += l->m * l->n;
    rest += l->before;
    size += l->before + l->m * l->n;
    if (l->k > longest) longest = l->k;
    inputs[inputs_before + 2 * i] = operand(FLOW_FLOAT32, 2, l->k, l->m);
    inputs[inputs_before + 2 * i + 1] = operand(FLOW_FLOAT32, 2, l->k, l->n);
  }
  inputs[0] = operand(FLOW_FLOAT32, 1, rest);
  for (int i = 1; i < inputs_before; i++) inputs[i] = operand(FLOW_FLOAT32, 1, size);
  int rate_at = adam ? 4 : 2;
  operand_free(&inputs[rate_at]);
  inputs[rate_at] = operand(FLOW_FLOAT32, 0);
  if (adam) operand_free(&inputs[5]);
  if (adam) inputs[5] = operand(FLOW_INT64, 0);
  for (int i = 0; i < inputs_before + 2 * count; i++) fill(&inputs[i], 1);
  set(&inputs[rate_at], 0, 0.0625);
  if (adam) set(&inputs[5], 0, 3);
  for (int i = 0; i < size && adam; i++) {
    set(&inputs[3], i, fabs(get(&inputs[3], i)));
    if (kind == 4) set(&inputs[6], i, fabs(get(&inputs[6], i)));
  }

  double *g = malloc((size_t)(size + 1) * sizeof(double)), *given = doubles_of(&inputs[0]);
  int at = 0, used = 0;
  for (int i = 0; i <= count; i++) {
    for (int j = 0; j < (i < count ? layers[i].before : behind); j++) g[at++] = given[used++];
    if (i == count) break;
    put_product(&inputs[inputs_before + 2 * i], &inputs[inputs_before + 2 * i + 1], g + at);
    at += layers[i].m * layers[i].n;
  }
  expectation e = { .w = doubles_of(&inputs[1]), .first_slot = adam ? 2 : 3, .adam = adam, .tolerance = 3e-6 * sqrt(longest) };
  if (kind) e.slots[0] = doubles_of(&inputs[e.first_slot]);
  if (adam) e.slots[1] = doubles_of(&inputs[3]);
  if (kind == 4) e.slots[2] = doubles_of(&inputs[6]);
  double rate = 0.0625 * sqrt(1 - pow((float)0.999, 4)) / (1 - pow((float)0.9, 4));
  for (int i = 0; i < size; i++) {
    double *m = e.slots[0], *v = e.slots[1], *top = e.slots[2];
    if (adam) {
      m[i] += (g[i] - m[i]) * 0.1;
      v[i] += (g[i] * g[i] - v[i]) * (1 - 0.999);
      if (top) top[i] = fmax(top[i], v[i]);
      e.w[i] -= rate * m[i] / (sqrt(top ? top[i] : v[i]) + 1e-7);
    } else if (kind) {
      m[i] = 0.9 * m[i] - 0.0625 * g[i];
      e.w[i] += kind == 2 ? 0.9 * m[i] - 0.0625 * g[i] : m[i];
    } else {
      e.w[i] -= 0.0625 * g[i];
    }
  }
  flow_call call = call_of(adam ? FLOW_OP_adam : FLOW_OP_sgd, &attributes, inputs, inputs_before + 2 * count, NULL, 0);
  int written = adam ? 2 | 4 | 8 | (kind == 4 ? 64 : 0) : kind ? 2 | 8 : 2;
  run_everywhere(&call, written, check_update, &e);
  for (int i = 0; i < inputs_before + 2 * count; i++) operand_free(&inputs[i]);
  free(g);
  free(given);
  free(e.w);
  for (int s = 0; s < 3; s++) free(e.slots[s]);
}

static void test_kernels(void **state)
{
  (void)state;
  static const struct { layer layers[FLOW_MAX_PRODUCTS]; int count, behind; } cases[] = {
    { { { 5, 40, 33, 0 } }, 1, 0 },                                        /* nothing beside the product */
    { { { 64, 70, 128, 7 } }, 1, 20000 },                                  /* more than a part of other parameters */
    { { { 1, 100, 9, 3 }, { 3, 9, 100, 0 }, { 17, 1, 1, 1 } }, 3, 5 },     /* side by side, thin, tiny */
    { { { 600, 35, 31, 2 }, { 33, 64, 10, 10 } }, 2, 10 },                 /* several steps of k */
    { { { 4, 9, 700, 1 }, { 4, 300, 32, 1 }, { 2, 8, 1030, 1 }, { 0, 12, 40, 1 } }, 4, 1 },   /* several blocks across; no rows */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int kind = 0; kind < 5; kind++) try_update(kind, cases[i].layers, cases[i].count, cases[i].behind);
}

/* ---- plans ------------------------------------------------------------------------------------------------------------ */

enum { LAYERS = 2, VARIABLES = 2 * LAYERS, STEPS = 3, ROWS = 9, CLASSES = 5 };

typedef struct model { flow_variable *variables[VARIABLES]; flow_optimizer *optimizer; int sizes[LAYERS + 1]; } model;

static flow_optimizer *make_optimizer(int kind)
{
  flow_arguments *arguments;
  flow_optimizer *optimizer;
  OK(flow_arguments_new(&arguments));
  if (kind == 1 || kind == 2) OK(flow_arguments_set_number(arguments, "momentum", 0.9));
  if (kind == 2) OK(flow_arguments_set_boolean(arguments, "nesterov", 1));
  if (kind == 4) OK(flow_arguments_set_boolean(arguments, "amsgrad", 1));
  OK(flow_optimizer_new(kind < 3 ? "SGD" : "Adam", NULL, arguments, &optimizer));
  flow_arguments_release(arguments);
  return keep(optimizer, release_optimizer);
}

static model make_model(int kind, int in, int hidden)
{
  model m = { .sizes = { in, hidden, CLASSES }, .optimizer = make_optimizer(kind) };
  for (int l = 0; l < LAYERS; l++) {
    flow_tensor *w = noise(2, SHAPE(m.sizes[l], m.sizes[l + 1]), 10 + (unsigned)l);
    float *data = flow_tensor_data(w);
    for (int i = 0; i < m.sizes[l] * m.sizes[l + 1]; i++) data[i] *= 0.05f;
    m.variables[2 * l] = variable_of(w, "w");
    m.variables[2 * l + 1] = variable_of(noise(1, SHAPE(m.sizes[l + 1]), 20 + (unsigned)l), "b");
  }
  return m;
}

/* A plan of one training step; whole: gradients are results too, so they must be computed. */
static flow_plan *step_of(model *m, int whole)
{
  flow_tape *tape;
  flow_tensor *outputs[1 + VARIABLES], *gradients[VARIABLES];
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, m->sizes[0])), *labels = input_of(FLOW_INT32, 1, SHAPE(-1));
  OK(flow_tape_begin(context, &tape));
  keep(tape, release_tape);
  for (int l = 0; l < LAYERS; l++) {
    x = OP2(add, OP2(matmul, x, reading(m->variables[2 * l])), reading(m->variables[2 * l + 1]));
    if (l < LAYERS - 1) x = OP1(relu, x);
  }
  OK(flow_mean(context, OP2(sparse_cross_entropy, x, labels), NULL, &outputs[0]));
  keep(outputs[0], release_tensor);
  OK(flow_tape_end(context, tape));
  OK(flow_tape_gradient(context, tape, outputs[0], NULL, m->variables, VARIABLES, gradients));
  OK(flow_optimizer_apply(context, m->optimizer, gradients, m->variables, VARIABLES));
  for (int i = 0; i < VARIABLES; i++) outputs[1 + i] = keep(gradients[i], release_tensor);
  return plan_of(outputs, whole ? 1 + VARIABLES : 1);
}

static const flow_node *update_of(const flow_plan *plan)
{
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (node->op == FLOW_OP_sgd || node->op == FLOW_OP_adam) return node;
  }
  fail_msg("no optimizer in the plan");
  return NULL;
}

static flow_tensor *labels(void)
{
  flow_tensor *t = keep(zeros(FLOW_INT32, 1, SHAPE(ROWS)), release_tensor);
  for (int i = 0; i < ROWS; i++) ((int32_t *)flow_tensor_data(t))[i] = i * 7 % CLASSES;
  return t;
}

static void train(model *m, flow_plan *plan, int steps)
{
  flow_instance *instance = instance_of(plan, ROWS);
  flow_tensor *inputs[2] = { noise(2, SHAPE(ROWS, m->sizes[0]), 5), labels() };
  for (int step = 0; step < steps; step++) run(instance, inputs, 2, NULL);
}

static void expect_same_model(const model *a, const model *b, double tolerance)
{
  for (int i = 0; i < VARIABLES; i++) {
    if (tolerance == 0) expect_same_bits(a->variables[i]->tensor, b->variables[i]->tensor);
    else expect_close(a->variables[i]->tensor, b->variables[i]->tensor, tolerance);
  }
  for (int i = 0; i < flow_optimizer_slot_count(a->optimizer); i++) {
    const flow_tensor *x = flow_optimizer_slot(a->optimizer, i)->tensor, *y = flow_optimizer_slot(b->optimizer, i)->tensor;
    if (tolerance == 0) expect_same_bits(x, y);
    else expect_close(x, y, tolerance);
  }
}

static void compare(int kind, int in, int hidden)
{
  model whole = make_model(kind, in, hidden), fused = make_model(kind, in, hidden), threads = make_model(kind, in, hidden);
  flow_plan *fused_plan = step_of(&fused, 0), *whole_plan = step_of(&whole, 1);
  int products = update_of(fused_plan)->attributes.optimizer.products;
  assert_int_equal(products, (in * hidden >= 1 << 15) + 0);
  assert_int_equal(count_op(fused_plan, FLOW_OP_matmul), count_op(whole_plan, FLOW_OP_matmul) - products);
  assert_int_equal(update_of(whole_plan)->attributes.optimizer.products, 0);
  OK(flow_set_threads(1));
  train(&whole, whole_plan, STEPS);
  train(&fused, fused_plan, STEPS);
  expect_same_model(&whole, &fused, 1e-6);
  OK(flow_set_threads(2));
  train(&threads, step_of(&threads, 0), STEPS);
  train(&threads, step_of(&threads, 0), STEPS);
  OK(flow_set_threads(1));
  train(&fused, fused_plan, STEPS);
  expect_same_model(&threads, &fused, 0);
  OK(flow_set_threads(0));
}

static void test_same_parameters(void **state)
{
  (void)state;
  for (int kind = 0; kind < 5; kind++) {
    compare(kind, 300, 128);
    compare(kind, 521, 131);
    compare(kind, 20, 30);     /* too small */
  }
}

/* Two large layers one after the other, and no parameters beside them. */
static void test_two_layers(void **state)
{
  (void)state;
  flow_variable *v[2][2];
  flow_tensor *x = noise(2, SHAPE(7, 180), 1);
  for (int whole = 0; whole < 2; whole++) {
    v[whole][0] = variable_of(noise(2, SHAPE(180, 200), 2), "a");
    v[whole][1] = variable_of(noise(2, SHAPE(200, 190), 3), "b");
    flow_optimizer *adam = make_optimizer(3);
    flow_tape *tape;
    flow_tensor *gradients[2];
    OK(flow_trace_begin(context));
    flow_tensor *in = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 180));
    OK(flow_tape_begin(context, &tape));
    keep(tape, release_tape);
    flow_tensor *loss = sum_of(OP1(square, OP2(matmul, OP1(tanh, OP2(matmul, in, reading(v[whole][0]))), reading(v[whole][1]))));
    OK(flow_tape_end(context, tape));
    OK(flow_tape_gradient(context, tape, loss, NULL, v[whole], 2, gradients));
    OK(flow_optimizer_apply(context, adam, gradients, v[whole], 2));
    for (int i = 0; i < 2; i++) keep(gradients[i], release_tensor);
    flow_plan *plan = whole ? PLAN(loss, gradients[0], gradients[1]) : PLAN(loss);
    assert_int_equal(update_of(plan)->attributes.optimizer.products, whole ? 0 : 2);
    flow_instance *instance = instance_of(plan, 7);
    for (int step = 0; step < STEPS; step++) run(instance, &x, 1, NULL);
  }
  for (int i = 0; i < 2; i++) expect_close(v[0][i]->tensor, v[1][i]->tensor, 1e-6);
}

/* Bad data refuse a step before anything is written. */
static void test_a_refused_step(void **state)
{
  (void)state;
  model m = make_model(3, 300, 128);
  flow_plan *plan = step_of(&m, 0);
  assert_int_equal(update_of(plan)->attributes.optimizer.products, 1);
  flow_instance *instance = instance_of(plan, ROWS);
  flow_tensor *inputs[2] = { noise(2, SHAPE(ROWS, 300), 5), labels() }, *before[VARIABLES];
  run(instance, inputs, 2, NULL);
  for (int i = 0; i < VARIABLES; i++) before[i] = value_of(m.variables[i]);
  flow_tensor *slot = value_of(flow_optimizer_slot(m.optimizer, 0));
  ((int32_t *)flow_tensor_data(inputs[1]))[ROWS - 1] = CLASSES;
  assert_int_not_equal(flow_instance_run(context, instance, inputs, 2, NULL), FLOW_OK);
  for (int i = 0; i < VARIABLES; i++) expect_same_bits(m.variables[i]->tensor, before[i]);
  expect_same_bits(flow_optimizer_slot(m.optimizer, 0)->tensor, slot);
  assert_true(flow_variable_number(flow_optimizer_iterations(m.optimizer)) == 1);
}

/* A factor that is a variable may be written before its reader runs: the product is computed in time instead. */
static void test_variables_are_no_factors(void **state)
{
  (void)state;
  flow_variable *x = variable_of(noise(2, SHAPE(4, 200), 1), "x"), *w = variable_of(noise(2, SHAPE(200, 180), 2), "w");
  flow_optimizer *sgd = make_optimizer(0);
  OK(flow_trace_begin(context));
  flow_tensor *g = input_of(FLOW_FLOAT32, 2, SHAPE(4, 180));
  flow_tensor *gradient = op3(FLOW_OP_matmul, reading(x), g, NULL, &(flow_attributes){ .matmul = { .transpose_a = 1 } });
  OK(flow_variable_assign(context, x, OP1(neg, reading(x))));
  OK(flow_optimizer_apply(context, sgd, &gradient, &w, 1));
  flow_plan *plan = PLAN(number(0));
  assert_int_equal(update_of(plan)->attributes.optimizer.products, 0);
}

/* Of many large gradients the largest ones are taken. */
static void test_many_layers(void **state)
{
  (void)state;
  enum { MANY = 6 };
  flow_variable *v[MANY];
  flow_tensor *gradients[MANY];
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 400));
  for (int i = 0; i < MANY; i++) {
    int n = i == 1 ? 90 : i == 4 ? 91 : 100;
    v[i] = variable_of(noise(2, SHAPE(400, n), (unsigned)i), "w");
    flow_tensor *g = input_of(FLOW_FLOAT32, 2, SHAPE(-1, n));
    gradients[i] = op3(FLOW_OP_matmul, x, g, NULL, &(flow_attributes){ .matmul = { .transpose_a = 1 } });
  }
  OK(flow_optimizer_apply(context, make_optimizer(0), gradients, v, MANY));
  const flow_node *update = update_of(PLAN(number(0)));
  assert_int_equal(update->attributes.optimizer.products, FLOW_MAX_PRODUCTS);
  assert_int_equal(update->attributes.optimizer.first[1], 400 * 190);
  assert_int_equal(update->attributes.optimizer.first[3], 400 * 481);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_kernels), GRAPH_TEST(test_same_parameters), GRAPH_TEST(test_two_layers), GRAPH_TEST(test_a_refused_step),
    GRAPH_TEST(test_variables_are_no_factors), GRAPH_TEST(test_many_layers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
