/* promotion.c: the dtype that an op computes in. These rules are Keras' (keras.backend.result_type with 64-bit numbers), and the only ones:
 * eager calls, traces and functional models all come through flow_apply, which asks here. */
#include <math.h>

#include "ops/op.h"

/* The flags of the op's record decide, one after the other: common dtype of the inputs (the condition of `where` aside), then float32
 * for ops of floats, int32 for counted bools and for products of int8. */
int flow_op_dtype(int op, flow_tensor *const *inputs, int count)
{
  int flags = flow_op(op)->flags, first = flags & FLOW_OP_CONDITION ? 1 : 0;
  if (!(flags & (FLOW_OP_PROMOTE | FLOW_OP_TO_FLOAT | FLOW_OP_COUNTS_BOOLS))) return -1;
  int common = inputs[first]->dtype, same = 1;
  for (int i = first + 1; i < count; i++) {
    same &= inputs[i]->dtype == inputs[first]->dtype;
    common = flow_dtype_promote(common, inputs[i]->dtype);
  }
  if ((flags & FLOW_OP_TO_FLOAT) && !flow_dtype_is_float(common)) return FLOW_FLOAT32;
  if ((flags & FLOW_OP_COUNTS_BOOLS) && common == FLOW_BOOL) return FLOW_INT32;
  if ((flags & FLOW_OP_WIDENS_INT8) && common == FLOW_INT8 && same) return FLOW_INT32;
  return common;
}

/* The least and the largest whole number of an integer dtype. */
static void range_of(int dtype, int64_t *least, int64_t *most)
{
  int bits = 8 * flow_dtype_size(dtype);
  *most = dtype == FLOW_UINT8 ? UINT8_MAX : INT64_MAX >> (64 - bits);
  *least = dtype == FLOW_UINT8 ? 0 : -*most - 1;
}

/* A number takes the tensor's dtype if that holds it: uint8 images / 255 are float32, float16 weights * 2 stay float16. What an integer
 * dtype does not hold, a fraction or 300 beside uint8, takes the next one that does, where Keras would cut it off. */
int flow_dtype_of_integer(int dtype, int64_t value)
{
  if (flow_dtype_is_float(dtype)) return dtype;
  int64_t least, most;
  if (flow_dtype_is_integer(dtype)) {
    range_of(dtype, &least, &most);
    if (value >= least && value <= most) return dtype;
  }
  return value >= INT32_MIN && value <= INT32_MAX ? FLOW_INT32 : FLOW_INT64;
}

/* Whole numbers count as integers, whether Lua wrote 2 or 2.0: it does not tell them apart. */
int flow_dtype_of_number(int dtype, double value)
{
  if (flow_dtype_is_float(dtype)) return dtype;
  if (value != floor(value) || fabs(value) >= 0x1p63) return FLOW_FLOAT32;      /* a fraction, infinity, NaN, beyond int64 */
  return flow_dtype_of_integer(dtype, (int64_t)value);
}
