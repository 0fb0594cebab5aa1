/* test_plan.c: from traces to plans: versions of variables, order of effects, dead nodes, fusion, the memory plan. */
#include "graphs.h"
#include "autodiff/apply.h"

#include "plan/memory_plan.h"

static const flow_attributes same_convolution =
  { .convolution = { .stride = { 1, 1 }, .dilation = { 1, 1 }, .padding = { 1, 1, 1, 1 }, .groups = 1 } };
static const flow_attributes pool_by_two = { .pool = { .size = { 2, 2 }, .stride = { 2, 2 } } };

static void assign(flow_variable *v, flow_tensor *value) { OK(flow_variable_assign(context, v, value)); }

/* v -= rate x gradient, in place, as a separate optimizer each time. */
static void update(flow_optimizer *sgd, flow_variable *v, flow_tensor *gradient)
{
  OK(flow_optimizer_apply(context, sgd, &gradient, &v, 1));
}

static flow_optimizer *sgd_of_rate(double rate)
{
  flow_optimizer *sgd = optimizer_of("SGD");
  flow_tensor *value = number(rate);
  assign(flow_optimizer_learning_rate(sgd), value);
  return sgd;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

static void test_read_assign_read(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(1, 2), "v");
  OK(flow_trace_begin(context));
  flow_tensor *before = reading(v);
  assign(v, OP2(add, before, number(10)));
  flow_tensor *between = reading(v);
  assign(v, OP2(mul, between, number(2)));
  flow_tensor *after = reading(v);
  flow_instance *instance = instance_of(PLAN(before, between, after), 1);
  flow_tensor *out[3];
  run(instance, NULL, 0, out);
  EXPECT(out[0], 1, 2);
  EXPECT(out[1], 11, 12);
  EXPECT(out[2], 22, 24);
  EXPECT(v->tensor, 22, 24);
  run(instance, NULL, 0, out);
  EXPECT(out[0], 22, 24);
  EXPECT(v->tensor, 64, 68);
}

static void test_swap(void **state)
{
  (void)state;
  flow_variable *a = variable_of(VECTOR(1, 2), "a"), *b = variable_of(VECTOR(3, 4), "b");
  OK(flow_trace_begin(context));
  flow_tensor *old_a = reading(a), *old_b = reading(b);
  assign(a, old_b);
  assign(b, old_a);
  flow_instance *instance = instance_of(PLAN(old_a, old_b), 1);
  flow_tensor *out[2];
  run(instance, NULL, 0, out);
  EXPECT(a->tensor, 3, 4);
  EXPECT(b->tensor, 1, 2);
  EXPECT(out[0], 1, 2);
  EXPECT(out[1], 3, 4);
  run(instance, NULL, 0, NULL);
  EXPECT(a->tensor, 1, 2);
}

/* Three readings around two updates in place, used together only at the end. */
static void test_readings_around_updates(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(10, 20), "v");
  flow_optimizer *sgd = sgd_of_rate(1);
  OK(flow_trace_begin(context));
  flow_tensor *before = reading(v);
  update(sgd, v, VECTOR(1, 1));
  flow_tensor *between = reading(v);
  update(sgd, v, VECTOR(2, 2));
  flow_tensor *after = reading(v);
  /* Both nodes run in the tail and read old versions. */
  flow_tensor *total = OP2(sub, after, before), *step = OP2(sub, after, between);
  flow_plan *plan = PLAN(before, between, after, total, step);
  flow_instance *instance = instance_of(plan, 1);
  flow_tensor *out[5];
  run(instance, NULL, 0, out);
  EXPECT(out[0], 10, 20);
  EXPECT(out[1], 9, 19);
  EXPECT(out[2], 7, 17);
  EXPECT(out[3], -3, -3);
  EXPECT(out[4], -2, -2);
  EXPECT(v->tensor, 7, 17);
  assert_true(flow_variable_number(flow_optimizer_iterations(sgd)) == 2);
}

