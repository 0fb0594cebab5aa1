/* losses.c: Keras' losses as formulas of ops. Probabilities are clipped to [1e-7, 1 - 1e-7]; where the op that made y_pred is known to
 * be the matching softmax or sigmoid, its input is used instead, which is exact and saves the logarithm (logits_of).
 *
 * A formula gets y_true and y_pred as they come, brings their dtypes and ranks together (flow_express_pair, flow_express_fit) and gives
 * one value for each sample, or position of one. What is divided by what, weights and masks are the caller's: flow_loss_mean,
 * flow_loss_mask. keras/src/losses/losses.py. */
#include "autodiff/apply.h"
#include "graph/context.h"
#include "train/losses.h"
#include "train/loss_formulas.h"
#include "tensor/axis.h"

#include <math.h>
#include <string.h>

/* Keras' epsilon: the logarithm of a probability stays finite, and so does its gradient. */
static flow_tensor *clip(flow_expression *e, flow_tensor *p)
{
  const double epsilon = 1e-7;
  return e_minimum(e, e_maximum(e, p, flow_express_number(e, p, epsilon)), flow_express_number(e, p, 1 - epsilon));
}

/* What went into the softmax or sigmoid `op` that made y_pred, a softmax along the option axis; y_pred itself from_logits; else NULL.
 * Exact also for probabilities that float32 rounds to 0 or 1. The result belongs to the expression. */
static flow_tensor *logits_of(flow_expression *e, const flow_arguments *options, flow_tensor *y_pred, int op)
{
  if (e->status != FLOW_OK) return NULL;
  int from_logits = flow_argument_boolean(options, "from_logits");
  flow_attributes made;
  flow_tensor *input = flow_producer_input(e->context, y_pred, op, &made);
  if (input && op == FLOW_OP_softmax && !from_logits) {
    int axis = flow_express_axis(e, options, y_pred);
    if (made.axis.axis != axis && made.axis.axis + y_pred->rank != axis) {
      flow_tensor_release(input);
      return NULL;
    }
  }
  if (input && from_logits && flow_tensor_is_symbolic(y_pred))      /* in a trace, so once and not every step */
    flow_log(FLOW_LOG_WARNING, "a loss with from_logits = true was given the output of a softmax or sigmoid; its input is used");
  if (input) return flow_express_float(e, flow_express_keep(e, FLOW_OK, input));
  return from_logits ? flow_express_float(e, y_pred) : NULL;
}

/* labels * (1 - a) + a / classes Keras' label_smoothing: a of each label's weight is spread over all classes. */
static flow_tensor *smooth(flow_expression *e, const flow_arguments *options, flow_tensor *labels, double classes)
{
  double amount = flow_argument_number(options, "label_smoothing");
  if (amount == 0) return labels;
  if (!(amount >= 0 && amount <= 1)) return flow_express_fail(e, "label_smoothing must be between 0 and 1, found %g", amount);
  return e_add(e, e_mul(e, labels, flow_express_number(e, labels, 1 - amount)), flow_express_number(e, labels, amount / classes));
}

/* x with that axis as the last one. */
static flow_tensor *with_axis_last(flow_expression *e, flow_tensor *x, int axis)
{
  flow_attributes order = { .transpose = { .rank = x->rank } };
  if (e->status != FLOW_OK || axis == x->rank - 1) return x;
  for (int i = 0; i < x->rank; i++) order.transpose.axes[i] = i < axis ? i : i + 1 < x->rank ? i + 1 : axis;
  return flow_express(e, FLOW_OP_transpose, x, NULL, NULL, &order);
}

/* ---- formulas -------------------------------------------------------------------------------------------------------------- */

/* -log(softmax(z)[label]). Of probabilities: q = clip(p), -log(q[label] / sum q). Labels have no axis of classes, or one of length 1. */
static flow_tensor *sparse_categorical_crossentropy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true,
                                                    flow_tensor *y_pred)
{
  flow_tensor *logits = logits_of(e, options, y_pred, FLOW_OP_softmax);
  if (!logits) {
    flow_tensor *p = clip(e, flow_express_float(e, y_pred));
    logits = e_log(e, p);
  }
  int axis = e->status == FLOW_OK ? flow_express_axis(e, options, logits) : 0;
  if (e->status != FLOW_OK) return NULL;
  if (y_true->rank == logits->rank && y_true->shape[axis] == 1) y_true = with_axis_last(e, y_true, axis);
  logits = with_axis_last(e, logits, axis);
  if (!flow_express_label_fit(e, &y_true, logits, "; for one-hot labels use categorical_crossentropy")) return NULL;
  y_true = flow_express_indices(e, y_true);
  return flow_express(e, FLOW_OP_sparse_cross_entropy, logits, y_true, NULL, NULL);
}

