/* test_cuda_optimizers.c: the optimizer ops on the device, with gradients in memory and as products, against the CPU's plain kernels. */
#include "cuda_runner.h"
#include "cuda/ops/optimizer/optimizers.h"
#include "ops/optimizer_layout.h"

typedef struct rule_case { int op; double momentum; int nesterov, amsgrad, centered; } rule_case;

static const rule_case rules[] = {
  { FLOW_OP_sgd, 0, 0, 0, 0 }, { FLOW_OP_sgd, 0.9, 0, 0, 0 }, { FLOW_OP_sgd, 0.9, 1, 0, 0 }, { FLOW_OP_adam, 0, 0, 0, 0 },
  { FLOW_OP_adam, 0, 0, 1, 0 }, { FLOW_OP_rmsprop, 0, 0, 0, 0 }, { FLOW_OP_rmsprop, 0.5, 0, 0, 0 }, { FLOW_OP_rmsprop, 0, 0, 0, 1 },
  { FLOW_OP_rmsprop, 0.5, 0, 0, 1 }, { FLOW_OP_adagrad, 0, 0, 0, 0 }, { FLOW_OP_adadelta, 0, 0, 0, 0 }, { FLOW_OP_adamax, 0, 0, 0, 0 },
};
enum { RULES = sizeof rules / sizeof rules[0] };

/* Gradients of parameters from `first` on are the product of k rows. */
typedef struct product_case { int first, k, m, n; } product_case;

typedef struct layout_case { int size, products; product_case product[FLOW_MAX_PRODUCTS]; } layout_case;

static const layout_case layouts[] = {
  { 1, 0, { { 0 } } },
  { 9001, 0, { { 0 } } },
  { 0, 0, { { 0 } } },
  { 800, 1, { { 5, 7, 24, 33 } } },
  { 1200, 2, { { 0, 3, 10, 12 }, { 128, 1, 67, 16 } } },            /* neighbours of whole vectors, to the end */
  { 700, 3, { { 1, 300, 3, 5 }, { 16, 0, 4, 4 }, { 400, 9, 1, 130 } } },   /* long sums, no rows */
};

/* A variance stays positive and its root has no pole near. */
static void fill_slot(flow_operand *x, const char *name)
{
  fill(x, 1);
  for (int64_t i = 0; i < operand_size(x); i++) {
    double value = get(x, i);
    if (strcmp(name, "average_gradient") == 0) set(x, i, value / 16);
    else if (strcmp(name, "momentum") != 0) set(x, i, 0.5 + fabs(value));
  }
}

enum { NO_GUARD = -1 };

static void try_case(const rule_case *rule, const layout_case *l, int dtype, int rate_dtype, double weight_decay, int guard)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(rule->op);
  flow_attributes attributes = { .optimizer = { .momentum = rule->momentum, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-3, .rho = 0.8,
    .weight_decay = weight_decay, .nesterov = rule->nesterov, .amsgrad = rule->amsgrad, .centered = rule->centered,
    .products = l->products } };
  const char *names[FLOW_MAX_SLOT_KINDS];
  int slots = layout->names(&attributes, names), count = flow_optimizer_inputs(layout, &attributes), in_memory = l->size, written = 1 << 1;
  for (int i = 0; i < l->products; i++) {
    attributes.optimizer.first[i] = l->product[i].first;
    in_memory -= l->product[i].m * l->product[i].n;
  }
  flow_operand inputs[FLOW_MAX_OPERANDS];
  for (int i = 0; i < count; i++) {
    if (i == layout->rate) inputs[i] = operand(rate_dtype, 0);
    else if (i == layout->iterations) inputs[i] = operand(FLOW_INT64, 0);
    else inputs[i] = operand(dtype, 1, i == 0 ? in_memory : l->size);
    fill(&inputs[i], 1);
  }
  set(&inputs[layout->rate], 0, 0.0625);
  if (layout->iterations >= 0) set(&inputs[layout->iterations], 0, 3);
  for (int s = 0; s < slots; s++) {
    fill_slot(&inputs[layout->slots[s]], names[s]);
    written |= 1 << layout->slots[s];
  }
  if (guard != NO_GUARD) {
    inputs[count] = operand(FLOW_FLOAT32, 0);
    set(&inputs[count++], 0, guard);
  }
  for (int i = 0; i < l->products; i++) {
    inputs[count] = operand(dtype, 2, l->product[i].k, l->product[i].m);
    inputs[count + 1] = operand(dtype, 2, l->product[i].k, l->product[i].n);
    fill(&inputs[count++], 0.5), fill(&inputs[count++], 0.5);
  }
  flow_call call = call_of(rule->op, &attributes, inputs, count, NULL, 0);
  call.exact = 1;                        /* a library's products in TF32 have three digits */
  cuda_matches_cpu(&call, (unsigned)written, dtype == FLOW_FLOAT32 ? 5e-6 : 1e-13);
  for (int i = 0; i < count; i++) operand_free(&inputs[i]);
}

