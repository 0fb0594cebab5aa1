/* gradient_recurrent.c: second derivatives of the recurrent cells. lstm, gru and simple_rnn and their gradients are one op each, over all
 * steps. Where a gradient of such a gradient is asked for, the op is written out as a formula for one step, over which a loop of the trace
 * goes (eagerly: step after step), and the formula is differentiated as anything else is: so are third derivatives. It costs several times
 * what the op costs, in time and memory, and only those pay who take gradients of gradients.
 *
 * The gradient ops read what the forward op kept of each step, its history, which is an output of it: what comes back for the history is
 * given to the forward op's rule, which then writes out the forward op in the same way. */
#include "autodiff/apply.h"
#include "autodiff/expression.h"
#include "graph/loop.h"
#include "graph/tape.h"
#include "ops/rules/recurrent.h"

enum { MOST_ROWS = 4, MOST_STATES = 2, MOST_RESULTS = 2, MOST_INPUTS = 6, MOST_OUTPUTS = 3 };

/* What a step computes. All tensors are of one step, {n, k}; the mask, if there is one, is {n}, the last of the rows. */
typedef struct formula formula;
typedef void step_function(flow_expression *e, const formula *f, flow_tensor **states, flow_tensor **rows, flow_tensor **after);

struct formula {
  const flow_attributes *attributes;
  int64_t units;
  int states, rows, results;
  flow_tensor *w, *b;  /* what all steps read */
  step_function *step; /* after: the next states, then the results */
};

/* ---- parts of formulas ------------------------------------------------------------------------------------------------------------ */

/* The parts first to last of x {n, parts * units}. */
static flow_tensor *gates(flow_expression *e, const formula *f, flow_tensor *x, int first, int last)
{
  return flow_express_range(e, x, 1, first * f->units, (last + 1) * f->units);
}

static flow_tensor *product(flow_expression *e, flow_tensor *a, flow_tensor *w, int transpose)
{
  return flow_express(e, FLOW_OP_matmul, a, w, NULL, &(flow_attributes){ .matmul = { .transpose_b = transpose } });
}

/* 1 - x and 1 - x^2. */
static flow_tensor *rest(flow_expression *e, flow_tensor *x)
{
  return e->status == FLOW_OK ? e_sub(e, flow_express_number(e, x, 1), x) : NULL;
}

static flow_tensor *tanh_slope(flow_expression *e, flow_tensor *y)
{
  return rest(e, e_square(e, y));
}
static flow_tensor *sigmoid_slope(flow_expression *e, flow_tensor *y)
{
  return e_mul(e, y, rest(e, y));
}

/* x where the mask of this step counts it, else what it was: NULL is zero. */
static flow_tensor *masked(flow_expression *e, const formula *f, flow_tensor **rows, flow_tensor *x, flow_tensor *otherwise)
{
  flow_tensor *mask = rows[f->rows];
  if (!mask || e->status != FLOW_OK) return x;
  return e_where(e, flow_express_insert_axis(e, mask, 1), x, otherwise ? otherwise : flow_express_number(e, x, 0));
}

/* ---- steps: the formulas of kernels/cpu/recurrent/recurrent_plain.c ------------------------------------------------------------- */

static void simple_rnn_back(flow_expression *e, const formula *f, flow_tensor **states, flow_tensor **rows, flow_tensor **after)
{
  flow_tensor *dh = e_add(e, states[0], rows[0]), *d = masked(e, f, rows, e_mul(e, dh, tanh_slope(e, rows[1])), NULL);
  after[0] = masked(e, f, rows, product(e, d, f->w, 1), dh);
  after[1] = d;
}

static void lstm_step(flow_expression *e, const formula *f, flow_tensor **states, flow_tensor **rows, flow_tensor **after)
{
  flow_tensor *p = e_add(e, rows[0], product(e, states[0], f->w, 0)), *v[5];
  for (int i = 0; i < 4; i++) v[i] = i == 2 ? e_tanh(e, gates(e, f, p, i, i)) : e_sigmoid(e, gates(e, f, p, i, i));
  v[4] = masked(e, f, rows, e_add(e, e_mul(e, v[1], states[1]), e_mul(e, v[0], v[2])), states[1]);
  after[0] = masked(e, f, rows, e_mul(e, v[3], e_tanh(e, v[4])), states[0]);
  after[1] = v[4];
  after[2] = after[0];
  after[3] = flow_express_joined(e, v, 5, 1);
}