/* -sum(y log softmax(z)). Of probabilities: p / sum p, clipped. Labels are smoothed by the length of the last axis, as in Keras, whichever
 * axis has the classes. */
static flow_tensor *categorical_crossentropy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_tensor *logits = logits_of(e, options, y_pred, FLOW_OP_softmax), *logarithm;
  if (y_pred->rank == 0) return flow_express_fail(e, "y_pred is a scalar, expected {batch, classes}");
  if (logits) y_pred = logits;
  flow_express_align(e, &y_true, &y_pred);
  if (e->status != FLOW_OK) return NULL;
  if (!flow_shape_equal(y_true->rank, y_true->shape, y_pred->rank, y_pred->shape))
    return flow_express_fail(e, "y_true %s and y_pred %s must have one shape; for integer labels use sparse_categorical_crossentropy",
                             flow_tensor_shape_text(y_true), flow_tensor_shape_text(y_pred));
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  flow_attributes along = { .axis = { flow_express_axis(e, options, y_pred) } };
  y_true = smooth(e, options, y_true, (double)y_pred->shape[y_pred->rank - 1]);
  if (logits) {
    logarithm = flow_express(e, FLOW_OP_log_softmax, y_pred, NULL, NULL, &along);
  } else {
    flow_tensor *p = e_div(e, y_pred, flow_express_sum(e, y_pred, along.axis.axis, 1));
    logarithm = e_log(e, clip(e, p));
  }
  return e_neg(e, flow_express_sum(e, e_mul(e, y_true, logarithm), along.axis.axis, 0));
}

/* -(y log p + (1 - y) log(1 - p)), with -log(sigmoid(z)) = softplus(-z) of logits, which is stable on both sides. */
static flow_tensor *binary_crossentropy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_tensor *logits = logits_of(e, options, y_pred, FLOW_OP_sigmoid), *when_true, *when_false;
  if (logits) y_pred = logits;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  int axis = flow_express_axis(e, options, y_pred);
  y_true = smooth(e, options, y_true, 2);
  flow_tensor *one = flow_express_number(e, y_pred, 1);
  if (logits) {
    when_true = e_softplus(e, e_neg(e, y_pred));
    when_false = e_softplus(e, y_pred);
  } else {
    flow_tensor *p = clip(e, y_pred);
    when_true = e_neg(e, e_log(e, p));
    when_false = e_neg(e, e_log(e, e_sub(e, one, p)));
  }
  flow_tensor *values = e_add(e, e_mul(e, y_true, when_true), e_mul(e, e_sub(e, one, y_true), when_false));
  return flow_express_mean(e, values, axis);
}

/* sum y log(y / p) along the last axis, both clipped to [1e-7, 1]. */
static flow_tensor *kl_divergence(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  (void)options;
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  flow_tensor *least = flow_express_number(e, y_pred, 1e-7), *most = flow_express_number(e, y_pred, 1);
  flow_tensor *y = e_minimum(e, e_maximum(e, y_true, least), most), *p = e_minimum(e, e_maximum(e, y_pred, least), most);
  return flow_express_sum(e, e_mul(e, y, e_log(e, e_div(e, y, p))), -1, 0);
}

/* The nearer, the smaller: the similarity, negated. */
static flow_tensor *cosine_loss(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  return e_neg(e, flow_metric_cosine_similarity(e, options, y_true, y_pred));
}

/* The axes of the option: a number or a list, from 0 or, negative, from the last one; none: all. 0 after a failure. */
static int axes_of(flow_expression *e, const flow_arguments *options, int rank, flow_attributes *out)
{
  const double *axes;
  int count = flow_argument_is_null(options, "axis") ? 0 : flow_argument_list(options, "axis", &axes);
  *out = (flow_attributes){ .reduce = { .count = count < FLOW_MAX_RANK ? count : FLOW_MAX_RANK } };
  for (int i = 0; i < count && e->status == FLOW_OK; i++) {
    if (i == FLOW_MAX_RANK || axes[i] != floor(axes[i]) || axes[i] < -rank || axes[i] >= rank)
      flow_express_fail(e, "entry %d of axis is not an axis of y_pred, which has %d dimensions", i + 1, rank);
    else out->reduce.axes[i] = (int32_t)axes[i] + (axes[i] < 0 ? rank : 0);
  }
  return e->status == FLOW_OK;
}