static void float32_as_the_plain_kernels(void **state)
{
  (void)state;
  for (int r = 0; r < RULES; r++)
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++)
      for (int decay = 0; decay < 2; decay++)
        for (int guard = NO_GUARD; guard < 2; guard++)
          try_case(&rules[r], &layouts[l], FLOW_FLOAT32, FLOW_FLOAT32, 0.25 * decay, guard);
}

static void other_dtypes_in_double(void **state)
{
  (void)state;
  for (int r = 0; r < RULES; r++)
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++)
      try_case(&rules[r], &layouts[l], FLOW_FLOAT64, FLOW_FLOAT32, 0.25, (int)l % 2);
  try_case(&rules[3], &layouts[3], FLOW_FLOAT32, FLOW_FLOAT64, 0, NO_GUARD);          /* a rate of another dtype */
}

/* Blocks that are started do several: the emulated device has 4 multiprocessors. Factors of whole vectors and any number of rows. */
static void more_blocks_than_are_started(void **state)
{
  (void)state;
  static const layout_case many[] = {
    { 4 * UPDATE_FOURS * BLOCK_THREADS * (4 * UPDATE_BLOCKS + 3) + 5, 0, { { 0 } } },
    { 56000, 2, { { 8, 9, 160, 164 }, { 26400, 4, 140, 200 } } },
  };
  for (size_t l = 0; l < sizeof many / sizeof many[0]; l++)
    for (int r = 0; r < RULES; r += 3) try_case(&rules[r], &many[l], FLOW_FLOAT32, FLOW_FLOAT32, 0.25, NO_GUARD);
}

/* Factors of 16 bits beside parameters of float32; with many rows a library multiplies them. */
static void factors_of_sixteen_bits(void **state)
{
  (void)state;
  static const product_case cases[] = { { 3, 7, 24, 33 }, { 4, 64, 16, 8 }, { 4, 65, 16, 8 }, { 1, 300, 9, 5 }, { 8, 7, 12, 16 } };
  for (int i = 0; i < 10; i++) {
    const product_case *c = &cases[i / 2];
    int dtype = i % 2 ? FLOW_FLOAT16 : FLOW_BFLOAT16, size = c->first + c->m * c->n + 2;
    flow_attributes attributes = { .optimizer = { .momentum = 0.9, .products = 1, .first = { c->first } } };
    flow_operand inputs[6] = { operand(FLOW_FLOAT32, 1, c->first + 2), operand(FLOW_FLOAT32, 1, size), operand(FLOW_FLOAT32, 0),
                               operand(FLOW_FLOAT32, 1, size), operand(dtype, 2, c->k, c->m), operand(dtype, 2, c->k, c->n) };
    assert_int_equal(flow_optimizer_inputs(flow_optimizer_layout_of(FLOW_OP_sgd), &attributes), 4);
    assert_int_equal(flow_optimizer_layout_of(FLOW_OP_sgd)->rate, 2);
    for (int n = 0; n < 6; n++) fill(&inputs[n], n < 4 ? 1 : 0.5);
    set(&inputs[2], 0, 0.0625);
    flow_call call = call_of(FLOW_OP_sgd, &attributes, inputs, 6, NULL, 0);
    cuda_matches(&call, 1 << 1 | 1 << 3, 5e-6, cuda_run_in_float);
    for (int n = 0; n < 6; n++) operand_free(&inputs[n]);
  }
}

/* Parameters that have copies, in another order than theirs; the second case has gaps, a copy beside a product's and odd places. */
typedef struct copied_case {
  layout_case layout;
  int count;
  struct {
    int first, size;
  } copy[4];
} copied_case;

static const copied_case copied[] = {
  { { 4096, 0, { { 0 } } }, 1, { { 0, 4096 } } },
  { { 900, 1, { { 8, 7, 24, 32 } } }, 4, { { 8, 768 }, { 1, 3 }, { 4, 4 }, { 779, 121 } } },
  { { 9001, 2, { { 5, 7, 24, 33 }, { 900, 65, 16, 8 } } }, 3, { { 5, 792 }, { 1028, 7000 }, { 900, 128 } } },
};

