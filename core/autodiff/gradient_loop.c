/* gradient_loop.c: the gradient of a loop is a loop that goes the other way. Its states are the gradients of the states, and the sums so
 * far of those of what the body closes over; its rows are the states before each round, the rows of that round, and the gradients of
 * what it gave. A round computes the body once more and differentiates it, so that only states are kept from round to round, however much
 * a round computes; it costs one more forward pass. The result is a loop like any other, which the same rule differentiates again. */
#include "autodiff/apply.h"
#include "autodiff/expression.h"
#include "graph/loop.h"
#include "graph/tape.h"

/* One gradient of a loop. Arrays are parts of one block, see flow_gradient_loop; a new loop has the states first, then the sums. */
typedef struct pass {
  flow_gradient_step *step;
  const flow_loop    *loop;
  int                 states, rows, results;             /* of the loop; results: without the next states */
  int                 wanted_states, wanted_closed;      /* states of the new loop */
  int                 rows_given;                        /* rows of it */
  flow_tensor       **first, **given, **inner, **after;  /* its first states and tensors of rows; a round's inputs and results */
  flow_tensor       **targets, **target_gradients, **sources, **found;      /* found: gradients, then the sources that are asked for */
  /* targets with a gradient so far; their tensors are references */
  int                 target_count;
} pass;

/* Only floats carry gradients: states and rows of integers, such as counters, go through a round without one. */
static int is_float(const flow_tensor *t) { return flow_dtype_is_float(t->dtype); }
static int is_wanted_state(const pass *p, int i) { return is_float(p->step->outputs[i]); }
static int is_wanted_input(const pass *p, int i) { return p->step->needed[i] && is_float(p->step->inputs[i]); }

/* *out: zeros of the shape and dtype of `like`, a new reference. */
static flow_status zeros_like(flow_context *context, const flow_tensor *like, flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *zeros = flow_express_broadcast_like(&e, flow_express_number(&e, like, 0), like);
  return flow_expression_take(&e, zeros, out);
}

/* The new loop's first states, new references, and tensors of rows, borrowed. The order of the states (gradients of states, then sums)
 * and of the rows (states before each round, rows of the loop, gradients of results, of histories) is what repeat_body, collect and
 * give rely on. */
static flow_status begin(pass *p)
{
  flow_gradient_step *step = p->step;
  int history = p->states + p->results;
  for (int i = 0; i < p->states; i++) {
    if (!is_wanted_state(p, i)) continue;
    flow_tensor **to = &p->first[p->wanted_states++];
    if (step->output_gradients[i]) *to = flow_tensor_retain(step->output_gradients[i]);
    else FLOW_TRY(zeros_like(step->context, step->outputs[i], to));
  }
  for (int i = p->states + p->rows; i < step->input_count; i++)
    if (is_wanted_input(p, i)) FLOW_TRY(zeros_like(step->context, step->inputs[i], &p->first[p->wanted_states + p->wanted_closed++]));
  for (int i = 0; i < p->states; i++) p->given[p->rows_given++] = step->outputs[history + i];
  for (int i = 0; i < p->rows; i++) p->given[p->rows_given++] = step->inputs[p->states + i];
  for (int i = p->states; i < history + p->states; i++)
    if (step->output_gradients[i]) p->given[p->rows_given++] = step->output_gradients[i];
  return FLOW_OK;
}

/* Inside the trace of a round: the body once more, recorded by the tape. map: [value of the body], work space. sources[i] is input i of
 * the body in this round; targets are the results through which a gradient comes, target_gradients what comes. */
