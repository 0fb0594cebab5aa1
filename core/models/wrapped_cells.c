/* wrapped_cells.c: RNN over the library's cells, one or several: what lua/flow/layers/recurrent/rnn.lua does, op by op.
 * In a trace the steps are a loop, but with unroll.
 *
 * flow_rnn_run brings the states into the cell's dtype and tries the loop (looped); where the steps cannot be a loop it
 * writes them out (written_out). Tensors are kept by an expression until it ends, so that most functions here return
 * borrowed ones. */
#include "models/wrappers.h"

#include <string.h>

#include "flow_run.h"
#include "graph/context.h"
#include "layers/express.h"
#include "layers/policy.h"
#include "layers/recurrent.h"

enum { MOST_STATES = FLOW_LAYER_MOST_INPUTS - 2 };

const char *const flow_sequence_inputs[] = { "sequences", "initial_state[1]", "initial_state[2]", "initial_state[3]", "initial_state[4]",
                                             "initial_state[5]", "initial_state[6]", "mask", NULL };

/* ---- parts ---------------------------------------------------------------------------------------------------------------- */

/* Cells of the library or StackedRNNCells of such; the states of all of them must fit the names in flow_sequence_inputs. */
static flow_status check_cells(const flow_model_part *part)
{
  for (int i = 0; i < part->part_count; i++)
    if (!flow_part_is_cell(&part->parts[i]))
      return flow_wrapper_fail(part, "it holds a %s, which is not a cell of the library", part->parts[i].class_name);
  if (flow_part_states(part) > MOST_STATES) return flow_wrapper_fail(part, "its cells have more than %d states", MOST_STATES);
  return FLOW_OK;
}

flow_status flow_stacked_cells_check(const flow_model_part *part) { return check_cells(part); }

flow_status flow_rnn_check(const flow_model_part *part)
{
  if (flow_wrapper_flag(part, "stateful")) return flow_wrapper_fail(part, "stateful is not supported");
  return check_cells(part);
}

/* The output, and with return_state the states of all cells. */
int flow_rnn_outputs(const flow_model_part *part) { return 1 + (flow_wrapper_flag(part, "return_state") ? flow_part_states(part) : 0); }

/* The sizes of all states of a cell, one after the other, and the dtype that it computes in. sizes has room for
 * MOST_STATES. */
static int state_sizes(const flow_model_part *cell, int64_t *sizes, int *dtype)
{
  int count = 0;
  if (cell->layer) *dtype = flow_policy_dtype(cell->layer);
  for (int i = 0; cell->layer && i < cell->layer->class->cell->states; i++)
    sizes[count++] = flow_argument_integer(cell->layer->arguments, "units");
  for (int i = 0; i < cell->part_count; i++) count += state_sizes(&cell->parts[i], sizes + count, dtype);
  if (!cell->layer) *dtype = flow_wrapper_dtype(cell);
  return count;
}

/* ---- one step --------------------------------------------------------------------------------------------------------------- */

/* A call while it runs. states: of all cells of `cell` together, at most MOST_STATES (check_cells). */
typedef struct rnn {
  const flow_wrapper_call *call;
  const flow_model_part   *cell;
  int                      states, zeroes;      /* zeroes: outputs that the mask leaves out are 0, else those of the step before */
} rnn;

/* A cell, or several: *output and after[] are borrowed from e. A list of cells (StackedRNNCells) passes its output from one to the next;
 * states are in the order of the cells. */
static void run_cell(const rnn *r, flow_expression *e, const flow_model_part *cell, flow_tensor *x, flow_tensor *const *states,
                     flow_tensor **output, flow_tensor **after)
{
  flow_tensor *named[1 + MOST_STATES] = { x }, *outputs[FLOW_LAYER_MOST_OUTPUTS] = { NULL };
  int count = flow_part_states(cell);
  *output = NULL;
  for (int i = 0, first = 0; i < cell->part_count && e->status == FLOW_OK; i++) {
    run_cell(r, e, &cell->parts[i], x, states + first, &x, after + first);
    first += flow_part_states(&cell->parts[i]);
  }
  if (e->status != FLOW_OK) return;
  if (!cell->layer) {
    *output = x;
    return;
  }
  memcpy(named + 1, states, sizeof *states * (size_t)count);
  e->status = flow_part_run(&(flow_wrapper_call){ .context = r->call->context, .part = cell, .named = named,
                                                  .training = r->call->training, .outputs = outputs });
  *output = flow_express_keep(e, e->status, outputs[0]);
  for (int i = 0; i < count; i++) after[i] = flow_express_keep(e, e->status, outputs[1 + i]);
}

