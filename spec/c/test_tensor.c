/* test_tensor.c: dtypes and promotion, conversion, tensors and views, element access. */
#include "tensors.h"

#include <math.h>
#include <string.h>
#include "tensor/convert.h"

/* ---- dtypes ---------------------------------------------------------------------------------------------------------------------- */

static void dtypes_have_names_and_sizes(void **state)
{
  (void)state;
  static const struct { const char *name; int size; } expected[FLOW_DTYPE_COUNT] = {
    { "float32", 4 }, { "float16", 2 }, { "bfloat16", 2 }, { "float64", 8 }, { "int8", 1 }, { "uint8", 1 }, { "int32", 4 },
    { "int64", 8 }, { "bool", 1 },
  };
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++) {
    assert_string_equal(flow_dtype_name(dtype), expected[dtype].name);
    assert_int_equal(flow_dtype_size(dtype), expected[dtype].size);
    assert_int_equal(flow_dtype_find(expected[dtype].name), dtype);
  }
  assert_null(flow_dtype_name(-1));
  assert_null(flow_dtype_name(FLOW_DTYPE_COUNT));
  assert_int_equal(flow_dtype_size(FLOW_DTYPE_COUNT), 0);
  assert_int_equal(flow_dtype_find("float"), -1);
  assert_int_equal(flow_dtype_find(NULL), -1);
}

static void promotion_follows_the_table(void **state)
{
  (void)state;
  enum { F4 = FLOW_FLOAT32, F2 = FLOW_FLOAT16, BF = FLOW_BFLOAT16, F8 = FLOW_FLOAT64, I1 = FLOW_INT8, U1 = FLOW_UINT8,
         I4 = FLOW_INT32, I8 = FLOW_INT64, B = FLOW_BOOL };
  static const int table[FLOW_DTYPE_COUNT][FLOW_DTYPE_COUNT] = {
    /*        F4  F2  BF  F8  I1  U1  I4  I8  B */
    [F4] = {  F4, F4, F4, F8, F4, F4, F4, F4, F4 },
    [F2] = {  F4, F2, F4, F8, F2, F2, F2, F2, F2 },
    [BF] = {  F4, F4, BF, F8, BF, BF, BF, BF, BF },
    [F8] = {  F8, F8, F8, F8, F8, F8, F8, F8, F8 },
    [I1] = {  F4, F2, BF, F8, I1, I4, I4, I8, I1 },
    [U1] = {  F4, F2, BF, F8, I4, U1, I4, I8, U1 },
    [I4] = {  F4, F2, BF, F8, I4, I4, I4, I8, I4 },
    [I8] = {  F4, F2, BF, F8, I8, I8, I8, I8, I8 },
    [B]  = {  F4, F2, BF, F8, I1, U1, I4, I8, B  },
  };
  for (int a = 0; a < FLOW_DTYPE_COUNT; a++) {
    for (int b = 0; b < FLOW_DTYPE_COUNT; b++) assert_int_equal(flow_dtype_promote(a, b), table[a][b]);
  }
  assert_int_equal(flow_dtype_promote(0, 99), -1);
  assert_int_equal(flow_dtype_promote(-1, 0), -1);
}

/* ---- conversion -------------------------------------------------------------------------------------------------------------------- */

static void every_half_survives_the_way_through_float(void **state)
{
  (void)state;
  for (uint32_t bits = 0; bits < 65536; bits++) {
    float value = flow_half_to_float((uint16_t)bits);
    if (isnan(value)) assert_true(isnan(flow_half_to_float(flow_float_to_half(value))));
    else assert_int_equal(flow_float_to_half(value), bits);
  }
  assert_true(flow_half_to_float(0x3c00) == 1.0f);
  assert_true(flow_half_to_float(0x0001) == 0x1p-24f);
  assert_true(flow_half_to_float(0xfbff) == -65504.0f);
  assert_true(flow_half_to_float(0x7c00) == INFINITY);
}

