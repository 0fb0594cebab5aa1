/* recurrent.c: see recurrent.h. */
#include "layers/recurrent.h"

#include <string.h>

#include "autodiff/apply.h"
#include "graph/loop.h"
#include "layers/attention.h"
#include "layers/config.h"

const char *const flow_recurrent_inputs_1[] = { "sequences", "initial_state[1]", "mask", NULL };
const char *const flow_recurrent_inputs_2[] = { "sequences", "initial_state[1]", "initial_state[2]", "mask", NULL };
const char *const flow_cell_inputs_1[] = { "inputs", "states[1]", NULL };
const char *const flow_cell_inputs_2[] = { "inputs", "states[1]", "states[2]", NULL };
const flow_argument flow_recurrent_options[] = { FLOW_ARGUMENTS_END };

/* ---- building -------------------------------------------------------------------------------------------------------------- */

/* Whether a record is a cell, which reads one step. */
static int is_cell(const flow_layer *layer) { return strcmp(layer->class->input_names[0], flow_cell_inputs_1[0]) == 0; }

flow_status flow_cell_check(flow_layer *layer)
{
  static const char *const positive[] = { "units", NULL };
  return flow_layer_check_positive(layer, positive);
}

flow_status flow_recurrent_check(flow_layer *layer)
{
  FLOW_TRY(flow_cell_check(layer));
  if (flow_argument_boolean(layer->arguments, "stateful"))
    return flow_layer_fail(layer, "stateful is not supported: give the last call's states as initial_state, and ask for them with "
                           "return_state");
  return FLOW_OK;
}

static flow_status check_input(const flow_layer *layer, const flow_signature *input)
{
  if (is_cell(layer)) FLOW_TRY(flow_layer_check_rank(layer, input, 2, "{batch, features}", NULL));
  else FLOW_TRY(flow_layer_check_rank(layer, input, 3, "{batch, steps, features}", NULL));
  return flow_layer_check_channels(layer, input, "features");
}

static flow_status add_bias(flow_context *context, flow_layer *layer)
{
  flow_tensor *initial;
  if (!flow_argument_boolean(layer->arguments, "use_bias")) return FLOW_OK;
  FLOW_TRY(layer->class->cell->bias(context, layer, flow_argument_integer(layer->arguments, "units"), &initial));
  flow_status status = flow_layer_adopt(context, layer, FLOW_RECURRENT_BIAS, "bias", "bias_initializer", initial, 1);
  flow_tensor_release(initial);
  return status;
}

flow_status flow_recurrent_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count;
  FLOW_TRY(check_input(layer, inputs));
  int64_t units = flow_argument_integer(layer->arguments, "units");
  int64_t shape[2] = { inputs->dims[inputs->rank - 1], layer->class->cell->gates * units };
  FLOW_TRY(flow_layer_add_variable(context, layer, FLOW_RECURRENT_KERNEL, "kernel", "kernel_initializer", 2, shape, 1));
  shape[0] = units;
  FLOW_TRY(flow_layer_add_variable(context, layer, FLOW_RECURRENT_RECURRENT_KERNEL, "recurrent_kernel", "recurrent_initializer", 2, shape,
                                   1));
  FLOW_TRY(add_bias(context, layer));
  for (int i = 0; i < layer->variable_count && !is_cell(layer); i++) layer->groups[i] = "cell";
  return FLOW_OK;
}

int flow_recurrent_outputs(const flow_layer *layer)
{
  return flow_argument_boolean(layer->arguments, "return_state") ? layer->class->most_outputs : 1;
}

flow_status flow_recurrent_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out)
{
  (void)context; (void)inputs;
  int whole = flow_argument_boolean(layer->arguments, "return_sequences");
  *out = whole && count > 0 && masks[0] ? flow_tensor_retain(masks[0]) : NULL;
  return FLOW_OK;
}

void flow_recurrent_config(const flow_layer *layer, flow_json *config)
{
  flow_config_add_common(config, layer);
  flow_config_add_arguments(config, layer->class->parameters, layer->arguments);
  flow_json_remove(config, "use_cudnn");
}

/* ---- pieces ------------------------------------------------------------------------------------------------------------------ */