/* a where the mask {n} holds, else b. */
static flow_tensor *choose(flow_expression *e, flow_tensor *mask, flow_tensor *a, flow_tensor *b)
{
  int64_t dims[FLOW_MAX_RANK] = { mask->shape[0] };
  if (!a || !b) return NULL;
  for (int i = 1; i < a->rank; i++) dims[i] = 1;
  return e_where(e, flow_express_reshape(e, mask, a->rank, dims), a, b);
}

/* A tensor of zeros {rows of x, size}. */
static flow_tensor *zeros(flow_expression *e, const flow_tensor *x, int64_t size, int dtype)
{
  flow_tensor *scalar = NULL, *stand_in = NULL;
  flow_attributes attributes = { .shape = { .rank = 2, .dims = { x->shape[0], size } } };
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_new(dtype, 0, NULL, &scalar);
  if (status == FLOW_OK) status = flow_tensor_fill(scalar, 0);
  scalar = flow_express_keep(e, status, scalar);
  if (scalar && flow_tensor_is_symbolic(x)) {
    status = flow_trace_constant(e->context, scalar, &stand_in);
    scalar = flow_express_keep(e, status, stand_in);
  }
  return flow_express(e, FLOW_OP_broadcast_to, scalar, NULL, NULL, &attributes);
}

/* One step, borrowed from e. mask: its part, or NULL; before: the output of the step before; NULL: there was none, or it does not count. */
static void one_step(const rnn *r, flow_expression *e, flow_tensor *x, flow_tensor *mask, flow_tensor *const *states, flow_tensor *before,
                     flow_tensor **output, flow_tensor **after)
{
  run_cell(r, e, r->cell, x, states, output, after);
  if (!mask || e->status != FLOW_OK) return;
  for (int i = 0; i < r->states; i++) after[i] = choose(e, mask, after[i], states[i]);
  if (!before) before = zeros(e, *output, (*output)->shape[1], (*output)->dtype);
  *output = choose(e, mask, *output, before);
}

/* ---- all steps ---------------------------------------------------------------------------------------------------------------- */

/* A loop needs a trace to be in, and two rounds at least; with `repeats` the first step is outside of it, since it has no output before. */
static int may_loop(const rnn *r, const flow_tensor *x, int repeats)
{
  return !flow_wrapper_flag(r->call->part, "unroll") && flow_trace_depth(r->call->context) > 0 && x->shape[1] >= (repeats ? 3 : 2);
}

/* Steps first .. last of {n, steps, ...} as {steps, n, ...}. */
static flow_tensor *by_steps(flow_expression *e, flow_tensor *x, int64_t first, int64_t last)
{
  if (!x) return NULL;
  flow_tensor *turned = flow_steps_swapped(e, x);
  if (!turned || (first == 0 && last == turned->shape[0] - 1)) return turned;
  flow_attributes attributes = { .slice = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) {
    attributes.slice.begin[i] = i == 0 ? first : 0;
    attributes.slice.end[i] = i == 0 ? last + 1 : INT64_MAX / 2;
    attributes.slice.step[i] = 1;
  }
  return flow_express(e, FLOW_OP_slice, turned, NULL, NULL, &attributes);
}

/* Whether the states keep their dtypes and shapes from one step to the next, as a loop needs. */
static int alike(const rnn *r, flow_tensor *const *before, flow_tensor *const *after)
{
  for (int i = 0; i < r->states; i++) {
    const flow_tensor *a = before[i], *b = after[i];
    if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->shape, b->shape, sizeof(int64_t) * (size_t)a->rank) != 0) return 0;
  }
  return 1;
}

/* The body of a loop, in its trace: given[] are the states, with `repeats` the last output, and rows of x and of the mask. results[]: new
 * references to the next ones, and the output, *count of them. States that do not stay alike end the loop: it is to be written out. */
