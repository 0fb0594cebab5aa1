/* range.c: the numbers start, start + step, ... before stop, as scalars. Element i is computed from i alone (tensor/sequence.h), so that
 * no rounding adds up and skipping is an addition. */
#include "data/dataset.h"

#include <math.h>

#include "base/need.h"
#include "tensor/sequence.h"

typedef struct range { flow_dataset base; flow_sequence sequence; } range;
typedef struct range_cursor { flow_cursor base; int64_t index; } range_cursor;

/* A separate scalar for each element. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  range_cursor *at = (range_cursor *)cursor;
  const range *self = (const range *)cursor->dataset;
  if (at->index >= self->base.cardinality) return FLOW_OK;
  int dtype = self->base.spec.components[0].dtype;
  FLOW_TRY(flow_tensor_new_uninitialized(dtype, 0, NULL, &out->tensors[0]));
  flow_sequence_write(&self->sequence, at->index, 1, dtype, out->tensors[0]->data);
  out->count = 1;
  at->index++;
  return FLOW_OK;
}

/* Numbers are computed from their index, so that skipping costs nothing. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  range_cursor *at = (range_cursor *)cursor;
  int64_t left = cursor->dataset->cardinality - at->index;
  *skipped = count < left ? count : left;
  at->index += *skipped;
  return FLOW_OK;
}

static const flow_dataset_class class = {
  .name = "range", .dataset_bytes = sizeof(range), .cursor_bytes = sizeof(range_cursor), .next = next, .skip = skip,
};

/* start, step: bits that differ where the numbers do. */
static flow_status make(const flow_sequence *sequence, int dtype, uint64_t start, uint64_t step, flow_dataset **out)
{
  FLOW_TRY(flow_check_shape("range", dtype, 0, NULL));
  flow_dataset *dataset;
  FLOW_TRY(flow_dataset_new(&class, NULL, 0, &dataset));
  ((range *)dataset)->sequence = *sequence;
  dataset->cardinality = sequence->count;
  dataset->spec.count = 1;
  dataset->spec.components[0] = (flow_component){ .dtype = dtype };
  flow_dataset_identify(dataset, (uint64_t)sequence->count);
  flow_dataset_identify(dataset, start);
  flow_dataset_identify(dataset, step);
  flow_dataset_identify(dataset, (uint64_t)dtype);
  *out = dataset;
  return FLOW_OK;
}

/* The number of elements is ceil((stop - start) / step), none where the step leads away from stop, as numpy.arange has it. */
flow_status flow_dataset_range(double start, double stop, double step, int dtype, flow_dataset **out)
{
  FLOW_NEED(out);
  *out = NULL;
  double count = ceil((stop - start) / step);
  if (step == 0 || !(fabs(start) <= 0x1p53) || !(count <= 0x1p53))
    return flow_fail(FLOW_INVALID_ARGUMENT, "range from %g to %g by %g: finite numbers and a step other than 0 are needed", start, stop,
                     step);
  flow_sequence sequence = flow_sequence_of_numbers(start, step, count > 0 ? (int64_t)count : 0);
  return make(&sequence, dtype, flow_number_bits(start), flow_number_bits(step), out);
}

/* For numbers that a double does not hold. */
flow_status flow_dataset_range_integers(int64_t start, int64_t stop, int64_t step, int dtype, flow_dataset **out)
{
  FLOW_NEED(out);
  flow_sequence sequence;
  *out = NULL;
  if (step == 0) return flow_fail(FLOW_INVALID_ARGUMENT, "range: a step other than 0 is needed");
  FLOW_TRY(flow_sequence_of_integers(start, stop, step, &sequence));
  return make(&sequence, dtype, (uint64_t)start, (uint64_t)step, out);
}