static flow_status repeat_body(pass *p, flow_tape *tape, int *map)
{
  const flow_graph *body = p->loop->body;
  flow_tensor *const *rows = p->inner + p->wanted_states + p->wanted_closed;
  int gradients = p->states + p->rows, target = 0;
  for (int v = 0; v < body->value_count; v++) map[v] = -1;
  for (int i = 0; i < body->input_count; i++) {
    flow_tensor *stands_for = i < p->states + p->rows ? rows[i] : p->step->inputs[i];
    FLOW_TRY(flow_graph_operand(tape->graph, stands_for, &map[body->inputs[i]]));
    FLOW_TRY(flow_graph_tensor(tape->graph, map[body->inputs[i]], &p->sources[i]));
  }
  FLOW_TRY(flow_graph_copy_nodes(tape->graph, body, map, NULL, 0));
  for (int i = 0; i < p->loop->results; i++) {
    int value, is_state = i < p->states;
    if (is_state ? !is_wanted_state(p, i) : !p->step->output_gradients[i]) continue;
    p->target_gradients[p->target_count] = is_state ? p->inner[target++] : rows[gradients++];
    FLOW_TRY(flow_graph_copy_value(tape->graph, body, map, p->loop->values[i], &value));
    FLOW_TRY(flow_graph_tensor(tape->graph, value, &p->targets[p->target_count++]));
  }
  return FLOW_OK;
}

/* What a round makes of `sum`, or of nothing: sum + gradient. *gradient: new reference, or NULL. like: has the shape of the zeros that are
 * returned if both are NULL. */
static flow_status add(flow_context *context, flow_tensor *sum, flow_tensor *gradient, const flow_tensor *like, flow_tensor **out)
{
  if (sum && gradient) return flow_apply1(context, FLOW_OP_add, sum, gradient, NULL, NULL, out);
  if (!sum && !gradient) return zeros_like(context, like, out);
  *out = flow_tensor_retain(sum ? sum : gradient);
  return FLOW_OK;
}

/* The results of a round: gradients of states, with those of the states before it that something reads, sums, gradients of rows. *count
 * grows with each tensor of p->after that is there, so that a failure releases just those. */
static flow_status collect(pass *p, int *count)
{
  flow_context *context = p->step->context;
  int at = p->wanted_states + p->wanted_closed + p->states + p->rows, sum = p->wanted_states, made = 0;
  for (int i = p->states; i < p->loop->results; i++) at += p->step->output_gradients[i] != NULL;      /* before those of histories */
  for (int i = 0; i < p->states; i++) {
    flow_tensor *read = p->step->output_gradients[p->states + p->results + i] ? p->inner[at++] : NULL;
    if (!is_wanted_state(p, i)) continue;
    FLOW_TRY(add(context, read, p->found[i], p->sources[i], &p->after[made]));
    made = ++*count;
  }
  for (int i = p->states + p->rows; i < p->step->input_count; i++) {
    if (!is_wanted_input(p, i)) continue;
    FLOW_TRY(add(context, p->inner[sum++], p->found[i], NULL, &p->after[made]));
    made = ++*count;
  }
  for (int i = p->states; i < p->states + p->rows; i++) {
    if (!is_wanted_input(p, i)) continue;
    FLOW_TRY(add(context, NULL, p->found[i], p->sources[i], &p->after[made]));
    made = ++*count;
  }
  return FLOW_OK;
}

/* What a round of the gradient does, in its trace. *count: of p->after. */
static flow_status trace_round(pass *p, int *count)
{
  flow_context *context = p->step->context;
  flow_tape *tape;
  void *block;
  FLOW_TRY(flow_alloc(sizeof(int) * (size_t)(p->loop->body->value_count + 1), &block));
  flow_status status = flow_tape_begin(context, &tape);
  if (status == FLOW_OK) {
    status = repeat_body(p, tape, block);
    flow_tape_end(context, tape);
    int inputs = p->step->input_count;
    for (int i = 0; i < inputs && status == FLOW_OK; i++) {
      int wanted = i < p->states ? is_wanted_state(p, i) : is_wanted_input(p, i);
      p->found[inputs + i] = wanted ? p->sources[i] : NULL;
    }
    if (status == FLOW_OK && p->target_count)
      status = flow_tape_gradients(context, tape, p->targets, p->target_gradients, p->target_count, p->found + inputs, NULL, inputs,
                                   p->found);
    flow_tape_release(tape);
  }
  flow_free(block);
  return status == FLOW_OK ? collect(p, count) : status;
}

