/* constant.c: rules of what makes tensors from attributes alone, and of numbers that a run knows. */
#include <math.h>

#include "ops/rules.h"

/* A tensor of fill.dims and fill.dtype. */
flow_status flow_shape_fill(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                            flow_signature *outputs)
{
  (void)inputs;
  (void)input_count;
  return flow_rule_given_shape(op, attributes->fill.dtype, attributes->fill.rank, attributes->fill.dims, &outputs[0]);
}

/* A float32 number that only a run knows, such as how many rows all replicas have. */
flow_status flow_shape_scalar(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)op;
  (void)attributes;
  (void)inputs;
  (void)input_count;
  outputs[0] = (flow_signature){ .dtype = FLOW_FLOAT32, .rank = 0 };
  return FLOW_OK;
}

/* A range that the kernels can draw from: they convert the ends of integers to int64, and compute high - low of floats as a double. An
 * integer range holds the whole numbers from low to below high; there must be one, and the dtype must hold all. */
static flow_status check_range(int op, int dtype, double low, double high)
{
  int integer = flow_dtype_is_integer(dtype), bits = 8 * flow_dtype_size(dtype);
  if (integer ? low >= high : low > high) {
    return flow_rule_fail(op, "the range is %g to %g, expected the lower end first%s", low, high,
                          integer ? " (the upper end is excluded)" : "");
  }
  if (!integer) {
    return isfinite(high - low) ? FLOW_OK : flow_rule_fail(op, "the range %g to %g is wider than a double can count", low, high);
  }
  double least = dtype == FLOW_UINT8 ? 0 : -ldexp(1, bits - 1), end = ldexp(1, dtype == FLOW_UINT8 ? 8 : bits - 1);
  if (low < least || high > end) {
    return flow_rule_fail(op, "the range is %.17g to %.17g, which %s does not hold; expected %.17g to %.17g at most", low, high,
                          flow_dtype_name(dtype), least, end);
  }
  if (ceil(low) >= ceil(high)) return flow_rule_fail(op, "there is no whole number from %.17g to below %.17g", low, high);
  return FLOW_OK;
}

/* random.dims of random.dtype. low and high are the range of a uniform distribution, mean and standard deviation of the others, which
 * are of floats only. */
flow_status flow_shape_random(int op, const flow_attributes *attributes, const flow_signature *inputs, int input_count,
                              flow_signature *outputs)
{
  (void)inputs;
  (void)input_count;
  double low = attributes->random.low, high = attributes->random.high;
  FLOW_TRY(flow_rule_given_shape(op, attributes->random.dtype, attributes->random.rank, attributes->random.dims, &outputs[0]));
  if (!isfinite(low) || !isfinite(high)) return flow_rule_fail(op, "the parameters are %g and %g, expected finite numbers", low, high);
  if (op != FLOW_OP_random_uniform) {
    FLOW_TRY(flow_rule_float(op, "the result", &outputs[0]));
    if (high < 0) return flow_rule_fail(op, "the standard deviation is %g, expected 0 or more", high);
    return FLOW_OK;
  }
  if (outputs[0].dtype == FLOW_BOOL) return flow_rule_fail(op, "the result is bool, expected a float or integer dtype");
  return check_range(op, outputs[0].dtype, low, high);
}
