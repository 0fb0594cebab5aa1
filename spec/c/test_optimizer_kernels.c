/* test_optimizer_kernels.c: every optimizer op in every variant of every build, with weight decay, with gradients that come as
 * factors and with a guard, against formulas in double. */
#include <math.h>
#include <string.h>
#include "kernel_runner.h"
#include "ops/optimizer_layout.h"

static const double rate = 0.0625, rho = 0.8, epsilon = 1e-3, decay = 0.25, beta_1 = 0.9, beta_2 = 0.99;
static const int iterations = 3;

/* One element: gradient, parameter after decay, slots; returns the new parameter. */
typedef double formula(const flow_attributes *a, double g, double w, double *const *s);

static double sgd(const flow_attributes *a, double g, double w, double *const *s)
{
  double m = a->optimizer.momentum, step = rate * g;
  if (m == 0) return w - step;
  *s[0] = m * *s[0] - step;
  return w + (a->optimizer.nesterov ? m * *s[0] - step : *s[0]);
}

static double adam(const flow_attributes *a, double g, double w, double *const *s)
{
  double t = iterations + 1, corrected = rate * sqrt(1 - pow((float)beta_2, t)) / (1 - pow((float)beta_1, t));
  *s[0] = beta_1 * *s[0] + (1 - beta_1) * g;
  *s[1] = beta_2 * *s[1] + (1 - beta_2) * g * g;
  if (a->optimizer.amsgrad) *s[2] = fmax(*s[2], *s[1]);
  return w - corrected * *s[0] / (sqrt(a->optimizer.amsgrad ? *s[2] : *s[1]) + epsilon);
}

static double rmsprop(const flow_attributes *a, double g, double w, double *const *s)
{
  double denominator = *s[0] = rho * *s[0] + (1 - rho) * g * g;
  if (a->optimizer.centered) {
    double *mean = a->optimizer.momentum != 0 ? s[2] : s[1];
    *mean = rho * *mean + (1 - rho) * g;
    denominator -= *mean * *mean;
  }
  double step = rate * g / sqrt(denominator + epsilon);
  if (a->optimizer.momentum != 0) step = *s[1] = a->optimizer.momentum * *s[1] + step;
  return w - step;
}

static double adagrad(const flow_attributes *a, double g, double w, double *const *s)
{
  (void)a;
  *s[0] += g * g;
  return w - rate * g / sqrt(*s[0] + epsilon);
}

static double adadelta(const flow_attributes *a, double g, double w, double *const *s)
{
  (void)a;
  *s[0] = rho * *s[0] + (1 - rho) * g * g;
  double step = -sqrt(*s[1] + epsilon) / sqrt(*s[0] + epsilon) * g;
  *s[1] = rho * *s[1] + (1 - rho) * step * step;
  return w + rate * step;
}

static double adamax(const flow_attributes *a, double g, double w, double *const *s)
{
  (void)a;
  *s[0] = beta_1 * *s[0] + (1 - beta_1) * g;
  *s[1] = fmax(beta_2 * *s[1], fabs(g));
  return w - rate / (1 - pow((float)beta_1, iterations + 1)) * *s[0] / (*s[1] + epsilon);
}

typedef struct kernel_case { int op; formula *expected; double momentum; int nesterov, amsgrad, centered; } kernel_case;

static const kernel_case cases[] = {
  { FLOW_OP_sgd, sgd, 0, 0, 0, 0 }, { FLOW_OP_sgd, sgd, 0.9, 0, 0, 0 }, { FLOW_OP_sgd, sgd, 0.9, 1, 0, 0 },
  { FLOW_OP_adam, adam, 0, 0, 0, 0 }, { FLOW_OP_adam, adam, 0, 0, 1, 0 },
  { FLOW_OP_rmsprop, rmsprop, 0, 0, 0, 0 }, { FLOW_OP_rmsprop, rmsprop, 0.5, 0, 0, 0 },
  { FLOW_OP_rmsprop, rmsprop, 0, 0, 0, 1 }, { FLOW_OP_rmsprop, rmsprop, 0.5, 0, 0, 1 },
  { FLOW_OP_adagrad, adagrad, 0, 0, 0, 0 }, { FLOW_OP_adadelta, adadelta, 0, 0, 0, 0 }, { FLOW_OP_adamax, adamax, 0, 0, 0, 0 },
};