/* 1 - 2 sum(y p) / (sum y + sum p), the sums over the axes. */
static flow_tensor *dice(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_attributes axes;
  y_pred = flow_express_float(e, y_pred);
  y_true = flow_express_float(e, y_true);
  if (!flow_express_fit(e, &y_true, &y_pred) || !axes_of(e, options, y_pred->rank, &axes)) return NULL;
  flow_tensor *both = flow_express(e, FLOW_OP_sum, e_mul(e, y_true, y_pred), NULL, NULL, &axes);
  flow_tensor *truth = flow_express(e, FLOW_OP_sum, y_true, NULL, NULL, &axes);
  flow_tensor *each = e_add(e, truth, flow_express(e, FLOW_OP_sum, y_pred, NULL, NULL, &axes));
  flow_tensor *share = e_div(e, e_mul(e, both, flow_express_number(e, both, 2)), e_add(e, each, flow_express_number(e, each, 1e-7)));
  return e_sub(e, flow_express_number(e, share, 1), share);
}

/* 1 - both / (both + alpha y (1 - p) + beta (1 - y) p), sums over the axes (S. Salehi et al., 2017): alpha weighs what is missed, as in
 * Keras, whose documentation has the two the other way round. */
static flow_tensor *tversky(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_attributes axes;
  y_pred = flow_express_float(e, y_pred);
  y_true = flow_express_float(e, y_true);
  if (!flow_express_fit(e, &y_true, &y_pred) || !axes_of(e, options, y_pred->rank, &axes)) return NULL;
  flow_tensor *one = flow_express_number(e, y_pred, 1);
  flow_tensor *both = flow_express(e, FLOW_OP_sum, e_mul(e, y_true, y_pred), NULL, NULL, &axes);
  flow_tensor *missed = flow_express(e, FLOW_OP_sum, e_mul(e, y_true, e_sub(e, one, y_pred)), NULL, NULL, &axes);
  flow_tensor *wrong = flow_express(e, FLOW_OP_sum, e_mul(e, e_sub(e, one, y_true), y_pred), NULL, NULL, &axes);
  missed = e_mul(e, missed, flow_express_number(e, y_pred, flow_argument_number(options, "alpha")));
  wrong = e_mul(e, wrong, flow_express_number(e, y_pred, flow_argument_number(options, "beta")));
  flow_tensor *all = e_add(e, e_add(e, both, flow_express_number(e, y_pred, 1e-7)), e_add(e, missed, wrong));
  return e_sub(e, one, e_div(e, both, all));
}

/* (1 - p of the true class)^gamma times the cross entropy (T. Lin et al., "Focal Loss for Dense Object Detection", 2018). */
static flow_tensor *binary_focal_crossentropy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_tensor *logits = logits_of(e, options, y_pred, FLOW_OP_sigmoid), *entropy;
  if (!flow_express_pair(e, &y_true, logits ? &logits : &y_pred)) return NULL;
  if (logits) y_pred = e_sigmoid(e, logits);
  int axis = flow_express_axis(e, options, y_pred);
  y_true = smooth(e, options, y_true, 2);
  flow_tensor *one = flow_express_number(e, y_pred, 1), *not_true = e_sub(e, one, y_true);
  if (logits) {                        /* not cut off, as probabilities are */
    entropy = e_sub(e, e_softplus(e, logits), e_mul(e, y_true, logits));
  } else {
    flow_tensor *p = clip(e, y_pred);
    entropy = e_neg(e, e_add(e, e_mul(e, y_true, e_log(e, p)), e_mul(e, not_true, e_log(e, e_sub(e, one, p)))));
  }
  flow_tensor *missed = e_add(e, e_mul(e, y_true, e_sub(e, one, y_pred)), e_mul(e, not_true, y_pred));
  flow_tensor *values = e_mul(e, e_pow(e, missed, flow_express_number(e, y_pred, flow_argument_number(options, "gamma"))), entropy);
  if (flow_argument_boolean(options, "apply_class_balancing")) {
    double alpha = flow_argument_number(options, "alpha");
    flow_tensor *of_true = e_mul(e, y_true, flow_express_number(e, y_pred, alpha));
    values = e_mul(e, values, e_add(e, of_true, e_mul(e, not_true, flow_express_number(e, y_pred, 1 - alpha))));
  }
  return flow_express_mean(e, values, axis);
}

