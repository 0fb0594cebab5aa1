/* test_copy.c: whole tensors written: copies with casts, broadcasts, strides and overlap; rows by an order; shuffles. */
#include "tensors.h"

#include <math.h>
#include <string.h>

/* ---- copy ------------------------------------------------------------------------------------------------- */

static void copies_cast_between_all_dtypes(void **state)
{
  (void)state;
  for (int from = 0; from < FLOW_DTYPE_COUNT; from++) {
    for (int to = 0; to < FLOW_DTYPE_COUNT; to++) {
      flow_tensor *source = counting(from, 1, SHAPE(4)), *target = zeros(to, 1, SHAPE(4));
      assert_int_equal(flow_tensor_copy(target, source), FLOW_OK);
      if (from == FLOW_BOOL || to == FLOW_BOOL) EXPECT(target, 0, 1, 1, 1);
      else EXPECT(target, 0, 1, 2, 3);
      flow_tensor_release(source);
      flow_tensor_release(target);
    }
  }
}

static void large_integers_stay_exact(void **state)
{
  (void)state;
  flow_tensor *source = zeros(FLOW_INT64, 1, SHAPE(3)), *target = zeros(FLOW_INT64, 2, SHAPE(2, 3));
  flow_tensor *narrow = zeros(FLOW_INT32, 1, SHAPE(3));
  int64_t numbers[3] = { INT64_MAX, INT64_MIN + 1, (1LL << 53) + 1 };
  memcpy(source->data, numbers, sizeof numbers);
  assert_int_equal(flow_tensor_copy(target, source), FLOW_OK);
  assert_memory_equal(target->data, numbers, sizeof numbers);
  assert_memory_equal(target->data + sizeof numbers, numbers, sizeof numbers);
  assert_int_equal(flow_tensor_copy(narrow, source), FLOW_OK);
  EXPECT(narrow, -1, 1, 1);                                  /* integers wrap, as in NumPy */
  flow_tensor *rounded = zeros(FLOW_FLOAT32, 1, SHAPE(1)), *one = view_of(source, 1, SHAPE(1), SHAPE(1), 0);
  *(int64_t *)source->data = (1LL << 60) + (1LL << 36) + 1;  /* just above a tie of float32; as a double it is the tie */
  assert_int_equal(flow_tensor_copy(rounded, one), FLOW_OK);
  EXPECT(rounded, 0x1p60 + 0x1p37);
  /* Middles of bfloat16, which has 8 bits, and their neighbours: as doubles those of the larger ones would be the middle, too. */
  flow_tensor *short_one = zeros(FLOW_BFLOAT16, 1, SHAPE(1));
  const struct {
    int64_t from;
    double to;
  } cases[] = {
    { (1LL << 60) + (1LL << 52), 0x1p60 },
    { (1LL << 60) + (1LL << 52) + 1, 0x1.02p60 },
    { (1LL << 60) + (1LL << 52) - 1, 0x1p60 },
    { (1LL << 60) + 3 * (1LL << 52), 0x1.04p60 },
    { (1LL << 60) + 3 * (1LL << 52) - 1, 0x1.02p60 },
    { -(1LL << 60) - (1LL << 52), -0x1p60 },
    { -(1LL << 60) - (1LL << 52) - 1, -0x1.02p60 },
    { -(1LL << 60) - 3 * (1LL << 52) + 1, -0x1.02p60 },
    { INT64_MAX, 0x1p63 },
    { INT64_MIN, -0x1p63 },
    { INT64_MIN + 1, -0x1p63 },
    { (1LL << 53) + 1, 0x1p53 },
    { (1LL << 53) + (1LL << 45) + 1, 0x1.02p53 },
    { (1LL << 52) + (1LL << 44) + 1, 0x1.02p52 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    *(int64_t *)source->data = cases[i].from;
    assert_int_equal(flow_tensor_copy(short_one, one), FLOW_OK);
    EXPECT(short_one, cases[i].to);
  }
  flow_tensor_release(short_one);
  flow_tensor_release(one);
  flow_tensor_release(rounded);
  flow_tensor_release(narrow);
  flow_tensor_release(target);
  flow_tensor_release(source);
}

static void copies_broadcast(void **state)
{
  (void)state;
  flow_tensor *target = zeros(FLOW_FLOAT32, 2, SHAPE(2, 3));
  flow_tensor *row = counting(FLOW_INT32, 1, SHAPE(3)), *column = counting(FLOW_UINT8, 2, SHAPE(2, 1)), *scalar, *wrong;
  assert_int_equal(flow_tensor_copy(target, row), FLOW_OK);
  EXPECT(target, 0, 1, 2, 0, 1, 2);
  assert_int_equal(flow_tensor_copy(target, column), FLOW_OK);
  EXPECT(target, 0, 0, 0, 1, 1, 1);
  assert_int_equal(flow_tensor_scalar(FLOW_FLOAT64, 2.5, &scalar), FLOW_OK);
  assert_int_equal(flow_tensor_copy(target, scalar), FLOW_OK);
  EXPECT(target, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5);
  wrong = counting(FLOW_FLOAT32, 1, SHAPE(2));
  assert_int_equal(flow_tensor_copy(target, wrong), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), "shape {2} does not broadcast to shape {2, 3}");
  assert_int_equal(flow_tensor_copy(row, target), FLOW_INVALID_ARGUMENT);
  flow_tensor_release(target);
  flow_tensor_release(row);
  flow_tensor_release(column);
  flow_tensor_release(scalar);
  flow_tensor_release(wrong);
}

