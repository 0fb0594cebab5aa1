/* test_cuda_pooling.c: max and average pooling and their gradients on the device, against the CPU's plain kernels. */
#include "cuda_runner.h"

typedef struct pooling_case { int n, h, w, c, size[2], stride[2], padding[4]; } pooling_case;

static const pooling_case cases[] = {
  { 3,  8,  8, 16, { 2, 2 }, { 2, 2 }, { 0, 0, 0, 0 } },
  { 4,  9,  7,  3, { 2, 2 }, { 2, 2 }, { 0, 0, 0, 0 } },     /* last row and column unused */
  { 4,  9,  7, 17, { 2, 2 }, { 2, 2 }, { 0, 1, 0, 1 } },
  { 2, 10, 11, 36, { 3, 3 }, { 2, 2 }, { 1, 1, 1, 1 } },     /* windows overlap */
  { 4,  6, 12,  5, { 3, 2 }, { 1, 3 }, { 1, 1, 0, 0 } },
  { 4,  7,  5, 20, { 7, 5 }, { 7, 5 }, { 0, 0, 0, 0 } },     /* global */
  { 4,  5,  5,  1, { 5, 5 }, { 1, 1 }, { 2, 2, 2, 2 } },
  { 4,  4,  4,  9, { 2, 2 }, { 2, 2 }, { 2, 2, 2, 2 } },     /* windows of padding only */
  { 4,  5,  6,  8, { 1, 1 }, { 3, 2 }, { 0, 0, 0, 0 } },     /* gaps between windows */
  { 0,  5,  6,  8, { 2, 2 }, { 2, 2 }, { 0, 0, 0, 0 } },
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0], PADDED_ONLY = 7 };

static const int floats[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16 };
enum { FLOAT_COUNT = sizeof floats / sizeof floats[0] };

static flow_attributes attributes_of(const pooling_case *c)
{
  flow_attributes a = { .pool = { .size = { c->size[0], c->size[1] }, .stride = { c->stride[0], c->stride[1] },
                                  .input_size = { c->h, c->w } } };
  for (int i = 0; i < 4; i++) a.pool.padding[i] = c->padding[i];
  return a;
}

static flow_operand pooled(const pooling_case *c, int dtype)
{
  return operand(dtype, 4, c->n, (c->h + c->padding[0] + c->padding[1] - c->size[0]) / c->stride[0] + 1,
                 (c->w + c->padding[2] + c->padding[3] - c->size[1]) / c->stride[1] + 1, c->c);
}

/* Small integers, so that ties are frequent. */
static void fill_with_ties(flow_operand *x, int with_nan)
{
  for (int64_t i = 0; i < operand_size(x); i++) set(x, i, floor(8 * next_number()) + (x->dtype == FLOW_UINT8 ? 120 : 0));
  for (int64_t i = 0; i < operand_size(x) && with_nan; i += 37) set(x, i, NAN);
}

static void max_pool_takes_the_first_largest(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16, FLOW_INT8, FLOW_UINT8, FLOW_BOOL,
                                FLOW_INT32, FLOW_INT64 };
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
    for (int i = 0; i < CASE_COUNT; i++) {
      flow_attributes attributes = attributes_of(&cases[i]);
      flow_operand x = operand(dtypes[d], 4, cases[i].n, cases[i].h, cases[i].w, cases[i].c);
      flow_operand outputs[2] = { pooled(&cases[i], dtypes[d]), pooled(&cases[i], FLOW_UINT8) }, one[2] = { outputs[0], outputs[1] };
      fill_with_ties(&x, flow_dtype_is_float(dtypes[d]));
      flow_call call = call_of(FLOW_OP_max_pool, &attributes, &x, 1, outputs, 2);
      flow_call without = call_of(FLOW_OP_max_pool, &attributes, &x, 1, one, 2);
      cuda_matches_cpu_in_float(&call, 0);
      one[1].data = NULL;
      cuda_matches_cpu_in_float(&without, 0);
      operand_free(&x), operand_free(&outputs[0]), operand_free(&outputs[1]);
    }
  }
}

