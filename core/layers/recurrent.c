/* recurrent.c: see recurrent.h.
 *
 * A call goes in four steps (run_all): dropout's draws are reserved; the input's share of all gates is computed for all steps at once,
 * since it does not depend on a state; the first states are found (flow_steps_begin); then come the steps, by one op where the layer is
 * a usual one (is_fused), else step by step by recurrent_steps.c. Gates lie side by side in the last axis of kernels, biases and shares,
 * in Keras' order: of LSTM i, f, c, o, of GRU z, r, h. keras/src/layers/rnn. */
#include "layers/recurrent.h"

#include <string.h>

#include "graph/loop.h"
#include "layers/config.h"

const char *const flow_recurrent_inputs_1[] = { "sequences", "initial_state[1]", "mask", NULL };
const char *const flow_recurrent_inputs_2[] = { "sequences", "initial_state[1]", "initial_state[2]", "mask", NULL };
const char *const flow_cell_inputs_1[] = { "inputs", "states[1]", NULL };
const char *const flow_cell_inputs_2[] = { "inputs", "states[1]", "states[2]", NULL };
const flow_argument flow_recurrent_options[] = { FLOW_ARGUMENTS_END };

/* ---- building -------------------------------------------------------------------------------------------------------------- */

int flow_recurrent_is_cell(const flow_layer *layer)
{
  return layer->class->cell && strcmp(layer->class->input_names[0], flow_cell_inputs_1[0]) == 0;
}

/* A cell reads one step, {batch, features}, a layer {batch, steps, features}; the features must be those of the kernel. */
static flow_status check_input(const flow_layer *layer, const flow_signature *input)
{
  if (flow_recurrent_is_cell(layer)) FLOW_TRY(flow_layer_check_rank(layer, input, 2, "{batch, features}", NULL));
  else FLOW_TRY(flow_layer_check_rank(layer, input, 3, "{batch, steps, features}", NULL));
  return flow_layer_check_channels(layer, input, "features");
}

/* The bias as its cell lays it out, with the initial values that the cell asks for (LSTM: unit_forget_bias). */
static flow_status add_bias(flow_context *context, flow_layer *layer)
{
  flow_tensor *initial;
  if (!flow_argument_boolean(layer->arguments, "use_bias")) return FLOW_OK;
  FLOW_TRY(layer->class->cell->bias(context, layer, flow_argument_integer(layer->arguments, "units"), &initial));
  flow_status status = flow_layer_adopt(context, layer, FLOW_RECURRENT_BIAS, "bias", "bias_initializer", initial, 1);
  flow_tensor_release(initial);
  return status;
}

/* kernel {features, gates * u}, recurrent_kernel {u, gates * u}, bias. Files keep the variables of a layer with those of its cell, as in
 * Keras (flow_layer_part): "lstm/cell/vars". What a failure leaves is the caller's to release (layer_variables.c). */
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
  for (int i = 0; i < layer->variable_count && !flow_recurrent_is_cell(layer); i++) layer->parts[i] = &layer->class->cell->part;
  return FLOW_OK;
}

/* most_outputs is one more than the states. */
int flow_recurrent_outputs(const flow_layer *layer)
{
  return flow_argument_boolean(layer->arguments, "return_state") ? layer->class->most_outputs : 1;
}

/* *out is a new reference. A single step, which is what return_sequences = false gives, has no mask. */
flow_status flow_recurrent_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out)
{
  (void)context; (void)inputs;
  int whole = flow_argument_boolean(layer->arguments, "return_sequences");
  *out = whole && count > 0 && masks[0] ? flow_tensor_retain(masks[0]) : NULL;
  return FLOW_OK;
}

/* use_cudnn chooses between ways that give the same result; Keras' config does not have it. */
void flow_recurrent_config(const flow_layer *layer, flow_json *config)
{
  flow_config_add_common(config, layer);
  flow_config_add_arguments(config, layer->class->parameters, layer->arguments);
  flow_json_remove(config, "use_cudnn");
}

/* ---- pieces ------------------------------------------------------------------------------------------------------------------ */

/* h {n, u}. Where no recurrent dropout is done, the gate's mask is NULL. */
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

/* A mask of the layer's; that of a cell is the same in all rounds of a loop. */
static flow_tensor *dropout_mask(flow_expression *e, flow_layer *layer, flow_tensor *x, double rate, flow_layer_draws draws, int index)
{
  if (e->status != FLOW_OK) return NULL;
  flow_graph *body = flow_recurrent_is_cell(layer) ? flow_loop_leave(e->context) : NULL;
  flow_tensor *mask = flow_steps_dropout(e, draws, x, rate, index);
  flow_loop_return(e->context, body);
  return mask;
}

