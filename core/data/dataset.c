/* dataset.c: life of datasets, elements and cursors, and the checks of their signatures. See dataset.h.
 *
 * Datasets are counted by any thread. A cursor belongs to the thread that runs its stage; it opens, pulls from and closes the cursors of
 * its inputs. An element with count < 0 is a question to Lua (generator.h): its argument has -1 - count components.
 *
 * A pass is a tree of cursors in the shape of the tree of datasets. Memory of a stage is one block for the dataset (parameters) and one
 * for each cursor (state), whose sizes its class names; both begin as zeros. */
#include "data/iterator.h"

#include <string.h>

#include "base/thread_texts.h"

/* ---- datasets -------------------------------------------------------------------------------------------------------- */

/* The name of a class as a number, for identities. */
static uint64_t identify_text(const char *text)
{
  uint64_t key = 0;
  for (; *text; text++) key = flow_mix(key, (unsigned char)*text);
  return key;
}

/* What a stage inherits from its inputs: from the first one signature, cardinality, rows of a batch and options, which the caller then
 * changes; from all whether they call Lua, draw random numbers or hint at shards, and what identifies them. */
flow_status flow_dataset_new(const flow_dataset_class *class, flow_dataset *const *inputs, int count, flow_dataset **out)
{
  void *block, *list = NULL;
  for (int i = 0; i < count; i++) FLOW_TRY(flow_check_dataset(class->name, inputs[i]));
  FLOW_TRY(flow_alloc_zero(class->dataset_bytes, &block));
  if (count > 0 && flow_alloc(sizeof *inputs * (size_t)count, &list) != FLOW_OK) {
    flow_free(block);
    return FLOW_OUT_OF_MEMORY;
  }
  flow_dataset *dataset = block;
  dataset->class = class;
  atomic_init(&dataset->references, 1);
  dataset->inputs = list;
  dataset->input_count = count;
  dataset->stage_count = 1;
  dataset->identity = identify_text(class->name);
  dataset->options = (flow_data_options){ .deterministic = 1 };
  if (count > 0) {
    dataset->spec = inputs[0]->spec;
    dataset->cardinality = inputs[0]->cardinality;
    dataset->batch_rows = inputs[0]->batch_rows;
    dataset->options = inputs[0]->options;
  }
  for (int i = 0; i < count; i++) {
    dataset->inputs[i] = flow_dataset_retain(inputs[i]);
    dataset->calls_back |= inputs[i]->calls_back;
    dataset->shard_hint |= inputs[i]->shard_hint;
    dataset->any_random |= inputs[i]->any_random;
    dataset->identity = flow_mix(dataset->identity, inputs[i]->identity);
    dataset->stage_count += inputs[i]->stage_count;
    if (dataset->stage_count > FLOW_MAX_STAGES) dataset->stage_count = FLOW_MAX_STAGES;
  }
  *out = dataset;
  return FLOW_OK;
}

/* NULL is fine. */
flow_dataset *flow_dataset_retain(flow_dataset *dataset)
{
  if (dataset) atomic_fetch_add_explicit(&dataset->references, 1, memory_order_relaxed);
  return dataset;
}

/* Long chains of stages are released in a loop, not by recursion into the first input. */
void flow_dataset_release(flow_dataset *dataset)
{
  while (dataset) {
    if (atomic_fetch_sub_explicit(&dataset->references, 1, memory_order_acq_rel) > 1) return;
    flow_dataset *first = dataset->input_count > 0 ? dataset->inputs[0] : NULL;
    if (dataset->original) flow_dataset_release(dataset->original);
    else if (dataset->class->release) dataset->class->release(dataset);
    for (int i = 1; i < dataset->input_count; i++) flow_dataset_release(dataset->inputs[i]);
    flow_free(dataset->inputs);
    flow_free(dataset);
    dataset = first;
  }
}

/* The message asks for a dataset, since a caller of Lua may have passed something else. */
flow_status flow_check_dataset(const char *what, const flow_dataset *dataset)
{
  if (!dataset) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: a dataset is needed", what);
  return FLOW_OK;
}

/* The order of calls counts: constructors mix their parameters in a fixed order. */
void flow_dataset_identify(flow_dataset *dataset, uint64_t parameter)
{
  dataset->identity = flow_mix(dataset->identity, parameter);
}

/* Seeds are whole numbers as Lua has them, also negative ones, of which the bits count. */
void flow_dataset_set_random(flow_dataset *dataset, double seed, double seed2)
{
  dataset->random = dataset->any_random = 1;
  dataset->seed[0] = (uint64_t)(int64_t)seed;
  dataset->seed[1] = (uint64_t)(int64_t)seed2;
}

/* ---- elements ---------------------------------------------------------------------------------------------------------- */

/* Also a question's argument. The element may be used again at once. */
void flow_element_clear(flow_element *element)
{
  if (!element) return;
  int count = element->count < 0 ? -1 - element->count : element->count;
  for (int i = 0; i < count; i++) flow_tensor_release(element->tensors[i]);
  element->count = 0;
  element->numbers = 0;
}

