/* regularizers.c: L1, L2, L1L2 and OrthogonalRegularizer (keras/src/regularizers/regularizers.py). Penalties are formulas of ops, so
 * that their gradients follow: of weights for the loss (flow_layer_regularize, called by the training step), of a layer's output
 * (flow_layer_regularize_activity, called by each call), and by name for scripts (flow_regularize). Options of a layer's argument stand
 * among the layer's arguments under "kernel_regularizer.l2"; `prefix` is the part before l2. */
#include "layers/regularizers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/variable.h"
#include "layers/express.h"
#include "tensor/tensor.h"

static const flow_argument l1_options[] = { { "l1", FLOW_NUMBER, "0.01", NULL }, FLOW_ARGUMENTS_END };
static const flow_argument l2_options[] = { { "l2", FLOW_NUMBER, "0.01", NULL }, FLOW_ARGUMENTS_END };
static const flow_argument both_options[] = { { "l1", FLOW_NUMBER, "0", NULL }, { "l2", FLOW_NUMBER, "0", NULL }, FLOW_ARGUMENTS_END };

static const flow_argument orthogonal_options[] = {
  { "factor", FLOW_NUMBER, "0.01", NULL }, { "mode", FLOW_TEXT, "rows", "rows|columns" }, FLOW_ARGUMENTS_END
};

static const flow_regularizer records[] = {
  { "l1", "L1", l1_options },
  { "l2", "L2", l2_options },
  { "l1_l2", "L1L2", both_options },
  { "orthogonal_regularizer", "OrthogonalRegularizer", orthogonal_options },
};

int flow_regularizer_count(void) { return (int)(sizeof records / sizeof *records); }

/* index: 0 to flow_regularizer_count() - 1, not checked. */
const flow_regularizer *flow_regularizer_record(int index) { return &records[index]; }

/* ---- penalties ------------------------------------------------------------------------------------------------------------- */

/* 0 where the regularizer has no such option, or it is null. */
static double option(const flow_arguments *arguments, const char *prefix, const char *name)
{
  char full[128];
  snprintf(full, sizeof full, "%s%s", prefix, name);
  return flow_argument_is_null(arguments, full) ? 0 : flow_argument_number(arguments, full);
}

/* How the numbers of a tensor become one. */
typedef flow_tensor *total_rule(flow_expression *e, flow_tensor *x);

static flow_tensor *sum_all(flow_expression *e, flow_tensor *x)
{
  return flow_express(e, FLOW_OP_sum, x, NULL, NULL, NULL);
}

/* The sum over each row, of which the mean: as many rows as the batch has when the plan runs. */
static flow_tensor *mean_of_rows(flow_expression *e, flow_tensor *x)
{
  flow_attributes reduce = { .reduce = { .count = 0 } };
  if (!x) return NULL;
  for (int axis = 1; axis < x->rank; axis++) reduce.reduce.axes[reduce.reduce.count++] = axis;
  if (x->rank > 1) x = flow_express(e, FLOW_OP_sum, x, NULL, NULL, &reduce);
  return x && x->rank > 0 ? flow_express_mean(e, x, 0) : x;
}

/* factor times the mean of the sizes of all products of two rows, or columns, whose squares' sums were made 1. */
static flow_tensor *orthogonal_penalty(flow_expression *e, const flow_arguments *options, const char *prefix, flow_tensor *w)
{
  char mode[128];
  if (!w || e->status != FLOW_OK) return NULL;
  if (w->rank != 2 || w->shape[0] < 1) {
    e->status = flow_fail(FLOW_INVALID_ARGUMENT, "OrthogonalRegularizer is for weights that are matrices, got shape %s",
                          flow_tensor_shape_text(w));
    return NULL;
  }
  snprintf(mode, sizeof mode, "%smode", prefix);
  flow_attributes turn = { .transpose = { .rank = 2, .axes = { 1, 0 } } };
  flow_attributes along = { .reduce = { .count = 1, .keepdims = 1, .axes = { 1 } } };
  if (strcmp(flow_argument_text(options, mode), "columns") == 0) w = flow_express(e, FLOW_OP_transpose, w, NULL, NULL, &turn);
  if (!w) return NULL;
  int64_t n = w->shape[0], sides[2] = { n, n };
  flow_tensor *length = flow_express(e, FLOW_OP_sum, e_square(e, w), NULL, NULL, &along), *others = NULL;
  if (!length) return NULL;
  w = e_mul(e, w, e_rsqrt(e, e_maximum(e, length, flow_express_number(e, w, 1e-14))));      /* rows of zeros have a gradient of zeros */
  flow_tensor *products = flow_express(e, FLOW_OP_matmul, w, flow_express(e, FLOW_OP_transpose, w, NULL, NULL, &turn), NULL, NULL);
  flow_status status = flow_tensor_new(FLOW_FLOAT32, 2, sides, &others);
  if (status == FLOW_OK) status = flow_tensor_fill(others, 1);
  for (int64_t i = 0; i < n && status == FLOW_OK; i++) ((float *)flow_tensor_elements(others))[i * n + i] = 0;
  others = flow_express_keep(e, status, others);
  flow_tensor *sum = others ? sum_all(e, e_abs(e, e_mul(e, products, flow_express_cast(e, others, w->dtype)))) : NULL;
  double pairs = n > 1 ? (double)n * ((double)n - 1) / 2 : 1;
  return sum ? e_mul(e, sum, flow_express_number(e, sum, option(options, prefix, "factor") * 0.5 / pairs)) : NULL;
}