/* The input's share of all gates {n, steps, gates * u}: x . kernel + bias, and what dropout does to it. One product for all steps and
 * gates, unless dropout gives each gate its own mask: then one for each gate. */
static flow_tensor *input_gates(flow_expression *e, flow_layer *layer, const flow_recurrent_cell *cell, flow_tensor *x, flow_tensor *bias,
                                int training, flow_layer_draws draws)
{
  flow_tensor *kernel = flow_express_variable(e, layer->variables[FLOW_RECURRENT_KERNEL]), *gates = NULL;
  double rate = training ? flow_steps_rate(layer, "dropout") : 0;
  int64_t units = flow_argument_integer(layer->arguments, "units");
  int each = rate > 0 && cell->own_masks && flow_argument_number(layer->arguments, "recurrent_dropout") > 0;
  flow_tensor *first = rate > 0 ? flow_steps_slice(e, x, 1, 0, 1) : NULL;
  for (int gate = 0; gate < (each ? cell->gates : 1); gate++) {
    flow_tensor *dropped = rate > 0 ? e_mul(e, x, dropout_mask(e, layer, first, rate, draws, gate)) : x;
    flow_tensor *part = each ? flow_steps_slice(e, kernel, 1, gate * units, (gate + 1) * units) : kernel;
    flow_tensor *product = flow_express(e, FLOW_OP_matmul, dropped, part, NULL, NULL);
    gates = gate ? flow_express(e, FLOW_OP_concat, gates, product, NULL, &(flow_attributes){ .axis = { 2 } }) : product;
  }
  return bias ? e_add(e, gates, bias) : gates;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------------------- */

/* One call on its way. */
typedef struct run {
  flow_steps                 steps;        /* x {n, steps, gates * u} */
  const flow_recurrent_cell *cell;
  flow_tensor               *bias;         /* of the recurrent products */
  int64_t                    units;
  flow_recurrent_weights     weights;
} run;

static int is_usual(const flow_layer *layer, const char *name, const char *activation)
{
  const char *chosen = flow_argument_text(layer->arguments, name);
  return !chosen || strcmp(chosen, activation) == 0;
}

/* Whether the cell's op does it. The ops know Keras' default activations and no recurrent dropout; everything else is done step by step
 * from ops. */
static int is_fused(const run *r)
{
  const flow_layer *layer = r->steps.layer;
  if (r->steps.training && flow_steps_rate(layer, "recurrent_dropout") > 0) return 0;
  return is_usual(layer, "activation", "tanh") && (r->cell->gates == 1 || is_usual(layer, "recurrent_activation", "sigmoid"));
}

/* By the op: states[] become the last ones; returns the sequence of h. history: what the gradient needs is kept only in training. */
static flow_tensor *run_op(flow_expression *e, const run *r, flow_tensor **states)
{
  const flow_steps *s = &r->steps;
  flow_tensor *kernel = flow_express_variable(e, s->layer->variables[FLOW_RECURRENT_RECURRENT_KERNEL]), *outputs[3];
  flow_tensor *inputs[5] = { s->x, kernel, states[0] };
  int count = 3;
  if (s->states == 2) inputs[count++] = states[1];
  if (r->cell->gates == 3) inputs[count++] = r->bias;
  if (s->mask) inputs[count++] = s->mask;
  flow_attributes attributes = { .recurrent = { .reverse = s->reverse, .history = s->training } };
  if (r->cell->gates == 3) attributes.recurrent.reset_after = flow_argument_boolean(s->layer->arguments, "reset_after");
  flow_express_all(e, r->cell->op, inputs, count, &attributes, outputs);
  states[0] = flow_steps_at(e, outputs[0], 1, s->reverse ? 0 : s->steps - 1);
  if (s->states == 2) states[1] = outputs[1];
  return outputs[0];
}

/* The recurrent kernel {units, gates units} cut into one kernel for each gate, and, while training with recurrent_dropout, a mask for
 * each gate. Draws of masks of the state come after those of the input. */
static flow_recurrent_weights weights_of(flow_expression *e, const run *r, flow_tensor *h)
{
  flow_layer *layer = r->steps.layer;
  flow_recurrent_weights weights = { .bias = r->bias };
  flow_tensor *kernel = flow_express_variable(e, layer->variables[FLOW_RECURRENT_RECURRENT_KERNEL]);
  double rate = r->steps.training ? flow_steps_rate(layer, "recurrent_dropout") : 0;
  for (int gate = 0; gate < r->cell->gates; gate++) {
    weights.gates[gate] = flow_steps_slice(e, kernel, 1, gate * r->units, (gate + 1) * r->units);
    if (rate > 0) weights.masks[gate] = dropout_mask(e, layer, h, rate, r->steps.draws, FLOW_RECURRENT_MOST_GATES + gate);
  }
  return weights;
}

/* A flow_steps' step: x {n, gates * u} holds the shares of the gates. */
static void one_step(flow_expression *e, const flow_steps *s, const void *self, flow_tensor *x, flow_tensor **states)
{
  const run *r = self;
  flow_tensor *parts[FLOW_RECURRENT_MOST_GATES];
  for (int gate = 0; gate < r->cell->gates; gate++) parts[gate] = flow_steps_slice(e, x, 1, gate * r->units, (gate + 1) * r->units);
  if (e->status == FLOW_OK) r->cell->step(e, s->layer, &r->weights, parts, states);
}

/* ---- the call ---------------------------------------------------------------------------------------------------------------------- */

/* The bias of the input's gates in *input, and that of the recurrent products: GRU's has a row for each. */
static flow_tensor *read_bias(flow_expression *e, const run *r, flow_tensor *like, flow_tensor **input)
{
  flow_variable *variable = r->steps.layer->variables[FLOW_RECURRENT_BIAS];
  const int64_t width = r->cell->gates * r->units;
  flow_tensor *bias = variable ? flow_express_variable(e, variable) : NULL;
  *input = bias;
  if (r->cell->gates != 3 || e->status != FLOW_OK) return NULL;
  const flow_attributes shape = { .shape = { .rank = 1, .dims = { width } } };
  if (!bias || bias->rank == 1) return flow_express(e, FLOW_OP_broadcast_to, flow_express_number(e, like, 0), NULL, NULL, &shape);
  *input = flow_express_reshape(e, flow_steps_slice(e, bias, 0, 0, 1), 1, &width);
  return flow_express_reshape(e, flow_steps_slice(e, bias, 0, 1, 2), 1, &width);
}

/* Runs the steps of x {n, steps, features}; states[] become the last ones; returns the sequence of h. */
static flow_tensor *run_all(flow_expression *e, run *r, flow_tensor *x, flow_tensor *const *given, flow_tensor **states)
{
  flow_steps *s = &r->steps;
  flow_tensor *bias;
  int drops = flow_steps_rate(s->layer, "dropout") > 0 || flow_steps_rate(s->layer, "recurrent_dropout") > 0;
  if (s->training && drops) s->draws = flow_express_draw(e, s->layer);
  r->bias = read_bias(e, r, x, &bias);
  s->x = input_gates(e, s->layer, r->cell, x, bias, s->training, s->draws);
  flow_steps_begin(e, s, given, s->x, 2, (int64_t[]){ x->shape[0], r->units }, states);
  if (e->status != FLOW_OK) return NULL;
  if (is_fused(r)) return run_op(e, r, states);
  r->weights = weights_of(e, r, states[0]);
  s->step = one_step;
  s->self = r;
  return flow_steps_run(e, s, states);
}

/* A cell is a layer over one step, {n, features} as {n, 1, features}. */
flow_status flow_cell_call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  const flow_recurrent_cell *cell = layer->class->cell;
  flow_tensor *x = call->inputs[0], *states[FLOW_STEPS_MOST_STATES];
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(check_input(layer, &input));
  flow_expression e = flow_expression_of(context);
  run r = { .steps = { .layer = layer, .steps = 1, .states = cell->states, .training = call->training }, .cell = cell,
            .units = flow_argument_integer(layer->arguments, "units") };
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
  flow_tensor *x = call->inputs[0], *states[FLOW_STEPS_MOST_STATES];
  flow_signature input = flow_signature_of(x);
  FLOW_TRY(check_input(layer, &input));
  FLOW_TRY(flow_steps_check(layer, x, "{batch, steps, features}"));
  flow_expression e = flow_expression_of(context);
  run r = { .steps = flow_steps_of_call(&e, layer, call, cell->states), .cell = cell,
            .units = flow_argument_integer(layer->arguments, "units") };
  flow_tensor *sequence = run_all(&e, &r, x, call->inputs + 1, states);
  return flow_steps_end(&e, &r.steps, sequence, states, outputs);
}