flow_tensor *flow_recurrent_product(flow_expression *e, const flow_recurrent_weights *weights, flow_tensor *h, int gate)
{
  if (weights->masks[gate]) h = e_mul(e, h, weights->masks[gate]);
  return flow_express(e, FLOW_OP_matmul, h, weights->gates[gate], NULL, NULL);
}

flow_tensor *flow_recurrent_activate(flow_expression *e, const flow_layer *layer, flow_tensor *x)
{
  return flow_express_activation(e, flow_argument_text(layer->arguments, "activation"), x);
}

flow_tensor *flow_recurrent_gate(flow_expression *e, const flow_layer *layer, flow_tensor *x)
{
  return flow_express_activation(e, flow_argument_text(layer->arguments, "recurrent_activation"), x);
}

/* x[begin:end] along one axis, a slice of another along a second one, if that is not -1. */
static flow_tensor *take(flow_expression *e, flow_tensor *x, int axis, int64_t begin, int64_t end, int second, int64_t from, int64_t to)
{
  if (e->status != FLOW_OK || !x) return NULL;
  flow_attributes attributes = { .slice = { .rank = x->rank } };
  for (int i = 0; i < x->rank; i++) {
    attributes.slice.begin[i] = i == axis ? begin : i == second ? from : 0;
    attributes.slice.end[i] = i == axis ? end : i == second ? to : INT64_MAX / 2;
    attributes.slice.step[i] = 1;
  }
  return flow_express(e, FLOW_OP_slice, x, NULL, NULL, &attributes);
}

/* Step t of {n, steps, ...} without the axis of steps; from..to: of the last axis, to 0: all. */
static flow_tensor *step_of(flow_expression *e, flow_tensor *x, int64_t t, int64_t from, int64_t to)
{
  flow_tensor *part = take(e, x, 1, t, t + 1, to ? 2 : -1, from, to);
  if (!part) return NULL;
  return flow_express_reshape(e, part, 2, (int64_t[]){ part->shape[0], part->shape[2] });
}

/* {n, steps, u} with the steps in the other order. */
static flow_tensor *flip(flow_expression *e, flow_tensor *x)
{
  const flow_attributes swap = { .transpose = { 3, { 1, 0, 2 } } };
  if (e->status != FLOW_OK || x->shape[1] < 2) return x;
  int64_t steps = x->shape[1];
  flow_tensor *order = NULL;
  flow_status status = flow_tensor_new(FLOW_INT64, 1, &steps, &order);
  for (int64_t i = 0; status == FLOW_OK && i < steps; i++) ((int64_t *)flow_tensor_data(order))[i] = steps - 1 - i;
  order = flow_express_keep(e, status, order);
  flow_tensor *by_steps = flow_express(e, FLOW_OP_transpose, x, NULL, NULL, &swap);
  flow_tensor *turned = order ? flow_express(e, FLOW_OP_gather, by_steps, order, NULL, NULL) : NULL;
  return turned ? flow_express(e, FLOW_OP_transpose, turned, NULL, NULL, &swap) : NULL;
}

/* ---- dropout: one mask for all steps --------------------------------------------------------------------------------------------- */

static double rate_of(const flow_layer *layer, const char *name)
{
  double rate = flow_argument_number(layer->arguments, name);
  return rate > 0 && rate < 1 ? rate : 0;      /* as Keras: 1 drops nothing */
}

/* A mask in the shape of x; `index` tells the layer's masks apart. That of a cell is the same in all rounds of a loop. */
static flow_tensor *dropout_mask(flow_expression *e, flow_layer *layer, flow_tensor *x, double rate, uint64_t seed, int index)
{
  flow_attributes dropout = { .dropout = { .rate = rate, .seed = seed, .stream = layer->stream + (uint64_t)index } };
  if (e->status != FLOW_OK) return NULL;
  flow_graph *body = is_cell(layer) ? flow_loop_leave(e->context) : NULL;
  flow_tensor *ones = flow_express_broadcast_like(e, flow_express_number(e, x, 1), x);
  flow_tensor *mask = flow_express(e, FLOW_OP_dropout, ones, NULL, NULL, &dropout);
  flow_loop_return(e->context, body);
  return mask;
}

