/* test_random_kernels.c: dropout and random numbers in every variant of every build: which positions of Philox they use, the moments of
 * their distributions, integers of any range. */
#include <math.h>
#include "base/philox.h"
#include "kernel_runner.h"

/* ---- dropout ---------------------------------------------------------------------------------------------------------- */

static void test_dropout(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16 };
  enum { ROWS = 40, ELEMENTS = 103 };
  static unsigned char masks[3][ROWS * ELEMENTS];
  flow_scalars scalars = { .seed = 5, .step = 17, .first_sample = 128 };
  for (int d = 0; d < 3; d++) {
    flow_operand x = operand(dtypes[d], 2, ROWS, ELEMENTS), y = operand(dtypes[d], 2, ROWS, ELEMENTS);
    for (int64_t i = 0; i < operand_size(&x); i++) set(&x, i, 3);
    flow_attributes attributes = { .dropout = { .rate = 0.25, .seed = 9, .stream = 2 } };
    flow_call call = call_of(FLOW_OP_dropout, &attributes, &x, 1, &y, 1);
    call.scalars = &scalars;
    for_each_kernel(kernel, FLOW_OP_dropout) {
      if (kernel->supports && !kernel->supports(&call)) continue;
      int64_t kept = 0;
      assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
      for (int i = 0; i < ROWS * ELEMENTS; i++) {
        double value = get(&y, i);
        masks[d][i] = value != 0;
        kept += value != 0;
        assert_near(value, value != 0 ? 4 : 0, 1e-6, kernel->variant, i);
        assert_int_equal(masks[d][i], masks[0][i]);
      }
      assert_true(fabs((double)kept / (ROWS * ELEMENTS) - 0.75) < 0.03);     /* 4.4 standard deviations */
      /* chunks of rows, and another replica that starts later, give the same mask */
      flow_operand part_x = operand(dtypes[d], 2, 7, ELEMENTS), part_y = operand(dtypes[d], 2, 7, ELEMENTS);
      for (int64_t i = 0; i < operand_size(&part_x); i++) set(&part_x, i, 3);
      flow_scalars later = { .seed = 5, .step = 17, .first_sample = 128 + 4 };
      flow_call part = call;
      part.inputs = &part_x;
      part.outputs = &part_y;
      part.scalars = &later;
      part.first_row = 10;
      assert_int_equal(run_kernel(kernel, &part, ALL_AT_ONCE), FLOW_OK);
      for (int i = 0; i < 7 * ELEMENTS; i++) assert_int_equal(get(&part_y, i) != 0, masks[0][14 * ELEMENTS + i]);
      /* another step, seed or stream gives another mask */
      flow_attributes other = attributes;
      for (int change = 0; change < 5; change++) {
        later = scalars;
        other = attributes;
        if (change == 0) later.step++;
        if (change == 1) later.seed++;
        if (change == 2) other.dropout.stream++;
        if (change == 3) other.dropout.seed++;
        if (change == 4) other.dropout.own_seed = 1;
        part = call;
        part.attributes = &other;
        part.scalars = &later;
        int64_t same = 0;
        assert_int_equal(run_kernel(kernel, &part, ALL_AT_ONCE), FLOW_OK);
        for (int i = 0; i < ROWS * ELEMENTS; i++) same += (get(&y, i) != 0) == masks[0][i];
        assert_true(same < ROWS * ELEMENTS * 0.7);                              /* 0.625 expected */
      }
      for (int all = 0; all < 2; all++) {
        other = attributes;
        other.dropout.rate = all;
        part = call;
        part.attributes = &other;
        assert_int_equal(run_kernel(kernel, &part, ALL_AT_ONCE), FLOW_OK);
        for (int i = 0; i < ROWS * ELEMENTS; i++) assert_near(get(&y, i), all ? 0 : 3, 0, kernel->variant, i);
      }
      operand_free(&part_x);
      operand_free(&part_y);
    }
    operand_free(&x);
    operand_free(&y);
  }
}

/* ---- random numbers --------------------------------------------------------------------------------------------------- */

static void moments_of(const flow_operand *x, double *mean, double *deviation, double *low, double *high)
{
  int64_t n = operand_size(x);
  *mean = *deviation = 0;
  *low = INFINITY;
  *high = -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    *mean += get(x, i) / (double)n;
    *low = fmin(*low, get(x, i));
    *high = fmax(*high, get(x, i));
  }
  for (int64_t i = 0; i < n; i++) *deviation += pow(get(x, i) - *mean, 2) / (double)n;
  *deviation = sqrt(*deviation);
}