static flow_status loop_body(const rnn *r, flow_tensor *const *given, int repeats, int masked, flow_tensor **results, int *count)
{
  flow_tensor *after[MOST_STATES] = { NULL }, *output = NULL;
  flow_expression e = flow_expression_of(r->call->context);
  int at = r->states + repeats;
  *count = 0;
  one_step(r, &e, given[at], masked ? given[at + 1] : NULL, given, repeats ? given[r->states] : NULL, &output, after);
  int stay = e.status == FLOW_OK && alike(r, given, after);
  if (!stay) flow_loop_write_out(r->call->context);
  for (int i = 0; i < r->states + repeats && e.status == FLOW_OK; i++)
    results[(*count)++] = flow_tensor_retain(!stay ? given[i] : i < r->states ? after[i] : output);
  if (stay) results[(*count)++] = flow_tensor_retain(output);
  return flow_expression_end(&e);
}

/* The loop. found[]: the last states, then the outputs {rounds, n, ...} in the order of the rows, borrowed from e; nothing there: the steps
 * are to be written out. */
static void run_loop(const rnn *r, flow_expression *e, flow_tensor *const *states, int repeats, flow_tensor *const *rows, int row_count,
                     int64_t rounds, int reverse, flow_tensor **found)
{
  flow_context *context = r->call->context;
  flow_tensor *given[MOST_STATES + 3] = { NULL }, *results[MOST_STATES + 2] = { NULL }, *out[MOST_STATES + 2] = { NULL };
  int count = r->states + repeats, made = 0, written = 0;
  if (e->status != FLOW_OK) return;
  e->status = flow_loop_begin(context, states, count, rows, row_count, (double)rounds, given);
  if (e->status != FLOW_OK) return;
  e->status = loop_body(r, given, repeats, row_count > 1, results, &made);
  if (e->status == FLOW_OK) e->status = flow_loop_end(context, results, made, (double)rounds, reverse, out, &written);
  else flow_trace_abort(context);
  flow_tensors_release(given, count + row_count);
  flow_tensors_release(results, made);
  for (int i = 0; i <= count && !written; i++) found[i] = flow_express_keep(e, e->status, out[i]);
}

/* The steps as a loop: *y is the last output, or all {n, steps, ...} in the order in which they are made; after[]: the last states. *y NULL
 * without a failure: they are to be written out. */
static void looped(const rnn *r, flow_expression *e, flow_tensor *x, flow_tensor *mask, flow_tensor *const *states, flow_tensor **y,
                   flow_tensor **after)
{
  int repeats = mask && !r->zeroes, backwards = flow_wrapper_flag(r->call->part, "go_backwards");
  int64_t steps = x->shape[1], first = 0, last = steps - 1;
  flow_tensor *begun = NULL, *own[MOST_STATES + 1] = { NULL }, *rows[2] = { NULL }, *found[MOST_STATES + 2] = { NULL };
  if (!may_loop(r, x, repeats)) return;
  memcpy(own, states, sizeof *states * (size_t)r->states);
  if (repeats) {
    int64_t t = backwards ? last : 0;
    one_step(r, e, flow_steps_at(e, x, 1, t), flow_steps_at(e, mask, 1, t), states, NULL, &begun, own);
    own[r->states] = begun;
    first = !backwards;
    last -= backwards;
  }
  rows[0] = by_steps(e, x, first, last);
  rows[1] = by_steps(e, mask, first, last);
  run_loop(r, e, own, repeats, rows, mask ? 2 : 1, last - first + 1, backwards, found);
  flow_tensor *outputs = found[r->states + repeats];
  if (!outputs || e->status != FLOW_OK) return;
  memcpy(after, found, sizeof *found * (size_t)r->states);
  if (!flow_wrapper_flag(r->call->part, "return_sequences")) {
    *y = flow_steps_at(e, outputs, 0, backwards ? 0 : outputs->shape[0] - 1);
    return;
  }
  if (backwards) outputs = flow_wrapper_reversed(e, outputs);
  if (begun) {
    flow_tensor *head = flow_wrapper_stacked(e, &begun, 1, 0), *joined = NULL;
    flow_attributes attributes = { .axis = { .axis = 0 } };
    if (head && outputs) flow_express_all(e, FLOW_OP_concat, (flow_tensor *[]){ head, outputs }, 2, &attributes, &joined);
    outputs = joined;
  }
  *y = flow_steps_swapped(e, outputs);
}