/* alpha (1 - p)^gamma times the cross entropy of each class. */
static flow_tensor *categorical_focal_crossentropy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true,
                                                   flow_tensor *y_pred)
{
  flow_tensor *logits = logits_of(e, options, y_pred, FLOW_OP_softmax);
  flow_attributes along = { .axis = { flow_express_axis(e, options, y_pred) } };
  if (logits) y_pred = flow_express(e, FLOW_OP_softmax, logits, NULL, NULL, &along);
  if (!flow_express_pair(e, &y_true, &y_pred)) return NULL;
  int axis = along.axis.axis;
  y_true = smooth(e, options, y_true, (double)y_pred->shape[y_pred->rank - 1]);
  flow_tensor *p = clip(e, e_div(e, y_pred, flow_express_sum(e, y_pred, axis, 1))), *one = flow_express_number(e, p, 1);
  flow_tensor *weight = e_pow(e, e_sub(e, one, p), flow_express_number(e, p, flow_argument_number(options, "gamma")));
  weight = e_mul(e, weight, flow_express_number(e, p, flow_argument_number(options, "alpha")));
  return e_neg(e, flow_express_sum(e, e_mul(e, weight, e_mul(e, y_true, e_log(e, p))), axis, 0));
}

/* Of y_pred {..., classes} what the label in y_true {...} has. Others have the gradient 0, also where that of the label is infinite. The
 * cross entropy is there for its check of labels; times 0 it is 0, since it is of numbers from 0 to 1. */
static flow_tensor *of_label(flow_expression *e, flow_tensor *y_true, flow_tensor *y_pred)
{
  flow_tensor *classes = NULL, *labels = flow_express_indices(e, y_true);
  if (e->status != FLOW_OK) return NULL;
  flow_status status = flow_tensor_arange_integers(labels->dtype, 0, y_pred->shape[y_pred->rank - 1], 1, &classes);
  flow_tensor *is_label = e_eq(e, flow_express_insert_axis(e, labels, labels->rank), flow_express_keep(e, status, classes));
  flow_tensor *zero = flow_express_number(e, y_pred, 0);
  flow_tensor *constant = flow_express(e, FLOW_OP_stop_gradient, y_pred, NULL, NULL, NULL);
  flow_tensor *checked = flow_express(e, FLOW_OP_sparse_cross_entropy, constant, labels, NULL, NULL);
  return e_add(e, flow_express_sum(e, e_where(e, is_label, y_pred, zero), -1, 0), e_mul(e, checked, zero));
}

/* (1 - p[label]^q) / q: cross entropy for q near 0, absolute error for q = 1 (Z. Zhang and M. Sabuncu, 2018). */
static flow_tensor *generalized_cross_entropy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  double q = flow_argument_number(options, "q");
  if (!(q > 0 && q < 1)) return flow_express_fail(e, "q must be between 0 and 1, found %g", q);
  y_pred = flow_express_float(e, y_pred);
  if (e->status != FLOW_OK || !flow_express_label_fit(e, &y_true, y_pred, "; labels are integers")) return NULL;
  flow_tensor *p = of_label(e, y_true, y_pred);
  flow_tensor *power = e_pow(e, p, flow_express_number(e, p, q));
  return e_div(e, e_sub(e, flow_express_number(e, p, 1), power), flow_express_number(e, p, q));
}

/* Keras' choice by shapes: one output: binary; labels of a smaller rank or {..., 1}: sparse; else one-hot. */
static flow_tensor *crossentropy(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)
{
  int one_output = y_pred->rank < 2 || y_pred->shape[y_pred->rank - 1] == 1;
  if (one_output) return binary_crossentropy(e, options, y_true, y_pred);
  int sparse = y_true->rank < y_pred->rank || y_true->shape[y_true->rank - 1] == 1;
  return sparse ? sparse_categorical_crossentropy(e, options, y_true, y_pred) : categorical_crossentropy(e, options, y_true, y_pred);
}

/* ---- table ------------------------------------------------------------------------------------------------------------------ */

#define FROM_LOGITS { "from_logits", FLOW_BOOLEAN, "false", NULL }
#define SMOOTHING { "label_smoothing", FLOW_NUMBER, "0", NULL }
#define AXIS { "axis", FLOW_INTEGER, "-1", NULL }
/* done by the caller */
#define REDUCTION { "reduction", FLOW_TEXT, "sum_over_batch_size", "sum_over_batch_size|mean|mean_with_sample_weight|sum|none" }

