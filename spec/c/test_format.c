/* test_format.c: tensors as text, compared with what NumPy 2.4 prints: numpy.array2string(array, precision=4). */
#include "tensors.h"

#include <math.h>
#include <string.h>

static void expect_text(const flow_tensor *tensor, const char *expected)
{
  char text[4096];
  int length = flow_tensor_format(tensor, text, sizeof text);
  assert_string_equal(text, expected);
  assert_int_equal(length, strlen(expected));
}

static void numbers_print_as_in_numpy(void **state)
{
  (void)state;
  static const struct { int dtype, count; double numbers[5]; const char *text; } cases[] = {
    { FLOW_FLOAT32, 3, { 1, 2.5, -3 }, "[ 1.   2.5 -3. ]" },
    { FLOW_FLOAT32, 3, { 0.1, 100000, 3 }, "[1.e-01 1.e+05 3.e+00]" },
    { FLOW_FLOAT32, 1, { 1e-5 }, "[1.e-05]" },
    { FLOW_FLOAT32, 4, { NAN, 1.5, -INFINITY, INFINITY }, "[ nan  1.5 -inf  inf]" },
    { FLOW_FLOAT32, 2, { NAN, INFINITY }, "[nan inf]" },
    { FLOW_FLOAT32, 1, { -INFINITY }, "[-inf]" },
    { FLOW_FLOAT32, 2, { 1234567, 1 }, "[1.2346e+06 1.0000e+00]" },
    { FLOW_FLOAT32, 2, { 0.0, -0.0 }, "[ 0. -0.]" },
    { FLOW_FLOAT32, 2, { 0.0001, 0.05 }, "[0.0001 0.05  ]" },
    { FLOW_FLOAT32, 2, { 0.00009, 0.05 }, "[9.e-05 5.e-02]" },
    { FLOW_FLOAT32, 2, { 1, 1000 }, "[   1. 1000.]" },
    { FLOW_FLOAT32, 2, { 1, 1001 }, "[1.000e+00 1.001e+03]" },
    { FLOW_FLOAT32, 2, { 0.12345, 0.99999 }, "[0.1235 1.    ]" },
    { FLOW_FLOAT32, 3, { 0x1p-20, 1e-20, NAN }, "[9.5367e-07 1.0000e-20        nan]" },
    { FLOW_FLOAT64, 2, { 1e-300, 1e300 }, "[1.e-300 1.e+300]" },
    { FLOW_FLOAT64, 2, { 123456.78, 0.5 }, "[1.2346e+05 5.0000e-01]" },
    { FLOW_FLOAT64, 1, { 1e8 }, "[1.e+08]" },
    { FLOW_FLOAT64, 1, { 99999999 }, "[99999999.]" },
    { FLOW_FLOAT16, 2, { 1 / 3.0, 2 / 3.0 }, "[0.3333 0.6665]" },
    { FLOW_FLOAT16, 1, { 1024 }, "[1.024e+03]" },
    { FLOW_FLOAT16, 3, { 0.015625, 0.001, 100 }, "[1.563e-02 1.000e-03 1.000e+02]" },
    { FLOW_BFLOAT16, 2, { 1 / 3.0, -2 }, "[ 0.334 -2.   ]" },
    { FLOW_INT32, 3, { 1, -200, 30 }, "[   1 -200   30]" },
    { FLOW_INT8, 2, { -128, 127 }, "[-128  127]" },
    { FLOW_UINT8, 2, { 0, 255 }, "[  0 255]" },
    { FLOW_INT64, 2, { -0x1p63, 0x1p63 }, "[-9223372036854775808  9223372036854775807]" },
    { FLOW_BOOL, 2, { 1, 0 }, "[ True False]" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_tensor *tensor = from_numbers(cases[i].dtype, 1, SHAPE(cases[i].count), cases[i].numbers);
    expect_text(tensor, cases[i].text);
    flow_tensor_release(tensor);
  }
}

static void single_numbers_print_alone(void **state)
{
  (void)state;
  static const struct { int dtype; double number; const char *text; } cases[] = {
    { FLOW_FLOAT32, 3.14159265, "3.1416" }, { FLOW_FLOAT32, 2, "2." }, { FLOW_INT64, -7, "-7" }, { FLOW_BOOL, 1, "True" },
    { FLOW_BOOL, 0, "False" }, { FLOW_FLOAT32, NAN, "nan" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_tensor *tensor;
    assert_int_equal(flow_tensor_scalar(cases[i].dtype, cases[i].number, &tensor), FLOW_OK);
    expect_text(tensor, cases[i].text);
    flow_tensor_release(tensor);
  }
}

static void pages_are_laid_out_as_in_numpy(void **state)
{
  (void)state;
  static const struct { int dtype, rank; int64_t shape[3]; const char *text; } cases[] = {
    { FLOW_FLOAT32, 2, { 2, 2 }, "[[0. 1.]\n [2. 3.]]" },
    { FLOW_FLOAT32, 3, { 2, 2, 2 }, "[[[0. 1.]\n  [2. 3.]]\n\n [[4. 5.]\n  [6. 7.]]]" },
    { FLOW_FLOAT32, 3, { 1, 1, 1 }, "[[[0.]]]" },
    { FLOW_FLOAT32, 2, { 0, 3 }, "[]" },
    { FLOW_INT32, 1, { 1001 }, "[   0    1    2 ...  998  999 1000]" },
    { FLOW_INT32, 1, { 28 }, "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27]" },
    { FLOW_FLOAT32, 2, { 40, 40 },
      "[[0.000e+00 1.000e+00 2.000e+00 ... 3.700e+01 3.800e+01 3.900e+01]\n"
      " [4.000e+01 4.100e+01 4.200e+01 ... 7.700e+01 7.800e+01 7.900e+01]\n"
      " [8.000e+01 8.100e+01 8.200e+01 ... 1.170e+02 1.180e+02 1.190e+02]\n ...\n"
      " [1.480e+03 1.481e+03 1.482e+03 ... 1.517e+03 1.518e+03 1.519e+03]\n"
      " [1.520e+03 1.521e+03 1.522e+03 ... 1.557e+03 1.558e+03 1.559e+03]\n"
      " [1.560e+03 1.561e+03 1.562e+03 ... 1.597e+03 1.598e+03 1.599e+03]]" },
    { FLOW_INT32, 3, { 7, 12, 13 }, NULL },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    flow_tensor *tensor = counting(cases[i].dtype, cases[i].rank, cases[i].shape);
    if (cases[i].text) {
      expect_text(tensor, cases[i].text);
    } else {
      char text[4096];
      flow_tensor_format(tensor, text, sizeof text);
      assert_non_null(strstr(text, "  [ 143  144  145 ...  153  154  155]]\n\n [[ 156  157  158 ...  166  167  168]\n"));
      assert_non_null(strstr(text, "\n\n ...\n\n [["));
    }
    flow_tensor_release(tensor);
  }
}

static void views_and_short_buffers_print(void **state)
{
  (void)state;
  flow_tensor *source = from_numbers(FLOW_FLOAT32, 2, SHAPE(2, 2), (double[]){ 1, 2.25, 3, 4.125 });
  flow_tensor *transposed = view_of(source, 2, SHAPE(2, 2), SHAPE(1, 2), 0);
  expect_text(transposed, "[[1.    3.   ]\n [2.25  4.125]]");
  char text[8] = "xxxxxxx";
  assert_int_equal(flow_tensor_format(transposed, NULL, 0), 30);
  assert_int_equal(flow_tensor_format(transposed, text, 6), 30);
  assert_string_equal(text, "[[1. ");
  assert_int_equal(text[6], 'x');
  flow_tensor_release(transposed);
  flow_tensor_release(source);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    TEST(numbers_print_as_in_numpy),
    TEST(single_numbers_print_alone),
    TEST(pages_are_laid_out_as_in_numpy),
    TEST(views_and_short_buffers_print),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