/* The input's share of all gates {n, steps, gates * u}: x . kernel + bias, and what dropout does to it. */
static flow_tensor *input_gates(flow_expression *e, flow_layer *layer, const flow_recurrent_cell *cell, flow_tensor *x, flow_tensor *bias,
                                int training, uint64_t seed)
{
  flow_tensor *kernel = flow_express_variable(e, layer->variables[FLOW_RECURRENT_KERNEL]), *gates = NULL;
  double rate = training ? rate_of(layer, "dropout") : 0;
  int64_t units = flow_argument_integer(layer->arguments, "units");
  int each = rate > 0 && cell->own_masks && flow_argument_number(layer->arguments, "recurrent_dropout") > 0;
  flow_tensor *first = rate > 0 ? take(e, x, 1, 0, 1, -1, 0, 0) : NULL;
  for (int gate = 0; gate < (each ? cell->gates : 1); gate++) {
    flow_tensor *dropped = rate > 0 ? e_mul(e, x, dropout_mask(e, layer, first, rate, seed, gate)) : x;
    flow_tensor *part = each ? take(e, kernel, 1, gate * units, (gate + 1) * units, -1, 0, 0) : kernel;
    flow_tensor *product = flow_express(e, FLOW_OP_matmul, dropped, part, NULL, NULL);
    gates = gate ? flow_express(e, FLOW_OP_concat, gates, product, NULL, &(flow_attributes){ .axis = { 2 } }) : product;
  }
  return bias ? e_add(e, gates, bias) : gates;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------------------- */

/* One call on its way. */
typedef struct run {
  flow_layer                *layer;
  const flow_recurrent_cell *cell;
  flow_tensor               *x;            /* {n, steps, gates * u} */
  flow_tensor               *mask;         /* bool {n, steps}, or NULL */
  flow_tensor               *bias;         /* of the recurrent products */
  int64_t                    steps, units;
  int                        reverse, training, has_state;
  int                        loops;        /* several steps are a loop of the plan that is traced */
  uint64_t                   seed;
} run;

static int is_usual(const flow_layer *layer, const char *name, const char *activation)
{
  const char *chosen = flow_argument_text(layer->arguments, name);
  return !chosen || strcmp(chosen, activation) == 0;
}

/* Whether the cell's op does it. */
static int is_fused(const run *r)
{
  if (r->training && rate_of(r->layer, "recurrent_dropout") > 0) return 0;
  return is_usual(r->layer, "activation", "tanh") && (r->cell->gates == 1 || is_usual(r->layer, "recurrent_activation", "sigmoid"));
}

/* By the op: states[] become the last ones; returns the sequence of h. */
static flow_tensor *run_op(flow_expression *e, const run *r, flow_tensor **states)
{
  flow_tensor *kernel = flow_express_variable(e, r->layer->variables[FLOW_RECURRENT_RECURRENT_KERNEL]), *outputs[3];
  flow_tensor *inputs[5] = { r->x, kernel, states[0] };
  int count = 3;
  if (r->cell->states == 2) inputs[count++] = states[1];
  if (r->cell->gates == 3) inputs[count++] = r->bias;
  if (r->mask) inputs[count++] = r->mask;
  flow_attributes attributes = { .recurrent = { .reverse = r->reverse, .history = r->training } };
  if (r->cell->gates == 3) attributes.recurrent.reset_after = flow_argument_boolean(r->layer->arguments, "reset_after");
  flow_express_all(e, r->cell->op, inputs, count, &attributes, outputs);
  states[0] = step_of(e, outputs[0], r->reverse ? 0 : r->steps - 1, 0, 0);
  if (r->cell->states == 2) states[1] = outputs[1];
  return outputs[0];
}

static flow_recurrent_weights weights_of(flow_expression *e, const run *r, flow_tensor *h)
{
  flow_recurrent_weights weights = { .bias = r->bias };
  flow_tensor *kernel = flow_express_variable(e, r->layer->variables[FLOW_RECURRENT_RECURRENT_KERNEL]);
  double rate = r->training ? rate_of(r->layer, "recurrent_dropout") : 0;
  for (int gate = 0; gate < r->cell->gates; gate++) {
    weights.gates[gate] = take(e, kernel, 1, gate * r->units, (gate + 1) * r->units, -1, 0, 0);
    if (rate > 0) weights.masks[gate] = dropout_mask(e, r->layer, h, rate, r->seed, FLOW_RECURRENT_MOST_GATES + gate);
  }
  return weights;
}

/* What a step makes of states[], from the shares of its gates {n, gates * u} and its mask, a bool for each row, or NULL. */
static void one_step(flow_expression *e, const run *r, const flow_recurrent_weights *weights, flow_tensor *gates, flow_tensor *mask,
                     flow_tensor **states)
{
  flow_tensor *x[FLOW_RECURRENT_MOST_GATES], *before[FLOW_RECURRENT_MOST_STATES];
  for (int gate = 0; gate < r->cell->gates; gate++) x[gate] = take(e, gates, 1, gate * r->units, (gate + 1) * r->units, -1, 0, 0);
  for (int i = 0; i < r->cell->states; i++) before[i] = states[i];
  if (e->status == FLOW_OK) r->cell->step(e, r->layer, weights, x, states);
  if (mask && e->status == FLOW_OK) mask = flow_express_reshape(e, mask, 2, (int64_t[]){ states[0]->shape[0], 1 });
  for (int i = 0; i < r->cell->states && mask && e->status == FLOW_OK; i++) states[i] = e_where(e, mask, states[i], before[i]);
}

/* The same with new references in next[]. */
static flow_status make_step(flow_context *context, const run *r, const flow_recurrent_weights *weights, flow_tensor *gates,
                             flow_tensor *mask, flow_tensor *const *states, flow_tensor **next)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *changed[FLOW_RECURRENT_MOST_STATES];
  for (int i = 0; i < r->cell->states; i++) changed[i] = states[i];
  one_step(&e, r, weights, gates, mask, changed);
  for (int i = 0; i < r->cell->states; i++) next[i] = e.status == FLOW_OK ? flow_tensor_retain(changed[i]) : NULL;
  return flow_expression_end(&e);
}