static void integers_beyond_doubles_are_compared_exactly(void **state)
{
  (void)state;
  flow_attributes attributes = { .pool = { .size = { 1, 3 }, .stride = { 1, 3 } } };
  flow_operand x = operand(FLOW_INT64, 4, 1, 1, 3, 1);
  flow_operand outputs[2] = { operand(FLOW_INT64, 4, 1, 1, 1, 1), operand(FLOW_UINT8, 4, 1, 1, 1, 1) };
  for (int i = 0; i < 3; i++) ((int64_t *)x.data)[i] = INT64_MAX - 2 + i;
  flow_call call = call_of(FLOW_OP_max_pool, &attributes, &x, 1, outputs, 2);
  cuda_matches_cpu_in_float(&call, 0);
  assert_true(*(int64_t *)outputs[0].data == INT64_MAX);
  assert_int_equal(*(uint8_t *)outputs[1].data, 2);
  operand_free(&x), operand_free(&outputs[0]), operand_free(&outputs[1]);
}

static void gradients_go_where_the_values_came_from(void **state)
{
  (void)state;
  for (int d = 0; d < FLOAT_COUNT; d++) {
    for (int i = 0; i < CASE_COUNT; i++) {
      flow_attributes attributes = attributes_of(&cases[i]);
      int dtype = floats[d];
      flow_operand x = operand(dtype, 4, cases[i].n, cases[i].h, cases[i].w, cases[i].c), y = pooled(&cases[i], dtype);
      flow_operand inputs[2] = { pooled(&cases[i], dtype), pooled(&cases[i], FLOW_UINT8) }, outputs[2] = { y, inputs[1] };
      fill_with_ties(&x, 0);
      fill(&inputs[0], 1);
      flow_call forward = call_of(FLOW_OP_max_pool, &attributes, &x, 1, outputs, 2);
      assert_int_equal(cuda_run_in_float(&forward), FLOW_OK);
      flow_call gradient = call_of(FLOW_OP_max_pool_gradient, &attributes, inputs, 2, &x, 1);
      cuda_matches_cpu_in_float(&gradient, 0);
      operand_free(&x), operand_free(&y), operand_free(&inputs[0]), operand_free(&inputs[1]);
    }
  }
}

/* Of 16 bits: a result is rounded once. */
static double tolerance_of(int dtype)
{
  return dtype == FLOW_FLOAT32 ? 1e-6 : dtype == FLOW_FLOAT16 ? 1e-3 : dtype == FLOW_BFLOAT16 ? 8e-3 : 1e-14;
}

static void means_count_cells_inside_the_image(void **state)
{
  (void)state;
  for (int d = 0; d < FLOAT_COUNT; d++) {
    for (int i = 0; i < CASE_COUNT; i++) {
      if (i == PADDED_ONLY) continue;          /* the shape rule refuses it: a mean of nothing */
      flow_attributes attributes = attributes_of(&cases[i]);
      int dtype = floats[d];
      flow_operand x = operand(dtype, 4, cases[i].n, cases[i].h, cases[i].w, cases[i].c), y = pooled(&cases[i], dtype);
      fill(&x, 1);
      flow_call forward = call_of(FLOW_OP_average_pool, &attributes, &x, 1, &y, 1);
      cuda_matches_cpu_in_float(&forward, tolerance_of(dtype));
      fill(&y, 1);
      flow_call gradient = call_of(FLOW_OP_average_pool_gradient, &attributes, &y, 1, &x, 1);
      cuda_matches_cpu_in_float(&gradient, tolerance_of(dtype));
      operand_free(&x), operand_free(&y);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(max_pool_takes_the_first_largest), cmocka_unit_test(integers_beyond_doubles_are_compared_exactly),
    cmocka_unit_test(gradients_go_where_the_values_came_from), cmocka_unit_test(means_count_cells_inside_the_image)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
