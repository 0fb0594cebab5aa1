/* recurrent.h: what SimpleRNN, LSTM and GRU and their cells share: their arguments, variables and calls. The record of a layer names its
 * cell (flow_layer_class), which says how many gates and states there are, which op runs all steps with the usual activations, and what one
 * step is with others. */
#ifndef FLOW_LAYERS_RECURRENT_H
#define FLOW_LAYERS_RECURRENT_H

#include "layers/express.h"
#include "layers/layer.h"
#include "layers/recurrent_steps.h"

enum { FLOW_RECURRENT_MOST_GATES = 4 };

/* What the steps of one call have in common, borrowed from the call's expression. */
typedef struct flow_recurrent_weights {
  flow_tensor *gates[FLOW_RECURRENT_MOST_GATES];     /* recurrent kernel {u, u} of each */
  flow_tensor *masks[FLOW_RECURRENT_MOST_GATES];     /* recurrent dropout {n, u} of the state that each gate reads; NULL: none */
  flow_tensor *bias;                                 /* of the recurrent products {gates * u}; NULL: none */
} flow_recurrent_weights;

struct flow_recurrent_cell {
  flow_layer_part part;      /* the cell in a layer */
  int gates, states, op;
  int own_masks;             /* with recurrent dropout each gate has its own masks, as in Keras */
  /* The first values of the bias, a new reference, where use_bias is true. */
  flow_status (*bias)(flow_context *context, const flow_layer *layer, int64_t units, flow_tensor **initial);
  /* One step: x[gate] {n, u} is what the input adds, states[] become the next ones, borrowed from e. */
  void (*step)(flow_expression *e, const flow_layer *layer, const flow_recurrent_weights *weights, flow_tensor *const *x,
               flow_tensor **states);
};

extern const flow_recurrent_cell flow_simple_rnn_steps, flow_lstm_steps, flow_gru_steps;

/* The inputs of a call: the sequences, one state for each of the cell, a mask. Of a cell: those of one step, and its states. */
extern const char *const flow_recurrent_inputs_1[], *const flow_recurrent_inputs_2[];
extern const char *const flow_cell_inputs_1[], *const flow_cell_inputs_2[];
extern const flow_argument flow_recurrent_options[];

/* Whether the layer is a cell, which reads one step. */
int flow_recurrent_is_cell(const flow_layer *layer);

/* Parameters, in Keras' order, which differs between the layers. */
#define FLOW_RECURRENT_INITIALIZERS                                        \
  { "kernel_initializer", FLOW_INITIALIZER, "glorot_uniform", NULL },      \
  { "recurrent_initializer", FLOW_INITIALIZER, "orthogonal", NULL },       \
  { "bias_initializer", FLOW_INITIALIZER, "zeros", NULL }
#define FLOW_RECURRENT_GATES                                                                                     \
  { "activation", FLOW_ACTIVATION, "tanh", NULL }, { "recurrent_activation", FLOW_ACTIVATION, "sigmoid", NULL }, \
      { "use_bias", FLOW_BOOLEAN, "true", NULL }, FLOW_RECURRENT_INITIALIZERS
#define FLOW_RECURRENT_REGULARIZERS                                        \
  { "kernel_regularizer", FLOW_REGULARIZER, "null", NULL },                \
  { "recurrent_regularizer", FLOW_REGULARIZER, "null", NULL },             \
  { "bias_regularizer", FLOW_REGULARIZER, "null", NULL }
#define FLOW_RECURRENT_DROPOUTS                                            \
  { "kernel_constraint", FLOW_CONSTRAINT, "null", NULL },                  \
  { "recurrent_constraint", FLOW_CONSTRAINT, "null", NULL },               \
  { "bias_constraint", FLOW_CONSTRAINT, "null", NULL },                    \
  { "dropout", FLOW_NUMBER, "0", NULL },                                   \
  { "recurrent_dropout", FLOW_NUMBER, "0", NULL }
#define FLOW_RECURRENT_PENALTIES                                           \
  FLOW_RECURRENT_REGULARIZERS,                                             \
  { "activity_regularizer", FLOW_REGULARIZER, "null", NULL },              \
  FLOW_RECURRENT_DROPOUTS
#define FLOW_RECURRENT_SEED { "seed", FLOW_INTEGER, "null", NULL }
#define FLOW_RECURRENT_SEQUENCES                                           \
  { "return_sequences", FLOW_BOOLEAN, "false", NULL },                     \
  { "return_state", FLOW_BOOLEAN, "false", NULL },                         \
  { "go_backwards", FLOW_BOOLEAN, "false", NULL },                         \
  { "stateful", FLOW_BOOLEAN, "false", NULL },                             \
  { "unroll", FLOW_BOOLEAN, "false", NULL }
#define FLOW_RECURRENT_ENDING                                              \
  { "use_cudnn", FLOW_TEXT, "auto", "auto" },                              \
  { "zero_output_for_mask", FLOW_BOOLEAN, "false", NULL },                 \
  FLOW_LAYER_REST

/* What the records of layers and of cells have in common. states: 1 or 2. */
#define FLOW_RECURRENT_LAYER(steps, states)                                                                                             \
  .input_names = flow_recurrent_inputs_##states, .most_outputs = 1 + states, .options = flow_recurrent_options,                         \
  .build = flow_recurrent_build, .call_named = flow_recurrent_call, .outputs = flow_recurrent_outputs, .config = flow_recurrent_config, \
  .cell = &steps, .supports_masking = 1, .compute_mask = flow_recurrent_mask
#define FLOW_RECURRENT_CELL(steps, states)                                                                                                \
  .input_names = flow_cell_inputs_##states, .most_outputs = 1 + states, .options = flow_recurrent_options, .build = flow_recurrent_build, \
  .call_named = flow_cell_call, .cell = &steps

/* Variables of a layer; the bias is there if use_bias says so. */
enum { FLOW_RECURRENT_KERNEL, FLOW_RECURRENT_RECURRENT_KERNEL, FLOW_RECURRENT_BIAS };

/* Of layers and cells: makes kernel, recurrent kernel and bias. */
flow_status flow_recurrent_build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs);
/* The call: outputs[0] the sequence or its last step, then, with return_state, the states. */
flow_status flow_recurrent_call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs);
/* A cell's call, one step: outputs[0] is the first state, then come all states. */
flow_status flow_cell_call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs);
/* One, or, with return_state, the states, too. */
int         flow_recurrent_outputs(const flow_layer *layer);
/* A flow_layer_class's compute_mask: of sequences that of the input, else none. */
flow_status flow_recurrent_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out);
/* Keras' config: without use_cudnn. */
void        flow_recurrent_config(const flow_layer *layer, flow_json *config);

/* For steps: the state h as gate number `gate` reads it, times its kernel; and the layer's activations. */
flow_tensor *flow_recurrent_product(flow_expression *e, const flow_recurrent_weights *weights, flow_tensor *h, int gate);
flow_tensor *flow_recurrent_activate(flow_expression *e, const flow_layer *layer, flow_tensor *x);             /* "activation" */
flow_tensor *flow_recurrent_gate(flow_expression *e, const flow_layer *layer, flow_tensor *x);                 /* "recurrent_activation" */

#endif