/* The regularizer of a name; prefix: of the options' names, with its dot. whole: w was whole numbers, to which Keras converts the factors.
 * NULL where all factors are 0. */
static flow_tensor *penalty(flow_expression *e, const char *name, const flow_arguments *options, const char *prefix, total_rule *total_of,
                            flow_tensor *w, int whole)
{
  if (strcmp(name, "orthogonal_regularizer") == 0 || strcmp(name, "OrthogonalRegularizer") == 0)
    return orthogonal_penalty(e, options, prefix, w);
  double l1 = option(options, prefix, "l1"), l2 = option(options, prefix, "l2");
  flow_tensor *total = NULL;
  if (whole) {
    l1 = trunc(l1);
    l2 = trunc(l2);
  }
  if (l1 != 0) {
    flow_tensor *sum = total_of(e, e_abs(e, w));
    total = e_mul(e, sum, flow_express_number(e, sum, l1));
  }
  if (l2 != 0) {
    flow_tensor *sum = total_of(e, e_square(e, w));
    sum = e_mul(e, sum, flow_express_number(e, sum, l2));
    total = total ? e_add(e, total, sum) : sum;
  }
  return total;
}

/* *out: a new reference; NULL: the variable has no regularizer, or is not trained. */
flow_status flow_layer_regularize(flow_context *context, const flow_layer *layer, int index, flow_tensor **out)
{
  const char *name = layer->regularizers[index];
  char prefix[120];
  *out = NULL;
  if (!name || flow_argument_is_null(layer->arguments, name) || !flow_variable_trainable(layer->variables[index])) return FLOW_OK;
  flow_expression e = flow_expression_of(context);
  snprintf(prefix, sizeof prefix, "%s.", name);
  const char *regularizer = flow_argument_text(layer->arguments, name);
  flow_tensor *variable = flow_express_variable(&e, layer->variables[index]);
  return flow_expression_take(&e, penalty(&e, regularizer, layer->arguments, prefix, sum_all, variable, 0), out);
}

/* Adds to layer->activity, which the layer's caller takes (flow_layer_take_activity) and adds to the loss. In float32, whatever the
 * layer computes in. */
flow_status flow_layer_regularize_activity(flow_context *context, flow_layer *layer, flow_tensor *output)
{
  static const char option[] = "activity_regularizer";
  flow_tensor *added;
  int whole = !flow_dtype_is_float(output->dtype);
  if (flow_argument_is_null(layer->arguments, option) || output->dtype == FLOW_BOOL) return FLOW_OK;
  flow_expression e = flow_expression_of(context);
  flow_tensor *one = penalty(&e, flow_argument_text(layer->arguments, option), layer->arguments, "activity_regularizer.", mean_of_rows,
                             flow_express_cast(&e, output, FLOW_FLOAT32), whole);
  if (!one) return flow_expression_end(&e);
  FLOW_TRY(flow_expression_take(&e, layer->activity ? e_add(&e, layer->activity, one) : one, &added));
  flow_tensor_release(layer->activity);
  layer->activity = added;
  return FLOW_OK;
}

flow_status flow_regularize(flow_context *context, const char *regularizer, const flow_arguments *options, flow_tensor *weights,
                            flow_tensor **out)
{
  flow_argument_choice choice;
  flow_arguments *complete;
  if (!context || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_regularize: %s is NULL", context ? "out" : "context");
  *out = NULL;
  FLOW_TRY(flow_check_tensor("flow_regularize: the weights", weights));
  if (!regularizer || !flow_argument_choice_find(FLOW_REGULARIZER, regularizer, &choice))
    return flow_argument_choice_unknown("flow_regularize", "regularizer", FLOW_REGULARIZER, regularizer ? regularizer : "");
  FLOW_TRY(flow_arguments_complete(choice.class_name, choice.parameters, options, &complete));
  flow_expression e = flow_expression_of(context);
  flow_tensor *total = penalty(&e, choice.class_name, complete, "", sum_all, weights, !flow_dtype_is_float(weights->dtype));
  flow_arguments_release(complete);
  return flow_expression_take(&e, total ? total : flow_express_number(&e, weights, 0), out);
}