static void halves_round_to_nearest_even(void **state)
{
  (void)state;
  static const struct { float value; uint16_t half; } cases[] = {
    { 1.0f + 0x1p-11f, 0x3c00 }, { 1.0f + 3 * 0x1p-11f, 0x3c02 }, { 1.0f + 0x1p-11f + 0x1p-20f, 0x3c01 },
    { 65519.0f, 0x7bff }, { 65520.0f, 0x7c00 }, { 1e30f, 0x7c00 }, { -INFINITY, 0xfc00 }, { -0.0f, 0x8000 },
    { 0x1p-25f, 0x0000 }, { 0x1.8p-25f, 0x0001 }, { 3 * 0x1p-25f, 0x0002 }, { 0x1p-14f, 0x0400 }, { 0x1p-14f - 0x1p-26f, 0x0400 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_int_equal(flow_float_to_half(cases[i].value), cases[i].half);
  /* one rounding, not two: through float this double would become the tie 1 + 2^-11, and then 1 */
  double value = 1.0 + 0x1p-11 + 0x1p-40;
  uint16_t half;
  flow_convert_from_double(FLOW_FLOAT16, &value, &half, 1, 1);
  assert_int_equal(half, 0x3c01);
  value = 1.0 + 0x1p-8 + 0x1p-40;
  flow_convert_from_double(FLOW_BFLOAT16, &value, &half, 1, 1);
  assert_int_equal(half, 0x3f81);
  value = 1e300;
  flow_convert_from_double(FLOW_BFLOAT16, &value, &half, 1, 1);
  assert_int_equal(half, 0x7f80);
}

static void floats_saturate_to_integers(void **state)
{
  (void)state;
  static const double in[] = { 1e30, -1e30, NAN, INFINITY, -INFINITY, 2.9, -2.9, 300, -300 };
  static const double out[][9] = {
    [FLOW_INT8]  = { 127, -128, 0, 127, -128, 2, -2, 127, -128 },
    [FLOW_UINT8] = { 255, 0, 0, 255, 0, 2, 0, 255, 0 },
    [FLOW_INT32] = { INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN, 2, -2, 300, -300 },
    [FLOW_INT64] = { 0x1p63, -0x1p63, 0, 0x1p63, -0x1p63, 2, -2, 300, -300 },
    [FLOW_BOOL]  = { 1, 1, 1, 1, 1, 1, 1, 1, 1 },
  };
  for (int dtype = FLOW_INT8; dtype <= FLOW_BOOL; dtype++) {
    flow_tensor *tensor = from_numbers(dtype, 1, SHAPE(9), in);
    expect_numbers(tensor, 9, out[dtype]);
    flow_tensor_release(tensor);
  }
}

/* ---- tensors and views ------------------------------------------------------------------------------------------------------------- */

static void new_tensors_are_zero_and_aligned(void **state)
{
  (void)state;
  for (int dtype = 0; dtype < FLOW_DTYPE_COUNT; dtype++) {
    flow_tensor *tensor = zeros(dtype, 2, SHAPE(2, 3));
    assert_int_equal((uintptr_t)flow_tensor_data(tensor) % 64, 0);
    EXPECT(tensor, 0, 0, 0, 0, 0, 0);
    assert_int_equal(flow_tensor_dtype(tensor), dtype);
    assert_int_equal(flow_tensor_rank(tensor), 2);
    assert_true(flow_tensor_dim(tensor, 1) == 3 && flow_tensor_stride(tensor, 0) == 3 && flow_tensor_size(tensor) == 6);
    assert_true(flow_tensor_is_contiguous(tensor));
    assert_false(flow_tensor_is_symbolic(tensor));
    flow_tensor_release(tensor);
  }
}

static void bad_shapes_are_refused(void **state)
{
  (void)state;
  flow_tensor *tensor = (flow_tensor *)(uintptr_t)1;
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 9, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), &tensor), FLOW_INVALID_ARGUMENT);
  assert_null(tensor);
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 2, SHAPE(2, -3), &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_new(99, 1, SHAPE(2), &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 2, SHAPE(INT64_MAX, 4), &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 3, SHAPE(INT64_MAX, 4, 0), &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_new(FLOW_FLOAT64, 1, SHAPE(INT64_MAX / 4), &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 1, SHAPE((int64_t)1 << 50), &tensor), FLOW_OUT_OF_MEMORY);
  assert_null(tensor);
}

