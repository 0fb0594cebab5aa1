/* recurrent_steps.c: see recurrent_steps.h.
 *
 * The same step runs in three ways that give the same bits: in a trace as the body of one loop of the plan (run_loop), in a trace with
 * unroll = true as ops of their own for each step, and outside of a trace at once (run_each both). A loop goes over rows of its inputs,
 * so sequences are turned to {steps, n, ...} before it and back after it. Going backwards does not turn the input round: steps are taken
 * from the end, and what they give is written to the place of their step, so that sequences are in the input's order until
 * flow_steps_end. */
#include "layers/recurrent_steps.h"

#include <string.h>

#include "autodiff/apply.h"
#include "graph/loop.h"
#include "graph/variable.h"
#include "tensor/tensor.h"
#include "layers/policy.h"

/* ---- parts ----------------------------------------------------------------------------------------------------------------------- */

/* The op cuts ends beyond an axis, so INT64_MAX / 2 takes all of it, also where its size is not known. */
flow_tensor *flow_steps_slice(flow_expression *e, flow_tensor *x, int axis, int64_t begin, int64_t end)
{
  if (e->status != FLOW_OK || !x) return NULL;
  flow_attributes attributes = { .slice = { .rank = x->rank } };
  if (axis < 0) axis += x->rank;
  for (int i = 0; i < x->rank; i++) {
    attributes.slice.begin[i] = i == axis ? begin : 0;
    attributes.slice.end[i] = i == axis ? end : INT64_MAX / 2;
    attributes.slice.step[i] = 1;
  }
  return flow_express(e, FLOW_OP_slice, x, NULL, NULL, &attributes);
}

/* t is below the size of `axis`, which may not count from the end here. */
flow_tensor *flow_steps_at(flow_expression *e, flow_tensor *x, int axis, int64_t t)
{
  int64_t dims[FLOW_MAX_RANK];
  int rank = 0;
  flow_tensor *part = flow_steps_slice(e, x, axis, t, t + 1);
  if (!part) return NULL;
  for (int i = 0; i < part->rank; i++)
    if (i != axis) dims[rank++] = part->shape[i];
  return flow_express_reshape(e, part, rank, dims);
}

flow_tensor *flow_steps_swapped(flow_expression *e, flow_tensor *x)
{
  if (e->status != FLOW_OK || !x) return NULL;
  flow_attributes attributes = { .transpose = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) attributes.transpose.axes[i] = i < 2 ? 1 - i : i;
  return flow_express(e, FLOW_OP_transpose, x, NULL, NULL, &attributes);
}

/* {n, steps, ...} with the steps in the other order: by gather, which takes rows, so that the steps are brought to the front and back. */
static flow_tensor *flip(flow_expression *e, flow_tensor *x)
{
  if (e->status != FLOW_OK || x->shape[1] < 2) return x;
  int64_t steps = x->shape[1];
  flow_tensor *order = NULL;
  flow_status status = flow_tensor_new(FLOW_INT64, 1, &steps, &order);
  for (int64_t i = 0; status == FLOW_OK && i < steps; i++) ((int64_t *)flow_tensor_elements(order))[i] = steps - 1 - i;
  order = flow_express_keep(e, status, order);
  flow_tensor *by_steps = flow_steps_swapped(e, x);
  return order ? flow_steps_swapped(e, flow_express(e, FLOW_OP_gather, by_steps, order, NULL, NULL)) : NULL;
}

/* A mask {n, ...} with axes for those of a tensor of this rank. */
static flow_tensor *widen(flow_expression *e, flow_tensor *mask, int rank)
{
  int64_t dims[FLOW_MAX_RANK];
  if (e->status != FLOW_OK) return NULL;
  for (int i = 0; i < rank; i++) dims[i] = i < mask->rank ? mask->shape[i] : 1;
  return flow_express_reshape(e, mask, rank, dims);
}

/* ---- dropout --------------------------------------------------------------------------------------------------------------------- */

/* Layers check that rates are numbers; ones outside of 0 to 1 drop nothing. */
double flow_steps_rate(const flow_layer *layer, const char *name)
{
  double rate = flow_argument_number(layer->arguments, name);
  return rate > 0 && rate < 1 ? rate : 0;
}

