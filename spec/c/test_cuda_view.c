/* test_cuda_view.c: positions and divisions of the GPU's strided kernels, against plain arithmetic; also for more positions than a test
 * could have memory for. */
#include <math.h>
#include "kernel_runner.h"
#include "cuda/device/view.h"
#include "cuda/device/view_make.h"

static void division_is_exact_below_two_to_the_31(void **state)
{
  (void)state;
  static const uint32_t edges[] = { 1, 2, 3, 7, 641, 65535, 65536, 65537, 0x3fffffff, 0x40000000, 0x40000001, 0x7ffffffe, 0x7fffffff };
  for (int i = 0; i < 20000; i++) {
    uint32_t size = i < 13 ? edges[i] : (uint32_t)ldexp((next_number() + 1) / 2, 1 + i % 31) + 1;
    if (size > 0x7fffffff) size = 0x7fffffff;
    view_groups groups = flow_cuda_groups(size, INT32_MAX);
    assert_true(groups.narrow);
    for (int k = 0; k < 40; k++) {
      uint32_t multiple = 0x7fffffffu / size * size;
      uint32_t x = k == 0 ? 0x7fffffff : k == 1 ? multiple : k == 2 ? multiple - 1 : k < 16 ? edges[k - 3]
                 : (uint32_t)ldexp((next_number() + 1) / 2, 31);
      x &= 0x7fffffff;
      if (group_of(&groups, x) != x / size) fail_msg("%u / %u is not %lld", x, size, (long long)group_of(&groups, x));
    }
  }
}

static void many_positions_are_divided_in_64_bits(void **state)
{
  (void)state;
  view_groups groups = flow_cuda_groups(1000003, INT64_C(1) << 45);
  assert_false(groups.narrow);
  assert_int_equal(group_of(&groups, (INT64_C(1) << 44) + 17), ((INT64_C(1) << 44) + 17) / 1000003);
}

/* Offsets of random shapes and strides, among them those that merge, repeat and run backwards; a large first axis makes them wide. */
static void offsets_are_sums_of_steps(void **state)
{
  (void)state;
  for (int round = 0; round < 3000; round++) {
    int64_t shape[5], strides[5], contiguous[5], count = 1;
    int rank = round % 6, wide = round % 7 == 0 && rank > 0;
    for (int i = 0; i < rank; i++) shape[i] = wide && i == 0 ? INT64_C(3000000001) : 1 + (int64_t)((next_number() + 1) * 3);
    flow_contiguous_strides(rank, shape, contiguous);
    for (int i = 0; i < rank; i++) {
      double kind = next_number();
      strides[i] = kind < 0 ? contiguous[i] : kind < 0.3 ? 0 : kind < 0.6 ? -contiguous[i] : 5 + i;
      count *= shape[i];
    }
    view v = flow_cuda_view_strided(NULL, FLOW_FLOAT32, rank, shape, strides);
    assert_int_equal(v.narrow, count < INT64_C(1) << 31);
    for (int k = 0; k < 50; k++) {
      int64_t i = k == 0 ? count - 1 : (int64_t)((next_number() + 1) / 2 * (double)count) % count, left = i, expected = 0;
      for (int axis = rank - 1; axis >= 0; axis--) {
        expected += left % shape[axis] * strides[axis];
        left /= shape[axis];
      }
      assert_int_equal(view_offset(&v, i), rank == 0 || count == 1 ? i : expected);
    }
  }
}

/* The shapes that must not cost a division. */
static void what_lies_alike_is_one_axis(void **state)
{
  (void)state;
  flow_operand x = operand(FLOW_FLOAT32, 4, 3, 1, 5, 7), one = operand(FLOW_FLOAT32, 1, 1), row = operand(FLOW_FLOAT32, 1, 7);
  view same = flow_cuda_view(&x, 4, x.shape), scalar = flow_cuda_view(&one, 4, x.shape), repeated = flow_cuda_view(&row, 4, x.shape);
  assert_true(flow_cuda_view_is(&same, 1));
  assert_true(flow_cuda_view_is(&scalar, 0));
  assert_int_equal(repeated.rank, 2);
  assert_true(flow_cuda_contiguous(&x));
  operand_free(&x), operand_free(&one), operand_free(&row);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(division_is_exact_below_two_to_the_31), cmocka_unit_test(many_positions_are_divided_in_64_bits),
    cmocka_unit_test(offsets_are_sums_of_steps), cmocka_unit_test(what_lies_alike_is_one_axis),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