static void empty_tensors_and_scalars_work(void **state)
{
  (void)state;
  flow_tensor *empty = zeros(FLOW_FLOAT32, 2, SHAPE(0, 5)), *scalar;
  assert_true(flow_tensor_size(empty) == 0 && flow_tensor_is_contiguous(empty));
  assert_int_equal(flow_tensor_fill(empty, 3), FLOW_OK);
  assert_int_equal(flow_tensor_read(empty, NULL, 0), FLOW_OK);
  double value;
  assert_int_equal(flow_tensor_item(empty, &value), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_scalar(FLOW_INT32, 7, &scalar), FLOW_OK);
  assert_int_equal(flow_tensor_rank(scalar), 0);
  assert_int_equal(flow_tensor_item(scalar, &value), FLOW_OK);
  assert_true(value == 7);
  flow_tensor_release(empty);
  flow_tensor_release(scalar);
}

static void arange_counts(void **state)
{
  (void)state;
  flow_tensor *tensor;
  assert_int_equal(flow_tensor_arange(FLOW_FLOAT32, 1, 0.5, 4, &tensor), FLOW_OK);
  EXPECT(tensor, 1, 1.5, 2, 2.5);
  flow_tensor_release(tensor);
  assert_int_equal(flow_tensor_arange(FLOW_INT64, 5, -2, 3, &tensor), FLOW_OK);
  EXPECT(tensor, 5, 3, 1);
  flow_tensor_release(tensor);
  assert_int_equal(flow_tensor_arange(FLOW_INT64, 0, 1, -1, &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_arange(FLOW_INT64, 0, 1, NAN, &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_arange(FLOW_INT64, 0, 1, 1.5, &tensor), FLOW_INVALID_ARGUMENT);
}

static void borrowed_memory_is_used_and_left_alone(void **state)
{
  (void)state;
  float numbers[4] = { 1, 2, 3, 4 };
  flow_tensor *tensor;
  assert_int_equal(flow_tensor_borrow(numbers, FLOW_FLOAT32, 2, SHAPE(2, 2), &tensor), FLOW_OK);
  assert_ptr_equal(flow_tensor_data(tensor), numbers);
  assert_int_equal(flow_tensor_set(tensor, SHAPE(1, 0), 9), FLOW_OK);
  assert_true(numbers[2] == 9);
  flow_tensor_release(tensor);
  assert_true(numbers[3] == 4);
  assert_int_equal(flow_tensor_borrow(NULL, FLOW_FLOAT32, 1, SHAPE(1), &tensor), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_borrow((char *)numbers + 1, FLOW_FLOAT32, 1, SHAPE(1), &tensor), FLOW_INVALID_ARGUMENT);
}

static void views_share_memory_and_keep_it_alive(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_FLOAT32, 2, SHAPE(3, 4));
  flow_tensor *transposed = view_of(source, 2, SHAPE(4, 3), SHAPE(1, 4), 0);
  flow_tensor *corner = view_of(transposed, 2, SHAPE(2, 2), SHAPE(1, 4), 2);
  flow_tensor *reversed = view_of(source, 1, SHAPE(4), SHAPE(-1), 11);
  flow_tensor *repeated = view_of(source, 2, SHAPE(2, 2), SHAPE(0, 1), 4);
  flow_tensor_release(source);
  EXPECT(transposed, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
  assert_false(flow_tensor_is_contiguous(transposed));
  EXPECT(corner, 2, 6, 3, 7);
  EXPECT(reversed, 11, 10, 9, 8);
  EXPECT(repeated, 4, 5, 4, 5);
  assert_int_equal(flow_tensor_set(reversed, SHAPE(0), 50), FLOW_OK);
  double value;
  assert_int_equal(flow_tensor_get(transposed, SHAPE(3, 2), &value), FLOW_OK);
  assert_true(value == 50);
  flow_tensor_release(transposed);
  flow_tensor_release(corner);
  flow_tensor_release(reversed);
  flow_tensor_release(repeated);
}

static void views_never_reach_outside(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_FLOAT32, 1, SHAPE(12));
  static const struct { int rank; int64_t shape[2], strides[2], offset; int fits; } cases[] = {
    { 1, { 12 }, { 1 }, 0, 1 },        { 1, { 12 }, { 1 }, 1, 0 },        { 1, { 13 }, { 1 }, 0, 0 },
    { 1, { 12 }, { -1 }, 11, 1 },      { 1, { 12 }, { -1 }, 10, 0 },      { 1, { 1 }, { 100 }, 11, 1 },
    { 2, { 3, 4 }, { 4, 1 }, 0, 1 },   { 2, { 3, 4 }, { 4, 1 }, 1, 0 },   { 2, { 3, 2 }, { 5, 1 }, 0, 1 },
    { 2, { 3, 3 }, { 5, 1 }, 0, 0 },   { 1, { 0 }, { 1 }, 12, 1 },        { 1, { 0 }, { 1 }, 13, 1 },
    { 1, { 1 }, { 1 }, -1, 0 },        { 0, { 0 }, { 0 }, 11, 1 },        { 0, { 0 }, { 0 }, 12, 0 },
    { 1, { 3 }, { INT64_MAX }, 0, 0 }, { 1, { 3 }, { INT64_MIN }, 0, 0 }, { 1, { 1 }, { 1 }, INT64_MAX, 0 },
    { 2, { 2, 2 }, { INT64_MAX, INT64_MAX }, 0, 0 }, { 2, { 1 << 30, 1 << 30 }, { 0, 0 }, 5, 1 },
    { 1, { 0 }, { 1 }, INT64_MIN, 1 },      /* what is empty touches nothing */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_tensor *view;
    flow_status status = flow_tensor_view(source, cases[i].rank, cases[i].shape, cases[i].strides, cases[i].offset, &view);
    assert_int_equal(status, cases[i].fits ? FLOW_OK : FLOW_INVALID_ARGUMENT);
    flow_tensor_release(view);
  }
  flow_tensor_release(source);
}

/* Of a tensor in any order in memory, and of a view of one. */
static void one_position_of_the_first_axis(void **state)
{
  (void)state;
  flow_tensor *source = counting(FLOW_FLOAT32, 1, SHAPE(12)), *columns, *row, *element;
  double value;
  assert_int_equal(flow_tensor_view(source, 2, SHAPE(3, 4), (int64_t[]){ -1, 3 }, 2, &columns), FLOW_OK);
  flow_tensor_release(source);
  assert_int_equal(flow_tensor_view_at(columns, 1, &row), FLOW_OK);
  EXPECT(row, 1, 4, 7, 10);
  assert_int_equal(flow_tensor_view_at(row, 3, &element), FLOW_OK);
  assert_int_equal(flow_tensor_item(element, &value), FLOW_OK);
  assert_true(value == 10 && flow_tensor_rank(element) == 0);
  flow_tensor *none = element;
  assert_int_equal(flow_tensor_view_at(columns, 3, &none), FLOW_INVALID_ARGUMENT);
  assert_null(none);
  assert_int_equal(flow_tensor_view_at(columns, -1, &none), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_view_at(element, 0, &none), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), "there is no position 0, from 0, on the first axis of a tensor of shape {}");
  assert_int_equal(flow_tensor_view_at(NULL, 0, &none), FLOW_INVALID_ARGUMENT);
  flow_tensor_release(columns);
  EXPECT(row, 1, 4, 7, 10);
  flow_tensor_release(row);
  flow_tensor_release(element);
}