static void copies_follow_strides_on_both_sides(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_FLOAT32, 3, SHAPE(2, 3, 2)), *target = zeros(FLOW_FLOAT64, 2, SHAPE(4, 8));
  flow_tensor *from = view_of(source, 3, SHAPE(2, 2, 3), SHAPE(1, 6, 2), 0);      /* axes 2, 0, 1 */
  flow_tensor *to = view_of(target, 3, SHAPE(2, 2, 3), SHAPE(16, 8, -2), 5);
  assert_int_equal(flow_tensor_copy(to, from), FLOW_OK);
  EXPECT(to, 0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11);
  EXPECT(target, 0, 4, 0, 2, 0, 0, 0, 0,  0, 10, 0, 8, 0, 6, 0, 0,  0, 5, 0, 3, 0, 1, 0, 0,  0, 11, 0, 9, 0, 7, 0, 0);
  flow_tensor_release(to);
  flow_tensor_release(from);
  flow_tensor_release(target);
  flow_tensor_release(source);
}

static void long_casts_cross_their_chunks(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_INT32, 1, SHAPE(1000)), *target = zeros(FLOW_FLOAT32, 1, SHAPE(2000));
  flow_tensor *every_second = view_of(target, 1, SHAPE(1000), SHAPE(2), 1);
  assert_int_equal(flow_tensor_copy(every_second, source), FLOW_OK);
  for (int i = 0; i < 1000; i++) {
    assert_true(((float *)target->data)[2 * i] == 0);
    assert_true(((float *)target->data)[2 * i + 1] == (float)i);
  }
  flow_tensor_release(every_second);
  flow_tensor_release(target);
  flow_tensor_release(source);
}

static void overlapping_copies_see_the_old_contents(void **state)
{
  (void)state;
  flow_tensor *line = counting(FLOW_FLOAT32, 1, SHAPE(6));
  flow_tensor *left = view_of(line, 1, SHAPE(5), SHAPE(1), 0), *right = view_of(line, 1, SHAPE(5), SHAPE(1), 1);
  flow_tensor *backward = view_of(line, 1, SHAPE(6), SHAPE(-1), 5);
  assert_int_equal(flow_tensor_copy(right, left), FLOW_OK);
  EXPECT(line, 0, 0, 1, 2, 3, 4);
  assert_int_equal(flow_tensor_copy(line, backward), FLOW_OK);
  EXPECT(line, 4, 3, 2, 1, 0, 0);
  assert_int_equal(flow_tensor_copy(line, line), FLOW_OK);
  EXPECT(line, 4, 3, 2, 1, 0, 0);
  flow_tensor_release(left);
  flow_tensor_release(right);
  flow_tensor_release(backward);
  flow_tensor_release(line);
}