/* rows: g, the history, the c before each step. */
static void lstm_back(flow_expression *e, const formula *f, flow_tensor **states, flow_tensor **rows, flow_tensor **after)
{
  flow_tensor *v[5], *d[4], *above = e_add(e, states[0], rows[0]);
  for (int i = 0; i < 5; i++) v[i] = gates(e, f, rows[1], i, i);
  flow_tensor *c = e_tanh(e, v[4]), *through = e_add(e, states[1], e_mul(e, e_mul(e, above, v[3]), tanh_slope(e, c)));
  d[0] = e_mul(e, e_mul(e, through, v[2]), sigmoid_slope(e, v[0]));
  d[1] = e_mul(e, e_mul(e, through, rows[2]), sigmoid_slope(e, v[1]));
  d[2] = e_mul(e, e_mul(e, through, v[0]), tanh_slope(e, v[2]));
  d[3] = e_mul(e, e_mul(e, above, c), sigmoid_slope(e, v[3]));
  after[2] = masked(e, f, rows, flow_express_joined(e, d, 4, 1), NULL);
  after[0] = masked(e, f, rows, product(e, after[2], f->w, 1), above);
  after[1] = masked(e, f, rows, e_mul(e, through, v[1]), states[1]);
}

static void gru_step(flow_expression *e, const formula *f, flow_tensor **states, flow_tensor **rows, flow_tensor **after)
{
  flow_tensor *h = states[0], *v[4], *inner;
  if (f->attributes->recurrent.reset_after) {
    inner = e_add(e, product(e, h, f->w, 0), f->b);
    for (int i = 0; i < 2; i++) v[i] = e_sigmoid(e, e_add(e, gates(e, f, rows[0], i, i), gates(e, f, inner, i, i)));
    v[3] = gates(e, f, inner, 2, 2);
    inner = e_mul(e, v[1], v[3]);
  } else {
    inner = product(e, h, gates(e, f, f->w, 0, 1), 0);
    for (int i = 0; i < 2; i++) v[i] = e_sigmoid(e, e_add(e, gates(e, f, rows[0], i, i), gates(e, f, inner, i, i)));
    v[3] = e_mul(e, v[1], h);
    inner = product(e, v[3], gates(e, f, f->w, 2, 2), 0);
  }
  v[2] = e_tanh(e, e_add(e, gates(e, f, rows[0], 2, 2), inner));
  after[0] = masked(e, f, rows, e_add(e, e_mul(e, v[0], h), e_mul(e, rest(e, v[0]), v[2])), h);
  after[1] = after[0];
  after[2] = flow_express_joined(e, v, 4, 1);
}

/* rows: g, the history, the h before each step. */
static void gru_back(flow_expression *e, const formula *f, flow_tensor **states, flow_tensor **rows, flow_tensor **after)
{
  flow_tensor *v[4], *d[3], *dh = e_add(e, states[0], rows[0]), *h = rows[2], *next = NULL;
  for (int i = 0; i < 4; i++) v[i] = gates(e, f, rows[1], i, i);
  d[0] = e_mul(e, e_mul(e, dh, e_sub(e, h, v[2])), sigmoid_slope(e, v[0]));
  d[2] = e_mul(e, e_mul(e, dh, rest(e, v[0])), tanh_slope(e, v[2]));
  if (f->attributes->recurrent.reset_after) {
    d[1] = e_mul(e, e_mul(e, d[2], v[3]), sigmoid_slope(e, v[1]));
    after[1] = masked(e, f, rows, flow_express_joined(e, d, 3, 1), NULL);
    d[2] = e_mul(e, d[2], v[1]);
    after[2] = masked(e, f, rows, flow_express_joined(e, d, 3, 1), NULL);
    next = e_add(e, e_mul(e, dh, v[0]), product(e, after[2], f->w, 1));
  } else {
    flow_tensor *reset = product(e, d[2], gates(e, f, f->w, 2, 2), 1);
    d[1] = e_mul(e, e_mul(e, reset, h), sigmoid_slope(e, v[1]));
    after[1] = masked(e, f, rows, flow_express_joined(e, d, 3, 1), NULL);
    next = e_add(e, e_mul(e, dh, v[0]), e_mul(e, reset, v[1]));
    next = e_add(e, next, product(e, gates(e, f, after[1], 0, 1), gates(e, f, f->w, 0, 1), 1));
    after[2] = after[1];
  }
  after[0] = masked(e, f, rows, next, dh);
}

/* ---- all steps -------------------------------------------------------------------------------------------------------------------- */

static void release_all(flow_tensor **tensors, int64_t count)
{
  for (int64_t i = 0; i < count; i++) flow_tensor_release(tensors[i]);
}

