/* logsumexp against e^x summed after the largest was taken out, in long double: large and infinite values, and nothing at all. */
#include "kernel_arrays.h"

static void check_logsumexp(const flow_call *call, void *argument)
{
  const flow_operand *in = &call->inputs[0], *out = &call->outputs[0];
  double units = *(double *)argument;
  for (int64_t row = 0; row < in->shape[0]; row++) {
    long double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < in->shape[1]; i++) largest = fmaxl(largest, read_double(in->dtype, element(in, row * in->shape[1] + i)));
    for (int64_t i = 0; i < in->shape[1]; i++) sum += expl(read_double(in->dtype, element(in, row * in->shape[1] + i)) - largest);
    double expected = isinf(largest) ? (double)largest : (double)(largest + logl(sum));
    double found = read_double(out->dtype, element(out, row));
    if (found != expected && !(fabs(found - expected) <= units * unit_in_last_place(out->dtype, expected)))
      fail_msg("logsumexp, %s: row %lld is %.17g, expected %.17g", flow_dtype_name(in->dtype), (long long)row, found, expected);
  }
}

static void logsumexp_overflows_nowhere(void **state)
{
  (void)state;
  static const struct { int dtype; double units; } dtypes[] = { { FLOW_FLOAT32, 1 }, { FLOW_FLOAT64, 200 }, { FLOW_FLOAT16, 1 } };
  int64_t shape[2] = { 8, 75 };
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
    array in = array_new(dtypes[d].dtype, CONTIGUOUS, 2, shape);
    array_fill_random(&in, 31, -5, 5);
    for (int64_t i = 0; i < 75; i++) {
      write_double(dtypes[d].dtype, element(&in.operand, 75 + i), 10000 + (double)(i % 3));       /* e^x is beyond float64 */
      write_double(dtypes[d].dtype, element(&in.operand, 150 + i), -10000);
      write_double(dtypes[d].dtype, element(&in.operand, 225 + i), -INFINITY);                     /* nothing at all */
      write_double(dtypes[d].dtype, element(&in.operand, 300 + i), i == 40 ? 2 : -INFINITY);
    }
    write_double(dtypes[d].dtype, element(&in.operand, 375), INFINITY);
    write_double(dtypes[d].dtype, element(&in.operand, 376), INFINITY);
    flow_attributes attributes = { .reduce = { .count = 1, .axes = { 1 } } };
    array out = array_new(dtypes[d].dtype, CONTIGUOUS, 1, shape);
    flow_call call = call_of(FLOW_OP_logsumexp, &attributes, &in.operand, 1, &out.operand);
    double units = dtypes[d].units;
    run_everywhere(&call, check_logsumexp, &units);
    array_free(&in);
    array_free(&out);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(logsumexp_overflows_nowhere) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