/* One case: copies are what the parameters became, rounded to nearest even as the ops casts and cast do; a guard of 0 leaves both alone. */
static void try_copies(const copied_case *c, int op, int dtype, int guard)
{
  const flow_optimizer_layout *layout = flow_optimizer_layout_of(op);
  flow_attributes attributes = {
    .optimizer = { .momentum = 0.9, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-3, .products = c->layout.products, .copies = c->count }
  };
  int count = flow_optimizer_inputs(layout, &attributes), in_memory = c->layout.size, written = 1 << 1;
  flow_operand inputs[32];
  for (int i = 0; i < c->layout.products; i++) {
    attributes.optimizer.first[i] = c->layout.product[i].first;
    in_memory -= c->layout.product[i].m * c->layout.product[i].n;
  }
  for (int i = 0; i < count; i++) {
    if (i == layout->rate) inputs[i] = operand(FLOW_FLOAT32, 0);
    else if (i == layout->iterations) inputs[i] = operand(FLOW_INT64, 0);
    else inputs[i] = operand(FLOW_FLOAT32, 1, i == 0 ? in_memory : c->layout.size);
    fill(&inputs[i], 1);
    if (i > 1 && operand_size(&inputs[i]) > 1) fill_slot(&inputs[i], "velocity"), written |= 1 << i;
  }
  set(&inputs[layout->rate], 0, 0.0625);
  if (layout->iterations >= 0) set(&inputs[layout->iterations], 0, 3);
  inputs[count] = operand(FLOW_FLOAT32, 0);
  set(&inputs[count++], 0, guard);
  int first = count;
  for (int i = 0; i < c->count; i++) {
    inputs[count] = operand(FLOW_FLOAT32, 1, c->copy[i].size);
    operand_free(&inputs[count]);
    inputs[count].data = (float *)inputs[1].data + c->copy[i].first;
    inputs[count + 1] = operand(dtype, 1, c->copy[i].size);
    for (int k = 0; k < c->copy[i].size; k++) set(&inputs[count + 1], k, 77);
    written |= 1 << (count + 1);
    count += 2;
  }
  for (int i = 0; i < c->layout.products; i++) {
    inputs[count] = operand(dtype, 2, c->layout.product[i].k, c->layout.product[i].m);
    inputs[count + 1] = operand(dtype, 2, c->layout.product[i].k, c->layout.product[i].n);
    fill(&inputs[count++], 0.5), fill(&inputs[count++], 0.5);
  }
  flow_call call = call_of(op, &attributes, inputs, count, NULL, 0);
  call.exact = 1;
  for (int i = 0; i < count; i++) {
    int is_copied = i == 1 || (i >= first && i < first + 2 * c->count && (i - first) % 2 == 1);
    if (is_copied) assert_int_equal(flow_effect_writes(op, &attributes, count, i), 1);
  }
  assert_int_equal(flow_optimizer_guard(layout, &attributes, count), first - 1);
  cuda_ok(cuda_run(cuda_device()->device.kernels[op], &call, (unsigned)written));
  for (int i = 0; i < c->count; i++)
    for (int k = 0; k < c->copy[i].size; k++) {
      float value = ((float *)inputs[1].data)[c->copy[i].first + k];
      uint16_t expected = dtype == FLOW_FLOAT16 ? flow_float_to_half(guard ? value : 77) : flow_float_to_bfloat16(guard ? value : 77);
      assert_int_equal(((uint16_t *)inputs[first + 2 * i + 1].data)[k], expected);
    }
  for (int i = 0; i < count; i++)
    if (i < first || i >= first + 2 * c->count || (i - first) % 2 == 1) operand_free(&inputs[i]);
}

static void copies_are_the_parameters_rounded(void **state)
{
  (void)state;
  static const int ops[] = { FLOW_OP_sgd, FLOW_OP_adam };
  for (int i = 0; i < 24; i++) try_copies(&copied[i / 8], ops[i / 4 % 2], i / 2 % 2 ? FLOW_FLOAT16 : FLOW_BFLOAT16, i % 2);
}

static void an_op_that_a_script_runs_has_none(void **state)
{
  (void)state;
  const flow_attributes attributes = { .optimizer = { .copies = 1 } };
  const flow_signature seven = { .dtype = FLOW_FLOAT32, .rank = 1, .dims = { 7 } };
  flow_signature inputs[] = { seven, seven, { .dtype = FLOW_FLOAT32 } }, output;
  assert_int_equal(flow_op_infer(FLOW_OP_sgd, &attributes, inputs, 3, &output), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "sgd: 1 copies, expected 0: plans of devices alone add them"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(float32_as_the_plain_kernels),      cmocka_unit_test(other_dtypes_in_double),
    cmocka_unit_test(more_blocks_than_are_started),      cmocka_unit_test(factors_of_sixteen_bits),
    cmocka_unit_test(copies_are_the_parameters_rounded), cmocka_unit_test(an_op_that_a_script_runs_has_none)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
