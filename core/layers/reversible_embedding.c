/* reversible_embedding.c: ReversibleEmbedding: an Embedding that also goes back: with reverse = true, vectors times the table, transposed,
 * or times its own table, {output_dim, input_dim}: a score for each index, which logit_soft_cap keeps within its bounds. */
#include "layers/express.h"
#include "layers/layer.h"
#include "layers/quantization.h"

static const flow_argument parameters[] = {
  { "input_dim", FLOW_INTEGER, NULL, ">0" },
  { "output_dim", FLOW_INTEGER, NULL, ">0" },
  { "tie_weights", FLOW_BOOLEAN, "true", NULL },
  { "embeddings_initializer", FLOW_INITIALIZER, "random_uniform", NULL },
  { "embeddings_regularizer", FLOW_REGULARIZER, "null", NULL },
  { "embeddings_constraint", FLOW_CONSTRAINT, "null", NULL },
  { "mask_zero", FLOW_BOOLEAN, "false", NULL },
  { "reverse_dtype", FLOW_ABSENT, "null", NULL },
  { "logit_soft_cap", FLOW_NUMBER, "null", NULL },
  { "lora_rank", FLOW_ABSENT, "null", NULL },
  { "lora_alpha", FLOW_ABSENT, "null", NULL },
  { "activity_regularizer", FLOW_REGULARIZER, "null", NULL },
  FLOW_LAYER_REST
};

static const char *const input_names[] = { "inputs", NULL };
static const flow_argument options[] = { { "reverse", FLOW_BOOLEAN, "false", NULL }, FLOW_ARGUMENTS_END };

enum { TABLE, REVERSE };

static flow_status check(flow_layer *layer)
{
  if (flow_argument_is_null(layer->arguments, "logit_soft_cap") || flow_argument_number(layer->arguments, "logit_soft_cap") > 0)
    return FLOW_OK;
  return flow_layer_fail(layer, "logit_soft_cap must be greater than 0");
}

/* The second table is there without tie_weights. As in Keras, regularizer and constraint are for the first one. */
static flow_status build(flow_context *context, flow_layer *layer, int count, const flow_signature *inputs)
{
  (void)count; (void)inputs;
  const int64_t rows = flow_argument_integer(layer->arguments, "input_dim"), size = flow_argument_integer(layer->arguments, "output_dim");
  FLOW_TRY(flow_layer_add_variable(context, layer, TABLE, "embeddings", "embeddings_initializer", 2, (const int64_t[]){ rows, size }, 1));
  if (flow_argument_boolean(layer->arguments, "tie_weights")) return FLOW_OK;
  flow_tensor *initial;
  FLOW_TRY(flow_layer_initialize(context, layer, "embeddings_initializer", 2, (const int64_t[]){ size, rows }, &initial));
  flow_status status = flow_layer_adopt(context, layer, REVERSE, "reverse_embeddings", NULL, initial, 1);
  flow_tensor_release(initial);
  return status;
}

/* Vectors to scores for each token: a product with the table, or with one of its own; scores are limited to cap tanh(y / cap). */
static flow_status reverse(flow_context *context, flow_layer *layer, flow_tensor *x, int training, flow_tensor **out)
{
  int64_t size = flow_argument_integer(layer->arguments, "output_dim");
  int tied = flow_argument_boolean(layer->arguments, "tie_weights");
  if (x->rank < 2 || x->shape[x->rank - 1] != size)
    return flow_layer_fail(layer, "reverse = true takes vectors of %lld numbers, the input is %s", (long long)size,
                           flow_tensor_shape_text(x));
  flow_expression e = flow_expression_of(context);
  flow_tensor *table = flow_express_variable(&e, layer->variables[tied ? TABLE : REVERSE]);
  flow_tensor *columns = table, *y;
  if (tied && layer->quantizing == FLOW_QUANTIZED_BY_ROW)
    columns = flow_express(&e, FLOW_OP_transpose, table, NULL, NULL, &(flow_attributes){ .transpose = { .rank = 2, .axes = { 1, 0 } } });
  if (flow_quantization_applies(layer, x, columns)) y = flow_quantization_multiply(&e, layer, x, columns, training);
  else y = flow_express(&e, FLOW_OP_matmul, x, table, NULL, &(flow_attributes){ .matmul = { .transpose_b = tied } });
  if (y && !flow_argument_is_null(layer->arguments, "logit_soft_cap")) {
    flow_tensor *cap = flow_express_number(&e, y, flow_argument_number(layer->arguments, "logit_soft_cap"));
    y = e_mul(&e, e_tanh(&e, e_div(&e, y, cap)), cap);
  }
  return flow_expression_take(&e, y, out);
}

/* Forward: as Embedding. */
static flow_status call(flow_context *context, flow_layer *layer, const flow_named_call *call, flow_tensor **outputs)
{
  if (flow_argument_boolean(call->options, "reverse")) return reverse(context, layer, call->inputs[0], call->training, &outputs[0]);
  flow_expression e = flow_expression_of(context);
  flow_tensor *indices = call->inputs[0];
  if (!flow_dtype_is_integer(indices->dtype)) indices = flow_express_cast(&e, indices, FLOW_INT32);
  flow_tensor *table = flow_express_variable(&e, layer->variables[TABLE]);
  flow_tensor *rows = flow_express(&e, FLOW_OP_gather, table, indices, NULL, NULL);
  if (layer->quantizing == FLOW_QUANTIZED_BY_ROW) rows = flow_quantization_round_rows(&e, rows);
  return flow_expression_take(&e, rows, &outputs[0]);
}

/* Vectors, which go back, have no mask. */
static flow_status compute_mask(flow_context *context, flow_layer *layer, flow_tensor *const *inputs, flow_tensor *const *masks, int count,
                                flow_tensor **out)
{
  (void)masks; (void)count;
  if (!flow_argument_boolean(layer->arguments, "mask_zero") || !flow_dtype_is_integer(inputs[0]->dtype)) return FLOW_OK;
  flow_expression e = flow_expression_of(context);
  return flow_expression_take(&e, e_ne(&e, inputs[0], flow_express_number(&e, inputs[0], 0)), out);
}

/* Each token has its scale: a row of the table, and a column of the one for the way back. */
static int scale_axes(const flow_layer *layer, const flow_variable *kernel, int axes[FLOW_MAX_RANK])
{
  axes[0] = kernel == layer->variables[TABLE] ? 0 : 1;
  return 1;
}

const flow_layer_class flow_layer_reversible_embedding = {
  .name = "ReversibleEmbedding",
  .positional = 9,
  .parameters = parameters,
  .input_names = input_names,
  .options = options,
  .build = build,
  .call_named = call,
  .check = check,
  .supports_masking = 1,
  .compute_mask = compute_mask,
  .quantizes = 1u << FLOW_QUANTIZED_BY_ROW,
  .scale_axes = scale_axes,
  .scales_follow = 1,
  .doc = "An Embedding that also goes back, with reverse = true: a score for each index."
};
