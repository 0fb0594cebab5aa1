/* transform.c: elements that the caller makes of those of inputs, one at a time, with its own state for each pass: windows, groups,
 * running sums. The caller says which input it wants to see next, so that a pass reads no further than it has to; inputs are stages of the
 * same pass, so that positions hold what they draw.
 *
 * A question to callback number `callback` has an element of the input that was wanted, or none: at the beginning, at that input's end, or
 * because none was wanted. The answer is an element or none (count 0), and `callback` in it says what comes next: 0: ask again, n: an
 * element of input n, from 1; -1: this was the end. */
#include "data/sources/generator.h"
#include "base/need.h"

typedef struct transform { flow_dataset base; int callback; } transform;
typedef struct transform_cursor { flow_cursor base; int64_t pass; int wanted; } transform_cursor;

enum { END = -1 };

/* The pass has a number, by which the caller finds its state. */
static flow_status open(flow_cursor *cursor)
{
  ((transform_cursor *)cursor)->pass = flow_next_pass(cursor->iterator);
  return flow_cursor_open_all(cursor);
}

/* One question; *out is empty where nothing came of it. */
static flow_status ask(transform_cursor *at, flow_element *out)
{
  flow_element element = { 0 };
  if (at->wanted > at->base.dataset->input_count) {
    return flow_fail(FLOW_INVALID_ARGUMENT, "transform: input %d is wanted, there are %d", at->wanted, at->base.dataset->input_count);
  }
  if (at->wanted > 0) FLOW_TRY(flow_cursor_pull(at->base.inputs[at->wanted - 1], &element));
  flow_status status = flow_ask(at->base.iterator, ((transform *)at->base.dataset)->callback, at->pass,
                                element.count > 0 ? &element : NULL, out, NULL);
  flow_element_clear(&element);
  if (status == FLOW_OK) at->wanted = out->callback;
  return status;
}

/* Questions until an element comes or the caller ends the pass. What the caller made is checked against the signature. */
static flow_status next(flow_cursor *cursor, flow_element *out)
{
  transform_cursor *at = (transform_cursor *)cursor;
  while (out->count == 0 && at->wanted != END) FLOW_TRY(ask(at, out));
  return out->count > 0 ? flow_element_check("transform", &cursor->dataset->spec, out) : FLOW_OK;
}

static const flow_dataset_class class = {
  .name = "transform", .dataset_bytes = sizeof(transform), .cursor_bytes = sizeof(transform_cursor), .open = open, .next = next,
};

/* components: the signature of what the caller makes; cardinality: a number, FLOW_INFINITE or FLOW_UNKNOWN. */
flow_status flow_dataset_transform(flow_dataset *const *inputs, int input_count, int callback, const flow_component *components, int count,
                                   double cardinality, flow_dataset **out)
{
  FLOW_NEED(out);
  if (input_count > 0) FLOW_NEED(inputs);
  if (count > 0) FLOW_NEED(components);
  flow_element_spec spec;
  int64_t elements;
  *out = NULL;
  FLOW_TRY(flow_spec_of("transform", components, count, &spec));
  FLOW_TRY(flow_check_whole("transform", "cardinality", cardinality, FLOW_UNKNOWN, &elements));
  FLOW_TRY(flow_dataset_new(&class, inputs, input_count, out));
  transform *self = (transform *)*out;
  self->callback = callback;
  self->base.calls_back = 1;
  self->base.cardinality = elements;
  self->base.batch_rows = 0;
  self->base.spec = spec;
  flow_dataset_identify(*out, (uint64_t)count);
  return FLOW_OK;
}