/* In a trace: the steps as a loop of its plan. */
static flow_tensor *run_loop(flow_expression *e, const run *r, const flow_recurrent_weights *weights, flow_tensor **states)
{
  enum { MOST = FLOW_RECURRENT_MOST_STATES + 2 };
  const flow_attributes by_steps = { .transpose = { 3, { 1, 0, 2 } } }, mask_by_steps = { .transpose = { 2, { 1, 0 } } };
  int count = r->cell->states, rows = r->mask ? 2 : 1, written = 0;
  flow_tensor *given[2], *inner[MOST] = { NULL }, *next[MOST] = { NULL }, *made[MOST] = { NULL };
  given[0] = flow_express(e, FLOW_OP_transpose, r->x, NULL, NULL, &by_steps);
  given[1] = r->mask ? flow_express(e, FLOW_OP_transpose, r->mask, NULL, NULL, &mask_by_steps) : NULL;
  if (e->status == FLOW_OK) e->status = flow_loop_begin(e->context, states, count, given, rows, (double)r->steps, inner);
  if (e->status != FLOW_OK) return NULL;
  e->status = make_step(e->context, r, weights, inner[count], inner[count + 1], inner, next);
  if (e->status != FLOW_OK) flow_trace_abort(e->context);
  if (next[0]) next[count] = flow_tensor_retain(next[0]);
  if (e->status == FLOW_OK) e->status = flow_loop_end(e->context, next, count + 1, (double)r->steps, r->reverse, made, &written);
  if (e->status == FLOW_OK && written) e->status = flow_layer_fail(r->layer, "a step writes variables");
  flow_tensors_release(inner, count + rows);
  flow_tensors_release(next, count + 1);
  for (int i = 0; i < count; i++) states[i] = flow_express_keep(e, e->status, made[i]);
  flow_tensor *sequence = flow_express_keep(e, e->status, made[count]);
  return sequence ? flow_express(e, FLOW_OP_transpose, sequence, NULL, NULL, &by_steps) : NULL;
}