/* Products of matrices that each row has of its own go by rows while they are small; others see the whole batch. */
static void test_products_by_rows(void **state)
{
  (void)state;
  static const struct { int64_t a[4], b[4]; int rank_b, by_rows; } cases[] = {
    { { -1, 4, 128, 32 }, { -1, 4, 32, 128 }, 4, 1 },
    { { -1, 4, 512, 32 }, { -1, 4, 32, 512 }, 4, 0 },      /* 32 million multiplications a row */
    { { -1, 4, 128, 32 }, { -1, 1, 32, 128 }, 4, 0 },      /* one for all heads */
    { { -1, 4, 128, 32 }, { 32, 128 }, 2, 0 },             /* for all rows */
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    OK(flow_trace_begin(context));
    flow_tensor *a = input_of(FLOW_FLOAT32, 4, cases[i].a), *b = input_of(FLOW_FLOAT32, cases[i].rank_b, cases[i].b);
    flow_plan *plan = PLAN(OP2(matmul, a, b));
    assert_int_equal(plan->segments[0].by_rows, cases[i].by_rows);
  }
}

/* A tail with work over the batch runs it by rows, like the body. */
static void test_tail_by_rows(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(1, 2, 3), "v"), *w = variable_of(VECTOR(5, 5, 5), "w");
  flow_optimizer *sgd = sgd_of_rate(1);
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 3));
  flow_tensor *old_w = reading(w);
  update(sgd, v, VECTOR(1, 1, 1));
  flow_tensor *y = OP2(add, OP2(mul, x, reading(v)), old_w);
  flow_tensor *gradient = op3(FLOW_OP_sum, y, NULL, NULL, &(flow_attributes){ .reduce = { .count = 1, .axes = { 0 } } });
  update(sgd, w, gradient);
  flow_plan *plan = PLAN(y, reading(w));
  int tail_rows = 0;
  for (int s = 0; s < plan->segment_count; s++) tail_rows += plan->segments[s].tail && plan->segments[s].by_rows;
  assert_int_equal(tail_rows, 1);
  flow_instance *instance = instance_of(plan, 4);
  flow_tensor *in = floats_of(2, SHAPE(2, 3), DOUBLES(1, 1, 1, 2, 2, 2)), *out[2];
  run(instance, &in, 1, out);
  EXPECT(out[0], 5, 6, 7, 5, 7, 9);
  EXPECT(out[1], -5, -8, -11);
  EXPECT(w->tensor, -5, -8, -11);
  EXPECT(v->tensor, 0, 1, 2);
}

/* ---- gradients of versions: traces agree with eager mode --------------------------------------------------------------- */

static void gradient_after_assign(flow_variable *v, flow_tensor **gradient)
{
  flow_tape *tape;
  OK(flow_tape_begin(context, &tape));
  keep(tape, release_tape);
  flow_tensor *first = reading(v);
  assign(v, OP2(mul, first, number(2)));
  flow_tensor *second = reading(v);
  flow_tensor *target = sum_of(OP2(add, OP2(mul, second, number(3)), first));
  OK(flow_tape_end(context, tape));
  OK(flow_tape_gradient(context, tape, target, NULL, &v, 1, gradient));
  keep(*gradient, release_tensor);
}

static void test_assignment_cuts_gradients(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(1, 2), "v");
  flow_tensor *eager, *traced;
  gradient_after_assign(v, &eager);
  EXPECT(eager, 4, 4);
  OK(flow_trace_begin(context));
  gradient_after_assign(v, &traced);
  flow_instance *instance = instance_of(PLAN(traced), 1);
  flow_tensor *out;
  run(instance, NULL, 0, &out);
  EXPECT(out, 4, 4);
}

/* ---- dead nodes and fusion ------------------------------------------------------------------------------------------------ */

static void test_dead_nodes(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(1, 2), "v");
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 2, SHAPE(-1, 2));
  OP1(exp, OP1(tanh, x));
  flow_tensor *y = OP1(neg, x);
  assign(v, OP1(square, reading(v)));
  OP1(sqrt, reading(v));
  flow_plan *plan = PLAN(y);
  assert_int_equal(count_op(plan, FLOW_OP_exp) + count_op(plan, FLOW_OP_tanh) + count_op(plan, FLOW_OP_sqrt), 0);
  assert_int_equal(count_op(plan, FLOW_OP_neg), 1);
  assert_int_equal(count_op(plan, FLOW_OP_assign), 1);
  assert_int_equal(plan->order_count, 3);
}

static flow_tensor *dense_relu(flow_tensor *x, flow_tensor *w, flow_tensor *b, flow_tensor **middle)
{
  *middle = OP2(add, OP2(matmul, x, w), b);
  return OP1(relu, *middle);
}

