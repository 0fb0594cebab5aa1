/* embedding.c: Embedding: rows of a table {input_dim, output_dim} by their index, from 0; an index that is not in the table is an error.
 * Any shape {...} of indices gives {..., output_dim}. Input of another dtype is cast to int32, as in Keras. With mask_zero the output
 * carries a mask that leaves out index 0. The gradient of the table adds up the rows that were read (ops/rules/gather.c). */
#include "layers/express.h"
#include "layers/layer.h"
#include "layers/quantization.h"

static const flow_argument parameters[] = {
  { "input_dim", FLOW_INTEGER, NULL, ">0" },
  { "output_dim", FLOW_INTEGER, NULL, ">0" },
  { "embeddings_initializer", FLOW_INITIALIZER, "random_uniform", NULL },
  { "embeddings_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "embeddings_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "mask_zero", FLOW_BOOLEAN, "false", NULL },
  { "activity_regularizer", FLOW_REGULARIZER, "null", NULL },
  FLOW_LAYER_REST
};

static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count; (void)inputs;
  const int64_t shape[2] = { flow_argument_integer(layer->arguments, "input_dim"), flow_argument_integer(layer->arguments, "output_dim") };
  return flow_layer_add_variable(context, layer, 0, "embeddings", "embeddings_initializer", 2, shape, 1);
}

static flow_status call(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, int count, int training, flow_tensor **out)
{
  (void)count; (void)training;
  flow_expression e = flow_expression_of(context);
  flow_tensor *indices = flow_express_indices(&e, inputs[0]);
  flow_tensor *table = flow_express_variable(&e, layer->variables[0]);
  flow_tensor *rows = flow_express(&e, FLOW_OP_gather, table, indices, NULL, NULL);
  if (layer->quantizing == FLOW_QUANTIZED_BY_ROW) rows = flow_quantization_round_rows(&e, rows);
  return flow_expression_take(&e, rows, out);
}

/* With mask_zero the index 0 stands for padding. */
static flow_status compute_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out)
{
  (void)masks; (void)count;
  if (!flow_argument_boolean(layer->arguments, "mask_zero")) return FLOW_OK;
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, e_ne(&e, inputs[0], flow_express_number(&e, inputs[0], 0)), out);
}

/* Each row has its scale. */
static int scale_axes(const flow_layer *layer, const flow_variable *kernel, int axes[FLOW_MAX_RANK])
{
  (void)layer;
  (void)kernel;
  axes[0] = 0;
  return 1;
}

const flow_layer_class flow_layer_embedding = {
  .name = "Embedding",
  .positional = 6,
  .parameters = parameters,
  .build = build,
  .call = call,
  .supports_masking = 1,
  .compute_mask = compute_mask,
  .quantizes = 1u << FLOW_QUANTIZED_BY_ROW,
  .scale_axes = scale_axes,
  .doc = "A vector of output_dim numbers for each index below input_dim."
};