static void missing_and_closed_tensors_are_reported(void **state)
{
  (void)state;
  double value;
  assert_int_equal(flow_tensor_item(NULL, &value), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "item()"));
  assert_int_equal(flow_tensor_fill(NULL, 1), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_rank(NULL), -1);
  assert_null(flow_tensor_data(NULL));
  flow_tensor closed = { .magic = FLOW_TENSOR_DEAD };
  assert_int_equal(flow_tensor_fill(&closed, 1), FLOW_INVALID_ARGUMENT);
  assert_non_null(strstr(flow_last_error(), "closed"));
  flow_tensor_release(&closed);
  flow_tensor_release(NULL);
  flow_tensor symbolic = { .magic = FLOW_TENSOR_MAGIC, .rank = 2, .shape = { -1, 3 } };
  assert_int_equal(flow_tensor_item(&symbolic, &value), FLOW_INVALID_STATE);
  assert_non_null(strstr(flow_last_error(), "{None, 3}"));
  assert_true(flow_tensor_is_symbolic(&symbolic) && flow_tensor_size(&symbolic) < 0);
}

static void every_failed_allocation_is_survived(void **state)
{
  (void)state;
  for (int after = 0; after < 3; after++) {
    flow_tensor *tensor;
    flow_fail_allocation(after);
    assert_int_equal(flow_tensor_new(FLOW_FLOAT32, 1, SHAPE(10), &tensor), FLOW_OUT_OF_MEMORY);
    assert_null(tensor);
  }
  flow_fail_allocation(-1);
  flow_tensor *source = counting(FLOW_FLOAT32, 2, SHAPE(2, 3)), *view = view_of(source, 2, SHAPE(3, 2), SHAPE(1, 3), 0), *packed;
  for (int after = 0; after < 3; after++) {
    flow_fail_allocation(after);
    assert_int_equal(flow_tensor_contiguous(view, &packed), FLOW_OUT_OF_MEMORY);
    assert_null(packed);
    flow_fail_allocation(after);
    assert_int_equal(flow_tensor_copy(view, view), FLOW_OUT_OF_MEMORY);
  }
  flow_fail_allocation(-1);
  EXPECT(source, 0, 1, 2, 3, 4, 5);
  flow_tensor_release(view);
  flow_tensor_release(source);
}