static void test_dense_fusion(void **state)
{
  (void)state;
  flow_tensor *x = noise(2, SHAPE(5, 7), 1), *w = noise(2, SHAPE(7, 3), 2), *b = noise(1, SHAPE(3), 3), *middle, *out[2];
  flow_tensor *eager = dense_relu(x, w, b, &middle), *eager_middle = middle;

  OK(flow_trace_begin(context));
  flow_tensor *traced = dense_relu(input_of(FLOW_FLOAT32, 2, SHAPE(-1, 7)), w, b, &middle);
  flow_plan *plan = PLAN(traced);
  assert_int_equal(plan->order_count, 1);
  assert_int_equal(count_op(plan, FLOW_OP_dense), 1);
  run(instance_of(plan, 5), &x, 1, out);
  expect_close(out[0], eager, 1e-5);

  OK(flow_trace_begin(context));   /* the middle is a result, too: relu stays apart, nothing is computed twice */
  traced = dense_relu(input_of(FLOW_FLOAT32, 2, SHAPE(-1, 7)), w, b, &middle);
  plan = PLAN(traced, middle);
  assert_int_equal(count_op(plan, FLOW_OP_dense), 1);
  assert_int_equal(count_op(plan, FLOW_OP_matmul), 0);
  assert_int_equal(count_op(plan, FLOW_OP_relu), 1);
  run(instance_of(plan, 5), &x, 1, out);
  expect_close(out[0], eager, 1e-5);
  expect_close(out[1], eager_middle, 1e-5);

  OK(flow_trace_begin(context));   /* another node reads it */
  traced = dense_relu(input_of(FLOW_FLOAT32, 2, SHAPE(-1, 7)), w, b, &middle);
  plan = PLAN(OP2(concat, traced, middle));
  assert_int_equal(count_op(plan, FLOW_OP_relu), 1);
  assert_int_equal(count_op(plan, FLOW_OP_dense), 1);
}

static flow_tensor *convolve(flow_tensor *x, flow_tensor *w, flow_tensor *b)
{
  flow_tensor *y = OP1(relu, OP2(add, op3(FLOW_OP_convolution, x, w, NULL, &same_convolution), b));
  return op3(FLOW_OP_max_pool, y, NULL, NULL, &pool_by_two);
}

static void test_convolution_fusion(void **state)
{
  (void)state;
  flow_tensor *x = noise(4, SHAPE(3, 8, 8, 2), 1), *w = noise(4, SHAPE(3, 3, 2, 5), 2), *b = noise(1, SHAPE(5), 3), *out;
  flow_tensor *eager = convolve(x, w, b);
  OK(flow_trace_begin(context));
  flow_plan *plan = PLAN(convolve(input_of(FLOW_FLOAT32, 4, SHAPE(-1, 8, 8, 2)), w, b));
  assert_int_equal(plan->order_count, 1);
  run(instance_of(plan, 3), &x, 1, &out);
  expect_close(out, eager, 1e-5);
}

/* A number in front of a convolution goes into its weights, unless somebody else reads the product. */
static void test_scaled_input(void **state)
{
  (void)state;
  flow_tensor *x = noise(4, SHAPE(3, 8, 8, 2), 1), *w = noise(4, SHAPE(3, 3, 2, 5), 2), *b = noise(1, SHAPE(5), 3), *scale, *out[2];
  OK(flow_tensor_scalar(FLOW_FLOAT32, 1.0 / 255, &scale));
  flow_tensor *scaled = OP2(mul, x, scale), *eager = convolve(scaled, w, b);
  for (int read = 0; read < 2; read++) {
    OK(flow_trace_begin(context));
    flow_tensor *product = OP2(mul, scale, input_of(FLOW_FLOAT32, 4, SHAPE(-1, 8, 8, 2))), *y = convolve(product, w, b);
    flow_plan *plan;
    OK(flow_trace_end(context, (flow_tensor *[]){ y, product }, 1 + read, &plan));
    assert_int_equal(count_op(plan, FLOW_OP_mul), read);
    run(instance_of(plan, 3), &x, 1, out);
    expect_close(out[0], eager, 1e-5);
    if (read) expect_close(out[1], scaled, 1e-6);
    flow_plan_release(plan);
  }
  flow_tensor_release(scale);
}

