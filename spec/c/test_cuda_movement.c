/* test_cuda_movement.c: copies, transpositions, slices and joins on the device against the CPU's kernels: every element size, bit by
 * bit. */
#include "cuda_layouts.h"

static const int one_dtype_of_each_size[] = { FLOW_UINT8, FLOW_BFLOAT16, FLOW_FLOAT32, FLOW_FLOAT64 };
#define FOR_EACH_SIZE(dtype) for (int size_ = 0, dtype = FLOW_UINT8; size_ < 4 && (dtype = one_dtype_of_each_size[size_], 1); size_++)

static void check(int op, const flow_attributes *attributes, flow_operand *inputs, int count, flow_operand y)
{
  flow_call call = call_of(op, attributes, inputs, count, &y, 1);
  cuda_matches_cpu(&call, 0, 0);
  operand_free(&y);
}

static flow_operand filled(flow_operand x)
{
  fill_hard(&x);
  return x;
}

static void copies_of_any_layout(void **state)
{
  (void)state;
  const flow_attributes none = { 0 };
  FOR_EACH_SIZE(dtype) {
    flow_operand x = filled(operand(dtype, 3, 4, 9, 10)), reversed = reversed_operand(&x);
    flow_operand transposed = transposed_operand(&x, (int[]){ 2, 1, 0 });
    check(FLOW_OP_copy, &none, &x, 1, operand(dtype, 3, 4, 9, 10));
    check(FLOW_OP_stop_gradient, &none, &reversed, 1, operand(dtype, 3, 4, 9, 10));
    check(FLOW_OP_copy, &none, &transposed, 1, operand(dtype, 3, 10, 9, 4));
    check(FLOW_OP_reshape, &none, &x, 1, operand(dtype, 2, 36, 10));
    operand_free(&x);
  }
}

static void broadcasts(void **state)
{
  (void)state;
  const flow_attributes none = { 0 };
  FOR_EACH_SIZE(dtype) {
    flow_operand row = filled(operand(dtype, 1, 33)), column = filled(operand(dtype, 2, 17, 1)), one = filled(operand(dtype, 0));
    check(FLOW_OP_broadcast_to, &none, &row, 1, operand(dtype, 3, 3, 17, 33));
    check(FLOW_OP_broadcast_to, &none, &column, 1, operand(dtype, 3, 3, 17, 33));
    check(FLOW_OP_broadcast_to, &none, &one, 1, operand(dtype, 3, 3, 17, 33));
    operand_free(&row), operand_free(&column), operand_free(&one);
  }
}

/* Neighbours that are moved together, from addresses that allow it and others. */
static void whole_units(void **state)
{
  (void)state;
  const flow_attributes none = { 0 };
  for (cuda_shift = 0; cuda_shift <= 8; cuda_shift += 8) {
    FOR_EACH_SIZE(dtype) {
      flow_operand rows = filled(operand(dtype, 3, 3, 1, 48)), x = filled(operand(dtype, 4, 2, 5, 7, 16));
      flow_attributes slice = {
        .slice = { .rank = 4, .begin = { 0, 1, 0, 8 }, .end = { 2, 5, 7, 16 }, .step = { 1, 3, 1, 1 }, .dims = { 2, 5, 7, 16 } },
      };
      flow_attributes transpose = { .transpose = { .rank = 4, .axes = { 0, 2, 1, 3 } } };
      check(FLOW_OP_broadcast_to, &none, &rows, 1, operand(dtype, 3, 3, 17, 48));
      check(FLOW_OP_slice, &slice, &x, 1, operand(dtype, 4, 2, 2, 7, 8));
      check(FLOW_OP_transpose, &transpose, &x, 1, operand(dtype, 4, 2, 7, 5, 16));
      slice.slice.begin[3] = 1, slice.slice.end[3] = 9;
      check(FLOW_OP_slice, &slice, &x, 1, operand(dtype, 4, 2, 2, 7, 8));
      operand_free(&rows), operand_free(&x);
    }
  }
  cuda_shift = 0;
}