/* The same step by step; each has its own expression. */
static void written_out(const rnn *r, flow_expression *e, flow_tensor *x, flow_tensor *mask, flow_tensor *const *states, flow_tensor **y,
                        flow_tensor **after)
{
  int whole = flow_wrapper_flag(r->call->part, "return_sequences"), backwards = flow_wrapper_flag(r->call->part, "go_backwards");
  int64_t steps = x->shape[1];
  flow_tensor *own[MOST_STATES] = { NULL }, *before = NULL;
  void *block;
  if (e->status != FLOW_OK || (e->status = flow_alloc_zero(sizeof x * (size_t)steps, &block)) != FLOW_OK) return;
  flow_tensor **outputs = block;
  for (int i = 0; i < r->states; i++) own[i] = flow_tensor_retain(states[i]);
  for (int64_t k = 0; k < steps && e->status == FLOW_OK; k++) {
    flow_expression step = flow_expression_of(r->call->context);
    flow_tensor *next[MOST_STATES] = { NULL }, *output = NULL;
    int64_t t = backwards ? steps - 1 - k : k;
    one_step(r, &step, flow_steps_at(&step, x, 1, t), flow_steps_at(&step, mask, 1, t), own, before, &output, next);
    for (int i = 0; i < r->states && step.status == FLOW_OK; i++) {
      flow_tensor_release(own[i]);
      own[i] = flow_tensor_retain(next[i]);
    }
    if (step.status == FLOW_OK) outputs[k] = flow_tensor_retain(output);
    if (!r->zeroes) before = outputs[k];
    e->status = flow_expression_end(&step);
  }
  if (e->status == FLOW_OK && whole) *y = flow_wrapper_stacked(e, outputs, steps, 1);
  else if (e->status == FLOW_OK) *y = flow_express_keep(e, FLOW_OK, flow_tensor_retain(outputs[steps - 1]));
  for (int i = 0; i < r->states; i++) after[i] = flow_express_keep(e, e->status, own[i]);
  for (int64_t k = 0; k < steps; k++) flow_tensor_release(outputs[k]);
  flow_free(block);
}

/* ---- the call --------------------------------------------------------------------------------------------------------------------- */

/* The given initial states, all or none, or zeros, in the dtype that the cell computes in. */
static void begin_states(const rnn *r, flow_expression *e, const flow_tensor *x, flow_tensor **states)
{
  int64_t sizes[MOST_STATES];
  int dtype = FLOW_FLOAT32, given = 0;
  state_sizes(r->cell, sizes, &dtype);
  for (int i = 0; i < r->states; i++) given += r->call->named[1 + i] != NULL;
  if (given && given < r->states)
    e->status = flow_wrapper_fail(r->call->part, "initial_state holds %d tensors, its cell has %d states", given, r->states);
  for (int i = 0; i < r->states && e->status == FLOW_OK; i++)
    states[i] = given ? flow_express_cast(e, r->call->named[1 + i], dtype) : zeros(e, x, sizes[i], dtype);
}

/* A loop where one is possible, otherwise the steps one after the other: both give the same bits. The states are given in the dtype of
 * the policy. */
flow_status flow_rnn_run(const flow_wrapper_call *call)
{
  const flow_model_part *part = call->part;
  const rnn r = { .call = call, .cell = &part->parts[0], .states = flow_part_states(part),
                  .zeroes = flow_wrapper_flag(part, "zero_output_for_mask") };
  flow_tensor *x = call->named[0], *given = call->named[flow_find_input_name(flow_sequence_inputs, "mask", 0)], *mask = given, *y = NULL;
  flow_tensor *states[MOST_STATES] = { NULL }, *after[MOST_STATES] = { NULL };
  flow_expression e = flow_expression_of(call->context);
  int dtype = flow_wrapper_dtype(part);
  if (x->rank < 3 || x->shape[1] < 1)
    return flow_wrapper_fail(part, "input has shape %s, expected one step or more {batch, steps, ...}", flow_tensor_shape_text(x));
  if (mask) mask = flow_express_cast(&e, mask, FLOW_BOOL);
  begin_states(&r, &e, x, states);
  if (e.status == FLOW_OK) looped(&r, &e, x, mask, states, &y, after);
  if (e.status == FLOW_OK && !y) written_out(&r, &e, x, mask, states, &y, after);
  for (int i = 0; i < flow_rnn_outputs(part) && e.status == FLOW_OK; i++) {
    flow_tensor *result = flow_express_cast(&e, i == 0 ? y : after[i - 1], dtype);
    call->outputs[i] = e.status == FLOW_OK ? flow_tensor_retain(result) : NULL;
  }
  FLOW_TRY(flow_expression_end(&e));
  if (!given) given = x->mask;
  return flow_wrapper_flag(part, "return_sequences") ? flow_tensor_set_mask(call->outputs[0], given) : FLOW_OK;
}
