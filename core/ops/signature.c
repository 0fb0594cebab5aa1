/* signature.c: sizes of values whose rows are not known before a run. See op.h. */
#include "ops/op.h"
#include "tensor/tensor.h"

void flow_resolve_shape(const flow_signature *signature, int64_t rows, int64_t *shape)
{
  for (int i = 0; i < signature->rank; i++) shape[i] = signature->dims[i] < 0 ? -signature->dims[i] * rows : signature->dims[i];
}

size_t flow_value_bytes(const flow_signature *signature, int64_t rows)
{
  int64_t shape[FLOW_MAX_RANK];
  flow_resolve_shape(signature, rows, shape);
  int64_t size = flow_shape_size(signature->rank, shape);
  return size < 0 ? FLOW_NOT_PLACED : (size_t)size * (size_t)flow_dtype_size(signature->dtype);
}
