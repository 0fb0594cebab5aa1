/* metrics.h: the table of metrics. A metric gives float32 values; the training loop averages them over samples. */
#ifndef FLOW_TRAIN_METRICS_H
#define FLOW_TRAIN_METRICS_H

#include "train/losses.h"

typedef flow_loss flow_metric;      /* the same record; class_name is NULL for "accuracy", which stands for one of three */

/* Metrics of their own first, then every loss. */
int                flow_metric_total(void);
const flow_metric *flow_metric_record(int index);
int                flow_metric_lookup(const char *name);      /* -1; "accuracy" and "acc" in any case, as in Keras */
/* The values of a formula as float32: one a sample, or several, {batch, ...}. */
flow_status        flow_metric_run(flow_context *context, const flow_metric *metric, const flow_arguments *options, flow_tensor *y_true,
                                   flow_tensor *y_pred, flow_tensor **out);

#endif