/* What a step makes, as new references in after[]; NULL after a failure. row: of rows {n, t, k}, and results get an axis for the steps; -1:
 * the rows are those of the step. */
static flow_status run_step(flow_context *context, const formula *f, flow_tensor **states, flow_tensor **rows, int64_t row,
                            flow_tensor **after)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *of_step[MOST_ROWS + 1] = { NULL };
  for (int i = 0; i <= f->rows; i++) {
    if (!rows[i] || row < 0) of_step[i] = rows[i];
    else if (e.status == FLOW_OK) {
      flow_tensor *x = flow_express_range(&e, rows[i], 1, row, row + 1);
      flow_attributes shape = { .shape = { .rank = rows[i]->rank - 1, .dims = { rows[i]->shape[0], rows[i]->shape[2] } } };
      of_step[i] = flow_express(&e, FLOW_OP_reshape, x, NULL, NULL, &shape);
    }
  }
  f->step(&e, f, states, of_step, after);
  int count = f->states + f->results;
  for (int i = f->states; i < count && row >= 0; i++) after[i] = flow_express_insert_axis(&e, after[i], 1);
  for (int i = 0; i < count; i++) after[i] = e.status == FLOW_OK ? flow_tensor_retain(after[i]) : NULL;
  return flow_expression_end(&e);
}

/* Eagerly. made: [step][result], in the order of the steps. states: references, which are replaced. */
static flow_status run_each(flow_context *context, const formula *f, flow_tensor **states, flow_tensor **rows, int64_t steps, int reverse,
                            flow_tensor **made)
{
  for (int64_t s = 0; s < steps; s++) {
    flow_tensor *after[MOST_STATES + MOST_RESULTS];
    int64_t row = reverse ? steps - 1 - s : s;
    FLOW_TRY(run_step(context, f, states, rows, row, after));
    release_all(states, f->states);
    for (int i = 0; i < f->states; i++) states[i] = after[i];
    for (int i = 0; i < f->results; i++) made[i * steps + row] = after[f->states + i];
  }
  return FLOW_OK;
}

/* As run_each, with the results joined: results[], new references {n, t, k}. */
static flow_status run_eager(flow_context *context, const formula *f, flow_tensor **states, flow_tensor **rows, int64_t steps, int reverse,
                             flow_tensor **results)
{
  void *block;
  FLOW_TRY(flow_alloc_zero(sizeof(flow_tensor *) * (size_t)(steps * f->results), &block));
  flow_tensor **made = block;
  flow_status status = run_each(context, f, states, rows, steps, reverse, made);
  for (int i = 0; i < f->results && status == FLOW_OK; i++) {
    flow_expression e = flow_expression_of(context);
    flow_tensor *joined = flow_express_joined(&e, made + i * steps, (int)steps, 1);
    status = flow_expression_take(&e, joined, &results[i]);
  }
  release_all(made, steps * f->results);
  flow_free(block);
  return status;
}

/* {n, t, ...} as {t, n, ...}, and back; a new reference. */
static flow_status swap_axes(flow_context *context, flow_tensor *x, flow_tensor **out)
{
  flow_attributes attributes = { .transpose = { .rank = x->rank, .axes = { 1, 0, 2 } } };
  return flow_apply1(context, FLOW_OP_transpose, x, NULL, NULL, &attributes, out);
}

/* In a trace: one loop, whose rows are the steps. */
static flow_status run_loop(flow_context *context, const formula *f, flow_tensor **states, flow_tensor **rows, int64_t steps, int reverse,
                            flow_tensor **results)
{
  flow_tensor *along[MOST_ROWS + 1] = { NULL }, *inner[MOST_STATES + MOST_ROWS + 1] = { NULL }, *of_step[MOST_ROWS + 1] = { NULL };
  flow_tensor *after[MOST_STATES + MOST_RESULTS] = { NULL }, *made[MOST_STATES + MOST_RESULTS] = { NULL };
  int given = f->rows + (rows[f->rows] != NULL), count = f->states + f->results, written = 0;
  flow_status status = FLOW_OK;
  for (int i = 0; i < given && status == FLOW_OK; i++) status = swap_axes(context, rows[i], &along[i]);
  if (status == FLOW_OK) status = flow_loop_begin(context, states, f->states, along, given, (double)steps, inner);
  if (status == FLOW_OK) {
    for (int i = 0; i < given; i++) of_step[i] = inner[f->states + i];
    status = run_step(context, f, inner, of_step, -1, after);
    if (status == FLOW_OK) status = flow_loop_end(context, after, count, (double)steps, reverse, made, &written);
    else flow_trace_abort(context);
  }
  for (int i = 0; i < f->results && status == FLOW_OK; i++) status = swap_axes(context, made[f->states + i], &results[i]);
  if (status == FLOW_OK) {
    for (int i = 0; i < f->states; i++) {
      flow_tensor_release(states[i]);
      states[i] = flow_tensor_retain(made[i]);
    }
  }
  release_all(along, MOST_ROWS + 1);
  release_all(inner, MOST_STATES + MOST_ROWS + 1);
  release_all(after, count);
  release_all(made, count);
  return status;
}

