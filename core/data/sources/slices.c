/* slices.c: rows of tensors and lists of texts as elements. An element is a view: nothing is copied, and a row has the same address in
 * every pass (keeps_elements), by which a row store on a device knows it again. */
#include "data/dataset.h"
#include "base/need.h"

#include <string.h>

/* References to the caller's tensors: what the caller changes in them later changes the elements. */
typedef struct slices {
  flow_dataset base;
  flow_tensor *components[FLOW_MAX_COMPONENTS];
  flow_tensor *offsets[FLOW_MAX_COMPONENTS];      /* NULL: no text */
} slices;

typedef struct slices_cursor { flow_cursor base; int64_t row; } slices_cursor;

/* A text's row is the bytes between two offsets. */
static flow_status view_row(const slices *self, int i, int64_t row, flow_tensor **out)
{
  flow_tensor *source = self->components[i];
  if (!self->offsets[i])
    return flow_tensor_view(source, source->rank - 1, source->shape + 1, source->strides + 1, row * source->strides[0], out);
  const int64_t *offsets = (const int64_t *)self->offsets[i]->data;
  int64_t length = offsets[row + 1] - offsets[row], stride = 1;
  return flow_tensor_view(source, 1, &length, &stride, offsets[row], out);
}

/* Views of row number `row` of each component; only their records are allocated. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  slices_cursor *at = (slices_cursor *)cursor;
  const slices *self = (const slices *)cursor->dataset;
  if (at->row >= self->base.cardinality) return FLOW_OK;
  for (int i = 0; i < self->base.spec.count; i++, out->count++) FLOW_TRY(view_row(self, i, at->row, &out->tensors[i]));
  at->row++;
  return FLOW_OK;
}

/* At most to the end, where `row` stays. */
static flow_status skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  slices_cursor *at = (slices_cursor *)cursor;
  int64_t left = cursor->dataset->cardinality - at->row;
  *skipped = count < left ? count : left;
  at->row += *skipped;
  return FLOW_OK;
}

/* Components and offsets that were not set are NULL. */
static void release(flow_dataset *dataset)
{
  slices *self = (slices *)dataset;
  for (int i = 0; i < FLOW_MAX_COMPONENTS; i++) {
    flow_tensor_release(self->components[i]);
    flow_tensor_release(self->offsets[i]);
  }
}

/* keeps_elements: elements are views of tensors that live as long as the dataset. */
static const flow_dataset_class class = {
  .name = "from_tensor_slices", .dataset_bytes = sizeof(slices), .cursor_bytes = sizeof(slices_cursor),
  .next = next, .skip = skip, .release = release,
  .keeps_elements = 1,
};

/* Offsets are a caller's: each has to be within the bytes and not before the one before it. */
static flow_status check_texts(int i, const flow_tensor *bytes, const flow_tensor *offsets)
{
  FLOW_TRY(flow_check_on_host("from_tensor_slices", offsets));
  if (bytes->dtype != FLOW_UINT8 || bytes->rank != 1 || offsets->dtype != FLOW_INT64 || offsets->rank != 1 || offsets->shape[0] < 1 ||
      !flow_tensor_is_contiguous(bytes) || !flow_tensor_is_contiguous(offsets)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "from_tensor_slices: component %d: texts are uint8 {bytes} with int64 offsets {texts + 1}",
                     i + 1);
  }
  const int64_t *at = (const int64_t *)offsets->data;
  int64_t before = 0;
  for (int64_t k = 0; k < offsets->shape[0]; k++) {
    if (at[k] < before || at[k] > bytes->shape[0]) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "from_tensor_slices: component %d: offset %lld of text %lld is outside of %lld to %lld",
                       i + 1, (long long)at[k], (long long)k + 1, (long long)before, (long long)bytes->shape[0]);
    }
    before = at[k];
  }
  return FLOW_OK;
}

/* Texts come as one block of bytes with offsets, so that a million short ones are two tensors. All components must have the same number
 * of rows. */
static flow_status add_component(slices *self, int i, flow_tensor *component, flow_tensor *offsets)
{
  FLOW_TRY(flow_check_on_host("from_tensor_slices", component));
  if (component->rank == 0)
    return flow_fail(FLOW_INVALID_ARGUMENT, "from_tensor_slices: component %d is a single number; rows are needed", i + 1);
  if (offsets) FLOW_TRY(check_texts(i, component, offsets));
  int64_t rows = offsets ? offsets->shape[0] - 1 : component->shape[0];
  if (i > 0 && rows != self->base.cardinality) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "from_tensor_slices: component %d has %lld rows, the ones before have %lld", i + 1,
                     (long long)rows, (long long)self->base.cardinality);
  }
  self->components[i] = flow_tensor_retain(component);
  self->offsets[i] = flow_tensor_retain(offsets);
  self->base.cardinality = rows;
  flow_component *c = &self->base.spec.components[self->base.spec.count++];
  if (offsets) {
    *c = (flow_component){ .dtype = FLOW_UINT8, .rank = 1, .text = 1, .shape = { -1 } };
  } else {
    *c = (flow_component){ .dtype = component->dtype, .rank = component->rank - 1 };
    memcpy(c->shape, component->shape + 1, sizeof *c->shape * (size_t)c->rank);
  }
  return FLOW_OK;
}

/* Takes references to the tensors, which are on the host and have one number of rows. offsets[i] is not NULL where component i is texts;
 * offsets NULL: none is. The identity knows the number of rows alone: tensors have no identity but their values, which are not read
 * here. */
flow_status flow_dataset_from_slices(flow_tensor *const *components, flow_tensor *const *offsets, int count, flow_dataset **out)
{
  FLOW_NEED(out);
  if (count > 0) FLOW_NEED(components);
  *out = NULL;
  if (count < 1 || count > FLOW_MAX_COMPONENTS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "from_tensor_slices: an element has 1 to %d components, got %d", FLOW_MAX_COMPONENTS, count);
  flow_dataset *dataset;
  FLOW_TRY(flow_dataset_new(&class, NULL, 0, &dataset));
  for (int i = 0; i < count; i++) {
    flow_status status = add_component((slices *)dataset, i, components[i], offsets ? offsets[i] : NULL);
    if (status != FLOW_OK) {
      flow_dataset_release(dataset);
      return status;
    }
  }
  flow_dataset_identify(dataset, (uint64_t)dataset->cardinality);
  *out = dataset;
  return FLOW_OK;
}