/* Shapes on both sides of whole tiles, with and without an axis in front, and a permutation that no tile serves. */
static void transpositions(void **state)
{
  (void)state;
  FOR_EACH_SIZE(dtype) {
    const struct { int rank, shape[4], axes[4]; } cases[] = {
      { 2, { 33, 65 }, { 1, 0 } },  { 2, { 8, 100 }, { 1, 0 } },          { 2, { 5, 40 }, { 1, 0 } },
      { 3, { 3, 32, 64 }, { 0, 2, 1 } }, { 4, { 2, 7, 9, 31 }, { 0, 3, 1, 2 } }, { 4, { 2, 31, 7, 9 }, { 0, 2, 3, 1 } },
      { 4, { 3, 4, 5, 6 }, { 3, 1, 0, 2 } }, { 3, { 0, 4, 5 }, { 2, 1, 0 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      const int *s = cases[i].shape;
      flow_operand x = filled(operand(dtype, cases[i].rank, s[0], s[1], s[2], s[3])), y = { .dtype = dtype, .rank = cases[i].rank };
      flow_attributes attributes = { .transpose = { .rank = cases[i].rank } };
      for (int k = 0; k < y.rank; k++) {
        attributes.transpose.axes[k] = cases[i].axes[k];
        y.shape[k] = s[cases[i].axes[k]];
      }
      flow_contiguous_strides(y.rank, y.shape, y.strides);
      y.data = guarded_alloc(operand_bytes(&y));
      check(FLOW_OP_transpose, &attributes, &x, 1, y);
      operand_free(&x);
    }
  }
}

static void slices_and_their_gradients(void **state)
{
  (void)state;
  FOR_EACH_SIZE(dtype) {
    flow_operand x = filled(operand(dtype, 3, 9, 8, 12)), g = filled(operand(dtype, 3, 3, 8, 5));
    flow_attributes attributes = {
      .slice = { .rank = 3, .begin = { 1, 0, 1 }, .end = { 8, 8, 12 }, .step = { 3, 1, 2 }, .dims = { 9, 8, 12 } },
    };
    check(FLOW_OP_slice, &attributes, &x, 1, operand(dtype, 3, 3, 8, 6));
    attributes.slice.end[2] = 11;
    check(FLOW_OP_slice_gradient, &attributes, &g, 1, operand(dtype, 3, 9, 8, 12));
    flow_operand nothing = operand(dtype, 3, 0, 8, 5);
    attributes.slice.end[0] = 1;
    check(FLOW_OP_slice, &attributes, &x, 1, operand(dtype, 3, 0, 8, 5));
    check(FLOW_OP_slice_gradient, &attributes, &nothing, 1, operand(dtype, 3, 9, 8, 12));
    operand_free(&x), operand_free(&g), operand_free(&nothing);
  }
}

static void concatenation_along_each_axis(void **state)
{
  (void)state;
  FOR_EACH_SIZE(dtype) {
    flow_operand a = filled(operand(dtype, 3, 4, 5, 6)), first = filled(operand(dtype, 3, 1, 5, 6));
    flow_operand last = filled(operand(dtype, 3, 4, 5, 3)), middle = filled(operand(dtype, 3, 4, 0, 6));
    check(FLOW_OP_concat, &(flow_attributes){ .axis = { 0 } }, (flow_operand[]){ a, first, a }, 3, operand(dtype, 3, 9, 5, 6));
    check(FLOW_OP_concat, &(flow_attributes){ .axis = { 1 } }, (flow_operand[]){ a, middle, a }, 3, operand(dtype, 3, 4, 10, 6));
    check(FLOW_OP_concat, &(flow_attributes){ .axis = { -1 } }, (flow_operand[]){ last, a }, 2, operand(dtype, 3, 4, 5, 9));
    operand_free(&a), operand_free(&first), operand_free(&last), operand_free(&middle);
  }
}

/* More than one launch takes, one that is copied by itself, and one that is empty. */
static void pack_of_many(void **state)
{
  (void)state;
  enum { MANY = 150, LARGE = 70000 };
  const flow_attributes none = { 0 };
  flow_operand inputs[MANY];
  int64_t total = 0;
  for (int i = 0; i < MANY; i++) {
    inputs[i] = filled(operand(FLOW_FLOAT32, 1, i == 100 ? LARGE : i % 7 * 3));
    total += operand_size(&inputs[i]);
  }
  check(FLOW_OP_pack, &none, inputs, MANY, operand(FLOW_FLOAT32, 1, (int)total));
  for (int i = 0; i < MANY; i++) operand_free(&inputs[i]);
}

static void element_count_reads_shapes(void **state)
{
  (void)state;
  flow_operand x = operand(FLOW_FLOAT32, 3, 3, 5, 7);
  check(FLOW_OP_element_count, &(flow_attributes){ .reduce = { .count = 2, .axes = { 0, -1 } } }, &x, 1, operand(FLOW_FLOAT32, 0));
  check(FLOW_OP_element_count, &(flow_attributes){ 0 }, &x, 1, operand(FLOW_FLOAT32, 0));
  operand_free(&x);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_of_any_layout), cmocka_unit_test(broadcasts), cmocka_unit_test(whole_units),
    cmocka_unit_test(transpositions),
    cmocka_unit_test(slices_and_their_gradients), cmocka_unit_test(concatenation_along_each_axis), cmocka_unit_test(pack_of_many),
    cmocka_unit_test(element_count_reads_shapes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