/* `to` is overwritten, not cleared; no reference is counted. */
void flow_element_move(flow_element *to, flow_element *from)
{
  *to = *from;
  from->count = 0;
  from->numbers = 0;
}

/* `to` is overwritten, not cleared. */
void flow_element_share(flow_element *to, const flow_element *from)
{
  *to = *from;
  for (int i = 0; i < to->count; i++) flow_tensor_retain(to->tensors[i]);
}

/* For messages: whether it is a text is not known of a tensor. */
static flow_component component_of(const flow_tensor *tensor)
{
  flow_component component = { .dtype = tensor->dtype, .rank = tensor->rank };
  memcpy(component.shape, tensor->shape, sizeof component.shape);
  return component;
}

/* For messages, in a slot of the thread. */
const char *flow_component_text(const flow_component *component)
{
  char *buffer = flow_text_slot();
  flow_text text = flow_text_into(buffer, FLOW_SLOT_SIZE);
  if (component->text && component->rank == 1) {
    flow_text_add(&text, "text");
  } else {
    flow_text_add(&text, "%s ", component->text ? "texts" : flow_dtype_name(component->dtype));
    flow_text_add_shape(&text, component->rank, component->shape);
  }
  return buffer;
}

/* Sizes of -1 in the signature fit any. */
static int component_fits(const flow_component *component, const flow_tensor *tensor)
{
  if (tensor->dtype != component->dtype || tensor->rank != component->rank) return 0;
  for (int axis = 0; axis < component->rank; axis++) {
    if (component->shape[axis] >= 0 && tensor->shape[axis] != component->shape[axis]) return 0;
  }
  return 1;
}

/* The message names the first component that differs, and hints at the signature where only sizes do. */
flow_status flow_element_check(const char *what, const flow_element_spec *spec, const flow_element *element)
{
  if (element->count != spec->count) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: an element has %d components, expected %d", what, element->count, spec->count);
  }
  for (int i = 0; i < spec->count; i++) {
    FLOW_TRY(flow_check_on_host(what, element->tensors[i]));
    if (component_fits(&spec->components[i], element->tensors[i])) continue;
    flow_component found = component_of(element->tensors[i]), wanted = spec->components[i];
    int other_size = found.dtype == wanted.dtype && found.rank == wanted.rank;
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: component %d of an element is %s, expected %s%s", what, i + 1, flow_component_text(&found),
                     flow_component_text(&wanted), other_size ? "; sizes that differ are -1 in the output_signature" : "");
  }
  return FLOW_OK;
}

/* For components that come from a file or a caller: numbers that no code has checked yet. */
int flow_component_is_valid(const flow_component *component)
{
  if (!flow_dtype_name(component->dtype) || component->rank < 0 || component->rank > FLOW_MAX_RANK) return 0;
  return !component->text || (component->dtype == FLOW_UINT8 && component->rank > 0);
}

/* Shapes are not checked here: sizes of -1 fit any, others are compared with each element. */
flow_status flow_spec_of(const char *what, const flow_component *components, int count, flow_element_spec *out)
{
  if (count < 1 || count > FLOW_MAX_COMPONENTS)
    return flow_fail(FLOW_INVALID_ARGUMENT, "%s: an element has 1 to %d components, got %d", what, FLOW_MAX_COMPONENTS, count);
  out->count = count;
  for (int i = 0; i < count; i++) {
    const flow_component *c = &components[i];
    if (!flow_component_is_valid(c))
      return flow_fail(FLOW_INVALID_ARGUMENT, "%s: component %d is %s of dtype %d and rank %d", what, i + 1,
                       c->text ? "a text" : "a tensor", c->dtype, c->rank);
    out->components[i] = *c;
  }
  return FLOW_OK;
}

/* Exactly: a size of -1 equals only another -1. */
int flow_spec_equal(const flow_element_spec *a, const flow_element_spec *b)
{
  if (a->count != b->count) return 0;
  for (int i = 0; i < a->count; i++) {
    const flow_component *p = &a->components[i], *q = &b->components[i];
    if (p->dtype != q->dtype || p->text != q->text || !flow_shape_equal(p->rank, p->shape, q->rank, q->shape)) return 0;
  }
  return 1;
}

/* A size that differs becomes -1. 0: what cannot be joined, and *into is then of no use. */
int flow_spec_join(flow_element_spec *into, const flow_element_spec *other)
{
  if (into->count != other->count) return 0;
  for (int i = 0; i < into->count; i++) {
    flow_component *p = &into->components[i];
    const flow_component *q = &other->components[i];
    if (p->dtype != q->dtype || p->text != q->text || p->rank != q->rank) return 0;
    for (int axis = 0; axis < p->rank; axis++) {
      if (p->shape[axis] != q->shape[axis]) p->shape[axis] = -1;
    }
  }
  return 1;
}

