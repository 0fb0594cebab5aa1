/* replica_sums.c: in a trace that several replicas run, a sum over them, and the mean weighted by their rows. See apply.h. */
#include "autodiff/apply.h"

/* Only floats are summed over replicas; integers, such as counts of steps, are the same everywhere. */
static int is_shared(const flow_context *context, const flow_tensor *x)
{
  const flow_graph *graph = flow_context_trace(context);
  return graph && graph->replicas > 1 && (x->dtype == FLOW_FLOAT32 || x->dtype == FLOW_FLOAT64);
}

/* A communication in the plan: all replicas run it at the same place. A concrete tensor becomes a constant of the trace first. */
flow_status flow_sum_over_replicas(flow_context *context, flow_tensor *x, flow_tensor **out)
{
  if (is_shared(context, x)) {
    flow_tensor *own = flow_tensor_retain(x);
    flow_status status = x->graph ? FLOW_OK : flow_trace_constant(context, x, &own);
    if (status == FLOW_OK) status = flow_apply1(context, FLOW_OP_all_reduce, own, NULL, NULL, NULL, out);
    flow_tensor_release(own);
    return status;
  }
  *out = flow_tensor_retain(x);
  return FLOW_OK;
}

/* x times the replica's share of the rows; 0 where it has none, whatever x is then: means of nothing are not numbers. */
static flow_status weigh(flow_context *context, flow_tensor *x, flow_tensor **out)
{
  flow_tensor *share = NULL, *part = NULL, *zero = NULL, *has_rows = NULL;
  flow_status status = flow_apply(context, FLOW_OP_row_share, NULL, 0, NULL, &share);
  if (status == FLOW_OK) status = flow_tensor_scalar(x->dtype, 0, &zero);
  if (status == FLOW_OK) status = flow_apply1(context, FLOW_OP_gt, share, zero, NULL, NULL, &has_rows);
  if (status == FLOW_OK) status = flow_apply1(context, FLOW_OP_mul, x, share, NULL, NULL, &part);
  if (status == FLOW_OK) status = flow_apply1(context, FLOW_OP_where, has_rows, part, zero, NULL, out);
  flow_tensor_release(has_rows);
  flow_tensor_release(zero);
  flow_tensor_release(part);
  flow_tensor_release(share);
  return status;
}

/* Replicas without rows count as nothing, so that a mean over uneven batches is that over all rows. */
flow_status flow_mean_over_replicas(flow_context *context, flow_tensor *x, flow_tensor **out)
{
  flow_tensor *part;
  if (!is_shared(context, x)) return flow_sum_over_replicas(context, x, out);
  FLOW_TRY(weigh(context, x, &part));
  flow_status status = flow_sum_over_replicas(context, part, out);
  flow_tensor_release(part);
  return status;
}
