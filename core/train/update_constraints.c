/* update_constraints.c: what follows the new weights of variables with constraints (keras/src/optimizers/base_optimizer.py: apply). Each
 * variable is projected alone: norms are those of its own shape. */
#include "layers/constraints.h"
#include "train/update.h"

int flow_update_is_constrained(const flow_update *all, const flow_run_update *u)
{
  const flow_run *r = &all->optimizer->runs[u->run];
  for (int i = r->first; i < r->first + r->count; i++)
    if (r->home->variables[i]->constraint) return 1;
  return 0;
}

/* After the averages: follow in update.c. */
flow_status flow_update_constrain(const flow_update *all, const flow_run_update *u)
{
  const flow_run *r = &all->optimizer->runs[u->run];
  flow_status status = FLOW_OK;
  for (int i = r->first; i < r->first + r->count && status == FLOW_OK; i++) {
    flow_variable *variable = r->home->variables[i];
    flow_tensor *weights, *made = NULL;
    if (!variable->constraint) continue;
    FLOW_TRY(flow_update_read_late(all->context, variable, &weights));
    status = flow_constraint_project(all->context, variable->constraint, weights, &made);
    if (status == FLOW_OK) status = flow_update_write_kept(all, variable, made);
    flow_tensor_release(weights);
    flow_tensor_release(made);
  }
  return status;
}
