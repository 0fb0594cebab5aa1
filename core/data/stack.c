/* stack.c: see stack.h.
 *
 * The first row makes the batch's tensors, or takes the memory that was offered (batch_slots.h); each further row is checked against the
 * first one and copied. A failure empties the stack: rows before it are lost with it, since a batch without one of its rows would be
 * wrong.
 *
 * Rows of numbers are copied when they come; rows of texts are kept (`kept`) until the last one is there, since the longest decides the
 * size. A stack is used by one thread at a time, that of the stage which owns it. */
#include "data/stack.h"

#include <string.h>

enum { FIRST_ROWS = 4096 };      /* a larger batch grows as its rows come: there may be fewer */

/* *spec: of the rows on entry, of the batches afterwards. */
flow_status flow_stack_spec(const char *what, flow_element_spec *spec, int64_t rows)
{
  for (int i = 0; i < spec->count; i++) {
    flow_component *c = &spec->components[i];
    if (c->rank == FLOW_MAX_RANK)
      return flow_fail(FLOW_UNSUPPORTED, "%s: component %d has %d dimensions already, a batch would have more than %d", what, i + 1,
                       c->rank, FLOW_MAX_RANK);
    memmove(c->shape + 1, c->shape, sizeof *c->shape * (size_t)c->rank);
    c->shape[0] = rows;
    c->rank++;
  }
  return FLOW_OK;
}

/* Of one row of a batch. */
static size_t row_bytes(const flow_tensor *batch)
{
  return (size_t)flow_shape_size(batch->rank - 1, batch->shape + 1) * (size_t)flow_dtype_size(batch->dtype);
}

/* Room for `rows` rows like this one, not filled. */
static flow_status batch_tensor(const flow_tensor *row, int64_t rows, flow_tensor **out)
{
  int64_t shape[FLOW_MAX_RANK];
  if (row->rank == FLOW_MAX_RANK) return flow_fail(FLOW_UNSUPPORTED, "a batch of tensors of %d dimensions has too many", row->rank);
  shape[0] = rows;
  memcpy(shape + 1, row->shape, sizeof *shape * (size_t)row->rank);
  return flow_tensor_new_uninitialized(row->dtype, row->rank + 1, shape, out);
}

/* Capacity doubles up to `most`; rows so far are copied. Slots are offered only for batches that never grow
 * (FIRST_ROWS), so that no row that is being written moves. */
static flow_status grow(flow_stack *stack, int64_t capacity)
{
  for (int i = 0; i < stack->count; i++) {
    flow_tensor *old = stack->tensors[i], *larger;
    int64_t shape[FLOW_MAX_RANK];
    if (!old) continue;
    memcpy(shape, old->shape, sizeof shape);
    shape[0] = capacity;
    FLOW_TRY(flow_tensor_new_uninitialized(old->dtype, old->rank, shape, &larger));
    memcpy(larger->data, old->data, row_bytes(old) * (size_t)stack->rows);
    flow_tensor_release(old);
    stack->tensors[i] = larger;
  }
  stack->capacity = capacity;
  return FLOW_OK;
}

/* The first row of a batch decides shapes. */
static flow_status begin(flow_stack *stack, const flow_element_spec *rows, int64_t most, const flow_element *element)
{
  stack->count = element->count;
  stack->most = most;
  stack->capacity = most < FIRST_ROWS ? most : FIRST_ROWS;
  if (stack->slots) flow_batch_slots_batch(stack->slots, stack->tensors);
  for (int i = 0; i < element->count; i++) {
    if (!stack->tensors[i] && !rows->components[i].text) FLOW_TRY(batch_tensor(element->tensors[i], stack->capacity, &stack->tensors[i]));
  }
  return FLOW_OK;
}

/* A row of the batch, as a tensor on the stack of the caller, for copies from strided rows. */
static void view_row(flow_tensor *batch, int64_t row, flow_tensor *view)
{
  *view = (flow_tensor){ .magic = FLOW_TENSOR_MAGIC, .dtype = batch->dtype, .rank = batch->rank - 1, .storage = batch->storage,
                         .data = batch->data + (size_t)row * row_bytes(batch) };
  memcpy(view->shape, batch->shape + 1, sizeof *view->shape * (size_t)view->rank);
  memcpy(view->strides, batch->strides + 1, sizeof *view->strides * (size_t)view->rank);
}

/* A row that was written in its slot has the batch's address and is not copied. */
static flow_status copy_row(flow_tensor *batch, int64_t row, const flow_tensor *from, int component)
{
  if (from->dtype != batch->dtype || !flow_shape_equal(from->rank, from->shape, batch->rank - 1, batch->shape + 1)) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "batch: component %d of an element has shape %s, of the ones before %s: resize them, or use "
                     "padded_batch", component + 1, flow_shape_text(from->rank, from->shape),
                     flow_shape_text(batch->rank - 1, batch->shape + 1));
  }
  if (flow_tensor_is_contiguous(from)) {
    size_t bytes = row_bytes(batch);
    char *to = batch->data + (size_t)row * bytes;
    if (bytes && to != from->data) memcpy(to, from->data, bytes);      /* the same: written in its place */
    return FLOW_OK;
  }
  flow_tensor view;
  view_row(batch, row, &view);
  return flow_tensor_copy(&view, from);
}

