/* update_accumulation.c: gradient_accumulation_steps = N: of N calls in a row the last one updates, with the mean of their gradients; the
 * others add theirs to accumulators (keras/src/optimizers/base_optimizer.py: _backend_apply_gradients). The variable of iterations counts
 * calls, and schedules go by it; updates are counted by iterations / N. A variable whose gradient the last call lacks loses what it has
 * accumulated. Whether a call is the last is computed by ops, as whether a loss scale skips it: a step on a device does not wait. */
#include "autodiff/expression.h"
#include "train/update.h"

/* Fills `done`, and multiplies the guard by whether this call updates: *due, float32, a new reference. */
static flow_status find_due(flow_update *all, flow_tensor **due)
{
  double steps = (double)all->optimizer->accumulation_steps;
  flow_tensor *calls, *guard = NULL;
  FLOW_TRY(flow_update_read_late(all->context, all->optimizer->iterations, &calls));
  flow_expression e = flow_expression_of(all->context);
  flow_tensor *past = e_mod(&e, calls, flow_express_number(&e, calls, steps));
  flow_tensor *whole = flow_express_cast(&e, e_sub(&e, calls, past), FLOW_FLOAT64);
  flow_tensor *done = flow_express_cast(&e, e_div(&e, whole, flow_express_number(&e, whole, steps)), FLOW_INT64);
  flow_tensor *last = flow_express_cast(&e, e_eq(&e, past, flow_express_number(&e, past, steps - 1)), FLOW_FLOAT32);
  flow_tensor *both = all->guard ? e_mul(&e, last, all->guard) : last;
  if (e.status == FLOW_OK) {
    all->done = flow_tensor_retain(done);
    guard = flow_tensor_retain(both);
    *due = flow_tensor_retain(last);
  }
  flow_status status = flow_expression_end(&e);
  flow_tensor_release(calls);
  FLOW_TRY(status);
  flow_tensor_release(all->guard);
  all->guard = guard;
  return FLOW_OK;
}

/* The handle over the whole run. */
static flow_variable *accumulator_of(const flow_update *all, const flow_run_update *u)
{
  return all->optimizer->runs[u->run].slots[all->optimizer->accumulator_kind];
}

/* What the accumulator of a run becomes, and the mean as its gradient, if it has one. */
static flow_status accumulate(const flow_update *all, flow_run_update *u, flow_tensor *due)
{
  flow_tensor *before, *mean = NULL;
  FLOW_TRY(flow_update_read_late(all->context, accumulator_of(all, u), &before));
  flow_expression e = flow_expression_of(all->context);
  flow_tensor *sum = u->gradient ? e_add(&e, u->gradient, before) : before;
  flow_tensor *left = e_where(&e, due, flow_express_number(&e, before, 0), sum);
  flow_tensor *gradient = u->gradient ? e_div(&e, sum, flow_express_number(&e, sum, (double)all->optimizer->accumulation_steps)) : NULL;
  if (e.status == FLOW_OK) {
    u->accumulated = flow_tensor_retain(left);
    mean = flow_tensor_retain(gradient);
  }
  flow_status status = flow_expression_end(&e);
  flow_tensor_release(before);
  FLOW_TRY(status);
  if (u->gradient) {
    flow_tensor_release(u->gradient);
    u->gradient = mean;
  }
  return flow_update_keep_guarded(all->context, all->step.guard, accumulator_of(all, u), &u->accumulated);
}

/* Runs without a gradient (idle) have accumulators, too, which are set back when the update is due. */
flow_status flow_update_accumulate(flow_update *all)
{
  flow_tensor *due;
  if (all->optimizer->accumulator_kind < 0) return FLOW_OK;
  FLOW_TRY(find_due(all, &due));
  flow_status status = FLOW_OK;
  for (int i = 0; i < all->count + all->idle_count && status == FLOW_OK; i++) status = accumulate(all, &all->list[i], due);
  flow_tensor_release(due);
  return status;
}

/* After the update, which has read the mean out of the old ones. */
flow_status flow_update_write_accumulated(const flow_update *all)
{
  const flow_optimizer *optimizer = all->optimizer;
  int kind = optimizer->accumulator_kind;
  for (int i = 0; kind >= 0 && i < all->count + all->idle_count; i++) {
    const flow_run *r = &optimizer->runs[all->list[i].run];
    FLOW_TRY(flow_update_write(all->context, r->slots[kind], all->list[i].accumulated));
    for (int k = r->first; k < r->first + r->count; k++)
      FLOW_TRY(flow_variable_updated(all->context, optimizer->slot_variables[flow_optimizer_slot_index(optimizer, r->home, k, kind)]));
  }
  return FLOW_OK;
}