/* Numbers per channel after a convolution, with and without a bias, go into its weights, unless somebody reads between. */
static void test_affine_folding(void **state)
{
  (void)state;
  flow_tensor *x = noise(4, SHAPE(3, 8, 8, 2), 1), *w = noise(4, SHAPE(3, 3, 2, 5), 2), *b = noise(1, SHAPE(5), 3);
  flow_tensor *scale = noise(1, SHAPE(5), 4), *shift = noise(1, SHAPE(5), 5), *out[2];
  for (int bias = 0; bias < 2; bias++)
    for (int read = 0; read < 2; read++) {
      flow_tensor *results[2][2];      /* [traced][result] */
      for (int traced = 0; traced < 2; traced++) {
        if (traced) OK(flow_trace_begin(context));
        flow_tensor *y = op3(FLOW_OP_convolution, traced ? input_of(FLOW_FLOAT32, 4, SHAPE(-1, 8, 8, 2)) : x, w, NULL, &same_convolution);
        if (bias) y = OP2(add, y, b);
        results[traced][1] = y;
        results[traced][0] = OP1(relu, OP2(add, OP2(mul, scale, y), shift));
      }
      flow_plan *plan;
      OK(flow_trace_end(context, results[1], 1 + read, &plan));
      keep(plan, release_plan);
      assert_int_equal(count_op(plan, FLOW_OP_convolution), 1);
      assert_int_equal(count_op(plan, FLOW_OP_fused), read ? 1 : bias);      /* scale, shift, relu; or the bias times scale plus shift */
      assert_int_equal(count_op(plan, FLOW_OP_relu), 0);
      run(instance_of(plan, 3), &x, 1, out);
      expect_close(out[0], results[0][0], 1e-5);
      if (read) expect_close(out[1], results[0][1], 1e-5);
    }
}

/* Chains of elementwise ops become one pass, with the same numbers; results that somebody else wants stay. */
static void test_elementwise_chains(void **state)
{
  (void)state;
  flow_tensor *x = noise(2, SHAPE(50, 30), 1), *b = noise(1, SHAPE(30), 2), *eager[2], *traced[2], *out[2];
  for (int pass = 0; pass < 2; pass++) {
    if (pass) OK(flow_trace_begin(context));
    flow_tensor *in = pass ? input_of(FLOW_FLOAT32, 2, SHAPE(-1, 30)) : x, **to = pass ? traced : eager;
    to[1] = OP1(tanh, OP2(add, OP2(mul, in, in), b));
    to[0] = OP2(sub, OP1(sigmoid, OP1(neg, to[1])), OP1(square, to[1]));
  }
  flow_plan *plan = PLAN(traced[0], traced[1]);
  assert_true(plan->order_count < 7);
  run(instance_of(plan, 50), &x, 1, out);
  expect_close(out[0], eager[0], 1e-6);
  expect_close(out[1], eager[1], 1e-6);
}

/* A chain from the body into the tail keeps the old value of what it read before the update. */
static void test_chains_across_an_update(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(10, 20), "v"), *result = variable_of(VECTOR(0, 0), "result");
  flow_optimizer *sgd = sgd_of_rate(1);
  OK(flow_trace_begin(context));
  flow_tensor *before = OP1(neg, OP2(mul, reading(v), number(3)));
  update(sgd, v, VECTOR(1, 2));
  assign(result, OP2(add, OP1(neg, reading(v)), before));
  update(sgd, v, VECTOR(1, 2));
  run(instance_of(plan_of(NULL, 0), 1), NULL, 0, NULL);
  EXPECT(result->tensor, -39, -78);
  EXPECT(v->tensor, 8, 16);
}

/* Gradients of intermediate results: a fused op must not swallow them, or the caller must be told. */
static void test_gradients_of_intermediate_results(void **state)
{
  (void)state;
  flow_variable *w = variable_of(noise(2, SHAPE(7, 3), 2), "w"), *b = variable_of(noise(1, SHAPE(3), 3), "b");
  flow_tensor *x = noise(2, SHAPE(5, 7), 1), *middle, *gradients[2], *eager, *out[2];
  flow_tape *tape;
  OK(flow_tape_begin(context, &tape));
  keep(tape, release_tape);
  flow_tensor *target = sum_of(dense_relu(x, reading(w), reading(b), &middle));
  OK(flow_tape_end(context, tape));
  OK(flow_tape_gradient(context, tape, target, &middle, NULL, 1, &eager));
  keep(eager, release_tensor);

  OK(flow_trace_begin(context));
  OK(flow_tape_begin(context, &tape));
  keep(tape, release_tape);
  target = sum_of(dense_relu(input_of(FLOW_FLOAT32, 2, SHAPE(-1, 7)), reading(w), reading(b), &middle));
  OK(flow_tape_end(context, tape));
  OK(flow_tape_gradient(context, tape, target, (flow_tensor *[]){ middle, NULL }, (flow_variable *[]){ NULL, w }, 2, gradients));
  keep(gradients[0], release_tensor);
  keep(gradients[1], release_tensor);
  run(instance_of(PLAN(gradients[0], gradients[1]), 5), &x, 1, out);
  expect_close(out[0], eager, 1e-6);

  OK(flow_trace_begin(context));
  OK(flow_tape_begin(context, &tape));
  keep(tape, release_tape);
  target = sum_of(dense_relu(input_of(FLOW_FLOAT32, 2, SHAPE(-1, 7)), reading(w), reading(b), &middle));
  OK(flow_tape_end(context, tape));
  OK(flow_tape_gradient(context, tape, target, NULL, &w, 1, gradients));
  keep(gradients[0], release_tensor);
  FAILS(flow_tape_gradient(context, tape, target, &middle, NULL, 1, gradients), FLOW_INVALID_STATE, "in the first call");
  flow_trace_abort(context);
}