static void contiguous_returns_itself_or_a_packed_copy(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_INT64, 2, SHAPE(2, 3)), *same, *packed;
  flow_tensor *transposed = view_of(source, 2, SHAPE(3, 2), SHAPE(1, 3), 0);
  flow_tensor *thin = view_of(source, 2, SHAPE(1, 3), SHAPE(77, 1), 3);           /* the stride of one element does not matter */
  assert_int_equal(flow_tensor_contiguous(source, &same), FLOW_OK);
  assert_ptr_equal(same, source);
  flow_tensor_release(same);
  assert_true(flow_tensor_is_contiguous(thin));
  assert_int_equal(flow_tensor_contiguous(transposed, &packed), FLOW_OK);
  assert_true(flow_tensor_is_contiguous(packed));
  EXPECT(packed, 0, 3, 1, 4, 2, 5);
  flow_tensor_release(packed);
  flow_tensor_release(thin);
  flow_tensor_release(transposed);
  flow_tensor_release(source);
}

/* ---- rows ------------------------------------------------------------------------------------------------- */

static void rows_are_gathered_in_order(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_INT32, 2, SHAPE(5, 2)), *into = zeros(FLOW_INT32, 2, SHAPE(3, 2));
  flow_tensor *order = from_numbers(FLOW_INT64, 1, SHAPE(5), (double[]){ 4, 0, 2, 2, 9 });
  assert_int_equal(flow_tensor_gather_rows(source, NULL, 1, 3, into), FLOW_OK);
  EXPECT(into, 2, 3, 4, 5, 6, 7);
  assert_int_equal(flow_tensor_gather_rows(source, order, 0, 2, into), FLOW_OK);
  EXPECT(into, 8, 9, 0, 1, 6, 7);
  assert_int_equal(flow_tensor_gather_rows(source, order, 2, 2, into), FLOW_OK);
  EXPECT(into, 4, 5, 4, 5, 6, 7);
  assert_int_equal(flow_tensor_gather_rows(source, order, 3, 2, into), FLOW_INVALID_ARGUMENT);   /* row 9 */
  assert_non_null(strstr(flow_last_error(), "row 9 of a tensor of 5 rows"));
  assert_int_equal(flow_tensor_gather_rows(source, order, 3, 3, into), FLOW_INVALID_ARGUMENT);   /* beyond the order */
  assert_int_equal(flow_tensor_gather_rows(source, NULL, 0, 4, into), FLOW_INVALID_ARGUMENT);    /* beyond the target */
  assert_int_equal(flow_tensor_gather_rows(source, NULL, 4, 2, into), FLOW_INVALID_ARGUMENT);    /* beyond the source */
  assert_int_equal(flow_tensor_gather_rows(source, NULL, -1, 2, into), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_gather_rows(source, NULL, 0, NAN, into), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_gather_rows(source, NULL, 5, 0, into), FLOW_OK);
  assert_int_equal(flow_tensor_gather_rows(source, into, 0, 1, into), FLOW_INVALID_ARGUMENT);    /* no order */
  flow_tensor *other = zeros(FLOW_INT32, 2, SHAPE(3, 3)), *floats = zeros(FLOW_FLOAT32, 2, SHAPE(3, 2));
  assert_int_equal(flow_tensor_gather_rows(source, NULL, 0, 1, other), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_gather_rows(source, NULL, 0, 1, floats), FLOW_INVALID_ARGUMENT);
  flow_tensor_release(other);
  flow_tensor_release(floats);
  flow_tensor_release(order);
  flow_tensor_release(into);
  flow_tensor_release(source);
}

/* Mirrors on devices and values derived from a tensor are kept by these two numbers of its storage: each write must change them, and a call
 * that is refused must not. */