static flow_status run_steps(flow_context *context, const formula *f, flow_tensor **states, flow_tensor **rows, int reverse,
                             flow_tensor **results)
{
  int64_t steps = rows[0]->shape[1];
  if (flow_context_trace(context)) return run_loop(context, f, states, rows, steps, reverse, results);
  return run_eager(context, f, states, rows, steps, reverse, results);
}

/* ---- the ops as formulas ---------------------------------------------------------------------------------------------------------- */

/* How an op is written out. Numbers are those of its inputs; ZERO: a state that begins with zeros. Its last row is what was before each
 * step of input `after`, of which it is the part number `part`, if `after` is not NONE. outputs: STATE(i), the last one, or RESULT(i). */
enum { NONE = -1, ZERO = -2 };
#define STATE(i) (i)
#define RESULT(i) (MOST_STATES + (i))

static const struct written {
  int op, back, states, results, rows;
  int state[MOST_STATES], row[MOST_ROWS], after, part, first;
  int w, b, mask;
  step_function *step;
  int outputs, output[MOST_OUTPUTS];
} written[] = {
  { FLOW_OP_simple_rnn_gradient, 1, 1, 1, 2, { ZERO }, { 0, 2 }, NONE, 0, 0, 1, NONE, 3, simple_rnn_back, 2, { RESULT(0), STATE(0) } },
  { FLOW_OP_lstm, 0, 2, 2, 1, { 2, 3 }, { 0 }, NONE, 0, 0, 1, NONE, 4, lstm_step, 3, { RESULT(0), STATE(1), RESULT(1) } },
  { FLOW_OP_lstm_gradient, 1, 2, 1, 3, { ZERO, 1 }, { 0, 4 }, 4, 4, 3, 2, NONE, 5, lstm_back, 3, { RESULT(0), STATE(0), STATE(1) } },
  { FLOW_OP_gru, 0, 1, 2, 1, { 2 }, { 0 }, NONE, 0, 0, 1, 3, 4, gru_step, 2, { RESULT(0), RESULT(1) } },
  { FLOW_OP_gru_gradient, 1, 1, 2, 3, { ZERO }, { 0, 4 }, 3, 0, 2, 1, NONE, 5, gru_back, 3, { RESULT(0), STATE(0), RESULT(1) } },
};

static const struct written *written_of(int op)
{
  const struct written *w = written;
  while (w->op != op) w++;
  return w;
}

/* Zeros {n, u} like a step of x {n, t, u}. */
static flow_tensor *zeros(flow_expression *e, const formula *f, flow_tensor *x)
{
  flow_attributes shape = { .shape = { .rank = 2, .dims = { x->shape[0], f->units } } };
  return e->status == FLOW_OK ? flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, x, 0), NULL, NULL, &shape) : NULL;
}

/* What the node's op computes, out of tensors like its inputs: outputs[], new references. */
static flow_status write_out(flow_gradient_step *step, flow_tensor **inputs, flow_tensor **outputs)
{
  const struct written *op = written_of(step->op);
  flow_expression e = flow_expression_of(step->context);
  flow_tensor *rows[MOST_ROWS + 1] = { NULL }, *made[MOST_STATES + MOST_RESULTS] = { NULL };
  formula f = { .attributes = step->attributes,
                .states = op->states,
                .rows = op->rows,
                .results = op->results,
                .w = inputs[op->w],
                .units = inputs[op->w]->shape[0],
                .step = op->step };
  if (op->b != NONE) f.b = inputs[op->b];
  int stays = op->after == NONE ? op->rows : op->rows - 1, reverse = op->back != (step->attributes->recurrent.reverse != 0);
  for (int i = 0; i < stays; i++) rows[i] = inputs[op->row[i]];
  if (op->after != NONE) {
    flow_tensor *after = flow_express_range(&e, inputs[op->after], 2, op->part * f.units, (op->part + 1) * f.units);
    rows[stays] = flow_express_states_before(&e, after, inputs[op->first], f.attributes->recurrent.reverse);
  }
  if (step->input_count > op->mask) rows[op->rows] = inputs[op->mask];
  for (int i = 0; i < op->states; i++) made[i] = op->state[i] == ZERO ? zeros(&e, &f, rows[0]) : inputs[op->state[i]];
  flow_status status = e.status;
  if (status == FLOW_OK) {
    for (int i = 0; i < op->states; i++) flow_tensor_retain(made[i]);
    status = run_steps(step->context, &f, made, rows, reverse, made + MOST_STATES);
    for (int i = 0; i < op->outputs && status == FLOW_OK; i++) outputs[i] = flow_tensor_retain(made[op->output[i]]);
    release_all(made, MOST_STATES + MOST_RESULTS);
  }
  flow_expression_end(&e);
  return status;
}