/* Step by step, for other activations and recurrent dropout: as run_op. */
static flow_tensor *run_steps(flow_expression *e, const run *r, flow_tensor **states)
{
  flow_tensor *next[FLOW_RECURRENT_MOST_STATES] = { NULL }, *sequence = NULL;
  flow_recurrent_weights weights = weights_of(e, r, states[0]);
  void *block;
  if (e->status != FLOW_OK) return NULL;
  if (r->loops) return run_loop(e, r, &weights, states);
  e->status = flow_alloc(sizeof(flow_tensor *) * (size_t)r->steps, &block);
  if (e->status != FLOW_OK) return NULL;
  flow_tensor **list = block, *current[FLOW_RECURRENT_MOST_STATES];
  int64_t done = 0;
  memset(list, 0, sizeof *list * (size_t)r->steps);
  for (int i = 0; i < r->cell->states; i++) current[i] = flow_tensor_retain(states[i]);
  for (; done < r->steps && e->status == FLOW_OK; done++) {
    int64_t t = r->reverse ? r->steps - 1 - done : done;
    flow_expression step = flow_expression_of(e->context);
    flow_tensor *mask = r->mask ? take(&step, r->mask, 1, t, t + 1, -1, 0, 0) : NULL, *gates = step_of(&step, r->x, t, 0, 0);
    if (step.status == FLOW_OK) step.status = make_step(e->context, r, &weights, gates, mask, current, next);
    e->status = flow_expression_end(&step);
    for (int i = 0; i < r->cell->states && e->status == FLOW_OK; i++) {
      flow_tensor_release(current[i]);
      current[i] = next[i];
    }
    if (e->status != FLOW_OK) break;
    const flow_attributes with_axis = { .shape = { .rank = 3, .dims = { current[0]->shape[0], 1, r->units } } };
    e->status = flow_apply(e->context, FLOW_OP_reshape, current, 1, &with_axis, &list[t]);
  }
  if (e->status == FLOW_OK) {
    flow_status status = flow_apply(e->context, FLOW_OP_concat, list, (int)r->steps, &(flow_attributes){ .axis = { 1 } }, &sequence);
    sequence = flow_express_keep(e, status, sequence);
  }
  for (int64_t t = 0; t < r->steps; t++) flow_tensor_release(list[t]);
  for (int i = 0; i < r->cell->states; i++) states[i] = flow_express_keep(e, e->status, current[i]);
  flow_free(block);
  return sequence;
}

/* ---- the call ---------------------------------------------------------------------------------------------------------------------- */

/* 0 {n, u} in the dtype of x. */
static flow_tensor *zero_state(flow_expression *e, const run *r)
{
  if (e->status != FLOW_OK) return NULL;
  const flow_attributes shape = { .shape = { .rank = 2, .dims = { r->x->shape[0], r->units } } };
  return flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, r->x, 0), NULL, NULL, &shape);
}

/* Steps that a mask leaves out give what the step before them gave, 0 before the first that it does not, or always 0. */
static flow_tensor *mask_sequence(flow_expression *e, const run *r, flow_tensor *sequence)
{
  flow_tensor *kept = r->mask;
  int zero = flow_argument_boolean(r->layer->arguments, "zero_output_for_mask");
  if (e->status != FLOW_OK || !r->mask || (!zero && !r->has_state)) return sequence;
  if (!zero) {      /* how many steps up to this one the mask does not leave out */
    flow_tensor *band = flow_express_cast(e, flow_attention_band(e, r->steps, r->steps, 1, 0), FLOW_FLOAT32);
    const flow_attributes turned = { .matmul = { .transpose_b = !r->reverse } };
    kept = flow_express(e, FLOW_OP_matmul, flow_express_cast(e, r->mask, FLOW_FLOAT32), band, NULL, &turned);
    kept = kept ? e_gt(e, kept, flow_express_number(e, kept, 0)) : NULL;
  }
  if (e->status != FLOW_OK) return NULL;
  kept = flow_express_reshape(e, kept, 3, (int64_t[]){ kept->shape[0], r->steps, 1 });
  return e->status == FLOW_OK ? e_where(e, kept, sequence, flow_express_number(e, sequence, 0)) : NULL;
}

/* The bias of the input's gates in *input, and that of the recurrent products: GRU's has a row for each. */
static flow_tensor *read_bias(flow_expression *e, const run *r, flow_tensor *like, flow_tensor **input)
{
  flow_variable *variable = r->layer->variables[FLOW_RECURRENT_BIAS];
  const int64_t width = r->cell->gates * r->units;
  flow_tensor *bias = variable ? flow_express_variable(e, variable) : NULL;
  *input = bias;
  if (r->cell->gates != 3 || e->status != FLOW_OK) return NULL;
  const flow_attributes shape = { .shape = { .rank = 1, .dims = { width } } };
  if (!bias || bias->rank == 1) return flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, like, 0), NULL, NULL, &shape);
  *input = flow_express_reshape(e, take(e, bias, 0, 0, 1, -1, 0, 0), 1, &width);
  return flow_express_reshape(e, take(e, bias, 0, 1, 2, -1, 0, 0), 1, &width);
}