typedef struct expectation {
  double *values[1 + FLOW_MAX_SLOT_KINDS], tolerance;      /* parameters, slots */
  int     inputs[1 + FLOW_MAX_SLOT_KINDS], count;
} expectation;

static void check_update(const flow_call *call, const char *variant, void *argument)
{
  const expectation *e = argument;
  for (int v = 0; v < e->count; v++)
    for (int64_t i = 0; i < operand_size(&call->inputs[e->inputs[v]]); i++)
      assert_near(get(&call->inputs[e->inputs[v]], i), e->values[v][i], e->tolerance * (1 + fabs(e->values[v][i])), variant, i);
}

enum { NO_GUARD = -1 };

/* n elements; k > 0: those from 5 on up to 5 + height x width have the product of k rows for a gradient; of many rows it is of several
 * blocks both ways. share: see kernels.h. guard: its value. */
static void try_case(const kernel_case *c, int dtype, int n, double weight_decay, int k, const flow_shard *share, int guard)
{
  enum { BEFORE = 5, MANY = 1000 };
  const int height = k > MANY ? 50 : 24, width = k > MANY ? 160 : 33;
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(c->op);
  flow_attributes attributes = { .optimizer = { .momentum = c->momentum, .beta_1 = beta_1, .beta_2 = beta_2, .epsilon = epsilon,
    .rho = rho, .weight_decay = weight_decay, .nesterov = c->nesterov, .amsgrad = c->amsgrad, .centered = c->centered,
    .products = k > 0, .first = { BEFORE } } };
  const char *names[FLOW_MAX_SLOT_KINDS];
  int slots = layout->names(&attributes, names), count = flow_optimizer_inputs(layout, &attributes);
  flow_operand inputs[FLOW_MAX_OPERANDS];
  for (int i = 0; i < count; i++) {
    if (i == layout->rate) inputs[i] = operand(FLOW_FLOAT32, 0);
    else if (i == layout->iterations) inputs[i] = operand(FLOW_INT64, 0);
    else inputs[i] = operand(dtype, 1, i == 0 && k > 0 ? n - height * width : n);
    fill(&inputs[i], 1);
  }
  set(&inputs[layout->rate], 0, rate);
  if (layout->iterations >= 0) set(&inputs[layout->iterations], 0, iterations);
  if (guard != NO_GUARD) {
    inputs[count] = operand(FLOW_FLOAT32, 0);
    set(&inputs[count], 0, guard);
    assert_int_equal(flow_optimizer_guard(layout, &attributes, count + 1 + (k > 0 ? 2 : 0)), count);
    count++;
  }
  if (k > 0) {
    inputs[count] = operand(FLOW_FLOAT32, 2, k, height);
    inputs[count + 1] = operand(FLOW_FLOAT32, 2, k, width);
    fill(&inputs[count], 1);
    fill(&inputs[count + 1], 1);
  }
  expectation e = { .inputs = { 1 }, .count = 1 + slots, .tolerance = dtype == FLOW_FLOAT32 ? 1e-5 : 1e-13 };
  for (int v = 0; v <= slots; v++) {
    if (v > 0) e.inputs[v] = layout->slots[v - 1];
    e.values[v] = malloc((size_t)n * sizeof(double));
    assert_non_null(e.values[v]);
    for (int i = 0; i < n; i++) {
      flow_operand *x = &inputs[e.inputs[v]];
      double value = get(x, i);
      /* Squares are not negative, and neither is a variance. */
      if (v > 0 && strcmp(names[v - 1], "average_gradient") == 0) set(x, i, value / 16);
      else if (v > 0 && strcmp(names[v - 1], "momentum") != 0) set(x, i, 0.5 + fabs(value));
      e.values[v][i] = get(x, i);
    }
  }
  int written = 0;
  for (int v = 0; v <= slots; v++) written |= 1 << e.inputs[v];
  for (int i = 0; i < n && guard != 0; i++) {
    double g = 0, *s[FLOW_MAX_SLOT_KINDS] = { NULL };
    int at = i - BEFORE, is_inside = at >= 0 && at < height * width;
    if (share && (is_inside ? at / width < share->rows[0][0] || at / width >= share->rows[0][1] : !share->rest)) continue;
    if (k > 0 && is_inside) {
      for (int r = 0; r < k; r++) g += get(&inputs[count], r * height + at / width) * get(&inputs[count + 1], r * width + at % width);
    } else {
      g = get(&inputs[0], k > 0 && at >= height * width ? i - height * width : i);
    }
    for (int v = 0; v < slots; v++) s[v] = &e.values[v + 1][i];
    double w = e.values[0][i];
    e.values[0][i] = c->expected(&attributes, g, w - w * weight_decay * rate, s);
  }
  flow_call call = call_of(c->op, &attributes, inputs, count + (k > 0 ? 2 : 0), NULL, 0);
  call.shard = share;
  run_everywhere(&call, written, check_update, &e);
  for (int i = 0; i < call.input_count; i++) operand_free(&inputs[i]);
  for (int v = 0; v <= slots; v++) free(e.values[v]);
}