flow_tensor *flow_steps_dropout(flow_expression *e, flow_layer_draws draws, flow_tensor *x, double rate, int index)
{
  flow_attributes dropout = flow_draws_dropout(draws, rate);
  dropout.dropout.stream += (uint64_t)index;
  if (e->status != FLOW_OK) return NULL;
  flow_tensor *ones = flow_express_broadcast_like(e, flow_express_number(e, x, 1), x);
  return flow_express(e, FLOW_OP_dropout, ones, NULL, NULL, &dropout);
}

/* ---- states that a layer keeps --------------------------------------------------------------------------------------------------- */

/* The number of rows is part of a stateful layer once it has states: setting them to zeros does not change it. */
static flow_status check_kept(const flow_layer *layer, int64_t rows)
{
  if (rows < 0)
    return flow_layer_fail(layer, "stateful = true keeps a state for each row of a batch, and the number of rows is not known here: give "
                           "the model's input a batch size, as in Input({ 10, 8 }, { batch_size = 32 }) for batches of {32, 10, 8}");
  if (layer->states[0] && layer->states[0]->tensor->shape[0] != rows)
    return flow_layer_fail(layer, "stateful = true: the batch has %lld rows, the states are those of %lld: give batches of %lld rows; of a "
                           "Dataset leave out the rest by batch(%lld, { drop_remainder = true })", (long long)rows,
                           (long long)layer->states[0]->tensor->shape[0], (long long)layer->states[0]->tensor->shape[0],
                           (long long)layer->states[0]->tensor->shape[0]);
  return FLOW_OK;
}

/* Makes those of a stateful layer, zeros, with its first call. */
static flow_status make_kept(flow_context *context, flow_layer *layer, int count, int rank, const int64_t *dims)
{
  for (int i = 0; i < count; i++) {
    flow_tensor *zeros, *placed = NULL;
    if (layer->states[i]) continue; /* also where an earlier call made the first one and had no memory for the second */
    FLOW_TRY(flow_tensor_new(flow_policy_variable_dtype(layer), rank, dims, &zeros));
    flow_status status = flow_tensor_at(zeros, flow_context_place(context), &placed);
    if (status == FLOW_OK) status = flow_variable_named(placed, 0, FLOW_MIRRORED, &layer->states[i], "%s/rnn_state", layer->name);
    flow_tensor_release(placed);
    flow_tensor_release(zeros);
    FLOW_TRY(status);
  }
  return FLOW_OK;
}

/* The layer's own, read. */
static void read_kept(flow_expression *e, flow_steps *s, int rank, const int64_t *dims, flow_tensor **states)
{
  const flow_graph *graph = flow_context_trace(e->context);
  if (e->status == FLOW_OK && graph && graph->replicas > 1)
    e->status = flow_layer_fail(s->layer, "stateful = true keeps a state for each row of a batch, which %d replicas share among them: "
                                "train on one device, or without stateful", graph->replicas);
  if (e->status == FLOW_OK) e->status = check_kept(s->layer, dims[0]);
  if (e->status == FLOW_OK) e->status = make_kept(e->context, s->layer, s->states, rank, dims);
  for (int i = 0; i < s->states && e->status == FLOW_OK; i++) states[i] = flow_express_variable(e, s->layer->states[i]);
  s->has_state = 1;
}

/* ---- a call ---------------------------------------------------------------------------------------------------------------------- */

flow_steps flow_steps_of_call(flow_expression *e, flow_layer *layer, const flow_named_call *call, int states)
{
  flow_tensor *x = call->inputs[0], *mask = call->inputs[1 + states];
  flow_steps s = { .layer = layer, .steps = x->shape[1], .states = states, .training = call->training };
  s.reverse = flow_argument_boolean(layer->arguments, "go_backwards");
  s.loops = s.steps > 1 && x->graph && !flow_argument_boolean(layer->arguments, "unroll");
  s.mask = mask ? flow_express_cast(e, mask, FLOW_BOOL) : NULL;
  return s;
}

flow_status flow_steps_check(const flow_layer *layer, const flow_tensor *x, const char *expected)
{
  if (x->shape[1] > 0 && x->shape[1] <= INT32_MAX) return FLOW_OK;
  return flow_layer_fail(layer, "input has shape %s, expected one step or more %s", flow_tensor_shape_text(x), expected);
}