/* Only sizes that are known can be stepped through, and one step is the least. */
static flow_status check_steps(const flow_layer *layer, const flow_tensor *x)
{
  if (x->shape[1] > 0 && x->shape[1] <= INT32_MAX) return FLOW_OK;
  return flow_layer_fail(layer, "input has shape %s, expected one step or more {batch, steps, features}", flow_tensor_shape_text(x));
}

/* Runs the steps of x {n, steps, features}; states[] become the last ones; returns the sequence of h. */
static flow_tensor *run_all(flow_expression *e, run *r, flow_tensor *x, flow_tensor *const *given, flow_tensor **states)
{
  flow_tensor *bias;
  int drops = rate_of(r->layer, "dropout") > 0 || rate_of(r->layer, "recurrent_dropout") > 0;
  if (r->training && drops) r->seed = flow_layer_seed(e->context, r->layer);
  r->bias = read_bias(e, r, x, &bias);
  r->x = input_gates(e, r->layer, r->cell, x, bias, r->training, r->seed);
  for (int i = 0; i < r->cell->states; i++) {
    if (given[i]) r->has_state = 1;
    states[i] = given[i] ? flow_express_cast(e, given[i], e->status == FLOW_OK ? r->x->dtype : given[i]->dtype) : zero_state(e, r);
  }
  if (e->status != FLOW_OK) return NULL;
  return is_fused(r) ? run_op(e, r, states) : run_steps(e, r, states);
}

flow_status flow_cell_call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  const flow_recurrent_cell *cell = layer->class->cell;
  flow_tensor *x = call->inputs[0], *states[FLOW_RECURRENT_MOST_STATES];
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(check_input(layer, &input));
  flow_expression e = flow_expression_of(context);
  run r = { .layer = layer, .cell = cell, .steps = 1, .units = flow_argument_integer(layer->arguments, "units"),
            .training = call->training };
  flow_tensor *one = flow_express_reshape(&e, x, 3, (int64_t[]){ x->shape[0], 1, x->shape[1] });
  if (e.status == FLOW_OK) run_all(&e, &r, one, call->inputs + 1, states);
  if (e.status == FLOW_OK) {
    outputs[0] = flow_tensor_retain(states[0]);
    for (int i = 0; i < cell->states; i++) outputs[1 + i] = flow_tensor_retain(states[i]);
  }
  return flow_expression_end(&e);
}

flow_status flow_recurrent_call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  const flow_recurrent_cell *cell = layer->class->cell;
  flow_tensor *x = call->inputs[0], *states[FLOW_RECURRENT_MOST_STATES];
  const flow_arguments *arguments = layer->arguments;
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(check_input(layer, &input));
  FLOW_TRY(check_steps(layer, x));
  flow_expression e = flow_expression_of(context);
  run r = { .layer = layer, .cell = cell, .steps = x->shape[1], .units = flow_argument_integer(arguments, "units"),
            .reverse = flow_argument_boolean(arguments, "go_backwards"), .training = call->training };
  r.loops = r.steps > 1 && x->graph && !flow_argument_boolean(arguments, "unroll");
  r.mask = call->inputs[1 + cell->states];
  if (r.mask) r.mask = flow_express_cast(&e, r.mask, FLOW_BOOL);
  flow_tensor *sequence = run_all(&e, &r, x, call->inputs + 1, states);
  flow_tensor *y = mask_sequence(&e, &r, sequence);
  if (!flow_argument_boolean(arguments, "return_sequences")) y = step_of(&e, y, r.reverse ? 0 : r.steps - 1, 0, 0);
  else if (r.reverse) y = flip(&e, y);
  if (e.status == FLOW_OK) {
    outputs[0] = flow_tensor_retain(y);
    for (int i = 0; i < cell->states && flow_argument_boolean(arguments, "return_state"); i++)
      outputs[1 + i] = flow_tensor_retain(states[i]);
  }
  return flow_expression_end(&e);
}