/* The gradients of the node's inputs, out of those of the new loop. */
static void give(pass *p, flow_tensor **made)
{
  flow_gradient_step *step = p->step;
  int state = 0, sum = p->wanted_states, row = p->wanted_states + p->wanted_closed;
  for (int i = 0; i < step->input_count; i++) {
    int is_state = i < p->states, is_row = !is_state && i < p->states + p->rows;
    if (is_state ? !is_wanted_state(p, i) : !is_wanted_input(p, i)) continue;
    step->input_gradients[i] = made[is_state ? state++ : is_row ? row++ : sum++];
  }
}

/* The new loop is traced between flow_loop_begin and flow_loop_end; on failure the trace is dropped. It goes over the rounds in the
 * other direction, and the gate, whose value before each round is in the history of states or in the rows, is one of its rows. */
static flow_status run(pass *p)
{
  flow_context *context = p->step->context;
  int count = 0, written = 0, states, inner;
  FLOW_TRY(begin(p));
  states = p->wanted_states + p->wanted_closed;
  inner = states + p->rows_given;
  FLOW_TRY(flow_loop_begin(context, p->first, states, p->given, p->rows_given, (double)p->loop->rounds, p->inner));
  flow_status status = p->loop->gate < 0 ? FLOW_OK : flow_loop_gate(context, states + p->loop->gate);
  if (status == FLOW_OK) status = trace_round(p, &count);
  flow_tensor **made = p->targets;      /* reused: it has room for them, and its contents are no longer needed */
  if (status != FLOW_OK) flow_trace_abort(context);
  for (int i = 0; i < p->target_count; i++) flow_tensor_release(p->targets[i]);
  p->target_count = 0;
  if (status == FLOW_OK) status = flow_loop_end(context, p->after, count, (double)p->loop->rounds, !p->loop->reverse, made, &written);
  if (status == FLOW_OK && written) status = flow_fail(FLOW_INTERNAL, "loop: its gradient writes variables");
  if (status == FLOW_OK) give(p, made);
  for (int i = 0; i < inner; i++) flow_tensor_release(p->inner[i]);
  return status;
}

static void release_all(flow_tensor **tensors, int count)
{
  for (int i = 0; i < count; i++) flow_tensor_release(tensors[i]);
}

/* Only in a trace: eagerly there are no loops. Every array has room for one tensor of each input and output of the node. */
flow_status flow_gradient_loop(flow_gradient_step *step)
{
  const flow_graph *graph = step->outputs[0]->graph;
  flow_loop *loop = flow_loop_retain(graph->loops[step->attributes->loop.number]);
  int inputs = step->input_count, outputs = step->output_count;
  size_t most = (size_t)inputs + (size_t)outputs + 1;
  void *block;
  flow_status status = flow_alloc_zero(sizeof(flow_tensor *) * 10 * most, &block);
  if (status != FLOW_OK) {
    flow_loop_release(loop);
    return status;
  }
  flow_tensor **room = block;      /* parts of `most`; inner and found take two */
  pass p = { .step = step, .loop = loop, .states = loop->states, .rows = loop->rows, .results = loop->results - loop->states,
             .first = room, .given = room + most, .inner = room + 2 * most, .after = room + 4 * most, .targets = room + 5 * most,
             .target_gradients = room + 6 * most, .sources = room + 7 * most, .found = room + 8 * most };
  status = run(&p);
  release_all(p.found, inputs);
  release_all(p.first, p.wanted_states + p.wanted_closed);
  release_all(p.after, (int)most);
  release_all(p.sources, inputs);
  flow_free(block);
  flow_loop_release(loop);
  return status;
}