/* ---- traces: what they refuse ------------------------------------------------------------------------------------------------ */

static void test_used_up_tensors(void **state)
{
  (void)state;
  flow_tensor *out, *one = number(1);
  OK(flow_trace_begin(context));
  flow_tensor *x = input_of(FLOW_FLOAT32, 1, SHAPE(3));
  PLAN(OP1(neg, x));
  FAILS(flow_apply1(context, FLOW_OP_exp, x, NULL, NULL, NULL, &out), FLOW_INVALID_STATE, "after the trace that it belongs to");
  OK(flow_trace_begin(context));
  FAILS(flow_apply1(context, FLOW_OP_add, one, x, NULL, NULL, &out), FLOW_INVALID_STATE, "after the trace that it belongs to");
  flow_tensor *outer = input_of(FLOW_FLOAT32, 1, SHAPE(3));
  OK(flow_trace_begin(context));
  FAILS(flow_apply1(context, FLOW_OP_exp, outer, NULL, NULL, NULL, &out), FLOW_INVALID_STATE, "pass it as an argument");
  flow_plan *plan;
  FAILS(flow_trace_end(context, &outer, 1, &plan), FLOW_INVALID_STATE, "pass it as an argument");
  assert_int_equal(flow_trace_depth(context), 1);
  flow_tensor *y = OP1(exp, outer);   /* the outer trace goes on */
  double value;
  FAILS(flow_tensor_item(y, &value), FLOW_INVALID_STATE, "has no value while the function is traced");
  PLAN(y);
  FAILS(flow_trace_end(context, &y, 1, &plan), FLOW_INVALID_STATE, "no trace is open");
  FAILS(flow_trace_input(context, FLOW_FLOAT32, 1, SHAPE(3), &out), FLOW_INVALID_STATE, "no trace is open");
}

static void test_nesting_has_a_limit(void **state)
{
  (void)state;
  flow_tape *tapes[FLOW_MAX_TAPES + 1];
  for (int i = 0; i < FLOW_MAX_TRACES; i++) OK(flow_trace_begin(context));
  FAILS(flow_trace_begin(context), FLOW_INVALID_STATE, "does the traced function call itself?");
  for (int i = 0; i < FLOW_MAX_TRACES; i++) flow_trace_abort(context);
  assert_int_equal(flow_trace_depth(context), 0);
  flow_trace_abort(context);   /* harmless */
  for (int i = 0; i < FLOW_MAX_TAPES; i++) {
    OK(flow_tape_begin(context, &tapes[i]));
    keep(tapes[i], release_tape);
  }
  FAILS(flow_tape_begin(context, &tapes[FLOW_MAX_TAPES]), FLOW_INVALID_STATE, "end one first");
}

static void test_a_trace_ends_its_tapes(void **state)
{
  (void)state;
  flow_variable *v = variable_of(VECTOR(1, 2), "v");
  flow_tape *tape;
  flow_tensor *gradient;
  OK(flow_trace_begin(context));
  OK(flow_tape_begin(context, &tape));
  keep(tape, release_tape);
  flow_tensor *y = sum_of(reading(v));
  PLAN(y);
  assert_int_equal(flow_tape_depth(context), 0);
  FAILS(flow_tape_gradient(context, tape, y, NULL, &v, 1, &gradient), FLOW_INVALID_STATE, "has ended");
}

/* ---- memory plan ------------------------------------------------------------------------------------------------------------------- */