/* States, in this order of preference: given ones, those that the layer keeps, zeros. They are in the dtype of `like`. */
void flow_steps_begin(flow_expression *e, flow_steps *s, flow_tensor *const *given, const flow_tensor *like, int rank, const int64_t *dims,
                      flow_tensor **states)
{
  flow_attributes filled = { .shape = { .rank = rank } };
  int keeps = flow_layer_state_count(s->layer) > 0;
  memcpy(filled.shape.dims, dims, sizeof *dims * (size_t)rank);
  if (e->status == FLOW_OK && keeps) read_kept(e, s, rank, dims, states);
  for (int i = 0; i < s->states && e->status == FLOW_OK; i++) {
    if (given[i]) {
      s->has_state = 1;
      states[i] = flow_express_cast(e, given[i], like->dtype);
    } else if (keeps) {
      states[i] = flow_express_cast(e, states[i], like->dtype);
    } else {
      states[i] = flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, like, 0), NULL, NULL, &filled);
    }
  }
}

/* What a step makes of states[], new references in next[]. mask: a bool for each row, or NULL. */
static flow_status make_step(flow_context *context, const flow_steps *s, flow_tensor *x, flow_tensor *mask, flow_tensor *const *states,
                             flow_tensor **next)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *changed[FLOW_STEPS_MOST_STATES];
  for (int i = 0; i < s->states; i++) changed[i] = states[i];
  s->step(&e, s, s->self, x, changed);
  if (mask && e.status == FLOW_OK) mask = widen(&e, mask, states[0]->rank);
  for (int i = 0; i < s->states && mask && e.status == FLOW_OK; i++) changed[i] = e_where(&e, mask, changed[i], states[i]);
  for (int i = 0; i < s->states; i++) next[i] = e.status == FLOW_OK ? flow_tensor_retain(changed[i]) : NULL;
  return flow_expression_end(&e);
}

/* In a trace: the steps as a loop of its plan. */
static flow_tensor *run_loop(flow_expression *e, const flow_steps *s, flow_tensor **states)
{
  enum { MOST = FLOW_STEPS_MOST_STATES + 2 };
  int count = s->states, rows = s->mask ? 2 : 1, written = 0;
  flow_tensor *given[2], *inner[MOST] = { NULL }, *next[MOST] = { NULL }, *made[MOST] = { NULL };
  given[0] = flow_steps_swapped(e, s->x);
  given[1] = flow_steps_swapped(e, s->mask);
  if (e->status == FLOW_OK) e->status = flow_loop_begin(e->context, states, count, given, rows, (double)s->steps, inner);
  if (e->status != FLOW_OK) return NULL;
  e->status = make_step(e->context, s, inner[count], inner[count + 1], inner, next);
  if (e->status != FLOW_OK) flow_trace_abort(e->context);
  if (next[0]) next[count] = flow_tensor_retain(next[0]);
  if (e->status == FLOW_OK) e->status = flow_loop_end(e->context, next, count + 1, (double)s->steps, s->reverse, made, &written);
  if (e->status == FLOW_OK && written) e->status = flow_layer_fail(s->layer, "a step writes variables");
  flow_tensors_release(inner, count + rows);
  flow_tensors_release(next, count + 1);
  for (int i = 0; i < count; i++) states[i] = flow_express_keep(e, e->status, made[i]);
  return flow_steps_swapped(e, flow_express_keep(e, e->status, made[count]));
}

/* With an axis for steps. */
static flow_status as_step(flow_context *context, flow_tensor *x, flow_tensor **out)
{
  flow_attributes attributes = { .shape = { .rank = x->rank + 1, .dims = { x->shape[0], 1 } } };
  for (int i = 1; i < x->rank; i++) attributes.shape.dims[i + 1] = x->shape[i];
  return flow_apply(context, FLOW_OP_reshape, &x, 1, &attributes, out);
}

/* More steps than this make a plan that takes minutes and gigabytes. */
enum { MOST_UNROLLED = 16384 };

/* Step by step; list: room for the outputs. */
static flow_tensor *run_each(flow_expression *e, const flow_steps *s, flow_tensor **states, flow_tensor **list)
{
  flow_tensor *next[FLOW_STEPS_MOST_STATES] = { NULL }, *current[FLOW_STEPS_MOST_STATES], *sequence = NULL;
  for (int i = 0; i < s->states; i++) current[i] = flow_tensor_retain(states[i]);
  for (int64_t done = 0; done < s->steps && e->status == FLOW_OK; done++) {
    int64_t t = s->reverse ? s->steps - 1 - done : done;
    flow_expression step = flow_expression_of(e->context);
    flow_tensor *mask = flow_steps_at(&step, s->mask, 1, t), *x = flow_steps_at(&step, s->x, 1, t);
    if (step.status == FLOW_OK) step.status = make_step(e->context, s, x, mask, current, next);
    e->status = flow_expression_end(&step);
    for (int i = 0; i < s->states && e->status == FLOW_OK; i++) {
      flow_tensor_release(current[i]);
      current[i] = next[i];
    }
    if (e->status == FLOW_OK) e->status = as_step(e->context, current[0], &list[t]);
  }
  if (e->status == FLOW_OK) {
    flow_status status = flow_apply(e->context, FLOW_OP_concat, list, (int)s->steps, &(flow_attributes){ .axis = { 1 } }, &sequence);
    sequence = flow_express_keep(e, status, sequence);
  }
  for (int i = 0; i < s->states; i++) states[i] = flow_express_keep(e, e->status, current[i]);
  return sequence;
}

