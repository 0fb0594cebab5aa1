/* train.c: the loss and metric functions of flow.h: handles and indices are checked here, the work is done in core/train. */
#include "layers/config.h"
#include "train/losses.h"
#include "train/metrics.h"
#include "train/optimizer.h"

/* Before a record is called: everything is there and no tensor was released. */
static flow_status check_call(const char *function, const flow_context *context, const flow_tensor *y_true, const flow_tensor *y_pred,
                              flow_tensor **out)
{
  if (!context) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: context is NULL", function);
  if (!out) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: out is NULL", function);
  if (!y_true || !y_pred) return flow_fail(FLOW_INVALID_ARGUMENT, "%s: %s is NULL", function, y_true ? "y_pred" : "y_true");
  FLOW_TRY(flow_check_tensor("y_true", y_true));
  return flow_check_tensor("y_pred", y_pred);
}

int flow_loss_find(const char *name) { return name ? flow_loss_lookup(name) : -1; }

const char *flow_loss_name(int loss) { return loss >= 0 && loss < flow_loss_total() ? flow_loss_record(loss)->name : NULL; }

static const char *argument_name(const flow_loss *record, int argument)
{
  return argument >= 0 && argument < flow_argument_count(record->parameters) ? record->parameters[argument].name : NULL;
}

const char *flow_loss_argument(int loss, int argument)
{
  return flow_loss_name(loss) ? argument_name(flow_loss_record(loss), argument) : NULL;
}

static const char *argument_default(const flow_loss *record, int argument)
{
  return argument_name(record, argument) ? record->parameters[argument].initial : NULL;
}

const char *flow_loss_argument_default(int loss, int argument)
{
  return flow_loss_name(loss) ? argument_default(flow_loss_record(loss), argument) : NULL;
}

flow_status flow_loss_values(flow_context *context, int loss, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred,
                             flow_tensor **out)
{
  if (!flow_loss_name(loss))
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loss_values: there is no loss number %d; flow_loss_find gives that of a name", loss);
  FLOW_TRY(check_call("flow_loss_values", context, y_true, y_pred, out));
  return flow_loss_run(context, flow_loss_record(loss), options, y_true, y_pred, out);
}

flow_status flow_loss_mask_weights(flow_context *context, flow_tensor *mask, int mean, flow_tensor **out)
{
  if (!context || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loss_mask_weights: %s is NULL", context ? "out" : "context");
  FLOW_TRY(flow_check_tensor("flow_loss_mask_weights: mask", mask));
  return flow_loss_mask(context, mask, mean, out);
}

flow_status flow_loss_reduce(flow_context *context, flow_tensor *values, flow_tensor *weights, flow_tensor **out)
{
  if (!context || !out) return flow_fail(FLOW_INVALID_ARGUMENT, "flow_loss_reduce: %s is NULL", context ? "out" : "context");
  FLOW_TRY(flow_check_tensor("flow_loss_reduce: values", values));
  if (weights) FLOW_TRY(flow_check_tensor("flow_loss_reduce: weights", weights));
  return flow_loss_mean(context, values, weights, out);
}

flow_status flow_schedule_rate(flow_context *context, const flow_schedule *schedule, flow_tensor *step, flow_tensor **out)
{
  if (!context || !schedule || !out)
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_schedule_rate: %s is NULL", !context ? "context" : schedule ? "out" : "schedule");
  FLOW_TRY(flow_check_tensor("flow_schedule_rate: step", step));
  return flow_schedule_apply(context, schedule, step, out);
}

int flow_metric_find(const char *name) { return name ? flow_metric_lookup(name) : -1; }

const char *flow_metric_name(int metric) { return metric >= 0 && metric < flow_metric_total() ? flow_metric_record(metric)->name : NULL; }

const char *flow_metric_argument(int metric, int argument)
{
  return flow_metric_name(metric) ? argument_name(flow_metric_record(metric), argument) : NULL;
}

const char *flow_metric_argument_default(int metric, int argument)
{
  return flow_metric_name(metric) ? argument_default(flow_metric_record(metric), argument) : NULL;
}

flow_status flow_metric_values(flow_context *context, int metric, const flow_arguments *options, flow_tensor *y_true, flow_tensor *y_pred,
                               flow_tensor **out)
{
  if (!flow_metric_name(metric))
    return flow_fail(FLOW_INVALID_ARGUMENT, "flow_metric_values: there is no metric number %d; flow_metric_find gives that of a name",
                     metric);
  FLOW_TRY(check_call("flow_metric_values", context, y_true, y_pred, out));
  return flow_metric_run(context, flow_metric_record(metric), options, y_true, y_pred, out);
}

int flow_optimizer_config(const flow_optimizer *optimizer, char *text, int size)
{
  return optimizer ? flow_config_write(flow_optimizer_config_json(optimizer), text, size) : flow_config_none(text, size);
}