static void rows_and_shuffles_report_their_writes(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_INT64, 1, SHAPE(5)), *into = zeros(FLOW_INT64, 1, SHAPE(3));
  flow_tensor *order = from_numbers(FLOW_INT64, 1, SHAPE(3), (double[]){ 4, 0, 2 });
  flow_tensor *wrong = from_numbers(FLOW_INT64, 1, SHAPE(3), (double[]){ 4, 0, 5 });
  flow_storage *target = into->storage, *shuffled = order->storage;
  uint64_t writes = target->writes, content = target->content;
  assert_int_equal(flow_tensor_gather_rows(source, NULL, 1, 3, into), FLOW_OK);
  assert_int_equal(target->writes, writes + 1);
  assert_true(target->content != content);
  content = target->content;
  assert_int_equal(flow_tensor_gather_rows(source, order, 0, 3, into), FLOW_OK);
  assert_int_equal(target->writes, writes + 2);
  assert_true(target->content != content);
  content = target->content;
  assert_int_equal(flow_tensor_gather_rows(source, wrong, 0, 3, into), FLOW_INVALID_ARGUMENT);
  assert_int_equal(target->writes, writes + 2);
  assert_true(target->content == content);
  writes = shuffled->writes, content = shuffled->content;
  assert_int_equal(flow_tensor_shuffle(order, 7), FLOW_OK);
  assert_int_equal(shuffled->writes, writes + 1);
  assert_true(shuffled->content != content);
  flow_tensor_release(source);
  flow_tensor_release(into);
  flow_tensor_release(order);
  flow_tensor_release(wrong);
}

static void shuffles_are_permutations_by_seed(void **state)
{
  (void)state;
  enum { N = 1000 };
  flow_tensor *a = counting(FLOW_INT64, 1, SHAPE(N)), *b = counting(FLOW_INT64, 1, SHAPE(N)), *c = counting(FLOW_INT64, 1, SHAPE(N));
  assert_int_equal(flow_tensor_shuffle(a, 42), FLOW_OK);
  assert_int_equal(flow_tensor_shuffle(b, 42), FLOW_OK);
  assert_int_equal(flow_tensor_shuffle(c, 43), FLOW_OK);
  assert_memory_equal(a->data, b->data, N * sizeof(int64_t));
  assert_memory_not_equal(a->data, c->data, N * sizeof(int64_t));
  char seen[N] = { 0 };
  int fixed = 0;
  for (int i = 0; i < N; i++) {
    int64_t position = ((int64_t *)a->data)[i];
    assert_in_range(position, 0, N - 1);
    assert_false(seen[position]);
    seen[position] = 1;
    fixed += position == i;
  }
  assert_true(fixed < 10);                                   /* one is expected */
  flow_tensor *wrong = zeros(FLOW_INT32, 1, SHAPE(3));
  assert_int_equal(flow_tensor_shuffle(wrong, 1), FLOW_INVALID_ARGUMENT);
  flow_tensor_release(a);
  flow_tensor_release(b);
  flow_tensor_release(c);
  flow_tensor_release(wrong);
}

/* All 24 orders of four come equally often: chi-square with 23 degrees of freedom stays below 49.7 (p = 0.001). */
static void shuffles_are_fair(void **state)
{
  (void)state;
  enum { ROUNDS = 24000 };
  int counts[256] = { 0 };
  int64_t numbers[4];
  flow_tensor *order;
  assert_int_equal(flow_tensor_borrow(numbers, FLOW_INT64, 1, SHAPE(4), &order), FLOW_OK);
  for (int seed = 0; seed < ROUNDS; seed++) {
    for (int i = 0; i < 4; i++) numbers[i] = i;
    assert_int_equal(flow_tensor_shuffle(order, seed), FLOW_OK);
    counts[numbers[0] | numbers[1] << 2 | numbers[2] << 4 | numbers[3] << 6]++;
  }
  double chi_square = 0, expected = ROUNDS / 24.0;
  int kinds = 0;
  for (int i = 0; i < 256; i++) {
    if (counts[i] == 0) continue;
    kinds++;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  assert_int_equal(kinds, 24);
  assert_true(chi_square < 49.7);
  flow_tensor_release(order);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(copies_cast_between_all_dtypes),
    TEST(large_integers_stay_exact),
    TEST(copies_broadcast),
    TEST(copies_follow_strides_on_both_sides),
    TEST(long_casts_cross_their_chunks),
    TEST(overlapping_copies_see_the_old_contents),
    TEST(contiguous_returns_itself_or_a_packed_copy),
    TEST(rows_are_gathered_in_order),
    TEST(rows_and_shuffles_report_their_writes),
    TEST(shuffles_are_permutations_by_seed),
    TEST(shuffles_are_fair),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