/* A loop of the plan in a trace; outside, and with unroll = true, each step by itself. Both run the same function for a step, so both
 * give the same bits. */
flow_tensor *flow_steps_run(flow_expression *e, const flow_steps *s, flow_tensor **states)
{
  void *block;
  if (e->status != FLOW_OK) return NULL;
  if (s->loops) return run_loop(e, s, states);
  if (s->x->graph && s->steps > MOST_UNROLLED)
    e->status = flow_layer_fail(s->layer, "unroll = true writes every step into the plan: %lld steps, at most %d can be; leave it out",
                                (long long)s->steps, MOST_UNROLLED);
  if (e->status != FLOW_OK) return NULL;
  e->status = flow_alloc_zero(sizeof(flow_tensor *) * (size_t)s->steps, &block);
  if (e->status != FLOW_OK) return NULL;
  flow_tensor *sequence = run_each(e, s, states, block);
  for (int64_t t = 0; t < s->steps; t++) flow_tensor_release(((flow_tensor **)block)[t]);
  flow_free(block);
  return sequence;
}

/* ---- results --------------------------------------------------------------------------------------------------------------------- */

/* Steps that a mask leaves out give what the step before them gave, 0 before the first that it does not, or always 0. */
static flow_tensor *mask_sequence(flow_expression *e, const flow_steps *s, flow_tensor *sequence)
{
  flow_tensor *kept = s->mask;
  int zero = flow_argument_boolean(s->layer->arguments, "zero_output_for_mask");
  if (e->status != FLOW_OK || !s->mask || (!zero && !s->has_state)) return sequence;
  if (!zero) {      /* how many steps up to this one the mask does not leave out */
    const flow_attributes in_order = { .along = { .axis = 1, .reverse = s->reverse } };
    kept = flow_express(e, FLOW_OP_cumsum, flow_express_cast(e, s->mask, FLOW_INT32), NULL, NULL, &in_order);
    kept = kept ? e_gt(e, kept, flow_express_number(e, kept, 0)) : NULL;
  }
  if (e->status == FLOW_OK) kept = widen(e, kept, sequence->rank);
  return e->status == FLOW_OK ? e_where(e, kept, sequence, flow_express_number(e, sequence, 0)) : NULL;
}

/* A stateful layer begins its next call with these. */
static flow_status keep(flow_expression *e, const flow_steps *s, flow_tensor *const *states)
{
  for (int i = 0; i < flow_layer_state_count(s->layer) && e->status == FLOW_OK; i++) {
    flow_tensor *state = flow_express_cast(e, states[i], flow_policy_variable_dtype(s->layer));
    if (e->status == FLOW_OK) e->status = flow_variable_assign(e->context, s->layer->states[i], state);
  }
  return e->status;
}

/* The sequence or its last step, turned round where steps go backwards, and the last states; what a stateful layer keeps is assigned. */
flow_status flow_steps_end(flow_expression *e, const flow_steps *s, flow_tensor *sequence, flow_tensor **states, flow_tensor **outputs)
{
  const flow_arguments *arguments = s->layer->arguments;
  flow_tensor *y = mask_sequence(e, s, sequence);
  if (!flow_argument_boolean(arguments, "return_sequences")) y = flow_steps_at(e, y, 1, s->reverse ? 0 : s->steps - 1);
  else if (s->reverse) y = flip(e, y);
  if (keep(e, s, states) == FLOW_OK) {
    outputs[0] = flow_tensor_retain(y);
    for (int i = 0; i < s->states && flow_argument_boolean(arguments, "return_state"); i++) outputs[1 + i] = flow_tensor_retain(states[i]);
  }
  return flow_expression_end(e);
}
