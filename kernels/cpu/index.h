/* index.h: whole numbers of any dtype that have to be below a size: labels of classes, rows of a table, positions along an axis. */
#ifndef FLOW_CPU_INDEX_H
#define FLOW_CPU_INDEX_H

#include <string.h>

#include "base/status.h"
#include "kernels.h"
#include "tensor/tensor.h"

/* Element i of the operand, as a double: int64 beyond 2^53 are rounded, but those are out of range either way. */
static inline double index_value(const flow_operand *operand, int64_t i)
{
  double value;
  flow_convert_to_double(operand->dtype, (const char *)operand->data + i * flow_dtype_size(operand->dtype), 1, &value, 1);
  return value;
}

/* Index number i; of other dtypes than int32 and int64 by way of a double, -1 where that is not an index. */
static inline int64_t index_at(const flow_operand *indices, int64_t i)
{
  if (indices->dtype == FLOW_INT32) return ((const int32_t *)indices->data)[i];
  if (indices->dtype == FLOW_INT64) return ((const int64_t *)indices->data)[i];
  double value = index_value(indices, i);
  return value >= 0 && value < 0x1p62 ? (int64_t)value : -1;
}

#define FULL_CACHE "cache_update_index" /* the table has no rows where the steps of a call do not fit at all */

/* Element i, of which a row of the batch has `per_row`, is not from 0 to size - 1. The message counts rows from 1, as users do, the field
 * FLOW_ERROR_ROW from 0, as fields for C callers do; both in the whole batch. what: "index", "label" or FULL_CACHE. A script may have
 * written an index as a position, which counts from 1, so the message says that this one counts from 0. */
static inline flow_status fail_index(const flow_call *call, const char *what, const flow_operand *operand, int64_t i, int64_t per_row,
                                     int64_t size)
{
  int64_t row = call->first_row + i / per_row;
  const char *hint = strcmp(what, "index") == 0 ? ", counted from 0" : "";
  if (strcmp(what, FULL_CACHE) == 0) hint = ", where the steps of this call fit in the cache: make a longer one, or cut the text";
  if (strcmp(what, FULL_CACHE) == 0 && size == 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "a call has more steps than its cache: make a longer one, or cut the text");
  flow_fail(FLOW_INVALID_ARGUMENT, "%s %.15g of row %lld is outside 0..%lld%s", what, index_value(operand, i), (long long)row + 1,
            (long long)(size - 1), hint);
  return flow_fail_field(FLOW_INVALID_ARGUMENT, FLOW_ERROR_ROW, (double)row);
}

/* *index: element i, if it is from 0 to size - 1; fractions are cut off. Else see fail_index(). */
static inline flow_status read_index(const flow_call *call, const char *what, const flow_operand *operand, int64_t i, int64_t per_row,
                                     int64_t size, int64_t *index)
{
  double value = index_value(operand, i);
  if (!(value >= 0 && value < (double)size)) return fail_index(call, what, operand, i, per_row, size);
  *index = (int64_t)value;
  return FLOW_OK;
}

#endif