/* A component without a tensor (text) keeps its elements until the batch is finished. */
static flow_status add(flow_stack *stack, const flow_element_spec *rows, int64_t most, flow_element *element)
{
  int keeps = 0;
  if (stack->rows == 0) FLOW_TRY(begin(stack, rows, most, element));
  if (stack->rows == stack->capacity) FLOW_TRY(grow(stack, stack->capacity > stack->most / 2 ? stack->most : stack->capacity * 2));
  for (int i = 0; i < stack->count; i++) {
    if (stack->tensors[i]) FLOW_TRY(copy_row(stack->tensors[i], stack->rows, element->tensors[i], i));
    else keeps = 1;
  }
  if (keeps) {
    FLOW_TRY(flow_grow(&stack->kept, sizeof *stack->kept, (int)stack->rows + 1, &stack->kept_capacity));
    flow_element_move(&stack->kept[stack->rows], element);
  }
  stack->rows++;
  return FLOW_OK;
}

/* rows: the signature of the rows; most: rows of a whole batch, the same in each call for one batch. */
flow_status flow_stack_add(flow_stack *stack, const flow_element_spec *rows, int64_t most, flow_element *element)
{
  flow_status status = add(stack, rows, most, element);
  flow_element_clear(element);
  if (status != FLOW_OK) flow_stack_clear(stack);
  return status;
}

/* Copies strings of `width` bytes each, without gaps, to where they have `longest` bytes each. */
static void spread(const char *from, int64_t strings, int64_t width, char *to, int64_t longest)
{
  for (int64_t k = 0; k < strings && width > 0; k++) memcpy(to + k * longest, from + k * width, (size_t)width);
}

/* Texts of component i as uint8 {rows, ..., longest}, padded with zeros, which therefore cannot be at a text's end. */
static flow_status pad_texts(const flow_stack *stack, int i, flow_tensor **out)
{
  const flow_tensor *first = stack->kept[0].tensors[i];
  int64_t shape[FLOW_MAX_RANK] = { stack->rows }, longest = 0;
  if (first->rank == FLOW_MAX_RANK) return flow_fail(FLOW_UNSUPPORTED, "a batch of strings of %d dimensions has too many", first->rank);
  memcpy(shape + 1, first->shape, sizeof *shape * (size_t)first->rank);
  for (int64_t row = 0; row < stack->rows; row++) {
    const flow_tensor *text = stack->kept[row].tensors[i];
    int64_t width = text->rank > 0 ? text->shape[text->rank - 1] : 0;
    if (!flow_shape_equal(text->rank - 1, text->shape, first->rank - 1, first->shape)) {
      return flow_fail(FLOW_INVALID_ARGUMENT, "batch: component %d of an element has strings of shape %s, of the ones before %s", i + 1,
                       flow_shape_text(text->rank - 1, text->shape), flow_shape_text(first->rank - 1, first->shape));
    }
    if (width > longest) longest = width;
    if (text->rank == 1 && width > 0 && text->data[(width - 1) * text->strides[0]] == 0)
      return flow_fail(FLOW_UNSUPPORTED, "batch: a text of component %d ends with a zero byte; parse binary records before they are "
                       "batched", i + 1);
  }
  shape[first->rank] = longest;
  FLOW_TRY(flow_tensor_new(FLOW_UINT8, first->rank + 1, shape, out));
  int64_t strings = flow_shape_size(first->rank - 1, first->shape);
  for (int64_t row = 0; row < stack->rows; row++) {
    flow_tensor *text;
    flow_status status = flow_tensor_contiguous(stack->kept[row].tensors[i], &text);
    if (status != FLOW_OK) {
      flow_tensor_release(*out);
      *out = NULL;
      return status;
    }
    spread(text->data, strings, text->shape[text->rank - 1], (*out)->data + row * strings * longest, longest);
    flow_tensor_release(text);
  }
  return FLOW_OK;
}

/* The tensor's first rows: itself, if these are all. */
static flow_status shorten(flow_tensor *batch, int64_t rows, flow_tensor **out)
{
  if (batch->shape[0] == rows) {
    *out = flow_tensor_retain(batch);
    return FLOW_OK;
  }
  int64_t shape[FLOW_MAX_RANK];
  memcpy(shape, batch->shape, sizeof shape);
  shape[0] = rows;
  return flow_tensor_view(batch, batch->rank, shape, batch->strides, 0, out);
}

/* The rows become *out, and the stack is empty again, also after a failure. */
flow_status flow_stack_finish(flow_stack *stack, flow_element *out)
{
  flow_status status = FLOW_OK;
  for (int i = 0; i < stack->count && status == FLOW_OK; i++) {
    status = stack->tensors[i] ? shorten(stack->tensors[i], stack->rows, &out->tensors[i]) : pad_texts(stack, i, &out->tensors[i]);
    if (status == FLOW_OK) out->count = i + 1;
  }
  flow_stack_clear(stack);
  if (status != FLOW_OK) flow_element_clear(out);
  return status;
}

/* Slots that the rows asked for are the stage's to report as lost. */
void flow_stack_clear(flow_stack *stack)
{
  for (int i = 0; i < stack->count; i++) {
    flow_tensor_release(stack->tensors[i]);
    stack->tensors[i] = NULL;
  }
  for (int64_t row = 0; stack->kept && row < stack->rows; row++) flow_element_clear(&stack->kept[row]);
  stack->rows = 0;
  stack->count = 0;
}

/* input->batch_slots is then asked by the input's threads, which are joined before flow_stack_release frees the slots:
 * the input's cursor is closed first by its stage. */
flow_status flow_stack_offer_slots(flow_stack *stack, flow_cursor *input, int64_t size)
{
  if (size > FIRST_ROWS) return FLOW_OK;
  FLOW_TRY(flow_batch_slots_new(&input->dataset->spec, size, &stack->slots));
  input->batch_slots = stack->slots;
  return FLOW_OK;
}

void flow_stack_release(flow_stack *stack)
{
  flow_stack_clear(stack);
  flow_batch_slots_free(stack->slots);
  flow_free(stack->kept);
  *stack = (flow_stack){ 0 };
}
