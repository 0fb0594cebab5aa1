/* test_cuda_gather.c: gather and its gradient on the device against the CPU's kernels. */
#include "cuda_layouts.h"

static void fill_indices(flow_operand *indices, int rows)
{
  for (int64_t i = 0; i < operand_size(indices); i++) set(indices, i, floor((next_number() + 1) / 2 * rows));
}

/* Rows of all sizes in bytes, so that units of 16 down to 1 are moved. */
static void rows_of_every_dtype(void **state)
{
  (void)state;
  for (int d = 0; d < FLOW_DTYPE_COUNT; d++) {
    for (int columns = 0; columns < 18; columns++) {
      flow_operand table = operand(every_dtype[d], 2, 13, columns), indices = operand(d % 2 ? FLOW_INT32 : FLOW_INT64, 2, 5, 7);
      flow_operand y = operand(every_dtype[d], 3, 5, 7, columns);
      flow_attributes attributes = { 0 };
      fill_hard(&table);
      fill_indices(&indices, 13);
      flow_call call = call_of(FLOW_OP_gather, &attributes, (flow_operand[]){ table, indices }, 2, &y, 1);
      cuda_matches_cpu(&call, 0, 0);
      operand_free(&table), operand_free(&indices), operand_free(&y);
    }
  }
}

static void check_gradient(int dtype, int rows, int columns, flow_operand *indices)
{
  int count = (int)operand_size(indices);
  flow_operand g = operand(dtype, 2, count, columns), y = operand(dtype, 2, rows, columns);
  flow_attributes attributes = { .shape = { .rank = 2, .dims = { rows, columns } } };
  fill(&g, 1);
  flow_call call = call_of(FLOW_OP_gather_gradient, &attributes, (flow_operand[]){ g, *indices }, 2, &y, 1);
  cuda_matches_cpu(&call, 0, dtype == FLOW_FLOAT32 ? 1e-4 : 1e-12);
  operand_free(&g), operand_free(&y);
}

/* Fewer indices than a run has, several runs, an odd number of them; few rows, so that many indices are equal, and many. */
static void gradients(void **state)
{
  (void)state;
  static const struct { int count, rows, columns; } cases[] = {
    { 0, 5, 3 }, { 1, 1, 1 }, { 100, 7, 5 }, { 1024, 50, 4 }, { 3000, 10, 6 }, { 5000, 2000, 3 }, { 7000, 1, 2 }, { 500, 20, 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_operand indices = operand(FLOW_INT32, 1, cases[i].count);
    fill_indices(&indices, cases[i].rows);
    check_gradient(FLOW_FLOAT32, cases[i].rows, cases[i].columns, &indices);
    check_gradient(FLOW_FLOAT64, cases[i].rows, cases[i].columns, &indices);
    operand_free(&indices);
  }
}

/* Half of the indices are one row's, as the padding of sentences is. */
static void a_gradient_with_a_frequent_row(void **state)
{
  (void)state;
  flow_operand indices = operand(FLOW_INT64, 1, 4000);
  fill_indices(&indices, 300);
  for (int i = 0; i < 4000; i += 2) set(&indices, i, 17);
  check_gradient(FLOW_FLOAT32, 300, 9, &indices);
  operand_free(&indices);
}

/* Sums of groups are of floats, which take more memory than g does. */
static void a_gradient_of_sixteen_bits(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT16, FLOW_BFLOAT16 };
  for (int d = 0; d < 2; d++) {
    flow_operand indices = operand(FLOW_INT32, 1, 2048), g = operand(dtypes[d], 2, 2048, 40), y = operand(dtypes[d], 2, 3, 40);
    flow_attributes attributes = { .shape = { .rank = 2, .dims = { 3, 40 } } };
    for (int i = 0; i < 2048; i++) set(&indices, i, i < 10 ? 0 : 2);
    fill(&g, 1);
    flow_call call = call_of(FLOW_OP_gather_gradient, &attributes, (flow_operand[]){ g, indices }, 2, &y, 1);
    cuda_matches_cpu_in_float(&call, dtypes[d] == FLOW_FLOAT16 ? 2e-3 : 2e-2);
    operand_free(&indices), operand_free(&g), operand_free(&y);
  }
}

static void an_index_outside_is_refused(void **state)
{
  (void)state;
  static const int wrong[] = { 13, -1 };
  for (int i = 0; i < 2; i++) {
    flow_operand table = operand(FLOW_FLOAT32, 2, 13, 3), indices = operand(FLOW_INT32, 1, 20), y = operand(FLOW_FLOAT32, 2, 20, 3);
    flow_attributes attributes = { .shape = { .rank = 2, .dims = { 13, 3 } } };
    fill(&table, 1);
    fill(&y, 1);
    fill_indices(&indices, 13);
    set(&indices, 11, wrong[i]);
    char expected[64];
    snprintf(expected, sizeof expected, "index %d in row 12 is outside 0..12", wrong[i]);
    flow_call call = call_of(FLOW_OP_gather, &attributes, (flow_operand[]){ table, indices }, 2, &y, 1);
    cuda_refuses(&call, expected);
    call = call_of(FLOW_OP_gather_gradient, &attributes, (flow_operand[]){ y, indices }, 2, &table, 1);
    cuda_refuses(&call, expected);
    operand_free(&table), operand_free(&indices), operand_free(&y);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_of_every_dtype),
    cmocka_unit_test(gradients),
    cmocka_unit_test(a_gradient_with_a_frequent_row),
    cmocka_unit_test(a_gradient_of_sixteen_bits),
    cmocka_unit_test(an_index_outside_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
