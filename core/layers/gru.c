/* gru.c: GRU (Cho et al. 2014). Gates update, reset, candidate: h = z h + (1 - z) k, where k reads r (h . w + b), or, without reset_after,
 * (r h) . w. */
#include "layers/recurrent.h"

static const flow_argument parameters[] = {
  { "units", FLOW_INTEGER, NULL, ">0" },
  FLOW_RECURRENT_GATES,
  FLOW_RECURRENT_PENALTIES,
  FLOW_RECURRENT_SEED,
  FLOW_RECURRENT_SEQUENCES,
  { "reset_after", FLOW_BOOLEAN, "true", NULL },
  FLOW_RECURRENT_ENDING
};

static int resets_after(const flow_layer *layer) { return flow_argument_boolean(layer->arguments, "reset_after"); }

/* weights' bias {3u} at `gate`. */
static flow_tensor *bias_of(flow_expression *e, const flow_recurrent_weights *weights, int gate, int64_t units)
{
  const flow_attributes part = { .slice = { .rank = 1, .begin = { gate * units }, .end = { (gate + 1) * units }, .step = { 1 } } };
  return flow_express(e, FLOW_OP_slice, weights->bias, NULL, NULL, &part);
}

/* One step from ops, for other activations than the usual ones and for recurrent dropout; flow_recurrent_cell has the contract. */
static void step(flow_expression *e, const flow_layer *layer, const flow_recurrent_weights *weights, flow_tensor *const *x,
                 flow_tensor **states)
{
  int64_t units = flow_argument_integer(layer->arguments, "units");
  flow_tensor *h = states[0], *product[3] = { NULL };
  for (int gate = 0; gate < (resets_after(layer) ? 3 : 2); gate++)
    product[gate] = e_add(e, flow_recurrent_product(e, weights, h, gate), bias_of(e, weights, gate, units));
  flow_tensor *z = flow_recurrent_gate(e, layer, e_add(e, x[0], product[0]));
  flow_tensor *r = flow_recurrent_gate(e, layer, e_add(e, x[1], product[1]));
  flow_tensor *inner = resets_after(layer) ? e_mul(e, r, product[2]) : flow_recurrent_product(e, weights, e_mul(e, r, h), 2);
  flow_tensor *k = flow_recurrent_activate(e, layer, e_add(e, x[2], inner));
  if (e->status == FLOW_OK) states[0] = e_add(e, e_mul(e, z, h), e_mul(e, e_sub(e, flow_express_number(e, z, 1), z), k));
}

/* With reset_after the bias has two rows: for the input's products, and for those of the state. */
static flow_status bias(flow_context *context, const flow_layer *layer, int64_t units, flow_tensor **initial)
{
  int64_t width = 3 * units, shape[2] = { 2, width };
  int after = resets_after(layer);
  return flow_layer_initialize(context, layer, "bias_initializer", after ? 2 : 1, after ? shape : &width, initial);
}

const flow_recurrent_cell flow_gru_steps = { .part = { "cell/vars", "gru_cell" }, .gates = 3, .states = 1,
                                             .op = FLOW_OP_gru, .own_masks = 1, .bias = bias, .step = step };

const flow_layer_class flow_layer_gru = {
  .name = "GRU",
  .positional = 24,
  .parameters = parameters,
  FLOW_RECURRENT_LAYER(flow_gru_steps, 1),
  .doc = "Gated recurrent unit: a state that is mixed with a candidate, step by step."
};
