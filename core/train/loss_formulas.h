/* loss_formulas.h: formulas of losses and metrics that their tables take from other files, as flow_loss_formula (losses.h). */
#ifndef FLOW_TRAIN_LOSS_FORMULAS_H
#define FLOW_TRAIN_LOSS_FORMULAS_H

#include "train/losses.h"

#define FLOW_FORMULA(name) \
  flow_tensor *name(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred)

FLOW_FORMULA(flow_loss_mean_squared_error);
FLOW_FORMULA(flow_loss_mean_absolute_error);
FLOW_FORMULA(flow_loss_mean_absolute_percentage_error);
FLOW_FORMULA(flow_loss_mean_squared_logarithmic_error);
FLOW_FORMULA(flow_loss_huber);
FLOW_FORMULA(flow_loss_poisson);
FLOW_FORMULA(flow_loss_log_cosh);
FLOW_FORMULA(flow_loss_hinge);
FLOW_FORMULA(flow_loss_squared_hinge);
FLOW_FORMULA(flow_loss_categorical_hinge);
FLOW_FORMULA(flow_metric_cosine_similarity);

/* Below, in loss_operands.c: what formulas do with y_true and y_pred first. */

/* If the rank of one is higher by 1, takes its last dimension of 1 away, or gives the other one such a dimension. */
void flow_express_align(flow_expression *e, flow_tensor **a, flow_tensor **b);
/* Both as floats of one rank, one value a sample as {batch, 1}; 0 after a failure. */
int  flow_express_pair(flow_expression *e, flow_tensor **y_true, flow_tensor **y_pred);
/* Aligns two tensors of which the ranks differ by a last 1; 0, and a message that names both shapes, unless they broadcast then. */
int  flow_express_fit(flow_expression *e, flow_tensor **y_true, flow_tensor **y_pred);
/* The same for labels {...} or {..., 1} and scores {..., classes}; advice ends the message. */
int  flow_express_label_fit(flow_expression *e, flow_tensor **y_true, const flow_tensor *y_pred, const char *advice);
/* The option axis from 0, of x, or, after a failure, any number. */
int flow_express_axis(flow_expression *e, const flow_arguments *options, const flow_tensor *x);

#endif