static void test_blocks_never_overlap(void **state)
{
  (void)state;
  enum { BLOCKS = 120, STEPS = 40 };
  flow_block blocks[BLOCKS];
  unsigned seed = 1;
  for (int round = 0; round < 50; round++) {
    size_t total, most_at_once = 0, sum = 0, alignment = round % 2 ? FLOW_DEVICE_ALIGNMENT : FLOW_CPU_ALIGNMENT;
    for (int i = 0; i < BLOCKS; i++) {
      unsigned r[3];
      for (int k = 0; k < 3; k++) r[k] = (seed = seed * 1664525u + 1013904223u) >> 8;
      blocks[i] = (flow_block){ .bytes = r[0] % 5 ? r[0] % 5000 : 0, .begin = (int)(r[1] % STEPS) };
      blocks[i].end = blocks[i].begin + (int)(r[2] % (r[0] % 3 ? 4 : STEPS));
    }
    OK(flow_pack_blocks(blocks, BLOCKS, alignment, &total));
    for (int i = 0; i < BLOCKS; i++) {
      assert_int_equal(blocks[i].offset % alignment, 0);
      assert_true(blocks[i].offset + blocks[i].bytes <= total);
      sum += blocks[i].bytes;
      for (int k = 0; k < i; k++) {
        int together = blocks[i].begin <= blocks[k].end && blocks[k].begin <= blocks[i].end;
        int apart = blocks[i].offset + blocks[i].bytes <= blocks[k].offset || blocks[k].offset + blocks[k].bytes <= blocks[i].offset;
        assert_true(!together || apart);
      }
    }
    for (int step = 0; step < 2 * STEPS; step++) {
      size_t now = 0;
      for (int i = 0; i < BLOCKS; i++) now += blocks[i].begin <= step && step <= blocks[i].end ? blocks[i].bytes : 0;
      if (now > most_at_once) most_at_once = now;
    }
    assert_true(total >= most_at_once && total <= sum);
    assert_true(total <= 2 * most_at_once);   /* bytes are shared, not just laid side by side */
  }
  flow_block huge[2] = { { .bytes = SIZE_MAX - 5 }, { .bytes = 64 } };
  size_t total;
  FAILS(flow_pack_blocks(huge, 2, FLOW_CPU_ALIGNMENT, &total), FLOW_OUT_OF_MEMORY, "smaller batches");
}

/* Gradients are computed where the optimizer reads them: pack copies nothing. */
static void test_gradients_lie_in_the_arena(void **state)
{
  (void)state;
  net n = make_net();
  flow_plan *plan;
  OK(trace_step(&n, optimizer_of("Adam"), &plan));
  keep(plan, release_plan);
  flow_instance *instance = instance_of(plan, 8);
  int packs = 0;
  for (int k = 0; k < plan->order_count; k++) {
    const flow_node *node = &plan->graph->nodes[plan->order[k]];
    if (node->op != FLOW_OP_pack) continue;
    packs++;
    assert_int_equal(node->input_count, NET_VARIABLES);
    const char *place = instance->part.bases[node->outputs[0]];
    for (int i = 0; i < node->input_count; i++) {
      assert_ptr_equal(instance->part.bases[plan->roots[node->inputs[i]]], place);
      place += flow_value_bytes(&plan->graph->values[node->inputs[i]].signature, 1);
    }
  }
  assert_int_equal(packs, 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    GRAPH_TEST(test_read_assign_read), GRAPH_TEST(test_swap), GRAPH_TEST(test_readings_around_updates),
    GRAPH_TEST(test_tail_by_rows), GRAPH_TEST(test_products_by_rows), GRAPH_TEST(test_assignment_cuts_gradients),
    GRAPH_TEST(test_dead_nodes),
    GRAPH_TEST(test_elementwise_chains), GRAPH_TEST(test_chains_across_an_update), GRAPH_TEST(test_dense_fusion),
    GRAPH_TEST(test_convolution_fusion), GRAPH_TEST(test_scaled_input), GRAPH_TEST(test_affine_folding),
    GRAPH_TEST(test_gradients_of_intermediate_results),
    GRAPH_TEST(test_used_up_tensors), GRAPH_TEST(test_nesting_has_a_limit), GRAPH_TEST(test_a_trace_ends_its_tapes),
    GRAPH_TEST(test_blocks_never_overlap), GRAPH_TEST(test_gradients_lie_in_the_arena),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