static void test_kernels(void **state)
{
  (void)state;
  static const int sizes[] = { 1, 7, 1003, 40000 };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
    for (int decayed = 0; decayed < 2; decayed++) {
      double weight_decay = decayed ? decay : 0;
      for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        try_case(&cases[c], FLOW_FLOAT32, sizes[i], weight_decay, 0, NULL, NO_GUARD);
      try_case(&cases[c], FLOW_FLOAT64, 1003, weight_decay, 0, NULL, NO_GUARD);
      try_case(&cases[c], FLOW_FLOAT32, 1003, weight_decay, 9, NULL, NO_GUARD);
      if (!decayed && (c == 0 || (cases[c].op == FLOW_OP_adam && !cases[c].amsgrad)))
        try_case(&cases[c], FLOW_FLOAT32, 9000, 0, 1030, NULL, NO_GUARD);
      for (int guard = 0; guard < 2; guard++) {
        try_case(&cases[c], FLOW_FLOAT32, 40000, weight_decay, 0, NULL, guard);
        try_case(&cases[c], FLOW_FLOAT32, 1003, weight_decay, 9, NULL, guard);
        try_case(&cases[c], FLOW_FLOAT64, 1003, weight_decay, 0, NULL, guard);
      }
      static const flow_shard shares[] = { { .rows = { { 0, 11 } }, .rest = 1 }, { .rows = { { 11, 24 } } },
                                           { .rows = { { 7, 7 } }, .rest = 1 } };
      for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        try_case(&cases[c], FLOW_FLOAT32, 1003, weight_decay, 9, &shares[i], NO_GUARD);
    }
}

/* An update that is written somewhere else has the bits of one in place, leaves what it read, and touches nothing but its part. height x
 * width elements from 5 on have products of k rows for gradients. */