/* ---- their gradients -------------------------------------------------------------------------------------------------------------- */

/* An input may stand at two places, as the same zeros for h and c: the tape sees a copy for each, so that each has its own gradient. */
static flow_status copy_inputs(flow_gradient_step *step, flow_tensor **copies)
{
  for (int i = 0; i < step->input_count; i++) {
    if (step->needed[i]) FLOW_TRY(flow_apply1(step->context, FLOW_OP_copy, step->inputs[i], NULL, NULL, NULL, &copies[i]));
    else copies[i] = flow_tensor_retain(step->inputs[i]);
  }
  return FLOW_OK;
}

static flow_status watch(flow_tape *tape, const flow_gradient_step *step, flow_tensor **copies)
{
  for (int i = 0; i < step->input_count && !tape->traced; i++)
    if (step->needed[i]) FLOW_TRY(flow_tape_watch(tape, copies[i]));
  return FLOW_OK;
}

/* copies: of the inputs, which the new tape watches; sources: those whose gradients are asked for, else NULL. */
static flow_status differentiate_written(flow_gradient_step *step, flow_tensor **copies, flow_tensor **sources)
{
  flow_tensor *outputs[MOST_OUTPUTS] = { NULL }, *targets[MOST_OUTPUTS], *gradients[MOST_OUTPUTS];
  flow_tape *tape;
  int count = 0;
  FLOW_TRY(flow_tape_begin(step->context, &tape));
  flow_status status = watch(tape, step, copies);
  if (status == FLOW_OK) status = write_out(step, copies, outputs);
  flow_tape_end(step->context, tape);
  for (int i = 0; i < step->output_count && status == FLOW_OK; i++) {
    if (!step->output_gradients[i] || step->outputs[i]->rank == 1) continue; /* {0}: what was not asked for */
    targets[count] = outputs[i];
    gradients[count++] = step->output_gradients[i];
  }
  if (status == FLOW_OK && count)
    status = flow_tape_gradients(step->context, tape, targets, gradients, count, sources, NULL, step->input_count, step->input_gradients);
  flow_tape_release(tape);
  release_all(outputs, MOST_OUTPUTS);
  return status;
}

static flow_status differentiate(flow_gradient_step *step)
{
  flow_tensor *copies[MOST_INPUTS] = { NULL }, *sources[MOST_INPUTS] = { NULL };
  flow_status status = copy_inputs(step, copies);
  for (int i = 0; i < step->input_count; i++) sources[i] = step->needed[i] ? copies[i] : NULL;
  if (status == FLOW_OK) status = differentiate_written(step, copies, sources);
  release_all(copies, MOST_INPUTS);
  return status;
}

/* Without steps the gradient ops give zeros, and hand the gradient of c on. */
flow_status flow_gradient_recurrent_gradient(flow_gradient_step *step)
{
  if (step->inputs[0]->shape[1] > 0) return differentiate(step);
  if (step->op == FLOW_OP_lstm_gradient && step->output_gradients[2])
    step->input_gradients[1] = flow_tensor_retain(step->output_gradients[2]);
  return FLOW_OK;
}

flow_status flow_gradient_lstm(flow_gradient_step *step)
{
  int plain = !step->output_gradients[2] || step->inputs[0]->shape[1] == 0;
  return plain ? flow_gradient_lstm_by_op(step) : differentiate(step);
}

flow_status flow_gradient_gru(flow_gradient_step *step)
{
  int plain = !step->output_gradients[1] || step->inputs[0]->shape[1] == 0;
  return plain ? flow_gradient_gru_by_op(step) : differentiate(step);
}
