/* Casts between all dtypes in every layout and build of the kernels, against scalar references: rounding, saturation, wrapping. */
#include "kernel_arrays.h"
#include "cpu/elementwise/elementwise.h"

static void check_cast(const flow_call *call, void *argument)
{
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  static const double lowest[] = { [FLOW_INT8] = -128, [FLOW_UINT8] = 0, [FLOW_INT32] = -2147483648.0, [FLOW_INT64] = -0x1p63 };
  static const double highest[] = { [FLOW_INT8] = 127, [FLOW_UINT8] = 255, [FLOW_INT32] = 2147483647.0, [FLOW_INT64] = 0x1p63 };
  for (int64_t i = 0; i < size_of(out->rank, out->shape); i++) {
    const void *from = element(in, i), *found = element(out, i);
    if (flow_dtype_is_float(out->dtype)) {
      int once = in->dtype == FLOW_INT64 && out->dtype == FLOW_FLOAT32;   /* not by way of a double */
      double value = once ? (double)(float)read_int(FLOW_INT64, from) : read_double(in->dtype, from);
      assert_close("cast", out->dtype, read_double(out->dtype, found), rounded(out->dtype, value), 0);
      continue;
    }
    int64_t expected;
    if (flow_dtype_is_float(in->dtype) && out->dtype != FLOW_BOOL) {
      double value = read_double(in->dtype, from);
      if (value != value) expected = 0;
      else if (value <= lowest[out->dtype]) expected = out->dtype == FLOW_INT64 ? INT64_MIN : (int64_t)lowest[out->dtype];
      else if (value >= highest[out->dtype]) expected = out->dtype == FLOW_INT64 ? INT64_MAX : (int64_t)highest[out->dtype];
      else expected = (int64_t)value;
    } else if (flow_dtype_is_float(in->dtype)) {
      expected = read_double(in->dtype, from) != 0;
    } else {
      number wrapped;
      write_int(out->dtype, &wrapped, read_int(in->dtype, from));
      expected = read_int(out->dtype, &wrapped);
    }
    if (read_int(out->dtype, found) != expected)
      fail_msg("cast of %.17g, %s to %s: found %lld, expected %lld", read_double(in->dtype, from), flow_dtype_name(in->dtype),
               flow_dtype_name(out->dtype), (long long)read_int(out->dtype, found), (long long)expected);
  }
  assert_guards(argument);
  memset(((array *)argument)->block + GUARD, GUARD_BYTE, ((array *)argument)->bytes);
}

static void casts_round_saturate_and_wrap_between_all_dtypes(void **state)
{
  (void)state;
  static const double floats[] = {
    0, -0.0, 0.4, -0.6, 1.5, 127.5, 128, -129, 255.9, 300, -1e10, 1e10, 65519, 65520, 2147483647, 2147483648.0, -2147483649.0,
    9.3e18, -9.3e18, 1e30, INFINITY, -INFINITY, NAN, 1e-7, 3.0000001, 16777217,
  };
  const int64_t float_count = sizeof floats / sizeof floats[0];
  static const int64_t integers[] = {
    0, 1, -1, 127, 128, -128, -129, 255, 256, 65535, -70000, INT32_MAX, INT32_MIN, INT64_C(1) << 31, INT64_MAX, INT64_MIN,
    (INT64_C(1) << 53) + 1, 16777217,
  };
  const int64_t integer_count = sizeof integers / sizeof integers[0];
  int64_t shape[2] = { 9, 70 };
  for (int from = 0; from < FLOW_DTYPE_COUNT; from++)
    for (int to = 0; to < FLOW_DTYPE_COUNT; to++)
      for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        array in = array_new(from, (layout_kind)layout, 2, shape), out = array_new(to, CONTIGUOUS, 2, shape);
        for (int64_t i = 0; i < 630; i++) {
          if (flow_dtype_is_float(from)) write_double(from, element(&in.operand, i), floats[i % float_count]);
          else write_int(from, element(&in.operand, i), integers[i % integer_count]);
        }
        flow_attributes attributes = { .cast = { to } };
        flow_call call = call_of(FLOW_OP_cast, &attributes, &in.operand, 1, &out.operand);
        run_everywhere(&call, check_cast, &out);
        array_free(&in);
        array_free(&out);
      }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(casts_round_saturate_and_wrap_between_all_dtypes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
