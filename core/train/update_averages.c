/* update_averages.c: moving averages of the weights, for use_ema: average = m average + (1 - m) weight after each update, and every
 * ema_overwrite_frequency updates weight = average (keras/src/optimizers/base_optimizer.py: _update_model_variables_moving_average,
 * _overwrite_model_variables_with_average_value). */
#include "autodiff/apply.h"
#include "autodiff/expression.h"
#include "train/update.h"

/* The expression owns what it gives: the average after this update, whose weights are `weight`; after the first update the weights. */
static flow_tensor *average(flow_expression *e, const flow_update *all, flow_tensor *before, flow_tensor *weight)
{
  flow_tensor *one = flow_express_number(e, weight, 1), *none = flow_express_number(e, weight, 0);
  flow_tensor *share = flow_express_number(e, weight, flow_argument_number(all->optimizer->arguments, "ema_momentum"));
  share = e_where(e, e_gt(e, all->number, one), share, none);
  return e_add(e, e_mul(e, share, before), e_mul(e, e_sub(e, one, share), weight));
}

/* Reads the weight late: it is the one that the update has just written, before its constraint (follow in update.c). With
 * ema_overwrite_frequency the overwritten weight is computed in every step and chosen by the number of the update, since a plan has no
 * branches. */
flow_status flow_update_write_averages(const flow_update *all, const flow_run_update *u)
{
  const flow_optimizer *optimizer = all->optimizer;
  const flow_run *r = &optimizer->runs[u->run];
  flow_tensor *before, *weight, *mean = NULL, *overwritten = NULL;
  if (optimizer->average_kind < 0) return FLOW_OK;
  FLOW_TRY(flow_update_read_late(all->context, r->slots[optimizer->average_kind], &before));
  flow_status status = flow_update_read_late(all->context, r->parameters, &weight);
  if (status != FLOW_OK) {
    flow_tensor_release(before);
    return status;
  }
  flow_expression e = flow_expression_of(all->context);
  flow_tensor *made = average(&e, all, before, weight), *due = weight;
  if (!flow_argument_is_null(optimizer->arguments, "ema_overwrite_frequency")) {
    double frequency = (double)flow_argument_integer(optimizer->arguments, "ema_overwrite_frequency");
    flow_tensor *past = e_mod(&e, all->number, flow_express_number(&e, all->number, frequency));
    due = e_where(&e, e_eq(&e, past, flow_express_number(&e, past, 0)), made, weight);
  }
  if (e.status == FLOW_OK) {
    mean = flow_tensor_retain(made);
    overwritten = flow_tensor_retain(due);
  }
  status = flow_expression_end(&e);
  if (status == FLOW_OK && overwritten != weight) status = flow_update_write_kept(all, r->parameters, overwritten);
  if (status == FLOW_OK) status = flow_update_write_kept(all, r->slots[optimizer->average_kind], mean);
  flow_tensor_release(before);
  flow_tensor_release(weight);
  flow_tensor_release(mean);
  flow_tensor_release(overwritten);
  return status;
}
