/* losses.h: the table of losses. One record a loss: names, options, formula. A formula gives one value a sample (the rank of
 * y_pred less one); flow_loss_reduce makes the number that is minimized. */
#ifndef FLOW_TRAIN_LOSSES_H
#define FLOW_TRAIN_LOSSES_H

#include "layers/arguments.h"
#include "layers/express.h"

/* y_true and y_pred are concrete or symbolic; options are complete. Result borrowed from the expression. */
typedef flow_tensor *(*flow_loss_formula)(flow_expression *e, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred);

/* A loss or a metric as one line of a table (losses.c, metrics.c). */
typedef struct flow_loss {
  const char          *name, *class_name;
  const char          *short_names;        /* separated by "|", or NULL */
  const flow_argument *parameters;         /* of the class, except for its name */
  flow_loss_formula    formula;
} flow_loss;

/* The table of losses: index from 0 to total - 1. */
int              flow_loss_total(void);
const flow_loss *flow_loss_record(int index);

int              flow_loss_lookup(const char *name);      /* any of its names; -1 */
int              flow_loss_is_named(const flow_loss *loss, const char *name);

/* Completes the options, runs the formula and puts the name around failures. Also runs metrics. */
flow_status flow_loss_run(flow_context *context, const flow_loss *loss, const flow_arguments *options, flow_tensor *y_true,
                          flow_tensor *y_pred, flow_tensor **out);
/* sum(values x weights) / number of values, 0 of none. weights may be NULL, or have the first axes of the values, or broadcast. */
flow_status flow_loss_mean(flow_context *context, flow_tensor *values, flow_tensor *weights, flow_tensor **out);
/* What the mask of y_pred makes of the weights of its values, Keras' apply_mask: 0 where it leaves them out, else 1, or, mean, as much more
 * as there are fewer, over all replicas, so that a mean is one over what counts. float32 in the shape of the mask. */
flow_status flow_loss_mask(flow_context *context, flow_tensor *mask, int mean, flow_tensor **out);

/* What formulas share: loss_operands.c. */
flow_tensor *flow_express_float(flow_expression *e, flow_tensor *x);        /* as float32, unless it is float64 */
flow_tensor *flow_express_fail(flow_expression *e, const char *format, ...) __attribute__((format(printf, 2, 3)));   /* NULL */

#endif