/* The bytes are copied; text may be NULL where length is 0. */
flow_status flow_text_tensor(const char *text, size_t length, flow_tensor **out)
{
  int64_t bytes = (int64_t)length;
  FLOW_TRY(flow_tensor_new_uninitialized(FLOW_UINT8, 1, &bytes, out));
  if (length > 0) memcpy((*out)->data, text, length);
  return FLOW_OK;
}

/* ---- cursors -------------------------------------------------------------------------------------------------------------- */

/* position: the stage's place in the iterator's list of counters, -1 for a dataset that a function made on the way. After a failed open
 * the cursor is closed, which every class's close() allows. */
static flow_status cursor_new(flow_iterator *iterator, flow_dataset *dataset, int owns, int position, flow_cursor **out)
{
  void *block, *inputs = NULL;
  *out = NULL;
  FLOW_TRY(flow_alloc_zero(dataset->class->cursor_bytes, &block));
  if (dataset->input_count > 0 && flow_alloc_zero(sizeof *out * (size_t)dataset->input_count, &inputs) != FLOW_OK) {
    flow_free(block);
    return FLOW_OUT_OF_MEMORY;
  }
  flow_cursor *cursor = block;
  cursor->dataset = owns ? flow_dataset_retain(dataset) : dataset;
  cursor->owns = owns;
  cursor->iterator = iterator;
  cursor->inputs = inputs;
  cursor->counters = position >= 0 && position < iterator->stage_count ? &iterator->stages[position] : NULL;
  cursor->position = cursor->counters ? position : -1;
  flow_status status = dataset->class->open ? dataset->class->open(cursor) : flow_cursor_open_all(cursor);
  if (status != FLOW_OK) {
    flow_cursor_close(cursor);
    return status;
  }
  *out = cursor;
  return FLOW_OK;
}

flow_status flow_cursor_new(flow_iterator *iterator, flow_dataset *dataset, int owns, flow_cursor **out)
{
  return cursor_new(iterator, dataset, owns, owns ? -1 : 0, out);
}

/* The stage's own close first: its threads may still pull from the inputs. */
void flow_cursor_close(flow_cursor *cursor)
{
  if (!cursor) return;
  flow_dataset *dataset = cursor->dataset;
  if (dataset->class->close) dataset->class->close(cursor);
  for (int i = 0; i < dataset->input_count; i++) flow_cursor_close(cursor->inputs[i]);
  if (cursor->owns) flow_dataset_release(dataset);
  flow_free(cursor->inputs);
  flow_free(cursor);
}

/* After a failure the input is not open; flow_cursor_close allows that. */
flow_status flow_cursor_open(flow_cursor *cursor, int index)
{
  flow_cursor_close(cursor->inputs[index]);
  cursor->inputs[index] = NULL;
  int position = cursor->position < 0 ? -1 : cursor->position + 1;      /* inputs come after their stage, each with its own */
  for (int i = 0; i < index && position >= 0; i++) position += cursor->dataset->inputs[i]->stage_count;
  return cursor_new(cursor->iterator, cursor->dataset->inputs[index], 0, position, &cursor->inputs[index]);
}

/* Stops at the first failure; those that are open are closed with the cursor. */
flow_status flow_cursor_open_all(flow_cursor *cursor)
{
  for (int i = 0; i < cursor->dataset->input_count; i++) FLOW_TRY(flow_cursor_open(cursor, i));
  return FLOW_OK;
}

/* Components that next() left in an element that failed are released here, so that no caller has to think of them. The clock is read only
 * where there are counters. The time of a stage includes that of its inputs on the same thread. */
flow_status flow_cursor_pull(flow_cursor *cursor, flow_element *out)
{
  flow_stage_counters *counters = cursor->counters;
  flow_element_clear(out);
  double started = counters ? flow_clock() : 0;
  flow_status status = cursor->dataset->class->next(cursor, out);
  if (status != FLOW_OK) flow_element_clear(out);
  if (!counters) return status;
  flow_count(&counters->nanoseconds, (int64_t)((flow_clock() - started) * 1e9));
  flow_count(&counters->elements, out->count > 0);
  return status;
}

flow_status flow_cursor_skip(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  *skipped = 0;
  if (count <= 0) return FLOW_OK;
  if (cursor->dataset->class->skip) return cursor->dataset->class->skip(cursor, count, skipped);
  return flow_cursor_skip_by_pulling(cursor, count, skipped);
}

/* For stages whose elements have to be made to know how many there are. After a failure *skipped is what was passed over
 * before it. */
flow_status flow_cursor_skip_by_pulling(flow_cursor *cursor, int64_t count, int64_t *skipped)
{
  flow_element element = { 0 };
  flow_status status = FLOW_OK;
  while (*skipped < count) {
    status = cursor->dataset->class->next(cursor, &element);
    int made = status == FLOW_OK && element.count > 0;
    flow_element_clear(&element); /* after a failure it may have components */
    if (!made) break;
    ++*skipped;
  }
  return status;
}