static void test_random_distributions(void **state)
{
  (void)state;
  static const int dtypes[] = { FLOW_FLOAT32, FLOW_FLOAT64, FLOW_FLOAT16, FLOW_BFLOAT16 };
  enum { N = 50001 };
  for (int op = FLOW_OP_random_uniform; op <= FLOW_OP_random_truncated_normal; op++)
    for (int d = 0; d < 4; d++) {
      flow_operand x = operand(dtypes[d], 1, N);
      int uniform = op == FLOW_OP_random_uniform, truncated = op == FLOW_OP_random_truncated_normal;
      flow_attributes attributes = { .random = { .dtype = dtypes[d], .low = 1, .high = 2, .seed = 3, .stream = 4 } };
      flow_call call = call_of(op, &attributes, NULL, 0, &x, 1);
      call.scalars = &(flow_scalars){ .seed = 0 };
      for_each_kernel(kernel, op) {
        double mean, deviation, low, high, first, again[2];
        assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
        moments_of(&x, &mean, &deviation, &low, &high);
        if (uniform) {
          assert_true(low >= 1 && high < 2);
          assert_true(fabs(mean - 1.5) < 0.01 && fabs(deviation - sqrt(1.0 / 12)) < 0.005);
        } else if (truncated) {
          assert_true(low >= -3.02 && high <= 5.02);
          assert_true(fabs(mean - 1) < 0.04 && fabs(deviation - 2 * 0.87962566) < 0.03);
        } else {
          assert_true(low < -5 && high > 7);
          assert_true(fabs(mean - 1) < 0.05 && fabs(deviation - 2) < 0.04);
        }
        first = get(&x, N - 2);
        /* an element depends on the key and its place only */
        flow_operand shorter = operand(dtypes[d], 1, N - 1);
        flow_call less = call;
        less.outputs = &shorter;
        assert_int_equal(run_kernel(kernel, &less, BACKWARDS), FLOW_OK);
        assert_memory_equal(shorter.data, x.data, operand_bytes(&shorter));
        /* step and run seed count only where the record says so */
        flow_scalars scalars = { .seed = 1, .step = 1 };
        less.scalars = &scalars;
        assert_int_equal(run_kernel(kernel, &less, ALL_AT_ONCE), FLOW_OK);
        assert_true(get(&shorter, N - 2) == first);
        flow_attributes keyed = attributes;
        keyed.random.keyed_by_step = 1;
        less.attributes = &keyed;
        assert_int_equal(run_kernel(kernel, &less, ALL_AT_ONCE), FLOW_OK);
        assert_memory_not_equal(shorter.data, x.data, operand_bytes(&shorter));
        memcpy(again, shorter.data, 16);
        scalars.step = 2;
        assert_int_equal(run_kernel(kernel, &less, ALL_AT_ONCE), FLOW_OK);
        assert_memory_not_equal(shorter.data, again, 16);
        operand_free(&shorter);
      }
      operand_free(&x);
    }
}

static void test_random_integers(void **state)
{
  (void)state;
  static const struct { int dtype; double low, high; } cases[] = {
    { FLOW_INT32, -3, 4 }, { FLOW_UINT8, 0, 256 }, { FLOW_INT8, -128, 128 }, { FLOW_INT64, -0x1p60, 0x1p60 }, { FLOW_INT64, 5, 6 },
    { FLOW_BOOL, 0, 2 }, { FLOW_INT32, -0x1p31, 0x1p31 }, { FLOW_INT32, 2, 2 }
  };
  enum { N = 20000 };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    flow_operand x = operand(cases[i].dtype, 1, N);
    flow_attributes attributes = { .random = { .dtype = cases[i].dtype, .low = cases[i].low, .high = cases[i].high } };
    flow_call call = call_of(FLOW_OP_random_uniform, &attributes, NULL, 0, &x, 1);
    call.scalars = &(flow_scalars){ .seed = 0 };
    for_each_kernel(kernel, FLOW_OP_random_uniform) {
      double mean, deviation, low, high, range = cases[i].high - cases[i].low;
      assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
      moments_of(&x, &mean, &deviation, &low, &high);
      assert_true(low >= cases[i].low && (high < cases[i].high || range == 0));
      if (range > 0 && range <= 256) assert_true(low == cases[i].low && high == cases[i].high - 1);
      if (range > 1) assert_true(fabs(mean - (cases[i].low + cases[i].high - 1) / 2) < 0.015 * range);
    }
    operand_free(&x);
  }
}

/* A range that ends at 0, however small, is filled: what may not be reached is 0 itself. */
static void test_range_below_zero(void **state)
{
  (void)state;
  enum { N = 1000 };
  for (double least = -1; least < -1e-25; least *= 1e-6) {
    flow_operand x = operand(FLOW_FLOAT32, 1, N);
    flow_attributes attributes = { .random = { .low = least } };
    flow_call call = call_of(FLOW_OP_random_uniform, &attributes, NULL, 0, &x, 1);
    call.scalars = &(flow_scalars){ .seed = 0 };
    for_each_kernel(kernel, FLOW_OP_random_uniform)
    {
      double mean, deviation, low, high;
      assert_int_equal(run_kernel(kernel, &call, ALL_AT_ONCE), FLOW_OK);
      moments_of(&x, &mean, &deviation, &low, &high);
      assert_true(low >= (float)least && high < 0 && high > 0.1 * least && fabs(mean / least - 0.5) < 0.05);
    }
    operand_free(&x);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dropout),
    cmocka_unit_test(test_random_distributions),
    cmocka_unit_test(test_random_integers),
    cmocka_unit_test(test_range_below_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