/* In the order of Keras' classes. */
static const flow_argument no_options[] = { REDUCTION, FLOW_ARGUMENTS_END };
static const flow_argument sparse_options[] = { FROM_LOGITS, { "ignore_class", FLOW_ABSENT, "null", NULL }, REDUCTION, AXIS,
                                                FLOW_ARGUMENTS_END };
static const flow_argument entropy_options[] = { FROM_LOGITS, SMOOTHING, AXIS, REDUCTION, FLOW_ARGUMENTS_END };
static const flow_argument huber_options[] = { { "delta", FLOW_NUMBER, "1", NULL }, REDUCTION, FLOW_ARGUMENTS_END };
static const flow_argument axis_options[] = { AXIS, REDUCTION, FLOW_ARGUMENTS_END };
static const flow_argument dice_options[] = { REDUCTION, { "axis", FLOW_NUMBERS, "null", NULL }, FLOW_ARGUMENTS_END };
#define GAMMA { "gamma", FLOW_NUMBER, "2", NULL }
#define ALPHA(value) { "alpha", FLOW_NUMBER, value, NULL }
static const flow_argument binary_focal_options[] = { { "apply_class_balancing", FLOW_BOOLEAN, "false", NULL }, ALPHA("0.25"), GAMMA,
                                                      FROM_LOGITS, SMOOTHING, AXIS, REDUCTION, FLOW_ARGUMENTS_END };
static const flow_argument focal_options[] = { ALPHA("0.25"), GAMMA, FROM_LOGITS, SMOOTHING, AXIS, REDUCTION, FLOW_ARGUMENTS_END };
static const flow_argument tversky_options[] = { ALPHA("0.5"), { "beta", FLOW_NUMBER, "0.5", NULL }, REDUCTION,
                                                 { "axis", FLOW_NUMBERS, "null", NULL }, FLOW_ARGUMENTS_END };
static const flow_argument generalized_options[] = { { "q", FLOW_NUMBER, "0.5", NULL }, REDUCTION, FLOW_ARGUMENTS_END };

/* Keras' names, options and order of arguments. A class NULL: Keras has only the function. */
static const flow_loss records[] = {
  { "sparse_categorical_crossentropy", "SparseCategoricalCrossentropy", NULL, sparse_options, sparse_categorical_crossentropy },
  { "categorical_crossentropy", "CategoricalCrossentropy", NULL, entropy_options, categorical_crossentropy },
  { "binary_crossentropy", "BinaryCrossentropy", "bce|BCE", entropy_options, binary_crossentropy },
  { "mean_squared_error", "MeanSquaredError", "mse|MSE", no_options, flow_loss_mean_squared_error },
  { "mean_absolute_error", "MeanAbsoluteError", "mae|MAE", no_options, flow_loss_mean_absolute_error },
  { "mean_absolute_percentage_error", "MeanAbsolutePercentageError", "mape|MAPE", no_options, flow_loss_mean_absolute_percentage_error },
  { "mean_squared_logarithmic_error", "MeanSquaredLogarithmicError", "msle|MSLE", no_options, flow_loss_mean_squared_logarithmic_error },
  { "huber", "Huber", "huber_loss", huber_options, flow_loss_huber },
  { "crossentropy", NULL, "ce", entropy_options, crossentropy },
  { "kl_divergence", "KLDivergence", "kld|KLD|kullback_leibler_divergence", no_options, kl_divergence },
  { "poisson", "Poisson", NULL, no_options, flow_loss_poisson },
  { "log_cosh", "LogCosh", "logcosh", no_options, flow_loss_log_cosh },
  { "cosine_similarity", "CosineSimilarity", NULL, axis_options, cosine_loss },
  { "hinge", "Hinge", NULL, no_options, flow_loss_hinge },
  { "squared_hinge", "SquaredHinge", NULL, no_options, flow_loss_squared_hinge },
  { "categorical_hinge", "CategoricalHinge", NULL, no_options, flow_loss_categorical_hinge },
  { "dice", "Dice", NULL, dice_options, dice },
  { "tversky", "Tversky", NULL, tversky_options, tversky },
  { "binary_focal_crossentropy", "BinaryFocalCrossentropy", NULL, binary_focal_options, binary_focal_crossentropy },
  { "categorical_focal_crossentropy", "CategoricalFocalCrossentropy", NULL, focal_options, categorical_focal_crossentropy },
  { "categorical_generalized_cross_entropy", "CategoricalGeneralizedCrossEntropy", NULL, generalized_options, generalized_cross_entropy },
};