/* ---- elements ------------------------------------------------------------------------------------------------------------------------ */

static void elements_are_read_and_written(void **state)
{
  (void)state;
  double value;
  flow_tensor *tensor = counting(FLOW_INT32, 2, SHAPE(2, 2));
  assert_int_equal(flow_tensor_item(tensor, &value), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), "item() needs exactly one element, this tensor has 4 (shape {2, 2})");
  assert_int_equal(flow_tensor_set(tensor, SHAPE(0, 1), -8.7), FLOW_OK);
  assert_int_equal(flow_tensor_get(tensor, SHAPE(0, 1), &value), FLOW_OK);
  assert_true(value == -8);
  assert_int_equal(flow_tensor_get(tensor, SHAPE(0, 2), &value), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_get(tensor, SHAPE(-1, 0), &value), FLOW_INVALID_ARGUMENT);
  assert_string_equal(flow_last_error(), "position -1 of axis 0 (both counted from 0) is outside of shape {2, 2}");
  assert_int_equal(flow_tensor_write(tensor, (double[]){ 4, 3, 2, 1 }, 4), FLOW_OK);
  EXPECT(tensor, 4, 3, 2, 1);
  assert_int_equal(flow_tensor_write(tensor, (double[]){ 4, 3, 2 }, 3), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_read(tensor, (double[5]){ 0 }, 5), FLOW_INVALID_ARGUMENT);
  assert_int_equal(flow_tensor_fill(tensor, 6), FLOW_OK);
  EXPECT(tensor, 6, 6, 6, 6);
  flow_tensor_release(tensor);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(dtypes_have_names_and_sizes),
    TEST(promotion_follows_the_table),
    TEST(every_half_survives_the_way_through_float),
    TEST(halves_round_to_nearest_even),
    TEST(floats_saturate_to_integers),
    TEST(new_tensors_are_zero_and_aligned),
    TEST(bad_shapes_are_refused),
    TEST(empty_tensors_and_scalars_work),
    TEST(arange_counts),
    TEST(borrowed_memory_is_used_and_left_alone),
    TEST(views_share_memory_and_keep_it_alive),
    TEST(views_never_reach_outside),
    TEST(one_position_of_the_first_axis),
    TEST(missing_and_closed_tensors_are_reported),
    TEST(every_failed_allocation_is_survived),
    TEST(elements_are_read_and_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