static void try_moved(const kernel_case *c, double weight_decay, int width, int k, const flow_shard *part)
{
  enum { BEFORE = 5, AFTER = 40, HEIGHT = 48 };
  const int n = BEFORE + HEIGHT * width + AFTER;
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(c->op);
  flow_attributes attributes = {
    .optimizer = { .momentum = c->momentum,
                   .beta_1 = beta_1,
                   .beta_2 = beta_2,
                   .epsilon = epsilon,
                   .rho = rho,
                   .weight_decay = weight_decay,
                   .nesterov = c->nesterov,
                   .amsgrad = c->amsgrad,
                   .centered = c->centered,
                   .products = 1,
                   .first = { BEFORE } }
  };
  int count = flow_optimizer_inputs(layout, &attributes), moves = 0;
  flow_operand inputs[FLOW_MAX_OPERANDS];
  for (int i = 0; i < count; i++) {
    int is_number = i == layout->rate || i == layout->iterations;
    inputs[i] = is_number ? operand(i == layout->rate ? FLOW_FLOAT32 : FLOW_INT64, 0) : operand(FLOW_FLOAT32, 1, i == 0 ? n : 2 * n);
    fill(&inputs[i], 1);
    for (int at = 0; i > 0 && !is_number && at < 2 * n; at++) set(&inputs[i], at, at < n ? 0.5 + fabs(get(&inputs[i], at)) : -77);
    if (!is_number) inputs[i].shape[0] = i == 0 ? n - HEIGHT * width : n;
  }
  set(&inputs[layout->rate], 0, rate);
  if (layout->iterations >= 0) set(&inputs[layout->iterations], 0, iterations);
  for (int i = 0; i < 2; i++) {
    inputs[count + i] = operand(FLOW_FLOAT32, 2, k, i == 0 ? HEIGHT : width);
    fill(&inputs[count + i], 1);
  }
  flow_call call = call_of(c->op, &attributes, inputs, count + 2, NULL, 0);
  for_each_kernel(kernel, call.op)
  {
    flow_shard moved = *part;
    if (!kernel->moves || !kernel->supports(&call)) continue;
    moves++;
    float *before[FLOW_MAX_OPERANDS] = { NULL };
    moved.moved = n * (int64_t)sizeof(float);
    call.shard = &moved;
    for (int i = 1; i < count; i++) {
      if (inputs[i].rank == 0) continue;
      before[i] = malloc(2 * (size_t)n * sizeof(float));
      memcpy(before[i], inputs[i].data, 2 * (size_t)n * sizeof(float));
    }
    assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
    call.shard = part;
    for (int i = 1; i < count; i++) { /* the same in place, behind what the first has written */
      float *now = inputs[i].data;
      if (!before[i]) continue;
      assert_memory_equal(now, before[i], (size_t)n * sizeof(float));
      memcpy(before[i] + n, now + n, (size_t)n * sizeof(float));
    }
    assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
    for (int i = 1; i < count; i++) {
      float *now = inputs[i].data;
      if (!before[i]) continue;
      for (int at = 0; at < n; at++) {
        int inside = at >= BEFORE && at < BEFORE + HEIGHT * width, row = (at - BEFORE) / width;
        int mine = inside ? row >= part->rows[0][0] && row < part->rows[0][1] : part->rest;
        float wanted = mine ? now[at] : -77;
        assert_memory_equal(&before[i][n + at], &wanted, sizeof wanted);
      }
      for (int at = 0; at < n; at++) now[n + at] = -77;
      memcpy(now, before[i], (size_t)n * sizeof(float));
      free(before[i]);
    }
  }
  assert_true(moves > 0);
  for (int i = 0; i < count; i++)
    if (inputs[i].rank > 0) inputs[i].shape[0] = i == 0 ? n : 2 * n;
  for (int i = 0; i < call.input_count; i++) operand_free(&inputs[i]);
}

static void test_moved(void **state)
{
  (void)state;
  static const flow_shard parts[] = { { .rows = { { 0, 48 } }, .rest = 1 },
                                      { .rows = { { 0, 16 } } },
                                      { .rows = { { 32, 48 } }, .rest = 1 },
                                      { .rows = { { 16, 16 } }, .rest = 1 } };
  static const int widths[] = { 33, 64, 128, 160 }, all_rows[] = { 9, 300, 0 };
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
    for (int w = 0; w < 4; w++)
      for (int k = 0; k < 3; k++)
        for (int p = 0; p < 4; p++) try_moved(&cases[c], p % 2 ? decay : 0, widths[w], all_rows[k], &parts[p]);
}

/* A record whose op has no layout, or a layout whose record says another number of inputs, would read what is not there. */
static void test_layouts(void **state)
{
  (void)state;
  int updates[FLOW_OP_COUNT] = {
#define FLOW_OP(name, inputs, outputs, kind, flags, shape, ...) [FLOW_OP_##name] = strcmp(#shape, "optimizer") == 0,
#include "ops/ops.def"
#undef FLOW_OP
  };
  assert_true(updates[FLOW_OP_sgd]);
  for (int op = 0; op < FLOW_OP_COUNT; op++) {
    const flow_optimizer_layout *layout = flow_optimizer_layout_of(op);
    assert_int_equal(layout != NULL, updates[op]);
    if (!layout) continue;
    flow_attributes least = { .optimizer = { .momentum = 0 } }, most = { .optimizer = { .momentum = 0.5, .amsgrad = 1, .centered = 1 } };
    assert_int_equal(flow_optimizer_inputs(layout, &least), flow_op(op)->min_inputs);
    assert_int_equal(flow_optimizer_inputs(layout, &most) + 1 + 2 * FLOW_MAX_PRODUCTS, flow_op(op)->max_inputs);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_kernels), cmocka_unit_test(test_moved), cmocka_unit_test(test_layouts) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