int flow_loss_total(void) { return (int)(sizeof records / sizeof *records); }

/* index: 0 to flow_loss_total() - 1, not checked. */
const flow_loss *flow_loss_record(int index) { return &records[index]; }

/* By its name, its class or one of the short names ("mse"), which Keras accepts in their place. */
int flow_loss_is_named(const flow_loss *loss, const char *name)
{
  if (strcmp(name, loss->name) == 0 || (loss->class_name && strcmp(name, loss->class_name) == 0)) return 1;
  const char *rest = loss->short_names;
  size_t length = strlen(name);
  while (rest) {
    size_t part = strcspn(rest, "|");
    if (part == length && strncmp(name, rest, part) == 0) return 1;
    rest = rest[part] ? rest + part + 1 : NULL;
  }
  return 0;
}

/* Of names that two records share the first record is found. */
int flow_loss_lookup(const char *name)
{
  for (int i = 0; i < flow_loss_total(); i++)
    if (flow_loss_is_named(&records[i], name)) return i;
  return -1;
}

/* *out: the values before the mean, as the formula gives them, mostly one a sample. options: NULL is all defaults. */
flow_status flow_loss_run(flow_context *context, const flow_loss *loss, const flow_arguments *options, flow_tensor *y_true,
                          flow_tensor *y_pred, flow_tensor **out)
{
  flow_arguments *complete;
  FLOW_TRY(flow_arguments_complete(loss->name, loss->parameters, options, &complete));
  flow_expression e = flow_expression_of(context);
  flow_tensor *values = loss->formula(&e, complete, y_true, y_pred);
  flow_arguments_release(complete);
  flow_status status = flow_expression_take(&e, values, out);
  return status == FLOW_OK ? FLOW_OK : flow_fail_prefix(status, "%s: ", loss->name);
}

/* sum(values weights) / number of values: Keras' sum_over_batch_size divides by the count, not by the weights. The count is an op, since a
 * trace does not know its rows; without any rows the mean is 0. */
flow_status flow_loss_mean(flow_context *context, flow_tensor *values, flow_tensor *weights, flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *weighted = flow_express_float(&e, values);
  if (weights) {
    weights = flow_express_float(&e, weights);
    flow_express_align(&e, &weighted, &weights);
    int leads = e.status == FLOW_OK && weights->rank > 0 && weights->rank < weighted->rank;
    for (int i = 0; leads && i < weights->rank; i++) leads = weights->shape[i] == weighted->shape[i] || weights->shape[i] == 1;
    if (leads) {      /* one weight a sample, or one for each of the first axes */
      int64_t dims[FLOW_MAX_RANK];
      for (int i = 0; i < weighted->rank; i++) dims[i] = i < weights->rank ? weights->shape[i] : 1;
      weights = flow_express_reshape(&e, weights, weighted->rank, dims);
    }
    weighted = e_mul(&e, weighted, weights);
  }
  flow_tensor *sum = flow_express(&e, FLOW_OP_sum, weighted, NULL, NULL, NULL);
  flow_tensor *count = flow_express(&e, FLOW_OP_element_count, values, NULL, NULL, NULL);
  return flow_expression_take(&e, e_divide_no_nan(&e, sum, count), out);
}

/* The mask as weights; mean: scaled by all / valid, so that dividing by the count of all values gives the mean over the valid ones
 * (keras/src/losses/loss.py: apply_mask). Counts are summed over replicas first: the mean is that of the whole batch. */
flow_status flow_loss_mask(flow_context *context, flow_tensor *mask, int mean, flow_tensor **out)
{
  flow_expression e = flow_expression_of(context);
  flow_tensor *kept = flow_express_cast(&e, flow_express_cast(&e, mask, FLOW_BOOL), FLOW_FLOAT32), *total = NULL, *valid = NULL;
  if (!mean) return flow_expression_take(&e, kept, out);
  flow_tensor *own_total = flow_express(&e, FLOW_OP_element_count, mask, NULL, NULL, NULL);
  flow_tensor *own_valid = flow_express(&e, FLOW_OP_sum, kept, NULL, NULL, NULL);
  flow_status status = e.status == FLOW_OK ? flow_sum_over_replicas(context, own_total, &total) : e.status;
  total = flow_express_keep(&e, status, total);
  if (status == FLOW_OK) status = flow_sum_over_replicas(context, own_valid, &valid);
  valid = flow_express_keep(&e, status, valid);
  return flow_expression_take(&e, e_mul(&e, kept, e_divide_no_nan(&e, total, valid)), out);
}
