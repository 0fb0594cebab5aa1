/* kind.c: batch kinds that depend on attributes: whether an op touches axis 0, the rows of a batch (op.h, flow_kind_rule). */
#include "ops/rules.h"

/* A sum over the rows can be put together of partial sums; over other axes each row has its own. */
flow_batch_kind flow_kind_reduce_sum(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  return flow_reduced_axes(attributes, inputs[0].rank) & 1u ? FLOW_REDUCE : FLOW_MAP;
}

/* Other reductions have no partial results that could be added: over the rows they need all of them. */
flow_batch_kind flow_kind_reduce(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  return flow_reduced_axes(attributes, inputs[0].rank) & 1u ? FLOW_WHOLE : FLOW_MAP;
}

/* Softmax and others along one axis: across rows only if that is axis 0, counted from either end. */
flow_batch_kind flow_kind_axis(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  int axis = attributes->axis.axis;
  return axis == 0 || axis == -inputs[0].rank ? FLOW_WHOLE : FLOW_MAP;
}

/* Rows that lay along axis 0 stay there unless the new axis 0 is a plain number or another axis takes them. */
flow_batch_kind flow_kind_reshape(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  if (inputs[0].rank == 0 || inputs[0].dims[0] >= 0) return FLOW_MAP;
  if (attributes->shape.rank == 0 || attributes->shape.dims[0] >= 0) return FLOW_WHOLE;
  for (int i = 1; i < attributes->shape.rank; i++) {
    if (attributes->shape.dims[i] < 0 && attributes->shape.dims[i] != FLOW_DIM_INFER) return FLOW_WHOLE;
  }
  return FLOW_MAP;
}

/* Rows stay rows if axis 0 stays where it is. */
flow_batch_kind flow_kind_transpose(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  return inputs[0].rank > 0 && attributes->transpose.axes[0] != 0 ? FLOW_WHOLE : FLOW_MAP;
}

/* Serves slice (the sliced tensor is the input) and slice_gradient (it is the output, slice.dims): the longer is meant. */
flow_batch_kind flow_kind_slice(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  (void)input_count;
  if (inputs[0].rank == 0) return FLOW_MAP;
  int64_t length = inputs[0].dims[0], whole = attributes->slice.dims[0];
  if (whole > length) length = whole;
  int64_t end = attributes->slice.end[0];
  int to_end = length < 0 ? end >= FLOW_SLICE_ALL : end >= length;
  return attributes->slice.begin[0] == 0 && attributes->slice.step[0] == 1 && to_end ? FLOW_MAP : FLOW_WHOLE;
}

/* Products of matrices that each row of the batch has of its own, small enough for a row's to stay in a core's cache with what is done to
 * them: larger ones are worth more when they are cut themselves, which few rows of long sequences need. */
flow_batch_kind flow_kind_matmul(const flow_attributes *attributes, const flow_signature *inputs, int input_count)
{
  enum { MOST_ELEMENTS = 1 << 16, MOST_WORK = 1 << 22 };
  if (input_count < 2) return FLOW_WHOLE;
  const flow_signature *a = &inputs[0], *b = &inputs[1];
  if (a->rank < 3 || a->rank != b->rank || a->dims[0] >= 0 || a->dims[0] != b->dims[0]) return FLOW_WHOLE;
  double of_a = 1, of_b = 1, columns = (double)b->dims[b->rank - (attributes->matmul.transpose_b ? 2 : 1)];
  for (int i = 1; i < a->rank; i++) {
    if (a->dims[i] < 0 || (i < a->rank - 2 && a->dims[i] != b->dims[i])) return FLOW_WHOLE;
    of_a *= (double)a->dims[i];
    of_b *= (double)b->dims[i];
  }
  return of_a <= MOST_ELEMENTS && of_b <= MOST_ELEMENTS && of_a * columns <= MOST_WORK ? FLOW_MAP : FLOW_WHOLE;
}
